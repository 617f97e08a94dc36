//! Oracle bodies: the unit test, the corpus replay and the fuzz target call the same ones.
//!
//! `raw` bodies take a stranger's bytes. `plan` bodies take choices, make something of them whose
//! answer follows from the choices by rules written here, and hold our answer against it.

mod envelope;
mod judge;
mod revocations;

pub use envelope::envelope_plan;
pub use judge::{judge_plan, judge_raw};
pub use revocations::revocations_plan;

use crate::certificate::Statement;
use crate::key::SecretKey;
use crate::policy::Policy;
use crate::revocation::RevocationList;
use crate::{consistency, dsse};

/// The key whose signatures [`envelope_raw`] trusts, so that a corpus can hold signed seeds.
pub fn fuzz_key() -> SecretKey {
    fuzz_key_of(42)
}

/// A key of its own for each number.
fn fuzz_key_of(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

/// A stranger's bytes as an envelope. What is accepted was signed by the trusted key alone, and opens
/// to the same bytes when it is wrapped anew.
///
/// Returns whether the bytes were an envelope around a certificate.
///
/// # Panics
/// When that does not hold, which is what a fuzzer looks for.
pub fn envelope_raw(data: &[u8]) -> bool {
    let key = fuzz_key();
    let Ok(opened) = dsse::open(data, &[key.public()], 1) else {
        return false;
    };
    assert_eq!(opened.signers(), [key.public().id()]);
    assert!(dsse::open(data, &[fuzz_key_of(1).public()], 1).is_err());
    assert!(dsse::open(data, &[key.public()], 2).is_err());
    let wrapped = dsse::sign(dsse::PAYLOAD_TYPE, opened.bytes(), &key);
    let again = wrapped.map(|wrapped| dsse::open(&wrapped, &[key.public()], 1));
    assert!(again.is_ok_and(|again| again.is_ok_and(|again| again.bytes() == opened.bytes())));
    statement_raw(opened.bytes())
}

/// A stranger's bytes as a payload that was signed. What is accepted has exactly one spelling, and both
/// ways of reading it agree on that.
///
/// Returns whether the bytes were a statement.
///
/// # Panics
/// When that does not hold.
pub fn statement_raw(payload: &[u8]) -> bool {
    let key = fuzz_key();
    assert_eq!(Statement::plainly(payload), Statement::slowly(payload).ok());
    let Ok(statement) = Statement::parse(payload) else {
        return false;
    };
    let _ = consistency::check(&statement);
    assert_eq!(statement.payload().as_deref(), Ok(payload));
    assert_eq!(statement.subject.len(), 1);
    let envelope = match statement.sign(&key) {
        Ok(envelope) => envelope,
        Err(refusal) => {
            assert_eq!(refusal.code(), "certifier/ENVELOPE_TOO_LARGE");
            return true;
        }
    };
    let opened = dsse::open(&envelope, &[key.public()], 1);
    assert_eq!(opened.as_ref().map(|o| o.bytes()), Ok(payload));
    true
}

/// A file as a policy. What is accepted demands something of somebody: at least one gate, at least
/// one key; and no byte behind it goes unread.
///
/// Returns whether it was one.
///
/// # Panics
/// When that does not hold.
pub fn policy_raw(data: &[u8]) -> bool {
    let Ok(policy) = Policy::parse(data) else {
        return false;
    };
    assert!(!policy.required_gates().is_empty());
    assert!(policy.threshold() >= 1);
    let thresholds = [
        policy.revocations().map(|rule| rule.threshold),
        policy.admission().map(|rule| rule.threshold),
    ];
    assert!(thresholds.into_iter().flatten().all(|least| least >= 1));
    assert_eq!(Policy::parse(data).as_ref(), Ok(&policy));
    assert!(Policy::parse(&[data, b"x"].concat()).is_err());
    assert!(Policy::parse(&[b"[", data, b"]"].concat()).is_err());
    true
}

/// A stranger's bytes as the payload of a revocation list. What is accepted has exactly one spelling,
/// a time, and a next version that is read as well.
///
/// Returns whether it was one.
///
/// # Panics
/// When that does not hold.
pub fn revocations_raw(payload: &[u8]) -> bool {
    let Ok(list) = RevocationList::parse(payload) else {
        return false;
    };
    assert!(list.version >= 1 && list.expires > list.issued);
    let canonical = flightproof_core::canonical_json(&list);
    assert!(canonical.is_ok_and(|bytes| bytes == payload));
    true
}

/// Choices, one byte after the other; none left are zeros.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    /// A number below a bound.
    fn below(&mut self, bound: u8) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first % bound.max(1)
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    /// One of several.
    fn one_of<'b, T>(&mut self, of: &'b [T]) -> &'b T {
        &of[usize::from(self.below(u8::try_from(of.len()).unwrap_or(u8::MAX)))]
    }
}
