//! `flights cert cosign`: one more signature on what others have signed.

use super::super::key::{self, SignerArgs};
use super::{envelope, input, public_keys};
use crate::show::{self, Format};
use crate::state;
use clap::Args;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::dsse;
use flightproof_certifier::key::PublicKey;
use flightproof_certifier::revocation::{self, RevocationList};
use flightproof_core::{Decision, Digest, Exit, Refusal, Verdict, escape};
use std::path::PathBuf;

/// `flights cert cosign`.
#[derive(Args)]
pub(in super::super) struct CosignArgs {
    /// The certificate or the revocation list. The signature is added to the file.
    file: PathBuf,
    /// A public key that signed it (repeatable).
    #[arg(long = "trust", value_name = "PUB", required = true)]
    trusted: Vec<PathBuf>,
    #[command(flatten)]
    signer: SignerArgs,
}

/// What is signed.
struct Signed {
    payload_type: &'static str,
    payload: Vec<u8>,
    /// What it says, for people.
    told: String,
}

/// Adds a signature. A policy that wants several distinct keys counts it.
///
/// # Errors
/// A file that none of the keys signed, or that is neither; a key that does not sign.
pub(super) fn run(args: &CosignArgs, format: Format) -> Result<Exit, Refusal> {
    let trusted = public_keys(&args.trusted)?;
    let key = key::signer(&args.signer)?;
    // Of two at once, one signature would be lost.
    let _held = state::hold_folder_of(&args.file)?;
    let before = envelope(&args.file)?;
    let signed = read(&before, &trusted)?;
    let joined = dsse::join(&before, signed.payload_type, &signed.payload, key.as_ref())?;
    input::replace(&args.file, &joined, 0o644)?;
    let detail = format!(
        "{}: signed by {} as well: {}",
        signed.told,
        key.public_key().id(),
        input::shown(&args.file)
    );
    show::verdict(
        &Verdict::passed(Decision::Accepted, "cosign", detail),
        format,
    );
    Ok(Exit::Passed)
}

/// Only what can be read in full is signed, and what somebody known has signed.
fn read(envelope: &[u8], trusted: &[PublicKey]) -> Result<Signed, Refusal> {
    if dsse::unchecked(envelope, revocation::PAYLOAD_TYPE).is_ok() {
        let signed = dsse::open_as(revocation::PAYLOAD_TYPE, envelope, trusted, 1)?;
        let list = RevocationList::parse(signed.bytes())?;
        return Ok(Signed {
            payload_type: revocation::PAYLOAD_TYPE,
            payload: signed.bytes().to_vec(),
            told: format!("list {}, version {}", list.list, list.version),
        });
    }
    let signed = dsse::open(envelope, trusted, 1)?;
    let request = Statement::parse(signed.bytes())?.predicate.inputs.request;
    Ok(Signed {
        payload_type: dsse::PAYLOAD_TYPE,
        payload: signed.bytes().to_vec(),
        told: format!(
            "certificate {} of commit {} of {}",
            Digest::of(signed.bytes()),
            request.head,
            escape(&request.repository, 80)
        ),
    })
}
