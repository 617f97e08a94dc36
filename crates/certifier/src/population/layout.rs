//! Which files are for tests only, as the tree says it: by cargo's own folders, or by a module
//! declared for tests. A name alone (`src/bin/tests.rs`) says nothing: cargo ships that program.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use flightproof_core::RelPath;
use syn::Item;

use crate::mutation::is_test_only;
use crate::tokens::with_parsed;
use crate::tree::{Tree, contains};

/// Folders of a package whose files are no part of what it ships.
const FOLDERS: &[&str] = &["tests", "benches", "examples"];

/// Deepest chain of modules that is followed. No hand-written tree has a tenth.
const MAX_DEPTH: usize = 32;

/// The modules that the files of one tree declare, and what its manifests make programs of. Each file
/// is read once however many files are asked for.
#[derive(Default)]
pub(crate) struct Modules {
    declared: RefCell<BTreeMap<String, Option<Vec<Module>>>>,
    targets: OnceCell<Vec<String>>,
}

/// A module that lies in a file of its own.
struct Module {
    name: String,
    for_tests: bool,
}

/// Whether a file of the package in `folder` is for tests only.
pub(super) fn is_tests(tree: &Tree<'_>, modules: &Modules, folder: &str, path: &RelPath) -> bool {
    let inner = path.as_str().strip_prefix(folder).unwrap_or(path.as_str());
    let first = inner.split('/').next().unwrap_or_default();
    let by_folder = FOLDERS.contains(&first) && first != inner;
    (by_folder && !modules.is_target(tree, path))
        || modules.is_for_tests(tree, path.as_str(), MAX_DEPTH)
}

/// The paths that the manifests of a tree give to libraries and programs.
fn targets(tree: &Tree<'_>) -> Vec<String> {
    let manifests = tree.files().filter(|(p, _)| p.ends_with("Cargo.toml"));
    let tables = manifests
        .filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok()?.parse::<toml::Table>().ok());
    let named = |table: toml::Table| {
        let bins = table.get("bin").and_then(toml::Value::as_array);
        let all = bins.into_iter().flatten().chain(table.get("lib"));
        let paths = all.filter_map(|target| target.get("path")?.as_str().map(str::to_owned));
        paths.collect::<Vec<_>>()
    };
    tables.flat_map(named).collect()
}

enum Declared {
    Not,
    ForTests,
    Plainly,
}

impl Modules {
    /// Whether a manifest makes a library or a program of this file.
    fn is_target(&self, tree: &Tree<'_>, path: &RelPath) -> bool {
        let targets = self.targets.get_or_init(|| targets(tree));
        targets
            .iter()
            .any(|target| target.ends_with(path.file_name()))
    }

    /// Whether every declaration of the file's module stands under a test condition, or in a file that
    /// is for tests itself.
    fn is_for_tests(&self, tree: &Tree<'_>, path: &str, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let Some(stem) = path.strip_suffix(".rs") else {
            return false;
        };
        // `a/mod.rs` is the module `a` of the folder above.
        let module = stem.strip_suffix("/mod").unwrap_or(stem);
        let Some((folder, name)) = module.rsplit_once('/') else {
            return false;
        };
        let mut found = false;
        for (parent, content) in tree.files() {
            let beside = parent
                .rsplit_once('/')
                .is_some_and(|(f, n)| f == folder && n.ends_with(".rs"));
            if parent == path || !(beside || parent.strip_suffix(".rs") == Some(folder)) {
                continue;
            }
            match self.declares(parent, content, name) {
                Declared::Not => {}
                Declared::ForTests => found = true,
                Declared::Plainly if self.is_for_tests(tree, parent, depth) => found = true,
                Declared::Plainly => return false,
            }
        }
        found
    }

    fn declares(&self, path: &str, content: &[u8], name: &str) -> Declared {
        // Most files do not even hold the name.
        if !contains(content, name) {
            return Declared::Not;
        }
        let mut read = self.declared.borrow_mut();
        let modules = match read.get(path) {
            Some(modules) => modules,
            None => read
                .entry(path.to_owned())
                .or_insert(declared(path, content)),
        };
        // What cannot be read might declare it.
        let Some(modules) = modules else {
            return Declared::Plainly;
        };
        let named: Vec<&Module> = modules.iter().filter(|m| m.name == name).collect();
        match named.as_slice() {
            [] => Declared::Not,
            all if all.iter().all(|module| module.for_tests) => Declared::ForTests,
            _ => Declared::Plainly,
        }
    }
}

/// The modules that a file declares; `None` if it cannot be read.
fn declared(path: &str, content: &[u8]) -> Option<Vec<Module>> {
    let Ok(path) = RelPath::new(path) else {
        return Some(Vec::new());
    };
    let modules = |file: &syn::File| {
        let modules = file.items.iter().filter_map(|item| match item {
            Item::Mod(node) if node.content.is_none() => Some(Module {
                name: node.ident.to_string(),
                for_tests: node.attrs.iter().any(is_test_only),
            }),
            _ => None,
        });
        modules.collect()
    };
    with_parsed(&path, content, modules).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(path: &str, others: &[(&str, &str)]) -> bool {
        let paths: Vec<RelPath> = others
            .iter()
            .map(|(p, _)| RelPath::new(p).unwrap())
            .collect();
        let contents = others.iter().map(|(_, content)| content.as_bytes());
        let tree: Tree<'_> = paths.iter().zip(contents).collect();
        is_tests(&tree, &Modules::default(), "", &RelPath::new(path).unwrap())
    }

    #[test]
    fn a_program_that_is_only_called_like_tests_is_none() {
        for path in [
            "src/bin/tests.rs",
            "src/bin/tests/main.rs",
            "src/a_test.rs",
            "src/tests/a.rs",
            "tests.rs",
        ] {
            assert!(
                !judged(path, &[("src/main.rs", "fn main() {}\n")]),
                "{path}"
            );
        }
        let shipped = (
            "Cargo.toml",
            "[[bin]]\nname = \"b\"\npath = \"tests/b.rs\"\n",
        );
        assert!(!judged("tests/b.rs", &[shipped]));
        assert!(judged("tests/c.rs", &[shipped]));
        assert!(judged("benches/c.rs", &[]));
    }

    #[test]
    fn a_module_is_for_tests_if_every_declaration_of_it_says_so() {
        let plain = ("src/main.rs", "mod tests;\n");
        let tests = ("src/lib.rs", "#[cfg(test)]\nmod tests;\n");
        assert!(judged("src/tests.rs", &[tests]));
        assert!(judged("src/tests/mod.rs", &[tests]));
        assert!(!judged("src/tests.rs", &[tests, plain]));
        assert!(!judged("src/tests.rs", &[plain]));
        let inner = ("src/tests.rs", "mod deep;\n");
        assert!(judged("src/tests/deep.rs", &[tests, inner]));
        assert!(!judged("src/tests/deep.rs", &[plain, inner]));
    }
}
