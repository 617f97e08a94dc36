//! The conversation with one running program: its input, its output, its end.

use crate::calls::signal_everybody;
use crate::code::{RunnerError, inside};
use crate::spawn::{Child, Ends, FAILED, MAX_REASON, SelectorEnds, WAITED};
use flightproof_core::Bytes;
use flightproof_frame::protocol::{ExecLimits, Outcome, Status};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The runner's ends of a program's pipes.
pub(crate) struct Wires {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
    answer: Option<OwnedFd>,
}

/// The byte a mutation guard answers with when it has its number.
pub(crate) const ARMED: u8 = 0x06;

/// Pipes for one program. With a selector, its number is already on the way.
pub(crate) fn wires(selector: Option<u64>) -> Result<(Ends, Wires), RunnerError> {
    let (stdin, stdin_write) = pipe()?;
    let (stdout_read, stdout) = pipe()?;
    let (stderr_read, stderr) = pipe()?;
    let (selector, answer) = match selector {
        None => (None, None),
        Some(id) => {
            let (read, id_write) = pipe()?;
            rustix::io::write(&id_write, &id.to_le_bytes())
                .map_err(inside("write the selector"))?;
            let (answer, write) = pipe()?;
            (Some(SelectorEnds { read, write }), Some(answer))
        }
    };
    let ends = Ends {
        stdin,
        stdout,
        stderr,
        selector,
    };
    let wires = Wires {
        stdin: Some(stdin_write),
        stdout: stdout_read,
        stderr: stderr_read,
        answer,
    };
    let ours = [
        Some(&wires.stdout),
        Some(&wires.stderr),
        wires.stdin.as_ref(),
        wires.answer.as_ref(),
    ];
    for end in ours.into_iter().flatten() {
        fcntl_setfl(end, OFlags::NONBLOCK).map_err(inside("set a pipe non-blocking"))?;
    }
    Ok((ends, wires))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), RunnerError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(inside("make a pipe"))
}

/// Drives a program to its end and past it: when this returns, its namespace is dead and reaped. With
/// a `grace` it is asked to end before it is made to, and stays late whatever it answers.
pub(crate) fn drive(
    child: &Child,
    wires: Wires,
    input: &[u8],
    limits: &ExecLimits,
    grace: Option<Duration>,
) -> Result<Outcome, RunnerError> {
    let mut run = Conversation::new(child, wires, input, limits);
    let mut end = run.talk(Instant::now() + Duration::from_millis(limits.wall_ms));
    if let (Ok(End::Deadline), Some(grace)) = (&end, grace) {
        end = run.ask_to_end(grace);
    }
    bury(child)?;
    run.drain();
    Ok(run.outcome(end?))
}

/// Why the conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Told,
    Deadline,
    TooMuch,
}

struct Conversation<'a> {
    child: &'a Child,
    stdin: Option<OwnedFd>,
    input: &'a [u8],
    stdout: Capture,
    stderr: Capture,
    answer: Option<OwnedFd>,
    told: Vec<u8>,
}

impl<'a> Conversation<'a> {
    fn new(child: &'a Child, wires: Wires, input: &'a [u8], limits: &ExecLimits) -> Self {
        Self {
            child,
            stdin: wires.stdin,
            input,
            stdout: Capture::new(wires.stdout, limits.stdout_bytes),
            stderr: Capture::new(wires.stderr, limits.stderr_bytes),
            answer: wires.answer,
            told: Vec::new(),
        }
    }

    fn talk(&mut self, deadline: Instant) -> Result<End, RunnerError> {
        loop {
            if self.input.is_empty() {
                self.stdin = None;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(End::Deadline);
            }
            self.wait(left)?;
            self.write_input();
            self.stdout.take();
            self.stderr.take();
            if self.stdout.over || self.stderr.over {
                return Ok(End::TooMuch);
            }
            if self.has_ended()? {
                return Ok(End::Told);
            }
        }
    }

    /// Interrupts, then terminates, waiting each time. What is said meanwhile is kept.
    fn ask_to_end(&mut self, grace: Duration) -> Result<End, RunnerError> {
        for signal in [Signal::INT, Signal::TERM] {
            signal_everybody(signal)?;
            match self.talk(Instant::now() + grace)? {
                End::Told => break,
                End::TooMuch => return Ok(End::TooMuch),
                End::Deadline => {}
            }
        }
        Ok(End::Deadline)
    }

    /// Waits until one of the pipes has something to say, or time is up.
    fn wait(&self, left: Duration) -> Result<(), RunnerError> {
        let mut list = vec![PollFd::new(&self.child.status, PollFlags::IN)];
        list.extend(
            self.stdin
                .as_ref()
                .map(|fd| PollFd::new(fd, PollFlags::OUT)),
        );
        for capture in [&self.stdout, &self.stderr] {
            list.extend(
                capture
                    .pipe
                    .as_ref()
                    .map(|fd| PollFd::new(fd, PollFlags::IN)),
            );
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut list, Some(&timeout)) {
            Ok(_ready) => Ok(()),
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(inside("poll")(error)),
        }
    }

    /// A program that does not want its input is not at fault: the rest is dropped.
    fn write_input(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        match rustix::io::write(stdin, self.input) {
            Ok(written) => self.input = self.input.get(written..).unwrap_or_default(),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_gone) => self.input = &[],
        }
    }

    /// Reads the status pipe without waiting. The end is there when the init has spoken or is gone.
    fn has_ended(&mut self) -> Result<bool, RunnerError> {
        let mut ready = [PollFd::new(&self.child.status, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if poll(&mut ready, Some(&now)).map_err(inside("poll"))? == 0 {
            return Ok(false);
        }
        let mut buffer = [0; MAX_STATUS];
        let read =
            rustix::io::read(&self.child.status, &mut buffer).map_err(inside("read the status"))?;
        self.told.extend(&buffer[..read]);
        Ok(read == 0 || matches!(Told::of(&self.told), Told::Waited(_)))
    }

    /// Takes what a dead program left in its pipes.
    fn drain(&mut self) {
        self.stdin = None;
        for capture in [&mut self.stdout, &mut self.stderr] {
            while !capture.over && capture.take() {}
        }
    }

    fn outcome(self, end: End) -> Outcome {
        let over = self.stdout.over || self.stderr.over;
        let status = match (end, Told::of(&self.told)) {
            (_, Told::Failed(reason)) => Status::LaunchFailed { reason },
            (End::Deadline, _) => Status::TimedOut,
            (End::TooMuch, _) => Status::OutputLimit,
            (End::Told, _) if over => Status::OutputLimit,
            (End::Told, Told::Waited(raw)) => status_of(raw),
            (End::Told, Told::Nothing) => KILLED,
        };
        Outcome {
            status,
            complete: self.stdout.at_end && self.stderr.at_end,
            armed: self.answer.is_some_and(|answer| is_armed(&answer)),
            stdout: Bytes(self.stdout.kept),
            stderr: Bytes(self.stderr.kept),
        }
    }
}

/// An init that ends without a word was killed by the kernel, for want of memory.
const KILLED: Status = Status::Signaled { signal: 9 };

/// Most bytes the status pipe ever holds: one reason and one wait status.
const MAX_STATUS: usize = MAX_REASON + 16;

/// Kills what is left of the namespace and waits until it is gone.
fn bury(child: &Child) -> Result<(), RunnerError> {
    match kill_process(child.init, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(inside("kill a program")(error)),
    }
    loop {
        match waitpid(Some(child.init), WaitOptions::empty()) {
            Ok(_gone) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(inside("wait for a program")(error)),
        }
    }
}

/// Armed means: exactly the one byte, and then the end. A program that writes more is not a guard.
fn is_armed(answer: &OwnedFd) -> bool {
    let mut buffer = [0; 2];
    let first = rustix::io::read(answer, &mut buffer);
    first == Ok(1) && buffer[0] == ARMED && rustix::io::read(answer, &mut buffer) == Ok(0)
}

/// One output stream, kept up to its limit.
struct Capture {
    pipe: Option<OwnedFd>,
    kept: Vec<u8>,
    limit: usize,
    over: bool,
    at_end: bool,
}

impl Capture {
    fn new(pipe: OwnedFd, limit: u64) -> Self {
        Self {
            pipe: Some(pipe),
            kept: Vec::new(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            over: false,
            at_end: false,
        }
    }

    /// Takes one piece without waiting. False when there was none.
    fn take(&mut self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let room = self.limit - self.kept.len();
        // One byte more than there is room for tells that it is over.
        self.kept.reserve(PIECE.min(room.saturating_add(1)));
        match rustix::io::read(pipe.as_fd(), spare_capacity(&mut self.kept)) {
            Ok(0) => {
                self.at_end = true;
                self.pipe = None;
                false
            }
            Ok(read) => {
                self.over = read > room;
                self.kept.truncate(self.limit);
                true
            }
            Err(_nothing_now) => false,
        }
    }
}

/// Bytes read at once: what a pipe holds by default.
const PIECE: usize = 64 << 10;

/// What the status pipe said so far.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Failed(String),
    Waited(i32),
}

impl Told {
    fn of(bytes: &[u8]) -> Self {
        match bytes {
            [FAILED, low, high, rest @ ..] => {
                let length = usize::from(u16::from_le_bytes([*low, *high]));
                let reason = rest.get(..length).unwrap_or(rest);
                Self::Failed(String::from_utf8_lossy(reason).into_owned())
            }
            [WAITED, a, b, c, d] => Self::Waited(i32::from_le_bytes([*a, *b, *c, *d])),
            _ => Self::Nothing,
        }
    }
}

fn status_of(raw: i32) -> Status {
    let status = ExitStatus::from_raw(raw);
    let narrow = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.code(), status.signal()) {
        (Some(code), _) => Status::Exited { code: narrow(code) },
        (None, Some(signal)) => Status::Signaled {
            signal: narrow(signal),
        },
        (None, None) => KILLED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_pipe_is_read_in_any_split() {
        assert_eq!(Told::of(b""), Told::Nothing);
        assert_eq!(Told::of(b"W\x00\x07"), Told::Nothing);
        assert_eq!(Told::of(b"W\x00\x07\x00\x00"), Told::Waited(0x700));
        assert_eq!(
            Told::of(b"F\x02\x00noW\x00\x07\x00\x00"),
            Told::Failed("no".into())
        );
    }

    #[test]
    fn wait_statuses_become_ends() {
        assert_eq!(status_of(7 << 8), Status::Exited { code: 7 });
        assert_eq!(status_of(31), Status::Signaled { signal: 31 });
        assert_eq!(status_of(128 | 6), Status::Signaled { signal: 6 });
    }

    fn capture_of(bytes: &[u8], limit: u64) -> Capture {
        let (read, write) = pipe().unwrap();
        fcntl_setfl(&read, OFlags::NONBLOCK).unwrap();
        rustix::io::write(&write, bytes).unwrap();
        drop(write);
        let mut capture = Capture::new(read, limit);
        while !capture.over && capture.take() {}
        capture
    }

    #[test]
    fn a_stream_of_exactly_its_limit_is_whole_and_one_byte_more_is_over() {
        let exact = capture_of(b"12345", 5);
        assert!(exact.at_end && !exact.over);
        let more = capture_of(b"123456", 5);
        assert!(more.over && !more.at_end);
        assert_eq!(more.kept, b"12345");
        assert!(capture_of(b"", 0).at_end);
    }

    #[test]
    fn armed_is_one_byte_and_the_end() {
        let answer = |bytes: &[u8]| {
            let (read, write) = pipe().unwrap();
            fcntl_setfl(&read, OFlags::NONBLOCK).unwrap();
            rustix::io::write(&write, bytes).unwrap();
            drop(write);
            is_armed(&read)
        };
        assert!(answer(&[ARMED]));
        assert!(!answer(&[]));
        assert!(!answer(&[ARMED, ARMED]));
        assert!(!answer(b"x"));
    }
}
