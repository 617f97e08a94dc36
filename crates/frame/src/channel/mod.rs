//! The session channel: `u32 BE length of the body | u8 kind | u32 BE sequence number | body`.

mod blocking;
mod deadline;
mod decoder;
mod rules;

pub use blocking::{Payload, RunnerChannel};
pub use deadline::HostChannel;
pub use decoder::Decoder;
pub use rules::{Answer, Event, ReplyReader, RequestReader};

use crate::code::{FrameCode, FrameError};
use std::fmt;

/// Bytes before the body of a message.
pub const HEADER_BYTES: usize = 9;
/// Most bytes of a body, 4 MiB: one reply with both output streams of a program at their usual
/// limit, as base64. It is also all that one request can make the host hold.
pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Most bytes of a DATA body, 256 KiB: an upload needs no more memory than this.
pub const MAX_DATA_BYTES: usize = 256 << 10;

/// Most bytes of a greeting, 4 KiB: it comes before anything is known of who says it, and the
/// runner's has about a hundred.
pub const MAX_HELLO_BYTES: usize = 4 << 10;
/// Most bytes the host takes from one session, headers included, 4 GiB: a thousand replies at their
/// limit, or four million of a kilobyte. Each reply is small enough to hold; this is what keeps a
/// session from being fed, hashed and recorded for as long as it lives.
pub const MAX_SESSION_BYTES: u64 = 4 << 30;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The runner's first and only greeting, sequence number 0.
    Hello = 1,
    /// The host asks.
    Request = 2,
    /// A piece of what a request promised.
    Data = 3,
    /// The end of a request. Carries nothing.
    End = 4,
    /// The runner answers.
    Reply = 5,
}

/// One message, whole. Its body is never shown: it may be a secret, or written by somebody hostile.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// Which request it belongs to.
    pub seq: u32,
    /// What it carries.
    pub body: Vec<u8>,
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, seq, body } = self;
        write!(f, "{kind:?} {seq} of {} bytes", body.len())
    }
}

impl Kind {
    /// Least and most bytes of a body of this kind.
    const fn limits(self) -> (usize, usize) {
        match self {
            Self::Hello => (1, MAX_HELLO_BYTES),
            Self::Request | Self::Reply => (1, MAX_BODY_BYTES),
            Self::Data => (1, MAX_DATA_BYTES),
            Self::End => (0, 0),
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Hello,
            Self::Request,
            Self::Data,
            Self::End,
            Self::Reply,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }

    fn check_length(self, length: usize) -> Result<(), FrameError> {
        let (least, most) = self.limits();
        if length < least {
            return Err(FrameCode::Empty.refuse(format_args!("{self:?} of 0 bytes")));
        }
        if length > most {
            return Err(FrameCode::Oversize.refuse(format_args!(
                "{self:?} of {length} bytes, at most {most} allowed"
            )));
        }
        Ok(())
    }
}

/// The bytes of one message.
///
/// # Errors
/// [`FrameCode::Empty`] or [`FrameCode::Oversize`]: what no reader would accept is not written.
pub fn encode(kind: Kind, seq: u32, body: &[u8]) -> Result<Vec<u8>, FrameError> {
    kind.check_length(body.len())?;
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    // The check above keeps the length far below 2^32.
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.push(kind as u8);
    out.extend_from_slice(&seq.to_be_bytes());
    out.extend_from_slice(body);
    Ok(out)
}
