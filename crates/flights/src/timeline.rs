//! A recording as steps that people can read.

use crate::show::{count, instant};
use crate::transcript::{Answer, Exchange, Transcript};
use flightproof_certifier::mutation::selected;
use flightproof_core::escape;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// Most bytes of a stranger's text in a step.
const MAX_TEXT: usize = 60;

/// One exchange, told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Line of the question in the recording, from 1.
    pub line: u64,
    /// The stage it belongs to.
    pub stage: &'static str,
    /// What was asked, escaped.
    pub act: String,
    /// What came of it, escaped.
    pub outcome: String,
    /// How it ended.
    pub end: Ending,
    /// Number of the mutant that ran, in the order of their first runs; 0 for a run without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutant: Option<usize>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// As asked; a program with exit status 0.
    Ok,
    /// A program ended otherwise. What that means the stage decides.
    Other,
    /// With a refusal.
    Refused,
}

/// The steps of a recording, in order. Limit counters that are all zero are no step.
pub fn steps(transcript: &Transcript) -> impl Iterator<Item = Step> {
    let mut teller = Teller::default();
    transcript
        .exchanges
        .iter()
        .filter_map(move |exchange| teller.tell(exchange))
}

/// What must be remembered between steps.
#[derive(Default)]
struct Teller {
    mutants: HashMap<u64, usize>,
    seen: HashMap<String, u32>,
}

impl Teller {
    fn tell(&mut self, exchange: &Exchange) -> Option<Step> {
        let asked = &exchange.input;
        let answer = match &exchange.answer {
            Answer::Ok(value) if exchange.op == "events" && idle(value) => return None,
            Answer::Ok(value) => Ok(value),
            Answer::Fail(refusal) => Err(refusal),
        };
        let (stage, act, mutant) = match exchange.op.as_str() {
            "entropy" => ("plan", "draw entropy".to_owned(), None),
            "clock" => ("plan", "read the clock".to_owned(), None),
            "capture" => ("capture", captured(asked), None),
            "checkout" => ("agent", "lay out the baseline".to_owned(), None),
            "crates" => {
                let packages = asked.as_array().map_or(0, Vec::len);
                (
                    "dependency",
                    format!("look up {packages} locked packages"),
                    None,
                )
            }
            "open" => ("open", "open a session".to_owned(), None),
            "events" => ("build", "look at the limits' counters".to_owned(), None),
            "close" => ("close", "close the session".to_owned(), None),
            "call" => self.call(asked),
            other => ("other", escape(other, MAX_TEXT), None),
        };
        let (outcome, end) = match answer {
            Ok(value) => outcome(&exchange.op, value),
            Err(refusal) => (refused(refusal), Ending::Refused),
        };
        Some(Step {
            line: exchange.line + 1,
            stage,
            act,
            outcome,
            end,
            mutant,
        })
    }

    fn call(&mut self, asked: &Value) -> (&'static str, String, Option<usize>) {
        let word = |name: &str| text(asked, name);
        match asked["op"].as_str() {
            Some("put") => {
                let act = format!("send {}, {} bytes", word("place"), number(asked, "bytes"));
                ("build", act, None)
            }
            Some("unpack") => {
                let crates = asked["crates"].as_array().map_or(0, Vec::len);
                (
                    "build",
                    format!("unpack {}", count(crates, "package")),
                    None,
                )
            }
            Some("promote") => (
                "build",
                format!("keep {} as {}", word("from"), word("name")),
                None,
            ),
            Some("exec") if asked["role"] == "build" => {
                let program = word("program");
                let name = program.rsplit('/').next().unwrap_or_default();
                ("build", format!("{name} {}", arguments(asked)), None)
            }
            Some("exec") => self.case(asked),
            Some(other) => ("open", escape(other, MAX_TEXT), None),
            None => ("other", "a call".to_owned(), None),
        }
    }

    fn case(&mut self, asked: &Value) -> (&'static str, String, Option<usize>) {
        let input = format!("case {}", arguments(asked));
        match asked["selector"].as_u64().map(selected) {
            None => {
                let key = format!("{}{}{}", asked["args"], asked["stdin"], asked["files"]);
                let times = self.seen.entry(key).or_default();
                *times += 1;
                let stage = if *times == 1 {
                    "correctness"
                } else {
                    "determinism"
                };
                (stage, input, None)
            }
            Some(0) => ("mutation", format!("no mutant, {input}"), Some(0)),
            Some(selector) => {
                let next = self.mutants.len() + 1;
                let mutant = *self.mutants.entry(selector).or_insert(next);
                (
                    "mutation",
                    format!("mutant {mutant}, {input}"),
                    Some(mutant),
                )
            }
        }
    }
}

fn captured(asked: &Value) -> String {
    format!(
        "take {} on {} out of {}",
        text(asked, "candidate"),
        text(asked, "baseline"),
        text(asked, "repository")
    )
}

/// What a run is told by: its arguments, and what it reads.
fn arguments(asked: &Value) -> String {
    let args: Vec<String> = asked["args"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|arg| arg.as_str().unwrap_or("?").to_owned())
        .collect();
    let mut text = escape(args.join(" "), MAX_TEXT);
    match asked.pointer("/stdin/len").and_then(Value::as_u64) {
        None | Some(0) => {}
        Some(bytes) => text.push_str(&format!(
            "{}< {bytes} bytes",
            if text.is_empty() { "" } else { " " }
        )),
    }
    text
}

fn outcome(op: &str, value: &Value) -> (String, Ending) {
    let told = match op {
        "entropy" => format!("{} bytes", number(value, "len")),
        "clock" => value.as_u64().map_or_else(|| "?".to_owned(), instant),
        "capture" => format!(
            "{}: {}, bundle of {} bytes",
            short(&text(value, "head")),
            count(
                value["changes"].as_array().map_or(0, Vec::len),
                "changed file"
            ),
            number(value, "bundle_bytes")
        ),
        "crates" => format!(
            "{}, {} bytes",
            count(value["files"].as_array().map_or(0, Vec::len), "package"),
            number(value, "bytes")
        ),
        "open" => format!(
            "{}: {} limits read back, {} forbidden acts denied",
            text(value, "backend"),
            value["readings"].as_array().map_or(0, Vec::len),
            value["probes"].as_array().map_or(0, Vec::len)
        ),
        "call" => return reply(value),
        _ => counters(value),
    };
    (told, Ending::Ok)
}

fn reply(value: &Value) -> (String, Ending) {
    let told = match value["reply"].as_str() {
        Some("put") => format!("{} files", number(value, "files")),
        Some("unpacked") => format!("{} packages", number(value, "packages")),
        Some("promoted") => format!(
            "{}, {} bytes",
            short(&text(value, "sha256")),
            number(value, "size")
        ),
        Some("exec") => return ran(value),
        Some("refused") => return (refused(value), Ending::Refused),
        _ => counters(value),
    };
    (told, Ending::Ok)
}

fn ran(value: &Value) -> (String, Ending) {
    let status = &value["status"];
    let (mut told, end) = match status["kind"].as_str() {
        Some("exited") => match status["code"].as_u64() {
            Some(0) => ("exit 0".to_owned(), Ending::Ok),
            code => (format!("exit {}", code.unwrap_or_default()), Ending::Other),
        },
        Some("signaled") => (
            format!("signal {}", number(status, "signal")),
            Ending::Other,
        ),
        other => (escape(other.unwrap_or("?"), MAX_TEXT), Ending::Other),
    };
    for stream in ["stdout", "stderr"] {
        match value[stream]["len"].as_u64() {
            None | Some(0) => {}
            Some(bytes) => told.push_str(&format!(", {bytes} bytes {}", &stream[3..])),
        }
    }
    (told, end)
}

/// A flat object of numbers as `name 1, other 2`; anything else as JSON.
fn counters(value: &Value) -> String {
    match value.as_object() {
        Some(fields) if fields.values().all(Value::is_u64) => fields
            .iter()
            .map(|(name, count)| format!("{} {count}", escape(name, MAX_TEXT)))
            .collect::<Vec<_>>()
            .join(", "),
        _ => escape(value.to_string(), MAX_TEXT),
    }
}

fn refused(refusal: &Value) -> String {
    format!(
        "refused {}: {}",
        text(refusal, "code"),
        escape(refusal["detail"].as_str().unwrap_or_default(), 400)
    )
}

fn idle(counters: &Value) -> bool {
    counters
        .as_object()
        .is_some_and(|fields| fields.values().all(|count| count.as_u64() == Some(0)))
}

fn text(value: &Value, name: &str) -> String {
    escape(value[name].as_str().unwrap_or("?"), MAX_TEXT)
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_default()
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}
