use crate::fake::limits;
use flightproof_frame::FrameCode;
use flightproof_frame::bootstrap::{Descriptor, receive};
use flightproof_hostile::frame::bootstrap_frame;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};

/// One test for all of it: a process has one standard input.
#[test]
fn standard_input_is_taken_once_and_nothing_stays_in_its_place() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    rustix::stdio::dup2_stdin(&reader).unwrap();
    drop(reader);
    File::from(writer)
        .write_all(&bootstrap_frame(b"secret"))
        .unwrap();
    let descriptor = Descriptor::stdin().unwrap();
    assert!(descriptor.as_fd().as_raw_fd() >= 3);
    let inherited = rustix::io::fcntl_getfd(&descriptor).unwrap();
    assert_eq!(inherited, rustix::io::FdFlags::CLOEXEC);
    let mut left = Vec::new();
    std::io::stdin().read_to_end(&mut left).unwrap();
    assert!(left.is_empty());
    let payload = receive(descriptor, limits(5_000, 1_000)).unwrap();
    assert_eq!(
        payload.consume(|bytes| Ok::<_, ()>(bytes == b"secret")),
        Ok(true)
    );

    // What is there now is no frame, and stays where it is.
    let again = Descriptor::stdin().unwrap_err();
    assert_eq!(again.code, FrameCode::InvalidFd);
    let there = std::fs::read_link("/proc/self/fd/0").unwrap();
    assert_eq!(there.to_str(), Some("/dev/null"));

    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bootstrap_frame(b"from a file")).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    rustix::stdio::dup2_stdin(&file).unwrap();
    let payload = receive(Descriptor::stdin().unwrap(), limits(5_000, 1_000)).unwrap();
    assert_eq!(payload.len(), 11);
}
