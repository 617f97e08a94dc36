//! The acts of the protocol on a real tree.
//!
//! Beside the tree, inside its root, lies the staging directory. In `slots` each change has one
//! name, its number: before the swap it holds the new file, after it the old one. So what was done
//! is read from a place where nobody else writes, and a swap is one rename that loses nothing:
//! whatever stood in the tree at that moment is in the slot afterwards.

use super::content::{digest_of, open_file};
use super::journal::{self, Journal};
use super::protocol::{Act, Plan};
use super::staging::{FEW, Staging, sync};
use super::{Kept, Look};
use crate::beneath::{self, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::listing::Identity;
use crate::paws::{Change, Changeset, shown};
use flightproof_core::{Digest, RelPath};
use rustix::fs::{AtFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A tree that a changeset is applied to.
pub(super) struct Site<'a> {
    root: BorrowedFd<'a>,
    staging: &'a Staging,
    changes: &'a Changeset,
    journal: Journal,
    /// The changes in the order they are done: what goes first, so that what comes may have its
    /// name in another letter case.
    order: Vec<usize>,
    /// For each change the state of the old file when it was looked at.
    looks: HashMap<usize, Identity>,
    look: Look,
    pub(super) kept: Vec<Kept>,
}

/// What lies in a slot.
#[derive(PartialEq)]
enum Slot {
    Empty,
    /// The staged file, by its inode. Somebody may have written to it while it was in the tree.
    Ours,
    /// What was in the tree.
    Theirs,
}

impl<'a> Site<'a> {
    pub(super) fn new(
        root: BorrowedFd<'a>,
        staging: &'a Staging,
        changes: &'a Changeset,
        journal: Journal,
        look: Look,
    ) -> Self {
        let turn = |change: &Change| match change {
            Change::Delete { .. } => 0,
            Change::Change { .. } => 1,
            Change::Add(_) => 2,
        };
        let mut order: Vec<usize> = (0..changes.changes().len()).collect();
        order.sort_by_key(|number| changes.changes().get(*number).map(turn));
        Self {
            root,
            staging,
            changes,
            journal,
            order,
            looks: HashMap::new(),
            look,
            kept: Vec::new(),
        }
    }

    pub(super) fn plan(&self) -> Plan {
        Plan {
            directories: self.journal.directories.len(),
            swaps: self.order.len(),
        }
    }

    pub(super) fn perform(&mut self, act: Act) -> Result<(), ArchiveError> {
        match act {
            Act::Record => self.record(),
            Act::MakeDirectory(at) => self.make_directory(at),
            Act::Swap(at) => self.swap(self.number(at)),
            Act::Settle => self.settle(),
            Act::Commit => Journal::commit(&self.staging.dir),
            Act::Uncommit => Journal::uncommit(&self.staging.dir),
            Act::UndoSwap(at) => self.undo_swap(self.number(at)),
            Act::UndoDirectory(at) => self.undo_directory(at),
            Act::Sweep => self.sweep(),
            Act::Clear => self.clear(),
            Act::Prune => self.prune(),
            Act::Forget => self.forget(),
            Act::Finish(_) => Ok(()),
        }
    }

    /// The number of the change that is done at this turn.
    fn number(&self, turn: usize) -> usize {
        self.order.get(turn).copied().unwrap_or_default()
    }

    fn change(&self, number: usize) -> Option<&'a Change> {
        self.changes.changes().get(number)
    }

    fn record(&self) -> Result<(), ArchiveError> {
        self.journal.store(&self.staging.dir, self.changes)?;
        // The name of the staging directory itself.
        sync(self.root)
    }

    fn make_directory(&self, number: usize) -> Result<(), ArchiveError> {
        let Some(path) = self.journal.directories.get(number) else {
            return Ok(());
        };
        let parent = self.parent(path).map_err(|e| edited(path, e))?;
        let from = (self.staging.directories.as_fd(), number.to_string());
        rename(
            from,
            (parent.as_fd(), path.file_name()),
            RenameFlags::NOREPLACE,
        )
        .map_err(|e| meanwhile(path, e))
    }

    fn swap(&mut self, number: usize) -> Result<(), ArchiveError> {
        let Some(change) = self.change(number) else {
            return Ok(());
        };
        let path = change.path();
        let parent = self.parent(path).map_err(|e| meanwhile(path, e))?;
        let place = (parent.as_fd(), path.file_name());
        let slot = (self.staging.slots.as_fd(), number.to_string());
        match change {
            Change::Add(_) => rename(slot, place, RenameFlags::NOREPLACE),
            Change::Change { .. } => rename(slot, place, RenameFlags::EXCHANGE),
            Change::Delete { .. } => rename(place, slot, RenameFlags::NOREPLACE),
        }
        .map_err(|e| meanwhile(path, e))?;
        match change {
            Change::Add(_) => Ok(()),
            Change::Change { base_hash, .. } | Change::Delete { base_hash, .. } => {
                self.look_at(number, path, *base_hash)
            }
        }
    }

    /// What came out must still be what was checked before.
    fn look_at(
        &mut self,
        number: usize,
        path: &RelPath,
        expected: Digest,
    ) -> Result<(), ArchiveError> {
        if self.look == Look::Never {
            return Ok(());
        }
        match self.slot_digest(number, path)? {
            Some((found, identity)) if found == expected => {
                self.looks.insert(number, identity);
                Ok(())
            }
            _ => Err(edited(path, "it is no longer what was checked")),
        }
    }

    /// The tree to the disk, and one more look: whoever had an old file open may have written to it
    /// since.
    fn settle(&mut self) -> Result<(), ArchiveError> {
        self.sync_tree(|path, e| Err(edited_at(path, e)))?;
        match self.touched()? {
            Some(number) if self.look == Look::Always => {
                let path = self.change(number).map(Change::path);
                Err(path.map_or_else(
                    || io("look at a file", "it has no number"),
                    |path| edited(path, "somebody had it open and wrote to it"),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Forces every directory to the disk in which a file or directory of the plan has its name. `gone`
    /// says what it means if one cannot be opened.
    fn sync_tree(
        &self,
        gone: impl Fn(&str, Errno) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let changed = self.changes.changes().iter().map(|c| c.path().parent());
        let made = self.journal.directories.iter().map(|path| path.parent());
        let parents: BTreeSet<Option<&str>> = changed.chain(made).collect();
        if parents.len() > FEW {
            rustix::fs::syncfs(self.root).map_err(|e| io("write to the disk", e))?;
        } else {
            for parent in parents {
                match parent.map(|path| (path, beneath::open_directory(self.root, path))) {
                    None => sync(self.root)?,
                    Some((_, Ok(dir))) => sync(&dir)?,
                    Some((path, Err(e))) => gone(path, e)?,
                }
            }
        }
        sync(&self.staging.slots)
    }

    /// A change whose old file is not in the state in which it was looked at.
    fn touched(&self) -> Result<Option<usize>, ArchiveError> {
        for (number, look) in &self.looks {
            if self.slot_identity(*number)? != Some(*look) {
                return Ok(Some(*number));
            }
        }
        Ok(None)
    }

    fn undo_swap(&mut self, number: usize) -> Result<(), ArchiveError> {
        let Some(change) = self.change(number) else {
            return Ok(());
        };
        let path = change.path();
        let parent = match self.parent(path) {
            Ok(parent) => parent,
            // What is in the slot is kept.
            Err(e) if is_gone(e) => return Ok(()),
            Err(e) => return Err(not_back(path, e)),
        };
        let place = (parent.as_fd(), path.file_name());
        let state = self.slot(number)?;
        match (change, state) {
            (Change::Add(_), Slot::Empty) => self.take_out(number, path, place),
            (Change::Change { .. }, Slot::Theirs) => self.change_back(number, path, place),
            (Change::Delete { .. }, Slot::Theirs) => self.put_back(number, path, place),
            _ => Ok(()),
        }
    }

    /// Takes an added file out of the tree, unless somebody made it theirs.
    fn take_out(
        &self,
        number: usize,
        path: &RelPath,
        place: Place<'_>,
    ) -> Result<(), ArchiveError> {
        let there = stat_of(place).map_err(|e| not_back(path, e))?;
        if !self.is_ours(number, there.as_ref()) {
            return Ok(());
        }
        let slot = (self.staging.slots.as_fd(), number.to_string());
        match rename(place, slot, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(not_back(path, e)),
        }
        if self.is_pristine(number, path)? {
            return Ok(());
        }
        self.put_back(number, path, place)
    }

    /// Exchanges a changed file for the old one, unless somebody made it theirs: then that stays,
    /// and the old one is kept.
    fn change_back(
        &self,
        number: usize,
        path: &RelPath,
        place: Place<'_>,
    ) -> Result<(), ArchiveError> {
        let there = stat_of(place).map_err(|e| not_back(path, e))?;
        if there.is_none() {
            return self.put_back(number, path, place);
        }
        if !self.is_ours(number, there.as_ref()) {
            return Ok(());
        }
        let exchange = || {
            let slot = (self.staging.slots.as_fd(), number.to_string());
            match rename(slot, place, RenameFlags::EXCHANGE) {
                Err(Errno::NOENT) => self.put_back(number, path, place),
                done => done.map_err(|e| not_back(path, e)),
            }
        };
        exchange()?;
        if self.is_pristine(number, path)? {
            return Ok(());
        }
        exchange()
    }

    /// Puts what is in a slot where nothing stands. Where something stands it stays in the slot.
    fn put_back(
        &self,
        number: usize,
        path: &RelPath,
        place: Place<'_>,
    ) -> Result<(), ArchiveError> {
        let slot = (self.staging.slots.as_fd(), number.to_string());
        match rename(slot, place, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::EXIST | Errno::NOENT) => Ok(()),
            Err(e) => Err(not_back(path, e)),
        }
    }

    fn undo_directory(&self, number: usize) -> Result<(), ArchiveError> {
        let Some(path) = self.journal.directories.get(number) else {
            return Ok(());
        };
        let staged = (self.staging.directories.as_fd(), &*number.to_string());
        let failed = |e| io(format_args!("remove \"{path}\""), e);
        if stat_of(staged).map_err(failed)?.is_some() {
            return Ok(());
        }
        self.remove_if_empty(path.as_str()).map_err(failed)
    }

    /// Removes a directory if nothing is in it.
    fn remove_if_empty(&self, path: &str) -> rustix::io::Result<()> {
        let (parent, name) = match path.rsplit_once('/') {
            Some((parent, name)) => (beneath::open_directory(self.root, parent), name),
            None => (self.root.try_clone_to_owned().map_err(to_errno), path),
        };
        let removed = parent.and_then(|dir| rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR));
        match removed {
            Err(
                Errno::NOENT
                | Errno::NOTEMPTY
                | Errno::EXIST
                | Errno::NOTDIR
                | Errno::LOOP
                | Errno::XDEV
                | Errno::BUSY,
            ) => Ok(()),
            done => done,
        }
    }

    /// After the way back, when that is on the disk: what is ours and untouched goes, what is not is
    /// kept. A disk that still had the new file in the tree and nothing in its slot would have lost
    /// the old one.
    fn sweep(&mut self) -> Result<(), ArchiveError> {
        self.sync_tree(|path, e| match is_gone(e) {
            true => Ok(()),
            false => Err(io(format_args!("open {}", shown(path)), e)),
        })?;
        for number in 0..self.changes.changes().len() {
            let Some(change) = self.change(number) else {
                continue;
            };
            match self.slot(number)? {
                Slot::Empty => {}
                Slot::Ours if self.is_pristine(number, change.path())? => self.discard(number)?,
                Slot::Ours | Slot::Theirs => self.keep(number, change.path())?,
            }
        }
        Ok(())
    }

    /// After the commit: the old files go, unless somebody wrote to one after the last look.
    fn clear(&mut self) -> Result<(), ArchiveError> {
        for number in 0..self.changes.changes().len() {
            let (Some(change), Some(identity)) = (self.change(number), self.slot_identity(number)?)
            else {
                continue;
            };
            let path = change.path();
            let expected = match change {
                Change::Add(entry) => entry.sha256,
                Change::Change { base_hash, .. } | Change::Delete { base_hash, .. } => *base_hash,
            };
            let known = self.look == Look::Never
                || self.looks.get(&number) == Some(&identity)
                || matches!(self.slot_digest(number, path)?, Some((found, _)) if found == expected);
            if known {
                self.discard(number)?;
            } else {
                self.keep(number, path)?;
            }
        }
        Ok(())
    }

    /// Removes the directories that a deletion emptied, inner ones first.
    fn prune(&self) -> Result<(), ArchiveError> {
        let mut emptied = BTreeSet::new();
        for change in self.changes.changes() {
            if let Change::Delete { path, .. } = change {
                let ends = path.as_str().match_indices('/').map(|(at, _)| at);
                emptied.extend(ends.filter_map(|end| path.as_str().get(..end)));
            }
        }
        for path in emptied.into_iter().rev() {
            self.remove_if_empty(path)
                .map_err(|e| io(format_args!("remove {}", shown(path)), e))?;
        }
        Ok(())
    }

    fn forget(&self) -> Result<(), ArchiveError> {
        Journal::remove(&self.staging.dir)?;
        Staging::remove(self.root)?;
        sync(self.root)
    }

    fn discard(&self, number: usize) -> Result<(), ArchiveError> {
        journal::remove(&self.staging.slots, &number.to_string())
    }

    /// Moves a file that is not ours to throw away beside the tree, under its own path. It is on the
    /// disk there before anything else is thrown away.
    fn keep(&mut self, number: usize, path: &RelPath) -> Result<(), ArchiveError> {
        let failed = |e| io(format_args!("keep \"{path}\""), e);
        let mut dir = enter(self.root, &self.journal.keep).map_err(failed)?;
        let mut above = Vec::new();
        for segment in path.parent().into_iter().flat_map(|p| p.split('/')) {
            let below = enter(dir.as_fd(), segment).map_err(failed)?;
            above.push(std::mem::replace(&mut dir, below));
        }
        let slot = (self.staging.slots.as_fd(), number.to_string());
        let place = (dir.as_fd(), path.file_name());
        rename(slot, place, RenameFlags::NOREPLACE).map_err(failed)?;
        above.push(dir);
        above.iter().try_for_each(sync)?;
        sync(self.root)?;
        self.kept.push(Kept {
            path: path.clone(),
            at: format!("{}/{}", self.journal.keep, path.as_str()),
        });
        Ok(())
    }

    fn parent(&self, path: &RelPath) -> rustix::io::Result<OwnedFd> {
        match path.parent() {
            Some(parent) => beneath::open_directory(self.root, parent),
            None => self.root.try_clone_to_owned().map_err(to_errno),
        }
    }

    fn slot(&self, number: usize) -> Result<Slot, ArchiveError> {
        let stat = stat_of((self.staging.slots.as_fd(), &*number.to_string()));
        let stat = stat.map_err(|e| io("look at a staged file", e))?;
        Ok(match stat {
            None => Slot::Empty,
            stat if self.is_ours(number, stat.as_ref()) => Slot::Ours,
            Some(_) => Slot::Theirs,
        })
    }

    /// Whether this is the file that was staged.
    fn is_ours(&self, number: usize, stat: Option<&Stat>) -> bool {
        let inode = self
            .journal
            .inodes
            .get(number)
            .copied()
            .filter(|inode| *inode != 0);
        stat.is_some_and(|stat| Some(stat.st_ino) == inode)
    }

    /// Whether a slot holds the staged file as it was staged. One that cannot be read may be either:
    /// taken for somebody's it would be put into the tree for good.
    fn is_pristine(&self, number: usize, path: &RelPath) -> Result<bool, ArchiveError> {
        let entry = self.change(number).and_then(Change::entry);
        if self.slot(number)? != Slot::Ours {
            return Ok(false);
        }
        let found = self.slot_digest(number, path)?;
        Ok(found.map(|(digest, _)| digest) == entry.map(|entry| entry.sha256))
    }

    fn slot_digest(
        &self,
        number: usize,
        path: &RelPath,
    ) -> Result<Option<(Digest, Identity)>, ArchiveError> {
        match open_file(&self.staging.slots, &number.to_string()) {
            Ok(file) => digest_of(&file, path),
            // A link, a socket: no file of a base.
            Err(Errno::LOOP | Errno::NXIO | Errno::NOENT) => Ok(None),
            Err(e) => Err(io(format_args!("open \"{path}\""), e)),
        }
    }

    fn slot_identity(&self, number: usize) -> Result<Option<Identity>, ArchiveError> {
        let stat = stat_of((self.staging.slots.as_fd(), &*number.to_string()));
        let stat = stat.map_err(|e| io("look at a staged file", e))?;
        Ok(stat.as_ref().map(Identity::of))
    }
}

/// A name in a directory.
type Place<'a> = (BorrowedFd<'a>, &'a str);

fn rename(
    (from, old): (BorrowedFd<'_>, impl AsRef<str>),
    (to, new): (BorrowedFd<'_>, impl AsRef<str>),
    how: RenameFlags,
) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(from, old.as_ref(), to, new.as_ref(), how)
}

/// What stands at a place, if anything does; no link is followed.
fn stat_of((dir, name): Place<'_>) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether a directory of the tree is not there any more, or is something else.
fn is_gone(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV
    )
}

/// Opens a private directory, which is made if it is missing.
fn enter(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    match beneath::create_private_directory(dir, name) {
        Err(Errno::EXIST) => beneath::open_directory(dir, name),
        made => made,
    }
}

/// A file that could not be put back.
fn not_back(path: &RelPath, error: Errno) -> ArchiveError {
    io(format_args!("put \"{path}\" back"), error)
}

/// What an error of a swap means.
fn meanwhile(path: &RelPath, error: Errno) -> ArchiveError {
    match error {
        Errno::EXIST => edited(path, "something stands there now"),
        Errno::NOENT => edited(path, "it is gone"),
        Errno::NOTDIR | Errno::LOOP | Errno::XDEV => edited(path, "its directory is gone"),
        error => io(format_args!("put \"{path}\" in its place"), error),
    }
}

fn edited(path: &RelPath, how: impl std::fmt::Display) -> ArchiveError {
    edited_at(path.as_str(), how)
}

fn edited_at(path: &str, how: impl std::fmt::Display) -> ArchiveError {
    ArchiveCode::EditedMeanwhile.refuse(format_args!("{}: {how}", shown(path)))
}

fn to_errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
