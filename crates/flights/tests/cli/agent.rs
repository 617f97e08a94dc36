//! `flights agent run` and `flights agent recover`, with a stand-in program, in real sessions.

use crate::environment::{Environment, Run, copy, workspace};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The cost of one good run of the stand-in, micro-dollars.
pub(crate) const PAID: u64 = 533_159;
/// What is held for one run: a budget of one dollar, and the dearest answer.
pub(crate) const HELD: u64 = 15_000_000;

/// A machine with a key and a cap, where agents may fly.
pub(crate) fn machine() -> Environment {
    let environment = Environment::new();
    assert_eq!(
        environment.flights(&["key", "new", "--no-passphrase"]).code,
        0
    );
    environment.share_cache();
    let cap = environment.flights(&["spend", "cap", "total", "--usd", "1000"]);
    assert_eq!(cap.code, 0, "{}", cap.text);
    environment
}

impl Environment {
    /// Flies a plan of the workspace, or one by its path.
    pub(crate) fn agent(&self, plan: &str, more: &[&str]) -> Run {
        let root = workspace();
        let plan = match Path::new(plan).is_absolute() {
            true => plan.to_owned(),
            false => root
                .join(format!("flights/agent/{plan}.toml"))
                .display()
                .to_string(),
        };
        let out = self.path("out").display().to_string();
        let root = root.display().to_string();
        let mut args = vec!["agent", "run", &plan, "--root", &root, "--out", &out];
        args.extend(more);
        let mut command = self.command(&args);
        command.env("ANTHROPIC_API_KEY", "sk-operator");
        self.run(&mut command)
    }

    /// Micro-dollars spent and held, ever.
    pub(crate) fn money(&self) -> (u64, u64) {
        let shown = self.flights(&["spend", "show", "--format", "json"]).json();
        let amount = |name: &str| shown[name].as_u64().unwrap();
        (amount("spent"), amount("held"))
    }

    /// Whether a hold says that its run may have been started.
    fn is_begun(&self) -> bool {
        let shown = self.flights(&["spend", "show", "--format", "json"]).json();
        shown["live"]
            .as_array()
            .unwrap()
            .iter()
            .any(|hold| hold["state"] == "running")
    }

    pub(crate) fn report(&self) -> Value {
        let bytes = fs::read(self.path("out/agent.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The predicate of the certificate.
    pub(crate) fn predicate(&self) -> Value {
        let bytes = fs::read(self.path("out/certificate.dsse.json")).unwrap();
        let envelope: Value = serde_json::from_slice(&bytes).unwrap();
        let payload = envelope["payload"].as_str().unwrap();
        let bytes = serde_json::json!({ "$bytes": payload });
        let payload: flightproof_core::Bytes = serde_json::from_value(bytes).unwrap();
        let statement: Value = serde_json::from_slice(&payload).unwrap();
        statement["predicate"].clone()
    }

    pub(crate) fn nothing_is_left(&self) {
        assert!(self.listing("tmp").is_empty(), "the temporary folder");
        let sessions = self.listing("home/.local/state/flightproof/sessions");
        assert!(sessions.is_empty(), "{:?}", sessions.keys());
        let locks = self.listing("home/.local/state/flightproof/agent");
        assert!(
            !locks.keys().any(|n| n.ends_with(".lock")),
            "{:?}",
            locks.keys()
        );
    }

    /// A plan of the workspace with something changed in it.
    pub(crate) fn changed(&self, plan: &str, changes: &[(&str, &str)]) -> String {
        let file = workspace().join(format!("flights/agent/{plan}.toml"));
        let mut text = fs::read_to_string(file).unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        self.write(&format!("plans/{plan}.toml"), &text)
    }
}

/// Flies a plan of the workspace and holds what it says and costs against what is expected.
fn flown(plan: &str, money: (u64, u64)) -> Environment {
    let environment = machine();
    let run = environment.agent(plan, &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(run.stdout.contains("as the plan expects"), "{}", run.text);
    assert_eq!(environment.money(), money, "{}", run.text);
    environment.nothing_is_left();
    let again = environment.flights(&["agent", "recover"]);
    assert_eq!(again.stdout, "nothing was left\n");
    assert_eq!(environment.money(), money);
    environment
}

#[test]
fn an_honest_fix_is_certified_on_the_first_attempt() {
    let environment = flown("honest-fix", (PAID, 0));
    let report = environment.report();
    assert_eq!(report["verdict"], "held");
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["settled"], PAID);
    assert_eq!(attempt["turns"], 4);
    assert_eq!(attempt["version"], "2.1.266");
    assert_eq!(attempt["hold"], "settled");
    assert!(attempt.get("requests").is_none(), "it has no proxy");
    let predicate = environment.predicate();
    assert_eq!(predicate["inputs"]["request"]["attempt"], 1);
    let head = &predicate["inputs"]["request"]["head"];
    assert_eq!(head, &attempt["commit"]);
    // The bundle that was certified is the one that came out.
    let bundle = fs::read(environment.path("out/commit.bundle")).unwrap();
    let digest = flightproof_core::Digest::of(&bundle).to_string();
    assert_eq!(attempt["bundle"], digest);
    assert!(predicate.to_string().contains(&digest));
    let paid = &predicate["inputs"]["spend"]["runs"];
    assert_eq!(paid.as_array().unwrap().len(), 1);
    assert_eq!(paid[0]["metering"], "estimated");
    assert_eq!(
        (&paid[0]["reserved"], &paid[0]["settled"]),
        (&HELD.into(), &PAID.into())
    );
    assert_eq!(paid[0]["models"]["claude-opus-5"]["cacheWritten"], 52_437);
    let certificate = environment.path("out/certificate.dsse.json");
    let shown = environment.flights(&["cert", "show", certificate.to_str().unwrap()]);
    let line = "spend: 0.533159 USD (estimated) of 15 USD held, 4 turns";
    assert!(shown.stdout.contains(line), "{}", shown.text);
}

#[test]
fn a_refusal_goes_back_and_the_second_attempt_is_certified() {
    let environment = flown("fix-after-feedback", (2 * PAID, 0));
    let report = environment.report();
    let attempts = report["attempts"].as_array().unwrap();
    let codes: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt["code"].as_str())
        .collect();
    assert_eq!(codes, [Some("certifier/CASE_STDOUT_MISMATCH"), None]);
    let inputs = &environment.predicate()["inputs"];
    assert_eq!(inputs["request"]["attempt"], 2);
    let paid = inputs["spend"]["runs"].as_array().unwrap();
    assert!(paid.len() == 2 && paid.iter().all(|run| run["settled"] == PAID));
}

#[test]
fn the_same_bytes_end_the_loop() {
    let environment = flown("same-bytes", (2 * PAID, 0));
    let report = environment.report();
    assert_eq!(report["code"], "agent/PROPOSAL_REPEATED");
    assert!(!environment.path("out/certificate.dsse.json").exists());
}

#[test]
fn wrong_attempts_are_used_up() {
    let environment = flown("never-right", (2 * PAID, 0));
    let notes = environment.report()["notes"].to_string();
    assert!(
        notes.contains("attempt 2: certifier/CASE_STDOUT_MISMATCH"),
        "{notes}"
    );
    assert_eq!(environment.logged(), ["refused", "refused"]);
}

#[test]
fn a_run_at_its_limit_proposes_nothing_and_is_settled() {
    let environment = flown("limit-exhausted", (2_040_000, 0));
    assert!(!environment.path("out/commit.bundle").exists());
}

#[test]
fn an_overspent_run_is_settled_at_what_it_cost() {
    flown("overspending", (7_000_000, 0));
}

#[test]
fn a_hanging_program_keeps_its_hold_and_is_followed_by_none() {
    let environment = flown("hanging", (0, HELD));
    let run = environment.report()["attempts"][0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let evidence = "0".repeat(64);
    let resolved = environment.flights(&[
        "spend",
        "resolve",
        &run,
        "--as",
        "0.4",
        "--evidence",
        &evidence,
    ]);
    assert_eq!(resolved.code, 0, "{}", resolved.text);
    assert_eq!(environment.money(), (400_000, 0));
}

#[test]
fn an_interrupted_program_that_says_its_cost_is_settled_at_that() {
    flown("interrupted", (500_000, 0));
}

#[test]
fn a_dying_program_keeps_its_hold() {
    flown("dying", (0, HELD));
}

#[test]
fn a_change_without_a_commit_is_no_proposal() {
    let environment = flown("no-commit", (2 * PAID, 0));
    let detail = environment.report()["attempts"][1]["detail"].to_string();
    assert!(detail.contains("no commit was made"), "{detail}");
}

#[test]
fn several_results_are_none() {
    flown("several-results", (0, HELD));
}

#[test]
fn a_commit_that_breaks_the_importer_s_rules_does_not_come_out() {
    for (plan, code) in [
        ("two-commits", "importer/COMMIT_COUNT"),
        ("outside-grant", "importer/PATH_NOT_GRANTED"),
    ] {
        let environment = flown(plan, (PAID, 0));
        let detail = environment.report()["attempts"][0]["detail"].to_string();
        assert!(detail.contains(code), "{detail}");
        assert!(!environment.path("out/commit.bundle").exists());
    }
}

/// The plan of an honest fix, whose program also does this before it commits, and may have large files
/// in `data`.
fn with_data(environment: &Environment, more: &str, change: &str) -> String {
    let program = fs::read_to_string(workspace().join("fixtures/agent/worker.sh")).unwrap();
    let changed = program.replace("honest) fix; commit;", &format!("honest) fix; {more}"));
    assert_ne!(program, changed);
    let named = environment.write("worker.sh", &changed);
    fs::set_permissions(&named, PermissionsExt::from_mode(0o755)).unwrap();
    let digest = |text: &str| flightproof_core::Digest::of(text.as_bytes()).to_string();
    environment.changed(
        "honest-fix",
        &[
            ("grants = [\"src/main.rs\"]", change),
            ("fixtures/agent/worker.sh", &named),
            (&digest(&program), &digest(&changed)),
            ("attempts = 2", "attempts = 1"),
            ("[expect]\nattempts = 1\n", ""),
        ],
    )
}

/// Three megabytes that do not become small, and as many that do.
const DATA: &str = "mkdir data; head -c 2250000 /dev/urandom | base64 -w 99 | head -c 3000000 > data/noise.txt; \
    yes 9999999999999999 | head -c 3000000 > data/prices.txt;";
const LARGE: &str = "grants = [\"src/main.rs\", \"data\"]\nlarge = [\"data\"]";

#[test]
fn large_files_of_an_agent_travel_beside_its_bundle_and_come_home_with_it() {
    let environment = Environment::with_pricing();
    let cap = environment.flights(&["spend", "cap", "total", "--usd", "100"]);
    assert_eq!(cap.code, 0, "{}", cap.text);
    let plan = with_data(&environment, &format!("{DATA} commit;"), LARGE);
    let text = fs::read_to_string(&plan).unwrap();
    let repository = environment.path("repo").display().to_string();
    let source = format!("git = {{ repository = \"{repository}\", baseline = \"main\" }}");
    let tree = "tree = { baseline = \"fixtures/pricing/baseline\" }";
    fs::write(&plan, text.replace(tree, &source)).unwrap();
    let run = environment.agent(&plan, &["--admit", "release"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let changeset = fs::read(environment.path("out/commit.paws")).unwrap();
    assert!(changeset.len() > 6_000_000, "{}", changeset.len());
    let capture = &environment.predicate()["inputs"]["capture"];
    let digest = flightproof_core::Digest::of(&changeset).to_string();
    assert_eq!(capture["changeset"], digest, "{capture}");
    let listed = environment.git(&["ls-tree", "-r", "--long", "release", "data"]);
    let found: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let shown = found.iter().map(|l| (l[0], l[3], l[4]));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("100644", "3000000", "data/noise.txt"),
            ("100644", "3000000", "data/prices.txt")
        ]
    );
    environment.git(&["fsck", "--strict"]);
    environment.nothing_is_left();
}

#[test]
fn what_an_agent_says_of_its_large_files_is_held_against_its_commit() {
    let lies = [
        (
            format!("{DATA} commit; git replace HEAD:data/prices.txt HEAD:src/main.rs;"),
            LARGE,
            "importer/CHANGESET_DIFFERS",
        ),
        (
            format!("{DATA} commit;"),
            "grants = [\"src/main.rs\", \"data\"]\nlarge = [\"dat\"]",
            "importer/BUNDLE_OVER_LIMIT",
        ),
        (
            format!("{DATA} commit;"),
            "grants = [\"src/main.rs\"]\nlarge = [\"data\"]",
            "importer/PATH_NOT_GRANTED",
        ),
        (
            format!("{DATA} commit;"),
            "grants = [\"src/main.rs\", \"data\"]\nlarge = [\"data\"]\nprotect = [\"data\"]",
            "importer/PROTECTED_PATH",
        ),
        (
            "mkdir data; for n in 1 2 3 4 5; do head -c 15000000 /dev/zero | tr '\\0' $n > data/$n; done; commit;"
                .to_owned(),
            LARGE,
            "importer/BYTES_OVER_LIMIT",
        ),
    ];
    for (does, change, code) in lies {
        let environment = machine();
        let plan = with_data(&environment, &does, change);
        let run = environment.agent(&plan, &[]);
        assert_eq!(run.code, 13, "{code}: {}", run.text);
        let report = environment.report().to_string();
        assert!(report.contains(code), "{code}: {report}");
        assert!(!environment.path("out/commit.bundle").exists());
        assert!(!environment.path("out/commit.paws").exists());
        assert_eq!(environment.money(), (PAID, 0));
        environment.nothing_is_left();
    }
}

#[test]
fn an_agent_finds_no_secret_to_commit() {
    flown("secrets", (PAID, 0));
}

#[test]
fn an_agent_finds_no_way_out_of_its_session() {
    flown("escape", (PAID, 0));
    assert!(!Path::new("/tmp/agent-canary").exists());
}

#[test]
fn hooks_that_an_agent_leaves_are_not_run() {
    flown("hooks", (PAID, 0));
}

/// A provider that answers every request with success, and tells what it was sent.
fn provider() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let (told, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = vec![0; 4096];
            let mut read = 0;
            while !bytes[..read].ends_with(b"{}") {
                match stream.read(&mut bytes[read..]) {
                    Ok(more) if more > 0 => read += more,
                    _ => break,
                }
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
            let _ = stream.write_all(answer.as_bytes());
            let _ = told.send(String::from_utf8_lossy(&bytes[..read]).into_owned());
        }
    });
    (host, requests)
}

#[test]
fn a_provider_is_reached_by_the_named_endpoint_only_and_the_key_stays_outside() {
    let environment = machine();
    let (host, requests) = provider();
    let endpoints = format!("endpoints = [\"POST {host}/v1/messages\"]");
    let plan = environment.changed(
        "honest-fix",
        &[
            ("offline = true", &endpoints),
            ("scenario honest", "scenario online"),
        ],
    );
    // The plan's author named the host: the operator's key goes there only by the operator's word.
    let refused = environment.agent(&plan, &["--format", "json"]);
    assert_eq!(
        refused.json()["code"],
        "agent/CREDENTIAL_HOST",
        "{}",
        refused.text
    );
    assert!(requests.try_recv().is_err(), "nobody was asked");
    assert_eq!(environment.money(), (0, 0));
    let run = environment.agent(&plan, &["--key-for", &host]);
    assert_eq!(run.code, 0, "{}", run.text);
    let attempt = &environment.report()["attempts"][0];
    assert_eq!(
        (&attempt["requests"], &attempt["requestsRefused"]),
        (&1.into(), &1.into())
    );
    let sent = requests.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(
        sent.starts_with("POST /v1/messages?beta=true HTTP/1.1\r\n"),
        "{sent}"
    );
    assert!(sent.contains("x-api-key: sk-operator\r\n"), "{sent}");
    assert!(!sent.contains("held-outside"), "{sent}");
    assert!(requests.try_recv().is_err(), "only one request came");
    environment.nothing_is_left();
}

#[test]
fn a_result_without_a_request_to_the_provider_is_made_up() {
    let environment = machine();
    let (host, _requests) = provider();
    let endpoints = format!("endpoints = [\"POST {host}/v1/messages\"]");
    let plan = environment.changed(
        "honest-fix",
        &[
            ("offline = true", &endpoints),
            (
                "attempts = 1",
                "attempts = 1\ncode = \"agent/PROXY_DISAGREES\"",
            ),
        ],
    );
    let run = environment.agent(&plan, &["--key-for", &host]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(environment.money(), (0, HELD));
}

#[test]
fn a_plan_that_can_never_succeed_is_refused_before_money_is_held() {
    let environment = machine();
    let demanding = fs::read_to_string(workspace().join("flights/agent/policy.json")).unwrap();
    let two = environment.write(
        "two.json",
        &demanding.replace("\"threshold\": 1", "\"threshold\": 2"),
    );
    let witness = fs::read_to_string(workspace().join("flights/witness/pricing.json")).unwrap();
    let exposed = environment.path("exposed");
    copy(&workspace().join("fixtures/pricing/baseline"), &exposed);
    fs::write(exposed.join("answers.json"), witness).unwrap();
    let exposed = exposed.display().to_string();
    let none = ("[expect]\nattempts = 1\n", "");
    for (changes, code) in [
        (
            vec![none, ("flights/agent/policy.json", &two)],
            "agent/PLAN_HOPELESS",
        ),
        (
            vec![none, ("fixtures/pricing/baseline", &exposed)],
            "agent/PLAN_HOPELESS",
        ),
        (
            vec![none, ("claude-opus-5", "gpt-5")],
            "agent/PLAN_HOPELESS",
        ),
        (vec![none, ("offline = true\n", "")], "agent/PLAN_HOPELESS"),
        (
            vec![
                none,
                ("offline = true", "offline = true\nbudget_usd = \"1.01\""),
            ],
            "agent/LIMIT_WIDENED",
        ),
        (
            vec![none, ("budget_usd = \"1\"", "budget_usd = \"0\"")],
            "flights/PLAN_INVALID",
        ),
        (
            vec![none, ("profile = \"claude\"", "profile = \"codex\"")],
            "agent/ACCOUNTING_UNSUPPORTED",
        ),
    ] {
        let plan = environment.changed("honest-fix", &changes);
        let run = environment.agent(&plan, &["--format", "json"]);
        assert_eq!(run.code, 20, "{code}: {}", run.text);
        assert_eq!(run.json()["code"], code, "{}", run.text);
    }
    assert_eq!(environment.money(), (0, 0));
    environment.nothing_is_left();
    let other = demanding.replace("\"threshold\"", "\"keys\": [], \"threshold\"");
    let other = environment.write("other.json", &other);
    let changes = [none, ("flights/agent/policy.json", other.as_str())];
    let plan = environment.changed("honest-fix", &changes);
    let run = environment.agent(&plan, &[]);
    let said = "policy needs another key to sign: certifier/KEY_UNAUTHORIZED: key ";
    assert!(run.stdout.contains(said), "{}", run.text);
    let many = environment.agent("honest-fix", &["--attempts", "17", "--format", "json"]);
    assert_eq!(many.json()["code"], "agent/LIMIT_WIDENED", "{}", many.text);
}

#[test]
fn another_program_than_the_named_one_is_not_started() {
    let environment = machine();
    let program = environment.path("agent.sh");
    fs::copy(workspace().join("fixtures/agent/worker.sh"), &program).unwrap();
    let path = program.display().to_string();
    let changes = [
        ("fixtures/agent/worker.sh", path.as_str()),
        ("[expect]\nattempts = 1\n", ""),
    ];
    let plan = environment.changed("honest-fix", &changes);
    let mut text = fs::read_to_string(&program).unwrap();
    text.push('\n');
    fs::write(&program, text).unwrap();
    let run = environment.agent(&plan, &["--format", "json"]);
    assert_eq!(run.json()["code"], "agent/BINARY_CHANGED", "{}", run.text);
    assert_eq!(environment.money(), (0, 0));
}

#[test]
fn without_a_cap_nothing_is_held_and_nothing_is_started() {
    let environment = Environment::new();
    assert_eq!(
        environment.flights(&["key", "new", "--no-passphrase"]).code,
        0
    );
    environment.share_cache();
    let plan = environment.changed("honest-fix", &[("[expect]\nattempts = 1\n", "")]);
    let run = environment.agent(&plan, &["--format", "json"]);
    assert_eq!(run.code, 13, "{}", run.text);
    let report = run.json();
    assert_eq!(report["code"], "agent/HOLD_REFUSED");
    assert!(
        report["detail"].to_string().contains("CAP_MISSING"),
        "{}",
        run.text
    );
    environment.nothing_is_left();
}

#[test]
fn a_certified_commit_moves_its_branch_if_that_was_asked() {
    let environment = Environment::with_pricing();
    let cap = environment.flights(&["spend", "cap", "total", "--usd", "100"]);
    assert_eq!(cap.code, 0, "{}", cap.text);
    let repository = environment.path("repo").display().to_string();
    let source = format!("git = {{ repository = \"{repository}\", baseline = \"main\" }}");
    let tree = "tree = { baseline = \"fixtures/pricing/baseline\" }";
    let plan = environment.changed("honest-fix", &[(tree, &source)]);
    environment.git(&["worktree", "add", "--quiet", "elsewhere", "release"]);
    let checked_out = environment.agent(&plan, &["--admit", "release", "--format", "json"]);
    assert!(
        checked_out.text.contains("importer/BRANCH_CHECKED_OUT"),
        "{}",
        checked_out.text
    );
    assert_eq!(environment.money(), (0, 0), "{}", checked_out.text);
    environment.git(&["worktree", "remove", "elsewhere"]);
    let run = environment.agent(&plan, &["--admit", "release"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let report = environment.report();
    assert_eq!(report["verdict"], "admitted");
    let tip = environment.git(&["rev-parse", "release"]);
    assert_eq!(report["attempts"][0]["commit"], tip);
    environment.git(&["fsck", "--strict"]);
    assert!(environment.path("out/receipt.json").exists());
    assert_eq!(environment.logged(), ["certified", "admitted"]);
}

/// States of a run, and what is left of its hold if its driver dies there: nothing, all of it, or what
/// it had cost.
const STATES: [(&str, (u64, u64)); 5] = [
    ("opening", (0, 0)),
    ("launching", (0, HELD)),
    ("capturing", (PAID, 0)),
    ("closing", (PAID, 0)),
    ("settling", (PAID, 0)),
];

#[test]
fn a_run_whose_driver_is_killed_is_ended_and_never_started_again() {
    let mut seen = Vec::new();
    for (state, money) in STATES {
        let environment = machine();
        if !killed_in(&environment, state) {
            continue;
        }
        seen.push(state);
        // The state is on disk a moment before the hold is begun, and the program starts after both.
        let money = match state {
            "launching" if !environment.is_begun() => (0, 0),
            _ => money,
        };
        let run = environment.flights(&["agent", "recover", "--format", "json"]);
        assert_eq!(run.code, 0, "{state}: {}", run.text);
        assert_eq!(
            run.json()["runs"].as_array().unwrap().len(),
            1,
            "{state}: {}",
            run.text
        );
        assert_eq!(environment.money(), money, "{state}: {}", run.text);
        environment.nothing_is_left();
        let again = environment.flights(&["agent", "recover"]);
        assert_eq!(again.stdout, "nothing was left\n", "{state}");
        assert_eq!(environment.money(), money, "{state}");
    }
    assert!(
        seen.contains(&"opening") && seen.contains(&"launching"),
        "{seen:?}"
    );
}

/// Starts a flight and kills it when its run is in a state. False if it was never seen there.
fn killed_in(environment: &Environment, state: &str) -> bool {
    let mut child = started(environment, Stdio::null());
    let wanted = format!("\"state\":\"{state}\"");
    let folder = environment.state().join("agent");
    let there = || {
        fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.path())
            // A state being written is not in force yet.
            .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
            .any(|path| {
                fs::read_to_string(path)
                    .unwrap_or_default()
                    .contains(&wanted)
            })
    };
    let caught = loop {
        if there() {
            break true;
        }
        if child.try_wait().unwrap().is_some() {
            break false;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    // It may have gone on between the look and the kill.
    caught && there()
}

fn started(environment: &Environment, progress: Stdio) -> Child {
    let root = workspace();
    let plan = root
        .join("flights/agent/honest-fix.toml")
        .display()
        .to_string();
    let (root, out) = (
        root.display().to_string(),
        environment.path("out").display().to_string(),
    );
    environment
        .command(&["agent", "run", &plan, "--root", &root, "--out", &out])
        .stdout(Stdio::null())
        .stderr(progress)
        .spawn()
        .unwrap()
}

#[test]
fn a_flight_that_is_killed_while_its_commit_is_judged_keeps_the_bundle_and_the_next_one_reports_it()
{
    let environment = machine();
    for stages in [1, 7, 11] {
        let mut child = started(&environment, Stdio::piped());
        let mut progress = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        for _ in 0..stages {
            line.clear();
            assert_ne!(progress.read_line(&mut line).unwrap(), 0);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let _ = progress.read_to_string(&mut line);
    }
    assert_eq!(environment.money(), (3 * PAID, 0));
    let run = environment.agent("honest-fix", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let line = "recovered   agent plan honest-fix, run ";
    assert_eq!(run.stderr.matches(line).count(), 1, "{}", run.text);
    environment.nothing_is_left();
    assert_eq!(environment.money(), (4 * PAID, 0));
}

/// A project with one agent's plan, and its flight recorded: the machine it flew on is gone.
fn recorded(plan: &str) -> Environment {
    let (machine, project) = (machine(), Environment::new());
    let (from, root) = (workspace(), project.path("root"));
    for folder in ["fixtures/agent", "fixtures/pricing", "flights/witness"] {
        copy(&from.join(folder), &root.join(folder));
    }
    fs::create_dir_all(root.join("flights/agent")).unwrap();
    fs::create_dir_all(root.join("flights/recordings")).unwrap();
    for file in [&format!("{plan}.toml"), "policy.json"] {
        let inner = Path::new("flights/agent").join(file);
        fs::copy(from.join(&inner), root.join(&inner)).unwrap();
    }
    let file = root.join(format!("flights/agent/{plan}.toml"));
    let (file, root) = (file.to_str().unwrap(), root.to_str().unwrap());
    let run = machine.flights(&[
        "agent", "run", file, "--root", root, "--record", "--out", "out",
    ]);
    assert_eq!(run.code, 0, "{}", run.text);
    let public = fs::read(machine.public_key()).unwrap();
    fs::write(project.path("root/flights/recordings/recorder.pub"), public).unwrap();
    project
}

impl Environment {
    /// Replays everything that is recorded, on a machine with nothing installed.
    fn replayed(&self) -> Run {
        fs::create_dir_all(self.path("root/flights")).unwrap();
        let root = self.path("root").display().to_string();
        let mut command = self.command(&["run", "--root", &root, "--format", "json"]);
        self.run(command.env("PATH", self.path("empty")))
    }
}

#[test]
fn a_recorded_flight_of_an_agent_replays_where_nothing_is_installed() {
    for (plan, verdict) in [("fix-after-feedback", "held"), ("outside-grant", "refused")] {
        let project = recorded(plan);
        // There has to be a plan of another kind, for a run without names.
        let placeholder = "flights/hostile-outside-grant.toml";
        fs::copy(
            workspace().join(placeholder),
            project.path("root").join(placeholder),
        )
        .unwrap();
        let run = project.replayed();
        let flights = run.json()["flights"].as_array().unwrap().clone();
        let agent = flights
            .iter()
            .find(|flight| flight["name"] == format!("agent-{plan}"));
        let agent = agent.unwrap_or_else(|| panic!("{}", run.text));
        assert_eq!(agent["failure"], Value::Null, "{}", run.text);
        assert_eq!(agent["verdict"]["verdict"], verdict, "{}", run.text);
        assert!(project.listing("tmp").is_empty());
        let log = project.state().join("log");
        assert!(!log.exists(), "a replay is no event");

        // The same task in other words is another flight.
        let file = project.path(&format!("root/flights/agent/{plan}.toml"));
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("Orders of", "Orders  of")).unwrap();
        let named = format!("agent-{plan}");
        let root = project.path("root").display().to_string();
        let other = project.flights(&["run", "--root", &root, &named]);
        assert_eq!(other.code, 11, "{}", other.text);
        assert!(
            other.stdout.contains("flights/TRANSCRIPT_DIVERGED"),
            "{}",
            other.text
        );
        let real = project.flights(&["run", "--root", &root, "--local", &named]);
        assert_ne!(real.code, 0, "{}", real.text);
    }
}

#[test]
fn an_agents_recording_with_another_end_of_its_program_is_found_out() {
    let project = recorded("honest-fix");
    let place = project.path("root/flights/recordings/agent-honest-fix.flight");
    let mut lines = crate::forge::lines(&place);
    let starts = |line: &Value| line["v"]["role"] == "agent" && line["v"]["program"] != "/bin/sh";
    let runs: Vec<usize> = (0..lines.len()).filter(|at| starts(&lines[*at])).collect();
    let last = runs.last().unwrap() + 1;
    assert_eq!(lines[last]["v"]["status"]["code"], 0, "{}", lines[last]);
    lines[last]["v"]["status"]["code"] = 3.into();
    lines
        .last_mut()
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove("root");
    let key = crate::transcript::key();
    crate::forge::seal(&place, &lines, &key);
    let public = key.public().to_pem().unwrap();
    fs::write(place.with_file_name("recorder.pub"), public).unwrap();
    let root = project.path("root").display().to_string();
    let run = project.flights(&["run", "--root", &root, "agent-honest-fix"]);
    assert_eq!(run.code, 11, "{}", run.text);
}

#[test]
fn what_cannot_be_replayed_is_not_recorded() {
    let environment = machine();
    let run = environment.agent("honest-fix", &["--record", "--attempts", "1"]);
    assert_eq!(run.code, 2, "{}", run.text);
    let plan = fs::read_to_string(workspace().join("flights/agent/honest-fix.toml")).unwrap();
    let online = plan.replace(
        "offline = true",
        "endpoints = [\"POST http://127.0.0.1:1/v1/messages\"]",
    );
    assert_ne!(online, plan);
    let file = environment.write("plans/honest-fix.toml", &online);
    let run = environment.agent(&file, &["--record", "--format", "json"]);
    assert_eq!(run.code, 2, "{}", run.text);
    assert_eq!(run.json()["code"], "flights/USAGE_INVALID", "{}", run.text);
}
