//! Whether a statement can be true: the claims on it are held against each other and against what
//! the passed gates mean. No trust and no policy is involved; a true statement may still not be
//! good enough.

use crate::certificate::{Admission, Statement, Subject};
use crate::claim::{
    BaselineResult, BuildClaim, Inputs, LinesClaim, MutationClaim, WitnessClaim, WitnessKind,
};
use crate::judge::Gate;
use crate::languages::Language;
use crate::mutation::Kill;
use crate::{CertifierCode, CertifierError, lineage, spend};
use flightproof_core::{Digest, escape};
use std::collections::BTreeSet;

/// Least number of runs per case that a determinism gate can be passed with.
const MIN_RUNS: u64 = 2;

/// # Errors
/// `SUBJECT_MISSING`, `DIGEST_UNACCEPTABLE`, `DIGEST_MALFORMED`, `SESSION_MISMATCH`,
/// `LINEAGE_TOO_DEEP`, `LINEAGE_BROKEN`, `CLAIM_EMPTY` or `INCONSISTENT`.
pub(crate) fn check(statement: &Statement) -> Result<(), CertifierError> {
    let inputs = &statement.predicate.inputs;
    let gates = &statement.predicate.gates;
    subject_agrees(statement)?;
    admission_agrees(&statement.predicate.admission, inputs)?;
    sessions_agree(inputs)?;
    lineage::check(&inputs.lineage)?;
    not_empty("attempts", inputs.request.attempt)?;
    sandbox_agrees(inputs)?;
    packages_agree(&inputs.session_build)?;
    execution_agrees(inputs, gates)?;
    baseline_agrees(&inputs.witness)?;
    counts_add_up(&inputs.mutation)?;
    let of = &inputs.mutation;
    agree(
        "the set of operators and those there are",
        is_operator_set(&of.operator_set),
    )?;
    agree(
        "operators and how their mutants ran",
        Language::of_operators(&of.operator_set).is_some() == of.method.is_some(),
    )?;
    // Without a fence nobody looked what no mutant judges.
    agree(
        "lines that no mutant judges and their waivers",
        !gates.contains(&Gate::Fence)
            || inputs.mutation.lines.unjudged == 0
            || !inputs.mutation.unjudged.is_empty(),
    )?;
    if gates.contains(&Gate::Mutation) {
        mutation_passed(&inputs.mutation)?;
    }
    spend::check(statement)?;
    gates_in_order(gates)
}

/// The snapshot id a subject names.
pub(crate) fn snapshot(subject: &Subject) -> Result<Digest, CertifierError> {
    if let Some(other) = subject.digest.keys().find(|name| *name != "sha256") {
        return Err(CertifierCode::DigestUnacceptable.refuse(escape(other, 40)));
    }
    let Some(text) = subject.digest.get("sha256") else {
        return Err(CertifierCode::DigestUnacceptable.refuse("no digest at all"));
    };
    text.parse()
        .map_err(|e| CertifierCode::DigestMalformed.refuse(format_args!("sha256: {e}")))
}

/// The one subject. A loop over a list of them would be content with none.
pub(crate) fn subject(statement: &Statement) -> Result<&Subject, CertifierError> {
    match statement.subject.as_slice() {
        [subject] => Ok(subject),
        [] => Err(CertifierCode::SubjectMissing.refuse("no subject")),
        several => {
            Err(CertifierCode::SubjectAmbiguous.refuse(format_args!("{} subjects", several.len())))
        }
    }
}

fn subject_agrees(statement: &Statement) -> Result<(), CertifierError> {
    let subject = subject(statement)?;
    let inputs = &statement.predicate.inputs;
    let annotated = subject.annotations.as_ref().map(|a| a.kept_digest);
    let whole = snapshot(subject)?;
    let flown = match &inputs.capture.narrowed {
        None => whole,
        Some(narrowed) => {
            narrowed.check()?;
            narrowed.source
        }
    };
    agree(
        "source of the build and what flew",
        inputs.session_build.source == flown,
    )?;
    agree(
        "kept entries of capture and subject",
        inputs.capture.kept_digest == annotated,
    )?;
    agree(
        "repository and subject name",
        inputs.request.repository == subject.name,
    )
}

fn admission_agrees(admission: &Admission, inputs: &Inputs) -> Result<(), CertifierError> {
    match admission {
        Admission::Held {} => Ok(()),
        Admission::Admitted { branch } => agree(
            "branches of request and admission",
            inputs.request.branch.as_ref() == Some(branch),
        ),
    }
}

fn sessions_agree(inputs: &Inputs) -> Result<(), CertifierError> {
    let attested = inputs.attestation.session;
    let (built, run) = (
        inputs.session_build.session,
        inputs.session_execution.session,
    );
    if built == attested && run == attested {
        return Ok(());
    }
    Err(CertifierCode::SessionMismatch.refuse(format_args!(
        "attested {attested}, built in {built}, run in {run}"
    )))
}

fn sandbox_agrees(inputs: &Inputs) -> Result<(), CertifierError> {
    not_empty("sandbox-spec", inputs.sandbox_spec.asked.len() as u64)?;
    not_empty(
        "forbidden acts of the attestation",
        inputs.attestation.denied.len() as u64,
    )?;
    agree(
        "limits asked for and limits read back",
        inputs
            .sandbox_spec
            .asked
            .keys()
            .eq(inputs.attestation.found.keys()),
    )
}

fn execution_agrees(inputs: &Inputs, gates: &[Gate]) -> Result<(), CertifierError> {
    let execution = &inputs.session_execution;
    agree(
        "cases of witness and execution",
        inputs.witness.cases == execution.cases,
    )?;
    agree(
        "a closed session and what was left of it",
        execution.remains.is_clean(),
    )?;
    not_empty("cases", execution.cases)?;
    not_empty("runs per case", execution.runs_per_case)?;
    agree(
        "the determinism gate and the runs per case",
        !gates.contains(&Gate::Determinism) || execution.runs_per_case >= MIN_RUNS,
    )
}

fn baseline_agrees(witness: &WitnessClaim) -> Result<(), CertifierError> {
    let generated = witness.differential.as_ref().map(|claim| claim.generated);
    agree(
        "kind of witness and what was generated",
        match witness.kind {
            WitnessKind::Cases | WitnessKind::Suite => generated.is_none(),
            WitnessKind::Differential => {
                generated.is_some_and(|n| (1..=witness.cases).contains(&n))
            }
        },
    )?;
    let suite = witness.suite.as_ref();
    agree(
        "kind of witness and its tests",
        (witness.kind == WitnessKind::Suite) == suite.is_some()
            && suite.is_none_or(|suite| suite.tests > 0 && suite.runs >= MIN_RUNS),
    )?;
    let BaselineResult::Ran { failed } = &witness.failed_on_baseline else {
        return Ok(());
    };
    let known = failed.iter().all(|case| (1..=witness.cases).contains(case));
    agree(
        "cases and those that failed on the baseline",
        known && failed.is_sorted_by(|a, b| a < b),
    )
}

/// A package that stands twice was compiled from either of two contents.
fn packages_agree(build: &BuildClaim) -> Result<(), CertifierError> {
    let packages = &build.packages;
    let new = &build.new_packages;
    agree(
        "packages and those that are new",
        new.is_sorted_by(|a, b| a < b) && new.iter().all(|package| packages.contains(package)),
    )?;
    let distinct: BTreeSet<(&str, &str)> = packages
        .iter()
        .map(|package| (package.name.as_str(), package.version.as_str()))
        .collect();
    agree(
        "packages and distinct packages",
        distinct.len() == packages.len(),
    )
}

fn counts_add_up(mutation: &MutationClaim) -> Result<(), CertifierError> {
    let killed = mutation.killed_by.values().copied();
    let waived = mutation.waived.len() as u64;
    let lines = &mutation.lines;
    agree(
        "generated mutants and viable + unviable",
        sum([mutation.viable, mutation.unviable]) == Some(mutation.generated),
    )?;
    agree(
        "viable mutants and killed + survived + waived + equivalent",
        sum(killed.chain([mutation.survived, waived, mutation.equivalent]))
            == Some(mutation.viable),
    )?;
    let classes = [
        lines.mutated,
        lines.inert,
        lines.tests,
        lines.regenerated,
        lines.data,
        lines.not_compiled,
        lines.unjudged,
    ];
    agree(
        "changed lines and their classes",
        sum(classes) == Some(lines.changed),
    )?;
    generated_agree(lines)?;
    agree(
        "killed mutants and the ways to notice one",
        mutation
            .killed_by
            .keys()
            .all(|name| Kill::ALL.iter().any(|kill| kill.name() == name)),
    )?;
    // A mutant stands on a line of code, and that line is no comment.
    agree(
        "mutants and the lines they stand on",
        mutation.generated == 0 || lines.inert < lines.changed,
    )?;
    agree(
        "lines that are not compiled and their grants",
        (lines.not_compiled == 0) == lines.granted.is_empty(),
    )?;
    let all = mutation.waived.iter().chain(&mutation.unjudged);
    let mut ids: Vec<&str> = all.map(|w| w.mutant.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    agree(
        "waivers and distinct mutants",
        ids.len() == mutation.waived.len() + mutation.unjudged.len(),
    )
}

/// `rust-4`: a language and a number.
fn is_operator_set(name: &str) -> bool {
    let number = name.strip_prefix("rust-");
    let number = number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    number || Language::of_operators(name).is_some()
}

/// Every regenerated line is of a file that exactly one rule made.
fn generated_agree(lines: &LinesClaim) -> Result<(), CertifierError> {
    let rules: BTreeSet<&str> = lines.generated.iter().map(|r| r.rule.as_str()).collect();
    let files = || lines.generated.iter().flat_map(|rule| &rule.files);
    let distinct: BTreeSet<_> = files().collect();
    let made = lines.generated.iter().all(|rule| !rule.files.is_empty());
    agree(
        "regenerated lines and the rules that made them",
        made && rules.len() == lines.generated.len()
            && distinct.len() == files().count()
            && lines.regenerated >= distinct.len() as u64
            && (lines.regenerated == 0) == lines.generated.is_empty(),
    )
}

/// No mutants, or none that was told apart by its answer, is no proof: a program that fails in
/// every case "kills" everything.
fn mutation_passed(mutation: &MutationClaim) -> Result<(), CertifierError> {
    not_empty("viable mutants", mutation.viable)?;
    let by_value = mutation.killed_by.get(MutationClaim::BY_VALUE);
    not_empty("mutants killed by value", by_value.copied().unwrap_or(0))?;
    agree(
        "the mutation gate and its survivors",
        mutation.survived == 0,
    )
}

fn gates_in_order(gates: &[Gate]) -> Result<(), CertifierError> {
    agree(
        "the passed gates and their order",
        gates.is_sorted_by(|a, b| a < b),
    )
}

fn sum(parts: impl IntoIterator<Item = u64>) -> Option<u64> {
    parts.into_iter().try_fold(0u64, u64::checked_add)
}

fn agree(what: &str, holds: bool) -> Result<(), CertifierError> {
    if holds {
        return Ok(());
    }
    Err(CertifierCode::Inconsistent.refuse(format_args!("{what} do not agree")))
}

fn not_empty(what: &str, count: u64) -> Result<(), CertifierError> {
    if count > 0 {
        return Ok(());
    }
    Err(CertifierCode::ClaimEmpty.refuse(format_args!("no {what}")))
}
