//! The protocols by themselves, through every interleaving a small world has: crashes, doubled and
//! reordered messages, clocks that jump. Each model is also run with a broken protocol, which it
//! must catch.
#![expect(clippy::unwrap_used, reason = "a model that cannot be built must fail")]

use flightproof_core::MicroUsd;
use flightproof_ledger::hold::{self, Books, Cap, Caps, HoldEffect, HoldEvent, HoldState};
use flightproof_ledger::inbox::{self, KeyEffect, KeyEvent, KeyState};
use flightproof_ledger::lease::{self, LeaseEffect, LeaseEvent, LeaseState};
use flightproof_ledger::relay::{
    self, ReceiverEffect, ReceiverState, SenderEffect, SenderEvent, SenderState,
};
use flightproof_ledger::session::{self, SessionEffect, SessionEvent, SessionState};
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::BTreeSet;
use std::time::Duration;

/// Most states of a model, and the most time it may take.
const STATES: usize = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Checks a model that must hold everywhere, to the end of its world.
fn holds<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: std::fmt::Debug + std::hash::Hash + Clone + PartialEq + Send + Sync,
    M::Action: std::fmt::Debug + Clone + PartialEq + Send + Sync,
{
    let checker = model
        .checker()
        .target_state_count(STATES)
        .timeout(PATIENCE)
        .spawn_bfs()
        .join();
    println!("{} states", checker.unique_state_count());
    assert!(checker.is_done() && checker.unique_state_count() < STATES);
    checker.assert_properties();
}

/// Checks a model that is broken on purpose: the property must be found violated.
fn catches<M>(model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: std::fmt::Debug + std::hash::Hash + Clone + PartialEq + Send + Sync,
    M::Action: std::fmt::Debug + Clone + PartialEq + Send + Sync,
{
    let checker = model
        .checker()
        .target_state_count(STATES)
        .timeout(PATIENCE)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    assert!(
        checker.discovery(property).is_some(),
        "{property} was not violated"
    );
}

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
                Packet::Burst { .. } => {
                    actions.push(RelayAction::Deliver(*connection, *packet));
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
            RelayAction::DieBeforeAnswer(..) => return None,
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
        let counts = |state: &HoldState| state.counts(usd(HELD)).micros();
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
}

#[derive(Debug, Clone, PartialEq)]
enum KeyAction {
    Receive,
    Answer,
    TakeOver,
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
        }]
    }

    fn actions(&self, world: &KeyWorld, actions: &mut Vec<KeyAction>) {
        use KeyAction as A;
        actions.extend([A::Receive, A::Answer, A::Reconcile, A::Forget]);
        if world.owner < 4 {
            actions.push(A::TakeOver);
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
            KeyAction::Reconcile => {
                if step(&mut world, KeyEvent::Reconcile) == KeyEffect::Store {
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
