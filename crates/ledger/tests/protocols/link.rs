//! A link between two ledgers.

use crate::{catches, holds};
use flightproof_ledger::relay::{
    self, ReceiverEffect, ReceiverState, SenderEffect, SenderEvent, SenderState,
};
use stateright::{Model, Property};
use std::collections::BTreeSet;

/// Two ends of a link and what is between them.
struct RelayModel {
    broken: Option<BrokenRelay>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum BrokenRelay {
    /// The sender counts an acknowledgement that never came.
    MarksWhenSending,
    /// The receiver's effect is not part of the transaction that counts it.
    EffectOutside,
    /// The receiver applies again what comes again.
    AppliesTwice,
}

/// Messages and connections of the world: a larger one with `FLIGHTPROOF_FULL_SWEEP=1`.
static WORLD: std::sync::LazyLock<(u64, u8)> = std::sync::LazyLock::new(|| {
    if std::env::var_os("FLIGHTPROOF_FULL_SWEEP").is_some() {
        (6, 4)
    } else {
        (4, 3)
    }
});
const BURST: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RelayWorld {
    sender: SenderState,
    receiver: ReceiverState,
    /// What was applied, in order.
    log: Vec<u64>,
    connection: u8,
    /// What was ever said over each connection: it may come late, twice, or not at all.
    network: BTreeSet<(u8, Packet)>,
    stopped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Packet {
    Burst { first: u64, last: u64 },
    Answers { first: u64, count: u64 },
}

#[derive(Debug, Clone, PartialEq)]
enum RelayAction {
    Queue,
    Connect,
    Deliver(u8, Packet),
    /// The first message of a burst is taken, and its answer fills a frame.
    DeliverInPart(u8, Packet),
    /// The answers come, and the sender dies before it has recorded them.
    DieBeforeMark(u8, Packet),
    /// The burst is applied, and the receiver dies before it answers.
    DieBeforeAnswer(u8, Packet),
    Lose,
}

impl RelayModel {
    fn sender_step(&self, world: &mut RelayWorld, event: SenderEvent) {
        let (next, effects) = relay::send(world.sender, event, BURST);
        world.sender = next;
        for effect in effects {
            match effect {
                SenderEffect::Send { first, last } => {
                    let burst = Packet::Burst { first, last };
                    world.network.insert((world.connection, burst));
                    if self.broken == Some(BrokenRelay::MarksWhenSending) {
                        world.sender.acknowledged = last;
                    }
                }
                SenderEffect::Refused { .. } | SenderEffect::Diverged => world.stopped = true,
                SenderEffect::Mark { .. } | SenderEffect::Idle => {}
            }
        }
    }

    fn receiver_step(&self, world: &mut RelayWorld, first: u64, last: u64) -> u64 {
        let mut count = 0;
        for seq in first..=last {
            let (next, effect) = relay::receive(world.receiver, seq, true);
            match effect {
                ReceiverEffect::Apply => {
                    world.receiver = next;
                    world.log.push(seq);
                }
                ReceiverEffect::Replay => {
                    if self.broken == Some(BrokenRelay::AppliesTwice) {
                        world.log.push(seq);
                    }
                }
                ReceiverEffect::Gap | ReceiverEffect::Differs => break,
            }
            count += 1;
        }
        count
    }
}

impl Model for RelayModel {
    type State = RelayWorld;
    type Action = RelayAction;

    fn init_states(&self) -> Vec<RelayWorld> {
        vec![RelayWorld {
            sender: SenderState::default(),
            receiver: ReceiverState::default(),
            log: Vec::new(),
            connection: 0,
            network: BTreeSet::new(),
            stopped: false,
        }]
    }

    fn actions(&self, world: &RelayWorld, actions: &mut Vec<RelayAction>) {
        if world.stopped {
            return;
        }
        if world.sender.queued < WORLD.0 {
            actions.push(RelayAction::Queue);
        }
        if world.connection < WORLD.1 {
            actions.push(RelayAction::Connect);
        }
        if world.sender.connected {
            actions.push(RelayAction::Lose);
        }
        for (connection, packet) in &world.network {
            // Even what was said over an earlier connection still comes to the receiver: a frame
            // that was on its way. It never comes to the sender: its code would not fit.
            match packet {
                Packet::Burst { first, last } => {
                    actions.push(RelayAction::Deliver(*connection, *packet));
                    if first < last && *connection == world.connection {
                        actions.push(RelayAction::DeliverInPart(*connection, *packet));
                    }
                    actions.push(RelayAction::DieBeforeAnswer(*connection, *packet));
                }
                Packet::Answers { .. } if *connection == world.connection => {
                    actions.push(RelayAction::Deliver(*connection, *packet));
                    actions.push(RelayAction::DieBeforeMark(*connection, *packet));
                }
                Packet::Answers { .. } => {}
            }
        }
    }

    fn next_state(&self, before: &RelayWorld, action: RelayAction) -> Option<RelayWorld> {
        let mut world = before.clone();
        match action {
            RelayAction::Queue => self.sender_step(&mut world, SenderEvent::Queue),
            RelayAction::Connect => {
                world.connection += 1;
                let applied = world.receiver.applied;
                self.sender_step(&mut world, SenderEvent::Connect { applied });
            }
            RelayAction::Lose => self.sender_step(&mut world, SenderEvent::Lose),
            RelayAction::DeliverInPart(connection, Packet::Burst { first, .. }) => {
                let count = self.receiver_step(&mut world, first, first);
                let answers = Packet::Answers { first, count };
                world.network.insert((connection, answers));
            }
            RelayAction::Deliver(connection, Packet::Burst { first, last }) => {
                let count = self.receiver_step(&mut world, first, last);
                let answers = Packet::Answers { first, count };
                world.network.insert((connection, answers));
            }
            RelayAction::Deliver(_, Packet::Answers { first, count }) => {
                self.sender_step(&mut world, SenderEvent::Acknowledge { first, count });
            }
            RelayAction::DieBeforeAnswer(_, Packet::Burst { first, last }) => {
                self.receiver_step(&mut world, first, last);
                if self.broken == Some(BrokenRelay::EffectOutside) {
                    world.receiver = before.receiver;
                }
            }
            RelayAction::DieBeforeMark(..) => {
                world.sender.in_flight = None;
                world.sender.connected = false;
            }
            RelayAction::DieBeforeAnswer(..) | RelayAction::DeliverInPart(..) => return None,
        }
        (&world != before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("applied once and in order", |_, world: &RelayWorld| {
                world.log.iter().copied().eq(1..=world.receiver.applied)
            }),
            Property::always("acknowledged means applied", |_, world: &RelayWorld| {
                world.sender.acknowledged <= world.receiver.applied
            }),
            Property::always("one burst in flight", |_, world: &RelayWorld| {
                world.sender.in_flight.is_none_or(|(first, last)| {
                    first == world.sender.acknowledged + 1 && last <= world.sender.queued
                })
            }),
            Property::always("honest ends never stop", |_, world: &RelayWorld| {
                !world.stopped
            }),
            Property::sometimes("everything arrives", |_, world: &RelayWorld| {
                world.sender.acknowledged == WORLD.0
            }),
        ]
    }
}

#[test]
fn a_link_applies_once_and_in_order_through_cuts_deaths_copies_and_reordering() {
    holds(RelayModel { broken: None });
}

#[test]
fn broken_links_are_caught() {
    for (broken, property) in [
        (BrokenRelay::MarksWhenSending, "acknowledged means applied"),
        (BrokenRelay::EffectOutside, "applied once and in order"),
        (BrokenRelay::AppliesTwice, "applied once and in order"),
    ] {
        let broken = Some(broken);
        catches(RelayModel { broken }, property);
    }
}
