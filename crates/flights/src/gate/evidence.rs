//! Evidence for the gate, and the statement of acceptance: in-toto statements in signed envelopes.

use super::policy::MAX_POLICY;
use super::{Candidate, Row};
use crate::FlightsCode;
use flightproof_certifier::dsse;
use flightproof_certifier::key::{PublicKey, Signer};
use flightproof_core::{CommitId, Digest, Refusal, canonical_json, parse_strict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kind of statement that evidence is.
pub const EVIDENCE_TYPE: &str = "https://flightproof.dev/evidence/v1";
/// The kind of statement that an acceptance is.
const ACCEPTANCE_TYPE: &str = "https://flightproof.dev/acceptance/v1";

/// What was done with a program and its tree, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Snapshot id of the tree.
    pub tree: Digest,
    /// SHA-256 of the program.
    pub program: Digest,
    /// When, in seconds since 1970.
    pub at: u64,
    /// How flights were flown: `replayed`, `local`, `live`; `none` for figures alone.
    pub mode: String,
    /// The flights.
    pub flights: Vec<FlightEvidence>,
    /// Measured figures, by name.
    pub figures: BTreeMap<String, u64>,
}

/// What became of one flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlightEvidence {
    /// Its name.
    pub name: String,
    /// Digest of its plan and of every file the plan names.
    pub plan: Digest,
    /// Whether its plan expects a refusal.
    pub hostile: bool,
    /// Whether it ended as its plan expects.
    pub as_expected: bool,
}

impl Evidence {
    /// Signs it.
    ///
    /// # Errors
    /// What cannot be signed.
    pub fn sign(&self, key: &dyn Signer) -> Result<Vec<u8>, Refusal> {
        let predicate = serde_json::to_value(self).unwrap_or_default();
        sign(self.tree, EVIDENCE_TYPE, &predicate, key)
    }

    /// Reads evidence that one of the keys has signed.
    ///
    /// # Errors
    /// The envelope's refusals, `EVIDENCE_INVALID`.
    pub fn open(envelope: &[u8], keys: &[PublicKey]) -> Result<Self, Refusal> {
        let (tree, predicate) = open(envelope, EVIDENCE_TYPE, keys)?;
        let evidence: Self =
            serde_json::from_value(predicate).map_err(|e| invalid(e.to_string()))?;
        if evidence.tree != tree {
            return Err(invalid("its subject is another tree".to_owned()));
        }
        Ok(evidence)
    }
}

/// The statement that a candidate is accepted. It carries the policy of the accepted tree, which the
/// next candidate is held against: no candidate brings its own.
///
/// # Errors
/// What cannot be signed.
pub fn acceptance(
    candidate: &Candidate,
    rows: &[Row],
    held_against: Digest,
    next: &[u8],
    key: &dyn Signer,
) -> Result<Vec<u8>, Refusal> {
    let next: Value = parse_strict(next, MAX_POLICY)
        .map_err(|e| Refusal::from(FlightsCode::GatePolicyInvalid.refuse(e)))?;
    let predicate = json!({
        "schema": "flightproof/acceptance/1", "commit": candidate.commit,
        "program": candidate.program, "at": candidate.now, "policy": held_against,
        "rows": rows, "nextPolicy": next,
    });
    sign(candidate.tree, ACCEPTANCE_TYPE, &predicate, key)
}

/// The policy that the last acceptance left for the next candidate.
///
/// # Errors
/// The envelope's refusals, `EVIDENCE_INVALID`.
pub fn last_policy(envelope: &[u8], keys: &[PublicKey]) -> Result<Vec<u8>, Refusal> {
    let (_, predicate) = open(envelope, ACCEPTANCE_TYPE, keys)?;
    let policy = predicate
        .get("nextPolicy")
        .ok_or_else(|| invalid("no policy in it".to_owned()))?;
    canonical_json(policy).map_err(|e| invalid(e.to_string()))
}

fn sign(tree: Digest, kind: &str, predicate: &Value, key: &dyn Signer) -> Result<Vec<u8>, Refusal> {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "tree", "digest": {"sha256": tree}}],
        "predicateType": kind, "predicate": predicate,
    });
    let bytes = canonical_json(&statement).map_err(|e| invalid(e.to_string()))?;
    dsse::sign(dsse::PAYLOAD_TYPE, &bytes, key)
}

fn open(envelope: &[u8], kind: &str, keys: &[PublicKey]) -> Result<(Digest, Value), Refusal> {
    let signed = dsse::open(envelope, keys, 1)?;
    let statement: Value = parse_strict(signed.bytes(), dsse::MAX_ENVELOPE_BYTES)
        .map_err(|e| invalid(e.to_string()))?;
    if statement["predicateType"] != kind {
        return Err(invalid(format!("no statement of the kind {kind}")));
    }
    let subjects = statement["subject"].as_array().map_or(0, Vec::len);
    let tree = statement
        .pointer("/subject/0/digest/sha256")
        .and_then(Value::as_str);
    match tree.and_then(|text| text.parse().ok()) {
        Some(tree) if subjects == 1 => Ok((tree, statement["predicate"].clone())),
        _ => Err(invalid("not one tree as its subject".to_owned())),
    }
}

fn invalid(what: String) -> Refusal {
    FlightsCode::EvidenceInvalid.refuse(what).into()
}

/// What a fuzz campaign was, as `scripts/fuzz-nightly` writes it. Its signature is beside it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FuzzSummary {
    /// The commit that was fuzzed.
    pub commit: CommitId,
    /// When it ended, in seconds since 1970.
    pub ended: u64,
    /// `found`, if the planted bug was.
    pub canary: String,
    /// The targets.
    pub targets: Vec<FuzzTarget>,
}

/// One target of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FuzzTarget {
    /// Seconds it ran.
    pub seconds: u64,
    /// What it found.
    pub findings: Vec<Value>,
}

impl FuzzSummary {
    /// Reads a summary that one of the keys has signed.
    ///
    /// # Errors
    /// `EVIDENCE_INVALID`.
    pub fn open(summary: &[u8], signature: &[u8; 64], keys: &[PublicKey]) -> Result<Self, Refusal> {
        if !keys.iter().any(|key| key.verifies(summary, signature)) {
            return Err(invalid(
                "the fuzz summary is signed by no key of the policy".to_owned(),
            ));
        }
        // The script's numbers of seconds may have a fraction: only whole ones are evidence.
        serde_json::from_slice(summary).map_err(|e| invalid(format!("fuzz summary: {e}")))
    }
}
