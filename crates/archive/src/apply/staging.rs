//! The directory beside the tree in which everything lies that is not in its place yet, or not any
//! more.

use super::content::open_file;
use crate::beneath::{self, Umask, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::format::Member;
use crate::paws::{Changeset, Entry, shown};
use crate::payload::Sink;
use flightproof_core::RelPath;
use rustix::fs::Advice;
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The staging directory and what lies in it.
pub(super) struct Staging {
    pub(super) dir: OwnedFd,
    /// One name for each change, its number.
    pub(super) slots: OwnedFd,
    /// One name for each new directory, its number.
    pub(super) directories: OwnedFd,
}

impl Staging {
    pub(super) const NAME: &str = ".prime-agent-staging-apply";

    pub(super) fn create(root: BorrowedFd<'_>) -> Result<Self, ArchiveError> {
        let failed = |e| io("create the staging directory", e);
        let dir = beneath::create_private_directory(root, Self::NAME).map_err(failed)?;
        crate::staging::make_bare(&dir)?;
        let slots = beneath::create_private_directory(&dir, SLOTS).map_err(failed)?;
        let directories = beneath::create_private_directory(&dir, DIRECTORIES).map_err(failed)?;
        Ok(Self {
            dir,
            slots,
            directories,
        })
    }

    /// The one a crash left, which must be ours: what it says is done to the tree.
    pub(super) fn find(root: BorrowedFd<'_>) -> Result<Option<OwnedFd>, ArchiveError> {
        let dir = match beneath::open_directory(root, Self::NAME) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(foreign(&e)),
        };
        let stat = rustix::fs::fstat(&dir).map_err(|e| io("look at the staging directory", e))?;
        let private = stat.st_mode & 0o077 == 0;
        if !private || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(foreign(&"it belongs to somebody else"));
        }
        Ok(Some(dir))
    }

    /// Removes it with what is ours in it. What stays would stand in the tree for good.
    pub(super) fn remove(root: BorrowedFd<'_>) -> Result<(), ArchiveError> {
        match crate::staging::remove_tree(root, Self::NAME) {
            true => Ok(()),
            false => Err(io("remove the staging directory", "something in it stays")),
        }
    }

    pub(super) fn open(dir: OwnedFd) -> Result<Self, ArchiveError> {
        let failed = |e| ArchiveCode::JournalDamaged.refuse(e);
        let slots = beneath::open_directory(&dir, SLOTS).map_err(failed)?;
        let directories = beneath::open_directory(&dir, DIRECTORIES).map_err(failed)?;
        Ok(Self {
            dir,
            slots,
            directories,
        })
    }

    /// Makes the missing directories, and gives the inodes of the staged files. All of it is on the
    /// disk afterwards.
    pub(super) fn complete(
        &self,
        changes: &Changeset,
        missing: &[RelPath],
    ) -> Result<Vec<u64>, ArchiveError> {
        let umask = Umask::of_this_process();
        for (number, path) in missing.iter().enumerate() {
            beneath::create_directory(&self.directories, &number.to_string(), umask)
                .map_err(|e| io(format_args!("create \"{path}\""), e))?;
        }
        let few = changes.changes().len() + missing.len() <= FEW;
        let (mut inodes, mut files) = (Vec::new(), Vec::new());
        for (number, change) in changes.changes().iter().enumerate() {
            let Some(entry) = change.entry() else {
                inodes.push(0);
                continue;
            };
            let (file, inode) = self.staged(number, entry)?;
            inodes.push(inode);
            if few {
                // Begins to write it, so that the first one that is waited for takes all along.
                let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
                files.push((file, entry));
            }
        }
        for (file, entry) in &files {
            rustix::fs::fsync(file).map_err(|e| unstaged(entry, e))?;
        }
        if few {
            sync(&self.slots)?;
            sync(&self.directories)?;
        } else {
            rustix::fs::syncfs(&self.dir).map_err(|e| io("write to the disk", e))?;
        }
        Ok(inodes)
    }

    /// What tells this directory from a copy.
    pub(super) fn inode_of_directory(&self) -> Result<u64, ArchiveError> {
        let stat = rustix::fs::fstat(&self.dir);
        Ok(stat
            .map_err(|e| io("look at the staging directory", e))?
            .st_ino)
    }

    /// A staged file and its inode.
    fn staged(&self, number: usize, entry: &Entry) -> Result<(File, u64), ArchiveError> {
        let file = open_file(&self.slots, &number.to_string()).map_err(|e| unstaged(entry, e))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| unstaged(entry, e))?;
        Ok((file, stat.st_ino))
    }
}

/// Where one thread writes the new files: each into its slot.
pub(super) struct Slots<'a> {
    pub(super) staging: &'a Staging,
    /// Path to number.
    pub(super) numbers: &'a HashMap<&'a str, usize>,
    pub(super) umask: Umask,
}

impl Sink for Slots<'_> {
    type Open = File;

    fn create<M: Member>(&mut self, member: &M) -> Result<File, ArchiveError> {
        let number = self.numbers.get(member.path()).copied().unwrap_or_default();
        let slots = &self.staging.slots;
        beneath::create_file(slots, &number.to_string(), member.executable(), self.umask)
            .map_err(|e| io(format_args!("stage {}", shown(member.path())), e))
    }

    fn write<M: Member>(
        &mut self,
        file: &mut File,
        member: &M,
        bytes: &[u8],
    ) -> Result<(), ArchiveError> {
        file.write_all(bytes)
            .map_err(|e| io(format_args!("stage {}", shown(member.path())), e))
    }
}

fn unstaged(entry: &Entry, error: Errno) -> ArchiveError {
    io(format_args!("stage \"{}\"", entry.path), error)
}

pub(super) fn sync(dir: impl AsFd) -> Result<(), ArchiveError> {
    rustix::fs::fsync(dir).map_err(|e| io("write to the disk", e))
}

fn foreign(how: &dyn std::fmt::Display) -> ArchiveError {
    ArchiveCode::DestinationUnsafe.refuse(format_args!("\"{}\": {how}", Staging::NAME))
}

const SLOTS: &str = "slots";
const DIRECTORIES: &str = "directories";

/// Files or directories that are brought to the disk one by one; where there are more, the whole
/// file system is, in one call.
pub(super) const FEW: usize = 64;
