//! `flights certify`: one commit, certified, and admitted if asked for.

use super::{Backend, CertifyArgs, key};
use crate::flight::{self, Flown, Host, Order, Proven};
use crate::show::{self, Format, Progress, Speak};
use crate::source::Laid;
use crate::state;
use crate::transcript::Tape;
use flightproof_core::{Decision, Exit, Refusal, RelPath, Verdict};
use std::path::Path;

/// Certifies and prints the verdict.
///
/// # Errors
/// What keeps the flight from starting. A refused candidate is a verdict, not an error here.
pub(super) fn run(args: &CertifyArgs, format: Format) -> Result<Exit, Refusal> {
    let speak = if format == Format::Human {
        Speak::Stages
    } else {
        Speak::Nothing
    };
    let Backend::Local = args.session;
    state::output_directory(&args.out)?;
    let key = key::secret(args.key.as_deref())?;
    let order = order(args)?;
    let host = Host::prepare(args.toolchain.as_deref())?;
    report_leftovers(&host, speak)?;
    let mut progress = Progress::new(speak);
    let flown = flight::fly(&order, Some(&host), &mut Tape::Off, &mut progress);
    let Flown::Certified(proven) = &flown else {
        let verdict = flown.verdict(None);
        flight::write_out(&args.out, &verdict, None, &flown)?;
        show::verdict(&verdict, format);
        return Ok(exit_of(&flown));
    };
    progress.begin("certify");
    let certificate = flight::certify(proven, &key)?;
    let held = flown.verdict(Some(certificate.id.to_string()));
    flight::write_out(&args.out, &held, Some(&certificate), &flown)?;
    progress.done(format_args!(
        "{}",
        args.out.join("certificate.dsse.json").display()
    ));
    let verdict = match &args.admit {
        None => held,
        Some(branch) => admit(
            &host,
            &order,
            proven,
            (branch, &certificate),
            &args.out,
            &mut progress,
        )?,
    };
    show::verdict(&verdict, format);
    Ok(verdict.exit())
}

fn order(args: &CertifyArgs) -> Result<Order, Refusal> {
    let label = args
        .name
        .clone()
        .unwrap_or_else(|| directory_name(&args.repo));
    let mut order = Order::new(&label, (&args.baseline, &args.candidate), &args.witness)?;
    order.grants = (!args.grants.is_empty()).then(|| args.grants.clone());
    order.identity = args.identity.clone();
    order.admit = args.admit.clone();
    order.source = Some(Laid {
        repository: args.repo.clone(),
    });
    order.witness_place = place_inside(&args.witness, &args.repo);
    if let Some(lock) = &args.lock {
        order.set_lock(lock)?;
    }
    Ok(order)
}

/// The path of a file relative to a directory that it lies in.
fn place_inside(file: &Path, directory: &Path) -> Option<RelPath> {
    let (file, directory) = (file.canonicalize().ok()?, directory.canonicalize().ok()?);
    RelPath::new(file.strip_prefix(directory).ok()?.to_str()?).ok()
}

fn directory_name(repo: &Path) -> String {
    let name = repo
        .canonicalize()
        .ok()
        .and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "repository".to_owned())
}

/// Moves the branch, writes the receipt, and says so.
fn admit(
    host: &Host,
    order: &Order,
    proven: &Proven,
    (branch, certificate): (&str, &flight::Certificate),
    out: &Path,
    progress: &mut Progress,
) -> Result<Verdict, Refusal> {
    progress.begin("admit");
    let receipt = match host.admit(order, proven, branch, certificate.id) {
        Ok(receipt) => receipt,
        Err(refusal) => {
            let verdict = Verdict::refused("admit", &refusal);
            let text = serde_json::to_string(&verdict).unwrap_or_default();
            state::write_file(
                &out.join("verdict.json"),
                format!("{text}\n").as_bytes(),
                0o644,
            )?;
            return Err(refusal);
        }
    };
    state::write_file(&out.join("receipt.json"), &receipt, 0o644)?;
    let detail = format!(
        "{branch} moved from {} to {}",
        proven.captured.baseline, proven.captured.head
    );
    progress.done(&detail);
    let verdict = Verdict {
        certificate: Some(certificate.id.to_string()),
        ..Verdict::passed(Decision::Admitted, "admit", detail)
    };
    let text = serde_json::to_string(&verdict).unwrap_or_default();
    state::write_file(
        &out.join("verdict.json"),
        format!("{text}\n").as_bytes(),
        0o644,
    )?;
    Ok(verdict)
}

/// What an earlier run left: sessions of dead owners are removed, interrupted admissions settled.
fn report_leftovers(host: &Host, speak: Speak) -> Result<(), Refusal> {
    for line in host.recover()? {
        if speak == Speak::Stages {
            eprintln!("  recovered   {line}");
        }
    }
    Ok(())
}

fn exit_of(flown: &Flown) -> Exit {
    match flown {
        Flown::Certified(_) => Exit::Passed,
        Flown::Refused { refusal, .. } => refusal.exit(),
    }
}
