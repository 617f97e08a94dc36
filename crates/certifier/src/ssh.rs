//! What SSH programs read: public keys, signatures of files, and the strings both are made of.

use crate::key::{PublicKey, Signer};
use crate::{CertifierCode, CertifierError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flightproof_core::Refusal;
use sha2::{Digest as _, Sha512};

/// The namespace of a signature over a certificate file, so that it passes for nothing else.
pub const NAMESPACE: &str = "certificate@flightproof.dev";

/// The namespace of a signature over a commit, for `git verify-commit`.
pub const COMMIT: &str = "git";

/// The only algorithm.
const ALGORITHM: &[u8] = b"ssh-ed25519";
/// How a file is hashed before it is signed.
const HASH: &[u8] = b"sha512";
/// What a signature and the bytes that it covers begin with.
const MAGIC: &[u8] = b"SSHSIG";
/// Columns of the armour.
const COLUMNS: usize = 70;

/// Appends a string as SSH writes one: its length in four bytes, then its bytes.
pub fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // Longer than 4 GiB is nothing that is signed here.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Takes a string off the front.
pub fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (taken, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// A public key as SSH writes it.
pub fn public_blob(key: &PublicKey) -> Vec<u8> {
    let mut blob = Vec::new();
    put(&mut blob, ALGORITHM);
    put(&mut blob, key.as_bytes());
    blob
}

/// The Ed25519 key of such a blob; none for another algorithm, a weak key or anything else.
pub fn read_public_blob(mut blob: &[u8]) -> Option<PublicKey> {
    let algorithm = take(&mut blob)?;
    let key = <&[u8; 32]>::try_from(take(&mut blob)?).ok()?;
    if algorithm != ALGORITHM || !blob.is_empty() {
        return None;
    }
    PublicKey::from_bytes(key).ok()
}

/// The key as a line of `authorized_keys`, without a comment.
pub fn public_line(key: &PublicKey) -> String {
    format!("ssh-ed25519 {}", STANDARD.encode(public_blob(key)))
}

/// What the name of another kind of key begins with.
const OTHER_KINDS: &[&str] = &["ssh-rsa", "ssh-dss", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"];

/// Whether a text means to be the line of an OpenSSH public key file.
pub fn is_public_line(text: &str) -> bool {
    text.starts_with("ssh-") || OTHER_KINDS.iter().any(|kind| text.starts_with(kind))
}

/// Reads the one line of an OpenSSH public key file, with or without a comment. There is one spelling of
/// each key: no options before it, one blank between its words, base64 as [`public_line`] writes it.
///
/// # Errors
/// `KEY_MALFORMED`, `KEY_WEAK`, `KEY_TYPE_UNSUPPORTED` for another kind of key.
pub fn read_public_line(text: &str) -> Result<PublicKey, CertifierError> {
    let malformed = |why| CertifierCode::KeyMalformed.refuse(why);
    let line = text.strip_suffix('\n').unwrap_or(text);
    if let Some(kind) = OTHER_KINDS.iter().find(|kind| line.starts_with(**kind)) {
        return Err(
            CertifierCode::KeyTypeUnsupported.refuse(format_args!("an SSH key of kind {kind}"))
        );
    }
    let mut words = line.splitn(3, ' ');
    let blob = match (words.next(), words.next()) {
        (Some("ssh-ed25519"), Some(blob)) => blob,
        _ => return Err(malformed("no line of an OpenSSH public key")),
    };
    if line.contains(char::is_control) {
        return Err(malformed("more than the one line of an OpenSSH key"));
    }
    let blob = STANDARD.decode(blob).unwrap_or_default();
    let mut rest = blob.as_slice();
    let key = match (take(&mut rest), take(&mut rest).map(<[u8; 32]>::try_from)) {
        (Some(ALGORITHM), Some(Ok(key))) if rest.is_empty() => key,
        _ => return Err(malformed("an OpenSSH line that holds no Ed25519 key")),
    };
    PublicKey::from_bytes(&key)
}

/// The 64 bytes inside an SSH signature blob.
pub fn read_signature(mut blob: &[u8]) -> Option<[u8; 64]> {
    let algorithm = take(&mut blob)?;
    let signature = <[u8; 64]>::try_from(take(&mut blob)?).ok()?;
    (algorithm == ALGORITHM && blob.is_empty()).then_some(signature)
}

/// Signs a file for `ssh-keygen -Y verify -n certificate@flightproof.dev`.
///
/// What is signed begins with other bytes than a DSSE envelope's and names its purpose, so neither
/// signature passes for the other although one key makes both.
///
/// # Errors
/// What keeps the key from signing.
pub fn sign_file(file: &[u8], key: &dyn Signer) -> Result<String, Refusal> {
    sign(NAMESPACE, file, key)
}

/// Signs a commit as git does: the bytes of the object without a signature.
///
/// # Errors
/// What keeps the key from signing.
pub fn sign_commit(commit: &[u8], key: &dyn Signer) -> Result<String, Refusal> {
    sign(COMMIT, commit, key)
}

fn sign(namespace: &str, bytes: &[u8], key: &dyn Signer) -> Result<String, Refusal> {
    let mut signature = Vec::new();
    put(&mut signature, ALGORITHM);
    put(&mut signature, &key.signature(&covered(namespace, bytes))?);

    let mut blob = MAGIC.to_vec();
    blob.extend_from_slice(&1u32.to_be_bytes());
    put(&mut blob, &public_blob(&key.public_key()));
    purpose(&mut blob, namespace);
    put(&mut blob, &signature);
    Ok(armoured(&blob))
}

fn covered(namespace: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    purpose(&mut out, namespace);
    put(&mut out, &Sha512::digest(bytes));
    out
}

/// Namespace, a reserved string, and the hash.
fn purpose(out: &mut Vec<u8>, namespace: &str) {
    put(out, namespace.as_bytes());
    put(out, b"");
    put(out, HASH);
}

fn armoured(blob: &[u8]) -> String {
    let text = STANDARD.encode(blob);
    let mut out = String::from("-----BEGIN SSH SIGNATURE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, next) = rest.split_at(COLUMNS.min(rest.len()));
        out.push_str(line);
        out.push('\n');
        rest = next;
    }
    out.push_str("-----END SSH SIGNATURE-----\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SecretKey;

    #[test]
    fn a_public_key_survives_its_blob_and_nothing_else_is_one() {
        let key = SecretKey::from_seed([7; 32]).public();
        let blob = public_blob(&key);
        assert_eq!(read_public_blob(&blob), Some(key));
        let mut weak = blob.clone();
        weak[19..].fill(0);
        let other = [&b"\0\0\0\x0bssh-ed25518"[..], &blob[15..]].concat();
        for bad in [&blob[1..], &[], &blob[..50], &weak, &other] {
            assert_eq!(read_public_blob(bad), None);
        }
        let longer = [&blob[..], &[0]].concat();
        assert_eq!(read_public_blob(&longer), None);
    }

    #[test]
    fn a_public_key_file_is_exactly_one_line_of_one_spelling() {
        let key = SecretKey::from_seed([7; 32]).public();
        let line = public_line(&key);
        let read = |text: &str| PublicKey::from_file(text).map_err(|refused| refused.code);
        let pem = key.to_pem().unwrap();
        for good in [
            &line,
            &format!("{line}\n"),
            &format!("{line} me@host, at work\n"),
            &pem,
        ] {
            assert_eq!(read(good), Ok(key), "{good}");
        }
        let malformed = Err(CertifierCode::KeyMalformed);
        let of = |blob: &[u8]| format!("ssh-ed25519 {}\n", STANDARD.encode(blob));
        let blob = public_blob(&key);
        let (kind, bytes) = line.split_once(' ').unwrap();
        for bad in [
            String::new(),
            format!(" {line}"),
            format!("{line}\n\n"),
            format!("{line}\r\n"),
            format!("{line}\n{line}\n"),
            format!("{line} a\u{7}b"),
            format!("\u{feff}{line}"),
            format!("restrict {line}"),
            format!("{kind}  {bytes}"),
            format!("{kind}\t{bytes}"),
            format!("SSH-ED25519 {bytes}"),
            kind.to_owned(),
            bytes.to_owned(),
            format!("{line}=="),
            line[..line.len() - 1].to_owned(),
            of(&blob[..50]),
            of(&[&blob[..], &[0]].concat()),
            of(&[b"\0\0\0\x07ssh-rsa", &blob[15..]].concat()),
            of(&[&blob[..18], &[31], &blob[19..50]].concat()),
            of(&[&blob[..19], &[0xff; 32]].concat()),
        ] {
            assert_eq!(read(&bad), malformed, "{bad:?}");
        }
        assert_eq!(
            read(&of(&[&blob[..19], &[0; 32]].concat())),
            Err(CertifierCode::KeyWeak)
        );
        let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ== me\n";
        assert_eq!(read(rsa), Err(CertifierCode::KeyTypeUnsupported));
    }

    /// The strings of an armoured signature, after its magic and version.
    fn opened(armour: &str) -> Vec<Vec<u8>> {
        let mut lines: Vec<&str> = armour.lines().collect();
        assert_eq!(lines.remove(0), "-----BEGIN SSH SIGNATURE-----");
        assert_eq!(lines.pop(), Some("-----END SSH SIGNATURE-----"));
        assert!(lines.iter().all(|line| line.len() <= COLUMNS));
        let blob = STANDARD.decode(lines.concat()).unwrap();
        let mut rest = blob.strip_prefix(b"SSHSIG\0\0\0\x01").unwrap();
        std::iter::from_fn(|| take(&mut rest).map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn a_signature_is_of_one_purpose_and_of_these_bytes() {
        let key = SecretKey::from_seed([7; 32]);
        let of_file = opened(&sign_file(b"bytes", &key).unwrap());
        let of_commit = opened(&sign_commit(b"bytes", &key).unwrap());
        for (strings, namespace) in [(&of_file, NAMESPACE), (&of_commit, COMMIT)] {
            let [public, purpose, reserved, hash, signature] = strings.as_slice() else {
                panic!("{strings:?}");
            };
            assert_eq!(read_public_blob(public), Some(key.public()));
            assert_eq!(
                (purpose.as_slice(), reserved.as_slice()),
                (namespace.as_bytes(), &b""[..])
            );
            assert_eq!(hash, b"sha512");
            let signature_of = read_signature(signature).unwrap();
            let other = if namespace == COMMIT {
                NAMESPACE
            } else {
                COMMIT
            };
            let holds = |namespace, bytes| {
                key.public()
                    .verifies(&covered(namespace, bytes), &signature_of)
            };
            assert!(holds(namespace, b"bytes"));
            assert!(!holds(other, b"bytes") && !holds(namespace, b"other"));
            for bad in [
                &signature[1..],
                &signature[..signature.len() - 1],
                &[],
                public,
            ] {
                assert_eq!(read_signature(bad), None);
            }
        }
        assert!(public_line(&key.public()).starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"));
    }

    #[test]
    fn a_string_longer_than_what_is_there_is_none() {
        let mut bytes: &[u8] = &[0, 0, 0, 2, 1];
        assert_eq!(take(&mut bytes), None);
        let mut bytes: &[u8] = &[0xff, 0xff, 0xff, 0xff];
        assert_eq!(take(&mut bytes), None);
        let mut bytes: &[u8] = &[0, 0, 0, 1, 9, 8];
        assert_eq!(take(&mut bytes), Some(&[9][..]));
        assert_eq!(bytes, [8]);
    }
}
