//! A recording as one file: a PAWS1 snapshot of its lines and of the blobs they refer to. The same
//! recording is always the same file, and nothing in it is compressed, so nothing unfolds.

use super::recording::{MAX_TRANSCRIPT, Shelf, Transcript};
use crate::{FlightsCode, regular, state};
use flightproof_archive::paws;
use flightproof_certifier::key::PublicKey;
use flightproof_core::{Digest, Refusal, RelPath, escape};
use rustix::fs::{CWD, RenameFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The lines' name, in a directory and in a file.
const LINES: &str = "transcript.jsonl";

/// The file that a recording travels as.
///
/// # Errors
/// `TRANSCRIPT_BROKEN` for a blob that is missing or has other bytes; the archive's refusals for a
/// recording that is too large for one file.
pub fn pack(transcript: &Transcript) -> Result<Vec<u8>, Refusal> {
    let mut files: Vec<(RelPath, bool, Vec<u8>)> = Vec::new();
    for (digest, len) in transcript.references()? {
        let bytes = transcript
            .blob(&digest, len)
            .map_err(|what| transcript.broken(0, &what))?;
        files.push((path(&format!("blobs/{digest}"))?, false, bytes));
    }
    files.push((path(LINES)?, false, transcript.lines().to_vec()));
    Ok(paws::pack(&transcript.header.flight, files)?.bytes)
}

/// Reads and verifies such a file: the archive, every blob against its name, the lines against the
/// recorder's key, and that it holds what the lines refer to and nothing else.
///
/// # Errors
/// The archive's refusals, `TRANSCRIPT_BROKEN`, `TRANSCRIPT_TOO_NEW`.
pub(super) fn read(file: &Path, recorders: &[PublicKey]) -> Result<Transcript, Refusal> {
    let place = file.display();
    let bytes = regular::read_arrival(file, paws::MAX_ARCHIVE_BYTES)
        .map_err(|e| FlightsCode::FileUnreadable.refuse(format!("{place}: {e}")))?;
    let unpacked = paws::read(&bytes)?;
    let mut blobs = BTreeMap::new();
    let mut lines = None;
    for (entry, content) in unpacked.files() {
        let name = entry.path.as_str();
        match name.strip_prefix("blobs/").map(str::parse::<Digest>) {
            Some(Ok(digest)) if digest == Digest::of(content) && !entry.executable => {
                blobs.insert(digest, content.to_vec());
            }
            None if name == LINES && content.len() as u64 <= MAX_TRANSCRIPT => {
                lines = Some(content.to_vec());
            }
            _ => return Err(stowaway(&place, name)),
        }
    }
    let Some(lines) = lines else {
        return Err(broken(&place, "no transcript.jsonl in it"));
    };
    let workspace = unpacked.snapshot.workspace_id().to_owned();
    let held: Vec<Digest> = blobs.keys().copied().collect();
    let transcript =
        Transcript::verify(lines, Shelf::Memory(blobs), &place.to_string(), recorders)?;
    if workspace != transcript.header.flight {
        return Err(stowaway(&place, &format!("the name {workspace}")));
    }
    let wanted = transcript.references()?;
    if let Some(extra) = held.iter().find(|digest| !wanted.contains_key(digest)) {
        return Err(stowaway(&place, &format!("blobs/{extra}")));
    }
    for (digest, len) in &wanted {
        transcript
            .blob(digest, *len)
            .map_err(|what| broken(&place, &what))?;
    }
    Ok(transcript)
}

/// Writes a verified recording as a directory where none is: all of it or nothing.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`, also where something has that name.
pub fn lay_out(transcript: &Transcript, directory: &Path) -> Result<(), Refusal> {
    let unwritable = |e: std::io::Error| {
        let detail = format!("{}: {e}", directory.display());
        Refusal::from(FlightsCode::OutputUnwritable.refuse(detail))
    };
    if directory.symlink_metadata().is_ok() {
        return Err(unwritable(std::io::ErrorKind::AlreadyExists.into()));
    }
    // A name of its own: what a killed import left is in nobody's way.
    let unique = Digest::of(&state::entropy()?).to_string();
    let mut staging = directory.as_os_str().to_owned();
    staging.push(format!(".{}.new", &unique[..16]));
    let staging = PathBuf::from(staging);
    std::fs::create_dir(&staging).map_err(unwritable)?;
    let written = write_all(transcript, &staging).and_then(|()| {
        rustix::fs::renameat_with(CWD, &staging, CWD, directory, RenameFlags::NOREPLACE)
            .map_err(|e| unwritable(e.into()))
    });
    if written.is_err() {
        let _ = std::fs::remove_dir_all(&staging);
    }
    written
}

fn write_all(transcript: &Transcript, staging: &Path) -> Result<(), Refusal> {
    let unwritable = |e: std::io::Error| {
        let detail = format!("{}: {e}", staging.display());
        Refusal::from(FlightsCode::OutputUnwritable.refuse(detail))
    };
    let blobs = staging.join("blobs");
    std::fs::create_dir(&blobs).map_err(unwritable)?;
    for (digest, len) in transcript.references()? {
        let bytes = transcript
            .blob(&digest, len)
            .map_err(|what| transcript.broken(0, &what))?;
        std::fs::write(blobs.join(digest.to_string()), bytes).map_err(unwritable)?;
    }
    std::fs::write(staging.join(LINES), transcript.lines()).map_err(unwritable)
}

fn path(text: &str) -> Result<RelPath, Refusal> {
    RelPath::new(text).map_err(|e| {
        FlightsCode::TranscriptWrite
            .refuse(format!("{}: {e}", escape(text, 80)))
            .into()
    })
}

fn stowaway(place: &dyn std::fmt::Display, name: &str) -> Refusal {
    broken(place, &format!("{} is no part of it", escape(name, 120)))
}

fn broken(place: &dyn std::fmt::Display, what: &str) -> Refusal {
    FlightsCode::TranscriptBroken
        .refuse(format!("{place}: {what}"))
        .into()
}
