//! Verifying a certificate: a signature, a statement that can be true, about this tree, and good
//! enough for this policy. There is no way to ask for less.

use crate::certificate::{Admission, Statement};
use crate::claim::{RequestClaim, WaiverClaim};
use crate::judge::Gate;
use crate::key::{KeyId, PublicKey};
use crate::policy::Policy;
use crate::{CertifierCode, CertifierError, consistency, dsse};
use flightproof_core::{CommitId, Digest, RelPath, escape};
use flightproof_evidence::Closed;

/// The tree somebody wants to know about, computed from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedSubject {
    /// Snapshot id of the tree.
    pub snapshot: Digest,
    /// Digest of its symlinks and gitlinks; absent when it has none.
    pub kept: Option<Digest>,
}

/// A certificate that holds: signed by enough trusted keys, true as far as it can be checked,
/// about the expected tree, and good enough for the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The certificate's id.
    pub id: Digest,
    /// Whether it alone lets the commit in.
    pub admission: Admission,
    /// The operator's name for the repository. A name, not evidence.
    pub repository: String,
    /// The commit it was made for. The same tree under another commit is certified as well.
    pub head: CommitId,
    /// Everything that was asked for.
    pub request: RequestClaim,
    /// What was left of the session after its end.
    pub remains: Closed,
    /// The gates that were passed.
    pub gates: Vec<Gate>,
    /// Mutants that were waived.
    pub waivers: Vec<WaiverClaim>,
    /// The paths that flew in place of the whole tree; absent if all of it flew.
    pub narrowed: Option<Vec<RelPath>>,
    /// Commitment of the witness.
    pub witness: Digest,
    /// The trusted keys that signed.
    pub signers: Vec<KeyId>,
}

/// Verifies a certificate file under a policy.
///
/// `keys` are those the caller trusts; the policy may narrow them. The answer is about the tree,
/// so an old certificate is valid again when the tree is reverted to the bytes it certifies.
///
/// # Errors
/// The first of: `KEY_UNAUTHORIZED`; those of [`dsse::open`]; those of [`Statement::parse`]; a
/// statement that cannot be true (`SUBJECT_MISSING`, `DIGEST_UNACCEPTABLE`, `DIGEST_MALFORMED`,
/// `SESSION_MISMATCH`, `LINEAGE_UNSUPPORTED`, `CLAIM_EMPTY`, `INCONSISTENT`); `SUBJECT_MISMATCH`;
/// what the policy refuses (`GATE_MISSING`, `REPOSITORY_MISMATCH`, `WITNESS_MISMATCH`,
/// `WITNESS_PUBLIC`, `NARROWED_NOT_ALLOWED`, `WAIVERS_TOO_MANY`, `BUILD_SCRIPT_RAN`, `PROC_MACRO_RAN`).
pub fn verify(
    envelope: &[u8],
    policy: &Policy,
    keys: &[PublicKey],
    subject: &ExpectedSubject,
) -> Result<Verified, CertifierError> {
    let trusted = policy.authorized(keys);
    if trusted.is_empty() {
        return Err(CertifierCode::KeyUnauthorized
            .refuse(format_args!("none of {} given keys", keys.len())));
    }
    let payload = dsse::open(envelope, &trusted, policy.threshold())?;
    let statement = Statement::parse(payload.bytes())?;
    consistency::check(&statement)?;
    is_about(&statement, subject)?;
    permitted(&statement, policy)?;
    Ok(verified(statement, &payload))
}

fn verified(statement: Statement, payload: &dsse::VerifiedPayload) -> Verified {
    let inputs = statement.predicate.inputs;
    Verified {
        id: Digest::of(payload.bytes()),
        admission: statement.predicate.admission,
        repository: inputs.request.repository.clone(),
        head: inputs.request.head,
        request: inputs.request,
        remains: inputs.session_execution.remains,
        gates: statement.predicate.gates,
        waivers: [inputs.mutation.waived, inputs.mutation.unjudged].concat(),
        narrowed: inputs.capture.narrowed.map(|narrowed| narrowed.paths),
        witness: inputs.witness.commitment,
        signers: payload.signers().to_vec(),
    }
}

/// Both halves of the tree must be the expected ones; a half that one side lacks is a difference.
fn is_about(statement: &Statement, expected: &ExpectedSubject) -> Result<(), CertifierError> {
    let subject = consistency::subject(statement)?;
    let certified = consistency::snapshot(subject)?;
    if certified != expected.snapshot {
        return Err(CertifierCode::SubjectMismatch.refuse(format_args!(
            "certified snapshot {certified}, this tree {}",
            expected.snapshot
        )));
    }
    let kept = subject.annotations.as_ref().map(|a| a.kept_digest);
    if kept != expected.kept {
        return Err(CertifierCode::SubjectMismatch.refuse(format_args!(
            "certified symlinks and gitlinks {}, this tree {}",
            shown(kept),
            shown(expected.kept)
        )));
    }
    Ok(())
}

fn shown(digest: Option<Digest>) -> String {
    digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string())
}

fn permitted(statement: &Statement, policy: &Policy) -> Result<(), CertifierError> {
    let inputs = &statement.predicate.inputs;
    for gate in policy.required_gates() {
        if !statement.predicate.gates.contains(gate) {
            return Err(CertifierCode::GateMissing.refuse(gate.name()));
        }
    }
    let repository = &inputs.request.repository;
    if policy
        .repository()
        .is_some_and(|wanted| wanted != repository)
    {
        return Err(CertifierCode::RepositoryMismatch.refuse(escape(repository, 80)));
    }
    let commitment = inputs.witness.commitment;
    if policy.witness().is_some_and(|wanted| wanted != commitment) {
        return Err(CertifierCode::WitnessMismatch.refuse(format_args!("got {commitment}")));
    }
    allowed(statement, policy)
}

fn allowed(statement: &Statement, policy: &Policy) -> Result<(), CertifierError> {
    let inputs = &statement.predicate.inputs;
    let allow = policy.allow();
    if inputs.witness.public && !allow.public_witness {
        return Err(CertifierCode::WitnessPublic.refuse("allow.public_witness is not set"));
    }
    if let Some(narrowed) = &inputs.capture.narrowed
        && !allow.narrowed
    {
        return Err(CertifierCode::NarrowedNotAllowed.refuse(format_args!(
            "{} paths flew; allow.narrowed is not set",
            narrowed.paths.len()
        )));
    }
    let waived = (inputs.mutation.waived.len() + inputs.mutation.unjudged.len()) as u64;
    if waived > allow.waivers_max {
        return Err(CertifierCode::WaiversTooMany.refuse(format_args!(
            "{waived}, at most {} allowed",
            allow.waivers_max
        )));
    }
    if inputs.session_build.build_scripts && !allow.build_scripts {
        return Err(CertifierCode::BuildScriptRan.refuse("allow.build_scripts is not set"));
    }
    if inputs.session_build.proc_macros && !allow.proc_macros {
        return Err(CertifierCode::ProcMacroRan.refuse("allow.proc_macros is not set"));
    }
    Ok(())
}
