//! How git is started, and what happens when it does not behave.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;

use flightproof_hostile::git::{Plan, hex};
use flightproof_importer::{Git, Host, ImporterCode};
use scene::{Scene, fake_git, folder, gits, real_git};

#[test]
fn programs_that_are_not_a_usable_git_are_refused() {
    let temp = folder();
    let at = |script: &str| {
        Git::at(&fake_git(temp.path(), script))
            .map(|g| g.version())
            .map_err(|e| e.code)
    };
    assert_eq!(at("echo git version 2.38.9"), Err(ImporterCode::GitTooOld));
    assert_eq!(at("echo git version 1.9.1"), Err(ImporterCode::GitTooOld));
    assert_eq!(at("echo hello"), Err(ImporterCode::GitMissing));
    assert!(at("echo git version 3.0.0").is_ok());
    // Nor with a repository, about which it is asked at the same time.
    let scene = Scene::new(&Plan::HONEST);
    let beside = |answer: &str| {
        let script = format!(
            "case \"$*\" in *version) {answer} ;; *) exec {} \"$@\" ;; esac",
            real_git()
        );
        Host::with_git(&fake_git(temp.path(), &script), &scene.top).map(|(git, _)| git.version())
    };
    assert!(beside("echo git version 3.0.0").is_ok());
    for (answer, code) in [
        ("echo git version 2.38.9", ImporterCode::GitTooOld),
        ("sleep 0.2; echo hello", ImporterCode::GitMissing),
        ("kill -9 $$", ImporterCode::GitFailed),
    ] {
        assert_eq!(beside(answer).unwrap_err().code, code, "{answer}");
    }
    assert_eq!(at("kill -9 $$"), Err(ImporterCode::GitFailed));
    assert_eq!(
        Git::at(std::path::Path::new("git")).unwrap_err().code,
        ImporterCode::GitMissing
    );
    assert_eq!(
        Git::at(&temp.path().join("no")).unwrap_err().code,
        ImporterCode::GitMissing
    );
}

#[test]
fn a_git_that_dies_or_floods_is_a_refusal_and_not_no_change() {
    let scene = Scene::new(&Plan::HONEST);
    let real = real_git();
    for (verb, act, wanted) in [
        ("cat-file", "kill -9 $$", ImporterCode::GitFailed),
        ("cat-file", "exit 0", ImporterCode::GitFailed),
        (
            "cat-file",
            "while :; do echo x; done",
            ImporterCode::GitFailed,
        ),
        (
            "cat-file",
            "tr '\\\\0' x </dev/zero",
            ImporterCode::GitFailed,
        ),
        ("bundle", "exit 0", ImporterCode::BundleMissing),
        ("bundle", "echo no", ImporterCode::BundleHeader),
        ("bundle", "echo no >&2; exit 1", ImporterCode::GitFailed),
        ("bundle", "yes", ImporterCode::BundleOverLimit),
        (
            "index-pack",
            "cat >/dev/null; echo no >&2; exit 1",
            ImporterCode::SecondOpinion,
        ),
        ("index-pack", "cat >/dev/null", ImporterCode::SecondOpinion),
        (
            "index-pack",
            "cat >/dev/null; echo pack\t0000000000000000000000000000000000000000",
            ImporterCode::SecondOpinion,
        ),
        ("index-pack", "kill -9 $$", ImporterCode::GitFailed),
        ("rev-parse", "kill -11 $$", ImporterCode::GitFailed),
        ("rev-parse", "echo nonsense", ImporterCode::GitFailed),
    ] {
        let script =
            format!("for w; do case $w in {verb}) {act}; exit;; esac; done; exec {real} \"$@\"");
        let git = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
        let refused = scene.capture_by_name(&git).unwrap_err();
        assert_eq!(refused.code, wanted, "{verb}: {act}: {refused}");
    }
}

#[test]
fn a_git_that_bundles_another_commit_is_found_out() {
    let scene = Scene::new(&Plan::HONEST);
    let other = Scene::new(&Plan {
        change: flightproof_hostile::git::Change::Many(1),
        ..Plan::HONEST
    });
    let bundle = scene.temp.path().join("other.bundle");
    std::fs::write(&bundle, other.capture(&scene::git()).unwrap().bundle).unwrap();
    let script = format!(
        "for w; do case $w in bundle) exec cat {};; esac; done; exec {} \"$@\"",
        bundle.display(),
        real_git()
    );
    let git = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
    // A whole, well-formed bundle on the same baseline, of a commit nobody asked for.
    let refused = scene.capture(&git).unwrap_err();
    assert_eq!(refused.code, ImporterCode::BundleMalformed, "{refused}");
}

#[test]
fn a_git_that_finds_other_objects_than_we_did_is_not_believed() {
    let scene = Scene::new(&Plan::HONEST);
    let other = Scene::new(&Plan {
        change: flightproof_hostile::git::Change::Many(1),
        ..Plan::HONEST
    });
    let pack = scene.temp.path().join("other.pack");
    let checked = other.capture(&scene::git()).unwrap().checked;
    std::fs::write(&pack, checked.pack().unwrap()).unwrap();
    let script = format!(
        "for w; do case $w in index-pack) cat >/dev/null; exec {1} \"$@\" <{0};; esac; done; exec {1} \"$@\"",
        pack.display(),
        real_git()
    );
    let git = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
    let refused = scene.capture(&git).unwrap_err();
    assert_eq!(refused.code, ImporterCode::SecondOpinion, "{refused}");
}

#[test]
fn what_git_is_started_with_is_exactly_what_is_written_down() {
    let scene = Scene::new(&Plan::HONEST);
    let seen = scene.temp.path().join("seen");
    let script = format!(
        "{{ pwd; env; printf '%s\\n' \"$@\"; }} >>{}; exec {} \"$@\"",
        seen.display(),
        real_git()
    );
    let git = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
    scene.capture(&git).unwrap();
    let seen = std::fs::read_to_string(seen).unwrap();
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[0], "/");
    for wanted in [
        "GIT_CONFIG_GLOBAL=/dev/null",
        "GIT_ALLOW_PROTOCOL=",
        "core.hooksPath=/dev/null",
        "hook.update.enabled=false",
        "GIT_GRAFT_FILE=/dev/null",
    ] {
        assert!(lines.contains(&wanted), "{wanted}");
    }
    for never in ["CARGO", "RUST", "NEXTEST", "HOME=/root", "SSH_AUTH_SOCK"] {
        assert!(!seen.contains(never), "{never}");
    }
    for verb in [
        "fetch", "clone", "checkout", "merge", "reset", "status", "unbundle", "verify",
    ] {
        assert!(!lines.contains(&verb), "{verb}");
    }
}

/// Runs only as the victim below, in an environment that would redirect git.
#[test]
#[ignore = "started by the test below with a hostile environment"]
fn victim_of_the_environment() {
    let scene = Scene::new(&Plan::HONEST);
    for git in gits() {
        assert_eq!(
            scene
                .capture_by_name(&git)
                .unwrap()
                .captured
                .head
                .to_string(),
            hex(&scene.built.head)
        );
    }
}

#[test]
fn variables_of_the_surroundings_reach_no_git() {
    let temp = folder();
    let canary = temp.path().join("canary");
    let touch = format!("touch {}", canary.display());
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim_of_the_environment", "--ignored"])
        .env("GIT_DIR", "/nonexistent")
        .env("GIT_OBJECT_DIRECTORY", "/nonexistent")
        .env("GIT_COMMON_DIR", "/nonexistent")
        .env("GIT_INDEX_FILE", "/nonexistent")
        .env("GIT_TRACE", &canary)
        .env("GIT_TRACE2_EVENT", &canary)
        .env("GIT_EXTERNAL_DIFF", &touch)
        .env("GIT_SSH_COMMAND", &touch)
        .env("GIT_EXEC_PATH", temp.path())
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .env("GIT_CONFIG_VALUE_0", &touch)
        .env("LD_PRELOAD", "/nonexistent.so")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(!canary.exists());
}

#[test]
fn a_capture_writes_nothing_into_the_repository() {
    let scene = Scene::new(&Plan::HONEST);
    let list = || {
        let output = std::process::Command::new("find")
            .arg(&scene.top)
            .args(["-printf", "%p %s %T@ %m\n"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = list();
    for git in gits() {
        scene.capture(&git).unwrap();
    }
    assert_eq!(list(), before);
}
