use crate::capture::kept_digest;
use crate::commit;
use crate::objects::{Kind, Objects, Source as _};
use crate::scratch::Scratch;
use crate::talk::Cap;
use crate::walk::{self, Shelf};
use crate::{Checked, Git, Host, ImportError, ImporterCode, bundle, snapshot};
use flightproof_core::{CommitId, Digest};
use flightproof_evidence::Change;
use std::collections::BTreeMap;
use std::path::Path;

/// Most bytes of a commit object of any history: what the baseline of a capture may have.
const COMMIT: Cap = Cap {
    bytes: 1 << 20,
    code: ImporterCode::BytesOverLimit,
};

/// The commit of a revision and its tree as a certificate names it: its snapshot id, and the digest of the
/// list of its symlinks and gitlinks where it has any. Every object is hashed again. `scratch` is an empty
/// folder only we can write; it is emptied again.
///
/// # Errors
/// `UNKNOWN_REVISION`, and those of reading a tree.
pub fn snapshot_of(
    git: &Git,
    host: &Host,
    revision: &str,
    scratch: &Path,
) -> Result<(CommitId, Digest, Option<Digest>), ImportError> {
    let (commit, whole) = whole(git, host, revision, scratch)?;
    let snapshot = whole.packed.snapshot.snapshot_id();
    Ok((commit, snapshot, kept_digest(&whole.kept)?))
}

/// The whole tree of a revision as a PAWS1 archive, without what a snapshot cannot hold. Every object
/// is hashed again. `scratch` as for [`snapshot_of`].
///
/// # Errors
/// `UNKNOWN_REVISION`, and those of reading a tree.
pub fn tree_of(
    git: &Git,
    host: &Host,
    revision: &str,
    scratch: &Path,
) -> Result<Vec<u8>, ImportError> {
    Ok(whole(git, host, revision, scratch)?.1.packed.bytes)
}

fn whole(
    git: &Git,
    host: &Host,
    revision: &str,
    scratch: &Path,
) -> Result<(CommitId, snapshot::Whole), ImportError> {
    let asked = host.look_up(git, revision)?;
    let window = Scratch::window(scratch.join("window.git"), &host.objects())?;
    let mut objects = Objects::open(git, window.place())?;
    let commit = asked.finish()?;
    let body = objects.read(commit, Kind::Commit, COMMIT)?;
    let whole = snapshot::take(&mut objects, &Shelf::new(), commit::tree_of(&body)?)?;
    Ok((commit, whole))
}

/// What a commit does to the files of its baseline. Every object is hashed again; the limits are
/// those of granted large files, since whoever asks has a certificate of the commit. `scratch` as for
/// [`snapshot_of`].
///
/// # Errors
/// Those of comparing two trees.
pub fn changes_of(
    git: &Git,
    host: &Host,
    (baseline, head): (CommitId, CommitId),
    scratch: &Path,
) -> Result<Vec<Change>, ImportError> {
    let window = Scratch::window(scratch.join("window.git"), &host.objects())?;
    let mut objects = Objects::open(git, window.place())?;
    let mut tree = |commit| -> Result<_, ImportError> {
        commit::tree_of(&objects.read(commit, Kind::Commit, COMMIT)?)
    };
    let (old, new) = (tree(baseline)?, tree(head)?);
    Ok(walk::compare(&mut objects, old, new, &|_| true)?.changes)
}

/// As [`snapshot_of`], of a commit out of a bundle, which the repository need not have.
///
/// # Errors
/// Those of reading a tree.
pub fn snapshot_of_bundle(
    git: &Git,
    host: &Host,
    checked: &Checked,
    scratch: &Path,
) -> Result<(Digest, Option<Digest>), ImportError> {
    let window = Scratch::window(scratch.join("window.git"), &host.objects())?;
    let mut objects = Objects::open(git, window.place())?;
    let whole = snapshot::take(&mut objects, &checked.shelf(), checked.tree()?)?;
    Ok((
        whole.packed.snapshot.snapshot_id(),
        kept_digest(&whole.kept)?,
    ))
}

/// The limits a commit is captured under, by name, as a certificate states them.
pub fn limits() -> BTreeMap<String, u64> {
    [
        ("bundle-bytes", bundle::BUNDLE),
        ("changed-paths", walk::CHANGES),
        ("depth", walk::DEPTH),
        ("new-bytes", walk::NEW_BYTES),
        ("new-objects", walk::OBJECTS),
        ("visited-entries", walk::ENTRIES),
    ]
    .into_iter()
    .map(|(name, limit)| (name.to_owned(), limit as u64))
    .collect()
}
