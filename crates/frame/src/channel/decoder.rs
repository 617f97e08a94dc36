use super::{HEADER_BYTES, Kind, Message};
use crate::code::{FrameCode, FrameError};

/// Turns bytes, however they are split, into messages. After the first error it gives that error
/// for ever: what follows a broken message has no known beginning.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// Bytes that messages may still have, headers included.
    budget: u64,
}

#[derive(Debug)]
enum State {
    /// `filled` bytes of the header are there, fewer than all.
    Header {
        bytes: [u8; HEADER_BYTES],
        filled: usize,
    },
    /// The header was accepted; the body has fewer bytes than `length`, or is about to be given out.
    Body {
        kind: Kind,
        seq: u32,
        length: usize,
        body: Vec<u8>,
    },
    Failed(FrameError),
}

impl Default for Decoder {
    fn default() -> Self {
        Self::with_budget(u64::MAX)
    }
}

impl State {
    const START: Self = Self::Header {
        bytes: [0; HEADER_BYTES],
        filled: 0,
    };
}

impl Decoder {
    /// A decoder at the start of the stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder that takes at most this many bytes, headers included, over the whole stream.
    pub fn with_budget(bytes: u64) -> Self {
        Self {
            state: State::START,
            budget: bytes,
        }
    }

    /// Takes bytes off the front of `bytes` until a message is whole or none are left.
    ///
    /// # Errors
    /// An unknown kind, a length its kind does not allow, or more than is left of the budget, as
    /// soon as the header is there.
    pub fn feed(&mut self, bytes: &mut &[u8]) -> Result<Option<Message>, FrameError> {
        loop {
            match &mut self.state {
                State::Failed(error) => return Err(error.clone()),
                State::Header {
                    bytes: header,
                    filled,
                } => {
                    *filled += take(bytes, header.get_mut(*filled..).unwrap_or_default());
                    if *filled < HEADER_BYTES {
                        return Ok(None);
                    }
                    self.state = open_body(*header, &mut self.budget).unwrap_or_else(State::Failed);
                }
                State::Body {
                    kind,
                    seq,
                    length,
                    body,
                } => {
                    // Memory grows with the bytes that arrived, never with the length that was
                    // claimed.
                    let missing = length.saturating_sub(body.len());
                    let (piece, rest) = bytes.split_at_checked(missing).unwrap_or((bytes, &[]));
                    body.extend_from_slice(piece);
                    *bytes = rest;
                    if body.len() < *length {
                        return Ok(None);
                    }
                    let message = Message {
                        kind: *kind,
                        seq: *seq,
                        body: std::mem::take(body),
                    };
                    self.state = State::START;
                    return Ok(Some(message));
                }
            }
        }
    }

    /// The stream has ended. Whether that is between two messages.
    ///
    /// # Errors
    /// It ended inside one, or there was an error before.
    pub fn finish(&self) -> Result<(), FrameError> {
        match &self.state {
            State::Failed(error) => Err(error.clone()),
            State::Header { filled: 0, .. } => Ok(()),
            State::Header { filled, .. } => Err(FrameCode::ReadHeader
                .refuse(format_args!("{filled} of {HEADER_BYTES} bytes of a header"))),
            State::Body { length, body, .. } => Err(FrameCode::ReadPayload.refuse(format_args!(
                "{} of {length} bytes of a message",
                body.len()
            ))),
        }
    }
}

/// Moves bytes to a place, as many as there are and fit.
fn take(from: &mut &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    let (piece, rest) = from.split_at(count);
    to.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
    *from = rest;
    count
}

fn open_body(header: [u8; HEADER_BYTES], budget: &mut u64) -> Result<State, FrameError> {
    let [a, b, c, d, kind, w, x, y, z] = header;
    let kind = Kind::from_byte(kind)
        .ok_or_else(|| FrameCode::ProtocolViolation.refuse(format_args!("unknown kind {kind}")))?;
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    kind.check_length(length)?;
    // By the header alone, so that not one byte of a message beyond the budget is kept.
    *budget = budget
        .checked_sub((HEADER_BYTES + length) as u64)
        .ok_or_else(|| {
            FrameCode::Oversize.refuse(format_args!(
                "{kind:?} of {length} bytes, where {budget} are left of all that may be said"
            ))
        })?;
    Ok(State::Body {
        kind,
        seq: u32::from_be_bytes([w, x, y, z]),
        length,
        body: Vec::new(),
    })
}
