//! Suites: the baseline's own tests judge, laid over the candidate's.

use crate::environment::{Environment, Run, workspace};
use crate::lines::claim;
use crate::recertify::recertify;
use crate::review::review_under;
use crate::verify::{POLICY, verify};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;

const LIBRARY: &str = "//! Prices.\n\n/// What a number of units costs, in cents.\n\
    pub fn total(quantity: u64) -> u64 {\n    let price = quantity * 250;\n    \
    if quantity >= 100 {\n        price - price / 10\n    } else {\n        price\n    }\n}\n";
const TESTS: &str = "use pricing::total;\n\n#[test]\nfn few() {\n    assert_eq!((total(0), total(1), total(99)), (0, 250, 24_750));\n}\n\n\
    #[test]\nfn many() {\n    assert_eq!((total(100), total(101), total(1_000)), (22_500, 22_725, 225_000));\n}\n\n\
    #[test]\n#[ignore]\nfn slow() {}\n\n#[test]\nfn broken() {\n    assert_eq!(total(5), 0);\n}\n\n\
    #[test]\n#[should_panic]\nfn too_many() {\n    total(u64::MAX);\n}\n";
/// The same prices, written otherwise.
const REWRITTEN: (&str, &str) = (
    "    if quantity >= 100 {\n        price - price / 10\n",
    "    if quantity > 99 {\n        price * 9 / 10\n",
);

/// A library with tests, and a witness of them beside the repository.
fn library(tests: &str) -> Environment {
    let environment = Environment::with_pricing();
    let files = [
        ("src/main.rs", ""),
        ("src/lib.rs", LIBRARY),
        ("tests/api.rs", tests),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    environment.candidate("base", &BTreeMap::from(files));
    environment.git(&["merge", "--quiet", "--ff-only", "base"]);
    let witness = json!({"schema": "flightproof/witness/1", "suite": {}, "cases": []});
    environment.write("suite.json", &witness.to_string());
    environment
}

fn certify(environment: &Environment, name: &str, files: &[(&str, &str)]) -> Run {
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    environment.candidate(name, &files.collect());
    let witness = environment.path("suite.json");
    let mut args = vec!["--witness", witness.to_str().unwrap()];
    for path in ["src", "tests", "Cargo.toml"] {
        args.extend(["--grant", path]);
    }
    environment.certify(name, &args)
}

fn rewritten() -> String {
    assert!(LIBRARY.contains(REWRITTEN.0));
    LIBRARY.replace(REWRITTEN.0, REWRITTEN.1)
}

#[test]
fn the_tests_of_a_library_judge_a_change_of_it_and_the_certificate_says_what_that_is_worth() {
    let environment = library(TESTS);
    let run = certify(&environment, "rewritten", &[("src/lib.rs", &rewritten())]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(
        run.stderr.contains("its tests ran on the baseline"),
        "{}",
        run.text
    );
    let told = "3 tests judge; left out: api: broken (fails on the baseline), api: slow (ignored)";
    assert!(run.stderr.contains(told), "{}", run.text);
    let found = claim(&environment, "witness/suite");
    let expected = json!({"tests": 3, "ignored": 1, "failing": 1, "runs": 3, "quarantined": []});
    assert_eq!(found, expected);
    assert_eq!(claim(&environment, "witness/kind"), "suite");
    assert!(
        claim(&environment, "mutation/killedBy/value")
            .as_u64()
            .unwrap()
            > 3
    );
    environment.write("policy.json", POLICY);
    let key = environment.public_key();
    let run = verify(&environment, &key, "rewritten", &[]);
    assert_eq!(run.code, 13, "{}", run.text);
    let code = "certifier/WITNESS_KIND_NOT_ALLOWED: suite";
    assert!(run.stdout.contains(code), "{}", run.text);
    let named = "\"witness_kinds\":[\"suite\"],\"waivers_max\"";
    environment.write("policy.json", &POLICY.replace("\"waivers_max\"", named));
    let run = verify(&environment, &key, "rewritten", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let witness = environment.path("suite.json");
    let run = recertify(
        &environment,
        &key,
        &["--witness", witness.to_str().unwrap()],
    );
    assert_eq!(run.code, 0, "{}", run.text);
    // Whoever reviews has the file alone.
    for opened in [true, false] {
        if !opened {
            fs::remove_file(environment.path("out/opening.json")).unwrap();
        }
        let run = review_under(&environment, &["--witness", witness.to_str().unwrap()]);
        assert_eq!(run.code, 0, "{}", run.text);
        assert!(run.stdout.contains(" mutants\n"), "{}", run.text);
    }
    let pricing = workspace().join("flights/witness/pricing.json");
    let run = review_under(&environment, &["--witness", pricing.to_str().unwrap()]);
    assert_eq!(run.code, 13, "{}", run.text);
    // Code that no test comes across is not shown to be right.
    let more = rewritten()
        + "\n/// Half of it.\npub fn half(quantity: u64) -> u64 {\n    total(quantity) / 2\n}\n";
    let run = certify(&environment, "more", &[("src/lib.rs", &more)]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(
        run.stdout.contains("certifier/MUTANTS_SURVIVED"),
        "{}",
        run.text
    );
}

#[test]
fn neither_other_tests_nor_words_in_place_of_the_harness_pass_for_the_baselines_tests() {
    let environment = library(TESTS);
    let wrong = LIBRARY.replace("price - price / 10", "price - price / 10 + 1");
    let easy = TESTS.replace("(22_500, 22_725, 225_000)", "(22_501, 22_726, 225_001)");
    let results = "test broken ... FAILED\\ntest few ... ok\\ntest many ... ok\\ntest slow ... ignored\\n\
        test too_many - should panic ... ok\\n\\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; \
        0 filtered out; finished in 0.00s\\n\\n";
    let speak = |then: &str| {
        let words = format!(
            "    if quantity == 100 {{\n        use std::io::Write as _;\n        \
             let said = std::io::stdout().write_all(b\"\\nrunning 5 tests\\n{results}\");\n        \
             {then}\n    }}\n    let price"
        );
        wrong.replace("    let price", &words)
    };
    let early = speak("std::process::exit(i32::from(said.is_err()));");
    let among = speak("drop(said);");
    let manifest = "[package]\nname = \"pricing\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n\
        [[test]]\nname = \"api\"\npath = \"src/fake.rs\"\nharness = false\n";
    let fake = format!(
        "fn main() {{\n    print!(\"\\nrunning 5 tests\\n{results}\");\n    std::process::exit(101);\n}}\n"
    );
    let own = environment.git(&["show", "main:Cargo.toml"]);
    let manifest = own + manifest.split_once("\n\n").map_or("", |(_, tests)| tests);
    let manifest = manifest.replace("[[test]]", "\n\n[[test]]");
    let failed = "REFUSED at correctness: certifier/SUITE_FAILED: tests-api";
    for (name, files, code, note) in [
        (
            "wrong",
            vec![("src/lib.rs", wrong.as_str())],
            failed,
            "many ok",
        ),
        (
            "easy",
            vec![
                ("src/lib.rs", wrong.as_str()),
                ("tests/api.rs", easy.as_str()),
            ],
            failed,
            "many ok",
        ),
        (
            "early",
            vec![("src/lib.rs", early.as_str())],
            failed,
            "did not run its tests to the end",
        ),
        (
            "among",
            vec![("src/lib.rs", among.as_str())],
            failed,
            "printed among their results",
        ),
        (
            "harness",
            vec![
                ("Cargo.toml", manifest.as_str()),
                ("src/fake.rs", fake.as_str()),
            ],
            failed,
            "did not run",
        ),
        (
            "gone",
            vec![("tests/api.rs", "")],
            "REFUSED at baseline: certifier/SUITE_CHANGED",
            "tests/api.rs",
        ),
        (
            "renamed",
            vec![("tests/api.rs", ""), ("tests/other.rs", TESTS)],
            "REFUSED at baseline: certifier/SUITE_CHANGED",
            "tests/api.rs",
        ),
    ] {
        let run = certify(&environment, name, &files);
        assert_eq!(run.code, 10, "{name}: {}", run.text);
        assert!(run.stdout.contains(code), "{name}: {}", run.text);
        assert!(run.stdout.contains(note), "{name}: {}", run.text);
    }
}

/// As they lie in the directory, which is the baseline for whoever writes the witness.
#[test]
fn the_tests_of_a_suite_are_checked_on_a_working_directory() {
    let environment = library(TESTS);
    let own = format!(
        "{LIBRARY}#[cfg(test)]\nmod tests {{\n    #[test]\n    fn inside() {{\n        assert_eq!(super::total(0), 0);\n    }}\n}}\n"
    );
    environment.write("repo/src/lib.rs", &own);
    let (witness, repo) = (environment.path("suite.json"), environment.path("repo"));
    let check = [
        "witness",
        "check",
        witness.to_str().unwrap(),
        "--repo",
        repo.to_str().unwrap(),
    ];
    let run = environment.flights(&check);
    assert_eq!(run.code, 0, "{}", run.text);
    let told = [
        "a suite of tests, private\n",
        "left out   test api: slow: it is ignored\n",
        "left out   test api: broken: it fails in the session",
        "2 tests here judge nothing\n",
    ];
    for told in told {
        assert!(run.stdout.contains(told), "{told}\n{}", run.text);
    }
    let run = environment.flights(&[&check[..], &["--format", "json"]].concat());
    let tree = &run.json()["tree"];
    let cases = tree["cases"].as_array().unwrap().iter();
    let tests: BTreeMap<&str, bool> = cases
        .map(|tooth| (tooth["case"].as_str().unwrap(), tooth["alone"] != 0))
        .collect();
    // Unit tests are none of the suite's.
    let expected = ["test api: few", "test api: many", "test api: too_many"];
    assert_eq!(tests.keys().copied().collect::<Vec<_>>(), expected);
    assert!(tests["test api: many"], "{}", run.text);
    assert_eq!(tree["flaky"], json!([]));
    // One that is misspelt judges nothing.
    let text =
        json!({"schema": "flightproof/witness/1", "suite": {"tests": ["apis"]}, "cases": []});
    environment.write("suite.json", &text.to_string());
    let run = environment.flights(&check);
    assert_eq!(run.code, 20, "{}", run.text);
    let told = "certifier/SUITE_UNFIT: there is no tests/apis.rs; did you mean api?";
    assert!(run.stdout.contains(told), "{}", run.text);
}

#[test]
fn tests_that_need_the_program_are_told_so_in_the_compilers_words() {
    let tests = "#[test]\nfn runs() {\n    let _ = env!(\"CARGO_BIN_EXE_none\");\n}\n";
    let environment = library(tests);
    let run = certify(&environment, "rewritten", &[("src/lib.rs", &rewritten())]);
    assert_eq!(run.code, 20, "{}", run.text);
    for told in [
        "certifier/SUITE_UNFIT: the baseline's tests do not build: ",
        "CARGO_BIN_EXE_none",
        "it did not build",
    ] {
        assert!(run.text.contains(told), "{told}\n{}", run.text);
    }
}
