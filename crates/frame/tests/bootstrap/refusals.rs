use crate::fake::{Act, Fake, Gate, limits};
use flightproof_frame::bootstrap::{Descriptor, Limits, SecretPayload, Waits, receive};
use flightproof_frame::{FrameCode, FrameError};
use flightproof_hostile::frame::{bootstrap_attacks, bootstrap_frame};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::time::Duration;

fn refused(source: Fake) -> FrameError {
    receive(source, limits(20_000, 1_000)).unwrap_err()
}

fn framed() -> Fake {
    Fake::of(&bootstrap_frame(b"secret"))
}

/// One line per way to refuse, as people see it.
#[test]
fn every_refusal_says_what_was_found_and_nothing_of_the_payload() {
    let mut lines = String::new();
    let mut show = |name: &str, error: FrameError| writeln!(lines, "{name}: {error}").unwrap();
    for attack in bootstrap_attacks() {
        show(&attack.name, refused(Fake::of(&attack.bytes)));
    }
    let (gate, _open) = Gate::new();
    let acts = [
        ("a claim beyond the room", Act::Claim(70_000), Act::Nothing),
        ("a read that fails", Act::Errno(libc::EIO), Act::Nothing),
        (
            "a read that fails in other words",
            Act::Fail(ErrorKind::Other),
            Act::Nothing,
        ),
        ("a read that panics", Act::Panic, Act::Nothing),
        ("a close that fails", Act::Nothing, Act::Errno(libc::EIO)),
        ("a close that panics", Act::Nothing, Act::Panic),
        ("a close that hangs", Act::Nothing, Act::Hang(gate.clone())),
    ];
    for (name, first, close) in acts {
        show(
            name,
            refused(Fake {
                first,
                close,
                ..framed()
            }),
        );
    }
    let never = Fake {
        first: Act::Fail(ErrorKind::WouldBlock),
        ..framed()
    };
    show(
        "nothing by the deadline",
        receive(never, limits(100, 1_000)).unwrap_err(),
    );
    let hanging = Fake {
        first: Act::Hang(gate.clone()),
        waits: Waits::Anywhere,
        ..framed()
    };
    show(
        "a read that hangs",
        receive(hanging, limits(100, 1_000)).unwrap_err(),
    );
    let slow = Fake {
        close: Act::Hang(gate),
        ..framed()
    };
    show(
        "a close beyond the deadline",
        receive(slow, limits(50, 100)).unwrap_err(),
    );
    let directory = std::fs::File::open("/").unwrap();
    let directory = rustix::io::fcntl_dupfd_cloexec(directory, 650).unwrap();
    show("a directory", Descriptor::adopt(directory).unwrap_err());
    show(
        "no time",
        Limits::new(Duration::ZERO, Duration::ZERO).unwrap_err(),
    );
    show(
        "all the time",
        Limits::new(Duration::from_secs(1), Duration::MAX).unwrap_err(),
    );
    let secret = || SecretPayload::from_vec(b"secret".to_vec()).unwrap();
    let failed = secret().consume(|_| Err::<(), _>("sesame"));
    show("a consumer that fails", failed.unwrap_err());
    assert!(!lines.contains("secret") && !lines.contains("sesame"));
    insta::assert_snapshot!(lines);
}

#[test]
fn a_failure_in_the_trailing_position_says_so() {
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut writer = writer;
    std::io::Write::write_all(&mut writer, &bootstrap_frame(b"secret")).unwrap();
    let source = Broken(Descriptor::adopt(reader.into()).unwrap(), 0);
    let refused = receive(source, limits(5_000, 1_000)).unwrap_err();
    assert_eq!(refused.code, FrameCode::ReadTrailing);
    insta::assert_snapshot!(refused, @"frame/READ_TRAILING: after 10 bytes: Input/output error (os error 5)");
}

/// Fails at its second read.
struct Broken(Descriptor, u32);

impl flightproof_frame::bootstrap::Source for Broken {
    fn read(&mut self, to: &mut [u8], deadline: std::time::Instant) -> std::io::Result<usize> {
        self.1 += 1;
        match self.1 {
            1 => self.0.read(to, deadline),
            _ => Err(std::io::Error::from_raw_os_error(libc::EIO)),
        }
    }

    fn close(self) -> std::io::Result<()> {
        self.0.close()
    }

    fn waits(&self) -> Waits {
        self.0.waits()
    }
}
