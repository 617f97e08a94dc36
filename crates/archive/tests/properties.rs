//! What holds for every tree and for every byte string.

#![expect(
    clippy::unwrap_used,
    reason = "a generated case that cannot be made is a failed test"
)]

use flightproof_archive::paar::{self, ArtifactPath, Origin, Target};
use flightproof_archive::{Names, extract, fuzzing, pack_directory, paws};
use flightproof_core::RelPath;
use flightproof_hostile::archive;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Tree = BTreeMap<String, (bool, Vec<u8>)>;

/// Trees both formats can hold. Paths come from a small alphabet, so that they meet each other.
fn trees() -> impl Strategy<Value = Tree> {
    let segment = "[a-cé😀\" .-]{1,3}|[A-Z]{1,2}";
    let path = proptest::collection::vec(segment, 1..4).prop_map(|s| s.join("/"));
    let content = proptest::collection::vec(any::<u8>(), 0..40);
    let file = (any::<bool>(), content);
    proptest::collection::btree_map(path, file, 0..8).prop_map(|tree| {
        let fits = |path: &str| {
            RelPath::new(path).is_ok()
                && !tree
                    .keys()
                    .any(|other| path.starts_with(&format!("{other}/")))
        };
        let fitting = tree.iter().filter(|(path, _)| fits(path));
        fitting
            .map(|(path, file)| (path.clone(), file.clone()))
            .collect()
    })
}

fn files(tree: &Tree) -> Vec<archive::File<'_>> {
    let files = tree.iter();
    files
        .map(|(path, (x, content))| (path.as_str(), *x, content.as_slice()))
        .collect()
}

fn packed(workspace: &str, tree: &Tree) -> paws::Packed {
    let files = tree
        .iter()
        .map(|(p, (x, c))| (RelPath::new(p).unwrap(), *x, c));
    // In the wrong order, to be sorted.
    paws::pack(workspace, files.rev()).unwrap()
}

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(700))]

    #[test]
    fn the_packer_agrees_with_an_independent_encoder(tree in trees(), workspace in ".{0,8}") {
        let (bytes, _) = archive::paws(&workspace, &files(&tree));
        let ours = packed(&workspace, &tree);
        prop_assert_eq!(&ours.bytes, &bytes);
        let read = paws::read(&bytes).unwrap();
        prop_assert_eq!(&read.snapshot, &ours.snapshot);
        let found = read.files().map(|(e, c)| (e.path.as_str(), e.executable, c));
        prop_assert_eq!(found.collect::<Vec<_>>(), files(&tree));
    }

    #[test]
    fn the_artifact_packer_agrees_with_an_independent_encoder(tree in trees()) {
        prop_assume!(!tree.is_empty());
        let (bytes, _) = archive::paar(COMMIT, "linux-arm64", &files(&tree));
        let origin = Origin {
            target: Target::LinuxArm64,
            source_commit: COMMIT.parse().unwrap(),
            daemon_protocol_version: 1,
            daemon_schema_revision: 0,
        };
        let ours = tree.iter().rev().map(|(p, (x, c))| (ArtifactPath::new(p).unwrap(), *x, c));
        prop_assert_eq!(paar::pack(origin, ours).unwrap().bytes, bytes.clone());
        let read = paar::read(&bytes).unwrap();
        let found = read.files().map(|(f, c)| (f.path.as_str(), f.executable, c));
        prop_assert_eq!(found.collect::<Vec<_>>(), files(&tree));
    }

    #[test]
    fn bytes_that_were_changed_are_refused_or_a_canonical_archive(
        tree in trees(),
        artifact in any::<bool>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..4),
    ) {
        let (mut bytes, _) = if artifact {
            archive::paar(COMMIT, "linux-x64", &files(&tree))
        } else {
            archive::paws("w", &files(&tree))
        };
        for (at, byte, edit) in edits {
            let at = at.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => bytes.insert(at, byte),
                _ => drop(bytes.drain(at..(at + usize::from(byte % 4)).min(bytes.len()))),
            }
        }
        fuzzing::paws_raw(&bytes);
        fuzzing::paar_raw(&bytes);
    }

    #[test]
    fn any_bytes_at_all_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::paws_raw(&bytes);
        fuzzing::paar_raw(&bytes);
        fuzzing::paws_raw(&[b"PAWS1\0\0\0\0\0\0\0", &bytes[..]].concat());
        fuzzing::paar_raw(&[b"PAAR1\0\0\0", &bytes[..]].concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_extracted_packs_to_the_same_archive(tree in trees()) {
        let root = tempfile::tempdir().unwrap();
        let into = root.path().join("t");
        let ours = packed("w", &tree);
        let size = ours.bytes.len() as u64;
        let id = ours.snapshot.snapshot_id();
        extract(ours.bytes.as_slice(), size, id, &into, Names::Captured).unwrap();
        prop_assert_eq!(pack_directory(&into, "w", &[]).unwrap(), ours);
    }
}
