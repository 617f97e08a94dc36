use super::{BUDGET, Document, End, HONEST_MICROS, Hold, Row, Run};

/// Every recorded trap that a result or an ending can set, and further ones.
pub fn rows() -> Vec<Row> {
    [
        failures(),
        endings(),
        overruns(),
        contradictions(),
        costs(),
        counts(),
        envelopes(),
    ]
    .concat()
}

fn exit(status: i32, stdout: Vec<u8>) -> Run {
    Run {
        stdout,
        end: End::Exit(status),
    }
}

fn honest() -> Document {
    Document::honest()
}

fn row(trap: u8, name: &'static str, expect: &'static str, hold: Hold, run: Run) -> Row {
    Row {
        trap,
        name,
        budget: BUDGET,
        run,
        expect,
        hold,
        twin: exit(0, honest().bytes()),
    }
}

fn twin(row: Row, twin: &Document) -> Row {
    Row {
        twin: exit(0, twin.bytes()),
        ..row
    }
}

const PAID: Hold = Hold::Settle(HONEST_MICROS);

/// Failures that say so, with every exit status that has been seen with them.
fn failures() -> Vec<Row> {
    let api_error = honest()
        .set("is_error", "true")
        .set("api_error_status", "404")
        .set("errors", "[]");
    let turns = Document::failed("error_max_turns");
    let budget = Document::failed("error_max_budget_usd");
    let execution = Document::failed("error_during_execution");
    let crashed = execution
        .clone()
        .set("total_cost_usd", "0")
        .set("duration_api_ms", "0")
        .set("modelUsage", "{}")
        .set("terminal_reason", "\"aborted_streaming\"");
    let small = budget
        .clone()
        .cost("0.0291")
        .set("errors", "[\"Reached maximum budget ($0.001)\"]");
    vec![
        row(
            1,
            "an API error that is called a success",
            "API_ERROR",
            PAID,
            exit(1, api_error.bytes()),
        ),
        row(
            1,
            "an API error that cost nothing yet",
            "API_ERROR",
            Hold::Keep,
            exit(1, api_error.clone().cost("0").bytes()),
        ),
        row(
            2,
            "the same with exit status 0",
            "API_ERROR",
            PAID,
            exit(0, api_error.bytes()),
        ),
        row(
            4,
            "a failure on standard output, nothing on standard error",
            "TURNS_EXHAUSTED",
            PAID,
            exit(1, turns.bytes()),
        ),
        row(
            5,
            "exit status 1 for a used-up budget",
            "BUDGET_EXHAUSTED",
            PAID,
            exit(1, budget.bytes()),
        ),
        row(
            5,
            "exit status 1 for a failure in the middle",
            "EXECUTION_FAILED",
            PAID,
            exit(1, execution.bytes()),
        ),
        row(
            5,
            "exit status 0 for a used-up budget",
            "BUDGET_EXHAUSTED",
            PAID,
            exit(0, budget.bytes()),
        ),
        row(
            13,
            "a crash that reports zero",
            "EXECUTION_FAILED",
            Hold::Keep,
            exit(1, crashed.bytes()),
        ),
        row(
            13,
            "a crash that reports no cost at all",
            "EXECUTION_FAILED",
            Hold::Keep,
            exit(
                1,
                execution
                    .clone()
                    .without("total_cost_usd")
                    .without("modelUsage")
                    .bytes(),
            ),
        ),
        row(
            14,
            "a failure that is no error",
            "EXECUTION_FAILED",
            Hold::Settle(657_164),
            exit(
                0,
                execution
                    .clone()
                    .set("is_error", "false")
                    .without("modelUsage")
                    .set("total_cost_usd", "0.6571631500000001")
                    .bytes(),
            ),
        ),
        row(
            15,
            "a used-up budget that is no error",
            "BUDGET_EXHAUSTED",
            PAID,
            exit(0, budget.clone().set("is_error", "false").bytes()),
        ),
        row(
            16,
            "used-up turns without text or errors",
            "TURNS_EXHAUSTED",
            PAID,
            exit(1, turns.clone().set("errors", "[]").bytes()),
        ),
        row(
            16,
            "used-up turns whose text speaks of a login",
            "TURNS_EXHAUSTED",
            PAID,
            exit(
                1,
                turns
                    .clone()
                    .set("errors", "[\"run claude setup-token\"]")
                    .bytes(),
            ),
        ),
        Row {
            budget: "0.001",
            twin: exit(0, honest().cost("0.0009").bytes()),
            ..row(
                20,
                "29 times the budget in one answer",
                "BUDGET_EXHAUSTED",
                Hold::Settle(29_100),
                exit(1, small.bytes()),
            )
        },
        row(
            20,
            "a used-up budget beyond the hold",
            "OVER_HOLD",
            Hold::Settle(99_000_000),
            exit(1, budget.clone().cost("99").bytes()),
        ),
        row(
            22,
            "a budget that trips as plain text",
            "RESULT_MALFORMED",
            Hold::Keep,
            exit(1, b"Error: Exceeded USD budget (1)\n".to_vec()),
        ),
        row(
            0,
            "structured output that never fitted",
            "RETRIES_EXHAUSTED",
            PAID,
            exit(
                1,
                Document::failed("error_max_structured_output_retries").bytes(),
            ),
        ),
        row(
            0,
            "a kind of ending nobody knows",
            "SUBTYPE_UNKNOWN",
            Hold::Keep,
            exit(0, honest().set("subtype", "\"success_probably\"").bytes()),
        ),
        row(
            0,
            "no kind of ending",
            "SUBTYPE_UNKNOWN",
            Hold::Keep,
            exit(0, honest().without("subtype").bytes()),
        ),
    ]
}

/// A result and a process that do not end together.
fn endings() -> Vec<Row> {
    let good = honest().bytes();
    let end = |end, stdout: &[u8]| Run {
        stdout: stdout.to_vec(),
        end,
    };
    let half = &good[..good.len() / 2];
    vec![
        row(
            3,
            "a success with exit status 1",
            "EXIT_DISAGREES",
            PAID,
            exit(1, good.clone()),
        ),
        row(
            3,
            "a success with exit status 143",
            "EXIT_DISAGREES",
            PAID,
            exit(143, good.clone()),
        ),
        row(
            8,
            "a result, and a process that never ends",
            "NEVER_EXITED",
            PAID,
            end(End::Overdue, &good),
        ),
        row(
            9,
            "no result, and a process that never ends",
            "DEADLINE_PASSED",
            Hold::Keep,
            end(End::Overdue, b""),
        ),
        row(
            10,
            "output that stops in the middle while work goes on",
            "DEADLINE_PASSED",
            Hold::Keep,
            end(End::Overdue, half),
        ),
        row(
            11,
            "a budget that trips in a sub-agent: silence",
            "DEADLINE_PASSED",
            Hold::Keep,
            end(End::Overdue, b"\n"),
        ),
        row(
            11,
            "a failure with its cost, and then silence",
            "DEADLINE_PASSED",
            PAID,
            end(
                End::Overdue,
                &Document::failed("error_max_budget_usd").bytes(),
            ),
        ),
        row(
            12,
            "terminated, exit status 143, no result",
            "NO_RESULT",
            Hold::Keep,
            exit(143, vec![]),
        ),
        row(
            12,
            "terminated by the signal, no result",
            "SIGNALLED",
            Hold::Keep,
            end(End::Signal(15), b""),
        ),
        row(
            0,
            "killed after its result",
            "SIGNALLED",
            PAID,
            end(End::Signal(9), &good),
        ),
        row(
            0,
            "nothing but white space",
            "NO_RESULT",
            Hold::Keep,
            exit(0, b" \n\t\r\n".to_vec()),
        ),
    ]
}

/// Successes that passed a limit.
fn overruns() -> Vec<Row> {
    let turns = |n: &str| exit(0, honest().set("num_turns", n).bytes());
    vec![
        twin(
            row(
                17,
                "73 turns of 10, called a success",
                "OVER_TURNS",
                PAID,
                turns("73"),
            ),
            &honest().set("num_turns", "10"),
        ),
        twin(
            row(
                18,
                "one turn more than the limit",
                "OVER_TURNS",
                PAID,
                turns("11"),
            ),
            &honest().set("num_turns", "1"),
        ),
        row(
            18,
            "one turn more than the limit, and a failure",
            "TURNS_EXHAUSTED",
            PAID,
            exit(
                1,
                Document::failed("error_max_turns")
                    .set("num_turns", "11")
                    .bytes(),
            ),
        ),
        twin(
            row(
                21,
                "more than the budget, called a success",
                "OVER_BUDGET",
                Hold::Settle(1_000_001),
                exit(0, honest().cost("1.0000001").bytes()),
            ),
            &honest().cost("1.000000"),
        ),
        row(
            21,
            "more than the hold, called a success",
            "OVER_HOLD",
            Hold::Settle(15_000_001),
            exit(0, honest().cost("15.000001").bytes()),
        ),
    ]
}

/// Fields that contradict a success.
fn contradictions() -> Vec<Row> {
    let paid = |trap, name, expect, document: Document| {
        row(trap, name, expect, PAID, exit(0, document.bytes()))
    };
    let denial = "[{\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"zebra-crossing\"}}]";
    vec![
        paid(
            6,
            "a tool was denied",
            "PERMISSION_DENIED",
            honest().set("permission_denials", denial),
        ),
        twin(
            paid(
                7,
                "an empty text after tokens were spent",
                "EMPTY_RESULT",
                honest().set("result", "\"\""),
            ),
            &honest().set("result", "\".\""),
        ),
        paid(
            7,
            "a text of white space",
            "EMPTY_RESULT",
            honest().set("result", "\" \\n\""),
        ),
        paid(
            37,
            "a success that waits for a tool",
            "STOPPED_EARLY",
            honest().set("stop_reason", "\"tool_use\""),
        ),
        paid(
            37,
            "a success that was refused",
            "STOPPED_EARLY",
            honest().set("stop_reason", "\"refusal\""),
        ),
        paid(
            37,
            "a success that was cut off",
            "STOPPED_EARLY",
            honest().set("stop_reason", "\"max_tokens\""),
        ),
        paid(
            37,
            "a success without a reason to stop",
            "STOPPED_EARLY",
            honest().set("stop_reason", "null"),
        ),
        paid(
            37,
            "a success whose run was not completed",
            "NOT_COMPLETED",
            honest().set("terminal_reason", "\"budget_exhausted\""),
        ),
        paid(
            37,
            "a success of a version that names no reason",
            "NOT_COMPLETED",
            honest().without("terminal_reason"),
        ),
        paid(
            37,
            "a failure whose run was completed",
            "EXECUTION_FAILED",
            Document::failed("error_during_execution").set("terminal_reason", "\"completed\""),
        ),
        paid(
            0,
            "a success with a tool put off",
            "NOT_COMPLETED",
            honest().set("deferred_tool_use", "{\"name\":\"Bash\"}"),
        ),
        paid(
            0,
            "a success with an API error's status",
            "CONTRADICTORY",
            honest().set("api_error_status", "529"),
        ),
        twin(
            paid(
                0,
                "a success with errors",
                "CONTRADICTORY",
                honest().set("errors", "[\"x\"]"),
            ),
            &honest().set("errors", "[]"),
        ),
        paid(
            0,
            "a success without a result text",
            "FIELD_INVALID",
            honest().without("result"),
        ),
        paid(
            0,
            "a result that is no text",
            "FIELD_INVALID",
            honest().set("result", "{\"text\":\"x\"}"),
        ),
        paid(
            0,
            "denials that are no list",
            "FIELD_INVALID",
            honest().without("permission_denials"),
        ),
        row(
            0,
            "nothing that says whether it is an error",
            "FIELD_INVALID",
            Hold::Keep,
            exit(0, honest().without("is_error").bytes()),
        ),
        row(
            0,
            "an error flag that is a text",
            "FIELD_INVALID",
            Hold::Keep,
            exit(0, honest().set("is_error", "\"false\"").bytes()),
        ),
    ]
}

/// Costs that are missing, malformed, or not supported by anything.
fn costs() -> Vec<Row> {
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
fn counts() -> Vec<Row> {
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

/// What stands around the result, and whose it is.
fn envelopes() -> Vec<Row> {
    let keep =
        |trap, name, expect, stdout: Vec<u8>| row(trap, name, expect, Hold::Keep, exit(0, stdout));
    let good = honest().bytes();
    let line = String::from_utf8(good.clone()).unwrap_or_default();
    let list = |with: &str| format!("[{with}{}]\n", line.trim_end()).into_bytes();
    let with = |before: &[u8], after: &[u8]| [before, &good, after].concat();
    let pretty = String::from_utf8(honest().pretty()).unwrap_or_default();
    let chinese = honest().set("result", "\"完成\"").bytes();
    let cut = chinese
        .windows(3)
        .position(|w| w == "成".as_bytes())
        .unwrap_or(0);
    let split = [&chinese[..=cut], &chinese[cut + 3..]].concat();
    let notified = honest().set("origin", "{\"kind\":\"task-notification\"}");
    vec![
        keep(
            26,
            "a list, as a verbose program prints it",
            "RESULT_ARRAY",
            list("{\"type\":\"system\",\"subtype\":\"init\"},"),
        ),
        keep(26, "a list of exactly the result", "RESULT_ARRAY", list("")),
        Row {
            twin: exit(0, honest().pretty()),
            ..keep(
                27,
                "a list over several lines",
                "RESULT_ARRAY",
                format!("[\n{pretty}\n]\n").into_bytes(),
            )
        },
        keep(29, "two results", "SEVERAL_RESULTS", with(b"", &good)),
        keep(
            29,
            "an empty success before the real one",
            "SEVERAL_RESULTS",
            with(&honest().set("result", "\"\"").bytes(), b""),
        ),
        keep(
            29,
            "two results and an event between",
            "SEVERAL_RESULTS",
            with(&[&good[..], b"{\"type\":\"system\"}\n"].concat(), b""),
        ),
        twin(
            keep(
                29,
                "the result of a notification",
                "NOT_MAIN_RESULT",
                notified.bytes(),
            ),
            &honest().set("origin", "{\"kind\":\"human\"}"),
        ),
        keep(
            30,
            "an event after the result",
            "TRAILING_BYTES",
            with(b"", b"{\"type\":\"prompt_suggestion\"}\n"),
        ),
        keep(
            31,
            "the result of a session that was resumed",
            "SESSION_MISMATCH",
            honest()
                .set("session_id", "\"07070707-0707-4707-8707-070707070708\"")
                .bytes(),
        ),
        keep(
            31,
            "a result of no session",
            "SESSION_MISMATCH",
            honest().without("session_id").bytes(),
        ),
        keep(
            35,
            "half a result",
            "RESULT_TRUNCATED",
            good[..good.len() / 2].to_vec(),
        ),
        keep(
            35,
            "a result without its last byte",
            "RESULT_TRUNCATED",
            good[..good.len() - 2].to_vec(),
        ),
        keep(
            35,
            "output of a background command before it",
            "RESULT_MALFORMED",
            with(b"[1/2] built\n", b""),
        ),
        keep(
            35,
            "output of a background command after it",
            "TRAILING_BYTES",
            with(b"", b"built\n"),
        ),
        keep(
            35,
            "a zero byte after it",
            "TRAILING_BYTES",
            with(b"", b"\0"),
        ),
        Row {
            twin: exit(0, chinese),
            ..keep(35, "a character cut in two", "RESULT_ENCODING", split)
        },
        keep(
            0,
            "a byte order mark",
            "RESULT_ENCODING",
            with(b"\xef\xbb\xbf", b""),
        ),
        keep(
            0,
            "two costs",
            "DUPLICATE_KEY",
            honest().also("total_cost_usd", "0.1").bytes(),
        ),
        keep(
            0,
            "two costs, one escaped",
            "DUPLICATE_KEY",
            honest().also("total_cost\\u005fusd", "0.1").bytes(),
        ),
        keep(
            0,
            "a model twice",
            "DUPLICATE_KEY",
            honest()
                .edit(
                    "modelUsage",
                    "{\"claude-opus-5[1m]\":",
                    "{\"claude-opus-5[1m]\":{},\"claude-opus-5[1m]\":",
                )
                .bytes(),
        ),
        keep(0, "a bare number", "RESULT_NOT_OBJECT", b"0.5\n".to_vec()),
        keep(
            0,
            "another message",
            "NOT_A_RESULT",
            honest().set("type", "\"assistant\"").bytes(),
        ),
        keep(
            0,
            "a message of no type",
            "NOT_A_RESULT",
            honest().without("type").bytes(),
        ),
        keep(
            0,
            "a thousand brackets",
            "TOO_COMPLEX",
            honest().set("extra", &"[".repeat(1_000)).bytes(),
        ),
        keep(
            0,
            "a hundred thousand values",
            "TOO_COMPLEX",
            honest()
                .set("extra", &format!("[{}0]", "0,".repeat(100_000)))
                .bytes(),
        ),
        keep(
            0,
            "five megabytes",
            "RESULT_TOO_LARGE",
            honest()
                .set("result", &format!("\"{}\"", "x".repeat(5 << 20)))
                .bytes(),
        ),
        keep(
            0,
            "a list of a hundred models",
            "MODEL_UNKNOWN",
            honest().set("modelUsage", &hundred()).bytes(),
        ),
    ]
}

fn hundred() -> String {
    let models: Vec<String> = (0..100).map(|n| format!("\"m{n}\":{{}}")).collect();
    format!("{{{}}}", models.join(","))
}
