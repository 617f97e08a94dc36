//! The result of Claude Code, printed with `--output-format json`.
//!
//! Two questions, in this order. *What is known about the cost?* decides about the hold. *Did the
//! run end well?* decides about the run. Enumerated fields classify; text never does.

use super::envelope;
use super::{Accounting, ModelUse, Spend, Tokens, keep};
use crate::document::Json;
use crate::money::Exact;
use crate::{AgentCode, AgentError, HoldEffect, Limits, Profile, RunKey};
use flightproof_core::{MicroUsd, escape};

/// Names the total had in older versions. A reader of the wrong one reads zero.
const OLD_NAMES: [&str; 3] = ["cost_usd", "costUSD", "total_cost"];
/// Most models one run is ever billed for; recorded: two.
const MAX_MODELS: usize = 16;

/// Reads the result; `run` is the session it must belong to, if that is known.
pub(super) fn read(
    bytes: &[u8],
    profile: &Profile,
    limits: &Limits,
    run: Option<&RunKey>,
) -> Result<Accounting, AgentError> {
    let text = envelope::text(bytes)?;
    let object = envelope::object(text)?;
    let result = Claude {
        object: &object,
        profile,
        limits,
    };
    result.is_the_main_result(run)?;
    let total = result.total()?;
    let known = result.known_cost(total)?;
    result.is_a_success(known)?;
    let total = total.ok_or_else(|| keep(AgentCode::CostMissing, "no total_cost_usd"))?;
    let turns = result.turns()?;
    let models = result.models(total)?;
    let tokens = result.tokens(&models)?;
    let cost = total.ceil();
    let settle = |code: AgentCode, detail: String| settled(code, detail, Some(cost));
    if total.is_zero() {
        return Err(keep(
            AgentCode::CostZero,
            format!("{turns} turns for nothing"),
        ));
    }
    if cost > limits.budget() {
        let detail = format!("{cost} dollars, the budget is {}", limits.budget());
        return Err(settle(AgentCode::OverBudget, detail));
    }
    if turns > limits.turns() {
        let detail = format!("{turns} turns, the limit is {}", limits.turns());
        return Err(settle(AgentCode::OverTurns, detail));
    }
    result.ended_well(cost)?;
    Ok(Accounting {
        profile: profile.name().to_owned(),
        spend: Spend::Estimated { cost },
        turns: Some(turns),
        tokens,
        models,
    })
}

struct Claude<'a> {
    object: &'a Json<'a>,
    profile: &'a Profile,
    limits: &'a Limits,
}

/// A refusal that settles a known cost, and keeps the hold if there is none.
fn settled(code: AgentCode, detail: impl std::fmt::Display, known: Option<MicroUsd>) -> AgentError {
    AgentError {
        refused: code.refuse(detail),
        hold: known.map_or(HoldEffect::Keep, HoldEffect::Settle),
    }
}

impl<'a> Claude<'a> {
    fn field(&self, name: &str) -> Option<&'a Json<'a>> {
        self.object.field(name)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.field(name).and_then(Json::text)
    }

    fn is_the_main_result(&self, run: Option<&RunKey>) -> Result<(), AgentError> {
        if self.text("type") != Some("result") {
            return Err(keep(AgentCode::NotAResult, "its type is not \"result\""));
        }
        if let Some(origin) = self.field("origin") {
            let kind = origin.field("kind").and_then(Json::text);
            if kind.is_none_or(|kind| kind == "task-notification") {
                return Err(keep(AgentCode::NotMainResult, "its origin is not the task"));
            }
        }
        let session = self.text("session_id");
        match run {
            Some(run) if session != Some(run.as_str()) => Err(keep(
                AgentCode::SessionMismatch,
                format!("expected {run}, got another or none"),
            )),
            _ => Ok(()),
        }
    }

    /// The total as written: absent, or a plain decimal.
    fn total(&self) -> Result<Option<Exact>, AgentError> {
        let Json::Object(fields) = self.object else {
            return Ok(None);
        };
        // A null is no missing field: something wrote it.
        let Some(value) = fields.get("total_cost_usd") else {
            return Ok(None);
        };
        if let Some(name) = OLD_NAMES.iter().find(|name| fields.contains_key(**name)) {
            let detail = format!("total_cost_usd and {name}");
            return Err(keep(AgentCode::Contradictory, detail));
        }
        let total = Exact::read(value).map_err(|code| keep(code, "total_cost_usd"))?;
        Ok(Some(total))
    }

    /// What may be settled, whatever else the result says. A zero is what a crash leaves behind.
    /// More than the hold is an alarm of its own, in every kind of result.
    fn known_cost(&self, total: Option<Exact>) -> Result<Option<MicroUsd>, AgentError> {
        let Some(total) = total.filter(|total| !total.is_zero()) else {
            return Ok(None);
        };
        if self.has_models() {
            self.models(total)?;
        }
        let (cost, hold) = (total.ceil(), self.limits.hold_under(self.profile));
        if cost > hold {
            return Err(settled(
                AgentCode::OverHold,
                format!("{cost} dollars, the hold is {hold}"),
                Some(cost),
            ));
        }
        Ok(Some(cost))
    }

    fn has_models(&self) -> bool {
        matches!(self.field("modelUsage"), Some(Json::Object(models)) if !models.is_empty())
    }

    /// The enumerated signs: subtype first, then those that contradict it.
    fn is_a_success(&self, known: Option<MicroUsd>) -> Result<(), AgentError> {
        let failed = |code: AgentCode, what: &str| Err(settled(code, what, known));
        match self.text("subtype") {
            Some("success") => {}
            Some("error_max_budget_usd") => {
                return failed(AgentCode::BudgetExhausted, "error_max_budget_usd");
            }
            Some("error_max_turns") => {
                return failed(AgentCode::TurnsExhausted, "error_max_turns");
            }
            Some("error_during_execution") => {
                return failed(AgentCode::ExecutionFailed, "error_during_execution");
            }
            Some("error_max_structured_output_retries") => {
                return failed(AgentCode::RetriesExhausted, "structured output");
            }
            _ => return Err(keep(AgentCode::SubtypeUnknown, "none that is known")),
        }
        match self.field("is_error") {
            Some(Json::Bool(false)) => {}
            Some(Json::Bool(true)) => {
                return failed(AgentCode::ApiError, "subtype success, is_error true");
            }
            _ => return Err(keep(AgentCode::FieldInvalid, "is_error")),
        }
        if self.field("api_error_status").is_some() {
            return failed(AgentCode::Contradictory, "a success with api_error_status");
        }
        match self.field("errors") {
            None => Ok(()),
            Some(Json::List(errors)) if errors.is_empty() => Ok(()),
            Some(_) => failed(AgentCode::Contradictory, "a success with errors"),
        }
    }

    fn turns(&self) -> Result<u32, AgentError> {
        let value = self
            .field("num_turns")
            .ok_or_else(|| keep(AgentCode::TurnsMissing, "no num_turns"))?;
        let turns = value.count().and_then(|turns| u32::try_from(turns).ok());
        turns
            .filter(|turns| *turns > 0)
            .ok_or_else(|| keep(AgentCode::TurnsInvalid, "num_turns"))
    }

    /// What each model was used for. Their costs add up to the total.
    fn models(&self, total: Exact) -> Result<Vec<ModelUse>, AgentError> {
        let models = match self.field("modelUsage") {
            Some(Json::Object(models)) if !models.is_empty() => models,
            _ => return Err(keep(AgentCode::TokensMissing, "no modelUsage")),
        };
        if models.len() > MAX_MODELS {
            let detail = format!("{} models, at most {MAX_MODELS}", models.len());
            return Err(keep(AgentCode::ModelUnknown, detail));
        }
        let mut sum = Exact::default();
        let mut uses = Vec::with_capacity(models.len());
        for (name, usage) in models {
            let (cost, model) = self.model(name, usage)?;
            sum = sum.plus(cost);
            uses.push(model);
        }
        if !sum.close_to(total) {
            let detail = format!("the sum is {}, the total {}", sum.ceil(), total.ceil());
            return Err(keep(AgentCode::CostMismatch, detail));
        }
        Ok(uses)
    }

    fn model(&self, name: &str, usage: &Json<'_>) -> Result<(Exact, ModelUse), AgentError> {
        self.is_known(name, usage)?;
        let count = |field: &str| match usage.field(field) {
            None => Err(keep(AgentCode::TokensInvalid, format!("no {field}"))),
            Some(value) => value
                .count()
                .ok_or_else(|| keep(AgentCode::TokensInvalid, field)),
        };
        let tokens = Tokens {
            input: count("inputTokens")?,
            output: count("outputTokens")?,
            cache_read: count("cacheReadInputTokens")?,
            cache_written: count("cacheCreationInputTokens")?,
        };
        let cost = usage
            .field("costUSD")
            .ok_or_else(|| keep(AgentCode::CostMissing, "a model's costUSD"))?;
        let cost = Exact::read(cost).map_err(|code| keep(code, "a model's costUSD"))?;
        let model = ModelUse {
            model: base(name).to_owned(),
            tokens,
            cost: cost.ceil(),
        };
        Ok((cost, model))
    }

    /// The model, and what it says about itself, are known to the profile.
    fn is_known(&self, name: &str, usage: &Json<'_>) -> Result<(), AgentError> {
        let unknown = |what: &str| Err(keep(AgentCode::ModelUnknown, escape(what, 60)));
        if !self.profile.knows_model(base(name)) {
            return unknown(name);
        }
        if let Some(canonical) = usage.field("canonicalModel") {
            let canonical = canonical.text().unwrap_or_default();
            if !self.profile.knows_model(canonical) {
                return unknown(canonical);
            }
        }
        if let Some(provider) = usage.field("provider") {
            let provider = provider.text().unwrap_or_default();
            if !self.profile.knows_provider(provider) {
                return unknown(provider);
            }
        }
        match usage.field("costBasis").map(Json::text) {
            None | Some(Some("list" | "managed")) => Ok(()),
            Some(_) => Err(keep(AgentCode::CostBasisUnknown, escape(name, 60))),
        }
    }

    /// The sum over all models. `usage` leaves sub-agents out, so it is a lower bound and no more.
    fn tokens(&self, models: &[ModelUse]) -> Result<Tokens, AgentError> {
        let sum = models
            .iter()
            .fold(Tokens::default(), |sum, model| sum.plus(model.tokens));
        let usage = self
            .field("usage")
            .ok_or_else(|| keep(AgentCode::TokensMissing, "no usage"))?;
        let bounds = [
            ("input_tokens", sum.input),
            ("output_tokens", sum.output),
            ("cache_read_input_tokens", sum.cache_read),
            ("cache_creation_input_tokens", sum.cache_written),
        ];
        for (name, most) in bounds {
            let Json::Object(fields) = usage else {
                return Err(keep(AgentCode::TokensInvalid, "usage"));
            };
            let count = fields.get(name).map(Json::count);
            match count {
                Some(Some(count)) if count <= most => {}
                Some(Some(count)) => {
                    let detail = format!("usage.{name} is {count}, all models together {most}");
                    return Err(keep(AgentCode::Contradictory, detail));
                }
                Some(None) => return Err(keep(AgentCode::TokensInvalid, format!("usage.{name}"))),
                None => return Err(keep(AgentCode::TokensMissing, format!("usage.{name}"))),
            }
        }
        let read = [sum.input, sum.cache_read, sum.cache_written];
        if sum.output == 0 || read.iter().all(|count| *count == 0) {
            return Err(keep(AgentCode::TokensZero, "none read or none written"));
        }
        Ok(sum)
    }

    /// A success that did its work: every sign says so. Its cost is known.
    fn ended_well(&self, cost: MicroUsd) -> Result<(), AgentError> {
        let refuse = |code: AgentCode, what: &str| Err(settled(code, what, Some(cost)));
        match self.text("terminal_reason") {
            Some("completed") => {}
            None => return refuse(AgentCode::NotCompleted, "no terminal_reason"),
            Some(_) => return refuse(AgentCode::NotCompleted, "another terminal_reason"),
        }
        if self.field("deferred_tool_use").is_some() {
            return refuse(AgentCode::NotCompleted, "a tool was put off");
        }
        if self.text("stop_reason") != Some("end_turn") {
            return refuse(AgentCode::StoppedEarly, "stop_reason is not end_turn");
        }
        match self.field("permission_denials") {
            Some(Json::List(denials)) if denials.is_empty() => {}
            Some(Json::List(denials)) => {
                let detail = format!("{} times", denials.len());
                return refuse(AgentCode::PermissionDenied, &detail);
            }
            _ => return refuse(AgentCode::FieldInvalid, "permission_denials"),
        }
        match self.field("result") {
            Some(Json::Text(text)) if text.trim().is_empty() => {
                refuse(AgentCode::EmptyResult, "no text")
            }
            Some(Json::Text(_)) => Ok(()),
            _ => refuse(AgentCode::FieldInvalid, "result"),
        }
    }
}

/// A model's name without the mark of its context, `[1m]`.
fn base(name: &str) -> &str {
    name.strip_suffix("[1m]").unwrap_or(name)
}
