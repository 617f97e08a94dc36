//! Forged terminal results of agent programs: every shape that has been recorded in public, and
//! what was made up beside them. Limits are one dollar and ten turns unless a row says otherwise.

mod document;
mod heads;
pub mod plan;
mod rows;

pub use document::Document;
pub use heads::heads;
pub use rows::rows;

/// The dollars every row may spend, unless it says otherwise.
pub const BUDGET: &str = "1";
/// The turns every row may take.
pub const TURNS: u32 = 10;
/// The session every row was started as.
pub const SESSION: [u8; 16] = [7; 16];
/// The text of [`SESSION`]: a UUID of version 4.
pub const SESSION_TEXT: &str = "07070707-0707-4707-8707-070707070707";
/// What an honest result costs, in micro-dollars, rounded up.
pub const HONEST_MICROS: u64 = 533_159;
/// Stands in every text that a result carries; it must never be seen again.
pub const MARKER: &str = "zebra-crossing";

/// One outcome of a run that must be refused, and one like it that must not.
#[derive(Debug, Clone)]
pub struct Row {
    /// The number of the trap in the list of traps, 1 to 38; 0 for what is not on it.
    pub trap: u8,
    /// What happens, for the message of a failed test.
    pub name: &'static str,
    /// Dollars the run may spend.
    pub budget: &'static str,
    /// The outcome.
    pub run: Run,
    /// The code of the refusal, without the name of the crate.
    pub expect: &'static str,
    /// What must become of the hold.
    pub hold: Hold,
    /// An outcome that breaks no rule.
    pub twin: Run,
}

/// What came out of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Everything it printed.
    pub stdout: Vec<u8>,
    /// How it ended.
    pub end: End,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With an exit status.
    Exit(i32),
    /// By a signal.
    Signal(i32),
    /// It was still running at its deadline.
    Overdue,
}

/// What becomes of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It is kept in full.
    Keep,
    /// So many micro-dollars are spent.
    Settle(u64),
}
