//! The self-test of the walls: from a case's own place, every forbidden act is tried.
//!
//! A reading is what happened, whatever it was. Acts named `may-…` are the positive twins: they
//! must work, or a wall that refuses everything would pass. The host judges, and holds the names.

use crate::calls::{attempt, is_open, sweep, unshare_user};
use crate::code::{RunnerCode, RunnerError, inside};
use crate::exec::CaseUids;
use crate::pump;
use crate::spawn::{Act, in_child, spawn};
use crate::walls::Walls;
use flightproof_core::{escape, parse_strict};
use flightproof_frame::protocol::{ExecLimits, Outcome, ProbeReading, Status, layout};
use rustix::fs::{CWD, FileType, Mode};
use rustix::io::Errno;
use rustix::process::{Pid, Uid};
use std::fs::{self, OpenOptions};
use std::io::{Error, Read, Write};
use std::os::raw::{c_int, c_long};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

/// Time and room for all acts together.
const LIMITS: ExecLimits = ExecLimits {
    wall_ms: 10_000,
    stdout_bytes: 64 << 10,
    stderr_bytes: 4 << 10,
};

/// Tries every act under the walls of a case with a fresh uid.
pub(crate) fn probe(uids: &mut CaseUids) -> Result<Vec<ProbeReading>, RunnerError> {
    let uid = uids.fresh()?;
    let walls = Walls::case(uid, None);
    let (ends, wires) = pump::wires(None)?;
    let child = spawn(&ends, &walls, &Act::Inside(&report)).map_err(inside("clone"))?;
    drop(ends);
    let outcome = pump::drive(&child, wires, &[], &LIMITS, None);
    sweep()?;
    readings(&outcome?)
}

fn readings(outcome: &Outcome) -> Result<Vec<ProbeReading>, RunnerError> {
    if outcome.status != (Status::Exited { code: 0 }) || !outcome.complete {
        let said = escape(&*outcome.stderr, 200);
        return Err(RunnerCode::ProbeFailed.refuse(format!("{:?} {said}", outcome.status)));
    }
    parse_strict(&outcome.stdout, MAX_READINGS).map_err(|e| RunnerCode::ProbeFailed.refuse(e))
}

/// Most bytes of all readings together.
const MAX_READINGS: usize = 64 << 10;

/// Behind the walls: all readings as JSON on standard output.
fn report() -> u8 {
    let readings: Vec<ProbeReading> = ACTS
        .iter()
        .map(|(name, act)| reading(name, act()))
        .collect();
    let Ok(text) = serde_json::to_vec(&readings) else {
        return 1;
    };
    let mut out = std::io::stdout();
    u8::from(out.write_all(&text).and_then(|()| out.flush()).is_err())
}

/// What an act came to: reached, or refused in this way.
enum Tried {
    Reached(String),
    Refused(String),
}

fn reading(act: &str, tried: Tried) -> ProbeReading {
    let (denied, how) = match tried {
        Tried::Reached(what) => (false, what),
        Tried::Refused(how) => (true, how),
    };
    ProbeReading {
        act: act.to_owned(),
        denied,
        how,
    }
}

type Attempt = fn() -> Tried;

const ACTS: &[(&str, Attempt)] = &[
    // The network and other ways out of the machine.
    ("connect-inet", || dies(|| socket(libc::AF_INET))),
    ("connect-inet6", || dies(|| socket(libc::AF_INET6))),
    ("socket-vsock", || dies(|| socket(libc::AF_VSOCK))),
    ("socket-netlink", || dies(|| socket(libc::AF_NETLINK))),
    ("socket-alg", || dies(|| socket(libc::AF_ALG))),
    ("socket-packet", || dies(|| socket(libc::AF_PACKET))),
    ("socket-unix", || call(libc::SYS_socket, [1, 1, 0, 0, 0])),
    // Files of the session and of the machine.
    ("read-etc-passwd", || file(fs::read("/etc/passwd"))),
    ("read-proc-self", || file(fs::read("/proc/self/status"))),
    ("read-runner", || file(fs::File::open(layout::RUNNER))),
    ("list-source", || file(fs::read_dir(layout::SOURCE))),
    ("list-work", || file(fs::read_dir("/flight"))),
    ("list-target", || file(fs::read_dir(layout::TARGET))),
    ("list-exe", || file(fs::read_dir(layout::EXE))),
    ("list-toolchain", || file(fs::read_dir(layout::TOOLCHAIN))),
    ("list-root", || file(fs::read_dir("/"))),
    ("write-usr", || create("/usr/probe")),
    ("write-usr-lib", || create("/usr/lib/probe")),
    ("write-exe", || create("/exe/probe")),
    ("write-root", || create("/probe")),
    ("write-work", || create("/flight/probe")),
    ("write-tmp", || create("/tmp/probe")),
    ("write-dev", || create("/dev/probe")),
    ("make-device", || mknod(FileType::CharacterDevice)),
    ("execute-usr-bin", || execute("/usr/bin/env")),
    ("execute-scratch", execute_scratch),
    // Other identities and other processes.
    ("become-root", || {
        errno(rustix::thread::set_thread_uid(Uid::ROOT))
    }),
    ("keep-capability", || any(capabilities())),
    ("signal-init", || {
        errno(rustix::process::test_kill_process(Pid::INIT))
    }),
    ("signal-all", || call(libc::SYS_kill, [-1, 0, 0, 0, 0])),
    ("ptrace-init", || {
        call(libc::SYS_ptrace, [PTRACE_ATTACH, 1, 0, 0, 0])
    }),
    ("inherit-descriptor", || {
        any((3..MAX_DESCRIPTOR).find(|n| is_open(*n)))
    }),
    // Kernel surface. Refused means: before the kernel looked at the arguments.
    ("user-namespace", || errno(unshare_user())),
    ("mount-tmpfs", mount),
    ("io-uring", || {
        call(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0])
    }),
    ("bpf", || call(libc::SYS_bpf, [0; 5])),
    ("keyctl", || call(libc::SYS_keyctl, [0, -3, 0, 0, 0])),
    ("userfaultfd", || {
        call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0])
    }),
    ("perf-event", || call(libc::SYS_perf_event_open, [0; 5])),
    ("open-by-handle", || {
        call(libc::SYS_open_by_handle_at, [-100, 0, 0, 0, 0])
    }),
    ("execveat", || call(libc::SYS_execveat, [-100, 0, 0, 0, 0])),
    ("clone3", || call(libc::SYS_clone3, [0; 5])),
    // What a case needs.
    ("may-write-case", || create("/case/probe")),
    ("may-make-pipe", || mknod(FileType::Fifo)),
    ("may-read-urandom", || file(fs::File::open("/dev/urandom"))),
    ("may-write-null", || {
        file(OpenOptions::new().write(true).open("/dev/null"))
    }),
    ("may-start-thread", start_thread),
];

/// `PTRACE_ATTACH`
const PTRACE_ATTACH: i16 = 16;
/// Above every descriptor these walls allow.
const MAX_DESCRIPTOR: c_int = 4_096;

fn socket(family: c_int) -> Tried {
    let family = i16::try_from(family).unwrap_or(i16::MAX);
    call(libc::SYS_socket, [family, 2, 0, 0, 0])
}

/// A call counts as refused only by the errno of a wall. Another one means that the kernel looked
/// at the arguments, so the call was let through.
fn call(number: c_long, arguments: [i16; 5]) -> Tried {
    match attempt(number, arguments) {
        Ok(()) => Tried::Reached("done".to_owned()),
        Err(error) => judged(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

fn errno(result: rustix::io::Result<()>) -> Tried {
    match result {
        Ok(()) => Tried::Reached("done".to_owned()),
        Err(error) => judged(error),
    }
}

fn judged(error: Errno) -> Tried {
    let name = name(error);
    match error {
        // ESRCH: there is nobody to reach.
        Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::SRCH | Errno::ROFS => {
            Tried::Refused(name)
        }
        _ => Tried::Reached(name),
    }
}

fn name(error: Errno) -> String {
    match error {
        Errno::PERM => "EPERM".to_owned(),
        Errno::ACCESS => "EACCES".to_owned(),
        Errno::NOSYS => "ENOSYS".to_owned(),
        Errno::SRCH => "ESRCH".to_owned(),
        Errno::ROFS => "EROFS".to_owned(),
        Errno::NOENT => "ENOENT".to_owned(),
        other => format!("errno {}", other.raw_os_error()),
    }
}

/// A file is out of reach by whatever error; that it does not exist in the session is one of them.
fn file<T>(result: std::io::Result<T>) -> Tried {
    match result {
        Ok(_reached) => Tried::Reached("opened".to_owned()),
        Err(error) => Tried::Refused(name(Errno::from_io_error(&error).unwrap_or(Errno::IO))),
    }
}

fn create(path: &str) -> Tried {
    file(fs::File::create(path))
}

fn mknod(kind: FileType) -> Tried {
    let path = format!("{}/node-{kind:?}", layout::CASE);
    let null = rustix::fs::makedev(1, 3);
    errno(rustix::fs::mknodat(CWD, path, kind, Mode::RWXU, null))
}

fn mount() -> Tried {
    let flags = rustix::mount::MountFlags::empty();
    errno(rustix::mount::mount(
        "none",
        layout::CASE,
        "tmpfs",
        flags,
        None,
    ))
}

/// In a child of its own: had it worked, nobody would be left to say so.
fn execute(path: &str) -> Tried {
    became(|| Command::new(path).exec())
}

/// Only the child itself can say that it did not become the program. An exit status says nothing: a
/// program that was let through may end with any.
fn became(act: impl FnOnce() -> Error) -> Tried {
    let tried = apart(|| judged(Errno::from_io_error(&act()).unwrap_or(Errno::IO)));
    match tried {
        Ok((_, Some(tried))) => tried,
        Ok((status, None)) => Tried::Reached(status.to_string()),
        Err(error) => Tried::Reached(error.to_string()),
    }
}

/// Tries an act in a child: how that ended, and what it said. It says so over a pipe that no
/// program inherits.
fn apart(act: impl FnOnce() -> Tried) -> std::io::Result<(ExitStatus, Option<Tried>)> {
    let (mut said, saying) = std::io::pipe()?;
    let status = in_child(|| {
        let text = match act() {
            Tried::Reached(what) => format!("+{what}"),
            Tried::Refused(how) => format!("-{how}"),
        };
        u8::from((&saying).write_all(text.as_bytes()).is_err())
    })?;
    drop(saying);
    let mut text = String::new();
    said.read_to_string(&mut text)?;
    let tried = match text.split_at_checked(1) {
        Some(("-", how)) => Some(Tried::Refused(how.to_owned())),
        Some((_, what)) => Some(Tried::Reached(what.to_owned())),
        None => None,
    };
    Ok((ExitStatus::from_raw(status), tried))
}

/// A program written to the scratch is not one that was promoted.
fn execute_scratch() -> Tried {
    use std::os::unix::fs::PermissionsExt;
    const OWN: &str = "/case/own";
    let made = fs::write(OWN, "#!/usr/bin/env true\n")
        .and_then(|()| fs::set_permissions(OWN, fs::Permissions::from_mode(0o700)));
    match made {
        Ok(()) => execute(OWN),
        Err(error) => Tried::Reached(format!("not tried: {error}")),
    }
}

/// The act is expected to end its process by SIGSYS, so a child tries it.
fn dies(act: impl FnOnce() -> Tried) -> Tried {
    match apart(act) {
        Ok((status, _)) if status.signal() == Some(libc::SIGSYS) => {
            Tried::Refused("SIGSYS".to_owned())
        }
        Ok((_, Some(Tried::Reached(how) | Tried::Refused(how)))) => {
            Tried::Reached(format!("{how}, and it lives"))
        }
        Ok((status, None)) => Tried::Reached(status.to_string()),
        Err(error) => Tried::Reached(error.to_string()),
    }
}

/// Whether there is any of what must not be there.
fn any<T: std::fmt::Debug>(found: Option<T>) -> Tried {
    match found {
        Some(found) => Tried::Reached(format!("{found:?}")),
        None => Tried::Refused("none".to_owned()),
    }
}

fn capabilities() -> Option<String> {
    let held = rustix::thread::capabilities(None);
    match held {
        Ok(sets) if (sets.effective | sets.permitted | sets.inheritable).is_empty() => None,
        Ok(sets) => Some(format!(
            "{:?}",
            sets.effective | sets.permitted | sets.inheritable
        )),
        Err(error) => Some(format!("not known: {}", name(error))),
    }
}

fn start_thread() -> Tried {
    match std::thread::Builder::new()
        .spawn(|| ())
        .map(|thread| thread.join())
    {
        Ok(Ok(())) => Tried::Reached("done".to_owned()),
        Ok(Err(_panic)) => Tried::Refused("it panicked".to_owned()),
        Err(error) => Tried::Refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_frame::protocol::acts::{FORBIDDEN, NEEDED};

    #[test]
    fn what_is_tried_is_what_the_host_asks_for() {
        let tried: Vec<_> = ACTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(tried, [&FORBIDDEN[..], &NEEDED].concat());
    }

    #[test]
    fn an_act_that_is_let_through_is_never_read_as_denied() {
        assert!(!reading("a", judged(Errno::FAULT)).denied);
        assert!(!reading("a", judged(Errno::INVAL)).denied);
        assert!(!reading("a", errno(Ok(()))).denied);
        assert!(!reading("a", any(Some(3))).denied);
        assert!(!reading("a", dies(|| Tried::Refused(String::new()))).denied);
        assert!(!reading("a", execute("/usr/bin/env")).denied);
        assert!(!reading("a", call(libc::SYS_getpid, [0; 5])).denied);
        assert!(!reading("a", file(fs::File::open("/dev/null"))).denied);
    }

    #[test]
    fn a_program_that_did_not_start_says_what_refused_it() {
        for (error, how) in [
            (Errno::PERM, "EPERM"),
            (Errno::ACCESS, "EACCES"),
            (Errno::NOSYS, "ENOSYS"),
            (Errno::SRCH, "ESRCH"),
            (Errno::ROFS, "EROFS"),
        ] {
            let reading = reading("a", became(|| error.into()));
            assert!(reading.denied && reading.how == how, "{reading:?}");
        }
        let missing = reading("a", execute("/no/such"));
        assert!(!missing.denied && missing.how == "ENOENT", "{missing:?}");
        let denied = reading("a", execute("/etc/passwd"));
        assert!(denied.denied && denied.how == "EACCES", "{denied:?}");
    }

    /// A program that was let through ends as it likes, also with the number of an errno.
    #[test]
    fn no_exit_status_of_a_program_is_read_as_a_refusal() {
        for status in [0, 1, 2, 3, 13, 30, 38, 77, 126, 127] {
            let tried = became(|| {
                let exit = format!("exit {status}");
                Command::new("/bin/sh").args(["-c", &exit]).exec()
            });
            let reading = reading("a", tried);
            assert!(!reading.denied, "{reading:?}");
            assert_eq!(reading.how, format!("exit status: {status}"));
        }
    }

    #[test]
    fn a_call_that_is_refused_but_ends_nobody_says_how() {
        let lives = reading("a", dies(|| judged(Errno::ACCESS)));
        assert_eq!(lives.how, "EACCES, and it lives");
        let died = reading(
            "a",
            dies(|| {
                let _ = rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::SYS,
                );
                judged(Errno::ACCESS)
            }),
        );
        assert!(died.denied && died.how == "SIGSYS", "{died:?}");
    }

    #[test]
    fn a_probe_that_did_not_finish_reads_nothing() {
        let outcome = |status, stdout: &str, complete| Outcome {
            status,
            stdout: stdout.as_bytes().into(),
            stderr: Default::default(),
            complete,
            armed: false,
        };
        let failed = |outcome| {
            readings(&outcome).is_err_and(|refusal| refusal.code == RunnerCode::ProbeFailed)
        };
        let reason = "Landlock is not fully in force".to_owned();
        assert!(failed(outcome(Status::LaunchFailed { reason }, "[]", true)));
        assert!(failed(outcome(Status::TimedOut, "[]", true)));
        assert!(failed(outcome(Status::Exited { code: 0 }, "[", true)));
        assert!(failed(outcome(Status::Exited { code: 0 }, "[]", false)));
        assert!(!failed(outcome(Status::Exited { code: 0 }, "[]", true)));
    }

    /// The control: the same acts, where no walls stand. Only those that change nothing.
    #[test]
    fn without_walls_the_acts_are_let_through() {
        for harmless in [
            "connect-inet",
            "socket-unix",
            "read-etc-passwd",
            "list-root",
            "execute-usr-bin",
        ] {
            let (name, act) = ACTS.iter().find(|(name, _)| *name == harmless).unwrap();
            assert!(!reading(name, act()).denied, "{harmless}");
        }
    }

    #[test]
    fn an_act_that_is_refused_says_how() {
        let denied = reading("a", judged(Errno::PERM));
        assert!(denied.denied && denied.how == "EPERM");
        assert_eq!(reading("a", file(fs::File::open("/no/such"))).how, "ENOENT");
    }
}
