use super::bwrap::Sandbox;
use crate::cgroup::Limits;
use crate::{SessionCode, SessionError};
use flightproof_core::Digest;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Least memory of a session, bytes: the compiler alone needs more than this for anything real.
const MIN_MEMORY: u64 = 64 << 20;
/// Least number of processes: sandbox, runner, a build driver and a few threads of a compiler.
const MIN_PIDS: u64 = 16;
/// Least cpu share, thousandths: the kernel refuses a quota below a millisecond per period.
const MIN_CPU_MILLIS: u64 = 100;
/// Least scratch, bytes.
const MIN_SCRATCH: u64 = 1 << 20;
/// Longest lifetime, milliseconds: a day.
const MAX_LIFETIME_MS: u64 = 24 * 60 * 60 * 1000;
/// Memory limits are counted in pages; the largest common page is 64 KiB.
const MEMORY_STEP: u64 = 64 << 10;

/// What a local session shall be.
#[derive(Debug, Clone)]
pub struct LocalSpec {
    /// Memory in bytes, the scratch included. A multiple of 64 KiB.
    pub memory_bytes: u64,
    /// Processes and threads at one time.
    pub pids: u64,
    /// Cpu time per second, milliseconds: 2000 is two cpus.
    pub cpu_millis: u64,
    /// Size of the build's scratch, bytes; charged to the memory.
    pub scratch_bytes: u64,
    /// How long the session may live, milliseconds.
    pub lifetime_ms: u64,
    /// Sysroot of the toolchain.
    pub toolchain: PathBuf,
    /// The bubblewrap program.
    pub bwrap: PathBuf,
    /// This program, which is started again as `program __stage …`.
    pub program: PathBuf,
    /// Random bytes: the session's id and its range of user ids come from them.
    pub entropy: [u8; 16],
    /// Directory for the session's private directory.
    pub work_dir: PathBuf,
    /// Directory of the records of open sessions.
    pub state_dir: PathBuf,
    /// Directory of computed digests.
    pub cache_dir: PathBuf,
    /// Fencing token of the lease under which the session is opened; 0 without a lease.
    pub fence: u64,
    /// The program of the agent that will work in it, if one will.
    pub agent: Option<AgentFile>,
}

/// A program of the host that a session gets as [`layout::AGENT_PROGRAM`].
///
/// [`layout::AGENT_PROGRAM`]: flightproof_frame::protocol::layout::AGENT_PROGRAM
#[derive(Debug, Clone)]
pub struct AgentFile {
    /// The file. It is copied: what replaces it later is not what runs.
    pub path: PathBuf,
    /// What it must be.
    pub sha256: Digest,
}

impl LocalSpec {
    /// Whether the numbers can be meant.
    pub(super) fn check(&self) -> Result<(), SessionError> {
        let refuse = |what: String| Err(SessionCode::SpecInvalid.refuse(what));
        let least = [
            ("memory_bytes", self.memory_bytes, MIN_MEMORY),
            ("pids", self.pids, MIN_PIDS),
            ("cpu_millis", self.cpu_millis, MIN_CPU_MILLIS),
            ("scratch_bytes", self.scratch_bytes, MIN_SCRATCH),
            ("lifetime_ms", self.lifetime_ms, 1),
        ];
        if let Some((name, found, min)) = least.iter().find(|(_, found, min)| found < min) {
            return refuse(format!("{name} is {found}, the least is {min}"));
        }
        if !self.memory_bytes.is_multiple_of(MEMORY_STEP) {
            return refuse(format!("memory_bytes is no multiple of {MEMORY_STEP}"));
        }
        if self.scratch_bytes >= self.memory_bytes {
            return refuse(format!(
                "scratch_bytes ({}) is charged to memory_bytes ({}) and must be less",
                self.scratch_bytes, self.memory_bytes
            ));
        }
        if self.lifetime_ms > MAX_LIFETIME_MS {
            return refuse(format!("lifetime_ms is more than {MAX_LIFETIME_MS}"));
        }
        self.check_paths()
    }

    fn check_paths(&self) -> Result<(), SessionError> {
        let paths = [
            &self.toolchain,
            &self.bwrap,
            &self.program,
            &self.work_dir,
            &self.state_dir,
            &self.cache_dir,
        ];
        let agent = self.agent.as_ref().map(|agent| &agent.path);
        match paths
            .into_iter()
            .chain(agent)
            .find(|p| !p.is_absolute() || p.to_str().is_none())
        {
            Some(path) => Err(SessionCode::SpecInvalid.refuse(format_args!(
                "{} is not an absolute path in UTF-8",
                path.display()
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes,
            pids: self.pids,
            cpu_millis: self.cpu_millis,
        }
    }

    /// The session's id.
    pub(super) fn id(&self) -> String {
        self.entropy.iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// What the stage program is told, in a file only this user can read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StageSpec {
    /// The process that must be the parent.
    pub(super) owner_pid: i32,
    /// Files the stage writes its own process id to.
    pub(super) cgroup_procs: Vec<PathBuf>,
    /// The session's private directory.
    pub(super) directory: PathBuf,
    /// Started as root: the unprivileged id to become, after the sources are laid out in a
    /// private mount namespace. `None`: the user stays who they are.
    pub(super) drop_to: Option<u32>,
    /// The bubblewrap program.
    pub(super) bwrap: PathBuf,
    /// What it shall make.
    pub(super) sandbox: Sandbox,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn spec() -> LocalSpec {
        LocalSpec {
            memory_bytes: 1 << 30,
            pids: 64,
            cpu_millis: 2000,
            scratch_bytes: 512 << 20,
            lifetime_ms: 60_000,
            toolchain: "/toolchains/stable".into(),
            bwrap: "/usr/bin/bwrap".into(),
            program: "/flights".into(),
            entropy: [7; 16],
            work_dir: "/tmp".into(),
            state_dir: "/state".into(),
            cache_dir: "/cache".into(),
            fence: 0,
            agent: None,
        }
    }

    #[test]
    fn limits_that_cannot_be_meant_are_refused_by_name() {
        type Spoil = fn(&mut LocalSpec);
        let spoiled: [(&str, Spoil); 8] = [
            ("memory_bytes", |s| s.memory_bytes = 0),
            ("memory_bytes", |s| s.memory_bytes += 1),
            ("pids", |s| s.pids = 1),
            ("cpu_millis", |s| s.cpu_millis = 0),
            ("scratch_bytes", |s| s.scratch_bytes = 0),
            ("scratch_bytes", |s| s.scratch_bytes = s.memory_bytes),
            ("lifetime_ms", |s| s.lifetime_ms = u64::MAX),
            ("bin/bwrap", |s| s.bwrap = "bin/bwrap".into()),
        ];
        assert_eq!(spec().check(), Ok(()));
        for (name, spoil) in spoiled {
            let mut bad = spec();
            spoil(&mut bad);
            let refused = bad.check().unwrap_err();
            assert_eq!(refused.code, SessionCode::SpecInvalid);
            assert!(refused.detail.starts_with(name), "{refused}");
        }
    }

    #[test]
    fn the_id_is_the_entropy() {
        assert_eq!(spec().id(), "07".repeat(16));
    }
}
