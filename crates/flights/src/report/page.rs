//! The page: its head, its summary, and one card for each flight.

use super::text::h;
use super::{Flight, Outcome, Report, Signature, certificate, session, source};
use crate::show::count;
use crate::timeline::{Ending, Step};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flightproof_certifier::certification::MutantFate;
use flightproof_core::{Decision, Digest, Verdict};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// Most steps of one timeline: a page with more is slow to open, and says that it was cut.
const MAX_STEPS: usize = 60_000;

/// The whole file.
pub fn page(report: &Report) -> String {
    let hash = STANDARD.encode(Digest::of(STYLE.as_bytes()).as_bytes());
    let title = report.told();
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title} · Flightproof</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#flights\">Skip to the flights</a>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"lead\">{}</p>\n</header>\n<main>\n",
        lead(report)
    );
    summary(report, &mut out);
    out.push_str("<div id=\"flights\">\n");
    report.flights.iter().for_each(|f| flight(f, &mut out));
    let program = report.program.map_or_else(String::new, |digest| {
        format!(", program <code class=\"hash\">{digest}</code>")
    });
    let _ = write!(
        out,
        "</div>\n</main>\n<footer>\n<p>Written by flights {}{program}. This file loads nothing and runs nothing; everything in it that a candidate wrote is shown as text.</p>\n</footer>\n</body>\n</html>\n",
        h(&report.version)
    );
    out
}

fn lead(report: &Report) -> String {
    let mutants: u64 = report.flights.iter().filter_map(mutants).map(|m| m.1).sum();
    let expected = report.flights.iter().filter_map(|f| f.expected.as_deref());
    let hostile = expected.filter(|expected| *expected != "held").count();
    let mut told = Vec::new();
    if hostile > 0 {
        told.push(format!("plans expect {hostile} to be refused"));
    }
    if mutants > 0 {
        let were = if mutants == 1 { "was" } else { "were" };
        told.push(format!(
            "{} of the changes {were} tried",
            count(mutants, "mutant")
        ));
    }
    match told.is_empty() {
        true => "As they were written when they were flown.".to_owned(),
        false => format!("{}.", told.join("; ")),
    }
}

fn summary(report: &Report, out: &mut String) {
    let beside = report.flights.iter().any(|f| f.beside.is_some());
    let flown = if beside {
        "<th scope=\"col\">Flown</th>"
    } else {
        ""
    };
    let _ = write!(
        out,
        "<section class=\"card\" aria-label=\"Verdicts\">\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Verdicts of all flights\"><table>\n<thead><tr><th scope=\"col\">Result</th><th scope=\"col\">Flight</th><th scope=\"col\">Verdict</th>{flown}<th scope=\"col\">Mutants killed</th><th scope=\"col\">Time</th></tr></thead>\n<tbody>\n"
    );
    for f in &report.flights {
        let verdict = f.verdict.as_ref().map_or_else(String::new, verdict);
        let flown = match (&f.beside, beside) {
            (Some(v), _) => format!("<td>{}</td>", self::verdict(v)),
            (None, true) => "<td>not flown</td>".to_owned(),
            (None, false) => String::new(),
        };
        let time = match f.stages.is_empty() {
            true => "–".to_owned(),
            false => {
                let time: u64 = f.stages.iter().map(|s| s.milliseconds).sum();
                format!("{time} ms")
            }
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><th scope=\"row\"><a href=\"#{}\">{}</a></th><td>{verdict}</td>{flown}<td class=\"n\">{}</td><td class=\"n\">{time}</td></tr>",
            result(f),
            anchor(f),
            h(&f.name),
            kills(f)
        );
    }
    out.push_str("</tbody>\n</table></div>\n</section>\n");
}

fn anchor(flight: &Flight) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    format!(
        "flight-{}",
        flight.name.chars().map(plain).collect::<String>()
    )
}

fn result(flight: &Flight) -> &'static str {
    match flight.outcome() {
        Outcome::Expected => "<span class=\"badge good\">✓ as expected</span>",
        Outcome::Admitted => "<span class=\"badge good\">✓ admitted</span>",
        Outcome::Held => "<span class=\"badge good\">✓ held</span>",
        Outcome::Refused => "<span class=\"badge bad\">✗ refused</span>",
        Outcome::Stopped => "<span class=\"badge bad\">✗ stopped</span>",
        Outcome::Failed => "<span class=\"badge bad\">✗ failed</span>",
    }
}

fn verdict(verdict: &Verdict) -> String {
    match &verdict.code {
        Some(code) => {
            let word = if verdict.stopped {
                "stopped"
            } else {
                "refused"
            };
            format!("{word} at {} <code>{}</code>", h(&verdict.stage), h(code))
        }
        None if verdict.verdict == Decision::Admitted => "admitted".to_owned(),
        None => "held".to_owned(),
    }
}

fn kills(flight: &Flight) -> String {
    match mutants(flight).filter(|(_, viable)| *viable > 0) {
        Some((killed, viable)) => format!("{killed} of {viable}"),
        None => "–".to_owned(),
    }
}

/// Mutants that were noticed, of those that were tried: as they were seen, as the certificate has them, or as
/// the report beside the verdict does.
fn mutants(flight: &Flight) -> Option<(u64, u64)> {
    let Some(account) = &flight.account else {
        let Some(statement) = &flight.statement else {
            let written = flight.written.as_ref()?;
            return Some((written.killed, written.tried));
        };
        let mutation = &statement.predicate.inputs.mutation;
        return Some((mutation.killed_by.values().sum(), mutation.viable));
    };
    let count = |wanted: fn(MutantFate) -> bool| {
        account.mutants.iter().filter(|m| wanted(m.fate)).count() as u64
    };
    let killed = count(|fate| matches!(fate, MutantFate::Killed(_)));
    let idle = |fate| matches!(fate, MutantFate::Unviable | MutantFate::Untried);
    let tried = account.mutants.iter().filter(|m| !idle(m.fate)).count() as u64;
    Some((killed, tried))
}

fn flight(f: &Flight, out: &mut String) {
    let id = anchor(f);
    let _ = write!(
        out,
        "<article class=\"card\" id=\"{id}\" aria-labelledby=\"{id}-name\">\n<div class=\"head\"><h2 id=\"{id}-name\">{}</h2>{}<span class=\"badge plain\">{}</span></div>\n<p class=\"lead\">{}</p>\n",
        h(&f.name),
        result(f),
        f.how,
        h(&f.about)
    );
    failure(f, out);
    track(f, out);
    if let Some(v) = &f.verdict {
        verdict_box(v, f.outcome(), out);
    }
    survivors(f, out);
    source::section(f, out);
    certificate::section(f, out);
    session::section(f, out);
    timeline(f, out);
    digests(f, out);
    out.push_str("</article>\n");
}

fn failure(f: &Flight, out: &mut String) {
    if let Some(failed) = &f.failure {
        let _ = writeln!(
            out,
            "<div class=\"box\" role=\"note\"><p><strong><code>{}</code> at {}</strong></p><p>{}</p><p>{}</p><p>Again: <code>{}</code></p></div>",
            h(&failed.code),
            h(&failed.stage),
            h(&failed.detail),
            h(&failed.hint),
            h(&failed.again)
        );
    }
}

/// The refusal, or what was certified, in the flight's own words.
fn verdict_box(verdict: &Verdict, outcome: Outcome, out: &mut String) {
    let (class, why) = match outcome {
        Outcome::Failed => return,
        Outcome::Expected => ("box calm", ", as its plan expects"),
        Outcome::Admitted | Outcome::Held => ("box calm", ""),
        Outcome::Refused | Outcome::Stopped => ("box", ""),
    };
    let word = match verdict.stopped {
        true => "Stopped, and nothing was judged:",
        false => "Refused with",
    };
    let code = verdict.code.as_deref().map_or_else(String::new, |code| {
        format!("<strong>{word} <code>{}</code>{why}.</strong> ", h(code))
    });
    let _ = write!(
        out,
        "<div class=\"{class}\"><p>{code}{}</p>",
        h(&verdict.detail)
    );
    if let Some(hint) = verdict
        .hint
        .as_deref()
        .filter(|_| matches!(outcome, Outcome::Refused | Outcome::Stopped))
    {
        let _ = write!(out, "<p>{}</p>", h(hint));
    }
    if !verdict.notes.is_empty() {
        out.push_str("<details><summary>Notes</summary><ul>");
        for note in &verdict.notes {
            let _ = write!(out, "<li><code>{}</code></li>", h(note));
        }
        out.push_str("</ul></details>");
    }
    out.push_str("</div>\n");
}

/// The mutants that survived of a flight whose change is not at hand.
fn survivors(f: &Flight, out: &mut String) {
    let lines = f.written.iter().flat_map(|written| &written.survivors);
    let lines: Vec<String> = lines.map(|line| h(line)).collect();
    if !lines.is_empty() {
        let _ = writeln!(
            out,
            "<h3>Mutants that survived</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Mutants that survived\"><pre>{}</pre></div>",
            lines.join("\n")
        );
    }
}

fn track(f: &Flight, out: &mut String) {
    out.push_str("<ol class=\"track\" aria-label=\"Stages\">\n");
    // A stage may have finished its work and still be the one that refuses.
    let stopped = f.stopped.as_deref();
    for stage in f.stages.iter().filter(|s| Some(s.stage) != stopped) {
        let _ = writeln!(
            out,
            "<li>{} <small>{}</small></li>",
            h(stage.stage),
            h(&stage.detail)
        );
    }
    if let Some(stopped) = &f.stopped {
        let _ = writeln!(
            out,
            "<li class=\"stop\">✗ {} <small>ended here</small></li>",
            h(stopped)
        );
    }
    out.push_str("</ol>\n");
}

fn timeline(f: &Flight, out: &mut String) {
    if f.steps.is_empty() {
        return;
    }
    let cut = match f.steps.len() > MAX_STEPS {
        true => format!(", the first {MAX_STEPS} shown; all with <code>flights show</code>"),
        false => String::new(),
    };
    let _ = write!(
        out,
        "<h3>Timeline</h3>\n<details><summary>What crossed the boundary <span>{}{cut}</span></summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Timeline\"><table class=\"time\">\n<thead><tr><th scope=\"col\">Line</th><th scope=\"col\">Stage</th><th scope=\"col\">Asked</th><th scope=\"col\">Outcome</th></tr></thead>\n<tbody>\n",
        count(f.steps.len(), "step")
    );
    f.steps
        .iter()
        .take(MAX_STEPS)
        .for_each(|step| row(step, out));
    out.push_str("</tbody></table></div>\n</details>\n");
}

fn row(step: &Step, out: &mut String) {
    let class = match step.end {
        Ending::Refused => " class=\"bad\"",
        Ending::Ok | Ending::Other => "",
    };
    let _ = writeln!(
        out,
        "<tr{class}><td class=\"n\">{}</td><td>{}</td><td><code>{}</code></td><td>{}</td></tr>",
        step.line,
        step.stage,
        h(&step.act),
        h(&step.outcome)
    );
}

fn digests(f: &Flight, out: &mut String) {
    let signature = match &f.signature {
        Signature::Unsigned => None,
        Signature::By(key) => Some(format!(
            "verified, by <code class=\"hash\">{}</code>",
            h(key)
        )),
        Signature::Unchecked => Some("NOT CHECKED: no key was given".to_owned()),
    };
    if f.digests.is_empty() && signature.is_none() {
        return;
    }
    out.push_str("<h3>Digests</h3>\n<dl>\n");
    for (name, digest) in &f.digests {
        let _ = writeln!(
            out,
            "<dt>{}</dt><dd><code class=\"hash\" tabindex=\"0\">{}</code></dd>",
            h(name),
            h(digest)
        );
    }
    if let Some(signature) = signature {
        let _ = writeln!(out, "<dt>signature</dt><dd>{signature}</dd>");
    }
    out.push_str("</dl>\n");
}
