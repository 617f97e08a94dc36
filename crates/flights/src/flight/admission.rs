//! Letting in a commit that was certified earlier.

use super::{Host, WorkDirectory, open_repository};
use crate::{FlightsCode, log, regular, state};
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::verify::{ExpectedSubject, Verified};
use flightproof_core::{Code as _, CommitId, Decision, Digest, Refusal, Verdict, escape};
use flightproof_importer::{self as importer, Admitted, Clearance, ImporterCode, Receipt};
use flightproof_ledger::Ledger;
use std::path::Path;

/// The tree that the repository has under the certificate's commit, read anew. The commit must be one
/// on the certificate's baseline.
///
/// # Errors
/// `INCONSISTENT` if it is on another; the importer's.
pub fn subject_of(repository: &Path, statement: &Statement) -> Result<ExpectedSubject, Refusal> {
    let request = &statement.predicate.inputs.request;
    let (git, host) = open_repository(repository)?;
    let parent = host.resolve(&git, &format!("{}^", request.head))?;
    if parent != request.baseline {
        return Err(CertifierCode::Inconsistent
            .refuse(format_args!(
                "{} is on {parent}, certified on {}",
                request.head, request.baseline
            ))
            .into());
    }
    Ok(Host::subject(repository, &request.head.to_string())?.1)
}

/// Refuses an admission whose branch cannot move, before anything is signed for it.
///
/// # Errors
/// The importer's and the ledger's.
pub fn check_branch(
    repository: &Path,
    (statement, certificate): (&Statement, Digest),
    branch: &str,
) -> Result<(), Refusal> {
    let request = &statement.predicate.inputs.request;
    let (git, host) = open_repository(repository)?;
    let mut ledger = Ledger::open(&state::directory()?.join("ledger"))?;
    importer::recover(&git, &mut ledger, state::unix_seconds())?;
    let ends = (request.baseline, request.head);
    let work = WorkDirectory::new(&state::directory()?)?;
    importer::check_open_or_in(&git, &host, &ledger, certificate, branch, ends, work.path())
}

/// Moves a branch to the commit of a certificate that satisfies its policy, about a tree from
/// [`subject_of`].
///
/// # Errors
/// The importer's and the ledger's refusals; nothing moved then, unless they say so.
pub fn admit_certified(
    repository: &Path,
    certificate: &Verified,
    branch: &str,
) -> Result<Admitted, Refusal> {
    let request = &certificate.request;
    let (git, host) = open_repository(repository)?;
    let now = state::unix_seconds();
    let mut ledger = Ledger::open(&state::directory()?.join("ledger"))?;
    importer::recover(&git, &mut ledger, now)?;
    let ends = (request.baseline, request.head);
    let work = WorkDirectory::new(&state::directory()?)?;
    let changes = importer::changes_of(&git, &host, ends, work.path())?;
    let clearance =
        Clearance::of_certificate(&certificate.remains, certificate.id, ends, changes, branch)?;
    importer::admit(&git, &host, &mut ledger, &clearance, now)
}

/// Hands over what a move came to, of a commit whose repository has this name. The branch has moved: what
/// cannot be written now turns nothing, and is returned as notes. The receipt is in the ledger as well.
pub(crate) fn hand_over(
    admitted: &Admitted,
    receipt: &Path,
    named: (CommitId, &str),
) -> Vec<String> {
    let unlogged = log::moves(Some(named));
    let unwritten = state::write_file(receipt, &admitted.receipt, 0o644).err();
    let unwritten = unwritten.map(|refusal| {
        format!(
            "the receipt could not be written, and the ledger has it: {}",
            refusal.detail
        )
    });
    unlogged.into_iter().chain(unwritten).collect()
}

/// What is told of a file about something that stands without it.
pub(crate) fn unwritten(refusal: Refusal) -> String {
    format!("could not be written: {}", refusal.detail)
}

/// The verdict of a flight whose certificate, if it was made, did not let its commit in: it stands all the
/// same, and says what was asked for and not what came of it.
pub(crate) fn not_let_in(mut verdict: Verdict, certificate: Option<Digest>) -> Verdict {
    let Some(certificate) = certificate else {
        return verdict;
    };
    // Where nobody knows whether the branch moved, the refusal says so and no more is said here.
    let uncertain = ImporterCode::AdmissionUncertain.explanation().code;
    if verdict.code.as_deref() != Some(uncertain) {
        verdict.notes.push(NOT_LET_IN.to_owned());
    }
    verdict.certificate = Some(certificate.to_string());
    verdict
}

/// What is told of a certificate whose commit did not come in.
pub(crate) const NOT_LET_IN: &str =
    "the certificate stands, and the branch did not move to its commit: `flights admit` moves it";

/// Refuses a place for a receipt where that of another certificate lies.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`.
pub(crate) fn check_receipt(receipt: &Path, certificate: Digest) -> Result<(), Refusal> {
    let other = match regular::read(receipt, MAX_RECEIPT) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(occupied(receipt, e)),
    };
    let other: serde_json::Value = serde_json::from_slice(&other).unwrap_or_default();
    match other.get("certificate").and_then(serde_json::Value::as_str) {
        Some(id) if *id == *certificate.to_string() => Ok(()),
        _ => Err(occupied(receipt, "it is the receipt of something else")),
    }
}

/// The branch that the receipt of a certificate names, if one lies there.
pub(crate) fn branch_of_receipt(receipt: &Path, certificate: Digest) -> Option<String> {
    let receipt = regular::read(receipt, MAX_RECEIPT).ok()?;
    let receipt: Receipt = serde_json::from_slice(&receipt).ok()?;
    (receipt.certificate == Some(certificate)).then_some(receipt.branch)
}

fn occupied(path: &Path, why: impl std::fmt::Display) -> Refusal {
    let detail = format!("{}: {why}", path.display());
    FlightsCode::OutputUnwritable.refuse(detail).into()
}

/// Largest receipt in bytes.
const MAX_RECEIPT: u64 = 64 << 10;

/// Most bytes of a branch or a path in a verdict.
const MAX_SHOWN: usize = 2048;

/// What is told of a branch that moved, at any of the commands that move one.
pub(crate) fn moved(
    stage: &str,
    admitted: &Admitted,
    branch: &str,
    (baseline, head): (CommitId, CommitId),
) -> Verdict {
    let branch = escape(branch, MAX_SHOWN);
    let detail = match admitted {
        Admitted { repeated: true, .. } => {
            format!("{branch} was moved from {baseline} to {head} before: nothing was done")
        }
        Admitted { landed: true, .. } => format!(
            "{branch} moved from {baseline} to {head}, and with it the files and the index of the \
             working tree"
        ),
        _ => format!("{branch} moved from {baseline} to {head}; no working tree is on it"),
    };
    let kept = admitted.kept.iter();
    let kept = kept.map(|path| {
        let path = escape(path, MAX_SHOWN);
        format!("kept: {path}, which somebody wrote to meanwhile")
    });
    Verdict {
        notes: kept.collect(),
        ..Verdict::passed(Decision::Admitted, stage, detail)
    }
}
