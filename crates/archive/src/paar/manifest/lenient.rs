use super::{
    FORMAT, MIN_FILE_BYTES, Offsets, PROTOCOL_NAME, Stated, check_count, check_file_size,
    check_origin,
};
use crate::code::{ArchiveCode, ArchiveError};
use crate::json::lenient::{self, FieldSet, List, Object};
use crate::paar::{ArtifactPath, File, MAX_FILES, Origin, Target};
use crate::paws::shown;
use flightproof_core::{CommitId, escape};
use std::borrow::Cow;
use std::collections::HashSet;
use std::str::FromStr;

/// Reads what any text states, or names the first rule that a field breaks.
pub(super) fn read(text: &str) -> Result<Stated, ArchiveError> {
    let root = match lenient::read(text, ROOT_FIELDS) {
        Ok(Some(root)) => root,
        Ok(None) => return Err(ArchiveCode::InvalidJson.refuse("not an object")),
        Err(fault) => return Err(ArchiveCode::InvalidJson.refuse(fault)),
    };
    check_root(&root)?;
    let origin = read_origin(&root)?;
    let files_digest = form(&root, "filesDigest", ArchiveCode::BadFilesDigest)?;
    let build_id = form(&root, "buildId", ArchiveCode::BadBuildId)?;
    let list = root
        .list("files")
        .ok_or_else(|| ArchiveCode::BadFiles.refuse("not a list"))?;
    check_count(list.clone().count())?;
    let mut offsets = Offsets::default();
    let room = (text.len() / MIN_FILE_BYTES).min(MAX_FILES);
    let files = read_files(list, room, &mut offsets)?;
    Ok(Stated {
        origin,
        files_digest,
        build_id,
        files,
        offsets,
    })
}

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
const PROTOCOL_FIELDS: &[&str] = &[
    "name",
    "version",
    "daemonProtocolVersion",
    "daemonSchemaRevision",
];
const FILE_FIELDS: &[&str] = &["path", "size", "mode", "sha256", "offset"];
fn check_root(root: &Object) -> Result<(), ArchiveError> {
    match root.field_set(ROOT_FIELDS) {
        FieldSet::Exact => {}
        FieldSet::Missing(key) => {
            return Err(ArchiveCode::MissingManifestField.refuse(format_args!("\"{key}\"")));
        }
        FieldSet::Extra => return Err(ArchiveCode::ExtraManifestField.refuse("in the manifest")),
    }
    if root.text("format").as_deref() != Some(FORMAT) {
        return Err(ArchiveCode::BadFormat.refuse(got(root, "format")));
    }
    if root.number("version") != Some(1) {
        return Err(ArchiveCode::BadVersion.refuse("the version is not the number 1"));
    }
    Ok(())
}

fn read_origin(root: &Object) -> Result<Origin, ArchiveError> {
    let target = match root.text("target").as_deref() {
        Some("linux-x64") => Target::LinuxX64,
        Some("linux-arm64") => Target::LinuxArm64,
        _ => return Err(ArchiveCode::BadTarget.refuse(got(root, "target"))),
    };
    let source_commit: CommitId = form(root, "sourceCommit", ArchiveCode::BadSourceCommit)?;
    let protocol = root
        .object("protocol", PROTOCOL_FIELDS)
        .filter(|protocol| protocol.field_set(PROTOCOL_FIELDS) == FieldSet::Exact)
        .ok_or_else(|| {
            ArchiveCode::BadProtocol.refuse(format_args!("expected {}", PROTOCOL_FIELDS.join(", ")))
        })?;
    if protocol.text("name").as_deref() != Some(PROTOCOL_NAME) {
        return Err(ArchiveCode::BadProtocolName.refuse(got(&protocol, "name")));
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

/// The files; a path that stands twice is refused where it stands the second time.
fn read_files(
    list: List<'_>,
    room: usize,
    offsets: &mut Offsets,
) -> Result<Vec<File>, ArchiveError> {
    let mut seen: HashSet<Cow<'_, str>> = HashSet::new();
    let mut files = Vec::with_capacity(room);
    for (index, item) in list.enumerate() {
        let object = Object::of(item, FILE_FIELDS)
            .filter(|object| object.field_set(FILE_FIELDS) == FieldSet::Exact)
            .ok_or_else(|| ArchiveCode::BadFileEntry.refuse(format_args!("file {index}")))?;
        let path = object.text("path").unwrap_or_default();
        files.push(read_file(&object, &path, index, offsets)?);
        if seen.contains(&path) {
            return Err(ArchiveCode::DuplicateFilePath.refuse(shown(&path)));
        }
        seen.insert(path);
    }
    Ok(files)
}

fn read_file(
    object: &Object<'_>,
    text: &str,
    index: usize,
    offsets: &mut Offsets,
) -> Result<File, ArchiveError> {
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
    let offset = object.number("offset").ok_or_else(|| {
        ArchiveCode::InvalidFileOffset.refuse(format_args!("file {index}: not a whole number"))
    })?;
    offsets.take(index, offset, size);
    Ok(File {
        path,
        executable,
        size,
        sha256,
    })
}

fn form<T: FromStr<Err: std::fmt::Display>>(
    object: &Object,
    key: &str,
    code: ArchiveCode,
) -> Result<T, ArchiveError> {
    let text = object.text(key).unwrap_or_default();
    text.parse().map_err(|e| code.refuse(e))
}

fn got(object: &Object, key: &str) -> String {
    object.text(key).map_or("not a string".to_owned(), |text| {
        format!("got \"{}\"", escape(text.as_bytes(), 80))
    })
}
