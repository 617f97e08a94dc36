//! `flights cert show`: what a certificate claims and what it does not. It decides nothing.

use super::claims::{KINDS, Kind, SPEND};
use super::{ShowArgs, envelope, input, public_keys};
use crate::proof::drawn;
use crate::show::{self, Format};
use flightproof_certifier::certificate::{Admission, Statement};
use flightproof_certifier::claim::Inputs;
use flightproof_certifier::dsse::{self, PAYLOAD_TYPE};
use flightproof_certifier::key::KeyId;
use flightproof_certifier::spend::RunSpend;
use flightproof_core::{Digest, Exit, Refusal, escape};
use flightproof_evidence::ProfileSettings;
use serde_json::{Value, json};

/// A certificate that was read, and who signed it if that was looked at.
struct Read {
    id: Digest,
    statement: Statement,
    signers: Option<Vec<KeyId>>,
}

/// Prints a certificate. With keys, one that none of them signed is refused; without, it is said
/// that no signature was checked.
///
/// # Errors
/// What [`dsse::open`] and [`Statement::parse`] refuse.
pub(super) fn show(args: &ShowArgs, format: Format) -> Result<Exit, Refusal> {
    let read = read(args)?;
    match format {
        Format::Human => show::print(&human(&read)),
        Format::Json => show::print(&document(&read).to_string()),
    }
    Ok(Exit::Passed)
}

fn read(args: &ShowArgs) -> Result<Read, Refusal> {
    let envelope = envelope(&args.certificate)?;
    let keys = public_keys(&args.keys)?;
    let (payload, signers) = if keys.is_empty() {
        let payload = dsse::unchecked(&envelope, PAYLOAD_TYPE);
        (payload.map_err(input::named(&args.certificate))?, None)
    } else {
        let opened = dsse::open(&envelope, &keys, 1).map_err(input::named(&args.certificate))?;
        (opened.bytes().to_vec(), Some(opened.signers().to_vec()))
    };
    Ok(Read {
        id: Digest::of(&payload),
        statement: Statement::parse(&payload)?,
        signers,
    })
}

fn document(read: &Read) -> Value {
    let inputs = &read.statement.predicate.inputs;
    let claims = kinds(inputs)
        .map(|kind| json!({"kind": kind.name, "claims": kind.claims, "doesNotClaim": kind.not}));
    json!({
        "schema": "flightproof/certificate-shown/1",
        "certificate": read.id,
        "signatureChecked": read.signers.is_some(),
        "signers": read.signers,
        "statement": read.statement,
        "claims": claims.collect::<Vec<_>>(),
    })
}

/// The kinds that stand on a certificate.
fn kinds(inputs: &Inputs) -> impl Iterator<Item = &'static Kind> {
    let spent = inputs.spend.is_some();
    KINDS.iter().filter(move |kind| spent || kind.name != SPEND)
}

fn human(read: &Read) -> String {
    let predicate = &read.statement.predicate;
    let inputs = &predicate.inputs;
    let signature = match &read.signers {
        None => "NOT CHECKED: anybody may have written this (give --key PUB)".to_owned(),
        Some(signers) => {
            let ids = signers.iter().map(ToString::to_string);
            format!("by {}", ids.collect::<Vec<_>>().join(", "))
        }
    };
    let admission = match &predicate.admission {
        Admission::Held {} => "held: it alone lets nothing in".to_owned(),
        Admission::Admitted { branch } => format!("admitted to {}", escape(branch, 80)),
    };
    let gates: Vec<&str> = predicate.gates.iter().map(|gate| gate.name()).collect();
    let subject = read.statement.subject.iter();
    let subject = subject.filter_map(|s| s.digest.get("sha256"));
    let mut lines = vec![
        format!("certificate {}", read.id),
        format!("signature   {signature}"),
        format!(
            "tree        {}",
            subject.map(|digest| escape(digest, 80)).collect::<String>()
        ),
        format!("admission   {admission}"),
        format!("passed      {}", gates.join(", ")),
    ];
    for kind in kinds(inputs) {
        lines.push(format!("{}: {}", kind.name, facts(kind.name, inputs)));
        lines.push(format!("  claims          {}", kind.claims));
        lines.push(format!("  does not claim  {}", kind.not));
    }
    for waiver in inputs
        .mutation
        .waived
        .iter()
        .chain(&inputs.mutation.unjudged)
    {
        lines.push(format!(
            "waived {}: {}",
            escape(&waiver.mutant, 200),
            escape(&waiver.reason, 200)
        ));
    }
    lines.join("\n")
}

/// What a kind says, in one line.
fn facts(kind: &str, inputs: &Inputs) -> String {
    match kind {
        "request" => format!(
            "commit {} on {} of {}, attempt {}",
            inputs.request.head,
            inputs.request.baseline,
            escape(&inputs.request.repository, 80),
            inputs.request.attempt
        ),
        "witness" => format!(
            "{}{}, {}, commitment {}",
            show::count(inputs.witness.cases, "case"),
            drawn(inputs),
            if inputs.witness.public {
                "public"
            } else {
                "private"
            },
            inputs.witness.commitment
        ),
        "image-digest" => compiler(inputs),
        "sandbox-spec" => format!("{} limits and privileges", inputs.sandbox_spec.asked.len()),
        "attestation" => format!(
            "{}, kernel {}, {}, {} denied",
            escape(&inputs.attestation.backend, 40),
            escape(&inputs.attestation.kernel, 80),
            show::count(inputs.attestation.found.len(), "reading"),
            show::count(inputs.attestation.denied.len(), "act")
        ),
        "session-build" => built(inputs),
        "session-execution" => format!(
            "{}, {} each",
            show::count(inputs.session_execution.cases, "case"),
            show::count(inputs.session_execution.runs_per_case, "run")
        ),
        "mutation" => mutated(inputs),
        "capture" => captured(inputs),
        SPEND => spent(inputs),
        _ => format!("depth {}", inputs.lineage.depth),
    }
}

fn compiler(inputs: &Inputs) -> String {
    let version = escape(&inputs.image_digest.version, 80);
    match &inputs.image_digest.target {
        Some(target) => format!("{version} for {}", escape(target, 80)),
        None => version,
    }
}

fn built(inputs: &Inputs) -> String {
    let build = &inputs.session_build;
    format!(
        "profile {}{}, {}{}{}{}",
        escape(&build.profile, 40),
        build.settings.as_ref().map_or_else(String::new, settings),
        show::count(build.packages.len(), "dependency"),
        match build.new_packages.len() {
            0 => String::new(),
            n => format!(", {n} of them new"),
        },
        if build.build_scripts {
            ", build scripts ran"
        } else {
            ""
        },
        if build.proc_macros {
            ", procedural macros ran"
        } else {
            ""
        }
    )
}

fn settings(of: &ProfileSettings) -> String {
    let checked = |checked: bool| if checked { "checked" } else { "not checked" };
    format!(
        " (optimised at level {}, debug assertions {}, overflow {})",
        escape(&of.opt_level, 8),
        checked(of.debug_assertions),
        checked(of.overflow_checks)
    )
}

fn mutated(inputs: &Inputs) -> String {
    let mutation = &inputs.mutation;
    let killed = mutation.killed_by.iter();
    let killed: Vec<String> = killed
        .map(|(class, count)| format!("{count} by {}", escape(class, 40)))
        .collect();
    let equivalent = match mutation.equivalent {
        0 => String::new(),
        proven => format!(", {proven} equivalent"),
    };
    format!(
        "{}, {} viable; killed {}; {} survived, {} waived{equivalent}, {} waived unjudged",
        show::count(mutation.generated, "mutant"),
        mutation.viable,
        if killed.is_empty() {
            "none".to_owned()
        } else {
            killed.join(", ")
        },
        mutation.survived,
        mutation.waived.len(),
        show::count(mutation.unjudged.len(), "place")
    )
}

fn spent(inputs: &Inputs) -> String {
    let runs = inputs.spend.iter().flat_map(|spend| &spend.runs);
    runs.map(RunSpend::line).collect::<Vec<_>>().join("; ")
}

fn captured(inputs: &Inputs) -> String {
    let capture = &inputs.capture;
    let narrowed = capture.narrowed.as_ref();
    let narrowed = narrowed.map_or_else(String::new, |narrowed| {
        format!(", narrowed to {} paths", narrowed.paths.len())
    });
    format!(
        "{} changed paths, bundle of {} bytes{narrowed}",
        capture.changed_paths, capture.bundle_bytes
    )
}
