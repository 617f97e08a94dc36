use crate::objects::{Kind, Source};
use crate::talk::Cap;
use crate::tree::{Entry, EntryKind};
use crate::{ImportError, ImporterCode, name, tree};
use flightproof_core::{Bytes, ObjectId, PathFault, RelPath, escape};
use flightproof_evidence::{Change, FileState};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Entries of both trees that are looked at. Nine small trees can stand for ten million paths.
pub(crate) const ENTRIES: usize = 16_384;
/// Paths that differ.
pub(crate) const CHANGES: usize = 1_024;
/// Objects of the change, its commit included.
pub(crate) const OBJECTS: usize = 1_024;
/// Bytes of the candidate's new content, each use of an object counted: 2 MiB.
pub(crate) const NEW_BYTES: usize = 2 << 20;
/// Bytes of what the change replaces: 16 MiB, for a small edit of a large file.
pub(crate) const OLD_BYTES: usize = 16 << 20;
/// Bytes of the large files that are granted, before and after: 64 MiB each, what a snapshot holds.
pub(crate) const LARGE_BYTES: usize = 64 << 20;
/// Bytes of one of them: 16 MiB, likewise.
const LARGE_FILE: usize = 16 << 20;
/// Names in one path.
pub(crate) const DEPTH: usize = 64;

/// Objects that were read and hashed.
pub(crate) type Shelf = BTreeMap<ObjectId, (Kind, Vec<u8>)>;

/// What lies between two trees.
#[derive(Debug)]
pub(crate) struct Difference {
    /// Ordered by path.
    pub(crate) changes: Vec<Change>,
    /// Objects of the baseline at changed places.
    pub(crate) old: Shelf,
    /// Objects of the candidate at changed places.
    pub(crate) new: Shelf,
}

/// Compares two trees, walking both at once and only where they differ. Files that are `large` are
/// charged to limits of their own.
pub(crate) fn compare(
    objects: &mut dyn Source,
    old: ObjectId,
    new: ObjectId,
    large: &dyn Fn(&RelPath) -> bool,
) -> Result<Difference, ImportError> {
    let mut walk = Walk {
        objects,
        large,
        changes: Vec::new(),
        old: Side::new(OLD_BYTES, ENTRIES),
        // The commit is one of the objects.
        new: Side::new(NEW_BYTES, OBJECTS - 1),
        entries_left: ENTRIES,
    };
    walk.directory("", 0, Some(old), Some(new))?;
    let mut changes = walk.changes;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Difference {
        changes,
        old: walk.old.shelf,
        new: walk.new.shelf,
    })
}

struct Walk<'a> {
    objects: &'a mut dyn Source,
    large: &'a dyn Fn(&RelPath) -> bool,
    changes: Vec<Change>,
    old: Side,
    new: Side,
    entries_left: usize,
}

/// One of the two trees: what was read of it, and what may still be.
struct Side {
    shelf: Shelf,
    bytes_left: usize,
    large_left: usize,
    objects: usize,
}

/// What the bytes of an object are charged to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purse {
    Usual,
    Large,
}

impl Side {
    fn new(bytes_left: usize, objects: usize) -> Self {
        Self {
            shelf: Shelf::new(),
            bytes_left,
            large_left: LARGE_BYTES,
            objects,
        }
    }

    fn read(
        &mut self,
        from: &mut dyn Source,
        (id, kind): (ObjectId, Kind),
        purse: Purse,
    ) -> Result<Vec<u8>, ImportError> {
        let bytes = match purse {
            Purse::Usual => self.bytes_left,
            Purse::Large => self.large_left.min(LARGE_FILE),
        };
        let cap = Cap {
            bytes,
            code: ImporterCode::BytesOverLimit,
        };
        let body = match self.shelf.get(&id) {
            Some((known, body)) if *known == kind && body.len() <= cap.bytes => body.clone(),
            // Asking git again words the refusal of what is over the limit or of another kind.
            _ => from.read(id, kind, cap)?,
        };
        let left = match purse {
            Purse::Usual => &mut self.bytes_left,
            Purse::Large => &mut self.large_left,
        };
        *left = left.saturating_sub(body.len());
        self.shelf.insert(id, (kind, body.clone()));
        if self.shelf.len() > self.objects {
            let detail = format!("more than {} trees and files", self.objects);
            return Err(ImporterCode::ObjectsOverLimit.refuse(detail));
        }
        Ok(body)
    }

    fn list(
        &mut self,
        from: &mut dyn Source,
        id: Option<ObjectId>,
    ) -> Result<Vec<Entry>, ImportError> {
        match id {
            Some(id) => tree::parse(&self.read(from, (id, Kind::Tree), Purse::Usual)?),
            None => Ok(Vec::new()),
        }
    }

    fn file(
        &mut self,
        from: &mut dyn Source,
        entry: Option<&Entry>,
        purse: Purse,
    ) -> Result<Option<FileState>, ImportError> {
        let Some(entry) = entry.filter(|e| is_file(e)) else {
            return Ok(None);
        };
        Ok(Some(FileState {
            executable: entry.kind == EntryKind::Executable,
            content: Bytes(self.read(from, (entry.id, Kind::Blob), purse)?),
        }))
    }
}

impl Walk<'_> {
    fn directory(
        &mut self,
        at: &str,
        depth: usize,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
    ) -> Result<(), ImportError> {
        if depth >= DEPTH {
            return Err(ImporterCode::DepthOverLimit.refuse(format!("{DEPTH} below the top")));
        }
        let before = self.old.list(self.objects, old)?;
        let after = self.new.list(self.objects, new)?;
        self.charge(before.len() + after.len())?;
        if new.is_some() && after.is_empty() {
            return Err(ImporterCode::EmptyTree.refuse(format!("\"{}\"", escape(at, 200))));
        }
        let before = by_name(&before);
        let after = by_name(&after);
        check_siblings(at, &before, &after)?;
        let names: BTreeSet<&[u8]> = before.keys().chain(after.keys()).copied().collect();
        for name in names {
            let (b, a) = (before.get(name).copied(), after.get(name).copied());
            if b != a {
                self.entry(&join(at, name)?, depth, b, a)?;
            }
        }
        Ok(())
    }

    /// One name that differs.
    fn entry(
        &mut self,
        path: &RelPath,
        depth: usize,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) -> Result<(), ImportError> {
        for entry in [old, new].into_iter().flatten() {
            check_kind(path, entry)?;
        }
        if let Some(entry) = new.filter(|entry| !entry.canonical) {
            let detail = format!("{path}: an old spelling of {}", entry.kind.mode());
            return Err(ImporterCode::TreeMode.refuse(detail));
        }
        let (old_dir, new_dir) = (directory_of(old), directory_of(new));
        if (old_dir.is_some() || new_dir.is_some()) && old_dir != new_dir {
            self.directory(path.as_str(), depth + 1, old_dir, new_dir)?;
        }
        if [old, new].into_iter().flatten().any(is_file) {
            self.change(path, old, new)?;
        }
        Ok(())
    }

    fn change(
        &mut self,
        path: &RelPath,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) -> Result<(), ImportError> {
        if self.changes.len() >= CHANGES {
            return Err(ImporterCode::ChangesOverLimit.refuse(format!("more than {CHANGES}")));
        }
        let purse = match (self.large)(path) {
            true => Purse::Large,
            false => Purse::Usual,
        };
        let change = Change {
            path: path.clone(),
            old: self.old.file(self.objects, old, purse)?,
            new: self.new.file(self.objects, new, purse)?,
        };
        self.changes.push(change);
        Ok(())
    }

    fn charge(&mut self, entries: usize) -> Result<(), ImportError> {
        self.entries_left = self
            .entries_left
            .checked_sub(entries)
            .ok_or_else(|| ImporterCode::EntriesOverLimit.refuse(format!("more than {ENTRIES}")))?;
        Ok(())
    }
}

fn by_name(entries: &[Entry]) -> BTreeMap<&[u8], &Entry> {
    entries.iter().map(|e| (e.name.as_slice(), e)).collect()
}

fn is_file(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::File | EntryKind::Executable)
}

fn directory_of(entry: Option<&Entry>) -> Option<ObjectId> {
    entry
        .filter(|entry| entry.kind == EntryKind::Directory)
        .map(|entry| entry.id)
}

fn check_kind(path: &RelPath, entry: &Entry) -> Result<(), ImportError> {
    match entry.kind {
        EntryKind::Symlink => Err(ImporterCode::SymlinkChanged.refuse(path)),
        EntryKind::Gitlink => Err(ImporterCode::GitlinkChanged.refuse(path)),
        _ => Ok(()),
    }
}

/// Names at which the candidate brings something into a directory, alone and against their neighbours.
fn check_siblings(
    at: &str,
    before: &BTreeMap<&[u8], &Entry>,
    after: &BTreeMap<&[u8], &Entry>,
) -> Result<(), ImportError> {
    let changed = after
        .iter()
        .filter(|(name, entry)| before.get(*name) != Some(entry));
    let changed: BTreeSet<&[u8]> = changed.map(|(name, _)| *name).collect();
    for name in &changed {
        name::check_new(name)?;
    }
    check_collisions(before, after, &changed)?;
    if is_repository(after) && !is_repository(before) {
        return Err(ImporterCode::NestedRepository.refuse(format!("\"{}\"", escape(at, 200))));
    }
    Ok(())
}

/// Whether git finds a repository in a directory of these entries, on some file system. Objects and
/// references may lie elsewhere, where `commondir` says.
fn is_repository(side: &BTreeMap<&[u8], &Entry>) -> bool {
    let names = side
        .keys()
        .map(|name| name::fold(&String::from_utf8_lossy(name)));
    let names: BTreeSet<String> = names.collect();
    let has = |name: &str| names.contains(name);
    has("head") && (has("commondir") || (has("objects") && has("refs")))
}

/// Two old names that clash may stay: real repositories have `xt_TCPMSS.h` and `xt_tcpmss.h`. A working
/// tree takes a change of one of them, not of both.
fn check_collisions(
    before: &BTreeMap<&[u8], &Entry>,
    after: &BTreeMap<&[u8], &Entry>,
    changed: &BTreeSet<&[u8]>,
) -> Result<(), ImportError> {
    let is_new = |name: &&[u8]| !before.contains_key(name);
    if changed.len() < 2 && !changed.iter().any(is_new) {
        return Ok(());
    }
    let mut folded: HashMap<String, Vec<&[u8]>> = HashMap::new();
    for name in after.keys() {
        let key = name::fold(&String::from_utf8_lossy(name));
        folded.entry(key).or_default().push(name);
    }
    let clash = folded.values().find(|names| {
        let touched = names.iter().filter(|name| changed.contains(*name)).count();
        touched > 1 || (names.len() > 1 && names.iter().any(is_new))
    });
    match clash {
        Some(names) => {
            let shown: Vec<String> = names.iter().map(|n| escape(n, 80)).collect();
            Err(ImporterCode::NameCollision.refuse(shown.join(" and ")))
        }
        None => Ok(()),
    }
}

/// The path of a name in a directory.
pub(crate) fn join(at: &str, name: &[u8]) -> Result<RelPath, ImportError> {
    let shown = || format!("{}/{}", escape(at, 120), escape(name, 80));
    let text = std::str::from_utf8(name)
        .map_err(|_| ImporterCode::PathUnfit.refuse(format!("{}: not UTF-8", shown())))?;
    let path = if at.is_empty() {
        text.to_owned()
    } else {
        format!("{at}/{text}")
    };
    RelPath::new(&path).map_err(|fault| match fault {
        PathFault::TooLong => ImporterCode::PathTooLong.refuse(format!("{}: {fault}", shown())),
        _ => ImporterCode::PathUnfit.refuse(format!("{}: {fault}", shown())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, id: u8) -> Entry {
        Entry {
            kind: EntryKind::File,
            canonical: true,
            name: name.as_bytes().to_vec(),
            id: ObjectId::from_bytes([id; 20]),
        }
    }

    fn siblings(before: &[(&str, u8)], after: &[(&str, u8)]) -> Result<(), ImporterCode> {
        let entries = |side: &[(&str, u8)]| -> Vec<Entry> {
            side.iter().map(|(name, id)| entry(name, *id)).collect()
        };
        let (before, after) = (entries(before), entries(after));
        check_siblings("", &by_name(&before), &by_name(&after)).map_err(|e| e.code)
    }

    #[test]
    fn names_that_fold_to_one_collide_where_one_is_new_or_both_are_touched() {
        let clash = Err(ImporterCode::NameCollision);
        for [old, new] in [
            ["stra\u{df}e", "STRA\u{1e9e}E"],
            ["STRA\u{1e9e}E", "strasse"],
            ["stra\u{df}e", "STRASSE"],
            ["README", "readme"],
            ["\u{e9}", "\u{c9}"],
            ["\u{3a3}", "\u{3c2}"],
        ] {
            assert_eq!(
                siblings(&[(old, 1)], &[(old, 1), (new, 1)]),
                clash,
                "{old} {new}"
            );
            assert_eq!(siblings(&[], &[(old, 1), (new, 1)]), clash, "{old} {new}");
            let both = [(old, 1), (new, 1)];
            assert_eq!(siblings(&both, &[(old, 2), (new, 2)]), clash, "{old} {new}");
            assert_eq!(
                siblings(&both, &[(old, 2), (new, 1)]),
                Ok(()),
                "{old} {new}"
            );
            assert_eq!(siblings(&both, &[(new, 2)]), Ok(()), "{old} {new}");
            assert_eq!(siblings(&[(old, 1)], &[(new, 1)]), Ok(()), "{old} {new}");
        }
        assert_eq!(siblings(&[("a", 1)], &[("a", 2), ("b", 1)]), Ok(()));
    }
}
