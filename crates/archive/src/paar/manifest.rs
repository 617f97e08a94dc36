mod lenient;
mod scan;

use super::{
    Artifact, File, LAYOUT, MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, MAX_FILES, Origin, check_size,
};
use crate::code::{ArchiveCode, ArchiveError};
use crate::header::utf8;
use crate::json::{Comparison, Hashed, MAX_SAFE, ObjectWriter, Sink, write_list};
use crate::order;
use crate::paws::shown;
use flightproof_core::Digest;

/// Reads the manifest of an archive that is `total` bytes long; `bytes` must hold its beginning at
/// least up to the end of the manifest. The payload is not looked at: [`super::read`] does that.
///
/// The order of the checks is part of the format, so that two readers give one answer: total size,
/// header, UTF-8, JSON, field set, format, version, target, source commit, protocol, form of the
/// digests, files, order and conflicts, offsets, payload size, total, files digest, build id,
/// canonical form.
///
/// # Errors
/// The first rule that does not hold.
pub fn decode(bytes: &[u8], total: u64) -> Result<Artifact, ArchiveError> {
    check_size(total)?;
    let (manifest, _) = LAYOUT.split(bytes)?;
    decode_manifest(manifest, Some(total))
}

/// As [`decode`], from the manifest alone. Without a total, of a stream whose end is not yet seen,
/// the total is what the manifest says, and whoever reads on must see the end there.
pub(crate) fn decode_manifest(
    manifest: &[u8],
    total: Option<u64>,
) -> Result<Artifact, ArchiveError> {
    let text = utf8(manifest)?;
    // What the quick reader does not take is read again to find its refusal.
    let stated = match scan::read(text) {
        Some(stated) => stated,
        None => lenient::read(text)?,
    };
    check_files(&stated.files)?;
    stated.check_offsets()?;
    let mut files = stated.files;
    files.shrink_to_fit();
    let artifact = Artifact::checked(stated.origin, files);
    let said = (LAYOUT.header_bytes() + manifest.len()) as u64 + artifact.payload_bytes();
    check_total(&artifact, manifest.len(), total.unwrap_or(said))?;
    check_size(said)?;
    let digests = (stated.files_digest, artifact.files_digest);
    same(ArchiveCode::FilesDigestMismatch, digests.0, digests.1)?;
    same(
        ArchiveCode::BuildIdMismatch,
        stated.build_id,
        artifact.build_id,
    )?;
    check_canonical(&artifact, text)?;
    Ok(artifact)
}

/// Whether both readers of manifests take this text for the same; `None` where the quick one does
/// not take it.
pub(crate) fn readers_agree(text: &str) -> Option<bool> {
    scan::read(text).map(|stated| lenient::read(text) == Ok(stated))
}

/// What a manifest states: each field has its form, and none was compared with another yet.
#[derive(Debug, PartialEq, Eq)]
struct Stated {
    origin: Origin,
    files_digest: Digest,
    build_id: Digest,
    files: Vec<File>,
    offsets: Offsets,
}

/// The offsets so far: each must be the sum of the sizes before it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Offsets {
    sum: u64,
    /// Index of the first file whose offset is wrong, what it says, and what it should.
    wrong: Option<(usize, u64, u64)>,
}

impl Offsets {
    fn take(&mut self, index: usize, found: u64, size: u64) {
        if found != self.sum && self.wrong.is_none() {
            self.wrong = Some((index, found, self.sum));
        }
        // At most 20,000 times 256 MiB.
        self.sum += size;
    }
}

impl Stated {
    fn check_offsets(&self) -> Result<(), ArchiveError> {
        let Some((index, found, expected)) = self.offsets.wrong else {
            return Ok(());
        };
        let path = self.files.get(index).map_or("", |file| file.path.as_str());
        Err(ArchiveCode::InvalidFileOffset.refuse(format_args!(
            "{}: got {found}, expected {expected}",
            shown(path)
        )))
    }
}

pub(super) fn check_origin(origin: &Origin) -> Result<(), ArchiveError> {
    if !(1..=MAX_SAFE).contains(&origin.daemon_protocol_version) {
        return Err(
            ArchiveCode::BadDaemonProtocolVersion.refuse("not a whole number in 1..=2^53-1")
        );
    }
    if origin.daemon_schema_revision > MAX_SAFE {
        return Err(ArchiveCode::BadDaemonSchemaRevision.refuse("not a whole number in 0..=2^53-1"));
    }
    Ok(())
}

pub(super) fn check_count(count: usize) -> Result<(), ArchiveError> {
    if count == 0 {
        return Err(ArchiveCode::FilesEmpty.refuse("0 files"));
    }
    if count > MAX_FILES {
        return Err(ArchiveCode::BadFiles.refuse(format_args!("{count} files")));
    }
    Ok(())
}

fn check_file_size(path: &str, size: u64) -> Result<(), ArchiveError> {
    if size > MAX_FILE_BYTES {
        return Err(ArchiveCode::InvalidFileSize.refuse(format_args!(
            "{}: {size} bytes, at most {MAX_FILE_BYTES} allowed",
            shown(path)
        )));
    }
    Ok(())
}

/// Order and conflicts, and what a caller who builds the list may get wrong besides.
pub(super) fn check_files(files: &[File]) -> Result<(), ArchiveError> {
    let paths = || files.iter().map(|file| file.path.as_str());
    for file in files {
        check_file_size(file.path.as_str(), file.size)?;
    }
    if let Some(path) = order::duplicate(paths()) {
        return Err(ArchiveCode::DuplicateFilePath.refuse(shown(path)));
    }
    if let Some((before, path)) = order::unsorted(paths()) {
        let detail = format!("{} stands before {}", shown(before), shown(path));
        return Err(ArchiveCode::FilesUnsorted.refuse(detail));
    }
    if let Some((file, below)) = order::conflict(paths()) {
        let detail = format!("{} is a file and holds {}", shown(file), shown(below));
        return Err(ArchiveCode::PrefixConflict.refuse(detail));
    }
    Ok(())
}

fn check_total(artifact: &Artifact, manifest: usize, total: u64) -> Result<(), ArchiveError> {
    let payload = artifact.payload_bytes();
    if payload > MAX_ARCHIVE_BYTES {
        return Err(ArchiveCode::PayloadOverflow.refuse(format_args!(
            "{payload} bytes, at most {MAX_ARCHIVE_BYTES} allowed"
        )));
    }
    let expected = (LAYOUT.header_bytes() + manifest) as u64 + payload;
    if total != expected {
        return Err(ArchiveCode::TotalArchiveMismatch
            .refuse(format_args!("got {total} bytes, expected {expected}")));
    }
    Ok(())
}

fn same(code: ArchiveCode, found: Digest, expected: Digest) -> Result<(), ArchiveError> {
    if found == expected {
        return Ok(());
    }
    Err(code.refuse(format_args!("got {found}, expected {expected}")))
}

fn check_canonical(artifact: &Artifact, text: &str) -> Result<(), ArchiveError> {
    let mut comparison = Comparison::with(text);
    write_artifact(&mut comparison, artifact);
    match comparison.difference() {
        None => Ok(()),
        Some(at) => Err(ArchiveCode::NonCanonical.refuse(format_args!(
            "differs from its canonical form at byte {at} of the manifest"
        ))),
    }
}

pub(super) fn encode(artifact: &Artifact) -> String {
    let mut out = String::new();
    write_artifact(&mut out, artifact);
    out
}

fn write_artifact(out: &mut impl Sink, artifact: &Artifact) {
    let mut object = ObjectWriter::open(out);
    object
        .text("format", FORMAT)
        .number("version", 1)
        .text("target", artifact.origin.target.name())
        .text("sourceCommit", &artifact.origin.source_commit.to_string());
    write_protocol(object.key("protocol"), &artifact.origin);
    object
        .digest("filesDigest", &artifact.files_digest)
        .digest("buildId", &artifact.build_id);
    write_files(object.key("files"), &artifact.files);
    object.close();
}

/// The hash over the list of files exactly as the manifest has it.
pub(super) fn files_digest(files: &[File]) -> Digest {
    let mut out = Hashed::new();
    write_files(&mut out, files);
    out.finish()
}

/// The hash over where the files come from and what they are.
pub(super) fn build_id(origin: &Origin, files_digest: Digest) -> Digest {
    let mut out = Hashed::new();
    let mut object = ObjectWriter::open(&mut out);
    object
        .text("sourceCommit", &origin.source_commit.to_string())
        .text("target", origin.target.name());
    write_protocol(object.key("protocol"), origin);
    object.digest("filesDigest", &files_digest).close();
    out.finish()
}

fn write_protocol(out: &mut impl Sink, origin: &Origin) {
    ObjectWriter::open(out)
        .text("name", PROTOCOL_NAME)
        .number("version", 1)
        .number("daemonProtocolVersion", origin.daemon_protocol_version)
        .number("daemonSchemaRevision", origin.daemon_schema_revision)
        .close();
}

fn write_files(out: &mut impl Sink, files: &[File]) {
    let mut offset = 0;
    write_list(out, files, |out, file| {
        ObjectWriter::open(out)
            .text("path", file.path.as_str())
            .number("size", file.size)
            .number("mode", if file.executable { 0o755 } else { 0o644 })
            .digest("sha256", &file.sha256)
            .number("offset", offset)
            .close();
        offset += file.size;
    });
}

const FORMAT: &str = "prime-agent-artifact";
const PROTOCOL_NAME: &str = "prime-agent.remote-host";

/// Fewer bytes no canonical file has, its comma included. By it room for files is set aside once,
/// in proportion to the text.
const MIN_FILE_BYTES: usize =
    r#"{"path":"a","size":0,"mode":420,"sha256":"","offset":0},"#.len() + 64;
