//! Inputs for mutants that no case notices: drawn from the witness's grammar, and given to the unchanged
//! program and to the mutant. One that they answer differently is proposed, as an input and no more:
//! which answer is right is for the witness's owner to say.

use super::Oracle;
use super::bench::{Bench, Build};
use super::teeth::Proposal;
use flightproof_certifier::judge;
use flightproof_certifier::mutation::Fuel;
use flightproof_certifier::witness::Input;
use flightproof_core::{Refusal, escape};
use flightproof_evidence::{CaseRun, Observation};
use serde::Serialize;
use std::collections::BTreeMap;

/// Most mutants that inputs are looked for: more is a witness that has hardly begun.
const MAX_MUTANTS: usize = 100;
/// Longest run on an input, milliseconds.
const WALL_MS: u64 = 3_000;
/// Most bytes of an argument and of standard input that are shown.
const MAX_SHOWN: usize = 400;

/// An input that tells a mutant from the unchanged program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProposedInput {
    /// Arguments.
    pub args: Vec<String>,
    /// Standard input.
    pub stdin: String,
}

impl ProposedInput {
    /// One line for people.
    pub fn line(&self) -> String {
        let args: Vec<String> = self.args.iter().map(|arg| escape(arg, MAX_SHOWN)).collect();
        format!(
            "arguments {args:?}, standard input \"{}\"",
            escape(&self.stdin, MAX_SHOWN)
        )
    }
}

/// Looks for an input for each proposal, if the witness has a grammar.
pub(super) fn look(
    bench: &mut Bench,
    build: &Build,
    oracle: &Oracle,
    proposals: &mut [Proposal],
) -> Result<(), Refusal> {
    let (Oracle::Witness(witness), Some(program)) = (oracle, build.programs.first()) else {
        return Ok(());
    };
    let inputs = witness.inputs(&crate::state::entropy()?);
    let known = build.plan.mutants.iter();
    let selectors: BTreeMap<&str, u64> = known.map(|m| (m.id.as_str(), m.selector)).collect();
    let mut answer = |input: &Input, selector: u64| {
        let word = Fuel::UNKNOWN.selecting(selector);
        bench
            .run(&run_of(&program.program, input, word))
            .map(|(observation, _)| observation)
    };
    let mut unchanged: Vec<(&Input, Observation)> = Vec::new();
    for input in &inputs {
        let (first, second) = (answer(input, 0)?, answer(input, 0)?);
        // What wavers by itself shows nothing of a mutant.
        if alike(&first, &second) {
            unchanged.push((input, first));
        }
    }
    for proposal in proposals.iter_mut().take(MAX_MUTANTS) {
        let Some(selector) = selectors.get(proposal.mutant.as_str()) else {
            continue;
        };
        for (input, expected) in &unchanged {
            let found = answer(input, *selector)?;
            if found.armed && !alike(&found, expected) {
                proposal.input = Some(ProposedInput {
                    args: input.args.clone(),
                    stdin: input.stdin.clone(),
                });
                break;
            }
        }
    }
    Ok(())
}

fn alike(one: &Observation, other: &Observation) -> bool {
    judge::determinism(std::slice::from_ref(one), std::slice::from_ref(other)).is_ok()
}

fn run_of(program: &str, input: &Input, selector: u64) -> CaseRun {
    CaseRun {
        program: program.to_owned(),
        args: input.args.clone(),
        stdin: input.stdin.clone().into_bytes().into(),
        files: BTreeMap::new(),
        env: BTreeMap::new(),
        selector: Some(selector),
        wall_ms: WALL_MS,
        tree: None,
    }
}
