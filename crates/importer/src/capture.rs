use crate::bundle::{self, Ends};
use crate::judge::{Judged, judge};
use crate::objects::{Kind, Objects, Source as _};
use crate::scratch::Scratch;
use crate::snapshot::Whole;
use crate::talk::Cap;
use crate::walk::Difference;
use crate::{
    Checked, Git, Grants, Host, ImportError, ImporterCode, Parcel, Rules, check_parcel, freight,
    hash, opinion, replay, snapshot,
};
use flightproof_core::{Bytes, CommitId, Digest, ObjectId, canonical_json};
use flightproof_evidence::{Captured, Kept};
use std::collections::HashSet;
use std::path::Path;

/// What to take, and what it may be.
#[derive(Debug, Clone, Copy)]
pub struct CaptureRequest<'a> {
    /// The operator's name for the repository, as it stands in the evidence.
    pub name: &'a str,
    /// A revision: what the work is based on.
    pub baseline: &'a str,
    /// A revision: the work.
    pub candidate: &'a str,
    /// What the author may touch.
    pub grants: &'a Grants,
    /// `Name <mail>` that author and committer must be, if it matters.
    pub identity: Option<&'a str>,
    /// Take all commits from the baseline up to the candidate as one: its tree, date and message, under the
    /// identity.
    pub squash: bool,
    /// An empty folder only we can write. Emptied again.
    pub scratch: &'a Path,
    /// Unix seconds; commit dates may not lie more than a day ahead.
    pub now: u64,
}

impl<'a> CaptureRequest<'a> {
    fn rules(&self) -> Rules<'a> {
        Rules {
            grants: self.grants,
            identity: self.identity,
            now: self.now,
        }
    }
}

/// A commit that was taken and found fit to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The evidence.
    pub captured: Captured,
    /// The commit as a git bundle.
    pub bundle: Vec<u8>,
    /// Its large files as a PAWS1 changeset, if it has any.
    pub changeset: Option<Vec<u8>>,
    /// What our own reader found in that bundle.
    pub checked: Checked,
}

/// Most bytes of a commit object: a message of 16 KiB and its headers. The baseline may have more.
pub(crate) const CANDIDATE: Cap = Cap {
    bytes: 32 << 10,
    code: ImporterCode::BytesOverLimit,
};
pub(crate) const BASELINE: Cap = Cap {
    bytes: 1 << 20,
    code: ImporterCode::BytesOverLimit,
};

/// Takes one commit out of a repository and checks it. Nothing of the repository is executed or
/// obeyed; nothing is written there.
///
/// # Errors
/// The first rule that the commit breaks; see [`ImporterCode`].
pub fn capture(
    git: &Git,
    host: &Host,
    request: &CaptureRequest<'_>,
) -> Result<Capture, ImportError> {
    let (packed, mut objects, judged) = take(git, host, request)?;
    let whole = snapshot::take(&mut objects, &judged.difference.new, judged.commit.tree)?;
    let parcel = Parcel {
        bundle: &packed.bundle,
        changeset: packed.changeset.as_deref(),
    };
    Ok(Capture {
        captured: evidence(request.name, &packed.checked, &parcel, whole)?,
        bundle: packed.bundle,
        changeset: packed.changeset,
        checked: packed.checked,
    })
}

/// A commit that was taken for somebody else to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The commit as a git bundle.
    pub bundle: Vec<u8>,
    /// Its large files as a PAWS1 changeset, if it has any.
    pub changeset: Option<Vec<u8>>,
    /// What our own reader found in both.
    pub checked: Checked,
}

/// Takes one commit as [`capture`] does, without the tree around it, which may be of any size.
///
/// # Errors
/// As [`capture`].
pub fn pack(git: &Git, host: &Host, request: &CaptureRequest<'_>) -> Result<Packed, ImportError> {
    Ok(take(git, host, request)?.0)
}

fn take(
    git: &Git,
    host: &Host,
    request: &CaptureRequest<'_>,
) -> Result<(Packed, Objects, Judged), ImportError> {
    let baseline = host.resolve(git, request.baseline)?;
    let mut head = host.resolve(git, request.candidate)?;
    if baseline == head {
        return Err(ImporterCode::NoChange.refuse(format!("both are {head}")));
    }
    let window = Scratch::over(
        request.scratch.join("window.git"),
        &host.objects(),
        baseline,
    )?;
    let mut objects = Objects::open(git, window.place())?;
    let baseline_body = objects.read(baseline, Kind::Commit, BASELINE)?;
    let mut head_body = objects.read(head, Kind::Commit, CANDIDATE)?;
    if request.squash {
        let identity = request.identity.ok_or_else(|| {
            ImporterCode::SquashIdentity.refuse(format!("{} on {baseline}", head))
        })?;
        // A branch from before the baseline would take back what came in between.
        if !replay::leads_to(git, &window, baseline, head)? {
            let detail = format!("{head} does not lead back to {baseline}");
            return Err(ImporterCode::NotOnBaseline.refuse(detail));
        }
        (head, head_body) = replay::squashed(&head_body, baseline, identity)?;
    }
    let rules = request.rules();
    let judged = judge(&mut objects, (baseline, &baseline_body), &head_body, &rules)?;
    let difference = &judged.difference;
    let ends = Ends {
        baseline: (baseline, &baseline_body),
        head: (head, &head_body),
    };
    let changeset = freight::pack(&difference.changes, request.grants)?;
    let bundle = match changeset {
        None => bundle::make(git, request.scratch, &ends, difference)?,
        Some(_) => bundle::make_without(&ends, difference, &large(difference, request.grants)?)?,
    };
    let parcel = Parcel {
        bundle: &bundle,
        changeset: changeset.as_deref(),
    };
    let checked = check_parcel(&parcel, baseline, &mut objects, &rules)?;
    check_same(&checked, head, &judged)?;
    opinion::ask(git, &window, &checked)?;
    let packed = Packed {
        bundle,
        changeset,
        checked,
    };
    Ok((packed, objects, judged))
}

/// The ids of the files that travel beside the bundle.
fn large(difference: &Difference, grants: &Grants) -> Result<HashSet<ObjectId>, ImportError> {
    let large = difference.changes.iter();
    let large = large.filter(|change| freight::travels(change, grants));
    large
        .filter_map(|change| change.new.as_ref())
        .map(|file| hash::id_of(Kind::Blob, &file.content))
        .collect()
}

/// What is known of a commit once its bundle was checked and its tree was taken.
pub(crate) fn evidence(
    name: &str,
    checked: &Checked,
    parcel: &Parcel<'_>,
    whole: Whole,
) -> Result<Captured, ImportError> {
    Ok(Captured {
        repository: name.to_owned(),
        baseline: checked.baseline(),
        head: checked.head(),
        author: checked.author().to_owned(),
        committer: checked.committer().to_owned(),
        bundle: Digest::of(parcel.bundle),
        bundle_bytes: parcel.bundle.len() as u64,
        changeset: parcel.changeset.map(Digest::of),
        snapshot: whole.packed.snapshot.snapshot_id(),
        archive: Bytes(whole.packed.bytes),
        kept_digest: kept_digest(&whole.kept)?,
        kept: whole.kept,
        changes: checked.changes().to_vec(),
    })
}

/// The bundle must say what the repository said.
fn check_same(checked: &Checked, head: CommitId, judged: &Judged) -> Result<(), ImportError> {
    let is_same = checked.head() == head
        && checked.author() == judged.commit.author
        && checked.committer() == judged.commit.committer
        && checked.changes() == judged.difference.changes;
    if is_same {
        return Ok(());
    }
    Err(ImporterCode::BundleMalformed.refuse(format!("it brings {}", checked.head())))
}

pub(crate) fn kept_digest(kept: &[Kept]) -> Result<Option<Digest>, ImportError> {
    if kept.is_empty() {
        return Ok(None);
    }
    canonical_json(kept)
        .map(|bytes| Some(Digest::of(&bytes)))
        .map_err(|e| ImporterCode::PathUnfit.refuse(e))
}
