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
        true => Err(interrupted()),
    }
}

fn interrupted() -> SessionError {
    SessionCode::Interrupted.refuse("SIGINT")
}

/// What a session answered, or that the process was told to stop.
pub(crate) fn instead<T>(answer: Result<T, SessionError>) -> Result<T, SessionError> {
    told(TOLD.load(Ordering::SeqCst), answer)
}

/// That a session which was killed did not answer is no fault of its own; that something is left of it is
/// one.
fn told<T>(stop: bool, answer: Result<T, SessionError>) -> Result<T, SessionError> {
    match answer {
        Err(failed) if stop && failed.code != SessionCode::Leak => Err(interrupted()),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_told_to_stop_hears_of_that_and_of_leaks_alone() {
        let failed = |code: SessionCode| Err::<(), _>(code.refuse(""));
        let heard = |stop: bool, code: SessionCode| told(stop, failed(code)).unwrap_err().code;
        assert_eq!(
            heard(false, SessionCode::SessionLost),
            SessionCode::SessionLost
        );
        assert_eq!(
            heard(true, SessionCode::SessionLost),
            SessionCode::Interrupted
        );
        assert_eq!(heard(true, SessionCode::Leak), SessionCode::Leak);
        assert_eq!(told(true, Ok(1)), Ok(1));
    }
}
