//! `flights run`: flies plans, for real or from their recordings, and holds each against what its
//! plan expects.

mod board;
mod places;
mod replay;
mod results;

pub(super) use places::{live_recording, plans_below, recorded, recording, root, settle_recorder};
pub(super) use results::{FORMS, PlanResult, Way, exit_of};

use super::certify::image_id;
use super::gate;
use super::key::{self, SignerArgs};
use super::refused;
use crate::agent::{self, AgentPlan};
use crate::annotations::Finding;
use crate::flight::{self, Backend, Flown, Host, Order, Seen, Standing};
use crate::plan::Plan;
use crate::report::write_mutants;
use crate::show::{self, Form, Format, Progress, Speak};
use crate::source;
use crate::transcript::{Player, Recorder, Tape, Transcript};
use crate::{FlightsCode, log, state};
use board::Board;
use clap::Args;
use flightproof_certifier::key::{PublicKey, Signer};
use flightproof_certifier::policy::Policy;
use flightproof_core::{Digest, Exit, Refusal, Verdict};
use places::{AGENTS, first_missing, is_agents, plans, recorded_agents, recorder_keys, stem};
use replay::{replay, unexpected};
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
    #[arg(short = 'o', long, alias = "output", value_name = "DIR")]
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
    let mut plans = plans(&args.plans, &root)?;
    if args.plans.is_empty() && args.ways() == [Way::Replayed] {
        plans.extend(recorded_agents(&root));
    }
    // What one of the ways lacks is said before anything flies.
    let crews = args
        .ways()
        .iter()
        .map(|way| Crew::gather(args, *way, &root));
    let crews = crews.collect::<Result<Vec<_>, _>>();
    let crews = crews.map_err(|lacking| first_missing(&plans).unwrap_or(lacking))?;
    let (mut results, mut left) = (Vec::new(), Ok(()));
    for crew in &crews {
        let before = crew.shared_standing()?;
        let takes: Vec<Take> = plans.iter().flat_map(|plan| crew.takes(plan)).collect();
        let flown = crew.fly_all(&takes, form.messages());
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
        let recorders = recorder_keys(&root);
        let recorders = recorders.map_err(|lacking| first_missing(&plans).unwrap_or(lacking))?;
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
        let takes = self.plans.iter().cloned().map(Take::plain);
        self.crew.fly_all(&takes.collect::<Vec<_>>(), Format::Human)
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

/// One flight of a run.
struct Take {
    /// The plan's file.
    path: PathBuf,
    /// Recorded on an engine.
    live: bool,
}

impl Take {
    fn plain(path: PathBuf) -> Self {
        Self { path, live: false }
    }
}

/// What a flight came to, and why that was not expected, if it was not.
type Outcome = (Verdict, Option<Refusal>);

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
                settle_recorder(root, &key.public_key())?;
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

    /// The flights of a plan: one, or a replay of each recording that there is.
    fn takes(&self, path: &Path) -> Vec<Take> {
        let engine = live_recording(&self.root, &stem(path));
        if self.way != Way::Replayed || !engine.exists() {
            return vec![Take::plain(path.to_owned())];
        }
        let here = recording(&self.root, &stem(path)).exists();
        let here = here.then(|| Take::plain(path.to_owned()));
        let path = path.to_owned();
        here.into_iter()
            .chain([Take { path, live: true }])
            .collect()
    }

    /// Flies plans, so many at a time. The results have the order of the plans.
    fn fly_all(&self, plans: &[Take], format: Format) -> Vec<(PlanResult, Seen)> {
        let board = Arc::new(Board::new(plans.len(), format));
        let next = AtomicUsize::new(0);
        let landed = Mutex::new(Vec::new());
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(take) = plans.get(index) else {
                    return;
                };
                let flown = self.fly(take, &board, format);
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

    fn fly(&self, take: &Take, board: &Arc<Board>, format: Format) -> (PlanResult, Seen) {
        let (started, path) = (Instant::now(), take.path.as_path());
        let name = stem(path);
        let lines = match (&self.mode, format) {
            (Mode::Replay { .. }, _) | (_, Format::Json) => Speak::Nothing,
            (_, Format::Human) => Speak::Stages,
        };
        let label = match take.live {
            true => format!("{name} (live)"),
            false => format!("{name}{}", self.mark),
        };
        let mut progress = Progress::with(board.voice(&label, lines, self.jobs > 1));
        let outcome = match is_agents(path) {
            true => self.replay_agent(path, &mut progress),
            false => self.fly_file(take, &mut progress),
        };
        // A name that no plan has is not worth repeating.
        let again = match path.exists() {
            true => format!("{} {name}", self.again),
            false => self.again.clone(),
        };
        let (verdict, failure) = match outcome {
            Ok((verdict, unexpected)) => {
                let failure = unexpected.map(|refusal| Failure::of(refusal, &verdict.stage, again));
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
        let told = refused::told(&verdict, &progress.seen);
        let survivors = refused::at_lines(&verdict, &progress.seen);
        let survivors = self.in_project(path, survivors);
        let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = PlanResult {
            file: match name.strip_prefix("agent-").filter(|_| is_agents(path)) {
                Some(name) => format!("flights/{AGENTS}/{name}.toml"),
                None => format!("flights/{name}.toml"),
            },
            label,
            name,
            way: self.way,
            verdict,
            failure,
            milliseconds,
            stages: progress.stages,
            told,
            survivors,
        };
        (result, progress.seen)
    }

    /// Those of the findings in a plan's candidate whose files the project has, at their places there.
    fn in_project(&self, path: &Path, mut findings: Vec<Finding>) -> Vec<Finding> {
        let plan = match findings.is_empty() {
            true => None,
            false => Plan::read(path).ok(),
        };
        findings.retain_mut(|finding| {
            let found = finding.place.as_mut().zip(plan.as_ref());
            found.is_some_and(|(place, plan)| {
                let file = source::in_project(&plan.source, &self.root, &place.file);
                file.map(|file| place.file = file).is_some()
            })
        });
        findings
    }

    /// Flies a plan's file. Returns also why that was not expected, if it was not.
    fn fly_file(&self, take: &Take, progress: &mut Progress) -> Result<Outcome, Refusal> {
        let plan = Plan::read(&take.path)?;
        let verdict = self.fly_plan(&plan, take.live, progress)?;
        let unexpected = unexpected(&plan, &verdict);
        Ok((verdict, unexpected))
    }

    fn replay_agent(&self, path: &Path, progress: &mut Progress) -> Result<Outcome, Refusal> {
        let plan = AgentPlan::read(path, &self.root)?;
        let Mode::Replay { recorders } = &self.mode else {
            let what = "an agent flies with `flights agent run`; here its recording is replayed";
            return Err(FlightsCode::UsageInvalid.refuse(what).into());
        };
        let place = recording(&self.root, &agent::recorded_as(&plan.name));
        let player = Player::of(Transcript::open(&place, recorders)?);
        let report = agent::replay(path, &plan, &self.root, player, progress)?;
        let unexpected = super::agent::unexpected(&plan, &report);
        Ok((report.verdict, unexpected))
    }

    fn fly_plan(
        &self,
        plan: &Plan,
        live: bool,
        progress: &mut Progress,
    ) -> Result<Verdict, Refusal> {
        let order = Order::from_plan(plan, &self.root)?;
        let digest = order.digest(plan)?;
        match &self.mode {
            Mode::Replay { recorders } => {
                let place = match live {
                    true => live_recording(&self.root, &plan.name),
                    false => recording(&self.root, &plan.name),
                };
                let player = Player::of(Transcript::open(&place, recorders)?);
                replay(plan, order, digest, player, progress)
            }
            Mode::Real { host, key } => {
                self.fly_here(plan, order, digest, (host, key.as_ref()), progress)
            }
        }
    }

    fn fly_here(
        &self,
        plan: &Plan,
        mut order: Order,
        digest: Digest,
        (host, key): (&Host, &dyn Signer),
        progress: &mut Progress,
    ) -> Result<Verdict, Refusal> {
        // Elsewhere it stays 1, so that a recording replays.
        let require = order.bound.as_ref().map(Policy::require);
        if require.is_some_and(|require| require.attempts_max.is_some()) {
            order.attempt = log::attempt(&order.label)?;
        }
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
                &match self.way {
                    Way::Live => live_recording(&self.root, &plan.name),
                    _ => recording(&self.root, &plan.name),
                },
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
        hand_out(flown, &order, key, (&out, &progress.seen))
    }
}

/// Writes what a flight came to into a directory, and into the log.
fn hand_out(
    flown: Flown,
    order: &Order,
    key: &dyn Signer,
    (out, seen): (&Path, &Seen),
) -> Result<Verdict, Refusal> {
    let claimed = flight::clear_out(out)?;
    let mut verdict = match flown {
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
    let unwritten = write_mutants(out, seen).err();
    verdict.notes.extend(unwritten.map(flight::unwritten));
    verdict.notes.extend(claimed.note());
    flight::write_verdict(out, &verdict)?;
    Ok(verdict)
}
