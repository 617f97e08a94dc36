//! What is printed from the program itself: schemas, completions, manual pages.

use crate::{FlightsCode, near, show};
use clap::{Args, Subcommand};
use flightproof_core::{Exit, Refusal, escape};
use std::path::PathBuf;

/// The JSON schemas of what commands print, and of what people write for them, by name.
pub const SCHEMAS: &[(&str, &str)] = &[
    ("account", include_str!("../../schemas/account.json")),
    ("agent", include_str!("../../schemas/agent.json")),
    (
        "agent-recovery",
        include_str!("../../schemas/agent-recovery.json"),
    ),
    ("archive", include_str!("../../schemas/archive.json")),
    ("bundle", include_str!("../../schemas/bundle.json")),
    (
        "certificate-shown",
        include_str!("../../schemas/certificate-shown.json"),
    ),
    ("diff", include_str!("../../schemas/diff.json")),
    ("doctor", include_str!("../../schemas/doctor.json")),
    ("exchange", include_str!("../../schemas/exchange.json")),
    ("explain", include_str!("../../schemas/explain.json")),
    ("gate", include_str!("../../schemas/gate.json")),
    ("hold", include_str!("../../schemas/hold.json")),
    ("import", include_str!("../../schemas/import.json")),
    (
        "import-recovery",
        include_str!("../../schemas/import-recovery.json"),
    ),
    ("init", include_str!("../../schemas/init.json")),
    ("key", include_str!("../../schemas/key.json")),
    ("keys", include_str!("../../schemas/keys.json")),
    ("ledger", include_str!("../../schemas/ledger.json")),
    ("list", include_str!("../../schemas/list.json")),
    ("log", include_str!("../../schemas/log.json")),
    ("mutants", include_str!("../../schemas/mutants.json")),
    ("mutate", include_str!("../../schemas/mutate.json")),
    ("plan", include_str!("../../schemas/plan.json")),
    ("policy", include_str!("../../schemas/policy.json")),
    ("reap", include_str!("../../schemas/reap.json")),
    ("report", include_str!("../../schemas/report.json")),
    ("review", include_str!("../../schemas/review.json")),
    ("run", include_str!("../../schemas/run.json")),
    ("spend", include_str!("../../schemas/spend.json")),
    ("timeline", include_str!("../../schemas/timeline.json")),
    ("verdict", include_str!("../../schemas/verdict.json")),
    ("witness", include_str!("../../schemas/witness.json")),
    (
        "witness-check",
        include_str!("../../schemas/witness-check.json"),
    ),
];

/// `flights schema`.
#[derive(Args)]
pub(super) struct SchemaArgs {
    /// The document: the word between the slashes of its `schema` field. Without one, list all.
    name: Option<String>,
}

/// `flights paper`.
#[derive(Subcommand)]
pub(super) enum PaperCommand {
    /// Print what a shell completes command lines with.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command.
    Man {
        /// The directory, made if need be.
        #[arg(short, long, alias = "out", value_name = "DIR")]
        output: PathBuf,
    },
}

/// Prints a schema, or the names of all.
///
/// # Errors
/// `SCHEMA_UNKNOWN`.
pub(super) fn schema(args: &SchemaArgs) -> Result<Exit, Refusal> {
    match &args.name {
        None => SCHEMAS.iter().for_each(|(name, _)| show::print(name)),
        Some(name) => match SCHEMAS.iter().find(|(known, _)| known == name) {
            Some((_, text)) => show::print(text.trim_end()),
            None => {
                let near = near::question(name, SCHEMAS.iter().map(|(known, _)| known));
                let told = format!("{}{near}", escape(name, 80));
                return Err(FlightsCode::SchemaUnknown.refuse(told).into());
            }
        },
    }
    Ok(Exit::Passed)
}

/// Prints completions or writes manual pages.
///
/// # Errors
/// `OUTPUT_UNWRITABLE`.
pub(super) fn run(command: &PaperCommand) -> Result<Exit, Refusal> {
    let mut root = super::command_line();
    match command {
        PaperCommand::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut root, "flights", &mut text);
            show::print(String::from_utf8_lossy(&text).trim_end());
        }
        PaperCommand::Man { output } => {
            std::fs::create_dir_all(output)
                .and_then(|()| clap_mangen::generate_to(root, output))
                .map_err(|e| {
                    let detail = format!("{}: {e}", output.display());
                    Refusal::from(FlightsCode::OutputUnwritable.refuse(detail))
                })?;
        }
    }
    Ok(Exit::Passed)
}
