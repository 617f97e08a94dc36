//! What live tests on an engine stand on: an engine, the session image, our program.

use flightproof_archive::paar;
use flightproof_core::{CommitId, Digest};
use flightproof_session::docker::{self, DockerSession, DockerSpec, Endpoint, PinnedImage};
use flightproof_session::local::RunnerProgram;
use flightproof_session::SessionError;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Ground {
    dir: tempfile::TempDir,
    endpoint: Endpoint,
    image: Digest,
    runner: RunnerProgram,
}

impl Ground {
    /// On the engine of this environment. It fails without one.
    pub(crate) fn new() -> Self {
        let endpoint = Endpoint::discover().unwrap_or_else(|e| panic!("{e}"));
        Self::on(endpoint, session_image())
    }

    pub(crate) fn on(endpoint: Endpoint, image: Digest) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            endpoint,
            image,
            runner: RunnerProgram::from_artifact(&artifact()).unwrap(),
        }
    }

    pub(crate) fn spec(&self) -> DockerSpec {
        let mut entropy = [0; 16];
        rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty()).unwrap();
        DockerSpec {
            endpoint: self.endpoint.clone(),
            image: PinnedImage {
                id: self.image,
                layers: Vec::new(),
            },
            memory_bytes: 1 << 30,
            pids: 64,
            cpu_millis: 2000,
            scratch_bytes: 512 << 20,
            lifetime_ms: 300_000,
            entropy,
            state_dir: self.state_dir(),
            ledger: docker::ledger_id(&self.state_dir()).unwrap(),
            fence: 1,
        }
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn open(&self) -> DockerSession {
        self.open_as(&self.spec()).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn open_as(&self, spec: &DockerSpec) -> Result<DockerSession, SessionError> {
        docker::open(spec, &self.runner)
    }
}

/// Our program as the artifact it is shipped as.
pub(crate) fn artifact() -> Vec<u8> {
    let origin = paar::Origin {
        target: paar::Target::CURRENT.unwrap(),
        source_commit: CommitId::from_bytes([0; 20]),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    };
    let path = paar::ArtifactPath::new("flights").unwrap();
    let bytes = fs::read(program()).unwrap();
    paar::pack(origin, [(path, true, bytes)]).unwrap().bytes
}

/// `target/…/debug/deps/engine-…` stands beside `target/…/debug/examples/inmate`.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let program = profile.join("examples/inmate");
    assert!(program.exists(), "cargo builds it with the tests: {}", program.display());
    program
}

/// The id of the session image, which is built if the engine does not have it yet.
fn session_image() -> Digest {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/session-image");
    let output = Command::new(script).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "scripts/session-image: {said}");
    let id = String::from_utf8(output.stdout).unwrap();
    id.trim().trim_start_matches("sha256:").parse().unwrap()
}
