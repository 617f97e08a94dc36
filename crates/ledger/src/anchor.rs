//! The head of the ledger, kept outside of it.
//!
//! A ledger put back from an old copy, or opened without its write-ahead log, is a perfectly good
//! database that has forgotten what was acknowledged. So each commit's number and chain digest also
//! go into a small file beside it. The file is written after the commit, never before: it may be
//! behind the ledger, never ahead of it.

use crate::{LedgerCode, LedgerError};
use flightproof_core::{Digest, Hasher};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How far a ledger has come: the number of its last commit, and a digest over all that changed
/// from the first commit to that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of commits.
    pub seq: u64,
    /// Digest over the changes of all of them, in order.
    pub chain: Digest,
}

impl Head {
    /// The head of a ledger that holds nothing yet.
    pub(crate) fn first(identity: &[u8; 16]) -> Self {
        Self {
            seq: 0,
            chain: Digest::keyed(b"flightproof-ledger-v2", identity),
        }
    }

    /// The chain's digest of a commit: what it changed, after all before it, and how many rows there
    /// are since.
    pub(crate) fn link(changes: &Digest, rows: u64) -> Digest {
        let mut hasher = Hasher::new();
        hasher.update(changes.as_bytes());
        hasher.update(&rows.to_be_bytes());
        hasher.finish()
    }
}

/// The file beside the ledger, and the lock that makes its holder the one writer.
#[derive(Debug)]
pub(crate) struct Anchor {
    file: File,
    /// Anchored, but perhaps not on disk yet.
    unsynced: Cell<bool>,
    /// What the file held when it was last read, and which head that was.
    seen: RefCell<Option<([u8; FILE_BYTES], Head)>>,
}

/// The right to write: one at a time, over all processes. Given back when dropped.
pub(crate) struct Turn<'a>(&'a File);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(self.0, FlockOperation::Unlock);
    }
}

impl Anchor {
    /// Name of the file in the state folder.
    pub(crate) const FILE: &'static str = "ledger.anchor";

    /// Makes the anchor of a new ledger, on disk before this returns.
    pub(crate) fn create(path: &Path, identity: &[u8; 16]) -> Result<Self, LedgerError> {
        let anchor = Self::of(path, OFlags::CREATE | OFlags::RDWR)?;
        let first = slot(identity, Head::first(identity));
        // Both slots: the file never changes its size again, so no write can run out of space.
        for at in [0, SLOT] {
            anchor.file.write_all_at(&first, at).map_err(unanchored)?;
        }
        anchor.file.sync_all().map_err(unanchored)?;
        Ok(anchor)
    }

    /// Opens the anchor of a ledger that exists.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::of(path, OFlags::RDWR)
    }

    fn of(path: &Path, flags: OFlags) -> Result<Self, LedgerError> {
        let fd = rustix::fs::open(
            path,
            flags | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(unanchored)?;
        let file = File::from(fd);
        let found = file.metadata().map_err(unanchored)?;
        if !found.is_file() {
            return Err(LedgerCode::LedgerExposed.refuse("the anchor is not a regular file"));
        }
        crate::store::check_private(&found, "anchor")?;
        Ok(Self {
            file,
            unsynced: Cell::new(false),
            seen: RefCell::new(None),
        })
    }

    /// Waits until nobody else writes.
    pub(crate) fn turn(&self, patience: Duration) -> Result<Turn<'_>, LedgerError> {
        let mut deadline = None;
        let mut pause = SHORTEST_PAUSE;
        loop {
            match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Turn(&self.file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    let end = *deadline.get_or_insert_with(|| Instant::now() + patience);
                    if Instant::now() >= end {
                        return Err(LedgerCode::LedgerBusy.refuse(format!("waited {patience:?}")));
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(e) => return Err(unanchored(e)),
            }
        }
    }

    /// The head that was last anchored. A write torn by a power cut leaves the one before.
    pub(crate) fn read(&self, identity: &[u8; 16]) -> Result<Head, LedgerError> {
        let mut bytes = [0; FILE_BYTES];
        self.file.read_exact_at(&mut bytes, 0).map_err(unanchored)?;
        if let Some((seen, head)) = *self.seen.borrow()
            && seen == bytes
        {
            return Ok(head);
        }
        let (even, odd) = bytes.split_at(SLOT_BYTES);
        let head = [even, odd]
            .into_iter()
            .filter_map(|slot| read_slot(slot, identity))
            .max_by_key(|head| head.seq)
            .ok_or_else(|| unanchored("it is damaged, or another ledger's"))?;
        *self.seen.borrow_mut() = Some((bytes, head));
        Ok(head)
    }

    /// The head that was last anchored, whichever ledger it belongs to.
    pub(crate) fn read_any(&self) -> Result<Head, LedgerError> {
        let mut named = [0; 24];
        self.file.read_exact_at(&mut named, 0).map_err(unanchored)?;
        let mut identity = [0; 16];
        identity.copy_from_slice(&named[8..]);
        self.read(&identity)
    }

    /// Anchors a head. The two slots take turns, so one is whole at any moment.
    pub(crate) fn advance(
        &self,
        identity: &[u8; 16],
        head: Head,
        now: bool,
    ) -> Result<(), LedgerError> {
        let (at, slot) = ((head.seq % 2) * SLOT, slot(identity, head));
        self.file
            .write_all_at(&slot[..USED], at)
            .map_err(unanchored)?;
        if let Some((seen, last)) = &mut *self.seen.borrow_mut() {
            let at = if at == 0 { 0 } else { SLOT_BYTES };
            seen[at..at + USED].copy_from_slice(&slot[..USED]);
            *last = head;
        }
        self.unsynced.set(true);
        if now || head.seq.is_multiple_of(SYNC_EVERY) {
            self.sync()?;
        }
        Ok(())
    }

    /// Puts what was anchored on disk.
    pub(crate) fn sync(&self) -> Result<(), LedgerError> {
        if self.unsynced.get() {
            self.file.sync_data().map_err(unanchored)?;
            self.unsynced.set(false);
        }
        Ok(())
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        // A program that does not close leaves the anchor in the page cache: safe from its own
        // death, and behind by at most SYNC_EVERY commits after a power cut.
        let _ = self.sync();
    }
}

/// Every so many commits the anchor goes to disk. Each costs a synchronisation, which is what a
/// commit costs too; admissions and money do not wait for it.
pub(crate) const SYNC_EVERY: u64 = 64;
/// Heads the ledger remembers: the anchor must name one of them. Far more than the anchor can be
/// behind.
pub(crate) const REMEMBERED: u64 = 1024;

/// A slot has a disk sector of its own.
const SLOT_BYTES: usize = 512;
const SLOT: u64 = 512;
const FILE_BYTES: usize = 2 * SLOT_BYTES;
/// Magic, identity, number, chain, check.
const USED: usize = 8 + 16 + 8 + 32 + 32;
const MAGIC: &[u8; 8] = b"FLTPANC1";
/// Between two tries to become the writer: a commit takes some hundred microseconds.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

fn slot(identity: &[u8; 16], head: Head) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..24].copy_from_slice(identity);
    slot[24..32].copy_from_slice(&head.seq.to_be_bytes());
    slot[32..64].copy_from_slice(head.chain.as_bytes());
    let check = Digest::of(&slot[..64]);
    slot[64..USED].copy_from_slice(check.as_bytes());
    slot
}

fn read_slot(slot: &[u8], identity: &[u8; 16]) -> Option<Head> {
    let (said, check) = slot.get(..USED)?.split_at(64);
    if &said[..8] != MAGIC || &said[8..24] != identity || Digest::of(said).as_bytes() != check {
        return None;
    }
    Some(Head {
        seq: u64::from_be_bytes(said[24..32].try_into().ok()?),
        chain: Digest::from_bytes(said[32..64].try_into().ok()?),
    })
}

fn unanchored(reason: impl std::fmt::Display) -> LedgerError {
    LedgerCode::LedgerUnanchored.refuse(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 16] = [7; 16];

    fn head(seq: u64) -> Head {
        Head {
            seq,
            chain: Digest::of(&seq.to_be_bytes()),
        }
    }

    #[test]
    fn a_torn_write_leaves_the_head_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        let anchor = Anchor::create(&path, &ID).unwrap();
        for seq in 1..=5 {
            anchor.advance(&ID, head(seq), false).unwrap();
        }
        assert_eq!(anchor.read(&ID).unwrap(), head(5));
        let whole = std::fs::read(&path).unwrap();
        let next = slot(&ID, head(6));
        for torn in 0..USED {
            let mut bytes = whole.clone();
            bytes[..torn].copy_from_slice(&next[..torn]);
            std::fs::write(&path, &bytes).unwrap();
            let found = Anchor::open(&path).unwrap().read(&ID).unwrap();
            assert_eq!(found, head(5), "{torn}");
        }
    }

    #[test]
    fn a_damaged_anchor_or_another_ledgers_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        drop(Anchor::create(&path, &ID).unwrap());
        let refused = Anchor::open(&path).unwrap().read(&[8; 16]).unwrap_err();
        assert_eq!(refused.code, LedgerCode::LedgerUnanchored);
        std::fs::write(&path, [0; FILE_BYTES]).unwrap();
        let refused = Anchor::open(&path).unwrap().read(&ID).unwrap_err();
        assert_eq!(refused.code, LedgerCode::LedgerUnanchored);
        std::fs::write(&path, b"short").unwrap();
        let refused = Anchor::open(&path).unwrap().read(&ID).unwrap_err();
        assert_eq!(refused.code, LedgerCode::LedgerUnanchored);
    }
}
