use crate::{Built, Diagnostic};
use flightproof_core::{Bytes, RelPath};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the certifier asks a session to compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildOrder {
    /// The name the finished program gets; cases execute it by this name.
    pub program: String,
    /// What of the tree becomes the program.
    pub target: BuildTarget,
    /// Files that replace files of the tree for this build (mutant schemata). Empty for the
    /// candidate as it is.
    pub overlay: BTreeMap<RelPath, Bytes>,
    /// The mutation guard. Every build links it, so that all builds of a flight share their flags
    /// and with them their compiled dependencies.
    pub guard: Guard,
    /// Whether only the program's bytes are asked for: it is optimised as far as the compiler can,
    /// with the same checks, and keeps each function of it as it is for any caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optimized: bool,
}

/// What of the tree becomes the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BuildTarget {
    /// A binary target of that name.
    Bin {
        /// Its name.
        name: String,
    },
    /// A library, linked with the witness's driver program.
    Driver {
        /// The package that holds the library; absent: the package at the root of the tree.
        package: Option<String>,
        /// Source text of the driver.
        source: Bytes,
    },
    /// Integration tests of one package, a program for each: the first is named as the order says, with
    /// `-0` behind it, the next with `-1`.
    Suite {
        /// The package; absent: the one at the root of the tree.
        package: Option<String>,
        /// Names of the tests.
        tests: Vec<String>,
    },
}

/// The small crate through which mutants are selected at run time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// Crate name, random per flight.
    pub name: String,
    /// Source text.
    pub source: String,
}

/// What became of a [`BuildOrder`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BuildAnswer {
    /// It compiled.
    Built(Built),
    /// The compiler or cargo said no.
    Failed {
        /// Errors first. At most 400.
        diagnostics: Vec<Diagnostic>,
        /// The last lines of standard error, bounded, unescaped.
        tail: Bytes,
    },
    /// A limit of the session ended the build: `time`, `memory`, `processes` or `output`.
    Limit {
        /// Which.
        limit: String,
    },
}

/// The tests of packages, to be compiled as programs of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteOrder {
    /// Start of the names that the finished programs get.
    pub prefix: String,
    /// The packages.
    pub packages: Vec<String>,
    /// Features beyond the default ones.
    pub features: Vec<String>,
    /// Files that replace files of the tree for this build.
    pub overlay: BTreeMap<RelPath, Bytes>,
    /// The mutation guard.
    pub guard: Guard,
}

/// What became of a [`SuiteOrder`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SuiteAnswer {
    /// They compiled.
    Built {
        /// One program for each target that has tests.
        programs: Vec<TestProgram>,
    },
    /// The compiler or cargo said no.
    Failed {
        /// Errors first.
        diagnostics: Vec<Diagnostic>,
        /// The last lines of standard error, bounded, unescaped.
        tail: Bytes,
    },
    /// A limit of the session ended the build.
    Limit {
        /// Which.
        limit: String,
    },
}

/// The tests of one target, as a program that cases can execute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestProgram {
    /// Name to execute it by.
    pub program: String,
    /// Folder of its package in the tree, empty for the top.
    pub folder: String,
    /// `lib`, `bin NAME` or `test NAME`.
    pub target: String,
}

/// What the certifier asks a session to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseRun {
    /// A program by the name it was built under.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Standard input.
    pub stdin: Bytes,
    /// Files in the working directory.
    pub files: BTreeMap<RelPath, Bytes>,
    /// Environment beyond the constant one.
    pub env: BTreeMap<String, String>,
    /// The active mutant; absent for a program without mutants, 0 for none of them.
    pub selector: Option<u64>,
    /// Wall clock in milliseconds.
    pub wall_ms: u64,
    /// The folder of the captured tree that the program starts in, for tests of the tree itself;
    /// absent for a case, which sees nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// What a session reports of one run. Never a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// How the run ended.
    pub ending: Ending,
    /// Standard output, up to its limit.
    pub stdout: Bytes,
    /// Standard error, up to its limit.
    pub stderr: Bytes,
    /// Whether both streams were read to their end.
    pub complete: bool,
    /// Whether the mutation guard took its selector before `main` (false without a selector).
    pub armed: bool,
}

/// How a run ended. Only [`Ending::Exited`] carries an answer of the program; the others are
/// failures under stated limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ending {
    /// By itself.
    Exited {
        /// Exit status.
        code: u8,
    },
    /// By a signal.
    Signaled {
        /// Signal number.
        signal: u8,
    },
    /// By the sandbox, for a system call no case may make.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    ForbiddenCall,
    /// By its wall clock.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    TimedOut,
    /// By writing too much.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    OutputLimit,
    /// By the process limit.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    ProcessLimit,
    /// By the memory limit.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    MemoryLimit,
}
