//! Whether a changeset fits a tree, before anything is touched.

use super::content::{digest_of, open_file};
use crate::beneath::{self, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::extract::check_directories;
use crate::names::{Names, fold};
use crate::paws::{Change, Changeset, MAX_ENTRIES, shown};
use crate::tree::{uncreated, unsafe_destination};
use flightproof_core::{Digest, RelPath};
use rustix::fs::{AtFlags, Dir};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Names that must not be written, and names that must not even be removed. What they cost grows with
/// the directories that they lead through, so these are counted first.
pub(super) fn names(changes: &Changeset) -> Result<(), ArchiveError> {
    let all = changes.changes().iter();
    check_directories(all.clone().map(|change| change.path().as_str()))?;
    let entries = all.clone().filter_map(Change::entry);
    Names::Strict.check_paths(entries.map(|entry| entry.path.as_str()))?;
    Names::Captured.check_paths(all.map(|change| change.path().as_str()))
}

/// Holds every change against the tree: what is changed or deleted is exactly the base's, what is
/// added is not there in any form. Returns the directories that are missing, outer ones first.
pub(super) fn tree(
    root: BorrowedFd<'_>,
    changes: &Changeset,
) -> Result<Vec<RelPath>, ArchiveError> {
    let deleted = changes.changes().iter().filter_map(|change| match change {
        Change::Delete { path, .. } => Some(path.as_str()),
        _ => None,
    });
    let mut check = Check {
        root,
        missing: BTreeSet::new(),
        neighbours: Neighbours {
            deleted: deleted.collect(),
            known: HashMap::new(),
        },
    };
    for change in changes.changes() {
        match change {
            Change::Add(entry) => check.added(&entry.path)?,
            Change::Change { entry, base_hash } => check.base(&entry.path, *base_hash)?,
            Change::Delete { path, base_hash } => check.base(path, *base_hash)?,
        }
    }
    // A directory sorts before what lies in it.
    let missing = check.missing.into_iter().map(RelPath::new);
    missing
        .collect::<Result<_, _>>()
        .map_err(|fault| ArchiveCode::InvalidPath.refuse(fault))
}

struct Check<'a> {
    root: BorrowedFd<'a>,
    missing: BTreeSet<&'a str>,
    neighbours: Neighbours<'a>,
}

impl<'a> Check<'a> {
    fn base(&self, path: &RelPath, expected: Digest) -> Result<(), ArchiveError> {
        let mismatch =
            |detail: &str| ArchiveCode::BaseMismatch.refuse(format_args!("\"{path}\": {detail}"));
        let file = match open_file(self.root, path.as_str()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Err(mismatch("it is not there")),
            Err(e @ (Errno::LOOP | Errno::XDEV | Errno::NOTDIR)) => {
                return Err(unsafe_destination(path.as_str(), e));
            }
            Err(Errno::NXIO) => return Err(mismatch("it is no regular file")),
            Err(e) => return Err(uncreated(path.as_str(), e)),
        };
        match digest_of(&file, path)? {
            None => Err(mismatch("it is no regular file of at most 50 MiB")),
            Some((found, _)) if found == expected => Ok(()),
            Some((found, _)) => Err(mismatch(&format!("got {found}, expected {expected}"))),
        }
    }

    /// Walks down to where the path ends or something is missing.
    fn added(&mut self, path: &'a RelPath) -> Result<(), ArchiveError> {
        let text = path.as_str();
        let mut open: Option<OwnedFd> = None;
        let mut above = "";
        for (end, _) in text.match_indices('/') {
            let here = text.get(..end).unwrap_or(text);
            let name = here.rsplit('/').next().unwrap_or(here);
            let dir = open.as_ref().map_or(self.root, AsFd::as_fd);
            if self.missing.contains(here) {
                return self.miss(path, end);
            }
            match beneath::open_directory(dir, name) {
                Ok(found) => open = Some(found),
                Err(Errno::NOENT) => {
                    self.neighbours.refuse_collision(dir, above, name, path)?;
                    return self.miss(path, end);
                }
                Err(e) => return Err(unsafe_destination(text, e)),
            }
            above = here;
        }
        let dir = open.as_ref().map_or(self.root, AsFd::as_fd);
        match rustix::fs::statat(dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {
                self.neighbours
                    .refuse_collision(dir, above, path.file_name(), path)
            }
            Ok(_) => Err(ArchiveCode::AddedExists.refuse(format_args!("\"{path}\""))),
            Err(e) => Err(uncreated(text, e)),
        }
    }

    /// The directories of the path are missing from this slash on.
    fn miss(&mut self, path: &'a RelPath, from: usize) -> Result<(), ArchiveError> {
        let text = path.as_str();
        let ends = text.match_indices('/').map(|(at, _)| at);
        let ends = ends.filter(|at| *at >= from);
        self.missing.extend(ends.filter_map(|end| text.get(..end)));
        if self.missing.len() > MAX_ENTRIES {
            return Err(ArchiveCode::MaxEntriesExceeded.refuse(format_args!(
                "more than {MAX_ENTRIES} directories are missing"
            )));
        }
        Ok(())
    }
}

/// The names that are there, for each directory that gets a new one. Deleted files do not count: a
/// file may be renamed in its letter case alone.
struct Neighbours<'a> {
    deleted: HashSet<&'a str>,
    /// Directory, then what a name folds to, then the name.
    known: HashMap<&'a str, HashMap<String, String>>,
}

impl<'a> Neighbours<'a> {
    fn refuse_collision(
        &mut self,
        dir: BorrowedFd<'_>,
        above: &'a str,
        name: &str,
        path: &RelPath,
    ) -> Result<(), ArchiveError> {
        if !self.known.contains_key(above) {
            let names = self.names(dir, above)?;
            self.known.insert(above, names);
        }
        let names = self.known.get(above);
        match names.and_then(|names| names.get(&fold(name))) {
            // It was not there a moment ago.
            Some(there) if there == name => {
                Err(ArchiveCode::AddedExists.refuse(format_args!("\"{path}\"")))
            }
            Some(there) => Err(ArchiveCode::NameCollision.refuse(format_args!(
                "\"{path}\": {} is there and is the same name to some file systems",
                shown(there)
            ))),
            None => Ok(()),
        }
    }

    fn names(
        &self,
        dir: BorrowedFd<'_>,
        above: &str,
    ) -> Result<HashMap<String, String>, ArchiveError> {
        let mut names = HashMap::new();
        for entry in Dir::read_from(dir).map_err(|e| io("list a directory", e))? {
            let entry = entry.map_err(|e| io("list a directory", e))?;
            // What is not UTF-8 cannot fold to a name that is.
            if let Ok(name) = entry.file_name().to_str() {
                let path = match above {
                    "" => name.to_owned(),
                    above => format!("{above}/{name}"),
                };
                if !self.deleted.contains(path.as_str()) {
                    names.insert(fold(name), name.to_owned());
                }
            }
        }
        Ok(names)
    }
}
