use crate::{LedgerCode, LedgerError};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two tries: far less than an admission takes.
const PAUSE: Duration = Duration::from_millis(5);

/// Held while a branch may move. The kernel lets go of it when the last process that has the
/// descriptor is gone, so a process that starts `git` hands it down: an orphaned `git` that could
/// still move the branch keeps the lock, and a recovery waits for it.
#[derive(Debug)]
pub struct AdmissionLock(OwnedFd);

impl AdmissionLock {
    pub(crate) fn acquire(file: &Path, patience: Duration) -> Result<Self, LedgerError> {
        let fd = open(
            file,
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|e| LedgerCode::LedgerUnreadable.refuse(format!("lock file: {e}")))?;
        let deadline = Instant::now() + patience;
        loop {
            match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(fd)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(LedgerCode::LedgerBusy.refuse(format!("waited {patience:?}")));
                }
                Err(e) => {
                    return Err(LedgerCode::LedgerUnreadable.refuse(format!("lock file: {e}")));
                }
            }
        }
    }
}

impl AsFd for AdmissionLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
