//! A candidate's tree with other files over some of its own, for one build.

use crate::upload;
use crate::{Session, SessionCode, SessionError};
use flightproof_archive::paws::Unpacked;
use flightproof_core::{Bytes, RelPath};
use flightproof_frame::protocol::Place;
use std::collections::{BTreeMap, BTreeSet};

/// A tree, and what lies over it in the session.
#[derive(Debug)]
pub(crate) struct Overlaid {
    tree: BTreeMap<RelPath, (bool, Vec<u8>)>,
    laid: BTreeSet<RelPath>,
}

impl Overlaid {
    /// A tree as it was uploaded.
    pub(crate) fn of(unpacked: &Unpacked<'_>) -> Self {
        let files = unpacked.files();
        Self::new(
            files.map(|(entry, bytes)| (entry.path.clone(), (entry.executable, bytes.to_vec()))),
        )
    }

    pub(crate) fn new(files: impl IntoIterator<Item = (RelPath, (bool, Vec<u8>))>) -> Self {
        Self {
            tree: files.into_iter().collect(),
            laid: BTreeSet::new(),
        }
    }

    /// The files of the tree.
    pub(crate) fn paths(&self) -> Vec<&RelPath> {
        self.tree.keys().collect()
    }

    /// Makes the tree be the candidate's with these files over it: what was laid over it before is put
    /// back.
    ///
    /// # Errors
    /// `UPLOAD_MISMATCH` for a file that the tree does not have, and what the session refuses.
    pub(crate) fn lay(
        &mut self,
        session: &mut dyn Session,
        overlay: &BTreeMap<RelPath, Bytes>,
    ) -> Result<(), SessionError> {
        let mut files = BTreeMap::new();
        for path in &self.laid {
            if let Some((executable, bytes)) = self.tree.get(path) {
                files.insert(path.clone(), (*executable, bytes.as_slice()));
            }
        }
        for (path, bytes) in overlay {
            let Some((executable, _)) = self.tree.get(path) else {
                return Err(SessionCode::UploadMismatch.refuse(format_args!(
                    "{path} is laid over a file that the tree does not have"
                )));
            };
            files.insert(path.clone(), (*executable, &bytes[..]));
        }
        if !files.is_empty() {
            let files = files.into_iter().map(|(path, (x, bytes))| (path, x, bytes));
            upload::files(session, Place::Overlay, files)?;
        }
        self.laid = overlay.keys().cloned().collect();
        Ok(())
    }
}
