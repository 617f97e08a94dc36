use crate::beneath::{self, io, random_name};
use crate::code::{ArchiveCode, ArchiveError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A file that is not yet what it will be: written under a random name beside its place, put there
/// in one step, and gone when dropped before that.
///
/// A process that is killed leaves the random name behind. It starts as all our staging does, no
/// archive may hold it, and nobody reads it: it can be removed at any time. The bytes are not
/// forced to the disk: an archive says itself whether it is whole.
pub(crate) struct Draft {
    parent: OwnedFd,
    name: String,
    place: OsString,
    file: File,
    published: bool,
}

impl Draft {
    /// For a file that may exist and is then replaced.
    pub(crate) fn beside(place: &Path) -> Result<Self, ArchiveError> {
        let (parent, place) = split(place)?;
        let parent = beneath::open_root(parent)?;
        refuse_special(&parent, place)?;
        let name = random_name()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        // As any program creates a file: the umask decides who else may read it.
        let file = beneath::open(&parent, &*name, flags, Mode::from_raw_mode(0o666))
            .map_err(|e| io("create the archive", e))?;
        Ok(Self {
            parent,
            name,
            place: place.to_owned(),
            file: File::from(file),
            published: false,
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn publish(mut self) -> Result<(), ArchiveError> {
        rustix::fs::renameat(&self.parent, &*self.name, &self.parent, &*self.place)
            .map_err(|e| io("put the archive in its place", e))?;
        self.published = true;
        Ok(())
    }
}

/// A rename replaces whatever is there: a device such as `/dev/null` would be a file afterwards.
fn refuse_special(parent: &OwnedFd, place: &OsStr) -> Result<(), ArchiveError> {
    match rustix::fs::statat(parent, place, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
            Err(ArchiveCode::DestinationUnsafe.refuse("the output is there and is no regular file"))
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(io("look at the output", e)),
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            let _ = rustix::fs::unlinkat(&self.parent, &*self.name, AtFlags::empty());
        }
    }
}

/// The directory a path lies in and its name there.
pub(crate) fn split(path: &Path) -> Result<(&Path, &OsStr), ArchiveError> {
    let name = path
        .file_name()
        .ok_or_else(|| io("write there", "the destination has no name"))?;
    match path.parent() {
        Some(parent) if parent != Path::new("") => Ok((parent, name)),
        _ => Ok((Path::new("."), name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_lies_where_the_process_stands() {
        for (path, parent, name) in [
            ("out", ".", "out"),
            ("./out", ".", "out"),
            ("a/out", "a", "out"),
            ("/out", "/", "out"),
            ("../a/out/", "../a", "out"),
        ] {
            let expected = (Path::new(parent), OsStr::new(name));
            assert_eq!(split(Path::new(path)), Ok(expected), "{path}");
        }
        for nameless in ["", "/", "..", "a/.."] {
            assert!(split(Path::new(nameless)).is_err(), "{nameless}");
        }
    }
}
