//! The certificate log: an append-only list of what was certified, admitted and refused, in the
//! shapes of C2SP (`tlog-tiles`, `signed-note`, `tlog-checkpoint`, `tlog-proof`), without a network.

mod entry;
mod note;
mod proof;
mod tiles;

pub use entry::{Entry, Event, MAX_ENTRY_BYTES};
pub use note::{Checkpoint, LogKey, LogName};
pub use proof::{Included, Proof, included};
pub use tiles::{TileFile, Tree, stale_parts};
