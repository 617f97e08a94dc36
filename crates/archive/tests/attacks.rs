//! Every forged archive meets exactly its refusal, and its twin is accepted.

use flightproof_archive::{ArchiveCode, ArchiveError, Names, extract, paar, paws};
use flightproof_core::Code;
use flightproof_hostile::{Attack, archive};

fn hold(attacks: Vec<Attack>, judge: impl Fn(&[u8]) -> Result<(), ArchiveError>) {
    assert!(!attacks.is_empty());
    let mut wrong = Vec::new();
    for attack in attacks {
        let found = judge(&attack.bytes).map_err(|e| e.code.explanation().code);
        let expected = format!("archive/{}", attack.expect);
        if found != Err(&expected) {
            wrong.push(format!("{}: {found:?}, expected {expected}", attack.name));
        }
        if let Err(e) = judge(&attack.twin) {
            wrong.push(format!("the twin of {}: {e}", attack.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn forged_snapshots_are_refused_with_their_code() {
    hold(archive::paws_attacks(), |bytes| paws::read(bytes).map(drop));
}

#[test]
fn forged_manifests_are_refused_with_their_code() {
    hold(archive::paws_manifest_attacks(), |bytes| {
        paws::decode(bytes).map(drop)
    });
}

#[test]
fn forged_artifacts_are_refused_with_their_code() {
    hold(archive::paar_attacks(), |bytes| paar::read(bytes).map(drop));
}

#[test]
fn an_artifact_of_either_target_is_refused_for_what_is_wrong_with_it() {
    for target in ["linux-x64", "linux-arm64"] {
        let (bytes, _) = archive::paar(&"a".repeat(40), target, &[("a", false, b"1")]);
        paar::read(&bytes).unwrap();
        let (mode, other) = (br#""mode":420"#, br#""mode":421"#);
        let at = bytes.windows(mode.len()).position(|found| found == mode);
        let at = at.unwrap();
        let mut forged = bytes;
        forged[at..at + other.len()].copy_from_slice(other);
        let refused = paar::read(&forged).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::InvalidFileMode, "{target}");
    }
}

#[test]
fn extraction_refuses_what_reading_refuses_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let into = root.path().join("tree");
    let attacks = archive::paws_attacks();
    for attack in attacks {
        // What the archive would have to be announced as for its refusal to be its own.
        let announced = paws::read(&attack.twin).unwrap().snapshot.snapshot_id();
        let size = attack.bytes.len() as u64;
        let found = extract(
            attack.bytes.as_slice(),
            size,
            announced,
            &into,
            Names::Captured,
        );
        let code = found.unwrap_err().code.explanation().code;
        let expected = format!("archive/{}", attack.expect);
        assert_eq!(code, expected, "{}", attack.name);
        let left = std::fs::read_dir(root.path()).unwrap().count();
        assert_eq!(left, 0, "{}", attack.name);
    }
}

#[test]
fn names_a_file_system_reads_otherwise_are_refused_before_anything_is_written() {
    hold(archive::name_attacks(), |bytes| {
        let root = tempfile::tempdir().unwrap();
        let announced = paws::read(bytes)?.snapshot.snapshot_id();
        let into = root.path().join("tree");
        let done = extract(bytes, bytes.len() as u64, announced, &into, Names::Strict);
        let left = std::fs::read_dir(root.path()).unwrap().count();
        assert_eq!(left, usize::from(done.is_ok()));
        done.map(drop)
    });
}
