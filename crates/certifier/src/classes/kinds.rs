//! What a file is by its name, its place and how it begins: a document, data, a script, a tool's.

use crate::tree::Tree;
use flightproof_core::RelPath;
use flightproof_evidence::{Change, FileState};

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
pub(super) fn is_shelved(path: &RelPath) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let named = is_document_name(stem);
    let mut folders = path.parent().into_iter().flat_map(|p| p.split('/'));
    let shelf = |folder: &str| SHELVES.contains(&folder.to_ascii_lowercase().as_str());
    named || path.parent().is_none() || folders.any(shelf)
}

/// A text for people, by its name.
pub(super) fn is_document(name: &str) -> bool {
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
pub(super) fn is_out_of_place(path: &RelPath, tree: &Tree<'_>) -> bool {
    let Some(folder) = path.parent() else {
        return false;
    };
    let manifest = format!("{folder}/Cargo.toml");
    !path.file_name().contains('.') && tree.file(&manifest).is_none()
}

/// Whether a generator of sites compiles a document: it has a script, or a generator's configuration
/// lies in a folder above it.
pub(super) fn is_compiled_page(change: &Change, tree: &Tree<'_>) -> bool {
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
    "apt.txt",
    "conanfile.txt",
    "meson_options.txt",
    "packages.txt",
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
    "buf",
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
    "devenv",
    "devcontainer",
    "docker-bake",
    "docker-compose",
    "firebase",
    "fly",
    "helmfile",
    "heroku",
    "kustomization",
    "launch",
    "justfile",
    "lefthook",
    "main",
    "mcp",
    "mise",
    "mkdocs",
    "moon",
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
pub(super) fn is_script(path: &RelPath, state: &FileState) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    let hidden = path.as_str().split('/').any(|part| part.starts_with('.'));
    let first = &state.content[..];
    let magic = [&b"#!"[..], b"\x7fELF", b"MZ", b"\0asm", b"@EXPLICIT"];
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
