//! What is left in memory: every block that goes back to the allocator is searched for what a test
//! marked as secret.

#![expect(
    clippy::unwrap_used,
    reason = "a pipe that cannot be made is a failed test"
)]

use flightproof_frame::bootstrap::{
    BUFFER_BYTES, Descriptor, DescriptorSink, Limits, SecretPayload, Source, Waits, receive,
    receive_async, send,
};
use flightproof_frame::{FrameCode, FrameError};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Marks a secret; the byte after it says whose.
const MARK: &[u8; 7] = b"sesame!";
/// Tests of this file.
const TESTS: usize = 32;

/// Blocks that were given back with the mark of a test in them.
static LEAKS: [AtomicUsize; TESTS] = [const { AtomicUsize::new(0) }; TESTS];
/// Blocks of the size of the frame's buffer that were given back.
static BUFFERS: AtomicUsize = AtomicUsize::new(0);

struct Searching;

// SAFETY: everything is the system's allocator; blocks are looked at while they are still whole.
unsafe impl GlobalAlloc for Searching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Zeroed, so that a block can be searched whole.
        // SAFETY: the caller's conditions are the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block has that size and all of it was written, at the latest by `alloc`.
        search(unsafe { std::slice::from_raw_parts(block, layout.size()) });
        // SAFETY: the caller's conditions are the same.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Searching = Searching;

fn search(block: &[u8]) {
    for (at, _) in block
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == MARK[0])
    {
        if let Some((mark, [test, ..])) = block[at..].split_first_chunk::<7>()
            && mark == MARK
        {
            LEAKS[usize::from(*test) % TESTS].fetch_add(1, Ordering::SeqCst);
        }
    }
    if block.len() == BUFFER_BYTES {
        BUFFERS.fetch_add(1, Ordering::SeqCst);
    }
}

/// A frame whose payload is a mark, the byte that says whose, and more.
const fn frame(test: u8, declared: u8) -> [u8; 24] {
    let mut frame = [b'.'; 24];
    frame[0] = 0;
    frame[1] = 0;
    frame[2] = 0;
    frame[3] = declared;
    let mut at = 0;
    while at < MARK.len() {
        frame[4 + at] = MARK[at];
        at += 1;
    }
    frame[11] = test;
    frame
}

/// Runs a test's body; afterwards no block had its secret, and `buffers` buffers were given back.
fn leaves_nothing(test: u8, buffers: usize, body: impl FnOnce()) {
    let before = BUFFERS.load(Ordering::SeqCst);
    body();
    let patience = Instant::now() + Duration::from_secs(10);
    while BUFFERS.load(Ordering::SeqCst) < before + buffers && Instant::now() < patience {
        std::thread::yield_now();
    }
    assert!(BUFFERS.load(Ordering::SeqCst) >= before + buffers);
    assert_eq!(LEAKS[usize::from(test)].load(Ordering::SeqCst), 0);
}

/// A source of bytes that are in no block of memory.
struct Static {
    bytes: &'static [u8],
    end: End,
    waits: Waits,
}

enum End {
    Eof,
    Fail,
    Panic,
    Never,
    /// Waits until the other end of the channel is dropped.
    Hang(Receiver<()>),
}

impl Source for Static {
    fn read(&mut self, to: &mut [u8], deadline: Instant) -> io::Result<usize> {
        if !self.bytes.is_empty() {
            // In two pieces.
            let count = self.bytes.len().min(15);
            to[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            return Ok(count);
        }
        match &self.end {
            End::Eof => Ok(0),
            End::Fail => Err(io::Error::other("failed")),
            End::Panic => std::panic::resume_unwind(Box::new("panicked")),
            End::Never => {
                std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
                Err(io::ErrorKind::TimedOut.into())
            }
            End::Hang(until) => {
                let _ = until.recv();
                Ok(0)
            }
        }
    }

    fn close(self) -> io::Result<()> {
        Ok(())
    }

    fn waits(&self) -> Waits {
        self.waits
    }
}

/// For what comes to its own end, also on a busy machine.
fn limits() -> Limits {
    Limits::new(Duration::from_secs(20), Duration::from_secs(10)).unwrap()
}

/// For what has no end of its own.
fn short() -> Limits {
    Limits::new(Duration::from_millis(200), Duration::from_millis(200)).unwrap()
}

fn received(bytes: &'static [u8], end: End) -> Result<SecretPayload, FrameError> {
    let waits = Waits::Never;
    let limits = match end {
        End::Never => short(),
        _ => limits(),
    };
    receive(Static { bytes, end, waits }, limits)
}

#[test]
fn a_block_that_still_has_a_secret_is_noticed() {
    // What every other test of this file relies on: one that is dropped as it is, one that grew and
    // left its beginning behind, one that was made into text.
    let kept = frame(1, 20);
    drop(kept.to_vec());
    assert_eq!(LEAKS[1].load(Ordering::SeqCst), 1);
    let mut growing = kept.to_vec();
    growing.extend([0; 4096]);
    growing.fill(0);
    drop(growing);
    assert_eq!(LEAKS[1].load(Ordering::SeqCst), 2);
    drop(String::from_utf8_lossy(&kept[4..]).into_owned());
    assert_eq!(LEAKS[1].load(Ordering::SeqCst), 3);
}

#[test]
fn a_payload_is_erased_after_it_was_consumed_however_that_went() {
    static FRAME: [u8; 24] = frame(2, 20);
    leaves_nothing(2, 4, || {
        let payload = || received(&FRAME, End::Eof).unwrap();
        assert_eq!(payload().consume(|bytes| Ok::<_, ()>(bytes.len())), Ok(20));
        let failed = payload().consume(|_| Err::<(), _>(()));
        assert_eq!(failed.unwrap_err().code, FrameCode::CallbackFailed);
        let panicked = payload()
            .consume(|_| -> Result<(), ()> { std::panic::resume_unwind(Box::new("panicked")) });
        assert_eq!(panicked.unwrap_err().code, FrameCode::CallbackFailed);
        drop(payload());
    });
}

#[test]
fn what_was_read_is_erased_whatever_it_is_refused_for() {
    static LONG: [u8; 24] = frame(3, 19);
    static SHORT: [u8; 24] = frame(3, 21);
    static EMPTY: [u8; 24] = frame(3, 0);
    static OVERSIZE: [u8; 24] = {
        let mut frame = frame(3, 1);
        frame[0] = 1;
        frame
    };
    static WHOLE: [u8; 24] = frame(3, 20);
    let table = [
        (&LONG, End::Eof, FrameCode::Trailing),
        (&SHORT, End::Eof, FrameCode::ReadPayload),
        (&EMPTY, End::Eof, FrameCode::Empty),
        (&OVERSIZE, End::Eof, FrameCode::Oversize),
        (&SHORT, End::Fail, FrameCode::SourceError),
        (&WHOLE, End::Fail, FrameCode::ReadTrailing),
        (&WHOLE, End::Panic, FrameCode::Internal),
        (&WHOLE, End::Never, FrameCode::Timeout),
    ];
    leaves_nothing(3, table.len(), || {
        for (bytes, end, code) in table {
            let refused = received(bytes, end).unwrap_err();
            assert_eq!(refused.code, code);
            assert!(!format!("{refused} {refused:?}").contains("sesame"));
        }
    });
}

#[test]
fn what_a_hanging_read_left_behind_is_erased_when_it_returns() {
    static FRAME: [u8; 24] = frame(4, 20);
    leaves_nothing(4, 1, || {
        let (open, until) = channel();
        let source = Static {
            bytes: &FRAME,
            end: End::Hang(until),
            waits: Waits::Anywhere,
        };
        assert_eq!(
            receive(source, short()).unwrap_err().code,
            FrameCode::Timeout
        );
        drop(open);
    });
}

#[test]
fn a_payload_in_flight_is_erased_where_its_caller_panics() {
    static FRAME: [u8; 24] = frame(5, 20);
    leaves_nothing(5, 1, || {
        let panicked = std::thread::spawn(|| {
            let _payload = received(&FRAME, End::Eof).unwrap();
            std::panic::resume_unwind(Box::new("panicked"));
        });
        assert!(panicked.join().is_err());
    });
}

#[test]
fn a_vector_that_becomes_a_payload_is_erased_also_where_it_does_not() {
    leaves_nothing(6, 1, || {
        let secret = frame(6, 20);
        drop(SecretPayload::from_vec(secret.to_vec()).unwrap());
        // Already at its size, as growing would leave copies that are the caller's.
        let mut over = vec![0; 70_000];
        over[..24].copy_from_slice(&secret);
        assert_eq!(
            SecretPayload::from_vec(over).unwrap_err().code,
            FrameCode::Oversize
        );
    });
}

/// One read of everything, and then what `after` says.
struct Async(&'static [u8], Answer);

/// What a read says.
type Answer = fn() -> Poll<io::Result<()>>;

impl tokio::io::AsyncRead for Async {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return self.1();
        }
        to.put_slice(self.0);
        self.0 = &[];
        Poll::Ready(Ok(()))
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.enable_time().build().unwrap()
}

#[test]
fn an_asynchronous_read_erases_what_it_read_whatever_it_is_refused_for() {
    static LONG: [u8; 24] = frame(7, 19);
    static WHOLE: [u8; 24] = frame(7, 20);
    let table: [(&'static [u8], Answer, Option<FrameCode>); 5] = [
        (&WHOLE, || Poll::Ready(Ok(())), None),
        (&LONG, || Poll::Ready(Ok(())), Some(FrameCode::Trailing)),
        (&WHOLE, || Poll::Pending, Some(FrameCode::Timeout)),
        (
            &WHOLE,
            || Poll::Ready(Err(io::ErrorKind::Other.into())),
            Some(FrameCode::ReadTrailing),
        ),
        (
            &WHOLE,
            || std::panic::resume_unwind(Box::new("panicked")),
            Some(FrameCode::Internal),
        ),
    ];
    leaves_nothing(7, table.len(), || {
        for (bytes, after, code) in table {
            let limits = match code {
                Some(FrameCode::Timeout) => short(),
                _ => limits(),
            };
            let result = runtime().block_on(receive_async(Async(bytes, after), limits));
            assert_eq!(result.err().map(|e| e.code), code);
        }
    });
}

#[test]
fn a_future_that_is_dropped_half_way_erases_what_it_read() {
    static FRAME: [u8; 24] = frame(8, 20);
    leaves_nothing(8, 1, || {
        let runtime = runtime();
        let _inside = runtime.enter();
        let mut future = Box::pin(receive_async(Async(&FRAME, || Poll::Pending), limits()));
        let waker = std::task::Waker::noop();
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(waker))
                .is_pending()
        );
        // It has the secret now, and nobody asks for it any more.
        drop(future);
    });
}

#[test]
fn a_writer_makes_no_copy_of_what_it_writes() {
    static FRAME: [u8; 24] = frame(9, 20);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let (other, socket) = std::os::unix::net::UnixStream::pair().unwrap();
    for (reader, writer) in [(reader, writer), (other.into(), OwnedFd::from(socket))] {
        leaves_nothing(9, 1, || {
            send(
                DescriptorSink::adopt(writer).unwrap(),
                &FRAME[4..],
                limits(),
            )
            .unwrap();
            let payload = receive(Descriptor::adopt(reader).unwrap(), limits()).unwrap();
            assert_eq!(
                payload.consume(|bytes| Ok::<_, ()>(bytes == &FRAME[4..])),
                Ok(true)
            );
        });
    }
}
