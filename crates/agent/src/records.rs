//! The state of runs in a folder: one file a run, written whole or not at all.

use crate::repair::{Attempt, End};
use crate::run::State;
use crate::{Accounting, Records, RunKey};
use flightproof_core::{canonical_json, parse_strict};
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A folder of run states. One driver at a time writes a run: whoever holds its loop's [`LoopLock`].
/// Nothing here asks for that lock before it writes.
#[derive(Debug, Clone)]
pub struct RunFolder {
    folder: PathBuf,
}

/// The name of the format of both files. Another one is not guessed at.
const FORMAT: &str = "flightproof/agent-run/1";
/// Most bytes of a file here: an accounting of sixteen models is 4 KiB.
const MAX_FILE: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<T> {
    format: String,
    value: T,
}

/// A repair loop, as it survives its driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopRecord {
    /// Its name; that of the ledger's parent of all its holds too.
    pub name: RunKey,
    /// The plan's name.
    pub plan: String,
    /// The run of each attempt that was begun, in order. Written before the run begins.
    pub runs: Vec<RunKey>,
    /// How each attempt ended that did.
    pub history: Vec<Attempt>,
    /// How it ended; absent while it has not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end: Option<LoopEnd>,
}

/// How a loop ended, whoever wrote it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopEnd {
    /// By itself.
    Ended(End),
    /// Its driver died, and somebody else settled what it had begun.
    Recovered,
}

/// The right to drive a loop. Dropped, the lock is free and its file gone.
#[derive(Debug)]
pub struct LoopLock {
    path: PathBuf,
    _file: File,
}

impl Drop for LoopLock {
    fn drop(&mut self) {
        // A file that stays is taken for a lock that nobody holds.
        let _ = fs::remove_file(&self.path);
    }
}

impl RunFolder {
    /// Opens the folder, and makes it if it is not there, for its owner only.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let mut builder = fs::DirBuilder::new();
        match builder.recursive(true).mode(0o700).create(folder) {
            Ok(()) => Ok(Self {
                folder: folder.to_owned(),
            }),
            Err(e) => Err(e.to_string()),
        }
    }

    /// The state a run was left in; nothing if it never began.
    ///
    /// # Errors
    /// The file is there and is no state. The run is then nobody's to guess about.
    pub fn state_of(&self, run: &RunKey) -> Result<Option<State>, String> {
        self.read(&format!("{run}.state.json"))
    }

    /// The accounting of a run that ended well.
    ///
    /// # Errors
    /// The file is there and is no accounting.
    pub fn accounting_of(&self, run: &RunKey) -> Result<Option<Accounting>, String> {
        self.read(&format!("{run}.accounting.json"))
    }

    /// Stores what is known of a repair loop.
    ///
    /// # Errors
    /// It may not be there.
    pub fn store_loop(&self, record: &LoopRecord) -> Result<(), String> {
        self.write(&format!("{}.loop.json", record.name), record)
    }

    /// Loops that have not ended, with their locks: their drivers are dead. Loops whose drivers live
    /// are left out.
    ///
    /// # Errors
    /// A file is there and is no loop.
    pub fn orphans(&self) -> Result<Vec<(LoopRecord, LoopLock)>, String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|e| e.to_string())? {
            let name = entry.map_err(|e| e.to_string())?.file_name();
            self.clear_stale_lock(&name)?;
            let Some(name) = name.to_str().filter(|n| n.ends_with(".loop.json")) else {
                continue;
            };
            let Some(record) = self.read::<LoopRecord>(name)? else {
                continue;
            };
            if record.end.is_some() {
                continue;
            }
            if name != format!("{}.loop.json", record.name) {
                return Err(format!("{name}: it names another loop"));
            }
            let Some(lock) = self.lock(&record.name)? else {
                continue;
            };
            // Read again under the lock: somebody may have ended it in between.
            match self.read::<LoopRecord>(name)? {
                Some(record) if record.end.is_none() => found.push((record, lock)),
                _ => {}
            }
        }
        found.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Removes the lock of a driver that died before it wrote anything else.
    fn clear_stale_lock(&self, name: &OsStr) -> Result<(), String> {
        let stem = name.to_str().and_then(|name| name.strip_suffix(".lock"));
        match stem {
            Some(stem) if !self.folder.join(format!("{stem}.loop.json")).exists() => {
                self.lock_at(self.folder.join(name)).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Takes the lock of a loop; nothing if its driver lives. The kernel lets go of it when its
    /// holder dies, however that happens.
    ///
    /// # Errors
    /// The lock file cannot be used.
    pub fn lock(&self, name: &RunKey) -> Result<Option<LoopLock>, String> {
        self.lock_at(self.folder.join(format!("{name}.lock")))
    }

    fn lock_at(&self, path: PathBuf) -> Result<Option<LoopLock>, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(e) => return Err(failed(e.into())),
            }
            // Its holder may have removed it since it was opened, and somebody may hold the next one.
            if is_at(&file, &path).map_err(failed)? {
                return Ok(Some(LoopLock { path, _file: file }));
            }
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        let bytes = match fs::read(self.folder.join(name)) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.to_string()),
        };
        let stored: Stored<T> =
            parse_strict(&bytes, MAX_FILE).map_err(|e| format!("{name}: {e}"))?;
        if stored.format != FORMAT {
            return Err(format!("{name}: not {FORMAT}"));
        }
        Ok(Some(stored.value))
    }

    /// Beside, synced, renamed, and the folder synced: after a power cut the old bytes are there or
    /// the new ones.
    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), String> {
        let stored = Stored {
            format: FORMAT.to_owned(),
            value,
        };
        let bytes = canonical_json(&stored).map_err(|e| e.to_string())?;
        let beside = self.folder.join(format!("{name}.new"));
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)
            .and_then(|mut file| {
                file.write_all(&bytes)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&beside, self.folder.join(name)))
            .and_then(|()| File::open(&self.folder)?.sync_all());
        written.map_err(|e| format!("{name}: {e}"))
    }
}

/// Whether this is the file that has the name.
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

impl Records for RunFolder {
    fn state(&mut self, run: &RunKey, state: &State) -> Result<(), String> {
        self.write(&format!("{run}.state.json"), state)
    }

    fn accounting(&mut self, run: &RunKey, accounting: &Accounting) -> Result<(), String> {
        self.write(&format!("{run}.accounting.json"), accounting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Ended, Outcome};
    use crate::{AgentCode, HoldEffect};
    use flightproof_core::{Digest, MicroUsd};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_state_is_there_again_and_half_a_file_is_never_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("runs");
        let mut runs = RunFolder::open(&place).unwrap();
        let run = RunKey::from_entropy([7; 16]);
        assert_eq!(runs.state_of(&run), Ok(None));
        let ended = Ended {
            outcome: Outcome::Failed(AgentCode::OverBudget),
            hold: HoldEffect::Settle(MicroUsd::from_micros(3).unwrap()),
            result: Some(Digest::of(b"x")),
        };
        for state in [State::Planned, State::Launching, State::Closing { ended }] {
            runs.state(&run, &state).unwrap();
            let again = RunFolder::open(&place).unwrap();
            assert_eq!(again.state_of(&run), Ok(Some(state)));
        }
        let file = place.join(format!("{run}.state.json"));
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        let expected = format!(
            r#"{{"format":"flightproof/agent-run/1","value":{{"ended":{{"hold":{{"settle":3}},"outcome":"agent/OVER_BUDGET","result":"{}"}},"state":"closing"}}}}"#,
            Digest::of(b"x")
        );
        assert_eq!(text, expected, "the format is a promise");
        // A driver that died while it wrote: the file beside is not the state.
        fs::write(place.join(format!("{run}.state.json.new")), "{").unwrap();
        assert_eq!(runs.state_of(&run), Ok(Some(State::Closing { ended })));
        for bad in [
            "",
            "{",
            "{\"state\":\"running\"}",
            "{\"format\":\"flightproof/agent-run/2\",\"value\":{\"state\":\"running\"}}",
            "{\"state\":\"begun\"}",
            "{\"format\":\"flightproof/agent-run/1\",\"value\":{\"state\":\"running\",\"x\":1}}",
        ] {
            fs::write(&file, bad).unwrap();
            assert!(runs.state_of(&run).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_loop_without_an_end_is_found_once_its_driver_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let runs = RunFolder::open(folder.path()).unwrap();
        let key = |byte| RunKey::from_entropy([byte; 16]);
        let mut record = LoopRecord {
            name: key(1),
            plan: "a-plan".to_owned(),
            runs: vec![key(2)],
            history: Vec::new(),
            end: None,
        };
        let lock = runs.lock(&record.name).unwrap().unwrap();
        runs.store_loop(&record).unwrap();
        assert!(runs.orphans().unwrap().is_empty(), "its driver lives");
        assert!(runs.lock(&record.name).unwrap().is_none());
        drop(lock);
        let orphans = runs.orphans().unwrap();
        assert_eq!(orphans[0].0, record);
        assert!(runs.orphans().unwrap().is_empty(), "somebody recovers it");
        drop(orphans);
        record.end = Some(LoopEnd::Ended(End::Certified));
        runs.store_loop(&record).unwrap();
        assert!(runs.orphans().unwrap().is_empty());
        let stale = folder.path().join(format!("{}.lock", key(9)));
        fs::write(&stale, "").unwrap();
        assert!(runs.orphans().unwrap().is_empty());
        assert!(!stale.exists(), "its driver died before its loop began");
        fs::create_dir(folder.path().join(format!("{}.lock", record.name))).unwrap();
        assert!(
            runs.orphans().unwrap().is_empty(),
            "what ended is not locked"
        );
        fs::write(folder.path().join("x.loop.json"), "{").unwrap();
        assert!(runs.orphans().is_err());
    }

    #[test]
    fn a_lock_has_one_holder_however_often_its_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let runs = RunFolder::open(folder.path()).unwrap();
        let key = RunKey::from_entropy([1; 16]);
        let (holders, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if let Some(lock) = runs.lock(&key).unwrap() {
                            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                            taken.fetch_add(1, Ordering::SeqCst);
                            std::thread::yield_now();
                            holders.fetch_sub(1, Ordering::SeqCst);
                            drop(lock);
                        }
                    }
                });
            }
        });
        assert!(taken.load(Ordering::SeqCst) > 10);
    }
}
