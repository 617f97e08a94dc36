//! Who may talk over a link: one sender, the first that proves it was given the grant.

use crate::store::{Reading, Table, Writing, unreadable};
use crate::{Ledger, LedgerCode, LedgerError, Name};
use flightproof_core::Digest;
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq as _;

/// What a receiver hands to one sender, by a way nobody else reads. It is redeemed once; after that
/// it is worth nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its name.
    pub id: Name,
    /// The link it opens.
    pub link: Name,
    secret: [u8; 32],
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grant({} for {})", self.id, self.link)
    }
}

impl Grant {
    /// The text to hand over, secret included.
    pub fn reveal(&self) -> String {
        let secret = Digest::from_bytes(self.secret);
        format!("{PREFIX} {} {} {secret}", self.id, self.link)
    }
}

impl FromStr for Grant {
    type Err = LedgerError;
    fn from_str(text: &str) -> Result<Self, LedgerError> {
        let bad = || LedgerCode::GrantRefused.refuse("this is no grant");
        let mut words = text.split(' ');
        let mut word = || words.next().ok_or_else(bad);
        if word()? != PREFIX {
            return Err(bad());
        }
        let (id, link) = (word()?.parse()?, word()?.parse()?);
        let secret: Digest = word()?.parse().map_err(|_| bad())?;
        if words.next().is_some() {
            return Err(bad());
        }
        Ok(Self {
            id,
            link,
            secret: *secret.as_bytes(),
        })
    }
}

impl Ledger {
    /// Makes a grant for a new link that messages will come in by.
    ///
    /// # Errors
    /// `KEY_TAKEN` if the link or the grant exists.
    pub fn issue_grant(&mut self, id: &Name, link: &Name) -> Result<Grant, LedgerError> {
        let grant = Grant {
            id: id.clone(),
            link: link.clone(),
            secret: random()?,
        };
        self.write(|w| w.store_grant(&grant, &Role::Receiver))?;
        Ok(grant)
    }

    /// Takes a grant for a new link that messages will go out by. Its secret is not kept.
    ///
    /// # Errors
    /// `KEY_TAKEN` if the link or the grant exists.
    pub fn accept_grant(&mut self, grant: &Grant) -> Result<(), LedgerError> {
        let nonce = random()?;
        let key = link_key(grant, &nonce);
        self.write(|w| w.store_grant(grant, &Role::Sender { nonce, key }))
    }
}

/// What a connection is authenticated with.
pub(super) struct Credentials {
    pub(super) grant: Name,
    pub(super) nonce: [u8; 32],
    pub(super) key: [u8; 32],
}

impl Reading<'_> {
    /// What the sender of a link proves itself with.
    pub(super) fn sender_credentials(&self, link: &Name) -> Result<Credentials, LedgerError> {
        let row = self.sealed(&GRANTS, "link = ?1 AND role = 'sender'", &[link], |row| {
            Ok((row.get::<_, String>(0)?, row.get(4)?, row.get(5)?))
        })?;
        let (grant, nonce, key) =
            row.ok_or_else(|| LedgerCode::GrantRefused.refuse(format!("no grant for {link}")))?;
        Ok(Credentials {
            grant: grant.parse()?,
            nonce,
            key,
        })
    }

    /// The key that whoever sent this nonce must know, and whether the grant is redeemed with it.
    ///
    /// # Errors
    /// `GRANT_SPENT` if it is redeemed with another, `GRANT_REFUSED` if there is no such grant.
    pub(super) fn receiver_key(
        &self,
        id: &Name,
        link: &Name,
        nonce: &[u8; 32],
    ) -> Result<([u8; 32], bool), LedgerError> {
        type Stored = (Option<[u8; 32]>, Option<[u8; 32]>, Option<[u8; 32]>);
        let row = self.sealed(
            &GRANTS,
            "id = ?1 AND link = ?2 AND role = 'receiver'",
            &[id, link],
            |row| Ok::<Stored, _>((row.get(3)?, row.get(4)?, row.get(5)?)),
        )?;
        match row {
            Some((Some(secret), None, None)) => {
                let grant = Grant {
                    id: id.clone(),
                    link: link.clone(),
                    secret,
                };
                Ok((link_key(&grant, nonce), false))
            }
            Some((None, Some(first), Some(key))) if &first == nonce => Ok((key, true)),
            Some((None, Some(_), Some(_))) => {
                Err(LedgerCode::GrantSpent.refuse(format!("{id} for {link}")))
            }
            Some(_) => Err(unreadable("a grant in no known state")),
            None => Err(LedgerCode::GrantRefused.refuse(format!("{id} for {link}"))),
        }
    }
}

impl Writing<'_> {
    fn store_grant(&self, grant: &Grant, role: &Role) -> Result<(), LedgerError> {
        let known = self.sealed(
            &GRANTS,
            "id = ?1 OR link = ?2",
            &[&grant.id, &grant.link],
            |_| Ok(()),
        )?;
        if known.is_some() {
            return Err(LedgerCode::KeyTaken.refuse(format!("{} or {}", grant.id, grant.link)));
        }
        let (word, secret, nonce, key) = match role {
            Role::Receiver => ("receiver", Some(grant.secret), None, None),
            Role::Sender { nonce, key } => ("sender", None, Some(*nonce), Some(*key)),
        };
        self.insert(
            &GRANTS,
            &[&grant.id, &grant.link, &word, &secret, &nonce, &key],
        )?;
        self.insert(&super::LINKS, &[&grant.link, &0, &0, &0])
    }

    /// Binds a grant to the sender that proved itself first. Its secret is gone after this.
    pub(super) fn redeem(
        &self,
        id: &Name,
        link: &Name,
        nonce: &[u8; 32],
    ) -> Result<(), LedgerError> {
        let (key, redeemed) = self.receiver_key(id, link, nonce)?;
        if redeemed {
            return Ok(());
        }
        self.update(
            &GRANTS,
            "secret = NULL, nonce = ?2, key = ?3",
            "id = ?1",
            &[id, nonce, &key],
        )
        .map(drop)
    }
}

enum Role {
    Receiver,
    Sender { nonce: [u8; 32], key: [u8; 32] },
}

pub(crate) static GRANTS: Table = Table::new("grants", "id, link, role, secret, nonce, key");
/// First word of a grant's text.
const PREFIX: &str = "flightproof-grant-1";

fn link_key(grant: &Grant, nonce: &[u8; 32]) -> [u8; 32] {
    code(
        &grant.secret,
        "link",
        &[
            grant.id.as_str().as_bytes(),
            b" ",
            grant.link.as_str().as_bytes(),
            nonce,
        ],
    )
}

/// A code over pieces under a key, for one purpose. Two nested keyed digests: nobody who sees one
/// can make another for a longer text. Callers keep all but one piece at a fixed length.
pub(super) fn code(key: &[u8; 32], purpose: &str, pieces: &[&[u8]]) -> [u8; 32] {
    let mut text = purpose.as_bytes().to_vec();
    text.push(0);
    for piece in pieces {
        text.extend_from_slice(piece);
    }
    let inner = Digest::keyed(key, &text);
    *Digest::keyed(key, inner.as_bytes()).as_bytes()
}

/// Compares without telling where the first difference is.
pub(super) fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    bool::from(a.ct_eq(b))
}

pub(super) fn random() -> Result<[u8; 32], LedgerError> {
    let mut bytes = [0; 32];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(unreadable)?;
    if got == bytes.len() {
        return Ok(bytes);
    }
    Err(unreadable("the machine gave too little entropy"))
}
