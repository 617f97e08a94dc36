use crate::code::ArchiveError;
use flightproof_core::RelPath;
use rustix::fs::FileType;
use std::os::fd::BorrowedFd;

/// What of a directory travels.
///
/// Asked by name and kind alone, before anything is opened: what is not admitted is never touched,
/// be it a pipe, a link or a directory that may not be read. Calls come in one order: the entries
/// of a directory ascend by the bytes of their paths, a directory's counted with a `/` at its end.
pub trait Choice: Sync {
    /// A directory was opened and its entries are asked for next. The top directory has no path.
    ///
    /// # Errors
    /// The choice cannot be made here, which ends the walk: say, a file of rules that is unreadable.
    fn enter(&mut self, dir: BorrowedFd<'_>, path: Option<&RelPath>) -> Result<(), ArchiveError>;

    /// Whether this entry travels. A directory that is not admitted is not entered.
    ///
    /// # Errors
    /// The choice refuses the whole tree because of this entry.
    fn admits(&mut self, path: &RelPath, kind: FileType) -> Result<bool, ArchiveError>;

    /// All entries of the directory that was entered last were asked for.
    fn leave(&mut self);

    /// Whether a file that was admitted by its name may travel by what is in it. Asked once for each,
    /// from more than one thread and in no order, when the file is read anyway; `head` is its first
    /// [`HEAD_BYTES`], and empty for one of 256 KiB or more, which is no key. If one may not, the rest is
    /// read again without it.
    fn admits_content(&self, file: &RelPath, size: u64, head: &[u8]) -> bool;
}

/// How much of a file a choice may look at, in bytes: all of one that may be a key, 64 KiB.
pub const HEAD_BYTES: usize = 64 << 10;

/// All of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Everything;

/// All but these names of the top directory, such as `.git`. Below it they mean nothing.
#[derive(Debug, Clone, Copy)]
pub struct Without<'a>(pub &'a [&'a str]);

impl Choice for Everything {
    fn enter(&mut self, _: BorrowedFd<'_>, _: Option<&RelPath>) -> Result<(), ArchiveError> {
        Ok(())
    }

    fn admits(&mut self, _: &RelPath, _: FileType) -> Result<bool, ArchiveError> {
        Ok(true)
    }

    fn leave(&mut self) {}

    fn admits_content(&self, _: &RelPath, _: u64, _: &[u8]) -> bool {
        true
    }
}

impl Choice for Without<'_> {
    fn enter(&mut self, _: BorrowedFd<'_>, _: Option<&RelPath>) -> Result<(), ArchiveError> {
        Ok(())
    }

    fn admits(&mut self, path: &RelPath, _: FileType) -> Result<bool, ArchiveError> {
        Ok(!self.0.contains(&path.as_str()))
    }

    fn leave(&mut self) {}

    fn admits_content(&self, _: &RelPath, _: u64, _: &[u8]) -> bool {
        true
    }
}
