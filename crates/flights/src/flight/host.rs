//! The host a flight starts from: its git, its toolchain, its sandbox, its state.

use super::backend::{Backend, LIFETIME_MS, Maker};
use super::{Order, Proven, Standing, WorkDirectory};
use crate::{FlightsCode, interrupt, log, near, state};
use flightproof_archive::paar;
use flightproof_certifier::verify::ExpectedSubject;
use flightproof_core::{CommitId, Digest, Refusal, escape};
use flightproof_evidence::{Attestation, Captured, Package};
use flightproof_frame::protocol::CrateFile;
use flightproof_importer::{
    self as importer, Admitted, CaptureRequest, Clearance, Git, Grants, ImportError,
};
use flightproof_ledger::Ledger;
use flightproof_session::lease::{Leases, Reaper};
use flightproof_session::local::{AgentFile, RunnerProgram};
use flightproof_session::{Session, crates, record};
use std::path::{Path, PathBuf};

/// Most bytes of a branch, a repository's path or a lock's path in a line for people.
const MAX_NAME: usize = 200;

/// Most bytes of a receipt in such a line: it is about 500 bytes of JSON.
const MAX_RECEIPT: usize = 2000;

/// What a flight needs of the machine, found once.
pub struct Host {
    git: Git,
    maker: Maker,
    runner: RunnerProgram,
    state: PathBuf,
}

impl Host {
    /// Finds everything, or says what is missing.
    ///
    /// # Errors
    /// `PROGRAM_MISSING`, `TOOLCHAIN_MISSING`, `STATE_UNAVAILABLE`, `IMAGE_UNNAMED`, the session's for
    /// an engine, and the importer's for git.
    pub fn prepare(backend: Backend<'_>) -> Result<Self, Refusal> {
        let state = state::directory()?;
        interrupt::watch(&state)?;
        let git = Git::at(&state::program("git", "git")?)?;
        let program = std::env::current_exe().map_err(|e| {
            Refusal::from(FlightsCode::StateUnavailable.refuse(format!("own program: {e}")))
        })?;
        let runner = RunnerProgram::from_artifact(&artifact(&program)?)?;
        Ok(Self {
            git,
            maker: Maker::find(backend, &program)?,
            runner,
            state,
        })
    }

    /// A private directory in the temporary folder.
    ///
    /// # Errors
    /// As [`WorkDirectory::new`].
    pub fn work_directory(&self) -> Result<WorkDirectory, Refusal> {
        WorkDirectory::new(&self.state)
    }

    /// Removes what dead owners left and settles interrupted admissions. Each line says what was
    /// done.
    ///
    /// # Errors
    /// The session's or the ledger's, if something that was left cannot be dealt with.
    pub fn recover(&self) -> Result<Vec<String>, Refusal> {
        let mut lines = reap_here(&self.state)?;
        lines.extend(self.maker.reap(&self.state)?);
        lines.extend(settle_all(&self.git, &self.state)?);
        Ok(lines)
    }

    /// Opens a session, closes it, and returns what it was.
    ///
    /// # Errors
    /// Whatever keeps this machine from flying.
    pub fn try_session(&self) -> Result<Attestation, Refusal> {
        let mut session = self.open(&state::entropy()?)?;
        let attestation = session.attestation().clone();
        session.close()?;
        Ok(attestation)
    }

    /// Takes the commit out of its repository.
    pub(crate) fn capture(&self, order: &Order, now: u64) -> Result<Captured, Refusal> {
        let repository = self.repository(order)?;
        let work = self.work_directory()?;
        let grants = order.rules();
        if let Some(bundle) = &order.bundle {
            let arrival = arrival(order, bundle, &grants, work.path(), now);
            let taken = importer::capture_bundle(&self.git, &repository, &order.label, &arrival)?;
            return Ok(taken.captured);
        }
        let request = CaptureRequest {
            name: &order.label,
            baseline: &order.baseline,
            candidate: &order.candidate,
            grants: &grants,
            identity: order.identity.as_deref(),
            squash: false,
            scratch: work.path(),
            now,
        };
        match importer::capture(&self.git, &repository, &request) {
            Ok(taken) => Ok(taken.captured),
            Err(refused) => Err(near::revision(refused.into(), &self.git, &repository)),
        }
    }

    /// The dependencies as cargo's cache holds them, each checked against the lock.
    pub(crate) fn shipment(&self, packages: &[Package]) -> Result<crates::Shipment, Refusal> {
        let wanted: Vec<CrateFile> = packages
            .iter()
            .map(|p| CrateFile {
                name: p.name.clone(),
                version: p.version.clone(),
                sha256: p.sha256,
            })
            .collect();
        Ok(crates::ship(&crates::find(
            &state::crate_caches(),
            &wanted,
        )?)?)
    }

    /// The whole baseline of an order, for somebody to work on.
    pub(crate) fn checkout(&self, order: &Order) -> Result<importer::Checkout, Refusal> {
        let (repository, work) = (self.repository(order)?, self.work_directory()?);
        let baseline = &order.baseline;
        Ok(importer::checkout(
            &self.git,
            &repository,
            baseline,
            work.path(),
        )?)
    }

    /// Its git.
    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// Opens a fresh session.
    pub(crate) fn open(&self, seed: &[u8; 32]) -> Result<Box<dyn Session>, Refusal> {
        self.open_for(seed, LIFETIME_MS)
    }

    /// Opens a fresh session that lives so many milliseconds at most.
    pub(crate) fn open_for(
        &self,
        seed: &[u8; 32],
        lifetime_ms: u64,
    ) -> Result<Box<dyn Session>, Refusal> {
        self.maker
            .open(seed, &self.runner, &self.state, lifetime_ms, None)
    }

    /// Opens a fresh session for an agent, with its program in it.
    pub(crate) fn open_for_agent(
        &self,
        seed: &[u8; 32],
        program: AgentFile,
    ) -> Result<Box<dyn Session>, Refusal> {
        let agent = Some(program);
        self.maker
            .open(seed, &self.runner, &self.state, LIFETIME_MS, agent)
    }

    /// What stands because of this process, here and on the engine that this host flies on.
    ///
    /// # Errors
    /// As [`Standing::take`].
    pub fn standing(&self) -> Result<Standing, Refusal> {
        Standing::take(&self.state, self.maker.inventory(&self.state)?)
    }

    /// Does what nothing may be left of, while this process does nothing else.
    ///
    /// # Errors
    /// What was left.
    pub fn leaving_nothing<T>(&self, act: impl FnOnce() -> T) -> Result<T, Refusal> {
        let before = self.standing()?;
        let done = act();
        self.standing()?.nothing_new_since(&before)?;
        Ok(done)
    }

    /// Refuses a flight that could not be admitted at its end. The admission asks again.
    ///
    /// # Errors
    /// `ALREADY_ADMITTED`, and the importer's for a branch that cannot be moved.
    pub fn check_open(&self, order: &Order, branch: &str) -> Result<(), Refusal> {
        let repository = self.repository(order)?;
        let told = |refused: ImportError| near::revision(refused.into(), &self.git, &repository);
        let commit = |revision: &str| repository.resolve(&self.git, revision);
        let baseline = commit(&order.baseline).map_err(told)?;
        let candidate = commit(&order.candidate).map_err(told)?;
        if commit(&format!("refs/heads/{branch}")) == Ok(candidate) {
            return Err(FlightsCode::AlreadyAdmitted
                .refuse(format!("{} is at {candidate}", escape(branch, MAX_NAME)))
                .into());
        }
        let (ends, work) = ((baseline, candidate), self.work_directory()?);
        let open = importer::check_open(&self.git, &repository, branch, ends, work.path());
        open.map_err(|refused| near::revision(refused, &self.git, &repository))
    }

    /// Refuses a branch that could not move from an order's baseline, whatever came.
    ///
    /// # Errors
    /// The importer's.
    pub(crate) fn check_branch(&self, order: &Order, branch: &str) -> Result<(), Refusal> {
        let repository = self.repository(order)?;
        let baseline = repository.resolve(&self.git, &order.baseline)?;
        let ends = (baseline, baseline);
        let work = self.work_directory()?;
        importer::check_open(&self.git, &repository, branch, ends, work.path())
    }

    /// The state directory.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    fn repository(&self, order: &Order) -> Result<importer::Host, Refusal> {
        let source = order.source.as_ref().ok_or_else(|| {
            FlightsCode::SourceUnavailable.refuse("the order names no repository")
        })?;
        Ok(importer::Host::open(&self.git, &source.repository)?)
    }

    /// Moves a branch to a certified commit, and the working tree that is on it.
    ///
    /// # Errors
    /// The importer's and the ledger's refusals; nothing moved then, unless they say so.
    pub fn admit(
        &self,
        order: &Order,
        proven: &Proven,
        branch: &str,
        certificate: Digest,
    ) -> Result<Admitted, Refusal> {
        let repository = self.repository(order)?;
        let mut clearance = Clearance::new(&proven.closed, certificate, &proven.captured, branch)?;
        if let Some(bundle) = &order.bundle {
            let grants = order.rules();
            let work = self.work_directory()?;
            let now = state::unix_seconds();
            let arrival = arrival(order, bundle, &grants, work.path(), now);
            let checked = importer::check_bundle(&self.git, &repository, &arrival)?;
            clearance = clearance.carrying(&checked)?;
        }
        let mut ledger = self.ledger()?;
        importer::admit(
            &self.git,
            &repository,
            &mut ledger,
            &clearance,
            state::unix_seconds(),
        )
    }

    /// Opens the ledger.
    ///
    /// # Errors
    /// The ledger's.
    pub(crate) fn ledger(&self) -> Result<Ledger, Refusal> {
        Ok(Ledger::open(&self.state.join("ledger"))?)
    }

    /// The commit that a revision names, and what a certificate about it must be about.
    ///
    /// # Errors
    /// The importer's.
    pub fn subject(repo: &Path, revision: &str) -> Result<(CommitId, ExpectedSubject), Refusal> {
        let (git, repository) = open_repository(repo)?;
        let work = WorkDirectory::to_read()?;
        let found = importer::snapshot_of(&git, &repository, revision, work.path());
        let (commit, snapshot, kept) =
            found.map_err(|refused| near::revision(refused.into(), &git, &repository))?;
        Ok((commit, ExpectedSubject { snapshot, kept }))
    }
}

/// Git of this machine, and a repository.
///
/// # Errors
/// `PROGRAM_MISSING` without a git; the importer's.
pub(crate) fn open_repository(top: &Path) -> Result<(Git, importer::Host), Refusal> {
    Ok(importer::Host::with_git(
        &state::program("git", "git")?,
        top,
    )?)
}

/// Ends the sessions of dead owners on this machine. Each line says what was done.
///
/// # Errors
/// The session's.
pub fn reap_here(state: &Path) -> Result<Vec<String>, Refusal> {
    let mut reaper = Reaper::new(Leases::of(&state.join("ledger")));
    let reaped = record::reap(state, &mut reaper)?;
    Ok(reaped.iter().map(leftover).collect())
}

/// Removes what dead owners left on this machine and settles interrupted admissions. Each line says what
/// was done.
///
/// # Errors
/// As [`Host::recover`]; `PROGRAM_MISSING` without a git.
pub fn recover_here() -> Result<Vec<String>, Refusal> {
    let state = state::directory()?;
    let mut lines = reap_here(&state)?;
    lines.extend(settle_all(
        &Git::at(&state::program("git", "git")?)?,
        &state,
    )?);
    Ok(lines)
}

fn settle_all(git: &Git, state: &Path) -> Result<Vec<String>, Refusal> {
    settle(state)?;
    let mut ledger = Ledger::open(&state.join("ledger"))?;
    let recovered = importer::recover(git, &mut ledger, state::unix_seconds())?;
    let unlogged = log::moves(None);
    Ok(recovered.iter().map(settled).chain(unlogged).collect())
}

/// Settles sessions of the ledger that came to nothing.
///
/// # Errors
/// The ledger's.
pub fn settle(state: &Path) -> Result<(), Refusal> {
    Leases::of(&state.join("ledger")).settle(|id| record::is_registered(state, id))?;
    Ok(())
}

/// An order's bundle, and what it is held against.
fn arrival<'a>(
    order: &'a Order,
    bundle: &'a [u8],
    grants: &'a Grants,
    scratch: &'a Path,
    now: u64,
) -> importer::Arrival<'a> {
    importer::Arrival {
        parcel: importer::Parcel {
            bundle,
            changeset: order.changeset.as_deref(),
        },
        baseline: &order.baseline,
        rules: importer::Rules {
            grants,
            identity: order.identity.as_deref(),
            now,
        },
        scratch,
    }
}

fn leftover(reaped: &record::Reaped) -> String {
    format!(
        "{}: left by a run that was killed; {} processes ended, directories removed",
        reaped.id, reaped.processes
    )
}

pub(crate) fn settled(recovered: &importer::Recovered) -> String {
    let key = &recovered.key;
    let outcome = match recovered.outcome {
        importer::Outcome::Applied => "the branch had moved; receipt",
        importer::Outcome::AppliedThenMoved => "the branch had moved and went on since; receipt",
        importer::Outcome::NotApplied => {
            "the branch had not moved; the commit may be asked in again"
        }
        importer::Outcome::Interrupted => {
            "the branch had not moved; files that had changed are as before; the commit may be asked in again"
        }
        importer::Outcome::Superseded => "the branch went elsewhere",
        importer::Outcome::Unknown => "how it ended cannot be said",
        importer::Outcome::Unreachable => {
            "the repository cannot be judged now; the admission stays open"
        }
    };
    let mut line = format!(
        "interrupted admission of {} to {} of {}: {outcome}",
        key.head,
        escape(&key.branch, MAX_NAME),
        escape(&key.repository, MAX_NAME)
    );
    if let Some(receipt) = &recovered.receipt {
        line.push_str(&format!(": {}", escape(receipt, MAX_RECEIPT)));
    }
    if let Some(lock) = &recovered.lock_left {
        line.push_str(&format!(
            "; {} was left by a killed git: remove it if no git runs",
            escape(lock.to_string_lossy().as_bytes(), MAX_NAME)
        ));
    }
    for kept in &recovered.kept {
        line.push_str(&format!("; kept: {}", escape(kept, MAX_NAME)));
    }
    if let Some(look) = &recovered.look {
        line.push_str(&format!("; {look}"));
    }
    line
}

/// This program as the artifact it is shipped into sessions as.
fn artifact(program: &Path) -> Result<Vec<u8>, Refusal> {
    let bytes = std::fs::read(program)
        .map_err(|e| FlightsCode::StateUnavailable.refuse(format!("{}: {e}", program.display())))?;
    let origin = paar::Origin {
        target: target(),
        source_commit: source_commit(),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    };
    let path = paar::ArtifactPath::new("flights")
        .map_err(|e| FlightsCode::StateUnavailable.refuse(format!("own name: {e}")))?;
    Ok(paar::pack(origin, [(path, true, bytes.as_slice())])?.bytes)
}

fn target() -> paar::Target {
    if cfg!(target_arch = "aarch64") {
        paar::Target::LinuxArm64
    } else {
        paar::Target::LinuxX64
    }
}

/// The commit this program was built from, if the build said so; zeros otherwise.
fn source_commit() -> CommitId {
    option_env!("FLIGHTPROOF_SOURCE_COMMIT")
        .and_then(|text| text.parse().ok())
        .unwrap_or(CommitId::from_bytes([0; 20]))
}
