//! The program on a container engine: the one of the environment. These fail, not skip, without it.

use crate::environment::{Environment, Run, workspace};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// The session image of the engine, built if it is not there.
fn image() -> String {
    let output = Command::new(workspace().join("scripts/session-image"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What stands on the engine: containers of this environment alone, for other tests fly at the same
/// time; and every volume and network, for no flight has any.
fn engine(environment: &Environment) -> [String; 3] {
    let ledger = std::fs::read_to_string(environment.state().join("engine-ledger"));
    let containers = ledger.map_or_else(
        |_none_yet| String::new(),
        |ledger| {
            let filter = format!("label=flightproof.ledger={ledger}");
            docker(&["ps", "-aq", "--filter", &filter])
        },
    );
    [
        containers,
        docker(&["volume", "ls", "-q"]),
        docker(&["network", "ls", "-q"]),
    ]
}

/// A command with the engine of this environment, where the others have none.
fn command(environment: &Environment, args: &[&str]) -> Command {
    let mut command = environment.command(args);
    command.env_remove("DOCKER_HOST");
    for name in ["DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

fn live(environment: &Environment, args: &[&str]) -> Run {
    environment.run(&mut command(environment, args))
}

fn project() -> (Environment, String) {
    let environment = crate::plans::project();
    let root = environment.path("root").to_str().unwrap().to_owned();
    (environment, root)
}

#[test]
fn a_flight_is_flown_live_recorded_and_replayed_without_the_engine() {
    let (environment, root) = project();
    let image = image();
    let before = engine(&environment);
    let run = live(
        &environment,
        &[
            "run", "--root", &root, "--live", "--image", &image, "--record", "--out", "out",
        ],
    );
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(engine(&environment), before);
    // The engine's own facts are in the recording, and the image is what the certificate names.
    let transcript =
        environment.path("root/flights/recordings/pricing.live.flight/transcript.jsonl");
    let transcript = std::fs::read_to_string(transcript).unwrap();
    let digest = image.trim_start_matches("sha256:");
    for fact in ["\"backend\":\"docker\"", "interface 1.", digest] {
        assert!(transcript.contains(fact), "{fact}");
    }
    let pinned = environment.path("root/flights/recordings/recorder.pub");
    std::fs::copy(environment.public_key(), pinned).unwrap();
    let replay = environment.flights(&["run", "--root", &root]);
    assert_eq!(replay.code, 0, "{}", replay.text);
}

#[test]
fn a_commit_is_certified_and_admitted_on_the_engine() {
    let environment = Environment::with_pricing();
    let image = image();
    let before = engine(&environment);
    let witness = workspace().join("flights/witness/pricing.json");
    let repo = environment.path("repo").to_str().unwrap().to_owned();
    let run = live(
        &environment,
        &[
            "certify",
            "--repo",
            &repo,
            "--baseline",
            "main",
            "--candidate",
            "candidate",
            "--witness",
            witness.to_str().unwrap(),
            "--session",
            "docker",
            "--image",
            &image,
            "--admit",
            "release",
            "--out",
            "out",
        ],
    );
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(
        environment.git(&["rev-parse", "release"]),
        environment.git(&["rev-parse", "candidate"])
    );
    assert_eq!(engine(&environment), before);
}

#[test]
fn the_doctor_names_the_engine_and_its_image() {
    let environment = Environment::new();
    let image = image();
    let run = live(&environment, &["doctor", "--format", "json"]);
    let report = run.json();
    let engine = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "engine")
        .unwrap()
        .clone();
    assert_eq!(engine["ok"], true, "{engine}");
    let detail = engine["detail"].as_str().unwrap();
    assert!(
        detail.contains("interface 1.") && detail.contains(&image),
        "{detail}"
    );
}

#[test]
fn an_image_that_the_engine_does_not_have_is_unfit_and_leaves_nothing() {
    let (environment, root) = project();
    let before = engine(&environment);
    let absent = "0".repeat(64);
    let run = live(
        &environment,
        &[
            "run", "--root", &root, "--live", "--image", &absent, "--format", "json",
        ],
    );
    assert_eq!(run.code, 21, "{}", run.text);
    assert_eq!(
        run.json()["flights"][0]["failure"]["code"],
        "session/IMAGE_UNFIT"
    );
    assert_eq!(engine(&environment), before);
}

#[test]
fn what_a_killed_flight_left_on_the_engine_is_reaped() {
    let (environment, root) = project();
    let image = image();
    let mut flying = command(
        &environment,
        &["run", "--root", &root, "--live", "--image", &image],
    )
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let lines = BufReader::new(flying.stderr.take().unwrap()).lines();
    let opened = lines
        .map_while(Result::ok)
        .any(|line| line.contains("  open "));
    assert!(opened);
    flying.kill().unwrap();
    flying.wait().unwrap();
    let run = live(&environment, &["reap", "--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let ledger = environment.state().join("engine-ledger");
    let ledger = std::fs::read_to_string(ledger).unwrap();
    let filter = format!("label=flightproof.ledger={ledger}");
    assert_eq!(docker(&["ps", "-aq", "--filter", &filter]), "");
    // Nothing waits for it: the same flight flies at once.
    let again = live(
        &environment,
        &["run", "--root", &root, "--live", "--image", &image],
    );
    assert_eq!(again.code, 0, "{}", again.text);
    let records = std::fs::read_dir(environment.state().join("engines")).unwrap();
    assert!(
        records.count() <= 1,
        "a record is kept while a container may still be on its way"
    );
}

#[test]
fn a_run_of_all_ways_is_one_table_with_evidence_for_each() {
    let (environment, root) = project();
    let image = image();
    let run = live(
        &environment,
        &[
            "run", "--root", &root, "--all", "--image", &image, "--out", "out", "--format", "json",
        ],
    );
    assert_eq!(run.code, 0, "{}", run.text);
    let document = run.json();
    let flights = document["flights"].as_array().unwrap();
    let ways: Vec<_> = flights
        .iter()
        .map(|flight| flight["way"].as_str().unwrap())
        .collect();
    assert_eq!(ways, ["local", "live"]);
    for way in ways {
        let verdict = environment
            .path("work/out")
            .join(way)
            .join("pricing/verdict.json");
        assert!(verdict.exists(), "{way}");
    }
}
