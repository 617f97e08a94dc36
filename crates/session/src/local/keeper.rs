//! The thread that starts the sandbox and stays until its end. The kernel's parent-death signal
//! follows the thread that started a child, not the process: a thread that ended early would take
//! the session with it.

use crate::{SessionCode, SessionError};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most bytes kept of what the sandbox says on standard error; the rest is read and dropped.
const MAX_STDERR: usize = 4096;
/// How long a killed sandbox may take to be reaped.
const REAP_DEADLINE: Duration = Duration::from_secs(10);
/// Pause between two looks at it.
const REAP_PAUSE: Duration = Duration::from_millis(1);

/// A started sandbox.
pub(super) struct Keeper {
    thread: Option<JoinHandle<()>>,
    pidfd: OwnedFd,
    stderr: Arc<Mutex<Vec<u8>>>,
}

/// What the starting thread hands out.
struct Started {
    pidfd: OwnedFd,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Keeper {
    /// Starts the sandbox program; its standard streams become pipes.
    pub(super) fn start(
        mut command: Command,
    ) -> Result<(Self, ChildStdin, ChildStdout), SessionError> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (sender, receiver) = mpsc::sync_channel(1);
        let kept = Arc::clone(&stderr);
        let thread = std::thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || keep(command, &sender, &kept))
            .map_err(|e| start_failed(&e))?;
        let started = receiver
            .recv()
            .unwrap_or_else(|_| Err(std::io::Error::other("the starting thread ended")))
            .map_err(|e| start_failed(&e))?;
        let keeper = Self {
            thread: Some(thread),
            pidfd: started.pidfd,
            stderr,
        };
        Ok((keeper, started.stdin, started.stdout))
    }

    /// Whether the sandbox has ended and was reaped.
    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What the sandbox said on standard error so far.
    pub(super) fn stderr(&self) -> Vec<u8> {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }

    /// Kills the sandbox program and waits until it is reaped.
    pub(super) fn end(&mut self) -> Result<(), SessionError> {
        // It may be dead already: the waiting below decides.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let end = Instant::now() + REAP_DEADLINE;
        while !self.is_over() {
            if Instant::now() > end {
                return Err(SessionCode::Leak.refuse("the sandbox program does not end"));
            }
            std::thread::sleep(REAP_PAUSE);
        }
        if let Some(thread) = self.thread.take() {
            // Its result is unit; a panic there leaves nothing to do here.
            let _ = thread.join();
        }
        Ok(())
    }
}

fn keep(
    mut command: Command,
    sender: &mpsc::SyncSender<std::io::Result<Started>>,
    kept: &Mutex<Vec<u8>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let _ = sender.send(Err(e));
            return;
        }
    };
    let stderr = child.stderr.take();
    let started = started(&mut child);
    if started.is_err() {
        let _ = child.kill();
    }
    let _ = sender.send(started);
    if let Some(stderr) = stderr {
        drain(stderr, kept);
    }
    let _ = child.wait();
}

fn started(child: &mut Child) -> std::io::Result<Started> {
    let missing = || std::io::Error::other("a standard stream is missing");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(Started {
        pidfd: pidfd_open(pid.ok_or_else(missing)?, PidfdFlags::empty())?,
        stdin: child.stdin.take().ok_or_else(missing)?,
        stdout: child.stdout.take().ok_or_else(missing)?,
    })
}

fn drain(mut stderr: impl std::io::Read, kept: &Mutex<Vec<u8>>) {
    let mut piece = [0; 1024];
    while let Ok(n) = stderr.read(&mut piece) {
        if n == 0 {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_STDERR.saturating_sub(kept.len()).min(n);
        kept.extend(piece.get(..room).unwrap_or_default());
    }
}

fn start_failed(error: &std::io::Error) -> SessionError {
    SessionCode::StartFailed.refuse(format_args!("the stage program: {error}"))
}
