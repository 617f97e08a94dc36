//! A commit lands in a working tree that is on the branch: files, then the branch, then the index.
//!
//! The files are exchanged by [`flightproof_archive::apply_sealed`], and what makes them count is the
//! branch. The index is locked all the while, so no git of the user's sees half of it and none can
//! write what would be lost. A failure before the branch moved takes everything back.

use crate::admit::{Admitted, Moving, went_elsewhere};
use crate::claim::Claim;
use crate::git::Verb;
use crate::index::{Edits, Index};
use crate::scratch::Scratch;
use crate::talk::Talk;
use crate::worktree::Worktree;
use crate::{Git, Host, ImportError, ImporterCode, attributes, changeset, install};
use flightproof_archive::{self as archive, ArchiveCode, ArchiveError, Kept, Seal};
use flightproof_core::{CommitId, Refusal};
use flightproof_evidence::Change;
use flightproof_ledger::{AdmissionId, Intended, Ledger, State};
use rustix::fs::MemfdFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// Lands a cleared commit in the working tree the host was opened at.
pub(crate) fn land(moving: &Moving<'_>, ledger: &mut Ledger) -> Result<Admitted, Refusal> {
    let user = rustix::process::geteuid().as_raw();
    let tree = Worktree::open(moving.host, user)?;
    let changes = moving.clearance.changes();
    let (changeset, archive) = changeset::pack(changes.iter()).map_err(unfit)?;
    let claim = Claim::take(&tree, moving.key, changeset.changeset_id())?;
    let bytes = tree.read_index()?;
    let index = Index::parse(&bytes)?;
    changes
        .iter()
        .try_for_each(|change| tree.check(&index, change))?;
    install::install(moving.git, moving.host, moving.key, moving.clearance.pack())?;
    let baseline = moving.key.baseline;
    let window = (moving.git, moving.host, claim.dir());
    check_in_window(window, (&tree, &index), baseline, changes)?;
    match ledger.intend(moving.key, moving.clearance.certificate(), moving.now)? {
        Intended::AlreadyApplied(receipt) => moving.repeat(receipt),
        Intended::Journaled(id) => {
            let landing = Landing {
                moving,
                tree: &tree,
                index: &index,
                archive: &archive,
            };
            landing.run(claim, ledger, id)
        }
    }
}

/// Refuses a commit whose files the working tree that a host was opened at could not take as it is now.
/// Nothing is written but in `scratch`; [`land`] asks all of it again.
///
/// # Errors
/// `SOURCE_CHANGED`; those of a working tree that nothing can land in.
pub(crate) fn check(
    git: &Git,
    host: &Host,
    baseline: CommitId,
    changes: &[Change],
    scratch: &Path,
) -> Result<(), Refusal> {
    changeset::pack(changes.iter()).map_err(unfit)?;
    let tree = Worktree::open(host, rustix::process::geteuid().as_raw())?;
    let bytes = tree.read_index()?;
    let index = Index::parse(&bytes)?;
    for change in changes {
        tree.check(&index, change)?;
        tree.check_file(change)?;
    }
    let window = (git, host, scratch);
    Ok(check_in_window(window, (&tree, &index), baseline, changes)?)
}

/// What git must say before anything is written: the index is the baseline's, and no attribute
/// converts what is changed. It is asked in a repository of ours below `dir`.
fn check_in_window(
    (git, host, dir): (&Git, &Host, &Path),
    (tree, index): (&Worktree, &Index<'_>),
    baseline: CommitId,
    changes: &[Change],
) -> Result<(), ImportError> {
    let window = Scratch::over(dir.join("landing.git"), &host.objects(), baseline)?;
    let (place, baseline) = (tree.index(), baseline.to_string());
    let words = [baseline.as_str(), "--"].map(OsStr::new);
    let answer = git.ask(Verb::DiffIndex, window.with_index(&place), &words)?;
    match answer.code {
        0 => {}
        1 => {
            return Err(ImporterCode::SourceChanged
                .refuse("something is staged that the baseline does not have"));
        }
        _ => return Err(ImporterCode::GitFailed.refuse(answer.complaint)),
    }
    let edits = edits(tree, changes)?;
    attributes::check(git, host, &window, (index, &edits), (changes, dir))
}

/// What the index shall say of the changed paths, as their files are now.
fn edits<'a>(tree: &Worktree, changes: &'a [Change]) -> Result<Edits<'a>, ImportError> {
    changes
        .iter()
        .map(|change| {
            let path = change.path.as_str();
            let new = change.new.as_ref().map(|new| tree.track(path, new));
            Ok((path.as_bytes(), new.transpose()?))
        })
        .collect()
}

/// A change that a working tree cannot take in one step, nor its plan say: what comes out of a tree is a
/// file, which has a hash, and never a folder, which takes along what others have put into it.
fn unfit(refused: ArchiveError) -> Refusal {
    if refused.code == ArchiveCode::PrefixConflict {
        let detail = format!(
            "a file becomes a directory or a directory a file: {}",
            refused.detail
        );
        return ImporterCode::HostUnsupported.refuse(detail).into();
    }
    refused.into()
}

struct Landing<'a> {
    moving: &'a Moving<'a>,
    tree: &'a Worktree,
    index: &'a Index<'a>,
    archive: &'a [u8],
}

impl Landing<'_> {
    fn run(
        &self,
        mut claim: Claim,
        ledger: &mut Ledger,
        id: AdmissionId,
    ) -> Result<Admitted, Refusal> {
        let archive = self.file().map_err(|e| {
            Refusal::from(ImporterCode::ScratchFailed.refuse(format!("the change in memory: {e}")))
        });
        let talk = archive.and_then(|file| Ok((file, self.moving.prepare()?)));
        let (file, talk) = match talk {
            Ok(ready) => ready,
            Err(refused) => return self.nothing_done(claim, ledger, id, refused),
        };
        // From here on only an outcome that is known may end the claim.
        claim.keep();
        let mut swing = Swing {
            landing: self,
            claim: &claim,
            ledger,
            talk: Some(talk),
            fault: None,
        };
        let applied = archive::apply_sealed(&file, self.tree.top(), &(), &mut swing);
        // Git lets go of its locks before anything else is said.
        swing.let_go();
        let fault = swing.fault.take();
        match applied {
            Ok(applied) => {
                let kept = [applied.recovered.kept(), &applied.kept].concat();
                match applied.untidy {
                    None => self
                        .done(claim, ledger, id, &kept)
                        .map_err(|refused| with(refused, &Kept::told(&kept))),
                    Some(why) => Err(with(uncertain(&why), &Kept::told(&kept))),
                }
            }
            Err(refused) if refused.code == ArchiveCode::ApplyUnfinished => Err(match fault {
                Some(fault) => uncertain(&with(fault, told_kept(&refused))),
                None => uncertain(&refused),
            }),
            Err(refused) => {
                let refused = match fault {
                    Some(fault) => with(fault, told_kept(&refused)),
                    None => as_source(refused),
                };
                self.nothing_done(claim, ledger, id, refused)
            }
        }
    }

    fn file(&self) -> std::io::Result<File> {
        let memory = rustix::fs::memfd_create("changeset", MemfdFlags::CLOEXEC)?;
        let mut file = File::from(memory);
        file.write_all(self.archive)?;
        Ok(file)
    }

    /// The files are as before and the branch did not move.
    fn nothing_done(
        &self,
        mut claim: Claim,
        ledger: &mut Ledger,
        id: AdmissionId,
        refused: Refusal,
    ) -> Result<Admitted, Refusal> {
        if !went_elsewhere(&refused) && !self.moving.is_still_at_baseline() {
            // Where it went meanwhile is the recovery's to judge.
            claim.keep();
            return Err(uncertain(&refused));
        }
        ledger.settle(id, State::NotApplied, None, self.moving.now)?;
        claim.give_back()?;
        Err(refused)
    }

    fn done(
        &self,
        claim: Claim,
        ledger: &mut Ledger,
        id: AdmissionId,
        kept: &[Kept],
    ) -> Result<Admitted, Refusal> {
        let receipt = self.moving.receipt().bytes()?;
        ledger.settle(id, State::Applied, Some(&receipt), self.moving.now)?;
        // All is done and written down: a folder that stays is the next recovery's.
        let _ = claim.give_back();
        Ok(Admitted {
            receipt,
            repeated: false,
            landed: true,
            kept: kept.iter().map(|kept| kept.at.clone()).collect(),
        })
    }
}

/// What makes the new files count: the branch moves.
struct Swing<'a> {
    landing: &'a Landing<'a>,
    claim: &'a Claim,
    ledger: &'a Ledger,
    /// A git that holds the locks of the branch and of HEAD.
    talk: Option<Talk>,
    /// Why it was not moved.
    fault: Option<Refusal>,
}

impl Swing<'_> {
    fn move_branch(&mut self) -> Result<(), Refusal> {
        let (moving, tree) = (self.landing.moving, self.landing.tree);
        let talk = self.talk.take();
        let talk = talk.ok_or_else(|| ImporterCode::GitFailed.refuse("git is gone"))?;
        let ready = self.make_ready();
        if let Err(refused) = ready {
            self.talk = Some(talk);
            return Err(refused);
        }
        moving.commit(talk)?;
        if self.claim.install_index()? {
            return Ok(());
        }
        let index = tree.index().display().to_string();
        Err(ImporterCode::IndexLocked.refuse(index).into())
    }

    /// Everything that may still fail, with all locks held.
    fn make_ready(&self) -> Result<(), Refusal> {
        let Landing {
            moving,
            tree,
            index,
            ..
        } = self.landing;
        let edits = edits(tree, moving.clearance.changes())?;
        self.claim.write_index(&index.write(&edits)?)?;
        moving.clearance.check_lease(self.ledger)?;
        Ok(())
    }

    /// The end of its input makes git let go of its locks.
    fn let_go(&mut self) {
        if let Some(talk) = self.talk.take() {
            let _ = talk.finish(crate::admit::SILENCE);
        }
    }
}

impl Seal for Swing<'_> {
    fn commit(&mut self) -> Result<(), String> {
        self.move_branch().map_err(|refused| {
            self.fault = Some(refused);
            NOT_MOVED.to_owned()
        })
    }

    fn withdraw(&mut self) -> Result<(), String> {
        self.let_go();
        match self.landing.moving.is_still_at_baseline() {
            true => Ok(()),
            false => Err("the branch is not at the baseline".to_owned()),
        }
    }
}

/// What the tree is told of a branch that did not move. The reason stays here.
const NOT_MOVED: &str = "the branch did not move";

/// What the tree says that it kept, where the branch did not move.
fn told_kept(refused: &ArchiveError) -> &str {
    let split = refused.detail.split_once(NOT_MOVED);
    split.map_or("", |(_, kept)| kept)
}

/// Where neither side is known to count, for a refusal. It is not cut: what was kept is named at its end.
fn uncertain(why: &dyn std::fmt::Display) -> Refusal {
    let refused = ImportError {
        code: ImporterCode::AdmissionUncertain,
        detail: why.to_string(),
    };
    refused.into()
}

fn with(mut refused: Refusal, kept: &str) -> Refusal {
    refused.detail.push_str(kept);
    refused
}

/// What the tree said, in the words of an import.
fn as_source(refused: ArchiveError) -> Refusal {
    let source = matches!(
        refused.code,
        ArchiveCode::BaseMismatch
            | ArchiveCode::AddedExists
            | ArchiveCode::EditedMeanwhile
            | ArchiveCode::DestinationUnsafe
            | ArchiveCode::NameCollision
    );
    if source {
        let code = ImporterCode::SourceChanged;
        let detail = refused.detail;
        return ImportError { code, detail }.into();
    }
    refused.into()
}
