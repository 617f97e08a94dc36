use crate::code::ArchiveError;
use flightproof_core::RelPath;
use rustix::fs::FileType;
use std::os::fd::BorrowedFd;

/// What of a directory travels.
///
/// Asked by name and kind alone, before anything is opened: what is not admitted is never touched,
/// be it a pipe, a link or a directory that may not be read. Calls come in one order: the entries
/// of a directory ascend by the bytes of their paths, a directory's counted with a `/` at its end.
pub trait Choice {
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
}

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
}

impl Choice for Without<'_> {
    fn enter(&mut self, _: BorrowedFd<'_>, _: Option<&RelPath>) -> Result<(), ArchiveError> {
        Ok(())
    }

    fn admits(&mut self, path: &RelPath, _: FileType) -> Result<bool, ArchiveError> {
        Ok(!self.0.contains(&path.as_str()))
    }

    fn leave(&mut self) {}
}
