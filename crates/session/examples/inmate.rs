//! The program of the live tests: like `flights`, it is host, stage and runner in one file.
//!
//! As a host, `inmate hold SPEC RUNNER` opens a session, says so, and waits to be killed.

use flightproof_session::Session as _;
use flightproof_session::docker::{self, DockerSpec, Endpoint, PinnedImage};
use flightproof_session::lease::Leases;
use flightproof_session::local::{self, LocalSpec, RunnerProgram};
use std::path::PathBuf;
use std::process::ExitCode;

/// Longest life of an engine's session, milliseconds.
const LIFETIME_MS: u64 = 120_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let act = arguments.next();
    match act.as_ref().and_then(|a| a.to_str()) {
        Some(local::STAGE) => local::stage_main(arguments),
        Some("__runner") => flightproof_runner::main(),
        Some("open") => open(arguments.filter_map(|a| a.into_string().ok()).collect()),
        Some("engine") => engine(arguments.filter_map(|a| a.into_string().ok()).collect()),
        _ => ExitCode::from(2),
    }
}

/// `engine IMAGE PLACE ARTIFACT SEED`: opens a session on an engine and holds it.
fn engine(arguments: Vec<String>) -> ExitCode {
    let [image, place, artifact, seed] = arguments.as_slice() else {
        return ExitCode::from(2);
    };
    let state_dir = PathBuf::from(place).join("state");
    let opened = (|| {
        let artifact = std::fs::read(artifact).map_err(|e| e.to_string())?;
        let runner = RunnerProgram::from_artifact(&artifact).map_err(|e| e.to_string())?;
        let seed: u128 = seed.parse().map_err(|_| "no number".to_owned())?;
        let leases = Leases::of(&state_dir.join("ledger"));
        let id = format!("{seed:032x}");
        let lease = leases.take(&id, LIFETIME_MS).map_err(|e| e.to_string())?;
        let spec = DockerSpec {
            endpoint: Endpoint::discover().map_err(|e| e.to_string())?,
            image: PinnedImage {
                id: image.parse().map_err(|_| "no digest".to_owned())?,
                layers: Vec::new(),
            },
            memory_bytes: 512 << 20,
            pids: 64,
            cpu_millis: 1000,
            scratch_bytes: 64 << 20,
            lifetime_ms: LIFETIME_MS,
            entropy: seed.to_be_bytes(),
            ledger: docker::ledger_id(&state_dir).map_err(|e| e.to_string())?,
            state_dir,
            fence: lease.token,
        };
        let opened = docker::open(&spec, &runner);
        leases.hold(lease, opened).map_err(|e| e.to_string())
    })();
    match opened {
        Err(refusal) => {
            println!("refused {refusal}");
            ExitCode::FAILURE
        }
        Ok(session) => {
            println!("open {}", session.attestation().session);
            std::thread::sleep(std::time::Duration::from_secs(120));
            ExitCode::SUCCESS
        }
    }
}

/// `open TOOLCHAIN PLACE ARTIFACT [hold]`
fn open(arguments: Vec<String>) -> ExitCode {
    let [toolchain, place, artifact, rest @ ..] = arguments.as_slice() else {
        return ExitCode::from(2);
    };
    let place = PathBuf::from(place);
    let spec = LocalSpec {
        memory_bytes: 1 << 30,
        pids: 64,
        cpu_millis: 1000,
        scratch_bytes: 256 << 20,
        lifetime_ms: 120_000,
        toolchain: PathBuf::from(toolchain),
        bwrap: PathBuf::from("/usr/bin/bwrap"),
        program: std::env::current_exe().unwrap_or_default(),
        entropy: std::process::id()
            .to_be_bytes()
            .repeat(4)
            .try_into()
            .unwrap_or_default(),
        work_dir: place.join("work"),
        state_dir: place.join("state"),
        cache_dir: place.join("cache"),
        fence: 0,
        agent: None,
    };
    let opened = std::fs::read(artifact)
        .map_err(|e| e.to_string())
        .and_then(|bytes| RunnerProgram::from_artifact(&bytes).map_err(|e| e.to_string()))
        .and_then(|runner| local::open(&spec, &runner).map_err(|e| e.to_string()));
    match opened {
        Err(refusal) => {
            println!("refused {refusal}");
            ExitCode::FAILURE
        }
        Ok(session) => {
            println!("open {}", session.attestation().session);
            if rest.first().is_some_and(|word| word == "hold") {
                std::thread::sleep(std::time::Duration::from_secs(120));
            }
            ExitCode::SUCCESS
        }
    }
}
