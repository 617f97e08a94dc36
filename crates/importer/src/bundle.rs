//! The bundle one commit travels in: its header, and how one is made.

mod header;

pub(crate) use header::{BUNDLE, Bundle};

use crate::git::{Git, Verb};
use crate::objects::Kind;
use crate::scratch::Scratch;
use crate::talk::Cap;
use crate::walk::Difference;
use crate::{ImportError, ImporterCode, pack};
use flightproof_core::{CommitId, ObjectId};
use header::{REFERENCE, without_subject};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

/// The two commits with their bytes.
#[derive(Debug)]
pub(crate) struct Ends<'a> {
    pub(crate) baseline: (CommitId, &'a [u8]),
    pub(crate) head: (CommitId, &'a [u8]),
}

/// Makes the bundle of one commit, in a repository that holds nothing but objects hashed here:
/// bytes that lie in the host's packs never come near it. What comes out is not believed: the caller
/// checks it as if a stranger had made it.
pub(crate) fn make(
    git: &Git,
    scratch: &Path,
    ends: &Ends<'_>,
    difference: &Difference,
) -> Result<Vec<u8>, ImportError> {
    let (baseline, head) = (ends.baseline.0, ends.head.0);
    let export = Scratch::empty(scratch.join("export.git"), baseline)?;
    for (id, body) in [ends.baseline, ends.head] {
        export.put(id, Kind::Commit, body)?;
    }
    for (id, (kind, body)) in difference.old.iter().chain(&difference.new) {
        export.put(*id, *kind, body)?;
    }
    export.point(REFERENCE, head)?;
    let without = format!("^{baseline}");
    let words = ["-q", "--version=2", "-", REFERENCE, &without].map(OsStr::new);
    let answer = git
        .talk(Verb::BundleCreate, export.place(), &words)?
        .finish(Cap {
            bytes: BUNDLE,
            code: ImporterCode::BundleOverLimit,
        })?;
    if answer.code != 0 {
        return Err(ImporterCode::GitFailed.refuse(format!("bundle: {}", answer.complaint)));
    }
    Ok(without_subject(&answer.stdout))
}

/// The bundle of one commit without its large files. No git makes one that is not whole, so it is
/// written here, and every object travels whole.
pub(crate) fn make_without(
    ends: &Ends<'_>,
    difference: &Difference,
    left_out: &HashSet<ObjectId>,
) -> Result<Vec<u8>, ImportError> {
    let (baseline, (head, body)) = (ends.baseline.0, ends.head);
    let mut objects = vec![(head, Kind::Commit, body)];
    let new = difference
        .new
        .iter()
        .filter(|(id, _)| !left_out.contains(*id));
    objects.extend(new.map(|(id, (kind, body))| (*id, *kind, body.as_slice())));
    let bundle = [
        Bundle::header(baseline, head),
        pack::write(objects.into_iter())?,
    ]
    .concat();
    if bundle.len() > BUNDLE {
        let detail = format!("{} bytes without its large files", bundle.len());
        return Err(ImporterCode::BundleOverLimit.refuse(detail));
    }
    Ok(bundle)
}
