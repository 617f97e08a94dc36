//! `flights run`: flies plans, for real or from their recordings, and holds each against what its
//! plan expects.

mod board;
mod results;

pub(super) use results::{FORMS, PlanResult, Way, exit_of};

use super::certify::image_id;
use super::gate;
use super::key::{self, SignerArgs};
use crate::flight::{self, Backend, Flown, Host, Order, Seen, Standing};
use crate::plan::Plan;
use crate::report::write_mutants;
use crate::show::{self, Form, Format, Progress, Speak};
use crate::source;
use crate::transcript::{Player, Recorder, Tape, Transcript};
use crate::{FlightsCode, log, registry, state};
use board::Board;
use clap::Args;
use flightproof_certifier::key::{PublicKey, Signer};
use flightproof_core::{Decision, Digest, Exit, Fault, Refusal, Verdict};
use results::Failure;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Stack of a flight's thread in bytes: that of a main thread, since sources are parsed on it.
const STACK_BYTES: usize = 8 << 20;

/// `flights run`.
#[derive(Args)]
pub(super) struct RunArgs {
    /// Plan files or names; default: every flights/*.toml below the root.
    plans: Vec<PathBuf>,
    /// Fly for real in local sessions.
    #[arg(long, group = "real")]
    local: bool,
    /// Fly for real on the container engine of DOCKER_HOST, or the one at a usual socket.
    #[arg(long, groups = ["real", "engine"])]
    live: bool,
    /// Fly for real in local sessions, and then all of it on the engine: one table of both.
    #[arg(long, groups = ["real", "engine"], conflicts_with = "record")]
    all: bool,
    /// Id of the image to fly in, with --live or --all; default: the only session image of the engine.
    #[arg(long, value_name = "ID", value_parser = image_id, requires = "engine")]
    image: Option<Digest>,
    /// Write a recording of each flight.
    #[arg(long, requires = "real")]
    record: bool,
    /// Sign what the run came to, as evidence for the gate; with --all, FILE with -local and -live at the
    /// end of its stem.
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,
    /// Flights at the same time; default: as many as there are cpus for replays, one for real ones.
    #[arg(short, long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Directory that holds flights/, which paths in plans are relative to.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    #[command(flatten)]
    signer: SignerArgs,
    /// Directory for certificates and verdicts, one folder a flight; with --all, below local and live.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Toolchain directory to bind into sessions; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

/// Flies every named plan, or all of them.
///
/// # Errors
/// What keeps the run from starting; a flight that fails is in the table, not an error here.
pub(super) fn run(args: &RunArgs, form: Form) -> Result<Exit, Refusal> {
    let root = root(&args.root)?;
    let plans = plans(&args.plans, &root)?;
    // What one of the ways lacks is said before anything flies.
    let crews = args
        .ways()
        .iter()
        .map(|way| Crew::gather(args, *way, &root));
    let crews = crews.collect::<Result<Vec<_>, _>>()?;
    let (mut results, mut left) = (Vec::new(), Ok(()));
    for crew in &crews {
        let before = crew.shared_standing()?;
        let flown = crew.fly_all(&plans, form.messages());
        results.extend(flown.into_iter().map(|(result, _)| result));
        if let (Some(before), Some(after)) = (before, crew.shared_standing()?) {
            left = left.and(after.nothing_new_since(&before));
        }
    }
    results::print(&results, form);
    if let Err(refusal) = left {
        // What came of the flights is the one document; what they left together is said beside it.
        show::aside(&refusal);
        return Ok(refusal.exit());
    }
    if let Some(file) = &args.evidence {
        let key = key::signer(&args.signer)?;
        for way in args.ways() {
            let flown = results.iter().filter(|result| result.way == *way);
            let file = args.evidence_of(*way, file);
            gate::of_run(flown, way.word(), &args.root, (key.as_ref(), &file))?;
        }
    }
    Ok(exit_of(results.iter()))
}

impl RunArgs {
    /// How its flights are flown, in this order.
    fn ways(&self) -> &'static [Way] {
        match (self.local, self.live, self.all) {
            (true, _, _) => &[Way::Local],
            (_, true, _) => &[Way::Live],
            (_, _, true) => &[Way::Local, Way::Live],
            (false, false, false) => &[Way::Replayed],
        }
    }

    /// Where the certificates of one way go.
    fn out_of(&self, way: Way) -> Option<PathBuf> {
        let out = self.out.as_ref()?;
        Some(if self.all {
            out.join(way.word())
        } else {
            out.clone()
        })
    }

    /// Where the evidence of one way goes: a statement says one way of all its flights.
    fn evidence_of(&self, way: Way, file: &Path) -> PathBuf {
        if !self.all {
            return file.to_owned();
        }
        let mut name = file.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{}", way.word()));
        if let Some(extension) = file.extension() {
            name.push(".");
            name.push(extension);
        }
        file.with_file_name(name)
    }
}

/// Plans that are replayed for somebody else than `flights run`.
pub(super) struct Replays {
    crew: Crew,
    plans: Vec<PathBuf>,
    recorders: Vec<PublicKey>,
}

impl Replays {
    /// The named plans below a root, or all.
    ///
    /// # Errors
    /// `NOTHING_TO_RUN`, `TRANSCRIPT_MISSING` without a recorder's key.
    pub(super) fn of(directory: &Path, named: &[PathBuf]) -> Result<Self, Refusal> {
        let root = root(directory)?;
        let plans = plans(named, &root)?;
        let recorders = recorder_keys(&root)?;
        let crew = Crew {
            root,
            way: Way::Replayed,
            mark: String::new(),
            mode: Mode::Replay {
                recorders: recorders.clone(),
            },
            record: false,
            out: None,
            jobs: cpus(),
            again: again(Way::Replayed, directory),
        };
        Ok(Self {
            crew,
            plans,
            recorders,
        })
    }

    /// Replays them all.
    pub(super) fn fly(&self) -> Vec<(PlanResult, Seen)> {
        self.crew.fly_all(&self.plans, Format::Human)
    }

    /// The plans' files, in their order.
    pub(super) fn plans(&self) -> &[PathBuf] {
        &self.plans
    }

    /// The recorders' keys.
    pub(super) fn recorders(&self) -> &[PublicKey] {
        &self.recorders
    }

    /// Where the recording of a plan lies.
    pub(super) fn recording(&self, name: &str) -> PathBuf {
        recording(&self.crew.root, name)
    }
}

fn root(directory: &Path) -> Result<PathBuf, Refusal> {
    directory.canonicalize().map_err(|e| {
        FlightsCode::NothingToRun
            .refuse(format!("{}: {e}", directory.display()))
            .into()
    })
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The command that flies once more, up to the plan's name.
fn again(way: Way, root: &Path) -> String {
    let mode = match way {
        Way::Replayed => "",
        Way::Local => " --local",
        Way::Live => " --live",
    };
    let root = match root == Path::new(".") {
        true => String::new(),
        false => format!(" --root {}", super::input::shown(root)),
    };
    format!("flights run{mode}{root}")
}

fn plans(named: &[PathBuf], root: &Path) -> Result<Vec<PathBuf>, Refusal> {
    if named.is_empty() {
        return plans_below(root);
    }
    let folder = root.join("flights");
    Ok(named.iter().map(|named| resolve(named, &folder)).collect())
}

/// Every plan of a project, by name.
///
/// # Errors
/// `NOTHING_TO_RUN`.
pub(super) fn plans_below(root: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let folder = root.join("flights");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(FlightsCode::NothingToRun
            .refuse(format!("no *.toml in {}", folder.display()))
            .into());
    }
    Ok(found)
}

/// A plan is named by its file, or by its name alone.
fn resolve(named: &Path, folder: &Path) -> PathBuf {
    if named.exists() || named.extension().is_some() {
        named.to_owned()
    } else {
        folder.join(named).with_extension("toml")
    }
}

/// What all flights of one run share.
struct Crew {
    root: PathBuf,
    way: Way,
    /// Stands after names where the same plan flies in more than one way.
    mark: String,
    mode: Mode,
    record: bool,
    out: Option<PathBuf>,
    jobs: usize,
    again: String,
}

enum Mode {
    Replay {
        recorders: Vec<PublicKey>,
    },
    Real {
        host: Box<Host>,
        key: Box<dyn Signer>,
    },
}

impl Crew {
    fn gather(args: &RunArgs, way: Way, root: &Path) -> Result<Self, Refusal> {
        let backend = match way {
            Way::Local => Some(Backend::Local {
                toolchain: args.toolchain.as_deref(),
            }),
            Way::Live => Some(Backend::Engine { image: args.image }),
            Way::Replayed => None,
        };
        let (mode, jobs) = if let Some(backend) = backend {
            let key = key::signer(&args.signer)?;
            if args.record {
                settle_recorder(&root, &key.public_key())?;
            }
            let host = Box::new(Host::prepare(backend)?);
            show::recovered(&host.recover()?);
            (Mode::Real { host, key }, 1)
        } else {
            let recorders = recorder_keys(root)?;
            (Mode::Replay { recorders }, cpus())
        };
        Ok(Self {
            root: root.to_owned(),
            way,
            mark: match args.all {
                true => format!(" ({})", way.word()),
                false => String::new(),
            },
            mode,
            record: args.record,
            out: args.out_of(way),
            jobs: args.jobs.map_or(jobs, usize::from),
            again: again(way, &args.root),
        })
    }

    /// What stands, for flights that fly together: what one of them left cannot be told from what
    /// another still needs, so it is looked at before all of them and after. Flown one by one, each is
    /// looked at for itself.
    fn shared_standing(&self) -> Result<Option<Standing>, Refusal> {
        match &self.mode {
            Mode::Real { host, .. } if self.jobs > 1 => host.standing().map(Some),
            _ => Ok(None),
        }
    }

    /// Flies plans, so many at a time. The results have the order of the plans.
    fn fly_all(&self, plans: &[PathBuf], format: Format) -> Vec<(PlanResult, Seen)> {
        let board = Arc::new(Board::new(plans.len(), format));
        let next = AtomicUsize::new(0);
        let landed = Mutex::new(Vec::new());
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = plans.get(index) else {
                    return;
                };
                let flown = self.fly(path, &board, format);
                if let Ok(mut landed) = landed.lock() {
                    landed.push((index, flown));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(plans.len()) {
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                // Without a thread of its own the work is done below.
                let _ = thread.spawn_scoped(scope, work);
            }
        });
        work();
        let mut landed = landed.into_inner().unwrap_or_default();
        landed.sort_by_key(|(index, _)| *index);
        landed.into_iter().map(|(_, flown)| flown).collect()
    }

    fn fly(&self, path: &Path, board: &Arc<Board>, format: Format) -> (PlanResult, Seen) {
        let started = Instant::now();
        let name = path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let lines = match (&self.mode, format) {
            (Mode::Replay { .. }, _) | (_, Format::Json) => Speak::Nothing,
            (_, Format::Human) => Speak::Stages,
        };
        let label = format!("{name}{}", self.mark);
        let mut progress = Progress::with(board.voice(&label, lines, self.jobs > 1));
        let outcome = Plan::read(path).map_err(Refusal::from).and_then(|plan| {
            let flown = self.fly_plan(&plan, &mut progress)?;
            Ok((plan, flown))
        });
        let again = format!("{} {name}", self.again);
        let (verdict, failure) = match outcome {
            Ok((plan, verdict)) => {
                let failure = unexpected(&plan, &verdict)
                    .map(|refusal| Failure::of(refusal, &verdict.stage, again));
                (verdict, failure)
            }
            Err(refusal) => {
                let stage = progress.stage();
                (
                    Verdict::refused(stage, &refusal),
                    Some(Failure::of(refusal, stage, again)),
                )
            }
        };
        board.ended(&label, failure.is_some());
        let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = PlanResult {
            file: format!("flights/{name}.toml"),
            label,
            name,
            way: self.way,
            verdict,
            failure,
            milliseconds,
            stages: progress.stages,
        };
        (result, progress.seen)
    }

    fn fly_plan(&self, plan: &Plan, progress: &mut Progress) -> Result<Verdict, Refusal> {
        let order = Order::from_plan(plan, &self.root)?;
        let digest = order.digest(plan)?;
        match &self.mode {
            Mode::Replay { recorders } => self.replay(plan, order, digest, recorders, progress),
            Mode::Real { host, key } => {
                self.fly_here(plan, order, digest, (host, key.as_ref()), progress)
            }
        }
    }

    fn replay(
        &self,
        plan: &Plan,
        order: Order,
        digest: Digest,
        recorders: &[PublicKey],
        progress: &mut Progress,
    ) -> Result<Verdict, Refusal> {
        let player = Player::of(Transcript::open(
            &recording(&self.root, &plan.name),
            recorders,
        )?);
        if player.plan() != digest || player.flight() != plan.name {
            return Err(FlightsCode::TranscriptDiverged
                .refuse(format!(
                    "{}: recorded with another plan, witness or lock",
                    plan.name
                ))
                .into());
        }
        let (recorded, verdict) = (player.predicate(), player.verdict().to_owned());
        let mut tape = Tape::replay(player);
        let flown = flight::fly(&order, None, &mut tape, progress);
        tape.finish(flown.word(), None, None)?;
        let reached = flown.statement().map(Digest::of);
        if reached != recorded || flown.word() != verdict {
            return Err(FlightsCode::PredicateDiffers
                .refuse(format!(
                    "{}: recorded {verdict} {}, reached {} {}",
                    plan.name,
                    shown(recorded),
                    end(&flown),
                    shown(reached)
                ))
                .into());
        }
        Ok(flown.verdict(None))
    }

    fn fly_here(
        &self,
        plan: &Plan,
        mut order: Order,
        digest: Digest,
        (host, key): (&Host, &dyn Signer),
        progress: &mut Progress,
    ) -> Result<Verdict, Refusal> {
        let work = host.work_directory()?;
        order.source = Some(source::lay(
            &plan.source,
            &plan.name,
            &self.root,
            work.path(),
        )?);
        let canary = plan
            .expect
            .canary
            .as_ref()
            .map(|name| state::temporary().join(name));
        if let Some(canary) = canary.as_ref().filter(|c| c.exists()) {
            return Err(FlightsCode::CanaryFound
                .refuse(format!("{} existed before the flight", canary.display()))
                .into());
        }
        let mut tape = match self.record {
            true => Tape::record(Recorder::start(
                &recording(&self.root, &plan.name),
                &plan.name,
                digest,
            )?),
            false => Tape::Off,
        };
        let mut fly = || flight::fly(&order, Some(host), &mut tape, progress);
        let flown = match self.jobs {
            1 => host.leaving_nothing(fly)?,
            _ => fly(),
        };
        tape.finish(flown.word(), flown.statement().map(Digest::of), Some(key))?;
        if let Some(canary) = canary.filter(|c| c.exists()) {
            return Err(FlightsCode::CanaryFound.refuse(canary.display()).into());
        }
        let Some(out) = &self.out else {
            return match &flown {
                Flown::Certified(proven) => {
                    let id = flight::certify(proven, key)?.id;
                    Ok(flown.verdict(Some(id.to_string())))
                }
                Flown::Refused { .. } => Ok(flown.verdict(None)),
            };
        };
        let out = out.join(&plan.name);
        let verdict = hand_out(flown, &order, key, &out)?;
        write_mutants(&out, &progress.seen)?;
        Ok(verdict)
    }
}

/// Writes what a flight came to into a directory, and into the log.
fn hand_out(flown: Flown, order: &Order, key: &dyn Signer, out: &Path) -> Result<Verdict, Refusal> {
    let _out = flight::clear_out(out)?;
    let verdict = match flown {
        Flown::Certified(ref proven) => {
            let certificate = flight::certify(proven, key)?;
            flight::write_certificate(out, &certificate, proven, key)?;
            flown.verdict(Some(certificate.id.to_string()))
        }
        Flown::Refused { stage, refusal } => {
            let refusal = log::refused(stage, refusal, &order.label, &order.candidate);
            Verdict::refused(stage, &refusal)
        }
    };
    flight::write_verdict(out, &verdict)?;
    Ok(verdict)
}

/// How a flight ended, in full.
fn end(flown: &Flown) -> String {
    match flown {
        Flown::Certified(_) => flown.word().to_owned(),
        Flown::Refused { stage, refusal } => format!("at {stage}: {refusal}:"),
    }
}

fn shown(digest: Option<Digest>) -> String {
    digest.map_or_else(
        || "no predicate".to_owned(),
        |d| d.to_string()[..12].to_owned(),
    )
}

/// Where the recording of a plan lies.
pub(super) fn recording(root: &Path, name: &str) -> PathBuf {
    root.join("flights/recordings")
        .join(format!("{name}.flight"))
}

/// The keys of those who record: every public key beside the recordings.
fn recorder_keys(root: &Path) -> Result<Vec<PublicKey>, Refusal> {
    let paths = recordings(root, "pub");
    if paths.is_empty() {
        let place = root.join("flights/recordings");
        let code = match recordings(root, "flight").is_empty() {
            true => FlightsCode::TranscriptMissing,
            false => FlightsCode::RecorderUnknown,
        };
        let detail = format!("{}: no recorder's key", super::input::shown(&place));
        return Err(code.refuse(detail).into());
    }
    paths.iter().map(|path| key::public(path)).collect()
}

/// Before anything is recorded: what is recorded can be replayed here by whoever trusts the keys that
/// lie there. The first who records lays down theirs.
fn settle_recorder(root: &Path, key: &PublicKey) -> Result<(), Refusal> {
    let folder = root.join("flights/recordings");
    let known = match recordings(root, "pub").is_empty() {
        false => recorder_keys(root)?,
        true if recordings(root, "flight").is_empty() => {
            std::fs::create_dir_all(&folder).map_err(|e| {
                FlightsCode::TranscriptWrite.refuse(format!("{}: {e}", folder.display()))
            })?;
            return state::write_file(&folder.join(RECORDER), key.to_pem()?.as_bytes(), 0o644);
        }
        true => Vec::new(),
    };
    match known.iter().any(|known| known.id() == key.id()) {
        true => Ok(()),
        false => {
            let detail = format!("{}: not by {}", super::input::shown(&folder), key.id());
            Err(FlightsCode::RecorderOther.refuse(detail).into())
        }
    }
}

/// What lies beside the recordings with this ending, sorted.
fn recordings(root: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("flights/recordings"));
    let mut paths: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    paths.sort();
    paths
}

/// The public key of whoever recorded here first.
const RECORDER: &str = "recorder.pub";

/// Whether the verdict is another one than the plan expects.
fn unexpected(plan: &Plan, verdict: &Verdict) -> Option<Refusal> {
    let expect = &plan.expect;
    let stage = expect.stage.as_deref().unwrap_or(&verdict.stage);
    let same =
        verdict.verdict == expect.verdict && verdict.code == expect.code && verdict.stage == stage;
    let broken = verdict.code.as_deref().and_then(registry::find);
    if let Some(explanation) = broken.filter(|e| !same && !speaks_of_the_candidate(e.fault)) {
        // What is missing here says nothing about the candidate, and has its own hint.
        return Some(Refusal {
            explanation,
            detail: verdict.detail.clone(),
            notes: verdict.notes.clone(),
        });
    }
    (!same).then(|| {
        let said = |decision: Decision, stage: &str, code: Option<&str>| match code {
            Some(code) => format!("{code} at {stage}"),
            None => serde_json::to_string(&decision)
                .unwrap_or_default()
                .trim_matches('"')
                .to_owned(),
        };
        FlightsCode::VerdictUnexpected
            .refuse(format!(
                "expected {}, got {}: {}",
                said(expect.verdict, stage, expect.code.as_deref()),
                said(verdict.verdict, &verdict.stage, verdict.code.as_deref()),
                verdict.detail
            ))
            .into()
    })
}

fn speaks_of_the_candidate(fault: Fault) -> bool {
    matches!(fault, Fault::Input | Fault::Evidence | Fault::Policy)
}
