//! A stand-in as a process of this machine: bounded output, a deadline, and nobody left when it is
//! over. Agents themselves run in sessions.

use flightproof_agent::run::Event;
use flightproof_agent::{AgentCode, AgentRefusal, Ending, Launch, Output, Patience, Program};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A process of this machine, in a process group of its own.
pub(crate) struct NativeProcess {
    /// Where it works.
    pub(crate) directory: std::path::PathBuf,
    /// The file with which it says that it is so far that its start may be told: a busy machine may
    /// take its time to get there.
    pub(crate) noted: Option<&'static str>,
}

/// No stand-in takes this long to say how far it is.
const SOON: Duration = Duration::from_secs(30);

/// Most bytes of standard output that are read: twice the longest result, so that one that is too
/// long is told apart from one that never ends.
const MAX_STDOUT: usize = 8 << 20;
/// How often to look whether a process is gone.
const TICK: Duration = Duration::from_millis(5);

impl Program for NativeProcess {
    fn run(
        &mut self,
        launch: &Launch,
        patience: Patience,
        tell: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Output, AgentRefusal> {
        let mut child = Command::new(&launch.program)
            .args(&launch.argv)
            .env_clear()
            .envs(&launch.env)
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| AgentCode::SpawnFailed.refuse(e))?;
        let group = group_of(&child)?;
        let pipes = Pipes::drain(&mut child, launch.stdin.clone());
        if let Some(note) = self.noted.map(|name| self.directory.join(name)) {
            let until = Instant::now() + SOON;
            while note.metadata().map_or(0, |note| note.len()) == 0 {
                assert!(Instant::now() < until, "no {}", note.display());
                thread::sleep(TICK);
            }
        }
        let patience = match tell(Event::Started) {
            true => patience,
            false => Patience {
                wall: Duration::ZERO,
                ..patience
            },
        };
        let ending = wait(group, patience, tell);
        // Children that outlive an agent keep spending. This one, if it still runs, goes with them.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
        Ok(pipes.collect(ending, patience.grace))
    }
}

fn group_of(child: &Child) -> Result<Pid, AgentRefusal> {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    id.ok_or_else(|| AgentCode::SpawnFailed.refuse("a process without a number"))
}

/// Threads that empty the pipes as fast as they fill: a slow reader has cut results short.
struct Pipes {
    said: Arc<Mutex<Said>>,
    ended: Receiver<()>,
    stderr: Receiver<u64>,
}

/// What came on standard output so far.
#[derive(Default)]
struct Said {
    bytes: Vec<u8>,
    overflow: bool,
}

impl Pipes {
    fn drain(child: &mut Child, prompt: Vec<u8>) -> Self {
        let (to_ended, ended) = channel();
        let (to_stderr, stderr) = channel();
        let said = Arc::new(Mutex::new(Said::default()));
        if let Some(mut input) = child.stdin.take() {
            // Whoever does not read its task has a reason of its own; its result will tell.
            thread::spawn(move || input.write_all(&prompt));
        }
        if let Some(pipe) = child.stdout.take() {
            let said = Arc::clone(&said);
            thread::spawn(move || {
                read_into(pipe, &said);
                to_ended.send(())
            });
        }
        if let Some(mut pipe) = child.stderr.take() {
            thread::spawn(move || {
                to_stderr.send(std::io::copy(&mut pipe, &mut std::io::sink()).unwrap_or(0))
            });
        }
        Self {
            said,
            ended,
            stderr,
        }
    }

    /// What was printed. A pipe that somebody still holds open after the group was killed belongs
    /// to a process that got away: the run is overdue, whatever it printed.
    fn collect(self, ending: Ending, grace: Duration) -> Output {
        let ending = match self.ended.recv_timeout(grace.max(TICK)) {
            Err(RecvTimeoutError::Timeout) => Ending::Overdue,
            _ => ending,
        };
        let said = std::mem::take(&mut *lock(&self.said));
        Output {
            ending,
            stdout: said.bytes,
            stderr_bytes: self.stderr.recv_timeout(grace.max(TICK)).unwrap_or(0),
            overflow: said.overflow,
        }
    }
}

/// A thread that panicked left whole pieces behind.
fn lock(said: &Mutex<Said>) -> MutexGuard<'_, Said> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads to the end and keeps what is within the limit; the rest is read and dropped, so that the
/// writer does not stop in the middle. A pipe that cannot be read may hide the rest of a result.
fn read_into(mut pipe: impl Read, said: &Mutex<Said>) {
    let mut piece = vec![0; 1 << 16];
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => return,
            Ok(read) => {
                let mut said = lock(said);
                let room = MAX_STDOUT.saturating_sub(said.bytes.len()).min(read);
                said.bytes.extend_from_slice(&piece[..room]);
                said.overflow |= room < read;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => {
                lock(said).overflow = true;
                return;
            }
        }
    }
}

/// Waits for the process; after the deadline it is asked, told, and made to end. It is not reaped
/// here: as long as it is a zombie, nobody else can get the number of its group.
fn wait(leader: Pid, patience: Patience, tell: &mut dyn FnMut(Event) -> bool) -> Ending {
    if let Some(ending) = wait_until(leader, Instant::now() + patience.wall) {
        return ending;
    }
    tell(Event::DeadlinePassed);
    for signal in [Signal::INT, Signal::TERM] {
        // It may be gone by now; then there is nobody to tell.
        let _ = kill_process_group(leader, signal);
        if wait_until(leader, Instant::now() + patience.grace).is_some() {
            break;
        }
    }
    Ending::Overdue
}

fn wait_until(leader: Pid, deadline: Instant) -> Option<Ending> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(leader), look) {
            Ok(Some(status)) => return Some(ending(&status)),
            Ok(None) if Instant::now() < deadline => thread::sleep(TICK),
            _ => return None,
        }
    }
}

fn ending(status: &WaitIdStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Signalled(signal.unwrap_or(0)),
    }
}
