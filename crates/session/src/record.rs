//! Whose a session is: one small file per session, written before anything of the session exists
//! and removed after everything of it is gone. [`reap`] ends the sessions whose owner is dead.

use crate::cgroup::{self, CgroupMount};
use crate::lease::Claims;
use crate::{SessionCode, SessionError};
use flightproof_core::parse_strict;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

/// Schema of a record.
const SCHEMA: &str = "flightproof/session-record/1";
/// Most bytes of a record: a handful of paths.
const MAX_RECORD: usize = 64 * 1024;
/// Directory of the records below the state directory.
const SESSIONS: &str = "sessions";

/// A process, named so that its number cannot be mistaken for a later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub started: u64,
    /// The kernel's boot id.
    pub boot: String,
    /// The pid namespace the id is valid in, such as `pid:[4026531836]`.
    pub namespace: String,
}

/// What exists of one session on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: String,
    /// The session.
    pub id: String,
    /// The process that opened it.
    pub owner: Owner,
    /// Its cgroups.
    pub cgroups: Vec<PathBuf>,
    /// Its private directory.
    pub directory: PathBuf,
    /// Fencing token of the lease it was opened under; 0 without a lease.
    #[serde(default)]
    pub fence: u64,
}

/// One session that was found without an owner and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaped {
    /// The session.
    pub id: String,
    /// Processes that were still alive.
    pub processes: u64,
}

/// A session that stands, and whose owner is not seen to live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The session.
    pub id: String,
    /// Whether its owner is certainly gone. One of another pid namespace cannot be judged from here.
    pub dead: bool,
}

impl Owner {
    /// This process.
    ///
    /// # Errors
    /// `HOST_IO` if `/proc` does not say.
    pub fn this_process() -> Result<Self, SessionError> {
        let pid = std::process::id();
        let started = start_time(pid)?.ok_or_else(|| {
            SessionCode::HostIo.refuse("/proc/self/stat does not say when this process started")
        })?;
        Ok(Self {
            pid,
            started,
            boot: text(Path::new("/proc/sys/kernel/random/boot_id"))?,
            namespace: own_namespace()?,
        })
    }

    /// Whether the process is certainly gone. One of another pid namespace is never judged.
    pub(crate) fn is_dead(&self) -> Result<bool, SessionError> {
        if self.boot != text(Path::new("/proc/sys/kernel/random/boot_id"))? {
            return Ok(true);
        }
        if self.namespace != own_namespace()? {
            return Ok(false);
        }
        Ok(start_time(self.pid)? != Some(self.started))
    }

    /// Whether it would be seen from here if it were alive.
    pub(crate) fn is_visible(&self) -> Result<bool, SessionError> {
        let boot = text(Path::new("/proc/sys/kernel/random/boot_id"))?;
        Ok(self.boot == boot && self.namespace == own_namespace()?)
    }

    /// What a session of this owner is if it stands; nothing if the owner lives.
    pub(crate) fn left(&self, id: &str) -> Result<Option<Left>, SessionError> {
        let (id, dead) = (id.to_owned(), self.is_dead()?);
        Ok((dead || !self.is_visible()?).then_some(Left { id, dead }))
    }
}

impl Record {
    /// A record of this process's session.
    ///
    /// # Errors
    /// `HOST_IO` if `/proc` does not say who this process is.
    pub fn new(id: &str, cgroups: &[PathBuf], directory: &Path) -> Result<Self, SessionError> {
        Ok(Self {
            schema: SCHEMA.to_owned(),
            id: id.to_owned(),
            owner: Owner::this_process()?,
            cgroups: cgroups.to_vec(),
            directory: directory.to_owned(),
            fence: 0,
        })
    }

    /// Writes the record so that it survives a crash: temporary file, fsync, rename, fsync.
    ///
    /// # Errors
    /// `HOST_IO`.
    pub fn store(&self, state_dir: &Path) -> Result<(), SessionError> {
        let dir = state_dir.join(SESSIONS);
        let json = serde_json::to_vec(self).map_err(|e| SessionCode::HostIo.refuse(e))?;
        store_file(&dir, &format!("{}.json", self.id), &json)
    }

    /// Removes the record. One that is gone already is no error.
    ///
    /// # Errors
    /// `HOST_IO`.
    pub fn forget(&self, state_dir: &Path) -> Result<(), SessionError> {
        remove(&state_dir.join(SESSIONS).join(format!("{}.json", self.id)))
    }
}

/// Ends every session of `state_dir` whose owner is dead, and removes what is left of it. A
/// session whose owner lives is never touched, nor one that `claims` does not let us have. A record
/// only points; a path is used only if it is named for its session and lies where such things lie.
///
/// # Errors
/// `LEAK` or `HOST_IO` for the first session that cannot be removed, once all others were.
pub fn reap(state_dir: &Path, claims: &mut dyn Claims) -> Result<Vec<Reaped>, SessionError> {
    let mut reaped = Vec::new();
    let mut failed = None;
    for path in files(&state_dir.join(SESSIONS))? {
        match reap_one(&path, claims) {
            Ok(found) => reaped.extend(found),
            Err(refused) => failed = failed.or(Some(refused)),
        }
    }
    failed.map_or(Ok(reaped), Err)
}

/// The sessions on this machine that stand although nobody is seen who owns them. What a reaper just
/// went by is another reaper's, or that of an owner who cannot be judged from here.
///
/// # Errors
/// `HOST_IO`, also for a record that cannot be read.
pub fn left(state_dir: &Path) -> Result<Vec<Left>, SessionError> {
    let mut left = Vec::new();
    for path in files(&state_dir.join(SESSIONS))? {
        // Without a cgroup it is a working directory: nothing runs in it.
        if let Some(record) = read(&path)?.filter(|record| !record.cgroups.is_empty()) {
            left.extend(record.owner.left(&record.id)?);
        }
    }
    left.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(left)
}

/// Whether there is a record of a session, on this machine or on an engine.
pub fn is_registered(state_dir: &Path, id: &str) -> bool {
    [SESSIONS, crate::docker::RECORDS]
        .iter()
        .any(|folder| state_dir.join(folder).join(format!("{id}.json")).exists())
}

/// The records of this process: of its sessions, on this machine or on an engine, and of its working
/// directories.
///
/// # Errors
/// `HOST_IO`, also for a record that cannot be read.
pub fn own(state_dir: &Path) -> Result<Vec<PathBuf>, SessionError> {
    #[derive(Deserialize)]
    struct Owned {
        owner: Owner,
    }
    let this = Owner::this_process()?;
    let mut own = Vec::new();
    for folder in [SESSIONS, crate::docker::RECORDS] {
        for path in files(&state_dir.join(folder))? {
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                // Another process closed its session in between.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(io(&path, &e)),
            };
            let record: Owned = parse_strict(&bytes, MAX_RECORD)
                .map_err(|e| SessionCode::HostIo.refuse(format_args!("{}: {e}", path.display())))?;
            own.extend((record.owner == this).then_some(path));
        }
    }
    Ok(own)
}

/// Kills everything in the sessions of this process on this machine. Nothing is removed: whoever opened
/// them still has them.
///
/// # Errors
/// `HOST_IO`.
pub(crate) fn kill_own(state_dir: &Path) -> Result<(), SessionError> {
    let mounts = cgroup::mounts(&text(Path::new("/proc/self/mountinfo"))?);
    for path in own(state_dir)? {
        // Gone by now, or a working directory's, or an engine's.
        let Ok(bytes) = fs::read(&path) else { continue };
        let Ok(record) = parse_strict::<Record>(&bytes, MAX_RECORD) else {
            continue;
        };
        for dir in &record.cgroups {
            check_cgroup(&record.id, dir, &mounts)?;
            // Its owner removes it at the same time, and says what is left.
            let _ = cgroup::kill_dir(dir);
        }
    }
    Ok(())
}

/// The records in a directory, none if there is no directory. What a killed writer left unfinished
/// is removed.
pub(crate) fn files(dir: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io(dir, &e)),
    };
    remove_unfinished(dir).map_err(|e| io(dir, &e))?;
    let paths = entries.map(|entry| entry.map(|e| e.path()));
    let paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(|e| io(dir, &e))?;
    let is_record = |path: &PathBuf| path.extension().is_some_and(|e| e == "json");
    Ok(paths.into_iter().filter(is_record).collect())
}

/// Writes a record so that it survives a crash.
pub(crate) fn store_file(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
    write_durably(dir, name, bytes).map_err(|e| io(&dir.join(name), &e))
}

fn reap_one(path: &Path, claims: &mut dyn Claims) -> Result<Option<Reaped>, SessionError> {
    let Some(record) = read(path)? else {
        return Ok(None);
    };
    if !record.owner.is_dead()? || !claims.claim(&record.id, record.fence)? {
        return Ok(None);
    }
    let ended = end(&record).and_then(|processes| {
        remove(path)?;
        Ok(processes)
    });
    let processes = ended.inspect_err(|_| claims.give_back(&record.id))?;
    claims.gone(&record.id)?;
    Ok(Some(Reaped {
        id: record.id,
        processes,
    }))
}

/// A record; nothing where its owner has just closed its session.
fn read(path: &Path) -> Result<Option<Record>, SessionError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io(path, &e)),
    };
    let record: Record = parse_strict(&bytes, MAX_RECORD)
        .map_err(|e| SessionCode::HostIo.refuse(format_args!("{}: {e}", path.display())))?;
    let named = path.file_stem().is_some_and(|stem| *stem == *record.id);
    if !named || record.schema != SCHEMA || !is_id(&record.id) {
        return Err(SessionCode::HostIo.refuse(format_args!(
            "{} is not the record of the session it names",
            path.display()
        )));
    }
    Ok(Some(record))
}

fn end(record: &Record) -> Result<u64, SessionError> {
    let mounts = cgroup::mounts(&text(Path::new("/proc/self/mountinfo"))?);
    let mut processes = 0;
    for dir in &record.cgroups {
        check_cgroup(&record.id, dir, &mounts)?;
        processes = processes.max(cgroup::process_count(dir)?);
        cgroup::kill_dir(dir)?;
        cgroup::remove_dir(dir)?;
    }
    remove_directory(&record.id, &record.directory)?;
    Ok(processes)
}

fn check_cgroup(id: &str, dir: &Path, mounts: &[CgroupMount]) -> Result<(), SessionError> {
    let below_a_mount = mounts.iter().any(|m| dir.starts_with(&m.point));
    if below_a_mount && is_named_for(id, dir) {
        return Ok(());
    }
    Err(SessionCode::HostIo.refuse(format_args!(
        "the record of session {id} points at {}, which is no cgroup of it",
        dir.display()
    )))
}

/// Removes a session's directory: only one that is named for it, is no symlink and is ours.
pub(crate) fn remove_directory(id: &str, dir: &Path) -> Result<(), SessionError> {
    use std::io::ErrorKind;
    use std::os::unix::fs::MetadataExt as _;
    let metadata = match fs::symlink_metadata(dir) {
        Ok(metadata) => metadata,
        // Below what is no directory nothing can be left.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(e) => return Err(io(dir, &e)),
    };
    let ours = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    if !ours || !is_named_for(id, dir) {
        return Err(SessionCode::Leak.refuse(format_args!(
            "{} is not the directory of session {id}",
            dir.display()
        )));
    }
    fs::remove_dir_all(dir)
        .map_err(|e| SessionCode::Leak.refuse(format_args!("{}: {e}", dir.display())))
}

fn is_named_for(id: &str, dir: &Path) -> bool {
    let plain = dir
        .components()
        .all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
    plain
        && dir
            .file_name()
            .is_some_and(|name| *name == *cgroup::session_name(id))
}

/// Session ids are hexadecimal; nothing else may become part of a path.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_hexdigit())
}

fn own_namespace() -> Result<String, SessionError> {
    let link = Path::new("/proc/self/ns/pid");
    fs::read_link(link)
        .map(|target| target.display().to_string())
        .map_err(|e| io(link, &e))
}

/// Start time of a process, `None` if there is no such process or it is a zombie.
fn start_time(pid: u32) -> Result<Option<u64>, SessionError> {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    match fs::read_to_string(&path) {
        Ok(stat) => Ok(start_field(&stat)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        // ESRCH: it went away between open and read.
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
        Err(e) => Err(io(&path, &e)),
    }
}

/// Field 22 of a `stat` line, counted after the last `)`: the name before it may hold anything.
fn start_field(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

/// What a record is called while it is written.
const UNFINISHED: &str = ".new";

/// Whoever writes a record holds this, so that whoever holds it knows an unfinished one to be left
/// by a writer that died.
fn lock(dir: &Path) -> std::io::Result<fs::File> {
    let directory = fs::File::open(dir)?;
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(directory)
}

fn remove_unfinished(dir: &Path) -> std::io::Result<()> {
    let _nobody_writes = lock(dir)?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .ends_with(UNFINISHED.as_bytes())
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn write_durably(dir: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    let _writing = lock(dir)?;
    let temporary = dir.join(format!("{name}{UNFINISHED}"));
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&temporary, flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = fs::File::from(fd);
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, dir.join(name))?;
    fs::File::open(dir)?.sync_all()
}

/// Removes a record. One that is gone already is no error.
pub(crate) fn remove(path: &Path) -> Result<(), SessionError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io(path, &e)),
        _ => Ok(()),
    }
}

fn text(path: &Path) -> Result<String, SessionError> {
    fs::read_to_string(path)
        .map(|text| text.trim_end().to_owned())
        .map_err(|e| io(path, &e))
}

fn io(path: &Path, error: &std::io::Error) -> SessionError {
    SessionCode::HostIo.refuse(format_args!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::{Leases, Reaper, Unleased};
    use std::os::unix::fs::PermissionsExt as _;

    const ID: &str = "00ff";

    fn record(dir: &Path, owner: Owner) -> Record {
        let directory = dir.join("flightproof-00ff");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("spec"), "x").unwrap();
        Record {
            owner,
            ..Record::new(ID, &[], &directory).unwrap()
        }
    }

    fn dead_owner() -> Owner {
        // The same number with another start time: a process id that was used again.
        let this = Owner::this_process().unwrap();
        Owner {
            started: this.started + 1,
            ..this
        }
    }

    #[test]
    fn what_a_killed_writer_left_unfinished_is_removed_with_the_rest() {
        let state = tempfile::tempdir().unwrap();
        let sessions = state.path().join(SESSIONS);
        fs::create_dir_all(&sessions).unwrap();
        fs::write(
            sessions.join("00112233445566778899aabbccddeeff.json.new"),
            b"{",
        )
        .unwrap();
        assert!(reap(state.path(), &mut Unleased).unwrap().is_empty());
        assert_eq!(fs::read_dir(&sessions).unwrap().count(), 0);
    }

    #[test]
    fn a_session_whose_owner_is_dead_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let record = record(dir.path(), dead_owner());
        record.store(dir.path()).unwrap();
        let reaped = reap(dir.path(), &mut Unleased).unwrap();
        assert_eq!(reaped[0].id, ID);
        assert!(!record.directory.exists());
        assert_eq!(reap(dir.path(), &mut Unleased).unwrap(), []);
    }

    #[test]
    fn what_one_reaper_cannot_remove_the_next_one_can_and_until_then_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let leases = Leases::of(&dir.path().join("ledger"));
        let lease = leases.take(ID, 1000).unwrap();
        let group = cgroup::mounts(&text(Path::new("/proc/self/mountinfo")).unwrap())
            .remove(0)
            .point
            .join(cgroup::session_name(ID));
        let record = Record {
            fence: lease.token,
            cgroups: vec![group],
            ..record(dir.path(), dead_owner())
        };
        record.store(dir.path()).unwrap();
        fs::remove_dir_all(&record.directory).unwrap();
        fs::write(&record.directory, "in the way").unwrap();
        let stands = [Left {
            id: ID.to_owned(),
            dead: true,
        }];
        for _run in 0..2 {
            let refused = reap(dir.path(), &mut Reaper::new(leases.clone())).unwrap_err();
            assert_eq!(refused.code, SessionCode::Leak, "{refused}");
            assert_eq!(left(dir.path()).unwrap(), stands);
        }
        fs::remove_file(&record.directory).unwrap();
        // While another one is at it, it is passed by, and is seen to stand.
        let mut busy = Reaper::new(leases.clone());
        assert!(busy.claim(ID, lease.token).unwrap());
        let mut next = Reaper::new(leases.clone());
        assert_eq!(reap(dir.path(), &mut next).unwrap(), []);
        assert_eq!(left(dir.path()).unwrap(), stands);
        busy.give_back(ID);
        assert_eq!(reap(dir.path(), &mut next).unwrap().len(), 1);
        assert_eq!(left(dir.path()).unwrap(), []);
    }

    #[test]
    fn a_session_of_another_boot_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let owner = Owner {
            boot: "another".to_owned(),
            ..Owner::this_process().unwrap()
        };
        record(dir.path(), owner).store(dir.path()).unwrap();
        assert_eq!(reap(dir.path(), &mut Unleased).unwrap().len(), 1);
    }

    #[test]
    fn a_live_owner_and_one_of_another_pid_namespace_keep_their_sessions() {
        let elsewhere = Owner {
            namespace: "pid:[1]".to_owned(),
            ..dead_owner()
        };
        for owner in [Owner::this_process().unwrap(), elsewhere] {
            let dir = tempfile::tempdir().unwrap();
            let record = Record {
                cgroups: vec!["/sys/fs/cgroup/flightproof-00ff".into()],
                ..record(dir.path(), owner)
            };
            record.store(dir.path()).unwrap();
            assert_eq!(reap(dir.path(), &mut Unleased).unwrap(), []);
            assert!(record.directory.exists());
            let unseen = record.owner.namespace == "pid:[1]";
            assert_eq!(left(dir.path()).unwrap().len(), usize::from(unseen));
        }
    }

    #[test]
    fn a_record_cannot_point_the_reaper_at_what_is_not_a_session() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("precious");
        fs::create_dir(&victim).unwrap();
        let honest = record(dir.path(), dead_owner());
        let linked = dir.path().join("link/flightproof-00ff");
        fs::create_dir(dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink(&victim, &linked).unwrap();
        let named = victim.join("flightproof-00ff");
        fs::create_dir(&named).unwrap();
        use SessionCode::{HostIo, Leak};
        let directory = |directory: PathBuf| Record {
            directory,
            ..honest.clone()
        };
        let group = |path: &str| Record {
            cgroups: vec![path.into()],
            ..honest.clone()
        };
        let hostile = [
            (Leak, directory(victim.clone())),
            (Leak, directory(linked)),
            (Leak, directory(named.join("../flightproof-00ff"))),
            (HostIo, group(&named.display().to_string())),
            (
                HostIo,
                group("/sys/fs/cgroup/memory/../../flightproof-00ff"),
            ),
            (HostIo, group("/sys/fs/cgroup/memory")),
        ];
        for (code, record) in hostile {
            record.store(dir.path()).unwrap();
            assert_eq!(
                reap(dir.path(), &mut Unleased).unwrap_err().code,
                code,
                "{record:?}"
            );
            assert!(named.exists(), "{record:?}");
        }
        let stolen = Record {
            id: "../x".to_owned(),
            ..honest
        };
        let json = serde_json::to_vec(&stolen).unwrap();
        fs::write(dir.path().join("sessions/00ff.json"), json).unwrap();
        assert_eq!(
            reap(dir.path(), &mut Unleased).unwrap_err().code,
            SessionCode::HostIo
        );
    }

    #[test]
    fn a_record_is_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        record(dir.path(), dead_owner()).store(dir.path()).unwrap();
        let mode = fs::metadata(dir.path().join("sessions/00ff.json"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_process_name_cannot_move_the_start_time_and_a_zombie_has_none() {
        let fields = "1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 9 9";
        assert_eq!(
            start_field(&format!("7 (a) R 9 (b) S {fields}")),
            Some(4242)
        );
        assert_eq!(start_field(&format!("7 (a) Z {fields}")), None);
        assert_eq!(start_field("7 (a) S 1"), None);
    }
}
