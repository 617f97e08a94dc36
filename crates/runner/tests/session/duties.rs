//! What an honest program gets, and what the host is told.

use crate::bubble::{Bubble, build, case, text};
use flate2::Compression;
use flate2::write::GzEncoder;
use flightproof_archive::pack_directory;
use flightproof_core::{Bytes, Digest};
use flightproof_frame::protocol::acts::{FORBIDDEN, NEEDED};
use flightproof_frame::protocol::{CrateFile, PROTOCOL, Place, Reply, Request, Status};
use std::process::{Command, Stdio};

pub(crate) fn exited(code: u8) -> Status {
    Status::Exited { code }
}

fn refused_with(reply: &Reply, wanted: &str) -> bool {
    matches!(reply, Reply::Refused { code, .. } if code == wanted)
}

#[test]
fn the_runner_introduces_itself_and_answers_what_it_cannot_read() {
    let mut bubble = Bubble::open();
    assert_eq!(bubble.hello.protocol, PROTOCOL);
    assert_eq!(bubble.hello.pid, 1);
    assert!(bubble.hello.landlock_abi >= 1);
    for nonsense in [
        "{}",
        "no json",
        r#"{"op":"promote","from":"a","name":"b","more":1}"#,
    ] {
        let reply = bubble.send(nonsense.as_bytes(), &[]);
        assert!(refused_with(&reply, "runner/BAD_REQUEST"), "{reply:?}");
    }
    assert!(matches!(bubble.call(&Request::Probe), Reply::Probe { .. }));
}

#[test]
fn outside_a_session_the_runner_does_nothing() {
    let mut runner = Command::new(crate::bubble::runner_program());
    let output = runner.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(21));
    assert!(output.stdout.is_empty());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .starts_with("runner/NOT_A_SESSION: ")
    );
}

#[test]
fn every_forbidden_act_is_refused_and_every_needed_one_works() {
    let mut bubble = Bubble::open();
    let Reply::Probe { readings } = bubble.call(&Request::Probe) else {
        panic!("no readings");
    };
    let acts: Vec<_> = readings.iter().map(|r| r.act.as_str()).collect();
    assert_eq!(acts, [&FORBIDDEN[..], &NEEDED].concat());
    for reading in &readings {
        assert_eq!(
            reading.denied,
            FORBIDDEN.contains(&&*reading.act),
            "{reading:?}"
        );
    }
    let how = |act: &str| readings.iter().find(|r| r.act == act).unwrap().how.clone();
    assert_eq!(how("connect-inet"), "SIGSYS");
    assert_eq!(how("execute-usr-bin"), "EACCES");
    assert_eq!(how("signal-init"), "EPERM");
    assert_eq!(how("io-uring"), "EPERM");
}

#[test]
fn a_case_gets_exactly_its_inputs() {
    let mut bubble = Bubble::with_attacker();
    let mut echo = case(&["echo", "a b", ""]);
    echo.env.insert("KEY".into(), "value".into());
    echo.stdin = Bytes(vec![b'i'; 300_000]);
    echo.limits.stdout_bytes = 400_000;
    let outcome = bubble.exec(&echo);
    assert_eq!(outcome.status, exited(7));
    let stdout = text(&outcome.stdout);
    let input = stdout.strip_prefix("program|a b||KEY=value|").unwrap();
    assert_eq!(input.len(), 300_000);
    assert_eq!(text(&outcome.stderr), "err");
    assert!(outcome.complete && !outcome.armed);
}

#[test]
fn files_are_laid_into_the_scratch_and_gone_afterwards() {
    let mut bubble = Bubble::with_attacker();
    let mut look = case(&["cat", "sub/dir/file"]);
    look.files
        .insert("sub/dir/file".parse().unwrap(), Bytes(b"12345".to_vec()));
    assert_eq!(
        text(&bubble.exec(&look).stdout),
        "sub/dir/file 3 ok\nread 5 ok\n"
    );
    look.files.clear();
    assert!(text(&bubble.exec(&look).stdout).contains("ENOENT"));
}

#[test]
fn each_case_is_somebody_nobody_was_before() {
    let mut bubble = Bubble::with_attacker();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let said = text(&bubble.attack("whoami").stdout);
        // Uid, gid, not the first process of its namespace, leader of its own session.
        let [uid, gid, "0", "1"] = said.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{said}");
        };
        assert_eq!(uid, gid);
        assert!((1_000..1_000_000).contains(&uid.parse::<u32>().unwrap()));
        assert!(seen.insert(said), "a uid came twice: {seen:?}");
    }
}

#[test]
fn ends_are_told_apart() {
    let mut bubble = Bubble::with_attacker();
    assert_eq!(
        bubble.attack("abort").status,
        Status::Signaled { signal: 6 }
    );
    assert_eq!(bubble.attack("unknown act").status, exited(99));
    let mut absent = case(&[]);
    absent.program = "absent".into();
    let Status::LaunchFailed { reason } = bubble.exec(&absent).status else {
        panic!("an absent program was launched");
    };
    assert!(
        reason.starts_with("open the program: No such file"),
        "{reason}"
    );
    absent.program = "../runner/flights".into();
    let reply = bubble.call(&Request::Exec(absent));
    assert!(refused_with(&reply, "runner/BAD_EXEC"), "{reply:?}");
    assert_eq!(text(&bubble.attack("signals").stdout), "1 0\n");
}

#[test]
fn output_up_to_its_limit_is_whole_and_one_byte_more_is_an_end() {
    let mut bubble = Bubble::with_attacker();
    let mut print = case(&["print", "1000"]);
    print.limits.stdout_bytes = 1_000;
    let outcome = bubble.exec(&print);
    assert_eq!((outcome.status, outcome.complete), (exited(0), true));
    print.limits.stdout_bytes = 999;
    let outcome = bubble.exec(&print);
    assert_eq!(
        (outcome.status, outcome.complete),
        (Status::OutputLimit, false)
    );
    assert_eq!(outcome.stdout.len(), 999);
}

#[test]
fn a_guard_is_armed_and_a_false_one_is_not() {
    let mut bubble = Bubble::with_attacker();
    let run = |bubble: &mut Bubble, act: &str, selector| {
        let mut exec = case(&[act]);
        exec.selector = selector;
        bubble.exec(&exec)
    };
    let armed = run(&mut bubble, "guard", Some(133_700));
    assert_eq!(text(&armed.stdout), "8 0 133700\n");
    assert!(armed.armed);
    assert!(!run(&mut bubble, "false-guard", Some(1)).armed);
    assert!(!run(&mut bubble, "whoami", Some(1)).armed);
    let without = run(&mut bubble, "guard", None);
    assert!(!without.armed);
    assert!(text(&without.stdout).starts_with("-1 -1"));
}

#[test]
fn a_dynamically_linked_program_is_a_case_too() {
    let mut bubble = Bubble::open();
    bubble.promote_tool("/usr/bin/cat");
    let mut cat = case(&[]);
    cat.program = "cat".into();
    cat.stdin = Bytes(b"hello".to_vec());
    let outcome = bubble.exec(&cat);
    assert_eq!(
        (outcome.status, text(&outcome.stdout)),
        (exited(0), "hello".into())
    );
}

fn packed(files: &[(&str, &[u8])]) -> (Digest, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    let packed = pack_directory(dir.path(), "test", &[]).unwrap();
    (packed.snapshot.snapshot_id(), packed.bytes)
}

/// The package `a-1.0.0` with these files.
fn package_of(files: &[(&str, &str)]) -> Vec<u8> {
    let named: Vec<_> = files
        .iter()
        .map(|(name, code)| (format!("a-1.0.0/{name}"), *code))
        .collect();
    raw_package(&named)
}

/// A package with these raw names, hostile ones included.
fn raw_package(files: &[(String, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, content.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn crate_file(name: &str, bytes: &[u8]) -> CrateFile {
    CrateFile {
        name: name.into(),
        version: "1.0.0".into(),
        sha256: Digest::of(bytes),
    }
}

#[test]
fn uploads_and_dependencies_arrive_where_a_build_reads_and_cannot_write() {
    let mut bubble = Bubble::open();
    let (id, tree) = packed(&[("main.rs", &[b'x'; 600_000])]);
    let put = bubble.put(Place::Source, id, &tree);
    assert!(
        matches!(put, Reply::Put { snapshot, files: 1 } if snapshot == id),
        "{put:?}"
    );
    let again = bubble.put(Place::Source, id, &tree);
    assert!(refused_with(&again, "runner/PLACE_OCCUPIED"), "{again:?}");
    let (patch_id, patch) = packed(&[("main.rs", b"new")]);
    assert!(matches!(
        bubble.put(Place::Overlay, patch_id, &patch),
        Reply::Put { .. }
    ));

    let dependency = package_of(&[("lib.rs", "code")]);
    let (id, crates) = packed(&[("a-1.0.0.crate", &dependency)]);
    assert!(matches!(
        bubble.put(Place::Crates, id, &crates),
        Reply::Put { .. }
    ));
    let unpack = Request::Unpack {
        crates: vec![crate_file("a", &dependency)],
    };
    assert_eq!(bubble.call(&unpack), Reply::Unpacked { packages: 1 });

    let script = "cat /flight/src/main.rs /flight/vendor/a-1.0.0/lib.rs; echo kept >/flight/target/kept
        for place in /flight/src /flight/src/main.rs /flight/vendor/a-1.0.0/lib.rs /flight/x /exe/x /case/x /tmp/x; do
            (echo x >$place) 2>/dev/null && echo wrote $place
            chmod 777 $place 2>/dev/null && echo changed $place
        done
        cat /flight/crates/* /runner/flights 2>/dev/null";
    let outcome = bubble.exec(&build("/bin/sh", &["-c", script]));
    assert_eq!(text(&outcome.stdout), "newcode");
    let kept = bubble.exec(&build("/usr/bin/cat", &["/flight/target/kept"]));
    assert_eq!(text(&kept.stdout), "kept\n");
}

#[test]
fn a_dependency_that_is_another_or_leaves_its_directory_is_refused() {
    let (honest, hostile) = (
        package_of(&[("lib.rs", "code")]),
        raw_package(&[("../../target/b".to_owned(), "code")]),
    );
    let cases = [
        (crate_file("a", b"other"), "runner/CRATE_MISMATCH"),
        (crate_file("absent", &honest), "runner/CRATE_MISMATCH"),
        (crate_file("b", &hostile), "runner/CRATE_REFUSED"),
    ];
    for (wanted, code) in cases {
        let mut bubble = Bubble::open();
        let (id, crates) = packed(&[("a-1.0.0.crate", &honest), ("b-1.0.0.crate", &hostile)]);
        bubble.put(Place::Crates, id, &crates);
        let reply = bubble.call(&Request::Unpack {
            crates: vec![wanted],
        });
        assert!(refused_with(&reply, code), "{reply:?}");
    }
}

#[test]
fn a_refused_upload_leaves_the_channel_in_step() {
    let mut bubble = Bubble::open();
    let (_id, tree) = packed(&[("a", &[1; 2_000_000])]);
    let reply = bubble.put(Place::Source, Digest::of(b"other"), &tree);
    assert!(refused_with(&reply, "runner/UPLOAD_REFUSED"), "{reply:?}");
    let outcome = bubble.exec(&build("/usr/bin/ls", &["/flight/src"]));
    assert_ne!(outcome.status, exited(0));
}

#[test]
fn a_build_has_no_network_and_lives_on() {
    let mut bubble = Bubble::open();
    let outcome = bubble.exec(&build("/toolchain/attacker", &["internet"]));
    assert_eq!(text(&outcome.stdout), "socket -1 EPERM\n");
    assert_eq!(outcome.status, exited(0));
}

/// Cargo as the host asks for it: offline, locked, dependencies from the vendor directory.
fn cargo_build() -> flightproof_frame::protocol::Exec {
    let mut cargo = build(
        "/toolchain/rust/bin/cargo",
        &[
            "build",
            "--offline",
            "--locked",
            "--manifest-path=/flight/src/Cargo.toml",
            "--config=source.crates-io.replace-with='vendored'",
            "--config=source.vendored.directory='/flight/vendor'",
        ],
    );
    for (name, value) in [
        ("PATH", "/toolchain/rust/bin:/usr/bin"),
        // Without /proc a program cannot find its libraries beside itself.
        ("LD_LIBRARY_PATH", "/toolchain/rust/lib"),
        // Nor can the wrapper around rustc's own linker.
        ("RUSTFLAGS", "-Clink-arg=-fuse-ld=bfd"),
        ("CARGO_HOME", "/flight/home"),
        ("CARGO_TARGET_DIR", "/flight/target"),
        ("TMPDIR", "/flight/tmp"),
    ] {
        cargo.env.insert(name.into(), value.into());
    }
    cargo.limits.wall_ms = 60_000;
    cargo
}

#[test]
fn a_real_compiler_builds_a_program_with_a_dependency_and_a_build_script() {
    let mut bubble = Bubble::open();
    let dependency = package_of(&[
        (
            "Cargo.toml",
            "[package]\nname = 'a'\nversion = '1.0.0'\nedition = '2021'\n[lib]\npath = 'lib.rs'\n",
        ),
        ("lib.rs", "pub fn answer() -> i32 { 42 }"),
    ]);
    let checksum = Digest::of(&dependency);
    let lock = format!(
        "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
         source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"{checksum}\"\n\n\
         [[package]]\nname = \"p\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n]\n"
    );
    let manifest = "[package]\nname = 'p'\nversion = '0.1.0'\nedition = '2021'\n[dependencies]\na = '=1.0.0'\n\
                    [[bin]]\nname = 'p'\npath = 'main.rs'\n";
    let script = "fn main() { println!(\"cargo::rustc-env=BUILT=script\"); }";
    let main = "fn main() { println!(\"{} {}\", a::answer(), env!(\"BUILT\")); }";
    let (id, tree) = packed(&[
        ("Cargo.toml", manifest.as_bytes()),
        ("Cargo.lock", lock.as_bytes()),
        ("build.rs", script.as_bytes()),
        ("main.rs", main.as_bytes()),
    ]);
    assert!(matches!(
        bubble.put(Place::Source, id, &tree),
        Reply::Put { .. }
    ));
    let (id, crates) = packed(&[("a-1.0.0.crate", &dependency)]);
    assert!(matches!(
        bubble.put(Place::Crates, id, &crates),
        Reply::Put { .. }
    ));
    let unpack = Request::Unpack {
        crates: vec![crate_file("a", &dependency)],
    };
    assert_eq!(bubble.call(&unpack), Reply::Unpacked { packages: 1 });

    let built = bubble.exec(&cargo_build());
    assert_eq!(built.status, exited(0), "{}", text(&built.stderr));
    let promote = Request::Promote {
        from: "/flight/target/debug/p".into(),
        name: "p".into(),
    };
    assert!(matches!(bubble.call(&promote), Reply::Promoted { .. }));
    let mut run = case(&[]);
    run.program = "p".into();
    let outcome = bubble.exec(&run);
    assert_eq!(
        (outcome.status, text(&outcome.stdout)),
        (exited(0), "42 script\n".into())
    );
}
