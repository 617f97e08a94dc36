//! From a container to a session. Container engines give neither user ids of its own to a session
//! nor an id to each case, and whoever is root in a container is root to the kernel. So our program
//! is the container's first process, with two capabilities only (to change user and group), and
//! uses them once: it makes a session of its own inside, with every namespace of its own, whose
//! root is an ordinary user id outside. There the runner is the first process, as in every session.
//!
//! ```text
//! keeper (pid 1 of the container; nobody, no capability, waits)
//!    └── clone(NEWUSER | NEWPID | NEWNS | NEWNET | …) ──▶ runner (pid 1 of the session)
//! ```
//!
//! The keeper ends when the runner does, when the host lets go of the line, or when the session's
//! lifetime is over; with it the kernel ends every process of the container. So a session never
//! outlives its owner, and never its time, even where nobody asks the engine to remove it.

use crate::code::{RunnerCode, RunnerError, inside};
use crate::kernel::KernelFiles;
use crate::{calls, room, spawn};
use flightproof_frame::protocol::layout;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_remount};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Gid, Pid, PidfdFlags, Uid, getpid, getuid, pidfd_open, umask};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::ffi::{CString, OsString};
use std::fs;
use std::time::{Duration, Instant};

/// What the first process of a container is told.
pub(crate) struct Order {
    /// Size of the build's scratch, bytes.
    scratch_bytes: u64,
    /// First user and group id outside that belongs to the session.
    base: u32,
    /// How long the session may live.
    lifetime: Duration,
}

/// The order in the program's arguments: `__runner container SCRATCH BASE LIFETIME`, numbers in
/// bytes, ids and milliseconds. `None` for a program that was started as a runner only.
pub(crate) fn order() -> Option<Order> {
    parse(std::env::args_os().skip(2))
}

fn parse(words: impl Iterator<Item = OsString>) -> Option<Order> {
    let words: Vec<String> = words.map(|w| w.into_string().ok()).collect::<Option<_>>()?;
    let [kind, scratch, base, lifetime] = words.as_slice() else {
        return None;
    };
    (kind == "container").then_some(())?;
    Some(Order {
        scratch_bytes: scratch.parse().ok()?,
        base: base.parse().ok()?,
        lifetime: Duration::from_millis(lifetime.parse().ok()?),
    })
}

/// Makes the session and runs `runner` as its first process. Returns in both processes.
pub(crate) fn enter(
    order: Order,
    runner: impl FnOnce(KernelFiles) -> Result<(), RunnerError>,
) -> Result<(), RunnerError> {
    if getpid() != Pid::INIT || getuid() != Uid::ROOT {
        return Err(RunnerCode::NotASession.refuse("not the first process of a container"));
    }
    let end = Instant::now() + order.lifetime;
    umask(Mode::from_raw_mode(0o022));
    calls::hide().map_err(inside("hide"))?;
    fs::create_dir(SITE).map_err(inside(SITE))?;
    let (go, tell) = pipe_with(PipeFlags::CLOEXEC).map_err(inside("pipe"))?;
    match spawn::clone_session().map_err(inside("make namespaces"))? {
        None => {
            drop(tell);
            wait_to_go(&go)?;
            runner(become_session(&order)?)
        }
        Some(pid) => {
            drop(go);
            map_ids(pid, order.base)?;
            rustix::io::write(&tell, b"g").map_err(inside("start the runner"))?;
            become_nobody()?;
            keep(pid, end)
        }
    }
}

/// User and group ids of a session: one per case run, and none is used twice.
const WIDTH: u32 = 1_000_000;
/// Where the session's tree is put together: below the engine's mount that holds our program.
const SITE: &str = "/runner/tree";
/// The identity of a keeper.
const NOBODY: u32 = 65_534;

fn map_ids(pid: Pid, base: u32) -> Result<(), RunnerError> {
    ["uid_map", "gid_map"].iter().try_for_each(|map| {
        let path = format!("/proc/{}/{map}", pid.as_raw_nonzero());
        fs::write(&path, format!("0 {base} {WIDTH}\n")).map_err(inside(map))
    })
}

/// Gives up what root may do, for good, and checks it.
fn become_nobody() -> Result<(), RunnerError> {
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    thread::set_thread_groups(&[]).map_err(inside("setgroups"))?;
    thread::set_thread_res_gid(gid, gid, gid).map_err(inside("setresgid"))?;
    thread::set_thread_res_uid(uid, uid, uid).map_err(inside("setresuid"))?;
    // The kernel makes a process readable again when its ids change.
    calls::hide().map_err(inside("hide"))?;
    let kept = thread::capabilities(None).map_err(inside("capget"))?;
    if kept.permitted.is_empty() && thread::set_thread_uid(Uid::ROOT).is_err() {
        return Ok(());
    }
    Err(RunnerCode::Inside.refuse("the keeper could not give up root"))
}

/// Waits for the end of the runner, of the line, or of the session's time.
fn keep(runner: Pid, end: Instant) -> Result<(), RunnerError> {
    let runner = pidfd_open(runner, PidfdFlags::empty()).map_err(inside("pidfd"))?;
    let line = rustix::io::fcntl_dupfd_cloexec(stdin(), 3).map_err(inside("keep the line"))?;
    let null = fs::File::open("/dev/null").map_err(inside("/dev/null"))?;
    dup2_stdin(&null).map_err(inside("standard input"))?;
    dup2_stdout(&null).map_err(inside("standard output"))?;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // Nothing is asked of the line but its end, which is always told.
        let mut watched = [
            PollFd::new(&runner, PollFlags::IN),
            PollFd::new(&line, PollFlags::empty()),
        ];
        match poll(&mut watched, Some(&timeout)) {
            Ok(0) if left.is_zero() => return Ok(()),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(RunnerCode::Inside.refuse(error)),
        }
    }
}

fn wait_to_go(go: &OwnedFd) -> Result<(), RunnerError> {
    let mut byte = [0];
    match rustix::io::read(go, &mut byte) {
        Ok(1) => Ok(()),
        _ => Err(RunnerCode::NotASession.refuse("the keeper ended before the session began")),
    }
}

/// The way of the session's first process from the container's tree to its own.
fn become_session(order: &Order) -> Result<KernelFiles, RunnerError> {
    let (uid, gid) = (Uid::ROOT, Gid::ROOT);
    thread::set_thread_groups(&[]).map_err(inside("setgroups"))?;
    thread::set_thread_res_gid(gid, gid, gid).map_err(inside("setresgid"))?;
    thread::set_thread_res_uid(uid, uid, uid).map_err(inside("setresuid"))?;
    rustix::system::sethostname(b"flight").map_err(inside("sethostname"))?;
    let mut files = kernel_files();
    let own = fs::File::open("/proc/self").map_err(inside("/proc/self"))?;
    make_tree(order.scratch_bytes).map_err(|what| RunnerCode::Inside.refuse(what))?;
    keep_capabilities()?;
    // A mount table shows what its reader could reach when it was opened: the new tree, now.
    files.open_at(&own, "mountinfo");
    Ok(files)
}

/// What the host will ask for, opened where `/proc` and the cgroups are still in reach. Of cgroups
/// there is one version or the other.
fn kernel_files() -> KernelFiles {
    let mut files = KernelFiles::default();
    for (name, path) in FILES {
        files.open(name, path);
    }
    files
}

const FILES: [(&str, &str); 21] = [
    ("status", "/proc/self/status"),
    ("limits", "/proc/self/limits"),
    ("uid_map", "/proc/self/uid_map"),
    ("gid_map", "/proc/self/gid_map"),
    ("net_dev", "/proc/self/net/dev"),
    ("boot_id", "/proc/sys/kernel/random/boot_id"),
    ("osrelease", "/proc/sys/kernel/osrelease"),
    ("swaps", "/proc/swaps"),
    // Version 1, each controller in a directory of its own.
    ("v1-memory", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    (
        "v1-memsw",
        "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
    ),
    ("v1-oom", "/sys/fs/cgroup/memory/memory.oom_control"),
    ("v1-pids", "/sys/fs/cgroup/pids/pids.max"),
    ("v1-pids-events", "/sys/fs/cgroup/pids/pids.events"),
    ("v1-quota", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    ("v1-period", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    ("v2-memory", "/sys/fs/cgroup/memory.max"),
    ("v2-swap", "/sys/fs/cgroup/memory.swap.max"),
    ("v2-memory-events", "/sys/fs/cgroup/memory.events"),
    ("v2-pids", "/sys/fs/cgroup/pids.max"),
    ("v2-pids-events", "/sys/fs/cgroup/pids.events"),
    ("v2-cpu", "/sys/fs/cgroup/cpu.max"),
];

/// A tree of the image's tools, read-only, and of empty places of limited size.
fn make_tree(scratch_bytes: u64) -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let said = |what: &str, e: &dyn std::fmt::Display| format!("{what}: {e}");
    mount("tmpfs", SITE, "tmpfs", flags, Some(c"mode=0755,size=1m")).map_err(|e| said(SITE, &e))?;
    for shown in SHOWN {
        room::show(SITE, shown).map_err(|e| said(shown, &e))?;
    }
    for closed in SHOWN.iter().filter(|shown| !shown.starts_with("/dev/")) {
        close(closed).map_err(|e| said(closed, &e))?;
    }
    for (place, size) in places(scratch_bytes) {
        make_place(place, size).map_err(|e| said(place, &e))?;
    }
    room::turn(SITE, flags).map_err(|e| said("change the root", &e))
}

/// What of the container is in the session, each as it is there: a link, a directory, a device.
const SHOWN: [&str; 12] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib64",
    "/etc/alternatives",
    layout::TOOLCHAIN,
    layout::RUNNER,
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

fn close(shown: &str) -> std::io::Result<()> {
    let place = format!("{SITE}{shown}");
    match fs::symlink_metadata(&place) {
        Ok(is) if !is.is_symlink() => {}
        _ => return Ok(()),
    }
    let read_only = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount_remount(&place, read_only, "")?)
}

fn places(scratch_bytes: u64) -> [(&'static str, u64); 4] {
    [
        ("/flight", scratch_bytes),
        (layout::EXE, EXE_BYTES),
        (layout::CASE, CASE_BYTES),
        ("/tmp", TMP_BYTES),
    ]
}

/// Size of the place for promoted programs, bytes: some dozens of debug builds.
const EXE_BYTES: u64 = 512 << 20;
/// Size of a case's scratch, bytes.
const CASE_BYTES: u64 = 64 << 20;
/// Size of `/tmp`, bytes. Only the runner could write there.
const TMP_BYTES: u64 = 16 << 20;

fn make_place(place: &str, size: u64) -> std::io::Result<()> {
    let path = format!("{SITE}{place}");
    fs::create_dir(&path)?;
    let options = CString::new(format!("mode=0755,size={size}"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount("tmpfs", &path, "tmpfs", flags, options.as_c_str())?)
}

/// What a runner needs to give each case its own walls; nothing else is left to it.
const CAPABILITIES: [CapabilitySet; 8] = [
    CapabilitySet::CHOWN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::FOWNER,
    CapabilitySet::KILL,
    CapabilitySet::SETGID,
    CapabilitySet::SETUID,
    CapabilitySet::SETPCAP,
    CapabilitySet::SYS_ADMIN,
];

fn keep_capabilities() -> Result<(), RunnerError> {
    let kept = CAPABILITIES
        .iter()
        .fold(CapabilitySet::empty(), |all, one| all | *one);
    let numbers: Vec<_> = CAPABILITIES
        .iter()
        .map(|one| u64::from(one.bits().trailing_zeros()))
        .collect();
    calls::keep_in_bounding_set(&numbers).map_err(inside("bounding set"))?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    thread::set_capabilities(None, sets).map_err(inside("capset"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<Order> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn only_a_whole_order_makes_a_container() {
        let order = parsed(&["container", "1048576", "2000000000", "500"]).unwrap();
        assert_eq!((order.scratch_bytes, order.base), (1 << 20, 2_000_000_000));
        assert_eq!(order.lifetime, Duration::from_millis(500));
        for words in [
            &[] as &[&str],
            &["container"],
            &["container", "1", "2"],
            &["container", "1", "2", "3", "4"],
            &["container", "-1", "2", "3"],
            &["other", "1", "2", "3"],
        ] {
            assert!(parsed(words).is_none(), "{words:?}");
        }
    }

    #[test]
    fn nobody_but_the_first_process_of_a_container_makes_a_session() {
        let order = parsed(&["container", "1", "2", "3"]).unwrap();
        let refused = enter(order, |_files| Ok(())).unwrap_err();
        assert_eq!(refused.code, RunnerCode::NotASession);
    }

    #[test]
    fn every_place_has_a_size_and_the_case_sees_no_other() {
        assert_eq!(
            places(7).map(|(place, _)| place),
            ["/flight", "/exe", "/case", "/tmp"]
        );
        assert!(places(7).iter().all(|(_, size)| *size > 0));
    }
}
