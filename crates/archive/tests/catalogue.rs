//! Every number of the catalogue in `docs/attacks.md` is held: by a forged input, by a test that
//! exists, or by a reason why it cannot apply.

use flightproof_hostile::archive::rows;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rows of the catalogue.
const ROWS: u16 = 130;
/// Rows that are no matter of archives: the frame's tests hold them.
const FIRST_OF_FRAMES: u16 = 110;
/// A reason says more than this many bytes.
const LEAST_REASON: usize = 60;

#[test]
fn every_row_of_the_catalogue_is_held() {
    let document = fs::read_to_string(root().join("docs/attacks.md")).unwrap();
    let faults = faults(&document, &forged());
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn most_rows_about_archives_are_forged() {
    let forged = forged();
    assert!(forged.iter().all(|number| *number < FIRST_OF_FRAMES));
    assert!(forged.len() >= 80, "{}", forged.len());
}

#[test]
fn a_row_that_nothing_holds_is_reported() {
    let whole = fs::read_to_string(root().join("docs/attacks.md")).unwrap();
    let forged = forged();
    let line = |number: u16| {
        whole
            .lines()
            .find(|l| l.starts_with(&format!("| {number} |")))
            .unwrap()
    };
    for (number, put, fault) in [
        (1, "", "1: not there"),
        (25, "| 25 | x | |", "25: held by nothing"),
        (25, "| 25 | x | some day |", "25: held by nothing"),
        (25, "| 25 | x | forged |", "25: nothing forges it"),
        (
            1,
            "| 1 | x | cannot apply: it cannot, and this is a reason that is long enough to be one |",
            "1: forged, and the row does not say so",
        ),
        (14, "| 14 | x | cannot apply: so |", "14: no reason"),
        (
            25,
            "| 25 | x | `crates/archive/tests/catalogue.rs: a_made_up_test` |",
            "25: no test a_made_up_test",
        ),
        (
            25,
            "| 25 | x | `crates/archive/tests/nothing.rs: x` |",
            "25: no file",
        ),
        (25, "| 26 | x | forged |", "25: not there"),
        (
            130,
            "| 131 | x | forged |",
            "131: stands twice or is no row",
        ),
    ] {
        let found = faults(&whole.replacen(line(number), put, 1), &forged);
        assert!(
            found.iter().any(|f| f.starts_with(fault)),
            "{fault}: {found:?}"
        );
    }
}

fn forged() -> BTreeSet<u16> {
    rows().iter().map(|row| row.number).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Rows whose first cell is a number, and their last cell.
fn catalogue(document: &str) -> Vec<(u16, &str)> {
    let cells = document.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let (_, held) = rest.strip_suffix('|')?.rsplit_once(" |")?;
        Some((number.parse().ok()?, held.trim()))
    });
    cells.collect()
}

fn faults(document: &str, forged: &BTreeSet<u16>) -> Vec<String> {
    let mut held = BTreeMap::new();
    let mut faults = Vec::new();
    for (number, by) in catalogue(document) {
        let twice = held.insert(number, by).is_some();
        if twice || !(1..=ROWS).contains(&number) {
            faults.push(format!("{number}: stands twice or is no row"));
        }
    }
    for number in 1..=ROWS {
        let fault = match held.get(&number) {
            None => Some("not there".to_owned()),
            Some(by) => fault(by, forged.contains(&number)),
        };
        faults.extend(fault.map(|fault| format!("{number}: {fault}")));
    }
    faults
}

fn fault(by: &str, is_forged: bool) -> Option<String> {
    let says_so = by == "forged" || by.starts_with("forged; ");
    if says_so != is_forged {
        let what = if is_forged {
            "forged, and the row does not say so"
        } else {
            "nothing forges it"
        };
        return Some(what.to_owned());
    }
    if let Some(reason) = by.strip_prefix("cannot apply: ") {
        return (reason.len() < LEAST_REASON).then(|| "no reason".to_owned());
    }
    let mut cited = by.split('`').skip(1).step_by(2).peekable();
    if cited.peek().is_none() && !is_forged {
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
