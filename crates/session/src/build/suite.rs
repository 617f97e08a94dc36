//! The tests of packages, each target as a program of its own.

use super::command::{cargo_named_tests, cargo_tests, check_guard};
use super::reads::reads;
use super::{Workshop, concluded, product};
use crate::diagnostics::Messages;
use crate::observe::limit;
use crate::upload::{execute, promote};
use crate::{Session, SessionCode, SessionError};
use flightproof_core::{Hasher, escape};
use flightproof_evidence::{BuildAnswer, BuildOrder, Built, SuiteAnswer, SuiteOrder, TestProgram};

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
        self.tree.lay(session, &order.overlay)?;
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

impl Workshop {
    /// Builds named integration tests against the library that was built, and makes them executable.
    pub(super) fn build_named_tests(
        &mut self,
        session: &mut dyn Session,
        order: &BuildOrder,
        (package, tests): (Option<&str>, &[String]),
        library: &str,
    ) -> Result<BuildAnswer, SessionError> {
        let exec = cargo_named_tests((package, tests), &order.guard, self.wall_ms);
        let outcome = execute(session, exec)?;
        let messages = match self.answered(session, &outcome, Messages::parse(&outcome.stdout))? {
            Ok(messages) => messages,
            Err(answer) => return Ok(answer),
        };
        let built = product::tests(&messages);
        let mut hasher = Hasher::new();
        for (number, name) in tests.iter().enumerate() {
            let target = format!("test {name}");
            let found = built.iter().find(|(_, _, kind)| *kind == target);
            let (from, _, _) = found.ok_or_else(|| {
                SessionCode::BuildProduct
                    .refuse(format_args!("there is no test {}", escape(name, 80)))
            })?;
            let sha256 = promote(session, from, &format!("{}-{number}", order.program))?;
            hasher.update(sha256.as_bytes());
        }
        Ok(BuildAnswer::Built(Built {
            program: order.program.clone(),
            sha256: hasher.finish(),
            record: self.record(&messages),
            reads: Some(reads(session, library, self.wall_ms)?),
        }))
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
