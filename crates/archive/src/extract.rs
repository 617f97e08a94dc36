use crate::beneath::{self, Umask, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::draft::split;
use crate::format::{Format, Member};
use crate::names::Names;
use crate::paws::{self, Snapshot, Whole};
use crate::payload::{self, Stored};
use crate::progress::Progress;
use crate::source::Source;
use crate::staging::Staging;
use crate::tree::{Tree, plant, uncreated, unsafe_destination};
use flightproof_core::{Digest, RelPath};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Where and how the tree of an archive is written.
///
/// Everything the manifest can be refused for is refused before the first file is created; every
/// file is hashed before or while it is written; the tree appears under its name, whole, or not at
/// all. Modes are exactly 0644 and 0755, directories 0755, whatever the umask.
///
/// Until then it lies beside its place, in a directory that nobody else may enter and whose name
/// starts with `.prime-agent-staging`. A refusal leaves nothing behind. A process that is killed
/// leaves that directory: nothing was published, and it can be removed at any time.
#[derive(Clone, Copy)]
pub struct Extraction<'a> {
    /// What is made. It must not exist; the directory it lies in must.
    pub into: &'a Path,
    /// Which names are allowed.
    pub names: Names,
    /// Which archive it must be: the snapshot id or the build id, if one was announced.
    pub expected: Option<Digest>,
    /// Is told how far it got.
    pub progress: &'a dyn Progress,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// The tree.
    pub snapshot: Snapshot,
    /// Number of files.
    pub files: u64,
}

/// Reads a snapshot archive of exactly `size` bytes and writes its tree to `into`, which must not
/// exist yet; its parent must. Nothing beyond `size` is read. See [`Extraction`] for the rest.
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
    let how = Extraction {
        into,
        names,
        expected: Some(expected),
        progress: &(),
    };
    how.stream::<Whole>(reader, Some(size)).map(extracted)
}

/// Reads a snapshot archive as [`extract`] does and lays its files over the existing directory
/// `onto`: a file of the same path is replaced in one step, another is added.
///
/// Nothing is replaced before the whole archive is verified. A reader of any one file sees the old
/// or the new one.
///
/// # Errors
/// As [`extract`()]; [`ArchiveCode::DestinationUnsafe`] where a link, a mount, or a directory in the
/// place of a file stands in the way.
pub fn overlay(
    reader: impl Read,
    size: u64,
    expected: Digest,
    onto: &Path,
    names: Names,
) -> Result<Extracted, ArchiveError> {
    let mut source = Source::new(reader, Some(size));
    let snapshot = source.manifest::<Whole>()?;
    check_admitted::<Whole>(&snapshot, Some(expected), names)?;
    let root = beneath::open_root(onto)?;
    // Inside the directory, so that both are on one file system; its name can be no entry's.
    let staging = Staging::create(root.as_fd())?;
    write_tree::<Whole>(source, Some(size), &snapshot, staging.dir(), &())?;
    for entry in snapshot.entries() {
        check_replaceable(root.as_fd(), &entry.path)?;
    }
    let umask = Umask::of_this_process();
    for entry in snapshot.entries() {
        replace(staging.dir(), root.as_fd(), &entry.path, umask)?;
    }
    Ok(extracted(snapshot))
}

impl Extraction<'_> {
    /// From a reader as its bytes come: of exactly `size` bytes, or up to its end.
    pub(crate) fn stream<F: Format>(
        &self,
        reader: impl Read,
        size: Option<u64>,
    ) -> Result<F::Manifest, ArchiveError> {
        let mut source = Source::new(reader, size);
        let manifest = source.manifest::<F>()?;
        self.publish::<F>(&manifest, |root| {
            write_tree::<F>(source, size, &manifest, root, self.progress)
        })?;
        Ok(manifest)
    }

    /// From a file by two threads.
    pub(crate) fn file<F: Format>(&self, file: &File) -> Result<F::Manifest, ArchiveError> {
        let Some(mut stored) = Stored::open(file)? else {
            return self.stream::<F>(file, None);
        };
        let manifest = stored.manifest::<F>()?;
        self.publish::<F>(&manifest, |root| {
            let members = F::members(&manifest);
            let umask = Umask::of_this_process();
            plant(root, umask, members.iter().map(|member| member.path()))?;
            let tree = || Tree::new(root, umask);
            stored.drain::<F, _>(&members, &tree, self.progress)
        })?;
        Ok(manifest)
    }

    /// Everything around the writing: nothing is created before all is checked that can be, and
    /// nothing appears before all is written.
    fn publish<F: Format>(
        &self,
        manifest: &F::Manifest,
        write: impl FnOnce(BorrowedFd<'_>) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        check_admitted::<F>(manifest, self.expected, self.names)?;
        let (parent, name) = split(self.into)?;
        let parent = beneath::open_root(parent)?;
        self.refuse_existing(parent.as_fd(), name)?;
        let staging = Staging::create(parent.as_fd())?;
        write(staging.dir())?;
        match staging.publish(name) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST | Errno::NOTEMPTY) => Err(self.exists()),
            Err(Errno::STALE) => Err(ArchiveCode::DestinationUnsafe
                .refuse("the staging directory was replaced before it got its name")),
            Err(e) => Err(io("publish the tree", e)),
        }
    }

    fn refuse_existing(&self, parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), ArchiveError> {
        match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Ok(_) => Err(self.exists()),
            Err(e) => Err(io("look at the destination", e)),
        }
    }

    fn exists(&self) -> ArchiveError {
        ArchiveCode::DestinationExists.refuse(paws::shown(&self.into.to_string_lossy()))
    }
}

fn extracted(snapshot: Snapshot) -> Extracted {
    Extracted {
        files: snapshot.entries().len() as u64,
        snapshot,
    }
}

/// What a sound archive can still be refused for: it is not the one, or has names that may not be.
fn check_admitted<F: Format>(
    manifest: &F::Manifest,
    expected: Option<Digest>,
    names: Names,
) -> Result<(), ArchiveError> {
    let found = F::id(manifest);
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        let detail = format!("got {found}, expected {expected}");
        return Err(ArchiveCode::SnapshotUnexpected.refuse(detail));
    }
    let members = F::members(manifest);
    check_directories(members.iter().map(|member| member.path()))?;
    names.check_paths(members.iter().map(|member| member.path()))
}

/// A path may lead through hundreds of directories, and each costs an inode as a file does.
pub(crate) fn check_directories<'a>(
    paths: impl Iterator<Item = &'a str>,
) -> Result<(), ArchiveError> {
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_unstable();
    let (mut before, mut count) = ("", 0);
    for path in paths {
        let pairs = before.bytes().zip(path.bytes());
        let shared = pairs.take_while(|(a, b)| a == b).count();
        count += path
            .match_indices('/')
            .filter(|(at, _)| *at >= shared)
            .count();
        before = path;
    }
    if count > paws::MAX_ENTRIES {
        let detail = format!(
            "{count} directories, at most {} are made",
            paws::MAX_ENTRIES
        );
        return Err(ArchiveCode::MaxEntriesExceeded.refuse(detail));
    }
    Ok(())
}

fn write_tree<F: Format>(
    source: Source<impl Read>,
    size: Option<u64>,
    manifest: &F::Manifest,
    root: BorrowedFd<'_>,
    progress: &dyn Progress,
) -> Result<(), ArchiveError> {
    let members = F::members(manifest);
    let umask = Umask::of_this_process();
    plant(root, umask, members.iter().map(|member| member.path()))?;
    let mut tree = Tree::new(root, umask);
    payload::drain::<F>(source, size, &members, &mut tree, progress)
}

/// Only a regular file may be replaced, and only beneath real directories.
fn check_replaceable(root: BorrowedFd<'_>, path: &RelPath) -> Result<(), ArchiveError> {
    let parent = match path.parent() {
        None => None,
        Some(parent) => match beneath::open_directory(root, parent) {
            Ok(fd) => Some(fd),
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(uncreated(path.as_str(), e)),
        },
    };
    let parent = parent.as_ref().map_or(root, OwnedFd::as_fd);
    match rustix::fs::statat(parent, path.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Ok(()),
        Ok(_) => Err(unsafe_destination(path.as_str(), "no regular file")),
        Err(e) => Err(uncreated(path.as_str(), e)),
    }
}

/// Moves one staged file to its place, creating the directories it lacks.
fn replace(
    staging: BorrowedFd<'_>,
    root: BorrowedFd<'_>,
    path: &RelPath,
    umask: Umask,
) -> Result<(), ArchiveError> {
    let mut above: Option<OwnedFd> = None;
    for segment in path.parent().into_iter().flat_map(|p| p.split('/')) {
        let dir = above.as_ref().map_or(root, OwnedFd::as_fd);
        let next = match beneath::open_directory(dir, segment) {
            Err(Errno::NOENT) => beneath::create_directory(dir, segment, umask),
            opened => opened,
        };
        above = Some(next.map_err(|e| uncreated(path.as_str(), e))?);
    }
    let dir = above.as_ref().map_or(root, OwnedFd::as_fd);
    // The old path leads through directories that were just created and nobody else may write to.
    rustix::fs::renameat(staging, path.as_str(), dir, path.file_name())
        .map_err(|e| uncreated(path.as_str(), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_counted_once_and_bounded() {
        let paths = |count: usize| -> Vec<String> {
            (0..count)
                .flat_map(|n| [format!("d{n}/e/f"), format!("d{n}/e/g"), format!("d{n}.h")])
                .collect()
        };
        let half = paws::MAX_ENTRIES / 2;
        for (count, code) in [
            (0, None),
            (half, None),
            (half + 1, Some(ArchiveCode::MaxEntriesExceeded)),
        ] {
            let paths = paths(count);
            let found = check_directories(paths.iter().map(String::as_str));
            assert_eq!(found.err().map(|e| e.code), code, "{count}");
        }
    }
}
