//! `flights bundle`: one commit as a bundle, made and checked.

use super::input;
use crate::flight::WorkDirectory;
use crate::show::{self, Format};
use crate::state;
use clap::{Args, Subcommand};
use flightproof_core::{CommitId, Decision, Digest, Exit, Refusal, RelPath, Verdict, escape};
use flightproof_evidence::{Change, FileState};
use flightproof_importer::{
    Arrival, CaptureRequest, Git, Grants, Host, Rules, capture, check_bundle,
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
        /// Directory of the repository. Nothing of it is executed or obeyed.
        #[arg(long, value_name = "DIR")]
        repo: PathBuf,
        /// Commit the change is based on.
        #[arg(long, value_name = "REV")]
        baseline: String,
        /// The commit.
        #[arg(long, value_name = "REV")]
        head: String,
        /// The bundle.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Make one commit of all up to the head: its tree, date and message, by the identity.
        #[arg(long, requires = "identity")]
        squash: bool,
        #[command(flatten)]
        rules: RuleArgs,
    },
    /// Check a bundle against its baseline, and list what it would change. Nothing is written.
    Check {
        /// The bundle.
        file: PathBuf,
        /// Directory of the repository that has the baseline.
        #[arg(long, value_name = "DIR")]
        repo: PathBuf,
        /// Commit the change must be based on.
        #[arg(long, value_name = "REV")]
        baseline: String,
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
            rules,
        } => create(repo, (baseline, head), *squash, output, rules)?,
        BundleCommand::Check {
            file,
            repo,
            baseline,
            rules,
        } => check(file, repo, baseline, rules)?,
    };
    report.print(format);
    Ok(Exit::Passed)
}

fn create(
    repo: &Path,
    (baseline, head): (&str, &str),
    squash: bool,
    output: &Path,
    rules: &RuleArgs,
) -> Result<Report, Refusal> {
    let desk = Desk::open(repo)?;
    let grants = rules.grants();
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
    let capture = capture(&desk.git, &desk.host, &request)?;
    input::write(output, &capture.bundle, 0o644)?;
    let found = &capture.captured;
    Ok(Report::new(
        "bundle",
        format!("written to {}", input::shown(output)),
        (found.baseline, found.head),
        (&found.author, &found.committer),
        &capture.bundle,
        &found.changes,
    ))
}

fn check(file: &Path, repo: &Path, baseline: &str, rules: &RuleArgs) -> Result<Report, Refusal> {
    let bundle = input::read(file, Arrival::LARGEST)?;
    let desk = Desk::open(repo)?;
    let grants = rules.grants();
    let arrival = Arrival {
        bundle: &bundle,
        baseline,
        rules: Rules {
            grants: &grants,
            identity: rules.identity.as_deref(),
            now: state::unix_seconds(),
        },
        scratch: desk.work.path(),
    };
    let found = check_bundle(&desk.git, &desk.host, &arrival)?;
    Ok(Report::new(
        "check",
        "it keeps every rule, and git finds the same objects in it".to_owned(),
        (found.baseline(), found.head()),
        (found.author(), found.committer()),
        &bundle,
        found.changes(),
    ))
}

/// What looking at a repository takes.
pub(super) struct Desk {
    pub(super) git: Git,
    pub(super) host: Host,
    pub(super) work: WorkDirectory,
}

impl Desk {
    pub(super) fn open(repo: &Path) -> Result<Self, Refusal> {
        let git = Git::at(&state::program("git", "git")?)?;
        let host = Host::open(&git, repo)?;
        let state = state::directory()?;
        show::recovered(&crate::flight::reap_here(&state)?);
        let work = WorkDirectory::new(&state)?;
        Ok(Self { git, host, work })
    }
}

impl RuleArgs {
    pub(super) fn grants(&self) -> Grants {
        Grants::new(self.grants.iter().cloned())
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
        bundle: &[u8],
        changes: &[Change],
    ) -> Self {
        let count = changes.len();
        let paths = if count == 1 { "path" } else { "paths" };
        let bytes = bundle.len();
        let detail =
            format!("{head} on {baseline}, {count} changed {paths}, {bytes} bytes: {done}");
        Self {
            verdict: Verdict::passed(Decision::Accepted, stage, detail),
            baseline,
            head,
            author: author.to_owned(),
            committer: committer.to_owned(),
            bundle: Digest::of(bundle),
            bundle_bytes: bytes,
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
