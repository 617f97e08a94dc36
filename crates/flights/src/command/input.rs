//! Files named on the command line.

use crate::FlightsCode;
use flightproof_core::{Refusal, escape};
use std::io::Read as _;
use std::path::Path;

/// Most bytes of a path in a line for people.
const MAX_SHOWN: usize = 2048;

/// Reads at most one byte more than the limit, so that the parser sees that it is too much.
///
/// # Errors
/// `FILE_UNREADABLE`.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes))
        .map_err(|e| unreadable(path, e))?;
    Ok(bytes)
}

pub(super) fn unreadable(path: &Path, why: impl std::fmt::Display) -> Refusal {
    let detail = format!("{}: {why}", shown(path));
    FlightsCode::FileUnreadable.refuse(detail).into()
}

/// A path of the command line as people see it.
pub(super) fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes(), MAX_SHOWN)
}
