//! Writing files beneath a directory that was just made for them.

use crate::beneath::{self, Parents, Umask, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::format::Member;
use crate::paws::shown;
use crate::payload::Sink;
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Where one thread writes files. Their directories were made before.
pub(crate) struct Tree<'a> {
    parents: Parents<'a>,
    umask: Umask,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(root: BorrowedFd<'a>, umask: Umask) -> Self {
        Self {
            parents: Parents::new(root),
            umask,
        }
    }
}

impl Sink for Tree<'_> {
    type Open = File;

    fn create<M: Member>(&mut self, member: &M) -> Result<File, ArchiveError> {
        let (parent, name) = match member.path().rsplit_once('/') {
            Some((parent, name)) => (Some(parent), name),
            None => (None, member.path()),
        };
        let dir = self.parents.of(parent);
        let made =
            dir.and_then(|dir| beneath::create_file(dir, name, member.executable(), self.umask));
        made.map_err(|e| uncreated(member.path(), e))
    }

    fn write<M: Member>(
        &mut self,
        file: &mut File,
        member: &M,
        bytes: &[u8],
    ) -> Result<(), ArchiveError> {
        file.write_all(bytes)
            .map_err(|e| io(format_args!("write {}", shown(member.path())), e))
    }
}

/// Makes all directories that these files lie in.
///
/// Paths ascend by bytes, so all that lies below one directory comes in one run: each is made once,
/// and one that exists already means that the file system folds two names to one.
pub(crate) fn plant<'a>(
    root: BorrowedFd<'_>,
    umask: Umask,
    paths: impl Iterator<Item = &'a str>,
) -> Result<(), ArchiveError> {
    let mut open: Vec<(&str, OwnedFd)> = Vec::new();
    let mut before = None;
    for path in paths {
        let parent = path.rsplit_once('/').map(|(parent, _)| parent);
        if parent == before {
            continue;
        }
        before = parent;
        let segments = || parent.into_iter().flat_map(|parent| parent.split('/'));
        let shared = open.iter().zip(segments());
        let shared = shared.take_while(|((name, _), segment)| name == segment);
        open.truncate(shared.count());
        for segment in segments().skip(open.len()) {
            let above = open.last().map_or(root, |(_, dir)| dir.as_fd());
            let made = beneath::create_directory(above, segment, umask);
            open.push((segment, made.map_err(|e| uncreated(path, e))?));
        }
    }
    Ok(())
}

/// What an error of creating this path means.
pub(crate) fn uncreated(path: &str, error: Errno) -> ArchiveError {
    match error {
        Errno::EXIST => ArchiveCode::NameCollision.refuse(format_args!(
            "{}: this file system has the name already",
            shown(path)
        )),
        Errno::LOOP | Errno::XDEV | Errno::NOTDIR => unsafe_destination(path, error),
        error => io(format_args!("create {}", shown(path)), error),
    }
}

pub(crate) fn unsafe_destination(path: &str, found: impl std::fmt::Display) -> ArchiveError {
    ArchiveCode::DestinationUnsafe.refuse(format_args!("{}: {found}", shown(path)))
}
