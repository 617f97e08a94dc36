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
use crate::paws::{self, Change, Changeset, Entry, Manifest};
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

/// A file that was kept for whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where it lay in the tree.
    pub path: RelPath,
    /// Where it lies now, below the root: `.prime-agent-staging-kept-…/` and its path.
    pub at: String,
}

/// Applies the changeset in the file `archive` to the tree below `dir`.
///
/// Verified before anything is touched: every byte of the archive; that each changed or deleted
/// file is a regular one with exactly the base's bytes; that nothing stands where a file is added,
/// ignored or not; that all parents are real directories on one file system; that no new name
/// collides with one that is there. Modes are exactly 0644 and 0755, new directories 0755.
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
    apply_watched(archive, dir, progress, Look::Always, &mut |_| {})
}

/// Finishes or rolls back what an application that was cut off left in `dir`. Doing it twice does
/// nothing the second time.
///
/// # Errors
/// [`ArchiveCode::ApplyBusy`], [`ArchiveCode::JournalDamaged`], [`ArchiveCode::ApplyUnfinished`], a
/// staging directory that is not ours, the system's.
pub fn recover(dir: &Path) -> Result<Recovered, ArchiveError> {
    let locked = Locked::open(dir)?;
    recover_locked(locked.root(), &mut |_| {})
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
    progress: &dyn Progress,
    look: Look,
    watch: Watch<'_>,
) -> Result<Applied, ArchiveError> {
    let locked = Locked::open(dir)?;
    let root = locked.root();
    let recovered = recover_locked(root, watch)?;
    let payload = Payload::open(archive)?;
    let (Payload::Stored(_, changes) | Payload::Stream(_, changes)) = &payload;
    let changes = changes.clone();
    check::names(&changes)?;
    let missing = check::tree(root, &changes)?;
    let how = How { look, progress };
    let done = carry_out(root, payload, &changes, missing, &how, watch);
    if done.is_err() {
        discard_unrecorded(root);
    }
    let (untidy, kept) = done?;
    Ok(Applied {
        untidy,
        kept,
        ..Applied::new(changes, recovered)
    })
}

struct How<'a> {
    look: Look,
    progress: &'a dyn Progress,
}

/// Stages, and does what the protocol says. Gives what was not tidied up, and what was kept.
fn carry_out(
    root: BorrowedFd<'_>,
    payload: Payload<'_>,
    changes: &Changeset,
    missing: Vec<RelPath>,
    how: &How<'_>,
    watch: Watch<'_>,
) -> Result<(Option<ArchiveError>, Vec<Kept>), ArchiveError> {
    let staging = Staging::create(root)?;
    let journal = stage(payload, changes, &staging, missing, how.progress)?;
    let mut site = Site::new(root, &staging, changes, journal, how.look);
    let (state, act) = State::begin(site.plan());
    let (outcome, fault) = drive(&mut site, state, act, watch);
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

fn recover_locked(root: BorrowedFd<'_>, watch: Watch<'_>) -> Result<Recovered, ArchiveError> {
    let Some(dir) = Staging::find(root)? else {
        return Ok(Recovered::Nothing);
    };
    let Some((journal, changes)) = Journal::load(&dir)? else {
        // Nothing was recorded, so nothing was touched: these are new files of ours.
        crate::staging::remove_tree(root, Staging::NAME);
        return Ok(Recovered::Nothing);
    };
    // Whoever wrote it checked this. Nobody else gets a hook into `.git` by it.
    check::names(&changes)?;
    let committed = Journal::is_committed(&dir)?;
    let staging = Staging::open(dir)?;
    let mut site = Site::new(root, &staging, &changes, journal, Look::Always);
    let (state, act) = State::resume(site.plan(), committed);
    let (outcome, fault) = drive(&mut site, state, act, watch);
    let changeset_id = changes.changeset_id();
    let kept = site.kept;
    match outcome {
        Outcome::RolledBack => Ok(Recovered::RolledBack { changeset_id, kept }),
        Outcome::Applied => Ok(Recovered::Finished { changeset_id, kept }),
        Outcome::AppliedUntidy | Outcome::Unfinished => Err(unfinished(fault)),
    }
}

/// Does one act after the other. Gives how it ended and what went wrong first.
fn drive(
    site: &mut Site<'_>,
    mut state: State,
    mut act: Act,
    watch: Watch<'_>,
) -> (Outcome, Option<ArchiveError>) {
    let mut fault = None;
    loop {
        if let Act::Finish(outcome) = act {
            return (outcome, fault);
        }
        watch(act);
        let event = match site.perform(act) {
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
        (Outcome::RolledBack, Some(mut fault)) => {
            for kept in kept {
                let at = crate::paws::shown(&kept.at);
                fault.detail = format!("{}; \"{}\" is kept as {at}", fault.detail, kept.path);
            }
            Err(fault)
        }
        (_, fault) => Err(unfinished(fault)),
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
        match paws::decode_manifest(manifest, 0)? {
            Manifest::Changeset(changes) => Ok(changes),
            Manifest::Snapshot(_) => {
                Err(ArchiveCode::BadKind.refuse("got \"snapshot\", expected \"changeset\""))
            }
        }
    }

    fn members(changes: &Changeset) -> Vec<&Entry> {
        let changes = changes.changes().iter();
        changes.filter_map(Change::entry).collect()
    }

    fn id(changes: &Changeset) -> Digest {
        changes.changeset_id()
    }
}
