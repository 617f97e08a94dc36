//! Looking at a file: what its bytes are, and in which state it is.

use crate::beneath::{self, io};
use crate::code::ArchiveError;
use crate::listing::Identity;
use crate::paws::MAX_FILE_BYTES;
use flightproof_core::{Digest, Hasher, RelPath};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

/// Opens what should be a file, without waiting if it is something else.
pub(super) fn open_file(dir: impl AsFd, path: &str) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    beneath::open(dir, path, flags, Mode::empty()).map(File::from)
}

/// The hash of a regular file no larger than a changeset can hold, and its state, which did not
/// change while it was read.
pub(super) fn digest_of(
    file: &File,
    path: &RelPath,
) -> Result<Option<(Digest, Identity)>, ArchiveError> {
    let failed = |e: &dyn std::fmt::Display| io(format_args!("read \"{path}\""), e);
    let stat = rustix::fs::fstat(file).map_err(|e| failed(&e))?;
    let identity = Identity::of(&stat);
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !regular || identity.size > MAX_FILE_BYTES {
        return Ok(None);
    }
    let mut hasher = Hasher::new();
    let most = usize::try_from(identity.size).map_or(READ_BYTES, |size| READ_BYTES.min(size + 1));
    let mut buffer = vec![0; most];
    // One byte more than there should be is seen by the second look.
    let mut reader = file.take(identity.size + 1);
    loop {
        let got = reader.read(&mut buffer).map_err(|e| failed(&e))?;
        if got == 0 {
            break;
        }
        hasher.update(buffer.get(..got).unwrap_or_default());
    }
    let after = rustix::fs::fstat(file).map_err(|e| failed(&e))?;
    if Identity::of(&after) != identity {
        return Ok(None);
    }
    Ok(Some((hasher.finish(), identity)))
}

/// Bytes read at once, 256 KiB: all the memory a file needs, however long it is.
const READ_BYTES: usize = 256 << 10;
