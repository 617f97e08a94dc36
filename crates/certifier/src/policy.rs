//! The policy: what a verifier demands of a certificate. It comes from the operator, never from
//! the candidate.

use crate::judge::Gate;
use crate::key::{KeyId, PublicKey};
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Digest, escape, parse_strict};
use serde::{Deserialize, Serialize};

/// The schema name of a policy file.
pub const POLICY_SCHEMA: &str = "flightproof/policy/1";

/// Largest policy file in bytes: a page of keys and gates is a few thousand.
pub const MAX_POLICY_BYTES: usize = 64 * 1024;

/// What a verifier demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    keys: Option<Vec<KeyId>>,
    threshold: usize,
    required_gates: Vec<Gate>,
    allow: Allow,
    repository: Option<String>,
    witness: Option<Digest>,
}

/// What a policy lets pass. What is not named is not allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allow {
    /// Build scripts may have run.
    pub build_scripts: bool,
    /// Procedural macros may have run.
    pub proc_macros: bool,
    /// A part of the tree may have flown in place of the whole.
    pub narrowed: bool,
    /// Most waived mutants.
    pub waivers_max: u64,
    /// The candidate's author may have seen the witness.
    pub public_witness: bool,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// `POLICY_INVALID`, `POLICY_EMPTY` without a required gate, `THRESHOLD_INVALID` for 0, and the
    /// refusals of [`PublicKey::from_pem`] for a key in it.
    pub fn parse(bytes: &[u8]) -> Result<Self, CertifierError> {
        let file: PolicyFile = parse_strict(bytes, MAX_POLICY_BYTES)
            .map_err(|e| CertifierCode::PolicyInvalid.refuse(e))?;
        if file.schema != POLICY_SCHEMA {
            return Err(CertifierCode::PolicyInvalid.refuse(format_args!(
                "schema \"{}\", expected \"{POLICY_SCHEMA}\"",
                escape(&file.schema, 60)
            )));
        }
        if file.threshold == 0 {
            return Err(CertifierCode::ThresholdInvalid.refuse("threshold 0"));
        }
        if file.required_gates.is_empty() {
            return Err(CertifierCode::PolicyEmpty.refuse("required_gates is absent or empty"));
        }
        let keys = file
            .keys
            .map(|keys| keys.iter().map(|key| key_id(key)).collect());
        Ok(Self {
            keys: keys.transpose()?,
            threshold: file.threshold,
            required_gates: gates(&file.required_gates)?,
            allow: file.allow,
            repository: file.repository,
            witness: file.witness,
        })
    }

    /// Those of the given keys that may sign: all of them if the policy names none, only those it
    /// names otherwise. A policy narrows what the operator trusts and never widens it, so a key
    /// that stands in the policy alone is not trusted.
    pub fn authorized(&self, given: &[PublicKey]) -> Vec<PublicKey> {
        let named = |key: &&PublicKey| self.keys.as_ref().is_none_or(|ids| ids.contains(&key.id()));
        given.iter().filter(named).copied().collect()
    }

    /// Whether it names the keys that may sign, rather than leaving that to whoever verifies.
    pub fn pins_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// How many distinct keys must have signed.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// The gates that must have been passed.
    pub fn required_gates(&self) -> &[Gate] {
        &self.required_gates
    }

    /// What may have happened.
    pub fn allow(&self) -> &Allow {
        &self.allow
    }

    /// The one repository the policy is for.
    pub fn repository(&self) -> Option<&str> {
        self.repository.as_deref()
    }

    /// Commitment of the one witness the policy accepts.
    pub fn witness(&self) -> Option<Digest> {
        self.witness
    }
}

/// The file as it is written. `keys` absent: whatever keys the operator gives; `keys` empty:
/// nobody.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    schema: String,
    #[serde(default)]
    keys: Option<Vec<String>>,
    threshold: usize,
    #[serde(default)]
    required_gates: Vec<String>,
    #[serde(default)]
    allow: Allow,
    #[serde(default)]
    repository: Option<String>,
    #[serde(default)]
    witness: Option<Digest>,
}

/// A key is named by its id or given as PEM, which is only a longer name.
fn key_id(text: &str) -> Result<KeyId, CertifierError> {
    if text.starts_with("-----BEGIN") {
        return PublicKey::from_pem(text).map(|key| key.id());
    }
    text.parse()
        .map_err(|e| CertifierCode::PolicyInvalid.refuse(format_args!("a key: {e}")))
}

/// Exact names: a prefix or another case names no gate.
fn gates(names: &[String]) -> Result<Vec<Gate>, CertifierError> {
    names
        .iter()
        .map(|name| {
            Gate::ALL
                .into_iter()
                .find(|gate| gate.name() == name)
                .ok_or_else(|| {
                    CertifierCode::PolicyInvalid
                        .refuse(format_args!("no gate is called \"{}\"", escape(name, 40)))
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SecretKey;
    use serde_json::{Value, json};

    fn policy() -> Value {
        json!({"schema": POLICY_SCHEMA, "threshold": 1, "required_gates": ["build", "mutation"]})
    }

    fn with(field: &str, value: Value) -> Value {
        let mut policy = policy();
        policy[field] = value;
        policy
    }

    fn parse(policy: &Value) -> Result<Policy, CertifierCode> {
        Policy::parse(policy.to_string().as_bytes()).map_err(|e| e.code)
    }

    fn key(seed: u8) -> PublicKey {
        SecretKey::from_seed([seed; 32]).public()
    }

    #[test]
    fn a_small_policy_allows_nothing_it_does_not_name() {
        let policy = parse(&policy()).unwrap();
        assert_eq!(policy.required_gates(), [Gate::Build, Gate::Mutation]);
        assert_eq!(policy.allow(), &Allow::default());
        assert_eq!(policy.allow().waivers_max, 0);
    }

    #[test]
    fn a_policy_that_asks_for_nothing_is_refused() {
        let mut absent = policy();
        absent.as_object_mut().unwrap().remove("required_gates");
        for empty in [absent, with("required_gates", json!([]))] {
            assert_eq!(parse(&empty), Err(CertifierCode::PolicyEmpty));
        }
        assert_eq!(
            parse(&with("threshold", json!(0))),
            Err(CertifierCode::ThresholdInvalid)
        );
    }

    #[test]
    fn gates_are_named_exactly() {
        for name in ["Build", "buil", "builds", "build ", ""] {
            assert_eq!(
                parse(&with("required_gates", json!([name]))),
                Err(CertifierCode::PolicyInvalid),
                "{name}"
            );
        }
    }

    #[test]
    fn a_policy_is_read_in_one_way_or_not_at_all() {
        for bad in [
            with("schema", json!("flightproof/policy/2")),
            with("required_gate", json!(["build"])),
            with("allow", json!({"everything": true})),
            with("allow", json!({"waivers_max": -1})),
            with("threshold", json!("1")),
            with("keys", json!(["abc"])),
            with("witness", json!("ABC")),
            json!([]),
        ] {
            assert_eq!(parse(&bad), Err(CertifierCode::PolicyInvalid), "{bad}");
        }
        let twice = policy().to_string().replacen('{', r#"{"threshold":2,"#, 1);
        assert_eq!(
            Policy::parse(twice.as_bytes()).map_err(|e| e.code),
            Err(CertifierCode::PolicyInvalid)
        );
    }

    #[test]
    fn no_list_of_keys_is_everybody_given_and_an_empty_one_is_nobody() {
        let given = [key(1), key(2)];
        assert_eq!(parse(&policy()).unwrap().authorized(&given), given);
        let nobody = parse(&with("keys", json!([]))).unwrap();
        assert_eq!(nobody.authorized(&given), []);
    }

    #[test]
    fn a_policy_narrows_the_given_keys_and_never_widens_them() {
        let named = json!([key(2).id(), key(3).to_pem().unwrap()]);
        let policy = parse(&with("keys", named)).unwrap();
        assert_eq!(policy.authorized(&[key(1), key(2)]), [key(2)]);
        assert_eq!(policy.authorized(&[key(3)]), [key(3)]);
        assert_eq!(policy.authorized(&[key(1)]), []);
    }
}
