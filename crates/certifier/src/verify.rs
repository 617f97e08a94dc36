//! Verifying a certificate: a signature, a statement that can be true, about this tree, and good
//! enough for this policy. There is no way to ask for less.

use crate::admission::{self, LetIn};
use crate::certificate::{Admission, Statement};
use crate::claim::{BaselineResult, RequestClaim, WaiverClaim, WitnessKind};
use crate::exception::{self, Excused};
use crate::judge::Gate;
use crate::key::{KeyId, PublicKey};
use crate::languages::Language;
use crate::lineage::{self, Ancestor};
use crate::log::{self, Included};
use crate::policy::Policy;
use crate::revocation::CheckedRevocations;
use crate::ring::Ring;
use crate::{CertifierCode, CertifierError, consistency, dsse};
use flightproof_core::{CommitId, Digest, Moment, RelPath, counted, escape};
use flightproof_evidence::Closed;

/// No clock of a machine that runs this program shows less: 2026-01-01. One that does would let
/// expired keys, lists and exceptions count.
const EARLIEST: u64 = 1_767_225_600;

/// The tree somebody wants to know about, computed from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedSubject {
    /// Snapshot id of the tree.
    pub snapshot: Digest,
    /// Digest of its symlinks and gitlinks; absent when it has none.
    pub kept: Option<Digest>,
}

/// A certificate that holds: signed by enough trusted keys, true as far as it can be checked,
/// about the expected tree, and good enough for the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The certificate's id.
    pub id: Digest,
    /// Whether it alone lets the commit in.
    pub admission: Admission,
    /// The operator's name for the repository. A name, not evidence.
    pub repository: String,
    /// The commit it was made for. The same tree under another commit is certified as well.
    pub head: CommitId,
    /// Everything that was asked for.
    pub request: RequestClaim,
    /// What was left of the session after its end.
    pub remains: Closed,
    /// The gates that were passed.
    pub gates: Vec<Gate>,
    /// Mutants that were waived.
    pub waivers: Vec<WaiverClaim>,
    /// How many of them are for places that no mutant can judge. Those come last.
    pub waived_places: usize,
    /// The paths that flew in place of the whole tree; absent if all of it flew.
    pub narrowed: Option<Vec<RelPath>>,
    /// Commitment of the witness.
    pub witness: Digest,
    /// The trusted keys that signed.
    pub signers: Vec<KeyId>,
    /// Exceptions without which it would not hold.
    pub excused: Vec<Excused>,
    /// The second statement, where the policy asks for one.
    pub let_in: Option<LetIn>,
    /// Where it stands in the log, where the policy asks for that.
    pub included: Option<Included>,
}

/// What is presented beside a certificate. Each is looked at if the policy asks for it; what the
/// policy does not ask for is refused, for whoever presents it believes that it counts.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Seconds since 1970, by a clock the caller trusts. Never the certificate's own word.
    pub now: u64,
    /// The revocation list.
    pub revocations: Option<CheckedRevocations>,
    /// Envelopes of the certificates that it builds on: all of them, down to depth 0.
    pub parents: Vec<Vec<u8>>,
    /// Envelopes of exceptions.
    pub exceptions: Vec<Vec<u8>>,
    /// The envelope of the second statement.
    pub admission: Option<Vec<u8>>,
    /// A `tlog-proof`.
    pub inclusion: Option<Vec<u8>>,
}

impl Beside {
    /// Nothing but the clock.
    pub fn at(now: u64) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }
}

/// A certificate that enough trusted keys signed and that contradicts neither itself nor the
/// revocation list. Whether it is about the right tree and good enough is still open.
#[derive(Debug)]
pub struct Opened<'a> {
    policy: &'a Policy,
    given: &'a [PublicKey],
    beside: &'a Beside,
    statement: Statement,
    payload: dsse::VerifiedPayload,
    id: Digest,
    now: Moment,
}

/// A certificate that was opened, is about the expected tree, good enough for the policy, and in its log.
/// What may be open still is the second statement, which whoever makes it signs for this.
#[derive(Debug)]
pub struct Held<'a> {
    opened: &'a Opened<'a>,
    excused: Vec<Excused>,
    included: Option<Included>,
}

/// Verifies a certificate file under a policy.
///
/// `keys` are those the caller trusts; the policy may narrow them. The answer is about the tree,
/// so an old certificate is valid again when the tree is reverted to the bytes it certifies.
///
/// # Errors
/// The first of: those of [`open`]; `SUBJECT_MISMATCH`; what the policy refuses (`GATE_MISSING`,
/// `REPOSITORY_MISMATCH`, `WITNESS_MISMATCH`, `WITNESS_PUBLIC`, `WITNESS_KIND_NOT_ALLOWED`,
/// `QUARANTINED_TOO_MANY`, `NARROWED_NOT_ALLOWED`, `NOTHING_FIXED`, `ATTEMPTS_TOO_MANY`,
/// `UNCOMPILED_NOT_ALLOWED`, `REGENERATED_NOT_ALLOWED`, `WAIVERS_TOO_MANY`, `EQUIVALENT_TOO_MANY`,
/// `BUILD_SCRIPT_RAN`, `PROC_MACRO_RAN`, `NEW_PACKAGES_NOT_ALLOWED`, `LANGUAGE_NOT_ALLOWED`) or its
/// exceptions are refused for (`EXCEPTION_INVALID`, `EXCEPTION_FORBIDDEN`, `EXCEPTION_EXPIRED`);
/// `INCLUSION_MISSING`, `INCLUSION_INVALID`, `CHECKPOINT_INVALID`; `ADMISSION_MISSING`,
/// `ADMISSION_MISMATCH`, `ADMISSION_BY_SIGNER`; `BESIDE_UNASKED`.
pub fn verify(
    envelope: &[u8],
    policy: &Policy,
    keys: &[PublicKey],
    subject: &ExpectedSubject,
    beside: &Beside,
) -> Result<Verified, CertifierError> {
    let opened = open(envelope, policy, keys, beside)?;
    let held = opened.holds(subject)?;
    held.let_in(beside.admission.as_deref())
}

/// Checks who signed a certificate, and what can be checked of it alone.
///
/// # Errors
/// The first of: `CLOCK_IMPLAUSIBLE`, `REVOCATION_UNAVAILABLE`, `BESIDE_UNASKED`;
/// `KEY_UNAUTHORIZED`; those of [`dsse::open`], with `KEY_REVOKED` and `KEY_EXPIRED`; those of
/// [`Statement::parse`]; a statement that cannot be true (`SUBJECT_MISSING`, `DIGEST_UNACCEPTABLE`,
/// `DIGEST_MALFORMED`, `SESSION_MISMATCH`, `LINEAGE_TOO_DEEP`, `CLAIM_EMPTY`, `INCONSISTENT`); the same
/// of a parent; `LINEAGE_BROKEN`, `BESIDE_UNASKED` for a parent that is none;
/// `CERTIFICATE_REVOKED`.
pub fn open<'a>(
    envelope: &[u8],
    policy: &'a Policy,
    given: &'a [PublicKey],
    beside: &'a Beside,
) -> Result<Opened<'a>, CertifierError> {
    let now = Moment::from_unix(beside.now);
    if beside.now < EARLIEST {
        return Err(CertifierCode::ClockImplausible.refuse(now));
    }
    let revocations = revocations(policy, beside)?;
    let payload = policy.signers(given, now, revocations).open(
        dsse::PAYLOAD_TYPE,
        envelope,
        policy.threshold(),
    )?;
    let statement = Statement::parse(payload.bytes())?;
    consistency::check(&statement)?;
    let id = Digest::of(payload.bytes());
    revocations.map_or(Ok(()), |list| list.certificate(id))?;
    let ancestors = beside.parents.iter();
    let ancestors = ancestors.map(|envelope| ancestor(envelope, policy, given, (now, revocations)));
    let inputs = &statement.predicate.inputs;
    lineage::walk(
        &inputs.lineage,
        (&inputs.request.repository, inputs.request.baseline),
        &ancestors.collect::<Result<Vec<_>, _>>()?,
    )?;
    Ok(Opened {
        policy,
        given,
        beside,
        statement,
        payload,
        id,
        now,
    })
}

/// A certificate that the one in question may build on, held against the same keys and list.
fn ancestor(
    envelope: &[u8],
    policy: &Policy,
    given: &[PublicKey],
    (now, revocations): (Moment, Option<&CheckedRevocations>),
) -> Result<Ancestor, CertifierError> {
    let ring = policy.signers(given, now, revocations);
    let payload = ring.open(dsse::PAYLOAD_TYPE, envelope, policy.threshold())?;
    let statement = Statement::parse(payload.bytes())?;
    consistency::check(&statement)?;
    let id = Digest::of(payload.bytes());
    revocations.map_or(Ok(()), |list| list.certificate(id))?;
    Ok(Ancestor::of(statement, id))
}

/// The list that the policy wants, and no other.
fn revocations<'a>(
    policy: &Policy,
    beside: &'a Beside,
) -> Result<Option<&'a CheckedRevocations>, CertifierError> {
    match (policy.revocations(), &beside.revocations) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(unasked("a revocation list")),
        (Some(rule), None) => Err(CertifierCode::RevocationUnavailable
            .refuse(format_args!("the policy wants list {}", rule.list))),
        (Some(rule), Some(found)) if found.list().list == rule.list => Ok(Some(found)),
        (Some(rule), Some(found)) => Err(CertifierCode::RevocationInvalid.refuse(format_args!(
            "list {}, the policy wants {}",
            found.list().list,
            rule.list
        ))),
    }
}

fn unasked(what: &str) -> CertifierError {
    CertifierCode::BesideUnasked.refuse(format_args!("{what}; the policy does not ask for one"))
}

impl Opened<'_> {
    /// The certificate's id.
    pub fn id(&self) -> Digest {
        self.id
    }

    /// What it says.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The policy it was opened under.
    pub fn policy(&self) -> &Policy {
        self.policy
    }

    /// Whether this key may let the commit in. Where the policy says nothing of admissions, whoever
    /// holds a key and the repository may.
    ///
    /// # Errors
    /// `KEY_UNAUTHORIZED`, `KEY_EXPIRED`, `KEY_REVOKED`.
    pub fn may_admit(&self, key: &PublicKey) -> Result<(), CertifierError> {
        let Some(rule) = self.policy.admission() else {
            return Ok(());
        };
        let list = self.beside.revocations.as_ref();
        Ring::new(Some(&rule.keys), &[*key], self.now, list).has(key)
    }

    /// Whether it is about this tree, good enough for the policy, and in the policy's log.
    ///
    /// # Errors
    /// As [`verify`], but for the second statement.
    pub fn holds(&self, subject: &ExpectedSubject) -> Result<Held<'_>, CertifierError> {
        is_about(&self.statement, subject)?;
        Ok(Held {
            opened: self,
            excused: self.excused()?,
            included: self.included()?,
        })
    }

    /// The exceptions that it needs.
    fn excused(&self) -> Result<Vec<Excused>, CertifierError> {
        let presented = self.exceptions()?;
        let mut used: Vec<Excused> = Vec::new();
        for (refusal, gate) in objections(&self.statement, self.policy) {
            match presented
                .iter()
                .find(|e| e.exception.excuses(&refusal, gate))
            {
                Some(excused) => used.push(excused.clone()),
                None => return Err(refusal),
            }
        }
        Ok(used)
    }

    fn exceptions(&self) -> Result<Vec<Excused>, CertifierError> {
        let presented = &self.beside.exceptions;
        match self.policy.exceptions() {
            None if presented.is_empty() => Ok(Vec::new()),
            None => Err(unasked("an exception")),
            Some(keys) => exception::open(presented, &self.ring(keys), self.id, self.now),
        }
    }

    fn ring(&self, keys: &[crate::ring::NamedKey]) -> Ring {
        Ring::new(
            Some(keys),
            self.given,
            self.now,
            self.beside.revocations.as_ref(),
        )
    }

    fn included(&self) -> Result<Option<Included>, CertifierError> {
        match (self.policy.log(), &self.beside.inclusion) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(unasked("a proof of inclusion")),
            (Some(_), None) => Err(CertifierCode::InclusionMissing
                .refuse("the policy wants the certificate to be in its log")),
            (Some(key), Some(proof)) => log::included(proof, key, self.id).map(Some),
        }
    }
}

impl Held<'_> {
    /// With the second statement, where the policy asks for one: nothing is open any more.
    ///
    /// # Errors
    /// As [`verify`].
    pub fn let_in(self, admission: Option<&[u8]>) -> Result<Verified, CertifierError> {
        let opened = self.opened;
        let let_in = match (opened.policy.admission(), admission) {
            (None, None) => None,
            (None, Some(_)) => return Err(unasked("an admission")),
            (Some(_), None) => {
                return Err(CertifierCode::AdmissionMissing
                    .refuse("the policy wants a second statement beside the certificate"));
            }
            (Some(rule), Some(envelope)) => {
                let about = (&opened.statement, opened.id, opened.payload.signers());
                Some(admission::open(
                    envelope,
                    rule,
                    &opened.ring(&rule.keys),
                    about,
                )?)
            }
        };
        let Statement { predicate, .. } = opened.statement.clone();
        let inputs = predicate.inputs;
        Ok(Verified {
            id: opened.id,
            admission: predicate.admission,
            repository: inputs.request.repository.clone(),
            head: inputs.request.head,
            request: inputs.request,
            remains: inputs.session_execution.remains,
            gates: predicate.gates,
            waived_places: inputs.mutation.unjudged.len(),
            waivers: [inputs.mutation.waived, inputs.mutation.unjudged].concat(),
            narrowed: inputs.capture.narrowed.map(|narrowed| narrowed.paths),
            witness: inputs.witness.commitment,
            signers: opened.payload.signers().to_vec(),
            excused: self.excused,
            let_in,
            included: self.included,
        })
    }
}

/// Both halves of the tree must be the expected ones; a half that one side lacks is a difference.
fn is_about(statement: &Statement, expected: &ExpectedSubject) -> Result<(), CertifierError> {
    let subject = consistency::subject(statement)?;
    let certified = consistency::snapshot(subject)?;
    if certified != expected.snapshot {
        return Err(CertifierCode::SubjectMismatch.refuse(format_args!(
            "the tree differs: certified snapshot {certified}, this tree {}",
            expected.snapshot
        )));
    }
    let kept = subject.annotations.as_ref().map(|a| a.kept_digest);
    if kept != expected.kept {
        return Err(CertifierCode::SubjectMismatch.refuse(format_args!(
            "the symlinks and gitlinks differ: certified {}, this tree {}",
            shown(kept),
            shown(expected.kept)
        )));
    }
    Ok(())
}

fn shown(digest: Option<Digest>) -> String {
    digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string())
}

/// The first thing that a policy has against a statement, whoever signed it and whatever tree is at hand.
/// An exception may excuse it still.
pub fn objection(statement: &Statement, policy: &Policy) -> Option<CertifierError> {
    objections(statement, policy)
        .into_iter()
        .next()
        .map(|(refusal, _)| refusal)
}

/// Everything the policy has against a statement, in order, each with its gate if it is about one.
fn objections(statement: &Statement, policy: &Policy) -> Vec<(CertifierError, Option<Gate>)> {
    let inputs = &statement.predicate.inputs;
    let missing = policy.required_gates().iter();
    let missing = missing.filter(|gate| !statement.predicate.gates.contains(gate));
    // Of documents, comments and tests no mutant can be made. Tests are run by whoever tests the
    // program: that nothing proves them, the policy must say.
    let lines = &inputs.mutation.lines;
    let inert = lines.are_inert() || (policy.allow().tests && lines.are_beside());
    let missing = missing.filter(|gate| **gate != Gate::Mutation || !inert);
    let mut found: Vec<_> = missing
        .map(|gate| (CertifierCode::GateMissing.refuse(gate.name()), Some(*gate)))
        .collect();
    let repository = &inputs.request.repository;
    if policy
        .repository()
        .is_some_and(|wanted| wanted != repository)
    {
        let refusal = CertifierCode::RepositoryMismatch.refuse(escape(repository, 80));
        found.push((refusal, None));
    }
    let commitment = inputs.witness.commitment;
    if policy.witness().is_some_and(|wanted| wanted != commitment) {
        let refusal = CertifierCode::WitnessMismatch.refuse(format_args!("got {commitment}"));
        found.push((refusal, None));
    }
    found.extend(not_allowed(statement, policy).map(|refusal| (refusal, None)));
    found
}

/// What a certificate has and the policy does not allow, in the order in which it is refused.
fn not_allowed(statement: &Statement, policy: &Policy) -> impl Iterator<Item = CertifierError> {
    let inputs = &statement.predicate.inputs;
    let (allow, require) = (policy.allow(), policy.require());
    let (witness, mutation) = (&inputs.witness, &inputs.mutation);
    let unless = |allowed: bool, code: CertifierCode, detail: &dyn Fn() -> String| {
        (!allowed).then(|| code.refuse(detail()))
    };
    let at_most = |found: u64, most: u64, code: CertifierCode| {
        unless(found <= most, code, &|| {
            format!("{found}, at most {most} allowed")
        })
    };
    let unset = |name: &'static str| move || format!("allow.{name} is not set");
    let new = &inputs.session_build.new_packages;
    let suite = witness.suite.as_ref();
    let quarantined = suite.map_or(0, |suite| suite.quarantined.len() as u64);
    let narrowed = inputs.capture.narrowed.as_ref();
    let fixes = &witness.failed_on_baseline;
    let lines = &mutation.lines;
    let waived = (mutation.waived.len() + mutation.unjudged.len()) as u64;
    let language = Language::of_operators(&mutation.operator_set).map(Language::toolchain);
    [
        unless(
            !witness.public || allow.public_witness,
            CertifierCode::WitnessPublic,
            &unset("public_witness"),
        ),
        unless(
            witness.kind == WitnessKind::Cases || allow.witness_kinds.contains(&witness.kind),
            CertifierCode::WitnessKindNotAllowed,
            &|| {
                let kind = witness.kind.name();
                format!("{kind}; allow.witness_kinds does not name it")
            },
        ),
        at_most(
            quarantined,
            allow.quarantined_max,
            CertifierCode::QuarantinedTooMany,
        ),
        unless(
            narrowed.is_none() || allow.narrowed,
            CertifierCode::NarrowedNotAllowed,
            &|| {
                let paths = narrowed.map_or(0, |narrowed| narrowed.paths.len());
                format!("{paths} paths flew; allow.narrowed is not set")
            },
        ),
        unless(
            !require.failed_on_baseline || fixes.failed() > 0,
            CertifierCode::NothingFixed,
            &|| {
                let why = match fixes {
                    BaselineResult::Ran { .. } => "every case passes on the baseline",
                    BaselineResult::Unbuilt {} => {
                        "the baseline has nothing that the cases could run"
                    }
                    BaselineResult::NotRun {} => "the cases were not run on the baseline",
                };
                why.to_owned()
            },
        ),
        require.attempt(inputs.request.attempt).err(),
        unless(
            lines.not_compiled == 0 || allow.not_compiled,
            CertifierCode::UncompiledNotAllowed,
            &|| {
                format!(
                    "{}; allow.not_compiled is not set",
                    counted(lines.not_compiled, "line")
                )
            },
        ),
        unless(
            lines.regenerated == 0 || allow.regenerated,
            CertifierCode::RegeneratedNotAllowed,
            &|| {
                format!(
                    "{}; allow.regenerated is not set",
                    counted(lines.regenerated, "line")
                )
            },
        ),
        at_most(waived, allow.waivers_max, CertifierCode::WaiversTooMany),
        at_most(
            mutation.equivalent,
            allow.equivalent_max,
            CertifierCode::EquivalentTooMany,
        ),
        unless(
            !inputs.session_build.build_scripts || allow.build_scripts,
            CertifierCode::BuildScriptRan,
            &unset("build_scripts"),
        ),
        unless(
            !inputs.session_build.proc_macros || allow.proc_macros,
            CertifierCode::ProcMacroRan,
            &unset("proc_macros"),
        ),
        unless(
            new.is_empty() || allow.new_packages,
            CertifierCode::NewPackagesNotAllowed,
            &|| {
                let names = new
                    .iter()
                    .take(8)
                    .map(|p| format!("{} {}", p.name, p.version));
                let names = escape(names.collect::<Vec<_>>().join(", "), 200);
                format!("{}: {names}; allow.new_packages is not set", new.len())
            },
        ),
        language
            .filter(|name| !allow.languages.iter().any(|known| known == name))
            .map(|name| {
                let detail = format!("{name} is not among allow.languages");
                CertifierCode::LanguageNotAllowed.refuse(detail)
            }),
    ]
    .into_iter()
    .flatten()
}
