//! One writer for many threads: what they ask for at the same time becomes one commit.

use crate::{Ledger, LedgerCode, LedgerError, Writing};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A ledger whose one writer is a thread. Clones are handles of the same.
#[derive(Debug)]
pub struct Shared {
    desk: Arc<Desk>,
}

/// The thread that writes. Whoever holds it closes the ledger.
#[derive(Debug)]
pub struct Writer {
    thread: JoinHandle<Result<(), LedgerError>>,
}

/// Does its part of a transaction, and leaves what to do when the commit's end is known.
type Job = Box<dyn FnOnce(&Writing<'_>) -> Told + Send>;
type Told = Box<dyn FnOnce(Result<(), LedgerError>) + Send>;

impl Shared {
    /// Hands a ledger to a thread of its own.
    pub fn start(ledger: Ledger) -> (Self, Writer) {
        // A handle first: a writer that finds none ends.
        let shared = Self::on(Arc::default());
        let serving = Serving(Arc::clone(&shared.desk));
        let thread = std::thread::spawn(move || serve(ledger, &serving.0));
        (shared, Writer { thread })
    }

    fn on(desk: Arc<Desk>) -> Self {
        desk.line().handles += 1;
        Self { desk }
    }

    /// As [`Ledger::write`]; what other threads write at the same moment goes into the same commit.
    /// A change that fails is undone by itself. After an uncertain commit the ledger is opened anew
    /// for the writes that follow.
    ///
    /// # Errors
    /// As [`Ledger::write`]; `COMMIT_UNCERTAIN` too if the writer is gone.
    pub fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Writing<'_>) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (tell, told) = sync_channel(1);
        self.desk.put(Box::new(move |w| {
            let answer = w.attempt(change);
            Box::new(move |committed| {
                let _ = tell.send(committed.and(answer));
            })
        }));
        let gone = || LedgerCode::CommitUncertain.refuse("the writer is gone");
        told.recv().map_err(|_| gone())?
    }
}

impl Clone for Shared {
    fn clone(&self) -> Self {
        Self::on(Arc::clone(&self.desk))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.desk.line().handles -= 1;
        self.desk.called.notify_all();
    }
}

impl Writer {
    /// Waits until every handle is gone and everything is written, and closes the ledger.
    ///
    /// # Errors
    /// As [`Ledger::close`].
    pub fn close(self) -> Result<(), LedgerError> {
        self.thread
            .join()
            .unwrap_or_else(|_| Err(LedgerCode::CloseUncertain.refuse("the writer died")))
    }
}

/// Where jobs wait for the writer.
#[derive(Default)]
struct Desk {
    line: Mutex<Line>,
    called: Condvar,
}

#[derive(Default)]
struct Line {
    jobs: Vec<Job>,
    /// Jobs for which the writer is woken.
    wanted: usize,
    handles: usize,
    /// Nobody serves any more.
    closed: bool,
}

impl Desk {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job that nobody will do is dropped, which tells whoever waits for it.
    fn put(&self, job: Job) {
        let mut line = self.line();
        if line.closed {
            return;
        }
        line.jobs.push(job);
        if line.jobs.len() >= line.wanted {
            self.called.notify_one();
        }
    }

    /// Waits for a first job; `false` if none can come any more.
    fn wait(&self) -> bool {
        let line = self.line();
        let idle = |line: &mut Line| {
            line.wanted = 1;
            line.jobs.is_empty() && line.handles > 0
        };
        let waited = self.called.wait_while(line, idle);
        let mut line = waited.unwrap_or_else(PoisonError::into_inner);
        // A writer at work is not called.
        line.wanted = usize::MAX;
        !line.jobs.is_empty()
    }

    /// The jobs that are there, at most `most`. If there are none, those that come before `until`, as
    /// soon as they are `expected`.
    fn take(&self, most: usize, expected: usize, until: Instant) -> Vec<Job> {
        let mut line = self.line();
        if line.jobs.is_empty() && expected > 0 {
            let few = |line: &mut Line| {
                line.wanted = expected;
                line.jobs.len() < expected && line.handles > 0
            };
            let patience = until.saturating_duration_since(Instant::now());
            let waited = self.called.wait_timeout_while(line, patience, few);
            line = waited.unwrap_or_else(PoisonError::into_inner).0;
            line.wanted = usize::MAX;
        }
        let taken = line.jobs.len().min(most);
        line.jobs.drain(..taken).collect()
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

/// Closes the desk when its writer ends, however it ends.
struct Serving(Arc<Desk>);

impl Drop for Serving {
    fn drop(&mut self) {
        let mut line = self.0.line();
        line.closed = true;
        let left = std::mem::take(&mut line.jobs);
        drop(line);
        drop(left);
    }
}

fn serve(mut ledger: Ledger, desk: &Desk) -> Result<(), LedgerError> {
    let mut last = Joined::default();
    while desk.wait() {
        let begun = Instant::now();
        let mut told = Vec::new();
        let committed = ledger.write(|w| {
            join(desk, &last, begun, |job| told.push(job(w)));
            Ok(())
        });
        last = Joined {
            writes: told.len(),
            took: begun.elapsed(),
        };
        let uncertain = committed.is_err();
        for tell in told {
            tell(committed.clone());
        }
        if uncertain {
            ledger = ledger.reopen()?;
        }
    }
    ledger.close()
}

/// A commit: how many writes it joined, and how long it took with them.
#[derive(Default)]
struct Joined {
    writes: usize,
    took: Duration,
}

/// Does the jobs that are there, and those that come meanwhile. Whoever was told of the last commit is
/// about to ask again: waiting a moment for as many spares them a commit that they would just miss. It
/// is never longer than half of what that commit took, and nobody who writes alone waits.
fn join(desk: &Desk, last: &Joined, begun: Instant, mut job_of: impl FnMut(Job)) {
    let until = begun + (last.took / 2).min(LONGEST_WAIT);
    let mut done = 0;
    loop {
        let missing = last.writes.saturating_sub(done);
        let jobs = desk.take(MOST_JOINED - done, missing, until);
        if jobs.is_empty() {
            return;
        }
        done += jobs.len();
        jobs.into_iter().for_each(&mut job_of);
    }
}

/// Most writes of one commit: none waits for more than this many others.
const MOST_JOINED: usize = 64;
/// Longest wait for others to join a commit, whatever the disk takes.
const LONGEST_WAIT: Duration = Duration::from_millis(2);
