//! PAWS1: a workspace, whole (a snapshot) or as what changed (a changeset).

mod changeset;
mod difference;
mod file;
mod manifest;

pub use changeset::{Change, Changeset};
pub use difference::{Compared, changeset_between, pack_changeset};
pub(crate) use file::{Outline, Whole};
pub use file::{extract, extract_file, pack_file, pack_to, verify, verify_file};
pub use manifest::{Manifest, decode};
pub(crate) use manifest::{decode_manifest, readers_agree};

use crate::code::{ArchiveCode, ArchiveError};
use crate::header::Layout;
use crate::json::{Hashed, ObjectWriter, Sink, write_list};
use crate::listing::Limits;
use crate::order;
use crate::payload::check_hash;
use flightproof_core::{Digest, RelPath};

/// Bytes before the manifest: magic and length. A fact of the format.
pub const HEADER_BYTES: usize = LAYOUT.header_bytes();
/// Most bytes of a manifest, 64 MiB: 100,000 entries with the longest paths. A fact of the format.
pub const MAX_MANIFEST_BYTES: usize = 64 << 20;
/// Most entries of a manifest. A fact of the format.
pub const MAX_ENTRIES: usize = 100_000;
/// Most bytes of one file, 50 MiB. A fact of the format.
pub const MAX_FILE_BYTES: u64 = 50 << 20;
/// Most bytes of a whole archive, header included, 500 MiB. A fact of the format.
pub const MAX_ARCHIVE_BYTES: u64 = 500 << 20;

pub(crate) const LAYOUT: Layout = Layout {
    magic: b"PAWS1",
    length_bytes: 8,
    max_manifest: MAX_MANIFEST_BYTES,
    max_archive: MAX_ARCHIVE_BYTES,
    empty: ArchiveCode::BufferEmpty,
    truncated: ArchiveCode::PayloadTruncated,
    trailing: ArchiveCode::TrailingBytes,
};

pub(crate) const LIMITS: Limits = Limits {
    files: MAX_ENTRIES,
    too_many: ArchiveCode::MaxEntriesExceeded,
    file_bytes: MAX_FILE_BYTES,
    too_big: ArchiveCode::InvalidSize,
    total_bytes: MAX_ARCHIVE_BYTES,
    too_much: ArchiveCode::ArchiveTooLarge,
};

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it lies.
    pub path: RelPath,
    /// Whether it may be executed: mode 100755, else 100644. No other mode exists here.
    pub executable: bool,
    /// Its size in bytes.
    pub size: u64,
    /// The hash of its bytes.
    pub sha256: Digest,
}

/// A whole tree: its entries ascend, none is twice or below another, all limits hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    workspace_id: String,
    entries: Vec<Entry>,
    id: Digest,
}

/// An archive that was just made, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The tree.
    pub snapshot: Snapshot,
    /// The archive: header, manifest, payload.
    pub bytes: Vec<u8>,
}

/// A verified archive in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked<'a> {
    /// The tree.
    pub snapshot: Snapshot,
    payload: &'a [u8],
}

impl Snapshot {
    /// A tree of these files, in any order.
    ///
    /// # Errors
    /// A path that stands twice, a file that is also a directory, or a limit that is exceeded.
    pub fn new(
        workspace_id: impl Into<String>,
        mut entries: Vec<Entry>,
    ) -> Result<Self, ArchiveError> {
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        if entries.len() > MAX_ENTRIES {
            return Err(too_many(entries.len()));
        }
        if let Some(entry) = entries.iter().find(|entry| entry.size > MAX_FILE_BYTES) {
            return Err(too_big(&entry.path, entry.size));
        }
        check_paths(entries.iter().map(|entry| entry.path.as_str()))?;
        let snapshot = Self::checked(workspace_id.into(), entries);
        check_archive_size(snapshot.header()?.len(), snapshot.total_bytes())?;
        Ok(snapshot)
    }

    /// Entries whose rules were checked by the caller.
    fn checked(workspace_id: String, entries: Vec<Entry>) -> Self {
        let id = snapshot_id(&entries);
        Self {
            workspace_id,
            entries,
            id,
        }
    }

    /// Whose tree it is.
    pub fn workspace_id(&self) -> &str {
        &self.workspace_id
    }

    /// The files, ascending by the bytes of their paths.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The name of the tree: a hash over every path, size, mode and content, and nothing else.
    pub fn snapshot_id(&self) -> Digest {
        self.id
    }

    /// Sum of all sizes: the length of the payload in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }

    /// The archive without its payload: magic, length, manifest.
    ///
    /// # Errors
    /// The manifest exceeds its limit.
    pub fn header(&self) -> Result<Vec<u8>, ArchiveError> {
        LAYOUT.join(manifest::encode_snapshot(self).as_bytes())
    }
}

/// A verified changeset in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered<'a> {
    /// What changed.
    pub changeset: Changeset,
    payload: &'a [u8],
}

/// Packs files that are in memory: path, whether it may be executed, content. In any order.
///
/// # Errors
/// As [`Snapshot::new`].
pub fn pack<B: AsRef<[u8]>>(
    workspace_id: impl Into<String>,
    files: impl IntoIterator<Item = (RelPath, bool, B)>,
) -> Result<Packed, ArchiveError> {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let entries = files
        .iter()
        .map(|(path, executable, bytes)| Entry {
            path: path.clone(),
            executable: *executable,
            size: bytes.as_ref().len() as u64,
            sha256: Digest::of(bytes.as_ref()),
        })
        .collect();
    let snapshot = Snapshot::new(workspace_id, entries)?;
    let mut bytes = snapshot.header()?;
    for (_, _, content) in &files {
        bytes.extend_from_slice(content.as_ref());
    }
    Ok(Packed { snapshot, bytes })
}

/// Reads a whole snapshot archive and verifies every byte of it.
///
/// # Errors
/// Everything [`decode`] refuses; a changeset; a payload that is short, long, or does not have the
/// hashes of the manifest.
pub fn read(bytes: &[u8]) -> Result<Unpacked<'_>, ArchiveError> {
    check_not_empty(bytes)?;
    let (manifest, payload) = LAYOUT.split(bytes)?;
    let snapshot = manifest::decode_manifest(manifest, 0)?.into_snapshot()?;
    LAYOUT.check_payload(payload.len() as u64, snapshot.total_bytes())?;
    let unpacked = Unpacked { snapshot, payload };
    for (entry, content) in unpacked.files() {
        check_hash(entry, Digest::of(content))?;
    }
    Ok(unpacked)
}

/// Reads a whole changeset archive and verifies every byte of it.
///
/// # Errors
/// Everything [`decode`] refuses; a snapshot; a payload that is short, long, or does not have the
/// hashes of the manifest.
pub fn read_changeset(bytes: &[u8]) -> Result<Delivered<'_>, ArchiveError> {
    check_not_empty(bytes)?;
    let (manifest, payload) = LAYOUT.split(bytes)?;
    let changeset = manifest::decode_manifest(manifest, 0)?.into_changeset()?;
    LAYOUT.check_payload(payload.len() as u64, changeset.total_bytes())?;
    let delivered = Delivered { changeset, payload };
    for (entry, content) in delivered.files() {
        check_hash(entry, Digest::of(content))?;
    }
    Ok(delivered)
}

impl<'a> Unpacked<'a> {
    /// The files with their bytes, ascending by path.
    pub fn files(&self) -> impl Iterator<Item = (&Entry, &'a [u8])> {
        beside(self.snapshot.entries.iter(), self.payload)
    }
}

impl<'a> Delivered<'a> {
    /// The files that are new or changed, with their bytes, ascending by path.
    pub fn files(&self) -> impl Iterator<Item = (&Entry, &'a [u8])> {
        let changes = self.changeset.changes().iter();
        beside(changes.filter_map(Change::entry), self.payload)
    }
}

/// Each entry with its part of a payload that is as long as all of them.
fn beside<'e, 'a>(
    entries: impl Iterator<Item = &'e Entry>,
    payload: &'a [u8],
) -> impl Iterator<Item = (&'e Entry, &'a [u8])> {
    let mut rest = payload;
    entries.map(move |entry| {
        let size = usize::try_from(entry.size).unwrap_or(usize::MAX);
        let (content, after) = rest.split_at_checked(size).unwrap_or((rest, &[]));
        rest = after;
        (entry, content)
    })
}

pub(crate) fn check_not_empty(bytes: &[u8]) -> Result<(), ArchiveError> {
    if bytes.is_empty() {
        return Err(ArchiveCode::BufferEmpty.refuse("0 bytes"));
    }
    Ok(())
}

/// Duplicates, then order, then conflicts: a later check relies on the earlier ones.
fn check_paths<'a>(paths: impl Iterator<Item = &'a str> + Clone) -> Result<(), ArchiveError> {
    if let Some(path) = order::duplicate(paths.clone()) {
        return Err(ArchiveCode::DuplicateEntryPath.refuse(shown(path)));
    }
    if let Some((before, path)) = order::unsorted(paths.clone()) {
        let detail = format!("{} stands before {}", shown(before), shown(path));
        return Err(ArchiveCode::EntriesUnsorted.refuse(detail));
    }
    if let Some((file, below)) = order::conflict(paths) {
        let detail = format!("{} is a file and holds {}", shown(file), shown(below));
        return Err(ArchiveCode::PrefixConflict.refuse(detail));
    }
    Ok(())
}

fn check_archive_size(header_bytes: usize, payload: u64) -> Result<(), ArchiveError> {
    let size = payload.saturating_add(header_bytes as u64);
    if size > MAX_ARCHIVE_BYTES {
        return Err(ArchiveCode::ArchiveTooLarge.refuse(format_args!(
            "{size} bytes, at most {MAX_ARCHIVE_BYTES} allowed"
        )));
    }
    Ok(())
}

fn too_many(count: usize) -> ArchiveError {
    ArchiveCode::MaxEntriesExceeded.refuse(format_args!("{count} entries"))
}

fn too_big(path: &RelPath, size: u64) -> ArchiveError {
    ArchiveCode::InvalidSize.refuse(format_args!(
        "\"{path}\": {size} bytes, at most {MAX_FILE_BYTES} allowed"
    ))
}

/// A path as a refusal shows it: whole, since 512 bytes at most passed the path rules.
pub(crate) fn shown(path: &str) -> String {
    format!("\"{}\"", flightproof_core::escape(path, RelPath::MAX_BYTES))
}

/// The hash over what a tree is: no offsets, since they follow from the sizes.
fn snapshot_id(entries: &[Entry]) -> Digest {
    let mut out = Hashed::new();
    write_list(&mut out, entries, |out, entry| {
        let mut object = ObjectWriter::open(out);
        write_file(&mut object, entry);
        object.close();
    });
    out.finish()
}

/// The four fields every mention of a file has.
fn write_file<S: Sink>(object: &mut ObjectWriter<'_, S>, entry: &Entry) {
    object
        .text("path", entry.path.as_str())
        .number("size", entry.size)
        .number("mode", if entry.executable { 100_755 } else { 100_644 })
        .digest("sha256", &entry.sha256);
}
