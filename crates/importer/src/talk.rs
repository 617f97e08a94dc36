use crate::{ImportError, ImporterCode};
use flightproof_core::escape;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ExitStatus};
use std::time::{Duration, Instant};

/// A running git: written to, read from, and gone by the deadline. Dropping it kills its group.
#[derive(Debug)]
pub(crate) struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    unread: Vec<u8>,
    start: usize,
    deadline: Instant,
}

/// What a finished git said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) stdout: Vec<u8>,
    pub(crate) code: i32,
    /// What it complained about, escaped and short.
    pub(crate) complaint: String,
}

/// Longest line of a conversation: an object header or a word of a transaction.
const LINE: usize = 4096;
/// Bytes asked of the pipe at once: the size of a Linux pipe.
const CHUNK: usize = 65_536;

impl Talk {
    pub(crate) fn new(mut child: Child, time: Duration) -> Result<Self, ImportError> {
        let stdin = child.stdin.take();
        let talk = Self {
            child,
            stdin,
            unread: Vec::new(),
            start: 0,
            deadline: Instant::now() + time,
        };
        talk.limit()?;
        Ok(talk)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let sent = match &mut self.stdin {
            Some(stdin) => stdin.write_all(bytes).and_then(|()| stdin.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|e| self.failed(format!("writing to git: {e}")))
    }

    /// The next line, without its end.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, ImportError> {
        let mut seen = 0;
        loop {
            let unread = self.unread.get(self.start..).unwrap_or_default();
            if let Some(end) = unread.iter().skip(seen).position(|b| *b == b'\n') {
                let line = self.take(seen + end)?;
                self.take(1)?;
                return Ok(line);
            }
            seen = unread.len();
            if seen > LINE {
                return Err(ImporterCode::GitFailed.refuse("git printed an endless line"));
            }
            if self.fill()? == 0 {
                return Err(self.failed("git ended in the middle of an answer"));
            }
        }
    }

    /// Exactly this many bytes. The caller has checked the number against its limit.
    pub(crate) fn exactly(&mut self, count: usize) -> Result<Vec<u8>, ImportError> {
        while self.unread.len() - self.start < count {
            if self.fill()? == 0 {
                return Err(self.failed("git ended in the middle of an object"));
            }
        }
        self.take(count)
    }

    /// Ends the input and reads the rest, at most `most` bytes.
    pub(crate) fn finish(mut self, most: usize) -> Result<Answer, ImportError> {
        self.stdin = None;
        while self.fill()? > 0 {
            if self.unread.len() - self.start > most {
                return Err(ImporterCode::BytesOverLimit
                    .refuse(format!("git printed more than {most} bytes")));
            }
        }
        let status = self.wait()?;
        let complaint = self.complaint();
        let Some(code) = status.code() else {
            return Err(ImporterCode::GitFailed.refuse(format!("git died: {status}: {complaint}")));
        };
        Ok(Answer {
            stdout: self.unread.split_off(self.start),
            code,
            complaint,
        })
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>, ImportError> {
        let end = self.start + count;
        let piece = self.unread.get(self.start..end).map(<[u8]>::to_vec);
        self.start = end;
        if self.start == self.unread.len() {
            self.unread.clear();
            self.start = 0;
        }
        piece.ok_or_else(|| ImporterCode::GitFailed.refuse("an answer is too short"))
    }

    /// Waits for more of the answer. 0 is its end.
    fn fill(&mut self) -> Result<usize, ImportError> {
        let Some(stdout) = &mut self.child.stdout else {
            return Ok(0);
        };
        let left = self.deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        let mut ready = [PollFd::new(&*stdout, PollFlags::IN)];
        match poll(&mut ready, timeout.as_ref()) {
            Ok(0) => return Err(ImporterCode::GitDeadline.refuse("no answer in time")),
            Ok(_) => {}
            Err(e) => return Err(ImporterCode::GitFailed.refuse(format!("waiting for git: {e}"))),
        }
        let old = self.unread.len();
        self.unread.resize(old + CHUNK, 0);
        let got = self
            .unread
            .get_mut(old..)
            .map_or(Ok(0), |free| stdout.read(free));
        self.unread
            .truncate(old + got.as_ref().copied().unwrap_or(0));
        got.map_err(|e| ImporterCode::GitFailed.refuse(format!("reading from git: {e}")))
    }

    fn wait(&mut self) -> Result<ExitStatus, ImportError> {
        /// Between two looks: git ends within microseconds of closing its output.
        const PAUSE: Duration = Duration::from_micros(200);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < self.deadline => std::thread::sleep(PAUSE),
                Ok(None) => return Err(ImporterCode::GitDeadline.refuse("git does not end")),
                Err(e) => return Err(ImporterCode::GitFailed.refuse(e)),
            }
        }
    }

    fn failed(&mut self, what: impl std::fmt::Display) -> ImportError {
        self.kill();
        let complaint = self.complaint();
        ImporterCode::GitFailed.refuse(format!("{what}: {complaint}"))
    }

    /// The first bytes of what the dead child wrote to its error output, safe to show.
    fn complaint(&mut self) -> String {
        /// Enough for git's two or three lines.
        const MOST: u64 = 2048;
        let mut text = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            // A grandchild could still hold the pipe open: take only what is there.
            let _ = rustix::fs::fcntl_setfl(&stderr, rustix::fs::OFlags::NONBLOCK);
            let _ = stderr.take(MOST).read_to_end(&mut text);
        }
        escape(text.trim_ascii(), 400)
    }

    /// Asks first: a git that is asked removes its lock files.
    fn kill(&mut self) {
        const GRACE: Duration = Duration::from_millis(200);
        self.stdin = None;
        self.signal(Signal::TERM);
        self.deadline = Instant::now() + GRACE;
        if self.wait().is_err() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.pid() {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// A second wall around a git that a hostile repository took over or made greedy.
    fn limit(&self) -> Result<(), ImportError> {
        // Without a number the limits would become our own.
        let Some(pid) = self.pid() else {
            return Err(ImporterCode::GitFailed.refuse("git has no process id"));
        };
        for (resource, most) in LIMITS {
            let limit = Rlimit {
                current: Some(most),
                maximum: Some(most),
            };
            if let Err(e) = rustix::process::prlimit(Some(pid), resource, limit) {
                // A child that ended already needs no limit; its answer is read as usual.
                if e != rustix::io::Errno::SRCH && e != rustix::io::Errno::PERM {
                    return Err(ImporterCode::GitFailed.refuse(format!("limiting git: {e}")));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill();
        }
    }
}

const LIMITS: [(Resource, u64); 4] = [
    // Bytes of address space: windows are 1 MiB, but indexes of large packs are mapped whole.
    (Resource::As, 4 << 30),
    // Seconds.
    (Resource::Cpu, 60),
    // Bytes per file: git writes only a reference and its log here, and its answers go to pipes.
    (Resource::Fsize, 256 << 20),
    (Resource::Core, 0),
];
