use crate::beneath::{self, io, random_name};
use crate::code::{ArchiveCode, ArchiveError};
use rustix::fs::{AtFlags, Mode, RawDir, RenameFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// A directory under a random name that no tree may use, which nobody else may enter, and which is
/// gone with all it holds when dropped, unless it was published.
///
/// A process that is killed leaves it behind. Its name starts with `.prime-agent-staging`, no
/// archive may hold such a name, and nothing in it was ever published: it can be removed at any
/// time.
pub(crate) struct Staging<'a> {
    parent: BorrowedFd<'a>,
    name: String,
    dir: OwnedFd,
    published: bool,
}

impl<'a> Staging<'a> {
    /// In this directory.
    pub(crate) fn create(parent: BorrowedFd<'a>) -> Result<Self, ArchiveError> {
        let name = random_name()?;
        let failed = |e| io("create a staging directory", e);
        rustix::fs::mkdirat(parent, &*name, Mode::RWXU).map_err(failed)?;
        let opened = beneath::open_directory(parent, &*name).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(parent, &*name, AtFlags::REMOVEDIR);
        });
        let staging = Self {
            dir: opened.map_err(failed)?,
            parent,
            name,
            published: false,
        };
        staging.settle()?;
        Ok(staging)
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Makes it ours alone, and what is created in it as bare as it is created: a parent may hand
    /// down its group and its access lists to all that is made below it.
    fn settle(&self) -> Result<(), ArchiveError> {
        let failed = |e| io("prepare the staging directory", e);
        if !self.is_ours(&rustix::fs::fstat(&self.dir).map_err(failed)?) {
            let detail = "the staging directory was taken by another user";
            return Err(ArchiveCode::DestinationUnsafe.refuse(detail));
        }
        for list in ["system.posix_acl_default", "system.posix_acl_access"] {
            match rustix::fs::fremovexattr(&self.dir, list) {
                Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(e) => return Err(failed(e)),
            }
        }
        // The mode is set even though it was asked for: this drops an inherited set-group-id.
        rustix::fs::fchmod(&self.dir, Mode::RWXU).map_err(failed)
    }

    fn is_ours(&self, stat: &Stat) -> bool {
        stat.st_uid == rustix::process::geteuid().as_raw()
    }

    /// Gives it mode 0755 and its real name, at which nothing may stand.
    pub(crate) fn publish(mut self, name: &OsStr) -> Result<(), Errno> {
        beneath::publish_directory(&self.dir)?;
        let ours = rustix::fs::fstat(&self.dir)?;
        rustix::fs::renameat_with(
            self.parent,
            &*self.name,
            self.parent,
            name,
            RenameFlags::NOREPLACE,
        )?;
        self.published = true;
        // Names move, descriptors do not: was it ours that now has the name?
        let there = rustix::fs::statat(self.parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino) {
            return Err(Errno::STALE);
        }
        Ok(())
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if !self.published {
            let mut removal = Removal { left: MAX_REMOVALS };
            removal.entry(self.parent, OsStr::new(&self.name), 0);
        }
    }
}

/// Entries that are removed at most: ten trees of the largest size. Somebody who fills the
/// directory while it is emptied does not keep us for ever.
const MAX_REMOVALS: u32 = 1_000_000;
/// Directories in one another that are entered at most: a path of 512 bytes has no more.
const MAX_DEPTH: u32 = 257;
/// Bytes of names read at once.
const NAMES_BYTES: usize = 32 << 10;

/// Removes a tree that only we wrote to, as far as it can be removed. Whether all of it is gone.
pub(crate) fn remove_tree(parent: BorrowedFd<'_>, name: &str) -> bool {
    let mut removal = Removal { left: MAX_REMOVALS };
    removal.entry(parent, OsStr::new(name), 0)
}

/// Removes a tree by descriptors: no link is followed, no mount is entered. Best effort: what
/// cannot be removed stays, under a name that tells what it is.
struct Removal {
    left: u32,
}

impl Removal {
    /// Whether anything was removed.
    fn entry(&mut self, parent: BorrowedFd<'_>, name: &OsStr, depth: u32) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) if depth < MAX_DEPTH => {
                if let Ok(dir) = beneath::open_directory(parent, name) {
                    self.content(dir.as_fd(), depth + 1);
                }
                rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
            }
            done => done.is_ok(),
        }
    }

    /// Lists and removes until a whole listing brings nothing to remove.
    fn content(&mut self, dir: BorrowedFd<'_>, depth: u32) {
        loop {
            let names = some_names(dir);
            let mut removed = false;
            for name in &names {
                removed |= self.entry(dir, OsStr::from_bytes(name.to_bytes()), depth);
            }
            if !removed {
                return;
            }
        }
    }
}

/// The first names of a directory, as many as one reading gives.
fn some_names(dir: BorrowedFd<'_>) -> Vec<CString> {
    let mut names = Vec::new();
    if rustix::fs::seek(dir, SeekFrom::Start(0)).is_err() {
        return names;
    }
    let mut buffer = vec![MaybeUninit::uninit(); NAMES_BYTES];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
        if entries.is_buffer_empty() {
            break;
        }
    }
    names
}
