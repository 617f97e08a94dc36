//! The way to an open session: checked, registered, started, read back, tried.

use super::bwrap::Sandbox;
use super::identity::Identity;
use super::keeper::Keeper;
use super::spec::{AgentFile, LocalSpec, StageSpec};
use super::{Inside, LocalSession, RunnerProgram, STAGE, attest, network, stage};
use crate::cgroup::{self, Group, Placement};
use crate::conversation::lost;
use crate::opening::{check_hello, compiler, probe};
use crate::record::Record;
use crate::{LimitEvents, Session, SessionCode, SessionError, processor, toolchain};
use flightproof_core::{Digest, Hasher, escape};
use flightproof_evidence::{Attestation, Reading, Toolchain};
use flightproof_frame::channel::HostChannel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a sandbox may take to start and greet.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Most bytes of bubblewrap's description of the sandbox.
const MAX_INFO: usize = 4096;
/// Bytes copied at once.
const PIECE: usize = 256 << 10;
/// Longest wait between two looks at a sandbox that is starting, milliseconds.
const START_PAUSE_MS: i64 = 20;
/// Switches of the kernel that keep ordinary users from making user namespaces, with the value
/// that does.
const NAMESPACE_SWITCHES: [(&str, &str); 2] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
];

/// Opens a fresh session.
///
/// # Errors
/// What the machine lacks (`BWRAP_MISSING`, `NO_DELEGATION`, `NO_CONTROLLERS`, `NO_UID_RANGE`,
/// `USER_NAMESPACE_RESTRICTED`, `TOOLCHAIN_INVALID`), `START_FAILED`, and `SHORTFALL` if the
/// session is weaker than asked in any respect. Nothing is left then; or it is `LEAK`, with the first
/// cause in its detail.
pub fn open(spec: &LocalSpec, runner: &RunnerProgram) -> Result<LocalSession, SessionError> {
    spec.check()?;
    let version = sandbox_version(&spec.bwrap)?;
    let placement = Placement::parse(&text("/proc/self/cgroup")?, &text("/proc/self/mountinfo")?)?;
    let privileged = rustix::process::geteuid().is_root();
    let group = Group::plan(&placement, &spec.id(), privileged)?;
    let identity = Identity::choose(&spec.entropy)?;
    let sysroot = fs::canonicalize(&spec.toolchain).map_err(|e| {
        SessionCode::ToolchainInvalid.refuse(format_args!("{}: {e}", spec.toolchain.display()))
    })?;
    let digest = toolchain::digest(&sysroot, &spec.cache_dir)?;
    let linker = toolchain::linker_digest()?;
    let mut sandbox = Sandbox::of_host(&sysroot, spec.scratch_bytes);
    sandbox.agent = spec.agent.as_ref().map(|agent| agent.path.clone());

    let kernel = text("/proc/sys/kernel/osrelease")?;

    let mut inside = register(spec, group)?;
    let begun = begin(spec, runner, &identity, &sandbox, &mut inside);
    let (readings, network) = begun.map_err(|e| inside.give_up(e))?;
    let mut session = LocalSession {
        attestation: Attestation {
            backend: "local".to_owned(),
            session: spec.id(),
            toolchain: Toolchain {
                digest,
                version: String::new(),
                linker,
                target: None,
            },
            runner: runner.identity.clone(),
            kernel,
            processor: processor::features(),
            sandbox: version,
            readings,
            probes: Vec::new(),
        },
        network,
        inside,
    };
    match try_out(&mut session) {
        Ok(()) => Ok(session),
        Err(e) => Err(session.inside.give_up(e)),
    }
}

/// Starts the sandbox and reads its limits and privileges back; with its network.
fn begin(
    spec: &LocalSpec,
    runner: &RunnerProgram,
    identity: &Identity,
    sandbox: &Sandbox,
    inside: &mut Inside,
) -> Result<(Vec<Reading>, OwnedFd), SessionError> {
    let mut readings = inside.group.create(&spec.limits())?;
    let pid = start(spec, runner, identity, sandbox, inside)?;
    let block = inside.record.directory.join(stage::BLOCK);
    let mounts = sandbox.mounts();
    readings.extend(attest::readings(
        pid,
        identity,
        &mounts,
        &inside.group,
        &block,
    )?);
    Ok((readings, network::of(pid)?))
}

/// Tries every forbidden act, and asks the compiler who it is.
fn try_out(session: &mut LocalSession) -> Result<(), SessionError> {
    session.attestation.probes = probe(session)?;
    let (version, target) = compiler(session)?;
    session.attestation.toolchain.version = version;
    session.attestation.toolchain.target = Some(target);
    // Nothing the self-test ran into counts against the candidate.
    session.events()?;
    Ok(())
}

fn sandbox_version(bwrap: &Path) -> Result<String, SessionError> {
    let missing =
        |e: String| SessionCode::BwrapMissing.refuse(format_args!("{}: {e}", bwrap.display()));
    let output = Command::new(bwrap).arg("--version").env_clear().output();
    let output = output.map_err(|e| missing(e.to_string()))?;
    let line = String::from_utf8_lossy(&output.stdout);
    let line = line.lines().next().unwrap_or_default();
    if output.status.success() && line.starts_with("bubblewrap ") {
        return Ok(escape(line, 60));
    }
    Err(missing("this is not bubblewrap".to_owned()))
}

/// Writes down whose the session is before anything of it exists.
fn register(spec: &LocalSpec, group: Group) -> Result<Inside, SessionError> {
    // As the kernel will name it: descriptors and mounts are compared by path.
    let work_dir = fs::canonicalize(&spec.work_dir).map_err(|e| io(&spec.work_dir, &e))?;
    let directory = work_dir.join(cgroup::session_name(&spec.id()));
    // What exists already is another session's, and a failure below would remove it.
    let taken = |place: &&PathBuf| fs::symlink_metadata(place).is_ok();
    if let Some(place) = group
        .dirs()
        .iter()
        .find(taken)
        .or(Some(&directory).filter(taken))
    {
        let detail = format!("{} exists: ids must be random", place.display());
        return Err(SessionCode::HostIo.refuse(detail));
    }
    let mut record = Record::new(&spec.id(), group.dirs(), &directory)?;
    record.fence = spec.fence;
    record.store(&spec.state_dir)?;
    Ok(Inside {
        record,
        state_dir: spec.state_dir.clone(),
        group,
        keeper: None,
        channel: None,
        deadline: Instant::now() + Duration::from_millis(spec.lifetime_ms),
        seen: LimitEvents::default(),
        given_up: false,
        closed: None,
    })
}

/// Starts the sandbox up to the runner's greeting. The host's id of its first process.
fn start(
    spec: &LocalSpec,
    runner: &RunnerProgram,
    identity: &Identity,
    sandbox: &Sandbox,
    inside: &mut Inside,
) -> Result<u32, SessionError> {
    let directory = inside.record.directory.clone();
    furnish(&directory, runner)?;
    if let Some(agent) = &spec.agent {
        copy(agent, &directory.join(stage::AGENT_FILE))?;
    }
    let stage_spec = StageSpec {
        owner_pid: i32::try_from(std::process::id()).unwrap_or_default(),
        cgroup_procs: joined(inside.group.dirs(), "cgroup.procs"),
        directory: directory.clone(),
        drop_to: identity.drop_to(),
        bwrap: spec.bwrap.clone(),
        sandbox: sandbox.clone(),
    };
    let spec_file = directory.join("stage.json");
    let json = serde_json::to_vec(&stage_spec).map_err(|e| SessionCode::HostIo.refuse(e))?;
    fs::write(&spec_file, json).map_err(|e| io(&spec_file, &e))?;
    // Both ends are held here before the stage opens its own, so that no open waits.
    let info = open_pipe(&directory.join(stage::INFO), OFlags::RDONLY)?;
    let block = open_pipe(&directory.join(stage::BLOCK), OFlags::RDWR)?;

    let mut command = Command::new(&spec.program);
    command
        .arg(STAGE)
        .arg(&spec_file)
        .env_clear()
        .current_dir("/");
    let (keeper, stdin, stdout) = Keeper::start(command)?;
    let keeper = inside.keeper.insert(keeper);
    let deadline = inside.deadline.min(Instant::now() + START_DEADLINE);
    let started = (|| {
        let pid = read_info(&info, keeper, deadline)?;
        identity.map(pid)?;
        rustix::io::write(&block, b"x").map_err(|e| SessionCode::StartFailed.refuse(e))?;
        let mut channel = HostChannel::new(OwnedFd::from(stdout), OwnedFd::from(stdin))
            .map_err(|e| lost(&e, false))?;
        let hello = channel
            .hello(deadline)
            .map_err(|e| start_failed(&e.to_string()))?;
        check_hello(&hello)?;
        Ok((pid, channel))
    })();
    let (pid, channel) = started.map_err(|e: SessionError| explain(e, keeper))?;
    inside.channel = Some(channel);
    Ok(pid)
}

/// The session's private directory: the runner program, two pipes, a mount point.
fn furnish(directory: &Path, runner: &RunnerProgram) -> Result<(), SessionError> {
    let program = directory.join(stage::RUNNER_FILE);
    let make = || -> std::io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(directory)?;
        fs::create_dir(directory.join(stage::ROOT))?;
        fs::create_dir(directory.join("runner"))?;
        fs::write(&program, &runner.bytes)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        let mode = Mode::RUSR | Mode::WUSR;
        for pipe in [stage::INFO, stage::BLOCK] {
            let path = directory.join(pipe);
            rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0)?;
        }
        Ok(())
    };
    make().map_err(|e| io(directory, &e))
}

/// Copies the agent's program and proves that it is the one that was named.
fn copy(agent: &AgentFile, to: &Path) -> Result<(), SessionError> {
    let copied = || -> std::io::Result<Digest> {
        let (mut from, mut copy) = (fs::File::open(&agent.path)?, fs::File::create_new(to)?);
        let (mut hasher, mut piece) = (Hasher::new(), vec![0; PIECE]);
        loop {
            match from.read(&mut piece)? {
                0 => break,
                read => {
                    hasher.update(&piece[..read]);
                    copy.write_all(&piece[..read])?;
                }
            }
        }
        copy.set_permissions(fs::Permissions::from_mode(0o755))?;
        Ok(hasher.finish())
    };
    let found = copied().map_err(|e| io(&agent.path, &e))?;
    if found == agent.sha256 {
        return Ok(());
    }
    Err(SessionCode::UploadMismatch.refuse(format_args!(
        "{}: got {found}, expected {}",
        agent.path.display(),
        agent.sha256
    )))
}

fn open_pipe(path: &Path, access: OFlags) -> Result<OwnedFd, SessionError> {
    rustix::fs::open(
        path,
        access | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|e| io(path, &e.into()))
}

/// Bubblewrap's description of the sandbox it made: the id of its first process is in it.
fn read_info(info: &OwnedFd, keeper: &Keeper, deadline: Instant) -> Result<u32, SessionError> {
    let mut json = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: START_PAUSE_MS * 1_000_000,
        };
        let _ = poll(&mut [PollFd::new(info, PollFlags::IN)], Some(&pause));
        if let Ok(n) = rustix::io::read(info, &mut piece) {
            json.extend(piece.get(..n).unwrap_or_default());
        }
        if let Some(pid) = child_pid(&json) {
            return Ok(pid);
        }
        if keeper.is_over() || json.len() > MAX_INFO {
            return Err(start_failed("it ended before it described the sandbox"));
        }
        if Instant::now() > deadline {
            return Err(start_failed("it did not describe the sandbox in time"));
        }
    }
}

fn child_pid(json: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    let pid = value.get("child-pid")?.as_u64()?;
    u32::try_from(pid).ok().filter(|pid| *pid > 1)
}

/// Adds what the sandbox program said, and recognises the systems that forbid its namespaces.
fn explain(error: SessionError, keeper: &Keeper) -> SessionError {
    if error.code != SessionCode::StartFailed {
        return error;
    }
    let root = rustix::process::geteuid().is_root();
    let switch = NAMESPACE_SWITCHES
        .iter()
        .find(|(file, value)| fs::read_to_string(file).is_ok_and(|t| t.trim() == *value))
        .filter(|_| !root);
    let said = keeper.stderr();
    let said = escape(said.trim_ascii(), 400);
    explained(&error.detail, switch.map(|(file, _)| *file), &said)
}

fn explained(detail: &str, switch: Option<&str>, said: &str) -> SessionError {
    match switch {
        Some(file) => SessionCode::UserNamespaceRestricted
            .refuse(format_args!("{file} forbids them; {detail}: {said}")),
        None => SessionCode::StartFailed.refuse(format_args!("{detail}: {said}")),
    }
}

fn joined(dirs: &[PathBuf], name: &str) -> Vec<PathBuf> {
    dirs.iter().map(|dir| dir.join(name)).collect()
}

fn start_failed(detail: &str) -> SessionError {
    SessionCode::StartFailed.refuse(detail)
}

fn text(path: &str) -> Result<String, SessionError> {
    fs::read_to_string(path)
        .map(|text| text.trim_end().to_owned())
        .map_err(|e| io(Path::new(path), &e))
}

fn io(path: &Path, error: &std::io::Error) -> SessionError {
    SessionCode::HostIo.refuse(format_args!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_forbids_user_namespaces_is_recognised() {
        let restricted = explained("x", Some("/proc/sys/kernel/y"), "denied");
        assert_eq!(restricted.code, SessionCode::UserNamespaceRestricted);
        assert_eq!(explained("x", None, "").code, SessionCode::StartFailed);
    }

    #[test]
    fn a_process_id_is_read_once_the_description_is_whole() {
        assert_eq!(child_pid(b"{ \"child-pid\": 12"), None);
        assert_eq!(
            child_pid(b"{ \"child-pid\": 12, \"net-namespace\": 4 }\n"),
            Some(12)
        );
        assert_eq!(child_pid(b"{ \"child-pid\": 1 }"), None);
        assert_eq!(child_pid(b"{ \"child-pid\": \"12\" }"), None);
    }

    #[test]
    fn a_program_that_is_not_bubblewrap_is_not_used() {
        for path in ["/nonexistent/bwrap", "/bin/true"] {
            let refused = sandbox_version(Path::new(path)).unwrap_err();
            assert_eq!(refused.code, SessionCode::BwrapMissing, "{path}");
        }
    }
}
