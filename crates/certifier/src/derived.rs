//! Statements in the words of others, derived from a certificate for programs that do not know ours.
//! Each says less than the certificate and points to it.

use crate::certificate::{STATEMENT_TYPE, Statement};
use crate::dsse;
use crate::judge::Gate;
use crate::key::Signer;
use crate::{CertifierCode, CertifierError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flightproof_core::{Digest, Moment, Refusal, canonical_json};
use serde_json::{Value, json};

/// Type of the derived test result.
pub const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";
/// Type of the derived simple verification result.
pub const SVR: &str = "https://in-toto.io/attestation/svr/v0.2";
/// Who verified. A verifier whose rules change gets another number.
pub const VERIFIER: &str = "https://flightproof.dev/verifier/v1";

/// The gates as tests that passed, in an envelope. A certificate exists only where nothing failed.
///
/// # Errors
/// As [`dsse::sign`].
pub fn test_result(certificate: &Statement, key: &dyn Signer) -> Result<Vec<u8>, Refusal> {
    let gates = &certificate.predicate.gates;
    let witness = certificate.predicate.inputs.witness.commitment;
    let predicate = json!({
        "result": "PASSED",
        "configuration": [
            {"name": "certificate", "digest": {"sha256": certificate.id()?}},
            {"name": "witness-commitment", "digest": {"sha256": witness}},
        ],
        "passedTests": gates.iter().map(|gate| gate.name()).collect::<Vec<_>>(),
        "warnedTests": [],
        "failedTests": [],
    });
    sign(certificate, TEST_RESULT, predicate, key)
}

/// What the verifier found under a policy, in an envelope. Only for a certificate that it accepted.
///
/// # Errors
/// As [`dsse::sign`].
pub fn verification_result(
    certificate: &Statement,
    policy: &[u8],
    verified: Moment,
    key: &dyn Signer,
) -> Result<Vec<u8>, Refusal> {
    let gates = certificate.predicate.gates.iter();
    let predicate = json!({
        "verifier": {
            "id": VERIFIER,
            "policies": [{
                "name": "flightproof/policy/1",
                "digest": {"sha256": Digest::of(policy)},
                "content": STANDARD.encode(policy),
            }],
        },
        "timeCreated": verified,
        "properties": gates.map(|gate| property(*gate)).collect::<Vec<_>>(),
        "flightproof_certificate": certificate.id()?,
    });
    sign(certificate, SVR, predicate, key)
}

/// `FLIGHTPROOF_MUTATION`
fn property(gate: Gate) -> String {
    format!("FLIGHTPROOF_{}", gate.name().to_ascii_uppercase())
}

fn sign(
    certificate: &Statement,
    kind: &str,
    predicate: Value,
    key: &dyn Signer,
) -> Result<Vec<u8>, Refusal> {
    let statement = json!({
        "_type": STATEMENT_TYPE,
        "subject": certificate.subject,
        "predicateType": kind,
        "predicate": predicate,
    });
    let payload = canonical_json(&statement).map_err(malformed)?;
    dsse::sign(dsse::PAYLOAD_TYPE, &payload, key)
}

fn malformed(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::StatementMalformed.refuse(reason)
}
