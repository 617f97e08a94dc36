//! `flights refly`: what was certified on a baseline that moved since, flown again on the new one.

use super::bundle::Desk;
use super::cert::public_keys;
use super::certify::{self, CertifyArgs, FlightArgs};
use super::repository::Repository;
use super::{input, key};
use crate::show::Form;
use clap::Args;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::dsse::{self, MAX_ENVELOPE_BYTES};
use flightproof_certifier::key::PublicKey;
use flightproof_core::{CommitId, Exit, Refusal};
use flightproof_importer::replay;
use std::path::PathBuf;

/// `flights refly`.
#[derive(Args)]
pub(super) struct ReflyArgs {
    /// The certificate of the work as it was.
    certificate: PathBuf,
    /// Commit to fly it on: one that its baseline leads to.
    #[arg(long, value_name = "REV")]
    onto: String,
    /// Directory of the repository, which has the certified commit; default: the one that the current
    /// directory lies in.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The new baseline's certificate, and those it builds on (repeatable): all of them, down to the one
    /// without a parent.
    #[arg(long = "parent", value_name = "CERT")]
    parents: Vec<PathBuf>,
    /// A public key that the certificate and those parents may be of (repeatable); default: that of the
    /// signing key.
    #[arg(long, value_name = "PUB")]
    trust: Vec<PathBuf>,
    #[command(flatten)]
    flight: FlightArgs,
}

/// Merges the certified commit into the new baseline, as one commit, and certifies that from the first
/// gate to the last. Nothing of the old certificate is believed but which work it was of.
///
/// # Errors
/// A certificate that is not of a trusted key, and the importer's: `MERGE_CONFLICT` names the paths. All
/// else is a verdict.
pub(super) fn run(args: &ReflyArgs, form: Form) -> Result<Exit, Refusal> {
    // Only to know whose certificates count is it opened before the flight.
    let own = args.trust.is_empty();
    let key = own.then(|| key::signer(&args.flight.signer)).transpose()?;
    let trusted = match &key {
        Some(own) => vec![own.public_key()],
        None => public_keys(&args.trust)?,
    };
    let ends = certified(args, &trusted)?;
    let repo = Repository::of(args.repo.as_deref())?.top;
    let candidate = {
        let desk = Desk::open(&repo)?;
        replay(&desk.git, &desk.host, ends, &args.onto, desk.work.path())
            .map_err(|e| desk.told(e))?
    };
    let order = CertifyArgs {
        repo: Some(repo),
        baseline: args.onto.clone(),
        candidate: candidate.to_string(),
        narrow: Vec::new(),
        parents: args.parents.clone(),
        trust: args.trust.clone(),
        flight: args.flight.clone(),
    };
    certify::run_with(&order, key, form)
}

/// Baseline and head of the certificate.
fn certified(args: &ReflyArgs, trusted: &[PublicKey]) -> Result<(CommitId, CommitId), Refusal> {
    let envelope = input::read(&args.certificate, MAX_ENVELOPE_BYTES)?;
    let payload = dsse::open(&envelope, trusted, 1)?;
    let request = Statement::parse(payload.bytes())?.predicate.inputs.request;
    Ok((request.baseline, request.head))
}
