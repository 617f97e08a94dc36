use super::encoder::{File, paws, paws_manifest_of_sizes, payload, quote, wrap_paws};
use super::{BAD_PATHS, Edit, edits};
use crate::Attack;

/// The tree most attacks are made from.
const HONEST: &[File<'static>] = &[
    ("a.txt", false, b"hello"),
    ("bin/run", true, b"#!run"),
    ("empty", false, b""),
    ("src/lib.rs", false, b"pub fn a() {}\n"),
];

/// Edits of the honest manifest. Values stand there as the encoder writes them.
#[rustfmt::skip] // one attack, one line
const EDITS: &[Edit] = &[
    ("another format", "BAD_FORMAT", "prime-agent-workspace", "prime-agent-artifact"),
    ("format is a number", "BAD_FORMAT", r#""format":"prime-agent-workspace""#, r#""format":1"#),
    ("a later version", "BAD_VERSION", r#""version":1"#, r#""version":2"#),
    ("version is text", "BAD_VERSION", r#""version":1"#, r#""version":"1""#),
    ("version is true", "BAD_VERSION", r#""version":1"#, r#""version":true"#),
    ("an unknown kind", "BAD_KIND", r#""kind":"snapshot""#, r#""kind":"diff""#),
    ("kind in another case", "BAD_KIND", r#""kind":"snapshot""#, r#""kind":"Snapshot""#),
    ("kind is null", "BAD_KIND", r#""kind":"snapshot""#, r#""kind":null"#),
    ("no kind", "MISSING_FIELD", r#""kind":"snapshot","#, ""),
    ("a changeset without base", "BASE_SNAPSHOT_ID_REQUIRED", r#""kind":"snapshot""#, r#""kind":"changeset""#),
    ("a snapshot with base", "BASE_SNAPSHOT_ID_NOT_ALLOWED", r#""snapshotId""#, r#""baseSnapshotId":"","snapshotId""#),
    ("one field more", "EXTRA_FIELD", r#","entries""#, r#","x":1,"entries""#),
    ("a key in another case", "EXTRA_FIELD", r#""totalBytes""#, r#""TotalBytes""#),
    ("one field less", "EXTRA_FIELD", r#""workspaceId":"w","#, ""),
    ("workspace is a number", "FIELD_TYPE_ERROR", r#""workspaceId":"w""#, r#""workspaceId":1"#),
    ("workspace is null", "FIELD_TYPE_ERROR", r#""workspaceId":"w""#, r#""workspaceId":null"#),
    ("total is text", "FIELD_TYPE_ERROR", r#""totalBytes":24"#, r#""totalBytes":"24""#),
    ("total is negative", "FIELD_TYPE_ERROR", r#""totalBytes":24"#, r#""totalBytes":-24"#),
    ("id is a number", "FIELD_TYPE_ERROR", r#","totalBytes""#, r#","snapshotId":0,"totalBytes""#),
    ("entries is an object", "FIELD_TYPE_ERROR", "}]}", r#"}],"entries":{}}"#),
    ("an entry is a list of its values", "ENTRY_TYPE_ERROR", r#""entries":["#, r#""entries":[["a",5,100644,"",0],"#),
    ("an entry is null", "ENTRY_TYPE_ERROR", r#""entries":["#, r#""entries":[null,"#),
    ("an entry without size", "MISSING_FIELD", r#""size":5,"#, ""),
    ("an entry without offset", "MISSING_FIELD", r#","offset":0}"#, "}"),
    ("an entry with one field more", "EXTRA_FIELD", r#","offset":0}"#, r#","offset":0,"uid":0}"#),
    ("an entry with a field of changesets", "EXTRA_FIELD", r#","offset":0}"#, r#","offset":0,"baseHash":""}"#),
    ("path is a number", "INVALID_PATH", r#""path":"a.txt""#, r#""path":1"#),
    ("mode 0644 as in PAAR1", "INVALID_MODE", r#""mode":100644"#, r#""mode":420"#),
    ("mode with setuid", "INVALID_MODE", r#""mode":100644"#, r#""mode":104755"#),
    ("mode of a symlink", "INVALID_MODE", r#""mode":100644"#, r#""mode":120000"#),
    ("mode is text", "INVALID_MODE", r#""mode":100644"#, r#""mode":"100644""#),
    ("size is a fraction", "INVALID_SIZE", r#""size":5"#, r#""size":5.5"#),
    ("size is negative", "INVALID_SIZE", r#""size":5"#, r#""size":-5"#),
    ("size is text", "INVALID_SIZE", r#""size":5"#, r#""size":"5""#),
    ("size is one above the limit", "INVALID_SIZE", r#""size":5"#, r#""size":52428801"#),
    ("size is 2^64 + 5", "INVALID_SIZE", r#""size":5"#, r#""size":18446744073709551621"#),
    ("size is beyond what doubles keep", "INVALID_SIZE", r#""size":5"#, r#""size":9007199254740993"#),
    ("hash is upper case", "INVALID_SHA256", r#""sha256":"2"#, r#""sha256":"F"#),
    ("hash is short", "INVALID_SHA256", r#""sha256":"2"#, r#""sha256":""#),
    ("hash is long", "INVALID_SHA256", r#""sha256":"2"#, r#""sha256":"22"#),
    ("id is upper case", "INVALID_SHA256", r#""snapshotId":""#, r#""snapshotId":"A"#),
    ("offset is text", "INVALID_OFFSET", r#""offset":0"#, r#""offset":"0""#),
    ("two files share bytes", "INVALID_OFFSET", r#""offset":5"#, r#""offset":4"#),
    ("bytes between two files", "INVALID_OFFSET", r#""offset":5"#, r#""offset":6"#),
    ("offset wraps around", "INVALID_OFFSET", r#""offset":5"#, r#""offset":18446744073709551615"#),
    ("total is one less", "TOTAL_BYTES_MISMATCH", r#""totalBytes":24"#, r#""totalBytes":23"#),
    ("total is one more", "TOTAL_BYTES_MISMATCH", r#""totalBytes":24"#, r#""totalBytes":25"#),
    ("executable bit outside the id", "SNAPSHOT_ID_MISMATCH", r#""mode":100644"#, r#""mode":100755"#),
    ("path outside the id", "SNAPSHOT_ID_MISMATCH", r#""path":"a.txt""#, r#""path":"b.txt""#),
    ("hash outside the id", "SNAPSHOT_ID_MISMATCH", r#""sha256":"2"#, r#""sha256":"3"#),
    ("white space between fields", "NON_CANONICAL", r#","version""#, r#", "version""#),
    ("white space before", "NON_CANONICAL", r#"{"format""#, r#" {"format""#),
    ("a newline at the end", "NON_CANONICAL", "}]}", "}]}\n"),
    ("a needless escape in a path", "NON_CANONICAL", "a.txt", r"\u0061.txt"),
    ("an escaped slash", "NON_CANONICAL", "bin/run", r"bin\/run"),
    ("an escaped key", "NON_CANONICAL", r#""version""#, r#""\u0076ersion""#),
    ("keys in another order", "NON_CANONICAL", r#""version":1,"kind":"snapshot""#, r#""kind":"snapshot","version":1"#),
    ("keys of an entry in another order", "NON_CANONICAL", r#""size":5,"mode":100644"#, r#""mode":100644,"size":5"#),
    ("a key twice, the last is honest", "NON_CANONICAL", r#""version":1"#, r#""version":2,"version":1"#),
    ("a key twice in an entry", "NON_CANONICAL", r#""path":"a.txt""#, r#""path":"../x","path":"a.txt""#),
    ("a key twice by an escape", "NON_CANONICAL", r#""path":"a.txt""#, r#""p\u0061th":"../x","path":"a.txt""#),
    ("entries twice", "NON_CANONICAL", r#""entries""#, r#""entries":[{"path":"../x"}],"entries""#),
    ("number with an exponent", "NON_CANONICAL", r#""size":5"#, r#""size":5e0"#),
    ("number with a point", "NON_CANONICAL", r#""size":5"#, r#""size":5.0"#),
    ("minus zero", "NON_CANONICAL", r#""offset":0"#, r#""offset":-0"#),
    ("a key twice, the last is a lie", "BAD_VERSION", r#""version":1"#, r#""version":1,"version":2"#),
    ("a comment", "INVALID_JSON", r#","version""#, r#",/**/"version""#),
    ("a comma at the end", "INVALID_JSON", "}]}", "},]}"),
    ("a second document", "INVALID_JSON", "}]}", "}]}{}"),
    ("half a document", "INVALID_JSON", "}]}", "}]"),
    ("not a number", "INVALID_JSON", r#""size":5"#, r#""size":NaN"#),
    ("a leading zero", "INVALID_JSON", r#""size":5"#, r#""size":05"#),
    ("a plus sign", "INVALID_JSON", r#""size":5"#, r#""size":+5"#),
    ("a lone surrogate", "INVALID_JSON", "a.txt", r"\ud800"),
    ("a raw control character", "INVALID_JSON", "a.txt", "a\u{1}txt"),
    ("a list for the object", "INVALID_JSON", r#"{"format":"prime-agent-workspace","#, r#"["format","#),
];

/// Whole archives, to be read with their payload.
pub fn paws_attacks() -> Vec<Attack> {
    let body = payload(HONEST);
    let (_, manifest) = paws("w", HONEST);
    let mut attacks = edits(&manifest, EDITS, |manifest| wrap_paws(manifest, &body));
    attacks.extend(headers());
    attacks.extend(encodings());
    attacks.extend(
        BAD_PATHS
            .iter()
            .chain(&["a\u{85}", "\u{9b}2J"])
            .map(|p| path(p)),
    );
    attacks.push(path(&"a".repeat(513)));
    attacks.extend(trees());
    attacks.extend(payloads());
    attacks.extend(costs());
    attacks
}

fn attack(name: &str, expect: &'static str, bytes: Vec<u8>) -> Attack {
    Attack {
        name: name.to_owned(),
        bytes,
        expect,
        twin: paws("w", HONEST).0,
    }
}

fn headers() -> Vec<Attack> {
    let (honest, _) = paws("w", HONEST);
    let with_length = |length: u64| {
        let mut bytes = honest.clone();
        bytes.splice(5..13, length.to_be_bytes());
        bytes
    };
    let renamed = |magic: &[u8; 5]| [magic, honest.split_at(5).1].concat();
    vec![
        attack("nothing", "BUFFER_EMPTY", Vec::new()),
        attack("one byte", "SHORT_HEADER", b"P".to_vec()),
        attack(
            "a header without its last byte",
            "SHORT_HEADER",
            honest.split_at(12).0.to_vec(),
        ),
        attack(
            "the magic of the other format",
            "BAD_MAGIC",
            renamed(b"PAAR1"),
        ),
        attack("a later magic", "BAD_MAGIC", renamed(b"PAWS2")),
        attack("the magic in lower case", "BAD_MAGIC", renamed(b"paws1")),
        attack(
            "one byte before the magic",
            "BAD_MAGIC",
            [b" ", &honest[..]].concat(),
        ),
        attack(
            "length 2^64 - 1",
            "MANIFEST_TOO_LARGE",
            with_length(u64::MAX),
        ),
        attack(
            "length one above the limit",
            "MANIFEST_TOO_LARGE",
            with_length((64 << 20) + 1),
        ),
        attack(
            "length 2^32, which is 0 to 32 bits",
            "MANIFEST_TOO_LARGE",
            with_length(1 << 32),
        ),
        attack(
            "length at the limit, bytes missing",
            "MANIFEST_TRUNCATED",
            with_length(64 << 20),
        ),
        attack("length 0", "INVALID_JSON", with_length(0)),
    ]
}

fn encodings() -> Vec<Attack> {
    let (_, manifest) = paws("w", HONEST);
    let body = payload(HONEST);
    let swapped = |find: &[u8], put: &[u8]| {
        let at = manifest.find("a.txt").unwrap_or_default();
        let (before, after) = manifest.as_bytes().split_at(at);
        let after = after.strip_prefix(find).unwrap_or(after);
        wrap_paws(&[before, put, after].concat(), &body)
    };
    let wide: Vec<u8> = manifest.encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        attack(
            "an overlong slash",
            "INVALID_UTF8",
            swapped(b"a.txt", b"a\xc0\xaftxt"),
        ),
        attack(
            "an encoded surrogate",
            "INVALID_UTF8",
            swapped(b"a.txt", b"\xed\xa0\x80"),
        ),
        attack(
            "a byte of Latin-1",
            "INVALID_UTF8",
            swapped(b"a.txt", b"\xe9"),
        ),
        attack(
            "a byte order mark",
            "INVALID_UTF8",
            wrap_paws(&[b"\xef\xbb\xbf", manifest.as_bytes()].concat(), &body),
        ),
        attack("UTF-16", "INVALID_JSON", wrap_paws(&wide, &body)),
    ]
}

fn path(bad: &str) -> Attack {
    let bytes = paws("w", &[(bad, false, b"x")]).0;
    Attack {
        twin: paws("w", &[("a/b", false, b"x")]).0,
        ..attack(&format!("path {}", quote(bad)), "INVALID_PATH", bytes)
    }
}

/// Paths that may not stand together, or not in this order, each with some that may.
fn trees() -> Vec<Attack> {
    let tree = |paths: &[&'static str]| {
        let files: Vec<File<'_>> = paths.iter().map(|p| (*p, false, &b"x"[..])).collect();
        paws("w", &files).0
    };
    let table: &[(&str, &[&str], &[&str])] = &[
        ("DUPLICATE_ENTRY_PATH", &["a", "a"], &["a", "aa"]),
        ("DUPLICATE_ENTRY_PATH", &["b", "a", "b"], &["a", "b"]),
        ("ENTRIES_UNSORTED", &["b", "a"], &["a", "b"]),
        ("ENTRIES_UNSORTED", &["a", "c", "b"], &["a", "b", "c"]),
        // By UTF-16 code units this would be in order; by bytes it is not.
        (
            "ENTRIES_UNSORTED",
            &["\u{10000}", "\u{e000}"],
            &["\u{e000}", "\u{10000}"],
        ),
        // In the order of directory listings `a/c` comes before `a-b`.
        ("ENTRIES_UNSORTED", &["a/c", "a-b"], &["a-b", "a/c"]),
        ("PREFIX_CONFLICT", &["a", "a/c"], &["a", "ac"]),
        (
            "PREFIX_CONFLICT",
            &["a", "a-b", "a/c"],
            &["a", "a-b", "a0/c"],
        ),
        (
            "PREFIX_CONFLICT",
            &["x", "x.1", "x.1.2", "x.1/y"],
            &["x", "x.1", "x.1.2", "x.10/y"],
        ),
        (
            "PREFIX_CONFLICT",
            &["a", "a b", "a!", "a+", "a/b/c/d"],
            &["a b", "a!", "a+", "a/b/c/d"],
        ),
        (
            "PREFIX_CONFLICT",
            &["a/b", "a/b-", "a/b/c"],
            &["a/b", "a/b-", "a/b0/c"],
        ),
    ];
    let attacks = table.iter().map(|(expect, bad, good)| Attack {
        twin: tree(good),
        ..attack(&format!("{bad:?}"), expect, tree(bad))
    });
    attacks.collect()
}

fn payloads() -> Vec<Attack> {
    let (honest, manifest) = paws("w", HONEST);
    let edited = |edit: fn(&mut Vec<u8>)| {
        let mut body = payload(HONEST);
        edit(&mut body);
        wrap_paws(manifest.as_bytes(), &body)
    };
    vec![
        attack("no payload", "PAYLOAD_TRUNCATED", edited(Vec::clear)),
        attack(
            "the last byte is missing",
            "PAYLOAD_TRUNCATED",
            edited(|body| body.truncate(23)),
        ),
        attack(
            "one byte more",
            "TRAILING_BYTES",
            edited(|body| body.push(0)),
        ),
        attack(
            "two archives",
            "TRAILING_BYTES",
            [&honest[..], &honest[..]].concat(),
        ),
        attack(
            "one bit of the first byte",
            "PAYLOAD_HASH_MISMATCH",
            edited(|body| body[0] ^= 1),
        ),
        attack(
            "two files change places",
            "PAYLOAD_HASH_MISMATCH",
            edited(|body| body[..10].rotate_left(5)),
        ),
    ]
}

/// Small inputs that would cost a careless reader much.
fn costs() -> Vec<Attack> {
    let names: Vec<String> = (0..10).map(|n| format!("{n}")).collect();
    let files: Vec<File<'_>> = names
        .iter()
        .map(|n| (n.as_str(), false, &b""[..]))
        .collect();
    let huge = paws_manifest_of_sizes("w", &files, &[50 << 20; 10]);
    let (_, manifest) = paws("w", HONEST);
    let entries = |list: &str| {
        let start = manifest.find("\"entries\"").unwrap_or_default();
        wrap_paws(
            format!("{}\"entries\":{list}}}", manifest.split_at(start).0).as_bytes(),
            &[],
        )
    };
    vec![
        attack(
            "ten files of 50 MiB",
            "ARCHIVE_TOO_LARGE",
            wrap_paws(huge.as_bytes(), &[]),
        ),
        attack(
            "100,001 entries",
            "MAX_ENTRIES_EXCEEDED",
            entries(&format!("[{}0]", "0,".repeat(100_000))),
        ),
        attack(
            "100,000 open brackets",
            "INVALID_JSON",
            entries(&"[".repeat(100_000)),
        ),
        attack(
            "a million empty lists in an entry",
            "ENTRY_TYPE_ERROR",
            entries(&format!("[[{}0]]", "[],".repeat(1_000_000))),
        ),
    ]
}

/// Archives that are sound, with names a file system would read as something else. To be extracted
/// with the strict rules for names.
pub fn name_attacks() -> Vec<Attack> {
    let tree = |paths: &[&'static str]| {
        let mut files: Vec<File<'_>> = paths.iter().map(|p| (*p, false, &b"x"[..])).collect();
        files.sort();
        paws("w", &files).0
    };
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "UNSAFE_NAME",
            &[".git/hooks/pre-commit"],
            &[".github/hooks/pre-commit"],
        ),
        ("UNSAFE_NAME", &["a/.GIT/config"], &["a/.GITX/config"]),
        ("UNSAFE_NAME", &[".g\u{200c}it/config"], &[".gitx/config"]),
        ("UNSAFE_NAME", &["GIT~1/config"], &["GIT~x/config"]),
        ("UNSAFE_NAME", &[".git. ./config"], &[".git.x/config"]),
        (
            "UNSAFE_NAME",
            &[".git::$INDEX_ALLOCATION/config"],
            &[".git-index/config"],
        ),
        ("UNSAFE_NAME", &["a.txt:stream"], &["a.txt-stream"]),
        ("UNSAFE_NAME", &["src/aux.rs"], &["src/auxiliary.rs"]),
        ("UNSAFE_NAME", &["COM¹"], &["COM"]),
        ("UNSAFE_NAME", &["a."], &[".a"]),
        (
            "NAME_COLLISION",
            &["README", "readme"],
            &["README", "readme.md"],
        ),
        ("NAME_COLLISION", &["A/x", "a/y"], &["A/x", "b/y"]),
        (
            "NAME_COLLISION",
            &["straße", "STRASSE"],
            &["straße", "STRASE"],
        ),
        ("NAME_COLLISION", &["ﬁ", "fi"], &["ﬁ", "fj"]),
    ];
    let attacks = table.iter().map(|(expect, bad, good)| Attack {
        twin: tree(good),
        ..attack(&format!("{bad:?}"), expect, tree(bad))
    });
    attacks.collect()
}

const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// An honest changeset, manifest only.
pub(super) fn changeset() -> String {
    format!(
        r#"{{"format":"prime-agent-workspace","version":1,"kind":"changeset","workspaceId":"w","baseSnapshotId":"{HASH}","snapshotId":"{HASH}","totalBytes":7,"entries":[{{"operation":"add","path":"a","size":3,"mode":100644,"sha256":"{HASH}","offset":0}},{{"operation":"delete","path":"b","baseHash":"{HASH}"}},{{"operation":"change","path":"c","size":4,"mode":100755,"sha256":"{HASH}","offset":3,"baseHash":"{HASH}"}}]}}"#
    )
}

#[rustfmt::skip] // one attack, one line
const CHANGESET_EDITS: &[Edit] = &[
    ("an unknown operation", "INVALID_OPERATION", r#""operation":"add""#, r#""operation":"link""#),
    ("operation is a number", "INVALID_OPERATION", r#""operation":"add""#, r#""operation":1"#),
    ("no operation", "MISSING_FIELD", r#""operation":"add","#, ""),
    ("an addition with a base", "EXTRA_FIELD", r#""offset":0"#, r#""offset":0,"baseHash":"""#),
    ("a change without a base", "MISSING_FIELD", r#""operation":"add""#, r#""operation":"change""#),
    ("a deletion that carries bytes", "EXTRA_FIELD", r#""path":"b""#, r#""path":"b","size":0"#),
    ("a deletion outside the tree", "INVALID_PATH", r#""path":"b""#, r#""path":"../b""#),
    ("a deletion of what is also changed", "DUPLICATE_ENTRY_PATH", r#""path":"b""#, r#""path":"c""#),
    ("a deletion of an ancestor", "PREFIX_CONFLICT", r#""path":"c""#, r#""path":"b/c""#),
    ("a base hash in upper case", "INVALID_BASE_HASH", r#""baseHash":"9f"#, r#""baseHash":"9F"#),
    ("a base id in upper case", "INVALID_BASE_HASH", r#""baseSnapshotId":"9f"#, r#""baseSnapshotId":"9F"#),
    ("a base id that is a number", "FIELD_TYPE_ERROR", r#","totalBytes""#, r#","baseSnapshotId":0,"totalBytes""#),
    ("no base id", "BASE_SNAPSHOT_ID_REQUIRED", r#""baseSnapshotId""#, r#""base""#),
    ("a deletion takes up room", "INVALID_OFFSET", r#""offset":3"#, r#""offset":4"#),
    ("entries out of order", "ENTRIES_UNSORTED", r#""path":"b""#, r#""path":"d""#),
    ("white space", "NON_CANONICAL", r#","version""#, r#", "version""#),
    ("a change in another order", "NON_CANONICAL", r#""operation":"delete","path":"b""#, r#""path":"b","operation":"delete""#),
];

/// Manifests, to be decoded without a payload.
pub fn paws_manifest_attacks() -> Vec<Attack> {
    let text = changeset();
    // One key more and one less is a field set like any other: the number of keys is not looked at.
    let mut attacks = edits(&text, CHANGESET_EDITS, |manifest| wrap_paws(manifest, &[]));
    let twin = wrap_paws(text.as_bytes(), &[]);
    for extra in [&b"\0"[..], b"abcdefg"] {
        attacks.push(Attack {
            name: format!("{} bytes after the manifest", extra.len()),
            bytes: [&twin, extra].concat(),
            expect: "TRAILING_BYTES",
            twin: twin.clone(),
        });
    }
    attacks
}
