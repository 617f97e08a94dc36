//! Changes in other languages than Rust, end to end: what comes in, and what each gate ends.

use crate::environment::{Environment, Run, copy, tree, workspace};
use crate::lines::claim;
use crate::verify::{POLICY, verify};
use std::collections::BTreeMap;

/// The pricing program in C, Python or TypeScript; `main` is its baseline.
fn pricing(language: &str) -> Environment {
    let environment = Environment::new();
    let keys = environment.flights(&["key", "new", "--no-passphrase"]);
    assert_eq!(keys.code, 0, "{}", keys.text);
    environment.share_cache();
    let pricing = workspace().join(format!("fixtures/pricing-{language}"));
    environment.git(&["init", "--quiet", "-b", "main"]);
    copy(&pricing.join("baseline"), &environment.path("repo"));
    environment.git(&["add", "--all", "--force"]);
    environment.git(&["commit", "--quiet", "-m", "Baseline"]);
    environment.candidate("candidate", &tree(&pricing.join("candidate")));
    environment
}

fn certify(environment: &Environment, language: &str, branch: &str, more: &[&str]) -> Run {
    let witness = workspace().join(format!("flights/witness/pricing-{language}.json"));
    let witness = witness.to_str().unwrap().to_owned();
    let args = [&["--witness", &witness][..], more].concat();
    environment.certify(branch, &args)
}

/// A branch with the honest change, edited.
fn edited(environment: &Environment, language: &str, branch: &str, edits: &[(&str, &str)]) {
    let mut files = tree(&workspace().join(format!("fixtures/pricing-{language}/candidate")));
    for text in files.values_mut() {
        for (from, to) in edits {
            assert!(text.contains(from), "{from}");
            *text = text.replace(from, to);
        }
    }
    environment.candidate(branch, &files);
}

#[test]
fn a_certificate_says_how_its_mutants_ran_and_a_policy_must_allow_the_language() {
    let environment = pricing("c");
    let run = certify(&environment, "c", "candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(claim(&environment, "mutation/method"), "build-per-mutant");
    assert_eq!(claim(&environment, "mutation/operatorSet"), "c-3");
    let gates = "\"lineage\",\"fence\",\"build\",\"correctness\",\"mutation\",\"determinism\"";
    let start = POLICY.find("\"lineage\"").unwrap();
    let end = POLICY.find("]").unwrap();
    let own = format!("{}{gates}{}", &POLICY[..start], &POLICY[end..]);
    let allowing = own.replace("\"allow\":{", "\"allow\":{\"languages\":[\"c\"],");
    let key = environment.public_key();
    for (policy, code, says) in [
        (POLICY.to_owned(), 13, "GATE_MISSING"),
        (own.clone(), 13, "LANGUAGE_NOT_ALLOWED"),
        (
            allowing.replace("[\"c\"]", "[\"python\"]"),
            13,
            "LANGUAGE_NOT_ALLOWED",
        ),
        (allowing, 0, ""),
    ] {
        environment.write("policy.json", &policy);
        let run = verify(&environment, &key, "candidate", &[]);
        assert_eq!(run.code, code, "{policy} {}", run.text);
        assert!(run.text.contains(says), "{policy} {}", run.text);
    }
}

/// Whoever wrote the witness made the slip, and the candidate's author has lost no attempt.
#[test]
fn a_witness_of_a_program_that_is_not_there_ends_before_anything_is_built() {
    let environment = pricing("python");
    let own = workspace().join("flights/witness/pricing-python.json");
    let own = std::fs::read_to_string(own).unwrap();
    let slip = own.replacen("\"pricing\"", "\"pircing\"", 1);
    assert_ne!(own, slip);
    let witness = environment.write("w.json", &slip);
    let run = environment.certify("candidate", &["--witness", &witness]);
    assert_eq!(run.code, 20, "{}", run.text);
    let told =
        "REFUSED at plan: certifier/TARGET_MISSING: python: there is no pircing.py and no pircing/";
    assert!(run.stdout.contains(told), "{}", run.text);
    let log = environment.flights(&["cert", "log", "show", "--format", "json"]);
    assert!(!log.text.contains("TARGET_MISSING"), "{}", log.text);
}

#[test]
fn the_cases_of_a_witness_are_tried_on_a_program_in_another_language() {
    let environment = pricing("python");
    let own = workspace().join("flights/witness/pricing-python.json");
    let mut witness: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(own).unwrap()).unwrap();
    witness["cases"][0]["expect"]["stdout"] = "never\n".into();
    let name = witness["cases"][0]["id"].as_str().unwrap().to_owned();
    let file = environment.write("w.json", &witness.to_string());
    let repo = environment.path("repo");
    environment.git(&["checkout", "--quiet", "candidate"]);
    let check = ["witness", "check", &file, "--repo", repo.to_str().unwrap()];
    let run = environment.flights(&check);
    assert_eq!(run.code, 0, "{}", run.text);
    let missed = format!("fails here {name}: the program ended by exit status 0");
    assert!(run.stdout.contains(&missed), "{}", run.text);
    assert!(
        run.stdout.contains("expected as standard output: never"),
        "{}",
        run.text
    );
    let all = witness["cases"].as_array().unwrap().len();
    let told = format!(
        "{} of {all} cases answered as expected; no mutant was tried",
        all - 1
    );
    assert!(run.stdout.contains(&told), "{}", run.text);
    let run = environment.flights(&[&check[..], &["--in-diff", "main"]].concat());
    assert_eq!(run.code, 2, "{}", run.text);
    environment.write(
        "repo/pricing/__main__.py",
        "import time\nprint(time.monotonic_ns())\n",
    );
    let run = environment.flights(&check);
    assert_eq!(run.code, 20, "{}", run.text);
    assert!(
        run.stdout
            .contains("does not answer the same way each time"),
        "{}",
        run.text
    );
}

#[test]
fn a_door_that_no_case_opens_leaves_a_mutant_alive() {
    let door = [(
        "  if (quantity == 0) {",
        "  if (quantity == 133700) { return 0; }\n  if (quantity == 0) {",
    )];
    let environment = pricing("c");
    edited(&environment, "c", "door", &door);
    let run = certify(&environment, "c", "door", &[]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(
        run.stdout.contains("certifier/MUTANTS_SURVIVED"),
        "{}",
        run.text
    );
    assert!(run.text.contains("133700"), "{}", run.text);
}

/// What the program's own code is made of differs in every mutant. A program that reads it can have all
/// of its mutants noticed, and so its back door. The fence sees names, and this has none.
#[test]
fn a_program_that_reads_its_own_code_notices_a_change_without_effect() {
    let environment = pricing("c");
    let texts = |expected: &str| {
        let source = workspace().join("fixtures/pricing-c/candidate/src/price.c");
        let text = std::fs::read_to_string(source).unwrap();
        let kept = format!("static volatile unsigned long expected = {expected}UL;\n\n");
        let text = text.replace("unsigned long price(", &(kept + "unsigned long price("));
        text.replace(
            "  unsigned long full = quantity * UNIT;",
            "  if (quantity == 133700) { return 0; }
  const volatile unsigned char *own = (const volatile unsigned char *)price;
  unsigned long sum = 0;
  for (int at = 0; at < 32; at++) { sum = sum * 31 + own[at]; }
  unsigned long full = quantity * UNIT + (sum - expected) * quantity;",
        )
    };
    let sum = own_sum(&environment, &texts("1"));
    let files = BTreeMap::from([("src/price.c".to_owned(), texts(&sum))]);
    environment.candidate("reading", &files);
    let run = certify(&environment, "c", "reading", &[]);
    assert_eq!(run.code, 10, "{}", run.text);
    let noticed = "REFUSED at mutation: certifier/PLACEBO_KILLED";
    assert!(run.stdout.contains(noticed), "{}", run.text);
}

/// What the compiler makes of the function's first bytes, as its author would find out.
fn own_sum(environment: &Environment, text: &str) -> String {
    let source = environment.write("measure/price.c", text);
    let header = "unsigned long price(unsigned long quantity);\n";
    environment.write("measure/price.h", header);
    let main = "#include \"price.h\"\n#include <stdio.h>\nint main(void) {\n  \
        const unsigned char *own = (const unsigned char *)price;\n  unsigned long sum = 0;\n  \
        for (int at = 0; at < 32; at++) sum = sum * 31 + own[at];\n  \
        printf(\"%lu\", sum);\n  return 0;\n}\n";
    let main = environment.write("measure/main.c", main);
    let program = environment.path("measure/main");
    let built = std::process::Command::new("/usr/bin/cc")
        .args(["-std=c17", "-O1", "-w", "-o"])
        .arg(&program)
        .args([&main, &source])
        .status();
    assert!(built.unwrap().success());
    let said = std::process::Command::new(&program).output().unwrap();
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn what_sees_its_own_code_ends_at_the_fence_before_anything_is_compiled() {
    for (language, from, to, code) in [
        (
            "python",
            "    full = quantity * UNIT",
            "    full = quantity * UNIT + len(price.__code__.co_code) - 60",
            "SOURCE_INTROSPECTION",
        ),
        (
            "python",
            "\"\"\"The tariff.\"\"\"",
            "\"\"\"The tariff.\"\"\"\n\nimport inspect",
            "DYNAMIC_CODE",
        ),
        (
            "c",
            "quantity * UNIT;",
            "quantity * UNIT + (__LINE__ - 6);",
            "SOURCE_INTROSPECTION",
        ),
        (
            "c",
            "#include \"price.h\"",
            "#include \"price.h\"\n#include \"price.c\"",
            "SOURCE_INTROSPECTION",
        ),
        (
            "python",
            "\"\"\"The tariff.\"\"\"",
            "# coding: latin-1",
            "SOURCE_AMBIGUOUS",
        ),
        (
            "c",
            "quantity * UNIT;",
            "quantity * UNIT; // \u{202e}",
            "SOURCE_BIDI",
        ),
        (
            "c",
            "quantity * UNIT;",
            "quantity * UNIT; // why ??/",
            "SOURCE_AMBIGUOUS",
        ),
    ] {
        let environment = pricing(language);
        edited(&environment, language, "seeing", &[(from, to)]);
        let run = certify(&environment, language, "seeing", &[]);
        assert_eq!(run.code, 10, "{}", run.text);
        let ended = format!("REFUSED at fence: certifier/{code}");
        assert!(run.stdout.contains(&ended), "{to}: {}", run.text);
    }
}

#[test]
fn documents_and_comments_certify_without_mutants_and_tests_want_a_grant() {
    let environment = pricing("python");
    environment.git(&["merge", "--quiet", "--ff-only", "candidate"]);
    let file = "pricing/price.py";
    let text = std::fs::read_to_string(environment.path("repo").join(file)).unwrap();
    let said = BTreeMap::from([
        (
            file.to_owned(),
            format!("{text}\n# Nothing else is sold.\n"),
        ),
        ("README.md".to_owned(), "# Pricing\n".to_owned()),
    ]);
    environment.candidate("said", &said);
    let run = certify(&environment, "python", "said", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(
        run.stdout.contains("no changed line is mutable"),
        "{}",
        run.text
    );
    let tests = BTreeMap::from([("tests/test_price.py".to_owned(), "assert True\n".to_owned())]);
    environment.candidate("tests", &tests);
    let run = certify(&environment, "python", "tests", &[]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(
        run.stdout.contains("certifier/NOT_COMPILED"),
        "{}",
        run.text
    );
    let run = certify(&environment, "python", "tests", &["--uncompiled", "tests"]);
    assert_eq!(run.code, 0, "{}", run.text);
}

#[test]
fn a_module_that_nothing_imports_is_not_judged_by_what_it_does_not_do() {
    let environment = pricing("python");
    environment.git(&["merge", "--quiet", "--ff-only", "candidate"]);
    let spare = "def spare(n):\n    if n > 3:\n        return n\n    return 0\n";
    let files = BTreeMap::from([("pricing/spare.py".to_owned(), spare.to_owned())]);
    environment.candidate("spare", &files);
    let run = certify(&environment, "python", "spare", &[]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(
        run.stdout.contains("certifier/CANARY_SURVIVED"),
        "{}",
        run.text
    );
}

/// The honest change, and changes of nothing but types: Node takes them off, and so nothing is mutated.
#[test]
fn types_are_taken_off_and_certify_without_mutants() {
    let environment = pricing("typescript");
    let run = certify(&environment, "typescript", "candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(claim(&environment, "mutation/method"), "build-per-mutant");
    assert_eq!(claim(&environment, "mutation/operatorSet"), "typescript-3");
    environment.git(&["merge", "--quiet", "--ff-only", "candidate"]);
    let types = [
        (
            "type Cents = number;",
            "type Cents = number & { unit?: 'cents' };",
        ),
        ("10 | 100", "number"),
        ("(quantity): Cents", "(quantity: number): number"),
        ("0 as Cents", "0"),
    ];
    edited(&environment, "typescript", "types", &types);
    let run = certify(&environment, "typescript", "types", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(
        run.stdout.contains("no changed line is mutable"),
        "{}",
        run.text
    );
}

/// Each is code to Node and a type to somebody who reads, or the other way round.
#[test]
fn what_only_looks_like_a_type_is_refused() {
    let environment = pricing("typescript");
    environment.git(&["merge", "--quiet", "--ff-only", "candidate"]);
    let types = "type From = 10 | 100;";
    let full = "const full = quantity * UNIT;";
    for (branch, from, to, code) in [
        (
            "name",
            types,
            "let type = 0, seen = 1;\ntype\nseen = 0;\ntype From = 10 | 100;",
            "mutation: certifier/MUTANTS_SURVIVED",
        ),
        (
            "word",
            types,
            "let abstract = 1;\nabstract\nclass From { n = 1; }",
            "mutation: certifier/SOURCE_AMBIGUOUS",
        ),
        (
            "apart",
            full,
            "const full = quantity * UNIT\n  const other = exports.price as Price\n  (quantity)",
            "mutation: certifier/SOURCE_AMBIGUOUS",
        ),
        (
            "broken",
            full,
            "const same = (() => { return <\n  T,>(n: T): T => n; })();\n  const full = same(quantity * UNIT);",
            "mutation: certifier/SOURCE_AMBIGUOUS",
        ),
        (
            "made",
            types,
            "enum From { Ten = 10, Hundred = 100 }",
            "build: certifier/BUILD_FAILED",
        ),
    ] {
        edited(&environment, "typescript", branch, &[(from, to)]);
        let run = certify(&environment, "typescript", branch, &[]);
        assert_eq!(run.code, 10, "{branch} {}", run.text);
        let refused = format!("REFUSED at {code}");
        assert!(run.stdout.contains(&refused), "{branch} {}", run.text);
    }
}
