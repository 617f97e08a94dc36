//! Other languages than Rust: what a change touched, what it may name, and its mutants.
//!
//! Rust has all mutants in one program. Here each is a build of its own, in which a stretch of bytes of
//! one file stands for another, and a process for each case. The verdicts are those of Rust, and so
//! are the controls among them: builds of the tree as it is, placebos that change what is compiled
//! and nothing that can be seen, and beside these canaries, which end the program in each changed file
//! and must be noticed, or the file is no part of what the cases run.
//!
//! A text is read by a grammar of `tree-sitter`, whole and without any error, or not at all. Two texts
//! with the same tokens in the same places are the same program; so comments and white space are
//! inert.

mod bodies;
mod fence;
mod finds;
mod grammar;
mod names;
mod numbers;
mod operators;
mod pieces;
mod placebo;
mod places;
mod plan;
mod syntax;
mod text;
mod texts;
mod tokens;
mod types;

#[cfg(test)]
mod tests;

pub use fence::check as fence;
pub(crate) use plan::{Rewrites, plan};

use flightproof_core::RelPath;
use flightproof_evidence::{Ending, Observation};

/// A language with operators, by the toolchain that builds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// Go.
    Go,
    /// JavaScript, for Node.
    JavaScript,
    /// Python.
    Python,
    /// TypeScript, for Node, which takes its types off.
    TypeScript,
}

const ALL: [Language; 5] = [
    Language::C,
    Language::Go,
    Language::JavaScript,
    Language::Python,
    Language::TypeScript,
];

impl Language {
    /// The language that a toolchain of this name builds.
    pub fn of_toolchain(name: &str) -> Option<Self> {
        ALL.into_iter()
            .find(|language| language.toolchain() == name)
    }

    /// The language of a set of operators; none for Rust's.
    pub(crate) fn of_operators(set: &str) -> Option<Self> {
        let (toolchain, version) = set.rsplit_once('-')?;
        let number = version.bytes().all(|b| b.is_ascii_digit());
        ALL.into_iter()
            .find(|language| language.toolchain() == toolchain && number)
    }

    /// The name of the toolchain that builds it, as in witnesses and policies.
    pub const fn toolchain(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Go => "go",
            Self::JavaScript => "node",
            Self::Python => "python",
            Self::TypeScript => "typescript",
        }
    }

    /// Version of the set of operators, on certificates.
    pub const fn operator_set(self) -> &'static str {
        match self {
            Self::C => "c-3",
            Self::Go => "go-3",
            Self::JavaScript => "node-3",
            Self::Python => "python-3",
            Self::TypeScript => "typescript-3",
        }
    }

    /// Whether a file is source of this language, in any case of its name.
    pub(crate) fn owns(self, path: &RelPath) -> bool {
        let name = path.file_name().to_ascii_lowercase();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match self {
            Self::C => matches!(extension, "c" | "h"),
            Self::Go => extension == "go",
            Self::JavaScript => matches!(extension, "js" | "cjs" | "mjs"),
            Self::Python => matches!(extension, "py" | "pyw"),
            Self::TypeScript => matches!(extension, "ts" | "cts" | "mts"),
        }
    }

    /// Whether its build leaves a file of its own out, by where it lies.
    pub(crate) fn leaves_out(self, path: &RelPath) -> bool {
        let mut folders = path
            .parent()
            .into_iter()
            .flat_map(|folder| folder.split('/'));
        let name = path.file_name();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let identifier = |word: &str| {
            !word.starts_with(|c: char| c.is_ascii_digit())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        match self {
            Self::C => name.ends_with(".c") && !path.as_str().starts_with("src/"),
            Self::Go => name.ends_with("_test.go"),
            Self::JavaScript | Self::TypeScript => {
                // A file of declarations has no code, and nothing loads one.
                let declares = self == Self::TypeScript && stem.ends_with(".d");
                declares
                    || folders
                        .any(|folder| matches!(folder, ".git" | "test" | "tests" | "node_modules"))
            }
            Self::Python => {
                !name.ends_with(".py")
                    || !identifier(stem)
                    || folders.any(|folder| {
                        matches!(folder, "tests" | "test" | "__pycache__") || !identifier(folder)
                    })
            }
        }
    }

    /// Whether a run ended the way a program of this language does that nobody caught: such an end
    /// shows nothing of a value.
    pub(crate) fn crashed(self, observation: &Observation) -> bool {
        let Ending::Exited { code } = observation.ending else {
            return false;
        };
        let said = String::from_utf8_lossy(&observation.stderr);
        match self {
            Self::C => false,
            Self::Go => {
                code == 2
                    && said.contains("goroutine ")
                    && (said.contains("panic: ") || said.contains("fatal error: "))
            }
            Self::JavaScript | Self::TypeScript => code != 0 && said.contains("\nNode.js v"),
            Self::Python => code == 1 && said.contains("Traceback (most recent call last)"),
        }
    }
}
