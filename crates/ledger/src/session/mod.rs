//! The life of a session, and that its end is known and not assumed.

mod protocol;

pub use protocol::{SessionEffect, SessionEvent, SessionState, decide};

use crate::store::{Reading, Table, Writing, seconds, unreadable};
use crate::{Ledger, LedgerCode, LedgerError, Name};

impl Ledger {
    /// One step in the life of a session. The first one of a name is [`SessionEvent::Create`].
    ///
    /// # Errors
    /// `SESSION_STATE` if the session's state does not allow it, and those of [`Ledger::write`].
    pub fn session_event(
        &mut self,
        session: &Name,
        event: SessionEvent,
        now: u64,
    ) -> Result<SessionState, LedgerError> {
        self.write(|w| w.session_event(session, event, now))
    }

    /// How a session stands; [`SessionState::Absent`] if there never was one.
    ///
    /// # Errors
    /// Those of [`Ledger::read`].
    pub fn session(&self, session: &Name) -> Result<SessionState, LedgerError> {
        self.read(|r| r.session(session))
    }

    /// Sessions whose deletion is not confirmed, by name.
    ///
    /// # Errors
    /// Those of [`Ledger::read`].
    pub fn sessions_left(&self) -> Result<Vec<(Name, SessionState)>, LedgerError> {
        self.read(|r| {
            r.all_sealed(&SESSIONS, "state <> 'deleted' ORDER BY name", &[], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })?
            .into_iter()
            .map(|(name, word)| Ok((name.parse()?, read_state(&word)?)))
            .collect()
        })
    }
}

impl Reading<'_> {
    /// As [`Ledger::session`].
    ///
    /// # Errors
    /// `LEDGER_DAMAGED`, `LEDGER_UNREADABLE`.
    pub fn session(&self, session: &Name) -> Result<SessionState, LedgerError> {
        self.sealed(&SESSIONS, "name = ?1", &[session], |row| {
            row.get::<_, String>(1)
        })?
        .map_or(Ok(SessionState::Absent), |word| read_state(&word))
    }
}

impl Writing<'_> {
    /// As [`Ledger::session_event`], within a larger transaction.
    ///
    /// # Errors
    /// `SESSION_STATE`.
    pub fn session_event(
        &self,
        session: &Name,
        event: SessionEvent,
        now: u64,
    ) -> Result<SessionState, LedgerError> {
        let before = self.session(session)?;
        let (after, effect) = decide(before, event);
        match effect {
            SessionEffect::Same => {}
            SessionEffect::Refuse => {
                return Err(LedgerCode::SessionState.refuse(format!(
                    "{session} is {}, asked for {event:?}",
                    before.word()
                )));
            }
            SessionEffect::Store if before == SessionState::Absent => {
                self.insert(&SESSIONS, &[session, &after.word(), &seconds(now)])?;
            }
            SessionEffect::Store => {
                self.update(
                    &SESSIONS,
                    "state = ?2, changed_at = ?3",
                    "name = ?1",
                    &[session, &after.word(), &seconds(now)],
                )?;
            }
        }
        Ok(after)
    }
}

pub(crate) static SESSIONS: Table = Table::new("sessions", "name, state, changed_at");

fn read_state(word: &str) -> Result<SessionState, LedgerError> {
    SessionState::from_word(word).ok_or_else(|| unreadable("a session of no known state"))
}
