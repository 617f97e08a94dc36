//! The places programs write to.
//!
//! A case gets a file system of its own, mounted in the tree of the one run. What it leaves goes with
//! the mount: not only files of whatever depth, name and mode, but also what an
//! emptied directory would keep and the next case could read — attributes, flags, times, the count
//! of files ever made.

use crate::code::{RunnerError, inside};
use crate::walls::{AGENT, BUILD};
use flightproof_core::{Bytes, RelPath};
use flightproof_frame::protocol::layout;
use rustix::fs::statvfs;
use rustix::mount::{MountFlags, mount};
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

/// Most files of a scratch: an end for a case that only makes names.
const MAX_FILES: u32 = 65_536;

/// Mounts a fresh scratch of `uid` at `place`, as large as the session's own, and lays the files of the
/// case in it. For a run's own mount namespace, whose end takes it away with all that is in it.
pub(crate) fn lay(place: &Path, uid: u32, files: &BTreeMap<RelPath, Bytes>) -> Result<(), String> {
    let below = statvfs(layout::CASE).map_err(|e| format!("{}: {e}", layout::CASE))?;
    let size = below.f_blocks.saturating_mul(below.f_frsize);
    let options = format!("size={size},nr_inodes={MAX_FILES},mode=0700,uid={uid},gid={uid}");
    let options = CString::new(options).map_err(|e| format!("the scratch: {e}"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", place, "tmpfs", flags, options.as_c_str())
        .map_err(|e| format!("mount the scratch: {e}"))?;
    files.iter().try_for_each(|(path, bytes)| {
        make_parents(place, path, uid)
            .and_then(|()| fs::write(place.join(path.as_str()), &bytes.0))
            .and_then(|()| lchown(place.join(path.as_str()), Some(uid), Some(uid)))
            .map_err(|error| format!("lay out {path}: {error}"))
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
