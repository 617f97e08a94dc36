//! Results of programs that report no cost. They say whether a run ended well, and how many tokens
//! it took; the whole hold is settled whatever they say.

use crate::accounting::{Accounting, Spend, Tokens, envelope, keep};
use crate::document::{Json, first};
use crate::{AgentCode, AgentError, HoldEffect, Limits, Profile};

/// Events that come between the first and the last.
const BETWEEN: [&str; 5] = [
    "turn.started",
    "item.started",
    "item.updated",
    "item.completed",
    // "Reconnecting…" is one of these and ends nothing.
    "error",
];

/// Reads what `codex exec --json` prints: one event a line, `turn.completed` once and last.
pub(crate) fn codex(
    bytes: &[u8],
    profile: &Profile,
    limits: &Limits,
) -> Result<Accounting, AgentError> {
    let text = envelope::text(bytes)?;
    let mut ended: Option<Tokens> = None;
    for (at, line) in text.lines().enumerate() {
        let (event, rest) = first(line).map_err(envelope::refusal)?;
        if !rest.is_empty() {
            return Err(keep(AgentCode::TrailingBytes, format!("event {at}")));
        }
        let kind = event.field("type").and_then(Json::text).unwrap_or_default();
        match kind {
            "turn.completed" if ended.is_some() => {
                return Err(keep(AgentCode::SeveralResults, "turn.completed twice"));
            }
            "turn.completed" => ended = Some(codex_tokens(&event)?),
            "turn.failed" => return Err(whole(AgentCode::ExecutionFailed, profile, limits)),
            _ if ended.is_some() => {
                return Err(keep(AgentCode::TrailingBytes, format!("event {at}")));
            }
            "thread.started" if at == 0 => {}
            kind if at > 0 && BETWEEN.contains(&kind) => {}
            _ => return Err(keep(AgentCode::NotAResult, format!("event {at}"))),
        }
    }
    let tokens = ended.ok_or_else(|| keep(AgentCode::NoResult, "no turn.completed"))?;
    accounting(tokens, profile, limits)
}

fn codex_tokens(event: &Json<'_>) -> Result<Tokens, AgentError> {
    let usage = event
        .field("usage")
        .ok_or_else(|| keep(AgentCode::TokensMissing, "no usage"))?;
    let count = |name: &str| {
        let value = usage.field(name).and_then(Json::count);
        value.ok_or_else(|| keep(AgentCode::TokensInvalid, name))
    };
    Ok(Tokens {
        input: count("input_tokens")?,
        output: count("output_tokens")?,
        cache_read: count("cached_input_tokens")?,
        cache_written: 0,
    })
}

/// Reads what `gemini --output-format json` prints: one object with a response and no error.
pub(crate) fn gemini(
    bytes: &[u8],
    profile: &Profile,
    limits: &Limits,
) -> Result<Accounting, AgentError> {
    let text = envelope::text(bytes)?;
    let object = envelope::object(text)?;
    if object.field("error").is_some() {
        return Err(whole(AgentCode::ExecutionFailed, profile, limits));
    }
    match object.field("response") {
        Some(Json::Text(text)) if !text.trim().is_empty() => {}
        Some(Json::Text(_)) => return Err(whole(AgentCode::EmptyResult, profile, limits)),
        _ => return Err(keep(AgentCode::NotAResult, "no response")),
    }
    let models = object
        .field("stats")
        .and_then(|stats| stats.field("models"));
    let Some(Json::Object(models)) = models else {
        return Err(keep(AgentCode::TokensMissing, "no stats.models"));
    };
    let mut sum = Tokens::default();
    for usage in models.values() {
        let tokens = usage.field("tokens");
        let count = |name: &str| {
            let value = tokens.and_then(|t| t.field(name)).and_then(Json::count);
            value.ok_or_else(|| keep(AgentCode::TokensInvalid, name))
        };
        sum = sum.plus(Tokens {
            input: count("prompt")?,
            output: count("candidates")?,
            cache_read: count("cached")?,
            cache_written: 0,
        });
    }
    accounting(sum, profile, limits)
}

fn accounting(
    tokens: Tokens,
    profile: &Profile,
    limits: &Limits,
) -> Result<Accounting, AgentError> {
    if tokens.output == 0 {
        return Err(whole(AgentCode::TokensZero, profile, limits));
    }
    Ok(Accounting {
        profile: profile.name().to_owned(),
        spend: Spend::Unmetered {
            hold: limits.hold_under(profile),
        },
        turns: None,
        tokens,
        models: Vec::new(),
    })
}

/// The run ended, badly; what it cost is never known, so all that was held is settled.
fn whole(code: AgentCode, profile: &Profile, limits: &Limits) -> AgentError {
    AgentError {
        refused: code.refuse("unmetered"),
        hold: HoldEffect::Settle(limits.hold_under(profile)),
    }
}
