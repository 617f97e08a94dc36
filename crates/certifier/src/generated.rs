//! Generated files: what the operator says how to make is made again, from what is stated and nothing
//! else, and comes in as what it is if every byte is equal.
//!
//! ```toml
//! schema = "flightproof/generated/1"
//!
//! [[generated]]
//! name = "rates"
//! argv = ["/usr/bin/python3", "tools/rates.py"]
//! tools = ["tools/rates.py"]
//! inputs = ["data/rates.csv"]
//! outputs = ["src/rates.rs"]
//! ```
//!
//! - The rules are the operator's. `tools` is the generator itself, and counts only as the baseline has
//!   it. `inputs` may change: their changed lines are then judged by nobody, see [`Regenerated::named`].
//! - The run sees `tools` and `inputs`, with everything below them, and no other file of the tree. An
//!   output of the candidate is therefore not there to be repeated.
//! - It runs twice, and both runs must come to the same.

use crate::claim::RegeneratedClaim;
use crate::classes::is_read_by_people;
use crate::newer::too_new;
use crate::tree::Tree;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Digest, Refusal, RelPath, canonical_json, counted, escape};
use flightproof_evidence::{Captured, Change, Ending, Generated, GeneratorOrder};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Schema of a file of rules.
pub const GENERATED_SCHEMA: &str = "flightproof/generated/1";
/// Largest file of rules in bytes.
pub const MAX_RULES_BYTES: usize = 64 * 1024;
/// Most rules: each is a session of its own.
const MAX_RULES: usize = 32;
/// Most paths of one kind in a rule.
const MAX_PATHS: usize = 256;
/// Most words of a command.
const MAX_WORDS: usize = 64;
/// Most bytes of a word.
const MAX_WORD: usize = 4096;
/// Where tools of a session lie.
const SESSION_TOOLS: [&str; 3] = ["/usr/", "/bin/", "/toolchain/"];
/// Most differences that are named.
const MAX_NAMED: usize = 20;

/// How some files of the tree are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratedRule {
    /// Unique: `[a-z0-9-]`, 1 to 64 characters.
    pub name: String,
    /// Program and arguments. The program is a tool of the session by its whole path, or one of `tools`.
    pub argv: Vec<String>,
    /// The generator's own files, as the baseline has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<RelPath>,
    /// What it reads beside itself, as the candidate has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<RelPath>,
    /// What it makes: exactly the files at and below these paths.
    pub outputs: Vec<RelPath>,
}

/// Rules that were checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneratedRules(Vec<GeneratedRule>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    schema: String,
    #[serde(default)]
    generated: Vec<GeneratedRule>,
}

impl GeneratedRules {
    /// Reads a file of rules.
    ///
    /// # Errors
    /// `GENERATED_INVALID`, `FORMAT_TOO_NEW`.
    pub fn parse(bytes: &[u8]) -> Result<Self, CertifierError> {
        Self::read(bytes).map_err(|refused| too_new(bytes, GENERATED_SCHEMA, refused))
    }

    fn read(bytes: &[u8]) -> Result<Self, CertifierError> {
        if bytes.len() > MAX_RULES_BYTES {
            return Err(invalid(format_args!("more than {MAX_RULES_BYTES} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| invalid("no UTF-8"))?;
        let file: RulesFile =
            toml::from_str(text).map_err(|e| invalid(escape(e.message(), 300)))?;
        if file.schema != GENERATED_SCHEMA {
            let found = escape(&file.schema, 60);
            return Err(invalid(format_args!(
                "schema \"{found}\", expected \"{GENERATED_SCHEMA}\""
            )));
        }
        Self::new(file.generated)
    }

    /// Rules that fit each other.
    ///
    /// # Errors
    /// `GENERATED_INVALID`.
    pub fn new(rules: Vec<GeneratedRule>) -> Result<Self, CertifierError> {
        if rules.len() > MAX_RULES {
            return Err(invalid(format_args!("more than {MAX_RULES} rules")));
        }
        let mut names = BTreeSet::new();
        for (at, rule) in rules.iter().enumerate() {
            rule.check()?;
            if !names.insert(rule.name.as_str()) {
                return Err(rule.invalid("its name stands twice"));
            }
            let others = rules[..at].iter().flat_map(|other| &other.outputs);
            if let Some((one, other)) = overlapping(&rule.outputs, others) {
                return Err(rule.invalid(format_args!("another rule makes {other} of {one}")));
            }
        }
        Ok(Self(rules))
    }

    /// The rules, in their order.
    pub fn rules(&self) -> &[GeneratedRule] {
        &self.0
    }
}

impl GeneratedRule {
    fn check(&self) -> Result<(), CertifierError> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(plain) {
            let found = escape(&self.name, 80);
            return Err(invalid(format_args!("\"{found}\" is no name of a rule")));
        }
        let kinds = [&self.tools, &self.inputs, &self.outputs];
        if self.outputs.is_empty() || kinds.iter().any(|paths| paths.len() > MAX_PATHS) {
            return Err(self.invalid(format_args!("it makes 1 to {MAX_PATHS} paths")));
        }
        let bad = |word: &String| word.len() > MAX_WORD || word.contains('\0');
        if self.argv.len() > MAX_WORDS || self.argv.iter().any(bad) {
            return Err(self.invalid("its command is too long"));
        }
        if !self
            .argv
            .first()
            .is_some_and(|program| self.can_run(program))
        {
            let what =
                "argv starts with a tool of the session by its whole path, or with one of tools";
            return Err(self.invalid(what));
        }
        for (paths, others) in [
            (&self.tools, &self.inputs),
            (&self.tools, &self.outputs),
            (&self.inputs, &self.outputs),
        ] {
            if let Some((one, other)) = overlapping(paths, others) {
                return Err(self.invalid(format_args!("{one} and {other} overlap")));
            }
        }
        Ok(())
    }

    fn can_run(&self, program: &str) -> bool {
        let plain = |path: &str| path.split('/').all(|p| !matches!(p, "" | "." | ".."));
        let of_session = SESSION_TOOLS.iter().any(|root| program.starts_with(root));
        let of_tree = RelPath::new(program).ok();
        (of_session && plain(program.trim_start_matches('/')))
            || of_tree.is_some_and(|path| self.tools.iter().any(|tool| path.is_within(tool)))
    }

    fn invalid(&self, what: impl std::fmt::Display) -> CertifierError {
        invalid(format_args!("{}: {what}", escape(&self.name, 80)))
    }

    /// Whether something that it makes changed.
    fn applies(&self, captured: &Captured) -> bool {
        captured
            .changes
            .iter()
            .any(|change| self.makes(&change.path))
    }

    fn makes(&self, path: &RelPath) -> bool {
        self.outputs.iter().any(|output| path.is_within(output))
    }

    /// Whether its run may see this file of the tree.
    pub fn sees(&self, path: &RelPath) -> bool {
        let mut seen = self.tools.iter().chain(&self.inputs);
        seen.any(|stated| path.is_within(stated))
    }

    /// What a session is asked to run.
    pub fn order(&self) -> GeneratorOrder {
        GeneratorOrder {
            argv: self.argv.clone(),
            outputs: self.outputs.clone(),
        }
    }

    fn unchanged_tools(&self, captured: &Captured, tree: &Tree<'_>) -> Result<(), CertifierError> {
        let of_tools = |change: &&Change| self.tools.iter().any(|t| change.path.is_within(t));
        if let Some(change) = captured.changes.iter().find(of_tools) {
            return Err(CertifierCode::GeneratorChanged
                .refuse(format_args!("{}: {}", self.name, change.path)));
        }
        let there = |stated: &&RelPath| {
            let mut files = tree.files().filter_map(|(path, _)| RelPath::new(path).ok());
            files.any(|path| path.is_within(stated))
        };
        match self.tools.iter().chain(&self.inputs).find(|p| !there(p)) {
            None => Ok(()),
            Some(missing) => Err(self.invalid(format_args!("there is no {missing} in the tree"))),
        }
    }
}

/// The rules that a change calls for, and what came of them so far.
pub struct Regeneration<'a> {
    rules: Vec<&'a GeneratedRule>,
    captured: &'a Captured,
    tree: &'a Tree<'a>,
    done: Regenerated,
}

/// Changed files that a generator made again, byte for byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Regenerated {
    /// The rules that ran, each with the changed files that it made.
    pub rules: Vec<RegeneratedClaim>,
    inputs: BTreeSet<RelPath>,
}

impl Regenerated {
    /// What a certificate says was made again, to look at its change once more. What steered it is on
    /// the certificate as waivers.
    pub fn claimed(rules: &[RegeneratedClaim]) -> Self {
        Self {
            rules: rules.to_vec(),
            inputs: BTreeSet::new(),
        }
    }

    /// Whether this changed file is one of them.
    pub fn has(&self, path: &RelPath) -> bool {
        self.rules.iter().any(|rule| rule.files.contains(path))
    }

    /// Whether this changed file is an input of a rule that ran. It steers code that no mutant judges,
    /// as data does that is compiled in.
    pub fn named(&self, path: &RelPath) -> bool {
        self.inputs.contains(path)
    }
}

impl<'a> Regeneration<'a> {
    /// Finds the rules that make something of the change.
    ///
    /// # Errors
    /// `GENERATOR_CHANGED`, and `GENERATED_INVALID` for a rule that names what is not in the tree.
    pub fn new(
        rules: &'a GeneratedRules,
        captured: &'a Captured,
        tree: &'a Tree<'a>,
    ) -> Result<Self, CertifierError> {
        let rules: Vec<_> = rules.0.iter().filter(|r| r.applies(captured)).collect();
        rules
            .iter()
            .try_for_each(|rule| rule.unchanged_tools(captured, tree))?;
        Ok(Self {
            rules,
            captured,
            tree,
            done: Regenerated::default(),
        })
    }

    /// The rules to be run, each twice, in a session of its own.
    pub fn rules(&self) -> Vec<&'a GeneratedRule> {
        self.rules.clone()
    }

    /// Holds what two runs of a rule left against the candidate.
    ///
    /// # Errors
    /// `GENERATOR_FAILED`, `GENERATOR_WAVERS`, `REGENERATED_DIFFERS`.
    pub fn judge(&mut self, rule: &GeneratedRule, runs: &[Generated; 2]) -> Result<(), Refusal> {
        let [first, second] = runs;
        for run in runs {
            succeeded(rule, run)?;
        }
        if first.entries != second.entries {
            return Err(CertifierCode::GeneratorWavers.refuse(&rule.name).into());
        }
        let differences = self.differences(rule, first);
        if let Some(one) = differences.first() {
            let refused: CertifierError = CertifierCode::RegeneratedDiffers.refuse(format_args!(
                "{}: {}, such as {one}",
                rule.name,
                counted(differences.len(), "file")
            ));
            let notes = differences.into_iter().take(MAX_NAMED);
            return Err(Refusal::from(refused).with_notes(notes));
        }
        let changes = || self.captured.changes.iter();
        let made = changes().filter(|change| rule.makes(&change.path));
        // What steers documents alone steers no program.
        let documents = made
            .clone()
            .all(|change| is_read_by_people(change, self.tree));
        let digest = canonical_json(rule).map_err(|e| rule.invalid(e))?;
        let claim = RegeneratedClaim {
            rule: rule.name.clone(),
            digest: Digest::of(&digest),
            files: made.map(|change| change.path.clone()).collect(),
        };
        let inputs = changes().filter(|change| !documents && rule.sees(&change.path));
        let inputs: Vec<RelPath> = inputs.map(|change| change.path.clone()).collect();
        self.done.inputs.extend(inputs);
        self.done.rules.push(claim);
        Ok(())
    }

    /// What was made again.
    pub fn finish(self) -> Regenerated {
        self.done
    }

    fn differences(&self, rule: &GeneratedRule, run: &Generated) -> Vec<String> {
        let files = self.tree.files();
        let expected: BTreeMap<&str, &[u8]> = files
            .filter(|(path, _)| RelPath::new(path).is_ok_and(|path| rule.makes(&path)))
            .collect();
        let made: BTreeSet<&str> = run.entries.iter().map(|e| e.path.as_str()).collect();
        let shown = |path: &str, what: &str| format!("{}: {what}", escape(path, 200));
        let missing = expected.keys().filter(|path| !made.contains(**path));
        let mut out: Vec<String> = missing.map(|path| shown(path, "it is not made")).collect();
        out.extend(run.entries.iter().filter_map(|entry| {
            let path = entry.path.as_str();
            let what = match (expected.get(path), &entry.file) {
                (_, None) => "what is made is no file",
                (None, Some(_)) => "it is made, and the commit has none",
                (Some(bytes), Some(file)) if Digest::of(bytes) != file.sha256 => "other bytes",
                (Some(_), Some(file)) if self.has_other_mode(path, file.executable) => {
                    "another permission"
                }
                (Some(_), Some(_)) => return None,
            };
            Some(shown(path, what))
        }));
        out
    }

    fn has_other_mode(&self, path: &str, executable: bool) -> bool {
        let mut changes = self.captured.changes.iter();
        let change = changes.find(|change| change.path.as_str() == path);
        let new = change.and_then(|change| change.new.as_ref());
        new.is_some_and(|new| new.executable != executable)
    }
}

fn succeeded(rule: &GeneratedRule, run: &Generated) -> Result<(), Refusal> {
    if run.ending == (Ending::Exited { code: 0 }) {
        return Ok(());
    }
    let refused: CertifierError =
        CertifierCode::GeneratorFailed.refuse(format_args!("{}: {:?}", rule.name, run.ending));
    let text = String::from_utf8_lossy(&run.tail);
    let lines = text.lines().rev().take(MAX_NAMED).map(|l| escape(l, 200));
    let mut lines: Vec<String> = lines.collect();
    lines.reverse();
    Err(Refusal::from(refused).with_notes(lines))
}

/// Two paths of which one lies at or below the other.
fn overlapping<'a>(
    paths: &'a [RelPath],
    others: impl IntoIterator<Item = &'a RelPath>,
) -> Option<(&'a RelPath, &'a RelPath)> {
    others.into_iter().find_map(|other| {
        let found = paths
            .iter()
            .find(|path| path.is_within(other) || other.is_within(path));
        found.map(|path| (path, other))
    })
}

fn invalid(detail: impl std::fmt::Display) -> CertifierError {
    CertifierCode::GeneratedInvalid.refuse(detail)
}

#[cfg(test)]
mod tests;
