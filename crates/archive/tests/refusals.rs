//! What every refusal says: one snapshot of code and detail of all forged inputs.

#![expect(
    clippy::unwrap_used,
    reason = "a room that cannot be made is a failed test"
)]

use flightproof_archive::{Extraction, Names, paar, paws};
use flightproof_hostile::archive::{self, Door};

/// Most characters of a line that are kept.
const LINE: usize = 170;

fn line(name: &str, refusal: Option<String>) -> String {
    let text = refusal.unwrap_or_else(|| panic!("{name} was accepted"));
    let line = format!("{name:.60} -> {text}");
    line.chars().take(LINE).collect()
}

#[test]
fn every_refusal_says_what_was_found() {
    let mut lines = Vec::new();
    for vector in archive::paws_vectors() {
        let refused = paws::decode(&vector.bytes).err().map(|e| e.to_string());
        lines.push(line(&format!("PAWS1 {}", vector.name), refused));
    }
    for vector in archive::paar_vectors() {
        let refused = paar::decode(&vector.bytes, vector.total.unwrap()).err();
        lines.push(line(
            &format!("PAAR1 {}", vector.name),
            refused.map(|e| e.to_string()),
        ));
    }
    for row in archive::rows() {
        let bytes = row.attack.bytes.as_slice();
        let refused = match row.door {
            Door::Snapshot => paws::read(bytes).map(drop).err(),
            Door::Changeset => paws::decode(bytes).map(drop).err(),
            Door::Artifact => paar::read(bytes).map(drop).err(),
            Door::Strict => written(Names::Strict, |how| paws::extract(bytes, how).map(drop)),
            Door::Captured => written(Names::Captured, |how| paws::extract(bytes, how).map(drop)),
            Door::Written => written(Names::Captured, |how| paar::extract(bytes, how).map(drop)),
        };
        let name = format!(
            "{} {:?} {}",
            row.number,
            row.door,
            row.attack.name.escape_debug()
        );
        lines.push(line(&name, refused.map(|e| e.to_string())));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

fn written(
    names: Names,
    extract: impl FnOnce(&Extraction<'_>) -> Result<(), flightproof_archive::ArchiveError>,
) -> Option<flightproof_archive::ArchiveError> {
    let room = tempfile::tempdir().unwrap();
    let how = Extraction {
        into: &room.path().join("tree"),
        names,
        expected: None,
        progress: &(),
    };
    extract(&how).err()
}
