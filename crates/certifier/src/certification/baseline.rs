//! The same cases on the baseline: whether they tell it from the candidate.

use super::{Ask, CANDIDATE, Certification, Told, case_run};
use crate::claim::BaselineResult;
use crate::witness::Witness;
use crate::{CertifierCode, CertifierError, judge};
use flightproof_evidence::{BuildAnswer, BuildOrder, CaseRun, Observation};
use std::collections::BTreeMap;

/// Builds the baseline in a session of its own, under the candidate's name, and runs every case on
/// it once. Nothing that the baseline does ends the flight.
pub struct BaselineTrial<'a> {
    witness: &'a Witness,
    course: Course,
}

impl<'a> Certification<'a> {
    /// The run of the cases on the baseline.
    pub fn on_baseline(&self) -> BaselineTrial<'a> {
        BaselineTrial {
            witness: self.witness,
            course: Course::of(BuildOrder {
                program: CANDIDATE.to_owned(),
                target: self.target.clone(),
                overlay: self.witness.laid_over(BTreeMap::new()),
                guard: self.plan.guard.clone(),
                optimized: false,
            }),
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

    /// Why the baseline did not build, if it did not.
    fn unbuilt(&self) -> Option<&str>;
}

impl Trial for BaselineTrial<'_> {
    fn ask(&self) -> Option<Ask> {
        self.course.ask(|at| {
            let is_case = at < self.witness.cases().len();
            is_case.then(|| case_run(self.witness, at, CANDIDATE, None))
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

impl BaselineTrial<'_> {
    /// What was found.
    ///
    /// # Errors
    /// `ANSWER_UNASKED` if questions are open.
    pub fn finish(self) -> Result<BaselineResult, CertifierError> {
        let open = self.ask().is_some();
        let Some(runs) = self.course.end(open)? else {
            return Ok(BaselineResult::Unbuilt {});
        };
        let cases = self.witness.cases().iter().zip(runs).zip(0..);
        let failed = cases.filter_map(|((case, run), at)| {
            let heard = self.witness.heard(at, run);
            let missed = judge::judge_case(case, &heard).is_err();
            missed.then_some(at as u64 + 1)
        });
        Ok(BaselineResult::Ran {
            failed: failed.collect(),
        })
    }
}

/// What every trial is: one build and, if it stands, runs one after the other.
pub(super) struct Course {
    order: Box<BuildOrder>,
    step: Step,
    /// What kept it from being built.
    unbuilt: Option<String>,
    runs: Vec<Observation>,
}

#[derive(Clone, Copy)]
enum Step {
    Build,
    Unbuilt,
    Run,
}

impl Course {
    pub(super) fn of(order: BuildOrder) -> Self {
        Self {
            order: Box::new(order),
            step: Step::Build,
            unbuilt: None,
            runs: Vec::new(),
        }
    }

    /// The next question; `run` gives the run of a number, or none behind the last.
    pub(super) fn ask(&self, run: impl FnOnce(usize) -> Option<CaseRun>) -> Option<Ask> {
        match self.step {
            Step::Build => Some(Ask::Compile(self.order.clone())),
            Step::Unbuilt => None,
            Step::Run => run(self.runs.len()).map(|run| Ask::Run(Box::new(run))),
        }
    }

    /// Takes an answer; `open` says whether there was a question.
    ///
    /// # Errors
    /// `ANSWER_UNASKED` for an answer of another kind.
    pub(super) fn tell(&mut self, told: &Told, open: bool) -> Result<(), CertifierError> {
        self.step = match (self.step, told) {
            (Step::Build, Told::Compiled(BuildAnswer::Built(_))) => Step::Run,
            (Step::Build, Told::Compiled(answer)) => {
                let refused = judge::built(answer.clone(), &[]).err();
                // The compiler's first word says more than how many there were.
                self.unbuilt = refused.map(|mut refused| match refused.notes.is_empty() {
                    true => refused.detail,
                    false => refused.notes.swap_remove(0),
                });
                Step::Unbuilt
            }
            (Step::Run, Told::Ran(observation)) if open => {
                self.runs.push(observation.clone());
                Step::Run
            }
            (_, _) => return Err(unasked()),
        };
        Ok(())
    }

    pub(super) fn unbuilt(&self) -> Option<&str> {
        self.unbuilt.as_deref()
    }

    /// All runs; none where nothing was built.
    ///
    /// # Errors
    /// `ANSWER_UNASKED` while a question is open.
    pub(super) fn end(self, open: bool) -> Result<Option<Vec<Observation>>, CertifierError> {
        match self.step {
            _ if open => Err(CertifierCode::AnswerUnasked.refuse("questions are still open")),
            Step::Unbuilt => Ok(None),
            Step::Build | Step::Run => Ok(Some(self.runs)),
        }
    }
}

fn unasked() -> CertifierError {
    CertifierCode::AnswerUnasked.refuse("a build for a run, or a run for a build")
}
