//! Death at any moment of an admission, and what the next run makes of it.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;

use flightproof_core::Digest;
use flightproof_hostile::git::Plan;
use flightproof_importer::{Clearance, Git, Host, Outcome, admit, recover};
use flightproof_ledger::Ledger;
use scene::{CLEAN, NOW, Scene, fake_git, folder, real_git};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs only as the victim of the tests below.
#[test]
#[ignore = "started and killed by the tests below"]
fn victim() {
    let place = |name| std::env::var(name).unwrap();
    let (top, state) = (
        place("FLIGHTPROOF_TEST_TOP"),
        place("FLIGHTPROOF_TEST_STATE"),
    );
    let git = Git::at(Path::new(&place("FLIGHTPROOF_TEST_GIT"))).unwrap();
    let host = Host::open(&git, Path::new(&top)).unwrap();
    let scratch = folder();
    let capture = flightproof_importer::capture(
        &git,
        &host,
        &flightproof_importer::CaptureRequest {
            name: "test",
            baseline: &place("FLIGHTPROOF_TEST_BASELINE"),
            candidate: &place("FLIGHTPROOF_TEST_HEAD"),
            grants: &flightproof_importer::Grants::default(),
            identity: None,
            squash: false,
            scratch: scratch.path(),
            now: NOW,
        },
    )
    .unwrap();
    drop(scratch);
    let clearance = Clearance::new(
        &CLEAN,
        Digest::of(b"certificate"),
        &capture.captured,
        "main",
    )
    .unwrap();
    let mut ledger = Ledger::open(Path::new(&state)).unwrap();
    println!("ready");
    admit(&git, &host, &mut ledger, &clearance, NOW).unwrap();
}

fn start_victim(scene: &Scene, git: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--ignored", "--nocapture"])
        .env("FLIGHTPROOF_TEST_TOP", &scene.top)
        .env("FLIGHTPROOF_TEST_STATE", scene.state())
        .env("FLIGHTPROOF_TEST_GIT", git)
        .env("FLIGHTPROOF_TEST_BASELINE", scene.baseline())
        .env("FLIGHTPROOF_TEST_HEAD", scene.head())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What must hold after any death: the branch is at one of its two places, the recovery agrees
/// with it, and asking again ends at the head with one receipt.
fn check_aftermath(scene: &Scene, git: &Git) -> (String, Option<Outcome>) {
    let mut ledger = scene.ledger();
    let found = recover(git, &mut ledger, NOW + 1).unwrap();
    let tip = scene.tip("main");
    assert!(found.len() <= 1);
    let outcome = found.first().map(|f| f.outcome);
    match outcome {
        Some(Outcome::Applied) => assert_eq!(tip, scene.head()),
        Some(Outcome::NotApplied) => assert_eq!(tip, scene.baseline()),
        None => {}
        other => panic!("{other:?}"),
    }
    assert!(recover(git, &mut ledger, NOW + 2).unwrap().is_empty());
    let lock = scene.git_dir().join("refs/heads/main.lock");
    let reported = found.first().and_then(|f| f.lock_left.clone());
    assert_eq!(lock.exists().then_some(lock), reported);
    if let Some(lock) = found.first().and_then(|f| f.lock_left.clone()) {
        assert_eq!(
            tip,
            scene.baseline(),
            "a lock is left only by a git that did not finish"
        );
        std::fs::remove_file(lock).unwrap();
    }
    let clearance = scene.clearance(git);
    let host = Host::open(git, &scene.top).unwrap();
    let admitted = admit(git, &host, &mut ledger, &clearance, NOW).unwrap();
    assert_eq!(
        admitted.repeated,
        tip == scene.head(),
        "a moved branch has a receipt"
    );
    assert_eq!(scene.tip("main"), scene.head());
    (tip, outcome)
}

/// Kills the run, the git it started, or both, at one named moment.
fn killed_at(act: &str) -> (Scene, String, Option<Outcome>) {
    let scene = Scene::new(&Plan::HONEST);
    let real = real_git();
    let script = format!("for w; do case $w in update-ref) {act};; esac; done; exec {real} \"$@\"");
    let program = fake_git(scene.temp.path(), &script.replace("REAL_GIT", real));
    let status = start_victim(&scene, &program).wait().unwrap();
    assert!(!status.success(), "the victim must have died");
    let (tip, outcome) = check_aftermath(&scene, &Git::at(Path::new(real)).unwrap());
    (scene, tip, outcome)
}

#[test]
fn death_after_the_intent_and_before_git_leaves_the_branch_untouched() {
    let (scene, tip, outcome) = killed_at("kill -9 $PPID; exit 1");
    assert_eq!(
        (tip, outcome),
        (scene.baseline(), Some(Outcome::NotApplied))
    );
}

#[test]
fn death_between_the_move_and_the_receipt_is_recovered_from_the_branch() {
    // Git says "start", "prepare" and "commit"; the third answer is not passed on.
    let (scene, tip, outcome) =
        killed_at("REAL_GIT \"$@\" | { head -n 2; read last; kill -9 $PPID; }; exit 1");
    assert_eq!((tip, outcome), (scene.head(), Some(Outcome::Applied)));
}

#[test]
fn a_lock_file_left_by_a_killed_git_is_reported_and_not_removed() {
    let (scene, tip, outcome) =
        killed_at(": >$GIT_DIR/refs/heads/main.lock; kill -9 $PPID; exit 1");
    assert_eq!(
        (tip, outcome),
        (scene.baseline(), Some(Outcome::NotApplied))
    );
}

#[test]
fn an_orphaned_git_that_still_moves_the_branch_is_waited_for() {
    // Git has the order to commit, the run dies, and git moves the branch half a second later.
    // A recovery that did not wait would call this "not applied".
    let (scene, tip, outcome) = killed_at(
        "echo 'start: ok'; echo 'prepare: ok'; while read -r line; do case $line in \
         update*) order=$line;; \
         commit) kill -9 $PPID; sleep 0.5; set -- $order; exec REAL_GIT update-ref $2 $3 $4 2>/dev/null;; \
         esac; done; exit 1",
    );
    assert_eq!((tip, outcome), (scene.head(), Some(Outcome::Applied)));
}

#[test]
fn death_at_random_moments_never_leaves_a_third_state() {
    const ROUNDS: u64 = 12;
    let real = real_git();
    let git = Git::at(Path::new(real)).unwrap();
    let mut seen = Vec::new();
    for round in 0..ROUNDS {
        let scene = Scene::new(&Plan::HONEST);
        let mut victim = start_victim(&scene, Path::new(real));
        let mut line = String::new();
        let mut lines = std::io::BufReader::new(victim.stdout.take().unwrap());
        while !line.contains("ready") {
            line.clear();
            assert!(std::io::BufRead::read_line(&mut lines, &mut line).unwrap() > 0);
        }
        // An admission takes some ten milliseconds: spread the moments over it.
        std::thread::sleep(Duration::from_micros(round * 2_500));
        victim.kill().unwrap();
        victim.wait().unwrap();
        seen.push(check_aftermath(&scene, &git));
    }
    assert_eq!(seen.len() as u64, ROUNDS);
}
