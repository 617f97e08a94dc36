use super::{Answer, Decoder, Kind, MAX_DATA_BYTES, Message, ReplyReader, encode};
use crate::code::{FrameCode, FrameError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

/// Bytes read at once, 64 KiB: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// The host's end of the channel. No call outlives its deadline, whatever the other side does.
///
/// After the first error every further call is refused: a stream that broke once cannot be trusted
/// to be in step.
#[derive(Debug)]
pub struct HostChannel {
    reader: OwnedFd,
    /// `None` once the conversation was ended.
    writer: Option<OwnedFd>,
    rules: ReplyReader,
    decoder: Decoder,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl HostChannel {
    /// A channel over two pipes (or one socket, twice). Both descriptors become non-blocking, so
    /// they must not share their open file description with anybody who does not expect that.
    ///
    /// # Errors
    /// The descriptors cannot be made non-blocking.
    pub fn new(reader: OwnedFd, writer: OwnedFd) -> Result<Self, FrameError> {
        for fd in [&reader, &writer] {
            fcntl_getfl(fd)
                .and_then(|flags| fcntl_setfl(fd, flags | OFlags::NONBLOCK))
                .map_err(|e| FrameCode::SourceError.refuse(e))?;
        }
        Ok(Self {
            reader,
            writer: Some(writer),
            rules: ReplyReader::new(),
            decoder: Decoder::new(),
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
        self.write(&encode(Kind::Request, seq, request)?, deadline)?;
        for piece in payload.chunks(MAX_DATA_BYTES) {
            self.write(&encode(Kind::Data, seq, piece)?, deadline)?;
        }
        self.write(&encode(Kind::End, seq, &[])?, deadline)?;
        self.answer(deadline)
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
            wait(&self.reader, PollFlags::IN, deadline)?;
            match rustix::io::read(&self.reader, &mut self.buffer) {
                Ok(count) => {
                    (self.start, self.end) = (0, count);
                    return Ok(count > 0);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(FrameCode::SourceError.refuse(e)),
            }
        }
    }

    fn write(&self, mut bytes: &[u8], deadline: Instant) -> Result<(), FrameError> {
        let writer = self
            .writer
            .as_ref()
            .ok_or_else(|| FrameCode::ProtocolViolation.refuse("the conversation was ended"))?;
        while !bytes.is_empty() {
            wait(writer, PollFlags::OUT, deadline)?;
            match rustix::io::write(writer, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(FrameCode::SourceError.refuse(e)),
            }
        }
        Ok(())
    }
}

/// Waits until the descriptor is ready. The deadline is one moment, fixed by the caller, and it
/// wins: a peer that sends one byte at a time gains nothing, and neither do signals.
fn wait(fd: &impl AsFd, ready: PollFlags, deadline: Instant) -> Result<(), FrameError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(FrameCode::Timeout.refuse("the deadline passed"));
        }
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(fd, ready)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(FrameCode::SourceError.refuse(e)),
        }
    }
}
