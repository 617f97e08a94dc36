use super::closing::{Clock, Close, Waits, settle};
use super::source::{is_early, shown};
use super::{HEADER_BYTES, Limits, panics, state};
use crate::adoption::{Direction, adopt_stream};
use crate::code::{FrameCode, FrameError};
use crate::unblocked::{Unblocked, wait};
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// Where a frame goes. What it says is not believed where it can be checked.
pub trait Sink: Send + 'static {
    /// Writes from the front of `bytes`, which is never empty, and waits for room until `deadline`
    /// at most. It may return early with an error of kind `Interrupted`, `WouldBlock` or
    /// `TimedOut`; it is called again while there is time.
    ///
    /// # Errors
    /// What the operating system says.
    fn write(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<usize>;

    /// Closes it, which ends the frame. Called once, however writing ended.
    ///
    /// # Errors
    /// What the operating system says.
    fn close(self) -> io::Result<()>;

    /// Which of these may take longer than they were told to. Writing must not: the secret belongs
    /// to the caller and cannot be left behind with a thread, so `Anywhere` is refused.
    fn waits(&self) -> Waits;
}

/// Writes exactly one frame and closes its sink. No copy is made of the payload.
///
/// # Errors
/// [`FrameCode::Empty`] or [`FrameCode::Oversize`], and nothing is written; the other side does not
/// read all of it in time, or is gone; or the close is not confirmed in time.
pub fn send<K: Sink>(mut sink: K, payload: &[u8], limits: Limits) -> Result<(), FrameError> {
    let deadline = Instant::now() + limits.total();
    let waits = sink.waits();
    let written = panics::caught(|| write_frame(&mut sink, payload, deadline));
    let written = written.unwrap_or_else(|| Err(FrameCode::Internal.refuse("the sink panicked")));
    let close_by = deadline.min(Instant::now() + limits.close());
    let close = Close::confirm(waits, close_by, move || sink.close());
    settle(written, close, Clock::at(deadline))
}

/// A descriptor that a frame is written to: one end of a pipe, or a stream socket.
#[derive(Debug)]
pub struct DescriptorSink {
    stream: Unblocked,
}

impl DescriptorSink {
    /// Takes over a descriptor. No program started by this process gets it from here on. No flag is
    /// changed that others share.
    ///
    /// # Errors
    /// [`FrameCode::InvalidFd`]: it is 0, 1 or 2 (and is left open), or neither pipe nor stream
    /// socket open for writing (and is closed).
    pub fn adopt(fd: OwnedFd) -> Result<Self, FrameError> {
        let stream = adopt_stream(fd, Direction::Write)?;
        Ok(Self { stream })
    }
}

impl Sink for DescriptorSink {
    fn write(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<usize> {
        match self.stream.write(bytes) {
            Err(Errno::AGAIN) => {
                wait(self.stream.as_fd(), PollFlags::OUT, deadline)?;
                Err(Errno::AGAIN.into())
            }
            result => Ok(result?),
        }
    }

    fn close(self) -> io::Result<()> {
        self.stream.close()
    }

    fn waits(&self) -> Waits {
        Waits::Never
    }
}

impl AsFd for DescriptorSink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn write_frame(sink: &mut impl Sink, payload: &[u8], deadline: Instant) -> Result<(), FrameError> {
    if sink.waits() == Waits::Anywhere {
        return Err(FrameCode::SourceError.refuse("a sink whose writes may hang"));
    }
    let length = state::check(payload.len() as u64)?;
    let header = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    write_all(sink, &header, 0, deadline)?;
    write_all(sink, payload, HEADER_BYTES, deadline)
}

/// `before` bytes of the frame were written already.
fn write_all(
    sink: &mut impl Sink,
    bytes: &[u8],
    before: usize,
    deadline: Instant,
) -> Result<(), FrameError> {
    let mut left = bytes;
    while !left.is_empty() {
        let written = before + bytes.len() - left.len();
        if Clock::at(deadline) == Clock::Late {
            return Err(FrameCode::Timeout.refuse(format_args!(
                "the deadline passed after {written} bytes were written"
            )));
        }
        match sink.write(left, deadline) {
            Ok(count) if count == 0 || count > left.len() => {
                return Err(FrameCode::SourceError.refuse(format_args!(
                    "the sink claims {count} bytes of {}",
                    left.len()
                )));
            }
            Ok(count) => left = left.get(count..).unwrap_or_default(),
            Err(e) if is_early(&e) => {}
            Err(e) => {
                return Err(FrameCode::SourceError
                    .refuse(format_args!("after {written} bytes: {}", shown(&e))));
            }
        }
    }
    Ok(())
}
