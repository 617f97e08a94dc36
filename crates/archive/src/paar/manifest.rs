use super::{
    Artifact, ArtifactPath, File, LAYOUT, MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, MAX_FILES, Origin,
    Target, check_size,
};
use crate::code::{ArchiveCode, ArchiveError};
use crate::header::utf8;
use crate::json::{self, FieldSet, Found, MAX_SAFE, Object, ObjectWriter, Shape, write_list};
use crate::order;
use crate::paws::shown;
use flightproof_core::{CommitId, Digest, escape};
use std::collections::HashSet;
use std::str::FromStr;

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
    let root = match json::read(text, &ROOT) {
        Ok(Found::Object(root)) => root,
        Ok(_) => return Err(ArchiveCode::InvalidJson.refuse("not an object")),
        Err(e) => return Err(ArchiveCode::InvalidJson.refuse(e)),
    };
    check_root(&root)?;
    let origin = read_origin(&root)?;
    let said_digest = form(&root, "filesDigest", ArchiveCode::BadFilesDigest)?;
    let said_id = form(&root, "buildId", ArchiveCode::BadBuildId)?;
    let (files, offsets) = read_files(&root)?;
    check_files(&files)?;
    check_offsets(&files, &offsets)?;
    let artifact = Artifact::checked(origin, files);
    let said = (LAYOUT.header_bytes() + manifest.len()) as u64 + artifact.payload_bytes();
    check_total(&artifact, manifest.len(), total.unwrap_or(said))?;
    check_size(said)?;
    same(
        ArchiveCode::FilesDigestMismatch,
        said_digest,
        artifact.files_digest,
    )?;
    same(ArchiveCode::BuildIdMismatch, said_id, artifact.build_id)?;
    let canonical = encode(&artifact);
    if canonical != text {
        return Err(ArchiveCode::NonCanonical.refuse(json::first_difference(text, &canonical)));
    }
    Ok(artifact)
}

const FILE_FIELDS: &[&str] = &["path", "size", "mode", "sha256", "offset"];
const FILE: Shape = Shape::Object(&[
    ("path", Shape::Scalar),
    ("size", Shape::Scalar),
    ("mode", Shape::Scalar),
    ("sha256", Shape::Scalar),
    ("offset", Shape::Scalar),
]);

const PROTOCOL_FIELDS: &[&str] = &[
    "name",
    "version",
    "daemonProtocolVersion",
    "daemonSchemaRevision",
];
const PROTOCOL: Shape = Shape::Object(&[
    ("name", Shape::Scalar),
    ("version", Shape::Scalar),
    ("daemonProtocolVersion", Shape::Scalar),
    ("daemonSchemaRevision", Shape::Scalar),
]);

const ROOT_FIELDS: &[&str] = &[
    "format",
    "version",
    "target",
    "sourceCommit",
    "protocol",
    "filesDigest",
    "buildId",
    "files",
];
const ROOT: Shape = Shape::Object(&[
    ("format", Shape::Scalar),
    ("version", Shape::Scalar),
    ("target", Shape::Scalar),
    ("sourceCommit", Shape::Scalar),
    ("protocol", PROTOCOL),
    ("filesDigest", Shape::Scalar),
    ("buildId", Shape::Scalar),
    ("files", Shape::List(&FILE, MAX_FILES)),
]);

const FORMAT: &str = "prime-agent-artifact";
const PROTOCOL_NAME: &str = "prime-agent.remote-host";

fn check_root(root: &Object) -> Result<(), ArchiveError> {
    match root.field_set(ROOT_FIELDS) {
        FieldSet::Exact => {}
        FieldSet::Missing(key) => {
            return Err(ArchiveCode::MissingManifestField.refuse(format_args!("\"{key}\"")));
        }
        FieldSet::Extra => return Err(ArchiveCode::ExtraManifestField.refuse("in the manifest")),
    }
    if root.text("format") != Some(FORMAT) {
        return Err(ArchiveCode::BadFormat.refuse(got(root, "format")));
    }
    if root.number("version") != Some(1) {
        return Err(ArchiveCode::BadVersion.refuse("the version is not the number 1"));
    }
    Ok(())
}

fn read_origin(root: &Object) -> Result<Origin, ArchiveError> {
    let target = match root.text("target") {
        Some("linux-x64") => Target::LinuxX64,
        Some("linux-arm64") => Target::LinuxArm64,
        _ => return Err(ArchiveCode::BadTarget.refuse(got(root, "target"))),
    };
    let source_commit: CommitId = form(root, "sourceCommit", ArchiveCode::BadSourceCommit)?;
    let protocol = root
        .object("protocol")
        .filter(|protocol| protocol.field_set(PROTOCOL_FIELDS) == FieldSet::Exact)
        .ok_or_else(|| {
            ArchiveCode::BadProtocol.refuse(format_args!("expected {}", PROTOCOL_FIELDS.join(", ")))
        })?;
    if protocol.text("name") != Some(PROTOCOL_NAME) {
        return Err(ArchiveCode::BadProtocolName.refuse(got(protocol, "name")));
    }
    if protocol.number("version") != Some(1) {
        return Err(ArchiveCode::BadProtocolVersion.refuse("the version is not the number 1"));
    }
    // A number that is none is out of range like one that is too large.
    let number = |key| protocol.number(key).unwrap_or(u64::MAX);
    let origin = Origin {
        target,
        source_commit,
        daemon_protocol_version: number("daemonProtocolVersion"),
        daemon_schema_revision: number("daemonSchemaRevision"),
    };
    check_origin(&origin)?;
    Ok(origin)
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

/// The files and the offsets they claim.
fn read_files(root: &Object) -> Result<(Vec<File>, Vec<u64>), ArchiveError> {
    let list = root
        .list("files")
        .ok_or_else(|| ArchiveCode::BadFiles.refuse("not a list"))?;
    check_count(list.count)?;
    let mut seen = HashSet::new();
    let mut files = Vec::with_capacity(list.items.len());
    let mut offsets = Vec::with_capacity(list.items.len());
    for (index, item) in list.items.iter().enumerate() {
        let object = match item {
            Found::Object(object) if object.field_set(FILE_FIELDS) == FieldSet::Exact => object,
            _ => return Err(ArchiveCode::BadFileEntry.refuse(format_args!("file {index}"))),
        };
        let file = read_file(object)?;
        let offset = object.number("offset").ok_or_else(|| {
            ArchiveCode::InvalidFileOffset.refuse(format_args!("file {index}: not a whole number"))
        })?;
        if !seen.insert(object.text("path")) {
            return Err(ArchiveCode::DuplicateFilePath.refuse(shown(file.path.as_str())));
        }
        files.push(file);
        offsets.push(offset);
    }
    Ok((files, offsets))
}

fn read_file(object: &Object) -> Result<File, ArchiveError> {
    let text = object.text("path").unwrap_or_default();
    let path = ArtifactPath::new(text).map_err(|fault| {
        ArchiveCode::InvalidFilePath.refuse(format_args!("\"{}\" {fault}", escape(text, 80)))
    })?;
    let executable = match object.number("mode") {
        Some(0o644) => false,
        Some(0o755) => true,
        _ => return Err(ArchiveCode::InvalidFileMode.refuse(shown(text))),
    };
    let size = object.number("size").ok_or_else(|| {
        ArchiveCode::InvalidFileSize.refuse(format_args!("{}: not a whole number", shown(text)))
    })?;
    check_file_size(text, size)?;
    let sha256 = form(object, "sha256", ArchiveCode::InvalidFileHash)?;
    Ok(File {
        path,
        executable,
        size,
        sha256,
    })
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

fn check_offsets(files: &[File], offsets: &[u64]) -> Result<(), ArchiveError> {
    let mut expected = 0;
    for (file, found) in files.iter().zip(offsets) {
        if *found != expected {
            return Err(ArchiveCode::InvalidFileOffset.refuse(format_args!(
                "{}: got {found}, expected {expected}",
                shown(file.path.as_str())
            )));
        }
        expected += file.size;
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

fn form<T: FromStr<Err: std::fmt::Display>>(
    object: &Object,
    key: &str,
    code: ArchiveCode,
) -> Result<T, ArchiveError> {
    let text = object.text(key).unwrap_or_default();
    text.parse().map_err(|e| code.refuse(e))
}

fn same(code: ArchiveCode, found: Digest, expected: Digest) -> Result<(), ArchiveError> {
    if found == expected {
        return Ok(());
    }
    Err(code.refuse(format_args!("got {found}, expected {expected}")))
}

fn got(object: &Object, key: &str) -> String {
    object.text(key).map_or("not a string".to_owned(), |text| {
        format!("got \"{}\"", escape(text, 80))
    })
}

pub(super) fn encode(artifact: &Artifact) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object
        .text("format", FORMAT)
        .number("version", 1)
        .text("target", artifact.origin.target.name())
        .text("sourceCommit", &artifact.origin.source_commit.to_string());
    write_protocol(object.key("protocol"), &artifact.origin);
    object
        .text("filesDigest", &artifact.files_digest.to_string())
        .text("buildId", &artifact.build_id.to_string());
    write_files(object.key("files"), &artifact.files);
    object.close();
    out
}

/// The hash over the list of files exactly as the manifest has it.
pub(super) fn files_digest(files: &[File]) -> Digest {
    let mut out = String::new();
    write_files(&mut out, files);
    Digest::of(out.as_bytes())
}

/// The hash over where the files come from and what they are.
pub(super) fn build_id(origin: &Origin, files_digest: Digest) -> Digest {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object
        .text("sourceCommit", &origin.source_commit.to_string())
        .text("target", origin.target.name());
    write_protocol(object.key("protocol"), origin);
    object
        .text("filesDigest", &files_digest.to_string())
        .close();
    Digest::of(out.as_bytes())
}

fn write_protocol(out: &mut String, origin: &Origin) {
    ObjectWriter::open(out)
        .text("name", PROTOCOL_NAME)
        .number("version", 1)
        .number("daemonProtocolVersion", origin.daemon_protocol_version)
        .number("daemonSchemaRevision", origin.daemon_schema_revision)
        .close();
}

fn write_files(out: &mut String, files: &[File]) {
    let mut offset = 0;
    write_list(out, files, |out, file| {
        ObjectWriter::open(out)
            .text("path", file.path.as_str())
            .number("size", file.size)
            .number("mode", if file.executable { 0o755 } else { 0o644 })
            .text("sha256", &file.sha256.to_string())
            .number("offset", offset)
            .close();
        offset += file.size;
    });
}
