//! `flights init`: looks at a repository and writes what a first flight of it needs.

mod look;
mod skeleton;

use super::repository::Repository;
use super::{input, key};
use crate::show::{self, Format};
use crate::{FlightsCode, state};
use flightproof_core::{Exit, Refusal};
use look::{Found, Target};
use std::path::{Path, PathBuf};

/// `flights init`.
#[derive(clap::Args)]
pub(super) struct InitArgs {
    /// Directory of the repository; default: the one that the current directory lies in.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Directory to write to, outside the repository; default: DIR-flights beside it.
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: Option<PathBuf>,
    /// The program that will be judged, where there are several.
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,
    /// The library that will be judged, by its package, through a driver of yours.
    #[arg(long, value_name = "PACKAGE", conflicts_with = "bin")]
    lib: Option<String>,
}

/// Writes plan, witness and policy. Nothing that exists is touched, nothing of the repository runs.
///
/// # Errors
/// `NOTHING_TO_INIT`, `TARGET_UNCLEAR`, `FILE_UNREADABLE`, `OUTPUT_UNWRITABLE`.
pub(super) fn run(args: &InitArgs, format: Format) -> Result<Exit, Refusal> {
    let repo = Repository::of(args.repo.as_deref())?.top;
    let repo = repo
        .canonicalize()
        .map_err(|e| input::unreadable(&repo, e))?;
    let found = look::look(&repo)?;
    let target = found.choose(args.bin.as_deref(), args.lib.as_deref())?;
    let output = output(args.output.as_deref(), &repo)?;
    let name = look::plain_name(&repo);
    let files = skeleton::files(&skeleton::Facts {
        name: &name,
        repository: &beside(&repo, &output),
        branch: found.branch.as_deref(),
        candidate: found.candidate.as_deref(),
        key: key::own_public().ok().map(|key| key.id().to_string()),
        locked: found.locked,
        workspace: found.packages > 1,
        target: &target,
    });
    for (path, text) in &files {
        write(&output.join(path), text)?;
    }
    let written: Vec<PathBuf> = files.iter().map(|(path, _)| output.join(path)).collect();
    match format {
        Format::Human => show::print(&said(&found, &target, &written, &repo, &output)),
        Format::Json => show::print(&json(&found, &target, &written)),
    }
    Ok(Exit::Passed)
}

/// Where to write. What judges a candidate must not lie where the candidate is made.
fn output(named: Option<&Path>, repo: &Path) -> Result<PathBuf, Refusal> {
    let output = match (named, repo.file_name(), repo.parent()) {
        (Some(named), ..) => named.to_owned(),
        (None, Some(name), Some(parent)) => {
            let mut name = name.to_owned();
            name.push("-flights");
            parent.join(name)
        }
        _ => {
            return Err(unwritable(
                repo,
                "it has no directory beside it: name one with -o",
            ));
        }
    };
    if output.symlink_metadata().is_ok() {
        return Err(unwritable(&output, "it exists, and nothing is replaced"));
    }
    let parent = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = parent.canonicalize().map_err(|e| unwritable(parent, e))?;
    let Some(name) = output.file_name() else {
        return Err(unwritable(&output, "it names no new directory"));
    };
    if parent.starts_with(repo) {
        return Err(unwritable(
            &output,
            "it lies in the repository, where whoever makes the candidate would read the witness",
        ));
    }
    Ok(parent.join(name))
}

/// The repository as the plan names it: relative to the output where they lie side by side.
fn beside(repo: &Path, output: &Path) -> PathBuf {
    match repo.file_name() {
        Some(name) if repo.parent() == output.parent() => Path::new("..").join(name),
        _ => repo.to_owned(),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Refusal> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|e| unwritable(folder, e))?;
    state::write_new_file(path, text.as_bytes(), 0o644)
        .map_err(|refusal| FlightsCode::OutputUnwritable.refuse(refusal.detail).into())
}

fn said(found: &Found, target: &Target, written: &[PathBuf], repo: &Path, output: &Path) -> String {
    let mut lines = vec![format!(
        "looked at  {}: {}",
        input::shown(repo),
        found.summary()
    )];
    lines.push(format!("judged     {target}"));
    lines.extend(
        written
            .iter()
            .map(|path| format!("wrote      {}", input::shown(path))),
    );
    lines.extend(found.notes.iter().map(|note| format!("note       {note}")));
    let commits = match &found.candidate {
        Some(_) => "check baseline and candidate in the plan",
        None => "name the candidate in the plan, and check its baseline",
    };
    lines.push(format!(
        "next       1. replace every REPLACE in {} by what must come out\n           \
         2. flights key new, and its id under keys in {} if it is not there\n           \
         3. {commits}, then: flights run --local --root {} --out DIR\n           \
         4. to keep the flight, write ids in place of branches (git rev-parse BRANCH), then add --record\n           \
         5. flights review and flights admit, with that policy, or flights certify --admit BRANCH",
        input::shown(&output.join("flights/witness")),
        input::shown(&output.join("policy.json")),
        input::shown(output)
    ));
    lines.join("\n")
}

fn json(found: &Found, target: &Target, written: &[PathBuf]) -> String {
    let (kind, name) = match target {
        Target::Bin(name) => ("bin", name),
        Target::Library(name) => ("lib", name),
    };
    serde_json::json!({
        "schema": "flightproof/init/1",
        "language": "rust",
        "branch": found.branch,
        "packages": found.packages,
        "programs": found.programs,
        "libraries": found.libraries,
        "target": {"kind": kind, "name": name},
        "written": written.iter().map(|path| input::shown(path)).collect::<Vec<_>>(),
        "notes": found.notes,
    })
    .to_string()
}

fn unwritable(path: &Path, why: impl std::fmt::Display) -> Refusal {
    FlightsCode::OutputUnwritable
        .refuse(format!("{}: {why}", input::shown(path)))
        .into()
}
