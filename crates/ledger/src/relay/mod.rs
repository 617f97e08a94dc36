//! Messages from one ledger to another: each applied once, in order, whatever happens on the way.

mod channel;
mod grant;
mod outgoing;
mod protocol;
mod rows;
mod wire;

pub(crate) use grant::GRANTS;
pub use grant::Grant;
pub use protocol::{
    ReceiverEffect, ReceiverState, SenderEffect, SenderEvent, SenderState, receive, send,
};
pub(crate) use rows::{ARRIVALS, LINKS, OUTBOX};
pub use wire::{Deframer, Frame, Raw};

use crate::faults::{Point, reach};
use crate::store::Writing;
use crate::{Ledger, LedgerCode, LedgerError, Name};
use channel::Channel;
use flightproof_core::Digest;
use outgoing::Outgoing;
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
            // The sender learns what is refused when that comes first.
            let refused = taken.refused.filter(|_| taken.answers.is_empty());
            let answers = Frame::Answers {
                first,
                answers: taken.answers,
            };
            if let Err(refused) = channel.send(&answers) {
                return Ok(ended(done, refused));
            }
            reach(Point::AfterAcknowledge);
            if let Some(refused) = refused {
                return Ok(ended(done, refused));
            }
        }
    }
}

/// Digest of each message, and the answer to it.
type Answers = Vec<(Digest, Vec<u8>)>;

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
