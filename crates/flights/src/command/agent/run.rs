//! `flights agent run` and `flights agent recover`.

use super::super::input;
use super::super::key::{self, SignerArgs};
use crate::agent::{self, AgentPlan, Asked, Recovered, Report, Sortie};
use crate::flight::{self, Backend, Host};
use crate::show::{self, Format, Progress, Speak};
use crate::{FlightsCode, state};
use clap::Args;
use flightproof_core::{Exit, Refusal, Verdict};
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
    /// What paths in the plan are relative to.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    #[command(flatten)]
    signer: SignerArgs,
    /// Directory for the certificate, the commit's bundle and the report.
    #[arg(long, value_name = "DIR")]
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
        key: key.as_ref(),
        out: &args.out,
    };
    let sortie = match Sortie::prepare(asked, &host) {
        Ok(sortie) => sortie,
        Err(refusal) => {
            let verdict = Verdict::refused("plan", &refusal);
            flight::write_verdict(&args.out, &verdict)?;
            show::verdict(&verdict, format);
            return expected(&plan, &refused_at_start(&refusal), refusal.exit(), format);
        }
    };
    let report = sortie.fly(&mut Progress::new(speak));
    flight::write_verdict(&args.out, &report.verdict)?;
    write_report(&report, args)?;
    print(&report, format);
    expected(&plan, &came_to(&report), report.exit, format)
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
    let Some(expect) = &plan.expect else {
        return Ok(exit);
    };
    let last = expect.last.as_deref();
    let same = expect.attempts == found.attempts
        && expect.code.as_deref() == found.code
        && (last.is_none() || last == found.last);
    if same {
        if format == Format::Human {
            show::print("  as the plan expects");
        }
        return Ok(Exit::Passed);
    }
    let said = |attempts: usize, code: Option<&str>, last: Option<&str>| {
        format!(
            "{} after {attempts} attempts, the last {}",
            code.unwrap_or("certified"),
            last.unwrap_or("unsaid")
        )
    };
    let unexpected = Refusal::from(FlightsCode::VerdictUnexpected.refuse(format!(
        "expected {}, got {}",
        said(expect.attempts, expect.code.as_deref(), last),
        said(found.attempts, found.code, found.last)
    )));
    match format {
        Format::Human => Err(unexpected),
        // What came of the flight is the one document; that it was not expected is said beside it.
        Format::Json => {
            show::aside(&unexpected);
            Ok(unexpected.exit())
        }
    }
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
