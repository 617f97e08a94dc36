//! Where things are kept on the host: state, keys, toolchain, temporary folder.

use crate::{FlightsCode, near};
use flightproof_core::{Refusal, escape};
use rustix::fs::{Access, AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The state directory: `FLIGHTPROOF_STATE`, else `$XDG_STATE_HOME/flightproof`, else
/// `$HOME/.local/state/flightproof`. Created with mode 0700.
///
/// # Errors
/// `STATE_UNAVAILABLE` if none of them can be used.
pub fn directory() -> Result<PathBuf, Refusal> {
    let path = place()?;
    private_directory(&path)?;
    path.canonicalize().map_err(|e| unavailable(&path, e))
}

/// The state directory for a command that only looks: nothing is made, and `None` says that it is not
/// there.
///
/// # Errors
/// As [`directory`].
pub fn existing() -> Result<Option<PathBuf>, Refusal> {
    match place()?.try_exists() {
        Ok(false) => Ok(None),
        _ => directory().map(Some),
    }
}

/// A part of the state directory, for a command that only looks and has nothing to tell without it.
///
/// # Errors
/// `STATE_MISSING`; as [`directory`].
pub fn part(name: &str) -> Result<PathBuf, Refusal> {
    let missing = |path: &Path, what: &str| {
        let detail = format!(
            "no {what} at {}",
            escape(path.as_os_str().as_encoded_bytes(), MAX_SHOWN)
        );
        Refusal::from(FlightsCode::StateMissing.refuse(detail))
    };
    let Some(state) = existing()? else {
        return Err(missing(&place()?, "state directory"));
    };
    let part = state.join(name);
    match part.try_exists() {
        Ok(false) => Err(missing(&part, name)),
        _ => Ok(part),
    }
}

/// Most bytes of a path in a refusal.
const MAX_SHOWN: usize = 400;

/// Where the state directory is or would be.
///
/// # Errors
/// `STATE_UNAVAILABLE` if no variable says so.
pub fn place() -> Result<PathBuf, Refusal> {
    let from = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    from("FLIGHTPROOF_STATE")
        .or_else(|| from("XDG_STATE_HOME").map(|p| p.join("flightproof")))
        .or_else(|| from("HOME").map(|p| p.join(".local/state/flightproof")))
        .ok_or_else(|| unavailable(Path::new("?"), "neither FLIGHTPROOF_STATE nor HOME is set"))
}

/// Where what does not last is made: `TMPDIR`, unless it is empty, else `/tmp`.
pub fn temporary() -> PathBuf {
    let named = std::env::var_os("TMPDIR").filter(|v| !v.is_empty());
    named.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// Whether nothing can be written in a directory that is there, as on a disk of evidence.
pub fn is_read_only(path: &Path) -> bool {
    matches!(
        rustix::fs::access(path, Access::WRITE_OK),
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM)
    )
}

/// Creates a directory that only its owner can enter. An existing one must be such a directory.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn private_directory(path: &Path) -> Result<(), Refusal> {
    make_folder(path, 0o700)?;
    let meta = fs::metadata(path).map_err(|e| unavailable(path, e))?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(unavailable(path, "it belongs to another user"));
    }
    let mode = meta.permissions().mode();
    if mode & 0o022 != 0 {
        return Err(unavailable(
            path,
            format!("mode {:o} lets others write", mode & 0o777),
        ));
    }
    Ok(())
}

/// The output directory of a command, created if need be.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn output_directory(path: &Path) -> Result<(), Refusal> {
    make_folder(path, 0o777)
}

/// Makes a folder, and those above it that are not there. They are on the disk when this returns: what is
/// written below is found after a power cut.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn make_folder(path: &Path, mode: u32) -> Result<(), Refusal> {
    if path.is_dir() {
        return Ok(());
    }
    let above = folder_of(path);
    make_folder(above, mode)?;
    let make = || -> std::io::Result<()> {
        match fs::DirBuilder::new().mode(mode).create(path) {
            // Somebody else made it meanwhile, and may not have come to the rest.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => {}
            made => made?,
        }
        fs::File::open(above)?.sync_all()
    };
    make().map_err(|e| unavailable(path, e))
}

/// Writes a whole file, replacing one of that name: temporary name, flush to disk, rename.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn write_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refusal> {
    put(path, bytes, mode, RenameFlags::empty())
}

/// Writes a whole file where none is, also if somebody else writes there at the same time.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn write_new_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refusal> {
    put(path, bytes, mode, RenameFlags::NOREPLACE)
}

fn put(path: &Path, bytes: &[u8], mode: u32, flags: RenameFlags) -> Result<(), Refusal> {
    use std::io::Write as _;
    // A rename replaces whatever is there: a device such as /dev/null would be a file afterwards.
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(unavailable(path, "is there and is no regular file"));
    }
    let folder = folder_of(path);
    // Nobody else writes under this name, so a file has the bytes of one writer.
    let unique = u128::from_le_bytes(entropy()?[..16].try_into().unwrap_or_default());
    let temporary = path.with_file_name(format!(
        ".flightproof-{}-{unique:032x}.new",
        std::process::id()
    ));
    let write = || -> std::io::Result<()> {
        let nameless = nameless(folder, mode)?;
        let named = nameless.is_none();
        let mut file = match nameless {
            Some(file) => file,
            None => create(&temporary, mode)?,
        };
        file.write_all(bytes)?;
        file.sync_all()?;
        if !named {
            let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, handle, CWD, &temporary, AtFlags::SYMLINK_FOLLOW)?;
        }
        rustix::fs::renameat_with(CWD, &temporary, CWD, path, flags)?;
        fs::File::open(folder)?.sync_all()
    };
    write().map_err(|e| {
        let _ = fs::remove_file(&temporary);
        unavailable(path, e)
    })
}

/// The folder that something lies in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A file without a name, of which a killed run leaves nothing. `None` where the file system has none
/// such.
fn nameless(folder: &Path, mode: u32) -> std::io::Result<Option<fs::File>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::from_raw_mode(mode)) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn create(path: &Path, mode: u32) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// Holds the folder of a file until this is dropped: whoever reads the file and writes the next version of
/// it is alone meanwhile.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn hold_folder_of(file: &Path) -> Result<fs::File, Refusal> {
    let folder = folder_of(file);
    let held = fs::File::open(folder).map_err(|e| unavailable(folder, e))?;
    lock(folder, held)
}

/// As [`hold_folder_of`], by a file that is there for nothing else, and is made if need be.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn hold_file(path: &Path) -> Result<fs::File, Refusal> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let held = options.open(path).map_err(|e| unavailable(path, e))?;
    lock(path, held)
}

fn lock(path: &Path, file: fs::File) -> Result<fs::File, Refusal> {
    rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|e| unavailable(path, e))?;
    Ok(file)
}

fn unavailable(path: &Path, reason: impl std::fmt::Display) -> Refusal {
    FlightsCode::StateUnavailable
        .refuse(format!("{}: {reason}", path.display()))
        .into()
}

/// The directory of the toolchain to bind into sessions: the one named, else the default
/// toolchain's (`rustc --print sysroot`, asked from `/`, so that no project's file is obeyed).
///
/// # Errors
/// `TOOLCHAIN_MISSING`; `FILE_UNREADABLE` for one that is named and is not there.
pub fn toolchain(named: Option<&Path>) -> Result<PathBuf, Refusal> {
    let missing = |what: String| Refusal::from(FlightsCode::ToolchainMissing.refuse(what));
    let sysroot = match named {
        Some(path) => path.to_owned(),
        None => default_sysroot().map_err(missing)?,
    };
    let sysroot = sysroot.canonicalize().map_err(|e| match named {
        Some(path) => FlightsCode::FileUnreadable
            .refuse(near::unread(path, &e))
            .into(),
        None => missing(format!("{}: {e}", sysroot.display())),
    })?;
    for program in ["bin/rustc", "bin/cargo"] {
        if !sysroot.join(program).is_file() {
            return Err(missing(format!("{} has no {program}", sysroot.display())));
        }
    }
    Ok(sysroot)
}

fn default_sysroot() -> Result<PathBuf, String> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .current_dir("/")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("rustc: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim() {
        path if output.status.success() && path.starts_with('/') => Ok(PathBuf::from(path)),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or_default();
            Err(format!(
                "rustc --print sysroot ended with {}: {}",
                output.status,
                escape(said, 200)
            ))
        }
    }
}

/// Directories of cargo's cache that hold `.crate` files.
pub fn crate_caches() -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo")));
    let Some(cache) = home.map(|h| h.join("registry/cache")) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = fs::read_dir(cache)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// A program of the host by absolute path, found in `PATH`.
///
/// # Errors
/// `PROGRAM_MISSING` naming the Debian package.
pub fn program(name: &str, package: &str) -> Result<PathBuf, Refusal> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_absolute() && candidate.is_file())
        .ok_or_else(|| {
            FlightsCode::ProgramMissing
                .refuse(format!("{name} (apt-get install {package})"))
                .into()
        })
}

/// Seconds since 1970, as the host's clock says.
pub fn unix_seconds() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// 32 bytes from the operating system.
///
/// # Errors
/// `STATE_UNAVAILABLE` if it has none to give.
pub fn entropy() -> Result<[u8; 32], Refusal> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| unavailable(Path::new("getrandom"), e))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_with_those_above_them_and_nothing_is_made_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/../b/c");
        for _ in 0..2 {
            private_directory(&deep).unwrap();
        }
        for made in ["a", "a/b", "a/b/c"] {
            let meta = fs::metadata(dir.path().join(made)).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o700, "{made}");
        }
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for taken in [file.clone(), file.join("below")] {
            let refusal = output_directory(&taken).unwrap_err();
            assert_eq!(refusal.code(), "flights/STATE_UNAVAILABLE");
        }
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| output_directory(&dir.path().join("x/y/z")).unwrap());
            }
        });
    }
}
