//! The places programs write to.
//!
//! A case gets a file system of its own, mounted over the session's scratch for the one run. What
//! it leaves goes with the mount: not only files of whatever depth, name and mode, but also what an
//! emptied directory would keep and the next case could read — attributes, flags, times, the count
//! of files ever made.

use crate::code::{RunnerCode, RunnerError, inside};
use crate::walls::{AGENT, BUILD};
use flightproof_core::{Bytes, RelPath};
use flightproof_frame::protocol::layout;
use rustix::fs::statvfs;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{chown, lchown};
use std::path::Path;

/// Makes the places of a build that are not there yet.
pub(crate) fn make_build_places() -> Result<(), RunnerError> {
    [layout::TARGET, layout::CARGO_HOME, layout::TMP]
        .iter()
        .filter(|place| fs::symlink_metadata(place).is_err())
        .try_for_each(|place| make_owned(place, BUILD))
}

/// Makes the places of an agent that are not there yet.
pub(crate) fn make_agent_places() -> Result<(), RunnerError> {
    [layout::AGENT, layout::AGENT_WORK, layout::AGENT_HOME]
        .iter()
        .filter(|place| fs::symlink_metadata(place).is_err())
        .try_for_each(|place| make_owned(place, AGENT))
}

/// A directory that belongs to `uid` and the build's group, mode 0755.
pub(crate) fn make_owned(place: &str, uid: u32) -> Result<(), RunnerError> {
    fs::create_dir(place)
        .and_then(|()| chown(place, Some(uid), Some(BUILD)))
        .map_err(inside(place))
}

/// The scratch of one run. Dropped without [`Scratch::close`] it is taken away all the same.
pub(crate) struct Scratch {
    mounted: bool,
}

/// Most files of a scratch: an end for a case that only makes names.
const MAX_FILES: u32 = 65_536;

impl Scratch {
    /// A fresh one for `uid`, as large as the session's own, with the files of its case.
    pub(crate) fn open(uid: u32, files: &BTreeMap<RelPath, Bytes>) -> Result<Self, RunnerError> {
        let below = statvfs(layout::CASE).map_err(inside(layout::CASE))?;
        let size = below.f_blocks.saturating_mul(below.f_frsize);
        let options = format!("size={size},nr_inodes={MAX_FILES},mode=0700,uid={uid},gid={uid}");
        let options = CString::new(options).map_err(inside(layout::CASE))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", layout::CASE, "tmpfs", flags, options.as_c_str())
            .map_err(inside("mount the scratch"))?;
        let scratch = Self { mounted: true };
        lay_out(Path::new(layout::CASE), uid, files)?;
        Ok(scratch)
    }

    /// Takes it away with all that is in it. Its processes are dead, so nothing can hold it.
    pub(crate) fn close(mut self) -> Result<(), RunnerError> {
        self.mounted = false;
        unmount(layout::CASE, UnmountFlags::NOFOLLOW).map_err(inside("unmount the scratch"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.mounted {
            // On the way out with another error, which is the one to tell.
            let _ = unmount(layout::CASE, UnmountFlags::DETACH);
        }
    }
}

fn lay_out(case: &Path, uid: u32, files: &BTreeMap<RelPath, Bytes>) -> Result<(), RunnerError> {
    files.iter().try_for_each(|(path, bytes)| {
        make_parents(case, path, uid)
            .and_then(|()| fs::write(case.join(path.as_str()), &bytes.0))
            .and_then(|()| lchown(case.join(path.as_str()), Some(uid), Some(uid)))
            .map_err(|error| RunnerCode::Inside.refuse(format!("lay out {path}: {error}")))
    })
}

fn make_parents(case: &Path, path: &RelPath, uid: u32) -> std::io::Result<()> {
    let mut at = case.to_owned();
    for segment in path
        .parent()
        .into_iter()
        .flat_map(|parent| parent.split('/'))
    {
        at.push(segment);
        match fs::create_dir(&at) {
            Ok(()) => lchown(&at, Some(uid), Some(uid))?,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
