//! One oracle body per surface: unit tests, property tests, the replay of seeds and the fuzz targets
//! call the same ones. Each panics where a promise of this crate does not hold.

mod writing;

pub use writing::{Place, Scene, Thing, extract_plan, extract_raw};

use crate::code::{ArchiveCode, ArchiveError};
use crate::header::Layout;
use crate::{paar, paws};
use flightproof_core::Code;
use std::io::Read;

/// Whatever is accepted is what its own encoder writes; every reader gives one answer, however the
/// bytes come; the quick reader of manifests takes nothing that the lenient one reads otherwise.
///
/// # Panics
/// One of these does not hold.
pub fn paws_raw(bytes: &[u8]) {
    assert_ne!(
        agree(&paws::LAYOUT, bytes, paws::readers_agree),
        Some(false)
    );
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
    let whole = paws::verify(bytes, &());
    for most in PIECES {
        let pieces = paws::verify(Pieces { bytes, most }, &());
        assert_eq!(pieces, whole, "in pieces of {most}");
    }
    let read = paws::read(bytes);
    match (whole, &read) {
        (Ok(paws::Manifest::Snapshot(snapshot)), Ok(read)) => assert_eq!(snapshot, read.snapshot),
        (_, Err(refused)) if refused.code == ArchiveCode::BadKind => {}
        (Err(streamed), Err(refused)) => same_refusal(&streamed, refused),
        (streamed, _) => panic!("two readers, two answers: {streamed:?} {read:?}"),
    }
    if let Ok(read) = read {
        let files = read.files();
        let files = files.map(|(entry, content)| (entry.path.clone(), entry.executable, content));
        let again = paws::pack(read.snapshot.workspace_id(), files).map(|packed| packed.bytes);
        assert_eq!(
            again.as_deref(),
            Ok(bytes),
            "a second spelling was accepted"
        );
    }
}

/// As [`paws_raw`], of artifacts.
///
/// # Panics
/// One of its promises does not hold.
pub fn paar_raw(bytes: &[u8]) {
    assert_ne!(
        agree(&paar::LAYOUT, bytes, paar::readers_agree),
        Some(false)
    );
    let whole = paar::verify(bytes, &());
    for most in PIECES {
        let pieces = paar::verify(Pieces { bytes, most }, &());
        assert_eq!(pieces, whole, "in pieces of {most}");
    }
    let read = paar::read(bytes);
    match (whole, &read) {
        (Ok(artifact), Ok(read)) => assert_eq!(artifact, read.artifact),
        (Err(streamed), Err(refused)) => same_refusal(&streamed, refused),
        (streamed, _) => panic!("two readers, two answers: {streamed:?} {read:?}"),
    }
    if let Ok(read) = read {
        let files = read.files();
        let files = files.map(|(file, content)| (file.path.clone(), file.executable, content));
        let again = paar::pack(*read.artifact.origin(), files).map(|packed| packed.bytes);
        assert_eq!(
            again.as_deref(),
            Ok(bytes),
            "a second spelling was accepted"
        );
    }
}

/// A whole snapshot or changeset meets the answer that was worked out elsewhere, a code or none.
///
/// # Panics
/// It meets another, or a promise of [`paws_raw`] does not hold.
pub fn paws_plan(bytes: &[u8], expected: Result<(), &str>) {
    assert_eq!(code(paws::verify(bytes, &()).map(drop)), expected);
    paws_raw(bytes);
}

/// A whole artifact meets the answer that was worked out elsewhere, a code or none.
///
/// # Panics
/// It meets another, or a promise of [`paar_raw`] does not hold.
pub fn paar_plan(bytes: &[u8], expected: Result<(), &str>) {
    assert_eq!(code(paar::read(bytes).map(drop)), expected);
    assert_eq!(code(paar::verify(bytes, &()).map(drop)), expected);
    paar_raw(bytes);
}

/// Two readers name one fault. Which of several they name may differ only where the length decides:
/// whoever holds all bytes knows it first, whoever reads on meets everything before the end first.
fn same_refusal(streamed: &ArchiveError, whole: &ArchiveError) {
    let by_length = LENGTH_FAULTS.contains(&whole.code) && BEFORE_THE_END.contains(&streamed.code);
    assert!(
        by_length || streamed.code == whole.code,
        "{streamed:?} {whole:?}"
    );
}

/// What whoever knows the length may name.
const LENGTH_FAULTS: [ArchiveCode; 3] = [
    ArchiveCode::PayloadTruncated,
    ArchiveCode::TrailingBytes,
    ArchiveCode::TotalArchiveMismatch,
];

/// What whoever reads on may name in its place.
const BEFORE_THE_END: [ArchiveCode; 4] = [
    ArchiveCode::FilesDigestMismatch,
    ArchiveCode::BuildIdMismatch,
    ArchiveCode::NonCanonical,
    ArchiveCode::PayloadHashMismatch,
];

/// Most bytes of one read, where a source comes in pieces.
const PIECES: [usize; 3] = [1, 7, 4096];

/// A source that hands out little at a time.
struct Pieces<'a> {
    bytes: &'a [u8],
    most: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let most = to.len().min(self.most);
        self.bytes.read(to.get_mut(..most).unwrap_or_default())
    }
}

/// Whether both readers of manifests agree about the one in these bytes, if there is one that the
/// quick one takes.
fn agree(layout: &Layout, bytes: &[u8], agree: fn(&str) -> Option<bool>) -> Option<bool> {
    let (manifest, _) = layout.split(bytes).ok()?;
    agree(std::str::from_utf8(manifest).ok()?)
}

fn code<T>(result: Result<T, ArchiveError>) -> Result<T, &'static str> {
    result.map_err(|refused| {
        let code = refused.code.explanation().code;
        code.strip_prefix("archive/").unwrap_or(code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_hostile::archive::plan::{Lie, Plan, Shape};

    /// Whether the readers agree about an honest plan of this shape, with and without a space.
    fn agreed(shape: Shape, agree_about: fn(&[u8]) -> Option<bool>) -> [Option<bool>; 2] {
        let plan = Plan {
            shape,
            ..Plan::numbered(3)
        };
        let honest = plan.honest();
        assert!(!honest.entries.is_empty());
        let spaced = Plan {
            lie: Lie::Space,
            ..honest.clone()
        };
        [honest, spaced].map(|plan| agree_about(&plan.bytes()))
    }

    #[test]
    fn the_quick_reader_takes_what_is_canonical_and_nothing_else() {
        for shape in [Shape::Snapshot, Shape::Changeset] {
            let found = agreed(shape, |bytes| {
                agree(&paws::LAYOUT, bytes, paws::readers_agree)
            });
            assert_eq!(found, [Some(true), None], "{shape:?}");
        }
        let found = agreed(Shape::Artifact, |bytes| {
            agree(&paar::LAYOUT, bytes, paar::readers_agree)
        });
        assert_eq!(found, [Some(true), None]);
    }
}
