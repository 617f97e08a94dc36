//! `flights witness check`: cases that contradict each other, waver, or have no teeth.

use crate::environment::Environment;
use insta::assert_snapshot;

/// A program that says how long its argument is, and that draws lots.
const PROGRAM: &str = r#"use std::hash::{BuildHasher, Hasher};
fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    if word == "lots" {
        println!("{}", std::collections::hash_map::RandomState::new().build_hasher().finish());
    } else if word.len() > 3 {
        println!("long");
    } else {
        println!("short");
    }
}
"#;

const CASES: &str = r#"{"id":"four","args":["four"],"expect":{"exit":0,"stdout":"long\n"}},
    {"id":"two","args":["ab"],"expect":{"exit":0,"stdout":"short\n"}},
    {"id":"two-again","args":["ab"],"expect":{"exit":0,"stdout":"short\n"}},
    {"id":"one","args":["a"],"expect":{"exit":0,"stdout":"short\n"}}"#;

fn witness(cases: &str) -> String {
    format!(r#"{{"schema":"flightproof/witness/1","bin":"words","cases":[{cases}]}}"#)
}

fn with_words() -> Environment {
    let environment = Environment::new();
    environment.share_cache();
    environment.write(
        "repo/Cargo.toml",
        "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    environment.write(
        "repo/Cargo.lock",
        "version = 4\n\n[[package]]\nname = \"words\"\nversion = \"0.1.0\"\n",
    );
    environment.write("repo/src/main.rs", PROGRAM);
    environment
}

#[test]
fn a_witness_that_contradicts_itself_is_unsound() {
    let environment = Environment::new();
    let sound = environment.write("w.json", &witness(CASES));
    assert_snapshot!(environment.flights(&["witness", "check", &sound]).text, @r"
    exit 0
    --- stdout
    4 cases, private
    same       two-again asks what two asks
    not tried on any program: name one with --repo DIR
    ");
    let other = r#",{"id":"other","args":["ab"],"expect":{"exit":0,"stdout":"long\n"}}"#;
    let file = environment.write("v.json", &witness(&format!("{CASES}{other}")));
    assert_snapshot!(environment.flights(&["witness", "check", &file]).text, @r"
    exit 20
    --- stdout
    5 cases, private
    same       two-again asks what two asks
    not tried on any program: name one with --repo DIR
    REFUSED at witness: flights/WITNESS_UNSOUND: 1 finding, such as two and other ask the same and expect different answers
      hint: take the cases that are named out of the witness, or correct them
    ");
    let json = environment.flights(&["witness", "check", &file, "--format", "json"]);
    assert_eq!((json.code, &json.json()["sound"]), (20, &false.into()));
}

#[test]
fn inputs_that_a_flight_generates_are_told_beside_the_cases() {
    let environment = Environment::new();
    let differential =
        r#","differential":{"inputs":9,"args":[["{word}"]],"rules":{"word":["a","b"]}}}"#;
    let own = witness("");
    let file = environment.write(
        "w.json",
        &format!("{}{differential}", &own[..own.len() - 1]),
    );
    let run = environment.flights(&["witness", "check", &file]);
    assert_eq!(run.code, 0, "{}", run.text);
    let told = "0 cases, and inputs that are generated in a flight alone, private\n";
    assert!(run.stdout.contains(told), "{}", run.text);
}

#[test]
fn cases_that_waver_or_have_no_teeth_are_named_and_what_is_missing_is_proposed() {
    let environment = with_words();
    let lots = r#",{"id":"lots","args":["lots"],"expect":{"exit":0}},
        {"id":"wrong","args":["abcde"],"expect":{"exit":0,"stdout":"short\n"}}"#;
    let file = environment.write("w.json", &witness(&format!("{CASES}{lots}")));
    let repo = environment.path("repo");
    let run = environment.flights(&[
        "witness",
        "check",
        &file,
        "--repo",
        repo.to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert_eq!(run.code, 20, "{}", run.text);
    let report = run.json();
    let tree = &report["tree"];
    assert_eq!(tree["flaky"], serde_json::json!(["lots"]), "{}", run.text);
    assert_eq!(tree["missed"][0]["name"], "wrong");
    let alone = |case: &str| {
        let cases = tree["cases"].as_array().unwrap().iter();
        let mut found = cases.filter(|tooth| tooth["case"] == case);
        found.next().unwrap()["alone"].as_u64().unwrap()
    };
    assert!(alone("four") > 0, "{}", run.text);
    assert_eq!((alone("two"), alone("two-again")), (0, 0));
    // No word of three letters: `> 3` and `>= 3` are one to these cases.
    let proposed: Vec<&str> = tree["proposals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["mutant"].as_str().unwrap())
        .collect();
    assert!(
        proposed.contains(&"src/main.rs:6:26 relational > -> >="),
        "{proposed:?}"
    );
}

#[test]
fn an_input_that_would_notice_what_no_case_notices_is_proposed_and_no_answer_with_it() {
    let environment = with_words();
    let repo = environment.path("repo");
    let survivor = "src/main.rs:6:26 relational > -> >=";
    for (words, expected) in [
        (
            r#""ab","abc","abcd""#,
            Some(serde_json::json!({"args": ["abc"], "stdin": ""})),
        ),
        // The twin: words that the mutant answers alike.
        (r#""ab","abcd","abcde""#, None),
    ] {
        let grammar = format!(
            r#"],"differential":{{"inputs":9,"args":[["{{word}}"]],"rules":{{"word":[{words}]}}}}}}"#
        );
        let text = witness(CASES);
        let text = format!("{}{grammar}", text.strip_suffix("]}").unwrap());
        let file = environment.write("w.json", &text);
        let repo = repo.to_str().unwrap();
        let run = environment.flights(&[
            "witness", "check", &file, "--repo", repo, "--format", "json",
        ]);
        assert_eq!(run.code, 0, "{}", run.text);
        let report = run.json();
        let proposals = report["tree"]["proposals"].as_array().unwrap();
        let found = proposals.iter().find(|p| p["mutant"] == survivor).unwrap();
        assert_eq!(found.get("input"), expected.as_ref(), "{}", run.text);
    }
}
