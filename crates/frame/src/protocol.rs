//! What the host may ask of the runner, and what the runner may answer.
//!
//! The runner is dumb: it is handed inputs, it runs, it reports. It never sees an expected output
//! and never judges. Everything it says is data from an untrusted place.

use flightproof_core::{Bytes, Digest, RelPath};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and major version of the protocol. The runner says it in its [`Hello`]; the host refuses
/// another one.
pub const PROTOCOL: &str = "flightproof/runner/1";

/// Where things lie inside every session. Constant, so that no program can tell sessions apart.
pub mod layout {
    /// The program that is the runner.
    pub const RUNNER: &str = "/runner/flights";
    /// The toolchain, read-only.
    pub const TOOLCHAIN: &str = "/toolchain";
    /// The captured tree: owned by the runner, not writable by a build or a case.
    pub const SOURCE: &str = "/flight/src";
    /// The `.crate` files as they were uploaded.
    pub const CRATES: &str = "/flight/crates";
    /// The unpacked dependencies, a cargo directory source.
    pub const VENDOR: &str = "/flight/vendor";
    /// The witness's driver and the mutation guard.
    pub const EXTRA: &str = "/flight/extra";
    /// Build output; the build's uid writes here.
    pub const TARGET: &str = "/flight/target";
    /// `CARGO_HOME` of a build.
    pub const CARGO_HOME: &str = "/flight/home";
    /// `TMPDIR` of a build.
    pub const TMP: &str = "/flight/tmp";
    /// Promoted programs: owned by the runner, executable by a case.
    pub const EXE: &str = "/exe";
    /// Scratch and working directory of a case; emptied after each.
    pub const CASE: &str = "/case";
    /// What Debian's Node library reads of itself when it is started.
    pub const NODE: &str = "/usr/share/nodejs";
    /// An agent's program, bound read-only into a session that is opened for one.
    pub const AGENT_PROGRAM: &str = "/runner/agent";
    /// Everything an agent may write: its checkout and its home.
    pub const AGENT: &str = "/flight/agent";
    /// An agent's checkout, where it is started.
    pub const AGENT_WORK: &str = "/flight/agent/work";
    /// An agent's home and temporary folder.
    pub const AGENT_HOME: &str = "/flight/agent/home";
}

/// One request. Each gets exactly one [`Reply`] with the same sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Receive a PAWS1 snapshot (`bytes` long, in DATA messages after this one) and extract it.
    Put {
        /// Where to.
        place: Place,
        /// Length of the archive in bytes.
        bytes: u64,
        /// The snapshot id it must have.
        snapshot: Digest,
    },
    /// Unpack uploaded `.crate` files into the vendor directory, each SHA-256 checked first.
    Unpack {
        /// The files, by name and digest.
        #[serde(deserialize_with = "flightproof_core::exact")]
        crates: Vec<CrateFile>,
    },
    /// Run one program to its end.
    #[serde(deserialize_with = "flightproof_core::exact")]
    Exec(Exec),
    /// Copy a build product to where cases may execute it, and nobody may change it.
    Promote {
        /// Absolute path below [`layout::TARGET`].
        from: String,
        /// File name it gets below [`layout::EXE`].
        name: String,
    },
    /// Try all [`acts`] from a case's place and say what happened.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    Probe,
    /// Read what the kernel says of the session itself. Only a runner in a container keeps such
    /// files open; any other has none of them.
    Kernel {
        /// Names of the files, such as `pids.events`.
        files: Vec<String>,
    },
}

/// Where an upload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// [`layout::SOURCE`], which must not exist yet.
    Source,
    /// Files that replace files of the same path in [`layout::SOURCE`].
    Overlay,
    /// [`layout::CRATES`], which must not exist yet.
    Crates,
    /// [`layout::EXTRA`]; files of the same path are replaced.
    Extra,
}

/// One dependency as cargo's cache holds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrateFile {
    /// Package name.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// SHA-256 of the `.crate` file, equal to the lock's checksum.
    pub sha256: Digest,
}

impl CrateFile {
    /// The name of the file in cargo's cache and in the upload: `name-version.crate`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.crate", self.name, self.version)
    }
}

/// One program run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Under which walls it runs.
    pub role: Role,
    /// Absolute path (a build) or the name of a promoted program (a case).
    pub program: String,
    /// Arguments after argv\[0\], which is constant.
    pub args: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Standard input, whole. Closed after the last byte.
    pub stdin: Bytes,
    /// Files laid into the case's scratch before the start. Empty for a build.
    pub files: BTreeMap<RelPath, Bytes>,
    /// What ends it.
    pub limits: ExecLimits,
    /// For a program built with a mutation guard: which mutant is active (0: none). Handed over on
    /// a descriptor the guard closes before `main`; the program cannot see it.
    pub selector: Option<u64>,
    /// For a case that may see the captured tree: it lies read-only at [`layout::SOURCE`], and the
    /// program starts in this folder of it (empty: at its top). Absent for every judged case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// The walls around one program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The build: its own uid, reads sources and toolchain, writes only build output.
    Build,
    /// A case: a fresh uid and pid namespace, executes only promoted programs, writes only its
    /// own scratch.
    Case,
    /// An agent: its own uid and pid namespace, runs tools and [`layout::AGENT_PROGRAM`], sees the
    /// processes of its own namespace in `/proc` where the session has one, writes only
    /// [`layout::AGENT`], reaches [`PROVIDER_PORT`] of the session's own loopback and no other address. At the end of its time it is interrupted, then
    /// terminated, [`AGENT_GRACE_MS`] each, before it is killed: only a program that was asked says
    /// what it has cost.
    Agent,
}

/// The one port an agent may connect to. The host listens there, inside the session's network, if
/// the agent has a provider; else nobody does.
pub const PROVIDER_PORT: u16 = 8080;

/// How long an agent is waited for after each signal, milliseconds.
pub const AGENT_GRACE_MS: u64 = 3_000;

/// Limits of one program run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecLimits {
    /// Wall clock from start to end, milliseconds.
    pub wall_ms: u64,
    /// Most bytes kept of standard output; more ends the run.
    pub stdout_bytes: u64,
    /// Most bytes kept of standard error; more ends the run.
    pub stderr_bytes: u64,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    /// To [`Request::Put`]: what was received, as computed inside.
    Put {
        /// The snapshot id of the bytes that arrived.
        snapshot: Digest,
        /// Number of files written.
        files: u64,
    },
    /// To [`Request::Unpack`].
    Unpacked {
        /// Number of packages.
        packages: u64,
    },
    /// To [`Request::Exec`].
    #[serde(deserialize_with = "flightproof_core::exact")]
    Exec(Outcome),
    /// To [`Request::Promote`].
    Promoted {
        /// SHA-256 of the copy.
        sha256: Digest,
        /// Its size in bytes.
        size: u64,
    },
    /// To [`Request::Probe`].
    Probe {
        /// One reading for each of the [`acts`].
        #[serde(deserialize_with = "flightproof_core::exact")]
        readings: Vec<ProbeReading>,
    },
    /// To [`Request::Kernel`].
    Kernel {
        /// The text of each file that was asked for and is there.
        files: BTreeMap<String, String>,
    },
    /// The runner could not do what was asked.
    Refused {
        /// A code of the runner's, such as `runner/PLACE_OCCUPIED`.
        code: String,
        /// One line.
        detail: String,
    },
}

/// How a program run ended, as the runner saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The end itself.
    pub status: Status,
    /// Standard output up to its limit.
    pub stdout: Bytes,
    /// Standard error up to its limit.
    pub stderr: Bytes,
    /// Whether both streams were read to their end.
    pub complete: bool,
    /// For a run with a selector: whether the guard took it before `main`.
    pub armed: bool,
}

/// The end of a program run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Status {
    /// It ended by itself. The only end that says something about the program's answer.
    Exited {
        /// Exit status, 0..=255.
        code: u8,
    },
    /// A signal ended it.
    Signaled {
        /// Signal number.
        signal: u8,
    },
    /// Its wall clock ran out.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    TimedOut,
    /// It wrote more than its limit.
    #[serde(deserialize_with = "flightproof_core::nothing")]
    OutputLimit,
    /// It never started. No verdict about the program.
    LaunchFailed {
        /// One line.
        reason: String,
    },
}

/// The first message of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: String,
    /// Its process id inside the session: 1.
    pub pid: u32,
    /// Landlock ABI of the kernel, as seen inside.
    pub landlock_abi: u32,
}

/// The acts of a self-test. The runner tries all of them, and the host takes no other list.
pub mod acts {
    /// What no case may do: each must be denied.
    pub const FORBIDDEN: [&str; 42] = [
        "connect-inet",
        "connect-inet6",
        "socket-vsock",
        "socket-netlink",
        "socket-alg",
        "socket-packet",
        "socket-unix",
        "read-etc-passwd",
        "read-proc-self",
        "read-runner",
        "list-source",
        "list-work",
        "list-target",
        "list-exe",
        "list-toolchain",
        "list-root",
        "write-usr",
        "write-usr-lib",
        "write-exe",
        "write-root",
        "write-work",
        "write-tmp",
        "write-dev",
        "make-device",
        "execute-usr-bin",
        "execute-scratch",
        "become-root",
        "keep-capability",
        "signal-init",
        "signal-all",
        "ptrace-init",
        "inherit-descriptor",
        "user-namespace",
        "mount-tmpfs",
        "io-uring",
        "bpf",
        "keyctl",
        "userfaultfd",
        "perf-event",
        "open-by-handle",
        "execveat",
        "clone3",
    ];
    /// What a case needs: each must work, or walls that refuse everything would pass.
    pub const NEEDED: [&str; 5] = [
        "may-write-case",
        "may-make-pipe",
        "may-read-urandom",
        "may-write-null",
        "may-start-thread",
    ];
}

/// What happened when one of the [`acts`] was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeReading {
    /// Name of the act, such as `connect-inet`.
    pub act: String,
    /// Whether it was prevented.
    pub denied: bool,
    /// How: an errno name, a signal, or what was reached.
    pub how: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_core::parse_strict;

    #[test]
    fn a_package_lies_in_the_file_that_cargo_names_after_it() {
        let file = CrateFile {
            name: "serde".to_owned(),
            version: "1.0.1".to_owned(),
            sha256: Digest::of(b""),
        };
        assert_eq!(file.file_name(), "serde-1.0.1.crate");
    }

    #[test]
    fn a_list_of_fields_is_no_message_nor_a_part_of_one() {
        let read = |text: &str| parse_strict::<Reply>(text.as_bytes(), 1000).is_ok();
        let exec = |status: &str, out: &str| {
            let rest = r#""stderr":{"$bytes":""},"complete":true,"armed":false"#;
            format!(r#"{{"reply":"exec","status":{status},"stdout":{out},{rest}}}"#)
        };
        let (status, out) = (r#"{"kind":"exited","code":0}"#, r#"{"$bytes":""}"#);
        assert!(read(&exec(status, out)));
        assert!(!read(&exec(r#"["exited",0]"#, out)));
        assert!(!read(&exec(status, r#"[""]"#)));
        let probe = |reading: &str| format!(r#"{{"reply":"probe","readings":[{reading}]}}"#);
        assert!(read(&probe(r#"{"act":"a","denied":true,"how":"x"}"#)));
        assert!(!read(&probe(r#"["a",true,"x"]"#)));
        assert!(!read(r#"["refused","a/B","x"]"#));
    }

    #[test]
    fn what_has_no_fields_is_written_as_ever_and_read_without_any() {
        let read = |text: &str| parse_strict::<Status>(text.as_bytes(), 100).ok();
        for (status, kind) in [
            (Status::TimedOut, "timed-out"),
            (Status::OutputLimit, "output-limit"),
        ] {
            let text = serde_json::to_string(&status).unwrap();
            assert_eq!(text, format!(r#"{{"kind":"{kind}"}}"#));
            assert_eq!(read(&text), Some(status));
            assert_eq!(read(&format!(r#"{{"kind":"{kind}","code":0}}"#)), None);
        }
        let read = |text: &str| parse_strict::<Request>(text.as_bytes(), 100).is_ok();
        assert!(read(r#"{"op":"probe"}"#) && !read(r#"{"op":"probe","files":[]}"#));
    }
}
