use crate::git::Verb;
use crate::subject::changes_of;
use crate::talk::{Cap, Talk};
use crate::worktree::Worktree;
use crate::{Clearance, Git, Host, ImportError, ImporterCode, Receipt, clearance, install, land};
use flightproof_core::{Code as _, CommitId, Digest, Refusal};
use flightproof_ledger::{AdmissionId, AdmissionKey, AdmissionLock, Intended, Ledger, State};
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

/// A commit that is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The receipt, canonical JSON of a [`Receipt`].
    pub receipt: Vec<u8>,
    /// The same request was admitted before; this is its receipt and nothing was done now.
    pub repeated: bool,
    /// The files and the index of the working tree moved along.
    pub landed: bool,
    /// Old files that somebody wrote to while they were replaced. Their bytes lie here, below the
    /// working tree.
    pub kept: Vec<String>,
}

/// How long to wait for another admission or recovery: one takes well under a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Moves the branch of a clearance from baseline to head, in one step or not at all.
///
/// First the commit's objects are read again, hashed, and handed to git as a pack of our own, under
/// its strict check: whoever swapped or removed one since the capture is noticed here, and a branch
/// never points at what is not on disk. Until the branch moves nothing refers to that pack.
///
/// If the working tree the host was opened at is on the branch, its files and its index move along:
/// all of them or none. A branch that another working tree is on is refused.
///
/// The intent is on disk before the branch is touched, the receipt after it moved. A run that dies
/// in between leaves an open intent, which [`recover`](crate::recover()) judges from the branch.
///
/// # Errors
/// Before anything is written: `ADMITTED_BEFORE`, `BRANCH_MISSING`, `BRANCH_MOVED`, `BRANCH_UNFIT`,
/// `BRANCH_CHECKED_OUT`, `HOST_FOREIGN`, `HOST_HOOKS`, `HOST_UNSUPPORTED`, `OBJECT_MISSING`,
/// `OBJECT_HASH_MISMATCH`, `SECOND_OPINION`, `WORKTREE_BUSY`, `SOURCE_CHANGED`, `INDEX_LOCKED`,
/// `IMPORT_UNFINISHED`, and what the ledger refuses. After the intent, with everything as it was:
/// `BRANCH_MOVED`, `BRANCH_LOCKED`, `SOURCE_CHANGED`, a lost lease, the system's; or
/// `ADMISSION_UNCERTAIN`.
pub fn admit(
    git: &Git,
    host: &Host,
    ledger: &mut Ledger,
    clearance: &Clearance,
    now: u64,
) -> Result<Admitted, Refusal> {
    let lock = ledger.lock_admissions(PATIENCE)?;
    let key = clearance.key(host);
    let moving = Moving {
        git,
        host,
        key: &key,
        lock: &lock,
        clearance,
        now,
        here: host.is_on(&key.branch)?,
    };
    if let Some(receipt) = ledger.earlier(&key, clearance.certificate())? {
        return moving.repeat(receipt);
    }
    check_before(git, host, &key)?;
    clearance.check_lease(ledger)?;
    if moving.here {
        return land::land(&moving, ledger);
    }
    install::install(git, host, &key, clearance.pack())?;
    match ledger.intend(&key, clearance.certificate(), now)? {
        Intended::AlreadyApplied(receipt) => moving.repeat(receipt),
        Intended::Journaled(id) => moving.run(ledger, id),
    }
}

/// Refuses an admission that would be refused, before any work is done for it: also one that the working
/// tree on the branch could not take as it is now. [`admit`] asks all of it again. `scratch` is an empty
/// folder.
///
/// # Errors
/// `BRANCH_NAME`, and those of [`admit`] before anything is written.
pub fn check_open(
    git: &Git,
    host: &Host,
    branch: &str,
    (baseline, head): (CommitId, CommitId),
    scratch: &Path,
) -> Result<(), Refusal> {
    let branch = clearance::full_name(branch)?;
    let key = AdmissionKey {
        repository: host.name().to_owned(),
        branch,
        baseline,
        head,
    };
    check_before(git, host, &key)?;
    if !host.is_on(&key.branch)? {
        return Ok(());
    }
    Worktree::open(host, rustix::process::geteuid().as_raw())?;
    match changes_of(git, host, (baseline, head), scratch) {
        Ok(changes) => land::check(git, host, baseline, &changes, scratch),
        // What is wrong with the commit is said where it is judged.
        Err(_) => Ok(()),
    }
}

/// As [`check_open`], for a certificate that may have been admitted before: then the branch must be
/// where that left it.
///
/// # Errors
/// As [`check_open`]; `ADMITTED_BEFORE`; what the ledger refuses.
pub fn check_open_or_in(
    git: &Git,
    host: &Host,
    ledger: &Ledger,
    certificate: Digest,
    branch: &str,
    (baseline, head): (CommitId, CommitId),
    scratch: &Path,
) -> Result<(), Refusal> {
    let key = AdmissionKey {
        repository: host.name().to_owned(),
        branch: clearance::full_name(branch)?,
        baseline,
        head,
    };
    match ledger.earlier(&key, certificate)? {
        Some(_) => Ok(check_in(git, host, &key)?),
        None => check_open(git, host, branch, (baseline, head), scratch),
    }
}

/// A receipt says what happened once, and not what is there now.
fn check_in(git: &Git, host: &Host, key: &AdmissionKey) -> Result<(), ImportError> {
    let AdmissionKey { branch, head, .. } = key;
    let found = match host.tip(git, branch)? {
        Some(tip) if tip == *head => return Ok(()),
        Some(tip) => format!("is at {tip} now"),
        None => "is not there now".to_owned(),
    };
    let detail = format!("{branch} was moved to {head} before, and {found}");
    Err(ImporterCode::AdmittedBefore.refuse(detail))
}

fn check_before(git: &Git, host: &Host, key: &AdmissionKey) -> Result<(), ImportError> {
    host.check_owner(rustix::process::geteuid().as_raw())?;
    host.check_hooks(git)?;
    host.check_plain(&key.branch)?;
    check_at_baseline(git, host, key)?;
    host.check_idle(&key.branch, host.is_on(&key.branch)?)
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

/// A branch that is about to move.
pub(crate) struct Moving<'a> {
    pub(crate) git: &'a Git,
    pub(crate) host: &'a Host,
    pub(crate) key: &'a AdmissionKey,
    lock: &'a AdmissionLock,
    pub(crate) clearance: &'a Clearance,
    pub(crate) now: u64,
    /// The working tree the host was opened at is on the branch.
    here: bool,
}

impl Moving<'_> {
    /// Answers a request that was admitted before, if the branch still is where that left it.
    pub(crate) fn repeat(&self, receipt: Vec<u8>) -> Result<Admitted, Refusal> {
        check_in(self.git, self.host, self.key)?;
        Ok(Admitted {
            receipt,
            repeated: true,
            landed: false,
            kept: Vec::new(),
        })
    }

    /// Moves a branch that no working tree is on. The intent is on disk.
    fn run(&self, ledger: &mut Ledger, id: AdmissionId) -> Result<Admitted, Refusal> {
        match self.move_branch(ledger) {
            Ok(()) => {}
            Err(refused) if self.is_still_at_baseline() || went_elsewhere(&refused) => {
                ledger.settle(id, State::NotApplied, None, self.now)?;
                return Err(refused);
            }
            // The intent stays open for the recovery.
            Err(refused) => return Err(ImporterCode::AdmissionUncertain.refuse(refused).into()),
        }
        let receipt = self.receipt().bytes()?;
        ledger.settle(id, State::Applied, Some(&receipt), self.now)?;
        Ok(Admitted {
            receipt,
            repeated: false,
            landed: false,
            kept: Vec::new(),
        })
    }

    pub(crate) fn receipt(&self) -> Receipt {
        Receipt {
            unsigned: self.clearance.unsigned(),
            ..Receipt::new(self.key, self.clearance.certificate(), self.now)
        }
    }

    /// No git of ours runs any more when this is asked.
    pub(crate) fn is_still_at_baseline(&self) -> bool {
        let tip = self.host.tip(self.git, &self.key.branch);
        tip.is_ok_and(|tip| tip == Some(self.key.baseline))
    }

    /// The compare-and-swap. `BRANCH_MOVED` means that the swap was refused by git.
    fn move_branch(&self, ledger: &Ledger) -> Result<(), Refusal> {
        let talk = self.prepare()?;
        if let Err(lost) = self.clearance.check_lease(ledger) {
            talk.finish(SILENCE)?;
            return Err(lost.into());
        }
        Ok(self.commit(talk)?)
    }

    /// Tells a git that holds the locks to move the branch, and waits until it is on the disk.
    pub(crate) fn commit(&self, mut talk: Talk) -> Result<(), ImportError> {
        talk.send(b"commit\n")?;
        expect(&mut talk, b"commit: ok")?;
        let answer = talk.finish(SILENCE)?;
        if answer.code != 0 {
            return Err(ImporterCode::GitFailed.refuse(answer.complaint));
        }
        self.host.sync_branch(&self.key.branch)
    }

    /// A git that holds the lock of the branch. What was checked before is checked once more.
    pub(crate) fn prepare(&self) -> Result<Talk, ImportError> {
        let talk = self.lock()?;
        let branch = &self.key.branch;
        let checked = self
            .host
            .check_plain(branch)
            .and_then(|()| self.host.check_idle(branch, self.here))
            .and_then(|()| match self.host.is_on(branch)? == self.here {
                true => Ok(()),
                false => Err(ImporterCode::BranchCheckedOut
                    .refuse(format!("the working tree was switched to or from {branch}"))),
            });
        match checked {
            Ok(()) => Ok(talk),
            Err(refused) => {
                // The end of the input makes git let go of its lock.
                talk.finish(SILENCE)?;
                Err(refused)
            }
        }
    }

    fn lock(&self) -> Result<Talk, ImportError> {
        let reason = match self.clearance.certificate() {
            none if none == flightproof_ledger::uncertified() => {
                "flightproof: uncertified".to_owned()
            }
            certificate => format!("flightproof: certificate {certificate}"),
        };
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

/// Git refused to move the branch, since it is not where it should be.
pub(crate) fn went_elsewhere(refused: &Refusal) -> bool {
    refused.code() == ImporterCode::BranchMoved.explanation().code
}

/// What git prints after a transaction.
pub(crate) const SILENCE: Cap = Cap {
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
