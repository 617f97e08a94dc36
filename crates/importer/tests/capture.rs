//! What a capture takes and what it refuses, on every git of the machine.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;

use flightproof_core::{Digest, RelPath};
use flightproof_hostile::git::{Answer, Attack, Change, Plan, What, attacks};
use flightproof_importer::{Git, Grants, Host, ImporterCode};
use scene::{Scene, code, folder, git, gits, plain_git};
use std::collections::HashSet;

fn check(
    git: &Git,
    attack: &Attack,
    honest: &[flightproof_evidence::Change],
) -> Result<(), String> {
    let scene = Scene::new(&attack.plan);
    // A lie is also told to whoever looks a name up.
    let taken = match attack.answer {
        Answer::Unmoved => scene.capture_by_name(git),
        Answer::Refused(_) => scene.capture(git),
    };
    match (taken, attack.answer) {
        (Err(refused), Answer::Refused(wanted)) if code(&refused) == wanted => {}
        (Ok(capture), Answer::Unmoved) if capture.captured.changes == honest => {}
        (Err(refused), answer) => return Err(format!("expected {answer:?}, got {refused}")),
        (Ok(_), answer) => return Err(format!("expected {answer:?}, was taken")),
    }
    if scene.canary.exists() {
        return Err("a program of the repository ran".into());
    }
    Ok(())
}

/// Every attack and every twin on one git; what went wrong.
fn try_all(git: &Git) -> Vec<String> {
    let honest = Scene::new(&Plan::HONEST)
        .capture(git)
        .unwrap()
        .captured
        .changes;
    let mut failed = Vec::new();
    let mut twins = HashSet::new();
    for attack in attacks() {
        if let Err(why) = check(git, &attack, &honest) {
            failed.push(format!("{:?}, {}: {why}", git.version(), attack.name));
        }
        // Many attacks have the same twin.
        if twins.insert(format!("{:?}", attack.twin))
            && let Err(why) = Scene::new(&attack.twin).capture(git)
        {
            failed.push(format!(
                "{:?}, {}: the twin: {why}",
                git.version(),
                attack.name
            ));
        }
    }
    failed
}

#[test]
fn every_attack_gets_its_answer_and_every_twin_is_taken() {
    let gits = gits();
    let failed: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = gits
            .iter()
            .map(|git| scope.spawn(|| try_all(git)))
            .collect();
        running
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_capture_holds_the_whole_candidate_and_only_what_changed() {
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        let taken = scene.capture(&git).unwrap();
        let captured = &taken.captured;
        assert_eq!(captured.baseline.to_string(), scene.baseline());
        assert_eq!(captured.head.to_string(), scene.head());
        assert_eq!(captured.author, "A Bot <bot@example.org>");
        assert_eq!(captured.bundle, Digest::of(&taken.bundle));
        assert_eq!(captured.bundle_bytes, taken.bundle.len() as u64);
        let [change] = captured.changes.as_slice() else {
            panic!("{:?}", captured.changes)
        };
        assert_eq!(change.path.as_str(), "src/lib.rs");
        assert!(change.old.is_some());
        assert_eq!(
            &change.new.as_ref().unwrap().content[..],
            b"pub fn a() -> u8 { 2 }\n"
        );
        let unpacked = flightproof_archive::paws::read(&captured.archive).unwrap();
        assert_eq!(unpacked.snapshot.snapshot_id(), captured.snapshot);
        assert_eq!(unpacked.snapshot.workspace_id(), "flightproof");
        let paths: Vec<_> = unpacked
            .files()
            .map(|(e, _)| (e.path.to_string(), e.executable))
            .collect();
        let expected = [
            ("README.md", false),
            ("run.sh", true),
            ("src/lib.rs", false),
            ("src/xt_TCPMSS.h", false),
            ("src/xt_tcpmss.h", false),
        ];
        assert_eq!(paths, expected.map(|(p, x)| (p.to_owned(), x)));
    }
}

#[test]
fn unchanged_links_and_submodules_are_listed_and_bound() {
    let captured = Scene::new(&Plan::HONEST).capture(&git()).unwrap().captured;
    let kept: Vec<_> = captured
        .kept
        .iter()
        .map(|k| (k.path.as_str(), k.mode.as_str()))
        .collect();
    assert_eq!(kept, [("link", "120000"), ("module", "160000")]);
    let text = flightproof_core::canonical_json(&captured.kept).unwrap();
    assert_eq!(captured.kept_digest, Some(Digest::of(&text)));
}

#[test]
fn the_bundle_is_one_that_git_itself_takes() {
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        let taken = scene.capture(&git).unwrap();
        let file = scene.temp.path().join("x.bundle");
        std::fs::write(&file, &taken.bundle).unwrap();
        let heads = scene.plain_git(&["bundle", "list-heads", file.to_str().unwrap()]);
        assert_eq!(heads, format!("{} refs/export/head", scene.head()));
        // Into a repository that has the baseline and not the candidate.
        let other = Scene::new(&Plan {
            change: Change::Many(1),
            ..Plan::HONEST
        });
        other.plain_git(&["bundle", "unbundle", file.to_str().unwrap()]);
        assert_eq!(
            other.plain_git(&["cat-file", "-t", &scene.head()]),
            "commit"
        );
        assert_eq!(
            other.plain_git(&["show", &format!("{}:src/lib.rs", scene.head())]),
            "pub fn a() -> u8 { 2 }"
        );
    }
}

#[test]
fn a_small_edit_of_a_large_file_fits_a_bundle() {
    let temp = folder();
    let top = temp.path();
    plain_git(top, &["init", "-q"]);
    let lines: Vec<String> = (0..20_000u64)
        .map(|n| format!("{}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    std::fs::write(top.join("large"), lines.join("\n")).unwrap();
    plain_git(top, &["add", "large"]);
    plain_git(top, &["commit", "-qm", "base"]);
    std::fs::write(top.join("large"), lines.join("\n").replacen("0", "1", 1)).unwrap();
    plain_git(top, &["commit", "-qam", "edit"]);
    for git in gits() {
        let host = Host::open(&git, top).unwrap();
        let taken = capture_now(&git, &host, temp.path(), "HEAD~1", "HEAD").unwrap();
        assert!(taken.bundle.len() < 4_000, "{} bytes", taken.bundle.len());
    }
}

#[test]
fn a_baseline_may_have_any_subject() {
    let long = "s".repeat(5_000);
    for subject in ["a\u{1b}]0;title\u{7}", "tab\there", &long] {
        let temp = folder();
        let top = temp.path();
        plain_git(top, &["init", "-q"]);
        plain_git(top, &["commit", "-qm", subject, "--allow-empty"]);
        std::fs::write(top.join("new"), "x").unwrap();
        plain_git(top, &["add", "new"]);
        plain_git(top, &["commit", "-qm", "edit"]);
        for git in gits() {
            let host = Host::open(&git, top).unwrap();
            let taken = capture_now(&git, &host, temp.path(), "HEAD~1", "HEAD");
            assert!(taken.is_ok(), "{subject:?}: {:?}", taken.err());
        }
    }
}

/// As a capture, with the clock of the machine: these commits are made by a real git.
fn capture_now(
    git: &Git,
    host: &Host,
    folder: &std::path::Path,
    baseline: &str,
    candidate: &str,
) -> Result<flightproof_importer::Capture, flightproof_importer::ImportError> {
    let scratch = tempfile::tempdir_in(folder).unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    flightproof_importer::capture(
        git,
        host,
        &flightproof_importer::CaptureRequest {
            name: "test",
            baseline,
            candidate,
            grants: &Grants::default(),
            identity: None,
            squash: false,
            scratch: scratch.path(),
            now,
        },
    )
}

#[test]
fn packed_repositories_linked_worktrees_and_borrowed_objects_are_read() {
    let temp = folder();
    let top = temp.path().join("a");
    std::fs::create_dir(&top).unwrap();
    plain_git(&top, &["init", "-q"]);
    for n in 0..3 {
        std::fs::create_dir_all(top.join("d/e")).unwrap();
        std::fs::write(top.join("d/e/f"), format!("{n}\n")).unwrap();
        std::fs::write(top.join(format!("g{n}")), "same\n").unwrap();
        plain_git(&top, &["add", "."]);
        plain_git(&top, &["commit", "-qm", &format!("commit {n}")]);
    }
    plain_git(&top, &["mv", "g0", "d/moved"]);
    plain_git(&top, &["commit", "-qm", "rename"]);
    plain_git(&top, &["gc", "-q"]);
    plain_git(&top, &["commit-graph", "write", "--reachable"]);
    plain_git(&top, &["worktree", "add", "-q", "../tree", "-b", "side"]);
    plain_git(temp.path(), &["clone", "-q", "--shared", "a", "shared"]);
    plain_git(temp.path(), &["clone", "-q", "--bare", "a", "bare.git"]);
    for git in gits() {
        let mut snapshots = Vec::new();
        for place in ["a", "tree", "shared", "bare.git", "a/.git"] {
            let host = Host::open(&git, &temp.path().join(place)).unwrap();
            let taken = capture_now(&git, &host, temp.path(), "HEAD~1", "HEAD").unwrap();
            let paths: Vec<_> = taken
                .captured
                .changes
                .iter()
                .map(|c| c.path.as_str().to_owned())
                .collect();
            assert_eq!(paths, ["d/moved", "g0"], "{place}");
            snapshots.push(taken.captured.snapshot);
        }
        snapshots.dedup();
        assert_eq!(snapshots.len(), 1);
        let host = Host::open(&git, &temp.path().join("tree")).unwrap();
        assert!(host.name().ends_with("/a/.git"), "{}", host.name());
    }
}

#[test]
fn identity_and_grants_are_held_against_the_commit() {
    let scene = Scene::new(&Plan::HONEST);
    let git = git();
    let with = |grants: &[&str], identity| {
        let grants = Grants::new(grants.iter().map(|g| RelPath::new(g).unwrap()));
        scene
            .capture_with(&git, &grants, identity)
            .map(drop)
            .map_err(|e| e.code)
    };
    assert_eq!(with(&[], Some("A Bot <bot@example.org>")), Ok(()));
    assert_eq!(
        with(&[], Some("A Bot <other@example.org>")),
        Err(ImporterCode::IdentityMismatch)
    );
    assert_eq!(with(&["src/lib.rs"], None), Ok(()));
    assert_eq!(with(&["sr"], None), Err(ImporterCode::PathNotGranted));
    let protected = Scene::new(&Plan {
        change: Change::Add {
            at: "src",
            mode: "100644",
            name: b".gitattributes",
            what: What::Blob(b"* filter=x\n"),
        },
        ..Plan::HONEST
    });
    assert_eq!(
        protected.capture(&git).unwrap_err().code,
        ImporterCode::ProtectedPath
    );
    let grants = Grants::new([RelPath::new("src/.gitattributes").unwrap()]);
    assert!(protected.capture_with(&git, &grants, None).is_ok());
}

#[test]
fn a_revision_is_a_name_and_never_an_option() {
    let scene = Scene::new(&Plan::HONEST);
    let git = git();
    let host = Host::open(&git, &scene.top).unwrap();
    for revision in [
        "main",
        "refs/heads/main",
        &scene.baseline(),
        "work~1",
        "work^",
        "HEAD",
    ] {
        assert_eq!(
            host.resolve(&git, revision).unwrap().to_string(),
            scene.baseline(),
            "{revision}"
        );
    }
    let long = "a".repeat(300);
    for revision in [
        "",
        "nope",
        "--all",
        "--git-dir=/",
        "-h",
        "main..work",
        "main\nwork",
        "main:README.md",
        &long,
    ] {
        let refused = host.resolve(&git, revision).unwrap_err();
        assert_eq!(refused.code, ImporterCode::UnknownRevision, "{revision}");
    }
}

#[test]
fn the_same_commit_twice_is_no_change() {
    let scene = Scene::new(&Plan::HONEST);
    let git = git();
    let host = Host::open(&git, &scene.top).unwrap();
    let refused = scene
        .capture_from(&git, &host, ("work", "work"), &Grants::default(), None)
        .unwrap_err();
    assert_eq!(refused.code, ImporterCode::NoChange);
}

#[test]
fn whole_trees_beyond_the_limits_are_refused_even_when_the_change_is_small() {
    let temp = folder();
    let top = temp.path();
    plain_git(top, &["init", "-q"]);
    std::fs::write(top.join("large"), vec![0; (16 << 20) + 1]).unwrap();
    plain_git(top, &["add", "large"]);
    plain_git(top, &["commit", "-qm", "base"]);
    std::fs::write(top.join("small"), "x").unwrap();
    plain_git(top, &["add", "small"]);
    plain_git(top, &["commit", "-qm", "edit"]);
    let git = git();
    let host = Host::open(&git, top).unwrap();
    let refused = capture_now(&git, &host, top, "HEAD~1", "HEAD").unwrap_err();
    assert_eq!(refused.code, ImporterCode::SnapshotOverLimit);
}

#[test]
fn folders_that_are_no_repository_are_refused() {
    let git = git();
    let temp = folder();
    let refused = |path: &std::path::Path| Host::open(&git, path).unwrap_err().code;
    assert_eq!(refused(temp.path()), ImporterCode::NotARepository);
    assert_eq!(
        refused(&temp.path().join("nothing")),
        ImporterCode::NotARepository
    );
    std::fs::write(temp.path().join(".git"), "gitdir: /proc/self\n").unwrap();
    assert_eq!(refused(temp.path()), ImporterCode::NotARepository);
    std::fs::write(temp.path().join(".git"), "nonsense").unwrap();
    assert_eq!(refused(temp.path()), ImporterCode::NotARepository);
    std::fs::write(temp.path().join(".git"), vec![b'x'; 5_000]).unwrap();
    assert_eq!(refused(temp.path()), ImporterCode::HostUnsupported);
}

#[test]
fn a_scratch_folder_that_cannot_be_used_is_refused() {
    let scene = Scene::new(&Plan::HONEST);
    let git = git();
    let host = Host::open(&git, &scene.top).unwrap();
    let request = flightproof_importer::CaptureRequest {
        name: "test",
        baseline: "main",
        candidate: "work",
        grants: &Grants::default(),
        identity: None,
        scratch: &scene.temp.path().join("nothing"),
        now: scene::NOW,
        squash: false,
    };
    let refused = flightproof_importer::capture(&git, &host, &request).unwrap_err();
    assert_eq!(refused.code, ImporterCode::ScratchFailed);
}

#[test]
fn every_code_says_what_to_do() {
    use flightproof_core::Code as _;
    for code in ImporterCode::ALL {
        let e = code.explanation();
        assert!(
            e.code.starts_with("importer/") && e.todo.len() > 10,
            "{e:?}"
        );
    }
}

#[test]
fn a_real_sha256_repository_is_refused() {
    let temp = folder();
    plain_git(temp.path(), &["init", "-q", "--object-format=sha256"]);
    let refused = Host::open(&git(), temp.path()).unwrap_err();
    assert_eq!(refused.code, ImporterCode::HostUnsupported);
}

#[test]
fn a_commit_is_the_same_tree_however_it_is_read() {
    use flightproof_importer::{changes_of, checkout, snapshot_of, tree_of};
    for git in gits() {
        let scene = Scene::new(&Plan::HONEST);
        let captured = scene.capture(&git).unwrap().captured;
        let host = Host::open(&git, &scene.top).unwrap();
        let scratch = tempfile::tempdir_in(scene.temp.path()).unwrap();
        let (head, place) = (scene.head(), scratch.path());
        let named = snapshot_of(&git, &host, &head, place).unwrap();
        assert_eq!(
            named,
            (captured.head, captured.snapshot, captured.kept_digest)
        );
        let branch = snapshot_of(&git, &host, "work", place).unwrap();
        assert_eq!(branch, named);
        let ends = (captured.baseline, captured.head);
        assert_eq!(
            changes_of(&git, &host, ends, place).unwrap(),
            captured.changes
        );
        let taken = checkout(&git, &host, &head, place).unwrap();
        assert_eq!(taken.commit, captured.head);
        assert_eq!(taken.archive, captured.archive.0);
        assert_eq!(taken.archive, tree_of(&git, &host, &head, place).unwrap());
        assert_eq!(std::fs::read_dir(place).unwrap().count(), 0);
        // Git finds the same commit and files in the pack alone, which has no parent of it.
        let alone = folder();
        std::fs::write(alone.path().join("commit.pack"), &taken.pack).unwrap();
        plain_git(alone.path(), &["init", "-q", "--bare", "alone.git"]);
        let bare = alone.path().join("alone.git");
        plain_git(
            &bare,
            &[
                "index-pack",
                "-o",
                "objects/pack/pack-1.idx",
                "../commit.pack",
            ],
        );
        std::fs::copy(
            alone.path().join("commit.pack"),
            bare.join("objects/pack/pack-1.pack"),
        )
        .unwrap();
        let listed = |dir: &std::path::Path| plain_git(dir, &["ls-tree", "-r", &head]);
        assert_eq!(listed(&bare), listed(&scene.top));

        for refused in [
            snapshot_of(&git, &host, "nowhere", place).map(drop),
            checkout(&git, &host, "nowhere", place).map(drop),
            tree_of(&git, &host, "nowhere", place).map(drop),
        ] {
            assert_eq!(refused.unwrap_err().code, ImporterCode::UnknownRevision);
        }
    }
}
