//! `flights agent run` and `flights agent recover`.

use super::super::input;
use super::super::key::{self, SignerArgs};
use crate::agent::{self, AgentPlan, Asked, Recovered, Report, Sortie};
use crate::command::run::{recording, settle_recorder};
use crate::flight::{self, Backend, Host};
use crate::show::{self, Format, Progress, Speak};
use crate::transcript::{Recorder, Tape};
use crate::{FlightsCode, state};
use clap::Args;
use flightproof_certifier::key::PublicKey;
use flightproof_core::{Exit, Refusal, Verdict};
use flightproof_ledger::{HoldState, Ledger};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The schema name of what `recover` prints.
const RECOVERY_SCHEMA: &str = "flightproof/agent-recovery/1";

/// `flights agent run`.
#[derive(Args)]
pub(in super::super) struct RunArgs {
    /// The plan.
    plan: PathBuf,
    /// How many attempts there may be, 1 to 16; default: the plan's.
    #[arg(long, value_name = "N")]
    attempts: Option<std::num::NonZeroU32>,
    /// Move this branch from baseline to the certified commit.
    #[arg(long, value_name = "BRANCH")]
    admit: Option<String>,
    /// A host of the plan's endpoints, with its port if it names one, that may be given the provider's
    /// key although it is not the provider's own (repeatable).
    #[arg(long, value_name = "HOST")]
    key_for: Vec<String>,
    /// Write a recording, which `flights run` replays: flights/recordings/agent-NAME.flight below the root.
    /// For plans without endpoints.
    #[arg(long, conflicts_with_all = ["admit", "attempts"])]
    record: bool,
    /// What paths in the plan are relative to.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    #[command(flatten)]
    signer: SignerArgs,
    /// Directory for the certificate, the commit's bundle and the report.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR")]
    out: PathBuf,
    /// Toolchain directory to bind into sessions; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

/// `flights agent recover`.
#[derive(Args)]
pub(in super::super) struct RecoverArgs {
    /// Toolchain directory, as for a run; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

/// Flies an agent's plan and prints what came of every attempt.
///
/// # Errors
/// What keeps the flight from starting, before money is held.
pub(super) fn run(args: &RunArgs, format: Format) -> Result<Exit, Refusal> {
    let speak = match format {
        Format::Human => Speak::Stages,
        Format::Json => Speak::Nothing,
    };
    let root = args
        .root
        .canonicalize()
        .map_err(|e| input::unreadable(&args.root, e))?;
    let plan = AgentPlan::read(&args.plan, &root)?;
    let key = key::signer(&args.signer)?;
    let _out = flight::clear_out(&args.out)?;
    let host = Host::prepare(here(args.toolchain.as_deref()))?;
    show::recovered(&host.recover()?);
    let recovered = agent::recover(&host)?;
    show::recovered(&recovered.iter().map(Recovered::line).collect::<Vec<_>>());
    let asked = Asked {
        plan: &plan,
        root: &root,
        attempts: args.attempts,
        admit: args.admit.as_deref(),
        key_for: &args.key_for,
        key: Some(key.as_ref()),
        out: &args.out,
    };
    let tape = match args.record {
        true => Tape::record(recorder(&args.plan, &plan, &root, &key.public_key())?),
        false => Tape::Off,
    };
    let sortie = match Sortie::prepare(asked, Some(&host), tape) {
        Ok(sortie) => sortie,
        Err(refusal) => {
            let verdict = Verdict::refused("plan", &refusal);
            flight::write_verdict(&args.out, &verdict)?;
            show::verdict(&verdict, format);
            return expected(&plan, &refused_at_start(&refusal), refusal.exit(), format);
        }
    };
    let (mut report, _) = host.leaving_nothing(|| sortie.fly(&mut Progress::new(speak)))?;
    // What it came to stands: a branch may have moved.
    let unwritten = flight::write_verdict(&args.out, &report.verdict).err();
    report
        .verdict
        .notes
        .extend(unwritten.map(flight::unwritten));
    let unwritten = write_report(&report, args).err();
    report
        .verdict
        .notes
        .extend(unwritten.map(flight::unwritten));
    print(&report, format);
    if let Some(left) = open_holds(&host.ledger()?, report.name.as_str())? {
        // What came of the flight stands above; that its money is still open is said beside it.
        show::aside(&left);
        return Ok(match report.exit {
            Exit::Passed => left.exit(),
            failed => failed,
        });
    }
    expected(&plan, &came_to(&report), report.exit, format)
}

/// Starts the recording of a plan.
fn recorder(
    file: &Path,
    plan: &AgentPlan,
    root: &Path,
    key: &PublicKey,
) -> Result<Recorder, Refusal> {
    if !plan.agent.endpoints.is_empty() {
        let what = "a way to a provider cannot be recorded: record a plan without endpoints";
        return Err(FlightsCode::UsageInvalid.refuse(what).into());
    }
    settle_recorder(root, key)?;
    let name = agent::recorded_as(&plan.name);
    let place = recording(root, &name);
    Recorder::start(&place, &name, agent::binding(file, plan, root)?)
}

/// Holds of a flight that ended which are neither settled, nor released, nor kept as unknown.
fn open_holds(ledger: &Ledger, parent: &str) -> Result<Option<Refusal>, Refusal> {
    let live = ledger.spending(state::unix_seconds())?.live;
    let of_flight = live.iter().filter(|hold| {
        let (parent_of, open) = (&hold.parent, hold.state != HoldState::Unknown);
        open && parent_of
            .as_ref()
            .is_some_and(|(name, _)| name.as_str() == parent)
    });
    let named: Vec<String> = of_flight
        .map(|hold| format!("hold {}, {}", hold.run, hold.state.word()))
        .collect();
    let refuse =
        || FlightsCode::FlightLeaked.refuse(format!("{} left: {}", named.len(), named.join(", ")));
    Ok((!named.is_empty()).then(|| refuse().into()))
}

/// Agents work on this machine, and so does their judge.
fn here(toolchain: Option<&Path>) -> Backend<'_> {
    Backend::Local { toolchain }
}

/// Attempts made, the code of the end, the code of the last attempt.
struct CameTo<'a> {
    attempts: usize,
    code: Option<&'a str>,
    last: Option<&'a str>,
}

fn refused_at_start(refusal: &Refusal) -> CameTo<'static> {
    CameTo {
        attempts: 0,
        code: Some(refusal.code()),
        last: None,
    }
}

/// Why a flight did not come to what its plan expects, if it expects something.
pub(in super::super) fn unexpected(plan: &AgentPlan, report: &Report) -> Option<Refusal> {
    differs(plan, &came_to(report))
}

fn came_to(report: &Report) -> CameTo<'_> {
    CameTo {
        attempts: report.attempts.len(),
        code: report.verdict.code.as_deref(),
        last: report.attempts.last().and_then(|attempt| attempt.code),
    }
}

/// A plan that says what must come of it passes exactly if that came of it.
fn expected(
    plan: &AgentPlan,
    found: &CameTo<'_>,
    exit: Exit,
    format: Format,
) -> Result<Exit, Refusal> {
    if plan.expect.is_none() {
        return Ok(exit);
    }
    let Some(unexpected) = differs(plan, found) else {
        if format == Format::Human {
            show::print("  as the plan expects");
        }
        return Ok(Exit::Passed);
    };
    match format {
        Format::Human => Err(unexpected),
        // What came of the flight is the one document; that it was not expected is said beside it.
        Format::Json => {
            show::aside(&unexpected);
            Ok(unexpected.exit())
        }
    }
}

fn differs(plan: &AgentPlan, found: &CameTo<'_>) -> Option<Refusal> {
    let expect = plan.expect.as_ref()?;
    let last = expect.last.as_deref();
    let same = expect.attempts == found.attempts
        && expect.code.as_deref() == found.code
        && (last.is_none() || last == found.last);
    if same {
        return None;
    }
    let said = |attempts: usize, code: Option<&str>, last: Option<&str>| {
        format!(
            "{} after {}, the last {}",
            code.unwrap_or("certified"),
            show::count(attempts, "attempt"),
            last.unwrap_or("unsaid")
        )
    };
    let told = format!(
        "expected {}, got {}",
        said(expect.attempts, expect.code.as_deref(), last),
        said(found.attempts, found.code, found.last)
    );
    Some(FlightsCode::VerdictUnexpected.refuse(told).into())
}

fn print(report: &Report, format: Format) {
    match format {
        Format::Json => show::print(&serde_json::to_string(report).unwrap_or_default()),
        Format::Human => {
            for attempt in &report.attempts {
                show::print(&attempt.line());
            }
            show::verdict(&report.verdict, format);
        }
    }
}

fn write_report(report: &Report, args: &RunArgs) -> Result<(), Refusal> {
    let mut bytes = serde_json::to_vec(report).unwrap_or_default();
    bytes.push(b'\n');
    state::write_file(&args.out.join("agent.json"), &bytes, 0o644)
}

/// Brings what dead drivers left to its end. Nothing is started.
///
/// # Errors
/// The session's, the ledger's, and those of the state directory.
pub(super) fn recover(args: &RecoverArgs, format: Format) -> Result<Exit, Refusal> {
    let host = Host::prepare(here(args.toolchain.as_deref()))?;
    let host_lines = host.recover()?;
    let runs = agent::recover(&host)?;
    if format == Format::Json {
        let document = json!({"schema": RECOVERY_SCHEMA, "host": host_lines, "runs": runs});
        show::print(&document.to_string());
        return Ok(Exit::Passed);
    }
    let lines = host_lines
        .into_iter()
        .chain(runs.iter().map(Recovered::line));
    let lines: Vec<String> = lines.collect();
    match lines.is_empty() {
        true => show::print("nothing was left"),
        false => lines.iter().for_each(|line| show::print(line)),
    }
    Ok(Exit::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_core::{Digest, MicroUsd};
    use flightproof_ledger::{Cap, HoldSize, Reserve, Scope};

    #[test]
    fn a_hold_that_a_flight_leaves_open_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&dir.path().join("ledger")).unwrap();
        ledger
            .state_cap(Scope::Total, Cap::usd(MicroUsd::MAX), 1)
            .unwrap();
        let one = MicroUsd::from_micros(1_000_000).unwrap();
        let (run, parent) = ("run-1".parse().unwrap(), "loop-1".parse().unwrap());
        let reserve = Reserve {
            run,
            request: Digest::of(b"request"),
            size: HoldSize::for_limit(one, MicroUsd::ZERO, 1).unwrap(),
            parent: Some((parent, MicroUsd::MAX)),
        };
        ledger.reserve(&reserve, 1).unwrap();
        let found = |ledger: &Ledger| {
            let left = open_holds(ledger, "loop-1").unwrap().unwrap();
            assert_eq!(left.code(), "flights/FLIGHT_LEAKED");
            left.detail
        };
        assert_eq!(found(&ledger), "1 left: hold run-1, reserved");
        ledger.start_run(&reserve.run, 2).unwrap();
        assert_eq!(found(&ledger), "1 left: hold run-1, running");
        assert_eq!(
            open_holds(&ledger, "loop-2").unwrap(),
            None,
            "another flight's"
        );
        // What nobody knows stays until somebody resolves it: that is no leak.
        ledger.lose_run(&reserve.run, 3).unwrap();
        assert_eq!(open_holds(&ledger, "loop-1").unwrap(), None);
    }
}
