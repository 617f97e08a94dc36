use crate::fake::{Act, Fake, Gate, limits};
use flightproof_frame::FrameCode;
use flightproof_frame::bootstrap::{
    Descriptor, DescriptorSink, MAX_PAYLOAD_BYTES, Sink, Waits, receive, send,
};
use flightproof_hostile::frame::bootstrap_frame;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn streams() -> [(OwnedFd, OwnedFd); 2] {
    let (reader, writer) = UnixStream::pair().unwrap();
    [
        rustix::pipe::pipe().unwrap(),
        (reader.into(), writer.into()),
    ]
}

#[test]
fn what_is_sent_is_received_whatever_its_size() {
    for size in [1, 2, 4095, 4096, MAX_PAYLOAD_BYTES - 1, MAX_PAYLOAD_BYTES] {
        for (reader, writer) in streams() {
            let secret: Vec<u8> = (0..=255).cycle().take(size).collect();
            let sent = secret.clone();
            let sender = std::thread::spawn(move || {
                send(
                    DescriptorSink::adopt(writer).unwrap(),
                    &sent,
                    limits(20_000, 1_000),
                )
            });
            let payload = receive(Descriptor::adopt(reader).unwrap(), limits(20_000, 1_000));
            sender.join().unwrap().unwrap();
            assert_eq!(
                payload
                    .unwrap()
                    .consume(|bytes| Ok::<_, ()>(bytes == secret)),
                Ok(true)
            );
        }
    }
}

#[test]
fn a_pipe_with_a_name_is_written_to_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let reader = {
        let path = path.clone();
        std::thread::spawn(move || std::fs::read(path).unwrap())
    };
    let writer = File::options().write(true).open(&path).unwrap();
    let sink = DescriptorSink::adopt(writer.into()).unwrap();
    send(sink, b"secret", limits(5_000, 1_000)).unwrap();
    assert_eq!(reader.join().unwrap(), bootstrap_frame(b"secret"));
}

#[test]
fn a_payload_that_is_no_frame_is_not_sent() {
    for (payload, code) in [
        (vec![], FrameCode::Empty),
        (vec![0; MAX_PAYLOAD_BYTES + 1], FrameCode::Oversize),
    ] {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let sink = DescriptorSink::adopt(writer).unwrap();
        assert_eq!(
            send(sink, &payload, limits(5_000, 1_000)).unwrap_err().code,
            code
        );
        let mut written = Vec::new();
        File::from(reader).read_to_end(&mut written).unwrap();
        assert!(written.is_empty());
    }
}

#[test]
fn a_peer_that_does_not_read_is_left_at_the_deadline() {
    for (_unread, writer) in streams() {
        let buffer = 4096;
        // Room for a part of the frame only.
        if rustix::pipe::fcntl_setpipe_size(&writer, buffer).is_err() {
            rustix::net::sockopt::set_socket_send_buffer_size(&writer, buffer).unwrap();
        }
        let sink = DescriptorSink::adopt(writer).unwrap();
        let start = Instant::now();
        let refused = send(sink, &[1; MAX_PAYLOAD_BYTES], limits(120, 10_000)).unwrap_err();
        assert_eq!(refused.code, FrameCode::Timeout);
        assert!(start.elapsed() >= Duration::from_millis(120));
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_peer_that_is_gone_is_a_source_error() {
    for (reader, writer) in streams() {
        drop(reader);
        let sink = DescriptorSink::adopt(writer).unwrap();
        let refused = send(sink, b"secret", limits(5_000, 1_000)).unwrap_err();
        assert_eq!(refused.code, FrameCode::SourceError);
        assert_eq!(refused.detail, "after 0 bytes: Broken pipe (os error 32)");
    }
}

#[test]
fn what_cannot_be_written_to_is_refused() {
    let reader = rustix::pipe::pipe().unwrap().0;
    let file = tempfile::tempfile().unwrap().into();
    let device = File::create("/dev/null").unwrap().into();
    for fd in [reader, file, device] {
        let refused = DescriptorSink::adopt(fd).unwrap_err();
        assert_eq!(refused.code, FrameCode::InvalidFd);
    }
}

#[test]
fn a_descriptor_that_somebody_else_closed_fails_to_close() {
    for (_unread, writer) in streams() {
        let writer = rustix::io::fcntl_dupfd_cloexec(writer, 820).unwrap();
        let number = writer.as_raw_fd();
        let sink = ClosedMeanwhile(DescriptorSink::adopt(writer).unwrap(), number);
        let refused = send(sink, b"secret", limits(5_000, 1_000)).unwrap_err();
        assert_eq!(refused.code, FrameCode::CloseFailed);
        assert!(refused.detail.contains("Bad file descriptor"), "{refused}");
    }
}

struct ClosedMeanwhile(DescriptorSink, i32);

impl Sink for ClosedMeanwhile {
    fn write(&mut self, bytes: &[u8], deadline: Instant) -> std::io::Result<usize> {
        self.0.write(bytes, deadline)
    }

    fn close(self) -> std::io::Result<()> {
        nix::unistd::close(self.1).unwrap();
        self.0.close()
    }

    fn waits(&self) -> Waits {
        self.0.waits()
    }
}

fn code_of(sink: Fake) -> (Result<(), FrameCode>, Vec<u8>) {
    let (closed, written) = (Arc::clone(&sink.closed), Arc::clone(&sink.written));
    let result = send(sink, b"secret", limits(20_000, 1_000)).map_err(|e| e.code);
    assert_eq!(closed.load(Ordering::SeqCst), 1);
    let written = written.lock().unwrap().clone();
    (result, written)
}

#[test]
fn a_frame_is_written_whole_however_little_a_sink_takes() {
    for most in [1, 3, usize::MAX] {
        let sink = Fake {
            most,
            ..Fake::of(b"")
        };
        assert_eq!(code_of(sink), (Ok(()), bootstrap_frame(b"secret")));
    }
}

#[test]
fn what_a_sink_does_wrong_has_its_code() {
    let (gate, _open) = Gate::new();
    let fail = || Act::Fail(ErrorKind::Other);
    let table = [
        (Act::Claim(0), Act::Nothing, FrameCode::SourceError),
        (Act::Claim(5), Act::Nothing, FrameCode::SourceError),
        (fail(), Act::Nothing, FrameCode::SourceError),
        (Act::Panic, Act::Nothing, FrameCode::Internal),
        (Act::Nothing, fail(), FrameCode::CloseFailed),
        (Act::Nothing, Act::Panic, FrameCode::CloseUnconfirmed),
        (Act::Nothing, Act::Hang(gate), FrameCode::CloseUnconfirmed),
    ];
    for (first, close, code) in table {
        let sink = Fake {
            first,
            close,
            ..Fake::of(b"")
        };
        assert_eq!(code_of(sink).0, Err(code));
    }
}

#[test]
fn a_sink_that_is_interrupted_for_ever_is_left_at_the_deadline() {
    let sink = Fake {
        first: Act::Fail(ErrorKind::Interrupted),
        ..Fake::of(b"")
    };
    let refused = send(sink, b"secret", limits(50, 100)).unwrap_err();
    assert_eq!(refused.code, FrameCode::Timeout);
}

#[test]
fn a_sink_whose_writes_may_hang_is_refused_before_it_gets_anything() {
    let sink = Fake {
        waits: Waits::Anywhere,
        ..Fake::of(b"")
    };
    assert_eq!(code_of(sink), (Err(FrameCode::SourceError), vec![]));
}

/// Takes so many bytes, three at a time, and then fails.
struct Filling(usize, ErrorKind);

impl Sink for Filling {
    fn write(&mut self, bytes: &[u8], _: Instant) -> std::io::Result<usize> {
        let count = self.0.min(bytes.len()).min(3);
        self.0 -= count;
        if count == 0 {
            return Err(self.1.into());
        }
        Ok(count)
    }

    fn close(self) -> std::io::Result<()> {
        Ok(())
    }

    fn waits(&self) -> Waits {
        Waits::Never
    }
}

#[test]
fn how_much_was_written_is_said() {
    for written in [0, 2, 3, 4, 8, 10] {
        let broken = Filling(written, ErrorKind::Other);
        let refused = send(broken, b"secrets", limits(5_000, 1_000)).unwrap_err();
        assert_eq!(refused.code, FrameCode::SourceError);
        assert_eq!(
            refused.detail,
            format!("after {written} bytes: other error")
        );
        let full = Filling(written, ErrorKind::WouldBlock);
        let refused = send(full, b"secrets", limits(20, 1_000)).unwrap_err();
        assert_eq!(refused.code, FrameCode::Timeout);
        let detail = format!("the deadline passed after {written} bytes were written");
        assert_eq!(refused.detail, detail);
    }
}
