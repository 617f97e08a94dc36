//! Flies one run by its machine: stores every state before acting on it, and turns what the world
//! answers into the next event.

use crate::repair::Told;
use crate::run::{self, Effect, Ended, Event, Outcome, State, Verdict};
use crate::{
    Accounting, AgentCode, AgentError, AgentRefusal, Amount, Binary, HoldEffect, HoldError, Holds,
    Launch, Limits, Patience, Profile, Program, RunKey, check_run,
};
use flightproof_core::{Code, Digest};

/// Where the state of a run survives the driver. Durable when a call returns `Ok`.
pub trait Records {
    /// Stores the state, over the one before.
    ///
    /// # Errors
    /// It may not be there. The run goes no further.
    fn state(&mut self, run: &RunKey, state: &State) -> Result<(), String>;

    /// Stores the accounting of a run that ended well, before anything is decided on it.
    ///
    /// # Errors
    /// It may not be there. The run goes no further.
    fn accounting(&mut self, run: &RunKey, accounting: &Accounting) -> Result<(), String>;
}

/// The session an agent works in.
pub trait Room {
    /// Opens it, with the checkout and the program in it.
    ///
    /// # Errors
    /// There is no session, or none that the program may be started in. Nothing was started.
    fn open(&mut self) -> Result<(), AgentRefusal>;

    /// Fetches the work as a bundle and checks it.
    ///
    /// # Errors
    /// There is no work, or none that may be taken.
    fn capture(&mut self) -> Result<(), String>;

    /// Destroys it, if it is there, and proves that nothing is left. May be called again.
    ///
    /// # Errors
    /// Something may be left.
    fn close(&mut self) -> Result<(), String>;

    /// How many provider requests went through the session's proxy; none if it has no proxy.
    fn requests(&self) -> Option<u64>;
}

/// Everything one run needs.
pub struct Pilot<'a> {
    /// The run's key.
    pub run: &'a RunKey,
    /// What is known about the program.
    pub profile: &'a Profile,
    /// What it may use.
    pub limits: &'a Limits,
    /// The file that was checked.
    pub binary: &'a Binary,
    /// What it is started with.
    pub launch: &'a Launch,
    /// How long to wait.
    pub patience: Patience,
    /// The ledger's holds.
    pub holds: &'a mut dyn Holds,
    /// The stored state.
    pub records: &'a mut dyn Records,
    /// The session.
    pub room: &'a mut dyn Room,
    /// The program.
    pub program: &'a mut dyn Program,
}

/// How a run ended, and why in detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The end.
    pub ended: Ended,
    /// The accounting, if the program ended well while this driver lived.
    pub accounting: Option<Accounting>,
    /// What was refused, if this driver saw it.
    pub refused: Option<AgentRefusal>,
}

impl Pilot<'_> {
    /// Flies from a state to the end: [`State::Planned`] for a new run, the stored state for one
    /// whose driver died. A run that is over does nothing and reports its end again.
    ///
    /// # Errors
    /// `HOLD_UNCERTAIN` if state or hold could not be stored: call again with the stored state,
    /// after the ledger was opened anew. The session is destroyed all the same.
    pub fn fly(&mut self, state: State) -> Result<Report, AgentRefusal> {
        let first = match state {
            State::Planned => Event::Begin,
            _ => Event::Recovered,
        };
        let mut flight = Flight {
            state,
            accounting: None,
            refused: None,
        };
        let flown = self.follow(&mut flight, first);
        if let Err(refusal) = flown {
            // Whatever stopped us: nothing stays open. Its own failure adds nothing to that.
            let _ = self.room.close();
            return Err(refusal);
        }
        match flight.state {
            State::Done { ended } => Ok(Report {
                ended,
                accounting: flight.accounting,
                refused: flight.refused,
            }),
            other => Err(AgentCode::HoldUncertain.refuse(format!("the run stays in {other:?}"))),
        }
    }

    fn follow(&mut self, flight: &mut Flight, first: Event) -> Result<(), AgentRefusal> {
        let mut event = Some(first);
        while let Some(happened) = event.take() {
            for effect in flight.step(self.run, self.records, happened)? {
                event = self.perform(flight, effect)?;
            }
        }
        Ok(())
    }

    fn perform(
        &mut self,
        flight: &mut Flight,
        effect: Effect,
    ) -> Result<Option<Event>, AgentRefusal> {
        let event = match effect {
            Effect::Reserve => self.reserve(flight),
            Effect::Open => match self.room.open() {
                Ok(()) => Event::Opened,
                Err(refusal) => Event::NotOpened(flight.note(refusal)),
            },
            Effect::Launch => self.launch(flight)?,
            Effect::Capture => match self.room.capture() {
                Ok(()) => Event::Captured,
                Err(e) => {
                    flight.note(AgentCode::CaptureFailed.refuse(e));
                    Event::NotCaptured
                }
            },
            Effect::Close => match self.room.close() {
                Ok(()) => Event::Closed,
                Err(e) => {
                    flight.note(AgentCode::CloseUncertain.refuse(e));
                    Event::NotClosed
                }
            },
            Effect::Settle(hold) => self.settle(flight, hold),
        };
        // Not settled is an end of this driver, not of the run.
        let stuck = event == Event::NotSettled;
        if stuck {
            flight.step(self.run, self.records, event)?;
            return Ok(None);
        }
        Ok(Some(event))
    }

    fn reserve(&mut self, flight: &mut Flight) -> Event {
        let amount = Amount {
            budget: self.limits.budget(),
            held: self.limits.hold_under(self.profile),
        };
        let request = self.launch.digest(self.binary);
        match self.holds.reserve(self.run, request, amount) {
            Ok(()) => Event::Held,
            Err(HoldError::Uncertain(e)) => {
                Event::NotHeld(flight.note(AgentCode::HoldUncertain.refuse(e)))
            }
            Err(HoldError::Refused(e) | HoldError::Conflict(e)) => {
                Event::NotHeld(flight.note(AgentCode::HoldRefused.refuse(e)))
            }
        }
    }

    fn launch(&mut self, flight: &mut Flight) -> Result<Event, AgentRefusal> {
        if let Err(refusal) = self.binary.is_unchanged() {
            return Ok(Event::NotStarted(flight.note(refusal)));
        }
        if let Err(HoldError::Refused(e) | HoldError::Uncertain(e) | HoldError::Conflict(e)) =
            self.holds.begin(self.run)
        {
            let code = flight.note(AgentCode::HoldUncertain.refuse(e));
            return Ok(Event::NotStarted(code));
        }
        let (run, records) = (self.run, &mut *self.records);
        let mut stored = Ok(());
        let output = self.program.run(self.launch, self.patience, &mut |event| {
            if stored.is_ok() {
                stored = flight.step(run, records, event).map(drop);
            }
            stored.is_ok()
        });
        if let Err(refusal) = stored {
            // Nothing is decided on what it has cost, and whoever resolves the hold finds it.
            if let Ok(Ok(accounting)) = output.map(|output| self.judge(&output)) {
                let _ = self.records.accounting(self.run, &accounting);
            }
            return Err(refusal);
        }
        match output {
            Ok(output) => self.terminal(flight, &output),
            Err(refusal) => Ok(Event::NotStarted(flight.note(refusal))),
        }
    }

    fn terminal(
        &mut self,
        flight: &mut Flight,
        output: &crate::Output,
    ) -> Result<Event, AgentRefusal> {
        let verdict = match self.judge(output) {
            Ok(accounting) => {
                let stored = self.records.accounting(self.run, &accounting);
                stored.map_err(|e| AgentCode::HoldUncertain.refuse(e))?;
                let amount = accounting.spend.amount();
                flight.accounting = Some(accounting);
                Verdict::Good(amount)
            }
            Err(error) => Verdict::Bad(flight.note(error.refused), error.hold),
        };
        Ok(Event::Terminal(verdict, Digest::of(&output.stdout)))
    }

    fn judge(&self, output: &crate::Output) -> Result<Accounting, AgentError> {
        let requests = self.room.requests();
        let judged = check_run(output, self.run, requests, self.profile, self.limits);
        let unchanged = self.binary.is_unchanged().map_err(|refused| AgentError {
            refused,
            hold: HoldEffect::Keep,
        });
        unchanged.and(judged)
    }

    fn settle(&mut self, flight: &mut Flight, hold: HoldEffect) -> Event {
        let result = match flight.state {
            State::Settling { ended } => ended.result,
            _ => None,
        };
        settle(self.holds, self.run, hold, result).unwrap_or_else(|(refusal, event)| {
            flight.note(refusal);
            event
        })
    }
}

/// Ends a hold. Where it could not be ended so, what is refused, and what that means for the run.
fn settle(
    holds: &mut dyn Holds,
    run: &RunKey,
    hold: HoldEffect,
    result: Option<Digest>,
) -> Result<Event, (AgentRefusal, Event)> {
    let ended = match hold {
        HoldEffect::Keep => holds.keep(run),
        HoldEffect::Settle(amount) => holds.settle(run, amount, result),
        HoldEffect::Release => holds.release(run),
    };
    ended.map(|()| Event::Settled).map_err(|error| match error {
        HoldError::Uncertain(e) => (AgentCode::HoldUncertain.refuse(e), Event::NotSettled),
        HoldError::Refused(e) | HoldError::Conflict(e) => {
            (AgentCode::SettleConflict.refuse(e), Event::SettledOtherwise)
        }
    })
}

/// Brings a run whose driver died to its end: what is left of its session is destroyed, its hold is
/// ended as the stored state says, and nothing is started. A run that is over stays as it is.
///
/// # Errors
/// `HOLD_UNCERTAIN` if state or hold could not be stored; call again.
pub fn recover(
    run: &RunKey,
    state: State,
    records: &mut dyn Records,
    holds: &mut dyn Holds,
    close: &mut dyn FnMut() -> Result<(), String>,
) -> Result<Ended, AgentRefusal> {
    let mut flight = Flight {
        state,
        accounting: None,
        refused: None,
    };
    let mut event = Event::Recovered;
    loop {
        let effects = flight.step(run, records, event)?;
        if let State::Done { ended } = flight.state {
            return Ok(ended);
        }
        event = match (effects.as_slice(), flight.state) {
            ([Effect::Close], _) => match close() {
                Ok(()) => Event::Closed,
                Err(_) => Event::NotClosed,
            },
            ([Effect::Settle(hold)], State::Settling { ended }) => {
                settle(holds, run, *hold, ended.result).or_else(|(refusal, event)| match event {
                    Event::NotSettled => Err(refusal),
                    event => Ok(event),
                })?
            }
            (effects, state) => {
                return Err(AgentCode::OutOfTurn.refuse(format!("{effects:?} in {state:?}")));
            }
        };
    }
}

struct Flight {
    state: State,
    accounting: Option<Accounting>,
    refused: Option<AgentRefusal>,
}

impl Flight {
    /// Decides, and stores the new state before anybody acts on it.
    fn step(
        &mut self,
        run: &RunKey,
        records: &mut dyn Records,
        event: Event,
    ) -> Result<run::Effects, AgentRefusal> {
        let (next, effects) = run::decide(self.state, event)?;
        if next != self.state {
            let stored = records.state(run, &next);
            stored.map_err(|e| AgentCode::HoldUncertain.refuse(e))?;
        }
        self.state = next;
        Ok(effects)
    }

    /// Remembers the first refusal in full; an uncertain end outranks it.
    fn note(&mut self, refusal: AgentRefusal) -> AgentCode {
        let code = refusal.code;
        if self.refused.is_none() || code == AgentCode::CloseUncertain {
            self.refused = Some(refusal);
        }
        code
    }
}

impl Report {
    /// Whether there is a proposal.
    pub fn proposed(&self) -> bool {
        self.ended.outcome == Outcome::Captured
    }

    /// What a repair loop is told about a run without a proposal. A run whose cost is unknown, that
    /// was not allowed, or that may not be over, is not followed by another.
    pub fn failure(&self) -> Option<Told> {
        let Outcome::Failed(code) = self.ended.outcome else {
            return None;
        };
        let stops = matches!(
            code,
            AgentCode::HoldRefused
                | AgentCode::HoldUncertain
                | AgentCode::SettleConflict
                | AgentCode::CloseUncertain
                | AgentCode::BinaryChanged
                | AgentCode::VersionTooOld
                | AgentCode::VersionUnreadable
                | AgentCode::SpawnFailed
        );
        // The code's own words: nothing an agent or a provider wrote is handed back as feedback.
        let why = code.explanation();
        let text = format!("{}: {}; {}", why.code, why.happened, why.todo);
        Some(if stops || self.ended.hold == HoldEffect::Keep {
            Told::RunStopped(text)
        } else {
            Told::RunFailed(text)
        })
    }
}
