//! Engines that lie, break off, say nothing or say too much: a socket that answers what the test
//! says. No engine is needed.

use flightproof_archive::paar;
use flightproof_core::{CommitId, Digest};
use flightproof_ledger::Ledger;
use flightproof_session::docker::{self, DockerSpec, Endpoint, Engine, PinnedImage};
use flightproof_session::fuzzing::frame;
use flightproof_session::lease::{Leases, Reaper};
use flightproof_session::local::RunnerProgram;
use flightproof_session::record::Owner;
use flightproof_session::{SessionCode, SessionError};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the engine does with one request.
#[derive(Clone)]
enum Answer {
    /// A status and a JSON body.
    Json(u16, String),
    /// A body without an end, under this status.
    Endless(u16),
    /// It hangs up without a word.
    HangUp,
    /// It keeps the connection and says nothing.
    Silence,
    /// It switches to raw bytes, sends these, and closes.
    Raw(Vec<u8>),
    /// The same, piece by piece with a pause before each.
    Paced(Vec<Vec<u8>>),
    /// It switches to raw bytes and says nothing until the other side lets go.
    Held,
}

/// A socket with a scripted engine behind it.
struct Fake {
    dir: tempfile::TempDir,
    asked: Arc<Mutex<Vec<String>>>,
}

type Script = dyn Fn(&str, &str) -> Option<Answer> + Send + Sync;

impl Fake {
    /// `script` answers a request line and body, or leaves it to an honest engine.
    fn new(script: impl Fn(&str, &str) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, script): (_, Arc<Script>) = (Arc::clone(&asked), Arc::new(script));
        let created = Arc::new(Mutex::new(None));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, script) = (Arc::clone(&log), Arc::clone(&script));
                let created = Arc::clone(&created);
                std::thread::spawn(move || serve(stream, &log, &*script, &created));
            }
        });
        Self { dir, asked }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Unix(self.dir.path().join("engine.sock"))
    }

    fn spec(&self) -> DockerSpec {
        let state_dir = self.dir.path().join("state");
        DockerSpec {
            endpoint: self.endpoint(),
            image: PinnedImage {
                id: image(),
                layers: vec![Digest::of(b"layer")],
            },
            memory_bytes: 1 << 30,
            pids: 64,
            cpu_millis: 2000,
            scratch_bytes: 512 << 20,
            lifetime_ms: 60_000,
            entropy: [7; 16],
            ledger: docker::ledger_id(&state_dir).unwrap(),
            state_dir,
            fence: 1,
        }
    }

    fn open(&self) -> SessionError {
        docker::open(&self.spec(), &runner()).unwrap_err()
    }

    /// Request lines that were asked, without the version.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn records(&self) -> usize {
        let dir: PathBuf = self.dir.path().join("state/engines");
        std::fs::read_dir(dir).map_or(0, Iterator::count)
    }

    fn removed(&self) -> bool {
        let name = format!("/containers/flightproof-{}", "07".repeat(16));
        let by = |line: &&String| {
            line.starts_with("DELETE /containers/c0") || line.starts_with(&format!("DELETE {name}"))
        };
        self.asked().iter().any(|line| by(&line))
    }
}

fn image() -> Digest {
    Digest::of(b"image")
}

fn runner() -> RunnerProgram {
    let origin = paar::Origin {
        target: paar::Target::CURRENT.unwrap(),
        source_commit: CommitId::from_bytes([0; 20]),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    };
    let path = paar::ArtifactPath::new("flights").unwrap();
    let packed = paar::pack(origin, [(path, true, b"program".as_slice())]).unwrap();
    RunnerProgram::from_artifact(&packed.bytes).unwrap()
}

fn serve(
    mut stream: UnixStream,
    log: &Mutex<Vec<String>>,
    script: &Script,
    created: &Mutex<Option<serde_json::Value>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        if header.trim().is_empty() {
            break;
        }
        if let Some(bytes) = header.to_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap_or_default());
    let path = path.split_once("/v1.").map_or(path, |(_, rest)| {
        rest.find('/').map_or("", |at| &rest[at..])
    });
    let asked = format!("{method} {path}");
    log.lock().unwrap().push(asked.clone());
    let answer = script(&asked, &body).unwrap_or_else(|| honest(&asked, &body, created));
    match answer {
        Answer::HangUp => {}
        Answer::Silence => std::thread::sleep(Duration::from_secs(60)),
        Answer::Json(status, body) => {
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
        Answer::Endless(status) => {
            let _ = write!(
                stream,
                "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
            );
            while stream.write_all(&[b' '; 64 << 10]).is_ok() {}
        }
        Answer::Raw(bytes) => stream_pieces(&mut stream, &mut reader, &[bytes], Duration::ZERO),
        Answer::Held => {
            stream_pieces(&mut stream, &mut reader, &[], Duration::ZERO);
            let _ = reader.read_to_end(&mut Vec::new());
        }
        Answer::Paced(pieces) => stream_pieces(&mut stream, &mut reader, &pieces, PAUSE),
    }
}

/// Between two pieces of a stream: long enough for each to be read by itself.
const PAUSE: Duration = Duration::from_millis(2);

/// Switches to raw bytes.
fn stream_pieces(
    stream: &mut UnixStream,
    reader: &mut BufReader<UnixStream>,
    pieces: &[Vec<u8>],
    pause: Duration,
) {
    let _ = stream.write_all(
                b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
            );
    // As an engine does: first it takes what it is sent.
    let mut taken = [0; 7];
    let _ = reader.read_exact(&mut taken);
    for piece in pieces {
        std::thread::sleep(pause);
        let _ = stream.write_all(piece);
    }
}

/// What an honest engine answers to everything up to the start.
fn honest(asked: &str, body: &str, created: &Mutex<Option<serde_json::Value>>) -> Answer {
    let json = |value: serde_json::Value| Answer::Json(200, value.to_string());
    let path = asked.split('?').next().unwrap();
    match path {
        "GET /version" => json(serde_json::json!({
            "Version": "20.10.24", "ApiVersion": "1.41", "Os": "linux", "Arch": "amd64",
            "KernelVersion": "6.18",
        })),
        "GET /info" => json(serde_json::json!({
            "SystemTime": "2026-11-29T18:40:42Z", "DefaultRuntime": "runc", "CgroupVersion": "1",
            "SecurityOptions": ["name=seccomp,profile=default"],
        })),
        "POST /containers/create" => {
            *created.lock().unwrap() = Some(serde_json::from_str(body).unwrap());
            Answer::Json(201, r#"{"Id":"c0","Warnings":[]}"#.to_owned())
        }
        "POST /containers/c0/start" => Answer::Json(204, String::new()),
        "GET /containers/json" => json(serde_json::json!([])),
        _ if path.starts_with("DELETE ") => {
            *created.lock().unwrap() = None;
            Answer::Json(204, String::new())
        }
        _ if path.starts_with("GET /images/") => json(serde_json::json!({
            "Id": format!("sha256:{}", image()), "Os": "linux", "Architecture": "amd64",
            "RootFS": {"Type": "layers", "Layers": [format!("sha256:{}", Digest::of(b"layer"))]},
        })),
        _ => Answer::Json(404, r#"{"message":"no such container"}"#.to_owned()),
    }
}

fn said(status: u16, body: &str) -> Option<Answer> {
    Some(Answer::Json(status, body.to_owned()))
}

/// A greeting as our program sends it.
fn hello() -> Vec<u8> {
    let hello = br#"{"protocol":"flightproof/runner/1","pid":1,"landlock_abi":7}"#;
    let mut message = u32::try_from(hello.len()).unwrap().to_be_bytes().to_vec();
    message.extend([1, 0, 0, 0, 0]);
    message.extend(hello);
    message
}

/// Row 42.
#[test]
fn what_is_spoken_is_the_newest_version_that_both_know_and_is_said() {
    let ours = bollard::API_DEFAULT_VERSION.to_string();
    for (theirs, spoken) in [("1.41", "1.41"), ("1.45", "1.45"), ("9.99", ours.as_str())] {
        let fake = Fake::new(move |asked, _| {
            let version = format!(
                r#"{{"Version":"20.10.24","ApiVersion":"{theirs}","Os":"linux","Arch":"amd64"}}"#
            );
            asked
                .starts_with("GET /version")
                .then_some(Answer::Json(200, version))
        });
        let engine = Engine::connect(&fake.endpoint()).unwrap();
        assert_eq!(engine.facts().api, spoken, "{theirs}");
    }
    // One that has given up all we know.
    let fake = Fake::new(|asked, _| {
        let newer = r#"{"message":"client version is too old, the oldest is 2.0"}"#;
        asked
            .starts_with("GET /info")
            .then(|| Answer::Json(400, newer.to_owned()))
    });
    let refused = Engine::connect(&fake.endpoint()).unwrap_err();
    assert_eq!(refused.code, SessionCode::EngineFault, "{refused}");
    assert!(refused.detail.contains("too old"), "{refused}");
}

/// Row 42.
#[test]
fn an_engine_that_is_too_old_is_named_before_anything_is_made() {
    let fake = Fake::new(|asked, _| {
        asked
            .starts_with("GET /version")
            .then(|| Answer::Json(200, r#"{"Version":"19.03","ApiVersion":"1.40"}"#.to_owned()))
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::EngineTooOld, "{refused}");
    assert!(refused.detail.contains("1.40"), "{refused}");
    assert_eq!(fake.records(), 0);
}

/// Row 49: its own profile would leave more open than ours, so it is handed ours as it takes it: by a
/// file. It makes a container ready when somebody attaches, and says then what it cannot.
#[test]
fn podman_gets_our_profile_as_a_file_and_its_reasons_are_shown() {
    let podman = r#"{"Version":"4.3.1","ApiVersion":"1.41","Os":"linux","Arch":"amd64",
        "Components":[{"Name":"Podman Engine","Version":"4.3.1"}]}"#;
    let fake = Fake::new(|asked, body| {
        if asked.starts_with("GET /version") {
            return said(200, podman);
        }
        if asked.contains("/attach") {
            return said(409, r#"{"message":"preparing: crun: setrlimit"}"#);
        }
        let as_asked = body.contains("/state/seccomp.json\"") && body.contains("/var/tmp");
        (asked.contains("/containers/create") && !as_asked)
            .then(|| Answer::Json(500, r#"{"message":"no profile"}"#.to_owned()))
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::EngineFault, "{refused}");
    assert!(refused.detail.contains("crun: setrlimit"), "{refused}");
    let profile = std::fs::read_to_string(fake.dir.path().join("state/seccomp.json")).unwrap();
    assert!(profile.contains("SCMP_ACT_ERRNO"));
    assert!(fake.removed());
    assert_eq!(fake.records(), 0);
}

/// Rows 8, 9, 27, 55, 64, 67. The benign twin: the greeting is waited for, and only its absence ends it.
/// Nothing is asked beside: no `exec`, no archive, no exit code, no second line.
#[test]
fn an_honest_engine_gets_as_far_as_the_greeting() {
    let fake = Fake::new(|asked, _| {
        asked
            .contains("/attach")
            .then(|| Answer::Raw(frame(2, b"exec format error")))
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::StartFailed, "{refused}");
    assert!(refused.detail.contains("exec format error"), "{refused}");
    assert!(fake.removed());
    assert_eq!(fake.records(), 0);
    let asked = fake.asked();
    let place = |what: &str| asked.iter().position(|line| line.contains(what)).unwrap();
    assert!(
        place("/attach") < place("/start"),
        "attached before it starts: {asked:?}"
    );
    let known = |line: &String| {
        let path = line.split('?').next().unwrap();
        let image = format!("GET /images/sha256:{}/json", image());
        path == image || ASKED.contains(&path)
    };
    let strange: Vec<_> = asked.iter().filter(|line| !known(line)).collect();
    assert_eq!(strange, [] as [&String; 0]);
    let attached = asked.iter().filter(|line| line.contains("/attach"));
    assert_eq!(attached.count(), 1);
}

/// All that an engine is ever asked on the way to a session and back.
const ASKED: [&str; 7] = [
    "GET /version",
    "GET /info",
    "POST /containers/create",
    "POST /containers/c0/attach",
    "POST /containers/c0/start",
    "DELETE /containers/c0",
    "GET /containers/c0/json",
];

/// Row 60: it attaches and starts, and then there is nothing.
#[test]
fn a_container_that_never_greets_is_given_up_at_its_deadline() {
    let fake = Fake::new(|asked, _| asked.contains("/attach").then_some(Answer::Held));
    let spec = DockerSpec {
        lifetime_ms: 700,
        ..fake.spec()
    };
    let asked = Instant::now();
    let refused = docker::open(&spec, &runner()).unwrap_err();
    assert_eq!(refused.code, SessionCode::StartFailed, "{refused}");
    assert!(asked.elapsed() < Duration::from_secs(20));
    assert!(fake.removed());
    assert_eq!(fake.records(), 0);
}

/// Row 15: an engine writes its own errors where the program's output should be.
#[test]
fn an_error_of_the_engine_in_a_frame_of_output_is_no_greeting() {
    for text in [
        "OCI runtime exec failed: exec failed: container_linux.go:380: no such file",
        r#"{"protocol":"flightproof/runner/1","pid":1,"landlock_abi":7}"#,
        "",
    ] {
        let (refused, greeted) = streamed(vec![frame(1, text.as_bytes())]);
        assert!(!greeted, "{text}: {refused}");
        assert_eq!(refused.code, SessionCode::StartFailed, "{refused}");
    }
}

/// Rows 10 to 13, on the way the runner's channel takes.
#[test]
fn a_stream_that_is_not_as_it_must_be_loses_the_session_and_says_why() {
    let table: [(&str, Vec<u8>); 6] = [
        ("no frame begins with", b"OCI runtime exec failed".to_vec()),
        (
            "a frame of 4294967295 bytes",
            [1, 0, 0, 0, 255, 255, 255, 255].to_vec(),
        ),
        ("inside a frame", frame(1, &hello())[..20].to_vec()),
        ("inside a frame", [1, 0, 0].to_vec()),
        ("the engine says: no space", frame(3, b"no space")),
        ("empty frames", frame(1, b"").repeat(2_000)),
    ];
    for (why, bytes) in table {
        let fake = Fake::new(move |asked, _| {
            asked
                .contains("/attach")
                .then(|| Answer::Raw(bytes.clone()))
        });
        let refused = fake.open();
        assert_eq!(refused.code, SessionCode::SessionLost, "{refused}");
        assert!(refused.detail.contains(why), "{why}: {refused}");
        assert!(fake.removed(), "{why}");
    }
}

/// What came of an engine that answers with this stream: the refusal, and whether the greeting was
/// taken for one.
fn streamed(pieces: Vec<Vec<u8>>) -> (SessionError, bool) {
    let fake = Fake::new(move |asked, _| {
        asked
            .contains("/attach")
            .then(|| Answer::Paced(pieces.clone()))
    });
    let refused = fake.open();
    assert!(fake.removed());
    // What comes after a greeting is a look at the container, which this engine does not have.
    let greeted = refused.code == SessionCode::EngineFault && refused.detail.contains("inspect");
    (refused, greeted)
}

/// Rows 10, 13, 14: wherever frames begin and end, whatever stands between them and however late
/// they come, it is the same greeting.
#[test]
fn a_greeting_is_the_same_in_every_division_into_frames() {
    let hello = hello();
    for at in 1..hello.len() {
        let (first, rest) = hello.split_at(at);
        let pieces = vec![
            frame(1, first),
            frame(1, b""),
            frame(2, b"a word on the other stream"),
            frame(1, rest),
        ];
        let (refused, greeted) = streamed(pieces);
        assert!(greeted, "cut at {at}: {refused}");
    }
    // The pieces of the line need not be those of the frames.
    let bytes: Vec<Vec<u8>> = frame(1, &hello).chunks(1).map(<[u8]>::to_vec).collect();
    let (refused, greeted) = streamed(bytes);
    assert!(greeted, "{refused}");
}

/// Rows 10, 11: a stream that ends anywhere before the end of its greeting is lost, and so is one of
/// which a frame is of another type.
#[test]
fn a_greeting_that_is_cut_or_of_another_type_is_none() {
    let whole = frame(1, &hello());
    for at in 0..whole.len() {
        let (refused, greeted) = streamed(vec![whole[..at].to_vec()]);
        assert!(!greeted, "cut at {at}");
        let code = match at {
            0 => SessionCode::StartFailed,
            _ => SessionCode::SessionLost,
        };
        assert_eq!(refused.code, code, "cut at {at}: {refused}");
    }
    for kind in (0..=255).filter(|kind| *kind != 1) {
        let (refused, greeted) = streamed(vec![frame(kind, &hello())]);
        assert!(!greeted, "type {kind}: {refused}");
    }
}

/// Row 60: it answers, and does not stop. Memory would be gone before any deadline.
#[test]
fn an_answer_without_an_end_is_cut_off_by_its_size_and_named() {
    for question in [
        "GET /version",
        "GET /info",
        "GET /images/",
        "POST /containers/create",
    ] {
        for status in [200, 500] {
            let fake = Fake::new(move |asked, _| {
                asked
                    .starts_with(question)
                    .then_some(Answer::Endless(status))
            });
            let asked = Instant::now();
            let refused = fake.open();
            assert_eq!(refused.code, SessionCode::EngineFault, "{refused}");
            assert!(
                refused.detail.contains("longer than 16777216 bytes"),
                "{question} {status}: {refused}"
            );
            assert!(asked.elapsed() < Duration::from_secs(20), "{question}");
        }
    }
}

/// The same where the length is said, and what is said is no lie but for its room. The twin: one that
/// just fits is an answer.
#[test]
fn an_answer_may_be_long_and_no_longer() {
    let padded = |length: usize| {
        let fake = Fake::new(move |asked, _| {
            let said = r#"{"SystemTime":"2026-11-29T18:40:42Z"}"#;
            asked
                .starts_with("GET /info")
                .then(|| Answer::Json(200, said.to_owned() + &" ".repeat(length - said.len())))
        });
        Engine::connect(&fake.endpoint()).map(drop)
    };
    assert_eq!(padded((16 << 20) - 1_000), Ok(()));
    let refused = padded(16 << 20).unwrap_err();
    assert_eq!(refused.code, SessionCode::EngineFault, "{refused}");
    assert!(refused.detail.contains("longer than"), "{refused}");
}

/// The streams of a container are none: what they carry has no end but the session's.
#[test]
fn an_attached_stream_is_not_cut_off_by_the_size_of_an_answer() {
    let mut pieces = vec![frame(2, &[b'.'; 1 << 20]); 20];
    pieces.push(frame(1, &hello()));
    let (refused, greeted) = streamed(pieces);
    assert!(greeted, "{refused}");
}

/// Row 44.
#[test]
fn whatever_an_engine_warns_of_is_a_shortfall_and_the_container_goes() {
    let fake = Fake::new(|asked, _| {
        let warned = r#"{"Id":"c0","Warnings":["Your kernel does not support swap limit"]}"#;
        asked
            .starts_with("POST /containers/create")
            .then(|| Answer::Json(201, warned.to_owned()))
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::Shortfall);
    assert!(refused.detail.contains("swap limit"), "{refused}");
    assert!(fake.removed());
    assert!(!fake.asked().iter().any(|line| line.contains("/start")));
}

/// Rows 44, 59: why it was given up, and that it stands.
#[test]
fn what_was_not_opened_and_does_not_go_is_a_leak_that_keeps_its_record() {
    let fake = Fake::new(|asked, _| match asked {
        _ if asked.starts_with("POST /containers/create") => {
            said(201, r#"{"Id":"c0","Warnings":["no swap limit"]}"#)
        }
        _ if asked.contains("/containers/c0") => said(200, r#"{"Id":"c0"}"#),
        _ => None,
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::Leak, "{refused}");
    let detail = &refused.detail;
    assert!(detail.contains("container c0 stays"), "{refused}");
    assert!(detail.contains("no swap limit"), "{refused}");
    assert_eq!(fake.records(), 1);
}

/// Row 43: an engine that forgot a limit says nothing of it.
#[test]
fn a_field_that_does_not_come_back_is_a_shortfall() {
    let looked = Mutex::new(false);
    let fake = Fake::new(move |asked, _| match asked {
        _ if asked.contains("/attach") => Some(Answer::Raw(frame(1, &hello()))),
        _ if asked.starts_with("GET /containers/c0/json") => {
            // The second look is the one after its removal.
            let first = !std::mem::replace(&mut *looked.lock().unwrap(), true);
            let forgot = r#"{"Id":"c0","Image":"sha256:00","HostConfig":{"NetworkMode":"none"},"Config":{}}"#;
            first.then(|| Answer::Json(200, forgot.to_owned()))
        }
        _ => None,
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::Shortfall, "{refused}");
    assert!(fake.removed());
}

/// Row 40: whether it was made is not known, so its name is removed.
#[test]
fn a_container_whose_making_was_not_answered_is_removed_by_its_name() {
    let fake = Fake::new(|asked, _| {
        asked
            .starts_with("POST /containers/create")
            .then_some(Answer::HangUp)
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::EngineFault, "{refused}");
    assert!(fake.removed(), "{:?}", fake.asked());
    assert_eq!(fake.records(), 0);
}

/// Row 41.
#[test]
fn what_has_the_name_already_is_left_alone() {
    let fake = Fake::new(|asked, _| {
        asked.starts_with("POST /containers/create").then(|| {
            Answer::Json(
                409,
                r#"{"message":"Conflict. The container name is in use"}"#.to_owned(),
            )
        })
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::HostIo, "{refused}");
    assert!(!fake.removed());
    assert_eq!(fake.records(), 0);
}

/// Row 59: it is gone when it cannot be seen, not when the engine says so.
#[test]
fn a_removal_in_progress_is_waited_for() {
    let looks = Mutex::new(0);
    let fake = Fake::new(move |asked, _| match asked {
        _ if asked.contains("/attach") => Some(Answer::Raw(Vec::new())),
        _ if asked.starts_with("DELETE ") => {
            said(409, r#"{"message":"removal is already in progress"}"#)
        }
        _ if asked.starts_with("GET /containers/c0/json") => {
            let mut looks = looks.lock().unwrap();
            *looks += 1;
            (*looks < 4).then(|| Answer::Json(200, r#"{"Id":"c0"}"#.to_owned()))
        }
        _ => None,
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::StartFailed, "{refused}");
    assert_eq!(fake.records(), 0, "it was seen to be gone");
}

/// Rows 60, 72: also one whose disk is full.
#[test]
fn an_engine_that_fails_is_a_fault_and_never_an_answer() {
    for (request, status) in [
        ("GET /images/", 500),
        ("GET /info", 500),
        ("POST /containers/create", 500),
        ("POST /containers/create", 400),
        ("POST /containers/create", 507),
    ] {
        let fake = Fake::new(move |asked, _| {
            let said = r#"{"message":"mkdir: no space left on device \u001b[31m"}"#;
            asked
                .starts_with(request)
                .then(|| Answer::Json(status, said.to_owned()))
        });
        let refused = fake.open();
        assert_eq!(
            refused.code,
            SessionCode::EngineFault,
            "{request}: {refused}"
        );
        assert!(!refused.detail.contains('\x1b'), "{refused}");
    }
    let fake = Fake::new(|asked, _| {
        asked
            .starts_with("GET /info")
            .then(|| Answer::Json(200, "[".to_owned()))
    });
    assert_eq!(fake.open().code, SessionCode::EngineFault);
}

#[test]
fn a_container_that_does_not_start_is_named_and_removed() {
    let fake = Fake::new(|asked, _| match asked {
        _ if asked.contains("/attach") => Some(Answer::Raw(Vec::new())),
        _ if asked.contains("/start") => said(500, r#"{"message":"OCI runtime create failed"}"#),
        _ => None,
    });
    let refused = fake.open();
    assert_eq!(refused.code, SessionCode::StartFailed, "{refused}");
    assert!(refused.detail.contains("OCI runtime"), "{refused}");
    assert!(fake.removed());
}

/// Row 60.
#[test]
fn an_engine_that_says_nothing_is_given_up() {
    let fake = Fake::new(|_, _| Some(Answer::Silence));
    let asked = Instant::now();
    let refused = Engine::connect(&fake.endpoint()).unwrap_err();
    assert_eq!(refused.code, SessionCode::EngineFault, "{refused}");
    assert!(asked.elapsed() < Duration::from_secs(13));
}

#[test]
fn whoever_hangs_up_is_no_engine() {
    let fake = Fake::new(|_, _| Some(Answer::HangUp));
    let refused = Engine::connect(&fake.endpoint()).unwrap_err();
    let codes = [SessionCode::EngineFault, SessionCode::EngineMissing];
    assert!(codes.contains(&refused.code), "{refused}");
}

/// Rows 57, 59: the one that cannot be removed is the last word, not the end of the work.
#[test]
fn a_container_that_does_not_go_keeps_no_other_and_is_the_next_reapers() {
    const IDS: [&str; 2] = [
        "00112233445566778899aabbccddeeff",
        "ffeeddccbbaa99887766554433221100",
    ];
    let containers = Arc::new(Mutex::new(Vec::new()));
    let stuck = Arc::new(Mutex::new(true));
    let (there, holds) = (Arc::clone(&containers), Arc::clone(&stuck));
    let fake = Fake::new(move |asked, _| {
        let mut there = there.lock().unwrap();
        let path = asked.split('?').next().unwrap();
        if path == "GET /containers/json" {
            return said(200, &serde_json::Value::from(there.clone()).to_string());
        }
        let (method, rest) = path.split_once(" /containers/c")?;
        let number: usize = rest[..1].parse().ok()?;
        let id = format!("c{number}");
        if method == "DELETE" && !(number == 0 && *holds.lock().unwrap()) {
            there.retain(|container: &serde_json::Value| container["Id"] != *id);
        }
        let found = there.iter().any(|container| container["Id"] == *id);
        found.then(|| Answer::Json(200, format!(r#"{{"Id":"{id}"}}"#)))
    });
    let state_dir = fake.spec().state_dir;
    let leases = Leases::of(&state_dir.join("ledger"));
    for (number, id) in IDS.into_iter().enumerate() {
        let fence = leases.take(id, 1000).unwrap().token;
        let owner = Owner {
            started: 1,
            ..Owner::this_process().unwrap()
        };
        containers.lock().unwrap().push(serde_json::json!({
            "Id": format!("c{number}"), "Names": [format!("/flightproof-{id}")],
            "Labels": {
                "flightproof.session": id, "flightproof.ledger": fake.spec().ledger,
                "flightproof.owner": serde_json::to_string(&owner).unwrap(),
                "flightproof.fence": fence.to_string(), "flightproof.deadline": "1",
            },
        }));
    }
    let engine = Engine::connect(&fake.endpoint()).unwrap();
    let reap = || docker::reap(&engine, &state_dir, &mut Reaper::new(leases.clone()));
    let left = || -> Vec<String> {
        let ledger = Ledger::open(&state_dir.join("ledger")).unwrap();
        let left = ledger.sessions_left().unwrap();
        left.into_iter().map(|(name, _)| name.to_string()).collect()
    };
    let refused = reap().unwrap_err();
    assert_eq!(refused.code, SessionCode::Leak, "{refused}");
    assert!(refused.detail.contains("container c0"), "{refused}");
    assert_eq!(left(), [format!("session/{}", IDS[0])]);
    let stands = docker::left(&engine, &state_dir).unwrap();
    assert!(stands.len() == 1 && stands[0].id == IDS[0] && stands[0].dead);
    *stuck.lock().unwrap() = false;
    let reaped = reap().unwrap();
    assert!(reaped.len() == 1 && reaped[0].id == IDS[0], "{reaped:?}");
    assert_eq!(left(), [] as [String; 0]);
    assert_eq!(docker::left(&engine, &state_dir).unwrap(), []);
}
