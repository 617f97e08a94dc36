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

    /// Makes it ours alone.
    fn settle(&self) -> Result<(), ArchiveError> {
        let stat = rustix::fs::fstat(&self.dir).map_err(|e| unprepared(&e))?;
        if !self.is_ours(&stat) {
            let detail = "the staging directory was taken by another user";
            return Err(ArchiveCode::DestinationUnsafe.refuse(detail));
        }
        make_bare(&self.dir)
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

/// Lets nobody else into a new directory, and has what is created in it as bare as it is created: a
/// parent may hand down its group and its access lists to all that is made below it.
pub(crate) fn make_bare(dir: &OwnedFd) -> Result<(), ArchiveError> {
    for list in ["system.posix_acl_default", "system.posix_acl_access"] {
        match rustix::fs::fremovexattr(dir, list) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(e) => return Err(unprepared(&e)),
        }
    }
    // The mode is set even though it was asked for: this drops an inherited set-group-id.
    rustix::fs::fchmod(dir, Mode::RWXU).map_err(|e| unprepared(&e))
}

fn unprepared(error: &Errno) -> ArchiveError {
    io("prepare the staging directory", error)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use tempfile::TempDir;

    fn removed(root: &Path, left: u32) -> (bool, u32) {
        let parent = beneath::open_root(root).unwrap();
        let mut removal = Removal { left };
        let gone = removal.entry(parent.as_fd(), OsStr::new("tree"), 0);
        (gone, removal.left)
    }

    #[test]
    fn a_directory_with_more_names_than_one_reading_gives_is_removed_whole() {
        let root = TempDir::new().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let names = 2 * NAMES_BYTES / 200;
        for name in 0..names {
            fs::write(tree.join(format!("{name:0200}")), "").unwrap();
        }
        let parent = beneath::open_root(&tree).unwrap();
        assert!(some_names(parent.as_fd()).len() < names);
        assert!(remove_tree(
            beneath::open_root(root.path()).unwrap().as_fd(),
            "tree"
        ));
        assert!(!tree.exists());
        // There is nothing any more.
        assert_eq!(removed(root.path(), 9), (false, 8));
    }

    #[test]
    fn no_more_is_removed_than_was_allowed() {
        let root = TempDir::new().unwrap();
        let tree = root.path().join("tree");
        let planted = || {
            fs::create_dir_all(tree.join("dir")).unwrap();
            for name in ["a", "b", "dir/c"] {
                fs::write(tree.join(name), "").unwrap();
            }
        };
        // The tree, its three entries, and what lies in one of them.
        planted();
        assert_eq!(removed(root.path(), 5), (true, 0));
        planted();
        assert_eq!(removed(root.path(), 4), (false, 0));
        assert!(tree.exists());
        assert_eq!(removed(root.path(), 0), (false, 0));
    }

    #[test]
    fn directories_are_entered_down_to_a_depth() {
        for (depth, gone) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
            let root = TempDir::new().unwrap();
            let mut tree = root.path().join("tree");
            (1..depth).for_each(|_| tree.push("d"));
            fs::create_dir_all(&tree).unwrap();
            // The innermost has to be entered.
            fs::write(tree.join("file"), "").unwrap();
            assert_eq!(removed(root.path(), MAX_REMOVALS).0, gone, "{depth}");
        }
    }

    #[test]
    fn a_staging_directory_of_another_user_is_not_used() {
        let root = TempDir::new().unwrap();
        let parent = beneath::open_root(root.path()).unwrap();
        let staging = Staging::create(parent.as_fd()).unwrap();
        assert_eq!(staging.settle(), Ok(()));
        let other = rustix::process::Uid::from_raw(12_345);
        rustix::fs::fchown(staging.dir(), Some(other), None)
            .expect("this test gives a directory away: run it as root");
        let refused = staging.settle().unwrap_err();
        assert_eq!(refused.code, ArchiveCode::DestinationUnsafe);
    }
}
