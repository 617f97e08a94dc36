use crate::{ImportError, ImporterCode};
use flightproof_core::{ObjectId, escape};
use std::collections::HashSet;

/// One entry of a tree, as its bytes say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: EntryKind,
    pub(crate) id: ObjectId,
    /// The mode is spelled as git spells it today. Old repositories hold `100664` and `040000`;
    /// they may stay, and nobody may add one.
    pub(crate) canonical: bool,
}

/// What an entry is, by its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Directory,
    File,
    Executable,
    Symlink,
    Gitlink,
}

impl EntryKind {
    pub(crate) const fn mode(self) -> &'static str {
        match self {
            Self::Directory => "40000",
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
        }
    }

    /// How old repositories spell it.
    const fn old_mode(self) -> &'static str {
        match self {
            Self::Directory => "040000",
            Self::File => "100664",
            other => other.mode(),
        }
    }

    /// Git itself shows `170000` as a submodule and `104755` as an executable, so modes are read
    /// from the bytes and only known ones exist.
    fn read(mode: &[u8]) -> Option<(Self, bool)> {
        Some(match mode {
            b"40000" => (Self::Directory, true),
            b"040000" => (Self::Directory, false),
            b"100644" => (Self::File, true),
            b"100664" => (Self::File, false),
            b"100755" => (Self::Executable, true),
            b"120000" => (Self::Symlink, true),
            b"160000" => (Self::Gitlink, true),
            _ => return None,
        })
    }
}

/// Reads a tree object: `mode SP name NUL id`, in git's order, each name once.
pub(crate) fn parse(body: &[u8]) -> Result<Vec<Entry>, ImportError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (entry, after) = parse_entry(rest)?;
        if let Some(last) = entries.last() {
            check_order(last, &entry)?;
        }
        entries.push(entry);
        rest = after;
    }
    // A file `a` and a directory `a` need not be neighbours: `a`, `a.b`, `a/`.
    let mut names = HashSet::new();
    match entries.iter().find(|entry| !names.insert(&entry.name)) {
        Some(twice) => Err(ImporterCode::TreeDuplicate.refuse(escape(&twice.name, 80))),
        None => Ok(entries),
    }
}

/// The tree object of these entries, as they are and in their order.
pub(crate) fn write(entries: &[Entry]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        let mode = match entry.canonical {
            true => entry.kind.mode(),
            false => entry.kind.old_mode(),
        };
        body.extend_from_slice(mode.as_bytes());
        body.push(b' ');
        body.extend_from_slice(&entry.name);
        body.push(0);
        body.extend_from_slice(entry.id.as_bytes());
    }
    body
}

fn parse_entry(bytes: &[u8]) -> Result<(Entry, &[u8]), ImportError> {
    let (mode, rest) = split_at_byte(bytes, b' ').ok_or_else(|| malformed("no mode"))?;
    let (name, rest) = split_at_byte(rest, 0).ok_or_else(|| malformed("no end of a name"))?;
    let (id, rest) = rest
        .split_first_chunk::<20>()
        .ok_or_else(|| malformed("half an object id"))?;
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || *id == [0; 20] {
        return Err(malformed(format!("entry {}", escape(name, 80))));
    }
    let (kind, canonical) = EntryKind::read(mode).ok_or_else(|| {
        ImporterCode::TreeMode.refuse(format!("{} {}", escape(mode, 20), escape(name, 80)))
    })?;
    let entry = Entry {
        name: name.to_vec(),
        kind,
        id: ObjectId::from_bytes(*id),
        canonical,
    };
    Ok((entry, rest))
}

fn split_at_byte(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|b| *b == byte)?;
    let (before, after) = bytes.split_at_checked(at)?;
    Some((before, after.get(1..)?))
}

/// Git sorts a directory as if its name ended in `/`.
fn check_order(last: &Entry, next: &Entry) -> Result<(), ImportError> {
    let key = |entry: &Entry| {
        let mut key = entry.name.clone();
        if entry.kind == EntryKind::Directory {
            key.push(b'/');
        }
        key
    };
    let code = match key(last).cmp(&key(next)) {
        std::cmp::Ordering::Less => return Ok(()),
        std::cmp::Ordering::Equal => ImporterCode::TreeDuplicate,
        std::cmp::Ordering::Greater => ImporterCode::TreeUnsorted,
    };
    Err(code.refuse(format!(
        "{} after {}",
        escape(&next.name, 80),
        escape(&last.name, 80)
    )))
}

fn malformed(why: impl std::fmt::Display) -> ImportError {
    ImporterCode::TreeMalformed.refuse(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        entries
            .iter()
            .flat_map(|(mode, name)| {
                [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &[7; 20]].concat()
            })
            .collect()
    }

    fn code(entries: &[(&str, &str)]) -> ImporterCode {
        parse(&tree(entries)).unwrap_err().code
    }

    #[test]
    fn directories_sort_as_if_their_names_ended_in_a_slash() {
        assert_eq!(
            parse(&tree(&[
                ("100644", "a.b"),
                ("40000", "a"),
                ("100644", "a0")
            ]))
            .unwrap()
            .len(),
            3
        );
        assert_eq!(
            code(&[("40000", "a"), ("100644", "a.b")]),
            ImporterCode::TreeUnsorted
        );
        assert_eq!(
            code(&[("100644", "b"), ("100644", "a")]),
            ImporterCode::TreeUnsorted
        );
    }

    #[test]
    fn a_name_stands_once_whatever_it_is() {
        assert_eq!(
            code(&[("100644", "a"), ("100644", "a")]),
            ImporterCode::TreeDuplicate
        );
        assert_eq!(
            code(&[("100644", "a"), ("40000", "a")]),
            ImporterCode::TreeDuplicate
        );
        assert_eq!(
            code(&[("100644", "a"), ("100644", "a.b"), ("40000", "a")]),
            ImporterCode::TreeDuplicate
        );
    }

    #[test]
    fn only_modes_git_writes_exist() {
        for mode in [
            "170000",
            "150000",
            "777777777777",
            "104755",
            "100600",
            "100777",
            "0100644",
            "100000",
            "",
            "4",
        ] {
            assert_eq!(code(&[(mode, "a")]), ImporterCode::TreeMode, "{mode}");
        }
        let old = parse(&tree(&[("100664", "a"), ("040000", "b")])).unwrap();
        assert!(old.iter().all(|entry| !entry.canonical));
    }

    #[test]
    fn bytes_that_are_no_tree_are_refused() {
        for bytes in [
            &b"100644"[..],
            b"100644 a",
            b"100644 a\0short",
            b"100644 \0aaaaaaaaaaaaaaaaaaaa",
            b"100644 .\0aaaaaaaaaaaaaaaaaaaa",
            b"100644 ..\0aaaaaaaaaaaaaaaaaaaa",
            b"100644 a/b\0aaaaaaaaaaaaaaaaaaaa",
            b"100644 a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ] {
            assert_eq!(parse(bytes).unwrap_err().code, ImporterCode::TreeMalformed);
        }
        assert!(parse(b"").unwrap().is_empty());
    }
}
