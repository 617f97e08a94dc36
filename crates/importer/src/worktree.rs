//! A working tree that a commit may land in.

use crate::host;
use crate::index::{self, STAT, Tracked};
use crate::objects::Kind;
use crate::{Host, ImportError, ImporterCode, hash};
use flightproof_core::{ObjectId, escape};
use flightproof_evidence::{Change, FileState};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Stat};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A working tree with nothing under way in it.
#[derive(Debug)]
pub(crate) struct Worktree {
    top: PathBuf,
    git_dir: PathBuf,
    /// Whether the executable bit of a file means anything here.
    modes: bool,
}

/// What lies in a git folder while something else is under way.
const UNDER_WAY: [(&str, &str); 7] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase or `git am`"),
    ("sequencer", "a sequence of picks"),
    ("BISECT_LOG", "a bisect"),
];

impl Worktree {
    /// The working tree a host was opened at.
    ///
    /// # Errors
    /// `HOST_UNSUPPORTED`, `HOST_FOREIGN`, `WORKTREE_BUSY`.
    pub(crate) fn open(host: &Host, user: u32) -> Result<Self, ImportError> {
        let (top, settings) = (host.top()?, host.settings());
        if let Some((key, why)) = settings.unfit_for_files() {
            return Err(unsupported(format!("{key}: {why}")));
        }
        let found = std::fs::symlink_metadata(top).map_err(|e| unreadable(top, e))?;
        if found.uid() != user || !found.is_dir() {
            let detail = format!("{}: owner {}, we are {user}", shown(top), found.uid());
            return Err(ImporterCode::HostForeign.refuse(detail));
        }
        let tree = Self {
            top: top.to_owned(),
            git_dir: host.git_dir().to_owned(),
            modes: settings.has_file_modes(),
        };
        tree.check_idle()?;
        Ok(tree)
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// The index file as it is.
    pub(crate) fn read_index(&self) -> Result<Vec<u8>, ImportError> {
        let path = self.index();
        let bytes = host::read_file(&path, OFlags::NOFOLLOW, index::MOST)?;
        bytes.ok_or_else(|| unreadable(&path, "it is not there"))
    }

    /// Refuses a change whose old side is not what is tracked and what its file's mode says. The
    /// bytes are looked at when they are replaced.
    pub(crate) fn check(
        &self,
        index: &index::Index<'_>,
        change: &Change,
    ) -> Result<(), ImportError> {
        let path = change.path.as_str();
        let found = index.file(path.as_bytes());
        let expected = change.old.as_ref().map(tracked).transpose()?;
        if found != expected {
            return Err(changed(
                path,
                "the index has something else than the baseline",
            ));
        }
        if change.old.is_none() {
            self.check_not_within(path)?;
        }
        let Some(old) = change.old.as_ref().filter(|_| self.modes) else {
            return Ok(());
        };
        match std::fs::symlink_metadata(self.top.join(path)) {
            Ok(there) if there.is_file() && (there.mode() & 0o100 != 0) != old.executable => {
                Err(changed(path, "its executable bit is not the baseline's"))
            }
            // What is no file or is not there is found by whoever replaces it.
            _ => Ok(()),
        }
    }

    /// Refuses a change whose file is not there as the baseline has it, or is where none should be.
    pub(crate) fn check_file(&self, change: &Change) -> Result<(), ImportError> {
        let path = change.path.as_str();
        match &change.old {
            Some(old) if self.stat_if_equal(path, old).is_none() => {
                Err(changed(path, "it is not what the baseline has"))
            }
            None if std::fs::symlink_metadata(self.top.join(path)).is_ok() => {
                Err(changed(path, "it is there, and the baseline has none"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a new file below a folder that is another repository's: the user's own clone of
    /// something, which this one does not track.
    fn check_not_within(&self, path: &str) -> Result<(), ImportError> {
        let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        let mut above = above.map(|folder| self.top.join(folder).join(".git"));
        match above.find(|git| std::fs::symlink_metadata(git).is_ok()) {
            None => Ok(()),
            Some(git) => Err(changed(
                path,
                &format!("{} is another repository's", shown(&git)),
            )),
        }
    }

    /// What the index shall say of a file that was just put in its place. Whoever edited it since has
    /// an entry that git looks at again.
    pub(crate) fn track(&self, path: &str, new: &FileState) -> Result<Tracked, ImportError> {
        let (id, mode) = tracked(new)?;
        let stat = self.stat_if_equal(path, new);
        Ok(Tracked {
            stat: stat.map_or_else(|| fields([0; 10], mode), |stat| of_stat(&stat, mode)),
            id,
        })
    }

    fn stat_if_equal(&self, path: &str, new: &FileState) -> Option<Stat> {
        let file = File::from(self.open_file(path).ok()?);
        let before = rustix::fs::fstat(&file).ok()?;
        let mut found = Vec::with_capacity(new.content.len() + 1);
        let most = new.content.len() as u64 + 1;
        (&file).take(most).read_to_end(&mut found).ok()?;
        let after = rustix::fs::fstat(&file).ok()?;
        (identity(&before) == identity(&after) && found == *new.content).then_some(after)
    }

    fn open_file(&self, path: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let top = rustix::fs::open(&self.top, flags, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat2(top, path, flags, Mode::empty(), resolve)
    }

    fn check_idle(&self) -> Result<(), ImportError> {
        let there = |name: &str| {
            let file = self.git_dir.join(name);
            rustix::fs::statat(rustix::fs::CWD, file, AtFlags::SYMLINK_NOFOLLOW).is_ok()
        };
        match UNDER_WAY.into_iter().find(|(name, _)| there(name)) {
            None => Ok(()),
            Some((name, what)) => {
                let detail = format!("{what} is under way: {name}");
                Err(ImporterCode::WorktreeBusy.refuse(detail))
            }
        }
    }
}

/// Which file it is, and in which state.
fn identity(stat: &Stat) -> [i128; 7] {
    [
        stat.st_dev.into(),
        stat.st_ino.into(),
        stat.st_size.into(),
        stat.st_mtime.into(),
        stat.st_mtime_nsec.into(),
        stat.st_ctime.into(),
        stat.st_ctime_nsec.into(),
    ]
}

/// Content and mode of a file as an index has them.
fn tracked(file: &FileState) -> Result<(ObjectId, u32), ImportError> {
    let mode = if file.executable {
        0o100_755
    } else {
        0o100_644
    };
    Ok((hash::id_of(Kind::Blob, &file.content)?, mode))
}

/// The index keeps the low 32 bits of everything.
fn of_stat(stat: &Stat, mode: u32) -> [u8; STAT] {
    fields(
        [
            low(stat.st_ctime),
            low(stat.st_ctime_nsec),
            low(stat.st_mtime),
            low(stat.st_mtime_nsec),
            low(stat.st_dev),
            low(stat.st_ino),
            0,
            stat.st_uid,
            stat.st_gid,
            low(stat.st_size),
        ],
        mode,
    )
}

fn fields(mut words: [u32; 10], mode: u32) -> [u8; STAT] {
    words[6] = mode;
    let mut bytes = [0; STAT];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

fn low(number: impl TryInto<i128>) -> u32 {
    let number: i128 = number.try_into().unwrap_or_default();
    u32::try_from(number & i128::from(u32::MAX)).unwrap_or_default()
}

fn changed(path: &str, how: &str) -> ImportError {
    ImporterCode::SourceChanged.refuse(format!("{}: {how}", escape(path, 300)))
}

fn shown(path: &Path) -> String {
    escape(path.to_string_lossy().as_ref(), 300)
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> ImportError {
    unsupported(format!("{}: {why}", shown(path)))
}

fn unsupported(why: impl std::fmt::Display) -> ImportError {
    ImporterCode::HostUnsupported.refuse(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_second_size_or_file_is_another_state() {
        let stat = rustix::fs::stat("/").unwrap();
        for field in [
            |stat: &mut Stat| stat.st_ino ^= 1,
            |stat: &mut Stat| stat.st_size ^= 1,
            |stat: &mut Stat| stat.st_mtime ^= 1,
            |stat: &mut Stat| stat.st_ctime ^= 1,
        ] {
            let mut later = stat;
            field(&mut later);
            assert_ne!(identity(&later), identity(&stat));
        }
    }
}
