//! How a certificate binds a witness without showing it.
//!
//! With `salt` 32 random bytes of the flight, `u64` as 8 bytes big-endian, `‖` concatenation:
//!
//! - `salt_i = sha256("flightproof/witness-salt/1" ‖ salt ‖ u64(i))` for case `i` from 0, and for
//!   the driver with `i = 2^64 - 1`;
//! - `case_i` = canonical JSON of the case with every field that has a value, bytes as
//!   `{"$bytes":"<base64>"}`, absent expectations left out;
//! - `leaf_i = sha256(0x00 ‖ salt_i ‖ case_i)`, `node = sha256(0x01 ‖ left ‖ right)`, and the root is
//!   that of RFC 6962 (the left subtree is the largest complete one);
//! - `driver = sha256(0x00 ‖ salt_d ‖ text of the driver)`;
//! - `differential = sha256(0x00 ‖ salt_g ‖ canonical JSON of the grammar)` with `i = 2^64 - 2`, only of
//!   a witness that has one; what is generated follows from the grammar and the salt;
//! - commitment = `sha256` of the canonical JSON `{"cases":n,"public":…,"root":…,"schema":
//!   "flightproof/witness-commitment/1","target":…,"waivers":[…]}` with `target` either
//!   `{"bin":name}` (with `"language":name` for another one than Rust), `{"package":name or null,"suite":…}` or `{"driver":digest,"file":name,"package":name}` (no package: no key), and `"differential"` where
//!   there is one.
//!
//! Each leaf has its own salt, so a small case cannot be guessed from the commitment, and showing one
//! case (`i`, `case_i`, `salt_i`, the hashes beside its path, and the document above) opens no other.
//! Leaves and nodes start with different bytes, so none passes for the other.

use flightproof_core::{Bytes, Digest, Hasher, canonical_json};
use serde_json::{Map, Value, json};

use super::{Target, Witness, invalid};
use crate::CertifierError;
use crate::merkle;

const SALT_DOMAIN: &[u8] = b"flightproof/witness-salt/1";

/// Schema name of the document under a commitment.
pub(super) const SCHEMA: &str = "flightproof/witness-commitment/1";

pub(super) fn commit(witness: &Witness, salt: &[u8; 32]) -> Result<Digest, CertifierError> {
    let root = merkle::root(&leaves(witness, salt)?);
    Ok(Digest::of(&canonical(&document(witness, salt, root)?)?))
}

pub(super) fn leaves(witness: &Witness, salt: &[u8; 32]) -> Result<Vec<Digest>, CertifierError> {
    (0u64..)
        .zip(witness.written())
        .map(|(index, case)| Ok(leaf(&own_salt(salt, index), &canonical(case)?)))
        .collect()
}

/// What the commitment is the digest of.
pub(super) fn document(
    witness: &Witness,
    salt: &[u8; 32],
    root: Digest,
) -> Result<Value, CertifierError> {
    let mut document = json!({
        "schema": SCHEMA,
        "cases": witness.written().len(),
        "root": root,
        "target": target(witness, salt)?,
        "waivers": witness.waivers,
        "public": witness.public,
    });
    if let Some(grammar) = &witness.differential {
        let sealed = leaf(&own_salt(salt, u64::MAX - 1), &canonical(grammar)?);
        document["differential"] = json!(sealed);
    }
    Ok(document)
}

fn target(witness: &Witness, salt: &[u8; 32]) -> Result<Value, CertifierError> {
    let (package, file, text) = match &witness.target {
        Target::Bin(name) => {
            return Ok(match &witness.language {
                None => json!({ "bin": name }),
                Some(language) => json!({ "bin": name, "language": language }),
            });
        }
        Target::Suite { package, suite } => {
            return Ok(json!({ "suite": suite, "package": package }));
        }
        Target::Driver {
            package,
            file,
            text,
        } => (package, file, text),
    };
    let text: &Bytes = text
        .as_ref()
        .ok_or_else(|| invalid("the text of the driver was not given"))?;
    let mut out = Map::new();
    out.insert(
        "driver".to_owned(),
        json!(leaf(&own_salt(salt, u64::MAX), text)),
    );
    out.insert("file".to_owned(), json!(file));
    out.extend(
        package
            .iter()
            .map(|name| ("package".to_owned(), json!(name))),
    );
    Ok(Value::Object(out))
}

/// The salt of one case, which says nothing of any other's.
pub(super) fn own_salt(salt: &[u8; 32], index: u64) -> Digest {
    hash(&[SALT_DOMAIN, salt, &index.to_be_bytes()])
}

pub(super) fn leaf(own: &Digest, content: &[u8]) -> Digest {
    hash(&[&[0], own.as_bytes(), content])
}

fn hash(parts: &[&[u8]]) -> Digest {
    let mut hasher = Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finish()
}

pub(super) fn canonical<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, CertifierError> {
    canonical_json(value).map_err(invalid)
}
