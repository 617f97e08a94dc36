use crate::git::{Git, Verb};
use crate::objects::Kind;
use crate::scratch::Scratch;
use crate::talk::Cap;
use crate::walk::Difference;
use crate::{ImportError, ImporterCode};
use flightproof_core::CommitId;
use std::ffi::OsStr;
use std::path::Path;

/// Most bytes of a bundle.
pub(crate) const BUNDLE: usize = 131_072;
/// Most bytes of its header.
const HEADER: usize = 4_096;
/// Most objects its pack may claim.
const OBJECTS: u32 = 1_024;
/// The one reference in it.
const REFERENCE: &str = "refs/export/head";

/// The two commits with their bytes.
#[derive(Debug)]
pub(crate) struct Ends<'a> {
    pub(crate) baseline: (CommitId, &'a [u8]),
    pub(crate) head: (CommitId, &'a [u8]),
}

/// Makes the bundle of one commit, in a repository that holds nothing but objects hashed here:
/// bytes that lie in the host's packs never come near it.
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
    check(&answer.stdout, baseline, head)?;
    Ok(answer.stdout)
}

/// The whole grammar of a bundle's header, and what its pack claims to be.
fn check(bundle: &[u8], baseline: CommitId, head: CommitId) -> Result<(), ImportError> {
    let malformed = |why: &str| ImporterCode::BundleMalformed.refuse(why);
    let end = bundle
        .windows(2)
        .take(HEADER)
        .position(|pair| pair == b"\n\n")
        .ok_or_else(|| malformed("its header does not end within 4,096 bytes"))?;
    let (header, pack) = bundle
        .split_at_checked(end + 2)
        .ok_or_else(|| malformed("it ends in its header"))?;
    let text = std::str::from_utf8(header).map_err(|_| malformed("its header is not UTF-8"))?;
    let lines: Vec<&str> = text.trim_end_matches('\n').split('\n').collect();
    let [signature, prerequisite, reference] = lines.as_slice() else {
        return Err(malformed("not exactly one prerequisite and one reference"));
    };
    let after_id = prerequisite.strip_prefix(&format!("-{baseline}"));
    if *signature != "# v2 git bundle"
        || !after_id.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        || *reference != format!("{head} {REFERENCE}")
    {
        return Err(malformed(
            "its header names other commits or another version",
        ));
    }
    check_pack(pack)
}

fn check_pack(pack: &[u8]) -> Result<(), ImportError> {
    /// Magic, version and count before the entries, a SHA-1 after them.
    const FRAME: usize = 12 + 20;
    let count = match pack.split_first_chunk::<12>() {
        Some(([b'P', b'A', b'C', b'K', 0, 0, 0, 2, a, b, c, d], _)) if pack.len() > FRAME => {
            u32::from_be_bytes([*a, *b, *c, *d])
        }
        _ => return Err(ImporterCode::BundleMalformed.refuse("no pack of version 2 follows")),
    };
    match count {
        0 => Err(ImporterCode::BundleMalformed.refuse("its pack is empty")),
        1..=OBJECTS => Ok(()),
        _ => Err(ImporterCode::ObjectsOverLimit.refuse(format!("got {count}, at most {OBJECTS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> (CommitId, CommitId) {
        (
            "1".repeat(40).parse().unwrap(),
            "2".repeat(40).parse().unwrap(),
        )
    }

    fn bundle(header: &str, count: u32) -> Vec<u8> {
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend(b"PACK\0\0\0\x02");
        bytes.extend(count.to_be_bytes());
        bytes.extend([0; 40]);
        bytes
    }

    #[test]
    fn only_the_agreed_header_is_accepted() {
        let (base, head) = ids();
        let good = format!("# v2 git bundle\n-{base} subject\n{head} refs/export/head\n\n");
        assert!(check(&bundle(&good, 3), base, head).is_ok());
        for bad in [
            good.replace("v2", "v3"),
            good.replace(&format!("-{base} subject\n"), ""),
            good.replace(&format!("-{base}"), &format!("-{head}")),
            good.replace("refs/export/head", "HEAD"),
            good.replace("\n\n", &format!("\n{head} refs/heads/x\n\n")),
            good.replace("\n\n", "\n"),
            good.replace(" subject", "0"),
            good.replace("subject", &"x".repeat(HEADER)),
        ] {
            let refused = check(&bundle(&bad, 3), base, head).unwrap_err();
            assert_eq!(refused.code, ImporterCode::BundleMalformed, "{bad:?}");
        }
    }

    #[test]
    fn the_pack_must_claim_what_is_allowed() {
        let (base, head) = ids();
        let good = format!("# v2 git bundle\n-{base}\n{head} refs/export/head\n\n");
        let code = |count| check(&bundle(&good, count), base, head).map_err(|e| e.code);
        assert_eq!(code(1_024), Ok(()));
        assert_eq!(code(1_025), Err(ImporterCode::ObjectsOverLimit));
        assert_eq!(code(u32::MAX), Err(ImporterCode::ObjectsOverLimit));
        assert_eq!(code(0), Err(ImporterCode::BundleMalformed));
        let cut = check(good.as_bytes(), base, head).unwrap_err();
        assert_eq!(cut.code, ImporterCode::BundleMalformed);
    }
}
