//! The sending end of a connection: it does what the protocol says.

use super::channel::Channel;
use super::wire::MOST_MESSAGES;
use super::{Answers, Ended, Frame, SenderEffect, SenderEvent, SenderState, Talk, ended, send};
use crate::faults::{Point, reach};
use crate::{Ledger, LedgerCode, LedgerError, Name};
use std::io::{Read, Write};

/// A connection that messages go out by.
pub(super) struct Outgoing<'a, S> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) link: &'a Name,
    pub(super) channel: Channel<'a, S>,
    pub(super) done: u64,
}

impl<S: Read + Write> Outgoing<'_, S> {
    pub(super) fn run(mut self, applied: u64) -> Result<Talk, LedgerError> {
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

/// Most messages of a burst: one synchronisation at each end for all of them.
const BURST: u64 = MOST_MESSAGES as u64;
