//! What became of the plans of a run, in every form.

use crate::annotations::{self, Finding, Place};
use crate::show::{self, Form, StageTime, Tone, seconds};
use flightproof_core::{Exit, Refusal, Verdict, plain};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// The forms of a run's results.
pub(crate) const FORMS: &[Form] = &[
    Form::Human,
    Form::Json,
    Form::Jsonl,
    Form::Junit,
    Form::Github,
    Form::Sarif,
];

/// How a plan is flown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// From its recording.
    Replayed,
    /// In local sessions.
    Local,
    /// On a container engine.
    Live,
}

impl Way {
    /// Its word in results and in evidence.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Replayed => "replayed",
            Self::Local => "local",
            Self::Live => "live",
        }
    }
}

/// What became of one plan.
#[derive(Serialize)]
pub(crate) struct PlanResult {
    pub(crate) name: String,
    pub(crate) way: Way,
    pub(crate) verdict: Verdict,
    /// Absent when the flight ended as its plan expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Failure>,
    pub(crate) milliseconds: u64,
    /// The stages that were finished.
    pub(crate) stages: Vec<StageTime>,
    /// The plan's file, as it was named.
    #[serde(skip)]
    pub(crate) file: String,
    /// Its name in a table, where it stands once for each way.
    #[serde(skip)]
    pub(crate) label: String,
    /// What it said, as people read it.
    #[serde(skip)]
    pub(crate) told: Verdict,
    /// The mutants that survived, each at its line where the project has the file.
    #[serde(skip)]
    pub(crate) survivors: Vec<Finding>,
}

#[derive(Serialize)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) stage: String,
    pub(crate) detail: String,
    pub(crate) hint: &'static str,
    /// The command that flies it once more.
    pub(crate) again: String,
    #[serde(skip)]
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn of(refusal: Refusal, stage: &str, again: String) -> Self {
        Self {
            code: refusal.code(),
            stage: stage.to_owned(),
            exit: refusal.exit(),
            hint: refusal.explanation.todo,
            detail: refusal.detail,
            again,
        }
    }
}

/// Prints the results.
pub(crate) fn print(results: &[PlanResult], form: Form) {
    match form {
        Form::Human => show::print(&table(results)),
        Form::Json => show::print(&summary(results, json!(results)).to_string()),
        Form::Jsonl => {
            let lines = results.iter().map(|r| json!(r));
            lines.for_each(|line| show::print(&line.to_string()));
            show::print(&summary(results, Value::Null).to_string());
        }
        Form::Junit => show::print(&junit(results)),
        Form::Github => show::print(&github(results)),
        Form::Sarif => show::print(&sarif(results).to_string()),
    }
}

fn failed(results: &[PlanResult]) -> usize {
    results.iter().filter(|r| r.failure.is_some()).count()
}

fn summary(results: &[PlanResult], flights: Value) -> Value {
    let failed = failed(results);
    let mut document = json!({
        "schema": "flightproof/run/1", "passed": results.len() - failed, "failed": failed,
    });
    if !flights.is_null() {
        document["flights"] = flights;
    }
    document
}

fn table(results: &[PlanResult]) -> String {
    let longest = results.iter().map(|r| r.label.len()).max().unwrap_or(0);
    let width = longest.max(6);
    let columns = show::columns();
    let head = format!(
        "{:<4} {:<width$} {:>8}  {:<44} certificate",
        "", "flight", "time", "verdict"
    );
    let mut text = show::cut(&head, columns) + "\n";
    for result in results {
        text.push_str(&row(result, width, columns));
        text.push('\n');
    }
    let failed = failed(results);
    let _ = write!(text, "{} passed, {failed} failed", results.len() - failed);
    text
}

fn row(result: &PlanResult, width: usize, columns: usize) -> String {
    let (mark, tone) = match result.failure {
        None => ("ok  ", Tone::Good),
        Some(_) => ("FAIL", Tone::Bad),
    };
    let verdict = verdict(result);
    let certificate = result
        .verdict
        .certificate
        .as_deref()
        .map_or("-", |c| &c[..16]);
    let time = seconds(Duration::from_millis(result.milliseconds));
    let rest = format!(
        " {:<width$} {time:>8}  {verdict:<44} {certificate}",
        result.label
    );
    let rest = show::cut(&rest, columns.saturating_sub(4));
    let mut text = format!("{}{rest}", show::paint(mark, tone));
    if let Some(failure) = &result.failure {
        let _ = write!(
            text,
            "\n     | {} at {}: {}",
            failure.code, failure.stage, failure.detail
        );
        for line in said(result, failure) {
            let _ = write!(text, "\n     |   {line}");
        }
        let _ = write!(
            text,
            "\n     | hint: {}\n     | again: {}",
            failure.hint, failure.again
        );
    }
    text
}

/// What a flight said that did not end as its plan expects: survivors, diagnostics, and its own hint.
fn said(result: &PlanResult, failure: &Failure) -> Vec<String> {
    let notes = &result.told.notes;
    let mut lines: Vec<String> = notes.iter().take(MAX_NOTES).map(|n| plain(n)).collect();
    if let Some(more @ 1..) = notes.len().checked_sub(MAX_NOTES) {
        lines.push(format!("and {more} more: see --format json"));
    }
    if *notes != result.verdict.notes {
        lines.push("waivers: to paste, those are the notes in --format json".to_owned());
    }
    let hint = result.verdict.hint.as_deref();
    let own = hint.filter(|hint| *hint != failure.hint);
    lines.extend(own.map(|hint| format!("hint: {}", plain(hint))));
    lines
}

/// What is told of a flight that failed, below its name.
fn whole(result: &PlanResult, failure: &Failure) -> String {
    let head = format!("{} at {}: {}", failure.code, failure.stage, failure.detail);
    let end = [
        format!("hint: {}", failure.hint),
        format!("again: {}", failure.again),
    ];
    let lines = [head].into_iter().chain(said(result, failure)).chain(end);
    lines.collect::<Vec<_>>().join("\n")
}

/// Most notes of a flight below its row: a refusal has 24 and a line about the rest for each thing it tells.
const MAX_NOTES: usize = 50;

fn verdict(result: &PlanResult) -> String {
    match &result.verdict.code {
        Some(code) => format!("refused {code}"),
        None => "held".to_owned(),
    }
}

/// Text inside XML. What is no character there cannot be escaped either, and is shown as a mark.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn junit(results: &[PlanResult]) -> String {
    let time = |ms: u64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let total: u64 = results.iter().map(|r| r.milliseconds).sum();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"flights\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\" time=\"{}\">\n",
        results.len(),
        failed(results),
        time(total)
    );
    for result in results {
        let _ = write!(
            text,
            "<testcase classname=\"flights\" name=\"{}\" file=\"{}\" time=\"{}\"",
            xml(&result.label),
            xml(&result.file),
            time(result.milliseconds)
        );
        match &result.failure {
            None => text.push_str("/>\n"),
            Some(f) => {
                let _ = writeln!(
                    text,
                    ">\n<failure type=\"{}\" message=\"{}\">{}</failure>\n</testcase>",
                    xml(f.code),
                    xml(&format!("{} at {}", f.code, f.stage)),
                    xml(&whole(result, f))
                );
            }
        }
    }
    text.push_str("</testsuite>\n</testsuites>");
    text
}

fn github(results: &[PlanResult]) -> String {
    let failed = failed(results);
    let total = format!("{} passed, {failed} failed", results.len() - failed);
    annotations::github(&findings(results), &total)
}

fn sarif(results: &[PlanResult]) -> Value {
    annotations::sarif(&findings(results))
}

/// The flights that failed, each at its plan, and below it the mutants that survived it.
fn findings(results: &[PlanResult]) -> Vec<Finding> {
    let failed = results
        .iter()
        .filter_map(|result| Some((result, result.failure.as_ref()?)));
    let findings = failed.flat_map(|(result, failure)| {
        let flight = Finding {
            code: failure.code,
            title: format!("flight {}", result.label),
            text: format!("flight {}: {}", result.label, whole(result, failure)),
            place: Some(Place {
                file: result.file.clone(),
                at: None,
            }),
        };
        [flight].into_iter().chain(result.survivors.iter().cloned())
    });
    findings.collect()
}

/// The exit status of a run: that of its worst failure, in the order a reader must hear of them.
pub(crate) fn exit_of<'a>(results: impl Iterator<Item = &'a PlanResult>) -> Exit {
    let exits: Vec<Exit> = results
        .filter_map(|r| r.failure.as_ref().map(|f| f.exit))
        .collect();
    let worst = [Exit::OurBug, Exit::Mismatch, Exit::Refused];
    worst
        .into_iter()
        .find(|exit| exits.contains(exit))
        .or_else(|| exits.first().copied())
        .unwrap_or(Exit::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlightsCode;

    fn results() -> Vec<PlanResult> {
        let refusal =
            Refusal::from(FlightsCode::VerdictUnexpected.refuse("expected <held>, got \"]]>&"));
        let failure = Failure::of(refusal.clone(), "judge", "flights run b".into());
        let result = |name: &str, failure| PlanResult {
            name: name.into(),
            way: Way::Replayed,
            verdict: Verdict::refused("judge", &refusal),
            failure,
            milliseconds: 1_042,
            stages: Vec::new(),
            file: format!("flights/{name}.toml"),
            label: name.into(),
            told: Verdict::refused("judge", &refusal),
            survivors: Vec::new(),
        };
        vec![result("a", None), result("b:,\n%", Some(failure))]
    }

    #[test]
    fn junit_holds_strangers_text_as_text() {
        let text = junit(&results());
        assert!(text.contains("tests=\"2\" failures=\"1\""), "{text}");
        assert!(
            text.contains("expected &lt;held&gt;, got &quot;]]&gt;&amp;"),
            "{text}"
        );
        assert!(text.contains("time=\"1.042\""), "{text}");
        assert_eq!(xml("a\u{0}\u{1b}\u{ffff}"), "a\u{fffd}\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_flight_that_ended_otherwise_tells_its_notes_and_not_all_of_very_many() {
        let mut results = results();
        let survivors = (0..56).map(|n| format!("src/a.rs:{n}: survived\u{1b}[0m"));
        results[1].told.notes = survivors.collect();
        let text = table(&results);
        assert!(
            text.contains("\n     |   src/a.rs:0: survived\\u{1b}[0m\n"),
            "{text}"
        );
        assert!(
            text.contains("src/a.rs:49:") && !text.contains("src/a.rs:50:"),
            "{text}"
        );
        assert!(
            text.contains("\n     |   and 6 more: see --format json\n"),
            "{text}"
        );
        assert_eq!(text.matches("hint: ").count(), 1, "twice the same: {text}");
        results[1].verdict.hint = Some("ask the owner".into());
        for text in [table(&results), junit(&results), github(&results)] {
            assert!(text.contains("hint: ask the owner"), "{text}");
            assert!(text.contains("waivers: to paste"), "{text}");
        }
        results[1].survivors = vec![Finding {
            code: "certifier/MUTANTS_SURVIVED",
            title: "mutant survived: condition".into(),
            text: "a -> false: no case noticed it".into(),
            place: Some(Place::of("src/a.rs", (3, 1), Some("a"))),
        }];
        let text = github(&results);
        let place = "\n::error file=src/a.rs,line=3,col=1,title=mutant survived";
        assert!(text.contains(place), "{text}");
        results[1].failure = None;
        assert!(!table(&results).contains("survived"));
    }

    #[test]
    fn an_annotation_is_one_line_whatever_is_in_it() {
        let text = github(&results());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("::error file=flights/b%3A%2C%0A%25.toml,title=flight b"));
        assert_eq!(lines[1], "::notice title=flights::1 passed, 1 failed");
    }

    #[test]
    fn a_scanner_result_names_a_rule_that_is_there() {
        let document = sarif(&results());
        let rules = &document["runs"][0]["tool"]["driver"]["rules"];
        assert_eq!(rules[0]["id"], document["runs"][0]["results"][0]["ruleId"]);
        assert_eq!(document["runs"][0]["results"].as_array().unwrap().len(), 1);
    }
}
