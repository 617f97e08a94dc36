//! What is small enough to be tried whole: every length of a header, every cut, every byte.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be made is a failed test"
)]

use flightproof_archive::{ArchiveCode, ArchiveError, paar, paws};
use flightproof_hostile::archive;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn code<T>(result: Result<T, ArchiveError>) -> Result<(), ArchiveCode> {
    result.map(drop).map_err(|refused| refused.code)
}

/// A snapshot and an artifact with nothing in their files.
fn small() -> (Vec<u8>, Vec<u8>) {
    let files: &[archive::File<'_>] = &[("a", true, b"")];
    (
        archive::paws("w", files).0,
        archive::paar(COMMIT, "linux-x64", files).0,
    )
}

#[test]
fn every_length_a_header_can_have_or_claim_has_its_code() {
    let (snapshot, artifact) = small();
    let decode_artifact = |bytes: &[u8]| code(paar::decode(bytes, artifact.len() as u64));
    for length in 0..13 {
        let expected = if length == 0 {
            ArchiveCode::BufferEmpty
        } else {
            ArchiveCode::ShortHeader
        };
        assert_eq!(
            code(paws::decode(&snapshot[..length])),
            Err(expected),
            "{length}"
        );
    }
    for length in 0..9 {
        let cut = decode_artifact(&artifact[..length]);
        assert_eq!(cut, Err(ArchiveCode::ShortHeader), "{length}");
    }
    assert_eq!(
        code(paar::decode(&[], 0)),
        Err(ArchiveCode::ArchiveTooLarge)
    );
    let there = snapshot.len() as u64 - 13;
    for (claim, expected) in claims(there, 64 << 20) {
        let mut bytes = snapshot.clone();
        bytes.splice(5..13, claim.to_be_bytes());
        assert_eq!(code(paws::decode(&bytes)), expected, "{claim}");
    }
    let there = artifact.len() as u64 - 9;
    for (claim, expected) in claims(there, 4 << 20) {
        let Ok(short) = u32::try_from(claim) else {
            continue;
        };
        let mut bytes = artifact.clone();
        bytes.splice(5..9, short.to_be_bytes());
        assert_eq!(decode_artifact(&bytes), expected, "{claim}");
    }
}

/// Claims of a manifest's length, where `there` bytes are and `most` are allowed.
fn claims(there: u64, most: u64) -> Vec<(u64, Result<(), ArchiveCode>)> {
    let cut = Err(ArchiveCode::InvalidJson);
    let truncated = Err(ArchiveCode::ManifestTruncated);
    let large = Err(ArchiveCode::ManifestTooLarge);
    let mut claims = vec![
        (0, cut),
        (1, cut),
        (there - 1, cut),
        (there, Ok(())),
        (there + 1, truncated),
        (most - 1, truncated),
        (most, truncated),
        (most + 1, large),
    ];
    // Each power of two, and what is around it.
    for shift in 10..64 {
        for claim in [(1 << shift) - 1, 1 << shift, (1u64 << shift) + 1] {
            claims.push((claim, if claim > most { large } else { truncated }));
        }
    }
    claims.push((u64::MAX, large));
    claims
}

#[test]
fn no_archive_that_is_cut_anywhere_is_accepted() {
    let (snapshot, artifact) = small();
    for cut in 0..snapshot.len() {
        let found = code(paws::decode(&snapshot[..cut]));
        let expected = match cut {
            0 => ArchiveCode::BufferEmpty,
            1..13 => ArchiveCode::ShortHeader,
            _ => ArchiveCode::ManifestTruncated,
        };
        assert_eq!(found, Err(expected), "{cut}");
        assert!(paws::verify(&snapshot[..cut], &()).is_err());
    }
    for cut in 0..artifact.len() {
        assert!(paar::read(&artifact[..cut]).is_err(), "{cut}");
        assert!(paar::verify(&artifact[..cut], &()).is_err(), "{cut}");
    }
}

#[test]
fn every_manifest_that_is_cut_anywhere_is_no_json() {
    let (snapshot, artifact) = small();
    for length in 0..snapshot.len() as u64 - 13 {
        let mut bytes = snapshot[..13 + usize::try_from(length).unwrap()].to_vec();
        bytes.splice(5..13, length.to_be_bytes());
        assert_eq!(
            code(paws::decode(&bytes)),
            Err(ArchiveCode::InvalidJson),
            "{length}"
        );
    }
    for length in 0..u32::try_from(artifact.len() - 9).unwrap() {
        let mut bytes = artifact[..9 + length as usize].to_vec();
        bytes.splice(5..9, length.to_be_bytes());
        let found = code(paar::read(&bytes));
        assert_eq!(found, Err(ArchiveCode::InvalidJson), "{length}");
    }
}

#[test]
fn every_single_byte_that_is_changed_is_noticed() {
    let (snapshot, artifact) = small();
    let workspace = snapshot.windows(3).position(|w| w == b"\"w\"").unwrap() + 1;
    for at in 0..snapshot.len() {
        for byte in 0..=u8::MAX {
            let mut bytes = snapshot.clone();
            if std::mem::replace(&mut bytes[at], byte) == byte {
                continue;
            }
            // Another name of the workspace is another honest archive; all else is in the id.
            let is_name =
                at == workspace && (b' '..0x80).contains(&byte) && !b"\"\\".contains(&byte);
            assert_eq!(
                paws::read(&bytes).is_ok(),
                is_name,
                "byte {at} becomes {byte:#x}"
            );
        }
    }
    for at in 0..artifact.len() {
        for byte in 0..=u8::MAX {
            let mut bytes = artifact.clone();
            if std::mem::replace(&mut bytes[at], byte) != byte {
                assert!(paar::read(&bytes).is_err(), "byte {at} becomes {byte:#x}");
            }
        }
    }
}

/// Where a character may stand in a path.
const PLACES: [(&str, &str); 7] = [
    ("", ""),
    ("", "x"),
    ("x", ""),
    ("x", "x"),
    ("x/", "x"),
    ("x", "/x"),
    ("x/", "/x"),
];

/// What each format says of a path, by its characters alone.
fn expected(path: &str, is_artifact: bool) -> Result<(), ArchiveCode> {
    let forbidden = |c: char| match u32::from(c) {
        0..0x20 | 0x7f | 0x5c | 0xfeff => true,
        0x80..0xa0 => !is_artifact,
        _ => false,
    };
    let segments = path.split('/').any(|s| matches!(s, "" | "." | ".."));
    if segments || path.contains(forbidden) {
        return Err(if is_artifact {
            ArchiveCode::InvalidFilePath
        } else {
            ArchiveCode::InvalidPath
        });
    }
    Ok(())
}

#[test]
fn every_character_of_one_byte_and_every_control_has_its_answer_in_every_place() {
    let special = [
        '\u{feff}',
        '\u{2028}',
        '\u{202e}',
        '\u{fffd}',
        '\u{ffff}',
        '\u{10ffff}',
        '\u{e000}',
    ];
    // U+0340 and others are no NFC; below U+0300 all characters are.
    for c in ('\0'..'\u{300}').chain(special) {
        for (before, after) in PLACES {
            let path = format!("{before}{c}{after}");
            let files: &[archive::File<'_>] = &[(&path, false, b"x")];
            let snapshot = code(paws::read(&archive::paws("w", files).0));
            assert_eq!(snapshot, expected(&path, false), "{path:?}");
            let artifact = code(paar::read(&archive::paar(COMMIT, "linux-x64", files).0));
            assert_eq!(artifact, expected(&path, true), "{path:?}");
        }
    }
}

/// A snapshot whose one path has these raw bytes in it.
fn with_raw(before: &str, raw: &[u8], after: &str) -> Vec<u8> {
    const MARK: &str = "marked";
    let path = format!("{before}{MARK}{after}");
    let (_, manifest) = archive::paws("w", &[(&path, false, b"x")]);
    let (start, end) = manifest.split_once(MARK).unwrap();
    let manifest = [start.as_bytes(), raw, end.as_bytes()].concat();
    let length = (manifest.len() as u64).to_be_bytes();
    [b"PAWS1", &length[..], &manifest, b"x"].concat()
}

#[test]
fn every_raw_byte_has_its_answer_in_every_place() {
    for byte in 0..=u8::MAX {
        for (before, after) in PLACES {
            let found = code(paws::read(&with_raw(before, &[byte], after)));
            let plain = format!("{before}{}{after}", char::from(byte));
            let right = match byte {
                0x80.. => Err(ArchiveCode::InvalidUtf8),
                0..0x20 | b'"' => Err(ArchiveCode::InvalidJson),
                // The end of the string is escaped, `\x` is no escape, and `\/` is a slash.
                b'\\' if after == "/x" => Err(expected(&format!("{before}/x"), false)
                    .err()
                    .unwrap_or(ArchiveCode::SnapshotIdMismatch)),
                b'\\' => Err(ArchiveCode::InvalidJson),
                // Its id is that of the marked path.
                _ => expected(&plain, false).and(Err(ArchiveCode::SnapshotIdMismatch)),
            };
            assert_eq!(found, right, "{byte:#x} in {before:?} {after:?}");
        }
    }
}

#[test]
fn every_pair_of_raw_bytes_is_utf8_or_refused_as_none() {
    for first in 0x80..=u8::MAX {
        for second in 0..=u8::MAX {
            let pair = [first, second];
            let found = code(paws::read(&with_raw("a", &pair, "")));
            let is_text = std::str::from_utf8(&pair).is_ok();
            assert_eq!(
                found == Err(ArchiveCode::InvalidUtf8),
                !is_text,
                "{pair:x?}"
            );
        }
    }
    let longer: [&[u8]; 12] = [
        b"\xe0\x80\xaf",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xf0\x80\x80\xaf",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xed\xa0\xbd\xed\xb8\x80",
        b"\xe2\x80",
        b"\xf0\x9f\x98",
    ];
    for raw in longer {
        let found = code(paws::read(&with_raw("a", raw, "")));
        assert_eq!(found, Err(ArchiveCode::InvalidUtf8), "{raw:x?}");
    }
}
