//! The revocation list: which keys and certificates count no more, signed, numbered and expiring.
//!
//! A list is a DSSE envelope of [`PAYLOAD_TYPE`], so that no certificate's signature passes for one.
//! Whoever reads lists remembers the highest number seen: an older list, however well signed, is an
//! attempt to undo a revocation.

use crate::dsse;
use crate::key::{KeyId, PublicKey, Signer};
use crate::policy::RevocationRule;
use crate::ring::Ring;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Digest, Moment, Refusal, canonical_json, escape, parse_strict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the envelope says it holds.
pub const PAYLOAD_TYPE: &str = "application/vnd.flightproof.revocations+json";
/// Schema name of a list.
pub const SCHEMA: &str = "flightproof/revocations/1";
/// Most keys and certificates on one list: each has some 150 bytes.
pub const MAX_ENTRIES: usize = 4_000;
/// Longest time a list may be good for, days: what is revoked must get around.
pub const MAX_DAYS: u64 = 366;

/// A list, as it is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevocationList {
    /// [`SCHEMA`].
    pub schema: String,
    /// Which list it is.
    pub list: ListName,
    /// Grows with every issue.
    pub version: u64,
    /// When it was made.
    pub issued: Moment,
    /// From when on it says nothing any more.
    pub expires: Moment,
    /// Keys whose signatures count no more, whenever they were made: a time that the holder of a
    /// stolen key writes down is no evidence.
    pub keys: BTreeMap<Digest, Revoked>,
    /// Certificates that count no more, by id.
    pub certificates: BTreeMap<Digest, Revoked>,
}

/// Why something is on the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    /// When it was put there.
    pub since: Moment,
    /// In the words of whoever did.
    pub reason: String,
}

/// The name of a list, 1 to 60 characters of `a-z 0-9 . - _`, none first but a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ListName(String);

/// What is remembered of a list: the highest version, and which bytes had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// Its version.
    pub version: u64,
    /// SHA-256 of its payload.
    pub digest: Digest,
}

impl Seen {
    /// Refuses what is older than what is remembered, or another of its number.
    ///
    /// # Errors
    /// `REVOCATION_ROLLED_BACK`.
    pub fn not_older(&self, remembered: Option<&Self>) -> Result<(), CertifierError> {
        let Some(before) = remembered else {
            return Ok(());
        };
        if self.version > before.version || self == before {
            return Ok(());
        }
        Err(CertifierCode::RevocationRolledBack.refuse(format_args!(
            "version {} ({}), seen before: version {} ({})",
            self.version, self.digest, before.version, before.digest
        )))
    }
}

/// A list whose signatures, time and number were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRevocations {
    list: RevocationList,
    seen: Seen,
}

impl RevocationList {
    /// What is to be remembered of the list that has this payload.
    pub fn seen(&self, payload: &[u8]) -> Seen {
        Seen {
            version: self.version,
            digest: Digest::of(payload),
        }
    }

    /// The first, empty version of a list.
    pub fn first(list: ListName, now: Moment, days: u64) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            list,
            version: 1,
            issued: now,
            expires: now.after_days(days),
            keys: BTreeMap::new(),
            certificates: BTreeMap::new(),
        }
    }

    /// The next version: what is on it stays on it.
    #[must_use]
    pub fn next(mut self, now: Moment, days: u64) -> Self {
        self.version += 1;
        self.issued = now;
        self.expires = now.after_days(days);
        self
    }

    /// Signs the list.
    ///
    /// # Errors
    /// `REVOCATION_INVALID` for a list that would not be read; as [`dsse::sign`].
    pub fn sign(&self, key: &dyn Signer) -> Result<Vec<u8>, Refusal> {
        self.check()?;
        let payload = canonical_json(self).map_err(invalid)?;
        dsse::sign(PAYLOAD_TYPE, &payload, key)
    }

    /// Reads the payload of a list.
    ///
    /// # Errors
    /// `REVOCATION_INVALID`.
    pub fn parse(payload: &[u8]) -> Result<Self, CertifierError> {
        let list: Self = parse_strict(payload, dsse::MAX_ENVELOPE_BYTES).map_err(invalid)?;
        list.check()?;
        if canonical_json(&list).map_err(invalid)? != payload {
            return Err(invalid("not in canonical form"));
        }
        Ok(list)
    }

    fn check(&self) -> Result<(), CertifierError> {
        if self.schema != SCHEMA {
            return Err(invalid(format_args!(
                "schema \"{}\", expected \"{SCHEMA}\"",
                escape(&self.schema, 60)
            )));
        }
        let entries = self.keys.len() + self.certificates.len();
        if entries > MAX_ENTRIES {
            return Err(invalid(format_args!(
                "{entries} entries, at most {MAX_ENTRIES} allowed"
            )));
        }
        if self.version == 0 || self.expires <= self.issued {
            return Err(invalid("version 0, or expired when it was issued"));
        }
        if self.expires > self.issued.after_days(MAX_DAYS) {
            return Err(invalid(format_args!("good for more than {MAX_DAYS} days")));
        }
        Ok(())
    }
}

impl CheckedRevocations {
    /// Checks a list against the policy's rule, the clock and what is remembered. On success the
    /// caller remembers [`CheckedRevocations::seen`] before anything else.
    ///
    /// # Errors
    /// `REVOCATION_UNAVAILABLE` for an envelope that nobody trusted signed, `REVOCATION_INVALID`,
    /// `REVOCATION_STALE` (expired, or issued after now), `REVOCATION_ROLLED_BACK`.
    pub fn open(
        envelope: &[u8],
        rule: &RevocationRule,
        given: &[PublicKey],
        now: Moment,
        remembered: Option<&Seen>,
    ) -> Result<Self, CertifierError> {
        let ring = Ring::new(Some(&rule.keys), given, now, None);
        let payload = ring
            .open(PAYLOAD_TYPE, envelope, rule.threshold)
            .map_err(|e| CertifierCode::RevocationUnavailable.refuse(e))?;
        let list = RevocationList::parse(payload.bytes())?;
        if list.list != rule.list {
            return Err(invalid(format_args!(
                "list {}, the policy wants {}",
                list.list.0, rule.list.0
            )));
        }
        if now >= list.expires || now < list.issued {
            return Err(CertifierCode::RevocationStale.refuse(format_args!(
                "issued {}, expires {}, now {now}",
                list.issued, list.expires
            )));
        }
        let seen = list.seen(payload.bytes());
        seen.not_older(remembered)?;
        Ok(Self { list, seen })
    }

    /// What is to be remembered.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The list.
    pub fn list(&self) -> &RevocationList {
        &self.list
    }

    /// # Errors
    /// `KEY_REVOKED`.
    pub(crate) fn key(&self, id: KeyId) -> Result<(), CertifierError> {
        self.list.keys.get(&id).map_or(Ok(()), |revoked| {
            Err(CertifierCode::KeyRevoked.refuse(format_args!(
                "key {id} since {}: {}",
                revoked.since,
                escape(&revoked.reason, 120)
            )))
        })
    }

    /// # Errors
    /// `CERTIFICATE_REVOKED`.
    pub(crate) fn certificate(&self, id: Digest) -> Result<(), CertifierError> {
        self.list.certificates.get(&id).map_or(Ok(()), |revoked| {
            Err(CertifierCode::CertificateRevoked.refuse(format_args!(
                "{id} since {}: {}",
                revoked.since,
                escape(&revoked.reason, 120)
            )))
        })
    }
}

fn invalid(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::RevocationInvalid.refuse(reason)
}

impl TryFrom<String> for ListName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = (1..=60).contains(&text.len())
            && text.starts_with(plain)
            && text.chars().all(|c| plain(c) || "._-".contains(c));
        if fits {
            Ok(Self(text))
        } else {
            Err("a list's name is 1 to 60 characters of a-z 0-9 . - _")
        }
    }
}

impl std::str::FromStr for ListName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::try_from(text.to_owned())
    }
}

impl From<ListName> for String {
    fn from(name: ListName) -> Self {
        name.0
    }
}

impl std::fmt::Display for ListName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
