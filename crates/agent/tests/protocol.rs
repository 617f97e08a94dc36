//! The protocol of a run, checked over every order of events: with crashes between any two steps,
//! with a ledger that does not answer, with sessions that do not close.

#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

use flightproof_agent::run::{Effect, Effects, Ended, Event, Outcome, State, Verdict, decide};
use flightproof_agent::{AgentCode, AgentRefusal, HoldEffect};
use flightproof_core::{Digest, MicroUsd};
use proptest::prelude::*;
use stateright::{Checker, Model, Property};

/// The protocol, or a broken one.
type Decide = fn(State, Event) -> Result<(State, Effects), AgentRefusal>;

const COST: u64 = 7;

fn settle(micros: u64) -> HoldEffect {
    HoldEffect::Settle(MicroUsd::from_micros(micros).unwrap())
}

fn said() -> Digest {
    Digest::of(b"what the program printed")
}

/// Driver, disk and world together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Scene {
    /// What is on disk.
    stored: State,
    /// What the driver, if it lives, has still to do or to hear.
    driver: Option<Step>,
    crashes: u8,
    world: World,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    Act(Effect),
    Hear(Event),
    Wait,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct World {
    starts: u8,
    running: bool,
    session: bool,
    captures_of_a_closed_session: u8,
    captures_of_a_running_program: u8,
    captured: bool,
    spent: u64,
    hold: Hold,
    /// A hold was ended, and then ended otherwise.
    changed_mind: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Hold {
    #[default]
    None,
    Held,
    Ended(HoldEffect),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Action {
    /// The driver does what it has to do, with this result.
    Act(Answer),
    /// The driver hears what it has to hear.
    Hear(Event),
    Crash,
    Restart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Done,
    Refused,
    /// The effect took place, and its answer was lost.
    Uncertain,
}

struct Flights {
    decide: Decide,
    most_crashes: u8,
}

impl Model for Flights {
    type State = Scene;
    type Action = Action;

    fn init_states(&self) -> Vec<Scene> {
        vec![Scene {
            stored: State::Planned,
            driver: Some(Step::Hear(Event::Begin)),
            crashes: 0,
            world: World::default(),
        }]
    }

    fn actions(&self, scene: &Scene, actions: &mut Vec<Action>) {
        match &scene.driver {
            None => actions.push(Action::Restart),
            Some(Step::Act(_)) => {
                actions.extend([Answer::Done, Answer::Refused, Answer::Uncertain].map(Action::Act));
            }
            Some(Step::Hear(event)) => actions.push(Action::Hear(*event)),
            Some(Step::Wait) => {
                if matches!(
                    scene.stored,
                    State::Running | State::Launching | State::Stopping
                ) {
                    let events = [
                        Event::Progress,
                        Event::DeadlinePassed,
                        Event::Terminal(
                            Verdict::Good(MicroUsd::from_micros(COST).unwrap()),
                            said(),
                        ),
                        Event::Terminal(
                            Verdict::Bad(AgentCode::NoResult, HoldEffect::Keep),
                            said(),
                        ),
                        Event::Terminal(
                            Verdict::Bad(AgentCode::BudgetExhausted, settle(COST)),
                            said(),
                        ),
                        // A reader that would say so about a run that happened.
                        Event::Terminal(
                            Verdict::Bad(AgentCode::NoResult, HoldEffect::Release),
                            said(),
                        ),
                    ];
                    actions.extend(events.map(Action::Hear));
                }
            }
        }
        if scene.driver.is_some() && scene.crashes < self.most_crashes {
            actions.push(Action::Crash);
        }
    }

    fn next_state(&self, scene: &Scene, action: Action) -> Option<Scene> {
        let mut next = scene.clone();
        match action {
            Action::Crash => {
                next.driver = None;
                next.crashes += 1;
            }
            Action::Restart => next.driver = Some(Step::Hear(restart(next.stored))),
            Action::Hear(event) => next.hear(self.decide, event)?,
            Action::Act(answer) => next.act(answer),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a program is started at most once", |_, s: &Scene| {
                s.world.starts <= 1
            }),
            Property::always("what was started is never released", |_, s: &Scene| {
                s.world.starts == 0 || s.world.hold != Hold::Ended(HoldEffect::Release)
            }),
            Property::always("a hold ends one way", |_, s: &Scene| !s.world.changed_mind),
            Property::always(
                "what was spent is settled or kept",
                |_, s: &Scene| match s.world.hold {
                    Hold::Ended(HoldEffect::Settle(amount)) => amount.micros() >= s.world.spent,
                    Hold::Ended(HoldEffect::Release) => s.world.spent == 0,
                    Hold::None => s.world.spent == 0,
                    Hold::Held | Hold::Ended(HoldEffect::Keep) => true,
                },
            ),
            Property::always(
                "only work of an open, quiet session is captured",
                |_, s: &Scene| {
                    s.world.captures_of_a_closed_session == 0
                        && s.world.captures_of_a_running_program == 0
                },
            ),
            Property::always("a proposal was captured and settled", |_, s: &Scene| {
                !matches!(
                    s.stored,
                    State::Done { ended: Ended { outcome: Outcome::Captured, hold, .. } }
                    if !s.world.captured || hold != settle(COST)
                )
            }),
            Property::always(
                "what is over left no session and no open hold",
                |_, s: &Scene| {
                    let State::Done { ended } = s.stored else {
                        return true;
                    };
                    let certain = ended.outcome != Outcome::Failed(AgentCode::CloseUncertain);
                    let open = s.world.hold == Hold::Held;
                    let running = s.world.session || s.world.running;
                    !open && (!certain || !running)
                },
            ),
            Property::always("nothing happens after the end", |_, s: &Scene| {
                !matches!(s.stored, State::Done { .. }) || !matches!(s.driver, Some(Step::Act(_)))
            }),
            Property::sometimes(
                "a proposal is made",
                |_, s: &Scene| matches!(s.stored, State::Done { ended } if ended.outcome == Outcome::Captured),
            ),
            Property::sometimes("a hold is kept", |_, s: &Scene| {
                s.world.hold == Hold::Ended(HoldEffect::Keep)
            }),
            Property::sometimes("a hold is released", |_, s: &Scene| {
                s.world.hold == Hold::Ended(HoldEffect::Release)
            }),
            Property::sometimes("a crash is survived to a proposal", |_, s: &Scene| {
                s.crashes > 0
                    && matches!(s.stored, State::Done { ended } if ended.outcome == Outcome::Captured)
            }),
        ]
    }
}

fn restart(stored: State) -> Event {
    match stored {
        State::Planned => Event::Begin,
        _ => Event::Recovered,
    }
}

impl Scene {
    /// The driver decides and stores; what it then does is a step of its own, so that a crash can
    /// come between.
    fn hear(&mut self, decide: Decide, event: Event) -> Option<()> {
        let (state, effects) = decide(self.stored, event).ok()?;
        if let Event::Terminal(..) = event {
            self.world.running = false;
        }
        self.stored = state;
        assert!(effects.len() <= 1, "{effects:?}");
        self.driver = Some(effects.first().map_or(Step::Wait, |e| Step::Act(*e)));
        Some(())
    }

    fn act(&mut self, answer: Answer) {
        let Some(Step::Act(effect)) = self.driver.clone() else {
            return;
        };
        let done = answer != Answer::Refused;
        let heard = match effect {
            Effect::Reserve => {
                if done && self.world.hold == Hold::None {
                    self.world.hold = Hold::Held;
                }
                match answer {
                    Answer::Done => Event::Held,
                    Answer::Refused => Event::NotHeld(AgentCode::HoldRefused),
                    Answer::Uncertain => Event::NotHeld(AgentCode::HoldUncertain),
                }
            }
            Effect::Open => {
                self.world.session |= done;
                match answer {
                    Answer::Done => Event::Opened,
                    _ => Event::NotOpened(AgentCode::SpawnFailed),
                }
            }
            Effect::Launch => {
                if done {
                    self.world.starts += 1;
                    self.world.running = true;
                    self.world.spent = COST;
                }
                match answer {
                    Answer::Refused => Event::NotStarted(AgentCode::SpawnFailed),
                    _ => Event::Started,
                }
            }
            Effect::Capture => {
                self.world.captures_of_a_closed_session += u8::from(!self.world.session);
                self.world.captures_of_a_running_program += u8::from(self.world.running);
                self.world.captured |= done;
                match answer {
                    Answer::Done => Event::Captured,
                    _ => Event::NotCaptured,
                }
            }
            Effect::Close => {
                self.world.session &= !done;
                self.world.running &= !done;
                match answer {
                    Answer::Done => Event::Closed,
                    _ => Event::NotClosed,
                }
            }
            Effect::Settle(hold) => {
                if done {
                    self.world.end_hold(hold);
                }
                match answer {
                    Answer::Done => Event::Settled,
                    _ => Event::NotSettled,
                }
            }
        };
        // A ledger that did not answer is opened anew, and the run recovered.
        self.driver = match heard {
            Event::NotSettled if self.crashes >= 2 => Some(Step::Hear(Event::Settled)),
            Event::NotSettled => {
                self.crashes += 1;
                None
            }
            event => Some(Step::Hear(event)),
        };
        if let (Some(Step::Hear(Event::Settled)), Effect::Settle(hold)) = (&self.driver, effect) {
            self.world.end_hold(hold);
        }
    }
}

impl World {
    fn end_hold(&mut self, hold: HoldEffect) {
        match self.hold {
            // A run without a hold has nothing to release.
            Hold::None if hold == HoldEffect::Release => {}
            Hold::None | Hold::Held => self.hold = Hold::Ended(hold),
            Hold::Ended(before) => self.changed_mind |= before != hold,
        }
    }
}

fn check(decide: Decide) -> Vec<&'static str> {
    let model = Flights {
        decide,
        most_crashes: 6,
    };
    let checker = model
        .checker()
        .target_max_depth(60)
        .target_state_count(1_000_000)
        .spawn_bfs()
        .join();
    assert!(
        checker.unique_state_count() > 200,
        "{}",
        checker.unique_state_count()
    );
    assert!(
        checker.unique_state_count() < 1_000_000,
        "the search was cut off"
    );
    println!("{} states", checker.unique_state_count());
    let broken = |property: &Property<Flights>| {
        let found = checker.discovery(property.name).is_some();
        let wanted = matches!(property.expectation, stateright::Expectation::Sometimes);
        (found != wanted).then_some(property.name)
    };
    checker
        .model()
        .properties()
        .iter()
        .filter_map(broken)
        .collect()
}

#[test]
fn every_order_of_events_keeps_the_promises_of_a_run() {
    assert_eq!(check(decide), Vec::<&str>::new());
}

/// Starts again after a crash, as a queue of jobs would.
fn restarts(state: State, event: Event) -> Result<(State, Effects), AgentRefusal> {
    match (state, event) {
        (State::Launching | State::Running, Event::Recovered) => {
            Ok((State::Launching, vec![Effect::Launch]))
        }
        other => decide(other.0, other.1),
    }
}

/// Frees the hold of a run whose driver died, as a reservation that runs out would.
fn forgives(state: State, event: Event) -> Result<(State, Effects), AgentRefusal> {
    match (state, event) {
        (State::Launching | State::Running, Event::Recovered) => {
            let ended = Ended {
                outcome: Outcome::Failed(AgentCode::Interrupted),
                hold: HoldEffect::Release,
                result: None,
            };
            Ok((State::Closing { ended }, vec![Effect::Close]))
        }
        other => decide(other.0, other.1),
    }
}

/// Destroys the session first and captures then.
fn hurries(state: State, event: Event) -> Result<(State, Effects), AgentRefusal> {
    match (state, event) {
        (State::Capturing { ended }, Event::Recovered) => {
            Ok((State::Capturing { ended }, vec![Effect::Capture]))
        }
        (State::Running, Event::DeadlinePassed) => {
            let ended = Ended {
                outcome: Outcome::Finished,
                hold: settle(COST),
                result: None,
            };
            Ok((State::Capturing { ended }, vec![Effect::Capture]))
        }
        other => decide(other.0, other.1),
    }
}

/// Believes the known cost of a session that may still be there, and forgets to close after a
/// capture that failed.
fn forgets(state: State, event: Event) -> Result<(State, Effects), AgentRefusal> {
    match (state, event) {
        (State::Capturing { ended }, Event::NotCaptured) => {
            let ended = Ended {
                outcome: Outcome::Failed(AgentCode::CaptureFailed),
                ..ended
            };
            Ok((State::Settling { ended }, vec![Effect::Settle(ended.hold)]))
        }
        other => decide(other.0, other.1),
    }
}

#[test]
fn broken_protocols_are_noticed() {
    let once = "a program is started at most once";
    let released = "what was started is never released";
    let quiet = "only work of an open, quiet session is captured";
    let left = "what is over left no session and no open hold";
    for (broken, noticed) in [
        (restarts as Decide, once),
        (forgives, released),
        (hurries, quiet),
        (forgets, left),
    ] {
        let found = check(broken);
        assert!(found.contains(&noticed), "{noticed}: {found:?}");
    }
}

fn events() -> Vec<Event> {
    let cost = MicroUsd::from_micros(COST).unwrap();
    vec![
        Event::Begin,
        Event::Held,
        Event::NotHeld(AgentCode::HoldRefused),
        Event::Opened,
        Event::NotOpened(AgentCode::SpawnFailed),
        Event::Started,
        Event::NotStarted(AgentCode::SpawnFailed),
        Event::Progress,
        Event::DeadlinePassed,
        Event::Terminal(Verdict::Good(cost), said()),
        Event::Terminal(Verdict::Bad(AgentCode::NoResult, HoldEffect::Keep), said()),
        Event::Terminal(
            Verdict::Bad(AgentCode::NoResult, HoldEffect::Release),
            said(),
        ),
        Event::Captured,
        Event::NotCaptured,
        Event::Closed,
        Event::NotClosed,
        Event::Settled,
        Event::NotSettled,
        Event::SettledOtherwise,
        Event::Recovered,
    ]
}

/// Walks through the protocol: each number chooses one of the events that can happen, so that
/// every walk gets somewhere.
fn walk(choices: &[usize]) -> Vec<(State, Event, State, Effects)> {
    let events = events();
    let mut state = State::Planned;
    let mut steps = Vec::new();
    for choice in choices {
        let possible: Vec<_> = events
            .iter()
            .filter_map(|event| Some((*event, decide(state, *event).ok()?)))
            .collect();
        let (event, (next, effects)) = possible[choice % possible.len()].clone();
        steps.push((state, event, next, effects));
        state = next;
    }
    steps
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Events in any order, from any driver at all.
    #[test]
    fn no_order_of_events_starts_twice_or_wakes_what_is_over(
        choices in proptest::collection::vec(0usize..1_000, 0..40),
    ) {
        let mut launches = 0;
        for (before, _, next, effects) in walk(&choices) {
            launches += effects.iter().filter(|e| **e == Effect::Launch).count();
            if matches!(before, State::Done { .. }) {
                prop_assert_eq!(next, before);
                prop_assert!(effects.is_empty());
            }
            if launches > 0 {
                prop_assert!(!effects.contains(&Effect::Settle(HoldEffect::Release)));
            }
        }
        prop_assert!(launches <= 1);
    }

    #[test]
    fn a_stored_state_reads_back_as_itself(
        choices in proptest::collection::vec(0usize..1_000, 0..20),
    ) {
        for (_, _, state, _) in walk(&choices) {
            let text = serde_json::to_string(&state).unwrap();
            prop_assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
        }
    }
}

#[test]
fn walks_reach_every_kind_of_end() {
    let mut ends = std::collections::HashSet::new();
    for first in 0..2_000usize {
        let mut number = first as u64;
        let choices: Vec<usize> = std::iter::repeat_with(|| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(number >> 40).unwrap()
        })
        .take(40)
        .collect();
        if let Some((_, _, State::Done { ended }, _)) = walk(&choices).last() {
            ends.insert(ended.outcome);
        }
    }
    assert!(ends.contains(&Outcome::Captured), "{ends:?}");
    assert!(ends.len() >= 5, "{ends:?}");
}

#[test]
fn an_event_out_of_turn_is_refused_and_an_uncertain_close_outranks_success() {
    let early = decide(State::Planned, Event::Started).map_err(|e| e.code);
    assert_eq!(early, Err(AgentCode::OutOfTurn));
    let ended = Ended {
        outcome: Outcome::Captured,
        hold: settle(COST),
        result: None,
    };
    let (state, effects) = decide(State::Closing { ended }, Event::NotClosed).unwrap();
    let expected = Ended {
        outcome: Outcome::Failed(AgentCode::CloseUncertain),
        hold: HoldEffect::Keep,
        result: None,
    };
    assert_eq!(state, State::Settling { ended: expected });
    assert_eq!(effects, [Effect::Settle(HoldEffect::Keep)]);
}
