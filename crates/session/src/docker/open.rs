//! The way to an open session on an engine: checked, registered, made, read back, tried.

use super::attach::{End, Far, Line};
use super::engine::{Engine, Facts, Fault};
use super::inside::{self, Near};
use super::owner::{EngineRecord, Labels, container_name};
use super::tape::Recorder;
use super::{DockerSession, DockerSpec, Endpoint, Inside, claims, create};
use crate::cgroup::text::Texts;
use crate::conversation::lost;
use crate::local::RunnerProgram;
use crate::opening::{check_hello, compiler, probe};
use crate::record::Owner;
use crate::{LimitEvents, Session, SessionCode, SessionError, processor};
use bollard::models::ContainerCreateBody;
use flightproof_core::{Digest, escape};
use flightproof_evidence::{Attestation, Reading, Toolchain};
use flightproof_frame::channel::HostChannel;
use std::fs;
use std::time::{Duration, Instant};

/// How long a container may take from its start to the runner's greeting.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// How long after the end of a session's lifetime others may remove its container, seconds.
const OVERDUE: u64 = 120;

/// Opens a fresh session on the engine of `spec`.
///
/// # Errors
/// `ENGINE_MISSING`, `ENGINE_TOO_OLD`, `ENGINE_FAULT`, `IMAGE_UNFIT`, `START_FAILED`, and
/// `SHORTFALL` if the session is weaker than asked in any respect or the engine warns of anything.
/// Nothing is left then; or it is `LEAK`, with the first cause in its detail.
pub fn open(spec: &DockerSpec, runner: &RunnerProgram) -> Result<DockerSession, SessionError> {
    opened(spec, runner, None)
}

/// Opens a session whose line is recorded. It asks everything over the line, also what could be read
/// from this kernel, so that the tape has it.
///
/// # Errors
/// As [`open`].
pub fn open_taped(
    spec: &DockerSpec,
    runner: &RunnerProgram,
) -> Result<(DockerSession, Recorder), SessionError> {
    let recorder = Recorder::new();
    let session = opened(spec, runner, Some(recorder.clone()))?;
    Ok((session, recorder))
}

fn opened(
    spec: &DockerSpec,
    runner: &RunnerProgram,
    recorder: Option<Recorder>,
) -> Result<DockerSession, SessionError> {
    spec.check()?;
    let engine = Engine::connect(&spec.endpoint)?;
    hand_over_profile(spec, engine.facts())?;
    let image = engine
        .image(&create::image_id(spec))
        .map_err(|fault| match fault {
            Fault::Status(404, _) => SessionCode::ImageUnfit.refuse(format_args!(
                "{} is not on {}",
                spec.image.id, spec.endpoint
            )),
            other => other.refuse("inspect the image"),
        })?;
    let mut readings = claims::image(&spec.image, &image, &engine.facts().platform)?;
    let labels = labels(spec, &engine)?;
    let asked = create::body(spec, runner, &labels, engine.facts())?;
    let mut inside = register(spec, engine, &labels.owner)?;
    inside.recorder = recorder;
    let begun = begin(&mut inside, runner, &asked);
    let (pid, claimed) = begun.map_err(|e| inside.give_up(e))?;
    readings.extend(claimed);
    let mut session = DockerSession {
        attestation: attestation(spec, runner, &inside),
        inside,
        asked: Box::new((spec.clone(), asked)),
    };
    match attest(&mut session, spec, runner, pid, readings) {
        Ok(()) => Ok(session),
        Err(e) => Err(session.inside.give_up(e)),
    }
}

/// Makes the container and starts it, up to the runner's greeting; what the engine says of it then.
fn begin(
    inside: &mut Inside,
    runner: &RunnerProgram,
    asked: &ContainerCreateBody,
) -> Result<(i64, Vec<Reading>), SessionError> {
    let begun = Instant::now();
    make(inside, asked.clone())?;
    start(inside, runner, begun)?;
    read_back(inside, asked)
}

/// Podman reads the profile of system calls from a file of its own machine: it is given one where that
/// is this machine.
fn hand_over_profile(spec: &DockerSpec, facts: &Facts) -> Result<(), SessionError> {
    let Some(version) = facts.podman() else {
        return Ok(());
    };
    if !matches!(spec.endpoint, Endpoint::Unix(_)) {
        return Err(SessionCode::Shortfall.refuse(format_args!(
            "Podman {version} takes a profile of system calls from a file of its own machine only"
        )));
    }
    let (file, next) = (create::profile_file(spec), format!("seccomp.{}", spec.id()));
    let next = spec.state_dir.join(next);
    let put = fs::create_dir_all(&spec.state_dir)
        .and_then(|()| fs::write(&next, create::SECCOMP))
        .and_then(|()| fs::rename(&next, &file));
    put.map_err(|e| SessionCode::HostIo.refuse(format_args!("{}: {e}", file.display())))
}

fn labels(spec: &DockerSpec, engine: &Engine) -> Result<Labels, SessionError> {
    let lifetime = spec.lifetime_ms.div_ceil(1000);
    Ok(Labels {
        session: spec.id(),
        ledger: spec.ledger.clone(),
        owner: Owner::this_process()?,
        fence: spec.fence,
        deadline: engine
            .clock()?
            .saturating_add(lifetime)
            .saturating_add(OVERDUE),
    })
}

/// Writes down whose the session is before anything of it exists.
fn register(spec: &DockerSpec, engine: Engine, owner: &Owner) -> Result<Inside, SessionError> {
    let record = EngineRecord::new(&spec.id(), owner, &engine.endpoint().to_string());
    record.store(&spec.state_dir)?;
    Ok(Inside {
        name: container_name(&spec.id()),
        container: None,
        engine,
        record,
        state_dir: spec.state_dir.clone(),
        line: None,
        channel: None,
        near: None,
        recorder: None,
        deadline: Instant::now() + Duration::from_millis(spec.lifetime_ms),
        seen: LimitEvents::default(),
        given_up: false,
        closed: None,
    })
}

/// Makes the container. One of the same name is somebody else's; whether our own request was
/// carried out is not known after a broken answer, so the name is removed then.
fn make(inside: &mut Inside, body: ContainerCreateBody) -> Result<(), SessionError> {
    match inside.engine.create(&inside.name, body) {
        Ok((id, warnings)) => {
            inside.container = Some(id);
            match warnings.first() {
                None => Ok(()),
                Some(warning) => Err(SessionCode::Shortfall
                    .refuse(format_args!("the engine warns: {}", escape(warning, 300)))),
            }
        }
        // Podman says it with 500.
        Err(Fault::Status(status, said)) if status == 409 || said.contains("is already in use") => {
            inside.disown();
            Err(SessionCode::HostIo.refuse(format_args!(
                "{} exists, ids must be random: {}",
                inside.name,
                escape(&said, 200)
            )))
        }
        Err(fault @ Fault::Status(..)) => {
            inside.disown();
            Err(fault.refuse("make the container"))
        }
        Err(fault) => {
            inside.container = Some(inside.name.clone());
            Err(fault.refuse("make the container"))
        }
    }
}

/// Attaches, starts, hands over our program, and waits for its greeting.
fn start(inside: &mut Inside, runner: &RunnerProgram, begun: Instant) -> Result<(), SessionError> {
    let id = inside.container.clone().unwrap_or_default();
    let attachment = inside.engine.attachment(&id);
    let (line, output, input) = Line::open(
        Far::Engine(attachment),
        runner.bytes.clone(),
        inside.recorder.clone(),
    )?;
    inside.line = Some(line);
    let mut channel = HostChannel::new(output, input).map_err(|e| lost(&e, false))?;
    let started = inside.engine.start(&id);
    started.map_err(|fault| {
        let refused = fault.refuse("start the container");
        SessionCode::StartFailed.refuse(refused.detail)
    })?;
    let deadline = inside.deadline.min(begun + START_DEADLINE);
    let hello = channel
        .hello(deadline)
        .map_err(|e| inside.explained(&e.to_string()))?;
    check_hello(&hello)?;
    inside.channel = Some(channel);
    Ok(())
}

impl DockerSession {
    /// Reads every limit and privilege again, as when it was opened but for the forbidden acts.
    ///
    /// # Errors
    /// `SHORTFALL` for one that is weaker than asked by now, and what ends the session.
    pub fn read_again(&mut self) -> Result<Vec<Reading>, SessionError> {
        let (_, mut readings) = read_back(&self.inside, &self.asked.1)?;
        let texts = match self.inside.near {
            Some(_) => Texts::new(),
            None => inside::ask(self)?,
        };
        let runner = self.attestation.runner.sha256;
        let near = self.inside.near.as_mut();
        readings.extend(inside::readings(&self.asked.0, runner, near, &texts)?);
        Ok(readings)
    }
}

/// The engine's word for everything, and the host's id of the first process.
fn read_back(
    inside: &Inside,
    asked: &ContainerCreateBody,
) -> Result<(i64, Vec<Reading>), SessionError> {
    let id = inside.container.as_deref().unwrap_or_default();
    let found = inside.engine.inspect(id).map_err(|f| f.refuse("inspect"))?;
    let readings = claims::claims(asked, &found)?;
    let pid = found.state.and_then(|state| state.pid).unwrap_or_default();
    Ok((pid, readings))
}

fn attestation(spec: &DockerSpec, runner: &RunnerProgram, inside: &Inside) -> Attestation {
    let facts = inside.engine.facts();
    let parts: String = facts
        .parts
        .iter()
        .map(|(name, version)| format!(", {name} {version}"))
        .collect();
    Attestation {
        backend: "docker".to_owned(),
        session: spec.id(),
        toolchain: Toolchain {
            digest: spec.image.id,
            version: String::new(),
            linker: spec.image.id,
            target: None,
        },
        runner: runner.identity.clone(),
        kernel: facts.kernel.clone(),
        processor: None,
        sandbox: format!(
            "engine {}, interface {}{parts}; runtime {}, cgroups {}",
            facts.engine, facts.api, facts.runtime, facts.cgroups
        ),
        readings: Vec::new(),
        probes: Vec::new(),
    }
}

/// Reads the kernel's own files, tries every forbidden act, and asks the compiler who it is.
fn attest(
    session: &mut DockerSession,
    spec: &DockerSpec,
    runner: &RunnerProgram,
    pid: i64,
    mut readings: Vec<Reading>,
) -> Result<(), SessionError> {
    let texts = inside::ask(session)?;
    let boot_id = texts.get("boot_id").map_or("", String::as_str);
    let container = session.inside.container.clone().unwrap_or_default();
    let near = matches!(spec.endpoint, Endpoint::Unix(_)) && session.inside.recorder.is_none();
    if near {
        session.inside.near = Near::find(boot_id, pid, &container);
    }
    let near = session.inside.near.as_mut();
    session.attestation.processor = near.as_ref().and_then(|_| processor::features());
    readings.extend(inside::readings(
        spec,
        runner.identity.sha256,
        near,
        &texts,
    )?);
    if let Some(kernel) = texts.get("osrelease") {
        session.attestation.kernel = escape(kernel.trim_end(), 100);
    }
    session.attestation.readings = readings;
    session.attestation.probes = probe(session)?;
    let (version, target) = compiler(session)?;
    session.attestation.toolchain.version = version;
    session.attestation.toolchain.target = Some(target);
    session.attestation.toolchain.linker = linker(session)?;
    // Nothing the self-test ran into counts against the candidate.
    session.events()?;
    Ok(())
}

/// SHA-256 of linker driver and linker, as [`crate::toolchain::linker_digest`] computes it.
pub(super) fn linker(session: &mut dyn Session) -> Result<Digest, SessionError> {
    let outcome = crate::opening::tool(
        session,
        "/usr/bin/sha256sum",
        &["/usr/bin/cc", "/usr/bin/ld.bfd"],
    )?;
    let text = String::from_utf8_lossy(&outcome.stdout);
    let digests = text
        .lines()
        .map(|line| line.split(' ').next()?.parse::<Digest>().ok());
    match digests.collect::<Option<Vec<_>>>().as_deref() {
        Some([driver, linker]) => Ok(Digest::of(format!("{driver}\n{linker}\n").as_bytes())),
        _ => Err(SessionCode::ToolchainInvalid.refuse(format_args!(
            "the image has no linker: {}",
            escape(&*outcome.stderr, 200)
        ))),
    }
}

impl Inside {
    /// Why a container did not greet: what it said, and how its stream ended.
    fn explained(&self, what: &str) -> SessionError {
        let Some(line) = &self.line else {
            return SessionCode::StartFailed.refuse(what);
        };
        let said = line.stderr();
        let said = escape(said.trim_ascii(), 400);
        match line.end() {
            Some(End::Corrupt(corruption)) => {
                SessionCode::SessionLost.refuse(format_args!("the engine's stream: {corruption}"))
            }
            Some(End::Broken(why)) => SessionCode::SessionLost.refuse(format_args!(
                "the engine's stream broke: {}",
                escape(why, 200)
            )),
            Some(End::Clean) | None => {
                SessionCode::StartFailed.refuse(format_args!("{what}: {said}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::create::tests::{facts, podman_facts};
    use super::super::spec::tests::spec;
    use super::*;

    #[test]
    fn podman_elsewhere_is_refused_and_here_finds_the_profile() {
        let dir = tempfile::tempdir().unwrap();
        let here = DockerSpec {
            endpoint: Endpoint::Unix("/run/podman/podman.sock".into()),
            state_dir: dir.path().join("state"),
            ..spec()
        };
        let elsewhere = DockerSpec {
            endpoint: Endpoint::Loopback {
                authority: "127.0.0.1:1".to_owned(),
            },
            ..here.clone()
        };
        hand_over_profile(&elsewhere, &facts(&[])).unwrap();
        let refused = hand_over_profile(&elsewhere, &podman_facts()).unwrap_err();
        assert_eq!(refused.code, SessionCode::Shortfall, "{refused}");
        assert!(!here.state_dir.exists());
        hand_over_profile(&here, &podman_facts()).unwrap();
        let kept = fs::read_to_string(create::profile_file(&here)).unwrap();
        assert_eq!(kept, create::SECCOMP);
        assert_eq!(fs::read_dir(&here.state_dir).unwrap().count(), 1);
    }
}
