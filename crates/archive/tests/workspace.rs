//! What of a working directory travels, and what is listed as left out.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made is a failed test"
)]

use flightproof_archive::{
    ArchiveCode, Choice, HEAD_BYTES, LeftOut, Reason, Selection, Workspace, paws,
};
use flightproof_core::RelPath;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Asks the choice about everything below a directory, as the lister does: the paths that travel.
fn walk(root: &Path, choice: &mut Workspace) -> Result<Vec<String>, ArchiveCode> {
    fn directory(
        dir: &Path,
        path: Option<&RelPath>,
        choice: &mut Workspace,
        out: &mut Vec<String>,
    ) -> Result<(), ArchiveCode> {
        let opened = File::open(dir).unwrap();
        choice.enter(opened.as_fd(), path).map_err(|e| e.code)?;
        let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(Result::unwrap).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().into_string().unwrap();
            let below = path.map_or(name.clone(), |path| format!("{}/{name}", path.as_str()));
            let below = RelPath::new(&below).unwrap();
            let kind = entry.file_type().unwrap();
            let kind = match (kind.is_dir(), kind.is_symlink()) {
                (true, _) => FileType::Directory,
                (_, true) => FileType::Symlink,
                _ => FileType::RegularFile,
            };
            if !choice.admits(&below, kind).map_err(|e| e.code)?
                || reveals(choice, &below, kind, &entry.path())
            {
                continue;
            }
            match kind {
                FileType::Directory => directory(&entry.path(), Some(&below), choice, out)?,
                _ => out.push(below.as_str().to_owned()),
            }
        }
        choice.leave();
        Ok(())
    }
    let mut out = Vec::new();
    directory(root, None, choice, &mut out)?;
    out.sort();
    Ok(out)
}

/// What reading the file would tell.
fn reveals(choice: &Workspace, path: &RelPath, kind: FileType, file: &Path) -> bool {
    if kind != FileType::RegularFile {
        return false;
    }
    let bytes = fs::read(file).unwrap();
    let head = bytes.get(..HEAD_BYTES).unwrap_or(&bytes);
    !choice.admits_content(path, bytes.len() as u64, head)
}

fn chosen_with(root: &Path, deny: &[&str], admit: &[&str]) -> (Vec<String>, Selection) {
    let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let mut choice = Workspace::new(&owned(deny), &owned(admit)).unwrap();
    let paths = walk(root, &mut choice).unwrap();
    (paths, choice.into_selection())
}

fn chosen(root: &Path) -> (Vec<String>, Vec<LeftOut>) {
    let (paths, selection) = chosen_with(root, &[], &[]);
    (paths, selection.left_out)
}

fn denied_names(left_out: &[LeftOut]) -> Vec<&str> {
    let denied = left_out
        .iter()
        .filter(|l| matches!(l.reason, Reason::Denied { .. }));
    denied.map(|l| l.path.as_str()).collect()
}

#[test]
fn what_is_left_out_is_listed_by_path_and_reason_and_a_directory_is_one_line() {
    let root = TempDir::new().unwrap();
    for path in [
        "src/a.rs",
        "target/debug/x",
        "target/y",
        "sub/keep.log",
        "sub/b.log",
        ".env",
        ".git/config",
        "deep/.git",
    ] {
        write(root.path(), path, "x");
    }
    write(root.path(), ".gitignore", "# built\n/target/\n*.log\n");
    write(root.path(), "sub/.gitignore", "!keep.log\n");
    let (paths, left_out) = chosen(root.path());
    assert_eq!(
        paths,
        [".gitignore", "src/a.rs", "sub/.gitignore", "sub/keep.log"]
    );
    let ignored = |line, pattern: &str| Reason::Ignored {
        file: ".gitignore".to_owned(),
        line,
        pattern: pattern.to_owned(),
    };
    let expected = [
        (
            ".env",
            false,
            Reason::Denied {
                rule: ".env".to_owned(),
            },
        ),
        (".git", true, Reason::Git),
        ("deep/.git", false, Reason::Git),
        ("sub/b.log", false, ignored(3, "*.log")),
        ("target", true, ignored(2, "/target/")),
    ];
    let expected = expected.map(|(path, directory, reason)| LeftOut {
        path: RelPath::new(path).unwrap(),
        directory,
        reason,
    });
    assert_eq!(left_out, expected);
}

#[test]
fn secrets_stay_home_in_every_letter_case() {
    let secrets = [
        ".env",
        ".ENV",
        ".env.local",
        ".env.production",
        "prod.env",
        ".envrc",
        "id_rsa",
        "ID_RSA",
        "id_ed25519",
        "deploy_ed25519",
        "server.pem",
        "tls.KEY",
        "a.p12",
        "a.pfx",
        "a.p8",
        "a.ppk",
        "release.keystore",
        "a.jks",
        "passwords.kdbx",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".git-credentials",
        ".htpasswd",
        ".vault-token",
        ".dockercfg",
        ".aws/credentials",
        "home/.AWS/Credentials",
        ".docker/config.json",
        ".kube/config",
        "kubeconfig",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        "credentials.json",
        "client_secret_1.json",
        "service-account-prod.json",
        "terraform.tfstate",
        "prod.tfvars",
        ".config/gh/hosts.yml",
        "secrets.yaml",
        // Fullwidth letters, which some file systems and every reader take for ASCII.
        ".\u{ff45}nv",
    ];
    let twins = [
        ".env.example",
        ".env.local.example",
        ".env.sample",
        ".env.template",
        "example.env",
        ".environment",
        "env",
        "id_rsa.pub",
        "id_ed25519.pub",
        "src/id_rsa/mod.rs",
        "keys.rs",
        "pem",
        "key",
        "config.json",
        "docker/config.json",
        "kube/config",
        "credentials.rs",
        "credentials/mod.rs",
        "crates/signer_rsa/lib.rs",
        ".config/x",
        "npmrc",
        "secrets.rs",
        "signer.pem/README",
    ];
    let root = TempDir::new().unwrap();
    for path in secrets.iter().chain(&twins) {
        // Each in a directory of its own, so that names that fold to one can all be there.
        let number = secrets
            .iter()
            .chain(&twins)
            .position(|p| p == path)
            .unwrap();
        write(root.path(), &format!("{number:03}/{path}"), "x");
    }
    let (paths, left_out) = chosen(root.path());
    let shown: Vec<&str> = paths.iter().map(|p| p.split_once('/').unwrap().1).collect();
    assert_eq!(shown, twins);
    let denied: Vec<&str> = denied_names(&left_out);
    let denied: Vec<&str> = denied
        .iter()
        .map(|p| p.split_once('/').unwrap().1)
        .collect();
    assert_eq!(denied, secrets);
}

#[test]
fn directories_of_keys_are_one_line() {
    let root = TempDir::new().unwrap();
    for path in [".ssh/config", ".gnupg/pubring.kbx", "a/.SSH/known_hosts"] {
        write(root.path(), path, "x");
    }
    let (paths, left_out) = chosen(root.path());
    assert!(paths.is_empty(), "{paths:?}");
    assert_eq!(denied_names(&left_out), [".gnupg", ".ssh", "a/.SSH"]);
}

#[test]
fn a_private_key_stays_home_under_any_name() {
    let keys = [
        ("deploy", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n"),
        ("notes.txt", "\n  -----BEGIN RSA PRIVATE KEY-----\r\nMIIE\n"),
        ("pkcs8", "-----BEGIN PRIVATE KEY-----\nMIIE\n"),
        ("bom", "\u{feff}-----BEGIN EC PRIVATE KEY-----\nMHcC\n"),
        ("pgp.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ\n"),
        ("putty", "PuTTY-User-Key-File-3: ssh-ed25519\n"),
        ("age.txt", "AGE-SECRET-KEY-1QQ\n"),
        (
            "keygen.txt",
            "# created: 2026\n# public key: age1\nAGE-SECRET-KEY-1QQ\n",
        ),
        (
            "curve",
            "-----BEGIN EC PARAMETERS-----\nBg==\n-----END EC PARAMETERS-----\n-----BEGIN EC PRIVATE KEY-----\nMHc\n",
        ),
        (
            "both.crt",
            "Bag Attributes\n    friendlyName: x\nsubject=CN = x\n-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nMIIE\n",
        ),
        ("mac", "-----BEGIN RSA PRIVATE KEY-----\rMIIE\r"),
        (
            "ssh2",
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: x\n",
        ),
        (
            "no-end.crt",
            "-----BEGIN CERTIFICATE-----\nAA\n-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n",
        ),
        (
            "damaged-end.crt",
            "-----BEGIN CERTIFICATE-----\nAA\n----END CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----\nMHcC\n",
        ),
        (
            "no-end.age",
            "-----BEGIN CERTIFICATE-----\nAA\nAGE-SECRET-KEY-1QQ\n",
        ),
        (
            "ssh2.pub",
            "---- BEGIN SSH2 PUBLIC KEY ----\nAA\n---- END SSH2 PUBLIC KEY ----\n-----BEGIN PRIVATE KEY-----\nMIIE\n",
        ),
        (
            "misleading.crt",
            "-----BEGIN CERTIFICATE----- # not PRIVATE\nAA\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nMIIE\n",
        ),
        (
            "remark",
            "-----BEGIN RSA PRIVATE KEY----- # mine, of /home/me\nMIIE\n",
        ),
        ("tabs", "\u{b}-----BEGIN PRIVATE KEY-----\u{b}\nMIIE\n"),
        ("utf16", "\u{fffd}"),
    ];
    let twins = [
        ("public.crt", "-----BEGIN CERTIFICATE-----\nMIIE\n"),
        ("pub.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ\n"),
        (
            "reader.rs",
            "const BEGIN: &str = \"-----BEGIN PRIVATE KEY-----\";\n",
        ),
        (
            "bundle.crt",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\nkeys follow\n-----BEGIN PRIVATE KEY-----\n",
        ),
        ("empty", ""),
    ];
    let root = TempDir::new().unwrap();
    for (path, content) in keys.iter().chain(&twins) {
        write(root.path(), path, content);
    }
    let wide = "-----BEGIN PRIVATE KEY-----\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes);
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(wide).collect();
    fs::write(root.path().join("utf16"), wide).unwrap();
    let out = TempDir::new().unwrap();
    let output = out.path().join("packed");
    let mut choice = Workspace::new(&[], &["notes.txt".to_owned()]).unwrap();
    let packed = paws::pack_file(root.path(), "w", &mut choice, &output, &()).unwrap();
    let bytes = fs::read(&output).unwrap();
    assert_eq!(paws::read(&bytes).unwrap().snapshot, packed);
    let paths = packed.entries().iter().map(|entry| entry.path.as_str());
    let mut expected: Vec<_> = twins.map(|(path, _)| path).into();
    expected.push("notes.txt");
    expected.sort_unstable();
    assert_eq!(paths.collect::<Vec<_>>(), expected);
    let selection = choice.into_selection();
    let mut expected: Vec<_> = keys.map(|(path, _)| path).into();
    expected.retain(|path| *path != "notes.txt");
    expected.sort_unstable();
    assert_eq!(denied_names(&selection.left_out), expected);
    let admitted = selection
        .admitted
        .iter()
        .map(|a| (a.path.as_str(), a.pattern.as_str()));
    assert_eq!(admitted.collect::<Vec<_>>(), [("notes.txt", "notes.txt")]);
    // Not a byte of a key is in the file, also not behind its end.
    assert!(
        !bytes
            .windows(5)
            .any(|window| window == b"OPENS" || window == b"PuTTY")
    );
}

#[test]
fn a_private_key_stays_home_wherever_it_falls_in_what_is_read_at_once() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n";
    for before in [(256 << 10) - 10, (256 << 10) - key.len(), 256 << 10] {
        let root = TempDir::new().unwrap();
        let (tree, output) = (root.path().join("tree"), root.path().join("out"));
        write(&tree, "a", "x".repeat(before));
        write(&tree, "b", key);
        let mut choice = Workspace::new(&[], &[]).unwrap();
        paws::pack_file(&tree, "w", &mut choice, &output, &()).unwrap();
        let left_out = choice.into_selection().left_out;
        assert_eq!(denied_names(&left_out), ["b"], "{before}");
    }
}

#[test]
fn a_key_that_came_into_the_directory_is_in_no_changeset_and_one_of_the_base_is_refused() {
    let root = TempDir::new().unwrap();
    let output = root.path().join("out");
    let tree = root.path().join("tree");
    write(&tree, "a", "text\n");
    let mut choice = Workspace::new(&[], &[]).unwrap();
    let base = paws::pack_file(&tree, "w", &mut choice, &output, &()).unwrap();
    let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n";
    write(&tree, "b", key);
    let mut choice = Workspace::new(&[], &[]).unwrap();
    let compared = paws::changeset_between(&base, &tree, &mut choice, &output, &()).unwrap();
    assert!(compared.changeset.changes().is_empty());
    assert_eq!(denied_names(&choice.into_selection().left_out), ["b"]);
    write(&tree, "a", key);
    let mut choice = Workspace::new(&[], &[]).unwrap();
    let refused = paws::changeset_between(&base, &tree, &mut choice, &output, &());
    assert_eq!(refused.unwrap_err().code, ArchiveCode::BaseLeftOut);
}

#[test]
fn no_gitignore_takes_a_secret_back() {
    let root = TempDir::new().unwrap();
    write(root.path(), ".gitignore", "!.env\n!*.pem\n!sub/\n!**\n");
    write(root.path(), ".env", "x");
    write(root.path(), "sub/server.pem", "x");
    let (paths, left_out) = chosen(root.path());
    assert_eq!(paths, [".gitignore"]);
    assert_eq!(denied_names(&left_out), [".env", "sub/server.pem"]);
}

#[test]
fn the_caller_may_deny_more_and_admit_what_is_no_secret_and_both_are_listed() {
    let root = TempDir::new().unwrap();
    for path in [
        "tests/data/public.pem",
        "other.pem",
        "plan.secret",
        ".ssh/config",
        "a/.env",
    ] {
        write(root.path(), path, "x");
    }
    let admit = ["tests/data/public.pem", ".ssh/"];
    let (paths, selection) = chosen_with(root.path(), &["*.secret"], &admit);
    assert_eq!(paths, [".ssh/config", "tests/data/public.pem"]);
    assert!(selection.idle.is_empty(), "{:?}", selection.idle);
    assert_eq!(
        denied_names(&selection.left_out),
        ["a/.env", "other.pem", "plan.secret"]
    );
    let admitted = selection.admitted.iter();
    let admitted: Vec<_> = admitted
        .map(|a| (a.path.as_str(), a.rule.as_str(), a.pattern.as_str()))
        .collect();
    assert_eq!(
        admitted,
        [
            (".ssh", ".ssh/", ".ssh/"),
            ("tests/data/public.pem", "*.pem", "tests/data/public.pem")
        ]
    );
}

#[test]
fn rules_that_decided_nothing_are_named() {
    let root = TempDir::new().unwrap();
    for path in ["public.pem", "plan.secret"] {
        write(root.path(), path, "x");
    }
    let deny = ["*.secret", "*.none"];
    let (_, selection) = chosen_with(root.path(), &deny, &["public.pem", "nowhere.pem"]);
    assert_eq!(selection.idle, ["*.none", "nowhere.pem"]);
}

#[test]
fn a_key_that_is_admitted_for_its_name_and_its_content_is_listed_once() {
    let root = TempDir::new().unwrap();
    for path in ["test.pem", "notes.txt"] {
        write(root.path(), path, "-----BEGIN PRIVATE KEY-----\nMIIE\n");
    }
    let (_, selection) = chosen_with(root.path(), &[], &["test.pem", "notes.txt"]);
    let admitted = selection.admitted.iter().map(|a| a.path.as_str());
    assert_eq!(admitted.collect::<Vec<_>>(), ["notes.txt", "test.pem"]);
}

#[test]
fn only_a_file_as_long_as_a_key_can_be_is_looked_into() {
    let choice = Workspace::new(&[], &[]).unwrap();
    let path = RelPath::new("deploy").unwrap();
    let key = b"-----BEGIN PRIVATE KEY-----\nMIIE\n";
    for (size, travels) in [(64 << 10, false), ((64 << 10) + 1, true), (1 << 30, true)] {
        assert_eq!(choice.admits_content(&path, size, key), travels, "{size}");
    }
}

#[test]
fn the_rules_of_a_directory_end_with_it() {
    let root = TempDir::new().unwrap();
    write(root.path(), "a/.gitignore", "*.log\n");
    for path in ["a/x.log", "b/x.log", "z.log"] {
        write(root.path(), path, "x");
    }
    let (paths, _) = chosen(root.path());
    assert_eq!(paths, ["a/.gitignore", "b/x.log", "z.log"]);
}

#[test]
fn a_rule_that_can_match_nothing_is_refused() {
    for rule in ["", "/", "/a", "a//b", "**/a", "a/**", "!"] {
        for (deny, admit) in [
            (vec![rule.to_owned()], vec![]),
            (vec![], vec![rule.to_owned()]),
        ] {
            let refused = Workspace::new(&deny, &admit).unwrap_err();
            assert_eq!(refused.code, ArchiveCode::DenyRuleInvalid, "{rule:?}");
        }
    }
    assert!(Workspace::new(&["a/b".to_owned()], &["c/".to_owned()]).is_ok());
}

#[test]
fn a_gitignore_that_no_person_wrote_is_refused() {
    let root = TempDir::new().unwrap();
    for content in ["a\n".repeat(10_001), "a".repeat((1 << 20) + 1)] {
        write(root.path(), ".gitignore", content);
        let refused = walk(root.path(), &mut Workspace::new(&[], &[]).unwrap());
        assert_eq!(refused, Err(ArchiveCode::IgnoreFileTooLarge));
    }
    for content in [
        "a\n".repeat(10_000),
        "a".repeat(10_001),
        "a".repeat(1 << 20),
    ] {
        write(root.path(), ".gitignore", content);
        assert!(walk(root.path(), &mut Workspace::new(&[], &[]).unwrap()).is_ok());
    }
}

#[test]
fn gitignores_made_to_be_slow_are_refused_by_name() {
    let stars = format!("{}*b\n", "*a".repeat(51)).repeat(9_900);
    let skips = format!("{}b\n", "**/a*".repeat(20)).repeat(9_900);
    let set = format!("*[{}]*[{0}]0\n", "x-z".repeat(30_000)).repeat(5);
    let alike = format!("?{}?b*\n", "a".repeat(99)).repeat(9_900);
    for rules in [stars, skips, set, alike] {
        let root = TempDir::new().unwrap();
        write(root.path(), ".gitignore", "target\n*.log\n");
        write(root.path(), "sub/.gitignore", rules);
        for number in 0..20 {
            let name = format!("sub/b{}{number:03}", "a".repeat(240));
            write(root.path(), &name, "x");
        }
        let choice = &mut Workspace::new(&[], &[]).unwrap();
        let out = TempDir::new().unwrap();
        let out = out.path().join("out");
        let refused = paws::pack_file(root.path(), "ws", choice, &out, &()).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::IgnoreRulesTooSlow);
        assert_eq!(refused.detail, "\"sub/.gitignore\"");
    }
}

#[test]
fn honest_rules_of_a_large_tree_are_not_slow() {
    const RULES: [&str; 12] = [
        "target",
        "/build/",
        "*.o",
        "*.log",
        "*.py[cod]",
        "[Dd]ebug*/",
        "!keep.log",
        "**/node_modules/**",
        "docs/**/*.html",
        "**/[Bb]in/[Rr]elease*/*",
        "cmake-build-*/",
        "/src/*/generated/*.rs",
    ];
    // A list of some thousand lines, each rule a little different.
    let rules: String = (0..3_000)
        .map(|line| format!("{}{}\n", RULES[line % RULES.len()], line / RULES.len()))
        .collect();
    let root = TempDir::new().unwrap();
    write(root.path(), ".gitignore", rules);
    let mut choice = Workspace::new(&[], &[]).unwrap();
    choice
        .enter(File::open(root.path()).unwrap().as_fd(), None)
        .unwrap();
    for number in 0..400 {
        let path = format!(
            "crates/archive/src/workspace/part{}/module_{number}.rs",
            number % 7
        );
        let path = RelPath::new(&path).unwrap();
        assert!(choice.admits(&path, FileType::RegularFile).unwrap());
    }
}

#[test]
fn a_gitignore_that_is_a_link_or_a_directory_says_nothing_as_with_git() {
    let root = TempDir::new().unwrap();
    write(root.path(), "rules", "a\n");
    write(root.path(), "a", "x");
    symlink("rules", root.path().join(".gitignore")).unwrap();
    write(root.path(), "sub/.gitignore/x", "x");
    write(root.path(), "sub/a", "x");
    let (paths, _) = chosen(root.path());
    assert_eq!(
        paths,
        [".gitignore", "a", "rules", "sub/.gitignore/x", "sub/a"]
    );
}

#[test]
fn a_gitignore_that_is_a_pipe_says_nothing_and_is_not_waited_for() {
    let root = TempDir::new().unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let path = root.path().join(".gitignore");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let mut choice = Workspace::new(&[], &[]).unwrap();
    let opened = File::open(root.path()).unwrap();
    assert_eq!(choice.enter(opened.as_fd(), None), Ok(()));
    let path = RelPath::new("a").unwrap();
    assert_eq!(choice.admits(&path, FileType::RegularFile), Ok(true));
}

#[test]
fn a_working_directory_is_packed_by_its_rules_and_links_that_travel_are_refused() {
    let root = TempDir::new().unwrap();
    for path in ["a", "build/x", ".env", ".git/HEAD"] {
        write(root.path(), path, "x");
    }
    write(root.path(), ".gitignore", "build/\nlink\npipe\n");
    symlink("/etc", root.path().join("link")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mknodat(rustix::fs::CWD, root.path().join("pipe"), fifo, mode, 0).unwrap();
    let output = root.path().join("build/archive");
    let pack = || {
        let mut choice = Workspace::new(&[], &[]).unwrap();
        let packed = paws::pack_file(root.path(), "w", &mut choice, &output, &());
        (packed, choice.into_selection())
    };
    let (packed, selection) = pack();
    let packed = packed.unwrap();
    let paths: Vec<&str> = packed.entries().iter().map(|e| e.path.as_str()).collect();
    assert_eq!(paths, [".gitignore", "a"]);
    let left_out: Vec<&str> = selection.left_out.iter().map(|l| l.path.as_str()).collect();
    assert_eq!(left_out, [".env", ".git", "build", "link", "pipe"]);
    symlink("a", root.path().join("travels")).unwrap();
    assert_eq!(pack().0.unwrap_err().code, ArchiveCode::SymlinkRefused);
}

#[test]
fn a_captured_tree_travels_whole_with_what_a_working_directory_would_leave_out() {
    let files = [".env", ".gitignore", "id_rsa", "target/x"];
    let content = |path: &str| if path == ".gitignore" { "*\n" } else { "x" };
    let tree = files.map(|path| (RelPath::new(path).unwrap(), false, content(path)));
    let packed = paws::pack("w", tree).unwrap();
    let read = paws::read(&packed.bytes).unwrap();
    let paths: Vec<&str> = read
        .snapshot
        .entries()
        .iter()
        .map(|e| e.path.as_str())
        .collect();
    assert_eq!(paths, files);
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64*, whose upper bits are good enough here.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(drawn).unwrap() % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const NAMES: &[&str] = &[
    "a", "b", "ab", "abc", "a-b", "a.b", "foo", "foobar", "x.log", "é", "a b", "a ", "[a]", "#a",
    "!a", "*", "a*b", "A", "bar",
];
const ATOMS: &[&str] = &[
    "a",
    "b",
    "ab",
    "foo",
    "bar",
    ".log",
    "x",
    "é",
    "-",
    ".",
    " ",
    "*",
    "*",
    "**",
    "?",
    "/",
    "/",
    "/",
    "**/",
    "/**",
    "/**/",
    "[ab]",
    "[!a]",
    "[^a-c]",
    "[a-c]",
    "[]a]",
    "[[:alpha:]]",
    "[[:punct:]]",
    "[[:nope:]]",
    "[a",
    "[[:a]",
    "[a-]",
    "[\\]a]",
    "\\a",
    "\\*",
    "\\[",
    "\\#",
    "\\!",
    "\\ ",
    "\\",
    "#",
    "!",
    "A",
];

/// Half of the patterns come from the names that are there, with one part made a wildcard.
fn pattern(dice: &mut Dice) -> String {
    let mut text = String::new();
    if dice.roll(4) == 0 {
        text.push('!');
    }
    let near = dice.roll(2) == 0;
    for at in 0..=dice.roll(if near { 2 } else { 4 }) {
        if near {
            text.push_str(if at > 0 || dice.roll(4) == 0 { "/" } else { "" });
            let other = dice.pick(ATOMS).replace('/', "");
            let name = dice.pick(NAMES);
            let cut = name.char_indices().nth(1).map_or(name.len(), |(at, _)| at);
            let (first, rest) = name.split_at(cut);
            let parts = [
                [first, rest],
                [&other, rest],
                [first, &other],
                ["*", ""],
                ["**", ""],
            ];
            text.push_str(&parts[dice.roll(5)].concat());
        } else {
            text.push_str(dice.pick(ATOMS));
        }
    }
    text.push_str(dice.pick(&["", "", "", "/", " ", "\t", "\r"]));
    text
}

/// A tree with rules at several levels.
fn plant(root: &Path, dice: &mut Dice) {
    for _ in 0..12 {
        let depth = 1 + dice.roll(3);
        let segments: Vec<&str> = (0..depth).map(|_| dice.pick(NAMES)).collect();
        let path = root.join(segments.join("/"));
        if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() {
            // A file may stand where this one needs a directory: then there is one path less.
            let _ = fs::write(path, "");
        }
    }
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() && entry.file_name() != ".git" {
                directories.push(entry.path());
            }
        }
        if directory == root || dice.roll(4) == 0 {
            let lines: Vec<String> = (0..1 + dice.roll(3)).map(|_| pattern(dice)).collect();
            fs::write(directory.join(".gitignore"), lines.join("\n")).unwrap();
        }
    }
}

fn git(root: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("git")
        .current_dir(root)
        .args([
            "-c",
            "core.excludesFile=/dev/null",
            "-c",
            "core.ignoreCase=false",
        ])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git must be installed");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    // check-ignore says 1 where no path is ignored.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}");
    output.stdout
}

/// Path to the file and line that ignore it, for all ignored paths: git's answer.
fn gits_answer(
    repository: &Path,
    root: &Path,
    paths: &[String],
) -> BTreeMap<String, (String, u32)> {
    let input = paths.join("\0");
    let store = format!("--git-dir={}", repository.join(".git").display());
    let args = [
        &store,
        "--work-tree=.",
        "check-ignore",
        "-z",
        "-v",
        "--stdin",
    ];
    let output = git(root, &args, input.as_bytes());
    let output = String::from_utf8(output).unwrap();
    let fields: Vec<&str> = output.split('\0').collect();
    let answers = fields.chunks_exact(4);
    let ignored = answers.filter(|answer| !answer[2].starts_with('!'));
    ignored
        .map(|a| (a[3].to_owned(), (a[0].to_owned(), a[1].parse().unwrap())))
        .collect()
}

/// Ours: the reason of a directory goes for all below it.
fn our_answer(root: &Path, paths: &[String]) -> BTreeMap<String, (String, u32)> {
    let (_, left_out) = chosen(root);
    let mut out = BTreeMap::new();
    for path in paths {
        let path = RelPath::new(path).unwrap();
        if let Some(found) = left_out.iter().find(|l| path.is_within(&l.path))
            && let Reason::Ignored { file, line, .. } = &found.reason
        {
            out.insert(path.as_str().to_owned(), (file.clone(), *line));
        }
    }
    out
}

fn all_paths(root: &Path) -> Vec<String> {
    let mut out = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_name() != ".git" {
                let path = entry.path();
                out.push(
                    path.strip_prefix(root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
                if path.is_dir() {
                    open.push(path);
                }
            }
        }
    }
    out.sort();
    out
}

/// Trees compared with git, each with its own rules.
const CASES: u64 = 400;

#[test]
fn git_ignores_exactly_what_we_leave_out_by_the_same_line_of_the_same_file() {
    let (mut ignored, mut kept) = (0, 0);
    let repository = TempDir::new().unwrap();
    git(repository.path(), &["init", "-q", "--template="], b"");
    for seed in 1..=CASES {
        let root = TempDir::new().unwrap();
        plant(root.path(), &mut Dice(seed));
        let paths = all_paths(root.path());
        let theirs = gits_answer(repository.path(), root.path(), &paths);
        let ours = our_answer(root.path(), &paths);
        assert_eq!(ours, theirs, "seed {seed}: {}", rules(root.path(), &paths));
        ignored += theirs.len();
        kept += paths.len() - theirs.len();
    }
    // The generator reaches both.
    assert!(
        ignored > 1_000 && kept > 1_000,
        "{ignored} ignored, {kept} kept"
    );
}

#[test]
fn two_stars_cross_directories_where_they_do_with_git() {
    let repository = TempDir::new().unwrap();
    git(repository.path(), &["init", "-q", "--template="], b"");
    let root = TempDir::new().unwrap();
    for path in ["ax/y/b", "c/x/y/d", "e/x/f"] {
        write(root.path(), path, "x");
    }
    write(root.path(), ".gitignore", "a**/b\n?/**/d\ne**f\n");
    let paths = all_paths(root.path());
    let ours = our_answer(root.path(), &paths);
    assert_eq!(ours, gits_answer(repository.path(), root.path(), &paths));
    assert_eq!(ours.keys().collect::<Vec<_>>(), ["ax/y/b", "c/x/y/d"]);
}

fn rules(root: &Path, paths: &[String]) -> String {
    let files = paths.iter().filter(|path| path.ends_with(".gitignore"));
    let shown = files.map(|path| format!("\n{path}: {:?}", fs::read_to_string(root.join(path))));
    shown.collect()
}

#[test]
fn copies_and_disguises_of_secrets_stay_home() {
    let root = TempDir::new().unwrap();
    let secrets = [
        "id_rsa~",
        "id_rsa.bak",
        ".env.old",
        "x.pem.orig",
        ".netrc~",
        "id_rsa\u{200b}",
        ".env\u{fe0f}",
        ".claude/.credentials.json",
        ".codex/auth.json",
        "prod.kubeconfig",
        ".envs/prod",
        "a/.env/x",
        ".netrc.BAK",
        "kubeconfig.BACKUP",
        "id_ed25519.OLD",
        "x.key.BAK",
        "id_rsa.bak~",
        "server.pem.bak~",
        ".pgpass~~",
        ".git-credentials.tmp.bak",
        ".aws.bak/credentials",
        ".Config.OLD~/op/x",
        ".ssh.1/config",
        ".netrc.swo",
        ".id_rsa.swp",
        "._netrc.swp",
        "#id_rsa#",
        "_netrc.rej",
        "id_rsa.1",
        "id_rsa.bak2",
        "id_rsa.~1~",
        "id_rsa - Copy",
        "id_rsa - Copy (2)",
        "id_rsa copy 2",
        "Copy of id_rsa",
        "id_rsa (1)",
    ];
    let twins = [
        "#notes#",
        "(1)",
        ".1",
        ".bak",
        "aws.bak/credentials",
        "chapter 2",
        "copy of notes",
        "id_rsa.pub.bak",
        "notes - Copy (2)",
        "v1.2.3",
        "notes.bak",
        "id_rsa.pub",
        "environment",
        ".env.example",
        "a~",
    ];
    for path in secrets.iter().chain(&twins) {
        write(root.path(), path, "x");
    }
    let (paths, _) = chosen(root.path());
    let mut expected = twins;
    expected.sort_unstable();
    assert_eq!(paths, expected);
}

#[test]
fn what_is_only_an_ending_is_a_copy_of_nothing() {
    let root = TempDir::new().unwrap();
    for path in ["..bak", "...swp", "x"] {
        write(root.path(), path, "x");
    }
    let (paths, _) = chosen_with(root.path(), &["?"], &[]);
    assert_eq!(paths, ["...swp", "..bak"]);
}

#[test]
fn the_directory_itself_may_be_what_stays_home() {
    let root = TempDir::new().unwrap();
    for path in [
        ".aws/credentials",
        ".aws/cli.txt",
        ".ssh/config",
        "repo/.git/config",
        "plain/a",
    ] {
        write(root.path(), path, "x");
    }
    let packed = |dir: &str, admit: &[&str]| packed(&root.path().join(dir), admit);
    assert_eq!(packed("plain", &[]), Ok(vec!["a".to_owned()]));
    assert_eq!(packed(".aws", &[]), Ok(vec!["cli.txt".to_owned()]));
    for dir in [".ssh", "repo/.git"] {
        assert_eq!(packed(dir, &[]), Err(ArchiveCode::RootDenied), "{dir}");
    }
    assert_eq!(packed(".ssh", &[".ssh/"]), Ok(vec!["config".to_owned()]));
}

/// Packs a directory as `archive pack` does: what travels.
fn packed(dir: &Path, admit: &[&str]) -> Result<Vec<String>, ArchiveCode> {
    let admit: Vec<String> = admit.iter().map(|s| (*s).to_owned()).collect();
    let choice = Workspace::new(&[], &admit).unwrap().of(dir);
    walk(dir, &mut choice.map_err(|e| e.code)?)
}

#[test]
fn a_directory_within_what_stays_home_is_refused_by_rules_of_any_length() {
    let root = TempDir::new().unwrap();
    for path in [
        ".config/gcloud/credentials.db",
        ".config/op/deep/x",
        ".aws/sso/cache/token",
        ".aws.bak/sso/cache/token",
        ".config/gh/hosts.yml",
        ".config/gh/config.yml",
        ".config/git/credentials",
        ".config/git/ignore",
        ".config/htop/htoprc",
    ] {
        write(root.path(), path, "x");
    }
    let packed = |dir: &str, admit: &[&str]| packed(&root.path().join(dir), admit);
    for dir in [
        ".config/gcloud",
        ".config/op/deep",
        ".aws/sso/cache",
        ".aws.bak/sso/cache",
    ] {
        assert_eq!(packed(dir, &[]), Err(ArchiveCode::RootDenied), "{dir}");
    }
    let only = |path: &str| Ok(vec![path.to_owned()]);
    assert_eq!(packed(".config/gh", &[]), only("config.yml"));
    assert_eq!(packed(".config/git", &[]), only("ignore"));
    assert_eq!(packed(".config/htop", &[]), only("htoprc"));
    assert_eq!(packed(".config", &[]).unwrap().len(), 3);
    assert_eq!(packed(".config/op/deep", &[".config/op/"]), only("x"));
}

#[test]
fn who_admits_a_secret_admits_no_copy_of_it() {
    let root = TempDir::new().unwrap();
    for path in ["test.pem", "test.pem.bak", "TEST.PEM"] {
        write(root.path(), path, "x");
    }
    let (paths, _) = chosen_with(root.path(), &[], &["test.pem"]);
    assert_eq!(paths, ["TEST.PEM", "test.pem"]);
}
