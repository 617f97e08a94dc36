use crate::fake::limits;
use flightproof_frame::bootstrap::{Descriptor, DescriptorSink, Source, Waits, receive};
use flightproof_frame::{FrameCode, FrameError};
use flightproof_hostile::frame::bootstrap_frame;
use rustix::fs::OFlags;
use rustix::io::FdFlags;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::{Duration, Instant};

fn opened(path: &str, flags: OFlags) -> OwnedFd {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, rustix::fs::Mode::empty()).unwrap()
}

/// Both ends of a pseudo terminal.
fn terminal() -> [OwnedFd; 2] {
    let [mut outer, mut inner] = [-1, -1];
    let none = std::ptr::null_mut();
    // SAFETY: two integers to write to, and no options.
    let made = unsafe {
        libc::openpty(
            &raw mut outer,
            &raw mut inner,
            none,
            none.cast(),
            none.cast(),
        )
    };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were just opened and are nobody else's.
    [outer, inner].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The refusal of a descriptor, and whether it was closed by it.
fn refusal(fd: OwnedFd) -> (FrameError, bool) {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    // Another test of this process could reuse the number meanwhile, so what it stands for is
    // compared, too.
    let before = std::fs::read_link(&path).unwrap();
    let refused = Descriptor::adopt(fd).unwrap_err();
    let open = std::fs::read_link(&path).is_ok_and(|now| now == before);
    (refused, !open)
}

/// The same at a number that no other test gets.
fn high(fd: OwnedFd) -> OwnedFd {
    rustix::io::fcntl_dupfd_cloexec(fd, 700).unwrap()
}

#[test]
fn what_has_no_end_that_means_one_is_refused_and_closed() {
    let [outer, inner] = terminal();
    let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let both = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &both,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let table = [
        (outer, "a terminal or character device"),
        (inner, "a terminal or character device"),
        (
            opened("/dev/zero", OFlags::RDONLY),
            "a terminal or character device",
        ),
        (
            opened("/dev/full", OFlags::RDWR),
            "a terminal or character device",
        ),
        (
            opened("/dev/null", OFlags::RDONLY),
            "a terminal or character device",
        ),
        (opened("/", OFlags::RDONLY), "a directory"),
        (
            opened("/proc/self/exe", OFlags::PATH),
            "open as a path only",
        ),
        (rustix::pipe::pipe().unwrap().1, "open for writing only"),
        (
            opened(both.to_str().unwrap(), OFlags::RDWR),
            "a pipe open for both reading and writing",
        ),
        (
            UnixDatagram::pair().unwrap().0.into(),
            "a socket, but not a stream",
        ),
        (epoll, "of an unknown kind"),
    ];
    for (fd, kind) in table {
        let fd = high(fd);
        let number = fd.as_raw_fd();
        let (refused, closed) = refusal(fd);
        assert_eq!(refused.code, FrameCode::InvalidFd);
        assert_eq!(refused.detail, format!("descriptor {number} is {kind}"));
        assert!(closed, "{kind}");
    }
}

#[test]
fn a_write_only_file_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (refused, _) = refusal(opened(file.path().to_str().unwrap(), OFlags::WRONLY));
    assert_eq!(refused.code, FrameCode::InvalidFd);
    assert!(refused.detail.ends_with("open for writing only"));
}

#[test]
fn standard_streams_are_refused_and_left_open() {
    for number in 0..3 {
        // SAFETY: it is open from the start of every Rust program; adopting must not close it.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        let refused = Descriptor::adopt(fd).unwrap_err();
        assert_eq!(refused.code, FrameCode::InvalidFd);
        assert_eq!(refused.detail, format!("descriptor {number}"));
        assert!(std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok());
    }
}

#[test]
fn a_closed_descriptor_is_refused_and_not_closed_again() {
    let fd = rustix::io::fcntl_dupfd_cloexec(File::open("/dev/null").unwrap(), 900).unwrap();
    let number = fd.into_raw_fd();
    nix::unistd::close(number).unwrap();
    // SAFETY: a lie, as the number is not open. No other test of this process uses numbers that high.
    let refused = Descriptor::adopt(unsafe { OwnedFd::from_raw_fd(number) }).unwrap_err();
    assert_eq!(refused.code, FrameCode::InvalidFd);
}

#[test]
fn a_descriptor_that_somebody_else_closed_fails_to_close() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let reader = rustix::io::fcntl_dupfd_cloexec(reader, 800).unwrap();
    let number = reader.as_raw_fd();
    let source = ClosedMeanwhile(Descriptor::adopt(reader).unwrap(), number);
    File::from(writer)
        .write_all(&bootstrap_frame(b"secret"))
        .unwrap();
    let refused = receive(source, limits(5_000, 1_000)).unwrap_err();
    assert_eq!(refused.code, FrameCode::CloseFailed);
    assert!(refused.detail.contains("Bad file descriptor"), "{refused}");
}

struct ClosedMeanwhile(Descriptor, i32);

impl Source for ClosedMeanwhile {
    fn read(&mut self, to: &mut [u8], deadline: Instant) -> std::io::Result<usize> {
        self.0.read(to, deadline)
    }

    fn close(self) -> std::io::Result<()> {
        nix::unistd::close(self.1).unwrap();
        self.0.close()
    }

    fn waits(&self) -> Waits {
        Waits::Never
    }
}

#[test]
fn an_adopted_descriptor_is_inherited_no_further() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    for fd in [&reader, &writer] {
        rustix::io::fcntl_setfd(fd, FdFlags::empty()).unwrap();
    }
    let reader = Descriptor::adopt(reader).unwrap();
    let writer = DescriptorSink::adopt(writer).unwrap();
    for fd in [reader.as_fd(), writer.as_fd()] {
        assert_eq!(rustix::io::fcntl_getfd(fd).unwrap(), FdFlags::CLOEXEC);
    }
}

#[test]
fn no_flag_is_changed_that_others_share() {
    let pipe = rustix::pipe::pipe().unwrap();
    let (reader, writer) = UnixStream::pair().unwrap();
    for (reader, writer) in [pipe, (reader.into(), writer.into())] {
        let shared = reader.try_clone().unwrap();
        let before = rustix::fs::fcntl_getfl(&shared).unwrap();
        let descriptor = Descriptor::adopt(reader).unwrap();
        let waiting = std::thread::spawn(move || receive(descriptor, limits(5_000, 1_000)));
        std::thread::sleep(Duration::from_millis(20));
        let during = rustix::fs::fcntl_getfl(&shared).unwrap();
        File::from(writer)
            .write_all(&bootstrap_frame(b"secret"))
            .unwrap();
        waiting.join().unwrap().unwrap();
        let after = rustix::fs::fcntl_getfl(&shared).unwrap();
        assert_eq!((before, before), (during, after));
        assert!(!after.contains(OFlags::NONBLOCK));
    }
}

#[test]
fn a_descriptor_is_closed_after_success_and_refusal() {
    for (payload, taken) in [(&b"secret"[..], true), (b"", false)] {
        let (reader, writer) = UnixStream::pair().unwrap();
        let mut writer = writer;
        writer.write_all(&bootstrap_frame(payload)).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
        let descriptor = Descriptor::adopt(reader.into()).unwrap();
        assert_eq!(receive(descriptor, limits(5_000, 1_000)).is_ok(), taken);
        let refused = writer.write(b"anybody there?").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::BrokenPipe);
    }
}

#[test]
fn bytes_that_another_reader_took_do_not_make_a_read_wait() {
    // Both see that something is there, one takes it; a read that blocks would never come back.
    for socket in [false, true] {
        let (reader, writer) = if socket {
            let (reader, writer) = UnixStream::pair().unwrap();
            (reader.into(), writer.into())
        } else {
            rustix::pipe::pipe().unwrap()
        };
        let shared = reader.try_clone().unwrap();
        let descriptor = Descriptor::adopt(reader).unwrap();
        let stolen = Stolen(descriptor, shared);
        File::from(writer.try_clone().unwrap())
            .write_all(b"abc")
            .unwrap();
        let start = Instant::now();
        let refused = receive(stolen, limits(100, 1_000)).unwrap_err();
        assert_eq!(refused.code, FrameCode::Timeout);
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

/// Another reader is faster, each time.
struct Stolen(Descriptor, OwnedFd);

impl Source for Stolen {
    fn read(&mut self, to: &mut [u8], deadline: Instant) -> std::io::Result<usize> {
        let mut seen = [rustix::event::PollFd::new(
            &self.1,
            rustix::event::PollFlags::IN,
        )];
        if rustix::event::poll(&mut seen, Some(&rustix::time::Timespec::default()))? > 0 {
            rustix::io::read(&self.1, &mut [0; 16])?;
        }
        self.0.read(to, deadline)
    }

    fn close(self) -> std::io::Result<()> {
        self.0.close()
    }

    fn waits(&self) -> Waits {
        self.0.waits()
    }
}

#[test]
fn only_a_file_may_keep_one_waiting_in_a_call() {
    let file = Descriptor::adopt(tempfile::tempfile().unwrap().into()).unwrap();
    assert_eq!(file.waits(), Waits::Anywhere);
    let pipe = Descriptor::adopt(rustix::pipe::pipe().unwrap().0).unwrap();
    assert_eq!(pipe.waits(), Waits::Never);
    assert!(file.as_fd().as_raw_fd() >= 3);
}

#[test]
fn a_peer_that_resets_a_connection_is_a_source_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let writer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut reader, _) = listener.accept().unwrap();
    // Unread bytes at a close are answered by a reset.
    reader.write_all(b"unread").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    drop(writer);
    let descriptor = Descriptor::adopt(reader.into()).unwrap();
    let refused = receive(descriptor, limits(5_000, 1_000)).unwrap_err();
    assert_eq!(refused.code, FrameCode::SourceError);
    assert!(refused.detail.contains("reset"), "{refused}");
}
