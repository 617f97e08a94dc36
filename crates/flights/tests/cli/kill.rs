//! A run that is killed at any moment leaves the repository untouched or at the new commit, and the
//! next run finds and removes everything that was left.

use crate::environment::Environment;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Lines of progress an admitted flight prints: a run is killed after each of them, and before the
/// first.
const STAGES: usize = 13;
/// Kills per stage. One keeps the test at some seconds; set `FLIGHTPROOF_KILL_ROUNDS` for more.
const ROUNDS: usize = 1;
/// Longest pause between a stage's line and the kill, microseconds. The longest stage of this
/// flight takes about half a second; most take some milliseconds.
const PAUSES: [u64; 4] = [0, 2_000, 30_000, 300_000];
/// How long processes of a killed session may take to die: the kernel kills them.
const DYING: Duration = Duration::from_secs(10);

#[test]
fn a_killed_run_leaves_all_or_nothing_and_the_next_one_cleans_up() {
    let rounds = std::env::var("FLIGHTPROOF_KILL_ROUNDS").ok();
    let rounds: usize = rounds.map_or(ROUNDS, |text| text.parse().unwrap());
    let environment = Environment::with_pricing();
    let baseline = environment.git(&["rev-parse", "main"]);
    let mut left = 0;
    for stage in 0..=STAGES {
        for round in 0..rounds {
            let candidate = fresh(&environment, &baseline, &format!("{stage} {round}"));
            let pause = PAUSES[(stage + round) % PAUSES.len()];
            kill_after(&environment, stage, Duration::from_micros(pause));
            let what = format!("killed after {stage} stages and {pause} µs");
            let tip = environment.git(&["rev-parse", "release"]);
            assert!([&baseline, &candidate].contains(&&tip), "{what}: {tip}");
            environment.git(&["fsck", "--strict"]);
            let records = records(&environment);
            left += records.len();
            // The next run reports what was left, removes it, and comes to the right end.
            let next = environment.certify("candidate", &["--admit", "release"]);
            for record in &records {
                let id = record["id"].as_str().unwrap();
                let line = format!("recovered   {id}: left by a run that was killed");
                assert!(next.stderr.contains(&line), "{what}: {}", next.text);
            }
            match tip == candidate {
                true => assert!(
                    next.stdout.contains("flights/ALREADY_ADMITTED"),
                    "{what}: {}",
                    next.text
                ),
                false => assert_eq!(next.code, 0, "{what}: {}", next.text),
            }
            assert_eq!(environment.moves_logged(&candidate), 1, "{what}");
            nothing_is_left(&environment, &records, &what);
        }
    }
    assert!(
        left >= 5,
        "only {left} runs left something: the kills come too late"
    );
}

/// Nobody has to clean up after Ctrl-C.
#[test]
fn an_interrupted_run_ends_its_sessions_and_says_so() {
    let environment = Environment::with_pricing();
    let mut stopped = 0;
    for stage in (0..STAGES).step_by(2) {
        let mut command = environment.certify_command("candidate", &[]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut progress = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        for _ in 0..=stage {
            progress.read_line(&mut told).unwrap();
        }
        std::thread::sleep(Duration::from_micros(PAUSES[stage % PAUSES.len()]));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        progress.read_to_string(&mut told).unwrap();
        let ended = child.wait_with_output().unwrap();
        let what = format!("interrupted after stage {stage}");
        let stdout = String::from_utf8(ended.stdout).unwrap();
        // One that had ended before the signal came has its own answer.
        if ended.status.code() == Some(0) {
            assert!(stdout.starts_with("HELD: "), "{what}: {stdout}");
            continue;
        }
        assert_eq!(ended.status.code(), Some(130), "{what}: {told}{stdout}");
        let last = "flights: stopped by SIGINT: its sessions were ended, and nothing is left\n";
        assert!(told.ends_with(last), "{what}: {told}");
        assert_eq!(told.matches("SIGINT").count(), 1, "{what}: {told}");
        if stdout.starts_with("STOPPED at ") {
            assert!(
                stdout.contains("session/INTERRUPTED: SIGINT"),
                "{what}: {stdout}"
            );
            stopped += 1;
        }
        nothing_is_left(&environment, &records(&environment), &what);
    }
    assert!(stopped >= 3, "{stopped} flights were stopped in a session");
    let next = environment.certify("candidate", &[]);
    assert_eq!(next.code, 0, "{}", next.text);
    assert!(!next.stderr.contains("recovered"), "{}", next.text);
}

/// Starts an admitting flight and kills it.
fn kill_after(environment: &Environment, stages: usize, pause: Duration) {
    let mut command = environment.certify_command("candidate", &["--admit", "release"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    for _ in 0..stages {
        line.clear();
        if progress.read_line(&mut line).unwrap() == 0 {
            break;
        }
    }
    std::thread::sleep(pause);
    child.kill().unwrap();
    child.wait().unwrap();
    // The end of the stream: everything that held it is gone.
    let _ = progress.read_to_string(&mut line);
}

fn records(environment: &Environment) -> Vec<Value> {
    fs::read_dir(environment.state().join("sessions"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        .collect()
}

fn nothing_is_left(environment: &Environment, records: &[Value], what: &str) {
    assert_eq!(
        environment.listing("tmp").len(),
        0,
        "{what}: the temporary folder"
    );
    let sessions: Vec<_> = environment
        .listing("home/.local/state/flightproof/sessions")
        .into_keys()
        .collect();
    assert!(sessions.is_empty(), "{what}: {sessions:?}");
    for record in records {
        for cgroup in record["cgroups"].as_array().unwrap() {
            assert!(
                !Path::new(cgroup.as_str().unwrap()).exists(),
                "{what}: {cgroup}"
            );
        }
    }
    let deadline = Instant::now() + DYING;
    while let Some(process) = process_of(environment) {
        assert!(Instant::now() < deadline, "{what}: {process:?} lives");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that has the test's tree in its command line.
fn process_of(environment: &Environment) -> Option<PathBuf> {
    let tree = environment.path("");
    let tree = tree.to_str().unwrap().trim_end_matches('/').to_owned();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("cmdline").exists())
        .find(|path| {
            let cmdline = fs::read(path.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&cmdline).contains(&tree)
        })
}

/// Puts the branch back, and makes the candidate another commit, which the ledger has no word on.
fn fresh(environment: &Environment, baseline: &str, message: &str) -> String {
    environment.git(&["update-ref", "refs/heads/release", baseline]);
    let commit = [
        "commit-tree",
        "candidate^{tree}",
        "-p",
        baseline,
        "-m",
        message,
    ];
    let candidate = environment.git(&commit);
    environment.git(&["update-ref", "refs/heads/candidate", &candidate]);
    candidate
}
