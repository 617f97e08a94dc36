//! Workspaces of any size the format allows: what is held in memory grows with the manifest and not
//! with the payload.

use super::{Change, Entry, LAYOUT, Manifest, Snapshot, check_archive_size, decode_manifest};
use super::{manifest::write_snapshot, snapshot_id, too_many};
use crate::beneath::{self, io};
use crate::choice::Choice;
use crate::code::{ArchiveCode, ArchiveError};
use crate::draft::Draft;
use crate::extract::Extraction;
use crate::format::{Format, Member};
use crate::header::{Behind, Layout, Length};
use crate::listing::{self, Listed};
use crate::progress::Progress;
use crate::{order, payload, reading};
use flightproof_core::Digest;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Packs the files of a directory that `choice` admits into the file `output`, which is replaced in
/// one step if it exists. Empty directories do not travel.
///
/// Two threads read every byte once. Links are not followed and mounts are not entered: they are
/// refused unless the choice leaves them out. A file that changes between being listed and being
/// read is refused. `output` holds a whole archive or is not touched; what is written before lies
/// beside it, under a name that starts with `.prime-agent-staging`, and only a process that is
/// killed leaves that behind.
///
/// # Errors
/// What [`Snapshot::new`] refuses; whatever is neither file nor directory; the choice's own; the
/// system's.
pub fn pack_file(
    dir: &Path,
    workspace_id: impl Into<String>,
    choice: &mut dyn Choice,
    output: &Path,
    progress: &dyn Progress,
) -> Result<Snapshot, ArchiveError> {
    let root = beneath::open_root(dir)?;
    let files = listing::list(root.as_fd(), choice)?;
    // Created after the listing: the output may lie in the directory that is packed.
    let draft = Draft::beside(output)?;
    let id = workspace_id.into();
    let snapshot = write(root.as_fd(), id, files, draft.file(), choice, progress)?;
    draft.publish()?;
    Ok(snapshot)
}

/// As [`pack_file`], into an open file, which must be empty and is half written after a refusal.
///
/// # Errors
/// As [`pack_file`].
pub fn pack_to(
    dir: &Path,
    workspace_id: impl Into<String>,
    choice: &mut dyn Choice,
    out: &File,
    progress: &dyn Progress,
) -> Result<Snapshot, ArchiveError> {
    let root = beneath::open_root(dir)?;
    let files = listing::list(root.as_fd(), choice)?;
    let id = workspace_id.into();
    write(root.as_fd(), id, files, out, choice, progress)
}

/// Reads a snapshot or a changeset up to the end of the reader and verifies every byte of it.
///
/// # Errors
/// What [`super::decode`] refuses of a manifest, and a payload that is short, long, or does not
/// have the hashes of the manifest.
pub fn verify(reader: impl Read, progress: &dyn Progress) -> Result<Manifest, ArchiveError> {
    payload::verify::<Any>(reader, None, progress)
}

/// As [`verify`], from the beginning of a file by two threads, wherever its cursor stands. What is
/// no regular file is read as it comes.
///
/// # Errors
/// As [`verify`].
pub fn verify_file(file: &File, progress: &dyn Progress) -> Result<Manifest, ArchiveError> {
    payload::verify_file::<Any>(file, progress)
}

/// Reads a snapshot up to the end of the reader and writes its tree.
///
/// # Errors
/// As [`verify`] and [`Extraction`].
pub fn extract(reader: impl Read, how: &Extraction<'_>) -> Result<Snapshot, ArchiveError> {
    how.stream::<Whole>(reader, None)
}

/// As [`extract`], from the beginning of a file by two threads, wherever its cursor stands. What is
/// no regular file is read as it comes.
///
/// # Errors
/// As [`extract`].
pub fn extract_file(file: &File, how: &Extraction<'_>) -> Result<Snapshot, ArchiveError> {
    how.file::<Whole>(file)
}

/// The archive of these files: the payload to its place while it is hashed, then what goes before.
fn write(
    root: BorrowedFd<'_>,
    workspace_id: String,
    mut files: Vec<Listed>,
    out: &File,
    choice: &dyn Choice,
    progress: &dyn Progress,
) -> Result<Snapshot, ArchiveError> {
    let (outline, digests) = reading::until_whole(&mut files, |files| {
        let outline = Outline::of(workspace_id.clone(), files)?;
        out.set_len(outline.header_bytes() + outline.payload_bytes())
            .map_err(|e| io("write the archive", e))?;
        let placed = reading::one_after_the_other(files, outline.header_bytes());
        let read = reading::copy(root, &placed, out, choice, progress)?;
        Ok((outline, read))
    })?;
    let (snapshot, header) = outline.fill(digests);
    out.write_all_at(&header, 0)
        .map_err(|e| io("write the archive", e))?;
    Ok(snapshot)
}

/// A snapshot whose hashes are not known yet. They have one length, so all else is.
pub(crate) struct Outline {
    snapshot: Snapshot,
    /// Magic and length, with room for the manifest.
    header: Vec<u8>,
    header_bytes: usize,
}

impl Outline {
    pub(crate) fn of(workspace_id: String, files: &[Listed]) -> Result<Self, ArchiveError> {
        if files.len() > super::MAX_ENTRIES {
            return Err(too_many(files.len()));
        }
        check_ascending(files)?;
        let unknown = Digest::from_bytes([0; 32]);
        let entries = files.iter().map(|listed| Entry {
            path: listed.path.clone(),
            executable: listed.executable,
            size: listed.identity.size,
            sha256: unknown,
        });
        let snapshot = Snapshot {
            workspace_id,
            entries: entries.collect(),
            id: unknown,
        };
        let mut manifest = Length::default();
        write_snapshot(&mut manifest, &snapshot);
        let header_bytes = LAYOUT.header_bytes() + manifest.0;
        check_archive_size(header_bytes, snapshot.total_bytes())?;
        Ok(Self {
            snapshot,
            header: LAYOUT.header(manifest.0)?,
            header_bytes,
        })
    }

    /// Where the payload begins.
    pub(crate) fn header_bytes(&self) -> u64 {
        self.header_bytes as u64
    }

    pub(crate) fn payload_bytes(&self) -> u64 {
        self.snapshot.total_bytes()
    }

    /// The snapshot.
    pub(crate) fn named(self, digests: Vec<Digest>) -> Snapshot {
        let mut snapshot = self.snapshot;
        for (entry, digest) in snapshot.entries.iter_mut().zip(digests) {
            entry.sha256 = digest;
        }
        snapshot.id = snapshot_id(&snapshot.entries);
        snapshot
    }

    /// The snapshot and its archive without the payload.
    pub(crate) fn fill(mut self, digests: Vec<Digest>) -> (Snapshot, Vec<u8>) {
        let mut header = Behind(std::mem::take(&mut self.header));
        let snapshot = self.named(digests);
        write_snapshot(&mut header, &snapshot);
        (snapshot, header.0)
    }
}

/// A directory lists no name twice, but one that is changed while it is walked may seem to.
fn check_ascending(files: &[Listed]) -> Result<(), ArchiveError> {
    let paths = || files.iter().map(|listed| listed.path.as_str());
    match order::unsorted(paths()).or_else(|| order::conflict(paths())) {
        None => Ok(()),
        Some((_, path)) => Err(ArchiveCode::FileChanged.refuse(format_args!(
            "{}: what stands there was seen as two things",
            super::shown(path)
        ))),
    }
}

/// A snapshot or a changeset.
struct Any;

/// A snapshot.
pub(crate) struct Whole;

impl Format for Any {
    type Manifest = Manifest;
    type Member = Entry;
    const LAYOUT: Layout = LAYOUT;

    fn decode(manifest: &[u8], _: Option<u64>) -> Result<Manifest, ArchiveError> {
        decode_manifest(manifest, 0)
    }

    fn members(manifest: &Manifest) -> Vec<&Entry> {
        match manifest {
            Manifest::Snapshot(snapshot) => Whole::members(snapshot),
            Manifest::Changeset(changeset) => {
                let changes = changeset.changes().iter();
                changes.filter_map(Change::entry).collect()
            }
        }
    }

    fn id(manifest: &Manifest) -> Digest {
        match manifest {
            Manifest::Snapshot(snapshot) => snapshot.snapshot_id(),
            Manifest::Changeset(changeset) => changeset.changeset_id(),
        }
    }
}

impl Format for Whole {
    type Manifest = Snapshot;
    type Member = Entry;
    const LAYOUT: Layout = LAYOUT;

    fn decode(manifest: &[u8], _: Option<u64>) -> Result<Snapshot, ArchiveError> {
        decode_manifest(manifest, 0)?.into_snapshot()
    }

    fn members(snapshot: &Snapshot) -> Vec<&Entry> {
        snapshot.entries().iter().collect()
    }

    fn id(snapshot: &Snapshot) -> Digest {
        snapshot.snapshot_id()
    }
}

impl Member for Entry {
    fn path(&self) -> &str {
        self.path.as_str()
    }

    fn executable(&self) -> bool {
        self.executable
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn sha256(&self) -> Digest {
        self.sha256
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_ENTRIES;
    use super::*;
    use crate::choice::Everything;
    use flightproof_core::RelPath;

    fn files(paths: impl IntoIterator<Item = String>) -> Vec<Listed> {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), "").unwrap();
        let root = beneath::open_root(root.path()).unwrap();
        let found = listing::list(root.as_fd(), &mut Everything).unwrap();
        let one = found.first().unwrap();
        let named = |path: String| Listed {
            path: RelPath::new(&path).unwrap(),
            ..one.clone()
        };
        paths.into_iter().map(named).collect()
    }

    fn code(files: &[Listed]) -> Option<ArchiveCode> {
        let outline = Outline::of("w".to_owned(), files);
        outline.err().map(|e| e.code)
    }

    #[test]
    fn what_was_seen_twice_or_as_two_things_is_refused() {
        let code = |paths: [&str; 2]| code(&files(paths.map(str::to_owned)));
        assert_eq!(code(["a", "b"]), None);
        for paths in [["a", "a"], ["b", "a"], ["a", "a/b"]] {
            assert_eq!(code(paths), Some(ArchiveCode::FileChanged), "{paths:?}");
        }
    }

    #[test]
    fn a_snapshot_has_as_many_files_as_the_format_allows_and_not_one_more() {
        let files = files((0..=MAX_ENTRIES).map(|n| format!("{n:06}")));
        assert_eq!(code(&files[..MAX_ENTRIES]), None);
        assert_eq!(code(&files), Some(ArchiveCode::MaxEntriesExceeded));
    }
}
