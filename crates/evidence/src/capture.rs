use flightproof_core::{Bytes, CommitId, Digest, ObjectId, RelPath};
use serde::{Deserialize, Serialize};

/// One commit, taken out of its repository and checked. Everything after this stage works on
/// these bytes and never opens the repository again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Captured {
    /// The operator's name for the repository.
    pub repository: String,
    /// The commit the change is based on.
    pub baseline: CommitId,
    /// The candidate: one commit whose only parent is the baseline.
    pub head: CommitId,
    /// Author as the commit says it, `Name <mail>`.
    pub author: String,
    /// Committer as the commit says it, `Name <mail>`.
    pub committer: String,
    /// SHA-256 of the bundle.
    pub bundle: Digest,
    /// Size of the bundle in bytes.
    pub bundle_bytes: u64,
    /// SHA-256 of the PAWS1 changeset with its large files; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changeset: Option<Digest>,
    /// Snapshot id of the candidate's whole tree (its PAWS1 snapshot). The certificate's subject.
    pub snapshot: Digest,
    /// The PAWS1 archive itself.
    pub archive: Bytes,
    /// Unchanged symlinks and gitlinks of the baseline, which a snapshot cannot hold.
    pub kept: Vec<Kept>,
    /// Digest of the canonical JSON of `kept`; absent when it is empty.
    pub kept_digest: Option<Digest>,
    /// Every path that differs between baseline and candidate, ordered by path.
    pub changes: Vec<Change>,
}

/// An entry of the tree that stays as the baseline had it and does not travel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Where it lies.
    pub path: RelPath,
    /// Git's mode: `120000` (symlink) or `160000` (gitlink).
    pub mode: String,
    /// The object it names.
    pub object: ObjectId,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The path.
    pub path: RelPath,
    /// The file before; absent if added.
    pub old: Option<FileState>,
    /// The file after; absent if deleted.
    pub new: Option<FileState>,
}

/// A file's content and its one permission bit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// Mode 0755 rather than 0644.
    pub executable: bool,
    /// Content.
    pub content: Bytes,
}
