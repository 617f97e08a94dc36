use flightproof_archive::{ArchiveError, paws};
use flightproof_evidence::{Change, FileState};

/// Changes as the archive of a changeset between what they replace and what they bring.
pub(crate) fn pack<'a>(
    changes: impl Iterator<Item = &'a Change> + Clone,
) -> Result<(paws::Changeset, Vec<u8>), ArchiveError> {
    let side = |of: fn(&Change) -> Option<&FileState>| {
        let files = changes.clone().filter_map(move |change| {
            let file = of(change)?;
            let content: &[u8] = &file.content;
            Some((change.path.clone(), file.executable, content))
        });
        paws::pack("import", files)
    };
    let old = side(|change| change.old.as_ref())?;
    let new = side(|change| change.new.as_ref())?;
    paws::pack_changeset(&old.snapshot, &paws::read(&new.bytes)?)
}
