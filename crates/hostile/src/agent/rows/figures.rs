//! Costs, turns and tokens.

use super::{exit, honest, row, twin};
use crate::agent::{Document, Hold, Row};

/// Costs that are missing, malformed, or not supported by anything.
pub(super) fn costs() -> Vec<Row> {
    let keep = |trap, name, expect, document: Document| {
        row(trap, name, expect, Hold::Keep, exit(0, document.bytes()))
    };
    let total = |raw: &str| honest().set("total_cost_usd", raw);
    let models = |from: &str, to: &str| honest().edit("modelUsage", from, to);
    vec![
        twin(
            keep(
                23,
                "a total ten times the sum",
                "COST_MISMATCH",
                total("5.331585"),
            ),
            &total("0.5331584999999999"),
        ),
        keep(
            23,
            "a total below the sum",
            "COST_MISMATCH",
            total("0.0331585"),
        ),
        keep(
            24,
            "a model nobody listed",
            "MODEL_UNKNOWN",
            models("claude-opus-5[1m]", "claude-opus-6"),
        ),
        keep(
            24,
            "a listed model that is another underneath",
            "MODEL_UNKNOWN",
            models(
                "\"canonicalModel\":\"claude-opus-5\"",
                "\"canonicalModel\":\"glm-5\"",
            ),
        ),
        keep(
            24,
            "another provider",
            "MODEL_UNKNOWN",
            models("firstParty", "gateway"),
        ),
        twin(
            keep(
                24,
                "a price the program does not know",
                "COST_BASIS_UNKNOWN",
                models("\"costBasis\":\"list\"", "\"costBasis\":\"unknown\""),
            ),
            &models("\"costBasis\":\"list\"", "\"costBasis\":\"managed\""),
        ),
        keep(
            25,
            "a gateway that counts nothing",
            "TOKENS_ZERO",
            nothing_counted(),
        ),
        keep(
            25,
            "tokens that cost nothing",
            "COST_ZERO",
            honest().cost("0"),
        ),
        keep(
            25,
            "tokens that cost nothing, as a float",
            "COST_ZERO",
            honest().cost("0.0"),
        ),
        twin(
            keep(
                34,
                "a total under its old name",
                "COST_MISSING",
                honest()
                    .without("total_cost_usd")
                    .also("cost_usd", "0.5331585"),
            ),
            &honest(),
        ),
        keep(
            34,
            "a total under two names",
            "CONTRADICTORY",
            honest().also("total_cost", "0.1"),
        ),
        keep(
            34,
            "no total",
            "COST_MISSING",
            honest().without("total_cost_usd"),
        ),
        keep(
            34,
            "a model without its cost",
            "COST_MISSING",
            models("\"costUSD\":0.5331585,", ""),
        ),
        keep(36, "a negative cost", "COST_NEGATIVE", total("-0.5331585")),
        keep(36, "minus zero", "COST_NEGATIVE", total("-0.0")),
        keep(36, "an exponent", "COST_EXPONENT", total("5.331585e-1")),
        keep(36, "the smallest double", "COST_EXPONENT", total("5e-324")),
        keep(36, "more than any double", "COST_EXPONENT", total("1e309")),
        keep(
            36,
            "more than any budget",
            "COST_OUT_OF_RANGE",
            total("18446744073709551616"),
        ),
        keep(
            36,
            "more decimals than a double has",
            "COST_OUT_OF_RANGE",
            total("0.5331585000000000000000000"),
        ),
        keep(
            36,
            "a cost in quotes",
            "COST_NOT_NUMBER",
            total("\"0.5331585\""),
        ),
        keep(36, "a cost of null", "COST_NOT_NUMBER", total("null")),
        keep(
            36,
            "a model's cost with a sign",
            "COST_NEGATIVE",
            models("\"costUSD\":0.5331585", "\"costUSD\":-0.5331585"),
        ),
        keep(36, "not a number", "NOT_FINITE", total("NaN")),
        keep(36, "infinity", "NOT_FINITE", total("Infinity")),
        keep(36, "minus infinity", "NOT_FINITE", total("-Infinity")),
        twin(
            keep(
                36,
                "a malformed cost in a failure",
                "COST_NEGATIVE",
                Document::failed("error_max_turns").set("total_cost_usd", "-1"),
            ),
            &honest().cost("0.15095600000000003"),
        ),
    ]
}

fn nothing_counted() -> Document {
    honest()
        .cost("0")
        .edit("modelUsage", "\"inputTokens\":2", "\"inputTokens\":0")
        .edit("modelUsage", "\"outputTokens\":211", "\"outputTokens\":0")
        .edit("modelUsage", "52437", "0")
        .set("usage", "{\"input_tokens\":0,\"output_tokens\":0,\"cache_read_input_tokens\":0,\"cache_creation_input_tokens\":0}")
}

/// Turns and tokens.
pub(super) fn counts() -> Vec<Row> {
    let keep = |trap, name, expect, document: Document| {
        row(trap, name, expect, Hold::Keep, exit(0, document.bytes()))
    };
    let turns = |raw: &str| honest().set("num_turns", raw);
    vec![
        twin(
            keep(
                33,
                "a lower bound above the sum",
                "CONTRADICTORY",
                honest().edit("usage", "\"output_tokens\":211", "\"output_tokens\":212"),
            ),
            &honest().edit("usage", "\"output_tokens\":211", "\"output_tokens\":7"),
        ),
        keep(
            0,
            "no turns",
            "TURNS_MISSING",
            honest().without("num_turns"),
        ),
        keep(0, "zero turns", "TURNS_INVALID", turns("0")),
        keep(0, "minus one turn", "TURNS_INVALID", turns("-1")),
        keep(0, "turns as a float", "TURNS_INVALID", turns("3.0")),
        keep(0, "turns with an exponent", "TURNS_INVALID", turns("1e0")),
        keep(
            0,
            "turns that wrap around",
            "TURNS_INVALID",
            turns("4294967297"),
        ),
        keep(
            0,
            "turns beyond every integer",
            "TURNS_INVALID",
            turns("99999999999999999999999999"),
        ),
        keep(0, "turns in quotes", "TURNS_INVALID", turns("\"4\"")),
        keep(
            0,
            "no models",
            "TOKENS_MISSING",
            honest().without("modelUsage"),
        ),
        keep(
            0,
            "models of nobody",
            "TOKENS_MISSING",
            honest().set("modelUsage", "{}"),
        ),
        keep(
            0,
            "models in a list",
            "TOKENS_MISSING",
            honest().set("modelUsage", "[]"),
        ),
        keep(0, "no usage", "TOKENS_MISSING", honest().without("usage")),
        keep(
            0,
            "a usage without its output",
            "TOKENS_MISSING",
            honest().edit("usage", "\"output_tokens\":211,", ""),
        ),
        keep(
            0,
            "a usage of null",
            "TOKENS_INVALID",
            honest().edit("usage", "\"output_tokens\":211", "\"output_tokens\":null"),
        ),
        keep(
            0,
            "a model's tokens of null",
            "TOKENS_INVALID",
            honest().edit(
                "modelUsage",
                "\"outputTokens\":211",
                "\"outputTokens\":null",
            ),
        ),
        keep(
            0,
            "tokens with a fraction",
            "TOKENS_INVALID",
            honest().edit(
                "modelUsage",
                "\"outputTokens\":211",
                "\"outputTokens\":211.5",
            ),
        ),
        keep(
            0,
            "tokens beyond 2^53",
            "TOKENS_INVALID",
            honest().edit(
                "modelUsage",
                "\"outputTokens\":211",
                "\"outputTokens\":9007199254740993",
            ),
        ),
        keep(
            0,
            "an answer of no tokens",
            "TOKENS_ZERO",
            honest()
                .edit("modelUsage", "\"outputTokens\":211", "\"outputTokens\":0")
                .edit("usage", "\"output_tokens\":211", "\"output_tokens\":0"),
        ),
    ]
}
