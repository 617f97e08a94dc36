//! What the machine knows of each mutant and each changed line, for people.

use super::Certification;
use crate::classes::{ClassedLine, LineClass};
use crate::mutation::Fate;
use flightproof_core::RelPath;
use serde::Serialize;
use std::collections::BTreeMap;

/// Every mutant, every changed line of code that carries none, and the class of every changed line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The mutants, ordered by file and place.
    pub mutants: Vec<MutantAccount>,
    /// Changed lines of code without a mutant, with the reason, ordered.
    pub silent: Vec<SilentLine>,
    /// Every changed line with its class, ordered.
    pub lines: Vec<ClassedLine>,
}

impl Account {
    /// The class of a line, if it changed.
    pub fn class(&self, file: &str, line: u32) -> Option<LineClass> {
        let mut lines = self.lines.iter();
        let found = lines.find(|l| l.line == line && l.file.as_str() == file);
        found.map(|line| line.class)
    }
}

/// One mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MutantAccount {
    /// Its id.
    pub id: String,
    /// The file.
    pub file: RelPath,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// Its family.
    pub operator: &'static str,
    /// What stood there.
    pub original: String,
    /// What stands there instead.
    pub replacement: String,
    /// What became of it.
    pub fate: MutantFate,
}

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "class")]
pub enum MutantFate {
    /// Some case noticed it, in this way.
    Killed(&'static str),
    /// No case noticed it.
    Survived,
    /// No case noticed it, and the witness's owner accepts that.
    Waived,
    /// No case noticed it, and it is the same program.
    Equivalent,
    /// The compiler refused it.
    Unviable,
    /// It was not tried, or not to the end.
    Untried,
}

/// A changed line of code without a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SilentLine {
    /// The file.
    pub file: RelPath,
    /// Line, from 1.
    pub line: u32,
    /// Why it carries none.
    pub why: &'static str,
    /// Whether the witness's owner waived it.
    pub waived: bool,
}

impl Certification<'_> {
    /// What is known so far.
    pub fn account(&self) -> Account {
        let waived = |id: &str, source| self.waivers.iter().any(|w| w.accepts(id, source));
        let mutants = self.plan.mutants.iter().enumerate().map(|(index, mutant)| {
            let fate = match self.fates.get(&index) {
                _ if !mutant.viable => MutantFate::Unviable,
                Some(Fate::Killed(kill)) => MutantFate::Killed(kill.name()),
                Some(Fate::Survived) if waived(&mutant.id, mutant.source) => MutantFate::Waived,
                Some(Fate::Survived) if self.comparison.equivalent.contains(&index) => {
                    MutantFate::Equivalent
                }
                Some(Fate::Survived) => MutantFate::Survived,
                Some(Fate::NotLoaded | Fate::Starved | Fate::NotRun) | None => MutantFate::Untried,
            };
            MutantAccount {
                id: mutant.id.clone(),
                file: mutant.file.clone(),
                line: mutant.line,
                column: mutant.column,
                operator: mutant.operator.name(),
                original: mutant.original.clone(),
                replacement: mutant.replacement.clone(),
                fate,
            }
        });
        let mut silent: BTreeMap<(RelPath, u32), SilentLine> = BTreeMap::new();
        for line in &self.plan.unmutated {
            let place = (line.file.clone(), line.line);
            silent.insert(
                place,
                silent_line(&line.file, line.line, line.why.name(), false),
            );
        }
        for place in &self.plan.unjudged {
            let found = silent_line(
                &place.file,
                place.line,
                place.why.name(),
                waived(&place.id(), place.source),
            );
            silent.insert((place.file.clone(), place.line), found);
        }
        Account {
            mutants: mutants.collect(),
            silent: silent.into_values().collect(),
            lines: self.lines(),
        }
    }
}

fn silent_line(file: &RelPath, line: u32, why: &'static str, waived: bool) -> SilentLine {
    SilentLine {
        file: file.clone(),
        line,
        why,
        waived,
    }
}
