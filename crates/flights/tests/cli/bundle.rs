//! `flights bundle`, on real repositories.

use crate::environment::{Environment, Run, tree, workspace};
use crate::verify::POLICY;
use insta::assert_snapshot;
use std::collections::BTreeMap;
use std::fs;

fn bundle(environment: &Environment, args: &[&str], more: &[&str]) -> Run {
    let (repo, file) = (environment.path("repo"), environment.path("c.bundle"));
    let (repo, file) = (repo.to_str().unwrap(), file.to_str().unwrap());
    let mut all = vec!["bundle"];
    all.extend(
        args.iter()
            .map(|arg| if *arg == "FILE" { file } else { arg }),
    );
    all.extend(["--repo", repo]);
    all.extend(more);
    environment.flights(&all)
}

fn create(environment: &Environment, baseline: &str, head: &str, more: &[&str]) -> Run {
    let args = [
        "create",
        "--baseline",
        baseline,
        "--head",
        head,
        "-o",
        "FILE",
    ];
    bundle(environment, &args, more)
}

fn check(environment: &Environment, baseline: &str, more: &[&str]) -> Run {
    bundle(
        environment,
        &["check", "FILE", "--baseline", baseline],
        more,
    )
}

#[test]
fn a_commit_is_carried_as_a_bundle_and_says_what_it_changes() {
    let environment = Environment::with_pricing();
    let repository = environment.listing("repo");
    assert_snapshot!(create(&environment, "main", "candidate", &[]).text, @"
    exit 0
    --- stdout
    ACCEPTED: ________________________________________ on ________________________________________, 1 changed path, 616 bytes: written to $TREE/c.bundle
      author      An Author <author@example.invalid>
      committer   An Author <author@example.invalid>
      bundle      ________________________________________________________________
      changed           100644 814 -> 100644 1060      src/main.rs
    ");
    assert_snapshot!(check(&environment, "main", &["--grant", "src"]).text, @"
    exit 0
    --- stdout
    ACCEPTED: ________________________________________ on ________________________________________, 1 changed path, 616 bytes: it keeps every rule, and git finds the same objects in it
      author      An Author <author@example.invalid>
      committer   An Author <author@example.invalid>
      bundle      ________________________________________________________________
      changed           100644 814 -> 100644 1060      src/main.rs
    ");
    let json = check(&environment, "main", &["--format", "json"]).json();
    assert_eq!(json["head"], environment.git(&["rev-parse", "candidate"]));
    assert_eq!(json["changes"][0]["path"], "src/main.rs");
    assert_eq!(environment.listing("repo"), repository, "the repository");
}

#[test]
fn a_bundle_that_breaks_a_rule_is_refused_where_it_is_made_and_where_it_arrives() {
    let environment = Environment::with_pricing();
    assert_eq!(create(&environment, "main", "candidate", &[]).code, 0);
    let refused = |run: Run| format!("{} {}", run.code, run.stdout.lines().next().unwrap());
    let identity = ["--identity", "Somebody Else <else@example.invalid>"];
    assert_snapshot!(refused(check(&environment, "main", &identity)), @"10 REFUSED at check: importer/IDENTITY_MISMATCH: author: got An Author <author@example.invalid>, expected Somebody Else <else@example.invalid>");
    assert_snapshot!(refused(check(&environment, "main", &["--grant", "docs"])), @"10 REFUSED at check: importer/PATH_NOT_GRANTED: src/main.rs");
    assert_snapshot!(refused(check(&environment, "candidate", &[])), @"10 REFUSED at check: importer/BUNDLE_PREREQUISITE: got 00fcbb95491ab1aaee36cb4d49e4ed6eb83b5903, expected 0a16101b9d25ddc8892f1875a29552665e848c07: the baseline is the bundle's own commit");
    assert_snapshot!(refused(create(&environment, "main", "main", &[])), @"10 REFUSED at bundle: importer/NO_CHANGE: both are 00fcbb95491ab1aaee36cb4d49e4ed6eb83b5903");
    let ignore = BTreeMap::from([(".gitattributes".to_owned(), "* -text\n".to_owned())]);
    environment.candidate("attributes", &ignore);
    assert_snapshot!(refused(create(&environment, "main", "attributes", &[])), @"10 REFUSED at bundle: importer/PROTECTED_PATH: .gitattributes (.gitattributes)");
    let granted = create(
        &environment,
        "main",
        "attributes",
        &["--grant", ".gitattributes"],
    );
    assert_eq!(granted.code, 0, "{}", granted.text);
}

#[test]
fn no_damaged_bundle_is_taken() {
    let environment = Environment::with_pricing();
    assert_eq!(create(&environment, "main", "candidate", &[]).code, 0);
    let file = environment.path("c.bundle");
    let whole = fs::read(&file).unwrap();
    for place in [0, 20, 60, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        fs::write(&file, &bytes).unwrap();
        let run = check(&environment, "main", &["--format", "json"]);
        assert_eq!(run.code, 10, "{place}: {}", run.text);
    }
    fs::write(&file, [&whole[..], b"\0"].concat()).unwrap();
    assert_eq!(check(&environment, "main", &[]).code, 10);
    fs::write(&file, vec![b'#'; (128 << 10) + 1]).unwrap();
    let run = check(&environment, "main", &["--format", "json"]);
    assert_eq!(
        run.json()["code"],
        "importer/BUNDLE_OVER_LIMIT",
        "{}",
        run.text
    );
}

#[test]
fn large_files_travel_beside_the_bundle_if_that_is_granted() {
    let environment = Environment::with_pricing();
    let mut files = tree(&workspace().join("fixtures/pricing/candidate"));
    files.insert("data/prices.txt".to_owned(), "9\n".repeat(1_500_000));
    environment.candidate("large", &files);
    let beside = environment.path("c.paws");
    let beside = beside.to_str().unwrap();
    let refused = |run: Run| format!("{} {}", run.code, run.stdout.lines().next().unwrap());
    let make = |more: &[&str]| create(&environment, "main", "large", more);
    assert_snapshot!(refused(make(&[])), @"10 REFUSED at bundle: importer/BYTES_OVER_LIMIT: blob fe00f6fbe0117ed5b1609ed12f83b509650a3f8e has 3000000 bytes, 2096977 are left of the limit");
    assert_snapshot!(refused(make(&["--large", "data"])), @"2 REFUSED at bundle: flights/USAGE_INVALID: large files need a place of their own: --changeset FILE");
    assert_eq!(make(&["--changeset", beside]).code, 2);
    assert_snapshot!(make(&["--large", "data", "--changeset", beside]).text, @"
    exit 0
    --- stdout
    ACCEPTED: ________________________________________ on ________________________________________, 2 changed paths, 1091 bytes: written to $TREE/c.bundle, 3000459 bytes of large files to $TREE/c.paws
      author      An Author <author@example.invalid>
      committer   An Author <author@example.invalid>
      bundle      ________________________________________________________________
      changeset   ________________________________________________________________
      added                      - -> 100644 3000000   data/prices.txt
      changed           100644 814 -> 100644 1060      src/main.rs
    ");
    let arrives = |more: &[&str]| check(&environment, "main", more);
    assert_snapshot!(refused(arrives(&["--large", "data"])), @"10 REFUSED at check: importer/OBJECT_MISSING: blob fe00f6fbe0117ed5b1609ed12f83b509650a3f8e is neither in the bundle nor in the baseline");
    assert_snapshot!(refused(arrives(&["--large", "dat", "--changeset", beside])), @"10 REFUSED at check: importer/LARGE_NOT_GRANTED: data/prices.txt");
    assert_snapshot!(arrives(&["--large", "data", "--changeset", beside]).text, @"
    exit 0
    --- stdout
    ACCEPTED: ________________________________________ on ________________________________________, 2 changed paths, 1091 bytes: it keeps every rule, and git finds the same objects in it
      author      An Author <author@example.invalid>
      committer   An Author <author@example.invalid>
      bundle      ________________________________________________________________
      changeset   ________________________________________________________________
      added                      - -> 100644 3000000   data/prices.txt
      changed           100644 814 -> 100644 1060      src/main.rs
    ");
    // Home it comes with both.
    let (file, home) = (environment.path("c.bundle"), environment.path("home/repo"));
    let (file, home) = (file.to_str().unwrap(), home.to_str().unwrap());
    let repo = environment.path("repo");
    let clone = ["clone", "-q", "--single-branch", "-b", "main"];
    environment.git(&[&clone[..], &[repo.to_str().unwrap(), home]].concat());
    let import = |more: &[&str]| {
        let mut args = vec!["import", file, "--repo", home, "--branch", "main"];
        args.extend(["--baseline", "main", "--uncertified-i-know"]);
        args.extend(more);
        environment.flights(&args)
    };
    assert_eq!(import(&[]).code, 10);
    let run = import(&["--large", "data", "--changeset", beside]);
    assert_eq!(run.code, 0, "{}", run.text);
    let found = fs::read_to_string(environment.path("home/repo/data/prices.txt")).unwrap();
    assert_eq!(found.len(), 3_000_000);
}

#[test]
fn a_commit_with_large_files_is_certified_with_what_travelled_beside_it() {
    let environment = Environment::with_pricing();
    let mut files = tree(&workspace().join("fixtures/pricing/candidate"));
    // Large, and not of a million lines, which nobody reviews.
    let line = "9".repeat(99) + "\n";
    files.insert("data/prices.txt".to_owned(), line.repeat(30_000));
    environment.candidate("large", &files);
    let run = environment.certify("large", &[]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(
        run.stdout.contains("importer/BYTES_OVER_LIMIT"),
        "{}",
        run.text
    );
    let run = environment.certify("large", &["--large", "data"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let certificate = environment.path("out/certificate.dsse.json");
    let certificate = certificate.to_str().unwrap();
    let run = environment.flights(&["cert", "show", certificate, "--format", "json"]);
    let capture = &run.json()["statement"]["predicate"]["inputs"]["capture"];
    assert_eq!(
        capture["changeset"].as_str().map(str::len),
        Some(64),
        "{}",
        run.text
    );
    let (key, policy) = (
        environment.public_key(),
        environment.write("p.json", POLICY),
    );
    let review = |more: &[&str]| {
        let repo = environment.path("repo");
        let mut args = vec!["review", certificate, "--key", &key, "--policy", &policy];
        args.extend(["--repo", repo.to_str().unwrap()]);
        environment.flights(&[&args[..], more].concat())
    };
    let run = review(&[]);
    assert!(
        run.stdout.contains("importer/BYTES_OVER_LIMIT"),
        "{}",
        run.text
    );
    let run = review(&["--large", "data"]);
    assert_eq!(
        run.code,
        0,
        "{}",
        run.stdout.lines().next().unwrap_or_default()
    );
}

#[test]
fn what_is_no_ordinary_file_is_not_waited_for_nor_followed() {
    let environment = Environment::with_pricing();
    assert_eq!(create(&environment, "main", "candidate", &[]).code, 0);
    let file = environment.path("c.bundle");
    let away = environment.path("away.bundle");
    fs::rename(&file, &away).unwrap();
    let places: [(&str, &dyn Fn()); 5] = [
        ("a pipe", &|| {
            let made = std::process::Command::new("mkfifo").arg(&file).status();
            assert!(made.unwrap().success());
        }),
        ("a link to it", &|| {
            std::os::unix::fs::symlink(&away, &file).unwrap()
        }),
        ("a link to a secret", &|| {
            std::os::unix::fs::symlink("/etc/shadow", &file).unwrap()
        }),
        ("a device", &|| {
            std::os::unix::fs::symlink("/dev/zero", &file).unwrap()
        }),
        ("a folder", &|| fs::create_dir(&file).unwrap()),
    ];
    for (what, place) in places {
        place();
        let run = check(&environment, "main", &["--format", "json"]);
        assert_eq!(
            run.json()["code"],
            "flights/FILE_UNREADABLE",
            "{what}: {}",
            run.text
        );
        if what == "a folder" {
            fs::remove_dir(&file).unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
    }
    fs::rename(&away, &file).unwrap();
    assert_eq!(check(&environment, "main", &[]).code, 0);
}

#[test]
fn what_runs_in_a_build_and_what_the_operator_names_is_protected() {
    let environment = Environment::with_pricing();
    let files = |name: &str| BTreeMap::from([(name.to_owned(), "fn main() {}\n".to_owned())]);
    environment.candidate("script", &files("build.rs"));
    environment.candidate("deploy", &files("ops/deploy.sh"));
    let make = |branch: &str, more: &[&str]| create(&environment, "main", branch, more);
    let run = make("script", &[]);
    assert!(
        run.stdout.contains("importer/PROTECTED_PATH: build.rs"),
        "{}",
        run.text
    );
    assert_eq!(make("script", &["--grant", "build.rs"]).code, 0);
    assert_eq!(make("deploy", &[]).code, 0);
    let run = make("deploy", &["--protect", "DEPLOY.sh"]);
    assert!(
        run.stdout
            .contains("importer/PROTECTED_PATH: ops/deploy.sh"),
        "{}",
        run.text
    );
    let run = make("deploy", &["--protect", "ops", "--grant", "ops"]);
    assert_eq!(run.code, 10, "{}", run.text);
    assert_eq!(
        make("deploy", &["--protect", "ops", "--grant", "ops/deploy.sh"]).code,
        0
    );
}
