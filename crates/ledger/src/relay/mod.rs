//! Messages from one ledger to another: each applied once, in order, whatever happens on the way.

mod channel;
mod grant;
mod protocol;
mod wire;

pub(crate) use grant::GRANTS;
pub use grant::Grant;
pub use protocol::{
    ReceiverEffect, ReceiverState, SenderEffect, SenderEvent, SenderState, receive, send,
};
pub use wire::{Deframer, Frame, Raw};

use crate::faults::{Point, reach};
use crate::inbox::check_body;
use crate::store::{Reading, Table, Writing};
use crate::{Ledger, LedgerCode, LedgerError, Name};
use channel::Channel;
use flightproof_core::{Digest, Hasher};
use std::io::{Read, Write};

/// A message as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The link it came by.
    pub link: &'a Name,
    /// Its number on the link, from 1.
    pub seq: u64,
    /// The sender's key for it.
    pub key: &'a Name,
    /// What it says.
    pub body: &'a [u8],
}

/// What a connection achieved, and how it ended. Nothing here is final but what is acknowledged or
/// applied: over the next connection everything else goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talk {
    /// Messages acknowledged (at the sender) or applied (at the receiver) by it, on disk.
    pub done: u64,
    /// How it ended.
    pub ended: Ended,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Everything queued is acknowledged.
    Drained,
    /// The connection failed, or what came over it was not what was sent. Try again.
    Cut(LedgerError),
    /// The other end refuses, or its history is another. Trying again changes nothing until somebody
    /// has looked; nothing is dropped meanwhile.
    Stopped(LedgerError),
}

impl Ledger {
    /// Queues a message for a link. It is on disk before this returns, and goes out after all that
    /// were queued before it. The same message again is the same message; returns its number.
    ///
    /// # Errors
    /// `KEY_TAKEN` if the key has another message, `GRANT_REFUSED` if there is no such link,
    /// `BODY_TOO_LARGE`.
    pub fn queue(&mut self, link: &Name, key: &Name, body: &[u8]) -> Result<u64, LedgerError> {
        self.write(|w| w.queue(link, key, body))
    }

    /// The answer to a queued message; `None` while it is not acknowledged.
    ///
    /// # Errors
    /// Those of [`Ledger::read`].
    pub fn acknowledged(&self, link: &Name, key: &Name) -> Result<Option<Vec<u8>>, LedgerError> {
        self.read(|r| {
            let row = r.sealed(&OUTBOX, "link = ?1 AND key = ?2", &[link, key], |row| {
                row.get(5)
            })?;
            Ok(row.flatten())
        })
    }

    /// How many messages of a link were queued, acknowledged and applied.
    ///
    /// # Errors
    /// `GRANT_REFUSED` if there is no such link.
    pub fn link(&self, link: &Name) -> Result<Link, LedgerError> {
        self.read(|r| r.link(link))
    }

    /// Drops the bodies of messages that are acknowledged. Keys, digests and answers stay.
    ///
    /// # Errors
    /// `GRANT_REFUSED` if there is no such link.
    pub fn forget_sent(&mut self, link: &Name) -> Result<(), LedgerError> {
        self.write(|w| {
            let acknowledged = w.link(link)?.acknowledged.cast_signed();
            w.update(
                &OUTBOX,
                "body = NULL",
                "link = ?1 AND seq <= ?2",
                &[link, &acknowledged],
            )
            .map(drop)
        })
    }

    /// Sends what is queued for a link over a stream whose reads and writes time out, until
    /// everything is acknowledged or the stream fails.
    ///
    /// # Errors
    /// Those of this ledger. What the other end or the network does is in [`Talk`].
    pub fn relay<S: Read + Write>(
        &mut self,
        link: &Name,
        stream: &mut S,
    ) -> Result<Talk, LedgerError> {
        let credentials = self.read(|r| r.sender_credentials(link))?;
        match Channel::greet(stream, link, &credentials) {
            Ok((channel, applied)) => Outgoing {
                ledger: self,
                link,
                channel,
                done: 0,
            }
            .run(applied),
            Err(refused) => Ok(ended(0, refused)),
        }
    }

    /// Receives messages over a stream until its sender is done or the stream fails. `apply` works
    /// within the transaction that stores its answer: effect and answer are one. A message it
    /// refuses stops the link, and comes again with the next connection.
    ///
    /// # Errors
    /// Those of this ledger. What the other end or the network does is in [`Talk`].
    pub fn receive_over<S: Read + Write>(
        &mut self,
        stream: &mut S,
        mut apply: impl FnMut(&Writing<'_>, Message<'_>) -> Result<Vec<u8>, LedgerError>,
    ) -> Result<Talk, LedgerError> {
        let (mut channel, link) = match Channel::welcome(self, stream) {
            Ok(greeted) => greeted,
            Err(refused) => return Ok(ended(0, refused)),
        };
        let mut done = 0;
        loop {
            let (first, messages) = match channel.receive() {
                Ok(Frame::Burst { first, messages }) => (first, messages),
                Ok(Frame::Bye) => {
                    return Ok(Talk {
                        done,
                        ended: Ended::Drained,
                    });
                }
                Ok(_) => return Ok(ended(done, LedgerCode::RelayFrame.refuse("out of order"))),
                Err(refused) => return Ok(ended(done, refused)),
            };
            let taken = self.write(|w| w.take_burst(&link, first, &messages, &mut apply))?;
            done += taken.applied;
            reach(Point::BeforeAcknowledge);
            let answers = Frame::Answers {
                first,
                answers: taken.answers,
            };
            if let Err(refused) = channel.send(&answers) {
                return Ok(ended(done, refused));
            }
            reach(Point::AfterAcknowledge);
            if let Some(refused) = taken.refused {
                return Ok(ended(done, refused));
            }
        }
    }
}

/// How far a link is, at the end this ledger has of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Messages that were queued.
    pub queued: u64,
    /// Messages whose acknowledgement is on disk.
    pub acknowledged: u64,
    /// Messages that were applied.
    pub applied: u64,
}

/// A connection that messages go out by.
struct Outgoing<'a, S> {
    ledger: &'a mut Ledger,
    link: &'a Name,
    channel: Channel<'a, S>,
    done: u64,
}

type Answers = Vec<(Digest, Vec<u8>)>;

impl<S: Read + Write> Outgoing<'_, S> {
    fn run(mut self, applied: u64) -> Result<Talk, LedgerError> {
        let stored = self.ledger.link(self.link)?;
        let mut state = SenderState {
            queued: stored.queued,
            acknowledged: stored.acknowledged,
            ..SenderState::default()
        };
        let mut event = SenderEvent::Connect { applied };
        let mut answers = Answers::new();
        loop {
            // Others may queue meanwhile.
            state.queued = self.ledger.link(self.link)?.queued;
            let (next, effects) = send(state, event, BURST);
            state = next;
            let mut sent = None;
            for effect in effects {
                match effect {
                    SenderEffect::Mark { last } => {
                        if let Some(refused) = self.mark(last, &answers)? {
                            return Ok(self.ended(refused));
                        }
                    }
                    SenderEffect::Send { first, last } => {
                        let (last, burst) = self.burst(first, last)?;
                        state.in_flight = Some((first, last));
                        match self.exchange(&burst) {
                            Ok((first, got)) => {
                                answers = got;
                                sent = Some(first);
                            }
                            Err(refused) => return Ok(self.ended(refused)),
                        }
                    }
                    SenderEffect::Idle => return Ok(self.say_bye()),
                    SenderEffect::Refused { at } => {
                        let why = format!("{}, message {at}", self.link);
                        return Ok(self.ended(LedgerCode::RelayRefused.refuse(why)));
                    }
                    SenderEffect::Diverged => {
                        let why = format!(
                            "{}: the receiver has applied {applied}, here {} of {} are acknowledged",
                            self.link, state.acknowledged, state.queued
                        );
                        return Ok(self.ended(LedgerCode::RelayDiverged.refuse(why)));
                    }
                }
            }
            let Some(first) = sent else {
                let why = "answers to another burst";
                return Ok(self.ended(LedgerCode::RelayFrame.refuse(why)));
            };
            let count = u64::try_from(answers.len()).unwrap_or(u64::MAX);
            event = SenderEvent::Acknowledge { first, count };
        }
    }

    fn burst(&self, first: u64, last: u64) -> Result<(u64, Frame), LedgerError> {
        let messages = self.ledger.read(|r| r.queued(self.link, first, last))?;
        let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        Ok((first + count - 1, Frame::Burst { first, messages }))
    }

    fn exchange(&mut self, burst: &Frame) -> Result<(u64, Answers), LedgerError> {
        self.channel.send(burst)?;
        reach(Point::AfterSend);
        match self.channel.receive()? {
            Frame::Answers { first, answers } => Ok((first, answers)),
            _ => Err(LedgerCode::RelayFrame.refuse("no answers")),
        }
    }

    /// Acknowledgements are on disk before they count. `Some` if one is for another message than
    /// was sent: then none of them is recorded.
    fn mark(&mut self, last: u64, answers: &Answers) -> Result<Option<LedgerError>, LedgerError> {
        reach(Point::BeforeMark);
        let link = self.link;
        match self.ledger.write(|w| w.mark(link, last, answers)) {
            Ok(()) => {
                self.done += u64::try_from(answers.len()).unwrap_or(u64::MAX);
                Ok(None)
            }
            Err(refused) if refused.code == LedgerCode::RelayDiverged => Ok(Some(refused)),
            Err(refused) => Err(refused),
        }
    }

    fn say_bye(mut self) -> Talk {
        // Everything is acknowledged: whether the other end hears this changes nothing.
        let _ = self.channel.send(&Frame::Bye);
        Talk {
            done: self.done,
            ended: Ended::Drained,
        }
    }

    fn ended(&self, refused: LedgerError) -> Talk {
        ended(self.done, refused)
    }
}

/// What one burst came to at the receiver.
struct Taken {
    applied: u64,
    answers: Answers,
    refused: Option<LedgerError>,
}

impl Reading<'_> {
    fn link(&self, link: &Name) -> Result<Link, LedgerError> {
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
    fn queued(
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
            if !messages.is_empty() && bytes > wire::BURST_BYTES {
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
    /// As [`Ledger::queue`], within a larger transaction: the one whose effect it tells about.
    ///
    /// # Errors
    /// As [`Ledger::queue`].
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

    fn mark(&self, link: &Name, last: u64, answers: &Answers) -> Result<(), LedgerError> {
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

    /// Applies what is new of a burst, answers the rest as before, and stops at what is refused.
    fn take_burst(
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
        for (offset, (key, body)) in (0..).zip(messages) {
            // A number beyond all numbers is beyond a gap.
            let seq = first.saturating_add(offset);
            let message = Message {
                link,
                seq,
                key,
                body,
            };
            match self.take_message(&mut state, message, apply) {
                Ok(answer) => taken.answers.push((message_digest(key, body), answer)),
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

/// Most messages of a burst: one synchronisation at each end for all of them.
const BURST: u64 = wire::MOST_MESSAGES as u64;

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

/// What may end otherwise over the next connection, and what will not.
fn ended(done: u64, refused: LedgerError) -> Talk {
    let ended = match refused.code {
        LedgerCode::RelayCut | LedgerCode::RelayFrame | LedgerCode::RelayUnproven => {
            Ended::Cut(refused)
        }
        _ => Ended::Stopped(refused),
    };
    Talk { done, ended }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_with_a_gap_before_it_is_refused_and_nothing_of_it_applied() {
        let temp = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&temp.path().join("state")).unwrap();
        let name = |text: &str| text.parse::<Name>().unwrap();
        let link = name("link");
        ledger.issue_grant(&name("grant"), &link).unwrap();
        let message = |n: u8| (name(&format!("k{n}")), vec![n]);
        let mut seen = Vec::new();
        let mut take = |first, messages: &[(Name, Vec<u8>)]| {
            ledger
                .write(|w| {
                    w.take_burst(&link, first, messages, &mut |_, m| {
                        seen.push(m.seq);
                        Ok(m.body.to_vec())
                    })
                })
                .unwrap()
        };
        for first in [0, 2, u64::MAX] {
            let taken = take(first, &[message(1), message(2)]);
            assert_eq!(taken.refused.unwrap().code, LedgerCode::RelayGap);
            assert!(taken.answers.is_empty());
        }
        assert_eq!(take(1, &[message(1)]).applied, 1);
        // One that was applied, and two that are new.
        let taken = take(1, &[message(1), message(2), message(3)]);
        assert_eq!((taken.applied, taken.answers.len()), (2, 3));
        let taken = take(2, &[message(7)]);
        assert_eq!(taken.refused.unwrap().code, LedgerCode::RelayDiverged);
        assert_eq!(seen, [1, 2, 3]);
    }
}
