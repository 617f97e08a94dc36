//! Changesets: made, applied, refused, interrupted, interfered with.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made is a failed test"
)]

mod creation;
mod edits;
mod interruption;
mod refusals;
mod sealed;
mod tree;
