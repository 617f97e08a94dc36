//! How much is held, and what an amount is.

use crate::scene::{NOON, Scene, code, name, request, result, usd};
use flightproof_core::MicroUsd;
use flightproof_ledger::hold::LEAST_MARGIN;
use flightproof_ledger::{Cap, HoldSize, Ledger, LedgerCode, Overrun, Reserve, Scope};

#[test]
fn row_10_sums_are_added_up_from_whole_rows_each_time() {
    let mut scene = Scene::new();
    scene.settled("r", "10", "3");
    let mut scene = scene.reopened().reopened();
    assert_eq!(scene.used(), (usd("3"), usd("0")));
    let other = rusqlite::Connection::open(scene.state.join(Ledger::FILE)).unwrap();
    other.execute_batch("UPDATE holds SET actual = 1").unwrap();
    assert_eq!(code(scene.reserve("s", "1")), LedgerCode::LedgerDamaged);
    assert_eq!(code(scene.ledger.spending(NOON)), LedgerCode::LedgerDamaged);
}

#[test]
fn row_11_a_hold_is_never_cut_down_to_what_is_left() {
    let mut scene = Scene::new();
    for run in ["a", "b"] {
        scene.reserve(run, "20").unwrap();
    }
    assert_eq!(code(scene.reserve("c", "15")), LedgerCode::CapExceeded);
    assert_eq!(scene.ledger.hold(&name("c")).unwrap(), None);
    assert_eq!(scene.reserve("c", "10").unwrap().size.held, usd("10"));
}

#[test]
fn row_12_a_hold_is_the_stated_limit_and_margin_not_the_whole_budget() {
    let mut scene = Scene::new();
    let size = HoldSize::for_limit(usd("2"), usd("1.5"), 1).unwrap();
    assert_eq!((size.limit, size.held), (usd("2"), usd("3.5")));
    let hold = scene
        .ledger
        .reserve(
            &Reserve {
                size,
                ..request("r", "1")
            },
            NOON,
        )
        .unwrap();
    assert_eq!(hold.size, size);
    assert!(
        scene
            .ledger
            .spending(NOON)
            .unwrap()
            .to_string()
            .contains("held 3.5 USD")
    );
    assert_eq!(code(scene.reserve("s", "21")), LedgerCode::CapExceeded);
}

#[test]
fn row_13_the_margin_covers_at_least_one_costly_response() {
    let tiny = HoldSize::for_limit(usd("0.001"), usd("0"), 1).unwrap();
    assert_eq!(tiny.held, usd("1.001"));
    // What was really spent under that limit.
    assert!(tiny.held >= usd("0.0291"));
    assert!(HoldSize::for_limit(usd("3"), usd("0"), 1).unwrap().held >= usd("3.02"));
    assert_eq!(LEAST_MARGIN, usd("1"));
}

#[test]
fn row_18_what_is_no_plain_amount_never_becomes_one() {
    for bad in [
        "-1", "-0.0", "NaN", "Infinity", "1e308", "1e309", "\"0.5\"", "null", "5e-324",
    ] {
        assert!(bad.parse::<MicroUsd>().is_err(), "{bad}");
    }
    assert_eq!(MicroUsd::ceil_of_json("5e-324").unwrap().micros(), 1);
    for bad in [
        "-1", "-0.0", "NaN", "Infinity", "1e308", "1e309", "\"0.5\"", "null",
    ] {
        assert!(MicroUsd::ceil_of_json(bad).is_err(), "{bad}");
    }
}

#[test]
fn row_19_a_thousand_tenths_are_exactly_a_hundred() {
    let mut scene = Scene::new();
    scene
        .ledger
        .state_cap(Scope::UtcDay, Cap::usd(usd("100")), NOON)
        .unwrap();
    let (first, second) = ("0.1", "0.2");
    for n in 0..100 {
        scene.settled(&format!("a{n}"), first, first);
        scene.settled(&format!("b{n}"), second, second);
    }
    assert_eq!(scene.used(), (usd("30"), usd("0")));
    for n in 0..70 {
        scene.reserve(&format!("c{n}"), "1").unwrap();
    }
    assert_eq!(
        code(scene.reserve("d", "0.000001")),
        LedgerCode::CapExceeded
    );
}

#[test]
fn row_20_amounts_beyond_all_bounds_neither_wrap_nor_fit() {
    let mut scene = Scene::new();
    scene
        .ledger
        .state_cap(Scope::Total, Cap::usd(MicroUsd::MAX), NOON)
        .unwrap();
    assert!(HoldSize::for_limit(MicroUsd::MAX, usd("1"), 1).is_none());
    assert!(HoldSize::for_limit(usd("1"), MicroUsd::MAX, u32::MAX).is_none());
    for run in ["a", "b"] {
        scene.started(run, "1");
    }
    for run in ["a", "b"] {
        let hold = scene
            .ledger
            .settle_run(&name(run), MicroUsd::MAX, result(), NOON)
            .unwrap();
        assert_eq!(hold.overrun(), Some(Overrun::Hold));
    }
    assert_eq!(scene.used(), (MicroUsd::MAX, usd("0")));
    assert_eq!(code(scene.reserve("c", "1")), LedgerCode::CapExceeded);
}

#[test]
fn row_21_a_cap_in_euros_is_dollars_at_a_recorded_rate_and_nothing_else_is_money() {
    let mut scene = Scene::new();
    let cap = Cap::eur("10".parse().unwrap(), "1.05".parse().unwrap()).unwrap();
    scene.ledger.state_cap(Scope::Total, cap, NOON).unwrap();
    let mut scene = scene.reopened();
    let caps = scene.ledger.spending(NOON).unwrap().caps;
    assert_eq!(caps.total, Some(cap));
    let (eur, rate) = cap.stated_in_euros().unwrap();
    assert_eq!(
        (eur.to_string(), rate.to_string()),
        ("10".into(), "1.05".into())
    );
    assert!(scene.reserve("r", "10.5").is_ok());
    assert_eq!(
        code(scene.reserve("s", "0.000001")),
        LedgerCode::CapExceeded
    );
    for other in ["10 EUR", "€10", "10 GBP", "$10"] {
        assert!(other.parse::<MicroUsd>().is_err());
    }
}

#[test]
fn row_32_concurrent_conversations_widen_the_margin() {
    let one = HoldSize::for_limit(usd("2"), usd("1.5"), 1).unwrap();
    let four = HoldSize::for_limit(usd("2"), usd("1.5"), 4).unwrap();
    assert_eq!((one.held, four.held), (usd("3.5"), usd("8")));
    assert_eq!(HoldSize::for_limit(usd("2"), usd("1.5"), 0), Some(one));
}

#[test]
fn row_37_every_shown_amount_is_called_an_estimate() {
    let mut scene = Scene::new();
    scene.settled("r", "10", "3");
    let _ = scene
        .ledger
        .settle_run(&name("r"), usd("4"), result(), NOON);
    let shown = scene.ledger.spending(NOON).unwrap().to_string();
    assert!(
        shown.contains("estimated: spent on the day 3 USD"),
        "{shown}"
    );
    assert!(
        shown.contains("incident settled-twice: r, estimated 4 USD"),
        "{shown}"
    );
}
