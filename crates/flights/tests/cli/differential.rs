//! Differential witnesses: generated inputs, answered by the candidate as by the baseline, except where
//! a difference is declared.

use crate::environment::{Environment, Run, workspace};
use crate::lines::claim;
use crate::recertify::recertify;
use crate::review::review_under;
use crate::verify::{POLICY, verify};
use serde_json::{Value, json};
use std::fs;

/// The cases of the pricing program with a grammar of orders. The fix is meant to change what small and
/// large orders cost.
fn witness(environment: &Environment, edit: impl FnOnce(&mut Value)) -> String {
    let file = workspace().join("flights/witness/pricing.json");
    let mut witness: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    witness["differential"] = json!({
        "inputs": 40, "args": [[]], "stdin": "{space}{quantity}\n",
        "rules": {
            "quantity": [{"from": 0, "to": 9}, {"from": 10, "to": 99}, {"from": 100, "to": 9999}, "{word}"],
            "word": ["seven", "-{quantity}", "1e3", ""], "space": ["", " "],
        },
        "differs": [
            {"reason": "a fee for few", "where": {"quantity": {"from": 1, "to": 9}}},
            {"reason": "less for many", "where": {"quantity": {"from": 100, "to": 9999}}},
        ],
    });
    edit(&mut witness);
    environment.write("differential.json", &witness.to_string())
}

fn refused(run: &Run, expected: &str) {
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(run.stdout.contains(expected), "{}", run.text);
}

#[test]
fn a_change_that_differs_only_where_declared_is_certified_as_what_it_is() {
    let environment = Environment::with_pricing();
    let witness = witness(&environment, |_| {});
    let run = environment.certify("candidate", &["--witness", &witness]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(
        run.stderr
            .contains("the generated inputs ran on the baseline"),
        "{}",
        run.text
    );
    assert_eq!(claim(&environment, "witness/kind"), "differential");
    let drawn = claim(&environment, "witness/differential");
    let count = |name: &str| drawn[name].as_u64().unwrap();
    assert_eq!(count("generated") + count("declared"), 40, "{drawn}");
    assert!(count("generated") > 5 && count("declared") > 5, "{drawn}");
    let cases = claim(&environment, "witness/cases").as_u64().unwrap();
    assert_eq!(cases, 9 + count("generated"));
    // A policy that knows of cases alone does not let it count.
    environment.write("policy.json", POLICY);
    let key = environment.public_key();
    let run = verify(&environment, &key, "candidate", &[]);
    assert_eq!(run.code, 13, "{}", run.text);
    let code = "certifier/WITNESS_KIND_NOT_ALLOWED: differential";
    assert!(run.stdout.contains(code), "{}", run.text);
    let named = "\"witness_kinds\":[\"differential\"],\"waivers_max\"";
    environment.write("policy.json", &POLICY.replace("\"waivers_max\"", named));
    let run = verify(&environment, &key, "candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    // Whoever has the opening draws the same inputs again.
    let run = recertify(&environment, &key, &["--witness", &witness]);
    assert_eq!(run.code, 0, "{}", run.text);
    // Whoever reviews has the file alone.
    for opened in [true, false] {
        if !opened {
            fs::remove_file(environment.path("out/opening.json")).unwrap();
        }
        let run = review_under(&environment, &["--witness", &witness]);
        assert_eq!(run.code, 0, "{}", run.text);
        assert!(run.stdout.contains(" mutants\n"), "{}", run.text);
    }
    let pricing = workspace().join("flights/witness/pricing.json");
    let run = review_under(&environment, &["--witness", pricing.to_str().unwrap()]);
    assert_eq!(run.code, 13, "{}", run.text);
}

#[test]
fn a_difference_that_nobody_declared_is_refused_and_its_input_shown_where_the_witness_is_public() {
    let environment = Environment::with_pricing();
    // What the fix is meant to change, without a declaration; a price beside it that nobody asked for.
    environment.candidate_edit("dearer", |text| {
        text.replace("        price\n    }", "        price + 1\n    }")
    });
    let undeclared = |witness: &mut Value| witness["differential"]["differs"] = json!([]);
    let code = "REFUSED at correctness: certifier/UNDECLARED_DIFFERENCE: case generated-";
    let whole = witness(&environment, undeclared);
    refused(
        &environment.certify("candidate", &["--witness", &whole]),
        code,
    );
    let only_generated = |witness: &mut Value| witness["cases"] = json!([]);
    let private = witness(&environment, only_generated);
    let run = environment.certify("dearer", &["--witness", &private]);
    refused(&run, code);
    assert!(!run.text.contains("input:"), "{}", run.text);
    let public = witness(&environment, |witness| {
        only_generated(witness);
        witness["public"] = json!(true);
    });
    let run = environment.certify("dearer", &["--witness", &public]);
    refused(&run, code);
    assert!(
        run.text.contains("input: arguments [], standard input"),
        "{}",
        run.text
    );
    // Equal answers alone do not show that anybody would notice another one: what is declared to differ
    // is judged by cases, or by nobody.
    let run = environment.certify("candidate", &["--witness", &private]);
    refused(&run, "REFUSED at mutation: certifier/MUTANTS_SURVIVED");
}

#[test]
fn a_baseline_that_wavers_or_does_not_build_is_nothing_to_compare_with() {
    let clock = "std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_nanos())";
    for (from, to, why) in [
        (
            "println!(\"{}\", total(u64::from(quantity)))",
            format!("println!(\"{{}} {{}}\", total(u64::from(quantity)), {clock})"),
            "it answers otherwise the second time",
        ),
        (
            "ExitCode::SUCCESS",
            "no_such_name".to_owned(),
            "it does not build",
        ),
    ] {
        let environment = Environment::with_pricing();
        let main = environment.path("repo/src/main.rs");
        let text = fs::read_to_string(&main).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(&main, text.replace(from, &to)).unwrap();
        environment.git(&["commit", "--quiet", "-am", "Another baseline"]);
        environment.git(&["checkout", "--quiet", "-b", "change"]);
        fs::write(&main, text).unwrap();
        environment.git(&["commit", "--quiet", "-am", "Back"]);
        let witness = witness(&environment, |_| {});
        let run = environment.certify("change", &["--witness", &witness]);
        assert_eq!(run.code, 20, "{}", run.text);
        let code = "REFUSED at baseline: certifier/BASELINE_UNFIT:";
        assert!(
            run.stdout.contains(code) && run.stdout.contains(why),
            "{}",
            run.text
        );
        assert_eq!(environment.listing("tmp").len(), 0);
    }
}
