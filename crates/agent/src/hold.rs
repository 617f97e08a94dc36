use flightproof_core::{Digest, MicroUsd};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What becomes of the money held for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldEffect {
    /// The cost is not known: the whole hold stays until somebody resolves it with evidence. It
    /// never runs out by itself.
    Keep,
    /// The cost is known: this much is spent, the rest is free again.
    Settle(MicroUsd),
    /// Nothing was ever started: all of it is free again.
    Release,
}

impl fmt::Display for HoldEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("the hold is kept"),
            Self::Settle(amount) => write!(f, "{amount} dollars are settled"),
            Self::Release => f.write_str("the hold is released"),
        }
    }
}

/// The key of one run: the flight's session id, fresh for every attempt. Lower-case UUID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey(String);

impl RunKey {
    /// A key of 16 bytes of the flight's entropy, written as a version 4 UUID: agent programs
    /// accept no other form as a session id.
    pub fn from_entropy(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = String::with_capacity(36);
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        Self(text)
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How much is held for a run, and what its program is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// What the program is told to spend at most.
    pub budget: MicroUsd,
    /// What is held: the budget and a margin.
    pub held: MicroUsd,
}

/// Why a change of a hold did not happen, or may not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldError {
    /// A cap, or a rule of the ledger, says no. Nothing changed.
    Refused(String),
    /// It is not known whether the change is there. Asking again under the same key is safe.
    Uncertain(String),
    /// The run was settled before, with another amount. The first stands.
    Conflict(String),
}

/// Money held per run, in whole micro-dollars. Every call is durable when it returns `Ok`, and
/// idempotent under its key: the same call again changes nothing.
pub trait Holds {
    /// Holds an amount for a run. `request` says what will be started.
    ///
    /// # Errors
    /// A cap would be passed, or the run is held otherwise.
    fn reserve(&mut self, run: &RunKey, request: Digest, amount: Amount) -> Result<(), HoldError>;

    /// Notes that the run may be started from now on; its hold can no longer be released.
    ///
    /// # Errors
    /// The run has no hold, or one that has ended.
    fn begin(&mut self, run: &RunKey) -> Result<(), HoldError>;

    /// Ends the hold as spent, whether the run was begun or not. An amount above the hold is
    /// settled as it is. `result` is what the amount was read from, if anything was.
    ///
    /// # Errors
    /// Another amount was settled before.
    fn settle(
        &mut self,
        run: &RunKey,
        actual: MicroUsd,
        result: Option<Digest>,
    ) -> Result<(), HoldError>;

    /// Ends the hold as not needed; a run without a hold has nothing to release.
    ///
    /// # Errors
    /// The run may have been started.
    fn release(&mut self, run: &RunKey) -> Result<(), HoldError>;

    /// Notes that the outcome is unknown. The hold stays in full; one that was never begun is given
    /// back.
    ///
    /// # Errors
    /// The hold has ended.
    fn keep(&mut self, run: &RunKey) -> Result<(), HoldError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_key_is_a_uuid_of_version_4() {
        let key = RunKey::from_entropy([0xff; 16]);
        assert_eq!(key.as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let key = RunKey::from_entropy([0; 16]);
        assert_eq!(key.as_str(), "00000000-0000-4000-8000-000000000000");
    }
}
