//! Letting in a commit that was certified earlier.

use super::Host;
use crate::state;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::verify::ExpectedSubject;
use flightproof_core::{Digest, Refusal};
use flightproof_importer::{self as importer, Admitted, Clearance, Git};
use flightproof_ledger::Ledger;
use std::path::Path;

/// The tree that the repository has under the certificate's commit, read anew. The commit must be one
/// on the certificate's baseline.
///
/// # Errors
/// `INCONSISTENT` if it is on another; the importer's.
pub fn subject_of(repository: &Path, statement: &Statement) -> Result<ExpectedSubject, Refusal> {
    let request = &statement.predicate.inputs.request;
    let git = Git::at(&state::program("git", "git")?)?;
    let host = importer::Host::open(&git, repository)?;
    let parent = host.resolve(&git, &format!("{}^", request.head))?;
    if parent != request.baseline {
        return Err(CertifierCode::Inconsistent
            .refuse(format_args!(
                "{} is on {parent}, certified on {}",
                request.head, request.baseline
            ))
            .into());
    }
    Host::subject(repository, &request.head.to_string())
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
    let git = Git::at(&state::program("git", "git")?)?;
    let host = importer::Host::open(&git, repository)?;
    let mut ledger = Ledger::open(&state::directory()?.join("ledger"))?;
    importer::recover(&git, &mut ledger, state::unix_seconds())?;
    let ends = (request.baseline, request.head);
    importer::check_open_or_in(&git, &host, &ledger, certificate, branch, ends)
}

/// Moves a branch to the commit of a certificate that was verified, about a tree from
/// [`subject_of`].
///
/// # Errors
/// The importer's and the ledger's refusals; nothing moved then, unless they say so.
pub fn admit_certified(
    repository: &Path,
    (statement, certificate): (&Statement, Digest),
    branch: &str,
) -> Result<Admitted, Refusal> {
    let inputs = &statement.predicate.inputs;
    let git = Git::at(&state::program("git", "git")?)?;
    let host = importer::Host::open(&git, repository)?;
    let now = state::unix_seconds();
    let mut ledger = Ledger::open(&state::directory()?.join("ledger"))?;
    importer::recover(&git, &mut ledger, now)?;
    let clearance = Clearance::of_certificate(
        &inputs.session_execution.remains,
        certificate,
        (inputs.request.baseline, inputs.request.head),
        branch,
    )?;
    importer::admit(&git, &host, &mut ledger, &clearance, now)
}
