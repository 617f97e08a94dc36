//! Secret keys under a passphrase: PKCS#8 `ENCRYPTED PRIVATE KEY`, as OpenSSL reads and writes it.

use super::SecretKey;
use crate::{CertifierCode, CertifierError};
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::spki::der::{SecretDocument, pem::LineEnding};
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::{Kdf, Parameters};
use pkcs8::pkcs5::scrypt;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use zeroize::Zeroizing;

/// PEM label of a key under a passphrase.
const LABEL: &str = "ENCRYPTED PRIVATE KEY";

/// What deriving the key costs: 16 MiB and five passes, which OpenSSL's own limit of 32 MiB allows.
const LOG_N: u8 = 14;
/// Block size of scrypt.
const BLOCK: u32 = 8;
/// Passes of scrypt, one after the other.
const PASSES: u32 = 5;

/// Most memory a key file may ask for, bytes. Whoever wrote the file chose the number.
const MAX_MEMORY: u64 = 256 << 20;
/// Most passes over that memory.
const MAX_PASSES: u16 = 16;
/// Most rounds of PBKDF2 a key file may ask for: a few seconds.
const MAX_ROUNDS: u32 = 10_000_000;

/// Fresh random bytes that a key is locked with, each used once.
#[derive(Debug, Clone, Copy)]
pub struct LockEntropy {
    /// Salt of the passphrase.
    pub salt: [u8; 16],
    /// Start of the cipher.
    pub iv: [u8; 16],
}

impl SecretKey {
    /// Whether a PEM file holds a key under a passphrase.
    pub fn is_locked(pem: &str) -> bool {
        pem.trim_start().starts_with(&format!("-----BEGIN {LABEL}"))
    }

    /// Reads a key under a passphrase.
    ///
    /// # Errors
    /// `KEY_MALFORMED`, `KEY_COSTLY` for a file that asks for more work than a real one,
    /// `PASSPHRASE_WRONG` (also for a damaged file: the two cannot be told apart), and
    /// `KEY_TYPE_UNSUPPORTED`.
    pub fn unlock(pem: &str, passphrase: &[u8]) -> Result<Self, CertifierError> {
        let malformed = || CertifierCode::KeyMalformed.refuse("no ENCRYPTED PRIVATE KEY in PEM");
        let (label, document) = SecretDocument::from_pem(pem).map_err(|_| malformed())?;
        if label != LABEL {
            return Err(malformed());
        }
        let locked =
            EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|_| malformed())?;
        affordable(&locked.encryption_algorithm)?;
        let open = locked.decrypt(passphrase).map_err(|_| {
            CertifierCode::PassphraseWrong.refuse("the key does not open with this passphrase")
        })?;
        let key = SigningKey::from_pkcs8_der(open.as_bytes()).map_err(super::secret_refusal)?;
        Ok(Self(key))
    }

    /// The key under a passphrase, as PKCS#8 PEM.
    ///
    /// # Errors
    /// `KEY_MALFORMED`, if the encoder fails (it does not, for a key of fixed size).
    pub fn lock(&self, passphrase: &[u8], entropy: LockEntropy) -> Result<String, CertifierError> {
        let pair = KeypairBytes {
            secret_key: self.0.to_bytes(),
            public_key: None,
        };
        let pem = || -> pkcs8::Result<Zeroizing<String>> {
            let open = pair.to_pkcs8_der()?;
            let cost = scrypt::Params::new(LOG_N, BLOCK, PASSES)
                .map_err(|_| pkcs8::Error::ParametersMalformed)?;
            let how = Parameters::generate_scrypt_aes256cbc(cost, &entropy.salt, entropy.iv)
                .map_err(|_| pkcs8::Error::ParametersMalformed)?;
            let locked = PrivateKeyInfoRef::try_from(open.as_bytes())?
                .encrypt_with_params(how, passphrase)?;
            Ok(locked.to_pem(LABEL, LineEnding::LF)?)
        };
        let pem = pem();
        pem.map(|pem| pem.to_string())
            .map_err(|_| CertifierCode::KeyMalformed.refuse("the key cannot be encoded"))
    }
}

/// The work that a file asks for before its passphrase can be tried.
fn affordable(scheme: &EncryptionScheme) -> Result<(), CertifierError> {
    let EncryptionScheme::Pbes2(parameters) = scheme else {
        return Err(CertifierCode::KeyMalformed.refuse("a key under an outdated cipher"));
    };
    let fits = match &parameters.kdf {
        Kdf::Pbkdf2(kdf) => kdf.iteration_count <= MAX_ROUNDS,
        Kdf::Scrypt(kdf) => {
            let memory = u64::from(kdf.block_size)
                .checked_mul(128)
                .and_then(|block| block.checked_mul(kdf.cost_parameter));
            memory.is_some_and(|memory| memory <= MAX_MEMORY) && kdf.parallelization <= MAX_PASSES
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(CertifierCode::KeyCostly.refuse(format_args!(
        "more than {MAX_MEMORY} bytes, {MAX_PASSES} passes or {MAX_ROUNDS} rounds"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTROPY: LockEntropy = LockEntropy {
        salt: [1; 16],
        iv: [2; 16],
    };

    fn code<T>(result: Result<T, CertifierError>) -> Option<CertifierCode> {
        result.err().map(|e| e.code)
    }

    #[test]
    fn a_locked_key_opens_with_its_passphrase_and_no_other() {
        let key = SecretKey::from_seed([7; 32]);
        let pem = key.lock(b"a passphrase", ENTROPY).unwrap();
        assert!(SecretKey::is_locked(&pem));
        let opened = SecretKey::unlock(&pem, b"a passphrase").unwrap();
        assert_eq!(opened.public(), key.public());
        for wrong in [&b"a passphrase "[..], b"", b"A passphrase"] {
            let refused = code(SecretKey::unlock(&pem, wrong));
            assert_eq!(refused, Some(CertifierCode::PassphraseWrong));
        }
        assert_eq!(
            code(SecretKey::from_pem(&pem)),
            Some(CertifierCode::KeyLocked)
        );
        let open = key.to_pem().unwrap();
        assert!(!SecretKey::is_locked(&open));
        assert_eq!(
            code(SecretKey::unlock(&open, b"x")),
            Some(CertifierCode::KeyMalformed)
        );
    }

    #[test]
    fn a_file_that_asks_for_endless_work_is_refused_before_any_is_done() {
        let key = SecretKey::from_seed([7; 32]);
        let pem = key.lock(b"x", ENTROPY).unwrap();
        let (_, document) = SecretDocument::from_pem(&pem).unwrap();
        // N = 16384 stands in the file as 02 02 40 00; 2^30 takes four bytes, so lengths shift.
        let bytes = document.as_bytes();
        let at = bytes.windows(4).position(|w| w == [2, 2, 0x40, 0]).unwrap();
        let mut costly = bytes.to_vec();
        costly.splice(at..at + 4, [2, 4, 0x40, 0, 0, 0]);
        // Every sequence around the number grows by two bytes.
        grow(&mut costly, 0, at);
        let text = SecretDocument::try_from(costly)
            .unwrap()
            .to_pem(LABEL, LineEnding::LF)
            .unwrap();
        assert_eq!(
            code(SecretKey::unlock(&text, b"x")),
            Some(CertifierCode::KeyCostly)
        );
    }

    /// Adds two to the length of every sequence that holds the byte at `inner`.
    fn grow(der: &mut [u8], mut at: usize, inner: usize) {
        while at < inner {
            assert_eq!(der[at], 0x30, "a sequence at {at}");
            let (header, length) = match der[at + 1] {
                0x81 => (3, usize::from(der[at + 2])),
                short => (2, usize::from(short)),
            };
            let place = at + header - 1;
            der[place] += 2;
            // The next element that reaches over the number.
            let end = at + header + length + 2;
            let mut child = at + header;
            while child < end {
                let size = usize::from(der[child + 1]) + 2;
                if child + size > inner && der[child] == 0x30 {
                    break;
                }
                if child + size > inner {
                    return;
                }
                child += size;
            }
            at = child;
        }
    }
}
