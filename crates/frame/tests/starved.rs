//! A process that cannot start another thread. One test, as it changes the whole process.

#![expect(
    clippy::unwrap_used,
    reason = "a limit that cannot be set is a failed test"
)]

use flightproof_frame::FrameCode;
use flightproof_frame::bootstrap::{Descriptor, Limits, Source, Waits, receive, receive_async};
use flightproof_hostile::frame::bootstrap_frame;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, Read, Seek, Write};
use std::time::Instant;

/// Closed on a thread of its own.
struct Doubtful(io::Cursor<Vec<u8>>);

impl Source for Doubtful {
    fn read(&mut self, to: &mut [u8], _: Instant) -> io::Result<usize> {
        self.0.read(to)
    }

    fn close(self) -> io::Result<()> {
        Ok(())
    }

    fn waits(&self) -> Waits {
        Waits::Close
    }
}

#[test]
fn where_no_thread_can_be_started_no_close_is_confirmed() {
    let frame = bootstrap_frame(b"secret");
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&frame).unwrap();
    file.rewind().unwrap();
    let file = Descriptor::adopt(file.into()).unwrap();
    let doubtful = Doubtful(io::Cursor::new(frame.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();

    let before = getrlimit(Resource::As);
    let starved = Rlimit {
        current: Some(used() + (1 << 20)),
        maximum: before.maximum,
    };
    setrlimit(Resource::As, starved).unwrap();
    let found = [
        receive(file, Limits::default()),
        receive(doubtful, Limits::default()),
        runtime.block_on(receive_async(io::Cursor::new(frame), Limits::default())),
    ];
    setrlimit(Resource::As, before).unwrap();
    for result in found {
        let refused = result.unwrap_err();
        assert_eq!(refused.code, FrameCode::CloseUnconfirmed);
        assert!(
            refused.detail.contains("no thread could be started"),
            "{refused}"
        );
    }
}

/// Bytes of address space in use.
fn used() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib: u64 = size
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib << 10
}
