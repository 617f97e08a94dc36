//! `flights cert except`.

use super::super::key::{self, SignerArgs};
use super::{envelope, input, public_keys};
use crate::show::{self, Format};
use crate::state;
use clap::Args;
use flightproof_certifier::dsse;
use flightproof_certifier::exception::{EXCUSABLE, Exception, SCHEMA};
use flightproof_certifier::judge::Gate;
use flightproof_core::{Code as _, Decision, Digest, Exit, Moment, Refusal, Verdict};
use std::path::PathBuf;

/// What the codes of the certifier begin with.
const HOUSE: &str = "certifier/";

/// `flights cert except`.
#[derive(Args)]
pub(in super::super) struct ExceptArgs {
    /// The certificate that is to be excused.
    certificate: PathBuf,
    /// A public key that signed it (repeatable).
    #[arg(long = "trust", value_name = "PUB", required = true)]
    trusted: Vec<PathBuf>,
    // Its help names all there are.
    #[arg(long, value_name = "CODE", help = codes())]
    code: String,
    /// The gate, for GATE_MISSING.
    #[arg(long, value_name = "GATE", value_parser = gate)]
    gate: Option<Gate>,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// For how many days, at most 92.
    #[arg(long, value_name = "N", default_value_t = 7)]
    days: u64,
    #[command(flatten)]
    signer: SignerArgs,
    /// The exception.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: PathBuf,
}

/// The codes that can be excused, without the name of their house.
fn codes() -> String {
    let codes = EXCUSABLE.map(|code| code.explanation().code);
    let codes = codes.map(|code| code.trim_start_matches(HOUSE));
    format!("The refusal that is excused: one of {}", codes.join(", "))
}

fn gate(name: &str) -> Result<Gate, String> {
    let names = Gate::ALL.map(Gate::name);
    let found = Gate::ALL.into_iter().find(|gate| gate.name() == name);
    found.ok_or_else(|| format!("a gate is one of {}", names.join(", ")))
}

/// Writes a signed exception.
///
/// # Errors
/// A certificate that none of the keys signed; what cannot be excused; a key that does not sign.
pub(super) fn run(args: &ExceptArgs, format: Format) -> Result<Exit, Refusal> {
    input::parent(&args.output)?;
    input::apart(&args.output, &[&args.certificate])?;
    let signed = dsse::open(
        &envelope(&args.certificate)?,
        &public_keys(&args.trusted)?,
        1,
    )?;
    let now = Moment::from_unix(state::unix_seconds());
    let code = args.code.trim_start_matches(HOUSE);
    let exception = Exception {
        schema: SCHEMA.to_owned(),
        certificate: Digest::of(signed.bytes()),
        code: match args.code.contains('/') && code == args.code {
            true => args.code.clone(),
            false => format!("{HOUSE}{code}"),
        },
        gate: args.gate,
        issued: now,
        expires: now.after_days(args.days),
        reason: args.reason.clone(),
    };
    let file = exception.sign(key::signer(&args.signer)?.as_ref())?;
    input::write(&args.output, &file, 0o644)?;
    let detail = format!(
        "{} excused until {}: {}",
        exception.code,
        exception.expires,
        input::shown(&args.output)
    );
    let verdict = Verdict {
        certificate: Some(exception.certificate.to_string()),
        ..Verdict::passed(Decision::Accepted, "except", detail)
    };
    show::verdict(&verdict, format);
    Ok(Exit::Passed)
}
