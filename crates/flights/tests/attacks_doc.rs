//! `docs/attacks.md` and `docs/session-cases.md` cite tests. Each of them exists, and no row is without one.
#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Cases about sessions.
const SESSION_CASES: u16 = 86;
/// A reason says more than this many bytes.
const LEAST_REASON: usize = 60;
/// The suite that every session passes, and who runs it.
const SUITE: &str = "crates/session/tests/engine/conformance.rs";
const NEAR: [&str; 2] = [
    "crates/session/tests/engine/local.rs",
    "crates/session/tests/engine/live_docker.rs",
];
const FAR: &str = "crates/session/tests/engine/live_remote.rs";
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

#[test]
fn every_case_about_sessions_is_held_by_tests_that_exist() {
    let document = text("docs/session-cases.md");
    let faults = case_faults(&document);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_case_about_sessions_that_nothing_holds_is_reported() {
    let whole = text("docs/session-cases.md");
    let first = whole.lines().find(|l| l.starts_with("| 1 |")).unwrap();
    let this = "`crates/flights/tests/attacks_doc.rs: a_case_about_sessions_that_nothing_holds_is_reported`";
    let reason =
        "cannot apply: and this is a reason that is surely long enough to be taken for one";
    for (put, fault) in [
        (format!("| 1 | x | y | {this} |"), ""),
        (format!("| 1 | x | y | {reason} |"), ""),
        (String::new(), "1: not there"),
        (
            format!("| 2 | x | y | {this} |"),
            "2: stands twice or is no case",
        ),
        (
            format!("| 87 | x | y | {this} |"),
            "87: stands twice or is no case",
        ),
        ("| 1 | x | y | by hand |".to_owned(), "1: held by nothing"),
        (
            "| 1 | x | y | cannot apply: so |".to_owned(),
            "1: no reason",
        ),
        (
            format!("| 1 | x | y | {this}, `{SUITE}: tree` |"),
            "1: no test tree in",
        ),
        (
            format!("| 1 | x | y | {reason}, as `crates/none.rs: x` shows |"),
            "1: no file crates/none.rs",
        ),
        (
            "| 1 | x | y | `suite: tree` |".to_owned(),
            "1: tree is no test of the suite",
        ),
        (
            "| 1 | x | y | `suite: an_engine_that_is_not_there_is_missing` |".to_owned(),
            "1: an_engine_that_is_not_there_is_missing is no test of the suite",
        ),
    ] {
        let found = case_faults(&whole.replacen(first, &put, 1)).join("\n");
        assert!(found.starts_with(fault), "{put}: {found}");
        assert_eq!(found.is_empty(), fault.is_empty(), "{put}: {found}");
    }
}

#[test]
fn every_test_of_the_suite_runs_on_every_backend() {
    let source = text(SUITE);
    let names: Vec<&str> = suite(&source).collect();
    assert!(names.len() >= 15, "{names:?}");
    let faults: Vec<String> = names.iter().filter_map(|name| missing_in(name)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// What a test of the suite looks like: it is given a backend and nothing else.
const TEST_OF_SUITE: &str = "(backend: &dyn Backend) {";

fn suite(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let rest = line.strip_prefix("pub(crate) fn ")?;
        rest.strip_suffix(TEST_OF_SUITE)
    })
}

/// On which backend a test of the suite does not run.
fn missing_in(name: &str) -> Option<String> {
    if !suite(&text(SUITE)).any(|test| test == name) {
        return Some(format!("{name} is no test of the suite"));
    }
    let call = format!("conformance::{name}(&");
    let left_out = |file: &&&str| {
        let source = text(file);
        !has_test(&source, name) || !source.contains(&call)
    };
    if let Some(file) = NEAR.iter().find(left_out) {
        return Some(format!("{name} does not run in {file}"));
    }
    let row = format!("conformance::{name},");
    let far = text(FAR);
    let listed = far.contains(&row) || far.contains(&row.replace(',', "),"));
    (!listed).then(|| format!("{name} does not run in {FAR}"))
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

fn case_faults(document: &str) -> Vec<String> {
    let mut held = BTreeMap::new();
    let mut faults = Vec::new();
    let cases = document.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let (_, by) = rest.strip_suffix(" |")?.rsplit_once(" | ")?;
        Some((number.parse::<u16>().ok()?, by))
    });
    for (number, by) in cases {
        if held.insert(number, by).is_some() || !(1..=SESSION_CASES).contains(&number) {
            faults.push(format!("{number}: stands twice or is no case"));
        }
    }
    for number in 1..=SESSION_CASES {
        let fault = match held.get(&number) {
            None => Some("not there".to_owned()),
            Some(by) => case_fault(by),
        };
        faults.extend(fault.map(|fault| format!("{number}: {fault}")));
    }
    faults
}

fn case_fault(by: &str) -> Option<String> {
    let mut cited = by.split('`').skip(1).step_by(2).peekable();
    match by.strip_prefix("cannot apply: ") {
        Some(reason) if reason.len() < LEAST_REASON => return Some("no reason".to_owned()),
        None if cited.peek().is_none() => return Some("held by nothing".to_owned()),
        _ => {}
    }
    cited.find_map(|citation| match citation.strip_prefix("suite: ") {
        Some(name) => missing_in(name),
        None => missing_test(citation),
    })
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
