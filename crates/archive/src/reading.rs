//! The second pass over a directory: every byte is read once, by two threads, and belongs to the
//! file that was listed or to a refusal.

use crate::beneath::{self, Parents, io};
use crate::choice::{Choice, HEAD_BYTES};
use crate::code::ArchiveError;
use crate::crew;
use crate::listing::{Identity, Listed, changed, unopened};
use crate::progress::Progress;
use flightproof_core::{Digest, Hasher};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// What reading came to: the hashes of all files in their order, or the places of those that may
/// not travel by what is in them. The others are to be read again then.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Whole(Vec<Digest>),
    Without(Vec<usize>),
}

impl Reading {
    fn of(found: Vec<Option<Digest>>) -> Self {
        let refused = found
            .iter()
            .enumerate()
            .filter(|(_, digest)| digest.is_none());
        let refused: Vec<usize> = refused.map(|(index, _)| index).collect();
        match refused.as_slice() {
            [] => Self::Whole(found.into_iter().flatten().collect()),
            _ => Self::Without(refused),
        }
    }
}

/// Reads the files until all of them may travel, and takes out of the list those that may not. Each
/// time around there are fewer. What `read` made beside the hashes is of the last time.
///
/// # Errors
/// As `read`.
pub(crate) fn until_whole<T>(
    files: &mut Vec<Listed>,
    mut read: impl FnMut(&[Listed]) -> Result<(T, Reading), ArchiveError>,
) -> Result<(T, Vec<Digest>), ArchiveError> {
    loop {
        match read(files)? {
            (made, Reading::Whole(digests)) => return Ok((made, digests)),
            (_, Reading::Without(places)) => withdraw(files, &places),
        }
    }
}

/// Takes the files at these ascending places out of a list.
fn withdraw(files: &mut Vec<Listed>, places: &[usize]) {
    let mut place = 0;
    files.retain(|_| {
        place += 1;
        places.binary_search(&(place - 1)).is_err()
    });
}

/// The hashes of the listed files, in their order. Two threads.
///
/// # Errors
/// A file that is not what was listed, before or after it was read; the system's.
pub(crate) fn hash(
    root: BorrowedFd<'_>,
    files: &[Listed],
    choice: &dyn Choice,
    progress: &dyn Progress,
) -> Result<Reading, ArchiveError> {
    let items: Vec<_> = files.iter().map(|listed| (listed, 0)).collect();
    read(root, &items, &|| Out::Nowhere, choice, progress)
}

/// As [`hash`], and each file's bytes are written to `out` at the offset beside it.
///
/// # Errors
/// As [`hash`].
pub(crate) fn copy(
    root: BorrowedFd<'_>,
    files: &[(&Listed, u64)],
    out: &File,
    choice: &dyn Choice,
    progress: &dyn Progress,
) -> Result<Reading, ArchiveError> {
    read(root, files, &|| Out::File(out), choice, progress)
}

/// The listed files with offsets that follow one another from `offset` on.
pub(crate) fn one_after_the_other(files: &[Listed], mut offset: u64) -> Vec<(&Listed, u64)> {
    let mut placed = Vec::with_capacity(files.len());
    for listed in files {
        placed.push((listed, offset));
        offset += listed.identity.size;
    }
    placed
}

/// As [`hash`], and all bytes are appended to `out` one file after the other. One thread.
///
/// # Errors
/// As [`hash`].
pub(crate) fn append(
    root: BorrowedFd<'_>,
    files: &[Listed],
    out: &mut Vec<u8>,
) -> Result<Vec<Digest>, ArchiveError> {
    let mut reader = Reader::new(root, Out::Memory(out));
    let digests = files.iter().map(|listed| Ok(reader.file(listed, 0)?.1));
    let digests = digests.collect::<Result<_, _>>()?;
    reader.flush()?;
    Ok(digests)
}

fn read<'a>(
    root: BorrowedFd<'_>,
    files: &[(&Listed, u64)],
    out: &(dyn Fn() -> Out<'a> + Sync),
    choice: &dyn Choice,
    progress: &dyn Progress,
) -> Result<Reading, ArchiveError> {
    let sized = files
        .iter()
        .map(|(listed, _)| (listed.path.as_str(), listed.identity.size));
    let found = crew::share(
        &crew::batches(sized),
        || Reader::new(root, out()),
        |reader, batch| {
            let files = files.get(batch).unwrap_or_default();
            let mut digests = Vec::with_capacity(files.len());
            for (listed, offset) in files {
                let (head, digest) = reader.file(listed, *offset)?;
                let travels = choice.admits_content(&listed.path, listed.identity.size, head);
                digests.push(travels.then_some(digest));
            }
            reader.flush()?;
            let bytes = files.iter().map(|(listed, _)| listed.identity.size).sum();
            progress.advance(files.len() as u64, bytes);
            Ok(digests)
        },
    )?;
    Ok(Reading::of(found))
}

/// Where bytes go that were read.
enum Out<'a> {
    Nowhere,
    File(&'a File),
    Memory(&'a mut Vec<u8>),
}

/// Bytes read before they are written on, 256 KiB: what fits a core's cache, and all the memory a
/// file needs, however long it is.
const BUFFER_BYTES: usize = 256 << 10;

/// Reads files one after the other through one buffer.
struct Reader<'a> {
    parents: Parents<'a>,
    out: Out<'a>,
    buffer: Vec<u8>,
    filled: usize,
    /// Where in `out` the buffer begins.
    offset: u64,
}

impl<'a> Reader<'a> {
    fn new(root: BorrowedFd<'a>, out: Out<'a>) -> Self {
        Self {
            parents: Parents::new(root),
            out,
            buffer: vec![0; BUFFER_BYTES],
            filled: 0,
            offset: 0,
        }
    }

    /// Reads one listed file whole, to `offset`. Its first bytes are still there then, unless it is
    /// longer than the buffer.
    fn file(&mut self, listed: &Listed, offset: u64) -> Result<(&[u8], Digest), ArchiveError> {
        let file = self.open(listed)?;
        self.make_room(listed.identity.size, offset)?;
        let start = self.filled;
        let digest = self.content(&file, listed)?;
        // After the read, and against the listing: this covers all that happened in between.
        let stat = rustix::fs::fstat(&file);
        let stat = stat.map_err(|e| io(format_args!("look at \"{}\"", listed.path), e))?;
        if Identity::of(&stat) != listed.identity {
            return Err(changed(&listed.path));
        }
        let kept = self.buffer.get(start..self.filled).unwrap_or_default();
        let whole = kept.len() as u64 == listed.identity.size;
        let head = kept.get(..HEAD_BYTES).unwrap_or(kept);
        Ok((if whole { head } else { &[] }, digest))
    }

    fn open(&mut self, listed: &Listed) -> Result<OwnedFd, ArchiveError> {
        // Without NONBLOCK a pipe that took the file's place would hold us here for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self
            .parents
            .of(listed.path.parent())
            .and_then(|dir| beneath::open(dir, listed.path.file_name(), flags, Mode::empty()));
        opened.map_err(|e| unopened(&listed.path, e))
    }

    /// Writes what is there if the next file does not continue it, or does not fit behind it.
    fn make_room(&mut self, size: u64, offset: u64) -> Result<(), ArchiveError> {
        let follows = match self.out {
            Out::Nowhere => false,
            Out::File(_) => self.offset + self.filled as u64 == offset,
            Out::Memory(_) => true,
        };
        let room = (self.buffer.len() - self.filled) as u64;
        if !follows || size >= room {
            self.flush()?;
            self.offset = offset;
        }
        Ok(())
    }

    /// Exactly the listed bytes, and then the end.
    fn content(&mut self, file: &OwnedFd, listed: &Listed) -> Result<Digest, ArchiveError> {
        let mut hasher = Hasher::new();
        let mut missing = listed.identity.size;
        loop {
            if self.filled == self.buffer.len() {
                self.flush()?;
            }
            // One byte more than is missing, so that the end is seen by the same call.
            let most = usize::try_from(missing)
                .unwrap_or(usize::MAX)
                .saturating_add(1);
            let end = self.filled.saturating_add(most).min(self.buffer.len());
            let room = self.buffer.get_mut(self.filled..end).unwrap_or_default();
            let asked = room.len();
            let got = match rustix::io::read(file, &mut *room) {
                Ok(got) => got,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN | Errno::ISDIR) => return Err(changed(&listed.path)),
                Err(e) => return Err(io(format_args!("read \"{}\"", listed.path), e)),
            };
            if got as u64 > missing || (got == 0 && missing > 0) {
                return Err(changed(&listed.path));
            }
            hasher.update(room.get(..got).unwrap_or_default());
            self.filled += got;
            missing -= got as u64;
            if missing == 0 && got < asked {
                return Ok(hasher.finish());
            }
        }
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        let bytes = self.buffer.get(..self.filled).unwrap_or_default();
        match &mut self.out {
            Out::Nowhere => {}
            Out::File(out) => out
                .write_all_at(bytes, self.offset)
                .map_err(|e| io("write the archive", e))?,
            Out::Memory(out) => out.extend_from_slice(bytes),
        }
        self.offset += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Everything;
    use crate::code::ArchiveCode;
    use crate::listing::list;
    use flightproof_core::RelPath;
    use rustix::fs::{CWD, FileType};
    use std::fs::{self, OpenOptions, Permissions};
    use std::os::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    const CONTENT: &[u8] = b"what was listed";

    /// What somebody does to a file after it was listed.
    type Change = fn(&Path);

    fn swap(path: &Path, with: impl FnOnce(&Path)) {
        let aside = path.with_file_name("aside");
        with(&aside);
        fs::rename(aside, path).unwrap();
    }

    fn make_special(path: &Path, kind: FileType) {
        rustix::fs::mknodat(CWD, path, kind, Mode::RWXU, rustix::fs::makedev(1, 5)).unwrap();
    }

    const CHANGES: &[(&str, ArchiveCode, Change)] = &[
        ("grows", ArchiveCode::FileChanged, |path| {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, b"!").unwrap();
        }),
        ("shrinks", ArchiveCode::FileChanged, |path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(3).unwrap();
        }),
        ("becomes empty", ArchiveCode::FileChanged, |path| {
            File::create(path).unwrap();
        }),
        ("becomes a sparse giant", ArchiveCode::FileChanged, |path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(1 << 42).unwrap();
        }),
        ("has other bytes", ArchiveCode::FileChanged, |path| {
            fs::write(path, b"what is written").unwrap();
        }),
        ("has other rights", ArchiveCode::FileChanged, |path| {
            fs::set_permissions(path, Permissions::from_mode(0o711)).unwrap();
        }),
        (
            "is another file of the same bytes",
            ArchiveCode::FileChanged,
            |path| {
                swap(path, |aside| fs::write(aside, CONTENT).unwrap());
            },
        ),
        ("is gone", ArchiveCode::FileChanged, |path| {
            fs::remove_file(path).unwrap();
        }),
        (
            "is a pipe nobody writes to",
            ArchiveCode::FileChanged,
            |path| {
                swap(path, |aside| make_special(aside, FileType::Fifo));
            },
        ),
        (
            "is a device without end",
            ArchiveCode::FileChanged,
            |path| {
                swap(path, |aside| make_special(aside, FileType::CharacterDevice));
            },
        ),
        ("is a socket", ArchiveCode::FileChanged, |path| {
            swap(path, |aside| make_special(aside, FileType::Socket));
        }),
        (
            "is a link to the same bytes",
            ArchiveCode::SymlinkRefused,
            |path| {
                let moved = path.with_file_name("moved");
                fs::rename(path, moved).unwrap();
                symlink("moved", path).unwrap();
            },
        ),
        ("lies below a link", ArchiveCode::FileChanged, |path| {
            let dir = path.parent().unwrap();
            let moved = dir.with_file_name("moved");
            fs::rename(dir, &moved).unwrap();
            symlink("moved", dir).unwrap();
        }),
        ("lies below a file", ArchiveCode::FileChanged, |path| {
            let dir = path.parent().unwrap();
            fs::remove_dir_all(dir).unwrap();
            fs::write(dir, b"").unwrap();
        }),
        ("is a directory", ArchiveCode::FileChanged, |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
    ];

    fn after(change: Change) -> [Option<ArchiveCode>; 3] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("dir/file");
        fs::create_dir(root.path().join("dir")).unwrap();
        fs::write(&path, CONTENT).unwrap();
        let dir = beneath::open_root(root.path()).unwrap();
        let files = list(dir.as_fd(), &mut Everything).unwrap();
        change(&path);
        let out = tempfile::tempfile().unwrap();
        let placed = one_after_the_other(&files, 0);
        [
            hash(dir.as_fd(), &files, &Everything, &()).err(),
            copy(dir.as_fd(), &placed, &out, &Everything, &()).err(),
            append(dir.as_fd(), &files, &mut Vec::new()).err(),
        ]
        .map(|refused| refused.map(|e| e.code))
    }

    #[test]
    fn a_file_that_is_not_what_was_listed_is_refused_whatever_became_of_it() {
        for (name, code, change) in CHANGES {
            assert_eq!(after(*change), [Some(*code); 3], "{name}");
        }
        assert_eq!(after(|_| {}), [None; 3], "nothing happened");
    }

    #[test]
    fn the_same_directory_can_be_listed_twice() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), CONTENT).unwrap();
        let dir = beneath::open_root(root.path()).unwrap();
        let first = list(dir.as_fd(), &mut Everything).unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(list(dir.as_fd(), &mut Everything).unwrap(), first);
    }

    #[test]
    fn bytes_go_to_the_offsets_they_are_given_also_where_those_do_not_follow() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(root.path().join(name), name).unwrap();
        }
        let dir = beneath::open_root(root.path()).unwrap();
        let files = list(dir.as_fd(), &mut Everything).unwrap();
        let placed: Vec<_> = files.iter().zip([2, 0, 1]).collect();
        let out = tempfile::NamedTempFile::new().unwrap();
        let digests = copy(dir.as_fd(), &placed, out.as_file(), &Everything, &()).unwrap();
        assert_eq!(fs::read(out.path()).unwrap(), b"bca");
        let expected = ["a", "b", "c"].map(|name| Digest::of(name.as_bytes()));
        assert_eq!(digests, Reading::Whole(expected.to_vec()));
    }

    /// Nothing that begins like this travels.
    struct WithoutSecrets;

    impl Choice for WithoutSecrets {
        fn enter(&mut self, _: BorrowedFd<'_>, _: Option<&RelPath>) -> Result<(), ArchiveError> {
            Ok(())
        }

        fn admits(&mut self, _: &RelPath, _: FileType) -> Result<bool, ArchiveError> {
            Ok(true)
        }

        fn leave(&mut self) {}

        fn admits_content(&self, _: &RelPath, size: u64, head: &[u8]) -> bool {
            assert_eq!(head.len() as u64, size.min(HEAD_BYTES as u64));
            !head.starts_with(b"secret")
        }
    }

    #[test]
    fn a_choice_sees_how_each_file_begins_and_takes_out_what_may_not_travel() {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [("a", "secret"), ("b", "plain"), ("c", "secrets")] {
            fs::write(root.path().join(name), text).unwrap();
        }
        fs::write(root.path().join("d"), "x".repeat(HEAD_BYTES + 1)).unwrap();
        let dir = beneath::open_root(root.path()).unwrap();
        let mut files = list(dir.as_fd(), &mut Everything).unwrap();
        let found = hash(dir.as_fd(), &files, &WithoutSecrets, &()).unwrap();
        assert_eq!(found, Reading::Without(vec![0, 2]));
        withdraw(&mut files, &[0, 2]);
        let left: Vec<_> = files.iter().map(|listed| listed.path.as_str()).collect();
        assert_eq!(left, ["b", "d"]);
        let found = hash(dir.as_fd(), &files, &WithoutSecrets, &()).unwrap();
        assert!(matches!(found, Reading::Whole(digests) if digests.len() == 2));
    }
}
