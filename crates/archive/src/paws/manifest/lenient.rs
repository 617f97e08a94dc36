use super::{FORMAT, Listed, MIN_ENTRY_BYTES, Offsets, Stated};
use crate::code::{ArchiveCode, ArchiveError};
use crate::json::lenient::{self, FieldSet, List, Object};
use crate::paws::{Change, Entry, MAX_ENTRIES, MAX_FILE_BYTES, shown, too_big, too_many};
use flightproof_core::{Digest, RelPath};

/// Reads what any text states, or names the first rule that a field breaks.
pub(super) fn read(text: &str) -> Result<Stated<'_>, ArchiveError> {
    let root = match lenient::read(text, ROOT) {
        Ok(Some(root)) => root,
        Ok(None) => return Err(ArchiveCode::InvalidJson.refuse("not an object")),
        Err(fault) => return Err(ArchiveCode::InvalidJson.refuse(fault)),
    };
    let kind = Kind::of(&root)?;
    check_field_set(&root, kind)?;
    check_constants(&root)?;
    let wrong = |key: &str| ArchiveCode::FieldTypeError.refuse(format_args!("\"{key}\""));
    let field = |key| root.text(key).ok_or_else(|| wrong(key));
    let base = match kind {
        Kind::Snapshot => None,
        Kind::Changeset => Some(digest(
            &field("baseSnapshotId")?,
            ArchiveCode::InvalidBaseHash,
        )?),
    };
    let workspace_id = field("workspaceId")?;
    let id = digest(&field("snapshotId")?, ArchiveCode::InvalidSha256)?;
    let total = root
        .number("totalBytes")
        .ok_or_else(|| wrong("totalBytes"))?;
    let list = root.list("entries").ok_or_else(|| wrong("entries"))?;
    check_list(list.clone())?;
    let mut offsets = Offsets::default();
    let room = (text.len() / MIN_ENTRY_BYTES).min(MAX_ENTRIES);
    let listed = match base {
        None => Listed::Tree(read_tree(list, room, &mut offsets)?),
        Some(base) => Listed::Changes {
            base,
            changes: read_changes(list, room, &mut offsets)?,
        },
    };
    Ok(Stated {
        workspace_id,
        id,
        total,
        listed,
        offsets,
    })
}

/// Every field of a manifest, of whatever kind.
const ROOT: &[&str] = &[
    "format",
    "version",
    "kind",
    "workspaceId",
    "baseSnapshotId",
    "snapshotId",
    "totalBytes",
    "entries",
];

#[derive(Clone, Copy)]
enum Kind {
    Snapshot,
    Changeset,
}

impl Kind {
    fn of(root: &Object) -> Result<Self, ArchiveError> {
        match root.text("kind").as_deref() {
            Some("snapshot") => Ok(Self::Snapshot),
            Some("changeset") => Ok(Self::Changeset),
            _ if !root.has("kind") => Err(ArchiveCode::MissingField.refuse("\"kind\"")),
            other => Err(ArchiveCode::BadKind.refuse(quoted(other))),
        }
    }

    /// The fields of a manifest of this kind.
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
            Self::Changeset => ROOT,
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
    let format = root.text("format");
    if format.as_deref() != Some(FORMAT) {
        return Err(ArchiveCode::BadFormat.refuse(quoted(format.as_deref())));
    }
    if root.number("version") != Some(1) {
        return Err(ArchiveCode::BadVersion.refuse("the version is not the number 1"));
    }
    Ok(())
}

/// How many there are, then of what type, before any is read.
fn check_list(list: List<'_>) -> Result<(), ArchiveError> {
    let count = list.clone().count();
    if count > MAX_ENTRIES {
        return Err(too_many(count));
    }
    let mut objects = list.map(|item| Object::of(item, &[]).is_some());
    match objects.position(|object| !object) {
        None => Ok(()),
        Some(index) => Err(ArchiveCode::EntryTypeError.refuse(format_args!("entry {index}"))),
    }
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

fn read_tree(
    list: List<'_>,
    room: usize,
    offsets: &mut Offsets,
) -> Result<Vec<Entry>, ArchiveError> {
    let mut entries = Vec::with_capacity(room);
    for (index, item) in list.enumerate() {
        let object = entry_object(item, SNAPSHOT_ENTRY, index)?;
        check_entry_fields(&object, SNAPSHOT_ENTRY, index)?;
        entries.push(read_entry(&object, index, offsets)?);
    }
    Ok(entries)
}

fn read_changes(
    list: List<'_>,
    room: usize,
    offsets: &mut Offsets,
) -> Result<Vec<Change>, ArchiveError> {
    let mut changes = Vec::with_capacity(room);
    for (index, item) in list.enumerate() {
        let object = entry_object(item, CHANGE_ENTRY, index)?;
        changes.push(read_change(&object, index, offsets)?);
    }
    Ok(changes)
}

fn entry_object<'a>(
    item: &'a str,
    keys: &'static [&'static str],
    index: usize,
) -> Result<Object<'a>, ArchiveError> {
    Object::of(item, keys)
        .ok_or_else(|| ArchiveCode::EntryTypeError.refuse(format_args!("entry {index}")))
}

fn read_change(
    object: &Object,
    index: usize,
    offsets: &mut Offsets,
) -> Result<Change, ArchiveError> {
    let operation = object.text("operation");
    match operation.as_deref() {
        Some("add") => {
            check_entry_fields(object, ADD_ENTRY, index)?;
            read_entry(object, index, offsets).map(Change::Add)
        }
        Some("change") => {
            check_entry_fields(object, CHANGE_ENTRY, index)?;
            Ok(Change::Change {
                entry: read_entry(object, index, offsets)?,
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

fn read_entry(object: &Object, index: usize, offsets: &mut Offsets) -> Result<Entry, ArchiveError> {
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
    let offset = object.number("offset").ok_or_else(|| {
        ArchiveCode::InvalidOffset.refuse(format_args!("\"{path}\": not a whole number"))
    })?;
    offsets.take(index, offset, size);
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
    RelPath::new(&text).map_err(|fault| {
        ArchiveCode::InvalidPath.refuse(format_args!("{} {fault}", quoted(Some(&text))))
    })
}

fn entry_digest(object: &Object, key: &str, code: ArchiveCode) -> Result<Digest, ArchiveError> {
    digest(&object.text(key).unwrap_or_default(), code)
}

fn digest(text: &str, code: ArchiveCode) -> Result<Digest, ArchiveError> {
    text.parse().map_err(|e| code.refuse(e))
}

fn quoted(text: Option<&str>) -> String {
    text.map_or("not a string".to_owned(), |text| {
        format!("\"{}\"", flightproof_core::escape(text, 80))
    })
}
