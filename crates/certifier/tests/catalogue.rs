//! Every number of `docs/certifier-cases.md` is held by tests that exist, cannot apply, or is among
//! the few that are known to be open.
#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Rows of the catalogue.
const ROWS: u16 = 112;
/// Rows nothing holds yet. A row that is closed leaves this list; none may join it unseen.
const OPEN: [u16; 0] = [];
/// A reason says more than this many bytes.
const LEAST_REASON: usize = 60;

#[test]
fn every_case_is_held_or_known_to_be_open() {
    let faults = faults(&document(), &OPEN);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_case_that_nothing_holds_is_reported() {
    let whole = document();
    let line = |number: u16| {
        let head = format!("| {number} |");
        whole.lines().find(|line| line.starts_with(&head)).unwrap()
    };
    // As if the one row were open.
    for (number, put, fault) in [
        (1, "", "1: not there"),
        (1, "| 1 | x | |", "1: held by nothing"),
        (1, "| 1 | x | some day |", "1: held by nothing"),
        (1, "| 2 | x | some day |", "2: stands twice or is no row"),
        (
            1,
            "| 113 | x | some day |",
            "113: stands twice or is no row",
        ),
        (
            1,
            "| 1 | x | open: later, and this is long enough to be taken for a reason at all |",
            "1: open, and not known to be",
        ),
        (91, "| 91 | x | cannot apply: so |", "91: no reason"),
        (
            91,
            "| 91 | x | cannot apply: and this is a reason that is surely long enough to be taken for one |",
            "91: no longer open, and still listed as open",
        ),
        (
            1,
            "| 1 | x | `crates/certifier/tests/catalogue.rs: a_made_up_test` |",
            "1: no test a_made_up_test",
        ),
        (
            1,
            "| 1 | x | `crates/certifier/tests/catalogue.rs: root` |",
            "1: no test root",
        ),
        (
            1,
            "| 1 | x | `crates/certifier/tests/nothing.rs: x` |",
            "1: no file",
        ),
    ] {
        let found = faults(&whole.replacen(line(number), put, 1), &[91]);
        assert!(
            found.iter().any(|f| f.starts_with(fault)),
            "{fault}: {found:?}"
        );
    }
}

fn document() -> String {
    fs::read_to_string(root().join("docs/certifier-cases.md")).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn faults(document: &str, open: &[u16]) -> Vec<String> {
    let mut held = BTreeMap::new();
    let mut faults = Vec::new();
    let rows = document.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let (_, by) = rest.strip_suffix('|')?.rsplit_once(" |")?;
        Some((number.parse::<u16>().ok()?, by.trim()))
    });
    for (number, by) in rows {
        if held.insert(number, by).is_some() || !(1..=ROWS).contains(&number) {
            faults.push(format!("{number}: stands twice or is no row"));
        }
    }
    for number in 1..=ROWS {
        let fault = match held.get(&number) {
            None => Some("not there".to_owned()),
            Some(by) => fault(by, open.contains(&number)),
        };
        faults.extend(fault.map(|fault| format!("{number}: {fault}")));
    }
    faults
}

fn fault(by: &str, known_open: bool) -> Option<String> {
    let short = |reason: &str| (reason.len() < LEAST_REASON).then(|| "no reason".to_owned());
    if let Some(reason) = by.strip_prefix("open: ") {
        let unknown = (!known_open).then(|| "open, and not known to be".to_owned());
        return unknown.or_else(|| short(reason));
    }
    let fault = match by.strip_prefix("cannot apply: ") {
        Some(reason) => short(reason),
        None => cited(by),
    };
    let closed = known_open.then(|| "no longer open, and still listed as open".to_owned());
    fault.or(closed)
}

fn cited(by: &str) -> Option<String> {
    let mut cited = by.split('`').skip(1).step_by(2).peekable();
    if cited.peek().is_none() {
        return Some("held by nothing".to_owned());
    }
    cited.find_map(missing)
}

/// What of a citation is not there.
fn missing(citation: &str) -> Option<String> {
    let Some((file, name)) = citation.split_once(": ") else {
        return Some(format!("no citation: {citation}"));
    };
    let Ok(source) = fs::read_to_string(root().join(file)) else {
        return Some(format!("no file {file}"));
    };
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let head = format!("fn {name}(");
    let at = lines.iter().position(|line| line.starts_with(&head));
    let is_test = at.is_some_and(|at| {
        let before = lines.iter().take(at).rev();
        let mut attributes = before.take_while(|line| line.starts_with('#'));
        attributes.any(|line| *line == "#[test]")
    });
    (!is_test).then(|| format!("no test {name} in {file}"))
}
