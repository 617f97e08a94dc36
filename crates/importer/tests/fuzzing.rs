//! The oracles of the fuzz targets, on seeds, forged bytes and damaged ones.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

use flightproof_core::{CommitId, ObjectId};
use flightproof_hostile::git::{Store, World, bundle_attacks};
use flightproof_importer::{Kind, fuzzing};
use std::collections::BTreeMap;
use std::path::Path;

type Objects = BTreeMap<ObjectId, (Kind, Vec<u8>)>;

fn objects(store: &Store) -> Objects {
    let kind = |word: &str| match word {
        "blob" => Kind::Blob,
        "tree" => Kind::Tree,
        _ => Kind::Commit,
    };
    store
        .iter()
        .map(|(id, (word, body))| (ObjectId::from_bytes(*id), (kind(word), body.clone())))
        .collect()
}

/// The usual repository, and the oracle of a bundle for it.
struct Oracle {
    world: World,
    store: Objects,
}

impl Oracle {
    fn new() -> Self {
        let world = World::usual();
        let store = objects(&world.store);
        Self { world, store }
    }

    fn bundle(&mut self, bytes: &[u8]) -> bool {
        let baseline = CommitId::from_bytes(self.world.baseline);
        fuzzing::bundle_raw(bytes, baseline, &mut self.store)
    }

    fn script(&mut self, script: &[u8]) -> bool {
        let scripted = self.world.scripted(script);
        let is_accepted = self.bundle(&scripted.bytes);
        assert!(is_accepted || !scripted.is_honest, "{script:02x?}");
        is_accepted
    }
}

/// A sequence without a pattern, from a seed.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap()
    }

    /// One change of some bytes.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.next() % bytes.len().max(1);
        match self.next() % 4 {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << (self.next() % 8),
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            2 => bytes.insert(at.min(bytes.len()), self.next().to_le_bytes()[0]),
            _ => bytes.truncate(bytes.len() - bytes.len().min(self.next() % 40)),
        }
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let read = |place: &Path| -> Vec<Vec<u8>> {
        let files = std::fs::read_dir(place).into_iter().flatten();
        files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .collect()
    };
    let seeds = read(&fuzz.join("seeds").join(target));
    assert!(seeds.len() >= 5, "{target}: {} seeds", seeds.len());
    // What a campaign once found stays found; there may be none.
    [seeds, read(&fuzz.join("regressions").join(target))].concat()
}

/// Each seed as it is, and damaged in many ways.
fn replay(target: &str, times: usize, mut oracle: impl FnMut(&[u8])) {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    for seed in seeds(target) {
        oracle(&seed);
        for _ in 0..times {
            let mut damaged = seed.clone();
            for _ in 0..=noise.next() % 3 {
                noise.damage(&mut damaged);
            }
            oracle(&damaged);
        }
    }
}

#[test]
fn seeds_and_damaged_seeds_keep_every_oracle() {
    let mut oracle = Oracle::new();
    replay("bundle_raw", 20, |bytes| {
        oracle.bundle(bytes);
    });
    replay("bundle_plan", 40, |bytes| {
        oracle.script(bytes);
    });
    replay("pack_raw", 100, fuzzing::pack_raw);
    replay("delta_raw", 500, fuzzing::delta_raw);
    replay("tree_raw", 500, fuzzing::tree_raw);
    replay("commit_raw", 500, fuzzing::commit_raw);
}

#[test]
fn forged_bundles_keep_the_oracle() {
    let mut oracle = Oracle::new();
    for attack in bundle_attacks() {
        // Long ones are slow here, and say no more.
        let is_short = attack.bytes.len().max(attack.twin.len()) < 20_000;
        let is_usual = attack.baseline == oracle.world.baseline && attack.grants.is_empty();
        if is_short && is_usual {
            assert!(!oracle.bundle(&attack.bytes), "{}", attack.name);
            assert!(oracle.bundle(&attack.twin), "{}: the twin", attack.name);
        }
    }
}

#[test]
fn honest_scripts_are_accepted_and_spoiled_ones_mostly_not() {
    let mut oracle = Oracle::new();
    let mut noise = Noise(7);
    let mut accepted = 0;
    for _ in 0..600 {
        let length = noise.next() % 80;
        let script: Vec<u8> = (0..length).map(|_| noise.next().to_le_bytes()[0]).collect();
        accepted += usize::from(oracle.script(&script));
    }
    // Three in four are honest, and every script that is too short to lie.
    assert!((480..580).contains(&accepted), "{accepted}");
}
