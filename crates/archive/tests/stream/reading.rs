//! What is accepted and what is refused, whoever reads it and however it comes.

use crate::formats::{BOTH, Format, filled, harvest, into, names, on_disk, plant, small};
use flightproof_archive::{ArchiveCode, ArchiveError, Extraction, Progress, paws};
use flightproof_core::Digest;
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

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
fn how_much_came_of_a_payload_is_said_however_it_is_cut() {
    for format in BOTH {
        let bytes = format.in_memory(&small());
        let cut = &bytes[..bytes.len() - 1];
        for length in 1..30 {
            let refused = format.verify(Pieces(cut, length)).unwrap_err();
            let detail = "got 21 bytes of payload, expected 22";
            assert_eq!(refused.detail, detail, "{format:?} {length}");
        }
    }
}

/// Hands out bytes, and once something else than bytes where so many were given.
struct Once<'a> {
    bytes: &'a [u8],
    given: usize,
    at: usize,
    error: Option<ErrorKind>,
}

impl Read for Once<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let most = match self.error {
            Some(_) => to.len().min(self.at - self.given),
            None => to.len(),
        };
        if most == 0 && !to.is_empty() {
            return Err(self.error.take().unwrap().into());
        }
        let count = self.bytes.read(&mut to[..most])?;
        self.given += count;
        Ok(count)
    }
}

#[test]
fn a_failure_is_never_taken_for_an_interruption_nor_an_interruption_for_a_failure() {
    for format in BOTH {
        let bytes = format.in_memory(&small());
        let whole = format.verify(&bytes[..]).unwrap();
        // The last is where the end has to show.
        for at in 0..=bytes.len() {
            let once = |error| Once {
                bytes: &bytes,
                given: 0,
                at,
                error: Some(error),
            };
            let interrupted = format.verify(once(ErrorKind::Interrupted));
            assert_eq!(interrupted, Ok(whole), "{format:?} at {at}");
            let failed = format.verify(once(ErrorKind::ConnectionReset));
            assert_eq!(
                failed.unwrap_err().code,
                ArchiveCode::Io,
                "{format:?} at {at}"
            );
        }
    }
}

/// Adds a byte to an archive whenever it is told how far its reader got.
struct Growing<'a>(&'a File);

impl Progress for Growing<'_> {
    fn advance(&self, _: u64, _: u64) {
        let end = self.0.metadata().unwrap().len();
        self.0.write_all_at(b"x", end).unwrap();
    }
}

#[test]
fn an_archive_that_grows_while_it_is_read_is_refused_and_leaves_nothing() {
    let root = TempDir::new().unwrap();
    let bytes = Format::Paws.in_memory(&small());
    let made = root.path().join("t");
    let extract = |archive: &File| {
        let how = Extraction {
            progress: &Growing(archive),
            ..into(&made)
        };
        paws::extract_file(archive, &how).map(drop)
    };
    let verify = |archive: &File| paws::verify_file(archive, &Growing(archive)).map(drop);
    for reader in [
        &verify as &dyn Fn(&File) -> Result<(), ArchiveError>,
        &extract,
    ] {
        let refused = reader(&on_disk(&bytes)).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::TrailingBytes);
        assert_eq!(refused.detail, "got 23 bytes of payload, expected 22");
    }
    assert_eq!(names(root.path()), [""; 0]);
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
