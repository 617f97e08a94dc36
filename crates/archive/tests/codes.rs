//! No code without a test that produces it.

use flightproof_archive::ArchiveCode;
use flightproof_core::Code;
use flightproof_hostile::archive;

const TESTS: &[&str] = &[
    include_str!("directory.rs"),
    include_str!("extract.rs"),
    include_str!("apply/creation.rs"),
    include_str!("apply/edits.rs"),
    include_str!("apply/interruption.rs"),
    include_str!("apply/refusals.rs"),
    include_str!("workspace.rs"),
    include_str!("../../../fixtures/vectors/paar1.json"),
    include_str!("../../../fixtures/vectors/paws1.json"),
];

#[test]
fn every_code_is_produced_by_a_test() {
    let attacks = [
        archive::paws_attacks(),
        archive::paws_manifest_attacks(),
        archive::paar_attacks(),
        archive::name_attacks(),
    ];
    let rows = archive::rows().into_iter().map(|row| row.attack.expect);
    let expected: Vec<_> = attacks
        .iter()
        .flatten()
        .map(|a| a.expect)
        .chain(rows)
        .collect();
    let unproduced: Vec<_> = ArchiveCode::ALL
        .iter()
        .filter(|code| {
            let name = code.explanation().code.trim_start_matches("archive/");
            let variant = format!("ArchiveCode::{code:?}");
            let vector = format!("\"error\": \"{name}\"");
            let tested = |text: &&str| names(text, &variant) || text.contains(&vector);
            !expected.contains(&name) && !TESTS.iter().any(tested)
        })
        .collect();
    assert!(unproduced.is_empty(), "{unproduced:?}");
}

/// Whether the text has the name, whole: `BadFiles` is not in `BadFilesDigest`.
fn names(text: &str, name: &str) -> bool {
    let mut after = text.split(name).skip(1);
    after.any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}
