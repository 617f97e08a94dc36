//! The first pass over a directory: which files there are, how long each is, and what it must still
//! be when it is read.

use crate::beneath::{self, io};
use crate::choice::Choice;
use crate::code::{ArchiveCode, ArchiveError};
use crate::paws;
use flightproof_core::{RelPath, escape};
use rustix::fs::{AtFlags, FileType, RawDir, SeekFrom, Stat};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

/// One file that was found and admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: RelPath,
    /// Whether its owner may execute it.
    pub(crate) executable: bool,
    pub(crate) identity: Identity,
}

/// Which file it is, and in which state: differs as soon as somebody writes to the file, changes
/// its mode, or puts another in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    /// Bytes.
    pub(crate) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What a format holds at most, and how it says so.
pub(crate) struct Limits {
    pub(crate) files: usize,
    pub(crate) too_many: ArchiveCode,
    /// Bytes of one file.
    pub(crate) file_bytes: u64,
    pub(crate) too_big: ArchiveCode,
    /// Bytes of all files.
    pub(crate) total_bytes: u64,
    pub(crate) too_much: ArchiveCode,
}

/// All admitted files below a directory, ascending by the bytes of their paths, within the limits
/// of a workspace.
///
/// # Errors
/// As [`list_within`].
pub(crate) fn list(
    root: BorrowedFd<'_>,
    choice: &mut dyn Choice,
) -> Result<Vec<Listed>, ArchiveError> {
    list_within(root, &paws::LIMITS, choice)
}

/// All admitted files below a directory, ascending by the bytes of their paths.
///
/// # Errors
/// Links, mounts and whatever else is neither file nor directory, unless the choice leaves them
/// out; names that are no paths; more than the limits allow; the choice's own; the system's.
pub(crate) fn list_within(
    root: BorrowedFd<'_>,
    limits: &Limits,
    choice: &mut dyn Choice,
) -> Result<Vec<Listed>, ArchiveError> {
    let mut walk = Walk {
        limits,
        choice,
        files: Vec::new(),
        bytes: 0,
    };
    walk.directory(root, None)?;
    // Each directory was walked in order, so this only looks: a walk that errs costs time, not truth.
    walk.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(walk.files)
}

struct Walk<'a> {
    limits: &'a Limits,
    choice: &'a mut dyn Choice,
    files: Vec<Listed>,
    bytes: u64,
}

impl Walk<'_> {
    /// Depth is bounded: each level adds at least two bytes to a path of at most 512.
    fn directory(
        &mut self,
        dir: BorrowedFd<'_>,
        path: Option<&RelPath>,
    ) -> Result<(), ArchiveError> {
        self.choice.enter(dir, path)?;
        for (path, kind) in entries(dir, path)? {
            if !self.choice.admits(&path, kind)? {
                continue;
            }
            match kind {
                FileType::Directory => {
                    let below = beneath::open_directory(dir, path.file_name());
                    let below = below.map_err(|e| unopened(&path, e))?;
                    self.directory(below.as_fd(), Some(&path))?;
                }
                FileType::RegularFile => self.file(dir, path)?,
                other => return Err(kind_refused(&path, other)),
            }
        }
        self.choice.leave();
        Ok(())
    }

    fn file(&mut self, dir: BorrowedFd<'_>, path: RelPath) -> Result<(), ArchiveError> {
        let stat = rustix::fs::statat(dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(|e| unopened(&path, e))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return Err(kind_refused(&path, kind));
        }
        let identity = Identity::of(&stat);
        self.admit(&path, identity.size)?;
        self.files.push(Listed {
            path,
            executable: stat.st_mode & 0o100 != 0,
            identity,
        });
        Ok(())
    }

    /// Refuses the file that exceeds a limit, alone or with all before it.
    fn admit(&mut self, path: &RelPath, size: u64) -> Result<(), ArchiveError> {
        let limits = self.limits;
        if self.files.len() == limits.files {
            return Err(limits
                .too_many
                .refuse(format_args!("more than {} files", limits.files)));
        }
        if size > limits.file_bytes {
            return Err(limits.too_big.refuse(format_args!(
                "\"{path}\": {size} bytes, at most {} allowed",
                limits.file_bytes
            )));
        }
        self.bytes += size;
        if self.bytes > limits.total_bytes {
            return Err(limits.too_much.refuse(format_args!(
                "the files up to \"{path}\" have {} bytes, at most {} allowed",
                self.bytes, limits.total_bytes
            )));
        }
        Ok(())
    }
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(u64::MAX),
            modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
        }
    }
}

/// The field is signed on one machine and unsigned on another; it is below 10^9 on both.
fn nanoseconds(field: impl TryInto<i64>) -> i64 {
    field.try_into().unwrap_or(i64::MAX)
}

/// Bytes of names asked for at once, 64 KiB: a directory of a thousand files in one call.
const NAMES_BYTES: usize = 64 << 10;

/// The entries of one directory in the order of the archive, read before anything below is opened.
fn entries(
    dir: BorrowedFd<'_>,
    above: Option<&RelPath>,
) -> Result<Vec<(RelPath, FileType)>, ArchiveError> {
    // The offset belongs to the descriptor: somebody may have listed the directory by it before.
    rustix::fs::seek(dir, SeekFrom::Start(0)).map_err(|e| io("list a directory", e))?;
    let mut out = Vec::new();
    let mut buffer = vec![MaybeUninit::uninit(); NAMES_BYTES];
    let mut names = RawDir::new(dir, &mut buffer);
    while let Some(entry) = names.next() {
        let entry = entry.map_err(|e| io("list a directory", e))?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let path = path_of(above, name)?;
        let kind = match entry.file_type() {
            FileType::Unknown => kind_of(dir, &path)?,
            known => known,
        };
        out.push((path, kind));
    }
    out.sort_by(|a, b| in_archive(a).cmp(in_archive(b)));
    Ok(out)
}

/// Where an entry stands: all that lies in the directory `a` comes after the file `a-b`, since `/`
/// comes after `-`.
fn in_archive((path, kind): &(RelPath, FileType)) -> impl Iterator<Item = u8> {
    let end = (*kind == FileType::Directory).then_some(b'/');
    path.as_str().bytes().chain(end)
}

fn path_of(above: Option<&RelPath>, name: &[u8]) -> Result<RelPath, ArchiveError> {
    let name = std::str::from_utf8(name).map_err(|_| {
        ArchiveCode::InvalidPath.refuse(format_args!("\"{}\" is not UTF-8", escape(name, 255)))
    })?;
    let text = match above {
        Some(above) => format!("{}/{name}", above.as_str()),
        None => name.to_owned(),
    };
    RelPath::check(&text, true).map_err(|fault| {
        ArchiveCode::InvalidPath.refuse(format_args!("\"{}\" {fault}", escape(&text, 80)))
    })?;
    RelPath::try_from(text).map_err(|fault| ArchiveCode::InvalidPath.refuse(fault))
}

/// Some file systems do not say the kind in a listing.
fn kind_of(dir: BorrowedFd<'_>, path: &RelPath) -> Result<FileType, ArchiveError> {
    let stat = rustix::fs::statat(dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW);
    stat.map(|stat| FileType::from_raw_mode(stat.st_mode))
        .map_err(|e| unopened(path, e))
}

/// What an error of opening or looking at a listed file means.
pub(crate) fn unopened(path: &RelPath, error: Errno) -> ArchiveError {
    match error {
        Errno::LOOP => kind_refused(path, FileType::Symlink),
        Errno::XDEV => ArchiveCode::KindRefused.refuse(format_args!("\"{path}\" is a mount")),
        // ENXIO: a socket stands where a file stood.
        Errno::NOENT | Errno::NOTDIR | Errno::NXIO => changed(path),
        error => io(format_args!("open \"{path}\""), error),
    }
}

fn kind_refused(path: &RelPath, kind: FileType) -> ArchiveError {
    match kind {
        FileType::Symlink => ArchiveCode::SymlinkRefused.refuse(format_args!("\"{path}\"")),
        kind => ArchiveCode::KindRefused.refuse(format_args!("\"{path}\" is a {kind:?}")),
    }
}

pub(crate) fn changed(path: &RelPath) -> ArchiveError {
    ArchiveCode::FileChanged.refuse(format_args!("\"{path}\""))
}
