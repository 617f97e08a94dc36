//! Killed, or told of an error, at every call that changes the disk.

use crate::trace::{count, recording};
use crate::victim::{Mode, REQUESTS, Said, hold_against};
use crate::{folder, sample, traced};

/// Calls that change what is on disk. Some of those that open a file make it.
const CALLS: [&str; 7] = [
    "openat",
    "pwrite64",
    "fsync",
    "fdatasync",
    "ftruncate",
    "unlink",
    "rename",
];

#[derive(Debug, Clone)]
struct At {
    call: &'static str,
    nth: usize,
}

/// Every call of a run that nothing happens to.
fn points() -> Vec<At> {
    let folder = folder();
    let (state, log) = (folder.path().join("state"), folder.path().join("log"));
    let said = Said::read(&traced(&recording(&log), &state, Mode::Honest));
    assert_eq!(said.acknowledged.len(), REQUESTS, "an undisturbed run");
    let counts = count(&log);
    let points: Vec<At> = CALLS
        .into_iter()
        .flat_map(|call| {
            let times = counts.get(call).copied().unwrap_or(0);
            (1..=times).map(move |nth| At { call, nth })
        })
        .collect();
    assert!(points.len() > 60, "only {} calls", points.len());
    points
}

/// Runs the victim with one call suppressed, and holds what is left against what it said.
fn strike(at: &At, how: &str, mode: Mode) -> (Result<usize, String>, Said) {
    let folder = folder();
    let state = folder.path().join("state");
    let inject = format!("inject={}:{how}:when={}", at.call, at.nth);
    let log = folder.path().join("log");
    let arguments: Vec<String> = [
        "-f",
        "-e",
        "signal=none",
        "-e",
        &format!("trace={}", at.call),
        "-e",
        &inject,
        "-o",
    ]
    .into_iter()
    .map(ToOwned::to_owned)
    .chain([log.to_str().unwrap().to_owned()])
    .collect();
    let said = Said::read(&traced(&arguments, &state, mode));
    let struck = std::fs::read_to_string(&log).unwrap();
    assert!(
        struck.contains("INJECTED") || struck.contains("= ?"),
        "{at:?} was never reached"
    );
    (hold_against(&state, &said), said)
}

fn sweep(hows: &[&str], modes: &[Mode], most: usize) {
    let points = points();
    let mut reached = [false; REQUESTS + 1];
    let mut tried = 0;
    for (n, at) in sample(&points, most).into_iter().enumerate() {
        let all: Vec<(&str, Mode)> = hows
            .iter()
            .flat_map(|how| modes.iter().map(|mode| (*how, *mode)))
            .collect();
        let chosen = if crate::full_sweep() {
            all
        } else {
            vec![all[n % all.len()]]
        };
        for (how, mode) in chosen {
            let (found, said) = strike(&at, how, mode);
            match found {
                Ok(present) => reached[present] = true,
                Err(why) => panic!("{at:?}, {how}, {mode:?}: {why}; it said {said:?}"),
            }
            tried += 1;
        }
    }
    println!("{tried} strikes, {} points", points.len());
    assert!(reached.iter().filter(|r| **r).count() >= 3, "{reached:?}");
}

#[test]
fn killed_at_any_call_it_keeps_what_it_acknowledged() {
    sweep(&["error=EIO:signal=KILL"], &[Mode::Honest], 24);
}

#[test]
fn told_of_an_error_at_any_call_it_says_uncertain_or_nothing_happened() {
    let errors = ["error=EIO", "error=ENOSPC", "error=EDQUOT"];
    sweep(&errors, &[Mode::Honest, Mode::Orderly], 32);
}

/// The same test must catch a program that acknowledges first.
#[test]
fn an_acknowledgement_before_the_commit_is_caught() {
    let caught = points()
        .into_iter()
        .filter(|at| at.call == "pwrite64" && at.nth > 20)
        .step_by(9)
        .any(|at| strike(&at, "error=EIO:signal=KILL", Mode::Early).0.is_err());
    assert!(caught);
}

/// And one that calls a failed commit a failure.
#[test]
fn a_failed_commit_that_is_called_a_failure_is_caught() {
    let caught = points()
        .into_iter()
        .rev()
        .filter(|at| at.call == "fsync" || at.call == "fdatasync")
        .any(|at| strike(&at, "error=EIO", Mode::Denies).0.is_err());
    assert!(caught);
}
