use super::{BUFFER_BYTES, HEADER_BYTES, MAX_PAYLOAD_BYTES};
use crate::code::{FrameCode, FrameError};

/// How much of one frame is there, and whether it may still become one. It does no IO and owns no
/// bytes: the caller reads into [`room`](Self::room), says how many bytes came, and says when the
/// stream ended. However the bytes are split, the answer is the same.
#[derive(Debug, Default)]
pub struct FrameState {
    /// Bytes that have come, at most [`BUFFER_BYTES`].
    filled: usize,
    /// What the header says, 1..=[`MAX_PAYLOAD_BYTES`]; `None` until it is whole.
    length: Option<usize>,
    /// The first refusal, for ever: nothing that follows a broken frame has a meaning.
    refused: Option<FrameError>,
}

impl FrameState {
    /// Before the first byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the next bytes go. Never empty, unless the frame is refused already: the buffer is one
    /// byte longer than the longest frame.
    pub fn room<'a>(&self, buffer: &'a mut [u8; BUFFER_BYTES]) -> &'a mut [u8] {
        buffer.get_mut(self.filled..).unwrap_or_default()
    }

    /// Takes note that `count` more bytes are in the buffer.
    ///
    /// # Errors
    /// [`FrameCode::Empty`], [`FrameCode::Oversize`] as soon as the header is whole;
    /// [`FrameCode::Trailing`] at the first byte beyond the payload; [`FrameCode::SourceError`]
    /// where more is claimed than there was room for.
    pub fn advance(&mut self, buffer: &[u8; BUFFER_BYTES], count: usize) -> Result<(), FrameError> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let taken = self.take(buffer, count);
        self.refused = taken.clone().err();
        taken
    }

    /// The stream has ended: the length of the payload, in bytes.
    ///
    /// # Errors
    /// The refusal there was before, or [`FrameCode::ReadHeader`] or [`FrameCode::ReadPayload`]
    /// where the frame is not whole.
    pub fn end(self) -> Result<usize, FrameError> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        match self.length {
            // Nothing at all is told apart from a beginning that breaks off.
            None if self.filled == 0 => {
                Err(FrameCode::ReadHeader.refuse("the stream ended before its first byte"))
            }
            None => Err(FrameCode::ReadHeader.refuse(format_args!(
                "the stream ended after {} of {HEADER_BYTES} bytes of the header",
                self.filled
            ))),
            Some(length) if self.filled < HEADER_BYTES + length => Err(FrameCode::ReadPayload
                .refuse(format_args!(
                    "the stream ended after {} of {length} bytes of the payload",
                    self.filled - HEADER_BYTES
                ))),
            Some(length) => Ok(length),
        }
    }

    /// Bytes that have come.
    pub fn received(&self) -> usize {
        self.filled
    }

    /// Whether the frame is whole, so that only its end is awaited.
    pub(super) fn is_whole(&self) -> bool {
        self.length
            .is_some_and(|length| self.filled == HEADER_BYTES + length)
    }

    fn take(&mut self, buffer: &[u8; BUFFER_BYTES], count: usize) -> Result<(), FrameError> {
        let room = BUFFER_BYTES - self.filled;
        if count > room {
            return Err(FrameCode::SourceError.refuse(format_args!(
                "the source claims {count} bytes where there was room for {room}"
            )));
        }
        self.filled += count;
        let length = match self.length {
            Some(length) => length,
            None if self.filled < HEADER_BYTES => return Ok(()),
            None => declared(buffer)?,
        };
        self.length = Some(length);
        if self.filled > HEADER_BYTES + length {
            return Err(FrameCode::Trailing.refuse(format_args!(
                "a payload of {length} bytes, and something after it"
            )));
        }
        Ok(())
    }
}

/// What a whole header says. Unsigned and compared before anything else is done with it:
/// `ff ff ff ff` is oversize, not minus one.
fn declared(buffer: &[u8; BUFFER_BYTES]) -> Result<usize, FrameError> {
    let [a, b, c, d, ..] = *buffer;
    check(u32::from_be_bytes([a, b, c, d]).into())
}

/// A length in bytes that a frame may have.
pub(super) fn check(length: u64) -> Result<usize, FrameError> {
    match usize::try_from(length) {
        Ok(0) => Err(FrameCode::Empty.refuse("a payload of 0 bytes")),
        Ok(length) if length <= MAX_PAYLOAD_BYTES => Ok(length),
        // Not what it says: a sender that forgot the header made four bytes of its secret say it.
        _ => Err(FrameCode::Oversize.refuse(format_args!(
            "a payload of more than {MAX_PAYLOAD_BYTES} bytes"
        ))),
    }
}
