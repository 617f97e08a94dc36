//! What is presented beside a certificate, read from files, and what is remembered of revocation
//! lists.

use super::{envelope, input};
use crate::state;
use clap::Args;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::key::PublicKey;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::revocation::{CheckedRevocations, ListName, Seen};
use flightproof_certifier::verify::Beside;
use flightproof_core::{Moment, Refusal, parse_strict};
use std::path::{Path, PathBuf};

/// Largest file with what is remembered of a list, bytes.
const MAX_SEEN: usize = 1024;

/// What a policy may ask for beside the certificate.
#[derive(Args)]
pub(in super::super) struct BesideArgs {
    /// The policy's revocation list.
    #[arg(long, value_name = "FILE")]
    revocations: Option<PathBuf>,
    /// A certificate that this one builds on (repeatable): all of them, down to the one without a parent.
    #[arg(long = "parent", value_name = "CERT")]
    parents: Vec<PathBuf>,
    /// A signed exception (repeatable).
    #[arg(long = "exception", value_name = "FILE")]
    exceptions: Vec<PathBuf>,
}

impl BesideArgs {
    /// Reads everything, with the time of this machine. A list that is good is remembered at once.
    pub(in super::super) fn read(
        &self,
        policy: &Policy,
        keys: &[PublicKey],
    ) -> Result<Beside, Refusal> {
        let mut beside = Beside::at(state::unix_seconds());
        if let Some(path) = &self.revocations {
            let now = Moment::from_unix(beside.now);
            beside.revocations = Some(revocations(path, policy, keys, now)?);
        }
        let parents = self.parents.iter().map(|path| envelope(path));
        beside.parents = parents.collect::<Result<_, _>>()?;
        let exceptions = self.exceptions.iter().map(|path| envelope(path));
        beside.exceptions = exceptions.collect::<Result<_, _>>()?;
        Ok(beside)
    }
}

fn revocations(
    path: &Path,
    policy: &Policy,
    keys: &[PublicKey],
    now: Moment,
) -> Result<CheckedRevocations, Refusal> {
    let rule = policy.revocations().ok_or_else(|| {
        CertifierCode::BesideUnasked
            .refuse("a revocation list; the policy names nobody who may sign one")
    })?;
    let place = memory(&rule.list)?;
    let remembered = recall(&place)?;
    let checked = CheckedRevocations::open(&envelope(path)?, rule, keys, now, remembered.as_ref())?;
    if remembered.as_ref() != Some(checked.seen()) {
        write(&place, checked.seen())?;
    }
    Ok(checked)
}

/// Refuses a version of a list that is older than what is remembered, or another of its number.
///
/// # Errors
/// `REVOCATION_ROLLED_BACK`; a memory that cannot be read.
pub(in super::super) fn check_newest(list: &ListName, seen: &Seen) -> Result<(), Refusal> {
    let remembered = recall(&memory(list)?)?;
    Ok(seen.not_older(remembered.as_ref())?)
}

/// Remembers a version that was issued here.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub(in super::super) fn remember(list: &ListName, seen: &Seen) -> Result<(), Refusal> {
    write(&memory(list)?, seen)
}

fn write(place: &Path, seen: &Seen) -> Result<(), Refusal> {
    let text = serde_json::to_vec(seen).unwrap_or_default();
    state::write_file(place, &text, 0o600)
}

fn memory(list: &ListName) -> Result<PathBuf, Refusal> {
    let folder = state::directory()?.join("revocations");
    state::private_directory(&folder)?;
    Ok(folder.join(format!("{list}.json")))
}

/// A memory that cannot be read is no empty one.
fn recall(place: &Path) -> Result<Option<Seen>, Refusal> {
    if !place.exists() {
        return Ok(None);
    }
    let seen = parse_strict(&input::read(place, MAX_SEEN)?, MAX_SEEN);
    seen.map(Some).map_err(|e| input::unreadable(place, e))
}
