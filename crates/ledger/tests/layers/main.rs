//! Nothing that was acknowledged is lost, nothing is done twice: shown by killing, failing, cutting
//! the power, flipping bits and stopping at our own seams, each with a broken variant that the same
//! test must catch.
//!
//! A sample of all points runs each time; `FLIGHTPROOF_FULL_SWEEP=1` runs every one, and another
//! number that many of each kind. `strace` has to
//! be there: without it these tests fail, since nothing was measured.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod faults;
mod kill;
mod media;
mod power;
mod trace;
mod victim;

use std::path::Path;
use std::process::{Command, Stdio};
use victim::Mode;

/// Whether every point is tried, or a sample of them.
fn full_sweep() -> bool {
    std::env::var_os("FLIGHTPROOF_FULL_SWEEP").is_some()
}

/// At most `most` of the points, evenly spread, the last one among them. In a full sweep all, or as
/// many as the variable says.
fn sample<T: Clone>(points: &[T], most: usize) -> Vec<T> {
    let most = match std::env::var("FLIGHTPROOF_FULL_SWEEP") {
        Err(_) => most,
        Ok(all) if all == "1" => points.len(),
        Ok(number) => most.max(number.parse().unwrap()),
    };
    if points.len() <= most {
        return points.to_vec();
    }
    (0..most)
        .map(|n| points[n * (points.len() - 1) / (most - 1)].clone())
        .collect()
}

/// A folder in memory: what reaches a disk is modelled, not waited for.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// Runs the victim alone in its process, on its first thread, under strace with these arguments.
fn traced(arguments: &[String], state: &Path, mode: Mode) -> String {
    let output = Command::new("strace")
        .args(arguments)
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "victim::victim",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("FLIGHTPROOF_TEST_STATE", state)
        .env("FLIGHTPROOF_TEST_MODE", mode.word())
        .stderr(Stdio::null())
        .output()
        .expect("strace is needed, or nothing is measured");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
