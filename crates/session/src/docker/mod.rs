//! The container engine backend: an engine makes the container, near or far, and our own program
//! makes the session in it, with the walls that every session has.
//!
//! Nothing of this host goes into a container but our program, and that over its standard input:
//! a path of the host means nothing to an engine elsewhere. An engine is attested but able to lie;
//! what it says is marked as its claim, and read again from the kernel.

mod attach;
mod claims;
mod clock;
mod close;
mod create;
mod dial;
mod endpoint;
mod engine;
mod inside;
mod inventory;
mod open;
mod owner;
mod spec;
pub mod stream;
pub mod tape;

pub use endpoint::Endpoint;
pub use engine::{Engine, Facts};
pub use inventory::{Inventory, session_images};
pub use open::{open, open_taped};
pub(crate) use owner::RECORDS;
pub use owner::{ReapedContainer, has_records, ledger_id, left, reap};
pub use spec::{DockerSpec, PinnedImage};

use crate::conversation::converse;
use crate::{LimitEvents, Session, SessionCode, SessionError};
use attach::{End, Line};
use bollard::models::ContainerCreateBody;
use flightproof_core::escape;
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::channel::HostChannel;
use flightproof_frame::protocol::{Reply, Request};
use inside::Near;
use owner::EngineRecord;
use std::path::PathBuf;
use std::time::Instant;
use tape::Recorder;

/// An open session on a container engine.
pub struct DockerSession {
    attestation: Attestation,
    inside: Inside,
    /// What it was asked to be, of us and of the engine.
    asked: Box<(DockerSpec, ContainerCreateBody)>,
}

/// Everything of a session that exists outside of it. Dropping it destroys it.
struct Inside {
    /// The container's name.
    name: String,
    /// The engine's id of the container, once there may be one.
    container: Option<String>,
    engine: Engine,
    record: EngineRecord,
    state_dir: PathBuf,
    line: Option<Line>,
    channel: Option<HostChannel>,
    /// On this very kernel: the host's own sight of it.
    near: Option<Near>,
    /// Takes down what goes over the line.
    recorder: Option<Recorder>,
    deadline: Instant,
    seen: LimitEvents,
    /// It did not come to be, and what became of it was told.
    given_up: bool,
    closed: Option<Closed>,
}

impl std::fmt::Debug for DockerSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DockerSession({})", self.inside.name)
    }
}

impl Session for DockerSession {
    fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        self.inside.call(request, payload)
    }

    fn events(&mut self) -> Result<LimitEvents, SessionError> {
        if self.inside.channel.is_none() {
            return Err(SessionCode::SessionClosed.refuse("the session is closed"));
        }
        let now = match &self.inside.near {
            Some(near) => near.events()?,
            None => inside::ask_events(self)?,
        };
        let new = now.since(self.inside.seen);
        self.inside.seen = now;
        Ok(new)
    }

    fn close(&mut self) -> Result<Closed, SessionError> {
        self.inside.close()
    }
}

impl Inside {
    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        let Some(channel) = self.channel.as_mut() else {
            return Err(SessionCode::SessionClosed.refuse("the session is closed"));
        };
        let answer = converse(channel, request, payload, self.deadline);
        answer.map_err(|error| {
            let explained = self.cause(error);
            // Whatever it was, nothing this session says later can be trusted. What cannot be
            // removed now is found again by `close`.
            let _ = self.destroy();
            explained
        })
    }

    /// A lost session says why, where the engine's stream or the kernel's counters tell.
    fn cause(&self, error: SessionError) -> SessionError {
        if error.code != SessionCode::SessionLost {
            return error;
        }
        let lost = |why: String| SessionCode::SessionLost.refuse(why);
        let killed = self.near.as_ref().and_then(|near| near.events().ok());
        match self.line.as_ref().and_then(Line::end) {
            Some(End::Corrupt(corruption)) => lost(format!("the engine's stream: {corruption}")),
            Some(End::Broken(why)) => {
                lost(format!("the engine's stream broke: {}", escape(why, 200)))
            }
            _ if killed.is_some_and(|now| now.since(self.seen).memory > 0) => {
                lost(format!("{}; the kernel killed for memory", error.detail))
            }
            _ => error,
        }
    }
}
