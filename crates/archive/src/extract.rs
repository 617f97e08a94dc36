use crate::beneath::{self, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::names::Names;
use crate::paws::{self, Entry, LAYOUT, MAX_ARCHIVE_BYTES, Snapshot};
use flightproof_core::{Digest, Hasher, RelPath};
use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// The tree.
    pub snapshot: Snapshot,
    /// Number of files.
    pub files: u64,
}

/// Reads a snapshot archive of exactly `size` bytes and writes its tree to `into`, which must not
/// exist yet; its parent must. Nothing beyond `size` is read.
///
/// Memory is bounded by the manifest. Everything the manifest can be refused for is refused before
/// the first file is created; every file is hashed while it is written; the tree appears under its
/// name, whole, or not at all. Modes are exactly 0644 and 0755, directories 0755.
///
/// # Errors
/// What [`paws::read`] refuses, [`ArchiveCode::SnapshotUnexpected`] where it is another tree than
/// `expected`, names that `names` does not allow, a destination that exists, and the system's.
pub fn extract(
    reader: impl Read,
    size: u64,
    expected: Digest,
    into: &Path,
    names: Names,
) -> Result<Extracted, ArchiveError> {
    let mut source = Source { reader, left: size };
    let snapshot = source.snapshot(expected, names)?;
    let (parent, name) = split(into)?;
    let root = beneath::open_root(parent)?;
    refuse_existing(&root, name, into)?;
    let staging = Staging::create(&root, parent)?;
    write_tree(staging.dir.as_fd(), &snapshot, &mut source)?;
    let published = beneath::publish_directory(&staging.dir).and_then(|()| {
        rustix::fs::renameat_with(&root, &staging.name, &root, name, RenameFlags::NOREPLACE)
    });
    match published {
        Ok(()) => Ok(extracted(snapshot)),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(exists(into)),
        Err(e) => Err(io("publish the tree", e)),
    }
}

/// Reads a snapshot archive as [`extract`] does and lays its files over the existing directory
/// `onto`: a file of the same path is replaced in one step, another is added.
///
/// Nothing is replaced before the whole archive is verified. A reader of any one file sees the old
/// or the new one.
///
/// # Errors
/// As [`extract`]; [`ArchiveCode::DestinationUnsafe`] where a link, a mount, or a directory in the
/// place of a file stands in the way.
pub fn overlay(
    reader: impl Read,
    size: u64,
    expected: Digest,
    onto: &Path,
    names: Names,
) -> Result<Extracted, ArchiveError> {
    let mut source = Source { reader, left: size };
    let snapshot = source.snapshot(expected, names)?;
    let root = beneath::open_root(onto)?;
    // Inside the directory, so that both are on one file system; its name can be no entry's.
    let staging = Staging::create(&root, onto)?;
    write_tree(staging.dir.as_fd(), &snapshot, &mut source)?;
    for entry in snapshot.entries() {
        check_replaceable(root.as_fd(), &entry.path)?;
    }
    for entry in snapshot.entries() {
        replace(staging.dir.as_fd(), root.as_fd(), &entry.path)?;
    }
    Ok(extracted(snapshot))
}

fn extracted(snapshot: Snapshot) -> Extracted {
    Extracted {
        files: snapshot.entries().len() as u64,
        snapshot,
    }
}

fn split(into: &Path) -> Result<(&Path, &std::ffi::OsStr), ArchiveError> {
    let name = into
        .file_name()
        .ok_or_else(|| io("extract", "the destination has no name"))?;
    match into.parent() {
        Some(parent) if parent != Path::new("") => Ok((parent, name)),
        _ => Ok((Path::new("."), name)),
    }
}

fn refuse_existing(
    root: &OwnedFd,
    name: &std::ffi::OsStr,
    into: &Path,
) -> Result<(), ArchiveError> {
    match rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Ok(_) => Err(exists(into)),
        Err(e) => Err(io("look at the destination", e)),
    }
}

fn exists(into: &Path) -> ArchiveError {
    ArchiveCode::DestinationExists.refuse(paws::shown(&into.to_string_lossy()))
}

/// The bytes of an archive, counted.
struct Source<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Source<R> {
    /// Header and manifest, checked against what was announced.
    fn snapshot(&mut self, expected: Digest, names: Names) -> Result<Snapshot, ArchiveError> {
        if self.left > MAX_ARCHIVE_BYTES {
            return Err(ArchiveCode::ArchiveTooLarge.refuse(format_args!(
                "{} bytes, at most {MAX_ARCHIVE_BYTES} allowed",
                self.left
            )));
        }
        let header = self.piece(LAYOUT.header_bytes())?;
        paws::check_not_empty(&header)?;
        let length = LAYOUT.manifest_length(&header)?;
        let manifest = self.piece(length)?;
        if manifest.len() < length {
            return Err(ArchiveCode::ManifestTruncated.refuse(format_args!(
                "the manifest says {length} bytes, {} are there",
                manifest.len()
            )));
        }
        let snapshot = paws::decode_manifest(&manifest, 0)?.into_snapshot()?;
        if snapshot.snapshot_id() != expected {
            return Err(ArchiveCode::SnapshotUnexpected.refuse(format_args!(
                "got {}, expected {expected}",
                snapshot.snapshot_id()
            )));
        }
        paws::check_payload_length(self.left, snapshot.total_bytes())?;
        names.check(&snapshot)?;
        Ok(snapshot)
    }

    /// The next `length` bytes, fewer at the end. Grows as bytes arrive, not on a claim.
    fn piece(&mut self, length: usize) -> Result<Vec<u8>, ArchiveError> {
        let most = self.left.min(length as u64);
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(most).read_to_end(&mut bytes);
        read.map_err(|e| io("read the archive", e))?;
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }

    /// Copies one file's bytes and checks their hash.
    fn copy(
        &mut self,
        entry: &Entry,
        file: &mut File,
        buffer: &mut [u8],
    ) -> Result<(), ArchiveError> {
        let mut hasher = Hasher::new();
        let mut missing = entry.size;
        while missing > 0 {
            let most = usize::try_from(missing)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let piece = buffer.get_mut(..most).unwrap_or_default();
            let got = match self.reader.read(piece) {
                Ok(0) => return paws::check_payload_length(entry.size - missing, entry.size),
                Ok(got) => got.min(most),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(io("read the archive", e)),
            };
            let piece = piece.get(..got).unwrap_or_default();
            hasher.update(piece);
            file.write_all(piece)
                .map_err(|e| io(format_args!("write \"{}\"", entry.path), e))?;
            missing -= got as u64;
            self.left -= got as u64;
        }
        paws::check_hash(entry, hasher.finish())
    }
}

/// A directory under a name that no tree may use, gone when dropped unless it was renamed.
struct Staging {
    dir: OwnedFd,
    name: String,
    place: PathBuf,
}

impl Staging {
    /// In the directory `root`, whose path is `path`.
    fn create(root: &OwnedFd, path: &Path) -> Result<Self, ArchiveError> {
        let mut nonce = [0u8; 16];
        let filled = rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty());
        filled.map_err(|e| io("draw a random name", e))?;
        let name = format!("{}-{:032x}", RelPath::RESERVED, u128::from_be_bytes(nonce));
        let dir = beneath::create_private_directory(root, &name)
            .map_err(|e| io("create a staging directory", e))?;
        let place = path.join(&name);
        Ok(Self { dir, name, place })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After a rename there is nothing of that name, and that is the error that is ignored.
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// Bytes copied at once, 256 KiB: larger gains nothing measurable, and it is all the memory a file
/// needs.
const COPY_BYTES: usize = 256 << 10;

fn write_tree<R: Read>(
    root: BorrowedFd<'_>,
    snapshot: &Snapshot,
    source: &mut Source<R>,
) -> Result<(), ArchiveError> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut tree = Tree {
        root,
        open: Vec::new(),
    };
    for entry in snapshot.entries() {
        let dir = tree.directory_of(&entry.path)?;
        let made = beneath::create_file(dir, entry.path.file_name(), entry.executable);
        let mut file = made.map_err(|e| uncreated(&entry.path, e))?;
        source.copy(entry, &mut file, &mut buffer)?;
    }
    Ok(())
}

/// The directories on the way to the current file, held open. Paths ascend by bytes, so all that
/// lies in one directory comes in one run: each is created once, and one that exists already means
/// the file system folds two names to one.
struct Tree<'a> {
    root: BorrowedFd<'a>,
    open: Vec<(String, OwnedFd)>,
}

impl Tree<'_> {
    fn directory_of(&mut self, path: &RelPath) -> Result<BorrowedFd<'_>, ArchiveError> {
        let segments: Vec<&str> = path.parent().map_or(Vec::new(), |p| p.split('/').collect());
        let shared = self.open.iter().zip(&segments);
        let shared = shared
            .take_while(|((name, _), segment)| name == *segment)
            .count();
        self.open.truncate(shared);
        for segment in segments.into_iter().skip(shared) {
            let above = self.open.last().map_or(self.root, |(_, fd)| fd.as_fd());
            let made = beneath::create_directory(above, segment).map_err(|e| uncreated(path, e))?;
            self.open.push((segment.to_owned(), made));
        }
        Ok(self.open.last().map_or(self.root, |(_, fd)| fd.as_fd()))
    }
}

fn uncreated(path: &RelPath, error: Errno) -> ArchiveError {
    match error {
        Errno::EXIST => ArchiveCode::NameCollision.refuse(format_args!(
            "\"{path}\": this file system has the name already"
        )),
        Errno::LOOP | Errno::XDEV | Errno::NOTDIR => unsafe_destination(path, error),
        error => io(format_args!("create \"{path}\""), error),
    }
}

fn unsafe_destination(path: &RelPath, found: impl std::fmt::Display) -> ArchiveError {
    ArchiveCode::DestinationUnsafe.refuse(format_args!("\"{path}\": {found}"))
}

/// Only a regular file may be replaced, and only beneath real directories.
fn check_replaceable(root: BorrowedFd<'_>, path: &RelPath) -> Result<(), ArchiveError> {
    let parent = match path.parent() {
        None => None,
        Some(parent) => match beneath::open_directory(root, parent) {
            Ok(fd) => Some(fd),
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(uncreated(path, e)),
        },
    };
    let parent = parent.as_ref().map_or(root, OwnedFd::as_fd);
    match rustix::fs::statat(parent, path.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Ok(()),
        Ok(_) => Err(unsafe_destination(path, "no regular file")),
        Err(e) => Err(uncreated(path, e)),
    }
}

/// Moves one staged file to its place, creating the directories it lacks.
fn replace(
    staging: BorrowedFd<'_>,
    root: BorrowedFd<'_>,
    path: &RelPath,
) -> Result<(), ArchiveError> {
    let mut above: Option<OwnedFd> = None;
    for segment in path.parent().into_iter().flat_map(|p| p.split('/')) {
        let dir = above.as_ref().map_or(root, OwnedFd::as_fd);
        let next = match beneath::open_directory(dir, segment) {
            Err(Errno::NOENT) => beneath::create_directory(dir, segment),
            opened => opened,
        };
        above = Some(next.map_err(|e| uncreated(path, e))?);
    }
    let dir = above.as_ref().map_or(root, OwnedFd::as_fd);
    // The old path leads through directories that were just created and nobody else may write to.
    rustix::fs::renameat(staging, path.as_str(), dir, path.file_name())
        .map_err(|e| uncreated(path, e))
}
