use crate::fake::limits;
use flightproof_frame::FrameCode;
use flightproof_frame::bootstrap::{Descriptor, DescriptorSink, Limits, receive, send};
use flightproof_hostile::frame::bootstrap_frame;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The code of a read that must end at its deadline of 120 ms.
fn timed(reader: impl Into<OwnedFd>) -> FrameCode {
    let descriptor = Descriptor::adopt(reader.into()).unwrap();
    let start = Instant::now();
    let refused = receive(descriptor, limits(120, 10_000)).unwrap_err();
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_millis(120), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    refused.code
}

/// A pipe and a socket, each with its reading end first.
fn streams() -> [(OwnedFd, OwnedFd); 2] {
    let (reader, writer) = UnixStream::pair().unwrap();
    [
        rustix::pipe::pipe().unwrap(),
        (reader.into(), writer.into()),
    ]
}

#[test]
fn a_peer_that_sends_nothing_is_left_at_the_deadline() {
    for (reader, _silent) in streams() {
        assert_eq!(timed(reader), FrameCode::Timeout);
    }
}

#[test]
fn a_frame_whose_end_does_not_come_is_no_frame() {
    for (reader, writer) in streams() {
        let mut writer = File::from(writer);
        writer.write_all(&bootstrap_frame(b"secret")).unwrap();
        assert_eq!(timed(reader), FrameCode::Timeout);
    }
}

#[test]
fn a_peer_that_sends_one_byte_a_moment_is_left_at_the_deadline() {
    for (reader, writer) in streams() {
        let trickling = std::thread::spawn(move || {
            let mut writer = File::from(writer);
            for byte in bootstrap_frame(&[7; 4000]) {
                // Ends with the reader, whose end is closed at its deadline.
                if writer.write_all(&[byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(timed(reader), FrameCode::Timeout);
        trickling.join().unwrap();
    }
}

/// Processor time this thread has had.
fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

#[test]
fn waiting_takes_no_processor_time() {
    for (reader, writer) in streams() {
        let descriptor = Descriptor::adopt(reader).unwrap();
        let before = busy();
        let refused = receive(descriptor, limits(400, 10_000)).unwrap_err();
        assert_eq!(refused.code, FrameCode::Timeout);
        // One that asks again and again would have what two busy processors leave it.
        assert!(busy() - before < Duration::from_millis(10));
        drop(writer);
    }
    for (_unread, writer) in streams() {
        // So that no room is left after a part of the frame.
        if rustix::pipe::fcntl_setpipe_size(&writer, 4096).is_err() {
            rustix::net::sockopt::set_socket_send_buffer_size(&writer, 4096).unwrap();
        }
        let sink = DescriptorSink::adopt(writer).unwrap();
        let before = busy();
        let refused = send(sink, &[1; 60_000], limits(400, 10_000)).unwrap_err();
        assert_eq!(refused.code, FrameCode::Timeout);
        // One that asks again and again would have what two busy processors leave it.
        assert!(busy() - before < Duration::from_millis(10));
    }
}

static INTERRUPTIONS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int) {
    INTERRUPTIONS.fetch_add(1, Ordering::Relaxed);
}

/// Interrupts this thread a thousand times a second until the guard goes away.
fn interrupted() -> impl Drop {
    struct Guard(
        Option<std::thread::JoinHandle<()>>,
        std::sync::mpsc::Sender<()>,
    );
    impl Drop for Guard {
        fn drop(&mut self) {
            self.1.send(()).unwrap();
            self.0.take().unwrap().join().unwrap();
        }
    }
    // SAFETY: the handler only counts. Without SA_RESTART, calls of the thread come back early.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()),
            0
        );
    }
    // SAFETY: it has no conditions.
    let target = unsafe { libc::pthread_self() };
    let (stop, stopped) = std::sync::mpsc::channel();
    let storm = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(1)).is_err() {
            // SAFETY: the guard is dropped by the target, so the target is alive.
            unsafe { libc::pthread_kill(target, libc::SIGUSR1) };
        }
    });
    Guard(Some(storm), stop)
}

#[test]
fn a_storm_of_signals_neither_breaks_a_frame_nor_moves_the_deadline() {
    for (reader, writer) in streams() {
        let storm = interrupted();
        let before = INTERRUPTIONS.load(Ordering::Relaxed);
        let peer = std::thread::spawn(move || {
            let mut writer = File::from(writer);
            for piece in bootstrap_frame(b"secret").chunks(2) {
                std::thread::sleep(Duration::from_millis(10));
                writer.write_all(piece).unwrap();
            }
        });
        let descriptor = Descriptor::adopt(reader).unwrap();
        let payload = receive(descriptor, limits(10_000, 1_000)).unwrap();
        assert_eq!(payload.len(), 6);
        peer.join().unwrap();
        assert!(INTERRUPTIONS.load(Ordering::Relaxed) > before + 5);
        drop(storm);
    }
    for (reader, _silent) in streams() {
        let _storm = interrupted();
        assert_eq!(timed(reader), FrameCode::Timeout);
    }
}

#[test]
fn limits_are_taken_within_their_bounds_only() {
    let ms = Duration::from_millis;
    for (total, close) in [(1, 1), (120_000, 10_000), (30_000, 2_000)] {
        let limits = Limits::new(ms(total), ms(close)).unwrap();
        assert_eq!((limits.total(), limits.close()), (ms(total), ms(close)));
    }
    let refused = [
        (ms(0), ms(1)),
        (ms(1), ms(0)),
        (Duration::from_nanos(999_999), ms(1)),
        (ms(120_001), ms(1)),
        (Duration::from_nanos(120_000_000_001), ms(1)),
        (ms(1), ms(10_001)),
        (Duration::MAX, ms(1)),
        (ms(1), Duration::MAX),
    ];
    for (total, close) in refused {
        assert_eq!(
            Limits::new(total, close).unwrap_err().code,
            FrameCode::InvalidOptions
        );
    }
    let default = Limits::default();
    assert_eq!((default.total(), default.close()), (ms(30_000), ms(2_000)));
}
