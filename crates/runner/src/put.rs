//! Uploads: snapshots that the host streams in.

use crate::code::{RunnerCode, RunnerError, inside};
use flightproof_archive::{Extracted, Names, extract, overlay};
use flightproof_core::Digest;
use flightproof_frame::protocol::Place;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Where all places of uploads lie.
const WORK: &str = "/flight";

/// Extracts a snapshot of `bytes` bytes to its place. Owned by the runner: nobody else may write it.
pub(crate) fn put(
    place: Place,
    bytes: u64,
    snapshot: Digest,
    upload: impl Read,
) -> Result<Extracted, RunnerError> {
    put_below(Path::new(WORK), place, bytes, snapshot, upload)
}

fn put_below(
    work: &Path,
    place: Place,
    bytes: u64,
    snapshot: Digest,
    upload: impl Read,
) -> Result<Extracted, RunnerError> {
    let (name, names) = match place {
        Place::Source | Place::Overlay => ("src", Names::Captured),
        Place::Crates => ("crates", Names::Strict),
        Place::Extra => ("extra", Names::Strict),
    };
    let into = work.join(name);
    let there = fs::symlink_metadata(&into).is_ok();
    let extracted = match (place, there) {
        (Place::Source | Place::Crates, true) => return Err(RunnerCode::PlaceOccupied.refuse(name)),
        (Place::Overlay, false) => return Err(RunnerCode::PlaceEmpty.refuse(name)),
        (Place::Extra, false) => {
            fs::create_dir(&into).map_err(inside(name))?;
            overlay(upload, bytes, snapshot, &into, names)
        }
        (Place::Source | Place::Crates, false) => extract(upload, bytes, snapshot, &into, names),
        (Place::Overlay | Place::Extra, true) => overlay(upload, bytes, snapshot, &into, names),
    };
    extracted.map_err(|refusal| RunnerCode::UploadRefused.refuse(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_archive::pack_directory;

    struct Work(tempfile::TempDir);

    impl Work {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn put(&self, place: Place, files: &[(&str, &str)]) -> Result<Extracted, RunnerError> {
            let (id, bytes) = packed(files);
            put_below(self.0.path(), place, bytes.len() as u64, id, &bytes[..])
        }

        fn read(&self, path: &str) -> String {
            fs::read_to_string(self.0.path().join(path)).unwrap()
        }
    }

    fn packed(files: &[(&str, &str)]) -> (Digest, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(dir.path().join(name), content).unwrap();
        }
        let packed = pack_directory(dir.path(), "test", &[]).unwrap();
        (packed.snapshot.snapshot_id(), packed.bytes)
    }

    #[test]
    fn places_are_those_of_the_layout() {
        use flightproof_frame::protocol::layout;
        for (name, place) in [
            ("src", layout::SOURCE),
            ("crates", layout::CRATES),
            ("extra", layout::EXTRA),
        ] {
            assert_eq!(Path::new(WORK).join(name), Path::new(place));
        }
    }

    #[test]
    fn a_tree_and_its_overlay_arrive() {
        let work = Work::new();
        work.put(Place::Source, &[("a", "1"), ("b", "2")]).unwrap();
        work.put(Place::Overlay, &[("b", "3")]).unwrap();
        assert_eq!(
            (work.read("src/a"), work.read("src/b")),
            ("1".into(), "3".into())
        );
    }

    #[test]
    fn a_place_is_filled_once_and_an_overlay_needs_a_tree() {
        let work = Work::new();
        let early = work.put(Place::Overlay, &[("a", "1")]).unwrap_err();
        assert_eq!(early.code, RunnerCode::PlaceEmpty);
        for place in [Place::Source, Place::Crates] {
            work.put(place, &[("a", "1")]).unwrap();
            assert_eq!(
                work.put(place, &[("a", "1")]).unwrap_err().code,
                RunnerCode::PlaceOccupied
            );
        }
    }

    #[test]
    fn extra_files_are_replaced() {
        let work = Work::new();
        work.put(Place::Extra, &[("guard", "1")]).unwrap();
        work.put(Place::Extra, &[("guard", "2")]).unwrap();
        assert_eq!(work.read("extra/guard"), "2");
    }

    #[test]
    fn another_tree_than_announced_is_refused_with_the_archives_own_code() {
        let work = Work::new();
        let (_id, bytes) = packed(&[("a", "1")]);
        let other = Digest::of(b"other");
        let refusal = put_below(
            work.0.path(),
            Place::Source,
            bytes.len() as u64,
            other,
            &bytes[..],
        )
        .unwrap_err();
        assert_eq!(refusal.code, RunnerCode::UploadRefused);
        assert!(refusal.detail.starts_with("archive/"), "{}", refusal.detail);
        assert!(!work.0.path().join("src").exists());
    }
}
