//! A toolchain, named by content: the digest a certificate binds, computed once per installation.

use crate::{SessionCode, SessionError};
use flightproof_core::{Digest, Hasher, canonical_json};
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What of a sysroot a session sees. `share` is documentation.
pub const PARTS: [&str; 3] = ["bin", "lib", "libexec"];
/// Threads that hash: one is idle while the other waits for the disk.
const HASHERS: usize = 2;
/// Most files of a toolchain; a real one has some hundreds.
const MAX_FILES: usize = 100_000;
/// Piece a file is hashed in, bytes.
const PIECE: usize = 256 * 1024;

/// SHA-256 over the sorted list of `(path, mode, size, sha256)` of the toolchain's files, as
/// canonical JSON. Computed once: the result is kept in `cache_dir` under the digest of the
/// listing `(path, dev, ino, size, mtime, ctime, mode)`, which no change of a file leaves equal.
///
/// # Errors
/// `TOOLCHAIN_INVALID` if there is no compiler or something in it is neither file nor symlink.
pub fn digest(sysroot: &Path, cache_dir: &Path) -> Result<Digest, SessionError> {
    let files = listing(sysroot)?;
    let key = listing_digest(&files)?;
    let cached = cache_dir.join(format!("toolchain-{key}"));
    if let Some(digest) = fs::read_to_string(&cached)
        .ok()
        .and_then(|t| t.parse().ok())
    {
        return Ok(digest);
    }
    let digest = content_digest(&files)?;
    // A cache that cannot be written costs a second next time, nothing else.
    let _ = fs::create_dir_all(cache_dir).and_then(|()| {
        let temporary = cache_dir.join(format!("toolchain-{key}.{}", std::process::id()));
        fs::write(&temporary, digest.to_string())?;
        fs::rename(&temporary, &cached)
    });
    Ok(digest)
}

/// SHA-256 of linker driver and linker, in that order: over their two digests, one per line.
///
/// # Errors
/// `TOOLCHAIN_INVALID` if one of them is not there.
pub fn linker_digest() -> Result<Digest, SessionError> {
    let mut lines = String::new();
    for program in ["/usr/bin/cc", "/usr/bin/ld.bfd"] {
        let real = fs::canonicalize(program).map_err(|e| invalid(Path::new(program), &e))?;
        // Outside of /usr the session would not have it.
        if !real.starts_with("/usr") {
            return Err(SessionCode::ToolchainInvalid.refuse(format_args!(
                "{program} leads to {}, outside of /usr",
                real.display()
            )));
        }
        lines.push_str(&format!("{}\n", file_digest(&real)?));
    }
    Ok(Digest::of(lines.as_bytes()))
}

/// One file of the toolchain.
struct Listed {
    /// Path relative to the sysroot.
    path: String,
    full: PathBuf,
    metadata: fs::Metadata,
}

fn listing(sysroot: &Path) -> Result<Vec<Listed>, SessionError> {
    let compiler = sysroot.join("bin/rustc");
    fs::metadata(&compiler).map_err(|e| invalid(&compiler, &e))?;
    let mut files = Vec::new();
    for part in PARTS {
        let dir = sysroot.join(part);
        if dir.exists() {
            walk(sysroot, &dir, &mut files)?;
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(sysroot: &Path, dir: &Path, files: &mut Vec<Listed>) -> Result<(), SessionError> {
    let entries = fs::read_dir(dir).map_err(|e| invalid(dir, &e))?;
    for entry in entries {
        let full = entry.map_err(|e| invalid(dir, &e))?.path();
        let metadata = fs::symlink_metadata(&full).map_err(|e| invalid(&full, &e))?;
        if metadata.is_dir() {
            walk(sysroot, &full, files)?;
        } else if metadata.is_file() || metadata.is_symlink() {
            files.push(listed(sysroot, full, metadata)?);
        } else {
            return Err(
                SessionCode::ToolchainInvalid.refuse(format_args!("{} is no file", full.display()))
            );
        }
    }
    if files.len() > MAX_FILES {
        return Err(SessionCode::ToolchainInvalid.refuse(format_args!(
            "more than {MAX_FILES} files in {}",
            sysroot.display()
        )));
    }
    Ok(())
}

fn listed(sysroot: &Path, full: PathBuf, metadata: fs::Metadata) -> Result<Listed, SessionError> {
    let path = full.strip_prefix(sysroot).ok().and_then(Path::to_str);
    let path = path.map(str::to_owned).ok_or_else(|| {
        SessionCode::ToolchainInvalid.refuse(format_args!("{} is not UTF-8", full.display()))
    })?;
    Ok(Listed {
        path,
        full,
        metadata,
    })
}

fn listing_digest(files: &[Listed]) -> Result<Digest, SessionError> {
    let rows: Vec<_> = files
        .iter()
        .map(|f| {
            let m = &f.metadata;
            let times = [m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec()];
            // As text: inode numbers may be larger than a JSON integer holds.
            let ids = [m.dev(), m.ino(), m.size()].map(|n| n.to_string());
            (&f.path, ids, times.map(|n| n.to_string()), m.mode())
        })
        .collect();
    json_digest(&rows)
}

fn content_digest(files: &[Listed]) -> Result<Digest, SessionError> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Digest)>, SessionError> {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else {
                return Ok(done);
            };
            done.push((index, entry_digest(file)?));
        }
    };
    let parts = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..HASHERS).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|w| {
                w.join().unwrap_or_else(|_| {
                    Err(SessionCode::ToolchainInvalid.refuse("hashing did not end"))
                })
            })
            .collect::<Result<Vec<_>, _>>()
    })?;
    let mut digests: Vec<_> = parts.into_iter().flatten().collect();
    digests.sort_by_key(|(index, _)| *index);
    let rows: Vec<_> = files
        .iter()
        .zip(digests)
        .map(|(f, (_, sha256))| (&f.path, f.metadata.mode(), f.metadata.size(), sha256))
        .collect();
    json_digest(&rows)
}

fn json_digest<T: serde::Serialize>(rows: &T) -> Result<Digest, SessionError> {
    canonical_json(rows)
        .map(|json| Digest::of(&json))
        .map_err(|e| SessionCode::ToolchainInvalid.refuse(e))
}

/// A symlink's digest is that of its target text.
fn entry_digest(file: &Listed) -> Result<Digest, SessionError> {
    if file.metadata.is_symlink() {
        let target = fs::read_link(&file.full).map_err(|e| invalid(&file.full, &e))?;
        return Ok(Digest::of(
            AsRef::<OsStr>::as_ref(&target).as_encoded_bytes(),
        ));
    }
    file_digest(&file.full)
}

fn file_digest(path: &Path) -> Result<Digest, SessionError> {
    let file = fs::File::open(path).map_err(|e| invalid(path, &e))?;
    hash(file).map_err(|e| invalid(path, &e))
}

/// SHA-256 of a file, piece by piece.
pub(crate) fn hash(mut file: fs::File) -> std::io::Result<Digest> {
    let mut hasher = Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(n) => hasher.update(piece.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn invalid(path: &Path, error: &std::io::Error) -> SessionError {
    SessionCode::ToolchainInvalid.refuse(format_args!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysroot() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for part in ["bin", "lib/deep", "share"] {
            fs::create_dir_all(dir.path().join(part)).unwrap();
        }
        fs::write(dir.path().join("bin/rustc"), "compiler").unwrap();
        fs::write(dir.path().join("lib/deep/std.rlib"), "library").unwrap();
        fs::write(dir.path().join("share/readme"), "text").unwrap();
        dir
    }

    #[test]
    fn the_digest_is_of_content_and_not_of_where_it_lies() {
        let (a, b, cache) = (sysroot(), sysroot(), tempfile::tempdir().unwrap());
        let first = digest(a.path(), cache.path()).unwrap();
        fs::write(b.path().join("share/readme"), "other").unwrap();
        assert_eq!(digest(b.path(), cache.path()).unwrap(), first);
        fs::write(b.path().join("lib/deep/std.rlib"), "LIBRARY").unwrap();
        assert_ne!(digest(b.path(), cache.path()).unwrap(), first);
    }

    #[test]
    fn the_cache_is_used_for_the_same_listing_only() {
        let (root, cache) = (sysroot(), tempfile::tempdir().unwrap());
        let first = digest(root.path(), cache.path()).unwrap();
        let cached = fs::read_dir(cache.path()).unwrap().next().unwrap().unwrap();
        let planted = Digest::of(b"planted");
        fs::write(cached.path(), planted.to_string()).unwrap();
        assert_eq!(digest(root.path(), cache.path()).unwrap(), planted);
        fs::write(root.path().join("bin/rustc"), "COMPILER").unwrap();
        let changed = digest(root.path(), cache.path()).unwrap();
        assert!(changed != planted && changed != first);
    }

    #[test]
    fn a_directory_without_a_compiler_is_no_toolchain() {
        let dir = tempfile::tempdir().unwrap();
        let refused = digest(dir.path(), dir.path()).unwrap_err();
        assert_eq!(refused.code, SessionCode::ToolchainInvalid);
    }

    #[test]
    fn a_device_or_fifo_in_a_toolchain_is_refused() {
        let root = sysroot();
        let fifo = root.path().join("lib/fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let refused = digest(root.path(), root.path()).unwrap_err();
        assert_eq!(refused.code, SessionCode::ToolchainInvalid);
    }
}
