//! The rules of the house, read from manifests and sources.
#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

mod codes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// What each crate may depend on, of ours. `hostile` may be used by tests only.
fn floors() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("core", &[][..]),
        ("evidence", &["core"][..]),
        ("frame", &["core"][..]),
        ("archive", &["core"][..]),
        ("ledger", &["core", "evidence"][..]),
        ("certifier", &["core", "evidence"][..]),
        ("importer", &["core", "evidence", "archive", "ledger"][..]),
        (
            "session",
            &["core", "evidence", "frame", "archive", "ledger"][..],
        ),
        ("runner", &["core", "frame", "archive"][..]),
        ("agent", &["core", "evidence", "ledger", "session"][..]),
        (
            "flights",
            &[
                "core",
                "evidence",
                "frame",
                "archive",
                "ledger",
                "certifier",
                "importer",
                "session",
                "runner",
                "agent",
            ][..],
        ),
        ("hostile", &[][..]),
    ])
}

/// What only tests may use beyond the floors: live sessions are tested with the real runner, which
/// the session crate itself gets as bytes.
const TESTS_MAY: [(&str, &str); 1] = [("session", "runner")];

fn manifest(path: &Path) -> toml::Table {
    fs::read_to_string(path).unwrap().parse().unwrap()
}

fn ours(manifest: &toml::Table, table: &str) -> Vec<String> {
    manifest
        .get(table)
        .and_then(|t| t.as_table())
        .into_iter()
        .flat_map(|t| t.keys())
        .filter_map(|key| key.strip_prefix("flightproof-").map(ToOwned::to_owned))
        .collect()
}

fn breaches(name: &str, manifest: &toml::Table) -> Vec<String> {
    let allowed = floors()[name];
    let mut found: Vec<String> = ["dependencies", "build-dependencies"]
        .iter()
        .flat_map(|table| ours(manifest, table))
        .filter(|dependency| !allowed.contains(&dependency.as_str()))
        .map(|dependency| format!("{name} uses {dependency}"))
        .collect();
    let tests = ours(manifest, "dev-dependencies");
    found.extend(
        tests
            .into_iter()
            .filter(|d| d != "hostile" && !allowed.contains(&d.as_str()))
            .filter(|d| !TESTS_MAY.contains(&(name, d)))
            .map(|d| format!("tests of {name} use {d}")),
    );
    found
}

#[test]
fn no_crate_looks_up_a_floor() {
    let crates: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        crates.len(),
        floors().len(),
        "every crate has a floor: {crates:?}"
    );
    for name in &crates {
        let manifest = manifest(&root().join("crates").join(name).join("Cargo.toml"));
        assert_eq!(breaches(name, &manifest), Vec::<String>::new());
    }
}

#[test]
fn the_floor_check_notices_a_breach() {
    let bad: toml::Table = "[dependencies]\nflightproof-session.workspace = true\n"
        .parse()
        .unwrap();
    assert_eq!(breaches("certifier", &bad), ["certifier uses session"]);
}

#[test]
fn every_member_has_its_reason_beside_it() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members: Vec<&str> = text
        .lines()
        .filter(|l| l.trim_start().starts_with("\"crates/"))
        .collect();
    assert_eq!(members.len(), floors().len());
    for line in members {
        assert!(
            line.split_once("# ")
                .is_some_and(|(_, reason)| reason.len() > 15),
            "{line}"
        );
    }
}

#[test]
fn the_trust_core_forbids_unsafe_code() {
    for name in [
        "core",
        "evidence",
        "frame",
        "archive",
        "certifier",
        "importer",
        "ledger",
        "agent",
        "flights",
    ] {
        let text = fs::read_to_string(root().join("crates").join(name).join("src/lib.rs")).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{name}");
    }
}

/// Where the clock that anybody may set is read: to write down when something was, and for how long a
/// record is kept. Whoever waits, waits by the clock that nobody sets.
const WALL_CLOCKS: [&str; 2] = [
    "crates/session/src/docker/owner.rs",
    "crates/session/src/lease.rs",
];

#[test]
fn no_session_waits_by_a_clock_that_somebody_may_set() {
    let mut found = Vec::new();
    for name in ["frame", "runner", "session"] {
        readers(&root().join("crates").join(name).join("src"), &mut found);
    }
    found.sort();
    assert_eq!(found, WALL_CLOCKS);
}

/// The sources below `dir` that name it.
fn readers(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            readers(&path, found);
        } else if reads_wall_clock(&fs::read_to_string(&path).unwrap_or_default()) {
            let path = path.strip_prefix(root()).unwrap();
            found.push(path.to_str().unwrap().to_owned());
        }
    }
}

fn reads_wall_clock(source: &str) -> bool {
    let names = ["SystemTime", "CLOCK_REALTIME", "ClockId::Realtime"];
    names.iter().any(|name| source.contains(name))
}

#[test]
fn a_reader_of_that_clock_is_noticed() {
    assert!(reads_wall_clock("let end = SystemTime::now() + wait;"));
    assert!(!reads_wall_clock("let end = Instant::now() + wait;"));
}
