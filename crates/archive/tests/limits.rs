//! Limits are the last that is taken, whoever says how much there is.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made is a failed test"
)]

use flightproof_archive::{ArchiveCode, ArchiveError, paar, paws};
use flightproof_core::{CommitId, Digest, RelPath};
use paar::{Artifact, ArtifactPath, Origin};
use paws::{Changeset, Entry, Snapshot};

fn code<T>(result: Result<T, ArchiveError>) -> Option<ArchiveCode> {
    result.err().map(|e| e.code)
}

fn tree(sizes: impl IntoIterator<Item = u64>) -> Result<Snapshot, ArchiveError> {
    let entries = sizes.into_iter().enumerate().map(|(index, size)| Entry {
        path: RelPath::new(&format!("{index:06}")).unwrap(),
        executable: false,
        size,
        sha256: Digest::of(b""),
    });
    Snapshot::new("w", entries.collect())
}

const LATEST: Origin = Origin {
    target: paar::Target::LinuxArm64,
    source_commit: CommitId::from_bytes([7; 20]),
    daemon_protocol_version: MAX_SAFE,
    daemon_schema_revision: MAX_SAFE,
};
const MAX_SAFE: u64 = (1 << 53) - 1;

fn artifact(sizes: impl IntoIterator<Item = u64>) -> Result<Artifact, ArchiveError> {
    let files = sizes
        .into_iter()
        .enumerate()
        .map(|(index, size)| paar::File {
            path: ArtifactPath::new(&format!("{index:06}")).unwrap(),
            executable: false,
            size,
            sha256: Digest::of(b""),
        });
    Artifact::new(LATEST, files.collect())
}

/// A header of PAWS1 whose manifest has white space that no canonical one has.
fn spaced(header: &[u8]) -> Vec<u8> {
    let manifest = &header[paws::HEADER_BYTES..];
    let length = (manifest.len() as u64 + 1).to_be_bytes();
    [b"PAWS1", &length[..], b" ", manifest].concat()
}

#[test]
fn a_file_has_its_largest_size_and_no_byte_more() {
    let largest = tree([paws::MAX_FILE_BYTES]).unwrap();
    let header = largest.header().unwrap();
    assert_eq!(paws::decode(&header), Ok(paws::Manifest::Snapshot(largest)));
    assert_eq!(
        code(paws::decode(&spaced(&header))),
        Some(ArchiveCode::NonCanonical)
    );
    let over = tree([paws::MAX_FILE_BYTES + 1]);
    assert_eq!(code(over), Some(ArchiveCode::InvalidSize));

    let largest = artifact([paar::MAX_FILE_BYTES]).unwrap();
    let header = largest.header().unwrap();
    let total = header.len() as u64 + paar::MAX_FILE_BYTES;
    assert_eq!(paar::decode(&header, total), Ok(largest));
    let over = artifact([paar::MAX_FILE_BYTES + 1]);
    assert_eq!(code(over), Some(ArchiveCode::InvalidFileSize));
}

#[test]
fn an_archive_has_its_largest_size_and_no_byte_more() {
    // Ten files, the last as long as the others leave room for. Sizes of as many digits make
    // manifests of one length.
    let sized = |last| tree([paws::MAX_FILE_BYTES; 9].into_iter().chain([last]));
    let header = sized(50_000_000).unwrap().header().unwrap().len() as u64;
    let last = paws::MAX_ARCHIVE_BYTES - 9 * paws::MAX_FILE_BYTES - header;
    let largest = sized(last).unwrap();
    let decoded = paws::decode(&largest.header().unwrap());
    assert_eq!(decoded, Ok(paws::Manifest::Snapshot(largest)));
    assert_eq!(code(sized(last + 1)), Some(ArchiveCode::ArchiveTooLarge));

    let sized = |last| artifact([paar::MAX_FILE_BYTES; 3].into_iter().chain([last]));
    let header = sized(200_000_000).unwrap().header().unwrap().len() as u64;
    let last = paar::MAX_ARCHIVE_BYTES - 3 * paar::MAX_FILE_BYTES - header;
    let largest = sized(last).unwrap();
    let header = largest.header().unwrap();
    let decoded = paar::decode(&header, paar::MAX_ARCHIVE_BYTES);
    assert_eq!(decoded, Ok(largest));
    assert_eq!(code(sized(last + 1)), Some(ArchiveCode::ArchiveTooLarge));
    assert_eq!(
        code(paar::decode(&header, paar::MAX_ARCHIVE_BYTES + 1)),
        Some(ArchiveCode::ArchiveTooLarge)
    );
    // Files that fill it, so that no room is left for the manifest.
    let (start, manifest) = header.split_at(paar::HEADER_BYTES);
    let manifest = std::str::from_utf8(manifest).unwrap();
    let sized = |size: u64| format!("\"size\":{size},");
    let filling = manifest.replace(&sized(last), &sized(paar::MAX_FILE_BYTES));
    assert_ne!(filling, manifest);
    let filling = [start, filling.as_bytes()].concat();
    assert_eq!(
        code(paar::decode(&filling, paar::MAX_ARCHIVE_BYTES)),
        Some(ArchiveCode::TotalArchiveMismatch)
    );
}

#[test]
fn numbers_of_an_artifact_go_up_to_what_every_reader_keeps() {
    let most = artifact([1]).unwrap();
    let header = most.header().unwrap();
    assert_eq!(paar::decode(&header, header.len() as u64 + 1), Ok(most));
    let with = |daemon_protocol_version, daemon_schema_revision| {
        let origin = Origin {
            daemon_protocol_version,
            daemon_schema_revision,
            ..LATEST
        };
        let file = (ArtifactPath::new("a").unwrap(), false, b"x");
        code(paar::pack(origin, [file]))
    };
    assert_eq!(with(1, 0), None);
    let version = Some(ArchiveCode::BadDaemonProtocolVersion);
    assert_eq!(with(0, 0), version);
    assert_eq!(with(MAX_SAFE + 1, 0), version);
    let revision = Some(ArchiveCode::BadDaemonSchemaRevision);
    assert_eq!(with(1, MAX_SAFE + 1), revision);
}

#[test]
fn a_tree_has_as_many_files_as_its_format_allows_and_not_one_more() {
    let empty = tree([]).unwrap();
    let most = tree(vec![0; paws::MAX_ENTRIES]).unwrap();
    let header = most.header().unwrap();
    assert_eq!(
        code(paws::decode(&spaced(&header))),
        Some(ArchiveCode::NonCanonical)
    );
    let changes = Changeset::between(&empty, &most).unwrap();
    assert_eq!(changes.changes().len(), paws::MAX_ENTRIES);
    let too_many = Some(ArchiveCode::MaxEntriesExceeded);
    assert_eq!(code(tree(vec![0; paws::MAX_ENTRIES + 1])), too_many);
    // One more goes than comes.
    let other = RelPath::new("other").unwrap();
    let other = paws::pack("w", [(other, false, b"")]).unwrap().snapshot;
    assert_eq!(code(Changeset::between(&other, &most)), too_many);

    assert_eq!(code(artifact(vec![0; paar::MAX_FILES])), None);
    assert_eq!(
        code(artifact(vec![0; paar::MAX_FILES + 1])),
        Some(ArchiveCode::BadFiles)
    );
    assert_eq!(code(artifact([])), Some(ArchiveCode::FilesEmpty));
}
