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
use std::fs::File;
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
    /// Proof that the certificate is in the policy's log.
    #[arg(long, value_name = "FILE")]
    proof: Option<PathBuf>,
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
        beside.inclusion = self.proof.as_deref().map(envelope).transpose()?;
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
    // Whoever hands it over may take long: nobody waits for that.
    let list = envelope(path)?;
    let memory = Memory::of(&rule.list)?;
    let checked = CheckedRevocations::open(&list, rule, keys, now, memory.seen.as_ref())?;
    memory.keep(checked.seen())?;
    Ok(checked)
}

/// What is remembered of a list, held from the look at it to the next version: two at once would both
/// be checked against the same version, and the older of theirs could be written last.
pub(in super::super) struct Memory {
    place: PathBuf,
    seen: Option<Seen>,
    _held: File,
}

impl Memory {
    /// Waits until nobody else has it.
    ///
    /// # Errors
    /// `STATE_UNAVAILABLE`; a memory that cannot be read, which is no empty one.
    pub(in super::super) fn of(list: &ListName) -> Result<Self, Refusal> {
        let folder = state::directory()?.join("revocations");
        state::private_directory(&folder)?;
        let held = state::hold_file(&folder.join(format!("{list}.lock")))?;
        let place = folder.join(format!("{list}.json"));
        let there = place.try_exists();
        let seen = match there.map_err(|e| input::unreadable(&place, e))? {
            false => None,
            true => {
                let seen = parse_strict(&input::read(&place, MAX_SEEN)?, MAX_SEEN);
                Some(seen.map_err(|e| input::unreadable(&place, e))?)
            }
        };
        Ok(Self {
            place,
            seen,
            _held: held,
        })
    }

    /// Refuses a version that is older than what is remembered, or another of its number.
    ///
    /// # Errors
    /// `REVOCATION_ROLLED_BACK`.
    pub(in super::super) fn check(&self, seen: &Seen) -> Result<(), Refusal> {
        Ok(seen.not_older(self.seen.as_ref())?)
    }

    /// Remembers a version, and never an older one.
    ///
    /// # Errors
    /// `REVOCATION_ROLLED_BACK`, `STATE_UNAVAILABLE`.
    pub(in super::super) fn keep(&self, seen: &Seen) -> Result<(), Refusal> {
        self.check(seen)?;
        if self.seen.as_ref() == Some(seen) {
            return Ok(());
        }
        let text = serde_json::to_vec(seen).unwrap_or_default();
        state::write_file(&self.place, &text, 0o600)
    }
}
