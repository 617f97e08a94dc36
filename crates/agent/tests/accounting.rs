//! Every recorded trap of a terminal result, with its code, what becomes of the hold, and an
//! outcome like it that is accepted.

#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

use flightproof_agent::{
    Accounting, AgentCode, AgentError, Ending, HoldEffect, Limits, Metering, Output, Profile,
    RunKey, Spend, check_result, check_run, fuzzing,
};
use flightproof_core::{Code, MicroUsd};
use flightproof_hostile::agent::{
    BUDGET, Document, End, HONEST_MICROS, Hold, MARKER, Row, Run, SESSION, SESSION_TEXT, TURNS,
    plan, rows,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn claude() -> Profile {
    Profile::built_in("claude").unwrap()
}

fn limits(budget: &str) -> Limits {
    Limits::parse(budget, &TURNS.to_string(), Metering::Metered).unwrap()
}

fn output(run: &Run) -> Output {
    Output {
        ending: match run.end {
            End::Exit(status) => Ending::Exited(status),
            End::Signal(signal) => Ending::Signalled(signal),
            End::Overdue => Ending::Overdue,
        },
        stdout: run.stdout.clone(),
        stderr_bytes: 0,
        overflow: false,
    }
}

fn judge(budget: &str, run: &Run) -> Result<flightproof_agent::Accounting, AgentError> {
    let key = RunKey::from_entropy(SESSION);
    check_run(&output(run), &key, Some(3), &claude(), &limits(budget))
}

fn wrong(row: &Row) -> Option<String> {
    let hold = match row.hold {
        Hold::Keep => HoldEffect::Keep,
        Hold::Settle(micros) => HoldEffect::Settle(MicroUsd::from_micros(micros).unwrap()),
    };
    let found =
        judge(row.budget, &row.run).map_err(|e| (e.code().explanation().code.to_owned(), e.hold));
    let expected = Err((format!("agent/{}", row.expect), hold));
    if found != expected {
        return Some(format!(
            "{} {}: {found:?}, expected {expected:?}",
            row.trap, row.name
        ));
    }
    let twin = judge(row.budget, &row.twin).err();
    twin.map(|e| format!("the twin of {} {}: {e}", row.trap, row.name))
}

#[test]
fn every_recorded_trap_has_its_code_its_hold_and_a_benign_twin() {
    let wrong: Vec<String> = rows().iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Traps that no result can set: they are about how the program is started, and stand in
/// `launch.rs`, `src/profile.rs` and `src/binary.rs`.
const ELSEWHERE: [u8; 4] = [19, 28, 32, 38];

#[test]
fn no_trap_is_left_out() {
    let here: BTreeSet<u8> = rows().iter().map(|row| row.trap).collect();
    let missing: Vec<u8> = (1..=38)
        .filter(|trap| !here.contains(trap) && !ELSEWHERE.contains(trap))
        .collect();
    assert_eq!(missing, Vec::<u8>::new());
}

/// What every reader of such results did at some time: it looks for a success and takes the cost
/// as it comes.
fn credulous(run: &Run) -> bool {
    let value: Option<serde_json::Value> = serde_json::from_slice(&run.stdout).ok();
    value.is_some_and(|v| v["subtype"] == "success" && v["total_cost_usd"].as_f64().is_some())
}

#[test]
fn a_credulous_reader_would_be_noticed() {
    let fooled = rows().iter().filter(|row| credulous(&row.run)).count();
    assert!(fooled > 40, "{fooled} of {} rows fool it", rows().len());
    assert!(rows().iter().all(|row| credulous(&row.twin)));
}

#[test]
fn an_honest_result_gives_bounded_numbers_and_none_of_its_text() {
    let accounting = judge(BUDGET, &rows()[0].twin).unwrap();
    let cost = MicroUsd::from_micros(HONEST_MICROS).unwrap();
    assert_eq!(accounting.spend, Spend::Estimated { cost });
    assert_eq!(accounting.turns, Some(4));
    assert_eq!(accounting.tokens.cache_written, 52_437);
    assert_eq!(accounting.models.len(), 1);
    assert_eq!(accounting.models[0].model, "claude-opus-5");
    let text = serde_json::to_string(&accounting).unwrap();
    assert!(text.len() < 1_000, "{text}");
    assert!(
        !text.contains(MARKER) && !text.contains(SESSION_TEXT),
        "{text}"
    );
    let read = |text: &str| serde_json::from_str::<Accounting>(text).is_ok();
    let kind = r#""kind":"estimated""#;
    assert!(read(&text) && text.contains(kind));
    assert!(!read(&text.replace(kind, &format!("{kind},\"x\":1"))));
}

#[test]
fn no_refusal_shows_the_text_of_a_result() {
    for row in rows() {
        let error = judge(row.budget, &row.run).unwrap_err();
        assert!(!error.to_string().contains(MARKER), "{}: {error}", row.name);
    }
}

#[test]
fn a_result_without_a_request_through_the_proxy_is_made_up() {
    let run = RunKey::from_entropy(SESSION);
    let good = output(&rows()[0].twin);
    let judge = |requests| check_run(&good, &run, requests, &claude(), &limits("1"));
    assert!(judge(None).is_ok());
    assert!(judge(Some(1)).is_ok());
    let error = judge(Some(0)).unwrap_err();
    assert_eq!(
        (error.code(), error.hold),
        (AgentCode::ProxyDisagrees, HoldEffect::Keep)
    );
}

#[test]
fn more_output_than_is_read_is_no_result() {
    let mut good = output(&rows()[0].twin);
    good.overflow = true;
    let run = RunKey::from_entropy(SESSION);
    let error = check_run(&good, &run, None, &claude(), &limits("1")).unwrap_err();
    assert_eq!(
        (error.code(), error.hold),
        (AgentCode::OutputOverflow, HoldEffect::Keep)
    );
}

#[test]
fn what_a_gateway_or_a_subscription_would_hide_is_asked_of_the_models_not_of_usage() {
    // Sub-agents are in `modelUsage` only: the sum counts, and `usage` may be less.
    let two = Document::honest().edit(
        "modelUsage",
        "{\"claude-opus-5[1m]\"",
        "{\"claude-haiku-4-5-20251001\":{\"inputTokens\":9,\"outputTokens\":1,\
         \"cacheReadInputTokens\":0,\"cacheCreationInputTokens\":0,\"costUSD\":0.25},\
         \"claude-opus-5[1m]\"",
    );
    let two = two.set("total_cost_usd", "0.7831585");
    let accounting = check_result(&two.bytes(), &claude(), &limits("1")).unwrap();
    assert_eq!(accounting.tokens.output, 212);
    assert_eq!(accounting.spend.amount().micros(), 783_159);
    assert_eq!(accounting.models.len(), 2);
}

mod unmetered {
    use super::*;

    const CODEX: &str = r#"{"type":"thread.started","thread_id":"t"}
{"type":"turn.started"}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":24763,"cached_input_tokens":24448,"output_tokens":122}}
"#;
    const GEMINI: &str = r#"{"session_id":"s","response":"done","stats":{"models":{"gemini-2.5-pro":{"tokens":{"prompt":100,"candidates":20,"total":120,"cached":0}}}}}"#;

    fn read(name: &str, metering: Metering, text: &str) -> Result<Spend, (AgentCode, HoldEffect)> {
        let limits = Limits::parse("1", "10", metering).unwrap();
        check_result(text.as_bytes(), &Profile::built_in(name).unwrap(), &limits)
            .map(|accounting| accounting.spend)
            .map_err(|e| (e.code(), e.hold))
    }

    #[test]
    fn a_program_without_a_cost_is_not_accounted_unless_that_was_chosen() {
        let whole = MicroUsd::from_micros(11_000_000).unwrap();
        for (name, text) in [("codex", CODEX), ("gemini", GEMINI)] {
            let refused = Err((AgentCode::AccountingUnsupported, HoldEffect::Keep));
            assert_eq!(read(name, Metering::Metered, text), refused);
            let spend = Spend::Unmetered { hold: whole };
            assert_eq!(read(name, Metering::Unmetered, text), Ok(spend));
        }
    }

    #[test]
    fn an_unmetered_run_that_failed_settles_the_whole_hold_and_one_without_an_end_keeps_it() {
        use AgentCode::{
            EmptyResult, ExecutionFailed, NoResult, NotAResult, SeveralResults, TokensInvalid,
            TokensMissing, TokensZero, TrailingBytes,
        };
        let whole = HoldEffect::Settle(MicroUsd::from_micros(11_000_000).unwrap());
        let kept = HoldEffect::Keep;
        let end = CODEX.lines().last().unwrap();
        let failed = "{\"type\":\"turn.failed\",\"error\":{\"message\":\"x\"}}";
        for (name, text, code, hold) in [
            ("codex", CODEX.replace(end, failed), ExecutionFailed, whole),
            (
                "codex",
                CODEX.replace(&format!("{end}\n"), ""),
                NoResult,
                kept,
            ),
            ("codex", format!("{CODEX}{end}\n"), SeveralResults, kept),
            (
                "codex",
                format!("{CODEX}{{\"type\":\"turn.started\"}}\n"),
                TrailingBytes,
                kept,
            ),
            (
                "codex",
                CODEX.replace("item.completed", "item.invented"),
                NotAResult,
                kept,
            ),
            (
                "codex",
                CODEX.replace("thread.started", "thread.resumed"),
                NotAResult,
                kept,
            ),
            ("codex", CODEX.replace(":122", ":null"), TokensInvalid, kept),
            ("codex", CODEX.replace(":122", ":0"), TokensZero, whole),
            (
                "codex",
                CODEX.replace("\"usage\"", "\"use\""),
                TokensMissing,
                kept,
            ),
            (
                "gemini",
                GEMINI.replace("\"response\"", "\"error\":{},\"response\""),
                ExecutionFailed,
                whole,
            ),
            (
                "gemini",
                GEMINI.replace("\"done\"", "\"\""),
                EmptyResult,
                whole,
            ),
            (
                "gemini",
                GEMINI.replace("\"response\"", "\"answer\""),
                NotAResult,
                kept,
            ),
            (
                "gemini",
                GEMINI.replace("\"models\"", "\"model\""),
                TokensMissing,
                kept,
            ),
            ("gemini", GEMINI.replace(":20", ":-20"), TokensInvalid, kept),
            (
                "gemini",
                GEMINI.replace("\"stats\"", "\"stats\":{},\"stats\""),
                AgentCode::DuplicateKey,
                kept,
            ),
        ] {
            assert_eq!(
                read(name, Metering::Unmetered, &text),
                Err((code, hold)),
                "{text}"
            );
        }
    }
}

mod oracle {
    use super::*;

    #[test]
    fn every_row_and_every_twin_passes_the_oracle() {
        for row in rows() {
            fuzzing::agent_result_raw(&row.run.stdout);
            fuzzing::agent_result_raw(&row.twin.stdout);
        }
    }

    #[test]
    fn the_seeds_of_the_fuzz_targets_pass_their_oracles() {
        let seeds = |target: &str| {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../fuzz/seeds")
                .join(target);
            let files: Vec<Vec<u8>> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
                .collect();
            assert!(files.len() >= 4, "{target}");
            files
        };
        for seed in seeds("agent_result_raw") {
            fuzzing::agent_result_raw(&seed);
        }
        for seed in seeds("agent_result_plan") {
            let forged = plan::forge(&seed);
            fuzzing::agent_result_plan(&forged.bytes, forged.good);
        }
        for seed in seeds("agent_head_raw") {
            fuzzing::agent_head_raw(&seed);
        }
    }

    #[test]
    fn an_oracle_that_hears_the_opposite_fails() {
        let forged = plan::forge(&[]);
        let lied = std::panic::catch_unwind(|| {
            fuzzing::agent_result_plan(&forged.bytes, !forged.good);
        });
        assert!(lied.is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn results_put_together_from_parts_are_judged_as_foretold(
            choices in proptest::collection::vec(prop_oneof![4 => Just(0u8), 1 => any::<u8>()], 0..20),
        ) {
            let forged = plan::forge(&choices);
            fuzzing::agent_result_plan(&forged.bytes, forged.good);
        }

        #[test]
        fn a_result_with_one_byte_changed_passes_the_oracle(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = Document::honest().bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            fuzzing::agent_result_raw(&bytes);
        }
    }
}

#[test]
fn a_program_whose_session_was_lost_keeps_its_hold_whatever_it_printed() {
    let run = RunKey::from_entropy([7; 16]);
    let limits = Limits::parse("1", "10", Metering::Metered).unwrap();
    let profile = Profile::built_in("claude").unwrap();
    for stdout in [&b""[..], b"{}"] {
        let output = Output {
            ending: Ending::Lost,
            stdout: stdout.to_vec(),
            stderr_bytes: 0,
            overflow: false,
        };
        let refused = check_run(&output, &run, None, &profile, &limits).unwrap_err();
        assert_eq!(refused.refused.code, AgentCode::Interrupted);
        assert_eq!(refused.hold, HoldEffect::Keep);
    }
}
