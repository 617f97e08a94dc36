//! The baseline's own tests on the baseline: which there are, which pass, and which waver.

use super::baseline::{Trial, unasked};
use super::{Ask, CANDIDATE, Told, case_run, derived};
use crate::mutation::MutationPlan;
use crate::population;
use crate::tree::Tree;
use crate::witness::{BASELINE_RUNS, Witness};
use crate::{CertifierCode, CertifierError};
use flightproof_evidence::{BuildAnswer, BuildOrder, Observation};
use std::collections::BTreeMap;

/// Builds the baseline's tests with ours among them, and runs each program [`BASELINE_RUNS`] times.
pub struct SuiteTrial {
    witness: Witness,
    order: Box<BuildOrder>,
    step: Step,
    runs: Vec<Observation>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Build,
    Unbuilt,
    Run,
}

impl SuiteTrial {
    /// The trial of a witness whose tests were found, in a flight sealed with this salt.
    ///
    /// # Errors
    /// `WITNESS_INVALID` for a witness without tests.
    pub fn new(witness: Witness, salt: &[u8; 32]) -> Result<Self, CertifierError> {
        let seed = derived(salt, "suite guard");
        let plan = MutationPlan::new(population::input(&[], &Tree::default(), seed))?;
        Ok(Self {
            order: Box::new(BuildOrder {
                program: CANDIDATE.to_owned(),
                target: witness.target()?,
                overlay: witness.laid_over(BTreeMap::new()),
                guard: plan.guard,
            }),
            witness,
            step: Step::Build,
            runs: Vec::new(),
        })
    }

    /// The witness with what the tests must come to.
    ///
    /// # Errors
    /// `SUITE_UNFIT`, `WITNESS_TOOTHLESS`; `ANSWER_UNASKED` if questions are open.
    pub fn finish(self) -> Result<Witness, CertifierError> {
        if self.ask().is_some() {
            return Err(CertifierCode::AnswerUnasked.refuse("questions are still open"));
        }
        if self.step == Step::Unbuilt {
            return Err(CertifierCode::SuiteUnfit.refuse("the baseline's tests do not build"));
        }
        let programs: Vec<Vec<Observation>> =
            self.runs.chunks(BASELINE_RUNS).map(<[_]>::to_vec).collect();
        self.witness.measured(&programs)
    }
}

impl Trial for SuiteTrial {
    fn ask(&self) -> Option<Ask> {
        match self.step {
            Step::Build => Some(Ask::Compile(self.order.clone())),
            Step::Unbuilt => None,
            Step::Run => {
                let program = self.runs.len() / BASELINE_RUNS;
                (program < self.witness.cases().len())
                    .then(|| Ask::Run(Box::new(case_run(&self.witness, program, CANDIDATE, None))))
            }
        }
    }

    fn tell(&mut self, told: &Told) -> Result<(), CertifierError> {
        self.step = match (self.step, told) {
            (Step::Build, Told::Compiled(BuildAnswer::Built(_))) => Step::Run,
            (Step::Build, Told::Compiled(_)) => Step::Unbuilt,
            (Step::Run, Told::Ran(observation)) if self.ask().is_some() => {
                self.runs.push(observation.clone());
                Step::Run
            }
            (_, _) => return Err(unasked()),
        };
        Ok(())
    }
}
