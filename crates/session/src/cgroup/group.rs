use super::placement::Placement;
use super::text::{self, Texts};
use super::{counter, session_name, v1, v2};
use crate::{LimitEvents, SessionCode, SessionError};
use flightproof_evidence::{EvidenceClass, Reading};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Length of one cpu accounting period, microseconds: the kernel's default.
pub(super) const PERIOD_US: u64 = 100_000;
/// How long the processes of a killed group may take to vanish. They were sent SIGKILL; seconds
/// pass only if the machine is badly overloaded.
const KILL_DEADLINE: Duration = Duration::from_secs(10);
/// Pause between two looks at a group that is dying.
const KILL_PAUSE: Duration = Duration::from_millis(2);

/// What a session may use at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory in bytes, page cache and tmpfs included.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u64,
    /// Cpu time per second of wall clock, milliseconds: 2000 is two cpus.
    pub cpu_millis: u64,
}

impl Limits {
    /// Cpu time per period, microseconds.
    pub(super) fn quota_us(&self) -> u64 {
        self.cpu_millis.saturating_mul(PERIOD_US / 1000)
    }
}

/// The limits as the kernel shows them, text for text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) memory: String,
    pub(super) swap: String,
    pub(super) pids: String,
    pub(super) cpu_quota: String,
    pub(super) cpu_period: String,
}

impl Applied {
    /// One reading per limit.
    pub(super) fn readings(&self, limits: &Limits) -> Vec<Reading> {
        let cpu = match (
            self.cpu_quota.parse::<u64>(),
            self.cpu_period.parse::<u64>(),
        ) {
            (Ok(quota), Ok(period)) if period > 0 => {
                (quota.saturating_mul(1000) / period).to_string()
            }
            _ => format!("{} per {}", self.cpu_quota, self.cpu_period),
        };
        [
            ("memory-bytes", limits.memory_bytes, self.memory.clone()),
            ("swap-bytes", 0, self.swap.clone()),
            ("pids", limits.pids, self.pids.clone()),
            ("cpu-millis", limits.cpu_millis, cpu),
        ]
        .map(|(name, asked, found)| Reading {
            name: name.to_owned(),
            asked: asked.to_string(),
            found,
            class: EvidenceClass::KernelFile,
        })
        .into()
    }

    /// The first limit that is weaker than asked or no number at all.
    pub(super) fn weaker_than(&self, limits: &Limits) -> Option<String> {
        self.readings(limits).into_iter().find_map(|reading| {
            let asked: u64 = reading.asked.parse().unwrap_or(0);
            let holds = reading.found.parse::<u64>().is_ok_and(|f| f <= asked);
            (!holds).then(|| {
                format!(
                    "{}: asked {}, found {}",
                    reading.name,
                    reading.asked,
                    flightproof_core::escape(&reading.found, 40)
                )
            })
        })
    }
}

/// The cgroups of one session. Dropping it leaves them: [`Group::kill`] and [`Group::remove`] end
/// them, and the reaper after a crash.
#[derive(Debug)]
pub struct Group {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    V1([PathBuf; 3]),
    V2(PathBuf),
}

impl Group {
    /// Where the groups of session `id` will be; makes nothing but what version 2 needs above them.
    ///
    /// # Errors
    /// `NO_DELEGATION` for a user who may not make groups there, `NO_CONTROLLERS`.
    pub fn plan(placement: &Placement, id: &str, privileged: bool) -> Result<Self, SessionError> {
        let name = session_name(id);
        let kind = match placement {
            Placement::V1(own) => {
                if !privileged {
                    own.iter().try_for_each(|dir| delegated(dir))?;
                }
                Kind::V1(own.each_ref().map(|dir| dir.join(&name)))
            }
            Placement::V2 { root, own } => {
                if !privileged {
                    delegated(own)?;
                }
                Kind::V2(v2::parent(root, own, privileged)?.join(&name))
            }
        };
        Ok(Self { kind })
    }

    /// The groups that some process is in, made by somebody else.
    pub(crate) fn of(placement: Placement) -> Self {
        let kind = match placement {
            Placement::V1(own) => Kind::V1(own),
            Placement::V2 { own, .. } => Kind::V2(own),
        };
        Self { kind }
    }

    /// The files of the groups, for [`super::text`]. One that does not exist is left out.
    pub(crate) fn texts(&self) -> Texts {
        let files = text::files(self.dirs()).into_iter();
        files
            .filter_map(|(name, file)| Some((name.to_owned(), fs::read_to_string(file).ok()?)))
            .collect()
    }

    /// Makes the groups, sets every limit and reads it back.
    ///
    /// # Errors
    /// `SHORTFALL` if a limit is weaker than asked, `NO_DELEGATION` or `HOST_IO` if the kernel
    /// refuses. What was made stays for [`Group::remove`].
    pub fn create(&self, limits: &Limits) -> Result<Vec<Reading>, SessionError> {
        self.dirs().iter().try_for_each(|dir| {
            fs::create_dir(dir).map_err(|e| match e.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    SessionCode::NoDelegation.refuse(format_args!("{}: {e}", dir.display()))
                }
                _ => io(dir, &e),
            })
        })?;
        let swap_exists = swap_exists(&read(Path::new("/proc/swaps"))?);
        let applied = match &self.kind {
            Kind::V1(dirs) => v1::apply(dirs, limits, swap_exists)?,
            Kind::V2(dir) => v2::apply(dir, limits, swap_exists)?,
        };
        match applied.weaker_than(limits) {
            Some(what) => Err(SessionCode::Shortfall.refuse(what)),
            None => Ok(applied.readings(limits)),
        }
    }

    /// The directories, one per hierarchy.
    pub fn dirs(&self) -> &[PathBuf] {
        match &self.kind {
            Kind::V1(dirs) => dirs,
            Kind::V2(dir) => std::slice::from_ref(dir),
        }
    }

    /// What limits were hit since the groups were made.
    ///
    /// # Errors
    /// `SHORTFALL`: a counter cannot be read, so limits would be hit unseen.
    pub fn events(&self) -> Result<LimitEvents, SessionError> {
        let (pids, memory, memory_file) = match &self.kind {
            Kind::V1([memory, pids, _]) => (pids, memory, "memory.oom_control"),
            Kind::V2(dir) => (dir, dir, "memory.events"),
        };
        Ok(LimitEvents {
            pids: counted(&pids.join("pids.events"), "max")?,
            memory: counted(&memory.join(memory_file), "oom_kill")?,
        })
    }

    /// Processes in any of the groups.
    ///
    /// # Errors
    /// A group cannot be read.
    pub fn processes(&self) -> Result<u64, SessionError> {
        self.dirs()
            .iter()
            .try_fold(0, |most: u64, dir| Ok(most.max(process_count(dir)?)))
    }

    /// Kills everything in the groups and waits until they are empty.
    ///
    /// # Errors
    /// `LEAK` if something is still there at the deadline.
    pub fn kill(&self) -> Result<(), SessionError> {
        self.dirs().iter().try_for_each(|dir| kill_dir(dir))
    }

    /// Removes the groups.
    ///
    /// # Errors
    /// `LEAK` if one cannot be removed.
    pub fn remove(&self) -> Result<(), SessionError> {
        self.dirs().iter().try_for_each(|dir| remove_dir(dir))
    }
}

/// Whether an ordinary user may make groups below this one.
fn delegated(dir: &Path) -> Result<(), SessionError> {
    use rustix::fs::{Access, access};
    [dir.to_owned(), dir.join("cgroup.procs")]
        .iter()
        .try_for_each(|path| access(path, Access::WRITE_OK))
        .map_err(|e| SessionCode::NoDelegation.refuse(format_args!("{}: {e}", dir.display())))
}

fn swap_exists(swaps: &str) -> bool {
    swaps.lines().count() > 1
}

fn counted(file: &Path, key: &str) -> Result<u64, SessionError> {
    let text = read(file)?;
    counter(&text, key).ok_or_else(|| {
        SessionCode::Shortfall.refuse(format_args!("no {key} count in {}", file.display()))
    })
}

/// Processes in one group; none if it does not exist.
///
/// # Errors
/// The group cannot be read.
pub fn process_count(dir: &Path) -> Result<u64, SessionError> {
    Ok(pids(dir)?.len() as u64)
}

fn pids(dir: &Path) -> Result<Vec<i32>, SessionError> {
    let file = dir.join("cgroup.procs");
    match fs::read_to_string(&file) {
        Ok(text) => Ok(text.lines().filter_map(|l| l.parse().ok()).collect()),
        Err(e) if is_gone(&e) => Ok(Vec::new()),
        Err(e) => Err(io(&file, &e)),
    }
}

/// A group that is removed answers ENOENT by path and ENODEV through an open file.
fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

/// Kills everything in one group and waits until it is empty.
///
/// # Errors
/// `LEAK` if something is still there at the deadline.
pub fn kill_dir(dir: &Path) -> Result<(), SessionError> {
    let end = Instant::now() + KILL_DEADLINE;
    // No new process from here on; best effort, because the loop below decides.
    let _ = fs::write(dir.join("pids.max"), "0");
    let _ = fs::write(dir.join("cgroup.kill"), "1");
    loop {
        let alive = pids(dir)?;
        if alive.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(SessionCode::Leak.refuse(format_args!(
                "{} processes do not die in {}",
                alive.len(),
                dir.display()
            )));
        }
        for pid in alive {
            kill_member(dir, pid);
        }
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Kills a process if it is still a member once its pidfd is held: a number that was reused in
/// between belongs to somebody else.
fn kill_member(dir: &Path, pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else {
        return;
    };
    if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
        && pids(dir).is_ok_and(|members| members.contains(&pid.as_raw_nonzero().get()))
    {
        // It may be gone already; the caller looks again.
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}

/// Removes one empty group. One that does not exist is removed already.
///
/// # Errors
/// `LEAK` if it stays busy until the deadline.
pub fn remove_dir(dir: &Path) -> Result<(), SessionError> {
    let end = Instant::now() + KILL_DEADLINE;
    loop {
        match fs::remove_dir(dir) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            // The kernel still counts a dying process for a moment.
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < end => {
                std::thread::sleep(KILL_PAUSE);
            }
            Err(e) => {
                return Err(SessionCode::Leak.refuse(format_args!("{}: {e}", dir.display())));
            }
        }
    }
}

/// A kernel file's text without its last line break.
pub(super) fn read(file: &Path) -> Result<String, SessionError> {
    let text = fs::read_to_string(file).map_err(|e| io(file, &e))?;
    Ok(text.trim_end().to_owned())
}

pub(super) fn write(file: &Path, value: &str) -> Result<(), SessionError> {
    fs::write(file, value).map_err(|e| {
        SessionCode::Shortfall.refuse(format_args!("{} = {value}: {e}", file.display()))
    })
}

fn io(path: &Path, error: &std::io::Error) -> SessionError {
    SessionCode::HostIo.refuse(format_args!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        memory_bytes: 4096,
        pids: 8,
        cpu_millis: 2000,
    };

    fn applied() -> Applied {
        Applied {
            memory: "4096".to_owned(),
            swap: "0".to_owned(),
            pids: "8".to_owned(),
            cpu_quota: "200000".to_owned(),
            cpu_period: "100000".to_owned(),
        }
    }

    #[test]
    fn limits_as_asked_or_tighter_hold() {
        assert_eq!(applied().weaker_than(&LIMITS), None);
        let tighter = Applied {
            memory: "0".to_owned(),
            ..applied()
        };
        assert_eq!(tighter.weaker_than(&LIMITS), None);
    }

    #[test]
    fn every_weaker_or_unreadable_limit_is_named() {
        type Spoil = fn(&mut Applied);
        let spoiled: [(&str, Spoil); 6] = [
            ("memory-bytes", |a| a.memory = "4097".to_owned()),
            ("memory-bytes", |a| a.memory = "max".to_owned()),
            ("swap-bytes", |a| a.swap = "unlimited".to_owned()),
            ("pids", |a| a.pids = String::new()),
            ("cpu-millis", |a| a.cpu_quota = "-1".to_owned()),
            ("cpu-millis", |a| a.cpu_period = "50000".to_owned()),
        ];
        for (name, spoil) in spoiled {
            let mut found = applied();
            spoil(&mut found);
            let what = found.weaker_than(&LIMITS).unwrap();
            assert!(what.starts_with(name), "{what}");
        }
    }

    #[test]
    fn only_a_line_below_the_heading_is_swap() {
        assert!(!swap_exists("Filename Type Size Used Priority\n"));
        assert!(swap_exists("Filename Type\n/dev/vdb partition 1 0 -2\n"));
    }

    #[test]
    fn version_two_counters_are_read_and_a_missing_one_is_a_shortfall() {
        let dir = tempfile::tempdir().unwrap();
        let group = Group {
            kind: Kind::V2(dir.path().to_owned()),
        };
        fs::write(dir.path().join("pids.events"), "max 3\n").unwrap();
        fs::write(dir.path().join("memory.events"), "low 0\noom_kill 2\n").unwrap();
        let events = LimitEvents { pids: 3, memory: 2 };
        assert_eq!(group.events().unwrap(), events);
        fs::write(dir.path().join("memory.events"), "low 0\n").unwrap();
        assert_eq!(group.events().unwrap_err().code, SessionCode::Shortfall);
    }

    /// A number that was read, and belongs to somebody else by the time it is acted on.
    #[test]
    fn a_number_that_is_no_member_any_more_is_left_alone() {
        use std::io::{Read as _, Write as _};
        use std::os::unix::process::ExitStatusExt as _;
        use std::process::{Command, Stdio};
        let dir = tempfile::tempdir().unwrap();
        let procs = dir.path().join("cgroup.procs");
        let mut other = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(other.id()).unwrap();
        for members in ["", "1\n"] {
            fs::write(&procs, members).unwrap();
            kill_member(dir.path(), pid);
            let mut answer = [0; 1];
            other.stdin.as_mut().unwrap().write_all(b"x").unwrap();
            let lives = other.stdout.as_mut().unwrap().read_exact(&mut answer);
            assert!(lives.is_ok(), "{members:?}");
        }
        fs::write(&procs, format!("{pid}\n")).unwrap();
        kill_member(dir.path(), pid);
        assert_eq!(other.wait().unwrap().signal(), Some(9));
    }
}
