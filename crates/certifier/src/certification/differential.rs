//! Generated inputs on the baseline: what it answers is what a candidate is held against.

use super::baseline::{Course, Trial};
use super::{Ask, CANDIDATE, CASE_WALL_MS, Told, derived};
use crate::mutation::MutationPlan;
use crate::population;
use crate::tree::Tree;
use crate::witness::{Input, Witness};
use crate::{CertifierCode, CertifierError};
use flightproof_evidence::{BuildOrder, CaseRun};
use std::collections::BTreeMap;

/// How often each input is run: an answer that is another one the second time is none.
const RUNS: usize = 2;

/// Builds the baseline in a session of its own, and runs every input that is not declared to differ.
pub struct DifferentialTrial {
    witness: Witness,
    course: Course,
    inputs: Vec<Input>,
}

impl DifferentialTrial {
    /// The trial of a flight whose commitments are sealed with this salt.
    ///
    /// # Errors
    /// `WITNESS_INVALID` while a driver's text is missing.
    pub fn new(witness: &Witness, salt: &[u8; 32]) -> Result<Self, CertifierError> {
        // Both builds of a driver link a guard, and there is nothing to mutate in a baseline.
        let seed = derived(salt, "differential guard");
        let plan = MutationPlan::new(population::input(&[], &Tree::default(), seed))?;
        Ok(Self {
            witness: witness.clone(),
            course: Course::of(BuildOrder {
                program: CANDIDATE.to_owned(),
                target: witness.target()?,
                overlay: BTreeMap::new(),
                guard: plan.guard,
                optimized: false,
            }),
            inputs: witness.inputs(salt),
        })
    }

    /// The witness with what the baseline answered.
    ///
    /// # Errors
    /// `BASELINE_UNFIT`, `WITNESS_TOOTHLESS`; `ANSWER_UNASKED` if questions are open.
    pub fn finish(self) -> Result<Witness, CertifierError> {
        let open = self.ask().is_some();
        let runs = self.course.end(open)?;
        let unfit = || CertifierCode::BaselineUnfit.refuse("it does not build");
        let mut runs = runs.ok_or_else(unfit)?.into_iter();
        let mut answers = Vec::new();
        while let (Some(first), Some(second)) = (runs.next(), runs.next()) {
            answers.push([first, second]);
        }
        self.witness.answered(&self.inputs, &answers)
    }
}

impl Trial for DifferentialTrial {
    fn ask(&self) -> Option<Ask> {
        self.course.ask(|at| {
            let mut undeclared = self.inputs.iter().filter(|input| !input.declared);
            let input = undeclared.nth(at / RUNS)?;
            Some(CaseRun {
                program: CANDIDATE.to_owned(),
                args: input.args.clone(),
                stdin: input.stdin.clone().into_bytes().into(),
                files: BTreeMap::new(),
                env: BTreeMap::new(),
                selector: None,
                wall_ms: CASE_WALL_MS,
                tree: None,
            })
        })
    }

    fn tell(&mut self, told: &Told) -> Result<(), CertifierError> {
        let open = self.ask().is_some();
        self.course.tell(told, open)
    }

    fn unbuilt(&self) -> Option<&str> {
        self.course.unbuilt()
    }
}
