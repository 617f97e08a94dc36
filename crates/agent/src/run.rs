//! One run of an agent, as a pure machine: money is held, the program runs at most once, its work
//! is captured while its session is still there, the session is destroyed, the money is settled.
//!
//! [`decide`] takes a state and an event and gives the next state and what to do then. The driver
//! stores the state **before** it does anything, so a state that says *launching* means "it may
//! have been started", and no state but that one leads to a start. After a crash the stored state
//! is loaded and [`Event::Recovered`] is what comes first.

use crate::{AgentCode, AgentRefusal, HoldEffect};
use flightproof_core::{Code, Digest, MicroUsd};
use serde::{Deserialize, Serialize};

/// Where a run stands. Stored before its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state", deny_unknown_fields)]
pub enum State {
    /// Nothing was done yet.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    Planned,
    /// The hold is being asked for.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    Reserving,
    /// The hold is there; the session is being opened. Nothing can have been spent.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    Opening,
    /// The program is being started, or was.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    Launching,
    /// The program runs.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    Running,
    /// The program was told to stop.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    Stopping,
    /// The program ended well; its work is being captured.
    Capturing {
        /// How it ended.
        ended: Ended,
    },
    /// The session is being destroyed.
    Closing {
        /// How it ended.
        ended: Ended,
    },
    /// The hold is being ended.
    Settling {
        /// How it ended.
        ended: Ended,
    },
    /// It is over. Nothing that is told to it now has an effect.
    Done {
        /// How it ended.
        ended: Ended,
    },
}

/// How a run ended, and what becomes of its hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// What it came to.
    pub outcome: Outcome,
    /// What becomes of the hold.
    pub hold: HoldEffect,
    /// Digest of everything the program printed, if it ended.
    pub result: Option<Digest>,
}

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Outcome {
    /// The program ended well; its work is not captured yet.
    Finished,
    /// Its work is captured: there is a proposal.
    Captured,
    /// It failed, for this reason.
    Failed(AgentCode),
}

impl From<Outcome> for String {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Finished => "finished".to_owned(),
            Outcome::Captured => "captured".to_owned(),
            Outcome::Failed(code) => code.explanation().code.to_owned(),
        }
    }
}

impl TryFrom<String> for Outcome {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let failed = |text: &str| {
            let mut codes = AgentCode::ALL.iter();
            codes.find(|code| code.explanation().code == text).copied()
        };
        match text.as_str() {
            "finished" => Ok(Self::Finished),
            "captured" => Ok(Self::Captured),
            code => failed(code)
                .map(Self::Failed)
                .ok_or_else(|| "no outcome of a run".to_owned()),
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The run is wanted.
    Begin,
    /// The hold is there.
    Held,
    /// The ledger said no, or may not have heard. What there may be of a hold is released.
    NotHeld(AgentCode),
    /// The session is open.
    Opened,
    /// There is no session.
    NotOpened(AgentCode),
    /// The program was started.
    Started,
    /// The program could not be started; nothing ran.
    NotStarted(AgentCode),
    /// The program printed something, or made a request.
    Progress,
    /// Its time is over.
    DeadlinePassed,
    /// The program has ended, and its accounting was judged and stored. With the digest of what
    /// it printed.
    Terminal(Verdict, Digest),
    /// Its work is one bundle on the host.
    Captured,
    /// It is not.
    NotCaptured,
    /// Nothing of the session is left.
    Closed,
    /// Something may be left.
    NotClosed,
    /// The ledger has ended the hold.
    Settled,
    /// It is not known whether it has.
    NotSettled,
    /// The hold was ended before, otherwise.
    SettledOtherwise,
    /// The driver died; the state was loaded.
    Recovered,
}

/// The judgement of a terminal result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Every sign agrees; this is settled.
    Good(MicroUsd),
    /// It is refused.
    Bad(AgentCode, HoldEffect),
}

/// What to do, after the new state was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Ask the ledger for the hold.
    Reserve,
    /// Open the session.
    Open,
    /// Note in the ledger that the program may run, then start it.
    Launch,
    /// Fetch the work as a bundle.
    Capture,
    /// Destroy the session, if there is one.
    Close,
    /// End the hold.
    Settle(HoldEffect),
}

/// What to do next, in order. At most one thing at a time today.
pub type Effects = Vec<Effect>;

/// The whole protocol.
///
/// # Errors
/// `OUT_OF_TURN` for an event that cannot happen in this state; state and world stay as they are.
pub fn decide(state: State, event: Event) -> Result<(State, Effects), AgentRefusal> {
    use Event as E;
    use State as S;
    let next = match (state, event) {
        // What is over stays over: a replayed ending runs nothing again.
        (S::Done { .. }, _) => (state, vec![]),
        (state, E::Recovered) => recovered(state),

        (S::Planned, E::Begin) => (S::Reserving, vec![Effect::Reserve]),
        (S::Reserving, E::Held) => (S::Opening, vec![Effect::Open]),
        (S::Reserving, E::NotHeld(code)) => settling(nothing_ran(code)),
        (S::Opening, E::Opened) => (S::Launching, vec![Effect::Launch]),
        (S::Opening, E::NotOpened(code)) => closing(nothing_ran(code)),

        (S::Launching, E::Started) => (S::Running, vec![]),
        // The ledger may already know that it may have run: the hold is not released, it is ended
        // with a cost of nothing.
        (S::Launching, E::NotStarted(code)) => closing(Ended {
            outcome: Outcome::Failed(code),
            hold: HoldEffect::Settle(MicroUsd::ZERO),
            result: None,
        }),
        (S::Running, E::Progress) => (S::Running, vec![]),
        // The program's own patience ends it.
        (S::Running, E::DeadlinePassed) => (S::Stopping, vec![]),
        (S::Stopping, E::Progress | E::DeadlinePassed) => (S::Stopping, vec![]),

        (S::Launching | S::Running, E::Terminal(Verdict::Good(cost), result)) => {
            let ended = Ended {
                outcome: Outcome::Finished,
                hold: HoldEffect::Settle(cost),
                result: Some(result),
            };
            (S::Capturing { ended }, vec![Effect::Capture])
        }
        // It ended well, and late.
        (S::Stopping, E::Terminal(Verdict::Good(cost), result)) => closing(Ended {
            outcome: Outcome::Failed(AgentCode::DeadlinePassed),
            hold: HoldEffect::Settle(cost),
            result: Some(result),
        }),
        (
            S::Launching | S::Running | S::Stopping,
            E::Terminal(Verdict::Bad(code, hold), result),
        ) => closing(Ended {
            outcome: Outcome::Failed(code),
            hold: started(hold),
            result: Some(result),
        }),

        (S::Capturing { ended }, E::Captured) => closing(Ended {
            outcome: Outcome::Captured,
            ..ended
        }),
        (S::Capturing { ended }, E::NotCaptured) => closing(Ended {
            outcome: Outcome::Failed(AgentCode::CaptureFailed),
            ..ended
        }),

        (S::Closing { ended }, E::Closed) => settling(ended),
        (S::Closing { ended }, E::NotClosed) => settling(left_open(ended)),

        (S::Settling { ended }, E::Settled) => (S::Done { ended }, vec![]),
        // Asked again after the ledger was opened anew, under the same key.
        (S::Settling { ended }, E::NotSettled) => (S::Settling { ended }, vec![]),
        (S::Settling { ended }, E::SettledOtherwise) => {
            let ended = Ended {
                outcome: Outcome::Failed(AgentCode::SettleConflict),
                ..ended
            };
            (S::Done { ended }, vec![])
        }
        (state, event) => {
            return Err(AgentCode::OutOfTurn.refuse(format!("{event:?} in {state:?}")));
        }
    };
    Ok(next)
}

/// What to do with a state that was found after a crash. What may have run is never run again, and
/// what it has cost is unknown unless its accounting was stored.
fn recovered(state: State) -> (State, Effects) {
    let unknown = Ended {
        outcome: Outcome::Failed(AgentCode::Interrupted),
        hold: HoldEffect::Keep,
        result: None,
    };
    match state {
        State::Planned => (state, vec![]),
        State::Reserving | State::Opening => closing(nothing_ran(AgentCode::Interrupted)),
        State::Launching | State::Running | State::Stopping => closing(unknown),
        // The accounting is there and the work is not: its session died with the driver.
        State::Capturing { ended } => closing(Ended {
            outcome: Outcome::Failed(AgentCode::CaptureFailed),
            ..ended
        }),
        State::Closing { ended } => closing(ended),
        State::Settling { ended } => settling(ended),
        State::Done { .. } => (state, vec![]),
    }
}

fn closing(ended: Ended) -> (State, Effects) {
    (State::Closing { ended }, vec![Effect::Close])
}

fn settling(ended: Ended) -> (State, Effects) {
    (State::Settling { ended }, vec![Effect::Settle(ended.hold)])
}

fn nothing_ran(code: AgentCode) -> Ended {
    Ended {
        outcome: Outcome::Failed(code),
        hold: HoldEffect::Release,
        result: None,
    }
}

/// Nothing that was started is ever released.
fn started(hold: HoldEffect) -> HoldEffect {
    match hold {
        HoldEffect::Release => HoldEffect::Keep,
        other => other,
    }
}

/// What is left of a session may still spend: its known cost is not the last word. An ending that
/// is not certain outranks whatever the run had come to.
fn left_open(ended: Ended) -> Ended {
    Ended {
        outcome: Outcome::Failed(AgentCode::CloseUncertain),
        hold: match ended.hold {
            HoldEffect::Release => HoldEffect::Release,
            _ => HoldEffect::Keep,
        },
        ..ended
    }
}
