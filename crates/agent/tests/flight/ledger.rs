//! The same runs with the real ledger on disk.

use crate::scene::{scene, settle};
use flightproof_agent::run::Outcome;
use flightproof_agent::{AgentCode, Amount, HoldEffect, HoldError, Holds, LedgerHolds, RunKey};
use flightproof_core::{Digest, MicroUsd};
use flightproof_ledger::{Cap, HoldState, Ledger, Name, Scope};

/// 1 January 2027.
const NOW: u64 = 1_798_761_600;

fn micros(amount: u64) -> MicroUsd {
    MicroUsd::from_micros(amount).unwrap()
}

/// A ledger with a cap of so many dollars for everything.
fn ledger(folder: &std::path::Path, dollars: u64) -> Ledger {
    let mut ledger = Ledger::open(&folder.join("ledger")).unwrap();
    for scope in [Scope::Run, Scope::UtcDay, Scope::Total] {
        let cap = Cap::usd(micros(dollars * 1_000_000));
        ledger.state_cap(scope, cap, NOW).unwrap();
    }
    ledger
}

fn holds(ledger: &mut Ledger) -> LedgerHolds<'_> {
    LedgerHolds {
        ledger,
        parent: None,
        now: NOW,
    }
}

fn state(ledger: &Ledger, run: &RunKey) -> Option<HoldState> {
    let name: Name = run.as_str().parse().unwrap();
    ledger.hold(&name).unwrap().map(|hold| hold.state)
}

#[test]
fn runs_are_booked_in_the_ledger_as_they_ended() {
    for (scenario, expected) in [
        ("success", HoldState::Settled(micros(533_159))),
        ("overspend-far", HoldState::Settled(micros(99_000_000))),
        ("budget", HoldState::Settled(micros(1_020_000))),
        ("truncated", HoldState::Unknown),
        ("die", HoldState::Unknown),
    ] {
        let mut scene = scene(scenario);
        let mut ledger = ledger(scene.folder.path(), 100);
        scene.fly_with(&mut holds(&mut ledger)).unwrap();
        assert_eq!(state(&ledger, &scene.run), Some(expected), "{scenario}");
        // Replayed, also after the ledger was opened anew, nothing changes and nothing runs.
        let mut ledger = ledger.reopen().unwrap();
        scene.fly_with(&mut holds(&mut ledger)).unwrap();
        assert_eq!(state(&ledger, &scene.run), Some(expected), "{scenario}");
        assert_eq!(scene.starts(), 1, "{scenario}");
    }
}

#[test]
fn a_cap_that_would_be_passed_starts_nothing() {
    let mut scene = scene("success");
    let mut ledger = ledger(scene.folder.path(), 14);
    let report = scene.fly_with(&mut holds(&mut ledger)).unwrap();
    let refused = Outcome::Failed(AgentCode::HoldRefused);
    assert_eq!(report.ended.outcome, refused, "{:?}", report.refused);
    assert_eq!((scene.starts(), state(&ledger, &scene.run)), (0, None));
}

#[test]
fn a_program_that_never_started_gives_its_hold_back() {
    let mut scene = scene("success");
    let mut ledger = ledger(scene.folder.path(), 100);
    std::fs::write(scene.binary.path(), "#!/bin/sh\necho other\n").unwrap();
    let report = scene.fly_with(&mut holds(&mut ledger)).unwrap();
    assert_eq!(report.ended.hold, settle(0));
    assert_eq!(state(&ledger, &scene.run), Some(HoldState::Released));
}

#[test]
fn a_hold_that_was_never_begun_is_given_back_and_a_begun_one_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = ledger(folder.path(), 100);
    let amount = Amount {
        budget: micros(1_000_000),
        held: micros(15_000_000),
    };
    for (begun, left) in [(false, HoldState::Released), (true, HoldState::Unknown)] {
        let run = RunKey::from_entropy([u8::from(begun); 16]);
        let mut holds = holds(&mut ledger);
        holds.reserve(&run, Digest::of(b"request"), amount).unwrap();
        if begun {
            holds.begin(&run).unwrap();
        }
        // Twice, as a recovery that is killed and repeated does it.
        for _ in 0..2 {
            holds.keep(&run).unwrap();
        }
        assert_eq!(state(&ledger, &run), Some(left), "begun: {begun}");
    }
}

#[test]
fn the_ledger_keeps_the_promises_of_holds() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = ledger(folder.path(), 100);
    let mut holds = holds(&mut ledger);
    let request = Digest::of(b"request");
    let result = Some(Digest::of(b"result"));
    let amount = Amount {
        budget: micros(1_000_000),
        held: micros(15_000_000),
    };
    let key = |n: u8| RunKey::from_entropy([n; 16]);
    let run = key(1);
    assert_eq!(holds.release(&run), Ok(()), "nothing to release");
    for _ in 0..2 {
        assert_eq!(holds.reserve(&run, request, amount), Ok(()));
    }
    let other = holds.reserve(&run, Digest::of(b"other"), amount);
    assert!(matches!(other, Err(HoldError::Conflict(_))), "{other:?}");
    assert_eq!(holds.begin(&run), Ok(()));
    let released = holds.release(&run);
    assert!(
        matches!(released, Err(HoldError::Refused(_))),
        "{released:?}"
    );
    for _ in 0..2 {
        assert_eq!(holds.settle(&run, micros(7), result), Ok(()));
    }
    let otherwise = holds.settle(&run, micros(8), result);
    assert!(
        matches!(otherwise, Err(HoldError::Conflict(_))),
        "{otherwise:?}"
    );

    let run = key(2);
    assert_eq!(holds.reserve(&run, request, amount), Ok(()));
    assert_eq!(holds.begin(&run), Ok(()));
    for _ in 0..2 {
        assert_eq!(holds.keep(&run), Ok(()));
    }
    let late = holds.settle(&run, micros(7), result);
    assert!(matches!(late, Err(HoldError::Refused(_))), "{late:?}");

    let run = key(3);
    assert_eq!(holds.reserve(&run, request, amount), Ok(()));
    for _ in 0..2 {
        assert_eq!(holds.settle(&run, MicroUsd::ZERO, None), Ok(()));
    }
    assert_eq!(state(&ledger, &run), Some(HoldState::Released));
    assert_eq!(HoldEffect::Keep.to_string(), "the hold is kept");
}
