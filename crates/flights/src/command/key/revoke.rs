//! `flights key revoke`: the next version of a revocation list.

use super::super::cert::beside::Memory;
use super::super::input;
use super::{SignerArgs, signer};
use crate::show::{self, Format};
use crate::{FlightsCode, state};
use clap::Args;
use flightproof_certifier::dsse::{self, MAX_ENVELOPE_BYTES};
use flightproof_certifier::key::{PublicKey, Signer};
use flightproof_certifier::revocation::{ListName, PAYLOAD_TYPE, RevocationList, Revoked};
use flightproof_core::{Decision, Digest, Exit, Moment, Refusal, Verdict};
use std::path::PathBuf;

/// `flights key revoke`.
#[derive(Args)]
pub(in super::super) struct RevokeArgs {
    /// Ids of keys that count no more.
    keys: Vec<Digest>,
    /// Id of a certificate that counts no more (repeatable).
    #[arg(long = "certificate", value_name = "ID")]
    certificates: Vec<Digest>,
    /// Why.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// The list. Its next version is written in its place; without anything to revoke, only its
    /// time is renewed.
    #[arg(long, value_name = "FILE")]
    list: PathBuf,
    /// Name of a new list; the policies that want it name it too.
    #[arg(long, value_name = "NAME")]
    new: Option<ListName>,
    /// For how many days the version is good, at most 366.
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: u64,
    #[command(flatten)]
    signer: SignerArgs,
}

/// Writes and signs the next version.
///
/// # Errors
/// A list that this key did not sign; `LIST_MISSING`; what the list refuses.
pub(in super::super) fn revoke(args: &RevokeArgs, format: Format) -> Result<Exit, Refusal> {
    input::parent(&args.list)?;
    let key = signer(&args.signer)?;
    let now = Moment::from_unix(state::unix_seconds());
    // Two at once would both write the version that follows, and one would be lost.
    let _held = state::hold_folder_of(&args.list)?;
    let mut list = version(args, &key.public_key(), now)?;
    let revoked = Revoked {
        since: now,
        reason: args.reason.clone(),
    };
    for id in &args.keys {
        list.keys.entry(*id).or_insert_with(|| revoked.clone());
    }
    for id in &args.certificates {
        let place = list.certificates.entry(*id);
        place.or_insert_with(|| revoked.clone());
    }
    let signed = list.sign(key.as_ref() as &dyn Signer)?;
    let seen = list.seen(&dsse::unchecked(&signed, PAYLOAD_TYPE)?);
    let memory = Memory::of(&list.list)?;
    memory.check(&seen)?;
    input::replace(&args.list, &signed, 0o644)?;
    memory.keep(&seen)?;
    let detail = format!(
        "list {}, version {}: {}, {}, good until {}",
        list.list,
        list.version,
        show::count(list.keys.len(), "key"),
        show::count(list.certificates.len(), "certificate"),
        list.expires
    );
    show::verdict(
        &Verdict::passed(Decision::Accepted, "revoke", detail),
        format,
    );
    Ok(Exit::Passed)
}

fn version(args: &RevokeArgs, key: &PublicKey, now: Moment) -> Result<RevocationList, Refusal> {
    let missing = |why: &str| {
        Refusal::from(FlightsCode::ListMissing.refuse(format!("{}: {why}", args.list.display())))
    };
    match (&args.new, args.list.exists()) {
        (Some(name), false) => Ok(RevocationList::first(name.clone(), now, args.days)),
        (Some(_), true) => Err(missing("exists already; leave --new away")),
        (None, false) => Err(missing("is not there; name a new list with --new NAME")),
        (None, true) => {
            let envelope = input::read(&args.list, MAX_ENVELOPE_BYTES)?;
            let signed = dsse::open_as(PAYLOAD_TYPE, &envelope, &[*key], 1)?;
            let list = RevocationList::parse(signed.bytes())?;
            Memory::of(&list.list)?.check(&list.seen(signed.bytes()))?;
            Ok(list.next(now, args.days))
        }
    }
}
