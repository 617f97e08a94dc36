//! What the gate demands.

use crate::FlightsCode;
use flightproof_certifier::key::{KeyId, PublicKey};
use flightproof_certifier::newer;
use flightproof_core::{CommitId, Refusal, parse_strict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest policy in bytes.
pub(super) const MAX_POLICY: usize = 64 * 1024;

/// The schema name of version 1.
const SCHEMA: &str = "flightproof/gate-policy/1";

/// What the gate demands of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatePolicy {
    /// `flightproof/gate-policy/1`.
    pub schema: String,
    /// Keys whose evidence counts. Not empty.
    pub keys: Vec<KeyId>,
    /// The flights, each in the modes it must have been flown in. Not empty.
    pub flights: Vec<FlightRule>,
    /// Least number of different hostile flights that were refused as expected.
    pub hostile_min: u64,
    /// Oldest evidence that counts, in days.
    pub fresh_days: u64,
    /// Least value of each named figure.
    #[serde(default)]
    pub floors: BTreeMap<String, u64>,
    /// The fuzz campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuzz: Option<FuzzRule>,
}

/// A flight that must have been flown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlightRule {
    /// The plan.
    pub name: String,
    /// `replayed`, `local`, `live`. Not empty.
    pub modes: Vec<String>,
}

/// How much must have been fuzzed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FuzzRule {
    /// A campaign of this commit counts too, beside one of the candidate's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<CommitId>,
    /// Least number of targets.
    pub targets_min: u64,
    /// Least seconds over all targets.
    pub seconds_min: u64,
}

impl GatePolicy {
    /// Reads a policy.
    ///
    /// # Errors
    /// `GATE_POLICY_INVALID`, also for one that demands nothing; `PLAN_TOO_NEW`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let invalid = |what: String| {
            Refusal::from(match newer::schema(bytes, SCHEMA) {
                Some(found) => FlightsCode::PlanTooNew.refuse(format!("{found}, here {SCHEMA}")),
                None => FlightsCode::GatePolicyInvalid.refuse(what),
            })
        };
        let policy: Self = parse_strict(bytes, MAX_POLICY).map_err(|e| invalid(e.to_string()))?;
        let modes = ["replayed", "local", "live"];
        let known = |rule: &FlightRule| {
            !rule.modes.is_empty() && rule.modes.iter().all(|m| modes.contains(&m.as_str()))
        };
        if policy.schema != SCHEMA {
            return Err(invalid(format!("its schema is not {SCHEMA}")));
        }
        if policy.keys.is_empty() || policy.flights.is_empty() || policy.fresh_days == 0 {
            return Err(invalid(
                "without keys, flights or days it demands nothing".to_owned(),
            ));
        }
        if let Some(rule) = policy.flights.iter().find(|rule| !known(rule)) {
            return Err(invalid(format!(
                "flight {:?}: modes are replayed, local, live",
                rule.name
            )));
        }
        Ok(policy)
    }

    /// Those of the given keys that the policy names.
    pub fn authorized(&self, given: &[PublicKey]) -> Vec<PublicKey> {
        given
            .iter()
            .filter(|key| self.keys.contains(&key.id()))
            .copied()
            .collect()
    }
}
