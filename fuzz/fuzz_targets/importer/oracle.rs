//! The repository that forged bundles are meant for, and the oracle of a bundle for it.

use flightproof_core::{CommitId, ObjectId};
use flightproof_hostile::git::World;
use flightproof_importer::{Kind, fuzzing};
use std::cell::RefCell;
use std::collections::BTreeMap;

type Objects = BTreeMap<ObjectId, (Kind, Vec<u8>)>;

thread_local! {
    static USUAL: RefCell<(World, Objects)> = RefCell::new(usual());
}

/// Whether the bundle is accepted.
pub fn bundle(bytes: &[u8]) -> bool {
    USUAL.with_borrow_mut(|(world, store)| {
        fuzzing::bundle_raw(bytes, CommitId::from_bytes(world.baseline), store)
    })
}

/// What was made without a lie must be accepted.
#[allow(dead_code, reason = "one of the two targets makes its bundles")]
pub fn script(script: &[u8]) {
    let scripted = USUAL.with_borrow(|(world, _)| world.scripted(script));
    assert!(
        bundle(&scripted.bytes) || !scripted.is_honest,
        "an honest bundle was refused"
    );
}

fn usual() -> (World, Objects) {
    let world = World::usual();
    let objects = world.store.iter().map(|(id, (word, body))| {
        let kind = match *word {
            "blob" => Kind::Blob,
            "tree" => Kind::Tree,
            _ => Kind::Commit,
        };
        (ObjectId::from_bytes(*id), (kind, body.clone()))
    });
    let objects = objects.collect();
    (world, objects)
}
