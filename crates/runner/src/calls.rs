//! Single system calls that have no safe form: what the runner does to itself and to everybody it can
//! see. Starting programs is [`crate::spawn`]'s.

use crate::code::{RunnerCode, RunnerError};
use rustix::process::{DumpableBehavior, Pid, Signal, set_dumpable_behavior};
use std::io;
use std::os::raw::{c_int, c_long, c_uint};

/// Takes every capability out of the bounding set.
pub(crate) fn drop_bounding_set() -> io::Result<()> {
    keep_in_bounding_set(&[])
}

/// Takes every other capability out of the bounding set.
pub(crate) fn keep_in_bounding_set(kept: &[libc::c_ulong]) -> io::Result<()> {
    for capability in (0..=MAX_CAPABILITY).filter(|number| !kept.contains(number)) {
        // SAFETY: numbers only. Asking costs a tenth of dropping what is not there.
        if unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) } == 0 {
            continue;
        }
        // SAFETY: numbers only.
        let done = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        let error = io::Error::last_os_error();
        // The kernel's last capability is not known here: beyond it every number is invalid.
        if done != 0 && error.raw_os_error() != Some(libc::EINVAL) {
            return Err(error);
        }
    }
    Ok(())
}

/// Capability sets have 64 bits.
const MAX_CAPABILITY: libc::c_ulong = 63;

/// Puts a filter of system calls in force for this process and all its children, for ever.
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut(),
    };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the kernel copies as many instructions as there are, and writes to nothing.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, mode, 0 as c_uint, &raw const filter) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The kernel's Landlock ABI, 0 where there is none.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: c_uint = 1;
    // SAFETY: with this flag the kernel reads no memory.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0usize, 0usize, VERSION) };
    u32::try_from(abi).unwrap_or(0)
}

/// Tries a system call with small numbers only, and says whether it was let through. No argument
/// can be an address of this process: the lowest page it may map lies above 16 bits, and negative
/// numbers are in the kernel's half.
pub(crate) fn attempt(number: c_long, arguments: [i16; 5]) -> io::Result<()> {
    let [a, b, c, d, e] = arguments.map(c_long::from);
    // SAFETY: see above; a call that wants memory fails with EFAULT.
    if unsafe { libc::syscall(number, a, b, c, d, e) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Tries to enter a user namespace of its own: only the probe asks, to be refused.
pub(crate) fn unshare_user() -> rustix::io::Result<()> {
    // SAFETY: no memory or descriptor table is shared with anybody; nothing is left to be unshared
    // behind somebody's back.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWUSER) }
}

/// Whether this process has a descriptor of this number.
pub(crate) fn is_open(descriptor: c_int) -> bool {
    // SAFETY: asking for flags changes nothing.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) >= 0 }
}

/// Sends a signal to every process the runner can see but itself. The first process of a run's
/// namespace takes none that it has not asked for.
///
/// # Errors
/// This is not the first process: others than the session's would be reached.
pub(crate) fn signal_everybody(signal: Signal) -> Result<(), RunnerError> {
    if rustix::process::getpid() != Pid::INIT {
        return Err(RunnerCode::Inside.refuse("only the first process signals everybody"));
    }
    // SAFETY: numbers only. As pid 1 this reaches the processes of this namespace, never itself.
    // That nobody is left is no error.
    unsafe { libc::kill(-1, signal.as_raw()) };
    Ok(())
}

/// Kills and reaps every process the runner can see, and proves that nobody is left.
///
/// Only as pid 1: there, everybody is the session and nobody else.
pub(crate) fn sweep() -> Result<(), RunnerError> {
    if (0..MAX_SWEEPS).any(|_round| is_alone()) {
        return Ok(());
    }
    Err(RunnerCode::Inside.refuse("processes of a finished run are still there"))
}

fn is_alone() -> bool {
    if rustix::process::getpid() != Pid::INIT {
        return false;
    }
    // SAFETY: numbers only. As pid 1 this reaches the processes of this namespace, never itself.
    let nobody = unsafe { libc::kill(-1, libc::SIGKILL) } < 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    reap();
    nobody
}

/// Rounds of killing and reaping: a run's own init is reaped before the first, so the first finds
/// nobody unless something is wrong.
const MAX_SWEEPS: usize = 1_000;

fn reap() {
    let mut status: c_int = 0;
    // SAFETY: the pointer is to a live local.
    while unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } > 0 {}
}

/// Hides the runner's memory from everybody who is not the kernel.
pub(crate) fn hide() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn::in_child;
    use rustix::process::dumpable_behavior;

    #[test]
    fn hidden_is_hidden() {
        let status = in_child(|| {
            hide().unwrap();
            u8::from(dumpable_behavior().unwrap() != DumpableBehavior::NotDumpable)
        });
        assert_eq!(status.unwrap(), 0);
    }

    #[test]
    fn nobody_but_a_first_process_sweeps() {
        assert_eq!(sweep().unwrap_err().code, RunnerCode::Inside);
        let refused = signal_everybody(Signal::INT).unwrap_err();
        assert_eq!(refused.code, RunnerCode::Inside);
    }
}
