//! The golden vectors other implementations are held to as well.

#![expect(
    clippy::unwrap_used,
    reason = "a vector that cannot be read is a failed test"
)]

use flightproof_archive::paar::{self, Artifact, ArtifactPath, File, Origin, Target};
use flightproof_archive::paws::{self, Change, Entry, Manifest, Snapshot};
use flightproof_archive::{ArchiveCode, ArchiveError};
use flightproof_core::{Code, Digest, RelPath};
use flightproof_hostile::archive;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

const PAWS: &str = include_str!("../../../fixtures/vectors/paws1.json");
const PAAR: &str = include_str!("../../../fixtures/vectors/paar1.json");

/// Ours, for the codes that the older ones leave out.
const MORE_PAWS: &str = include_str!("../../../fixtures/vectors/paws1-more.json");
const MORE_PAAR: &str = include_str!("../../../fixtures/vectors/paar1-more.json");

/// The codes that other implementations of PAAR1 know.
const PAAR_CODES: &str = "SHORT_HEADER BAD_MAGIC MANIFEST_TOO_LARGE MANIFEST_TRUNCATED \
    ARCHIVE_TOO_LARGE INVALID_UTF8 INVALID_JSON NON_CANONICAL BAD_FORMAT BAD_VERSION BAD_TARGET \
    BAD_SOURCE_COMMIT BAD_PROTOCOL BAD_PROTOCOL_NAME BAD_PROTOCOL_VERSION \
    BAD_DAEMON_PROTOCOL_VERSION BAD_DAEMON_SCHEMA_REVISION BAD_FILES BAD_FILE_ENTRY \
    MISSING_MANIFEST_FIELD EXTRA_MANIFEST_FIELD INVALID_FILE_PATH INVALID_FILE_MODE \
    INVALID_FILE_SIZE INVALID_FILE_HASH INVALID_FILE_OFFSET FILES_UNSORTED DUPLICATE_FILE_PATH \
    PREFIX_CONFLICT PAYLOAD_OVERFLOW FILES_DIGEST_MISMATCH BUILD_ID_MISMATCH \
    TOTAL_ARCHIVE_MISMATCH BAD_FILES_DIGEST BAD_BUILD_ID FILES_EMPTY";

/// The codes that other implementations of PAWS1 know.
const PAWS_CODES: &str = "BUFFER_EMPTY SHORT_HEADER BAD_MAGIC MANIFEST_TOO_LARGE \
    MANIFEST_TRUNCATED TRAILING_BYTES ARCHIVE_TOO_LARGE INVALID_UTF8 INVALID_JSON NON_CANONICAL \
    BAD_FORMAT BAD_VERSION BAD_KIND MISSING_FIELD EXTRA_FIELD INVALID_PATH INVALID_MODE \
    INVALID_SIZE INVALID_SHA256 INVALID_BASE_HASH INVALID_OFFSET INVALID_OPERATION \
    ENTRIES_UNSORTED DUPLICATE_ENTRY_PATH PREFIX_CONFLICT SNAPSHOT_ID_MISMATCH \
    BASE_SNAPSHOT_ID_REQUIRED BASE_SNAPSHOT_ID_NOT_ALLOWED TOTAL_BYTES_MISMATCH \
    MAX_ENTRIES_EXCEEDED FIELD_TYPE_ERROR ENTRY_TYPE_ERROR";

#[derive(Deserialize)]
struct Vectors<E, D> {
    encode: Vec<E>,
    decode: Vec<D>,
}

#[derive(Deserialize)]
struct PawsEncode {
    name: String,
    kind: String,
    workspace_id: String,
    base_snapshot_id: Option<Digest>,
    target_snapshot_id: Option<Digest>,
    entries: Vec<VectorEntry>,
    header_hex: String,
    identity: Value,
    total_bytes: u64,
}

#[derive(Deserialize)]
struct VectorEntry {
    operation: Option<String>,
    path: String,
    size: Option<u64>,
    mode: Option<u64>,
    sha256: Option<Digest>,
    #[serde(rename = "baseHash")]
    base_hash: Option<Digest>,
}

#[derive(Deserialize)]
struct PaarEncode {
    name: String,
    input: PaarInput,
    header_hex: String,
    files_digest: Digest,
    build_id: Digest,
    payload_size: u64,
    archive_size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PaarInput {
    source_commit: String,
    target: String,
    daemon_protocol_version: u64,
    daemon_schema_revision: u64,
    files: Vec<VectorEntry>,
}

#[derive(Deserialize)]
struct Decode {
    name: String,
    bytes_hex: String,
    total_archive_size: Option<u64>,
    error: Option<String>,
}

/// Vectors of either format that are only decoded.
fn decode_vectors(text: &str) -> Vec<Decode> {
    serde_json::from_str::<Vectors<Value, Decode>>(text)
        .unwrap()
        .decode
}

fn paws_vectors() -> Vectors<PawsEncode, Decode> {
    serde_json::from_str(PAWS).unwrap()
}

fn paar_vectors() -> Vectors<PaarEncode, Decode> {
    serde_json::from_str(PAAR).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16).unwrap()).collect();
    digits
        .chunks(2)
        .map(|p| u8::try_from(p[0] * 16 + p[1]).unwrap())
        .collect()
}

fn entry(from: &VectorEntry) -> Entry {
    Entry {
        path: RelPath::new(&from.path).unwrap(),
        executable: from.mode == Some(100_755),
        size: from.size.unwrap(),
        sha256: from.sha256.unwrap(),
    }
}

fn change(from: &VectorEntry) -> Change {
    match from.operation.as_deref() {
        Some("add") => Change::Add(entry(from)),
        Some("change") => Change::Change {
            entry: entry(from),
            base_hash: from.base_hash.unwrap(),
        },
        Some("delete") => Change::Delete {
            path: RelPath::new(&from.path).unwrap(),
            base_hash: from.base_hash.unwrap(),
        },
        other => panic!("{other:?}"),
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, ArchiveError>) -> Option<&'static str> {
    let refused = result.err()?;
    refused.code.explanation().code.strip_prefix("archive/")
}

#[test]
fn every_paws_vector_encodes_byte_for_byte() {
    let vectors = paws_vectors();
    assert_eq!(vectors.encode.len(), 48);
    for vector in vectors.encode {
        let bytes = hex(&vector.header_hex);
        let manifest = paws::decode(&bytes).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
        let identity = |key: &str| {
            vector.identity[key]
                .as_str()
                .unwrap()
                .parse::<Digest>()
                .unwrap()
        };
        match (vector.kind.as_str(), manifest) {
            ("snapshot", Manifest::Snapshot(found)) => {
                let entries = vector.entries.iter().map(entry).collect();
                let snapshot = Snapshot::new(vector.workspace_id, entries).unwrap();
                assert_eq!(snapshot, found, "{}", vector.name);
                assert_eq!(snapshot.header().unwrap(), bytes, "{}", vector.name);
                assert_eq!(snapshot.snapshot_id(), identity("snapshotId"));
                assert_eq!(snapshot.total_bytes(), vector.total_bytes);
            }
            ("changeset", Manifest::Changeset(found)) => {
                let changes: Vec<Change> = vector.entries.iter().map(change).collect();
                assert_eq!(found.changes(), changes, "{}", vector.name);
                assert_eq!(found.workspace_id(), vector.workspace_id);
                assert_eq!(Some(found.base_snapshot_id()), vector.base_snapshot_id);
                assert_eq!(Some(found.snapshot_id()), vector.target_snapshot_id);
                assert_eq!(found.header().unwrap(), bytes, "{}", vector.name);
                assert_eq!(
                    found.changeset_id(),
                    identity("changesetId"),
                    "{}",
                    vector.name
                );
                assert_eq!(found.total_bytes(), vector.total_bytes);
            }
            other => panic!("{}: {other:?}", vector.name),
        }
    }
}

#[test]
fn every_paws_vector_decodes_to_its_verdict() {
    let vectors = paws_vectors();
    assert_eq!(vectors.decode.len(), 51);
    for vector in vectors.decode {
        let found = code(paws::decode(&hex(&vector.bytes_hex)));
        assert_eq!(found, vector.error.as_deref(), "{}", vector.name);
    }
}

#[test]
fn every_paar_vector_encodes_byte_for_byte() {
    let vectors = paar_vectors();
    assert_eq!(vectors.encode.len(), 24);
    for vector in vectors.encode {
        let origin = Origin {
            target: match vector.input.target.as_str() {
                "linux-x64" => Target::LinuxX64,
                "linux-arm64" => Target::LinuxArm64,
                other => panic!("{other}"),
            },
            source_commit: vector.input.source_commit.parse().unwrap(),
            daemon_protocol_version: vector.input.daemon_protocol_version,
            daemon_schema_revision: vector.input.daemon_schema_revision,
        };
        let files = vector.input.files.iter().map(|file| File {
            path: ArtifactPath::new(&file.path).unwrap(),
            executable: file.mode == Some(493),
            size: file.size.unwrap(),
            sha256: file.sha256.unwrap(),
        });
        let artifact = Artifact::new(origin, files.collect()).unwrap();
        let bytes = hex(&vector.header_hex);
        assert_eq!(artifact.header().unwrap(), bytes, "{}", vector.name);
        assert_eq!(artifact.files_digest(), vector.files_digest);
        assert_eq!(artifact.build_id(), vector.build_id);
        assert_eq!(artifact.payload_bytes(), vector.payload_size);
        assert_eq!(
            paar::decode(&bytes, vector.archive_size),
            Ok(artifact),
            "{}",
            vector.name
        );
    }
}

#[test]
fn every_paar_vector_decodes_to_its_verdict() {
    let vectors = paar_vectors();
    assert_eq!(vectors.decode.len(), 22);
    for vector in vectors.decode {
        let total = vector.total_archive_size.unwrap();
        let found = code(paar::decode(&hex(&vector.bytes_hex), total));
        assert_eq!(found, vector.error.as_deref(), "{}", vector.name);
    }
}

#[test]
fn our_own_vectors_decode_to_their_verdict() {
    for vector in decode_vectors(MORE_PAWS) {
        let found = code(paws::decode(&hex(&vector.bytes_hex)));
        assert_eq!(found, vector.error.as_deref(), "{}", vector.name);
    }
    for vector in decode_vectors(MORE_PAAR) {
        let total = vector.total_archive_size.unwrap();
        let found = code(paar::decode(&hex(&vector.bytes_hex), total));
        assert_eq!(found, vector.error.as_deref(), "{}", vector.name);
    }
}

#[test]
fn our_own_vectors_are_what_the_independent_encoder_makes() {
    let made = archive::vector_file("PAWS1", &archive::paws_vectors());
    assert!(
        made == MORE_PAWS,
        "cargo run -p flightproof-hostile --example archive_vectors"
    );
    let made = archive::vector_file("PAAR1", &archive::paar_vectors());
    assert!(
        made == MORE_PAAR,
        "cargo run -p flightproof-hostile --example archive_vectors"
    );
}

#[test]
fn every_code_of_the_formats_has_a_vector() {
    for (codes, count, files) in [
        (PAAR_CODES, 36, [PAAR, MORE_PAAR]),
        (PAWS_CODES, 32, [PAWS, MORE_PAWS]),
    ] {
        let codes: BTreeSet<&str> = codes.split_whitespace().collect();
        assert_eq!(codes.len(), count);
        let vectors: Vec<Decode> = files.into_iter().flat_map(decode_vectors).collect();
        let met: BTreeSet<&str> = vectors.iter().filter_map(|v| v.error.as_deref()).collect();
        assert_eq!(met, codes);
    }
}

#[test]
fn a_vector_that_is_not_refused_is_accepted_as_a_whole() {
    // The only accepted bytes of a decode vector; everything else must name its code.
    assert!(paws_vectors().decode.iter().all(|v| v.error.is_some()));
    assert_eq!(
        code::<()>(Err(ArchiveCode::BadMagic.refuse(""))),
        Some("BAD_MAGIC")
    );
    let accepted = paar_vectors()
        .decode
        .into_iter()
        .filter(|v| v.error.is_none());
    assert_eq!(accepted.map(|v| v.name).collect::<Vec<_>>(), ["ok"]);
}
