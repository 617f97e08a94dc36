use crate::beneath;
use crate::choice::Without;
use crate::code::ArchiveError;
use crate::paws::{Outline, Packed};
use crate::{listing, reading};
use std::os::fd::AsFd;
use std::path::Path;

/// Packs all files below a directory in memory. [`crate::paws::pack_file`] is for what is large.
///
/// `skip` names entries of the top directory to leave out, such as `.git`. Empty directories do not
/// travel. Links are neither followed nor packed, mounts are not entered, and a file that changes
/// while it is read is refused.
///
/// # Errors
/// What [`crate::paws::pack`] refuses, anything that is neither file nor directory, and the
/// system's.
pub fn pack_directory(
    path: &Path,
    workspace_id: impl Into<String>,
    skip: &[&str],
) -> Result<Packed, ArchiveError> {
    let root = beneath::open_root(path)?;
    let files = listing::list(root.as_fd(), &mut Without(skip))?;
    let outline = Outline::of(workspace_id.into(), &files)?;
    let header_bytes = usize::try_from(outline.header_bytes()).unwrap_or_default();
    let mut bytes = vec![0; header_bytes];
    bytes.reserve_exact(usize::try_from(outline.payload_bytes()).unwrap_or_default());
    let digests = reading::append(root.as_fd(), &files, &mut bytes)?;
    let (snapshot, header) = outline.fill(digests);
    bytes.splice(..header_bytes, header);
    Ok(Packed { snapshot, bytes })
}
