//! Large files of a commit, which travel beside its bundle as a PAWS1 changeset.
//!
//! The bundle brings the commit, its trees and all other files; the trees name the large ones by their
//! ids. So a changeset can only bring what the commit says: its files are put into the commit's tree by
//! their content, and the tree must keep its id.

use crate::objects::{Kind, Source};
use crate::pack::Object;
use crate::talk::Cap;
use crate::tree::{self, EntryKind};
use crate::walk::DEPTH;
use crate::{Grants, ImportError, ImporterCode, changeset, hash, walk};
use flightproof_archive::paws;
use flightproof_core::{ObjectId, RelPath};
use flightproof_evidence::Change;

/// Most bytes of a changeset: its files, and 1 MiB for what is said of them.
pub(crate) const MOST: usize = walk::LARGE_BYTES + (1 << 20);

/// What a changeset brings.
#[derive(Debug)]
pub(crate) struct Freight<'a> {
    bytes: &'a [u8],
    /// Ascending by path.
    files: Vec<Item<'a>>,
}

#[derive(Debug)]
struct Item<'a> {
    path: RelPath,
    kind: EntryKind,
    id: ObjectId,
    content: &'a [u8],
}

impl<'a> Freight<'a> {
    /// Reads a changeset and verifies every byte of it.
    pub(crate) fn read(bytes: &'a [u8], grants: &Grants) -> Result<Self, ImportError> {
        if bytes.len() > MOST {
            let detail = format!("a changeset of {} bytes, at most {MOST}", bytes.len());
            return Err(ImporterCode::BytesOverLimit.refuse(detail));
        }
        let delivered = paws::read_changeset(bytes)
            .map_err(|e| ImporterCode::ChangesetMalformed.refuse(e.to_string()))?;
        let count = delivered.changeset.changes().len();
        if count > walk::CHANGES {
            let detail = format!("a changeset of {count} files, at most {}", walk::CHANGES);
            return Err(ImporterCode::ChangesOverLimit.refuse(detail));
        }
        let mut files = Vec::new();
        for (entry, content) in delivered.files() {
            if !grants.is_large(&entry.path) {
                return Err(ImporterCode::LargeNotGranted.refuse(&entry.path));
            }
            files.push(Item {
                path: entry.path.clone(),
                kind: match entry.executable {
                    true => EntryKind::Executable,
                    false => EntryKind::File,
                },
                id: hash::id_of(Kind::Blob, content)?,
                content,
            });
        }
        if files.is_empty() {
            return Err(differs("it brings no file"));
        }
        Ok(Self { bytes, files })
    }

    /// Refuses files that do not make the tree what it is, each in its place.
    pub(crate) fn check_tree(
        &self,
        trees: &mut dyn Source,
        root: ObjectId,
    ) -> Result<(), ImportError> {
        let places: Vec<_> = self
            .files
            .iter()
            .map(|item| (item.path.as_str(), item))
            .collect();
        let rebuilt = rebuild(trees, root, &places, 0)?;
        if rebuilt == root {
            return Ok(());
        }
        Err(differs(format!(
            "with its files the tree is {rebuilt}, the commit's is {root}"
        )))
    }

    /// Refuses a changeset that says anything else than what the commit does to these files.
    pub(crate) fn check_same(&self, changes: &[Change]) -> Result<(), ImportError> {
        let carried = |change: &&Change| {
            let place = |item: &Item<'_>| item.path.cmp(&change.path);
            self.files.binary_search_by(place).is_ok()
        };
        let ours =
            changeset::pack(changes.iter().filter(carried)).map_err(|e| differs(e.to_string()))?;
        if ours.1 == self.bytes {
            return Ok(());
        }
        Err(differs("it says more of its files than the commit does"))
    }

    /// The files as objects.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (ObjectId, Object)> {
        self.files.iter().map(|item| {
            let object = Object {
                kind: Kind::Blob,
                body: item.content.to_vec(),
            };
            (item.id, object)
        })
    }
}

/// The large files of a change as a changeset; `None` if there are none.
pub(crate) fn pack(changes: &[Change], grants: &Grants) -> Result<Option<Vec<u8>>, ImportError> {
    let large: Vec<&Change> = changes.iter().filter(|c| travels(c, grants)).collect();
    if large.is_empty() {
        return Ok(None);
    }
    bring(large.into_iter()).map(Some)
}

/// The changeset of these changes, as it travels beside a bundle; `None` of none. Each brings a file,
/// and they are in the order of their paths.
///
/// # Errors
/// `BYTES_OVER_LIMIT`.
pub fn changeset_of(changes: &[Change]) -> Result<Option<Vec<u8>>, ImportError> {
    match changes {
        [] => Ok(None),
        some => bring(some.iter()).map(Some),
    }
}

fn bring<'a>(changes: impl Iterator<Item = &'a Change> + Clone) -> Result<Vec<u8>, ImportError> {
    let packed = changeset::pack(changes);
    let (_, bytes) = packed.map_err(|e| ImporterCode::BytesOverLimit.refuse(e.to_string()))?;
    Ok(bytes)
}

/// Whether a change's content travels beside the bundle.
pub(crate) fn travels(change: &Change, grants: &Grants) -> bool {
    let content = |file: &Option<flightproof_evidence::FileState>| {
        file.as_ref().map(|file| file.content.clone())
    };
    change.new.is_some()
        && content(&change.old) != content(&change.new)
        && grants.is_large(&change.path)
}

/// The id of a directory with these files put into it by their paths in it, ascending.
fn rebuild(
    trees: &mut dyn Source,
    id: ObjectId,
    places: &[(&str, &Item<'_>)],
    depth: usize,
) -> Result<ObjectId, ImportError> {
    if depth >= DEPTH {
        return Err(ImporterCode::DepthOverLimit.refuse(format!("{DEPTH} below the top")));
    }
    let mut entries = tree::parse(&trees.read(id, Kind::Tree, TREE)?)?;
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    for group in places.chunk_by(|a, b| first(a.0) == first(b.0)) {
        let Some((path, item)) = group.first() else {
            continue;
        };
        let name = first(path);
        let missing = || differs(format!("the commit has no file {}", item.path));
        let entry = entries
            .iter_mut()
            .find(|entry| entry.name == name.as_bytes());
        let entry = entry.ok_or_else(missing)?;
        if *path == name {
            (entry.kind, entry.id) = (item.kind, item.id);
        } else if entry.kind == EntryKind::Directory {
            let below: Vec<_> = group
                .iter()
                .filter_map(|(path, item)| Some((path.split_once('/')?.1, *item)))
                .collect();
            entry.id = rebuild(trees, entry.id, &below, depth + 1)?;
        } else {
            return Err(missing());
        }
    }
    hash::id_of(Kind::Tree, &tree::write(&entries))
}

/// Most bytes of one directory: what all new ones together may have.
const TREE: Cap = Cap {
    bytes: walk::NEW_BYTES,
    code: ImporterCode::BytesOverLimit,
};

fn differs(why: impl std::fmt::Display) -> ImportError {
    ImporterCode::ChangesetDiffers.refuse(why)
}
