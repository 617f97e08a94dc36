//! Packing what lies on a disk.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made is a failed test"
)]

use flightproof_archive::paws::{Packed, read};
use flightproof_archive::{ArchiveCode, ArchiveError, pack_directory};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use tempfile::TempDir;

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn code(result: Result<Packed, ArchiveError>) -> ArchiveCode {
    result.unwrap_err().code
}

#[test]
fn a_directory_packs_to_one_archive_whatever_the_order_of_its_listing() {
    let root = TempDir::new().unwrap();
    write(root.path(), "b/c", "1");
    write(root.path(), "a-b", "2");
    write(root.path(), "a/run", "3");
    write(root.path(), ".git/config", "not packed");
    write(root.path(), "a/.git-not-skipped-here", "4");
    fs::create_dir(root.path().join("nothing-in-here")).unwrap();
    fs::set_permissions(root.path().join("a/run"), Permissions::from_mode(0o4711)).unwrap();
    let packed = pack_directory(root.path(), "w", &[".git"]).unwrap();
    let unpacked = read(&packed.bytes).unwrap();
    assert_eq!(unpacked.snapshot, packed.snapshot);
    let files: Vec<_> = unpacked
        .files()
        .map(|(e, c)| (e.path.as_str(), e.executable, c))
        .collect();
    let expected: Vec<(&str, bool, &[u8])> = vec![
        ("a-b", false, b"2"),
        ("a/.git-not-skipped-here", false, b"4"),
        ("a/run", true, b"3"),
        ("b/c", false, b"1"),
    ];
    assert_eq!(files, expected);
}

#[test]
fn only_entries_of_the_top_directory_are_skipped() {
    let root = TempDir::new().unwrap();
    write(root.path(), "target/x", "1");
    write(root.path(), "src/target/x", "2");
    let packed = pack_directory(root.path(), "w", &["target"]).unwrap();
    let paths: Vec<_> = packed
        .snapshot
        .entries()
        .iter()
        .map(|e| e.path.as_str())
        .collect();
    assert_eq!(paths, ["src/target/x"]);
}

#[test]
fn links_are_refused_also_as_directories_and_when_dangling() {
    for target in ["/etc", "/etc/passwd", "nowhere"] {
        let root = TempDir::new().unwrap();
        write(root.path(), "d/file", "x");
        symlink(target, root.path().join("d/link")).unwrap();
        let refused = pack_directory(root.path(), "w", &[]);
        assert_eq!(code(refused), ArchiveCode::SymlinkRefused, "{target}");
    }
}

#[test]
fn what_is_neither_file_nor_directory_is_refused_without_waiting_for_it() {
    let root = TempDir::new().unwrap();
    let _socket = UnixListener::bind(root.path().join("socket")).unwrap();
    assert_eq!(
        code(pack_directory(root.path(), "w", &[])),
        ArchiveCode::KindRefused
    );
    let root = TempDir::new().unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.path().join("pipe"),
        fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert_eq!(
        code(pack_directory(root.path(), "w", &[])),
        ArchiveCode::KindRefused
    );
}

#[test]
fn what_an_interrupted_apply_left_is_named_as_such() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join(".prime-agent-staging-1"), "x").unwrap();
    assert_eq!(
        code(pack_directory(root.path(), "w", &[])),
        ArchiveCode::StagingLeft
    );
}

#[test]
fn names_that_are_no_paths_are_refused() {
    for name in [&b"\xff"[..], b"a\\b", b"a\nb", "e\u{301}".as_bytes()] {
        let root = TempDir::new().unwrap();
        fs::write(root.path().join(OsStr::from_bytes(name)), "x").unwrap();
        assert_eq!(
            code(pack_directory(root.path(), "w", &[])),
            ArchiveCode::InvalidPath
        );
    }
}

#[test]
fn a_sparse_giant_is_refused_before_it_is_read() {
    let root = TempDir::new().unwrap();
    let file = File::create(root.path().join("giant")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(
        code(pack_directory(root.path(), "w", &[])),
        ArchiveCode::InvalidSize
    );
}

#[test]
fn a_directory_that_is_missing_or_a_file_is_refused() {
    let root = TempDir::new().unwrap();
    write(root.path(), "file", "x");
    assert_eq!(
        code(pack_directory(&root.path().join("file"), "w", &[])),
        ArchiveCode::Io
    );
    assert_eq!(
        code(pack_directory(&root.path().join("no"), "w", &[])),
        ArchiveCode::Io
    );
}

#[test]
fn a_file_with_more_bytes_than_it_says_is_refused() {
    // Files here say they are empty and are not: as if somebody appended after the first look.
    let refused = pack_directory(Path::new("/proc/self/fdinfo"), "w", &[]);
    assert_eq!(code(refused), ArchiveCode::FileChanged);
}
