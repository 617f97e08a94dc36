//! Points of the code at which a test can end the process. Nothing arms them but a test that runs
//! in the same process.
#![doc(hidden)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A place between two steps that must not be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Point {
    /// Everything is written, nothing committed.
    BeforeCommit = 1,
    /// On disk; nobody was told, and the anchor is behind.
    AfterCommit = 2,
    /// A message is on its way, its acknowledgement has not come.
    AfterSend = 3,
    /// The effect of a message is committed, its acknowledgement is not sent.
    BeforeAcknowledge = 4,
    /// The acknowledgement is sent.
    AfterAcknowledge = 5,
    /// The acknowledgement came, and is not recorded.
    BeforeMark = 6,
}

impl Point {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::BeforeCommit,
        Self::AfterCommit,
        Self::AfterSend,
        Self::BeforeAcknowledge,
        Self::AfterAcknowledge,
        Self::BeforeMark,
    ];
}

static ARMED: AtomicU32 = AtomicU32::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);

/// From now on the `nth` passage (counted from 1) of this point aborts the process.
pub fn arm(point: Point, nth: u64) {
    LEFT.store(nth, Ordering::SeqCst);
    ARMED.store(point as u32, Ordering::SeqCst);
}

/// Passes a point.
pub(crate) fn reach(point: Point) {
    if ARMED.load(Ordering::Relaxed) == point as u32 && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        std::process::abort();
    }
}
