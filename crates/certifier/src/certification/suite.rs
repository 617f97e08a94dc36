//! The baseline's own tests on the baseline: which there are, which pass, and which waver.

use super::baseline::{Course, Trial};
use super::{Ask, CANDIDATE, Told, case_run, derived};
use crate::mutation::MutationPlan;
use crate::population;
use crate::tree::Tree;
use crate::witness::{BASELINE_RUNS, Witness};
use crate::{CertifierCode, CertifierError};
use flightproof_evidence::{BuildOrder, Observation};
use std::collections::BTreeMap;

/// Builds the baseline's tests with ours among them, and runs each program [`BASELINE_RUNS`] times.
pub struct SuiteTrial {
    witness: Witness,
    course: Course,
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
            course: Course::of(BuildOrder {
                program: CANDIDATE.to_owned(),
                target: witness.target()?,
                overlay: witness.laid_over(BTreeMap::new()),
                guard: plan.guard,
                optimized: false,
            }),
            witness,
        })
    }

    /// The witness with what the tests must come to.
    ///
    /// # Errors
    /// `SUITE_UNFIT`, `WITNESS_TOOTHLESS`; `ANSWER_UNASKED` if questions are open.
    pub fn finish(self) -> Result<Witness, CertifierError> {
        let open = self.ask().is_some();
        let why = self.unbuilt().unwrap_or_default().to_owned();
        let runs = self.course.end(open)?.ok_or_else(|| {
            let detail = format!("the baseline's tests do not build: {why}");
            CertifierCode::SuiteUnfit.refuse(detail)
        })?;
        let programs: Vec<Vec<Observation>> =
            runs.chunks(BASELINE_RUNS).map(<[_]>::to_vec).collect();
        self.witness.measured(&programs)
    }
}

impl Trial for SuiteTrial {
    fn ask(&self) -> Option<Ask> {
        self.course.ask(|at| {
            let program = at / BASELINE_RUNS;
            let is_one = program < self.witness.cases().len();
            is_one.then(|| case_run(&self.witness, program, CANDIDATE, None))
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
