//! The certificate: one in-toto statement about one tree, built from evidence and nothing else.

use crate::claim::{
    AttestationClaim, BuildClaim, CaptureClaim, ExecutionClaim, FoundReading, ImageClaim, Inputs,
    LineageClaim, MutationClaim, RequestClaim, SandboxClaim, WitnessClaim,
};
use crate::judge::Gate;
use crate::key::Signer;
use crate::narrowing::NarrowedClaim;
use crate::spend::SpendClaim;
use crate::{CertifierCode, CertifierError, consistency, dsse};
use flightproof_core::{Digest, Refusal, StrictError, canonical_json, escape, parse_strict_value};
use flightproof_evidence::{Attestation, Built, Captured, Closed, Observation, Package};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The in-toto statement version.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// What kind of statement a certificate is.
pub const PREDICATE_TYPE: &str = "https://flightproof.dev/certificate/v1";
/// Schema name of the predicate.
pub const PREDICATE_SCHEMA: &str = "flightproof/certificate/1";

/// A certificate before it is signed. Its canonical JSON is what is signed; two flights with equal
/// evidence reach equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// Exactly one.
    pub subject: Vec<Subject>,
    /// [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// What is claimed of it.
    pub predicate: Predicate,
}

/// The tree a certificate is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The operator's name for the repository. Names decide nothing.
    pub name: String,
    /// `sha256`: the snapshot id of the tree.
    pub digest: BTreeMap<String, String>,
    /// What of the tree the snapshot id does not cover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<SubjectAnnotations>,
}

/// The part of a tree that its snapshot cannot hold. It is an annotation and no second digest:
/// in-toto matches a subject when any of its digests matches, and this one alone names no tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubjectAnnotations {
    /// Digest of the list of unchanged symlinks and gitlinks.
    pub kept_digest: Digest,
}

/// What a certificate claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// [`PREDICATE_SCHEMA`].
    pub schema: String,
    /// Whether this certificate alone lets the commit in.
    pub admission: Admission,
    /// The gates that were passed, in their order.
    pub gates: Vec<Gate>,
    /// The evidence, by kind.
    pub inputs: Inputs,
}

/// Whether a certificate alone lets its commit in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Admission {
    /// It does not: a second statement must follow.
    Held {},
    /// It does, onto this branch.
    Admitted {
        /// The branch.
        branch: String,
    },
}

/// Everything a certificate is built from.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// Whether the certificate alone lets the commit in.
    pub admission: Admission,
    /// The plan's name.
    pub plan: Option<String>,
    /// SHA-256 of the policy file.
    pub policy: Option<Digest>,
    /// How often this was tried, from 1.
    pub attempt: u64,
    /// The gates that were passed, in their order.
    pub gates: Vec<Gate>,
    /// The commit.
    pub captured: &'a Captured,
    /// What flew in place of the whole tree.
    pub narrowed: Option<NarrowedClaim>,
    /// The limits it was captured under, by name.
    pub capture_limits: BTreeMap<String, u64>,
    /// The session, as it was read back.
    pub attestation: &'a Attestation,
    /// Id of the session that built.
    pub build_session: &'a str,
    /// The candidate as it is, built without mutants.
    pub built: &'a Built,
    /// Packages that the baseline's lock file does not have, as the dependency gate found them.
    pub new_packages: Vec<Package>,
    /// Id of the session that ran the cases.
    pub execution_session: &'a str,
    /// How often each case was run.
    pub runs_per_case: u64,
    /// Digest of the raw observations, from [`keyed_observations`].
    pub observations: Digest,
    /// What was left of the session.
    pub closed: &'a Closed,
    /// The witness.
    pub witness: WitnessClaim,
    /// The mutation run.
    pub mutation: MutationClaim,
    /// What it descends from.
    pub lineage: LineageClaim,
    /// What the agent that made the commit has cost, if one did.
    pub spend: Option<SpendClaim>,
}

impl Statement {
    /// The statement these pieces of evidence make.
    ///
    /// # Errors
    /// `SESSION_MISMATCH` for evidence of different sessions, `SESSION_NOT_CLEAN`, and every
    /// refusal the verifier would have for the result: what it refuses is never signed.
    pub fn build(evidence: &Evidence<'_>) -> Result<Self, CertifierError> {
        one_session(evidence)?;
        if !evidence.closed.is_clean() {
            return Err(
                CertifierCode::SessionNotClean.refuse(format_args!("{:?}", evidence.closed))
            );
        }
        let statement = Self {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: vec![subject(evidence.captured)],
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: Predicate {
                schema: PREDICATE_SCHEMA.to_owned(),
                admission: evidence.admission.clone(),
                gates: evidence.gates.clone(),
                inputs: inputs(evidence)?,
            },
        };
        consistency::check(&statement)?;
        Ok(statement)
    }

    /// Reads a signed payload.
    ///
    /// # Errors
    /// In this order: `STATEMENT_MALFORMED` (not JSON, no statement), `STATEMENT_TYPE_UNSUPPORTED`,
    /// `PREDICATE_TYPE_UNSUPPORTED`, `SUBJECT_MISSING`, `SUBJECT_AMBIGUOUS`, `INPUT_MISSING`,
    /// `STATEMENT_MALFORMED` (a field missing, unknown or of another type) and
    /// `STATEMENT_NOT_CANONICAL`.
    pub fn parse(payload: &[u8]) -> Result<Self, CertifierError> {
        Self::plainly(payload).map_or_else(|| Self::slowly(payload), Ok)
    }

    /// A payload that is fine, read once: what it says, written canonically, is its very bytes, so
    /// that nothing in it stands twice, is rounded, left out or of another form. Of any other, this
    /// does not say why.
    pub(crate) fn plainly(payload: &[u8]) -> Option<Self> {
        let statement: Self = serde_json::from_slice(payload).ok()?;
        let known = payload.len() <= dsse::MAX_ENVELOPE_BYTES
            && statement.statement_type == STATEMENT_TYPE
            && statement.predicate_type == PREDICATE_TYPE
            && statement.predicate.schema == PREDICATE_SCHEMA
            && statement.subject.len() == 1;
        (known && statement.payload().ok()? == payload).then_some(statement)
    }

    /// The same step by step, each with its refusal.
    pub(crate) fn slowly(payload: &[u8]) -> Result<Self, CertifierError> {
        let document =
            parse_strict_value(payload, dsse::MAX_ENVELOPE_BYTES).map_err(|e| malformed(&e))?;
        known_type(&document)?;
        all_inputs(&document)?;
        let statement: Self = serde_json::from_value(document)
            .map_err(|e| CertifierCode::StatementMalformed.refuse(e))?;
        if statement.predicate.schema != PREDICATE_SCHEMA {
            return Err(CertifierCode::StatementMalformed.refuse("another predicate schema"));
        }
        if statement.payload()? != payload {
            return Err(CertifierCode::StatementNotCanonical.refuse("its bytes differ"));
        }
        Ok(statement)
    }

    /// The bytes to sign.
    ///
    /// # Errors
    /// `STATEMENT_MALFORMED` for a count beyond 2^53 - 1.
    pub fn payload(&self) -> Result<Vec<u8>, CertifierError> {
        canonical_json(self).map_err(|e| CertifierCode::StatementMalformed.refuse(e))
    }

    /// Signs the statement: the certificate file.
    ///
    /// # Errors
    /// As [`Statement::payload`] and [`dsse::sign`].
    pub fn sign(&self, key: &dyn Signer) -> Result<Vec<u8>, Refusal> {
        dsse::sign(dsse::PAYLOAD_TYPE, &self.payload()?, key)
    }

    /// The certificate's id: SHA-256 of the payload, never of the envelope, which others may
    /// rewrite without breaking a signature.
    ///
    /// # Errors
    /// As [`Statement::payload`].
    pub fn id(&self) -> Result<Digest, CertifierError> {
        self.payload().map(|payload| Digest::of(&payload))
    }
}

/// Digest of the raw observations of a flight, keyed so that nobody can confirm a guessed answer.
/// Pass all cases of the first run in their order, then those of the next, not as they were shuffled.
///
/// # Errors
/// `STATEMENT_MALFORMED`, if an observation has no canonical form (each has).
pub fn keyed_observations(
    key: &[u8; 32],
    observations: &[Observation],
) -> Result<Digest, CertifierError> {
    canonical_json(observations)
        .map(|bytes| Digest::keyed(key, &bytes))
        .map_err(|e| CertifierCode::StatementMalformed.refuse(e))
}

/// Number of the one session on a certificate. Its real id is random and would make a replay
/// differ; what counts is that all claims are about the same one.
const THE_SESSION: u64 = 1;

fn one_session(evidence: &Evidence<'_>) -> Result<(), CertifierError> {
    let attested = evidence.attestation.session.as_str();
    for (what, session) in [
        ("built", evidence.build_session),
        ("run", evidence.execution_session),
    ] {
        if session != attested {
            return Err(CertifierCode::SessionMismatch.refuse(format_args!(
                "{what} in {}, attested {}",
                escape(session, 80),
                escape(attested, 80)
            )));
        }
    }
    Ok(())
}

fn subject(captured: &Captured) -> Subject {
    Subject {
        name: captured.repository.clone(),
        digest: BTreeMap::from([("sha256".to_owned(), captured.snapshot.to_string())]),
        annotations: captured
            .kept_digest
            .map(|kept_digest| SubjectAnnotations { kept_digest }),
    }
}

fn inputs(evidence: &Evidence<'_>) -> Result<Inputs, CertifierError> {
    let toolchain = &evidence.attestation.toolchain;
    Ok(Inputs {
        request: request(evidence),
        witness: evidence.witness.clone(),
        image_digest: ImageClaim {
            toolchain: toolchain.digest,
            version: toolchain.version.clone(),
            target: toolchain.target.clone(),
            linker: toolchain.linker,
        },
        sandbox_spec: SandboxClaim {
            asked: once(
                evidence
                    .attestation
                    .readings
                    .iter()
                    .map(|r| (&r.name, r.asked.clone())),
            )?,
        },
        attestation: attestation(evidence.attestation)?,
        session_build: session_build(evidence),
        session_execution: ExecutionClaim {
            session: THE_SESSION,
            cases: evidence.witness.cases,
            runs_per_case: evidence.runs_per_case,
            observations: evidence.observations,
            remains: evidence.closed.clone(),
        },
        mutation: evidence.mutation.clone(),
        capture: capture(evidence),
        lineage: evidence.lineage.clone(),
        spend: evidence.spend.clone(),
    })
}

fn request(evidence: &Evidence<'_>) -> RequestClaim {
    RequestClaim {
        repository: evidence.captured.repository.clone(),
        branch: match &evidence.admission {
            Admission::Held {} => None,
            Admission::Admitted { branch } => Some(branch.clone()),
        },
        baseline: evidence.captured.baseline,
        head: evidence.captured.head,
        plan: evidence.plan.clone(),
        policy: evidence.policy,
        attempt: evidence.attempt,
    }
}

fn attestation(attestation: &Attestation) -> Result<AttestationClaim, CertifierError> {
    let found = attestation.readings.iter().map(|reading| {
        let found = FoundReading {
            value: reading.found.clone(),
            class: reading.class,
        };
        (&reading.name, found)
    });
    Ok(AttestationClaim {
        session: THE_SESSION,
        backend: attestation.backend.clone(),
        kernel: attestation.kernel.clone(),
        processor: attestation.processor.clone(),
        sandbox: attestation.sandbox.clone(),
        runner_build: attestation.runner.build_id,
        runner: attestation.runner.sha256,
        found: once(found)?,
        denied: once(
            attestation
                .probes
                .iter()
                .map(|p| (&p.act, p.denied_by.clone())),
        )?,
    })
}

/// A list as a map. Of two entries with one name the last would silently win.
fn once<'a, V>(
    entries: impl Iterator<Item = (&'a String, V)>,
) -> Result<BTreeMap<String, V>, CertifierError> {
    let mut out = BTreeMap::new();
    for (name, value) in entries {
        if out.insert(name.clone(), value).is_some() {
            return Err(CertifierCode::Inconsistent.refuse(format_args!(
                "the session reports {} twice",
                escape(name, 80)
            )));
        }
    }
    Ok(out)
}

fn session_build(evidence: &Evidence<'_>) -> BuildClaim {
    let built = evidence.built;
    BuildClaim {
        session: THE_SESSION,
        source: built.record.source,
        program: built.sha256,
        packages: built.record.packages.clone(),
        new_packages: evidence.new_packages.clone(),
        profile: built.record.profile.clone(),
        settings: built.record.settings.clone(),
        build_scripts: built.record.build_scripts,
        proc_macros: built.record.proc_macros,
    }
}

fn capture(evidence: &Evidence<'_>) -> CaptureClaim {
    let captured = evidence.captured;
    CaptureClaim {
        bundle: captured.bundle,
        bundle_bytes: captured.bundle_bytes,
        changeset: captured.changeset,
        kept_digest: captured.kept_digest,
        changed_paths: captured.changes.len() as u64,
        narrowed: evidence.narrowed.clone(),
        limits: evidence.capture_limits.clone(),
    }
}

fn malformed(error: &StrictError) -> CertifierError {
    CertifierCode::StatementMalformed.refuse(error)
}

/// The kind of statement is settled before its fields are given a meaning.
fn known_type(document: &Value) -> Result<(), CertifierError> {
    for (field, expected, code) in [
        (
            "_type",
            STATEMENT_TYPE,
            CertifierCode::StatementTypeUnsupported,
        ),
        (
            "predicateType",
            PREDICATE_TYPE,
            CertifierCode::PredicateTypeUnsupported,
        ),
    ] {
        let Some(found) = document.get(field).and_then(Value::as_str) else {
            return Err(
                CertifierCode::StatementMalformed.refuse(format_args!("no text in {field}"))
            );
        };
        if found != expected {
            return Err(code.refuse(format_args!(
                "got \"{}\", expected \"{expected}\"",
                escape(found, 80)
            )));
        }
    }
    match document.get("subject").map(Value::as_array) {
        None => Err(CertifierCode::SubjectMissing.refuse("no subject")),
        Some(None) => Err(CertifierCode::StatementMalformed.refuse("subject is no list")),
        Some(Some(subjects)) => match subjects.len() {
            0 => Err(CertifierCode::SubjectMissing.refuse("an empty list")),
            1 => Ok(()),
            n => Err(CertifierCode::SubjectAmbiguous.refuse(format_args!("{n} subjects"))),
        },
    }
}

fn all_inputs(document: &Value) -> Result<(), CertifierError> {
    let inputs = document.pointer("/predicate/inputs");
    let missing: Vec<&str> = Inputs::KINDS
        .into_iter()
        .filter(|kind| inputs.is_none_or(|inputs| inputs.get(kind).is_none()))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(CertifierCode::InputMissing.refuse(missing.join(", ")))
}
