use super::super::encoder::{hex, quote, wrap_paar, wrap_paws};
use super::super::paar::{COMMIT, TARGET};
use super::{Change, Entry, Lie, Plan, Shape};

/// The tree a changeset stands on and the one it leads to, and the bytes a file had before.
pub(super) const BASE: &str = "00000000000000000000000000000000000000000000000000000000000000ba";
const HEADER_BYTES_OF_PAWS: usize = 13;

impl Plan {
    /// The whole archive, with its lie.
    pub fn bytes(&self) -> Vec<u8> {
        let manifest = self.manifest();
        let mut payload = self.payload();
        if let (Lie::Content, Some(first)) = (self.lie, payload.first_mut()) {
            *first ^= 1;
        }
        let mut bytes = match self.shape {
            Shape::Artifact => wrap_paar(manifest.as_bytes(), &payload),
            Shape::Snapshot | Shape::Changeset => wrap_paws(manifest.as_bytes(), &payload),
        };
        match (self.lie, self.shape) {
            (Lie::Short, _) => drop(bytes.pop()),
            (Lie::Long, _) | (Lie::Total, Shape::Artifact) => bytes.push(0),
            _ => {}
        }
        bytes
    }

    /// Header and manifest of an honest plan's archive.
    pub fn header(&self) -> Vec<u8> {
        let mut bytes = self.bytes();
        bytes.truncate(HEADER_BYTES_OF_PAWS + self.manifest().len());
        bytes
    }

    fn payload(&self) -> Vec<u8> {
        let carrying = self.entries.iter().filter(|entry| self.carries(entry));
        carrying.flat_map(Entry::content).collect()
    }

    fn manifest(&self) -> String {
        let text = match self.shape {
            Shape::Snapshot => self.snapshot(),
            Shape::Changeset => self.changeset(),
            Shape::Artifact => self.artifact(),
        };
        match self.lie {
            Lie::Space => text.replacen(':', ": ", 1),
            _ => text,
        }
    }

    fn snapshot(&self) -> String {
        let named = self.entries.iter().enumerate();
        let named: Vec<String> = named
            .map(|(index, entry)| format!("{{{}}}", self.file(index, entry)))
            .collect();
        let mut id = hex(format!("[{}]", named.join(",")).as_bytes());
        self.turn(&mut id);
        format!(
            r#"{{"format":"prime-agent-workspace","version":1,"kind":"snapshot","workspaceId":{},"snapshotId":"{id}","totalBytes":{},"entries":[{}]}}"#,
            quote(&self.workspace),
            self.total(),
            self.listed().join(",")
        )
    }

    fn changeset(&self) -> String {
        format!(
            r#"{{"format":"prime-agent-workspace","version":1,"kind":"changeset","workspaceId":{},"baseSnapshotId":"{BASE}","snapshotId":"{BASE}","totalBytes":{},"entries":[{}]}}"#,
            quote(&self.workspace),
            self.total(),
            self.listed().join(",")
        )
    }

    fn artifact(&self) -> String {
        let listed = format!("[{}]", self.listed().join(","));
        let digest = hex(listed.as_bytes());
        let protocol = r#"{"name":"prime-agent.remote-host","version":1,"daemonProtocolVersion":1,"daemonSchemaRevision":0}"#;
        let identity = format!(
            r#"{{"sourceCommit":"{COMMIT}","target":"{TARGET}","protocol":{protocol},"filesDigest":"{digest}"}}"#
        );
        let mut build = hex(identity.as_bytes());
        self.turn(&mut build);
        format!(
            r#"{{"format":"prime-agent-artifact","version":1,"target":"{TARGET}","sourceCommit":"{COMMIT}","protocol":{protocol},"filesDigest":"{digest}","buildId":"{build}","files":{listed}}}"#
        )
    }

    /// Each entry as the manifest has it.
    fn listed(&self) -> Vec<String> {
        let mut offset = 0;
        let entries = self.entries.iter().enumerate();
        let listed = entries.map(|(index, entry)| {
            let written = self.entry(index, entry, offset);
            if self.carries(entry) {
                offset += entry.content().len();
            }
            written
        });
        listed.collect()
    }

    fn entry(&self, index: usize, entry: &Entry, offset: usize) -> String {
        let more = if self.is_about(index, Lie::Field) {
            r#","uid":0"#
        } else {
            ""
        };
        let offset = offset + usize::from(self.is_about(index, Lie::Offset));
        let file = self.file(index, entry);
        let before = hex(entry.path().as_bytes());
        match (self.shape, entry.change) {
            (Shape::Snapshot | Shape::Artifact, _) => {
                format!(r#"{{{file},"offset":{offset}{more}}}"#)
            }
            (Shape::Changeset, Change::Add) => {
                format!(r#"{{"operation":"add",{file},"offset":{offset}{more}}}"#)
            }
            (Shape::Changeset, Change::Replace) => format!(
                r#"{{"operation":"change",{file},"offset":{offset},"baseHash":"{before}"{more}}}"#
            ),
            (Shape::Changeset, Change::Delete) => format!(
                r#"{{"operation":"delete","path":{},"baseHash":"{before}"{more}}}"#,
                quote(&entry.path())
            ),
        }
    }

    /// Path, size, mode and hash.
    fn file(&self, index: usize, entry: &Entry) -> String {
        let content = entry.content();
        let mode = match (
            self.is_about(index, Lie::Mode),
            self.shape,
            entry.executable,
        ) {
            (true, ..) => 100_666,
            (_, Shape::Artifact, false) => 420,
            (_, Shape::Artifact, true) => 493,
            (_, _, false) => 100_644,
            (_, _, true) => 100_755,
        };
        let size = if self.is_about(index, Lie::Size) {
            "null".to_owned()
        } else {
            content.len().to_string()
        };
        let mut hash = hex(&content);
        if self.is_about(index, Lie::Hash) {
            hash.replace_range(0..1, "A");
        }
        format!(
            r#""path":{},"size":{size},"mode":{mode},"sha256":"{hash}""#,
            quote(&entry.path())
        )
    }

    fn total(&self) -> usize {
        self.payload().len() + usize::from(self.lie == Lie::Total)
    }

    /// Makes an id another one.
    fn turn(&self, id: &mut String) {
        if self.lie == Lie::Id {
            let first = if id.starts_with('0') { "1" } else { "0" };
            id.replace_range(0..1, first);
        }
    }
}
