//! Toolchains as data: how each says who it is, builds offline, and what it says of errors. A profile
//! is ours; nothing of a candidate chooses or changes one.

mod workshop;

pub use workshop::ProfileWorkshop;

use crate::{SessionCode, SessionError};
use flightproof_core::{RelPath, escape};
use flightproof_evidence::Diagnostic;
use flightproof_frame::protocol::layout;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Schema of a profile.
const SCHEMA: &str = "flightproof/toolchain/1";
/// Every profile, by name.
const PROFILES: [(&str, &str); 6] = [
    ("c", include_str!("../../profiles/c.toml")),
    ("go", include_str!("../../profiles/go.toml")),
    ("node", include_str!("../../profiles/node.toml")),
    ("python", include_str!("../../profiles/python.toml")),
    ("rust", include_str!("../../profiles/rust.toml")),
    ("typescript", include_str!("../../profiles/typescript.toml")),
];
/// Programs of ours that a build uses.
const HELPERS: [(&str, &str); 3] = [
    ("bundle.py", include_str!("../../profiles/bundle.py")),
    ("freeze.py", include_str!("../../profiles/freeze.py")),
    ("launch.c", include_str!("../../profiles/launch.c")),
];
/// Most diagnostics of one build.
const MAX_DIAGNOSTICS: usize = 400;
/// Longest message kept, bytes.
const MAX_MESSAGE: usize = 400;

/// One toolchain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    schema: String,
    /// Its name in witnesses.
    pub name: String,
    /// One sentence: what is built, and how.
    pub about: String,
    /// Where the program `{bin}` may begin: a file, or a folder with a slash at the end. Nothing
    /// is said of Rust, where cargo knows.
    #[serde(default)]
    entry: Vec<String>,
    pub(crate) probe: Probe,
    env: BTreeMap<String, String>,
    #[serde(default)]
    build: Vec<Step>,
    #[serde(default)]
    helper: Vec<Helper>,
    #[serde(default)]
    sources: Option<Sources>,
    #[serde(default)]
    dependencies: Dependencies,
    #[serde(default)]
    diagnostics: Option<Pattern>,
}

/// How a toolchain says who it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Probe {
    argv: Vec<String>,
    /// What its first line starts with.
    starts: String,
    /// The oldest version that is used.
    oldest: String,
    /// How to get it.
    fix: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    argv: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Helper {
    name: String,
}

/// Files that a build names one by one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    below: String,
    ends: String,
}

/// Files that would have to be fetched for, or run, before anything is built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dependencies {
    files: Vec<String>,
}

/// What a line about an error looks like.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    pattern: String,
}

impl Profile {
    /// The profile of a name.
    ///
    /// # Errors
    /// `PROFILE_UNKNOWN`, naming the known ones.
    pub fn named(name: &str) -> Result<Self, SessionError> {
        let Some((_, text)) = PROFILES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = PROFILES.iter().map(|(known, _)| *known).collect();
            return Err(SessionCode::ProfileUnknown.refuse(format_args!(
                "{}; known are {}",
                escape(name, 40),
                known.join(", ")
            )));
        };
        let profile: Self =
            toml::from_str(text).map_err(|e| SessionCode::ProfileUnknown.refuse(e))?;
        match profile.schema == SCHEMA {
            true => Ok(profile),
            false => Err(SessionCode::ProfileUnknown.refuse(profile.schema)),
        }
    }

    /// Holds a tree against what the profile can build without fetching or running anything first.
    ///
    /// # Errors
    /// `DEPENDENCY_UNSUPPORTED`, naming the file.
    pub fn check<'a>(
        &self,
        mut paths: impl Iterator<Item = &'a RelPath>,
    ) -> Result<(), SessionError> {
        let refused = |path: &&RelPath| {
            let whole = path.as_str();
            let named = |name: &String| whole == name || whole.ends_with(&format!("/{name}"));
            self.dependencies.files.iter().any(named)
        };
        match paths.find(refused) {
            None => Ok(()),
            Some(path) => Err(SessionCode::DependencyUnsupported.refuse(format_args!(
                "{}: {}",
                self.name,
                escape(path.as_str(), 200)
            ))),
        }
    }

    /// Where a program of this name may begin, if nothing of it is in the tree.
    pub fn lacks<'a>(
        &self,
        bin: &str,
        mut paths: impl Iterator<Item = &'a RelPath>,
    ) -> Option<Vec<String>> {
        let entry = self
            .entry
            .iter()
            .map(|place| fill(place, &[("{bin}", bin)]));
        let entry: Vec<String> = entry.collect();
        let begins = |path: &RelPath| {
            let path = path.as_str();
            let here = |place: &String| match place.ends_with('/') {
                true => path.starts_with(place.as_str()),
                false => path == place,
            };
            entry.iter().any(here)
        };
        (!entry.is_empty() && !paths.any(begins)).then_some(entry)
    }

    /// The environment of every tool: the same in every session, nothing of the host.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let filled = |(name, value): (&String, &String)| (name.clone(), fill(value, &[]));
        self.env.iter().map(filled).collect()
    }

    /// The program and arguments that say the version.
    pub(crate) fn question(&self) -> (String, Vec<String>) {
        let mut argv = self.probe.argv.iter().map(|word| fill(word, &[]));
        (argv.next().unwrap_or_default(), argv.collect())
    }

    /// The first line of what a toolchain said, if it is the one that is meant and not too old.
    ///
    /// # Errors
    /// `TOOLCHAIN_INVALID`, with how to get one.
    pub(crate) fn version(&self, said: &[u8]) -> Result<String, SessionError> {
        let text = String::from_utf8_lossy(said);
        let line = text.lines().next().unwrap_or_default();
        let refuse = |what: &str| {
            Err(SessionCode::ToolchainInvalid.refuse(format_args!(
                "{}: {what}: {}; {}",
                self.name,
                escape(line, 120),
                self.probe.fix
            )))
        };
        if !line.starts_with(&self.probe.starts) {
            return refuse("it does not say its version inside the session");
        }
        let rest = line.trim_start_matches(&self.probe.starts);
        // The last word with a point in its number: a package's version may stand before the program's,
        // and a date or a platform after it.
        let mut versions = rest.split_whitespace().filter_map(numbers);
        let found = versions.rfind(|parts| parts.len() > 1);
        match (found, numbers(&self.probe.oldest)) {
            (Some(found), Some(oldest)) if found >= oldest => Ok(escape(line, 100)),
            _ => refuse(&format!("at least {} is needed", self.probe.oldest)),
        }
    }

    /// Each step of a build: program and arguments.
    fn steps(&self, bin: &str, program: &str, paths: &[&RelPath]) -> Vec<(String, Vec<String>)> {
        let places = [("{bin}", bin), ("{program}", program)];
        let sources: Vec<String> = self.sources.iter().flat_map(|s| s.of(paths)).collect();
        let expand = |word: &String| match word.as_str() {
            "{sources}" => sources.clone(),
            word => vec![fill(word, &places)],
        };
        let steps = self.build.iter().map(|step| {
            let mut argv = step.argv.iter().flat_map(expand);
            (argv.next().unwrap_or_default(), argv.collect())
        });
        steps.collect()
    }

    /// The errors in what a build said.
    fn diagnostics(&self, said: &[u8]) -> Vec<Diagnostic> {
        let Some(Pattern { pattern }) = &self.diagnostics else {
            return Vec::new();
        };
        let text = String::from_utf8_lossy(said);
        let mut found: Vec<Diagnostic> = Vec::new();
        for line in text.lines() {
            let Some(parts) = taken_apart(pattern, line) else {
                continue;
            };
            let part = |name: &str| parts.get(name).copied().unwrap_or_default();
            let root = format!("{}/", layout::SOURCE);
            let file = part("file").trim_start_matches("./");
            let file = file.strip_prefix(&root).unwrap_or(file);
            let (Ok(path), Ok(number)) = (RelPath::new(file), part("line").parse()) else {
                continue;
            };
            let diagnostic = Diagnostic {
                level: "error".to_owned(),
                code: None,
                message: escape(part("message"), MAX_MESSAGE),
                file: path.as_str().to_owned(),
                line: number,
                spans: Vec::new(),
            };
            if found.len() < MAX_DIAGNOSTICS && !found.contains(&diagnostic) {
                found.push(diagnostic);
            }
        }
        found
    }
}

impl Sources {
    fn of(&self, paths: &[&RelPath]) -> Vec<String> {
        let names = paths.iter().map(|path| path.as_str());
        names
            .filter(|path| path.starts_with(&self.below) && path.ends_with(&self.ends))
            .map(|path| format!("{}/{path}", layout::SOURCE))
            .collect()
    }
}

/// A word with its places filled in.
fn fill(word: &str, more: &[(&str, &str)]) -> String {
    let places = [
        ("{toolchain}", layout::TOOLCHAIN),
        ("{source}", layout::SOURCE),
        ("{extra}", layout::EXTRA),
        ("{target}", layout::TARGET),
        ("{home}", layout::CARGO_HOME),
        ("{tmp}", layout::TMP),
    ];
    places
        .iter()
        .chain(more)
        .fold(word.to_owned(), |word, (name, place)| {
            word.replace(name, place)
        })
}

/// The numbers of a version such as `12.2.0`, also of `go1.19.8`; `None` for a word without.
fn numbers(word: &str) -> Option<Vec<u64>> {
    let digits = word.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(digits.len());
    let version = digits.get(..end)?.trim_end_matches('.');
    let parts: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    parts.filter(|parts| !parts.is_empty())
}

/// The parts of a line that a pattern such as `{file}:{line}: error: {message}` names.
fn taken_apart<'p, 'l>(pattern: &'p str, line: &'l str) -> Option<BTreeMap<&'p str, &'l str>> {
    let mut parts = BTreeMap::new();
    let (mut pattern, mut line) = (pattern, line);
    while let Some(rest) = pattern.strip_prefix('{') {
        let (name, after) = rest.split_once('}')?;
        let literal = after.split('{').next()?;
        let (value, left) = match literal {
            "" => (line, ""),
            literal => line.split_once(literal)?,
        };
        parts.insert(name, value);
        pattern = after.get(literal.len()..)?;
        line = left;
    }
    Some(parts)
}

#[cfg(test)]
mod tests;
