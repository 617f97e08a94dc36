//! What the author of a refused commit is told of the case it missed.

use crate::witness::{Case, Expect, Witness};
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Refusal, escape};
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
                count => format!("{id}: {count} tests"),
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
        let mut told = String::new();
        if missed.generated {
            let _ = writeln!(told, "{}", input(&missed.case));
        }
        told.push_str(&answered(&missed.case, &missed.observation));
        if self == Self::Full {
            expected(&missed.case.expect, &mut told);
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
    let mut told = came_to("the program", observation);
    expected(&case.expect, &mut told);
    told.trim_end().replace('\n', "; ")
}

fn answered(case: &Case, observation: &Observation) -> String {
    let told = came_to("your program", observation);
    format!("Case {}: {told}", escape(&case.id, 80))
}

fn came_to(who: &str, observation: &Observation) -> String {
    let ending = match &observation.ending {
        Ending::Exited { code } => format!("exit status {code}"),
        Ending::Signaled { signal } => format!("signal {signal}"),
        Ending::ForbiddenCall => "a call that no case may make".to_owned(),
        Ending::TimedOut => "the end of its time".to_owned(),
        Ending::OutputLimit | Ending::ProcessLimit | Ending::MemoryLimit => {
            "a limit of the session".to_owned()
        }
    };
    format!(
        "{who} ended by {ending}.\nIts standard output: {}\nIts standard error: {}\n",
        escape(&observation.stdout[..], MAX_SHOWN),
        escape(&observation.stderr[..], MAX_SHOWN)
    )
}

/// Writing to a String cannot fail.
fn expected(expect: &Expect, told: &mut String) {
    let _ = writeln!(told, "Expected: exit status {}", expect.exit);
    let texts = [
        ("standard output", expect.stdout.as_ref()),
        ("a part of standard error", expect.stderr_contains.as_ref()),
    ];
    for (what, text) in texts {
        if let Some(text) = text {
            let text = escape(&text[..], MAX_SHOWN);
            let _ = writeln!(told, "Expected as {what}: {text}");
        }
    }
    if let Some(json) = &expect.stdout_json {
        let text = escape(json.to_string(), MAX_SHOWN);
        let _ = writeln!(told, "Expected as standard output, as JSON: {text}");
    }
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
    fn which_cases_are_held_out_stays_over_attempts_and_cannot_be_known_from_their_names() {
        let held = |witness: &Witness| -> Vec<usize> {
            (0..30).filter(|n| witness.is_held_out(*n)).collect()
        };
        let (one, other) = (witness(false, 30), witness(false, 31));
        assert_eq!(held(&one), held(&witness(false, 30)));
        assert_ne!(held(&one), held(&other));
    }
}
