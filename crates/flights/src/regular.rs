//! Files that are read whole: regular ones, up to a bound, without waiting for anybody. And how a refusal
//! names them.

use flightproof_core::{Refusal, escape};
use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC};
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Most bytes of a path in a line for people.
const MAX_SHOWN: usize = 2048;

/// A path as people see it.
pub(crate) fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes(), MAX_SHOWN)
}

/// The refusal of what a file holds, with the file's name before what was found in it.
pub(crate) fn named<E: Into<Refusal>>(path: &Path) -> impl FnOnce(E) -> Refusal + use<'_, E> {
    move |found| {
        let refusal = found.into();
        Refusal {
            detail: format!("{}: {}", shown(path), refusal.detail),
            ..refusal
        }
    }
}

/// Reads a file that the operator names, one byte more than `limit` at most. What the shell hands
/// over by `/dev/stdin` or `/dev/fd/N` may be a pipe.
///
/// # Errors
/// The system's, and that it is no regular file.
pub(crate) fn read(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    take(open_named(path)?, limit)
}

/// Opens such a file.
///
/// # Errors
/// As [`read`].
pub(crate) fn open_named(path: &Path) -> std::io::Result<File> {
    match is_handed_over(path) {
        true => File::open(path).inspect(note),
        false => open(path, OFlags::empty()),
    }
}

/// Device and number of each file that this process has read.
static READ: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

fn number(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn note(file: &File) {
    if let Ok(found) = file.metadata() {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(number(&found));
    }
}

/// Whether this process has read the file of this name, under whatever name.
pub(crate) fn was_read(path: &Path) -> bool {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    std::fs::metadata(path).is_ok_and(|found| read.contains(&number(&found)))
}

/// As [`read`], of text.
///
/// # Errors
/// As [`read`]; more than `limit` bytes; no UTF-8.
pub(crate) fn read_text(path: &Path, limit: u64) -> std::io::Result<String> {
    let bytes = read(path, limit)?;
    if bytes.len() as u64 > limit {
        let what = format!("more than {limit} bytes");
        return Err(Error::new(ErrorKind::FileTooLarge, what));
    }
    String::from_utf8(bytes).map_err(|e| Error::new(ErrorKind::InvalidData, e))
}

/// Reads a file that came from elsewhere, one byte more than `limit` at most: a link could lead
/// out of its folder.
///
/// # Errors
/// As [`read`], and those of links.
pub(crate) fn read_arrival(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    take(open(path, OFlags::NOFOLLOW)?, limit)
}

/// A pipe or a device could wait for ever or never end; what lies in `/proc` is no file of anybody.
fn open(path: &Path, flags: OFlags) -> std::io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let of_proc = rustix::fs::fstatfs(&file)?.f_type == PROC_SUPER_MAGIC;
    if of_proc || !file.metadata()?.is_file() {
        return Err(Error::other("not a regular file"));
    }
    note(&file);
    Ok(file)
}

fn take(file: File, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_handed_over(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let number = |n: &[u8]| !n.is_empty() && n.iter().all(u8::is_ascii_digit);
    let folders: [&[u8]; 2] = [b"/dev/fd/", b"/proc/self/fd/"];
    path == b"/dev/stdin"
        || folders
            .iter()
            .any(|folder| path.strip_prefix(*folder).is_some_and(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_read_and_nobody_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, pipe, link) = ("file", "pipe", "link");
        let [file, pipe, link] = [file, pipe, link].map(|name| folder.path().join(name));
        std::fs::write(&file, b"four").expect("a file");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).expect("a pipe");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert!(!was_read(&file));
        assert_eq!(read(&file, 9).expect("readable"), b"four");
        assert!(was_read(&file) && was_read(&link) && !was_read(&pipe));
        assert_eq!(read(&link, 2).expect("readable"), b"fou");
        assert!(read_arrival(&link, 9).is_err());
        for other in [
            &*pipe,
            folder.path(),
            Path::new("/dev/zero"),
            Path::new("/proc/version"),
        ] {
            assert!(read(other, 9).is_err(), "{}", other.display());
            assert!(read_arrival(other, 9).is_err(), "{}", other.display());
        }
        assert_eq!(
            read_text(&file, 3).expect_err("too much").kind(),
            ErrorKind::FileTooLarge
        );
    }
}
