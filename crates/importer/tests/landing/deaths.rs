//! Death at named moments of an import, and what the next run makes of it.

use crate::scene::{NOW_IS_PAST, fake_git, programs};
use crate::yard::{ADDED, CHANGED, UNTOUCHED, Yard, write};
use flightproof_archive::paws;
use flightproof_archive::rehearsal::{self, Care};
use flightproof_core::{Digest, RelPath};
use flightproof_importer::{
    Arrival, Clearance, Git, Grants, Host, Outcome, Parcel, Receipt, Rules, admit, check_bundle,
    recover_repository,
};
use flightproof_ledger::Ledger;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs only as the victim of the tests below.
#[test]
#[ignore = "started and killed by the tests below"]
fn victim() {
    let place = |name: &str| std::env::var(format!("FLIGHTPROOF_TEST_{name}")).unwrap();
    let git = Git::at(Path::new(&place("GIT"))).unwrap();
    let host = Host::open(&git, Path::new(&place("TOP"))).unwrap();
    let bundle = std::fs::read(place("BUNDLE")).unwrap();
    let scratch = crate::scene::folder();
    let arrival = Arrival {
        parcel: Parcel::bundle(&bundle),
        baseline: &place("BASELINE"),
        rules: Rules {
            grants: &Grants::default(),
            identity: None,
            now: std::time::UNIX_EPOCH.elapsed().unwrap().as_secs(),
        },
        scratch: scratch.path(),
    };
    let checked = check_bundle(&git, &host, &arrival).unwrap();
    let closed = crate::scene::CLEAN;
    let clearance =
        Clearance::of_bundle(&closed, Digest::of(b"certificate"), &checked, "main").unwrap();
    let clearance = match std::env::var_os("FLIGHTPROOF_TEST_SIGNED") {
        Some(_) => clearance
            .signed(&checked, |_| Ok(ARMOUR.to_owned()))
            .unwrap(),
        None => clearance,
    };
    let mut ledger = Ledger::open(Path::new(&place("STATE"))).unwrap();
    match admit(&git, &host, &mut ledger, &clearance, NOW_IS_PAST) {
        Ok(_) => println!("landed"),
        Err(refused) => println!("refused {}", refused.code()),
    }
}

/// A victim that is ready to be started, with this program as its git.
pub(crate) fn victim_of(yard: &Yard, git: &Path) -> Command {
    let bundle = yard.temp.path().join("bundle");
    std::fs::write(&bundle, &yard.capture.bundle).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "deaths::victim", "--ignored", "--nocapture"])
        .env("FLIGHTPROOF_TEST_TOP", &yard.top)
        .env("FLIGHTPROOF_TEST_STATE", yard.temp.path().join("state"))
        .env("FLIGHTPROOF_TEST_GIT", git)
        .env("FLIGHTPROOF_TEST_BASELINE", yard.baseline())
        .env("FLIGHTPROOF_TEST_BUNDLE", bundle)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Of the form of a signature.
const ARMOUR: &str = "-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----\n";

/// A git that does `act` where it moves the branch.
fn deadly(yard: &Yard, act: &str) -> PathBuf {
    let real = yard.program.display().to_string();
    let act = act.replace("REAL", &real);
    let script = format!("for w; do case $w in update-ref) {act};; esac; done; exec {real} \"$@\"");
    fake_git(yard.temp.path(), &script)
}

/// Kills the run at the moment `act` has for the git that moves the branch.
fn killed_at(yard: &Yard, act: &str) {
    let git = deadly(yard, act);
    let output = victim_of(yard, &git).output().unwrap();
    assert!(!output.status.success(), "the victim must have died");
}

/// A script's way to be git up to the order to commit: all files are exchanged by then.
const PREPARED: &str = "echo 'start: ok'; echo 'prepare: ok'; while read -r line; do case $line in \
    commit) kill -9 $PPID; exit 1;; esac; done; exit 1";
/// Git up to its answer to that order, which is not passed on.
const COMMITTED: &str = "REAL \"$@\" | { head -n 2; read line; kill -9 $PPID; }; exit 1";

#[test]
fn death_before_any_file_changed_is_not_applied() {
    for git in programs() {
        let yard = Yard::new(&git);
        killed_at(&yard, "kill -9 $PPID; exit 1");
        assert!(yard.top.join(".git/index.lock").exists());
        let [found] = &yard.recover()[..] else {
            panic!("one import was cut off")
        };
        assert_eq!(found.outcome, Outcome::NotApplied);
        ends_well(&yard, false);
    }
}

#[test]
fn death_between_the_branch_and_the_receipt_is_applied_and_the_index_follows() {
    for git in programs() {
        let yard = Yard::new(&git);
        killed_at(&yard, COMMITTED);
        let [found] = &yard.recover()[..] else {
            panic!("one import was cut off")
        };
        assert_eq!(found.outcome, Outcome::Applied);
        assert!(found.receipt.is_some() && found.look.is_none() && found.kept.is_empty());
        ends_well(&yard, true);
    }
}

#[test]
fn a_signed_commit_whose_run_died_gets_the_receipt_it_would_have_had() {
    let yard = Yard::new(&programs()[0]);
    let git = deadly(&yard, COMMITTED);
    let mut victim = victim_of(&yard, &git);
    let output = victim.env("FLIGHTPROOF_TEST_SIGNED", "1").output().unwrap();
    assert!(!output.status.success(), "the victim must have died");
    let [found] = &yard.recover()[..] else {
        panic!("one import was cut off")
    };
    assert_eq!(found.outcome, Outcome::Applied);
    let receipt: Receipt = serde_json::from_slice(found.receipt.as_deref().unwrap()).unwrap();
    assert_eq!(receipt.head.to_string(), yard.tip());
    assert_eq!(receipt.unsigned.unwrap().to_string(), yard.head());
    assert_ne!(yard.tip(), yard.head());
    assert_eq!(yard.run(&["status", "--porcelain"]), "");
    yard.run(&["fsck", "--strict"]);
}

#[test]
fn death_with_all_files_changed_and_the_branch_where_it_was_rolls_back() {
    for git in programs() {
        let yard = Yard::new(&git);
        killed_at(&yard, PREPARED);
        assert!(yard.top.join(ADDED).exists());
        let [found] = &yard.recover()[..] else {
            panic!("one import was cut off")
        };
        assert_eq!(found.outcome, Outcome::Interrupted);
        assert!(found.kept.is_empty());
        ends_well(&yard, false);
    }
}

/// The recovery ended with the tree on one side; a second one finds nothing; the same import asked in
/// again ends at the commit.
pub(crate) fn ends_well(yard: &Yard, landed: bool) {
    remove_locks_of_the_dead(yard);
    yard.assert_whole(landed);
    assert!(yard.recover().is_empty(), "nothing is left to judge");
    assert_eq!(yard.land().unwrap().repeated, landed);
    yard.assert_whole(true);
}

/// A git that was killed leaves its locks, which are reported and not removed.
fn remove_locks_of_the_dead(yard: &Yard) {
    for lock in ["HEAD.lock", "refs/heads/main.lock"] {
        let _ = std::fs::remove_file(yard.top.join(".git").join(lock));
    }
}

/// A run that died with the files exchanged and the branch where it was.
fn interrupted() -> Yard {
    let yard = Yard::new(&programs()[0]);
    killed_at(&yard, PREPARED);
    assert!(yard.top.join(".prime-agent-staging-apply/journal").exists());
    yard
}

#[test]
fn what_an_application_before_the_import_left_is_kept_and_named() {
    let yard = Yard::new(&programs()[0]);
    let packed = |text: &str| {
        let file = (
            RelPath::new(UNTOUCHED).unwrap(),
            false,
            text.as_bytes().to_vec(),
        );
        paws::pack("w", [file]).unwrap()
    };
    let old = "pub fn b() {}\n";
    let new = packed("cut off\n");
    let new = paws::read(&new.bytes).unwrap();
    let (_, archive) = paws::pack_changeset(&packed(old).snapshot, &new).unwrap();
    let place = yard.temp.path().join("changes");
    std::fs::write(&place, archive).unwrap();
    let archive = std::fs::File::open(&place).unwrap();
    let cut = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut watch = |act: &str| assert!(act != "Settle", "cut off here");
        rehearsal::apply(&archive, &yard.top, Care::Full, &mut watch).map(drop)
    }));
    assert!(cut.is_err());
    // Somebody puts the old text back as a file of their own.
    write(&yard.top, "own", old);
    std::fs::rename(yard.top.join("own"), yard.top.join(UNTOUCHED)).unwrap();
    let admitted = yard.land().unwrap();
    assert_eq!(admitted.kept.len(), 1, "{:?}", admitted.kept);
    let kept = yard.top.join(&admitted.kept[0]);
    assert_eq!(std::fs::read_to_string(kept).unwrap(), old);
}

#[test]
fn work_done_after_the_death_is_kept_by_the_roll_back() {
    let yard = interrupted();
    write(&yard.top, UNTOUCHED, "mine\n");
    let kept = "edited after the crash\n";
    write(&yard.top, CHANGED, kept);
    let [found] = &yard.recover()[..] else {
        panic!("one import was cut off")
    };
    assert_eq!(found.outcome, Outcome::Interrupted);
    let mut places = vec![yard.top.join(CHANGED)];
    places.extend(found.kept.iter().map(|at| yard.top.join(at)));
    let holds =
        |place: &std::path::PathBuf| std::fs::read_to_string(place).is_ok_and(|text| text == kept);
    assert!(places.iter().any(holds), "{places:?}");
    assert_eq!(
        std::fs::read_to_string(yard.top.join(UNTOUCHED)).unwrap(),
        "mine\n"
    );
    yard.assert_clear();
    assert!(yard.recover().is_empty());
}

#[test]
fn where_the_branch_says_nothing_about_the_files_nobody_touches_them() {
    // Somebody removed the lock and went on.
    let acts: [fn(&Yard); 3] = [
        |y| {
            let tree = y.run(&["rev-parse", "HEAD^{tree}"]);
            let other = y.run(&["commit-tree", "-m", "theirs", "-p", "HEAD", &tree]);
            y.run(&["update-ref", "refs/heads/main", &other]);
        },
        |y| {
            y.run(&["symbolic-ref", "HEAD", "refs/heads/aside"]);
        },
        |y| {
            y.run(&["update-ref", "-d", "refs/heads/main"]);
        },
    ];
    let outcomes = [
        (Outcome::Superseded, "files may be half changed"),
        (Outcome::Unknown, "the working tree is on another branch; "),
        (Outcome::Unknown, "the branch is gone or cannot be read; "),
    ];
    for (act, (outcome, word)) in acts.into_iter().zip(outcomes) {
        let yard = interrupted();
        remove_locks_of_the_dead(&yard);
        std::fs::remove_file(yard.top.join(".git/index.lock")).unwrap();
        act(&yard);
        let files = |yard: &Yard| {
            let text = |path| std::fs::read(yard.top.join(path)).ok();
            [
                text(CHANGED),
                text(ADDED),
                text(".prime-agent-staging-apply/journal"),
            ]
        };
        let before = files(&yard);
        let [found] = &yard.recover()[..] else {
            panic!("one import was cut off")
        };
        assert_eq!(found.outcome, outcome);
        let look = found.look.as_deref().unwrap();
        assert!(look.starts_with(word), "{look}");
        assert_eq!(files(&yard), before);
        // It stays so, and stays in the way of another import.
        let again = yard.recover();
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].outcome, outcome);
        assert_eq!(files(&yard), before);
        assert!(flightproof_archive::recover(&yard.top).is_err());
    }
}

#[test]
fn a_git_that_cannot_read_the_branch_decides_nothing() {
    let yard = Yard::new(&programs()[0]);
    killed_at(&yard, COMMITTED);
    let before = yard.state();
    let real = yard.program.display();
    for act in [
        "exit 128",
        "kill -9 $$",
        "echo 'fatal: no memory' >&2; exit 128",
        "echo 'warning: ignoring broken ref' >&2; exit 0",
    ] {
        let script =
            format!("for w; do case $w in for-each-ref) {act};; esac; done; exec {real} \"$@\"");
        let git = Git::at(&fake_git(yard.temp.path(), &script)).unwrap();
        let host = Host::open(&git, &yard.top).unwrap();
        let refused = recover_repository(&git, &host, &mut yard.ledger(), NOW_IS_PAST).unwrap_err();
        assert_eq!(refused.code(), "importer/GIT_FAILED", "{act}");
        let refused = yard.land_in(&yard.top, &git).unwrap_err();
        assert_ne!(refused.code(), "importer/BRANCH_MISSING", "{act}");
        assert_eq!(yard.state(), before, "{act}");
    }
    let [found] = &yard.recover()[..] else {
        panic!("one import was cut off")
    };
    assert_eq!(found.outcome, Outcome::Applied);
    assert!(found.receipt.is_some());
    ends_well(&yard, true);
}

#[test]
fn a_branch_that_went_on_has_its_receipt_and_its_files() {
    let yard = Yard::new(&programs()[0]);
    killed_at(&yard, COMMITTED);
    remove_locks_of_the_dead(&yard);
    let tree = yard.run(&["rev-parse", "main^{tree}"]);
    let next = yard.run(&["commit-tree", "-m", "next", "-p", "main", &tree]);
    yard.run(&["update-ref", "refs/heads/main", &next]);
    let [found] = &yard.recover()[..] else {
        panic!("one import was cut off")
    };
    assert_eq!(found.outcome, Outcome::AppliedThenMoved);
    assert!(found.receipt.is_some());
    assert_eq!(yard.run(&["status", "--porcelain"]), "");
    yard.assert_clear();
    assert!(yard.recover().is_empty());
}

#[test]
fn an_index_somebody_wrote_after_the_death_is_left_and_named() {
    let yard = Yard::new(&programs()[0]);
    killed_at(&yard, COMMITTED);
    remove_locks_of_the_dead(&yard);
    std::fs::remove_file(yard.top.join(".git/index.lock")).unwrap();
    write(&yard.top, UNTOUCHED, "mine\n");
    yard.run(&["add", UNTOUCHED]);
    let before = std::fs::read(yard.top.join(".git/index")).unwrap();
    let [found] = &yard.recover()[..] else {
        panic!("one import was cut off")
    };
    assert_eq!(found.outcome, Outcome::Applied);
    assert!(found.look.as_ref().unwrap().contains("git status"));
    assert_eq!(std::fs::read(yard.top.join(".git/index")).unwrap(), before);
    assert!(yard.top.join(ADDED).exists());
    yard.assert_clear();
}

/// What the recovery of a repository that lies at `top` now makes of a claim that names another place.
fn assert_out_of_place(yard: &Yard, top: &Path) {
    let git = yard.git();
    let held = |name: &str| std::fs::read(top.join(name)).ok();
    let names = [
        CHANGED,
        ADDED,
        ".git/flightproof-import/note",
        ".git/index.lock",
        ".prime-agent-staging-apply/journal",
    ];
    let before = names.map(held);
    assert!(before.iter().all(Option::is_some));
    for _ in 0..2 {
        let host = Host::open(&git, top).unwrap();
        let all = recover_repository(&git, &host, &mut yard.ledger(), NOW_IS_PAST).unwrap();
        let [found] = &all[..] else {
            panic!("one import was cut off")
        };
        assert_eq!(found.outcome, Outcome::Unknown);
        let look = found.look.as_deref().unwrap();
        assert!(look.contains(yard.top.to_str().unwrap()), "{look}");
        assert_eq!(names.map(held), before);
    }
}

#[test]
fn a_repository_that_was_moved_or_copied_after_the_death_is_left_alone() {
    let yard = interrupted();
    // The one it was copied from is there, and is another one.
    let copy = yard.copy();
    assert_out_of_place(&yard, &copy.top);
    let away = yard.temp.path().join("away");
    std::fs::rename(&yard.top, &away).unwrap();
    assert_out_of_place(&yard, &away);
    // Back in its place it is judged.
    std::fs::rename(&away, &yard.top).unwrap();
    let [found] = &yard.recover()[..] else {
        panic!("one import was cut off")
    };
    assert_eq!(found.outcome, Outcome::Interrupted);
    ends_well(&yard, false);
}

#[test]
fn a_linked_tree_that_was_moved_after_the_death_keeps_its_intent_open() {
    let mut yard = Yard::new(&programs()[0]);
    yard.run(&["checkout", "-q", "-b", "aside"]);
    let (main, linked) = (yard.top.clone(), yard.temp.path().join("linked"));
    yard.run(&["worktree", "add", "-q", linked.to_str().unwrap(), "main"]);
    yard.top = linked.clone();
    killed_at(&yard, PREPARED);
    yard.top = main;
    let away = yard.temp.path().join("away");
    std::fs::rename(&linked, &away).unwrap();
    for _ in 0..2 {
        let [found] = &yard.recover()[..] else {
            panic!("one import was cut off")
        };
        assert_eq!(found.outcome, Outcome::Unknown);
        assert_eq!(yard.ledger().open_intents().unwrap().len(), 1);
    }
    std::fs::rename(&away, &linked).unwrap();
    let [found] = &yard.recover()[..] else {
        panic!("one import was cut off")
    };
    assert_eq!(found.outcome, Outcome::Interrupted);
    assert!(!linked.join(ADDED).exists());
    assert!(yard.ledger().open_intents().unwrap().is_empty());
}

#[test]
fn a_tag_with_the_full_name_of_a_branch_does_not_stand_in_for_it() {
    for git in programs() {
        let yard = Yard::new(&git);
        yard.run(&["tag", "refs/heads/main"]);
        yard.run(&["pack-refs", "--all"]);
        // Of the branch itself nothing is different, wherever it lies.
        killed_at(&yard, PREPARED);
        remove_locks_of_the_dead(&yard);
        yard.run(&["update-ref", "-d", "refs/heads/main"]);
        let tag = yard.run(&["rev-parse", "--verify", "-q", "refs/heads/main"]);
        assert_eq!(tag, yard.baseline(), "git's own rules find the tag");
        let [found] = &yard.recover()[..] else {
            panic!("one import was cut off")
        };
        assert_eq!(found.outcome, Outcome::Unknown);
        assert!(yard.top.join(ADDED).exists());
        yard.run(&["update-ref", "refs/heads/main", &yard.baseline()]);
        assert_eq!(yard.recover()[0].outcome, Outcome::Interrupted);
        yard.assert_whole(false);
    }
}

/// The number of our index is another file's now: its birth in the note is not that of the file.
#[test]
fn a_lock_whose_number_was_ours_once_is_somebodys() {
    for born in ["\"born\":\"1\",", ""] {
        let yard = interrupted();
        let note = yard.top.join(".git/flightproof-import/note");
        let text = std::fs::read_to_string(&note).unwrap();
        let (before, rest) = text.split_once("\"born\":").unwrap();
        let (_, after) = rest.split_once(',').unwrap();
        std::fs::write(&note, format!("{before}{born}{after}")).unwrap();
        let lock = yard.top.join(".git/index.lock");
        let held = std::fs::read(&lock).unwrap();
        let [found] = &yard.recover()[..] else {
            panic!("one import was cut off")
        };
        assert_eq!(found.outcome, Outcome::Interrupted);
        assert_eq!(std::fs::read(&lock).unwrap(), held);
        assert_eq!(found.look.is_some(), born.is_empty(), "{:?}", found.look);
        std::fs::remove_file(&lock).unwrap();
        ends_well(&yard, false);
    }
}
