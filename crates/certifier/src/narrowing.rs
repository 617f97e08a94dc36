//! A part of a tree that flies in its place, for repositories of which one change needs little.

use crate::{CertifierCode, CertifierError};
use flightproof_core::{Digest, RelPath, escape};
use flightproof_evidence::Change;
use serde::{Deserialize, Serialize};

/// Most paths that a flight is narrowed to: whoever needs more names a directory.
pub const MAX_PATHS: usize = 256;

/// The paths that fly, with everything below them. Sorted, none within another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Narrowing(Vec<RelPath>);

/// What a certificate says of a flight that was narrowed: nothing outside was there when the
/// candidate was built and run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NarrowedClaim {
    /// The paths that flew, with everything below them.
    pub paths: Vec<RelPath>,
    /// Snapshot id of what flew; the subject stays the whole tree.
    pub source: Digest,
}

impl Narrowing {
    /// These paths, in any order.
    ///
    /// # Errors
    /// `NARROWING_INVALID`: none, too many, or one within another.
    pub fn new(mut paths: Vec<RelPath>) -> Result<Self, CertifierError> {
        paths.sort();
        check(&paths)?;
        Ok(Self(paths))
    }

    /// Whether a file flies.
    pub fn admits(&self, path: &RelPath) -> bool {
        self.0.iter().any(|kept| path.is_within(kept))
    }

    /// Every changed path flies, and every path that was named stands for something.
    ///
    /// # Errors
    /// `NARROWED_CHANGE` for a change that nothing would judge, `NARROWED_NOTHING` for a path that
    /// no file of the tree lies at or below.
    pub fn covers<'a>(
        &self,
        changes: &[Change],
        files: impl Iterator<Item = &'a RelPath> + Clone,
    ) -> Result<(), CertifierError> {
        if let Some(change) = changes.iter().find(|change| !self.admits(&change.path)) {
            return Err(CertifierCode::NarrowedChange
                .refuse(format_args!("\"{}\" changed and does not fly", change.path)));
        }
        let idle = |kept: &&RelPath| !files.clone().any(|file| file.is_within(kept));
        match self.0.iter().find(idle) {
            None => Ok(()),
            Some(path) => Err(CertifierCode::NarrowedNothing.refuse(format_args!("\"{path}\""))),
        }
    }

    /// The claim, for the snapshot that flew.
    pub fn claim(&self, source: Digest) -> NarrowedClaim {
        NarrowedClaim {
            paths: self.0.clone(),
            source,
        }
    }
}

impl NarrowedClaim {
    /// A claim as this program writes them.
    pub(crate) fn check(&self) -> Result<(), CertifierError> {
        check(&self.paths)
    }
}

/// Sorted by the caller. A path and what lies below it are not neighbours always: `a`, `a-b`, `a/c`.
fn check(paths: &[RelPath]) -> Result<(), CertifierError> {
    let invalid = |detail: String| Err(CertifierCode::NarrowingInvalid.refuse(detail));
    if paths.is_empty() || paths.len() > MAX_PATHS {
        return invalid(format!("{} paths, 1 to {MAX_PATHS} allowed", paths.len()));
    }
    if !paths.is_sorted() {
        return invalid("the paths are not sorted".to_owned());
    }
    for (index, path) in paths.iter().enumerate() {
        let others = paths.iter().enumerate();
        let around = others.filter(|(other, _)| *other != index);
        if let Some((_, outer)) = around.into_iter().find(|(_, outer)| path.is_within(outer)) {
            return invalid(format!(
                "\"{}\" lies within \"{}\"",
                escape(path.as_str(), 80),
                escape(outer.as_str(), 80)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(texts: &[&str]) -> Vec<RelPath> {
        texts.iter().map(|t| RelPath::new(t).unwrap()).collect()
    }

    fn change(path: &str) -> Change {
        Change {
            path: RelPath::new(path).unwrap(),
            old: None,
            new: None,
        }
    }

    #[test]
    fn a_directory_flies_with_everything_below_it_and_nothing_beside_it() {
        let narrowing = Narrowing::new(paths(&["b/c", "a"])).unwrap();
        for (path, flies) in [
            ("a", true),
            ("a/x", true),
            ("ab", false),
            ("b/c/d/e", true),
            ("b/cd", false),
            ("b", false),
        ] {
            assert_eq!(
                narrowing.admits(&RelPath::new(path).unwrap()),
                flies,
                "{path}"
            );
        }
        let claim = narrowing.claim(Digest::of(b"part"));
        assert_eq!(claim.paths, paths(&["a", "b/c"]));
        assert_eq!(claim.check(), Ok(()));
    }

    #[test]
    fn lists_that_say_one_thing_in_two_ways_are_refused() {
        let many: Vec<_> = (0..=MAX_PATHS)
            .map(|n| RelPath::new(&format!("p{n:03}")).unwrap())
            .collect();
        assert!(Narrowing::new(many[1..].to_vec()).is_ok());
        for bad in [
            vec![],
            paths(&["a", "a"]),
            paths(&["a/c", "a-b", "a"]),
            many,
        ] {
            let code = Narrowing::new(bad).unwrap_err().code;
            assert_eq!(code, CertifierCode::NarrowingInvalid);
        }
        let unsorted = NarrowedClaim {
            paths: paths(&["b", "a"]),
            source: Digest::of(b"part"),
        };
        assert_eq!(
            unsorted.check().unwrap_err().code,
            CertifierCode::NarrowingInvalid
        );
    }

    #[test]
    fn a_change_that_does_not_fly_is_refused_and_so_is_a_path_that_names_nothing() {
        let narrowing = Narrowing::new(paths(&["a", "b"])).unwrap();
        let files = paths(&["a/x", "b", "c"]);
        assert_eq!(
            narrowing.covers(&[change("a/x"), change("a/gone")], files.iter()),
            Ok(())
        );
        let outside = narrowing.covers(&[change("a/x"), change("c")], files.iter());
        assert_eq!(outside.unwrap_err().code, CertifierCode::NarrowedChange);
        let idle = narrowing.covers(&[change("a/x")], files[..1].iter());
        assert_eq!(idle.unwrap_err().code, CertifierCode::NarrowedNothing);
    }
}
