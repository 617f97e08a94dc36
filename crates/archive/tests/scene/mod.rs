//! From a scene as plain data to one that the oracle plays, and a room to play it in. Tests and
//! fuzz targets share it.

#![allow(dead_code, reason = "not every target plays plans")]
#![allow(
    clippy::unwrap_used,
    reason = "a room that cannot be made is a failed test"
)]

use flightproof_archive::Names;
use flightproof_archive::fuzzing::{Place, Scene, Thing};
use flightproof_hostile::archive::plan;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const THINGS: [Thing; 7] = [
    Thing::File,
    Thing::Directory,
    Thing::LinkOut,
    Thing::LinkToFile,
    Thing::LinkIn,
    Thing::LinkNowhere,
    Thing::Pipe,
];

/// The scene over `archive`, which is the plan's bytes.
pub(crate) fn played<'a>(scene: &plan::Scene, archive: &'a [u8]) -> Scene<'a> {
    let prepared = scene.prepared.iter().map(|thing| {
        let kind = THINGS[usize::from(thing.kind) % THINGS.len()];
        (thing.path.clone(), kind)
    });
    Scene {
        archive,
        names: match scene.names {
            plan::Names::Strict => Names::Strict,
            plan::Names::Captured => Names::Captured,
        },
        place: match (scene.is_overlay, scene.plan.shape) {
            (true, _) => Place::Overlay,
            (false, plan::Shape::Artifact) => Place::Artifact,
            (false, _) => Place::Snapshot,
        },
        prepared: prepared.collect(),
        expected: Some(scene.plan.tree_verdict(scene.names)),
    }
}

/// An empty directory for one scene, in memory where there is such a place. It must be empty
/// afterwards, and is then gone.
pub(crate) fn in_a_room(play: impl FnOnce(&Path)) {
    static PLAYED: AtomicU64 = AtomicU64::new(0);
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    let number = PLAYED.fetch_add(1, Ordering::Relaxed);
    let room = place.join(format!("flightproof-room-{}-{number}", std::process::id()));
    std::fs::create_dir(&room).unwrap();
    play(&room);
    std::fs::remove_dir(&room).unwrap();
}
