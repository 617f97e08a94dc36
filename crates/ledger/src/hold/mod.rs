//! Money that is set aside before a run starts, and what becomes of it.

mod caps;
mod protocol;
mod resolution;
mod rows;

pub use caps::{
    Books, Cap, Caps, Denial, HoldSize, LEAST_MARGIN, Scope, UtcDay, admit, day_to_book,
};
pub use protocol::{Alarm, HoldEffect, HoldEvent, HoldRefusal, HoldState, decide};
pub(crate) use resolution::RESOLUTIONS;
pub use resolution::{Resolution, Signed};
pub(crate) use rows::{CAPS, DAYS, HOLDS, INCIDENTS};

use crate::{Ledger, LedgerCode, LedgerError, Name};
use flightproof_core::{Digest, MicroUsd};

/// A request to set money aside for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The run. One run, one hold, one start.
    pub run: Name,
    /// Digest of what will be started. The same run with another digest is another request.
    pub request: Digest,
    /// What the program is told, and what is held.
    pub size: HoldSize,
    /// The run this one belongs to, and a cap for all of its runs together: attempts of a repair
    /// loop each hold their own money.
    pub parent: Option<(Name, MicroUsd)>,
}

/// The hold of one run. Amounts are estimates of what will be billed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The run.
    pub run: Name,
    /// Digest of the request it was reserved for.
    pub request: Digest,
    /// The parent and its cap.
    pub parent: Option<(Name, MicroUsd)>,
    /// The day it was admitted on, and is booked to.
    pub day: UtcDay,
    /// What the program is told, and what is held.
    pub size: HoldSize,
    /// How it stands.
    pub state: HoldState,
    /// Digest of the result, or of an operator's evidence.
    pub evidence: Option<Digest>,
    /// When it was reserved, unix seconds.
    pub reserved_at: u64,
    id: i64,
}

/// How what was spent relates to what was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overrun {
    /// Within the limit.
    None,
    /// Over the limit the program was told, within the hold: the run failed.
    Limit,
    /// Over the hold: the run failed, and the caps may be exceeded until they are raised.
    Hold,
}

impl Hold {
    /// How what was spent relates to what was allowed; `None` where it is not known.
    pub fn overrun(&self) -> Option<Overrun> {
        let actual = self.state.actual()?;
        Some(if actual > self.size.held {
            Overrun::Hold
        } else if actual > self.size.limit {
            Overrun::Limit
        } else {
            Overrun::None
        })
    }
}

/// Everything about money at one moment. Every amount is an estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spending {
    /// The caps in force.
    pub caps: Caps,
    /// The day that is booked to.
    pub day: UtcDay,
    /// What counts against the caps.
    pub estimated: Books,
    /// Holds that are not booked, the oldest first.
    pub live: Vec<Hold>,
    /// Recorded contradictions.
    pub incidents: Vec<Incident>,
}

/// A contradiction about money that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// The run.
    pub run: Name,
    /// `settled-after-release`, `settled-twice` or `settled-after-resolution`.
    pub kind: String,
    /// What was claimed.
    pub claimed: MicroUsd,
    /// How much of it counts as spent.
    pub added: MicroUsd,
}

impl std::fmt::Display for Spending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cap = |cap: &Option<Cap>| {
            cap.map_or_else(|| "none".to_owned(), |c| format!("{} USD", c.limit()))
        };
        let books = &self.estimated;
        writeln!(f, "utc day {}", self.day.0)?;
        writeln!(
            f,
            "caps: run {}, utc day {}, total {}",
            cap(&self.caps.run),
            cap(&self.caps.utc_day),
            cap(&self.caps.total)
        )?;
        writeln!(
            f,
            "estimated: spent on the day {} USD, ever {} USD, held {} USD",
            books.spent_on_day, books.spent, books.held
        )?;
        for hold in &self.live {
            writeln!(
                f,
                "{}: {}, held {} USD",
                hold.run,
                hold.state.word(),
                hold.size.held
            )?;
        }
        for incident in &self.incidents {
            writeln!(
                f,
                "incident {}: {}, estimated {} USD",
                incident.kind, incident.run, incident.claimed
            )?;
        }
        Ok(())
    }
}

impl Ledger {
    /// States a cap. Earlier ones of the scope stay recorded; the last one is in force. A cap below
    /// what is spent and held admits nothing until that changes, and touches no hold.
    ///
    /// # Errors
    /// `COMMIT_UNCERTAIN`, and those of [`Ledger::write`].
    pub fn state_cap(&mut self, scope: Scope, cap: Cap, now: u64) -> Result<(), LedgerError> {
        self.write(|w| w.state_cap(scope, cap, now))
    }

    /// Sets money aside: checks every cap and records the hold in one transaction. The same request
    /// again gives the same hold.
    ///
    /// # Errors
    /// `CAP_MISSING`, `CAP_EXCEEDED`, `CLOCK_JUMPED`, `HOLD_DIFFERS`, and those of [`Ledger::write`].
    pub fn reserve(&mut self, request: &Reserve, now: u64) -> Result<Hold, LedgerError> {
        self.write(|w| w.reserve(request, now))
    }

    /// Records that the run is about to start. Nothing may be started before this returned.
    ///
    /// # Errors
    /// `HOLD_UNKNOWN`, `HOLD_REFUSED` if it was started before or given back.
    pub fn start_run(&mut self, run: &Name, now: u64) -> Result<Hold, LedgerError> {
        self.hold_event(run, HoldEvent::Start, None, now)
    }

    /// Records what the run said it spent, with the digest of its result, before anything else is
    /// made of it.
    ///
    /// # Errors
    /// `HOLD_UNKNOWN`, `HOLD_REFUSED`, `SPEND_CONFLICT` for an amount that contradicts an earlier one.
    pub fn report_run(
        &mut self,
        run: &Name,
        actual: MicroUsd,
        result: Digest,
        now: u64,
    ) -> Result<Hold, LedgerError> {
        self.hold_event(run, HoldEvent::Report(actual), Some(result), now)
    }

    /// Books what the run spent and frees the rest of its hold. More than the hold is booked in full.
    /// The same amount again changes nothing.
    ///
    /// # Errors
    /// `HOLD_UNKNOWN`, `HOLD_REFUSED`, and `SPEND_CONFLICT` for an amount that contradicts an earlier
    /// one or comes after a release: that is recorded as an incident, and counted where it is money
    /// nobody had counted.
    pub fn settle_run(
        &mut self,
        run: &Name,
        actual: MicroUsd,
        result: Digest,
        now: u64,
    ) -> Result<Hold, LedgerError> {
        self.hold_event(run, HoldEvent::Settle(actual), Some(result), now)
    }

    /// Records that nobody knows what the run spent. Its whole hold stays until an operator resolves
    /// it; no time frees it.
    ///
    /// # Errors
    /// `HOLD_UNKNOWN`, `HOLD_REFUSED` if it was never started.
    pub fn lose_run(&mut self, run: &Name, now: u64) -> Result<Hold, LedgerError> {
        self.hold_event(run, HoldEvent::Lose, None, now)
    }

    /// Gives a hold back. Only while nothing was started.
    ///
    /// # Errors
    /// `HOLD_UNKNOWN`, `HOLD_REFUSED` if money may have been spent.
    pub fn release_run(&mut self, run: &Name, now: u64) -> Result<Hold, LedgerError> {
        self.hold_event(run, HoldEvent::Release, None, now)
    }

    /// After the program that owned a run is gone: a hold that was never started is given back, one
    /// that was is unknown, one that has reported is booked.
    ///
    /// # Errors
    /// `HOLD_UNKNOWN`, and those of [`Ledger::write`].
    pub fn recover_run(&mut self, run: &Name, now: u64) -> Result<Hold, LedgerError> {
        self.hold_event(run, HoldEvent::Recover, None, now)
    }

    /// The hold of a run, if it has one.
    ///
    /// # Errors
    /// `LEDGER_DAMAGED`, and those of [`Ledger::read`].
    pub fn hold(&self, run: &Name) -> Result<Option<Hold>, LedgerError> {
        self.read(|r| r.hold(run))
    }

    /// Everything about money. `now` is in unix seconds.
    ///
    /// # Errors
    /// `LEDGER_DAMAGED`, and those of [`Ledger::read`].
    pub fn spending(&self, now: u64) -> Result<Spending, LedgerError> {
        self.read(|r| r.spending(now))
    }

    /// An operator's word on the date, where the clock has jumped more than a day. Going back never
    /// reopens a budget: what was booked to later days counts too.
    ///
    /// # Errors
    /// Those of [`Ledger::write`].
    pub fn confirm_day(&mut self, day: UtcDay, now: u64) -> Result<(), LedgerError> {
        self.write(|w| w.note_day(day, true, now))
    }

    fn hold_event(
        &mut self,
        run: &Name,
        event: HoldEvent,
        evidence: Option<Digest>,
        now: u64,
    ) -> Result<Hold, LedgerError> {
        let (hold, effect) = self.write(|w| w.hold_event(run, event, evidence, now))?;
        match effect {
            HoldEffect::Alarm(alarm) => Err(LedgerCode::SpendConflict.refuse(format!(
                "{run} is {}, got {}: {} USD (estimated)",
                hold.state.word(),
                alarm.word(),
                alarm.amounts().0
            ))),
            _ => Ok(hold),
        }
    }
}
