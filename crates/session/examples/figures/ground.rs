//! Sessions to measure, and the program that runs in them.

use crate::Outcome;
use flightproof_archive::{paar, paws};
use flightproof_core::{CommitId, Digest};
use flightproof_evidence::{BuildAnswer, BuildOrder, BuildTarget, CaseRun, Guard};
use flightproof_frame::protocol::{Exec, ExecLimits, Role};
use flightproof_session::Session;
use flightproof_session::build::Workshop;
use flightproof_session::crates::ship;
use flightproof_session::docker::{self, DockerSession, DockerSpec, Endpoint, PinnedImage};
use flightproof_session::local::{self, LocalSpec, RunnerProgram};
use std::collections::BTreeMap;
use std::path::PathBuf;

const MANIFEST: &str = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\n";
/// Quiet, or a flood, or a tree of processes that ignores every signal.
const DEMO: &str = r#"
use std::io::Write as _;
unsafe extern "C" {
    fn fork() -> i32;
    fn pause() -> i32;
    fn signal(signal: i32, action: usize) -> usize;
}
fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("flood") => loop {
            let _ = std::io::stdout().write_all(&[b'x'; 65536]);
        },
        Some("deaf") => unsafe {
            for number in 1..32 {
                signal(number, 1);
            }
            fork();
            fork();
            fork();
            loop {
                pause();
            }
        },
        _ => {}
    }
}
"#;

pub(crate) struct Ground {
    endpoint: Endpoint,
    image: Digest,
    toolchain: PathBuf,
    program: PathBuf,
    runner: RunnerProgram,
    place: PathBuf,
}

impl Ground {
    pub(crate) fn new(image: &str, toolchain: &str) -> Outcome<Self> {
        let program = std::env::current_exe()?;
        let place = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
        std::fs::create_dir_all(place.join("work"))?;
        Ok(Self {
            endpoint: Endpoint::discover()?,
            image: image.trim_start_matches("sha256:").parse()?,
            toolchain: toolchain.into(),
            runner: RunnerProgram::from_artifact(&artifact(&std::fs::read(&program)?)?)?,
            program,
            place,
        })
    }

    pub(crate) fn engine(&self, lifetime_ms: u64) -> Outcome<DockerSession> {
        let state_dir = self.place.join("state");
        let spec = DockerSpec {
            endpoint: self.endpoint.clone(),
            image: PinnedImage {
                id: self.image,
                layers: Vec::new(),
            },
            memory_bytes: 2 << 30,
            pids: 256,
            cpu_millis: 2000,
            scratch_bytes: 1 << 30,
            lifetime_ms,
            entropy: entropy()?,
            ledger: docker::ledger_id(&state_dir)?,
            state_dir,
            fence: 0,
        };
        Ok(docker::open(&spec, &self.runner)?)
    }

    pub(crate) fn local(&self) -> Outcome<Box<dyn Session>> {
        let spec = LocalSpec {
            memory_bytes: 2 << 30,
            pids: 256,
            cpu_millis: 2000,
            scratch_bytes: 1 << 30,
            lifetime_ms: 600_000,
            toolchain: self.toolchain.clone(),
            bwrap: "/usr/bin/bwrap".into(),
            program: self.program.clone(),
            entropy: entropy()?,
            work_dir: self.place.join("work"),
            state_dir: self.place.join("state"),
            cache_dir: self.place.join("cache"),
            fence: 0,
            agent: None,
        };
        Ok(Box::new(local::open(&spec, &self.runner)?))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

fn entropy() -> Outcome<[u8; 16]> {
    let mut entropy = [0; 16];
    rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty())?;
    Ok(entropy)
}

/// Builds the program in a session.
pub(crate) fn build(session: &mut dyn Session) -> Outcome {
    let files = [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("src/main.rs", DEMO),
    ];
    let mut entries = Vec::new();
    for (path, text) in files {
        entries.push((path.parse()?, false, text.as_bytes()));
    }
    let tree = paws::pack("figures", entries)?.bytes;
    let mut workshop = Workshop::furnish(session, &tree, &ship(&[])?, None, 120_000)?;
    let order = BuildOrder {
        program: "demo".to_owned(),
        target: BuildTarget::Bin {
            name: "demo".to_owned(),
        },
        overlay: BTreeMap::new(),
        guard: Guard {
            name: "guard_1f".to_owned(),
            source: "pub fn active() -> u64 { 0 }".to_owned(),
        },
        optimized: false,
    };
    match workshop.build(session, &order)? {
        BuildAnswer::Built(_) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

pub(crate) fn case(args: &[&str], wall_ms: u64) -> CaseRun {
    CaseRun {
        program: "demo".to_owned(),
        args: args.iter().map(|a| (*a).to_owned()).collect(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        env: BTreeMap::new(),
        selector: None,
        wall_ms,
        tree: None,
    }
}

/// A program of the image that does nothing.
pub(crate) fn exec_true() -> Exec {
    Exec {
        role: Role::Build,
        program: "/usr/bin/true".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms: 5_000,
            stdout_bytes: 1024,
            stderr_bytes: 1024,
        },
        selector: None,
        tree: None,
    }
}

fn artifact(program: &[u8]) -> Outcome<Vec<u8>> {
    let origin = paar::Origin {
        target: paar::Target::CURRENT.ok_or("no target")?,
        source_commit: CommitId::from_bytes([0; 20]),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    };
    let path = paar::ArtifactPath::new("flights")?;
    Ok(paar::pack(origin, [(path, true, program)])?.bytes)
}
