//! `flights cert verify`: the good certificate, and everything that is wrong with the others.

use crate::environment::{Environment, Run};
use insta::assert_snapshot;
use std::fs;

pub(crate) const POLICY: &str = r#"{"schema":"flightproof/policy/1","threshold":1,"required_gates":["lineage","dependency","fence","build","correctness","mutation","determinism"],"allow":{"waivers_max":0}}"#;

/// A certified candidate with a policy beside it.
fn certified() -> Environment {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    environment.write("policy.json", POLICY);
    environment
}

pub(crate) fn verify(environment: &Environment, key: &str, subject: &str, more: &[&str]) -> Run {
    let text = |name: &str| environment.path(name).to_str().unwrap().to_owned();
    let (certificate, policy, repo) = (
        text("out/certificate.dsse.json"),
        text("policy.json"),
        text("repo"),
    );
    let mut args = vec!["cert", "verify", &certificate, "--key", key];
    args.extend(["--subject", subject, "--repo", &repo, "--policy", &policy]);
    args.extend(more);
    environment.flights(&args)
}

/// The candidate's tree as a directory.
fn exported(environment: &Environment) -> String {
    let place = environment.path("export");
    let place = place.to_str().unwrap().to_owned();
    environment.git(&[
        "worktree",
        "add",
        "--quiet",
        "--detach",
        &place,
        "candidate",
    ]);
    fs::remove_file(environment.path("export/.git")).unwrap();
    place
}

#[test]
fn a_certificate_is_accepted_for_its_revision_and_for_its_directory() {
    let environment = certified();
    let key = environment.public_key();
    let run = verify(&environment, &key, "candidate", &[]);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
    ACCEPTED: commit ________________________________________ of repo: held; passed lineage, dependency, fence, build, correctness, mutation, determinism; 0 waived mutants; signed by ________________
      certificate ________________________________________________________________
    "#);
    let directory = exported(&environment);
    let run = verify(&environment, &key, &directory, &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"accepted","stage":"verify","detail":"commit ________________________________________ of repo: held; passed lineage, dependency, fence, build, correctness, mutation, determinism; 0 waived mutants; signed by ________________","certificate":"________________________________________________________________"}
    "#);
    assert_eq!(environment.listing("tmp").len(), 0, "the temporary folder");
    // The same key as OpenSSH writes it.
    let listed = environment.flights(&["key", "list", "--format", "json"]);
    let line = listed.json()["keys"][0]["ssh"].as_str().unwrap().to_owned();
    let ssh = environment.write("ssh.pub", &format!("{line} me@host\n"));
    let run = verify(&environment, &ssh, "candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let two = environment.write("two.pub", &format!("{line}\n{line}\n"));
    let run = verify(&environment, &two, "candidate", &[]);
    assert!(run.text.contains("certifier/KEY_MALFORMED"), "{}", run.text);
}

#[test]
fn another_subject_is_refused() {
    let environment = certified();
    let key = environment.public_key();
    let run = verify(&environment, &key, "main", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 11
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"certifier/SUBJECT_MISMATCH","stage":"verify","detail":"the tree differs: certified snapshot ________________________________________________________________, this tree ________________________________________________________________","hint":"the message says which differs: for a tree, name a revision with --repo DIR --subject REV, since in a directory build output and files that git does not track count too; for a commit or baseline, ask about the one it was made for; or certify this one"}
    "#);
    let directory = exported(&environment);
    environment.write("export/extra.txt", "one more file");
    let run = verify(&environment, &key, &directory, &[]);
    assert_eq!(run.code, 11, "{}", run.text);
}

/// A tree says nothing of what it was put on: whoever asks about a commit with the certified tree is told so,
/// and may hold the certificate to commit and baseline.
#[test]
fn the_certified_tree_on_another_commit_is_told_and_can_be_refused() {
    let environment = certified();
    let key = environment.public_key();
    let say = |args: &[&str]| environment.git(args).trim().to_owned();
    environment.git(&["checkout", "--quiet", "main"]);
    environment.git(&[
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "Something between",
    ]);
    let tree = "candidate^{tree}";
    let undoing = say(&["commit-tree", tree, "-p", "main", "-m", "Undo"]);
    environment.git(&["branch", "undoing", &undoing]);
    let told = verify(&environment, &key, "undoing", &[]);
    assert_eq!(told.code, 0, "{}", told.text);
    assert!(
        told.text.contains("another one with the same tree"),
        "{}",
        told.text
    );
    let (head, baseline) = (
        say(&["rev-parse", "candidate"]),
        say(&["rev-parse", "candidate^"]),
    );
    let main = say(&["rev-parse", "main"]);
    for (more, code) in [
        (["--head", &head], 0),
        (["--baseline", &baseline], 0),
        (["--head", &undoing], 11),
        (["--baseline", &main], 11),
        (["--baseline", "main"], 2),
    ] {
        let run = verify(&environment, &key, "candidate", &more);
        assert_eq!(run.code, code, "{more:?} {}", run.text);
        assert!(!run.text.contains("same tree"));
        if code == 11 {
            let which = more[0].trim_start_matches("--").replace("head", "commit");
            let told = format!("SUBJECT_MISMATCH: the {which} differs: ");
            assert!(run.text.contains(&told), "{}", run.text);
        }
    }
}

#[test]
fn a_subject_that_is_nothing_or_no_snapshot_is_a_usage_error() {
    let environment = certified();
    let key = environment.public_key();
    let run = verify(&environment, &key, "no-such-thing", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"importer/UNKNOWN_REVISION","stage":"verify","detail":"no-such-thing","hint":"check the spelling and that the commit was fetched"}
    "#);
    let directory = exported(&environment);
    std::os::unix::fs::symlink("/etc/passwd", environment.path("export/link")).unwrap();
    let run = verify(&environment, &key, &directory, &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/SUBJECT_UNREADABLE","stage":"verify","detail":"archive/SYMLINK_REFUSED: \"link\"","hint":"give an exported tree (git archive REV | tar -x -C DIR) or a revision with --repo DIR"}
    "#);
}

#[test]
fn the_signature_of_another_key_is_refused() {
    let environment = certified();
    environment.flights(&["key", "new", "--no-passphrase", "--out", "other"]);
    let key = environment.path("work/other.pub");
    let run = verify(
        &environment,
        key.to_str().unwrap(),
        "candidate",
        &["--format", "json"],
    );
    assert_snapshot!(run.text, @r#"
    exit 11
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"certifier/SIGNATURE_INVALID","stage":"verify","detail":"none of 1 signature is by one of 1 trusted key","hint":"check that the right public key was given and that the file is unchanged"}
    "#);
}

#[test]
fn a_tampered_certificate_is_refused_wherever_it_is_touched() {
    let environment = certified();
    let key = environment.public_key();
    let file = environment.path("out/certificate.dsse.json");
    let whole = fs::read(&file).unwrap();
    let places = (0..whole.len()).step_by(whole.len() / 24);
    for place in places {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x01;
        fs::write(&file, &bytes).unwrap();
        let run = verify(&environment, &key, "candidate", &[]);
        assert!(
            [10, 11, 22].contains(&run.code),
            "byte {place}: {}",
            run.text
        );
        assert!(
            run.stdout.starts_with("REFUSED at verify: "),
            "{}",
            run.text
        );
    }
    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    assert_ne!(verify(&environment, &key, "candidate", &[]).code, 0);
}

#[test]
fn a_policy_refuses_what_it_does_not_allow() {
    let environment = certified();
    let key = environment.public_key();
    environment.write(
        "policy.json",
        &POLICY.replace("\"allow\"", "\"repository\":\"another\",\"allow\""),
    );
    let run = verify(&environment, &key, "candidate", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 13
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"certifier/REPOSITORY_MISMATCH","stage":"verify","detail":"repo","hint":"use the policy of that repository"}
    "#);
    environment.write(
        "policy.json",
        &POLICY.replace("[\"lineage\"", "[\"no-gate\""),
    );
    let run = verify(&environment, &key, "candidate", &[]);
    assert_snapshot!(run.text, @r#"
    exit 20
    --- stdout
    REFUSED at verify: certifier/POLICY_INVALID: $TREE/policy.json: no gate is called "no-gate"
      hint: compare the file with the policy schema in docs/formats.md
    "#);
}

#[test]
fn files_and_keys_that_are_not_there_are_usage_errors() {
    let environment = certified();
    let key = environment.public_key();
    fs::remove_file(environment.path("policy.json")).unwrap();
    let run = verify(&environment, &key, "candidate", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/FILE_UNREADABLE","stage":"verify","detail":"$TREE/policy.json: No such file or directory (os error 2)","hint":"check the path"}
    "#);
    let run = verify(&environment, "no.pub", "candidate", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/FILE_UNREADABLE","stage":"verify","detail":"no.pub: No such file or directory (os error 2)","hint":"check the path"}
    "#);
}
