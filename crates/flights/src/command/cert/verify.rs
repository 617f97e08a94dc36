//! `flights cert verify`.

use super::{VerifyArgs, envelope, policy, public_keys};
use crate::command::repository::Repository;
use crate::flight::Host;
use crate::show::{self, Format};
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certificate::Admission;
use flightproof_certifier::exception::Excused;
use flightproof_certifier::key::KeyId;
use flightproof_certifier::verify::{ExpectedSubject, Verified, verify as verify_certificate};
use flightproof_core::{CommitId, Decision, Exit, Refusal, Verdict, escape};
use std::path::Path;

/// Verifies a certificate and prints what it says.
///
/// # Errors
/// A file that cannot be read. A certificate that does not hold is a verdict with its own exit
/// status.
pub(super) fn verify(args: &VerifyArgs, format: Format) -> Result<Exit, Refusal> {
    let keys = public_keys(&args.keys)?;
    let policy = policy(&args.policy)?;
    let certificate = envelope(&args.certificate)?;
    let mut beside = args.beside.read(&policy, &keys)?;
    beside.admission = args.admission.as_deref().map(envelope).transpose()?;
    let (asked, subject) = subject(args)?;
    let verified = verify_certificate(&certificate, &policy, &keys, &subject, &beside)?;
    let request = &verified.request;
    for (name, wanted, found) in [
        ("commit", args.head, request.head),
        ("baseline", args.baseline, request.baseline),
    ] {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            let detail =
                format!("the {name} differs: {wanted} is asked for, and it was made for {found}");
            return Err(CertifierCode::SubjectMismatch.refuse(detail).into());
        }
    }
    let mut accepted = accepted(&verified);
    let another = asked.filter(|asked| *asked != verified.head);
    accepted
        .notes
        .extend(another.map(|asked| another_commit(args, asked)));
    show::verdict(&accepted, format);
    Ok(Exit::Passed)
}

/// What it must be about, and of which commit that was read.
fn subject(args: &VerifyArgs) -> Result<(Option<CommitId>, ExpectedSubject), Refusal> {
    let path = Path::new(&args.subject);
    if path.is_dir() {
        return Ok((None, crate::source::snapshot(path)?));
    }
    let repository = Repository::of(args.repo.as_deref())?;
    let (commit, subject) = Host::subject(&repository.top, &args.subject)?;
    Ok((Some(commit), subject))
}

/// What somebody should know who asks about a commit that has the tree and is not the one certified.
fn another_commit(args: &VerifyArgs, asked: CommitId) -> String {
    format!(
        "{} is commit {asked}, another one with the same tree: what it is based on is not what was certified; \
         --head and --baseline hold it to that",
        escape(&args.subject, 80)
    )
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
    let narrowed = verified.narrowed.as_ref();
    let narrowed = narrowed.map_or_else(String::new, |paths| {
        format!("; narrowed to {} paths", paths.len())
    });
    let detail = format!(
        "commit {} of {}: {word}; passed {}; {}{narrowed}; signed by {}{}",
        verified.head,
        escape(&verified.repository, 80),
        gates.join(", "),
        waived(verified),
        short(&verified.signers),
        beside(verified)
    );
    Verdict {
        certificate: Some(verified.id.to_string()),
        notes: verified.excused.iter().map(excuse).collect(),
        ..Verdict::passed(decision, "verify", detail)
    }
}

/// What of the change nothing was shown to notice: survivors, and places that no mutant can judge.
fn waived(verified: &Verified) -> String {
    let places = verified.waived_places;
    let mutants = show::count(verified.waivers.len() - places, "waived mutant");
    match places {
        0 => mutants,
        n => format!(
            "{mutants}, {} that no mutant can judge",
            show::count(n, "waived place")
        ),
    }
}

/// Second statement and log, where there are any.
fn beside(verified: &Verified) -> String {
    let mut text = String::new();
    if let Some(let_in) = &verified.let_in {
        let branch = escape(&let_in.branch, 80);
        text.push_str(&format!(
            "; let into {branch} by {}",
            short(&let_in.signers)
        ));
    }
    if let Some(included) = &verified.included {
        text.push_str(&format!(
            "; entry {} of {} in the log, {}",
            included.index, included.size, included.at
        ));
    }
    text
}

fn excuse(excused: &Excused) -> String {
    let exception = &excused.exception;
    let gate = exception
        .gate
        .map_or_else(String::new, |gate| format!(" {}", gate.name()));
    format!(
        "excused {}{gate} until {} by {}: {}",
        exception.code,
        exception.expires,
        short(&excused.signers),
        escape(&exception.reason, 200)
    )
}

fn short(signers: &[KeyId]) -> String {
    let short = signers.iter().map(|id| id.to_string()[..16].to_owned());
    short.collect::<Vec<_>>().join(", ")
}
