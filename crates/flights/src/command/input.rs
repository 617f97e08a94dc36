//! Files named on the command line.

use crate::{FlightsCode, regular, state};
use flightproof_core::{Refusal, escape};
use std::path::Path;

/// Most bytes of a path in a line for people.
const MAX_SHOWN: usize = 2048;

/// Reads at most one byte more than the limit, so that the parser sees that it is too much.
///
/// # Errors
/// `FILE_UNREADABLE`.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Refusal> {
    regular::read(path, limit as u64).map_err(|e| unreadable(path, e))
}

/// As [`read`], of a file that came from elsewhere: an ordinary one, and no link to another.
///
/// # Errors
/// `FILE_UNREADABLE`.
pub(super) fn read_arrival(path: &Path, limit: usize) -> Result<Vec<u8>, Refusal> {
    regular::read_arrival(path, limit as u64).map_err(|e| unreadable(path, e))
}

pub(super) fn unreadable(path: &Path, why: impl std::fmt::Display) -> Refusal {
    let detail = format!("{}: {why}", shown(path));
    FlightsCode::FileUnreadable.refuse(detail).into()
}

/// Writes a whole file, replacing one of that name.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`.
pub(super) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refusal> {
    state::write_file(path, bytes, mode)
        .map_err(|refusal| FlightsCode::OutputUnwritable.refuse(refusal.detail).into())
}

/// Refuses an output that is one of the inputs: the input would be gone.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`.
pub(super) fn apart(output: &Path, inputs: &[&Path]) -> Result<(), Refusal> {
    use std::os::unix::fs::MetadataExt as _;
    let place = |path: &Path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let Some(own) = place(output) else {
        return Ok(());
    };
    match inputs.iter().any(|input| place(input) == Some(own)) {
        true => {
            let detail = format!("{}: it is an input as well", shown(output));
            Err(FlightsCode::OutputUnwritable.refuse(detail).into())
        }
        false => Ok(()),
    }
}

/// A directory that must be there.
///
/// # Errors
/// `FILE_UNREADABLE`.
pub(super) fn directory(path: &Path) -> Result<(), Refusal> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(unreadable(path, "not a directory")),
        Err(e) => Err(unreadable(path, e)),
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

/// A path of the command line as people see it.
pub(super) fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes(), MAX_SHOWN)
}
