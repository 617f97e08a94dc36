//! `flights bundle`: one commit as a bundle, made and checked.

use super::archive::ARCHIVES;
use super::input;
use super::repository::Repository;
use crate::flight::{WorkDirectory, open_repository};
use crate::show::{self, Format};
use crate::{FlightsCode, near, state};
use clap::{Args, Subcommand};
use flightproof_core::{CommitId, Decision, Digest, Exit, Refusal, RelPath, Verdict, escape};
use flightproof_evidence::{Change, FileState};
use flightproof_importer::{
    self as importer, Arrival, CaptureRequest, Git, Grants, Host, ImportError, Parcel, Rules,
    check_bundle, pack_commit,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Most bytes of a name or a path in a line for people.
const MAX_SHOWN: usize = 2048;

/// `flights bundle`.
#[derive(Subcommand)]
pub(super) enum BundleCommand {
    /// Write one commit on a baseline as a bundle of at most 128 KiB.
    Create {
        /// Directory of the repository, of which nothing is executed or obeyed; default: the one that the
        /// current directory lies in.
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
        /// Commit the change is based on.
        #[arg(long, value_name = "REV")]
        baseline: String,
        /// The commit.
        #[arg(long, value_name = "REV")]
        head: String,
        /// The bundle.
        #[arg(short, long, alias = "out", value_name = "FILE")]
        output: PathBuf,
        /// Make one commit of all up to the head: its tree, date and message, by the identity.
        #[arg(long, requires = "identity")]
        squash: bool,
        /// Where its large files go, as a PAWS1 changeset. Written only if there are any.
        #[arg(long, value_name = "FILE", requires = "large")]
        changeset: Option<PathBuf>,
        #[command(flatten)]
        rules: RuleArgs,
    },
    /// Check a bundle against its baseline, and list what it would change. Nothing is written.
    Check {
        /// The bundle.
        file: PathBuf,
        /// Directory of the repository that has the baseline; default: the one that the current directory
        /// lies in.
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
        /// Commit the change must be based on.
        #[arg(long, value_name = "REV")]
        baseline: String,
        /// The changeset with its large files.
        #[arg(long, value_name = "FILE", requires = "large")]
        changeset: Option<PathBuf>,
        #[command(flatten)]
        rules: RuleArgs,
    },
}

/// What a commit may be.
#[derive(Args)]
pub(super) struct RuleArgs {
    /// A path the commit may change (repeatable). Without any: everything but protected files.
    #[arg(long = "grant", value_name = "PATH")]
    grants: Vec<RelPath>,
    /// A path where files may be large, up to 16 MiB each (repeatable). They travel in a changeset
    /// beside the bundle. This alone grants nothing.
    #[arg(long, value_name = "PATH")]
    large: Vec<RelPath>,
    /// A name of a file or folder that is protected as well, in any case (repeatable).
    #[arg(long, value_name = "NAME")]
    protect: Vec<String>,
    /// Author and committer the commit must have.
    #[arg(long, value_name = "NAME <MAIL>")]
    pub(super) identity: Option<String>,
}

impl BundleCommand {
    pub(super) fn stage(&self) -> &'static str {
        match self {
            Self::Create { .. } => "bundle",
            Self::Check { .. } => "check",
        }
    }
}

/// Does what is asked and prints what the bundle brings.
///
/// # Errors
/// The importer's refusals, and those of files.
pub(super) fn run(command: &BundleCommand, format: Format) -> Result<Exit, Refusal> {
    let report = match command {
        BundleCommand::Create {
            repo,
            baseline,
            head,
            output,
            squash,
            changeset,
            rules,
        } => {
            let outputs = (output.as_path(), changeset.as_deref());
            create(repo.as_deref(), (baseline, head), *squash, outputs, rules)?
        }
        BundleCommand::Check {
            file,
            repo,
            baseline,
            changeset,
            rules,
        } => check(
            (file, changeset.as_deref()),
            repo.as_deref(),
            baseline,
            rules,
        )?,
    };
    report.print(format);
    Ok(Exit::Passed)
}

fn create(
    repo: Option<&Path>,
    (baseline, head): (&str, &str),
    squash: bool,
    (output, beside): (&Path, Option<&Path>),
    rules: &RuleArgs,
) -> Result<Report, Refusal> {
    if let Some(beside) = beside {
        input::apart(output, &[beside])?;
        input::replaces_its_kind(beside, ARCHIVES)?;
    }
    input::replaces_its_kind(output, &[b"# v2 git bundle", b"# v3 git bundle"])?;
    let desk = Desk::open(&Repository::of(repo)?.top)?;
    let grants = rules.grants_unjudged();
    let request = CaptureRequest {
        name: "",
        baseline,
        candidate: head,
        grants: &grants,
        identity: rules.identity.as_deref(),
        squash,
        scratch: desk.work.path(),
        now: state::unix_seconds(),
    };
    let packed = pack_commit(&desk.git, &desk.host, &request).map_err(|e| desk.told(e))?;
    let mut done = format!("written to {}", input::shown(output));
    if let Some(changeset) = &packed.changeset {
        let beside = beside.ok_or_else(|| FlightsCode::UsageInvalid.refuse(NO_PLACE))?;
        input::write(beside, changeset, 0o644)?;
        let size = changeset.len();
        done = format!(
            "{done}, {size} bytes of large files to {}",
            input::shown(beside)
        );
    }
    input::write(output, &packed.bundle, 0o644)?;
    let found = &packed.checked;
    let parcel = Parcel {
        bundle: &packed.bundle,
        changeset: packed.changeset.as_deref(),
    };
    Ok(Report::new(
        "bundle",
        done,
        (found.baseline(), found.head()),
        (found.author(), found.committer()),
        &parcel,
        found.changes(),
    ))
}

fn check(
    files: (&Path, Option<&Path>),
    repo: Option<&Path>,
    baseline: &str,
    rules: &RuleArgs,
) -> Result<Report, Refusal> {
    let luggage = Luggage::read(files)?;
    let desk = Desk::open(&Repository::of(repo)?.top)?;
    let grants = rules.grants_unjudged();
    let arrival = Arrival {
        parcel: luggage.parcel(),
        baseline,
        rules: Rules {
            grants: &grants,
            identity: rules.identity.as_deref(),
            now: state::unix_seconds(),
        },
        scratch: desk.work.path(),
    };
    let found = check_bundle(&desk.git, &desk.host, &arrival).map_err(|e| desk.told(e))?;
    Ok(Report::new(
        "check",
        "it keeps every rule, and git finds the same objects in it".to_owned(),
        (found.baseline(), found.head()),
        (found.author(), found.committer()),
        &arrival.parcel,
        found.changes(),
    ))
}

/// What a bundle with large files beside it lacks where it is made.
const NO_PLACE: &str = "large files need a place of their own: --changeset FILE";

/// A bundle as it was read, and what travels beside it.
pub(super) struct Luggage {
    bundle: Vec<u8>,
    changeset: Option<Vec<u8>>,
}

impl Luggage {
    /// Reads both, and no byte more of either than its limit and one.
    pub(super) fn read((bundle, changeset): (&Path, Option<&Path>)) -> Result<Self, Refusal> {
        let beside = |file| input::read_arrival(file, Arrival::LARGEST_CHANGESET);
        Ok(Self {
            bundle: input::read_arrival(bundle, Arrival::LARGEST)?,
            changeset: changeset.map(beside).transpose()?,
        })
    }

    pub(super) fn parcel(&self) -> Parcel<'_> {
        Parcel {
            bundle: &self.bundle,
            changeset: self.changeset.as_deref(),
        }
    }
}

/// What looking at a repository takes.
pub(super) struct Desk {
    pub(super) git: Git,
    pub(super) host: Host,
    pub(super) work: WorkDirectory,
}

impl Desk {
    pub(super) fn open(repo: &Path) -> Result<Self, Refusal> {
        let (git, host) = open_repository(repo)?;
        if let Some(state) = state::existing()? {
            show::recovered(&crate::flight::reap_here(&state)?);
        }
        let work = WorkDirectory::to_read()?;
        Ok(Self { git, host, work })
    }

    /// What the importer refused, with the names that may have been meant for a revision.
    pub(super) fn told(&self, refused: ImportError) -> Refusal {
        near::revision(refused.into(), &self.git, &self.host)
    }
}

impl RuleArgs {
    pub(super) fn grants(&self) -> Grants {
        Grants::new(self.grants.iter().cloned())
            .with_large(self.large.iter().cloned())
            .protecting(self.protect.iter().map(String::as_str))
    }

    /// The same, with what runs in a build protected: nobody has judged it.
    pub(super) fn grants_unjudged(&self) -> Grants {
        self.grants().protecting(importer::BUILD.iter().copied())
    }
}

/// A verdict with what the bundle brings.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(flatten)]
    verdict: Verdict,
    baseline: CommitId,
    head: CommitId,
    author: String,
    committer: String,
    bundle: Digest,
    bundle_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    changeset: Option<Digest>,
    changes: Vec<Line>,
}

/// One changed path.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<File>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<File>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    mode: &'static str,
    bytes: usize,
}

impl Report {
    fn new(
        stage: &str,
        done: String,
        (baseline, head): (CommitId, CommitId),
        (author, committer): (&str, &str),
        parcel: &Parcel<'_>,
        changes: &[Change],
    ) -> Self {
        let count = changes.len();
        let paths = if count == 1 { "path" } else { "paths" };
        let bytes = parcel.bundle.len();
        let detail =
            format!("{head} on {baseline}, {count} changed {paths}, {bytes} bytes: {done}");
        Self {
            verdict: Verdict::passed(Decision::Accepted, stage, detail),
            baseline,
            head,
            author: author.to_owned(),
            committer: committer.to_owned(),
            bundle: Digest::of(parcel.bundle),
            bundle_bytes: bytes,
            changeset: parcel.changeset.map(Digest::of),
            changes: changes.iter().map(Line::of).collect(),
        }
    }

    fn print(&self, format: Format) {
        if format == Format::Json {
            return show::print(&serde_json::to_string(self).unwrap_or_default());
        }
        show::verdict(&self.verdict, format);
        show::print(&format!(
            "  author      {}",
            escape(&self.author, MAX_SHOWN)
        ));
        show::print(&format!(
            "  committer   {}",
            escape(&self.committer, MAX_SHOWN)
        ));
        show::print(&format!("  bundle      {}", self.bundle));
        if let Some(changeset) = self.changeset {
            show::print(&format!("  changeset   {changeset}"));
        }
        self.changes
            .iter()
            .for_each(|line| show::print(&line.told()));
    }
}

impl Line {
    pub(super) fn of(change: &Change) -> Self {
        let file = |state: &FileState| File {
            mode: if state.executable { "100755" } else { "100644" },
            bytes: state.content.len(),
        };
        Self {
            path: change.path.as_str().to_owned(),
            old: change.old.as_ref().map(file),
            new: change.new.as_ref().map(file),
        }
    }

    /// Columns for people: what happened, modes, sizes, path.
    pub(super) fn told(&self) -> String {
        let word = match (&self.old, &self.new) {
            (None, _) => "added",
            (_, None) => "deleted",
            _ => "changed",
        };
        let told = |file: &Option<File>| match file {
            None => "-".to_owned(),
            Some(file) => format!("{} {}", file.mode, file.bytes),
        };
        format!(
            "  {word:<11} {:>16} -> {:<16} {}",
            told(&self.old),
            told(&self.new),
            escape(&self.path, MAX_SHOWN)
        )
    }
}
