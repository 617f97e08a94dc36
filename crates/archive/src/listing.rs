//! The first pass over a directory: which files there are, how long each is, and what it must still
//! be when it is read.

use crate::beneath::{self, io};
use crate::choice::Choice;
use crate::code::{ArchiveCode, ArchiveError};
use crate::crew::processors;
use crate::paws;
use flightproof_core::{PathFault, RelPath, escape};
use rustix::fs::{AtFlags, FileType, RawDir, SeekFrom, Stat};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, Scope, ScopedJoinHandle};

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
    // The descriptor's offset is its owner's: somebody may have listed the directory by it before.
    rustix::fs::seek(root, SeekFrom::Start(0)).map_err(|e| io("list a directory", e))?;
    let mut files = thread::scope(|scope| {
        let mut walk = Walk {
            limits,
            choice,
            files: 0,
            seen: Vec::new(),
            second: Second::new(scope),
        };
        walk.directory(&Dir::Root(root), None)?;
        walk.finish()
    })?;
    limits.check(&files)?;
    // Each directory was walked in order, so this only looks: a walk that errs costs time, not truth.
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// An open directory: the caller's, or one below it that is closed when nobody needs it.
#[derive(Clone)]
enum Dir<'a> {
    Root(BorrowedFd<'a>),
    Below(Arc<OwnedFd>),
}

/// Admitted files of one directory that follow one another in the archive.
struct Run<'a> {
    number: usize,
    dir: Dir<'a>,
    paths: Vec<RelPath>,
}

/// A run, and what its files are.
type Seen = (usize, Vec<Listed>);

/// Walks through the names in order, and has the files looked at: by the second thread if it keeps
/// up, else here.
struct Walk<'a, 'scope, 'env> {
    limits: &'a Limits,
    choice: &'a mut dyn Choice,
    files: usize,
    seen: Vec<Seen>,
    second: Second<'scope, 'env>,
}

impl<'scope> Walk<'_, 'scope, '_> {
    /// Depth is bounded: each level adds at least two bytes to a path of at most 512.
    fn directory(&mut self, dir: &Dir<'scope>, path: Option<&RelPath>) -> Result<(), ArchiveError> {
        self.choice.enter(dir.as_fd(), path)?;
        let mut paths = Vec::new();
        for (path, kind) in entries(dir.as_fd(), path)? {
            if !self.choice.admits(&path, kind)? {
                continue;
            }
            match kind {
                FileType::Directory => {
                    self.look(dir, std::mem::take(&mut paths))?;
                    let below = beneath::open_directory(dir.as_fd(), path.file_name());
                    let below = below.map_err(|e| unopened(&path, e))?;
                    self.directory(&Dir::Below(Arc::new(below)), Some(&path))?;
                }
                FileType::RegularFile => paths.push(path),
                other => return Err(kind_refused(&path, other)),
            }
        }
        self.look(dir, paths)?;
        self.choice.leave();
        Ok(())
    }

    fn look(&mut self, dir: &Dir<'scope>, paths: Vec<RelPath>) -> Result<(), ArchiveError> {
        self.files += paths.len();
        if self.files > self.limits.files {
            return Err(self
                .limits
                .too_many
                .refuse(format_args!("more than {} files", self.limits.files)));
        }
        let number = self.seen.len() + self.second.sent;
        let dir = dir.clone();
        if let Some(run) = self.second.take(Run { number, dir, paths }) {
            self.seen.push(run.look()?);
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Listed>, ArchiveError> {
        let mut seen = self.seen;
        seen.append(&mut self.second.finish()?);
        seen.sort_by_key(|(number, _)| *number);
        Ok(seen.into_iter().flat_map(|(_, files)| files).collect())
    }
}

impl Run<'_> {
    fn look(self) -> Result<Seen, ArchiveError> {
        let dir = self.dir.as_fd();
        let files = self.paths.into_iter().map(|path| Listed::look(dir, path));
        Ok((self.number, files.collect::<Result<_, _>>()?))
    }
}

impl AsFd for Dir<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(fd) => *fd,
            Self::Below(fd) => fd.as_fd(),
        }
    }
}

/// A thread that looks at files while names are read, begun when there are enough of them.
struct Second<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    queue: Option<SyncSender<Run<'scope>>>,
    thread: Option<ScopedJoinHandle<'scope, Result<Vec<Seen>, ArchiveError>>>,
    offered: usize,
    sent: usize,
}

/// Runs looked at before a second thread is worth its beginning.
const FEW_RUNS: usize = 8;
/// Runs that wait for the second thread, each with its directory open.
const MAX_WAITING: usize = 16;

impl<'scope, 'env> Second<'scope, 'env> {
    fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        Self {
            scope,
            queue: None,
            thread: None,
            offered: 0,
            sent: 0,
        }
    }

    /// Takes the run, or gives it back.
    fn take(&mut self, run: Run<'scope>) -> Option<Run<'scope>> {
        self.offered += 1;
        if self.offered == FEW_RUNS && processors() > 1 {
            self.begin();
        }
        let Some(queue) = &self.queue else {
            return Some(run);
        };
        match queue.try_send(run) {
            Ok(()) => {
                self.sent += 1;
                None
            }
            // Full, or it ended: with the error that `finish` returns.
            Err(TrySendError::Full(run) | TrySendError::Disconnected(run)) => Some(run),
        }
    }

    fn begin(&mut self) {
        let (queue, waiting) = mpsc::sync_channel::<Run<'scope>>(MAX_WAITING);
        let work = move || waiting.into_iter().map(Run::look).collect();
        let thread = thread::Builder::new().spawn_scoped(self.scope, work);
        // Where no second thread can be had, one does it all.
        self.thread = thread.ok();
        self.queue = self.thread.is_some().then_some(queue);
    }

    fn finish(self) -> Result<Vec<Seen>, ArchiveError> {
        drop(self.queue);
        match self.thread.map(ScopedJoinHandle::join) {
            None => Ok(Vec::new()),
            Some(Ok(seen)) => seen,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Listed {
    fn look(dir: BorrowedFd<'_>, path: RelPath) -> Result<Self, ArchiveError> {
        let stat = rustix::fs::statat(dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(|e| unopened(&path, e))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return Err(kind_refused(&path, kind));
        }
        Ok(Self {
            path,
            executable: stat.st_mode & 0o100 != 0,
            identity: Identity::of(&stat),
        })
    }
}

impl Limits {
    /// Refuses the first file that exceeds a limit, alone or with all before it.
    fn check(&self, files: &[Listed]) -> Result<(), ArchiveError> {
        let mut bytes = 0u64;
        for Listed { path, identity, .. } in files {
            let size = identity.size;
            if size > self.file_bytes {
                return Err(self.too_big.refuse(format_args!(
                    "\"{path}\": {size} bytes, at most {} allowed",
                    self.file_bytes
                )));
            }
            bytes += size;
            if bytes > self.total_bytes {
                return Err(self.too_much.refuse(format_args!(
                    "the files up to \"{path}\" have {bytes} bytes, at most {} allowed",
                    self.total_bytes
                )));
            }
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
        let code = match fault {
            PathFault::ReservedSegment => ArchiveCode::StagingLeft,
            _ => ArchiveCode::InvalidPath,
        };
        code.refuse(format_args!("\"{}\" {fault}", escape(&text, 80)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(size: u64) -> Listed {
        let identity = Identity {
            device: 1,
            inode: 1,
            size,
            modified: (0, 0),
            changed: (0, 0),
        };
        Listed {
            path: RelPath::new("a").unwrap(),
            executable: false,
            identity,
        }
    }

    #[test]
    fn files_are_refused_one_byte_above_each_limit() {
        let limits = Limits {
            files: 3,
            too_many: ArchiveCode::MaxEntriesExceeded,
            file_bytes: 10,
            too_big: ArchiveCode::InvalidSize,
            total_bytes: 25,
            too_much: ArchiveCode::ArchiveTooLarge,
        };
        let code = |sizes: &[u64]| {
            let files: Vec<_> = sizes.iter().copied().map(listed).collect();
            limits.check(&files).err().map(|e| e.code)
        };
        assert_eq!(code(&[10, 10, 5]), None);
        assert_eq!(code(&[11]), Some(ArchiveCode::InvalidSize));
        assert_eq!(code(&[10, 10, 6]), Some(ArchiveCode::ArchiveTooLarge));
    }

    #[test]
    fn a_nanosecond_later_is_another_state() {
        let stat = rustix::fs::stat("/").unwrap();
        for field in [
            |stat: &mut Stat| stat.st_mtime_nsec ^= 1,
            |stat: &mut Stat| stat.st_ctime_nsec ^= 1,
        ] {
            let mut later = stat;
            field(&mut later);
            assert_ne!(Identity::of(&later), Identity::of(&stat));
        }
    }
}
