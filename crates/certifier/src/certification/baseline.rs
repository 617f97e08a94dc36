//! The same cases on the baseline: whether they tell it from the candidate.

use super::{Ask, CANDIDATE, Certification, Told, case_run};
use crate::claim::BaselineResult;
use crate::witness::Witness;
use crate::{CertifierCode, CertifierError, judge};
use flightproof_evidence::{BuildAnswer, BuildOrder, BuildTarget, Guard};
use std::collections::BTreeMap;

/// Builds the baseline in a session of its own, under the candidate's name, and runs every case on
/// it once. Nothing that the baseline does ends the flight.
pub struct BaselineTrial<'a> {
    witness: &'a Witness,
    target: BuildTarget,
    guard: Guard,
    step: Step,
    failed: Vec<u64>,
}

#[derive(Clone, Copy)]
enum Step {
    Build,
    Unbuilt,
    /// The case that is run next.
    Case(usize),
}

impl<'a> Certification<'a> {
    /// The run of the cases on the baseline.
    pub fn on_baseline(&self) -> BaselineTrial<'a> {
        BaselineTrial {
            witness: self.witness,
            target: self.target.clone(),
            guard: self.plan.guard.clone(),
            step: Step::Build,
            failed: Vec::new(),
        }
    }
}

/// Questions about a baseline, in a session of its own.
pub trait Trial {
    /// The next question, or none when everything is known.
    fn ask(&self) -> Option<Ask>;

    /// Takes the answer to the last question.
    ///
    /// # Errors
    /// `ANSWER_UNASKED` for an answer of another kind.
    fn tell(&mut self, told: &Told) -> Result<(), CertifierError>;
}

impl Trial for BaselineTrial<'_> {
    fn ask(&self) -> Option<Ask> {
        match self.step {
            Step::Build => Some(Ask::Compile(Box::new(BuildOrder {
                program: CANDIDATE.to_owned(),
                target: self.target.clone(),
                overlay: self.witness.laid_over(BTreeMap::new()),
                guard: self.guard.clone(),
            }))),
            Step::Case(at) if at < self.witness.cases().len() => Some(Ask::Run(Box::new(
                case_run(self.witness, at, CANDIDATE, None),
            ))),
            Step::Unbuilt | Step::Case(_) => None,
        }
    }

    fn tell(&mut self, told: &Told) -> Result<(), CertifierError> {
        self.step = match (self.step, told) {
            (Step::Build, Told::Compiled(BuildAnswer::Built(_))) => Step::Case(0),
            (Step::Build, Told::Compiled(_)) => Step::Unbuilt,
            (Step::Case(at), Told::Ran(observation)) => {
                let Some(case) = self.witness.cases().get(at) else {
                    return Err(unasked());
                };
                let heard = self.witness.heard(at, observation.clone());
                let missed = judge::judge_case(case, &heard).is_err();
                self.failed.extend(missed.then_some(at as u64 + 1));
                Step::Case(at + 1)
            }
            (_, _) => return Err(unasked()),
        };
        Ok(())
    }
}

impl BaselineTrial<'_> {
    /// What was found.
    ///
    /// # Errors
    /// `ANSWER_UNASKED` if questions are open.
    pub fn finish(self) -> Result<BaselineResult, CertifierError> {
        if self.ask().is_some() {
            return Err(CertifierCode::AnswerUnasked.refuse("questions are still open"));
        }
        Ok(match self.step {
            Step::Unbuilt => BaselineResult::Unbuilt {},
            Step::Build | Step::Case(_) => BaselineResult::Ran {
                failed: self.failed,
            },
        })
    }
}

pub(super) fn unasked() -> CertifierError {
    CertifierCode::AnswerUnasked.refuse("a build for a run, or a run for a build")
}
