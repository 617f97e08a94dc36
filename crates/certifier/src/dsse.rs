//! The signed envelope: DSSE v1 around one in-toto payload, read strictly.

use crate::key::{KeyId, PublicKey, Signer};
use crate::{CertifierCode, CertifierError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flightproof_core::{Refusal, StrictError, canonical_json, counted, escape, parse_strict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The only payload type written and read here.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Largest envelope in bytes: several times a certificate with a thousand dependencies.
pub const MAX_ENVELOPE_BYTES: usize = 1 << 20;

/// Most signatures looked at: each costs a point multiplication per trusted key.
pub const MAX_SIGNATURES: usize = 16;

/// Signs a payload and wraps it.
///
/// # Errors
/// `ENVELOPE_TOO_LARGE`, when the result could not be read back; what keeps the key from signing.
pub fn sign(payload_type: &str, payload: &[u8], key: &dyn Signer) -> Result<Vec<u8>, Refusal> {
    let envelope = Envelope {
        payload_type: payload_type.to_owned(),
        payload: STANDARD.encode(payload),
        signatures: vec![EnvelopeSignature::new(payload_type, payload, key)?],
    };
    Ok(envelope.bytes()?)
}

/// Adds the signature of one more key to an envelope, whose payload must be the one given.
///
/// # Errors
/// As [`open`] for the form; `PAYLOAD_DIFFERS`; `SIGNATURES_TOO_MANY`; what keeps the key from
/// signing.
pub fn join(
    envelope: &[u8],
    payload_type: &str,
    payload: &[u8],
    key: &dyn Signer,
) -> Result<Vec<u8>, Refusal> {
    let mut envelope = parse(envelope)?;
    expect_type(&envelope, payload_type)?;
    if decode("payload", &envelope.payload)? != payload {
        return Err(CertifierCode::PayloadDiffers
            .refuse("the signatures that are there are over something else")
            .into());
    }
    let name = key.public_key().id().to_string();
    envelope
        .signatures
        .retain(|signature| signature.keyid.as_deref() != Some(name.as_str()));
    if envelope.signatures.len() >= MAX_SIGNATURES {
        return Err(too_many(envelope.signatures.len() + 1).into());
    }
    let added = EnvelopeSignature::new(payload_type, payload, key)?;
    envelope.signatures.push(added);
    Ok(envelope.bytes()?)
}

/// What an envelope holds, whoever made it: to be shown, never to be relied on.
///
/// # Errors
/// As [`open`] for the form, without a look at any signature.
pub fn unchecked(envelope: &[u8], payload_type: &str) -> Result<Vec<u8>, CertifierError> {
    let envelope = parse(envelope)?;
    expect_type(&envelope, payload_type)?;
    decode("payload", &envelope.payload)
}

/// Checks an envelope around an in-toto statement and hands out what was signed.
///
/// # Errors
/// As [`open_as`].
pub fn open(
    envelope: &[u8],
    keys: &[PublicKey],
    threshold: usize,
) -> Result<VerifiedPayload, CertifierError> {
    open_as(PAYLOAD_TYPE, envelope, keys, threshold)
}

/// Checks an envelope of one payload type and hands out what was signed.
///
/// `keys` are the trusted ones; `threshold` counts distinct keys among them. The `keyid` of a
/// signature is a hint of a stranger and decides nothing.
///
/// # Errors
/// In this order: `THRESHOLD_INVALID`, `ENVELOPE_TOO_LARGE`, `ENVELOPE_MALFORMED`,
/// `PAYLOAD_TYPE_UNSUPPORTED`, `SIGNATURE_MISSING`, `SIGNATURES_TOO_MANY`, `SIGNATURE_INVALID` (no
/// trusted key signed), `THRESHOLD_NOT_MET` (too few did).
pub fn open_as(
    payload_type: &str,
    envelope: &[u8],
    keys: &[PublicKey],
    threshold: usize,
) -> Result<VerifiedPayload, CertifierError> {
    if threshold == 0 {
        return Err(CertifierCode::ThresholdInvalid.refuse("threshold 0"));
    }
    let envelope = parse(envelope)?;
    expect_type(&envelope, payload_type)?;
    let payload = decode("payload", &envelope.payload)?;
    let signatures = signatures(&envelope)?;
    let message = pae(&envelope.payload_type, &payload);
    let signers = signers(&message, &signatures, keys);
    if signers.is_empty() {
        return Err(CertifierCode::SignatureInvalid.refuse(format_args!(
            "none of {} is by one of {}",
            counted(signatures.len(), "signature"),
            counted(keys.len(), "trusted key")
        )));
    }
    if signers.len() < threshold {
        return Err(CertifierCode::ThresholdNotMet.refuse(format_args!(
            "signed by {}, {threshold} needed",
            counted(signers.len(), "distinct trusted key")
        )));
    }
    Ok(VerifiedPayload { payload, signers })
}

/// A payload that enough trusted keys have signed. These are the signed bytes themselves; there is
/// no way to read an envelope's payload before its signatures are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedPayload {
    payload: Vec<u8>,
    signers: Vec<KeyId>,
}

impl VerifiedPayload {
    /// The bytes that were signed.
    pub fn bytes(&self) -> &[u8] {
        &self.payload
    }

    /// The trusted keys that signed, each once, ordered by id.
    pub fn signers(&self) -> &[KeyId] {
        &self.signers
    }
}

/// The bytes a signature covers: type and payload, each after its length in bytes, so that neither
/// can be read as part of the other.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    )
    .into_bytes();
    out.extend_from_slice(payload);
    out
}

/// Unknown fields are ignored, as DSSE demands; nothing here ever reads them.
#[derive(Serialize, Deserialize)]
struct Envelope {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Serialize, Deserialize)]
struct EnvelopeSignature {
    #[serde(default)]
    keyid: Option<String>,
    sig: String,
}

impl Envelope {
    fn bytes(&self) -> Result<Vec<u8>, CertifierError> {
        let bytes = canonical_json(self)
            .map_err(|e| CertifierCode::EnvelopeMalformed.refuse(e.to_string()))?;
        if bytes.len() > MAX_ENVELOPE_BYTES {
            return Err(too_large(bytes.len()));
        }
        Ok(bytes)
    }
}

impl EnvelopeSignature {
    fn new(payload_type: &str, payload: &[u8], key: &dyn Signer) -> Result<Self, Refusal> {
        Ok(Self {
            keyid: Some(key.public_key().id().to_string()),
            sig: STANDARD.encode(key.signature(&pae(payload_type, payload))?),
        })
    }
}

fn expect_type(envelope: &Envelope, expected: &str) -> Result<(), CertifierError> {
    if envelope.payload_type == expected {
        return Ok(());
    }
    Err(CertifierCode::PayloadTypeUnsupported.refuse(format_args!(
        "got \"{}\", expected \"{expected}\"",
        escape(&envelope.payload_type, 80)
    )))
}

fn parse(envelope: &[u8]) -> Result<Envelope, CertifierError> {
    parse_strict(envelope, MAX_ENVELOPE_BYTES).map_err(|e| match e {
        StrictError::TooLarge { found, .. } => too_large(found),
        StrictError::Malformed(reason) => CertifierCode::EnvelopeMalformed.refuse(reason),
    })
}

fn signatures(envelope: &Envelope) -> Result<Vec<Vec<u8>>, CertifierError> {
    let found = envelope.signatures.len();
    if found == 0 {
        return Err(CertifierCode::SignatureMissing.refuse("the list of signatures is empty"));
    }
    if found > MAX_SIGNATURES {
        return Err(too_many(found));
    }
    envelope
        .signatures
        .iter()
        .map(|signature| decode("signature", &signature.sig))
        .collect()
}

/// Which trusted keys made one of the signatures. A key counts once, however often it signed and
/// however often it is listed.
fn signers(message: &[u8], signatures: &[Vec<u8>], keys: &[PublicKey]) -> Vec<KeyId> {
    let distinct: BTreeMap<&[u8; 32], &PublicKey> =
        keys.iter().map(|key| (key.as_bytes(), key)).collect();
    let mut signers: Vec<KeyId> = distinct
        .values()
        .filter(|key| signatures.iter().any(|sig| key.verifies(message, sig)))
        .map(|key| key.id())
        .collect();
    signers.sort_unstable();
    signers
}

/// Standard alphabet, padded, no stray bits: every byte string has exactly one spelling.
fn decode(what: &str, text: &str) -> Result<Vec<u8>, CertifierError> {
    STANDARD.decode(text).map_err(|e| {
        CertifierCode::EnvelopeMalformed.refuse(format_args!("{what} is not canonical base64: {e}"))
    })
}

fn too_many(found: usize) -> CertifierError {
    CertifierCode::SignaturesTooMany
        .refuse(format_args!("{found}, at most {MAX_SIGNATURES} allowed"))
}

fn too_large(found: usize) -> CertifierError {
    CertifierCode::EnvelopeTooLarge.refuse(format_args!(
        "{found} bytes, at most {MAX_ENVELOPE_BYTES} allowed"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SecretKey;
    use ed25519_dalek::SigningKey;
    use serde_json::{Value, json};

    const PAYLOAD: &[u8] = br#"{"a":1}"#;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_seed([seed; 32])
    }

    fn envelope() -> Value {
        serde_json::from_slice(&sign(PAYLOAD_TYPE, PAYLOAD, &key(1)).unwrap()).unwrap()
    }

    fn signature(payload_type: &str, seed: u8) -> Value {
        let bytes = sign(payload_type, PAYLOAD, &key(seed)).unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap()["signatures"][0].clone()
    }

    fn open_value(
        value: &Value,
        seeds: &[u8],
        threshold: usize,
    ) -> Result<Vec<KeyId>, CertifierCode> {
        open_text(&value.to_string(), seeds, threshold)
    }

    fn open_text(text: &str, seeds: &[u8], threshold: usize) -> Result<Vec<KeyId>, CertifierCode> {
        let keys: Vec<PublicKey> = seeds.iter().map(|seed| key(*seed).public()).collect();
        open(text.as_bytes(), &keys, threshold)
            .map(|verified| {
                assert_eq!(verified.bytes(), PAYLOAD);
                verified.signers().to_vec()
            })
            .map_err(|e| e.code)
    }

    #[test]
    fn what_was_signed_opens_and_opens_to_the_same_bytes() {
        assert_eq!(
            open_value(&envelope(), &[1], 1),
            Ok(vec![key(1).public().id()])
        );
        let mut two = envelope();
        two["signatures"] = json!([signature(PAYLOAD_TYPE, 1), signature(PAYLOAD_TYPE, 2)]);
        assert_eq!(open_value(&two, &[1, 2], 2).map(|s| s.len()), Ok(2));
    }

    #[test]
    fn the_length_in_front_of_a_type_counts_bytes() {
        assert_eq!(pae("é", b"x"), "DSSEv1 2 é 1 x".as_bytes());
        assert_eq!(
            pae("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }

    #[test]
    fn another_payload_type_is_refused_before_the_payload_is_read() {
        for other in [
            "application/json",
            "application/vnd.in-toto+JSON",
            "application/vnd.in-toto+json ",
            "",
        ] {
            let mut forged = envelope();
            forged["signatures"] = json!([signature(other, 1)]);
            forged["payloadType"] = json!(other);
            assert_eq!(
                open_value(&forged, &[1], 1),
                Err(CertifierCode::PayloadTypeUnsupported),
                "{other}"
            );
        }
    }

    #[test]
    fn a_signature_over_anything_else_is_invalid() {
        let naive = [PAYLOAD_TYPE.as_bytes(), PAYLOAD].concat();
        let zeros = format!("DSSEv1 028 {PAYLOAD_TYPE} 07 {{\"a\":1}}").into_bytes();
        let unspaced = format!("DSSEv128 {PAYLOAD_TYPE} 7 {{\"a\":1}}").into_bytes();
        for message in [naive, zeros, unspaced, PAYLOAD.to_vec()] {
            let mut forged = envelope();
            forged["signatures"][0]["sig"] = json!(STANDARD.encode(key(1).sign(&message)));
            assert_eq!(
                open_value(&forged, &[1], 1),
                Err(CertifierCode::SignatureInvalid)
            );
        }
        let mut under_another_type = envelope();
        under_another_type["signatures"] = json!([signature("application/json", 1)]);
        assert_eq!(
            open_value(&under_another_type, &[1], 1),
            Err(CertifierCode::SignatureInvalid)
        );
        let mut tampered = envelope();
        tampered["payload"] = json!(STANDARD.encode(br#"{"a":2}"#));
        assert_eq!(
            open_value(&tampered, &[1], 1),
            Err(CertifierCode::SignatureInvalid)
        );
    }

    #[test]
    fn a_prehashed_signature_is_not_a_pure_one() {
        use sha2::{Digest as _, Sha512};
        let message = pae(PAYLOAD_TYPE, PAYLOAD);
        let signing = SigningKey::from_bytes(&[1; 32]);
        let prehashed = signing
            .sign_prehashed(Sha512::new().chain_update(&message), None)
            .unwrap();
        let mut forged = envelope();
        forged["signatures"][0]["sig"] = json!(STANDARD.encode(prehashed.to_bytes()));
        assert_eq!(
            open_value(&forged, &[1], 1),
            Err(CertifierCode::SignatureInvalid)
        );
    }

    #[test]
    fn a_malleated_or_cut_signature_is_invalid() {
        // The group order l, little endian: s + l verifies the same equation.
        const ORDER: [u8; 32] = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9,
            0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
        ];
        let honest = key(1).sign(&pae(PAYLOAD_TYPE, PAYLOAD));
        let mut twin = honest;
        let mut carry = 0u16;
        for (byte, order) in twin[32..].iter_mut().zip(ORDER) {
            carry += u16::from(*byte) + u16::from(order);
            *byte = carry.to_le_bytes()[0];
            carry >>= 8;
        }
        let longer = [honest.as_slice(), &[0]].concat();
        for bad in [&twin[..], &honest[..63], &honest[..0], &longer] {
            let mut forged = envelope();
            forged["signatures"][0]["sig"] = json!(STANDARD.encode(bad));
            assert_eq!(
                open_value(&forged, &[1], 1),
                Err(CertifierCode::SignatureInvalid),
                "{} bytes",
                bad.len()
            );
        }
    }

    #[test]
    fn a_document_is_read_in_one_way_or_not_at_all() {
        let good = envelope().to_string();
        assert!(open_text(&good, &[1], 1).is_ok());
        let payload = envelope()["payload"].as_str().unwrap().to_owned();
        assert!(
            payload.ends_with("fQ=="),
            "the cases below build on its end"
        );
        for bad in [
            good.replacen('{', r#"{"payloadType":"application/json","#, 1),
            good.replacen('{', r#"{"payl\u006fad":"aGk=","#, 1),
            good.replacen(r#""sig""#, r#""sig":"","sig""#, 1),
            good.replace("payloadType", "payloadtype"),
            good.replace("fQ==", "fR=="),
            good.replace("fQ==", "fQ"),
            good.replace("fQ==", "fQ=\\n="),
            good.replace("fQ==", " fQ=="),
            good.replace("fQ==", "-Q=="),
            format!("{good}{good}"),
            format!("{good}x"),
            format!("\u{feff}{good}"),
            good.replace(r#""sig":""#, r#""sig":"\ud800"#),
            "[".repeat(100_000),
            "[]".to_owned(),
            String::new(),
        ] {
            assert_eq!(
                open_text(&bad, &[1], 1),
                Err(CertifierCode::EnvelopeMalformed),
                "{}",
                escape(&bad, 200)
            );
        }
    }

    #[test]
    fn a_list_of_fields_is_no_envelope_and_no_signature() {
        let good = envelope();
        let signature = json!([good["signatures"][0]["keyid"], good["signatures"][0]["sig"]]);
        let mut within = good.clone();
        within["signatures"] = json!([signature]);
        let all = json!([good["payloadType"], good["payload"], good["signatures"]]);
        for bad in [all, within] {
            assert_eq!(
                open_value(&bad, &[1], 1),
                Err(CertifierCode::EnvelopeMalformed),
                "{bad}"
            );
        }
    }

    #[test]
    fn fields_that_nothing_reads_change_nothing() {
        let mut more = envelope();
        more["future"] = json!({"verdict": "refused"});
        more["signatures"][0]["alg"] = json!("HS256");
        assert!(open_value(&more, &[1], 1).is_ok());
    }

    #[test]
    fn size_and_number_of_signatures_are_bounded() {
        let pad = " ".repeat(MAX_ENVELOPE_BYTES);
        let text = format!("{}{pad}", envelope());
        assert_eq!(
            open_text(&text, &[1], 1),
            Err(CertifierCode::EnvelopeTooLarge)
        );
        assert_eq!(
            sign(PAYLOAD_TYPE, pad.as_bytes(), &key(1)).map_err(|e| e.code()),
            Err("certifier/ENVELOPE_TOO_LARGE")
        );
        let garbage = json!({"keyid": "", "sig": STANDARD.encode([0; 64])});
        let mut many = envelope();
        many["signatures"] = json!(vec![garbage.clone(); 5_000]);
        many["signatures"][4_999] = signature(PAYLOAD_TYPE, 1);
        assert_eq!(
            open_value(&many, &[1], 1),
            Err(CertifierCode::SignaturesTooMany)
        );
        many["signatures"] = json!(vec![garbage; MAX_SIGNATURES]);
        many["signatures"][MAX_SIGNATURES - 1] = signature(PAYLOAD_TYPE, 1);
        assert!(open_value(&many, &[1], 1).is_ok());
        many["signatures"] = json!([]);
        assert_eq!(
            open_value(&many, &[1], 1),
            Err(CertifierCode::SignatureMissing)
        );
    }

    #[test]
    fn what_just_fits_is_written_and_read_and_one_byte_more_is_not() {
        let fixed = sign(PAYLOAD_TYPE, b"", &key(1)).unwrap().len();
        let room = (MAX_ENVELOPE_BYTES - fixed) / 4 * 3;
        let longest = vec![b' '; room];
        let envelope = sign(PAYLOAD_TYPE, &longest, &key(1)).unwrap();
        assert_eq!(unchecked(&envelope, PAYLOAD_TYPE).unwrap(), longest);
        let spare = MAX_ENVELOPE_BYTES - envelope.len();
        let padded = [&envelope[..], &b" ".repeat(spare)].concat();
        assert!(open(&padded, &[key(1).public()], 1).is_ok());
        let longer = [&padded[..], b" "].concat();
        let refused = unchecked(&longer, PAYLOAD_TYPE).unwrap_err();
        assert_eq!(refused.code, CertifierCode::EnvelopeTooLarge);
        let refused = sign(PAYLOAD_TYPE, &vec![b' '; room + 3], &key(1)).unwrap_err();
        assert_eq!(refused.code(), "certifier/ENVELOPE_TOO_LARGE");
    }

    #[test]
    fn a_threshold_counts_keys_not_signatures_names_or_listings() {
        let mut twice = envelope();
        let mut renamed = signature(PAYLOAD_TYPE, 1);
        renamed["keyid"] = json!(key(2).public().id());
        twice["signatures"] = json!([
            signature(PAYLOAD_TYPE, 1),
            signature(PAYLOAD_TYPE, 1),
            renamed
        ]);
        assert_eq!(
            open_value(&twice, &[1, 1, 2], 2),
            Err(CertifierCode::ThresholdNotMet)
        );
        twice["signatures"][1] = signature(PAYLOAD_TYPE, 2);
        assert!(open_value(&twice, &[1, 1, 2], 2).is_ok());
        assert_eq!(
            open_value(&twice, &[1], 0),
            Err(CertifierCode::ThresholdInvalid)
        );
        assert_eq!(
            open_value(&twice, &[], 1),
            Err(CertifierCode::SignatureInvalid)
        );
    }

    #[test]
    fn keys_sign_one_after_the_other_and_only_the_same_thing() {
        let one = sign(PAYLOAD_TYPE, PAYLOAD, &key(1)).unwrap();
        let two = join(&one, PAYLOAD_TYPE, PAYLOAD, &key(2)).unwrap();
        let keys = [key(1).public(), key(2).public()];
        assert_eq!(open(&two, &keys, 2).unwrap().signers().len(), 2);
        let again = join(&two, PAYLOAD_TYPE, PAYLOAD, &key(2)).unwrap();
        assert_eq!(again, two, "a key that signs again changes nothing");
        let code = |result: Result<Vec<u8>, Refusal>| result.map_err(|e| e.code());
        assert_eq!(
            code(join(&one, PAYLOAD_TYPE, b"{}", &key(2))),
            Err("certifier/PAYLOAD_DIFFERS")
        );
        assert_eq!(
            code(join(&one, "application/json", PAYLOAD, &key(2))),
            Err("certifier/PAYLOAD_TYPE_UNSUPPORTED")
        );
        let full = (1..=16).fold(one, |envelope, seed| {
            join(&envelope, PAYLOAD_TYPE, PAYLOAD, &key(seed)).unwrap()
        });
        let refused = join(&full, PAYLOAD_TYPE, PAYLOAD, &key(17)).unwrap_err();
        assert_eq!(refused.code(), "certifier/SIGNATURES_TOO_MANY");
        assert_eq!(refused.detail, "17, at most 16 allowed");
    }

    #[test]
    fn a_key_id_is_only_a_hint() {
        for hint in [
            json!(null),
            json!(""),
            json!("x"),
            json!(key(2).public().id()),
        ] {
            let mut hinted = envelope();
            hinted["signatures"][0]["keyid"] = hint;
            assert!(open_value(&hinted, &[1, 2], 1).is_ok());
        }
        let mut without = envelope();
        without["signatures"][0]
            .as_object_mut()
            .unwrap()
            .remove("keyid");
        assert!(open_value(&without, &[1], 1).is_ok());
        let mut claimed = envelope();
        claimed["signatures"] = json!([signature(PAYLOAD_TYPE, 2)]);
        claimed["signatures"][0]["keyid"] = json!(key(1).public().id());
        assert_eq!(
            open_value(&claimed, &[1], 1),
            Err(CertifierCode::SignatureInvalid)
        );
    }

    #[test]
    fn a_bad_signature_beside_a_good_one_does_not_spoil_it() {
        let mut mixed = envelope();
        let bad = json!({"keyid": key(2).public().id(), "sig": STANDARD.encode([9; 64])});
        mixed["signatures"] = json!([bad, signature(PAYLOAD_TYPE, 1)]);
        assert_eq!(
            open_value(&mixed, &[1, 2], 1),
            Ok(vec![key(1).public().id()])
        );
    }

    #[test]
    fn the_envelope_always_names_its_key() {
        assert_eq!(
            envelope()["signatures"][0]["keyid"],
            json!(key(1).public().id())
        );
    }
}
