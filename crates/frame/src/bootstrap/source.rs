use super::beside::{NoAnswer, beside};
use super::buffer::Buffer;
use super::closing::{Clock, Close, Waits, settle};
use super::{FrameState, Limits, SecretPayload, panics};
use crate::code::{FrameCode, FrameError};
use std::io::{self, ErrorKind};
use std::time::Instant;

/// Where a frame comes from. What it says is not believed where it can be checked.
pub trait Source: Send + 'static {
    /// Reads bytes to the front of `to`, which is never empty, and waits for them until `deadline`
    /// at most. 0 is the end of the stream. It may return early with an error of kind
    /// `Interrupted`, `WouldBlock` or `TimedOut`; it is called again while there is time.
    ///
    /// # Errors
    /// What the operating system says.
    fn read(&mut self, to: &mut [u8], deadline: Instant) -> io::Result<usize>;

    /// Closes it. Called once, however reading ended; not where a read may hang ([`Waits::Anywhere`]) and
    /// did not return by the deadline: the source is dropped when it does.
    ///
    /// # Errors
    /// What the operating system says.
    fn close(self) -> io::Result<()>;

    /// Which of these may take longer than they were told to.
    fn waits(&self) -> Waits;
}

/// Reads exactly one frame and closes its source.
///
/// # Errors
/// The frame is not exactly one, not whole, or not there in time; or the source fails, or its close
/// is not confirmed in time. What was read is erased.
pub fn receive<S: Source>(source: S, limits: Limits) -> Result<SecretPayload, FrameError> {
    let deadline = Instant::now() + limits.total();
    let waits = source.waits();
    let read = match waits {
        Waits::Never | Waits::Close => Ok(read_frame(source, deadline)),
        Waits::Anywhere => beside(deadline, move || read_frame(source, deadline)),
    };
    let (source, read) = match read {
        Ok(read) => read,
        Err(no_answer) => return Err(unread(no_answer)),
    };
    let close_by = deadline.min(Instant::now() + limits.close());
    let close = Close::confirm(waits, close_by, move || source.close());
    settle(read, close, Clock::at(deadline))
}

/// The source, to be closed, and what was read from it.
type Read<S> = (S, Result<SecretPayload, FrameError>);

fn read_frame<S: Source>(mut source: S, deadline: Instant) -> Read<S> {
    let mut buffer = Buffer::new();
    let read = panics::caught(|| fill(&mut source, &mut buffer, deadline));
    let read = read.unwrap_or_else(|| Err(FrameCode::Internal.refuse("the source panicked")));
    (
        source,
        read.map(|length| SecretPayload::new(buffer, length)),
    )
}

fn fill(
    source: &mut impl Source,
    buffer: &mut Buffer,
    deadline: Instant,
) -> Result<usize, FrameError> {
    let mut state = FrameState::new();
    loop {
        // Before every read: bytes that are always there must not win over the clock.
        if Clock::at(deadline) == Clock::Late {
            return Err(late(&state));
        }
        match source.read(state.room(buffer.bytes_mut()), deadline) {
            Ok(0) => return state.end(),
            Ok(count) => state.advance(buffer.bytes(), count)?,
            Err(e) if is_early(&e) => {}
            Err(e) => return Err(broken(&state, &e)),
        }
    }
}

pub(super) fn late(state: &FrameState) -> FrameError {
    FrameCode::Timeout.refuse(format_args!(
        "the deadline passed after {} bytes",
        state.received()
    ))
}

/// A read that failed. Only its kind and number are shown: the text of an error that is not the
/// operating system's may quote what was read.
pub(super) fn broken(state: &FrameState, error: &io::Error) -> FrameError {
    let code = if state.is_whole() {
        FrameCode::ReadTrailing
    } else {
        FrameCode::SourceError
    };
    code.refuse(format_args!(
        "after {} bytes: {}",
        state.received(),
        shown(error)
    ))
}

/// An error without its own words, where those are not the operating system's.
pub(super) fn shown(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number).to_string(),
        None => error.kind().to_string(),
    }
}

/// Whether a read merely came back without anything.
pub(super) fn is_early(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut
    )
}

/// What is to be said where the thread that reads gave no answer. It still has source and buffer,
/// and drops and erases them when it comes back, or did so when it could not start.
fn unread(no_answer: NoAnswer) -> FrameError {
    match no_answer {
        NoAnswer::Late => FrameCode::Timeout.refuse("a read did not return by the deadline"),
        NoAnswer::Panicked => {
            FrameCode::CloseUnconfirmed.refuse("the close: the thread that reads panicked")
        }
        NoAnswer::NotStarted => {
            FrameCode::CloseUnconfirmed.refuse("the close: no thread could be started to read")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_thread_that_panics_is_not_called_one_that_did_not_start() {
        let told = [NoAnswer::Late, NoAnswer::Panicked, NoAnswer::NotStarted].map(unread);
        let [late, panicked, absent] = told.map(|refused| (refused.code, refused.detail));
        assert_eq!(late.0, FrameCode::Timeout);
        assert_eq!([panicked.0, absent.0], [FrameCode::CloseUnconfirmed; 2]);
        assert!(panicked.1.contains("panicked"), "{}", panicked.1);
        assert!(
            absent.1.contains("no thread could be started"),
            "{}",
            absent.1
        );
    }
}
