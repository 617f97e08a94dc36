use flightproof_core::{Bytes, Digest, RelPath};
use serde::{Deserialize, Serialize};

use crate::Ending;

/// A generator to be run on files of the tree, in a session that has nothing else of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorOrder {
    /// Program and arguments. The program is a tool of the session, or a file of the tree.
    pub argv: Vec<String>,
    /// What it is run to make: these paths, and everything below them.
    pub outputs: Vec<RelPath>,
}

/// What one run of a generator left. Never a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generated {
    /// How the run ended.
    pub ending: Ending,
    /// The last lines of standard error, bounded, unescaped.
    pub tail: Bytes,
    /// What lies at and below the outputs, directories left out, ordered by path.
    pub entries: Vec<GeneratedEntry>,
}

/// One thing that a generator left.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratedEntry {
    /// Where, relative to the tree. Written by a stranger: escape before showing.
    pub path: String,
    /// What it is, if it is a regular file; absent for a link, a pipe and the like.
    pub file: Option<GeneratedFile>,
}

/// A regular file that a generator left.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratedFile {
    /// Whether its owner may execute it.
    pub executable: bool,
    /// SHA-256 of its content.
    pub sha256: Digest,
}
