//! The policy: what a verifier demands of a certificate. It comes from the operator, never from
//! the candidate.

use crate::judge::Gate;
use crate::key::{KeyId, PublicKey};
use crate::log::LogKey;
use crate::revocation::{CheckedRevocations, ListName};
use crate::ring::{NamedKey, Ring};
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Digest, Moment, escape, parse_strict};
use serde::{Deserialize, Serialize};

/// The schema name of a policy file.
pub const POLICY_SCHEMA: &str = "flightproof/policy/1";

/// Largest policy file in bytes: a page of keys and gates is a few thousand.
pub const MAX_POLICY_BYTES: usize = 64 * 1024;

/// What a verifier demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    keys: Option<Vec<NamedKey>>,
    threshold: usize,
    required_gates: Vec<Gate>,
    allow: Allow,
    require: Require,
    repository: Option<String>,
    witness: Option<Digest>,
    revocations: Option<RevocationRule>,
    exceptions: Option<Vec<NamedKey>>,
    admission: Option<AdmissionRule>,
    log: Option<LogKey>,
}

/// Which revocation list must be presented, and who may sign it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevocationRule {
    /// The list's name.
    pub list: ListName,
    /// Who may sign it.
    pub keys: Vec<NamedKey>,
    /// How many distinct keys must have.
    pub threshold: usize,
}

/// Who must let a certified commit in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionRule {
    /// Who may.
    pub keys: Vec<NamedKey>,
    /// How many distinct keys must.
    pub threshold: usize,
    /// Whether keys that signed the certificate do not count.
    pub other_than_signer: bool,
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
    /// Changed lines may have come along that no build compiled, if somebody granted them.
    pub not_compiled: bool,
    /// Most waived mutants.
    pub waivers_max: u64,
    /// The candidate's author may have seen the witness.
    pub public_witness: bool,
}

/// What a policy wants to have happened, beside the gates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Require {
    /// At least one case failed on the baseline: a fix fixes something.
    pub failed_on_baseline: bool,
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
        file.check_thresholds()?;
        file.check_roles()?;
        if file.required_gates.is_empty() {
            return Err(CertifierCode::PolicyEmpty.refuse("required_gates is absent or empty"));
        }
        Ok(Self {
            keys: file.keys.map(|keys| named(&keys)).transpose()?,
            threshold: file.threshold,
            required_gates: gates(&file.required_gates)?,
            allow: file.allow,
            require: file.require,
            repository: file.repository,
            witness: file.witness,
            revocations: file
                .revocations
                .map(|rule| -> Result<_, CertifierError> {
                    Ok(RevocationRule {
                        list: rule.list,
                        keys: named(&rule.keys)?,
                        threshold: rule.threshold,
                    })
                })
                .transpose()?,
            exceptions: file.exceptions.map(|rule| named(&rule.keys)).transpose()?,
            admission: file
                .admission
                .map(|rule| -> Result<_, CertifierError> {
                    Ok(AdmissionRule {
                        keys: named(&rule.keys)?,
                        threshold: rule.threshold,
                        other_than_signer: rule.other_than_signer,
                    })
                })
                .transpose()?,
            log: file
                .log
                .map(|rule| rule.key.parse().map_err(invalid))
                .transpose()?,
        })
    }

    /// Those of the given keys that may sign a certificate now.
    pub(crate) fn signers(
        &self,
        given: &[PublicKey],
        now: Moment,
        revocations: Option<&CheckedRevocations>,
    ) -> Ring {
        Ring::new(self.keys.as_deref(), given, now, revocations)
    }

    /// Whether this key, if it is given, may sign a certificate now, as far as no revocation says
    /// otherwise.
    pub fn may_sign(&self, key: &PublicKey, now: Moment) -> bool {
        self.signers(&[*key], now, None).has(key).is_ok()
    }

    /// What must be presented beside a certificate, which whoever makes it cannot have yet.
    pub fn wants_beside(&self) -> Vec<&'static str> {
        let wanted = [
            self.revocations.is_some().then_some("a revocation list"),
            self.admission.is_some().then_some("a second statement"),
            self.log.is_some().then_some("a proof from a log"),
        ];
        wanted.into_iter().flatten().collect()
    }

    /// The revocation list that must be presented.
    pub fn revocations(&self) -> Option<&RevocationRule> {
        self.revocations.as_ref()
    }

    /// Who may make exceptions; nobody, if the policy does not say.
    pub fn exceptions(&self) -> Option<&[NamedKey]> {
        self.exceptions.as_deref()
    }

    /// Who must let a commit in beside the certificate.
    pub fn admission(&self) -> Option<&AdmissionRule> {
        self.admission.as_ref()
    }

    /// The log that the certificate must be in.
    pub fn log(&self) -> Option<&LogKey> {
        self.log.as_ref()
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

    /// What must have happened.
    pub fn require(&self) -> &Require {
        &self.require
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
    keys: Option<Vec<KeyEntry>>,
    threshold: usize,
    #[serde(default)]
    required_gates: Vec<String>,
    #[serde(default)]
    allow: Allow,
    #[serde(default)]
    require: Require,
    #[serde(default)]
    repository: Option<String>,
    #[serde(default)]
    witness: Option<Digest>,
    #[serde(default)]
    revocations: Option<RevocationEntry>,
    #[serde(default)]
    exceptions: Option<ExceptionEntry>,
    #[serde(default)]
    admission: Option<AdmissionEntry>,
    #[serde(default)]
    log: Option<LogEntry>,
}

/// A key by its name, or with the time in which it is in force.
#[derive(Deserialize)]
#[serde(untagged)]
enum KeyEntry {
    Name(String),
    Window(KeyWindow),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyWindow {
    key: String,
    #[serde(default)]
    from: Option<Moment>,
    #[serde(default)]
    until: Option<Moment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RevocationEntry {
    list: ListName,
    keys: Vec<KeyEntry>,
    #[serde(default = "one")]
    threshold: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExceptionEntry {
    keys: Vec<KeyEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AdmissionEntry {
    keys: Vec<KeyEntry>,
    #[serde(default = "one")]
    threshold: usize,
    #[serde(default)]
    other_than_signer: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogEntry {
    key: String,
}

fn one() -> usize {
    1
}

impl PolicyFile {
    fn check_thresholds(&self) -> Result<(), CertifierError> {
        let of_roles = [
            self.revocations.as_ref().map(|rule| rule.threshold),
            self.admission.as_ref().map(|rule| rule.threshold),
        ];
        let all = of_roles.into_iter().flatten().chain([self.threshold]);
        match all.into_iter().any(|threshold| threshold == 0) {
            true => Err(CertifierCode::ThresholdInvalid.refuse("threshold 0")),
            false => Ok(()),
        }
    }

    /// With several roles and no list of the certificates' signers, every key given for another role
    /// could sign certificates too.
    fn check_roles(&self) -> Result<(), CertifierError> {
        let roles =
            self.revocations.is_some() || self.exceptions.is_some() || self.admission.is_some();
        if roles && self.keys.is_none() {
            return Err(invalid(
                "keys must be named where revocations, exceptions or admission name theirs",
            ));
        }
        Ok(())
    }
}

fn named(entries: &[KeyEntry]) -> Result<Vec<NamedKey>, CertifierError> {
    entries
        .iter()
        .map(|entry| {
            let (text, from, until) = match entry {
                KeyEntry::Name(text) => (text, None, None),
                KeyEntry::Window(window) => (&window.key, window.from, window.until),
            };
            if from.zip(until).is_some_and(|(from, until)| from >= until) {
                return Err(invalid("a key is in force from after its end"));
            }
            Ok(NamedKey {
                id: key_id(text)?,
                from,
                until,
            })
        })
        .collect()
}

fn invalid(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::PolicyInvalid.refuse(reason)
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

    /// Whether the key with this seed may sign under the policy, at a moment, if it is given.
    fn may(policy: &Value, seed: u8, now: &str) -> Option<CertifierCode> {
        let envelope = crate::dsse::sign("x", b"{}", &SecretKey::from_seed([seed; 32])).unwrap();
        let policy = parse(policy).unwrap();
        let ring = policy.signers(&[key(1), key(2)], now.parse().unwrap(), None);
        ring.open("x", &envelope, 1).err().map(|e| e.code)
    }

    const NOW: &str = "2026-11-29T00:00:00Z";

    #[test]
    fn no_list_of_keys_is_everybody_given_and_an_empty_one_is_nobody() {
        assert_eq!(may(&policy(), 1, NOW), None);
        assert_eq!(may(&policy(), 2, NOW), None);
        let unauthorized = Some(CertifierCode::KeyUnauthorized);
        assert_eq!(may(&with("keys", json!([])), 1, NOW), unauthorized);
    }

    #[test]
    fn a_policy_narrows_the_given_keys_and_never_widens_them() {
        let named = with("keys", json!([key(2).id(), key(3).to_pem().unwrap()]));
        assert_eq!(may(&named, 2, NOW), None);
        let invalid = Some(CertifierCode::SignatureInvalid);
        assert_eq!(may(&named, 1, NOW), invalid);
        assert_eq!(may(&named, 3, NOW), invalid, "named and not given");
    }

    #[test]
    fn a_key_counts_from_its_first_moment_until_its_last() {
        let window = json!([{"key": key(1).id(), "from": "2026-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z"}]);
        let policy = with("keys", window);
        let expired = Some(CertifierCode::KeyExpired);
        for (now, expected) in [
            ("2025-12-31T23:59:59Z", expired),
            ("2026-01-01T00:00:00Z", None),
            ("2026-12-31T23:59:59Z", None),
            ("2027-01-01T00:00:00Z", expired),
            ("9999-12-31T23:59:59Z", expired),
        ] {
            assert_eq!(may(&policy, 1, now), expected, "{now}");
        }
        for bad in [
            json!([{"key": key(1).id(), "from": "2026-01-01"}]),
            json!([{"key": key(1).id(), "until": 1}]),
            json!([{"key": key(1).id(), "forever": true}]),
            json!([{"key": key(1).id(), "from": "2027-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}]),
            json!([{"from": "2026-01-01T00:00:00Z"}]),
        ] {
            let refused = parse(&with("keys", bad.clone()));
            assert_eq!(refused, Err(CertifierCode::PolicyInvalid), "{bad}");
        }
    }

    #[test]
    fn roles_have_keys_of_their_own_and_real_thresholds() {
        let role = json!({"keys": [key(2).id()]});
        for name in ["exceptions", "admission"] {
            let refused = parse(&with(name, role.clone()));
            assert_eq!(
                refused,
                Err(CertifierCode::PolicyInvalid),
                "{name} without keys"
            );
            let mut good = with(name, role.clone());
            good["keys"] = json!([key(1).id()]);
            assert!(parse(&good).is_ok(), "{name}");
        }
        let mut zero = with("admission", json!({"keys": [key(2).id()], "threshold": 0}));
        zero["keys"] = json!([key(1).id()]);
        assert_eq!(parse(&zero), Err(CertifierCode::ThresholdInvalid));
        let mut list = with("revocations", json!({"list": "../etc", "keys": []}));
        list["keys"] = json!([key(1).id()]);
        assert_eq!(parse(&list), Err(CertifierCode::PolicyInvalid));
        assert_eq!(
            parse(&with("log", json!({"key": "nonsense"}))),
            Err(CertifierCode::PolicyInvalid)
        );
    }
}
