//! The bootstrap frame: `u32 BE length | payload of 1..=65536 bytes | EOF`. It carries one secret,
//! once, into a session.
//!
//! - [`receive`] reads it from a [`Source`]: a [`Descriptor`] handed over by whoever started this
//!   process, or what was its standard input. [`send`] writes it. With the feature `tokio`,
//!   [`receive_async`] reads it from anything asynchronous.
//! - One deadline covers everything, the close included. A frame whose close is not confirmed in
//!   time is never a success: [`FrameCode::Timeout`](crate::FrameCode::Timeout) comes first, then
//!   [`FrameCode::CloseUnconfirmed`](crate::FrameCode::CloseUnconfirmed), then every other code.
//! - The secret is only ever in one buffer of fixed size. It is erased on every path; after a
//!   success, by [`SecretPayload::consume`].
//! - Deadlines are of the monotonic clock. It does not go on while the machine is suspended.

mod beside;
mod buffer;
mod closing;
mod descriptor;
mod limits;
mod panics;
mod payload;
mod sink;
mod source;
mod state;
#[cfg(feature = "tokio")]
mod tokio;

#[cfg(feature = "tokio")]
pub use self::tokio::receive_async;
pub use closing::Waits;
pub use descriptor::Descriptor;
pub use limits::Limits;
pub use payload::SecretPayload;
pub use sink::{DescriptorSink, Sink, send};
pub use source::{Source, receive};
pub use state::FrameState;

/// Bytes of the header: the length of the payload, unsigned, big-endian.
pub const HEADER_BYTES: usize = 4;
/// Most bytes of a payload, 64 KiB: a job description or a credential, many times over.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 10;
/// Bytes of the buffer a frame is read into: one more than the longest frame has, so that what
/// follows a frame shows without another buffer.
pub const BUFFER_BYTES: usize = HEADER_BYTES + MAX_PAYLOAD_BYTES + 1;
