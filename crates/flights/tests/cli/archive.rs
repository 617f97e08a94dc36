//! `flights archive`, on directories and files.

use crate::environment::Environment;
use flightproof_archive::paar::{self, ArtifactPath, Origin, Target};
use flightproof_core::CommitId;
use insta::assert_snapshot;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// A working directory with a secret, something ignored, and an escape in a name.
fn project() -> Environment {
    let environment = Environment::new();
    environment.write("project/.gitignore", "/target\n*.log\n!kept.log\n");
    environment.write("project/.env", "TOKEN=a-secret\n");
    environment.write("project/target/debug/out", "object");
    environment.write("project/noise.log", "noise");
    environment.write("project/kept.log", "kept");
    environment.write("project/src/main.rs", "fn main() {}\n");
    environment.write("project/.git/config", "[core]\n");
    let script = environment.write("project/run", "#!/bin/sh\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    environment
}

fn archive(environment: &Environment, args: &[&str]) -> crate::environment::Run {
    let args: Vec<String> = args
        .iter()
        .map(|arg| match arg.strip_prefix('@') {
            Some(name) => environment.path(name).to_str().unwrap().to_owned(),
            None => (*arg).to_owned(),
        })
        .collect();
    let mut all = vec!["archive"];
    all.extend(args.iter().map(String::as_str));
    environment.flights(&all)
}

fn packed(environment: &Environment) {
    let run = archive(environment, &["pack", "@project", "-o", "@p.paws"]);
    assert_eq!(run.code, 0, "{}", run.text);
}

#[test]
fn what_git_would_track_is_packed_and_what_was_left_out_is_said() {
    let environment = project();
    let pack = ["pack", "@project", "-o", "@p.paws", "--workspace", "demo"];
    assert_snapshot!(archive(&environment, &pack).text, @"
    exit 0
    --- stdout
    ACCEPTED: PAWS1 snapshot with 4 entries and 51 bytes of payload: packed into $TREE/p.paws
      id          ________________________________________________________________
      workspace   demo
      left out    .env  (denied: .env)
      left out    .git/  (git: .git)
      left out    noise.log  (ignored: .gitignore:2: *.log)
      left out    target/  (ignored: .gitignore:1: /target)
    ");
    assert_snapshot!(archive(&environment, &["inspect", "@p.paws"]).text, @"
    exit 0
    --- stdout
    ACCEPTED: PAWS1 snapshot with 4 entries and 51 bytes of payload: every byte is what its manifest says
      id          ________________________________________________________________
      workspace   demo
      file        100644         24  .gitignore
      file        100644          4  kept.log
      file        100755         10  run
      file        100644         13  src/main.rs
    ");
    let json = [
        &pack[..],
        &["--format", "json", "--deny", "run", "--admit", ".env"],
    ]
    .concat();
    assert_snapshot!(archive(&environment, &json).text, @r#"
    exit 0
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"accepted","stage":"pack","detail":"PAWS1 snapshot with 4 entries and 56 bytes of payload: packed into $TREE/p.paws","archive":{"format":"PAWS1","kind":"snapshot","id":"________________________________________________________________","workspaceId":"demo","entries":4,"payloadBytes":56},"leftOut":[{"path":".git","directory":true,"reason":"git","rule":".git"},{"path":"noise.log","directory":false,"reason":"ignored","rule":".gitignore:2: *.log"},{"path":"run","directory":false,"reason":"denied","rule":"run"},{"path":"target","directory":true,"reason":"ignored","rule":".gitignore:1: /target"}],"admitted":[{"path":".env","rule":".env","pattern":".env"}]}
    "#);
}

#[test]
fn everything_is_packed_only_if_asked_for_and_never_the_archive_itself() {
    let environment = project();
    let pack = [
        "pack",
        "@project",
        "-o",
        "@project/own.paws",
        "--everything",
    ];
    for _ in 0..2 {
        let run = archive(&environment, &pack);
        assert_eq!(run.code, 0, "{}", run.text);
    }
    assert_snapshot!(archive(&environment, &["inspect", "@project/own.paws"]).stdout, @"
    ACCEPTED: PAWS1 snapshot with 7 entries and 77 bytes of payload: every byte is what its manifest says
      id          5096f2fd2f6e2d41365f8d02e2d9ec0b87af647739d9b9c6b6c9eeeeac985ad1
      workspace   project
      file        100644         15  .env
      file        100644         24  .gitignore
      file        100644          4  kept.log
      file        100644          5  noise.log
      file        100755         10  run
      file        100644         13  src/main.rs
      file        100644          6  target/debug/out
    ");
}

#[test]
fn a_tree_is_written_whole_or_not_at_all() {
    let environment = project();
    packed(&environment);
    let run = archive(&environment, &["extract", "@p.paws", "@tree"]);
    assert_snapshot!(run.text, @"
    exit 0
    --- stdout
    ACCEPTED: PAWS1 snapshot with 4 entries and 51 bytes of payload: written to $TREE/tree
      id          ________________________________________________________________
      workspace   project
    ");
    let names: Vec<_> = environment.listing("tree").into_keys().collect();
    assert_eq!(
        names,
        [".gitignore", "kept.log", "run", "src/", "src/main.rs"]
    );
    assert_snapshot!(archive(&environment, &["extract", "@p.paws", "@tree"]).text, @r#"
    exit 10
    --- stdout
    REFUSED at extract: archive/DESTINATION_EXISTS: "$TREE/tree"
      hint: remove it, or choose another place
    "#);

    let mut bytes = fs::read(environment.path("p.paws")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(environment.path("bad.paws"), bytes).unwrap();
    for command in [
        &["verify", "@bad.paws"][..],
        &["extract", "@bad.paws", "@other"],
    ] {
        let run = archive(&environment, &[command, &["--format", "json"]].concat());
        assert_eq!(run.code, 10);
        assert_eq!(
            run.json()["code"],
            "archive/PAYLOAD_HASH_MISMATCH",
            "{}",
            run.text
        );
    }
    assert!(!environment.path("other").exists());
}

#[test]
fn a_header_alone_is_read_exactly_as_the_format_says() {
    let environment = project();
    packed(&environment);
    let inspect = ["inspect", "--header-only"];
    let run = archive(&environment, &[&inspect[..], &["@p.paws"]].concat());
    assert_snapshot!(run.text, @"
    exit 10
    --- stdout
    REFUSED at inspect: archive/TRAILING_BYTES: 51 bytes after the manifest
      hint: remove whatever was appended; a manifest that is read alone must not be followed by its payload
    ");
    let bytes = fs::read(environment.path("p.paws")).unwrap();
    let length = u64::from_be_bytes(bytes[5..13].try_into().unwrap());
    let header = &bytes[..13 + usize::try_from(length).unwrap()];
    fs::write(environment.path("header.paws"), header).unwrap();
    let run = archive(&environment, &[&inspect[..], &["@header.paws"]].concat());
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(archive(&environment, &["verify", "@header.paws"]).code, 10);
}

#[test]
fn the_manifest_of_an_artifact_is_held_against_the_length_of_the_whole() {
    let environment = Environment::new();
    let origin = Origin {
        target: Target::LinuxX64,
        source_commit: CommitId::from_bytes([7; 20]),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    };
    let file = (ArtifactPath::new("bin/tool").unwrap(), true, b"ELF");
    let packed = paar::pack(origin, [file]).unwrap();
    fs::write(environment.path("a.paar"), &packed.bytes).unwrap();
    let header = packed.artifact.header().unwrap();
    fs::write(environment.path("h.paar"), &header).unwrap();

    assert_snapshot!(archive(&environment, &["verify", "@a.paar"]).text, @"
    exit 0
    --- stdout
    ACCEPTED: PAAR1 artifact with 1 entry and 3 bytes of payload: every byte is what its manifest says
      id          ________________________________________________________________
      target      linux-x64
      commit      ________________________________________
    ");
    let inspect = ["inspect", "--header-only"];
    let whole = archive(&environment, &[&inspect[..], &["@a.paar"]].concat());
    assert_eq!(whole.code, 0, "{}", whole.text);
    let alone = archive(&environment, &[&inspect[..], &["@h.paar"]].concat());
    assert_eq!(alone.code, 10, "{}", alone.text);
    let size = packed.bytes.len().to_string();
    let told = archive(
        &environment,
        &[&inspect[..], &["--total-size", &size, "@h.paar"]].concat(),
    );
    assert_eq!(told.stdout, whole.stdout);
}

#[test]
fn what_is_no_archive_is_refused_with_its_code() {
    let environment = Environment::new();
    environment.write("empty", "");
    environment.write("text", "PAWS2 and more than a header");
    for (file, code) in [
        ("@empty", "archive/BUFFER_EMPTY"),
        ("@text", "archive/BAD_MAGIC"),
    ] {
        for command in ["verify", "inspect"] {
            let run = archive(&environment, &[command, file, "--format", "json"]);
            assert_eq!(
                (run.code, run.json()["code"].as_str()),
                (10, Some(code)),
                "{}",
                run.text
            );
        }
    }
    assert_eq!(archive(&environment, &["verify", "@missing"]).code, 2);
    assert_eq!(archive(&environment, &["verify", "@home"]).code, 2);
}

#[test]
fn what_changed_is_carried_to_another_copy_of_the_base() {
    let environment = project();
    packed(&environment);
    let run = archive(&environment, &["extract", "@p.paws", "@copy"]);
    assert_eq!(run.code, 0, "{}", run.text);
    environment.write("project/src/main.rs", "fn main() { work() }\n");
    environment.write("project/src/work.rs", "fn work() {}\n");
    fs::remove_file(environment.path("project/kept.log")).unwrap();
    let compare = [
        "changeset",
        "--base",
        "@p.paws",
        "@project",
        "-o",
        "@c.paws",
    ];
    assert_snapshot!(archive(&environment, &compare).text, @"
    exit 0
    --- stdout
    ACCEPTED: PAWS1 changeset with 3 entries and 34 bytes of payload: written to $TREE/c.paws
      id          ________________________________________________________________
      workspace   project
      base        ________________________________________________________________
      leads to    ________________________________________________________________
      left out    .env  (denied: .env)
      left out    .git/  (git: .git)
      left out    noise.log  (ignored: .gitignore:2: *.log)
      left out    target/  (ignored: .gitignore:1: /target)
    ");
    assert_snapshot!(archive(&environment, &["inspect", "@c.paws"]).text, @"
    exit 0
    --- stdout
    ACCEPTED: PAWS1 changeset with 3 entries and 34 bytes of payload: every byte is what its manifest says
      id          ________________________________________________________________
      workspace   project
      base        ________________________________________________________________
      leads to    ________________________________________________________________
      delete      -               -  kept.log
      change      100644         21  src/main.rs
      add         100644         13  src/work.rs
    ");
    assert_snapshot!(archive(&environment, &["apply", "@c.paws", "@copy"]).text, @"
    exit 0
    --- stdout
    ACCEPTED: PAWS1 changeset with 3 entries and 34 bytes of payload: 1 added, 1 changed, 1 deleted in $TREE/copy
      id          ________________________________________________________________
      workspace   project
      base        ________________________________________________________________
      leads to    ________________________________________________________________
    ");
    let names: Vec<_> = environment.listing("copy").into_keys().collect();
    assert_eq!(
        names,
        [".gitignore", "run", "src/", "src/main.rs", "src/work.rs"]
    );
    let run = archive(
        &environment,
        &[
            "changeset",
            "--base",
            "@p.paws",
            "@copy",
            "-o",
            "@again.paws",
            "--format",
            "json",
        ],
    );
    let (found, expected) = (
        run.json(),
        archive(
            &environment,
            &[&compare[..], &["--format", "json"]].concat(),
        )
        .json(),
    );
    assert_eq!(found["archive"], expected["archive"]);
    assert_snapshot!(archive(&environment, &["recover", "@copy"]).text, @"
    exit 0
    --- stdout
    ACCEPTED: nothing was left to recover
    ");
}

#[test]
fn a_changeset_that_does_not_fit_changes_nothing() {
    let environment = project();
    packed(&environment);
    environment.write("project/src/main.rs", "fn main() { work() }\n");
    let compare = [
        "changeset",
        "--base",
        "@p.paws",
        "@project",
        "-o",
        "@c.paws",
    ];
    assert_eq!(archive(&environment, &compare).code, 0);
    environment.write("copy/src/main.rs", "fn main() { mine() }\n");
    let before = environment.listing("copy");
    assert_snapshot!(archive(&environment, &["apply", "@c.paws", "@copy"]).text, @r#"
    exit 10
    --- stdout
    REFUSED at apply: archive/BASE_MISMATCH: "src/main.rs": got ________________________________________________________________, expected ________________________________________________________________
      hint: make the changeset again from the tree as it is, or restore the file
    "#);
    assert_eq!(environment.listing("copy"), before);
    let run = archive(
        &environment,
        &["apply", "@p.paws", "@copy", "--format", "json"],
    );
    assert_eq!(
        (run.code, run.json()["code"].as_str()),
        (10, Some("archive/BAD_KIND")),
        "{}",
        run.text
    );
    let run = archive(
        &environment,
        &[
            "changeset",
            "--base",
            "@c.paws",
            "@project",
            "-o",
            "@d.paws",
        ],
    );
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(!environment.path("d.paws").exists());
}

#[test]
fn paths_that_are_not_there_are_usage_errors_that_name_them() {
    let environment = project();
    packed(&environment);
    for args in [
        &["pack", "@nowhere", "-o", "@o.paws"][..],
        &["pack", "@project", "-o", "@nowhere/o.paws"],
        &["pack", "@project", "-o", "@home"],
        &[
            "changeset",
            "--base",
            "@p.paws",
            "@nowhere",
            "-o",
            "@o.paws",
        ],
        &["apply", "@p.paws", "@nowhere"],
        &["recover", "@nowhere"],
    ] {
        let run = archive(&environment, args);
        assert_eq!(run.code, 2, "{}", run.text);
        assert!(
            run.text.contains("nowhere") || run.text.contains("home"),
            "{}",
            run.text
        );
    }
}

#[test]
fn what_an_interrupted_apply_left_is_named_and_patterns_that_decide_nothing_are_said() {
    let environment = project();
    let pack = ["pack", "@project", "-o", "@p.paws"];
    let run = archive(
        &environment,
        &[&pack[..], &["--deny", "*.secret", "--admit", ".env"]].concat(),
    );
    assert!(run.stdout.contains("idle        *.secret"), "{}", run.text);
    assert!(!run.stdout.contains("idle        .env"), "{}", run.text);
    environment.write("project/.prime-agent-staging-apply-1/journal", "{}");
    let run = archive(&environment, &pack);
    assert_eq!(run.code, 10);
    assert!(run.stdout.contains("archive/STAGING_LEFT"), "{}", run.text);
}

#[test]
fn an_output_that_is_a_device_is_left_alone() {
    let environment = project();
    let device = environment.path("null");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &device,
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::RWXU,
        rustix::fs::makedev(1, 3),
    )
    .unwrap();
    let run = archive(&environment, &["pack", "@project", "-o", "@null"]);
    assert_eq!(run.code, 2, "{}", run.text);
    environment.flights(&["spend", "cap", "total", "--usd", "20"]);
    let export = environment.flights(&["ledger", "export", "-o", device.to_str().unwrap()]);
    assert_eq!(export.code, 2, "{}", export.text);
    assert!(!fs::symlink_metadata(&device).unwrap().is_file());
}
