//! `flights gate`: evidence of a real project, signed, counted, and missed.

use crate::environment::{Environment, Run, copy, workspace};
use crate::schemas::assert_valid;
use std::fs;

/// A committed project with two recorded flights, one of them hostile, and a gate policy.
struct Project {
    environment: Environment,
}

impl Project {
    fn new() -> Self {
        let environment = Environment::new();
        assert_eq!(
            environment.flights(&["key", "new", "--no-passphrase"]).code,
            0
        );
        let (from, repo) = (workspace(), environment.path("repo"));
        environment.git(&["init", "--quiet", "-b", "main"]);
        for folder in [
            "flights/witness",
            "fixtures/tariff",
            "fixtures/pricing",
            "fixtures/hostile",
        ] {
            copy(&from.join(folder), &repo.join(folder));
        }
        for name in ["honest-library", "hostile-network"] {
            let place = format!("flights/recordings/{name}.flight");
            copy(&from.join(&place), &repo.join(&place));
            fs::copy(
                from.join(format!("flights/{name}.toml")),
                repo.join(format!("flights/{name}.toml")),
            )
            .unwrap();
        }
        let pinned = "flights/recordings/recorder.pub";
        fs::copy(from.join(pinned), repo.join(pinned)).unwrap();
        let project = Self { environment };
        project.policy(1);
        project.commit();
        project
    }

    fn policy(&self, hostile: u64) {
        let shown = self.environment.flights(&["evidence", "--help"]);
        assert_eq!(shown.code, 0);
        let policy = format!(
            r#"{{"schema":"flightproof/gate-policy/1","keys":["{}"],"flights":[{{"name":"honest-library","modes":["replayed"]}}],"hostile_min":{hostile},"fresh_days":7,"floors":{{"line-coverage":9000}}}}"#,
            self.key_id()
        );
        self.environment.write("repo/flights/gate.json", &policy);
    }

    fn key_id(&self) -> String {
        let pem = fs::read_to_string(self.environment.public_key()).unwrap();
        flightproof_certifier::key::PublicKey::from_pem(&pem)
            .unwrap()
            .id()
            .to_string()
    }

    fn commit(&self) {
        self.environment.git(&["add", "--all", "--force"]);
        self.environment
            .git(&["commit", "--quiet", "--allow-empty", "-m", "State"]);
    }

    fn path(&self, name: &str) -> String {
        self.environment.path(name).to_str().unwrap().to_owned()
    }

    fn measure(&self) {
        let (repo, run, figures) = (
            self.path("repo"),
            self.path("run.ev"),
            self.path("figures.ev"),
        );
        let flown = self
            .environment
            .flights(&["run", "--root", &repo, "--evidence", &run]);
        assert_eq!(flown.code, 0, "{}", flown.text);
        let signed = self.environment.flights(&[
            "evidence",
            "line-coverage=9512",
            "--root",
            &repo,
            "-o",
            &figures,
        ]);
        assert_eq!(signed.code, 0, "{}", signed.text);
    }

    fn gate(&self, more: &[&str]) -> Run {
        let (repo, out, key) = (
            self.path("repo"),
            self.path("accepted.json"),
            self.environment.public_key(),
        );
        let mut args = vec![
            "gate", "--root", &repo, "-o", &out, "--trust", &key, "--format", "json",
        ];
        args.extend(more);
        self.environment.flights(&args)
    }
}

#[test]
fn a_release_is_accepted_by_whole_evidence_and_judged_by_the_policy_accepted_before_it() {
    let project = Project::new();
    let policy = project.path("repo/flights/gate.json");
    let (run, figures) = (project.path("run.ev"), project.path("figures.ev"));

    let nothing = project.gate(&["--policy", &policy]);
    assert_eq!(nothing.code, 13, "{}", nothing.text);
    assert_valid("gate", &nothing.json());
    assert_eq!(nothing.json()["code"], "flights/GATE_UNMET");
    assert!(!project.environment.path("accepted.json").exists());

    project.measure();
    let accepted = project.gate(&[
        "--policy",
        &policy,
        "--evidence",
        &run,
        "--evidence",
        &figures,
    ]);
    assert_eq!(accepted.code, 0, "{}", accepted.text);
    assert_valid("gate", &accepted.json());
    fs::rename(
        project.environment.path("accepted.json"),
        project.environment.path("last.json"),
    )
    .unwrap();

    // The same evidence says nothing about the next tree.
    project.environment.write("repo/new.txt", "new");
    project.policy(0);
    project.commit();
    let last = project.path("last.json");
    let stale = project.gate(&["--last", &last, "--evidence", &run, "--evidence", &figures]);
    assert_eq!(stale.code, 13, "{}", stale.text);

    // And a candidate that asks for less is held against what was asked before.
    project.measure();
    let hostile = project
        .environment
        .path("repo/flights/hostile-network.toml");
    let next = project.gate(&["--last", &last, "--evidence", &run, "--evidence", &figures]);
    assert_eq!(next.code, 0, "{}", next.text);
    fs::remove_file(hostile).unwrap();
    project.commit();
    project.measure();
    let less = project.gate(&["--last", &last, "--evidence", &run, "--evidence", &figures]);
    assert_eq!(less.code, 13, "{}", less.text);
    let people = project.environment.flights(&[
        "gate",
        "--root",
        &project.path("repo"),
        "-o",
        &project.path("x"),
        "--trust",
        &project.environment.public_key(),
        "--last",
        &last,
        "--evidence",
        &run,
    ]);
    assert!(
        people.stdout.contains("NOT MEASURED figure line-coverage"),
        "{}",
        people.text
    );
}

#[test]
fn no_output_takes_the_place_of_what_was_read_for_it() {
    let project = Project::new();
    project.measure();
    let policy = project.path("repo/flights/gate.json");
    let (run, figures) = (project.path("run.ev"), project.path("figures.ev"));
    let trusted = project.environment.public_key();
    let secret = trusted.strip_suffix(".pub").unwrap().to_owned();
    let recording = project.path("repo/flights/recordings/honest-library.flight/transcript.jsonl");
    let plan = project.path("repo/flights/honest-library.toml");
    let repo = project.path("repo");
    let gate = ["gate", "--policy", &policy, "--trust", &trusted];
    let gate = [
        &gate[..],
        &["--evidence", &run, "--evidence", &figures, "--root", &repo],
    ]
    .concat();
    let figure = vec!["evidence", "line-coverage=9512", "--root", &repo];
    let report = vec!["report", "--root", &repo];
    for (command, inputs) in [
        (
            gate,
            vec![&policy, &run, &figures, &trusted, &secret, &plan],
        ),
        (figure, vec![&secret]),
        (report, vec![&plan, &recording]),
    ] {
        for input in inputs {
            let before = fs::read(input).unwrap();
            let output = ["-o", input, "--format", "json"];
            let refused = project
                .environment
                .flights(&[&command, &output[..]].concat());
            assert_eq!(
                refused.json()["code"],
                "flights/OUTPUT_UNWRITABLE",
                "{input}: {}",
                refused.text
            );
            assert_eq!(fs::read(input).unwrap(), before, "{input}");
        }
    }
}

#[test]
fn what_lies_there_and_is_not_heads_is_neither_signed_nor_judged_by() {
    let project = Project::new();
    project.measure();
    let accepted = project.path("repo/flights/gate.json");
    let policy = project.path("policy.json");
    fs::copy(&accepted, &policy).unwrap();
    let (run, figures) = (project.path("run.ev"), project.path("figures.ev"));
    let gate = || {
        project.gate(&[
            "--policy",
            &policy,
            "--evidence",
            &run,
            "--evidence",
            &figures,
        ])
    };
    let repo = project.path("repo");
    let measure = || {
        project.environment.flights(&[
            "run",
            "--root",
            &repo,
            "--evidence",
            &run,
            "--format",
            "json",
        ])
    };
    let plan = project.path("repo/flights/honest-library.toml");
    let acts: [&dyn Fn(); 4] = [
        &|| project.policy(0),
        &|| fs::write(&plan, fs::read_to_string(&plan).unwrap() + "\n").unwrap(),
        &|| drop(project.environment.write("repo/flights/more.toml", "")),
        &|| fs::remove_file(project.environment.path("repo/fixtures/tariff/PURPOSE")).unwrap(),
    ];
    for (number, act) in acts.iter().enumerate() {
        act();
        let refused = gate();
        assert_eq!(
            refused.json()["code"],
            "flights/TREE_DIFFERS",
            "{number}: {}",
            refused.text
        );
        assert_eq!(measure().code, 2, "{number}");
        project.environment.git(&["checkout", "--quiet", "--", "."]);
        project.environment.git(&["clean", "-qfd"]);
    }
    assert_eq!(gate().code, 0);
}

#[test]
fn evidence_and_policies_of_others_do_not_count() {
    let project = Project::new();
    project.measure();
    let policy = project.path("repo/flights/gate.json");
    let run = project.path("run.ev");
    let other = project.environment.path("other.pem");
    let other = other.to_str().unwrap();
    assert_eq!(
        project
            .environment
            .flights(&["key", "new", "--no-passphrase", "--out", other])
            .code,
        0
    );
    let forged = project.path("forged.ev");
    let repo = project.path("repo");
    let signed = project.environment.flights(&[
        "evidence",
        "line-coverage=10000",
        "--root",
        &repo,
        "-o",
        &forged,
        "--key",
        other,
    ]);
    assert_eq!(signed.code, 0, "{}", signed.text);
    let refused = project.gate(&[
        "--policy",
        &policy,
        "--evidence",
        &run,
        "--evidence",
        &forged,
    ]);
    assert_eq!(
        refused.json()["code"],
        "certifier/SIGNATURE_INVALID",
        "{}",
        refused.text
    );
    // An acceptance is no policy unless a trusted key signed it; evidence is no acceptance.
    let refused = project.gate(&["--last", &run]);
    assert_eq!(
        refused.json()["code"],
        "flights/EVIDENCE_INVALID",
        "{}",
        refused.text
    );
    let invalid = project.environment.write("bad.json", "{}");
    let refused = project.gate(&["--policy", &invalid]);
    assert_eq!(
        refused.json()["code"],
        "flights/GATE_POLICY_INVALID",
        "{}",
        refused.text
    );
}
