//! Decode vectors for the codes that the older golden vectors leave out, as the files
//! `fixtures/vectors/*-more.json` hold them.

use super::Edit;
use super::encoder::{File, hex, paar, paar_manifest, paws, wrap_paar, wrap_paws};
use super::paar::{COMMIT, TARGET};
use super::paws::changeset;

/// One vector of the manifest-only decode.
#[derive(Debug, Clone)]
pub struct Vector {
    /// What is wrong with it.
    pub name: String,
    /// Header and manifest.
    pub bytes: Vec<u8>,
    /// Length of the whole archive, where the format asks for it.
    pub total: Option<u64>,
    /// The code of its refusal.
    pub error: &'static str,
}

/// A file `fixtures/vectors/*.json` without encode vectors.
pub fn vector_file(format: &str, vectors: &[Vector]) -> String {
    let decode = vectors.iter().map(|vector| {
        let bytes: String = vector.bytes.iter().map(|b| format!("{b:02x}")).collect();
        let total = vector
            .total
            .map_or(String::new(), |n| format!(",\n   \"total_archive_size\": {n}"));
        format!(
            "  {{\n   \"name\": \"{}\",\n   \"bytes_hex\": \"{bytes}\"{total},\n   \"error\": \"{}\"\n  }}",
            vector.name, vector.error
        )
    });
    let decode: Vec<String> = decode.collect();
    format!(
        "{{\n \"format\": \"{format}\",\n \"encode\": [],\n \"decode\": [\n{}\n ]\n}}\n",
        decode.join(",\n")
    )
}

#[rustfmt::skip] // one vector, one line
const SNAPSHOT: &[Edit] = &[
    ("changeset-without-base", "BASE_SNAPSHOT_ID_REQUIRED", r#""kind":"snapshot""#, r#""kind":"changeset""#),
    ("snapshot-with-base", "BASE_SNAPSHOT_ID_NOT_ALLOWED", r#""snapshotId""#, r#""baseSnapshotId":null,"snapshotId""#),
    ("workspace-number", "FIELD_TYPE_ERROR", r#""workspaceId":"w""#, r#""workspaceId":1"#),
    ("snapshot-id-null", "FIELD_TYPE_ERROR", r#","totalBytes""#, r#","snapshotId":null,"totalBytes""#),
    ("total-negative", "FIELD_TYPE_ERROR", r#""totalBytes":8"#, r#""totalBytes":-8"#),
    ("total-half", "FIELD_TYPE_ERROR", r#""totalBytes":8"#, r#""totalBytes":8.5"#),
    ("total-2^53", "FIELD_TYPE_ERROR", r#""totalBytes":8"#, r#""totalBytes":9007199254740992"#),
    ("entries-object", "FIELD_TYPE_ERROR", "}]}", r#"}],"entries":{}}"#),
    ("entries-null", "FIELD_TYPE_ERROR", "}]}", r#"}],"entries":null}"#),
    ("entry-null", "ENTRY_TYPE_ERROR", r#""entries":["#, r#""entries":[null,"#),
    ("entry-list", "ENTRY_TYPE_ERROR", r#""entries":["#, r#""entries":[["a",5,100644,"",0],"#),
    ("entry-text-after-a-bad-entry", "ENTRY_TYPE_ERROR", r#""entries":["#, r#""entries":[{},"a","#),
    ("snapshot-id-upper-case", "INVALID_SHA256", r#""snapshotId":""#, r#""snapshotId":"A"#),
    ("hash-upper-case", "INVALID_SHA256", r#""sha256":"2"#, r#""sha256":"F"#),
    ("hash-short", "INVALID_SHA256", r#""sha256":"2"#, r#""sha256":""#),
    ("hash-number", "INVALID_SHA256", r#""sha256":""#, r#""sha256":0,"sha256":"x"#),
    ("size-2^53", "INVALID_SIZE", r#""size":5"#, r#""size":9007199254740992"#),
    ("offset-text", "INVALID_OFFSET", r#""offset":0"#, r#""offset":"0""#),
    ("entry-field-missing", "MISSING_FIELD", r#""size":5,"#, ""),
    ("entry-field-extra", "EXTRA_FIELD", r#""offset":0"#, r#""offset":0,"uid":0"#),
    ("lone-surrogate-escape", "INVALID_JSON", r#""path":"a"#, r#""path":"\ud800"#),
    ("second-document", "INVALID_JSON", "}]}", "}]}{}"),
    ("escaped-key", "NON_CANONICAL", r#""version""#, r#""\u0076ersion""#),
];

#[rustfmt::skip] // one vector, one line
const CHANGESET: &[Edit] = &[
    ("changeset-base-missing", "BASE_SNAPSHOT_ID_REQUIRED", r#""baseSnapshotId""#, r#""base""#),
    ("changeset-kind-snapshot", "BASE_SNAPSHOT_ID_NOT_ALLOWED", r#""kind":"changeset""#, r#""kind":"snapshot""#),
    ("base-id-number", "FIELD_TYPE_ERROR", r#","snapshotId""#, r#","baseSnapshotId":1,"snapshotId""#),
    ("base-id-upper-case", "INVALID_BASE_HASH", r#""baseSnapshotId":"9f"#, r#""baseSnapshotId":"9F"#),
    ("base-hash-upper-case", "INVALID_BASE_HASH", r#""baseHash":"9f"#, r#""baseHash":"9F"#),
    ("base-hash-short", "INVALID_BASE_HASH", r#""baseHash":"9f"#, r#""baseHash":""#),
    ("operation-unknown", "INVALID_OPERATION", r#""operation":"add""#, r#""operation":"rename""#),
    ("operation-null", "INVALID_OPERATION", r#""operation":"add""#, r#""operation":null"#),
    ("operation-missing", "MISSING_FIELD", r#""operation":"add","#, ""),
    ("delete-with-bytes", "EXTRA_FIELD", r#""path":"b""#, r#""path":"b","size":0"#),
    ("change-without-base", "MISSING_FIELD", r#""operation":"add""#, r#""operation":"change""#),
    ("delete-of-a-changed-path", "DUPLICATE_ENTRY_PATH", r#""path":"b""#, r#""path":"c""#),
    ("delete-of-an-ancestor", "PREFIX_CONFLICT", r#""path":"c""#, r#""path":"b/c""#),
    ("delete-takes-room", "INVALID_OFFSET", r#""offset":3"#, r#""offset":4"#),
    ("change-in-another-order", "NON_CANONICAL", r#""operation":"delete","path":"b""#, r#""path":"b","operation":"delete""#),
];

#[rustfmt::skip] // one vector, one line
const ARTIFACT: &[Edit] = &[
    ("another-format", "BAD_FORMAT", "prime-agent-artifact", "prime-agent-workspace"),
    ("later-version", "BAD_VERSION", r#""version":1,"target""#, r#""version":2,"target""#),
    ("version-text", "BAD_VERSION", r#""version":1,"target""#, r#""version":"1","target""#),
    ("protocol-null", "BAD_PROTOCOL", r#","filesDigest""#, r#","protocol":null,"filesDigest""#),
    ("protocol-field-extra", "BAD_PROTOCOL", r#""daemonSchemaRevision":0"#, r#""daemonSchemaRevision":0,"x":0"#),
    ("protocol-field-missing", "BAD_PROTOCOL", r#","daemonSchemaRevision":0"#, ""),
    ("protocol-version-2", "BAD_PROTOCOL_VERSION", r#""version":1,"daemon"#, r#""version":2,"daemon"#),
    ("daemon-version-0", "BAD_DAEMON_PROTOCOL_VERSION", r#""daemonProtocolVersion":1"#, r#""daemonProtocolVersion":0"#),
    ("daemon-version-2^53", "BAD_DAEMON_PROTOCOL_VERSION", r#""daemonProtocolVersion":1"#, r#""daemonProtocolVersion":9007199254740992"#),
    ("schema-revision-negative", "BAD_DAEMON_SCHEMA_REVISION", r#""daemonSchemaRevision":0"#, r#""daemonSchemaRevision":-1"#),
    ("schema-revision-text", "BAD_DAEMON_SCHEMA_REVISION", r#""daemonSchemaRevision":0"#, r#""daemonSchemaRevision":"0""#),
    ("files-digest-long", "BAD_FILES_DIGEST", r#""filesDigest":""#, r#""filesDigest":"0"#),
    ("files-digest-null", "BAD_FILES_DIGEST", r#","buildId""#, r#","filesDigest":null,"buildId""#),
    ("build-id-upper-case", "BAD_BUILD_ID", r#""buildId":""#, r#""buildId":"A"#),
    ("files-object", "BAD_FILES", "}]}", r#"}],"files":{}}"#),
    ("file-null", "BAD_FILE_ENTRY", r#""files":["#, r#""files":[null,"#),
    ("file-field-extra", "BAD_FILE_ENTRY", r#""offset":0"#, r#""offset":0,"uid":0"#),
    ("file-field-missing", "BAD_FILE_ENTRY", r#""size":4,"#, ""),
    ("hash-upper-case", "INVALID_FILE_HASH", r#""sha256":""#, r#""sha256":"A"#),
    ("size-above-256-mib", "INVALID_FILE_SIZE", r#""size":4"#, r#""size":268435457"#),
    ("size-half", "INVALID_FILE_SIZE", r#""size":4"#, r#""size":4.5"#),
    ("offset-text", "INVALID_FILE_OFFSET", r#""offset":0"#, r#""offset":"0""#),
    ("not-json", "INVALID_JSON", "}]}", "}]"),
    ("second-document", "INVALID_JSON", "}]}", "}]}{}"),
    ("key-order", "NON_CANONICAL", r#""size":4,"mode":493"#, r#""mode":493,"size":4"#),
    ("duplicate-key", "NON_CANONICAL", r#""size":4"#, r#""size":5,"size":4"#),
];

/// More vectors of PAWS1.
pub fn paws_vectors() -> Vec<Vector> {
    let files: &[File<'_>] = &[("a", false, b"hello"), ("b", true, b"run")];
    let text = paws("w", files).1;
    let mut vectors = edited(&text, SNAPSHOT, wrap);
    vectors.extend(edited(&changeset(), CHANGESET, wrap));
    let (start, _) = text.split_at(text.find("\"entries\"").unwrap_or_default());
    let many = format!("{start}\"entries\":[{}0]}}", "0,".repeat(100_000));
    vectors.push(vector(
        "100001-entries",
        "MAX_ENTRIES_EXCEEDED",
        wrap(&many),
    ));
    vectors.push(vector(
        "eleven-files-of-50-mib",
        "ARCHIVE_TOO_LARGE",
        wrap(&eleven_files()),
    ));
    vectors
}

/// More vectors of PAAR1.
pub fn paar_vectors() -> Vec<Vector> {
    let files: &[File<'_>] = &[("bin/run", true, b"\x7fELF"), ("lib", false, b"data")];
    let (_, text) = paar(COMMIT, TARGET, files);
    // With its payload, so that the length of the archive is that of these bytes.
    let mut vectors = edited(&text, ARTIFACT, |text| {
        wrap_paar(text.as_bytes(), b"\x7fELFdata")
    });
    let trees: &[(&str, &str, &[&str])] = &[
        ("duplicate", "DUPLICATE_FILE_PATH", &["a", "a"]),
        ("duplicate-apart", "DUPLICATE_FILE_PATH", &["b", "a", "b"]),
        ("unsorted", "FILES_UNSORTED", &["b", "a"]),
        (
            "unsorted-utf-16",
            "FILES_UNSORTED",
            &["\u{10000}", "\u{e000}"],
        ),
        ("prefix-conflict", "PREFIX_CONFLICT", &["a", "a/c"]),
        (
            "prefix-conflict-not-adjacent",
            "PREFIX_CONFLICT",
            &["a", "a-b", "a/c"],
        ),
    ];
    for (name, error, paths) in trees {
        let files: Vec<File<'_>> = paths.iter().map(|p| (*p, false, &b""[..])).collect();
        vectors.push(vector(name, error, paar(COMMIT, TARGET, &files).0));
    }
    let five: Vec<File<'_>> = ["0", "1", "2", "3", "4"]
        .map(|n| (n, false, &b""[..]))
        .to_vec();
    let huge = paar_manifest(COMMIT, TARGET, &five, &[256 << 20; 5]);
    vectors.push(vector(
        "five-files-of-256-mib",
        "PAYLOAD_OVERFLOW",
        wrap_paar(huge.as_bytes(), &[]),
    ));
    let latin = text.replace("bin/run", "bin/r\u{1}n").into_bytes();
    let latin: Vec<u8> = latin
        .iter()
        .map(|b| if *b == 1 { 0xe9 } else { *b })
        .collect();
    vectors.push(vector("latin-1", "INVALID_UTF8", wrap_paar(&latin, &[])));
    let marked = format!("\u{feff}{text}");
    vectors.push(vector(
        "bom",
        "INVALID_UTF8",
        wrap_paar(marked.as_bytes(), &[]),
    ));
    for vector in &mut vectors {
        vector.total = u64::try_from(vector.bytes.len()).ok();
    }
    vectors
}

fn wrap(text: &str) -> Vec<u8> {
    wrap_paws(text.as_bytes(), &[])
}

fn vector(name: &str, error: &'static str, bytes: Vec<u8>) -> Vector {
    Vector {
        name: name.to_owned(),
        bytes,
        total: None,
        error,
    }
}

fn edited(text: &str, table: &[Edit], wrap: fn(&str) -> Vec<u8>) -> Vec<Vector> {
    let vectors = table.iter().map(|(name, error, find, put)| {
        assert!(text.contains(find), "{name}: {find} is not in {text}");
        vector(name, error, wrap(&text.replacen(find, put, 1)))
    });
    vectors.collect()
}

/// A snapshot of 550 MiB that was never written.
fn eleven_files() -> String {
    const SIZE: usize = 50 << 20;
    let hash = hex(b"");
    let (mut named, mut listed) = (Vec::new(), Vec::new());
    for n in 0..11 {
        let fields = format!(r#""path":"{n:02}","size":{SIZE},"mode":100644,"sha256":"{hash}""#);
        named.push(format!("{{{fields}}}"));
        listed.push(format!("{{{fields},\"offset\":{}}}", n * SIZE));
    }
    format!(
        r#"{{"format":"prime-agent-workspace","version":1,"kind":"snapshot","workspaceId":"w","snapshotId":"{}","totalBytes":{},"entries":[{}]}}"#,
        hex(format!("[{}]", named.join(",")).as_bytes()),
        11 * SIZE,
        listed.join(",")
    )
}
