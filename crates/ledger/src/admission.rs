use flightproof_core::{CommitId, Digest};
use std::fmt;

/// What an admission is about. One key, one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionKey {
    /// The repository's common git directory, absolute.
    pub repository: String,
    /// Full name of the branch, `refs/heads/…`.
    pub branch: String,
    /// Where the branch must be.
    pub baseline: CommitId,
    /// Where it goes.
    pub head: CommitId,
}

/// The number of an admission in its ledger. Never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdmissionId(pub(crate) i64);

impl fmt::Display for AdmissionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How an admission stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Journaled before the branch was touched; no outcome yet.
    Intended,
    /// The branch moved to the head.
    Applied,
    /// The branch did not move. The same commit may be asked in again.
    NotApplied,
    /// The branch went elsewhere.
    Superseded,
    /// Nobody can tell.
    Unknown,
}

impl State {
    const ALL: [Self; 5] = [
        Self::Intended,
        Self::Applied,
        Self::NotApplied,
        Self::Superseded,
        Self::Unknown,
    ];

    /// The word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Applied => "applied",
            Self::NotApplied => "not-applied",
            Self::Superseded => "superseded",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// One admission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Its number.
    pub id: AdmissionId,
    /// What it is about.
    pub key: AdmissionKey,
    /// The certificate it was asked under.
    pub certificate: Digest,
    /// When it was journaled, unix seconds.
    pub intended_at: u64,
}

/// The answer to an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intended {
    /// Journaled: go on, and settle this number.
    Journaled(AdmissionId),
    /// The same request was applied before: its receipt, byte for byte.
    AlreadyApplied(Vec<u8>),
}
