//! Plans of agents: what is worked on, by which program, within which limits, judged by what. TOML,
//! described in `docs/agent.md`.

use crate::plan::{PlanChange, PlanWitness, is_plain_name, misread, too_new};
use crate::{FlightsCode, near, regular};
use flightproof_agent::{Limits, Metering, Order, Patience};
use flightproof_certifier::feedback::Feedback;
use flightproof_certifier::generated::GeneratedRule;
use flightproof_core::{Digest, Refusal, Refused};
use flightproof_frame::protocol::AGENT_GRACE_MS;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The schema name of version 1.
pub const AGENT_PLAN_SCHEMA: &str = "flightproof/agent-plan/1";

/// Largest plan file in bytes: a task of 64 KiB and what belongs to it.
const MAX_PLAN_BYTES: u64 = 256 << 10;
/// Largest task file in bytes; the agent's own limit is checked after.
const MAX_TASK_BYTES: u64 = 64 << 10;
/// Longest run in seconds: with laying out and capture it fits the hour of a session.
const MAX_WALL_SECONDS: u64 = 3_000;

/// One agent's flight.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPlan {
    /// [`AGENT_PLAN_SCHEMA`].
    pub schema: String,
    /// Equal to the file's stem.
    pub name: String,
    /// One sentence: what this flight is for.
    pub about: String,
    /// What is worked on.
    pub source: AgentSource,
    /// What the change may be.
    #[serde(default)]
    pub change: PlanChange,
    /// How generated files of the tree are made.
    #[serde(default)]
    pub generated: Vec<GeneratedRule>,
    /// The task, and with what. It may narrow the limits and never widen them.
    pub agent: Order,
    /// The agent's program.
    pub program: ProgramFile,
    /// What one attempt may use.
    pub limits: PlanLimits,
    /// What judges the commit.
    pub witness: PlanWitness,
    /// How much the agent is told of a case that its commit missed.
    #[serde(default)]
    pub feedback: Feedback,
    /// What its certificate must satisfy.
    pub policy: PolicyFile,
    /// What must come of the flight, for a flight that shows something.
    #[serde(default)]
    pub expect: Option<AgentExpectation>,
}

/// What is worked on. Exactly one table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AgentSource {
    /// A commit of a repository.
    Git {
        /// Directory of the repository.
        repository: PathBuf,
        /// The commit.
        baseline: String,
    },
    /// A directory, which becomes a commit.
    Tree {
        /// The directory.
        baseline: PathBuf,
    },
}

/// One program, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramFile {
    /// Where it lies.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha256: Digest,
}

/// What one attempt may use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanLimits {
    /// US dollars, as text.
    pub budget_usd: String,
    /// Turns.
    pub max_turns: u32,
    /// Seconds until the program is interrupted.
    #[serde(default = "half_an_hour")]
    pub wall_seconds: u64,
    /// `unmetered` lets a program run that reports no cost.
    #[serde(default = "metered")]
    pub metering: Metering,
}

/// A policy by its file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    /// The file.
    pub file: PathBuf,
}

/// What must come of a flight.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentExpectation {
    /// How many attempts are made.
    pub attempts: usize,
    /// The code of the refusal; absent: the commit is certified.
    #[serde(default)]
    pub code: Option<String>,
    /// The code of the last attempt.
    #[serde(default)]
    pub last: Option<String>,
}

fn half_an_hour() -> u64 {
    1_800
}

fn metered() -> Metering {
    Metering::Metered
}

impl AgentPlan {
    /// Reads a plan file, and the task it names below `root`.
    ///
    /// # Errors
    /// `PLAN_UNREADABLE` if there is no such file, `PLAN_INVALID` if it breaks the schema, `PLAN_TOO_NEW`.
    pub fn read(path: &Path, root: &Path) -> Result<Self, Refused<FlightsCode>> {
        let text = read_small(path, MAX_PLAN_BYTES)?;
        let invalid =
            |what: String| FlightsCode::PlanInvalid.refuse(format!("{}: {what}", path.display()));
        let refused =
            |what: String| too_new(path, &text, AGENT_PLAN_SCHEMA).unwrap_or_else(|| invalid(what));
        let mut plan: Self = toml::from_str(&text).map_err(|e| refused(misread(&text, &e)))?;
        plan.fault(path).map_or(Ok(()), |what| Err(refused(what)))?;
        plan.operator_limits().map_err(|e| invalid(e.detail))?;
        match (plan.agent.task.is_empty(), plan.agent.task_file.take()) {
            (false, None) => {}
            (true, Some(file)) => {
                plan.agent.task = read_small(&root.join(file), MAX_TASK_BYTES)?;
            }
            _ => return Err(invalid("agent: one of task and task_file".to_owned())),
        }
        Ok(plan)
    }

    fn fault(&self, path: &Path) -> Option<String> {
        if self.schema != AGENT_PLAN_SCHEMA {
            return Some(format!(
                "schema is {:?}, expected {AGENT_PLAN_SCHEMA:?}",
                self.schema
            ));
        }
        if path.file_stem().and_then(|s| s.to_str()) != Some(&self.name)
            || !is_plain_name(&self.name)
        {
            return Some(format!(
                "name {:?} is not the file's stem in plain characters",
                self.name
            ));
        }
        let wall = self.limits.wall_seconds;
        (!(1..=MAX_WALL_SECONDS).contains(&wall))
            .then(|| format!("limits: wall_seconds is {wall}, expected 1 to {MAX_WALL_SECONDS}"))
    }

    /// What the operator allows.
    ///
    /// # Errors
    /// `PLAN_INVALID`
    pub fn operator_limits(&self) -> Result<Limits, Refusal> {
        let PlanLimits {
            budget_usd,
            max_turns,
            metering,
            ..
        } = &self.limits;
        Limits::parse(budget_usd, &max_turns.to_string(), *metering).map_err(|e| {
            FlightsCode::PlanInvalid
                .refuse(format!("limits: {}", e.detail))
                .into()
        })
    }

    /// How long the program is waited for.
    pub fn patience(&self) -> Patience {
        Patience {
            wall: Duration::from_secs(self.limits.wall_seconds),
            grace: Duration::from_millis(AGENT_GRACE_MS),
        }
    }
}

fn read_small(path: &Path, most: u64) -> Result<String, Refused<FlightsCode>> {
    let shown = path.display();
    regular::read_text(path, most).map_err(|e| match e.kind() {
        std::io::ErrorKind::FileTooLarge => {
            FlightsCode::PlanInvalid.refuse(format!("{shown}: {e}"))
        }
        _ => FlightsCode::PlanUnreadable.refuse(near::unread(path, &e)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
schema = "flightproof/agent-plan/1"
name = "a-plan"
about = "It shows a plan."
[source]
git = { repository = ".", baseline = "main" }
[agent]
profile = "claude"
model = "claude-opus-5"
task = "Make the tests pass."
tools = ["Edit"]
endpoints = ["POST api.anthropic.com/v1/messages"]
[program]
path = "/opt/claude"
sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
[limits]
budget_usd = "2.50"
max_turns = 20
[witness]
file = "w.json"
[policy]
file = "p.json"
"#;

    fn read(text: &str) -> Result<AgentPlan, Refused<FlightsCode>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a-plan.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::write(dir.path().join("task.txt"), "budget_usd = \"1000\"\n").unwrap();
        AgentPlan::read(&path, dir.path())
    }

    #[test]
    fn a_plan_names_program_limits_task_and_judge() {
        let plan = read(GOOD).unwrap();
        assert_eq!(plan.patience().wall, Duration::from_secs(1_800));
        let limits = plan.operator_limits().unwrap();
        assert_eq!((limits.budget().micros(), limits.turns()), (2_500_000, 20));
    }

    #[test]
    fn a_task_file_is_text_and_changes_no_limit() {
        let text = GOOD.replace(
            "task = \"Make the tests pass.\"",
            "task_file = \"task.txt\"",
        );
        let plan = read(&text).unwrap();
        assert_eq!(plan.agent.task, "budget_usd = \"1000\"\n");
        assert_eq!(plan.operator_limits().unwrap().budget().micros(), 2_500_000);
    }

    #[test]
    fn what_a_plan_does_not_know_is_refused() {
        for (from, to) in [
            ("plan/1", "plan/0"),
            ("name = \"a-plan\"", "name = \"b-plan\""),
            ("max_turns = 20", "max_turns = 20\nmax_usd = 1000"),
            ("max_turns = 20", "max_turns = 20\nwall_seconds = 3001"),
            ("max_turns = 20", "max_turns = 20\nwall_seconds = 0"),
            ("\"2.50\"", "2.5"),
            ("sha256 = \"e3", "sha256 = \"x3"),
            ("task = \"Make", "task_file = \"task.txt\"\ntask = \"Make"),
            ("task = \"Make the tests pass.\"", ""),
            ("git = {", "tree = { baseline = \"b\" }\ngit = {"),
            ("[policy]\nfile = \"p.json\"", ""),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let code = read(&GOOD.replace(from, to)).unwrap_err().code;
            assert_eq!(code, FlightsCode::PlanInvalid, "{to}");
        }
        let missing = GOOD.replace("task = \"Make the tests pass.\"", "task_file = \"no\"");
        let code = read(&missing).unwrap_err().code;
        assert_eq!(code, FlightsCode::PlanUnreadable);
    }
}
