//! The dependencies a lock names, taken from cargo's cache without running cargo.

use crate::upload::{self, WORKSPACE};
use crate::{SessionCode, SessionError};
use flightproof_archive::paws;
use flightproof_core::{Digest, RelPath, escape};
use flightproof_frame::protocol::CrateFile;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Largest `.crate` file: that of the archive they travel in. What the registry itself accepts is 10 MiB,
/// exceptions are larger.
const MAX_CRATE: u64 = paws::MAX_FILE_BYTES;

/// One dependency with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedCrate {
    /// Which.
    pub file: CrateFile,
    /// The `.crate` file, its SHA-256 checked.
    pub bytes: Vec<u8>,
}

/// What is shipped into a session: a description, and the bytes it describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipment {
    /// The description.
    pub manifest: Manifest,
    /// A PAWS1 archive of the `.crate` files. Empty where a recorded session answers: it does not
    /// look at bytes that the manifest names.
    pub archive: Vec<u8>,
}

/// Names exactly one shipment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The dependencies, ordered by name and version.
    pub files: Vec<CrateFile>,
    /// Snapshot id of the archive.
    pub snapshot: Digest,
    /// Length of the archive in bytes.
    pub bytes: u64,
}

/// Packs dependencies for a session.
///
/// # Errors
/// `UPLOAD_MISMATCH` for names that no archive can hold.
pub fn ship(crates: &[CachedCrate]) -> Result<Shipment, SessionError> {
    let named = crates
        .iter()
        .map(|c| {
            let path = RelPath::new(&c.file.file_name())
                .map_err(|e| SessionCode::CrateMissing.refuse(e))?;
            Ok((path, false, c.bytes.as_slice()))
        })
        .collect::<Result<Vec<_>, SessionError>>()?;
    let packed = paws::pack(WORKSPACE, named).map_err(upload::unpackable)?;
    let mut files: Vec<CrateFile> = crates.iter().map(|c| c.file.clone()).collect();
    files.sort();
    let manifest = Manifest {
        files,
        snapshot: packed.snapshot.snapshot_id(),
        bytes: packed.bytes.len() as u64,
    };
    Ok(Shipment {
        manifest,
        archive: packed.bytes,
    })
}

/// Finds each dependency in one of the cache directories (those that hold `.crate` files, such as
/// `registry/cache/<registry>` in cargo's home).
///
/// # Errors
/// `CRATE_MISSING` with the names, `CRATE_MISMATCH` if a file has other bytes than the lock says,
/// `DEPENDENCY_UNSUPPORTED` if they are more than one archive holds.
pub fn find(
    cache_dirs: &[PathBuf],
    wanted: &[CrateFile],
) -> Result<Vec<CachedCrate>, SessionError> {
    find_within(cache_dirs, wanted, paws::MAX_ARCHIVE_BYTES)
}

fn find_within(
    cache_dirs: &[PathBuf],
    wanted: &[CrateFile],
    most: u64,
) -> Result<Vec<CachedCrate>, SessionError> {
    let mut found = Vec::with_capacity(wanted.len());
    let mut missing = Vec::new();
    let mut left = most;
    for file in wanted {
        match find_one(cache_dirs, file)? {
            Some(bytes) => {
                left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
                    SessionCode::DependencyUnsupported.refuse(format_args!(
                        "{} packages of more than {most} bytes together",
                        wanted.len()
                    ))
                })?;
                found.push(CachedCrate {
                    file: file.clone(),
                    bytes,
                });
            }
            None => missing.push(escape(file.file_name(), 80)),
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    Err(SessionCode::CrateMissing.refuse(missing.join(", ")))
}

fn find_one(dirs: &[PathBuf], file: &CrateFile) -> Result<Option<Vec<u8>>, SessionError> {
    let name = file.file_name();
    if !is_plain(&name) {
        return Err(
            SessionCode::CrateMissing.refuse(format_args!("{} is no file name", escape(&name, 80)))
        );
    }
    let mut other = None;
    for dir in dirs {
        let path = dir.join(&name);
        let Some(bytes) = load(&path)? else { continue };
        let sha256 = Digest::of(&bytes);
        if sha256 == file.sha256 {
            return Ok(Some(bytes));
        }
        other = Some((path, sha256));
    }
    match other {
        Some((path, sha256)) => Err(SessionCode::CrateMismatch.refuse(format_args!(
            "{}: got {sha256}, expected {}",
            path.display(),
            file.sha256
        ))),
        None => Ok(None),
    }
}

/// Package names and versions come from a lock somebody else wrote.
fn is_plain(name: &str) -> bool {
    name.len() <= 255
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.+".contains(&b))
}

fn load(path: &Path) -> Result<Option<Vec<u8>>, SessionError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io(path, &e)),
    };
    if !metadata.is_file() || metadata.len() > MAX_CRATE {
        return Err(SessionCode::CrateMismatch.refuse(format_args!(
            "{} is no file of at most {MAX_CRATE} bytes",
            path.display()
        )));
    }
    fs::read(path).map(Some).map_err(|e| io(path, &e))
}

fn io(path: &Path, error: &std::io::Error) -> SessionError {
    SessionCode::HostIo.refuse(format_args!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str, bytes: &[u8]) -> CrateFile {
        CrateFile {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            sha256: Digest::of(bytes),
        }
    }

    #[test]
    fn the_cache_with_the_right_bytes_is_used() {
        let (stale, good) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(stale.path().join("a-1.0.0.crate"), "old").unwrap();
        fs::write(good.path().join("a-1.0.0.crate"), "new").unwrap();
        let dirs = [stale.path().to_owned(), good.path().to_owned()];
        let found = find(&dirs, &[wanted("a", b"new")]).unwrap();
        assert_eq!(found[0].bytes, b"new");
    }

    #[test]
    fn other_bytes_than_the_lock_says_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a-1.0.0.crate"), "forged").unwrap();
        let refused = find(&[dir.path().to_owned()], &[wanted("a", b"new")]).unwrap_err();
        assert_eq!(refused.code, SessionCode::CrateMismatch);
    }

    #[test]
    fn more_than_one_archive_holds_is_refused_before_it_is_packed() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().to_owned()];
        let both = [wanted("a", b"one"), wanted("b", b"two")];
        fs::write(dir.path().join("a-1.0.0.crate"), "one").unwrap();
        fs::write(dir.path().join("b-1.0.0.crate"), "two").unwrap();
        assert_eq!(find_within(&dirs, &both, 6).unwrap().len(), 2);
        let refused = find_within(&dirs, &both, 5).unwrap_err();
        assert_eq!(refused.code, SessionCode::DependencyUnsupported);
        // One that no archive holds is not read at all.
        let large = fs::File::create(dir.path().join("a-1.0.0.crate")).unwrap();
        large.set_len(paws::MAX_FILE_BYTES + 1).unwrap();
        let refused = find(&dirs, &both).unwrap_err();
        assert_eq!(refused.code, SessionCode::CrateMismatch);
        let limit = format!("at most {} bytes", paws::MAX_FILE_BYTES);
        assert!(refused.detail.contains(&limit), "{}", refused.detail);
    }

    #[test]
    fn all_missing_crates_are_named_at_once() {
        let refused = find(&[], &[wanted("a", b""), wanted("b", b"")]).unwrap_err();
        assert_eq!(refused.code, SessionCode::CrateMissing);
        assert_eq!(refused.detail, "a-1.0.0.crate, b-1.0.0.crate");
    }

    #[test]
    fn a_lock_cannot_name_a_file_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a-1.0.0.crate"), "x").unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        let dirs = [dir.path().join("below")];
        for name in ["../a", ".a", "a/b", "é"] {
            let refused = find(&dirs, &[wanted(name, b"x")]).unwrap_err();
            assert_eq!(refused.code, SessionCode::CrateMissing, "{name}");
        }
    }
}
