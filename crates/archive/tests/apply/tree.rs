//! Trees in memory and on a disk.

use flightproof_archive::paws::{self, Snapshot};
use flightproof_core::RelPath;
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Path to executable bit and bytes.
pub(crate) type Tree = BTreeMap<String, (bool, Vec<u8>)>;

pub(crate) fn tree(files: &[(&str, bool, &str)]) -> Tree {
    let files = files.iter();
    files
        .map(|(path, executable, content)| {
            (
                (*path).to_owned(),
                (*executable, content.as_bytes().to_vec()),
            )
        })
        .collect()
}

/// A base with everything that can happen to a file.
pub(crate) fn base() -> Tree {
    tree(&[
        ("dir/change", false, "change: old"),
        ("dir/stays", false, "stays"),
        ("gone", false, "gone: old"),
        ("mode", false, "mode: the same bytes"),
        ("old/deep/last", true, "last: old"),
    ])
}

pub(crate) fn target() -> Tree {
    tree(&[
        ("dir/added", true, "added: new"),
        ("dir/change", false, "change: new"),
        ("dir/stays", false, "stays"),
        ("mode", true, "mode: the same bytes"),
        ("new/deep/first", false, "first: new"),
    ])
}

pub(crate) fn packed(tree: &Tree) -> paws::Packed {
    let files = tree
        .iter()
        .map(|(path, (executable, content))| (RelPath::new(path).unwrap(), *executable, content));
    paws::pack("w", files).unwrap()
}

pub(crate) fn snapshot(tree: &Tree) -> Snapshot {
    packed(tree).snapshot
}

/// The archive of what leads from one to the other.
pub(crate) fn changeset(base: &Tree, target: &Tree) -> Vec<u8> {
    let target = packed(target);
    let read = paws::read(&target.bytes).unwrap();
    paws::pack_changeset(&snapshot(base), &read).unwrap().1
}

/// A directory on a file system without a disk, where there is one: these tests are many.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        TempDir::new_in(memory).unwrap()
    } else {
        TempDir::new().unwrap()
    }
}

pub(crate) fn plant(root: &Path, tree: &Tree) {
    for (path, (executable, content)) in tree {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let mode = if *executable { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
}

/// A directory with the base in it and beside it the archive of a changeset.
pub(crate) struct Bench {
    pub(crate) place: TempDir,
}

impl Bench {
    pub(crate) fn new(base: &Tree, archive: &[u8]) -> Self {
        let place = scratch();
        fs::create_dir(place.path().join("root")).unwrap();
        plant(&place.path().join("root"), base);
        fs::write(place.path().join("changes"), archive).unwrap();
        Self { place }
    }

    /// The usual base with the usual changeset.
    pub(crate) fn usual() -> Self {
        Self::new(&base(), &changeset(&base(), &target()))
    }

    pub(crate) fn root(&self) -> std::path::PathBuf {
        self.place.path().join("root")
    }

    pub(crate) fn archive(&self) -> File {
        File::open(self.place.path().join("changes")).unwrap()
    }

    pub(crate) fn seen(&self) -> BTreeMap<String, Seen> {
        seen(&self.root())
    }
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Directory(u32),
    File(u32, Vec<u8>),
    Other,
}

/// Everything below a directory, with modes, staging and all.
pub(crate) fn seen(root: &Path) -> BTreeMap<String, Seen> {
    let mut out = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let found = fs::symlink_metadata(&path).unwrap();
            let mode = found.permissions().mode() & 0o7777;
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let what = if found.is_dir() {
                open.push(path);
                Seen::Directory(mode)
            } else if found.is_file() && found.len() > 1 << 30 {
                Seen::File(mode, format!("{} bytes", found.len()).into_bytes())
            } else if found.is_file() {
                Seen::File(mode, fs::read(path).unwrap())
            } else {
                Seen::Other
            };
            out.insert(name, what);
        }
    }
    out
}

/// What [`seen`] would say of a tree alone in its directory.
pub(crate) fn expected(tree: &Tree) -> BTreeMap<String, Seen> {
    let mut out = BTreeMap::new();
    for (path, (executable, content)) in tree {
        for (end, _) in path.match_indices('/') {
            out.insert(path[..end].to_owned(), Seen::Directory(0o755));
        }
        let mode = if *executable { 0o755 } else { 0o644 };
        out.insert(path.clone(), Seen::File(mode, content.clone()));
    }
    out
}
