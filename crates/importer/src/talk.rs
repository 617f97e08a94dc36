use crate::{ImportError, ImporterCode};
use flightproof_core::escape;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, waitid};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ExitStatus};
use std::time::{Duration, Instant};

/// A running git: written to, read from, and gone by the deadline. Dropping it kills its group.
#[derive(Debug)]
pub(crate) struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    unread: Vec<u8>,
    start: usize,
    /// The first bytes of what it complained about.
    complaint: Vec<u8>,
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

/// How many bytes are read, and what it is called when there are more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cap {
    pub(crate) bytes: usize,
    pub(crate) code: ImporterCode,
}

/// Between two looks: git ends within microseconds of closing its output.
const PAUSE: Duration = Duration::from_micros(20);
/// Longest line of a conversation: an object header or a word of a transaction.
const LINE: usize = 4096;
/// Bytes asked of the pipe at once: the size of a Linux pipe.
const CHUNK: usize = 65_536;
/// Most bytes of answer that are held while git is still written to: more than any of its answers has.
const HELD: usize = 16 << 20;
/// Most bytes that are kept of its complaints: enough for its two or three lines.
const COMPLAINT: usize = 2048;

impl Talk {
    pub(crate) fn new(mut child: Child, time: Duration) -> Result<Self, ImportError> {
        let stdin = child.stdin.take();
        let talk = Self {
            child,
            stdin,
            unread: Vec::new(),
            start: 0,
            complaint: Vec::new(),
            deadline: Instant::now() + time,
        };
        // Our ends alone: the child's are other file descriptions.
        let stdin = talk
            .stdin
            .as_ref()
            .map(|pipe| (pipe.as_fd(), OFlags::WRONLY));
        let stderr = talk.child.stderr.as_ref();
        let stderr = stderr.map(|pipe| (pipe.as_fd(), OFlags::RDONLY));
        for (pipe, flags) in [stdin, stderr].into_iter().flatten() {
            rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK)
                .map_err(|e| ImporterCode::GitFailed.refuse(format!("a pipe to git: {e}")))?;
        }
        talk.limit()?;
        Ok(talk)
    }

    /// Writes to git, and reads what it says meanwhile: a git whose answers nobody takes stops reading. One
    /// that does not read is left at the deadline.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = match &mut self.stdin {
                Some(stdin) => stdin.write(rest),
                None => Err(ErrorKind::BrokenPipe.into()),
            };
            match written {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(e) => return Err(self.failed(format!("writing to git: {e}"))),
            }
        }
        Ok(())
    }

    /// Waits until git takes more, or has said more. A pack is larger than a pipe.
    fn wait_for_room(&mut self) -> Result<(), ImportError> {
        if self.wait_for_pipes(true)? {
            self.read()?;
        }
        if self.unread.len() - self.start > HELD {
            return Err(ImporterCode::GitFailed.refuse("git says more than it was asked"));
        }
        Ok(())
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

    /// Ends the input and reads the rest.
    pub(crate) fn finish(mut self, most: Cap) -> Result<Answer, ImportError> {
        self.stdin = None;
        while self.unread.len() - self.start <= most.bytes && self.fill()? > 0 {}
        if self.unread.len() - self.start > most.bytes {
            let detail = format!("git printed more than {} bytes", most.bytes);
            return Err(most.code.refuse(detail));
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
        while self.child.stdout.is_some() && !self.wait_for_pipes(false)? {}
        self.read()
    }

    /// Waits until git says something, or takes something where that is wanted. Whether it goes on with
    /// its answer; what it complains about is read here.
    fn wait_for_pipes(&mut self, writing: bool) -> Result<bool, ImportError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        let [stdout, stderr] = [
            self.child.stdout.as_ref().map(AsFd::as_fd),
            self.child.stderr.as_ref().map(AsFd::as_fd),
        ];
        let stdin = self.stdin.as_ref().filter(|_| writing);
        let mut pipes: Vec<PollFd<'_>> = [stdout, stderr]
            .into_iter()
            .flatten()
            .map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN))
            .collect();
        pipes.extend(stdin.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        // One that never stops to complain is always ready.
        let ready = match left.is_zero() {
            true => Ok(0),
            false => poll(&mut pipes, timeout.as_ref()),
        };
        let what = if writing {
            "git does not read"
        } else {
            "no answer in time"
        };
        match ready {
            Ok(0) => return Err(ImporterCode::GitDeadline.refuse(what)),
            // The callers come again, with the time that is left.
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(ImporterCode::GitFailed.refuse(format!("waiting for git: {e}"))),
        }
        let first = pipes.first().is_some_and(|pipe| !pipe.revents().is_empty());
        let answers = stdout.is_some() && first;
        self.listen();
        Ok(answers)
    }

    /// What is there of the answer. 0 is its end.
    fn read(&mut self) -> Result<usize, ImportError> {
        let Some(stdout) = &mut self.child.stdout else {
            return Ok(0);
        };
        let old = self.unread.len();
        self.unread.resize(old + CHUNK, 0);
        let got = self
            .unread
            .get_mut(old..)
            .map_or(Ok(0), |free| stdout.read(free));
        self.unread
            .truncate(old + got.as_ref().copied().unwrap_or(0));
        if matches!(got, Ok(0)) {
            self.child.stdout = None;
        }
        got.map_err(|e| ImporterCode::GitFailed.refuse(format!("reading from git: {e}")))
    }

    /// Reads a piece of what git complains about, and keeps the first bytes of all: with a full pipe it
    /// would wait. Only what is there: a grandchild could hold the pipe open. Whether there was any.
    fn listen(&mut self) -> bool {
        let Some(stderr) = &mut self.child.stderr else {
            return false;
        };
        let mut piece = [0; 4096];
        match stderr.read(&mut piece) {
            Ok(0) => self.child.stderr = None,
            Ok(count) => {
                let room = COMPLAINT - self.complaint.len();
                let kept = piece.get(..count.min(room)).unwrap_or_default();
                self.complaint.extend_from_slice(kept);
                return true;
            }
            Err(_) => {}
        }
        false
    }

    fn wait(&mut self) -> Result<ExitStatus, ImportError> {
        loop {
            self.listen();
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
        while self.complaint.len() < COMPLAINT && self.listen() {}
        escape(self.complaint.trim_ascii(), 400)
    }

    /// Asks first: a git that is asked removes its lock files. Then ends whatever is left of its
    /// group, before the number of the group can be given to another.
    fn kill(&mut self) {
        const GRACE: Duration = Duration::from_millis(200);
        self.stdin = None;
        self.signal(Signal::TERM);
        let deadline = Instant::now() + GRACE;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Looks without collecting the child, so that its number stays taken.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.pid()
            .is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
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
                if e != Errno::SRCH && e != Errno::PERM {
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
    // Bytes per file: git writes references and their logs, and packs of one change with their indexes.
    // Its answers go to pipes.
    (Resource::Fsize, 256 << 20),
    (Resource::Core, 0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    fn talk(script: &str, time: Duration) -> Talk {
        let child = Command::new("/bin/sh")
            .args(["-c", script])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Talk::new(child, time).unwrap()
    }

    const MOST: Cap = Cap {
        bytes: 100,
        code: ImporterCode::GitFailed,
    };
    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_git_that_hangs_is_ended_with_everything_it_started() {
        for script in [
            "sleep 100",
            "sleep 100 & wait",
            "exec >&-; sleep 100",
            "trap '' TERM; sleep 100",
        ] {
            let refused = talk(script, SHORT).finish(MOST).unwrap_err();
            assert_eq!(refused.code, ImporterCode::GitDeadline, "{script}");
        }
        let temp = tempfile::tempdir().unwrap();
        let mark = temp.path().join("survived");
        let script = format!("(trap '' TERM; sleep 0.5; : >{}) & wait", mark.display());
        let mut silent = talk(&script, SHORT);
        assert_eq!(silent.line().unwrap_err().code, ImporterCode::GitDeadline);
        drop(silent);
        std::thread::sleep(Duration::from_millis(700));
        assert!(!mark.exists());
    }

    #[test]
    fn a_git_that_does_not_read_is_left_at_the_deadline() {
        let pack = vec![0; 1 << 20];
        let refused = talk("sleep 100", SHORT).send(&pack).unwrap_err();
        assert_eq!(refused.code, ImporterCode::GitDeadline);
        let refused = talk("exec <&-; sleep 1", LONG).send(&pack).unwrap_err();
        assert_eq!(refused.code, ImporterCode::GitFailed);
        let mut slow = talk("sleep 0.05; wc -c", LONG);
        slow.send(&pack).unwrap();
        let answer = slow.finish(MOST).unwrap();
        assert_eq!(answer.stdout.trim_ascii(), b"1048576");
    }

    #[test]
    fn a_git_that_speaks_before_it_has_heard_all_is_listened_to() {
        let pack = vec![0; 1 << 20];
        let most = Cap {
            bytes: 1 << 20,
            ..MOST
        };
        let loud = "head -c 1000000 /dev/zero >&2";
        for (script, said) in [
            ("cat".to_owned(), 1 << 20),
            (format!("{loud}; cat"), 1 << 20),
            (format!("cat; {loud}"), 1 << 20),
            (format!("cat >/dev/null; exec >&-; {loud}"), 0),
        ] {
            let mut talk = talk(&script, LONG);
            talk.send(&pack).unwrap();
            let answer = talk.finish(most).unwrap();
            assert_eq!((answer.stdout.len(), answer.code), (said, 0), "{script}");
        }
        let mut silent = talk(&format!("{loud}; read line; echo said"), LONG);
        silent.send(b"line\n").unwrap();
        assert_eq!(silent.line().unwrap(), b"said");
    }

    #[test]
    fn a_git_that_never_stops_to_speak_is_left() {
        let pack = vec![0; 1 << 20];
        let refused = talk("cat /dev/zero", LONG).send(&pack).unwrap_err();
        assert_eq!(refused.code, ImporterCode::GitFailed);
        let refused = talk("cat /dev/zero >&2", SHORT).send(&pack).unwrap_err();
        assert_eq!(refused.code, ImporterCode::GitDeadline);
        let mut loud = talk("cat /dev/zero >&2", SHORT);
        assert_eq!(loud.line().unwrap_err().code, ImporterCode::GitDeadline);
    }

    #[test]
    fn answers_are_read_as_lines_and_bytes_in_any_pieces() {
        let mut talk = talk("printf 'one\\ntw'; sleep 0.02; printf 'o\\nabc'; cat", LONG);
        assert_eq!(talk.line().unwrap(), b"one");
        assert_eq!(talk.line().unwrap(), b"two");
        assert_eq!(talk.exactly(2).unwrap(), b"ab");
        talk.send(b"more").unwrap();
        let answer = talk.finish(MOST).unwrap();
        assert_eq!((answer.stdout.as_slice(), answer.code), (&b"cmore"[..], 0));
    }

    #[test]
    fn complaints_are_short_and_safe_to_show() {
        let answer = talk("printf 'bad \\033[31m' >&2; exit 3", LONG)
            .finish(MOST)
            .unwrap();
        assert_eq!(
            (answer.code, answer.complaint.as_str()),
            (3, "bad \\u{1b}[31m")
        );
        let loud = talk("head -c 3000 /dev/zero >&2", LONG)
            .finish(MOST)
            .unwrap();
        assert!(loud.complaint.len() < 4_000);
    }

    #[test]
    fn more_than_was_allowed_is_refused() {
        assert!(talk("head -c 100 /dev/zero", LONG).finish(MOST).is_ok());
        let refused = talk("head -c 101 /dev/zero", LONG)
            .finish(MOST)
            .unwrap_err();
        assert_eq!(refused.code, ImporterCode::GitFailed);
        let mut endless = talk("head -c 100000 /dev/zero", LONG);
        assert_eq!(endless.line().unwrap_err().code, ImporterCode::GitFailed);
    }
}
