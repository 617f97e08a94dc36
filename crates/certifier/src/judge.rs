//! The judge: pure comparisons of what a session reported with what the witness expects.
//!
//! A refusal here reaches the candidate's author. It names the case and the way it was missed and
//! nothing else: an expected value, an offset or a length would let an author learn a private
//! answer from a few attempts.

use crate::witness::Case;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Refusal, escape};
use flightproof_evidence::{BuildAnswer, Built, Change, Diagnostic, Ending, Observation};
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
/// first; `TARGET_MISSING` or `DRIVER_FAILED` where the witness is at fault; `BUILD_LIMIT`.
pub fn built(answer: BuildAnswer, changes: &[Change]) -> Result<Built, Refusal> {
    match answer {
        BuildAnswer::Built(built) => Ok(built),
        BuildAnswer::Limit { limit } => Err(build_limit(&limit)),
        BuildAnswer::Failed { diagnostics, tail } => {
            Err(build_failed(&diagnostics, &tail, changes))
        }
    }
}

/// A build that met one of its limits.
pub(crate) fn build_limit(limit: &str) -> Refusal {
    CertifierCode::BuildLimit.refuse(escape(limit, 40)).into()
}

/// A build that failed, with what the compiler said.
pub(crate) fn build_failed(diagnostics: &[Diagnostic], tail: &[u8], changes: &[Change]) -> Refusal {
    let notes = build_notes(diagnostics, tail, changes);
    Refusal::from(failed_build(diagnostics, tail)).with_notes(notes)
}

/// What cargo says when there is nothing of the name it was given.
const NO_TARGET: [&str; 3] = [
    "no bin target named",
    "did not match any packages",
    "no library targets found",
];

/// Whose fault a failed build is. Errors without a place in the tree are the driver's: it is the
/// only source that is not of the tree, and its text is the witness owner's.
fn failed_build(diagnostics: &[Diagnostic], tail: &[u8]) -> CertifierError {
    let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.level == "error").collect();
    let tail = String::from_utf8_lossy(tail);
    if errors.is_empty() {
        return if NO_TARGET.iter().any(|words| tail.contains(words)) {
            CertifierCode::TargetMissing.refuse("cargo finds no such target")
        } else {
            CertifierCode::BuildFailed.refuse("cargo ended without a message of the compiler")
        };
    }
    let number = match errors.len() {
        1 => "1 error".to_owned(),
        more => format!("{more} errors"),
    };
    if errors.iter().all(|d| d.file.is_empty()) {
        return CertifierCode::DriverFailed.refuse(format_args!("{number}, which show its text"));
    }
    CertifierCode::BuildFailed.refuse(number)
}

/// Holds one observation against what the witness expects of its case.
///
/// # Errors
/// One code per way to miss, how the run ended before what it said: `CASE_SIGNALLED`,
/// `CASE_FORBIDDEN_CALL`, `CASE_TIMED_OUT`, `CASE_OUTPUT_LIMIT`, `CASE_PROCESS_LIMIT`,
/// `CASE_MEMORY_LIMIT`, `CASE_INCOMPLETE`, `CASE_EXIT_MISMATCH`, `CASE_STDOUT_MISMATCH`,
/// `CASE_STDERR_MISMATCH`.
pub fn judge_case(case: &Case, observation: &Observation) -> Result<(), CertifierError> {
    match miss(case, observation) {
        None => Ok(()),
        Some(code) => Err(code.refuse(format_args!("case {}", escape(&case.id, 80)))),
    }
}

fn miss(case: &Case, observation: &Observation) -> Option<CertifierCode> {
    let code = match observation.ending {
        Ending::Exited { code } => code,
        Ending::Signaled { .. } => return Some(CertifierCode::CaseSignalled),
        Ending::ForbiddenCall => return Some(CertifierCode::CaseForbiddenCall),
        Ending::TimedOut => return Some(CertifierCode::CaseTimedOut),
        Ending::OutputLimit => return Some(CertifierCode::CaseOutputLimit),
        Ending::ProcessLimit => return Some(CertifierCode::CaseProcessLimit),
        Ending::MemoryLimit => return Some(CertifierCode::CaseMemoryLimit),
    };
    if !observation.complete {
        return Some(CertifierCode::CaseIncomplete);
    }
    if code != case.expect.exit {
        return Some(CertifierCode::CaseExitMismatch);
    }
    if !case.expect.accepts_stdout(&observation.stdout) {
        return Some(CertifierCode::CaseStdoutMismatch);
    }
    (!case.expect.accepts_stderr(&observation.stderr)).then_some(CertifierCode::CaseStderrMismatch)
}

/// Holds two observations of every case against each other, in the order of the cases.
///
/// # Errors
/// `NONDETERMINISTIC` for a case that differs or that one of the runs lacks.
pub fn determinism(first: &[Observation], second: &[Observation]) -> Result<(), CertifierError> {
    named_determinism(&[], first, second)
}

/// As [`determinism`], and a case that differs is called by its name.
///
/// # Errors
/// As [`determinism`].
pub(crate) fn named_determinism(
    cases: &[Case],
    first: &[Observation],
    second: &[Observation],
) -> Result<(), CertifierError> {
    if first.len() != second.len() {
        return Err(CertifierCode::Nondeterministic.refuse(format_args!(
            "{} observations, then {}",
            first.len(),
            second.len()
        )));
    }
    match first.iter().zip(second).position(|(a, b)| !same(a, b)) {
        None => Ok(()),
        Some(index) => Err(
            CertifierCode::Nondeterministic.refuse(match cases.get(index) {
                Some(case) => format!("case {}", escape(&case.id, 80)),
                None => format!("case number {}", index + 1),
            }),
        ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_core::{Code as _, Digest, RelPath};
    use flightproof_evidence::{BuildRecord, FileState};
    use serde_json::json;

    fn observation(stdout: &str, stderr: &str) -> Observation {
        Observation {
            ending: Ending::Exited { code: 0 },
            stdout: stdout.as_bytes().into(),
            stderr: stderr.as_bytes().into(),
            complete: true,
            armed: false,
        }
    }

    fn change(path: &str) -> Change {
        Change {
            path: RelPath::new(path).unwrap(),
            old: None,
            new: Some(FileState {
                executable: false,
                content: Vec::new().into(),
            }),
        }
    }

    fn error(file: &str, line: u32, message: &str) -> Diagnostic {
        Diagnostic {
            level: "error".to_owned(),
            code: Some("E0308".to_owned()),
            message: message.to_owned(),
            file: file.to_owned(),
            line,
            spans: Vec::new(),
        }
    }

    fn failed(diagnostics: Vec<Diagnostic>, tail: &str) -> Refusal {
        let answer = BuildAnswer::Failed {
            diagnostics,
            tail: tail.as_bytes().into(),
        };
        built(answer, &[change("src/b.rs")]).unwrap_err()
    }

    fn case(expect: serde_json::Value) -> Case {
        serde_json::from_value(json!({"id": "one", "expect": expect})).unwrap()
    }

    fn missed(case: &Case, observation: &Observation) -> Option<CertifierCode> {
        judge_case(case, observation).err().map(|refusal| {
            assert_eq!(refusal.detail, "case one", "nothing else may be told");
            refusal.code
        })
    }

    #[test]
    fn every_way_to_miss_a_case_has_its_own_code() {
        let case = case(json!({"exit": 0, "stdout": "right", "stderr_contains": "note"}));
        let right = observation("right", "a note\n");
        assert_eq!(missed(&case, &right), None);
        for (ending, code) in [
            (
                Ending::Exited { code: 101 },
                CertifierCode::CaseExitMismatch,
            ),
            (Ending::Signaled { signal: 6 }, CertifierCode::CaseSignalled),
            (Ending::ForbiddenCall, CertifierCode::CaseForbiddenCall),
            (Ending::TimedOut, CertifierCode::CaseTimedOut),
            (Ending::OutputLimit, CertifierCode::CaseOutputLimit),
            (Ending::ProcessLimit, CertifierCode::CaseProcessLimit),
            (Ending::MemoryLimit, CertifierCode::CaseMemoryLimit),
        ] {
            let observed = Observation {
                ending,
                ..right.clone()
            };
            assert_eq!(missed(&case, &observed), Some(code));
        }
        let cut = Observation {
            complete: false,
            ..right
        };
        assert_eq!(missed(&case, &cut), Some(CertifierCode::CaseIncomplete));
    }

    #[test]
    fn streams_are_compared_exactly() {
        let case = case(json!({"exit": 0, "stdout": "right", "stderr_contains": "note"}));
        for wrong in ["right\n", "righ", "", "right\0", "Right"] {
            assert_eq!(
                missed(&case, &observation(wrong, "note")),
                Some(CertifierCode::CaseStdoutMismatch)
            );
        }
        for wrong in ["", "not", "Note", "n o t e"] {
            assert_eq!(
                missed(&case, &observation("right", wrong)),
                Some(CertifierCode::CaseStderrMismatch)
            );
        }
    }

    #[test]
    fn json_answers_are_compared_by_value_and_read_strictly() {
        let case = case(json!({"exit": 0, "stdout_json": {"a": 1, "b": [true]}}));
        for right in [r#"{"a":1,"b":[true]}"#, "{ \"b\": [ true ], \"a\": 1 }\n"] {
            assert_eq!(missed(&case, &observation(right, "anything")), None);
        }
        for wrong in [
            r#"{"a":2,"a":1,"b":[true]}"#,
            r#"{"a":1.0,"b":[true]}"#,
            r#"{"a":"1","b":[true]}"#,
            r#"{"a":1,"b":[true]} {}"#,
            r#"{"a":1,"b":[true],"c":null}"#,
            "",
        ] {
            assert_eq!(
                missed(&case, &observation(wrong, "")),
                Some(CertifierCode::CaseStdoutMismatch),
                "{wrong}"
            );
        }
    }

    #[test]
    fn an_expected_failure_is_a_right_answer() {
        let case = case(json!({"exit": 2}));
        let mut failing = observation("whatever", "");
        failing.ending = Ending::Exited { code: 2 };
        assert_eq!(missed(&case, &failing), None);
    }

    #[test]
    fn the_names_of_the_gates_are_those_on_certificates() {
        for gate in Gate::ALL {
            assert_eq!(serde_json::to_value(gate).unwrap(), json!(gate.name()));
        }
        assert!(Gate::ALL.is_sorted());
    }

    #[test]
    fn a_build_that_works_hands_out_its_program() {
        let program = Built {
            program: "p".to_owned(),
            sha256: Digest::of(b"p"),
            record: BuildRecord {
                source: Digest::of(b"s"),
                packages: Vec::new(),
                profile: "dev".to_owned(),
                settings: None,
                build_scripts: false,
                proc_macros: false,
            },
            reads: None,
        };
        assert_eq!(built(BuildAnswer::Built(program.clone()), &[]), Ok(program));
    }

    #[test]
    fn a_failed_build_shows_distinct_errors_of_changed_files_first() {
        let mut many: Vec<Diagnostic> = (0..20).map(|n| error("src/a.rs", n, "other")).collect();
        many.push(error("src/b.rs", 3, "mismatched types"));
        many.push(error("src/b.rs", 3, "mismatched types"));
        let refusal = failed(many, "");
        assert_eq!(
            refusal.explanation,
            CertifierCode::BuildFailed.explanation()
        );
        assert_eq!(refusal.notes.len(), MAX_DIAGNOSTICS);
        assert_eq!(
            refusal.notes[0],
            "src/b.rs:3: error[E0308]: mismatched types"
        );
        assert!(refusal.notes[1].starts_with("src/a.rs:0"));
    }

    #[test]
    fn a_failed_build_counts_its_errors_and_shows_no_warning() {
        for (count, detail) in [(1, "1 error"), (2, "2 errors")] {
            let errors: Vec<_> = (0..count).map(|n| error("src/a.rs", n, "wrong")).collect();
            let shown = errors.len();
            let mut warning = error("src/a.rs", 9, "unused");
            warning.level = "warning".to_owned();
            let refusal = failed([errors, vec![warning]].concat(), "");
            assert_eq!(refusal.detail, detail);
            assert_eq!(refusal.notes.len(), shown);
        }
    }

    #[test]
    fn messages_about_the_witness_driver_are_kept_back() {
        let refusal = failed(vec![error("", 0, "secret_helper")], "in secret_helper");
        assert_eq!(refusal.notes, Vec::<String>::new());
        assert_eq!(refusal.code(), "certifier/DRIVER_FAILED");
        assert!(!refusal.detail.contains("secret"), "{}", refusal.detail);
        let both = vec![error("", 0, "secret_helper"), error("src/lib.rs", 3, "own")];
        assert_eq!(failed(both, "").code(), "certifier/BUILD_FAILED");
    }

    #[test]
    fn a_target_that_is_not_there_is_the_witness_s_fault() {
        let missing = failed(
            Vec::new(),
            "error: no bin target named `tooy` in default-run packages",
        );
        assert_eq!(missing.code(), "certifier/TARGET_MISSING");
        assert_eq!(
            failed(Vec::new(), "error: out of luck").code(),
            "certifier/BUILD_FAILED"
        );
    }

    #[test]
    fn a_build_that_cargo_refused_shows_its_last_lines_escaped() {
        let refusal = failed(Vec::new(), "first\n\nerror: no \u{1b}[31mlock\n");
        assert_eq!(refusal.notes, ["first", "error: no \\u{1b}[31mlock"]);
    }

    #[test]
    fn a_build_that_hit_a_limit_names_it() {
        let limit = BuildAnswer::Limit {
            limit: "memory".to_owned(),
        };
        let refusal = built(limit, &[]).unwrap_err();
        assert_eq!(refusal.code(), "certifier/BUILD_LIMIT");
        assert_eq!(refusal.detail, "memory");
    }

    #[test]
    fn any_difference_between_two_runs_is_nondeterminism() {
        let first = [observation("a", "e"), observation("b", "")];
        assert_eq!(determinism(&first, &first), Ok(()));
        let mut killed = first.clone();
        killed[1].ending = Ending::Signaled { signal: 9 };
        let mut cut = first.clone();
        cut[1].complete = false;
        let mut armed = first.clone();
        armed[1].armed = true;
        for second in [
            vec![first[0].clone(), observation("c", "")],
            vec![observation("a", "f"), first[1].clone()],
            vec![first[0].clone()],
            Vec::new(),
            killed.to_vec(),
            cut.to_vec(),
            armed.to_vec(),
        ] {
            let refusal = determinism(&first, &second).unwrap_err();
            assert_eq!(refusal.code, CertifierCode::Nondeterministic);
        }
    }

    #[test]
    fn a_case_that_differs_is_called_by_its_name_or_its_number() {
        let (first, second) = (
            [observation("a", ""), observation("b", "")],
            [observation("a", ""), observation("c", "")],
        );
        let detail = |cases: &[Case]| {
            let refused = named_determinism(cases, &first, &second).unwrap_err();
            refused.detail
        };
        let mut other = case(json!({"exit": 0}));
        other.id = "two".to_owned();
        assert_eq!(detail(&[case(json!({"exit": 0})), other]), "case two");
        assert_eq!(detail(&[]), "case number 2");
    }

    #[test]
    fn the_thread_number_of_a_panic_is_no_difference_and_everything_else_is() {
        let panic = |id: &str, at: &str| {
            [observation(
                "",
                &format!("thread 'main' ({id}) panicked at src/main.rs:{at}:\nx\n"),
            )]
        };
        assert_eq!(determinism(&panic("12", "1:1"), &panic("7", "1:1")), Ok(()));
        for (first, second) in [
            (panic("12", "1:1"), panic("12", "2:1")),
            (panic("12", "1:1"), panic("x", "1:1")),
            (
                [observation("", "id (12) panicked at x")],
                [observation("", "id (13) panicked at x")],
            ),
            ([observation("", "(1)")], [observation("", "(2)")]),
        ] {
            assert!(determinism(&first, &second).is_err());
        }
        // Each line by itself: several threads may panic.
        let two = |first: &str, second: &str| {
            let panic = |name, id| format!("thread '{name}' ({id}) panicked at a.rs:1:1:\nx\n");
            let both = panic("one", first) + &panic("two", second);
            [observation("", &both)]
        };
        assert_eq!(determinism(&two("1", "2"), &two("3", "4")), Ok(()));
    }
}
