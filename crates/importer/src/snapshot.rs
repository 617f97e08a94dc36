use crate::objects::{Kind, Objects, Source as _};
use crate::talk::Cap;
use crate::tree::{Entry, EntryKind};
use crate::walk::{DEPTH, Shelf, join};
use crate::{ImportError, ImporterCode, name, tree};
use flightproof_archive::paws::{Packed, pack};
use flightproof_core::{ObjectId, RelPath};
use flightproof_evidence::Kept;

/// The name every snapshot of this program carries.
const WORKSPACE: &str = "flightproof";
/// Entries of the whole tree. The archive is held in memory several times on its way.
const ENTRIES: usize = 20_000;
/// Bytes of one file: 16 MiB.
const FILE_BYTES: usize = 16 << 20;
/// Bytes of all files and trees: 64 MiB.
const TOTAL_BYTES: usize = 64 << 20;

/// The whole tree, packed, and what a snapshot cannot hold.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) packed: Packed,
    pub(crate) kept: Vec<Kept>,
}

/// Reads the whole candidate tree. `known` are its objects that were read before.
pub(crate) fn take(
    objects: &mut Objects,
    known: &Shelf,
    root: ObjectId,
) -> Result<Whole, ImportError> {
    let mut taking = Taking {
        objects,
        known,
        files: Vec::new(),
        kept: Vec::new(),
        entries_left: ENTRIES,
        bytes_left: TOTAL_BYTES,
    };
    taking.directory("", 0, root)?;
    let mut kept = taking.kept;
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    let packed = pack(WORKSPACE, taking.files)
        .map_err(|e| ImporterCode::PathUnfit.refuse(format!("the snapshot: {e}")))?;
    Ok(Whole { packed, kept })
}

struct Taking<'a> {
    objects: &'a mut Objects,
    known: &'a Shelf,
    files: Vec<(RelPath, bool, Vec<u8>)>,
    kept: Vec<Kept>,
    entries_left: usize,
    bytes_left: usize,
}

impl Taking<'_> {
    fn directory(&mut self, at: &str, depth: usize, id: ObjectId) -> Result<(), ImportError> {
        if depth >= DEPTH {
            return Err(ImporterCode::DepthOverLimit.refuse(format!("{DEPTH} below the top")));
        }
        let entries = tree::parse(&self.read(id, Kind::Tree)?)?;
        self.entries_left = self
            .entries_left
            .checked_sub(entries.len())
            .ok_or_else(|| {
                ImporterCode::SnapshotOverLimit.refuse(format!("more than {ENTRIES} entries"))
            })?;
        for entry in entries {
            self.entry(at, depth, &entry)?;
        }
        Ok(())
    }

    fn entry(&mut self, at: &str, depth: usize, entry: &Entry) -> Result<(), ImportError> {
        name::check_not_git(&entry.name)?;
        let path = join(at, &entry.name)?;
        match entry.kind {
            EntryKind::Directory => self.directory(path.as_str(), depth + 1, entry.id)?,
            EntryKind::File | EntryKind::Executable => {
                let content = self.read(entry.id, Kind::Blob)?;
                let executable = entry.kind == EntryKind::Executable;
                self.files.push((path, executable, content));
            }
            // A changed one was refused before, so this one is the baseline's.
            EntryKind::Symlink | EntryKind::Gitlink => self.kept.push(Kept {
                path,
                mode: entry.kind.mode().to_owned(),
                object: entry.id,
            }),
        }
        Ok(())
    }

    fn read(&mut self, id: ObjectId, kind: Kind) -> Result<Vec<u8>, ImportError> {
        let cap = Cap {
            bytes: self.bytes_left.min(FILE_BYTES),
            code: ImporterCode::SnapshotOverLimit,
        };
        let body = match self.known.get(&id) {
            Some((known, body)) if *known == kind && body.len() <= cap.bytes => body.clone(),
            _ => self.objects.read(id, kind, cap)?,
        };
        self.bytes_left = self.bytes_left.saturating_sub(body.len());
        Ok(body)
    }
}
