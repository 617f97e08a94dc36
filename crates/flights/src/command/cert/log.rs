//! `flights cert log`.

use super::{envelope, input, public_keys};
use crate::log::Log;
use crate::show::{self, Format};
use crate::{FlightsCode, state};
use clap::{Args, Subcommand};
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::dsse::{self, PAYLOAD_TYPE};
use flightproof_certifier::log::{Entry, Event};
use flightproof_core::{Decision, Digest, Exit, Moment, Refusal, Verdict};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Largest checkpoint in bytes.
const MAX_CHECKPOINT: usize = 16 * 1024;

/// `flights cert log`.
#[derive(Subcommand)]
pub(in super::super) enum LogCommand {
    /// Add a certificate that was made elsewhere.
    Append(AppendArgs),
    /// List what is in the log, with its key and head.
    Show,
    /// Check every entry and hash, and that the log continues an earlier checkpoint.
    Check {
        /// A checkpoint that was saved elsewhere.
        #[arg(long, value_name = "FILE")]
        checkpoint: Option<PathBuf>,
    },
    /// Write the proof that a certificate is in the log.
    Prove {
        /// The certificate.
        certificate: PathBuf,
        /// The proof (C2SP tlog-proof).
        #[arg(short, long, alias = "out", value_name = "FILE")]
        output: PathBuf,
    },
}

/// `flights cert log append`.
#[derive(Args)]
pub(in super::super) struct AppendArgs {
    /// The certificate.
    certificate: PathBuf,
    /// A public key that signed it (repeatable).
    #[arg(long = "key", value_name = "PUB", required = true)]
    keys: Vec<PathBuf>,
}

/// Does what is asked.
///
/// # Errors
/// What the log refuses.
pub(super) fn run(command: &LogCommand, format: Format) -> Result<Exit, Refusal> {
    match command {
        LogCommand::Append(args) => append(args, &mut Log::open()?, format)?,
        LogCommand::Show => list(&Log::look()?, format)?,
        LogCommand::Check { checkpoint } => check(checkpoint.as_ref(), &Log::look()?, format)?,
        LogCommand::Prove {
            certificate,
            output,
        } => prove(certificate, output, format)?,
    }
    Ok(Exit::Passed)
}

fn append(args: &AppendArgs, log: &mut Log, format: Format) -> Result<(), Refusal> {
    let signed = dsse::open(&envelope(&args.certificate)?, &public_keys(&args.keys)?, 1)?;
    let statement = Statement::parse(signed.bytes())?;
    let request = &statement.predicate.inputs.request;
    let id = Digest::of(signed.bytes());
    let event = Event::Certified {
        certificate: id,
        head: request.head,
    };
    let now = Moment::from_unix(state::unix_seconds());
    let head = request.head.to_string();
    let index = log.append(&Entry::new(now, event, &request.repository, &head))?;
    say(
        format!("entry {index} of {}", log.checkpoint().size),
        Some(id),
        format,
    );
    Ok(())
}

fn list(log: &Log, format: Format) -> Result<(), Refusal> {
    let entries = log.entries()?;
    let (head, key) = (log.checkpoint(), log.public().to_string());
    match format {
        Format::Json => show::print(
            &json!({
                "schema": "flightproof/log/1", "key": key, "size": head.size, "root": head.root,
                "entries": entries,
            })
            .to_string(),
        ),
        Format::Human => {
            show::print(&format!(
                "log key {key}\n{}, root {}",
                show::count(head.size, "entry"),
                head.root
            ));
            for (index, entry) in entries.iter().enumerate() {
                show::print(&line(index, entry));
            }
        }
    }
    Ok(())
}

fn line(index: usize, entry: &Entry) -> String {
    let (repository, candidate) = (&entry.repository, &entry.candidate);
    let what = match &entry.event {
        Event::Certified { certificate, .. } => format!("certified {certificate}"),
        Event::Admitted {
            certificate,
            branch,
            ..
        } => format!("admitted  {certificate} to {branch}"),
        Event::Uncertified { branch, .. } => {
            format!("admitted  {:<64} to {branch}", "uncertified")
        }
        Event::Refused { stage, code } => format!("refused   at {stage}: {code}"),
    };
    format!(
        "{index:>6}  {}  {what}  {candidate} of {repository}",
        entry.at
    )
}

fn check(checkpoint: Option<&PathBuf>, log: &Log, format: Format) -> Result<(), Refusal> {
    let entries = log.entries()?.len();
    let entries = show::count(entries, "entry");
    let mut detail = format!("{entries}, every one and every hash read");
    if let Some(path) = checkpoint {
        let earlier = log.continues(&input::read(path, MAX_CHECKPOINT)?)?;
        let earlier = show::count(earlier.size, "entry");
        detail.push_str(&format!("; continues the log of {earlier}"));
    }
    say(detail, None, format);
    Ok(())
}

fn prove(certificate: &Path, output: &Path, format: Format) -> Result<(), Refusal> {
    let log = Log::look_if_there()?;
    input::parent(output)?;
    input::apart(output, &[certificate])?;
    let payload = dsse::unchecked(&envelope(certificate)?, PAYLOAD_TYPE)?;
    let id = Digest::of(&payload);
    let unknown = || FlightsCode::NotInLog.refuse(format!("certificate {id}"));
    let log = log.ok_or_else(unknown)?;
    let proof = log.prove(id)?.ok_or_else(unknown)?;
    input::write(output, proof.text().as_bytes(), 0o644)?;
    let detail = format!(
        "entry {} of {}: {}",
        proof.index,
        log.checkpoint().size,
        input::shown(output)
    );
    say(detail, Some(id), format);
    Ok(())
}

fn say(detail: String, certificate: Option<Digest>, format: Format) {
    let verdict = Verdict {
        certificate: certificate.map(|id| id.to_string()),
        ..Verdict::passed(Decision::Accepted, "log", detail)
    };
    show::verdict(&verdict, format);
}
