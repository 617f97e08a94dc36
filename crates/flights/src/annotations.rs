//! Findings as other programs show them, at the lines they are about: annotations of GitHub's workflows,
//! and SARIF 2.1.0.

use crate::registry;
use crate::show::{self, Form};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The forms of a command whose findings have places.
pub(crate) const FORMS: &[Form] = &[Form::Human, Form::Json, Form::Github, Form::Sarif];

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The refusal's code: the rule that was broken.
    pub(crate) code: &'static str,
    /// What it is, in a few words.
    pub(crate) title: String,
    /// What was found. May have several lines.
    pub(crate) text: String,
    /// Where, if it is anywhere.
    pub(crate) place: Option<Place>,
}

/// A file, or a place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Relative to the repository.
    pub(crate) file: String,
    /// Line, and column in characters if it is known: from 1.
    pub(crate) at: Option<(u32, Option<u32>)>,
}

impl Place {
    /// A place of a text, from its line and its column in bytes.
    pub(crate) fn of(file: &str, (line, column): (u32, u32), text: Option<&str>) -> Self {
        let before = (column as usize).saturating_sub(1);
        let before = text.and_then(|text| text.get(..before));
        let before = before.and_then(|before| u32::try_from(before.chars().count()).ok());
        Self {
            file: file.to_owned(),
            at: Some((line, before.map(|before| before + 1))),
        }
    }
}

/// A line of a text, counted from 1.
pub(crate) fn line_of(text: &str, line: u32) -> Option<&str> {
    let at = (line as usize).checked_sub(1)?;
    text.lines().nth(at)
}

/// Findings, and what they come to, as annotations.
pub(crate) fn github(findings: &[Finding], total: &str) -> String {
    let lines = findings.iter().map(|finding| {
        let mut properties = Vec::new();
        if let Some(place) = &finding.place {
            properties.push(format!("file={}", property(&place.file)));
            if let Some((line, column)) = place.at {
                properties.push(format!("line={line}"));
                properties.extend(column.map(|column| format!("col={column}")));
            }
        }
        properties.push(format!("title={}", property(&finding.title)));
        format!(
            "::error {}::{}",
            properties.join(","),
            message(&finding.text)
        )
    });
    let total = format!("::notice title=flights::{}", message(total));
    lines.chain([total]).collect::<Vec<_>>().join("\n")
}

/// The message of a workflow command.
fn message(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Findings as one SARIF document, with the rules they break.
pub(crate) fn sarif(findings: &[Finding]) -> Value {
    let rules: BTreeMap<&str, Value> = findings
        .iter()
        .filter_map(|finding| registry::find(finding.code))
        .map(|e| {
            let rule = json!({
                "id": e.code, "shortDescription": {"text": e.happened},
                "fullDescription": {"text": e.why}, "help": {"text": e.todo},
            });
            (e.code, rule)
        })
        .collect();
    let results: Vec<Value> = findings
        .iter()
        .map(|finding| {
            json!({
                "ruleId": finding.code, "level": "error",
                "message": {"text": finding.text},
                "locations": Vec::from_iter(finding.place.as_ref().map(location)),
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "flights", "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A path as a relative reference of RFC 3986: what a reader decodes is the path, byte for byte, and no
/// letter of it begins a query or a fragment.
fn reference(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn location(place: &Place) -> Value {
    let mut physical = json!({"artifactLocation": {"uri": reference(&place.file)}});
    if let Some((line, column)) = place.at {
        physical["region"] = json!({"startLine": line});
        if let Some(column) = column {
            physical["region"]["startColumn"] = column.into();
        }
    }
    json!({"physicalLocation": physical})
}

/// Prints findings in one of the two forms.
pub(crate) fn print(findings: &[Finding], total: &str, form: Form) {
    match form {
        Form::Github => show::print(&github(findings, total)),
        _ => show::print(&sarif(findings).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(place: Option<Place>) -> Finding {
        Finding {
            code: "certifier/MUTANTS_SURVIVED",
            title: "a: b".into(),
            text: "one\ntwo 100%".into(),
            place,
        }
    }

    #[test]
    fn a_path_is_named_so_that_no_reader_takes_it_for_another() {
        let place = Place::of("scripts/a%2Fb?c#d é.sh", (1, 1), None);
        let document = sarif(&[found(Some(place))]);
        let physical = &document["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        let uri = &physical["artifactLocation"]["uri"];
        assert_eq!(uri, "scripts/a%252Fb%3Fc%23d%20%C3%A9.sh");
    }

    #[test]
    fn a_finding_is_annotated_at_its_line_and_one_without_a_place_nowhere() {
        let place = Place::of("src/a,b.rs", (5, 11), Some("    let ö = a < b;"));
        let whole = Place::of("src/a.rs", (7, 3), None);
        let findings = [found(Some(place)), found(None), found(Some(whole))];
        let text = github(&findings, "2 found");
        let lines: Vec<&str> = text.lines().collect();
        let at = "::error file=src/a%2Cb.rs,line=5,col=10,title=a%3A b::one%0Atwo 100%25";
        assert_eq!(lines[0], at);
        assert_eq!(lines[1], "::error title=a%3A b::one%0Atwo 100%25");
        assert!(lines[2].starts_with("::error file=src/a.rs,line=7,title="));
        assert_eq!(lines[3], "::notice title=flights::2 found");
        let document = sarif(&findings);
        let run = &document["runs"][0];
        let region = &run["results"][0]["locations"][0]["physicalLocation"]["region"];
        assert_eq!(region["startLine"], 5);
        assert_eq!(region["startColumn"], 10);
        assert_eq!(run["columnKind"], "unicodeCodePoints");
        let region = &run["results"][2]["locations"][0]["physicalLocation"]["region"];
        assert_eq!(*region, json!({"startLine": 7}));
        assert_eq!(run["results"][1]["locations"], json!([]));
        assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 1);
    }
}
