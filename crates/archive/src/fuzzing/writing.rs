use super::code;
use crate::{Extraction, Names, overlay, paar, paws};
use flightproof_core::Digest;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// An archive that somebody wants written, and what was prepared where it goes.
#[derive(Debug, Clone)]
pub struct Scene<'a> {
    /// The archive.
    pub archive: &'a [u8],
    /// By which rules for names.
    pub names: Names,
    /// What is done with it.
    pub place: Place,
    /// What stands beneath the destination already, each at its path.
    pub prepared: Vec<(String, Thing)>,
    /// The answer that was worked out elsewhere, a code or none, if nothing prepared is in the way.
    pub expected: Option<Result<(), &'static str>>,
}

/// What is done with an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A snapshot becomes a new directory.
    Snapshot,
    /// An artifact becomes a new directory.
    Artifact,
    /// A snapshot is laid over a directory that is there.
    Overlay,
}

/// What somebody may have put where a tree is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A link to a directory outside.
    LinkOut,
    /// A link to a file outside.
    LinkToFile,
    /// A link to a directory inside.
    LinkIn,
    /// A link to nothing.
    LinkNowhere,
    /// A pipe nobody reads or writes.
    Pipe,
}

/// The bytes as they are, as a snapshot and as an artifact, by both rules for names.
///
/// # Panics
/// As [`extract_plan`].
pub fn extract_raw(room: &Path, bytes: &[u8]) {
    for place in [Place::Snapshot, Place::Artifact, Place::Overlay] {
        for names in [Names::Strict, Names::Captured] {
            let scene = Scene {
                archive: bytes,
                names,
                place,
                prepared: Vec::new(),
                expected: None,
            };
            extract_plan(room, &scene);
        }
    }
}

/// Writes the archive inside an empty `room`, which is empty again afterwards. What lies outside of
/// the destination is as it was, a refusal leaves nothing, and what is written is what the archive
/// holds, with exact modes and nothing else.
///
/// # Panics
/// One of these does not hold, or the room cannot be used.
pub fn extract_plan(room: &Path, scene: &Scene<'_>) {
    let tree = room.join("inside/tree");
    set_up(room, &tree, scene);
    let before = look(room);
    let found = write(&tree, scene);
    let after = look(room);
    match &found {
        Err(_) => assert_eq!(after, before, "a refusal left something: {found:?}"),
        Ok(files) => check_written(&before, &after, files, scene),
    }
    let in_the_way = scene
        .prepared
        .is_empty()
        .then_some(scene.expected)
        .flatten();
    if let Some(expected) = in_the_way {
        assert_eq!(found.map(drop), expected);
    }
    for name in ["inside", "outside"] {
        fs::remove_dir_all(room.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Paths that were written, whether each may be executed, and the hash of its bytes.
type Written = Vec<(String, bool, Digest)>;

fn write(tree: &Path, scene: &Scene<'_>) -> Result<Written, &'static str> {
    let how = Extraction {
        into: tree,
        names: scene.names,
        expected: None,
        progress: &(),
    };
    let snapshot = match scene.place {
        Place::Artifact => {
            let artifact = code(paar::extract(scene.archive, &how))?;
            let files = artifact.files().iter();
            let files = files.map(|f| (f.path.as_str().to_owned(), f.executable, f.sha256));
            return Ok(files.collect());
        }
        Place::Snapshot => code(paws::extract(scene.archive, &how))?,
        Place::Overlay => {
            let size = scene.archive.len() as u64;
            let announced = announced(scene.archive);
            code(overlay(scene.archive, size, announced, tree, scene.names))?.snapshot
        }
    };
    let entries = snapshot.entries().iter();
    let files = entries.map(|e| (e.path.as_str().to_owned(), e.executable, e.sha256));
    Ok(files.collect())
}

/// The snapshot an archive says it is.
fn announced(archive: &[u8]) -> Digest {
    let manifest = paws::LAYOUT.split(archive).map(|(manifest, _)| manifest);
    let decoded = manifest.and_then(|manifest| paws::decode_manifest(manifest, 0));
    let snapshot = decoded.and_then(paws::Manifest::into_snapshot);
    snapshot.map_or(Digest::from_bytes([0; 32]), |snapshot| {
        snapshot.snapshot_id()
    })
}

fn set_up(room: &Path, tree: &Path, scene: &Scene<'_>) {
    let made = fs::create_dir_all(room.join("inside"))
        .and_then(|()| fs::create_dir_all(room.join("outside/dir")))
        .and_then(|()| fs::write(room.join("outside/file"), "outside"))
        .and_then(|()| fs::write(room.join("outside/dir/file"), "deep outside"));
    made.unwrap_or_else(|e| panic!("the room cannot be used: {e}"));
    if scene.place == Place::Overlay || !scene.prepared.is_empty() {
        fs::create_dir_all(tree).unwrap_or_else(|e| panic!("the room cannot be used: {e}"));
    }
    for (path, thing) in &scene.prepared {
        // Two that exclude each other are as good as the first of them.
        let _ = put(room, &tree.join(path), *thing);
    }
}

fn put(room: &Path, at: &Path, thing: Thing) -> std::io::Result<()> {
    let above = at.parent().unwrap_or(room);
    if !above.starts_with(room) || at.symlink_metadata().is_ok() {
        return Ok(());
    }
    // Through no link: what is prepared lies inside.
    if above.canonicalize().is_ok_and(|real| real != above) {
        return Ok(());
    }
    fs::create_dir_all(above)?;
    match thing {
        Thing::File => fs::write(at, "prepared"),
        Thing::Directory => fs::create_dir(at),
        Thing::LinkOut => symlink(room.join("outside/dir"), at),
        Thing::LinkToFile => symlink(room.join("outside/file"), at),
        Thing::LinkIn => symlink(room.join("inside/tree"), at),
        Thing::LinkNowhere => symlink("nowhere", at),
        Thing::Pipe => {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            Ok(rustix::fs::mknodat(
                rustix::fs::CWD,
                at,
                rustix::fs::FileType::Fifo,
                mode,
                0,
            )?)
        }
    }
}

/// One thing of a file system: its inode, its mode with its kind, and its bytes or where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    inode: u64,
    mode: u32,
    content: Vec<u8>,
}

fn look(room: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut open = vec![room.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            let content = if metadata.is_file() {
                fs::read(&path).unwrap_or_default()
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap_or_default();
                target.into_os_string().into_encoded_bytes()
            } else {
                Vec::new()
            };
            if metadata.is_dir() {
                open.push(path.clone());
            }
            let seen_there = Seen {
                inode: metadata.ino(),
                mode: metadata.mode(),
                content,
            };
            seen.insert(path, seen_there);
        }
    }
    seen
}

const DIRECTORY: u32 = 0o040_755;

fn check_written(
    before: &BTreeMap<PathBuf, Seen>,
    after: &BTreeMap<PathBuf, Seen>,
    files: &Written,
    scene: &Scene<'_>,
) {
    let tree = after.keys().find(|path| path.ends_with("inside/tree"));
    let tree = tree.unwrap_or_else(|| panic!("there is no tree"));
    let mut expected: BTreeMap<PathBuf, (u32, Option<Digest>)> = BTreeMap::new();
    expected.insert(tree.clone(), (DIRECTORY, None));
    for (path, executable, hash) in files {
        assert!(is_harmless(path, scene.names), "{path:?} was written");
        let mode = if *executable { 0o100_755 } else { 0o100_644 };
        let mut above = Path::new(path).parent();
        while let Some(dir) = above.filter(|dir| *dir != Path::new("")) {
            expected.insert(tree.join(dir), (DIRECTORY, None));
            above = dir.parent();
        }
        expected.insert(tree.join(path), (mode, Some(*hash)));
    }
    for (path, there) in after {
        match (expected.get(path), before.get(path)) {
            // A directory that was there stays as it was.
            (Some((DIRECTORY, _)) | None, Some(was)) => assert_eq!(there, was, "{path:?}"),
            (Some((mode, hash)), _) => {
                assert_eq!(there.mode, *mode, "{path:?}");
                let found = hash.map(|_| Digest::of(&there.content));
                assert_eq!(found, *hash, "{path:?}");
            }
            (None, None) => panic!("{path:?} appeared"),
        }
    }
    let lost = before.keys().chain(expected.keys());
    let lost: Vec<_> = lost.filter(|path| !after.contains_key(*path)).collect();
    assert!(lost.is_empty(), "{lost:?} are not there");
}

/// Said once more in another way: no name that git or a terminal takes for something else.
fn is_harmless(path: &str, names: Names) -> bool {
    let mut segments = path.split('/');
    let strange = |c: char| c.is_control() || "\\:\u{202e}\u{200b}".contains(c);
    segments.all(|name| {
        let plain = !matches!(name, "" | "." | "..") && !name.eq_ignore_ascii_case(".git");
        plain && name.len() < 256 && (names == Names::Captured || !name.contains(strange))
    })
}
