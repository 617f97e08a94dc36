//! Directories a flight works in, registered like sessions, so that those of a killed run are found.

use crate::{FlightsCode, state};
use flightproof_core::{Digest, Refusal};
use flightproof_session::cgroup::session_name;
use flightproof_session::record::Record;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// A directory below the temporary folder, only for us, removed when it is dropped. What a killed
/// run leaves is removed by the next one, which finds it by its record.
pub struct WorkDirectory {
    path: PathBuf,
    /// Its record, and the state directory that it is in.
    record: Option<(Record, PathBuf)>,
}

impl WorkDirectory {
    /// Registers and makes a directory.
    ///
    /// # Errors
    /// `STATE_UNAVAILABLE`, or the session's refusal if it cannot be registered.
    pub fn new(state: &Path) -> Result<Self, Refusal> {
        let (id, path) = place()?;
        let record = Record::new(&id, &[], &path)?;
        record.store(state)?;
        if let Err(refusal) = make(&path) {
            record.forget(state)?;
            return Err(refusal);
        }
        let record = Some((record, state.to_owned()));
        Ok(Self { path, record })
    }

    /// A directory for work that only reads what the state directory holds: where that is not there or
    /// cannot be written to, nothing is registered there.
    ///
    /// # Errors
    /// As [`WorkDirectory::new`].
    pub fn to_read() -> Result<Self, Refusal> {
        if let Some(state) = state::existing()?.filter(|state| !state::is_read_only(state)) {
            return Self::new(&state);
        }
        let (_, path) = place()?;
        make(&path)?;
        Ok(Self { path, record: None })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // What cannot be removed keeps its record, for the next run to find.
        if std::fs::remove_dir_all(&self.path).is_ok()
            && let Some((record, state)) = &self.record
        {
            let _ = record.forget(state);
        }
    }
}

/// A fresh id, and the path that is named for it.
fn place() -> Result<(String, PathBuf), Refusal> {
    let id = Digest::of(&state::entropy()?).to_string()[..32].to_owned();
    let temporary = state::temporary();
    let folder = temporary
        .canonicalize()
        .map_err(|e| failed(&temporary, &e))?;
    let path = folder.join(session_name(&id));
    Ok((id, path))
}

/// What exists already is somebody else's: it is not used, and not removed either.
fn make(path: &Path) -> Result<(), Refusal> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(path);
    made.map_err(|e| failed(path, &e))
}

fn failed(path: &Path, e: &std::io::Error) -> Refusal {
    FlightsCode::StateUnavailable
        .refuse(format!("{}: {e}", path.display()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_session::lease::Unleased;
    use flightproof_session::record;

    #[test]
    fn a_work_directory_is_private_and_leaves_nothing() {
        let state = tempfile::tempdir().unwrap();
        let work = WorkDirectory::new(state.path()).unwrap();
        let path = work.path().to_owned();
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&path).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(record::reap(state.path(), &mut Unleased).unwrap(), []);
        drop(work);
        assert!(!path.exists());
        let left = std::fs::read_dir(state.path().join("sessions")).unwrap();
        assert_eq!(left.count(), 0);
    }
}
