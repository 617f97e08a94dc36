use crate::{ImportError, ImporterCode, name};
use flightproof_core::RelPath;
use flightproof_evidence::Change;

/// What an author may touch.
///
/// With no grant at all: everything but what is protected. With grants: what lies at or below one
/// of them, by whole segments. A protected path needs a grant that names exactly it.
///
/// Files at or below a path of the second list may be large; such a path is no grant by itself. Names of
/// the third are protected beside those that always are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    paths: Vec<RelPath>,
    large: Vec<RelPath>,
    protected: Vec<String>,
}

impl Grants {
    /// These paths.
    pub fn new(paths: impl IntoIterator<Item = RelPath>) -> Self {
        Self {
            paths: paths.into_iter().collect(),
            large: Vec::new(),
            protected: Vec::new(),
        }
    }

    /// The same, with large files at these paths or below: they travel beside the bundle.
    #[must_use]
    pub fn with_large(mut self, paths: impl IntoIterator<Item = RelPath>) -> Self {
        self.large.extend(paths);
        self
    }

    /// The same, with these names of files and folders protected as well, in any case.
    #[must_use]
    pub fn protecting<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.protected.extend(names.into_iter().map(name::fold));
        self
    }

    /// Whether a file may be large.
    pub(crate) fn is_large(&self, path: &RelPath) -> bool {
        self.large.iter().any(|large| path.is_within(large))
    }

    /// Refuses changes that are not granted: for the reason of the first, with all that share it.
    ///
    /// # Errors
    /// `PATH_NOT_GRANTED`, `PROTECTED_PATH`.
    pub fn check(&self, changes: &[Change]) -> Result<(), ImportError> {
        let refused = changes.iter();
        let mut refused = refused.filter_map(|change| self.check_path(&change.path).err());
        let Some(first) = refused.next() else {
            return Ok(());
        };
        let more: Vec<String> = refused
            .filter(|other| other.code == first.code)
            .map(|other| other.detail)
            .collect();
        let (named, rest) = more.split_at(more.len().min(MAX_NAMED));
        let mut detail = first.detail;
        named
            .iter()
            .for_each(|path| detail = format!("{detail}, {path}"));
        if !rest.is_empty() {
            detail = format!("{detail} and {} more", rest.len());
        }
        Err(first.code.refuse(detail))
    }

    fn check_path(&self, path: &RelPath) -> Result<(), ImportError> {
        if self.paths.contains(path) {
            return Ok(());
        }
        if !self.paths.is_empty() && !self.paths.iter().any(|grant| path.is_within(grant)) {
            return Err(ImporterCode::PathNotGranted.refuse(path));
        }
        match self.protection(path) {
            Some(rule) => Err(ImporterCode::ProtectedPath.refuse(format!("{path} ({rule})"))),
            None => Ok(()),
        }
    }

    /// The name that protects a path: any of its segments may be it, in any case.
    fn protection(&self, path: &RelPath) -> Option<&str> {
        path.segments().find_map(|segment| {
            // Whatever some file system takes for the name is the name.
            let segment = name::fold(segment);
            let mut own = self.protected.iter().map(String::as_str);
            listed(&segment).or_else(|| own.find(|name| *name == segment))
        })
    }
}

/// Whether a change of a file or folder of this name needs a grant of exactly its path.
pub fn is_protected(name: &str) -> bool {
    listed(&name::fold(name)).is_some()
}

fn listed(segment: &str) -> Option<&'static str> {
    let mut all = PROTECTED.iter().copied();
    all.find(|name| is_named(segment, name))
}

/// Whether a name is one of the list: `x.*` stands for `x` with any extension of settings.
fn is_named(segment: &str, name: &str) -> bool {
    let Some(stem) = name.strip_suffix('*') else {
        return segment == name;
    };
    let extension = segment.strip_prefix(stem);
    extension.is_some_and(|extension| SETTINGS.contains(&extension))
}

/// Extensions of settings. Most programs read theirs under several of them.
const SETTINGS: [&str; 5] = ["yml", "yaml", "toml", "json", "jsonc"];

/// Most paths that are named beside the first in one refusal.
const MAX_NAMED: usize = 20;

/// Names of files and folders, in lower case, that act outside the program that is judged. An extension of
/// `*` stands for all of settings: `yml`, `yaml`, `toml`, `json` and `jsonc`.
///
/// [`BUILD`] and manifests are not here: the certifier's dependency rules refuse them with reasons of
/// their own, and would never be reached.
const PROTECTED: &[&str] = &[
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
    ".huskyrc",
    ".huskyrc.*",
    ".pre-commit-config.*",
    "prek.*",
    "lefthook.*",
    ".lefthook.*",
    "lefthook-local.*",
    ".lefthook-local.*",
    // Build services run these with credentials.
    ".github",
    ".gitlab-ci.*",
    ".gitlab",
    ".ci",
    ".circleci",
    ".travis.*",
    ".buildkite",
    ".woodpecker",
    ".woodpecker.*",
    ".drone.*",
    ".drone.jsonnet",
    ".drone.star",
    ".cirrus.*",
    ".cirrus.star",
    ".gitea",
    ".forgejo",
    "bitbucket-pipelines.*",
    "appveyor.*",
    ".appveyor.*",
    "azure-pipelines.*",
    ".azure-pipelines.*",
    "jenkinsfile",
    "codeowners",
    // Run by people, shells and editors without a second look.
    "makefile",
    "gnumakefile",
    "bsdmakefile",
    "justfile",
    ".justfile",
    ".envrc",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".devcontainer.*",
    ".editorconfig",
    // Orders to agents.
    "agent.md",
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "iflow.md",
    "bugbot.md",
    "warp.md",
    "crush.md",
    "qwen.md",
    "conventions.md",
    "opencode.md",
    "opencode.*",
    ".opencode.*",
    "crush.*",
    ".crush.*",
    ".opencode",
    ".crush",
    ".qwen",
    ".goosehints",
    ".claude",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".clinerules",
    ".copilot",
    ".gemini",
    ".iflow",
    ".junie",
    ".kiro",
    ".roo",
    ".roomodes",
    ".roorules",
    ".windsurf",
    ".windsurfrules",
    ".aider.conf.*",
    ".mcp.*",
];

/// Names of what runs when a crate is built, in lower case: protected where no certifier looks at them.
pub const BUILD: &[&str] = &[
    "build.rs",
    ".cargo",
    "rust-toolchain",
    "rust-toolchain.toml",
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
            "WARP.md",
            "CONVENTIONS.md",
            "IFLOW.md",
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
    fn a_protected_name_is_found_in_every_spelling_some_file_system_takes_for_it() {
        for path in [
            ".gitattribute\u{17f}",
            "a/.hu\u{17f}ky/x",
            "ju\u{17f}tfile",
            ".GITHUB/x",
            "claude\u{fe0f}.md",
        ] {
            assert_eq!(check(&[], path), Err(ImporterCode::ProtectedPath), "{path}");
        }
        assert_eq!(check(&[], "claude2.md"), Ok(()));
    }

    #[test]
    fn settings_are_protected_under_every_extension_they_are_read_by() {
        for path in [
            "lefthook.toml",
            ".config/lefthook.json",
            "lefthook-local.yml",
            ".Lefthook.YAML",
            ".appveyor.yml",
            ".woodpecker.yaml",
            ".justfile",
            ".devcontainer.json",
            "opencode.jsonc",
            ".drone.jsonnet",
        ] {
            assert_eq!(check(&[], path), Err(ImporterCode::ProtectedPath), "{path}");
        }
        for path in [
            "lefthook.rs",
            "lefthook",
            "lefthook.yml.rs",
            "prek.py",
            "opencode.*",
        ] {
            assert_eq!(check(&[], path), Ok(()), "{path}");
        }
    }

    #[test]
    fn protected_names_are_written_as_they_are_compared() {
        for name in PROTECTED {
            assert_eq!(*name, name::fold(name));
            assert!(!name.contains('/'));
        }
    }

    #[test]
    fn more_names_can_be_protected_and_all_of_them_are_written_down() {
        let change = |path: &str| Change {
            path: RelPath::new(path).unwrap(),
            old: None,
            new: None,
        };
        let grants =
            Grants::default().protecting(["Deploy.SH"].into_iter().chain(BUILD.iter().copied()));
        for path in [
            "ops/deploy.sh",
            "a/build.rs",
            ".cargo/config.toml",
            "makefile",
        ] {
            let refused = grants.check(&[change(path)]).unwrap_err();
            assert_eq!(refused.code, ImporterCode::ProtectedPath, "{path}");
        }
        assert!(grants.check(&[change("deploy.shx")]).is_ok());
        assert!(Grants::default().check(&[change("ops/deploy.sh")]).is_ok());
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/import.md");
        let page = std::fs::read_to_string(page).unwrap();
        for name in PROTECTED.iter().chain(BUILD) {
            assert!(
                page.contains(&format!("`{name}`")),
                "{name} is not in docs/import.md"
            );
        }
    }
}
