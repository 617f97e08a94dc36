//! Bytes that cross the wall of a session: the channel of bounded messages between host and
//! runner, and the vocabulary spoken over it.
//!
//! The channel is a state machine over bytes the caller hands it, so any split of them gives the
//! same result; adapters read and write them from descriptors. What arrives was written by
//! somebody who may be hostile.
#![forbid(unsafe_code)]

pub mod channel;
mod code;
#[doc(hidden)]
pub mod fuzzing;
pub mod protocol;

pub use code::{FrameCode, FrameError};
