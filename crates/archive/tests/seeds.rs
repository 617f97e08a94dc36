//! Every seed and every regression of the fuzz targets, played on stable by the same bodies.

#![expect(
    clippy::unwrap_used,
    reason = "a seed that cannot be read is a failed test"
)]

mod scene;

use arbitrary::{Arbitrary, Unstructured};
use flightproof_archive::fuzzing;
use flightproof_hostile::archive::plan::{Plan, Scene, Shape};
use std::path::{Path, PathBuf};

#[test]
fn seeds_of_snapshots_and_changesets_play_as_they_should() {
    replay("paws_raw", fuzzing::paws_raw);
    replay("paws_plan", |bytes| {
        let plan = plan(bytes);
        assert_ne!(plan.shape, Shape::Artifact);
        fuzzing::paws_plan(&plan.bytes(), plan.verdict());
    });
}

#[test]
fn seeds_of_artifacts_play_as_they_should() {
    replay("paar_raw", fuzzing::paar_raw);
    replay("paar_plan", |bytes| {
        let plan = Plan {
            shape: Shape::Artifact,
            ..plan(bytes)
        };
        fuzzing::paar_plan(&plan.bytes(), plan.verdict());
    });
}

#[test]
fn seeds_of_extraction_play_as_they_should() {
    replay("extract_raw", |bytes| {
        scene::in_a_room(|room| fuzzing::extract_raw(room, bytes));
    });
    replay("extract_plan", |bytes| {
        let scene = Scene::arbitrary(&mut Unstructured::new(bytes)).unwrap();
        let archive = scene.plan.bytes();
        let played = scene::played(&scene, &archive);
        scene::in_a_room(|room| fuzzing::extract_plan(room, &played));
    });
}

fn plan(bytes: &[u8]) -> Plan {
    Plan::arbitrary(&mut Unstructured::new(bytes)).unwrap()
}

/// Fewest seeds of a target: less means that a folder is missing.
const LEAST_SEEDS: usize = 10;

fn replay(target: &str, play: impl Fn(&[u8])) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let seeds = files(&fuzz.join("seeds").join(target));
    assert!(
        seeds.len() >= LEAST_SEEDS,
        "{target} has {} seeds",
        seeds.len()
    );
    for file in seeds
        .into_iter()
        .chain(files(&fuzz.join("regressions").join(target)))
    {
        // Shown if the seed fails.
        println!("{}", file.display());
        play(&std::fs::read(file).unwrap());
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}
