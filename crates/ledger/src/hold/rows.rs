//! How money is stored: loaded, added up, and written as the protocol says.

use super::{
    Alarm, Books, Cap, Caps, Denial, Hold, HoldEffect, HoldEvent, HoldSize, HoldState, Incident,
    Reserve, Scope, Spending, UtcDay, admit, day_to_book, decide,
};
use crate::store::{Reading, Table, Writing, seconds, unreadable};
use crate::{LedgerCode, LedgerError, Name};
use flightproof_core::{Digest, MicroUsd};
use rusqlite::Row;

impl Reading<'_> {
    /// As [`crate::Ledger::hold`].
    ///
    /// # Errors
    /// `LEDGER_DAMAGED`, `LEDGER_UNREADABLE`.
    pub fn hold(&self, run: &Name) -> Result<Option<Hold>, LedgerError> {
        self.sealed(&HOLDS, "run = ?1", &[run], |row| Ok(read_hold(row)))?
            .transpose()
    }

    /// As [`crate::Ledger::spending`].
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
    /// As [`crate::Ledger::state_cap`], within a larger transaction.
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

    /// As [`crate::Ledger::reserve`], within a larger transaction: one that checks a lease, for example.
    ///
    /// # Errors
    /// As [`crate::Ledger::reserve`].
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
                    .refuse(format!("{run} is {}: {why}", hold.state.word())));
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

    pub(super) fn note_day(
        &self,
        day: UtcDay,
        confirmed: bool,
        now: u64,
    ) -> Result<(), LedgerError> {
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

pub(super) fn stored(amount: MicroUsd) -> i64 {
    amount.micros().cast_signed()
}
