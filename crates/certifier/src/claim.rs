//! What a certificate claims: one struct per input kind, each about one thing and no more.

use crate::feedback::Feedback;
use crate::narrowing::NarrowedClaim;
use crate::spend::SpendClaim;
use flightproof_core::{CommitId, Digest, RelPath};
use flightproof_evidence::{Closed, EvidenceClass, Package, ProfileSettings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The input kinds of a certificate. Every one of [`Inputs::KINDS`] is present exactly once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Inputs {
    /// What was asked, for which commit.
    pub request: RequestClaim,
    /// The cases it was judged by.
    pub witness: WitnessClaim,
    /// The toolchain that compiled it.
    pub image_digest: ImageClaim,
    /// What was asked of the sandbox.
    pub sandbox_spec: SandboxClaim,
    /// What was in force.
    pub attestation: AttestationClaim,
    /// What was compiled.
    pub session_build: BuildClaim,
    /// What was run.
    pub session_execution: ExecutionClaim,
    /// How well the cases see the change.
    pub mutation: MutationClaim,
    /// How the commit was taken out of its repository.
    pub capture: CaptureClaim,
    /// What it descends from.
    pub lineage: LineageClaim,
    /// What the agent that made it has cost; absent for a commit that came finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spend: Option<SpendClaim>,
}

impl Inputs {
    /// The names of all kinds that stand on every certificate.
    pub const KINDS: [&str; 10] = [
        "request",
        "witness",
        "image-digest",
        "sandbox-spec",
        "attestation",
        "session-build",
        "session-execution",
        "mutation",
        "capture",
        "lineage",
    ];
}

/// `request`: does not claim who the proposer really was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestClaim {
    /// The operator's name for the repository.
    pub repository: String,
    /// The branch the commit was meant for, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit the change is based on.
    pub baseline: CommitId,
    /// The candidate.
    pub head: CommitId,
    /// The plan's name, if the flight had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// SHA-256 of the policy file, if the flight had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Digest>,
    /// How often this was tried, from 1.
    pub attempt: u64,
}

/// `witness`: does not claim that the cases are complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WitnessClaim {
    /// Salted commitment to cases and expected answers.
    pub commitment: Digest,
    /// What the witness consists of.
    pub kind: WitnessKind,
    /// Whether the candidate's author could read it.
    pub public: bool,
    /// Number of cases.
    pub cases: u64,
    /// What of them was generated; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differential: Option<DifferentialClaim>,
    /// Which tests judged, for a suite; its cases are programs of tests. Absent for any other kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuiteClaim>,
    /// What the cases said about the baseline.
    pub failed_on_baseline: BaselineResult,
    /// How much its author was told of cases that earlier attempts missed; absent where this program
    /// told nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

/// What a witness consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WitnessKind {
    /// Inputs with their expected answers.
    Cases,
    /// Generated inputs, answered as the baseline answers them, and maybe cases beside them.
    Differential,
    /// The baseline's own integration tests.
    Suite,
}

impl WitnessKind {
    /// The stable name, as on a certificate.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cases => "cases",
            Self::Differential => "differential",
            Self::Suite => "suite",
        }
    }
}

/// Inputs that were generated. Where the baseline is wrong, an equal answer is wrong too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DifferentialClaim {
    /// Cases that expect what the baseline answers: the last ones.
    pub generated: u64,
    /// Inputs that were declared to differ, and compared with nothing.
    pub declared: u64,
}

/// What the cases said about the baseline, each run once in a session of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BaselineResult {
    /// The baseline was not run: whether a case tells the two apart is unknown.
    NotRun {},
    /// What the cases run could not be built of the baseline: a new program, one that uses what is
    /// new, or one whose packages were not there.
    Unbuilt {},
    /// The cases ran.
    Ran {
        /// Numbers of those that did not meet their expectation, from 1 in the order of the witness,
        /// ascending.
        failed: Vec<u64>,
    },
}

impl BaselineResult {
    /// How many cases failed on a baseline that ran.
    pub fn failed(&self) -> u64 {
        match self {
            Self::NotRun {} | Self::Unbuilt {} => 0,
            Self::Ran { failed } => failed.len() as u64,
        }
    }
}

/// Tests of the baseline that judged. They run in one process with the code that they judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SuiteClaim {
    /// Tests that passed on the baseline, every time, and had to pass.
    pub tests: u64,
    /// Tests that the baseline ignores.
    pub ignored: u64,
    /// Tests that fail on the baseline, and judged nothing.
    pub failing: u64,
    /// How often each was run on the baseline.
    pub runs: u64,
    /// Tests that wavered on the baseline, and judged nothing: program and name.
    pub quarantined: Vec<String>,
}

/// `image-digest`: does not claim that the toolchain is benign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageClaim {
    /// The toolchain, by content.
    pub toolchain: Digest,
    /// The compiler's version line.
    pub version: String,
    /// What it compiles for; absent on older certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Linker driver and linker, by content.
    pub linker: Digest,
}

/// `sandbox-spec`: does not claim that it was in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SandboxClaim {
    /// Limits and privileges asked for, by name.
    pub asked: BTreeMap<String, String>,
}

/// `attestation`: does not claim that an engine told the truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttestationClaim {
    /// Number of the session on this certificate.
    pub session: u64,
    /// Backend name.
    pub backend: String,
    /// Kernel release.
    pub kernel: String,
    /// What the processor can do, by name; absent where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Version line of the sandbox program.
    pub sandbox: String,
    /// PAAR1 build id of the runner.
    pub runner_build: Digest,
    /// SHA-256 of the runner program.
    pub runner: Digest,
    /// Limits and privileges in force, by name.
    pub found: BTreeMap<String, FoundReading>,
    /// Forbidden acts that were tried, each with what denied it.
    pub denied: BTreeMap<String, String>,
}

/// One limit or privilege in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FoundReading {
    /// Its value.
    pub value: String,
    /// How it is known.
    pub class: EvidenceClass,
}

/// `session-build`: claims nothing about behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildClaim {
    /// Number of the session on this certificate.
    pub session: u64,
    /// Snapshot id of the source as the session received it.
    pub source: Digest,
    /// SHA-256 of the program.
    pub program: Digest,
    /// Every dependency that was shipped, ordered by name and version.
    pub packages: Vec<Package>,
    /// Those of them that the change brings: the baseline's lock file does not have them. Somebody agreed to
    /// each by its checksum; what they do is judged by the cases alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_packages: Vec<Package>,
    /// Cargo profile.
    pub profile: String,
    /// What the tree's manifest makes of that profile; absent where it leaves it as cargo has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<ProfileSettings>,
    /// Whether a build script ran.
    pub build_scripts: bool,
    /// Whether a procedural macro ran.
    pub proc_macros: bool,
}

/// `session-execution`: does not claim that the witness is strong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecutionClaim {
    /// Number of the session on this certificate.
    pub session: u64,
    /// Number of cases run.
    pub cases: u64,
    /// How often each was run, in shuffled order. Nondeterminism rarer than that is not seen.
    pub runs_per_case: u64,
    /// Keyed digest of the raw observations.
    pub observations: Digest,
    /// What was left of the session after its end.
    pub remains: Closed,
}

/// `mutation`: does not claim that all equivalent mutants were found. Rates are not stored; whoever
/// wants one divides these integers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MutationClaim {
    /// Version of the set of operators.
    pub operator_set: String,
    /// How the mutants came to run, where they are not all in one program as Rust's are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MutationMethod>,
    /// Digest of the list of mutants.
    pub population: Digest,
    /// Mutants generated: viable and unviable.
    pub generated: u64,
    /// Mutants that compiled: killed, survived, waived or equivalent.
    pub viable: u64,
    /// Mutants that did not compile. Never counted as killed.
    pub unviable: u64,
    /// Killed mutants by class of the first miss; [`MutationClaim::BY_VALUE`] is a wrong answer.
    pub killed_by: BTreeMap<String, u64>,
    /// Mutants no case noticed and nobody waived.
    pub survived: u64,
    /// Mutants no case noticed and the witness's owner waived.
    pub waived: Vec<WaiverClaim>,
    /// Mutants no case noticed and that compile, with all optimisation, to the original's program byte
    /// for byte.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub equivalent: u64,
    /// Changed places that no mutant can judge and the witness's owner waived.
    pub unjudged: Vec<WaiverClaim>,
    /// What became of the changed lines.
    pub lines: LinesClaim,
}

impl MutationClaim {
    /// The class of a mutant that gave a wrong answer.
    pub const BY_VALUE: &str = "value";
}

/// How mutants come to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MutationMethod {
    /// Each is a build of its own and a process for each case. No selector hides which one runs.
    BuildPerMutant,
}

/// One waived mutant or place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaiverClaim {
    /// The mutant's id, or the place's.
    pub mutant: String,
    /// SHA-256 of the source file it was waived in.
    pub source: Digest,
    /// Why, in the words of the witness's owner.
    pub reason: String,
}

/// The changed lines by class: each line is in exactly one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LinesClaim {
    /// All of them. A file that is gone, empty, or has other permissions counts as one.
    pub changed: u64,
    /// Code of the program: mutants on it, or of its function, were noticed.
    pub mutated: u64,
    /// Without effect by itself: comments, documents, formatting, declarations.
    pub inert: u64,
    /// Tests, benchmarks, examples, code in documentation: no part of the program, and run all the same
    /// by whoever tests it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tests: u64,
    /// Files that a rule of the operator's made again in a session, byte for byte. Mutants judge none of
    /// them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub regenerated: u64,
    /// Data that is not compiled.
    pub data: u64,
    /// Code that nothing compiled and no case ran. Someone granted it.
    pub not_compiled: u64,
    /// Part of the program, and no mutant can judge it. The witness's owner waived it.
    pub unjudged: u64,
    /// The paths that were granted for lines that are not compiled, as far as there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<RelPath>,
    /// The rules that made files again, as far as there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generated: Vec<RegeneratedClaim>,
}

/// One rule for generated files that ran, twice, in a session of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegeneratedClaim {
    /// Its name.
    pub rule: String,
    /// SHA-256 of its canonical JSON: command, tools, inputs, outputs.
    pub digest: Digest,
    /// The changed files that it made, ordered.
    pub files: Vec<RelPath>,
}

/// A count that older certificates do not have.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl LinesClaim {
    /// Whether no changed line can change what anything does: documents, comments.
    pub fn are_inert(&self) -> bool {
        self.changed > 0 && self.inert == self.changed
    }

    /// Whether no changed line can change what the program does: documents, comments, tests.
    pub fn are_beside(&self) -> bool {
        self.changed > 0 && self.inert.checked_add(self.tests) == Some(self.changed)
    }
}

/// `capture`: does not claim that nothing else happened where the commit was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaptureClaim {
    /// SHA-256 of the bundle.
    pub bundle: Digest,
    /// Size of the bundle in bytes.
    pub bundle_bytes: u64,
    /// SHA-256 of the changeset with the commit's large files; absent when all travelled in the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changeset: Option<Digest>,
    /// Digest of the list of unchanged symlinks and gitlinks, which the snapshot cannot hold;
    /// absent when there are none. Equal to the subject's annotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_digest: Option<Digest>,
    /// Number of changed paths.
    pub changed_paths: u64,
    /// What flew in place of the whole tree; absent when the whole tree flew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrowed: Option<NarrowedClaim>,
    /// The limits it was captured under, by name.
    pub limits: BTreeMap<String, u64>,
}

/// `lineage`: does not claim that anybody looked at what came before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LineageClaim {
    /// Certificates from here down to a baseline that no certificate was given for.
    pub depth: u64,
    /// The id of the baseline's certificate; absent at depth 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Digest>,
}
