//! One case, run once: what happened, never what it means.

use crate::upload::execute;
use crate::{LimitEvents, Session, SessionCode, SessionError};
use flightproof_core::escape;
use flightproof_evidence::{CaseRun, Ending, Observation};
use flightproof_frame::protocol::{Exec, ExecLimits, Outcome, Role, Status, layout};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Most bytes of each output stream of a case: a witness that compares more compares logs.
pub const MAX_OUTPUT: u64 = 1 << 20;
/// SIGSYS on every architecture Linux sessions run on: the system call filter's answer.
const SIGSYS: u8 = 31;

/// Runs a case and reports how it ended.
///
/// # Errors
/// `LAUNCH_FAILED` if the program never ran, and whatever ends the session. Neither says anything
/// about the program.
pub fn run(session: &mut dyn Session, case: &CaseRun) -> Result<Observation, SessionError> {
    let outcome = execute(session, request(case))?;
    let events = session.events()?;
    Ok(Observation {
        ending: ending(&outcome.status, events)?,
        stdout: outcome.stdout,
        stderr: outcome.stderr,
        complete: outcome.complete,
        armed: outcome.armed,
    })
}

fn request(case: &CaseRun) -> Exec {
    let mut env = environment();
    env.extend(case.env.clone());
    Exec {
        role: Role::Case,
        program: case.program.clone(),
        args: case.args.clone(),
        env,
        stdin: case.stdin.clone(),
        files: case.files.clone(),
        limits: ExecLimits {
            wall_ms: case.wall_ms,
            stdout_bytes: MAX_OUTPUT,
            stderr_bytes: MAX_OUTPUT,
        },
        selector: case.selector,
        tree: case.tree.clone(),
    }
}

/// The same for every case of every session. There is no `PATH`: a case starts no program.
fn environment() -> BTreeMap<String, String> {
    [
        ("HOME", layout::CASE),
        ("TMPDIR", layout::CASE),
        ("LC_ALL", "C"),
        ("TZ", "UTC"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// A limit the kernel counted explains the end better than the signal or time-out it led to, and
/// also explains an exit status: a program may live on after a refused fork or a killed child.
pub(crate) fn ending(status: &Status, events: LimitEvents) -> Result<Ending, SessionError> {
    if let Status::LaunchFailed { reason } = status {
        return Err(SessionCode::LaunchFailed.refuse(escape(reason, 300)));
    }
    Ok(match (events, status) {
        (LimitEvents { pids: 1.., .. }, _) => Ending::ProcessLimit,
        (LimitEvents { memory: 1.., .. }, _) => Ending::MemoryLimit,
        (_, Status::Signaled { signal: SIGSYS }) => Ending::ForbiddenCall,
        (_, Status::Exited { code }) => Ending::Exited { code: *code },
        (_, Status::Signaled { signal }) => Ending::Signaled { signal: *signal },
        (_, Status::OutputLimit) => Ending::OutputLimit,
        (_, Status::TimedOut | Status::LaunchFailed { .. }) => Ending::TimedOut,
    })
}

/// How a process ended that another of its session waited for: no limit is known of it.
pub fn waited(status: u32) -> Ending {
    let status = ExitStatus::from_raw(status.cast_signed());
    let small = |number: Option<i32>| number.and_then(|number| u8::try_from(number).ok());
    match (small(status.code()), small(status.signal())) {
        (Some(code), _) => Ending::Exited { code },
        (None, Some(SIGSYS)) => Ending::ForbiddenCall,
        (None, signal) => Ending::Signaled {
            signal: signal.unwrap_or(0),
        },
    }
}

/// Outcome of a program that is no case, with the limit that ended it.
pub(crate) fn limit(outcome: &Outcome, events: LimitEvents) -> Option<&'static str> {
    match (&outcome.status, events) {
        (Status::Exited { code: 0 }, _) => None,
        (Status::TimedOut, _) => Some("time"),
        (Status::OutputLimit, _) => Some("output"),
        (_, LimitEvents { memory: 1.., .. }) => Some("memory"),
        (_, LimitEvents { pids: 1.., .. }) => Some("processes"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: LimitEvents = LimitEvents { pids: 0, memory: 0 };

    #[test]
    fn every_end_has_its_name() {
        let table = [
            (
                Status::Exited { code: 3 },
                QUIET,
                Ending::Exited { code: 3 },
            ),
            (
                Status::Signaled { signal: 9 },
                QUIET,
                Ending::Signaled { signal: 9 },
            ),
            (
                Status::Signaled { signal: 31 },
                QUIET,
                Ending::ForbiddenCall,
            ),
            (Status::TimedOut, QUIET, Ending::TimedOut),
            (Status::OutputLimit, QUIET, Ending::OutputLimit),
        ];
        for (status, events, expected) in table {
            assert_eq!(ending(&status, events).unwrap(), expected);
        }
    }

    #[test]
    fn what_was_waited_for_ends_as_what_was_run() {
        let table = [
            (0, Ending::Exited { code: 0 }),
            (101 << 8, Ending::Exited { code: 101 }),
            (9, Ending::Signaled { signal: 9 }),
            (11 | 0x80, Ending::Signaled { signal: 11 }),
            (31, Ending::ForbiddenCall),
        ];
        for (status, expected) in table {
            assert_eq!(waited(status), expected, "{status}");
        }
    }

    #[test]
    fn a_counted_limit_is_named_whatever_the_program_made_of_it() {
        let (pids, memory) = (
            LimitEvents { pids: 2, memory: 0 },
            LimitEvents { pids: 0, memory: 1 },
        );
        for status in [
            Status::Exited { code: 0 },
            Status::Signaled { signal: 9 },
            Status::TimedOut,
        ] {
            assert_eq!(ending(&status, pids).unwrap(), Ending::ProcessLimit);
            assert_eq!(ending(&status, memory).unwrap(), Ending::MemoryLimit);
        }
    }

    #[test]
    fn a_program_that_never_ran_says_nothing() {
        let reason = "no such file\n\x1b[0m".to_owned();
        let refused = ending(&Status::LaunchFailed { reason }, QUIET).unwrap_err();
        assert_eq!(refused.code, SessionCode::LaunchFailed);
        assert!(!refused.detail.contains('\x1b'));
    }

    #[test]
    fn a_case_may_add_to_its_environment_and_has_no_path() {
        let case = CaseRun {
            program: "p".to_owned(),
            args: vec![],
            stdin: vec![].into(),
            files: BTreeMap::new(),
            env: [("LC_ALL", "de"), ("X", "1")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            selector: Some(0),
            wall_ms: 5,
            tree: None,
        };
        let exec = request(&case);
        assert_eq!(exec.env["LC_ALL"], "de");
        assert_eq!(exec.env["TZ"], "UTC");
        assert!(!exec.env.contains_key("PATH"));
        assert_eq!((exec.role, exec.selector), (Role::Case, Some(0)));
    }
}
