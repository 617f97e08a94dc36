//! `flights cert verify`.

use super::{VerifyArgs, input, key};
use crate::flight::Host;
use crate::show::{self, Format};
use flightproof_certifier::certificate::Admission;
use flightproof_certifier::dsse::MAX_ENVELOPE_BYTES;
use flightproof_certifier::policy::{MAX_POLICY_BYTES, Policy};
use flightproof_certifier::verify::{ExpectedSubject, Verified, verify as verify_certificate};
use flightproof_core::{Decision, Exit, Refusal, Verdict, escape};
use std::path::Path;

/// Verifies a certificate and prints what it says.
///
/// # Errors
/// A file that cannot be read. A certificate that does not hold is a verdict with its own exit
/// status.
pub(super) fn verify(args: &VerifyArgs, format: Format) -> Result<Exit, Refusal> {
    let keys = args
        .keys
        .iter()
        .map(|path| key::public(path))
        .collect::<Result<Vec<_>, _>>()?;
    let policy = Policy::parse(&input::read(&args.policy, MAX_POLICY_BYTES)?)?;
    let envelope = input::read(&args.certificate, MAX_ENVELOPE_BYTES)?;
    let subject = subject(args)?;
    match verify_certificate(&envelope, &policy, &keys, &subject) {
        Ok(verified) => {
            show::verdict(&accepted(&verified), format);
            Ok(Exit::Passed)
        }
        Err(refused) => {
            let refusal = Refusal::from(refused);
            show::refusal("verify", &refusal, format);
            Ok(refusal.exit())
        }
    }
}

fn subject(args: &VerifyArgs) -> Result<ExpectedSubject, Refusal> {
    let path = Path::new(&args.subject);
    if path.is_dir() {
        return crate::source::snapshot(path);
    }
    Host::subject(&args.repo, &args.subject)
}

fn accepted(verified: &Verified) -> Verdict {
    let (word, decision) = match &verified.admission {
        Admission::Held {} => ("held".to_owned(), Decision::Accepted),
        Admission::Admitted { branch } => (
            format!("admitted to {}", escape(branch, 80)),
            Decision::Accepted,
        ),
    };
    let gates: Vec<&str> = verified.gates.iter().map(|gate| gate.name()).collect();
    let detail = format!(
        "commit {} of {}: {word}; passed {}; {} waived mutants{}; signed by {}",
        verified.head,
        escape(&verified.repository, 80),
        gates.join(", "),
        verified.waivers.len(),
        verified
            .narrowed
            .as_ref()
            .map_or_else(String::new, |paths| {
                format!("; narrowed to {} paths", paths.len())
            }),
        verified
            .signers
            .iter()
            .map(|id| id.to_string()[..16].to_owned())
            .collect::<Vec<_>>()
            .join(", ")
    );
    Verdict {
        certificate: Some(verified.id.to_string()),
        ..Verdict::passed(decision, "verify", detail)
    }
}
