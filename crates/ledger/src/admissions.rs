//! Which admissions were intended, how each ended, and the receipt of each.

use crate::store::{Reading, Table, Writing, seconds, unreadable};
use crate::{
    Admission, AdmissionId, AdmissionKey, Intended, Ledger, LedgerCode, LedgerError, State,
};
use flightproof_core::Digest;
use rusqlite::Row;

/// What stands in a certificate's place where there is none: nothing but a person vouched.
pub fn uncertified() -> Digest {
    Digest::of(b"flightproof/uncertified/1")
}

impl Ledger {
    /// Journals that the branch is about to move. `now` is in unix seconds.
    ///
    /// # Errors
    /// `REQUEST_DIFFERS` if the key is taken under another certificate, `ADMISSION_OPEN` or
    /// `ADMISSION_CLOSED` if an earlier try has no outcome or no proven one, `COMMIT_UNCERTAIN`.
    pub fn intend(
        &mut self,
        key: &AdmissionKey,
        certificate: Digest,
        now: u64,
    ) -> Result<Intended, LedgerError> {
        self.write(|w| match standing(w, key)? {
            Some(row) => row.answer(certificate).map(Intended::AlreadyApplied),
            None => journal(w, key, certificate, now).map(Intended::Journaled),
        })
    }

    /// What [`Ledger::intend`] would say, without journaling: the receipt if the same request was
    /// applied before, `None` if the key is free.
    ///
    /// # Errors
    /// As [`Ledger::intend`], but for the commit.
    pub fn earlier(
        &self,
        key: &AdmissionKey,
        certificate: Digest,
    ) -> Result<Option<Vec<u8>>, LedgerError> {
        self.read(|r| standing(r, key))?
            .map(|row| row.answer(certificate))
            .transpose()
    }

    /// Records how an open admission ended, with its receipt where the branch moved.
    ///
    /// # Errors
    /// `ADMISSION_NOT_OPEN` if it has an outcome already, `COMMIT_UNCERTAIN`.
    pub fn settle(
        &mut self,
        id: AdmissionId,
        state: State,
        receipt: Option<&[u8]>,
        now: u64,
    ) -> Result<(), LedgerError> {
        if state == State::Intended || receipt.is_some() != (state == State::Applied) {
            return Err(LedgerCode::AdmissionNotOpen
                .refuse("only an applied admission has a receipt, and an intent is no outcome"));
        }
        self.write(|w| {
            let open = w.sealed(
                &ADMISSIONS,
                "id = ?1 AND state = 'intended'",
                &[&id.0],
                |_| Ok(()),
            )?;
            if open.is_none() {
                return Err(LedgerCode::AdmissionNotOpen.refuse(format!("admission {id}")));
            }
            w.anchor_at_once();
            w.update(
                &ADMISSIONS,
                "state = ?2, receipt = ?3, settled_at = ?4",
                "id = ?1",
                &[&id.0, &state.word(), &receipt, &seconds(now)],
            )
            .map(drop)
        })
    }

    /// Admissions without an outcome, oldest first.
    ///
    /// # Errors
    /// `LEDGER_UNREADABLE`, or `COMMIT_UNCERTAIN` after a failed commit.
    pub fn open_intents(&self) -> Result<Vec<Admission>, LedgerError> {
        self.standing_at(State::Intended)
    }

    /// Admissions whose branch moved, oldest first.
    ///
    /// # Errors
    /// As [`Ledger::open_intents`].
    pub fn applied(&self) -> Result<Vec<Admission>, LedgerError> {
        self.standing_at(State::Applied)
    }

    fn standing_at(&self, state: State) -> Result<Vec<Admission>, LedgerError> {
        self.read(|r| {
            let in_state = "state = ?1 ORDER BY id";
            r.all_sealed(&ADMISSIONS, in_state, &[&state.word()], |row| {
                Ok(read_admission(row))
            })?
            .into_iter()
            .collect()
        })
    }

    /// The receipt of an applied admission, byte for byte as it was first written.
    ///
    /// # Errors
    /// `LEDGER_UNREADABLE`, or `COMMIT_UNCERTAIN` after a failed commit.
    pub fn receipt(&self, key: &AdmissionKey) -> Result<Option<Vec<u8>>, LedgerError> {
        Ok(self.read(|r| standing(r, key))?.and_then(|row| row.receipt))
    }
}

pub(crate) static ADMISSIONS: Table = Table::new(
    "admissions",
    "id, repository, branch, baseline, head, certificate, state, intended_at, settled_at, receipt",
);

struct Standing {
    certificate: String,
    state: State,
    receipt: Option<Vec<u8>>,
}

/// The row that holds the key, if one does.
fn standing(reading: &Reading<'_>, key: &AdmissionKey) -> Result<Option<Standing>, LedgerError> {
    let found = reading.sealed(
        &ADMISSIONS,
        "repository = ?1 AND branch = ?2 AND baseline = ?3 AND head = ?4 AND state <> 'not-applied'",
        &[
            &key.repository,
            &key.branch,
            &key.baseline.to_string(),
            &key.head.to_string(),
        ],
        |row| Ok((row.get(5)?, row.get::<_, String>(6)?, row.get(9)?)),
    )?;
    found
        .map(|(certificate, word, receipt)| {
            Ok(Standing {
                certificate,
                state: State::from_word(&word).ok_or_else(|| unreadable("unknown state"))?,
                receipt,
            })
        })
        .transpose()
}

impl Standing {
    /// The first receipt for the same request, a refusal for everything else.
    fn answer(self, certificate: Digest) -> Result<Vec<u8>, LedgerError> {
        if self.certificate != certificate.to_string() {
            return Err(LedgerCode::RequestDiffers.refuse(format!(
                "this commit was asked for here before, under certificate {}; now under {certificate}",
                self.certificate
            )));
        }
        match (self.state, self.receipt) {
            (State::Applied, Some(receipt)) => Ok(receipt),
            (State::Intended, _) => Err(LedgerCode::AdmissionOpen.refuse("journaled, not settled")),
            (state, _) => Err(LedgerCode::AdmissionClosed.refuse(state.word())),
        }
    }
}

fn journal(
    w: &Writing<'_>,
    key: &AdmissionKey,
    certificate: Digest,
    now: u64,
) -> Result<AdmissionId, LedgerError> {
    w.anchor_at_once();
    let next = w.next_id(&ADMISSIONS)?;
    w.insert(
        &ADMISSIONS,
        &[
            &next,
            &key.repository,
            &key.branch,
            &key.baseline.to_string(),
            &key.head.to_string(),
            &certificate.to_string(),
            &State::Intended.word(),
            &seconds(now),
            &None::<i64>,
            &None::<Vec<u8>>,
        ],
    )?;
    Ok(AdmissionId(next))
}

fn read_admission(row: &Row<'_>) -> Result<Admission, LedgerError> {
    let text = |column: usize| row.get::<_, String>(column).map_err(unreadable);
    Ok(Admission {
        id: AdmissionId(row.get(0).map_err(unreadable)?),
        key: AdmissionKey {
            repository: text(1)?,
            branch: text(2)?,
            baseline: text(3)?.parse().map_err(unreadable)?,
            head: text(4)?.parse().map_err(unreadable)?,
        },
        certificate: text(5)?.parse().map_err(unreadable)?,
        intended_at: u64::try_from(row.get::<_, i64>(7).map_err(unreadable)?)
            .map_err(unreadable)?,
    })
}
