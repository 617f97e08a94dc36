//! How messages are stored: loaded, queued, applied and acknowledged as the protocol says.

use super::wire::BURST_BYTES;
use super::{Answers, Link, Message, ReceiverEffect, ReceiverState, receive};
use crate::inbox::check_body;
use crate::store::{Reading, Table, Writing};
use crate::{LedgerCode, LedgerError, Name};
use flightproof_core::{Digest, Hasher};

/// What one burst came to at the receiver.
pub(super) struct Taken {
    pub(super) applied: u64,
    pub(super) answers: Answers,
    pub(super) refused: Option<LedgerError>,
}

impl Reading<'_> {
    pub(super) fn link(&self, link: &Name) -> Result<Link, LedgerError> {
        self.sealed(&LINKS, "link = ?1", &[link], |row| {
            let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            Ok(Link {
                queued: number(1)?,
                acknowledged: number(2)?,
                applied: number(3)?,
            })
        })?
        .ok_or_else(|| LedgerCode::GrantRefused.refuse(format!("no link {link}")))
    }

    /// Queued messages from `first` on, at most up to `last`, and no more than a burst has bytes.
    pub(super) fn queued(
        &self,
        link: &Name,
        first: u64,
        last: u64,
    ) -> Result<Vec<(Name, Vec<u8>)>, LedgerError> {
        let rows = self.all_sealed(
            &OUTBOX,
            "link = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq",
            &[link, &first.cast_signed(), &last.cast_signed()],
            |row| {
                let seq: i64 = row.get(1)?;
                Ok((
                    seq.cast_unsigned(),
                    row.get::<_, String>(2)?,
                    row.get::<_, [u8; 32]>(3)?,
                    row.get::<_, Option<Vec<u8>>>(4)?,
                ))
            },
        )?;
        let mut messages = Vec::new();
        let mut bytes = 0;
        for (expected, (seq, key, digest, body)) in (first..=last).zip(rows) {
            let key: Name = key.parse()?;
            let body = body.ok_or_else(|| damaged(link, seq, "has no body"))?;
            if seq != expected || message_digest(&key, &body).as_bytes() != &digest {
                return Err(damaged(link, seq, "is not what was queued"));
            }
            bytes += body.len();
            if !messages.is_empty() && bytes > BURST_BYTES {
                break;
            }
            messages.push((key, body));
        }
        if messages.is_empty() {
            return Err(damaged(link, first, "is missing"));
        }
        Ok(messages)
    }
}

impl Writing<'_> {
    /// As [`crate::Ledger::queue`], within a larger transaction: the one whose effect it tells about.
    ///
    /// # Errors
    /// As [`crate::Ledger::queue`].
    pub fn queue(&self, link: &Name, key: &Name, body: &[u8]) -> Result<u64, LedgerError> {
        check_body(body)?;
        let digest = message_digest(key, body);
        let known = self.sealed(&OUTBOX, "link = ?1 AND key = ?2", &[link, key], |row| {
            Ok((row.get::<_, i64>(1)?, row.get::<_, [u8; 32]>(3)?))
        })?;
        match known {
            Some((seq, same)) if &same == digest.as_bytes() => return Ok(seq.cast_unsigned()),
            Some(_) => {
                return Err(LedgerCode::KeyTaken.refuse(format!("{link}, {key}: another message")));
            }
            None => {}
        }
        let seq = self.link(link)?.queued + 1;
        let stored = seq.cast_signed();
        self.insert(
            &OUTBOX,
            &[
                link,
                &stored,
                key,
                digest.as_bytes(),
                &body,
                &None::<Vec<u8>>,
            ],
        )?;
        self.update(&LINKS, "queued = ?2", "link = ?1", &[link, &stored])?;
        Ok(seq)
    }

    pub(super) fn mark(
        &self,
        link: &Name,
        last: u64,
        answers: &Answers,
    ) -> Result<(), LedgerError> {
        let count = u64::try_from(answers.len()).unwrap_or(u64::MAX);
        let first = (last + 1).saturating_sub(count);
        for (seq, (digest, answer)) in (first..=last).zip(answers) {
            check_body(answer)?;
            let sent = self.sealed(
                &OUTBOX,
                "link = ?1 AND seq = ?2",
                &[link, &seq.cast_signed()],
                |row| row.get::<_, [u8; 32]>(3),
            )?;
            if sent.as_ref() != Some(digest.as_bytes()) {
                return Err(LedgerCode::RelayDiverged
                    .refuse(format!("{link}, message {seq}: another one was applied")));
            }
            self.update(
                &OUTBOX,
                "answer = ?3",
                "link = ?1 AND seq = ?2",
                &[link, &seq.cast_signed(), answer],
            )?;
        }
        self.update(
            &LINKS,
            "acknowledged = ?2",
            "link = ?1",
            &[link, &last.cast_signed()],
        )
        .map(drop)
    }

    /// Applies what is new of a burst, answers the rest as before, and stops at what is refused, or when
    /// the answers fill a frame.
    pub(super) fn take_burst(
        &self,
        link: &Name,
        first: u64,
        messages: &[(Name, Vec<u8>)],
        apply: &mut impl FnMut(&Writing<'_>, Message<'_>) -> Result<Vec<u8>, LedgerError>,
    ) -> Result<Taken, LedgerError> {
        let before = self.link(link)?.applied;
        let mut state = ReceiverState { applied: before };
        let mut taken = Taken {
            applied: 0,
            answers: Answers::new(),
            refused: None,
        };
        let mut bytes = 0;
        for (offset, (key, body)) in (0..).zip(messages) {
            if bytes >= BURST_BYTES {
                break;
            }
            // A number beyond all numbers is beyond a gap.
            let seq = first.saturating_add(offset);
            let message = Message {
                link,
                seq,
                key,
                body,
            };
            match self.take_message(&mut state, message, apply) {
                Ok(answer) => {
                    bytes += answer.len();
                    taken.answers.push((message_digest(key, body), answer));
                }
                Err(refused) if self.storage_failed() => return Err(refused),
                Err(refused) => {
                    taken.refused = Some(match refused.code {
                        LedgerCode::RelayGap | LedgerCode::RelayDiverged => refused,
                        _ => LedgerCode::RelayRefused.refuse(refused),
                    });
                    break;
                }
            }
        }
        if state.applied != before {
            let applied = state.applied.cast_signed();
            self.update(&LINKS, "applied = ?2", "link = ?1", &[link, &applied])?;
        }
        taken.applied = state.applied - before;
        Ok(taken)
    }

    fn take_message(
        &self,
        state: &mut ReceiverState,
        message: Message<'_>,
        apply: &mut impl FnMut(&Writing<'_>, Message<'_>) -> Result<Vec<u8>, LedgerError>,
    ) -> Result<Vec<u8>, LedgerError> {
        let Message {
            link,
            seq,
            key,
            body,
        } = message;
        let digest = message_digest(key, body);
        let known = if seq <= state.applied {
            self.arrival(link, seq)?
        } else {
            None
        };
        let same = known.as_ref().is_some_and(|(first, _)| first == &digest);
        let (next, effect) = receive(*state, seq, same);
        match (effect, known) {
            (ReceiverEffect::Apply, _) => {
                let answer = self.attempt(|w| {
                    let answer = apply(w, message)?;
                    check_body(&answer)?;
                    w.insert(
                        &ARRIVALS,
                        &[link, &seq.cast_signed(), key, digest.as_bytes(), &answer],
                    )?;
                    Ok(answer)
                })?;
                *state = next;
                Ok(answer)
            }
            (ReceiverEffect::Replay, Some((_, answer))) => Ok(answer),
            (ReceiverEffect::Gap, _) => Err(LedgerCode::RelayGap
                .refuse(format!("{link}: got {seq}, applied {}", state.applied))),
            _ => Err(LedgerCode::RelayDiverged
                .refuse(format!("{link}: another message had number {seq}"))),
        }
    }

    fn arrival(&self, link: &Name, seq: u64) -> Result<Option<(Digest, Vec<u8>)>, LedgerError> {
        self.sealed(
            &ARRIVALS,
            "link = ?1 AND seq = ?2",
            &[link, &seq.cast_signed()],
            |row| Ok((Digest::from_bytes(row.get(3)?), row.get(4)?)),
        )
    }
}

pub(crate) static LINKS: Table = Table::new("links", "link, queued, acknowledged, applied");
pub(crate) static OUTBOX: Table = Table::new("outbox", "link, seq, key, digest, body, answer");
pub(crate) static ARRIVALS: Table = Table::new("arrivals", "link, seq, key, digest, answer");

fn message_digest(key: &Name, body: &[u8]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(key.as_str().as_bytes());
    // No name has a zero byte.
    hasher.update(&[0]);
    hasher.update(body);
    hasher.finish()
}

fn damaged(link: &Name, seq: u64, what: &str) -> LedgerError {
    LedgerCode::LedgerDamaged.refuse(format!("{link}: message {seq} {what}"))
}
