//! The local backend: bubblewrap for the walls, cgroups for the limits, our runner as the first
//! process inside, and a reading of everything before it is used.
//!
//! Started as root, the sandbox program runs as an unprivileged user: bubblewrap that is root
//! would make a sandbox whose root is root to the kernel. Started as a user, limits need a
//! delegated cgroup and cases need subordinate user ids. There is no weaker fallback.

mod attest;
mod bwrap;
mod close;
mod descriptors;
mod identity;
mod keeper;
mod open;
mod runner;
mod spec;
mod stage;

pub use open::open;
pub use runner::RunnerProgram;
pub use spec::LocalSpec;
pub use stage::{STAGE, stage_main};

use crate::cgroup::Group;
use crate::record::Record;
use crate::{LimitEvents, Session, SessionCode, SessionError};
use flightproof_core::parse_strict;
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::channel::{HostChannel, MAX_BODY_BYTES};
use flightproof_frame::protocol::{Reply, Request};
use flightproof_frame::{FrameCode, FrameError};
use keeper::Keeper;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long after a program's own wall clock its answer may take.
const EXEC_GRACE: Duration = Duration::from_secs(30);
/// How long anything else may take: an upload of hundreds of megabytes on a busy machine.
const REQUEST_DEADLINE: Duration = Duration::from_secs(180);

/// An open local session.
pub struct LocalSession {
    attestation: Attestation,
    inside: Inside,
}

/// Everything of a session that exists on the host. Dropping it destroys it.
struct Inside {
    record: Record,
    state_dir: PathBuf,
    group: Group,
    keeper: Option<Keeper>,
    channel: Option<HostChannel>,
    deadline: Instant,
    seen: LimitEvents,
    closed: Option<Closed>,
}

impl std::fmt::Debug for LocalSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalSession({})", self.inside.record.id)
    }
}

impl Session for LocalSession {
    fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        self.inside.call(request, payload)
    }

    fn events(&mut self) -> Result<LimitEvents, SessionError> {
        self.inside.events()
    }

    fn close(&mut self) -> Result<Closed, SessionError> {
        self.inside.close()
    }
}

impl Inside {
    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        let answer = self.exchange(request, payload);
        if answer.is_err() {
            // Whatever it was, nothing this session says later can be trusted. What cannot be
            // removed now is found again by `close`.
            let _ = self.destroy();
        }
        answer
    }

    fn exchange(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        let channel = self
            .channel
            .as_mut()
            .ok_or_else(|| SessionCode::SessionClosed.refuse("the session is closed"))?;
        let body =
            serde_json::to_vec(request).map_err(|e| SessionCode::ProtocolBroken.refuse(e))?;
        let deadline = self.deadline.min(Instant::now() + patience(request));
        let reply = channel.call(&body, payload, deadline).map_err(|e| {
            // Whose clock ran out decides whose fault it is.
            let over = e.code == FrameCode::Timeout && Instant::now() >= self.deadline;
            lost(&e, over)
        })?;
        parse_strict(&reply, MAX_BODY_BYTES).map_err(|e| SessionCode::ProtocolBroken.refuse(e))
    }

    fn events(&mut self) -> Result<LimitEvents, SessionError> {
        if self.channel.is_none() {
            return Err(SessionCode::SessionClosed.refuse("the session is closed"));
        }
        let now = self.group.events()?;
        let new = now.since(self.seen);
        self.seen = now;
        Ok(new)
    }
}

fn patience(request: &Request) -> Duration {
    match request {
        Request::Exec(exec) => Duration::from_millis(exec.limits.wall_ms) + EXEC_GRACE,
        _ => REQUEST_DEADLINE,
    }
}

fn lost(error: &FrameError, lifetime_over: bool) -> SessionError {
    let code = match error.code {
        FrameCode::Timeout if lifetime_over => SessionCode::Deadline,
        FrameCode::Timeout
        | FrameCode::ReadHeader
        | FrameCode::ReadPayload
        | FrameCode::SourceError => SessionCode::SessionLost,
        _ => SessionCode::ProtocolBroken,
    };
    code.refuse(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_channel_is_named_by_what_broke_it() {
        let table = [
            (FrameCode::Timeout, true, SessionCode::Deadline),
            (FrameCode::Timeout, false, SessionCode::SessionLost),
            (FrameCode::ReadHeader, false, SessionCode::SessionLost),
            (
                FrameCode::ProtocolViolation,
                false,
                SessionCode::ProtocolBroken,
            ),
            (FrameCode::Oversize, true, SessionCode::ProtocolBroken),
        ];
        for (frame, over, code) in table {
            assert_eq!(lost(&frame.refuse("x"), over).code, code);
        }
    }
}
