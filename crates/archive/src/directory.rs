use crate::beneath::{self, io};
use crate::code::{ArchiveCode, ArchiveError};
use crate::paws::{self, MAX_ARCHIVE_BYTES, MAX_ENTRIES, MAX_FILE_BYTES, Packed};
use flightproof_core::{RelPath, escape};
use rustix::fs::{Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Packs all files below a directory. Empty directories do not travel.
///
/// `skip` names entries of the top directory to leave out, such as `.git`. Links are neither
/// followed nor packed, mounts are not entered, and a file that changes while it is read is
/// refused.
///
/// # Errors
/// What [`paws::pack`] refuses, anything that is neither file nor directory, and the system's.
pub fn pack_directory(
    path: &Path,
    workspace_id: impl Into<String>,
    skip: &[&str],
) -> Result<Packed, ArchiveError> {
    let root = beneath::open_root(path)?;
    let mut walk = Walk::default();
    walk.directory(root.as_fd(), "", skip)?;
    paws::pack(workspace_id, walk.files)
}

/// What was read so far.
#[derive(Default)]
struct Walk {
    files: Vec<(RelPath, bool, Vec<u8>)>,
    bytes: u64,
}

impl Walk {
    /// Depth is bounded: each level adds at least two bytes to a path of at most 512.
    fn directory(
        &mut self,
        dir: BorrowedFd<'_>,
        prefix: &str,
        skip: &[&str],
    ) -> Result<(), ArchiveError> {
        for (name, kind) in names(dir)? {
            if skip.contains(&name.as_str()) {
                continue;
            }
            let path = rel_path(&format!("{prefix}{name}"))?;
            match kind {
                FileType::Directory => {
                    let below =
                        beneath::open_directory(dir, &name).map_err(|e| unopened(&path, e))?;
                    self.directory(below.as_fd(), &format!("{}/", path.as_str()), &[])?;
                }
                FileType::RegularFile => self.file(dir, &name, path)?,
                FileType::Symlink => return Err(symlink(&path)),
                other => return Err(kind_refused(&path, other)),
            }
        }
        Ok(())
    }

    fn file(&mut self, dir: BorrowedFd<'_>, name: &str, path: RelPath) -> Result<(), ArchiveError> {
        if self.files.len() == MAX_ENTRIES {
            return Err(ArchiveCode::MaxEntriesExceeded
                .refuse(format_args!("more than {MAX_ENTRIES} files")));
        }
        // Without NONBLOCK a pipe that took the file's place would hold us here for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let opened = beneath::open(dir, name, flags, Mode::empty());
        let file = File::from(opened.map_err(|e| unopened(&path, e))?);
        let before = stat(&file, &path)?;
        let kind = FileType::from_raw_mode(before.st_mode);
        if kind != FileType::RegularFile {
            return Err(kind_refused(&path, kind));
        }
        let size = self.admit(&path, &before)?;
        let content = read_exactly(&file, size, &path)?;
        if moment(&stat(&file, &path)?) != moment(&before) {
            return Err(changed(&path));
        }
        self.files
            .push((path, before.st_mode & 0o100 != 0, content));
        Ok(())
    }

    /// The size of a file, if it and all before it are within the limits.
    fn admit(&mut self, path: &RelPath, stat: &Stat) -> Result<u64, ArchiveError> {
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if size > MAX_FILE_BYTES {
            return Err(ArchiveCode::InvalidSize.refuse(format_args!(
                "\"{path}\": {size} bytes, at most {MAX_FILE_BYTES} allowed"
            )));
        }
        self.bytes += size;
        if self.bytes > MAX_ARCHIVE_BYTES {
            return Err(ArchiveCode::ArchiveTooLarge.refuse(format_args!(
                "the files up to \"{path}\" have {} bytes, at most {MAX_ARCHIVE_BYTES} allowed",
                self.bytes
            )));
        }
        Ok(size)
    }
}

/// The names in one directory with their kinds, read before anything below is opened.
fn names(dir: BorrowedFd<'_>) -> Result<Vec<(String, FileType)>, ArchiveError> {
    let mut out = Vec::new();
    for entry in Dir::read_from(dir).map_err(|e| io("list a directory", e))? {
        let entry = entry.map_err(|e| io("list a directory", e))?;
        let bytes = entry.file_name().to_bytes();
        if bytes == b"." || bytes == b".." {
            continue;
        }
        let name = std::str::from_utf8(bytes).map_err(|_| {
            ArchiveCode::InvalidPath.refuse(format_args!("\"{}\" is not UTF-8", escape(bytes, 255)))
        })?;
        let kind = match entry.file_type() {
            FileType::Unknown => kind_of(dir, name)?,
            known => known,
        };
        out.push((name.to_owned(), kind));
    }
    Ok(out)
}

/// Some file systems do not say the kind in a listing.
fn kind_of(dir: BorrowedFd<'_>, name: &str) -> Result<FileType, ArchiveError> {
    let stat = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    stat.map(|stat| FileType::from_raw_mode(stat.st_mode))
        .map_err(|e| io("look at a file", e))
}

fn rel_path(text: &str) -> Result<RelPath, ArchiveError> {
    RelPath::new(text).map_err(|fault| {
        ArchiveCode::InvalidPath.refuse(format!("\"{}\" {fault}", escape(text, 80)))
    })
}

/// Exactly the promised bytes, and then the end.
fn read_exactly(file: &File, size: u64, path: &RelPath) -> Result<Vec<u8>, ArchiveError> {
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    let read = file.take(size + 1).read_to_end(&mut content);
    read.map_err(|e| io(format_args!("read \"{path}\""), e))?;
    if content.len() as u64 != size {
        return Err(changed(path));
    }
    Ok(content)
}

fn stat(file: &File, path: &RelPath) -> Result<Stat, ArchiveError> {
    rustix::fs::fstat(file).map_err(|e| io(format_args!("look at \"{path}\""), e))
}

/// What differs when somebody wrote to a file, or changed its mode, in between.
fn moment(stat: &Stat) -> impl PartialEq + use<> {
    (
        stat.st_size,
        (stat.st_mtime, stat.st_mtime_nsec),
        (stat.st_ctime, stat.st_ctime_nsec),
    )
}

fn unopened(path: &RelPath, error: Errno) -> ArchiveError {
    match error {
        Errno::LOOP => symlink(path),
        Errno::XDEV => ArchiveCode::KindRefused.refuse(format_args!("\"{path}\" is a mount")),
        Errno::NOENT | Errno::NOTDIR => changed(path),
        error => io(format_args!("open \"{path}\""), error),
    }
}

fn symlink(path: &RelPath) -> ArchiveError {
    ArchiveCode::SymlinkRefused.refuse(format_args!("\"{path}\""))
}

fn kind_refused(path: &RelPath, kind: FileType) -> ArchiveError {
    ArchiveCode::KindRefused.refuse(format_args!("\"{path}\" is a {kind:?}"))
}

fn changed(path: &RelPath) -> ArchiveError {
    ArchiveCode::FileChanged.refuse(format_args!("\"{path}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::SystemTime;

    #[test]
    fn whoever_writes_to_a_file_in_between_is_noticed() {
        let mut file = tempfile::tempfile().unwrap();
        let path = RelPath::new("file").unwrap();
        let first = moment(&stat(&file, &path).unwrap());
        assert!(first == moment(&stat(&file, &path).unwrap()));
        file.write_all(b"x").unwrap();
        let longer = moment(&stat(&file, &path).unwrap());
        assert!(first != longer);
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(longer != moment(&stat(&file, &path).unwrap()));
    }

    #[test]
    fn all_files_together_are_bounded_before_they_are_read() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(MAX_FILE_BYTES).unwrap();
        let path = RelPath::new("file").unwrap();
        let stat = stat(&file, &path).unwrap();
        let mut walk = Walk::default();
        for _ in 0..10 {
            walk.admit(&path, &stat).unwrap();
        }
        let refused = walk.admit(&path, &stat).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::ArchiveTooLarge);
    }
}
