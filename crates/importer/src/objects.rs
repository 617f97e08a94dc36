use crate::git::{Git, Place, Verb};
use crate::talk::{Cap, Talk};
use crate::{ImportError, ImporterCode};
use flightproof_core::{ObjectId, escape};
use sha1_checked::{Digest as _, Sha1};
use std::ffi::OsStr;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Blob,
    Tree,
    Commit,
}

impl Kind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Tree => "tree",
            Self::Commit => "commit",
        }
    }

    /// What git hashes before the content.
    pub(crate) fn header(self, size: usize) -> Vec<u8> {
        format!("{} {size}\0", self.word()).into_bytes()
    }
}

/// Objects by id, through one long-lived git. What comes out of here has the hash that names it.
#[derive(Debug)]
pub(crate) struct Objects(Talk);

impl Objects {
    pub(crate) fn open(git: &Git, place: Place<'_>) -> Result<Self, ImportError> {
        git.talk(Verb::CatFile, place, &[OsStr::new("--batch")])
            .map(Self)
    }

    /// The content of an object of this kind.
    pub(crate) fn read(
        &mut self,
        id: ObjectId,
        kind: Kind,
        cap: Cap,
    ) -> Result<Vec<u8>, ImportError> {
        self.0.send(format!("{id}\n").as_bytes())?;
        let line = self.0.line()?;
        let size = parse_header(&line, id, kind)?;
        if size > cap.bytes {
            return Err(cap.code.refuse(format!(
                "{} {id} has {size} bytes, {} are left of the limit",
                kind.word(),
                cap.bytes
            )));
        }
        let mut body = self.0.exactly(size + 1)?;
        if body.pop() != Some(b'\n') {
            return Err(ImporterCode::GitFailed.refuse(format!("object {id} does not end")));
        }
        check_hash(id, kind, &body)?;
        Ok(body)
    }
}

/// `<id> <kind> <size>`, or `<id> missing`.
fn parse_header(line: &[u8], id: ObjectId, kind: Kind) -> Result<usize, ImportError> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let strange = || ImporterCode::GitFailed.refuse(format!("git said {}", escape(line, 120)));
    let rest = text
        .strip_prefix(&id.to_string())
        .and_then(|rest| rest.strip_prefix(' '))
        .ok_or_else(strange)?;
    if rest == "missing" {
        return Err(ImporterCode::ObjectMissing.refuse(format!("{} {id}", kind.word())));
    }
    let (word, size) = rest.split_once(' ').ok_or_else(strange)?;
    if word != kind.word() {
        return Err(ImporterCode::ObjectKind.refuse(format!(
            "{id}: got {}, expected {}",
            escape(word, 20),
            kind.word()
        )));
    }
    size.parse().map_err(|_| strange())
}

/// The hash git names the object by. Content built to collide with other content is refused too.
pub(crate) fn check_hash(id: ObjectId, kind: Kind, body: &[u8]) -> Result<(), ImportError> {
    let mut hasher = Sha1::new();
    hasher.update(kind.header(body.len()));
    hasher.update(body);
    let result = hasher.try_finalize();
    let found = ObjectId::from_bytes((*result.hash()).into());
    if found == id && !result.has_collision() {
        return Ok(());
    }
    Err(ImporterCode::ObjectHashMismatch.refuse(format!(
        "expected {id}, got {found}{}",
        if result.has_collision() {
            " with the mark of a forged collision"
        } else {
            ""
        }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_git_uses() {
        let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391".parse().unwrap();
        assert!(check_hash(empty, Kind::Blob, b"").is_ok());
        assert_eq!(
            check_hash(empty, Kind::Blob, b"x").unwrap_err().code,
            ImporterCode::ObjectHashMismatch
        );
        assert!(check_hash(empty, Kind::Tree, b"").is_err());
    }

    #[test]
    fn an_answer_about_another_object_is_no_answer() {
        let id: ObjectId = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391".parse().unwrap();
        for (line, code) in [
            (format!("{id} missing"), ImporterCode::ObjectMissing),
            (format!("{id} tree 3"), ImporterCode::ObjectKind),
            (format!("{id} blob -1"), ImporterCode::GitFailed),
            (
                format!("{} blob 1", "0".repeat(40)),
                ImporterCode::GitFailed,
            ),
            (String::new(), ImporterCode::GitFailed),
        ] {
            let refused = parse_header(line.as_bytes(), id, Kind::Blob).unwrap_err();
            assert_eq!(refused.code, code, "{line}");
        }
        assert_eq!(
            parse_header(format!("{id} blob 7").as_bytes(), id, Kind::Blob).unwrap(),
            7
        );
    }
}
