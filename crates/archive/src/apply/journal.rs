//! The plan as it lies on the disk while it is carried out.

use super::staging::sync;
use crate::beneath::{self, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::paws::{self, Changeset, MAX_MANIFEST_BYTES, Manifest};
use flightproof_core::{Digest, RelPath};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

/// What recovery must know beside the changeset itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journal {
    /// The changeset, whose manifest lies beside this.
    pub(super) changeset_id: Digest,
    /// The inode of the staging directory it was written in. A journal that came with a copied or
    /// checked-out tree has another: its inodes mean nothing, and it may be somebody's forgery.
    pub(super) staging: u64,
    /// The directory beside the staging one that takes what must be kept for the user.
    pub(super) keep: String,
    /// Something outside the tree says whether the new tree counts, and not the mark here.
    pub(super) sealed: bool,
    /// The directories that are made, outer ones first.
    pub(super) directories: Vec<RelPath>,
    /// For each change the inode of its staged file, 0 where it has none. This is how recovery
    /// tells whether a file was swapped: contents may be equal.
    pub(super) inodes: Vec<u64>,
}

impl Journal {
    /// One fact a line; paths hold no line ends.
    fn to_text(&self) -> String {
        let mut text = format!("{FORMAT}\nchangeset {}\n", self.changeset_id);
        text.push_str(&format!("staging {}\nkeep {}\n", self.staging, self.keep));
        if self.sealed {
            text.push_str("sealed outside\n");
        }
        for path in &self.directories {
            text.push_str(&format!("directory {}\n", path.as_str()));
        }
        for inode in &self.inodes {
            text.push_str(&format!("inode {inode}\n"));
        }
        text.push_str("end\n");
        text
    }

    /// `None` for anything but what [`Journal::to_text`] writes.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut journal = Self {
            changeset_id: lines.next()?.strip_prefix("changeset ")?.parse().ok()?,
            staging: lines.next()?.strip_prefix("staging ")?.parse().ok()?,
            keep: lines.next()?.strip_prefix("keep ")?.to_owned(),
            sealed: false,
            directories: Vec::new(),
            inodes: Vec::new(),
        };
        for line in lines {
            match line.split_once(' ') {
                Some(("sealed", _)) => journal.sealed = true,
                Some(("directory", path)) => journal.directories.push(RelPath::new(path).ok()?),
                Some(("inode", inode)) => journal.inodes.push(inode.parse().ok()?),
                _ => {}
            }
        }
        let named = journal.keep.starts_with(RelPath::RESERVED) && !journal.keep.contains('/');
        (named && journal.to_text() == text).then_some(journal)
    }

    /// Writes both files. The journal appears last and whole.
    pub(super) fn store(&self, staging: &OwnedFd, changes: &Changeset) -> Result<(), ArchiveError> {
        write(staging, CHANGES, &changes.header()?)?;
        write(staging, DRAFT, self.to_text().as_bytes())?;
        rustix::fs::renameat(staging, DRAFT, staging, JOURNAL)
            .map_err(|e| io("write the journal", e))?;
        sync(staging)
    }

    /// What a crash left: `None` where nothing was recorded, and so nothing was touched.
    pub(super) fn load(staging: &OwnedFd) -> Result<Option<(Self, Changeset)>, ArchiveError> {
        let Some(text) = read(staging, JOURNAL, MAX_JOURNAL_BYTES)? else {
            return Ok(None);
        };
        let text = String::from_utf8(text).map_err(damaged)?;
        let journal = Self::parse(&text).ok_or_else(|| damaged("it is not readable"))?;
        let most = MAX_MANIFEST_BYTES + paws::LAYOUT.header_bytes();
        let changes = read(staging, CHANGES, most)?.unwrap_or_default();
        let Ok(Manifest::Changeset(changes)) = paws::decode(&changes) else {
            return Err(damaged("its changes are not readable"));
        };
        let here = rustix::fs::fstat(staging).map_err(|e| io("look at the journal", e))?;
        if journal.staging != here.st_ino {
            return Err(damaged("it was written in another place"));
        }
        if journal.inodes.len() != changes.changes().len()
            || journal.changeset_id != changes.changeset_id()
        {
            return Err(damaged("it does not fit its changes"));
        }
        Ok(Some((journal, changes)))
    }

    /// Whether the new tree counts.
    pub(super) fn is_committed(staging: &OwnedFd) -> Result<bool, ArchiveError> {
        match rustix::fs::statat(staging, COMMITTED, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(io("look for the commit mark", e)),
        }
    }

    pub(super) fn commit(staging: &OwnedFd) -> Result<(), ArchiveError> {
        write(staging, COMMITTED, b"")?;
        sync(staging)
    }

    pub(super) fn uncommit(staging: &OwnedFd) -> Result<(), ArchiveError> {
        remove(staging, COMMITTED)?;
        sync(staging)
    }

    /// Removes all that [`Journal::store`] and [`Journal::commit`] wrote. The journal goes first:
    /// without it the mark means nothing, and without the mark it would mean the way back.
    pub(super) fn remove(staging: &OwnedFd) -> Result<(), ArchiveError> {
        remove(staging, JOURNAL)?;
        sync(staging)?;
        [DRAFT, CHANGES, COMMITTED]
            .into_iter()
            .try_for_each(|name| remove(staging, name))
    }
}

fn write(dir: &OwnedFd, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let failed = |e: &dyn std::fmt::Display| io("write the journal", e);
    let file = beneath::open(dir, name, flags, Mode::RUSR | Mode::WUSR).map_err(|e| failed(&e))?;
    let mut file = File::from(file);
    file.write_all(bytes).map_err(|e| failed(&e))?;
    file.sync_all().map_err(|e| failed(&e))
}

fn read(dir: &OwnedFd, name: &str, most: usize) -> Result<Option<Vec<u8>>, ArchiveError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = match beneath::open(dir, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(io("open the journal", e)),
    };
    let mut bytes = Vec::new();
    let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|e| io("read the journal", e))?;
    Ok(Some(bytes))
}

pub(super) fn remove(dir: impl AsFd, name: &str) -> Result<(), ArchiveError> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(io("remove a staged file", e)),
    }
}

fn damaged(reason: impl std::fmt::Display) -> ArchiveError {
    ArchiveCode::JournalDamaged.refuse(reason)
}

const FORMAT: &str = "flightproof-apply/1";

const JOURNAL: &str = "journal";
const DRAFT: &str = "journal.new";
const CHANGES: &str = "changes";
const COMMITTED: &str = "committed";

/// Most bytes of a journal, 128 MiB: the paths of 100,000 directories, and 100,000 inodes.
const MAX_JOURNAL_BYTES: usize = 128 << 20;
