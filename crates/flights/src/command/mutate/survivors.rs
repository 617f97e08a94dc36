//! What nobody noticed: for people by file and function, for programs each at its place.

use crate::annotations::{Finding, Place, line_of};
use crate::show::count;
use crate::survey::{Report, Tried};
use flightproof_certifier::CertifierCode;
use flightproof_core::{Code as _, RelPath, escape};
use std::collections::BTreeMap;
use std::path::Path;

/// Most bytes of a text that a mutant changes.
const MAX_TEXT: usize = 60;
/// Most bytes of a function's name.
const MAX_NAME: usize = 120;

/// Mutants of one function.
struct Function<'a> {
    name: &'a str,
    mutants: Vec<&'a Tried>,
}

/// Functions of one file, in the order in which they stand there.
struct File<'a> {
    path: &'a str,
    functions: Vec<Function<'a>>,
}

impl<'a> File<'a> {
    fn mutants(&self) -> impl Iterator<Item = &'a Tried> + '_ {
        let functions = self.functions.iter();
        functions.flat_map(|function| function.mutants.iter().copied())
    }
}

/// The mutants that nobody noticed, by file and function. The report has them in the order of places.
fn files(report: &Report) -> Vec<File<'_>> {
    let mut files: Vec<File<'_>> = Vec::new();
    for mutant in report.alive() {
        if files.last().is_none_or(|file| file.path != mutant.file) {
            let (path, functions) = (mutant.file.as_str(), Vec::new());
            files.push(File { path, functions });
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        // A function in a function parts the lines of the outer one.
        let mut known = file.functions.iter_mut();
        match known.find(|function| function.name == mutant.function) {
            Some(function) => function.mutants.push(mutant),
            None => file.functions.push(Function {
                name: &mutant.function,
                mutants: vec![mutant],
            }),
        }
    }
    files
}

/// A line for each file, each function and each mutant. Files are named as seen from the directory that
/// lies there below the top.
pub(super) fn lines(report: &Report, below: Option<&RelPath>) -> Vec<String> {
    let mut lines = Vec::new();
    for file in files(report) {
        let path = seen_from(below, file.path);
        lines.push(format!("{path}: {}", tally(file.mutants())));
        for function in &file.functions {
            let mutants = function.mutants.iter().copied();
            lines.push(format!("  {}: {}", named(function.name), tally(mutants)));
            let places = function.mutants.iter();
            let places = places.map(|m| format!("{path}:{}:{}", m.line, m.column));
            let places: Vec<String> = places.collect();
            let width = places.iter().map(String::len).max().unwrap_or(0);
            let rows = places.iter().zip(&function.mutants);
            lines.extend(rows.map(|(place, mutant)| {
                format!(
                    "    {place:<width$}  {:<16} {}  ({})",
                    mutant.operator,
                    change(mutant),
                    reached(mutant)
                )
            }));
        }
    }
    lines
}

/// In how much of the code those lie that nobody noticed; nothing if there are none.
pub(super) fn spread(report: &Report) -> String {
    let files = files(report);
    if files.is_empty() {
        return String::new();
    }
    let functions: usize = files.iter().map(|file| file.functions.len()).sum();
    format!(
        "; {} not noticed, in {} of {}",
        report.counts.alive(),
        count(functions, "function"),
        count(files.len(), "file")
    )
}

/// Each as a finding at its place in the files below the top.
pub(super) fn findings(report: &Report, top: &Path) -> Vec<Finding> {
    let mut read = BTreeMap::new();
    let finding = report.alive().map(|mutant| Finding {
        code: CertifierCode::MutantsSurvived.explanation().code,
        title: format!("mutant {}: {}", mutant.status, mutant.operator),
        text: format!(
            "{} in {}: {}",
            change(mutant),
            named(&mutant.function),
            reached(mutant)
        ),
        place: Some({
            let text = read.entry(&mutant.file);
            let text = text.or_insert_with(|| std::fs::read_to_string(top.join(&mutant.file)).ok());
            let text = text.as_deref().and_then(|text| line_of(text, mutant.line));
            Place::of(&mutant.file, (mutant.line, mutant.column), text)
        }),
    });
    finding.collect()
}

/// A path that terminals and editors open: as seen from a directory below the top.
fn seen_from(below: Option<&RelPath>, file: &str) -> String {
    let Some(below) = below else {
        return file.to_owned();
    };
    let own: Vec<&str> = below.segments().collect();
    let there: Vec<&str> = file.split('/').collect();
    let shared = own.iter().zip(&there).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", own.len() - shared);
    let steps: Vec<&str> = up.chain(there[shared..].iter().copied()).collect();
    steps.join("/")
}

fn change(mutant: &Tried) -> String {
    let (old, new) = (&mutant.original, &mutant.replacement);
    format!("{} -> {}", escape(old, MAX_TEXT), escape(new, MAX_TEXT))
}

fn named(function: &str) -> String {
    match function {
        "" => "no function".to_owned(),
        name => escape(name, MAX_NAME),
    }
}

fn reached(mutant: &Tried) -> String {
    match (mutant.status, mutant.reaching) {
        ("not-run", _) => "not run".to_owned(),
        ("survived", Some(1)) => "1 reaches it".to_owned(),
        ("survived", Some(number)) => format!("{number} reach it"),
        _ => "nothing reaches it".to_owned(),
    }
}

/// How many of each kind.
fn tally<'a>(mutants: impl Iterator<Item = &'a Tried>) -> String {
    let statuses: Vec<&str> = mutants.map(|mutant| mutant.status).collect();
    let kinds = [
        ("survived", "survived"),
        ("unreached", "reached by nothing"),
        ("not-run", "not run"),
    ];
    let kinds = kinds.map(|(status, words)| {
        let number = statuses.iter().filter(|own| **own == status).count();
        (number, words)
    });
    let kinds = kinds.iter().filter(|(number, _)| *number > 0);
    let kinds: Vec<String> = kinds.map(|(n, words)| format!("{n} {words}")).collect();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Counts;

    fn tried(place: (&str, u32, u32), function: &str, status: &'static str) -> Tried {
        Tried {
            id: String::new(),
            file: place.0.into(),
            line: place.1,
            column: place.2,
            operator: "relational",
            original: "<".into(),
            replacement: "<=".into(),
            function: function.into(),
            status,
            by: None,
            how: None,
            reaching: (status == "survived").then_some(2),
            microseconds: 0,
        }
    }

    fn report() -> Report {
        let mutants = vec![
            tried(("a.rs", 3, 4), "outer", "survived"),
            tried(("a.rs", 5, 4), "inner", "unreached"),
            tried(("a.rs", 5, 9), "inner", "killed"),
            tried(("a.rs", 17, 10), "outer", "not-run"),
            tried(("b.rs", 1, 1), "", "survived"),
        ];
        Report {
            schema: "flightproof/mutate/1",
            oracle: "tests",
            shard: None,
            counts: Counts {
                mutants: 5,
                killed: 1,
                survived: 2,
                unreached: 1,
                not_run: 1,
                ..Counts::default()
            },
            checks: 2,
            left_out: Vec::new(),
            withheld: Vec::new(),
            unmutated: BTreeMap::new(),
            unjudged: Vec::new(),
            mutants,
        }
    }

    #[test]
    fn survivors_stand_by_file_and_function_and_each_at_its_place() {
        let lines = lines(&report(), None).join("\n");
        insta::assert_snapshot!(lines, @r"
        a.rs: 1 survived, 1 reached by nothing, 1 not run
          outer: 1 survived, 1 not run
            a.rs:3:4    relational       < -> <=  (2 reach it)
            a.rs:17:10  relational       < -> <=  (not run)
          inner: 1 reached by nothing
            a.rs:5:4  relational       < -> <=  (nothing reaches it)
        b.rs: 1 survived
          no function: 1 survived
            b.rs:1:1  relational       < -> <=  (2 reach it)
        ");
        assert_eq!(
            spread(&report()),
            "; 4 not noticed, in 3 functions of 2 files"
        );
    }

    #[test]
    fn paths_are_those_that_open_in_the_current_directory() {
        let seen = |below: &str, file: &str| seen_from(RelPath::new(below).ok().as_ref(), file);
        assert_eq!(seen("", "src/lib.rs"), "src/lib.rs");
        assert_eq!(seen("crates/a", "crates/a/src/lib.rs"), "src/lib.rs");
        assert_eq!(seen("crates/a/src", "crates/b/lib.rs"), "../../b/lib.rs");
        assert_eq!(seen("crates/a", "lib.rs"), "../../lib.rs");
    }

    #[test]
    fn programs_get_one_finding_for_each_at_its_place() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("a.rs"), "\n\nö <\n").unwrap();
        let findings = findings(&report(), top.path());
        assert_eq!(findings.len(), 4);
        let first = &findings[0];
        assert_eq!(first.code, "certifier/MUTANTS_SURVIVED");
        assert_eq!(first.title, "mutant survived: relational");
        assert_eq!(first.text, "< -> <= in outer: 2 reach it");
        assert_eq!(first.place.as_ref().unwrap().at, Some((3, Some(3))));
        let last = findings[3].place.as_ref().unwrap();
        assert_eq!((last.file.as_str(), last.at), ("b.rs", Some((1, None))));
    }
}
