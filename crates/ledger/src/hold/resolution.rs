use crate::hold::rows::stored;
use crate::hold::{HoldEffect, HoldEvent};
use crate::store::{Table, Writing, seconds};
use crate::{Hold, Ledger, LedgerCode, LedgerError, Name};
use ed25519_dalek::{Signature, VerifyingKey};
use flightproof_core::{Digest, MicroUsd};

/// An operator's word on what a run of unknown outcome has spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The run.
    pub run: Name,
    /// What it spent; zero where the evidence says so.
    pub amount: MicroUsd,
    /// Digest of the evidence: an invoice, a usage export.
    pub evidence: Digest,
}

/// An Ed25519 signature of [`Resolution::statement`], and the key that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The 32 bytes of the public key. Whether it is an operator's is the caller's knowledge.
    pub key: [u8; 32],
    /// The 64 bytes of the signature.
    pub signature: [u8; 64],
}

impl Resolution {
    /// The bytes to sign: canonical JSON that names this ledger, so that the signature fits no other.
    pub fn statement(&self, ledger: &str) -> Vec<u8> {
        // Names and digests need no escape, and the keys are in order.
        format!(
            r#"{{"evidence":"{}","ledger":"{ledger}","micro_usd":{},"run":"{}","schema":"flightproof.spend-resolution/1"}}"#,
            self.evidence,
            self.amount.micros(),
            self.run
        )
        .into_bytes()
    }
}

impl Ledger {
    /// Says what a run of unknown outcome has spent. Recorded for good, with evidence and signature;
    /// the same word again changes nothing.
    ///
    /// # Errors
    /// `RESOLUTION_UNSIGNED` if the signature is not that of `key` over the statement for this
    /// ledger, `HOLD_UNKNOWN`, `HOLD_REFUSED` if the run is not unknown or was resolved otherwise.
    pub fn resolve_run(
        &mut self,
        resolution: &Resolution,
        signed: &Signed,
        now: u64,
    ) -> Result<Hold, LedgerError> {
        let statement = resolution.statement(&self.identity());
        verify(&statement, signed)?;
        self.write(|w| w.resolve(resolution, &statement, signed, now))
    }
}

impl Writing<'_> {
    fn resolve(
        &self,
        resolution: &Resolution,
        statement: &[u8],
        signed: &Signed,
        now: u64,
    ) -> Result<Hold, LedgerError> {
        let (hold, effect) = self.hold_event(
            &resolution.run,
            HoldEvent::Resolve(resolution.amount),
            Some(resolution.evidence),
            now,
        )?;
        if effect == HoldEffect::Store {
            self.insert(
                &RESOLUTIONS,
                &[
                    &resolution.run,
                    &stored(resolution.amount),
                    &resolution.evidence.to_string(),
                    &statement,
                    &&signed.key[..],
                    &&signed.signature[..],
                    &seconds(now),
                ],
            )?;
        }
        Ok(hold)
    }
}

fn verify(statement: &[u8], signed: &Signed) -> Result<(), LedgerError> {
    let unsigned = |why: &str| LedgerCode::ResolutionUnsigned.refuse(why);
    let key = VerifyingKey::from_bytes(&signed.key).map_err(|_| unsigned("no key"))?;
    // A weak key has signatures that fit anything.
    if key.is_weak() {
        return Err(unsigned("a weak key"));
    }
    key.verify_strict(statement, &Signature::from_bytes(&signed.signature))
        .map_err(|_| unsigned("the signature does not fit the statement"))
}

pub(crate) static RESOLUTIONS: Table = Table::new(
    "resolutions",
    "run, micro_usd, evidence, statement, key, signature, resolved_at",
);
