//! Archives that are never wholly in memory: packed to a file, verified and extracted as they come
//! or from a file by two threads. Both formats, one engine.
//!
//! Needs root, for a file system that is too small: fails without it.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made is a failed test"
)]

mod bounds;
mod extracting;
mod formats;
mod packing;
mod reading;
