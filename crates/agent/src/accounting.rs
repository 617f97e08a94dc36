//! What a run has cost, read from its terminal result: once, strictly, exactly.

mod claude;
pub(crate) mod envelope;

use crate::{
    AgentCode, AgentError, Ending, Format, HoldEffect, Limits, Metering, Output, Profile, RunKey,
    unmetered,
};
use flightproof_core::MicroUsd;
use serde::{Deserialize, Serialize};

/// Most bytes of a result. The text of an answer is in it: 128,000 tokens are half a megabyte.
pub(crate) const MAX_RESULT: usize = 4 << 20;

/// The accounting of one successful run. Bounded numbers, and names the profile lists; nothing of
/// what the agent wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounting {
    /// The profile's name.
    pub profile: String,
    /// What is settled.
    pub spend: Spend,
    /// Turns as reported, 1 up to the limit; absent where the program reports none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<u32>,
    /// All tokens together.
    pub tokens: Tokens,
    /// The same by model, ordered by name; empty where the program does not say.
    pub models: Vec<ModelUse>,
}

/// What is settled for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Spend {
    /// The program's own estimate, rounded up. The provider's invoice may differ.
    Estimated {
        /// Micro-dollars, at most the budget.
        cost: MicroUsd,
    },
    /// The program reports no cost: the whole hold.
    Unmetered {
        /// Micro-dollars.
        hold: MicroUsd,
    },
}

impl Spend {
    /// The amount in micro-dollars.
    pub fn amount(self) -> MicroUsd {
        match self {
            Self::Estimated { cost } => cost,
            Self::Unmetered { hold } => hold,
        }
    }
}

/// Counts of tokens, each at most 2^53 - 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Read as input.
    pub input: u64,
    /// Written as output.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Written to the provider's cache.
    pub cache_written: u64,
}

impl Tokens {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_written: self.cache_written.saturating_add(other.cache_written),
        }
    }
}

/// What one model was used for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelUse {
    /// A name that the profile lists.
    pub model: String,
    /// Its tokens.
    pub tokens: Tokens,
    /// Its share of the cost, rounded up: the shares may add up to a little more than the total.
    pub cost: MicroUsd,
}

/// Reads the terminal result of a run: `bytes` are everything the program printed.
///
/// # Errors
/// The first rule that is broken, and what becomes of the hold. Never text of the result.
pub fn check_result(
    bytes: &[u8],
    profile: &Profile,
    limits: &Limits,
) -> Result<Accounting, AgentError> {
    judge(bytes, profile, limits, None)
}

/// Reads the outcome of a run from all its signs: its output, how its process ended, the session
/// it was started as, and how many requests went through the proxy (if there was one). All must
/// agree before the run counts.
///
/// # Errors
/// As [`check_result`]; and where a result is good but another sign is not, the cost it reports is
/// settled all the same. Not so where the session was lost, more was printed than is read, or no request
/// went through the proxy: the hold is kept then.
pub fn check_run(
    output: &Output,
    run: &RunKey,
    requests: Option<u64>,
    profile: &Profile,
    limits: &Limits,
) -> Result<Accounting, AgentError> {
    if output.overflow {
        return Err(keep(AgentCode::OutputOverflow, "more than was read"));
    }
    let result = judge(&output.stdout, profile, limits, Some(run));
    let result = with_ending(result, output.ending)?;
    if requests == Some(0) {
        return Err(keep(
            AgentCode::ProxyDisagrees,
            format!("{} tokens without a request", result.tokens.output),
        ));
    }
    Ok(result)
}

fn judge(
    bytes: &[u8],
    profile: &Profile,
    limits: &Limits,
    run: Option<&RunKey>,
) -> Result<Accounting, AgentError> {
    match (profile.format(), limits.metering()) {
        (Format::ClaudeJson, _) => claude::read(bytes, profile, limits, run),
        (_, Metering::Metered) => Err(keep(
            AgentCode::AccountingUnsupported,
            format!("{} reports no cost", profile.name()),
        )),
        (Format::CodexEvents, Metering::Unmetered) => unmetered::codex(bytes, profile, limits),
        (Format::GeminiJson, Metering::Unmetered) => unmetered::gemini(bytes, profile, limits),
    }
}

/// The verdict on a result together with how its process ended. A bad result stays what it is
/// whatever the exit status; the exit status alone never makes one good. Of a session that was lost
/// nothing is believed.
fn with_ending(
    result: Result<Accounting, AgentError>,
    ending: Ending,
) -> Result<Accounting, AgentError> {
    let settle = |accounting: &Accounting| HoldEffect::Settle(accounting.spend.amount());
    let disagree = |code: AgentCode, detail: String, hold| AgentError {
        refused: code.refuse(detail),
        hold,
    };
    match (ending, result) {
        (Ending::Lost, _) => Err(keep(
            AgentCode::Interrupted,
            "its session ended before the program did",
        )),
        (Ending::Exited(0), result) => result,
        (Ending::Exited(status), Ok(good)) => Err(disagree(
            AgentCode::ExitDisagrees,
            format!("success, and exit status {status}"),
            settle(&good),
        )),
        (Ending::Exited(_), Err(bad)) => Err(bad),
        (Ending::Signalled(signal), Ok(good)) => Err(disagree(
            AgentCode::Signalled,
            format!("success, and signal {signal}"),
            settle(&good),
        )),
        (Ending::Signalled(signal), Err(bad)) => Err(disagree(
            AgentCode::Signalled,
            format!("signal {signal}; {}", bad.refused),
            bad.hold,
        )),
        (Ending::Overdue, Ok(good)) => Err(disagree(
            AgentCode::NeverExited,
            "success, and still running at the deadline".to_owned(),
            settle(&good),
        )),
        (Ending::Overdue, Err(bad)) => Err(disagree(
            AgentCode::DeadlinePassed,
            bad.refused.to_string(),
            bad.hold,
        )),
    }
}

/// A refusal after which the cost is unknown.
pub(crate) fn keep(code: AgentCode, detail: impl std::fmt::Display) -> AgentError {
    AgentError {
        refused: code.refuse(detail),
        hold: HoldEffect::Keep,
    }
}
