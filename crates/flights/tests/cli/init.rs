//! `flights init`: what a first flight needs, written by looking.

use crate::environment::{Environment, workspace};
use insta::assert_snapshot;
use std::fs;

#[test]
fn what_is_written_flies_once_its_owner_has_filled_it_in_and_not_before() {
    let environment = Environment::with_pricing();
    let repo = environment.path("repo");
    let before = environment.listing("repo");
    let run = environment.flights(&["init", "--repo", repo.to_str().unwrap()]);
    assert_snapshot!(run.text, @"
    exit 0
    --- stdout
    looked at  $TREE/repo: 1 package, 1 program, 0 libraries, Cargo.lock
    judged     the program pricing
    wrote      $TREE/repo-flights/flights/repo.toml
    wrote      $TREE/repo-flights/flights/witness/repo.json
    wrote      $TREE/repo-flights/policy.json
    next       1. replace every REPLACE in $TREE/repo-flights/flights/witness by what must come out
               2. flights key new, and its id under keys in $TREE/repo-flights/policy.json if it is not there
               3. name the candidate in the plan, and check its baseline, then: flights run --local --root $TREE/repo-flights --out DIR
               4. to keep the flight, write ids in place of branches (git rev-parse BRANCH), then add --record
               5. flights review and flights admit, with that policy, or flights certify --admit BRANCH
    ");
    assert_eq!(environment.listing("repo"), before);
    let written = environment.listing("repo-flights");
    let text = |name: &str| String::from_utf8(written[name].clone()).unwrap();
    assert_snapshot!(text("flights/repo.toml"), @r#"
    schema = "flightproof/plan/1"
    name = "repo"
    about = "One commit of repo, certified."

    # Two commits, by branch, tag or id. The candidate is one commit directly on the baseline. Once it is let in, the
    # branch is another commit: to fly this again, or to record it, write ids (git rev-parse BRANCH).
    [source]
    git = { repository = "../repo", baseline = "main", candidate = "candidate" }

    # Without grants a candidate may change everything but the protected files. With them, these alone.
    [change]
    # grants = ["src"]
    # identity = "Agent <agent@example.org>"

    [witness]
    file = "flights/witness/repo.json"

    [expect]
    verdict = "held"
    "#);
    assert_snapshot!(text("flights/witness/repo.json"), @r#"
    {
      "schema": "flightproof/witness/1",
      "bin": "pricing",
      "cases": [
        {"id": "first", "args": [], "stdin": "", "expect": {"exit": 0, "stdout": "REPLACE: what it must print\n"}},
        {"id": "second", "args": [], "stdin": "", "expect": {"exit": 0, "stdout": "REPLACE: what it must print for another input\n"}}
      ],
      "waivers": []
    }
    "#);
    let policy: serde_json::Value = serde_json::from_str(&text("policy.json")).unwrap();
    let own = environment
        .flights(&["key", "list", "--format", "json"])
        .json();
    assert_eq!(
        policy,
        serde_json::json!({
            "schema": "flightproof/policy/1",
            "keys": [own["keys"][0]["keyid"]],
            "threshold": 1,
            "required_gates": ["correctness", "mutation", "determinism"],
        })
    );

    let root = environment.path("repo-flights");
    let fly = || environment.flights(&["run", "--local", "--root", root.to_str().unwrap()]);
    let run = fly();
    assert_eq!(run.code, 20, "{}", run.text);
    let unfilled = "witness/repo.json: case first, case second still have REPLACE";
    assert!(
        run.text.contains("flights/WITNESS_UNFILLED"),
        "{}",
        run.text
    );
    assert!(run.text.contains(unfilled), "{}", run.text);
    // Before anything flies, and whichever command it is.
    assert!(!run.text.contains("sealed"), "{}", run.text);
    let witness = root.join("flights/witness/repo.json");
    let check = environment.flights(&["witness", "check", witness.to_str().unwrap()]);
    assert_eq!(check.code, 20, "{}", check.text);
    assert!(check.text.contains(unfilled), "{}", check.text);
    let half = fs::read_to_string(&witness).unwrap();
    let half = half.replacen("REPLACE: what it must print\\n", "550\\n", 1);
    fs::write(&witness, half).unwrap();
    let certify = ["--witness", witness.to_str().unwrap()];
    let run = environment.certify("candidate", &certify);
    assert_eq!(run.code, 20, "{}", run.text);
    assert!(
        run.text.contains(": case second still has REPLACE"),
        "{}",
        run.text
    );

    let witness = workspace().join("flights/witness/pricing.json");
    fs::copy(witness, root.join("flights/witness/repo.json")).unwrap();
    let run = fly();
    assert_eq!(run.code, 0, "{}", run.text);
}

#[test]
fn nothing_is_replaced_and_no_witness_lies_where_the_candidate_is_made() {
    let environment = Environment::new();
    environment.write("repo/Cargo.toml", "[package]\nname = \"one\"\n");
    environment.write("repo/src/main.rs", "fn main() {}\n");
    let repo = environment.path("repo");
    let repo = repo.to_str().unwrap();
    let init = |output: &str| environment.flights(&["init", "--repo", repo, "-o", output]);
    let inside = format!("{repo}/flights");
    assert_snapshot!(init(&inside).text, @"
    exit 2
    --- stdout
    REFUSED at init: flights/OUTPUT_UNWRITABLE: $TREE/repo/flights: it lies in the repository, where whoever makes the candidate would read the witness
      hint: name a new path in a directory that exists and may be written to
    ");
    // A link does not lead there either.
    std::os::unix::fs::symlink(repo, environment.path("work/link")).unwrap();
    let run = init("link/flights");
    assert_eq!(run.code, 2, "{}", run.text);
    environment.write("work/there/mine", "mine");
    assert_snapshot!(init("there").text, @"
    exit 2
    --- stdout
    REFUSED at init: flights/OUTPUT_UNWRITABLE: there: it exists, and nothing is replaced
      hint: name a new path in a directory that exists and may be written to
    ");
    assert_eq!(init("new").code, 0);
    let again = init("new");
    assert_eq!(again.code, 2, "{}", again.text);
    assert_eq!(environment.listing("repo").len(), 3);
    assert_eq!(environment.listing("work/there").len(), 1);
}

#[test]
fn a_workspace_says_what_there_is_to_choose_from() {
    let environment = Environment::new();
    environment.write(
        "repo/Cargo.toml",
        "[workspace]\nmembers = [\"crates/*\", \"../outside\"]\n",
    );
    for (name, files) in [
        ("alpha", ["src/main.rs", "build.rs"]),
        ("beta", ["src/lib.rs", "src/bin/tool.rs"]),
        ("gamma-ray", ["src/lib.rs", "README.md"]),
    ] {
        environment.write(
            &format!("repo/crates/{name}/Cargo.toml"),
            &format!("[package]\nname = \"{name}\"\n"),
        );
        for file in files {
            environment.write(&format!("repo/crates/{name}/{file}"), "");
        }
    }
    environment.write("outside/Cargo.toml", "[package]\nname = \"outside\"\n");
    environment.write("outside/src/main.rs", "");
    let repo = environment.path("repo");
    let init = |more: &[&str]| {
        let args = ["init", "--repo", repo.to_str().unwrap()];
        environment.flights(&[&args, more].concat())
    };
    assert_snapshot!(init(&[]).text, @"
    exit 2
    --- stdout
    REFUSED at init: flights/TARGET_UNCLEAR: --bin alpha, tool; --lib beta, gamma-ray
      hint: name one of those listed with --bin NAME or --lib PACKAGE
    ");
    assert_snapshot!(init(&["--bin", "outside"]).text, @r#"
    exit 2
    --- stdout
    REFUSED at init: flights/TARGET_UNCLEAR: there is no "outside": --bin alpha, tool; --lib beta, gamma-ray
      hint: name one of those listed with --bin NAME or --lib PACKAGE
    "#);
    assert_snapshot!(init(&["--lib", "gamma-ray"]).text, @r#"
    exit 0
    --- stdout
    looked at  $TREE/repo: 3 packages, 2 programs, 2 libraries, no Cargo.lock
    judged     the library of gamma-ray, through a driver
    wrote      $TREE/repo-flights/flights/repo.toml
    wrote      $TREE/repo-flights/flights/witness/repo.json
    wrote      $TREE/repo-flights/policy.json
    wrote      $TREE/repo-flights/flights/witness/repo.rs
    note       alpha has a build script: certificates need `"build_scripts": true` under `allow` in the policy
    note       there is no Cargo.lock: make one with `cargo generate-lockfile` and name it in the plan as change.lock
    note       there is no .git: candidate and baseline are commits
    next       1. replace every REPLACE in $TREE/repo-flights/flights/witness by what must come out
               2. flights key new, and its id under keys in $TREE/repo-flights/policy.json if it is not there
               3. name the candidate in the plan, and check its baseline, then: flights run --local --root $TREE/repo-flights --out DIR
               4. to keep the flight, write ids in place of branches (git rev-parse BRANCH), then add --record
               5. flights review and flights admit, with that policy, or flights certify --admit BRANCH
    "#);
    let written = environment.listing("repo-flights");
    let text = |name: &str| String::from_utf8(written[name].clone()).unwrap();
    assert_snapshot!(text("flights/witness/repo.json"), @r#"
    {
      "schema": "flightproof/witness/1",
      "driver": "repo.rs",
      "package": "gamma-ray",
      "cases": [
        {"id": "first", "args": [], "stdin": "", "expect": {"exit": 0, "stdout": "REPLACE: what it must print\n"}},
        {"id": "second", "args": [], "stdin": "", "expect": {"exit": 0, "stdout": "REPLACE: what it must print for another input\n"}}
      ],
      "waivers": []
    }
    "#);
    assert_snapshot!(text("flights/witness/repo.rs"), @r#"
    //! Reads one case from standard input, asks the library, prints one answer.

    use std::io::Read;

    fn main() {
        let mut input = String::new();
        std::io::stdin().read_to_string(&mut input).expect("cases are text");
        // REPLACE: call the library with the case, such as gamma_ray::answer(input.trim()).
        let answer: String = todo!("the answer of gamma_ray");
        println!("{answer}");
    }
    "#);
    let witness = environment.path("repo-flights/flights/witness/repo.json");
    fs::write(
        &witness,
        text("flights/witness/repo.json").replace("REPLACE: ", ""),
    )
    .unwrap();
    let check = environment.flights(&["witness", "check", witness.to_str().unwrap()]);
    let told = "witness/repo.rs: the comment in line 8 still has REPLACE";
    assert!(check.text.contains(told), "{}", check.text);
    let run = init(&["--bin", "tool", "-o", "second", "--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
    {"branch":null,"language":"rust","libraries":["beta","gamma-ray"],"notes":["alpha has a build script: certificates need `\"build_scripts\": true` under `allow` in the policy","there is no Cargo.lock: make one with `cargo generate-lockfile` and name it in the plan as change.lock","there is no .git: candidate and baseline are commits"],"packages":3,"programs":["alpha","tool"],"schema":"flightproof/init/1","target":{"kind":"bin","name":"tool"},"written":["$TREE/work/second/flights/repo.toml","$TREE/work/second/flights/witness/repo.json","$TREE/work/second/policy.json"]}
    "#);
}

#[test]
fn what_a_manifest_says_is_never_more_than_a_name() {
    let environment = Environment::new();
    let repo = environment.path("repo");
    let init = || environment.flights(&["init", "--repo", repo.to_str().unwrap()]);
    environment.write("repo/README", "");
    assert_snapshot!(init().text, @r#"
    exit 2
    --- stdout
    REFUSED at init: flights/NOTHING_TO_INIT: $TREE/repo has no Cargo.toml; for Python, C, Go, JavaScript or TypeScript write the witness by hand (docs/howto.md)
      hint: name the top of a repository with a Cargo.toml that has a program or a library, with --repo DIR; for a program in another language write a witness by hand that names it ("language": "python")
    "#);
    // An escape sequence, a quote that would end the plan's string, and a path are no names.
    for name in ["\\u001b[2J", "a\\\"b", "../../x", ""] {
        environment.write(
            "repo/Cargo.toml",
            &format!("[package]\nname = \"{name}\"\n"),
        );
        environment.write("repo/src/main.rs", "");
        let run = init();
        assert_eq!(run.code, 2, "{}", run.text);
        assert!(run.text.contains("flights/NOTHING_TO_INIT"), "{}", run.text);
    }
    for manifest in ["[package", &"[".repeat(100_000), &"#".repeat(2 << 20)] {
        environment.write("repo/Cargo.toml", manifest);
        let run = init();
        assert_eq!(run.code, 2, "{}", run.text);
        assert!(run.text.contains("flights/FILE_UNREADABLE"), "{}", run.text);
    }
    assert!(!environment.path("repo-flights").exists());
    // Its twin with a name is fine.
    environment.write("repo/Cargo.toml", "[package]\nname = \"fine\"\n");
    assert_eq!(init().code, 0);
}
