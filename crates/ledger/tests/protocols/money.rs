//! Holds under a cap.

use crate::{catches, holds};
use flightproof_core::MicroUsd;
use flightproof_ledger::hold::{self, Books, Cap, Caps, HoldEffect, HoldEvent, HoldState};
use stateright::{Model, Property};

/// Runs that hold and spend money.
struct HoldModel {
    broken: Option<BrokenHold>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum BrokenHold {
    /// A recovery gives back whatever is not booked.
    RecoveryReleases,
    /// What is held does not count.
    ForgetsHolds,
}

const RUNS: usize = 3;
const TOTAL: u64 = 5;
const HELD: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HoldWorld {
    runs: [Option<HoldState>; RUNS],
    /// What each run really spent, if it was started.
    truth: [Option<u64>; RUNS],
    over_at_admission: bool,
    ends: [u8; RUNS],
}

#[derive(Debug, Clone, PartialEq)]
enum HoldAction {
    Reserve(usize),
    /// Started, and it will have spent this much.
    Start(usize, u64),
    Event(usize, HoldEvent),
}

fn usd(micros: u64) -> MicroUsd {
    MicroUsd::from_micros(micros).unwrap()
}

impl HoldWorld {
    fn counted(&self) -> u64 {
        let counts = |state: &HoldState| match *state {
            HoldState::Reserved | HoldState::Running | HoldState::Unknown => HELD,
            HoldState::Reported(amount) => amount.micros().max(HELD),
            HoldState::Settled(amount) | HoldState::Resolved(amount) => amount.micros(),
            HoldState::Released => 0,
        };
        self.runs.iter().flatten().map(counts).sum()
    }

    /// What may really have been spent: a run that is under way counts with its hold at least.
    fn really(&self) -> u64 {
        self.truth.iter().flatten().sum()
    }
}

fn ended(state: HoldState) -> bool {
    matches!(
        state,
        HoldState::Settled(_) | HoldState::Resolved(_) | HoldState::Released
    )
}

impl Model for HoldModel {
    type State = HoldWorld;
    type Action = HoldAction;

    fn init_states(&self) -> Vec<HoldWorld> {
        vec![HoldWorld {
            runs: [None; RUNS],
            truth: [None; RUNS],
            over_at_admission: false,
            ends: [0; RUNS],
        }]
    }

    fn actions(&self, world: &HoldWorld, actions: &mut Vec<HoldAction>) {
        for run in 0..RUNS {
            let Some(_) = world.runs[run] else {
                actions.push(HoldAction::Reserve(run));
                continue;
            };
            actions.extend([1, 3].map(|spent| HoldAction::Start(run, spent)));
            for event in [HoldEvent::Lose, HoldEvent::Release, HoldEvent::Recover] {
                actions.push(HoldAction::Event(run, event));
            }
            if let Some(spent) = world.truth[run] {
                for event in [HoldEvent::Report, HoldEvent::Settle, HoldEvent::Resolve] {
                    actions.push(HoldAction::Event(run, event(usd(spent))));
                }
            }
        }
    }

    fn next_state(&self, before: &HoldWorld, action: HoldAction) -> Option<HoldWorld> {
        let mut world = before.clone();
        match action {
            HoldAction::Reserve(run) => {
                let caps = Caps {
                    total: Some(Cap::usd(usd(TOTAL))),
                    ..Caps::default()
                };
                let held = if self.broken == Some(BrokenHold::ForgetsHolds) {
                    0
                } else {
                    world.counted()
                };
                let books = Books {
                    held: usd(held),
                    ..Books::default()
                };
                hold::admit(&caps, &books, usd(HELD), None).ok()?;
                world.runs[run] = Some(HoldState::Reserved);
                world.over_at_admission |= world.counted() > TOTAL;
            }
            HoldAction::Start(run, spent) => {
                let (next, effect) = hold::decide(world.runs[run]?, HoldEvent::Start);
                if effect == HoldEffect::Store {
                    world.runs[run] = Some(next);
                    world.truth[run] = Some(spent);
                }
            }
            HoldAction::Event(run, event) => {
                let state = world.runs[run]?;
                let (mut next, _) = hold::decide(state, event);
                let recovery = event == HoldEvent::Recover && !ended(state);
                if recovery && self.broken == Some(BrokenHold::RecoveryReleases) {
                    next = HoldState::Released;
                }
                if next != state && ended(next) {
                    world.ends[run] += 1;
                }
                world.runs[run] = Some(next);
            }
        }
        (&world != before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("never over a cap at admission", |_, world: &HoldWorld| {
                !world.over_at_admission
            }),
            Property::always(
                "what was started is never given back",
                |_, world: &HoldWorld| {
                    (0..RUNS).all(|run| {
                        world.truth[run].is_none() || world.runs[run] != Some(HoldState::Released)
                    })
                },
            ),
            Property::always(
                "what was spent is counted, but for one overrun each",
                |_, world: &HoldWorld| {
                    let overrun = |spent: &u64| spent.saturating_sub(HELD);
                    let slack: u64 = world.truth.iter().flatten().map(overrun).sum();
                    world.really() <= world.counted() + slack
                },
            ),
            Property::always("a run ends once", |_, world: &HoldWorld| {
                world.ends.iter().all(|n| *n <= 1)
            }),
            Property::sometimes("all runs end", |_, world: &HoldWorld| {
                world.ends == [1; RUNS]
            }),
        ]
    }
}

#[test]
fn money_is_never_over_a_cap_at_admission_and_never_lost_in_a_crash() {
    holds(HoldModel { broken: None });
}

#[test]
fn broken_holds_are_caught() {
    for (broken, property) in [
        (
            BrokenHold::RecoveryReleases,
            "what was started is never given back",
        ),
        (BrokenHold::ForgetsHolds, "never over a cap at admission"),
    ] {
        let broken = Some(broken);
        catches(HoldModel { broken }, property);
    }
}
