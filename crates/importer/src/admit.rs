use crate::git::Verb;
use crate::talk::{Cap, Talk};
use crate::{Clearance, Git, Host, ImportError, ImporterCode, Receipt, clearance, install};
use flightproof_core::{CommitId, Digest, Refusal};
use flightproof_ledger::{AdmissionId, AdmissionKey, AdmissionLock, Intended, Ledger, State};
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::time::Duration;

/// A commit that is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The receipt, canonical JSON of a [`Receipt`].
    pub receipt: Vec<u8>,
    /// The same request was admitted before; this is its receipt and nothing was done now.
    pub repeated: bool,
}

/// How long to wait for another admission or recovery: one takes well under a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Moves the branch of a clearance from baseline to head, in one step or not at all.
///
/// First the commit's objects are read again, hashed, and handed to git as a pack of our own, under
/// its strict check: whoever swapped or removed one since the capture is noticed here, and a branch
/// never points at what is not on disk. Until the branch moves nothing refers to that pack.
///
/// The intent is on disk before the branch is touched, the receipt after it moved. A run that dies
/// in between leaves an open intent, which [`recover`](crate::recover()) judges from the branch.
///
/// # Errors
/// Before anything is written: `BRANCH_MISSING`, `BRANCH_MOVED`, `BRANCH_UNFIT`,
/// `BRANCH_CHECKED_OUT`, `HOST_FOREIGN`, `HOST_HOOKS`, `OBJECT_MISSING`, `OBJECT_HASH_MISMATCH`,
/// `SECOND_OPINION`, and what the ledger refuses. After the
/// intent: `BRANCH_MOVED`, `BRANCH_LOCKED` (nothing moved), or `ADMISSION_UNCERTAIN`.
pub fn admit(
    git: &Git,
    host: &Host,
    ledger: &mut Ledger,
    clearance: &Clearance,
    now: u64,
) -> Result<Admitted, Refusal> {
    let lock = ledger.lock_admissions(PATIENCE)?;
    let key = clearance.key(host);
    if ledger.earlier(&key, clearance.certificate())?.is_none() {
        check_before(git, host, &key)?;
        install::install(git, host, &key, clearance.pack())?;
    }
    match ledger.intend(&key, clearance.certificate(), now)? {
        Intended::AlreadyApplied(receipt) => Ok(Admitted {
            receipt,
            repeated: true,
        }),
        Intended::Journaled(id) => {
            let moving = Moving {
                git,
                host,
                key: &key,
                lock: &lock,
                certificate: clearance.certificate(),
            };
            moving.run(ledger, id, now)
        }
    }
}

/// Refuses an admission that would be refused, before any work is done for it. [`admit`] asks all of
/// it again.
///
/// # Errors
/// `BRANCH_NAME`, and those of [`admit`] before anything is written.
pub fn check_open(
    git: &Git,
    host: &Host,
    branch: &str,
    (baseline, head): (CommitId, CommitId),
) -> Result<(), ImportError> {
    let branch = clearance::full_name(branch)?;
    let key = AdmissionKey {
        repository: host.name().to_owned(),
        branch,
        baseline,
        head,
    };
    check_before(git, host, &key)
}

fn check_before(git: &Git, host: &Host, key: &AdmissionKey) -> Result<(), ImportError> {
    host.check_owner(rustix::process::geteuid().as_raw())?;
    host.check_hooks(git)?;
    check_at_baseline(git, host, key)?;
    host.check_plain(&key.branch)?;
    host.check_idle(&key.branch)
}

fn check_at_baseline(git: &Git, host: &Host, key: &AdmissionKey) -> Result<(), ImportError> {
    match host.tip(git, &key.branch)? {
        Some(tip) if tip == key.baseline => Ok(()),
        Some(tip) => Err(ImporterCode::BranchMoved.refuse(format!(
            "{} is at {tip}, expected {}",
            key.branch, key.baseline
        ))),
        None => Err(ImporterCode::BranchMissing.refuse(&key.branch)),
    }
}

/// An admission whose intent is on disk.
struct Moving<'a> {
    git: &'a Git,
    host: &'a Host,
    key: &'a AdmissionKey,
    lock: &'a AdmissionLock,
    certificate: Digest,
}

impl Moving<'_> {
    fn run(&self, ledger: &mut Ledger, id: AdmissionId, now: u64) -> Result<Admitted, Refusal> {
        match self.move_branch() {
            Ok(()) => {}
            Err(refused) if self.is_still_at_baseline() => {
                ledger.settle(id, State::NotApplied, None, now)?;
                return Err(refused.into());
            }
            Err(refused) if refused.code == ImporterCode::BranchMoved => {
                ledger.settle(id, State::NotApplied, None, now)?;
                return Err(refused.into());
            }
            // The intent stays open for the recovery.
            Err(refused) => return Err(ImporterCode::AdmissionUncertain.refuse(refused).into()),
        }
        let receipt = Receipt::new(self.key, self.certificate, now).bytes()?;
        ledger.settle(id, State::Applied, Some(&receipt), now)?;
        Ok(Admitted {
            receipt,
            repeated: false,
        })
    }

    /// No git of ours runs any more when this is asked.
    fn is_still_at_baseline(&self) -> bool {
        let tip = self.host.tip(self.git, &self.key.branch);
        tip.is_ok_and(|tip| tip == Some(self.key.baseline))
    }

    /// The compare-and-swap. `BRANCH_MOVED` means that the swap was refused by git.
    fn move_branch(&self) -> Result<(), ImportError> {
        let mut talk = self.prepare()?;
        // Git holds the branch's lock now. What was checked before is checked once more.
        let checked = self.host.check_plain(&self.key.branch);
        if let Err(refused) = checked.and_then(|()| self.host.check_idle(&self.key.branch)) {
            // The end of the input makes git let go of its lock.
            talk.finish(SILENCE)?;
            return Err(refused);
        }
        talk.send(b"commit\n")?;
        expect(&mut talk, b"commit: ok")?;
        let answer = talk.finish(SILENCE)?;
        if answer.code != 0 {
            return Err(ImporterCode::GitFailed.refuse(answer.complaint));
        }
        self.host.sync_branch(&self.key.branch)
    }

    fn prepare(&self) -> Result<Talk, ImportError> {
        let reason = format!("flightproof: certificate {}", self.certificate);
        let words = ["-m", &reason, "--no-deref", "--stdin"].map(OsStr::new);
        let mut talk = self.git.talk_holding(
            Verb::UpdateRef,
            self.host.place(),
            &words,
            self.lock.as_fd(),
        )?;
        let AdmissionKey {
            branch,
            head,
            baseline,
            ..
        } = self.key;
        let order = format!("start\nupdate {branch} {head} {baseline}\nprepare\n");
        let prepared = talk
            .send(order.as_bytes())
            .and_then(|()| expect(&mut talk, b"start: ok"))
            .and_then(|()| expect(&mut talk, b"prepare: ok"));
        match prepared {
            Ok(()) => Ok(talk),
            Err(refused) => {
                drop(talk);
                check_at_baseline(self.git, self.host, self.key)?;
                Err(ImporterCode::BranchLocked.refuse(refused.detail))
            }
        }
    }
}

/// What git prints after a transaction.
const SILENCE: Cap = Cap {
    bytes: 0,
    code: ImporterCode::GitFailed,
};

fn expect(talk: &mut Talk, wanted: &[u8]) -> Result<(), ImportError> {
    let line = talk.line()?;
    if line == wanted {
        return Ok(());
    }
    Err(ImporterCode::GitFailed.refuse(format!("git said {}", flightproof_core::escape(line, 80))))
}
