//! `flights run`: plans flown for real, recorded, and replayed.

use crate::environment::{Environment, copy, workspace};
use crate::forge;
use flightproof_archive::paws;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certification::Certification;
use flightproof_certifier::key::{PublicKey, SecretKey};
use flightproof_certifier::tree::Tree;
use flightproof_core::{Code as _, Digest};
use flightproof_flights::FlightsCode;
use flightproof_flights::flight::{self, Flown, Order, Proven};
use flightproof_flights::plan::Plan;
use flightproof_flights::show::{Progress, Speak};
use flightproof_flights::transcript::{Player, Tape};
use flightproof_session::lease::{Claims as _, Leases, Reaper};
use flightproof_session::record::Record;
use insta::assert_snapshot;
use serde_json::Value;
use std::fs;

const PLAN: &str = r#"schema = "flightproof/plan/1"
name = "pricing"
about = "An honest change."
[source]
trees = { baseline = "fixtures/pricing/baseline", candidate = "fixtures/pricing/candidate" }
[witness]
file = "flights/witness/pricing.json"
[expect]
verdict = "held"
"#;

/// A project with one plan, recorded with a key of its own.
pub(crate) fn recorded() -> Environment {
    let environment = project();
    let run = fly(&environment, &["--local", "--record", "--out", "out"]);
    assert_eq!(run.code, 0, "{}", run.text);
    // The first who records lays down their key.
    let pinned = environment.path("root/flights/recordings/recorder.pub");
    let own = fs::read(environment.public_key()).unwrap();
    assert_eq!(fs::read(pinned).unwrap(), own);
    environment
}

pub(crate) fn project() -> Environment {
    let environment = Environment::with_pricing();
    for folder in ["fixtures/pricing", "flights/witness"] {
        copy(
            &workspace().join(folder),
            &environment.path("root").join(folder),
        );
    }
    fs::create_dir(environment.path("root/flights/recordings")).unwrap();
    environment.write("root/flights/pricing.toml", PLAN);
    environment
}

fn fly(environment: &Environment, more: &[&str]) -> crate::environment::Run {
    let root = environment.path("root");
    let mut args = vec!["run", "--root", root.to_str().unwrap()];
    args.extend(more);
    environment.flights(&args)
}

#[test]
fn a_flight_is_flown_recorded_and_replayed_to_its_own_predicate() {
    let environment = recorded();
    let files: Vec<_> = environment.listing("work/out").into_keys().collect();
    assert_eq!(
        files,
        [
            "pricing/",
            "pricing/certificate.dsse.json",
            "pricing/certificate.dsse.json.sig",
            "pricing/mutation-report.json",
            "pricing/opening.json",
            "pricing/svr.dsse.json",
            "pricing/test-result.dsse.json",
            "pricing/verdict.json"
        ]
    );
    let events = environment.logged();
    assert_eq!(events, ["certified"], "what is handed out is in the log");
    let replay = fly(&environment, &[]);
    assert_snapshot!(replay.text, @r#"
    exit 0
    --- stdout
         flight      time  verdict                                      certificate
    ok   pricing   _.__ s  held                                         -
    1 passed, 0 failed
    "#);
    assert_eq!(environment.listing("tmp").len(), 0);
    let first =
        fs::read(environment.path("root/flights/recordings/pricing.flight/transcript.jsonl"))
            .unwrap();

    // Recorded again, it is another recording, which replays to its own predicate.
    assert_eq!(fly(&environment, &["--local", "--record"]).code, 0);
    let second =
        fs::read(environment.path("root/flights/recordings/pricing.flight/transcript.jsonl"))
            .unwrap();
    assert_ne!(first, second);
    assert_eq!(fly(&environment, &[]).code, 0);
    let folders: Vec<_> = environment
        .listing("root/flights/recordings")
        .into_keys()
        .filter(|n| !n.contains("blobs/"))
        .collect();
    assert_eq!(
        folders,
        [
            "pricing.flight/",
            "pricing.flight/transcript.jsonl",
            "recorder.pub"
        ]
    );
}

#[test]
fn nobody_records_over_what_is_held_against_the_keys_of_others() {
    let environment = recorded();
    let before = environment.listing("root/flights/recordings");
    let other = ["key", "new", "--no-passphrase", "--out", "other"];
    assert_eq!(environment.flights(&other).code, 0);
    let record = || {
        fly(
            &environment,
            &["--local", "--record", "--key", "other", "--format", "json"],
        )
    };
    let refused = record();
    assert_eq!(
        refused.json()["code"],
        "flights/RECORDER_OTHER",
        "{}",
        refused.text
    );
    assert_eq!(refused.code, 20);
    assert_eq!(environment.listing("root/flights/recordings"), before);
    // Nor where recordings lie without any key.
    let pinned = environment.path("root/flights/recordings/recorder.pub");
    fs::remove_file(&pinned).unwrap();
    assert_eq!(record().json()["code"], "flights/RECORDER_OTHER");
    let unknown = fly(&environment, &["--format", "json"]);
    assert_eq!(
        unknown.json()["code"],
        "flights/RECORDER_UNKNOWN",
        "{}",
        unknown.text
    );

    fs::copy(environment.public_key(), &pinned).unwrap();
    let beside = environment.path("root/flights/recordings/other.pub");
    fs::copy(environment.path("work/other.pub"), beside).unwrap();
    assert_eq!(record().code, 0);
    assert_eq!(fly(&environment, &[]).code, 0);
}

#[test]
fn a_replay_reports_as_one_json_document() {
    let environment = recorded();
    let run = fly(&environment, &["--format", "json"]);
    let mut report = run.json();
    report["flights"][0]["milliseconds"] = 0.into();
    let stages = report["flights"][0]["stages"].take();
    let names: Vec<&str> = stages
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["stage"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"plan"));
    assert_eq!(names.last(), Some(&"close"));
    let detail = report["flights"][0]["verdict"]["detail"].take();
    assert!(
        detail.as_str().unwrap().contains(" certified: 9 cases, "),
        "{detail}"
    );
    assert_snapshot!(report.to_string(), @r#"{"failed":0,"flights":[{"milliseconds":0,"name":"pricing","stages":null,"verdict":{"detail":null,"schema":"flightproof/verdict/1","stage":"certify","verdict":"held"},"way":"replayed"}],"passed":1,"schema":"flightproof/run/1"}"#);
    // A replay signs nothing: there is no certificate in it.
    assert!(report["flights"][0]["verdict"].get("certificate").is_none());
}

#[test]
fn what_a_recording_is_bound_to_may_not_change_after_it() {
    let environment = recorded();
    let changes = [
        ("flights/pricing.toml", "honest", "decent"),
        ("flights/witness/pricing.json", "22500", "22501"),
        ("fixtures/pricing/candidate/src/main.rs", "300", "301"),
        ("fixtures/pricing/baseline/Cargo.toml", "pricing", "prices"),
    ];
    for (file, from, to) in changes {
        let path = environment.path("root").join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let run = fly(&environment, &["--format", "json"]);
        assert_eq!(run.code, 11, "{file}: {}", run.text);
        let code = run.json()["flights"][0]["failure"]["code"].clone();
        assert_eq!(code, "flights/TRANSCRIPT_DIVERGED", "{file}");
        fs::write(&path, text).unwrap();
    }
    assert_eq!(fly(&environment, &[]).code, 0);
}

#[test]
fn without_an_engine_live_flights_say_what_was_tried_and_how_to_start_one() {
    let environment = project();
    let live = fly(&environment, &["--live", "--format", "json"]);
    assert_snapshot!(live.text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"session/ENGINE_MISSING","stopped":true,"stage":"plan","detail":"unix:///nonexistent/engine.sock: No such file or directory (os error 2)","hint":"where its socket says `Permission denied`, be root or a member of its group (usermod -aG docker USER, then log in anew); else install and start one: apt-get install docker.io && dockerd; or name one that listens elsewhere in DOCKER_HOST"}
    "#);
    let root = environment.path("root");
    let mut command = environment.command(&["run", "--root", root.to_str().unwrap(), "--live"]);
    command
        .env_remove("DOCKER_HOST")
        .env("XDG_RUNTIME_DIR", environment.path("run"));
    // A machine with an engine flies; the sockets of one without are listed by `Endpoint`'s tests.
    if !std::path::Path::new("/var/run/docker.sock").exists() {
        let run = environment.run(&mut command);
        assert_eq!(run.code, 21, "{}", run.text);
        assert!(
            run.text.contains("tried /var/run/docker.sock"),
            "{}",
            run.text
        );
    }
}

#[test]
fn reaping_without_an_engine_looks_at_this_machine() {
    let environment = Environment::new();
    let run = environment.flights(&["reap", "--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
    {"engine":null,"left":[],"removed":[],"schema":"flightproof/reap/1"}
    "#);
    // Sessions that were opened on an engine which is not there now may be left on it.
    let record = environment.state().join("engines/00ff.json");
    fs::create_dir_all(record.parent().unwrap()).unwrap();
    fs::write(&record, "{}").unwrap();
    let run = environment.flights(&["reap"]);
    assert_eq!(run.code, 21, "{}", run.text);
    assert!(run.text.contains("session/ENGINE_MISSING"), "{}", run.text);
}

/// Writes down a session on this machine as one of another owner: what is given, and the rest as it is
/// of this process.
fn register(environment: &Environment, id: &str, fence: u64, owner: &[(&str, Value)]) {
    let group = format!("/sys/fs/cgroup/flightproof-{id}").into();
    let directory = environment.path(&format!("tmp/flightproof-{id}"));
    let mut record = Record::new(id, &[group], &directory).unwrap();
    record.fence = fence;
    record.store(&environment.state()).unwrap();
    let file = environment.state().join(format!("sessions/{id}.json"));
    let mut written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for (field, value) in owner {
        written["owner"][*field] = value.clone();
    }
    fs::write(&file, written.to_string()).unwrap();
}

#[test]
fn what_a_reaper_may_not_remove_is_named_and_not_well() {
    let environment = Environment::new();
    let leases = Leases::of(&environment.state().join("ledger"));
    let fence = leases.take("00ff", 1000).unwrap().token;
    register(&environment, "00ff", fence, &[("started", 1.into())]);
    let mut busy = Reaper::new(leases);
    assert!(busy.claim("00ff", fence).unwrap());
    register(&environment, "00ee", 1, &[("namespace", "pid:[1]".into())]);
    assert_snapshot!(environment.flights(&["reap"]).text, @r"
    exit 21
    --- stdout
    00ee: it stands: its owner is not of this pid namespace, and may live
    00ff: left by a run that was killed, and it stands: another program is removing it
    0 removed, 2 left; looked at this machine; no container engine answers
    ");
    fs::remove_file(environment.state().join("sessions/00ff.json")).unwrap();
    busy.gone("00ff").unwrap();
    let run = environment.flights(&["reap", "--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
    {"engine":null,"left":["00ee: it stands: its owner is not of this pid namespace, and may live"],"removed":[],"schema":"flightproof/reap/1"}
    "#);
}

#[test]
fn a_plan_without_a_recording_does_not_pass() {
    let environment = project();
    let run = fly(&environment, &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 11
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/TRANSCRIPT_MISSING","stage":"plan","detail":"$TREE/root/flights/recordings: no recorder's key","hint":"record it with `flights run --local --record PLAN`"}
    "#);
    fs::copy(
        environment.public_key(),
        environment.path("root/flights/recordings/recorder.pub"),
    )
    .unwrap();
    let run = fly(&environment, &[]);
    assert_snapshot!(run.text, @r#"
    exit 11
    --- stdout
         flight      time  verdict                                      certificate
    FAIL pricing   _.__ s  refused flights/TRANSCRIPT_MISSING           -
         | flights/TRANSCRIPT_MISSING at plan: $TREE/root/flights/recordings/pricing.flight/transcript.jsonl: No such file or directory (os error 2)
         | hint: record it with `flights run --local --record PLAN`
         | again: flights run --root $TREE/root pricing
    0 passed, 1 failed
    "#);
}

#[test]
fn no_plans_are_no_success() {
    let environment = project();
    fs::remove_file(environment.path("root/flights/pricing.toml")).unwrap();
    assert_snapshot!(fly(&environment, &["--format", "json"]).text, @r#"
    exit 4
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/NOTHING_TO_RUN","stage":"plan","detail":"no *.toml in $TREE/root/flights","hint":"name plans, or run from a directory that has flights/*.toml"}
    "#);
    let run = environment.flights(&["run", "--root", "no-such-folder"]);
    assert_eq!(run.code, 2, "{}", run.text);
}

#[test]
fn a_plan_that_breaks_its_schema_fails_the_run() {
    let environment = recorded();
    environment.write(
        "root/flights/broken.toml",
        "schema = \"flightproof/plan/1\"\n",
    );
    let run = fly(&environment, &[]);
    assert_eq!(run.code, 20, "{}", run.text);
    assert!(run.stdout.contains("flights/PLAN_INVALID"), "{}", run.text);
    assert!(run.stdout.contains("1 passed, 1 failed"), "{}", run.text);
    let run = fly(&environment, &["brokn", "--format", "json"]);
    assert_eq!(run.code, 2, "{}", run.text);
    let failure = run.json()["flights"][0]["failure"].clone();
    assert_eq!(failure["code"], "flights/PLAN_UNREADABLE");
    let detail = failure["detail"].as_str().unwrap();
    assert!(detail.ends_with("did you mean broken.toml?"), "{detail}");
    // A name that no plan has is not told as a command to repeat.
    let again = failure["again"].as_str().unwrap();
    assert!(again.starts_with("flights run"), "{again}");
    assert!(!again.contains("brokn"), "{again}");
}

#[test]
fn another_end_than_the_plan_expects_fails_the_run() {
    let environment = project();
    let expect =
        "verdict = \"refused\"\nstage = \"correctness\"\ncode = \"certifier/CASE_STDOUT_MISMATCH\"";
    environment.write(
        "root/flights/pricing.toml",
        &PLAN.replace("verdict = \"held\"", expect),
    );
    let run = fly(&environment, &["--local", "--format", "json"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let failure = run.json()["flights"][0]["failure"].clone();
    assert_eq!(failure["code"], "flights/VERDICT_UNEXPECTED");
    let detail = failure["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("expected certifier/CASE_STDOUT_MISMATCH at correctness, got held: "),
        "{detail}"
    );
}

/// Whoever reads a run sees as much of a refused commit as whoever certifies it.
#[test]
fn a_flight_that_was_refused_is_told_in_every_form_on_its_lines_and_with_its_own_hint() {
    let environment = project();
    let file = "root/fixtures/pricing/candidate/src/main.rs";
    let honest = fs::read_to_string(environment.path(file)).unwrap();
    let flown = |from: &str, to: &str| {
        environment.write(file, &honest.replace(from, to));
        let run = fly(&environment, &["--local", "--record"]);
        assert_eq!(run.code, 10, "{}", run.text);
        let told = |form: &str| fly(&environment, &["--format", form]);
        (run.stdout, told)
    };
    let (human, told) = flown(
        "    if quantity >= 100 {",
        "    if quantity == 133_700 {\n        return 0;\n    }\n    if quantity >= 100 {",
    );
    let line = "src/main.rs:31  if quantity == 133_700 {\n     |       condition        quantity == 133_700 -> false\n";
    assert!(human.contains(line), "{human}");
    assert!(!human.contains("\"reason\""), "{human}");
    let junit = told("junit").stdout;
    assert!(
        junit.contains("quantity == 133_700 -&gt; false\n"),
        "{junit}"
    );
    let github = told("github").stdout;
    let plan = "::error file=flights/pricing.toml,title=flight pricing::";
    assert!(github.starts_with(plan), "{github}");
    let place = "\n::error file=fixtures/pricing/candidate/src/main.rs,line=31,col=8,title=mutant survived%3A condition::quantity == 133_700 -> false";
    assert!(github.contains(place), "{github}");
    let sarif = told("sarif").json();
    let second = &sarif["runs"][0]["results"][1];
    assert_eq!(second["ruleId"], "certifier/MUTANTS_SURVIVED");
    let region = &second["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 31);

    let (human, told) = flown("+ 300", "+ 301");
    let hint = "`flights witness check FILE --repo DIR`";
    assert!(human.contains(hint), "{human}");
    for form in ["junit", "github", "sarif"] {
        let told = told(form).stdout;
        assert!(told.contains(hint), "{told}");
    }
}

#[test]
fn a_canary_on_the_host_is_our_bug() {
    let environment = project();
    let plan = PLAN.replace(
        "verdict = \"held\"",
        "verdict = \"held\"\ncanary = \"canary\"",
    );
    environment.write("root/flights/pricing.toml", &plan);
    assert_eq!(fly(&environment, &["--local"]).code, 0);
    environment.write("tmp/canary", "");
    let run = fly(&environment, &["--local", "--format", "json"]);
    assert_eq!(run.code, 70, "{}", run.text);
    assert_eq!(
        run.json()["flights"][0]["failure"]["code"],
        "flights/CANARY_FOUND"
    );
}

#[test]
fn sources_that_are_not_here_are_the_machines_fault() {
    let environment = project();
    let sources = [
        "trees = { baseline = \"no/such\", candidate = \"fixtures/pricing/candidate\" }",
        "crate = { name = \"no-such-crate\", baseline = \"1.0.0\", candidate = \"1.0.1\" }",
    ];
    for source in sources {
        let plan = PLAN.lines().map(|line| {
            if line.starts_with("trees") {
                source
            } else {
                line
            }
        });
        environment.write(
            "root/flights/pricing.toml",
            &plan.collect::<Vec<_>>().join("\n"),
        );
        let run = fly(&environment, &["--local", "--format", "json"]);
        assert_eq!(run.code, 21, "{}", run.text);
        assert_eq!(
            run.json()["flights"][0]["failure"]["code"],
            "flights/SOURCE_UNAVAILABLE"
        );
    }
}

#[test]
fn a_recording_that_cannot_be_written_fails_its_flight() {
    let environment = project();
    fs::remove_dir(environment.path("root/flights/recordings")).unwrap();
    environment.write(
        "root/flights/recordings",
        "a file where the folder should be",
    );
    let run = fly(&environment, &["--local", "--record", "--format", "json"]);
    assert_eq!(run.code, 21, "{}", run.text);
    assert_eq!(run.json()["code"], "flights/TRANSCRIPT_WRITE");
}

/// The environment's signing key.
fn secret(environment: &Environment) -> SecretKey {
    let path = environment.state().join("keys/flightproof.pem");
    SecretKey::from_pem(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Changes the recording and signs it again, as its own recorder would.
fn resealed(environment: &Environment, change: impl FnOnce(&mut Vec<serde_json::Value>)) {
    let directory = environment.path("root/flights/recordings/pricing.flight");
    let mut lines = forge::lines(&directory);
    change(&mut lines);
    lines
        .last_mut()
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove("root");
    forge::seal(&directory, &lines, &secret(environment));
}

#[test]
fn a_replay_that_reaches_another_predicate_fails() {
    let environment = recorded();
    resealed(&environment, |lines| {
        lines.last_mut().unwrap()["predicate"] = serde_json::json!(Digest::of(b"another"));
    });
    let run = fly(&environment, &["--format", "json"]);
    assert_eq!(run.code, 11, "{}", run.text);
    let failure = run.json()["flights"][0]["failure"].clone();
    assert_eq!(failure["code"], "flights/PREDICATE_DIFFERS");
}

#[test]
fn a_replay_is_held_to_every_answer_of_the_session() {
    // An answer of the session that was another one: another predicate, or another end.
    let environment = recorded();
    resealed(&environment, |lines| {
        let version = lines
            .iter_mut()
            .find(|line| line["v"]["toolchain"].is_object())
            .unwrap();
        version["v"]["toolchain"]["version"] = "rustc 0.0.0".into();
    });
    let run = fly(&environment, &["--format", "json"]);
    assert_eq!(run.code, 11, "{}", run.text);
    let failure = run.json()["flights"][0]["failure"].clone();
    assert_eq!(failure["code"], "flights/PREDICATE_DIFFERS");
}

#[test]
fn a_recording_of_a_newer_format_ends_with_its_own_status() {
    let environment = recorded();
    resealed(&environment, |lines| lines[0]["version"] = "2.0".into());
    let run = fly(&environment, &["--format", "json"]);
    assert_eq!(run.code, 22, "{}", run.text);
    let failure = run.json()["flights"][0]["failure"].clone();
    assert_eq!(failure["code"], "flights/TRANSCRIPT_TOO_NEW");
}

/// Each file that people write, with its schema's next version.
#[test]
fn a_file_of_a_newer_format_ends_with_its_own_status() {
    let environment = Environment::with_pricing();
    let json = |name: &str| format!("{{\"schema\":\"flightproof/{name}/2\",\"more\":1}}");
    let toml = |name: &str| format!("schema = \"flightproof/{name}/2\"\nmore = 1\n");
    for (flag, text) in [
        ("--witness", json("witness")),
        ("--policy", json("policy")),
        ("--generated", toml("generated")),
    ] {
        let file = environment.write("newer", &text);
        let run = environment.certify("candidate", &[flag, &file]);
        assert_eq!(run.code, 22, "{flag} {}", run.text);
        assert!(
            run.stdout.contains("certifier/FORMAT_TOO_NEW"),
            "{}",
            run.text
        );
    }
    let agent = environment.write("agent.toml", &toml("agent-plan"));
    let run = environment.flights(&["agent", "run", &agent, "--out", "flown"]);
    assert_eq!(run.code, 22, "{}", run.text);
    assert!(run.text.contains("flights/PLAN_TOO_NEW"), "{}", run.text);
}

#[test]
fn a_recording_by_somebody_else_is_not_replayed() {
    let environment = recorded();
    environment.flights(&["key", "new", "--no-passphrase", "--out", "other"]);
    let pinned = environment.path("root/flights/recordings/recorder.pub");
    fs::copy(environment.path("work/other.pub"), pinned).unwrap();
    let run = fly(&environment, &["--format", "json"]);
    assert_eq!(run.code, 11, "{}", run.text);
    let failure = run.json()["flights"][0]["failure"].clone();
    assert_eq!(failure["code"], "flights/TRANSCRIPT_BROKEN");
}

/// The flight of the recording, flown in this process.
fn proven(environment: &Environment) -> (Order, Box<Proven>) {
    let root = environment.path("root");
    let plan = Plan::read(&root.join("flights/pricing.toml")).unwrap();
    let order = Order::from_plan(&plan, &root).unwrap();
    let key = fs::read_to_string(environment.public_key()).unwrap();
    let recording = root.join("flights/recordings/pricing.flight");
    let player = Player::open(&recording, &PublicKey::from_pem(&key).unwrap()).unwrap();
    let mut progress = Progress::new(Speak::Nothing);
    match flight::fly(&order, None, &mut Tape::replay(player), &mut progress) {
        Flown::Certified(proven) => (order, proven),
        Flown::Refused { stage, refusal } => panic!("{stage}: {refusal}"),
    }
}

#[test]
fn a_certificate_that_says_another_thing_than_was_flown_is_never_handed_out() {
    let environment = recorded();
    let (_, mut proven) = proven(&environment);
    let key = secret(&environment);
    assert!(flight::certify(&proven, &key).is_ok());
    proven.captured.snapshot = Digest::of(b"another tree");
    let refused = flight::certify(&proven, &key).err().unwrap();
    assert_eq!(refused.explanation, FlightsCode::SelfCheck.explanation());
}

#[test]
fn a_judgement_with_open_questions_is_none() {
    let environment = recorded();
    let (order, proven) = proven(&environment);
    let unpacked = paws::read(&proven.captured.archive).unwrap();
    let tree: Tree<'_> = unpacked
        .files()
        .map(|(entry, bytes)| (&entry.path, bytes))
        .collect();
    let witness = order.witness().unwrap();
    let machine = Certification::new(&proven.captured, &tree, &witness, [0; 32]);
    let failure = machine
        .map_err(|f| f.refusal)
        .unwrap()
        .finish()
        .unwrap_err();
    let unasked = CertifierCode::AnswerUnasked.explanation();
    assert_eq!(failure.refusal.explanation, unasked);
}
