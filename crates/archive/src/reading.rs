//! The second pass over a directory: every byte is read once, by two threads, and belongs to the
//! file that was listed or to a refusal.

use crate::beneath::{self, Parents, io};
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

/// The hashes of the listed files, in their order. Two threads.
///
/// # Errors
/// A file that is not what was listed, before or after it was read; the system's.
pub(crate) fn hash(
    root: BorrowedFd<'_>,
    files: &[Listed],
    progress: &dyn Progress,
) -> Result<Vec<Digest>, ArchiveError> {
    let items: Vec<_> = files.iter().map(|listed| (listed, 0)).collect();
    read(root, &items, &|| Out::Nowhere, progress)
}

/// As [`hash`], and each file's bytes are written to `out` at the offset beside it.
///
/// # Errors
/// As [`hash`].
pub(crate) fn copy(
    root: BorrowedFd<'_>,
    files: &[(&Listed, u64)],
    out: &File,
    progress: &dyn Progress,
) -> Result<Vec<Digest>, ArchiveError> {
    read(root, files, &|| Out::File(out), progress)
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
    let digests = files.iter().map(|listed| reader.file(listed, 0));
    let digests = digests.collect::<Result<_, _>>()?;
    reader.flush()?;
    Ok(digests)
}

fn read<'a>(
    root: BorrowedFd<'_>,
    files: &[(&Listed, u64)],
    out: &(dyn Fn() -> Out<'a> + Sync),
    progress: &dyn Progress,
) -> Result<Vec<Digest>, ArchiveError> {
    let sized = files
        .iter()
        .map(|(listed, _)| (listed.path.as_str(), listed.identity.size));
    crew::share(
        &crew::batches(sized),
        || Reader::new(root, out()),
        |reader, batch| {
            let files = files.get(batch).unwrap_or_default();
            let digests = files
                .iter()
                .map(|(listed, offset)| reader.file(listed, *offset));
            let digests: Vec<_> = digests.collect::<Result<_, _>>()?;
            reader.flush()?;
            let bytes = files.iter().map(|(listed, _)| listed.identity.size).sum();
            progress.advance(files.len() as u64, bytes);
            Ok(digests)
        },
    )
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

    /// Reads one listed file whole, to `offset`.
    fn file(&mut self, listed: &Listed, offset: u64) -> Result<Digest, ArchiveError> {
        let file = self.open(listed)?;
        self.make_room(listed.identity.size, offset)?;
        let digest = self.content(&file, listed)?;
        // After the read, and against the listing: this covers all that happened in between.
        let stat = rustix::fs::fstat(&file);
        let stat = stat.map_err(|e| io(format_args!("look at \"{}\"", listed.path), e))?;
        if Identity::of(&stat) != listed.identity {
            return Err(changed(&listed.path));
        }
        Ok(digest)
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
                Err(Errno::AGAIN) => return Err(changed(&listed.path)),
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
