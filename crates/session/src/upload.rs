//! Bytes that go into a session, each proven to have arrived.

use crate::crates::Shipment;
use crate::{Session, SessionCode, SessionError};
use flightproof_archive::{ArchiveError, paws};
use flightproof_core::{Digest, RelPath, escape};
use flightproof_frame::protocol::{Exec, Outcome, Place, Reply, Request};

/// Workspace id of the snapshots that carry dependencies and extra files.
pub(crate) const WORKSPACE: &str = "flightproof-session";

/// Uploads a PAWS1 archive whose snapshot id is known; the id computed inside must be the same.
///
/// # Errors
/// `UPLOAD_MISMATCH`, or what the session refuses.
pub fn archive(
    session: &mut dyn Session,
    place: Place,
    archive: &[u8],
    snapshot: Digest,
) -> Result<(), SessionError> {
    put(session, place, (archive.len() as u64, snapshot), archive)
}

fn put(
    session: &mut dyn Session,
    place: Place,
    (bytes, snapshot): (u64, Digest),
    archive: &[u8],
) -> Result<(), SessionError> {
    let request = Request::Put {
        place,
        bytes,
        snapshot,
    };
    match session.call(&request, archive)? {
        Reply::Put {
            snapshot: found, ..
        } if found == snapshot => Ok(()),
        Reply::Put {
            snapshot: found, ..
        } => Err(SessionCode::UploadMismatch
            .refuse(format_args!("got snapshot {found}, expected {snapshot}"))),
        other => Err(unfit(&other)),
    }
}

/// Packs files and uploads them.
///
/// # Errors
/// As [`archive`]; `UPLOAD_MISMATCH` also for files that no archive can hold.
pub fn files<B: AsRef<[u8]>>(
    session: &mut dyn Session,
    place: Place,
    files: impl IntoIterator<Item = (RelPath, bool, B)>,
) -> Result<(), SessionError> {
    let packed = paws::pack(WORKSPACE, files).map_err(unpackable)?;
    archive(session, place, &packed.bytes, packed.snapshot.snapshot_id())
}

/// Uploads the dependencies and has them unpacked into the vendor directory.
///
/// # Errors
/// As [`archive`].
pub fn crates(session: &mut dyn Session, shipment: &Shipment) -> Result<(), SessionError> {
    let manifest = &shipment.manifest;
    let place = Place::Crates;
    put(
        session,
        place,
        (manifest.bytes, manifest.snapshot),
        &shipment.archive,
    )?;
    let request = Request::Unpack {
        crates: manifest.files.clone(),
    };
    match session.call(&request, &[])? {
        Reply::Unpacked { packages } if packages == manifest.files.len() as u64 => Ok(()),
        Reply::Unpacked { packages } => Err(SessionCode::UploadMismatch.refuse(format_args!(
            "{packages} packages unpacked, expected {}",
            manifest.files.len()
        ))),
        other => Err(unfit(&other)),
    }
}

/// Runs one program.
///
/// # Errors
/// What the session refuses.
pub(crate) fn execute(session: &mut dyn Session, exec: Exec) -> Result<Outcome, SessionError> {
    match session.call(&Request::Exec(exec), &[])? {
        Reply::Exec(outcome) => Ok(outcome),
        other => Err(unfit(&other)),
    }
}

/// Copies a build product to where cases can execute it.
///
/// # Errors
/// What the session refuses.
pub(crate) fn promote(
    session: &mut dyn Session,
    from: &str,
    name: &str,
) -> Result<Digest, SessionError> {
    let request = Request::Promote {
        from: from.to_owned(),
        name: name.to_owned(),
    };
    match session.call(&request, &[])? {
        Reply::Promoted { sha256, .. } => Ok(sha256),
        other => Err(unfit(&other)),
    }
}

/// A reply of another kind than the request asks for: a refusal of the runner, or nonsense.
pub(crate) fn unfit(reply: &Reply) -> SessionError {
    match reply {
        Reply::Refused { code, detail } => SessionCode::RunnerRefused.refuse(format_args!(
            "{}: {}",
            escape(code, 60),
            escape(detail, 400)
        )),
        _ => SessionCode::ProtocolBroken.refuse("the reply is of another kind than the request"),
    }
}

pub(crate) fn unpackable(error: ArchiveError) -> SessionError {
    SessionCode::UploadMismatch.refuse(error)
}
