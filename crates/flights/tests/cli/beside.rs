//! What is made beside a certificate: second statements, exceptions, revocation lists, the log, opened
//! cases, and what is derived for other programs.

use crate::environment::{Environment, Run};
use crate::verify::POLICY;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Until somebody waits for the lock of this file.
fn wait_for_a_waiter(locked: &fs::File, waiting: &mut Child) {
    let place = format!(":{} 0 EOF", locked.metadata().unwrap().ino());
    let until = Instant::now() + Duration::from_secs(60);
    let waits = |line: &str| line.contains("->") && line.ends_with(&place);
    while !fs::read_to_string("/proc/locks")
        .unwrap()
        .lines()
        .any(waits)
    {
        assert!(waiting.try_wait().unwrap().is_none(), "it did not wait");
        assert!(Instant::now() < until, "it did not get there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A certified commit, and keys `lead` and `clerk` beside the one that certified.
struct Scene {
    environment: Environment,
    certificate: String,
    repo: String,
    ids: BTreeMap<&'static str, Value>,
}

impl Scene {
    fn of(environment: Environment, more: &[&str]) -> Self {
        let run = environment.certify("candidate", more);
        assert_eq!(run.code, 0, "{}", run.text);
        let mut ids = BTreeMap::new();
        for name in ["lead", "clerk"] {
            let made = environment.flights(&[
                "key",
                "new",
                "--no-passphrase",
                "--out",
                name,
                "--format",
                "json",
            ]);
            ids.insert(name, made.json()["keyid"].clone());
        }
        let listed = environment
            .flights(&["key", "list", "--format", "json"])
            .json();
        ids.insert("judge", listed["keys"][0]["keyid"].clone());
        // A later flight moves what is in its output directory aside.
        let kept = environment.path("work/certificate.dsse.json");
        fs::copy(environment.path("out/certificate.dsse.json"), &kept).unwrap();
        let certificate = text(&kept);
        let repo = text(&environment.path("repo"));
        Self {
            environment,
            certificate,
            repo,
            ids,
        }
    }

    fn new() -> Self {
        Self::of(Environment::with_pricing(), &[])
    }

    fn public(&self, name: &str) -> String {
        match name {
            "judge" => self.environment.public_key(),
            name => text(&self.environment.path("work").join(format!("{name}.pub"))),
        }
    }

    /// The ordinary policy with one more rule.
    fn policy(&self, field: &str, rule: Value) -> String {
        let mut policy: Value = serde_json::from_str(POLICY).unwrap();
        policy["keys"] = json!([self.ids["judge"]]);
        policy[field] = rule;
        self.environment.write("policy.json", &policy.to_string())
    }

    fn flights(&self, args: &[&str]) -> Run {
        self.environment
            .flights(&[args, &["--format", "json"]].concat())
    }

    /// `cert verify` of the candidate under `policy.json`, with all three keys.
    fn verify(&self, candidate: &str, more: &[&str]) -> Run {
        self.environment.run(&mut self.verifier(candidate, more))
    }

    fn verifier(&self, candidate: &str, more: &[&str]) -> Command {
        let keys = ["judge", "lead", "clerk"].map(|name| self.public(name));
        let policy = text(&self.environment.path("policy.json"));
        let mut args = vec!["cert", "verify", &self.certificate, "--repo", &self.repo];
        args.extend(["--subject", candidate, "--policy", &policy]);
        keys.iter().for_each(|key| args.extend(["--key", key]));
        args.extend(more);
        args.extend(["--format", "json"]);
        self.environment.command(&args)
    }

    fn admit(&self, key: &str) -> Run {
        self.admit_with(key, &[])
    }

    fn admit_with(&self, key: &str, more: &[&str]) -> Run {
        self.environment.run(&mut self.admitter(key, more))
    }

    fn admitter(&self, key: &str, more: &[&str]) -> Command {
        let keys = ["judge", "lead", "clerk"].map(|name| self.public(name));
        let policy = text(&self.environment.path("policy.json"));
        let mut args = vec!["admit", &self.certificate, "--repo", &self.repo];
        args.extend(["--branch", "release", "--policy", &policy, "--key", key]);
        keys.iter().for_each(|key| args.extend(["--trust", key]));
        args.extend(more);
        args.extend(["--format", "json"]);
        self.environment.command(&args)
    }

    fn review(&self, more: &[&str]) -> Run {
        let keys = ["judge", "lead"].map(|name| self.public(name));
        let policy = text(&self.environment.path("policy.json"));
        let mut args = vec!["review", &self.certificate, "--repo", &self.repo];
        args.extend(["--policy", &policy, "--key", &keys[0], "--key", &keys[1]]);
        args.extend(more);
        self.flights(&args)
    }

    fn tip(&self) -> String {
        self.environment.git(&["rev-parse", "release"])
    }
}

#[test]
fn a_certificate_is_shown_with_what_it_claims_and_what_not() {
    let scene = Scene::new();
    let judge = scene.public("judge");
    let run = scene
        .environment
        .flights(&["cert", "show", &scene.certificate, "--key", &judge]);
    assert_eq!(run.code, 0, "{}", run.text);
    for line in [
        "admission   held: it alone lets nothing in",
        "passed      lineage, dependency, fence, build, correctness, mutation, determinism",
        "  does not claim  that the cases are complete",
        "  claims          exactly these source and dependency bytes compiled, offline, in this session",
        "lineage: depth 0",
    ] {
        assert!(
            run.stdout.lines().any(|l| l == line),
            "{line}: {}",
            run.text
        );
    }
    assert!(run.stdout.contains("\nsignature   by "), "{}", run.text);
    let unchecked = scene
        .environment
        .flights(&["cert", "show", &scene.certificate]);
    assert!(
        unchecked.stdout.contains("NOT CHECKED"),
        "{}",
        unchecked.text
    );
    let document = scene.flights(&["cert", "show", &scene.certificate]).json();
    assert_eq!(document["signatureChecked"], false);
    assert_eq!(document["claims"].as_array().unwrap().len(), 10);
    let by_other = scene.flights(&[
        "cert",
        "show",
        &scene.certificate,
        "--key",
        &scene.public("lead"),
    ]);
    assert_eq!(by_other.json()["code"], "certifier/SIGNATURE_INVALID");
}

#[test]
fn a_working_tree_on_the_branch_moves_along_with_the_second_statement() {
    let scene = Scene::new();
    let judge = text(&scene.environment.state().join("keys/flightproof.pem"));
    scene.policy(
        "admission",
        json!({"keys": [scene.ids["judge"]], "threshold": 1}),
    );
    let environment = &scene.environment;
    environment.git(&["checkout", "-q", "release"]);
    let file = environment.path("repo/src/main.rs");
    let baseline = fs::read_to_string(&file).unwrap();

    // What is not the baseline's is nobody's to replace.
    fs::write(&file, "mine\n").unwrap();
    let refused = scene.admit(&judge);
    assert_eq!(refused.json()["code"], "importer/SOURCE_CHANGED");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
    fs::write(&file, baseline).unwrap();

    let admitted = scene.admit(&judge);
    assert_eq!(admitted.code, 0, "{}", admitted.text);
    assert!(
        admitted.stdout.contains("and with it the files"),
        "{}",
        admitted.text
    );
    assert_eq!(environment.git(&["status", "--porcelain"]), "");
    environment.git(&["diff", "--quiet", "HEAD", "candidate"]);
    assert_eq!(scene.tip(), environment.git(&["rev-parse", "candidate"]));
}

#[test]
fn two_others_let_a_commit_in_and_the_branch_moves_with_the_second() {
    let scene = Scene::new();
    let rule = json!({"keys": [scene.ids["lead"], scene.ids["clerk"], scene.ids["judge"]], "threshold": 2, "other_than_signer": true});
    scene.policy("admission", rule);
    let before = scene.tip();
    let missing = scene.verify("candidate", &[]);
    assert_eq!(missing.json()["code"], "certifier/ADMISSION_MISSING");
    assert_eq!(missing.code, 13);
    // Who is to sign the second statement sees the change before there is one.
    let (policy, key) = (
        text(&scene.environment.path("policy.json")),
        scene.public("judge"),
    );
    let review = [
        "review",
        &scene.certificate,
        "--repo",
        &scene.repo,
        "--key",
        &key,
    ];
    let others = ["lead", "clerk"].map(|name| scene.public(name));
    let review = [
        &review[..],
        &[
            "--key", &others[0], "--key", &others[1], "--policy", &policy,
        ],
    ];
    let shown = scene.environment.flights(&review.concat());
    assert_eq!(shown.code, 0, "{}", shown.text);
    let wanted = "wanted      a second statement by 2 of 3 keys";
    assert!(shown.stdout.contains(wanted), "{}", shown.text);

    assert_eq!(scene.admit("lead").json()["verdict"], "held");
    assert_eq!(
        scene.admit("lead").json()["verdict"],
        "held",
        "the same key twice"
    );
    let judge = text(&scene.environment.state().join("keys/flightproof.pem"));
    let own = scene.admit(&judge);
    assert_eq!(own.json()["verdict"], "held", "{}", own.text);
    assert_eq!(scene.tip(), before);
    let admitted = scene.admit("clerk");
    assert_eq!(admitted.json()["verdict"], "admitted", "{}", admitted.text);
    assert_ne!(scene.tip(), before);
    assert_eq!(
        scene.tip(),
        scene.environment.git(&["rev-parse", "candidate"])
    );

    let admission = text(&scene.environment.path("work/admission.dsse.json"));
    let verified = scene.verify("candidate", &["--admission", &admission]);
    assert_eq!(verified.code, 0, "{}", verified.text);
    assert!(
        verified.stdout.contains("let into release by"),
        "{}",
        verified.text
    );

    let again = scene.admit("clerk");
    assert_eq!(
        again.json()["verdict"],
        "admitted",
        "the same request again"
    );
    assert!(again.stdout.contains("before"), "{}", again.text);
    let admitted = |log: Vec<String>| log.iter().filter(|kind| *kind == "admitted").count();
    assert_eq!(admitted(scene.environment.logged()), 1);
    // A receipt is no answer where the branch is elsewhere, or gone.
    let candidate = scene.tip();
    for act in [
        &["update-ref", "refs/heads/release", &before][..],
        &["update-ref", "-d", "refs/heads/release"],
    ] {
        scene.environment.git(act);
        let gone = scene.admit("clerk");
        assert_eq!(
            gone.json()["code"],
            "importer/ADMITTED_BEFORE",
            "{}",
            gone.text
        );
        assert_eq!(gone.code, 21, "{}", gone.text);
    }
    scene
        .environment
        .git(&["update-ref", "refs/heads/release", &candidate]);
    assert_eq!(scene.admit("clerk").json()["verdict"], "admitted");
    assert_eq!(admitted(scene.environment.logged()), 1);
}

/// Killed after the branch moved and before the log said so.
#[test]
fn a_branch_that_moved_is_in_the_log_once_whenever_its_admission_died() {
    let scene = Scene::new();
    let environment = &scene.environment;
    scene.policy("repository", json!("repo"));
    let candidate = environment.git(&["rev-parse", "candidate"]);
    let logged = || environment.moves_logged(&candidate);
    let admitted = environment.unlogged(|| scene.admit("lead"));
    assert_eq!(admitted.json()["verdict"], "admitted", "{}", admitted.text);
    assert_eq!(logged(), 0);
    environment.unlogged(|| {
        assert_eq!(scene.admit("lead").json()["verdict"], "admitted");
        assert_eq!(logged(), 1);
        scene.admit("lead");
        assert_eq!(logged(), 1);
    });
    // Whatever comes next says so too, and names the repository as it was named when it was certified.
    let again = environment.certify("candidate", &["--admit", "release"]);
    let code = "flights/ALREADY_ADMITTED";
    assert!(again.stdout.contains(code), "{}", again.text);
    assert_eq!(logged(), 1);
    assert_eq!(environment.logged()[..2], ["certified", "admitted"]);
    let log = scene.flights(&["cert", "log", "show"]).json();
    assert_eq!(log["entries"][1]["repository"], "repo");
    scene.admit("lead");
    assert_eq!(logged(), 1);
}

#[test]
fn of_two_who_let_a_commit_in_at_once_both_signatures_stay() {
    let scene = Scene::new();
    let rule = json!({"keys": [scene.ids["lead"], scene.ids["clerk"]], "threshold": 2});
    scene.policy("admission", rule);
    assert_eq!(scene.admit("lead").json()["verdict"], "held");
    let statement = scene.environment.path("work/admission.dsse.json");
    let of_lead = fs::read(&statement).unwrap();
    // As if nobody had signed, while somebody else is at it.
    fs::remove_file(&statement).unwrap();
    let other = fs::File::open(scene.environment.path("work")).unwrap();
    other.lock().unwrap();
    let mut admitter = scene.admitter("clerk", &[]);
    let mut waiting = admitter.stdout(Stdio::piped()).spawn().unwrap();
    wait_for_a_waiter(&other, &mut waiting);
    fs::write(&statement, &of_lead).unwrap();
    other.unlock().unwrap();
    let run = scene.environment.told(&waiting.wait_with_output().unwrap());
    assert_eq!(run.json()["verdict"], "admitted", "{}", run.text);
}

#[test]
fn several_keys_sign_one_certificate_and_a_policy_counts_each_once() {
    let scene = Scene::new();
    let keys = json!([scene.ids["judge"], scene.ids["lead"], scene.ids["clerk"]]);
    let mut policy: Value = serde_json::from_str(POLICY).unwrap();
    policy["keys"] = keys;
    policy["threshold"] = json!(3);
    scene.environment.write("policy.json", &policy.to_string());
    let judge = scene.public("judge");
    let cosign = |file: &str, trusted: &str, key: &str| {
        scene.flights(&["cert", "cosign", file, "--trust", trusted, "--key", key])
    };
    let file = &scene.certificate;
    let short = scene.verify("candidate", &[]);
    assert_eq!(short.json()["code"], "certifier/THRESHOLD_NOT_MET");
    // Not what nobody known has signed.
    let before = fs::read(file).unwrap();
    let other = cosign(file, &scene.public("lead"), "lead");
    assert_eq!(
        other.json()["code"],
        "certifier/SIGNATURE_INVALID",
        "{}",
        other.text
    );
    assert_eq!(fs::read(file).unwrap(), before);
    // The same key counts once.
    for _ in 0..2 {
        let signed = cosign(file, &judge, "lead");
        assert_eq!(signed.code, 0, "{}", signed.text);
    }
    let short = scene.verify("candidate", &[]);
    assert_eq!(short.json()["code"], "certifier/THRESHOLD_NOT_MET");
    assert_eq!(cosign(file, &judge, "clerk").code, 0);
    let verified = scene.verify("candidate", &[]);
    assert_eq!(verified.code, 0, "{}", verified.text);

    // A revocation list of two keys, by the same command; no other document.
    let list = text(&scene.environment.path("work/list.dsse.json"));
    let key = scene.ids["clerk"].as_str().unwrap();
    let revoke = [
        "key", "revoke", "--list", &list, "--new", "ours", "--key", "lead",
    ];
    let more = [key, "--reason", "lost"];
    let made = scene.flights(&[&revoke[..], &more].concat());
    assert_eq!(made.code, 0, "{}", made.text);
    let signed = cosign(
        &list,
        &scene.public("lead"),
        &text(&scene.environment.state().join("keys/flightproof.pem")),
    );
    assert_eq!(signed.code, 0, "{}", signed.text);
    let lists: Value = serde_json::from_slice(&fs::read(&list).unwrap()).unwrap();
    assert_eq!(lists["signatures"].as_array().unwrap().len(), 2);
    let other = scene.environment.write("policy.json", "{}");
    assert_ne!(cosign(&other, &judge, "lead").code, 0);
}

#[test]
fn nothing_is_signed_for_a_branch_that_is_not_there() {
    let scene = Scene::new();
    scene.policy("admission", json!({"keys": [scene.ids["lead"]]}));
    scene
        .environment
        .git(&["update-ref", "-d", "refs/heads/release"]);
    let refused = scene.admit("lead");
    assert_eq!(
        refused.json()["code"],
        "importer/BRANCH_MISSING",
        "{}",
        refused.text
    );
    assert!(!scene.environment.path("work/admission.dsse.json").exists());
}

#[test]
fn whoever_may_not_admit_admits_nothing_and_the_log_says_so() {
    let scene = Scene::new();
    scene.policy("admission", json!({"keys": [scene.ids["lead"]]}));
    let before = scene.tip();
    let refused = scene.admit("clerk");
    assert_eq!(refused.json()["code"], "certifier/KEY_UNAUTHORIZED");
    assert_eq!(refused.code, 13);
    assert_eq!(scene.tip(), before);
    assert!(!scene.environment.path("work/admission.dsse.json").exists());
    let log = scene.flights(&["cert", "log", "show"]).json();
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(scene.environment.logged(), ["certified", "refused"]);
    assert_eq!(entries[1]["event"]["code"], "certifier/KEY_UNAUTHORIZED");

    // A commit whose parent is another than the certified one.
    let main = scene.environment.git(&["rev-parse", "main"]);
    assert_eq!(before, main);
    let elsewhere = text(&scene.environment.path("elsewhere"));
    let cloned = Command::new("git")
        .args(["init", "--quiet", &elsewhere])
        .status()
        .unwrap();
    assert!(cloned.success());
    let keys = scene.public("judge");
    let policy = text(&scene.environment.path("policy.json"));
    let refused = scene.flights(&[
        "admit",
        &scene.certificate,
        "--repo",
        &elsewhere,
        "--branch",
        "main",
        "--policy",
        &policy,
        "--trust",
        &keys,
        "--key",
        "lead",
    ]);
    assert_eq!(
        refused.json()["code"],
        "importer/UNKNOWN_REVISION",
        "{}",
        refused.text
    );
}

#[test]
fn an_admission_is_logged_though_its_certificate_does_not_open() {
    let scene = Scene::new();
    let id = scene.flights(&["cert", "show", &scene.certificate]).json()["certificate"].clone();
    let asked = format!("certificate {}", id.as_str().unwrap());
    let logged = || {
        let log = scene.flights(&["cert", "log", "show"]).json();
        let entry = log["entries"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(entry["event"]["stage"], "admit", "{entry}");
        assert_eq!(entry["repository"], "repo");
        (log["size"].clone(), entry)
    };
    // By another than the policy names; without what it wants.
    scene.policy("keys", json!([scene.ids["clerk"]]));
    let refused = scene.admit("lead").json();
    assert_eq!(refused["code"], "certifier/SIGNATURE_INVALID");
    let (size, entry) = logged();
    assert_eq!(
        (size, &entry["event"]["code"]),
        (json!(2), &refused["code"])
    );
    assert_eq!(entry["candidate"], asked);
    let rule = json!({"list": "team", "keys": [scene.ids["lead"]]});
    scene.policy("revocations", rule);
    let refused = scene.admit("lead").json();
    assert_eq!(refused["code"], "certifier/REVOCATION_UNAVAILABLE");
    let (size, entry) = logged();
    assert_eq!(
        (size, &entry["event"]["code"]),
        (json!(3), &refused["code"])
    );
    let renew = ["key", "revoke", "--list", "list", "--new", "team"];
    let renewed = scene.flights(&[&renew[..], &["--key", "lead"]].concat());
    assert_eq!(renewed.code, 0, "{}", renewed.text);
    // What is a slip of whoever asks says nothing of the commit.
    scene.policy("repository", json!("repo"));
    let refused = scene.admit_with("lead", &["--revocations", "list"]).json();
    assert_eq!(refused["code"], "certifier/BESIDE_UNASKED");
    assert_eq!(logged().0, 3);
}

#[test]
fn a_revoked_certificate_is_refused_and_an_old_list_is_noticed() {
    let scene = Scene::new();
    scene.policy(
        "revocations",
        json!({"list": "team", "keys": [scene.ids["lead"]]}),
    );
    let id = scene.flights(&["cert", "show", &scene.certificate]).json()["certificate"].clone();
    let id = id.as_str().unwrap();
    let revoke = |more: &[&str]| {
        let args = ["key", "revoke", "--list", "list.json", "--key", "lead"];
        scene.flights(&[&args[..], more].concat())
    };
    assert_eq!(revoke(&[]).json()["code"], "flights/LIST_MISSING");
    let first = revoke(&["--new", "team"]);
    assert_eq!(first.code, 0, "{}", first.text);
    assert_eq!(
        revoke(&["--new", "team"]).json()["code"],
        "flights/LIST_MISSING"
    );
    assert_eq!(
        scene.verify("candidate", &[]).json()["code"],
        "certifier/REVOCATION_UNAVAILABLE"
    );
    let good = scene.verify("candidate", &["--revocations", "list.json"]);
    assert_eq!(good.code, 0, "{}", good.text);

    fs::copy(
        scene.environment.path("work/list.json"),
        scene.environment.path("work/old.json"),
    )
    .unwrap();
    assert_eq!(
        revoke(&["--certificate", id, "--reason", "a mistake"]).code,
        0
    );
    let revoked = scene.verify("candidate", &["--revocations", "list.json"]);
    assert_eq!(revoked.json()["code"], "certifier/CERTIFICATE_REVOKED");
    let rolled = scene.verify("candidate", &["--revocations", "old.json"]);
    assert_eq!(rolled.json()["code"], "certifier/REVOCATION_ROLLED_BACK");
    let judge = scene.ids["judge"].as_str().unwrap();
    let third = revoke(&[judge, "--reason", "lost"]);
    assert!(
        third.stdout.contains("version 3: 1 key, 1 certificate"),
        "{}",
        third.text
    );
    let gone = scene.verify("candidate", &["--revocations", "list.json"]);
    assert_eq!(gone.json()["code"], "certifier/KEY_REVOKED");
    let by_other = scene.flights(&["key", "revoke", "--list", "list.json", "--key", "clerk"]);
    assert_eq!(by_other.json()["code"], "certifier/SIGNATURE_INVALID");
}

#[test]
fn an_old_list_is_noticed_while_somebody_else_remembers_a_newer_one() {
    let scene = Scene::new();
    scene.policy(
        "revocations",
        json!({"list": "team", "keys": [scene.ids["lead"]]}),
    );
    let revoke = |more: &[&str]| {
        let args = ["key", "revoke", "--list", "list.json", "--key", "lead"];
        assert_eq!(scene.flights(&[&args[..], more].concat()).code, 0);
    };
    revoke(&["--new", "team"]);
    let path = |name: &str| scene.environment.path(name);
    fs::copy(path("work/list.json"), path("work/old.json")).unwrap();
    revoke(&[&"1".repeat(64)]);
    let memory = path("home/.local/state/flightproof/revocations/team.json");
    let newer = fs::read(&memory).unwrap();

    // As one that has seen nothing yet, while another is at it.
    fs::remove_file(&memory).unwrap();
    let other = fs::File::open(memory.with_extension("lock")).unwrap();
    other.lock().unwrap();
    let mut verifier = scene.verifier("candidate", &["--revocations", "old.json"]);
    let mut waiting = verifier.stdout(Stdio::piped()).spawn().unwrap();
    wait_for_a_waiter(&other, &mut waiting);
    fs::write(&memory, &newer).unwrap();
    other.unlock().unwrap();
    let said = waiting.wait_with_output().unwrap().stdout;
    let said: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["code"], "certifier/REVOCATION_ROLLED_BACK");
    assert_eq!(fs::read(&memory).unwrap(), newer);
}

#[test]
fn an_exception_excuses_one_certificate_from_one_rule_and_is_said() {
    let environment = Environment::with_pricing();
    let witness = crate::environment::workspace().join("flights/witness/pricing.json");
    let mut witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    witness["public"] = json!(true);
    let witness = environment.write("public.json", &witness.to_string());
    let scene = Scene::of(environment, &["--witness", &witness]);
    scene.policy("exceptions", json!({"keys": [scene.ids["lead"]]}));
    let refused = scene.verify("candidate", &[]);
    assert_eq!(refused.json()["code"], "certifier/WITNESS_PUBLIC");
    let judge = scene.public("judge");
    let except = |more: &[&str]| {
        let args = [
            "cert",
            "except",
            &scene.certificate,
            "--trust",
            &judge,
            "-o",
            "exception.json",
            "--key",
            "lead",
            "--reason",
            "the cases are those of the standard",
        ];
        scene.flights(&[&args[..], more].concat())
    };
    let forbidden = except(&["--code", "archive/PREFIX_CONFLICT"]);
    assert_eq!(forbidden.json()["code"], "certifier/EXCEPTION_FORBIDDEN");
    let gateless = except(&["--code", "GATE_MISSING"]);
    for (wrong, said) in [
        (
            gateless,
            "certifier/GATE_MISSING is of one gate, and none is named (--gate): ",
        ),
        (
            except(&["--code", "WITNESS_PUBLIC", "--gate", "mutation"]),
            "a gate is named (--gate), and certifier/WITNESS_PUBLIC is of none",
        ),
        (
            except(&["--code", "WITNESS_PUBLIC", "--days", "4000"]),
            "longer than the 92 days there may be (--days)",
        ),
        (
            except(&["--code", "WITNESS_PUBLIC", "--days", "0"]),
            "which is no time at all (--days)",
        ),
    ] {
        assert_eq!(wrong.json()["code"], "certifier/EXCEPTION_INVALID");
        let detail = wrong.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(said), "{detail}");
    }
    let made = except(&["--code", "WITNESS_PUBLIC"]);
    assert_eq!(made.code, 0, "{}", made.text);
    let judge_alone = scene.flights(&[
        "cert",
        "verify",
        &scene.certificate,
        "--repo",
        &scene.repo,
        "--subject",
        "candidate",
        "--policy",
        &text(&scene.environment.path("policy.json")),
        "--key",
        &judge,
        "--exception",
        "exception.json",
    ]);
    let refused = judge_alone.json();
    assert_eq!(refused["code"], "certifier/EXCEPTION_INVALID");
    let missing = "no key that may sign it is among those given (--key)";
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.ends_with(missing), "{detail}");
    let verified = scene.verify("candidate", &["--exception", "exception.json"]);
    assert_eq!(verified.code, 0, "{}", verified.text);
    let note = verified.json()["notes"][0].as_str().unwrap().to_owned();
    assert!(
        note.starts_with("excused certifier/WITNESS_PUBLIC until"),
        "{note}"
    );
}

#[test]
fn the_log_proves_what_it_holds_and_notices_what_was_changed() {
    let scene = Scene::new();
    let refused = scene.environment.certify("no-such-branch", &[]);
    assert_eq!(refused.code, 2, "{}", refused.text);
    // A slip of the operator's says nothing of a commit.
    let log = scene.flights(&["cert", "log", "show"]).json();
    assert_eq!(log["size"], 1);
    let other = ["--identity", "Somebody Else <else@example.invalid>"];
    let refused = scene.environment.certify("candidate", &other);
    assert_eq!(refused.code, 10, "{}", refused.text);
    let log = scene.flights(&["cert", "log", "show"]).json();
    assert_eq!(log["size"], 2);
    assert_eq!(
        log["entries"][1]["event"]["code"],
        "importer/IDENTITY_MISMATCH"
    );
    scene.policy("log", json!({"key": log["key"]}));
    assert_eq!(
        scene.verify("candidate", &[]).json()["code"],
        "certifier/INCLUSION_MISSING"
    );
    let proven = scene.flights(&["cert", "log", "prove", &scene.certificate, "-o", "proof"]);
    assert_eq!(proven.code, 0, "{}", proven.text);
    let verified = scene.verify("candidate", &["--proof", "proof"]);
    assert_eq!(verified.code, 0, "{}", verified.text);
    assert!(
        verified.stdout.contains("entry 0 of 2 in the log"),
        "{}",
        verified.text
    );

    let state = scene.environment.state();
    fs::copy(
        state.join("log/checkpoint"),
        scene.environment.path("work/saved"),
    )
    .unwrap();
    let judge = scene.public("judge");
    let appended = scene.flights(&["cert", "log", "append", &scene.certificate, "--key", &judge]);
    assert_eq!(appended.code, 0, "{}", appended.text);
    let check = || scene.flights(&["cert", "log", "check", "--checkpoint", "saved"]);
    assert_eq!(check().code, 0, "{}", check().text);

    let other = scene.flights(&["cert", "log", "check", "--checkpoint", &scene.certificate]);
    assert_eq!(other.json()["code"], "certifier/CHECKPOINT_INVALID");
    let hint = other.json()["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("STATE/log/checkpoint"), "{hint}");

    // The whole folder put back: the head that was seen is newer.
    let before = scene.environment.path("before");
    crate::environment::copy(&state.join("log"), &before);
    scene.flights(&["cert", "log", "append", &scene.certificate, "--key", &judge]);
    fs::rename(state.join("log"), scene.environment.path("aside")).unwrap();
    crate::environment::copy(&before, &state.join("log"));
    assert_eq!(check().json()["code"], "certifier/LOG_INCONSISTENT");
    fs::remove_dir_all(state.join("log")).unwrap();
    fs::rename(scene.environment.path("aside"), state.join("log")).unwrap();
    assert_eq!(check().code, 0);

    // One letter of one entry.
    let bundle = state.join("log/tile/entries/000.p/4");
    let mut bytes = fs::read(&bundle).unwrap();
    let code = b"IDENTITY_MISMATCH";
    let mut at = bytes.windows(code.len()).enumerate();
    let at = at.find(|(_, window)| window == code).unwrap().0;
    bytes[at] = b'J';
    fs::write(&bundle, bytes).unwrap();
    assert_eq!(check().json()["code"], "certifier/LOG_BROKEN");
    // A refusal that cannot be written down says so.
    scene.policy("admission", json!({"keys": [scene.ids["lead"]]}));
    let unlogged = scene.admit("clerk").json();
    assert_eq!(unlogged["code"], "certifier/KEY_UNAUTHORIZED");
    let note = unlogged["notes"][0].as_str().unwrap().to_owned();
    let said = "not in the log: certifier/LOG_BROKEN";
    assert!(note.starts_with(said), "{note}");
    let other = scene.flights(&["cert", "log", "prove", "proof", "-o", "x"]);
    assert_ne!(other.code, 0);
}

/// What refuses a certificate anywhere lets it in nowhere.
#[test]
fn whatever_a_policy_wants_beside_a_certificate_is_wanted_before_a_branch_moves() {
    let scene = Scene::new();
    let before = scene.tip();
    let log = scene.flights(&["cert", "log", "show"]).json();
    let proven = scene.flights(&["cert", "log", "prove", &scene.certificate, "-o", "proof"]);
    assert_eq!(proven.code, 0, "{}", proven.text);
    let renew = ["key", "revoke", "--list", "list", "--new", "team"];
    let renewed = scene.flights(&[&renew[..], &["--key", "lead"]].concat());
    assert_eq!(renewed.code, 0, "{}", renewed.text);
    for (rule, value, option, code) in [
        (
            "log",
            json!({"key": log["key"]}),
            ["--proof", "proof"],
            "certifier/INCLUSION_MISSING",
        ),
        (
            "revocations",
            json!({"list": "team", "keys": [scene.ids["lead"]]}),
            ["--revocations", "list"],
            "certifier/REVOCATION_UNAVAILABLE",
        ),
    ] {
        scene.policy(rule, value);
        let verified = scene.verify("candidate", &[]);
        assert_eq!(verified.json()["code"], code);
        let refused = scene.admit("lead");
        assert_eq!(refused.json()["code"], code, "{}", refused.text);
        assert_eq!(refused.code, verified.code);
        assert_eq!(scene.tip(), before);
        assert!(!scene.environment.path("work/admission.dsse.json").exists());
        let reviewed = scene.review(&[]);
        assert_eq!(reviewed.json()["code"], code, "{}", reviewed.text);
        let verified = scene.verify("candidate", &option);
        assert_eq!(verified.code, 0, "{}", verified.text);
        let reviewed = scene.review(&option);
        assert_eq!(reviewed.code, 0, "{}", reviewed.text);
    }
    // What nobody asked for counts for nothing, and whoever presents it is told.
    scene.policy("repository", json!("repo"));
    let refused = scene.admit_with("lead", &["--proof", "proof"]);
    assert_eq!(refused.json()["code"], "certifier/BESIDE_UNASKED");
    scene.policy("log", json!({"key": log["key"]}));
    let admitted = scene.admit_with("lead", &["--proof", "proof"]);
    assert_eq!(admitted.json()["verdict"], "admitted", "{}", admitted.text);
    assert_ne!(scene.tip(), before);
}

#[test]
fn whoever_is_about_to_sign_the_second_statement_sees_the_change_first() {
    let scene = Scene::new();
    scene.policy("admission", json!({"keys": [scene.ids["lead"]]}));
    let reviewed = scene.review(&[]);
    assert_eq!(reviewed.code, 0, "{}", reviewed.text);
}

#[test]
fn a_certificate_that_was_never_logged_has_no_proof() {
    let environment = Environment::new();
    fs::create_dir_all(environment.state()).unwrap();
    let kept = crate::environment::workspace().join("fixtures/formats/certificate.dsse.json");
    let run = environment.flights(&[
        "cert",
        "log",
        "prove",
        kept.to_str().unwrap(),
        "-o",
        "proof",
        "--format",
        "json",
    ]);
    assert_eq!(run.json()["code"], "flights/NOT_IN_LOG", "{}", run.text);
}

#[test]
fn one_case_is_opened_for_whoever_has_the_certificate() {
    let scene = Scene::new();
    let witness = crate::environment::workspace().join("flights/witness/pricing.json");
    let cases: Value = serde_json::from_slice(&fs::read(&witness).unwrap()).unwrap();
    let (first, second) = (&cases["cases"][0]["id"], &cases["cases"][1]["id"]);
    let (first, second) = (first.as_str().unwrap(), second.as_str().unwrap());
    let opening = text(&scene.environment.path("out/opening.json"));
    let witness = text(&witness);
    let open = |case: &str, opening: &str| {
        scene.flights(&[
            "cert",
            "open-case",
            "--witness",
            &witness,
            "--opening",
            opening,
            "--case",
            case,
            "-o",
            "case.json",
        ])
    };
    assert_eq!(open(first, &opening).code, 0);
    let opened = fs::read_to_string(scene.environment.path("work/case.json")).unwrap();
    assert!(
        opened.contains(first) && !opened.contains(second),
        "{opened}"
    );
    let judge = scene.public("judge");
    let check = || {
        scene.flights(&[
            "cert",
            "check-case",
            &scene.certificate,
            "case.json",
            "--key",
            &judge,
        ])
    };
    assert_eq!(check().code, 0, "{}", check().text);
    fs::write(
        scene.environment.path("work/case.json"),
        opened.replace("\"index\":0", "\"index\":1"),
    )
    .unwrap();
    assert_eq!(check().json()["code"], "certifier/CASE_MISMATCH");
    assert_eq!(
        open("no-such-case", &opening).json()["code"],
        "flights/WITNESS_UNREADABLE"
    );
    assert_eq!(
        open(first, &scene.certificate).json()["code"],
        "flights/OPENING_UNREADABLE"
    );
}

#[test]
fn other_programs_check_what_is_derived() {
    let scene = Scene::new();
    let out = |name: &str| scene.environment.path("out").join(name);
    let judge = scene.flights(&["key", "list"]).json()["keys"][0]["ssh"].clone();
    let allowed = format!(
        "judge namespaces=\"certificate@flightproof.dev\" {}\n",
        judge.as_str().unwrap()
    );
    let allowed = scene.environment.write("allowed", &allowed);
    let keygen = |namespace: &str| {
        Command::new("ssh-keygen")
            .args([
                "-Y", "verify", "-f", &allowed, "-I", "judge", "-n", namespace, "-s",
            ])
            .arg(out("certificate.dsse.json.sig"))
            .stdin(fs::File::open(out("certificate.dsse.json")).unwrap())
            .output()
            .expect("ssh-keygen is installed: it is what checks us from outside")
    };
    let good = keygen("certificate@flightproof.dev");
    assert!(
        good.status.success(),
        "{}",
        String::from_utf8_lossy(&good.stdout)
    );
    assert!(!keygen("file").status.success());
    let mut bytes = fs::read(out("certificate.dsse.json")).unwrap();
    bytes[40] ^= 1;
    fs::write(out("certificate.dsse.json"), bytes).unwrap();
    assert!(!keygen("certificate@flightproof.dev").status.success());

    let key = fs::read_to_string(scene.public("judge")).unwrap();
    let key = flightproof_certifier::key::PublicKey::from_pem(&key).unwrap();
    let statement = |name: &str| -> Value {
        let signed =
            flightproof_certifier::dsse::open(&fs::read(out(name)).unwrap(), &[key], 1).unwrap();
        serde_json::from_slice(signed.bytes()).unwrap()
    };
    let result = statement("test-result.dsse.json");
    assert_eq!(
        result["predicateType"],
        "https://in-toto.io/attestation/test-result/v0.1"
    );
    assert_eq!(result["predicate"]["result"], "PASSED");
    assert_eq!(
        result["predicate"]["passedTests"].as_array().unwrap().len(),
        7
    );
    let svr = statement("svr.dsse.json");
    assert_eq!(svr["predicate"]["properties"][5], "FLIGHTPROOF_MUTATION");
    assert_eq!(svr["subject"], result["subject"]);
}
