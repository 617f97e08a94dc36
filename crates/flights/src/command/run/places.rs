//! Where plans and their recordings lie.

use crate::agent;
use crate::command::{input, key};
use crate::plan::Plan;
use crate::{FlightsCode, state};
use flightproof_certifier::key::PublicKey;
use flightproof_core::Refusal;
use std::path::{Path, PathBuf};

/// The directory that holds flights/, as the system names it.
///
/// # Errors
/// `FILE_UNREADABLE`.
pub(in super::super) fn root(directory: &Path) -> Result<PathBuf, Refusal> {
    directory
        .canonicalize()
        .map_err(|e| input::unread(directory, &e))
}

/// The files of the named plans, or of all.
///
/// # Errors
/// `NOTHING_TO_RUN`.
pub(super) fn plans(named: &[PathBuf], root: &Path) -> Result<Vec<PathBuf>, Refusal> {
    if named.is_empty() {
        return plans_below(root);
    }
    let folder = root.join("flights");
    Ok(named.iter().map(|named| resolve(named, &folder)).collect())
}

/// Every plan of a project, by name.
///
/// # Errors
/// `NOTHING_TO_RUN`.
pub(in super::super) fn plans_below(root: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let folder = root.join("flights");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(FlightsCode::NothingToRun
            .refuse(format!("no *.toml in {}", folder.display()))
            .into());
    }
    Ok(found)
}

/// The refusal of the first plan that is not there: a misspelt name is told before what it would need.
pub(super) fn first_missing(plans: &[PathBuf]) -> Option<Refusal> {
    let missing = plans.iter().find(|path| !path.exists())?;
    Plan::read(missing).err().map(Refusal::from)
}

/// A plan is named by its file, or by its name alone; that of an agent by its recording's. A directory of
/// a plan's name, such as the repository that the plan flies, is no plan.
fn resolve(named: &Path, folder: &Path) -> PathBuf {
    if named.extension().is_some() || named.exists() && !named.is_dir() {
        return named.to_owned();
    }
    let agents = named.to_str().and_then(|name| name.strip_prefix("agent-"));
    let agents = agents.map(|name| folder.join(AGENTS).join(name).with_extension("toml"));
    match agents.filter(|path| path.exists()) {
        Some(path) => path,
        None => folder.join(named).with_extension("toml"),
    }
}

/// The plans of agents that were recorded, by name.
pub(super) fn recorded_agents(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("flights").join(AGENTS));
    let paths = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let recorded = |path: &PathBuf| is_agents(path) && recording(root, &stem(path)).exists();
    let mut found: Vec<PathBuf> = paths.filter(recorded).collect();
    found.sort();
    found
}

/// Whether a file is an agent's plan, by its folder.
pub(super) fn is_agents(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    path.extension().is_some_and(|e| e == "toml") && folder.is_some_and(|name| name == AGENTS)
}

/// The name of a plan's flight, by its file.
pub(super) fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match is_agents(path) {
        true => agent::recorded_as(&stem),
        false => stem.into_owned(),
    }
}

/// Folder of agents' plans below that of plans.
pub(super) const AGENTS: &str = "agent";

/// Where the recording of a plan lies.
pub(in super::super) fn recording(root: &Path, name: &str) -> PathBuf {
    root.join("flights/recordings")
        .join(format!("{name}.flight"))
}

/// The names of all recordings.
pub(in super::super) fn recorded(root: &Path) -> Vec<String> {
    let paths = recordings(root, "flight");
    let stems = paths.iter().filter_map(|path| path.file_stem());
    stems
        .map(|stem| stem.to_string_lossy().into_owned())
        .collect()
}

/// Where that of an engine lies: the same flight may be kept from both.
pub(in super::super) fn live_recording(root: &Path, name: &str) -> PathBuf {
    recording(root, &format!("{name}.live"))
}

/// The keys of those who record: every public key beside the recordings.
pub(super) fn recorder_keys(root: &Path) -> Result<Vec<PublicKey>, Refusal> {
    let paths = recordings(root, "pub");
    if paths.is_empty() {
        let place = root.join("flights/recordings");
        let code = match recordings(root, "flight").is_empty() {
            true => FlightsCode::TranscriptMissing,
            false => FlightsCode::RecorderUnknown,
        };
        let detail = format!("{}: no recorder's key", input::shown(&place));
        return Err(code.refuse(detail).into());
    }
    paths.iter().map(|path| key::public(path)).collect()
}

/// Before anything is recorded: what is recorded can be replayed here by whoever trusts the keys that
/// lie there. The first who records lays down theirs.
///
/// # Errors
/// `RECORDER_OTHER`, `TRANSCRIPT_WRITE`.
pub(in super::super) fn settle_recorder(root: &Path, key: &PublicKey) -> Result<(), Refusal> {
    let folder = root.join("flights/recordings");
    let known = match recordings(root, "pub").is_empty() {
        false => recorder_keys(root)?,
        true if recordings(root, "flight").is_empty() => {
            std::fs::create_dir_all(&folder).map_err(|e| {
                FlightsCode::TranscriptWrite.refuse(format!("{}: {e}", folder.display()))
            })?;
            return state::write_file(&folder.join(RECORDER), key.to_pem()?.as_bytes(), 0o644);
        }
        true => Vec::new(),
    };
    match known.iter().any(|known| known.id() == key.id()) {
        true => Ok(()),
        false => {
            let detail = format!("{}: not by {}", input::shown(&folder), key.id());
            Err(FlightsCode::RecorderOther.refuse(detail).into())
        }
    }
}

/// What lies beside the recordings with this ending, sorted.
fn recordings(root: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("flights/recordings"));
    let mut paths: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    paths.sort();
    paths
}

/// The public key of whoever recorded here first.
const RECORDER: &str = "recorder.pub";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_a_plans_name_is_no_plan_and_a_file_is_one() {
        let root = tempfile::tempdir().unwrap();
        let (folder, here) = (root.path().join("flights"), root.path().join("pricing"));
        assert_eq!(resolve(&here, &folder), here.with_extension("toml"));
        std::fs::create_dir(&here).unwrap();
        let plan = |name: &str| resolve(Path::new(name), &folder);
        assert_eq!(plan("pricing"), folder.join("pricing.toml"));
        // An absolute name replaces the folder: it is looked up as a file.
        assert_eq!(resolve(&here, &folder), here.with_extension("toml"));
        std::fs::write(root.path().join("own"), "").unwrap();
        let own = root.path().join("own");
        assert_eq!(resolve(&own, &folder), own);
        assert_eq!(plan("other/own.toml"), Path::new("other/own.toml"));
    }
}
