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

/// Does its part of a transaction, or hears why there is none, and leaves what to do when the commit's
/// end is known.
type Job = Box<dyn FnOnce(Result<&Writing<'_>, LedgerError>) -> Told + Send>;
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
    /// As [`Ledger::write`]; once the ledger could not be opened anew, those of [`Ledger::reopen`] and
    /// nothing is begun; `COMMIT_UNCERTAIN` too if the writer died.
    pub fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Writing<'_>) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (tell, told) = sync_channel(1);
        self.desk.put(Box::new(move |w| {
            let answer = w.and_then(|w| w.attempt(change));
            Box::new(move |committed| {
                let _ = tell.send(committed.and(answer));
            })
        }));
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
    /// Why nobody serves any more.
    closed: Option<LedgerError>,
}

impl Desk {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, job: Job) {
        let mut line = self.line();
        if let Some(why) = line.closed.clone() {
            drop(line);
            return refuse(vec![job], &why);
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

    /// Refuses the jobs that are there and all that come.
    fn close(&self, why: LedgerError) {
        let mut line = self.line();
        let left = std::mem::take(&mut line.jobs);
        let why = line.closed.get_or_insert(why).clone();
        drop(line);
        refuse(left, &why);
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

/// Tells jobs that nothing of them is begun.
fn refuse(jobs: Vec<Job>, why: &LedgerError) {
    for job in jobs {
        job(Err(why.clone()))(Ok(()));
    }
}

fn gone() -> LedgerError {
    LedgerCode::CommitUncertain.refuse("the writer is gone")
}

/// Closes the desk when its writer ends, however it ends.
struct Serving(Arc<Desk>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.close(gone());
    }
}

fn serve(mut ledger: Ledger, desk: &Desk) -> Result<(), LedgerError> {
    let mut last = Joined::default();
    while desk.wait() {
        let begun = Instant::now();
        let mut told = Vec::new();
        let committed = ledger.write(|w| {
            join(desk, &last, begun, |job| told.push(job(Ok(w))));
            Ok(())
        });
        last = Joined {
            writes: told.len(),
            took: begun.elapsed(),
        };
        // Nothing was begun: there was no transaction to do it in.
        if let Err(why) = &committed
            && told.is_empty()
        {
            refuse(desk.take(usize::MAX, 0, begun), why);
        }
        for tell in told {
            tell(committed.clone());
        }
        if ledger.poisoned {
            ledger = ledger.reopen().inspect_err(|why| desk.close(why.clone()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_a_writer_that_cannot_go_on_is_told_why() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let mut ledger = Ledger::open(&state).unwrap();
        let lost = state.join(Ledger::ANCHOR);
        let kept = state.join("kept");
        // As after a commit that failed, on a disk that is broken for good.
        ledger.poisoned = true;
        std::fs::rename(&lost, &kept).unwrap();
        let (shared, writer) = Shared::start(ledger);
        let code = || shared.write(|_| Ok(())).unwrap_err().code;
        assert_eq!(code(), LedgerCode::CommitUncertain);
        for _ in 0..3 {
            assert_eq!(code(), LedgerCode::LedgerUnanchored);
        }
        drop(shared);
        let closed = writer.close().unwrap_err();
        assert_eq!(closed.code, LedgerCode::LedgerUnanchored);
        std::fs::rename(kept, lost).unwrap();
        Ledger::open(&state).unwrap().check().unwrap();
    }
}
