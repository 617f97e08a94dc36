use crate::{Checked, Host, ImportError, ImporterCode};
use flightproof_core::{CommitId, Digest, Refusal, escape};
use flightproof_evidence::{Captured, Change, Closed};
use flightproof_ledger::{AdmissionKey, Lease, Ledger, LedgerError};

/// The right to move one branch once, from the captured baseline to the captured head. It can only
/// be made from a capture, a session that left nothing, and a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clearance {
    branch: String,
    baseline: CommitId,
    head: CommitId,
    /// The commit that was certified, where the head is that commit with a signature.
    unsigned: Option<CommitId>,
    certificate: Digest,
    /// What it does to the files of a working tree.
    changes: Vec<Change>,
    /// The commit's objects, where they do not come from the repository itself.
    pack: Option<Vec<u8>>,
    /// Lost when somebody else got a newer one.
    lease: Option<Lease>,
}

impl Clearance {
    /// Clears a captured commit for a branch, named as people name it (`main`).
    ///
    /// # Errors
    /// `SESSION_NOT_CLEAN` if the closed session left something, `BRANCH_NAME`.
    pub fn new(
        closed: &Closed,
        certificate: Digest,
        captured: &Captured,
        branch: &str,
    ) -> Result<Self, ImportError> {
        check_clean(closed)?;
        Ok(Self {
            branch: full_name(branch)?,
            baseline: captured.baseline,
            head: captured.head,
            unsigned: None,
            certificate,
            changes: captured.changes.clone(),
            pack: None,
            lease: None,
        })
    }

    /// Clears a commit that came in a bundle. Whoever calls this has held the certificate against the
    /// request: repository, branch, baseline, head, witness and policy.
    ///
    /// # Errors
    /// As [`Clearance::new`].
    pub fn of_bundle(
        closed: &Closed,
        certificate: Digest,
        checked: &Checked,
        branch: &str,
    ) -> Result<Self, ImportError> {
        check_clean(closed)?;
        Self::of_checked(certificate, checked, branch)
    }

    /// Clears a commit that nothing vouches for but the person who asks. The receipt says so.
    ///
    /// # Errors
    /// `BRANCH_NAME`.
    pub fn uncertified(checked: &Checked, branch: &str) -> Result<Self, ImportError> {
        Self::of_checked(flightproof_ledger::uncertified(), checked, branch)
    }

    fn of_checked(
        certificate: Digest,
        checked: &Checked,
        branch: &str,
    ) -> Result<Self, ImportError> {
        Ok(Self {
            branch: full_name(branch)?,
            baseline: checked.baseline(),
            head: checked.head(),
            unsigned: None,
            certificate,
            changes: checked.changes().to_vec(),
            pack: Some(checked.pack()?),
            lease: None,
        })
    }

    /// The same clearance for the commit with a signature of the host. `sign` is given the bytes of the
    /// commit that was checked, and gives an armoured SSH signature of them in the namespace `git`.
    ///
    /// # Errors
    /// What keeps the key from signing, `SIGNATURE_UNFIT`, `NOT_ON_BASELINE` if another commit was
    /// cleared.
    pub fn signed(
        mut self,
        checked: &Checked,
        sign: impl FnOnce(&[u8]) -> Result<String, Refusal>,
    ) -> Result<Self, Refusal> {
        if (checked.baseline(), checked.head()) != (self.baseline, self.head) {
            let detail = format!(
                "{} is to be signed, cleared was {}",
                checked.head(),
                self.head
            );
            return Err(ImporterCode::NotOnBaseline.refuse(detail).into());
        }
        let (head, body) = checked.signed(sign)?;
        self.unsigned = Some(self.head);
        self.head = head;
        self.pack = Some(checked.pack_with((head, &body))?);
        Ok(self)
    }

    /// What the branch will be at.
    pub fn head(&self) -> CommitId {
        self.head
    }

    /// The commit that was certified, where the head is that commit with a signature.
    pub fn unsigned(&self) -> Option<CommitId> {
        self.unsigned
    }

    /// The same clearance under a lease: it is worth nothing any more when the lease is lost.
    #[must_use]
    pub fn under(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Clears the commit of a certificate that was verified, against the tree that the repository
    /// has now. `changes` is what lies between its ends, from [`changes_of`](crate::changes_of): a
    /// working tree on the branch moves along by them.
    ///
    /// # Errors
    /// As [`Clearance::new`].
    pub fn of_certificate(
        remains: &Closed,
        certificate: Digest,
        (baseline, head): (CommitId, CommitId),
        changes: Vec<Change>,
        branch: &str,
    ) -> Result<Self, ImportError> {
        if !remains.is_clean() {
            return Err(
                ImporterCode::SessionNotClean.refuse("the certificate's session left something")
            );
        }
        Ok(Self {
            branch: full_name(branch)?,
            baseline,
            head,
            unsigned: None,
            certificate,
            changes,
            pack: None,
            lease: None,
        })
    }

    /// The same clearance with the objects a bundle brought. Without them the commit must already
    /// be in the repository.
    ///
    /// # Errors
    /// `NOT_ON_BASELINE` if the bundle is of another commit or baseline.
    pub fn carrying(mut self, checked: &Checked) -> Result<Self, ImportError> {
        if (checked.baseline(), checked.head()) != (self.baseline, self.head) {
            return Err(ImporterCode::NotOnBaseline.refuse(format!(
                "the bundle brings {} on {}, cleared was {} on {}",
                checked.head(),
                checked.baseline(),
                self.head,
                self.baseline
            )));
        }
        self.pack = Some(checked.pack()?);
        Ok(self)
    }

    pub(crate) fn pack(&self) -> Option<&[u8]> {
        self.pack.as_deref()
    }

    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Refuses once the lease is lost.
    pub(crate) fn check_lease(&self, ledger: &Ledger) -> Result<(), LedgerError> {
        match &self.lease {
            Some(lease) => ledger.read(|reading| reading.check_lease(lease)),
            None => Ok(()),
        }
    }

    pub(crate) fn key(&self, host: &Host) -> AdmissionKey {
        AdmissionKey {
            repository: host.name().to_owned(),
            branch: self.branch.clone(),
            baseline: self.baseline,
            head: self.head,
        }
    }

    /// The certificate that vouches for it, or what stands in its place.
    pub fn certificate(&self) -> Digest {
        self.certificate
    }
}

fn check_clean(closed: &Closed) -> Result<(), ImportError> {
    if closed.is_clean() {
        return Ok(());
    }
    Err(ImporterCode::SessionNotClean.refuse(format!(
        "{} processes, {} cgroups, {} mounts, {} folders",
        closed.processes, closed.cgroups, closed.mounts, closed.directories
    )))
}

/// The full name of a branch as people name it.
pub(crate) fn full_name(branch: &str) -> Result<String, ImportError> {
    if is_plain_branch(branch) {
        return Ok(format!("refs/heads/{branch}"));
    }
    Err(ImporterCode::BranchName.refuse(escape(branch, 80)))
}

/// Git's rules for a branch and a little more: a name that needs no quoting anywhere.
fn is_plain_branch(name: &str) -> bool {
    /// Longest name in bytes; its lock file must fit a file system.
    const MOST: usize = 200;
    let plain_segment = |segment: &str| {
        !segment.is_empty()
            && !segment.starts_with(['.', '-'])
            && !segment.ends_with(['.'])
            && !segment.to_lowercase().ends_with(".lock")
    };
    name.len() <= MOST
        && name != "HEAD"
        // An id in its place would be taken for the commit.
        && name.parse::<CommitId>().is_err()
        && !name.starts_with("refs/")
        && !name.contains("..")
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "-_./+#".contains(c))
        && name.split('/').all(plain_segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_branch_names_are_cleared() {
        for name in ["main", "topic/one", "v1.2", "größe", "a-b_c+d#1"] {
            assert!(is_plain_branch(name), "{name}");
        }
        let long = "a".repeat(201);
        for name in [
            "",
            "HEAD",
            "-d",
            "a/-b",
            "a..b",
            "a/",
            "/a",
            "a//b",
            ".a",
            "a/.b",
            "a.",
            "x.lock",
            "x.LOCK/y",
            "refs/heads/main",
            "a b",
            "a\nb",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a@{1}",
            "0123456789012345678901234567890123456789",
            long.as_str(),
        ] {
            assert!(!is_plain_branch(name), "{name:?}");
        }
    }
}
