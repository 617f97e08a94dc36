//! A commit lands where somebody works: files, branch and index, all of them or none, and nothing of
//! theirs is lost.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

#[path = "../scene/mod.rs"]
mod scene;

mod deaths;
mod races;
mod refusals;
mod sweep;
mod yard;

use flightproof_importer::{Clearance, Git, Host, Receipt, admit};
use scene::{NOW_IS_PAST, fake_git, programs, run_git};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use yard::{ADDED, CHANGED, DELETED, MODE, UNTOUCHED, Yard, change, executable, write};

#[test]
fn files_branch_and_index_move_together_and_a_receipt_says_so() {
    for git in programs() {
        let yard = Yard::new(&git);
        let admitted = yard.land().unwrap();
        assert!(admitted.landed && !admitted.repeated && admitted.kept.is_empty());
        yard.assert_whole(true);
        let text = |path| std::fs::read_to_string(yard.top.join(path)).unwrap();
        assert_eq!(text(CHANGED), "pub fn a() -> u8 { 2 }\n");
        assert_eq!(text(ADDED), "pub fn new() {}\n");
        let mode = |path| std::fs::metadata(yard.top.join(path)).unwrap().mode() & 0o777;
        assert_eq!((mode(MODE), mode(CHANGED)), (0o755, 0o644));
        assert!(!yard.top.join(DELETED).exists());
        let receipt: Receipt = serde_json::from_slice(&admitted.receipt).unwrap();
        assert_eq!(receipt.head.to_string(), yard.head());
        yard.run(&["fsck", "--strict"]);
        assert!(
            yard.run(&["reflog", "-1"])
                .contains("flightproof: certificate")
        );
        // The same again does nothing and says the same.
        let again = yard.land().unwrap();
        assert!(again.repeated);
        assert_eq!(again.receipt, admitted.receipt);
        yard.assert_whole(true);
        // Whoever works there goes on as ever.
        write(&yard.top, CHANGED, "mine\n");
        yard.run(&["commit", "-qam", "next"]);
        yard.run(&["checkout", "-q", "HEAD~1"]);
    }
}

#[test]
fn what_is_not_touched_stays_edited_untracked_and_ignored() {
    for git in programs() {
        let yard = Yard::new(&git);
        let mine = [
            (UNTOUCHED, "edited and not committed\n"),
            ("src/notes.txt", "untracked\n"),
            (".env", "ignored\n"),
            ("target/debug/x", "ignored\n"),
            ("old/mine.txt", "beside a file that goes\n"),
        ];
        mine.iter()
            .for_each(|(path, text)| write(&yard.top, path, text));
        yard.land().unwrap();
        for (path, text) in mine {
            assert_eq!(std::fs::read_to_string(yard.top.join(path)).unwrap(), text);
        }
        assert_eq!(
            yard.run(&["status", "--porcelain"]),
            "M src/other.rs\n?? old/\n?? src/notes.txt"
        );
        yard.assert_clear();
    }
}

#[test]
fn an_uncertified_commit_lands_and_its_receipt_names_no_certificate() {
    let yard = Yard::new(&programs()[0]);
    let clearance = Clearance::uncertified(&yard.capture.checked, "main").unwrap();
    let git = yard.git();
    let host = Host::open(&git, &yard.top).unwrap();
    let admitted = admit(&git, &host, &mut yard.ledger(), &clearance, NOW_IS_PAST).unwrap();
    let receipt: Receipt = serde_json::from_slice(&admitted.receipt).unwrap();
    assert_eq!(receipt.certificate, None);
    assert!(
        !String::from_utf8(admitted.receipt)
            .unwrap()
            .contains("certificate")
    );
    assert!(
        yard.run(&["reflog", "-1"])
            .contains("flightproof: uncertified")
    );
    yard.assert_whole(true);
}

#[test]
fn a_linked_working_tree_is_one_like_any_other() {
    for git in programs() {
        let yard = Yard::new(&git);
        yard.run(&["checkout", "-q", "-b", "aside"]);
        let linked = yard.temp.path().join("linked");
        let place = linked.to_str().unwrap();
        yard.run(&["worktree", "add", "-q", place, "main"]);
        let before = std::fs::read(yard.top.join(CHANGED)).unwrap();
        // From the main one the branch is out of reach.
        let refused = yard.land().unwrap_err();
        assert_eq!(refused.code(), "importer/BRANCH_CHECKED_OUT");
        yard.land_in(&linked, &yard.git()).unwrap();
        assert_eq!(run_git(&git, &linked, &["status", "--porcelain"]), "");
        assert_eq!(run_git(&git, &linked, &["rev-parse", "HEAD"]), yard.head());
        assert!(linked.join(ADDED).exists());
        assert_eq!(std::fs::read(yard.top.join(CHANGED)).unwrap(), before);
        assert_eq!(yard.run(&["status", "--porcelain"]), "");
    }
}

#[test]
fn a_branch_that_no_tree_is_on_moves_and_no_file_does() {
    for git in programs() {
        let yard = Yard::new(&git);
        yard.run(&["checkout", "-q", "-b", "aside"]);
        yard.land().unwrap();
        assert_eq!(yard.tip(), yard.head());
        assert_eq!(yard.run(&["status", "--porcelain"]), "");
        assert!(!yard.top.join(ADDED).exists());
        let bare = Yard::new(&git);
        let place = bare.temp.path().join("bare.git");
        let (from, to) = (bare.top.to_str().unwrap(), place.to_str().unwrap());
        run_git(&git, bare.temp.path(), &["clone", "-q", "--bare", from, to]);
        bare.land_in(&place, &bare.git()).unwrap();
        assert_eq!(run_git(&git, &place, &["rev-parse", "main"]), bare.head());
    }
}

#[test]
fn a_working_tree_of_a_bare_repository_moves_along() {
    for git in programs() {
        let yard = Yard::new(&git);
        let place = yard.temp.path().join("bare.git");
        let tree = yard.temp.path().join("tree");
        let (from, to) = (yard.top.to_str().unwrap(), place.to_str().unwrap());
        run_git(&git, yard.temp.path(), &["clone", "-q", "--bare", from, to]);
        run_git(
            &git,
            &place,
            &["worktree", "add", "-q", tree.to_str().unwrap(), "main"],
        );
        let refused = yard.land_in(&place, &yard.git()).unwrap_err();
        assert_eq!(refused.code(), "importer/BRANCH_CHECKED_OUT");
        yard.land_in(&tree, &yard.git()).unwrap();
        assert_eq!(run_git(&git, &tree, &["rev-parse", "HEAD"]), yard.head());
        assert_eq!(run_git(&git, &tree, &["status", "--porcelain"]), "");
        assert!(tree.join(ADDED).exists());
    }
}

#[test]
fn indexes_of_every_form_people_have_are_kept_in_it() {
    for git in programs() {
        for words in [
            &["update-index", "--index-version=4"][..],
            &["update-index", "--index-version=2"],
            &["update-index", "--untracked-cache"],
            &["update-index", "--assume-unchanged", UNTOUCHED],
            &["update-index", "--skip-worktree", UNTOUCHED],
            &["config", "index.skipHash", "true"],
            &["status"],
            &["write-tree"],
        ] {
            let yard = Yard::new(&git);
            yard.run(words);
            yard.land().unwrap_or_else(|e| panic!("{words:?}: {e}"));
            yard.assert_whole(true);
            let flags = yard.run(&["ls-files", "-v", UNTOUCHED]);
            let expected = match words.get(1) {
                Some(&"--assume-unchanged") => "h ",
                Some(&"--skip-worktree") => "S ",
                _ => "H ",
            };
            assert!(flags.starts_with(expected), "{flags}");
        }
    }
}

#[test]
fn attributes_that_change_no_byte_are_no_obstacle() {
    for git in programs() {
        for attributes in [
            "* text=auto\n",
            "* text\n",
            "*.rs text eol=lf\n",
            "*.png binary\n* -text\n",
            "docs/** filter=lfs\n",
        ] {
            let lay = |top: &Path| write(top, ".gitattributes", attributes);
            let yard = Yard::with(&git, lay, change);
            yard.land().unwrap_or_else(|e| panic!("{attributes}: {e}"));
            yard.assert_whole(true);
        }
        let ours = |top: &Path| {
            change(top);
            write(top, ".gitattributes", "*.png binary\n");
        };
        let yard = Yard::with(&git, |_| {}, ours);
        yard.land().unwrap();
        yard.assert_whole(true);
    }
}

#[test]
fn as_many_and_as_long_paths_as_a_commit_may_have_land() {
    let lay = |top: &Path| write(top, ".gitattributes", "*.png -diff\n");
    let yard = Yard::with(&programs()[0], lay, |top| {
        let folder = format!("d/{}", "x".repeat(254));
        for number in 0..1_024 {
            write(top, &format!("{folder}/{number:0255}"), "same\n");
        }
    });
    let longest = yard.capture.checked.changes().iter();
    assert_eq!(
        longest.map(|change| change.path.as_str().len()).max(),
        Some(512)
    );
    yard.land().unwrap();
    assert_eq!(yard.tip(), yard.head());
    assert_eq!(yard.run(&["status", "--porcelain"]), "");
}

#[test]
fn submodules_and_links_of_the_baseline_stay_as_they_are() {
    for git in programs() {
        let lay = |top: &Path| {
            let inner = top.join("sub");
            std::fs::create_dir(&inner).unwrap();
            run_git(&git, &inner, &["init", "-q"]);
            write(&inner, "x", "x\n");
            run_git(&git, &inner, &["add", "x"]);
            run_git(&git, &inner, &["commit", "-q", "-m", "x"]);
            std::os::unix::fs::symlink("src/lib.rs", top.join("link")).unwrap();
        };
        let yard = Yard::with(&git, lay, change);
        yard.land().unwrap();
        yard.assert_whole(true);
        assert!(yard.top.join("sub/x").exists());
        assert!(std::fs::read_link(yard.top.join("link")).is_ok());
    }
}

#[test]
fn nothing_the_repository_names_is_run() {
    for git in programs() {
        let yard = Yard::with(
            &git,
            |top| write(top, ".gitattributes", "other/* filter=evil\n"),
            change,
        );
        let canary = yard.temp.path().join("canary");
        let script = yard.temp.path().join("evil");
        let text = format!("#!/bin/sh\necho \"$0\" >>{}\nexit 1\n", canary.display());
        std::fs::write(&script, text).unwrap();
        executable(&script);
        let evil = script.to_str().unwrap();
        for event in [
            "reference-transaction",
            "post-index-change",
            "post-checkout",
            "post-merge",
            "pre-commit",
            "update",
        ] {
            let hook = yard.top.join(".git/hooks").join(event);
            std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
            std::fs::copy(&script, hook).unwrap();
        }
        for key in [
            "core.fsmonitor",
            "core.alternateRefsCommand",
            "filter.evil.clean",
            "filter.evil.smudge",
            "diff.external",
            "core.pager",
            "core.editor",
            "gpg.program",
            "credential.helper",
        ] {
            run_git(&git, &yard.top, &["config", key, evil]);
        }
        yard.land().unwrap();
        assert!(
            !canary.exists(),
            "{}",
            std::fs::read_to_string(&canary).unwrap()
        );
        // The control: an ordinary git runs some of them.
        let _ = std::process::Command::new(&git)
            .args(["status"])
            .current_dir(&yard.top)
            .output();
        assert!(canary.exists());
    }
}

/// A git that says when it was asked for `verb`, and goes on when it is told.
fn paused(yard: &Yard, verb: &str) -> Git {
    let here = yard.temp.path().display();
    let program = yard.program.display();
    let script = format!(
        "for w; do case $w in {verb}) : >{here}/asked; \
         while [ ! -e {here}/go ]; do sleep 0.01; done;; esac; done; exec {program} \"$@\""
    );
    Git::at(&fake_git(yard.temp.path(), &script)).unwrap()
}

/// Does something to the yard while an import waits before `verb`.
fn meanwhile<T>(
    yard: &Yard,
    verb: &str,
    act: impl FnOnce() -> T,
) -> (
    Result<flightproof_importer::Admitted, flightproof_core::Refusal>,
    T,
) {
    let git = paused(yard, verb);
    std::thread::scope(|scope| {
        let landing = scope.spawn(|| yard.land_in(&yard.top, &git));
        let asked = yard.temp.path().join("asked");
        while !asked.exists() {
            assert!(!landing.is_finished(), "it ended before git was asked");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let done = act();
        std::fs::write(yard.temp.path().join("go"), "").unwrap();
        (landing.join().unwrap(), done)
    })
}

#[test]
fn an_edit_between_check_and_exchange_stays_and_nothing_lands() {
    for (path, text) in [(CHANGED, "mine\n"), (ADDED, "mine\n"), (DELETED, "mine\n")] {
        let yard = Yard::new(&programs()[0]);
        let (landed, ()) = meanwhile(&yard, "update-ref", || write(&yard.top, path, text));
        assert_eq!(
            landed.unwrap_err().code(),
            "importer/SOURCE_CHANGED",
            "{path}"
        );
        assert_eq!(std::fs::read_to_string(yard.top.join(path)).unwrap(), text);
        assert_eq!(yard.tip(), yard.baseline());
        yard.assert_clear();
        assert!(yard.recover().is_empty());
        // Put back as it was, it lands.
        yard.run(&["checkout", "-q", "--", "."]);
        yard.run(&["clean", "-qfd"]);
        yard.land().unwrap();
        yard.assert_whole(true);
    }
}

#[test]
fn nobody_commits_or_stages_while_it_lands() {
    let yard = Yard::new(&programs()[0]);
    write(&yard.top, UNTOUCHED, "mine\n");
    let try_git = |words: &[&str]| {
        let mut git = std::process::Command::new(&yard.program);
        git.args(["-c", "user.name=T", "-c", "user.email=t@x.org"]);
        git.args(words)
            .current_dir(&yard.top)
            .output()
            .unwrap()
            .status
            .success()
    };
    let (landed, tried) = meanwhile(&yard, "update-ref", || {
        [
            try_git(&["add", UNTOUCHED]),
            try_git(&["commit", "-qam", "mine"]),
            try_git(&["checkout", "-q", "-b", "aside"]),
        ]
    });
    landed.unwrap();
    // A switch to a new branch at the same commit writes no index in some versions.
    assert_eq!(tried[..2], [false, false]);
    assert_eq!(yard.tip(), yard.head());
    assert_eq!(yard.run(&["status", "--porcelain"]), "M src/other.rs");
}

#[test]
fn a_branch_that_moves_meanwhile_is_left_where_it_went() {
    let yard = Yard::new(&programs()[0]);
    let tree = yard.run(&["rev-parse", "HEAD^{tree}"]);
    let other = yard.run(&["commit-tree", "-m", "theirs", "-p", "HEAD", &tree]);
    let (landed, _) = meanwhile(&yard, "update-ref", || {
        yard.run(&["update-ref", "refs/heads/main", &other])
    });
    assert_eq!(landed.unwrap_err().code(), "importer/BRANCH_MOVED");
    assert_eq!(yard.tip(), other);
    assert_eq!(yard.run(&["status", "--porcelain"]), "");
    yard.assert_clear();
    assert!(yard.recover().is_empty());
}

#[test]
fn a_lease_that_is_lost_on_the_way_takes_everything_back() {
    let yard = Yard::new(&programs()[0]);
    let (name, owner) = ("import:x".parse().unwrap(), "one".parse().unwrap());
    let lease = yard.ledger().lease(&name, &owner, NOW_IS_PAST, 1).unwrap();
    let git = paused(&yard, "update-ref");
    let clearance = yard.clearance().under(lease);
    let landed = std::thread::scope(|scope| {
        let landing = scope.spawn(|| {
            let host = Host::open(&git, &yard.top).unwrap();
            admit(&git, &host, &mut yard.ledger(), &clearance, NOW_IS_PAST)
        });
        while !yard.temp.path().join("asked").exists() {
            assert!(!landing.is_finished());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let other = "other".parse().unwrap();
        let mut ledger = yard.ledger();
        ledger.lease(&name, &other, NOW_IS_PAST + 100, 60).unwrap();
        std::fs::write(yard.temp.path().join("go"), "").unwrap();
        landing.join().unwrap()
    });
    assert_eq!(landed.unwrap_err().code(), "ledger/LEASE_LOST");
    yard.assert_whole(false);
    assert!(yard.recover().is_empty());
    // A lease that is lost before anything began.
    let stale = yard
        .ledger()
        .lease(&name, &owner, NOW_IS_PAST + 1_000, 1)
        .unwrap();
    yard.ledger()
        .lease(&name, &"other".parse().unwrap(), NOW_IS_PAST + 2_000, 1)
        .unwrap();
    let git = yard.git();
    let host = Host::open(&git, &yard.top).unwrap();
    let clearance = yard.clearance().under(stale);
    let refused = admit(&git, &host, &mut yard.ledger(), &clearance, NOW_IS_PAST).unwrap_err();
    assert_eq!(refused.code(), "ledger/LEASE_LOST");
    yard.assert_whole(false);
}
