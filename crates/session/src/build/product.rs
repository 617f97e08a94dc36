//! Which of the things that were compiled is the one that was asked for.

use crate::diagnostics::{Artifact, Messages};
use crate::{SessionCode, SessionError};
use flightproof_core::escape;
use flightproof_evidence::ProfileSettings;
use flightproof_frame::protocol::layout;

/// A compiled library.
pub(super) struct Library {
    pub(super) name: String,
    pub(super) rlib: String,
}

/// The path of a binary of the tree.
pub(super) fn binary(messages: &Messages, name: &str) -> Result<String, SessionError> {
    of_the_tree(messages)
        .filter(|a| a.target.is("bin") && a.target.name == name)
        .find_map(|a| a.executable.clone())
        .ok_or_else(|| {
            SessionCode::BuildProduct
                .refuse(format_args!("there is no binary {}", escape(name, 80)))
        })
}

/// The one library of the tree that was asked for. With several, the last one is it: cargo builds
/// what a package depends on before the package.
pub(super) fn library(messages: &Messages, package: Option<&str>) -> Result<Library, SessionError> {
    of_the_tree(messages)
        .filter(|a| ["lib", "rlib"].iter().any(|kind| a.target.is(kind)))
        .filter_map(|a| {
            let rlib = a.filenames.iter().find(|f| f.ends_with(".rlib"))?.clone();
            let name = a.target.name.replace('-', "_");
            Some(Library { name, rlib })
        })
        .last()
        .ok_or_else(|| {
            SessionCode::BuildProduct.refuse(format_args!(
                "{} has no library that a program can be linked with",
                package.map_or("the package".to_owned(), |p| escape(p, 80))
            ))
        })
}

/// Every program with tests of the tree: its path, the folder of its package, its target.
pub(super) fn tests(messages: &Messages) -> Vec<(String, String, String)> {
    let found = of_the_tree(messages).filter(|a| a.profile.test);
    let found = found.filter_map(|a| {
        let manifest = a.manifest_path.strip_prefix(layout::SOURCE)?;
        let folder = manifest.strip_suffix("Cargo.toml")?.trim_matches('/');
        let target = match a.target.kind.first().map(String::as_str) {
            Some("bin") => format!("bin {}", a.target.name),
            Some("test") => format!("test {}", a.target.name),
            _ => "lib".to_owned(),
        };
        Some((a.executable.clone()?, folder.to_owned(), target))
    });
    found.collect()
}

/// What the tree's manifest makes of the profile for the tree's own code, where it changes it at all.
pub(super) fn settings(messages: &Messages) -> Option<ProfileSettings> {
    let while_building = |a: &&Artifact| a.target.is("custom-build") || a.target.is("proc-macro");
    let mut judged = of_the_tree(messages).filter(|a| !while_building(a));
    judged.find_map(|a| a.profile.settings())
}

fn of_the_tree(messages: &Messages) -> impl Iterator<Item = &Artifact> {
    let tree = format!("{}/", layout::SOURCE);
    messages
        .artifacts
        .iter()
        .filter(move |a| a.manifest_path.starts_with(&tree))
}
