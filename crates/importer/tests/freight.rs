//! Large files travel beside the bundle, and bring nothing but what the commit says.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;

use flightproof_archive::paws;
use flightproof_core::{Digest, RelPath};
use flightproof_importer::{
    Arrival, Capture, CaptureRequest, Checked, Clearance, Git, Grants, Host, ImportError,
    ImporterCode, Parcel, Rules, admit, capture, check_bundle, pack_commit, snapshot_of_bundle,
};
use flightproof_ledger::Ledger;
use scene::{folder, programs, run_git};
use std::path::{Path, PathBuf};

const BIG: &str = "data/model.bin";
const NEW: &str = "data/deep/new.bin";
const TOOL: &str = "data/tool";

/// A repository with a commit that changes, adds and marks large files, and a clone without it.
struct Shop {
    temp: tempfile::TempDir,
    git: Git,
    program: PathBuf,
}

impl Shop {
    fn new(program: &Path) -> Self {
        Self::with(program, |top| {
            write(top, "src/lib.rs", b"pub fn a() -> u8 { 2 }\n");
            write(top, BIG, &noise(2, 3 << 20));
            write(top, NEW, &noise(3, 5 << 20));
            write(top, TOOL, &noise(4, 1 << 10));
            executable(&top.join(TOOL));
            std::fs::remove_file(top.join("data/old.bin")).unwrap();
        })
    }

    fn with(program: &Path, change: impl Fn(&Path)) -> Self {
        let temp = folder();
        let top = temp.path().join("made");
        std::fs::create_dir(&top).unwrap();
        run_git(program, &top, &["init", "-q"]);
        write(&top, "src/lib.rs", b"pub fn a() -> u8 { 1 }\n");
        write(&top, BIG, &noise(1, 3 << 20));
        write(&top, "data/old.bin", &noise(5, 1 << 20));
        write(&top, TOOL, b"#!/bin/sh\n");
        run_git(program, &top, &["add", "-A"]);
        run_git(program, &top, &["commit", "-q", "-m", "baseline"]);
        run_git(program, temp.path(), &["clone", "-q", "made", "home"]);
        change(&top);
        run_git(program, &top, &["add", "-A"]);
        run_git(program, &top, &["commit", "-q", "-m", "work"]);
        Self {
            temp,
            git: Git::at(program).unwrap(),
            program: program.to_owned(),
        }
    }

    fn home(&self) -> PathBuf {
        self.temp.path().join("home")
    }

    fn capture(&self, grants: &Grants) -> Result<Capture, ImportError> {
        let host = Host::open(&self.git, &self.temp.path().join("made"))?;
        let scratch = folder();
        let request = CaptureRequest {
            name: "test",
            baseline: "HEAD~1",
            candidate: "HEAD",
            grants,
            identity: None,
            squash: false,
            scratch: scratch.path(),
            now: now(),
        };
        let taken = capture(&self.git, &host, &request);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
        taken
    }

    fn check(&self, parcel: Parcel<'_>, grants: &Grants) -> Result<Checked, ImportError> {
        let host = Host::open(&self.git, &self.home())?;
        let scratch = folder();
        let arrival = Arrival {
            parcel,
            baseline: "HEAD",
            rules: Rules {
                grants,
                identity: None,
                now: now(),
            },
            scratch: scratch.path(),
        };
        check_bundle(&self.git, &host, &arrival)
    }

    /// The code with which a changeset is refused beside an honest bundle.
    fn code(&self, taken: &Capture, changeset: &[u8], grants: &Grants) -> ImporterCode {
        let parcel = Parcel {
            bundle: &taken.bundle,
            changeset: Some(changeset),
        };
        self.check(parcel, grants).unwrap_err().code
    }
}

fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

fn write(top: &Path, path: &str, bytes: &[u8]) {
    let file = top.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

fn executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Bytes that do not compress.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

fn path(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

fn large(paths: &[&str]) -> Grants {
    Grants::default().with_large(paths.iter().map(|text| path(text)))
}

type File<'a> = (&'a str, bool, &'a [u8]);

/// A changeset between any files.
fn forged(workspace: &str, old: &[File<'_>], new: &[File<'_>]) -> Vec<u8> {
    let pack = |files: &[File<'_>]| {
        let files = files
            .iter()
            .map(|(at, mode, bytes)| (path(at), *mode, *bytes));
        paws::pack(workspace, files).unwrap()
    };
    let (old, new) = (pack(old), pack(new));
    paws::pack_changeset(&old.snapshot, &paws::read(&new.bytes).unwrap())
        .unwrap()
        .1
}

#[test]
fn a_commit_with_large_files_comes_home_whole() {
    for program in programs() {
        let shop = Shop::new(&program);
        let refused = shop.capture(&Grants::default()).unwrap_err();
        assert_eq!(refused.code, ImporterCode::BytesOverLimit);
        let grants = large(&["data"]);
        let taken = shop.capture(&grants).unwrap();
        assert!(taken.bundle.len() < 10_000, "{}", taken.bundle.len());
        let changeset = taken.changeset.as_deref().unwrap();
        assert_eq!(taken.captured.changeset, Some(Digest::of(changeset)));
        assert_eq!(shop.capture(&grants).unwrap(), taken, "the same twice");
        let parcel = Parcel {
            bundle: &taken.bundle,
            changeset: Some(changeset),
        };
        let checked = shop.check(parcel, &grants).unwrap();
        assert_eq!(checked, taken.checked);
        let host = Host::open(&shop.git, &shop.home()).unwrap();
        let subject = snapshot_of_bundle(&shop.git, &host, &checked, folder().path()).unwrap();
        assert_eq!(subject.0, taken.captured.snapshot);
        let clearance = Clearance::uncertified(&checked, "main").unwrap();
        let mut ledger = Ledger::open(&shop.temp.path().join("state")).unwrap();
        assert!(
            admit(&shop.git, &host, &mut ledger, &clearance, now())
                .unwrap()
                .landed
        );
        let home = shop.home();
        assert_eq!(std::fs::read(home.join(NEW)).unwrap(), noise(3, 5 << 20));
        let run = |words: &[&str]| run_git(&shop.program, &home, words);
        assert_eq!(run(&["status", "--porcelain"]), "");
        assert_eq!(run(&["rev-parse", "main"]), taken.captured.head.to_string());
        run(&["fsck", "--strict", "--full"]);
    }
}

#[test]
fn small_files_stay_in_the_bundle_and_one_without_large_files_is_as_ever() {
    let shop = Shop::with(&programs()[0], |top| {
        write(top, "src/lib.rs", b"pub fn a() -> u8 { 2 }\n");
        std::fs::remove_file(top.join("data/old.bin")).unwrap();
        executable(&top.join(BIG));
    });
    let usual = shop.capture(&Grants::default());
    // The mode of a large file changes: its bytes are looked at, and do not travel.
    assert_eq!(usual.unwrap_err().code, ImporterCode::BytesOverLimit);
    let taken = shop.capture(&large(&["data"])).unwrap();
    assert_eq!(taken.changeset, None);
    assert!(
        shop.check(Parcel::bundle(&taken.bundle), &large(&["data"]))
            .is_ok()
    );
}

#[test]
fn a_changeset_brings_nothing_but_the_files_of_the_commit() {
    use ImporterCode::{ChangesetDiffers, ChangesetMalformed, LargeNotGranted, ObjectMissing};
    let shop = Shop::new(&programs()[0]);
    let grants = large(&["data"]);
    let taken = shop.capture(&grants).unwrap();
    let honest = taken.changeset.clone().unwrap();
    let (one, two, three, four) = (
        noise(1, 3 << 20),
        noise(2, 3 << 20),
        noise(3, 5 << 20),
        noise(4, 1 << 10),
    );
    let old: Vec<File<'_>> = vec![(BIG, false, &one), (TOOL, false, b"#!/bin/sh\n")];
    let new: Vec<File<'_>> = vec![
        (NEW, false, &three),
        (BIG, false, &two),
        (TOOL, true, &four),
    ];
    assert_eq!(
        forged("import", &old, &new),
        honest,
        "the forge makes what is accepted"
    );
    let with = |at: usize, file: File<'static>| {
        let mut new = new.clone();
        new[at] = file;
        forged("import", &old, &new)
    };
    let also = |file: File<'static>| forged("import", &old, &[&new[..], &[file]].concat());
    let other = noise(9, 3 << 20);
    let mut flipped = honest.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let cases: Vec<(&str, Vec<u8>, ImporterCode)> = vec![
        ("nothing", Vec::new(), ChangesetMalformed),
        (
            "one byte short",
            honest[..honest.len() - 1].to_vec(),
            ChangesetMalformed,
        ),
        (
            "one byte more",
            [&honest[..], b"\0"].concat(),
            ChangesetMalformed,
        ),
        ("another byte", flipped, ChangesetMalformed),
        (
            "a snapshot",
            paws::pack("import", [(path(NEW), false, &three)])
                .unwrap()
                .bytes,
            ChangesetMalformed,
        ),
        (
            "other content",
            forged("import", &old, &[new[0], (BIG, false, &other), new[2]]),
            ChangesetDiffers,
        ),
        (
            "two files for one another",
            forged(
                "import",
                &old,
                &[(NEW, false, &two), (BIG, false, &three), new[2]],
            ),
            ChangesetDiffers,
        ),
        ("another mode", with(0, (NEW, true, b"x")), ChangesetDiffers),
        (
            "an executable that is none",
            forged("import", &old, &[new[0], new[1], (TOOL, false, &four)]),
            ChangesetDiffers,
        ),
        (
            "a file of nobody",
            also(("data/more", false, b"more")),
            ChangesetDiffers,
        ),
        (
            "a file below a file",
            also(("data/old.bin/x", false, b"more")),
            ChangesetDiffers,
        ),
        (
            "a file that was deleted",
            also(("data/old.bin", false, b"more")),
            ChangesetDiffers,
        ),
        (
            "a file where a folder is",
            forged(
                "import",
                &old,
                &[new[1], new[2], ("data/deep", false, b"x")],
            ),
            ChangesetDiffers,
        ),
        (
            "a file outside",
            also(("src/lib.rs", false, b"pub fn a() -> u8 { 2 }\n")),
            LargeNotGranted,
        ),
        (
            "beside by name only",
            also(("database", false, b"x")),
            LargeNotGranted,
        ),
        (
            "a deletion as well",
            forged(
                "import",
                &[&old[..], &[("data/old.bin", false, b"x")]].concat(),
                &new,
            ),
            ChangesetDiffers,
        ),
        (
            "another base",
            forged("import", &[(BIG, false, b"lie"), old[1]], &new),
            ChangesetDiffers,
        ),
        (
            "no base",
            forged("import", &old[1..], &new),
            ChangesetDiffers,
        ),
        (
            "another workspace",
            forged("other", &old, &new),
            ChangesetDiffers,
        ),
        (
            "one file too few",
            forged("import", &old, &new[..2]),
            ObjectMissing,
        ),
    ];
    for (what, changeset, expected) in cases {
        assert_eq!(shop.code(&taken, &changeset, &grants), expected, "{what}");
    }
    let alone = shop.check(Parcel::bundle(&taken.bundle), &grants);
    assert_eq!(alone.unwrap_err().code, ObjectMissing);
    assert_eq!(
        shop.code(&taken, &honest, &Grants::default()),
        LargeNotGranted
    );
    let elsewhere = Grants::new([path("src")]).with_large([path("data")]);
    assert_eq!(
        shop.code(&taken, &honest, &elsewhere),
        ImporterCode::PathNotGranted
    );
}

#[test]
fn an_unchanged_file_does_not_travel() {
    let shop = Shop::new(&programs()[0]);
    let grants = large(&["data", "src"]);
    // A commit of small files only, and a changeset that brings what the tree has anyway.
    let plain = Shop::with(&programs()[0], |top| write(top, "README", b"words\n"));
    let taken = plain.capture(&grants).unwrap();
    assert_eq!(taken.changeset, None);
    let big = noise(1, 3 << 20);
    for old in [vec![], vec![(BIG, true, &big[..])]] {
        let idle = forged("import", &old, &[(BIG, false, &big)]);
        assert_eq!(
            plain.code(&taken, &idle, &grants),
            ImporterCode::ObjectUnreached
        );
    }
    let empty = forged("import", &[], &[]);
    assert_eq!(
        plain.code(&taken, &empty, &grants),
        ImporterCode::ChangesetDiffers
    );
    // With one that needs it, the same file is one too many.
    let taken = shop.capture(&grants).unwrap();
    let lib: File<'_> = ("src/lib.rs", false, b"pub fn a() -> u8 { 2 }\n");
    let before: File<'_> = ("src/lib.rs", false, b"pub fn a() -> u8 { 1 }\n");
    let both = forged("import", &[before], &[lib]);
    assert_eq!(
        shop.code(&taken, &both, &grants),
        ImporterCode::ObjectMissing
    );
}

#[test]
fn large_has_limits_too() {
    let huge = Shop::with(&programs()[0], |top| {
        write(top, NEW, &noise(3, (16 << 20) + 1))
    });
    let refused = huge.capture(&large(&["data"])).unwrap_err();
    assert_eq!(refused.code, ImporterCode::BytesOverLimit);
    let changeset = forged("import", &[], &[(NEW, false, &vec![0; (16 << 20) + 1])]);
    let usual = Shop::with(&programs()[0], |top| write(top, NEW, b"x"));
    let taken = usual.capture(&large(&["data"])).unwrap();
    assert_eq!(
        usual.code(&taken, &changeset, &large(&["data"])),
        ImporterCode::ChangesetDiffers
    );
    let names: Vec<String> = (0..1_025).map(|n| format!("data/{n:05}")).collect();
    let many: Vec<File<'_>> = names
        .iter()
        .map(|name| (name.as_str(), false, &b"x"[..]))
        .collect();
    let many = forged("import", &[], &many);
    assert_eq!(
        usual.code(&taken, &many, &large(&["data"])),
        ImporterCode::ChangesOverLimit
    );
    let over = vec![0; Arrival::LARGEST_CHANGESET + 1];
    assert_eq!(
        usual.code(&taken, &over, &large(&["data"])),
        ImporterCode::BytesOverLimit
    );
    // The same bytes at a path that is not granted are charged to the usual limit.
    let copied = Shop::with(&programs()[0], |top| {
        write(top, NEW, &noise(3, 3 << 20));
        write(top, "src/copy.bin", &noise(3, 3 << 20));
    });
    let refused = copied.capture(&large(&["data"])).unwrap_err();
    assert_eq!(refused.code, ImporterCode::BytesOverLimit);
}

#[test]
fn a_commit_of_a_repository_too_large_to_be_judged_whole_is_packed_all_the_same() {
    let shop = Shop::with(&programs()[0], |top| write(top, "README", b"words\n"));
    let top = shop.temp.path().join("wide");
    std::fs::create_dir(&top).unwrap();
    let run = |words: &[&str]| run_git(&shop.program, &top, words);
    run(&["init", "-q"]);
    for n in 0..20_100 {
        write(&top, &format!("d{}/f{n:05}", n / 100), b"x");
    }
    run(&["add", "-A"]);
    run(&["commit", "-q", "-m", "baseline"]);
    std::fs::write(top.join("d0/f00001"), b"y").unwrap();
    run(&["commit", "-q", "-a", "-m", "work"]);
    let host = Host::open(&shop.git, &top).unwrap();
    let scratch = folder();
    let request = CaptureRequest {
        name: "test",
        baseline: "HEAD~1",
        candidate: "HEAD",
        grants: &Grants::default(),
        identity: None,
        squash: false,
        scratch: scratch.path(),
        now: now(),
    };
    let packed = pack_commit(&shop.git, &host, &request).unwrap();
    assert_eq!(packed.checked.changes().len(), 1);
}
