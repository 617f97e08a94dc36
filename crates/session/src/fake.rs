//! A recorded session, played back. Strict: it answers exactly what was recorded, in the order it
//! was recorded, once.

use crate::{LimitEvents, Session, SessionCode, SessionError};
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::protocol::{Reply, Request};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Everything a session said, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// What it was.
    pub attestation: Attestation,
    /// What was asked and answered.
    pub steps: VecDeque<Step>,
    /// How it was closed.
    pub closed: Closed,
}

/// One thing that was asked of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// [`Session::call`].
    Call {
        /// The request.
        request: Box<Request>,
        /// The answer.
        reply: Box<Reply>,
    },
    /// [`Session::events`].
    Events {
        /// The answer.
        events: LimitEvents,
    },
}

/// A session that plays a [`Recording`].
#[derive(Debug)]
pub struct FakeSession {
    recording: Recording,
    played: usize,
    closed: bool,
}

impl FakeSession {
    /// A session that will say what the recording holds.
    pub fn new(recording: Recording) -> Self {
        Self {
            recording,
            played: 0,
            closed: false,
        }
    }

    fn next(&mut self) -> Result<Step, SessionError> {
        if self.closed {
            return Err(SessionCode::SessionClosed.refuse("the replayed session is closed"));
        }
        self.played += 1;
        self.recording
            .steps
            .pop_front()
            .ok_or_else(|| self.mismatch("the recording has no more steps"))
    }

    fn mismatch(&self, what: &str) -> SessionError {
        SessionCode::FakeMismatch.refuse(format_args!("step {}: {what}", self.played))
    }
}

impl Session for FakeSession {
    fn attestation(&self) -> &Attestation {
        &self.recording.attestation
    }

    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        let Step::Call {
            request: recorded,
            reply,
        } = self.next()?
        else {
            return Err(self.mismatch("a request, where the recording reads the kernel's events"));
        };
        if *recorded != *request {
            return Err(self.mismatch(&difference(&recorded, request)));
        }
        let announced = match request {
            // A replay has no dependencies at hand, only their digest.
            Request::Put { bytes, .. } if !payload.is_empty() => *bytes,
            _ => 0,
        };
        if payload.len() as u64 != announced {
            let what = format!("{} bytes beside a request for {announced}", payload.len());
            return Err(self.mismatch(&what));
        }
        Ok(*reply)
    }

    fn events(&mut self) -> Result<LimitEvents, SessionError> {
        match self.next()? {
            Step::Events { events } => Ok(events),
            Step::Call { .. } => {
                Err(self.mismatch("the kernel's events, where the recording has a request"))
            }
        }
    }

    fn close(&mut self) -> Result<Closed, SessionError> {
        self.closed = true;
        match self.recording.steps.len() {
            0 => Ok(self.recording.closed.clone()),
            left => Err(SessionCode::FakeUnused
                .refuse(format_args!("{left} recorded steps were not asked for"))),
        }
    }
}

/// Names the requests; their content may be private.
fn difference(recorded: &Request, asked: &Request) -> String {
    let (recorded, asked) = (name(recorded), name(asked));
    if recorded == asked {
        return format!("{asked} with other values than recorded");
    }
    format!("got {asked}, recorded is {recorded}")
}

fn name(request: &Request) -> &'static str {
    match request {
        Request::Put { .. } => "put",
        Request::Unpack { .. } => "unpack",
        Request::Exec(_) => "exec",
        Request::Promote { .. } => "promote",
        Request::Probe => "probe",
        Request::Kernel { .. } => "kernel",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use flightproof_core::Digest;
    use flightproof_evidence::{RunnerIdentity, Toolchain};

    pub(crate) fn recording(steps: Vec<Step>) -> Recording {
        let digest = Digest::of(b"");
        Recording {
            attestation: Attestation {
                backend: "local".to_owned(),
                session: "00".to_owned(),
                toolchain: Toolchain {
                    digest,
                    version: "rustc 1.95.0".to_owned(),
                    linker: digest,
                    target: None,
                },
                runner: RunnerIdentity {
                    build_id: digest,
                    sha256: digest,
                },
                kernel: "6".to_owned(),
                processor: None,
                sandbox: "bubblewrap 0.8.0".to_owned(),
                readings: vec![],
                probes: vec![],
            },
            steps: steps.into(),
            closed: Closed {
                processes: 0,
                cgroups: 0,
                mounts: 0,
                directories: 0,
            },
        }
    }

    pub(crate) fn call(request: Request, reply: Reply) -> Step {
        Step::Call {
            request: Box::new(request),
            reply: Box::new(reply),
        }
    }

    fn promote(name: &str) -> Request {
        Request::Promote {
            from: "/flight/target/debug/x".to_owned(),
            name: name.to_owned(),
        }
    }

    fn probe() -> Reply {
        Reply::Probe { readings: vec![] }
    }

    fn two_steps() -> FakeSession {
        let events = LimitEvents { pids: 1, memory: 0 };
        FakeSession::new(recording(vec![
            call(promote("a"), probe()),
            Step::Events { events },
        ]))
    }

    #[test]
    fn the_recorded_path_is_answered_as_recorded() {
        let mut session = two_steps();
        assert_eq!(session.call(&promote("a"), b"").unwrap(), probe());
        assert_eq!(session.events().unwrap().pids, 1);
        assert!(session.close().unwrap().is_clean());
        assert!(session.close().unwrap().is_clean());
        let refused = session.call(&Request::Probe, b"").unwrap_err();
        assert_eq!(refused.code, SessionCode::SessionClosed);
    }

    #[test]
    fn unknown_out_of_order_altered_and_repeated_requests_are_refused() {
        type Attack = fn(&mut FakeSession) -> Result<(), SessionError>;
        let attacks: [Attack; 5] = [
            |s| s.call(&Request::Probe, b"").map(drop),
            |s| s.call(&promote("b"), b"").map(drop),
            |s| s.call(&promote("a"), b"bytes nobody asked for").map(drop),
            |s| s.events().map(drop),
            |s| {
                s.call(&promote("a"), b"")?;
                s.call(&promote("a"), b"").map(drop)
            },
        ];
        for attack in attacks {
            let refused = attack(&mut two_steps()).unwrap_err();
            assert_eq!(refused.code, SessionCode::FakeMismatch, "{refused}");
        }
        let mut empty = FakeSession::new(recording(vec![]));
        assert_eq!(empty.events().unwrap_err().code, SessionCode::FakeMismatch);
    }

    #[test]
    fn a_recording_that_is_not_used_up_is_refused_at_the_close() {
        let refused = two_steps().close().unwrap_err();
        assert_eq!(refused.code, SessionCode::FakeUnused);
        assert!(refused.detail.starts_with("2 "), "{refused}");
    }

    #[test]
    fn a_recording_survives_its_json() {
        let recording = two_steps().recording;
        let json = serde_json::to_vec(&recording).unwrap();
        let read: Recording = serde_json::from_slice(&json).unwrap();
        assert_eq!(read, recording);
    }
}
