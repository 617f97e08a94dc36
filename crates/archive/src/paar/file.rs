//! Artifacts of any size the format allows: what is held in memory grows with the manifest and not
//! with the payload.

use super::{Artifact, LAYOUT, LIMITS, Origin, check_size, decode_manifest, manifest};
use crate::beneath::{self, io};
use crate::choice::Choice;
use crate::code::ArchiveError;
use crate::draft::Draft;
use crate::extract::Extraction;
use crate::format::{Format, Member};
use crate::header::Layout;
use crate::listing::{self, Listed};
use crate::progress::Progress;
use crate::{payload, reading};
use flightproof_core::Digest;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Packs the files of a directory that `choice` admits into the file `output`, which is replaced in
/// one step if it exists. As [`crate::paws::pack_file`] in everything else.
///
/// # Errors
/// What [`Artifact::new`] refuses; whatever is neither file nor directory; the choice's own; the
/// system's.
pub fn pack_file(
    dir: &Path,
    origin: Origin,
    choice: &mut dyn Choice,
    output: &Path,
    progress: &dyn Progress,
) -> Result<Artifact, ArchiveError> {
    let root = beneath::open_root(dir)?;
    let files = listing::list_within(root.as_fd(), &LIMITS, choice)?;
    let draft = Draft::beside(output)?;
    let artifact = write(root.as_fd(), origin, files, draft.file(), choice, progress)?;
    draft.publish()?;
    Ok(artifact)
}

/// As [`pack_file`], into an open file, which must be empty and is half written after a refusal.
///
/// # Errors
/// As [`pack_file`].
pub fn pack_to(
    dir: &Path,
    origin: Origin,
    choice: &mut dyn Choice,
    out: &File,
    progress: &dyn Progress,
) -> Result<Artifact, ArchiveError> {
    let root = beneath::open_root(dir)?;
    let files = listing::list_within(root.as_fd(), &LIMITS, choice)?;
    write(root.as_fd(), origin, files, out, choice, progress)
}

/// Reads an artifact up to the end of the reader and verifies every byte of it.
///
/// # Errors
/// What [`super::decode`] refuses, and a payload that is short, long, or does not have the hashes
/// of the manifest.
pub fn verify(reader: impl Read, progress: &dyn Progress) -> Result<Artifact, ArchiveError> {
    payload::verify::<Whole>(reader, None, progress)
}

/// As [`verify`], from the beginning of a file by two threads, wherever its cursor stands. What is
/// no regular file is read as it comes.
///
/// # Errors
/// As [`verify`].
pub fn verify_file(file: &File, progress: &dyn Progress) -> Result<Artifact, ArchiveError> {
    payload::verify_file::<Whole>(file, progress)
}

/// Reads an artifact up to the end of the reader and writes its files.
///
/// # Errors
/// As [`verify`] and [`Extraction`].
pub fn extract(reader: impl Read, how: &Extraction<'_>) -> Result<Artifact, ArchiveError> {
    how.stream::<Whole>(reader, None)
}

/// As [`extract`], from the beginning of a file by two threads, wherever its cursor stands. What is
/// no regular file is read as it comes.
///
/// # Errors
/// As [`extract`].
pub fn extract_file(file: &File, how: &Extraction<'_>) -> Result<Artifact, ArchiveError> {
    how.file::<Whole>(file)
}

/// The archive of these files: the payload to its place while it is hashed, then what goes before.
fn write(
    root: BorrowedFd<'_>,
    origin: Origin,
    mut files: Vec<Listed>,
    out: &File,
    choice: &dyn Choice,
    progress: &dyn Progress,
) -> Result<Artifact, ArchiveError> {
    let failed = |e| io("write the archive", e);
    let (mut artifact, digests) = reading::until_whole(&mut files, |files| {
        // Its hashes are not known yet. They have one length, so the length of all else is.
        let artifact = outline(origin, files)?;
        let header_bytes = artifact.header()?.len() as u64;
        let total = header_bytes + artifact.payload_bytes();
        check_size(total)?;
        out.set_len(total).map_err(failed)?;
        let placed = reading::one_after_the_other(files, header_bytes);
        let read = reading::copy(root, &placed, out, choice, progress)?;
        Ok((artifact, read))
    })?;
    for (file, digest) in artifact.files.iter_mut().zip(digests) {
        file.sha256 = digest;
    }
    let artifact = Artifact::checked(origin, artifact.files);
    out.write_all_at(&artifact.header()?, 0).map_err(failed)?;
    Ok(artifact)
}

fn outline(origin: Origin, files: &[Listed]) -> Result<Artifact, ArchiveError> {
    manifest::check_origin(&origin)?;
    manifest::check_count(files.len())?;
    let files = files.iter().map(|listed| super::File {
        path: listed.path.clone().into(),
        executable: listed.executable,
        size: listed.identity.size,
        sha256: Digest::from_bytes([0; 32]),
    });
    let artifact = Artifact::checked(origin, files.collect());
    manifest::check_files(&artifact.files)?;
    Ok(artifact)
}

pub(crate) struct Whole;

impl Format for Whole {
    type Manifest = Artifact;
    type Member = super::File;
    const LAYOUT: Layout = LAYOUT;

    fn decode(manifest: &[u8], total: Option<u64>) -> Result<Artifact, ArchiveError> {
        decode_manifest(manifest, total)
    }

    fn members(artifact: &Artifact) -> Vec<&super::File> {
        artifact.files().iter().collect()
    }

    fn id(artifact: &Artifact) -> Digest {
        artifact.build_id()
    }
}

impl Member for super::File {
    fn path(&self) -> &str {
        self.path.as_str()
    }

    fn executable(&self) -> bool {
        self.executable
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn sha256(&self) -> Digest {
        self.sha256
    }
}
