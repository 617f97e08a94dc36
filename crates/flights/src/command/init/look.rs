//! What a repository is made of, read from its manifests as text. Nothing of it is executed: neither
//! cargo, which would obey its settings, nor git.

use super::input;
use crate::{FlightsCode, show};
use flightproof_core::Refusal;
use flightproof_importer::is_protected;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use toml::Table;

/// Largest manifest in bytes.
const MAX_MANIFEST: usize = 1 << 20;
/// Most members of a workspace that are looked at.
const MAX_MEMBERS: usize = 2000;

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The branch that work comes into: the remote's, or `main` or `master`, or the one that is
    /// checked out.
    pub branch: Option<String>,
    /// The branch that is checked out, where it is another.
    pub candidate: Option<String>,
    /// Packages with a readable manifest.
    pub packages: usize,
    /// Names of programs, sorted.
    pub programs: Vec<String>,
    /// Packages with a library, sorted.
    pub libraries: Vec<String>,
    /// Whether there is a lock file.
    pub locked: bool,
    /// What the owner should know.
    pub notes: Vec<String>,
}

/// What will be judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A program.
    Bin(String),
    /// The library of a package, through a driver.
    Library(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bin(name) => write!(f, "the program {name}"),
            Self::Library(name) => write!(f, "the library of {name}, through a driver"),
        }
    }
}

impl Found {
    /// The target that is named, or the only one there is.
    pub(super) fn choose(&self, bin: Option<&str>, lib: Option<&str>) -> Result<Target, Refusal> {
        let unclear = |why: String| Refusal::from(FlightsCode::TargetUnclear.refuse(why));
        let known = |names: &[String], name: &str| {
            let found = names.iter().find(|n| *n == name).cloned();
            found.ok_or_else(|| unclear(format!("there is no {name:.100?}: {}", self.targets())))
        };
        match (bin, lib) {
            (Some(bin), _) => return known(&self.programs, bin).map(Target::Bin),
            (_, Some(lib)) => return known(&self.libraries, lib).map(Target::Library),
            _ => {}
        }
        match (self.programs.as_slice(), self.libraries.as_slice()) {
            ([bin], _) => Ok(Target::Bin(bin.clone())),
            ([], [lib]) => Ok(Target::Library(lib.clone())),
            ([], []) => Err(FlightsCode::NothingToInit
                .refuse("no package with a program or a library was found")
                .into()),
            _ => Err(unclear(self.targets())),
        }
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "{}, {}, {}, {}",
            show::count(self.packages, "package"),
            show::count(self.programs.len(), "program"),
            show::count(self.libraries.len(), "library"),
            if self.locked {
                "Cargo.lock"
            } else {
                "no Cargo.lock"
            },
        )
    }

    fn targets(&self) -> String {
        /// Most names in one line.
        const MOST: usize = 20;
        let named = |word: &str, names: &[String]| match names.len() {
            0 => format!("no {word}"),
            n if n > MOST => format!("{word} {}, and {} more", names[..MOST].join(", "), n - MOST),
            _ => format!("{word} {}", names.join(", ")),
        };
        format!(
            "{}; {}",
            named("--bin", &self.programs),
            named("--lib", &self.libraries)
        )
    }
}

/// Looks at the repository with this top.
pub(super) fn look(repo: &Path) -> Result<Found, Refusal> {
    let manifest = repo.join("Cargo.toml");
    if !manifest.is_file() {
        let nothing = FlightsCode::NothingToInit.refuse(format!(
            "{} has no Cargo.toml; for Python, C, Go, JavaScript or TypeScript write the witness by hand \
             (docs/howto.md)",
            input::shown(repo)
        ));
        return Err(nothing.into());
    }
    let root = read(&manifest)?;
    let (branch, candidate) = branches(repo);
    let mut found = Found {
        branch,
        candidate,
        locked: repo.join("Cargo.lock").is_file(),
        ..Found::default()
    };
    let mut packages = Vec::new();
    if root.contains_key("package") {
        packages.push((repo.to_owned(), root.clone()));
    }
    for folder in members(repo, &root) {
        // The root may be listed as its own member.
        if folder != repo
            && let Ok(table) = read(&folder.join("Cargo.toml"))
        {
            packages.push((folder, table));
        }
    }
    for (folder, table) in &packages {
        found.add(folder, table);
    }
    for names in [&mut found.programs, &mut found.libraries] {
        names.sort();
        names.dedup();
    }
    found.remark(repo);
    Ok(found)
}

impl Found {
    fn add(&mut self, folder: &Path, manifest: &Table) {
        let Some(package) = manifest.get("package").and_then(toml::Value::as_table) else {
            return;
        };
        let Some(name) = string(package, "name").filter(|name| is_target(name)) else {
            return;
        };
        self.packages += 1;
        if folder.join("src/lib.rs").is_file() || manifest.contains_key("lib") {
            self.libraries.push(name.to_owned());
        }
        if folder.join("src/main.rs").is_file() {
            self.programs.push(name.to_owned());
        }
        let listed = manifest.get("bin").and_then(toml::Value::as_array);
        let listed = listed
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_table);
        let listed = listed.filter_map(|bin| string(bin, "name").map(str::to_owned));
        let placed = entries(&folder.join("src/bin"))
            .into_iter()
            .filter_map(|path| {
                let is_program =
                    path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").is_file();
                let name = path.file_stem()?.to_str()?.to_owned();
                is_program.then_some(name)
            });
        self.programs
            .extend(listed.chain(placed).filter(|name| is_target(name)));
        let macros = manifest.get("lib").and_then(|lib| lib.get("proc-macro"));
        if macros.and_then(toml::Value::as_bool) == Some(true) {
            self.notes.push(format!(
                "{name} is a procedural macro: certificates need `\"proc_macros\": true` under `allow` in the policy"
            ));
        }
        if folder.join("build.rs").is_file() {
            self.notes.push(format!(
                "{name} has a build script: certificates need `\"build_scripts\": true` under `allow` in the policy"
            ));
        }
    }

    /// What will be refused sooner or later, said beforehand.
    fn remark(&mut self, repo: &Path) {
        if !self.locked {
            self.notes.push(
                "there is no Cargo.lock: make one with `cargo generate-lockfile` and name it in the plan as change.lock".into(),
            );
        }
        if !repo.join(".git").exists() {
            let above = repo
                .ancestors()
                .skip(1)
                .find(|dir| dir.join(".git").exists());
            self.notes.push(match above {
                Some(top) => format!(
                    "the repository is {}: name it with --repo, and what is judged with --bin or --lib",
                    input::shown(top)
                ),
                None => "there is no .git: candidate and baseline are commits".into(),
            });
        }
        let protected: Vec<String> = entries(repo)
            .iter()
            .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
            .filter(|name| is_protected(name))
            .collect();
        if !protected.is_empty() {
            self.notes.push(format!(
                "a candidate may not change {} unless the plan grants each by its exact path",
                protected.join(", ")
            ));
        }
    }
}

/// The folders that a workspace lists, patterns of one `*` resolved, most of them.
fn members(repo: &Path, root: &Table) -> Vec<PathBuf> {
    let listed = root.get("workspace").and_then(|w| w.get("members"));
    let listed = listed.and_then(toml::Value::as_array).into_iter().flatten();
    let mut folders = Vec::new();
    for member in listed.filter_map(toml::Value::as_str) {
        // A member beyond the repository is not what the candidate's tree holds.
        if member.starts_with('/') || member.split('/').any(|part| part == "..") {
            continue;
        }
        match member.strip_suffix("/*") {
            Some(parent) => folders.extend(entries(&repo.join(parent))),
            None if member == "*" => folders.extend(entries(repo)),
            None => folders.push(repo.join(member)),
        }
        folders.truncate(MAX_MEMBERS);
    }
    folders
}

/// What lies in a folder, sorted; nothing where there is none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = found
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .take(MAX_MEMBERS)
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Result<Table, Refusal> {
    let bytes = input::read(path, MAX_MANIFEST)?;
    if bytes.len() > MAX_MANIFEST {
        return Err(input::unreadable(
            path,
            format!("more than {MAX_MANIFEST} bytes"),
        ));
    }
    let text = String::from_utf8(bytes).map_err(|e| input::unreadable(path, e))?;
    text.parse()
        .map_err(|e: toml::de::Error| input::unreadable(path, e.message()))
}

/// The branch that work comes into, and the one that is checked out where it is another. Read as
/// files.
fn branches(repo: &Path) -> (Option<String>, Option<String>) {
    let git = repo.join(".git");
    let here = branch(&git.join("HEAD"), "ref: refs/heads/");
    let packed = input::read(&git.join("packed-refs"), MAX_MANIFEST).unwrap_or_default();
    let packed = String::from_utf8_lossy(&packed);
    let there = |name: &&str| {
        let full = format!("refs/heads/{name}");
        git.join(&full).is_file()
            || packed
                .lines()
                .any(|line| line.ends_with(&format!(" {full}")))
    };
    let remote = branch(
        &git.join("refs/remotes/origin/HEAD"),
        "ref: refs/remotes/origin/",
    );
    let usual = || {
        ["main", "master"]
            .into_iter()
            .find(there)
            .map(str::to_owned)
    };
    let into = remote.filter(|name| there(&name.as_str())).or_else(usual);
    match into.or_else(|| here.clone()) {
        Some(into) => (Some(into.clone()), here.filter(|here| *here != into)),
        None => (None, here),
    }
}

/// The branch that a file such as `HEAD` names.
fn branch(file: &Path, prefix: &str) -> Option<String> {
    let head = input::read(file, 1024).ok()?;
    let name = String::from_utf8(head).ok()?;
    let name = name.strip_prefix(prefix)?.trim_end();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned())
}

fn string<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.get(key).and_then(toml::Value::as_str)
}

/// A name that cargo gives to packages and programs.
fn is_target(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

/// The repository's name in the characters of a plan's.
pub(super) fn plain_name(repo: &Path) -> String {
    let name = repo.file_name().map(|n| n.to_string_lossy().to_lowercase());
    let name: String = name
        .unwrap_or_default()
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '-'
            }
        })
        .take(64)
        .collect();
    match name.trim_matches('-') {
        "" => "candidate".into(),
        name => name.into(),
    }
}
