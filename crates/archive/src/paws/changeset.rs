use super::{Entry, LAYOUT, manifest, write_file};
use crate::code::ArchiveError;
use crate::json::{ObjectWriter, Sink, write_list};
use flightproof_core::{Digest, Hasher, RelPath};

/// What changed between two trees. Decoded and named here; [`apply`](crate::apply()) carries it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changeset {
    pub(super) workspace_id: String,
    pub(super) base: Digest,
    pub(super) target: Digest,
    pub(super) changes: Vec<Change>,
}

/// What happened to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Add(Entry),
    /// It has other bytes or another mode.
    Change {
        /// What it is now.
        entry: Entry,
        /// Hash of its bytes before.
        base_hash: Digest,
    },
    /// It is gone.
    Delete {
        /// Where it was.
        path: RelPath,
        /// Hash of its bytes before.
        base_hash: Digest,
    },
}

/// Keeps one changeset's id from being the hash of anything else.
const ID_DOMAIN: &[u8] = b"paws-changeset-v1:";

impl Changeset {
    /// Whose tree it is about.
    pub fn workspace_id(&self) -> &str {
        &self.workspace_id
    }

    /// The snapshot the changes stand on.
    pub fn base_snapshot_id(&self) -> Digest {
        self.base
    }

    /// The snapshot they lead to.
    pub fn snapshot_id(&self) -> Digest {
        self.target
    }

    /// The changes, ascending by path.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The name of this changeset.
    pub fn changeset_id(&self) -> Digest {
        let mut text = String::new();
        let mut object = ObjectWriter::open(&mut text);
        object
            .digest("baseSnapshotId", &self.base)
            .digest("snapshotId", &self.target);
        write_changes(object.key("entries"), &self.changes);
        object.close();
        let mut hasher = Hasher::new();
        hasher.update(ID_DOMAIN);
        hasher.update(text.as_bytes());
        hasher.finish()
    }

    /// Sum of all sizes: the length of the payload in bytes.
    pub fn total_bytes(&self) -> u64 {
        let entries = self.changes.iter().filter_map(Change::entry);
        entries.map(|entry| entry.size).sum()
    }

    /// The archive without its payload: magic, length, manifest.
    ///
    /// # Errors
    /// The manifest exceeds its limit.
    pub fn header(&self) -> Result<Vec<u8>, ArchiveError> {
        LAYOUT.join(manifest::encode_changeset(self).as_bytes())
    }
}

impl Change {
    /// Which file.
    pub fn path(&self) -> &RelPath {
        match self {
            Self::Add(entry) | Self::Change { entry, .. } => &entry.path,
            Self::Delete { path, .. } => path,
        }
    }

    /// What the file is afterwards, if it is there.
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Add(entry) | Self::Change { entry, .. } => Some(entry),
            Self::Delete { .. } => None,
        }
    }
}

pub(super) fn write_changes(out: &mut impl Sink, changes: &[Change]) {
    let mut offset = 0;
    write_list(out, changes, |out, change| {
        let mut object = ObjectWriter::open(out);
        match change {
            Change::Add(entry) => {
                object.text("operation", "add");
                write_file(&mut object, entry);
                object.number("offset", offset);
            }
            Change::Change { entry, base_hash } => {
                object.text("operation", "change");
                write_file(&mut object, entry);
                object
                    .number("offset", offset)
                    .digest("baseHash", base_hash);
            }
            Change::Delete { path, base_hash } => {
                object
                    .text("operation", "delete")
                    .text("path", path.as_str())
                    .digest("baseHash", base_hash);
            }
        }
        object.close();
        offset += change.entry().map_or(0, |entry| entry.size);
    });
}
