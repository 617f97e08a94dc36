//! Letters between flights: to a parent, a child or a sibling, and to nobody else.

use crate::inbox::check_body;
use crate::store::{Reading, Table, Writing, unreadable};
use crate::{Ledger, LedgerCode, LedgerError, Name};
use flightproof_core::Digest;
use rusqlite::Row;

/// A letter that waits for its receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Its number: letters to one receiver come in this order.
    pub id: LetterId,
    /// Who wrote it.
    pub sender: Name,
    /// The sender's key for it.
    pub key: Name,
    /// What it says.
    pub body: Vec<u8>,
}

/// The number of a letter. Never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LetterId(i64);

/// How two flights stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinship {
    /// The receiver is the sender's parent.
    Parent,
    /// The receiver is the sender's child.
    Child,
    /// Both have the same parent.
    Sibling,
    /// They have nothing to say to each other.
    None,
}

/// How a receiver stands to a sender. A flight is no kin of its own, and two flights without a
/// parent are no siblings.
pub fn kinship(
    sender: &Name,
    sender_parent: Option<&Name>,
    receiver: &Name,
    receiver_parent: Option<&Name>,
) -> Kinship {
    if sender == receiver {
        Kinship::None
    } else if sender_parent == Some(receiver) {
        Kinship::Parent
    } else if receiver_parent == Some(sender) {
        Kinship::Child
    } else if sender_parent.is_some() && sender_parent == receiver_parent {
        Kinship::Sibling
    } else {
        Kinship::None
    }
}

impl Ledger {
    /// Makes a flight known, once and for all with its parent.
    ///
    /// # Errors
    /// `KEY_TAKEN` if it is known with another parent, `NOT_KIN` if its parent is not known.
    pub fn enrol(&mut self, flight: &Name, parent: Option<&Name>) -> Result<(), LedgerError> {
        self.write(|w| {
            match w.flight(flight)? {
                Some(known) if known.as_ref() == parent => return Ok(()),
                Some(_) => {
                    return Err(LedgerCode::KeyTaken.refuse(format!("{flight} has another parent")));
                }
                None => {}
            }
            if let Some(parent) = parent {
                w.flight(parent)?.ok_or_else(|| {
                    LedgerCode::NotKin.refuse(format!("{parent}, the parent, is not known"))
                })?;
            }
            w.insert(&FLIGHTS, &[flight, &parent])
        })
    }

    /// Writes a letter. It is on disk before this returns, and waits until its receiver takes it.
    /// The same letter again is the same letter.
    ///
    /// # Errors
    /// `NOT_KIN`, `KEY_TAKEN` if the key has another letter, `QUEUE_FULL`, `BODY_TOO_LARGE`.
    pub fn write_letter(
        &mut self,
        sender: &Name,
        receiver: &Name,
        key: &Name,
        body: &[u8],
    ) -> Result<LetterId, LedgerError> {
        self.write(|w| w.write_letter(sender, receiver, key, body))
    }

    /// Letters that wait for a receiver, oldest first, at most `most`. They stay until taken.
    ///
    /// # Errors
    /// Those of [`Ledger::read`].
    pub fn letters(&self, receiver: &Name, most: u32) -> Result<Vec<Letter>, LedgerError> {
        self.read(|r| {
            r.all_sealed(
                &LETTERS,
                "receiver = ?1 AND taken = 0 ORDER BY id LIMIT ?2",
                &[receiver, &most],
                |row| Ok(read_letter(row)),
            )?
            .into_iter()
            .collect()
        })
    }

    /// Says that the receiver has a letter. Again it changes nothing. The body goes, the key stays.
    ///
    /// # Errors
    /// `NOT_KIN` if the letter is not to this receiver, or does not exist.
    pub fn take_letter(&mut self, receiver: &Name, id: LetterId) -> Result<(), LedgerError> {
        self.write(|w| {
            let found = w.sealed(
                &LETTERS,
                "id = ?1 AND receiver = ?2",
                &[&id.0, receiver],
                |row| row.get::<_, bool>(6),
            )?;
            match found {
                None => {
                    Err(LedgerCode::NotKin.refuse(format!("letter {} is not to {receiver}", id.0)))
                }
                Some(true) => Ok(()),
                Some(false) => w
                    .update(&LETTERS, "taken = 1, body = NULL", "id = ?1", &[&id.0])
                    .map(drop),
            }
        })
    }
}

impl Reading<'_> {
    /// The parent of a flight; the outer `None` if the flight is not known.
    fn flight(&self, flight: &Name) -> Result<Option<Option<Name>>, LedgerError> {
        self.sealed(&FLIGHTS, "name = ?1", &[flight], |row| {
            row.get::<_, Option<String>>(1)
        })?
        .map(|parent| parent.map(|p| p.parse()).transpose())
        .transpose()
    }

    fn authorise(&self, sender: &Name, receiver: &Name) -> Result<(), LedgerError> {
        let kin = match (self.flight(sender)?, self.flight(receiver)?) {
            (Some(from), Some(to)) => kinship(sender, from.as_ref(), receiver, to.as_ref()),
            _ => Kinship::None,
        };
        if kin == Kinship::None {
            return Err(LedgerCode::NotKin.refuse(format!("{sender} to {receiver}")));
        }
        Ok(())
    }
}

impl Writing<'_> {
    /// As [`Ledger::write_letter`], within a larger transaction.
    ///
    /// # Errors
    /// As [`Ledger::write_letter`].
    pub fn write_letter(
        &self,
        sender: &Name,
        receiver: &Name,
        key: &Name,
        body: &[u8],
    ) -> Result<LetterId, LedgerError> {
        self.authorise(sender, receiver)?;
        check_body(body)?;
        let digest = Digest::of(body);
        let known = self.sealed(
            &LETTERS,
            "sender = ?1 AND key = ?2",
            &[sender, key],
            |row| {
                Ok((
                    row.get(0)?,
                    row.get::<_, String>(2)?,
                    row.get::<_, [u8; 32]>(4)?,
                ))
            },
        )?;
        if let Some((id, to, known)) = known {
            if to == receiver.as_str() && &known == digest.as_bytes() {
                return Ok(LetterId(id));
            }
            return Err(LedgerCode::KeyTaken.refuse(format!("{sender}, {key}: another letter")));
        }
        let waiting = self.first(
            "SELECT COUNT(*) FROM letters WHERE receiver = ?1 AND taken = 0",
            &[receiver],
            |row| row.get::<_, i64>(0),
        )?;
        if waiting.unwrap_or(0) >= MOST_WAITING {
            return Err(
                LedgerCode::QueueFull.refuse(format!("{MOST_WAITING} letters wait for {receiver}"))
            );
        }
        let id = self.next_id(&LETTERS)?;
        self.insert(
            &LETTERS,
            &[&id, sender, receiver, key, digest.as_bytes(), &body, &false],
        )?;
        Ok(LetterId(id))
    }
}

/// Letters that may wait for one receiver: a flight that never comes back must not fill the disk.
const MOST_WAITING: i64 = 1024;

pub(crate) static FLIGHTS: Table = Table::new("flights", "name, parent");
pub(crate) static LETTERS: Table =
    Table::new("letters", "id, sender, receiver, key, digest, body, taken");

fn read_letter(row: &Row<'_>) -> Result<Letter, LedgerError> {
    let text = |column: usize| row.get::<_, String>(column).map_err(unreadable);
    Ok(Letter {
        id: LetterId(row.get(0).map_err(unreadable)?),
        sender: text(1)?.parse()?,
        key: text(3)?.parse()?,
        body: row.get(5).map_err(unreadable)?,
    })
}
