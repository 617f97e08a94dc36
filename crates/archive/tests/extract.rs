//! What is written, and that nothing is left of what was refused.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made is a failed test"
)]

use flightproof_archive::paws::{Packed, pack, read};
use flightproof_archive::{ArchiveCode, ArchiveError, Extracted, Names, extract, overlay};
use flightproof_core::{Digest, RelPath};
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;

fn packed(files: &[(&str, bool, &str)]) -> Packed {
    let files = files
        .iter()
        .map(|(p, x, c)| (RelPath::new(p).unwrap(), *x, *c));
    pack("w", files).unwrap()
}

fn tree() -> Packed {
    packed(&[
        ("a-b/x", false, "sorts before a/"),
        ("a/deep/er/run", true, "#!"),
        ("a/file", false, "hello"),
        ("empty", false, ""),
    ])
}

fn extracted(packed: &Packed, into: &Path) -> Result<Extracted, ArchiveError> {
    let size = packed.bytes.len() as u64;
    extract(
        packed.bytes.as_slice(),
        size,
        packed.snapshot.snapshot_id(),
        into,
        Names::Strict,
    )
}

fn overlaid(packed: &Packed, onto: &Path) -> Result<Extracted, ArchiveError> {
    let size = packed.bytes.len() as u64;
    overlay(
        packed.bytes.as_slice(),
        size,
        packed.snapshot.snapshot_id(),
        onto,
        Names::Strict,
    )
}

fn code<T: std::fmt::Debug>(result: Result<T, ArchiveError>) -> ArchiveCode {
    result.unwrap_err().code
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_tree_is_written_whole_with_exact_modes_whatever_the_umask() {
    let root = TempDir::new().unwrap();
    let into = root.path().join("tree");
    let old = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let done = extracted(&tree(), &into);
    rustix::process::umask(old);
    let done = done.unwrap();
    assert_eq!((done.files, &done.snapshot), (4, &tree().snapshot));
    assert_eq!(fs::read_to_string(into.join("a/file")).unwrap(), "hello");
    assert_eq!(
        fs::read_to_string(into.join("a-b/x")).unwrap(),
        "sorts before a/"
    );
    assert_eq!(fs::read(into.join("empty")).unwrap(), b"");
    for (path, expected) in [
        ("", 0o755),
        ("a", 0o755),
        ("a/deep/er", 0o755),
        ("a/file", 0o644),
        ("a/deep/er/run", 0o755),
    ] {
        assert_eq!(mode(&into.join(path)), expected, "{path}");
    }
    assert_eq!(names(root.path()), ["tree"]);
}

#[test]
fn an_empty_tree_is_an_empty_directory() {
    let root = TempDir::new().unwrap();
    assert_eq!(
        extracted(&packed(&[]), &root.path().join("t"))
            .unwrap()
            .files,
        0
    );
    assert_eq!(names(&root.path().join("t")), [""; 0]);
}

#[test]
fn a_destination_that_exists_is_refused_whatever_it_is() {
    let root = TempDir::new().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("dir")).unwrap();
    fs::write(at("file"), "").unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    symlink(at("dir"), at("link")).unwrap();
    for name in ["dir", "file", "dangling", "link"] {
        let refused = code(extracted(&tree(), &at(name)));
        assert_eq!(refused, ArchiveCode::DestinationExists, "{name}");
    }
    assert_eq!(names(root.path()), ["dangling", "dir", "file", "link"]);
    assert_eq!(names(&at("dir")), [""; 0]);
}

#[test]
fn a_destination_without_parent_or_name_is_the_callers_fault() {
    let root = TempDir::new().unwrap();
    assert_eq!(
        code(extracted(&tree(), &root.path().join("no/tree"))),
        ArchiveCode::Io
    );
    assert_eq!(code(extracted(&tree(), Path::new("/"))), ArchiveCode::Io);
}

#[test]
fn another_tree_than_the_announced_one_is_refused() {
    let root = TempDir::new().unwrap();
    let tree = tree();
    let other = packed(&[("a", false, "x")]).snapshot.snapshot_id();
    let size = tree.bytes.len() as u64;
    let refused = extract(
        tree.bytes.as_slice(),
        size,
        other,
        &root.path().join("t"),
        Names::Strict,
    );
    assert_eq!(code(refused), ArchiveCode::SnapshotUnexpected);
    assert_eq!(names(root.path()), [""; 0]);
}

#[test]
fn a_size_that_is_a_lie_is_refused() {
    let root = TempDir::new().unwrap();
    let tree = tree();
    let length = tree.bytes.len() as u64;
    let with = |size| {
        let id = tree.snapshot.snapshot_id();
        code(extract(
            tree.bytes.as_slice(),
            size,
            id,
            &root.path().join("t"),
            Names::Strict,
        ))
    };
    assert_eq!(with(length - 1), ArchiveCode::PayloadTruncated);
    assert_eq!(with(length + 1), ArchiveCode::TrailingBytes);
    assert_eq!(with(20), ArchiveCode::ManifestTruncated);
    assert_eq!(with(500 << 20), ArchiveCode::TrailingBytes);
    assert_eq!(with((500 << 20) + 1), ArchiveCode::ArchiveTooLarge);
    assert_eq!(with(0), ArchiveCode::BufferEmpty);
    assert_eq!(names(root.path()), [""; 0]);
}

/// A source that hands out one byte at a time and breaks after some.
struct Dripping<'a> {
    bytes: &'a [u8],
    error: Option<std::io::ErrorKind>,
}

impl Read for Dripping<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = to.len().min(1);
        match (self.bytes.is_empty(), self.error) {
            (true, Some(kind)) => Err(kind.into()),
            _ => self.bytes.read(&mut to[..count]),
        }
    }
}

#[test]
fn the_source_may_come_byte_by_byte_and_may_break_off_anywhere() {
    let root = TempDir::new().unwrap();
    let into = root.path().join("t");
    let tree = tree();
    let take = |length: usize, error| {
        let source = Dripping {
            bytes: &tree.bytes[..length],
            error,
        };
        extract(
            source,
            tree.bytes.len() as u64,
            tree.snapshot.snapshot_id(),
            &into,
            Names::Strict,
        )
    };
    for length in 0..tree.bytes.len() {
        let broken = code(take(length, Some(std::io::ErrorKind::BrokenPipe)));
        assert_eq!(broken, ArchiveCode::Io, "{length}");
        let ended = code(take(length, None));
        let expected = [
            ArchiveCode::BufferEmpty,
            ArchiveCode::ShortHeader,
            ArchiveCode::ManifestTruncated,
            ArchiveCode::PayloadTruncated,
        ];
        assert!(expected.contains(&ended), "{length}: {ended:?}");
        assert_eq!(names(root.path()), [""; 0], "{length}");
    }
    take(tree.bytes.len(), None).unwrap();
    assert_eq!(names(root.path()), ["t"]);
}

#[test]
fn nothing_beyond_the_size_is_read() {
    let root = TempDir::new().unwrap();
    let tree = tree();
    let longer = [&tree.bytes[..], b"next"].concat();
    let mut source = longer.as_slice();
    let size = tree.bytes.len() as u64;
    let into = root.path().join("t");
    extract(
        &mut source,
        size,
        tree.snapshot.snapshot_id(),
        &into,
        Names::Strict,
    )
    .unwrap();
    assert_eq!(source, b"next");
}

/// Hands out bytes in pieces of one length.
struct Pieces<'a, 'b>(&'a mut &'b [u8], usize);

impl Read for Pieces<'_, '_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let most = to.len().min(self.1);
        self.0.read(&mut to[..most])
    }
}

#[test]
fn nothing_beyond_the_size_is_read_however_the_bytes_come() {
    let root = TempDir::new().unwrap();
    let tree = tree();
    let longer = [&tree.bytes[..], b"next"].concat();
    for length in 1..30 {
        let mut source = longer.as_slice();
        extract(
            Pieces(&mut source, length),
            tree.bytes.len() as u64,
            tree.snapshot.snapshot_id(),
            &root.path().join(length.to_string()),
            Names::Strict,
        )
        .unwrap();
        assert_eq!(source, b"next", "{length}");
    }
}

#[test]
fn an_overlay_replaces_and_adds_and_touches_nothing_else() {
    let root = TempDir::new().unwrap();
    let onto = root.path().join("t");
    extracted(&tree(), &onto).unwrap();
    fs::set_permissions(onto.join("a/file"), Permissions::from_mode(0o600)).unwrap();
    let linked = root.path().join("linked");
    fs::hard_link(onto.join("a/file"), &linked).unwrap();
    let files = [("a/file", true, "new"), ("new/dir/x", false, "added")];
    assert_eq!(overlaid(&packed(&files), &onto).unwrap().files, 2);
    assert_eq!(fs::read_to_string(onto.join("a/file")).unwrap(), "new");
    assert_eq!(mode(&onto.join("a/file")), 0o755);
    assert_eq!(fs::read_to_string(onto.join("new/dir/x")).unwrap(), "added");
    assert_eq!(mode(&onto.join("new/dir")), 0o755);
    assert_eq!(
        fs::read_to_string(onto.join("a-b/x")).unwrap(),
        "sorts before a/"
    );
    assert_eq!(names(&onto), ["a", "a-b", "empty", "new"]);
    // Replaced, not written into: another name of the old file keeps the old bytes.
    assert_eq!(fs::read_to_string(linked).unwrap(), "hello");
}

#[test]
fn an_overlay_that_is_refused_changes_nothing() {
    let root = TempDir::new().unwrap();
    let onto = root.path().join("t");
    extracted(&tree(), &onto).unwrap();
    let mut bad = packed(&[("a/file", false, "new"), ("empty", false, "new too")]);
    *bad.bytes.last_mut().unwrap() ^= 1;
    assert_eq!(
        code(overlaid(&bad, &onto)),
        ArchiveCode::PayloadHashMismatch
    );
    assert_eq!(fs::read_to_string(onto.join("a/file")).unwrap(), "hello");
    assert_eq!(names(&onto), ["a", "a-b", "empty"]);
}

#[test]
fn an_overlay_goes_through_no_link_and_replaces_only_files() {
    let root = TempDir::new().unwrap();
    let outside = root.path().join("outside");
    let onto = root.path().join("t");
    fs::create_dir_all(onto.join("dir")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "untouched").unwrap();
    symlink(&outside, onto.join("link")).unwrap();
    symlink(outside.join("x"), onto.join("file-link")).unwrap();
    fs::write(onto.join("file"), "untouched").unwrap();
    for path in ["link/x", "link/new", "file-link", "dir", "file/x", "link"] {
        let refused = overlaid(
            &packed(&[("a-first", false, "x"), (path, false, "bad")]),
            &onto,
        );
        assert_eq!(code(refused), ArchiveCode::DestinationUnsafe, "{path}");
    }
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "untouched");
    assert_eq!(names(&outside), ["x"]);
    assert_eq!(names(&onto), ["dir", "file", "file-link", "link"]);
    assert_eq!(
        code(overlaid(&tree(), &root.path().join("missing"))),
        ArchiveCode::Io
    );
}

#[test]
fn a_captured_tree_keeps_names_that_are_strange_elsewhere() {
    let root = TempDir::new().unwrap();
    let tree = packed(&[
        ("aux.c", false, "1"),
        ("xt_TCPMSS.h", false, "2"),
        ("xt_tcpmss.h", false, "3"),
    ]);
    let size = tree.bytes.len() as u64;
    let id = tree.snapshot.snapshot_id();
    let with = |names| {
        extract(
            tree.bytes.as_slice(),
            size,
            id,
            &root.path().join("t"),
            names,
        )
    };
    assert_eq!(code(with(Names::Strict)), ArchiveCode::UnsafeName);
    assert_eq!(with(Names::Captured).unwrap().files, 3);
    assert_eq!(
        names(&root.path().join("t")),
        ["aux.c", "xt_TCPMSS.h", "xt_tcpmss.h"]
    );
}

#[test]
fn a_changeset_is_no_tree() {
    let attack = &flightproof_hostile::archive::paws_manifest_attacks()[0];
    assert_eq!(code(read(&attack.twin)), ArchiveCode::BadKind);
    let root = TempDir::new().unwrap();
    let size = attack.twin.len() as u64;
    let refused = extract(
        attack.twin.as_slice(),
        size,
        Digest::of(b""),
        &root.path().join("t"),
        Names::Strict,
    );
    assert_eq!(code(refused), ArchiveCode::BadKind);
}
