use super::{Decoder, Event, Kind, Message, RequestReader, encode};
use crate::code::{FrameCode, FrameError};
use std::io::{ErrorKind, Read, Write};

/// Bytes read at once, 64 KiB: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// The runner's end of the channel. It blocks: the runner does nothing but what it is asked, and
/// the host keeps the time.
#[derive(Debug)]
pub struct RunnerChannel<R, W> {
    messages: Messages<R>,
    writer: W,
    rules: RequestReader,
    /// The request that has no reply yet.
    outstanding: Option<u32>,
}

impl<R: Read, W: Write> RunnerChannel<R, W> {
    /// A channel over these streams. `reader` should not be buffered: bytes are read ahead here.
    pub fn new(reader: R, writer: W) -> Self {
        Self {
            messages: Messages::new(reader),
            writer,
            rules: RequestReader::new(),
            outstanding: None,
        }
    }

    /// Greets the host.
    ///
    /// # Errors
    /// The body is empty or too large, or could not be written.
    pub fn hello(&mut self, body: &[u8]) -> Result<(), FrameError> {
        send(&mut self.writer, Kind::Hello, 0, body)
    }

    /// The body of the next request; `None` when the host has ended the conversation.
    ///
    /// # Errors
    /// The bytes break off or break the rules, or the request before has no reply yet.
    pub fn request(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        if self.outstanding.is_some() {
            return Err(FrameCode::ProtocolViolation.refuse("the request before has no reply"));
        }
        let Some(message) = self.messages.next()? else {
            return Ok(None);
        };
        match self.rules.accept(message)? {
            Event::Request { seq, body } => {
                self.outstanding = Some(seq);
                Ok(Some(body))
            }
            other => Err(FrameCode::ProtocolViolation.refuse(format_args!("{other:?}, unasked"))),
        }
    }

    /// What follows the request that was just received: exactly `promised` bytes.
    ///
    /// # Errors
    /// There is no request, or it is whole already.
    pub fn payload(&mut self, promised: u64) -> Result<Payload<'_, R>, FrameError> {
        self.rules.promise(promised)?;
        Ok(Payload {
            messages: &mut self.messages,
            rules: &mut self.rules,
            piece: Vec::new(),
            used: 0,
        })
    }

    /// Replies to the outstanding request. What is left of the request is read first and dropped,
    /// so that a refusal in the middle of an upload leaves both sides in step.
    ///
    /// # Errors
    /// There is no request, the rest of it breaks the rules, or the reply cannot be written.
    pub fn reply(&mut self, body: &[u8]) -> Result<(), FrameError> {
        let seq = self
            .outstanding
            .take()
            .ok_or_else(|| FrameCode::ProtocolViolation.refuse("a reply to nothing"))?;
        while self.rules.is_receiving() {
            self.rules.accept(self.messages.expect()?)?;
        }
        send(&mut self.writer, Kind::Reply, seq, body)
    }
}

/// The bytes that follow one request, as a stream that ends with the request.
#[derive(Debug)]
pub struct Payload<'a, R> {
    messages: &'a mut Messages<R>,
    rules: &'a mut RequestReader,
    piece: Vec<u8>,
    used: usize,
}

impl<R: Read> Read for Payload<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        if self.used == self.piece.len() {
            if !self.rules.is_receiving() {
                return Ok(0);
            }
            let message = self.messages.expect().map_err(std::io::Error::other)?;
            match self.rules.accept(message).map_err(std::io::Error::other)? {
                Event::Data(piece) => (self.piece, self.used) = (piece, 0),
                _ => return Ok(0),
            }
        }
        let mut rest = self.piece.get(self.used..).unwrap_or_default();
        let count = rest.read(to)?;
        self.used += count;
        Ok(count)
    }
}

/// Whole messages from a stream.
#[derive(Debug)]
struct Messages<R> {
    reader: R,
    decoder: Decoder,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<R: Read> Messages<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            decoder: Decoder::new(),
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
        }
    }

    /// The next message, or `None` where the stream ends between two.
    fn next(&mut self) -> Result<Option<Message>, FrameError> {
        loop {
            let mut bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
            let found = self.decoder.feed(&mut bytes)?;
            self.start = self.end - bytes.len();
            if found.is_some() {
                return Ok(found);
            }
            let read = self.reader.read(&mut self.buffer);
            (self.start, self.end) = match read {
                Ok(0) => return self.decoder.finish().map(|()| None),
                // Cut down to the room there was, the claim would make bytes of an earlier read
                // part of this one.
                Ok(count) if count > READ_BYTES => {
                    return Err(FrameCode::SourceError.refuse(format_args!(
                        "the reader claims {count} bytes where there was room for {READ_BYTES}"
                    )));
                }
                Ok(count) => (0, count),
                Err(e) if e.kind() == ErrorKind::Interrupted => (0, 0),
                Err(e) => return Err(FrameCode::SourceError.refuse(e)),
            };
        }
    }

    /// The next message, where there must be one.
    fn expect(&mut self) -> Result<Message, FrameError> {
        self.next()?
            .ok_or_else(|| FrameCode::ReadHeader.refuse("the stream ended inside a request"))
    }
}

fn send(writer: &mut impl Write, kind: Kind, seq: u32, body: &[u8]) -> Result<(), FrameError> {
    let bytes = encode(kind, seq, body)?;
    let written = writer.write_all(&bytes).and_then(|()| writer.flush());
    written.map_err(|e| FrameCode::SourceError.refuse(e))
}
