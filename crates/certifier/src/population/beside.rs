//! What changes the program without being a line of its source: source files that are gone, keys of
//! a manifest, data compiled in, data read by a build script.

use std::collections::{BTreeMap, BTreeSet};

use flightproof_core::{Digest, RelPath};
use flightproof_evidence::{Change, FileState};
use toml::{Table, Value};

use crate::classes::page_code;
use crate::dependency;
use crate::fence::Takers;
use crate::flat::{Kind, flatten};
use crate::lines::is_rust;
use crate::mutation::{FileRole, INERT, PageCode, Silence, Unjudged};
use crate::population::Packages;
use crate::scan::scan;
use crate::tokens::with_tokens;
use crate::tree::Tree;

/// Keys that describe a package and decide nothing about what is built of it, unless the program or a
/// build script reads them.
const DESCRIPTIONS: &[&str] = &[
    "version",
    "authors",
    "description",
    "documentation",
    "readme",
    "homepage",
    "repository",
    "license",
    "license-file",
    "keywords",
    "categories",
    "exclude",
    "include",
    "rust-version",
];

pub(super) fn unjudged(changes: &[Change], tree: &Tree<'_>) -> Vec<Unjudged> {
    let (rust, others): (Vec<_>, Vec<_>) = changes.iter().partition(|change| is_rust(&change.path));
    let packages = Packages::of(tree);
    let gone = rust
        .iter()
        .filter(|change| is_gone(change, changes, &packages));
    let mut out: Vec<Unjudged> = gone
        .map(|change| one(change, Silence::Removed, String::new()))
        .collect();
    out.extend(lost_tests(&rust, &packages));
    let scripts = Scripts::of(tree);
    let takers = Takers::of(tree);
    for change in others {
        let name = change.path.file_name();
        if name.eq_ignore_ascii_case("Cargo.toml") && !takers.compile_in(name) {
            let mut keys = manifest_keys(change);
            let scripted = scripts.are_above(&change.path);
            keys.retain(|key| match key.strip_prefix("package.") {
                Some(key) if DESCRIPTIONS.contains(&key) => scripted || is_value(tree, key),
                _ => true,
            });
            let place = one(change, Silence::Manifest, String::new());
            out.extend(keys.into_iter().map(|what| Unjudged {
                what,
                ..place.clone()
            }));
        } else if takers.compile_in(name)
            || !name.eq_ignore_ascii_case("Cargo.lock")
                && (scripts.climb || scripts.are_above(&change.path))
        {
            out.push(compiled_data(change));
        } else if page_code(change, &takers) == Some(PageCode::Acting) {
            out.push(one(change, Silence::Effect, String::new()));
        }
    }
    out
}

/// Whether a source file is gone or emptied, and what it implemented with it. One that moved is not, and
/// one for tests implements nothing.
fn is_gone(change: &Change, changes: &[Change], packages: &Packages<'_>) -> bool {
    let has_code = |state: &Option<FileState>| {
        let content = state.as_ref().map(|state| &*state.content);
        content.is_some_and(|content| scan(content).lines.iter().any(|line| line.has_code))
    };
    // Emptied is gone as well, and what had no code has lost none.
    let Some(old) = change.old.as_ref().filter(|_| !has_code(&change.new)) else {
        return false;
    };
    let role = |path: &RelPath| packages.role(path);
    let moved = |other: &Change| {
        let new = other.new.as_ref();
        other.old.is_none()
            && is_rust(&other.path)
            && new.is_some_and(|new| new.content == old.content)
            && role(&other.path) == role(&change.path)
    };
    has_code(&change.old) && !changes.iter().any(moved) && role(&change.path) != FileRole::Tests
}

/// Files with fewer tests than before, where the change as a whole leaves fewer.
fn lost_tests(rust: &[&Change], packages: &Packages<'_>) -> Vec<Unjudged> {
    let counted = |change: &Change| {
        let count = |state: &Option<FileState>| {
            let state = state.as_ref();
            let tests = packages.role(&change.path) == FileRole::Tests;
            let tests_in = |state: &FileState| tests_in(&change.path, &state.content, tests);
            state.map_or(0, tests_in)
        };
        (count(&change.old), count(&change.new))
    };
    let counts: Vec<(usize, usize)> = rust.iter().map(|change| counted(change)).collect();
    let (old, new) = counts
        .iter()
        .fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    let fewer = rust.iter().zip(&counts);
    let fewer = fewer.filter(|(_, (before, now))| new < old && now < before);
    fewer
        .map(|(change, _)| one(change, Silence::Removed, "tests".to_owned()))
        .collect()
}

/// Attributes that end with a name of a test: `#[test]`, `#[tokio::test(…)]`, `#[rstest]`. In a file
/// of tests every other that a macro may make tests of: `#[case(…)]`. None in what cannot be read.
fn tests_in(path: &RelPath, content: &[u8], in_tests: bool) -> usize {
    let count = |tokens| {
        let tokens = flatten(tokens);
        let opens = tokens.windows(2).enumerate().filter(|(_, pair)| {
            pair.iter()
                .map(|token| &token.kind)
                .eq([&Kind::Operator('#'), &Kind::Open('[')])
        });
        let path = |at: usize| {
            let inside = tokens.get(at + 2..).unwrap_or_default().iter();
            inside
                .take_while(|token| matches!(token.kind, Kind::Name(_) | Kind::Operator(':')))
                .last()
        };
        opens
            .filter(|(at, _)| path(*at).is_some_and(|last| is_test(&last.text(), in_tests)))
            .count()
    };
    with_tokens(path, content, count).unwrap_or(0)
}

fn is_test(attribute: &str, in_tests: bool) -> bool {
    let made = in_tests && attribute != "cfg" && !INERT.contains(&attribute);
    attribute.contains("test") || made
}

/// Data that a build turned out to read.
pub(crate) fn compiled_data(change: &Change) -> Unjudged {
    one(change, Silence::CompiledData, String::new())
}

fn one(change: &Change, why: Silence, what: String) -> Unjudged {
    let state = change.new.as_ref().or(change.old.as_ref());
    let content = state.map_or(&[][..], |state| &state.content);
    Unjudged {
        file: change.path.clone(),
        line: 0,
        why,
        what,
        source: Digest::of(content),
    }
}

/// The sections and keys of a manifest that differ and may decide about the program.
fn manifest_keys(change: &Change) -> BTreeSet<String> {
    let table = |state: &Option<FileState>| {
        let text = std::str::from_utf8(&state.as_ref()?.content).ok()?;
        text.parse::<Table>().ok()
    };
    let (old, new) = (
        table(&change.old).unwrap_or_default(),
        table(&change.new).unwrap_or_default(),
    );
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut out = BTreeSet::new();
    for name in names {
        let (was, is) = (old.get(name), new.get(name));
        if was == is || name == "badges" {
            continue;
        }
        match (
            name.as_str(),
            was.and_then(Value::as_table),
            is.and_then(Value::as_table),
        ) {
            ("package", was, is) => {
                let (none, nothing) = (Table::new(), Table::new());
                let (was, is) = (was.unwrap_or(&none), is.unwrap_or(&nothing));
                let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
                let keys = keys.into_iter().filter(|key| was.get(*key) != is.get(*key));
                out.extend(keys.map(|key| format!("package.{key}")));
            }
            ("dependencies" | "dev-dependencies", was, is) => {
                let (none, nothing) = (Table::new(), Table::new());
                if details(was.unwrap_or(&none)) != details(is.unwrap_or(&nothing)) {
                    out.insert(name.clone());
                }
            }
            _ => {
                out.insert(name.clone());
            }
        }
    }
    out
}

/// What each dependency says beside its version: features, another name, another place.
fn details(dependencies: &Table) -> BTreeMap<&String, BTreeMap<&String, &Value>> {
    let said = dependencies.iter().filter_map(|(name, value)| {
        let keys = value.as_table()?.iter();
        let details: BTreeMap<_, _> = keys.filter(|(key, _)| *key != "version").collect();
        (!details.is_empty()).then_some((name, details))
    });
    said.collect()
}

/// Whether a Rust file of the tree reads a key that cargo hands to the compiler: by its name, or by
/// one that the text does not say.
fn is_value(tree: &Tree<'_>, key: &str) -> bool {
    let wanted = format!("CARGO_PKG_{}", key.to_uppercase().replace('-', "_"));
    let mut texts = tree
        .files()
        .filter(|(path, _)| path.ends_with(".rs"))
        .map(|(_, content)| String::from_utf8_lossy(content));
    texts.any(|text| {
        let mut calls = text.split("env!").skip(1);
        let unseen = |call: &str| {
            let call = call.trim_start().trim_start_matches(['(', '[', '{']);
            !call.trim_start().starts_with('"')
        };
        text.contains(&wanted) || calls.any(unseen)
    })
}

/// The build scripts of a tree: they may read any data of their packages.
struct Scripts<'a> {
    /// Folders of packages that have one, with a slash at the end, or empty.
    folders: BTreeSet<&'a str>,
    /// One of them looks beyond its package: it may read any data there is.
    climb: bool,
}

impl<'a> Scripts<'a> {
    fn of(tree: &Tree<'a>) -> Self {
        let (folders, named): (BTreeSet<&str>, BTreeSet<String>) =
            dependency::build_scripts(tree).unzip();
        let is_one =
            |path: &str| named.contains(path) || path == "build.rs" || path.ends_with("/build.rs");
        let scripts = tree.files().filter(|(path, _)| is_one(path));
        let mut texts = scripts.map(|(_, content)| String::from_utf8_lossy(content));
        let climb = texts.any(|text| {
            ["\"..", "/..", "parent(", "ancestors("]
                .iter()
                .any(|up| text.contains(up))
        });
        Self { folders, climb }
    }

    /// Whether a package whose folder holds the file has one.
    fn are_above(&self, path: &RelPath) -> bool {
        let path = path.as_str();
        let slashes = path.match_indices('/').map(|(at, _)| at + 1);
        let mut folders = slashes.filter_map(|end| path.get(..end));
        self.folders.contains("") || folders.any(|folder| self.folders.contains(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::change;

    const MANIFEST: &str =
        "[package]\nname = \"a\"\nversion = \"1.0.0\"\n[dependencies]\nx = \"1\"\n";

    fn named(path: &str, old: &str, new: &str, others: &[(&str, &str)]) -> Vec<String> {
        let change = change(path, Some(old.as_bytes()), Some(new.as_bytes()));
        let paths: Vec<RelPath> = others
            .iter()
            .map(|(p, _)| RelPath::new(p).unwrap())
            .collect();
        let contents = others.iter().map(|(_, content)| content.as_bytes());
        let tree: Tree<'_> = paths.iter().zip(contents).collect();
        let found = unjudged(&[change], &tree);
        found.iter().map(Unjudged::id).collect()
    }

    #[test]
    fn keys_of_a_manifest_that_decide_what_is_built_are_named_and_descriptions_are_not() {
        for (more, key) in [
            ("[profile.release]\noverflow-checks = false\n", "profile"),
            ("[features]\ndefault = [\"evil\"]\n", "features"),
            ("[[bin]]\nname = \"b\"\npath = \"tests/b.rs\"\n", "bin"),
            ("[lib]\npath = \"src/other.rs\"\n", "lib"),
            ("[target.'cfg(unix)'.dependencies]\nx = \"1\"\n", "target"),
            ("[workspace]\nmembers = [\"b\"]\n", "workspace"),
            ("[lints.rust]\nunused = \"deny\"\n", "lints"),
        ] {
            let new = format!("{MANIFEST}{more}");
            let expected = [format!("Cargo.toml unjudged manifest {key}")];
            assert_eq!(named("Cargo.toml", MANIFEST, &new, &[]), expected);
        }
        for (from, to, key) in [
            ("1.0.0\"", "1.0.0\"\nedition = \"2024\"", "package.edition"),
            ("1.0.0\"", "1.0.0\"\nautobins = false", "package.autobins"),
            ("1.0.0\"", "1.0.0\"\npublish = true", "package.publish"),
            (
                "1.0.0\"",
                "1.0.0\"\nmetadata.release.hook = [\"sh\"]",
                "package.metadata",
            ),
            (
                "x = \"1\"",
                "x = { version = \"1\", features = [\"f\"] }",
                "dependencies",
            ),
            (
                "x = \"1\"",
                "x = { version = \"1\", package = \"y\" }",
                "dependencies",
            ),
        ] {
            let new = MANIFEST.replace(from, to);
            let expected = [format!("Cargo.toml unjudged manifest {key}")];
            assert_eq!(named("Cargo.toml", MANIFEST, &new, &[]), expected);
        }
        for (from, to) in [
            ("1.0.0", "1.0.1"),
            ("1.0.0\"", "1.0.0\"\ndescription = \"d\""),
            ("x = \"1\"", "x = \"1.2\""),
        ] {
            let new = MANIFEST.replace(from, to);
            assert_eq!(named("Cargo.toml", MANIFEST, &new, &[]), [""; 0]);
        }
    }

    #[test]
    fn tests_that_a_change_takes_away_are_named_and_those_it_moves_are_not() {
        let two = "#[test]\nfn a() {}\n#[tokio::test]\nfn b() {}\n";
        let one = "#[test]\nfn a() {}\n";
        let place = ["tests/a.rs unjudged removed tests"];
        assert_eq!(named("tests/a.rs", two, one, &[]), place);
        assert_eq!(
            named("tests/a.rs", one, "// #[test]\nfn a() {}\n", &[]),
            place
        );
        assert_eq!(named("tests/a.rs", one, two, &[]), [""; 0]);
        let table = "#[rstest]\n#[case(1)]\n#[case(2)]\nfn a(#[case] b: u8) {}\n";
        assert_eq!(named("tests/a.rs", table, "// None.\n", &[]), place);
        let fewer = table.replace("#[case(2)]\n", "");
        assert_eq!(named("tests/a.rs", table, &fewer, &[]), place);
        let moved = [
            change("tests/a.rs", Some(two.as_bytes()), None),
            change("tests/b.rs", None, Some(two.as_bytes())),
        ];
        assert_eq!(unjudged(&moved, &std::iter::empty().collect()), []);
        let gone = [change("tests/a.rs", Some(two.as_bytes()), None)];
        assert_eq!(unjudged(&gone, &std::iter::empty().collect()).len(), 1);
    }

    #[test]
    fn a_description_that_the_program_reads_is_named() {
        let new = MANIFEST.replace("1.0.0\"", "1.0.0\"\ndescription = \"d\"");
        let reads = |text: &str| named("Cargo.toml", MANIFEST, &new, &[("src/lib.rs", text)]);
        let place = ["Cargo.toml unjudged manifest package.description"];
        assert_eq!(
            reads("const D: &str = env!(\"CARGO_PKG_DESCRIPTION\");\n"),
            place
        );
        let spelled = "const D: &str = env!(concat!(\"CARGO_PKG_\", \"DESCRIPTION\"));\n";
        assert_eq!(reads(spelled), place);
        assert_eq!(
            reads("const D: &str = env!(\"CARGO_PKG_VERSION\");\n"),
            [""; 0]
        );
        let script = [("Cargo.toml", MANIFEST), ("build.rs", "fn main() {}\n")];
        assert_eq!(named("Cargo.toml", MANIFEST, &new, &script), place);
        let whole = "const M: &str = include_str!(\"../Cargo.toml\");\n";
        assert_eq!(reads(whole), ["Cargo.toml unjudged compiled-data"]);
        let lock = [(
            "src/lib.rs",
            "const L: &str = include_str!(\"../Cargo.lock\");\n",
        )];
        let lock = named("Cargo.lock", "a\n", "b\n", &lock);
        assert_eq!(lock, ["Cargo.lock unjudged compiled-data"]);
    }

    #[test]
    fn data_that_becomes_part_of_the_program_is_named_and_other_data_is_not() {
        let value = (
            "src/lib.rs",
            "const T: &str = include_str!(\"../rates.csv\");\n",
        );
        let text = ("src/lib.rs", "#![doc = include_str!(\"../README.md\")]\n");
        let script = [("Cargo.toml", MANIFEST), ("build.rs", "fn main() {}\n")];
        let named = |path, others: &[_]| named(path, "a\n", "b\n", others);
        assert_eq!(
            named("rates.csv", &[value]),
            ["rates.csv unjudged compiled-data"]
        );
        assert_eq!(named("other.csv", &[value]), [""; 0]);
        assert_eq!(named("README.md", &[text]), [""; 0]);
        assert_eq!(
            named("data/x.txt", &script),
            ["data/x.txt unjudged compiled-data"]
        );
        assert_eq!(named("data/x.txt", &script[..1]), [""; 0]);
        // A script of another package that looks around, whatever it is called.
        let climbs = "fn main() { read(\"../../data/x.txt\"); }\n";
        let called = |script: &str| {
            let manifest = format!("[package]\nname = \"b\"\nbuild = \"{script}\"\n");
            let path = format!("tools/b/{script}");
            let files = [("tools/b/Cargo.toml", &*manifest), (&*path, climbs)];
            super::tests::named("data/x.txt", "a\n", "b\n", &files)
        };
        for script in ["build.rs", "make.rs", "src/gen.rs"] {
            let found = called(script);
            assert_eq!(found, ["data/x.txt unjudged compiled-data"], "{script}");
        }
        let beside = [("tools/b/src/gen.rs", climbs)];
        assert_eq!(named("data/x.txt", &beside), [""; 0]);
    }
}
