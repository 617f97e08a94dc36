//! Live sessions on this machine. They need root, bubblewrap and a toolchain, and fail without.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod site;

use flightproof_core::Digest;
use flightproof_evidence::{BuildAnswer, BuildOrder, BuildTarget, CaseRun, Ending, Guard};
use flightproof_session::build::Workshop;
use flightproof_session::crates::{self, ship};
use flightproof_session::lease::Unleased;
use flightproof_session::local::{AgentFile, LocalSession};
use flightproof_session::{Session, SessionCode, observe, record};
use site::Site;
use std::collections::BTreeMap;
use std::time::Instant;

const WALL_MS: u64 = 120_000;

fn guard() -> Guard {
    Guard {
        name: "guard_1f".to_owned(),
        source: "pub fn active() -> u64 { 0 }".to_owned(),
    }
}

fn binary(name: &str) -> BuildOrder {
    BuildOrder {
        program: name.to_owned(),
        target: BuildTarget::Bin {
            name: name.to_owned(),
        },
        overlay: BTreeMap::new(),
        guard: guard(),
        optimized: false,
    }
}

fn case(program: &str, args: &[&str]) -> CaseRun {
    CaseRun {
        program: program.to_owned(),
        args: args.iter().map(|a| (*a).to_owned()).collect(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        env: BTreeMap::new(),
        selector: None,
        wall_ms: 5_000,
        tree: None,
    }
}

fn built(session: &mut LocalSession, files: &[(&str, &str)], order: &BuildOrder) -> Workshop {
    let mut workshop = Workshop::furnish(
        session,
        &site::tree(files),
        &ship(&[]).unwrap(),
        None,
        WALL_MS,
    )
    .unwrap();
    match workshop.build(session, order).unwrap() {
        BuildAnswer::Built(_) => workshop,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_is_attested_and_leaves_nothing() {
    let site = Site::new();
    let mut session = site.open();
    let attestation = session.attestation().clone();
    assert!(attestation.toolchain.version.starts_with("rustc 1."));
    assert!(attestation.toolchain.target.is_some() && attestation.processor.is_some());
    assert!(attestation.sandbox.starts_with("bubblewrap "));
    let names: Vec<&str> = attestation
        .readings
        .iter()
        .map(|r| r.name.as_str())
        .collect();
    for name in [
        "memory-bytes",
        "pids",
        "cpu-millis",
        "host-ids",
        "capabilities",
        "mounts",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(attestation.probes.iter().any(|p| p.act == "connect-inet"));
    assert_eq!(site.traces(&attestation.session).len(), 5);
    assert!(session.close().unwrap().is_clean());
    assert!(session.close().unwrap().is_clean());
    assert_eq!(site.traces(&attestation.session), [] as [String; 0]);
    let refused = session.call(&flightproof_frame::protocol::Request::Probe, &[]);
    assert_eq!(refused.unwrap_err().code, SessionCode::SessionClosed);
}

#[test]
fn an_agent_s_program_is_the_one_that_was_named_or_there_is_no_session() {
    let site = Site::new();
    let path = site.state_dir().with_file_name("agent");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    let named = |sha256| AgentFile {
        path: path.clone(),
        sha256,
    };
    let mut spec = site.spec();
    spec.agent = Some(named(Digest::of(b"another")));
    let refused = site.open_as(&spec).unwrap_err();
    assert_eq!(refused.code, SessionCode::UploadMismatch, "{refused}");
    let id: String = spec.entropy.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(site.traces(&id), [] as [String; 0]);
    // The benign twin, whose place for processes is one more mount that is read back.
    spec.agent = Some(named(Digest::of(b"#!/bin/sh\n")));
    let mut session = site.open_as(&spec).unwrap();
    let mounts = |session: &LocalSession| {
        let readings = &session.attestation().readings;
        readings
            .iter()
            .find(|r| r.name == "mounts")
            .unwrap()
            .found
            .clone()
    };
    let with_agent = mounts(&session);
    assert!(session.close().unwrap().is_clean());
    let mut without = site.open();
    assert_ne!(mounts(&without), with_agent);
    assert!(without.close().unwrap().is_clean());
}

#[test]
fn a_second_session_of_the_same_id_is_refused_and_the_first_lives_on() {
    let site = Site::new();
    let spec = site.spec();
    let mut first = site.open_as(&spec).unwrap();
    let refused = site.open_as(&spec).unwrap_err();
    assert_eq!(refused.code, SessionCode::HostIo);
    assert!(
        first
            .call(&flightproof_frame::protocol::Request::Probe, &[])
            .is_ok()
    );
    assert!(first.close().unwrap().is_clean());
}

#[test]
fn a_dropped_session_leaves_nothing_either() {
    let site = Site::new();
    let session = site.open();
    let id = session.attestation().session.clone();
    drop(session);
    assert_eq!(site.traces(&id), [] as [String; 0]);
}

const HOSTILE: &str = r#"
use std::io::{Read, Write};
fn main() {
    let act = std::env::args().nth(1).unwrap_or_default();
    match act.as_str() {
        "echo" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            println!("{text} {}", std::fs::read_to_string("given.txt").unwrap_or_default());
            std::process::exit(3);
        }
        "network" => { let _ = std::net::TcpStream::connect("127.0.0.1:80"); }
        "host" => {
            for path in ["/etc/passwd", "/root", "/proc/1/environ", "/flight/src/Cargo.toml", "/runner/flights"] {
                if std::fs::read(path).is_ok() || std::fs::read_dir(path).is_ok() { println!("{path}"); }
            }
            for (name, value) in std::env::vars() { print!("{name}={value} "); }
        }
        "forks" => {
            unsafe extern "C" { fn fork() -> i32; fn pause() -> i32; }
            loop { if unsafe { fork() } == 0 { loop { unsafe { pause() }; } } }
        }
        "memory" => {
            let mut all = Vec::new();
            loop { all.push(vec![1u8; 1 << 20]); }
        }
        "forever" => loop { std::hint::spin_loop() },
        "flood" => loop { let _ = std::io::stdout().write_all(&[b'x'; 4096]); },
        other => panic!("{other}"),
    }
}
"#;

const MANIFEST: &str = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\n";

#[test]
fn cases_meet_their_limits_and_nothing_of_the_host() {
    let site = Site::new();
    let mut session = site.open();
    let files = [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("src/main.rs", HOSTILE),
    ];
    built(&mut session, &files, &binary("demo"));

    let mut echo = case("demo", &["echo"]);
    echo.stdin = b"hello".to_vec().into();
    echo.files
        .insert("given.txt".parse().unwrap(), b"given".to_vec().into());
    for _ in 0..2 {
        let seen = observe::run(&mut session, &echo).unwrap();
        assert_eq!(seen.ending, Ending::Exited { code: 3 });
        assert_eq!(&*seen.stdout, b"hello given\n");
        assert!(seen.complete);
    }

    let host = observe::run(&mut session, &case("demo", &["host"])).unwrap();
    assert_eq!(host.ending, Ending::Exited { code: 0 });
    assert_eq!(
        String::from_utf8_lossy(&host.stdout),
        "HOME=/case LC_ALL=C TMPDIR=/case TZ=UTC "
    );

    let table = [
        ("network", Ending::ForbiddenCall),
        ("forks", Ending::ProcessLimit),
        ("memory", Ending::MemoryLimit),
        ("flood", Ending::OutputLimit),
    ];
    for (act, ending) in table {
        let seen = observe::run(&mut session, &case("demo", &[act])).unwrap();
        assert_eq!(seen.ending, ending, "{act}");
    }
    let mut forever = case("demo", &["forever"]);
    forever.wall_ms = 300;
    let seen = observe::run(&mut session, &forever).unwrap();
    assert_eq!(seen.ending, Ending::TimedOut);

    // After all of that the session still gives right answers.
    let seen = observe::run(&mut session, &echo).unwrap();
    assert_eq!(seen.ending, Ending::Exited { code: 3 });
    let missing = observe::run(&mut session, &case("nobody", &[])).unwrap_err();
    assert!(
        matches!(
            missing.code,
            SessionCode::RunnerRefused | SessionCode::LaunchFailed
        ),
        "{missing}"
    );
    assert!(session.close().unwrap().is_clean());
}

#[test]
fn registry_dependencies_with_a_procedural_macro_are_built_offline() {
    let site = Site::new();
    let mut session = site.open();
    let (lock, wanted) = site::locked();
    let found = crates::find(&site::cache_dirs(), &wanted).unwrap();
    let manifest = format!(
        "{MANIFEST}[dependencies]\nserde = {{ version = \"1\", features = [\"derive\"] }}\n"
    );
    let library = "#[derive(serde::Serialize)] pub struct Point { pub x: i32 }\n\
        fn kept<T: serde::Serialize>(value: T) -> T { value }\n\
        pub fn show(x: i32) -> String { format!(\"x={}\", kept(Point { x }).x) }\n";
    let archive = site::tree(&[
        ("Cargo.toml", &manifest),
        ("Cargo.lock", &lock),
        ("src/lib.rs", library),
    ]);
    let mut workshop = Workshop::furnish(
        &mut session,
        &archive,
        &ship(&found).unwrap(),
        None,
        WALL_MS,
    )
    .unwrap();
    let driver = "use std::io::Read;\nfn main() { let mut s = String::new(); std::io::stdin().read_to_string(&mut s).unwrap();\n\
        println!(\"{}\", demo::show(s.trim().parse().unwrap())); }";
    let mut order = BuildOrder {
        program: "pristine".to_owned(),
        target: BuildTarget::Driver {
            package: None,
            source: driver.as_bytes().into(),
        },
        ..binary("demo")
    };
    let started = Instant::now();
    let built = match workshop.build(&mut session, &order).unwrap() {
        BuildAnswer::Built(built) => built,
        BuildAnswer::Failed { diagnostics, tail } => {
            panic!("{diagnostics:?} {}", String::from_utf8_lossy(&tail))
        }
        limit => panic!("{limit:?}"),
    };
    let first = started.elapsed();
    assert!(built.record.proc_macros && built.record.build_scripts);
    assert_eq!(built.record.packages.len(), wanted.len());
    let mut run = case("pristine", &[]);
    run.stdin = b"7\n".to_vec().into();
    let seen = observe::run(&mut session, &run).unwrap();
    assert_eq!(&*seen.stdout, b"x=7\n");

    // Another source over it: only that is compiled again, and the first program stays.
    order.program = "changed".to_owned();
    let changed = library.replace("Point { x }", "Point { x: x + 1 }");
    order
        .overlay
        .insert("src/lib.rs".parse().unwrap(), changed.into_bytes().into());
    let started = Instant::now();
    assert!(matches!(
        workshop.build(&mut session, &order).unwrap(),
        BuildAnswer::Built(_)
    ));
    assert!(
        started.elapsed() < first,
        "dependencies were compiled again"
    );
    run.program = "changed".to_owned();
    assert_eq!(&*observe::run(&mut session, &run).unwrap().stdout, b"x=8\n");

    // Without the overlay the tree is the candidate's again.
    order.overlay.clear();
    order.program = "again".to_owned();
    assert!(matches!(
        workshop.build(&mut session, &order).unwrap(),
        BuildAnswer::Built(_)
    ));
    run.program = "again".to_owned();
    assert_eq!(&*observe::run(&mut session, &run).unwrap().stdout, b"x=7\n");
    assert!(session.close().unwrap().is_clean());
}

#[test]
fn a_build_that_fails_names_its_lines_and_a_missing_product_is_refused() {
    let site = Site::new();
    let mut session = site.open();
    let broken = "fn main() {\n    let x: u32 = \"text\";\n}\n";
    let config = "[build]\nrustc-wrapper = \"/flight/src/evil\"\n";
    let files = [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("src/main.rs", broken),
        // Neither is looked at: the build's directory is outside of the tree.
        (".cargo/config.toml", config),
        (
            "rust-toolchain.toml",
            "[toolchain]\nchannel = \"nightly-2001-01-01\"\n",
        ),
    ];
    let mut workshop = Workshop::furnish(
        &mut session,
        &site::tree(&files),
        &ship(&[]).unwrap(),
        None,
        WALL_MS,
    )
    .unwrap();
    let BuildAnswer::Failed { diagnostics, .. } =
        workshop.build(&mut session, &binary("demo")).unwrap()
    else {
        panic!("it was built");
    };
    assert_eq!(diagnostics[0].code.as_deref(), Some("E0308"));
    assert_eq!(
        (diagnostics[0].file.as_str(), diagnostics[0].line),
        ("src/main.rs", 2)
    );
    let (start, end) = diagnostics[0].spans[0];
    assert_eq!(&broken[start as usize..end as usize], "\"text\"");

    let mut repaired = binary("demo");
    repaired.overlay.insert(
        "src/main.rs".parse().unwrap(),
        b"fn main() {}".as_slice().into(),
    );
    let answer = workshop.build(&mut session, &repaired).unwrap();
    assert!(matches!(answer, BuildAnswer::Built(_)), "{answer:?}");

    // No library is there to link a driver with.
    repaired.target = BuildTarget::Driver {
        package: None,
        source: b"fn main() {}".as_slice().into(),
    };
    let answer = workshop.build(&mut session, &repaired).unwrap();
    assert!(matches!(answer, BuildAnswer::Failed { .. }), "{answer:?}");
    let mut stray = binary("demo");
    stray
        .overlay
        .insert("src/other.rs".parse().unwrap(), b"".as_slice().into());
    let refused = workshop.build(&mut session, &stray).unwrap_err();
    assert_eq!(refused.code, SessionCode::UploadMismatch);
}

#[test]
fn the_lifetime_ends_a_session_whatever_it_is_doing() {
    let site = Site::new();
    let mut spec = site.spec();
    spec.lifetime_ms = 30_000;
    let mut session = site.open_as(&spec).unwrap();
    let id = session.attestation().session.clone();
    let files = [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("src/main.rs", HOSTILE),
    ];
    built(&mut session, &files, &binary("demo"));
    let mut forever = case("demo", &["forever"]);
    forever.wall_ms = 600_000;
    let refused = observe::run(&mut session, &forever).unwrap_err();
    assert_eq!(refused.code, SessionCode::Deadline);
    assert_eq!(site.processes(&id), 0);
    assert!(session.close().unwrap().is_clean());
}

#[test]
fn a_session_that_dies_is_lost_and_never_an_answer() {
    let site = Site::new();
    let mut session = site.open();
    let id = session.attestation().session.clone();
    site.kill(&id);
    let refused = session
        .call(&flightproof_frame::protocol::Request::Probe, &[])
        .unwrap_err();
    assert_eq!(refused.code, SessionCode::SessionLost);
    assert!(session.close().unwrap().is_clean());
    assert_eq!(site.traces(&id), [] as [String; 0]);
}

/// The program that makes the sandbox is the last of ours between owner and runner: where it is killed,
/// nothing of what it made goes on.
#[test]
fn what_bubblewrap_made_dies_with_it() {
    let site = Site::new();
    let mut session = site.open();
    let id = session.attestation().session.clone();
    assert!(site.processes(&id) > 1);
    site.kill_first(&id);
    site.wait_until_dead(&id);
    let refused = session
        .call(&flightproof_frame::protocol::Request::Probe, &[])
        .unwrap_err();
    assert_eq!(refused.code, SessionCode::SessionLost, "{refused}");
    assert!(session.close().unwrap().is_clean());
    assert_eq!(site.traces(&id), [] as [String; 0]);
}

/// It ends with 1, as a candidate may: what it did not describe, or who did not greet, never ran.
#[test]
fn bubblewrap_that_fails_is_a_failed_start_whatever_its_status() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = Site::new();
    // A program of the machine's: the directories of the test are closed to who starts it.
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(place.path());
    for (name, rest) in [
        ("fails", "echo 'bwrap: no permission' >&2; exit 1"),
        ("ends", "exit 0"),
    ] {
        let bwrap = place.path().join(name);
        let script = format!(
            "#!/bin/sh\n[ \"$1\" != --version ] || {{ echo bubblewrap 0.8.0; exit 0; }}\n{rest}\n"
        );
        std::fs::write(&bwrap, script).unwrap();
        open(&bwrap);
        let mut spec = site.spec();
        spec.bwrap = bwrap;
        let refused = site.open_as(&spec).unwrap_err();
        assert_eq!(refused.code, SessionCode::StartFailed, "{name}: {refused}");
        if name == "fails" {
            assert!(refused.detail.contains("no permission"), "{refused}");
        }
        let id: String = spec.entropy.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(site.traces(&id), [] as [String; 0], "{name}");
    }
}

#[test]
fn a_place_that_does_not_exist_is_refused_before_anything_is_made() {
    let site = Site::new();
    let mut spec = site.spec();
    spec.work_dir = spec.work_dir.join("missing");
    let refused = site.open_as(&spec).unwrap_err();
    assert_eq!(refused.code, SessionCode::HostIo);
    assert_eq!(record::reap(&site.state_dir(), &mut Unleased).unwrap(), []);
}

#[test]
fn what_arrives_inside_must_be_what_was_sent() {
    let site = Site::new();
    let mut session = site.open();
    let archive = site::tree(&[("a", "b")]);
    let refused = flightproof_session::upload::archive(
        &mut session,
        flightproof_frame::protocol::Place::Source,
        &archive,
        Digest::of(b"another"),
    )
    .unwrap_err();
    assert_eq!(refused.code, SessionCode::RunnerRefused);
}

#[test]
fn an_owner_that_is_killed_takes_its_session_along_and_the_reaper_removes_the_rest() {
    let site = Site::new();
    let mut owner = site.owner(&["hold"]);
    let id = site.opened(&mut owner);
    assert!(site.processes(&id) > 0);
    assert_eq!(
        record::reap(&site.state_dir(), &mut Unleased).unwrap(),
        [],
        "its owner lives"
    );
    owner.kill().unwrap();
    owner.wait().unwrap();
    site.wait_until_dead(&id);
    let reaped = record::reap(&site.state_dir(), &mut Unleased).unwrap();
    assert_eq!(reaped.len(), 1);
    assert_eq!(reaped[0].id, id);
    assert_eq!(site.traces(&id), [] as [String; 0]);
}

#[test]
fn an_ordinary_user_without_a_cgroup_is_told_how_to_get_one() {
    let site = Site::new();
    let said = site.as_nobody();
    assert!(said.starts_with("refused session/NO_DELEGATION"), "{said}");
    use flightproof_core::Code as _;
    let todo = SessionCode::NoDelegation.explanation().todo;
    assert!(todo.contains("systemd-run --user --scope -p Delegate=yes -- flights"));
}

/// What a build script says becomes part of cargo's message about it: a megabyte of variables must
/// not push the one message out of sight that says a script ran. And what it leaves for a later
/// build's cargo to obey is gone by then.
#[test]
fn a_build_script_neither_hides_by_saying_much_nor_sets_up_the_next_build() {
    let site = Site::new();
    let mut session = site.open();
    let script = r#"fn main() {
        for i in 0..12 { println!("cargo:rustc-env=LONG{i}={}", "x".repeat(100_000)); }
        for dir in ["/flight/home", "/flight/tmp/.cargo"] {
            std::fs::create_dir_all(dir).unwrap();
            std::fs::write(format!("{dir}/config.toml"), "[build]\nrustc-wrapper = \"/usr/bin/false\"\n").unwrap();
        }
    }"#;
    let files = [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("build.rs", script),
        ("src/main.rs", "fn main() { println!(\"1\"); }\n"),
    ];
    let archive = site::tree(&files);
    let mut workshop =
        Workshop::furnish(&mut session, &archive, &ship(&[]).unwrap(), None, WALL_MS).unwrap();
    let answer = workshop.build(&mut session, &binary("demo")).unwrap();
    let BuildAnswer::Built(built) = answer else {
        panic!("{answer:?}");
    };
    assert!(built.record.build_scripts);
    let mut again = binary("demo");
    again.overlay.insert(
        "src/main.rs".parse().unwrap(),
        b"fn main() { println!(\"2\"); }".as_slice().into(),
    );
    let answer = workshop.build(&mut session, &again).unwrap();
    assert!(matches!(answer, BuildAnswer::Built(_)), "{answer:?}");
    let seen = observe::run(&mut session, &case("demo", &[])).unwrap();
    assert_eq!(&*seen.stdout, b"2\n");
}

/// Only privilege raises a hard limit: where it is missing there is no session rather than a
/// candidate that is refused for it.
#[test]
fn a_hard_limit_is_lifted_or_ends_the_start_by_its_name() {
    let site = Site::new();
    let mut owner = site.owner_after("ulimit -Hv 4000000", &[]);
    let said = site.said(&mut owner);
    owner.wait().unwrap();
    let lifted = said.starts_with("open ");
    let named = said.starts_with("refused session/START_FAILED")
        && said.contains("the resource limit As is too low");
    assert!(lifted || named, "{said}");
}

#[test]
fn the_limits_and_umask_of_the_starting_shell_are_not_those_of_the_session() {
    let site = Site::new();
    let narrow = "umask 077; ulimit -Sn 60; ulimit -Ss 1024; ulimit -Sv 4000000; \
        ulimit -Sd 3000000; ulimit -St 100; ulimit -Sf 1000000; ulimit -Su 9";
    let mut owner = site.owner_after(narrow, &["hold"]);
    let id = site.opened(&mut owner);
    let found = site.limits(&id);
    assert!(!found.is_empty());
    for limits in found {
        for line in [
            "Max address space unlimited unlimited",
            "Max data size unlimited unlimited",
            "Max cpu time unlimited unlimited",
            "Max file size unlimited unlimited",
            "Max open files 4096 4096",
        ] {
            let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                limits.lines().any(|l| spaced(l).starts_with(line)),
                "{line}: {limits}"
            );
        }
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    site.wait_until_dead(&id);
    assert_eq!(
        record::reap(&site.state_dir(), &mut Unleased)
            .unwrap()
            .len(),
        1
    );
}

/// Two bodies of a function.
type Pair = (&'static str, &'static str);

/// The same for every caller, whatever the machine: blanks make them of one length.
const SAME: [Pair; 7] = [
    ("(x) >= (1)", "(x) >  (0)"),
    ("(x) <  (1)", "(x) == (0)"),
    ("(x + 0) > 3", "(x - 0) > 3"),
    ("(v.len()) == (0)", "(v.len()) <  (1)"),
    (
        "let mut b = 0; for n in v { if *n >  b { b = *n } } b == x",
        "let mut b = 0; for n in v { if *n >= b { b = *n } } b == x",
    ),
    (
        "let mut i = 0; while i <  v.len() { if v[i] == x { return true } i += 1 } false",
        "let mut i = 0; while i != v.len() { if v[i] == x { return true } i += 1 } false",
    ),
    (
        "let mut n = v.len(); n = 7; n > 9",
        "let mut n = 1234567; n = 7; n > 9",
    ),
];

/// Each differs for some caller, in a number, a text, a table, or in a check that this profile makes.
const OTHER: [Pair; 9] = [
    ("f64::from(x) * 0.1 > 2.0", "f64::from(x) * 0.2 > 2.0"),
    ("f64::from(x) * 1.0 > 2.0", "f64::from(x) + 1.0 > 2.0"),
    ("x.to_string() == \"12\"", "x.to_string() == \"13\""),
    (
        "[1u32, 2, 3, 4][x as usize & 3] > 2",
        "[1u32, 2, 3, 5][x as usize & 3] > 2",
    ),
    (
        "assert!(x != 9, \"nine\"); true",
        "assert!(x != 9, \"none\"); true",
    ),
    ("(x) >  (1)", "(x) >= (1)"),
    ("x + 1 > x", "true     "),
    ("debug_assert!(x > 3); true", "debug_assert!(x > 4); true"),
    (
        "if cfg!(debug_assertions) { x > 3 } else { true }",
        "if cfg!(debug_assertions) { x > 4 } else { true }",
    ),
];

#[test]
fn a_program_for_comparison_is_the_same_exactly_where_no_caller_could_tell() {
    let site = Site::new();
    let mut session = site.open();
    // Called with numbers that decide.
    let main = "fn main() { println!(\"{}\", demo::judged(9, &[9])); }\n";
    let text = |body: &str| {
        format!(
            "#[inline(never)] pub fn judged(x: u32, v: &[u32]) -> bool {{ let _ = (x, v); {body} }}\n"
        )
    };
    let own = text("true");
    let files = [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("src/lib.rs", own.as_str()),
        ("src/main.rs", main),
    ];
    let mut order = binary("demo");
    let mut workshop = built(&mut session, &files, &order);
    order.optimized = true;
    let driver = BuildTarget::Driver {
        package: None,
        source: main.as_bytes().into(),
    };
    for target in [order.target.clone(), driver] {
        order.target = target;
        let mut digest = |body: &str| {
            let file = "src/lib.rs".parse().unwrap();
            order.overlay = BTreeMap::from([(file, text(body).into_bytes().into())]);
            match workshop.build(&mut session, &order).unwrap() {
                BuildAnswer::Built(built) => built.sha256,
                other => panic!("{body}: {other:?}"),
            }
        };
        for (one, two) in SAME {
            assert_eq!(digest(one), digest(two), "{one} and {two}");
        }
        for (one, two) in OTHER {
            assert_ne!(digest(one), digest(two), "{one} and {two}");
        }
        let (one, _) = SAME[0];
        let first = digest(one);
        digest("false");
        assert_eq!(first, digest(one), "built twice");
    }
    assert!(session.close().unwrap().is_clean());
}
