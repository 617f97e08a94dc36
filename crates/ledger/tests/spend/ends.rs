//! How runs end, and what becomes of their holds.

use crate::scene::{DAY, NOON, Scene, code, name, request, resolution, result, sign, usd};
use ed25519_dalek::{Signer as _, SigningKey};
use flightproof_core::Digest;
use flightproof_ledger::hold::HoldEvent;
use flightproof_ledger::{HoldSize, HoldState, Ledger, LedgerCode, Overrun, Reserve, Signed};

#[test]
fn row_01_a_crash_before_the_intent_to_start_gives_the_hold_back() {
    let mut scene = Scene::new();
    scene.reserve("r", "10").unwrap();
    let mut scene = scene.reopened();
    scene.ledger.recover_run(&name("r"), NOON).unwrap();
    assert_eq!(scene.state_of("r"), HoldState::Released);
    assert_eq!(scene.used(), (usd("0"), usd("0")));
}

#[test]
fn row_02_a_crash_after_the_intent_to_start_keeps_the_whole_hold() {
    let mut scene = Scene::new();
    scene.started("r", "10");
    let mut scene = scene.reopened();
    scene.ledger.recover_run(&name("r"), NOON).unwrap();
    assert_eq!(scene.state_of("r"), HoldState::Unknown);
    assert_eq!(scene.used(), (usd("0"), usd("10")));
}

#[test]
fn row_03_a_crash_between_result_and_settlement_books_what_was_reported() {
    let mut scene = Scene::new();
    scene.started("r", "10");
    let report = |ledger: &mut Ledger| ledger.report_run(&name("r"), usd("3"), result(), NOON);
    report(&mut scene.ledger).unwrap();
    assert_eq!(scene.used(), (usd("0"), usd("10")));
    let mut scene = scene.reopened();
    let hold = scene.ledger.recover_run(&name("r"), NOON).unwrap();
    assert_eq!(hold.state, HoldState::Settled(usd("3")));
    assert_eq!(hold.evidence, Some(result()));
    assert_eq!(report(&mut scene.ledger).unwrap(), hold);
    let again = scene
        .ledger
        .settle_run(&name("r"), usd("3"), result(), NOON);
    assert_eq!(again.unwrap(), hold);
}

#[test]
fn row_04_an_unknown_outcome_counts_in_every_cap_and_never_expires() {
    let mut scene = Scene::new();
    scene.started("r", "20");
    scene.ledger.lose_run(&name("r"), NOON).unwrap();
    let mut scene = scene.reopened();
    for later in 1..=30 {
        let books = scene.ledger.spending(NOON + later * DAY).unwrap();
        assert_eq!(books.estimated.held, usd("20"));
    }
    // The day after, 30 of the day's 50 are left.
    let tomorrow = NOON + DAY;
    let ask =
        |ledger: &mut Ledger, run: &str, amount| ledger.reserve(&request(run, amount), tomorrow);
    ask(&mut scene.ledger, "a", "20").unwrap();
    assert_eq!(
        code(ask(&mut scene.ledger, "b", "11")),
        LedgerCode::CapExceeded
    );
    ask(&mut scene.ledger, "b", "10").unwrap();
}

#[test]
fn row_05_the_same_settlement_twice_is_one() {
    let mut scene = Scene::new();
    let first = scene.settled("r", "10", "3");
    let mut scene = scene.reopened();
    let head = scene.ledger.head().unwrap();
    let again = scene
        .ledger
        .settle_run(&name("r"), usd("3"), result(), NOON + 5);
    assert_eq!(again.unwrap(), first);
    assert_eq!(scene.ledger.head().unwrap(), head, "nothing was written");
}

#[test]
fn row_06_another_settlement_conflicts_and_the_first_one_stands() {
    let mut scene = Scene::new();
    scene.settled("r", "10", "3");
    for _ in 0..2 {
        let other = scene
            .ledger
            .settle_run(&name("r"), usd("4"), result(), NOON);
        assert_eq!(code(other), LedgerCode::SpendConflict);
    }
    assert_eq!(scene.used(), (usd("3"), usd("0")));
    let incidents = scene.ledger.spending(NOON).unwrap().incidents;
    assert_eq!(incidents.len(), 1);
    assert_eq!(
        (incidents[0].claimed, incidents[0].added),
        (usd("4"), usd("0"))
    );
}

#[test]
fn row_07_money_for_a_released_run_is_an_incident_and_counts() {
    let mut scene = Scene::new();
    scene.reserve("r", "10").unwrap();
    scene.ledger.release_run(&name("r"), NOON).unwrap();
    for _ in 0..2 {
        let late = scene
            .ledger
            .settle_run(&name("r"), usd("4"), result(), NOON);
        assert_eq!(code(late), LedgerCode::SpendConflict);
    }
    assert_eq!(scene.state_of("r"), HoldState::Released);
    assert_eq!(scene.used(), (usd("4"), usd("0")));
    let incidents = scene.ledger.spending(NOON).unwrap().incidents;
    assert_eq!(incidents[0].kind, "settled-after-release");
}

#[test]
fn row_14_more_than_the_hold_is_booked_in_full_and_blocks_what_follows() {
    let mut scene = Scene::new();
    let hold = scene.settled("r", "20", "55");
    assert_eq!(hold.overrun(), Some(Overrun::Hold));
    assert_eq!(scene.used(), (usd("55"), usd("0")));
    assert_eq!(
        code(scene.reserve("s", "0.000001")),
        LedgerCode::CapExceeded
    );
    let tomorrow = NOON + DAY;
    assert!(scene.ledger.reserve(&request("s", "20"), tomorrow).is_ok());
}

#[test]
fn row_15_more_than_the_limit_but_within_the_hold_is_booked_and_failed() {
    let mut scene = Scene::new();
    let size = HoldSize::for_limit(usd("2"), usd("1"), 1).unwrap();
    let ask = Reserve {
        size,
        ..request("r", "1")
    };
    scene.ledger.reserve(&ask, NOON).unwrap();
    scene.ledger.start_run(&name("r"), NOON).unwrap();
    let hold = scene
        .ledger
        .settle_run(&name("r"), usd("2.5"), result(), NOON)
        .unwrap();
    assert_eq!(hold.overrun(), Some(Overrun::Limit));
    assert_eq!(scene.used(), (usd("2.5"), usd("0")));
}

#[test]
fn row_16_the_rest_of_a_hold_is_free_with_its_settlement() {
    let mut scene = Scene::new();
    scene.started("r", "20");
    let head = scene.ledger.head().unwrap().seq;
    let hold = scene
        .ledger
        .settle_run(&name("r"), usd("3"), result(), NOON)
        .unwrap();
    assert_eq!(hold.overrun(), Some(Overrun::None));
    assert_eq!(scene.ledger.head().unwrap().seq, head + 1);
    assert_eq!(scene.used(), (usd("3"), usd("0")));
}

#[test]
fn row_17_missing_accounting_keeps_the_hold() {
    let mut scene = Scene::new();
    scene.started("r", "20");
    let hold = scene.ledger.lose_run(&name("r"), NOON).unwrap();
    assert_eq!((hold.state, hold.overrun()), (HoldState::Unknown, None));
    let late = scene
        .ledger
        .settle_run(&name("r"), usd("0"), result(), NOON);
    assert_eq!(code(late), LedgerCode::HoldRefused);
    assert_eq!(scene.used(), (usd("0"), usd("20")));
}

#[test]
fn row_29_a_cancelled_run_is_not_refunded() {
    let mut scene = Scene::new();
    scene.started("r", "20");
    assert_eq!(
        code(scene.ledger.release_run(&name("r"), NOON)),
        LedgerCode::HoldRefused
    );
    scene.ledger.lose_run(&name("r"), NOON).unwrap();
    assert_eq!(
        code(scene.ledger.release_run(&name("r"), NOON)),
        LedgerCode::HoldRefused
    );
    assert_eq!(scene.used(), (usd("0"), usd("20")));
}

#[test]
fn row_30_the_same_run_reserved_twice_is_one_hold_and_another_request_is_refused() {
    let mut scene = Scene::new();
    let first = scene.reserve("r", "10").unwrap();
    assert_eq!(scene.reserve("r", "10").unwrap(), first);
    assert_eq!(code(scene.reserve("r", "11")), LedgerCode::HoldDiffers);
    let mut other = request("r", "10");
    other.request = Digest::of(b"another plan");
    assert_eq!(
        code(scene.ledger.reserve(&other, NOON)),
        LedgerCode::HoldDiffers
    );
    assert_eq!(scene.used(), (usd("0"), usd("10")));
    scene.ledger.start_run(&name("r"), NOON).unwrap();
    assert_eq!(
        code(scene.ledger.start_run(&name("r"), NOON)),
        LedgerCode::HoldRefused
    );
}

#[test]
fn row_31_each_attempt_holds_its_own_money_under_the_cap_of_its_parent() {
    let mut scene = Scene::new();
    let attempt = |run: &str, amount: &str, cap: &str| Reserve {
        parent: Some((name("flight"), usd(cap))),
        ..request(run, amount)
    };
    let mut reserve = |ask: &Reserve| scene.ledger.reserve(ask, NOON);
    reserve(&attempt("f/1", "5", "8")).unwrap();
    assert_eq!(
        code(reserve(&attempt("f/2", "5", "9"))),
        LedgerCode::HoldDiffers
    );
    assert_eq!(
        code(reserve(&attempt("f/2", "5", "8"))),
        LedgerCode::CapExceeded
    );
    scene.ledger.start_run(&name("f/1"), NOON).unwrap();
    scene
        .ledger
        .settle_run(&name("f/1"), usd("3"), result(), NOON)
        .unwrap();
    let mut reserve = |ask: &Reserve| scene.ledger.reserve(ask, NOON);
    reserve(&attempt("f/2", "5", "8")).unwrap();
    assert_eq!(
        code(reserve(&attempt("f/3", "0.1", "8"))),
        LedgerCode::CapExceeded
    );
}

#[test]
fn row_35_an_unknown_run_is_resolved_once_by_a_signed_word() {
    let mut scene = Scene::new();
    scene.started("r", "20");
    let word = resolution("r", "7");
    let signed = sign(&word, &scene.ledger);
    let early = scene.ledger.resolve_run(&word, &signed, NOON);
    assert_eq!(code(early), LedgerCode::HoldRefused);
    scene.ledger.lose_run(&name("r"), NOON).unwrap();
    let mut other = signed.clone();
    other.signature[0] ^= 1;
    let elsewhere = Signed {
        signature: SigningKey::from_bytes(&[7; 32])
            .sign(&word.statement("another ledger"))
            .to_bytes(),
        ..signed.clone()
    };
    let weak = Signed {
        key: [0; 32],
        ..signed.clone()
    };
    for bad in [&other, &elsewhere, &weak] {
        let refused = scene.ledger.resolve_run(&word, bad, NOON);
        assert_eq!(code(refused), LedgerCode::ResolutionUnsigned);
    }
    let cheaper = resolution("r", "6");
    let refused = scene.ledger.resolve_run(&cheaper, &signed, NOON);
    assert_eq!(code(refused), LedgerCode::ResolutionUnsigned);
    let hold = scene.ledger.resolve_run(&word, &signed, NOON).unwrap();
    assert_eq!(hold.state, HoldState::Resolved(usd("7")));
    assert_eq!(hold.evidence, Some(word.evidence));
    assert_eq!(scene.used(), (usd("7"), usd("0")));
    assert_eq!(
        scene.ledger.resolve_run(&word, &signed, NOON).unwrap(),
        hold
    );
    let again = sign(&cheaper, &scene.ledger);
    let refused = scene.ledger.resolve_run(&cheaper, &again, NOON);
    assert_eq!(code(refused), LedgerCode::HoldRefused);
    let late = scene
        .ledger
        .settle_run(&name("r"), usd("9"), result(), NOON);
    assert_eq!(code(late), LedgerCode::SpendConflict);
    let raw = rusqlite::Connection::open(scene.state.join(Ledger::FILE)).unwrap();
    assert!(raw.execute_batch("DELETE FROM resolutions").is_err());
}

#[test]
fn a_run_without_hold_and_a_ledger_without_caps_spend_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(&temp.path().join("state")).unwrap();
    assert_eq!(
        code(ledger.reserve(&request("r", "1"), NOON)),
        LedgerCode::CapMissing
    );
    assert_eq!(
        code(ledger.start_run(&name("r"), NOON)),
        LedgerCode::HoldUnknown
    );
}

#[test]
fn steps_of_a_hold_join_a_larger_transaction_or_vanish_with_it() {
    let mut scene = Scene::new();
    let refused = scene.ledger.write(|w| {
        w.reserve(&request("r", "1"), NOON)?;
        let (hold, _) = w.hold_event(&name("r"), HoldEvent::Start, None, NOON)?;
        assert_eq!(hold.state, HoldState::Running);
        w.reserve(&request("s", "1000"), NOON)
    });
    assert_eq!(code(refused), LedgerCode::CapExceeded);
    assert_eq!(scene.ledger.hold(&name("r")).unwrap(), None);
}
