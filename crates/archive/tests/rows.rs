//! The catalogue of hostile archives: every row that is a matter of bytes is forged and refused.

#![expect(
    clippy::unwrap_used,
    reason = "a room that cannot be made is a failed test"
)]

use flightproof_archive::{ArchiveError, Extraction, Names, paar, paws};
use flightproof_core::Code;
use flightproof_hostile::archive::{Door, Row, rows};
use std::path::Path;

#[test]
fn every_forged_row_meets_its_code_leaves_nothing_and_has_a_twin_that_comes_in() {
    let mut wrong = Vec::new();
    for row in rows() {
        let found = through(row.door, &row.attack.bytes).map_err(|e| e.code.explanation().code);
        let expected = format!("archive/{}", row.attack.expect);
        if found != Err(expected.as_str()) {
            wrong.push(format!("{}: {found:?}, expected {expected}", shown(&row)));
        }
        if let Err(e) = through(row.door, &row.attack.twin) {
            wrong.push(format!("the twin of {}: {e}", shown(&row)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn whoever_reads_an_archive_in_another_way_meets_the_same_code() {
    for row in rows() {
        let code = |result: Result<(), ArchiveError>| result.map_err(|e| e.code).unwrap_err();
        let first = code(through(row.door, &row.attack.bytes));
        let bytes = row.attack.bytes.as_slice();
        let second = match row.door {
            Door::Snapshot if row.attack.expect != "BAD_KIND" => {
                code(paws::verify(bytes, &()).map(drop))
            }
            Door::Snapshot | Door::Captured => code(extracted(Names::Captured, |how| {
                paws::extract(bytes, how).map(drop)
            })),
            Door::Changeset => code(paws::verify(bytes, &()).map(drop)),
            Door::Artifact => code(paar::verify(bytes, &()).map(drop)),
            Door::Strict => code(extracted(Names::Strict, |how| {
                paws::extract(bytes, how).map(drop)
            })),
            Door::Written => code(extracted(Names::Strict, |how| {
                paar::extract(bytes, how).map(drop)
            })),
        };
        // An artifact's reader is told the length, so that it names a wrong one first.
        let renamed = matches!(row.attack.expect, "TOTAL_ARCHIVE_MISMATCH");
        assert!(first == second || renamed, "{}: {second:?}", shown(&row));
    }
}

fn shown(row: &Row) -> String {
    format!("row {} {:?} {}", row.number, row.door, row.attack.name)
}

fn through(door: Door, bytes: &[u8]) -> Result<(), ArchiveError> {
    match door {
        Door::Snapshot => paws::read(bytes).map(drop),
        Door::Changeset => paws::decode(bytes).map(drop),
        Door::Artifact => paar::read(bytes).map(drop),
        Door::Strict => extracted(Names::Strict, |how| paws::extract(bytes, how).map(drop)),
        Door::Captured => extracted(Names::Captured, |how| paws::extract(bytes, how).map(drop)),
        Door::Written => extracted(Names::Captured, |how| paar::extract(bytes, how).map(drop)),
    }
}

/// Writes a tree into a room of its own, and looks at what is left there.
fn extracted(
    names: Names,
    extract: impl FnOnce(&Extraction<'_>) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let room = tempfile::tempdir().unwrap();
    let into = room.path().join("tree");
    let done = extract(&Extraction {
        into: &into,
        names,
        expected: None,
        progress: &(),
    });
    assert_eq!(entries(room.path()), usize::from(done.is_ok()));
    done
}

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}
