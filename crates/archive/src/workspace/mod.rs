//! What of a working directory travels: what git would track, and no secrets.
//!
//! Only directories people work in are chosen from like this. The tree of a commit travels whole;
//! its files were published by whoever committed them, and a certificate must name all of them.

mod copies;
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
use glob::{Exhausted, Steps};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::{Component, Path};
use std::sync::{Mutex, PoisonError};

/// The choice of a working directory's files.
///
/// Left out is what a `.gitignore` of the tree ignores, what the deny list names, and `.git` at any
/// depth. The deny list decides first: no `.gitignore` can take a private key back. Rules outside
/// the tree (`.git/info/exclude`, a user's own ignore file) are not read, and neither is the index:
/// a file that git tracks although a pattern matches it is left out, and listed.
#[derive(Debug)]
pub struct Workspace {
    ignores: Ignores,
    /// Where the directory lies, each name with a slash behind it, for rules that name directories
    /// and what is in them.
    above: String,
    /// The caller's patterns.
    asked: Vec<String>,
    denied: DenyList,
    admitted: AdmitList,
    open: Vec<Level>,
    /// What holding entries against ignore rules may still cost.
    steps: Steps,
    selection: Selection,
    /// Files that a rule about content names, with the rule, and the pattern that admits them.
    found: Mutex<BTreeMap<RelPath, (String, Option<String>)>>,
}

/// Whether what git ignores is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ignores {
    Gitignore,
    Nothing,
}

/// What was chosen otherwise than by being there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// What did not travel, ascending by path. A directory is one line.
    pub left_out: Vec<LeftOut>,
    /// What travels although the deny list names it.
    pub admitted: Vec<Admitted>,
    /// The caller's patterns that decided nothing: misspelt, or about what is not there.
    pub idle: Vec<String>,
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
    /// Steps that its patterns took.
    took: u64,
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
            ignores: Ignores::Gitignore,
            above: String::new(),
            asked: [deny, admit].concat(),
            denied,
            admitted: AdmitList::new(admit).map_err(invalid)?,
            open: Vec::new(),
            steps: Steps::new(FIRST_STEPS),
            selection: Selection::default(),
            found: Mutex::default(),
        })
    }

    /// As the choice of this directory: its own name counts, so that `credentials` in a directory
    /// `.aws` is what the deny list says of `.aws/credentials`.
    ///
    /// # Errors
    /// [`ArchiveCode::RootDenied`] if the directory itself, or one that it lies in, stays home.
    pub fn of(mut self, dir: &Path) -> Result<Self, ArchiveError> {
        let dir = dir
            .canonicalize()
            .map_err(|e| io("look at the directory", e))?;
        let names = dir.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        });
        for name in names {
            let place = format!("{}{name}", self.above);
            let denied = self.denied.denies(&place, true).is_some()
                && self.admitted.admits(&place, true).is_none();
            if denied || is_dot_git(&name) {
                let shown = flightproof_core::escape(&*name, 80);
                return Err(ArchiveCode::RootDenied.refuse(format!("\"{shown}\"")));
            }
            self.above = format!("{place}/");
        }
        Ok(self)
    }

    /// Everything but `.git`, which no tree may carry: neither `.gitignore` nor the deny list is
    /// asked.
    pub fn without_rules() -> Self {
        Self {
            ignores: Ignores::Nothing,
            above: String::new(),
            asked: Vec::new(),
            denied: DenyList::default(),
            admitted: AdmitList::default(),
            open: Vec::new(),
            steps: Steps::new(FIRST_STEPS),
            selection: Selection::default(),
            found: Mutex::default(),
        }
    }

    /// What was left out and what was admitted, after the walk.
    pub fn into_selection(self) -> Selection {
        let Selection {
            mut left_out,
            mut admitted,
            ..
        } = self.selection;
        let found = self.found.into_inner();
        for (path, (rule, pattern)) in found.unwrap_or_else(PoisonError::into_inner) {
            match pattern {
                None => left_out.push(LeftOut {
                    path,
                    directory: false,
                    reason: Reason::Denied { rule },
                }),
                // Named twice, it is still one file.
                Some(_) if admitted.iter().any(|earlier| earlier.path == path) => {}
                Some(pattern) => admitted.push(Admitted {
                    path,
                    rule,
                    pattern,
                }),
            }
        }
        left_out.sort_by(|a, b| a.path.cmp(&b.path));
        admitted.sort_by(|a, b| a.path.cmp(&b.path));
        let mut idle = self.asked;
        idle.retain(|pattern| {
            let denied =
                |left: &LeftOut| matches!(&left.reason, Reason::Denied { rule } if rule == pattern);
            !left_out.iter().any(denied) && !admitted.iter().any(|kept| kept.pattern == *pattern)
        });
        Selection {
            left_out,
            admitted,
            idle,
        }
    }

    /// A path as rules see it.
    fn place(&self, path: &RelPath) -> String {
        format!("{}{}", self.above, path.as_str())
    }

    fn reason(&mut self, path: &RelPath, kind: FileType) -> Result<Option<Reason>, ArchiveError> {
        let directory = kind == FileType::Directory;
        if is_dot_git(path.file_name()) {
            return Ok(Some(Reason::Git));
        }
        let place = self.place(path);
        if let Some(rule) = self.denied.denies(&place, directory) {
            let rule = rule.to_owned();
            match self.admitted.admits(&place, directory) {
                None => return Ok(Some(Reason::Denied { rule })),
                Some(pattern) => self.selection.admitted.push(Admitted {
                    path: path.clone(),
                    rule,
                    pattern: pattern.to_owned(),
                }),
            }
        }
        self.ignored_by(path.as_str(), directory)
    }

    /// The innermost file that decides.
    fn ignored_by(&mut self, path: &str, directory: bool) -> Result<Option<Reason>, ArchiveError> {
        self.steps.add(STEPS_PER_ENTRY);
        for level in self.open.iter_mut().rev() {
            let below = path.strip_prefix(&level.prefix).unwrap_or(path);
            let before = self.steps.left();
            let decided = level.patterns.decide(below, directory, &mut self.steps);
            level.took += before - self.steps.left();
            match decided {
                Ok(None) => {}
                Ok(Some(pattern)) => {
                    return Ok((!pattern.negated).then(|| Reason::Ignored {
                        file: format!("{}{IGNORE_FILE}", level.prefix),
                        line: pattern.line,
                        pattern: pattern.text.clone(),
                    }));
                }
                Err(Exhausted) => return Err(self.too_slow()),
            }
        }
        Ok(None)
    }

    /// Names the file whose patterns took most.
    fn too_slow(&self) -> ArchiveError {
        let slowest = self.open.iter().max_by_key(|level| level.took);
        let prefix = slowest.map_or("", |level| &level.prefix);
        ArchiveCode::IgnoreRulesTooSlow.refuse(format!("\"{prefix}{IGNORE_FILE}\""))
    }
}

impl Choice for Workspace {
    fn enter(&mut self, dir: BorrowedFd<'_>, path: Option<&RelPath>) -> Result<(), ArchiveError> {
        let prefix = path.map_or_else(String::new, |path| format!("{}/", path.as_str()));
        let patterns = match self.ignores {
            Ignores::Gitignore => read_patterns(dir, &prefix)?,
            Ignores::Nothing => Patterns::default(),
        };
        self.open.push(Level {
            prefix,
            patterns,
            took: 0,
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

    fn admits_content(&self, file: &RelPath, size: u64, head: &[u8]) -> bool {
        if size > MAX_KEY_BYTES {
            return true;
        }
        let Some(rule) = self.denied.denies_content(head) else {
            return true;
        };
        let pattern = self.admitted.admits(&self.place(file), false);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(file.clone(), (rule, pattern.map(str::to_owned)));
        pattern.is_some()
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

fn open_to_read(dir: impl std::os::fd::AsFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    beneath::open(dir, name, flags, Mode::empty()).map(File::from)
}

const IGNORE_FILE: &str = ".gitignore";

/// Most bytes of a `.gitignore`, 1 MiB: the longest public one we know of has 60 KiB.
const MAX_IGNORE_BYTES: u64 = 1 << 20;
/// Most lines of a `.gitignore`: every file is held against every line.
const MAX_IGNORE_LINES: usize = 10_000;
/// Steps that holding entries against ignore rules may take for each of them, on average: 10,000 plain
/// lines, and less time than it takes to read a file.
const STEPS_PER_ENTRY: u64 = 100_000;
/// Steps that it may take besides, for small trees: less than a tenth of a second.
const FIRST_STEPS: u64 = 20_000_000;
/// Longest file that is looked into for a private key, 64 KiB: the longest RSA keys have 13 KiB.
const MAX_KEY_BYTES: u64 = 64 << 10;
