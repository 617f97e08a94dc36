//! Making a ledger, and bringing an older one up to date.

use crate::anchor::Anchor;
use crate::store::connect::{check_private, checkpoint, connect};
use crate::store::{of_storage, unreadable};
use crate::{LedgerCode, LedgerError, schema};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

pub(super) fn make_directory(directory: &Path) -> Result<(), LedgerError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(unreadable)?;
    check_private(&std::fs::metadata(directory).map_err(unreadable)?, "folder")
}

/// Builds the file under another name and moves it into place whole: a crash leaves no ledger or
/// a complete one. The lock on the folder makes the other name ours.
pub(super) fn create(directory: &Path, file: &Path) -> Result<(), LedgerError> {
    let folder = lock(directory)?;
    if std::fs::symlink_metadata(file).is_ok() {
        return Ok(());
    }
    if let Some(seq) = anchored(directory)? {
        return Err(
            LedgerCode::LedgerBehind.refuse(format!("anchored at {seq}, and there is no ledger"))
        );
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
    let identity = new_identity()?;
    write_tables(&draft, &identity)?;
    check_logged(&draft)?;
    rustix::fs::fsync(&handle).map_err(unreadable)?;
    place_anchor(directory, &folder, &identity)?;
    std::fs::rename(&draft, file).map_err(unreadable)?;
    rustix::fs::fsync(&folder).map_err(unreadable)?;
    match directory.parent() {
        Some(parent) if parent != Path::new("") => sync_folder(parent),
        _ => Ok(()),
    }
}

/// Brings an older ledger up to date. Its anchor is on disk first: a crash in between leaves an
/// older ledger with a fresh anchor, which is what a second try starts from.
pub(super) fn migrate(directory: &Path, connection: &mut Connection) -> Result<(), LedgerError> {
    if schema::version(connection)? == schema::VERSION {
        return schema::bring_up_to_date(connection, new_identity);
    }
    let folder = lock(directory)?;
    schema::bring_up_to_date(connection, || {
        if let Some(seq) = anchored(directory)? {
            return Err(LedgerCode::LedgerBehind
                .refuse(format!("anchored at {seq}, and older than any anchor")));
        }
        let identity = new_identity()?;
        place_anchor(directory, &folder, &identity)?;
        Ok(identity)
    })
}

/// How far an anchor says the ledger was; `None` if there is no anchor or it says nothing yet.
fn anchored(directory: &Path) -> Result<Option<u64>, LedgerError> {
    let path = directory.join(Anchor::FILE);
    if std::fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    let head = Anchor::open(&path)?.read_any()?;
    Ok((head.seq > 0).then_some(head.seq))
}

fn place_anchor(
    directory: &Path,
    folder: &OwnedFd,
    identity: &[u8; 16],
) -> Result<(), LedgerError> {
    let draft = directory.join("ledger.anchor.draft");
    let _ = std::fs::remove_file(&draft);
    drop(Anchor::create(&draft, identity)?);
    std::fs::rename(&draft, directory.join(Anchor::FILE)).map_err(unreadable)?;
    rustix::fs::fsync(folder).map_err(unreadable)
}

fn new_identity() -> Result<[u8; 16], LedgerError> {
    let mut identity = [0; 16];
    let got = rustix::rand::getrandom(&mut identity, rustix::rand::GetRandomFlags::empty())
        .map_err(unreadable)?;
    if got == identity.len() {
        return Ok(identity);
    }
    Err(unreadable("the machine gave too little entropy"))
}

fn write_tables(draft: &Path, identity: &[u8; 16]) -> Result<(), LedgerError> {
    let mut connection = connect(draft)?;
    // Where the first synchronisation fails, SQLite goes on without a log and calls it "wal".
    let journal: String = connection
        .query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))
        .map_err(of_storage)?;
    if journal != "wal" {
        return Err(LedgerCode::LedgerNotDurable.refuse(format!("journal_mode {journal}")));
    }
    super::connect::make_durable(&connection)?;
    schema::write(&mut connection, identity)?;
    checkpoint(&connection)?;
    connection.close().map_err(|(_, e)| of_storage(e))
}

/// Only the file itself says for certain that it is written through a log.
fn check_logged(draft: &Path) -> Result<(), LedgerError> {
    /// Where SQLite's header says how the file is written and read, and what it says of a log.
    const VERSIONS: std::ops::Range<usize> = 18..20;
    const LOGGED: [u8; 2] = [2, 2];
    let bytes = std::fs::read(draft).map_err(unreadable)?;
    if bytes.get(VERSIONS) == Some(&LOGGED) {
        return Ok(());
    }
    Err(LedgerCode::LedgerNotDurable.refuse("the new file is not written through a log"))
}

fn lock(directory: &Path) -> Result<OwnedFd, LedgerError> {
    let folder = rustix::fs::open(
        directory,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(unreadable)?;
    rustix::fs::flock(&folder, FlockOperation::LockExclusive).map_err(unreadable)?;
    Ok(folder)
}

pub(super) fn sync_folder(directory: &Path) -> Result<(), LedgerError> {
    File::open(directory)
        .and_then(|folder| folder.sync_all())
        .map_err(unreadable)
}
