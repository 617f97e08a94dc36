//! What a session did: written down as pending before it is done, and as applied after. What was
//! interrupted in between is reported, never done again.

mod protocol;

pub use protocol::{RecordEffect, RecordEvent, RecordState, decide};

use crate::store::{Reading, Table, Writing, unreadable};
use crate::{Lease, Ledger, LedgerCode, LedgerError, Name};
use flightproof_core::Digest;
use rusqlite::Row;

/// What kind of doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A command given to a session.
    Command,
    /// Something that happened to it.
    Event,
    /// A request to a provider, which costs money.
    ProviderCall,
    /// Something observed in it.
    Observation,
}

impl RecordKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Command,
        Self::Event,
        Self::ProviderCall,
        Self::Observation,
    ];

    /// The word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Event => "event",
            Self::ProviderCall => "provider-call",
            Self::Observation => "observation",
        }
    }
}

/// One record of a session. What was asked for is kept as a digest, what came out of it in a few
/// bytes: no prompt and no result is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The session.
    pub session: Name,
    /// Its key within the session.
    pub key: Name,
    /// What kind of doing.
    pub kind: RecordKind,
    /// Digest of what was asked for.
    pub request: Digest,
    /// How it stands, with the outcome where it is known.
    pub state: RecordState,
    /// What came of it, where it was applied.
    pub outcome: Option<Vec<u8>>,
}

/// What to do after a record was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Do it now.
    Do,
    /// It was done: its outcome, byte for byte.
    Done(Vec<u8>),
    /// Its owner is doing it.
    Pending,
    /// It was begun by an owner that is gone. It is never done again.
    Interrupted,
}

impl Ledger {
    /// Writes down that something is about to be done. Nothing is done before this returned
    /// [`Begun::Do`].
    ///
    /// # Errors
    /// `KEY_TAKEN` if the key was first seen with another request, `LEASE_LOST`.
    pub fn begin_record(
        &mut self,
        session: &Name,
        key: &Name,
        kind: RecordKind,
        request: Digest,
        lease: &Lease,
    ) -> Result<Begun, LedgerError> {
        self.write(|w| w.begin_record(session, key, kind, request, lease))
    }

    /// Writes down what came of it.
    ///
    /// # Errors
    /// `LEASE_LOST`, `KEY_STATE` if it is not pending under this lease, `BODY_TOO_LARGE`.
    pub fn end_record(
        &mut self,
        session: &Name,
        key: &Name,
        lease: &Lease,
        outcome: &[u8],
    ) -> Result<(), LedgerError> {
        self.write(|w| w.end_record(session, key, lease, outcome))
    }

    /// Everything a session did, in order.
    ///
    /// # Errors
    /// Those of [`Ledger::read`].
    pub fn records(&self, session: &Name) -> Result<Vec<Record>, LedgerError> {
        self.read(|r| {
            r.all_sealed(&RECORDS, "session = ?1 ORDER BY id", &[session], |row| {
                Ok(read_row(row))
            })?
            .into_iter()
            .map(|row| row.map(|row| row.record))
            .collect()
        })
    }

    /// Records that were interrupted, over all sessions, in order: for a report.
    ///
    /// # Errors
    /// Those of [`Ledger::read`].
    pub fn interrupted_records(&self) -> Result<Vec<Record>, LedgerError> {
        self.read(|r| {
            r.all_sealed(&RECORDS, "state = 'interrupted' ORDER BY id", &[], |row| {
                Ok(read_row(row))
            })?
            .into_iter()
            .map(|row| row.map(|row| row.record))
            .collect()
        })
    }
}

impl Reading<'_> {
    fn record_row(&self, session: &Name, key: &Name) -> Result<Option<RecordRow>, LedgerError> {
        self.sealed(
            &RECORDS,
            "session = ?1 AND key = ?2",
            &[session, key],
            |row| Ok(read_row(row)),
        )?
        .transpose()
    }
}

impl Writing<'_> {
    /// As [`Ledger::begin_record`], within a larger transaction.
    ///
    /// # Errors
    /// As [`Ledger::begin_record`].
    pub fn begin_record(
        &self,
        session: &Name,
        key: &Name,
        kind: RecordKind,
        request: Digest,
        lease: &Lease,
    ) -> Result<Begun, LedgerError> {
        self.check_lease(lease)?;
        let known = self.record_row(session, key)?;
        let same = known
            .as_ref()
            .is_none_or(|row| row.record.request == request && row.record.kind == kind);
        let state = known.as_ref().map(|row| row.record.state);
        let owner = known
            .as_ref()
            .is_some_and(|row| row.token == lease.token && row.lease == lease.name.as_str());
        match (decide(state, RecordEvent::Begin { same, owner }).1, known) {
            (RecordEffect::Do, None) => {
                self.insert(
                    &RECORDS,
                    &[
                        &self.next_id(&RECORDS)?,
                        session,
                        key,
                        &kind.word(),
                        request.as_bytes(),
                        &RecordState::Pending.word(),
                        &lease.name,
                        &lease.token.cast_signed(),
                        &None::<Vec<u8>>,
                    ],
                )?;
                Ok(Begun::Do)
            }
            (RecordEffect::Replay, Some(row)) => {
                Ok(Begun::Done(row.record.outcome.unwrap_or_default()))
            }
            (RecordEffect::SayPending, _) => Ok(Begun::Pending),
            (RecordEffect::SayInterrupted, _) => Ok(Begun::Interrupted),
            _ => Err(LedgerCode::KeyTaken.refuse(format!("{session}, {key}"))),
        }
    }

    /// As [`Ledger::end_record`], within a larger transaction.
    ///
    /// # Errors
    /// As [`Ledger::end_record`].
    pub fn end_record(
        &self,
        session: &Name,
        key: &Name,
        lease: &Lease,
        outcome: &[u8],
    ) -> Result<(), LedgerError> {
        self.check_lease(lease)?;
        if outcome.len() > MAX_OUTCOME {
            return Err(LedgerCode::BodyTooLarge
                .refuse(format!("{} bytes, at most {MAX_OUTCOME}", outcome.len())));
        }
        let known = self.record_row(session, key)?;
        let owner = known
            .as_ref()
            .is_some_and(|row| row.token == lease.token && row.lease == lease.name.as_str());
        let state = known.as_ref().map(|row| row.record.state);
        match (decide(state, RecordEvent::End { owner }), known) {
            ((Some(after), RecordEffect::Store), Some(row)) => self
                .update(
                    &RECORDS,
                    "state = ?2, outcome = ?3",
                    "id = ?1",
                    &[&row.id, &after.word(), &outcome],
                )
                .map(drop),
            _ => Err(LedgerCode::KeyState.refuse(format!("{session}, {key} is not pending here"))),
        }
    }

    /// What an earlier owner of the lease had begun is interrupted from now on.
    pub(crate) fn fence_records(&self, lease: &Name) -> Result<(), LedgerError> {
        let begun = self.all_sealed(
            &RECORDS,
            "lease = ?1 AND state = 'pending'",
            &[lease],
            |row| row.get::<_, i64>(0),
        )?;
        let (after, _) = decide(Some(RecordState::Pending), RecordEvent::OwnerGone);
        for id in begun {
            let word = after.map_or("", RecordState::word);
            self.update(&RECORDS, "state = ?2", "id = ?1", &[&id, &word])?;
        }
        Ok(())
    }
}

/// Largest outcome, bytes: counts, digests and codes.
const MAX_OUTCOME: usize = 4096;

pub(crate) static RECORDS: Table = Table::new(
    "records",
    "id, session, key, kind, request, state, lease, token, outcome",
);

struct RecordRow {
    id: i64,
    record: Record,
    lease: String,
    token: u64,
}

fn read_row(row: &Row<'_>) -> Result<RecordRow, LedgerError> {
    let text = |column: usize| row.get::<_, String>(column).map_err(unreadable);
    let kind = text(3)?;
    let kind = RecordKind::ALL.into_iter().find(|k| k.word() == kind);
    Ok(RecordRow {
        id: row.get(0).map_err(unreadable)?,
        record: Record {
            session: text(1)?.parse()?,
            key: text(2)?.parse()?,
            kind: kind.ok_or_else(|| unreadable("a record of no known kind"))?,
            request: Digest::from_bytes(row.get(4).map_err(unreadable)?),
            state: RecordState::from_word(&text(5)?)
                .ok_or_else(|| unreadable("a record of no known state"))?,
            outcome: row.get(8).map_err(unreadable)?,
        },
        lease: text(6)?,
        token: row.get::<_, i64>(7).map_err(unreadable)?.cast_unsigned(),
    })
}
