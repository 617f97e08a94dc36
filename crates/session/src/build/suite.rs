//! The tests of packages, each target as a program of its own.

use super::command::{cargo_tests, check_guard};
use super::{Workshop, concluded, product};
use crate::diagnostics::Messages;
use crate::observe::limit;
use crate::upload::{execute, promote};
use crate::{Session, SessionError};
use flightproof_evidence::{BuildAnswer, SuiteAnswer, SuiteOrder, TestProgram};

impl Workshop {
    /// Builds the tests of packages and makes them executable for cases. Packages without any give
    /// no program.
    ///
    /// # Errors
    /// What the session refuses. A build that fails or hits a limit is an answer, not an error.
    pub fn build_tests(
        &mut self,
        session: &mut dyn Session,
        order: &SuiteOrder,
    ) -> Result<SuiteAnswer, SessionError> {
        check_guard(&order.guard)?;
        self.lay_over(session, &order.overlay)?;
        if let Some(failed) = self.compile_guard(session, &order.guard)? {
            return Ok(suite(failed));
        }
        let outcome = execute(session, cargo_tests(order, self.wall_ms))?;
        let messages = Messages::parse(&outcome.stdout);
        // A schema with thousands of wrong mutants says more than fits: what was read of it is
        // enough for this round.
        let events = session.events()?;
        if limit(&outcome, events) == Some("output") && !messages.diagnostics.is_empty() {
            return Ok(SuiteAnswer::Failed {
                diagnostics: messages.diagnostics,
                tail: Vec::new().into(),
            });
        }
        if let Some(answer) = concluded(&outcome, events, messages.diagnostics.clone())? {
            return Ok(suite(answer));
        }
        let mut programs = Vec::new();
        for (number, (from, folder, target)) in product::tests(&messages).into_iter().enumerate() {
            let program = format!("{}-{number}", order.prefix);
            promote(session, &from, &program)?;
            programs.push(TestProgram {
                program,
                folder,
                target,
            });
        }
        Ok(SuiteAnswer::Built { programs })
    }
}

fn suite(answer: BuildAnswer) -> SuiteAnswer {
    match answer {
        BuildAnswer::Built(_) => SuiteAnswer::Built {
            programs: Vec::new(),
        },
        BuildAnswer::Failed { diagnostics, tail } => SuiteAnswer::Failed { diagnostics, tail },
        BuildAnswer::Limit { limit } => SuiteAnswer::Limit { limit },
    }
}
