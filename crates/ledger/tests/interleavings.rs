//! Random interleavings of everything that can happen to money, against a model of forty lines.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

use flightproof_core::{Digest, MicroUsd};
use flightproof_ledger::{
    Cap, HoldSize, HoldState, Ledger, LedgerCode, LedgerError, Name, Reserve, Scope, UtcDay,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const DAY: u64 = 86_400;
const START: u64 = 20_600 * DAY;
const DAY_CAP: u64 = 12;
const TOTAL_CAP: u64 = 30;

#[derive(Debug, Clone)]
enum Step {
    Reserve(u8, u64),
    Start(u8),
    Report(u8, u64),
    Settle(u8, u64),
    Lose(u8),
    Release(u8),
    /// The program dies: every run that is not booked is recovered by the next one.
    Crash,
    Reopen,
    NextDay,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let run = 0..6u8;
    let step = prop_oneof![
        4 => (run.clone(), 1..6u64).prop_map(|(run, held)| Step::Reserve(run, held)),
        4 => run.clone().prop_map(Step::Start),
        2 => (run.clone(), 0..8u64).prop_map(|(run, spent)| Step::Report(run, spent)),
        4 => (run.clone(), 0..8u64).prop_map(|(run, spent)| Step::Settle(run, spent)),
        2 => run.clone().prop_map(Step::Lose),
        2 => run.prop_map(Step::Release),
        1 => Just(Step::Crash),
        1 => Just(Step::Reopen),
        1 => Just(Step::NextDay),
    ];
    proptest::collection::vec(step, 1..40)
}

/// What should be true, kept without a database.
#[derive(Debug, Default)]
struct Model {
    /// State, day and size of each run's hold.
    runs: BTreeMap<u8, (HoldState, u64, u64)>,
    /// Money that turned up for released runs, each amount once.
    surprises: BTreeMap<(u8, u64), u64>,
    day: u64,
}

impl Model {
    fn spent(&self, on: Option<u64>) -> u64 {
        let booked = self
            .runs
            .values()
            .filter_map(|(state, day, _)| match state {
                HoldState::Settled(a) | HoldState::Resolved(a) => Some((a.micros(), *day)),
                _ => None,
            });
        let surprises = self
            .surprises
            .iter()
            .map(|((_, amount), day)| (*amount, *day));
        booked
            .chain(surprises)
            .filter(|(_, day)| on.is_none_or(|on| on == *day))
            .map(|(amount, _)| amount)
            .sum()
    }

    fn held(&self) -> u64 {
        self.runs
            .values()
            .map(|(state, _, held)| match state {
                HoldState::Reported(a) => a.micros().max(*held),
                HoldState::Reserved | HoldState::Running | HoldState::Unknown => *held,
                _ => 0,
            })
            .sum()
    }

    fn fits(&self, asked: u64) -> bool {
        let held = self.held();
        self.spent(Some(self.day)) + held + asked <= DAY_CAP
            && self.spent(None) + held + asked <= TOTAL_CAP
    }
}

fn usd(micros: u64) -> MicroUsd {
    MicroUsd::from_micros(micros).unwrap()
}

fn name(run: u8) -> Name {
    format!("run-{run}").parse().unwrap()
}

struct World {
    _folder: tempfile::TempDir,
    ledger: Option<Ledger>,
    model: Model,
}

impl World {
    fn new() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let mut ledger = Ledger::open(&folder.path().join("state")).unwrap();
        for (scope, cap) in [(Scope::UtcDay, DAY_CAP), (Scope::Total, TOTAL_CAP)] {
            ledger.state_cap(scope, Cap::usd(usd(cap)), START).unwrap();
        }
        Self {
            _folder: folder,
            ledger: Some(ledger),
            model: Model::default(),
        }
    }

    fn now(&self) -> u64 {
        START + self.model.day * DAY
    }

    fn step(&mut self, step: &Step) {
        let now = self.now();
        let ledger = self.ledger.as_mut().unwrap();
        match *step {
            Step::Reserve(run, held) => self.reserve(run, held, now),
            Step::Start(run) => {
                let answer = ledger.start_run(&name(run), now);
                let fresh = self.model.move_run(run, |state| {
                    (state == HoldState::Reserved).then_some(HoldState::Running)
                });
                assert_eq!(answer.is_ok(), fresh);
            }
            Step::Report(run, spent) => {
                let answer = ledger.report_run(&name(run), usd(spent), Digest::of(b"r"), now);
                self.account(
                    run,
                    spent,
                    HoldState::Reported(usd(spent)),
                    &answer.map(drop),
                );
            }
            Step::Settle(run, spent) => {
                let answer = ledger.settle_run(&name(run), usd(spent), Digest::of(b"r"), now);
                self.account(
                    run,
                    spent,
                    HoldState::Settled(usd(spent)),
                    &answer.map(drop),
                );
            }
            Step::Lose(run) => {
                let _ = ledger.lose_run(&name(run), now);
                self.model.move_run(run, |state| match state {
                    HoldState::Running => Some(HoldState::Unknown),
                    HoldState::Reported(amount) => Some(HoldState::Settled(amount)),
                    _ => None,
                });
            }
            Step::Release(run) => {
                let _ = ledger.release_run(&name(run), now);
                self.model.move_run(run, |state| {
                    (state == HoldState::Reserved).then_some(HoldState::Released)
                });
            }
            Step::Crash => self.crash(now),
            Step::Reopen => self.reopen(),
            Step::NextDay => {
                // An operator says so: days without a run would look like a clock that jumps.
                self.model.day += 1;
                let day = UtcDay::of(self.now());
                let ledger = self.ledger.as_mut().unwrap();
                ledger.confirm_day(day, now).unwrap();
            }
        }
        self.compare();
    }

    fn reserve(&mut self, run: u8, held: u64, now: u64) {
        let request = Reserve {
            run: name(run),
            request: Digest::of(b"request"),
            size: HoldSize {
                limit: usd(held),
                held: usd(held),
            },
            parent: None,
        };
        let answer = self.ledger.as_mut().unwrap().reserve(&request, now);
        match (self.model.runs.get(&run), answer) {
            (Some((_, _, known)), Ok(_)) => assert_eq!(*known, held),
            (Some((_, _, known)), Err(e)) => {
                assert_eq!(e.code, LedgerCode::HoldDiffers);
                assert_ne!(*known, held);
            }
            (None, Ok(_)) => {
                assert!(self.model.fits(held), "over a cap at admission");
                let hold = (HoldState::Reserved, self.model.day, held);
                self.model.runs.insert(run, hold);
            }
            (None, Err(e)) => {
                assert_eq!(e.code, LedgerCode::CapExceeded);
                assert!(!self.model.fits(held), "there was room");
            }
        }
    }

    /// An amount for a run: taken, the same as before, or an alarm.
    fn account(&mut self, run: u8, spent: u64, to: HoldState, answer: &Result<(), LedgerError>) {
        let Some((state, day, _)) = self.model.runs.get(&run).copied() else {
            return assert!(answer.is_err());
        };
        match state {
            HoldState::Running => {
                self.model.move_run(run, |_| Some(to));
                assert!(answer.is_ok());
            }
            HoldState::Reported(first) | HoldState::Settled(first) => {
                assert_eq!(answer.is_ok(), first == usd(spent));
                let settles = matches!(to, HoldState::Settled(_)) && first == usd(spent);
                self.model
                    .move_run(run, |state| (settles && state != to).then_some(to));
            }
            HoldState::Released => {
                self.model.surprises.entry((run, spent)).or_insert(day);
                assert_eq!(answer.as_ref().unwrap_err().code, LedgerCode::SpendConflict);
            }
            _ => assert_eq!(answer.as_ref().unwrap_err().code, LedgerCode::HoldRefused),
        }
    }

    fn crash(&mut self, now: u64) {
        self.reopen();
        let ledger = self.ledger.as_mut().unwrap();
        for hold in ledger.spending(now).unwrap().live {
            ledger.recover_run(&hold.run, now).unwrap();
        }
        for (state, _, _) in self.model.runs.values_mut() {
            *state = match *state {
                HoldState::Reserved => HoldState::Released,
                HoldState::Running => HoldState::Unknown,
                HoldState::Reported(amount) => HoldState::Settled(amount),
                other => other,
            };
        }
    }

    fn reopen(&mut self) {
        let before = self.ledger.as_ref().unwrap();
        let (head, shown) = (before.head().unwrap(), before.spending(0).unwrap());
        let ledger = self.ledger.take().unwrap().reopen().unwrap();
        assert_eq!(ledger.head().unwrap(), head);
        assert_eq!(
            ledger.spending(0).unwrap(),
            shown,
            "reopening changes nothing"
        );
        self.ledger = Some(ledger);
    }

    fn compare(&self) {
        let ledger = self.ledger.as_ref().unwrap();
        for run in 0..6 {
            let found = ledger.hold(&name(run)).unwrap().map(|hold| hold.state);
            assert_eq!(found, self.model.runs.get(&run).map(|(state, _, _)| *state));
        }
        let books = ledger.spending(self.now()).unwrap().estimated;
        assert_eq!(books.spent.micros(), self.model.spent(None));
        assert_eq!(books.held.micros(), self.model.held());
    }
}

impl Model {
    fn move_run(&mut self, run: u8, next: impl Fn(HoldState) -> Option<HoldState>) -> bool {
        let Some((state, _, _)) = self.runs.get_mut(&run) else {
            return false;
        };
        match next(*state) {
            Some(next) => {
                *state = next;
                true
            }
            None => false,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn spent_and_held_never_go_over_a_cap_at_admission_whatever_happens(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        prop_assert!(world.ledger.unwrap().check().is_ok());
    }
}
