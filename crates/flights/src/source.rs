//! Lays a plan's source out as a git repository with two commits.

use crate::plan::{CrateSource, PlanSource, TreesSource};
use crate::{FlightsCode, regular, state};
use flightproof_archive::pack_directory;
use flightproof_certifier::verify::ExpectedSubject;
use flightproof_core::{Digest, Hasher, Refusal, RelPath, escape};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository that holds baseline and candidate.
pub struct Laid {
    /// Its directory.
    pub repository: PathBuf,
}

/// One file of a tree.
#[derive(Clone, PartialEq, Eq)]
struct TreeFile {
    executable: bool,
    content: Vec<u8>,
}

type Tree = BTreeMap<RelPath, TreeFile>;

/// Largest unpacked tree in bytes: what a session's snapshot can hold several times over.
const MAX_TREE: u64 = 64 << 20;
/// Workspace id of snapshots; a snapshot id does not depend on it.
const WORKSPACE: &str = "flightproof";
/// Where baseline and candidate lie in a repository made here.
pub(crate) const BASELINE: &str = "refs/heads/baseline";
const CANDIDATE: &str = "refs/heads/candidate";
/// Author and date of commits made from directories: constant, so that the ids are too.
const AUTHOR: &str = "Flight Source <source@flightproof.invalid> 1700000000 +0000";

/// The operator's name for the repository of a source, and the revisions of baseline and candidate.
pub fn revisions(source: &PlanSource, name: &str) -> (String, String, String) {
    let made = |label: &str| (label.to_owned(), BASELINE.to_owned(), CANDIDATE.to_owned());
    match source {
        PlanSource::Git(git) => (
            named(&git.repository),
            git.baseline.clone(),
            git.candidate.clone(),
        ),
        PlanSource::Crate(releases) => made(&releases.name),
        PlanSource::Trees(_) => made(name),
    }
}

/// Where the project that a plan belongs to has a file of the plan's candidate, if it has it.
pub(crate) fn in_project(source: &PlanSource, root: &Path, file: &str) -> Option<String> {
    let place = match source {
        PlanSource::Git(git) => git.repository.join(file),
        PlanSource::Trees(trees) => {
            let mut places = [&trees.candidate, &trees.baseline]
                .map(|folder| folder.join(file))
                .into_iter();
            places.find(|place| root.join(place).is_file())?
        }
        PlanSource::Crate(_) => return None,
    };
    let place = place.strip_prefix(".").unwrap_or(&place);
    let place = RelPath::new(place.to_str()?).ok()?;
    Some(place.to_string())
}

/// What a repository is called that nobody named, and whose directory has no name.
pub(crate) const UNNAMED: &str = "repository";

/// What a repository is called that nobody named.
pub(crate) fn directory_name(repository: &Path) -> String {
    let path = repository.canonicalize().ok();
    let name = path.as_deref().and_then(Path::file_name);
    name.map_or_else(
        || UNNAMED.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The path of a file relative to a directory that it lies in.
pub(crate) fn place_inside(file: &Path, directory: &Path) -> Option<RelPath> {
    let (file, directory) = (file.canonicalize().ok()?, directory.canonicalize().ok()?);
    RelPath::new(file.strip_prefix(directory).ok()?.to_str()?).ok()
}

/// A repository's name by its directory; the one that holds the plan is at no name.
fn named(repository: &Path) -> String {
    let name = repository.file_name().map(|name| name.to_string_lossy());
    name.map_or_else(|| "this-repository".to_owned(), Into::into)
}

/// Digest of the directories of a source: paths, modes and contents.
///
/// # Errors
/// `SOURCE_UNAVAILABLE`.
pub fn digest(trees: &TreesSource, root: &Path) -> Result<Digest, Refusal> {
    let mut hasher = Hasher::new();
    for folder in [&trees.baseline, &trees.candidate] {
        for (path, file) in read_directory(&root.join(folder))? {
            let head = format!(
                "{} {} {}\0",
                path.as_str(),
                file.executable,
                file.content.len()
            );
            hasher.update(head.as_bytes());
            hasher.update(&file.content);
        }
        hasher.update(b"\0");
    }
    Ok(hasher.finish())
}

/// The subject of a certificate about exactly this directory, `.git` left out.
///
/// # Errors
/// `SUBJECT_UNREADABLE` for what no snapshot can hold.
pub fn snapshot(directory: &Path) -> Result<ExpectedSubject, Refusal> {
    let packed = pack_directory(directory, WORKSPACE, &[".git"])
        .map_err(|e| FlightsCode::SubjectUnreadable.refuse(e))?;
    Ok(ExpectedSubject {
        snapshot: packed.snapshot.snapshot_id(),
        kept: None,
    })
}

/// Lays out the source. Repositories made here go below `work`.
///
/// # Errors
/// `SOURCE_UNAVAILABLE` naming what is not there.
pub fn lay(source: &PlanSource, name: &str, root: &Path, work: &Path) -> Result<Laid, Refusal> {
    match source {
        PlanSource::Git(git) => Ok(Laid {
            repository: root.join(&git.repository),
        }),
        PlanSource::Crate(releases) => crate_source(releases, name, work),
        PlanSource::Trees(trees) => tree_source(trees, name, root, work),
    }
}

/// Lays one directory out as a repository with one commit on `baseline`.
///
/// # Errors
/// `SOURCE_UNAVAILABLE`.
pub fn lay_baseline(folder: &Path, name: &str, work: &Path) -> Result<Laid, Refusal> {
    let mut stream = Vec::new();
    let tree = read_directory(folder)?;
    write_commit(&mut stream, "baseline", None, "Baseline", &tree);
    import(stream, name, work)
}

fn crate_source(releases: &CrateSource, name: &str, work: &Path) -> Result<Laid, Refusal> {
    let baseline = read_release(&releases.name, &releases.baseline)?;
    let newer = read_release(&releases.name, &releases.candidate)?;
    let candidate = match &releases.only {
        Some(paths) => with_files(&baseline, &newer, paths),
        None => newer,
    };
    let candidate = with_files(&candidate, &baseline, &releases.revert);
    let message = format!("{} {}", releases.name, releases.candidate);
    commit_pair(&baseline, &candidate, name, &message, work)
}

fn tree_source(trees: &TreesSource, name: &str, root: &Path, work: &Path) -> Result<Laid, Refusal> {
    let baseline = read_directory(&root.join(&trees.baseline))?;
    let mut candidate = baseline.clone();
    candidate.extend(read_directory(&root.join(&trees.candidate))?);
    commit_pair(&baseline, &candidate, name, "Improve the program", work)
}

/// `base`, with the given paths as they are in `other`.
fn with_files(base: &Tree, other: &Tree, paths: &[RelPath]) -> Tree {
    let mut tree = base.clone();
    for path in paths {
        match other.get(path) {
            Some(file) => tree.insert(path.clone(), file.clone()),
            None => tree.remove(path),
        };
    }
    tree
}

fn unavailable(what: impl std::fmt::Display) -> Refusal {
    FlightsCode::SourceUnavailable.refuse(what).into()
}

fn read_release(name: &str, version: &str) -> Result<Tree, Refusal> {
    let file = format!("{name}-{version}.crate");
    let path = state::crate_caches()
        .into_iter()
        .map(|cache| cache.join(&file))
        .find(|path| path.is_file())
        .ok_or_else(|| unavailable(format!("{file} is not in cargo's cache")))?;
    let bytes = regular::read(&path, MAX_TREE).map_err(|e| unavailable(format!("{file}: {e}")))?;
    unpack_release(&bytes, &format!("{name}-{version}"))
        .map_err(|e| unavailable(format!("{file}: {e}")))
}

fn unpack_release(bytes: &[u8], prefix: &str) -> Result<Tree, String> {
    let mut tree = Tree::new();
    let plain = flate2::read::GzDecoder::new(bytes).take(MAX_TREE);
    let mut archive = tar::Archive::new(plain);
    for entry in archive.entries().map_err(|e| e.to_string())? {
        let mut entry = entry.map_err(|e| e.to_string())?;
        let path = entry.path_bytes().into_owned();
        let path = std::str::from_utf8(&path).map_err(|_| "a path that is not UTF-8".to_owned())?;
        let inner = path.strip_prefix(prefix).and_then(|p| p.strip_prefix('/'));
        let inner = inner.ok_or_else(|| format!("{} lies outside {prefix}/", escape(path, 100)))?;
        if !entry.header().entry_type().is_file() {
            return Err(format!("{} is not a file", escape(path, 100)));
        }
        let executable = entry.header().mode().map_err(|e| e.to_string())? & 0o100 != 0;
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(|e| e.to_string())?;
        let inner = RelPath::new(inner).map_err(|e| format!("{} {e}", escape(path, 100)))?;
        tree.insert(
            inner,
            TreeFile {
                executable,
                content,
            },
        );
    }
    Ok(tree)
}

fn read_directory(root: &Path) -> Result<Tree, Refusal> {
    let mut tree = Tree::new();
    let mut pending = vec![root.to_owned()];
    let mut left = MAX_TREE;
    while let Some(directory) = pending.pop() {
        let failed = |e: std::io::Error| unavailable(format!("{}: {e}", directory.display()));
        for entry in std::fs::read_dir(&directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let meta = path.symlink_metadata().map_err(failed)?;
            if meta.is_dir() {
                pending.push(path);
                continue;
            }
            let inner = path
                .strip_prefix(root)
                .ok()
                .and_then(Path::to_str)
                .unwrap_or_default();
            let inner =
                RelPath::new(inner).map_err(|e| unavailable(format!("{} {e}", path.display())))?;
            if !meta.is_file() {
                return Err(unavailable(format!("{} is not a file", path.display())));
            }
            let content = regular::read_arrival(&path, left).map_err(failed)?;
            left = left.checked_sub(content.len() as u64).ok_or_else(|| {
                unavailable(format!("{}: more than {MAX_TREE} bytes", root.display()))
            })?;
            let executable = meta.permissions().mode() & 0o100 != 0;
            tree.insert(
                inner,
                TreeFile {
                    executable,
                    content,
                },
            );
        }
    }
    Ok(tree)
}

/// Makes a bare repository `work/NAME.git` with the two trees as commits on `baseline` and
/// `candidate`. One `git fast-import` writes it all: no filter, ignore rule or hook is looked at.
fn commit_pair(
    baseline: &Tree,
    candidate: &Tree,
    name: &str,
    message: &str,
    work: &Path,
) -> Result<Laid, Refusal> {
    let mut stream = Vec::new();
    write_commit(&mut stream, "baseline", None, "Baseline", baseline);
    write_commit(
        &mut stream,
        "candidate",
        Some("baseline"),
        message,
        candidate,
    );
    import(stream, name, work)
}

fn import(mut stream: Vec<u8>, name: &str, work: &Path) -> Result<Laid, Refusal> {
    let repository = work.join(format!("{name}.git"));
    git(
        &["init", "--quiet", "--bare", "--template="],
        Some(&repository),
        &[],
    )?;
    stream.extend_from_slice(b"done\n");
    git(
        &["fast-import", "--quiet", "--done"],
        Some(&repository),
        &stream,
    )?;
    Ok(Laid { repository })
}

fn write_commit(out: &mut Vec<u8>, branch: &str, from: Option<&str>, message: &str, tree: &Tree) {
    out.extend_from_slice(
        format!("commit refs/heads/{branch}\nauthor {AUTHOR}\ncommitter {AUTHOR}\n").as_bytes(),
    );
    out.extend_from_slice(format!("data {}\n{message}\n", message.len()).as_bytes());
    if let Some(from) = from {
        out.extend_from_slice(format!("from refs/heads/{from}\n").as_bytes());
    }
    out.extend_from_slice(b"deleteall\n");
    for (path, file) in tree {
        let mode = if file.executable { "100755" } else { "100644" };
        let quoted = path.as_str().replace('"', "\\\"");
        out.extend_from_slice(
            format!(
                "M {mode} inline \"{quoted}\"\ndata {}\n",
                file.content.len()
            )
            .as_bytes(),
        );
        out.extend_from_slice(&file.content);
        out.push(b'\n');
    }
}

fn git(args: &[&str], repository: Option<&Path>, input: &[u8]) -> Result<String, Refusal> {
    let program = state::program("git", "git")?;
    let failed = |e: std::io::Error| unavailable(format!("git {}: {e}", args[0]));
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(repository) = repository {
        command.env("GIT_DIR", repository);
    }
    let mut child = command.spawn().map_err(failed)?;
    let mut stdin = child.stdin.take();
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            stdin
                .take()
                .map_or(Ok(()), |mut pipe| pipe.write_all(input))
        });
        let output = child.wait_with_output();
        (writer.join(), output)
    });
    let output = written.1.map_err(failed)?;
    if !output.status.success() {
        return Err(unavailable(format!(
            "git {}: {}",
            args[0],
            escape(&output.stderr, 300)
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
