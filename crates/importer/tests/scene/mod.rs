//! A repository on disk and what is needed to work on it.
#![allow(dead_code, reason = "each test binary uses its own part")]

use flightproof_core::{Code as _, Digest};
use flightproof_evidence::Closed;
use flightproof_hostile::git::{Built, Plan, hex};
use flightproof_importer::{
    Capture, CaptureRequest, Clearance, Git, Grants, Host, ImportError, capture,
};
use flightproof_ledger::Ledger;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fixed clock, a little after the commits of the plans.
pub(crate) const NOW: u64 = 1_700_000_100;

/// A clock for admissions alone, which judge no date.
pub(crate) const NOW_IS_PAST: u64 = NOW;

pub(crate) struct Scene {
    pub(crate) temp: tempfile::TempDir,
    pub(crate) top: PathBuf,
    pub(crate) canary: PathBuf,
    pub(crate) built: Built,
}

impl Scene {
    pub(crate) fn new(plan: &Plan) -> Self {
        let temp = folder();
        let top = temp.path().join("repo");
        std::fs::create_dir(&top).unwrap();
        let canary = temp.path().join("canary");
        let built = plan.build(&top, &canary).unwrap();
        Self {
            temp,
            top,
            canary,
            built,
        }
    }

    pub(crate) fn capture(&self, git: &Git) -> Result<Capture, ImportError> {
        self.capture_with(git, &Grants::default(), None)
    }

    /// As [`Scene::capture`], with the commits named by their branches.
    pub(crate) fn capture_by_name(&self, git: &Git) -> Result<Capture, ImportError> {
        let host = Host::open(git, &self.top)?;
        self.capture_from(git, &host, ("main", "work"), &Grants::default(), None)
    }

    pub(crate) fn capture_with(
        &self,
        git: &Git,
        grants: &Grants,
        identity: Option<&str>,
    ) -> Result<Capture, ImportError> {
        let host = Host::open(git, &self.top)?;
        self.capture_from(
            git,
            &host,
            (&self.baseline(), &self.head()),
            grants,
            identity,
        )
    }

    pub(crate) fn capture_from(
        &self,
        git: &Git,
        host: &Host,
        (baseline, candidate): (&str, &str),
        grants: &Grants,
        identity: Option<&str>,
    ) -> Result<Capture, ImportError> {
        let scratch = tempfile::tempdir_in(self.temp.path()).unwrap();
        let taken = capture(
            git,
            host,
            &CaptureRequest {
                name: "test",
                baseline,
                candidate,
                grants,
                identity,
                squash: false,
                scratch: scratch.path(),
                now: NOW,
            },
        );
        assert_eq!(
            std::fs::read_dir(scratch.path()).unwrap().count(),
            0,
            "scratch is left empty"
        );
        taken
    }

    pub(crate) fn clearance(&self, git: &Git) -> Clearance {
        self.clearance_for(git, "main", b"certificate")
    }

    pub(crate) fn clearance_for(&self, git: &Git, branch: &str, certificate: &[u8]) -> Clearance {
        let captured = self.capture(git).unwrap().captured;
        Clearance::new(&CLEAN, Digest::of(certificate), &captured, branch).unwrap()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::open(&self.state()).unwrap()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.temp.path().join("state")
    }

    pub(crate) fn git_dir(&self) -> PathBuf {
        self.top.join(".git")
    }

    pub(crate) fn tip(&self, branch: &str) -> String {
        let file = self.git_dir().join("refs/heads").join(branch);
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    pub(crate) fn baseline(&self) -> String {
        hex(&self.built.baseline)
    }

    pub(crate) fn head(&self) -> String {
        hex(&self.built.head)
    }

    /// An ordinary git of the machine, for setting up and for second opinions.
    pub(crate) fn plain_git(&self, words: &[&str]) -> String {
        plain_git(&self.top, words)
    }
}

pub(crate) fn plain_git(dir: &Path, words: &[&str]) -> String {
    run_git(Path::new("git"), dir, words)
}

/// The same with a git of choice.
pub(crate) fn run_git(program: &Path, dir: &Path, words: &[&str]) -> String {
    let output = Command::new(program)
        .args([
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@x.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(words)
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A temporary folder, in memory where there is such a place: hundreds of small repositories come
/// and go here, and a disk that others use makes each of them cost a second.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

pub(crate) const CLEAN: Closed = Closed {
    processes: 0,
    cgroups: 0,
    mounts: 0,
    directories: 0,
};

/// Every git of this machine: a distribution's and one installed beside it may differ by years.
pub(crate) fn gits() -> Vec<Git> {
    let mut all: Vec<Git> = programs().iter().map(|p| Git::at(p).unwrap()).collect();
    if all.is_empty() {
        all.push(Git::find().unwrap());
    }
    all
}

/// The same as programs.
pub(crate) fn programs() -> Vec<PathBuf> {
    let all = ["/usr/bin/git", "/usr/local/bin/git"].map(PathBuf::from);
    all.into_iter().filter(|program| program.exists()).collect()
}

pub(crate) fn git() -> Git {
    Git::find().unwrap()
}

pub(crate) fn code(refused: &ImportError) -> &'static str {
    refused.code.explanation().code
}

/// A program that calls itself git and is a shell script.
pub(crate) fn fake_git(folder: &Path, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let file = folder.join("git");
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

/// The path of a real git, for scripts that pass most of their work on.
pub(crate) fn real_git() -> &'static str {
    if Path::new("/usr/bin/git").exists() {
        "/usr/bin/git"
    } else {
        "/usr/local/bin/git"
    }
}
