//! After the flight: sign, check what was signed, write it out.

use super::Proven;
use crate::{FlightsCode, state};
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::key::SecretKey;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::verify::{ExpectedSubject, verify};
use flightproof_core::{Bytes, Digest, Refusal, Verdict};
use serde_json::json;
use std::path::Path;

/// A signed certificate.
pub struct Certificate {
    /// SHA-256 of the payload.
    pub id: Digest,
    /// The DSSE envelope.
    pub envelope: Vec<u8>,
}

/// Signs what was proven, and verifies the result as a stranger would.
///
/// # Errors
/// The certifier's refusals; `SELF_CHECK` if what was signed does not verify.
pub fn certify(proven: &Proven, key: &SecretKey) -> Result<Certificate, Refusal> {
    let envelope = proven.statement.sign(key)?;
    let policy = own_policy(&proven.statement)?;
    let subject = ExpectedSubject {
        snapshot: proven.captured.snapshot,
        kept: proven.captured.kept_digest,
    };
    let verified = verify(&envelope, &policy, &[key.public()], &subject)
        .map_err(|e| Refusal::from(FlightsCode::SelfCheck.refuse(e)))?;
    Ok(Certificate {
        id: verified.id,
        envelope,
    })
}

/// The policy under which a certificate of ours must hold whatever the operator's says: all gates
/// it claims, and nothing beyond what it claims.
fn own_policy(statement: &Statement) -> Result<Policy, Refusal> {
    let predicate = &statement.predicate;
    let document = json!({
        "schema": "flightproof/policy/1",
        "threshold": 1,
        "required_gates": predicate.gates,
        "allow": {
            "build_scripts": predicate.inputs.session_build.build_scripts,
            "proc_macros": predicate.inputs.session_build.proc_macros,
            "narrowed": predicate.inputs.capture.narrowed.is_some(),
            "waivers_max": predicate.inputs.mutation.waived.len()
                + predicate.inputs.mutation.unjudged.len(),
            "public_witness": predicate.inputs.witness.public,
        },
    });
    Ok(Policy::parse(document.to_string().as_bytes())?)
}

/// Files of an output directory, in the order they are written.
const OUTPUTS: [&str; 6] = [
    "agent.json",
    "certificate.dsse.json",
    "commit.bundle",
    "opening.json",
    "receipt.json",
    "verdict.json",
];

/// Where an earlier flight's files go, numbered from 1.
const EARLIER: &str = "earlier";
/// Most earlier flights kept in one directory.
const MAX_EARLIER: u32 = 10_000;

/// Makes the output directory, and moves what an earlier flight wrote there into `earlier/N`: its
/// certificate beside this flight's verdict would be taken for this flight's, and nothing of it may
/// be lost.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn clear_out(out: &Path) -> Result<(), Refusal> {
    state::output_directory(out)?;
    let left: Vec<&str> = OUTPUTS
        .into_iter()
        .filter(|name| out.join(name).exists())
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    let mut numbers = (1..MAX_EARLIER).map(|n| out.join(EARLIER).join(n.to_string()));
    let aside = numbers.find(|path| !path.exists()).ok_or_else(|| {
        Refusal::from(FlightsCode::StateUnavailable.refuse(format!("{}: full", out.display())))
    })?;
    state::output_directory(&aside)?;
    left.iter().try_for_each(|name| {
        std::fs::rename(out.join(name), aside.join(name)).map_err(|e| {
            FlightsCode::StateUnavailable
                .refuse(format!("{}: {e}", out.join(name).display()))
                .into()
        })
    })
}

/// Writes the verdict.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn write_verdict(out: &Path, verdict: &Verdict) -> Result<(), Refusal> {
    let verdict = serde_json::to_value(verdict).unwrap_or_default();
    state::write_file(&out.join("verdict.json"), &line(&verdict), 0o644)
}

/// Writes the certificate, and what opens its commitments for the judging side.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn write_certificate(
    out: &Path,
    certificate: &Certificate,
    proven: &Proven,
) -> Result<(), Refusal> {
    let opening = json!({
        "schema": "flightproof/opening/1",
        "certificate": certificate.id,
        "salt": Bytes(proven.salt.to_vec()),
        "observationKey": Bytes(proven.observation_key.to_vec()),
    });
    state::write_file(&out.join("opening.json"), &line(&opening), 0o600)?;
    state::write_file(
        &out.join("certificate.dsse.json"),
        &certificate.envelope,
        0o644,
    )
}

fn line(value: &serde_json::Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}
