//! `flights import`, on real repositories.

use crate::environment::{Environment, Run, workspace};
use crate::verify::POLICY;
use flightproof_certifier::key::PublicKey;
use flightproof_core::Digest;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn text(environment: &Environment, name: &str) -> String {
    environment.path(name).to_str().unwrap().to_owned()
}

/// A repository with a bundle of its candidate beside it, and a clone that never saw the candidate.
pub(crate) fn arrived() -> Environment {
    let environment = Environment::with_pricing();
    let text = |name: &str| text(&environment, name);
    let (repo, file, home) = (text("repo"), text("c.bundle"), text("home/repo"));
    let mut args = vec!["bundle", "create", "--repo", &repo, "--baseline", "main"];
    args.extend(["--head", "candidate", "-o", &file]);
    let run = environment.flights(&args);
    assert_eq!(run.code, 0, "{}", run.text);
    let clone = ["clone", "-q", "--single-branch", "-b", "main"];
    environment.git(&[&clone[..], &[&repo, &home]].concat());
    environment
}

/// The same after the candidate came home, on nothing but somebody's word.
pub(crate) fn imported() -> Environment {
    let environment = arrived();
    let run = import(&environment, &["--uncertified-i-know"]);
    assert_eq!(run.code, 0, "{}", run.text);
    environment
}

fn import(environment: &Environment, more: &[&str]) -> Run {
    let (file, home) = (
        text(environment, "c.bundle"),
        text(environment, "home/repo"),
    );
    let mut args = vec!["import", &file, "--repo", &home, "--branch", "main"];
    if !more.contains(&"--baseline") {
        args.extend(["--baseline", "main"]);
    }
    args.extend(more);
    environment.flights(&args)
}

fn recover(environment: &Environment, more: &[&str]) -> Run {
    let home = text(environment, "home/repo");
    let mut args = vec!["import", "recover", "--repo", &home];
    args.extend(more);
    environment.flights(&args)
}

fn key_id(environment: &Environment) -> String {
    let pem = fs::read_to_string(environment.public_key()).unwrap();
    PublicKey::from_pem(&pem).unwrap().id().to_string()
}

fn git(dir: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    let output = git.arg("-C").arg(dir).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[track_caller]
fn assert_says(run: &Run, code: i32, parts: &[&str]) {
    assert_eq!(run.code, code, "{}", run.text);
    for part in parts {
        assert!(run.stdout.contains(part), "{part}: {}", run.text);
    }
}

#[test]
fn an_uncertified_commit_comes_home_only_if_that_is_said() {
    let environment = arrived();
    let home = environment.path("home/repo");
    assert_eq!(import(&environment, &[]).code, 2);
    let run = import(&environment, &["--uncertified-i-know"]);
    let said = [
        "ADMITTED: main moved from ",
        "and with it the files and the index of the working tree",
        "  uncertified: ",
        "src/main.rs",
    ];
    assert_says(&run, 0, &said);
    assert_eq!(git(&home, &["status", "--porcelain"]), "");
    let candidate = environment.git(&["rev-parse", "candidate"]);
    assert_eq!(git(&home, &["rev-parse", "main"]), candidate);
    // The log and the ledger say that nothing but a person vouched for it, and no certificate is named.
    assert_eq!(environment.logged(), ["uncertified"]);
    let log = environment.flights(&["cert", "log", "show"]);
    assert_says(&log, 0, &["  admitted  uncertified ", &candidate]);
    assert_eq!(environment.flights(&["cert", "log", "check"]).code, 0);
    let rows = environment.flights(&["ledger", "export"]);
    assert_says(&rows, 0, &["\"uncertified\":true"]);
    let baseline = git(&home, &["rev-parse", "main~1"]);
    let again = ["--uncertified-i-know", "--format", "json"];
    let again = [&again[..], &["--baseline", &baseline]].concat();
    let json = import(&environment, &again).json();
    assert_eq!(json["repeated"], true);
    assert_eq!(environment.logged().len(), 1, "it moved once");
    assert_eq!(json["verdict"], "admitted");
    assert_eq!(json["receipt"]["head"], candidate);
    assert!(json["receipt"].get("certificate").is_none());
    let run = recover(&environment, &[]);
    assert_says(&run, 0, &["not_started: no import was cut off here"]);
    let json = recover(&environment, &["--format", "json"]).json();
    assert_eq!(json["state"], "not_started");
}

#[test]
fn what_is_in_the_way_is_said_in_one_line_with_a_hint() {
    let environment = arrived();
    let home = environment.path("home/repo");
    fs::write(home.join("src/main.rs"), "mine\n").unwrap();
    let run = import(&environment, &["--uncertified-i-know"]);
    let said = [
        "STOPPED at import: importer/SOURCE_CHANGED: ",
        "src/main.rs",
        "hint: ",
    ];
    assert_says(&run, 21, &said);
    let found = fs::read_to_string(home.join("src/main.rs")).unwrap();
    assert_eq!(found, "mine\n");
    git(&home, &["checkout", "-q", "--", "."]);
    let run = import(&environment, &["--uncertified-i-know", "--grant", "docs"]);
    assert_says(&run, 10, &["importer/PATH_NOT_GRANTED: src/main.rs"]);
    // What says something of the commit is in the log, under the name that it would be let in by.
    assert_eq!(environment.logged(), ["refused"]);
    let log = environment.flights(&["cert", "log", "show", "--format", "json"]);
    let entry = log.json()["entries"][0].clone();
    let bundle = Digest::of(&fs::read(environment.path("c.bundle")).unwrap());
    assert_eq!(entry["repository"], "repo");
    assert_eq!(entry["candidate"], format!("bundle {bundle}"));
    assert_eq!(entry["event"]["code"], "importer/PATH_NOT_GRANTED");
    assert_eq!(git(&home, &["status", "--porcelain"]), "");
}

/// Killed after the branch moved and before the log said so.
#[test]
fn a_branch_that_moved_is_in_the_log_once_whenever_its_import_died() {
    let environment = arrived();
    let candidate = environment.git(&["rev-parse", "candidate"]);
    let logged = || environment.moves_logged(&candidate);
    // The log that is put back has an entry.
    let other = ["--identity", "Somebody Else <else@example.invalid>"];
    assert_eq!(environment.certify("candidate", &other).code, 10);
    let run = environment.unlogged(|| import(&environment, &["--uncertified-i-know"]));
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(logged(), 0);
    let repeat = ["--uncertified-i-know", "--baseline", "main~1"];
    let run = environment.unlogged(|| {
        assert_eq!(recover(&environment, &[]).code, 0);
        assert_eq!(logged(), 1);
        assert_eq!(recover(&environment, &[]).code, 0);
        let run = import(&environment, &repeat);
        assert_eq!(logged(), 1);
        run
    });
    assert_says(&run, 0, &["was moved from "]);
    for _ in 0..2 {
        let run = import(&environment, &repeat);
        assert_says(&run, 0, &["was moved from "]);
        assert_eq!(logged(), 1);
    }
    assert_eq!(environment.logged(), ["refused", "uncertified"]);
    let log = environment.flights(&["cert", "log", "show"]);
    assert_says(&log, 0, &[&format!("to main  {candidate} of repo")]);
}

/// What nobody certified proves nothing of its author: the next attempt is no first one.
#[test]
fn an_uncertified_commit_begins_no_new_count_of_attempts() {
    let environment = arrived();
    let bound = "\"require\":{\"attempts_max\":1},\"allow\"";
    let bounded = environment.write("bounded.json", &POLICY.replace("\"allow\"", bound));
    let other = ["--identity", "Somebody Else <else@example.invalid>"];
    let run = environment.certify("candidate", &other);
    assert_says(&run, 10, &["importer/IDENTITY_MISMATCH"]);
    let run = import(&environment, &["--uncertified-i-know"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let run = environment.certify("candidate", &["--policy", &bounded]);
    assert_says(&run, 13, &["certifier/ATTEMPTS_TOO_MANY: attempt 2"]);
}

/// A policy that names this key.
fn pinned(environment: &Environment, id: &str) -> String {
    let keys = format!("\"keys\":[\"{id}\"],\"threshold\"");
    environment.write("policy.json", &POLICY.replace("\"threshold\"", &keys))
}

#[test]
fn a_certificate_lets_in_exactly_what_it_was_made_for() {
    let environment = arrived();
    let home = environment.path("home/repo");
    // Certified and admitted where it was made, under the policy of where it will go.
    let ours = pinned(&environment, &key_id(&environment));
    let bound = fs::read_to_string(&ours).unwrap();
    let run = environment.certify("candidate", &["--admit", "main", "--policy", &ours]);
    assert_eq!(run.code, 0, "{}", run.text);
    let baseline = git(&home, &["rev-parse", "main"]);
    let certificate = text(&environment, "out/certificate.dsse.json");
    let by = |policy: &str, more: &[&str]| {
        let args = ["--certificate", &certificate, "--policy", policy];
        import(&environment, &[&args[..], more].concat())
    };
    let open = environment.write("policy.json", POLICY);
    assert_says(&by(&open, &[]), 13, &["flights/POLICY_UNPINNED"]);
    let other = pinned(&environment, &"0".repeat(64));
    assert_says(&by(&other, &[]), 13, &["certifier/KEY_UNAUTHORIZED"]);
    // The same rules in another file are another policy.
    let ours = environment.write("policy.json", &format!("{bound}\n"));
    let said = "flights/CERTIFICATE_DIFFERS: policy: certified ";
    assert_says(&by(&ours, &[]), 13, &[said]);
    let ours = environment.write("policy.json", &bound);
    let said = "flights/CERTIFICATE_DIFFERS: repository: certified repo, asked another";
    assert_says(&by(&ours, &["--name", "another"]), 13, &[said]);
    assert_eq!(git(&home, &["rev-parse", "main"]), baseline);
    let logged = [
        "certified",
        "admitted",
        "refused",
        "refused",
        "refused",
        "refused",
    ];
    assert_eq!(environment.logged(), logged);
    assert_says(&by(&ours, &[]), 0, &["ADMITTED", "  certificate "]);
    assert_eq!(environment.logged()[logged.len()..], ["admitted"]);
    let rows = environment.flights(&["ledger", "export"]);
    assert!(!rows.stdout.contains("uncertified"), "{}", rows.text);
    assert_eq!(git(&home, &["status", "--porcelain"]), "");
    let candidate = environment.git(&["rev-parse", "candidate"]);
    assert_eq!(git(&home, &["rev-parse", "main"]), candidate);
}

#[test]
fn a_certificate_that_is_bound_to_no_policy_lets_nothing_in() {
    let environment = arrived();
    let run = environment.certify("candidate", &["--admit", "main"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let policy = pinned(&environment, &key_id(&environment));
    let certificate = text(&environment, "out/certificate.dsse.json");
    let args = ["--certificate", &certificate, "--policy", &policy];
    let run = import(&environment, &args);
    let said = "flights/CERTIFICATE_DIFFERS: policy: certified no policy, asked ";
    assert_says(&run, 13, &[said]);
    // What is no policy binds nothing.
    let broken = environment.write("broken.json", "{}");
    let run = environment.certify("candidate", &["--policy", &broken]);
    assert_says(&run, 20, &["REFUSED at plan: certifier/POLICY_INVALID"]);
}

#[test]
fn a_policy_with_a_log_lets_in_what_is_proven_to_be_in_it() {
    let environment = arrived();
    let run = environment.certify("candidate", &["--admit", "main"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let certificate = text(&environment, "out/certificate.dsse.json");
    let proof = text(&environment, "proof");
    let prove = ["cert", "log", "prove", &certificate, "-o", &proof];
    assert_eq!(environment.flights(&prove).code, 0);
    let log = environment.flights(&["cert", "log", "show", "--format", "json"]);
    let policy = pinned(&environment, &key_id(&environment));
    let logged = format!("\"log\":{{\"key\":{}}},\"threshold\"", log.json()["key"]);
    let logged = fs::read_to_string(&policy)
        .unwrap()
        .replace("\"threshold\"", &logged);
    let logged = environment.write("logged.json", &logged);
    let by = |policy: &str, more: &[&str]| {
        let args = ["--certificate", &certificate, "--policy", policy];
        import(&environment, &[&args[..], more].concat())
    };
    assert_says(&by(&logged, &[]), 13, &["certifier/INCLUSION_MISSING"]);
    let proof = ["--proof", proof.as_str()];
    assert_says(&by(&policy, &proof), 2, &["certifier/BESIDE_UNASKED"]);
    // With it, all that is left is that it was made under another policy.
    assert_says(&by(&logged, &proof), 13, &["flights/CERTIFICATE_DIFFERS"]);
}

#[test]
fn a_held_certificate_lets_nothing_in() {
    let environment = arrived();
    assert_eq!(environment.certify("candidate", &[]).code, 0);
    let policy = pinned(&environment, &key_id(&environment));
    let certificate = text(&environment, "out/certificate.dsse.json");
    let args = ["--certificate", &certificate, "--policy", &policy];
    let run = import(&environment, &args);
    assert_says(&run, 13, &["flights/CERTIFICATE_HELD"]);
}

#[test]
fn certified_work_is_flown_again_on_a_baseline_that_moved() {
    let environment = arrived();
    assert_eq!(environment.certify("candidate", &[]).code, 0);
    let text = |name: &str| text(&environment, name);
    let (old, repo, out) = (
        text("out/certificate.dsse.json"),
        text("repo"),
        text("again"),
    );
    let witness = workspace().join("flights/witness/pricing.json");
    let witness = witness.to_str().unwrap();
    let refly = |onto: &str| {
        let mut args = vec!["refly", &old, "--onto", onto, "--repo", &repo];
        args.extend(["--witness", witness, "--out", &out, "--admit", "main"]);
        environment.flights(&args)
    };
    // The same lines changed meanwhile.
    let main = fs::read_to_string(environment.path("repo/src/main.rs")).unwrap();
    environment.candidate_edit("theirs", |text| text.replace('\n', " \n"));
    let run = refly("theirs");
    assert_says(&run, 10, &["importer/MERGE_CONFLICT: src/main.rs"]);
    // Another file changed meanwhile.
    fs::write(environment.path("repo/NOTES"), "more\n").unwrap();
    environment.git(&["add", "NOTES"]);
    environment.git(&["commit", "-qm", "meanwhile"]);
    let onto = environment.git(&["rev-parse", "main"]);
    let run = refly("main");
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(environment.git(&["rev-parse", "main~1"]), onto);
    assert_eq!(environment.git(&["status", "--porcelain"]), "");
    assert!(environment.path("repo/NOTES").exists());
    let after = fs::read_to_string(environment.path("repo/src/main.rs")).unwrap();
    assert_ne!(after, main);
    assert!(environment.path("again/receipt.json").exists());
}

/// What hands a passphrase over may hold it once, as a pipe does.
#[test]
fn a_passphrase_is_read_once() {
    let environment = Environment::new();
    environment.share_cache();
    let locked = environment.write("passphrase", "correct horse\n");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o600)).unwrap();
    let made = environment.flights(&["key", "new", "--passphrase-file", &locked]);
    assert_eq!(made.code, 0, "{}", made.text);
    environment.lay_pricing();
    let piped = |command: &mut Command| {
        let mut child = command
            .args(["--passphrase-file", "/dev/stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"correct horse\n")
            .unwrap();
        environment.told(&child.wait_with_output().unwrap())
    };
    let run = piped(&mut environment.certify_command("candidate", &[]));
    assert_eq!(run.code, 0, "{}", run.text);
    fs::write(environment.path("repo/NOTES"), "more\n").unwrap();
    environment.git(&["add", "NOTES"]);
    environment.git(&["commit", "-qm", "meanwhile"]);
    let text = |name: &str| text(&environment, name);
    let (old, repo, out) = (
        text("out/certificate.dsse.json"),
        text("repo"),
        text("again"),
    );
    let witness = workspace().join("flights/witness/pricing.json");
    let mut args = vec!["refly", &old, "--onto", "main", "--repo", &repo];
    args.extend(["--witness", witness.to_str().unwrap(), "--out", &out]);
    let run = piped(&mut environment.command(&args));
    assert_eq!(run.code, 0, "{}", run.text);
}

#[test]
fn work_flown_again_on_a_certified_commit_carries_its_lineage() {
    let environment = arrived();
    let text = |name: &str| text(&environment, name);
    let kept = |name: &str| {
        fs::copy(
            environment.path("out/certificate.dsse.json"),
            environment.path(name),
        )
        .unwrap();
        text(name)
    };
    assert_eq!(environment.certify("candidate", &[]).code, 0);
    let first = kept("first.json");
    // The same fix, and a document beside it.
    environment.git(&["switch", "-q", "-c", "notes", "main"]);
    environment.git(&["checkout", "-q", "candidate", "--", "."]);
    fs::write(environment.path("repo/NOTES.md"), "more\n").unwrap();
    environment.git(&["add", "NOTES.md"]);
    environment.git(&["commit", "-qm", "Take notes"]);
    environment.git(&["switch", "-q", "main"]);
    let run = environment.certify("notes", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let second = kept("second.json");
    let witness = workspace().join("flights/witness/pricing.json");
    let (witness, repo, out) = (witness.to_str().unwrap(), text("repo"), text("again"));
    let refly = |more: &[&str]| {
        let mut args = vec!["refly", &second, "--onto", "candidate", "--repo", &repo];
        args.extend(["--witness", witness, "--out", &out]);
        environment.flights(&[&args[..], more].concat())
    };
    let lineage = || {
        let certificate = text("again/certificate.dsse.json");
        let shown = environment.flights(&["cert", "show", &certificate, "--format", "json"]);
        shown.json()["statement"]["predicate"]["inputs"]["lineage"].clone()
    };
    let run = refly(&["--parent", &second]);
    let code = "REFUSED at lineage: certifier/LINEAGE_BROKEN: none of the certificates";
    assert_says(&run, 11, &[code]);
    let run = refly(&["--parent", &first]);
    assert_eq!(run.code, 0, "{}", run.text);
    let id = environment.flights(&["cert", "show", &first, "--format", "json"]);
    let expected = serde_json::json!({"depth": 1, "parent": id.json()["certificate"]});
    assert_eq!(lineage(), expected, "{}", id.text);
    let run = refly(&[]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(lineage(), serde_json::json!({"depth": 0}));
}

#[test]
fn a_commit_is_signed_as_it_lands_and_git_verifies_it() {
    let environment = arrived();
    let home = environment.path("home/repo");
    let key = environment.state().join("keys/flightproof.pem");
    let sign = ["--uncertified-i-know", "--sign", key.to_str().unwrap()];
    let baseline = git(&home, &["rev-parse", "main"]);
    let json = import(&environment, &[&sign[..], &["--format", "json"]].concat()).json();
    let candidate = environment.git(&["rev-parse", "candidate"]);
    let head = git(&home, &["rev-parse", "main"]);
    assert_eq!(json["head"], head, "{json}");
    assert_eq!(json["unsigned"], candidate);
    assert_eq!(json["receipt"]["unsigned"], candidate);
    assert_ne!(head, candidate);
    for what in ["%T", "%P", "%an <%ae> %ad", "%cn <%ce> %cd", "%B"] {
        let show = |dir: &Path, commit: &str| {
            git(dir, &["show", "-s", &format!("--format={what}"), commit])
        };
        assert_eq!(
            show(&home, &head),
            show(&environment.path("repo"), &candidate)
        );
    }
    assert_eq!(git(&home, &["status", "--porcelain"]), "");
    git(&home, &["fsck", "--strict"]);
    // By the key that signed, and by no other.
    let listed = environment
        .flights(&["key", "list", "--format", "json"])
        .json();
    let line = listed["keys"][0]["ssh"].as_str().unwrap();
    let allowed =
        |line: &str| environment.write("allowed", &format!("host@example.invalid {line}\n"));
    let verifies = |allowed: &str| {
        let setting = format!("gpg.ssh.allowedSignersFile={allowed}");
        let mut verify = Command::new("git");
        verify
            .arg("-C")
            .arg(&home)
            .args(["-c", &setting, "verify-commit", "main"]);
        verify.output().unwrap().status.success()
    };
    assert!(verifies(&allowed(line)));
    let other = environment.path("other.pem");
    let made = environment.flights(&[
        "key",
        "new",
        "--no-passphrase",
        "--out",
        other.to_str().unwrap(),
    ]);
    assert_eq!(made.code, 0, "{}", made.text);
    let pem = fs::read_to_string(environment.path("other.pem.pub")).unwrap();
    let other = flightproof_certifier::ssh::public_line(&PublicKey::from_pem(&pem).unwrap());
    assert!(!verifies(&allowed(&other)));
    // The same request makes the same commit.
    let again = [&sign[..], &["--baseline", &baseline, "--format", "json"]].concat();
    assert_eq!(import(&environment, &again).json()["repeated"], true);
    // Without its signature it is the commit that was checked, byte for byte.
    let body = git(&home, &["cat-file", "commit", "main"]);
    let (before, rest) = body.split_once("\ngpgsig ").unwrap();
    let after = rest.split_once("-----END SSH SIGNATURE-----\n").unwrap().1;
    let plain = format!("{before}\n{after}\n");
    let file = environment.write("plain", &plain);
    let id = git(&home, &["hash-object", "-t", "commit", &file]);
    assert_eq!(id, candidate);
}

#[test]
fn a_key_that_cannot_sign_stops_the_import_before_anything_is_written() {
    let environment = arrived();
    let home = environment.path("home/repo");
    let before = git(&home, &["rev-parse", "main"]);
    let run = import(
        &environment,
        &["--uncertified-i-know", "--sign", "/nonexistent.pem"],
    );
    let told = "flights/FILE_UNREADABLE: /nonexistent.pem";
    assert!(run.stdout.contains(told), "{}", run.text);
    assert_eq!(git(&home, &["rev-parse", "main"]), before);
    assert_eq!(git(&home, &["status", "--porcelain"]), "");
    let recovered = recover(&environment, &["--format", "json"]).json();
    assert_eq!(recovered["state"], "not_started");
}
