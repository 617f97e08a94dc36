//! Sealed sessions: opened fresh, attested before use, closed to the last process.
//!
//! One trait, three backends: [`local`] (bubblewrap, cgroups, our runner), [`docker`] (a container
//! engine, near or far, our runner) and [`fake`] (a recorded session played back). [`build`],
//! [`profile`] and [`observe`] are compositions over either. What a session reports is data; an
//! infrastructure fault is a [`SessionError`] and never becomes a verdict about the candidate.

pub mod build;
pub mod cgroup;
mod code;
mod conversation;
pub mod crates;
mod diagnostics;
pub mod docker;
pub mod fake;
#[doc(hidden)]
pub mod fuzzing;
pub mod generate;
pub mod interrupt;
pub mod lease;
pub mod local;
pub mod observe;
mod opening;
mod processor;
pub mod profile;
pub mod record;
pub mod toolchain;
pub mod upload;

pub use code::SessionCode;

use flightproof_core::Refused;
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::protocol::{Reply, Request};

/// A refusal of this crate.
pub type SessionError = Refused<SessionCode>;

/// An open session. Dropping it destroys it; [`Session::close`] also proves that nothing is left.
pub trait Session {
    /// What this session is, read back when it was opened.
    fn attestation(&self) -> &Attestation;

    /// Sends one request (with its payload, for an upload) and waits for its one reply.
    ///
    /// # Errors
    /// No reply within the session's lifetime, a reply that breaks the protocol, or a session that
    /// is closed. The session is destroyed by any of them.
    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError>;

    /// Kernel events since the last call, read by the host: what limits the last run hit.
    ///
    /// # Errors
    /// A counter of the kernel cannot be read.
    fn events(&mut self) -> Result<LimitEvents, SessionError>;

    /// Listens on a port of the session's own loopback. What connects there is inside the session;
    /// the socket is the caller's, on the host.
    ///
    /// # Errors
    /// `NETWORK_ENTRY` if the session's network cannot be entered: only root can, and only that of a
    /// session of this machine.
    fn listen(&self, _port: u16) -> Result<std::net::TcpListener, SessionError> {
        Err(SessionCode::NetworkEntry.refuse("it is not of this machine"))
    }

    /// Ends the session and proves that nothing of it is left. Idempotent.
    ///
    /// # Errors
    /// Something could not be removed.
    fn close(&mut self) -> Result<Closed, SessionError>;
}

/// Limits that processes of the session ran into, counted by the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitEvents {
    /// Times the process limit refused a fork.
    pub pids: u64,
    /// Times the kernel killed for memory.
    pub memory: u64,
}

impl LimitEvents {
    /// What was added since an `earlier` count. A counter never runs backwards.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            pids: self.pids.saturating_sub(earlier.pids),
            memory: self.memory.saturating_sub(earlier.memory),
        }
    }
}
