//! Applying a changeset to a directory: all of it or nothing, and nothing that others wrote is lost.
//!
//! The new files are staged and verified beside the tree first, and the plan is written down. Then
//! each file is swapped by one rename, and what came out is looked at again: if somebody edited it
//! in between, everything is swapped back. [`protocol`] has the order, [`site`] the acts.

mod check;
mod content;
mod journal;
mod protocol;
#[doc(hidden)]
pub mod rehearsal;
mod site;
mod staging;

use crate::beneath::{self, Umask, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::format::Format;
use crate::header::Layout;
use crate::paws::{self, Change, Changeset, Entry};
use crate::payload::{self, Stored};
use crate::progress::Progress;
use crate::source::Source;
use flightproof_core::{Digest, RelPath};
use journal::Journal;
use protocol::{Act, Event, Outcome, State, decide};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use site::Site;
use staging::{Slots, Staging};
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// What was done to a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What was applied.
    pub changeset: Changeset,
    /// Files that are new.
    pub added: u64,
    /// Files with other bytes or another mode.
    pub changed: u64,
    /// Files that are gone.
    pub deleted: u64,
    /// What was found of an earlier application and dealt with first.
    pub recovered: Recovered,
    /// Old files that somebody wrote to after the last look. Their bytes are here, not in the tree.
    pub kept: Vec<Kept>,
    /// The tree is the new one, but staging could not be removed, for this reason. Recovery does it.
    pub untidy: Option<ArchiveError>,
}

/// What recovery found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing was left of an earlier application, or nothing that had touched the tree.
    Nothing,
    /// An application had been cut off before it counted: the tree is as it was before.
    RolledBack {
        /// Which.
        changeset_id: Digest,
        /// What could not stay in the tree and is not ours to throw away.
        kept: Vec<Kept>,
    },
    /// An application had been cut off when it counted already: it was tidied up.
    Finished {
        /// Which.
        changeset_id: Digest,
        /// Old files that somebody wrote to after the last look.
        kept: Vec<Kept>,
    },
}

impl Recovered {
    /// What was kept of it.
    pub fn kept(&self) -> &[Kept] {
        match self {
            Self::Nothing => &[],
            Self::RolledBack { kept, .. } | Self::Finished { kept, .. } => kept,
        }
    }
}

/// A file that was kept for whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where it lay in the tree.
    pub path: RelPath,
    /// Where it lies now, below the root: `.prime-agent-staging-kept-…/` and its path.
    pub at: String,
}

impl Kept {
    /// What a refusal says of these files behind its own detail, so that nobody loses sight of one.
    pub fn told(kept: &[Self]) -> String {
        let told = kept.iter().map(|kept| {
            let at = crate::paws::shown(&kept.at);
            format!("; \"{}\" is kept as {at}", kept.path)
        });
        told.collect()
    }
}

/// Applies the changeset in the file `archive` to the tree below `dir`.
///
/// Verified before anything is touched: every byte of the archive; that each changed or deleted
/// file is a regular one with exactly the base's bytes; that nothing stands where a file is added,
/// ignored or not; that all parents are real directories on one file system; that no new name
/// collides with one that is there. Modes are exactly 0644 and 0755, new directories 0755, whatever
/// the umask and whatever access lists or set-group-id bit the tree hands down.
/// Directories that lose their last file are removed. No link is followed.
///
/// All of it happens or nothing. A file that is edited between the check and its swap is noticed,
/// and everything is swapped back. After a kill at any point, the next call for this directory or
/// [`recover`] finishes or rolls back first. Whoever reads the tree meanwhile sees each file old or
/// new, and may see a mixture.
///
/// Not noticed is a program that opened a file before its swap and writes to it only after the old
/// file is thrown away: it writes to a file without a name.
///
/// # Errors
/// What [`paws::verify`] refuses, a snapshot; names as [`crate::Names::Strict`] has them;
/// [`ArchiveCode::BaseMismatch`], [`ArchiveCode::AddedExists`], [`ArchiveCode::DestinationUnsafe`],
/// [`ArchiveCode::EditedMeanwhile`], [`ArchiveCode::ApplyBusy`]; the system's. The tree is then as it
/// was, except after [`ArchiveCode::ApplyUnfinished`].
pub fn apply(archive: &File, dir: &Path, progress: &dyn Progress) -> Result<Applied, ArchiveError> {
    let order = Order {
        look: Look::Always,
        progress,
        seal: None,
    };
    apply_watched(archive, dir, order, &mut |_| {})
}

/// Finishes or rolls back what an application that was cut off left in `dir`. Doing it twice does
/// nothing the second time.
///
/// # Errors
/// [`ArchiveCode::ApplyBusy`], [`ArchiveCode::JournalDamaged`], [`ArchiveCode::ApplyUnfinished`], a
/// staging directory that is not ours, the system's.
pub fn recover(dir: &Path) -> Result<Recovered, ArchiveError> {
    let locked = Locked::open(dir)?;
    recover_locked(locked.root(), By::Mark, &mut |_| {})
}

/// What makes the new tree count where the journal's own mark does not: something outside the tree,
/// such as a branch that moves to it.
pub trait Seal {
    /// Makes it count. Every swap is done and on the disk. A failure does not say that it does not
    /// count.
    ///
    /// # Errors
    /// Why it is not known to count.
    fn commit(&mut self) -> Result<(), String>;

    /// Makes sure that it does not count, after a commit that failed and before anything is taken
    /// back.
    ///
    /// # Errors
    /// It counts, or nobody can tell. Nothing is taken back then, and the journal stays.
    fn withdraw(&mut self) -> Result<(), String>;
}

/// As [`apply()`]; the new tree counts when `seal` says so. What a kill leaves behind is dealt with by
/// [`recover_sealed`] alone: whoever made the seal must say whether it was set.
///
/// # Errors
/// As [`apply()`].
pub fn apply_sealed(
    archive: &File,
    dir: &Path,
    progress: &dyn Progress,
    seal: &mut dyn Seal,
) -> Result<Applied, ArchiveError> {
    let order = Order {
        look: Look::Always,
        progress,
        seal: Some(seal),
    };
    apply_watched(archive, dir, order, &mut |_| {})
}

/// As [`recover`], for an application under a seal. `counts` says whether the seal was set.
///
/// # Errors
/// As [`recover`]; [`ArchiveCode::JournalDamaged`] if the journal is of another changeset, or of one
/// without a seal.
pub fn recover_sealed(
    dir: &Path,
    changeset_id: Digest,
    counts: bool,
) -> Result<Recovered, ArchiveError> {
    let locked = Locked::open(dir)?;
    let by = By::Seal {
        changeset_id,
        counts,
    };
    recover_locked(locked.root(), by, &mut |_| {})
}

/// The changeset of an application that was cut off in `dir` after it was recorded, and whether it
/// was under a seal.
///
/// # Errors
/// As [`recover`].
pub fn pending(dir: &Path) -> Result<Option<(Digest, bool)>, ArchiveError> {
    let locked = Locked::open(dir)?;
    let Some(dir) = Staging::find(locked.root())? else {
        return Ok(None);
    };
    let found = Journal::load(&dir)?;
    Ok(found.map(|(journal, _)| (journal.changeset_id, journal.sealed)))
}

/// Who says whether the new tree counts.
#[derive(Clone, Copy)]
enum By {
    Mark,
    Seal { changeset_id: Digest, counts: bool },
}

impl By {
    fn committed(self, journal: &Journal, dir: &OwnedFd) -> Result<bool, ArchiveError> {
        match self {
            Self::Mark if journal.sealed => Err(ArchiveCode::ApplyUnfinished
                .refuse("a branch decides whether it counts: run `flights import recover`")),
            Self::Mark => Journal::is_committed(dir),
            Self::Seal {
                changeset_id,
                counts,
            } if journal.sealed && journal.changeset_id == changeset_id => Ok(counts),
            Self::Seal { changeset_id, .. } => Err(ArchiveCode::JournalDamaged.refuse(
                format_args!("it is not that of changeset {changeset_id} under a seal"),
            )),
        }
    }
}

/// Whether what came out of the tree is looked at. There is no reason not to, except to show what
/// would be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Always,
    Never,
}

/// Is told each act before it is done.
type Watch<'a> = &'a mut dyn FnMut(Act);

fn apply_watched(
    archive: &File,
    dir: &Path,
    order: Order<'_>,
    watch: Watch<'_>,
) -> Result<Applied, ArchiveError> {
    let locked = Locked::open(dir)?;
    let root = locked.root();
    let recovered = recover_locked(root, By::Mark, watch)?;
    let payload = Payload::open(archive).map_err(|e| naming(e, recovered.kept()))?;
    let (Payload::Stored(_, changes) | Payload::Stream(_, changes)) = &payload;
    let changes = changes.clone();
    let done = check::names(&changes)
        .and_then(|()| check::tree(root, &changes))
        .and_then(|missing| carry_out(root, payload, &changes, missing, order, watch));
    if done.is_err() {
        discard_unrecorded(root);
    }
    let (untidy, kept) = done.map_err(|e| naming(e, recovered.kept()))?;
    Ok(Applied {
        untidy,
        kept,
        ..Applied::new(changes, recovered)
    })
}

/// The refusal with what was kept until then.
fn naming(mut refused: ArchiveError, kept: &[Kept]) -> ArchiveError {
    refused.detail.push_str(&Kept::told(kept));
    refused
}

struct Order<'a> {
    look: Look,
    progress: &'a dyn Progress,
    seal: Option<&'a mut dyn Seal>,
}

/// Stages, and does what the protocol says. Gives what was not tidied up, and what was kept.
fn carry_out(
    root: BorrowedFd<'_>,
    payload: Payload<'_>,
    changes: &Changeset,
    missing: Vec<RelPath>,
    order: Order<'_>,
    watch: Watch<'_>,
) -> Result<(Option<ArchiveError>, Vec<Kept>), ArchiveError> {
    let staging = Staging::create(root)?;
    let mut journal = stage(payload, changes, &staging, missing, order.progress)?;
    journal.sealed = order.seal.is_some();
    let mut site = Site::new(root, &staging, changes, journal, order.look);
    let (state, act) = State::begin(site.plan());
    let (outcome, fault) = drive(&mut site, order.seal, (state, act), watch);
    conclude(outcome, fault, &site.kept).map(|untidy| (untidy, site.kept))
}

impl Applied {
    fn new(changeset: Changeset, recovered: Recovered) -> Self {
        let count = |kind: fn(&Change) -> bool| {
            let changes = changeset.changes().iter();
            changes.filter(|change| kind(change)).count() as u64
        };
        Self {
            added: count(|change| matches!(change, Change::Add(_))),
            changed: count(|change| matches!(change, Change::Change { .. })),
            deleted: count(|change| matches!(change, Change::Delete { .. })),
            changeset,
            recovered,
            kept: Vec::new(),
            untidy: None,
        }
    }
}

/// A tree that is ours alone among those who apply. The lock is the directory's own: it goes with
/// the process, however that ends.
struct Locked(OwnedFd);

impl Locked {
    fn open(dir: &Path) -> Result<Self, ArchiveError> {
        let root = beneath::open_root(dir)?;
        match rustix::fs::flock(&root, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self(root)),
            Err(Errno::WOULDBLOCK) => Err(ArchiveCode::ApplyBusy.refuse("the directory is locked")),
            Err(e) => Err(io("lock the directory", e)),
        }
    }

    fn root(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Locked {
    /// Closing is not enough: a process that another thread just forked has the descriptor too,
    /// until it becomes another program.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

fn recover_locked(
    root: BorrowedFd<'_>,
    by: By,
    watch: Watch<'_>,
) -> Result<Recovered, ArchiveError> {
    let Some(dir) = Staging::find(root)? else {
        return Ok(Recovered::Nothing);
    };
    let Some((journal, changes)) = Journal::load(&dir)? else {
        // Nothing was recorded, so nothing was touched: these are new files of ours.
        Staging::remove(root)?;
        return Ok(Recovered::Nothing);
    };
    // Whoever wrote it checked this. Nobody else gets a hook into `.git` by it.
    check::names(&changes)?;
    let committed = by.committed(&journal, &dir)?;
    let staging = Staging::open(dir)?;
    let mut site = Site::new(root, &staging, &changes, journal, Look::Always);
    let (state, act) = State::resume(site.plan(), committed);
    // A seal that decided is not asked again.
    let (outcome, fault) = drive(&mut site, None, (state, act), watch);
    let changeset_id = changes.changeset_id();
    let kept = site.kept;
    match outcome {
        Outcome::RolledBack => Ok(Recovered::RolledBack { changeset_id, kept }),
        Outcome::Applied => Ok(Recovered::Finished { changeset_id, kept }),
        Outcome::AppliedUntidy | Outcome::Unfinished => Err(naming(unfinished(fault), &kept)),
    }
}

/// Does one act after the other. Gives how it ended and what went wrong first.
fn drive(
    site: &mut Site<'_>,
    mut seal: Option<&mut dyn Seal>,
    (mut state, mut act): (State, Act),
    watch: Watch<'_>,
) -> (Outcome, Option<ArchiveError>) {
    let mut fault = None;
    loop {
        if let Act::Finish(outcome) = act {
            return (outcome, fault);
        }
        watch(act);
        let done = match (&mut seal, act) {
            (Some(seal), Act::Commit) => {
                (seal.commit()).map_err(|e| io("make the new tree count", e))
            }
            (Some(seal), Act::Uncommit) => {
                (seal.withdraw()).map_err(|e| io("withdraw the new tree", e))
            }
            _ => site.perform(act),
        };
        let event = match done {
            Ok(()) => Event::Done,
            Err(refused) => {
                fault.get_or_insert(refused);
                Event::Failed
            }
        };
        (state, act) = decide(state, event);
    }
}

/// What an application says that ended so. Where it went well, what was not tidied up.
fn conclude(
    outcome: Outcome,
    fault: Option<ArchiveError>,
    kept: &[Kept],
) -> Result<Option<ArchiveError>, ArchiveError> {
    match (outcome, fault) {
        (Outcome::Applied | Outcome::AppliedUntidy, fault) => Ok(fault),
        (Outcome::RolledBack, Some(fault)) => Err(naming(fault, kept)),
        (_, fault) => Err(naming(unfinished(fault), kept)),
    }
}

fn unfinished(fault: Option<ArchiveError>) -> ArchiveError {
    let detail = fault.map_or_else(String::new, |fault| fault.to_string());
    ArchiveCode::ApplyUnfinished.refuse(detail)
}

/// Removes staging that no journal speaks of.
fn discard_unrecorded(root: BorrowedFd<'_>) {
    if let Ok(Some(dir)) = Staging::find(root)
        && let Ok(None) = Journal::load(&dir)
    {
        crate::staging::remove_tree(root, Staging::NAME);
    }
}

/// An archive with its manifest read and its payload still to come.
enum Payload<'a> {
    Stored(Stored<'a>, Changeset),
    Stream(Source<&'a File>, Changeset),
}

impl<'a> Payload<'a> {
    fn open(archive: &'a File) -> Result<Self, ArchiveError> {
        if let Some(mut stored) = Stored::open(archive)? {
            let changes = stored.manifest::<Changes>()?;
            return Ok(Self::Stored(stored, changes));
        }
        let mut source = Source::new(archive, None);
        let changes = source.manifest::<Changes>()?;
        Ok(Self::Stream(source, changes))
    }
}

/// Verifies the payload into the slots and makes everything ready for the first act.
fn stage(
    payload: Payload<'_>,
    changes: &Changeset,
    staging: &Staging,
    missing: Vec<RelPath>,
    progress: &dyn Progress,
) -> Result<Journal, ArchiveError> {
    let numbers: HashMap<&str, usize> = changes
        .changes()
        .iter()
        .enumerate()
        .map(|(number, change)| (change.path().as_str(), number))
        .collect();
    let umask = Umask::of_this_process();
    let slots = || Slots {
        staging,
        numbers: &numbers,
        umask,
    };
    let members = Changes::members(changes);
    match payload {
        Payload::Stored(stored, _) => stored.drain::<Changes, _>(&members, &slots, progress)?,
        Payload::Stream(source, _) => {
            payload::drain::<Changes>(source, None, &members, &mut slots(), progress)?;
        }
    }
    let inodes = staging.complete(changes, &missing)?;
    let keep = beneath::random_name()?.replace(RelPath::RESERVED, KEPT);
    Ok(Journal {
        changeset_id: changes.changeset_id(),
        staging: staging.inode_of_directory()?,
        keep,
        sealed: false,
        directories: missing,
        inodes,
    })
}

/// How the directory is called that takes what must be kept.
const KEPT: &str = ".prime-agent-staging-kept";

/// A changeset.
struct Changes;

impl Format for Changes {
    type Manifest = Changeset;
    type Member = Entry;
    const LAYOUT: Layout = paws::LAYOUT;

    fn decode(manifest: &[u8], _: Option<u64>) -> Result<Changeset, ArchiveError> {
        paws::decode_manifest(manifest, 0)?.into_changeset()
    }

    fn members(changes: &Changeset) -> Vec<&Entry> {
        let changes = changes.changes().iter();
        changes.filter_map(Change::entry).collect()
    }

    fn id(changes: &Changeset) -> Digest {
        changes.changeset_id()
    }
}
