//! The second statement: that a certified commit may come in, signed by whoever decides that.

use crate::certificate::{Admission, STATEMENT_TYPE, Statement, Subject};
use crate::dsse;
use crate::key::KeyId;
use crate::policy::AdmissionRule;
use crate::ring::Ring;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{CommitId, Digest, canonical_json, escape, parse_strict};
use serde::{Deserialize, Serialize};

/// What kind of statement it is.
pub const PREDICATE_TYPE: &str = "https://flightproof.dev/admission/v1";
/// Schema name of its predicate.
pub const SCHEMA: &str = "flightproof/admission/1";

/// The statement. It holds nothing that is not on the certificate but the branch, so that several
/// keys sign the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmissionStatement {
    /// The in-toto statement version.
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// The certificate's subject.
    pub subject: Vec<Subject>,
    /// [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// What is admitted.
    pub predicate: AdmissionPredicate,
}

/// What is admitted where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmissionPredicate {
    /// [`SCHEMA`].
    pub schema: String,
    /// The certificate's id.
    pub certificate: Digest,
    /// The operator's name for the repository.
    pub repository: String,
    /// The branch.
    pub branch: String,
    /// Where the branch is before.
    pub baseline: CommitId,
    /// Where it is after.
    pub head: CommitId,
}

/// A commit that the holders of enough keys let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetIn {
    /// The branch.
    pub branch: String,
    /// Who signed.
    pub signers: Vec<KeyId>,
}

impl AdmissionStatement {
    /// The statement that lets the commit of a certificate into a branch.
    ///
    /// # Errors
    /// `ADMISSION_MISMATCH` if the certificate itself names another branch.
    pub fn of(certificate: &Statement, id: Digest, branch: &str) -> Result<Self, CertifierError> {
        if let Admission::Admitted { branch: named } = &certificate.predicate.admission
            && named != branch
        {
            return Err(mismatch(format_args!(
                "the certificate is for branch {}",
                escape(named, 80)
            )));
        }
        let request = &certificate.predicate.inputs.request;
        Ok(Self {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: certificate.subject.clone(),
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: AdmissionPredicate {
                schema: SCHEMA.to_owned(),
                certificate: id,
                repository: request.repository.clone(),
                branch: branch.to_owned(),
                baseline: request.baseline,
                head: request.head,
            },
        })
    }

    /// The bytes to sign.
    ///
    /// # Errors
    /// `ADMISSION_MISMATCH`, if it has no canonical form (each has).
    pub fn payload(&self) -> Result<Vec<u8>, CertifierError> {
        canonical_json(self).map_err(mismatch)
    }
}

/// Checks what lets a certificate's commit in, against the policy's rule.
///
/// # Errors
/// Those of [`Ring::open`], `ADMISSION_MISMATCH` for a statement about something else,
/// `ADMISSION_BY_SIGNER` if too few of its signers are others than the certificate's.
pub(crate) fn open(
    envelope: &[u8],
    rule: &AdmissionRule,
    ring: &Ring,
    (certificate, id, signers): (&Statement, Digest, &[KeyId]),
) -> Result<LetIn, CertifierError> {
    let payload = ring.open(dsse::PAYLOAD_TYPE, envelope, rule.threshold)?;
    let found: AdmissionStatement =
        parse_strict(payload.bytes(), dsse::MAX_ENVELOPE_BYTES).map_err(mismatch)?;
    let branch = found.predicate.branch.clone();
    let expected = AdmissionStatement::of(certificate, id, &branch)?;
    if found != expected || expected.payload()? != payload.bytes() {
        return Err(mismatch(format_args!(
            "it is about certificate {}",
            found.predicate.certificate
        )));
    }
    let others = payload.signers().iter();
    let others = others.filter(|id| !signers.contains(id)).count();
    if rule.other_than_signer && others < rule.threshold {
        return Err(CertifierCode::AdmissionBySigner.refuse(format_args!(
            "{others} others than the certificate's signers, {} needed",
            rule.threshold
        )));
    }
    Ok(LetIn {
        branch,
        signers: payload.signers().to_vec(),
    })
}

fn mismatch(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::AdmissionMismatch.refuse(reason)
}
