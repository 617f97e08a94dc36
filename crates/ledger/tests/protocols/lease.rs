//! A lease, and clocks that are wrong.

use crate::{catches, holds};
use flightproof_ledger::lease::{self, LeaseEffect, LeaseEvent, LeaseState};
use stateright::{Model, Property};

/// Owners with wrong clocks, and one thing only the owner may write.
struct LeaseModel {
    /// On purpose: a write asks the clock instead of the token.
    by_the_clock: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LeaseWorld {
    lease: LeaseState,
    /// The token each owner believes to have, and when it believes to lose it.
    owners: [Option<(u64, u64)>; 2],
    /// The largest token that wrote, and whether a smaller one wrote after it.
    written: u64,
    overtaken: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum LeaseAction {
    Acquire(usize, u64),
    Renew(usize, u64),
    Release(usize),
    Write(usize, u64),
}

const CLOCKS: std::ops::Range<u64> = 0..5;
const TERM: u64 = 2;
const TOKENS: u64 = 4;

impl Model for LeaseModel {
    type State = LeaseWorld;
    type Action = LeaseAction;

    fn init_states(&self) -> Vec<LeaseWorld> {
        vec![LeaseWorld {
            lease: LeaseState::Free { last: 0 },
            owners: [None; 2],
            written: 0,
            overtaken: false,
        }]
    }

    fn actions(&self, world: &LeaseWorld, actions: &mut Vec<LeaseAction>) {
        for owner in 0..2 {
            for now in CLOCKS {
                if world.lease.token() < TOKENS {
                    actions.push(LeaseAction::Acquire(owner, now));
                }
                actions.push(LeaseAction::Renew(owner, now));
                actions.push(LeaseAction::Write(owner, now));
            }
            actions.push(LeaseAction::Release(owner));
        }
    }

    fn next_state(&self, before: &LeaseWorld, action: LeaseAction) -> Option<LeaseWorld> {
        let mut world = before.clone();
        let step = |world: &mut LeaseWorld, event| {
            let (next, effect) = lease::decide(world.lease, event);
            world.lease = next;
            effect
        };
        match action {
            LeaseAction::Acquire(owner, now) => {
                let event = LeaseEvent::Acquire { now, seconds: TERM };
                if let LeaseEffect::Granted { token } = step(&mut world, event) {
                    world.owners[owner] = Some((token, now + TERM));
                }
            }
            LeaseAction::Renew(owner, now) => {
                let (token, _) = world.owners[owner]?;
                let event = LeaseEvent::Renew {
                    token,
                    now,
                    seconds: TERM,
                };
                if step(&mut world, event) == LeaseEffect::Store {
                    world.owners[owner] = Some((token, now + TERM));
                }
            }
            LeaseAction::Release(owner) => {
                let (token, _) = world.owners[owner]?;
                step(&mut world, LeaseEvent::Release { token });
                world.owners[owner] = None;
            }
            LeaseAction::Write(owner, now) => {
                let (token, until) = world.owners[owner]?;
                let current =
                    matches!(world.lease, LeaseState::Held { token: t, .. } if t == token);
                let allowed = if self.by_the_clock {
                    now < until
                } else {
                    current
                };
                if allowed {
                    world.overtaken |= token < world.written;
                    world.written = world.written.max(token);
                }
            }
        }
        (&world != before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "nobody writes after a newer owner",
                |_, world: &LeaseWorld| !world.overtaken,
            ),
            Property::always(
                "no two owners share a token",
                |_, world: &LeaseWorld| match world.owners {
                    [Some((a, _)), Some((b, _))] => a != b,
                    _ => true,
                },
            ),
            Property::sometimes("the lease changes hands", |_, world: &LeaseWorld| {
                world.written > 1
            }),
        ]
    }
}

#[test]
fn no_clock_lets_an_old_owner_write_after_a_newer_one() {
    holds(LeaseModel {
        by_the_clock: false,
    });
}

#[test]
fn a_lease_that_trusts_clocks_is_caught() {
    catches(
        LeaseModel { by_the_clock: true },
        "nobody writes after a newer owner",
    );
}
