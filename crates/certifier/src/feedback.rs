//! What the author of a refused commit is told of the case it missed.

use crate::witness::{Case, Expect, Witness};
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Refusal, counted, escape};
use flightproof_evidence::{Ending, Observation};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Most bytes of each stream in what an author is told.
const MAX_SHOWN: usize = 1_000;

/// How much an author is told of a case that its commit missed. Of a third of the cases of a private
/// witness nothing is ever told but that one was missed, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// How a case was missed, and not which.
    CheckOnly,
    /// And of a public case which, and what the commit answered.
    #[default]
    OwnOutput,
    /// And of a private one; and what was expected.
    Full,
}

/// The case that ended a flight.
#[derive(Debug, Clone, PartialEq)]
pub struct Missed {
    case: Case,
    observation: Observation,
    public: bool,
    held_out: bool,
    generated: bool,
    /// Of a suite: the tests that did not come to what they should, as far as that can be told.
    fallen: Option<Vec<String>>,
}

impl Missed {
    /// The case of a witness, and what the session reported of it.
    pub fn of(witness: &Witness, case: usize, observation: Observation) -> Self {
        Self {
            case: witness.cases()[case].clone(),
            public: witness.is_public(),
            held_out: witness.is_held_out(case),
            generated: witness.is_generated(case),
            fallen: witness.tests().map(|_| witness.fallen(case, &observation)),
            observation,
        }
    }

    /// What it is refused with. An answer that differs from the baseline's has a code of its own, and of
    /// a public witness the input is said, which stands in no file.
    pub(crate) fn refusal(&self, refused: CertifierError) -> Refusal {
        if let Some(fallen) = &self.fallen {
            let id = escape(&self.case.id, 80);
            let failed = CertifierCode::SuiteFailed.refuse(match fallen.len() {
                0 => format!(
                    "{id}: it did not run its tests to the end, or printed among their results"
                ),
                fallen => format!("{id}: {}", counted(fallen, "test")),
            });
            return Refusal::from(failed).with_notes(fallen.iter().cloned());
        }
        let what = match refused.code {
            CertifierCode::CaseStdoutMismatch if self.generated => "standard output",
            CertifierCode::CaseExitMismatch if self.generated => "exit status",
            _ => return refused.into(),
        };
        let id = escape(&self.case.id, 80);
        let differs = CertifierCode::UndeclaredDifference.refuse(format_args!("case {id}: {what}"));
        let input = self.public.then(|| input(&self.case));
        Refusal::from(differs).with_notes(input)
    }
}

impl Feedback {
    /// What is told of a missed case, in lines; empty where nothing more is told.
    pub fn of(self, missed: &Missed) -> String {
        let shown = match self {
            Self::CheckOnly => false,
            Self::OwnOutput => missed.public,
            Self::Full => !missed.held_out,
        };
        if !shown {
            return String::new();
        }
        // Writing to a String cannot fail.
        let mut told = String::new();
        if missed.generated {
            let _ = writeln!(told, "{}", input(&missed.case));
        }
        told.push_str(&answered(&missed.case, &missed.observation));
        if self == Self::Full {
            for (what, text) in expectations(&missed.case.expect) {
                let _ = writeln!(told, "Expected {what}: {text}");
            }
        }
        told
    }
}

fn input(case: &Case) -> String {
    let args: Vec<String> = case.args.iter().map(|arg| escape(arg, MAX_SHOWN)).collect();
    let stdin = escape(&case.stdin[..], MAX_SHOWN);
    format!("input: arguments {args:?}, standard input \"{stdin}\"")
}

/// What a case that was missed came to, for the owner of its witness: all of it, in one line.
pub fn to_owner(case: &Case, observation: &Observation) -> String {
    let mut told = format!("the program ended by {}", ending(&observation.ending));
    for (what, text) in streams(observation) {
        if !text.is_empty() {
            let _ = write!(told, "; its {what}: {text}");
        }
    }
    for (what, text) in expectations(&case.expect) {
        let _ = write!(told, "; expected {what}: {text}");
    }
    told
}

fn answered(case: &Case, observation: &Observation) -> String {
    let (case, ending) = (escape(&case.id, 80), ending(&observation.ending));
    let mut told = format!("Case {case}: your program ended by {ending}.\n");
    for (what, text) in streams(observation) {
        let _ = writeln!(told, "Its {what}: {text}");
    }
    told
}

fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Exited { code } => format!("exit status {code}"),
        Ending::Signaled { signal } => format!("signal {signal}"),
        Ending::ForbiddenCall => "a call that no case may make".to_owned(),
        Ending::TimedOut => "the end of its time".to_owned(),
        Ending::OutputLimit | Ending::ProcessLimit | Ending::MemoryLimit => {
            "a limit of the session".to_owned()
        }
    }
}

fn streams(observation: &Observation) -> [(&'static str, String); 2] {
    [
        (
            "standard output",
            escape(&observation.stdout[..], MAX_SHOWN),
        ),
        ("standard error", escape(&observation.stderr[..], MAX_SHOWN)),
    ]
}

fn expectations(expect: &Expect) -> Vec<(&'static str, String)> {
    let texts = [
        ("as standard output", expect.stdout.as_ref()),
        (
            "as a part of standard error",
            expect.stderr_contains.as_ref(),
        ),
    ];
    let texts = texts.into_iter().filter_map(|(what, text)| {
        let text = escape(&text?[..], MAX_SHOWN);
        Some((what, text))
    });
    let exit = ("exit status", expect.exit.to_string());
    let json = expect.stdout_json.as_ref();
    let json = json.map(|json| {
        (
            "as standard output, as JSON",
            escape(json.to_string(), MAX_SHOWN),
        )
    });
    [exit].into_iter().chain(texts).chain(json).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_core::Bytes;

    const SECRET: &str = "the-answer";
    const ANSWER: &str = "my-own-words";

    fn witness(public: bool, cases: usize) -> Witness {
        let case = |n: usize| {
            serde_json::json!({"id": format!("case-{n}"), "expect":
                {"exit": 0, "stdout": format!("{SECRET}-{n}"), "stderr_contains": "secret-note"}})
        };
        let cases: Vec<_> = (0..cases).map(case).collect();
        let file = serde_json::json!({"schema": "flightproof/witness/1", "bin": "p",
            "public": public, "cases": cases, "waivers": []});
        Witness::parse(file.to_string().as_bytes()).unwrap()
    }

    fn told(feedback: Feedback, witness: &Witness, case: usize) -> String {
        let observation = Observation {
            ending: Ending::Exited { code: 3 },
            stdout: Bytes(ANSWER.as_bytes().to_vec()),
            stderr: Bytes(b"\x1b[31mred".to_vec()),
            complete: true,
            armed: false,
        };
        feedback.of(&Missed::of(witness, case, observation))
    }

    #[test]
    fn an_expected_value_is_told_only_where_the_policy_is_full_and_the_case_is_not_held_out() {
        for (public, cases) in [(false, 2), (false, 3), (false, 9), (false, 10), (true, 9)] {
            let witness = witness(public, cases);
            let mut held = 0;
            for case in 0..cases {
                let held_out = witness.is_held_out(case);
                held += usize::from(held_out);
                for feedback in [Feedback::CheckOnly, Feedback::OwnOutput, Feedback::Full] {
                    let text = told(feedback, &witness, case);
                    let full = feedback == Feedback::Full && !held_out;
                    let own = full || (feedback == Feedback::OwnOutput && public);
                    assert_eq!(text.contains(SECRET), full, "{text}");
                    assert_eq!(text.contains("secret-note"), full, "{text}");
                    assert_eq!(text.contains(ANSWER), own, "{text}");
                    assert_eq!(text.contains(&format!("case-{case}")), own, "{text}");
                    assert_eq!(text.is_empty(), !own, "{text}");
                    assert!(!text.contains('\x1b'), "{text}");
                }
            }
            let expected = if public { 0 } else { cases.div_ceil(3) };
            assert_eq!(held, expected, "{cases}");
        }
    }

    #[test]
    fn the_owner_is_told_in_one_line_without_empty_parts() {
        let mut observation = Observation {
            ending: Ending::Exited { code: 0 },
            stdout: Bytes(b"5400\n".to_vec()),
            stderr: Bytes(Vec::new()),
            complete: true,
            armed: false,
        };
        let mut case = witness(true, 2).cases()[0].clone();
        case.expect.stderr_contains = None;
        let told = to_owner(&case, &observation);
        assert_eq!(
            told,
            "the program ended by exit status 0; its standard output: 5400\\n; expected exit status: 0; \
             expected as standard output: the-answer-0"
        );
        observation.stderr = Bytes(b"warning\n".to_vec());
        let told = to_owner(&case, &observation);
        assert!(
            told.contains("; its standard error: warning\\n; "),
            "{told}"
        );
    }

    #[test]
    fn which_cases_are_held_out_stays_over_attempts_and_cannot_be_known_from_their_names() {
        let held = |witness: &Witness| -> Vec<usize> {
            (0..30).filter(|n| witness.is_held_out(*n)).collect()
        };
        let (one, other) = (witness(false, 30), witness(false, 31));
        assert_eq!(held(&one), held(&witness(false, 30)));
        assert_ne!(held(&one), held(&other));
    }
}
