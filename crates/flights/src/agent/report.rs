//! What came of an agent's flight, for people and programs.

use flightproof_agent::{RunKey, Tokens};
use flightproof_core::{CommitId, Digest, Exit, MicroUsd, Verdict};
use serde::Serialize;

/// The schema name of [`Report`].
const SCHEMA: &str = "flightproof/agent/1";

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptReport {
    /// From 1.
    pub number: u32,
    /// Its run, which is the name of its hold.
    pub run: RunKey,
    /// The program's version, if it said one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How its hold stands: `settled`, `unknown`, `released`.
    pub hold: String,
    /// What was held, micro-dollars.
    pub held: MicroUsd,
    /// What is settled, micro-dollars, an estimate; absent while nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<MicroUsd>,
    /// Turns as reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Tokens as reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Provider requests that were let through; absent without endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Provider requests that were refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_refused: Option<u64>,
    /// The commit that came out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// SHA-256 of the bundle it came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Digest>,
    /// The code of what refused it; absent for one that is certified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// What exactly was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A whole flight.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Which shape this is.
    pub agent: &'static str,
    /// The verdict, as every command says it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The loop, which is the parent of all its holds.
    #[serde(rename = "loop")]
    pub name: RunKey,
    /// The plan's name.
    pub plan: String,
    /// Every attempt that was begun.
    pub attempts: Vec<AttemptReport>,
    /// The exit status.
    #[serde(skip)]
    pub exit: Exit,
}

impl Report {
    /// A report.
    pub fn new(
        name: RunKey,
        plan: &str,
        attempts: Vec<AttemptReport>,
        (verdict, exit): (Verdict, Exit),
    ) -> Self {
        Self {
            agent: SCHEMA,
            verdict,
            name,
            plan: plan.to_owned(),
            attempts,
            exit,
        }
    }
}

impl AttemptReport {
    /// One line for people.
    pub fn line(&self) -> String {
        let money = match self.settled {
            Some(amount) => format!("{amount} USD (estimated)"),
            None => format!("{} USD {}", self.held, self.hold),
        };
        let turns = self.turns.map_or(String::new(), |n| format!(", {n} turns"));
        let requests = self
            .requests
            .map_or(String::new(), |n| format!(", {n} requests"));
        let commit = match self.commit {
            Some(commit) => format!(", commit {}", &commit.to_string()[..12]),
            None => ", no commit".to_owned(),
        };
        let came_to = match self.code {
            Some(code) => format!("refused {code}"),
            None => "certified".to_owned(),
        };
        let number = self.number;
        format!("attempt {number}  {came_to}: {money}{turns}{requests}{commit}")
    }
}
