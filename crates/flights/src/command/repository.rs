//! Which repository a command works on: the one that is named, or the one that the current directory lies
//! in, as git finds it.

use super::input;
use flightproof_core::{Refusal, RelPath};
use flightproof_importer::ImporterCode;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A repository.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// Its top.
    pub(super) top: PathBuf,
    /// The current directory below its top, where it was found from there.
    pub(super) below: Option<RelPath>,
}

impl Repository {
    /// The repository that is named, or else the nearest at or above the current directory.
    ///
    /// # Errors
    /// `NOT_A_REPOSITORY` where there is none, or one of somebody else.
    pub(super) fn of(named: Option<&Path>) -> Result<Self, Refusal> {
        match named {
            Some(top) => Ok(Self::named(top)),
            None => Self::above()?.ok_or_else(|| nowhere("a repository")),
        }
    }

    /// As [`Self::of`]; where there is no repository, the nearest directory with a Cargo.toml.
    ///
    /// # Errors
    /// `NOT_A_REPOSITORY` where there is neither.
    pub(super) fn or_package(named: Option<&Path>) -> Result<Self, Refusal> {
        if let Some(top) = named {
            return Ok(Self::named(top));
        }
        if let Some(found) = Self::above()? {
            return Ok(found);
        }
        let package = nearest(|folder| folder.join("Cargo.toml").is_file())?;
        package.ok_or_else(|| nowhere("a repository or a package"))
    }

    fn named(top: &Path) -> Self {
        let (top, below) = (top.to_owned(), None);
        Self { top, below }
    }

    /// What git writes for another user, it would not read either.
    fn above() -> Result<Option<Self>, Refusal> {
        let Some(found) = nearest(|folder| entry(folder).is_some())? else {
            return Ok(None);
        };
        let owner = |path: &Path| {
            std::fs::symlink_metadata(path)
                .map(|found| found.uid())
                .ok()
        };
        let own = [
            Some(rustix::process::geteuid().as_raw()),
            owner(Path::new(".")),
        ];
        let entry = entry(&found.top).unwrap_or_else(|| found.top.clone());
        match own.contains(&owner(&entry)) {
            true => Ok(Some(found)),
            false => Err(unfound(format!(
                "{}: it belongs to another user; if it is meant, name it with --repo",
                input::shown(&found.top)
            ))),
        }
    }
}

/// What makes a folder a repository: its `.git`, or itself if it is bare.
fn entry(folder: &Path) -> Option<PathBuf> {
    let inner = folder.join(".git");
    if inner.symlink_metadata().is_ok() {
        return Some(inner);
    }
    let bare = folder.join("HEAD").is_file()
        && ["objects", "refs"]
            .map(|part| folder.join(part))
            .iter()
            .all(|part| part.is_dir());
    bare.then(|| folder.to_owned())
}

/// The nearest folder of a kind, at or above the current directory, on the same file system.
fn nearest(is: impl Fn(&Path) -> bool) -> Result<Option<Repository>, Refusal> {
    let here = std::env::current_dir().map_err(unfound)?;
    let device = |folder: &Path| std::fs::metadata(folder).map(|found| found.dev()).ok();
    let own = device(&here);
    let above = here.ancestors().take_while(|folder| device(folder) == own);
    let Some((steps, folder)) = above.enumerate().find(|(_, folder)| is(folder)) else {
        return Ok(None);
    };
    if steps == 0 {
        return Ok(Some(Repository::named(Path::new("."))));
    }
    let below = here.strip_prefix(folder).ok().and_then(Path::to_str);
    let below = below.and_then(|below| RelPath::new(below).ok());
    let Some(below) = below else {
        return Err(unfound(format!(
            "{}: its path has characters that are not taken; run at the top of the repository",
            input::shown(&here)
        )));
    };
    Ok(Some(Repository {
        top: PathBuf::from_iter(std::iter::repeat_n("..", steps)),
        below: Some(below),
    }))
}

fn nowhere(what: &str) -> Refusal {
    let here = std::env::current_dir().unwrap_or_default();
    unfound(format!(
        "neither {} nor any directory above it is {what}; name one with --repo",
        input::shown(&here)
    ))
}

fn unfound(why: impl std::fmt::Display) -> Refusal {
    ImporterCode::NotARepository.refuse(why).into()
}
