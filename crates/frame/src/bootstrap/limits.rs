use crate::code::{FrameCode, FrameError};
use std::time::Duration;

/// How long a frame may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    total: Duration,
    close: Duration,
}

impl Limits {
    /// `total` from the call to its answer, closing included; `close` from the last byte to the
    /// confirmed close.
    ///
    /// # Errors
    /// [`FrameCode::InvalidOptions`] outside 1 to 120,000 and 1 to 10,000 milliseconds.
    pub fn new(total: Duration, close: Duration) -> Result<Self, FrameError> {
        within("in all", total, MAX_TOTAL)?;
        within("for the close", close, MAX_CLOSE)?;
        Ok(Self { total, close })
    }

    /// From the call to its answer.
    pub fn total(self) -> Duration {
        self.total
    }

    /// For the close alone.
    pub fn close(self) -> Duration {
        self.close
    }
}

impl Default for Limits {
    /// 30 seconds in all, 2 for the close.
    fn default() -> Self {
        Self {
            total: Duration::from_millis(30_000),
            close: Duration::from_millis(2_000),
        }
    }
}

fn within(what: &str, found: Duration, most: Duration) -> Result<(), FrameError> {
    if (LEAST..=most).contains(&found) {
        return Ok(());
    }
    Err(FrameCode::InvalidOptions.refuse(format_args!(
        "{} ms {what}, where 1 to {} are accepted",
        found.as_millis(),
        most.as_millis()
    )))
}

/// Less would be over before it began, on kernels that tick a thousand times a second.
const LEAST: Duration = Duration::from_millis(1);
/// Two minutes: whoever starts a session has the frame ready, or something is wrong.
const MAX_TOTAL: Duration = Duration::from_millis(120_000);
/// Ten seconds: longer than any close that will ever return.
const MAX_CLOSE: Duration = Duration::from_millis(10_000);
