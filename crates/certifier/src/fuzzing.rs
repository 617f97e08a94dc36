//! Oracle bodies: the unit test, the corpus replay and the fuzz target call the same ones.

use crate::certificate::Statement;
use crate::key::SecretKey;
use crate::{consistency, dsse};

/// A stranger's bytes, once as an envelope and once as a payload that was signed. Nothing panics,
/// and what is accepted has exactly one spelling: written and signed again it gives the same bytes.
///
/// Returns whether the bytes were a certificate in either place.
///
/// # Panics
/// When that does not hold, which is what a fuzzer looks for.
pub fn envelope_raw(data: &[u8]) -> bool {
    let key = fuzz_key();
    let opened = dsse::open(data, &[key.public()], 1);
    let in_envelope = opened.is_ok_and(|payload| statement_raw(payload.bytes(), &key));
    statement_raw(data, &key) || in_envelope
}

/// The key whose signatures [`envelope_raw`] trusts, so that a corpus can hold signed seeds.
pub fn fuzz_key() -> SecretKey {
    SecretKey::from_seed([42; 32])
}

fn statement_raw(payload: &[u8], key: &SecretKey) -> bool {
    let Ok(statement) = Statement::parse(payload) else {
        return false;
    };
    let _ = consistency::check(&statement);
    assert_eq!(statement.payload().as_deref(), Ok(payload));
    let envelope = match statement.sign(key) {
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
