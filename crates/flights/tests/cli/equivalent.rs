//! Survivors that are the same program: proven by the compiler, said on the certificate, bounded by the
//! policy. What only looks alike stays a survivor.

use crate::environment::{Environment, Run, workspace};
use crate::lines::claim;
use crate::verify::{POLICY, verify};
use serde_json::{Value, json};
use std::fs;

/// A bound on what an order costs.
const BOUND: &str = "least(quantity * UNIT_PRICE, 1_000_005)";
/// Orders at the bound and around it, with what they cost.
const BOUNDED: &[(u64, u64)] = &[(3_999, 899_775), (4_000, 900_000), (5_000, 900_005)];
/// Which of two equal numbers it returns, nobody can tell.
const LEAST: &str =
    "\nfn least(one: u64, other: u64) -> u64 {\n    if one < other { one } else { other }\n}\n";

/// The cases of the pricing program, and more orders with what they cost.
fn witness(environment: &Environment, more: &[(u64, u64)]) -> String {
    let file = workspace().join("flights/witness/pricing.json");
    let mut witness: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let cases = witness["cases"].as_array_mut().unwrap();
    cases.extend(more.iter().map(|(quantity, cost)| {
        json!({"id": format!("of-{quantity}"), "args": [], "stdin": format!("{quantity}\n"), "files": {},
               "env": {}, "expect": {"exit": 0, "stdout": format!("{cost}\n")}})
    }));
    environment.write("more.json", &witness.to_string())
}

fn edited(environment: &Environment, name: &str, price: &str, more: &str) {
    environment.candidate_edit(name, |text| {
        let own = "quantity * UNIT_PRICE;";
        assert!(text.contains(own));
        text.replace(own, &format!("{price};")) + more
    });
}

fn survivors(run: &Run) -> Vec<String> {
    let verdict = run.json();
    assert_eq!(
        verdict["code"], "certifier/MUTANTS_SURVIVED",
        "{}",
        run.text
    );
    let notes = verdict["notes"].as_array().unwrap().iter();
    let mutant = |note: &Value| {
        let waiver: Value = serde_json::from_str(note.as_str().unwrap()).unwrap();
        waiver["mutant"].as_str().unwrap().to_owned()
    };
    notes.map(mutant).collect()
}

#[test]
fn a_survivor_that_is_the_same_program_holds_nobody_up_and_is_counted_apart() {
    let environment = Environment::with_pricing();
    edited(&environment, "bounded", BOUND, LEAST);
    let witness = witness(&environment, BOUNDED);
    let run = environment.certify("bounded", &["--witness", &witness]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(
        run.stdout.contains(" waived, _ equivalent") || run.stdout.contains(" 1 equivalent"),
        "{}",
        run.text
    );
    let mutation = claim(&environment, "mutation");
    assert_eq!(
        (&mutation["equivalent"], &mutation["survived"]),
        (&json!(1), &json!(0))
    );
    let report = fs::read_to_string(environment.path("out/mutation-report.json")).unwrap();
    assert!(report.contains("equivalent: compiled alone, it is the same program"));

    environment.write("policy.json", POLICY);
    let key = environment.public_key();
    let run = verify(&environment, &key, "bounded", &[]);
    assert_eq!(run.code, 13, "{}", run.text);
    assert!(
        run.stdout
            .contains("certifier/EQUIVALENT_TOO_MANY: 1, at most 0 allowed"),
        "{}",
        run.text
    );
    let lenient = POLICY.replace("\"waivers_max\"", "\"equivalent_max\":1,\"waivers_max\"");
    environment.write("policy.json", &lenient);
    assert_eq!(verify(&environment, &key, "bounded", &[]).code, 0);
}

/// Here every order is below the most there can be: `<` and `<=` are one to every case, and to a compiler
/// that sees all calls.
#[test]
fn what_only_the_callers_of_a_function_make_equal_stays_a_survivor() {
    let environment = Environment::with_pricing();
    let price = format!("{BOUND} * u64::from(below(quantity, u64::MAX))");
    let below = "\nfn below(few: u64, most: u64) -> bool {\n    few < most\n}\n";
    edited(&environment, "unmet", &price, &[LEAST, below].concat());
    let witness = witness(&environment, BOUNDED);
    let run = environment.certify("unmet", &["--witness", &witness, "--format", "json"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let left = survivors(&run);
    let of = |place: &str| left.iter().filter(|one| one.contains(place)).count();
    assert_eq!(of("src/main.rs:45:9 relational < -> <="), 1, "{left:?}");
    // The one that is the same program for every caller is not among them: they were compared.
    assert_eq!(of("relational < -> <="), 1, "{left:?}");
}

/// What is printed where no case looks: each of these is another program, however alike.
#[test]
fn numbers_texts_and_tables_that_no_case_sees_are_never_proven() {
    let environment = Environment::with_pricing();
    let price = "note(quantity * UNIT_PRICE)";
    let note = "\nfn note(price: u64) -> u64 {\n    let rates = [11u64, 12, 13];\n    let share = 0.25f64;\n    let name = \"note\";\n    eprintln!(\"{name} {} {share}\", rates[(price % 3) as usize]);\n    price\n}\n";
    edited(&environment, "noted", price, note);
    let witness = witness(&environment, &[]);
    let run = environment.certify("noted", &["--witness", &witness, "--format", "json"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let left = survivors(&run);
    for text in ["0.25f64", "11u64", " 12 ", " 13 ", "\"note\""] {
        assert!(
            left.iter().any(|one| one.contains(text)),
            "{text}: {left:#?}"
        );
    }
}
