use super::{FORMAT, Listed, MIN_ENTRY_BYTES, Offsets, Stated};
use crate::json::scan::Scan;
use crate::paws::{Change, Entry, MAX_ENTRIES, MAX_FILE_BYTES};
use flightproof_core::RelPath;

/// Reads what a canonical text states. `None` for any other text, and for one with a field of a
/// wrong form: it is never a refusal, only a reason to look again.
pub(super) fn read(text: &str) -> Option<Stated<'_>> {
    let mut scan = Scan::new(text);
    scan.literal("{\"format\":\"")?;
    scan.literal(FORMAT)?;
    scan.literal("\",\"version\":1,\"kind\":\"")?;
    let is_changeset = scan.literal("changeset").is_some();
    if !is_changeset {
        scan.literal("snapshot")?;
    }
    scan.literal("\",\"workspaceId\":")?;
    let workspace_id = scan.text()?;
    let mut base = None;
    if is_changeset {
        scan.literal(",\"baseSnapshotId\":")?;
        base = Some(scan.digest()?);
    }
    scan.literal(",\"snapshotId\":")?;
    let id = scan.digest()?;
    scan.literal(",\"totalBytes\":")?;
    let total = scan.number()?;
    scan.literal(",\"entries\":")?;
    let mut offsets = Offsets::default();
    let room = (text.len() / MIN_ENTRY_BYTES).min(MAX_ENTRIES);
    let listed = match base {
        None => Listed::Tree(scan.list(room, MAX_ENTRIES, |scan, index| {
            scan.literal("{\"path\":")?;
            let entry = read_file(scan, index, &mut offsets)?;
            scan.literal("}").map(|()| entry)
        })?),
        Some(base) => Listed::Changes {
            base,
            changes: scan.list(room, MAX_ENTRIES, |scan, index| {
                read_change(scan, index, &mut offsets)
            })?,
        },
    };
    scan.literal("}")?;
    scan.end()?;
    Some(Stated {
        workspace_id,
        id,
        total,
        listed,
        offsets,
    })
}

fn read_change(scan: &mut Scan<'_>, index: usize, offsets: &mut Offsets) -> Option<Change> {
    scan.literal("{\"operation\":\"")?;
    if scan.literal("delete\",\"path\":").is_some() {
        let path = RelPath::new(&scan.text()?).ok()?;
        scan.literal(",\"baseHash\":")?;
        let base_hash = scan.digest()?;
        scan.literal("}")?;
        return Some(Change::Delete { path, base_hash });
    }
    if scan.literal("add\",\"path\":").is_some() {
        let entry = read_file(scan, index, offsets)?;
        scan.literal("}")?;
        return Some(Change::Add(entry));
    }
    scan.literal("change\",\"path\":")?;
    let entry = read_file(scan, index, offsets)?;
    scan.literal(",\"baseHash\":")?;
    let base_hash = scan.digest()?;
    scan.literal("}")?;
    Some(Change::Change { entry, base_hash })
}

/// From the value of `path` to that of `offset`.
fn read_file(scan: &mut Scan<'_>, index: usize, offsets: &mut Offsets) -> Option<Entry> {
    let path = RelPath::new(&scan.text()?).ok()?;
    scan.literal(",\"size\":")?;
    let size = scan.number().filter(|size| *size <= MAX_FILE_BYTES)?;
    scan.literal(",\"mode\":100")?;
    let executable = scan.literal("755").is_some();
    if !executable {
        scan.literal("644")?;
    }
    scan.literal(",\"sha256\":")?;
    let sha256 = scan.digest()?;
    scan.literal(",\"offset\":")?;
    offsets.take(index, scan.number()?, size);
    Some(Entry {
        path,
        executable,
        size,
        sha256,
    })
}
