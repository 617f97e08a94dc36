//! A report: one HTML file about the flights of a run, complete in itself.
//!
//! It loads nothing and runs nothing: its policy allows one style sheet, by its hash. The same
//! flights give the same bytes.

mod certificate;
mod mutants;
mod page;
mod session;
mod source;
mod text;

use crate::show::{StageTime, count};
use crate::timeline::Step;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::certification::Account;
use flightproof_core::{Decision, Digest, Verdict};
use flightproof_evidence::{Attestation, Change};

pub use mutants::{MAX_MUTATION_REPORT, MUTATION_REPORT, Survivor, Written};
pub use mutants::{read_mutants, survivor_lines, write_mutants};
pub use page::page;

/// Everything a report is about.
pub struct Report {
    /// The release that wrote it.
    pub version: String,
    /// SHA-256 of the program that wrote it.
    pub program: Option<Digest>,
    /// The flights, in their order.
    pub flights: Vec<Flight>,
}

/// How a flight counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Not as its plan expects, or it did not come to an end.
    Failed,
    /// As its plan expects.
    Expected,
    /// Flown without a plan's word about it, and let in.
    Admitted,
    /// Flown without a plan's word about it, and certified.
    Held,
    /// Flown without a plan's word about it, and refused.
    Refused,
    /// Flown without a plan's word about it, and ended by something that says nothing about it.
    Stopped,
}

/// Each with its word for people.
const OUTCOMES: [(Outcome, &str); 6] = [
    (Outcome::Failed, "failed"),
    (Outcome::Expected, "as expected"),
    (Outcome::Admitted, "admitted"),
    (Outcome::Held, "held"),
    (Outcome::Refused, "refused"),
    (Outcome::Stopped, "stopped"),
];

impl Report {
    /// How the flights ended, in a few words.
    pub fn told(&self) -> String {
        let parts = OUTCOMES.map(|(outcome, word)| (self.ended(outcome), word));
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let flights = count(self.flights.len(), "flight");
        format!("{flights}: {}", parts.join(", "))
    }

    /// The same as numbers, each by its word.
    pub fn counts(&self) -> serde_json::Value {
        let counts = OUTCOMES.map(|(outcome, word)| (word, self.ended(outcome)));
        let named = |word: &str| {
            if word == "as expected" {
                "asExpected".to_owned()
            } else {
                word.to_owned()
            }
        };
        let counts = counts.map(|(word, count)| (named(word), count.into()));
        let mut counts = serde_json::Map::from_iter(counts);
        counts.insert("flights".to_owned(), self.flights.len().into());
        counts.into()
    }

    fn ended(&self, wanted: Outcome) -> usize {
        let ended = self.flights.iter().filter(|f| f.outcome() == wanted);
        ended.count()
    }
}

/// One flight.
#[derive(Default)]
pub struct Flight {
    /// Its name.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// What its plan expects: `held`, or a code.
    pub expected: Option<String>,
    /// How it was looked at: `replayed`, `flown`.
    pub how: &'static str,
    /// How it ended.
    pub verdict: Option<Verdict>,
    /// How it ended where it was flown for real, beside a recording.
    pub beside: Option<Verdict>,
    /// Why it counts as failed.
    pub failure: Option<Failed>,
    /// The stages it finished.
    pub stages: Vec<StageTime>,
    /// The stage it ended at, if it did not come through.
    pub stopped: Option<String>,
    /// What crossed the boundary.
    pub steps: Vec<Step>,
    /// The session.
    pub attestation: Option<Attestation>,
    /// What changed.
    pub changes: Vec<Change>,
    /// What mutation made of the change.
    pub account: Option<Account>,
    /// What the report beside a flown one says of its mutants.
    pub written: Option<Written>,
    /// What is certified.
    pub statement: Option<Box<Statement>>,
    /// What is known of a signature.
    pub signature: Signature,
    /// Digests to copy, by name.
    pub digests: Vec<(String, String)>,
}

impl Flight {
    /// How it counts.
    pub fn outcome(&self) -> Outcome {
        match (&self.failure, &self.expected, &self.verdict) {
            (Some(_), ..) => Outcome::Failed,
            (None, Some(_), _) => Outcome::Expected,
            (None, None, None) => Outcome::Held,
            (None, None, Some(verdict)) => match verdict.verdict {
                _ if verdict.stopped => Outcome::Stopped,
                _ if verdict.code.is_some() => Outcome::Refused,
                Decision::Refused => Outcome::Refused,
                Decision::Admitted => Outcome::Admitted,
                Decision::Held | Decision::Accepted => Outcome::Held,
            },
        }
    }
}

/// Why a flight counts as failed.
pub struct Failed {
    /// The code.
    pub code: String,
    /// The stage.
    pub stage: String,
    /// What was found.
    pub detail: String,
    /// What to do.
    pub hint: String,
    /// The command that flies it again.
    pub again: String,
}

/// What is known of the signature of a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Signature {
    /// None: a replay signs nothing.
    #[default]
    Unsigned,
    /// By a key that was given.
    By(String),
    /// There is one, and it was not checked.
    Unchecked,
}
