//! The local backend: bubblewrap for the walls, cgroups for the limits, our runner as the first
//! process inside, and a reading of everything before it is used.
//!
//! Started as root, the sandbox program runs as an unprivileged user: bubblewrap that is root
//! would make a sandbox whose root is root to the kernel. Started as a user, limits need a
//! delegated cgroup and cases need subordinate user ids. There is no weaker fallback.

pub(crate) mod attest;
pub(crate) mod bwrap;
mod close;
mod descriptors;
pub(crate) mod identity;
mod keeper;
mod network;
mod open;
mod runner;
mod spec;
mod stage;

pub use open::open;
pub use runner::RunnerProgram;
pub use spec::{AgentFile, LocalSpec};
pub use stage::{STAGE, stage_main};

use crate::cgroup::Group;
use crate::conversation::converse;
use crate::record::Record;
use crate::{LimitEvents, Session, SessionCode, SessionError};
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::channel::HostChannel;
use flightproof_frame::protocol::{Reply, Request};
use keeper::Keeper;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Instant;

/// An open local session.
pub struct LocalSession {
    attestation: Attestation,
    network: OwnedFd,
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
    /// It did not come to be, and what became of it was told.
    given_up: bool,
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

    fn listen(&self, port: u16) -> Result<std::net::TcpListener, SessionError> {
        self.listen_inside(port)
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
        converse(channel, request, payload, self.deadline)
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
