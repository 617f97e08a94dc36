//! Answering from a recording.

use super::recording::{Answer, Exchange, Transcript};
use super::{KeptRefusal, blobs, to_value};
use crate::FlightsCode;
use flightproof_certifier::key::PublicKey;
use flightproof_core::{Digest, Refusal, escape};
use flightproof_evidence::Attestation;
use flightproof_session::fake::{Recording, Step};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// A verified recording that answers in order. What it is asked must be what was asked then.
#[derive(Debug)]
pub struct Player {
    transcript: Transcript,
}

impl Player {
    /// Reads and verifies a recording.
    ///
    /// # Errors
    /// As [`Transcript::open`].
    pub fn open(path: &Path, recorder: &PublicKey) -> Result<Self, Refusal> {
        Transcript::open(path, std::slice::from_ref(recorder)).map(Self::of)
    }

    /// Answers from a recording that was read.
    pub fn of(transcript: Transcript) -> Self {
        Self { transcript }
    }

    /// The plan digest the recording was made with.
    pub fn plan(&self) -> Digest {
        self.transcript.header.plan
    }

    /// Name of the recorded flight.
    pub fn flight(&self) -> &str {
        &self.transcript.header.flight
    }

    /// Digest of the predicate the recorded flight reached, if it came that far.
    pub fn predicate(&self) -> Option<Digest> {
        self.transcript.end.predicate
    }

    /// The verdict the recorded flight reached.
    pub fn verdict(&self) -> &str {
        &self.transcript.end.verdict
    }

    /// Answers the next exchange.
    ///
    /// # Errors
    /// The recorded refusal; `TRANSCRIPT_DIVERGED` if something else was asked then.
    pub fn exchange<I: Serialize, O: DeserializeOwned>(
        &mut self,
        op: &str,
        input: &I,
    ) -> Result<O, Refusal> {
        let asked = to_value(input)?;
        let exchange = self.next(op, asked)?;
        let line = exchange.line;
        match exchange.answer {
            Answer::Ok(value) => {
                let value = self.transcript.attach(line, value)?;
                serde_json::from_value(value)
                    .map_err(|e| self.transcript.broken(line, &e.to_string()))
            }
            Answer::Fail(value) => {
                let kept: KeptRefusal = serde_json::from_value(value)
                    .map_err(|e| self.transcript.broken(line, &e.to_string()))?;
                Err(kept.restore().unwrap_or_else(|code| {
                    self.transcript
                        .broken(line, &format!("unknown refusal code {}", escape(code, 80)))
                }))
            }
        }
    }

    /// Takes out everything that was asked of the session, for a fake one to answer. What else was asked
    /// while it was open stays, in its order.
    ///
    /// # Errors
    /// `TRANSCRIPT_BROKEN` if the session was not closed or its exchanges make no sense.
    pub fn session(&mut self, attestation: Attestation) -> Result<Recording, Refusal> {
        let mut steps = VecDeque::new();
        let mut beside = Vec::new();
        while let Some(exchange) = self.transcript.exchanges.pop_front() {
            if BESIDE_SESSIONS.contains(&exchange.op.as_str()) {
                beside.push(exchange);
                continue;
            }
            let line = exchange.line;
            let input = self.transcript.attach(line, exchange.input)?;
            let Answer::Ok(answer) = exchange.answer else {
                return Err(self
                    .transcript
                    .broken(line, "a session that failed cannot be replayed"));
            };
            let answer = self.transcript.attach(line, answer)?;
            match exchange.op.as_str() {
                "call" => steps.push_back(Step::Call {
                    request: self.typed(line, input)?,
                    reply: self.typed(line, answer)?,
                }),
                "events" => steps.push_back(Step::Events {
                    events: self.typed(line, answer)?,
                }),
                "close" => {
                    beside.into_iter().rev().for_each(|exchange| {
                        self.transcript.exchanges.push_front(exchange);
                    });
                    return Ok(Recording {
                        attestation,
                        steps,
                        closed: self.typed(line, answer)?,
                    });
                }
                other => {
                    return Err(self
                        .transcript
                        .broken(line, &format!("{} inside a session", escape(other, 40))));
                }
            }
        }
        Err(self.transcript.broken(0, "the session was never closed"))
    }

    fn typed<T: DeserializeOwned>(&self, line: u64, value: Value) -> Result<T, Refusal> {
        serde_json::from_value(value).map_err(|e| self.transcript.broken(line, &e.to_string()))
    }

    /// Nothing recorded is left.
    ///
    /// # Errors
    /// `TRANSCRIPT_DIVERGED` naming the first exchange that nobody asked for.
    pub fn finish(&self) -> Result<(), Refusal> {
        match self.transcript.exchanges.front() {
            None => Ok(()),
            Some(exchange) => Err(FlightsCode::TranscriptDiverged
                .refuse(format!(
                    "{}: the recording goes on with {} at line {}, the flight does not",
                    self.transcript.header.flight,
                    escape(&exchange.op, 40),
                    exchange.line + 1
                ))
                .into()),
        }
    }

    fn next(&mut self, op: &str, asked: Value) -> Result<Exchange, Refusal> {
        let flight = self.transcript.header.flight.clone();
        let diverged = |what: String| {
            Refusal::from(FlightsCode::TranscriptDiverged.refuse(format!("{flight}: {what}")))
        };
        let Some(exchange) = self.transcript.exchanges.pop_front() else {
            return Err(diverged(format!(
                "the recording has ended, the flight asks {op}"
            )));
        };
        if exchange.op != op {
            return Err(diverged(format!(
                "line {}: recorded {}, asked {op}",
                exchange.line + 1,
                escape(&exchange.op, 40)
            )));
        }
        let mut seen = BTreeMap::new();
        let lean = blobs::detach(asked, &mut seen).map_err(&diverged)?;
        if lean != exchange.input {
            let (place, recorded, now) = first_difference("", &exchange.input, &lean);
            return Err(diverged(format!(
                "line {}: {op} at {place}: recorded {}, asked {}",
                exchange.line + 1,
                escape(recorded, 120),
                escape(now, 120)
            )));
        }
        Ok(exchange)
    }
}

/// What is asked of others than the session while one is open.
const BESIDE_SESSIONS: [&str; 2] = ["clock", "capture"];

/// The first place where two documents differ, as a JSON pointer, with both texts.
fn first_difference(place: &str, a: &Value, b: &Value) -> (String, String, String) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for key in x.keys().chain(y.keys()) {
                let (left, right) = (
                    x.get(key).unwrap_or(&Value::Null),
                    y.get(key).unwrap_or(&Value::Null),
                );
                if left != right {
                    return first_difference(&format!("{place}/{key}"), left, right);
                }
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            if let Some(i) = x.iter().zip(y).position(|(l, r)| l != r) {
                return first_difference(&format!("{place}/{i}"), &x[i], &y[i]);
            }
        }
        _ => {}
    }
    (
        if place.is_empty() {
            "/".to_owned()
        } else {
            place.to_owned()
        },
        a.to_string(),
        b.to_string(),
    )
}
