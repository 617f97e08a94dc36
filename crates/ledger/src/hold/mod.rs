//! Money that is set aside before a run starts, and what becomes of it.

mod caps;
mod protocol;
mod resolution;

pub use caps::{
    Books, Cap, Caps, Denial, HoldSize, LEAST_MARGIN, Scope, UtcDay, admit, day_to_book,
};
pub use protocol::{Alarm, HoldEffect, HoldEvent, HoldRefusal, HoldState, decide};
pub(crate) use resolution::RESOLUTIONS;
pub use resolution::{Resolution, Signed};

use crate::store::{Reading, Table, Writing, seconds, unreadable};
use crate::{Ledger, LedgerCode, LedgerError, Name};
use flightproof_core::{Digest, MicroUsd};
use rusqlite::Row;

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

impl Reading<'_> {
    /// As [`Ledger::hold`].
    ///
    /// # Errors
    /// `LEDGER_DAMAGED`, `LEDGER_UNREADABLE`.
    pub fn hold(&self, run: &Name) -> Result<Option<Hold>, LedgerError> {
        self.sealed(&HOLDS, "run = ?1", &[run], |row| Ok(read_hold(row)))?
            .transpose()
    }

    /// As [`Ledger::spending`].
    ///
    /// # Errors
    /// `LEDGER_DAMAGED`, `LEDGER_UNREADABLE`.
    pub fn spending(&self, now: u64) -> Result<Spending, LedgerError> {
        let day = self.last_day()?.unwrap_or(UtcDay::of(now));
        Ok(Spending {
            caps: self.caps()?,
            day,
            estimated: self.books(day, None)?,
            live: self
                .all_sealed(
                    &HOLDS,
                    "state IN ('reserved', 'running', 'reported', 'unknown') ORDER BY id",
                    &[],
                    |row| Ok(read_hold(row)),
                )?
                .into_iter()
                .collect::<Result<_, _>>()?,
            incidents: self
                .all_sealed(&INCIDENTS, "TRUE ORDER BY id", &[], |row| {
                    Ok(read_incident(row))
                })?
                .into_iter()
                .collect::<Result<_, _>>()?,
        })
    }

    fn caps(&self) -> Result<Caps, LedgerError> {
        let of = |scope: Scope| {
            self.sealed(
                &CAPS,
                "scope = ?1 ORDER BY id DESC LIMIT 1",
                &[&scope.word()],
                |row| Ok(read_cap(row)),
            )?
            .transpose()
        };
        Ok(Caps {
            run: of(Scope::Run)?,
            utc_day: of(Scope::UtcDay)?,
            total: of(Scope::Total)?,
        })
    }

    fn last_day(&self) -> Result<Option<UtcDay>, LedgerError> {
        self.sealed(&DAYS, "TRUE ORDER BY id DESC LIMIT 1", &[], |row| {
            row.get(1)
        })?
        .map(|day: i64| u32::try_from(day).map(UtcDay).map_err(unreadable))
        .transpose()
    }

    /// What counts, added up anew each time from sealed rows: there is no counter to go wrong.
    fn books(&self, day: UtcDay, parent: Option<&Name>) -> Result<Books, LedgerError> {
        let row = self.first(BOOKS, &[&day.0, &parent.map(Name::as_str)], |row| {
            let sums: [i64; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
            Ok((sums, row.get::<_, bool>(4)?))
        })?;
        let Some(([spent_on_day, spent, held, of_parent], true)) = row else {
            return Err(LedgerCode::LedgerDamaged.refuse("a row of holds or incidents"));
        };
        Ok(Books {
            spent_on_day: sum(spent_on_day)?,
            spent: sum(spent)?,
            held: sum(held)?,
            of_parent: sum(of_parent)?,
        })
    }
}

impl Writing<'_> {
    /// As [`Ledger::state_cap`], within a larger transaction.
    ///
    /// # Errors
    /// `LEDGER_UNREADABLE`.
    pub fn state_cap(&self, scope: Scope, cap: Cap, now: u64) -> Result<(), LedgerError> {
        self.anchor_at_once();
        let euros = cap.stated_in_euros();
        self.insert(
            &CAPS,
            &[
                &self.next_id(&CAPS)?,
                &scope.word(),
                &stored(cap.limit()),
                &euros.map(|(eur, _)| eur.micros().cast_signed()),
                &euros.map(|(_, rate)| rate.micros().cast_signed()),
                &seconds(now),
            ],
        )
    }

    /// As [`Ledger::reserve`], within a larger transaction: one that checks a lease, for example.
    ///
    /// # Errors
    /// As [`Ledger::reserve`].
    pub fn reserve(&self, request: &Reserve, now: u64) -> Result<Hold, LedgerError> {
        if let Some(hold) = self.hold(&request.run)? {
            return same_hold(hold, request);
        }
        let day = self.book_day(now)?;
        let (parent, parent_cap) = match &request.parent {
            Some((parent, cap)) => (Some(parent), Some(*cap)),
            None => (None, None),
        };
        self.check_parent_cap(parent, parent_cap)?;
        let books = self.books(day, parent)?;
        admit(&self.caps()?, &books, request.size.held, parent_cap).map_err(denied)?;
        self.anchor_at_once();
        self.insert(
            &HOLDS,
            &[
                &self.next_id(&HOLDS)?,
                &request.run,
                &request.request.to_string(),
                &parent,
                &parent_cap.map(stored),
                &day.0,
                &stored(request.size.limit),
                &stored(request.size.held),
                &HoldState::Reserved.word(),
                &None::<i64>,
                &None::<String>,
                &seconds(now),
                &seconds(now),
            ],
        )?;
        self.hold(&request.run)?
            .ok_or_else(|| unreadable("a hold that was just written is gone"))
    }

    /// One step of a hold, within a larger transaction. An alarm is recorded as an incident: commit
    /// it, then fail.
    ///
    /// # Errors
    /// `HOLD_UNKNOWN`, `HOLD_REFUSED`.
    pub fn hold_event(
        &self,
        run: &Name,
        event: HoldEvent,
        evidence: Option<Digest>,
        now: u64,
    ) -> Result<(Hold, HoldEffect), LedgerError> {
        let hold = self
            .hold(run)?
            .ok_or_else(|| LedgerCode::HoldUnknown.refuse(run))?;
        let (state, effect) = decide(hold.state, event);
        match effect {
            HoldEffect::Store => self.store_state(&hold, state, evidence, now)?,
            HoldEffect::Same => {}
            HoldEffect::Alarm(alarm) => self.record_incident(&hold, alarm, now)?,
            HoldEffect::Refuse(why) => {
                return Err(LedgerCode::HoldRefused
                    .refuse(format!("{run} is {}: {why:?}", hold.state.word())));
            }
        }
        let hold = self
            .hold(run)?
            .ok_or_else(|| LedgerCode::HoldUnknown.refuse(run))?;
        Ok((hold, effect))
    }

    fn store_state(
        &self,
        hold: &Hold,
        state: HoldState,
        evidence: Option<Digest>,
        now: u64,
    ) -> Result<(), LedgerError> {
        let evidence = state.actual().and(evidence.or(hold.evidence));
        self.anchor_at_once();
        self.update(
            &HOLDS,
            "state = ?2, actual = ?3, evidence = ?4, changed_at = ?5",
            "id = ?1",
            &[
                &hold.id,
                &state.word(),
                &state.actual().map(stored),
                &evidence.map(|digest| digest.to_string()),
                &seconds(now),
            ],
        )
        .map(drop)
    }

    /// Once for each claim, however often it is repeated.
    fn record_incident(&self, hold: &Hold, alarm: Alarm, now: u64) -> Result<(), LedgerError> {
        let (claimed, added) = alarm.amounts();
        let known = self.sealed(
            &INCIDENTS,
            "run = ?1 AND kind = ?2 AND claimed = ?3",
            &[&hold.run, &alarm.word(), &stored(claimed)],
            |_| Ok(()),
        )?;
        if known.is_some() {
            return Ok(());
        }
        self.anchor_at_once();
        self.insert(
            &INCIDENTS,
            &[
                &self.next_id(&INCIDENTS)?,
                &hold.run,
                &alarm.word(),
                &stored(claimed),
                &stored(added),
                &hold.day.0,
                &seconds(now),
            ],
        )
    }

    fn book_day(&self, now: u64) -> Result<UtcDay, LedgerError> {
        let last = self.last_day()?;
        let day = day_to_book(last, UtcDay::of(now)).map_err(|ahead| {
            LedgerCode::ClockJumped.refuse(format!("{ahead} days past the last day seen"))
        })?;
        if last != Some(day) {
            self.note_day(day, false, now)?;
        }
        Ok(day)
    }

    fn note_day(&self, day: UtcDay, confirmed: bool, now: u64) -> Result<(), LedgerError> {
        self.anchor_at_once();
        self.insert(
            &DAYS,
            &[&self.next_id(&DAYS)?, &day.0, &confirmed, &seconds(now)],
        )
    }

    /// All runs of a parent are held against one cap.
    fn check_parent_cap(
        &self,
        parent: Option<&Name>,
        cap: Option<MicroUsd>,
    ) -> Result<(), LedgerError> {
        let Some(parent) = parent else { return Ok(()) };
        let first = self.sealed(
            &HOLDS,
            "parent = ?1 ORDER BY id LIMIT 1",
            &[parent],
            |row| row.get::<_, Option<i64>>(4),
        )?;
        match first {
            Some(stated) if stated != cap.map(stored) => {
                Err(LedgerCode::HoldDiffers.refuse(format!("{parent} has another cap already")))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) static HOLDS: Table = Table::new(
    "holds",
    "id, run, request, parent, parent_cap, utc_day, limit_micros, held, state, actual, evidence, reserved_at, changed_at",
);
pub(crate) static CAPS: Table =
    Table::new("caps", "id, scope, micro_usd, micro_eur, rate, stated_at");
pub(crate) static DAYS: Table = Table::new("days", "id, utc_day, confirmed, noted_at");
pub(crate) static INCIDENTS: Table = Table::new(
    "incidents",
    "id, run, kind, claimed, added, utc_day, seen_at",
);

/// On the day, ever, held, of the parent, and whether every row is whole.
const BOOKS: &str = "
WITH counted AS (
    SELECT utc_day, parent IS ?2 AND ?2 IS NOT NULL AS ours,
        CASE WHEN state IN ('settled', 'resolved') THEN actual ELSE 0 END AS spent,
        CASE state WHEN 'reserved' THEN held WHEN 'running' THEN held WHEN 'unknown' THEN held
            WHEN 'reported' THEN MAX(held, actual) ELSE 0 END AS held,
        seal = row_seal(id, run, request, parent, parent_cap, utc_day, limit_micros, held, state, actual, evidence, reserved_at, changed_at) AS whole
    FROM holds
    UNION ALL
    SELECT utc_day, ?2 IS NOT NULL AND run IN (SELECT run FROM holds WHERE parent = ?2),
        added, 0,
        seal = row_seal(id, run, kind, claimed, added, utc_day, seen_at)
    FROM incidents
)
SELECT COALESCE(SUM(spent) FILTER (WHERE utc_day >= ?1), 0), COALESCE(SUM(spent), 0),
    COALESCE(SUM(held), 0), COALESCE(SUM(spent + held) FILTER (WHERE ours), 0),
    COALESCE(MIN(whole), 1)
FROM counted";

fn same_hold(hold: Hold, request: &Reserve) -> Result<Hold, LedgerError> {
    let same = hold.request == request.request
        && hold.size == request.size
        && hold.parent == request.parent;
    if same {
        return Ok(hold);
    }
    Err(LedgerCode::HoldDiffers.refuse(format!("{} is held for another request", hold.run)))
}

fn denied(denial: Denial) -> LedgerError {
    match denial {
        Denial::NoCap => LedgerCode::CapMissing.refuse("no total cap was ever stated"),
        Denial::Over {
            scope,
            cap,
            used,
            asked,
        } => LedgerCode::CapExceeded.refuse(format!(
            "cap of the {}: {cap} USD, spent and held {used} USD (estimated), asked for {asked} USD",
            scope.map_or("parent", Scope::word)
        )),
    }
}

fn read_hold(row: &Row<'_>) -> Result<Hold, LedgerError> {
    let text = |column: usize| row.get::<_, String>(column).map_err(unreadable);
    let amount = |column: usize| {
        row.get::<_, Option<i64>>(column)
            .map_err(unreadable)?
            .map(micros)
            .transpose()
    };
    let needed = |column: usize| amount(column)?.ok_or_else(|| unreadable("an amount is missing"));
    let parent: Option<String> = row.get(3).map_err(unreadable)?;
    let evidence: Option<String> = row.get(10).map_err(unreadable)?;
    Ok(Hold {
        id: row.get(0).map_err(unreadable)?,
        run: text(1)?.parse()?,
        request: text(2)?.parse().map_err(unreadable)?,
        parent: match (parent, amount(4)?) {
            (Some(parent), Some(cap)) => Some((parent.parse()?, cap)),
            _ => None,
        },
        day: UtcDay(row.get(5).map_err(unreadable)?),
        size: HoldSize {
            limit: needed(6)?,
            held: needed(7)?,
        },
        state: HoldState::from_parts(&text(8)?, amount(9)?)
            .ok_or_else(|| unreadable("a hold of no known state"))?,
        evidence: evidence
            .map(|digest| digest.parse().map_err(unreadable))
            .transpose()?,
        reserved_at: row.get::<_, i64>(11).map_err(unreadable)?.cast_unsigned(),
    })
}

fn read_cap(row: &Row<'_>) -> Result<Cap, LedgerError> {
    let stated = |column: usize| {
        row.get::<_, Option<i64>>(column)
            .map(|value| value.map(i64::cast_unsigned))
            .map_err(unreadable)
    };
    Cap::recorded(
        micros(row.get(2).map_err(unreadable)?)?,
        stated(3)?.zip(stated(4)?),
    )
    .ok_or_else(|| unreadable("a cap that nobody can have stated"))
}

fn read_incident(row: &Row<'_>) -> Result<Incident, LedgerError> {
    Ok(Incident {
        run: row.get::<_, String>(1).map_err(unreadable)?.parse()?,
        kind: row.get(2).map_err(unreadable)?,
        claimed: micros(row.get(3).map_err(unreadable)?)?,
        added: micros(row.get(4).map_err(unreadable)?)?,
    })
}

fn micros(stored: i64) -> Result<MicroUsd, LedgerError> {
    u64::try_from(stored)
        .ok()
        .and_then(MicroUsd::from_micros)
        .ok_or_else(|| unreadable("an amount out of range"))
}

/// A sum beyond all amounts is beyond all caps too.
fn sum(stored: i64) -> Result<MicroUsd, LedgerError> {
    let sum = u64::try_from(stored).map_err(unreadable)?;
    Ok(MicroUsd::from_micros(sum).unwrap_or(MicroUsd::MAX))
}

fn stored(amount: MicroUsd) -> i64 {
    amount.micros().cast_signed()
}
