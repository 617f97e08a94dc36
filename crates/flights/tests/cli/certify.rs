//! `flights certify`, in real sessions.

use crate::environment::{Environment, workspace};
use crate::verify::POLICY;
use insta::assert_snapshot;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

#[test]
fn an_honest_commit_is_held_and_nothing_outside_is_touched() {
    let environment = Environment::with_pricing();
    fs::remove_file(environment.state().join("cache")).unwrap();
    let repository = environment.listing("repo");
    let run = environment.certify("candidate", &[]);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
    HELD: ________________________________________ certified: _ cases, _ of _ mutants killed, _ waived
      certificate ________________________________________________________________
      not proven: that the cases are complete
    --- stderr
      plan        9 cases  (_.__ s)
      capture     _ changed file, bundle of _ bytes  (_.__ s)
      dependency  0 locked packages  (_.__ s)
      fence       source rules hold  (_.__ s)
      open        local: _ limits read back, _ forbidden acts denied  (_.__ s)
      build       compiled offline  (_.__ s)
      correctness 9 runs  (_.__ s)
      determinism 9 runs  (_.__ s)
      mutation    _ mutants, _ builds and runs  (_.__ s)
      close       no process, cgroup, mount or directory left  (_.__ s)
      judge       7 gates passed  (_.__ s)
      open        local: _ limits read back, _ forbidden acts denied  (_.__ s)
      baseline    the cases ran on the baseline  (_.__ s)
      close       no process, cgroup, mount or directory left  (_.__ s)
      certify     $TREE/out/certificate.dsse.json  (_.__ s)
    "#);
    assert_eq!(environment.listing("repo"), repository, "the repository");
    assert_eq!(
        environment.listing("tmp"),
        BTreeMap::new(),
        "the temporary folder"
    );
    assert_eq!(
        environment.listing("work"),
        BTreeMap::new(),
        "the working directory"
    );
    let names = |below: &str| {
        let names = environment.listing(below).into_keys();
        names
            .filter(|name| !name.contains("cache/t"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_snapshot!(names("out"), @r#"
    certificate.dsse.json
    certificate.dsse.json.sig
    mutation-report.json
    opening.json
    svr.dsse.json
    test-result.dsse.json
    verdict.json
    "#);
    assert_snapshot!(names("home"), @"
    .local/
    .local/state/
    .local/state/flightproof/
    .local/state/flightproof/cache/
    .local/state/flightproof/keys/
    .local/state/flightproof/keys/flightproof.pem
    .local/state/flightproof/keys/flightproof.pem.pub
    .local/state/flightproof/ledger/
    .local/state/flightproof/ledger/admission.lock
    .local/state/flightproof/ledger/ledger.anchor
    .local/state/flightproof/ledger/ledger.sqlite
    .local/state/flightproof/log-seen
    .local/state/flightproof/log/
    .local/state/flightproof/log/checkpoint
    .local/state/flightproof/log/key.pem
    .local/state/flightproof/log/lock
    .local/state/flightproof/log/tile/
    .local/state/flightproof/log/tile/0/
    .local/state/flightproof/log/tile/0/000.p/
    .local/state/flightproof/log/tile/0/000.p/1
    .local/state/flightproof/log/tile/entries/
    .local/state/flightproof/log/tile/entries/000.p/
    .local/state/flightproof/log/tile/entries/000.p/1
    .local/state/flightproof/sessions/
    ");
}

#[test]
fn an_admitted_commit_moves_its_branch_once_and_leaves_a_receipt() {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &["--admit", "release"]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(
        environment.git(&["rev-parse", "release"]),
        environment.git(&["rev-parse", "candidate"])
    );
    let json = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(environment.path("out").join(name)).unwrap()).unwrap()
    };
    let (verdict, receipt) = (json("verdict.json"), json("receipt.json"));
    assert_eq!(verdict["verdict"], "admitted");
    assert_eq!(receipt["certificate"], verdict["certificate"]);
    assert_eq!(receipt["branch"], "refs/heads/release");
    assert_eq!(receipt["recovered"], false);

    let again = environment.certify("candidate", &["--admit", "release"]);
    assert_snapshot!(again.text, @r#"
    exit 2
    --- stdout
    REFUSED at plan: flights/ALREADY_ADMITTED: release is at ________________________________________
      | the certificate of an earlier flight is in $TREE/out/earlier/1
      hint: its certificate and receipt were written when it came in; leave --admit away for a new certificate
    "#);
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_not_moved() {
    let environment = Environment::with_pricing();
    let before = environment.git(&["rev-parse", "release"]);
    let place = environment.path("elsewhere");
    environment.git(&["worktree", "add", "-q", place.to_str().unwrap(), "release"]);
    let run = environment.certify("candidate", &["--admit", "release", "--format", "json"]);
    assert_eq!(environment.git(&["rev-parse", "release"]), before);
    assert_eq!(run.code, 20, "{}", run.text);
    assert_eq!(run.json()["code"], "importer/BRANCH_CHECKED_OUT");
    // Nothing was flown for it.
    let files: Vec<_> = environment.listing("out").into_keys().collect();
    assert_eq!(files, ["verdict.json"]);
}

#[test]
fn a_branch_that_is_checked_out_here_moves_with_its_files() {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &["--admit", "main"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let candidate = environment.git(&["rev-parse", "candidate"]);
    assert_eq!(environment.git(&["rev-parse", "main"]), candidate);
    assert_eq!(environment.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_a_working_tree_could_not_take_is_refused_before_the_flight() {
    let environment = Environment::with_pricing();
    let before = environment.git(&["rev-parse", "main"]);
    let file = environment.path("repo/src/main.rs");
    let baseline = fs::read_to_string(&file).unwrap();
    let refused = || {
        let run = environment.certify("candidate", &["--admit", "main", "--format", "json"]);
        let verdict = run.json();
        assert_eq!(verdict["code"], "importer/SOURCE_CHANGED", "{}", run.text);
        assert_eq!(verdict["stage"], "plan", "{}", run.text);
        let made = environment.path("out/certificate.dsse.json").exists();
        assert!(!made, "nothing was flown for it");
        verdict["detail"].as_str().unwrap().to_owned()
    };
    // A file that the candidate changes, with as many bytes as before; gone; something staged.
    fs::write(&file, baseline.replacen("use", "Use", 1)).unwrap();
    assert!(refused().contains("src/main.rs"));
    fs::remove_file(&file).unwrap();
    assert!(refused().contains("src/main.rs"));
    fs::write(&file, &baseline).unwrap();
    environment.write("repo/other.txt", "staged\n");
    environment.git(&["add", "other.txt"]);
    assert!(refused().contains("staged"));
    environment.git(&["reset", "-q"]);
    assert_eq!(environment.logged(), [""; 0]);
    assert_eq!(environment.git(&["rev-parse", "main"]), before);
    // What the candidate does not touch is in nobody's way.
    let run = environment.certify("candidate", &["--admit", "main"]);
    assert_eq!(run.code, 0, "{}", run.text);
}

#[test]
fn what_a_flight_came_to_stands_though_it_cannot_be_written() {
    let environment = Environment::with_pricing();
    with_backdoor(&environment);
    let survivor = "  | src/main.rs:31  if quantity == 133_700 {";
    for (candidate, more, code, word, tip) in [
        ("backdoor", &[][..], 10, "REFUSED at mutation: ", "main"),
        ("candidate", &[], 0, "HELD: ", "main"),
        (
            "candidate",
            &["--admit", "release"],
            0,
            "ADMITTED: ",
            "candidate",
        ),
    ] {
        let mut command = environment.certify_command(candidate, more);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut progress = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        progress.read_line(&mut told).unwrap();
        let names = ["verdict.json", "mutation-report.json"];
        let places = names.map(|name| environment.path("out").join(name));
        places
            .iter()
            .for_each(|place| fs::create_dir(place).unwrap());
        progress.read_to_string(&mut told).unwrap();
        let run = environment.told(&child.wait_with_output().unwrap());
        assert_eq!(run.code, code, "{}", run.text);
        assert!(run.stdout.starts_with(word), "{}", run.text);
        assert_eq!(run.stdout.contains(survivor), code == 10, "{}", run.text);
        assert!(!run.stdout.contains("to paste, those are"), "{}", run.text);
        for name in names {
            let note = format!("out/{name}: is there and is no regular file");
            let line = run.stdout.lines().find(|line| line.contains(&note));
            assert!(
                line.unwrap().contains("could not be written"),
                "{}",
                run.text
            );
        }
        let at = |name: &str| environment.git(&["rev-parse", name]);
        assert_eq!(at("release"), at(tip));
        places
            .iter()
            .for_each(|place| fs::remove_dir(place).unwrap());
    }
}

#[test]
fn a_policy_that_no_new_certificate_meets_is_refused_before_the_flight() {
    let environment = Environment::with_pricing();
    let key = "0".repeat(64);
    let own = flightproof_certifier::key::PublicKey::from_pem(
        &fs::read_to_string(environment.public_key()).unwrap(),
    );
    let own = own.unwrap().id().to_string();
    let rule = format!("\"keys\":[\"{own}\"],\"admission\":{{\"keys\":[\"{key}\"]}},\"allow\"");
    let policy = POLICY.replace("\"allow\"", &rule);
    let policy = environment.write("wants.json", &policy);
    let run = environment.certify("candidate", &["--admit", "release", "--policy", &policy]);
    assert_snapshot!(run.text, @r#"
    exit 20
    --- stdout
    REFUSED at plan: flights/POLICY_WANTS_MORE: a second statement
      hint: sign with a key that the policy names; for what others add, leave --admit away, then let the commit in with `flights admit`
    "#);
    assert!(!environment.state().join("log").exists());
    // Without --admit nothing of it is asked for yet.
    let run = environment.certify("candidate", &["--policy", &policy]);
    assert_eq!(run.code, 0, "{}", run.text);
    let note = "the policy wants beside it: a second statement";
    assert!(run.stdout.contains(note), "{}", run.text);
}

#[test]
fn an_earlier_flight_s_certificate_is_moved_aside_and_kept() {
    let environment = Environment::with_pricing();
    assert_eq!(environment.certify("candidate", &[]).code, 0);
    let run = environment.certify("candidate", &["--grant", "src/lib.rs"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let told = "the certificate of an earlier flight is in ";
    let told = run.stdout.lines().find(|line| line.contains(told));
    assert!(told.unwrap().ends_with("/out/earlier/1"), "{}", run.text);
    let files: Vec<_> = environment.listing("out").into_keys().collect();
    assert_eq!(
        files,
        [
            "earlier/",
            "earlier/1/",
            "earlier/1/certificate.dsse.json",
            "earlier/1/certificate.dsse.json.sig",
            "earlier/1/mutation-report.json",
            "earlier/1/opening.json",
            "earlier/1/svr.dsse.json",
            "earlier/1/test-result.dsse.json",
            "earlier/1/verdict.json",
            "verdict.json"
        ]
    );
}

/// The run over a candidate made by editing the honest one.
fn refused_edit(edit: impl FnOnce(String) -> String) -> String {
    let environment = Environment::with_pricing();
    environment.candidate_edit("edited", edit);
    environment.certify("edited", &["--format", "json"]).text
}

fn refused_files(files: &[(&str, &str)]) -> String {
    let environment = Environment::with_pricing();
    let files = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    environment.candidate("changed", &files);
    environment.certify("changed", &["--format", "json"]).text
}

#[test]
fn a_witness_that_cannot_be_read_is_a_usage_error() {
    let environment = Environment::with_pricing();
    let run = environment.certify(
        "candidate",
        &["--witness", "no-such.json", "--format", "json"],
    );
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/WITNESS_UNREADABLE","stage":"plan","detail":"no-such.json: No such file or directory (os error 2)","hint":"check the path, given with --witness or in the plan, and the driver beside the file"}
    "#);
    let driver = environment.write(
        "witness.json",
        r#"{"schema":"flightproof/witness/1","driver":"gone.rs","cases":[{"id":"a","args":[],"stdin":"","files":{},"env":{},"expect":{"exit":0,"stdout":"1"}},{"id":"b","args":[],"stdin":"x","files":{},"env":{},"expect":{"exit":0,"stdout":"2"}}],"waivers":[]}"#,
    );
    let run = environment.certify("candidate", &["--witness", &driver]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    REFUSED at plan: flights/WITNESS_UNREADABLE: $TREE/gone.rs: No such file or directory (os error 2)
      hint: check the path, given with --witness or in the plan, and the driver beside the file
    "#);
}

#[test]
fn a_witness_that_breaks_its_schema_is_a_configuration_error() {
    let environment = Environment::with_pricing();
    let witness = environment.write(
        "witness.json",
        r#"{"schema":"flightproof/witness/1","cases":[]}"#,
    );
    let run = environment.certify("candidate", &["--witness", &witness, "--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 20
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"certifier/WITNESS_INVALID","stage":"plan","detail":"$TREE/witness.json: exactly one of \"bin\" and \"driver\" is needed","hint":"compare the file with the witness schema in docs/formats.md"}
    "#);
}

/// Whoever wrote it finds the place: the file, the case, the field.
#[test]
fn what_is_wrong_with_a_file_of_the_operator_is_told_with_its_place() {
    let environment = Environment::with_pricing();
    let told = |name: &str, text: &str, flag: &str| {
        let file = environment.write(name, text);
        let run = environment.certify("candidate", &[flag, &file]);
        assert_eq!(run.code, 20, "{}", run.text);
        run.text.lines().nth(2).unwrap().to_owned()
    };
    let case = |id: &str, expect: &str| format!("{{\"id\":\"{id}\",\"expect\":{expect}}}");
    let witness = |cases: &[String]| {
        let cases = cases.join(",");
        format!("{{\"schema\":\"flightproof/witness/1\",\"bin\":\"pricing\",\"cases\":[{cases}]}}")
    };
    let good = case("one", "{\"exit\":0}");
    let field = witness(&[good.clone(), case("two", "{\"exti\":0}")]);
    let twice = witness(&[good.clone(), good]);
    assert_snapshot!(told("w.json", &field, "--witness"), @"REFUSED at plan: certifier/WITNESS_INVALID: $TREE/w.json: /cases/1/expect: unknown field `exti`, expected one of `exit`, `stdout`, `stdout_json`, `stderr_contains`");
    assert_snapshot!(told("w.json", &twice, "--witness"), @"REFUSED at plan: certifier/WITNESS_INVALID: $TREE/w.json: case one stands twice");
    let policy = "{\"schema\":\"flightproof/policy/1\",\"threshold\":1,\"allow\":{\"tests\":1}}";
    assert_snapshot!(told("p.json", policy, "--policy"), @"REFUSED at plan: certifier/POLICY_INVALID: $TREE/p.json: /allow/tests: invalid type: integer `1`, expected a boolean");
}

/// It is in no tree, and whoever works in the directory reads it all the same.
#[test]
fn a_private_witness_in_the_directory_of_the_repository_is_told() {
    let environment = Environment::with_pricing();
    let own = fs::read_to_string(workspace().join("flights/witness/pricing.json")).unwrap();
    let note = "the witness lies in the repository's directory (judge/w.json)";
    let inside = environment.write("repo/judge/w.json", &own);
    let run = environment.certify("candidate", &["--witness", &inside]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(run.stdout.contains(note), "{}", run.text);
    // One that anybody may read, and one elsewhere, need no note.
    let public = own.replacen('{', "{\"public\": true,", 1);
    environment.write("repo/judge/w.json", &public);
    let outside = environment.write("w.json", &own);
    for witness in [&inside, &outside] {
        let run = environment.certify("candidate", &["--witness", witness]);
        assert_eq!(run.code, 0, "{}", run.text);
        assert!(
            !run.stdout.contains("whoever makes candidates"),
            "{}",
            run.text
        );
    }
}

#[test]
fn a_missing_repository_and_an_unknown_revision_are_usage_errors() {
    let environment = Environment::with_pricing();
    let run = environment.certify("no-such-branch", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"importer/UNKNOWN_REVISION","stage":"capture","detail":"no-such-branch","hint":"check the spelling and that the commit was fetched"}
    "#);
    fs::rename(environment.path("repo"), environment.path("gone")).unwrap();
    let run = environment.certify("candidate", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"importer/NOT_A_REPOSITORY","stage":"capture","detail":"$TREE/repo: No such file or directory (os error 2)","hint":"name the folder that has the .git entry, or a bare repository"}
    "#);
}

#[test]
fn a_lock_file_that_cannot_be_read_is_a_usage_error() {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &["--lock", "no.lock", "--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/FILE_UNREADABLE","stage":"plan","detail":"no.lock: No such file or directory (os error 2)","hint":"check the path"}
    "#);
}

#[test]
fn a_change_outside_the_grant_is_refused_at_check() {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &["--grant", "src/lib.rs", "--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 10
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"importer/PATH_NOT_GRANTED","stage":"check","detail":"src/main.rs","hint":"name every path that may change with --grant, or undo the change"}
    "#);
}

#[test]
fn another_identity_is_refused_at_check() {
    let environment = Environment::with_pricing();
    let wanted = [
        "--identity",
        "Somebody Else <else@example.invalid>",
        "--format",
        "json",
    ];
    assert_snapshot!(environment.certify("candidate", &wanted).text, @r#"
    exit 10
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"importer/IDENTITY_MISMATCH","stage":"check","detail":"author: got An Author <author@example.invalid>, expected Somebody Else <else@example.invalid>","hint":"commit under the identity of the flight"}
    "#);
    let right = ["--identity", "An Author <author@example.invalid>"];
    assert_eq!(environment.certify("candidate", &right).code, 0);
}

#[test]
fn a_cargo_configuration_is_refused_at_dependency() {
    let text = refused_files(&[(
        ".cargo/config.toml",
        "[build]\nrustc-wrapper = \"./evil\"\n",
    )]);
    assert_snapshot!(text, @r#"
    exit 10
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"certifier/CARGO_CONFIG","stage":"dependency","detail":".cargo/config.toml","hint":"leave the directory as it is, or have a person review and commit it"}
    "#);
}

#[test]
fn a_repository_without_a_lock_is_refused_unless_it_is_given_one() {
    let environment = Environment::with_pricing();
    let lock = environment.write(
        "Cargo.lock",
        &fs::read_to_string(workspace().join("fixtures/pricing/baseline/Cargo.lock")).unwrap(),
    );
    environment.git(&["rm", "--quiet", "Cargo.lock"]);
    environment.git(&["commit", "--quiet", "-m", "Without a lock"]);
    environment.candidate_edit("unlocked", |text| text);
    let run = environment.certify("unlocked", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 20
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"certifier/LOCK_MISSING","stage":"dependency","detail":"Cargo.lock","hint":"commit a Cargo.lock, or give one with --lock FILE (in a plan: change.lock); a program in another language than Rust has none: name the language in the witness, such as \"language\": \"python\""}
    "#);
    let run = environment.certify("unlocked", &["--lock", &lock]);
    assert_eq!(run.code, 0, "{}", run.text);
}

/// The candidate is built with the lock that it brings, its baseline with the given one.
#[test]
fn a_lock_that_is_given_takes_the_place_of_none_that_is_there() {
    let environment = Environment::with_pricing();
    let other = environment.write("other.lock", "version = 4\n");
    let run = environment.certify("candidate", &["--lock", &other]);
    assert_eq!(run.code, 0, "{}", run.text);
    let read = |name: &str| fs::read_to_string(environment.path("repo").join(name)).unwrap();
    let newer = |text: String| text.replace("version = \"1.0.0\"", "version = \"1.0.1\"");
    let (lock, manifest) = (read("Cargo.lock"), newer(read("Cargo.toml")));
    let given = environment.write("given.lock", &lock);
    environment.git(&["rm", "--quiet", "Cargo.lock"]);
    environment.git(&["commit", "--quiet", "-m", "Without a lock"]);
    let fixed = workspace().join("fixtures/pricing/candidate/src/main.rs");
    let files = [
        ("Cargo.toml", manifest),
        ("Cargo.lock", newer(lock)),
        ("src/main.rs", fs::read_to_string(fixed).unwrap()),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text));
    environment.candidate("locked", &files.into());
    let mut args = vec!["--lock", &*given];
    for path in ["src", "Cargo.toml", "Cargo.lock"] {
        args.extend(["--grant", path]);
    }
    let run = environment.certify("locked", &args);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(
        run.stderr.contains("the cases ran on the baseline"),
        "{}",
        run.text
    );
}

#[test]
fn unsafe_code_in_changed_lines_is_refused_at_fence() {
    let text = refused_edit(|text| {
        text.replace(
            "let price = quantity",
            "let price = unsafe { std::mem::zeroed::<u64>() } + quantity",
        )
    });
    assert_snapshot!(text, @r#"
    exit 10
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"certifier/UNSAFE_CODE","stage":"fence","detail":"src/main.rs:30: unsafe on a changed line","hint":"write it without unsafe, or have a person review and commit it"}
    "#);
}

#[test]
fn a_build_that_fails_shows_a_dozen_diagnostics_in_the_candidates_own_lines() {
    let environment = Environment::with_pricing();
    environment.candidate_edit("broken", |text| {
        let mut text = text;
        for i in 0..30 {
            text.push_str(&format!("fn f{i}() -> u32 {{ missing_{i}() }}\n"));
        }
        text
    });
    let run = environment.certify("broken", &["--format", "json"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let verdict = run.json();
    assert_eq!(verdict["stage"], "build");
    let notes: Vec<_> = verdict["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_str().unwrap())
        .collect();
    assert_eq!(notes.len(), 12, "{notes:?}");
    assert!(
        notes.iter().all(|n| n.contains("src/main.rs:")),
        "{notes:?}"
    );
    assert_snapshot!(notes[0], @"src/main.rs:39: error[E0425]: cannot find function `missing_0` in this scope");
}

#[test]
fn a_wrong_answer_is_refused_at_correctness() {
    let environment = Environment::with_pricing();
    environment.candidate_edit("wrong", |text| text.replace("+ 300", "+ 301"));
    let run = environment.certify("wrong", &["--format", "json"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let verdict = run.json();
    assert_eq!(verdict["code"], "certifier/CASE_STDOUT_MISMATCH");
    assert_eq!(verdict["stage"], "correctness");
    // The order of the cases is drawn; either of the two that are wrong may be the first.
    let detail = verdict["detail"].as_str().unwrap();
    assert!(
        ["case one", "case last-with-fee"].contains(&detail),
        "{detail}"
    );
    for expected in ["550", "2550"] {
        assert!(!run.text.contains(expected), "{}", run.text);
    }
}

#[test]
fn an_answer_that_changes_is_refused_at_determinism() {
    let environment = Environment::with_pricing();
    environment.candidate_edit("dice", |text| {
        text.replace(
            "eprintln!(\"pricing: not a quantity\")",
            "eprintln!(\"pricing: not a quantity {:?}\", std::time::SystemTime::now())",
        )
    });
    let run = environment.certify("dice", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 10
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"certifier/NONDETERMINISTIC","stage":"determinism","detail":"case word","hint":"remove the source of chance, such as the order of a hash map"}
    "#);
}

/// The honest change and a branch that no case comes to, as `backdoor`.
fn with_backdoor(environment: &Environment) {
    environment.candidate_edit("backdoor", |text| {
        text.replace(
            "    if quantity >= 100 {",
            "    if quantity == 133_700 {\n        return 0;\n    }\n    if quantity >= 100 {",
        )
    });
}

#[test]
fn a_branch_that_no_case_reaches_is_refused_at_mutation() {
    let environment = Environment::with_pricing();
    with_backdoor(&environment);
    let run = environment.certify("backdoor", &["--format", "json"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let verdict = run.json();
    assert_eq!(verdict["code"], "certifier/MUTANTS_SURVIVED");
    assert_eq!(verdict["stage"], "mutation");
    let notes = verdict["notes"].as_array().unwrap();
    assert_snapshot!(notes[0].as_str().unwrap(), @r#"{"mutant": "src/main.rs:31:8 condition quantity == 133_700 -> false", "source": "90c84f47c9c3d27b696b3bbd2431ce4db48f295e6d1391bc8b1e6c73b6355c01", "reason": "REPLACE: why it is accepted"}"#);
}

#[test]
fn people_see_the_line_of_a_survivor_and_find_the_waivers_in_the_verdict() {
    let environment = Environment::with_pricing();
    with_backdoor(&environment);
    let run = environment.certify("backdoor", &[]);
    assert_eq!(run.code, 10, "{}", run.text);
    let line = "\n  | src/main.rs:31  if quantity == 133_700 {\n  |     condition        quantity == 133_700 -> false\n";
    assert!(run.stdout.contains(line), "{}", run.text);
    assert_eq!(run.stdout.matches("src/main.rs:31  ").count(), 1);
    assert!(!run.stdout.contains("\"reason\""), "{}", run.text);
    let told = "\n  waivers: to paste, those are the notes in ";
    assert!(run.stdout.contains(told), "{}", run.text);
    let verdict = std::fs::read_to_string(environment.path("out/verdict.json")).unwrap();
    assert!(
        verdict.contains(r#"{\"mutant\": \"src/main.rs:31:8 "#),
        "{verdict}"
    );
}

#[test]
fn survivors_and_other_refusals_are_annotations_for_programs() {
    let environment = Environment::with_pricing();
    with_backdoor(&environment);
    let run = environment.certify("backdoor", &["--format", "github"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let first = "::error file=src/main.rs,line=31,col=8,title=mutant survived%3A condition::quantity == 133_700 -> false: no case noticed it";
    assert_eq!(lines[0], first);
    let total = "::notice title=flights::REFUSED at mutation: certifier/MUTANTS_SURVIVED: ";
    assert!(lines.last().unwrap().starts_with(total), "{}", run.text);
    let sarif = environment
        .certify("backdoor", &["--format", "sarif"])
        .json();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), lines.len() - 1);
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/main.rs");
    assert_eq!(place["region"]["startLine"], 31);
    // What a refusal says of a line is told there.
    environment.candidate_edit("constant", |text| {
        text.replace("u64 = 250", "u64 = 200 + 50")
    });
    let run = environment.certify("constant", &["--format", "github"]);
    let first = "::error file=src/main.rs,line=7,title=refused at ";
    assert!(run.stdout.starts_with(first), "{}", run.text);
    assert!(run.stdout.contains("UNJUDGED_CODE"), "{}", run.text);
    // What is at no line is told all the same.
    let run = environment.certify("no-such", &["--format", "github"]);
    assert_eq!(run.code, 2, "{}", run.text);
    let first = "::error title=refused at capture::REFUSED at capture: importer/UNKNOWN_REVISION: no-such%0A";
    assert!(run.stdout.starts_with(first), "{}", run.text);
    assert_eq!(run.stdout.matches("hint").count(), 1, "{}", run.text);
}

#[test]
fn terminal_escapes_of_a_candidate_reach_nobodys_terminal() {
    let environment = Environment::with_pricing();
    environment.candidate_edit("loud", |text| {
        text.replace(
            "println!(\"{}\",",
            "println!(\"\\x1b[2J\\x1b]0;owned\\x07\\u{202e}{}\",",
        )
    });
    for format in ["human", "json"] {
        let run = environment.certify("loud", &["--format", format]);
        assert_eq!(run.code, 10, "{}", run.text);
        let shown = format!("{}{}", run.stdout, run.stderr);
        let hostile = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!shown.contains(hostile), "{shown:?}");
        assert!(
            !shown.contains("owned") || shown.contains("\\u{1b}"),
            "{shown}"
        );
    }
}

#[test]
fn hostile_names_of_a_commit_are_shown_escaped() {
    let environment = Environment::with_pricing();
    environment.candidate(
        "named",
        &BTreeMap::from([("src/\u{1b}[31mred.rs".to_owned(), "// red\n".to_owned())]),
    );
    let run = environment.certify("named", &["--grant", "src/main.rs"]);
    assert_snapshot!(run.text, @r#"
    exit 10
    --- stdout
    REFUSED at check: importer/NAME_REFUSED: \u{1b}[31mred.rs: it has a control or invisible character
      hint: use a plain name; a file that the baseline has under such a name can be deleted or renamed, and changed under its new name
    --- stderr
      plan        9 cases  (_.__ s)
    "#);
    assert!(!run.stdout.contains('\u{1b}'), "{:?}", run.stdout);
}

#[test]
fn a_branch_that_is_missing_or_elsewhere_is_refused_before_the_flight() {
    let environment = Environment::with_pricing();
    let wanted = ["--admit", "no-such-branch", "--format", "json"];
    assert_snapshot!(environment.certify("candidate", &wanted).text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"importer/BRANCH_MISSING","stage":"plan","detail":"refs/heads/no-such-branch","hint":"create the branch at the baseline first"}
    "#);
    environment.candidate_edit("elsewhere", |text| format!("{text}// Another change.\n"));
    let wanted = ["--admit", "elsewhere", "--format", "json"];
    assert_snapshot!(environment.certify("candidate", &wanted).text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"importer/BRANCH_MOVED","stopped":true,"stage":"plan","detail":"refs/heads/elsewhere is at ________________________________________, expected ________________________________________","hint":"rebase the work onto the branch and certify again, or let `flights refly CERT --onto REV` do both"}
    "#);
}
