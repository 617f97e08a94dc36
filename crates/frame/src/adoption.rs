//! Descriptors that this process was handed: what they are, whether they will do, and that nobody
//! gets them next.

use crate::code::{FrameCode, FrameError};
use crate::unblocked::Unblocked;
use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::net::SocketType;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

/// A descriptor that will do.
#[derive(Debug)]
pub(crate) enum Stream {
    Unblocked(Unblocked),
    File(File),
}

/// Takes over a pipe or a stream socket.
pub(crate) fn adopt_stream(fd: OwnedFd, direction: Direction) -> Result<Unblocked, FrameError> {
    match adopt(fd, direction)? {
        Stream::Unblocked(stream) => Ok(stream),
        Stream::File(_) => Err(FrameCode::InvalidFd.refuse("a file")),
    }
}

/// What is to be done with a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Takes over a descriptor: a pipe, a stream socket or a file.
pub(crate) fn adopt(fd: OwnedFd, direction: Direction) -> Result<Stream, FrameError> {
    let number = fd.as_raw_fd();
    if number < LEAST_NUMBER {
        // Closed, it would be given to the next file that is opened, which would then be written to
        // by every print.
        let _ = fd.into_raw_fd();
        return Err(FrameCode::InvalidFd.refuse(format_args!("descriptor {number}")));
    }
    let refusal = match inspect(fd.as_fd(), direction) {
        Ok(Kind::File) => return Ok(Stream::File(fd.into())),
        Ok(Kind::Pipe) => return Ok(Stream::Unblocked(Unblocked::pipe(fd))),
        Ok(Kind::Socket) => return Ok(Stream::Unblocked(Unblocked::socket(fd))),
        Err(refusal) => refusal,
    };
    if let NotThat::Errno(Errno::BADF) = refusal {
        // Not open at all, so there is nothing to close; the number may be another's by now.
        let _ = fd.into_raw_fd();
    }
    Err(match refusal {
        NotThat::Errno(e) => invalid(e),
        NotThat::Kind(kind) => {
            FrameCode::InvalidFd.refuse(format_args!("descriptor {number} is {kind}"))
        }
    })
}

enum Kind {
    Pipe,
    Socket,
    File,
}

/// Why a descriptor is not taken.
enum NotThat {
    Errno(Errno),
    Kind(&'static str),
}

impl From<Errno> for NotThat {
    fn from(value: Errno) -> Self {
        Self::Errno(value)
    }
}

/// What it is, and that it is not inherited any further.
fn inspect(fd: BorrowedFd<'_>, direction: Direction) -> Result<Kind, NotThat> {
    let status = rustix::fs::fstat(fd)?;
    let flags = rustix::fs::fcntl_getfl(fd)?;
    let kind = kind(fd, FileType::from_raw_mode(status.st_mode))?;
    may(flags, direction, &kind)?;
    // The only flag a descriptor has of its own.
    rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    Ok(kind)
}

fn kind(fd: BorrowedFd<'_>, found: FileType) -> Result<Kind, NotThat> {
    match found {
        FileType::Fifo => Ok(Kind::Pipe),
        FileType::RegularFile => Ok(Kind::File),
        // Others deliver pieces, and an empty piece would be taken for the end.
        FileType::Socket if rustix::net::sockopt::socket_type(fd)? == SocketType::STREAM => {
            Ok(Kind::Socket)
        }
        FileType::Socket => Err(NotThat::Kind("a socket, but not a stream")),
        FileType::CharacterDevice => Err(NotThat::Kind("a terminal or character device")),
        FileType::Directory => Err(NotThat::Kind("a directory")),
        _ => Err(NotThat::Kind("of an unknown kind")),
    }
}

/// Whether it is open for what is to be done. A pipe that is open for both has no end: it is its
/// own other side.
fn may(flags: OFlags, direction: Direction, kind: &Kind) -> Result<(), NotThat> {
    if flags.contains(OFlags::PATH) {
        return Err(NotThat::Kind("open as a path only"));
    }
    let access = flags & OFlags::RWMODE;
    match (direction, kind) {
        (_, Kind::Pipe) if access == OFlags::RDWR => {
            Err(NotThat::Kind("a pipe open for both reading and writing"))
        }
        (Direction::Read, _) if access == OFlags::WRONLY => {
            Err(NotThat::Kind("open for writing only"))
        }
        (Direction::Write, _) if access == OFlags::RDONLY => {
            Err(NotThat::Kind("open for reading only"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn invalid(e: Errno) -> FrameError {
    FrameCode::InvalidFd.refuse(e)
}

/// The first number that is not a standard stream.
pub(crate) const LEAST_NUMBER: i32 = 3;
