//! Bundles against real repositories, with real gits: what our reader finds, git finds too.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;

use flightproof_core::{ObjectId, RelPath};
use flightproof_hostile::git::{BundleAttack, Forge, bundle_attacks, hex};
use flightproof_importer::{
    Arrival, Checked, Git, Grants, Host, ImportError, ImporterCode, Parcel, Rules, check_bundle,
};
use scene::{NOW, folder, run_git};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn arrive(
    git: &Git,
    top: &Path,
    bundle: &[u8],
    baseline: &str,
    (grants, now): (&Grants, u64),
) -> Result<Checked, ImportError> {
    let scratch = folder();
    let host = Host::open(git, top)?;
    let arrival = Arrival {
        parcel: Parcel::bundle(bundle),
        baseline,
        rules: Rules {
            grants,
            identity: None,
            now,
        },
        scratch: scratch.path(),
    };
    let checked = check_bundle(git, &host, &arrival);
    let left = std::fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!(left, 0, "scratch is left empty");
    checked
}

/// A repository on disk that holds the store of a forged bundle.
fn repository(attack: &BundleAttack) -> tempfile::TempDir {
    let temp = folder();
    let forge = Forge::create(temp.path()).unwrap();
    for (kind, body) in attack.store.values() {
        forge.put(kind, body).unwrap();
    }
    temp
}

/// An empty repository that borrows all objects of another one.
fn borrowing(from: &Path) -> tempfile::TempDir {
    let temp = folder();
    let forge = Forge::create(temp.path()).unwrap();
    let line = format!("{}\n", from.join(".git/objects").display());
    forge
        .write("objects/info/alternates", line.as_bytes())
        .unwrap();
    temp
}

fn grants(paths: &[&str]) -> Grants {
    Grants::new(paths.iter().map(|path| RelPath::new(path).unwrap()))
}

/// Every git of this machine.
fn programs() -> Vec<PathBuf> {
    let all = ["/usr/bin/git", "/usr/local/bin/git"].map(PathBuf::from);
    let found: Vec<PathBuf> = all.into_iter().filter(|program| program.exists()).collect();
    assert!(!found.is_empty(), "no git where it is looked for");
    found
}

/// What a git finds in the bundle's own pack, which it reads with its own zlib and deltas, and
/// writes out one by one under the hash it has.
fn found_by_git(git: &Path, top: &Path, bundle: &[u8]) -> BTreeSet<ObjectId> {
    let start = bundle.windows(4).position(|w| w == b"PACK").unwrap();
    let file = top.join("received.pack");
    std::fs::write(&file, &bundle[start..]).unwrap();
    let output = std::process::Command::new(git)
        .args(["unpack-objects", "-q"])
        .current_dir(top)
        .env_clear()
        .stdin(std::fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    loose(&top.join(".git/objects"))
}

/// Ids of the objects that lie in files of their own.
fn loose(objects: &Path) -> BTreeSet<ObjectId> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let folders = names(objects).into_iter().filter(|name| name.len() == 2);
    folders
        .flat_map(|folder| {
            let files = names(&objects.join(&folder));
            files
                .into_iter()
                .map(move |file| format!("{folder}{file}").parse().unwrap())
        })
        .collect()
}

#[test]
fn git_agrees_with_every_accepted_bundle() {
    let gits: Vec<(PathBuf, Git)> = programs()
        .into_iter()
        .map(|program| (program.clone(), Git::at(&program).unwrap()))
        .collect();
    let mut seen = HashSet::new();
    let mut stores: Vec<(BundleAttack, tempfile::TempDir)> = Vec::new();
    for attack in bundle_attacks() {
        if !seen.insert(attack.twin.clone()) || attack.twin.len() > 100_000 {
            continue;
        }
        let base = hex(&attack.baseline);
        let same = |(known, _): &&(BundleAttack, _)| Arc::ptr_eq(&known.store, &attack.store);
        if !stores.iter().any(|known| same(&known)) {
            stores.push((attack.clone(), repository(&attack)));
        }
        let (_, store) = stores.iter().find(same).unwrap();
        for (program, git) in &gits {
            let temp = borrowing(store.path());
            let grants = grants(attack.grants);
            let checked = arrive(git, temp.path(), &attack.twin, &base, (&grants, NOW));
            let checked = checked.unwrap_or_else(|e| panic!("{}: {e}", attack.name));
            let theirs = found_by_git(program, temp.path(), &attack.twin);
            let ours: BTreeSet<ObjectId> = checked.objects().collect();
            // What the baseline has already is not found anew.
            assert!(theirs.is_subset(&ours), "{}", attack.name);
            for id in ours.difference(&theirs) {
                assert!(
                    attack.store.contains_key(id.as_bytes()),
                    "{}: {id}",
                    attack.name
                );
            }
        }
    }
    assert!(seen.len() > 40, "{}", seen.len());
}

/// A history as people make it, one commit a step; each step is a change of the one before.
const STEPS: &[(&str, &str)] = &[
    (
        "a file",
        "seq 1 4000 >large; mkdir -p a/b; echo one >a/b/one; echo two >two",
    ),
    (
        "an edit of a large file",
        "sed -i s/^2000$/two_thousand/ large",
    ),
    ("an edit in a folder", "echo more >>a/b/one"),
    ("a new folder", "mkdir -p c/d/e; seq 1 500 >c/d/e/f"),
    ("a file moved", "mkdir m; git mv large m/large"),
    (
        "a file moved and edited",
        "git mv m/large large; sed -i s/^17$/seventeen/ large",
    ),
    ("a file copied", "cp large copy"),
    (
        "a file copied from a folder nobody touches",
        "mkdir k; cp c/d/e/f k/f",
    ),
    ("a mode", "chmod +x two"),
    ("a file removed", "git rm -q copy"),
    ("a file as it was two commits before", "cp large copy"),
    ("a folder made a file", "git rm -qr k; echo k >k"),
    ("a file made a folder", "git rm -q k; mkdir k; echo f >k/f"),
    (
        "many files",
        "mkdir many; for n in $(seq 1 300); do echo $n >many/$n; done",
    ),
    (
        "many edits",
        "for n in $(seq 1 300); do echo x >>many/$n; done",
    ),
    (
        "bytes that are no text",
        "head -c 40000 /dev/urandom >noise",
    ),
    ("an empty file", ": >empty"),
];

/// A repository with a commit for each step.
fn history(git: &Path) -> tempfile::TempDir {
    let temp = folder();
    let top = temp.path();
    run_git(git, top, &["init", "-q"]);
    for (name, script) in STEPS {
        shell(git, top, script);
        run_git(git, top, &["add", "-A"]);
        run_git(git, top, &["commit", "-qm", name]);
    }
    temp
}

/// Each step of a history as a bundle on the one before, made with these settings, and what is
/// said about it.
fn each_step(program: &Path, top: &Path, settings: &[&str]) -> Vec<(&'static str, ImporterAnswer)> {
    let git = Git::at(program).unwrap();
    let ids = run_git(program, top, &["rev-list", "--reverse", "HEAD"]);
    let ids: Vec<&str> = ids.lines().collect();
    let step = |(pair, (name, _)): (&[&str], &(&'static str, &str))| {
        let [baseline, head] = pair else {
            unreachable!()
        };
        run_git(program, top, &["update-ref", "refs/export/head", head]);
        let bundle = bundle(program, top, baseline, settings);
        let checked = arrive(&git, top, &bundle, baseline, (&Grants::default(), LATER));
        let head = head.parse().unwrap();
        (
            *name,
            checked.map(|checked| assert_eq!(checked.head(), head)),
        )
    };
    ids.windows(2).zip(&STEPS[1..]).map(step).collect()
}

type ImporterAnswer = Result<(), ImportError>;

/// A clock that no commit of today is ahead of.
const LATER: u64 = u64::MAX / 2;

/// Without it git leaves out, and builds on, whatever the baseline's history holds.
const NO_BITMAPS: &[&str] = &["-c", "pack.useBitmaps=false"];

#[test]
fn honest_histories_come_home_one_commit_at_a_time() {
    for program in programs() {
        let temp = history(&program);
        let all_accepted = |settings: &[&str]| {
            for (name, answer) in each_step(&program, temp.path(), settings) {
                assert_eq!(answer, Ok(()), "{program:?} {settings:?}: {name}");
            }
        };
        all_accepted(&[]);
        run_git(&program, temp.path(), &["repack", "-qad"]);
        all_accepted(&[]);
        run_git(&program, temp.path(), &["repack", "-qadb"]);
        all_accepted(NO_BITMAPS);
    }
}

#[test]
fn what_stands_on_the_history_before_the_baseline_is_refused() {
    let mut refused = 0;
    for program in programs() {
        let temp = history(&program);
        run_git(&program, temp.path(), &["repack", "-qadb"]);
        for (name, answer) in each_step(&program, temp.path(), &[]) {
            match answer.map_err(|e| e.code) {
                Ok(()) => {}
                Err(ImporterCode::DeltaBase | ImporterCode::ObjectMissing) => refused += 1,
                Err(other) => panic!("{name}: {other:?}"),
            }
        }
    }
    assert!(
        refused > 0,
        "no bundle stood on history: the test tries nothing"
    );
}

fn shell(git: &Path, top: &Path, script: &str) {
    let path = format!("{}:/usr/bin:/bin", git.parent().unwrap().display());
    let status = std::process::Command::new("/bin/sh")
        .args(["-ec", script])
        .current_dir(top)
        .env("PATH", path)
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
}

fn bundle(git: &Path, top: &Path, baseline: &str, settings: &[&str]) -> Vec<u8> {
    let without = format!("^{baseline}");
    let output = std::process::Command::new(git)
        .args(settings)
        .args([
            "bundle",
            "create",
            "-q",
            "--version=2",
            "-",
            "refs/export/head",
            &without,
        ])
        .current_dir(top)
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn a_granted_file_that_git_itself_refuses_is_refused() {
    let long = format!("* {}\n", "x".repeat(3_000));
    for (name, body) in [
        (".gitattributes", long.as_str()),
        (
            ".gitmodules",
            "[submodule \"x\"]\n\tpath = x\n\turl = -u./payload\n",
        ),
        (
            ".gitmodules",
            "[submodule \"../x\"]\n\tpath = x\n\turl = https://x.org/\n",
        ),
        (
            ".gitmodules",
            "[submodule \"x\"]\n\tpath = -a\n\turl = https://x.org/\n",
        ),
        (
            ".gitmodules",
            "[submodule \"x\"]\n\tpath = x\n\turl = https://x.org/\n\tupdate = !touch x\n",
        ),
    ] {
        for program in programs() {
            let git = Git::at(&program).unwrap();
            let temp = folder();
            let top = temp.path();
            run_git(&program, top, &["init", "-q"]);
            run_git(&program, top, &["commit", "-qm", "base", "--allow-empty"]);
            std::fs::write(top.join("README.md"), "base\n").unwrap();
            run_git(&program, top, &["add", "."]);
            run_git(&program, top, &["commit", "-qm", "readme"]);
            let arrive_with = |body: &str| {
                std::fs::write(top.join(name), body).unwrap();
                run_git(&program, top, &["add", "."]);
                run_git(&program, top, &["commit", "-qm", name]);
                run_git(&program, top, &["update-ref", "refs/export/head", "HEAD"]);
                let baseline = run_git(&program, top, &["rev-parse", "HEAD~1"]);
                let bytes = bundle(&program, top, &baseline, &[]);
                arrive(&git, top, &bytes, &baseline, (&grants(&[name]), LATER))
            };
            assert!(arrive_with("# nothing\n").is_ok(), "{name}");
            let refused = arrive_with(body).unwrap_err();
            assert_eq!(
                refused.code,
                ImporterCode::SecondOpinion,
                "{body}: {refused}"
            );
        }
    }
}
