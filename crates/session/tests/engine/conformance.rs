//! What every session promises, whatever it is made of: a table of hostile programs, and what each
//! comes to. Every test here runs on every backend. Numbers are those of `x86_64`.

use flightproof_core::Digest;
use flightproof_evidence::{
    BuildAnswer, BuildOrder, BuildTarget, CaseRun, Ending, GeneratorOrder, Guard, Observation,
};
use flightproof_frame::protocol::{Exec, ExecLimits, Outcome, Place, Reply, Request, Role, Status};
use flightproof_hostile::archive::{Door, Row, rows};
use flightproof_session::build::Workshop;
use flightproof_session::crates::ship;
use flightproof_session::{Session, SessionCode, SessionError, generate, observe, upload};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A session that another thread than the one that opened it may use.
pub(crate) type Opened = Box<dyn Session + Send>;

/// A backend as the tests need it.
pub(crate) trait Backend: Sync {
    /// Opens a session that may live so long.
    fn open(&self, lifetime: Duration) -> Result<Opened, SessionError>;
    /// Kills a session from outside, as an accident would.
    fn kill(&self, session: &str);
    /// Whatever still exists of a session.
    fn traces(&self, session: &str) -> Vec<String>;
}

const LIFETIME: Duration = Duration::from_secs(300);
pub(crate) const WALL_MS: u64 = 120_000;
const MANIFEST: &str = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\n";
const CANDIDATE: &str = include_str!("candidate.rs");
/// `kill`, `abort` and a call that the filter ends a case for.
const SIGABRT: u8 = 6;
const SIGKILL: u8 = 9;
const EPERM: &[u8] = b"1\n";
const EACCES: &[u8] = b"13\n";
const ENOSYS: &[u8] = b"38\n";
const ENOSPC: u8 = 28;

/// An open session with the hostile candidate built in it.
struct Flight {
    session: Opened,
    id: String,
}

impl Flight {
    fn new(backend: &dyn Backend, lifetime: Duration) -> Self {
        Self::of(backend, lifetime, &[("src/main.rs", CANDIDATE)]).0
    }

    /// The package of these files and a manifest, built.
    fn of(backend: &dyn Backend, lifetime: Duration, files: &[(&str, &str)]) -> (Self, Workshop) {
        let mut session = backend.open(lifetime).unwrap_or_else(|e| panic!("{e}"));
        let files = [("Cargo.toml", MANIFEST), ("Cargo.lock", LOCK)]
            .iter()
            .chain(files)
            .copied()
            .collect::<Vec<_>>();
        let (archive, shipment) = (tree(&files), ship(&[]).unwrap());
        let mut workshop =
            Workshop::furnish(&mut *session, &archive, &shipment, None, WALL_MS).unwrap();
        match workshop.build(&mut *session, &order()).unwrap() {
            BuildAnswer::Built(_) => {}
            other => panic!("{other:?}"),
        }
        let id = session.attestation().session.clone();
        (Self { session, id }, workshop)
    }

    fn run(&mut self, words: &[&str]) -> Observation {
        self.run_case(&case(words))
            .unwrap_or_else(|e| panic!("{words:?}: {e}"))
    }

    fn run_case(&mut self, case: &CaseRun) -> Result<Observation, SessionError> {
        observe::run(&mut *self.session, case)
    }

    /// A row: the program, how it must end, and what it must have said.
    fn row(&mut self, words: &[&str], ending: Ending, said: &[u8]) {
        let seen = self.run(words);
        assert_eq!(seen.ending, ending, "{words:?}");
        assert_eq!(&*seen.stdout, said, "{words:?}");
    }

    /// Proof that the session is still of use: its answers are right.
    fn still_answers(&mut self) {
        let mut echo = case(&["echo"]);
        echo.stdin = b"still here".to_vec().into();
        let seen = self.run_case(&echo).unwrap();
        assert_eq!(seen.ending, Ending::Exited { code: 0 });
        assert_eq!(&*seen.stdout, b"still here");
        assert!(seen.complete);
    }

    fn close(mut self, backend: &dyn Backend) {
        assert!(self.session.close().unwrap().is_clean());
        assert_eq!(backend.traces(&self.id), [] as [String; 0]);
    }
}

/// Rows 33, 45 to 48, 59, 76, 80, 81, 83: what it is, is read back; after its end nothing is there,
/// and asking is an error, never a new session.
pub(crate) fn a_session_is_attested_used_and_leaves_nothing(backend: &dyn Backend) {
    let mut session = backend.open(LIFETIME).unwrap_or_else(|e| panic!("{e}"));
    let attestation = session.attestation().clone();
    assert!(attestation.toolchain.version.starts_with("rustc 1."));
    assert!(attestation.toolchain.target.is_some());
    let has = |name: &str| attestation.readings.iter().any(|r| r.name == name);
    for name in [
        "memory-bytes",
        "swap-bytes",
        "pids",
        "cpu-millis",
        "mapped-ids",
        "capabilities",
        "no-new-privs",
        "mounts",
        "interfaces",
        "core-bytes",
    ] {
        assert!(has(name), "{name}");
    }
    // Swap is none at all, not as much again as there is memory.
    let mut readings = attestation.readings.iter();
    let swap = readings.find(|r| r.name == "swap-bytes").unwrap();
    assert_eq!((swap.asked.as_str(), swap.found.as_str()), ("0", "0"));
    assert!(!attestation.sandbox.is_empty() && !attestation.kernel.is_empty());
    for act in [
        "connect-inet",
        "io-uring",
        "user-namespace",
        "read-runner",
        "ptrace-init",
        "become-root",
        "keep-capability",
    ] {
        assert!(attestation.probes.iter().any(|p| p.act == act), "{act}");
    }
    assert_ne!(backend.traces(&attestation.session), [] as [String; 0]);
    assert!(session.close().unwrap().is_clean());
    assert!(session.close().unwrap().is_clean());
    assert_eq!(backend.traces(&attestation.session), [] as [String; 0]);
    for _ in 0..2 {
        let refused = session.call(&Request::Probe, &[]).unwrap_err();
        assert_eq!(refused.code, SessionCode::SessionClosed);
    }
    assert_eq!(
        session.events().unwrap_err().code,
        SessionCode::SessionClosed
    );
}

pub(crate) fn a_dropped_session_leaves_nothing_either(backend: &dyn Backend) {
    let session = backend.open(LIFETIME).unwrap_or_else(|e| panic!("{e}"));
    let id = session.attestation().session.clone();
    drop(session);
    assert_eq!(backend.traces(&id), [] as [String; 0]);
}

/// Row 30: the kernel's death signal follows the thread that started a process.
pub(crate) fn a_session_outlives_the_thread_that_opened_it(backend: &dyn Backend) {
    let opened = std::thread::scope(|threads| {
        let opening = threads.spawn(|| backend.open(LIFETIME));
        opening.join().unwrap()
    });
    let mut session = opened.unwrap_or_else(|e| panic!("{e}"));
    let answer = session.call(&Request::Probe, &[]).unwrap();
    assert!(matches!(answer, Reply::Probe { .. }), "{answer:?}");
    assert!(session.close().unwrap().is_clean());
}

/// Rows 1 to 8, 15, 16, 35, 36.
pub(crate) fn output_comes_through_byte_for_byte_and_never_without_end(backend: &dyn Backend) {
    let mut flight = Flight::new(backend, LIFETIME);
    for words in [["flood"], ["flood-errors"]] {
        let seen = flight.run(&words);
        assert_eq!(seen.ending, Ending::OutputLimit, "{words:?}");
        let kept = seen.stdout.len() + seen.stderr.len();
        assert_eq!(kept as u64, observe::MAX_OUTPUT, "{words:?}");
        assert!(!seen.complete, "{words:?}");
    }
    let forged = b"\x01\0\0\0\0\0\0\x02no\x03\0\0\0\0\0\0\x05error\0\0\0\x02\x05\0\0\0\x01{}\xff\xfe\x1b]0;x\x07";
    flight.row(&["forge"], Ending::Exited { code: 0 }, forged);
    flight.row(&["early-close"], Ending::Exited { code: 5 }, b"");

    let asked = Instant::now();
    flight.row(&["daemon"], Ending::Exited { code: 7 }, b"");
    assert!(
        asked.elapsed() < Duration::from_secs(2),
        "a grandchild held the output open"
    );

    let mut whole = case(&["echo"]);
    whole.stdin = (0..=255)
        .cycle()
        .take(900 << 10)
        .collect::<Vec<u8>>()
        .into();
    assert_eq!(flight.run_case(&whole).unwrap().stdout, whole.stdin);
    // Nobody reads what is sent: that is no error of anybody.
    whole.args = vec!["exit".to_owned(), "0".to_owned()];
    let seen = flight.run_case(&whole).unwrap();
    assert_eq!(seen.ending, Ending::Exited { code: 0 });
    flight.still_answers();
    flight.close(backend);
}

/// Rows 17, 19 to 22, 29, 33, 34.
pub(crate) fn no_process_outlives_its_case_nor_its_time(backend: &dyn Backend) {
    let mut flight = Flight::new(backend, LIFETIME);
    for words in [&["deaf"] as &[&str], &["sleep"], &["raise", "19"]] {
        let mut stuck = case(words);
        stuck.wall_ms = 300;
        let asked = Instant::now();
        assert_eq!(
            flight.run_case(&stuck).unwrap().ending,
            Ending::TimedOut,
            "{words:?}"
        );
        assert!(asked.elapsed() < Duration::from_secs(3), "{words:?}");
    }
    flight.row(&["raise", "9"], Ending::Signaled { signal: SIGKILL }, b"");
    flight.row(&["raise", "6"], Ending::Signaled { signal: SIGABRT }, b"");
    flight.row(&["exit", "137"], Ending::Exited { code: 137 }, b"");
    // More daemons and orphans than the session may have processes: none is left of any.
    for _ in 0..70 {
        flight.row(&["daemon"], Ending::Exited { code: 7 }, b"");
    }
    flight.still_answers();
    flight.close(backend);
}

/// Rows 18, 23, 70, 72.
pub(crate) fn limits_are_named_whatever_the_program_made_of_them(backend: &dyn Backend) {
    let mut flight = Flight::new(backend, LIFETIME);
    for (words, ending) in [
        (["forks"], Ending::ProcessLimit),
        (["memory"], Ending::MemoryLimit),
        (["memory-of-a-child"], Ending::MemoryLimit),
        (["fill"], Ending::Exited { code: ENOSPC }),
    ] {
        let mut limited = case(&words);
        limited.wall_ms = 20_000;
        assert_eq!(
            flight.run_case(&limited).unwrap().ending,
            ending,
            "{words:?}"
        );
        flight.still_answers();
    }
    flight.close(backend);
}

/// Rows 24 to 26: an accident of the launch is no answer of the program, and ends nothing.
pub(crate) fn what_cannot_start_says_nothing_about_the_candidate(backend: &dyn Backend) {
    let mut flight = Flight::new(backend, LIFETIME);
    let absent = CaseRun {
        program: "nobody".to_owned(),
        ..case(&[])
    };
    let too_long = case(&["exit", &"0".repeat(200 << 10)]);
    let too_many = case(&vec!["x"; 5_000]);
    let long = "x".repeat(120 << 10);
    let together = case(&[long.as_str(); 10]);
    let with_nul = case(&["exit", "0\0"]);
    let variable = |name: &str, value: &str| CaseRun {
        env: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        ..case(&["exit", "0"])
    };
    let (bad_name, bad_value) = (variable("A=B", "c"), variable("A", "b\0"));
    let no_time = CaseRun {
        wall_ms: 0,
        ..case(&["exit", "0"])
    };
    for launch in [
        absent, too_long, too_many, together, with_nul, bad_name, bad_value, no_time,
    ] {
        let refused = flight.run_case(&launch).unwrap_err();
        assert!(
            matches!(
                refused.code,
                SessionCode::RunnerRefused | SessionCode::LaunchFailed
            ),
            "{refused}"
        );
        flight.still_answers();
    }
    // The benign twin of 126 and 127, which shells use for the same.
    for code in ["126", "127"] {
        let exited = Ending::Exited {
            code: code.parse().unwrap(),
        };
        flight.row(&["exit", code], exited, b"");
    }
    flight.close(backend);
}

/// Rows 63, 71, 77 to 86.
pub(crate) fn nothing_of_the_machine_or_of_another_case_is_in_reach(backend: &dyn Backend) {
    let mut flight = Flight::new(backend, LIFETIME);
    let quiet = Ending::Exited { code: 0 };
    // IPv4, IPv6, netlink, packets, AF_ALG, AF_VSOCK.
    for family in ["2", "10", "16", "17", "38", "40"] {
        flight.row(&["socket", family], Ending::ForbiddenCall, b"");
    }
    // Abstract sockets, an engine's socket: none can even be made.
    flight.row(&["socket", "1"], quiet.clone(), EACCES);
    // ptrace, bpf, io_uring_setup, _enter and _register, keyctl, add_key, request_key, userfaultfd,
    // perf_event_open, process_vm_readv and _writev, open_by_handle_at, mount, umount2, pivot_root,
    // chroot, unshare, setns, kexec_load, kexec_file_load, init_module, finit_module,
    // delete_module, settimeofday, clock_settime, swapon, iopl, syslog, reboot, setrlimit.
    for number in [
        "101", "321", "425", "426", "427", "250", "248", "249", "323", "298", "310", "311", "304",
        "165", "166", "155", "161", "272", "308", "246", "320", "175", "313", "176", "164", "227",
        "167", "172", "103", "169", "160",
    ] {
        flight.row(&["call", number], quiet.clone(), EPERM);
    }
    // clone3, whose flags no filter sees: a program must be told that it does not exist.
    flight.row(&["call", "435"], quiet.clone(), ENOSYS);
    flight.row(&["user-namespace"], quiet.clone(), EPERM);
    flight.row(&["host-name"], quiet.clone(), b"flight\n");
    flight.row(&["descriptors"], quiet.clone(), b"");
    flight.row(
        &["environment"],
        quiet.clone(),
        b"HOME=/case LC_ALL=C TMPDIR=/case TZ=UTC\n",
    );
    flight.row(
        &[
            "read",
            "/proc",
            "/proc/self/status",
            "/proc/1/environ",
            "/proc/1/cgroup",
            "/proc/cmdline",
            "/sys",
            "/etc/passwd",
            "/root",
            "/",
            "/flight/src/Cargo.toml",
            "/flight",
            "/runner/flights",
            "/runner",
            "/exe",
            "/toolchain",
            "/var/run/docker.sock",
            "/run",
            "/dev/kmsg",
            "/dev/tty",
            "/dev/ptmx",
            "/dev/pts",
            "/dev/shm",
            "/dev/mqueue",
            "/dev/fuse",
            "/dev/kvm",
            "/dev/vsock",
            "/dev/net/tun",
            "/tmp",
            "/var/tmp",
            "/sys/fs/cgroup",
            "/.dockerenv",
            "/home",
        ],
        quiet.clone(),
        b"",
    );
    // Another uid each time, never root, and nothing of the case before.
    let uids: Vec<_> = (0..3).map(|_| flight.run(&["uid"]).stdout).collect();
    assert!(uids.iter().all(|uid| **uid != *b"0\n"), "{uids:?}");
    assert!(uids[0] != uids[1] && uids[1] != uids[2], "{uids:?}");
    // Its scratch is its own, whatever the place it is mounted on was; and no file makes it another.
    flight.row(&["scratch"], quiet.clone(), b"700 true\n");
    for path in [
        "/bin/sh",
        "/usr/bin/su",
        "/usr/bin/passwd",
        "/usr/bin/mount",
    ] {
        flight.row(&["start", path], quiet.clone(), EACCES);
    }
    flight.row(&["start-own"], quiet.clone(), EACCES);
    flight.row(&["leave", "/case/secret"], quiet.clone(), b"");
    flight.row(&["read", "/case/secret"], quiet, b"");
    flight.still_answers();
    flight.close(backend);
}

/// Row 64: what was received is hashed inside, and a lie about it is refused.
pub(crate) fn what_arrives_must_be_what_was_sent(backend: &dyn Backend) {
    let mut session = backend.open(LIFETIME).unwrap_or_else(|e| panic!("{e}"));
    let archive = tree(&[("a", "b")]);
    let lie = Digest::of(b"another");
    let refused = upload::archive(&mut *session, Place::Source, &archive, lie).unwrap_err();
    assert_eq!(refused.code, SessionCode::RunnerRefused);
    assert!(session.close().unwrap().is_clean());
}

/// Rows 65, 66: paths that leave, names that are others elsewhere, links, devices, modes, lengths that
/// lie. Whatever is refused is refused inside, by its code, and leaves its place empty.
pub(crate) fn no_forged_archive_is_unpacked(backend: &dyn Backend) {
    let mut session = backend.open(LIFETIME).unwrap_or_else(|e| panic!("{e}"));
    let forged: Vec<_> = rows().into_iter().filter(fits).collect();
    assert!(forged.len() > 100, "{}", forged.len());
    for row in &forged {
        let refused = upload::archive(&mut *session, place(row), &row.attack.bytes, id(row));
        let refused = refused.unwrap_err();
        let code = format!("archive/{}:", row.attack.expect);
        assert_eq!(refused.code, SessionCode::RunnerRefused, "{refused}");
        assert!(
            refused.detail.contains(&code),
            "{}: {refused}",
            row.attack.name
        );
    }
    // The places are as if nothing had been sent: the twin of the last of each comes in.
    for taken in [Place::Source, Place::Crates] {
        let row = forged.iter().rfind(|row| place(row) == taken).unwrap();
        let twin = flightproof_archive::paws::read(&row.attack.twin).unwrap();
        let id = twin.snapshot.snapshot_id();
        upload::archive(&mut *session, taken, &row.attack.twin, id).unwrap();
    }
    assert!(session.close().unwrap().is_clean());
}

/// A whole snapshot, and not one of those that are megabytes long.
fn fits(row: &Row) -> bool {
    let whole = matches!(row.door, Door::Snapshot | Door::Captured | Door::Strict);
    whole && row.attack.bytes.len() < 64 << 10
}

/// Where its rules for names hold.
fn place(row: &Row) -> Place {
    match row.door {
        Door::Strict => Place::Crates,
        _ => Place::Source,
    }
}

/// The tree it says it has, if it says so in a way that can be read.
fn id(row: &Row) -> Digest {
    use flightproof_archive::paws::{HEADER_BYTES, Manifest, decode};
    let bytes = &row.attack.bytes;
    let length = |header: &[u8]| {
        header
            .last_chunk()
            .map(|length| u64::from_be_bytes(*length))
    };
    let end = bytes.get(..HEADER_BYTES).and_then(length).unwrap_or(0);
    let end = HEADER_BYTES.saturating_add(usize::try_from(end).unwrap());
    match bytes.get(..end).map(decode) {
        Some(Ok(Manifest::Snapshot(snapshot))) => snapshot.snapshot_id(),
        _ => Digest::of(b""),
    }
}

/// Rows 21, 68, 69: what comes out is taken when nobody writes any more, through no link, and of a
/// size that was agreed on.
pub(crate) fn what_a_build_leaves_is_taken_whole_and_at_rest(backend: &dyn Backend) {
    let mut session = backend.open(LIFETIME).unwrap_or_else(|e| panic!("{e}"));
    // A writer that nobody waits for, whose parent is gone.
    let writer = "n=0; while :; do n=$((n+1)); echo $n >/flight/target/count; done";
    let left = format!(
        "({{ {writer}; }} &) </dev/null >/dev/null 2>&1; while ! [ -s /flight/target/count ]; do :; done"
    );
    let done = Status::Exited { code: 0 };
    assert_eq!(tool(&mut *session, &left).status, done);
    let count = |session: &mut dyn Session| tool(session, "cat /flight/target/count").stdout;
    let first = count(&mut *session);
    session.call(&Request::Probe, &[]).unwrap();
    assert_eq!(count(&mut *session), first, "somebody still writes");

    let made = tool(&mut *session, PRODUCTS);
    let said = String::from_utf8_lossy(&made.stderr);
    assert_eq!(made.status, done, "{said}");
    for product in [
        "bomb",
        "link",
        "way/flights",
        "pipe",
        "dir",
        "absent",
        "../src",
    ] {
        let request = Request::Promote {
            from: format!("/flight/target/{product}"),
            name: "demo".to_owned(),
        };
        let answer = session.call(&request, &[]).unwrap();
        let Reply::Refused { code, .. } = &answer else {
            panic!("{product}: {answer:?}");
        };
        assert_eq!(code, "runner/PROMOTE_REFUSED", "{product}");
    }
    // More than may be said, and more than may be listed.
    let flood = tool(&mut *session, "while :; do echo flood; done");
    assert_eq!(flood.status, Status::OutputLimit);
    assert_eq!((flood.stdout.len(), flood.complete), (SAID, false));
    assert!(session.close().unwrap().is_clean());
    a_generator_that_leaves_too_much_is_no_answer(backend);
}

/// A gigabyte without a block, and ways to what is nobody's product.
const PRODUCTS: &str = "cd /flight/target && mkdir dir && ln -s /runner/flights link && ln -s /runner way && \
    exec python3 -c 'import os; os.truncate(os.open(\"bomb\", os.O_CREAT | os.O_RDWR), 1 << 30); os.mkfifo(\"pipe\")'";
/// Most bytes of each stream of [`tool`].
const SAID: usize = 20_000;

fn a_generator_that_leaves_too_much_is_no_answer(backend: &dyn Backend) {
    let mut session = backend.open(LIFETIME).unwrap_or_else(|e| panic!("{e}"));
    generate::furnish(&mut *session, [("in".parse().unwrap(), false, b"")]).unwrap();
    let program = "import os, sys; os.mkdir('out'); \
        [open(f'out/{n:0200}', 'w').close() for n in range(int(sys.argv[1]))]";
    let order = |argv: &[&str]| GeneratorOrder {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        outputs: vec!["out".parse().unwrap()],
    };
    let python = "/usr/bin/python3";
    let many = order(&[python, "-c", program, "12000"]);
    let refused = generate::run(&mut *session, &many).unwrap_err();
    assert_eq!(refused.code, SessionCode::GeneratedUnreadable, "{refused}");
    // Row 24: a tool that is not there is no end of a generator.
    let refused = generate::run(&mut *session, &order(&["/usr/bin/nobody"])).unwrap_err();
    assert_eq!(refused.code, SessionCode::LaunchFailed, "{refused}");

    // The honest twin: twice the same, whatever stands in names, and whatever was closed before.
    let program = "import os; os.mkdir('out'); os.mkdir('out/d'); \
        open('out/d/a \\n-b', 'w').write('x'); os.chmod('out/d/a \\n-b', 0o744); \
        open('out/c', 'w').close(); os.symlink('c', 'out/l'); os.mkdir('shut'); open('shut/x', 'w').close(); os.chmod('shut', 0o500)";
    let few = order(&[python, "-c", program]);
    let first = generate::run(&mut *session, &few).unwrap();
    let shown: Vec<_> = first
        .entries
        .iter()
        .map(|e| {
            (
                e.path.as_str(),
                e.file.as_ref().map(|f| (f.executable, f.sha256)),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("out/c", Some((false, Digest::of(b"")))),
            ("out/d/a \n-b", Some((true, Digest::of(b"x")))),
            ("out/l", None),
        ]
    );
    assert_eq!(generate::run(&mut *session, &few).unwrap(), first);
    assert!(session.close().unwrap().is_clean());
}

/// Rows 77, 81, 83 to 86, for what runs while something is built: no socket, no file of the session's or
/// the machine's but tools and the tree, nothing to write but its output, nobody else to be.
pub(crate) fn a_build_reaches_nothing_but_its_places(backend: &dyn Backend) {
    let mut session = backend.open(LIFETIME).unwrap_or_else(|e| panic!("{e}"));
    let (source, archive) = (tree(&[("a", "b")]), tree(&[("c", "d")]));
    for (place, archive) in [(Place::Source, source), (Place::Crates, archive)] {
        let id = flightproof_archive::paws::read(&archive)
            .unwrap()
            .snapshot
            .snapshot_id();
        upload::archive(&mut *session, place, &archive, id).unwrap();
    }
    let seen = tool(&mut *session, &format!("exec python3 -c '{BUILD_TRIES}'"));
    let said = String::from_utf8_lossy(&seen.stderr);
    assert_eq!(seen.status, Status::Exited { code: 0 }, "{said}");
    let expected = "1 13\n2 1\n10 1\n16 1\n17 1\n38 1\n40 1\n\
        read /flight/src/a\nread /usr/bin/python3\nwrote /flight/target/x\nuser False\nenvironment PATH\n\
        setuid 1\nkill 1\ndevice 13\nchroot 1\n";
    assert_eq!(String::from_utf8_lossy(&seen.stdout), expected);
    assert!(session.close().unwrap().is_clean());
}

const BUILD_TRIES: &str = r#"
import os, socket

def tried(name, act):
    try:
        act()
        print(name, 0)
    except OSError as error:
        print(name, error.errno)

for family in (1, 2, 10, 16, 17, 38, 40):
    tried(family, lambda: socket.socket(family, socket.SOCK_DGRAM))
for path in ("/flight/src/a", "/usr/bin/python3", "/flight/crates/c", "/flight/crates", "/runner/flights", "/runner",
    "/exe", "/case", "/etc/passwd", "/etc/shadow", "/etc/hostname", "/root", "/home", "/proc", "/proc/1/environ",
    "/proc/self/status", "/sys", "/sys/fs/cgroup", "/var/run/docker.sock", "/run", "/dev/kmsg", "/dev/tty",
    "/.dockerenv"):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
        print("read", path)
    except OSError:
        pass
for path in ("/flight/target/x", "/flight/src/a", "/flight/src/x", "/flight/x", "/exe/x", "/case/x", "/tmp/x", "/x",
    "/usr/x", "/usr/bin/x", "/toolchain/x", "/runner/x", "/dev/x"):
    try:
        open(path, "wb").write(b"x")
        print("wrote", path)
    except OSError:
        pass
print("user", os.getuid() == 0 or os.geteuid() == 0 or 0 in os.getgroups())
print("environment", *sorted(set(os.environ) - {"LC_CTYPE", "PWD", "SHLVL", "_", "OLDPWD"}))
tried("setuid", lambda: os.setuid(0))
tried("kill", lambda: os.kill(1, 9))
tried("device", lambda: os.mknod("/flight/target/null", 0o20666, os.makedev(1, 3)))
tried("chroot", lambda: os.chroot("/flight/target"))
"#;

/// Runs a script as a build's tool.
fn tool(session: &mut dyn Session, script: &str) -> Outcome {
    let request = Request::Exec(Exec {
        role: Role::Build,
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms: 20_000,
            stdout_bytes: SAID as u64,
            stderr_bytes: SAID as u64,
        },
        selector: None,
        tree: None,
    });
    match session.call(&request, &[]).unwrap() {
        Reply::Exec(outcome) => outcome,
        other => panic!("{script}: {other:?}"),
    }
}

/// Row 75: neither what a tree says of compilers, flags and wrappers is heard, nor what its build
/// script leaves for the next build. Row 54: nor what an image says of it.
pub(crate) fn no_tree_has_a_say_in_how_it_is_built(backend: &dyn Backend) {
    let settings = "[build]\nrustc-wrapper = \"/flight/src/wrapper\"\nrustflags = [\"--cfg\", \"heard\"]\n\
        [env]\nHEARD = { value = \"yes\", force = true }\n[unstable]\nno-such-thing = true\n";
    let toolchain = "[toolchain]\nchannel = \"nightly-2001-01-01\"\n";
    let main = |number: u32| {
        let heard = "cfg!(heard) || option_env!(\"HEARD\").is_some() || option_env!(\"RUSTC_WRAPPER\").is_some()";
        format!("fn main() {{ println!(\"{number} {{}}\", {heard}); }}\n")
    };
    let script = r#"fn main() {
        for dir in ["/flight/home", "/flight/tmp/.cargo", "/flight/target/.cargo"] {
            std::fs::create_dir_all(dir).unwrap();
            for name in ["config.toml", "config"] {
                std::fs::write(format!("{dir}/{name}"), "[build]\nrustc-wrapper = \"/usr/bin/false\"\n").unwrap();
            }
        }
    }"#;
    let files = [
        (".cargo/config.toml", settings),
        ("rust-toolchain.toml", toolchain),
        ("src/.cargo/config.toml", settings),
        ("wrapper", "#!/bin/false\n"),
        ("build.rs", script),
        ("src/main.rs", &main(1)),
    ];
    let (mut flight, mut workshop) = Flight::of(backend, LIFETIME, &files);
    flight.row(&[], Ending::Exited { code: 0 }, b"1 false\n");
    let mut again = order();
    let file = "src/main.rs".parse().unwrap();
    again.overlay.insert(file, main(2).into_bytes().into());
    let answer = workshop.build(&mut *flight.session, &again).unwrap();
    assert!(matches!(answer, BuildAnswer::Built(_)), "{answer:?}");
    flight.row(&[], Ending::Exited { code: 0 }, b"2 false\n");
    flight.close(backend);
}

/// Rows 20, 61: it is the session that ends, not only the program.
pub(crate) fn the_lifetime_ends_a_session_whatever_it_is_doing(backend: &dyn Backend) {
    let opened = Instant::now();
    let lifetime = Duration::from_secs(20);
    let mut flight = Flight::new(backend, lifetime);
    let mut forever = case(&["deaf"]);
    forever.wall_ms = 600_000;
    let refused = flight.run_case(&forever).unwrap_err();
    assert_eq!(refused.code, SessionCode::Deadline, "{refused}");
    // Long before the case would have; how soon exactly is for benchmarks on quiet machines.
    assert!(opened.elapsed() < Duration::from_millis(forever.wall_ms) / 10);
    let record = |trace: &String| trace.ends_with(".json");
    assert!(
        backend.traces(&flight.id).iter().all(record),
        "only the record is left"
    );
    let again = flight.run_case(&forever).unwrap_err();
    assert_eq!(again.code, SessionCode::SessionClosed);
    flight.close(backend);
}

/// Rows 9, 28, 37.
pub(crate) fn a_session_that_dies_is_lost_and_never_an_answer(backend: &dyn Backend) {
    let mut session = backend.open(LIFETIME).unwrap_or_else(|e| panic!("{e}"));
    let id = session.attestation().session.clone();
    backend.kill(&id);
    let refused = session.call(&Request::Probe, &[]).unwrap_err();
    assert_eq!(refused.code, SessionCode::SessionLost, "{refused}");
    let again = session.call(&Request::Probe, &[]).unwrap_err();
    assert_eq!(again.code, SessionCode::SessionClosed);
    assert!(session.close().unwrap().is_clean());
    assert_eq!(backend.traces(&id), [] as [String; 0]);
}

/// Rows 1, 2.
pub(crate) fn a_flood_costs_the_host_no_more_than_its_cap(backend: &dyn Backend) {
    let mut flight = Flight::new(backend, LIFETIME);
    flight.run(&["flood"]);
    let before = peak_kib();
    for _ in 0..3 {
        assert_eq!(flight.run(&["flood"]).ending, Ending::OutputLimit);
    }
    let grown = peak_kib() - before;
    assert!(grown <= 8 << 10, "the host grew by {grown} KiB");
    flight.close(backend);
}

/// The most memory this process ever had, KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn tree(files: &[(&str, &str)]) -> Vec<u8> {
    let files = files
        .iter()
        .map(|(path, text)| (path.parse().unwrap(), false, text.as_bytes()));
    flightproof_archive::paws::pack("demo", files)
        .unwrap()
        .bytes
}

pub(crate) fn order() -> BuildOrder {
    BuildOrder {
        program: "demo".to_owned(),
        target: BuildTarget::Bin {
            name: "demo".to_owned(),
        },
        overlay: BTreeMap::new(),
        guard: Guard {
            name: "guard_1f".to_owned(),
            source: "pub fn active() -> u64 { 0 }".to_owned(),
        },
        optimized: false,
    }
}

pub(crate) fn case(words: &[&str]) -> CaseRun {
    CaseRun {
        program: "demo".to_owned(),
        args: words.iter().map(|w| (*w).to_owned()).collect(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        env: BTreeMap::new(),
        selector: None,
        wall_ms: 5_000,
        tree: None,
    }
}
