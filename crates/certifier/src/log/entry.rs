//! One entry of the log.

use crate::{CertifierCode, CertifierError};
use flightproof_core::{CommitId, Digest, Moment, canonical_json, escape, parse_strict};
use serde::{Deserialize, Serialize};

/// Schema name of an entry of the first version.
const SCHEMA: &str = "flightproof/log-entry/1";
/// Schema name of an entry with an event that the first version does not have.
const SCHEMA_2: &str = "flightproof/log-entry/2";
/// Largest entry in bytes: a bundle of entries has two bytes for each length.
pub const MAX_ENTRY_BYTES: usize = 65_535;
/// Most bytes of each text in an entry.
const MAX_TEXT: usize = 400;

/// What happened, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    schema: String,
    /// When it was written, by the clock of the machine.
    pub at: Moment,
    /// What happened.
    pub event: Event,
    /// The operator's name for the repository, as [`Entry::new`] writes it; ask [`Entry::is_of`].
    pub repository: String,
    /// The candidate as it was asked for.
    pub candidate: String,
}

/// What can happen to a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// It was certified.
    Certified {
        /// The certificate's id.
        certificate: Digest,
        /// The commit.
        head: CommitId,
    },
    /// It was let into a branch.
    Admitted {
        /// The certificate's id.
        certificate: Digest,
        /// The commit.
        head: CommitId,
        /// The branch.
        branch: String,
    },
    /// It was let into a branch, and nothing but a person vouched for it. Since version 2.
    Uncertified {
        /// The commit.
        head: CommitId,
        /// The branch.
        branch: String,
    },
    /// It was refused.
    Refused {
        /// The stage that refused it.
        stage: String,
        /// The code.
        code: String,
    },
}

impl Event {
    /// The certificate it is about.
    pub fn certificate(&self) -> Option<Digest> {
        match self {
            Self::Certified { certificate, .. } | Self::Admitted { certificate, .. } => {
                Some(*certificate)
            }
            Self::Uncertified { .. } | Self::Refused { .. } => None,
        }
    }

    /// The schema of an entry about it: the oldest that has it.
    fn schema(&self) -> &'static str {
        match self {
            Self::Uncertified { .. } => SCHEMA_2,
            _ => SCHEMA,
        }
    }
}

impl Entry {
    /// An entry. Texts that are too long are cut.
    pub fn new(at: Moment, event: Event, repository: &str, candidate: &str) -> Self {
        Self {
            schema: event.schema().to_owned(),
            at,
            event,
            repository: escape(repository, MAX_TEXT),
            candidate: escape(candidate, MAX_TEXT),
        }
    }

    /// Whether it is about the repository of this name. Names that are written alike are one.
    pub fn is_of(&self, repository: &str) -> bool {
        self.repository == escape(repository, MAX_TEXT)
    }

    /// Its bytes in the log.
    ///
    /// # Errors
    /// `LOG_BROKEN` if it has no canonical form or is too long (none is).
    pub fn bytes(&self) -> Result<Vec<u8>, CertifierError> {
        let bytes = canonical_json(self).map_err(broken)?;
        match bytes.len() <= MAX_ENTRY_BYTES {
            true => Ok(bytes),
            false => Err(broken("an entry of more than 65,535 bytes")),
        }
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// `LOG_BROKEN`.
    pub fn parse(bytes: &[u8]) -> Result<Self, CertifierError> {
        let entry: Self = parse_strict(bytes, MAX_ENTRY_BYTES).map_err(broken)?;
        if entry.schema != entry.event.schema() {
            return Err(broken(format_args!(
                "schema \"{}\"",
                escape(&entry.schema, 60)
            )));
        }
        match entry.bytes()? == bytes {
            true => Ok(entry),
            false => Err(broken("an entry that is not in canonical form")),
        }
    }
}

fn broken(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::LogBroken.refuse(reason)
}
