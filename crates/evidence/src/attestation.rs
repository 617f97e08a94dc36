use flightproof_core::Digest;
use serde::{Deserialize, Serialize};

/// What a session really is, read back after it was opened. A session with a shortfall is never
/// handed out, so an attestation in evidence has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attestation {
    /// Backend name: `local`.
    pub backend: String,
    /// Volatile id of the session.
    pub session: String,
    /// The toolchain, by content.
    pub toolchain: Toolchain,
    /// The program that runs inside.
    pub runner: RunnerIdentity,
    /// Kernel release.
    pub kernel: String,
    /// What the processor can do, as its kernel says: names in order, one space between them. Libraries
    /// choose by it, numbers in their last digits among what they choose. Absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Version line of the sandbox program, such as `bubblewrap 0.8.0`.
    pub sandbox: String,
    /// Every limit and privilege: asked and found.
    pub readings: Vec<Reading>,
    /// Every forbidden act that was tried from a case's place. All were denied.
    pub probes: Vec<Probe>,
}

/// A toolchain directory tree, named by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolchain {
    /// SHA-256 over the sorted list of (path, mode, size, sha256) of its files.
    pub digest: Digest,
    /// `rustc -vV` as printed inside the session, first line.
    pub version: String,
    /// SHA-256 of the linker driver and linker the session uses, in that order.
    pub linker: Digest,
    /// What it compiles for, such as `x86_64-unknown-linux-gnu`, as the compiler says. No build names
    /// another target or processor, so code is for the plainest processor of it. Absent in recordings of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The runner program inside the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerIdentity {
    /// PAAR1 build id of the artifact it was shipped as.
    pub build_id: Digest,
    /// SHA-256 of the program.
    pub sha256: Digest,
}

/// One limit or privilege.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// What, such as `memory-bytes`.
    pub name: String,
    /// What the specification asked for.
    pub asked: String,
    /// What is in force.
    pub found: String,
    /// How it is known.
    pub class: EvidenceClass,
}

/// How a reading is known, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceClass {
    /// Read from the kernel by the host.
    KernelFile,
    /// Tried inside the session.
    Probe,
    /// Said by a container engine.
    EngineClaim,
}

/// One forbidden act that was tried and denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// The act.
    pub act: String,
    /// How it was denied: an errno name or a signal.
    pub denied_by: String,
}
