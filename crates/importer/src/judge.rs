use crate::commit::{self, Commit};
use crate::objects::Source;
use crate::walk::{self, Difference};
use crate::{Grants, ImportError, ImporterCode};
use flightproof_core::{CommitId, escape};

/// What a commit is held against.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// What the author may touch.
    pub grants: &'a Grants,
    /// `Name <mail>` that author and committer must be, if it matters.
    pub identity: Option<&'a str>,
    /// Unix seconds; commit dates may not lie more than a day ahead.
    pub now: u64,
}

/// A commit that keeps the rules.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) commit: Commit,
    pub(crate) difference: Difference,
}

/// Holds a commit against its baseline and the rules. A capture and the check of a bundle both ask
/// here, so they cannot disagree.
pub(crate) fn judge(
    objects: &mut dyn Source,
    (baseline, baseline_body): (CommitId, &[u8]),
    head_body: &[u8],
    rules: &Rules<'_>,
) -> Result<Judged, ImportError> {
    let commit = Commit::parse(head_body, rules.now)?;
    check_place(&commit, baseline)?;
    check_identity(&commit, rules.identity)?;
    let old_tree = commit::tree_of(baseline_body)?;
    if commit.tree == old_tree {
        return Err(ImporterCode::NoChange.refuse(format!("both have tree {old_tree}")));
    }
    let difference = walk::compare(objects, old_tree, commit.tree, &|path| {
        rules.grants.is_large(path)
    })?;
    if difference.changes.is_empty() {
        return Err(ImporterCode::NoChange.refuse("the trees differ in spelling only"));
    }
    rules.grants.check(&difference.changes)?;
    Ok(Judged { commit, difference })
}

fn check_place(commit: &Commit, baseline: CommitId) -> Result<(), ImportError> {
    match commit.parents.as_slice() {
        [parent] if *parent == baseline => Ok(()),
        [] => Err(ImporterCode::NotOnBaseline.refuse("the commit has no parent")),
        [parent] => Err(ImporterCode::NotOnBaseline.refuse(format!(
            "the commit's parent is {parent}, the baseline is {baseline}"
        ))),
        more => Err(ImporterCode::MergeCommit.refuse(format!("{} parents", more.len()))),
    }
}

fn check_identity(commit: &Commit, wanted: Option<&str>) -> Result<(), ImportError> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    for (role, found) in [("author", &commit.author), ("committer", &commit.committer)] {
        if found != wanted {
            return Err(ImporterCode::IdentityMismatch.refuse(format!(
                "{role}: got {}, expected {}",
                escape(found, 120),
                escape(wanted, 120)
            )));
        }
    }
    Ok(())
}
