//! From a captured change to the input of the mutation engine: which files, which lines, compiled
//! into what.

pub(crate) mod beside;
mod layout;

use crate::lines::{changed_data_lines, changed_lines, is_rust, touched_lines};
use crate::mutation::{EditedFile, FileRole, MutationInput, Purpose, abroad};
use crate::tree::Tree;
use flightproof_core::{Bytes, RelPath};
use flightproof_evidence::Change;
use layout::Modules;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::rc::Rc;

/// Version of the set of operators, on certificates.
pub(crate) const OPERATOR_SET: &str = "rust-6";

/// What mutants are made from.
pub(crate) fn input(changes: &[Change], tree: &Tree<'_>, seed: [u8; 32]) -> MutationInput {
    let mut files = Vec::new();
    let packages = Packages::of(tree);
    let mut beside = beside::unjudged(changes, tree);
    let mut roots = BTreeMap::new();
    for change in changes.iter().filter(|c| is_rust(&c.path)) {
        let Some(new) = &change.new else { continue };
        let package = packages.package(&change.path);
        if package.old_edition {
            roots.extend(package.roots(tree));
        }
        let old = change.old.as_ref().map(|old| &old.content[..]);
        files.push(EditedFile {
            path: change.path.clone(),
            text: new.content.clone(),
            old: change.old.as_ref().map(|old| old.content.clone()),
            lines: changed_lines(old, &new.content),
            role: packages.role(&change.path),
            features: package.features(tree),
        });
    }
    beside.extend(abroad::rebound(&files, tree));
    MutationInput {
        files,
        roots,
        beside,
        seed,
        purpose: Purpose::Gate,
    }
}

/// The lines of the new text that a change touched.
pub(crate) fn lines_of(change: &Change) -> BTreeSet<u32> {
    let Some(new) = &change.new else {
        return BTreeSet::new();
    };
    let old = change.old.as_ref().map(|old| &old.content[..]);
    if is_rust(&change.path) {
        touched_lines(old, &new.content)
    } else {
        changed_data_lines(old, &new.content)
    }
}

/// The package a file belongs to: that of the nearest manifest above it.
pub(crate) struct Package {
    folder: String,
    manifest: toml::Table,
    pub(crate) old_edition: bool,
}

impl Package {
    /// The package whose manifest lies in this folder (with a slash at its end, or empty).
    pub(crate) fn at(tree: &Tree<'_>, folder: &str) -> Option<Self> {
        let manifest = read_manifest(tree, folder)?;
        Some(Self {
            old_edition: is_old(&manifest),
            folder: folder.to_owned(),
            manifest,
        })
    }

    /// Its folder, with a slash at its end or empty.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Its name.
    pub(crate) fn name(&self) -> Option<&str> {
        self.manifest.get("package")?.get("name")?.as_str()
    }

    /// Whether the manifest names this file, relative to the folder, as the root of a library or
    /// program.
    pub(crate) fn names(&self, inner: &str) -> bool {
        let bins = self.manifest.get("bin").and_then(toml::Value::as_array);
        let targets = bins.into_iter().flatten().chain(self.manifest.get("lib"));
        let mut paths = targets.filter_map(|target| target.get("path")?.as_str());
        paths.any(|path| path.trim_start_matches("./") == inner)
    }

    /// The features that every build of the package has: those behind `default`, unless anything in
    /// the tree turns defaults off.
    fn features(&self, tree: &Tree<'_>) -> BTreeSet<String> {
        let manifests = tree.files().filter(|(p, _)| p.ends_with("Cargo.toml"));
        let mut texts = manifests.map(|(_, content)| String::from_utf8_lossy(content));
        if texts.any(|text| text.contains("default-features") || text.contains("default_features"))
        {
            return BTreeSet::new();
        }
        let table = self
            .manifest
            .get("features")
            .and_then(toml::Value::as_table);
        let mut found = BTreeSet::new();
        let mut open = vec!["default".to_owned()];
        while let Some(name) = open.pop() {
            let behind = table.and_then(|table| table.get(&name)?.as_array());
            let names = behind.into_iter().flatten().filter_map(toml::Value::as_str);
            if found.insert(name) {
                open.extend(names.map(str::to_owned));
            }
        }
        found
    }

    pub(crate) fn of(tree: &Tree<'_>, path: &RelPath) -> Self {
        let mut folder = path.parent();
        loop {
            let prefix = folder.map_or_else(String::new, |f| format!("{f}/"));
            if let Some(manifest) = read_manifest(tree, &prefix) {
                return Self {
                    old_edition: is_old(&manifest),
                    folder: prefix,
                    manifest,
                };
            }
            let Some(inner) = folder else {
                return Self {
                    folder: String::new(),
                    manifest: toml::Table::new(),
                    old_edition: true,
                };
            };
            folder = inner.rsplit_once('/').map(|(outer, _)| outer);
        }
    }

    /// What this file of the package is compiled into.
    pub(crate) fn role(&self, tree: &Tree<'_>, path: &RelPath) -> FileRole {
        self.role_among(tree, &Modules::default(), path)
    }

    fn role_among(&self, tree: &Tree<'_>, modules: &Modules, path: &RelPath) -> FileRole {
        let inner = path
            .as_str()
            .strip_prefix(&self.folder)
            .unwrap_or(path.as_str());
        let package = self.manifest.get("package").and_then(toml::Value::as_table);
        let script = package
            .and_then(|p| p.get("build"))
            .and_then(toml::Value::as_str)
            .unwrap_or("build.rs");
        let macros = self
            .manifest
            .get("lib")
            .and_then(toml::Value::as_table)
            .is_some_and(|lib| {
                ["proc-macro", "proc_macro"]
                    .iter()
                    .any(|key| lib.get(*key).and_then(toml::Value::as_bool) == Some(true))
            });
        if macros || inner == script {
            FileRole::BuildTime
        } else if layout::is_tests(tree, modules, &self.folder, path) {
            FileRole::Tests
        } else {
            FileRole::Program
        }
    }

    /// The files that may be roots of the package's crates.
    pub(crate) fn roots(&self, tree: &Tree<'_>) -> BTreeMap<RelPath, Bytes> {
        let named = |table: &toml::Value| {
            table
                .get("path")
                .and_then(toml::Value::as_str)
                .map(ToOwned::to_owned)
        };
        let mut inner: BTreeSet<String> =
            ["src/lib.rs", "src/main.rs"].map(ToOwned::to_owned).into();
        inner.extend(self.manifest.get("lib").and_then(named));
        let bins = self.manifest.get("bin").and_then(toml::Value::as_array);
        inner.extend(bins.into_iter().flatten().filter_map(named));
        let mut roots: BTreeMap<RelPath, Bytes> = BTreeMap::new();
        for file in inner {
            let path = format!("{}{}", self.folder, file.trim_start_matches("./"));
            roots.extend(tree.file(&path).and_then(|bytes| root(&path, bytes)));
        }
        let folder = format!("{}src/bin/", self.folder);
        let bins = tree
            .files()
            .filter(|(path, _)| path.starts_with(&folder) && path.ends_with(".rs"));
        roots.extend(bins.filter_map(|(path, bytes)| root(path, bytes)));
        roots
    }
}

/// The packages of one tree, for questions about many of its files.
pub(crate) struct Packages<'a> {
    tree: &'a Tree<'a>,
    modules: Modules,
    by_folder: RefCell<BTreeMap<String, Rc<Package>>>,
}

impl<'a> Packages<'a> {
    pub(crate) fn of(tree: &'a Tree<'a>) -> Self {
        Self {
            tree,
            modules: Modules::default(),
            by_folder: RefCell::default(),
        }
    }

    /// What a file is compiled into.
    pub(crate) fn role(&self, path: &RelPath) -> FileRole {
        let package = self.package(path);
        package.role_among(self.tree, &self.modules, path)
    }

    /// The package a file belongs to.
    pub(crate) fn package(&self, path: &RelPath) -> Rc<Package> {
        let folder = path.parent().unwrap_or_default().to_owned();
        match self.by_folder.borrow_mut().entry(folder) {
            Entry::Occupied(known) => Rc::clone(known.get()),
            Entry::Vacant(place) => Rc::clone(place.insert(Rc::new(Package::of(self.tree, path)))),
        }
    }
}

fn root(path: &str, bytes: &[u8]) -> Option<(RelPath, Bytes)> {
    RelPath::new(path)
        .ok()
        .map(|path| (path, Bytes::from(bytes)))
}

fn read_manifest(tree: &Tree<'_>, prefix: &str) -> Option<toml::Table> {
    let bytes = tree.file(&format!("{prefix}Cargo.toml"))?;
    let manifest: toml::Table = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    manifest.contains_key("package").then_some(manifest)
}

/// Edition 2015: said, or by default. An inherited edition is that of a workspace, which newer
/// editions came with.
fn is_old(manifest: &toml::Table) -> bool {
    match manifest.get("package").and_then(|p| p.get("edition")) {
        None => true,
        Some(edition) => edition.as_str() == Some("2015"),
    }
}
