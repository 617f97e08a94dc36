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
    declared: RefCell<BTreeMap<String, Option<Declarations>>>,
    targets: OnceCell<Vec<String>>,
    /// The Rust files of each folder.
    folders: OnceCell<BTreeMap<String, Vec<String>>>,
    /// What was found of files, by how far their modules were followed. Two files may declare the
    /// same two, and these the next two: without it, every way through them is gone.
    known: RefCell<BTreeMap<(String, usize), bool>>,
}

/// Modules that lie in files of their own, by name: whether all declarations of it are for tests.
type Declarations = BTreeMap<String, bool>;

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
        let key = (path.to_owned(), depth);
        let known = self.known.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let found = self.are_for_tests(tree, path, depth);
            self.known.borrow_mut().insert(key, found);
            found
        })
    }

    /// Whether it is declared, and every declaration is for tests.
    fn are_for_tests(&self, tree: &Tree<'_>, path: &str, depth: usize) -> bool {
        let Some(stem) = path.strip_suffix(".rs") else {
            return false;
        };
        // `a/mod.rs` is the module `a` of the folder above.
        let module = stem.strip_suffix("/mod").unwrap_or(stem);
        let Some((folder, name)) = module.rsplit_once('/') else {
            return false;
        };
        let mut found = false;
        let beside = self.beside(tree, folder).iter();
        let above = format!("{folder}.rs");
        for parent in beside.chain([&above]).filter(|parent| *parent != path) {
            let Some(content) = tree.file(parent) else {
                continue;
            };
            match self.declares(parent, content, name) {
                Declared::Not => {}
                Declared::ForTests => found = true,
                Declared::Plainly if self.is_for_tests(tree, parent, depth) => found = true,
                Declared::Plainly => return false,
            }
        }
        found
    }

    /// The Rust files of a folder.
    fn beside(&self, tree: &Tree<'_>, folder: &str) -> &[String] {
        let folders = self.folders.get_or_init(|| {
            let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (path, _) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
                if let Some((folder, _)) = path.rsplit_once('/') {
                    let files = folders.entry(folder.to_owned()).or_default();
                    files.push(path.to_owned());
                }
            }
            folders
        });
        folders.get(folder).map_or(&[], Vec::as_slice)
    }

    fn declares(&self, path: &str, content: &[u8], name: &str) -> Declared {
        let mut read = self.declared.borrow_mut();
        // Most files do not even hold the name.
        if !matches!(read.get(path), Some(Some(_))) && !contains(content, name) {
            return Declared::Not;
        }
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
        match modules.get(name) {
            None => Declared::Not,
            Some(true) => Declared::ForTests,
            Some(false) => Declared::Plainly,
        }
    }
}

/// The modules that a file declares; `None` if it cannot be read.
fn declared(path: &str, content: &[u8]) -> Option<Declarations> {
    let Ok(path) = RelPath::new(path) else {
        return Some(Declarations::new());
    };
    let modules = |file: &syn::File| {
        let mut modules = Declarations::new();
        for item in &file.items {
            if let Item::Mod(node) = item
                && node.content.is_none()
            {
                let for_tests = node.attrs.iter().any(is_test_only);
                *modules.entry(node.ident.to_string()).or_insert(true) &= for_tests;
            }
        }
        modules
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

    #[test]
    fn files_that_declare_each_other_in_many_ways_are_followed_once() {
        let path = |layer: usize, file: &str| format!("src/x{layer}{file}.rs");
        let both = |attribute: &str, layer: usize| {
            ["a", "b"]
                .map(|file| format!("{attribute}mod x{layer}{file};\n"))
                .concat()
        };
        let mut files = vec![("src/lib.rs".to_owned(), both("#[cfg(test)]\n", 0))];
        for layer in 0..MAX_DEPTH {
            files.extend(["a", "b"].map(|file| (path(layer, file), both("", layer + 1))));
        }
        let files = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()));
        let files: Vec<(&str, &str)> = files.collect();
        assert!(judged(&path(MAX_DEPTH - 1, "a"), &files));
        // One level more than is followed.
        assert!(!judged(&path(MAX_DEPTH, "a"), &files));
    }
}
