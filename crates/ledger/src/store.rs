use crate::{
    Admission, AdmissionId, AdmissionKey, AdmissionLock, Intended, LedgerCode, LedgerError, State,
};
use flightproof_core::Digest;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, TransactionBehavior};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The state of record of one user on one machine.
///
/// After a failed commit the handle refuses everything: what is on disk is then unknown to it, and
/// only a fresh [`Ledger::open`] may say.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    directory: PathBuf,
    poisoned: bool,
}

impl Ledger {
    /// Name of the file in the state folder.
    pub const FILE: &'static str = "ledger.sqlite";

    /// Opens the ledger in `directory`, making folder and file when there is none.
    ///
    /// # Errors
    /// `LEDGER_EXPOSED` if others could write it, `LEDGER_UNREADABLE` or `LEDGER_TOO_NEW` for a file
    /// that is there and is not a ledger of this version (it is never made anew), `LEDGER_NOT_DURABLE`
    /// if the storage does not take the settings, `LEDGER_BUSY` if another process holds it too long.
    pub fn open(directory: &Path) -> Result<Self, LedgerError> {
        make_directory(directory)?;
        let file = directory.join(Self::FILE);
        if std::fs::symlink_metadata(&file).is_err() {
            create(directory, &file)?;
        }
        let found = std::fs::symlink_metadata(&file).map_err(unreadable)?;
        if !found.is_file() {
            return Err(LedgerCode::LedgerExposed.refuse("the ledger is not a regular file"));
        }
        check_private(&found, "file")?;
        let connection = connect(&file)?;
        check_schema(&connection)?;
        make_durable(&connection)?;
        Ok(Self {
            connection,
            directory: directory.to_owned(),
            poisoned: false,
        })
    }

    /// Waits for the right to move branches. Held by an admission from before its intent to after
    /// its outcome, and by a recovery throughout.
    ///
    /// # Errors
    /// `LEDGER_BUSY` if another process does not let go in time.
    pub fn lock_admissions(&self, patience: Duration) -> Result<AdmissionLock, LedgerError> {
        AdmissionLock::acquire(&self.directory.join("admission.lock"), patience)
    }

    /// Journals that the branch is about to move. `now` is in unix seconds.
    ///
    /// # Errors
    /// `REQUEST_DIFFERS` if the key is taken under another certificate, `ADMISSION_OPEN` or
    /// `ADMISSION_CLOSED` if an earlier try has no outcome or no proven one, `COMMIT_UNCERTAIN`.
    pub fn intend(
        &mut self,
        key: &AdmissionKey,
        certificate: Digest,
        now: u64,
    ) -> Result<Intended, LedgerError> {
        self.write(|tx| match standing(tx, key)? {
            Some(row) => row.answer(certificate).map(Intended::AlreadyApplied),
            None => {
                tx.prepare_cached(
                    "INSERT INTO admissions (repository, branch, baseline, head, certificate, state, intended_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'intended', ?6)",
                )
                .and_then(|mut insert| {
                    insert.insert((
                        &key.repository,
                        &key.branch,
                        key.baseline.to_string(),
                        key.head.to_string(),
                        certificate.to_string(),
                        seconds(now),
                    ))
                })
                .map(|id| Intended::Journaled(AdmissionId(id)))
                .map_err(unreadable)
            }
        })
    }

    /// What [`Ledger::intend`] would say, without journaling: the receipt if the same request was
    /// applied before, `None` if the key is free.
    ///
    /// # Errors
    /// As [`Ledger::intend`], but for the commit.
    pub fn earlier(
        &self,
        key: &AdmissionKey,
        certificate: Digest,
    ) -> Result<Option<Vec<u8>>, LedgerError> {
        self.usable()?;
        standing(&self.connection, key)?
            .map(|row| row.answer(certificate))
            .transpose()
    }

    /// Records how an open admission ended, with its receipt where the branch moved.
    ///
    /// # Errors
    /// `ADMISSION_NOT_OPEN` if it has an outcome already, `COMMIT_UNCERTAIN`.
    pub fn settle(
        &mut self,
        id: AdmissionId,
        state: State,
        receipt: Option<&[u8]>,
        now: u64,
    ) -> Result<(), LedgerError> {
        if state == State::Intended || receipt.is_some() != (state == State::Applied) {
            return Err(LedgerCode::AdmissionNotOpen
                .refuse("only an applied admission has a receipt, and an intent is no outcome"));
        }
        self.write(|tx| {
            let changed = tx
                .execute(
                    "UPDATE admissions SET state = ?2, receipt = ?3, settled_at = ?4
                     WHERE id = ?1 AND state = 'intended'",
                    (id.0, state.word(), receipt, seconds(now)),
                )
                .map_err(unreadable)?;
            if changed == 1 {
                Ok(())
            } else {
                Err(LedgerCode::AdmissionNotOpen.refuse(format!("admission {id}")))
            }
        })
    }

    /// Admissions without an outcome, oldest first.
    ///
    /// # Errors
    /// `LEDGER_UNREADABLE`, or `COMMIT_UNCERTAIN` after a failed commit.
    pub fn open_intents(&self) -> Result<Vec<Admission>, LedgerError> {
        self.usable()?;
        let mut select = self
            .connection
            .prepare_cached(
                "SELECT id, repository, branch, baseline, head, certificate, intended_at
                 FROM admissions WHERE state = 'intended' ORDER BY id",
            )
            .map_err(unreadable)?;
        let rows = select
            .query_map((), |row| Ok(read_admission(row)))
            .map_err(unreadable)?;
        rows.map(|row| row.map_err(unreadable)?).collect()
    }

    /// The receipt of an applied admission, byte for byte as it was first written.
    ///
    /// # Errors
    /// `LEDGER_UNREADABLE`, or `COMMIT_UNCERTAIN` after a failed commit.
    pub fn receipt(&self, key: &AdmissionKey) -> Result<Option<Vec<u8>>, LedgerError> {
        self.usable()?;
        Ok(standing(&self.connection, key)?.and_then(|row| row.receipt))
    }

    fn usable(&self) -> Result<(), LedgerError> {
        if self.poisoned {
            return Err(
                LedgerCode::CommitUncertain.refuse("an earlier commit on this handle failed")
            );
        }
        Ok(())
    }

    fn write<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.usable()?;
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(unreadable)?;
        let answer = change(&tx)?;
        tx.commit().map_err(|e| {
            self.poisoned = true;
            LedgerCode::CommitUncertain.refuse(e)
        })?;
        Ok(answer)
    }
}

/// Version of the tables; grows with every change of [`SCHEMA`].
const VERSION: i64 = 1;
/// "FLTP": tells our file from any other SQLite file.
const APPLICATION: i64 = 0x464c_5450;
/// How long SQLite waits for another writer.
const BUSY: Duration = Duration::from_secs(10);
/// SQLite before 3.51.3 can corrupt a write-ahead log that two connections reset at once.
const MIN_SQLITE: i32 = 3_051_003;

/// An outcome that proved nothing happened frees its key; every other one keeps it for good.
const SCHEMA: [&str; 2] = [
    "CREATE TABLE admissions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository TEXT NOT NULL,
    branch TEXT NOT NULL,
    baseline TEXT NOT NULL CHECK (length(baseline) = 40),
    head TEXT NOT NULL CHECK (length(head) = 40),
    certificate TEXT NOT NULL CHECK (length(certificate) = 64),
    state TEXT NOT NULL CHECK (state IN ('intended', 'applied', 'not-applied', 'superseded', 'unknown')),
    intended_at INTEGER NOT NULL,
    settled_at INTEGER CHECK ((settled_at IS NULL) = (state = 'intended')),
    receipt BLOB CHECK ((receipt IS NOT NULL) = (state = 'applied'))
) STRICT",
    "CREATE UNIQUE INDEX one_per_key ON admissions (repository, branch, baseline, head)
    WHERE state <> 'not-applied'",
];

struct Standing {
    certificate: String,
    state: State,
    receipt: Option<Vec<u8>>,
}

/// The row that holds the key, if one does.
fn standing(connection: &Connection, key: &AdmissionKey) -> Result<Option<Standing>, LedgerError> {
    let found = connection
        .query_row(
            "SELECT certificate, state, receipt FROM admissions
             WHERE repository = ?1 AND branch = ?2 AND baseline = ?3 AND head = ?4 AND state <> 'not-applied'",
            (
                &key.repository,
                &key.branch,
                key.baseline.to_string(),
                key.head.to_string(),
            ),
            |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, Option<Vec<u8>>>(2)?,
                ))
            },
        )
        .optional()
        .map_err(unreadable)?;
    found
        .map(|(certificate, word, receipt)| {
            Ok(Standing {
                certificate,
                state: State::from_word(&word).ok_or_else(|| unreadable("unknown state"))?,
                receipt,
            })
        })
        .transpose()
}

impl Standing {
    /// The first receipt for the same request, a refusal for everything else.
    fn answer(self, certificate: Digest) -> Result<Vec<u8>, LedgerError> {
        if self.certificate != certificate.to_string() {
            return Err(LedgerCode::RequestDiffers.refuse(format!(
                "got certificate {certificate}, recorded {}",
                self.certificate
            )));
        }
        match (self.state, self.receipt) {
            (State::Applied, Some(receipt)) => Ok(receipt),
            (State::Intended, _) => Err(LedgerCode::AdmissionOpen.refuse("journaled, not settled")),
            (state, _) => Err(LedgerCode::AdmissionClosed.refuse(state.word())),
        }
    }
}

fn read_admission(row: &Row<'_>) -> Result<Admission, LedgerError> {
    let text = |column: usize| row.get::<_, String>(column).map_err(unreadable);
    Ok(Admission {
        id: AdmissionId(row.get(0).map_err(unreadable)?),
        key: AdmissionKey {
            repository: text(1)?,
            branch: text(2)?,
            baseline: text(3)?.parse().map_err(unreadable)?,
            head: text(4)?.parse().map_err(unreadable)?,
        },
        certificate: text(5)?.parse().map_err(unreadable)?,
        intended_at: u64::try_from(row.get::<_, i64>(6).map_err(unreadable)?)
            .map_err(unreadable)?,
    })
}

fn make_directory(directory: &Path) -> Result<(), LedgerError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(unreadable)?;
    check_private(&std::fs::metadata(directory).map_err(unreadable)?, "folder")
}

fn check_private(found: &std::fs::Metadata, what: &str) -> Result<(), LedgerError> {
    let mine = found.uid() == rustix::process::geteuid().as_raw();
    if mine && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(LedgerCode::LedgerExposed.refuse(format!(
        "{what}: owner {}, mode {:04o}",
        found.uid(),
        found.mode() & 0o7777
    )))
}

/// Builds the file under another name and moves it into place whole: a crash leaves no ledger or
/// a complete one. The lock on the folder makes the other name ours.
fn create(directory: &Path, file: &Path) -> Result<(), LedgerError> {
    let folder = rustix::fs::open(
        directory,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(unreadable)?;
    rustix::fs::flock(&folder, FlockOperation::LockExclusive).map_err(unreadable)?;
    if std::fs::symlink_metadata(file).is_ok() {
        return Ok(());
    }
    let draft = directory.join("ledger.draft");
    for rest in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(directory.join(format!("ledger.draft{rest}")));
    }
    let handle = rustix::fs::open(
        &draft,
        OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    )
    .map_err(unreadable)?;
    write_schema(&draft)?;
    rustix::fs::fsync(&handle).map_err(unreadable)?;
    std::fs::rename(&draft, file).map_err(unreadable)?;
    rustix::fs::fsync(&folder).map_err(unreadable)
}

fn write_schema(draft: &Path) -> Result<(), LedgerError> {
    let connection = connect(draft)?;
    make_durable(&connection)?;
    let statements = format!(
        "BEGIN IMMEDIATE; {}; {}; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;",
        SCHEMA[0], SCHEMA[1]
    );
    connection.execute_batch(&statements).map_err(unreadable)?;
    // Closing hides a checkpoint that failed, so it is asked for and its answer read.
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))
        .map_err(unreadable)?;
    if busy != 0 {
        return Err(unreadable("checkpoint was refused"));
    }
    connection.close().map_err(|(_, e)| unreadable(e))
}

fn connect(file: &Path) -> Result<Connection, LedgerError> {
    if rusqlite::version_number() < MIN_SQLITE {
        return Err(LedgerCode::LedgerNotDurable.refuse(rusqlite::version()));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(file, flags).map_err(unreadable)?;
    connection.busy_timeout(BUSY).map_err(unreadable)?;
    connection
        .pragma_update(None, "trusted_schema", false)
        .map_err(unreadable)?;
    Ok(connection)
}

fn check_schema(connection: &Connection) -> Result<(), LedgerError> {
    let number = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(unreadable)
    };
    if number("application_id")? != APPLICATION {
        return Err(unreadable("another program's file"));
    }
    match number("user_version")? {
        VERSION => {}
        newer if newer > VERSION => {
            return Err(LedgerCode::LedgerTooNew
                .refuse(format!("version {newer}, this program reads {VERSION}")));
        }
        other => return Err(unreadable(format!("version {other}"))),
    }
    let mut select = connection
        .prepare("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name")
        .map_err(unreadable)?;
    let found: Vec<String> = select
        .query_map((), |row| row.get(0))
        .and_then(Iterator::collect)
        .map_err(unreadable)?;
    if found != SCHEMA {
        return Err(unreadable("its tables are not those of its version"));
    }
    Ok(())
}

/// `journal_mode` fails silently, so both settings are read back.
fn make_durable(connection: &Connection) -> Result<(), LedgerError> {
    let journal: String = connection
        .query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))
        .map_err(unreadable)?;
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(unreadable)?;
    let synchronous: i64 = connection
        .pragma_query_value(None, "synchronous", |row| row.get(0))
        .map_err(unreadable)?;
    check_durable(&journal, synchronous)
}

fn check_durable(journal: &str, synchronous: i64) -> Result<(), LedgerError> {
    /// What SQLite calls FULL.
    const FULL: i64 = 2;
    if journal == "wal" && synchronous == FULL {
        return Ok(());
    }
    Err(LedgerCode::LedgerNotDurable
        .refuse(format!("journal_mode {journal}, synchronous {synchronous}")))
}

fn unreadable(reason: impl std::fmt::Display) -> LedgerError {
    LedgerCode::LedgerUnreadable.refuse(reason)
}

/// SQLite integers are signed; a time beyond them is as good as the last one.
fn seconds(unix: u64) -> i64 {
    i64::try_from(unix).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_would_lose_a_commit_are_refused() {
        assert!(check_durable("wal", 2).is_ok());
        for (journal, synchronous) in [("delete", 2), ("wal", 1), ("memory", 0)] {
            let refused = check_durable(journal, synchronous).unwrap_err();
            assert_eq!(refused.code, LedgerCode::LedgerNotDurable);
        }
    }

    #[test]
    fn an_in_memory_database_is_not_durable() {
        let memory = Connection::open_in_memory().unwrap();
        let refused = make_durable(&memory).unwrap_err();
        assert_eq!(refused.code, LedgerCode::LedgerNotDurable);
    }
}
