//! One writer for many threads: what they ask for at the same time becomes one commit.

use crate::{Ledger, LedgerCode, LedgerError, Writing};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A ledger whose one writer is a thread. Clones are handles of the same.
#[derive(Clone, Debug)]
pub struct Shared {
    jobs: Sender<Job>,
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
        let (jobs, queue) = channel();
        let thread = std::thread::spawn(move || serve(ledger, &queue));
        (Self { jobs }, Writer { thread })
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
        let (tell, told) = channel();
        let job: Job = Box::new(move |w| {
            let answer = w.attempt(change);
            Box::new(move |committed| {
                let _ = tell.send(committed.and(answer));
            })
        });
        let gone = || LedgerCode::CommitUncertain.refuse("the writer is gone");
        self.jobs.send(job).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())?
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

fn serve(mut ledger: Ledger, queue: &Receiver<Job>) -> Result<(), LedgerError> {
    while let Ok(first) = queue.recv() {
        let jobs = std::iter::once(first).chain(queue.try_iter().take(MOST_JOINED - 1));
        let mut told = Vec::new();
        let committed = ledger.write(|w| {
            told.extend(jobs.map(|job| job(w)));
            Ok(())
        });
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

/// Most writes of one commit: none waits for more than this many others.
const MOST_JOINED: usize = 64;
