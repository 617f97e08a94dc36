//! `flights agent`: agents flown, ended, and their programs' accounts read.

mod check;
mod run;

pub(super) use run::unexpected;

use crate::show::Format;
use clap::Subcommand;
use flightproof_core::{Exit, Refusal};

/// `flights agent`.
#[derive(Subcommand)]
pub(super) enum AgentCommand {
    /// Have an agent work on a plan's task in a sealed session, certify its commit, and hand back what
    /// was refused, until it is certified or the attempts are used up.
    Run(run::RunArgs),
    /// Bring what killed runs left to its end: sessions, runs, holds. Nothing is started.
    Recover(run::RecoverArgs),
    /// Read the terminal result of a run: exactly one, successful, within its limits, accounted for.
    CheckResult(check::CheckArgs),
}

impl AgentCommand {
    pub(super) fn stage(&self) -> &'static str {
        match self {
            Self::CheckResult(_) => "account",
            Self::Run(_) | Self::Recover(_) => "plan",
        }
    }
}

/// Does what is asked and prints what came of it.
///
/// # Errors
/// What keeps a flight from starting, or a file from being read.
pub(super) fn run(command: &AgentCommand, format: Format) -> Result<Exit, Refusal> {
    match command {
        AgentCommand::Run(args) => run::run(args, format),
        AgentCommand::Recover(args) => run::recover(args, format),
        AgentCommand::CheckResult(args) => check::check(args, format),
    }
}
