//! The two archive formats a session is fed with: PAWS1 (a workspace) and PAAR1 (a built artifact).
//!
//! Both are a magic, a length, one canonical JSON manifest and the bytes of the files one after
//! the other. Everything is decided from the manifest before a byte of payload is believed or a
//! file is created. What is read here was written by strangers; nothing is normalised, skipped or
//! repaired: it is exactly right or it is refused with one code.
#![forbid(unsafe_code)]

mod apply;
mod beneath;
mod choice;
mod code;
mod crew;
mod directory;
mod draft;
mod extract;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod json;
mod listing;
pub mod names;
mod order;
pub mod paar;
pub mod paws;
mod payload;
mod progress;
mod reading;
mod source;
mod staging;
mod tree;
mod workspace;

#[doc(hidden)]
pub use apply::rehearsal;
pub use apply::{
    Applied, Kept, Recovered, Seal, apply, apply_sealed, pending, recover, recover_sealed,
};
pub use choice::{Choice, Everything, HEAD_BYTES, Without};
pub use code::{ArchiveCode, ArchiveError};
pub use directory::pack_directory;
pub use extract::{Extracted, Extraction, extract, overlay};
pub use names::Names;
pub use progress::Progress;
pub use workspace::{Admitted, LeftOut, Reason, Selection, Workspace};
