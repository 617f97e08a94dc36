//! Agent programs of other kinds than one shell script, in real sessions.

use crate::agent::{PAID, machine};
use crate::environment::{Environment, Run, workspace};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// As large as those that carry their runtime with them.
const NATIVE_BYTES: u64 = 210 << 20;

/// A program in one file that carries the stand-in behind its own code. Its path and digest.
fn native(environment: &Environment) -> (String, String) {
    let program = environment.path("native");
    let source = workspace().join("fixtures/agent/native.rs");
    let built = std::process::Command::new("rustc")
        .args(["--edition", "2024", "-O", "-o"])
        .args([&program, &source])
        .status();
    assert!(built.unwrap().success());
    let carried = fs::read(workspace().join("fixtures/agent/worker.sh")).unwrap();
    let mut file = fs::File::options().append(true).open(&program).unwrap();
    file.set_len(NATIVE_BYTES).unwrap();
    file.write_all(&carried).unwrap();
    let length = u64::try_from(carried.len()).unwrap();
    file.write_all(&length.to_le_bytes()).unwrap();
    let digest = flightproof_core::Digest::of(&fs::read(&program).unwrap());
    (program.display().to_string(), digest.to_string())
}

/// Flies a plan of the workspace with another program, and more of it changed.
fn flown(
    environment: &Environment,
    plan: &str,
    (path, digest): (&str, &str),
    more: &[(&str, &str)],
) -> Run {
    let text = fs::read_to_string(workspace().join(format!("flights/agent/{plan}.toml"))).unwrap();
    let named = text.lines().find_map(|line| line.strip_prefix("sha256 = "));
    let mut changes = vec![
        ("fixtures/agent/worker.sh", path),
        (named.unwrap().trim_matches('"'), digest),
    ];
    changes.extend(more);
    let plan = environment.changed(plan, &changes);
    environment.agent(&plan, &[])
}

fn with_native(environment: &Environment, plan: &str) -> Run {
    let (path, digest) = native(environment);
    flown(environment, plan, (&path, &digest), &[])
}

#[test]
fn a_program_of_two_hundred_megabytes_that_finds_itself_in_proc_is_flown() {
    let environment = machine();
    let run = with_native(&environment, "honest-fix");
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(run.stdout.contains("as the plan expects"), "{}", run.text);
    assert_eq!(environment.money(), (PAID, 0));
    assert_eq!(environment.report()["attempts"][0]["version"], "2.1.266");
    environment.nothing_is_left();
}

#[test]
fn a_native_program_finds_no_way_out_either() {
    let environment = machine();
    let run = with_native(&environment, "escape");
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(!Path::new("/tmp/agent-canary").exists());
    environment.nothing_is_left();
}

/// The stand-in as a program that reports no cost: it speaks of itself and of its end as `codex`
/// does.
fn without_a_cost(environment: &Environment) -> (String, String) {
    let text = fs::read_to_string(workspace().join("fixtures/agent/worker.sh")).unwrap();
    let events = r#"printf '%s\n' '{"type":"thread.started","thread_id":"t"}' '{"type":"turn.started"}' '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}'"#;
    let claude = r#"result success false 0.5331585 4 completed '"end_turn"'"#;
    let changed = text
        .replace("2.1.266 (Claude Code)", "codex-cli 0.40.0")
        .replace(
            &format!("success() {{ {claude}; }}"),
            &format!("success() {{ {events}; }}"),
        );
    assert!(changed.contains(events));
    let path = environment.write("codex", &changed);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let digest = flightproof_core::Digest::of(changed.as_bytes()).to_string();
    (path, digest)
}

/// What is held for a run of it: a budget of one dollar, and the dearest answer.
const HELD: u64 = 11_000_000;

#[test]
fn a_program_that_reports_no_cost_costs_its_whole_hold_and_the_certificate_says_so() {
    let environment = machine();
    let (path, digest) = without_a_cost(&environment);
    let run = flown(
        &environment,
        "honest-fix",
        (&path, &digest),
        &[
            ("\"claude\"", "\"codex\""),
            ("claude-opus-5", "gpt-5-codex"),
            (
                "tools = [\"Bash\", \"Edit\", \"Read\"]",
                "metering = \"unmetered\"",
            ),
            (
                "wall_seconds = 60",
                "wall_seconds = 60\nmetering = \"unmetered\"",
            ),
        ],
    );
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(environment.money(), (HELD, 0));
    let paid = environment.predicate()["inputs"]["spend"]["runs"][0].clone();
    assert_eq!(paid["metering"], "unmetered");
    assert_eq!(paid["settled"], HELD);
    assert_eq!(paid["reserved"], HELD);
    assert!(paid.get("turns").is_none() && paid["models"].as_object().unwrap().is_empty());
    environment.nothing_is_left();
}
