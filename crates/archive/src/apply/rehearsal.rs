//! Applying with somebody looking on, for tests: told each act before it is done, they can edit the
//! tree at exactly that moment.

use super::{Applied, By, Locked, Look, Order, Recovered, apply_watched, recover_locked};
use crate::code::ArchiveError;
use std::fs::File;
use std::path::Path;

/// How carefully a changeset is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// As [`crate::apply()`] does.
    Full,
    /// Without looking at what came out of the tree: the control that must fail.
    NoSecondLook,
}

/// As [`crate::apply()`]; `watch` is told the name of each act before it is done.
///
/// # Errors
/// As [`crate::apply()`].
pub fn apply(
    archive: &File,
    dir: &Path,
    care: Care,
    watch: &mut dyn FnMut(&str),
) -> Result<Applied, ArchiveError> {
    let look = match care {
        Care::Full => Look::Always,
        Care::NoSecondLook => Look::Never,
    };
    let mut told = |act| watch(&format!("{act:?}"));
    let order = Order {
        look,
        progress: &(),
        seal: None,
    };
    apply_watched(archive, dir, order, &mut told)
}

/// As [`crate::recover`]; `watch` is told the name of each act before it is done.
///
/// # Errors
/// As [`crate::recover`].
pub fn recover(dir: &Path, watch: &mut dyn FnMut(&str)) -> Result<Recovered, ArchiveError> {
    let locked = Locked::open(dir)?;
    recover_locked(locked.root(), By::Mark, &mut |act| {
        watch(&format!("{act:?}"))
    })
}
