//! Sealed sessions: opened fresh, attested before use, closed to the last process.
//!
//! One trait, several backends. What a session reports is data; only [`SessionCode`]-free answers
//! speak about the candidate, and an infrastructure fault never becomes a verdict.

use flightproof_core::Refused;
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::protocol::{Reply, Request};

flightproof_core::refusal_codes! {
    /// Refusals of the session room.
    pub enum SessionCode in "session" {
        /// The channel to the runner broke.
        SessionLost = "SESSION_LOST", Environment,
            "the session ended before it answered", "an answer that never came says nothing about the candidate", "run the flight again; if it repeats, look at the kernel log for an out-of-memory kill";
    }
}

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
    fn events(&mut self) -> Result<LimitEvents, SessionError>;

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
