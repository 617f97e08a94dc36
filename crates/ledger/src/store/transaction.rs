//! A transaction whose own statements are prepared once, not parsed each time.

use rusqlite::Connection;

/// Undone when it is dropped, unless it was committed.
pub(super) struct Transaction<'a>(&'a Connection);

impl<'a> Transaction<'a> {
    pub(super) fn to_read(connection: &'a Connection) -> rusqlite::Result<Self> {
        run(connection, "BEGIN DEFERRED").map(|()| Self(connection))
    }

    pub(super) fn to_write(connection: &'a Connection) -> rusqlite::Result<Self> {
        run(connection, "BEGIN IMMEDIATE").map(|()| Self(connection))
    }

    pub(super) fn commit(self) -> rusqlite::Result<()> {
        run(self.0, "COMMIT")
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // SQLite has undone it by itself after some failures.
        if !self.0.is_autocommit() {
            let _ = run(self.0, "ROLLBACK");
        }
    }
}

/// Runs a statement without parameters or rows.
pub(super) fn run(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute(()).map(drop)
}
