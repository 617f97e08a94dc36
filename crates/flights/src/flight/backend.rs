//! What sessions are made of: this machine, or a container engine. Never one in place of the other.

use crate::{FlightsCode, state};
use flightproof_core::{Digest, Refusal, escape};
use flightproof_session::docker::{
    self, DockerSpec, Endpoint, Engine, Inventory, PinnedImage, session_images,
};
use flightproof_session::lease::{Leases, Reaper};
use flightproof_session::local::{self, AgentFile, LocalSpec, RunnerProgram};
use flightproof_session::{Session, SessionCode, interrupt};
use std::path::{Path, PathBuf};

/// Memory of a session, bytes: a compiler on two cores, and the scratch it writes to.
const MEMORY_BYTES: u64 = 6 << 30;
/// Scratch of a session, bytes, charged to its memory: sources, dependencies and build output.
const SCRATCH_BYTES: u64 = 4 << 30;
/// Processes and threads of a session: cargo and rustc start some dozens.
const PIDS: u64 = 256;
/// Cpu time per second, milliseconds: two cpus.
const CPU_MILLIS: u64 = 2_000;
/// Longest life of a session, milliseconds: a build and two thousand mutants.
pub(super) const LIFETIME_MS: u64 = 60 * 60 * 1000;

/// The backend that is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Backend<'a> {
    /// Bubblewrap on this machine, with this toolchain or rustup's default one.
    Local {
        /// Directory of the toolchain.
        toolchain: Option<&'a Path>,
    },
    /// The engine that `DOCKER_HOST` names or that listens at a usual socket.
    Engine {
        /// The image, or the only session image that the engine has.
        image: Option<Digest>,
    },
}

/// A backend that was found.
pub(super) enum Maker {
    Local {
        bwrap: PathBuf,
        toolchain: PathBuf,
        program: PathBuf,
    },
    Engine {
        engine: Box<Engine>,
        image: PinnedImage,
    },
}

impl Maker {
    pub(super) fn find(asked: Backend<'_>, program: &Path) -> Result<Self, Refusal> {
        match asked {
            Backend::Local { toolchain } => Ok(Self::Local {
                bwrap: state::program("bwrap", "bubblewrap")?,
                toolchain: state::toolchain(toolchain)?,
                program: program.to_owned(),
            }),
            Backend::Engine { image } => {
                let engine = Box::new(Engine::connect(&Endpoint::discover()?)?);
                let id = match image {
                    Some(id) => id,
                    None => only_image(&engine)?,
                };
                let layers = Vec::new();
                let image = PinnedImage { id, layers };
                Ok(Self::Engine { engine, image })
            }
        }
    }

    /// Opens a fresh session, owned through a lease of the ledger, with the program of an agent if
    /// one will work in it.
    pub(super) fn open(
        &self,
        seed: &[u8; 32],
        runner: &RunnerProgram,
        state: &Path,
        lifetime_ms: u64,
        agent: Option<AgentFile>,
    ) -> Result<Box<dyn Session>, Refusal> {
        let mut entropy = [0; 16];
        entropy.copy_from_slice(&seed[..16]);
        let id: String = entropy.iter().map(|b| format!("{b:02x}")).collect();
        interrupt::check()?;
        let leases = Leases::of(&state.join("ledger"));
        let lease = leases.take(&id, lifetime_ms)?;
        let fence = lease.token;
        let leased = match self {
            Self::Local {
                bwrap,
                toolchain,
                program,
            } => {
                let spec = LocalSpec {
                    memory_bytes: MEMORY_BYTES,
                    pids: PIDS,
                    cpu_millis: CPU_MILLIS,
                    scratch_bytes: SCRATCH_BYTES,
                    lifetime_ms,
                    toolchain: toolchain.clone(),
                    bwrap: bwrap.clone(),
                    program: program.clone(),
                    entropy,
                    work_dir: state::temporary(),
                    state_dir: state.to_owned(),
                    cache_dir: state.join("cache"),
                    fence,
                    agent,
                };
                leases.hold(lease, local::open(&spec, runner))?
            }
            Self::Engine { .. } if agent.is_some() => {
                let what = "an agent works on this machine only";
                return Err(SessionCode::SpecInvalid.refuse(what).into());
            }
            Self::Engine { engine, image } => {
                let spec = DockerSpec {
                    endpoint: engine.endpoint().clone(),
                    image: image.clone(),
                    memory_bytes: MEMORY_BYTES,
                    pids: PIDS,
                    cpu_millis: CPU_MILLIS,
                    scratch_bytes: SCRATCH_BYTES,
                    lifetime_ms,
                    entropy,
                    ledger: docker::ledger_id(state)?,
                    state_dir: state.to_owned(),
                    fence,
                };
                leases.hold(lease, docker::open(&spec, runner))?
            }
        };
        Ok(Box::new(leased))
    }

    /// What is on the engine; nothing on this machine, whose sessions count what they leave.
    pub(super) fn inventory(&self, state: &Path) -> Result<Inventory, Refusal> {
        match self {
            Self::Local { .. } => Ok(Inventory::default()),
            Self::Engine { engine, .. } => Ok(Inventory::take(engine, &docker::ledger_id(state)?)?),
        }
    }

    /// Removes what dead owners left on the engine of this backend.
    pub(super) fn reap(&self, state: &Path) -> Result<Vec<String>, Refusal> {
        match self {
            Self::Local { .. } => Ok(Vec::new()),
            Self::Engine { engine, .. } => reap_engine(engine, state),
        }
    }
}

/// Removes the containers of dead owners from an engine. Each line says what was removed.
///
/// # Errors
/// The session's.
pub fn reap_engine(engine: &Engine, state: &Path) -> Result<Vec<String>, Refusal> {
    let mut reaper = Reaper::new(Leases::of(&state.join("ledger")));
    let reaped = docker::reap(engine, state, &mut reaper)?;
    let said = |reaped: &docker::ReapedContainer| match reaped.foreign {
        false => format!(
            "{}: left by a run that was killed; container removed",
            reaped.id
        ),
        true => format!(
            "{}: of another state directory and past its deadline; container removed",
            escape(&reaped.id, 40)
        ),
    };
    Ok(reaped.iter().map(said).collect())
}

/// What an engine is, in one line for people.
pub fn describe(engine: &Engine) -> String {
    let facts = engine.facts();
    format!(
        "{} at {}, interface {}, runtime {}, cgroups {}",
        facts.engine,
        engine.endpoint(),
        facts.api,
        facts.runtime,
        facts.cgroups
    )
}

/// The only session image of an engine. Which one is meant is not guessed.
///
/// # Errors
/// `IMAGE_UNNAMED`.
pub fn only_image(engine: &Engine) -> Result<Digest, Refusal> {
    let images = session_images(engine)?;
    let ids: Vec<Digest> = images.iter().map(|(_, id)| *id).collect();
    the_only(&engine.endpoint().to_string(), &ids)
}

fn the_only(endpoint: &str, images: &[Digest]) -> Result<Digest, Refusal> {
    match images {
        [id] => Ok(*id),
        [] => Err(FlightsCode::ImageUnnamed
            .refuse(format!("{endpoint} has no session image"))
            .into()),
        several => {
            let named: Vec<String> = several.iter().map(|id| format!("sha256:{id}")).collect();
            Err(FlightsCode::ImageUnnamed
                .refuse(format!(
                    "{endpoint} has {} session images: {}",
                    named.len(),
                    named.join(", ")
                ))
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_image_is_meant_is_not_guessed() {
        let (one, other) = (Digest::of(b"one"), Digest::of(b"other"));
        assert_eq!(the_only("e", &[one]).unwrap(), one);
        for images in [&[][..], &[one, other]] {
            let refusal = the_only("e", images).unwrap_err();
            assert_eq!(refusal.code(), "flights/IMAGE_UNNAMED");
        }
    }
}
