//! `flights archive`: pack, look at, verify and unpack the two archive formats.

mod report;

use super::input;
use crate::meter::Meter;
use crate::show::{self, Format};
use clap::{Args, Subcommand};
use flightproof_archive::{ArchiveCode, ArchiveError, Choice, Extraction, Names};
use flightproof_archive::{Progress, Selection, Workspace, paar, paws};
use flightproof_core::{Code as _, Exit, Refusal, RelPath, Verdict};
use report::Report;
use rustix::fs::FileType;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// `flights archive`.
#[derive(Subcommand)]
pub(super) enum ArchiveCommand {
    /// Pack a working directory: no secrets, no .git, nothing that a .gitignore in it ignores. Says
    /// what was left out.
    Pack {
        /// The directory.
        dir: PathBuf,
        /// The archive. Replaced in one step if it exists.
        #[arg(short, long, alias = "out", value_name = "FILE")]
        output: PathBuf,
        /// Name of the workspace in the manifest; default: the directory's name.
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
        #[command(flatten)]
        choice: ChoiceArgs,
    },
    /// Pack what changed in a working directory since a snapshot.
    Changeset {
        /// The snapshot it is compared with.
        #[arg(long, value_name = "FILE")]
        base: PathBuf,
        /// The directory.
        dir: PathBuf,
        /// The changeset. Replaced in one step if it exists.
        #[arg(short, long, alias = "out", value_name = "FILE")]
        output: PathBuf,
        #[command(flatten)]
        choice: ChoiceArgs,
    },
    /// List the entries of an archive, verified; or read its manifest alone.
    Inspect {
        /// The archive.
        file: PathBuf,
        /// Read header and manifest and nothing else. A workspace must end there.
        #[arg(long)]
        header_only: bool,
        /// Length of the whole archive, for the manifest of an artifact; default: the file's.
        #[arg(long, value_name = "N", requires = "header_only")]
        total_size: Option<u64>,
    },
    /// Verify every byte of an archive.
    Verify {
        /// The archive.
        file: PathBuf,
    },
    /// Write the tree of an archive, whole or not at all.
    Extract {
        /// The archive: a snapshot or an artifact.
        file: PathBuf,
        /// Where to. It must not exist; its parent must.
        dir: PathBuf,
    },
    /// Apply a changeset to a directory: all of it, or nothing.
    Apply {
        /// The changeset.
        file: PathBuf,
        /// The directory, with exactly the base's bytes in every file that changes.
        dir: PathBuf,
    },
    /// Finish or roll back what an apply that was killed left in a directory.
    Recover {
        /// The directory.
        dir: PathBuf,
    },
}

/// What of a working directory travels.
#[derive(Args)]
pub(super) struct ChoiceArgs {
    /// Take every file but .git: neither .gitignore nor the deny list is asked.
    #[arg(long, conflicts_with_all = ["deny", "admit"])]
    everything: bool,
    /// Leave out what this pattern names as well (repeatable): NAME, DIR/NAME, or NAME/ for a directory.
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// Take what this pattern names although the deny list says no (repeatable).
    #[arg(long, value_name = "PATTERN")]
    admit: Vec<String>,
}

impl ArchiveCommand {
    /// What is under way.
    pub(super) fn stage(&self) -> &'static str {
        match self {
            Self::Pack { .. } => "pack",
            Self::Changeset { .. } => "changeset",
            Self::Inspect { .. } => "inspect",
            Self::Verify { .. } => "verify",
            Self::Extract { .. } => "extract",
            Self::Apply { .. } => "apply",
            Self::Recover { .. } => "recover",
        }
    }
}

/// Does what is asked and prints what came of it. What stands in the way of an archive is part of the
/// question here, and so the answer is a verdict; only a failing system is none.
///
/// # Errors
/// The archive's refusals, and those of files.
pub(super) fn run(command: &ArchiveCommand, format: Format) -> Result<Exit, Refusal> {
    let io = ArchiveCode::Io.explanation().code;
    match act(command, format) {
        Err(refusal) if refusal.exit() == Exit::Environment && refusal.code() != io => {
            let refused = Verdict {
                stopped: false,
                ..Verdict::refused(command.stage(), &refusal)
            };
            show::verdict(&refused, format);
            Ok(Exit::Refused)
        }
        done => done.map(|()| Exit::Passed),
    }
}

fn act(command: &ArchiveCommand, format: Format) -> Result<(), Refusal> {
    let report = match command {
        ArchiveCommand::Pack {
            dir,
            output,
            workspace,
            choice,
        } => pack(dir, output, workspace.as_deref(), choice, format)?,
        ArchiveCommand::Changeset {
            base,
            dir,
            output,
            choice,
        } => changeset(base, dir, output, choice, format)?,
        ArchiveCommand::Inspect {
            file,
            header_only: false,
            ..
        } => verified(file, format)?.with_entries(),
        ArchiveCommand::Inspect {
            file, total_size, ..
        } => header(file, *total_size)?.with_entries(),
        ArchiveCommand::Verify { file } => verified(file, format)?,
        ArchiveCommand::Extract { file, dir } => extract(file, dir, format)?,
        ArchiveCommand::Apply { file, dir } => apply(file, dir, format)?,
        ArchiveCommand::Recover { dir } => {
            input::directory(dir)?;
            show::verdict(
                &report::recovery(&flightproof_archive::recover(dir)?),
                format,
            );
            return Ok(());
        }
    };
    report.print(format);
    Ok(())
}

fn pack(
    dir: &Path,
    output: &Path,
    workspace: Option<&str>,
    choice: &ChoiceArgs,
    format: Format,
) -> Result<Report, Refusal> {
    input::directory(dir)?;
    input::parent(output)?;
    let id = workspace.map_or_else(|| directory_name(dir), str::to_owned);
    let meter = Meter::new("packed", None, format);
    let (snapshot, selection) = choose(choice, dir, output, |choice| {
        paws::pack_file(dir, id, choice, output, &meter)
    })?;
    drop(meter);
    Ok(Report::snapshot(
        "pack",
        format!("packed into {}", input::shown(output)),
        &snapshot,
    )
    .with_selection(selection))
}

fn changeset(
    base: &Path,
    dir: &Path,
    output: &Path,
    choice: &ChoiceArgs,
    format: Format,
) -> Result<Report, Refusal> {
    input::directory(dir)?;
    input::parent(output)?;
    input::apart(output, &[base])?;
    let meter = Meter::new("compared", None, format);
    let base = paws::verify_file(&open(base)?.0, &meter)?.into_snapshot()?;
    let (compared, selection) = choose(choice, dir, output, |choice| {
        paws::changeset_between(&base, dir, choice, output, &meter)
    })?;
    drop(meter);
    let detail = format!("written to {}", input::shown(output));
    Ok(Report::changeset("changeset", detail, &compared.changeset).with_selection(selection))
}

fn apply(path: &Path, dir: &Path, format: Format) -> Result<Report, Refusal> {
    input::directory(dir)?;
    let (file, _, size) = open(path)?;
    let meter = Meter::new("applied", Some(size), format);
    let applied = flightproof_archive::apply(&file, dir, &meter)?;
    drop(meter);
    let detail = format!(
        "{} added, {} changed, {} deleted in {}",
        applied.added,
        applied.changed,
        applied.deleted,
        input::shown(dir)
    );
    Ok(Report::changeset("apply", detail, &applied.changeset)
        .with_notes(report::aftermath(&applied)))
}

/// Does `work` with the choice that the arguments name, and tells what was not chosen.
fn choose<T>(
    args: &ChoiceArgs,
    dir: &Path,
    output: &Path,
    work: impl FnOnce(&mut dyn Choice) -> Result<T, ArchiveError>,
) -> Result<(T, Selection), Refusal> {
    let own = place_within(dir, output);
    input::replaces_its_kind(output, ARCHIVES)?;
    let inner = match args.everything {
        true => Workspace::without_rules(),
        false => Workspace::new(&args.deny, &args.admit)?.of(dir)?,
    };
    let mut choice = WithoutOutput { inner, own };
    let done = work(&mut choice)?;
    Ok((done, choice.inner.into_selection()))
}

/// How archives begin.
pub(super) const ARCHIVES: &[&[u8]] = &[b"PAAR1", b"PAWS1"];

/// An archive that was written into the directory it is made of is no part of it the next time.
struct WithoutOutput<C> {
    inner: C,
    own: Option<RelPath>,
}

impl<C: Choice> Choice for WithoutOutput<C> {
    fn enter(&mut self, dir: BorrowedFd<'_>, path: Option<&RelPath>) -> Result<(), ArchiveError> {
        self.inner.enter(dir, path)
    }

    fn admits(&mut self, path: &RelPath, kind: FileType) -> Result<bool, ArchiveError> {
        Ok(self.own.as_ref() != Some(path) && self.inner.admits(path, kind)?)
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn admits_content(&self, file: &RelPath, size: u64, head: &[u8]) -> bool {
        self.inner.admits_content(file, size, head)
    }
}

/// Where a file that may not exist yet lies within a directory, if it does.
fn place_within(dir: &Path, file: &Path) -> Option<RelPath> {
    let parent = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = parent.canonicalize().ok()?.join(file.file_name()?);
    RelPath::new(file.strip_prefix(dir.canonicalize().ok()?).ok()?.to_str()?).ok()
}

fn directory_name(dir: &Path) -> String {
    let name = dir
        .canonicalize()
        .ok()
        .and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "workspace".to_owned())
}

/// The two formats, told apart by their first bytes. What is neither is held against the first.
enum Kind {
    Workspace,
    Artifact,
}

fn open(path: &Path) -> Result<(File, Kind, u64), Refusal> {
    let failed = |e: std::io::Error| input::unreadable(path, e);
    // Asked before it is opened: to open a pipe waits for whoever writes.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(input::unreadable(path, "not a file"));
    }
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(input::unreadable(path, "not a file"));
    }
    let mut magic = [0; 5];
    let kind = match file.read_exact_at(&mut magic, 0) {
        Ok(()) if magic == *b"PAAR1" => Kind::Artifact,
        _ => Kind::Workspace,
    };
    Ok((file, kind, found.len()))
}

fn verified(path: &Path, format: Format) -> Result<Report, Refusal> {
    let (file, kind, size) = open(path)?;
    let meter = Meter::new("verified", Some(size), format);
    Ok(match kind {
        Kind::Workspace => Report::workspace(
            "verify",
            "every byte is what its manifest says",
            paws::verify_file(&file, &meter)?,
        ),
        Kind::Artifact => Report::artifact(
            "verify",
            "every byte is what its manifest says",
            paar::verify_file(&file, &meter)?,
        ),
    })
}

/// The manifest-only decode of the format page: no byte of payload is looked at.
fn header(path: &Path, total: Option<u64>) -> Result<Report, Refusal> {
    const DETAIL: &str = "the manifest is sound; the payload was not looked at";
    let (file, kind, size) = open(path)?;
    let read = |most: usize| -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        let done = (&file).take(most as u64).read_to_end(&mut bytes);
        done.map_err(|e| input::unreadable(path, e))?;
        Ok(bytes)
    };
    Ok(match kind {
        // One byte more than any header and manifest, so that what follows them is seen.
        Kind::Workspace => {
            let bytes = read(paws::HEADER_BYTES + paws::MAX_MANIFEST_BYTES + 1)?;
            Report::workspace("inspect", DETAIL, paws::decode(&bytes)?)
        }
        Kind::Artifact => {
            let bytes = read(paar::HEADER_BYTES + paar::MAX_MANIFEST_BYTES)?;
            Report::artifact(
                "inspect",
                DETAIL,
                paar::decode(&bytes, total.unwrap_or(size))?,
            )
        }
    })
}

fn extract(path: &Path, dir: &Path, format: Format) -> Result<Report, Refusal> {
    let (file, kind, size) = open(path)?;
    let meter = Meter::new("extracted", Some(size), format);
    let how = Extraction {
        into: dir,
        names: Names::Strict,
        expected: None,
        progress: &meter as &dyn Progress,
    };
    let detail = format!("written to {}", input::shown(dir));
    Ok(match kind {
        Kind::Workspace => Report::snapshot("extract", detail, &paws::extract_file(&file, &how)?),
        Kind::Artifact => Report::artifact("extract", &detail, paar::extract_file(&file, &how)?),
    })
}
