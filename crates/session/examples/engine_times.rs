//! How long an engine session takes, part by part: `engine_times IMAGE PROGRAM [RUNS]`. PROGRAM is
//! a static program that is `flights` or behaves like it; the engine is the one of the environment.

use flightproof_archive::{paar, paws};
use flightproof_core::CommitId;
use flightproof_evidence::{BuildAnswer, BuildOrder, BuildTarget, CaseRun, Guard};
use flightproof_frame::protocol::{Place, Request};
use flightproof_session::build::Workshop;
use flightproof_session::crates::ship;
use flightproof_session::docker::{self, DockerSpec, Endpoint, PinnedImage};
use flightproof_session::local::RunnerProgram;
use flightproof_session::{Session, observe, upload};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [image, program, rest @ ..] = words.as_slice() else {
        return Err("engine_times IMAGE PROGRAM [RUNS]".into());
    };
    let runs = rest.first().map_or(Ok(100), |runs| runs.parse())?;
    let runner = RunnerProgram::from_artifact(&artifact(&std::fs::read(program)?)?)?;
    let state = std::env::temp_dir().join(format!("engine-times-{}", std::process::id()));
    let mut opened = Vec::new();
    let mut closed = Vec::new();
    for round in 0..5u8 {
        let spec = spec(image, &state, round)?;
        let (session, took) = timed(|| docker::open(&spec, &runner));
        let mut session = session?;
        opened.push(took);
        if round == 0 {
            inside(&mut session, runs)?;
        }
        closed.push(timed(|| session.close()).1);
    }
    say("open, attested", &mut opened);
    say("close, seen to be gone", &mut closed);
    std::fs::remove_dir_all(&state)?;
    Ok(())
}

fn inside(session: &mut dyn Session, runs: usize) -> Result<(), Box<dyn Error>> {
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        ),
        (
            "Cargo.lock",
            "version = 4\n\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\n",
        ),
        ("src/main.rs", "fn main() {}\n"),
    ];
    let tree = packed(files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())))?;
    let mut workshop = Workshop::furnish(session, &tree, &ship(&[])?, None, 120_000)?;
    let order = BuildOrder {
        program: "demo".to_owned(),
        target: BuildTarget::Bin {
            name: "demo".to_owned(),
        },
        overlay: BTreeMap::new(),
        guard: Guard {
            name: "guard_1f".to_owned(),
            source: "pub fn active() -> u64 { 0 }".to_owned(),
        },
    };
    let (answer, took) = timed(|| workshop.build(session, &order));
    if !matches!(answer?, BuildAnswer::Built(_)) {
        return Err("it was not built".into());
    }
    say("build of an empty program", &mut [took]);
    let case = CaseRun {
        program: "demo".to_owned(),
        args: Vec::new(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        env: BTreeMap::new(),
        selector: None,
        wall_ms: 5_000,
    };
    let mut cases = Vec::new();
    let mut asked = Vec::new();
    for _ in 0..runs {
        let (seen, took) = timed(|| observe::run(session, &case));
        seen?;
        cases.push(took);
        let kernel = Request::Kernel {
            files: vec!["status".to_owned()],
        };
        let (reply, took) = timed(|| session.call(&kernel, &[]));
        reply?;
        asked.push(took);
    }
    say("one case: request, run, counters", &mut cases);
    say("one question to the runner", &mut asked);
    let (probe, took) = timed(|| session.call(&Request::Probe, &[]));
    probe?;
    say("every forbidden act tried", &mut [took]);
    let many = (0..64).map(|n| (format!("f{n:02}"), vec![n; 1 << 20]));
    let large = packed(many)?;
    let id = paws::read(&large)?.snapshot.snapshot_id();
    let (sent, took) = timed(|| upload::archive(session, Place::Extra, &large, id));
    sent?;
    say("upload of 64 MiB, hashed inside", &mut [took]);
    Ok(())
}

fn packed(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut entries = Vec::new();
    for (path, bytes) in files {
        entries.push((path.parse()?, false, bytes));
    }
    Ok(paws::pack("times", entries)?.bytes)
}

fn spec(image: &str, state: &std::path::Path, round: u8) -> Result<DockerSpec, Box<dyn Error>> {
    let mut entropy = [round; 16];
    entropy[..4].copy_from_slice(&std::process::id().to_be_bytes());
    Ok(DockerSpec {
        endpoint: Endpoint::discover()?,
        image: PinnedImage {
            id: image.trim_start_matches("sha256:").parse()?,
            layers: Vec::new(),
        },
        memory_bytes: 2 << 30,
        pids: 256,
        cpu_millis: 2000,
        scratch_bytes: 1 << 30,
        lifetime_ms: 600_000,
        entropy,
        ledger: docker::ledger_id(state)?,
        state_dir: state.to_owned(),
        fence: 0,
    })
}

fn artifact(program: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let origin = paar::Origin {
        target: paar::Target::CURRENT.ok_or("no target")?,
        source_commit: CommitId::from_bytes([0; 20]),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    };
    let path = paar::ArtifactPath::new("flights")?;
    Ok(paar::pack(origin, [(path, true, program)])?.bytes)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    (work(), begun.elapsed())
}

/// Least, median and 95th of a hundred, milliseconds.
fn say(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |part: usize| {
        times
            .get((times.len() - 1) * part / 100)
            .copied()
            .unwrap_or_default()
    };
    let [least, median, most] = [0, 50, 95].map(|part| at(part).as_secs_f64() * 1000.0);
    println!("{what:36} min {least:8.2}  p50 {median:8.2}  p95 {most:8.2} ms");
}
