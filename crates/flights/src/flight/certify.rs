//! After the flight: sign, check what was signed, write it out.

use super::Proven;
use crate::report::MUTATION_REPORT;
use crate::{FlightsCode, log, regular, state};
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::certification::Secrets;
use flightproof_certifier::key::{PublicKey, Signer};
use flightproof_certifier::log::Event;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::verify::{Beside, ExpectedSubject, Verified, verify};
use flightproof_certifier::{CertifierError, derived, ssh};
use flightproof_core::{Bytes, Digest, Moment, Refusal, Verdict, escape, parse_strict};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};

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
pub fn certify(proven: &Proven, key: &dyn Signer) -> Result<Certificate, Refusal> {
    let envelope = proven.statement.sign(key)?;
    let policy = Policy::parse(own_policy(&proven.statement).to_string().as_bytes())?;
    let verified = satisfied(&policy, &envelope, proven, &key.public_key())
        .map_err(|e| Refusal::from(FlightsCode::SelfCheck.refuse(e)))?;
    Ok(Certificate {
        id: verified.id,
        envelope,
    })
}

/// Holds a certificate that was just made against a policy, as a stranger who trusts this key would.
///
/// # Errors
/// As [`verify`].
pub fn satisfied(
    policy: &Policy,
    envelope: &[u8],
    proven: &Proven,
    key: &PublicKey,
) -> Result<Verified, CertifierError> {
    let subject = ExpectedSubject {
        snapshot: proven.captured.snapshot,
        kept: proven.captured.kept_digest,
    };
    let beside = Beside {
        parents: proven.parents.envelopes.clone(),
        ..Beside::at(state::unix_seconds())
    };
    let keys = [&[*key][..], &proven.parents.keys].concat();
    verify(envelope, policy, &keys, &subject, &beside)
}

/// What a policy wants that no certificate has which this key alone has only just signed, whatever it proves.
pub(crate) fn lacks(policy: &Policy, key: &PublicKey, now: Moment) -> Vec<Lack> {
    let signer = policy.may_sign(key, now).err().map(Lack::Signer);
    let threshold = policy.threshold();
    let signatures = (threshold > 1).then(|| {
        let what = format!("{threshold} signatures, and one key signs here");
        Lack::Others(what)
    });
    let beside = policy.wants_beside().into_iter();
    let beside = beside.map(|what| Lack::Others(what.to_owned()));
    signer.into_iter().chain(signatures).chain(beside).collect()
}

/// One thing that a policy wants and a fresh certificate lacks.
pub(crate) enum Lack {
    /// A signature that counts: that of this key never does.
    Signer(CertifierError),
    /// What others can give it later.
    Others(String),
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signer(refused) => write!(f, "another key to sign: {refused}"),
            Self::Others(what) => what.fmt(f),
        }
    }
}

/// The policy under which a certificate of ours must hold whatever the operator's says: all gates
/// it claims, and nothing beyond what it claims.
fn own_policy(statement: &Statement) -> serde_json::Value {
    let predicate = &statement.predicate;
    json!({
        "schema": "flightproof/policy/1",
        "threshold": 1,
        "required_gates": predicate.gates,
        "allow": {
            "build_scripts": predicate.inputs.session_build.build_scripts,
            "new_packages": !predicate.inputs.session_build.new_packages.is_empty(),
            "proc_macros": predicate.inputs.session_build.proc_macros,
            "not_compiled": predicate.inputs.mutation.lines.not_compiled > 0,
            "quarantined_max": predicate.inputs.witness.suite.as_ref().map_or(0, |s| s.quarantined.len()),
            "witness_kinds": [predicate.inputs.witness.kind],
            "regenerated": predicate.inputs.mutation.lines.regenerated > 0,
            "tests": predicate.inputs.mutation.lines.tests > 0,
            "languages": own_language(&predicate.inputs.session_build.profile),
            "narrowed": predicate.inputs.capture.narrowed.is_some(),
            "waivers_max": predicate.inputs.mutation.waived.len()
                + predicate.inputs.mutation.unjudged.len(),
            "equivalent_max": predicate.inputs.mutation.equivalent,
            "public_witness": predicate.inputs.witness.public,
        },
    })
}

/// The toolchain of another language than Rust, as a build names it: `c: cc 12.2.0`.
fn own_language(profile: &str) -> Vec<&str> {
    let named = profile.split_once(": ");
    named.map(|(toolchain, _)| toolchain).into_iter().collect()
}

/// Files of an output directory, in the order they are written.
const OUTPUTS: [&str; 12] = [
    "admission.dsse.json",
    "agent.json",
    "certificate.dsse.json",
    "certificate.dsse.json.sig",
    "commit.bundle",
    "commit.paws",
    MUTATION_REPORT,
    "opening.json",
    "receipt.json",
    "svr.dsse.json",
    "test-result.dsse.json",
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
/// `STATE_UNAVAILABLE`, also while another flight writes there.
pub fn clear_out(out: &Path) -> Result<Claimed, Refusal> {
    state::output_directory(out)?;
    let mut claimed = Claimed::take(out)?;
    let left: Vec<&str> = OUTPUTS
        .into_iter()
        .filter(|name| out.join(name).exists())
        .collect();
    if left.is_empty() {
        return Ok(claimed);
    }
    let mut numbers = (1..MAX_EARLIER).map(|n| out.join(EARLIER).join(n.to_string()));
    let aside = numbers.find(|path| !path.exists()).ok_or_else(|| {
        Refusal::from(FlightsCode::StateUnavailable.refuse(format!("{}: full", out.display())))
    })?;
    state::output_directory(&aside)?;
    left.iter().try_for_each(|name| {
        std::fs::rename(out.join(name), aside.join(name)).map_err(|e| {
            Refusal::from(
                FlightsCode::StateUnavailable.refuse(format!("{}: {e}", out.join(name).display())),
            )
        })
    })?;
    claimed.aside = left.contains(&"certificate.dsse.json").then_some(aside);
    Ok(claimed)
}

/// An output directory that is this flight's alone, as long as this is kept: two in one would leave
/// the certificate of one beside the verdict of the other.
#[derive(Debug)]
pub struct Claimed {
    #[expect(dead_code, reason = "held for its lock")]
    directory: std::fs::File,
    /// Where the certificate of an earlier flight went.
    aside: Option<PathBuf>,
}

impl Claimed {
    /// What to tell of a certificate that is not where it was.
    pub fn note(&self) -> Option<String> {
        let aside = self.aside.as_ref()?;
        let place = escape(aside.as_os_str().as_encoded_bytes(), 300);
        Some(format!(
            "the certificate of an earlier flight is in {place}"
        ))
    }

    fn take(out: &Path) -> Result<Self, Refusal> {
        let refused = |why: &dyn std::fmt::Display| {
            let detail = format!("{}: {why}", out.display());
            Refusal::from(FlightsCode::StateUnavailable.refuse(detail))
        };
        let directory = std::fs::File::open(out).map_err(|e| refused(&e))?;
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self {
                directory,
                aside: None,
            }),
            Err(Errno::WOULDBLOCK) => Err(refused(&"another flight writes there")),
            Err(e) => Err(refused(&e)),
        }
    }
}

/// Writes the verdict.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn write_verdict(out: &Path, verdict: &Verdict) -> Result<(), Refusal> {
    let verdict = serde_json::to_value(verdict).unwrap_or_default();
    state::write_file(&out.join("verdict.json"), &line(&verdict), 0o644)
}

/// What opens a certificate's commitments, for the judging side.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OpeningFile {
    schema: String,
    certificate: Digest,
    salt: Bytes,
    observation_key: Bytes,
}

/// The schema name of an opening.
const OPENING: &str = "flightproof/opening/1";
/// Largest opening in bytes.
const MAX_OPENING: usize = 4096;

/// What opens a certificate's commitments.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// The certificate it is for.
    pub certificate: Digest,
    /// What they are sealed with.
    pub secrets: Secrets,
}

impl Opening {
    /// Reads an opening as a flight wrote it.
    ///
    /// # Errors
    /// `OPENING_UNREADABLE`.
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        let unreadable = |why: &dyn std::fmt::Display| {
            Refusal::from(
                FlightsCode::OpeningUnreadable.refuse(format!("{}: {why}", path.display())),
            )
        };
        let bytes = regular::read(path, MAX_OPENING as u64).map_err(|e| unreadable(&e))?;
        let file: OpeningFile = parse_strict(&bytes, MAX_OPENING).map_err(|e| unreadable(&e))?;
        let secret = |bytes: &Bytes| {
            <[u8; 32]>::try_from(&bytes[..]).map_err(|_| unreadable(&"a secret of another length"))
        };
        if file.schema != OPENING {
            return Err(unreadable(&"another schema"));
        }
        Ok(Self {
            certificate: file.certificate,
            secrets: Secrets {
                salt: secret(&file.salt)?,
                observation_key: secret(&file.observation_key)?,
            },
        })
    }
}

/// Hands a certificate out: it is in the log first, and what opens its commitments for the judging side
/// and what is derived from it for programs that do not know ours are written before itself.
///
/// # Errors
/// `STATE_UNAVAILABLE`; the log's; what keeps the key from signing.
pub fn write_certificate(
    out: &Path,
    certificate: &Certificate,
    proven: &Proven,
    key: &dyn Signer,
) -> Result<(), Refusal> {
    let opening = OpeningFile {
        schema: OPENING.to_owned(),
        certificate: certificate.id,
        salt: Bytes(proven.secrets.salt.to_vec()),
        observation_key: Bytes(proven.secrets.observation_key.to_vec()),
    };
    let captured = &proven.captured;
    let event = Event::Certified {
        certificate: certificate.id,
        head: captured.head,
    };
    log::note(event, &captured.repository, &captured.head.to_string())?;
    let opening = serde_json::to_value(&opening).unwrap_or_default();
    state::write_file(&out.join("opening.json"), &line(&opening), 0o600)?;
    let now = Moment::from_unix(state::unix_seconds());
    let statement = &proven.statement;
    let policy = own_policy(statement).to_string();
    let beside = [
        (
            "test-result.dsse.json",
            derived::test_result(statement, key)?,
        ),
        (
            "svr.dsse.json",
            derived::verification_result(statement, policy.as_bytes(), now, key)?,
        ),
        (
            "certificate.dsse.json.sig",
            ssh::sign_file(&certificate.envelope, key)?.into_bytes(),
        ),
    ];
    for (name, bytes) in beside {
        state::write_file(&out.join(name), &bytes, 0o644)?;
    }
    state::write_file(
        &out.join("certificate.dsse.json"),
        &certificate.envelope,
        0o644,
    )
}

fn line(value: &serde_json::Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}
