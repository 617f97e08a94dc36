use crate::{Exit, Refusal};
use serde::{Deserialize, Serialize};

/// The schema name of [`Verdict`]. A promise: fields are added, never renamed.
pub const VERDICT_SCHEMA: &str = "flightproof/verdict/1";

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The branch moved to the candidate.
    Admitted,
    /// Certified, and waiting for somebody to let it in.
    Held,
    /// Refused, with a code.
    Refused,
    /// An input was checked and found good.
    Accepted,
}

/// The machine-readable answer of every command that decides something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Always [`VERDICT_SCHEMA`].
    pub schema: String,
    /// What was decided.
    pub verdict: Decision,
    /// The refusal code, `crate/UPPER_SNAKE`; absent unless refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether what ended it says nothing about what was to be judged: the machine, the time, or a bug
    /// of ours. Absent unless so.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stopped: bool,
    /// The stage of the flight that decided, such as `check` or `judge`.
    pub stage: String,
    /// One line for people, escaped.
    pub detail: String,
    /// What to do about a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Further lines, such as compiler diagnostics. Escaped.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// The certificate's id, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}

impl Verdict {
    /// A verdict that is no refusal.
    pub fn passed(verdict: Decision, stage: &str, detail: impl Into<String>) -> Self {
        Self {
            schema: VERDICT_SCHEMA.to_owned(),
            verdict,
            code: None,
            stopped: false,
            stage: stage.to_owned(),
            detail: detail.into(),
            hint: None,
            notes: Vec::new(),
            certificate: None,
        }
    }

    /// The verdict of a refusal at a stage.
    pub fn refused(stage: &str, refusal: &Refusal) -> Self {
        Self {
            code: Some(refusal.code().to_owned()),
            stopped: refusal.explanation.fault.stops(),
            hint: Some(refusal.explanation.todo.to_owned()),
            notes: refusal.notes.clone(),
            ..Self::passed(Decision::Refused, stage, refusal.detail.clone())
        }
    }

    /// The exit status of a verdict without a refusal behind it.
    pub fn exit(&self) -> Exit {
        match self.verdict {
            Decision::Refused => Exit::Refused,
            _ => Exit::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Explanation, Fault};

    #[test]
    fn the_json_shape_is_the_promised_one() {
        let held = Verdict::passed(Decision::Held, "certify", "held");
        assert_eq!(
            serde_json::to_string(&held).unwrap(),
            r#"{"schema":"flightproof/verdict/1","verdict":"held","stage":"certify","detail":"held"}"#
        );
    }

    #[test]
    fn a_refusal_is_told_with_code_hint_and_notes_and_ends_with_ten() {
        const WHY: Explanation = Explanation {
            code: "test/FIRST",
            fault: Fault::Input,
            happened: "it was first",
            why: "one must be",
            todo: "be second",
        };
        let refusal = Refusal {
            explanation: &WHY,
            detail: "the first".to_owned(),
            notes: vec!["of two".to_owned()],
        };
        let refused = Verdict::refused("judge", &refusal);
        assert_eq!(
            serde_json::to_string(&refused).unwrap(),
            r#"{"schema":"flightproof/verdict/1","verdict":"refused","code":"test/FIRST","stage":"judge","detail":"the first","hint":"be second","notes":["of two"]}"#
        );
        assert_eq!(refused.exit().code(), 10);
        let read: Verdict =
            serde_json::from_str(&serde_json::to_string(&refused).unwrap()).unwrap();
        assert_eq!(read, refused);
        const LACKS: Explanation = Explanation {
            fault: Fault::Environment,
            ..WHY
        };
        let stopped = Verdict::refused(
            "session",
            &Refusal {
                explanation: &LACKS,
                ..refusal
            },
        );
        assert_eq!(
            serde_json::to_string(&stopped).unwrap(),
            r#"{"schema":"flightproof/verdict/1","verdict":"refused","code":"test/FIRST","stopped":true,"stage":"session","detail":"the first","hint":"be second","notes":["of two"]}"#
        );
        for decision in [Decision::Admitted, Decision::Held, Decision::Accepted] {
            assert_eq!(Verdict::passed(decision, "x", "").exit().code(), 0);
        }
    }
}
