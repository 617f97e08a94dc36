//! The one place of this crate that handles descriptors by number.
#![expect(
    unsafe_code,
    reason = "inherited descriptors have no owner in this program"
)]

use rustix::io::{FdFlags, fcntl_setfd};
use std::os::fd::BorrowedFd;

/// Marks every descriptor from 3 on to be closed by the next exec.
///
/// # Errors
/// `/proc/self/fd` cannot be read, or one cannot be marked.
pub(super) fn close_on_exec() -> std::io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // SAFETY: the number was open a moment ago and this process has one thread; it is only
        // marked, never closed here. The listing's own descriptor may be gone: EBADF.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        match fcntl_setfd(borrowed, FdFlags::CLOEXEC) {
            Ok(()) | Err(rustix::io::Errno::BADF) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
