use super::panics;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Instant;

/// Why there is no answer from a helper thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It has not answered in time. It is left behind; what it owns goes away when it returns.
    Late,
    /// It panicked.
    Panicked,
    /// It could not be started. What it was to own is gone.
    NotStarted,
}

/// Does `work` on a thread of its own, and waits for its answer until then.
pub(super) fn beside<T: Send + 'static>(
    until: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoAnswer> {
    let (answer, answers) = sync_channel(1);
    let thread = std::thread::Builder::new().name("frame-helper".to_owned());
    thread
        .spawn(move || {
            if let Some(value) = panics::caught(work) {
                // Nobody waits any more where this fails, and the value is dropped right here.
                let _ = answer.send(value);
            }
        })
        .map_err(|_| NoAnswer::NotStarted)?;
    let left = until.saturating_duration_since(Instant::now());
    answers.recv_timeout(left).map_err(|e| match e {
        RecvTimeoutError::Timeout => NoAnswer::Late,
        RecvTimeoutError::Disconnected => NoAnswer::Panicked,
    })
}
