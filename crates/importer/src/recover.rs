use crate::admit::PATIENCE;
use crate::git::Verb;
use crate::{Git, Host, ImportError, ImporterCode, Receipt};
use flightproof_core::{CommitId, Refusal};
use flightproof_ledger::{Admission, AdmissionKey, Ledger, State};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// An admission whose run ended before it could say how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// What it was about.
    pub admission: Admission,
    /// What the branch says.
    pub outcome: Outcome,
    /// The receipt, where the branch had moved.
    pub receipt: Option<Vec<u8>>,
    /// A lock file beside the branch. A killed git leaves one; it is never removed here, since it
    /// may belong to a git that runs.
    pub lock_left: Option<PathBuf>,
}

/// How an interrupted admission turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The branch is at the head.
    Applied,
    /// The branch went on from the head.
    AppliedThenMoved,
    /// The branch is at the baseline: nothing happened, and the commit may be asked in again.
    NotApplied,
    /// The branch is somewhere the head does not lead to.
    Superseded,
    /// The branch is gone or its commit cannot be read.
    Unknown,
    /// The repository cannot be opened now. The intent stays open.
    Unreachable,
}

/// Judges every open intent by what its branch says now, and writes the outcome down. Branches are
/// only read. A second run finds nothing left to judge.
///
/// # Errors
/// What the ledger refuses, or `GIT_*` if git cannot be asked.
pub fn recover(git: &Git, ledger: &mut Ledger, now: u64) -> Result<Vec<Recovered>, Refusal> {
    let _lock = ledger.lock_admissions(PATIENCE)?;
    let mut all = Vec::new();
    for admission in ledger.open_intents()? {
        all.push(recover_one(git, ledger, admission, now)?);
    }
    Ok(all)
}

fn recover_one(
    git: &Git,
    ledger: &mut Ledger,
    admission: Admission,
    now: u64,
) -> Result<Recovered, Refusal> {
    let key = &admission.key;
    let Ok(host) = Host::open(git, Path::new(&key.repository)) else {
        return Ok(Recovered {
            admission,
            outcome: Outcome::Unreachable,
            receipt: None,
            lock_left: None,
        });
    };
    let tip = host.tip(git, &key.branch)?;
    let outcome = decide(look(git, &host, key, tip)?);
    let receipt = write_receipt(&host, &admission, outcome, tip, now)?;
    ledger.settle(admission.id, outcome.state(), receipt.as_deref(), now)?;
    Ok(Recovered {
        lock_left: host.lock_of(&key.branch),
        admission,
        outcome,
        receipt,
    })
}

/// Where the branch is, seen from an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Gone,
    Baseline,
    Head,
    BeyondHead,
    Elsewhere,
}

fn decide(place: Place) -> Outcome {
    match place {
        Place::Gone => Outcome::Unknown,
        Place::Baseline => Outcome::NotApplied,
        Place::Head => Outcome::Applied,
        Place::BeyondHead => Outcome::AppliedThenMoved,
        Place::Elsewhere => Outcome::Superseded,
    }
}

impl Outcome {
    fn state(self) -> State {
        match self {
            Self::Applied | Self::AppliedThenMoved => State::Applied,
            Self::NotApplied => State::NotApplied,
            Self::Superseded => State::Superseded,
            Self::Unknown | Self::Unreachable => State::Unknown,
        }
    }
}

fn look(
    git: &Git,
    host: &Host,
    key: &AdmissionKey,
    tip: Option<CommitId>,
) -> Result<Place, ImportError> {
    match tip {
        None => Ok(Place::Gone),
        Some(tip) if tip == key.baseline => Ok(Place::Baseline),
        Some(tip) if tip == key.head => Ok(Place::Head),
        Some(tip) if descends(git, host, key.head, tip)? => Ok(Place::BeyondHead),
        Some(_) => Ok(Place::Elsewhere),
    }
}

fn descends(git: &Git, host: &Host, from: CommitId, to: CommitId) -> Result<bool, ImportError> {
    let (from, to) = (from.to_string(), to.to_string());
    let words = ["--is-ancestor", &from, &to].map(OsStr::new);
    let answer = git.ask(Verb::MergeBase, host.place(), &words)?;
    match answer.code {
        0 => Ok(true),
        1 => Ok(false),
        _ => Err(ImporterCode::GitFailed.refuse(answer.complaint)),
    }
}

fn write_receipt(
    host: &Host,
    admission: &Admission,
    outcome: Outcome,
    tip: Option<CommitId>,
    now: u64,
) -> Result<Option<Vec<u8>>, ImportError> {
    if outcome.state() != State::Applied {
        return Ok(None);
    }
    // The run that died may not have come to this.
    host.sync_branch(&admission.key.branch)?;
    let receipt = Receipt {
        recovered: true,
        moved_on_to: tip.filter(|_| outcome == Outcome::AppliedThenMoved),
        ..Receipt::new(&admission.key, admission.certificate, now)
    };
    receipt.bytes().map(Some)
}
