//! `flights admit`: the second statement, and the branch.

use super::cert::{BesideArgs, envelope, policy, public_keys};
use super::input;
use super::key::{self, SignerArgs};
use crate::show::{self, Format};
use crate::source::directory_name;
use crate::{flight, log, state};
use clap::Args;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::admission::AdmissionStatement;
use flightproof_certifier::dsse::{self, PAYLOAD_TYPE};
use flightproof_certifier::key::Signer;
use flightproof_certifier::verify::{Opened, open};
use flightproof_core::{Decision, Digest, Exit, Refusal, Verdict};
use std::path::{Path, PathBuf};

/// `flights admit`.
#[derive(Args)]
pub(super) struct AdmitArgs {
    /// The certificate.
    certificate: PathBuf,
    /// Directory of the repository.
    #[arg(long, value_name = "DIR")]
    repo: PathBuf,
    /// The branch that moves from the certificate's baseline to its commit.
    #[arg(long, value_name = "BRANCH")]
    branch: String,
    /// What a certificate must prove, and who may let it in.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// A trusted public key (repeatable), for whatever role the policy gives it.
    #[arg(long = "trust", value_name = "PUB", required = true)]
    trusted: Vec<PathBuf>,
    #[command(flatten)]
    beside: BesideArgs,
    #[command(flatten)]
    signer: SignerArgs,
    /// The second statement; default: admission.dsse.json beside the certificate. If it is there,
    /// this key's signature is added, and the branch moves once enough have signed.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Checks the certificate, signs the second statement, and moves the branch if enough keys signed.
///
/// # Errors
/// What the verifier, the key and the importer refuse. Refusals are in the log.
pub(super) fn run(args: &AdmitArgs, format: Format) -> Result<Exit, Refusal> {
    let keys = public_keys(&args.trusted)?;
    let policy = policy(&args.policy)?;
    let certificate = envelope(&args.certificate)?;
    let unopened = |refusal| unopened(args, &certificate, refusal);
    let beside = args.beside.read(&policy, &keys).map_err(unopened)?;
    let opened = open(&certificate, &policy, &keys, &beside);
    let opened = opened.map_err(|refused| unopened(refused.into()))?;
    let verdict = match admit(args, &opened) {
        Ok(verdict) => verdict,
        Err(refusal) => {
            let request = &opened.statement().predicate.inputs.request;
            let head = request.head.to_string();
            return Err(log::refused("admit", refusal, &request.repository, &head));
        }
    };
    show::verdict(&verdict, format);
    Ok(Exit::Passed)
}

/// A refusal of a certificate that does not open, once it is in the log. Nobody vouches for what it says, so it
/// is named by its id, and the repository by its folder.
fn unopened(args: &AdmitArgs, certificate: &[u8], refusal: Refusal) -> Refusal {
    let id = dsse::unchecked(certificate, PAYLOAD_TYPE).map(|payload| Digest::of(&payload));
    let asked = match id {
        Ok(id) => format!("certificate {id}"),
        Err(_) => "no certificate".to_owned(),
    };
    log::refused("admit", refusal, &directory_name(&args.repo), &asked)
}

fn admit(args: &AdmitArgs, opened: &Opened<'_>) -> Result<Verdict, Refusal> {
    let statement = opened.statement();
    let held = opened.holds(&flight::subject_of(&args.repo, statement)?)?;
    let place = args.output.clone();
    let place = place.unwrap_or_else(|| args.certificate.with_file_name("admission.dsse.json"));
    input::parent(&place)?;
    input::apart(&place, &[&args.certificate, &args.policy])?;
    let receipt = place.with_file_name("receipt.json");
    flight::check_receipt(&receipt, opened.id())?;
    flight::check_branch(&args.repo, (statement, opened.id()), &args.branch)?;
    let key = key::signer(&args.signer)?;
    opened.may_admit(&key.public_key())?;
    // Two at once would each add to what was there before, and one signature would be lost.
    let _held = state::hold_folder_of(&place)?;
    let second = sign(opened, &args.branch, &place, key.as_ref())?;
    // Where the policy asks for none, it says who let the commit in.
    let asked = opened.policy().admission().map(|_| second.as_slice());
    let certificate = match held.let_in(asked) {
        Ok(certificate) => certificate,
        Err(short) if is_short(short.code) => {
            input::replace(&place, &second, 0o644)?;
            return Ok(waiting(opened, &short.detail, &place));
        }
        Err(refused) => return Err(refused.into()),
    };
    input::replace(&place, &second, 0o644)?;
    let admitted = flight::admit_certified(&args.repo, &certificate, &args.branch)?;
    let request = &certificate.request;
    let notes = flight::hand_over(&admitted, &receipt, (request.head, &request.repository));
    let ends = (request.baseline, request.head);
    let mut verdict = flight::moved("admit", &admitted, &args.branch, ends);
    verdict.notes.extend(notes);
    Ok(Verdict {
        certificate: Some(certificate.id.to_string()),
        ..verdict
    })
}

/// The second statement with this key's signature beside those that are there.
fn sign(
    opened: &Opened<'_>,
    branch: &str,
    place: &Path,
    key: &dyn Signer,
) -> Result<Vec<u8>, Refusal> {
    let second = AdmissionStatement::of(opened.statement(), opened.id(), branch)?;
    let payload = second.payload()?;
    match place.exists() {
        true => dsse::join(&envelope(place)?, PAYLOAD_TYPE, &payload, key),
        false => dsse::sign(PAYLOAD_TYPE, &payload, key),
    }
}

fn is_short(code: CertifierCode) -> bool {
    [
        CertifierCode::ThresholdNotMet,
        CertifierCode::AdmissionBySigner,
    ]
    .contains(&code)
}

/// Signed, and not enough yet.
fn waiting(opened: &Opened<'_>, short: &str, place: &Path) -> Verdict {
    let detail = format!("signed, and more must: {short}: {}", input::shown(place));
    Verdict {
        certificate: Some(opened.id().to_string()),
        ..Verdict::passed(Decision::Held, "admit", detail)
    }
}
