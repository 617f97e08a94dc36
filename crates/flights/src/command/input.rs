//! Files named on the command line.

pub(super) use crate::regular::{named, shown};
use crate::{FlightsCode, near, regular, state};
use flightproof_core::Refusal;
use std::path::{Path, PathBuf};

/// Reads at most one byte more than the limit, so that the parser sees that it is too much.
///
/// # Errors
/// `FILE_UNREADABLE`.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Refusal> {
    regular::read(path, limit as u64).map_err(|e| unread(path, &e))
}

/// As [`read`], of a file that came from elsewhere: an ordinary one, and no link to another.
///
/// # Errors
/// `FILE_UNREADABLE`.
pub(super) fn read_arrival(path: &Path, limit: usize) -> Result<Vec<u8>, Refusal> {
    regular::read_arrival(path, limit as u64).map_err(|e| unread(path, &e))
}

/// Why a file could not be read, with what may have been meant.
pub(super) fn unread(path: &Path, error: &std::io::Error) -> Refusal {
    FlightsCode::FileUnreadable
        .refuse(near::unread(path, error))
        .into()
}

pub(super) fn unreadable(path: &Path, why: impl std::fmt::Display) -> Refusal {
    let detail = format!("{}: {why}", shown(path));
    FlightsCode::FileUnreadable.refuse(detail).into()
}

/// Writes a whole file, replacing one of that name that was no input: a key, a policy or evidence that
/// this command has read would be gone.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`.
pub(super) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refusal> {
    match regular::was_read(path) {
        true => Err(is_input(path)),
        false => replace(path, bytes, mode),
    }
}

/// Writes a whole file in the place of what was read from it.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refusal> {
    state::write_file(path, bytes, mode)
        .map_err(|refusal| FlightsCode::OutputUnwritable.refuse(refusal.detail).into())
}

/// Refuses an output in whose place lies a file of another kind: one that does not begin as outputs of this
/// kind do, and is not empty.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`, `FILE_UNREADABLE`.
pub(super) fn replaces_its_kind(output: &Path, kinds: &[&[u8]]) -> Result<(), Refusal> {
    use std::io::Read as _;
    // Asked before it is opened: to open a pipe waits for whoever writes.
    if !std::fs::metadata(output).is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    let longest = kinds.iter().map(|kind| kind.len()).max().unwrap_or(0);
    let mut begins = Vec::new();
    std::fs::File::open(output)
        .and_then(|file| file.take(longest as u64).read_to_end(&mut begins))
        .map_err(|e| unread(output, &e))?;
    match begins.is_empty() || kinds.iter().any(|kind| begins.starts_with(kind)) {
        true => Ok(()),
        false => {
            let why = "a file of another kind is there and is not replaced";
            let detail = format!("{}: {why}", shown(output));
            Err(FlightsCode::OutputUnwritable.refuse(detail).into())
        }
    }
}

fn is_input(output: &Path) -> Refusal {
    let detail = format!("{}: it is an input as well", shown(output));
    FlightsCode::OutputUnwritable.refuse(detail).into()
}

/// Refuses, before any work, an output that is one of the inputs, or would replace a file of a directory
/// that is one. Another output counts as an input.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`.
pub(super) fn apart(output: &Path, inputs: &[&Path]) -> Result<(), Refusal> {
    let own = place(output);
    let exists = output.symlink_metadata().is_ok();
    let same = |input: &&Path| {
        let input = place(input);
        let inside = input.is_dir() && exists && own.starts_with(&input);
        own == input || inside || same_file(output, &input)
    };
    match inputs.iter().any(same) {
        true => Err(is_input(output)),
        false => Ok(()),
    }
}

/// A path without links and detours, whether or not there is a file of this name.
fn place(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match (parent.canonicalize(), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// The same file under two names.
fn same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let number = |path: &Path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    number(one).is_some_and(|own| number(other) == Some(own))
}

/// A directory that must be there.
///
/// # Errors
/// `FILE_UNREADABLE`.
pub(super) fn directory(path: &Path) -> Result<(), Refusal> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(unreadable(path, "not a directory")),
        Err(e) => Err(unread(path, &e)),
    }
}

/// The directory that an output will lie in.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`.
pub(super) fn parent(path: &Path) -> Result<(), Refusal> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let unwritable = |path: &Path, why: &dyn std::fmt::Display| {
        Refusal::from(FlightsCode::OutputUnwritable.refuse(format!("{}: {why}", shown(path))))
    };
    if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(unwritable(path, &"is there and is no regular file"));
    }
    match std::fs::metadata(parent) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(unwritable(parent, &"not a directory")),
        Err(e) => Err(unwritable(parent, &e)),
    }
}
