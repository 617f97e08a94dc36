mod envelopes;
mod figures;

use super::{BUDGET, Document, End, HONEST_MICROS, Hold, Row, Run};
use envelopes::envelopes;
use figures::{costs, counts};

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
