//! `flights explain`, and the command line itself.

use crate::environment::Environment;
use flightproof_certifier::LineClass;
use flightproof_certifier::mutation::Silence;
use flightproof_flights::registry;
use insta::assert_snapshot;

#[test]
fn every_code_is_explained_in_full_and_by_its_short_name() {
    let environment = Environment::new();
    let all = environment.flights(&["explain", "--format", "json"]);
    assert_eq!(all.code, 0);
    let codes = all.json()["codes"].as_array().unwrap().clone();
    assert_eq!(codes.len(), registry::all().len());
    for code in codes {
        let name = code["code"].as_str().unwrap();
        let run = environment.flights(&["explain", name]);
        assert_eq!(run.code, 0, "{}", run.text);
        for part in ["code", "happened", "why", "todo"] {
            assert!(
                run.stdout.contains(code[part].as_str().unwrap()),
                "{}",
                run.text
            );
        }
    }
}

#[test]
fn a_code_is_explained() {
    let environment = Environment::new();
    assert_snapshot!(environment.flights(&["explain", "KEY_MISSING"]).text, @r#"
    exit 0
    --- stdout
    flights/KEY_MISSING
      what happened  there is no key to sign the certificate with
      why refused    an unsigned certificate proves nothing to anybody else
      what to do     make one with `flights key new`, or name one with --key FILE
      exit status    20 (configuration)
    "#);
    let run = environment.flights(&["explain", "flights/KEY_MISSING", "--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
    {"codes":[{"code":"flights/KEY_MISSING","exit":20,"fault":"configuration","happened":"there is no key to sign the certificate with","todo":"make one with `flights key new`, or name one with --key FILE","why":"an unsigned certificate proves nothing to anybody else"}],"schema":"flightproof/explain/1"}
    "#);
}

#[test]
fn a_kind_of_code_that_no_mutant_judges_and_a_class_of_lines_are_explained_by_their_names() {
    let environment = Environment::new();
    let told = |words: &[&str]| environment.flights(&[&["explain"], words].concat());
    let run = told(&["rebound"]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(
        run.stdout.starts_with("rebound\n  what was seen  "),
        "{}",
        run.text
    );
    for kind in Silence::ALL {
        let json = told(&[kind.name(), "--format", "json"]).json();
        assert_eq!(json["kinds"][0]["kind"], kind.name());
        assert_eq!(json["codes"], serde_json::json!([]));
        let listed = told(&["UNJUDGED_CODE"]).stdout.contains(kind.seen());
        assert_eq!(listed, kind.must_be_waived(), "{}", kind.name());
    }
    for class in LineClass::ALL {
        let json = told(&[class.name(), "--format", "json"]).json();
        assert_eq!(json["kinds"][0]["kind"], class.name());
        assert_eq!(json["kinds"][0]["seen"], class.seen());
    }
    let near = told(&["rebond"]);
    assert_eq!(near.code, 2, "{}", near.text);
    assert!(
        near.stdout.contains("did you mean rebound?"),
        "{}",
        near.text
    );
}

#[test]
fn an_unknown_code_is_a_usage_error_and_shown_escaped() {
    let environment = Environment::new();
    let run = environment.flights(&["explain", "NO_SUCH\u{1b}[2J", "--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/UNKNOWN_CODE","stage":"explain","detail":"NO_SUCH\\u{1b}[2J","hint":"run `flights explain` to see all of them"}
    "#);
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let environment = Environment::new();
    for args in [
        &[][..],
        &["certify"],
        &["fly"],
        &["run", "--local", "--live"],
        &["run", "--record"],
        &["run", "--image", "x"],
    ] {
        let run = environment.flights(args);
        assert_eq!(run.code, 2, "{}", run.text);
        assert!(run.stdout.is_empty(), "{}", run.text);
    }
    assert_eq!(environment.flights(&["--help"]).code, 0);
    assert_eq!(environment.flights(&["--version"]).code, 0);
}

#[test]
fn a_name_that_several_crates_use_explains_all_of_them() {
    let environment = Environment::new();
    let run = environment.flights(&["explain", "TRAILING_BYTES", "--format", "json"]);
    assert!(
        run.json()["codes"].as_array().unwrap().len() > 1,
        "{}",
        run.text
    );
    for code in run.json()["codes"].as_array().unwrap() {
        assert!(code["code"].as_str().unwrap().ends_with("/TRAILING_BYTES"));
    }
}
