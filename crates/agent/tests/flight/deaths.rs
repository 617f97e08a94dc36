//! Drivers that die, disks that are full, ledgers that lose their answer.

use crate::process::NativeProcess;
use crate::scene::{Hold, When, scene};
use flightproof_agent::run::Event;
use flightproof_agent::{AgentCode, AgentRefusal, HoldEffect, Launch, Output, Patience, Program};
use flightproof_core::MicroUsd;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

/// Deaths of the driver at every store, each followed by a recovery.
#[test]
fn a_driver_that_dies_anywhere_starts_nothing_twice_and_leaves_no_open_hold() {
    let stores = {
        let mut scene = scene("success");
        scene.ended();
        scene.disk.stores.get()
    };
    assert!(stores >= 8, "{stores}");
    let mut outcomes = BTreeSet::new();
    for store in 1..=stores {
        for when in [When::BeforeStore, When::AfterStore] {
            let mut scene = scene("success");
            scene.disk.die = Some((store, when));
            let died = std::panic::catch_unwind(AssertUnwindSafe(|| scene.fly().map(drop)));
            assert!(died.is_err(), "store {store} was reached");
            // The program may outlive its driver for a moment.
            std::thread::sleep(Duration::from_millis(300));
            let ended = scene.ended();
            assert!(scene.starts() <= 1, "{store} {when:?}");
            assert!(!scene.room.open, "{store} {when:?}");
            if scene.starts() == 1 {
                assert_ne!(ended.1, HoldEffect::Release, "{store} {when:?}");
            }
            match scene.ledger.hold {
                None => assert_eq!(ended.1, HoldEffect::Release),
                Some(Hold::Ended(effect)) => assert_eq!(effect, ended.1),
                open => panic!("{store} {when:?}: {open:?}"),
            }
            outcomes.insert(format!("{:?}", ended.0));
        }
    }
    assert!(
        outcomes.contains("Captured") && outcomes.len() >= 3,
        "{outcomes:?}"
    );
}

#[test]
fn a_store_that_says_no_stops_the_run_and_closes_the_session() {
    for store in 1..=8 {
        let mut scene = scene("success");
        scene.disk.die = Some((store, When::Refused));
        let stopped = scene.fly().map_err(|e| e.code);
        assert_eq!(stopped, Err(AgentCode::HoldUncertain), "{store}");
        assert!(!scene.room.open, "{store}");
        scene.disk.die = None;
        scene.ended();
        assert!(scene.starts() <= 1, "{store}");
    }
}

/// The store that says that the program runs, after planned, reserving, opening and launching.
const RUNNING: usize = 4;

#[test]
fn a_program_whose_start_cannot_be_stored_is_stopped() {
    let mut scene = scene("hang");
    scene.disk.die = Some((RUNNING, When::Refused));
    scene.noted = Some("starts");
    let before = Instant::now();
    let stopped = scene.fly().map_err(|e| e.code);
    assert_eq!(stopped, Err(AgentCode::HoldUncertain));
    assert!(before.elapsed() < scene.patience.wall / 2);
    assert_eq!(scene.starts(), 1);
}

/// Tells that it began when it is over, as a session does.
struct ToldLate(NativeProcess);

impl Program for ToldLate {
    fn run(
        &mut self,
        launch: &Launch,
        patience: Patience,
        tell: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Output, AgentRefusal> {
        let output = self.0.run(launch, patience, &mut |_| true);
        tell(Event::Started);
        output
    }
}

#[test]
fn what_a_program_has_cost_is_stored_where_its_state_cannot_be() {
    let mut scene = scene("success");
    scene.disk.die = Some((RUNNING, When::Refused));
    let mut ledger = std::mem::take(&mut scene.ledger);
    let mut program = ToldLate(scene.process());
    let stopped = scene.fly_program(&mut ledger, &mut program);
    assert_eq!(stopped.map_err(|e| e.code), Err(AgentCode::HoldUncertain));
    let [stored] = scene.disk.accounting.as_slice() else {
        panic!("{:?}", scene.disk.accounting);
    };
    assert!(stored.spend.amount() > MicroUsd::ZERO);
    // It is not settled by that: nobody knows what else there was.
    scene.disk.die = None;
    scene.ledger = ledger;
    assert_eq!(scene.ended().1, HoldEffect::Keep);
}

#[test]
fn a_ledger_that_loses_an_answer_is_asked_again_and_settles_once() {
    for call in 1..=3 {
        let mut scene = scene("success");
        scene.ledger.lose_answer = Some(call);
        let ended = match scene.fly() {
            Ok(report) => (report.ended.outcome, report.ended.hold),
            Err(stuck) => {
                assert_eq!(stuck.code, AgentCode::HoldUncertain, "{call}");
                scene.ended()
            }
        };
        assert_eq!(scene.ledger.hold, Some(Hold::Ended(ended.1)), "{call}");
        assert!(scene.starts() <= 1, "{call}");
    }
}
