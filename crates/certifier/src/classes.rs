//! What every changed line is: exactly one class for each.

mod kinds;

use crate::fence::Takers;
use crate::generated::Regenerated;
use crate::languages::Language;
use crate::lines::is_rust;
use crate::mutation::{MutationPlan, PageCode, Silence};
use crate::population::lines_of;
use crate::tree::Tree;
use flightproof_core::RelPath;
use flightproof_evidence::Change;
use kinds::{is_compiled_page, is_document, is_out_of_place, is_script, is_shelved};
use serde::Serialize;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// What a changed line is to the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineClass {
    /// Code of the judged program: mutants on it, or of the function it lies in, were noticed.
    Mutated,
    /// It changes no program by itself: a comment, a document, formatting, a lone bracket, a
    /// declaration that acts through judged lines alone.
    Inert,
    /// Code for tests only, and code in documentation: no part of the program, and run all the same.
    Tests,
    /// A file that a rule of the operator's made again in a session, byte for byte.
    Regenerated,
    /// Data that is not compiled into the program.
    Data,
    /// Code that no build of the flight compiled and no case ran: a script, another platform's
    /// branch, a package or file that the program does not hold.
    NotCompiled,
    /// Part of the program, or of how it is built, and no mutant can show what it does.
    Unjudged,
}

impl LineClass {
    /// Every class.
    pub const ALL: [Self; 7] = [
        Self::Mutated,
        Self::Inert,
        Self::Tests,
        Self::Regenerated,
        Self::Data,
        Self::NotCompiled,
        Self::Unjudged,
    ];

    /// What was seen.
    pub const fn seen(self) -> &'static str {
        match self {
            Self::Mutated => {
                "code of the judged program: mutants on it, or of the function it lies in, were noticed"
            }
            Self::Inert => {
                "it changes no program by itself: a comment, a document, formatting, a lone bracket, or a declaration that acts through judged lines alone"
            }
            Self::Tests => {
                "code of tests, examples or documentation: no part of the program, and nothing proves what it shows"
            }
            Self::Regenerated => {
                "a file that a rule of the operator's made again in a session, byte for byte; no mutant judges it"
            }
            Self::Data => "data that is not compiled into the program",
            Self::NotCompiled => "code changed that no build of the flight compiles",
            Self::Unjudged => {
                "part of the program, or of how it is built, and no mutant can show what it does: the witness's owner waived it"
            }
        }
    }

    /// The stable name, as on a certificate.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutated => "mutated",
            Self::Inert => "inert",
            Self::Tests => "tests",
            Self::Regenerated => "regenerated",
            Self::Data => "data",
            Self::NotCompiled => "not-compiled",
            Self::Unjudged => "unjudged",
        }
    }
}

/// One changed line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ClassedLine {
    /// The file.
    pub file: RelPath,
    /// Line of the new text, from 1; 0 for a file that is gone, empty, or has other permissions.
    pub line: u32,
    /// What it is.
    pub class: LineClass,
}

/// A changed file: its changed lines, and its class where all of them have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    pub(crate) path: RelPath,
    lines: BTreeSet<u32>,
    whole: Option<LineClass>,
    /// A Rust file takes it in, as documentation at least.
    taken_in: bool,
}

impl ChangedFile {
    /// The changed files of a commit to a program in Rust, or in another language.
    pub(crate) fn all(
        changes: &[Change],
        tree: &Tree<'_>,
        language: Option<Language>,
    ) -> Vec<Self> {
        let takers = Takers::of(tree);
        let unseen = OnceCell::new();
        let of = |change: &Change| {
            let lines = lines_of(change);
            let rust = is_rust(&change.path);
            let whole = match language {
                Some(language) => language.class(change, tree),
                None if becomes_executable(change) => Some(LineClass::NotCompiled),
                // Line by line; without lines only comments went, or all of it, which is named.
                None if rust && lines.is_empty() => Some(LineClass::Inert),
                None if rust => None,
                None => Some(of_data(change, tree, &takers)),
            };
            // Its code is run as that of a comment is.
            let whole = match whole {
                Some(LineClass::Inert | LineClass::Data)
                    if language.is_none() && !rust && page_code(change, &takers).is_some() =>
                {
                    Some(LineClass::Tests)
                }
                whole => whole,
            };
            Self {
                path: change.path.clone(),
                lines,
                whole,
                taken_in: !rust
                    && takers.take_in(change.path.file_name())
                    && !unseen.get_or_init(|| takers.take_in_unseen()),
            }
        };
        changes.iter().map(of).collect()
    }

    /// The same files, those that were made again as what they are.
    pub(crate) fn regenerated(mut files: Vec<Self>, made: &Regenerated) -> Vec<Self> {
        for file in files.iter_mut().filter(|file| made.has(&file.path)) {
            file.whole = Some(LineClass::Regenerated);
            // Nobody asks what it is compiled into: it is no place of its own.
            file.taken_in = true;
        }
        files
    }

    /// The class that all of its lines have.
    #[cfg(test)]
    pub(crate) fn whole_class(&self) -> Option<LineClass> {
        self.whole
    }

    /// What a build turned out to read and no rule of the text had found: a macro took it in.
    pub(crate) fn is_read_unseen(&self) -> bool {
        self.whole.is_some() && !is_rust(&self.path) && !self.taken_in
    }

    fn classes(&self, found: &Found<'_>) -> Vec<ClassedLine> {
        let line = |line, class| ClassedLine {
            file: self.path.clone(),
            line,
            class,
        };
        let named = found.unjudged.contains_key(&self.path);
        let whole = self.whole.map(|whole| match named {
            true => LineClass::Unjudged,
            false => whole,
        });
        match whole {
            Some(class) if self.lines.is_empty() => vec![line(0, class)],
            Some(class) => self.lines.iter().map(|at| line(*at, class)).collect(),
            None => {
                let code = CodeLines::of(&self.path, found);
                let lines = code.with_tokens(&self.lines);
                lines.iter().map(|at| line(*at, code.class(*at))).collect()
            }
        }
    }
}

/// Every changed line, ordered by file and line.
pub(crate) fn classes(files: &[ChangedFile], plan: &MutationPlan) -> Vec<ClassedLine> {
    let found = Found::of(plan);
    let mut out: Vec<ClassedLine> = files.iter().flat_map(|file| file.classes(&found)).collect();
    out.sort();
    out
}

/// What a mutation plan says of lines, by file.
#[derive(Default)]
struct Found<'a> {
    code: BTreeMap<&'a RelPath, &'a BTreeSet<u32>>,
    why: BTreeMap<&'a RelPath, BTreeMap<u32, Silence>>,
    unjudged: BTreeMap<&'a RelPath, BTreeSet<u32>>,
}

impl<'a> Found<'a> {
    fn of(plan: &'a MutationPlan) -> Self {
        let mut found = Self {
            code: plan.code.iter().collect(),
            ..Self::default()
        };
        for silent in &plan.unmutated {
            let lines = found.why.entry(&silent.file).or_default();
            lines.insert(silent.line, silent.why);
        }
        for place in &plan.unjudged {
            let lines = found.unjudged.entry(&place.file).or_default();
            lines.insert(place.line);
        }
        found
    }
}

/// The lines of one source file, as the mutation plan sees them.
struct CodeLines<'a> {
    code: Option<&'a BTreeSet<u32>>,
    why: Option<&'a BTreeMap<u32, Silence>>,
    unjudged: Option<&'a BTreeSet<u32>>,
}

impl<'a> CodeLines<'a> {
    fn of(path: &RelPath, found: &'a Found<'_>) -> Self {
        Self {
            code: found.code.get(path).copied(),
            why: found.why.get(path),
            unjudged: found.unjudged.get(path),
        }
    }

    /// These lines, and those on which a token changed though the line did not: a text that begins
    /// before them, a block that ends behind.
    fn with_tokens(&self, lines: &BTreeSet<u32>) -> BTreeSet<u32> {
        let code = self.code.into_iter().flatten();
        lines.iter().chain(code).copied().collect()
    }

    fn class(&self, line: u32) -> LineClass {
        let is_in = |lines: Option<&BTreeSet<u32>>| lines.is_some_and(|all| all.contains(&line));
        if is_in(self.unjudged) {
            return LineClass::Unjudged;
        }
        match self.why.and_then(|why| why.get(&line)) {
            Some(Silence::NotCompiled) => LineClass::NotCompiled,
            Some(Silence::WholeFunction) => LineClass::Mutated,
            Some(Silence::TestOnly) => LineClass::Tests,
            Some(Silence::Declaration) => LineClass::Inert,
            Some(_) => LineClass::Unjudged,
            None if is_in(self.code) => LineClass::Mutated,
            None => LineClass::Inert,
        }
    }
}

impl Language {
    /// The class of a changed file, where all of its lines have one.
    fn class(self, change: &Change, tree: &Tree<'_>) -> Option<LineClass> {
        let path = &change.path;
        if becomes_executable(change) {
            return Some(LineClass::NotCompiled);
        }
        if self.owns(path) {
            return match (self.leaves_out(path), &change.new) {
                (true, _) => Some(LineClass::NotCompiled),
                (false, Some(_)) => None,
                (false, None) => Some(LineClass::Unjudged),
            };
        }
        if is_read_by_people(change, tree) {
            return Some(LineClass::Inert);
        }
        let state = change.new.as_ref().or(change.old.as_ref());
        let script = state.is_some_and(|state| is_script(path, state));
        Some(match compiled_with(self, path, tree) {
            Some(_) => LineClass::Unjudged,
            None if script => LineClass::NotCompiled,
            // A document that some file names is data for whatever reads it.
            None => LineClass::Data,
        })
    }
}

/// Why a file that is no source of a language is part of its program, or of how it is built.
pub(crate) fn compiled_with(
    language: Language,
    path: &RelPath,
    tree: &Tree<'_>,
) -> Option<Silence> {
    let name = path.file_name();
    let named = |mark: &str| {
        let names = tree
            .files()
            .filter(|(other, _)| RelPath::new(other).is_ok_and(|other| language.owns(&other)));
        let has = |content: &[u8], text: &str| {
            content.windows(text.len()).any(|at| at == text.as_bytes())
        };
        names.into_iter().any(|(_, content)| has(content, mark))
    };
    match language {
        // A header that is compiled already stands for the one beside it.
        Language::C => (named(name) || name.contains(".h.gch")).then_some(Silence::CompiledData),
        Language::Go if matches!(name, "go.mod" | "go.sum" | "go.work") => Some(Silence::Manifest),
        Language::Go => named("go:embed").then_some(Silence::CompiledData),
        Language::JavaScript | Language::TypeScript => name
            .to_ascii_lowercase()
            .ends_with(".json")
            .then_some(Silence::CompiledData),
        Language::Python => None,
    }
}

/// What the changed code of a document does, where a Rust file takes it in as documentation.
pub(crate) fn page_code(change: &Change, takers: &Takers<'_>) -> Option<PageCode> {
    let new = change.new.as_ref()?;
    let taken = takers.take_in(change.path.file_name());
    taken
        .then(|| PageCode::of(&new.content, &lines_of(change)))
        .flatten()
}

/// The class of a file that is no Rust, as long as no build reads it.
fn of_data(change: &Change, tree: &Tree<'_>, takers: &Takers<'_>) -> LineClass {
    let name = change.path.file_name().to_ascii_lowercase();
    let state = change.new.as_ref().or(change.old.as_ref());
    match name.as_str() {
        // Keys that decide anything are places of their own.
        "cargo.toml" => LineClass::Inert,
        // Locked packages have a rule of their own.
        "cargo.lock" => LineClass::Data,
        _ if state.is_some_and(|state| is_script(&change.path, state)) => LineClass::NotCompiled,
        name if is_document(name)
            && (is_out_of_place(&change.path, tree) || is_compiled_page(change, tree)) =>
        {
            LineClass::NotCompiled
        }
        name if is_document(name)
            && is_shelved(&change.path)
            && !takers.compile_in(change.path.file_name()) =>
        {
            LineClass::Inert
        }
        _ => LineClass::Data,
    }
}

/// A document that nothing runs, and that no file beside documents names: any language may take in
/// what it names.
pub(crate) fn is_read_by_people(change: &Change, tree: &Tree<'_>) -> bool {
    let path = &change.path;
    let states = [&change.old, &change.new].into_iter().flatten();
    let name = path.file_name().as_bytes();
    let mut others = tree.files().filter(|(other, _)| {
        let file = other.rsplit('/').next().unwrap_or(other);
        !is_document(&file.to_ascii_lowercase())
    });
    is_document(&path.file_name().to_ascii_lowercase())
        && !states.clone().any(|state| is_script(path, state))
        && !is_compiled_page(change, tree)
        && !others.any(|(_, content)| content.windows(name.len()).any(|at| at == name))
}

fn becomes_executable(change: &Change) -> bool {
    let is = change.new.as_ref().is_some_and(|new| new.executable);
    is && !change.old.as_ref().is_some_and(|old| old.executable)
}

#[cfg(test)]
mod tests;
