//! Which part of a trusted tree is surveyed: packages, files, lines.

use crate::lines::{changed_lines, is_rust};
use crate::mutation::{EditedFile, FileRole, MutationInput, Purpose};
use crate::population::Package;
use crate::tree::Tree;
use flightproof_core::{Bytes, RelPath};
use std::collections::{BTreeMap, BTreeSet};

/// A package of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its folder with a slash at the end; empty at the top of the tree.
    pub folder: String,
}

/// Every package of a tree, those nearest to its top first.
pub fn members(tree: &Tree<'_>) -> Vec<Member> {
    let folders = tree
        .files()
        .filter_map(|(path, _)| path.strip_suffix("Cargo.toml"))
        .filter(|folder| folder.is_empty() || folder.ends_with('/'));
    let mut found: Vec<Member> = folders
        .filter_map(|folder| {
            let name = Package::at(tree, folder)?.name()?.to_owned();
            let folder = folder.to_owned();
            Some(Member { name, folder })
        })
        .collect();
    found.sort_by_key(|member| (member.folder.matches('/').count(), member.clone()));
    found
}

/// What of a tree is surveyed.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The tree.
    pub tree: &'a Tree<'a>,
    /// Packages whose programs are mutated.
    pub packages: &'a [Member],
    /// Only these files, or all.
    pub files: &'a [RelPath],
    /// Only lines that differ from this tree's, or all.
    pub baseline: Option<&'a Tree<'a>>,
    /// Entropy.
    pub seed: [u8; 32],
}

impl Scope<'_> {
    /// What mutants are made from. Tests and build scripts are no part of it.
    pub fn input(&self) -> MutationInput {
        let mut files = Vec::new();
        let mut roots = BTreeMap::new();
        for member in self.packages {
            let Some(package) = Package::at(self.tree, &member.folder) else {
                continue;
            };
            if package.old_edition {
                roots.extend(package.roots(self.tree));
            }
            files.extend(self.sources(&package));
        }
        MutationInput {
            files,
            roots,
            beside: Vec::new(),
            seed: self.seed,
            purpose: Purpose::Survey,
        }
    }

    /// The program's files of one package.
    fn sources(&self, package: &Package) -> Vec<EditedFile> {
        let candidates = self.tree.files().filter_map(|(path, text)| {
            let inner = path.strip_prefix(package.folder())?;
            let path = RelPath::new(path).ok().filter(is_rust)?;
            let named = self.files.is_empty() || self.files.contains(&path);
            // A folder in between with a manifest of its own is another package.
            let own = named
                && (inner.starts_with("src/") || package.names(inner))
                && Package::of(self.tree, &path).folder() == package.folder();
            let role = FileRole::Program;
            (own && package.role(self.tree, &path) == role).then_some((path, text))
        });
        let edited = candidates.filter_map(|(path, text)| {
            let lines = self.lines(&path, text);
            (!lines.is_empty()).then(|| EditedFile {
                old: Some(self.old(&path).unwrap_or(text).into()),
                text: Bytes::from(text),
                lines,
                path,
                role: FileRole::Program,
                features: BTreeSet::new(),
            })
        });
        edited.collect()
    }

    fn old(&self, path: &RelPath) -> Option<&[u8]> {
        self.baseline.and_then(|tree| tree.file(path.as_str()))
    }

    fn lines(&self, path: &RelPath, text: &[u8]) -> BTreeSet<u32> {
        if self.baseline.is_some() {
            return changed_lines(self.old(path), text);
        }
        let last = text.iter().filter(|byte| **byte == b'\n').count() + 1;
        (1..=u32::try_from(last).unwrap_or(u32::MAX)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n"),
        (
            "a/Cargo.toml",
            "[package]\nname = \"a\"\nedition = \"2021\"\n",
        ),
        ("a/build.rs", "fn main() {}\n"),
        (
            "a/src/lib.rs",
            "mod b;\n#[cfg(test)]\nmod tests;\npub fn f() -> u8 {\n    1\n}\n",
        ),
        ("a/src/b.rs", "fn g() {}\n"),
        ("a/src/tests.rs", "fn t() {}\n"),
        ("a/tests/t.rs", "fn t() {}\n"),
        (
            "a/src/inner/Cargo.toml",
            "[package]\nname = \"inner\"\nedition = \"2021\"\n",
        ),
        ("a/src/inner/src/lib.rs", "fn h() {}\n"),
    ];

    fn sources(files: &[RelPath], baseline: Option<&[(&str, &str)]>) -> Vec<(String, Vec<u32>)> {
        let paths = |list: &[(&str, &str)]| -> Vec<RelPath> {
            list.iter()
                .map(|(path, _)| RelPath::new(path).unwrap())
                .collect()
        };
        let here = paths(FILES);
        let tree: Tree<'_> = here
            .iter()
            .zip(FILES.iter().map(|(_, t)| t.as_bytes()))
            .collect();
        let there = baseline.map(paths).unwrap_or_default();
        let old = baseline
            .unwrap_or_default()
            .iter()
            .map(|(_, t)| t.as_bytes());
        let old: Tree<'_> = there.iter().zip(old).collect();
        let packages: Vec<Member> = members(&tree)
            .into_iter()
            .filter(|m| m.name == "a")
            .collect();
        let scope = Scope {
            tree: &tree,
            packages: &packages,
            files,
            baseline: baseline.map(|_| &old),
            seed: [1; 32],
        };
        let input = scope.input();
        assert_eq!(input.purpose, Purpose::Survey);
        let files = input.files.into_iter();
        files
            .map(|f| (f.path.to_string(), f.lines.into_iter().collect()))
            .collect()
    }

    #[test]
    fn the_program_of_a_package_is_surveyed_and_its_tests_scripts_and_inner_packages_are_not() {
        let found = sources(&[], None);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["a/src/b.rs", "a/src/lib.rs"]);
        assert_eq!(found[0].1, [1, 2]);
        let only = RelPath::new("a/src/b.rs").unwrap();
        assert_eq!(sources(&[only], None).len(), 1);
    }

    #[test]
    fn against_a_baseline_only_changed_lines_are_surveyed() {
        let mut old = FILES.to_vec();
        old[3].1 = "mod b;\n#[cfg(test)]\nmod tests;\npub fn f() -> u8 {\n    2\n}\n";
        assert_eq!(
            sources(&[], Some(&old)),
            [("a/src/lib.rs".to_owned(), vec![5])]
        );
        assert!(sources(&[], Some(FILES)).is_empty());
    }
}
