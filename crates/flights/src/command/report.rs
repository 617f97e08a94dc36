//! `flights report`: one HTML file about flights that were replayed or flown.

use super::run::{self, Replays};
use super::{input, key};
use crate::plan::Plan;
use crate::report::{self, Failed, Flight, Report, Signature};
use crate::report::{MAX_MUTATION_REPORT, MUTATION_REPORT};
use crate::show::{self, Format};
use crate::timeline;
use crate::transcript::Transcript;
use crate::{FlightsCode, flight, state};
use clap::Args;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::dsse::{self, MAX_ENVELOPE_BYTES};
use flightproof_certifier::key::PublicKey;
use flightproof_core::{Digest, Exit, Refusal, Verdict, escape, parse_strict};
use std::path::{Path, PathBuf};

/// The schema name of what is printed about a report.
const REPORT_SCHEMA: &str = "flightproof/report/1";
/// How a flight was looked at that came from its recording.
const REPLAYED: &str = "replayed";
/// What is told of a certificate that lies beside a refused admission.
const BESIDE_REFUSED: &str =
    "a certificate was made before this: it says what was asked for, and not that the branch moved";
/// Largest verdict file in bytes: notes are bounded.
const MAX_VERDICT: usize = 1 << 20;

/// `flights report`.
#[derive(Args)]
pub(super) struct ReportArgs {
    /// Plans by file or name, which are replayed, and directories that `flights run --out` or
    /// `flights certify --out` wrote; default: every plan below the root.
    runs: Vec<PathBuf>,
    /// The HTML file. Replaced in one step if it exists.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: PathBuf,
    /// Directory that holds flights/.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Public key that certificates are held against (repeatable); default: the one in the state
    /// directory.
    #[arg(long = "key", value_name = "PUB")]
    keys: Vec<PathBuf>,
}

/// Writes the report. The exit status speaks of the replays: a flight that was flown had its own.
///
/// # Errors
/// What keeps the report from being written.
pub(super) fn run(args: &ReportArgs, format: Format) -> Result<Exit, Refusal> {
    input::parent(&args.output)?;
    let (flown, plans): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.runs.iter().partition(|run| is_flown(run));
    if let Some(other) = plans.iter().find(|plan| plan.is_dir()) {
        let why = match (other.extension(), other.file_stem()) {
            (Some(ending), Some(stem)) if ending == "flight" => format!(
                "a recording is replayed by the name of its plan, {}",
                escape(stem.as_encoded_bytes(), 200)
            ),
            _ => "there is no verdict.json in it, as a flight writes into its --out".to_owned(),
        };
        return Err(input::unreadable(other, why));
    }
    let mut flights = Vec::new();
    let mut exit = Exit::Passed;
    if flown.is_empty() || !plans.is_empty() {
        let named: Vec<PathBuf> = plans.into_iter().cloned().collect();
        let replays = Replays::of(&args.root, &named)?;
        let (replayed, worst) = replayed(&replays);
        flights.extend(replayed);
        exit = worst;
    }
    let keys = keys(&args.keys)?;
    for directory in flown {
        let worst = add_flown(directory, &keys, &mut flights);
        if exit == Exit::Passed {
            exit = worst;
        }
    }
    if exit == Exit::Passed && flights.iter().any(|f| f.failure.is_some()) {
        exit = Exit::Mismatch;
    }
    let own = std::env::current_exe().and_then(std::fs::read).ok();
    let report = Report {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: own.map(|bytes| Digest::of(&bytes)),
        flights,
    };
    let page = report::page(&report);
    input::write(&args.output, page.as_bytes(), 0o644)?;
    let told = format!("{}: {}", report.told(), input::shown(&args.output));
    match format {
        Format::Human => show::print(&format!("WRITTEN: {told}")),
        Format::Json => {
            let mut document = report.counts();
            document["schema"] = REPORT_SCHEMA.into();
            document["output"] = input::shown(&args.output).into();
            show::print(&document.to_string());
        }
    }
    Ok(exit)
}

fn is_flown(run: &Path) -> bool {
    run.join("verdict.json").is_file()
        || run.is_dir()
            && subfolders(run)
                .iter()
                .any(|f| f.join("verdict.json").is_file())
}

fn subfolders(run: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(run)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && path.file_name().is_some_and(|n| n != "earlier"))
        .collect();
    found.sort();
    found
}

fn replayed(replays: &Replays) -> (Vec<Flight>, Exit) {
    let landed = replays.fly();
    let exit = run::exit_of(landed.iter().map(|(result, _)| result));
    let flights = landed
        .into_iter()
        .zip(replays.plans())
        .map(|((result, seen), path)| {
            let plan = Plan::read(path).ok();
            let expected = plan.as_ref().map(|plan| {
                plan.expect
                    .code
                    .clone()
                    .unwrap_or_else(|| "held".to_owned())
            });
            let transcript =
                Transcript::open(&replays.recording(&result.name), replays.recorders()).ok();
            Flight {
                about: plan.map_or_else(String::new, |plan| plan.about),
                expected,
                how: REPLAYED,
                failure: result.failure.as_ref().map(|f| Failed {
                    code: f.code.to_owned(),
                    stage: f.stage.clone(),
                    detail: f.detail.clone(),
                    hint: f.hint.to_owned(),
                    again: f.again.clone(),
                }),
                stopped: result
                    .verdict
                    .code
                    .is_some()
                    .then(|| result.verdict.stage.clone()),
                digests: digests(seen.statement.as_deref(), transcript.as_ref()),
                steps: transcript
                    .as_ref()
                    .map(|t| timeline::steps(t).collect())
                    .unwrap_or_default(),
                name: result.name,
                verdict: Some(result.verdict),
                stages: result.stages,
                attestation: seen.attestation,
                changes: seen.changes,
                account: seen.account,
                statement: seen.statement,
                ..Flight::default()
            }
        })
        .collect();
    (flights, exit)
}

fn digests(
    statement: Option<&Statement>,
    transcript: Option<&Transcript>,
) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut note = |name: &str, value: String| out.push((name.to_owned(), value));
    if let Some(statement) = statement {
        let inputs = &statement.predicate.inputs;
        note("commit", inputs.request.head.to_string());
        note("baseline", inputs.request.baseline.to_string());
        for subject in &statement.subject {
            subject
                .digest
                .values()
                .for_each(|d| note("tree", d.clone()));
        }
        note("program", inputs.session_build.program.to_string());
        note("toolchain", inputs.image_digest.toolchain.to_string());
        note("runner", inputs.attestation.runner.to_string());
        note("witness commitment", inputs.witness.commitment.to_string());
        note(
            "observations (keyed)",
            inputs.session_execution.observations.to_string(),
        );
        note("mutants", inputs.mutation.population.to_string());
    }
    if let Some(transcript) = transcript {
        note("plan", transcript.header.plan.to_string());
        if let Some(predicate) = transcript.end.predicate {
            note("predicate", predicate.to_string());
        }
        note("recording", Digest::of(transcript.lines()).to_string());
        note("recorder's key", transcript.recorder.to_string());
    }
    out
}

fn keys(named: &[PathBuf]) -> Result<Vec<PublicKey>, Refusal> {
    if !named.is_empty() {
        return named.iter().map(|path| key::public(path)).collect();
    }
    let own = state::existing()?.map(|state| state.join("keys/flightproof.pem.pub"));
    let own = own.filter(|own| own.exists());
    own.iter().map(|own| key::public(own)).collect()
}

/// Flown flights stand beside the replay of the same name, or for themselves. One that cannot be read is
/// told of among the others; the first such decides the exit status.
fn add_flown(directory: &Path, keys: &[PublicKey], flights: &mut Vec<Flight>) -> Exit {
    let one = directory.join("verdict.json").is_file();
    let folders = if one {
        vec![directory.to_owned()]
    } else {
        subfolders(directory)
    };
    let mut exit = Exit::Passed;
    for folder in folders.iter().filter(|f| f.join("verdict.json").is_file()) {
        let name = folder
            .canonicalize()
            .ok()
            .and_then(|path| path.file_name().map(|n| n.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "flight".to_owned());
        let mut flown = Flight {
            name,
            how: "flown",
            about: "As it was written when it was flown.".to_owned(),
            ..Flight::default()
        };
        if let Err(refusal) = look_at(&mut flown, folder, keys) {
            flown.failure = Some(unread(&refusal, folder));
            if exit == Exit::Passed {
                exit = refusal.exit();
            }
        }
        let replayed = flights.iter_mut();
        let mut replayed = replayed.filter(|f| f.how == REPLAYED && f.beside.is_none());
        match (replayed.find(|f| f.name == flown.name), &flown) {
            (
                Some(replayed),
                Flight {
                    failure: None,
                    verdict: Some(verdict),
                    ..
                },
            ) => stand_beside(replayed, verdict.clone()),
            _ => {
                if flights.iter().any(|f| f.name == flown.name) {
                    flown.name = input::shown(folder);
                }
                flights.push(flown);
            }
        }
    }
    exit
}

/// Why what lies in a folder is not told in full.
fn unread(refusal: &Refusal, folder: &Path) -> Failed {
    Failed {
        code: refusal.code().to_owned(),
        stage: "report".to_owned(),
        detail: refusal.detail.clone(),
        hint: refusal.explanation.todo.to_owned(),
        again: format!("flights report {} -o report.html", input::shown(folder)),
    }
}

/// A flight that came to something else than its recording is one of the two, and nobody knows which.
fn stand_beside(replayed: &mut Flight, flown: Verdict) {
    let here = replayed.verdict.as_ref().and_then(|v| v.code.as_deref());
    if here != flown.code.as_deref() && replayed.failure.is_none() {
        let refusal = Refusal::from(FlightsCode::VerdictUnexpected.refuse(format!(
            "flown it came to {}, replayed to {}",
            flown.code.as_deref().unwrap_or("held"),
            here.unwrap_or("held")
        )));
        replayed.failure = Some(Failed {
            code: refusal.code().to_owned(),
            stage: flown.stage.clone(),
            detail: refusal.detail,
            hint: refusal.explanation.todo.to_owned(),
            again: format!("flights run {}", replayed.name),
        });
    }
    replayed.beside = Some(flown);
}

/// Reads a flight's verdict, what is told of its mutants, and its certificate if there is one. What was read
/// before something could not be read stays.
fn look_at(flight: &mut Flight, folder: &Path, keys: &[PublicKey]) -> Result<(), Refusal> {
    let file = folder.join("verdict.json");
    let verdict: Verdict = parse_strict(&input::read(&file, MAX_VERDICT)?, MAX_VERDICT)
        .map_err(|e| input::unreadable(&file, e))?;
    flight.stopped = verdict.code.is_some().then(|| verdict.stage.clone());
    flight.verdict = Some(verdict.clone());
    let file = folder.join(MUTATION_REPORT);
    if file.exists() {
        let written = report::read_mutants(&input::read(&file, MAX_MUTATION_REPORT)?);
        flight.written = Some(written.map_err(|e| input::unreadable(&file, e))?);
    }
    let file = folder.join("certificate.dsse.json");
    if !file.exists() {
        return match verdict.code {
            Some(_) => Ok(()),
            None => Err(input::unreadable(
                &file,
                "a verdict without its certificate",
            )),
        };
    }
    let envelope = input::read(&file, MAX_ENVELOPE_BYTES)?;
    flight.signature = Signature::Unchecked;
    if !keys.is_empty() {
        // What no trusted key signed is not read at all.
        let signed = dsse::open(&envelope, keys, 1)?;
        let statement = Statement::parse(signed.bytes())?;
        let id = Digest::of(signed.bytes()).to_string();
        // A verdict that was refused after the certificate was made once did not name it.
        let is_of_another = match &verdict.certificate {
            Some(named) => *named != id,
            None => verdict.code.is_none(),
        };
        if is_of_another {
            return Err(input::unreadable(&file, "a verdict about another one"));
        }
        let signers: Vec<String> = signed.signers().iter().map(ToString::to_string).collect();
        flight.signature = Signature::By(signers.join(", "));
        flight.digests = digests(Some(&statement), None);
        flight.digests.insert(0, ("certificate".to_owned(), id));
        flight.statement = Some(Box::new(statement));
    }
    let told = |v: &Verdict| v.notes.iter().any(|note| note == flight::NOT_LET_IN);
    if let Some(verdict) = flight
        .verdict
        .as_mut()
        .filter(|v| v.stage == "admit" && v.code.is_some() && !told(v))
    {
        verdict.notes.push(BESIDE_REFUSED.to_owned());
    }
    Ok(())
}
