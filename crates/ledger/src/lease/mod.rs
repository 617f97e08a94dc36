//! Who may work: one owner at a time, told apart by a number that only grows.

mod protocol;

pub use protocol::{LeaseEffect, LeaseEvent, LeaseRefusal, LeaseState, decide};

use crate::store::{Reading, Table, Writing, seconds, unreadable};
use crate::{Ledger, LedgerCode, LedgerError, Name};

/// The right to work under a name. It is lost when another owner gets one with a larger token, not
/// when a clock says so: every write checks the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What it is for.
    pub name: Name,
    /// Larger than any before it.
    pub token: u64,
}

impl Ledger {
    /// Asks for a lease for `seconds` from `now` (unix seconds). Whoever held it before is fenced
    /// out, and what that owner had begun and not ended is marked: answers as unknown, records as
    /// interrupted.
    ///
    /// # Errors
    /// `LEASE_HELD` while another owner has it and its time is not over, and those of
    /// [`Ledger::write`].
    pub fn lease(
        &mut self,
        name: &Name,
        owner: &Name,
        now: u64,
        seconds: u64,
    ) -> Result<Lease, LedgerError> {
        self.write(|w| w.lease(name, owner, now, seconds))
    }

    /// Gives a lease back; the next owner need not wait.
    ///
    /// # Errors
    /// `LEASE_LOST` if another owner has it by now.
    pub fn release_lease(&mut self, lease: &Lease) -> Result<(), LedgerError> {
        self.write(|w| {
            w.lease_event(
                &lease.name,
                None,
                LeaseEvent::Release { token: lease.token },
            )
            .map(drop)
        })
    }

    /// Says that the owner is still there, for `seconds` more.
    ///
    /// # Errors
    /// `LEASE_LOST` if another owner has it by now.
    pub fn renew_lease(
        &mut self,
        lease: &Lease,
        now: u64,
        seconds: u64,
    ) -> Result<(), LedgerError> {
        let event = LeaseEvent::Renew {
            token: lease.token,
            now,
            seconds,
        };
        self.write(|w| w.lease_event(&lease.name, None, event).map(drop))
    }
}

impl Reading<'_> {
    /// Refuses unless this is the newest lease of its name. Within a transaction that writes, nobody
    /// can get a newer one before it commits.
    ///
    /// # Errors
    /// `LEASE_LOST`.
    pub fn check_lease(&self, lease: &Lease) -> Result<(), LedgerError> {
        let state = self.lease_row(&lease.name)?.0;
        match state {
            LeaseState::Held { token, .. } if token == lease.token => Ok(()),
            other => Err(lost(&lease.name, lease.token, other)),
        }
    }

    /// Who has a lease, and under which token; `None` if nobody has it.
    ///
    /// # Errors
    /// `LEDGER_DAMAGED`, `LEDGER_UNREADABLE`.
    pub fn lease_holder(&self, name: &Name) -> Result<Option<(Name, Lease)>, LedgerError> {
        Ok(match self.lease_row(name)? {
            (LeaseState::Held { token, .. }, Some(owner)) => {
                let name = name.clone();
                Some((owner.parse()?, Lease { name, token }))
            }
            _ => None,
        })
    }

    /// What an owner has leases for, by name.
    ///
    /// # Errors
    /// `LEDGER_DAMAGED`, `LEDGER_UNREADABLE`.
    pub fn leases_of(&self, owner: &Name) -> Result<Vec<Name>, LedgerError> {
        let held = "owner = ?1 ORDER BY name";
        self.all_sealed(&LEASES, held, &[owner], |row| row.get::<_, String>(0))?
            .into_iter()
            .map(|name| name.parse())
            .collect()
    }

    /// Whether a token is still the newest of its lease.
    pub(crate) fn is_current(&self, name: &Name, token: u64) -> Result<bool, LedgerError> {
        Ok(matches!(self.lease_row(name)?.0, LeaseState::Held { token: held, .. } if held == token))
    }

    fn lease_row(&self, name: &Name) -> Result<(LeaseState, Option<String>), LedgerError> {
        let row = self.sealed(&LEASES, "name = ?1", &[name], |row| {
            let numbers: [i64; 3] = [row.get(1)?, row.get(3)?, row.get(4)?];
            Ok((
                numbers.map(i64::cast_unsigned),
                row.get::<_, Option<String>>(2)?,
            ))
        })?;
        Ok(match row {
            None => (LeaseState::Free { last: 0 }, None),
            Some(([token, ..], None)) => (LeaseState::Free { last: token }, None),
            Some(([token, granted_at, expires_at], owner)) => (
                LeaseState::Held {
                    token,
                    granted_at,
                    expires_at,
                },
                owner,
            ),
        })
    }
}

impl Writing<'_> {
    /// As [`Ledger::lease`], within a larger transaction.
    ///
    /// # Errors
    /// As [`Ledger::lease`].
    pub fn lease(
        &self,
        name: &Name,
        owner: &Name,
        now: u64,
        seconds: u64,
    ) -> Result<Lease, LedgerError> {
        let event = LeaseEvent::Acquire { now, seconds };
        match self.lease_event(name, Some(owner), event)? {
            LeaseEffect::Granted { token } => {
                self.fence_inbox(name)?;
                self.fence_records(name)?;
                Ok(Lease {
                    name: name.clone(),
                    token,
                })
            }
            other => Err(unreadable(format!(
                "a lease was asked for and {other:?} given"
            ))),
        }
    }

    fn lease_event(
        &self,
        name: &Name,
        owner: Option<&Name>,
        event: LeaseEvent,
    ) -> Result<LeaseEffect, LedgerError> {
        let (before, known) = self.lease_row(name)?;
        let (after, effect) = decide(before, event);
        if let LeaseEffect::Refuse(why) = effect {
            return Err(match why {
                LeaseRefusal::Held => LedgerCode::LeaseHeld.refuse(format!(
                    "{name} by {}",
                    known.as_deref().unwrap_or("nobody")
                )),
                LeaseRefusal::Lost { token } => lost(name, token, before),
            });
        }
        let owner = owner.map(ToString::to_string).or(known);
        self.store_lease(name, before, after, owner)?;
        Ok(effect)
    }

    fn store_lease(
        &self,
        name: &Name,
        before: LeaseState,
        after: LeaseState,
        owner: Option<String>,
    ) -> Result<(), LedgerError> {
        let (token, owner, granted_at, expires_at) = match after {
            LeaseState::Free { last } => (last, None, 0, 0),
            LeaseState::Held {
                token,
                granted_at,
                expires_at,
            } => (token, owner, granted_at, expires_at),
        };
        let (token, granted_at, expires_at) = (
            token.cast_signed(),
            seconds(granted_at),
            seconds(expires_at),
        );
        if before == (LeaseState::Free { last: 0 }) {
            return self.insert(&LEASES, &[name, &token, &owner, &granted_at, &expires_at]);
        }
        self.update(
            &LEASES,
            "token = ?2, owner = ?3, granted_at = ?4, expires_at = ?5",
            "name = ?1",
            &[name, &token, &owner, &granted_at, &expires_at],
        )
        .map(drop)
    }
}

pub(crate) static LEASES: Table =
    Table::new("leases", "name, token, owner, granted_at, expires_at");

fn lost(name: &Name, token: u64, state: LeaseState) -> LedgerError {
    LedgerCode::LeaseLost.refuse(format!("{name}: token {token}, now at {}", state.token()))
}
