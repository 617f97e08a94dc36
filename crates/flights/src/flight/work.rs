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
    record: Record,
    state: PathBuf,
}

impl WorkDirectory {
    /// Registers and makes a directory.
    ///
    /// # Errors
    /// `STATE_UNAVAILABLE`, or the session's refusal if it cannot be registered.
    pub fn new(state: &Path) -> Result<Self, Refusal> {
        let id = Digest::of(&state::entropy()?).to_string()[..32].to_owned();
        let failed = |path: &Path, e: std::io::Error| {
            Refusal::from(FlightsCode::StateUnavailable.refuse(format!("{}: {e}", path.display())))
        };
        let temporary = state::temporary();
        let folder = temporary
            .canonicalize()
            .map_err(|e| failed(&temporary, e))?;
        let path = folder.join(session_name(&id));
        let record = Record::new(&id, &[], &path)?;
        record.store(state)?;
        // What exists already is somebody else's: it is not used, and not removed either.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        if let Err(e) = made {
            record.forget(state)?;
            return Err(failed(&path, e));
        }
        Ok(Self {
            path,
            record,
            state: state.to_owned(),
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // What cannot be removed keeps its record, for the next run to find.
        if std::fs::remove_dir_all(&self.path).is_ok() {
            let _ = self.record.forget(&self.state);
        }
    }
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
