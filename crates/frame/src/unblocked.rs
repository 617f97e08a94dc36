//! Reads and writes that never wait, and never change a flag that others share.
//!
//! `O_NONBLOCK` belongs to the open file description, which every copy of a descriptor shares: the
//! parent's standard input turned non-blocking under it, when its child set the flag on a copy. So
//! it is never set here. Each call says for itself that it does not wait.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{RecvFlags, SendFlags};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// A pipe or a stream socket.
#[derive(Debug)]
pub(crate) struct Unblocked {
    fd: OwnedFd,
    way: Way,
}

/// How a call is kept from waiting.
#[derive(Debug)]
enum Way {
    /// `RWF_NOWAIT`, and for writes `RWF_NOSIGNAL` where the kernel knows it.
    Flagged,
    /// The same pipe, opened once more with `O_NONBLOCK`: a description nobody shares. For kernels
    /// before 6.4, and for pipes with a name, which do not take `RWF_NOWAIT`.
    Reopened(OwnedFd),
    /// `MSG_DONTWAIT`.
    Socket,
}

impl Unblocked {
    pub(crate) fn pipe(fd: OwnedFd) -> Self {
        let way = Way::Flagged;
        Self { fd, way }
    }

    pub(crate) fn socket(fd: OwnedFd) -> Self {
        let way = Way::Socket;
        Self { fd, way }
    }

    /// Reads what is there; `AGAIN` where nothing is. 0 is the end.
    pub(crate) fn read(&mut self, to: &mut [u8]) -> Result<usize, Errno> {
        match &self.way {
            Way::Flagged => {
                let mut parts = [IoSliceMut::new(to)];
                let flags = ReadWriteFlags::NOWAIT;
                match rustix::io::preadv2(&self.fd, &mut parts, NO_OFFSET, flags) {
                    Err(e) if lacks_flags(e) => {
                        self.reopen(OFlags::RDONLY)?;
                        self.read(to)
                    }
                    result => result,
                }
            }
            Way::Reopened(again) => rustix::io::read(again, to),
            Way::Socket => {
                let (count, _) = rustix::net::recv(&self.fd, to, RecvFlags::DONTWAIT)?;
                Ok(count)
            }
        }
    }

    /// Writes as much as there is room for; `AGAIN` where there is none.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match &self.way {
            Way::Flagged => match write_flagged(self.fd.as_fd(), bytes) {
                Err(e) if lacks_flags(e) => {
                    self.reopen(OFlags::WRONLY)?;
                    self.write(bytes)
                }
                result => result,
            },
            Way::Reopened(again) => rustix::io::write(again, bytes),
            Way::Socket => {
                let flags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
                rustix::net::send(&self.fd, bytes, flags)
            }
        }
    }

    /// Closes all of it, and says what the operating system said.
    pub(crate) fn close(self) -> Result<(), std::io::Error> {
        if let Way::Reopened(again) = self.way {
            nix::unistd::close(again)?;
        }
        Ok(nix::unistd::close(self.fd)?)
    }

    fn reopen(&mut self, access: OFlags) -> Result<(), Errno> {
        let path = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let flags = access.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
        self.way = Way::Reopened(rustix::fs::open(path, flags, Mode::empty())?);
        Ok(())
    }
}

impl AsFd for Unblocked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until the descriptor is ready; false when the deadline passed first. The deadline is one
/// moment, fixed by the caller, and it wins: a peer that sends one byte at a time gains nothing,
/// and neither do signals.
pub(crate) fn wait(fd: BorrowedFd<'_>, ready: PollFlags, deadline: Instant) -> Result<bool, Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&fd, ready)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(e),
        }
    }
}

/// A pipe whose reader is gone must be an error, not a signal that ends the process. Rust programs
/// ignore the signal from their start; this library may be in another program.
fn write_flagged(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let parts = [IoSlice::new(bytes)];
    let quiet = ReadWriteFlags::NOWAIT.union(RWF_NOSIGNAL);
    match rustix::io::pwritev2(fd, &parts, NO_OFFSET, quiet) {
        Err(e) if lacks_flags(e) => {
            rustix::io::pwritev2(fd, &parts, NO_OFFSET, ReadWriteFlags::NOWAIT)
        }
        result => result,
    }
}

/// Whether the call itself, or one of its flags, is not there: an old kernel, a filter of system
/// calls, or a pipe with a name.
fn lacks_flags(e: Errno) -> bool {
    matches!(
        e,
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL
    )
}

/// The offset that means "where the stream is".
const NO_OFFSET: u64 = u64::MAX;
/// No SIGPIPE for this write. Since Linux 6.18.
const RWF_NOSIGNAL: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_opened_again_only_where_it_does_not_take_the_flags() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut byte = [0];
        let mut parts = [IoSliceMut::new(&mut byte)];
        let asked = rustix::io::preadv2(&reader, &mut parts, NO_OFFSET, ReadWriteFlags::NOWAIT);
        let (mut reader, mut writer) = (Unblocked::pipe(reader), Unblocked::pipe(writer));
        assert_eq!(reader.read(&mut [0]), Err(Errno::AGAIN));
        while writer.write(&[0; 4096]).is_ok() {}
        assert_eq!(writer.write(&[0]), Err(Errno::AGAIN));
        // A pipe that has nothing to read, or no room, takes them all the same.
        let taken = asked == Err(Errno::AGAIN);
        for side in [reader, writer] {
            assert_eq!(matches!(side.way, Way::Flagged), taken);
        }
    }
}
