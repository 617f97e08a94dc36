//! The first number a frame may come by. One test, as it takes that number whoever has it.

use flightproof_frame::bootstrap::{Descriptor, Limits, receive};
use flightproof_hostile::frame::bootstrap_frame;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

#[test]
fn descriptor_3_is_the_first_that_is_taken() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut writer = File::from(rustix::io::fcntl_dupfd_cloexec(writer, 10).unwrap());
    let reader = rustix::io::fcntl_dupfd_cloexec(reader, 10).unwrap();
    // SAFETY: whoever had the number has lost it, and nothing else runs in this process.
    let third = unsafe {
        assert_eq!(libc::dup2(reader.as_raw_fd(), 3), 3);
        OwnedFd::from_raw_fd(3)
    };
    drop(reader);
    writer.write_all(&bootstrap_frame(b"secret")).unwrap();
    drop(writer);
    let descriptor = Descriptor::adopt(third).unwrap();
    assert_eq!(descriptor.as_fd().as_raw_fd(), 3);
    assert_eq!(receive(descriptor, Limits::default()).unwrap().len(), 6);
}
