//! Bytes that cross the wall of a session: the bootstrap frame that carries one secret in, the
//! channel of bounded messages between host and runner, and the vocabulary spoken over it.
//!
//! Both are state machines over bytes the caller hands them, so any split gives the same result;
//! adapters read and write them from descriptors. What arrives was written by somebody who may be
//! hostile.
#![forbid(unsafe_code)]

mod adoption;
pub mod bootstrap;
pub mod channel;
mod code;
#[doc(hidden)]
pub mod fuzzing;
pub mod protocol;
mod unblocked;

pub use code::{FrameCode, FrameError};
