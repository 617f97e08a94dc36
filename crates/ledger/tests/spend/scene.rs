//! A ledger to spend from.

use ed25519_dalek::{Signer as _, SigningKey};
use flightproof_core::{Digest, MicroUsd};
use flightproof_ledger::{
    Cap, Hold, HoldSize, HoldState, Ledger, LedgerCode, LedgerError, Name, Reserve, Resolution,
    Scope, Signed,
};
use std::path::PathBuf;

/// Noon of a day in 2026, unix seconds.
pub(crate) const NOON: u64 = 1_780_000_000 - 1_780_000_000 % DAY + DAY / 2;
pub(crate) const DAY: u64 = 86_400;

/// A ledger with caps and nothing spent.
pub(crate) struct Scene {
    pub(crate) _temp: tempfile::TempDir,
    pub(crate) state: PathBuf,
    pub(crate) ledger: Ledger,
}

impl Scene {
    /// Caps: 100 dollars in total, 50 a day, 20 a run.
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let mut ledger = Ledger::open(&state).unwrap();
        for (scope, amount) in [
            (Scope::Total, "100"),
            (Scope::UtcDay, "50"),
            (Scope::Run, "20"),
        ] {
            ledger
                .state_cap(scope, Cap::usd(usd(amount)), NOON)
                .unwrap();
        }
        Self {
            _temp: temp,
            state,
            ledger,
        }
    }

    pub(crate) fn reserve(&mut self, run: &str, amount: &str) -> Result<Hold, LedgerError> {
        self.ledger.reserve(&request(run, amount), NOON)
    }

    pub(crate) fn started(&mut self, run: &str, amount: &str) {
        self.reserve(run, amount).unwrap();
        self.ledger.start_run(&name(run), NOON).unwrap();
    }

    pub(crate) fn settled(&mut self, run: &str, held: &str, actual: &str) -> Hold {
        self.started(run, held);
        self.ledger
            .settle_run(&name(run), usd(actual), result(), NOON)
            .unwrap()
    }

    pub(crate) fn state_of(&self, run: &str) -> HoldState {
        self.ledger.hold(&name(run)).unwrap().unwrap().state
    }

    pub(crate) fn reopened(mut self) -> Self {
        self.ledger = self.ledger.reopen().unwrap();
        self
    }

    pub(crate) fn used(&self) -> (MicroUsd, MicroUsd) {
        let books = self.ledger.spending(NOON).unwrap().estimated;
        (books.spent, books.held)
    }
}

pub(crate) fn usd(text: &str) -> MicroUsd {
    MicroUsd::parse_or_zero(text).unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn result() -> Digest {
    Digest::of(b"result")
}

/// A hold of exactly this much, told the same limit.
pub(crate) fn request(run: &str, amount: &str) -> Reserve {
    Reserve {
        run: name(run),
        request: Digest::of(run.as_bytes()),
        size: HoldSize {
            limit: usd(amount),
            held: usd(amount),
        },
        parent: None,
    }
}

pub(crate) fn code<T: std::fmt::Debug>(answer: Result<T, LedgerError>) -> LedgerCode {
    answer.unwrap_err().code
}

pub(crate) fn resolution(run: &str, amount: &str) -> Resolution {
    Resolution {
        run: name(run),
        amount: usd(amount),
        evidence: Digest::of(b"invoice"),
    }
}

pub(crate) fn sign(resolution: &Resolution, ledger: &Ledger) -> Signed {
    let key = SigningKey::from_bytes(&[7; 32]);
    Signed {
        key: key.verifying_key().to_bytes(),
        signature: key
            .sign(&resolution.statement(&ledger.identity()))
            .to_bytes(),
    }
}
