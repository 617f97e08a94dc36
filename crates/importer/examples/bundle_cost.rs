//! How long the check of each forged bundle takes, and of one that fills every limit. Prints the
//! slowest ten, in microseconds of processor time: the median of eleven runs each. With a number, that
//! many runs of the full one only, for a profiler.
//!
//! `cargo run --release -p flightproof-importer --example bundle_cost`
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot be set up must fail"
)]

use flightproof_core::{CommitId, ObjectId};
use flightproof_hostile::git::{Store, World, bundle_attacks};
use flightproof_importer::{Grants, Kind, Rules, check};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;

type Objects = BTreeMap<ObjectId, (Kind, Vec<u8>)>;

fn main() {
    let world = World::usual();
    let mut store = objects(&world.store);
    let fullest = world.fullest();
    if let Some(runs) = std::env::args().nth(1) {
        for _ in 0..runs.parse().unwrap() {
            median(&fullest, world.baseline, &mut store);
        }
        return;
    }
    println!(
        "{:>8} at the limits: {} bytes",
        median(&fullest, world.baseline, &mut store),
        fullest.len()
    );
    let mut all: Vec<(i64, String)> = Vec::new();
    for attack in bundle_attacks() {
        let mut store = objects(&attack.store);
        all.push((
            median(&attack.bytes, attack.baseline, &mut store),
            attack.name.clone(),
        ));
        all.push((
            median(&attack.twin, attack.baseline, &mut store),
            format!("{}, the twin", attack.name),
        ));
    }
    all.sort();
    println!("{:>8} median of all {}", all[all.len() / 2].0, all.len());
    for (micros, name) in all.iter().rev().take(10) {
        println!("{micros:>8} {name}");
    }
}

fn median(bytes: &[u8], baseline: [u8; 20], store: &mut Objects) -> i64 {
    let rules = Rules {
        grants: &Grants::default(),
        identity: None,
        now: 1_700_000_100,
    };
    let mut times: Vec<i64> = (0..11)
        .map(|_| {
            let start = processor_time();
            let answer = check(bytes, CommitId::from_bytes(baseline), store, &rules);
            let time = processor_time() - start;
            drop(answer);
            time
        })
        .collect();
    times.sort_unstable();
    *times.get(5).unwrap()
}

/// Microseconds this thread has had a processor: what others do meanwhile does not count.
fn processor_time() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

fn objects(store: &Store) -> Objects {
    store
        .iter()
        .map(|(id, (word, body))| {
            let kind = match *word {
                "blob" => Kind::Blob,
                "tree" => Kind::Tree,
                _ => Kind::Commit,
            };
            (ObjectId::from_bytes(*id), (kind, body.clone()))
        })
        .collect()
}
