//! What stands in the way of a commit refuses it, and nothing at all is different afterwards.

use crate::scene::{programs, run_git};
use crate::yard::{ADDED, CHANGED, DELETED, MODE, UNTOUCHED, Yard, change, executable, write};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Refused with this code, with everything as it was, before and after a recovery.
fn assert_refused(yard: &Yard, what: &str, code: &str) {
    let before = yard.state();
    let refused = yard.land().unwrap_err();
    assert_eq!(refused.code(), code, "{what}: {refused}");
    assert_eq!(yard.state(), before, "{what}");
    assert!(yard.recover().is_empty(), "{what}");
    assert_eq!(yard.state(), before, "{what}");
}

type Act = fn(&Yard);

#[test]
fn work_that_is_not_committed_is_never_overwritten() {
    let acts: [(&str, Act); 20] = [
        ("an edit", |y| write(&y.top, CHANGED, "mine\n")),
        ("an edit of a file that goes", |y| {
            write(&y.top, DELETED, "mine\n")
        }),
        ("a removal", |y| {
            std::fs::remove_file(y.top.join(CHANGED)).unwrap()
        }),
        ("a file at an added path", |y| {
            write(&y.top, ADDED, "mine\n")
        }),
        ("an ignored file at an added path", |y| {
            write(&y.top, ".git/info/exclude", "new.rs\n");
            write(&y.top, ADDED, "mine\n");
        }),
        ("a link at an added path", |y| {
            std::fs::create_dir_all(y.top.join("src/deep/er")).unwrap();
            symlink("/etc/passwd", y.top.join(ADDED)).unwrap();
        }),
        ("a folder at an added path", |y| {
            std::fs::create_dir_all(y.top.join(ADDED)).unwrap();
        }),
        ("a pipe at an added path", |y| {
            std::fs::create_dir_all(y.top.join("src/deep/er")).unwrap();
            let place = rustix::fs::CWD;
            let kind = rustix::fs::FileType::Fifo;
            let mode = rustix::fs::Mode::RUSR;
            rustix::fs::mknodat(place, y.top.join(ADDED), kind, mode, 0).unwrap();
        }),
        ("a link in place of a folder", |y| {
            let away = y.temp.path().join("away");
            std::fs::create_dir(&away).unwrap();
            symlink(&away, y.top.join("src/deep")).unwrap();
        }),
        ("a link in place of a tracked folder", |y| {
            std::fs::rename(y.top.join("src"), y.top.join("src2")).unwrap();
            symlink("src2", y.top.join("src")).unwrap();
        }),
        ("a file of another case at an added path", |y| {
            write(&y.top, "src/deep/er/NEW.rs", "mine\n");
        }),
        ("a repository of the user's above an added path", |y| {
            run_git(&y.program, &y.top, &["init", "-q", "src/deep"]);
        }),
        ("a working tree of another repository above it", |y| {
            write(&y.top, "src/deep/er/.git", "gitdir: /nonexistent\n");
        }),
        ("a repository that is a link above it", |y| {
            std::fs::create_dir_all(y.top.join("src/deep")).unwrap();
            symlink("/nonexistent", y.top.join("src/deep/.git")).unwrap();
        }),
        ("another mode", |y| executable(&y.top.join(CHANGED))),
        ("a staged edit", |y| {
            write(&y.top, CHANGED, "mine\n");
            y.run(&["add", "-A"]);
        }),
        ("a staged edit elsewhere", |y| {
            write(&y.top, UNTOUCHED, "mine\n");
            y.run(&["add", "-A"]);
        }),
        ("a staged edit whose file is as before", |y| {
            write(&y.top, CHANGED, "mine\n");
            y.run(&["add", "-A"]);
            write(&y.top, CHANGED, "pub fn a() -> u8 { 1 }\n");
        }),
        ("a file to be added later", |y| {
            write(&y.top, "later", "mine\n");
            y.run(&["add", "-N", "later"]);
        }),
        ("an edit git was told not to see", |y| {
            write(&y.top, CHANGED, "mine\n");
            y.run(&["update-index", "--assume-unchanged", CHANGED]);
        }),
    ];
    for git in programs() {
        for (what, act) in acts {
            let yard = Yard::new(&git);
            act(&yard);
            assert_refused(&yard, what, "importer/SOURCE_CHANGED");
        }
    }
}

#[test]
fn a_conflict_in_the_index_is_refused() {
    let yard = Yard::new(&programs()[0]);
    let blob = yard.run(&["hash-object", "-w", UNTOUCHED]);
    let lines = format!("100644 {blob} 1\tsrc/other.rs\n100644 {blob} 2\tsrc/other.rs\n");
    yard.run(&["rm", "-q", "--cached", UNTOUCHED]);
    let mut child = std::process::Command::new(&yard.program)
        .args(["update-index", "--index-info"])
        .current_dir(&yard.top)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_refused(&yard, "a conflict", "importer/SOURCE_CHANGED");
}

#[test]
fn a_tree_in_the_middle_of_something_is_left_alone() {
    let begun: [(&str, &str, bool); 7] = [
        ("MERGE_HEAD", "importer/WORKTREE_BUSY", false),
        ("CHERRY_PICK_HEAD", "importer/WORKTREE_BUSY", false),
        ("REVERT_HEAD", "importer/WORKTREE_BUSY", false),
        ("rebase-merge", "importer/WORKTREE_BUSY", true),
        ("rebase-apply", "importer/WORKTREE_BUSY", true),
        ("BISECT_LOG", "importer/WORKTREE_BUSY", false),
        ("index.lock", "importer/INDEX_LOCKED", false),
    ];
    for (name, code, folder) in begun {
        let yard = Yard::new(&programs()[0]);
        let place = yard.top.join(".git").join(name);
        if folder {
            std::fs::create_dir(&place).unwrap();
        } else {
            std::fs::write(&place, "").unwrap();
        }
        assert_refused(&yard, name, code);
        assert!(place.exists(), "{name}");
    }
    for lock in ["HEAD.lock", "refs/heads/main.lock"] {
        let yard = Yard::new(&programs()[0]);
        std::fs::write(yard.top.join(".git").join(lock), "").unwrap();
        assert_refused(&yard, lock, "importer/BRANCH_LOCKED");
    }
    // A rebase of this very branch, started in another working tree.
    let yard = Yard::new(&programs()[0]);
    std::fs::create_dir(yard.top.join(".git/rebase-merge")).unwrap();
    write(
        &yard.top,
        ".git/rebase-merge/head-name",
        "refs/heads/main\n",
    );
    assert_refused(&yard, "a rebase", "importer/BRANCH_CHECKED_OUT");
}

#[test]
fn hosts_whose_files_are_not_the_bytes_of_the_commit_are_refused() {
    let acts: [(&str, Act); 17] = [
        ("sparse", |y| set(y, "core.sparseCheckout", "true")),
        ("worktree", |y| {
            set(y, "core.worktree", y.temp.path().to_str().unwrap());
        }),
        ("autocrlf", |y| set(y, "core.autocrlf", "true")),
        ("autocrlf by a number", |y| set(y, "core.autocrlf", "2")),
        ("eol", |y| set(y, "core.eol", "crlf")),
        ("eol in another case", |y| set(y, "core.eol", "CRLF")),
        ("attributes elsewhere", |y| {
            let file = y.temp.path().join("attributes");
            std::fs::write(&file, "*.rs filter=lfs\n").unwrap();
            set(y, "core.attributesFile", file.to_str().unwrap());
        }),
        ("attributes elsewhere in the tree's own settings", |y| {
            set(y, "extensions.worktreeConfig", "yes");
            y.run(&["config", "--worktree", "core.attributesFile", "a"]);
        }),
        ("split index", |y| {
            y.run(&["update-index", "--split-index"]);
        }),
        ("sparse in the tree's own settings", |y| {
            set(y, "extensions.worktreeConfig", "true");
            y.run(&["config", "--worktree", "core.sparseCheckout", "true"]);
        }),
        ("a promise in the tree's own settings", |y| {
            set(y, "extensions.worktreeConfig", "true");
            y.run(&["config", "--worktree", "remote.x.promisor", "true"]);
        }),
        ("the same, switched on by a number", |y| {
            set(y, "extensions.worktreeConfig", "2");
            y.run(&["config", "--worktree", "core.sparseCheckout", "on"]);
        }),
        ("filter", |y| {
            write(&y.top, ".git/info/attributes", "*.rs filter=lfs\n")
        }),
        ("encoding", |y| {
            write(
                &y.top,
                ".git/info/attributes",
                "*.rs working-tree-encoding=UTF-16\n",
            );
        }),
        ("ident", |y| {
            write(&y.top, ".git/info/attributes", "src/lib.rs ident\n")
        }),
        ("crlf", |y| {
            write(&y.top, ".git/info/attributes", "* eol=crlf\n")
        }),
        ("a damaged index", |y| {
            let index = y.top.join(".git/index");
            let mut bytes = std::fs::read(&index).unwrap();
            bytes[20] ^= 1;
            std::fs::write(index, bytes).unwrap();
        }),
    ];
    for git in programs() {
        for (what, act) in acts {
            let yard = Yard::new(&git);
            act(&yard);
            let before = std::fs::read(yard.top.join(".git/index")).unwrap();
            let refused = yard.land().unwrap_err();
            assert_eq!(
                refused.code(),
                "importer/HOST_UNSUPPORTED",
                "{what}: {refused}"
            );
            assert_eq!(std::fs::read(yard.top.join(".git/index")).unwrap(), before);
            assert!(!yard.top.join(ADDED).exists());
            yard.assert_clear();
        }
        // In the tree itself, for a path the commit touches; and by the commit itself.
        for attributes in ["*.rs filter=lfs\n", "src/** ident\n", "run.sh eol=crlf\n"] {
            let lay = |top: &Path| write(top, ".gitattributes", attributes);
            assert_refused(
                &Yard::with(&git, lay, change),
                attributes,
                "importer/HOST_UNSUPPORTED",
            );
            let brings = |top: &Path| {
                change(top);
                write(top, ".gitattributes", attributes);
            };
            assert_refused(
                &Yard::with(&git, |_| {}, brings),
                attributes,
                "importer/HOST_UNSUPPORTED",
            );
        }
        let crlf = |top: &Path| write(top, ".gitattributes", "* text\n");
        let returns = |top: &Path| write(top, "src/lib.rs", "a\r\n");
        let raw = |top: &Path| {
            run_git(&git, top, &["config", "core.attributesFile", "/dev/null"]);
            write(top, ".git/info/attributes", "* -text\n");
            returns(top);
        };
        let yard = Yard::with(&git, crlf, raw);
        assert_refused(&yard, "CRLF as text", "importer/HOST_UNSUPPORTED");
    }
}

fn set(yard: &Yard, key: &str, value: &str) {
    run_git(&yard.program, &yard.top, &["config", key, value]);
}

#[test]
fn a_file_that_becomes_a_folder_takes_two_steps() {
    let git = &programs()[0];
    let lay = |top: &Path| {
        write(top, "d/x", "x\n");
        write(top, "a", "a\n");
    };
    let acts: [fn(&Path); 2] = [
        |top| {
            std::fs::remove_file(top.join("a")).unwrap();
            write(top, "a/b", "b\n");
        },
        |top| {
            std::fs::remove_dir_all(top.join("d")).unwrap();
            write(top, "d", "d\n");
        },
    ];
    for act in acts {
        let yard = Yard::with(git, lay, act);
        assert_refused(&yard, "a folder", "importer/HOST_UNSUPPORTED");
        // A branch that no tree is on takes it.
        yard.run(&["checkout", "-q", "-b", "aside"]);
        yard.land().unwrap();
    }
}

#[test]
fn a_git_folder_of_another_tree_is_refused() {
    let yard = Yard::new(&programs()[0]);
    yard.run(&["checkout", "-q", "-b", "aside"]);
    let linked = yard.temp.path().join("linked");
    yard.run(&["worktree", "add", "-q", linked.to_str().unwrap(), "main"]);
    let copy = yard.temp.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(linked.join(".git"), copy.join(".git")).unwrap();
    let refused = yard.land_in(&copy, &yard.git()).unwrap_err();
    assert_eq!(refused.code(), "importer/HOST_UNSUPPORTED");
    assert_eq!(std::fs::read_dir(&copy).unwrap().count(), 1);
    let named_by_git_dir = yard.land_in(&yard.top.join(".git/worktrees/linked"), &yard.git());
    assert!(named_by_git_dir.is_err());
    assert_eq!(yard.tip(), yard.baseline());
    // Executable bits that mean nothing are not looked at.
    yard.run(&["checkout", "-q", "--detach"]);
    set(&yard, "core.fileMode", "false");
    executable(&linked.join(CHANGED));
    yard.land_in(&linked, &yard.git()).unwrap();
    assert!(linked.join(MODE).exists());
}

#[test]
fn two_imports_into_one_tree_are_kept_apart() {
    let yard = Yard::new(&programs()[0]);
    std::fs::create_dir(yard.top.join(".git/flightproof-import")).unwrap();
    let refused = yard.land().unwrap_err();
    assert_eq!(refused.code(), "importer/IMPORT_UNFINISHED");
    // A folder that others may enter is nobody's claim.
    let refused = yard.git();
    let host = flightproof_importer::Host::open(&refused, &yard.top).unwrap();
    let found = flightproof_importer::recover_repository(
        &refused,
        &host,
        &mut yard.ledger(),
        crate::scene::NOW_IS_PAST,
    );
    assert_eq!(found.unwrap_err().code(), "importer/IMPORT_UNFINISHED");
    std::fs::remove_dir(yard.top.join(".git/flightproof-import")).unwrap();
    yard.land().unwrap();
    yard.assert_whole(true);
}

#[test]
fn a_head_that_comes_to_the_branch_by_another_name_is_not_taken_for_one_elsewhere() {
    let ways: [(&str, Act); 12] = [
        ("a symbolic reference", |y| {
            y.run(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
            y.run(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
        }),
        ("two of them", |y| {
            y.run(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
            y.run(&["symbolic-ref", "refs/heads/other", "refs/heads/alias"]);
            y.run(&["symbolic-ref", "HEAD", "refs/heads/other"]);
        }),
        ("a circle", |y| {
            write(&y.top, ".git/refs/heads/one", "ref: refs/heads/two\n");
            write(&y.top, ".git/refs/heads/two", "ref: refs/heads/one\n");
            write(&y.top, ".git/HEAD", "ref: refs/heads/one\n");
        }),
        ("another tree's alias", |y| {
            y.run(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
            aside(y, "refs/heads/alias");
        }),
        ("a name outside refs on the way", |y| {
            y.run(&["symbolic-ref", "ORIGX", "refs/heads/main"]);
            y.run(&["symbolic-ref", "refs/heads/alias", "ORIGX"]);
            y.run(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
        }),
        ("a name that each tree has for itself", |y| {
            let alias = "refs/worktree/x";
            aside(y, alias);
            let linked = y.temp.path().join("aside");
            run_git(
                &y.program,
                &linked,
                &["symbolic-ref", alias, "refs/heads/main"],
            );
        }),
        ("another tree's HEAD", |y| {
            aside(y, "refs/heads/alias");
            write(&y.top, ".git/refs/heads/alias", "ref: main-worktree/HEAD\n");
        }),
        ("a branch that is a link", |y| {
            symlink("main", y.top.join(".git/refs/heads/alias")).unwrap();
            y.run(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
        }),
        ("a folder of branches that is a link", |y| {
            symlink(".", y.top.join(".git/refs/heads/x")).unwrap();
            y.run(&["symbolic-ref", "HEAD", "refs/heads/x/main"]);
        }),
        ("a HEAD that is a link", |y| {
            std::fs::remove_file(y.top.join(".git/HEAD")).unwrap();
            symlink("refs/heads/main", y.top.join(".git/HEAD")).unwrap();
        }),
        ("a tag", |y| {
            y.run(&["update-ref", "refs/tags/t", "HEAD"]);
            write(&y.top, ".git/HEAD", "ref: refs/tags/t\n");
        }),
        ("a rebase that returns to an alias", |y| {
            y.run(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
            write(&y.top, ".git/rebase-merge/head-name", "refs/heads/alias\n");
        }),
    ];
    for git in programs() {
        for (what, act) in ways {
            let yard = Yard::new(&git);
            act(&yard);
            assert_refused(&yard, what, "importer/HOST_UNSUPPORTED");
        }
        // Git reads a name up to a zero byte: the branch never moves without the tree.
        let yard = Yard::new(&git);
        write(&yard.top, ".git/HEAD", "ref: refs/heads/main\0\n");
        if let Ok(landed) = yard.land() {
            assert!(landed.landed);
        }
        assert!(yard.top.join(ADDED).exists() == (yard.tip() == yard.head()));
    }
}

/// A linked tree whose HEAD names this.
fn aside(yard: &Yard, named: &str) {
    let aside = yard.temp.path().join("aside");
    let aside = aside.to_str().unwrap();
    yard.run(&["worktree", "add", "-q", "-b", "own", aside]);
    let head = format!("ref: {named}\n");
    write(&yard.top, ".git/worktrees/aside/HEAD", &head);
}
