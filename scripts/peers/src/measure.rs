use crate::Outcome;
use std::mem::MaybeUninit;
use std::process::Command;
use std::time::Instant;

/// Runs a command and prints its wall seconds, user and system seconds, largest resident set in
/// KiB and exit code. A process starts with the resident set of its parent: this one is small.
pub fn measure(command: &[&str]) -> Outcome {
    let start = Instant::now();
    #[expect(
        clippy::zombie_processes,
        reason = "wait4 below waits, and tells what was used"
    )]
    let child = Command::new(command[0]).args(&command[1..]).spawn()?;
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both pointers are to variables of this frame, and a zeroed rusage is a valid one.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(child.id().cast_signed(), &mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    let wall = start.elapsed().as_secs_f64();
    if waited < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    println!(
        "{{\"wall\":{wall},\"user\":{},\"sys\":{},\"rss_kib\":{},\"status\":{status}}}",
        seconds(usage.ru_utime),
        seconds(usage.ru_stime),
        usage.ru_maxrss
    );
    Ok(())
}
