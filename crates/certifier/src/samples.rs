//! Captured changes for the tests of this crate.

use flightproof_core::{CommitId, Digest, RelPath};
use flightproof_evidence::{Captured, Change, FileState};

/// A commit with these changes and nothing else of note.
pub(crate) fn captured(changes: Vec<Change>) -> Captured {
    Captured {
        repository: "sample".to_owned(),
        baseline: CommitId::from_bytes([1; 20]),
        head: CommitId::from_bytes([2; 20]),
        author: "A <a@example.org>".to_owned(),
        committer: "A <a@example.org>".to_owned(),
        bundle: Digest::of(b"bundle"),
        bundle_bytes: 6,
        changeset: None,
        snapshot: Digest::of(b"snapshot"),
        archive: Vec::new().into(),
        kept: Vec::new(),
        kept_digest: None,
        changes,
    }
}

/// One changed path.
pub(crate) fn change(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Change {
    let state = |content: &[u8]| FileState {
        executable: false,
        content: content.into(),
    };
    Change {
        path: RelPath::new(path).unwrap(),
        old: old.map(state),
        new: new.map(state),
    }
}
