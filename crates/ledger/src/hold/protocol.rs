//! What may happen to a hold, without storage or clock.

use flightproof_core::MicroUsd;

/// How a hold stands. Every run ends in one of settled, resolved and released, or stays unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldState {
    /// Money is set aside; nothing was started, provably.
    Reserved,
    /// The intent to start is on disk: from here on money may have been spent.
    Running,
    /// What the run says it spent is on disk, and not yet booked.
    Reported(MicroUsd),
    /// Booked; the rest of the hold is free again.
    Settled(MicroUsd),
    /// Nobody knows what was spent. The whole hold stays, however long.
    Unknown,
    /// An operator has said what was spent, with evidence and a signature.
    Resolved(MicroUsd),
    /// Given back: nothing was started.
    Released,
}

/// What happens to a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldEvent {
    /// The run is about to start.
    Start,
    /// The run said what it spent.
    Report(MicroUsd),
    /// What was spent is booked.
    Settle(MicroUsd),
    /// The run ended, or was ended, without saying what it spent.
    Lose,
    /// The run will not start.
    Release,
    /// An operator says what was spent.
    Resolve(MicroUsd),
    /// The program that owned the run is gone.
    Recover,
}

/// What a transition asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldEffect {
    /// Store the new state.
    Store,
    /// Nothing: it was already so, and the same answer is given again.
    Same,
    /// Keep the state, and record what should never happen.
    Alarm(Alarm),
    /// Keep the state, and refuse.
    Refuse(HoldRefusal),
}

/// A contradiction about money. It is recorded, never acted upon in silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alarm {
    /// Money turned up for a run that was never started: it counts as spent from now on.
    SettledAfterRelease(MicroUsd),
    /// Another amount for a run that is booked: the first one stands.
    SettledTwice(MicroUsd),
    /// Another amount for a run that an operator resolved: the operator's stands.
    SettledAfterResolution(MicroUsd),
}

impl Alarm {
    /// The word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SettledAfterRelease(_) => "settled-after-release",
            Self::SettledTwice(_) => "settled-twice",
            Self::SettledAfterResolution(_) => "settled-after-resolution",
        }
    }

    /// What was claimed, and how much of it counts as spent.
    pub const fn amounts(self) -> (MicroUsd, MicroUsd) {
        match self {
            Self::SettledAfterRelease(amount) => (amount, amount),
            Self::SettledTwice(amount) | Self::SettledAfterResolution(amount) => {
                (amount, MicroUsd::ZERO)
            }
        }
    }
}

/// Why an event is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldRefusal {
    /// One hold pays for one run: it was started before.
    StartedBefore,
    /// It was not started, so nothing can have been spent.
    NotStarted,
    /// It was started, so it cannot be given back.
    MayHaveSpent,
    /// Only an operator may say what an unknown run has spent.
    NeedsResolution,
    /// Only an unknown run needs an operator's word.
    NotUnknown,
    /// It was resolved before, to another amount.
    ResolvedBefore,
}

impl std::fmt::Display for HoldRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::StartedBefore => "it was started before, and one hold pays for one run",
            Self::NotStarted => "it was not started, so nothing can have been spent",
            Self::MayHaveSpent => "it was started, so it cannot be given back",
            Self::NeedsResolution => "what it spent is not known, and an operator must say it",
            Self::NotUnknown => "only a run of unknown outcome takes an operator's word",
            Self::ResolvedBefore => "it was resolved before, to another amount",
        })
    }
}

/// One step of a hold. Total: every event has an answer in every state.
pub fn decide(state: HoldState, event: HoldEvent) -> (HoldState, HoldEffect) {
    match event {
        HoldEvent::Start => start(state),
        HoldEvent::Report(amount) => report(state, amount),
        HoldEvent::Settle(amount) => settle(state, amount),
        HoldEvent::Lose => lose(state),
        HoldEvent::Release => release(state),
        HoldEvent::Resolve(amount) => resolve(state, amount),
        HoldEvent::Recover => recover(state),
    }
}

use HoldEffect::{Refuse, Same, Store};
use HoldState::{Released, Reported, Reserved, Resolved, Running, Settled, Unknown};

fn start(state: HoldState) -> (HoldState, HoldEffect) {
    match state {
        Reserved => (Running, Store),
        other => (other, Refuse(HoldRefusal::StartedBefore)),
    }
}

fn report(state: HoldState, amount: MicroUsd) -> (HoldState, HoldEffect) {
    match state {
        Running => (Reported(amount), Store),
        Reported(first) if first == amount => (state, Same),
        Reported(_) => (state, HoldEffect::Alarm(Alarm::SettledTwice(amount))),
        other => late(other, amount),
    }
}

fn settle(state: HoldState, amount: MicroUsd) -> (HoldState, HoldEffect) {
    match state {
        Running => (Settled(amount), Store),
        Reported(first) if first == amount => (Settled(amount), Store),
        Reported(_) => (state, HoldEffect::Alarm(Alarm::SettledTwice(amount))),
        other => late(other, amount),
    }
}

/// An amount for a run that is not running.
fn late(state: HoldState, amount: MicroUsd) -> (HoldState, HoldEffect) {
    let effect = match state {
        Settled(first) | Resolved(first) if first == amount => Same,
        Settled(_) => HoldEffect::Alarm(Alarm::SettledTwice(amount)),
        Resolved(_) => HoldEffect::Alarm(Alarm::SettledAfterResolution(amount)),
        Released => HoldEffect::Alarm(Alarm::SettledAfterRelease(amount)),
        Unknown => Refuse(HoldRefusal::NeedsResolution),
        Reserved | Running | Reported(_) => Refuse(HoldRefusal::NotStarted),
    };
    (state, effect)
}

fn lose(state: HoldState) -> (HoldState, HoldEffect) {
    match state {
        Running => (Unknown, Store),
        // What it said it spent stands.
        Reported(amount) => (Settled(amount), Store),
        Reserved => (state, Refuse(HoldRefusal::NotStarted)),
        other => (other, Same),
    }
}

fn release(state: HoldState) -> (HoldState, HoldEffect) {
    match state {
        Reserved => (Released, Store),
        Released => (state, Same),
        other => (other, Refuse(HoldRefusal::MayHaveSpent)),
    }
}

fn resolve(state: HoldState, amount: MicroUsd) -> (HoldState, HoldEffect) {
    match state {
        Unknown => (Resolved(amount), Store),
        Resolved(first) if first == amount => (state, Same),
        Resolved(_) => (state, Refuse(HoldRefusal::ResolvedBefore)),
        other => (other, Refuse(HoldRefusal::NotUnknown)),
    }
}

fn recover(state: HoldState) -> (HoldState, HoldEffect) {
    match state {
        Reserved => (Released, Store),
        Running => (Unknown, Store),
        Reported(amount) => (Settled(amount), Store),
        other => (other, Same),
    }
}

impl HoldState {
    /// The word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Running => "running",
            Self::Reported(_) => "reported",
            Self::Settled(_) => "settled",
            Self::Unknown => "unknown",
            Self::Resolved(_) => "resolved",
            Self::Released => "released",
        }
    }

    /// What is known to have been spent.
    pub const fn actual(self) -> Option<MicroUsd> {
        match self {
            Self::Reported(amount) | Self::Settled(amount) | Self::Resolved(amount) => Some(amount),
            Self::Reserved | Self::Running | Self::Unknown | Self::Released => None,
        }
    }

    pub(crate) fn from_parts(word: &str, actual: Option<MicroUsd>) -> Option<Self> {
        Some(match (word, actual) {
            ("reserved", None) => Self::Reserved,
            ("running", None) => Self::Running,
            ("unknown", None) => Self::Unknown,
            ("released", None) => Self::Released,
            ("reported", Some(amount)) => Self::Reported(amount),
            ("settled", Some(amount)) => Self::Settled(amount),
            ("resolved", Some(amount)) => Self::Resolved(amount),
            _ => return None,
        })
    }
}
