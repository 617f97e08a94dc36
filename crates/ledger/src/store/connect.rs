//! One connection, and everything that SQLite would silently settle for instead of what was asked.

use crate::store::{BUSY, of_storage, of_storage_or, unreadable};
use crate::{LedgerCode, LedgerError, seal};
use rusqlite::{Connection, OpenFlags};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

pub(super) fn connect(file: &Path) -> Result<Connection, LedgerError> {
    if rusqlite::version_number() < MIN_SQLITE {
        return Err(LedgerCode::LedgerNotDurable.refuse(rusqlite::version()));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(file, flags).map_err(of_storage)?;
    connection.busy_timeout(BUSY).map_err(of_storage)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    seal::register(&connection).map_err(of_storage)?;
    for (name, value) in [("trusted_schema", false), ("cell_size_check", true)] {
        connection
            .pragma_update(None, name, value)
            .map_err(of_storage)?;
    }
    connection
        .pragma_update(None, "cache_size", CACHE)
        .map_err(of_storage)?;
    check_writable(&connection)?;
    Ok(connection)
}

/// SQLite opens a file it may not write as one to read, without a word.
fn check_writable(connection: &Connection) -> Result<(), LedgerError> {
    if connection.is_readonly("main").map_err(of_storage)? {
        return Err(LedgerCode::LedgerNotDurable.refuse("it can only be read"));
    }
    Ok(())
}

/// A ledger is made with a write-ahead log. One found without has been in other hands, or a failed
/// synchronisation has made SQLite fall back: its answer is read, and nothing is switched back.
pub(super) fn make_durable(connection: &Connection) -> Result<(), LedgerError> {
    let journal: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(of_storage)?;
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(of_storage)?;
    let synchronous: i64 = connection
        .pragma_query_value(None, "synchronous", |row| row.get(0))
        .map_err(of_storage)?;
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

/// Closing hides a checkpoint that failed, so it is asked for and its answer read. Others that read
/// keep it from finishing: then the log stays, which loses nothing.
pub(super) fn checkpoint(connection: &Connection) -> Result<(), LedgerError> {
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| {
            row.get::<_, i64>(0)
        })
        .map(drop)
        .map_err(of_storage)
}

/// Moves what an earlier writer left in the log into the main file. After a synchronisation that
/// failed the kernel shows bytes that are not on disk and will not write them again; written once
/// more they are.
fn settle_log(connection: &Connection) -> Result<(), LedgerError> {
    connection
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |row| {
            row.get::<_, i64>(0)
        })
        .map(drop)
        .map_err(|e| of_storage_or(LedgerCode::LedgerNotDurable, e))
}

/// Looks at the pages and indexes of a small ledger. A large one is checked row by row as it is read,
/// and as a whole when asked for.
pub(super) fn check_whole(connection: &Connection, file: &Path) -> Result<(), LedgerError> {
    settle_log(connection)?;
    match is_small(file)? {
        true => check_all(connection),
        false => Ok(()),
    }
}

/// Whether it is looked over as a whole each time it is opened.
pub(super) fn is_small(file: &Path) -> Result<bool, LedgerError> {
    Ok(std::fs::metadata(file).map_err(unreadable)?.len() <= SMALL)
}

/// SQLite's own check of every page, row and index.
pub(super) fn check_all(connection: &Connection) -> Result<(), LedgerError> {
    let said: String = connection
        .query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))
        .map_err(|e| of_storage_or(LedgerCode::LedgerDamaged, e))?;
    if said == "ok" {
        return Ok(());
    }
    Err(LedgerCode::LedgerDamaged.refuse(said))
}

pub(super) fn identity(connection: &Connection) -> Result<[u8; 16], LedgerError> {
    connection
        .query_row("SELECT id FROM identity WHERE one = 1", (), |row| {
            row.get(0)
        })
        .map_err(of_storage)
}

pub(super) fn check_file(file: &Path) -> Result<(), LedgerError> {
    for suffix in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(suffix);
        match std::fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => {
                return Err(LedgerCode::LedgerExposed.refuse("the ledger is not a regular file"));
            }
            Ok(found) => check_private(&found, "file")?,
            Err(_) if !suffix.is_empty() => {}
            Err(e) => return Err(unreadable(e)),
        }
    }
    Ok(())
}

pub(crate) fn check_private(found: &std::fs::Metadata, what: &str) -> Result<(), LedgerError> {
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

/// Locks and shared memory do not work over a network, whatever the mount says.
pub(super) fn check_storage(directory: &Path) -> Result<(), LedgerError> {
    let found = rustix::fs::statfs(directory).map_err(unreadable)?;
    check_local(found.f_type)
}

fn check_local(kind: i64) -> Result<(), LedgerError> {
    match REMOTE.iter().find(|(magic, _)| *magic == kind) {
        None => Ok(()),
        Some((_, name)) => {
            Err(LedgerCode::LedgerNotDurable.refuse(format!("the folder is on {name}")))
        }
    }
}

/// File systems of other machines, as statfs(2) numbers them.
const REMOTE: [(i64, &str); 7] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
];
/// SQLite before 3.51.3 can corrupt a write-ahead log that two connections reset at once.
const MIN_SQLITE: i32 = 3_051_003;
/// Statements kept ready: all there are.
const STATEMENTS: usize = 128;
/// Pages kept in memory, as SQLite counts KiB: without it the indexes of some ten thousand keys are read
/// from the file anew with each commit.
const CACHE: i64 = -16 * 1024;
/// Largest main file that is checked as a whole when opened, bytes: some milliseconds.
const SMALL: u64 = 2 << 20;

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

    #[test]
    fn a_file_that_can_only_be_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        drop(Connection::open(&file).unwrap());
        let read = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let refused = check_writable(&read).unwrap_err();
        assert_eq!(refused.code, LedgerCode::LedgerNotDurable);
    }

    #[test]
    fn storage_of_another_machine_is_refused() {
        const EXT4: i64 = 0xef53;
        assert!(check_local(EXT4).is_ok());
        for (magic, _) in REMOTE {
            let refused = check_local(magic).unwrap_err();
            assert_eq!(refused.code, LedgerCode::LedgerNotDurable);
        }
    }
}
