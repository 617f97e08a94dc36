mod lenient;
mod scan;

use super::changeset::{Change, Changeset, write_changes};
use super::{
    Entry, LAYOUT, Snapshot, check_archive_size, check_not_empty, check_paths, shown, write_file,
};
use crate::code::{ArchiveCode, ArchiveError};
use crate::header::utf8;
use crate::json::{Comparison, ObjectWriter, Sink, write_list};
use flightproof_core::Digest;
use std::borrow::Cow;

/// What a manifest describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// A whole tree.
    Snapshot(Snapshot),
    /// What changed between two.
    Changeset(Changeset),
}

impl Manifest {
    /// The snapshot, where it is one.
    ///
    /// # Errors
    /// [`ArchiveCode::BadKind`] for a changeset.
    pub fn into_snapshot(self) -> Result<Snapshot, ArchiveError> {
        match self {
            Self::Snapshot(snapshot) => Ok(snapshot),
            Self::Changeset(_) => {
                Err(ArchiveCode::BadKind.refuse("got \"changeset\", expected \"snapshot\""))
            }
        }
    }

    /// The changeset, where it is one.
    ///
    /// # Errors
    /// [`ArchiveCode::BadKind`] for a snapshot.
    pub fn into_changeset(self) -> Result<Changeset, ArchiveError> {
        match self {
            Self::Changeset(changeset) => Ok(changeset),
            Self::Snapshot(_) => {
                Err(ArchiveCode::BadKind.refuse("got \"snapshot\", expected \"changeset\""))
            }
        }
    }
}

/// Reads header and manifest and nothing else: any byte of payload is refused.
///
/// The order of the checks is part of the format, so that two readers give one answer: header,
/// UTF-8, JSON, kind, field set, format, version, field types, entries, duplicates, order and
/// conflicts, offsets, total, archive size, trailing bytes, id, canonical form.
///
/// # Errors
/// The first rule that does not hold.
pub fn decode(bytes: &[u8]) -> Result<Manifest, ArchiveError> {
    check_not_empty(bytes)?;
    let (manifest, rest) = LAYOUT.split(bytes)?;
    decode_manifest(manifest, rest.len())
}

/// Reads a manifest that `trailing` bytes follow which are nobody's payload.
pub(crate) fn decode_manifest(bytes: &[u8], trailing: usize) -> Result<Manifest, ArchiveError> {
    let text = utf8(bytes)?;
    // What the quick reader does not take is read again to find its refusal.
    let stated = match scan::read(text) {
        Some(stated) => stated,
        None => lenient::read(text)?,
    };
    stated.check(LAYOUT.header_bytes() + bytes.len(), trailing)?;
    let manifest = stated.finish()?;
    check_canonical(&manifest, text)?;
    Ok(manifest)
}

/// Whether both readers of manifests take this text for the same; `None` where the quick one does
/// not take it.
pub(crate) fn readers_agree(text: &str) -> Option<bool> {
    scan::read(text).map(|stated| lenient::read(text) == Ok(stated))
}

/// What a manifest states: each field has its form, and none was compared with another yet.
#[derive(Debug, PartialEq, Eq)]
struct Stated<'a> {
    workspace_id: Cow<'a, str>,
    id: Digest,
    total: u64,
    listed: Listed,
    offsets: Offsets,
}

#[derive(Debug, PartialEq, Eq)]
enum Listed {
    Tree(Vec<Entry>),
    Changes { base: Digest, changes: Vec<Change> },
}

/// The offsets so far: each must be the sum of the sizes before it. The one place where a stated
/// one is believed is none.
#[derive(Debug, Default, PartialEq, Eq)]
struct Offsets {
    sum: u64,
    /// Index of the first entry whose offset is wrong, what it says, and what it should.
    wrong: Option<(usize, u64, u64)>,
}

impl Offsets {
    fn take(&mut self, index: usize, found: u64, size: u64) {
        if found != self.sum && self.wrong.is_none() {
            self.wrong = Some((index, found, self.sum));
        }
        // At most 100,000 times 50 MiB.
        self.sum += size;
    }
}

impl Listed {
    fn paths(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.len()).map(|index| self.path(index))
    }

    fn len(&self) -> usize {
        match self {
            Self::Tree(entries) => entries.len(),
            Self::Changes { changes, .. } => changes.len(),
        }
    }

    fn path(&self, index: usize) -> &str {
        let path = match self {
            Self::Tree(entries) => entries.get(index).map(|entry| &entry.path),
            Self::Changes { changes, .. } => changes.get(index).map(Change::path),
        };
        path.map_or("", |path| path.as_str())
    }
}

impl<'a> Stated<'a> {
    fn check(&self, header_bytes: usize, trailing: usize) -> Result<(), ArchiveError> {
        check_paths(self.listed.paths())?;
        if let Some((index, found, expected)) = self.offsets.wrong {
            let path = shown(self.listed.path(index));
            return Err(ArchiveCode::InvalidOffset
                .refuse(format_args!("{path}: got {found}, expected {expected}")));
        }
        if self.total != self.offsets.sum {
            return Err(ArchiveCode::TotalBytesMismatch.refuse(format_args!(
                "got {}, the sizes add up to {}",
                self.total, self.offsets.sum
            )));
        }
        check_archive_size(header_bytes, self.total)?;
        if trailing > 0 {
            return Err(ArchiveCode::TrailingBytes
                .refuse(format_args!("{trailing} bytes after the manifest")));
        }
        Ok(())
    }

    /// The manifest, and its id compared.
    fn finish(self) -> Result<Manifest, ArchiveError> {
        let workspace_id = self.workspace_id.into_owned();
        match self.listed {
            Listed::Changes { base, mut changes } => {
                changes.shrink_to_fit();
                Ok(Manifest::Changeset(Changeset {
                    workspace_id,
                    base,
                    target: self.id,
                    changes,
                }))
            }
            Listed::Tree(mut entries) => {
                entries.shrink_to_fit();
                let snapshot = Snapshot::checked(workspace_id, entries);
                if snapshot.snapshot_id() == self.id {
                    return Ok(Manifest::Snapshot(snapshot));
                }
                Err(ArchiveCode::SnapshotIdMismatch.refuse(format_args!(
                    "got {}, the entries hash to {}",
                    self.id,
                    snapshot.snapshot_id()
                )))
            }
        }
    }
}

fn check_canonical(manifest: &Manifest, text: &str) -> Result<(), ArchiveError> {
    let mut comparison = Comparison::with(text);
    match manifest {
        Manifest::Snapshot(snapshot) => write_snapshot(&mut comparison, snapshot),
        Manifest::Changeset(changeset) => write_changeset(&mut comparison, changeset),
    }
    match comparison.difference() {
        None => Ok(()),
        Some(at) => Err(ArchiveCode::NonCanonical.refuse(format_args!(
            "differs from its canonical form at byte {at} of the manifest"
        ))),
    }
}

const FORMAT: &str = "prime-agent-workspace";

/// Fewer bytes no canonical entry has, its comma included: a deletion of a one-letter path. By it
/// room for entries is set aside once, in proportion to the text.
const MIN_ENTRY_BYTES: usize = r#"{"operation":"delete","path":"a","baseHash":""},"#.len() + 64;

pub(super) fn encode_snapshot(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    write_snapshot(&mut out, snapshot);
    out
}

pub(super) fn encode_changeset(changeset: &Changeset) -> String {
    let mut out = String::new();
    write_changeset(&mut out, changeset);
    out
}

pub(super) fn write_snapshot(out: &mut impl Sink, snapshot: &Snapshot) {
    let mut object = ObjectWriter::open(out);
    object
        .text("format", FORMAT)
        .number("version", 1)
        .text("kind", "snapshot")
        .text("workspaceId", &snapshot.workspace_id)
        .digest("snapshotId", &snapshot.id)
        .number("totalBytes", snapshot.total_bytes());
    let mut offset = 0;
    write_list(object.key("entries"), &snapshot.entries, |out, entry| {
        let mut object = ObjectWriter::open(out);
        write_file(&mut object, entry);
        object.number("offset", offset).close();
        offset += entry.size;
    });
    object.close();
}

fn write_changeset(out: &mut impl Sink, changeset: &Changeset) {
    let mut object = ObjectWriter::open(out);
    object
        .text("format", FORMAT)
        .number("version", 1)
        .text("kind", "changeset")
        .text("workspaceId", &changeset.workspace_id)
        .digest("baseSnapshotId", &changeset.base)
        .digest("snapshotId", &changeset.target)
        .number("totalBytes", changeset.total_bytes());
    write_changes(object.key("entries"), &changeset.changes);
    object.close();
}
