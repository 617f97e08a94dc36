//! Flights of a part of a tree.

use crate::environment::{Environment, workspace};
use crate::review::review_under;
use crate::verify::{POLICY, verify};
use flightproof_core::Bytes;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// What the pricing program needs.
const PROGRAM: [&str; 6] = [
    "--narrow",
    "Cargo.toml",
    "--narrow",
    "src",
    "--narrow",
    "Cargo.lock",
];

/// A repository with a website beside the program. The branch `program` changes the program, the
/// branch `both` the website as well.
fn monorepo() -> Environment {
    let environment = Environment::with_pricing();
    let page = |text: &str| ("website/index.html".to_owned(), format!("<p>{text}</p>\n"));
    environment.candidate("website", &BTreeMap::from([page("Prices")]));
    environment.git(&["merge", "--quiet", "--ff-only", "website"]);
    environment.candidate_edit("program", |text| text);
    environment.git(&["checkout", "--quiet", "program"]);
    environment.write("repo/website/index.html", "<p>Better prices</p>\n");
    environment.git(&[
        "commit",
        "--quiet",
        "--all",
        "--amend",
        "-m",
        "Improve both",
    ]);
    environment.git(&["branch", "--quiet", "both"]);
    environment.git(&["reset", "--quiet", "--hard", "program@{1}"]);
    environment.git(&["checkout", "--quiet", "main"]);
    environment
}

fn statement(environment: &Environment) -> Value {
    let envelope = fs::read(environment.path("out/certificate.dsse.json")).unwrap();
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    let payload: Bytes = serde_json::from_value(json!({"$bytes": envelope["payload"]})).unwrap();
    serde_json::from_slice(&payload).unwrap()
}

#[test]
fn a_narrowed_flight_keeps_both_digests_and_needs_a_policy_that_allows_it() {
    let environment = monorepo();
    let run = environment.certify("program", &PROGRAM);
    assert_eq!(run.code, 0, "{}", run.text);
    let narrowed = statement(&environment);
    let run = environment.certify("program", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let whole = statement(&environment);

    assert_eq!(narrowed["subject"], whole["subject"]);
    let (capture, build) = (
        "/predicate/inputs/capture",
        "/predicate/inputs/session-build",
    );
    let claim = narrowed.pointer(capture).unwrap()["narrowed"].clone();
    assert_eq!(claim["paths"], json!(["Cargo.lock", "Cargo.toml", "src"]));
    assert_eq!(claim["source"], narrowed.pointer(build).unwrap()["source"]);
    assert_ne!(claim["source"], narrowed["subject"][0]["digest"]["sha256"]);
    assert_eq!(whole.pointer(capture).unwrap().get("narrowed"), None);

    let run = environment.certify("program", &PROGRAM);
    assert_eq!(run.code, 0, "{}", run.text);
    environment.write("policy.json", POLICY);
    let key = environment.public_key();
    let run = verify(&environment, &key, "program", &[]);
    assert_snapshot!(run.text, @"
    exit 13
    --- stdout
    REFUSED at verify: certifier/NARROWED_NOT_ALLOWED: 3 paths flew; allow.narrowed is not set
      hint: set allow.narrowed if the part stands for itself, or fly the whole tree
    ");
    let lenient = POLICY.replace("\"waivers_max\"", "\"narrowed\":true,\"waivers_max\"");
    environment.write("policy.json", &lenient);
    assert_eq!(verify(&environment, &key, "program", &[]).code, 0);
}

/// What a file that did not fly takes in is no part of what did.
#[test]
fn a_review_looks_at_what_flew() {
    let environment = Environment::with_pricing();
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let taker = "const N: &str = include_str!(\"../src/notes.csv\");\n";
    let files = [file("tools/x.rs", taker), file("src/notes.csv", "1\n")];
    environment.candidate("tools", &files.into());
    environment.git(&["merge", "--quiet", "--ff-only", "tools"]);
    let fixed = workspace().join("fixtures/pricing/candidate/src/main.rs");
    let fixed = fs::read_to_string(fixed).unwrap();
    let files = [file("src/main.rs", &fixed), file("src/notes.csv", "2\n")];
    environment.candidate("noted", &files.into());
    let run = environment.certify("noted", &PROGRAM);
    assert_eq!(run.code, 0, "{}", run.text);
    let lenient = POLICY.replace("\"waivers_max\"", "\"narrowed\":true,\"waivers_max\"");
    environment.write("policy.json", &lenient);
    let witness = workspace().join("flights/witness/pricing.json");
    let witness = ["--witness", witness.to_str().unwrap(), "--format", "json"];
    let shown = review_under(&environment, &witness).json();
    let notes = shown["files"].as_array().unwrap().iter();
    let mut notes = notes.filter(|file| file["path"] == "src/notes.csv");
    let lines = notes.next().unwrap()["lines"].as_array().unwrap().clone();
    assert!(
        lines.iter().any(|line| line["class"] == "data"),
        "{lines:?}"
    );
}

#[test]
fn a_change_that_would_not_fly_is_refused_and_so_is_a_path_that_names_nothing() {
    let environment = monorepo();
    let run = environment.certify("both", &PROGRAM);
    assert_snapshot!(run.stdout, @r#"
    REFUSED at capture: certifier/NARROWED_CHANGE: "website/index.html" changed and does not fly
      hint: let the path fly as well
    "#);
    let run = environment.certify(
        "program",
        &[&PROGRAM[..], &["--narrow", "sources"]].concat(),
    );
    assert_snapshot!(run.stdout, @r#"
    REFUSED at capture: certifier/NARROWED_NOTHING: "sources"
      hint: correct the path
    "#);
    let run = environment.certify("program", &["--narrow", "src", "--narrow", "src/main.rs"]);
    assert_snapshot!(run.stdout, @r#"
    REFUSED at plan: certifier/NARROWING_INVALID: "src/main.rs" lies within "src"
      hint: name each path once, and a directory instead of what lies below it
    "#);
}
