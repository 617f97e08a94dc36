//! The bootstrap frame: forged bytes, sources that break their contract, peers that keep one
//! waiting, descriptors of every kind, and what becomes of a payload.

#![expect(
    clippy::unwrap_used,
    reason = "a pipe that cannot be made is a failed test"
)]

mod asynchronous;
mod deadlines;
mod delivery;
mod descriptors;
mod fake;
mod forged;
mod payload;
mod refusals;
mod sinks;
mod stdin;
