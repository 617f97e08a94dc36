use super::{
    Answer, Decoder, Kind, MAX_DATA_BYTES, MAX_SESSION_BYTES, Message, ReplyReader, encode,
};
use crate::adoption::{Direction, adopt_stream};
use crate::code::{FrameCode, FrameError};
use crate::unblocked::{Unblocked, wait};
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// Bytes read at once, 64 KiB: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// The host's end of the channel. No call outlives its deadline, whatever the other side does.
///
/// After the first error every further call is refused: a stream that broke once cannot be trusted
/// to be in step.
#[derive(Debug)]
pub struct HostChannel {
    reader: Unblocked,
    /// `None` once the conversation was ended.
    writer: Option<Unblocked>,
    rules: ReplyReader,
    decoder: Decoder,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl HostChannel {
    /// A channel over two pipes (or one socket, twice), which takes at most [`MAX_SESSION_BYTES`]
    /// from the runner. No flag of theirs is changed that others share.
    ///
    /// # Errors
    /// [`FrameCode::InvalidFd`]: one of them is neither pipe nor stream socket, or open for the
    /// wrong direction.
    pub fn new(reader: OwnedFd, writer: OwnedFd) -> Result<Self, FrameError> {
        Self::with_budget(reader, writer, MAX_SESSION_BYTES)
    }

    /// A channel that takes at most this many bytes from the runner, headers included.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_budget(reader: OwnedFd, writer: OwnedFd, bytes: u64) -> Result<Self, FrameError> {
        Ok(Self {
            reader: adopt_stream(reader, Direction::Read)?,
            writer: Some(adopt_stream(writer, Direction::Write)?),
            rules: ReplyReader::new(),
            decoder: Decoder::with_budget(bytes),
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
        })
    }

    /// Waits for the runner's greeting.
    ///
    /// # Errors
    /// It does not come in time, or something else comes.
    pub fn hello(&mut self, deadline: Instant) -> Result<Vec<u8>, FrameError> {
        let body = self.answer(deadline);
        self.fused(body)
    }

    /// Sends one request and what it promises, and waits for its one reply.
    ///
    /// # Errors
    /// The reply does not come in time, or something else comes.
    pub fn call(
        &mut self,
        request: &[u8],
        payload: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, FrameError> {
        let body = self.exchange(request, payload, deadline);
        self.fused(body)
    }

    /// Ends the conversation and waits for the other side to do the same, without another byte.
    ///
    /// # Errors
    /// It says something more, or does not end in time.
    pub fn finish(&mut self, deadline: Instant) -> Result<(), FrameError> {
        self.rules.break_off();
        self.writer = None;
        if self.start == self.end && !self.refill(deadline)? {
            return self.decoder.finish();
        }
        Err(FrameCode::Trailing.refuse(format_args!("{} bytes or more", self.end - self.start)))
    }

    fn exchange(
        &mut self,
        request: &[u8],
        payload: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, FrameError> {
        let seq = self.rules.request()?;
        self.refuse_unasked()?;
        self.write(&encode(Kind::Request, seq, request)?, deadline)?;
        for piece in payload.chunks(MAX_DATA_BYTES) {
            self.write(&encode(Kind::Data, seq, piece)?, deadline)?;
        }
        self.write(&encode(Kind::End, seq, &[])?, deadline)?;
        self.answer(deadline)
    }

    /// Whatever is there before a request was written is no answer to it. Numbers can be guessed,
    /// so an answer that was written ahead would pass for the one that is awaited.
    fn refuse_unasked(&mut self) -> Result<(), FrameError> {
        let unasked = match self.end - self.start {
            0 => match self.reader.read(&mut self.buffer) {
                // A runner that ended shows when the request is written, or its answer awaited.
                Ok(count) => count,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(e) => return Err(FrameCode::SourceError.refuse(e)),
            },
            count => count,
        };
        if unasked == 0 {
            return Ok(());
        }
        Err(FrameCode::ProtocolViolation
            .refuse(format_args!("{unasked} bytes or more before the request")))
    }

    fn answer(&mut self, deadline: Instant) -> Result<Vec<u8>, FrameError> {
        let message = self.message(deadline)?;
        match self.rules.accept(message)? {
            Answer::Hello(body) | Answer::Reply(body) => Ok(body),
        }
    }

    fn fused<T>(&mut self, result: Result<T, FrameError>) -> Result<T, FrameError> {
        if result.is_err() {
            self.rules.break_off();
        }
        result
    }

    fn message(&mut self, deadline: Instant) -> Result<Message, FrameError> {
        loop {
            let mut bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
            let found = self.decoder.feed(&mut bytes)?;
            self.start = self.end - bytes.len();
            if let Some(message) = found {
                return Ok(message);
            }
            if !self.refill(deadline)? {
                self.decoder.finish()?;
                return Err(FrameCode::ReadHeader.refuse("the other side ended"));
            }
        }
    }

    /// Reads whatever is there, at least one byte; false at the end of the stream.
    fn refill(&mut self, deadline: Instant) -> Result<bool, FrameError> {
        loop {
            await_ready(self.reader.as_fd(), PollFlags::IN, deadline)?;
            match self.reader.read(&mut self.buffer) {
                Ok(count) => {
                    (self.start, self.end) = (0, count);
                    return Ok(count > 0);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(FrameCode::SourceError.refuse(e)),
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> Result<(), FrameError> {
        let writer = self
            .writer
            .as_mut()
            .ok_or_else(|| FrameCode::ProtocolViolation.refuse("the conversation was ended"))?;
        while !bytes.is_empty() {
            await_ready(writer.as_fd(), PollFlags::OUT, deadline)?;
            match writer.write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(FrameCode::SourceError.refuse(e)),
            }
        }
        Ok(())
    }
}

/// The deadline is one moment, fixed by the caller, and it wins.
fn await_ready(fd: BorrowedFd<'_>, ready: PollFlags, deadline: Instant) -> Result<(), FrameError> {
    match wait(fd, ready, deadline) {
        Ok(true) => Ok(()),
        Ok(false) => Err(FrameCode::Timeout.refuse("the deadline passed")),
        Err(e) => Err(FrameCode::SourceError.refuse(e)),
    }
}
