//! Archives that are never wholly in memory: packed to a file, verified and extracted as they come
//! or from a file by two threads. Both formats, one engine.
//!
//! Needs root, for a file system that is too small: fails without it.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made is a failed test"
)]

use flightproof_archive::{
    ArchiveCode, ArchiveError, Choice, Everything, Extraction, Names, Progress, Without, paar, paws,
};
use flightproof_core::{CommitId, Digest, RelPath};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use std::fs::{self, File, Permissions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::TempDir;

/// One of the two formats; what is tested here must hold for either.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Paws,
    Paar,
}

const BOTH: [Format; 2] = [Format::Paws, Format::Paar];

fn origin() -> paar::Origin {
    paar::Origin {
        target: paar::Target::LinuxX64,
        source_commit: CommitId::from_bytes([7; 20]),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    }
}

impl Format {
    /// Packs to a file and gives the name of what was packed.
    fn pack(self, dir: &Path, output: &Path) -> Result<Digest, ArchiveError> {
        self.pack_chosen(dir, &mut Everything, output)
    }

    fn pack_chosen(
        self,
        dir: &Path,
        choice: &mut dyn Choice,
        output: &Path,
    ) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::pack_file(dir, "w", choice, output, &()).map(|s| s.snapshot_id()),
            Self::Paar => paar::pack_file(dir, origin(), choice, output, &()).map(|a| a.build_id()),
        }
    }

    /// What the encoder that has all in memory makes of the same files.
    fn in_memory(self, files: &[(String, bool, Vec<u8>)]) -> Vec<u8> {
        let files = files
            .iter()
            .map(|(path, executable, bytes)| (RelPath::new(path).unwrap(), *executable, bytes));
        match self {
            Self::Paws => paws::pack("w", files).unwrap().bytes,
            Self::Paar => {
                let files = files.map(|(path, executable, bytes)| (path.into(), executable, bytes));
                paar::pack(origin(), files).unwrap().bytes
            }
        }
    }

    /// Why the reader that has all in memory refuses.
    fn read(self, bytes: &[u8]) -> Option<ArchiveCode> {
        match self {
            Self::Paws => paws::read(bytes).err().map(|e| e.code),
            Self::Paar => paar::read(bytes).err().map(|e| e.code),
        }
    }

    fn verify(self, reader: impl Read) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::verify(reader, &()).map(|manifest| id(&manifest)),
            Self::Paar => paar::verify(reader, &()).map(|artifact| artifact.build_id()),
        }
    }

    fn verify_file(self, file: &File) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::verify_file(file, &()).map(|manifest| id(&manifest)),
            Self::Paar => paar::verify_file(file, &()).map(|artifact| artifact.build_id()),
        }
    }

    fn extract(self, reader: impl Read, how: &Extraction<'_>) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::extract(reader, how).map(|s| s.snapshot_id()),
            Self::Paar => paar::extract(reader, how).map(|a| a.build_id()),
        }
    }

    fn extract_file(self, file: &File, how: &Extraction<'_>) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::extract_file(file, how).map(|s| s.snapshot_id()),
            Self::Paar => paar::extract_file(file, how).map(|a| a.build_id()),
        }
    }

    /// The answer of all readers to an archive in a file. A stream has no known length: it may be
    /// refused for something else, but not less.
    fn judge(self, bytes: &[u8], root: &Path) -> Result<Digest, ArchiveCode> {
        let file = on_disk(bytes);
        let made = root.join("made");
        let answers = [
            self.verify_file(&file),
            self.extract_file(&file, &into(&made)),
            self.verify(bytes),
            self.extract(bytes, &into(&root.join("streamed"))),
        ];
        let made = names(root);
        let expected: &[&str] = match answers[0] {
            Ok(_) => &["made", "streamed"],
            Err(_) => &[],
        };
        assert_eq!(made, expected, "{self:?}: {answers:?}");
        for made in made {
            fs::remove_dir_all(root.join(made)).unwrap();
        }
        let [file, extracted, streamed, also] = answers.map(|answer| answer.map_err(|e| e.code));
        assert_eq!((file, streamed), (extracted, also));
        assert_eq!(file.ok(), streamed.ok());
        file
    }
}

fn id(manifest: &paws::Manifest) -> Digest {
    match manifest {
        paws::Manifest::Snapshot(snapshot) => snapshot.snapshot_id(),
        paws::Manifest::Changeset(changeset) => changeset.changeset_id(),
    }
}

fn into(path: &Path) -> Extraction<'_> {
    Extraction {
        into: path,
        names: Names::Strict,
        expected: None,
        progress: &(),
    }
}

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    file.rewind().unwrap();
    file
}

fn plant(root: &Path, files: &[(String, bool, Vec<u8>)]) {
    for (path, executable, bytes) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        let mode = if *executable { 0o700 } else { 0o600 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
}

/// The files below a directory, ascending by path, as [`plant`] takes them.
fn harvest(root: &Path) -> Vec<(String, bool, Vec<u8>)> {
    let mut files = Vec::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                assert_eq!(mode(&path), 0o755, "{path:?}");
                left.push(path);
                continue;
            }
            let executable = match mode(&path) {
                0o644 => false,
                0o755 => true,
                other => panic!("{path:?} has mode {other:o}"),
            };
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            files.push((name, executable, fs::read(path).unwrap()));
        }
    }
    files.sort();
    files
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

fn small() -> Vec<(String, bool, Vec<u8>)> {
    [
        ("a-b/x", false, "sorts before a/"),
        ("a/deep/er/run", true, "#!"),
        ("a/file", false, "hello"),
        ("empty", false, ""),
    ]
    .map(|(path, executable, text)| (path.to_owned(), executable, text.as_bytes().to_vec()))
    .into()
}

/// Bytes that differ from place to place, so that a piece in the wrong place is noticed.
fn filled(length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| (i ^ (i >> 8) ^ (i >> 16)).to_le_bytes()[0])
        .collect()
}

/// Sizes around everything that is done in pieces: buffers of 256 KiB, batches of 1 MiB.
fn sizes() -> Vec<usize> {
    const KIB: usize = 1 << 10;
    let edges = [1, 4 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB, 3000 * KIB];
    edges
        .iter()
        .flat_map(|edge| [edge - 1, *edge, edge + 1])
        .collect()
}

#[test]
fn what_is_packed_in_pieces_is_what_is_packed_in_memory_at_every_edge_of_a_piece() {
    let files = sizes().into_iter().enumerate();
    let mut files: Vec<_> = files
        .map(|(i, size)| (format!("d{}/{i:02}", i % 3), i % 2 == 0, filled(size)))
        .collect();
    files.sort();
    let root = TempDir::new().unwrap();
    plant(&root.path().join("tree"), &files);
    for format in BOTH {
        let output = root.path().join("out");
        let packed = format.pack(&root.path().join("tree"), &output).unwrap();
        let bytes = fs::read(&output).unwrap();
        assert!(bytes == format.in_memory(&files), "{format:?}");
        let place = TempDir::new().unwrap();
        assert_eq!(format.judge(&bytes, place.path()), Ok(packed));
        let made = place.path().join("made");
        format
            .extract_file(&File::open(&output).unwrap(), &into(&made))
            .unwrap();
        assert!(harvest(&made) == files, "{format:?}");
    }
    assert_eq!(names(root.path()), ["out", "tree"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_tree_travels_and_arrives(
        tree in proptest::collection::btree_map(
            "[a-c -]{0,1}[a-c](/[a-c]{1,2}){0,3}",
            (any::<bool>(), prop_oneof![8 => 0usize..40, 1 => 200_000usize..700_000]),
            1..40,
        ),
    ) {
        let paths: Vec<&String> = tree.keys().collect();
        let below = |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.starts_with('/'));
        prop_assume!(!paths.iter().any(|a| paths.iter().any(|b| below(a, b))));
        prop_assume!(!paths.iter().any(|path| path.starts_with(' ')));
        let files: Vec<_> =
            tree.iter().map(|(path, (x, size))| (path.clone(), *x, filled(*size))).collect();
        let root = TempDir::new().unwrap();
        plant(&root.path().join("tree"), &files);
        for format in BOTH {
            let output = root.path().join("out");
            format.pack(&root.path().join("tree"), &output).unwrap();
            prop_assert!(fs::read(&output).unwrap() == format.in_memory(&files));
            let archive = File::open(&output).unwrap();
            for (name, streamed) in [("streamed", true), ("stored", false)] {
                let made = root.path().join(name);
                match streamed {
                    true => format.extract(&archive, &into(&made)),
                    false => format.extract_file(&archive, &into(&made)),
                }.unwrap();
                prop_assert!(harvest(&made) == files);
                fs::remove_dir_all(made).unwrap();
            }
        }
    }
}

#[test]
fn every_changed_missing_and_added_byte_is_refused_by_every_reader_and_leaves_nothing() {
    let root = TempDir::new().unwrap();
    for format in BOTH {
        let honest = format.in_memory(&small());
        format.judge(&honest, root.path()).unwrap();
        let mut accepted = 0;
        for at in 0..honest.len() {
            let mut bytes = honest.clone();
            bytes[at] ^= 1;
            let judged = format.judge(&bytes, root.path()).err();
            assert_eq!(judged, format.read(&bytes), "{format:?} at {at}");
            accepted += usize::from(judged.is_none());
            // How a short archive is refused depends on whether its length is known beforehand.
            format.verify(&honest[..at]).unwrap_err();
            format.verify_file(&on_disk(&honest[..at])).unwrap_err();
            format
                .extract(&honest[..at], &into(&root.path().join("t")))
                .unwrap_err();
            format
                .extract_file(&on_disk(&honest[..at]), &into(&root.path().join("t")))
                .unwrap_err();
            assert_eq!(names(root.path()), [""; 0], "{format:?} cut at {at}");
        }
        // Only whose workspace it is stands outside all hashes, and here that is one byte.
        assert_eq!(accepted, usize::from(format == Format::Paws));
        let longer = [&honest[..], b"x"].concat();
        let refused = match format {
            Format::Paws => ArchiveCode::TrailingBytes,
            Format::Paar => ArchiveCode::TotalArchiveMismatch,
        };
        assert_eq!(format.judge(&longer, root.path()), Err(refused));
    }
}

#[test]
fn an_archive_that_ends_inside_a_file_is_refused_as_its_format_says() {
    let truncated = [
        (
            Format::Paws,
            ArchiveCode::PayloadTruncated,
            ArchiveCode::BufferEmpty,
        ),
        (
            Format::Paar,
            ArchiveCode::TotalArchiveMismatch,
            ArchiveCode::ArchiveTooLarge,
        ),
    ];
    let root = TempDir::new().unwrap();
    for (format, short, empty) in truncated {
        let honest = format.in_memory(&small());
        let cut = &honest[..honest.len() - 1];
        assert_eq!(format.judge(cut, root.path()), Err(short));
        assert_eq!(format.judge(b"", root.path()), Err(empty));
    }
}

#[test]
fn a_large_file_is_verified_in_pieces_and_its_last_byte_counts() {
    let root = TempDir::new().unwrap();
    for format in BOTH {
        let files = [("large".to_owned(), false, filled(5_000_001))];
        let mut bytes = format.in_memory(&files);
        format.judge(&bytes, root.path()).unwrap();
        *bytes.last_mut().unwrap() ^= 0x80;
        let refused = format.judge(&bytes, root.path());
        assert_eq!(refused, Err(ArchiveCode::PayloadHashMismatch));
    }
}

/// Hands out bytes in pieces of one length.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let most = to.len().min(self.1);
        self.0.read(&mut to[..most])
    }
}

#[test]
fn however_a_stream_is_cut_the_answer_is_the_same() {
    let mut files = small();
    files.push(("z".to_owned(), false, filled(300_000)));
    for format in BOTH {
        let bytes = format.in_memory(&files);
        let whole = format.verify(&bytes[..]).unwrap();
        for length in [1, 2, 3, 7, 4096, 65_537, 1 << 20] {
            assert_eq!(
                format.verify(Pieces(&bytes, length)).unwrap(),
                whole,
                "{length}"
            );
        }
    }
}

#[test]
fn a_file_is_read_from_its_beginning_wherever_its_cursor_stands_and_a_pipe_as_it_comes() {
    for format in BOTH {
        let bytes = format.in_memory(&small());
        let mut file = on_disk(&bytes);
        file.seek(SeekFrom::Start(11)).unwrap();
        format.verify_file(&file).unwrap();
        assert_eq!(file.stream_position().unwrap(), 11);
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        std::io::Write::write_all(&mut File::from(writer), &bytes).unwrap();
        format.verify_file(&File::from(reader)).unwrap();
    }
}

#[test]
fn a_changeset_verifies_and_does_not_extract() {
    let root = TempDir::new().unwrap();
    let manifest = format!(
        "{{\"format\":\"prime-agent-workspace\",\"version\":1,\"kind\":\"changeset\",\
         \"workspaceId\":\"w\",\"baseSnapshotId\":\"{0}\",\"snapshotId\":\"{0}\",\"totalBytes\":1,\
         \"entries\":[{{\"operation\":\"delete\",\"path\":\"a\",\"baseHash\":\"{0}\"}},\
         {{\"operation\":\"add\",\"path\":\"b\",\"size\":1,\"mode\":100644,\"sha256\":\"{0}\",\"offset\":0}}]}}",
        Digest::of(b"x")
    );
    let length = (manifest.len() as u64).to_be_bytes();
    let changeset = [b"PAWS1", &length[..], manifest.as_bytes(), b"x"].concat();
    paws::verify_file(&on_disk(&changeset), &()).unwrap();
    assert!(matches!(
        paws::verify(changeset.as_slice(), &()).unwrap(),
        paws::Manifest::Changeset(_)
    ));
    let made = root.path().join("t");
    let refused = paws::extract(changeset.as_slice(), &into(&made)).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::BadKind);
    let other = [&changeset[..changeset.len() - 1], b"y"].concat();
    let refused = paws::verify(other.as_slice(), &()).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::PayloadHashMismatch);
    assert_eq!(names(root.path()), [""; 0]);
}

#[test]
fn another_archive_than_the_announced_one_is_refused_before_anything_is_made() {
    let root = TempDir::new().unwrap();
    let made = root.path().join("t");
    for format in BOTH {
        let bytes = format.in_memory(&small());
        let announced = |expected| Extraction {
            expected: Some(expected),
            ..into(&made)
        };
        let other = Digest::of(b"another");
        let refused = format.extract(&bytes[..], &announced(other)).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::SnapshotUnexpected);
        let refused = format
            .extract_file(&on_disk(&bytes), &announced(other))
            .unwrap_err();
        assert_eq!(refused.code, ArchiveCode::SnapshotUnexpected);
        assert_eq!(names(root.path()), [""; 0]);
        let right = format.verify(&bytes[..]).unwrap();
        format.extract(&bytes[..], &announced(right)).unwrap();
        fs::remove_dir_all(&made).unwrap();
    }
}

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
            ArchiveCode::Io,
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

/// Counts what it is told.
#[derive(Default)]
struct Counted(AtomicU64, AtomicU64);

impl Progress for Counted {
    fn advance(&self, files: u64, bytes: u64) {
        self.0.fetch_add(files, Ordering::Relaxed);
        self.1.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[test]
fn progress_adds_up_to_all_files_and_bytes() {
    let root = TempDir::new().unwrap();
    let (tree, output) = (root.path().join("tree"), root.path().join("out"));
    plant(&tree, &small());
    plant(&tree, &[("large".to_owned(), false, filled(700_000))]);
    let seen = |work: &dyn Fn(&Counted)| {
        let counted = Counted::default();
        work(&counted);
        assert_eq!(
            (counted.0.into_inner(), counted.1.into_inner()),
            (5, 700_022)
        );
    };
    seen(&|p| drop(paws::pack_file(&tree, "w", &mut Everything, &output, p).unwrap()));
    let archive = || File::open(&output).unwrap();
    seen(&|p| drop(paws::verify(archive(), p).unwrap()));
    seen(&|p| drop(paws::verify_file(&archive(), p).unwrap()));
    for (name, streamed) in [("a", true), ("b", false)] {
        let made = root.path().join(name);
        seen(&|progress| {
            let how = Extraction {
                progress,
                ..into(&made)
            };
            match streamed {
                true => paws::extract(archive(), &how),
                false => paws::extract_file(&archive(), &how),
            }
            .unwrap();
        });
    }
}

/// Looks around while it is read from.
struct Watched<'a>(&'a [u8], &'a Path, &'a mut Vec<Vec<String>>);

impl Read for Watched<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let most = to.len().min(1);
        self.2.push(names(self.1));
        self.0.read(&mut to[..most])
    }
}

#[test]
fn whoever_is_killed_while_extracting_leaves_only_a_name_that_says_what_it_is() {
    let root = TempDir::new().unwrap();
    let made = root.path().join("t");
    let bytes = Format::Paws.in_memory(&small());
    let mut seen = Vec::new();
    Format::Paws
        .extract(Watched(&bytes, root.path(), &mut seen), &into(&made))
        .unwrap();
    let staged = seen.iter().filter(|names| !names.is_empty());
    let staged: Vec<_> = staged.map(|names| names.join(" ")).collect();
    assert!(!staged.is_empty());
    // At no moment was there anything but the one reserved name.
    assert!(
        staged
            .iter()
            .all(|name| name.starts_with(".prime-agent-staging-")),
        "{staged:?}"
    );
    assert!(
        staged
            .iter()
            .all(|name| RelPath::new(name).is_err() && *name == staged[0])
    );
    assert_eq!(names(root.path()), ["t"]);
}

#[test]
fn what_a_parent_directory_hands_down_changes_no_mode() {
    let root = TempDir::new().unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o2777)).unwrap();
    // Everything below would be created without rights for others, and with an access list.
    rustix::fs::setxattr(
        root.path(),
        "system.posix_acl_default",
        &access_list(),
        XattrFlags::empty(),
    )
    .expect("the temporary directory must know access lists");
    let twin = root.path().join("twin");
    File::create(&twin).unwrap();
    assert_ne!(mode(&twin), 0o644, "the attack does not work here");
    for format in BOTH {
        let made = root.path().join("t");
        let bytes = format.in_memory(&small());
        format.extract(&bytes[..], &into(&made)).unwrap();
        assert_eq!(mode(&made), 0o755);
        assert!(harvest(&made) == small());
        let mut none = [0u8; 64];
        for path in ["", "a", "a/file"] {
            let list =
                rustix::fs::getxattr(made.join(path), "system.posix_acl_access", &mut none[..]);
            assert_eq!(list, Err(rustix::io::Errno::NODATA), "{path}");
        }
        fs::remove_dir_all(made).unwrap();
    }
}

/// user::rwx user:1234:rwx group::r-x mask::rwx other::---, as the kernel keeps it.
fn access_list() -> Vec<u8> {
    let mut list = 2u32.to_le_bytes().to_vec();
    let nobody = u32::MAX;
    let entries = [
        (1, 7, nobody),
        (2, 7, 1234),
        (4, 5, nobody),
        (16, 7, nobody),
        (32, 0, nobody),
    ];
    for (tag, rights, id) in entries {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(rights));
        list.extend(u32::to_le_bytes(id));
    }
    list
}

/// A file system of one size, gone when dropped.
struct Tiny(TempDir);

impl Tiny {
    fn of(kib: u32) -> Self {
        let dir = TempDir::new().unwrap();
        let options = std::ffi::CString::new(format!("size={kib}k")).unwrap();
        rustix::mount::mount(
            "tiny",
            dir.path(),
            "tmpfs",
            rustix::mount::MountFlags::empty(),
            options.as_c_str(),
        )
        .expect("this test mounts a file system: run it as root");
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        rustix::mount::unmount(self.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let tiny = Tiny::of(1024);
    let root = TempDir::new().unwrap();
    let tree = root.path().join("tree");
    let files: Vec<_> = (0..40)
        .map(|i| (format!("d{}/{i}", i / 9), false, filled(60_000)))
        .collect();
    plant(&tree, &files);
    for format in BOTH {
        let output = tiny.path().join("out");
        assert_eq!(
            format.pack(&tree, &output).unwrap_err().code,
            ArchiveCode::Io
        );
        assert_eq!(names(tiny.path()), [""; 0]);
        let made = tiny.path().join("t");
        let bytes = format.in_memory(&files);
        let full = format.extract(&bytes[..], &into(&made)).unwrap_err();
        assert_eq!(full.code, ArchiveCode::Io, "{full}");
        let full = format
            .extract_file(&on_disk(&bytes), &into(&made))
            .unwrap_err();
        assert_eq!(full.code, ArchiveCode::Io, "{full}");
        assert_eq!(names(tiny.path()), [""; 0]);
        // The twin fits.
        let bytes = format.in_memory(&files[..10]);
        format.extract_file(&on_disk(&bytes), &into(&made)).unwrap();
        fs::remove_dir_all(made).unwrap();
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

#[test]
fn memory_does_not_grow_with_the_payload() {
    let root = TempDir::new().unwrap();
    let (tree, output) = (root.path().join("tree"), root.path().join("out"));
    fs::create_dir(&tree).unwrap();
    for name in ["1", "2", "3", "4"] {
        File::create(tree.join(name))
            .unwrap()
            .set_len(48 << 20)
            .unwrap();
    }
    let before = peak_kib();
    for format in BOTH {
        format.pack(&tree, &output).unwrap();
        let archive = File::open(&output).unwrap();
        format.verify(&archive).unwrap();
        format.verify_file(&archive).unwrap();
        let made = root.path().join("t");
        format.extract_file(&archive, &into(&made)).unwrap();
        fs::remove_dir_all(&made).unwrap();
    }
    let grown = peak_kib() - before;
    assert!(grown < 8 << 10, "{grown} KiB for 192 MiB of payload");
}

/// The largest this process ever was.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Does everything a second thread can do inside the staging directory, over and over: swaps
/// directories for links to `outside`, files for links, and directories for one another.
fn disturb(place: &Path, outside: &Path, stop: &AtomicBool) {
    let mut turn = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let staged = fs::read_dir(place).unwrap().flatten();
        for staging in staged.map(|entry| entry.path()) {
            let Ok(entries) = fs::read_dir(&staging) else {
                continue;
            };
            for entry in entries.flatten().map(|entry| entry.path()) {
                turn += 1;
                let aside: PathBuf = staging.join(format!("aside-{turn}"));
                let _ = fs::rename(&entry, &aside);
                let _ = match turn % 3 {
                    0 => symlink(outside, &entry),
                    1 => fs::hard_link(outside.join("sentinel"), &entry),
                    _ => fs::rename(&aside, &entry),
                };
            }
        }
    }
}

#[test]
fn whatever_a_second_thread_does_in_the_staging_directory_nothing_lands_outside() {
    let root = TempDir::new().unwrap();
    let (outside, place) = (root.path().join("outside"), root.path().join("place"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("sentinel"), "untouched").unwrap();
    fs::create_dir(&place).unwrap();
    let files: Vec<_> = (0..600)
        .map(|i| {
            (
                format!("d{:02}/e{}/{i:03}", i / 30, i / 10 % 3),
                false,
                filled(100 + i),
            )
        })
        .collect();
    let stop = AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| disturb(&place, &outside, &stop));
        let mut refused = 0;
        for turn in 0..24 {
            let format = BOTH[turn % 2];
            let archive = on_disk(&format.in_memory(&files));
            let made = place.join(format!("t{turn}"));
            let done = match turn % 4 < 2 {
                true => format.extract_file(&archive, &into(&made)),
                false => format.extract(&format.in_memory(&files)[..], &into(&made)),
            };
            refused += u32::from(done.is_err());
        }
        stop.store(true, Ordering::Relaxed);
        refused
    });
    assert!(refused > 0, "the second thread never came in between");
    assert_eq!(names(&outside), ["sentinel"]);
    assert_eq!(fs::read(outside.join("sentinel")).unwrap(), b"untouched");
}
