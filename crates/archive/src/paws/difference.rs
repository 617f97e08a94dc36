use super::changeset::{Change, Changeset};
use super::{
    MAX_ENTRIES, Outline, Snapshot, Unpacked, check_archive_size, check_paths, shown, too_many,
};
use crate::beneath::{self, io};
use crate::choice::{Choice, Everything};
use crate::code::{ArchiveCode, ArchiveError};
use crate::draft::Draft;
use crate::listing::{self, Listed, changed};
use crate::progress::Progress;
use crate::reading::{self, Reading};
use flightproof_core::{Digest, RelPath};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a directory is, compared with a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// What leads from the base to it.
    pub changeset: Changeset,
    /// What it is now.
    pub target: Snapshot,
}

impl Changeset {
    /// What leads from one tree to another. Two equal trees have a changeset too, an empty one.
    ///
    /// # Errors
    /// [`ArchiveCode::PrefixConflict`] where a file became a directory or a directory a file: the
    /// format has no order in which both could happen, so that takes two changesets. More changes
    /// than [`MAX_ENTRIES`]; an archive that would be too large.
    pub fn between(base: &Snapshot, target: &Snapshot) -> Result<Self, ArchiveError> {
        let changes = changes(base, target);
        if changes.len() > MAX_ENTRIES {
            return Err(too_many(changes.len()));
        }
        check_paths(changes.iter().map(|change| change.path().as_str()))?;
        let changeset = Self {
            workspace_id: target.workspace_id().to_owned(),
            base: base.snapshot_id(),
            target: target.snapshot_id(),
            changes,
        };
        check_archive_size(changeset.header()?.len(), changeset.total_bytes())?;
        Ok(changeset)
    }
}

/// The archive of what leads from a base to a tree in memory.
///
/// # Errors
/// As [`Changeset::between`].
pub fn pack_changeset(
    base: &Snapshot,
    target: &Unpacked<'_>,
) -> Result<(Changeset, Vec<u8>), ArchiveError> {
    let changeset = Changeset::between(base, &target.snapshot)?;
    let mut bytes = changeset.header()?;
    let entries = changeset.changes().iter().filter_map(Change::entry);
    let carried: HashSet<&RelPath> = entries.map(|entry| &entry.path).collect();
    for (entry, content) in target.files() {
        if carried.contains(&entry.path) {
            bytes.extend_from_slice(content);
        }
    }
    Ok((changeset, bytes))
}

/// Compares what `choice` admits of a directory with a base, and writes the changeset into the file
/// `output`, which is replaced in one step if it exists.
///
/// Two threads read every byte once and those of changed files twice; memory grows with the two
/// manifests and not with the files. A file that changes meanwhile is refused. The target carries
/// the base's workspace id.
///
/// # Errors
/// As [`Changeset::between`] and [`super::pack_file`]; [`ArchiveCode::BaseLeftOut`] where a file of
/// the base still stands in the directory and the choice leaves it out: the changeset would delete
/// what nobody deleted.
pub fn changeset_between(
    base: &Snapshot,
    dir: &Path,
    choice: &mut dyn Choice,
    output: &Path,
    progress: &dyn Progress,
) -> Result<Compared, ArchiveError> {
    let root = beneath::open_root(dir)?;
    let mut files = listing::list(root.as_fd(), choice)?;
    let (outline, digests) = reading::until_whole(&mut files, |files| {
        refuse_left_out(root.as_fd(), base, files)?;
        let outline = Outline::of(base.workspace_id().to_owned(), files)?;
        let read = reading::hash(root.as_fd(), files, choice, progress)?;
        Ok((outline, read))
    })?;
    let target = outline.named(digests);
    let changeset = Changeset::between(base, &target)?;
    // Created after the listing: the output may lie in the directory itself.
    let draft = Draft::beside(output)?;
    write(root.as_fd(), &changeset, &files, draft.file(), progress)?;
    draft.publish()?;
    Ok(Compared { changeset, target })
}

/// Both ascend by path, so they are walked side by side.
fn changes(base: &Snapshot, target: &Snapshot) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut old = base.entries().iter().peekable();
    let mut new = target.entries().iter().peekable();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return changes,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.path.cmp(&new.path),
        };
        let before = old.next_if(|_| order.is_le());
        let after = new.next_if(|_| order.is_ge());
        changes.extend(match (before, after) {
            (Some(before), Some(after)) if before == after => None,
            (Some(before), Some(after)) => Some(Change::Change {
                entry: after.clone(),
                base_hash: before.sha256,
            }),
            (Some(before), None) => Some(Change::Delete {
                path: before.path.clone(),
                base_hash: before.sha256,
            }),
            (None, after) => after.cloned().map(Change::Add),
        });
    }
}

/// A file of the base that was not listed must really be gone, or be a directory now.
fn refuse_left_out(
    root: BorrowedFd<'_>,
    base: &Snapshot,
    files: &[Listed],
) -> Result<(), ArchiveError> {
    let listed: HashSet<&RelPath> = files.iter().map(|listed| &listed.path).collect();
    for entry in base.entries() {
        if !listed.contains(&entry.path) && stands(root, &entry.path)? {
            return Err(ArchiveCode::BaseLeftOut.refuse(shown(entry.path.as_str())));
        }
    }
    Ok(())
}

/// Whether something other than a directory stands there.
fn stands(root: BorrowedFd<'_>, path: &RelPath) -> Result<bool, ArchiveError> {
    let parent = match path.parent() {
        None => None,
        Some(parent) => match beneath::open_directory(root, parent) {
            Ok(dir) => Some(dir),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
            Err(e) => return Err(io(format_args!("look for \"{path}\""), e)),
        },
    };
    let parent = parent.as_ref().map_or(root, OwnedFd::as_fd);
    match rustix::fs::statat(parent, path.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) != FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(io(format_args!("look for \"{path}\""), e)),
    }
}

/// The archive: the bytes of what is new or changed, then what goes before.
fn write(
    root: BorrowedFd<'_>,
    changeset: &Changeset,
    files: &[Listed],
    out: &std::fs::File,
    progress: &dyn Progress,
) -> Result<(), ArchiveError> {
    let failed = |e| io("write the archive", e);
    let header = changeset.header()?;
    let mut offset = header.len() as u64;
    out.set_len(offset + changeset.total_bytes())
        .map_err(failed)?;
    let by_path: HashMap<&RelPath, &Listed> = files.iter().map(|l| (&l.path, l)).collect();
    let mut placed = Vec::new();
    let mut expected: Vec<(&RelPath, Digest)> = Vec::new();
    for entry in changeset.changes().iter().filter_map(Change::entry) {
        let listed = by_path.get(&entry.path);
        placed.push((*listed.ok_or_else(|| changed(&entry.path))?, offset));
        expected.push((&entry.path, entry.sha256));
        offset += entry.size;
    }
    // Chosen already: only what changed since could be told from it, and that is refused.
    let Reading::Whole(found) = reading::copy(root, &placed, out, &Everything, progress)? else {
        return Err(ArchiveCode::FileChanged.refuse("a file that travels does not"));
    };
    // A file can be written to without its times telling. The first reading counts.
    for ((path, expected), found) in expected.into_iter().zip(found) {
        if found != expected {
            return Err(changed(path));
        }
    }
    out.write_all_at(&header, 0).map_err(failed)
}
