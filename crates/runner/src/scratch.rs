//! The places programs write to: made before a run, emptied after it.
//!
//! What a case leaves behind is hostile: directories deeper than any path, names that are no text,
//! modes that lock everybody out. It is taken apart with descriptors, never by path, and without
//! recursion.

use crate::code::{RunnerCode, RunnerError, inside};
use crate::walls::BUILD;
use flightproof_core::{Bytes, RelPath};
use flightproof_frame::protocol::layout;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, RenameFlags, fchmod, openat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown};
use std::path::Path;

/// Makes the places of a build that are not there yet.
pub(crate) fn make_build_places() -> Result<(), RunnerError> {
    [layout::TARGET, layout::CARGO_HOME, layout::TMP]
        .iter()
        .filter(|place| fs::symlink_metadata(place).is_err())
        .try_for_each(|place| make_owned(place, BUILD))
}

/// A directory that belongs to `uid` (and its group), mode 0755.
pub(crate) fn make_owned(place: &str, uid: u32) -> Result<(), RunnerError> {
    fs::create_dir(place)
        .and_then(|()| chown(place, Some(uid), Some(BUILD)))
        .map_err(inside(place))
}

/// Empties the scratch of cases and takes it away from the last one.
pub(crate) fn empty_case() -> Result<(), RunnerError> {
    let case = layout::CASE;
    chown(case, Some(0), Some(0)).map_err(inside(case))?;
    empty(Path::new(case)).map_err(inside("empty the scratch"))
}

/// Gives the scratch to a fresh uid, with the files of its case.
pub(crate) fn lay_out(uid: u32, files: &BTreeMap<RelPath, Bytes>) -> Result<(), RunnerError> {
    let case = Path::new(layout::CASE);
    for (path, bytes) in files {
        make_parents(case, path, uid)?;
        let full = case.join(path.as_str());
        fs::write(&full, &bytes.0)
            .and_then(|()| lchown(&full, Some(uid), Some(uid)))
            .map_err(|error| RunnerCode::Inside.refuse(format!("lay out {path}: {error}")))?;
    }
    fs::set_permissions(case, fs::Permissions::from_mode(0o700))
        .and_then(|()| chown(case, Some(uid), Some(uid)))
        .map_err(inside(layout::CASE))
}

fn make_parents(case: &Path, path: &RelPath, uid: u32) -> Result<(), RunnerError> {
    let mut at = case.to_owned();
    for segment in path
        .parent()
        .into_iter()
        .flat_map(|parent| parent.split('/'))
    {
        at.push(segment);
        match fs::create_dir(&at) {
            Ok(()) => lchown(&at, Some(uid), Some(uid)).map_err(inside(layout::CASE))?,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(inside("lay out a directory")(error)),
        }
    }
    Ok(())
}

/// Removes everything below `root`, whatever it is. No process may be working in it.
///
/// Directories are lifted to the top one by one, so depth costs neither stack nor descriptors.
fn empty(root: &Path) -> rustix::io::Result<()> {
    let top = rustix::fs::open(root, DIRECTORY, Mode::empty())?;
    let mut lifted = 0u64;
    loop {
        let names = names(&top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if !remove_plain(&top, &name)? {
                flatten(&top, &name, &mut lifted)?;
            }
        }
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes anything but a directory. False for a directory.
fn remove_plain(dir: &OwnedFd, name: &CString) -> rustix::io::Result<bool> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves the directories in `name` up to `top`, removes everything else in it, then itself.
fn flatten(top: &OwnedFd, name: &CString, lifted: &mut u64) -> rustix::io::Result<()> {
    let dir = openat(top, name, DIRECTORY, Mode::empty())?;
    fchmod(&dir, Mode::RWXU)?;
    for child in names(&dir)? {
        if !remove_plain(&dir, &child)? {
            lift(top, &dir, &child, lifted)?;
        }
    }
    drop(dir);
    unlinkat(top, name, AtFlags::REMOVEDIR)
}

/// The new name may be taken by a leftover of the case, hence the loop. Nothing is created: the
/// scratch may be full.
fn lift(top: &OwnedFd, dir: &OwnedFd, child: &CString, lifted: &mut u64) -> rustix::io::Result<()> {
    loop {
        *lifted += 1;
        let fresh = format!(".lifted-{lifted}");
        match renameat_with(dir, child, top, fresh.as_str(), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            done => return done,
        }
    }
}

fn names(dir: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    Dir::read_from(dir)?
        .map(|entry| entry.map(|entry| entry.file_name().to_owned()))
        .filter(|name| !matches!(name.as_ref().map(|n| n.to_bytes()), Ok(b"." | b"..")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::mkdirat;
    use std::os::unix::fs::symlink;

    #[test]
    fn emptying_takes_links_and_never_follows_them() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let root = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join("link")).unwrap();
        fs::create_dir(root.path().join("sub")).unwrap();
        symlink(outside.path(), root.path().join("sub/link")).unwrap();
        empty(root.path()).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn emptying_a_tree_deeper_than_any_path_needs_no_stack() {
        let root = tempfile::tempdir().unwrap();
        let mut dir = rustix::fs::open(root.path(), DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..1_000 {
            mkdirat(&dir, "deeper", Mode::RWXU).unwrap();
            dir = openat(&dir, "deeper", DIRECTORY, Mode::empty()).unwrap();
        }
        empty(root.path()).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn emptying_bears_names_of_its_own_kind() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".lifted-1/.lifted-2/.lifted-1")).unwrap();
        fs::write(root.path().join(".lifted-3"), "x").unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        empty(root.path()).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn directories_without_modes_are_emptied_too() {
        let root = tempfile::tempdir().unwrap();
        let locked = root.path().join("locked");
        fs::create_dir_all(locked.join("inner")).unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
        empty(root.path()).unwrap();
        assert!(!locked.exists());
    }
}
