use crate::bootstrap::{
    BUFFER_BYTES, FrameState, HEADER_BYTES, Limits, MAX_PAYLOAD_BYTES, Source, Waits, receive,
};
use crate::{FrameCode, FrameError};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The first byte says where the rest is split. Whatever the split, the answer is the same, and it
/// is the one the rules give for the whole.
///
/// # Panics
/// One of these does not hold.
pub fn bootstrap_raw(bytes: &[u8]) {
    let (step, stream) = bytes
        .split_first()
        .map_or((1, bytes), |(b, rest)| (*b, rest));
    let expected = frame_of(stream);
    let whole = read(stream, BUFFER_BYTES);
    let codes = whole.as_deref().map_err(|e| e.code);
    assert_eq!(codes, expected, "another answer than the rules give");
    for step in [usize::from(step).max(1), 1] {
        assert_eq!(read(stream, step), whole, "the split mattered");
    }
}

/// What the rules say of a whole stream: its payload, or the code of its refusal.
///
/// # Errors
/// The code.
pub fn frame_of(stream: &[u8]) -> Result<&[u8], FrameCode> {
    let Some((header, rest)) = stream.split_first_chunk::<HEADER_BYTES>() else {
        return Err(FrameCode::ReadHeader);
    };
    let length = u64::from(u32::from_be_bytes(*header));
    if length == 0 {
        return Err(FrameCode::Empty);
    }
    if length > MAX_PAYLOAD_BYTES as u64 {
        return Err(FrameCode::Oversize);
    }
    match (rest.len() as u64).cmp(&length) {
        std::cmp::Ordering::Less => Err(FrameCode::ReadPayload),
        std::cmp::Ordering::Equal => Ok(rest),
        std::cmp::Ordering::Greater => Err(FrameCode::Trailing),
    }
}

/// The stream through the state machine, in pieces of `step` bytes.
fn read(stream: &[u8], step: usize) -> Result<Vec<u8>, FrameError> {
    let mut buffer = Box::new([0; BUFFER_BYTES]);
    let mut state = FrameState::new();
    let mut left = stream;
    while !left.is_empty() {
        let room = state.room(&mut buffer);
        let count = step.min(left.len()).min(room.len());
        let (piece, rest) = left.split_at(count);
        room.iter_mut()
            .zip(piece)
            .for_each(|(to, from)| *to = *from);
        left = rest;
        if let Err(error) = state.advance(&buffer, count) {
            let again = state.advance(&buffer, 0);
            assert_eq!(again, Err(error.clone()), "the first refusal did not stay");
            assert_eq!(state.end(), Err(error.clone()), "the end undid a refusal");
            return Err(error);
        }
    }
    let length = state.end()?;
    let payload = buffer.iter().skip(HEADER_BYTES).take(length);
    Ok(payload.copied().collect())
}

/// How a stream reaches the reader.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// All its bytes.
    pub stream: Vec<u8>,
    /// What each read does; after the last of them reads give all there is.
    pub steps: Vec<Step>,
    /// What closing does.
    pub ending: Ending,
}

/// What one read does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Gives at most so many bytes, and at least one where one is left.
    Give(u16),
    /// Is interrupted by a signal.
    Interrupted,
    /// Comes back although nothing was there.
    Early,
    /// Claims a byte more than there was room for.
    Boast,
    /// Fails.
    Fail,
    /// Panics.
    Panic,
}

/// What closing does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It works.
    Closed,
    /// It fails.
    Failed,
    /// It panics.
    Panicked,
}

impl Delivery {
    /// The delivery that any bytes stand for, so that a fuzzer that changes bytes changes a plan: how
    /// it closes, what each read does, whether the header is honest, and the payload.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut left = bytes;
        let ending = match next(&mut left) % 8 {
            6 => Ending::Failed,
            7 => Ending::Panicked,
            _ => Ending::Closed,
        };
        let count = next(&mut left) % 16;
        let steps = (0..count).map(|_| step(&mut left)).collect();
        let honesty = next(&mut left) % 8;
        let length = u32::try_from(left.len()).unwrap_or(u32::MAX);
        let framed = |length: u32| [&length.to_be_bytes()[..], left].concat();
        let stream = match honesty {
            0 => left.to_vec(),
            1 => framed(length.saturating_sub(1)),
            2 => framed(length.saturating_add(1)),
            _ => framed(length),
        };
        Self {
            stream,
            steps,
            ending,
        }
    }
}

fn step(left: &mut &[u8]) -> Step {
    match next(left) % 16 {
        0 => Step::Interrupted,
        1 => Step::Early,
        2 => Step::Boast,
        3 => Step::Fail,
        4 => Step::Panic,
        5 => Step::Give(u16::MAX),
        _ => Step::Give(next(left).into()),
    }
}

/// The next byte, or 0.
pub(super) fn next(left: &mut &[u8]) -> u8 {
    let Some((first, rest)) = left.split_first() else {
        return 0;
    };
    *left = rest;
    *first
}

/// However a stream is delivered, the reader's answer is the one the rules give for what came, and
/// the source is closed exactly once.
///
/// # Panics
/// One of these does not hold.
pub fn bootstrap_plan(delivery: &Delivery) {
    let closed = Arc::new(AtomicUsize::new(0));
    let source = Delivering {
        left: delivery.clone(),
        given: 0,
        next: 0,
        closed: Arc::clone(&closed),
    };
    let limits = Limits::new(Duration::from_secs(120), Duration::from_secs(10));
    let found = limits.and_then(|limits| receive(source, limits));
    assert_eq!(closed.load(Ordering::SeqCst), 1, "not closed exactly once");
    let expected = answer(delivery);
    match (found, expected) {
        (Ok(payload), Ok(expected)) => {
            let same = payload.consume(|bytes| Ok::<_, ()>(bytes == expected));
            assert_eq!(same, Ok(true), "another payload");
        }
        (Err(found), Err(expected)) => assert_eq!(found.code, expected, "{found}"),
        (found, expected) => panic!("{found:?} instead of {expected:?}"),
    }
}

/// What the rules say of a delivery.
fn answer(delivery: &Delivery) -> Result<&[u8], FrameCode> {
    let read = read_answer(delivery);
    match delivery.ending {
        Ending::Panicked => Err(FrameCode::CloseUnconfirmed),
        Ending::Failed => read.and(Err(FrameCode::CloseFailed)),
        Ending::Closed => read,
    }
}

fn read_answer(delivery: &Delivery) -> Result<&[u8], FrameCode> {
    let mut came = 0;
    for step in &delivery.steps {
        match step {
            Step::Interrupted | Step::Early => {}
            Step::Boast => return Err(FrameCode::SourceError),
            Step::Panic => return Err(FrameCode::Internal),
            Step::Fail if frame_of(seen(delivery, came)).is_ok() => {
                return Err(FrameCode::ReadTrailing);
            }
            Step::Fail => return Err(FrameCode::SourceError),
            Step::Give(_) if came == delivery.stream.len() => break,
            Step::Give(most) => {
                came += usize::from(*most).max(1);
                came = came.min(delivery.stream.len());
                let refused = frame_of(seen(delivery, came)).err();
                // The others are refusals only where the stream ends here.
                if let Some(FrameCode::Empty | FrameCode::Oversize | FrameCode::Trailing) = refused
                {
                    break;
                }
            }
        }
    }
    frame_of(&delivery.stream)
}

fn seen(delivery: &Delivery, came: usize) -> &[u8] {
    delivery.stream.get(..came).unwrap_or(&delivery.stream)
}

struct Delivering {
    left: Delivery,
    /// Bytes that were given.
    given: usize,
    /// Steps that were taken.
    next: usize,
    closed: Arc<AtomicUsize>,
}

impl Source for Delivering {
    fn read(&mut self, to: &mut [u8], _: Instant) -> io::Result<usize> {
        let step = self.left.steps.get(self.next).copied();
        self.next += 1;
        match step.unwrap_or(Step::Give(u16::MAX)) {
            Step::Give(most) => {
                let left = self.left.stream.get(self.given..).unwrap_or_default();
                let most = usize::from(most).max(1).min(left.len());
                let mut given = left.get(..most).unwrap_or_default();
                let count = io::Read::read(&mut given, to)?;
                self.given += count;
                Ok(count)
            }
            Step::Interrupted => Err(io::ErrorKind::Interrupted.into()),
            Step::Early => Err(io::ErrorKind::WouldBlock.into()),
            Step::Boast => Ok(to.len() + 1),
            Step::Fail => Err(io::Error::other("failed")),
            // Past the panic hook: a fuzzer's ends the process.
            Step::Panic => std::panic::resume_unwind(Box::new("read")),
        }
    }

    fn close(self) -> io::Result<()> {
        self.closed.fetch_add(1, Ordering::SeqCst);
        match self.left.ending {
            Ending::Closed => Ok(()),
            Ending::Failed => Err(io::Error::other("failed")),
            Ending::Panicked => std::panic::resume_unwind(Box::new("close")),
        }
    }

    fn waits(&self) -> Waits {
        Waits::Never
    }
}
