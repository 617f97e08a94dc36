use crate::proxy::Endpoint;
use crate::{AgentCode, AgentRefusal, Instructions, Limits, Metering, Profile, Task};
use flightproof_core::escape;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// The agent's part of a plan, the table `[agent]`: what to do and with what. It may ask for less
/// than the operator allows, never for more.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// A built-in profile, or the name of an operator's.
    pub profile: String,
    /// The task.
    #[serde(default)]
    pub task: String,
    /// A file with the task in place of it. Its text is the task, whatever it says.
    #[serde(default)]
    pub task_file: Option<PathBuf>,
    /// The model, exactly.
    pub model: String,
    /// Tools the agent may use without asking; there is nobody to ask.
    #[serde(default)]
    pub tools: BTreeSet<String>,
    /// `unmetered` runs a program that reports no cost.
    #[serde(default = "metered")]
    pub metering: Metering,
    /// Dollars, as text; at most the operator's.
    #[serde(default)]
    pub budget_usd: Option<String>,
    /// Turns; at most the operator's.
    #[serde(default)]
    pub max_turns: Option<u32>,
    /// How often to propose; 1 to 16, 2 if not said.
    #[serde(default = "two")]
    pub attempts: NonZeroU32,
    /// Provider endpoints, `METHOD host/path/prefix`, all of one host. None: the session has no way
    /// out at all.
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// The program needs no provider: there are no endpoints, and that is meant.
    #[serde(default)]
    pub offline: bool,
    /// Most provider requests of one attempt.
    #[serde(default = "requests")]
    pub max_requests: NonZeroU32,
    /// Whether the repository's `AGENTS.md` and `CLAUDE.md` are handed over.
    #[serde(default = "yes")]
    pub instructions: bool,
}

/// Most attempts: whoever fails sixteen times needs another task.
pub(crate) const MAX_ATTEMPTS: u32 = 16;
/// Most bytes of an order.
const MAX_BYTES: usize = 256 << 10;

fn metered() -> Metering {
    Metering::Metered
}

fn two() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(1)
}

fn requests() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(499)
}

fn yes() -> bool {
    true
}

impl Order {
    /// Reads the table from TOML.
    ///
    /// # Errors
    /// `ORDER_INVALID`
    pub fn read(text: &str) -> Result<Self, AgentRefusal> {
        if text.len() > MAX_BYTES {
            return Err(AgentCode::OrderInvalid.refuse(format!("{} bytes", text.len())));
        }
        toml::from_str(text).map_err(|e| AgentCode::OrderInvalid.refuse(e.message().to_owned()))
    }

    /// Holds the order against the operator's limits and the profile, before any money is held.
    ///
    /// # Errors
    /// `LIMIT_WIDENED`, `LIMIT_INVALID`, `TASK_UNFIT`, `ACCOUNTING_UNSUPPORTED`; `PLAN_HOPELESS`
    /// if it could never succeed.
    pub fn admit(&self, profile: &Profile, operator: &Limits) -> Result<Limits, AgentRefusal> {
        let hopeless = |what: String| AgentCode::PlanHopeless.refuse(what);
        if self.profile != profile.name() {
            return Err(hopeless(format!(
                "no profile {}",
                escape(&self.profile, 60)
            )));
        }
        if self.attempts.get() > MAX_ATTEMPTS {
            let detail = format!("{} attempts, at most {MAX_ATTEMPTS}", self.attempts);
            return Err(AgentCode::LimitWidened.refuse(detail));
        }
        if !profile.reports_cost() && self.metering == Metering::Metered {
            let detail = format!("{} reports no cost", profile.name());
            return Err(AgentCode::AccountingUnsupported.refuse(detail));
        }
        if !profile.reports_cost() && operator.metering() == Metering::Metered {
            return Err(AgentCode::AccountingUnsupported
                .refuse("the operator's limits do not allow an unmetered run"));
        }
        self.admit_endpoints(profile)?;
        let task = Task {
            text: &self.task,
            model: &self.model,
            tools: &self.tools,
            instructions: &Instructions::default(),
            feedback: None,
        };
        task.check(profile)?;
        operator.narrowed(self.budget_usd.as_deref(), self.max_turns)
    }

    fn admit_endpoints(&self, profile: &Profile) -> Result<(), AgentRefusal> {
        let hopeless = |what: String| AgentCode::PlanHopeless.refuse(what);
        let endpoints = self.read_endpoints()?;
        let Some(first) = endpoints.first() else {
            return match self.offline {
                true => Ok(()),
                false => Err(hopeless(
                    "no endpoint: the program cannot reach a model".to_owned(),
                )),
            };
        };
        if self.offline {
            return Err(AgentCode::OrderInvalid.refuse("offline, and endpoints"));
        }
        if endpoints.iter().any(|e| e.host() != first.host()) {
            return Err(hopeless(
                "endpoints of several hosts: a program knows one provider".to_owned(),
            ));
        }
        match profile.provider() {
            Some(_) => Ok(()),
            None => Err(hopeless(format!(
                "endpoints: {} cannot be told where its provider is",
                profile.name()
            ))),
        }
    }

    /// The endpoints, read.
    ///
    /// # Errors
    /// `ORDER_INVALID`
    pub fn read_endpoints(&self) -> Result<Vec<Endpoint>, AgentRefusal> {
        self.endpoints.iter().map(|e| Endpoint::read(e)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        profile = "claude"
        task = "Make the tests pass."
        model = "claude-opus-5"
        tools = ["Bash", "Edit", "Read"]
        budget_usd = "2.50"
        max_turns = 20
        endpoints = ["POST api.anthropic.com/v1/messages"]
    "#;

    fn admitted(from: &str, to: &str) -> Result<Limits, AgentCode> {
        assert!(GOOD.contains(from), "{from}");
        let order = Order::read(&GOOD.replacen(from, to, 1)).map_err(|e| e.code)?;
        let operator = Limits::parse("10", "50", Metering::Metered).unwrap();
        let profile = Profile::built_in("claude").unwrap();
        order.admit(&profile, &operator).map_err(|e| e.code)
    }

    #[test]
    fn an_order_narrows_what_the_operator_allows() {
        let limits = admitted("", "").unwrap();
        assert_eq!(
            (limits.budget().to_string(), limits.turns()),
            ("2.5".to_owned(), 20)
        );
    }

    #[test]
    fn a_program_without_a_provider_is_chosen_and_not_forgotten() {
        let offline = "offline = true";
        let endpoints = "endpoints = [\"POST api.anthropic.com/v1/messages\"]";
        assert!(admitted(endpoints, offline).is_ok());
        assert_eq!(admitted(endpoints, ""), Err(AgentCode::PlanHopeless));
    }

    #[test]
    fn an_order_that_asks_for_more_or_for_nothing_sensible_is_refused() {
        use AgentCode::{LimitInvalid, LimitWidened, OrderInvalid, PlanHopeless, TaskUnfit};
        for (from, to, code) in [
            ("\"2.50\"", "\"10.01\"", LimitWidened),
            ("\"2.50\"", "\"1e1\"", LimitInvalid),
            ("\"2.50\"", "2.50", OrderInvalid),
            ("max_turns = 20", "max_turns = 51", LimitWidened),
            ("max_turns = 20", "max_turns = 0", LimitInvalid),
            ("max_turns = 20", "max_turns = -1", OrderInvalid),
            ("max_turns = 20", "attempts = 17", LimitWidened),
            ("max_turns = 20", "attempts = 0", OrderInvalid),
            ("max_turns = 20", "env = { A = \"b\" }", OrderInvalid),
            ("Make the tests pass.", " ", TaskUnfit),
            ("Make the tests pass.", "a\\u0000b", TaskUnfit),
            ("claude-opus-5", "gpt-5", PlanHopeless),
            ("\"claude\"", "\"codex\"", PlanHopeless),
            ("\"Bash\"", "\"Agent\"", PlanHopeless),
            ("\"Bash\"", "\"WebFetch\"", PlanHopeless),
            ("[\"Bash\", \"Edit\", \"Read\"]", "[]", PlanHopeless),
            (
                "[\"POST api.anthropic.com/v1/messages\"]",
                "[]",
                PlanHopeless,
            ),
            (
                "POST api.anthropic.com/v1/messages",
                "anything",
                OrderInvalid,
            ),
            (
                "\"POST api.anthropic.com/v1/messages\"",
                "\"POST a.example.com/v1\", \"POST b.example.com/v1\"",
                PlanHopeless,
            ),
            ("max_turns = 20", "offline = true", OrderInvalid),
        ] {
            assert_eq!(admitted(from, to), Err(code), "{from} -> {to}");
        }
        let long = format!("task = \"{}\"", "x".repeat(MAX_BYTES));
        assert!(Order::read(&long).is_err());
    }

    #[test]
    fn a_model_that_is_not_there_is_answered_with_those_that_are() {
        let text = "profile = \"claude\"\ntask = \"x\"\nmodel = \"gpt-9\"\noffline = true\ntools = [\"Bash\"]";
        let claude = Profile::built_in("claude").unwrap();
        let limits = Limits::parse("10", "50", Metering::Metered).unwrap();
        let refused = Order::read(text).unwrap().admit(&claude, &limits);
        let models = claude.models();
        assert!(models.len() > 1);
        assert_eq!(
            refused.map(drop).map_err(|refused| refused.detail),
            Err(format!("model gpt-9; claude may use {}", models.join(", ")))
        );
    }

    #[test]
    fn an_unmetered_program_runs_only_where_both_sides_chose_that() {
        let order = |metering: &str| {
            let text = format!(
                "profile = \"codex\"\ntask = \"x\"\nmodel = \"gpt-5-codex\"\n\
                 metering = \"{metering}\"\noffline = true"
            );
            Order::read(&text).unwrap()
        };
        let codex = Profile::built_in("codex").unwrap();
        let limits = |metering| Limits::parse("10", "50", metering).unwrap();
        let admit = |plan: &str, operator| {
            let admitted = order(plan).admit(&codex, &limits(operator));
            admitted.map(drop).map_err(|e| e.code)
        };
        let refused = Err(AgentCode::AccountingUnsupported);
        assert_eq!(admit("unmetered", Metering::Unmetered), Ok(()));
        let mut online = order("unmetered");
        (online.offline, online.endpoints) = (false, vec!["POST api.openai.com/v1".to_owned()]);
        let unknown = online.admit(&codex, &limits(Metering::Unmetered));
        let hopeless = Err(AgentCode::PlanHopeless);
        assert_eq!(unknown.map(drop).map_err(|e| e.code), hopeless);
        assert_eq!(admit("metered", Metering::Unmetered), refused);
        assert_eq!(admit("unmetered", Metering::Metered), refused);
    }
}
