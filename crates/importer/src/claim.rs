//! The right to change a working tree: its index locked for git, and a note on the disk that says for
//! what. Both lie in one folder of the git folder, whose creation is the claim.

use crate::worktree::Worktree;
use crate::{ImportError, ImporterCode};
use flightproof_core::{CommitId, Digest, canonical_json, escape, parse_strict};
use flightproof_ledger::AdmissionKey;
use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// What an import is about to do to a working tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    schema: String,
    pub(crate) branch: String,
    pub(crate) baseline: CommitId,
    pub(crate) head: CommitId,
    /// The working tree.
    pub(crate) top: String,
    /// The change to its files.
    pub(crate) changeset: Digest,
    /// Inode of the new index, by which a lock file is known as ours.
    index: u64,
    /// When that inode was born, in nanoseconds: another file may have its number later. `None` in
    /// old notes and on file systems that do not say; then no file is known as ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<String>,
}

/// A claimed working tree. Dropping it gives it back, unless it was told to keep.
#[derive(Debug)]
pub(crate) struct Claim {
    git_dir: PathBuf,
    dir: PathBuf,
    /// Held locked: a claim whose lock is free belongs to nobody that lives.
    lock: File,
    index: Mark,
    kept: bool,
}

/// By what the new index is known, whatever its name.
#[derive(Debug)]
enum Mark {
    /// By its inode, which nobody else gets while it is held open.
    Held(File),
    /// By its inode and when that was born, as a note says.
    Noted { inode: u64, born: String },
    /// Not at all.
    Unknown,
}

impl Mark {
    fn noted(note: &Note) -> Self {
        match note.born.clone() {
            Some(born) => Self::Noted {
                inode: note.index,
                born,
            },
            None => Self::Unknown,
        }
    }

    /// Whether it lies at this path.
    fn is_at(&self, path: &Path) -> bool {
        let Ok(found) = std::fs::symlink_metadata(path) else {
            return false;
        };
        match self {
            Self::Held(file) => file
                .metadata()
                .is_ok_and(|ours| (ours.dev(), ours.ino()) == (found.dev(), found.ino())),
            Self::Noted { inode, born } => {
                *inode == found.ino() && birth_of(&found).as_ref() == Some(born)
            }
            Self::Unknown => false,
        }
    }
}

/// When a file was made, in nanoseconds: as text, since a note holds no number so large. No write and no
/// rename changes it.
fn birth_of(found: &Metadata) -> Option<String> {
    let born = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(born.as_nanos().to_string())
}

/// The folder of a claim, in the git folder of the working tree.
const FOLDER: &str = "flightproof-import";
const NOTE: &str = "note";
const INDEX: &str = "index";
const SCHEMA: &str = "flightproof/import-note/1";
/// Most bytes of a note: a path of 4,096 bytes with every byte escaped, and five short fields.
const MOST: usize = 32 * 1024;

impl Claim {
    /// Claims a working tree. Afterwards no git writes its index.
    ///
    /// # Errors
    /// `IMPORT_UNFINISHED` if a claim is there, `INDEX_LOCKED`, `HOST_UNSUPPORTED`.
    pub(crate) fn take(
        tree: &Worktree,
        key: &AdmissionKey,
        changeset: Digest,
    ) -> Result<Self, ImportError> {
        let dir = tree.git_dir().join(FOLDER);
        let created = std::fs::DirBuilder::new().mode(0o700).create(&dir);
        match created {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(ImporterCode::ImportUnfinished.refuse(shown(&dir)));
            }
            created => created.map_err(failed)?,
        }
        let lock = File::open(&dir).map_err(failed)?;
        // Somebody who clears up after dead runs could have been faster.
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| ImporterCode::ImportUnfinished.refuse(shown(&dir)))?;
        let mut claim = Self {
            git_dir: tree.git_dir().to_owned(),
            dir,
            lock,
            index: Mark::Unknown,
            kept: false,
        };
        claim.index = Mark::Held(claim.draft_index(tree)?);
        claim.write_note(tree, key, changeset)?;
        claim.lock_index()?;
        Ok(claim)
    }

    /// A folder of ours for whatever is needed meanwhile.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// From here on the claim outlives this run, unless it is given back.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// Writes the new index into the lock file, to the disk.
    pub(crate) fn write_index(&self, bytes: &[u8]) -> Result<(), ImportError> {
        let Mark::Held(file) = &self.index else {
            return Err(ImporterCode::IndexLocked.refuse("its lock is not in our hand"));
        };
        if !self.index.is_at(&self.lock_file()) {
            return Err(ImporterCode::IndexLocked.refuse("its lock was taken from us"));
        }
        let mut file = file;
        file.write_all(bytes).map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    /// Puts the new index in its place, which unlocks it: from then on any git may write another.
    /// Done twice it does nothing. False if the index is neither in our hand nor ours.
    pub(crate) fn install_index(&self) -> Result<bool, ImportError> {
        let index = self.git_dir.join("index");
        if self.index.is_at(&self.lock_file()) {
            std::fs::rename(self.lock_file(), &index).map_err(failed)?;
            sync(&self.git_dir)?;
            return Ok(true);
        }
        Ok(self.has_own_index())
    }

    /// Whether the index in its place is ours.
    pub(crate) fn has_own_index(&self) -> bool {
        self.index.is_at(&self.git_dir.join("index"))
    }

    /// Whether the lock file is ours and holds a whole index.
    pub(crate) fn has_whole_index(&self) -> bool {
        self.index.is_at(&self.lock_file())
            && std::fs::read(self.lock_file())
                .is_ok_and(|bytes| crate::index::Index::parse(&bytes).is_ok())
    }

    /// Gives the working tree back: git may write its index again.
    pub(crate) fn give_back(mut self) -> Result<(), ImportError> {
        self.kept = true;
        self.clear()
    }

    fn clear(&self) -> Result<(), ImportError> {
        if self.index.is_at(&self.lock_file()) {
            std::fs::remove_file(self.lock_file()).map_err(failed)?;
            sync(&self.git_dir)?;
        }
        match std::fs::remove_file(self.dir.join(NOTE)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        sync(&self.dir)?;
        std::fs::remove_dir_all(&self.dir).map_err(failed)
    }

    /// The new index before it has its name, so that it is known before it locks anything.
    fn draft_index(&self, tree: &Worktree) -> Result<File, ImportError> {
        let mode = std::fs::symlink_metadata(tree.index()).map_or(0o644, |m| m.mode() & 0o777);
        let draft = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(self.dir.join(INDEX));
        draft.map_err(failed)
    }

    fn write_note(
        &self,
        tree: &Worktree,
        key: &AdmissionKey,
        changeset: Digest,
    ) -> Result<(), ImportError> {
        let top = tree.top().to_str().ok_or_else(|| {
            ImporterCode::HostUnsupported.refuse("the path of its working tree is not UTF-8")
        })?;
        let Mark::Held(index) = &self.index else {
            return Err(failed(std::io::Error::other("there is no new index")));
        };
        let index = index.metadata().map_err(failed)?;
        let note = Note {
            schema: SCHEMA.to_owned(),
            branch: key.branch.clone(),
            baseline: key.baseline,
            head: key.head,
            top: top.to_owned(),
            changeset,
            index: index.ino(),
            born: birth_of(&index),
        };
        let bytes = canonical_json(&note).map_err(|e| failed(std::io::Error::other(e)))?;
        let draft = self.dir.join("note.new");
        let write = || {
            let mut file = File::create_new(&draft)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            std::fs::rename(&draft, self.dir.join(NOTE))
        };
        write().map_err(failed)?;
        sync(&self.dir)?;
        sync(&self.git_dir)
    }

    fn lock_index(&self) -> Result<(), ImportError> {
        let (from, to) = (self.dir.join(INDEX), self.lock_file());
        match rustix::fs::renameat_with(CWD, from, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => sync(&self.git_dir),
            Err(Errno::EXIST) => Err(ImporterCode::IndexLocked.refuse(shown(&to))),
            Err(e) => Err(failed(e.into())),
        }
    }

    /// Whether the index's lock file is there and nobody can say whose it is.
    pub(crate) fn has_unknown_lock(&self) -> bool {
        matches!(self.index, Mark::Unknown) && std::fs::symlink_metadata(self.lock_file()).is_ok()
    }

    fn lock_file(&self) -> PathBuf {
        self.git_dir.join("index.lock")
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be cleared now is cleared by the recovery.
            let _ = self.clear();
        }
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// A claim that a run left behind.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) claim: Claim,
    /// `None`: the run did not come to write one, and touched nothing.
    pub(crate) note: Option<Note>,
}

impl Left {
    /// The claim on the working tree of this git folder, if a run left one.
    ///
    /// # Errors
    /// `IMPORT_UNFINISHED` if the run is still at work, or the note cannot be read.
    pub(crate) fn find(git_dir: &Path, user: u32) -> Result<Option<Self>, ImportError> {
        let dir = git_dir.join(FOLDER);
        let found = match std::fs::symlink_metadata(&dir) {
            Ok(found) => found,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
        };
        let refuse =
            |why: &str| ImporterCode::ImportUnfinished.refuse(format!("{}: {why}", shown(&dir)));
        if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
            return Err(refuse("it is not a private folder of ours"));
        }
        let lock = File::open(&dir).map_err(failed)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(refuse("the import is still at work"));
        }
        let note = read_note(&dir).map_err(|e| refuse(&e))?;
        let claim = Claim {
            git_dir: git_dir.to_owned(),
            dir,
            lock,
            index: note.as_ref().map_or(Mark::Unknown, Mark::noted),
            kept: true,
        };
        Ok(Some(Self { claim, note }))
    }
}

fn read_note(dir: &Path) -> Result<Option<Note>, String> {
    let path = dir.join(NOTE);
    let found = match std::fs::symlink_metadata(&path) {
        Ok(found) => found,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    if !found.is_file() || found.len() > MOST as u64 {
        return Err("its note is no small file".to_owned());
    }
    let bytes = std::fs::read(&path).map_err(|e| e.to_string())?;
    let note: Note = parse_strict(&bytes, MOST).map_err(|e| format!("its note: {e}"))?;
    match note.schema == SCHEMA {
        true => Ok(Some(note)),
        false => Err("its note is of another version".to_owned()),
    }
}

fn sync(dir: &Path) -> Result<(), ImportError> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(failed)
}

fn shown(path: &Path) -> String {
    escape(path.to_string_lossy().as_ref(), 300)
}

fn failed(e: std::io::Error) -> ImportError {
    ImporterCode::ScratchFailed.refuse(format!("claiming the working tree: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A claim whose new index is the lock file.
    fn locked(git_dir: &Path) -> Claim {
        let dir = git_dir.join(FOLDER);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(git_dir.join("index.lock"), "ours").unwrap();
        Claim {
            git_dir: git_dir.to_owned(),
            lock: File::open(&dir).unwrap(),
            index: Mark::Held(File::open(git_dir.join("index.lock")).unwrap()),
            dir,
            kept: true,
        }
    }

    #[test]
    fn a_git_that_writes_the_index_as_soon_as_it_may_takes_nothing_back() {
        let git_dir = tempfile::tempdir().unwrap();
        let (lock, index) = (
            git_dir.path().join("index.lock"),
            git_dir.path().join("index"),
        );
        let next = git_dir.path().join("next");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    std::fs::write(&next, "theirs").unwrap();
                    while lock.exists() && !over.load(Ordering::Acquire) {}
                    std::fs::rename(&next, &index).unwrap();
                }
            });
            for round in 0..2_000 {
                let installed = locked(git_dir.path()).install_index();
                if installed != Ok(true) {
                    over.store(true, Ordering::Release);
                }
                assert_eq!(installed, Ok(true), "{round}");
            }
            over.store(true, Ordering::Release);
        });
    }

    #[test]
    fn what_is_neither_in_our_hand_nor_ours_is_not_installed() {
        let git_dir = tempfile::tempdir().unwrap();
        let claim = locked(git_dir.path());
        assert_eq!(claim.install_index(), Ok(true));
        assert_eq!(claim.install_index(), Ok(true), "twice it does nothing");
        std::fs::write(git_dir.path().join("next"), "theirs").unwrap();
        std::fs::rename(git_dir.path().join("next"), git_dir.path().join("index")).unwrap();
        assert_eq!(claim.install_index(), Ok(false));
        assert_eq!(
            std::fs::read(git_dir.path().join("index")).unwrap(),
            b"theirs"
        );
    }

    #[test]
    fn a_file_that_was_given_the_number_of_ours_later_is_not_taken_for_it() {
        // Of a file system that says when a file was born.
        let git_dir = tempfile::tempdir().unwrap();
        let place = git_dir.path().join("index.lock");
        std::fs::write(&place, "ours").unwrap();
        let found = std::fs::symlink_metadata(&place).unwrap();
        let (inode, born) = (found.ino(), birth_of(&found).unwrap());
        let noted = Mark::Noted {
            inode,
            born: born.clone(),
        };
        let index = git_dir.path().join("index");
        std::fs::write(&place, "ours, and more").unwrap();
        std::fs::rename(&place, &index).unwrap();
        assert!(noted.is_at(&index), "whatever its name and content");
        let later = Mark::Noted {
            inode,
            born: format!("{born}0"),
        };
        assert!(!later.is_at(&index), "the number alone says nothing");
        // Such a number is given again, on most file systems at once. Births are as fine as a tick.
        std::thread::sleep(std::time::Duration::from_millis(50));
        for round in 0..200 {
            std::fs::remove_file(&index).unwrap();
            std::fs::write(&index, "theirs").unwrap();
            assert!(!noted.is_at(&index), "{round}");
        }
        assert!(!Mark::Unknown.is_at(&index));
    }
}
