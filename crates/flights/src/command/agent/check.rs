//! `flights agent check-result`: what a run of an agent's program says it cost.

use super::super::input;
use crate::show::{self, Format};
use clap::Args;
use flightproof_agent::{Accounting, HoldEffect, Limits, Metering, Profile, Spend, check_result};
use flightproof_core::{Decision, Exit, Refusal, Verdict};
use serde::Serialize;
use std::path::PathBuf;

/// Most bytes of a result, 16 MiB: what a program may print before it is cut off, and one more.
const MAX_RESULT_BYTES: usize = 16 << 20;

/// `flights agent check-result`.
#[derive(Args)]
pub(in super::super) struct CheckArgs {
    /// Everything the program printed.
    file: PathBuf,
    /// Whose result it is: claude, codex or gemini.
    #[arg(long, value_name = "NAME")]
    profile: String,
    /// The budget the program was told, in US dollars, such as 2.50.
    #[arg(long, value_name = "X")]
    max_budget_usd: String,
    /// Most turns the program was told.
    #[arg(long, value_name = "N")]
    max_turns: String,
    /// The program reports no cost: settle the whole hold.
    #[arg(long)]
    unmetered: bool,
}

/// Reads a terminal result and prints its accounting. A refusal says what becomes of the hold.
///
/// # Errors
/// A profile, limits or a file that cannot be used. A result that breaks a rule is a verdict.
pub(super) fn check(args: &CheckArgs, format: Format) -> Result<Exit, Refusal> {
    let profile = Profile::built_in(&args.profile)?;
    let metering = match args.unmetered {
        true => Metering::Unmetered,
        false => Metering::Metered,
    };
    let limits = Limits::parse(&args.max_budget_usd, &args.max_turns, metering)?;
    let bytes = input::read(&args.file, MAX_RESULT_BYTES)?;
    match check_result(&bytes, &profile, &limits) {
        Ok(accounting) => {
            Report::new(accounting).print(format);
            Ok(Exit::Passed)
        }
        Err(error) => {
            let refusal = Refusal::from(error.refused).with_notes([effect(&error.hold)]);
            show::refusal("account", &refusal, format);
            Ok(refusal.exit())
        }
    }
}

/// What a hold for this run would come to. None is touched here.
fn effect(hold: &HoldEffect) -> String {
    match hold {
        HoldEffect::Keep => "a hold for this run would be kept".to_owned(),
        HoldEffect::Settle(amount) => format!("a hold for this run would settle {amount} USD"),
        HoldEffect::Release => "a hold for this run would be given back".to_owned(),
    }
}

/// A verdict with what was accounted for.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    verdict: Verdict,
    accounting: Accounting,
}

impl Report {
    fn new(accounting: Accounting) -> Self {
        let spent = match accounting.spend {
            Spend::Estimated { cost } => format!("{cost} USD (estimated)"),
            Spend::Unmetered { hold } => format!("unmetered: the whole hold of {hold} USD"),
        };
        let turns = accounting.turns.map_or_else(
            || "turns not reported".to_owned(),
            |turns| format!("{turns} turns"),
        );
        let detail = format!("{spent}, {turns}");
        Self {
            verdict: Verdict::passed(Decision::Accepted, "account", detail),
            accounting,
        }
    }

    fn print(&self, format: Format) {
        match format {
            Format::Human => show::verdict(&self.verdict, format),
            Format::Json => show::print(&serde_json::to_string(self).unwrap_or_default()),
        }
    }
}
