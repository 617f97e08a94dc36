//! What live tests on an engine stand on: an engine, the session image, our program.

use crate::conformance::{Backend, Opened};
use flightproof_archive::paar;
use flightproof_core::{CommitId, Digest};
use flightproof_session::SessionError;
use flightproof_session::docker::tape::Recorder;
use flightproof_session::docker::{self, DockerSession, DockerSpec, Endpoint, PinnedImage};
use flightproof_session::lease::Leases;
use flightproof_session::local::RunnerProgram;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

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
        let image = session_image(&endpoint);
        Self::on(endpoint, image)
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
            fence: 0,
        }
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The leases of sessions that programs started here open.
    pub(crate) fn leases(&self) -> Leases {
        Leases::of(&self.state_dir().join("ledger"))
    }

    pub(crate) fn open(&self) -> DockerSession {
        self.open_as(&self.spec()).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn open_taped(&self) -> (DockerSession, Recorder) {
        docker::open_taped(&self.spec(), &self.runner).unwrap_or_else(|e| panic!("{e}"))
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
    assert!(
        program.exists(),
        "cargo builds it with the tests: {}",
        program.display()
    );
    program
}

/// The id of the session image, which is built if the engine does not have it yet.
pub(crate) fn session_image(endpoint: &Endpoint) -> Digest {
    session_image_with(endpoint, &[])
}

/// The same with another toolchain in it.
pub(crate) fn session_image_with(endpoint: &Endpoint, arguments: &[&str]) -> Digest {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/session-image");
    let mut command = Command::new(script);
    command.args(arguments);
    point_at(&mut command, endpoint);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "scripts/session-image: {said}");
    let id = String::from_utf8(output.stdout).unwrap();
    id.trim().trim_start_matches("sha256:").parse().unwrap()
}

impl Ground {
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn image(&self) -> Digest {
        self.image
    }

    /// An id for a container that is made by hand.
    pub(crate) fn random_id(&self, last: u8) -> String {
        let mut spec = self.spec();
        spec.entropy[15] = last;
        hex(&spec.entropy)
    }

    /// The id of the session that a host process opened.
    pub(crate) fn opened(&self, owner: &mut Child) -> String {
        let mut line = String::new();
        BufReader::new(owner.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        match line.trim_end().strip_prefix("open ") {
            Some(id) => id.to_owned(),
            None => panic!("{line}"),
        }
    }

    /// Containers of a session, whatever state they are in.
    pub(crate) fn containers(&self, id: &str) -> usize {
        let filter = format!("label=flightproof.session={id}");
        self.docker(&["ps", "-aq", "--filter", &filter])
            .lines()
            .count()
    }

    pub(crate) fn traces_of(&self, spec: &DockerSpec) -> Vec<String> {
        self.traces_of_id(&hex(&spec.entropy))
    }

    /// What exists of a session: container, cgroups, record.
    pub(crate) fn traces_of_id(&self, id: &str) -> Vec<String> {
        self.traces_of_all(&[id.to_owned()])
    }

    /// The same of many. The engine is asked once: two hundred questions take longer than what they ask about.
    pub(crate) fn traces_of_all(&self, ids: &[String]) -> Vec<String> {
        let form = r#"{{.Label "flightproof.session"}}"#;
        let filter = "label=flightproof.session";
        let standing = self.docker(&["ps", "-a", "--filter", filter, "--format", form]);
        let standing: Vec<&str> = standing.lines().collect();
        let mut found = vec![];
        for id in ids {
            if standing.contains(&id.as_str()) {
                found.push(format!("container flightproof-{id}"));
            }
            let record = self.state_dir().join(format!("engines/{id}.json"));
            found.extend(record.exists().then(|| record.display().to_string()));
        }
        found
    }

    /// The command line of the same engine: another way to look.
    pub(crate) fn docker(&self, words: &[&str]) -> String {
        let output = docker_command(&self.endpoint).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker {words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Backend for Ground {
    fn open(&self, lifetime: Duration) -> Result<Opened, SessionError> {
        let mut spec = self.spec();
        spec.lifetime_ms = u64::try_from(lifetime.as_millis()).unwrap();
        Ok(Box::new(self.open_as(&spec)?))
    }

    fn kill(&self, session: &str) {
        self.docker(&["kill", &format!("flightproof-{session}")]);
    }

    fn traces(&self, session: &str) -> Vec<String> {
        self.traces_of_id(session)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The command line, pointed at an engine.
pub(crate) fn docker_command(endpoint: &Endpoint) -> Command {
    let mut command = Command::new("docker");
    point_at(&mut command, endpoint);
    command
}

fn point_at(command: &mut Command, endpoint: &Endpoint) {
    match endpoint {
        Endpoint::Tls {
            authority,
            certificates,
        } => command
            .env("DOCKER_HOST", format!("tcp://{authority}"))
            .env("DOCKER_TLS_VERIFY", "1")
            .env("DOCKER_CERT_PATH", certificates),
        other => command.env("DOCKER_HOST", other.to_string()),
    };
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Nothing of a test may be left: the next one would be judged by it.
        if !std::thread::panicking() {
            let ledger = docker::ledger_id(&self.state_dir()).unwrap();
            let filter = format!("label=flightproof.ledger={ledger}");
            let left = self.docker(&["ps", "-aq", "--filter", &filter]);
            assert_eq!(left, "", "containers are left");
        }
    }
}
