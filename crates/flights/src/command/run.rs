//! `flights run`: flies plans, for real or from their recordings, and holds each against what its
//! plan expects.

use super::{RunArgs, key};
use crate::flight::{self, Backend, Flown, Host, Order};
use crate::plan::Plan;
use crate::show::{self, Format, Progress, Speak, seconds};
use crate::source;
use crate::transcript::{Player, Recorder, Tape};
use crate::{FlightsCode, registry};
use flightproof_certifier::key::{PublicKey, SecretKey};
use flightproof_core::{Decision, Digest, Exit, Fault, Refusal, Verdict};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What became of one plan.
#[derive(Serialize)]
struct PlanResult {
    name: String,
    verdict: Verdict,
    /// Absent when the flight ended as its plan expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    milliseconds: u64,
}

#[derive(Serialize)]
struct Failure {
    code: &'static str,
    detail: String,
    hint: &'static str,
    #[serde(skip)]
    exit: Exit,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.code(),
            exit: refusal.exit(),
            hint: refusal.explanation.todo,
            detail: refusal.detail,
        }
    }
}

/// Flies every named plan, or all of them.
///
/// # Errors
/// What keeps the run from starting; a flight that fails is in the table, not an error here.
pub(super) fn run(args: &RunArgs, format: Format) -> Result<Exit, Refusal> {
    let root = args.root.canonicalize().map_err(|e| {
        Refusal::from(FlightsCode::NothingToRun.refuse(format!("{}: {e}", args.root.display())))
    })?;
    let plans = plans(args, &root)?;
    let crew = Crew::gather(args, root)?;
    let results: Vec<PlanResult> = plans
        .iter()
        .map(|path| crew.fly(path, args, format))
        .collect();
    let again = if args.live { "--live" } else { "--local" };
    print_results(&results, format, again);
    Ok(exit_of(&results))
}

fn plans(args: &RunArgs, root: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let folder = root.join("flights");
    if !args.plans.is_empty() {
        return Ok(args
            .plans
            .iter()
            .map(|named| resolve(named, &folder))
            .collect());
    }
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
    mode: Mode,
}

enum Mode {
    Replay {
        recorders: Vec<PublicKey>,
    },
    Real {
        host: Box<Host>,
        key: Box<SecretKey>,
    },
}

impl Crew {
    fn gather(args: &RunArgs, root: PathBuf) -> Result<Self, Refusal> {
        let backend = match (args.local, args.live) {
            (true, _) => Some(Backend::Local {
                toolchain: args.toolchain.as_deref(),
            }),
            (_, true) => Some(Backend::Engine { image: args.image }),
            (false, false) => None,
        };
        let mode = if let Some(backend) = backend {
            let key = Box::new(key::secret(args.key.as_deref())?);
            let host = Box::new(Host::prepare(backend)?);
            show::recovered(&host.recover()?);
            Mode::Real { host, key }
        } else {
            Mode::Replay {
                recorders: recorder_keys(&root)?,
            }
        };
        Ok(Self { root, mode })
    }

    fn fly(&self, path: &Path, args: &RunArgs, format: Format) -> PlanResult {
        let started = Instant::now();
        let name = path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let speak = match (&self.mode, format) {
            (Mode::Real { .. }, Format::Human) => Speak::Stages,
            _ => Speak::Nothing,
        };
        if speak == Speak::Stages {
            eprintln!("{name}");
        }
        let mut progress = Progress::new(speak);
        let outcome = Plan::read(path).map_err(Refusal::from).and_then(|plan| {
            let flown = self.fly_plan(&plan, args, &mut progress)?;
            Ok((plan, flown))
        });
        let (verdict, failure) = match outcome {
            Ok((plan, verdict)) => {
                let failure = unexpected(&plan, &verdict).map(Failure::from);
                (verdict, failure)
            }
            Err(refusal) => (
                Verdict::refused(progress.stage(), &refusal),
                Some(refusal.into()),
            ),
        };
        let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        PlanResult {
            name,
            verdict,
            failure,
            milliseconds,
        }
    }

    fn fly_plan(
        &self,
        plan: &Plan,
        args: &RunArgs,
        progress: &mut Progress,
    ) -> Result<Verdict, Refusal> {
        let order = Order::from_plan(plan, &self.root)?;
        let digest = order.digest(plan)?;
        match &self.mode {
            Mode::Replay { recorders } => self.replay(plan, order, digest, recorders, progress),
            Mode::Real { host, key } => {
                self.fly_here(plan, order, digest, (host, key), args, progress)
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
        let player = opened(&recording(&self.root, &plan.name), recorders)?;
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
        (host, key): (&Host, &SecretKey),
        args: &RunArgs,
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
            .map(|name| std::env::temp_dir().join(name));
        if let Some(canary) = canary.as_ref().filter(|c| c.exists()) {
            return Err(FlightsCode::CanaryFound
                .refuse(format!("{} existed before the flight", canary.display()))
                .into());
        }
        let mut tape = match args.record {
            true => Tape::record(Recorder::start(
                &recording(&self.root, &plan.name),
                &plan.name,
                digest,
            )?),
            false => Tape::Off,
        };
        let before = host.inventory()?;
        let flown = flight::fly(&order, Some(host), &mut tape, progress);
        host.inventory()?.nothing_new_since(&before)?;
        tape.finish(flown.word(), flown.statement().map(Digest::of), Some(key))?;
        if let Some(canary) = canary.filter(|c| c.exists()) {
            return Err(FlightsCode::CanaryFound.refuse(canary.display()).into());
        }
        let out = args.out.as_ref().map(|out| out.join(&plan.name));
        self.settle(flown, key, out.as_deref())
    }

    fn settle(
        &self,
        flown: Flown,
        key: &SecretKey,
        out: Option<&Path>,
    ) -> Result<Verdict, Refusal> {
        if let Some(out) = out {
            flight::clear_out(out)?;
        }
        let mut id = None;
        if let Flown::Certified(proven) = &flown {
            let certificate = flight::certify(proven, key)?;
            id = Some(certificate.id.to_string());
            if let Some(out) = out {
                flight::write_certificate(out, &certificate, proven)?;
            }
        }
        let verdict = flown.verdict(id);
        if let Some(out) = out {
            flight::write_verdict(out, &verdict)?;
        }
        Ok(verdict)
    }
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

fn recording(root: &Path, name: &str) -> PathBuf {
    root.join("flights/recordings")
        .join(format!("{name}.flight"))
}

/// The keys of those who record: every public key beside the recordings.
fn recorder_keys(root: &Path) -> Result<Vec<PublicKey>, Refusal> {
    let folder = root.join("flights/recordings");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "pub"))
        .collect();
    paths.sort();
    if paths.is_empty() {
        let path = folder.join("recorder.pub");
        return Err(FlightsCode::TranscriptMissing
            .refuse(format!("{}: no recorder's key", path.display()))
            .into());
    }
    paths.iter().map(|path| key::public(path)).collect()
}

/// A recording that one of the recorders signed.
fn opened(path: &Path, recorders: &[PublicKey]) -> Result<Player, Refusal> {
    let mut tried = recorders.iter().map(|key| Player::open(path, key));
    match tried.next() {
        Some(Err(first)) => Ok(tried.find_map(Result::ok).ok_or(first)?),
        Some(Ok(player)) => Ok(player),
        None => Err(FlightsCode::TranscriptMissing.refuse(path.display()).into()),
    }
}

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

fn print_results(results: &[PlanResult], format: Format, again: &str) {
    let failed = results.iter().filter(|r| r.failure.is_some()).count();
    if format == Format::Json {
        let report = serde_json::json!({
            "schema": "flightproof/run/1", "passed": results.len() - failed, "failed": failed, "flights": results,
        });
        return show::print(&report.to_string());
    }
    let width = results
        .iter()
        .map(|r| r.name.len())
        .max()
        .unwrap_or(0)
        .max(6);
    show::print(&format!(
        "{:<4} {:<width$} {:>8}  {:<44} certificate",
        "", "flight", "time", "verdict"
    ));
    for result in results {
        show::print(&row(result, width, again));
    }
    show::print(&format!(
        "{} passed, {failed} failed",
        results.len() - failed
    ));
}

fn row(result: &PlanResult, width: usize, again: &str) -> String {
    let mark = if result.failure.is_none() {
        "ok"
    } else {
        "FAIL"
    };
    let verdict = match &result.verdict.code {
        Some(code) => format!("refused {code}"),
        None => "held".to_owned(),
    };
    let certificate = result
        .verdict
        .certificate
        .as_deref()
        .map_or("-", |c| &c[..16]);
    let time = seconds(Duration::from_millis(result.milliseconds));
    let mut text = format!(
        "{mark:<4} {:<width$} {time:>8}  {verdict:<44} {certificate}",
        result.name
    );
    if let Some(failure) = &result.failure {
        text.push_str(&format!(
            "\n     | {}: {}\n     | hint: {}",
            failure.code, failure.detail, failure.hint
        ));
        text.push_str(&format!(
            "\n     | again: flights run {again} {}",
            result.name
        ));
    }
    text
}

/// The exit status of a run: that of its worst failure, in the order a reader must hear of them.
fn exit_of(results: &[PlanResult]) -> Exit {
    let exits: Vec<Exit> = results
        .iter()
        .filter_map(|r| r.failure.as_ref().map(|f| f.exit))
        .collect();
    let worst = [Exit::OurBug, Exit::Mismatch, Exit::Refused];
    worst
        .into_iter()
        .find(|exit| exits.contains(exit))
        .or_else(|| exits.first().copied())
        .unwrap_or(Exit::Passed)
}
