use super::beside::{NoAnswer, beside};
use super::panics;
use super::source::shown;
use crate::code::{FrameCode, FrameError};
use std::io;
use std::time::Instant;

/// Which calls on a source or sink may take longer than they were told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// None: a read ends by its deadline, a close returns at once. Pipes and stream sockets.
    Never,
    /// A close may hang, a read or write ends by its deadline.
    Close,
    /// Any call may hang. A file: its file system may be remote, or another program.
    Anywhere,
}

/// What became of a close.
#[derive(Debug)]
pub(super) enum Close {
    Confirmed,
    Failed(io::Error),
    /// Why nobody knows.
    Unconfirmed(&'static str),
}

impl Close {
    /// Calls `close`, once, and waits for it until then. Where it may hang, it does so on a thread
    /// that is left behind.
    pub(super) fn confirm(
        waits: Waits,
        until: Instant,
        close: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Self {
        let answer = match waits {
            Waits::Never => panics::caught(close).ok_or(NoAnswer::Panicked),
            Waits::Close | Waits::Anywhere => beside(until, close),
        };
        match answer {
            Ok(_) if Clock::at(until) == Clock::Late => Self::Unconfirmed("it came too late"),
            Ok(Ok(())) => Self::Confirmed,
            Ok(Err(e)) => Self::Failed(e),
            Err(no_answer) => no_answer.into(),
        }
    }
}

impl From<NoAnswer> for Close {
    fn from(value: NoAnswer) -> Self {
        Self::Unconfirmed(match value {
            NoAnswer::Late => "it did not return in time",
            NoAnswer::Panicked => "it panicked",
            NoAnswer::NotStarted => "no thread could be started for it",
        })
    }
}

/// Whether the total deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    InTime,
    Late,
}

impl Clock {
    pub(super) fn at(deadline: Instant) -> Self {
        if Instant::now() < deadline {
            Self::InTime
        } else {
            Self::Late
        }
    }
}

/// The one answer to what reading or writing gave, what closing gave, and what the clock says. The
/// clock comes first, then doubt about the close, then everything else; there is no success with
/// either.
pub(super) fn settle<T>(
    result: Result<T, FrameError>,
    close: Close,
    clock: Clock,
) -> Result<T, FrameError> {
    match (result, close, clock) {
        (Err(e), _, _) if e.code == FrameCode::Timeout => Err(e),
        (_, _, Clock::Late) => {
            Err(FrameCode::Timeout.refuse("the deadline passed before the close was confirmed"))
        }
        (_, Close::Unconfirmed(why), _) => {
            Err(FrameCode::CloseUnconfirmed.refuse(format_args!("the close: {why}")))
        }
        (Err(e), _, _) => Err(e),
        (Ok(_), Close::Failed(e), _) => Err(FrameCode::CloseFailed.refuse(shown(&e))),
        (Ok(value), Close::Confirmed, _) => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_wins_over_doubt_and_doubt_over_everything_else() {
        use FrameCode::{CloseFailed, CloseUnconfirmed, Timeout, Trailing};
        let results = [Ok(()), Err(Trailing), Err(Timeout)];
        let expected = [
            // Closed, close failed, close unconfirmed; in time and then late.
            [
                [None, Some(CloseFailed), Some(CloseUnconfirmed)],
                [Some(Timeout); 3],
            ],
            [
                [Some(Trailing), Some(Trailing), Some(CloseUnconfirmed)],
                [Some(Timeout); 3],
            ],
            [[Some(Timeout); 3], [Some(Timeout); 3]],
        ];
        for (result, by_clock) in results.into_iter().zip(expected) {
            for (clock, by_close) in [Clock::InTime, Clock::Late].into_iter().zip(by_clock) {
                let closes = [
                    Close::Confirmed,
                    Close::Failed(io::Error::other("x")),
                    Close::Unconfirmed("x"),
                ];
                for (close, code) in closes.into_iter().zip(by_close) {
                    let result = result.map_err(|code| code.refuse("x"));
                    let found = settle(result, close, clock).err().map(|e| e.code);
                    assert_eq!(found, code);
                }
            }
        }
    }

    #[test]
    fn a_close_that_returns_too_late_is_not_confirmed() {
        let slow = || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            Ok(())
        };
        let found = Close::confirm(Waits::Never, Instant::now(), slow);
        assert!(matches!(found, Close::Unconfirmed("it came too late")));
    }
}
