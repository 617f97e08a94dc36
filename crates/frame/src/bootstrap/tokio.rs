use super::buffer::Buffer;
use super::closing::{Clock, Close, settle};
use super::source::{broken, late};
use super::{FrameState, Limits, SecretPayload, panics};
use crate::code::{FrameCode, FrameError};
use ::tokio::io::{AsyncRead, ReadBuf};
use ::tokio::sync::oneshot;
use ::tokio::time::{Instant, timeout_at};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;

/// Reads exactly one frame from `reader` and drops it, on a thread of its own, as a drop may hang.
/// A drop says nothing of errors, so [`FrameCode::CloseFailed`] never comes from here.
///
/// A future that is dropped before its end erases what it read and drops the reader. It needs a
/// runtime with a clock.
///
/// # Errors
/// The frame is not exactly one, not whole, or not there in time; or the reader fails, or its drop
/// is not confirmed in time. What was read is erased.
pub async fn receive_async<R: AsyncRead + Unpin + Send + 'static>(
    mut reader: R,
    limits: Limits,
) -> Result<SecretPayload, FrameError> {
    let deadline = Instant::now() + limits.total();
    let read = read_frame(&mut reader, deadline).await;
    let close_by = deadline.min(Instant::now() + limits.close());
    let close = confirm_drop(reader, close_by).await;
    let clock = if Instant::now() < deadline {
        Clock::InTime
    } else {
        Clock::Late
    };
    settle(read, close, clock)
}

async fn read_frame<R: AsyncRead + Unpin>(
    reader: &mut R,
    deadline: Instant,
) -> Result<SecretPayload, FrameError> {
    let mut buffer = Buffer::new();
    let mut state = FrameState::new();
    loop {
        // Before every read: a reader that always has another byte never yields to the timer.
        if Instant::now() >= deadline {
            return Err(late(&state));
        }
        let read = read_some(reader, state.room(buffer.bytes_mut()));
        match timeout_at(deadline, read).await {
            Err(_) => return Err(late(&state)),
            Ok(Some(Ok(0))) => break,
            Ok(Some(Ok(count))) => state.advance(buffer.bytes(), count)?,
            // Even an interruption: asked again at once, a reader that always says so would keep the
            // whole runtime busy.
            Ok(Some(Err(e))) => return Err(broken(&state, &e)),
            Ok(None) => return Err(FrameCode::Internal.refuse("the reader panicked")),
        }
    }
    let length = state.end()?;
    Ok(SecretPayload::new(buffer, length))
}

/// One read; `None` where the reader panicked.
async fn read_some<R: AsyncRead + Unpin>(
    reader: &mut R,
    to: &mut [u8],
) -> Option<io::Result<usize>> {
    let start = to.as_ptr();
    let mut to = ReadBuf::new(to);
    poll_fn(|context| {
        let polled = panics::caught(|| Pin::new(&mut *reader).poll_read(context, &mut to));
        polled.map_or(std::task::Poll::Ready(None), |poll| poll.map(Some))
    })
    .await
    .map(|result| {
        result?;
        // A reader is handed the buffer itself, and could put another in its place.
        if to.filled().as_ptr() != start {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(to.filled().len())
    })
}

async fn confirm_drop<R: Send + 'static>(reader: R, until: Instant) -> Close {
    let (dropped, confirmation) = oneshot::channel();
    let thread = std::thread::Builder::new().name("frame-helper".to_owned());
    let started = thread.spawn(move || {
        if panics::caught(|| drop(reader)).is_some() {
            // Nobody waits any more where this fails.
            let _ = dropped.send(());
        }
    });
    if started.is_err() {
        return Close::Unconfirmed("no thread could be started for it");
    }
    match timeout_at(until, confirmation).await {
        Ok(Ok(())) => Close::Confirmed,
        Ok(Err(_)) => Close::Unconfirmed("it panicked"),
        Err(_) => Close::Unconfirmed("it did not return in time"),
    }
}
