//! What sessions cost, beside what others take for the same: `figures IMAGE TREE TOOLCHAIN [RUNS]`.
//! One JSON document on standard output. Everybody's turns are interleaved. The program itself is what
//! becomes the runner. The engine is that of the environment, at a socket of this machine.

mod ground;
mod peer;

use flightproof_archive::paws;
use flightproof_frame::protocol::{Exec, ExecLimits, Place, Request, Role, Status};
use flightproof_session::{Session, SessionCode, observe, upload};
use ground::{Ground, case, exec_true};
use peer::Peer;
use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    match arguments.nth(1).as_ref().and_then(|a| a.to_str()) {
        Some(flightproof_session::local::STAGE) => {
            flightproof_session::local::stage_main(arguments)
        }
        Some("__runner") => flightproof_runner::main(),
        _ => match figures() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("figures: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Seconds of each turn, by work and by who did it.
#[derive(Default)]
struct Rows(BTreeMap<(String, String), Vec<f64>>);

impl Rows {
    fn time<T>(&mut self, work: &str, who: &str, act: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let begun = Instant::now();
        let done = act()?;
        self.note(work, who, begun.elapsed().as_secs_f64());
        Ok(done)
    }

    fn note(&mut self, work: &str, who: &str, figure: f64) {
        let key = (work.to_owned(), who.to_owned());
        self.0.entry(key).or_default().push(figure);
    }

    fn print(&self) -> Outcome {
        let rows: Vec<_> = self
            .0
            .iter()
            .map(|((work, who), figures)| {
                serde_json::json!({"work": work, "who": who, "figures": figures})
            })
            .collect();
        println!("{}", serde_json::to_string(&rows)?);
        Ok(())
    }
}

fn figures() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [image, tree, toolchain, rest @ ..] = words.as_slice() else {
        return Err("figures IMAGE TREE TOOLCHAIN [RUNS]".into());
    };
    let runs: usize = rest.first().map_or(Ok(50), |runs| runs.parse())?;
    let ground = Ground::new(image, toolchain)?;
    let peer = Peer::start(image)?;
    let mut rows = Rows::default();
    let mut engine = ground.engine(600_000)?;
    let mut local = ground.local()?;
    ground::build(&mut engine)?;
    ground::build(local.as_mut())?;
    round_trips(&mut rows, &mut engine, local.as_mut(), &peer, runs)?;
    uploads(&mut rows, &mut engine, &peer, tree, runs.div_ceil(10))?;
    for _ in 0..runs {
        rows.time("attest", "session, read again", || Ok(engine.read_again()?))?;
    }
    flood(&mut rows, &mut engine)?;
    engine.close()?;
    local.close()?;
    throughput(&mut rows, &ground)?;
    for _ in 0..3 {
        deadline(&mut rows, &ground)?;
    }
    rows.print()
}

fn round_trips(
    rows: &mut Rows,
    engine: &mut dyn Session,
    local: &mut dyn Session,
    peer: &Peer,
    runs: usize,
) -> Outcome {
    for _ in 0..runs {
        rows.time("exec on the engine", "session", || run(engine))?;
        rows.time("exec on the engine", "raw interface", || {
            peer.exec(&["/usr/bin/true"], &[])
        })?;
        rows.time("exec on the engine", "docker exec", || {
            succeed(Command::new("docker").args(["exec", &peer.id, "/usr/bin/true"]))
        })?;
        rows.time("exec here", "session", || run(local))?;
        rows.time("exec here", "bare bubblewrap", || {
            succeed(Command::new("bwrap").args([
                "--unshare-all",
                "--die-with-parent",
                "--ro-bind",
                "/",
                "/",
                "/usr/bin/true",
            ]))
        })?;
        rows.time("observation here", "session", || {
            observe::run(local, &case(&["quiet"], 5_000))?;
            Ok(())
        })?;
        rows.time("observation on the engine", "session", || {
            observe::run(engine, &case(&["quiet"], 5_000))?;
            Ok(())
        })?;
    }
    Ok(())
}

fn run(session: &mut dyn Session) -> Outcome {
    match session.call(&Request::Exec(exec_true()), &[])? {
        flightproof_frame::protocol::Reply::Exec(outcome)
            if outcome.status == (Status::Exited { code: 0 }) =>
        {
            Ok(())
        }
        other => Err(format!("{other:?}").into()),
    }
}

fn succeed(command: &mut Command) -> Outcome {
    match command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?
    {
        status if status.success() => Ok(()),
        status => Err(format!("{command:?}: {status}").into()),
    }
}

/// MiB per second.
fn uploads(
    rows: &mut Rows,
    engine: &mut dyn Session,
    peer: &Peer,
    tree: &str,
    runs: usize,
) -> Outcome {
    let packed = flightproof_archive::pack_directory(std::path::Path::new(tree), "figures", &[])?;
    let id = paws::read(&packed.bytes)?.snapshot.snapshot_id();
    let tar = Command::new("tar")
        .args(["-c", "-C", tree, "."])
        .output()?
        .stdout;
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    rows.note("tree", "MiB packed", mib(packed.bytes.len()));
    let chunk = base64_of(&tar[..tar.len().min(CHUNK)]);
    let work = "upload of a crate's tree";
    for _ in 0..runs {
        let begun = Instant::now();
        upload::archive(engine, Place::Extra, &packed.bytes, id)?;
        rows.note(
            work,
            "session",
            mib(packed.bytes.len()) / begun.elapsed().as_secs_f64(),
        );
        let begun = Instant::now();
        peer.exec(&["/bin/sh", "-c", "cat >/scratch/tree.tar"], &tar)?;
        rows.note(work, "pipe", mib(tar.len()) / begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let append = format!("echo {chunk} | busybox base64 -d >>/scratch/chunks");
        peer.exec(&["/bin/sh", "-c", &append], &[])?;
        let sent = tar.len().min(CHUNK);
        rows.note(
            work,
            "base64 in arguments",
            mib(sent) / begun.elapsed().as_secs_f64(),
        );
        peer.exec(&["/bin/sh", "-c", ">/scratch/chunks"], &[])?;
    }
    Ok(())
}

/// One chunk of the way that goes through arguments.
const CHUNK: usize = 48 << 10;

fn base64_of(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let word =
            part.iter().fold(0u32, |word, b| word << 8 | u32::from(*b)) << (8 * (3 - part.len()));
        for place in 0..4usize {
            let index = (word >> (18 - 6 * place)) & 63;
            let letter = if place > part.len() {
                b'='
            } else {
                alphabet[index as usize]
            };
            text.push(char::from(letter));
        }
    }
    text
}

/// KiB that this process grew by at its peak while a program writes without end.
fn flood(rows: &mut Rows, engine: &mut dyn Session) -> Outcome {
    for _ in 0..3 {
        std::fs::write("/proc/self/clear_refs", "5")?;
        let before = memory("VmRSS:")?;
        let mut exec: Exec = exec_true();
        exec.role = Role::Case;
        exec.program = "demo".to_owned();
        exec.args = vec!["flood".to_owned()];
        exec.env = BTreeMap::new();
        exec.limits = ExecLimits {
            wall_ms: 60_000,
            stdout_bytes: 1 << 20,
            stderr_bytes: 1 << 20,
        };
        let reply = engine.call(&Request::Exec(exec), &[])?;
        let flightproof_frame::protocol::Reply::Exec(outcome) = reply else {
            return Err("no outcome".into());
        };
        if outcome.status != Status::OutputLimit {
            return Err(format!("{:?}", outcome.status).into());
        }
        drop(outcome);
        rows.note(
            "flood past a cap of 1 MiB",
            "session, KiB",
            memory("VmHWM:")? - before,
        );
    }
    Ok(())
}

fn memory(field: &str) -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find(|line| line.starts_with(field))
        .unwrap_or_default();
    Ok(line.split_whitespace().nth(1).unwrap_or_default().parse()?)
}

/// Observations per second, one session per job.
fn throughput(rows: &mut Rows, ground: &Ground) -> Outcome {
    const EACH: u32 = 1000;
    let ready = std::sync::Barrier::new(3);
    let rate = std::thread::scope(|scope| -> Result<f64, String> {
        let job = || -> Result<(), String> {
            let opened = ground.local().and_then(|mut session| {
                ground::build(session.as_mut())?;
                Ok(session)
            });
            let opened = opened.map_err(|e| e.to_string());
            ready.wait();
            let mut session = opened?;
            for _ in 0..EACH {
                let case = case(&["quiet"], 5_000);
                observe::run(session.as_mut(), &case).map_err(|e| e.to_string())?;
            }
            ready.wait();
            session.close().map(drop).map_err(|e| e.to_string())
        };
        let jobs = [scope.spawn(job), scope.spawn(job)];
        ready.wait();
        let begun = Instant::now();
        ready.wait();
        let took = begun.elapsed().as_secs_f64();
        for job in jobs {
            job.join().map_err(|_panic| "a job panicked")??;
        }
        Ok(2.0 * f64::from(EACH) / took)
    })?;
    rows.note("observations here", "two sessions, per second", rate);
    Ok(())
}

/// Seconds from the end of a session's lifetime until the engine has no trace of it.
fn deadline(rows: &mut Rows, ground: &Ground) -> Outcome {
    const LIFETIME_MS: u64 = 15_000;
    let opening = Instant::now();
    let mut session = ground.engine(LIFETIME_MS)?;
    ground::build(&mut session)?;
    let outcome = observe::run(&mut session, &case(&["deaf"], 600_000));
    let over = opening.elapsed();
    match outcome {
        Err(refused) if refused.code == SessionCode::Deadline => {}
        other => return Err(format!("no deadline: {other:?}").into()),
    }
    let id = session.attestation().session.clone();
    let name = format!("label=flightproof.session={id}");
    let listed = Command::new("docker")
        .args(["ps", "-aq", "--filter", &name])
        .output()?;
    if !listed.stdout.is_empty() {
        return Err("it is still there".into());
    }
    // The lifetime begins when the session is written down, somewhat after this clock.
    let late = over.saturating_sub(Duration::from_millis(LIFETIME_MS));
    rows.note("deadline to gone", "session", late.as_secs_f64());
    session.close()?;
    Ok(())
}
