//! From a directory to a file, whole or not at all.

use crate::bounds::Tiny;
use crate::formats::{BOTH, Format, names, plant, small};
use flightproof_archive::{ArchiveCode, ArchiveError, Choice, Without};
use flightproof_core::RelPath;
use rustix::fs::{CWD, FileType, Mode};
use std::fs::{self, File};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

#[test]
fn a_refused_pack_leaves_the_output_as_it_was_and_nothing_beside_it() {
    for format in BOTH {
        let root = TempDir::new().unwrap();
        let (tree, output) = (root.path().join("tree"), root.path().join("out"));
        plant(&tree, &small());
        fs::write(&output, "what was there").unwrap();
        symlink("a/file", tree.join("link")).unwrap();
        assert_eq!(
            format.pack(&tree, &output).unwrap_err().code,
            ArchiveCode::SymlinkRefused
        );
        assert_eq!(fs::read(&output).unwrap(), b"what was there");
        fs::remove_file(tree.join("link")).unwrap();
        fs::create_dir(root.path().join("dir")).unwrap();
        let refused = format.pack(&tree, &root.path().join("dir")).unwrap_err();
        assert_eq!(
            refused.code,
            ArchiveCode::DestinationUnsafe,
            "a directory is no place for an archive"
        );
        assert_eq!(names(root.path()), ["dir", "out", "tree"]);
        format.pack(&tree, &output).unwrap();
        assert_eq!(fs::read(&output).unwrap(), format.in_memory(&small()));
        assert_eq!(names(root.path()), ["dir", "out", "tree"]);
    }
}

#[test]
fn an_output_that_lies_in_the_packed_directory_is_not_packed_half_written() {
    let root = TempDir::new().unwrap();
    plant(root.path(), &small());
    let output = root.path().join("out");
    Format::Paws.pack(root.path(), &output).unwrap();
    assert_eq!(fs::read(&output).unwrap(), Format::Paws.in_memory(&small()));
}

#[test]
fn more_or_larger_files_than_an_artifact_holds_are_refused_before_they_are_read() {
    let root = TempDir::new().unwrap();
    let (tree, output) = (root.path().join("tree"), root.path().join("out"));
    fs::create_dir(&tree).unwrap();
    let code = || Format::Paar.pack(&tree, &output).unwrap_err().code;
    assert_eq!(code(), ArchiveCode::FilesEmpty);
    let giant = |name: &str, bytes| {
        File::create(tree.join(name))
            .unwrap()
            .set_len(bytes)
            .unwrap();
    };
    giant("giant", 1 << 40);
    assert_eq!(code(), ArchiveCode::InvalidFileSize);
    for name in ["giant", "1", "2", "3", "4"] {
        giant(name, 256 << 20);
    }
    assert_eq!(code(), ArchiveCode::PayloadOverflow);
    fs::remove_dir_all(&tree).unwrap();
    fs::create_dir(&tree).unwrap();
    for number in 0..=20_000 {
        File::create(tree.join(format!("{number}"))).unwrap();
    }
    assert_eq!(code(), ArchiveCode::BadFiles);
    fs::remove_file(tree.join("0")).unwrap();
    Format::Paar.pack(&tree, &output).unwrap();
}

/// Writes down what it is asked, and leaves out what has these names anywhere.
struct Recorded(&'static [&'static str], Vec<String>);

impl Choice for Recorded {
    fn enter(&mut self, _: BorrowedFd<'_>, path: Option<&RelPath>) -> Result<(), ArchiveError> {
        self.1
            .push(format!("enter {}", path.map_or(".", RelPath::as_str)));
        Ok(())
    }

    fn admits(&mut self, path: &RelPath, kind: FileType) -> Result<bool, ArchiveError> {
        self.1.push(format!("{path} {kind:?}"));
        Ok(!self.0.contains(&path.file_name()))
    }

    fn leave(&mut self) {
        self.1.push("leave".to_owned());
    }

    fn admits_content(&self, _: &RelPath, _: u64, _: &[u8]) -> bool {
        true
    }
}

#[test]
fn a_choice_is_asked_in_order_and_what_it_leaves_out_is_never_touched() {
    let root = TempDir::new().unwrap();
    let (tree, output) = (root.path().join("tree"), root.path().join("out"));
    plant(&tree, &small());
    symlink("/etc", tree.join("a/out")).unwrap();
    rustix::fs::mknodat(CWD, tree.join("a/out-fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    fs::create_dir(tree.join("a/out-dir")).unwrap();
    symlink("/etc", tree.join("a/out-dir/link")).unwrap();
    let mut choice = Recorded(&["out", "out-fifo", "out-dir"], Vec::new());
    Format::Paws
        .pack_chosen(&tree, &mut choice, &output)
        .unwrap();
    let asked: Vec<&str> = choice.1.iter().map(String::as_str).collect();
    assert_eq!(
        asked,
        [
            "enter .",
            "a-b Directory",
            "enter a-b",
            "a-b/x RegularFile",
            "leave",
            "a Directory",
            "enter a",
            "a/deep Directory",
            "enter a/deep",
            "a/deep/er Directory",
            "enter a/deep/er",
            "a/deep/er/run RegularFile",
            "leave",
            "leave",
            "a/file RegularFile",
            "a/out Symlink",
            "a/out-dir Directory",
            "a/out-fifo Fifo",
            "leave",
            "empty RegularFile",
            "leave",
        ]
    );
    assert_eq!(fs::read(&output).unwrap(), Format::Paws.in_memory(&small()));
    let refused = Format::Paws.pack_chosen(&tree, &mut Without(&["out"]), &output);
    assert_eq!(
        refused.unwrap_err().code,
        ArchiveCode::SymlinkRefused,
        "only at the top"
    );
}

#[test]
fn what_is_left_out_by_name_is_left_out_at_the_top_alone() {
    let root = TempDir::new().unwrap();
    let (tree, output) = (root.path().join("tree"), root.path().join("out"));
    let file = |path: &str| (path.to_owned(), false, path.as_bytes().to_vec());
    plant(&tree, &["deep/out", "file", "out/file"].map(file));
    for format in BOTH {
        format
            .pack_chosen(&tree, &mut Without(&["out"]), &output)
            .unwrap();
        let kept = ["deep/out", "file"].map(file);
        assert_eq!(fs::read(&output).unwrap(), format.in_memory(&kept));
    }
}

#[test]
fn a_mount_in_a_packed_directory_is_refused_and_not_entered() {
    let root = TempDir::new().unwrap();
    let tree = root.path().join("tree");
    plant(&tree, &small());
    let tiny = Tiny::of(64);
    fs::write(tiny.path().join("secret"), "of another file system").unwrap();
    fs::create_dir(tree.join("m")).unwrap();
    rustix::mount::mount_bind(tiny.path(), tree.join("m")).unwrap();
    let refused = Format::Paws.pack(&tree, &root.path().join("out"));
    rustix::mount::unmount(tree.join("m"), rustix::mount::UnmountFlags::DETACH).unwrap();
    assert_eq!(refused.unwrap_err().code, ArchiveCode::KindRefused);
}
