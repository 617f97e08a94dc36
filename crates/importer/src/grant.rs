use crate::{ImportError, ImporterCode};
use flightproof_core::RelPath;
use flightproof_evidence::Change;

/// What an author may touch.
///
/// With no grant at all: everything but what is protected. With grants: what lies at or below one
/// of them, by whole segments. A protected path needs a grant that names exactly it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(Vec<RelPath>);

impl Grants {
    /// These paths.
    pub fn new(paths: impl IntoIterator<Item = RelPath>) -> Self {
        Self(paths.into_iter().collect())
    }

    /// Refuses the first change that is not granted.
    ///
    /// # Errors
    /// `PATH_NOT_GRANTED`, `PROTECTED_PATH`.
    pub fn check(&self, changes: &[Change]) -> Result<(), ImportError> {
        changes
            .iter()
            .try_for_each(|change| self.check_path(&change.path))
    }

    fn check_path(&self, path: &RelPath) -> Result<(), ImportError> {
        if self.0.contains(path) {
            return Ok(());
        }
        if !self.0.is_empty() && !self.0.iter().any(|grant| path.is_within(grant)) {
            return Err(ImporterCode::PathNotGranted.refuse(path));
        }
        match protection(path) {
            Some(rule) => Err(ImporterCode::ProtectedPath.refuse(format!("{path} ({rule})"))),
            None => Ok(()),
        }
    }
}

/// The rule that protects a path: any of its segments may be the protected name, in any case.
fn protection(path: &RelPath) -> Option<&'static str> {
    path.segments().find_map(|segment| {
        let segment = segment.to_lowercase();
        PROTECTED.into_iter().find(|name| *name == segment)
    })
}

/// Names of files and folders, in lower case, that act outside the program that is judged.
///
/// `.cargo`, `rust-toolchain*`, `build.rs` and manifests are not here: the certifier's dependency
/// rules refuse them with reasons of their own, and would never be reached.
pub const PROTECTED: [&str; 42] = [
    // Git and what stands on it: filters, submodules, hooks, names, large-file servers.
    ".gitattributes",
    ".gitmodules",
    ".gitignore",
    ".gitreview",
    ".git-blame-ignore-revs",
    ".lfsconfig",
    ".mailmap",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    // Build services run these with credentials.
    ".github",
    ".gitlab-ci.yml",
    ".gitlab",
    ".ci",
    ".circleci",
    ".travis.yml",
    ".buildkite",
    ".woodpecker",
    ".woodpecker.yml",
    ".drone.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    "jenkinsfile",
    "codeowners",
    // Run by people, shells and editors without a second look.
    "makefile",
    "gnumakefile",
    "justfile",
    ".envrc",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".editorconfig",
    // Orders to agents.
    "agents.md",
    "claude.md",
    "gemini.md",
    ".claude",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".aider.conf.yml",
    ".mcp.json",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(grants: &[&str], path: &str) -> Result<(), ImporterCode> {
        let rel = |text: &str| RelPath::new(text).unwrap();
        let change = Change {
            path: rel(path),
            old: None,
            new: None,
        };
        let grants = Grants::new(grants.iter().map(|grant| rel(grant)));
        grants.check(&[change]).map_err(|e| e.code)
    }

    #[test]
    fn without_a_grant_everything_but_the_protected_is_free() {
        assert_eq!(check(&[], "src/lib.rs"), Ok(()));
        for path in [
            ".gitattributes",
            "sub/.gitattributes",
            ".GitHub/workflows/x.yml",
            "docs/AGENTS.md",
            "Makefile",
            ".ci/run",
        ] {
            assert_eq!(check(&[], path), Err(ImporterCode::ProtectedPath), "{path}");
        }
    }

    #[test]
    fn the_dependency_rules_keep_what_is_theirs() {
        for path in [
            ".cargo/config.toml",
            "rust-toolchain.toml",
            "build.rs",
            "Cargo.toml",
        ] {
            assert_eq!(check(&[], path), Ok(()), "{path}");
        }
    }

    #[test]
    fn grants_cover_whole_segments() {
        assert_eq!(check(&["src"], "src/a.rs"), Ok(()));
        assert_eq!(check(&["src"], "src"), Ok(()));
        assert_eq!(
            check(&["src"], "src2/a.rs"),
            Err(ImporterCode::PathNotGranted)
        );
        assert_eq!(check(&["src", "tests"], "tests/a.rs"), Ok(()));
    }

    #[test]
    fn a_protected_path_needs_a_grant_of_its_own() {
        assert_eq!(
            check(&[".github"], ".github/x.yml"),
            Err(ImporterCode::ProtectedPath)
        );
        assert_eq!(
            check(&["src"], "src/Makefile"),
            Err(ImporterCode::ProtectedPath)
        );
        assert_eq!(check(&["src/Makefile"], "src/Makefile"), Ok(()));
    }

    #[test]
    fn protected_names_are_written_as_they_are_compared() {
        for name in PROTECTED {
            assert_eq!(name, name.to_lowercase());
            assert!(!name.contains('/'));
        }
    }
}
