//! Exceptions: somebody the policy names lets one certificate pass in spite of one rule, for a while,
//! and says why.
//!
//! Only rules of the policy itself can be excused. What is wrong with an archive, an import, a
//! session, a signature or a statement has no exception: nobody could say what would be let in.

use crate::dsse;
use crate::judge::Gate;
use crate::key::{KeyId, Signer};
use crate::ring::Ring;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Code as _, Digest, Moment, Refusal, canonical_json, escape, parse_strict};
use serde::{Deserialize, Serialize};

/// What the envelope says it holds.
pub const PAYLOAD_TYPE: &str = "application/vnd.flightproof.exception+json";
/// Schema name of an exception.
pub const SCHEMA: &str = "flightproof/exception/1";
/// Longest time an exception may be good for, days.
pub const MAX_DAYS: u64 = 92;
/// Most exceptions presented with one certificate.
pub const MAX_EXCEPTIONS: usize = 16;

/// The rules that can be excused.
pub const EXCUSABLE: [CertifierCode; 11] = [
    CertifierCode::GateMissing,
    CertifierCode::WitnessPublic,
    CertifierCode::WitnessKindNotAllowed,
    CertifierCode::QuarantinedTooMany,
    CertifierCode::NarrowedNotAllowed,
    CertifierCode::UncompiledNotAllowed,
    CertifierCode::RegeneratedNotAllowed,
    CertifierCode::WaiversTooMany,
    CertifierCode::EquivalentTooMany,
    CertifierCode::BuildScriptRan,
    CertifierCode::ProcMacroRan,
];

/// An exception, as it is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// [`SCHEMA`].
    pub schema: String,
    /// The one certificate it is for.
    pub certificate: Digest,
    /// The refusal it excuses, such as `certifier/GATE_MISSING`.
    pub code: String,
    /// The gate, for a missing gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// When it was made.
    pub issued: Moment,
    /// From when on it excuses nothing.
    pub expires: Moment,
    /// In the words of whoever signs.
    pub reason: String,
}

/// An exception that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excused {
    /// What it says.
    pub exception: Exception,
    /// Who signed it.
    pub signers: Vec<KeyId>,
}

impl Exception {
    /// Signs the exception.
    ///
    /// # Errors
    /// `EXCEPTION_FORBIDDEN`, `EXCEPTION_INVALID`; as [`dsse::sign`].
    pub fn sign(&self, key: &dyn Signer) -> Result<Vec<u8>, Refusal> {
        self.check()?;
        let payload = canonical_json(self).map_err(invalid)?;
        dsse::sign(PAYLOAD_TYPE, &payload, key)
    }

    /// Reads the payload of an exception.
    ///
    /// # Errors
    /// `EXCEPTION_INVALID`, `EXCEPTION_FORBIDDEN`.
    pub fn parse(payload: &[u8]) -> Result<Self, CertifierError> {
        let exception: Self = parse_strict(payload, dsse::MAX_ENVELOPE_BYTES).map_err(invalid)?;
        exception.check()?;
        if canonical_json(&exception).map_err(invalid)? != payload {
            return Err(invalid("not in canonical form"));
        }
        Ok(exception)
    }

    fn check(&self) -> Result<(), CertifierError> {
        if self.schema != SCHEMA {
            return Err(invalid(format_args!(
                "schema \"{}\", expected \"{SCHEMA}\"",
                escape(&self.schema, 60)
            )));
        }
        let known = EXCUSABLE.map(|code| code.explanation().code);
        if !known.contains(&self.code.as_str()) {
            return Err(CertifierCode::ExceptionForbidden.refuse(format_args!(
                "{}; can be excused: {}",
                escape(&self.code, 60),
                known.join(", ")
            )));
        }
        let for_gate = self.code == CertifierCode::GateMissing.explanation().code;
        if for_gate && self.gate.is_none() {
            let names = Gate::ALL.map(Gate::name);
            return Err(invalid(format_args!(
                "certifier/GATE_MISSING is of one gate, and none is named (--gate): {}",
                names.join(", ")
            )));
        }
        if !for_gate && self.gate.is_some() {
            return Err(invalid(format_args!(
                "a gate is named (--gate), and {} is of none",
                self.code
            )));
        }
        if self.reason.trim().is_empty() {
            return Err(invalid("no reason: it is empty (--reason)"));
        }
        if self.expires > self.issued.after_days(MAX_DAYS) {
            return Err(invalid(format_args!(
                "good from {} to {}, longer than the {MAX_DAYS} days there may be (--days)",
                self.issued, self.expires
            )));
        }
        if self.expires <= self.issued {
            return Err(invalid(format_args!(
                "good from {} to {}, which is no time at all (--days)",
                self.issued, self.expires
            )));
        }
        Ok(())
    }

    /// Whether it excuses a refusal, which is about this gate if it is about one.
    pub(crate) fn excuses(&self, refusal: &CertifierError, gate: Option<Gate>) -> bool {
        self.code == refusal.code.explanation().code && self.gate == gate
    }
}

/// Opens what was presented with a certificate. One that is not in order refuses all: whoever
/// presents it believes that it counts.
///
/// # Errors
/// `EXCEPTION_INVALID` (also: not signed by a key that may, for another certificate, too many),
/// `EXCEPTION_FORBIDDEN`, `EXCEPTION_EXPIRED`.
pub(crate) fn open(
    presented: &[Vec<u8>],
    ring: &Ring,
    certificate: Digest,
    now: Moment,
) -> Result<Vec<Excused>, CertifierError> {
    if presented.len() > MAX_EXCEPTIONS {
        return Err(invalid(format_args!(
            "{} of them, at most {MAX_EXCEPTIONS} allowed",
            presented.len()
        )));
    }
    presented
        .iter()
        .map(|envelope| {
            let payload = ring.open(PAYLOAD_TYPE, envelope, 1);
            let payload = payload.map_err(|refused| match refused.code {
                CertifierCode::KeyUnauthorized
                | CertifierCode::SignatureInvalid
                | CertifierCode::ThresholdNotMet => invalid(format_args!(
                    "{refused}; no key that may sign it is among those given (--key)"
                )),
                _ => invalid(refused),
            })?;
            let exception = Exception::parse(payload.bytes())?;
            if exception.certificate != certificate {
                return Err(invalid(format_args!(
                    "for certificate {}, this is {certificate}",
                    exception.certificate
                )));
            }
            if now >= exception.expires || now < exception.issued {
                return Err(CertifierCode::ExceptionExpired.refuse(format_args!(
                    "good from {} to {}, now {now}",
                    exception.issued, exception.expires
                )));
            }
            Ok(Excused {
                exception,
                signers: payload.signers().to_vec(),
            })
        })
        .collect()
}

fn invalid(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::ExceptionInvalid.refuse(reason)
}
