//! What every changed line is: exactly one class for each.

use crate::fence::{compiled_in, is_taken_in, takes_in_unseen};
use crate::generated::Regenerated;
use crate::languages::Language;
use crate::lines::is_rust;
use crate::mutation::{MutationPlan, PageCode, Silence};
use crate::population::lines_of;
use crate::tree::Tree;
use flightproof_core::RelPath;
use flightproof_evidence::{Change, FileState};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a changed line is to the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineClass {
    /// Code of the judged program: mutants on it, or of the function it lies in, were noticed.
    Mutated,
    /// It changes no program by itself: a comment, a document, formatting, a lone bracket, a
    /// declaration that acts through judged lines alone.
    Inert,
    /// Code for tests only, and code in documentation: no part of the program, and run all the same.
    Tests,
    /// A file that a rule of the operator's made again in a session, byte for byte.
    Regenerated,
    /// Data that is not compiled into the program.
    Data,
    /// Code that no build of the flight compiled and no case ran: a script, another platform's
    /// branch, a package or file that the program does not hold.
    NotCompiled,
    /// Part of the program, or of how it is built, and no mutant can show what it does.
    Unjudged,
}

impl LineClass {
    /// The stable name, as on a certificate.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutated => "mutated",
            Self::Inert => "inert",
            Self::Tests => "tests",
            Self::Regenerated => "regenerated",
            Self::Data => "data",
            Self::NotCompiled => "not-compiled",
            Self::Unjudged => "unjudged",
        }
    }
}

/// One changed line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ClassedLine {
    /// The file.
    pub file: RelPath,
    /// Line of the new text, from 1; 0 for a file that is gone, empty, or has other permissions.
    pub line: u32,
    /// What it is.
    pub class: LineClass,
}

/// A changed file: its changed lines, and its class where all of them have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    pub(crate) path: RelPath,
    lines: BTreeSet<u32>,
    whole: Option<LineClass>,
    /// A Rust file takes it in, as documentation at least.
    taken_in: bool,
}

impl ChangedFile {
    /// The changed files of a commit to a program in Rust, or in another language.
    pub(crate) fn all(
        changes: &[Change],
        tree: &Tree<'_>,
        language: Option<Language>,
    ) -> Vec<Self> {
        let of = |change: &Change| {
            let lines = lines_of(change);
            let rust = is_rust(&change.path);
            let whole = match language {
                Some(language) => language.class(change, tree),
                None if becomes_executable(change) => Some(LineClass::NotCompiled),
                // Line by line; without lines only comments went, or all of it, which is named.
                None if rust && lines.is_empty() => Some(LineClass::Inert),
                None if rust => None,
                None => Some(of_data(change, tree)),
            };
            // Its code is run as that of a comment is.
            let whole = match whole {
                Some(LineClass::Inert | LineClass::Data)
                    if language.is_none() && !rust && page_code(change, tree).is_some() =>
                {
                    Some(LineClass::Tests)
                }
                whole => whole,
            };
            Self {
                path: change.path.clone(),
                lines,
                whole,
                taken_in: !rust
                    && is_taken_in(tree, change.path.file_name())
                    && !takes_in_unseen(tree),
            }
        };
        changes.iter().map(of).collect()
    }

    /// The same files, those that were made again as what they are.
    pub(crate) fn regenerated(mut files: Vec<Self>, made: &Regenerated) -> Vec<Self> {
        for file in files.iter_mut().filter(|file| made.has(&file.path)) {
            file.whole = Some(LineClass::Regenerated);
            // Nobody asks what it is compiled into: it is no place of its own.
            file.taken_in = true;
        }
        files
    }

    /// The class that all of its lines have.
    #[cfg(test)]
    pub(crate) fn whole_class(&self) -> Option<LineClass> {
        self.whole
    }

    /// What a build turned out to read and no rule of the text had found: a macro took it in.
    pub(crate) fn is_read_unseen(&self) -> bool {
        self.whole.is_some() && !is_rust(&self.path) && !self.taken_in
    }

    fn classes(&self, plan: &MutationPlan) -> Vec<ClassedLine> {
        let line = |line, class| ClassedLine {
            file: self.path.clone(),
            line,
            class,
        };
        let named = plan.unjudged.iter().any(|place| place.file == self.path);
        let whole = self.whole.map(|whole| match named {
            true => LineClass::Unjudged,
            false => whole,
        });
        match whole {
            Some(class) if self.lines.is_empty() => vec![line(0, class)],
            Some(class) => self.lines.iter().map(|at| line(*at, class)).collect(),
            None => {
                let found = CodeLines::of(&self.path, plan);
                let lines = found.with_tokens(&self.lines);
                lines.iter().map(|at| line(*at, found.class(*at))).collect()
            }
        }
    }
}

/// Every changed line, ordered by file and line.
pub(crate) fn classes(files: &[ChangedFile], plan: &MutationPlan) -> Vec<ClassedLine> {
    let mut out: Vec<ClassedLine> = files.iter().flat_map(|file| file.classes(plan)).collect();
    out.sort();
    out
}

/// The lines of one source file, as the mutation plan sees them.
struct CodeLines<'a> {
    code: Vec<u32>,
    why: BTreeMap<u32, Silence>,
    path: &'a RelPath,
    plan: &'a MutationPlan,
}

impl<'a> CodeLines<'a> {
    fn of(path: &'a RelPath, plan: &'a MutationPlan) -> Self {
        let silent = plan.unmutated.iter().filter(|u| u.file == *path);
        Self {
            code: plan.code.get(path).into_iter().flatten().copied().collect(),
            why: silent.map(|u| (u.line, u.why)).collect(),
            path,
            plan,
        }
    }

    /// These lines, and those on which a token changed though the line did not: a text that begins
    /// before them, a block that ends behind.
    fn with_tokens(&self, lines: &BTreeSet<u32>) -> BTreeSet<u32> {
        lines.iter().chain(&self.code).copied().collect()
    }

    fn class(&self, line: u32) -> LineClass {
        let mut places = self.plan.unjudged.iter();
        if places.any(|place| place.file == *self.path && place.line == line) {
            return LineClass::Unjudged;
        }
        match self.why.get(&line) {
            Some(Silence::NotCompiled) => LineClass::NotCompiled,
            Some(Silence::WholeFunction) => LineClass::Mutated,
            Some(Silence::TestOnly) => LineClass::Tests,
            Some(Silence::Declaration) => LineClass::Inert,
            Some(_) => LineClass::Unjudged,
            None if self.code.binary_search(&line).is_ok() => LineClass::Mutated,
            None => LineClass::Inert,
        }
    }
}

impl Language {
    /// The class of a changed file, where all of its lines have one.
    fn class(self, change: &Change, tree: &Tree<'_>) -> Option<LineClass> {
        let path = &change.path;
        if becomes_executable(change) {
            return Some(LineClass::NotCompiled);
        }
        if self.owns(path) {
            return match (self.leaves_out(path), &change.new) {
                (true, _) => Some(LineClass::NotCompiled),
                (false, Some(_)) => None,
                (false, None) => Some(LineClass::Unjudged),
            };
        }
        if is_read_by_people(change, tree) {
            return Some(LineClass::Inert);
        }
        let state = change.new.as_ref().or(change.old.as_ref());
        let script = state.is_some_and(|state| is_script(path, state));
        Some(match compiled_with(self, path, tree) {
            Some(_) => LineClass::Unjudged,
            None if script => LineClass::NotCompiled,
            // A document that some file names is data for whatever reads it.
            None => LineClass::Data,
        })
    }
}

/// Why a file that is no source of a language is part of its program, or of how it is built.
pub(crate) fn compiled_with(
    language: Language,
    path: &RelPath,
    tree: &Tree<'_>,
) -> Option<Silence> {
    let name = path.file_name();
    let named = |mark: &str| {
        let names = tree
            .files()
            .filter(|(other, _)| RelPath::new(other).is_ok_and(|other| language.owns(&other)));
        let has = |content: &[u8], text: &str| {
            content.windows(text.len()).any(|at| at == text.as_bytes())
        };
        names.into_iter().any(|(_, content)| has(content, mark))
    };
    match language {
        Language::C => named(name).then_some(Silence::CompiledData),
        Language::Go if matches!(name, "go.mod" | "go.sum" | "go.work") => Some(Silence::Manifest),
        Language::Go => named("go:embed").then_some(Silence::CompiledData),
        Language::JavaScript | Language::TypeScript => name
            .to_ascii_lowercase()
            .ends_with(".json")
            .then_some(Silence::CompiledData),
        Language::Python => None,
    }
}

/// What the changed code of a document does, where a Rust file takes it in as documentation.
pub(crate) fn page_code(change: &Change, tree: &Tree<'_>) -> Option<PageCode> {
    let new = change.new.as_ref()?;
    let taken = is_taken_in(tree, change.path.file_name());
    taken
        .then(|| PageCode::of(&new.content, &lines_of(change)))
        .flatten()
}

/// The class of a file that is no Rust, as long as no build reads it.
fn of_data(change: &Change, tree: &Tree<'_>) -> LineClass {
    let name = change.path.file_name().to_ascii_lowercase();
    let state = change.new.as_ref().or(change.old.as_ref());
    match name.as_str() {
        // Keys that decide anything are places of their own.
        "cargo.toml" => LineClass::Inert,
        // Locked packages have a rule of their own.
        "cargo.lock" => LineClass::Data,
        _ if state.is_some_and(|state| is_script(&change.path, state)) => LineClass::NotCompiled,
        name if is_document(name)
            && (is_out_of_place(&change.path, tree) || is_compiled_page(change, tree)) =>
        {
            LineClass::NotCompiled
        }
        name if is_document(name)
            && is_shelved(&change.path)
            && !compiled_in(tree, change.path.file_name()) =>
        {
            LineClass::Inert
        }
        _ => LineClass::Data,
    }
}

/// A document that nothing runs, and that no file beside documents names: any language may take in
/// what it names.
pub(crate) fn is_read_by_people(change: &Change, tree: &Tree<'_>) -> bool {
    let path = &change.path;
    let states = [&change.old, &change.new].into_iter().flatten();
    let name = path.file_name().as_bytes();
    let mut others = tree.files().filter(|(other, _)| {
        let file = other.rsplit('/').next().unwrap_or(other);
        !is_document(&file.to_ascii_lowercase())
    });
    is_document(&path.file_name().to_ascii_lowercase())
        && !states.clone().any(|state| is_script(path, state))
        && !is_compiled_page(change, tree)
        && !others.any(|(_, content)| content.windows(name.len()).any(|at| at == name))
}

fn becomes_executable(change: &Change) -> bool {
    let is = change.new.as_ref().is_some_and(|new| new.executable);
    is && !change.old.as_ref().is_some_and(|old| old.executable)
}

const DOCUMENTS: &[&str] = &["md", "markdown", "rst", "adoc"];
const DOCUMENT_NAMES: &[&str] = &[
    "readme",
    "license",
    "licence",
    "copying",
    "notice",
    "changelog",
    "changes",
    "news",
    "authors",
    "contributing",
];

/// Names of licences behind `license-`.
const LICENCES: &[&str] = &[
    "apache",
    "apache-2.0",
    "mit",
    "mit-0",
    "bsd",
    "bsd-2-clause",
    "bsd-3-clause",
    "0bsd",
    "mpl",
    "mpl-2.0",
    "gpl",
    "gpl-2.0",
    "gpl-3.0",
    "lgpl",
    "agpl",
    "isc",
    "zlib",
    "boost",
    "bsl-1.0",
    "cc0",
    "cc0-1.0",
    "unlicense",
    "unicode",
    "epl-2.0",
    "third-party",
];
/// How the folders and files begin by which generators that run what a page says know their sites.
const GENERATORS: &[&str] = &[
    ".vitepress",
    ".vuepress",
    ".eleventy.",
    "eleventy.config.",
    "docusaurus.config.",
    "astro.config.",
    "next.config.",
    "nuxt.config.",
    "gatsby-config.",
    "svelte.config.",
    "rspress.config.",
    "valaxy.config.",
    "slidev.config.",
    "mkdocs.yml",
    "mkdocs.yaml",
    "_quarto.yml",
];

/// Folders of texts for people. A text anywhere else may be one that the program loads: a template,
/// a prompt.
const SHELVES: &[&str] = &[
    "doc",
    "docs",
    "documentation",
    "book",
    "man",
    "guide",
    "guides",
    "rfcs",
    "adr",
    ".github",
];

/// Whether a text lies where texts for people lie: at the top, in a folder of them, or under a name
/// that says what it is.
fn is_shelved(path: &RelPath) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let named = is_document_name(stem);
    let mut folders = path.parent().into_iter().flat_map(|p| p.split('/'));
    let shelf = |folder: &str| SHELVES.contains(&folder.to_ascii_lowercase().as_str());
    named || path.parent().is_none() || folders.any(shelf)
}

/// A text for people, by its name.
fn is_document(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let plain = is_document_name(name);
    let named = is_document_name(stem) && ["txt", "apache", "mit"].contains(&extension);
    DOCUMENTS.contains(&extension) || plain || named
}

/// Exactly such a name, or a licence with its own: what only begins with one may be anything.
fn is_document_name(stem: &str) -> bool {
    let mut licences = ["license-", "licence-"].iter();
    let licence = licences.find_map(|begin| stem.strip_prefix(begin));
    DOCUMENT_NAMES.contains(&stem) || licence.is_some_and(|name| LICENCES.contains(&name))
}

/// A document without extension lies at the top or beside a manifest: anywhere else it may be a
/// script that some other file runs.
fn is_out_of_place(path: &RelPath, tree: &Tree<'_>) -> bool {
    let Some(folder) = path.parent() else {
        return false;
    };
    let manifest = format!("{folder}/Cargo.toml");
    !path.file_name().contains('.') && !tree.files().any(|(other, _)| other == manifest)
}

/// Whether a generator of sites compiles a document: it has a script, or a generator's configuration
/// lies in a folder above it.
fn is_compiled_page(change: &Change, tree: &Tree<'_>) -> bool {
    let mut states = [&change.old, &change.new].into_iter().flatten();
    if states.any(|state| has_script(&state.content)) {
        return true;
    }
    let path = change.path.as_str();
    let name = change.path.file_name().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    // What everybody's repository has at its top is no page.
    if change.path.parent().is_none() && is_document_name(stem) {
        return false;
    }
    let generators = tree.files().filter_map(|(other, _)| {
        let mut at = 0;
        other.split('/').find_map(|part| {
            let folder = other.get(..at)?;
            at += part.len() + 1;
            let part = part.to_ascii_lowercase();
            let named = GENERATORS.iter().any(|begin| part.starts_with(begin));
            named.then_some(folder)
        })
    });
    generators
        .into_iter()
        .any(|folder| path.starts_with(folder))
}

fn has_script(content: &[u8]) -> bool {
    let word = b"<script";
    content
        .windows(word.len())
        .any(|at| at.eq_ignore_ascii_case(word))
}

/// Extensions of what holds tables, texts, pictures, sounds and letters, and nothing that is run.
const DATA: &[&str] = &[
    "txt", "text", "csv", "tsv", "psv", "dat", "bin", "raw", "log", "out", "err", "stdout",
    "stderr", "expected", "actual", "golden", "jsonl", "ndjson", "po", "pot", "png", "jpg", "jpeg",
    "gif", "webp", "avif", "bmp", "ico", "svg", "tif", "tiff", "pdf", "wav", "mp3", "ogg", "flac",
    "mp4", "webm", "ttf", "otf", "woff", "woff2",
];
/// Extensions of what may as well tell a tool what to run, or a program whom to trust: data in a
/// folder of data only.
const SETTINGS: &[&str] = &[
    "json", "toml", "yaml", "yml", "xml", "html", "htm", "css", "ini", "pem", "crt", "cer", "der",
    "pub",
];
/// Such folders.
const DATA_FOLDERS: &[&str] = &[
    "data",
    "testdata",
    "test-data",
    "test_data",
    "fixtures",
    "fixture",
    "golden",
    "goldens",
    "snapshots",
    "corpus",
    "vectors",
    "cases",
    "samples",
];
/// Files of other tools that name what is run or installed, wherever they lie.
const TOOL_FILES: &[&str] = &[
    "action.yaml",
    "action.yml",
    "cargo.toml",
    "cmakelists.txt",
    "composer.json",
    "conanfile.txt",
    "compose.yaml",
    "compose.yml",
    "constraints.txt",
    "deno.json",
    "docker-compose.yaml",
    "docker-compose.yml",
    "package-lock.json",
    "package.json",
    "pyproject.toml",
    "requirements.txt",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "clippy.toml",
];
/// The same by their names up to the first dot, whatever kind of settings they are.
const TOOL_STEMS: &[&str] = &[
    // What JavaScript's tools run and install by.
    "angular",
    "app",
    "babel",
    "bower",
    "bun",
    "deno",
    "eslint",
    "import_map",
    "jest",
    "jsconfig",
    "jsr",
    "karma",
    "lerna",
    "nodemon",
    "npm-shrinkwrap",
    "nx",
    "package",
    "package-lock",
    "pnpm-lock",
    "pnpm-workspace",
    "project",
    "rush",
    "tsconfig",
    "turbo",
    "vercel",
    "wrangler",
    // Python's.
    "alembic",
    "conda",
    "environment",
    "hatch",
    "mypy",
    "pdm",
    "pixi",
    "poetry",
    "pyproject",
    "pytest",
    "setup",
    "tox",
    "uv",
    "uwsgi",
    // Those of Java, PHP, .NET, C, Dart, Haskell, Crystal.
    "build",
    "composer",
    "conandata",
    "conanfile",
    "ivy",
    "meta",
    "nuget",
    "packages",
    "phpcs",
    "phpunit",
    "platformio",
    "pom",
    "psalm",
    "pubspec",
    "settings",
    "shard",
    "stack",
    "vcpkg",
    "web",
    "west",
    "cmakepresets",
    "cmakelists",
    // Rust's.
    "bacon",
    "book",
    "cargo",
    "cargo-generate",
    "clippy",
    "cross",
    "deny",
    "dioxus",
    "dist",
    "dist-workspace",
    "makefile",
    "release",
    "rust-toolchain",
    "rustfmt",
    "tauri",
    "trunk",
    // Runners of tasks, machines and services.
    "action",
    "appspec",
    "appveyor",
    "azure-pipelines",
    "bitbucket-pipelines",
    "buildspec",
    "cdk",
    "chart",
    "circle",
    "cloudbuild",
    "codemagic",
    "compose",
    "devbox",
    "devcontainer",
    "docker-bake",
    "docker-compose",
    "firebase",
    "fly",
    "helmfile",
    "heroku",
    "kustomization",
    "launch",
    "lefthook",
    "main",
    "mise",
    "mkdocs",
    "netlify",
    "playbook",
    "procfile",
    "pulumi",
    "railway",
    "render",
    "renovate",
    "samconfig",
    "serverless",
    "site",
    "skaffold",
    "supervisord",
    "task",
    "taskfile",
    "tasks",
    "template",
    "values",
    "workflow",
];
/// What names of such files, or their folders, hold where a tool takes any of them.
const TOOL_TEXTS: &[&str] = &["requirements", "constraints"];
/// Files of a folder or name that begins with a dot and that no tool runs anything for.
const QUIET: &[&str] = &[".gitignore", ".editorconfig", ".mailmap", ".gitkeep"];

/// Whether something could run it, or run something because of it: by its permissions, its first
/// bytes, its name, or because its name is not known to be that of data.
fn is_script(path: &RelPath, state: &FileState) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    let hidden = path.as_str().split('/').any(|part| part.starts_with('.'));
    let first = &state.content[..];
    let magic = [&b"#!"[..], b"\x7fELF", b"MZ", b"\0asm"];
    state.executable
        || magic.iter().any(|magic| first.starts_with(magic))
        || TOOL_FILES.contains(&name.as_str())
        || is_list_of_packages(path)
        || is_tool_settings(&name)
        || name.ends_with(".snap") && !first.starts_with(SNAPSHOT)
        || (hidden && !QUIET.contains(&name.as_str()))
        || !(is_document(&name) || is_data(path, &name))
}

/// `dev-requirements.txt`, `requirements/dev.txt`.
fn is_list_of_packages(path: &RelPath) -> bool {
    let path = path.as_str().to_ascii_lowercase();
    let text = [".txt", ".in", ".text"]
        .iter()
        .any(|end| path.ends_with(end));
    text && TOOL_TEXTS.iter().any(|tool| path.contains(tool))
}

/// `tox.ini`, `playbook-web.yml`, `docker-compose.test.yaml`.
fn is_tool_settings(name: &str) -> bool {
    let mut parts = name.split('.');
    let stem = parts.next().unwrap_or_default();
    let settings = parts.next_back().is_some_and(|end| SETTINGS.contains(&end));
    let configures = name.contains(".config.") || name.contains(".conf.");
    let family = [
        "playbook",
        "taskfile",
        "docker-compose",
        "compose-",
        "tsconfig",
    ];
    let family = family.iter().any(|begin| stem.starts_with(begin));
    settings && (TOOL_STEMS.contains(&stem) || family || configures || stem.ends_with("-lock"))
}

/// How a snapshot of `insta` begins, which is no JavaScript: one of Jest is run.
const SNAPSHOT: &[u8] = b"---\n";

/// What is known to be no program, by its name: whatever is not known may be run.
fn is_data(path: &RelPath, name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let mut folders = path
        .parent()
        .into_iter()
        .flat_map(|folder| folder.split('/'));
    let in_data = |folder: &str| DATA_FOLDERS.contains(&folder.to_ascii_lowercase().as_str());
    QUIET.contains(&name)
        || extension == "snap"
        || DATA.contains(&extension)
        || SETTINGS.contains(&extension) && folders.any(in_data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population;
    use crate::samples::{captured, change};

    const MANIFEST: &str = "[package]\nname = \"a\"\nversion = \"1.0.0\"\nedition = \"2024\"\n";

    /// The classes of one change of a tree.
    fn classed(change: Change, others: &[(&str, &str)]) -> Vec<(u32, LineClass)> {
        let mut files = others.to_vec();
        files.push(("Cargo.toml", MANIFEST));
        let paths: Vec<RelPath> = files.iter().map(|(p, _)| p.parse().unwrap()).collect();
        let tree: Tree<'_> = paths
            .iter()
            .zip(files.iter().map(|(_, content)| content.as_bytes()))
            .collect();
        let captured = captured(vec![change]);
        let plan = MutationPlan::new(population::input(&captured.changes, &tree, [1; 32])).unwrap();
        let files = ChangedFile::all(&captured.changes, &tree, None);
        let found = classes(&files, &plan);
        found.into_iter().map(|l| (l.line, l.class)).collect()
    }

    fn new_file(path: &str, text: &str) -> Vec<(u32, LineClass)> {
        classed(change(path, None, Some(text.as_bytes())), &[])
    }

    fn edited(path: &str, old: &str, new: &str) -> Vec<(u32, LineClass)> {
        let change = change(path, Some(old.as_bytes()), Some(new.as_bytes()));
        classed(change, &[])
    }

    use LineClass::{Data, Inert, Mutated, NotCompiled, Tests, Unjudged};

    #[test]
    fn a_script_is_no_data_whatever_it_is_called() {
        for path in [
            "release.sh",
            "ci/check.py",
            "Makefile",
            "configure",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            "deploy/Dockerfile",
            "src/native.c",
            "Makefile.toml",
            "netlify.toml",
            "BUILD.bazel",
            "cloudbuild.yaml",
            "action.yml",
            "data/action.yml",
            "Taskfile.yml",
            "build.xml",
            "docker-compose.override.yml",
            "Dockerfile.prod",
            "default.sbt",
            "a.gemspec",
            "package-lock.json",
            "data/package.json",
            "go.mod",
            "tasks.rake",
            "setup.vbs",
            "run.command",
            "x.pth",
            "x.vue",
            "requirements-dev.txt",
            "data/constraints_3.txt",
            "conanfile.txt",
            "certs/ca.pem",
            "trust/root.crt",
            "lib.erb",
            "notebook.ipynb",
            // What only begins like a document, or lies where scripts do.
            "scripts/changelog-check",
            "license-x",
            "ci/readme-run",
            "scripts/news",
            // What tools run or install by.
            "web/__snapshots__/a.test.js.snap",
            "data/a.snap",
            "templates/mail.ftl",
            "requirements/dev.txt",
            "data/requirements/a.txt",
            "dev-requirements.txt",
            "tests/data/pom.xml",
            "samples/build.xml",
            "samples/web/npm-shrinkwrap.json",
            "samples/web/pnpm-lock.yaml",
            "samples/web/netlify.toml",
            "samples/py/tox.ini",
            "samples/py/pytest.ini",
            "data/Taskfile.yml",
            "data/playbook-web.yml",
            "data/jest.config.json",
        ] {
            assert_eq!(new_file(path, "x\n"), [(1, NotCompiled)], "{path}");
        }
        assert_eq!(new_file("run.txt", "#!/bin/sh\nx\n")[0].1, NotCompiled);
        let mut mode = change("run.txt", Some(b"x\n"), Some(b"x\n"));
        mode.new.as_mut().unwrap().executable = true;
        assert_eq!(classed(mode, &[]), [(0, NotCompiled)]);
        let gone = change("release.sh", Some(b"x\n"), None);
        assert_eq!(classed(gone, &[]), [(0, NotCompiled)]);
        // The twins.
        for path in [
            "rates.csv",
            "tests/expected.txt",
            "logo.svg",
            ".gitignore",
            "tests/data/a.json",
            "fixtures/a.toml",
            "tests/data/ca.pem",
            "templates/mail.md",
            "tests/data/order.xml",
            "cases/rates.yaml",
            "prompts/system.md",
        ] {
            assert_eq!(new_file(path, "x\n"), [(1, Data)], "{path}");
        }
        for path in [
            "README.md",
            "docs/a.rst",
            "LICENSE",
            "LICENSE-MIT",
            "CHANGES.txt",
            "LICENSE-APACHE-2.0",
            "README.de.md",
            "crates/a/README.md",
        ] {
            assert_eq!(new_file(path, "x\n"), [(1, Inert)], "{path}");
        }
        let beside = [("crates/a/Cargo.toml", MANIFEST)];
        let licence = change("crates/a/LICENSE", None, Some(b"x\n"));
        assert_eq!(classed(licence, &beside), [(1, Inert)]);
        let seen = new_file("src/snapshots/a.snap", "---\nsource: a\n---\n");
        assert_eq!(seen[0].1, Data);
    }

    #[test]
    fn code_of_a_document_that_is_taken_in_as_documentation_is_run_as_tests() {
        let page = |code: &str| {
            let text = |a: &str, code: &str| format!("# A\n\n{a}\n\n```rust\n{code}\n```\n");
            let (old, new) = (text("a", "f(1);"), text("b", code));
            change("README.md", Some(old.as_bytes()), Some(new.as_bytes()))
        };
        let taker = (
            "src/lib.rs",
            "#[doc = include_str!(\"../README.md\")]\nfn f() {}\n",
        );
        let acting = page("std::process::Command::new(\"sh\");");
        let classes = |change: Change| {
            let found = classed(change, &[taker]);
            found
                .into_iter()
                .map(|(_, class)| class)
                .collect::<Vec<_>>()
        };
        assert_eq!(classes(acting.clone()), [Unjudged, Unjudged]);
        assert_eq!(classes(page("f(2);")), [Tests, Tests]);
        assert_eq!(classes(page("f(1);")), [Inert]);
        assert_eq!(classed(acting, &[]), [(3, Inert), (6, Inert)]);
    }

    #[test]
    fn a_page_that_a_generator_compiles_is_no_document() {
        let text = "# A\n<Script setup>\nx\n</script>\n";
        assert_eq!(new_file("docs/a.md", text)[0].1, NotCompiled);
        let page = || change("docs/guide/a.md", Some(b"a\n"), Some(b"b\n"));
        for generator in [
            "docs/.vitepress/config.mts",
            "docs/docusaurus.config.js",
            "astro.config.mjs",
            "mkdocs.yml",
        ] {
            assert_eq!(
                classed(page(), &[(generator, "")]),
                [(1, NotCompiled)],
                "{generator}"
            );
        }
        // The twins.
        for other in [
            "docs2/.vitepress/config.mts",
            "web/astro.config.mjs",
            "book.toml",
        ] {
            assert_eq!(classed(page(), &[(other, "")]), [(1, Inert)], "{other}");
        }
        let readme = change("README.md", Some(b"a\n"), Some(b"b\n"));
        assert_eq!(classed(readme, &[("mkdocs.yml", "")]), [(1, Inert)]);
    }

    #[test]
    fn code_comments_and_code_of_another_platform_on_neighbouring_lines_are_told_apart() {
        let old =
            "#[cfg(windows)]\nfn f() -> u8 {\n    1\n}\n#[cfg(unix)]\nfn f() -> u8 {\n    1\n}\n";
        let new = old.replace("    1\n", "    // Two.\n    2\n");
        assert_eq!(
            edited("src/lib.rs", old, &new),
            [(3, Inert), (4, NotCompiled), (8, Inert), (9, Mutated)]
        );
        let part = "fn f() {\n    #[cfg(windows)]\n    g(1);\n    g(3);\n}\n";
        let more = part.replace("g(1)", "g(2)");
        assert_eq!(edited("src/lib.rs", part, &more), [(3, NotCompiled)]);
    }

    #[test]
    fn tests_and_examples_are_a_class_of_their_own_and_may_start_nothing() {
        let test = "#[test]\nfn prices() {\n    assert_eq!(total(1), 2);\n}\n";
        assert_eq!(
            new_file("tests/a.rs", test),
            [(1, Tests), (2, Tests), (3, Tests), (4, Inert)]
        );
        let beside = "fn f() {}\n#[cfg(test)]\nmod tests {\n    const A: u8 = 1;\n}\n";
        let more = beside.replace('1', "2");
        assert_eq!(edited("src/lib.rs", beside, &more), [(4, Tests)]);
        let said = "//! A.\n//!\n//! ```\n//! f(1);\n//! ```\nfn f() {}\n";
        let other = said.replace("f(1)", "f(2)").replace("A.", "B.");
        assert_eq!(edited("src/lib.rs", said, &other), [(1, Inert), (4, Tests)]);
        for starting in [
            "std::process::Command::new(\"sh\").status()",
            "assert!(Command::new(\"sh\").status().is_ok())",
            "TcpStream::connect(\"a:1\")",
        ] {
            let acting = test.replace("assert_eq!(total(1), 2)", starting);
            assert_eq!(
                new_file("tests/a.rs", &acting)[2],
                (3, Unjudged),
                "{starting}"
            );
            let beside = beside.replace("const A: u8 = 1;", "fn t() {\n}");
            let acting = beside.replace("fn t() {", &format!("fn t() {{ {starting};"));
            assert_eq!(edited("src/lib.rs", &beside, &acting), [(4, Unjudged)]);
            let acting = said.replace("f(1)", starting);
            let found = edited("src/lib.rs", said, &acting);
            assert_eq!(found, [(4, Unjudged)]);
        }
        for renamed in [
            "use std::process::Command as C;\n",
            "use std::net::*;\n",
            "use std::{net::{*}};\n",
            "use std::*;\n",
            "type Tool = std::process::Command;\n",
            "impl Made for std::process::Command {}\n",
            "fn f() { std::process::Command ::new(\"sh\"); }\n",
            "fn f() { <std::process::Command>::new(\"sh\"); }\n",
            "fn f() { <::std::process::Command as Made>::made(); }\n",
            "mod own { pub struct Command; } fn f() { std::process::Command::new(\"sh\"); }\n",
            "mod p { pub use std::process::Command; } fn f() { p::Command::new(\"sh\"); }\n",
            "macro_rules! m { ($a:ident) => { std::process::$a::new(\"sh\") } }\n",
            "fn f() { \"a:1\".to_socket_addrs(); }\n",
        ] {
            assert_eq!(
                new_file("tests/a.rs", renamed),
                [(1, Unjudged)],
                "{renamed}"
            );
            let example = format!("//! A.\n//!\n//! ```\n//! {renamed}//! ```\nfn f() {{}}\n");
            let found = edited("src/lib.rs", said, &example);
            assert_eq!(found, [(4, Unjudged)], "{renamed}");
        }
        for acting in [
            "//! A.\n//!\n//!     std::process::Command::new(\"sh\");\nfn f() {}\n",
            "//! A.\n//!\n//! ```text\n//! A.\n//! ```\n//! ```\n//! # use std::net::*;\n//! ```\nfn f() {}\n",
            "//! A.\n//!\n//! ```\n//! extern \"C\" { fn system(a: *const u8); }\n//! ```\nfn f() {}\n",
            "//! A.\n//!\n//! ```\n//! Command::new(\"sh\"); ) '\n//! ```\nfn f() {}\n",
        ] {
            let found = edited("src/lib.rs", "//! A.\n//!\nfn f() {}\n", acting);
            assert!(
                found.iter().any(|(_, class)| *class == Unjudged),
                "{acting}"
            );
        }
        // Text becomes code where the word goes that made it text.
        let text = "//! ```text\n//! std::process::Command::new(\"sh\");\n//! ```\nfn f() {}\n";
        let run = text.replace("text", "");
        assert_eq!(edited("src/lib.rs", text, &run), [(1, Unjudged)]);
        // The twins: the program under test, and what is called alike.
        for own in [
            "use std::process::Command;\nfn f() {\n    Command::new(env!(\"CARGO_BIN_EXE_a\"));\n}\n",
            "use crate::cli::Command;\nfn f() {\n    g(Command::Price);\n}\n",
            "use assert_cmd::Command;\nfn f() {\n    Command::cargo_bin(\"a\");\n}\n",
            "fn f() {\n    std::fs::write(\"a\", \"b\");\n}\n",
            "use std::process::Command;\nfn f(a: &mut Command) -> Command {\n    g(a)\n}\n",
            "mod own {\n    pub struct Command;\n}\nfn f() {\n    own::Command::new();\n}\n",
        ] {
            let found = new_file("tests/a.rs", own);
            assert!(found.iter().all(|(_, class)| *class != Unjudged), "{own}");
        }
    }

    #[test]
    fn a_condition_nobody_can_decide_hides_no_declaration() {
        let old = "#[cfg(strange)]\nstruct A {\n    a: u8,\n}\n";
        let new = old.replace("u8", "u16");
        assert_eq!(edited("src/lib.rs", old, &new), [(3, Unjudged)]);
        let plain = "struct A {\n    a: u8,\n}\n";
        let wide = plain.replace("u8", "u16");
        assert_eq!(edited("src/lib.rs", plain, &wide), [(2, Unjudged)]);
        let more = plain.replace("u8,\n", "u8,\n    b: u8,\n");
        assert_eq!(edited("src/lib.rs", plain, &more), [(3, Inert)]);
    }

    #[test]
    fn a_macro_body_a_constant_and_compiled_data_are_unjudged() {
        let old = "macro_rules! m {\n    () => {\n        1\n    };\n}\nconst A: u8 = 1;\n";
        let new = old.replace('1', "2");
        assert_eq!(
            edited("src/lib.rs", old, &new),
            [(3, Unjudged), (6, Unjudged)]
        );
        let reader = (
            "src/lib.rs",
            "const T: &str = include_str!(\"../rates.csv\");\n",
        );
        let rates = change("rates.csv", Some(b"1\n2\n"), Some(b"1\n3\n"));
        assert_eq!(classed(rates.clone(), &[reader]), [(2, Unjudged)]);
        assert_eq!(classed(rates, &[]), [(2, Data)]);
    }

    #[test]
    fn a_source_file_that_goes_takes_its_implementations_with_it_and_is_named() {
        let gone = |path: &str| classed(change(path, Some(b"impl Drop for A {}\n"), None), &[]);
        assert_eq!(gone("src/guard.rs"), [(0, Unjudged)]);
        assert_eq!(gone("src/bin/other.rs"), [(0, Unjudged)]);
        assert_eq!(gone("tests/guard.rs"), [(0, Inert)]);
        let uncommented = edited("src/lib.rs", "fn f() {}\n// said\n", "fn f() {}\n");
        assert_eq!(uncommented, [(0, Inert)]);
        for empty in ["", "\n", "// nothing here\n"] {
            let emptied = edited("src/guard.rs", "impl Drop for A {}\n", empty);
            assert!(
                emptied.iter().all(|(_, class)| *class == Unjudged),
                "{emptied:?}"
            );
            assert!(!emptied.is_empty());
        }
    }

    #[test]
    fn a_source_file_that_moves_is_there_and_one_that_moves_to_the_tests_is_gone() {
        let moved_to = |new: &str| {
            let content = Some(&b"impl Drop for A {}\n"[..]);
            let changes = vec![
                change("src/guard.rs", content, None),
                change(new, None, content),
            ];
            let manifest: RelPath = "Cargo.toml".parse().unwrap();
            let tree: Tree<'_> = [(&manifest, MANIFEST.as_bytes())].into_iter().collect();
            let captured = captured(changes);
            let plan =
                MutationPlan::new(population::input(&captured.changes, &tree, [1; 32])).unwrap();
            let removed = |place: &&crate::mutation::Unjudged| place.why == Silence::Removed;
            plan.unjudged.iter().filter(removed).count()
        };
        assert_eq!(moved_to("src/guards/mod.rs"), 0);
        assert_eq!(moved_to("tests/guard.rs"), 1);
        assert_eq!(moved_to("docs/guard.txt"), 1);
    }

    #[test]
    fn a_file_that_the_build_did_not_read_is_not_compiled_and_holds_no_mutants() {
        let text = "fn f() -> u8 {\n    1\n}\n";
        let captured = captured(vec![change(
            "other/src/lib.rs",
            None,
            Some(text.as_bytes()),
        )]);
        let tree: Tree<'_> = std::iter::empty().collect();
        let plan = MutationPlan::new(population::input(&captured.changes, &tree, [1; 32])).unwrap();
        assert!(!plan.mutants.is_empty());
        let plan = plan.reading(|_| false, []).unwrap();
        assert!(plan.mutants.is_empty() && plan.overlay.is_empty() && plan.is_vacuous());
        let files = ChangedFile::all(&captured.changes, &tree, None);
        let found = classes(&files, &plan);
        let found: Vec<_> = found.iter().map(|l| (l.line, l.class)).collect();
        assert_eq!(found, [(1, NotCompiled), (2, NotCompiled), (3, Inert)]);
    }

    #[test]
    fn a_declaration_that_unchanged_lines_of_another_file_can_name_is_unjudged() {
        let unit = "pub const UNIT: u32 = 2;\n";
        let short = format!("{unit}pub type u64 = u16;\n");
        let changed =
            |new: &str| change("src/prices.rs", Some(unit.as_bytes()), Some(new.as_bytes()));
        let everything = ("src/main.rs", "use prices::*;\nfn f() -> u64 {\n    1\n}\n");
        let named = (
            "src/main.rs",
            "use prices::UNIT;\nfn f() -> u64 {\n    1\n}\n",
        );
        let tests = (
            "src/main.rs",
            "fn f() -> u64 {\n    1\n}\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n",
        );
        assert_eq!(classed(changed(&short), &[everything]), [(2, Unjudged)]);
        assert_eq!(classed(changed(&short), &[named]), [(2, Inert)]);
        assert_eq!(classed(changed(&short), &[tests]), [(2, Inert)]);
        let other = short.replace("u64", "Small");
        assert_eq!(classed(changed(&other), &[everything]), [(2, Inert)]);
        let fee = "impl Order {\n    fn fee(&self) {}\n    fn own(&self) {}\n}\n";
        let gone = fee.replace("    fn fee(&self) {}\n", "");
        let plan = |caller: &str| {
            let change = change("src/order.rs", Some(fee.as_bytes()), Some(gone.as_bytes()));
            let path: RelPath = "src/main.rs".parse().unwrap();
            let tree: Tree<'_> = [(&path, caller.as_bytes())].into_iter().collect();
            let plan = population::input(&[change], &tree, [1; 32]);
            let places = MutationPlan::new(plan).unwrap().unjudged;
            places.iter().map(|place| place.id()).collect::<Vec<_>>()
        };
        let place = ["src/order.rs:1 unjudged removed"];
        assert_eq!(plan("fn f(o: Order) {\n    o.fee();\n}\n"), place);
        assert_eq!(plan("fn f(o: Order) {\n    o.own();\n}\n"), [""; 0]);
    }

    #[test]
    fn a_document_that_another_language_takes_in_or_a_shell_runs_is_no_document() {
        let classed = |change: Change, source: &str| {
            let path: RelPath = "src/main.c".parse().unwrap();
            let tree: Tree<'_> = [(&path, source.as_bytes())].into_iter().collect();
            ChangedFile::all(&[change], &tree, Some(Language::C))
                .remove(0)
                .whole
        };
        let text = change("docs/rates.md", Some(b"1\n"), Some(b"2\n"));
        assert_eq!(classed(text.clone(), "int a;\n"), Some(Inert));
        let taken = classed(text.clone(), "#include \"../docs/rates.md\"\n");
        assert_eq!(taken, Some(Unjudged));
        let script = change("install.md", None, Some(b"#!/bin/sh\nx\n"));
        assert_eq!(classed(script, ""), Some(NotCompiled));
        let mut run = text;
        run.new.as_mut().unwrap().executable = true;
        assert_eq!(classed(run, ""), Some(NotCompiled));
    }

    #[test]
    fn a_document_beside_a_name_that_no_rule_reads_is_told_by_the_compiler() {
        let documents = "#![doc = include_str!(\"../README.md\")]\n";
        let readme = change("README.md", Some(b"1\n"), Some(b"2\n"));
        let unseen = |more: &str| {
            let path: RelPath = "src/lib.rs".parse().unwrap();
            let text = format!("{documents}{more}");
            let tree: Tree<'_> = [(&path, text.as_bytes())].into_iter().collect();
            let files = ChangedFile::all(std::slice::from_ref(&readme), &tree, None);
            files[0].is_read_unseen()
        };
        assert!(unseen(
            "const T: &str = include_str!(concat!(\"../READ\", \"ME.md\"));\n"
        ));
        assert!(unseen("m! { $x => include_str!($x) }\n"));
        assert!(!unseen(""));
        assert!(!unseen("const T: &str = include_str!(\"../rates.csv\");\n"));
        assert!(!unseen(
            "const T: &str = include_str!(concat!(env!(\"OUT_DIR\"), \"/a\"));\n"
        ));
    }

    #[test]
    fn what_a_build_script_may_read_is_unjudged() {
        let proto = change("proto/a.txt", Some(b"1\n"), Some(b"2\n"));
        let inside = ("codec/build.rs", "fn main() { read(\"schema.txt\"); }\n");
        let manifest = ("codec/Cargo.toml", MANIFEST);
        assert_eq!(classed(proto.clone(), &[inside, manifest]), [(1, Data)]);
        let climbing = (
            "codec/build.rs",
            "fn main() { read(\"../proto/a.txt\"); }\n",
        );
        assert_eq!(classed(proto, &[climbing, manifest]), [(1, Unjudged)]);
    }
}
