//! What changed in meaning between two recordings of a flight.
//!
//! Each recording becomes a map of places to values. Values that differ from flight to flight by
//! design are held against their type and replaced by an alias; the order of what a flight
//! shuffles does not count, since a place is named by what was asked there.

use crate::transcript::{Answer, Exchange, Transcript};
use flightproof_core::{Digest, escape};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of a value in a difference.
const MAX_VALUE: usize = 160;

/// What came of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The two are the same bytes.
    pub identical: bool,
    /// Number of places that were compared.
    pub places: usize,
    /// Number of values that were held against their type only.
    pub aliased: usize,
    /// Where the meaning differs, in the order of the flight.
    pub differences: Vec<Difference>,
}

/// One place where the meaning differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What the place speaks of.
    pub about: About,
    /// Which place, escaped.
    pub place: String,
    /// What the first recording has there, escaped; absent if it has nothing.
    pub left: Option<String>,
    /// What the second has.
    pub right: Option<String>,
}

/// What a place speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// What was asked: plan, baseline, candidate, grants.
    Request,
    /// Where it flew: engine, kernel, toolchain, limits.
    Environment,
    /// What the candidate is and did.
    Candidate,
    /// How the flight ended.
    Verdict,
}

/// Compares two verified recordings.
pub fn compare(left: &Transcript, right: &Transcript) -> Comparison {
    let (a, b) = (Meaning::of(left), Meaning::of(right));
    let places: BTreeSet<&Place> = a.places.keys().chain(b.places.keys()).collect();
    let shown = |value: Option<&String>| value.map(|value| escape(value, MAX_VALUE));
    let differences = places
        .iter()
        .filter(|place| a.places.get(**place) != b.places.get(**place))
        .map(|place| Difference {
            about: place.0,
            place: escape(&place.1, MAX_VALUE),
            left: shown(a.places.get(*place)),
            right: shown(b.places.get(*place)),
        })
        .collect();
    Comparison {
        identical: left.lines() == right.lines(),
        places: places.len(),
        aliased: a.aliased.max(b.aliased),
        differences,
    }
}

type Place = (About, String);

#[derive(Default)]
struct Meaning {
    places: BTreeMap<Place, String>,
    aliased: usize,
    /// Sessions so far: the candidate's, then the baseline's.
    sessions: usize,
    builds: usize,
    sent: BTreeMap<String, usize>,
    runs: BTreeMap<String, usize>,
    /// What a case came to without a mutant, by its input.
    answers: BTreeMap<String, String>,
    mutants: BTreeMap<u64, bool>,
}

impl Meaning {
    fn of(transcript: &Transcript) -> Self {
        let mut meaning = Self::default();
        let (header, end) = (&transcript.header, &transcript.end);
        meaning.put(About::Request, "flight", header.flight.clone());
        meaning.put(About::Request, "plan", header.plan.to_string());
        for exchange in &transcript.exchanges {
            match &exchange.answer {
                Answer::Ok(answer) => meaning.exchange(exchange, answer),
                Answer::Fail(refusal) => {
                    meaning.flatten(About::Verdict, &format!("{} refused", exchange.op), refusal);
                }
            }
        }
        if !meaning.mutants.is_empty() {
            let noticed = meaning.mutants.values().filter(|noticed| **noticed).count();
            meaning.put(
                About::Candidate,
                "mutants run",
                meaning.mutants.len().to_string(),
            );
            meaning.put(About::Candidate, "mutants noticed", noticed.to_string());
        }
        meaning.put(About::Verdict, "end", end.verdict.clone());
        let certified = if end.predicate.is_some() {
            "reached"
        } else {
            "none"
        };
        meaning.put(About::Verdict, "predicate", certified.to_owned());
        meaning
    }

    fn exchange(&mut self, exchange: &Exchange, answer: &Value) {
        let asked = &exchange.input;
        match exchange.op.as_str() {
            "entropy" => self.alias("entropy", answer["len"] == 32),
            "clock" => self.alias("clock", answer.is_u64()),
            "capture" => {
                self.flatten(About::Request, "capture", asked);
                self.flatten(About::Candidate, "captured", answer);
            }
            "crates" => self.flatten(About::Candidate, "dependencies", answer),
            "open" => {
                self.sessions += 1;
                self.alias("seed", asked["len"] == 32);
                self.session(answer);
            }
            "call" => self.call(asked, answer),
            "events" => self.counters(answer),
            _ => self.flatten(About::Environment, &exchange.op, answer),
        }
    }

    fn session(&mut self, attestation: &Value) {
        let named = |list: &str, key: &str| -> Vec<(String, Value)> {
            let items = attestation[list].as_array().into_iter().flatten();
            items
                .map(|item| {
                    (
                        format!("{list} {}", item[key].as_str().unwrap_or("?")),
                        item.clone(),
                    )
                })
                .collect()
        };
        for (place, item) in [named("readings", "name"), named("probes", "act")].concat() {
            self.flatten(About::Environment, &place, &item);
        }
        for (name, value) in attestation.as_object().into_iter().flatten() {
            match name.as_str() {
                "readings" | "probes" => {}
                "session" => {
                    let id = value.as_str().unwrap_or_default();
                    let hex = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
                    self.alias("session", hex);
                }
                _ => self.flatten(About::Environment, name, value),
            }
        }
    }

    fn call(&mut self, asked: &Value, answer: &Value) {
        if answer["reply"] == "refused" {
            return self.flatten(About::Verdict, "call refused", answer);
        }
        match asked["op"].as_str() {
            Some("put") => self.sent(asked, answer),
            Some("exec") if asked["role"] == "build" => self.build(asked, answer),
            Some("exec") => self.case(asked, answer),
            // Linked with a crate whose name is drawn for each flight: its bytes are volatile.
            Some("promote") => {
                self.alias("program", answer["sha256"].as_str().is_some_and(is_digest));
                let from = self.guardless(asked["from"].as_str().unwrap_or_default());
                let name = asked["name"].as_str().unwrap_or("?");
                self.put(About::Candidate, &format!("program {name}"), from);
            }
            _ => self.flatten(
                About::Environment,
                asked["op"].as_str().unwrap_or("?"),
                answer,
            ),
        }
    }

    fn sent(&mut self, asked: &Value, answer: &Value) {
        let place = asked["place"].as_str().unwrap_or("?").to_owned();
        let number = self.sent.entry(place.clone()).or_default();
        *number += 1;
        let name = format!("sent {place} {number}");
        self.put(
            About::Candidate,
            &format!("{name} files"),
            answer["files"].to_string(),
        );
        match place.as_str() {
            // The guard's name stands in these files.
            "extra" | "overlay" => {
                self.alias("overlay", asked["snapshot"].as_str().is_some_and(is_digest));
            }
            _ => self.put(
                About::Candidate,
                &format!("{name} snapshot"),
                asked["snapshot"].to_string(),
            ),
        }
    }

    fn build(&mut self, asked: &Value, answer: &Value) {
        self.builds += 1;
        let name = format!("build {}", self.builds);
        for field in ["program", "args", "env"] {
            let text = self.guardless(&asked[field].to_string());
            self.put(About::Environment, &format!("{name} {field}"), text);
        }
        self.flatten(
            About::Candidate,
            &format!("{name} ended"),
            &answer["status"],
        );
    }

    fn case(&mut self, asked: &Value, answer: &Value) {
        let input = format!(
            "{} < {} in {} env {}",
            asked["args"], asked["stdin"]["$blob"], asked["files"], asked["env"]
        );
        let came_to = format!(
            "{} out {} err {} whole {}",
            answer["status"],
            answer["stdout"]["$blob"],
            answer["stderr"]["$blob"],
            answer["complete"]
        );
        match asked["selector"].as_u64() {
            None => {
                let times = self.runs.entry(input.clone()).or_default();
                *times += 1;
                let place = format!("case {} run {times} ({})", asked["args"], label(&input));
                self.answers.insert(input, came_to.clone());
                self.put(About::Candidate, &place, came_to);
            }
            Some(selector) => {
                self.alias("selector", true);
                let noticed = self.answers.get(&input) != Some(&came_to);
                if selector != 0 {
                    *self.mutants.entry(selector).or_default() |= noticed;
                }
            }
        }
    }

    fn counters(&mut self, answer: &Value) {
        for (name, count) in answer.as_object().into_iter().flatten() {
            if count.as_u64() != Some(0) {
                self.put(
                    About::Candidate,
                    &format!("limit {name} met"),
                    "yes".to_owned(),
                );
            }
        }
    }

    /// A value that differs by design. One that is not even of its type is a difference.
    fn alias(&mut self, what: &str, sound: bool) {
        self.aliased += 1;
        if !sound {
            let place = format!("{what} {}", self.aliased);
            self.put(About::Verdict, &place, "not of its type".to_owned());
        }
    }

    /// The text with the guard crate's drawn name replaced.
    fn guardless(&mut self, text: &str) -> String {
        const DRAWN: usize = 16;
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("fp_") {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let drawn = from.as_bytes().get(3..3 + DRAWN);
            if drawn.is_some_and(|name| name.iter().all(u8::is_ascii_hexdigit)) {
                self.aliased += 1;
                out.push_str("<guard>");
                rest = &from[3 + DRAWN..];
            } else {
                out.push_str("fp_");
                rest = &from[3..];
            }
        }
        out + rest
    }

    fn flatten(&mut self, about: About, place: &str, value: &Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (name, value) in fields {
                    self.flatten(about, &format!("{place}/{name}"), value);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (i, value) in items.iter().enumerate() {
                    self.flatten(about, &format!("{place}/{i}"), value);
                }
            }
            other => self.put(about, place, other.to_string()),
        }
    }

    fn put(&mut self, about: About, place: &str, value: String) {
        // What a second session was like does not hide what the first one was.
        let place = match about {
            About::Environment if self.sessions > 1 => {
                format!("session {}: {place}", self.sessions)
            }
            _ => place.to_owned(),
        };
        self.places.insert((about, place), value);
    }
}

fn is_digest(text: &str) -> bool {
    text.parse::<Digest>().is_ok()
}

/// Tells inputs with equal arguments apart.
fn label(input: &str) -> String {
    Digest::of(input.as_bytes()).to_string()[..8].to_owned()
}
