//! A source and sink that does what a test wants, and counts.

use flightproof_frame::bootstrap::{Limits, Sink, Source, Waits};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes, given `most` at a time, and a close. Writes are kept.
pub(crate) struct Fake {
    pub(crate) bytes: Vec<u8>,
    pub(crate) most: usize,
    pub(crate) waits: Waits,
    /// What a read or write does before anything else.
    pub(crate) first: Act,
    pub(crate) close: Act,
    pub(crate) closed: Arc<AtomicUsize>,
    pub(crate) written: Arc<Mutex<Vec<u8>>>,
}

/// What a call does.
#[derive(Clone)]
pub(crate) enum Act {
    Nothing,
    Fail(io::ErrorKind),
    Errno(i32),
    Panic,
    /// Claims so many bytes.
    Claim(usize),
    Sleep(Duration),
    /// Waits until the gate is opened.
    Hang(Gate),
}

/// Holds up whoever comes, until it goes away.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Mutex<Receiver<()>>>);

impl Gate {
    pub(crate) fn new() -> (Self, Sender<()>) {
        let (open, opened) = channel();
        (Self(Arc::new(Mutex::new(opened))), open)
    }
}

impl Act {
    fn apply(&self) -> io::Result<Option<usize>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Fail(kind) => Err(io::Error::new(*kind, "sesame")),
            Self::Errno(number) => Err(io::Error::from_raw_os_error(*number)),
            Self::Panic => std::panic::resume_unwind(Box::new("sesame")),
            Self::Claim(count) => Ok(Some(*count)),
            Self::Sleep(time) => {
                std::thread::sleep(*time);
                Ok(None)
            }
            Self::Hang(gate) => {
                let _ = gate.0.lock().unwrap().recv();
                Ok(None)
            }
        }
    }
}

impl Fake {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            most: usize::MAX,
            waits: Waits::Close,
            first: Act::Nothing,
            close: Act::Nothing,
            closed: Arc::default(),
            written: Arc::default(),
        }
    }
}

impl Source for Fake {
    fn read(&mut self, to: &mut [u8], _: Instant) -> io::Result<usize> {
        if let Some(claimed) = self.first.apply()? {
            return Ok(claimed);
        }
        let count = self.most.min(to.len()).min(self.bytes.len());
        to[..count].copy_from_slice(&self.bytes[..count]);
        self.bytes.drain(..count);
        Ok(count)
    }

    fn close(self) -> io::Result<()> {
        self.closed.fetch_add(1, Ordering::SeqCst);
        self.close.apply().map(drop)
    }

    fn waits(&self) -> Waits {
        self.waits
    }
}

impl Sink for Fake {
    fn write(&mut self, bytes: &[u8], _: Instant) -> io::Result<usize> {
        if let Some(claimed) = self.first.apply()? {
            return Ok(claimed);
        }
        let count = self.most.min(bytes.len());
        self.written.lock().unwrap().extend(&bytes[..count]);
        Ok(count)
    }

    fn close(self) -> io::Result<()> {
        Source::close(self)
    }

    fn waits(&self) -> Waits {
        self.waits
    }
}

pub(crate) fn limits(total_ms: u64, close_ms: u64) -> Limits {
    let ms = Duration::from_millis;
    Limits::new(ms(total_ms), ms(close_ms)).unwrap()
}
