//! Times the strict check of a PAWS1 manifest of 100,000 entries on one core.
//!
//! `cargo run --release -p flightproof-archive --example manifest_100k`

use flightproof_archive::paws::{self, Entry, Snapshot};
use flightproof_core::{Digest, RelPath};
use std::time::{Duration, Instant};

const ENTRIES: usize = 100_000;
const ROUNDS: usize = 15;

fn main() {
    let header = manifest();
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| timed(&header)).collect();
    times.sort();
    println!(
        "{ENTRIES} entries, {:.1} MB: best {:.1} ms, median {:.1} ms of {ROUNDS}",
        header.len() as f64 / 1e6,
        times[0].as_secs_f64() * 1e3,
        times[ROUNDS / 2].as_secs_f64() * 1e3,
    );
}

fn timed(header: &[u8]) -> Duration {
    let start = Instant::now();
    let decoded = paws::decode(header);
    let time = start.elapsed();
    assert!(decoded.is_ok(), "{decoded:?}");
    time
}

/// Three levels, a hundred files a directory, as in the benchmark of whole trees.
fn manifest() -> Vec<u8> {
    let entries = (0..ENTRIES).map(|n| {
        let path = format!("d{:02}/s{:02}/file-{n:06}.txt", n / 10_000, n / 100 % 100);
        Entry {
            path: RelPath::new(&path).unwrap_or_else(|e| panic!("{path}: {e}")),
            executable: n % 7 == 0,
            size: (n % 5000) as u64,
            sha256: Digest::of(path.as_bytes()),
        }
    });
    let snapshot = Snapshot::new("workspace", entries.collect());
    snapshot
        .and_then(|snapshot| snapshot.header())
        .unwrap_or_else(|e| panic!("{e}"))
}
