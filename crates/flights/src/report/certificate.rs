//! The certificate: its claims, each beside what it does and does not say.

use super::text::h;
use super::{Flight, Signature};
use crate::proof::{not_proven, proven};
use serde_json::Value;
use std::fmt::Write as _;

/// What each kind of evidence claims. The document is the one source of these words.
const CLAIMS: &str = include_str!("../../../../docs/claims.md");

/// Most values of one claim.
const MAX_VALUES: usize = 60;

pub(super) fn section(flight: &Flight, out: &mut String) {
    let Some(statement) = &flight.statement else {
        return;
    };
    let predicate = &statement.predicate;
    let gates: Vec<&str> = predicate.gates.iter().map(|gate| gate.name()).collect();
    let signed = match &flight.signature {
        Signature::Unsigned => {
            "A replay signs nothing: this is what the recorded flight's certificate claims."
        }
        Signature::By(_) => "The signature was verified with the key below.",
        Signature::Unchecked => "The signature was NOT CHECKED: no key was given.",
    };
    let _ = writeln!(
        out,
        "<h3>Certificate</h3>\n<p class=\"lead\">{signed} Gates passed, in order: {}.</p>",
        h(&gates.join(", "))
    );
    list("Proven", &proven(statement), out);
    list("Not proven", &not_proven(&predicate.inputs), out);
    out.push_str("<details><summary>Claims and what they do not claim</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Claims\"><table>\n<thead><tr><th scope=\"col\">Evidence</th><th scope=\"col\">Says</th><th scope=\"col\">Claims</th><th scope=\"col\">Does not claim</th></tr></thead>\n<tbody>\n");
    let inputs = serde_json::to_value(&predicate.inputs).unwrap_or_default();
    for (kind, claims, not) in table() {
        let value = inputs
            .get(kind)
            .cloned()
            .unwrap_or_else(|| serde_json::to_value(&predicate.admission).unwrap_or_default());
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            h(kind),
            values(&value),
            words(claims),
            words(not)
        );
    }
    out.push_str("</tbody></table></div></details>\n");
}

/// Sentences for people, as `flights review` has them.
fn list(title: &str, lines: &[String], out: &mut String) {
    let items = lines.iter().map(|line| format!("<li>{}</li>", h(line)));
    let _ = writeln!(
        out,
        "<h4>{title}</h4>\n<ul>{}</ul>",
        String::from_iter(items)
    );
}

/// The rows of the first table of the document.
fn table() -> Vec<(&'static str, &'static str, &'static str)> {
    CLAIMS
        .lines()
        .skip_while(|line| !line.starts_with("| input kind"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            Some((
                cells.next()?.trim_matches('`'),
                cells.next()?,
                cells.next()?,
            ))
        })
        .collect()
}

/// A cell of the document: code spans, and nothing else of its markup.
fn words(cell: &str) -> String {
    let mut out = String::new();
    for (i, part) in cell.split('`').enumerate() {
        match i % 2 {
            0 => out.push_str(&h(part)),
            _ => {
                let _ = write!(out, "<code>{}</code>", h(part));
            }
        }
    }
    out
}

fn values(value: &Value) -> String {
    let mut found = Vec::new();
    flatten("", value, &mut found);
    let left = found.len().saturating_sub(MAX_VALUES);
    let mut out = String::new();
    for (name, text) in found.iter().take(MAX_VALUES) {
        let _ = write!(out, "<div class=\"mono\">{} {}</div>", h(name), h(text));
    }
    if left > 0 {
        let _ = write!(out, "<div>and {left} more</div>");
    }
    out
}

fn flatten(place: &str, value: &Value, out: &mut Vec<(String, String)>) {
    let inner = |name: &str| match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(k, v)| flatten(&inner(k), v, out)),
        Value::Array(items) if items.is_empty() => out.push((place.to_owned(), "none".to_owned())),
        Value::Array(items) => {
            let indexed = items.iter().enumerate();
            indexed.for_each(|(i, v)| flatten(&inner(&(i + 1).to_string()), v, out));
        }
        Value::String(text) => out.push((place.to_owned(), text.clone())),
        other => out.push((place.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_certifier::certificate::Statement;
    use flightproof_certifier::claim::Inputs;
    use flightproof_certifier::dsse::{PAYLOAD_TYPE, unchecked};
    use serde_json::json;

    /// What is shown of the kept certificate with some of its claims changed.
    fn shown(change: impl FnOnce(&mut Value)) -> String {
        let kept = include_bytes!("../../../../fixtures/formats/certificate.dsse.json");
        let payload = unchecked(kept, PAYLOAD_TYPE).unwrap();
        let mut statement: Value = serde_json::from_slice(&payload).unwrap();
        change(&mut statement["predicate"]["inputs"]);
        let statement: Statement = serde_json::from_value(statement).unwrap();
        let flight = Flight {
            statement: Some(Box::new(statement)),
            ..Flight::default()
        };
        let mut out = String::new();
        section(&flight, &mut out);
        out
    }

    #[test]
    fn what_was_generated_and_which_tests_judged_is_listed_and_so_is_what_was_not_proven() {
        let digest = "0".repeat(64);
        let suite = shown(|inputs| {
            inputs["witness"]["suite"] = json!({"tests": 7, "ignored": 1, "failing": 2, "runs": 3,
                "quarantined": ["api: <b>"]});
            inputs["mutation"]["lines"]["generated"] =
                json!([{"rule": "rates", "digest": digest, "files": ["src/rates.rs"]}]);
        });
        let tests = "programs with 7 tests of the baseline, 1 more ignored, 2 failing, 1 wavering";
        let waver = "<li>test api: &lt;b&gt;: it wavers</li>";
        let made = "<li>what generator rates makes: src/rates.rs</li>";
        for text in [tests, waver, made] {
            assert!(suite.contains(text), "{text}: {suite}");
        }
        let drawn = shown(|inputs| {
            inputs["witness"]["differential"] = json!({"generated": 20, "declared": 4});
        });
        let inputs = "20 generated and answered as by the baseline, 4 more declared to differ";
        assert!(drawn.contains(inputs), "{drawn}");
        let plain = shown(|_| {});
        assert!(plain.contains("<li>that the cases are complete</li>"));
        for text in [
            "tests of the baseline",
            "it wavers",
            "generator",
            "declared to differ",
        ] {
            let lists = plain.split("<details>").next().unwrap();
            assert!(!lists.contains(text), "{text}: {lists}");
        }
    }

    #[test]
    fn every_kind_of_evidence_has_its_claim_and_its_limit() {
        let rows = table();
        for kind in Inputs::KINDS {
            let row = rows.iter().find(|(k, _, _)| *k == kind);
            let (_, claims, not) = row.unwrap_or_else(|| panic!("{kind} is not in docs/claims.md"));
            assert!(claims.len() > 10 && !not.is_empty(), "{kind}");
        }
    }
}
