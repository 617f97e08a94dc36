//! `flights mutate`: what tests and witnesses do not notice.

use crate::environment::{Environment, Run, copy, workspace};
use insta::assert_snapshot;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn with_surveyed() -> Environment {
    let environment = Environment::new();
    environment.share_cache();
    copy(
        &workspace().join("fixtures/surveyed"),
        &environment.path("repo"),
    );
    environment
}

fn mutate(environment: &Environment, more: &[&str]) -> Run {
    let repo = environment.path("repo");
    let mut args = vec!["mutate", "--repo", repo.to_str().unwrap()];
    args.extend(more);
    environment.flights(&args)
}

/// Status of each mutant by its id.
fn statuses(report: &Value) -> BTreeMap<&str, &str> {
    let mutants = report["mutants"].as_array().unwrap().iter();
    mutants
        .map(|m| (m["id"].as_str().unwrap(), m["status"].as_str().unwrap()))
        .collect()
}

fn ids(run: &Run) -> BTreeSet<String> {
    assert_eq!(run.code, 0, "{}", run.text);
    run.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn holes_of_a_test_suite_are_found_and_nothing_else() {
    let environment = with_surveyed();
    let run = mutate(
        &environment,
        &["--oracle", "tests", "--jobs", "2", "--format", "json"],
    );
    assert_eq!(run.code, 10, "{}", run.text);
    let report = run.json();
    assert_eq!(report["schema"], "flightproof/mutate/1");
    let statuses = statuses(&report);
    let with = |status: &str| -> Vec<&str> {
        let found = statuses.iter().filter(|(_, s)| **s == status);
        found.map(|(id, _)| *id).collect()
    };
    // Two equal numbers would tell this one; no input tells the other.
    assert_eq!(with("survived"), ["src/lib.rs:5:10 relational > -> >="]);
    assert!(
        with("unreached")
            .iter()
            .all(|id| id.contains(":20:") || id.contains(":19:"))
    );
    assert_eq!(with("unreached").len(), 8);
    // A loop that never ends has run out of fuel.
    assert!(with("timeout").contains(&"src/lib.rs:11:11 condition number >= 10 -> true"));
    assert!(
        with("killed")
            .iter()
            .any(|id| id.contains("function-value greeting"))
    );
    assert_eq!(with("not-run"), [""; 0]);
    let counts = &report["counts"];
    let sum: u64 = [
        "killed",
        "timeouts",
        "survived",
        "unreached",
        "not_run",
        "unviable",
    ]
    .map(|name| counts[name].as_u64().unwrap())
    .iter()
    .sum();
    assert_eq!(Some(sum), counts["mutants"].as_u64());
    let left_out: Vec<&str> = report["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        left_out,
        [
            "tests::it_fails_whatever_is_mutated",
            "tests::it_is_ignored",
            "tests::it_starts_another_program"
        ]
    );
    // Unit tests, and integration tests that read files of their package.
    assert_eq!(report["checks"], 4);
    assert_eq!(environment.listing("tmp").len(), 0);
}

#[test]
fn only_changed_lines_are_mutated_and_survivors_stand_in_a_table() {
    let environment = with_surveyed();
    environment.git(&["init", "--quiet", "-b", "main"]);
    environment.git(&["add", "--all"]);
    environment.git(&["commit", "--quiet", "-m", "Baseline"]);
    let unchanged = mutate(&environment, &["--oracle", "tests", "--in-diff", "main"]);
    assert_eq!(unchanged.code, 0, "{}", unchanged.text);
    assert_eq!(unchanged.stdout, "no line of code is to be mutated\n");
    let file = environment.path("repo/src/lib.rs");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("x < 7", "x < 8")).unwrap();
    let run = mutate(&environment, &["--oracle", "tests", "--in-diff", "main"]);
    assert_snapshot!(run.text, @r#"
    exit 10
    --- stdout
    src/lib.rs: 8 reached by nothing
      forgotten: 8 reached by nothing
        src/lib.rs:19:8  function-value   forgotten -> true  (nothing reaches it)
        src/lib.rs:19:8  function-value   forgotten -> false  (nothing reaches it)
        src/lib.rs:20:7  relational       < -> <=  (nothing reaches it)
        src/lib.rs:20:7  relational       < -> >=  (nothing reaches it)
        src/lib.rs:20:9  integer-literal  8 -> 0  (nothing reaches it)
        src/lib.rs:20:9  integer-literal  8 -> 1  (nothing reaches it)
        src/lib.rs:20:9  integer-literal  8 -> 9  (nothing reaches it)
        src/lib.rs:20:9  integer-literal  8 -> 7  (nothing reaches it)
    4 tests judged, 3 could not; documentation tests are not run
      left out: lib tests::it_fails_whatever_is_mutated: it fails in the session: assertion `left == right` failed: no such number
      left out: lib tests::it_is_ignored: it is ignored
      left out: lib tests::it_starts_another_program: it fails in the session: called `Result::unwrap()` on an `Err` value: Os { code: 13, kind: PermissionDenied, message: "Permission denied" }
    8 mutants: 0 killed, 0 timed out, 0 survived, 8 reached by nothing; 8 not noticed, in 1 function of 1 file
    REFUSED at mutation: certifier/MUTANTS_SURVIVED: 8 of them, such as src/lib.rs:19:8 function-value forgotten -> true
      hint: write a test that notices the change, or remove code that no test needs
    --- stderr
      read        8 mutants of 1 file  (_.__ s)
      open        sealed local session  (_.__ s)
      build       8 mutants in one program, 0 do not compile, 1 build  (_.__ s)
      baseline    4 of 7 tests pass without a mutant  (_.__ s)
      mutants     8 mutants: 0 killed, 0 timed out, 0 survived, 8 reached by nothing  (_.__ s)
    "#);
    let more = ["--oracle", "tests", "--in-diff", "main", "--format"];
    let github = mutate(&environment, &[&more[..], &["github"]].concat());
    assert_eq!(github.code, 10, "{}", github.text);
    assert_eq!(github.stdout.lines().count(), 9);
    let first = "::error file=src/lib.rs,line=19,col=8,title=mutant unreached%3A function-value::forgotten -> true in forgotten: nothing reaches it\n";
    assert!(github.stdout.starts_with(first), "{}", github.text);
    assert_eq!(github.stderr, "");
    let sarif = mutate(&environment, &[&more[..], &["sarif"]].concat()).json();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 8);
    assert_eq!(results[0]["ruleId"], "certifier/MUTANTS_SURVIVED");
    // Mutants that nobody tried are no findings.
    let listed = mutate(&environment, &["--list", "--format", "sarif"]);
    assert_eq!(listed.json()["code"], "flights/FORMAT_UNSUPPORTED");
}

/// A certificate would be refused for them, whatever notices the mutants.
#[test]
fn changed_places_that_no_mutant_can_judge_are_told_of_a_change_and_of_no_tree() {
    let environment = Environment::with_pricing();
    environment.git(&["switch", "--quiet", "--detach", "candidate"]);
    let file = environment.path("repo/src/main.rs");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        format!("{text}\npub const NEVER_READ: [u8; 2] = [1, 2];\n"),
    )
    .unwrap();
    let witness = workspace().join("flights/witness/pricing.json");
    let witness = witness.to_str().unwrap();
    let line = text.lines().count() + 2;
    let place = format!("src/main.rs:{line} unjudged const-context");
    let run = mutate(&environment, &["--witness", witness, "--in-diff", "main"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let said = format!(
        "1 changed place that no mutant can judge: `certify` refuses each (UNJUDGED_CODE) unless the witness \
         waives it\n  unjudged: {place}\n"
    );
    assert!(run.stdout.contains(&said), "{}", run.text);
    let json = ["--witness", witness, "--format", "json"];
    let changed = mutate(&environment, &[&json[..], &["--in-diff", "main"]].concat());
    assert_eq!(changed.json()["unjudged"], serde_json::json!([place]));
    let whole = mutate(&environment, &json);
    assert!(whole.json().get("unjudged").is_none(), "{}", whole.text);
    let repo = environment.path("repo");
    let check = [
        "witness",
        "check",
        witness,
        "--repo",
        repo.to_str().unwrap(),
    ];
    let check = environment.flights(&[&check[..], &["--in-diff", "main"]].concat());
    assert!(check.stdout.contains(&said), "{}", check.text);
}

/// There are mutants of other languages, but only of a change and by its witness.
#[test]
fn a_tree_without_rust_is_said_to_be_one() {
    let environment = Environment::new();
    environment.write("repo/main.py", "print(1)\n");
    let run = mutate(&environment, &["--oracle", "tests"]);
    assert_eq!(run.code, 2, "{}", run.text);
    let said = "flights/SCOPE_EMPTY: no package of Rust in the tree, and this mutates Rust alone";
    assert!(run.text.contains(said), "{}", run.text);
}

/// As git finds a repository, and cargo a package.
#[test]
fn repository_and_package_are_those_that_the_current_directory_lies_in() {
    let environment = Environment::new();
    let package = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\n");
    environment.write("repo/Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n");
    for name in ["one", "two"] {
        let folder = format!("repo/crates/{name}");
        environment.write(&format!("{folder}/Cargo.toml"), &package(name));
        let text = "pub fn f(n: u8) -> bool {\n    n > 1\n}\n";
        environment.write(&format!("{folder}/src/lib.rs"), text);
        environment.write(&format!("{folder}/src/inner/mod.rs"), "");
    }
    let from = |folder: &str, more: &[&str]| {
        let mut command = environment.command(&[&["mutate", "--list"], more].concat());
        command.current_dir(environment.path(folder));
        environment.run(&mut command)
    };
    let files = |run: Run| -> BTreeSet<String> {
        let places = ids(&run).into_iter();
        places
            .map(|id| id.split(':').next().unwrap().to_owned())
            .collect()
    };
    let one = BTreeSet::from(["crates/one/src/lib.rs".to_owned()]);
    let two = BTreeSet::from(["crates/two/src/lib.rs".to_owned()]);
    // A package is enough; with a repository all of it is taken, and paths are those of its top.
    let alone = BTreeSet::from(["src/lib.rs".to_owned()]);
    assert_eq!(files(from("repo/crates/two/src", &[])), alone);
    environment.git(&["init", "--quiet", "-b", "main"]);
    assert_eq!(files(from("repo/crates/two/src/inner", &[])), two);
    assert_eq!(
        files(from("repo/crates/one", &["--file", "src/lib.rs"])),
        one
    );
    assert_eq!(files(from("repo/crates/one", &["--package", "two"])), two);
    let top = from("repo", &[]);
    assert_eq!(top.code, 2, "{}", top.text);
    assert!(top.stdout.contains("no package at the top"), "{}", top.text);
    let misspelt = from("repo/crates/one", &["--file", "src/lip.rs"]);
    let told = "is asked for; did you mean crates/one/src/lib.rs";
    assert!(misspelt.stdout.contains(told), "{}", misspelt.text);
    let nowhere = from("work", &[]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.text);
    assert!(
        nowhere.stdout.contains("importer/NOT_A_REPOSITORY"),
        "{}",
        nowhere.text
    );
}

#[test]
fn a_witness_is_surveyed_like_tests() {
    let environment = Environment::with_pricing();
    environment.git(&["checkout", "--quiet", "candidate"]);
    let witness = workspace().join("flights/witness/pricing.json");
    let run = mutate(
        &environment,
        &[
            "--witness",
            witness.to_str().unwrap(),
            "--in-diff",
            "main",
            "--format",
            "json",
        ],
    );
    assert_eq!(run.code, 0, "{}", run.text);
    let report = run.json();
    assert_eq!(report["oracle"], "witness");
    let killed = report["counts"]["killed"].as_u64().unwrap();
    assert!(killed > 10, "{}", run.text);
    assert!(
        report["mutants"]
            .as_array()
            .unwrap()
            .iter()
            .any(|m| !m["by"].is_null())
    );
    // On the baseline some cases fail, and nothing that only they reach has a judge.
    environment.git(&["checkout", "--quiet", "main"]);
    let run = mutate(&environment, &["--witness", witness.to_str().unwrap()]);
    let told = " of 9 cases judged; the others fail on this tree and were asked of no mutant";
    for told in [told, "\n  left out: "] {
        assert!(run.stdout.contains(told), "{told}\n{}", run.text);
    }
    assert!(!run.stdout.contains("waivers"), "{}", run.text);
}

/// A target whose tests only start the program holds no mutant. It is named, not passed over.
#[test]
fn tests_that_only_start_the_program_are_left_out_by_name() {
    let environment = with_surveyed();
    environment.write(
        "repo/src/main.rs",
        "fn main() {\n    println!(\"{}\", 1 + 1);\n}\n",
    );
    environment.write(
        "repo/tests/starts.rs",
        "#[test]\nfn it_says_two() {\n    let program = env!(\"CARGO_BIN_EXE_surveyed\");\n    let out = std::process::Command::new(program).output().unwrap();\n    assert_eq!(out.stdout, b\"2\\n\");\n}\n",
    );
    let run = mutate(&environment, &["--oracle", "tests", "--format", "json"]);
    assert_eq!(run.code, 10, "{}", run.text);
    let report = run.json();
    let left_out = report["left_out"].as_array().unwrap();
    let starts = left_out
        .iter()
        .find(|l| l["target"].as_str().unwrap().contains("starts"));
    let starts = starts.unwrap_or_else(|| panic!("{left_out:?}"));
    assert_eq!(starts["name"], "*");
    assert!(
        starts["why"]
            .as_str()
            .unwrap()
            .starts_with("1 of its tests start the program")
    );
}

/// It is no fault of the mutants.
#[test]
fn a_tree_that_does_not_compile_is_said_to_be_one() {
    let environment = with_surveyed();
    environment.write(
        "repo/src/lib.rs",
        "pub fn f() -> u8 {\n    undefined_name\n}\n",
    );
    let run = mutate(&environment, &["--oracle", "tests"]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(
        run.stdout.contains("certifier/BUILD_FAILED"),
        "{}",
        run.text
    );
    assert!(run.stdout.contains("undefined_name"), "{}", run.text);
}

/// Without a mutant nothing is in the program but itself.
#[test]
fn a_witness_is_tried_where_no_line_is_to_be_mutated() {
    let environment = Environment::with_pricing();
    environment.git(&["checkout", "--quiet", "candidate"]);
    let witness = workspace().join("flights/witness/pricing.json");
    let repo = environment.path("repo");
    let args = [
        "witness",
        "check",
        witness.to_str().unwrap(),
        "--repo",
        repo.to_str().unwrap(),
    ];
    let run = environment.flights(&[&args[..], &["--in-diff", "candidate"]].concat());
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(!run.text.contains("before main"), "{}", run.text);
    assert!(!run.text.contains("fails here"), "{}", run.text);
}

#[test]
fn tests_that_all_fail_judge_nothing() {
    let environment = with_surveyed();
    environment.write(
        "repo/src/lib.rs",
        "pub fn f() -> u8 {\n    1\n}\n#[test]\nfn t() {\n    assert_eq!(f(), 2);\n}\n",
    );
    std::fs::remove_file(environment.path("repo/tests/data.rs")).unwrap();
    let run = mutate(&environment, &["--oracle", "tests"]);
    assert_eq!(run.code, 4, "{}", run.text);
    assert!(
        run.stdout
            .contains("flights/NOTHING_JUDGES: 1 test; t: it fails in the session"),
        "{}",
        run.text
    );
}

#[test]
fn shares_of_the_list_are_disjoint_and_make_the_whole() {
    let environment = with_surveyed();
    let whole = ids(&mutate(&environment, &["--list"]));
    assert!(
        whole.contains("src/lib.rs:5:10 relational > -> >="),
        "{whole:?}"
    );
    let first = ids(&mutate(&environment, &["--list", "--shard", "1/2"]));
    let second = ids(&mutate(&environment, &["--list", "--shard", "2/2"]));
    assert!(first.is_disjoint(&second) && first.len() + second.len() == whole.len());
    assert_eq!(
        first.union(&second).cloned().collect::<BTreeSet<_>>(),
        whole
    );
    let json = mutate(&environment, &["--list", "--format", "json"]).json();
    assert_eq!(json["mutants"].as_array().unwrap().len(), whole.len());
}

#[test]
fn what_is_not_there_cannot_be_mutated() {
    let environment = with_surveyed();
    let list = |more: &[&str]| {
        let run = mutate(&environment, &[&["--list"], more].concat());
        (run.code, run.text)
    };
    let (code, text) = list(&["--package", "other"]);
    assert_eq!(code, 2);
    assert!(
        text.contains("flights/SCOPE_EMPTY: no package other; there are surveyed"),
        "{text}"
    );
    for scope in [["--file", "src/none.rs"], ["--file", "tests/data.rs"]] {
        let (code, text) = list(&scope);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("flights/SCOPE_EMPTY"), "{text}");
    }
    for wrong in [
        vec!["--shard", "3/2"],
        vec!["--file", "../x"],
        vec!["--jobs", "0"],
    ] {
        assert_eq!(list(&wrong).0, 2, "{wrong:?}");
    }
    // Something has to notice mutants, and one thing only.
    let run = mutate(&environment, &[]);
    assert_eq!(run.code, 2);
    assert!(
        run.text.contains("--oracle tests or --witness FILE"),
        "{}",
        run.text
    );
    assert_eq!(
        mutate(&environment, &["--oracle", "tests", "--witness", "w"]).code,
        2
    );
}

/// A crate of one library file.
struct Small(Environment);

impl Small {
    fn new(text: &str) -> Self {
        let environment = Environment::new();
        environment.share_cache();
        let package = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
        environment.write("repo/Cargo.toml", package);
        let lock = "version = 4\n\n[[package]]\nname = \"small\"\nversion = \"0.1.0\"\n";
        environment.write("repo/Cargo.lock", lock);
        environment.write("repo/src/lib.rs", text);
        Self(environment)
    }

    fn found(&self, more: &[&str]) -> BTreeMap<String, String> {
        let args = [&["--oracle", "tests", "--format", "json"], more].concat();
        let run = mutate(&self.0, &args);
        let report = run.json();
        let owned = statuses(&report).into_iter();
        let owned = owned.map(|(id, status)| (id.to_owned(), status.to_owned()));
        owned.collect()
    }
}

/// What one left in the place for scratch would make another look noticed or not: what it should have
/// written itself, and a lock that somebody takes away.
#[test]
fn what_a_mutant_leaves_behind_says_nothing_of_the_next() {
    let export = "pub fn export(path: &std::path::Path, n: u32) {\n    if n > 0 {\n        std::fs::write(path, format!(\"{n}\")).unwrap();\n    }\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn exported() {\n        let path = std::env::temp_dir().join(\"n\");\n        super::export(&path, 2);\n        assert_eq!(std::fs::read_to_string(path).unwrap(), \"2\");\n    }\n}\n";
    let lock = "pub fn share(n: u32) -> u32 {\n    let shares = [10, 20, 30];\n    let at = n as usize + 1;\n    let mut share = shares[at];\n    if n < 100 {\n        share = shares[at];\n    }\n    share\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn shared() {\n        let lock = std::env::temp_dir().join(\"lock\");\n        if lock.exists() {\n            std::fs::remove_file(&lock).unwrap();\n            panic!(\"a stale lock\");\n        }\n        std::fs::write(&lock, \"\").unwrap();\n        let share = super::share(1);\n        std::fs::remove_file(&lock).unwrap();\n        assert_eq!(share, 30);\n    }\n}\n";
    // What each says alone. The one that writes nothing would find what another wrote.
    let found = Small::new(export).found(&[]);
    let survived = found.iter().filter(|(_, status)| *status == "survived");
    let survived: Vec<&str> = survived.map(|(id, _)| id.as_str()).collect();
    let expected = [
        "src/lib.rs:2:10 relational > -> >=",
        "src/lib.rs:2:12 integer-literal 0 -> 1",
        "src/lib.rs:2:8 condition n > 0 -> true",
    ];
    assert_eq!(survived, expected);
    assert_eq!(found.len(), 8);
    // The one after one that dies would find its lock, and take it away.
    let found = Small::new(lock).found(&[]);
    assert_eq!(
        found["src/lib.rs:5:8 condition n < 100 -> true"],
        "survived"
    );
    assert!(found.values().any(|status| status == "killed") && found.len() > 15);
}

/// Code that runs before the guard is there is no reason to leave its program out.
#[test]
fn code_before_main_is_mutated_like_any_other() {
    let text = "use std::sync::atomic::{AtomicU32, Ordering};\nstatic READY: AtomicU32 = AtomicU32::new(0);\npub fn table(n: u32) -> u32 {\n    n + 41\n}\nextern \"C\" fn init() {\n    READY.store(table(1), Ordering::Relaxed);\n}\n#[used]\n#[link_section = \".init_array\"]\nstatic INIT: extern \"C\" fn() = init;\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn ready() {\n        assert_eq!(super::READY.load(super::Ordering::Relaxed), 42);\n        assert_eq!(super::table(2), 43);\n    }\n}\n";
    let found = Small::new(text).found(&[]);
    assert!(found.values().any(|status| status == "killed"), "{found:?}");
    assert!(found.values().all(|status| status != "not-run"));
}
