use super::changeset::{Change, Changeset, write_changes};
use super::{
    Entry, LAYOUT, MAX_ENTRIES, MAX_FILE_BYTES, Snapshot, check_archive_size, check_not_empty,
    check_paths, shown, too_big, too_many, write_file,
};
use crate::code::{ArchiveCode, ArchiveError};
use crate::header::utf8;
use crate::json::{self, FieldSet, Found, Object, ObjectWriter, Shape, write_list};
use flightproof_core::{Digest, RelPath};

/// What a manifest describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// A whole tree.
    Snapshot(Snapshot),
    /// What changed between two.
    Changeset(Changeset),
}

impl Manifest {
    pub(crate) fn into_snapshot(self) -> Result<Snapshot, ArchiveError> {
        match self {
            Self::Snapshot(snapshot) => Ok(snapshot),
            Self::Changeset(_) => {
                Err(ArchiveCode::BadKind.refuse("got \"changeset\", expected \"snapshot\""))
            }
        }
    }
}

/// Reads header and manifest and nothing else: any byte of payload is refused.
///
/// The order of the checks is part of the format, so that two readers give one answer: header,
/// UTF-8, JSON, kind, field set, format, version, field types, entries, duplicates, order and
/// conflicts, offsets, total, archive size, trailing bytes, id, canonical form.
///
/// # Errors
/// The first rule that does not hold.
pub fn decode(bytes: &[u8]) -> Result<Manifest, ArchiveError> {
    check_not_empty(bytes)?;
    let (manifest, rest) = LAYOUT.split(bytes)?;
    decode_manifest(manifest, rest.len())
}

/// Reads a manifest that `trailing` bytes follow which are nobody's payload.
pub(crate) fn decode_manifest(bytes: &[u8], trailing: usize) -> Result<Manifest, ArchiveError> {
    let text = utf8(bytes)?;
    let root = match json::read(text, &ROOT) {
        Ok(Found::Object(root)) => root,
        Ok(_) => return Err(ArchiveCode::InvalidJson.refuse("not an object")),
        Err(e) => return Err(ArchiveCode::InvalidJson.refuse(e)),
    };
    let kind = Kind::of(&root)?;
    check_field_set(&root, kind)?;
    check_constants(&root)?;
    let fields = Fields::of(&root)?;
    let raw = raw_entries(&root)?;
    let changes = raw
        .iter()
        .enumerate()
        .map(|(index, object)| read_change(object, kind, index))
        .collect::<Result<Vec<_>, _>>()?;
    check_paths(changes.iter().map(|change| change.path().as_str()))?;
    check_offsets(&raw, &changes)?;
    let header_bytes = LAYOUT.header_bytes() + bytes.len();
    check_totals(&fields, &changes, header_bytes, trailing)?;
    let (manifest, canonical) = finish(kind, fields, changes)?;
    if canonical.as_bytes() != bytes {
        return Err(ArchiveCode::NonCanonical.refuse(json::first_difference(text, &canonical)));
    }
    Ok(manifest)
}

const ENTRY: Shape = Shape::Object(&[
    ("operation", Shape::Scalar),
    ("path", Shape::Scalar),
    ("size", Shape::Scalar),
    ("mode", Shape::Scalar),
    ("sha256", Shape::Scalar),
    ("offset", Shape::Scalar),
    ("baseHash", Shape::Scalar),
]);

const ROOT: Shape = Shape::Object(&[
    ("format", Shape::Scalar),
    ("version", Shape::Scalar),
    ("kind", Shape::Scalar),
    ("workspaceId", Shape::Scalar),
    ("baseSnapshotId", Shape::Scalar),
    ("snapshotId", Shape::Scalar),
    ("totalBytes", Shape::Scalar),
    ("entries", Shape::List(&ENTRY, MAX_ENTRIES)),
]);

const FORMAT: &str = "prime-agent-workspace";

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Snapshot,
    Changeset,
}

impl Kind {
    fn of(root: &Object) -> Result<Self, ArchiveError> {
        match root.text("kind") {
            Some("snapshot") => Ok(Self::Snapshot),
            Some("changeset") => Ok(Self::Changeset),
            _ if !root.has("kind") => Err(ArchiveCode::MissingField.refuse("\"kind\"")),
            other => Err(ArchiveCode::BadKind.refuse(quoted(other))),
        }
    }

    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Snapshot => &[
                "format",
                "version",
                "kind",
                "workspaceId",
                "snapshotId",
                "totalBytes",
                "entries",
            ],
            Self::Changeset => &[
                "format",
                "version",
                "kind",
                "workspaceId",
                "baseSnapshotId",
                "snapshotId",
                "totalBytes",
                "entries",
            ],
        }
    }
}

/// The base first, since it has codes of its own. Any other difference is `EXTRA_FIELD`, also a
/// missing one: older readers only compare the two sets, and the vectors say so.
fn check_field_set(root: &Object, kind: Kind) -> Result<(), ArchiveError> {
    match (kind, root.has("baseSnapshotId")) {
        (Kind::Snapshot, true) => {
            return Err(ArchiveCode::BaseSnapshotIdNotAllowed.refuse("in a snapshot"));
        }
        (Kind::Changeset, false) => {
            return Err(ArchiveCode::BaseSnapshotIdRequired.refuse("in a changeset"));
        }
        _ => {}
    }
    match root.field_set(kind.fields()) {
        FieldSet::Exact => Ok(()),
        FieldSet::Missing(key) => Err(ArchiveCode::ExtraField.refuse(format_args!(
            "the fields of the manifest are not those of its kind: \"{key}\" is missing"
        ))),
        FieldSet::Extra => Err(ArchiveCode::ExtraField.refuse("in the manifest")),
    }
}

fn check_constants(root: &Object) -> Result<(), ArchiveError> {
    if root.text("format") != Some(FORMAT) {
        return Err(ArchiveCode::BadFormat.refuse(quoted(root.text("format"))));
    }
    if root.number("version") != Some(1) {
        return Err(ArchiveCode::BadVersion.refuse("the version is not the number 1"));
    }
    Ok(())
}

/// The fields of a manifest beside its entries, typed.
struct Fields {
    workspace_id: String,
    base: Option<Digest>,
    id: Digest,
    total: u64,
}

impl Fields {
    fn of(root: &Object) -> Result<Self, ArchiveError> {
        let wrong = |key: &str| ArchiveCode::FieldTypeError.refuse(format_args!("\"{key}\""));
        let text = |key| root.text(key).ok_or_else(|| wrong(key));
        let base = if root.has("baseSnapshotId") {
            Some(digest(
                text("baseSnapshotId")?,
                ArchiveCode::InvalidBaseHash,
            )?)
        } else {
            None
        };
        Ok(Self {
            workspace_id: text("workspaceId")?.to_owned(),
            base,
            id: digest(text("snapshotId")?, ArchiveCode::InvalidSha256)?,
            total: root
                .number("totalBytes")
                .ok_or_else(|| wrong("totalBytes"))?,
        })
    }
}

fn raw_entries(root: &Object) -> Result<Vec<&Object>, ArchiveError> {
    let list = root
        .list("entries")
        .ok_or_else(|| ArchiveCode::FieldTypeError.refuse("\"entries\""))?;
    if list.count > MAX_ENTRIES {
        return Err(too_many(list.count));
    }
    let objects = list
        .items
        .iter()
        .enumerate()
        .map(|(index, item)| match item {
            Found::Object(object) => Ok(object),
            _ => Err(ArchiveCode::EntryTypeError.refuse(format_args!("entry {index}"))),
        });
    objects.collect()
}

const SNAPSHOT_ENTRY: &[&str] = &["path", "size", "mode", "sha256", "offset"];
const ADD_ENTRY: &[&str] = &["operation", "path", "size", "mode", "sha256", "offset"];
const CHANGE_ENTRY: &[&str] = &[
    "operation",
    "path",
    "size",
    "mode",
    "sha256",
    "offset",
    "baseHash",
];
const DELETE_ENTRY: &[&str] = &["operation", "path", "baseHash"];

/// One entry. A snapshot's entry is read as an addition to nothing.
fn read_change(object: &Object, kind: Kind, index: usize) -> Result<Change, ArchiveError> {
    if kind == Kind::Snapshot {
        check_entry_fields(object, SNAPSHOT_ENTRY, index)?;
        return read_entry(object, index).map(Change::Add);
    }
    match object.text("operation") {
        Some("add") => {
            check_entry_fields(object, ADD_ENTRY, index)?;
            read_entry(object, index).map(Change::Add)
        }
        Some("change") => {
            check_entry_fields(object, CHANGE_ENTRY, index)?;
            Ok(Change::Change {
                entry: read_entry(object, index)?,
                base_hash: entry_digest(object, "baseHash", ArchiveCode::InvalidBaseHash)?,
            })
        }
        Some("delete") => {
            check_entry_fields(object, DELETE_ENTRY, index)?;
            Ok(Change::Delete {
                path: entry_path(object, index)?,
                base_hash: entry_digest(object, "baseHash", ArchiveCode::InvalidBaseHash)?,
            })
        }
        _ if !object.has("operation") => {
            Err(ArchiveCode::MissingField.refuse(format_args!("\"operation\" of entry {index}")))
        }
        other => Err(ArchiveCode::InvalidOperation.refuse(quoted(other))),
    }
}

fn check_entry_fields(
    object: &Object,
    wanted: &[&'static str],
    index: usize,
) -> Result<(), ArchiveError> {
    match object.field_set(wanted) {
        FieldSet::Exact => Ok(()),
        FieldSet::Missing(key) => {
            Err(ArchiveCode::MissingField.refuse(format_args!("\"{key}\" of entry {index}")))
        }
        FieldSet::Extra => Err(ArchiveCode::ExtraField.refuse(format_args!("entry {index}"))),
    }
}

fn read_entry(object: &Object, index: usize) -> Result<Entry, ArchiveError> {
    let path = entry_path(object, index)?;
    let executable = match object.number("mode") {
        Some(100_644) => false,
        Some(100_755) => true,
        _ => return Err(ArchiveCode::InvalidMode.refuse(shown(path.as_str()))),
    };
    let size = object.number("size").ok_or_else(|| {
        ArchiveCode::InvalidSize.refuse(format_args!("\"{path}\": not a whole number"))
    })?;
    if size > MAX_FILE_BYTES {
        return Err(too_big(&path, size));
    }
    let sha256 = entry_digest(object, "sha256", ArchiveCode::InvalidSha256)?;
    if object.number("offset").is_none() {
        return Err(
            ArchiveCode::InvalidOffset.refuse(format_args!("\"{path}\": not a whole number"))
        );
    }
    Ok(Entry {
        path,
        executable,
        size,
        sha256,
    })
}

fn entry_path(object: &Object, index: usize) -> Result<RelPath, ArchiveError> {
    let text = object.text("path").ok_or_else(|| {
        ArchiveCode::InvalidPath.refuse(format_args!("entry {index}: not a string"))
    })?;
    RelPath::new(text).map_err(|fault| {
        ArchiveCode::InvalidPath.refuse(format_args!("{} {fault}", quoted(Some(text))))
    })
}

fn entry_digest(object: &Object, key: &str, code: ArchiveCode) -> Result<Digest, ArchiveError> {
    digest(object.text(key).unwrap_or_default(), code)
}

fn digest(text: &str, code: ArchiveCode) -> Result<Digest, ArchiveError> {
    text.parse().map_err(|e| code.refuse(e))
}

/// Each offset is the sum of the sizes before it: the one place where it is believed is none.
fn check_offsets(raw: &[&Object], changes: &[Change]) -> Result<(), ArchiveError> {
    let mut expected = 0;
    for (object, change) in raw.iter().zip(changes) {
        let Some(entry) = change.entry() else {
            continue;
        };
        let found = object.number("offset").unwrap_or_default();
        if found != expected {
            return Err(ArchiveCode::InvalidOffset.refuse(format_args!(
                "\"{}\": got {found}, expected {expected}",
                entry.path
            )));
        }
        expected += entry.size;
    }
    Ok(())
}

fn check_totals(
    fields: &Fields,
    changes: &[Change],
    header_bytes: usize,
    trailing: usize,
) -> Result<(), ArchiveError> {
    let entries = changes.iter().filter_map(Change::entry);
    let total: u64 = entries.map(|entry| entry.size).sum();
    if fields.total != total {
        return Err(ArchiveCode::TotalBytesMismatch.refuse(format_args!(
            "got {}, the sizes add up to {total}",
            fields.total
        )));
    }
    check_archive_size(header_bytes, total)?;
    if trailing > 0 {
        return Err(
            ArchiveCode::TrailingBytes.refuse(format_args!("{trailing} bytes after the manifest"))
        );
    }
    Ok(())
}

/// The manifest and the bytes it should have had.
fn finish(
    kind: Kind,
    fields: Fields,
    changes: Vec<Change>,
) -> Result<(Manifest, String), ArchiveError> {
    if let (Kind::Changeset, Some(base)) = (kind, fields.base) {
        let changeset = Changeset {
            workspace_id: fields.workspace_id,
            base,
            target: fields.id,
            changes,
        };
        let canonical = encode_changeset(&changeset);
        return Ok((Manifest::Changeset(changeset), canonical));
    }
    let entries = changes.into_iter().filter_map(|change| match change {
        Change::Add(entry) => Some(entry),
        _ => None,
    });
    let snapshot = Snapshot::checked(fields.workspace_id, entries.collect());
    if snapshot.snapshot_id() != fields.id {
        return Err(ArchiveCode::SnapshotIdMismatch.refuse(format_args!(
            "got {}, the entries hash to {}",
            fields.id,
            snapshot.snapshot_id()
        )));
    }
    let canonical = encode_snapshot(&snapshot);
    Ok((Manifest::Snapshot(snapshot), canonical))
}

pub(super) fn encode_snapshot(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object
        .text("format", FORMAT)
        .number("version", 1)
        .text("kind", "snapshot")
        .text("workspaceId", &snapshot.workspace_id)
        .text("snapshotId", &snapshot.id.to_string())
        .number("totalBytes", snapshot.total_bytes());
    let mut offset = 0;
    write_list(object.key("entries"), &snapshot.entries, |out, entry| {
        let mut object = ObjectWriter::open(out);
        write_file(&mut object, entry);
        object.number("offset", offset).close();
        offset += entry.size;
    });
    object.close();
    out
}

pub(super) fn encode_changeset(changeset: &Changeset) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object
        .text("format", FORMAT)
        .number("version", 1)
        .text("kind", "changeset")
        .text("workspaceId", &changeset.workspace_id)
        .text("baseSnapshotId", &changeset.base.to_string())
        .text("snapshotId", &changeset.target.to_string())
        .number("totalBytes", changeset.total_bytes());
    write_changes(object.key("entries"), &changeset.changes);
    object.close();
    out
}

fn quoted(text: Option<&str>) -> String {
    text.map_or("not a string".to_owned(), |text| {
        format!("\"{}\"", flightproof_core::escape(text, 80))
    })
}
