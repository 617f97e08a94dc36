use crate::git::{Git, Place, Verb};
use crate::talk::{Cap, Talk};
use crate::{Bases, ImportError, ImporterCode, hash};
use flightproof_core::{ObjectId, escape};
use std::ffi::OsStr;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file's content.
    Blob,
    /// A directory.
    Tree,
    /// A commit.
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

/// Where objects are read from. What comes out has the id and the kind that was asked for.
pub(crate) trait Source {
    /// The content of an object of this kind.
    fn read(&mut self, id: ObjectId, kind: Kind, cap: Cap) -> Result<Vec<u8>, ImportError>;
}

/// Objects by id, through one long-lived git.
#[derive(Debug)]
pub(crate) struct Objects(Talk);

impl Objects {
    pub(crate) fn open(git: &Git, place: Place<'_>) -> Result<Self, ImportError> {
        git.talk(Verb::CatFile, place, &[OsStr::new("--batch")])
            .map(Self)
    }

    /// Asks for an object and reads what git says it is.
    fn ask(&mut self, id: ObjectId) -> Result<Option<(Kind, usize)>, ImportError> {
        self.0.send(format!("{id}\n").as_bytes())?;
        let line = self.0.line()?;
        parse_header(&line, id)
    }

    /// The content that follows a header.
    fn body(&mut self, id: ObjectId, size: usize) -> Result<Vec<u8>, ImportError> {
        let mut body = self.0.exactly(size + 1)?;
        if body.pop() != Some(b'\n') {
            return Err(ImporterCode::GitFailed.refuse(format!("object {id} does not end")));
        }
        Ok(body)
    }
}

impl Source for Objects {
    fn read(&mut self, id: ObjectId, kind: Kind, cap: Cap) -> Result<Vec<u8>, ImportError> {
        let (found, size) = self
            .ask(id)?
            .ok_or_else(|| ImporterCode::ObjectMissing.refuse(format!("{} {id}", kind.word())))?;
        check_kind(id, found, kind)?;
        cap.check(id, kind, size)?;
        let body = self.body(id, size)?;
        hash::check(id, kind, &body)?;
        Ok(body)
    }
}

impl Bases for Objects {
    fn find(&mut self, id: ObjectId, most: usize) -> Result<Option<(Kind, Vec<u8>)>, ImportError> {
        let Some((kind, size)) = self.ask(id)? else {
            return Ok(None);
        };
        let cap = Cap {
            bytes: most,
            code: ImporterCode::BytesOverLimit,
        };
        cap.check(id, kind, size)?;
        Ok(Some((kind, self.body(id, size)?)))
    }
}

/// Refuses an object of another kind than its place says.
pub(crate) fn check_kind(id: ObjectId, found: Kind, expected: Kind) -> Result<(), ImportError> {
    if found == expected {
        return Ok(());
    }
    Err(ImporterCode::ObjectKind.refuse(format!(
        "{id}: got {}, expected {}",
        found.word(),
        expected.word()
    )))
}

impl Cap {
    /// Refuses an object that is larger than what is left.
    pub(crate) fn check(self, id: ObjectId, kind: Kind, size: usize) -> Result<(), ImportError> {
        if size <= self.bytes {
            return Ok(());
        }
        Err(self.code.refuse(format!(
            "{} {id} has {size} bytes, {} are left of the limit",
            kind.word(),
            self.bytes
        )))
    }
}

/// `<id> <kind> <size>`, or `<id> missing`.
fn parse_header(line: &[u8], id: ObjectId) -> Result<Option<(Kind, usize)>, ImportError> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let strange = || ImporterCode::GitFailed.refuse(format!("git said {}", escape(line, 120)));
    let rest = text
        .strip_prefix(&id.to_string())
        .and_then(|rest| rest.strip_prefix(' '))
        .ok_or_else(strange)?;
    if rest == "missing" {
        return Ok(None);
    }
    let (word, size) = rest.split_once(' ').ok_or_else(strange)?;
    let kind = match word {
        "blob" => Kind::Blob,
        "tree" => Kind::Tree,
        "commit" => Kind::Commit,
        "tag" => {
            return Err(ImporterCode::ObjectKind.refuse(format!("{id}: got a tag")));
        }
        _ => return Err(strange()),
    };
    size.parse()
        .map(|size| Some((kind, size)))
        .map_err(|_| strange())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_about_another_object_is_no_answer() {
        let id: ObjectId = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391".parse().unwrap();
        for (line, code) in [
            (format!("{id} tag 3"), ImporterCode::ObjectKind),
            (format!("{id} blob -1"), ImporterCode::GitFailed),
            (format!("{id} glob 1"), ImporterCode::GitFailed),
            (
                format!("{} blob 1", "0".repeat(40)),
                ImporterCode::GitFailed,
            ),
            (String::new(), ImporterCode::GitFailed),
        ] {
            let refused = parse_header(line.as_bytes(), id).unwrap_err();
            assert_eq!(refused.code, code, "{line}");
        }
        let read = |rest: &str| parse_header(format!("{id} {rest}").as_bytes(), id).unwrap();
        assert_eq!(read("missing"), None);
        assert_eq!(read("blob 7"), Some((Kind::Blob, 7)));
        assert_eq!(
            check_kind(id, Kind::Tree, Kind::Blob).unwrap_err().code,
            ImporterCode::ObjectKind
        );
    }
}
