//! Every refusal code is listed, explained, produced by the code and produced by a test. Explained
//! is what the registry's own test holds; here sources are read for the other two.

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};

/// A source file, split into what ships and what tests.
struct Source {
    /// The crate's directory name; for the generators of `hostile`, that of the crate they attack.
    family: String,
    shipped: String,
    tested: String,
}

/// One declared refusal.
struct Declared {
    family: String,
    set: String,
    variant: String,
    code: String,
}

#[test]
fn every_refusal_code_is_produced_by_the_code_and_by_a_test() {
    let declared = declared();
    assert!(
        declared.len() > 100,
        "{} codes found: the reader of declarations is broken",
        declared.len()
    );
    let missing = missing(&declared, &house());
    assert!(
        missing.is_empty(),
        "{}:\n{}",
        missing.len(),
        missing.join("\n")
    );
}

#[test]
fn a_code_that_is_never_produced_or_never_tested_is_noticed() {
    let code = |variant: &str, code: &str| Declared {
        family: "frame".into(),
        set: "FrameCode".into(),
        variant: variant.into(),
        code: code.into(),
    };
    let source = |shipped: &str, tested: &str| Source {
        family: "frame".into(),
        shipped: shipped.into(),
        tested: tested.into(),
    };
    let codes = [code("Empty", "EMPTY"), code("EmptyTail", "EMPTY_TAIL")];
    let sources = [
        source(
            "FrameCode::EmptyTail.refuse(x)",
            "use FrameCode::{Empty, Other};\nassert_eq!(e, Empty)",
        ),
        source(
            "OtherCode::Empty",
            "\"x/EMPTY_TAIL\" FrameCode::EmptyTailor",
        ),
    ];
    assert_eq!(
        missing(&codes, &sources),
        [
            "FrameCode::Empty is never produced",
            "FrameCode::EmptyTail is never tested"
        ]
    );
}

fn missing(declared: &[Declared], sources: &[Source]) -> Vec<String> {
    let mut missing = Vec::new();
    for d in declared {
        let name = format!("{}::{}", d.set, d.variant);
        if !sources.iter().any(|s| names(&s.shipped, d)) {
            missing.push(format!("{name} is never produced"));
        }
        if !sources.iter().any(|s| names(&s.tested, d) || spells(s, d)) {
            missing.push(format!("{name} is never tested"));
        }
    }
    missing
}

/// Whether a text names the variant: by its set, by the set's alias, or bare after an import.
fn names(text: &str, d: &Declared) -> bool {
    if mentions(text, &format!("{}::{}", d.set, d.variant)) {
        return true;
    }
    let alias = text
        .split(&format!("{} as ", d.set))
        .nth(1)
        .and_then(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
    if alias.is_some_and(|alias| mentions(text, &format!("{alias}::{}", d.variant))) {
        return true;
    }
    // `use Set::{A, B};` or `use Set::*;`, and then `A`.
    text.match_indices(&format!("{}::", d.set)).any(|(at, _)| {
        let rest = &text[at + d.set.len() + 2..];
        let (imported, body) = match rest.as_bytes().first() {
            Some(b'*') => (true, rest),
            Some(b'{') => rest.split_once("};").map_or((false, ""), |(list, body)| {
                (mentions(list, &d.variant), body)
            }),
            _ => (false, ""),
        };
        imported && mentions(body, &d.variant)
    })
}

/// Whether a test spells the code out: in full anywhere, its last part in its own crate.
fn spells(source: &Source, d: &Declared) -> bool {
    mentions(&source.tested, &format!("{}/{}", d.family, d.code))
        || source.family == d.family && source.tested.contains(&format!("\"{}\"", d.code))
}

/// Whether `text` has `word`, not as a part of a longer name.
fn mentions(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[at + word.len()..].starts_with(inside) && !text[..at].ends_with(inside)
    })
}

fn house() -> Vec<Source> {
    let root = root();
    let mut files = Vec::new();
    read_below(&root.join("crates"), "rs", &mut files);
    let mut sources: Vec<Source> = files
        .into_iter()
        .filter(|(path, text)| !declares(path, text))
        // This file's own examples are no tests of codes.
        .filter(|(path, _)| !path.ends_with("house/codes.rs"))
        .map(|(path, text)| source(&root, &path, text))
        .collect();
    let mut tested = |folder: &str, extension: &str, family: &str| {
        let mut files = Vec::new();
        read_below(&root.join(folder), extension, &mut files);
        sources.extend(files.into_iter().map(|(_, text)| Source {
            family: family.to_owned(),
            shipped: String::new(),
            tested: text,
        }));
    };
    // Every plan is flown and every vector decoded by a test.
    tested("flights", "toml", "flights");
    tested("fixtures/vectors", "json", "archive");
    sources
}

fn source(root: &Path, path: &Path, text: String) -> Source {
    let inner = path.strip_prefix(root.join("crates")).unwrap();
    let mut parts = inner.iter().map(|part| part.to_str().unwrap());
    let mut family = parts.next().unwrap().to_owned();
    let generator = family == "hostile";
    if generator {
        let attacked = parts.nth(1).unwrap().trim_end_matches(".rs");
        family = attacked.replace("git", "importer");
    }
    let test_file = path
        .iter()
        .any(|part| part == "tests" || part == "examples")
        || path.ends_with("tests.rs");
    let (shipped, tested) = if generator || test_file {
        (String::new(), text)
    } else {
        let tests = [
            "#[cfg(test)]\nmod tests {",
            "#[cfg(test)]\npub(crate) mod tests {",
        ];
        match tests.iter().find_map(|mark| text.find(mark)) {
            Some(at) => (text[..at].to_owned(), text[at..].to_owned()),
            None => (text, String::new()),
        }
    };
    Source {
        family,
        shipped,
        tested,
    }
}

fn read_below(directory: &Path, extension: &str, out: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_below(&path, extension, out);
        } else if path.extension().is_some_and(|e| e == extension) {
            let text = fs::read_to_string(&path).unwrap();
            out.push((path, text));
        }
    }
}

fn declares(path: &Path, text: &str) -> bool {
    text.contains("refusal_codes! {") && !path.ends_with("core/src/refusal.rs")
}

fn declared() -> Vec<Declared> {
    let mut files = Vec::new();
    read_below(&root().join("crates"), "rs", &mut files);
    files
        .iter()
        .filter(|(path, text)| declares(path, text) && !path.ends_with("house/codes.rs"))
        .flat_map(|(_, text)| declarations(text))
        .collect()
}

fn declarations(text: &str) -> Vec<Declared> {
    let body = text.split_once("pub enum ").unwrap().1;
    let (set, rest) = body.split_once(" in \"").unwrap();
    let (family, body) = rest.split_once('"').unwrap();
    let upper = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    body.lines()
        .filter_map(|line| line.trim().split_once(" = \""))
        .filter_map(|(variant, rest)| Some((variant, rest.split_once('"')?.0)))
        .filter(|(variant, code)| {
            variant.chars().all(char::is_alphanumeric) && code.bytes().all(upper)
        })
        .map(|(variant, code)| Declared {
            family: family.to_owned(),
            set: set.to_owned(),
            variant: variant.to_owned(),
            code: code.to_owned(),
        })
        .collect()
}
