//! The second start of our program: it becomes the unprivileged, limited process that starts
//! bubblewrap. One thread, no way back, the steps in order.

use super::descriptors;
use super::spec::StageSpec;
use flightproof_core::parse_strict;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_move,
};
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::UnshareFlags;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The argument that makes the program a stage.
pub const STAGE: &str = "__stage";
/// Where the private tmpfs with the sources goes: a place every user can reach on every system.
pub(super) const SOURCES: &str = "/tmp";
/// Files below the session's private directory.
pub(super) const INFO: &str = "info";
pub(super) const BLOCK: &str = "block";
pub(super) const ROOT: &str = "root";
pub(super) const RUNNER_FILE: &str = "runner/flights";
pub(super) const AGENT_FILE: &str = "runner/agent";
/// Most bytes of a stage specification.
const MAX_SPEC: usize = 64 * 1024;
/// Exit status of a stage that could not start the sandbox.
const FAILED: i32 = 125;
/// Under memory pressure of the whole machine a session goes before anything of the host.
const OOM_SCORE: &str = "500";

/// Runs the stage named by the arguments after [`STAGE`]. Never returns: the process becomes
/// bubblewrap, or says on standard error why not and ends.
pub fn stage_main(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> ! {
    let failure = match arguments.next() {
        Some(path) => stage(Path::new(&path)),
        None => Failure("no specification".to_owned()),
    };
    eprintln!("stage: {}", failure.0);
    std::process::exit(FAILED)
}

/// Why the stage ended.
struct Failure(String);

/// Names the step an error belongs to.
trait Step<T> {
    fn step(self, name: &str) -> Result<T, Failure>;
}

impl<T, E: std::fmt::Display> Step<T> for Result<T, E> {
    fn step(self, name: &str) -> Result<T, Failure> {
        self.map_err(|e| Failure(format!("{name}: {e}")))
    }
}

fn stage(path: &Path) -> Failure {
    match prepare(path) {
        Ok(mut bwrap) => Failure(format!("cannot start bubblewrap: {}", bwrap.exec())),
        Err(failure) => failure,
    }
}

fn prepare(path: &Path) -> Result<Command, Failure> {
    let bytes = fs::read(path).step("specification")?;
    let spec: StageSpec = parse_strict(&bytes, MAX_SPEC).step("specification")?;
    end_with_owner(spec.owner_pid)?;
    for file in &spec.cgroup_procs {
        fs::write(file, std::process::id().to_string()).step("join cgroup")?;
    }
    fs::write("/proc/self/oom_score_adj", OOM_SCORE).step("oom score")?;
    // Directories that are made here are walked through by another user.
    rustix::process::umask(Mode::from_raw_mode(0o022));
    set_limits()?;
    // Everything that was inherited beyond the standard streams ends here.
    descriptors::close_on_exec().step("descriptors")?;
    let info = inherit(&spec.directory.join(INFO), OFlags::WRONLY)?;
    let block = inherit(&spec.directory.join(BLOCK), OFlags::RDONLY)?;
    let mut sandbox = spec.sandbox.clone();
    let has_agent = sandbox.agent.is_some();
    let agent = |below: &Path| has_agent.then(|| below.join(AGENT_FILE));
    sandbox.agent = agent(&spec.directory);
    sandbox.runner = spec.directory.join(RUNNER_FILE);
    if let Some(id) = spec.drop_to {
        lay_out_sources(&spec)?;
        sandbox.toolchain = Path::new(SOURCES).join("toolchain");
        sandbox.runner = Path::new(SOURCES).join(RUNNER_FILE);
        sandbox.agent = agent(Path::new(SOURCES));
        become_unprivileged(id)?;
        // The kernel forgets the parent's death signal when ids change.
        end_with_owner(spec.owner_pid)?;
    }
    std::env::set_current_dir("/").step("root directory")?;
    let mut command = Command::new(&spec.bwrap);
    command
        .args(sandbox.argv(info.as_raw_fd(), block.as_raw_fd()))
        .env_clear();
    // They must stay open into bubblewrap, and this process never returns.
    std::mem::forget((info, block));
    Ok(command)
}

/// Dies with the process that started the session, also if that one is already dead.
fn end_with_owner(owner: i32) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).step("death signal")?;
    let parent = rustix::process::getppid().map(|p| p.as_raw_nonzero().get());
    if parent == Some(owner) {
        return Ok(());
    }
    Err(Failure(
        "the process that opened the session is gone".to_owned(),
    ))
}

/// Gives every session the same limits, whatever shell it was started from: a candidate that is
/// killed by somebody's `ulimit` would be refused for it.
fn set_limits() -> Result<(), Failure> {
    LIMITS
        .into_iter()
        .try_for_each(|(resource, current, maximum)| {
            let wanted = Rlimit { current, maximum };
            rustix::process::setrlimit(resource, wanted)
                .step(&format!("the resource limit {resource:?} is too low"))
        })?;
    // Here a hard limit that nobody may raise is usual, and far above what a session can start.
    let found = rustix::process::getrlimit(Resource::Nproc);
    match found.maximum {
        Some(most) if most < PROCESSES => Err(Failure(format!(
            "the resource limit Nproc is too low: {most}, not {PROCESSES}"
        ))),
        maximum => rustix::process::setrlimit(
            Resource::Nproc,
            Rlimit {
                current: maximum,
                maximum,
            },
        )
        .step("processes"),
    }
}

/// Soft and hard limit of each resource; the cgroup bounds memory and processes.
const LIMITS: [(Resource, Option<u64>, Option<u64>); 8] = [
    // One byte, not none: with a limit of zero the kernel still pipes a core to a handler of the
    // host, with a limit of one it does not.
    (Resource::Core, Some(1), Some(1)),
    (Resource::Nofile, Some(MAX_FILES), Some(MAX_FILES)),
    (Resource::Stack, Some(STACK_BYTES), None),
    (Resource::As, None, None),
    (Resource::Data, None, None),
    (Resource::Rss, None, None),
    (Resource::Cpu, None, None),
    (Resource::Fsize, None, None),
];
/// Open descriptors: what the runner gives to a build.
const MAX_FILES: u64 = 4_096;
/// Stack of the runner in bytes: what systems give by default. It gives more to programs.
const STACK_BYTES: u64 = 8 << 20;
/// Processes and threads of one user: more than the cgroup of a session lets it have.
const PROCESSES: u64 = 1_024;

fn inherit(path: &Path, access: OFlags) -> Result<OwnedFd, Failure> {
    rustix::fs::open(path, access, Mode::empty()).step("pipe")
}

/// Binds toolchain, runner and agent on a small tmpfs that the unprivileged user can reach: home
/// directories, where toolchains are, are closed to it.
fn lay_out_sources(spec: &StageSpec) -> Result<(), Failure> {
    #[expect(
        deprecated,
        reason = "of the safe form only the namespace flag is used"
    )]
    rustix::thread::unshare(UnshareFlags::NEWNS).step("mount namespace")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).step("private mounts")?;
    let root = spec.directory.join(ROOT);
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", &root, "tmpfs", flags, Some(c"mode=0755,size=1m")).step("tmpfs")?;
    for part in &spec.sandbox.parts {
        let target = root.join("toolchain").join(part);
        fs::create_dir_all(&target).step("toolchain")?;
        bind(&spec.sandbox.toolchain.join(part), &target)?;
    }
    fs::create_dir_all(root.join("runner")).step("runner")?;
    let agent = spec.sandbox.agent.as_ref().map(|_given| AGENT_FILE);
    for file in agent.into_iter().chain([RUNNER_FILE]) {
        fs::write(root.join(file), "").step(file)?;
        bind(&spec.directory.join(file), &root.join(file))?;
    }
    mount_move(&root, SOURCES).step("sources")
}

fn bind(source: &PathBuf, target: &PathBuf) -> Result<(), Failure> {
    mount_bind_recursive(source, target).step("bind")
}

/// Gives up root for good and checks that there is no way back.
fn become_unprivileged(id: u32) -> Result<(), Failure> {
    use rustix::fs::{Gid, Uid};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    set_thread_groups(&[]).step("groups")?;
    set_thread_res_gid(gid, gid, gid).step("group id")?;
    set_thread_res_uid(uid, uid, uid).step("user id")?;
    let back = set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok()
        || set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).is_ok();
    let groups = rustix::process::getgroups().step("groups")?;
    if back || !groups.is_empty() {
        return Err(Failure("root could not be given up".to_owned()));
    }
    Ok(())
}
