//! Files beneath a directory that is held open: no link is followed, no mount is crossed, and no
//! path is resolved from anywhere else.

use crate::code::{ArchiveCode, ArchiveError};
use flightproof_core::RelPath;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use std::fmt::Display;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// How often an open is tried again that a rename elsewhere on the machine disturbed. The kernel
/// asks for it with EAGAIN; somebody who renames without end is refused.
const MAX_TRIES: u32 = 64;

/// What a directory is opened with.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Opens beneath `dir`, or fails: there is no second way for kernels without openat2.
pub(crate) fn open(
    dir: impl AsFd,
    path: impl Arg + Copy,
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
pub(crate) fn open_directory(dir: impl AsFd, path: impl Arg + Copy) -> rustix::io::Result<OwnedFd> {
    open(dir, path, DIRECTORY, Mode::empty())
}

/// Opens a directory the caller named. Links in this path are the caller's own.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, ArchiveError> {
    let flags = DIRECTORY.union(OFlags::CLOEXEC);
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| io("open the directory", e))
}

/// Creates a directory that must not exist and that nobody else may enter.
pub(crate) fn create_private_directory(dir: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    rustix::fs::mkdirat(dir.as_fd(), name, Mode::RWXU)?;
    open_directory(dir, name)
}

/// Creates a directory that must not exist, mode 0755 whatever the umask.
pub(crate) fn create_directory(
    dir: impl AsFd,
    name: &str,
    umask: Umask,
) -> rustix::io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(0o755);
    rustix::fs::mkdirat(dir.as_fd(), name, mode)?;
    let made = open_directory(dir, name)?;
    umask.undo(&made, mode)?;
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
    umask: Umask,
) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
    let file = open(dir, name, flags, mode)?;
    umask.undo(&file, mode)?;
    Ok(File::from(file))
}

/// What the system takes from the mode of everything this process creates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Umask(Mode);

impl Umask {
    /// Reads it where reading does not change it: `umask` itself sets it, for all threads. Where it
    /// cannot be read it may take everything.
    pub(crate) fn of_this_process() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let bits = field.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok());
        Self(Mode::from_raw_mode(bits.unwrap_or(0o777)))
    }

    /// Gives a new file the mode it was asked for, if it may lack some of it.
    fn undo(self, file: &OwnedFd, mode: Mode) -> rustix::io::Result<()> {
        match self.0.intersects(mode) {
            true => rustix::fs::fchmod(file, mode),
            false => Ok(()),
        }
    }
}

/// The directory that was opened last: files come in runs of one directory.
pub(crate) struct Parents<'a> {
    root: BorrowedFd<'a>,
    open: Option<(String, OwnedFd)>,
}

impl<'a> Parents<'a> {
    pub(crate) fn new(root: BorrowedFd<'a>) -> Self {
        Self { root, open: None }
    }

    /// The directory of this path, `None` being the root.
    pub(crate) fn of(&mut self, path: Option<&str>) -> rustix::io::Result<BorrowedFd<'_>> {
        let Some(path) = path else {
            return Ok(self.root);
        };
        if !matches!(&self.open, Some((open, _)) if open == path) {
            let dir = open_directory(self.root, path)?;
            self.open = Some((path.to_owned(), dir));
        }
        Ok(self.open.as_ref().map_or(self.root, |(_, dir)| dir.as_fd()))
    }
}

/// A name for what is not finished: reserved, and nobody can guess it.
pub(crate) fn random_name() -> Result<String, ArchiveError> {
    let mut nonce = [0u8; 16];
    let filled = rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty());
    filled.map_err(|e| io("draw a random name", e))?;
    Ok(format!(
        "{}-{:032x}",
        RelPath::RESERVED,
        u128::from_be_bytes(nonce)
    ))
}

pub(crate) fn io(act: impl Display, error: impl Display) -> ArchiveError {
    ArchiveCode::Io.refuse(format_args!("could not {act}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::FdFlags;
    use std::os::unix::fs::symlink;

    /// A directory with a file in a directory, and links to both from inside.
    fn place() -> tempfile::TempDir {
        let place = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(place.path().join("dir")).unwrap();
        std::fs::write(place.path().join("dir/file"), "x").unwrap();
        symlink("dir", place.path().join("link")).unwrap();
        symlink("file", place.path().join("dir/link")).unwrap();
        place
    }

    #[test]
    fn no_way_leads_out_through_a_link_or_over_a_mount() {
        let place = place();
        let root = open_root(place.path()).unwrap();
        let opened = |path| open(&root, path, OFlags::RDONLY, Mode::empty()).map(drop);
        assert_eq!(opened("dir/file"), Ok(()));
        for (path, errno) in [
            ("link/file", Errno::LOOP),
            ("dir/link", Errno::LOOP),
            ("..", Errno::XDEV),
            ("dir/../../x", Errno::XDEV),
            ("/", Errno::XDEV),
        ] {
            assert_eq!(opened(path), Err(errno), "{path}");
        }
        // A mount that every machine has.
        let top = open_root(Path::new("/")).unwrap();
        assert_eq!(open_directory(&top, "proc").map(drop), Err(Errno::XDEV));
    }

    #[test]
    fn nothing_that_is_opened_is_inherited() {
        let place = place();
        let root = open_root(place.path()).unwrap();
        let umask = Umask::of_this_process();
        let opened = [
            open_directory(&root, "dir").unwrap(),
            create_private_directory(&root, "private").unwrap(),
            create_directory(&root, "made", umask).unwrap(),
            create_file(&root, "new", false, umask).unwrap().into(),
            root,
        ];
        for fd in opened {
            assert_eq!(rustix::io::fcntl_getfd(&fd), Ok(FdFlags::CLOEXEC));
        }
    }
}
