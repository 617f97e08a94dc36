use crate::bundle::{self, Ends};
use crate::commit::{self, Commit};
use crate::objects::{Kind, Objects};
use crate::scratch::Scratch;
use crate::talk::Cap;
use crate::{Git, Grants, Host, ImportError, ImporterCode, snapshot, walk};
use flightproof_core::{Bytes, CommitId, Digest, canonical_json, escape};
use flightproof_evidence::{Captured, Kept};
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
    /// An empty folder only we can write. Emptied again.
    pub scratch: &'a Path,
    /// Unix seconds; commit dates may not lie more than a day ahead.
    pub now: u64,
}

/// A commit that was taken and found fit to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The evidence.
    pub captured: Captured,
    /// The commit as a git bundle.
    pub bundle: Vec<u8>,
}

/// Most bytes of a commit object: a message of 16 KiB and its headers. The baseline may have more.
const CANDIDATE: Cap = Cap {
    bytes: 32 << 10,
    code: ImporterCode::BytesOverLimit,
};
const BASELINE: Cap = Cap {
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
    let baseline = host.resolve(git, request.baseline)?;
    let head = host.resolve(git, request.candidate)?;
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
    let head_body = objects.read(head, Kind::Commit, CANDIDATE)?;
    let commit = Commit::parse(&head_body, request.now)?;
    check_place(&commit, baseline)?;
    check_identity(&commit, request.identity)?;
    let old_tree = commit::tree_of(&baseline_body)?;
    if commit.tree == old_tree {
        return Err(ImporterCode::NoChange.refuse(format!("both have tree {old_tree}")));
    }
    let difference = walk::compare(&mut objects, old_tree, commit.tree)?;
    if difference.changes.is_empty() {
        return Err(ImporterCode::NoChange.refuse("the trees differ in spelling only"));
    }
    request.grants.check(&difference.changes)?;
    let whole = snapshot::take(&mut objects, &difference.new, commit.tree)?;
    let ends = Ends {
        baseline: (baseline, &baseline_body),
        head: (head, &head_body),
    };
    let bundle = bundle::make(git, request.scratch, &ends, &difference)?;
    let captured = Captured {
        repository: request.name.to_owned(),
        baseline,
        head,
        author: commit.author,
        committer: commit.committer,
        bundle: Digest::of(&bundle),
        bundle_bytes: bundle.len() as u64,
        snapshot: whole.packed.snapshot.snapshot_id(),
        archive: Bytes(whole.packed.bytes),
        kept_digest: kept_digest(&whole.kept)?,
        kept: whole.kept,
        changes: difference.changes,
    };
    Ok(Capture { captured, bundle })
}

fn check_place(commit: &Commit, baseline: CommitId) -> Result<(), ImportError> {
    match commit.parents.as_slice() {
        [parent] if *parent == baseline => Ok(()),
        [] => Err(ImporterCode::NotOnBaseline.refuse("the commit has no parent")),
        [parent] => Err(ImporterCode::NotOnBaseline.refuse(format!(
            "the commit's parent is {parent}, the baseline is {baseline}"
        ))),
        more => Err(ImporterCode::MergeCommit.refuse(format!("{} parents", more.len()))),
    }
}

fn check_identity(commit: &Commit, wanted: Option<&str>) -> Result<(), ImportError> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    for (role, found) in [("author", &commit.author), ("committer", &commit.committer)] {
        if found != wanted {
            return Err(ImporterCode::IdentityMismatch.refuse(format!(
                "{role}: got {}, expected {}",
                escape(found, 120),
                escape(wanted, 120)
            )));
        }
    }
    Ok(())
}

pub(crate) fn kept_digest(kept: &[Kept]) -> Result<Option<Digest>, ImportError> {
    if kept.is_empty() {
        return Ok(None);
    }
    canonical_json(kept)
        .map(|bytes| Some(Digest::of(&bytes)))
        .map_err(|e| ImporterCode::PathUnfit.refuse(e))
}
