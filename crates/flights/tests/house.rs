//! The rules of the house, read from manifests and sources.

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
            ][..],
        ),
        ("hostile", &[][..]),
    ])
}

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
        "flights",
    ] {
        let text = fs::read_to_string(root().join("crates").join(name).join("src/lib.rs")).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{name}");
    }
}

fn sources(dir: &Path, out: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            out.push((path, text));
        }
    }
}

/// The text of a file split into what ships and what tests.
fn split(path: &Path, text: &str) -> (String, String) {
    if path.components().any(|c| c.as_os_str() == "tests") || path.ends_with("tests.rs") {
        return (String::new(), text.to_owned());
    }
    match text.find("#[cfg(test)]\nmod tests") {
        Some(at) => (text[..at].to_owned(), text[at..].to_owned()),
        None => (text.to_owned(), String::new()),
    }
}

/// Variant and code of every declared refusal, with the file that declares it.
fn declared() -> Vec<(String, String, String)> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut found = Vec::new();
    for (path, text) in &files {
        let Some(at) = text.find("refusal_codes! {") else {
            continue;
        };
        if path.ends_with("refusal.rs") {
            continue;
        }
        let body = &text[at..];
        let name = body
            .split("pub enum ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        for line in body.lines().map(str::trim) {
            let Some((variant, rest)) = line.split_once(" = \"") else {
                continue;
            };
            let code = rest.split('"').next().unwrap();
            if variant.chars().all(char::is_alphanumeric)
                && code
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            {
                found.push((name.to_owned(), variant.to_owned(), code.to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_refusal_code_is_produced_by_the_code_and_by_a_test() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let (mut shipped, mut tested) = (String::new(), String::new());
    for (path, text) in &files {
        let (ship, test) = split(path, text);
        if !text.contains("refusal_codes! {") || path.ends_with("refusal.rs") {
            shipped.push_str(&ship);
        }
        tested.push_str(&test);
    }
    for plan in fs::read_dir(root().join("flights")).unwrap() {
        let path = plan.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            tested.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    let codes = declared();
    assert!(
        codes.len() > 100,
        "{} codes found: the reader of declarations is broken",
        codes.len()
    );
    let mut missing = Vec::new();
    for (name, variant, code) in codes {
        let in_code = format!("{name}::{variant}");
        if !mentions(&shipped, &in_code) && !mentions(&shipped, &format!("Code::{variant}")) {
            missing.push(format!("{in_code} is never produced"));
        }
        if !mentions(&tested, &in_code)
            && !tested.contains(&format!("/{code}\""))
            && !tested.contains(&format!("\"{code}\""))
            && !mentions(&tested, &format!("Code::{variant}"))
        {
            missing.push(format!("{in_code} is never tested"));
        }
    }
    assert!(
        missing.is_empty(),
        "{}:\n{}",
        missing.len(),
        missing.join("\n")
    );
}

/// Whether `text` has `word` not followed by more of a name.
fn mentions(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[at + word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}
