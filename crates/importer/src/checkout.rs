use crate::objects::{Kind, Objects, Source as _};
use crate::scratch::Scratch;
use crate::talk::Cap;
use crate::tree::EntryKind;
use crate::walk::{DEPTH, Shelf};
use crate::{Git, Host, ImportError, ImporterCode, commit, pack, snapshot, tree};
use flightproof_core::{CommitId, ObjectId};
use std::path::Path;

/// One commit of a repository, whole: what somebody needs to work on it elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The commit.
    pub commit: CommitId,
    /// The commit, its trees and its files as a pack of our own, without its history.
    pub pack: Vec<u8>,
    /// Its files as a PAWS1 snapshot.
    pub archive: Vec<u8>,
}

/// Most bytes of the commit object: what the baseline of a capture may have.
const COMMIT: Cap = Cap {
    bytes: 1 << 20,
    code: ImporterCode::BytesOverLimit,
};
/// Most bytes of all objects together: what a snapshot may hold.
const TOTAL_BYTES: usize = 64 << 20;
/// Most objects: as many as a snapshot may have entries.
const OBJECTS: usize = 20_000;

/// Takes a whole commit out of a repository. Every object is hashed again; nothing of the
/// repository is executed or obeyed. `scratch` is an empty folder only we can write; it is emptied
/// again.
///
/// # Errors
/// `UNKNOWN_REVISION`, `SNAPSHOT_OVER_LIMIT`, and those of reading a tree.
pub fn checkout(
    git: &Git,
    host: &Host,
    revision: &str,
    scratch: &Path,
) -> Result<Checkout, ImportError> {
    let asked = host.look_up(git, revision)?;
    let window = Scratch::window(scratch.join("window.git"), &host.objects())?;
    let mut objects = Objects::open(git, window.place())?;
    let commit = asked.finish()?;
    let body = objects.read(commit, Kind::Commit, COMMIT)?;
    let root = commit::tree_of(&body)?;
    let mut shelf = shelve(&mut objects, root)?;
    let archive = snapshot::take(&mut objects, &shelf, root)?.packed.bytes;
    shelf.insert(commit, (Kind::Commit, body));
    let listed = shelf.iter();
    let pack = pack::write(listed.map(|(id, (kind, body))| (*id, *kind, body.as_slice())))?;
    Ok(Checkout {
        commit,
        pack,
        archive,
    })
}

/// Every tree and file below a tree, each once.
fn shelve(objects: &mut Objects, root: ObjectId) -> Result<Shelf, ImportError> {
    let mut shelf = Shelf::new();
    let mut left = TOTAL_BYTES;
    let mut open = vec![(root, Kind::Tree, 0)];
    while let Some((id, kind, depth)) = open.pop() {
        if shelf.contains_key(&id) {
            continue;
        }
        if depth >= DEPTH {
            return Err(ImporterCode::DepthOverLimit.refuse(format!("{DEPTH} below the top")));
        }
        if shelf.len() >= OBJECTS {
            let detail = format!("more than {OBJECTS} objects");
            return Err(ImporterCode::SnapshotOverLimit.refuse(detail));
        }
        let cap = Cap {
            bytes: left,
            code: ImporterCode::SnapshotOverLimit,
        };
        let body = objects.read(id, kind, cap)?;
        left -= body.len();
        if kind == Kind::Tree {
            for entry in tree::parse(&body)? {
                match entry.kind {
                    EntryKind::Directory => open.push((entry.id, Kind::Tree, depth + 1)),
                    // What it names lies in another repository.
                    EntryKind::Gitlink => {}
                    _ => open.push((entry.id, Kind::Blob, depth)),
                }
            }
        }
        shelf.insert(id, (kind, body));
    }
    Ok(shelf)
}
