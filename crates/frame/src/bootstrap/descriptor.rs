use super::{Source, Waits};
use crate::adoption::{Direction, LEAST_NUMBER, Stream, adopt, invalid};
use crate::code::{FrameCode, FrameError};
use crate::unblocked::wait;
use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// A descriptor that a frame is read from: one end of a pipe, a stream socket, or a file.
#[derive(Debug)]
pub struct Descriptor {
    stream: Stream,
}

impl Descriptor {
    /// Takes over a descriptor that was handed down when this process was started. From here on no
    /// program started by this process gets it. No flag is changed that others share.
    ///
    /// # Errors
    /// [`FrameCode::InvalidFd`]: it is 0, 1 or 2 (and is left open, as the next file to be opened
    /// would take its place), or nothing that can be read to an end (and is closed).
    pub fn adopt(fd: OwnedFd) -> Result<Self, FrameError> {
        let stream = adopt(fd, Direction::Read)?;
        Ok(Self { stream })
    }

    /// Takes over the standard input of this process. What stays in its place is `/dev/null`, so
    /// that nothing else reads from it, and no program started later inherits it.
    ///
    /// It must come before anything reads `std::io::stdin`: what that has read is in a buffer of
    /// the whole process, which nobody can erase.
    ///
    /// # Errors
    /// [`FrameCode::InvalidFd`]: it is nothing that can be read to an end (and is left as it is).
    pub fn stdin() -> Result<Self, FrameError> {
        let stdin = rustix::stdio::stdin();
        let fd = rustix::io::fcntl_dupfd_cloexec(stdin, LEAST_NUMBER).map_err(invalid)?;
        let stream = adopt(fd, Direction::Read)?;
        rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .and_then(rustix::stdio::dup2_stdin)
            .map_err(|e| FrameCode::InvalidFd.refuse(format_args!("putting nothing there: {e}")))?;
        Ok(Self { stream })
    }
}

impl Source for Descriptor {
    fn read(&mut self, to: &mut [u8], deadline: Instant) -> io::Result<usize> {
        match &mut self.stream {
            Stream::File(file) => file.read(to),
            Stream::Unblocked(stream) => match stream.read(to) {
                // Also where it was ready a moment ago: another reader may have been faster.
                Err(Errno::AGAIN) => {
                    wait(stream.as_fd(), PollFlags::IN, deadline)?;
                    Err(Errno::AGAIN.into())
                }
                result => Ok(result?),
            },
        }
    }

    fn close(self) -> io::Result<()> {
        match self.stream {
            Stream::File(file) => Ok(nix::unistd::close(file)?),
            Stream::Unblocked(stream) => stream.close(),
        }
    }

    fn waits(&self) -> Waits {
        match self.stream {
            Stream::File(_) => Waits::Anywhere,
            Stream::Unblocked(_) => Waits::Never,
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::File(file) => file.as_fd(),
            Stream::Unblocked(stream) => stream.as_fd(),
        }
    }
}
