use super::encoder::{File, paar, paar_manifest, payload, quote, wrap_paar};
use super::{BAD_PATHS, Edit, edits};
use crate::Attack;

pub(super) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub(super) const TARGET: &str = "linux-x64";

const HONEST: &[File<'static>] = &[
    ("bin/run", true, b"\x7fELF"),
    ("lib/data", false, b"data!"),
    ("lib/none", false, b""),
];

#[rustfmt::skip] // one attack, one line
const EDITS: &[Edit] = &[
    ("another format", "BAD_FORMAT", "prime-agent-artifact", "prime-agent-workspace"),
    ("a later version", "BAD_VERSION", r#""version":1"#, r#""version":2"#),
    ("another target", "BAD_TARGET", r#""target":"linux-x64""#, r#""target":"linux-x86""#),
    ("target is null", "BAD_TARGET", r#""target":"linux-x64""#, r#""target":null"#),
    ("a commit in upper case", "BAD_SOURCE_COMMIT", "abcdef01234567\"", "ABCDEF01234567\""),
    ("a commit of 64 digits", "BAD_SOURCE_COMMIT", "abcdef01234567\"", "abcdef01234567abcdef01234567abcdef012345\""),
    ("protocol is text", "BAD_PROTOCOL", r#","filesDigest""#, r#","protocol":"x","filesDigest""#),
    ("protocol with one field more", "BAD_PROTOCOL", r#""daemonSchemaRevision":0"#, r#""daemonSchemaRevision":0,"x":0"#),
    ("protocol with one field less", "BAD_PROTOCOL", r#","daemonSchemaRevision":0"#, ""),
    ("another protocol", "BAD_PROTOCOL_NAME", "prime-agent.remote-host", "prime-agent.remote-hosts"),
    ("another protocol version", "BAD_PROTOCOL_VERSION", r#""version":1,"daemon"#, r#""version":2,"daemon"#),
    ("daemon version 0", "BAD_DAEMON_PROTOCOL_VERSION", r#""daemonProtocolVersion":1"#, r#""daemonProtocolVersion":0"#),
    ("daemon version 2^53", "BAD_DAEMON_PROTOCOL_VERSION", r#""daemonProtocolVersion":1"#, r#""daemonProtocolVersion":9007199254740992"#),
    ("daemon version is text", "BAD_DAEMON_PROTOCOL_VERSION", r#""daemonProtocolVersion":1"#, r#""daemonProtocolVersion":"1""#),
    ("a negative revision", "BAD_DAEMON_SCHEMA_REVISION", r#""daemonSchemaRevision":0"#, r#""daemonSchemaRevision":-1"#),
    ("revision is half", "BAD_DAEMON_SCHEMA_REVISION", r#""daemonSchemaRevision":0"#, r#""daemonSchemaRevision":0.5"#),
    ("files digest is long", "BAD_FILES_DIGEST", r#""filesDigest":""#, r#""filesDigest":"00"#),
    ("files digest is a number", "BAD_FILES_DIGEST", r#""filesDigest":""#, r#""filesDigest":0,"filesDigest":"A"#),
    ("build id is long", "BAD_BUILD_ID", r#""buildId":""#, r#""buildId":"00"#),
    ("files is an object", "BAD_FILES", "}]}", r#"}],"files":{}}"#),
    ("a file is a list of its values", "BAD_FILE_ENTRY", r#""files":["#, r#""files":[["a",0,420,"",0],"#),
    ("a file with one field more", "BAD_FILE_ENTRY", r#""offset":0"#, r#""offset":0,"uid":0"#),
    ("a file with one field less", "BAD_FILE_ENTRY", r#""size":4,"#, ""),
    ("one field more", "EXTRA_MANIFEST_FIELD", r#","files""#, r#","x":[],"files""#),
    ("one field less", "MISSING_MANIFEST_FIELD", r#""version":1,"target""#, r#""target""#),
    ("a path that is a number", "INVALID_FILE_PATH", r#""path":"bin/run""#, r#""path":0"#),
    ("mode of the other format", "INVALID_FILE_MODE", r#""mode":493"#, r#""mode":100755"#),
    ("mode with setuid", "INVALID_FILE_MODE", r#""mode":493"#, r#""mode":2541"#),
    ("size one above the limit", "INVALID_FILE_SIZE", r#""size":4"#, r#""size":268435457"#),
    ("size is negative", "INVALID_FILE_SIZE", r#""size":4"#, r#""size":-4"#),
    ("hash in upper case", "INVALID_FILE_HASH", r#""sha256":""#, r#""sha256":"A"#),
    ("offset is text", "INVALID_FILE_OFFSET", r#""offset":0"#, r#""offset":"0""#),
    ("two files share bytes", "INVALID_FILE_OFFSET", r#""offset":4"#, r#""offset":3"#),
    ("a mode outside the digest", "FILES_DIGEST_MISMATCH", r#""mode":493"#, r#""mode":420"#),
    ("a commit outside the build id", "BUILD_ID_MISMATCH", "abcdef01234567\"", "abcdef01234568\""),
    ("a target outside the build id", "BUILD_ID_MISMATCH", r#""target":"linux-x64""#, r#""target":"linux-arm64""#),
    ("white space", "NON_CANONICAL", r#","version""#, r#", "version""#),
    ("a key twice", "NON_CANONICAL", r#""version":1"#, r#""version":9,"version":1"#),
    ("an escaped slash", "NON_CANONICAL", "bin/run", r"bin\/run"),
    ("a number with a point", "NON_CANONICAL", r#""size":4"#, r#""size":4.0"#),
    ("keys in another order", "NON_CANONICAL", r#""size":4,"mode":493"#, r#""mode":493,"size":4"#),
    ("a second document", "INVALID_JSON", "}]}", "}]}[]"),
    ("a list for the object", "INVALID_JSON", r#"{"format":"prime-agent-artifact","#, r#"["format","#),
];

/// Whole archives, to be read with their payload.
pub fn paar_attacks() -> Vec<Attack> {
    let body = payload(HONEST);
    let (_, manifest) = paar(COMMIT, TARGET, HONEST);
    let mut attacks = edits(&manifest, EDITS, |manifest| wrap_paar(manifest, &body));
    attacks.extend(headers());
    attacks.extend(BAD_PATHS.iter().map(|p| path(p)));
    attacks.push(path(&"a".repeat(513)));
    attacks.extend(lists());
    attacks
}

fn attack(name: &str, expect: &'static str, bytes: Vec<u8>) -> Attack {
    Attack {
        name: name.to_owned(),
        bytes,
        expect,
        // C1 controls are allowed here, and nowhere else.
        twin: paar(COMMIT, TARGET, &[("a/b\u{85}", false, b"x")]).0,
    }
}

fn headers() -> Vec<Attack> {
    let (honest, manifest) = paar(COMMIT, TARGET, HONEST);
    let with_length = |length: u32| {
        let mut bytes = honest.clone();
        bytes.splice(5..9, length.to_be_bytes());
        bytes
    };
    let marked = [b"\xef\xbb\xbf", manifest.as_bytes()].concat();
    let mut flipped = honest.clone();
    flipped
        .last_mut()
        .into_iter()
        .for_each(|byte| *byte ^= 0x80);
    vec![
        attack("nothing", "ARCHIVE_TOO_LARGE", Vec::new()),
        attack(
            "a header without its last byte",
            "SHORT_HEADER",
            honest.split_at(8).0.to_vec(),
        ),
        attack(
            "the magic of the other format",
            "BAD_MAGIC",
            [b"PAWS1", honest.split_at(5).1].concat(),
        ),
        attack(
            "length 2^32 - 1",
            "MANIFEST_TOO_LARGE",
            with_length(u32::MAX),
        ),
        attack(
            "length one above the limit",
            "MANIFEST_TOO_LARGE",
            with_length((4 << 20) + 1),
        ),
        attack(
            "length at the limit, bytes missing",
            "MANIFEST_TRUNCATED",
            with_length(4 << 20),
        ),
        attack(
            "a byte order mark",
            "INVALID_UTF8",
            wrap_paar(&marked, &payload(HONEST)),
        ),
        attack(
            "one byte less",
            "TOTAL_ARCHIVE_MISMATCH",
            honest.split_at(honest.len() - 1).0.to_vec(),
        ),
        attack(
            "one byte more",
            "TOTAL_ARCHIVE_MISMATCH",
            [&honest[..], b"\0"].concat(),
        ),
        attack("one bit of the last byte", "PAYLOAD_HASH_MISMATCH", flipped),
    ]
}

fn path(bad: &str) -> Attack {
    let bytes = paar(COMMIT, TARGET, &[(bad, false, b"x")]).0;
    attack(&format!("path {}", quote(bad)), "INVALID_FILE_PATH", bytes)
}

fn lists() -> Vec<Attack> {
    let tree = |paths: &[&'static str]| {
        let files: Vec<File<'_>> = paths.iter().map(|p| (*p, false, &b"x"[..])).collect();
        paar(COMMIT, TARGET, &files).0
    };
    let names = ["0", "1", "2", "3", "4"];
    let files: Vec<File<'_>> = names.iter().map(|n| (*n, false, &b""[..])).collect();
    let huge = paar_manifest(COMMIT, TARGET, &files, &[256 << 20; 5]);
    let (_, manifest) = paar(COMMIT, TARGET, HONEST);
    let start = manifest.find("\"files\"").unwrap_or_default();
    let many = format!(
        "{}\"files\":[{}0]}}",
        manifest.split_at(start).0,
        "0,".repeat(20_000)
    );
    vec![
        attack("no file", "FILES_EMPTY", tree(&[])),
        attack("20,001 files", "BAD_FILES", wrap_paar(many.as_bytes(), &[])),
        attack("a path twice", "DUPLICATE_FILE_PATH", tree(&["a", "a"])),
        attack(
            "a path twice, apart",
            "DUPLICATE_FILE_PATH",
            tree(&["b", "a", "b"]),
        ),
        attack("files out of order", "FILES_UNSORTED", tree(&["b", "a"])),
        attack(
            "a file that is a directory",
            "PREFIX_CONFLICT",
            tree(&["a", "a/c"]),
        ),
        attack(
            "a file that is a directory further on",
            "PREFIX_CONFLICT",
            tree(&["a", "a-b", "a/c"]),
        ),
        attack(
            "five files of 256 MiB",
            "PAYLOAD_OVERFLOW",
            wrap_paar(huge.as_bytes(), &[]),
        ),
    ]
}
