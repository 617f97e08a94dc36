//! Which day money belongs to.

use crate::scene::{DAY, NOON, Scene, code, name, request, result, usd};
use flightproof_ledger::{Cap, HoldState, LedgerCode, Scope, UtcDay};

#[test]
fn row_22_a_run_over_midnight_counts_in_both_days_while_it_lives() {
    let mut scene = Scene::new();
    scene.started("r", "20");
    let tomorrow = NOON + DAY;
    for run in ["a", "b"] {
        let amount = if run == "a" { "20" } else { "10" };
        scene
            .ledger
            .reserve(&request(run, amount), tomorrow)
            .unwrap();
    }
    let more = request("c", "1");
    assert_eq!(
        code(scene.ledger.reserve(&more, tomorrow)),
        LedgerCode::CapExceeded
    );
    let hold = scene
        .ledger
        .settle_run(&name("r"), usd("18"), result(), tomorrow)
        .unwrap();
    assert_eq!(hold.day, UtcDay::of(NOON));
    let books = scene.ledger.spending(tomorrow).unwrap().estimated;
    assert_eq!((books.spent_on_day, books.spent), (usd("0"), usd("18")));
    assert!(scene.ledger.reserve(&more, tomorrow).is_ok());
}

#[test]
fn row_23_a_day_is_a_utc_day_whatever_the_zone() {
    assert_eq!(UtcDay::of(0), UtcDay(0));
    assert_eq!(UtcDay::of(DAY - 1), UtcDay(0));
    assert_eq!(UtcDay::of(DAY), UtcDay(1));
    let mut scene = Scene::new();
    let start = NOON - DAY / 2;
    for (run, at) in [("a", start), ("b", start + DAY - 1)] {
        let hold = scene.ledger.reserve(&request(run, "20"), at).unwrap();
        assert_eq!(hold.day, UtcDay::of(start));
    }
    let over = scene.ledger.reserve(&request("c", "11"), start + DAY - 1);
    assert_eq!(code(over), LedgerCode::CapExceeded);
    scene.ledger.release_run(&name("a"), NOON).unwrap();
    let next = scene
        .ledger
        .reserve(&request("c", "11"), start + DAY)
        .unwrap();
    assert_eq!(next.day, UtcDay(UtcDay::of(start).0 + 1));
}

#[test]
fn row_24_there_is_one_unit_of_time_and_its_name_says_which() {
    assert_eq!(Scope::ALL.map(Scope::word), ["run", "utc-day", "total"]);
}

#[test]
fn row_25_a_clock_set_back_or_far_forward_reopens_no_budget() {
    let mut scene = Scene::new();
    for run in ["a", "b"] {
        scene.settled(run, "20", "20");
    }
    let eleven = request("c", "11");
    for wrong in [NOON - DAY, NOON - 400 * DAY, 0] {
        assert_eq!(
            code(scene.ledger.reserve(&eleven, wrong)),
            LedgerCode::CapExceeded
        );
    }
    for wrong in [NOON + 2 * DAY, 4_102_444_800, u64::MAX] {
        assert_eq!(
            code(scene.ledger.reserve(&eleven, wrong)),
            LedgerCode::ClockJumped
        );
    }
    let later = NOON + 3 * DAY;
    scene.ledger.confirm_day(UtcDay::of(later), later).unwrap();
    scene.ledger.reserve(&eleven, later).unwrap();
    // An operator who goes back gets no budget twice either.
    scene.ledger.confirm_day(UtcDay::of(NOON), later).unwrap();
    let twelve = request("d", "1");
    assert_eq!(
        code(scene.ledger.reserve(&twelve, NOON)),
        LedgerCode::CapExceeded
    );
}

#[test]
fn row_26_days_of_23_and_25_hours_do_not_exist() {
    // The nights in which European clocks change, 2026.
    for change in [1_774_746_000, 1_792_890_000] {
        let day = UtcDay::of(change);
        assert_eq!(UtcDay::of(change - 3_600), day);
        let midnight = u64::from(day.0) * DAY;
        assert_eq!(UtcDay::of(midnight + DAY - 1), day);
        assert_eq!(UtcDay::of(midnight + DAY), UtcDay(day.0 + 1));
    }
}

#[test]
fn row_27_a_new_day_needs_no_job_to_begin() {
    let mut scene = Scene::new();
    for run in ["a", "b"] {
        scene.settled(run, "20", "20");
    }
    assert_eq!(code(scene.reserve("c", "20")), LedgerCode::CapExceeded);
    assert!(
        scene
            .ledger
            .reserve(&request("c", "20"), NOON + DAY)
            .is_ok()
    );
}

#[test]
fn row_28_a_cap_below_what_is_used_admits_nothing_and_keeps_what_is_held() {
    let mut scene = Scene::new();
    scene.started("r", "20");
    scene
        .ledger
        .state_cap(Scope::Total, Cap::usd(usd("5")), NOON)
        .unwrap();
    let refused = scene.reserve("s", "0.5").unwrap_err();
    assert_eq!(refused.code, LedgerCode::CapExceeded);
    for shown in ["5 USD", "20 USD", "0.5 USD", "estimated"] {
        assert!(refused.detail.contains(shown), "{refused}");
    }
    assert_eq!(scene.state_of("r"), HoldState::Running);
    assert_eq!(scene.used(), (usd("0"), usd("20")));
}
