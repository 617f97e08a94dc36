//! Whether one more hold fits, without storage or clock.

use flightproof_core::{MicroEur, MicroUsd, MoneyError, UsdPerEur};

/// What a cap bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The hold of one run.
    Run,
    /// Everything spent and held on one UTC day.
    UtcDay,
    /// Everything spent and held, ever.
    Total,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Run, Self::UtcDay, Self::Total];

    /// The word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::UtcDay => "utc-day",
            Self::Total => "total",
        }
    }
}

/// A cap as an operator stated it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    usd: MicroUsd,
    euros: Option<(MicroEur, UsdPerEur)>,
}

impl Cap {
    /// So many US dollars.
    pub const fn usd(usd: MicroUsd) -> Self {
        Self { usd, euros: None }
    }

    /// So many euros at the operator's own conservative rate. Both are recorded.
    ///
    /// # Errors
    /// [`MoneyError`] if the product is nothing or too large.
    pub fn eur(eur: MicroEur, rate: UsdPerEur) -> Result<Self, MoneyError> {
        Ok(Self {
            usd: MicroUsd::floor_of_eur(eur, rate)?,
            euros: Some((eur, rate)),
        })
    }

    /// A cap as it was recorded.
    pub(super) fn recorded(usd: MicroUsd, euros: Option<(u64, u64)>) -> Option<Self> {
        let euros = match euros {
            None => None,
            Some((eur, rate)) => Some((MicroEur::from_micros(eur)?, UsdPerEur::from_micros(rate)?)),
        };
        Some(Self { usd, euros })
    }

    /// What it bounds, in micro-dollars.
    pub const fn limit(&self) -> MicroUsd {
        self.usd
    }

    /// The euros it was stated in and the rate, if it was.
    pub const fn stated_in_euros(&self) -> Option<(MicroEur, UsdPerEur)> {
        self.euros
    }
}

/// The caps in force. A scope without a cap is not bounded; the total must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    /// For the hold of one run.
    pub run: Option<Cap>,
    /// For one UTC day.
    pub utc_day: Option<Cap>,
    /// For all time.
    pub total: Option<Cap>,
}

/// What counts against the caps at one moment. Every amount is an estimate of what will be billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Books {
    /// Spent on this UTC day, or booked to a later one.
    pub spent_on_day: MicroUsd,
    /// Spent, ever.
    pub spent: MicroUsd,
    /// Held by runs that are not booked yet. It counts on every day until they are.
    pub held: MicroUsd,
    /// Spent and held by the runs of the same parent.
    pub of_parent: MicroUsd,
}

/// Why a hold does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// No total cap was ever stated: nothing is spent without one.
    NoCap,
    /// It would go over a cap.
    Over {
        /// Which one; `None` for the parent's.
        scope: Option<Scope>,
        /// The cap.
        cap: MicroUsd,
        /// What already counts against it.
        used: MicroUsd,
        /// What was asked for.
        asked: MicroUsd,
    },
}

/// Whether a hold of this size fits under every cap. It is taken whole or not at all: a hold cut
/// down to what is left would admit a run that costs more.
///
/// # Errors
/// The first cap that it does not fit under.
pub fn admit(
    caps: &Caps,
    books: &Books,
    asked: MicroUsd,
    parent_cap: Option<MicroUsd>,
) -> Result<(), Denial> {
    let total = caps.total.ok_or(Denial::NoCap)?;
    let on_day = sum(books.spent_on_day, books.held);
    let ever = sum(books.spent, books.held);
    if let Some(cap) = caps.run {
        fits(Some(Scope::Run), cap.usd, MicroUsd::ZERO, asked)?;
    }
    if let Some(cap) = parent_cap {
        fits(None, cap, books.of_parent, asked)?;
    }
    if let Some(cap) = caps.utc_day {
        fits(Some(Scope::UtcDay), cap.usd, on_day, asked)?;
    }
    fits(Some(Scope::Total), total.usd, ever, asked)
}

/// A sum beyond all amounts is beyond all caps too.
fn sum(a: MicroUsd, b: MicroUsd) -> MicroUsd {
    a.checked_add(b).unwrap_or(MicroUsd::MAX)
}

fn fits(
    scope: Option<Scope>,
    cap: MicroUsd,
    used: MicroUsd,
    asked: MicroUsd,
) -> Result<(), Denial> {
    match used.checked_add(asked) {
        Some(sum) if sum <= cap => Ok(()),
        _ => Err(Denial::Over {
            scope,
            cap,
            used,
            asked,
        }),
    }
}

/// A UTC day as the number of days since 1970-01-01. Never a local one: those have 23 to 25 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcDay(pub u32);

impl UtcDay {
    /// The day of a moment in unix seconds.
    pub fn of(unix_seconds: u64) -> Self {
        Self(u32::try_from(unix_seconds / SECONDS).unwrap_or(u32::MAX))
    }
}

/// Which day to book to. The clock may be wrong: it never reopens a day, and more than one day
/// forward needs an operator's word.
///
/// # Errors
/// How many days the clock is ahead of the last day seen.
pub fn day_to_book(last_seen: Option<UtcDay>, today: UtcDay) -> Result<UtcDay, u32> {
    match last_seen {
        None => Ok(today),
        Some(last) if today <= last => Ok(last),
        Some(last) if today.0 - last.0 == 1 => Ok(today),
        Some(last) => Err(today.0 - last.0),
    }
}

/// How much to hold for a run whose program is told a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldSize {
    /// What the program is told.
    pub limit: MicroUsd,
    /// What is held: the limit, and what one more response of each concurrent conversation may cost.
    pub held: MicroUsd,
}

impl HoldSize {
    /// The hold for a limit: a program looks at its limit after a response, so each of its
    /// `concurrent` conversations can go over by one. `None` if the sum is beyond all amounts.
    pub fn for_limit(limit: MicroUsd, margin: MicroUsd, concurrent: u32) -> Option<Self> {
        let margin = margin
            .max(LEAST_MARGIN)
            .checked_mul(u64::from(concurrent.max(1)))?;
        Some(Self {
            limit,
            held: limit.checked_add(margin)?,
        })
    }
}

/// One response has been seen to cost 0.53 dollars, and a budget of 0.001 was overrun 29 times: a
/// margin in per cent is none for a small budget.
pub const LEAST_MARGIN: MicroUsd = match MicroUsd::from_micros(1_000_000) {
    Some(one_dollar) => one_dollar,
    None => MicroUsd::ZERO,
};

/// Seconds of a UTC day; leap seconds have no unix number.
const SECONDS: u64 = 86_400;
