//! What the author of a refused commit is told of the case it missed.

use crate::witness::{Case, Expect, Witness};
use flightproof_core::escape;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// Its place in the witness, from 0.
    pub case: usize,
    /// What the session reported of it.
    pub observation: Observation,
}

impl Feedback {
    /// What is told of a missed case, in lines; empty where nothing more is told.
    pub fn of(self, missed: &Missed, witness: &Witness) -> String {
        let Some(case) = witness.cases().get(missed.case) else {
            return String::new();
        };
        let shown = match self {
            Self::CheckOnly => false,
            Self::OwnOutput => witness.is_public(),
            Self::Full => !witness.is_held_out(missed.case),
        };
        if !shown {
            return String::new();
        }
        let mut told = answered(case, &missed.observation);
        if self == Self::Full {
            expected(&case.expect, &mut told);
        }
        told
    }
}

fn answered(case: &Case, observation: &Observation) -> String {
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
        "Case {}: your program ended by {ending}.\nIts standard output: {}\nIts standard error: {}\n",
        escape(&case.id, 80),
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
        feedback.of(&Missed { case, observation }, witness)
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
