use crate::admit::PATIENCE;
use crate::claim::{Left, Note};
use crate::git::Verb;
use crate::objects::Objects;
use crate::protocol::{Facts, Files, NewIndex, Place, Ruling, decide};
use crate::{Git, Host, ImportError, ImporterCode, Receipt, signature};
use flightproof_archive as archive;
use flightproof_core::{Code as _, CommitId, Refusal, escape};
use flightproof_ledger::{Admission, AdmissionKey, Ledger, LedgerCode, State};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// An admission whose run ended before it could say how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// What it was about.
    pub key: AdmissionKey,
    /// How it turned out.
    pub outcome: Outcome,
    /// The receipt, where the branch had moved.
    pub receipt: Option<Vec<u8>>,
    /// A lock file beside the branch. A killed git leaves one; it is never removed here, since it
    /// may belong to a git that runs.
    pub lock_left: Option<PathBuf>,
    /// The working tree it was about to change, if it was one.
    pub tree: Option<String>,
    /// Files that are not ours to throw away, and where they lie now, below the working tree.
    pub kept: Vec<String>,
    /// What a person must look at.
    pub look: Option<String>,
}

/// How an interrupted admission turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The branch is at the head.
    Applied,
    /// The branch went on from the head.
    AppliedThenMoved,
    /// The branch is at the baseline: nothing happened, and the commit may be asked in again.
    NotApplied,
    /// The same, and files had been changed: they are as before.
    Interrupted,
    /// The branch is somewhere the head does not lead to.
    Superseded,
    /// The branch is gone, or its commit cannot be read, or the files are somebody's business: what
    /// a person must look at says which.
    Unknown,
    /// The repository cannot be opened or read now, or is another one, or a run of it is alive: what a
    /// person must look at says which. The intent stays open.
    Unreachable,
}

impl Outcome {
    fn state(self) -> State {
        match self {
            Self::Applied | Self::AppliedThenMoved => State::Applied,
            Self::NotApplied | Self::Interrupted => State::NotApplied,
            Self::Superseded => State::Superseded,
            Self::Unknown | Self::Unreachable => State::Unknown,
        }
    }

    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::AppliedThenMoved => "applied_then_moved",
            Self::NotApplied => "not_applied",
            Self::Interrupted => "interrupted",
            Self::Superseded => "superseded",
            Self::Unknown => "unknown",
            Self::Unreachable => "unreachable",
        }
    }
}

/// Judges every open intent by what its branch says now, brings the working tree it was about to the
/// same side, and writes the outcome down. Branches are only read. A second run finds nothing left
/// to judge. One repository that cannot be judged keeps no other from it.
///
/// # Errors
/// What the ledger refuses.
pub fn recover(git: &Git, ledger: &mut Ledger, now: u64) -> Result<Vec<Recovered>, Refusal> {
    let _lock = ledger.lock_admissions(PATIENCE)?;
    let mut all = Vec::new();
    let mut unreachable: BTreeMap<String, String> = BTreeMap::new();
    for admission in ledger.open_intents()? {
        let repository = &admission.key.repository;
        // Dealt with beside an earlier one of the same repository.
        if !ledger
            .open_intents()?
            .iter()
            .any(|open| open.id == admission.id)
        {
            continue;
        }
        let why = match unreachable.get(repository) {
            Some(why) => why.clone(),
            None => {
                let found = match Host::open(git, Path::new(repository)) {
                    // Its intents are written down under that name, and this is none of them.
                    Ok(host) if host.name() != repository => Err(ImporterCode::NotARepository
                        .refuse(format!("it is now {}", escape(host.name(), 300)))
                        .into()),
                    Ok(host) => recover_host(git, &host, ledger, now),
                    Err(e) => Err(e.into()),
                };
                match found {
                    Ok(found) => {
                        all.extend(found);
                        continue;
                    }
                    // Without the ledger nobody can be judged.
                    Err(e) if is_of_ledger(&e) => return Err(e),
                    Err(e) => format!("{}: {}", e.code(), e.detail),
                }
            }
        };
        all.push(Recovered {
            look: Some(why.clone()),
            ..Recovered::new(&admission.key, Outcome::Unreachable)
        });
        unreachable.insert(repository.clone(), why);
    }
    Ok(all)
}

fn is_of_ledger(refusal: &Refusal) -> bool {
    let mut codes = LedgerCode::ALL.iter();
    codes.any(|code| code.explanation() == refusal.explanation)
}

/// As [`recover()`], for one repository and all its working trees, those without an open intent too.
///
/// # Errors
/// As [`recover()`]; `IMPORT_UNFINISHED` for a claim that cannot be read or whose run is alive.
pub fn recover_repository(
    git: &Git,
    host: &Host,
    ledger: &mut Ledger,
    now: u64,
) -> Result<Vec<Recovered>, Refusal> {
    let _lock = ledger.lock_admissions(PATIENCE)?;
    recover_host(git, host, ledger, now)
}

fn recover_host(
    git: &Git,
    host: &Host,
    ledger: &mut Ledger,
    now: u64,
) -> Result<Vec<Recovered>, Refusal> {
    let user = rustix::process::geteuid().as_raw();
    let mut all = Vec::new();
    for git_dir in host.git_dirs()? {
        let Some(left) = Left::find(&git_dir, user)? else {
            continue;
        };
        let bench = Bench {
            git,
            host,
            git_dir: &git_dir,
            now,
        };
        all.extend(bench.recover_tree(left, ledger)?);
    }
    for admission in ledger.open_intents()? {
        // What a tree's claim left undecided stays open.
        let undecided = all.iter().any(|found| found.key == admission.key);
        if admission.key.repository == host.name() && !undecided {
            let tip = host.tip(git, &admission.key.branch)?;
            let facts = Facts {
                place: look(git, host, &admission.key, tip)?,
                swapping: false,
                here: false,
            };
            let mut recovered = Recovered::new(&admission.key, decide(facts).outcome);
            recovered.look = why_unknown(recovered.outcome, facts).map(str::to_owned);
            settle((git, host), ledger, &admission, &mut recovered, (tip, now))?;
            all.push(recovered);
        }
    }
    Ok(all)
}

impl Recovered {
    fn new(key: &AdmissionKey, outcome: Outcome) -> Self {
        Self {
            key: key.clone(),
            outcome,
            receipt: None,
            lock_left: None,
            tree: None,
            kept: Vec::new(),
            look: None,
        }
    }
}

/// A working tree that an import was cut off in.
struct Bench<'a> {
    git: &'a Git,
    host: &'a Host,
    git_dir: &'a Path,
    now: u64,
}

impl Bench<'_> {
    fn recover_tree(&self, left: Left, ledger: &mut Ledger) -> Result<Option<Recovered>, Refusal> {
        let Some(note) = &left.note else {
            // Without a note nothing was begun.
            left.claim.give_back()?;
            return Ok(None);
        };
        let key = AdmissionKey {
            repository: self.host.name().to_owned(),
            branch: note.branch.clone(),
            baseline: note.baseline,
            head: note.head,
        };
        let Some(there) = self.tree_of(note) else {
            return Ok(Some(self.not_found(note, &key)));
        };
        let tip = self.host.tip(self.git, &key.branch)?;
        let facts = self.facts(note, &key, tip, &there)?;
        let ruling = self.rule(&left, facts);
        let open = ledger.open_intents()?;
        let open = open.iter().find(|admission| admission.key == key);
        let mut recovered = Recovered::new(&key, ruling.outcome);
        recovered.tree = Some(note.top.clone());
        if ruling.is_final() {
            recovered.kept = mend(&left, note, there.top()?, ruling)?;
            recovered.look = index_left(&left, ruling);
        } else {
            recovered.look = Some(self.what_lies_there(Path::new(&note.top)));
        }
        if let Some(why) = why_unknown(ruling.outcome, facts) {
            let look = recovered.look.take().map(|look| format!("; {look}"));
            recovered.look = Some(format!("{why}{}", look.unwrap_or_default()));
        }
        if let Some(admission) = open {
            settle(
                (self.git, self.host),
                ledger,
                admission,
                &mut recovered,
                (tip, self.now),
            )?;
        }
        let silent = open.is_none() && !facts.swapping;
        if ruling.is_final() {
            left.claim.give_back()?;
        }
        // It had been settled, or had not come to its intent.
        Ok((!silent).then_some(recovered))
    }

    /// The working tree that a note names, if it is the one of this git folder. Where the repository was
    /// moved or copied, what lies in the tree it was in says nothing about this one.
    fn tree_of(&self, note: &Note) -> Option<Host> {
        let there = Host::open(self.git, Path::new(&note.top)).ok()?;
        let same = there.git_dir() == self.git_dir && there.top().is_ok();
        same.then_some(there)
    }

    /// The files cannot be judged, so nothing is: the claim and an open intent stay.
    fn not_found(&self, note: &Note, key: &AdmissionKey) -> Recovered {
        let look = format!(
            "files may be half changed and nothing was touched: the import was in {}, which is not the \
             working tree of {}; move it back there and recover again, or put its files right by hand \
             and remove {} and the tree's .prime-agent-staging-apply",
            escape(&note.top, 300),
            shown(self.git_dir),
            shown(&self.git_dir.join("flightproof-import"))
        );
        Recovered {
            tree: Some(note.top.clone()),
            look: Some(look),
            ..Recovered::new(key, Outcome::Unknown)
        }
    }

    fn facts(
        &self,
        note: &Note,
        key: &AdmissionKey,
        tip: Option<CommitId>,
        there: &Host,
    ) -> Result<Facts, Refusal> {
        let swapping = match archive::pending(there.top()?)? {
            None => false,
            Some((changeset, sealed)) if sealed && changeset == note.changeset => true,
            Some(_) => {
                return Err(ImporterCode::ImportUnfinished
                    .refuse(format!(
                        "{}: something else was being applied there",
                        escape(&note.top, 300)
                    ))
                    .into());
            }
        };
        Ok(Facts {
            place: look(self.git, self.host, key, tip)?,
            swapping,
            here: there.is_on(&key.branch)?,
        })
    }

    /// A lock file that is not a whole index is no index to install.
    fn rule(&self, left: &Left, facts: Facts) -> Ruling {
        let ruling = decide(facts);
        if ruling.index == NewIndex::Install && !left.claim.has_whole_index() {
            return Ruling {
                index: NewIndex::Discard,
                ..ruling
            };
        }
        ruling
    }

    fn what_lies_there(&self, top: &Path) -> String {
        format!(
            "files may be half changed and are left alone: the other half of each lies in {}; \
             when all is as it should be, remove that folder and {}",
            shown(&top.join(".prime-agent-staging-apply/slots")),
            shown(&self.git_dir.join("flightproof-import"))
        )
    }
}

/// Brings index and files to the side the branch is on.
fn mend(left: &Left, note: &Note, top: &Path, ruling: Ruling) -> Result<Vec<String>, Refusal> {
    if ruling.index == NewIndex::Install {
        left.claim.install_index()?;
    }
    // Where there is no plan, new files that were staged for one go.
    let counts = match ruling.files {
        Files::Leave => ruling.outcome.state() == State::Applied,
        Files::RollBack => false,
        Files::Finish => true,
    };
    let recovered = archive::recover_sealed(top, note.changeset, counts)?;
    let kept = recovered.kept().iter();
    Ok(kept.map(|kept| kept.at.clone()).collect())
}

/// What keeps an outcome from being known.
fn why_unknown(outcome: Outcome, facts: Facts) -> Option<&'static str> {
    let why = match facts.place {
        Place::Gone => "the branch is gone or cannot be read",
        _ => "the working tree is on another branch",
    };
    (outcome == Outcome::Unknown).then_some(why)
}

/// Said where the index is somebody else's, or whose its lock is cannot be known.
fn index_left(left: &Left, ruling: Ruling) -> Option<String> {
    let moved = ruling.outcome.state() == State::Applied;
    let written = (moved && !left.claim.has_own_index()).then_some(
        "the index was written by another git meanwhile: look at `git status`, and run \
         `git reset` if it shows the commit's changes as staged the other way",
    );
    let locked = left
        .claim
        .has_unknown_lock()
        .then_some("index.lock is not known as ours: remove it if no git runs");
    let said: Vec<&str> = locked.into_iter().chain(written).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn settle(
    (git, host): (&Git, &Host),
    ledger: &mut Ledger,
    admission: &Admission,
    recovered: &mut Recovered,
    (tip, now): (Option<CommitId>, u64),
) -> Result<(), Refusal> {
    recovered.receipt = write_receipt((git, host), admission, recovered.outcome, tip, now)?;
    recovered.lock_left = host.lock_of(&admission.key.branch);
    let state = recovered.outcome.state();
    Ok(ledger.settle(admission.id, state, recovered.receipt.as_deref(), now)?)
}

fn look(
    git: &Git,
    host: &Host,
    key: &AdmissionKey,
    tip: Option<CommitId>,
) -> Result<Place, ImportError> {
    match tip {
        None => Ok(Place::Gone),
        Some(tip) if tip == key.baseline => Ok(Place::Baseline),
        Some(tip) if tip == key.head => Ok(Place::Head),
        Some(tip) if descends(git, host, key.head, tip)? => Ok(Place::BeyondHead),
        Some(_) => Ok(Place::Elsewhere),
    }
}

fn descends(git: &Git, host: &Host, from: CommitId, to: CommitId) -> Result<bool, ImportError> {
    let (from, to) = (from.to_string(), to.to_string());
    let words = ["--is-ancestor", &from, &to].map(OsStr::new);
    let answer = git.ask(Verb::MergeBase, host.place(), &words)?;
    match answer.code {
        0 => Ok(true),
        1 => Ok(false),
        _ => Err(ImporterCode::GitFailed.refuse(answer.complaint)),
    }
}

fn write_receipt(
    (git, host): (&Git, &Host),
    admission: &Admission,
    outcome: Outcome,
    tip: Option<CommitId>,
    now: u64,
) -> Result<Option<Vec<u8>>, ImportError> {
    if outcome.state() != State::Applied {
        return Ok(None);
    }
    // The run that died may not have come to this.
    host.sync_branch(&admission.key.branch)?;
    let mut objects = Objects::open(git, host.place())?;
    let receipt = Receipt {
        recovered: true,
        unsigned: signature::unsigned_of(&mut objects, admission.key.head)?,
        moved_on_to: tip.filter(|_| outcome == Outcome::AppliedThenMoved),
        ..Receipt::new(&admission.key, admission.certificate, now)
    };
    receipt.bytes().map(Some)
}

fn shown(path: &Path) -> String {
    escape(path.to_string_lossy().as_ref(), 300)
}
