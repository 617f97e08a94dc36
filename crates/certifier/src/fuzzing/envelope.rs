//! Envelopes of several signatures.

use super::{Choices, fuzz_key_of};
use crate::dsse;
use crate::key::PublicKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What is done to one signature.
const DAMAGES: [Damage; 5] = [
    Damage::None,
    Damage::Bit,
    Damage::OtherPayload,
    Damage::OtherType,
    Damage::OtherId,
];

#[derive(Clone, Copy, PartialEq)]
enum Damage {
    None,
    Bit,
    OtherPayload,
    OtherType,
    /// The name of another key, which decides nothing.
    OtherId,
}

/// Makes an envelope of up to five signatures by three keys, some damaged, and asks whether so many
/// distinct trusted keys signed it.
///
/// # Panics
/// When the answer is not the one that follows from the choices.
pub fn envelope_plan(choices: &[u8]) {
    let mut choices = Choices(choices);
    let payload: Vec<u8> = (0..choices.below(6)).map(|_| choices.below(255)).collect();
    let trusted: Vec<u8> = (0..3).filter(|_| choices.coin()).collect();
    let threshold = usize::from(choices.below(4));
    let mut good = BTreeSet::new();
    let signatures: Vec<Value> = (0..choices.below(6))
        .map(|_| {
            let (key, damage) = (choices.below(3), *choices.one_of(&DAMAGES));
            if matches!(damage, Damage::None | Damage::OtherId) && trusted.contains(&key) {
                good.insert(key);
            }
            signature(&payload, key, damage, choices.below(64))
        })
        .collect();
    let text = json!({
        "payloadType": dsse::PAYLOAD_TYPE,
        "payload": STANDARD.encode(&payload),
        "signatures": signatures,
    })
    .to_string();
    let keys: Vec<PublicKey> = trusted
        .iter()
        .map(|key| fuzz_key_of(*key).public())
        .collect();
    let opened = dsse::open(text.as_bytes(), &keys, threshold);
    assert_eq!(
        opened.is_ok(),
        threshold >= 1 && good.len() >= threshold,
        "{text} {trusted:?} {threshold}: {:?}",
        opened.err()
    );
    if let Ok(opened) = opened {
        assert_eq!(opened.bytes(), payload);
        assert_eq!(opened.signers().len(), good.len());
    }
}

fn signature(payload: &[u8], key: u8, damage: Damage, at: u8) -> Value {
    let signer = fuzz_key_of(key);
    let message = match damage {
        Damage::OtherPayload => dsse::pae(dsse::PAYLOAD_TYPE, &[payload, b"x"].concat()),
        Damage::OtherType => dsse::pae("application/json", payload),
        _ => dsse::pae(dsse::PAYLOAD_TYPE, payload),
    };
    let mut bytes = signer.sign(&message);
    if damage == Damage::Bit {
        bytes[usize::from(at)] ^= 1;
    }
    let named = match damage {
        Damage::OtherId => fuzz_key_of(9),
        _ => signer,
    };
    json!({"keyid": named.public().id(), "sig": STANDARD.encode(bytes)})
}
