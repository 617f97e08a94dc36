//! The judge: pure comparisons of what a session reported with what the witness expects.
//!
//! A refusal here reaches the candidate's author. It names the case and the way it was missed and
//! nothing else: an expected value, an offset or a length would let an author learn a private
//! answer from a few attempts.

use crate::{CertifierCode, CertifierError};
use flightproof_core::{Refusal, escape};
use flightproof_evidence::{BuildAnswer, Built, Change, Diagnostic, Observation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a certified commit has passed, in the order it is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// One commit on a known baseline.
    Lineage,
    /// Only dependencies from the lock file, and no new one without a grant.
    Dependency,
    /// None of the things that make source text untestable.
    Fence,
    /// It compiles, offline, in the session.
    Build,
    /// It answers every case as the witness expects.
    Correctness,
    /// Every mutant of the change is noticed by a case, or waived.
    Mutation,
    /// It answers the same way again.
    Determinism,
}

impl Gate {
    /// All gates in their order.
    pub const ALL: [Self; 7] = [
        Self::Lineage,
        Self::Dependency,
        Self::Fence,
        Self::Build,
        Self::Correctness,
        Self::Mutation,
        Self::Determinism,
    ];

    /// The name on certificates and in policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lineage => "lineage",
            Self::Dependency => "dependency",
            Self::Fence => "fence",
            Self::Build => "build",
            Self::Correctness => "correctness",
            Self::Mutation => "mutation",
            Self::Determinism => "determinism",
        }
    }
}

/// Most compiler messages in a refusal: what a person reads before starting over.
pub const MAX_DIAGNOSTICS: usize = 12;

/// The program a build made.
///
/// # Errors
/// `BUILD_FAILED` with up to [`MAX_DIAGNOSTICS`] distinct errors as notes, those in changed files
/// first, or `BUILD_LIMIT`.
pub fn built(answer: BuildAnswer, changes: &[Change]) -> Result<Built, Refusal> {
    match answer {
        BuildAnswer::Built(built) => Ok(built),
        BuildAnswer::Limit { limit } => {
            Err(CertifierCode::BuildLimit.refuse(escape(limit, 40)).into())
        }
        BuildAnswer::Failed { diagnostics, tail } => {
            let notes = build_notes(&diagnostics, &tail, changes);
            let errors = diagnostics.iter().filter(|d| d.level == "error").count();
            let refused = CertifierCode::BuildFailed.refuse(format_args!("{errors} errors"));
            Err(Refusal::from(refused).with_notes(notes))
        }
    }
}

/// Holds two observations of every case against each other, in the order of the cases.
///
/// # Errors
/// `NONDETERMINISTIC` for a case that differs or that one of the runs lacks.
pub fn determinism(first: &[Observation], second: &[Observation]) -> Result<(), CertifierError> {
    if first.len() != second.len() {
        return Err(CertifierCode::Nondeterministic.refuse(format_args!(
            "{} observations, then {}",
            first.len(),
            second.len()
        )));
    }
    match first.iter().zip(second).position(|(a, b)| !same(a, b)) {
        None => Ok(()),
        Some(index) => Err(CertifierCode::Nondeterministic
            .refuse(format_args!("case number {} differs", index + 1))),
    }
}

fn same(a: &Observation, b: &Observation) -> bool {
    a.ending == b.ending
        && a.stdout == b.stdout
        && a.complete == b.complete
        && a.armed == b.armed
        && without_thread_ids(&a.stderr) == without_thread_ids(&b.stderr)
}

/// Standard error without the one thing in it that differs between runs of an honest program: the
/// standard library reports a panic as `thread 'main' (25758) panicked at …`, with a number the
/// kernel chose.
fn without_thread_ids(stderr: &[u8]) -> Vec<u8> {
    let lines = stderr.split_inclusive(|byte| *byte == b'\n');
    lines
        .flat_map(|line| without_thread_id(line).unwrap_or_else(|| line.to_vec()))
        .collect()
}

fn without_thread_id(line: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok()?;
    let (head, rest) = text.split_once(") panicked at ")?;
    let (name, id) = head.rsplit_once(" (")?;
    let reported = name.starts_with("thread ") && id.bytes().all(|byte| byte.is_ascii_digit());
    reported.then(|| format!("{name} panicked at {rest}").into_bytes())
}

/// The messages worth showing. Those without a place in the tree are left out: they may be about
/// the witness's driver, which its author keeps back.
fn build_notes(diagnostics: &[Diagnostic], tail: &[u8], changes: &[Change]) -> Vec<String> {
    if diagnostics.is_empty() {
        return last_lines(tail);
    }
    let changed: BTreeSet<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let mut errors: Vec<&Diagnostic> = diagnostics
        .iter()
        .filter(|d| d.level == "error" && !d.file.is_empty())
        .collect();
    errors.sort_by_key(|d| !changed.contains(d.file.as_str()));
    let mut seen = BTreeSet::new();
    errors
        .into_iter()
        .map(note)
        .filter(|note| seen.insert(note.clone()))
        .take(MAX_DIAGNOSTICS)
        .collect()
}

fn note(diagnostic: &Diagnostic) -> String {
    let code = diagnostic.code.as_ref().map(|code| format!("[{code}]"));
    format!(
        "{}:{}: error{}: {}",
        diagnostic.file,
        diagnostic.line,
        code.unwrap_or_default(),
        diagnostic.message
    )
}

fn last_lines(tail: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(tail);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(MAX_DIAGNOSTICS);
    lines.into_iter().skip(from).map(str::to_owned).collect()
}
