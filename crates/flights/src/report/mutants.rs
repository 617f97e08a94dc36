//! The mutants of a flight in the schema of mutation-testing reports (version 2), which viewers of
//! other tools read: <https://github.com/stryker-mutator/mutation-testing-elements>.

use crate::annotations::line_of;
use crate::flight::Seen;
use crate::state;
use flightproof_certifier::certification::{Account, MutantAccount, MutantFate};
use flightproof_core::{Refusal, RelPath, StrictError, escape, parse_strict};
use flightproof_evidence::Change;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the report in an output directory.
pub const MUTATION_REPORT: &str = "mutation-report.json";

/// Writes the report of a flight that came to its mutants, whatever became of it then.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub fn write_mutants(out: &Path, seen: &Seen) -> Result<(), Refusal> {
    match seen.account.as_ref().filter(|account| tried(account)) {
        None => Ok(()),
        Some(account) => {
            let report = format!("{}\n", document(&seen.changes, account));
            state::write_file(&out.join(MUTATION_REPORT), report.as_bytes(), 0o644)
        }
    }
}

/// A mutant that no case noticed.
pub struct Survivor<'a> {
    /// The file.
    pub file: &'a str,
    /// Line, from 1.
    pub line: u32,
    /// The line's text.
    pub text: String,
    /// Its family.
    pub operator: &'a str,
    /// What stood there.
    pub original: &'a str,
    /// What stands there instead.
    pub replacement: &'a str,
}

/// Most survivors in lines for people, as many as a refusal has waivers for: it says how many more there
/// are. [`MUTATION_REPORT`] has all.
const MAX_SURVIVORS: usize = 24;
/// Most bytes of a text that a mutant changes.
const MAX_TEXT: usize = 60;

/// Each line that a survivor is on, as the candidate has it, and below it what stood in its place.
pub fn survivor_lines<'a>(survivors: impl Iterator<Item = Survivor<'a>>) -> Vec<String> {
    let (mut lines, mut last) = (Vec::new(), None);
    for survivor in survivors.take(MAX_SURVIVORS) {
        let place = (survivor.file, survivor.line);
        if last.replace(place) != Some(place) {
            lines.push(format!(
                "{}:{}  {}",
                escape(survivor.file, 200),
                survivor.line,
                escape(survivor.text.trim(), 200)
            ));
        }
        lines.push(format!(
            "    {:<16} {} -> {}",
            escape(survivor.operator, MAX_TEXT),
            escape(survivor.original, MAX_TEXT),
            escape(survivor.replacement, MAX_TEXT)
        ));
    }
    lines
}

/// What a report that was written says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Mutants that a case noticed.
    pub killed: u64,
    /// Mutants that compile and were tried.
    pub tried: u64,
    /// The lines of those that survived.
    pub survivors: Vec<String>,
}

/// Reads a report, in the order of its places.
///
/// # Errors
/// What is wrong with it.
pub fn read_mutants(bytes: &[u8]) -> Result<Written, StrictError> {
    let document: Document = parse_strict(bytes, MAX_MUTATION_REPORT)?;
    let all = || {
        let files = document.files.iter();
        files.flat_map(|(path, file)| file.mutants.iter().map(move |mutant| (path, file, mutant)))
    };
    let of = |words: &[&str]| {
        let mutants = all().filter(|(.., mutant)| words.contains(&mutant.status.as_str()));
        mutants.count() as u64
    };
    let survivors = all().filter(|(.., mutant)| mutant.status == "Survived");
    let survivors = survivors.map(|(path, file, mutant)| {
        let text = line_of(&file.source, mutant.location.start.line).unwrap_or_default();
        (path, mutant, text)
    });
    let survivors: Vec<_> = survivors.collect();
    let lines = survivors.iter().map(|(path, mutant, text)| Survivor {
        file: path,
        line: mutant.location.start.line,
        text: (*text).to_owned(),
        operator: &mutant.mutator_name,
        original: mutant.original(),
        replacement: &mutant.replacement,
    });
    Ok(Written {
        killed: of(&["Killed", "Timeout"]),
        tried: of(&["Killed", "Timeout", "Survived", "Ignored"]),
        survivors: survivor_lines(lines),
    })
}

/// Largest report in bytes that is read: it holds every changed file that has mutants.
pub const MAX_MUTATION_REPORT: usize = 64 << 20;

/// What of a report is read.
#[derive(Deserialize)]
struct Document {
    files: BTreeMap<String, File>,
}

#[derive(Deserialize)]
struct File {
    source: String,
    mutants: Vec<Mutant>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mutant {
    id: String,
    mutator_name: String,
    replacement: String,
    status: String,
    location: Location,
}

impl Mutant {
    /// What it replaces, as its id says: the place is that of a whole expression where an operand of it
    /// takes its place.
    fn original(&self) -> &str {
        let operator = format!(" {} ", self.mutator_name);
        let (_, change) = self.id.split_once(&operator).unwrap_or_default();
        let replacement = format!(" -> {}", self.replacement);
        change.strip_suffix(&replacement).unwrap_or(change)
    }
}

#[derive(Deserialize)]
struct Location {
    start: Point,
}

#[derive(Deserialize)]
struct Point {
    line: u32,
}

fn tried(account: &Account) -> bool {
    let mut mutants = account.mutants.iter();
    mutants.any(|mutant| mutant.fate != MutantFate::Untried)
}

/// What viewers call the language of a file.
fn language(path: &RelPath) -> &'static str {
    match path.file_name().rsplit_once('.').map_or("", |(_, e)| e) {
        "c" | "h" => "c",
        "go" => "go",
        "cjs" | "js" => "javascript",
        "cts" | "mts" | "ts" => "typescript",
        "py" => "python",
        _ => "rust",
    }
}

fn document(changes: &[Change], account: &Account) -> Value {
    let mut files = Map::new();
    for change in changes {
        let Some(new) = &change.new else { continue };
        let source = String::from_utf8_lossy(&new.content);
        let own = account.mutants.iter().filter(|m| m.file == change.path);
        let mutants: Vec<Value> = own.map(|m| mutant(m, &source)).collect();
        if !mutants.is_empty() {
            files.insert(
                change.path.to_string(),
                json!({"language": language(&change.path), "source": source, "mutants": mutants}),
            );
        }
    }
    json!({
        "schemaVersion": "2",
        // No mutant may survive: nothing below this is good.
        "thresholds": {"high": 100, "low": 100},
        "framework": {"name": "Flightproof", "version": env!("CARGO_PKG_VERSION")},
        "files": files,
    })
}

fn mutant(mutant: &MutantAccount, source: &str) -> Value {
    let (status, reason) = status(mutant.fate);
    let line = source
        .split('\n')
        .nth(mutant.line.saturating_sub(1) as usize);
    let line = line.unwrap_or_default();
    let before = line.get(..mutant.column.saturating_sub(1) as usize);
    let start = before.map_or(0, |before| before.chars().count()) + 1;
    // What is longer than a line, or was shortened for people, ends with its line.
    let rest = line.get(before.map_or(0, str::len)..).unwrap_or_default();
    let length = match rest.starts_with(&mutant.original) {
        true => mutant.original.chars().count(),
        false => rest.trim_end().chars().count(),
    };
    json!({
        "id": mutant.id,
        "mutatorName": mutant.operator,
        "replacement": mutant.replacement,
        "status": status,
        "statusReason": reason,
        "location": {
            "start": {"line": mutant.line, "column": start},
            "end": {"line": mutant.line, "column": start + length},
        },
    })
}

/// The schema's word, and ours.
fn status(fate: MutantFate) -> (&'static str, &'static str) {
    match fate {
        MutantFate::Killed(class @ ("fuel" | "time")) => ("Timeout", class),
        MutantFate::Killed(class) => ("Killed", class),
        MutantFate::Survived => ("Survived", "no case noticed it"),
        MutantFate::Waived => ("Ignored", "waived by the witness's owner"),
        MutantFate::Equivalent => (
            "Ignored",
            "equivalent: compiled alone, it is the same program",
        ),
        MutantFate::Unviable => ("CompileError", "the compiler refused it"),
        MutantFate::Untried => ("Pending", "not tried, or not to the end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_core::RelPath;
    use flightproof_evidence::FileState;

    fn made(line: u32, column: u32, original: &str, fate: MutantFate) -> MutantAccount {
        MutantAccount {
            id: format!("src/lib.rs:{line}:{column} relational {original} -> <="),
            file: RelPath::new("src/lib.rs").unwrap(),
            line,
            column,
            operator: "relational",
            original: original.to_owned(),
            replacement: "<=".to_owned(),
            fate,
        }
    }

    fn changed(path: &str, new: Option<&str>) -> Change {
        Change {
            path: RelPath::new(path).unwrap(),
            old: None,
            new: new.map(|text| FileState {
                executable: false,
                content: text.as_bytes().into(),
            }),
        }
    }

    #[test]
    fn places_are_counted_in_characters_and_end_behind_what_stood_there() {
        let changes = [
            changed("src/lib.rs", Some("fn f() {\n    g(\"ö\", a < b)\n}\n")),
            changed("src/old.rs", None),
            changed("README.md", Some("text")),
        ];
        let account = Account {
            mutants: vec![
                made(2, 15, "<", MutantFate::Killed("value")),
                made(2, 5, "g(\"ö\", a ...", MutantFate::Survived),
            ],
            ..Account::default()
        };
        let report = document(&changes, &account);
        let files: Vec<&String> = report["files"].as_object().unwrap().keys().collect();
        assert_eq!(files, ["src/lib.rs"]);
        let place = |number: usize| {
            let place = &report["files"]["src/lib.rs"]["mutants"][number]["location"];
            let at = |end: &str| {
                let at = &place[end];
                (at["line"].as_u64().unwrap(), at["column"].as_u64().unwrap())
            };
            (at("start"), at("end"))
        };
        assert_eq!(place(0), ((2, 14), (2, 15)));
        assert_eq!(place(1), ((2, 5), (2, 18)));
        let read = read_mutants(report.to_string().as_bytes()).unwrap();
        assert_eq!((read.killed, read.tried), (1, 2));
        let lines = [
            "src/lib.rs:2  g(\"ö\", a < b)",
            "    relational       g(\"ö\", a ... -> <=",
        ];
        assert_eq!(read.survivors, lines);
    }

    #[test]
    fn every_fate_has_a_word_of_the_schema() {
        let fates = [
            (MutantFate::Killed("value"), "Killed"),
            (MutantFate::Killed("fuel"), "Timeout"),
            (MutantFate::Survived, "Survived"),
            (MutantFate::Waived, "Ignored"),
            (MutantFate::Equivalent, "Ignored"),
            (MutantFate::Unviable, "CompileError"),
            (MutantFate::Untried, "Pending"),
        ];
        for (fate, word) in fates {
            assert_eq!(mutant(&made(1, 1, "a", fate), "a")["status"], word);
        }
    }

    #[test]
    fn nothing_is_written_of_a_flight_that_tried_none() {
        let out = tempfile::tempdir().unwrap();
        let mut seen = Seen {
            changes: vec![changed("src/lib.rs", Some("a"))],
            account: Some(Account {
                mutants: vec![made(1, 1, "a", MutantFate::Untried)],
                ..Account::default()
            }),
            ..Seen::default()
        };
        write_mutants(out.path(), &seen).unwrap();
        assert!(!out.path().join(MUTATION_REPORT).exists());
        seen.account.as_mut().unwrap().mutants[0].fate = MutantFate::Survived;
        write_mutants(out.path(), &seen).unwrap();
        assert!(out.path().join(MUTATION_REPORT).exists());
    }
}
