//! The session: every limit asked and found, and how it is known; every forbidden act that was tried.

use super::Flight;
use super::text::h;
use flightproof_evidence::{Attestation, EvidenceClass, Reading};
use std::fmt::Write as _;

pub(super) fn section(flight: &Flight, out: &mut String) {
    let Some(attestation) = &flight.attestation else {
        return;
    };
    let _ = write!(
        out,
        "<h3>Session</h3>\n<p class=\"lead\">{} on kernel {}, {}. {}</p>\n",
        h(&attestation.backend),
        h(&attestation.kernel),
        h(&attestation.sandbox),
        classes(attestation)
    );
    let _ = write!(
        out,
        "<details><summary>Limits and privileges <span>{}</span></summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Limits\"><table>\n<thead><tr><th scope=\"col\">What</th><th scope=\"col\">Asked</th><th scope=\"col\">Found</th><th scope=\"col\">Known from</th><th scope=\"col\">Shortfall</th></tr></thead>\n<tbody>\n",
        attestation.readings.len()
    );
    for reading in &attestation.readings {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td><code>{}</code></td><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
            h(&reading.name),
            h(&reading.asked),
            h(&reading.found),
            class(reading.class),
            shortfall(reading)
        );
    }
    let _ = write!(
        out,
        "</tbody></table></div></details>\n<details><summary>Forbidden acts tried <span>{}, all denied</span></summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Forbidden acts\"><table>\n<thead><tr><th scope=\"col\">Act</th><th scope=\"col\">Denied by</th></tr></thead>\n<tbody>\n",
        attestation.probes.len()
    );
    for probe in &attestation.probes {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td><code>{}</code></td></tr>",
            h(&probe.act),
            h(&probe.denied_by)
        );
    }
    out.push_str("</tbody></table></div></details>\n");
}

/// A session with a weaker limit is refused when it is opened, so what differs here is stricter.
fn shortfall(reading: &Reading) -> &'static str {
    match reading.asked == reading.found {
        true => "none",
        false => "none (stricter than asked)",
    }
}

fn classes(attestation: &Attestation) -> String {
    let count = |class| {
        attestation
            .readings
            .iter()
            .filter(|r| r.class == class)
            .count()
    };
    format!(
        "{} limits read back: {} from the kernel by the host, {} by a probe inside, {} on the engine's word alone. No shortfall.",
        attestation.readings.len(),
        count(EvidenceClass::KernelFile),
        count(EvidenceClass::Probe),
        count(EvidenceClass::EngineClaim)
    )
}

fn class(class: EvidenceClass) -> &'static str {
    match class {
        EvidenceClass::KernelFile => "the kernel, read by the host",
        EvidenceClass::Probe => "a probe inside",
        EvidenceClass::EngineClaim => "the engine's word",
    }
}
