//! `docs/attacks.md` cites tests. Each of them exists, and no row is without one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Fewer rows than this: the reader of the table is broken, or somebody deleted attacks.
const LEAST_ROWS: usize = 60;

#[test]
fn every_attack_is_held_by_tests_that_exist() {
    let document = fs::read_to_string(root().join("docs/attacks.md")).unwrap();
    let rows = rows(&document);
    assert!(rows.len() >= LEAST_ROWS, "{} rows", rows.len());
    let faults = faults(&document);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_made_up_citation_and_a_row_without_one_are_reported() {
    let here = "crates/flights/tests/attacks_doc.rs";
    let this = "a_made_up_citation_and_a_row_without_one_are_reported";
    let table =
        |held: &str| format!("| id | attack |\n| --- | --- |\n| A1 | x | – | y | {held} |\n");
    for (held, fault) in [
        (format!("`{here}: {this}`"), ""),
        (
            format!("`{here}: {this}`, see `flights/hostile-network.toml`"),
            "",
        ),
        (format!("`{here}: a_made_up`"), "A1: no test a_made_up in"),
        (format!("`{here}: rows`"), "A1: no test rows in"),
        (
            format!("`{here}: {this}`, `{here}: {this}x`"),
            "A1: no test",
        ),
        (
            "`crates/none.rs: x`".to_owned(),
            "A1: no file crates/none.rs",
        ),
        ("`crates/../x.rs: x`".to_owned(), "A1: no file"),
        (
            format!("`{here}: {this}`, `{here}:{this}`"),
            "A1: no citation",
        ),
        (
            format!("`{here}: {this}`, `flights/hostile-nothing.toml`"),
            "A1: no file flights/hostile-nothing.toml",
        ),
        ("by hand".to_owned(), "A1: no test is cited"),
    ] {
        let found = faults(&table(&held)).join("\n");
        assert!(found.starts_with(fault), "{held}: {found}");
        assert_eq!(found.is_empty(), fault.is_empty(), "{held}: {found}");
    }
    let twice = format!("{0}{0}", table(&format!("`{here}: {this}`")));
    assert_eq!(faults(&twice), ["A1: stands twice"]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Rows of attacks: their first cell is a letter and a number.
fn rows(document: &str) -> Vec<(&str, &str)> {
    let cells = document.lines().filter_map(|line| {
        let (id, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let number = id.strip_prefix(|c: char| c.is_ascii_uppercase())?;
        number.parse::<u32>().ok()?;
        Some((id, rest))
    });
    cells.collect()
}

fn faults(document: &str) -> Vec<String> {
    let mut seen = BTreeMap::<&str, usize>::new();
    let mut faults = Vec::new();
    for (id, row) in rows(document) {
        let times = seen.entry(id).or_default();
        *times += 1;
        if *times == 2 {
            faults.push(format!("{id}: stands twice"));
        }
        let quoted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let tests = quoted.iter().filter(|text| text.contains(".rs"));
        if tests.clone().next().is_none() {
            faults.push(format!("{id}: no test is cited"));
        }
        let missing = tests.filter_map(|citation| missing_test(citation));
        faults.extend(missing.map(|fault| format!("{id}: {fault}")));
        let plans = quoted.iter().filter(|text| text.starts_with("flights/"));
        let missing = plans.filter(|plan| !root().join(plan).is_file());
        faults.extend(missing.map(|plan| format!("{id}: no file {plan}")));
    }
    faults
}

fn missing_test(citation: &str) -> Option<String> {
    let Some((file, name)) = citation.split_once(": ") else {
        return Some(format!("no citation: {citation}"));
    };
    let inside = file.starts_with("crates/") && !file.contains("..");
    let source = inside.then(|| fs::read_to_string(root().join(file)).ok());
    let Some(source) = source.flatten() else {
        return Some(format!("no file {file}"));
    };
    (!has_test(&source, name)).then(|| format!("no test {name} in {file}"))
}

/// Whether a function of this name carries a `#[test]` among the attributes right before it.
fn has_test(source: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let found = lines.iter().position(|line| line.starts_with(&head));
    found.is_some_and(|at| {
        let before = lines.iter().take(at).rev();
        let mut attributes = before.take_while(|line| line.starts_with('#'));
        attributes.any(|line| *line == "#[test]")
    })
}
