//! One case of a committed witness, shown to somebody who has the certificate, and no other case.

use super::{Case, Witness, commitment, invalid};
use crate::merkle;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Digest, canonical_json, parse_strict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Schema name of an opening.
const SCHEMA: &str = "flightproof/case-opening/1";
/// Largest opening in bytes: a case, and as many hashes as a tree is deep.
pub const MAX_OPENING_BYTES: usize = super::MAX_WITNESS_BYTES + 64 * 1024;
/// Longest way to a root.
const MAX_PATH: usize = 63;

/// A case with what leads from it to the commitment on a certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseOpening {
    schema: String,
    /// The case's place in the witness, from 0.
    pub index: u64,
    /// The case.
    pub case: Value,
    /// Its own salt.
    salt: Digest,
    /// What lies beside the way from it to the root.
    path: Vec<Digest>,
    /// What the commitment is the digest of.
    commitment: Value,
}

impl Witness {
    /// Opens one case under the salt of a flight.
    ///
    /// # Errors
    /// `WITNESS_INVALID` for a case that is not there.
    pub fn open_case(&self, salt: &[u8; 32], index: usize) -> Result<CaseOpening, CertifierError> {
        let case: &Case = self.written().get(index).ok_or_else(|| {
            invalid(format_args!(
                "case {index} of {} (from 0)",
                self.written().len()
            ))
        })?;
        let leaves = commitment::leaves(self, salt)?;
        let root = merkle::root(&leaves);
        Ok(CaseOpening {
            schema: SCHEMA.to_owned(),
            index: index as u64,
            case: serde_json::to_value(case).map_err(invalid)?,
            salt: commitment::own_salt(salt, index as u64),
            path: merkle::path(&leaves, index),
            commitment: commitment::document(self, salt, root)?,
        })
    }
}

impl CaseOpening {
    /// Reads an opening.
    ///
    /// # Errors
    /// `CASE_MISMATCH`.
    pub fn parse(bytes: &[u8]) -> Result<Self, CertifierError> {
        let opening: Self = parse_strict(bytes, MAX_OPENING_BYTES).map_err(mismatch)?;
        if opening.schema != SCHEMA || opening.path.len() > MAX_PATH {
            return Err(mismatch("another schema, or a way longer than any"));
        }
        Ok(opening)
    }

    /// The opening as a file.
    ///
    /// # Errors
    /// `CASE_MISMATCH`, if it has no canonical form (each has).
    pub fn bytes(&self) -> Result<Vec<u8>, CertifierError> {
        canonical_json(self).map_err(mismatch)
    }

    /// Whether the case was among those of the witness with this commitment, in this place.
    ///
    /// # Errors
    /// `CASE_MISMATCH`.
    pub fn check(&self, committed: Digest) -> Result<(), CertifierError> {
        let field = |name: &str| self.commitment.get(name);
        let document = canonical_json(&self.commitment).map_err(mismatch)?;
        if Digest::of(&document) != committed {
            return Err(mismatch("another witness"));
        }
        if field("schema").and_then(Value::as_str) != Some(commitment::SCHEMA) {
            return Err(mismatch("another kind of commitment"));
        }
        let root = field("root").and_then(Value::as_str);
        let size = field("cases").and_then(Value::as_u64);
        let case = canonical_json(&self.case).map_err(mismatch)?;
        let leaf = commitment::leaf(&self.salt, &case);
        let reached = merkle::climb(leaf, self.index, size.unwrap_or(0), &self.path);
        match reached.map(|reached| Some(reached.to_string().as_str()) == root) {
            Some(true) => Ok(()),
            _ => Err(mismatch("the case does not lead to the witness's root")),
        }
    }
}

fn mismatch(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::CaseMismatch.refuse(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn witness() -> Witness {
        let case = |n: u32| json!({"id": format!("case-{n}"), "args": [n.to_string()], "expect": {"exit": 0, "stdout": n.to_string()}});
        let file = json!({"schema": "flightproof/witness/1", "bin": "app", "cases": (0..5).map(case).collect::<Vec<_>>()});
        Witness::parse(file.to_string().as_bytes()).unwrap()
    }

    const SALT: [u8; 32] = [5; 32];

    #[test]
    fn every_case_opens_under_the_commitment_and_no_changed_one_does() {
        let witness = witness();
        let committed = witness.commitment(&SALT).unwrap();
        for index in 0..5 {
            let opening = witness.open_case(&SALT, index).unwrap();
            let read = CaseOpening::parse(&opening.bytes().unwrap()).unwrap();
            assert_eq!(read, opening);
            assert_eq!(read.check(committed), Ok(()));
            let refused = |opening: &CaseOpening, by: Digest| {
                let refusal = opening.check(by).unwrap_err();
                assert_eq!(refusal.code, CertifierCode::CaseMismatch);
            };
            refused(&opening, witness.commitment(&[6; 32]).unwrap());
            let mut other = opening.clone();
            other.case["expect"]["exit"] = json!(1);
            refused(&other, committed);
            let mut moved = opening.clone();
            moved.index = (moved.index + 1) % 5;
            refused(&moved, committed);
            let mut resized = opening.clone();
            resized.commitment["cases"] = json!(6);
            refused(&resized, committed);
            let mut salted = opening;
            salted.salt = Digest::of(b"");
            refused(&salted, committed);
        }
        assert!(witness.open_case(&SALT, 5).is_err());
        assert!(CaseOpening::parse(b"{}").is_err());
    }

    #[test]
    fn an_opening_shows_one_case_and_not_the_salt_of_the_others() {
        let opening = witness().open_case(&SALT, 2).unwrap();
        let text = String::from_utf8(opening.bytes().unwrap()).unwrap();
        assert!(text.contains("case-2"));
        for hidden in ["case-0", "case-1", "case-3", "case-4"] {
            assert!(!text.contains(hidden), "{hidden}");
        }
        let salt: String = SALT.iter().map(|b| format!("{b:02x}")).collect();
        assert!(!text.contains(&salt));
    }
}
