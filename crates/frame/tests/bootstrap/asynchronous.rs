use crate::fake::limits;
use flightproof_core::Code;
use flightproof_frame::bootstrap::{HEADER_BYTES, Limits, receive_async};
use flightproof_frame::{FrameCode, FrameError};
use flightproof_hostile::frame::{bootstrap_attacks, bootstrap_frame};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};

/// Real time: what is confirmed on another thread does not move a paused clock.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}

fn read<R: AsyncRead + Unpin + Send + 'static>(
    reader: R,
    limits: Limits,
) -> Result<Vec<u8>, FrameError> {
    let payload = block_on(receive_async(reader, limits))?;
    payload.consume(|bytes| Ok::<_, ()>(bytes.to_vec()))
}

/// Reads, and counts how often it was dropped.
struct Odd {
    left: Vec<u8>,
    way: Way,
    dropped: Arc<AtomicUsize>,
    drop_for: Duration,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// One byte at a time, always ready.
    Drip,
    Pending,
    Fail,
    Panic,
    /// Puts a buffer of its own in the place of the reader's.
    Swap,
    /// Panics where it is dropped.
    Bomb,
    /// One byte a millisecond, and never pending.
    Slow,
}

impl Odd {
    fn new(bytes: &[u8], way: Way) -> Self {
        Self {
            left: bytes.iter().rev().copied().collect(),
            way,
            dropped: Arc::default(),
            drop_for: Duration::ZERO,
        }
    }
}

impl AsyncRead for Odd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.way {
            Way::Drip | Way::Bomb => {}
            Way::Slow => std::thread::sleep(Duration::from_millis(1)),
            Way::Pending => return Poll::Pending,
            Way::Fail => return Poll::Ready(Err(io::Error::other("sesame"))),
            Way::Panic => std::panic::resume_unwind(Box::new("sesame")),
            Way::Swap => {
                let mut own = ReadBuf::new(Box::leak(vec![0; 70_000].into_boxed_slice()));
                own.put_slice(&bootstrap_frame(b"forged"));
                *to = own;
                return Poll::Ready(Ok(()));
            }
        }
        if let Some(byte) = self.left.pop() {
            to.put_slice(&[byte]);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(self.drop_for);
        if self.way == Way::Bomb {
            std::panic::resume_unwind(Box::new("sesame"));
        }
    }
}

#[test]
fn forged_frames_are_refused_with_their_code() {
    let attacks = bootstrap_attacks();
    assert!(!attacks.is_empty());
    for attack in attacks {
        for whole in [true, false] {
            let answer = |bytes: &'static [u8]| {
                if whole {
                    return read(bytes, limits(20_000, 2_000));
                }
                read(Odd::new(bytes, Way::Drip), limits(20_000, 2_000))
            };
            let refused = answer(attack.bytes.clone().leak()).unwrap_err();
            let expected = format!("frame/{}", attack.expect);
            assert_eq!(refused.code.explanation().code, expected, "{}", attack.name);
            let twin = answer(attack.twin.clone().leak()).unwrap();
            assert_eq!(twin, attack.twin[HEADER_BYTES..]);
        }
    }
}

#[test]
fn what_a_reader_does_wrong_has_its_code_and_it_is_dropped_once() {
    let table = [
        (Way::Fail, FrameCode::SourceError),
        (Way::Panic, FrameCode::Internal),
        (Way::Swap, FrameCode::SourceError),
        (Way::Bomb, FrameCode::CloseUnconfirmed),
        (Way::Pending, FrameCode::Timeout),
    ];
    for (way, code) in table {
        let reader = Odd::new(&bootstrap_frame(b"secret"), way);
        let dropped = Arc::clone(&reader.dropped);
        let total = if way == Way::Pending { 100 } else { 20_000 };
        let refused = read(reader, limits(total, 2_000)).unwrap_err();
        assert_eq!(refused.code, code);
        assert!(!refused.to_string().contains("sesame"));
        // After a deadline nobody waits for the drop.
        let patience = Instant::now() + Duration::from_secs(5);
        while dropped.load(Ordering::SeqCst) == 0 && Instant::now() < patience {
            std::thread::yield_now();
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_reader_that_is_always_ready_does_not_win_over_the_clock() {
    let start = Instant::now();
    let reader = Odd::new(&bootstrap_frame(&[1; 30_000]), Way::Slow);
    let refused = read(reader, limits(60, 1_000)).unwrap_err();
    assert_eq!(refused.code, FrameCode::Timeout);
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_drop_that_hangs_is_left_behind_and_never_a_success() {
    for (total, close, code) in [
        (10_000, 50, FrameCode::CloseUnconfirmed),
        (50, 10_000, FrameCode::Timeout),
    ] {
        let mut reader = Odd::new(&bootstrap_frame(b"secret"), Way::Drip);
        reader.drop_for = Duration::from_secs(20);
        let start = Instant::now();
        assert_eq!(read(reader, limits(total, close)).unwrap_err().code, code);
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_peer_that_comes_slowly_is_heard_until_the_deadline() {
    let trickle = |size, limits| {
        block_on(async move {
            let (reader, mut writer) = tokio::io::duplex(4);
            tokio::spawn(async move {
                for byte in bootstrap_frame(&vec![7; size]) {
                    if writer.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            });
            receive_async(reader, limits).await
        })
    };
    let payload = trickle(20, limits(20_000, 2_000)).unwrap();
    assert_eq!(payload.len(), 20);
    let start = Instant::now();
    let refused = trickle(4_000, limits(60, 2_000)).unwrap_err();
    assert_eq!(refused.code, FrameCode::Timeout);
    assert!(start.elapsed() >= Duration::from_millis(60));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_frame_whose_end_does_not_come_is_no_frame() {
    let refused = block_on(async {
        let (reader, mut writer) = tokio::io::duplex(64);
        writer.write_all(&bootstrap_frame(b"secret")).await.unwrap();
        let result = receive_async(reader, limits(60, 2_000)).await;
        drop(writer);
        result.unwrap_err()
    });
    assert_eq!(refused.code, FrameCode::Timeout);
}
