//! Ed25519 keys: how they are read, written and named, and which are refused.

mod locked;

pub use locked::LockEntropy;

use crate::ssh;
use crate::{CertifierCode, CertifierError};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::spki::{self, DecodePublicKey, EncodePublicKey};
use ed25519_dalek::pkcs8::{self, DecodePrivateKey, EncodePrivateKey, KeypairBytes};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use flightproof_core::{Digest, Refusal};
use std::fmt;
use zeroize::{Zeroize as _, Zeroizing};

/// A key that signs. Its memory is erased when it is dropped, and no way of printing it exists.
pub struct SecretKey(SigningKey);

/// A key that checks signatures: a canonical point of the prime-order group.
///
/// Weak keys cannot be held: several verifiers accept one fixed signature over any message for
/// them, so a certificate "valid" under one says nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// The name of a public key, as `securesystemslib` computes it.
pub type KeyId = Digest;

/// Whatever signs: a key in memory, or one that never leaves an agent.
pub trait Signer: Send + Sync {
    /// The key that checks what this one signs.
    fn public_key(&self) -> PublicKey;

    /// The signature of a message. Whoever signs says in the message what it is.
    ///
    /// # Errors
    /// What keeps the key from signing.
    fn signature(&self, message: &[u8]) -> Result<[u8; 64], Refusal>;
}

impl Signer for SecretKey {
    fn public_key(&self) -> PublicKey {
        self.public()
    }

    fn signature(&self, message: &[u8]) -> Result<[u8; 64], Refusal> {
        Ok(self.sign(message))
    }
}

impl SecretKey {
    /// The key of a seed. The seed must be 32 bytes of good entropy; this copy of it is erased.
    pub fn from_seed(mut seed: [u8; 32]) -> Self {
        let key = Self(SigningKey::from_bytes(&seed));
        seed.zeroize();
        key
    }

    /// Reads a PKCS#8 PEM file, as `openssl genpkey -algorithm ed25519` and
    /// [`SecretKey::to_pem`] write it.
    ///
    /// # Errors
    /// `KEY_LOCKED` for a key under a passphrase, `KEY_MALFORMED` or, for a key of another
    /// algorithm, `KEY_TYPE_UNSUPPORTED`.
    pub fn from_pem(pem: &str) -> Result<Self, CertifierError> {
        if Self::is_locked(pem) {
            return Err(CertifierCode::KeyLocked.refuse("a key under a passphrase"));
        }
        SigningKey::from_pkcs8_pem(pem)
            .map(Self)
            .map_err(secret_refusal)
    }

    /// The key as PKCS#8 PEM. The text is erased when it is dropped.
    ///
    /// Version 1 of the format, without the public half: OpenSSL 3.0 cannot read version 2.
    ///
    /// # Errors
    /// `KEY_MALFORMED`, if the encoder fails (it does not, for a key of fixed size).
    pub fn to_pem(&self) -> Result<Zeroizing<String>, CertifierError> {
        let pair = KeypairBytes {
            secret_key: self.0.to_bytes(),
            public_key: None,
        };
        pair.to_pkcs8_pem(LineEnding::LF)
            .map_err(|_| CertifierCode::KeyMalformed.refuse("the key cannot be encoded"))
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// The signature of a message. Whoever signs says in the message what it is.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public().id())
    }
}

impl PublicKey {
    /// The key with this encoding.
    ///
    /// # Errors
    /// `KEY_MALFORMED` for bytes that are no point or not the one encoding of it, `KEY_WEAK` for
    /// a point of small or mixed order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, CertifierError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| {
            CertifierCode::KeyMalformed.refuse("the bytes are no point of the curve")
        })?;
        Self::strong(key)
    }

    /// Reads a SubjectPublicKeyInfo PEM file, as `openssl pkey -pubout` writes it.
    ///
    /// # Errors
    /// As [`PublicKey::from_bytes`], and `KEY_TYPE_UNSUPPORTED` for another algorithm.
    pub fn from_pem(pem: &str) -> Result<Self, CertifierError> {
        VerifyingKey::from_public_key_pem(pem)
            .map_err(|e| key_refusal(&e))
            .and_then(Self::strong)
    }

    /// Reads a public key file: PEM, or the one line of OpenSSH.
    ///
    /// # Errors
    /// As [`PublicKey::from_pem`].
    pub fn from_file(text: &str) -> Result<Self, CertifierError> {
        match ssh::is_public_line(text) {
            true => ssh::read_public_line(text),
            false => Self::from_pem(text),
        }
    }

    /// The key as SubjectPublicKeyInfo PEM.
    ///
    /// # Errors
    /// `KEY_MALFORMED`, if the encoder fails (it does not, for a key of fixed size).
    pub fn to_pem(&self) -> Result<String, CertifierError> {
        self.0
            .to_public_key_pem(LineEnding::LF)
            .map_err(|e| key_refusal(&e))
    }

    /// The 32 bytes of the key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// The key's name: SHA-256 of its description in `securesystemslib`'s canonical form.
    pub fn id(&self) -> KeyId {
        let hex: String = self.as_bytes().iter().map(|b| format!("{b:02x}")).collect();
        Digest::of(
            format!(r#"{{"keytype":"ed25519","keyval":{{"public":"{hex}"}},"scheme":"ed25519"}}"#)
                .as_bytes(),
        )
    }

    /// Whether this key made this signature. Strict: one signature, one message, one key.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }

    fn strong(key: VerifyingKey) -> Result<Self, CertifierError> {
        let point = key.to_edwards();
        if point.compress().as_bytes() != key.as_bytes() {
            return Err(CertifierCode::KeyMalformed.refuse("a second spelling of its point"));
        }
        if !point.is_torsion_free() || key.is_weak() {
            return Err(CertifierCode::KeyWeak.refuse("a point of small or mixed order"));
        }
        Ok(Self(key))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id())
    }
}

fn secret_refusal(error: pkcs8::Error) -> CertifierError {
    match error {
        pkcs8::Error::PublicKey(e) => key_refusal(&e),
        _ => CertifierCode::KeyMalformed.refuse("no Ed25519 PRIVATE KEY in PKCS#8 PEM"),
    }
}

fn key_refusal(error: &spki::Error) -> CertifierError {
    match error {
        spki::Error::OidUnknown { oid } => {
            CertifierCode::KeyTypeUnsupported.refuse(format_args!("algorithm {oid}"))
        }
        _ => CertifierCode::KeyMalformed.refuse("no Ed25519 key in PEM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, CertifierError>) -> Option<CertifierCode> {
        result.err().map(|e| e.code)
    }

    fn key() -> SecretKey {
        SecretKey::from_seed([7; 32])
    }

    /// SubjectPublicKeyInfo PEM around any 32 bytes.
    fn pem_around(bytes: &[u8; 32]) -> String {
        use base64::Engine as _;
        let mut der = vec![
            0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
        ];
        der.extend_from_slice(bytes);
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
    }

    #[test]
    fn keys_survive_their_files() {
        let secret = SecretKey::from_pem(&key().to_pem().unwrap()).unwrap();
        assert_eq!(secret.public(), key().public());
        let public = PublicKey::from_pem(&key().public().to_pem().unwrap()).unwrap();
        assert_eq!(public, key().public());
        assert_eq!(public.to_pem().unwrap(), pem_around(public.as_bytes()));
    }

    #[test]
    fn a_key_has_the_name_other_programs_give_it() {
        // RFC 8032 test 1; the id is what securesystemslib 1.6.0 computes for it.
        let public = PublicKey::from_bytes(&[
            0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64,
            0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68,
            0xf7, 0x07, 0x51, 0x1a,
        ])
        .unwrap();
        assert_eq!(
            public.id().to_string(),
            "74c181c7ad8a0855d4b55e44d2ba87aabdddb196832571f15f92fece332e4916"
        );
    }

    #[test]
    fn weak_and_misspelt_keys_are_refused_before_they_can_be_trusted() {
        let mut identity = [0; 32];
        identity[0] = 1;
        let mut order_two = [0xff; 32];
        order_two[0] = 0xec;
        order_two[31] = 0x7f;
        let order_four = [0; 32];
        for weak in [identity, order_two, order_four] {
            assert_eq!(
                code(PublicKey::from_bytes(&weak)),
                Some(CertifierCode::KeyWeak)
            );
            assert_eq!(
                code(PublicKey::from_pem(&pem_around(&weak))),
                Some(CertifierCode::KeyWeak)
            );
        }
        let mut identity_as_p_plus_one = [0xff; 32];
        identity_as_p_plus_one[0] = 0xee;
        identity_as_p_plus_one[31] = 0x7f;
        let mut no_point = [0; 32];
        no_point[0] = 2;
        for bad in [identity_as_p_plus_one, no_point] {
            assert_eq!(
                code(PublicKey::from_bytes(&bad)),
                Some(CertifierCode::KeyMalformed)
            );
        }
        assert!(PublicKey::from_bytes(key().public().as_bytes()).is_ok());
    }

    #[test]
    fn a_key_of_mixed_order_is_refused() {
        let mut order_two = [0xff; 32];
        order_two[0] = 0xec;
        order_two[31] = 0x7f;
        let torsion = VerifyingKey::from_bytes(&order_two).unwrap().to_edwards();
        let mixed = (key().public().0.to_edwards() + torsion).compress();
        assert_eq!(
            code(PublicKey::from_bytes(mixed.as_bytes())),
            Some(CertifierCode::KeyWeak)
        );
    }

    #[test]
    fn keys_of_other_algorithms_and_broken_files_have_their_own_codes() {
        let p256 = "-----BEGIN PUBLIC KEY-----\n\
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n\
            6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n\
            -----END PUBLIC KEY-----\n";
        assert_eq!(
            code(PublicKey::from_pem(p256)),
            Some(CertifierCode::KeyTypeUnsupported)
        );
        let private = key().to_pem().unwrap();
        let public = key().public().to_pem().unwrap();
        for bad in [
            "",
            "hello",
            &public.replace('M', "!"),
            &public[..60],
            private.as_str(),
        ] {
            assert_eq!(
                code(PublicKey::from_pem(bad)),
                Some(CertifierCode::KeyMalformed),
                "{bad}"
            );
        }
        assert_eq!(
            code(SecretKey::from_pem(&public)),
            Some(CertifierCode::KeyMalformed)
        );
    }

    #[test]
    fn a_secret_key_never_shows_its_seed() {
        let shown = format!(
            "{:?}",
            SecretKey::from_seed(*b"seed-seed-seed-seed-seed-seed-se")
        );
        assert!(
            !shown.contains("seed-seed") && !shown.contains("73656564"),
            "{shown}"
        );
        let broken = format!("x{}", key().to_pem().unwrap().as_str());
        let refused = SecretKey::from_pem(&broken.replace("PRIVATE KEY", "PRIVATE"))
            .err()
            .map(|e| e.to_string());
        assert!(refused.is_some_and(|text| !text.contains("MC4C")));
    }
}
