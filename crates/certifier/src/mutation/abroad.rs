//! Declarations that give unchanged code of other files another meaning.

use std::collections::BTreeSet;

use flightproof_core::{Bytes, Digest, RelPath};

use super::names::{Change, Uses, changes_of, takes_everything, unchanged_uses};
use super::plan::{EditedFile, FileRole, Unjudged};
use super::survey::{LineIndex, Silence};
use super::text::split_prefix;
use crate::population::{Modules, Package};
use crate::tokens::{with_parsed, with_tokens};
use crate::tree::Tree;

/// What the changed files declare or no longer declare and unchanged lines of other files could
/// name: a function or method by calling it, anything else where the tree imports everything of a
/// module.
pub(crate) fn rebound(files: &[EditedFile], tree: &Tree<'_>) -> Vec<Unjudged> {
    let edited = files.iter().filter(|file| file.role == FileRole::Program);
    let changes: Vec<(&EditedFile, Vec<Change>)> = edited
        .map(|file| (file, changes_of(file)))
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    // What moved to another file is judged there.
    let came: BTreeSet<&str> = changes
        .iter()
        .flat_map(|(_, changes)| changes)
        .filter(|change| change.added)
        .map(|change| change.key.as_str())
        .collect();
    // Which files are part of a program takes reading what declares them: once for all changes.
    let (mut parts, mut importing, mut used) = (None, None, None);
    let mut out = Vec::new();
    for (file, changes) in &changes {
        for change in changes {
            if !change.added && came.contains(change.key.as_str()) {
                continue;
            }
            let parts = parts.get_or_insert_with(|| programs(tree));
            let everything = *importing.get_or_insert_with(|| imports_everything(parts));
            if !change.method && !everything {
                continue;
            }
            let used = used.get_or_insert_with(|| all_uses(files, parts));
            let mut others = used.iter().filter(|(path, _)| *path != file.path);
            if others.any(|(_, used)| used.as_ref().is_none_or(|used| change.is_in(used))) {
                out.push(Unjudged {
                    file: file.path.clone(),
                    line: change.line,
                    why: match change.added {
                        true => Silence::Rebound,
                        false => Silence::Removed,
                    },
                    what: String::new(),
                    source: Digest::of(&file.text),
                });
            }
        }
    }
    out
}

/// The Rust files of the tree that may be part of a program.
fn programs<'a>(tree: &'a Tree<'_>) -> Vec<(RelPath, &'a [u8])> {
    let modules = Modules::default();
    let rust = tree.files().filter(|(path, _)| path.ends_with(".rs"));
    rust.filter_map(|(path, content)| Some((RelPath::new(path).ok()?, content)))
        .filter(|(path, _)| {
            Package::of(tree, path).role_among(tree, &modules, path) != FileRole::Tests
        })
        .collect()
}

/// Whether a module of the tree imports everything of another. A file that cannot be read may.
fn imports_everything(parts: &[(RelPath, &[u8])]) -> bool {
    parts.iter().any(|(path, content)| {
        let Ok(text) = std::str::from_utf8(content) else {
            return true;
        };
        let (_, body) = split_prefix(text);
        text.contains("use")
            && text.contains('*')
            && with_parsed(path, body.as_bytes(), |parsed| {
                takes_everything(body, parsed)
            })
            .unwrap_or(true)
    })
}

/// The names on unchanged lines of every file that may be part of a program; `None` where a file
/// cannot be read.
fn all_uses(files: &[EditedFile], parts: &[(RelPath, &[u8])]) -> Vec<(RelPath, Option<Uses>)> {
    parts
        .iter()
        .map(|(path, content)| {
            let edited = files.iter().find(|file| file.path == *path).cloned();
            let file = edited.unwrap_or_else(|| EditedFile {
                path: path.clone(),
                text: Bytes::from(*content),
                old: None,
                lines: BTreeSet::new(),
                role: FileRole::Program,
                features: BTreeSet::new(),
            });
            (path.clone(), uses(&file))
        })
        .collect()
}

fn uses(file: &EditedFile) -> Option<Uses> {
    let (_, body) = split_prefix(std::str::from_utf8(&file.text).ok()?);
    let index = LineIndex::of(body);
    with_tokens(&file.path, body.as_bytes(), |tokens| {
        unchanged_uses(file, &tokens, &index)
    })
    .ok()
}
