//! `flights run` and `list` over the recorded flights of this repository, in every form.

use crate::environment::{Environment, Run, copy, workspace};
use crate::schemas::assert_valid;
use flightproof_flights::command::SCHEMAS;
use serde_json::Value;
use std::fs;

fn replay(environment: &Environment, more: &[&str]) -> Run {
    let root = workspace();
    let mut args = vec!["run", "--root", root.to_str().unwrap()];
    args.extend(more);
    environment.flights(&args)
}

#[test]
fn all_recorded_flights_replay_in_the_same_order_however_many_fly_together() {
    let environment = Environment::new();
    let names = |jobs: &str| {
        let run = replay(&environment, &["--format", "json", "--jobs", jobs]);
        assert_eq!(run.code, 0, "{}", run.text);
        let document = run.json();
        assert_valid("run", &document);
        let flights = document["flights"].as_array().unwrap();
        let names: Vec<String> = flights
            .iter()
            .map(|f| f["name"].as_str().unwrap().to_owned())
            .collect();
        names
    };
    let one = names("1");
    assert_eq!(names("8"), one);
    // No recording lies there that nothing replays, and each kind is there.
    let kept = fs::read_dir(workspace().join("flights/recordings")).unwrap();
    let kept = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let kept: Vec<String> = kept.filter(|name| name.ends_with(".flight")).collect();
    assert_eq!(one.len(), kept.len(), "{one:?} {kept:?}");
    for (kind, least) in [(".flight", 27), (".live.flight", 3)] {
        let found = kept.iter().filter(|name| name.ends_with(kind)).count();
        assert!(found >= least, "{found} {kind}");
    }
    let agents = one.iter().filter(|name| name.starts_with("agent-"));
    assert!(agents.count() >= 6, "{one:?}");
}

#[test]
fn a_failing_flight_is_told_in_every_form_with_the_command_that_flies_it_again() {
    let environment = Environment::new();
    let root = environment.path("root");
    let from = workspace();
    for folder in ["flights/witness", "fixtures/tariff", "fixtures/pricing"] {
        copy(&from.join(folder), &root.join(folder));
    }
    let recordings = root.join("flights/recordings");
    copy(
        &from.join("flights/recordings/honest-library.flight"),
        &recordings.join("honest-library.flight"),
    );
    fs::copy(
        from.join("flights/recordings/recorder.pub"),
        recordings.join("recorder.pub"),
    )
    .unwrap();
    let plan = fs::read_to_string(from.join("flights/honest-library.toml")).unwrap();
    // Another sentence is another plan than the recorded one.
    fs::write(
        root.join("flights/honest-library.toml"),
        plan.replace("about = \"", "about = \"<b>"),
    )
    .unwrap();
    fs::write(root.join("flights/missing.toml"), "nonsense").unwrap();
    let root = root.to_str().unwrap();
    let run = |form: &str| environment.flights(&["run", "--root", root, "--format", form]);

    let people = run("human");
    assert_eq!(people.code, 11, "{}", people.text);
    assert!(people.stdout.contains(&format!(
        "| again: flights run --root {root} honest-library"
    )));
    assert!(
        people
            .stdout
            .contains("flights/TRANSCRIPT_DIVERGED at plan: "),
        "{}",
        people.text
    );

    let json = run("json").json();
    assert_valid("run", &json);
    assert_eq!(
        (json["passed"].as_u64(), json["failed"].as_u64()),
        (Some(0), Some(2))
    );

    let jsonl = run("jsonl");
    let lines: Vec<Value> = jsonl
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[2]["schema"], "flightproof/run/1");

    let junit = run("junit");
    assert!(
        junit.stdout.contains("tests=\"2\" failures=\"2\""),
        "{}",
        junit.text
    );
    let github = run("github");
    assert_eq!(
        github
            .stdout
            .lines()
            .filter(|l| l.starts_with("::error file=flights/"))
            .count(),
        2
    );
    let sarif = run("sarif").json();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 2);
}

#[test]
fn the_list_says_what_each_plan_shows_and_whether_it_is_recorded() {
    let environment = Environment::new();
    let root = workspace();
    let list = |form: &str| {
        environment.flights(&["list", "--root", root.to_str().unwrap(), "--format", form])
    };
    let json = list("json").json();
    assert_valid("list", &json);
    let plans = json["plans"].as_array().unwrap();
    assert!(plans.iter().all(|plan| plan["recorded"] == true), "{json}");
    let people = list("human");
    assert_eq!(people.stdout.lines().count(), plans.len());
    assert!(
        people
            .stdout
            .contains("hostile-network              recorded  certifier/CASE_FORBIDDEN_CALL")
    );

    environment.write("root/flights/broken.toml", "name = 1");
    let broken = environment.path("root");
    let run = environment.flights(&["list", "--root", broken.to_str().unwrap()]);
    assert_eq!(run.code, 20, "{}", run.text);
    assert!(run.stdout.starts_with("broken"), "{}", run.text);
}

#[test]
fn there_is_a_schema_for_what_commands_print_and_it_holds() {
    let environment = Environment::new();
    let names = environment.flights(&["schema"]);
    assert_eq!(names.stdout.lines().count(), SCHEMAS.len());
    for (name, text) in SCHEMAS {
        let printed = environment.flights(&["schema", name]);
        assert_eq!(printed.stdout.trim_end(), text.trim_end());
    }
    let unknown = environment.flights(&["schema", "nonsense"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown
            .stdout
            .contains("REFUSED at schema: flights/SCHEMA_UNKNOWN")
    );
    let near = environment.flights(&["schema", "verdct"]);
    assert!(
        near.stdout.contains("; did you mean verdict?"),
        "{}",
        near.text
    );

    let root = workspace();
    let place = |name: &str| {
        let path = root.join(format!("flights/recordings/{name}.flight"));
        path.to_str().unwrap().to_owned()
    };
    let (a, b) = (place("honest-library"), place("honest-pricing"));
    let document = |args: &[&str]| {
        environment
            .flights(&[args, &["--format", "json"]].concat())
            .json()
    };
    assert_valid("timeline", &document(&["show", &a]));
    assert_valid("exchange", &document(&["show", &a, "--line", "6"]));
    assert_valid("diff", &document(&["diff", &a, &b]));
    assert_valid("explain", &document(&["explain"]));
    assert_valid("verdict", &document(&["show", "nowhere"]));
}

#[test]
fn completions_and_manual_pages_say_what_the_program_says() {
    let environment = Environment::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = environment.flights(&["paper", "completions", shell]);
        assert_eq!(run.code, 0, "{}", run.text);
        assert!(run.stdout.contains("transcript"), "{shell}");
    }
    let out = environment.path("man");
    let run = environment.flights(&["paper", "man", "-o", out.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.text);
    let pages = fs::read_dir(&out).unwrap().count();
    assert!(pages > 10, "{pages}");
    let page = fs::read_to_string(out.join("flights-run.1")).unwrap();
    assert!(page.contains("junit"), "{page}");
}

#[test]
fn a_run_of_all_ways_lacks_none_of_them() {
    let environment = Environment::with_pricing();
    let root = workspace();
    let run = |more: &[&str]| {
        let args = [
            "run",
            "--root",
            root.to_str().unwrap(),
            "--format",
            "json",
            "honest-c",
        ];
        environment.flights(&[&args, more].concat())
    };
    // No engine answers here: that is said before anything flies, and nothing is passed over.
    let lacking = run(&["--all"]);
    assert_eq!(lacking.code, 21, "{}", lacking.text);
    assert_eq!(lacking.json()["code"], "session/ENGINE_MISSING");
    for wrong in [
        &["--all", "--record"][..],
        &["--all", "--local"],
        &["--local", "--image", "x"],
    ] {
        assert_eq!(run(wrong).code, 2, "{wrong:?}");
    }
}
