//! What the documents tell people to do is done here: the tutorial, the hook, the workflow.

use crate::environment::{Environment, workspace};
use std::fs;
use std::process::{Command, Output};

/// A shell with `flights` on its path, in the environment's work folder.
fn shell(environment: &Environment, script: &str) -> Output {
    // The pinned variables of the program, with its folder before the system's on the path.
    let template = environment.command(&[]);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_flights"));
    let mut shell = Command::new("bash");
    shell
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(environment.path("work"))
        .env_clear();
    for (name, value) in template.get_envs() {
        let Some(value) = value else { continue };
        match name == "PATH" {
            true => {
                let mut path = program.parent().unwrap().as_os_str().to_owned();
                path.push(":");
                path.push(value);
                shell.env(name, path)
            }
            false => shell.env(name, value),
        };
    }
    shell.output().unwrap()
}

fn assert_done(output: &Output) {
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The blocks of shell commands of a document, in order.
fn commands(document: &str) -> String {
    let text = fs::read_to_string(workspace().join(document)).unwrap();
    let blocks: Vec<&str> = text
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() > 5, "{document}");
    blocks.join("\n")
}

#[test]
fn the_tutorial_leads_from_an_empty_directory_to_an_admitted_commit() {
    let environment = Environment::new();
    let output = shell(&environment, &commands("docs/tutorial.md"));
    assert_done(&output);
    let said = String::from_utf8(output.stdout).unwrap();
    for word in [
        "REFUSED at mutation: certifier/MUTANTS_SURVIVED",
        "HELD: ",
        "ADMITTED: main moved",
        "ACCEPTED: commit ",
    ] {
        assert!(said.contains(word), "{word}\n{said}");
    }
    let page = fs::read_to_string(environment.path("work/report.html")).unwrap();
    assert!(page.contains("The signature was verified with the key below."));
}

#[test]
fn the_hook_lets_certified_commits_in_and_no_others() {
    let environment = Environment::with_pricing();
    let certified = environment.certify("candidate", &[]);
    assert_eq!(certified.code, 0, "{}", certified.text);
    environment.candidate_edit("other", |text| text.replace("300", "301"));
    let hook = workspace().join("docs/ci/pre-receive");
    let script = format!(
        r#"
repo=../repo
git clone -q --bare "$repo" bare.git
git -C bare.git update-ref refs/heads/main "$(git -C "$repo" rev-parse main)"
place=bare.git/flightproof
mkdir -p "$place/certificates"
cp "{key}" "$place/key.pub"
echo '{{"schema": "flightproof/policy/1", "threshold": 1, "required_gates": ["correctness", "mutation"]}}' > "$place/policy.json"
cp {hook} bare.git/hooks/pre-receive
good=$(git -C "$repo" rev-parse candidate)
other=$(git -C "$repo" rev-parse other)
push() {{ git -C "$repo" push -q "$PWD/bare.git" "$1"; }}
! push "$good:refs/heads/main"                       # nobody brought a certificate
cp ../out/certificate.dsse.json "$place/certificates/$good.dsse.json"
cp ../out/certificate.dsse.json "$place/certificates/$other.dsse.json"
! push "$other:refs/heads/main"                      # a certificate of another tree
push "$other:refs/heads/topic"                       # not protected
# The certified tree on top of another commit: it takes back what that one did.
git -C "$repo" config user.name A; git -C "$repo" config user.email a@b.c
undoing=$(git -C "$repo" commit-tree "$good^{{tree}}" -p "$other" -m "Undo")
cp ../out/certificate.dsse.json "$place/certificates/$undoing.dsse.json"
git -C bare.git update-ref refs/heads/main "$other"
! push "$undoing:refs/heads/main"
! push "+$good:refs/heads/main"                      # it would drop what the branch holds
test "$(git -C bare.git rev-parse main)" = "$other"
git -C bare.git update-ref refs/heads/main "$(git -C "$repo" rev-parse main)"
push "$good:refs/heads/main"
! push ":refs/heads/main"
test "$(git -C bare.git rev-parse main)" = "$good"
"#,
        key = environment.public_key(),
        hook = hook.display(),
    );
    let output = shell(&environment, &script);
    assert_done(&output);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for word in [
        "no certificate for",
        "certifier/SUBJECT_MISMATCH",
        "and it was made for",
        "is not deleted",
    ] {
        assert!(said.contains(word), "{word}\n{said}");
    }
}

/// The `run:` blocks of a workflow, in order.
fn steps(workflow: &str) -> Vec<String> {
    let text = fs::read_to_string(workspace().join(workflow)).unwrap();
    let mut blocks = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() != "run: |" {
            continue;
        }
        let indent = line.len() - line.trim_start().len() + 2;
        let mut block = String::new();
        while let Some(inner) = lines.next_if(|l| l.len() > indent && l[..indent].trim().is_empty())
        {
            block.push_str(&inner[indent..]);
            block.push('\n');
        }
        blocks.push(block);
    }
    blocks
}

#[test]
fn the_workflow_certifies_what_a_pull_request_brings() {
    let environment = Environment::with_pricing();
    // The pull request has two commits; the judge's repository has a plan, a recording and the witness.
    environment.git(&["branch", "-f", "pull", "candidate"]);
    environment.git(&["checkout", "--quiet", "pull"]);
    environment.git(&["commit", "--quiet", "--allow-empty", "-m", "Second"]);
    environment.git(&["checkout", "--quiet", "main"]);
    // The base has moved: what came in since must not be taken back.
    fs::write(environment.path("repo/SECURITY.md"), "Tell us.\n").unwrap();
    environment.git(&["add", "SECURITY.md"]);
    environment.git(&["commit", "--quiet", "-m", "How to tell us"]);
    let from = workspace();
    let judge = environment.path("work/judge");
    fs::create_dir_all(judge.join("flights/witness")).unwrap();
    fs::copy(
        from.join("flights/witness/pricing.json"),
        judge.join("flights/witness/main.json"),
    )
    .unwrap();
    fs::write(
        judge.join("policy.json"),
        r#"{"schema":"flightproof/policy/1","threshold":1,"repository":"team/pricing","required_gates":["correctness","mutation"]}"#,
    )
    .unwrap();
    let key = environment.state().join("keys/flightproof.pem.pub");
    fs::copy(key, judge.join("key.pub")).unwrap();
    let steps = steps("docs/ci/flightproof.yml");
    assert_eq!(steps.len(), 4, "{steps:?}");
    let (base, head) = (
        environment.git(&["rev-parse", "main"]),
        environment.git(&["rev-parse", "pull"]),
    );
    let script = format!(
        "git clone -q ../repo candidate\nexport GITHUB_REPOSITORY=team/pricing BASE={base} HEAD={head} WITNESS=judge/flights/witness/main.json\n{}",
        steps.join("\n")
    );
    let output = shell(&environment, &script);
    assert_done(&output);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("HELD: "), "{said}");
    assert!(said.contains("ACCEPTED: "), "{said}");
    let candidate = environment.path("work/candidate");
    let kept = ["show", "flightproof-candidate:SECURITY.md"];
    let kept = Command::new("git")
        .arg("-C")
        .arg(candidate)
        .args(kept)
        .output();
    assert_eq!(kept.unwrap().stdout, b"Tell us.\n");
    assert!(environment.path("work/report.html").exists());
    assert!(
        environment
            .path("work/flight/certificate.dsse.json")
            .exists()
    );
}
