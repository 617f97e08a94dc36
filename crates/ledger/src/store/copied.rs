//! A ledger in a folder that can only be read: opened as a copy, since opening one writes.

use super::connect::check_file;
use crate::store::unreadable;
use crate::{Ledger, LedgerCode, LedgerError};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// How often a copy is tried while somebody writes.
const TRIES: u32 = 5;

/// What of a ledger is copied: file, log, anchor.
const PARTS: [&str; 3] = [Ledger::FILE, "ledger.sqlite-wal", Ledger::ANCHOR];

impl Ledger {
    /// Opens a copy of the ledger in `directory`, made in the empty folder `scratch`. It is checked like
    /// the ledger itself; what is written to it goes nowhere else.
    ///
    /// # Errors
    /// As [`Ledger::open`], but one that is not there is not made; `LEDGER_BUSY` if it changes all the
    /// while.
    pub fn open_copy(directory: &Path, scratch: &Path) -> Result<Self, LedgerError> {
        check_file(&directory.join(Self::FILE))?;
        for _ in 0..TRIES {
            let before = stamps(directory)?;
            for part in PARTS {
                copy(&directory.join(part), &scratch.join(part))?;
            }
            if stamps(directory)? == before {
                return Self::open(scratch);
            }
        }
        Err(LedgerCode::LedgerBusy.refuse("it changes while it is copied"))
    }
}

/// What changes with every write to a file, of each part that is there.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamps(directory: &Path) -> Result<Vec<Stamp>, LedgerError> {
    let stamp = |part: &&str| match fs::symlink_metadata(directory.join(part)) {
        Ok(found) => Ok(Some((
            found.ino(),
            found.len(),
            found.mtime(),
            found.mtime_nsec(),
        ))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unreadable(e)),
    };
    PARTS.iter().map(stamp).collect()
}

fn copy(from: &Path, to: &Path) -> Result<(), LedgerError> {
    let removed = fs::remove_file(to);
    if let Err(e) = removed
        && e.kind() != std::io::ErrorKind::NotFound
    {
        return Err(unreadable(e));
    }
    match fs::copy(from, to) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(unreadable(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cap, Scope};
    use std::os::unix::fs::PermissionsExt as _;

    fn private() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        dir
    }

    #[test]
    fn a_copy_says_what_the_ledger_says_and_leaves_it_as_it_is() {
        let (home, scratch) = (private(), private());
        let mut ledger = Ledger::open(home.path()).unwrap();
        let cap = |usd: &str| Cap::usd(usd.parse().unwrap());
        ledger.state_cap(Scope::Total, cap("20"), 1).unwrap();
        // Its log is not in the main file yet.
        let before = stamps(home.path()).unwrap();
        let mut copy = Ledger::open_copy(home.path(), scratch.path()).unwrap();
        assert_eq!(copy.head().unwrap(), ledger.head().unwrap());
        assert_eq!(copy.spending(1).unwrap(), ledger.spending(1).unwrap());
        assert_eq!(copy.check().unwrap(), ledger.check().unwrap());
        copy.state_cap(Scope::Total, cap("1"), 2).unwrap();
        assert_eq!(ledger.spending(1).unwrap().caps.total, Some(cap("20")));
        assert_eq!(stamps(home.path()).unwrap(), before);
    }

    #[test]
    fn a_ledger_that_is_not_there_or_damaged_has_no_copy() {
        let (home, scratch) = (private(), private());
        let code = || {
            Ledger::open_copy(home.path(), scratch.path())
                .unwrap_err()
                .code
        };
        assert_eq!(code(), LedgerCode::LedgerUnreadable);
        assert!(stamps(home.path()).unwrap().iter().all(Option::is_none));
        Ledger::open(home.path()).unwrap().close().unwrap();
        fs::remove_file(home.path().join(Ledger::ANCHOR)).unwrap();
        assert_eq!(code(), LedgerCode::LedgerUnanchored);
    }
}
