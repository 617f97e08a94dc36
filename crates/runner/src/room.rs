//! What a run sees of the session's tree, in a mount namespace of the run's own.
//!
//! A build gets its scratches empty: an earlier one may have left a configuration there that cargo
//! would obey. Only its output stays, for that is what later builds take dependencies from.
//!
//! A case gets another tree altogether, made anew for each run.
//! Landlock keeps a case from opening the session's places, but not from asking for their times,
//! sizes and mount numbers. Those say how old the session is, how many runs there were before, and
//! which programs wait: enough to behave while being judged and to fall over among the mutants. In
//! here everything is either the machine's, and older than the session, or as old as the run.

use crate::scratch;
use crate::walls::BUILD;
use flightproof_core::{Bytes, RelPath};
use flightproof_frame::protocol::layout;
use rustix::fs::{CWD, FileType, Mode, mknodat, statvfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_remount, unmount,
};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Where the tree is put together; the session has a mount point there that nobody uses.
const SITE: &str = "/tmp";
/// What of the session is in it, each as it is there: a link, a directory, a device.
const SHOWN: [&str; 14] = [
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    layout::NODE,
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Moves the calling process, which is alone in its mount namespace, into a tree of its own, with
/// these places of the session beside the usual ones, and a scratch of `uid` with these files.
pub(crate) fn enter(
    more: &[&str],
    uid: u32,
    files: &BTreeMap<RelPath, Bytes>,
) -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", SITE, "tmpfs", flags, c"mode=0755,size=64k")
        .map_err(|e| format!("mount {SITE}: {e}"))?;
    for shown in SHOWN.iter().chain(more) {
        show(SITE, shown).map_err(|e| format!("show {shown}: {e}"))?;
    }
    let case = format!("{SITE}{}", layout::CASE);
    fs::create_dir(&case).map_err(|e| format!("{case}: {e}"))?;
    scratch::lay(Path::new(&case), uid, files)?;
    turn(SITE, flags).map_err(|e| format!("change the root: {e}"))
}

/// Puts an empty file system over each scratch of the builds. It goes with the namespace.
pub(crate) fn renew_scratches() -> Result<(), String> {
    let renew = |place: &str| -> rustix::io::Result<()> {
        let below = statvfs(place)?;
        let size = below.f_blocks.saturating_mul(below.f_frsize);
        let options = format!("size={size},mode=0755,uid={BUILD},gid={BUILD}");
        let options = CString::new(options).map_err(|_nul| Errno::INVAL)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", place, "tmpfs", flags, options.as_c_str())
    };
    [layout::CARGO_HOME, layout::TMP]
        .iter()
        .try_for_each(|place| renew(place).map_err(|e| format!("renew {place}: {e}")))
}

/// Where a program looks for its own process.
pub(crate) const PROCESSES: &str = "/proc";

/// Puts the processes of the calling one's namespace at [`PROCESSES`], if the session has such a
/// place: those that an agent may look at, and nothing of the machine. Programs that carry their
/// runtime with them find themselves there.
pub(crate) fn show_own_processes() -> Result<(), String> {
    if !Path::new(PROCESSES).is_dir() {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(
        "proc",
        PROCESSES,
        "proc",
        flags,
        c"hidepid=invisible,subset=pid",
    )
    .map_err(|e| format!("mount {PROCESSES}: {e}"))
}

/// Makes `shown` be in the tree at `site` what it is outside of it. What does not exist is not
/// shown.
pub(crate) fn show(site: &str, shown: &str) -> std::io::Result<()> {
    let Ok(is) = fs::symlink_metadata(shown) else {
        return Ok(());
    };
    let place = format!("{site}{shown}");
    let place = Path::new(&place);
    if is.is_symlink() {
        let target = fs::read_link(shown)?;
        return below_parents(place, || symlink(&target, place));
    }
    if is.is_dir() {
        below_parents(place, || fs::create_dir(place))?;
        return Ok(mount_bind_recursive(shown, place)?);
    }
    let file = || Ok(mknodat(CWD, place, FileType::RegularFile, Mode::RUSR, 0)?);
    below_parents(place, file)?;
    Ok(mount_bind(shown, place)?)
}

/// Makes `place`, and the directories it lies in first where they are missing.
fn below_parents(place: &Path, make: impl Fn() -> std::io::Result<()>) -> std::io::Result<()> {
    match (make(), place.parent()) {
        (Err(error), Some(parent)) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir_all(parent)?;
            make()
        }
        (made, _) => made,
    }
}

/// The old root ends up above the new one at the same place, and is taken away with all below it.
pub(crate) fn turn(site: &str, flags: MountFlags) -> std::io::Result<()> {
    rustix::process::chdir(site)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    mount_remount("/", flags | MountFlags::BIND | MountFlags::RDONLY, "")?;
    Ok(())
}
