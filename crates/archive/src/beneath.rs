//! Files beneath a directory that is held open: no link is followed, no mount is crossed, and no
//! path is resolved from anywhere else.

use crate::code::{ArchiveCode, ArchiveError};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fmt::Display;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// How often an open is tried again that a rename elsewhere on the machine disturbed. The kernel
/// asks for it with EAGAIN; somebody who renames without end is refused.
const MAX_TRIES: u32 = 64;

/// What a directory is opened with.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens beneath `dir`, or fails: there is no second way for kernels without openat2.
pub(crate) fn open(
    dir: impl AsFd,
    path: &str,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 1..MAX_TRIES {
        match rustix::fs::openat2(dir.as_fd(), path, flags, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
    rustix::fs::openat2(dir.as_fd(), path, flags, mode, resolve)
}

/// Opens a directory beneath another.
pub(crate) fn open_directory(dir: impl AsFd, path: &str) -> rustix::io::Result<OwnedFd> {
    open(dir, path, DIRECTORY, Mode::empty())
}

/// Opens a directory the caller named. Links in this path are the caller's own.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, ArchiveError> {
    let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| io("open the directory", e))
}

/// Creates a directory that must not exist and that nobody else may enter.
pub(crate) fn create_private_directory(dir: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    rustix::fs::mkdirat(dir.as_fd(), name, Mode::RWXU)?;
    open_directory(dir, name)
}

/// Creates a directory that must not exist, mode 0755 whatever the umask.
pub(crate) fn create_directory(dir: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let made = create_private_directory(dir, name)?;
    publish_directory(&made)?;
    Ok(made)
}

/// Gives a directory its mode, 0755.
pub(crate) fn publish_directory(dir: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fchmod(dir, Mode::from_raw_mode(0o755))
}

/// Creates a file that must not exist, mode 0644 or 0755 whatever the umask.
pub(crate) fn create_file(
    dir: impl AsFd,
    name: &str,
    executable: bool,
) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = open(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    let mode = if executable { 0o755 } else { 0o644 };
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(File::from(file))
}

pub(crate) fn io(act: impl Display, error: impl Display) -> ArchiveError {
    ArchiveCode::Io.refuse(format_args!("could not {act}: {error}"))
}
