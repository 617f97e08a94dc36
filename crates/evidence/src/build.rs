use flightproof_core::{Digest, RelPath};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What was compiled, from which bytes, by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildRecord {
    /// Snapshot id of the source tree as the session received it.
    pub source: Digest,
    /// Every dependency that was shipped, ordered by name and version.
    pub packages: Vec<Package>,
    /// Cargo profile: `dev`.
    pub profile: String,
    /// What the tree's own manifest makes of that profile; absent where it leaves it as cargo has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<ProfileSettings>,
    /// Whether a build script of any package ran.
    pub build_scripts: bool,
    /// Whether a procedural macro of any package ran.
    pub proc_macros: bool,
}

/// What of a profile decides how code answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileSettings {
    /// `0` to `3`, `s` or `z`.
    pub opt_level: String,
    /// Whether debug assertions are checked.
    pub debug_assertions: bool,
    /// Whether integers that overflow end the program.
    pub overflow_checks: bool,
}

/// One shipped dependency.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Package name.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// SHA-256 of its `.crate` file.
    pub sha256: Digest,
}

/// A finished build: a program that cases can execute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Built {
    /// Name to execute it by.
    pub program: String,
    /// SHA-256 of the program.
    pub sha256: Digest,
    /// How it came about.
    pub record: BuildRecord,
    /// Every file of the tree that the compiler read for it, as the compiler says; absent where it
    /// does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<BTreeSet<RelPath>>,
}

/// One message of the compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// `error` or `warning`.
    pub level: String,
    /// The compiler's code, such as `E0308`.
    pub code: Option<String>,
    /// Its first line. Written by a stranger: escape before showing.
    pub message: String,
    /// Path relative to the source tree, empty if the message has no place there.
    pub file: String,
    /// First line, 1-based; 0 if unknown.
    pub line: u32,
    /// Byte range of every primary span in `file`.
    pub spans: Vec<(u32, u32)>,
}
