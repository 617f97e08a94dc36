//! What is made of an import that was cut off, without a file and without git.
//!
//! One thing decides: where the branch is. The files follow it, forward or back, and where the
//! branch says nothing about them, nobody touches them.

use crate::Outcome;

/// Where the branch is, seen from an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// It is gone, or is no commit.
    Gone,
    /// Where it was.
    Baseline,
    /// Where it was to go.
    Head,
    /// Further on from there.
    BeyondHead,
    /// Somewhere the head does not lead to.
    Elsewhere,
}

/// What is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Facts {
    /// Where the branch is.
    pub(crate) place: Place,
    /// The tree's own journal says that files may have been swapped.
    pub(crate) swapping: bool,
    /// The working tree is on the branch.
    pub(crate) here: bool,
}

/// What is done to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Files {
    /// Nothing.
    Leave,
    /// Old files back, new ones out.
    RollBack,
    /// The new files stay, the old ones go.
    Finish,
}

/// What is done to the new index, if it still is the index's lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NewIndex {
    /// Nothing.
    Leave,
    /// It is put in the index's place.
    Install,
    /// It goes.
    Discard,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ruling {
    /// How the import turned out.
    pub(crate) outcome: Outcome,
    /// The files.
    pub(crate) files: Files,
    /// The index. It goes before the files where both go forward: who dies in between comes back.
    pub(crate) index: NewIndex,
}

/// Judges an import that was cut off.
pub(crate) fn decide(facts: Facts) -> Ruling {
    let rule = |outcome, files, index| Ruling {
        outcome,
        files,
        index,
    };
    match facts {
        Facts {
            place: Place::Baseline,
            swapping: false,
            ..
        } => rule(Outcome::NotApplied, Files::Leave, NewIndex::Discard),
        Facts {
            place: Place::Baseline,
            here: true,
            ..
        } => rule(Outcome::Interrupted, Files::RollBack, NewIndex::Discard),
        // Somebody switched branches over half a change.
        Facts {
            place: Place::Baseline,
            ..
        } => rule(Outcome::Unknown, Files::Leave, NewIndex::Leave),
        Facts {
            place: place @ (Place::Head | Place::BeyondHead),
            swapping,
            here,
        } => {
            let outcome = match place {
                Place::Head => Outcome::Applied,
                _ => Outcome::AppliedThenMoved,
            };
            // All swaps were done and on the disk before the branch moved.
            let files = if swapping {
                Files::Finish
            } else {
                Files::Leave
            };
            let index = if here {
                NewIndex::Install
            } else {
                NewIndex::Discard
            };
            rule(outcome, files, index)
        }
        Facts {
            place, swapping, ..
        } => {
            let outcome = match place {
                Place::Gone => Outcome::Unknown,
                _ => Outcome::Superseded,
            };
            let index = if swapping {
                NewIndex::Leave
            } else {
                NewIndex::Discard
            };
            rule(outcome, Files::Leave, index)
        }
    }
}

impl Ruling {
    /// Whether the claim on the working tree ends with it.
    pub(crate) fn is_final(self) -> bool {
        self.index != NewIndex::Leave
    }
}

#[cfg(test)]
mod model;
