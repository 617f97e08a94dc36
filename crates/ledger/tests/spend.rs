//! Every way in which money is known to get lost between a reservation and a bill, and what this
//! ledger does instead. The numbers are those of the list in `docs/architecture.md`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

use ed25519_dalek::{Signer as _, SigningKey};
use flightproof_core::{Digest, MicroUsd};
use flightproof_ledger::hold::{HoldEvent, LEAST_MARGIN};
use flightproof_ledger::{
    Cap, Hold, HoldSize, HoldState, Ledger, LedgerCode, LedgerError, Name, Overrun, Reserve,
    Resolution, Scope, Signed, UtcDay,
};
use std::path::{Path, PathBuf};

/// Noon of a day in 2026, unix seconds.
const NOON: u64 = 1_780_000_000 - 1_780_000_000 % DAY + DAY / 2;
const DAY: u64 = 86_400;

struct Scene {
    _temp: tempfile::TempDir,
    state: PathBuf,
    ledger: Ledger,
}

impl Scene {
    /// Caps: 100 dollars in total, 50 a day, 20 a run.
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let mut ledger = Ledger::open(&state).unwrap();
        for (scope, amount) in [
            (Scope::Total, "100"),
            (Scope::UtcDay, "50"),
            (Scope::Run, "20"),
        ] {
            ledger
                .state_cap(scope, Cap::usd(usd(amount)), NOON)
                .unwrap();
        }
        Self {
            _temp: temp,
            state,
            ledger,
        }
    }

    fn reserve(&mut self, run: &str, amount: &str) -> Result<Hold, LedgerError> {
        self.ledger.reserve(&request(run, amount), NOON)
    }

    fn started(&mut self, run: &str, amount: &str) {
        self.reserve(run, amount).unwrap();
        self.ledger.start_run(&name(run), NOON).unwrap();
    }

    fn settled(&mut self, run: &str, held: &str, actual: &str) -> Hold {
        self.started(run, held);
        self.ledger
            .settle_run(&name(run), usd(actual), result(), NOON)
            .unwrap()
    }

    fn state_of(&self, run: &str) -> HoldState {
        self.ledger.hold(&name(run)).unwrap().unwrap().state
    }

    fn reopened(mut self) -> Self {
        self.ledger = self.ledger.reopen().unwrap();
        self
    }

    fn used(&self) -> (MicroUsd, MicroUsd) {
        let books = self.ledger.spending(NOON).unwrap().estimated;
        (books.spent, books.held)
    }
}

fn usd(text: &str) -> MicroUsd {
    MicroUsd::parse_or_zero(text).unwrap()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn result() -> Digest {
    Digest::of(b"result")
}

/// A hold of exactly this much, told the same limit.
fn request(run: &str, amount: &str) -> Reserve {
    Reserve {
        run: name(run),
        request: Digest::of(run.as_bytes()),
        size: HoldSize {
            limit: usd(amount),
            held: usd(amount),
        },
        parent: None,
    }
}

fn code<T: std::fmt::Debug>(answer: Result<T, LedgerError>) -> LedgerCode {
    answer.unwrap_err().code
}

fn resolution(run: &str, amount: &str) -> Resolution {
    Resolution {
        run: name(run),
        amount: usd(amount),
        evidence: Digest::of(b"invoice"),
    }
}

fn sign(resolution: &Resolution, ledger: &Ledger) -> Signed {
    let key = SigningKey::from_bytes(&[7; 32]);
    Signed {
        key: key.verifying_key().to_bytes(),
        signature: key
            .sign(&resolution.statement(&ledger.identity()))
            .to_bytes(),
    }
}

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
fn row_08_racing_threads_never_get_more_than_the_last_dollar() {
    let scene = Scene::new();
    let admitted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let state = &scene.state;
                scope.spawn(move || {
                    let mut ledger = Ledger::open(state).unwrap();
                    (0..12)
                        .filter(|n| {
                            let ask = request(&format!("{thread}/{n}"), "1");
                            match ledger.reserve(&ask, NOON) {
                                Ok(_) => true,
                                Err(e) => {
                                    assert_eq!(e.code, LedgerCode::CapExceeded, "{e}");
                                    false
                                }
                            }
                        })
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(admitted, 50);
    assert_eq!(scene.used(), (usd("0"), usd("50")));
}

/// Runs only as one of the processes below.
#[test]
#[ignore = "started by the test below"]
fn racer() {
    let state = std::env::var_os("FLIGHTPROOF_TEST_STATE").unwrap();
    let mut ledger = Ledger::open(Path::new(&state)).unwrap();
    let mut admitted = 0;
    for n in 0..30 {
        match ledger.reserve(&request(&format!("{}/{n}", std::process::id()), "1"), NOON) {
            Ok(_) => admitted += 1,
            Err(e) => assert_eq!(e.code, LedgerCode::CapExceeded, "{e}"),
        }
    }
    println!("admitted={admitted}");
}

#[test]
fn row_08_racing_processes_never_get_more_than_the_last_dollar() {
    let scene = Scene::new();
    let racers: Vec<_> = (0..4)
        .map(|_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "racer", "--ignored", "--nocapture"])
                .env("FLIGHTPROOF_TEST_STATE", &scene.state)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut admitted = 0;
    for racer in racers {
        let output = racer.wait_with_output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        let count = said
            .lines()
            .find_map(|l| l.split("admitted=").nth(1))
            .unwrap();
        admitted += count.parse::<u64>().unwrap();
    }
    assert_eq!(admitted, 50);
    assert_eq!(scene.used(), (usd("0"), usd("50")));
}

#[test]
fn row_09_a_reservation_that_cannot_be_written_admits_nothing() {
    let mut scene = Scene::new();
    let other = rusqlite::Connection::open(scene.state.join(Ledger::FILE)).unwrap();
    other
        .execute_batch("ALTER TABLE holds RENAME TO elsewhere")
        .unwrap();
    assert_eq!(code(scene.reserve("r", "1")), LedgerCode::LedgerUnreadable);
}

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
fn row_32_concurrent_conversations_widen_the_margin() {
    let one = HoldSize::for_limit(usd("2"), usd("1.5"), 1).unwrap();
    let four = HoldSize::for_limit(usd("2"), usd("1.5"), 4).unwrap();
    assert_eq!((one.held, four.held), (usd("3.5"), usd("8")));
    assert_eq!(HoldSize::for_limit(usd("2"), usd("1.5"), 0), Some(one));
}

#[test]
fn row_34_a_ledger_put_back_from_a_copy_admits_nothing() {
    let mut scene = Scene::new();
    let copy = scene.state.join("copy");
    scene.reserve("a", "1").unwrap();
    std::fs::copy(scene.state.join(Ledger::FILE), &copy).unwrap();
    scene.settled("r", "20", "20");
    let Scene {
        _temp,
        state,
        ledger,
    } = scene;
    ledger.close().unwrap();
    std::fs::copy(&copy, state.join(Ledger::FILE)).unwrap();
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerBehind);
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
fn row_36_files_are_private_and_hold_no_text_of_a_prompt_or_result() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut scene = Scene::new();
    let secret = b"the prompt: refactor everything";
    let ask = Reserve {
        request: Digest::of(secret),
        ..request("r", "1")
    };
    scene.ledger.reserve(&ask, NOON).unwrap();
    scene.ledger.start_run(&name("r"), NOON).unwrap();
    scene
        .ledger
        .settle_run(&name("r"), usd("1"), Digest::of(secret), NOON)
        .unwrap();
    for entry in std::fs::read_dir(&scene.state).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(
            entry.metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|w| w == secret));
    }
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

/// Runs that the victim below may settle: more than fit under its limit.
const STARTED: usize = 60;

/// Runs only as the victim below, under a file-size limit that makes a settlement fail.
#[test]
#[ignore = "started by the test below with a file-size limit"]
fn settler() {
    let state = std::env::var_os("FLIGHTPROOF_TEST_STATE").unwrap();
    let mut ledger = Ledger::open(Path::new(&state)).unwrap();
    for n in 0..STARTED {
        let run = name(&format!("r{n}"));
        let Err(refused) = ledger.settle_run(&run, usd("0.5"), result(), NOON) else {
            continue;
        };
        assert_eq!(refused.code, LedgerCode::CommitUncertain, "{refused}");
        let again = ledger.settle_run(&run, usd("0.5"), result(), NOON);
        assert_eq!(code(again), LedgerCode::CommitUncertain);
        return println!("uncertain={n}");
    }
    panic!("the limit was never met");
}

#[test]
fn row_38_a_settlement_that_cannot_be_written_is_uncertain_and_done_again_by_its_key() {
    let mut scene = Scene::new();
    scene
        .ledger
        .state_cap(Scope::UtcDay, Cap::usd(usd("100")), NOON)
        .unwrap();
    for n in 0..STARTED {
        scene.started(&format!("r{n}"), "1");
    }
    let Scene {
        _temp,
        state,
        ledger,
    } = scene;
    ledger.close().unwrap();
    let output = std::process::Command::new("/bin/sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 500; exec \"$0\" --exact settler --ignored --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env("FLIGHTPROOF_TEST_STATE", &state)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    let uncertain = said.lines().find_map(|l| l.split("uncertain=").nth(1));
    let uncertain: usize = uncertain.unwrap().parse().unwrap();
    assert!(uncertain > 0);
    let mut ledger = Ledger::open(&state).unwrap();
    let state_of = |n: usize| ledger.hold(&name(&format!("r{n}"))).unwrap().unwrap().state;
    let settled = HoldState::Settled(usd("0.5"));
    for n in 0..uncertain {
        assert_eq!(state_of(n), settled, "r{n} was acknowledged");
    }
    assert!([HoldState::Running, settled].contains(&state_of(uncertain)));
    assert_eq!(state_of(uncertain + 1), HoldState::Running);
    let run = name(&format!("r{uncertain}"));
    let again = ledger.settle_run(&run, usd("0.5"), result(), NOON).unwrap();
    assert_eq!(again.state, settled);
}
