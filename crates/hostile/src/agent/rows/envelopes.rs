//! What stands around a result, and whose it is.

use super::{exit, honest, row, twin};
use crate::agent::{Hold, Row};

/// What stands around the result, and whose it is.
pub(super) fn envelopes() -> Vec<Row> {
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
