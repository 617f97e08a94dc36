//! `flights review`: what an approver sees before signing.

use crate::environment::{Environment, Run, workspace};

const POLICY: &str = r#"{"schema": "flightproof/policy/1", "threshold": 1, "required_gates": ["correctness", "mutation"]}"#;

fn review(environment: &Environment, more: &[&str]) -> Run {
    environment.write("policy.json", POLICY);
    review_under(environment, more)
}

/// The certificate of the last flight, under the policy that lies there.
pub(crate) fn review_under(environment: &Environment, more: &[&str]) -> Run {
    let text = |name: &str| environment.path(name).to_str().unwrap().to_owned();
    let (certificate, policy, repo) = (
        text("out/certificate.dsse.json"),
        text("policy.json"),
        text("repo"),
    );
    let key = environment.public_key();
    let mut args = vec!["review", &certificate, "--key", &key];
    args.extend(["--policy", &policy, "--repo", &repo]);
    args.extend(more);
    environment.flights(&args)
}

/// A test that was made weaker beside a change of code judges nothing and is held: whoever certifies is told
/// what an approver will be shown.
#[test]
fn what_a_certificate_does_not_prove_is_said_at_once() {
    let environment = Environment::with_pricing();
    let test = "#[test]\nfn price() {\n    assert_eq!(11 * 50, 550);\n}\n";
    let file = |text: &str| ("tests/price.rs".to_owned(), text.to_owned());
    environment.candidate("base", &[file(test)].into());
    environment.git(&["merge", "--quiet", "--ff-only", "base"]);
    let fixed = workspace().join("fixtures/pricing/candidate/src/main.rs");
    let fixed = std::fs::read_to_string(fixed).unwrap();
    let weaker = test.replace("assert_eq!(11 * 50, 550)", "assert!(550 > 0)");
    let files = [("src/main.rs".to_owned(), fixed), file(&weaker)];
    environment.candidate("weaker", &files.into());
    let run = environment.certify("weaker", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let open = run
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("  not proven: "));
    let open: Vec<&str> = open.unwrap().split("; ").collect();
    let tests = "1 changed line is of tests or examples, which nothing proves";
    assert!(open.contains(&tests), "{}", run.text);
    // The same that a review says.
    let told = review(&environment, &[]);
    let by_line = "mutants     not told by line: --witness FILE";
    assert!(told.stdout.contains(by_line), "{}", told.text);
    let witness = workspace().join("flights/witness/pricing.json");
    let with = review(&environment, &["--witness", witness.to_str().unwrap()]);
    assert!(!with.stdout.contains(by_line), "{}", with.text);
    let told = told
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("NOT PROVEN  "));
    assert_eq!(told.collect::<Vec<_>>(), open);
}

/// As git does.
#[test]
fn a_repository_is_found_from_a_directory_in_it_and_from_nowhere_else() {
    let environment = Environment::with_pricing();
    assert_eq!(environment.certify("candidate", &[]).code, 0);
    let text = |name: &str| environment.path(name).to_str().unwrap().to_owned();
    let (certificate, policy) = (
        text("out/certificate.dsse.json"),
        environment.write("p.json", POLICY),
    );
    let key = environment.public_key();
    let (key, policy) = (["--key", key.as_str()], ["--policy", policy.as_str()]);
    let from = |folder: &str, args: &[&str]| {
        let mut command = environment.command(&[args, &key, &policy].concat());
        command.current_dir(environment.path(folder));
        environment.run(&mut command)
    };
    let review = ["review", certificate.as_str()];
    let verify = ["cert", "verify", &certificate, "--subject", "candidate"];
    for command in [&review[..], &verify] {
        assert_eq!(from("repo/src", command).code, 0, "{command:?}");
        assert_eq!(from("repo", command).code, 0, "{command:?}");
        let lost = from("work", command);
        assert_eq!(lost.code, 2, "{}", lost.text);
        assert!(
            lost.text.contains("importer/NOT_A_REPOSITORY: neither $TREE/work nor any directory above it is a repository; name one with --repo"),
            "{}",
            lost.text
        );
    }
    // What judges an exported tree needs no repository.
    let exported = ["cert", "verify", &certificate, "--subject", "."];
    let told = from("work", &exported);
    assert!(!told.stdout.contains("NOT_A_REPOSITORY"), "{}", told.text);
    // What makes certificates and bundles finds it too; what moves a branch wants it named.
    let witness = workspace().join("flights/witness/pricing.json");
    let witness = witness.to_str().unwrap();
    let ends = [
        "--baseline",
        "main",
        "--candidate",
        "candidate",
        "--witness",
        witness,
    ];
    let out = text("other");
    let certify = [&["certify"], &ends[..], &["--out", &out]].concat();
    let bundle = text("c.bundle");
    let create = [
        "bundle",
        "create",
        "--baseline",
        "main",
        "--head",
        "candidate",
        "-o",
        &bundle,
    ];
    let plain = |args: &[&str]| {
        let mut command = environment.command(args);
        command.current_dir(environment.path("repo/src"));
        environment.run(&mut command)
    };
    for command in [&certify[..], &create] {
        let run = plain(command);
        assert_eq!(run.code, 0, "{}", run.text);
    }
    let moving = plain(&[&certify[..], &["--admit", "main"]].concat());
    assert_eq!((moving.code, moving.stdout.as_str()), (2, ""));
    assert!(moving.stderr.contains("--repo"), "{}", moving.text);
    let suggested = from("repo/src", &review);
    assert!(
        suggested.stdout.contains("--repo .. --branch"),
        "{}",
        suggested.text
    );
}

#[test]
fn a_review_shows_each_changed_line_with_what_was_shown_of_it_and_what_was_not() {
    let environment = Environment::with_pricing();
    assert_eq!(environment.certify("candidate", &[]).code, 0);
    let witness = workspace().join("flights/witness/pricing.json");
    let witness = witness.to_str().unwrap();
    let shown = review(&environment, &["--witness", witness]);
    assert_eq!(shown.code, 0, "{}", shown.text);
    for text in [
        "  29      -     quantity * UNIT_PRICE",
        " mutants\n",
        "proven      gates passed: ",
        "NOT PROVEN  that the cases are complete",
        "to sign and let it in: flights admit ",
    ] {
        assert!(shown.stdout.contains(text), "{text}\n{}", shown.text);
    }
    let json = review(&environment, &["--witness", witness, "--format", "json"]).json();
    assert_eq!(json["schema"], "flightproof/review/1");
    assert_eq!(json["files"][0]["path"], "src/main.rs");
    let classes: Vec<&str> = json["files"][0]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| line["class"].as_str())
        .collect();
    assert!(
        classes.iter().any(|class| class.ends_with(" mutants")),
        "{json}"
    );
    // Another witness would tell of other mutants, whether or not its commitment can be opened.
    let (own, other) = (std::fs::read_to_string(witness).unwrap(), "\"id\": \"one\"");
    assert!(own.contains(other));
    let renamed = environment.write("other.json", &own.replacen(other, "\"id\": \"uno\"", 1));
    let refused = review(&environment, &["--witness", &renamed, "--format", "json"]);
    assert_eq!(
        refused.json()["code"],
        "certifier/WITNESS_MISMATCH",
        "{}",
        refused.text
    );
    std::fs::remove_file(environment.path("out/opening.json")).unwrap();
    let tariff = workspace().join("flights/witness/tariff.json");
    for (file, code) in [(witness, 0), (tariff.to_str().unwrap(), 13)] {
        let run = review(&environment, &["--witness", file]);
        assert_eq!(run.code, code, "{}", run.text);
    }

    // Without the witness the change is shown all the same, and nothing is said of its lines.
    let bare = review(&environment, &[]);
    assert_eq!(bare.code, 0, "{}", bare.text);
    assert!(!bare.stdout.contains(" mutants\n"), "{}", bare.text);
}

/// Mutants of a whole function stand where it begins, however far from there the change is.
#[test]
fn every_mutant_that_is_counted_stands_at_a_line_that_is_shown() {
    let environment = Environment::with_pricing();
    let steps: String = (0..12).map(|n| format!("    // Step {n}.\n")).collect();
    let long = |text: &str| text.replace("    let price =", &format!("{steps}    let price ="));
    let read = |which: &str| {
        let file = workspace().join(format!("fixtures/pricing/{which}/src/main.rs"));
        std::fs::read_to_string(file).unwrap()
    };
    let honest = long(&read("candidate"));
    let before = honest.replace("price + 300", "price + 200");
    environment.candidate("base", &[("src/main.rs".to_owned(), before)].into());
    environment.git(&["merge", "--quiet", "--ff-only", "base"]);
    environment.candidate("fixed", &[("src/main.rs".to_owned(), honest)].into());
    let run = environment.certify("fixed", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let witness = workspace().join("flights/witness/pricing.json");
    let shown = review(&environment, &["--witness", witness.to_str().unwrap()]).stdout;
    let marks = shown.lines().filter_map(|line| line.rsplit_once("  | "));
    let marks = marks.filter_map(|(_, mark)| mark.split_once(" mutant"));
    let marked: u64 = marks
        .map(|(number, _)| number.parse::<u64>().unwrap())
        .sum();
    assert!(shown.contains(&format!(" of {marked} mutants ")), "{shown}");
    assert!(shown.contains("fn total("), "{shown}");
}

#[test]
fn nothing_is_shown_of_what_nobody_trusted_has_certified() {
    let environment = Environment::with_pricing();
    assert_eq!(environment.certify("candidate", &[]).code, 0);
    let file = environment.path("out/certificate.dsse.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replacen("\"payload\":\"ey", "\"payload\":\"eY", 1),
    )
    .unwrap();
    let refused = review(&environment, &["--format", "json"]);
    assert_eq!(
        refused.json()["code"],
        "certifier/SIGNATURE_INVALID",
        "{}",
        refused.text
    );
}
