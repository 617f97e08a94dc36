//! One oracle for the archive surface: unit test, property test, seed replay and fuzz target call
//! the same body.

use crate::{paar, paws};

/// Whatever is accepted must be what its own encoder writes: one tree, one spelling.
///
/// # Panics
/// An accepted archive differs from its re-encoding, or two readers of it disagree.
pub fn archive_raw(bytes: &[u8]) {
    if let Ok(manifest) = paws::decode(bytes) {
        let again = match &manifest {
            paws::Manifest::Snapshot(snapshot) => snapshot.header(),
            paws::Manifest::Changeset(changeset) => changeset.header(),
        };
        assert_eq!(
            again.as_deref(),
            Ok(bytes),
            "a second spelling was accepted"
        );
    }
    if let Ok(unpacked) = paws::read(bytes) {
        let files = unpacked
            .files()
            .map(|(entry, content)| (entry.path.clone(), entry.executable, content));
        let again = paws::pack(unpacked.snapshot.workspace_id(), files).map(|packed| packed.bytes);
        assert_eq!(
            again.as_deref(),
            Ok(bytes),
            "a second spelling was accepted"
        );
    }
    if let Ok(unpacked) = paar::read(bytes) {
        let files = unpacked
            .files()
            .map(|(file, content)| (file.path.clone(), file.executable, content));
        let again = paar::pack(*unpacked.artifact.origin(), files).map(|packed| packed.bytes);
        assert_eq!(
            again.as_deref(),
            Ok(bytes),
            "a second spelling was accepted"
        );
    }
}
