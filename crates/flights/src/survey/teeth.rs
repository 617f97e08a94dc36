//! Which case of a witness bites: every mutant against every case that comes across it.

use super::bench::{Bench, Build};
use super::checks::{Checks, Noticed};
use super::inputs::{self, ProposedInput};
use super::{LeftOut, Oracle};
use crate::show::Progress;
use flightproof_certifier::judge;
use flightproof_certifier::mutation::Mutant;
use flightproof_core::Refusal;
use flightproof_evidence::Observation;
use serde::Serialize;
use std::collections::BTreeSet;

/// Most mutants that are tried against every case: what a few minutes can hold.
pub(super) const MAX_MUTANTS: usize = 400;
/// How often each case is run on the unchanged program, beside the first time.
const REPEATS: usize = 3;

/// One case, and what it notices.
#[derive(Debug, Clone, Serialize)]
pub struct Tooth {
    /// The case.
    pub case: String,
    /// Mutants it notices.
    pub kills: u64,
    /// Those of them that no other case notices.
    pub alone: u64,
}

/// A mutant that no case notices: a case whose answer depends on it is missing.
#[derive(Debug, Clone, Serialize)]
pub struct Proposal {
    /// The mutant.
    pub mutant: String,
    /// The function it lies in.
    pub function: String,
    /// Whether any case comes there.
    pub reached: bool,
    /// An input of the witness's grammar that the mutant answers otherwise, if one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<ProposedInput>,
}

/// What the cases of a witness are worth on one tree.
#[derive(Debug, Clone, Serialize)]
pub struct Teeth {
    /// Cases whose answer is not the expected one here.
    pub missed: Vec<LeftOut>,
    /// Cases that do not answer the same way each time.
    pub flaky: Vec<String>,
    /// Mutants of the tree.
    pub mutants: u64,
    /// Those that were tried.
    pub tried: u64,
    /// What each case notices.
    pub cases: Vec<Tooth>,
    /// What no case notices.
    pub proposals: Vec<Proposal>,
    /// Changed places that no mutant can judge, as a waiver names them; only of a change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<String>,
}

impl Teeth {
    /// Cases that notice nothing which another does not notice too.
    pub fn toothless(&self) -> Vec<&str> {
        let dull = self.cases.iter().filter(|tooth| tooth.alone == 0);
        dull.map(|tooth| tooth.case.as_str()).collect()
    }
}

pub(super) fn measure(
    mut bench: Bench,
    build: &Build,
    checks: &Checks,
    oracle: &Oracle,
    whole: usize,
    progress: &Progress,
) -> Result<Teeth, Refusal> {
    let flaky = flaky(&mut bench, checks, oracle)?;
    let steady: Vec<usize> = (0..checks.all.len())
        .filter(|at| {
            checks
                .all
                .get(*at)
                .is_some_and(|c| !flaky.contains(&checks.label(c)))
        })
        .collect();
    let mut teeth: Vec<(u64, u64)> = vec![(0, 0); checks.all.len()];
    let mut proposals = Vec::new();
    let mutants: Vec<&Mutant> = build.plan.mutants.iter().filter(|m| m.viable).collect();
    let mut ticker = progress.ticker();
    for (done, mutant) in mutants.iter().enumerate() {
        let mut noticing = Vec::new();
        let mut reached = false;
        for at in &steady {
            let Some(check) = checks.all.get(*at).filter(|c| c.reaches(mutant.selector)) else {
                continue;
            };
            reached = true;
            let run = checks.trial(oracle, &[check], mutant.selector);
            let (observation, _) = bench.run(&run)?;
            if let Noticed::Yes(..) = checks.noticed(oracle, &[&check.name], &observation) {
                noticing.push(*at);
            }
        }
        for at in &noticing {
            if let Some(tooth) = teeth.get_mut(*at) {
                tooth.0 += 1;
                tooth.1 += u64::from(noticing.len() == 1);
            }
        }
        if noticing.is_empty() {
            proposals.push(Proposal {
                mutant: mutant.id.clone(),
                function: mutant.function.clone(),
                reached,
                input: None,
            });
        }
        ticker.tick(done + 1, mutants.len(), || {
            format!("{} noticed by nothing", proposals.len())
        });
    }
    drop(ticker);
    inputs::look(&mut bench, build, oracle, &mut proposals)?;
    bench.close()?;
    let named = steady.iter().filter_map(|at| {
        let (check, (kills, alone)) = (checks.all.get(*at)?, *teeth.get(*at)?);
        Some(Tooth {
            case: checks.label(check),
            kills,
            alone,
        })
    });
    Ok(Teeth {
        missed: checks.left_out.clone(),
        mutants: whole as u64,
        tried: mutants.len() as u64,
        cases: named.collect(),
        proposals,
        flaky: flaky.into_iter().collect(),
        unjudged: Vec::new(),
    })
}

/// Cases whose answers differ between runs of the unchanged program.
fn flaky(bench: &mut Bench, checks: &Checks, oracle: &Oracle) -> Result<BTreeSet<String>, Refusal> {
    let mut first: Vec<Option<Observation>> = vec![None; checks.all.len()];
    let mut flaky = BTreeSet::new();
    for _ in 0..REPEATS {
        for (check, first) in checks.all.iter().zip(&mut first) {
            let run = checks.trial(oracle, &[check], 0);
            let (observation, _) = bench.run(&run)?;
            let again = std::slice::from_ref(&observation);
            // What tests print says how long they took.
            let alike = |first: &Observation| {
                oracle.is_tests() || judge::determinism(std::slice::from_ref(first), again).is_ok()
            };
            let same = first.as_ref().is_none_or(alike);
            let passed = matches!(
                checks.noticed(oracle, &[&check.name], &observation),
                Noticed::No
            );
            if !same || !passed {
                flaky.insert(checks.label(check));
            }
            first.get_or_insert(observation);
        }
    }
    Ok(flaky)
}
