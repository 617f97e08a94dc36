//! One compare-and-swap, its journal, and what a later run makes of an interrupted one.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;

use flightproof_core::Digest;
use flightproof_evidence::Closed;
use flightproof_hostile::git::{Answer, Change, HostLie, Plan, attacks};
use flightproof_importer::{
    Admitted, Clearance, Git, Host, ImporterCode, Outcome, Receipt, admit, recover,
};
use flightproof_ledger::Ledger;
use scene::{CLEAN, NOW, Scene, fake_git, git, gits, real_git};
use std::os::unix::fs::symlink;

fn admit_now(scene: &Scene, git: &Git, clearance: &Clearance) -> Result<Admitted, String> {
    admit_into(scene, &mut scene.ledger(), git, clearance)
}

fn admit_into(
    scene: &Scene,
    ledger: &mut Ledger,
    git: &Git,
    clearance: &Clearance,
) -> Result<Admitted, String> {
    let host = Host::open(git, &scene.top).map_err(|e| e.to_string())?;
    admit(git, &host, ledger, clearance, NOW).map_err(|e| e.code().to_owned())
}

fn refused(code: &str) -> Result<Admitted, String> {
    Err(code.to_owned())
}

#[test]
fn a_cleared_commit_moves_the_branch_once_and_the_receipt_says_so() {
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        let clearance = scene.clearance(&git);
        let admitted = admit_now(&scene, &git, &clearance).unwrap();
        assert!(!admitted.repeated);
        assert_eq!(scene.tip("main"), scene.head());
        let receipt: Receipt = serde_json::from_slice(&admitted.receipt).unwrap();
        assert_eq!(receipt.head.to_string(), scene.head());
        assert_eq!(receipt.certificate, Some(Digest::of(b"certificate")));
        assert!(!receipt.recovered && receipt.written_at == NOW);
        let again = admit_now(&scene, &git, &clearance).unwrap();
        assert!(again.repeated);
        assert_eq!(again.receipt, admitted.receipt);
        assert_eq!(
            admit_now(&scene, &git, &scene.clearance_for(&git, "main", b"another")),
            refused("ledger/REQUEST_DIFFERS")
        );
        assert!(!scene.git_dir().join("refs/heads/main.lock").exists());
    }
}

#[test]
fn a_receipt_is_no_answer_where_the_branch_is_not_at_the_commit() {
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        let clearance = scene.clearance(&git);
        let admitted = admit_now(&scene, &git, &clearance).unwrap();
        let place = "refs/heads/main";
        for act in [
            &["update-ref", place, &scene.baseline()][..],
            &["update-ref", "-d", place],
        ] {
            scene.plain_git(act);
            assert_eq!(
                admit_now(&scene, &git, &clearance),
                refused("importer/ADMITTED_BEFORE")
            );
        }
        scene.plain_git(&["update-ref", place, &scene.head()]);
        let again = admit_now(&scene, &git, &clearance).unwrap();
        assert!(again.repeated && again.receipt == admitted.receipt);
    }
}

/// A repository with the baseline of an honest plan and without its candidate.
fn elsewhere() -> Scene {
    Scene::new(&Plan {
        change: Change::Many(1),
        ..Plan::HONEST
    })
}

#[test]
fn a_commit_comes_home_in_a_bundle_to_a_repository_that_never_saw_it() {
    for git in gits() {
        let (from, to) = (Scene::new(&Plan::HONEST), elsewhere());
        let taken = from.capture(&git).unwrap();
        let certificate = Digest::of(b"certificate");
        let clearance = Clearance::new(&CLEAN, certificate, &taken.captured, "main").unwrap();
        // Alone the clearance is worth nothing here.
        assert_eq!(
            admit_now(&to, &git, &clearance),
            refused("importer/OBJECT_MISSING")
        );
        assert_eq!(to.tip("main"), to.baseline());
        let carrying = clearance.carrying(&taken.checked).unwrap();
        assert!(!admit_now(&to, &git, &carrying).unwrap().repeated);
        assert_eq!(to.tip("main"), from.head());
        assert_eq!(
            to.plain_git(&["show", "main:src/lib.rs"]),
            "pub fn a() -> u8 { 2 }"
        );
        to.plain_git(&["rev-list", "--objects", "main", "--not", &to.baseline()]);
    }
}

#[test]
fn a_clearance_carries_only_the_commit_it_was_given_for() {
    let git = git();
    let scene = Scene::new(&Plan::HONEST);
    let other = elsewhere().capture(&git).unwrap();
    let refused = scene.clearance(&git).carrying(&other.checked).unwrap_err();
    assert_eq!(refused.code, ImporterCode::NotOnBaseline);
}

#[test]
fn an_object_swapped_after_the_capture_stops_the_admission() {
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        let clearance = scene.clearance(&git);
        // The repository of the lie holds the same objects, but for the bytes of one.
        let lying = Scene::new(&Plan {
            lie: HostLie::SwappedLoose,
            ..Plan::HONEST
        });
        assert_eq!(lying.head(), scene.head());
        assert_eq!(
            admit_now(&lying, &git, &clearance),
            refused("importer/OBJECT_HASH_MISMATCH")
        );
        assert_eq!(lying.tip("main"), lying.baseline());
        assert!(recover(&git, &mut lying.ledger(), NOW).unwrap().is_empty());
        assert!(!admit_now(&scene, &git, &clearance).unwrap().repeated);
    }
}

#[test]
fn what_is_admitted_lies_in_a_pack_of_our_own_on_disk() {
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        let packs = || {
            let files = std::fs::read_dir(scene.git_dir().join("objects/pack")).unwrap();
            files
                .map(|file| file.unwrap().path())
                .filter(|file| file.extension().is_some_and(|e| e == "pack"))
                .collect::<Vec<_>>()
        };
        assert_eq!(packs().len(), 0);
        admit_now(&scene, &git, &scene.clearance(&git)).unwrap();
        let [pack] = &packs()[..] else {
            panic!("{:?}", packs())
        };
        let checked = scene.capture(&git).unwrap().checked;
        assert_eq!(std::fs::read(pack).unwrap(), checked.pack().unwrap());
    }
}

#[test]
fn a_git_that_refuses_the_pack_moves_nothing_and_leaves_no_intent() {
    let scene = Scene::new(&Plan::HONEST);
    let clearance = scene.clearance(&git());
    for (act, code) in [
        ("cat >/dev/null; exit 1", "importer/SECOND_OPINION"),
        ("kill -9 $$", "importer/GIT_FAILED"),
    ] {
        let script = format!(
            "for w; do case $w in index-pack) {act};; esac; done; exec {} \"$@\"",
            real_git()
        );
        let faulty = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
        assert_eq!(admit_now(&scene, &faulty, &clearance), refused(code));
        assert_eq!(scene.tip("main"), scene.baseline());
        assert!(
            recover(&git(), &mut scene.ledger(), NOW)
                .unwrap()
                .is_empty()
        );
    }
    assert!(!admit_now(&scene, &git(), &clearance).unwrap().repeated);
}

#[test]
fn a_branch_that_only_lies_in_packed_refs_moves_too() {
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        scene.plain_git(&["pack-refs", "--all"]);
        assert!(!scene.git_dir().join("refs/heads/main").exists());
        admit_now(&scene, &git, &scene.clearance(&git)).unwrap();
        assert_eq!(scene.tip("main"), scene.head());
    }
}

#[test]
fn nothing_of_the_repository_runs_while_the_branch_moves() {
    for git in gits() {
        for attack in attacks() {
            if attack.answer != Answer::Unmoved {
                continue;
            }
            let scene = Scene::new(&attack.plan);
            admit_now(&scene, &git, &scene.clearance(&git))
                .unwrap_or_else(|e| panic!("{}: {e}", attack.name));
            assert_eq!(scene.tip("main"), scene.head(), "{}", attack.name);
            assert!(!scene.canary.exists(), "{}", attack.name);
        }
    }
}

#[test]
fn a_plain_git_would_have_run_the_hook() {
    // The control: the same hook runs when git is called as people call it.
    let scene = Scene::new(&Plan {
        lie: HostLie::Program("hooks/reference-transaction", "#!/bin/sh\ntouch {canary}\n"),
        ..Plan::HONEST
    });
    scene.plain_git(&["update-ref", "refs/heads/main", &scene.head()]);
    assert!(scene.canary.exists());
}

#[test]
fn a_session_that_left_something_clears_nothing() {
    let scene = Scene::new(&Plan::HONEST);
    let captured = scene.capture(&git()).unwrap().captured;
    let certificate = Digest::of(b"c");
    for left in [
        Closed {
            processes: 1,
            ..CLEAN
        },
        Closed {
            cgroups: 1,
            ..CLEAN
        },
        Closed { mounts: 1, ..CLEAN },
        Closed {
            directories: 1,
            ..CLEAN
        },
    ] {
        let refused = Clearance::new(&left, certificate, &captured, "main").unwrap_err();
        assert_eq!(refused.code, ImporterCode::SessionNotClean);
    }
    let refused = Clearance::new(&CLEAN, certificate, &captured, "../main").unwrap_err();
    assert_eq!(refused.code, ImporterCode::BranchName);
    assert!(Clearance::new(&CLEAN, certificate, &captured, "main").is_ok());
}

#[test]
fn a_branch_in_use_is_left_alone() {
    // What `git rebase --update-refs` keeps, of more branches than people stack.
    let ids = format!("{0}\n{0}\n", "1".repeat(40));
    let stacked: String = (0..100)
        .map(|n| format!("refs/heads/stacked-{n}\n{ids}"))
        .collect();
    let stacked = format!("{stacked}refs/heads/main\n{ids}");
    for git in gits() {
        for (file, content) in [
            // In the tree that was named itself the files move along: tests/landing.
            ("worktrees/x/HEAD", "ref: refs/heads/main\n"),
            ("rebase-merge/head-name", "refs/heads/main\n"),
            ("worktrees/x/rebase-apply/head-name", "refs/heads/main\n"),
            ("BISECT_START", "main\n"),
            ("worktrees/x/rebase-merge/update-refs", &stacked),
        ] {
            let scene = Scene::new(&Plan::HONEST);
            let clearance = scene.clearance(&git);
            let file = scene.git_dir().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, content).unwrap();
            assert_eq!(
                admit_now(&scene, &git, &clearance),
                refused("importer/BRANCH_CHECKED_OUT"),
                "{file:?}"
            );
            assert_eq!(scene.tip("main"), scene.baseline());
            assert!(scene.ledger().open_intents().unwrap().is_empty());
            std::fs::write(&file, content.replace("main", "mainly")).unwrap();
            admit_now(&scene, &git, &clearance).unwrap();
        }
    }
}

#[test]
fn a_branch_elsewhere_missing_symbolic_or_linked_is_left_alone() {
    let git = git();
    let scene = Scene::new(&Plan::HONEST);
    let clearance = |branch| scene.clearance_for(&git, branch, b"c");
    assert_eq!(
        admit_now(&scene, &git, &clearance("work")),
        refused("importer/BRANCH_MOVED")
    );
    assert_eq!(
        admit_now(&scene, &git, &clearance("none")),
        refused("importer/BRANCH_MISSING")
    );
    let heads = scene.git_dir().join("refs/heads");
    std::fs::write(heads.join("pointer"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(
        admit_now(&scene, &git, &clearance("pointer")),
        refused("importer/BRANCH_UNFIT")
    );
    symlink("main", heads.join("link")).unwrap();
    assert_eq!(
        admit_now(&scene, &git, &clearance("link")),
        refused("importer/BRANCH_UNFIT")
    );
    let outside = scene.temp.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("x"), format!("{}\n", scene.baseline())).unwrap();
    symlink(&outside, heads.join("topic")).unwrap();
    assert_eq!(
        admit_now(&scene, &git, &clearance("topic/x")),
        refused("importer/BRANCH_UNFIT")
    );
    for branch in ["main", "elsewhere"] {
        assert_eq!(scene.tip(branch), scene.baseline());
    }
    assert!(scene.ledger().open_intents().unwrap().is_empty());
}

fn pipe(place: &std::path::Path) {
    let (at, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(at, place, kind, rustix::fs::Mode::RUSR, 0).unwrap();
}

/// Git follows links where it writes: a log or a pack would come to lie wherever they point.
#[test]
fn nothing_is_written_through_a_link_in_the_git_folder() {
    let git = git();
    type Act<'a> = &'a dyn Fn(&std::path::Path, &std::path::Path);
    let folder = |place: &std::path::Path, outside: &std::path::Path| {
        let _ = std::fs::rename(place, place.with_extension("away"));
        symlink(outside, place).unwrap();
    };
    let file = |place: &std::path::Path, outside: &std::path::Path| {
        let _ = std::fs::remove_file(place);
        symlink(outside.join("file"), place).unwrap();
    };
    let second = |place: &std::path::Path, outside: &std::path::Path| {
        let _ = std::fs::remove_file(place);
        std::fs::hard_link(outside.join("file"), place).unwrap();
    };
    let fifo = |place: &std::path::Path, _: &std::path::Path| {
        let _ = std::fs::remove_file(place);
        pipe(place);
    };
    let acts: [(&str, Act<'_>); 9] = [
        ("logs", &folder),
        ("logs/refs", &folder),
        ("logs/refs/heads", &folder),
        ("logs/refs/heads/main", &file),
        ("logs/refs/heads/main", &second),
        ("logs/refs/heads/main", &fifo),
        ("logs/HEAD", &file),
        ("objects/pack", &folder),
        ("objects", &folder),
    ];
    for (place, act) in acts {
        let scene = Scene::new(&Plan::HONEST);
        let clearance = scene.clearance(&git);
        let outside = scene.temp.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), "mine").unwrap();
        let place = scene.git_dir().join(place);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        if place.ends_with("objects") {
            // Everything is there, and elsewhere.
            std::fs::rename(&place, outside.join("objects")).unwrap();
            symlink(outside.join("objects"), &place).unwrap();
        } else {
            act(&place, &outside);
        }
        let before = std::fs::read_dir(&outside).unwrap().count();
        assert_eq!(
            admit_now(&scene, &git, &clearance),
            refused("importer/HOST_UNSUPPORTED"),
            "{place:?}"
        );
        assert_eq!(std::fs::read(outside.join("file")).unwrap(), b"mine");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), before);
        assert_eq!(scene.tip("main"), scene.baseline(), "{place:?}");
    }
}

#[test]
fn a_pipe_in_place_of_a_file_that_git_reads_is_not_waited_for() {
    let git = git();
    for part in [
        "config",
        "packed-refs",
        "objects/info/alternates",
        "shallow",
    ] {
        let scene = Scene::new(&Plan::HONEST);
        let place = scene.git_dir().join(part);
        let _ = std::fs::remove_file(&place);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        pipe(&place);
        let refused = Host::open(&git, &scene.top).unwrap_err();
        assert_eq!(refused.code, ImporterCode::HostUnsupported, "{refused}");
        assert!(refused.to_string().contains("is no file"), "{refused}");
    }
}

#[test]
fn another_gits_lock_is_respected_and_the_commit_may_be_asked_in_again() {
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        let clearance = scene.clearance(&git);
        let lock = scene.git_dir().join("refs/heads/main.lock");
        std::fs::write(&lock, "").unwrap();
        assert_eq!(
            admit_now(&scene, &git, &clearance),
            refused("importer/BRANCH_LOCKED")
        );
        assert!(lock.exists());
        assert!(scene.ledger().open_intents().unwrap().is_empty());
        std::fs::remove_file(lock).unwrap();
        admit_now(&scene, &git, &clearance).unwrap();
        assert_eq!(scene.tip("main"), scene.head());
    }
}

#[test]
fn a_branch_that_moves_at_the_last_moment_wins() {
    let scene = Scene::new(&Plan::HONEST);
    let real = real_git();
    // Somebody else moves the branch after everything was checked and the intent written.
    let parent = scene.plain_git(&["rev-parse", "main~1"]);
    let script = format!(
        "for w; do case $w in update-ref) echo {parent} >{}/refs/heads/main;; esac; done; exec {real} \"$@\"",
        scene.git_dir().display()
    );
    let git = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
    let clearance = scene.clearance(&git);
    assert_eq!(
        admit_now(&scene, &git, &clearance),
        refused("importer/BRANCH_MOVED")
    );
    assert_eq!(scene.tip("main"), parent);
    assert!(scene.ledger().open_intents().unwrap().is_empty());
}

#[test]
fn a_branch_checked_out_at_the_last_moment_is_left_alone() {
    let scene = Scene::new(&Plan::HONEST);
    let script = format!(
        "for w; do case $w in update-ref) echo 'ref: refs/heads/main' >{}/HEAD;; esac; done; exec {} \"$@\"",
        scene.git_dir().display(),
        real_git()
    );
    let git = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
    let clearance = scene.clearance(&git);
    assert_eq!(
        admit_now(&scene, &git, &clearance),
        refused("importer/BRANCH_CHECKED_OUT")
    );
    assert_eq!(scene.tip("main"), scene.baseline());
    assert!(!scene.git_dir().join("refs/heads/main.lock").exists());
    assert!(scene.ledger().open_intents().unwrap().is_empty());
}

#[test]
fn an_answer_that_never_came_is_uncertain_until_the_branch_is_read() {
    let scene = Scene::new(&Plan::HONEST);
    // Git moves the branch and dies before it says so.
    let script = format!(
        "for w; do case $w in update-ref) {} \"$@\" | head -n 2; kill -9 $$;; esac; done; exec {} \"$@\"",
        real_git(),
        real_git()
    );
    let git = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
    let clearance = scene.clearance(&git);
    let mut ledger = scene.ledger();
    assert_eq!(
        admit_into(&scene, &mut ledger, &git, &clearance),
        refused("importer/ADMISSION_UNCERTAIN")
    );
    assert_eq!(ledger.open_intents().unwrap().len(), 1);
    assert_eq!(scene.tip("main"), scene.head());
    assert_eq!(
        admit_into(&scene, &mut ledger, &git, &clearance),
        refused("ledger/ADMISSION_OPEN")
    );
    let found = recover(&git, &mut ledger, NOW + 1).unwrap();
    assert_eq!(found[0].outcome, Outcome::Applied);
    let admitted = admit_into(&scene, &mut ledger, &git, &clearance).unwrap();
    assert!(admitted.repeated);
    assert_eq!(Some(&admitted.receipt), found[0].receipt.as_ref());
}

#[test]
fn a_repository_of_another_user_is_not_written() {
    let scene = Scene::new(&Plan::HONEST);
    let git = git();
    let clearance = scene.clearance(&git);
    // Only root can give a folder away; for others the rule is tested inside the crate.
    if std::os::unix::fs::chown(scene.git_dir().join("refs/heads"), Some(1), None).is_ok() {
        assert_eq!(
            admit_now(&scene, &git, &clearance),
            refused("importer/HOST_FOREIGN")
        );
        assert_eq!(scene.tip("main"), scene.baseline());
    } else {
        admit_now(&scene, &git, &clearance).unwrap();
        assert_eq!(scene.tip("main"), scene.head());
    }
}

#[test]
fn configured_hooks_stop_only_the_git_that_would_run_them() {
    let hooked = Plan {
        lie: HostLie::Config(
            "[hook \"x\"]\n\tcommand = touch {canary}\n\tevent = reference-transaction\n",
        ),
        ..Plan::HONEST
    };
    let script = format!(
        "for w; do case $w in version) echo git version 2.54.1; exit;; esac; done; exec {} \"$@\"",
        real_git()
    );
    for (plan, wanted) in [
        (hooked, Err("importer/HOST_HOOKS".to_owned())),
        (Plan::HONEST, Ok(())),
    ] {
        let scene = Scene::new(&plan);
        let git = Git::at(&fake_git(scene.temp.path(), &script)).unwrap();
        assert_eq!(
            admit_now(&scene, &git, &scene.clearance(&git)).map(drop),
            wanted
        );
    }
}

/// Leaves an open intent behind, as a run does that dies right after it.
fn intent(git: &Git, scene: &Scene) -> flightproof_ledger::AdmissionKey {
    flightproof_ledger::AdmissionKey {
        repository: Host::open(git, &scene.top).unwrap().name().to_owned(),
        branch: "refs/heads/main".into(),
        baseline: scene.baseline().parse().unwrap(),
        head: scene.head().parse().unwrap(),
    }
}

fn interrupted(git: &Git) -> (Scene, Ledger) {
    let scene = Scene::new(&Plan::HONEST);
    let key = intent(git, &scene);
    let mut ledger = scene.ledger();
    ledger
        .intend(&key, Digest::of(b"certificate"), NOW)
        .unwrap();
    (scene, ledger)
}

#[test]
fn recovery_says_what_the_branch_says_and_a_second_one_finds_nothing() {
    for git in gits() {
        for (place, outcome) in [
            ("baseline", Outcome::NotApplied),
            ("head", Outcome::Applied),
            ("beyond", Outcome::AppliedThenMoved),
            ("parent", Outcome::Superseded),
            ("gone", Outcome::Unknown),
        ] {
            let (scene, mut ledger) = interrupted(&git);
            let file = scene.git_dir().join("refs/heads/main");
            let parent = scene.plain_git(&["rev-parse", "main~1"]);
            let tree = format!("{}^{{tree}}", scene.head());
            let beyond =
                scene.plain_git(&["commit-tree", &tree, "-p", &scene.head(), "-m", "next"]);
            match place {
                "head" => std::fs::write(&file, scene.head()).unwrap(),
                "beyond" => std::fs::write(&file, &beyond).unwrap(),
                "parent" => std::fs::write(&file, parent).unwrap(),
                "gone" => std::fs::remove_file(&file).unwrap(),
                _ => {}
            }
            let before = std::fs::read(&file).ok();
            let found = recover(&git, &mut ledger, NOW + 5).unwrap();
            assert_eq!((found.len(), found[0].outcome), (1, outcome), "{place}");
            let receipt = found[0]
                .receipt
                .as_ref()
                .map(|r| serde_json::from_slice::<Receipt>(r).unwrap());
            assert_eq!(
                receipt.is_some(),
                matches!(outcome, Outcome::Applied | Outcome::AppliedThenMoved)
            );
            if let Some(receipt) = receipt {
                assert!(receipt.recovered);
                let moved_on = receipt.moved_on_to.map(|id| id.to_string());
                assert_eq!(moved_on, (place == "beyond").then(|| beyond.clone()));
            }
            assert_eq!(
                std::fs::read(&file).ok(),
                before,
                "{place}: the branch was only read"
            );
            assert!(recover(&git, &mut ledger, NOW + 6).unwrap().is_empty());
        }
    }
}

#[test]
fn lies_about_history_do_not_change_what_recovery_sees() {
    let git = git();
    let (scene, mut ledger) = interrupted(&git);
    // The branch went to a commit beside the head; a graft, a replacement and a shallow file say
    // that it descends from the head.
    let tree = format!("{}^{{tree}}", scene.head());
    let beside = scene.plain_git(&[
        "commit-tree",
        &tree,
        "-p",
        &scene.baseline(),
        "-m",
        "beside",
    ]);
    let liar = scene.plain_git(&["commit-tree", &tree, "-p", &scene.head(), "-m", "beside"]);
    let dir = scene.git_dir();
    std::fs::write(
        dir.join("info/grafts"),
        format!("{beside} {}\n", scene.head()),
    )
    .unwrap();
    std::fs::create_dir_all(dir.join("refs/replace")).unwrap();
    std::fs::write(dir.join("refs/replace").join(&beside), &liar).unwrap();
    std::fs::write(dir.join("refs/heads/main"), &beside).unwrap();
    assert_eq!(
        recover(&git, &mut ledger, NOW).unwrap()[0].outcome,
        Outcome::Superseded
    );
}

#[test]
fn a_repository_that_cannot_be_judged_keeps_no_other_from_it() {
    let git = git();
    let (unfit, mut ledger) = interrupted(&git);
    let well = Scene::new(&Plan::HONEST);
    let key = intent(&git, &well);
    ledger
        .intend(&key, Digest::of(b"certificate"), NOW)
        .unwrap();
    // Its claim cannot be read, so nobody can say what it was about.
    let claim = unfit.git_dir().join("flightproof-import");
    std::fs::create_dir(&claim).unwrap();
    std::fs::write(claim.join("note"), "{}").unwrap();
    let outcomes = |ledger: &mut Ledger| {
        let found = recover(&git, ledger, NOW).unwrap();
        let told = found.iter().map(|found| {
            let mine = found.key.repository == key.repository;
            (mine, found.outcome, found.look.clone().unwrap_or_default())
        });
        told.collect::<Vec<_>>()
    };
    let found = outcomes(&mut ledger);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].0, found[0].1), (false, Outcome::Unreachable));
    assert!(found[0].2.contains("IMPORT_UNFINISHED"), "{found:?}");
    assert_eq!((found[1].0, found[1].1), (true, Outcome::NotApplied));
    std::fs::remove_dir_all(&claim).unwrap();
    let found = outcomes(&mut ledger);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0, found[0].1), (false, Outcome::NotApplied));
}

#[test]
fn an_intent_whose_repository_is_another_one_now_is_told_and_stays_open() {
    let git = git();
    let (scene, mut ledger) = interrupted(&git);
    let away = scene.temp.path().join("away");
    std::fs::rename(&scene.top, &away).unwrap();
    symlink(&away, &scene.top).unwrap();
    let found = recover(&git, &mut ledger, NOW).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].outcome, Outcome::Unreachable);
    let look = found[0].look.as_deref().unwrap();
    assert!(
        look.contains("it is now ") && look.contains("away"),
        "{look}"
    );
    std::fs::remove_file(&scene.top).unwrap();
    std::fs::rename(&away, &scene.top).unwrap();
    let found = recover(&git, &mut ledger, NOW).unwrap();
    assert_eq!(found[0].outcome, Outcome::NotApplied);
}

#[test]
fn a_repository_that_cannot_be_reached_keeps_its_intent_open() {
    let git = git();
    let (scene, mut ledger) = interrupted(&git);
    let away = scene.temp.path().join("away");
    std::fs::rename(&scene.top, &away).unwrap();
    let found = recover(&git, &mut ledger, NOW).unwrap();
    assert_eq!(found[0].outcome, Outcome::Unreachable);
    let look = found[0].look.as_deref().unwrap();
    assert!(look.starts_with("importer/NOT_A_REPOSITORY: "), "{look}");
    std::fs::rename(&away, &scene.top).unwrap();
    assert_eq!(
        recover(&git, &mut ledger, NOW).unwrap()[0].outcome,
        Outcome::NotApplied
    );
}
