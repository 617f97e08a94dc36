//! What `flights archive` prints.

use crate::meter::size;
use crate::show::{self, Format};
use flightproof_archive::paws::{Change, Changeset, Entry, Manifest, Snapshot};
use flightproof_archive::{Applied, Kept as KeptFile, LeftOut, Reason, Recovered, Selection, paar};
use flightproof_core::{Decision, Digest, Verdict, escape};
use serde::Serialize;

/// Most bytes of a path in a line for people: the longest a manifest allows, escaped.
const MAX_SHOWN: usize = 2048;

/// A verdict with what it is about.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    #[serde(flatten)]
    verdict: Verdict,
    archive: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<Line>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<Vec<Left>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admitted: Option<Vec<Kept>>,
    /// Patterns of the command line that decided nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    idle: Vec<String>,
    #[serde(skip)]
    all: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    format: &'static str,
    kind: &'static str,
    /// What names the whole: snapshot id, changeset id or build id.
    id: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_snapshot_id: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_commit: Option<String>,
    entries: usize,
    payload_bytes: u64,
}

/// One entry of a manifest.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_hash: Option<Digest>,
}

/// Something that did not travel.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Left {
    path: String,
    directory: bool,
    reason: &'static str,
    rule: String,
}

/// Something that travels although the deny list names it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    path: String,
    rule: String,
    pattern: String,
}

impl Report {
    pub(super) fn snapshot(stage: &str, detail: impl Into<String>, snapshot: &Snapshot) -> Self {
        let summary = Summary {
            kind: "snapshot",
            workspace_id: Some(snapshot.workspace_id().to_owned()),
            ..Summary::paws(
                snapshot.snapshot_id(),
                snapshot.entries().len(),
                snapshot.total_bytes(),
            )
        };
        let lines = snapshot
            .entries()
            .iter()
            .map(|entry| Line::file(None, entry));
        Self::new(stage, detail, summary, lines.collect())
    }

    pub(super) fn workspace(stage: &str, detail: &str, manifest: Manifest) -> Self {
        match manifest {
            Manifest::Snapshot(snapshot) => Self::snapshot(stage, detail, &snapshot),
            Manifest::Changeset(changeset) => Self::changeset(stage, detail, &changeset),
        }
    }

    pub(super) fn changeset(stage: &str, detail: impl Into<String>, changeset: &Changeset) -> Self {
        let summary = Summary {
            kind: "changeset",
            workspace_id: Some(changeset.workspace_id().to_owned()),
            base_snapshot_id: Some(changeset.base_snapshot_id()),
            snapshot_id: Some(changeset.snapshot_id()),
            ..Summary::paws(
                changeset.changeset_id(),
                changeset.changes().len(),
                changeset.total_bytes(),
            )
        };
        let lines = changeset.changes().iter().map(Line::change);
        Self::new(stage, detail, summary, lines.collect())
    }

    pub(super) fn artifact(stage: &str, detail: &str, artifact: paar::Artifact) -> Self {
        let origin = artifact.origin();
        let summary = Summary {
            format: "PAAR1",
            kind: "artifact",
            target: Some(origin.target.name()),
            source_commit: Some(origin.source_commit.to_string()),
            ..Summary::paws(
                artifact.build_id(),
                artifact.files().len(),
                artifact.payload_bytes(),
            )
        };
        let lines = artifact.files().iter().map(|file| Line {
            operation: None,
            path: file.path.as_str().to_owned(),
            mode: Some(if file.executable { "100755" } else { "100644" }),
            size: Some(file.size),
            sha256: Some(file.sha256),
            base_hash: None,
        });
        Self::new(stage, detail, summary, lines.collect())
    }

    fn new(stage: &str, detail: impl Into<String>, archive: Summary, all: Vec<Line>) -> Self {
        let detail = format!(
            "{} {} with {} {} and {} of payload: {}",
            archive.format,
            archive.kind,
            archive.entries,
            if archive.entries == 1 {
                "entry"
            } else {
                "entries"
            },
            size(archive.payload_bytes),
            detail.into()
        );
        Self {
            verdict: Verdict::passed(Decision::Accepted, stage, detail),
            archive,
            entries: None,
            left_out: None,
            admitted: None,
            idle: Vec::new(),
            all,
        }
    }

    /// Every entry is told as well.
    pub(super) fn with_entries(mut self) -> Self {
        self.entries = Some(std::mem::take(&mut self.all));
        self
    }

    /// Further lines below the verdict.
    pub(super) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.verdict.notes = notes;
        self
    }

    pub(super) fn with_selection(mut self, selection: Selection) -> Self {
        self.left_out = Some(selection.left_out.into_iter().map(Left::from).collect());
        let kept = selection.admitted.into_iter().map(|admitted| Kept {
            path: admitted.path.as_str().to_owned(),
            rule: admitted.rule,
            pattern: admitted.pattern,
        });
        self.admitted = Some(kept.collect());
        self.idle = selection.idle;
        self
    }

    pub(super) fn print(&self, format: Format) {
        match format {
            Format::Json => show::print(&serde_json::to_string(self).unwrap_or_default()),
            Format::Human => {
                show::verdict(&self.verdict, format);
                self.details().iter().for_each(|line| show::print(line));
            }
        }
    }

    fn details(&self) -> Vec<String> {
        let summary = &self.archive;
        let mut lines = vec![format!("  id          {}", summary.id)];
        let mut field = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("  {name:<11} {value}")));
        };
        field("workspace", summary.workspace_id.as_deref().map(shown));
        field("base", summary.base_snapshot_id.map(|id| id.to_string()));
        field("leads to", summary.snapshot_id.map(|id| id.to_string()));
        field("target", summary.target.map(str::to_owned));
        field("commit", summary.source_commit.clone());
        lines.extend(self.entries.iter().flatten().map(Line::told));
        lines.extend(self.left_out.iter().flatten().map(|left| {
            let slash = if left.directory { "/" } else { "" };
            format!(
                "  left out    {}{slash}  ({}: {})",
                shown(&left.path),
                left.reason,
                shown(&left.rule)
            )
        }));
        lines.extend(self.admitted.iter().flatten().map(|kept| {
            format!(
                "  admitted    {}  (rule {}, by {})",
                shown(&kept.path),
                shown(&kept.rule),
                shown(&kept.pattern)
            )
        }));
        lines.extend(self.idle.iter().map(|pattern| {
            format!(
                "  idle        {}  (this pattern decided nothing)",
                shown(pattern)
            )
        }));
        lines
    }
}

/// What an application dealt with beside its own changes.
pub(super) fn aftermath(applied: &Applied) -> Vec<String> {
    let mut lines = match &applied.recovered {
        Recovered::Nothing => Vec::new(),
        earlier => vec![recovered(earlier)],
    };
    lines.extend(kept(applied.recovered.kept()));
    lines.extend(kept(&applied.kept));
    lines.extend(applied.untidy.as_ref().map(|error| {
        format!(
            "the tree is the new one, but staging is left until `flights archive recover`: {error}"
        )
    }));
    lines
}

/// The verdict of `archive recover`.
pub(super) fn recovery(found: &Recovered) -> Verdict {
    Verdict {
        notes: kept(found.kept()),
        ..Verdict::passed(Decision::Accepted, "recover", recovered(found))
    }
}

fn recovered(found: &Recovered) -> String {
    match found {
        Recovered::Nothing => "nothing was left to recover".to_owned(),
        Recovered::RolledBack { changeset_id, .. } => {
            format!("changeset {changeset_id} had been cut off before it counted: rolled back")
        }
        Recovered::Finished { changeset_id, .. } => {
            format!("changeset {changeset_id} had been cut off when it counted: finished")
        }
    }
}

fn kept(files: &[KeptFile]) -> Vec<String> {
    let told = |file: &KeptFile| {
        format!(
            "{} was written to meanwhile; its bytes are in {}",
            shown(file.path.as_str()),
            shown(&file.at)
        )
    };
    files.iter().map(told).collect()
}

impl Summary {
    fn paws(id: Digest, entries: usize, payload_bytes: u64) -> Self {
        Self {
            format: "PAWS1",
            kind: "",
            id,
            workspace_id: None,
            base_snapshot_id: None,
            snapshot_id: None,
            target: None,
            source_commit: None,
            entries,
            payload_bytes,
        }
    }
}

impl Line {
    fn file(operation: Option<&'static str>, entry: &Entry) -> Self {
        Self {
            operation,
            path: entry.path.as_str().to_owned(),
            mode: Some(if entry.executable { "100755" } else { "100644" }),
            size: Some(entry.size),
            sha256: Some(entry.sha256),
            base_hash: None,
        }
    }

    fn change(change: &Change) -> Self {
        match change {
            Change::Add(entry) => Self::file(Some("add"), entry),
            Change::Change { entry, base_hash } => Self {
                base_hash: Some(*base_hash),
                ..Self::file(Some("change"), entry)
            },
            Change::Delete { path, base_hash } => Self {
                operation: Some("delete"),
                path: path.as_str().to_owned(),
                mode: None,
                size: None,
                sha256: None,
                base_hash: Some(*base_hash),
            },
        }
    }

    /// Columns for people: operation, mode, size, path.
    fn told(&self) -> String {
        let size = self
            .size
            .map_or_else(|| "-".to_owned(), |size| size.to_string());
        format!(
            "  {:<11} {:<6} {size:>10}  {}",
            self.operation.unwrap_or("file"),
            self.mode.unwrap_or("-"),
            shown(&self.path)
        )
    }
}

impl From<LeftOut> for Left {
    fn from(left: LeftOut) -> Self {
        let (reason, rule) = match left.reason {
            Reason::Ignored {
                file,
                line,
                pattern,
            } => ("ignored", format!("{file}:{line}: {pattern}")),
            Reason::Denied { rule } => ("denied", rule),
            Reason::Git => ("git", ".git".to_owned()),
        };
        Self {
            path: left.path.as_str().to_owned(),
            directory: left.directory,
            reason,
            rule,
        }
    }
}

fn shown(text: &str) -> String {
    escape(text, MAX_SHOWN)
}
