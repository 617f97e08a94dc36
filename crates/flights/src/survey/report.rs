//! What a survey found.

use super::Survey;
use super::checks::Checks;
use crate::show::count;
use flightproof_certifier::mutation::{Kill, Mutant, MutationPlan};
use serde::Serialize;
use std::collections::BTreeMap;

/// What became of one mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// Some check noticed it.
    Noticed {
        /// Which, if it said so.
        by: Option<String>,
        /// How.
        how: Kill,
    },
    /// All checks that come across it passed.
    Survived {
        /// How many those are.
        reaching: usize,
    },
    /// It was never selected: nothing is known.
    NotRun,
}

/// One mutant and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// Its id.
    pub id: String,
    /// The file.
    pub file: String,
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
    /// The function it lies in.
    pub function: String,
    /// `killed`, `timeout`, `survived`, `unreached`, `not-run`, or `unviable`.
    pub status: &'static str,
    /// The test or case that noticed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How it was noticed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<&'static str>,
    /// How many tests or cases come across it, for one that survived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reaching: Option<usize>,
    /// How long all its runs took, microseconds; 0 for one that was not run.
    pub microseconds: u64,
}

/// A test that is of no use here.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// Its target.
    pub target: String,
    /// Its name; `*` for all of a target.
    pub name: String,
    /// Why.
    pub why: String,
}

/// Numbers of mutants: `mutants == killed + timeouts + survived + unreached + not_run + unviable`.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Counts {
    /// Made.
    pub mutants: u64,
    /// Noticed by an answer, a panic, a signal or a limit.
    pub killed: u64,
    /// Noticed since they did not end.
    pub timeouts: u64,
    /// Not noticed by the tests that come across them.
    pub survived: u64,
    /// Not noticed, and no test comes across them.
    pub unreached: u64,
    /// Never selected.
    pub not_run: u64,
    /// Refused by the compiler.
    pub unviable: u64,
}

impl Counts {
    /// Those that nobody noticed.
    pub fn alive(&self) -> u64 {
        self.survived + self.unreached + self.not_run
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let mut parts = vec![
            format!("{} killed", self.killed),
            format!("{} timed out", self.timeouts),
            format!("{} survived", self.survived),
        ];
        for (number, what) in [
            (self.unreached, "reached by nothing"),
            (self.not_run, "not run"),
            (self.unviable, "did not compile"),
        ] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        format!("{}: {}", count(self.mutants, "mutant"), parts.join(", "))
    }
}

/// What a survey found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `flightproof/mutate/1`.
    pub schema: &'static str,
    /// `tests` or `witness`.
    pub oracle: &'static str,
    /// The share of the mutants, as `K/N`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Numbers.
    pub counts: Counts,
    /// Tests or cases that judged.
    pub checks: usize,
    /// Those that could not.
    pub left_out: Vec<LeftOut>,
    /// Files of the directory that stayed out of the session, since they may be secrets.
    pub withheld: Vec<String>,
    /// Lines of code without a mutant, by reason.
    pub unmutated: BTreeMap<&'static str, u64>,
    /// Changed places that no mutant can judge, as a waiver names them; only of a change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<String>,
    /// Every mutant.
    pub mutants: Vec<Tried>,
}

/// What of a change no mutant can judge. Of a whole tree nothing: nobody certifies that.
pub(super) fn unjudged(plan: &MutationPlan, survey: &Survey) -> Vec<String> {
    let places = plan.unjudged.iter();
    let places = places.filter(|_| survey.baseline.is_some());
    places.map(|place| place.id()).collect()
}

impl Report {
    pub(super) fn new(survey: &Survey, plan: &MutationPlan, withheld: &[String]) -> Self {
        let mut report = Self {
            schema: "flightproof/mutate/1",
            oracle: survey.oracle.name(),
            shard: survey.shard.map(|shard| shard.to_string()),
            counts: Counts::default(),
            checks: 0,
            left_out: Vec::new(),
            withheld: withheld.to_vec(),
            unmutated: BTreeMap::new(),
            unjudged: unjudged(plan, survey),
            mutants: Vec::new(),
        };
        report.note_lines(plan);
        report
    }

    fn note_lines(&mut self, plan: &MutationPlan) {
        self.unmutated.clear();
        let silent = plan.unmutated.iter().map(|line| line.why.name());
        silent.for_each(|why| *self.unmutated.entry(why).or_default() += 1);
    }

    pub(super) fn conclude(
        &mut self,
        (survey, plan): (&Survey, &MutationPlan),
        checks: &Checks,
        fates: &BTreeMap<usize, (Fate, u64)>,
    ) {
        self.note_lines(plan);
        self.unjudged = unjudged(plan, survey);
        self.checks = checks.all.len();
        self.left_out.clone_from(&checks.left_out);
        for (number, mutant) in plan.mutants.iter().enumerate().filter(|(_, m)| !m.aside) {
            let (fate, microseconds) = fates.get(&number).unwrap_or(&(Fate::NotRun, 0));
            let tried = tried(mutant, fate, *microseconds);
            let counter = match tried.status {
                "killed" => &mut self.counts.killed,
                "timeout" => &mut self.counts.timeouts,
                "survived" => &mut self.counts.survived,
                "unreached" => &mut self.counts.unreached,
                "unviable" => &mut self.counts.unviable,
                _ => &mut self.counts.not_run,
            };
            *counter += 1;
            self.counts.mutants += 1;
            self.mutants.push(tried);
        }
        self.mutants
            .sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    }

    /// The mutants that nobody noticed.
    pub fn alive(&self) -> impl Iterator<Item = &Tried> {
        let mutants = self.mutants.iter();
        mutants.filter(|m| ["survived", "unreached", "not-run"].contains(&m.status))
    }
}

fn tried(mutant: &Mutant, fate: &Fate, microseconds: u64) -> Tried {
    let (status, by, how, reaching) = match fate {
        _ if !mutant.viable => ("unviable", None, None, None),
        Fate::NotRun => ("not-run", None, None, None),
        Fate::Survived { reaching: 0 } => ("unreached", None, None, Some(0)),
        Fate::Survived { reaching } => ("survived", None, None, Some(*reaching)),
        Fate::Noticed { by, how } => {
            let status = match how {
                Kill::Fuel | Kill::Time => "timeout",
                _ => "killed",
            };
            (status, by.clone(), Some(how.name()), None)
        }
    };
    Tried {
        id: mutant.id.clone(),
        file: mutant.file.to_string(),
        line: mutant.line,
        column: mutant.column,
        operator: mutant.operator.name(),
        original: mutant.original.clone(),
        replacement: mutant.replacement.clone(),
        function: mutant.function.clone(),
        status,
        by,
        how,
        reaching,
        microseconds,
    }
}
