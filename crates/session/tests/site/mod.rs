//! Where the live tests open their sessions.

use flightproof_archive::{paar, paws};
use flightproof_core::{CommitId, RelPath};
use flightproof_frame::protocol::CrateFile;
use flightproof_session::SessionError;
use flightproof_session::local::{LocalSession, LocalSpec, RunnerProgram, open};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Temporary directories of one test, and the program that plays host, stage and runner.
pub(crate) struct Site {
    dir: tempfile::TempDir,
    program: PathBuf,
    artifact: Vec<u8>,
}

impl Site {
    pub(crate) fn new() -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "live tests need root: sessions of ordinary users need a delegated cgroup"
        );
        assert!(
            Path::new("/usr/bin/bwrap").exists(),
            "apt-get install bubblewrap"
        );
        let dir = tempfile::tempdir().unwrap();
        for name in ["work", "state"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let program = program();
        let origin = paar::Origin {
            target: paar::Target::CURRENT.unwrap(),
            source_commit: CommitId::from_bytes([0; 20]),
            daemon_protocol_version: 1,
            daemon_schema_revision: 0,
        };
        let path = paar::ArtifactPath::new("flights").unwrap();
        let bytes = fs::read(&program).unwrap();
        let artifact = paar::pack(origin, [(path, true, bytes)]).unwrap().bytes;
        Self {
            dir,
            program,
            artifact,
        }
    }

    pub(crate) fn spec(&self) -> LocalSpec {
        let mut entropy = [0; 16];
        rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty()).unwrap();
        LocalSpec {
            memory_bytes: 1 << 30,
            pids: 64,
            cpu_millis: 2000,
            scratch_bytes: 512 << 20,
            lifetime_ms: 300_000,
            toolchain: toolchain(),
            bwrap: "/usr/bin/bwrap".into(),
            program: self.program.clone(),
            entropy,
            work_dir: self.dir.path().join("work"),
            state_dir: self.state_dir(),
            cache_dir: cache_dir(),
            fence: 0,
            agent: None,
        }
    }

    pub(crate) fn open(&self) -> LocalSession {
        self.open_as(&self.spec()).unwrap()
    }

    pub(crate) fn open_as(&self, spec: &LocalSpec) -> Result<LocalSession, SessionError> {
        open(spec, &RunnerProgram::from_artifact(&self.artifact).unwrap())
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// What exists of a session on the host: cgroups, directory, record.
    pub(crate) fn traces(&self, id: &str) -> Vec<String> {
        let name = format!("flightproof-{id}");
        let mut places = cgroup_parents();
        places.push(self.dir.path().join("work"));
        let mut found: Vec<PathBuf> = places.iter().map(|p| p.join(&name)).collect();
        found.push(self.state_dir().join(format!("sessions/{id}.json")));
        let found = found.iter().filter(|p| p.exists());
        found.map(|p| p.display().to_string()).collect()
    }

    pub(crate) fn processes(&self, id: &str) -> usize {
        let dir = cgroup_parents()[0].join(format!("flightproof-{id}"));
        fs::read_to_string(dir.join("cgroup.procs")).map_or(0, |text| text.lines().count())
    }

    /// Kills every process of a session from outside.
    pub(crate) fn kill(&self, id: &str) {
        let dir = cgroup_parents()[0].join(format!("flightproof-{id}"));
        let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap();
        for pid in text.lines() {
            let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
            // The first one takes the others along.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    /// Kills the one process of a session that this process started.
    pub(crate) fn kill_first(&self, id: &str) {
        let dir = cgroup_parents()[0].join(format!("flightproof-{id}"));
        let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap();
        let parent = |pid: &str| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|l| l.strip_prefix("PPid:"))?;
            line.trim().parse::<u32>().ok()
        };
        let ours = |pid: &&str| parent(pid) == Some(std::process::id());
        let first: Vec<&str> = text.lines().filter(ours).collect();
        let [pid] = first[..] else {
            panic!("{first:?}");
        };
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    pub(crate) fn wait_until_dead(&self, id: &str) {
        let end = Instant::now() + Duration::from_secs(10);
        while self.processes(id) > 0 {
            assert!(Instant::now() < end, "the session outlives its owner");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A host process of its own that opens a session.
    pub(crate) fn owner(&self, words: &[&str]) -> Child {
        self.command(&self.program, &toolchain())
            .args(words)
            .spawn()
            .unwrap()
    }

    /// The same, started by a shell that did `first`.
    pub(crate) fn owner_after(&self, first: &str, words: &[&str]) -> Child {
        let inner = self.command(&self.program, &toolchain());
        let steps = format!("{first}; exec \"$@\"");
        Command::new("/bin/bash")
            .args(["-c", &steps, "bash"])
            .arg(inner.get_program())
            .args(inner.get_args())
            .args(words)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The kernel's limits of every process of a session.
    pub(crate) fn limits(&self, id: &str) -> Vec<String> {
        let dir = cgroup_parents()[0].join(format!("flightproof-{id}"));
        let pids = fs::read_to_string(dir.join("cgroup.procs")).unwrap();
        pids.lines()
            .map(|pid| fs::read_to_string(format!("/proc/{pid}/limits")).unwrap())
            .collect()
    }

    fn command(&self, program: &Path, toolchain: &Path) -> Command {
        let artifact = self.dir.path().join("artifact");
        fs::write(&artifact, &self.artifact).unwrap();
        let cache = self.dir.path().join("cache");
        if !cache.exists() {
            std::os::unix::fs::symlink(cache_dir(), cache).unwrap();
        }
        let mut command = Command::new(program);
        command
            .arg("open")
            .arg(toolchain)
            .arg(self.dir.path())
            .arg(&artifact)
            .stdout(Stdio::piped());
        command
    }

    /// The id of the session that a host process opened.
    pub(crate) fn opened(&self, owner: &mut Child) -> String {
        let line = self.said(owner);
        match line.strip_prefix("open ") {
            Some(id) => id.to_owned(),
            None => panic!("{line}"),
        }
    }

    pub(crate) fn said(&self, owner: &mut Child) -> String {
        first_line(owner)
    }

    /// What a user without any rights is told.
    pub(crate) fn as_nobody(&self) -> String {
        let open = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        open(self.dir.path(), 0o755);
        // The build directory is closed to others, so the program is copied to where they reach.
        let program = self.dir.path().join("inmate");
        fs::copy(&self.program, &program).unwrap();
        let mut command = self.command(&program, &toolchain());
        open(&self.dir.path().join("artifact"), 0o644);
        let mut child = command
            .uid(65534)
            .gid(65534)
            .current_dir("/")
            .spawn()
            .unwrap();
        let line = first_line(&mut child);
        child.wait().unwrap();
        line
    }
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    line.trim_end().to_owned()
}

/// `target/…/debug/deps/live-…` stands beside `target/…/debug/examples/inmate`.
fn program() -> PathBuf {
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

fn cache_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("digests")
}

fn toolchain() -> PathBuf {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

fn cgroup_parents() -> Vec<PathBuf> {
    use flightproof_session::cgroup::Placement;
    let text = |p: &str| fs::read_to_string(p).unwrap();
    match Placement::parse(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo")).unwrap() {
        Placement::V1(dirs) => dirs.to_vec(),
        Placement::V2 { root, .. } => vec![root],
    }
}

/// A PAWS1 archive of these files.
pub(crate) fn tree(files: &[(&str, &str)]) -> Vec<u8> {
    let files = files
        .iter()
        .map(|(path, text)| (path.parse::<RelPath>().unwrap(), false, text.as_bytes()));
    paws::pack("demo", files).unwrap().bytes
}

pub(crate) fn cache_dirs() -> Vec<PathBuf> {
    let home = std::env::var("CARGO_HOME").map_or_else(
        |_| PathBuf::from(std::env::var("HOME").unwrap()).join(".cargo"),
        PathBuf::from,
    );
    fs::read_dir(home.join("registry/cache"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// A lock of package `demo` that depends on `serde`, with what that needs, taken
/// from this workspace's own lock.
pub(crate) fn locked() -> (String, Vec<CrateFile>) {
    let own = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    let own: toml::Table = own.parse().unwrap();
    let all = own["package"].as_array().unwrap();
    let text = |package: &toml::Value, key: &str| package[key].as_str().unwrap().to_owned();
    let matches = |package: &toml::Value, wanted: &str| {
        let (name, version) = (text(package, "name"), text(package, "version"));
        wanted == name || wanted == format!("{name} {version}")
    };
    let mut queue = vec!["serde".to_owned()];
    let mut found = BTreeMap::new();
    while let Some(wanted) = queue.pop() {
        let package = all.iter().find(|p| matches(p, &wanted)).unwrap();
        let needs = package.get("dependencies").and_then(|d| d.as_array());
        let needs: Vec<String> = needs
            .into_iter()
            .flatten()
            .map(|d| d.as_str().unwrap().to_owned())
            .collect();
        if found
            .insert(text(package, "name"), (package, needs.clone()))
            .is_none()
        {
            queue.extend(needs);
        }
    }
    let mut lock = "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 4\n".to_owned();
    let list = |needs: &[String]| -> String {
        // Only one version of each is left, so the names alone say which.
        let names = needs
            .iter()
            .map(|n| format!(" \"{}\",\n", n.split(' ').next().unwrap()));
        names.collect()
    };
    lock.push_str(&format!(
        "\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\ndependencies = [\n{}]\n",
        list(&["serde".to_owned()])
    ));
    let mut wanted = Vec::new();
    for (name, (package, needs)) in &found {
        let (version, sha256) = (text(package, "version"), text(package, "checksum"));
        let source = text(package, "source");
        lock.push_str(&format!(
            "\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"{source}\"\nchecksum = \"{sha256}\"\n"
        ));
        if !needs.is_empty() {
            lock.push_str(&format!("dependencies = [\n{}]\n", list(needs)));
        }
        wanted.push(CrateFile {
            name: name.clone(),
            version,
            sha256: sha256.parse().unwrap(),
        });
    }
    (lock, wanted)
}
