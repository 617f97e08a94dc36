//! The handle: opening, reading, writing, closing.

mod connect;
mod copied;
mod create;
mod shared;
mod transaction;
mod writing;

pub(crate) use connect::check_private;
pub use shared::{Shared, Writer};
use transaction::Transaction;
use writing::Counted;
pub use writing::{Reading, Writing};
pub(crate) use writing::{Table, store_head};

use crate::anchor::{Anchor, Head};
use crate::{AdmissionLock, LedgerCode, LedgerError, faults};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The state of record of one user on one machine.
///
/// Everything is read and written through closures: [`Ledger::read`] sees one moment, and what
/// [`Ledger::write`] changes is on disk as a whole before it returns, or not at all. After a failed
/// commit the handle refuses everything: what is on disk is then unknown to it, and only
/// [`Ledger::reopen`] may say.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    anchor: Anchor,
    identity: [u8; 16],
    directory: PathBuf,
    /// The last head this handle wrote.
    last: Option<Counted>,
    poisoned: bool,
}

impl Ledger {
    /// Name of the file in the state folder.
    pub const FILE: &'static str = "ledger.sqlite";
    /// Name of the file that holds its head, in the same folder.
    pub const ANCHOR: &'static str = Anchor::FILE;

    /// Opens the ledger in `directory`, making folder and file when there is none.
    ///
    /// # Errors
    /// `LEDGER_EXPOSED` if others could write it; `LEDGER_UNREADABLE`, `LEDGER_DAMAGED` or
    /// `LEDGER_TOO_NEW` for a file that is there and is not a whole ledger of this version (it is
    /// never made anew); `LEDGER_BEHIND` or `LEDGER_UNANCHORED` for one that does not reach what its
    /// anchor says; `LEDGER_NOT_DURABLE` if the storage does not take the settings; `LEDGER_BUSY` if
    /// another process holds it too long; `LEDGER_FULL` if there is no room to open it.
    pub fn open(directory: &Path) -> Result<Self, LedgerError> {
        Self::open_there(directory).map_err(|e| of_room(directory, e))
    }

    fn open_there(directory: &Path) -> Result<Self, LedgerError> {
        create::make_directory(directory)?;
        connect::check_storage(directory)?;
        let file = directory.join(Self::FILE);
        if std::fs::symlink_metadata(&file).is_err() {
            create::create(directory, &file)?;
        }
        connect::check_file(&file)?;
        let mut connection = connect::connect(&file)?;
        create::migrate(directory, &mut connection)?;
        connect::make_durable(&connection)?;
        connect::check_whole(&connection, &file)?;
        let identity = connect::identity(&connection)?;
        let anchor = Anchor::open(&directory.join(Self::ANCHOR))?;
        let ledger = Self {
            connection,
            anchor,
            identity,
            directory: directory.to_owned(),
            last: None,
            poisoned: false,
        };
        ledger.hold_against_anchor()?;
        if connect::is_small(&file)? {
            ledger.check_rows()?;
        }
        Ok(ledger)
    }

    /// Drops this handle and opens the ledger anew: the only way on after `COMMIT_UNCERTAIN`.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn reopen(self) -> Result<Self, LedgerError> {
        let directory = self.directory.clone();
        drop(self);
        Self::open(&directory)
    }

    /// Closes the ledger: moves the log into the main file, and puts file, anchor and folder on
    /// disk. Nothing that was acknowledged depends on it.
    ///
    /// # Errors
    /// `CLOSE_UNCERTAIN` if the storage refused any of it, or an earlier commit failed.
    pub fn close(self) -> Result<(), LedgerError> {
        if self.poisoned {
            return Err(LedgerCode::CloseUncertain.refuse("an earlier commit failed"));
        }
        let uncertain = |e: LedgerError| LedgerCode::CloseUncertain.refuse(e.detail);
        connect::checkpoint(&self.connection).map_err(uncertain)?;
        self.anchor.sync().map_err(uncertain)?;
        self.connection
            .close()
            .map_err(|(_, e)| LedgerCode::CloseUncertain.refuse(e))?;
        create::sync_folder(&self.directory).map_err(uncertain)
    }

    /// Waits for the right to move branches. Held by an admission from before its intent to after
    /// its outcome, and by a recovery throughout.
    ///
    /// # Errors
    /// `LEDGER_BUSY` if another process does not let go in time.
    pub fn lock_admissions(&self, patience: Duration) -> Result<AdmissionLock, LedgerError> {
        AdmissionLock::acquire(&self.directory.join("admission.lock"), patience)
    }

    /// The ledger's own name, given when it was made. Signed statements name it, so that none fits
    /// another ledger.
    pub fn identity(&self) -> String {
        self.identity.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// How far the ledger has come.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn head(&self) -> Result<Head, LedgerError> {
        self.read(|reading| self.head_of(reading))
    }

    /// How far it has come at the moment of a reading that has read nothing yet: the anchor is looked at
    /// first, and would be ahead of what was read before.
    pub(crate) fn head_of(&self, reading: &Reading<'_>) -> Result<Head, LedgerError> {
        Ok(reading.head(&self.anchor, &self.identity)?.head)
    }

    /// Reads, all of it at one moment.
    ///
    /// # Errors
    /// `COMMIT_UNCERTAIN` after a failed commit, `LEDGER_UNREADABLE`, `LEDGER_BUSY` if another process
    /// holds the file for itself alone, and those of `query`.
    pub fn read<T>(
        &self,
        query: impl FnOnce(&Reading<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.usable()?;
        Transaction::to_read(&self.connection)
            .map_err(of_storage)
            .and_then(|_tx| query(&Reading::new(&self.connection)))
            .map_err(|e| of_room(&self.directory, e))
    }

    /// Writes: everything `change` does is committed and on disk when this returns, or none of it
    /// happened. One writer at a time, over all processes.
    ///
    /// # Errors
    /// Those of `change`, and then nothing was written; `LEDGER_BUSY` if another writer does not let
    /// go in time; `LEDGER_BEHIND` if the ledger lost what was anchored; `COMMIT_UNCERTAIN` if the
    /// commit failed: reopen, and look up what `change` was about.
    pub fn write<T>(
        &mut self,
        change: impl FnOnce(&Writing<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.write_there(change)
            .map_err(|e| of_room(&self.directory, e))
    }

    fn write_there<T>(
        &mut self,
        change: impl FnOnce(&Writing<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.usable()?;
        let turn = self.anchor.turn(BUSY)?;
        let tx = Transaction::to_write(&self.connection).map_err(of_storage)?;
        let writing = Writing::begin(&self.connection, &self.anchor, &self.identity, self.last)?;
        let answer = change(&writing);
        if writing.storage_failed() {
            self.poisoned = true;
            answer?;
            return Err(
                LedgerCode::LedgerUnreadable.refuse("the storage failed, nothing was written")
            );
        }
        let answer = answer?;
        let finished = writing.finish();
        self.poisoned = writing.storage_failed();
        let Some((at, at_once)) = finished? else {
            return Ok(answer);
        };
        faults::reach(faults::Point::BeforeCommit);
        let committed = tx
            .commit()
            .map_err(|e| LedgerCode::CommitUncertain.refuse(e));
        faults::reach(faults::Point::AfterCommit);
        let anchored = committed.and_then(|()| {
            self.anchor
                .advance(&self.identity, at.head, at_once)
                .map_err(|e| LedgerCode::CommitUncertain.refuse(e.detail))
        });
        drop(turn);
        self.last = Some(at);
        if anchored.is_err() {
            self.poisoned = true;
        }
        anchored.map(|()| answer)
    }

    /// Looks at every page, row and index. Returns how many rows there are. A small ledger was looked at
    /// like this when it was opened.
    ///
    /// # Errors
    /// `LEDGER_DAMAGED` with the first thing that is not as it was written, and those of
    /// [`Ledger::read`].
    pub fn check(&self) -> Result<u64, LedgerError> {
        self.usable()?;
        connect::check_all(&self.connection)?;
        self.check_rows()
    }

    /// Looks at the seal of every row. No row ever goes, so a row that is missing was taken: all rows
    /// there are, against those the head says were written.
    fn check_rows(&self) -> Result<u64, LedgerError> {
        self.read(|r| {
            let written = r.head(&self.anchor, &self.identity)?.rows;
            let mut found = 0;
            for table in crate::export::TABLES {
                found += r.count_whole(table)?;
            }
            match written {
                Some(written) if written == found => Ok(found),
                Some(written) => Err(LedgerCode::LedgerDamaged
                    .refuse(format!("{found} rows, and {written} were written"))),
                None => Err(LedgerCode::LedgerDamaged.refuse("its rows are not counted")),
            }
        })
    }

    fn usable(&self) -> Result<(), LedgerError> {
        if self.poisoned {
            return Err(
                LedgerCode::CommitUncertain.refuse("an earlier commit on this handle failed")
            );
        }
        Ok(())
    }

    /// A program that died between a commit and its anchor left the anchor behind: it is brought up
    /// here. One that is ahead of the ledger means that the ledger has forgotten something.
    fn hold_against_anchor(&self) -> Result<(), LedgerError> {
        let _turn = self.anchor.turn(BUSY)?;
        let head = self.head()?;
        if self.anchor.read(&self.identity)? != head {
            self.anchor.advance(&self.identity, head, true)?;
        }
        Ok(())
    }
}

/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(10);

pub(crate) fn unreadable(reason: impl std::fmt::Display) -> LedgerError {
    LedgerCode::LedgerUnreadable.refuse(reason)
}

/// What SQLite refused.
pub(crate) fn of_storage(error: rusqlite::Error) -> LedgerError {
    of_storage_or(LedgerCode::LedgerUnreadable, error)
}

/// What SQLite refused, under `code` unless it has a cure of its own: a ledger under a full disk, or
/// one that somebody else holds, is whole.
pub(crate) fn of_storage_or(code: LedgerCode, error: rusqlite::Error) -> LedgerError {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull};
    match error.sqlite_error_code() {
        Some(DiskFull) => LedgerCode::LedgerFull.refuse(error),
        Some(DatabaseBusy | DatabaseLocked) => LedgerCode::LedgerBusy.refuse(error),
        _ => code.refuse(error),
    }
}

/// Room that a ledger needs to be opened, in bytes: what is mapped beside it, and a first log.
const ROOM: u64 = 128 * 1024;

/// Where there is no room, opening and mapping fail under other names: nothing is said of the ledger
/// then but that.
fn of_room(directory: &Path, refused: LedgerError) -> LedgerError {
    let by_storage = matches!(
        refused.code,
        LedgerCode::LedgerUnreadable | LedgerCode::LedgerNotDurable | LedgerCode::LedgerUnanchored
    );
    let room = rustix::fs::statvfs(directory).map(|there| there.f_bavail * there.f_frsize);
    match by_storage && room.is_ok_and(|room| room < ROOM) {
        true => LedgerCode::LedgerFull.refuse(refused.detail),
        false => refused,
    }
}

/// SQLite integers are signed; a time beyond them is as good as the last one.
pub(crate) fn seconds(unix: u64) -> i64 {
    i64::try_from(unix).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cap, Scope};
    use flightproof_core::MicroUsd;

    #[test]
    fn without_room_a_ledger_that_cannot_be_opened_is_not_said_to_be_lost() {
        let temp = tempfile::tempdir().unwrap();
        // A file system that never has room.
        let full = Path::new("/proc");
        for (code, at_room) in [
            (LedgerCode::LedgerUnreadable, LedgerCode::LedgerFull),
            (LedgerCode::LedgerNotDurable, LedgerCode::LedgerFull),
            (LedgerCode::LedgerUnanchored, LedgerCode::LedgerFull),
            (LedgerCode::LedgerDamaged, LedgerCode::LedgerDamaged),
            (LedgerCode::LedgerExposed, LedgerCode::LedgerExposed),
        ] {
            assert_eq!(of_room(full, code.refuse("x")).code, at_room);
            assert_eq!(of_room(temp.path(), code.refuse("x")).code, code);
        }
    }

    #[test]
    fn a_full_disk_is_said_by_name_and_loses_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let mut ledger = Ledger::open(&state).unwrap();
        let cap = Cap::usd(MicroUsd::from_micros(1_000_000).unwrap());
        let pages: i64 = ledger
            .connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        ledger
            .connection
            .pragma_update(None, "max_page_count", pages + 1)
            .unwrap();
        let mut stated = 0;
        let refused = loop {
            match ledger.state_cap(Scope::Total, cap, stated) {
                Ok(()) => stated += 1,
                Err(refused) => break refused,
            }
            assert!(stated < 10_000, "the disk never fills");
        };
        assert_eq!(refused.code, LedgerCode::LedgerFull);
        let poisoned = ledger.state_cap(Scope::Total, cap, 0).map_err(|e| e.code);
        assert_eq!(poisoned, Err(LedgerCode::CommitUncertain));
        let ledger = ledger.reopen().unwrap();
        assert_eq!(ledger.head().unwrap().seq, stated);
        assert!(ledger.check().unwrap() >= stated);
    }
}
