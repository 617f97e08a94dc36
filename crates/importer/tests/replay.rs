//! The same work on another baseline, and many commits as one.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;

use flightproof_core::CommitId;
use flightproof_importer::{
    Capture, CaptureRequest, Git, Grants, Host, ImportError, ImporterCode, capture, replay,
};
use scene::{folder, programs, run_git};
use std::path::{Path, PathBuf};

/// A repository with a baseline, and a branch of one commit on it.
struct Bench {
    temp: tempfile::TempDir,
    program: PathBuf,
}

impl Bench {
    fn new(program: &Path) -> Self {
        let bench = Self {
            temp: folder(),
            program: program.to_owned(),
        };
        bench.run(&["init", "-q"]);
        let lines: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        bench.commit("baseline", &[("a", &lines), ("b", "b\n")]);
        bench.run(&["branch", "baseline"]);
        bench.run(&["checkout", "-q", "-b", "work"]);
        bench.commit(
            "work",
            &[("a", &lines.replace("line 2\n", "work\n")), ("new", "n\n")],
        );
        bench.run(&["checkout", "-q", "main"]);
        bench
    }

    fn run(&self, words: &[&str]) -> String {
        run_git(&self.program, self.temp.path(), words)
    }

    fn commit(&self, message: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            std::fs::write(self.temp.path().join(path), text).unwrap();
        }
        self.run(&["add", "-A"]);
        self.run(&["commit", "-q", "-m", message]);
    }

    fn id(&self, revision: &str) -> CommitId {
        self.run(&["rev-parse", revision]).parse().unwrap()
    }

    fn replay(&self, onto: &str) -> Result<CommitId, ImportError> {
        let git = Git::at(&self.program).unwrap();
        let host = Host::open(&git, self.temp.path()).unwrap();
        let ends = (self.id("baseline"), self.id("work"));
        let scratch = folder();
        replay(&git, &host, ends, onto, scratch.path())
    }

    fn squash(&self, identity: Option<&str>) -> Result<Capture, ImportError> {
        let git = Git::at(&self.program).unwrap();
        let host = Host::open(&git, self.temp.path()).unwrap();
        let scratch = folder();
        let request = CaptureRequest {
            name: "test",
            baseline: "baseline",
            candidate: "work",
            grants: &Grants::default(),
            identity,
            squash: true,
            scratch: scratch.path(),
            now: std::time::UNIX_EPOCH.elapsed().unwrap().as_secs(),
        };
        capture(&git, &host, &request)
    }
}

#[test]
fn work_that_fits_becomes_one_commit_on_the_new_baseline() {
    for program in programs() {
        let bench = Bench::new(&program);
        bench.commit("meanwhile", &[("b", "theirs\n")]);
        let before = bench.run(&["for-each-ref"]);
        let id = bench.replay("main").unwrap().to_string();
        assert_eq!(
            bench.run(&["rev-parse", &format!("{id}^")]),
            bench.run(&["rev-parse", "main"])
        );
        let show = |path: &str| bench.run(&["show", &format!("{id}:{path}")]);
        assert_eq!((show("b").as_str(), show("new").as_str()), ("theirs", "n"));
        assert!(show("a").contains("work"));
        let who =
            |commit: &str| bench.run(&["log", "-1", "--format=%an %ae %ad %cn %cd %B", commit]);
        assert_eq!(who(&id), who("work"));
        assert_eq!(
            bench.replay("main").unwrap().to_string(),
            id,
            "the same again is the same"
        );
        assert_eq!(bench.run(&["for-each-ref"]), before);
        assert_eq!(bench.run(&["status", "--porcelain"]), "");
        bench.run(&["fsck", "--strict"]);
    }
}

#[test]
fn work_that_does_not_fit_is_refused_with_its_paths() {
    for program in programs() {
        let bench = Bench::new(&program);
        let theirs: String = (1..=20).map(|n| format!("theirs {n}\n")).collect();
        bench.commit("meanwhile", &[("a", &theirs), ("new", "another\n")]);
        let refused = bench.replay("main").unwrap_err();
        assert_eq!(refused.code, ImporterCode::MergeConflict);
        assert_eq!(refused.detail, "a, new");
        let refused = bench.replay("baseline").unwrap_err();
        assert_eq!(refused.code, ImporterCode::OntoUnrelated);
        bench.run(&["checkout", "-q", "--orphan", "other"]);
        bench.commit("elsewhere", &[("x", "x\n")]);
        let refused = bench.replay("other").unwrap_err();
        assert_eq!(refused.code, ImporterCode::OntoUnrelated);
        let refused = bench.replay("work").unwrap_err();
        assert_eq!(refused.code, ImporterCode::NoChange, "it is in already");
    }
}

#[test]
fn a_merge_driver_of_the_host_does_not_run() {
    let bench = Bench::new(&programs()[0]);
    let canary = bench.temp.path().join(".git/canary");
    let evil = format!("touch {}", canary.display());
    bench.run(&["config", "merge.evil.driver", &evil]);
    std::fs::write(
        bench.temp.path().join(".git/info/attributes"),
        "* merge=evil\n",
    )
    .unwrap();
    let lines: String = (1..=19).map(|n| format!("line {n}\n")).collect();
    bench.commit("meanwhile", &[("a", &format!("{lines}theirs\n"))]);
    bench.replay("main").unwrap();
    assert!(!canary.exists());
}

#[test]
fn many_commits_travel_as_one_under_an_identity() {
    for program in programs() {
        let bench = Bench::new(&program);
        bench.run(&["checkout", "-q", "work"]);
        bench.commit("more", &[("more", "m\n")]);
        let refused = bench.squash(None).unwrap_err();
        assert_eq!(refused.code, ImporterCode::SquashIdentity);
        let made = bench.squash(Some("Agent <agent@example.invalid>")).unwrap();
        let (captured, checked) = (&made.captured, &made.checked);
        assert_eq!(captured.author, "Agent <agent@example.invalid>");
        assert_eq!(captured.committer, captured.author);
        assert_eq!(captured.head, checked.head());
        let paths: Vec<&str> = captured.changes.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(paths, ["a", "more", "new"]);
        // Nothing was written into the repository.
        let there = std::process::Command::new(&program)
            .args(["cat-file", "-e", &captured.head.to_string()])
            .current_dir(bench.temp.path())
            .output();
        assert!(!there.unwrap().status.success());
        let again = bench.squash(Some("Agent <agent@example.invalid>")).unwrap();
        assert_eq!(again.captured.head, captured.head);
    }
}

#[test]
fn commits_that_do_not_stand_on_the_baseline_are_not_made_one_on_it() {
    for program in programs() {
        let bench = Bench::new(&program);
        bench.commit("meanwhile", &[("fix", "f\n")]);
        bench.run(&["branch", "-f", "baseline", "main"]);
        let refused = bench
            .squash(Some("Agent <agent@example.invalid>"))
            .unwrap_err();
        assert_eq!(refused.code, ImporterCode::NotOnBaseline);
        // With what came meanwhile in it, it may come as one commit.
        bench.run(&["checkout", "-q", "work"]);
        bench.run(&["merge", "-q", "-m", "merge", "main"]);
        let made = bench.squash(Some("Agent <agent@example.invalid>")).unwrap();
        let paths: Vec<&str> = made
            .captured
            .changes
            .iter()
            .map(|c| c.path.as_str())
            .collect();
        assert_eq!(paths, ["a", "new"]);
    }
}
