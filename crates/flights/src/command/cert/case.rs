//! `flights cert open-case` and `check-case`.

use super::{envelope, input, public_keys};
use crate::FlightsCode;
use crate::flight::{Opening, Order};
use crate::show::{self, Format};
use clap::Args;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::dsse;
use flightproof_certifier::witness::{CaseOpening, MAX_OPENING_BYTES};
use flightproof_core::{Decision, Digest, Exit, Refusal, Verdict, escape};
use std::path::PathBuf;

/// `flights cert open-case`.
#[derive(Args)]
pub(in super::super) struct OpenArgs {
    /// The witness file that judged.
    #[arg(long, value_name = "FILE")]
    witness: PathBuf,
    /// `opening.json` of the flight.
    #[arg(long, value_name = "FILE")]
    opening: PathBuf,
    /// The case's id.
    #[arg(long, value_name = "ID")]
    case: String,
    /// The opened case.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: PathBuf,
}

/// `flights cert check-case`.
#[derive(Args)]
pub(in super::super) struct CheckArgs {
    /// The certificate.
    certificate: PathBuf,
    /// The opened case.
    case: PathBuf,
    /// A public key that signed the certificate (repeatable).
    #[arg(long = "key", value_name = "PUB", required = true)]
    keys: Vec<PathBuf>,
}

/// Writes one case with what leads from it to the commitment.
///
/// # Errors
/// Files that cannot be read; `WITNESS_UNREADABLE` for a case that the witness does not have.
pub(super) fn open(args: &OpenArgs, format: Format) -> Result<Exit, Refusal> {
    input::parent(&args.output)?;
    input::apart(&args.output, &[&args.witness, &args.opening])?;
    let opening = Opening::read(&args.opening)?;
    let witness = Order::new("case", ("", ""), &args.witness)?.witness()?;
    let mut cases = witness.cases().iter();
    let index = cases.position(|case| case.id == args.case).ok_or_else(|| {
        FlightsCode::WitnessUnreadable.refuse(format!("no case \"{}\"", escape(&args.case, 80)))
    })?;
    let opened = witness.open_case(&opening.secrets.salt, index)?;
    input::write(&args.output, &opened.bytes()?, 0o600)?;
    let verdict = Verdict {
        certificate: Some(opening.certificate.to_string()),
        ..Verdict::passed(
            Decision::Accepted,
            "open-case",
            format!(
                "case {} of {}, not yet held against the certificate (cert check-case): {}",
                index + 1,
                witness.cases().len(),
                input::shown(&args.output)
            ),
        )
    };
    show::verdict(&verdict, format);
    Ok(Exit::Passed)
}

/// Checks an opened case against a certificate.
///
/// # Errors
/// A certificate that none of the keys signed; `CASE_MISMATCH`.
pub(super) fn check(args: &CheckArgs, format: Format) -> Result<Exit, Refusal> {
    let signed = dsse::open(&envelope(&args.certificate)?, &public_keys(&args.keys)?, 1)?;
    let statement = Statement::parse(signed.bytes())?;
    let opened = CaseOpening::parse(&input::read(&args.case, MAX_OPENING_BYTES)?)?;
    opened.check(statement.predicate.inputs.witness.commitment)?;
    let detail = format!(
        "case {} of {} judged the commit",
        opened.index + 1,
        statement.predicate.inputs.witness.cases
    );
    let verdict = Verdict {
        certificate: Some(Digest::of(signed.bytes()).to_string()),
        notes: vec![opened.case.to_string()],
        ..Verdict::passed(Decision::Accepted, "check-case", detail)
    };
    show::verdict(&verdict, format);
    Ok(Exit::Passed)
}
