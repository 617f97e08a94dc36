//! What of a working directory travels: what git would track, and no secrets.
//!
//! Only directories people work in are chosen from like this. The tree of a commit travels whole;
//! its files were published by whoever committed them, and a certificate must name all of them.

mod deny;
mod gitignore;
mod glob;

use crate::beneath::{self, io};
use crate::choice::Choice;
use crate::code::{ArchiveCode, ArchiveError};
use crate::names::is_dot_git;
use deny::{AdmitList, DenyList, NoRule};
use flightproof_core::RelPath;
use gitignore::Patterns;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The choice of a working directory's files.
///
/// Left out is what a `.gitignore` of the tree ignores, what the deny list names, and `.git` at any
/// depth. The deny list decides first: no `.gitignore` can take a private key back. Rules outside
/// the tree (`.git/info/exclude`, a user's own ignore file) are not read, and neither is the index:
/// a file that git tracks although a pattern matches it is left out, and listed.
#[derive(Debug)]
pub struct Workspace {
    denied: DenyList,
    admitted: AdmitList,
    open: Vec<Level>,
    selection: Selection,
}

/// What was chosen otherwise than by being there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// What did not travel, in the order of the walk. A directory is one line.
    pub left_out: Vec<LeftOut>,
    /// What travels although the deny list names it.
    pub admitted: Vec<Admitted>,
}

/// A file or directory that did not travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Where it lies.
    pub path: RelPath,
    /// Whether it is a directory, and so stands for all that is in it.
    pub directory: bool,
    /// Why.
    pub reason: Reason,
}

/// Why something did not travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A `.gitignore` says so.
    Ignored {
        /// Its path.
        file: String,
        /// The line, counted from 1.
        line: u32,
        /// The line's text, escaped.
        pattern: String,
    },
    /// It is, or may be, a secret.
    Denied {
        /// The rule of the deny list.
        rule: String,
    },
    /// It is git's own.
    Git,
}

/// A file or directory that travels because the caller said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Where it lies.
    pub path: RelPath,
    /// The rule of the deny list that names it.
    pub rule: String,
    /// The caller's pattern that admits it.
    pub pattern: String,
}

/// One directory on the way to the current entry.
#[derive(Debug)]
struct Level {
    /// Its path with a slash at its end, empty at the top.
    prefix: String,
    patterns: Patterns,
    dir: OwnedFd,
}

impl Workspace {
    /// The built-in deny list, after it `deny`, with `admit` for what is no secret after all. Both
    /// are patterns as the list has them, `src/deny.txt`; a directory is admitted as `NAME/`.
    ///
    /// # Errors
    /// [`ArchiveCode::DenyRuleInvalid`] for a pattern that can match nothing.
    pub fn new(deny: &[String], admit: &[String]) -> Result<Self, ArchiveError> {
        let mut denied = DenyList::parse(deny::LIST).map_err(invalid)?;
        for pattern in deny {
            denied.add(pattern).map_err(invalid)?;
        }
        Ok(Self {
            denied,
            admitted: AdmitList::new(admit).map_err(invalid)?,
            open: Vec::new(),
            selection: Selection::default(),
        })
    }

    /// What was left out and what was admitted, after the walk.
    pub fn into_selection(self) -> Selection {
        self.selection
    }

    fn reason(&mut self, path: &RelPath, kind: FileType) -> Result<Option<Reason>, ArchiveError> {
        let directory = kind == FileType::Directory;
        if is_dot_git(path.file_name()) {
            return Ok(Some(Reason::Git));
        }
        if let Some(rule) = self.denied_by(path, kind)? {
            match self.admitted.admits(path.as_str(), directory) {
                None => return Ok(Some(Reason::Denied { rule })),
                Some(pattern) => self.selection.admitted.push(Admitted {
                    path: path.clone(),
                    rule,
                    pattern: pattern.to_owned(),
                }),
            }
        }
        Ok(self.ignored_by(path.as_str(), directory))
    }

    fn denied_by(&self, path: &RelPath, kind: FileType) -> Result<Option<String>, ArchiveError> {
        let by_name = self
            .denied
            .denies(path.as_str(), kind == FileType::Directory);
        match (by_name, self.open.last()) {
            (Some(rule), _) => Ok(Some(rule.to_owned())),
            (None, Some(level)) if kind == FileType::RegularFile => {
                let head = head(&level.dir, path)?;
                Ok(self.denied.denies_content(&head))
            }
            _ => Ok(None),
        }
    }

    /// The innermost file that decides.
    fn ignored_by(&self, path: &str, directory: bool) -> Option<Reason> {
        for level in self.open.iter().rev() {
            let below = path.strip_prefix(&level.prefix).unwrap_or(path);
            if let Some(pattern) = level.patterns.decide(below, directory) {
                return (!pattern.negated).then(|| Reason::Ignored {
                    file: format!("{}{IGNORE_FILE}", level.prefix),
                    line: pattern.line,
                    pattern: pattern.text.clone(),
                });
            }
        }
        None
    }
}

impl Choice for Workspace {
    fn enter(&mut self, dir: BorrowedFd<'_>, path: Option<&RelPath>) -> Result<(), ArchiveError> {
        let prefix = path.map_or_else(String::new, |path| format!("{}/", path.as_str()));
        let patterns = read_patterns(dir, &prefix)?;
        let dir = dir.try_clone_to_owned();
        let dir = dir.map_err(|e| io("keep a directory open", e))?;
        self.open.push(Level {
            prefix,
            patterns,
            dir,
        });
        Ok(())
    }

    fn admits(&mut self, path: &RelPath, kind: FileType) -> Result<bool, ArchiveError> {
        let Some(reason) = self.reason(path, kind)? else {
            return Ok(true);
        };
        self.selection.left_out.push(LeftOut {
            path: path.clone(),
            directory: kind == FileType::Directory,
            reason,
        });
        Ok(false)
    }

    fn leave(&mut self) {
        self.open.pop();
    }
}

fn invalid(NoRule(line): NoRule) -> ArchiveError {
    ArchiveCode::DenyRuleInvalid.refuse(format!("\"{}\"", flightproof_core::escape(&line, 80)))
}

/// The rules of one directory. A `.gitignore` that is a link or anything else but a file says
/// nothing, as with git.
fn read_patterns(dir: BorrowedFd<'_>, prefix: &str) -> Result<Patterns, ArchiveError> {
    let shown = format!("\"{prefix}{IGNORE_FILE}\"");
    let file = match open_to_read(dir, IGNORE_FILE) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::XDEV) => {
            return Ok(Patterns::default());
        }
        Err(e) => return Err(io(format_args!("open {shown}"), e)),
    };
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(Patterns::default());
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_IGNORE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| io(format_args!("read {shown}"), e))?;
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    if bytes.len() as u64 > MAX_IGNORE_BYTES || lines > MAX_IGNORE_LINES {
        return Err(ArchiveCode::IgnoreFileTooLarge.refuse(shown));
    }
    Ok(Patterns::parse(&bytes))
}

/// The first bytes of a file that is small enough to be a key, none of another. What cannot be
/// opened is refused when it is read, if it is to travel.
fn head(dir: &OwnedFd, path: &RelPath) -> Result<Vec<u8>, ArchiveError> {
    let mut head = Vec::new();
    let Ok(file) = open_to_read(dir, path.file_name()) else {
        return Ok(head);
    };
    if file
        .metadata()
        .is_ok_and(|found| found.is_file() && found.len() <= MAX_KEY_BYTES)
    {
        let read = file.take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|e| io(format_args!("read \"{path}\""), e))?;
    }
    Ok(head)
}

fn open_to_read(dir: impl std::os::fd::AsFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    beneath::open(dir, name, flags, Mode::empty()).map(File::from)
}

const IGNORE_FILE: &str = ".gitignore";

/// Most bytes of a `.gitignore`, 1 MiB: the longest public one we know of has 60 KiB.
const MAX_IGNORE_BYTES: u64 = 1 << 20;
/// Most lines of a `.gitignore`: every file is held against every line.
const MAX_IGNORE_LINES: usize = 10_000;
/// Longest file that is looked into for a private key, 64 KiB: the longest RSA keys have 13 KiB.
const MAX_KEY_BYTES: u64 = 64 << 10;
/// How much of it is looked at, in bytes: its first line that is not blank.
const HEAD_BYTES: u64 = 512;
