//! What somebody may have meant who named something that is not there.

use crate::regular::shown;
use flightproof_core::{Code as _, Refusal, escape};
use flightproof_importer::{Git, Host, ImporterCode};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

/// How alike two names must be for one to stand for the other: a letter or a word more or less.
const ALIKE: f64 = 0.85;
/// Most names that are told.
const MAX_TOLD: usize = 3;
/// Most names that are looked at: a folder may have a million files.
const MAX_KNOWN: usize = 10_000;
/// Longest name that is compared, bytes: what is compared takes the product of both lengths.
const MAX_NAME: usize = 256;

/// Those of the known whose names are nearest to a word, the nearest first.
pub(crate) fn nearest<N: AsRef<str>, T>(
    word: &str,
    known: impl IntoIterator<Item = (N, T)>,
) -> Vec<T> {
    let alike = |name: &str| match name.len().max(word.len()) {
        0..=MAX_NAME => strsim::jaro_winkler(name, word),
        _ => 0.0,
    };
    let known = known.into_iter().take(MAX_KNOWN);
    let mut found: Vec<(f64, T)> = known
        .map(|(name, meant)| (alike(name.as_ref()), meant))
        .filter(|(alike, _)| (ALIKE..1.0).contains(alike))
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
        .into_iter()
        .map(|(_, meant)| meant)
        .take(MAX_TOLD)
        .collect()
}

/// `; did you mean a or b?`, or nothing where no name is near.
pub(crate) fn question<N: AsRef<str>>(word: &str, known: impl IntoIterator<Item = N>) -> String {
    let known = known.into_iter().map(|name| {
        let told = escape(name.as_ref(), MAX_NAME);
        (name, told)
    });
    match nearest(word, known).as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}

/// Why a file cannot be read, with the names beside it that may have been meant.
pub(crate) fn unread(path: &Path, error: &std::io::Error) -> String {
    let told = format!("{}: {error}", shown(path));
    if error.kind() != ErrorKind::NotFound {
        return told;
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new(".")));
    let beside = entries.into_iter().flatten().flatten();
    let beside = beside.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // Endings that are the same would make everything alike.
    let stem = |name: &str| {
        let name = Path::new(name);
        let shared = name.extension() == path.extension();
        let own = if shared {
            name.file_stem()
        } else {
            name.file_name()
        };
        own.unwrap_or_default().to_string_lossy().into_owned()
    };
    let beside = beside.map(|name| (stem(&name), escape(&name, MAX_NAME)));
    let own = path.file_stem().map(OsStr::to_string_lossy);
    match nearest(&own.unwrap_or_default(), beside).as_slice() {
        [] => told,
        near => format!("{told}; did you mean {}?", near.join(" or ")),
    }
}

/// The refusal of a revision or a branch that is not there, with those that may have been meant.
pub(crate) fn revision(refusal: Refusal, git: &Git, repository: &Host) -> Refusal {
    let unknown = [ImporterCode::UnknownRevision, ImporterCode::BranchMissing];
    if !unknown
        .map(|code| code.explanation().code)
        .contains(&refusal.code())
    {
        return refusal;
    }
    let word = refusal.detail.split(['~', '^', '@']).next();
    let word = word.unwrap_or_default().trim_start_matches("refs/heads/");
    // A repository that does not tell its names is no reason to tell less.
    let known = repository.names(git).unwrap_or_default();
    let question = question(word, known);
    Refusal {
        detail: format!("{}{question}", refusal.detail),
        ..refusal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_one_is_told_and_the_same_or_another_is_not() {
        let known = ["candidate", "main", "release/1.2", "candidates"];
        let told = |word: &str| question(word, known);
        assert_eq!(told("cadidate"), "; did you mean candidate or candidates?");
        assert_eq!(told("relase/1.2"), "; did you mean release/1.2?");
        assert_eq!(told("xyz"), "");
        assert_eq!(told("main"), "");
        assert_eq!(told(&"m".repeat(10_000)), "");
    }

    #[test]
    fn a_file_that_is_nearly_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["pricing.toml", "tariff.toml", "witness.json"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let absent = std::io::Error::from(ErrorKind::NotFound);
        let told = |name: &str| unread(&folder.path().join(name), &absent);
        assert!(told("pricng.toml").ends_with("; did you mean pricing.toml?"));
        assert!(told("witnes.json").ends_with("; did you mean witness.json?"));
        assert!(!told("xyz.toml").contains("mean"));
        let denied = std::io::Error::from(ErrorKind::PermissionDenied);
        assert!(!unread(&folder.path().join("pricng.toml"), &denied).contains("mean"));
    }
}
