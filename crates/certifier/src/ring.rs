//! The keys that may sign one kind of document: given by the operator, narrowed by the policy, in
//! force now, and not revoked.

use crate::dsse::{self, VerifiedPayload};
use crate::key::{KeyId, PublicKey};
use crate::revocation::CheckedRevocations;
use crate::{CertifierCode, CertifierError};
use flightproof_core::Moment;

/// A key as a policy names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedKey {
    /// Which.
    pub id: KeyId,
    /// Before this moment it is not in force.
    pub from: Option<Moment>,
    /// From this moment on it is in force no more.
    pub until: Option<Moment>,
}

impl NamedKey {
    fn in_force(&self, now: Moment) -> Result<(), CertifierError> {
        if let Some(from) = self.from.filter(|from| now < *from) {
            return Err(CertifierCode::KeyExpired
                .refuse(format_args!("key {} is in force from {from} on", self.id)));
        }
        if let Some(until) = self.until.filter(|until| now >= *until) {
            return Err(CertifierCode::KeyExpired
                .refuse(format_args!("key {} was in force until {until}", self.id)));
        }
        Ok(())
    }
}

/// The keys of one role.
pub(crate) struct Ring {
    usable: Vec<PublicKey>,
    /// Keys that would count but for their time or a revocation, each with its refusal.
    lapsed: Vec<(PublicKey, CertifierError)>,
}

impl Ring {
    /// Those of the given keys that the role names; all of them if it names none. A policy narrows
    /// what the operator trusts and never widens it.
    pub(crate) fn new(
        named: Option<&[NamedKey]>,
        given: &[PublicKey],
        now: Moment,
        revocations: Option<&CheckedRevocations>,
    ) -> Self {
        let mut ring = Self {
            usable: Vec::new(),
            lapsed: Vec::new(),
        };
        for key in given {
            let rule = named.map(|named| named.iter().find(|rule| rule.id == key.id()));
            let in_force = match rule {
                None => Ok(()),
                Some(None) => continue,
                Some(Some(rule)) => rule.in_force(now),
            };
            let revoked = revocations.map_or(Ok(()), |list| list.key(key.id()));
            match revoked.and(in_force) {
                Ok(()) => ring.usable.push(*key),
                Err(refusal) => ring.lapsed.push((*key, refusal)),
            }
        }
        ring
    }

    /// Whether a key counts.
    ///
    /// # Errors
    /// `KEY_UNAUTHORIZED`, `KEY_EXPIRED`, `KEY_REVOKED`.
    pub(crate) fn has(&self, key: &PublicKey) -> Result<(), CertifierError> {
        if self.usable.contains(key) {
            return Ok(());
        }
        let lapsed = self.lapsed.iter().find(|(lapsed, _)| lapsed == key);
        Err(lapsed.map_or_else(
            || CertifierCode::KeyUnauthorized.refuse(format_args!("key {}", key.id())),
            |(_, refusal)| refusal.clone(),
        ))
    }

    /// Opens an envelope that enough of the keys have signed.
    ///
    /// # Errors
    /// `KEY_UNAUTHORIZED` if the ring is empty; those of [`dsse::open_as`]; where a key signed that
    /// counts no more, `KEY_EXPIRED` or `KEY_REVOKED` instead of `SIGNATURE_INVALID` and
    /// `THRESHOLD_NOT_MET`.
    pub(crate) fn open(
        &self,
        payload_type: &str,
        envelope: &[u8],
        threshold: usize,
    ) -> Result<VerifiedPayload, CertifierError> {
        if self.usable.is_empty() && self.lapsed.is_empty() {
            return Err(CertifierCode::KeyUnauthorized.refuse("none of the given keys may sign"));
        }
        let refusal = match dsse::open_as(payload_type, envelope, &self.usable, threshold) {
            Ok(payload) => return Ok(payload),
            Err(refusal) => refusal,
        };
        let short = [
            CertifierCode::SignatureInvalid,
            CertifierCode::ThresholdNotMet,
        ];
        if !short.contains(&refusal.code) {
            return Err(refusal);
        }
        let signed = |key: &PublicKey| dsse::open_as(payload_type, envelope, &[*key], 1).is_ok();
        let lapsed = self.lapsed.iter().find(|(key, _)| signed(key));
        Err(lapsed.map_or(refusal, |(_, lapsed)| lapsed.clone()))
    }
}
