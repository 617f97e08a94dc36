//! A program that is told to stop: whoever waits for a session of it is answered at once, and no other is
//! opened. Sessions end by the way they always end, and prove that nothing is left.

use crate::{SessionCode, SessionError, record};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process was told to stop.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Kills what runs in this process's sessions on this machine; those of an engine answer what they were
/// asked last. No session of this process is opened or asked anything from now on. May be repeated: a
/// session that was being opened the first time is killed the next.
///
/// # Errors
/// `HOST_IO`, if the records cannot be read.
pub fn interrupt(state_dir: &Path) -> Result<(), SessionError> {
    TOLD.store(true, Ordering::SeqCst);
    record::kill_own(state_dir)
}

/// Refuses once the process was told to stop.
///
/// # Errors
/// `INTERRUPTED`.
pub fn check() -> Result<(), SessionError> {
    match TOLD.load(Ordering::SeqCst) {
        false => Ok(()),
        true => Err(SessionCode::Interrupted.refuse("SIGINT")),
    }
}

/// What a session answered. That one which was killed did not answer is no fault of its own; that something
/// is left of it is one.
pub(crate) fn instead<T>(answer: Result<T, SessionError>) -> Result<T, SessionError> {
    match answer {
        Err(failed) if failed.code != SessionCode::Leak => Err(check().err().unwrap_or(failed)),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_told_to_stop_hears_of_that_and_of_leaks_alone() {
        let lost = || Err::<(), _>(SessionCode::SessionLost.refuse(""));
        let leak = || Err::<(), _>(SessionCode::Leak.refuse(""));
        let code = |answer: Result<(), SessionError>| answer.unwrap_err().code;
        assert_eq!(check(), Ok(()));
        assert_eq!(code(instead(lost())), SessionCode::SessionLost);
        interrupt(Path::new("/nonexistent")).unwrap();
        assert_eq!(code(check()), SessionCode::Interrupted);
        assert_eq!(code(instead(lost())), SessionCode::Interrupted);
        assert_eq!(code(instead(leak())), SessionCode::Leak);
        assert_eq!(instead(Ok(1)), Ok(1));
        // For the other tests of this process.
        TOLD.store(false, Ordering::SeqCst);
    }
}
