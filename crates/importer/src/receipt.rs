use crate::{ImportError, ImporterCode};
use flightproof_core::{CommitId, Digest, canonical_json};
use flightproof_ledger::{AdmissionKey, uncertified};
use serde::{Deserialize, Serialize};

/// Proof that a branch moved. Written once, in canonical JSON; read again byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Always [`Receipt::SCHEMA`].
    pub schema: String,
    /// The repository's common git folder.
    pub repository: String,
    /// Full name of the branch.
    pub branch: String,
    /// Where it was.
    pub baseline: CommitId,
    /// Where it went.
    pub head: CommitId,
    /// The commit of the certificate, where the head is that commit with a signature added.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unsigned: Option<CommitId>,
    /// The certificate it went by; absent if nothing but a person vouched for the commit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub certificate: Option<Digest>,
    /// When this receipt was written, unix seconds.
    pub written_at: u64,
    /// The run that moved the branch died before it could write this; a later one read the branch.
    pub recovered: bool,
    /// Where the branch had gone on to when it was recovered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub moved_on_to: Option<CommitId>,
}

impl Receipt {
    /// The format's name.
    pub const SCHEMA: &'static str = "flightproof/receipt/1";

    pub(crate) fn new(key: &AdmissionKey, certificate: Digest, now: u64) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            repository: key.repository.clone(),
            branch: key.branch.clone(),
            baseline: key.baseline,
            head: key.head,
            unsigned: None,
            certificate: Some(certificate).filter(|given| *given != uncertified()),
            written_at: now,
            recovered: false,
            moved_on_to: None,
        }
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>, ImportError> {
        canonical_json(self).map_err(|e| ImporterCode::AdmissionUncertain.refuse(e))
    }
}
