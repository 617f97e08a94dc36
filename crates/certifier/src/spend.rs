//! What an agent's attempts have cost, as a certificate says it.

use crate::certificate::Statement;
use crate::{CertifierCode, CertifierError};
use flightproof_core::MicroUsd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `spend`: does not claim what the provider bills. Only on certificates of commits that an agent
/// made under this program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpendClaim {
    /// Every attempt up to this one, in order.
    pub runs: Vec<RunSpend>,
}

/// What one attempt has cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSpend {
    /// Who says the amount.
    pub metering: Metering,
    /// What was held before it was started, micro-dollars.
    pub reserved: MicroUsd,
    /// What was booked, micro-dollars; absent where nobody knows and all of it stays held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<MicroUsd>,
    /// Turns as reported, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Tokens as reported, by model; empty where the program does not say.
    pub models: BTreeMap<String, TokenCounts>,
}

/// Who says what an attempt has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metering {
    /// The program, by its own estimate.
    Estimated,
    /// Nobody: the whole hold was booked.
    Unmetered,
}

/// Tokens of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenCounts {
    /// Read as input.
    pub input: u64,
    /// Written as output.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Written to the provider's cache.
    pub cache_written: u64,
}

/// Holds the claim against the attempts of the request and against itself.
///
/// # Errors
/// `INCONSISTENT`.
pub(crate) fn check(statement: &Statement) -> Result<(), CertifierError> {
    let inputs = &statement.predicate.inputs;
    let Some(spend) = &inputs.spend else {
        return Ok(());
    };
    let refuse = |what: &str| Err(CertifierCode::Inconsistent.refuse(what));
    if spend.runs.len() as u64 != inputs.request.attempt {
        return refuse("paid runs and the attempts of the request");
    }
    if !spend.runs.iter().all(RunSpend::adds_up) {
        return refuse("an unmetered run that is booked at less or more than its hold");
    }
    // A commit comes out of a run only once its money is booked, and within its hold.
    match spend.runs.last() {
        Some(run) if run.settled.is_some_and(|settled| settled <= run.reserved) => Ok(()),
        _ => refuse("the run of this commit and a settlement within its hold"),
    }
}

impl RunSpend {
    fn adds_up(&self) -> bool {
        match (self.metering, self.settled) {
            (Metering::Unmetered, Some(settled)) => settled == self.reserved,
            (Metering::Unmetered, None) | (Metering::Estimated, _) => true,
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let said = match self.metering {
            Metering::Estimated => "estimated",
            Metering::Unmetered => "unmetered, the whole hold",
        };
        let settled = match self.settled {
            Some(amount) => format!("{amount} USD ({said})"),
            None => "unknown".to_owned(),
        };
        let turns = self.turns.map_or(String::new(), |n| format!(", {n} turns"));
        format!("{settled} of {} USD held{turns}", self.reserved)
    }
}
