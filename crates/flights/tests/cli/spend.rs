//! `flights spend`, `flights ledger` and `flights agent check-result`.

use crate::environment::{Environment, Run, workspace};
use insta::assert_snapshot;
use std::fs;

const EVIDENCE: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

/// What was printed, whatever the day is.
fn undated(run: &Run) -> String {
    let line = |line: &str| match line.split_once(" on 20") {
        Some((before, _)) => format!("{before} on some day"),
        None => line.to_owned(),
    };
    run.stdout.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn spend(environment: &Environment, args: &[&str]) -> Run {
    environment.flights(&[&["spend"], args].concat())
}

#[test]
fn money_is_held_within_caps_and_given_back_only_if_nothing_was_started() {
    let environment = Environment::new();
    let refused = spend(&environment, &["reserve", "run-1", "--limit", "2"]);
    assert_snapshot!(refused.text, @"
    exit 20
    --- stdout
    REFUSED at spend: ledger/CAP_MISSING: no total cap was ever stated
      hint: state one with `flights spend cap total --usd AMOUNT`
    ");
    assert_eq!(
        spend(&environment, &["cap", "total", "--usd", "10"]).code,
        0
    );
    let cap = spend(
        &environment,
        &["cap", "day", "--eur", "6", "--rate", "1.05"],
    );
    assert_snapshot!(undated(&cap), @"
    amounts in US dollars, estimated
      cap     run      none
      cap     UTC day  6.3 (6 EUR at 1.05)
      cap     total    10
      spent   UTC day  0 on some day
      spent   total    0
      held             0
    ");
    assert_snapshot!(spend(&environment, &["reserve", "run-1", "--limit", "2"]).text, @"
    exit 0
    --- stdout
      reserved  run-1: 3 held: the limit of 2, and what one answer more may cost
    ");
    // The same request again is the same hold.
    let again = ["reserve", "run-1", "--limit", "2", "--format", "json"];
    assert_eq!(spend(&environment, &again).json()["state"], "reserved");
    assert_snapshot!(spend(&environment, &["reserve", "run-1", "--limit", "3"]).stdout, @"
    REFUSED at spend: ledger/HOLD_DIFFERS: run-1 is held for another request
      hint: use a new name for a new run
    ");
    assert_snapshot!(spend(&environment, &["reserve", "run-2", "--limit", "5"]).stdout, @"
    REFUSED at spend: ledger/CAP_EXCEEDED: cap of the utc-day: 6.3 USD, spent and held 3 USD (estimated), asked for 6 USD
      hint: ask for less, wait for the next UTC day, resolve runs of unknown outcome, or raise the cap
    ");
    assert_snapshot!(spend(&environment, &["release", "run-1"]).stdout, @"  released  run-1: 3 given back");
    assert_eq!(
        spend(&environment, &["reserve", "run-2", "--limit", "5"]).code,
        0
    );
    assert_eq!(
        spend(&environment, &["reserve", "run-1", "--limit", "2"]).code,
        2
    );
    // What was never started is not unknown.
    assert_eq!(
        environment.flights(&["key", "new", "--no-passphrase"]).code,
        0
    );
    let resolve = ["resolve", "run-2", "--as", "1", "--evidence", EVIDENCE];
    assert_snapshot!(spend(&environment, &resolve).stdout, @"
    REFUSED at spend: ledger/HOLD_REFUSED: run-2 is reserved: only a run of unknown outcome takes an operator's word
      hint: look at the run with `flights spend show`; an unknown outcome needs `flights spend resolve`
    ");
    assert_snapshot!(undated(&spend(&environment, &["show"])), @"
    amounts in US dollars, estimated
      cap     run      none
      cap     UTC day  6.3 (6 EUR at 1.05)
      cap     total    10
      spent   UTC day  0 on some day
      spent   total    0
      held             6
      reserved  run-2: 6 held: the limit of 5, and what one answer more may cost
    ");
}

#[test]
fn a_run_is_settled_or_lost_and_resolved_with_evidence() {
    let environment = Environment::new();
    assert_eq!(
        environment.flights(&["key", "new", "--no-passphrase"]).code,
        0
    );
    assert_eq!(
        spend(&environment, &["cap", "total", "--usd", "10"]).code,
        0
    );
    for run in ["a", "b"] {
        assert_eq!(
            spend(&environment, &["reserve", run, "--limit", "2"]).code,
            0
        );
        assert_eq!(spend(&environment, &["start", run]).code, 0);
    }
    let settle = ["settle", "a", "--as", "0.25", "--result", EVIDENCE];
    assert_snapshot!(spend(&environment, &settle).stdout, @"  settled   a: 0.25 spent of 3, limit 2");
    assert_eq!(spend(&environment, &["release", "b"]).code, 2);
    assert_snapshot!(spend(&environment, &["lose", "b"]).stdout, @"  unknown   b: 3 held until `flights spend resolve b`, limit 2");
    let resolve = ["resolve", "b", "--as", "1.5", "--evidence", EVIDENCE];
    assert_snapshot!(spend(&environment, &resolve).stdout, @"  resolved  b: 1.5 spent of 3, limit 2");
    assert_snapshot!(undated(&spend(&environment, &["show"])), @"
    amounts in US dollars, estimated
      cap     run      none
      cap     UTC day  none
      cap     total    10
      spent   UTC day  1.75 on some day
      spent   total    1.75
      held             0
    ");
}

#[test]
fn a_day_is_confirmed_only_as_the_clock_has_it() {
    let environment = Environment::new();
    for day in ["2020-01-01", "2199-12-30"] {
        let run = spend(&environment, &["confirm-day", day, "--format", "json"]);
        assert_eq!(
            (run.code, run.json()["code"].as_str()),
            (2, Some("flights/DAY_DIFFERS"))
        );
    }
    assert_eq!(spend(&environment, &["confirm-day", "2026-02-30"]).code, 2);
}

#[test]
fn an_output_that_cannot_be_written_is_a_usage_error() {
    let environment = Environment::new();
    environment.flights(&["spend", "cap", "total", "--usd", "20"]);
    let nowhere = environment.path("nowhere/export");
    let run = environment.flights(&[
        "ledger",
        "export",
        "-o",
        nowhere.to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert_eq!(
        (run.code, run.json()["code"].as_str()),
        (2, Some("flights/OUTPUT_UNWRITABLE"))
    );
}

#[test]
fn amounts_are_exact_or_refused() {
    let environment = Environment::new();
    for bad in [
        "0",
        "-1",
        "1e3",
        "1.0000001",
        "NaN",
        "1,5",
        " 1",
        "99999999999",
    ] {
        let run = spend(&environment, &["cap", "total", "--usd", bad]);
        assert_eq!(run.code, 2, "{bad}: {}", run.text);
    }
    for bad in [
        &["--eur", "6"][..],
        &["--usd", "6", "--eur", "6"],
        &[],
        &["--rate", "1"],
    ] {
        let run = spend(&environment, &[&["cap", "total"], bad].concat());
        assert_eq!(run.code, 2, "{bad:?}: {}", run.text);
    }
    let none = spend(&environment, &["cap", "total", "--format", "json"]);
    assert_eq!(none.json()["code"], "flights/AMOUNT_INVALID");
}

#[test]
fn a_ledger_is_looked_at_as_a_whole_and_a_damaged_one_is_refused() {
    let environment = Environment::new();
    assert_eq!(
        spend(&environment, &["cap", "total", "--usd", "10"]).code,
        0
    );
    assert_eq!(
        spend(&environment, &["reserve", "run-1", "--limit", "2"]).code,
        0
    );
    let check = environment.flights(&["ledger", "check", "--format", "json"]);
    assert_eq!(check.json()["commits"], 2, "{}", check.text);
    let export = environment.flights(&["ledger", "export"]);
    assert_eq!(export.code, 0);
    let lines: Vec<serde_json::Value> = export
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["commits"], 2);
    assert!(lines.len() > 2, "{}", export.stdout);
    let file = environment.state().join("ledger/ledger.sqlite");
    let wal = environment.state().join("ledger/ledger.sqlite-wal");
    let _ = fs::remove_file(wal);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    let run = environment.flights(&["ledger", "check"]);
    assert_ne!(run.code, 0, "{}", run.text);
    assert!(run.stdout.contains("ledger/"), "{}", run.text);
}

/// What programs printed, as the fuzz targets begin with.
fn printed(name: &str) -> String {
    fs::read_to_string(workspace().join("fuzz/seeds/agent_result_raw").join(name)).unwrap()
}

#[test]
fn a_result_is_accounted_for_or_refused_with_what_becomes_of_the_hold() {
    let environment = Environment::new();
    let check = |text: &str| {
        let file = environment.write("result.json", text);
        environment.flights(&[
            "agent",
            "check-result",
            &file,
            "--profile",
            "claude",
            "--max-budget-usd",
            "2.50",
            "--max-turns",
            "20",
        ])
    };
    assert_snapshot!(check(&printed("success")).text, @"
    exit 0
    --- stdout
    ACCEPTED: 0.533159 USD (estimated), 4 turns
    ");
    for name in [
        "two-results",
        "a-list",
        "cost-twice",
        "budget-used-up",
        "crash-with-zero-cost",
    ] {
        assert_eq!(check(&printed(name)).code, 10, "{name}");
    }
    assert_snapshot!(check(&printed("budget-used-up")).text, @"
    exit 10
    --- stdout
    REFUSED at account: agent/BUDGET_EXHAUSTED: error_max_budget_usd
      | a hold for this run would settle 0.533159 USD
      hint: raise the budget, or make the task smaller
    ");
    assert_snapshot!(check(&printed("two-results")).text, @"
    exit 10
    --- stdout
    REFUSED at account: agent/SEVERAL_RESULTS: 2 of them
      | a hold for this run would be kept
      hint: look the cost up with the provider and resolve the hold
    ");
    assert_snapshot!(check("").text, @"
    exit 10
    --- stdout
    REFUSED at account: agent/NO_RESULT: nothing was printed
      | a hold for this run would be kept
      hint: look the cost up with the provider and resolve the hold
    ");
}
