//! Lineage: a certificate may build on that of the commit it is based on, and so on down to a commit
//! that no flight made. What it builds on is walked, never believed.

use crate::certificate::Statement;
use crate::claim::{LineageClaim, RequestClaim};
use crate::key::PublicKey;
use crate::{CertifierCode, CertifierError, consistency, dsse};
use flightproof_core::{CommitId, Digest, escape};
use flightproof_evidence::Captured;

/// Most generations. An author who builds on itself longer than this has left every commit that
/// somebody else looked at far behind.
pub const MAX_DEPTH: u64 = 16;

/// A certificate that others build on, its signature checked.
#[derive(Debug, Clone)]
pub struct Ancestor {
    id: Digest,
    lineage: LineageClaim,
    request: RequestClaim,
}

impl Ancestor {
    /// A certificate by its statement and id.
    pub(crate) fn of(statement: Statement, id: Digest) -> Self {
        let inputs = statement.predicate.inputs;
        Self {
            id,
            lineage: inputs.lineage,
            request: inputs.request,
        }
    }

    /// Opens a certificate that one of these keys signed.
    ///
    /// # Errors
    /// Those of [`dsse::open`] and [`Statement::parse`], and a statement that cannot be true.
    pub fn open(envelope: &[u8], keys: &[PublicKey]) -> Result<Self, CertifierError> {
        let payload = dsse::open(envelope, keys, 1)?;
        let statement = Statement::parse(payload.bytes())?;
        consistency::check(&statement)?;
        Ok(Self::of(statement, Digest::of(payload.bytes())))
    }

    /// Whether a commit of this baseline, in a repository of this name, is based on its commit.
    fn carries(&self, repository: &str, baseline: CommitId) -> Result<(), CertifierError> {
        if self.request.head == baseline && self.request.repository == repository {
            return Ok(());
        }
        Err(CertifierCode::LineageBroken.refuse(format_args!(
            "certificate {} is of commit {} of {}, and what builds on it is based on {baseline} of {}",
            self.id,
            self.request.head,
            escape(&self.request.repository, 80),
            escape(repository, 80)
        )))
    }
}

/// What a commit descends from, given the certificates of its baseline and of what that builds on:
/// none, or all of them.
///
/// # Errors
/// `LINEAGE_BROKEN` if they do not lead from its baseline down to depth 0, `LINEAGE_TOO_DEEP`,
/// `BESIDE_UNASKED` for a certificate that is not on the way.
pub fn descent(captured: &Captured, given: &[Ancestor]) -> Result<LineageClaim, CertifierError> {
    let (repository, baseline) = (captured.repository.as_str(), captured.baseline);
    let first = LineageClaim {
        depth: 0,
        parent: None,
    };
    if given.is_empty() {
        return Ok(first);
    }
    let parent = given.iter().find(|a| a.request.head == baseline);
    let Some(parent) = parent else {
        return Err(CertifierCode::LineageBroken.refuse(format_args!(
            "none of the certificates is of the baseline {baseline}"
        )));
    };
    let claim = LineageClaim {
        depth: parent.lineage.depth.saturating_add(1),
        parent: Some(parent.id),
    };
    check(&claim)?;
    walk(&claim, (repository, baseline), given)?;
    Ok(claim)
}

/// Whether a claim alone can be true.
///
/// # Errors
/// `LINEAGE_TOO_DEEP`, `LINEAGE_BROKEN`.
pub(crate) fn check(claim: &LineageClaim) -> Result<(), CertifierError> {
    if claim.depth > MAX_DEPTH {
        return Err(CertifierCode::LineageTooDeep.refuse(format_args!(
            "depth {}, at most {MAX_DEPTH} allowed",
            claim.depth
        )));
    }
    if (claim.depth == 0) != claim.parent.is_none() {
        return Err(CertifierCode::LineageBroken
            .refuse("a parent without a depth, or a depth without a parent"));
    }
    Ok(())
}

/// Walks from a certificate down to depth 0, over certificates that are all given and none besides.
///
/// # Errors
/// `LINEAGE_BROKEN`, `BESIDE_UNASKED`.
pub(crate) fn walk(
    claim: &LineageClaim,
    (repository, baseline): (&str, CommitId),
    given: &[Ancestor],
) -> Result<(), CertifierError> {
    let mut left: Vec<&Ancestor> = given.iter().collect();
    let (mut claim, mut baseline) = (claim, baseline);
    while let Some(parent) = claim.parent {
        let Some(at) = left.iter().position(|ancestor| ancestor.id == parent) else {
            return Err(CertifierCode::LineageBroken
                .refuse(format_args!("certificate {parent} is not given")));
        };
        let ancestor = left.remove(at);
        ancestor.carries(repository, baseline)?;
        // Each step is one less, so the walk ends.
        if ancestor.lineage.depth.checked_add(1) != Some(claim.depth) {
            return Err(CertifierCode::LineageBroken.refuse(format_args!(
                "depth {} on a certificate of depth {}",
                claim.depth, ancestor.lineage.depth
            )));
        }
        (claim, baseline) = (&ancestor.lineage, ancestor.request.baseline);
    }
    match left.first() {
        None => Ok(()),
        Some(other) => Err(CertifierCode::BesideUnasked.refuse(format_args!(
            "certificate {} is none that this one builds on",
            other.id
        ))),
    }
}
