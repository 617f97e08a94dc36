//! `flights import`, on real repositories.

use crate::environment::{Environment, Run};
use crate::verify::POLICY;
use flightproof_certifier::key::PublicKey;
use insta::assert_snapshot;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A repository with a bundle of its candidate beside it, and a clone that never saw the candidate.
fn arrived() -> Environment {
    let environment = Environment::with_pricing();
    let text = |name: &str| environment.path(name).to_str().unwrap().to_owned();
    let (repo, file, home) = (text("repo"), text("c.bundle"), text("home/repo"));
    let run = environment.flights(&[
        "bundle",
        "create",
        "--repo",
        &repo,
        "--baseline",
        "main",
        "--head",
        "candidate",
        "-o",
        &file,
    ]);
    assert_eq!(run.code, 0, "{}", run.text);
    environment.git(&["clone", "-q", "--single-branch", "-b", "main", &repo, &home]);
    environment
}

fn import(environment: &Environment, more: &[&str]) -> Run {
    let text = |name: &str| environment.path(name).to_str().unwrap().to_owned();
    let (file, home) = (text("c.bundle"), text("home/repo"));
    let mut args = vec!["import", &file, "--repo", &home, "--branch", "main"];
    if !more.contains(&"--baseline") {
        args.extend(["--baseline", "main"]);
    }
    args.extend(more);
    environment.flights(&args)
}

fn recover(environment: &Environment, more: &[&str]) -> Run {
    let home = environment.path("home/repo");
    let mut args = vec!["import", "recover", "--repo", home.to_str().unwrap()];
    args.extend(more);
    environment.flights(&args)
}

fn key_id(environment: &Environment) -> String {
    let pem = fs::read_to_string(environment.public_key()).unwrap();
    PublicKey::from_pem(&pem).unwrap().id().to_string()
}

fn git(dir: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn an_uncertified_commit_comes_home_only_if_that_is_said() {
    let environment = arrived();
    let home = environment.path("home/repo");
    assert_eq!(import(&environment, &[]).code, 2);
    let run = import(&environment, &["--uncertified-i-know"]);
    assert_snapshot!(run.text, @"");
    assert_eq!(git(&home, &["status", "--porcelain"]), "");
    let candidate = environment.git(&["rev-parse", "candidate"]);
    assert_eq!(git(&home, &["rev-parse", "main"]), candidate);
    let baseline = git(&home, &["rev-parse", "main~1"]);
    let again = [
        "--uncertified-i-know",
        "--format",
        "json",
        "--baseline",
        &baseline,
    ];
    let json = import(&environment, &again).json();
    assert_eq!(
        (&json["repeated"], &json["verdict"]),
        (&true.into(), &"admitted".into())
    );
    assert_eq!(json["receipt"]["head"], candidate);
    assert!(json["receipt"].get("certificate").is_none());
    assert_snapshot!(recover(&environment, &[]).text, @"");
    let json = recover(&environment, &["--format", "json"]).json();
    assert_eq!(json["state"], "not_started");
}

#[test]
fn what_is_in_the_way_is_said_in_one_line_with_a_hint() {
    let environment = arrived();
    let home = environment.path("home/repo");
    fs::write(home.join("src/main.rs"), "mine\n").unwrap();
    assert_snapshot!(import(&environment, &["--uncertified-i-know"]).text, @"");
    assert_eq!(
        fs::read_to_string(home.join("src/main.rs")).unwrap(),
        "mine\n"
    );
    git(&home, &["checkout", "-q", "--", "."]);
    let run = import(&environment, &["--uncertified-i-know", "--grant", "docs"]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert_eq!(git(&home, &["status", "--porcelain"]), "");
}

#[test]
fn a_certificate_lets_in_exactly_what_it_was_made_for() {
    let environment = arrived();
    let home = environment.path("home/repo");
    // Certified and admitted where it was made; held in another directory.
    let run = environment.certify("candidate", &["--admit", "main"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let key = environment.public_key();
    let id = key_id(&environment);
    let policy = |keys: &str| {
        let pinned = POLICY.replace("\"threshold\"", &format!("{keys}\"threshold\""));
        environment.write("policy.json", &pinned)
    };
    let certificate = environment.path("out/certificate.dsse.json");
    let certificate = certificate.to_str().unwrap().to_owned();
    let by = |policy: &str, more: &[&str]| {
        let mut args = vec!["--certificate", certificate.as_str(), "--policy", policy];
        args.extend(["--key", &key]);
        args.extend(more);
        import(&environment, &args)
    };
    let refused = |run: Run| {
        assert_eq!(
            git(&home, &["rev-parse", "main"]),
            environment.git(&["rev-parse", "main~1"])
        );
        format!("{} {}", run.code, run.stdout.lines().next().unwrap())
    };
    assert_snapshot!(refused(by(&policy(""), &[])), @"");
    let pinned = policy(&format!("\"keys\":[\"{id}\"],"));
    assert_snapshot!(refused(by(&pinned, &["--name", "another"])), @"");
    let other = format!("\"keys\":[\"{}\"],", "0".repeat(64));
    assert_snapshot!(refused(by(&policy(&other), &[])), @"");
    let pinned = policy(&format!("\"keys\":[\"{id}\"],"));
    let run = by(&pinned, &[]);
    assert_snapshot!(run.text, @"");
    assert_eq!(git(&home, &["status", "--porcelain"]), "");
}

#[test]
fn a_held_certificate_lets_nothing_in() {
    let environment = arrived();
    assert_eq!(environment.certify("candidate", &[]).code, 0);
    let keys = format!("\"keys\":[\"{}\"],\"threshold\"", key_id(&environment));
    let policy = environment.write("policy.json", &POLICY.replace("\"threshold\"", &keys));
    let certificate = environment.path("out/certificate.dsse.json");
    let certificate = certificate.to_str().unwrap();
    let run = import(
        &environment,
        &["--certificate", certificate, "--policy", &policy],
    );
    assert!(
        run.stdout.contains("flights/CERTIFICATE_HELD"),
        "{}",
        run.text
    );
    assert_eq!(run.code, 13);
}
