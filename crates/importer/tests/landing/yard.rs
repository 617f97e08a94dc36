//! A repository somebody works in, and a commit that comes home to it from elsewhere.

use crate::scene::{NOW_IS_PAST, folder, run_git};
use flightproof_core::{Digest, Refusal};
use flightproof_importer::{
    Admitted, Capture, CaptureRequest, Clearance, Git, Grants, Host, Recovered, admit, capture,
    recover_repository,
};
use flightproof_ledger::Ledger;
use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

pub(crate) struct Yard {
    pub(crate) temp: tempfile::TempDir,
    pub(crate) top: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) capture: Capture,
}

/// What the commit does, seen by paths: changes, adds (in a new directory too), deletes (the last of a
/// directory too), makes executable.
pub(crate) const CHANGED: &str = "src/lib.rs";
pub(crate) const ADDED: &str = "src/deep/er/new.rs";
pub(crate) const DELETED: &str = "old/only.txt";
pub(crate) const MODE: &str = "run.sh";
pub(crate) const UNTOUCHED: &str = "src/other.rs";

impl Yard {
    pub(crate) fn new(git: &Path) -> Self {
        Self::with(git, |_| {}, change)
    }

    /// A yard whose baseline `lay` adds to, and whose commit does what `change` does.
    pub(crate) fn with(git: &Path, lay: impl Fn(&Path), change: impl Fn(&Path)) -> Self {
        let temp = folder();
        let top = temp.path().join("repo");
        std::fs::create_dir(&top).unwrap();
        run_git(git, &top, &["init", "-q"]);
        write(&top, CHANGED, "pub fn a() -> u8 { 1 }\n");
        write(&top, UNTOUCHED, "pub fn b() {}\n");
        write(&top, DELETED, "going\n");
        write(&top, MODE, "#!/bin/sh\n");
        write(&top, ".gitignore", ".env\n/target\n");
        lay(&top);
        run_git(git, &top, &["add", "-A"]);
        run_git(git, &top, &["commit", "-q", "-m", "baseline"]);
        let session = temp.path().join("session");
        let (from, to) = (top.to_str().unwrap(), session.to_str().unwrap());
        run_git(git, temp.path(), &["clone", "-q", from, to]);
        change(&session);
        run_git(git, &session, &["add", "-A", "-f"]);
        run_git(git, &session, &["commit", "-q", "-m", "work"]);
        let program = git.to_owned();
        let capture = take(&Git::at(git).unwrap(), &session);
        std::fs::remove_dir_all(&session).unwrap();
        Self {
            temp,
            top,
            program,
            capture,
        }
    }

    /// The same as it is now, in another place.
    pub(crate) fn copy(&self) -> Self {
        let temp = folder();
        let top = temp.path().join("repo");
        let from = self.top.to_str().unwrap();
        let done = std::process::Command::new("cp")
            .args(["-a", from, top.to_str().unwrap()])
            .status();
        assert!(done.unwrap().success());
        Self {
            temp,
            top,
            program: self.program.clone(),
            capture: self.capture.clone(),
        }
    }

    pub(crate) fn git(&self) -> Git {
        Git::at(&self.program).unwrap()
    }

    pub(crate) fn run(&self, words: &[&str]) -> String {
        run_git(&self.program, &self.top, words)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::open(&self.temp.path().join("state")).unwrap()
    }

    pub(crate) fn clearance(&self) -> Clearance {
        let closed = crate::scene::CLEAN;
        let certificate = Digest::of(b"certificate");
        Clearance::of_bundle(&closed, certificate, &self.capture.checked, "main").unwrap()
    }

    pub(crate) fn land(&self) -> Result<Admitted, Refusal> {
        self.land_in(&self.top, &self.git())
    }

    pub(crate) fn land_in(&self, top: &Path, git: &Git) -> Result<Admitted, Refusal> {
        let host = Host::open(git, top)?;
        let mut ledger = self.ledger();
        admit(git, &host, &mut ledger, &self.clearance(), NOW_IS_PAST)
    }

    pub(crate) fn recover(&self) -> Vec<Recovered> {
        let git = self.git();
        let host = Host::open(&git, &self.top).unwrap();
        recover_repository(&git, &host, &mut self.ledger(), NOW_IS_PAST).unwrap()
    }

    pub(crate) fn tip(&self) -> String {
        self.run(&["rev-parse", "refs/heads/main"])
    }

    pub(crate) fn baseline(&self) -> String {
        self.capture.captured.baseline.to_string()
    }

    pub(crate) fn head(&self) -> String {
        self.capture.captured.head.to_string()
    }

    /// Everything of the tree and what counts of the repository, by path.
    pub(crate) fn state(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        list(&self.top, &self.top, &mut all);
        all.insert("tip".to_owned(), self.tip());
        all
    }

    /// The files of the working tree and the branch are all at the commit or all at the baseline, git
    /// agrees, and nothing of ours is left.
    pub(crate) fn assert_whole(&self, landed: bool) {
        let tip = if landed { self.head() } else { self.baseline() };
        assert_eq!(self.tip(), tip);
        assert_eq!(self.run(&["status", "--porcelain"]), "", "{landed}");
        assert_eq!(self.run(&["diff-files"]), "", "the index knows the files");
        assert_eq!(self.run(&["diff-index", "--cached", "HEAD"]), "");
        assert_eq!(self.top.join(ADDED).exists(), landed);
        assert_eq!(self.top.join("old").exists(), !landed);
        self.assert_clear();
    }

    pub(crate) fn assert_clear(&self) {
        let git_dir = self.top.join(".git");
        for name in ["flightproof-import", "index.lock", "HEAD.lock"] {
            assert!(!git_dir.join(name).exists(), "{name}");
        }
        assert!(!self.top.join(".prime-agent-staging-apply").exists());
    }
}

/// What the commit does to a tree.
pub(crate) fn change(top: &Path) {
    write(top, CHANGED, "pub fn a() -> u8 { 2 }\n");
    write(top, ADDED, "pub fn new() {}\n");
    std::fs::remove_file(top.join(DELETED)).unwrap();
    executable(&top.join(MODE));
}

pub(crate) fn executable(file: &Path) {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn write(top: &Path, path: &str, text: &str) {
    let file = top.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn take(git: &Git, session: &Path) -> Capture {
    let scratch = folder();
    let host = Host::open(git, session).unwrap();
    let everything = Grants::new(
        [
            ".gitattributes",
            "src",
            "old",
            "run.sh",
            ".env",
            "new",
            "sub/.gitattributes",
            "d",
            "a",
        ]
        .map(|path| flightproof_core::RelPath::new(path).unwrap()),
    );
    let request = CaptureRequest {
        name: "test",
        baseline: "HEAD~1",
        candidate: "HEAD",
        grants: &everything,
        identity: None,
        squash: false,
        scratch: scratch.path(),
        now: std::time::UNIX_EPOCH.elapsed().unwrap().as_secs(),
    };
    capture(git, &host, &request).unwrap()
}

/// The index without what git rewrites whenever it looks at it is compared as its own listing; all
/// else below `.git` but objects and the log is compared as bytes.
fn list(top: &Path, dir: &Path, all: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .strip_prefix(top)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if name == ".git/objects" || name == ".git/logs" {
            continue;
        }
        let found = std::fs::symlink_metadata(&path).unwrap();
        let kind = found.file_type();
        let told = if kind.is_dir() {
            list(top, &path, all);
            "folder".to_owned()
        } else if kind.is_symlink() {
            format!("link {}", std::fs::read_link(&path).unwrap().display())
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            format!("{:o} {}", found.mode(), Digest::of(&bytes))
        } else {
            format!("other {}", kind.is_fifo())
        };
        all.insert(name, told);
    }
}
