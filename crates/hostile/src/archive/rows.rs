//! The rows of the catalogue of hostile archives (`docs/attacks.md`) that are a matter of bytes.
//! Rows about a file system, or about time and memory, are tests of their own.

mod tables;

use super::encoder::{File, hex, paar, paws, payload, quote, wrap_paar, wrap_paws};
use super::paar::{COMMIT, TARGET};
use super::paws::changeset;
use crate::Attack;
use tables::{EDITS, Edit, JSON, NAMES, PATHS, Paths};

/// What the bytes are read as, and so which rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// A whole snapshot, read with its payload.
    Snapshot,
    /// The manifest of a changeset.
    Changeset,
    /// A whole artifact, read with its payload.
    Artifact,
    /// A sound snapshot whose tree is written by the strict rules for names.
    Strict,
    /// A sound snapshot whose tree is written as a captured one.
    Captured,
    /// A sound artifact whose files are written.
    Written,
}

/// One hostile input of the catalogue.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its number in the catalogue.
    pub number: u16,
    /// Where it tries to come in.
    pub door: Door,
    /// The bytes, their refusal and their twin.
    pub attack: Attack,
}

use Door::{Artifact, Captured, Changeset, Snapshot, Strict, Written};

/// All forged rows, ascending by number.
pub fn rows() -> Vec<Row> {
    let paths = PATHS.iter().chain(NAMES).map(of_paths);
    let edits = EDITS.iter().chain(JSON).map(of_edit);
    let mut rows: Vec<Row> = paths.chain(edits).collect();
    rows.extend(raw_bytes());
    rows.extend(lengths());
    rows.extend(costs());
    rows.sort_by_key(|row| row.number);
    rows
}

/// The tree that edits start from.
const TREE: &[File<'static>] = &[
    ("a.txt", false, b"hello"),
    ("bin/run", true, b"#!run"),
    ("empty", false, b""),
    ("src/lib.rs", false, b"pub fn a() {}\n"),
];

/// The files of the artifact that edits start from.
const FILES: &[File<'static>] = &[("bin/run", true, b"\x7fELF"), ("lib/data", false, b"data!")];

fn tree(door: Door, paths: &[&str]) -> Vec<u8> {
    let files: Vec<File<'_>> = paths.iter().map(|p| (*p, false, &b"x"[..])).collect();
    match door {
        Artifact | Written => paar(COMMIT, TARGET, &files).0,
        Snapshot | Changeset | Strict | Captured => paws("w", &files).0,
    }
}

fn of_paths((number, door, expect, bad, good): &Paths) -> Row {
    Row {
        number: *number,
        door: *door,
        attack: Attack {
            name: format!("{bad:?}"),
            bytes: tree(*door, bad),
            expect,
            twin: tree(*door, good),
        },
    }
}

/// Makes an archive of a manifest.
type Wrap = fn(&[u8]) -> Vec<u8>;

/// The honest manifest of a door, and what makes an archive of one.
fn honest(door: Door) -> (String, Wrap) {
    match door {
        Changeset => (changeset(), |manifest| wrap_paws(manifest, &[])),
        Artifact | Written => (paar(COMMIT, TARGET, FILES).1, |manifest| {
            wrap_paar(manifest, &payload(FILES))
        }),
        Snapshot | Strict | Captured => (paws("w", TREE).1, |manifest| {
            wrap_paws(manifest, &payload(TREE))
        }),
    }
}

fn of_edit((number, door, expect, find, put): &Edit) -> Row {
    let (text, wrap) = honest(*door);
    assert!(text.contains(find), "row {number}: {find} is not in {text}");
    Row {
        number: *number,
        door: *door,
        attack: Attack {
            name: format!("{find} becomes {put}"),
            bytes: wrap(text.replacen(find, put, 1).as_bytes()),
            expect,
            twin: wrap(text.as_bytes()),
        },
    }
}

/// A row whose twin is the honest archive of its door.
fn row(number: u16, door: Door, name: &str, expect: &'static str, bytes: Vec<u8>) -> Row {
    let (text, wrap) = honest(door);
    Row {
        number,
        door,
        attack: Attack {
            name: name.to_owned(),
            bytes,
            expect,
            twin: wrap(text.as_bytes()),
        },
    }
}

/// What no text can spell: bytes that are no UTF-8, and marks before it.
fn raw_bytes() -> Vec<Row> {
    let (text, wrap) = honest(Snapshot);
    let in_path = |bytes: &[u8]| {
        let at = text.find("a.txt").unwrap_or_default();
        let (before, after) = text.as_bytes().split_at(at);
        wrap(&[before, bytes, after].concat())
    };
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let marked = |text: &[u8]| wrap(&[b"\xef\xbb\xbf", text].concat());
    vec![
        row(
            54,
            Snapshot,
            "an overlong slash",
            "INVALID_UTF8",
            in_path(b"\xc0\xaf"),
        ),
        row(
            54,
            Snapshot,
            "a longer slash",
            "INVALID_UTF8",
            in_path(b"\xe0\x80\xaf"),
        ),
        row(
            54,
            Snapshot,
            "a surrogate",
            "INVALID_UTF8",
            in_path(b"\xed\xa0\x80"),
        ),
        row(
            54,
            Snapshot,
            "a byte of Latin-1",
            "INVALID_UTF8",
            in_path(b"\xe9"),
        ),
        row(
            54,
            Snapshot,
            "beyond Unicode",
            "INVALID_UTF8",
            in_path(b"\xf4\x90\x80\x80"),
        ),
        row(55, Snapshot, "a raw NUL", "INVALID_JSON", in_path(b"\0")),
        row(
            100,
            Snapshot,
            "a mark of byte order",
            "INVALID_UTF8",
            marked(text.as_bytes()),
        ),
        row(
            100,
            Snapshot,
            "a mark and an empty object",
            "INVALID_UTF8",
            marked(b"{}"),
        ),
        row(100, Snapshot, "UTF-16", "INVALID_JSON", wrap(&wide)),
        row(
            100,
            Snapshot,
            "UTF-16 with its mark",
            "INVALID_UTF8",
            wrap(&[b"\xfe\xff", &wide[..]].concat()),
        ),
    ]
}

/// Headers, payloads and sums that do not fit.
fn lengths() -> Vec<Row> {
    let (text, wrap) = honest(Snapshot);
    let whole = wrap(text.as_bytes());
    let artifact = paar(COMMIT, TARGET, FILES).0;
    let cut = |bytes: &[u8], less: usize| bytes.split_at(bytes.len() - less).0.to_vec();
    let length = |length: u64| {
        let mut bytes = whole.clone();
        bytes.splice(5..13, length.to_be_bytes());
        bytes
    };
    let short = |length: u32| {
        let mut bytes = artifact.clone();
        bytes.splice(5..9, length.to_be_bytes());
        bytes
    };
    let mut turned = whole.clone();
    turned.last_mut().into_iter().for_each(|byte| *byte ^= 1);
    let mut rows = vec![
        row(
            66,
            Snapshot,
            "one byte less",
            "PAYLOAD_TRUNCATED",
            cut(&whole, 1),
        ),
        row(
            66,
            Captured,
            "no payload",
            "PAYLOAD_TRUNCATED",
            cut(&whole, 24),
        ),
        row(
            66,
            Artifact,
            "one byte less",
            "TOTAL_ARCHIVE_MISMATCH",
            cut(&artifact, 1),
        ),
        row(
            67,
            Snapshot,
            "one byte more",
            "TRAILING_BYTES",
            [&whole[..], b"\0"].concat(),
        ),
        row(
            67,
            Captured,
            "two archives",
            "TRAILING_BYTES",
            [&whole[..], &whole].concat(),
        ),
        row(
            67,
            Artifact,
            "two archives",
            "TOTAL_ARCHIVE_MISMATCH",
            [&artifact[..], &artifact].concat(),
        ),
        row(
            67,
            Snapshot,
            "something before",
            "BAD_MAGIC",
            [b"MZ\0\0", &whole[..]].concat(),
        ),
        row(
            80,
            Captured,
            "the last bit of the last file",
            "PAYLOAD_HASH_MISMATCH",
            turned,
        ),
        row(83, Snapshot, "an artifact", "BAD_MAGIC", artifact.clone()),
        row(83, Artifact, "a snapshot", "BAD_MAGIC", whole.clone()),
        row(
            83,
            Snapshot,
            "a later magic",
            "BAD_MAGIC",
            [b"PAWS2", whole.split_at(5).1].concat(),
        ),
        row(
            83,
            Snapshot,
            "no kind of this door",
            "BAD_KIND",
            wrap_paws(changeset().as_bytes(), &[]),
        ),
    ];
    for claim in [u64::MAX, 1 << 63, 1 << 32, (64 << 20) + 1] {
        let name = format!("a manifest of {claim} bytes");
        rows.push(row(
            71,
            Snapshot,
            &name,
            "MANIFEST_TOO_LARGE",
            length(claim),
        ));
    }
    for claim in [u32::MAX, 1 << 31, (4 << 20) + 1] {
        let name = format!("a manifest of {claim} bytes");
        rows.push(row(71, Artifact, &name, "MANIFEST_TOO_LARGE", short(claim)));
    }
    rows.push(row(
        71,
        Snapshot,
        "a manifest of nothing",
        "INVALID_JSON",
        length(0),
    ));
    rows.push(row(
        71,
        Artifact,
        "a manifest of nothing",
        "INVALID_JSON",
        short(0),
    ));
    rows
}

/// Small inputs that would cost a careless reader much.
fn costs() -> Vec<Row> {
    let (text, _) = honest(Snapshot);
    let (start, _) = text.split_at(text.find("\"entries\"").unwrap_or_default());
    let entries = |list: &str| wrap_paws(format!("{start}\"entries\":{list}}}").as_bytes(), &[]);
    let named = |path: &str| paws("w", &[(path, false, b"x")]).0;
    let sized = |count: usize| {
        let listed: Vec<String> = (0..count).map(|n| {
            let offset = n * (50 << 20);
            format!(r#"{{"path":"{n:02}","size":52428800,"mode":100644,"sha256":"{}","offset":{offset}}}"#, hex(b""))
        }).collect();
        let total = count * (50 << 20);
        let text = text.replacen("\"totalBytes\":24", &format!("\"totalBytes\":{total}"), 1);
        let (start, _) = text.split_at(text.find("\"entries\"").unwrap_or_default());
        wrap_paws(
            format!("{start}\"entries\":[{}]}}", listed.join(",")).as_bytes(),
            &[],
        )
    };
    let string = |bytes: usize| text.replacen("\"w\"", &quote(&"w".repeat(bytes)), 1);
    let deep = |depth: usize| vec!["d"; depth].join("/");
    vec![
        row(
            57,
            Captured,
            "a name of 256 bytes",
            "UNSAFE_NAME",
            named(&"n".repeat(256)),
        ),
        row(
            57,
            Captured,
            "65 names deep",
            "UNSAFE_NAME",
            named(&deep(65)),
        ),
        row(
            57,
            Snapshot,
            "a path of 513 bytes",
            "INVALID_PATH",
            named(&"n".repeat(513)),
        ),
        row(
            57,
            Snapshot,
            "65,535 names deep",
            "INVALID_PATH",
            named(&deep(65_535)),
        ),
        row(
            68,
            Snapshot,
            "sizes of 550 MiB",
            "ARCHIVE_TOO_LARGE",
            sized(11),
        ),
        row(
            77,
            Snapshot,
            "100,001 entries",
            "MAX_ENTRIES_EXCEEDED",
            entries(&format!("[{}0]", "0,".repeat(100_000))),
        ),
        row(
            78,
            Snapshot,
            "30,000 names deep",
            "INVALID_PATH",
            named(&deep(30_000)),
        ),
        row(
            105,
            Snapshot,
            "100,000 open brackets",
            "INVALID_JSON",
            entries(&"[".repeat(100_000)),
        ),
        row(
            105,
            Snapshot,
            "100,000 brackets",
            "INVALID_JSON",
            entries(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))),
        ),
        row(
            105,
            Snapshot,
            "100,000 objects",
            "INVALID_JSON",
            entries(&format!(
                "{}1{}",
                "{\"a\":".repeat(100_000),
                "}".repeat(100_000)
            )),
        ),
        row(
            107,
            Snapshot,
            "a string that fills no limit and no tree",
            "SNAPSHOT_ID_MISMATCH",
            wrap_paws(
                string(1 << 20)
                    .replacen("\"mode\":100644", "\"mode\":100755", 1)
                    .as_bytes(),
                &[],
            ),
        ),
        row(
            107,
            Snapshot,
            "a million lists in an entry",
            "ENTRY_TYPE_ERROR",
            entries(&format!("[[{}0]]", "[],".repeat(1_000_000))),
        ),
    ]
}
