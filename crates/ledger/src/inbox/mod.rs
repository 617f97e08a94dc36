//! Requests, each done once: the same key and request give the same answer, byte for byte.

mod protocol;

pub use protocol::{KeyEffect, KeyEvent, KeyState, decide};

use crate::store::{Reading, Table, Writing, unreadable};
use crate::{Lease, Ledger, LedgerCode, LedgerError, Name};
use flightproof_core::Digest;
use rusqlite::Row;

/// What is known about a request when it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// Nobody ever did it: do it now, and answer.
    Fresh,
    /// It was done: this is the answer, byte for byte.
    Answered(Vec<u8>),
    /// Its owner works on it.
    InProgress,
    /// Its owner is gone, and whether it was done is unknown. It is never done again; somebody has
    /// to find out, and [`Ledger::reconcile`].
    Unknown,
    /// It was done and answered; the answer's bytes were dropped, this is their digest.
    Forgotten(Digest),
}

impl Ledger {
    /// Takes a request in. [`Received::Fresh`] is on disk as work in progress of this lease before
    /// this returns; the effect and [`Ledger::answer`] follow.
    ///
    /// # Errors
    /// `KEY_TAKEN` if the key was first seen with another request; `LEASE_LOST`; those of
    /// [`Ledger::write`].
    pub fn receive(
        &mut self,
        key: &Name,
        request: Digest,
        lease: &Lease,
    ) -> Result<Received, LedgerError> {
        self.write(|w| w.receive(key, request, lease))
    }

    /// Stores the answer to work this lease began. It is sent only after this returned.
    ///
    /// # Errors
    /// `LEASE_LOST`, `KEY_STATE` if there is no such work, `BODY_TOO_LARGE`, those of
    /// [`Ledger::write`].
    pub fn answer(&mut self, key: &Name, lease: &Lease, answer: &[u8]) -> Result<(), LedgerError> {
        self.write(|w| w.answer(key, lease, answer))
    }

    /// Does a request whose whole effect is in the ledger: effect and answer are one transaction.
    ///
    /// # Errors
    /// As [`Writing::serve`], and those of [`Ledger::write`].
    pub fn serve(
        &mut self,
        key: &Name,
        request: Digest,
        effect: impl FnOnce(&Writing<'_>) -> Result<Vec<u8>, LedgerError>,
    ) -> Result<Received, LedgerError> {
        // Most repeated requests never become writers.
        match self.read(|r| r.known(key, request))? {
            Some(known) => Ok(known),
            None => self.write(|w| w.serve(key, request, effect)),
        }
    }

    /// What is known under a key, without taking the request in; `None` if it was never seen.
    ///
    /// # Errors
    /// `KEY_TAKEN`, those of [`Ledger::read`].
    pub fn known(&self, key: &Name, request: Digest) -> Result<Option<Received>, LedgerError> {
        self.read(|r| r.known(key, request))
    }

    /// Stores the answer of a request of unknown outcome, after somebody found out.
    ///
    /// # Errors
    /// `KEY_STATE` if its outcome is not unknown, `BODY_TOO_LARGE`.
    pub fn reconcile(&mut self, key: &Name, answer: &[u8]) -> Result<(), LedgerError> {
        self.write(|w| {
            let row = w.inbox_row(key)?;
            let owner_alive = row.map_or(Ok(false), |row| w.owner_alive(&row))?;
            w.store_answer(key, None, KeyEvent::Reconcile { owner_alive }, answer)
        })
    }

    /// Drops the bytes of an answer. Key, request and the answer's digest stay for ever.
    ///
    /// # Errors
    /// `KEY_STATE` if there is no answer.
    pub fn forget(&mut self, key: &Name) -> Result<(), LedgerError> {
        self.write(|w| {
            let row = w.inbox_row(key)?;
            let state = row.as_ref().map_or(KeyState::Free, |row| row.state);
            let answer = row.and_then(|row| row.answer).unwrap_or_default();
            match decide(state, KeyEvent::Forget).1 {
                KeyEffect::Same => Ok(()),
                KeyEffect::Store => w
                    .update(
                        &INBOX,
                        "state = ?2, answer = NULL, answer_digest = ?3",
                        "number = ?1",
                        &[
                            &number_of(key),
                            &KeyState::Forgotten.word(),
                            Digest::of(&answer).as_bytes(),
                        ],
                    )
                    .map(drop),
                _ => Err(LedgerCode::KeyState.refuse(format!("{key} has no answer"))),
            }
        })
    }
}

impl Reading<'_> {
    fn known(&self, key: &Name, request: Digest) -> Result<Option<Received>, LedgerError> {
        self.judge(key, request, self.inbox_row(key)?)
    }

    /// As above, for a writer: if only the index of keys knows it, inserting it is refused.
    fn known_or_new(
        &self,
        key: &Name,
        number: i64,
        request: Digest,
    ) -> Result<Option<Received>, LedgerError> {
        self.judge(key, request, self.row_by_number(key, number)?)
    }

    fn judge(
        &self,
        key: &Name,
        request: Digest,
        row: Option<InboxRow>,
    ) -> Result<Option<Received>, LedgerError> {
        let Some(row) = row else {
            return Ok(None);
        };
        let owner_alive = self.owner_alive(&row)?;
        let same = row.request == request;
        let (_, effect) = decide(row.state, KeyEvent::Receive { same, owner_alive });
        row.received(key, effect).map(Some)
    }

    fn owner_alive(&self, row: &InboxRow) -> Result<bool, LedgerError> {
        match (&row.lease, row.token) {
            (Some(lease), Some(token)) => self.is_current(&lease.parse()?, token),
            _ => Ok(false),
        }
    }

    /// Two structures must agree that a key is new: the index of numbers made from keys, and the index
    /// of keys. A damaged page is in one of them only.
    fn inbox_row(&self, key: &Name) -> Result<Option<InboxRow>, LedgerError> {
        let row = self.row_by_number(key, number_of(key))?;
        if row.is_some() {
            return Ok(row);
        }
        let hidden = self.first(
            "SELECT 1 FROM inbox INDEXED BY inbox_keys WHERE key = ?1",
            &[key],
            |_| Ok(()),
        )?;
        match hidden {
            None => Ok(None),
            Some(()) => {
                Err(LedgerCode::LedgerDamaged
                    .refuse(format!("{key} is in the index and has no row")))
            }
        }
    }

    fn row_by_number(&self, key: &Name, number: i64) -> Result<Option<InboxRow>, LedgerError> {
        let row = self
            .sealed(&INBOX, "number = ?1", &[&number], |row| {
                Ok(InboxRow::read(row))
            })?
            .transpose()?;
        match row {
            Some(row) if row.key != key.as_str() => {
                Err(LedgerCode::LedgerDamaged
                    .refuse(format!("{key} and {} have one number", row.key)))
            }
            row => Ok(row),
        }
    }
}

impl Writing<'_> {
    /// As [`Ledger::receive`], within a larger transaction.
    ///
    /// # Errors
    /// As [`Ledger::receive`].
    pub fn receive(
        &self,
        key: &Name,
        request: Digest,
        lease: &Lease,
    ) -> Result<Received, LedgerError> {
        self.check_lease(lease)?;
        let number = number_of(key);
        if let Some(known) = self.known_or_new(key, number, request)? {
            return Ok(known);
        }
        self.insert(
            &INBOX,
            &[
                &number,
                key,
                request.as_bytes(),
                &KeyState::Working.word(),
                &lease.name,
                &lease.token.cast_signed(),
                &None::<Vec<u8>>,
                &None::<Vec<u8>>,
            ],
        )?;
        Ok(Received::Fresh)
    }

    /// As [`Ledger::answer`], within a larger transaction: the one with the effect.
    ///
    /// # Errors
    /// As [`Ledger::answer`].
    pub fn answer(&self, key: &Name, lease: &Lease, answer: &[u8]) -> Result<(), LedgerError> {
        self.check_lease(lease)?;
        let event = |row: &InboxRow| KeyEvent::Answer {
            owner: row.lease.as_deref() == Some(lease.name.as_str())
                && row.token == Some(lease.token),
        };
        let owner = self.inbox_row(key)?.map(|row| event(&row));
        let event = owner.unwrap_or(KeyEvent::Answer { owner: false });
        self.store_answer(key, Some(lease), event, answer)
    }

    /// Does a request whose whole effect is in this transaction, unless it was done before.
    /// [`Received::Answered`] is the answer in both cases.
    ///
    /// # Errors
    /// `KEY_TAKEN`, `BODY_TOO_LARGE`, and those of `effect`.
    pub fn serve(
        &self,
        key: &Name,
        request: Digest,
        effect: impl FnOnce(&Self) -> Result<Vec<u8>, LedgerError>,
    ) -> Result<Received, LedgerError> {
        let number = number_of(key);
        if let Some(known) = self.known_or_new(key, number, request)? {
            return Ok(known);
        }
        let answer = effect(self)?;
        check_body(&answer)?;
        self.insert(
            &INBOX,
            &[
                &number,
                key,
                request.as_bytes(),
                &KeyState::Answered.word(),
                &None::<String>,
                &None::<i64>,
                &answer,
                &None::<Vec<u8>>,
            ],
        )?;
        Ok(Received::Answered(answer))
    }

    fn store_answer(
        &self,
        key: &Name,
        lease: Option<&Lease>,
        event: KeyEvent,
        answer: &[u8],
    ) -> Result<(), LedgerError> {
        check_body(answer)?;
        let state = self.inbox_row(key)?.map_or(KeyState::Free, |row| row.state);
        let (after, effect) = decide(state, event);
        if effect != KeyEffect::Store {
            return Err(LedgerCode::KeyState.refuse(format!(
                "{key} is {}, asked by {}",
                state.word(),
                lease.map_or("an operator", |l| l.name.as_str())
            )));
        }
        self.update(
            &INBOX,
            "state = ?2, answer = ?3",
            "number = ?1",
            &[&number_of(key), &after.word(), &answer],
        )
        .map(drop)
    }

    /// What an earlier owner of the lease had begun is unknown from now on.
    pub(crate) fn fence_inbox(&self, lease: &Name) -> Result<(), LedgerError> {
        let begun = self.all_sealed(
            &INBOX,
            "lease = ?1 AND state = 'working'",
            &[lease],
            |row| row.get::<_, i64>(0),
        )?;
        let (after, _) = decide(KeyState::Working, KeyEvent::OwnerGone);
        for number in begun {
            self.update(
                &INBOX,
                "state = ?2",
                "number = ?1",
                &[&number, &after.word()],
            )?;
        }
        Ok(())
    }
}

/// Largest answer, bytes: answers are documents, files travel by digest.
const MAX_BODY: usize = 1 << 20;

pub(crate) static INBOX: Table = Table::new(
    "inbox",
    "number, key, request, state, lease, token, answer, answer_digest",
);

/// A number made from the key: two of a million keys share one with a chance of 1 in 20 million,
/// and then the second is refused.
fn number_of(key: &Name) -> i64 {
    let digest = Digest::of(key.as_str().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    i64::from_be_bytes(first)
}

pub(crate) fn check_body(body: &[u8]) -> Result<(), LedgerError> {
    if body.len() <= MAX_BODY {
        return Ok(());
    }
    Err(LedgerCode::BodyTooLarge.refuse(format!("{} bytes, at most {MAX_BODY}", body.len())))
}

struct InboxRow {
    key: String,
    request: Digest,
    state: KeyState,
    lease: Option<String>,
    token: Option<u64>,
    answer: Option<Vec<u8>>,
    answer_digest: Option<Digest>,
}

impl InboxRow {
    fn read(row: &Row<'_>) -> Result<Self, LedgerError> {
        let state: String = row.get(3).map_err(unreadable)?;
        let token: Option<i64> = row.get(5).map_err(unreadable)?;
        let digest: Option<[u8; 32]> = row.get(7).map_err(unreadable)?;
        Ok(Self {
            key: row.get(1).map_err(unreadable)?,
            request: Digest::from_bytes(row.get(2).map_err(unreadable)?),
            state: KeyState::from_word(&state).ok_or_else(|| unreadable("a key of no state"))?,
            lease: row.get(4).map_err(unreadable)?,
            token: token.map(i64::cast_unsigned),
            answer: row.get(6).map_err(unreadable)?,
            answer_digest: digest.map(Digest::from_bytes),
        })
    }

    fn received(self, key: &Name, effect: KeyEffect) -> Result<Received, LedgerError> {
        match (effect, self.answer, self.answer_digest) {
            (KeyEffect::Replay, Some(answer), _) => Ok(Received::Answered(answer)),
            (KeyEffect::SayForgotten, _, Some(digest)) => Ok(Received::Forgotten(digest)),
            (KeyEffect::Wait, ..) => Ok(Received::InProgress),
            (KeyEffect::SayUnknown, ..) => Ok(Received::Unknown),
            (KeyEffect::RefuseOther, ..) => Err(LedgerCode::KeyTaken.refuse(format!(
                "{key} was first seen with request {}",
                self.request
            ))),
            (other, ..) => Err(unreadable(format!("{key}: {other:?}"))),
        }
    }
}
