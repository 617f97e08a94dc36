//! A request under its key.

use crate::{catches, holds};
use flightproof_ledger::inbox::{self, KeyEffect, KeyEvent, KeyState};
use stateright::{Model, Property};

/// A request under its key, its owners, and how often it is really done.
struct KeyModel {
    /// On purpose: a new owner starts over.
    reruns: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct KeyWorld {
    state: KeyState,
    owner: u8,
    /// Which owner has the work in hand.
    hands: Option<u8>,
    /// How often somebody was told to do it, and how often an answer was stored.
    begun: u8,
    answers: u8,
    /// Somebody else answered while its owner worked on it.
    under_way: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum KeyAction {
    Receive,
    Answer,
    TakeOver,
    Leave,
    Reconcile,
    Forget,
}

impl Model for KeyModel {
    type State = KeyWorld;
    type Action = KeyAction;

    fn init_states(&self) -> Vec<KeyWorld> {
        vec![KeyWorld {
            state: KeyState::Free,
            owner: 1,
            hands: None,
            begun: 0,
            answers: 0,
            under_way: false,
        }]
    }

    fn actions(&self, world: &KeyWorld, actions: &mut Vec<KeyAction>) {
        use KeyAction as A;
        actions.extend([A::Receive, A::Answer, A::Reconcile, A::Forget]);
        if world.owner < 4 {
            actions.push(A::TakeOver);
        }
        if world.hands.is_some() {
            actions.push(A::Leave);
        }
    }

    fn next_state(&self, before: &KeyWorld, action: KeyAction) -> Option<KeyWorld> {
        let mut world = before.clone();
        let step = |world: &mut KeyWorld, event| {
            let (next, effect) = inbox::decide(world.state, event);
            world.state = next;
            effect
        };
        match action {
            KeyAction::Receive => {
                let event = KeyEvent::Receive {
                    same: true,
                    owner_alive: world.hands == Some(world.owner),
                };
                let effect = step(&mut world, event);
                let again = self.reruns && effect == KeyEffect::SayUnknown;
                if effect == KeyEffect::Work || again {
                    world.hands = Some(world.owner);
                    world.begun = (world.begun + 1).min(2);
                }
            }
            KeyAction::Answer => {
                let owner = world.hands == Some(world.owner);
                if step(&mut world, KeyEvent::Answer { owner }) == KeyEffect::Store {
                    world.answers += 1;
                    world.hands = None;
                }
            }
            KeyAction::TakeOver => {
                world.owner += 1;
                step(&mut world, KeyEvent::OwnerGone);
            }
            // The lease is given back, and nobody takes it.
            KeyAction::Leave => world.hands = None,
            KeyAction::Reconcile => {
                let owner_alive = world.hands == Some(world.owner);
                let effect = step(&mut world, KeyEvent::Reconcile { owner_alive });
                if effect == KeyEffect::Store {
                    world.under_way |= owner_alive;
                    world.answers += 1;
                }
            }
            KeyAction::Forget => {
                step(&mut world, KeyEvent::Forget);
            }
        }
        (&world != before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("taken up once", |_, world: &KeyWorld| {
                world.begun <= 1 && world.answers <= 1
            }),
            Property::always("a key is never free again", |_, world: &KeyWorld| {
                world.state != KeyState::Free || world.begun == 0
            }),
            Property::always(
                "nobody answers for an owner that lives",
                |_, w: &KeyWorld| !w.under_way,
            ),
            Property::sometimes("it is answered", |_, world: &KeyWorld| world.answers == 1),
        ]
    }
}

#[test]
fn a_request_is_taken_up_once_and_answered_once() {
    holds(KeyModel { reruns: false });
}

#[test]
fn an_inbox_that_starts_over_is_caught() {
    catches(KeyModel { reruns: true }, "taken up once");
}
