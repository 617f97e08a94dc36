//! A process in which SIGPIPE still ends it, as it does in programs that are not Rust's. One test,
//! as it changes the whole process.

#![expect(
    clippy::unwrap_used,
    reason = "a pipe that cannot be made is a failed test"
)]

use flightproof_frame::FrameCode;
use flightproof_frame::bootstrap::{DescriptorSink, Limits, send};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

#[test]
fn a_peer_that_is_gone_is_a_refusal_and_no_signal() {
    // SAFETY: no handler, the signal's own action.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let (reader, writer) = UnixStream::pair().unwrap();
    let mut ends = vec![(OwnedFd::from(reader), OwnedFd::from(writer))];
    if since(6, 18) {
        ends.push(rustix::pipe::pipe().unwrap());
    } else {
        eprintln!("NOT MEASURED: before Linux 6.18 a write to a pipe cannot decline the signal");
    }
    for (reader, writer) in ends {
        drop(reader);
        let sink = DescriptorSink::adopt(writer).unwrap();
        let refused = send(sink, b"secret", Limits::default()).unwrap_err();
        assert_eq!(refused.code, FrameCode::SourceError);
    }
}

/// Whether the kernel is of this version or newer.
fn since(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|n| n.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (major, minor)
}
