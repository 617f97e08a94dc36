//! One honest flight and everything that is needed to certify and verify it.

use flightproof_certifier::certificate::{Admission, Evidence, Statement, keyed_observations};
use flightproof_certifier::claim::{
    BaselineResult, LineageClaim, LinesClaim, MutationClaim, WaiverClaim, WitnessClaim, WitnessKind,
};
use flightproof_certifier::judge::Gate;
use flightproof_certifier::key::{PublicKey, SecretKey};
use flightproof_certifier::policy::Policy;
use flightproof_certifier::verify::{Beside, ExpectedSubject, Verified, verify};
use flightproof_certifier::{CertifierCode, dsse};
use flightproof_core::{Bytes, CommitId, Digest, canonical_json};
use flightproof_evidence::{
    Attestation, BuildRecord, Built, Captured, Closed, EvidenceClass, Package, Probe, Reading,
    RunnerIdentity, Toolchain,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// 2026-11-29.
pub(crate) const NOW: u64 = 1_795_910_400;

pub(crate) struct Flight {
    pub(crate) captured: Captured,
    pub(crate) attestation: Attestation,
    pub(crate) built: Built,
    pub(crate) closed: Closed,
    pub(crate) mutation: MutationClaim,
    pub(crate) admission: Admission,
    pub(crate) build_session: String,
    pub(crate) gates: Vec<Gate>,
}

pub(crate) fn key() -> SecretKey {
    SecretKey::from_seed([42; 32])
}

pub(crate) fn snapshot() -> Digest {
    Digest::of(b"snapshot")
}

pub(crate) fn kept() -> Digest {
    Digest::of(b"kept")
}

pub(crate) fn flight() -> Flight {
    Flight {
        captured: captured(),
        attestation: attestation(),
        built: built(),
        closed: Closed {
            processes: 0,
            cgroups: 0,
            mounts: 0,
            directories: 0,
        },
        mutation: mutation(),
        admission: Admission::Held {},
        build_session: "volatile-7f3a".to_owned(),
        gates: Gate::ALL.to_vec(),
    }
}

impl Flight {
    pub(crate) fn evidence(&self) -> Evidence<'_> {
        Evidence {
            admission: self.admission.clone(),
            plan: Some("rounding-fix".to_owned()),
            policy: Some(Digest::of(b"policy")),
            attempt: 1,
            gates: self.gates.clone(),
            captured: &self.captured,
            narrowed: None,
            capture_limits: BTreeMap::from([("bundle-bytes".to_owned(), 131_072)]),
            attestation: &self.attestation,
            build_session: &self.build_session,
            built: &self.built,
            new_packages: Vec::new(),
            execution_session: &self.attestation.session,
            runs_per_case: 2,
            observations: keyed_observations(&[3; 32], &[]).unwrap(),
            closed: &self.closed,
            witness: WitnessClaim {
                commitment: Digest::of(b"witness"),
                kind: WitnessKind::Cases,
                differential: None,
                suite: None,
                public: false,
                cases: 4,
                failed_on_baseline: BaselineResult::Ran { failed: vec![1] },
                feedback: None,
            },
            mutation: self.mutation.clone(),
            spend: None,
            lineage: LineageClaim {
                depth: 0,
                parent: None,
            },
        }
    }

    pub(crate) fn statement(&self) -> Statement {
        Statement::build(&self.evidence()).unwrap()
    }

    pub(crate) fn refusal(&self) -> CertifierCode {
        Statement::build(&self.evidence()).unwrap_err().code
    }
}

/// The honest statement as JSON, to be changed by a test.
pub(crate) fn honest() -> Value {
    serde_json::from_slice(&flight().statement().payload().unwrap()).unwrap()
}

/// Signs any JSON value, canonical or not as it may be.
pub(crate) fn signed(statement: &Value) -> Vec<u8> {
    signed_bytes(&canonical_json(statement).unwrap())
}

pub(crate) fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    dsse::sign(dsse::PAYLOAD_TYPE, payload, &key()).unwrap()
}

pub(crate) fn policy_json() -> Value {
    json!({
        "schema": "flightproof/policy/1",
        "threshold": 1,
        "required_gates": Gate::ALL.map(Gate::name),
        "allow": {"waivers_max": 1},
    })
}

pub(crate) fn policy(policy: &Value) -> Policy {
    Policy::parse(policy.to_string().as_bytes()).unwrap()
}

pub(crate) fn subject() -> ExpectedSubject {
    ExpectedSubject {
        snapshot: snapshot(),
        kept: Some(kept()),
    }
}

pub(crate) fn keys() -> Vec<PublicKey> {
    vec![key().public()]
}

/// Verifies under the ordinary policy.
pub(crate) fn verdict(envelope: &[u8]) -> Result<Verified, CertifierCode> {
    verdict_under(envelope, &policy_json())
}

pub(crate) fn verdict_under(envelope: &[u8], under: &Value) -> Result<Verified, CertifierCode> {
    verify(
        envelope,
        &policy(under),
        &keys(),
        &subject(),
        &Beside::at(NOW),
    )
    .map_err(|e| e.code)
}

/// The honest statement with one value put in, properly signed.
pub(crate) fn with(pointer: &str, value: Value) -> Vec<u8> {
    signed(&changed(pointer, value))
}

pub(crate) fn changed(pointer: &str, value: Value) -> Value {
    let mut statement = honest();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match statement.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        object => object[name] = value,
    }
    statement
}

pub(crate) fn without(pointer: &str) -> Vec<u8> {
    let mut statement = honest();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = statement.pointer_mut(parent).unwrap();
    parent.as_object_mut().unwrap().remove(name).unwrap();
    signed(&statement)
}

pub(crate) fn refused(envelope: &[u8]) -> CertifierCode {
    verdict(envelope).unwrap_err()
}

fn captured() -> Captured {
    Captured {
        repository: "example/rounding".to_owned(),
        baseline: CommitId::from_bytes([1; 20]),
        head: CommitId::from_bytes([2; 20]),
        author: "A <a@example.org>".to_owned(),
        committer: "A <a@example.org>".to_owned(),
        bundle: Digest::of(b"bundle"),
        bundle_bytes: 1_234,
        changeset: None,
        snapshot: snapshot(),
        archive: Bytes::default(),
        kept: Vec::new(),
        kept_digest: Some(kept()),
        changes: Vec::new(),
    }
}

fn attestation() -> Attestation {
    Attestation {
        backend: "local".to_owned(),
        session: "volatile-7f3a".to_owned(),
        toolchain: Toolchain {
            digest: Digest::of(b"toolchain"),
            version: "rustc 1.95.0".to_owned(),
            linker: Digest::of(b"linker"),
            target: None,
        },
        runner: RunnerIdentity {
            build_id: Digest::of(b"runner build"),
            sha256: Digest::of(b"runner"),
        },
        kernel: "6.12.0".to_owned(),
        processor: None,
        sandbox: "bubblewrap 0.8.0".to_owned(),
        readings: vec![
            reading("memory-bytes", "1073741824", EvidenceClass::KernelFile),
            reading("network", "none", EvidenceClass::Probe),
        ],
        probes: vec![Probe {
            act: "connect".to_owned(),
            denied_by: "ENETUNREACH".to_owned(),
        }],
    }
}

fn reading(name: &str, value: &str, class: EvidenceClass) -> Reading {
    Reading {
        name: name.to_owned(),
        asked: value.to_owned(),
        found: value.to_owned(),
        class,
    }
}

fn built() -> Built {
    Built {
        program: "candidate".to_owned(),
        sha256: Digest::of(b"program"),
        record: BuildRecord {
            source: snapshot(),
            packages: vec![Package {
                name: "itoa".to_owned(),
                version: "1.0.15".to_owned(),
                sha256: Digest::of(b"itoa"),
            }],
            profile: "dev".to_owned(),
            settings: None,
            build_scripts: false,
            proc_macros: false,
        },
        reads: None,
    }
}

fn mutation() -> MutationClaim {
    MutationClaim {
        operator_set: "rust-4".to_owned(),
        method: None,
        population: Digest::of(b"population"),
        generated: 12,
        viable: 10,
        unviable: 2,
        killed_by: BTreeMap::from([("value".to_owned(), 7), ("signal".to_owned(), 2)]),
        survived: 0,
        waived: vec![WaiverClaim {
            mutant: "m3".to_owned(),
            source: Digest::of(b"source"),
            reason: "equivalent: d is always even".to_owned(),
        }],
        equivalent: 0,
        unjudged: Vec::new(),
        lines: LinesClaim {
            changed: 9,
            mutated: 5,
            inert: 3,
            tests: 0,
            regenerated: 0,
            data: 1,
            not_compiled: 0,
            unjudged: 0,
            granted: Vec::new(),
            generated: Vec::new(),
        },
    }
}
