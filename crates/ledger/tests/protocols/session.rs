//! The life of a session.

use crate::{catches, holds};
use flightproof_ledger::session::{self, SessionEffect, SessionEvent, SessionState};
use stateright::{Model, Property};

/// A session, and what really is there of it.
struct SessionModel {
    /// On purpose: a close that could not tell counts as deleted.
    assumes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SessionWorld {
    state: SessionState,
    /// Processes of it are there.
    alive: bool,
    /// It ran after its close began.
    ran_again: bool,
    closed: bool,
}

impl Model for SessionModel {
    type State = SessionWorld;
    /// What happens, and whether the teardown really removed everything.
    type Action = (SessionEvent, bool);

    fn init_states(&self) -> Vec<SessionWorld> {
        vec![SessionWorld {
            state: SessionState::Absent,
            alive: false,
            ran_again: false,
            closed: false,
        }]
    }

    fn actions(&self, world: &SessionWorld, actions: &mut Vec<(SessionEvent, bool)>) {
        use SessionEvent as E;
        for event in [E::Create, E::Run, E::Passivate, E::DeletionUncertain] {
            actions.push((event, false));
        }
        actions.extend([(E::Close, false), (E::Close, true)]);
        // Only whoever looked and found nothing may confirm.
        if !world.alive || self.assumes {
            actions.push((E::ConfirmDeletion, false));
        }
    }

    fn next_state(
        &self,
        before: &SessionWorld,
        (event, removed): (SessionEvent, bool),
    ) -> Option<SessionWorld> {
        let mut world = before.clone();
        let (next, effect) = session::decide(world.state, event);
        if effect == SessionEffect::Store {
            match event {
                SessionEvent::Run => {
                    world.ran_again |= world.closed;
                    world.alive = true;
                }
                SessionEvent::Close => {
                    world.closed = true;
                    world.alive &= !removed;
                }
                _ => {}
            }
        }
        world.state = next;
        (&world != before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("deleted means gone", |_, world: &SessionWorld| {
                world.state != SessionState::Deleted || !world.alive
            }),
            Property::always("nothing runs after a close", |_, world: &SessionWorld| {
                !world.ran_again
            }),
            Property::sometimes("a session ends", |_, world: &SessionWorld| {
                world.state == SessionState::Deleted
            }),
        ]
    }
}

#[test]
fn a_session_is_deleted_only_when_nothing_of_it_is_left_and_never_runs_again() {
    holds(SessionModel { assumes: false });
}

#[test]
fn a_deletion_that_is_assumed_is_caught() {
    catches(SessionModel { assumes: true }, "deleted means gone");
}
