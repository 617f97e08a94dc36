//! The certificate log of this machine: what was certified, admitted and refused, in files anybody
//! can check. It has a key of its own, without a passphrase, since refusals are written too.

use crate::{FlightsCode, state};
use flightproof_certifier::CertifierCode;
use flightproof_certifier::key::SecretKey;
use flightproof_certifier::log::{
    Checkpoint, Entry, Event, LogKey, LogName, Proof, Tree, stale_parts,
};
use flightproof_core::{CommitId, Digest, Exit, Moment, Refusal};
use flightproof_ledger::{Admission, Ledger, uncertified};
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest file of a log in bytes: 256 entries of 64 KiB.
const MAX_FILE: u64 = 256 * (2 + 65_535);

/// A log, held against everybody else who would write to it.
pub struct Log {
    directory: PathBuf,
    /// The last checkpoint, kept outside the log: a log that is put back to an earlier state is
    /// noticed.
    seen: PathBuf,
    key: SecretKey,
    name: LogName,
    tree: Tree,
    /// Held until this is dropped.
    _lock: fs::File,
}

impl Log {
    /// Opens the log in the state directory, makes it if there is none, and checks all of it.
    ///
    /// # Errors
    /// `STATE_UNAVAILABLE`; `LOG_BROKEN`, `CHECKPOINT_INVALID`, `LOG_INCONSISTENT`.
    pub fn open() -> Result<Self, Refusal> {
        let state = state::directory()?;
        let directory = state.join("log");
        state::private_directory(&directory)?;
        let lock = lock(&directory.join("lock"))?;
        let key = key(&directory)?;
        let id = key.public().id().to_string();
        let name: LogName = format!("flightproof.invalid/{}", &id[..16])
            .parse()
            .map_err(|e| broken(&directory, e))?;
        let mut log = Self {
            seen: state.join("log-seen"),
            directory,
            key,
            name,
            tree: Tree::default(),
            _lock: lock,
        };
        log.load()?;
        Ok(log)
    }

    /// As [`Log::open`], for whoever only looks: no log is made.
    ///
    /// # Errors
    /// `STATE_MISSING`; as [`Log::open`].
    pub fn look() -> Result<Self, Refusal> {
        // One that was there once and is gone is no log that was never there.
        if state::part("log-seen").is_err() {
            state::part("log")?;
        }
        Self::open()
    }

    /// As [`Log::look`]; none where the state directory has none.
    ///
    /// # Errors
    /// As [`Log::look`].
    pub fn look_if_there() -> Result<Option<Self>, Refusal> {
        let state = state::existing()?;
        let has = |state: &PathBuf| {
            ["log", "log-seen"]
                .iter()
                .any(|part| state.join(part).exists())
        };
        match state.is_some_and(|state| !has(&state)) {
            true => Ok(None),
            false => Self::look().map(Some),
        }
    }

    fn load(&mut self) -> Result<(), Refusal> {
        let seen = read_if_there(&self.seen)?;
        let Some(note) = read_if_there(&self.directory.join("checkpoint"))? else {
            return match seen {
                None => self.write_checkpoint(),
                Some(_) => Err(CertifierCode::LogInconsistent
                    .refuse("the log is empty; it was not")
                    .into()),
            };
        };
        let key = self.public();
        let checkpoint = Checkpoint::open(&note, &key)?;
        let directory = self.directory.clone();
        self.tree = Tree::read(&checkpoint, |path| {
            let path = directory.join(path);
            read_if_there(&path)?.ok_or_else(|| broken(&path, "is not there"))
        })?;
        if let Some(seen) = seen {
            self.tree.continues(&Checkpoint::open(&seen, &key)?)?;
        }
        Ok(())
    }

    /// The log's name and public key.
    pub fn public(&self) -> LogKey {
        LogKey::new(self.name.clone(), self.key.public())
    }

    /// Its entries, oldest first.
    ///
    /// # Errors
    /// `LOG_BROKEN`.
    pub fn entries(&self) -> Result<Vec<Entry>, Refusal> {
        let entries = self.tree.entries().iter();
        Ok(entries
            .map(|bytes| Entry::parse(bytes))
            .collect::<Result<_, _>>()?)
    }

    /// Its head.
    pub fn checkpoint(&self) -> Checkpoint {
        self.tree.checkpoint(self.name.clone())
    }

    /// Whether an earlier head, saved elsewhere, is a prefix of it.
    ///
    /// # Errors
    /// `CHECKPOINT_INVALID`, `LOG_INCONSISTENT`.
    pub fn continues(&self, note: &[u8]) -> Result<Checkpoint, Refusal> {
        let earlier = Checkpoint::open(note, &self.public())?;
        self.tree.continues(&earlier)?;
        Ok(earlier)
    }

    /// Adds an entry. The files are on disk before the checkpoint speaks of them, so a run that dies
    /// in between leaves the log as it was. Returns the entry's place.
    ///
    /// # Errors
    /// `LOG_BROKEN`, `STATE_UNAVAILABLE`.
    pub fn append(&mut self, entry: &Entry) -> Result<u64, Refusal> {
        let index = self.tree.entries().len();
        self.tree.append(entry.bytes()?)?;
        for file in self.tree.tail() {
            let path = self.directory.join(&file.path);
            if let Some(folder) = path.parent() {
                state::make_folder(folder, 0o777)?;
            }
            state::write_file(&path, &file.bytes, 0o644)?;
        }
        self.write_checkpoint()?;
        for path in stale_parts(index + 1) {
            // What stays takes room and nothing else.
            let _ = fs::remove_file(self.directory.join(path));
        }
        Ok(index as u64)
    }

    /// The proof for the last entry about a certificate.
    pub fn prove(&self, certificate: Digest) -> Result<Option<Proof>, Refusal> {
        let entries = self.entries()?;
        let about = |entry: &Entry| entry.event.certificate() == Some(certificate);
        Ok(entries.iter().rposition(about).map(|index| Proof {
            entry: self.tree.entries()[index].clone(),
            index: index as u64,
            path: self.tree.path(index),
            checkpoint: self.checkpoint().sign(&self.key),
        }))
    }

    fn write_checkpoint(&self) -> Result<(), Refusal> {
        let note = self.checkpoint().sign(&self.key);
        state::write_file(&self.directory.join("checkpoint"), note.as_bytes(), 0o644)?;
        state::write_file(&self.seen, note.as_bytes(), 0o600)
    }
}

/// Adds what happened, now, to the log of this machine.
///
/// # Errors
/// As [`Log::open`] and [`Log::append`].
pub fn note(event: Event, repository: &str, candidate: &str) -> Result<u64, Refusal> {
    let now = Moment::from_unix(state::unix_seconds());
    Log::open()?.append(&Entry::new(now, event, repository, candidate))
}

/// Which attempt at a repository begins now, from 1: one more than were refused on this machine, under
/// whatever name, since a certified commit of it was let in. A name is the author's to choose, and so is a
/// commit that is certified and goes nowhere; one that a person let in without a certificate proves nothing of
/// its author's.
///
/// # Errors
/// As [`Log::open`].
pub fn attempt(repository: &str) -> Result<u64, Refusal> {
    let entries = Log::open()?.entries()?;
    let of_repository = entries.iter().rev().filter(|e| e.is_of(repository));
    let since = of_repository.take_while(|e| !matches!(e.event, Event::Admitted { .. }));
    let refused = since.filter(|entry| matches!(entry.event, Event::Refused { .. }));
    Ok(refused.count() as u64 + 1)
}

/// A refusal, once it is in the log. If it cannot be written there, it says so. What says nothing of the
/// commit, such as a wrong passphrase or a missing program, does not stand there.
pub fn refused(stage: &str, refusal: Refusal, repository: &str, candidate: &str) -> Refusal {
    let judged = [
        Exit::Refused,
        Exit::Mismatch,
        Exit::HostileAdmitted,
        Exit::Policy,
    ];
    if !judged.contains(&refusal.exit()) {
        return refusal;
    }
    let event = Event::Refused {
        stage: stage.to_owned(),
        code: refusal.code().to_owned(),
    };
    match note(event, repository, candidate) {
        Ok(_) => refusal,
        Err(unlogged) => refusal.with_notes([not_logged(&unlogged)]),
    }
}

/// Brings the log up to the ledger: every branch that moved stands in it once, also where the run that moved
/// it died before it could say so. `named` is a commit whose repository the operator named. The branches have
/// moved, which cannot be taken back: what keeps one out of the log is a note.
pub fn moves(named: Option<(CommitId, &str)>) -> Option<String> {
    let unlogged = note_moves(named).err()?;
    Some(not_logged(&unlogged))
}

fn note_moves(named: Option<(CommitId, &str)>) -> Result<(), Refusal> {
    let moved = Ledger::open(&state::directory()?.join("ledger"))?.applied()?;
    if moved.is_empty() {
        return Ok(());
    }
    let mut log = Log::open()?;
    let entries = log.entries()?;
    // The same may have moved in two repositories.
    let mut there: BTreeMap<_, usize> = BTreeMap::new();
    for moved in entries.iter().filter_map(|entry| moved_by(&entry.event)) {
        *there.entry(moved).or_default() += 1;
    }
    for admission in &moved {
        let event = event_of(admission);
        match moved_by(&event).and_then(|moved| there.get_mut(&moved)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => {
                log.append(&entry_of(admission, event, &entries, named))?;
            }
        }
    }
    Ok(())
}

/// Certificate, commit and branch of a move.
fn moved_by(event: &Event) -> Option<(Option<Digest>, CommitId, String)> {
    match event {
        Event::Admitted { head, branch, .. } | Event::Uncertified { head, branch } => {
            Some((event.certificate(), *head, branch.clone()))
        }
        Event::Certified { .. } | Event::Refused { .. } => None,
    }
}

fn event_of(admission: &Admission) -> Event {
    let (certificate, head) = (admission.certificate, admission.key.head);
    let branch = &admission.key.branch;
    let branch = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    let branch = branch.to_owned();
    match certificate == uncertified() {
        true => Event::Uncertified { head, branch },
        false => Event::Admitted {
            certificate,
            head,
            branch,
        },
    }
}

/// The entry of a move. Where nobody says how the operator names the repository, it is named as where its
/// commit was certified here, or else by its folder.
fn entry_of(
    admission: &Admission,
    event: Event,
    entries: &[Entry],
    named: Option<(CommitId, &str)>,
) -> Entry {
    let head = admission.key.head;
    let named = named.filter(|(commit, _)| *commit == head);
    let certified = entries.iter().find(|entry| {
        let certified = matches!(entry.event, Event::Certified { .. });
        certified && entry.event.certificate() == Some(admission.certificate)
    });
    let folder = folder_of(Path::new(&admission.key.repository));
    let name = named.map_or(folder.as_str(), |(_, name)| name);
    let now = Moment::from_unix(state::unix_seconds());
    let mut entry = Entry::new(now, event, name, &head.to_string());
    if let (None, Some(certified)) = (named, certified) {
        entry.repository.clone_from(&certified.repository);
    }
    entry
}

/// The name of the folder that a repository's git folder is in, or of that itself where it is bare.
fn folder_of(git_dir: &Path) -> String {
    let folder = match git_dir.file_name().is_some_and(|name| name == ".git") {
        true => git_dir.parent().and_then(Path::file_name),
        false => git_dir.file_name(),
    };
    folder.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn not_logged(refusal: &Refusal) -> String {
    format!("not in the log: {refusal}")
}

fn key(directory: &Path) -> Result<SecretKey, Refusal> {
    let path = directory.join("key.pem");
    if let Some(pem) = read_if_there(&path)? {
        let pem = String::from_utf8(pem).map_err(|e| broken(&path, e))?;
        return Ok(SecretKey::from_pem(&pem)?);
    }
    let key = SecretKey::from_seed(state::entropy()?);
    state::write_new_file(&path, key.to_pem()?.as_bytes(), 0o600)?;
    Ok(key)
}

fn lock(path: &Path) -> Result<fs::File, Refusal> {
    let mut writing = fs::OpenOptions::new();
    let file = match writing.create(true).truncate(false).write(true).open(path) {
        // Nobody writes there, and so nothing will be written here either.
        Err(e) if e.kind() == std::io::ErrorKind::ReadOnlyFilesystem => fs::File::open(path),
        opened => opened,
    };
    let file = file.map_err(|e| unavailable(path, e))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|e| unavailable(path, e))?;
    Ok(file)
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Refusal> {
    use std::io::Read as _;
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unavailable(path, e)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| unavailable(path, e))?;
    Ok(Some(bytes))
}

fn broken(path: &Path, reason: impl std::fmt::Display) -> Refusal {
    CertifierCode::LogBroken
        .refuse(format_args!("{}: {reason}", path.display()))
        .into()
}

fn unavailable(path: &Path, reason: impl std::fmt::Display) -> Refusal {
    FlightsCode::StateUnavailable
        .refuse(format!("{}: {reason}", path.display()))
        .into()
}
