//! The release gate: signed evidence about exactly this tree and this program, held against the
//! policy of the last accepted one. What nobody measured is missing; it never counts as met.

mod evidence;
mod policy;

pub use evidence::{EVIDENCE_TYPE, Evidence, FlightEvidence, FuzzSummary, acceptance, last_policy};
pub use policy::{FlightRule, FuzzRule, GatePolicy};

use flightproof_core::{CommitId, Digest};
use serde::Serialize;
use std::collections::BTreeMap;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// What stands at the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Snapshot id of its tree.
    pub tree: Digest,
    /// Its commit.
    pub commit: CommitId,
    /// SHA-256 of the program.
    pub program: Digest,
    /// Digest of each plan with every file it names, by name, as they are now.
    pub plans: BTreeMap<String, Digest>,
    /// Seconds since 1970.
    pub now: u64,
}

/// One demand of the policy, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What is demanded.
    pub what: String,
    /// How much of it.
    pub wanted: String,
    /// What the evidence shows.
    pub found: String,
    /// How that compares.
    pub state: State,
}

/// How a demand compares with what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is met.
    Met,
    /// It was measured, and is not met.
    Missing,
    /// Nobody measured it.
    NotMeasured,
}

/// Holds evidence, whose signatures were checked, against a policy. Evidence about another tree,
/// another program or another time is not evidence here, and says so in its row.
pub fn judge(
    policy: &GatePolicy,
    candidate: &Candidate,
    evidence: &[Evidence],
    fuzz: Option<&FuzzSummary>,
) -> Vec<Row> {
    let ours: Vec<&Evidence> = evidence
        .iter()
        .filter(|e| counts(policy, candidate, e))
        .collect();
    let mut rows = vec![bound(evidence.len(), ours.len())];
    for rule in &policy.flights {
        for mode in &rule.modes {
            rows.push(flight(rule, mode, candidate, &ours));
        }
    }
    rows.push(hostile(policy, candidate, &ours));
    for (name, least) in &policy.floors {
        rows.push(floor(name, *least, &ours));
    }
    if let Some(rule) = &policy.fuzz {
        rows.extend(fuzzing(rule, candidate, policy.fresh_days, fuzz));
    }
    rows
}

fn counts(policy: &GatePolicy, candidate: &Candidate, e: &Evidence) -> bool {
    let age = candidate.now.checked_sub(e.at);
    e.tree == candidate.tree
        && e.program == candidate.program
        && age.is_some_and(|age| age <= policy.fresh_days * DAY)
}

fn bound(given: usize, ours: usize) -> Row {
    Row {
        what: "evidence about this tree and program, fresh".to_owned(),
        wanted: "at least 1".to_owned(),
        found: format!("{ours} of {given}"),
        state: if ours > 0 {
            State::Met
        } else {
            State::NotMeasured
        },
    }
}

/// The flights of a mode, by name. One that failed anywhere counts as failed.
fn flown<'a>(mode: &str, ours: &[&'a Evidence]) -> BTreeMap<&'a str, (&'a FlightEvidence, bool)> {
    let mut found: BTreeMap<&str, (&FlightEvidence, bool)> = BTreeMap::new();
    for flight in ours
        .iter()
        .filter(|e| e.mode == mode)
        .flat_map(|e| &e.flights)
    {
        let entry = found.entry(&flight.name).or_insert((flight, true));
        entry.1 &= flight.as_expected;
    }
    found
}

fn flight(rule: &FlightRule, mode: &str, candidate: &Candidate, ours: &[&Evidence]) -> Row {
    let found = flown(mode, ours);
    let plan = candidate.plans.get(&rule.name);
    let (told, state) = match (found.get(rule.name.as_str()), plan) {
        (_, None) => ("no such plan in the tree", State::Missing),
        (None, _) => ("NOT MEASURED", State::NotMeasured),
        (Some((flight, _)), Some(plan)) if flight.plan != *plan => {
            ("flown with another plan or witness", State::NotMeasured)
        }
        (Some((_, false)), _) => ("ended otherwise", State::Missing),
        (Some((_, true)), _) => ("as its plan expects", State::Met),
    };
    Row {
        what: format!("flight {} {mode}", rule.name),
        wanted: "as its plan expects".to_owned(),
        found: told.to_owned(),
        state,
    }
}

/// Different hostile flights that were refused as their plans expect, in any mode.
fn hostile(policy: &GatePolicy, candidate: &Candidate, ours: &[&Evidence]) -> Row {
    let mut held: BTreeMap<&str, bool> = BTreeMap::new();
    for flight in ours.iter().flat_map(|e| &e.flights).filter(|f| f.hostile) {
        let current = candidate.plans.get(&flight.name) == Some(&flight.plan);
        if current {
            *held.entry(&flight.name).or_insert(true) &= flight.as_expected;
        }
    }
    let refused = held.values().filter(|refused| **refused).count() as u64;
    Row {
        what: "hostile flights refused".to_owned(),
        wanted: format!("at least {}", policy.hostile_min),
        found: refused.to_string(),
        state: match refused {
            _ if refused >= policy.hostile_min => State::Met,
            0 => State::NotMeasured,
            _ => State::Missing,
        },
    }
}

/// The lowest figure of that name counts.
fn floor(name: &str, least: u64, ours: &[&Evidence]) -> Row {
    let lowest = ours.iter().filter_map(|e| e.figures.get(name)).min();
    Row {
        what: format!("figure {name}"),
        wanted: format!("at least {least}"),
        found: lowest.map_or_else(|| "NOT MEASURED".to_owned(), ToString::to_string),
        state: match lowest {
            None => State::NotMeasured,
            Some(figure) if *figure >= least => State::Met,
            Some(_) => State::Missing,
        },
    }
}

fn fuzzing(
    rule: &FuzzRule,
    candidate: &Candidate,
    fresh_days: u64,
    fuzz: Option<&FuzzSummary>,
) -> Vec<Row> {
    let row = |what: &str, wanted: String, found: String, met: Option<bool>| Row {
        what: format!("fuzzing {what}"),
        wanted,
        found,
        state: match met {
            Some(true) => State::Met,
            Some(false) => State::Missing,
            None => State::NotMeasured,
        },
    };
    let none = || "NOT MEASURED".to_owned();
    let Some(fuzz) = fuzz else {
        return vec![row("campaign", "a signed summary".to_owned(), none(), None)];
    };
    let since = fuzz.commit == candidate.commit || rule.since == Some(fuzz.commit);
    let age = candidate.now.checked_sub(fuzz.ended);
    let fresh = age.is_some_and(|age| age <= fresh_days * DAY);
    if !since || !fresh || fuzz.canary != "found" {
        let told = format!(
            "of {}, {}",
            fuzz.commit,
            if fresh { "fresh" } else { "stale" }
        );
        return vec![row(
            "campaign",
            "of this commit, or the stated one".to_owned(),
            told,
            None,
        )];
    }
    let seconds: u64 = fuzz.targets.iter().map(|t| t.seconds).sum();
    let findings: usize = fuzz.targets.iter().map(|t| t.findings.len()).sum();
    vec![
        row(
            "targets",
            format!("at least {}", rule.targets_min),
            fuzz.targets.len().to_string(),
            Some(fuzz.targets.len() as u64 >= rule.targets_min),
        ),
        row(
            "seconds",
            format!("at least {}", rule.seconds_min),
            seconds.to_string(),
            Some(seconds >= rule.seconds_min),
        ),
        row(
            "findings",
            "0".to_owned(),
            findings.to_string(),
            Some(findings == 0),
        ),
    ]
}

/// Whether every demand is met.
pub fn accepted(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.state == State::Met)
}

#[cfg(test)]
mod tests;
