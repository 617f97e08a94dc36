//! Reading a recording, and answering from it.

use super::line::{End, Header};
use super::reader::{LineFault, Reader};
use super::{KeptRefusal, blobs, to_value};
use crate::FlightsCode;
use flightproof_certifier::key::PublicKey;
use flightproof_core::{Digest, Refusal, escape};
use flightproof_evidence::Attestation;
use flightproof_session::fake::{Recording, Step};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A verified recording that answers in order. What it is asked must be what was asked then.
#[derive(Debug)]
pub struct Player {
    header: Header,
    end: End,
    exchanges: VecDeque<Exchange>,
    directory: PathBuf,
}

/// One question of a recording, with its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) line: u64,
    pub(super) op: String,
    pub(super) input: Value,
    pub(super) answer: Answer,
}

/// How a question was answered.
#[derive(Debug)]
pub(super) enum Answer {
    Ok(Value),
    Fail(Value),
}

impl Player {
    /// Reads and verifies a recording: canonical lines, whole chain, every invoke answered once,
    /// and a root signed by `recorder`.
    ///
    /// # Errors
    /// `TRANSCRIPT_MISSING`, `TRANSCRIPT_TOO_NEW`, `TRANSCRIPT_BROKEN` with the line.
    pub fn open(directory: &Path, recorder: &PublicKey) -> Result<Self, Refusal> {
        let bytes = read_lines(directory)?;
        let broken = |line: usize, what: String| {
            Refusal::from(FlightsCode::TranscriptBroken.refuse(format!(
                "{} line {}: {what}",
                directory.display(),
                line + 1
            )))
        };
        let mut reader = Reader::default();
        if !bytes.ends_with(b"\n") {
            return Err(broken(0, "its last line does not end".to_owned()));
        }
        let lines = bytes.strip_suffix(b"\n").unwrap_or_default();
        for (number, line) in lines.split(|byte| *byte == b'\n').enumerate() {
            reader.take(number, line).map_err(|fault| match fault {
                LineFault::TooNew(version) => FlightsCode::TranscriptTooNew
                    .refuse(format!("{}: version {version}", directory.display()))
                    .into(),
                LineFault::Broken(what) => broken(number, what),
            })?;
        }
        let lines = reader.lines;
        let (header, end, exchanges) = reader
            .finish(recorder)
            .map_err(|what| broken(lines, what))?;
        Ok(Self {
            header,
            end,
            exchanges,
            directory: directory.to_owned(),
        })
    }

    /// The plan digest the recording was made with.
    pub fn plan(&self) -> Digest {
        self.header.plan
    }

    /// Name of the recorded flight.
    pub fn flight(&self) -> &str {
        &self.header.flight
    }

    /// Digest of the predicate the recorded flight reached, if it came that far.
    pub fn predicate(&self) -> Option<Digest> {
        self.end.predicate
    }

    /// The verdict the recorded flight reached.
    pub fn verdict(&self) -> &str {
        &self.end.verdict
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
                let value = self.attach(line, value)?;
                serde_json::from_value(value).map_err(|e| self.broken(line, &e.to_string()))
            }
            Answer::Fail(value) => {
                let kept: KeptRefusal =
                    serde_json::from_value(value).map_err(|e| self.broken(line, &e.to_string()))?;
                Err(kept.restore().unwrap_or_else(|code| {
                    self.broken(line, &format!("unknown refusal code {}", escape(code, 80)))
                }))
            }
        }
    }

    /// Takes out everything that was asked of the session, for a fake one to answer.
    ///
    /// # Errors
    /// `TRANSCRIPT_BROKEN` if the session was not closed or its exchanges make no sense.
    pub fn session(&mut self, attestation: Attestation) -> Result<Recording, Refusal> {
        let mut steps = VecDeque::new();
        while let Some(exchange) = self.exchanges.pop_front() {
            let line = exchange.line;
            let input = self.attach(line, exchange.input)?;
            let Answer::Ok(answer) = exchange.answer else {
                return Err(self.broken(line, "a session that failed cannot be replayed"));
            };
            let answer = self.attach(line, answer)?;
            match exchange.op.as_str() {
                "call" => steps.push_back(Step::Call {
                    request: self.typed(line, input)?,
                    reply: self.typed(line, answer)?,
                }),
                "events" => steps.push_back(Step::Events {
                    events: self.typed(line, answer)?,
                }),
                "close" => {
                    return Ok(Recording {
                        attestation,
                        steps,
                        closed: self.typed(line, answer)?,
                    });
                }
                other => {
                    return Err(
                        self.broken(line, &format!("{} inside a session", escape(other, 40)))
                    );
                }
            }
        }
        Err(self.broken(0, "the session was never closed"))
    }

    fn typed<T: DeserializeOwned>(&self, line: u64, value: Value) -> Result<T, Refusal> {
        serde_json::from_value(value).map_err(|e| self.broken(line, &e.to_string()))
    }

    /// Nothing recorded is left.
    ///
    /// # Errors
    /// `TRANSCRIPT_DIVERGED` naming the first exchange that nobody asked for.
    pub fn finish(&self) -> Result<(), Refusal> {
        match self.exchanges.front() {
            None => Ok(()),
            Some(exchange) => Err(FlightsCode::TranscriptDiverged
                .refuse(format!(
                    "{}: the recording goes on with {} at line {}, the flight does not",
                    self.header.flight,
                    escape(&exchange.op, 40),
                    exchange.line + 1
                ))
                .into()),
        }
    }

    fn next(&mut self, op: &str, asked: Value) -> Result<Exchange, Refusal> {
        let flight = self.header.flight.clone();
        let diverged = |what: String| {
            Refusal::from(FlightsCode::TranscriptDiverged.refuse(format!("{flight}: {what}")))
        };
        let Some(exchange) = self.exchanges.pop_front() else {
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

    fn attach(&self, line: u64, value: Value) -> Result<Value, Refusal> {
        let directory = self.directory.join("blobs");
        blobs::attach(value, 0, &mut |digest, len| {
            read_blob(&directory, digest, len)
        })
        .map_err(|what| self.broken(line, &what))
    }

    fn broken(&self, line: u64, what: &str) -> Refusal {
        FlightsCode::TranscriptBroken
            .refuse(format!("{} line {}: {what}", self.header.flight, line + 1))
            .into()
    }
}

/// Largest transcript file in bytes.
const MAX_TRANSCRIPT: u64 = 256 << 20;

fn read_lines(directory: &Path) -> Result<Vec<u8>, Refusal> {
    let path = directory.join("transcript.jsonl");
    let bytes = match read_file(&path, MAX_TRANSCRIPT) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let detail = format!("{}: {e}", path.display());
            return Err(FlightsCode::TranscriptMissing.refuse(detail).into());
        }
        Err(e) => {
            let detail = format!("{}: {e}", path.display());
            return Err(FlightsCode::TranscriptBroken.refuse(detail).into());
        }
    };
    if bytes.len() as u64 > MAX_TRANSCRIPT {
        return Err(FlightsCode::TranscriptBroken
            .refuse(format!(
                "{}: more than {MAX_TRANSCRIPT} bytes",
                path.display()
            ))
            .into());
    }
    Ok(bytes)
}

fn read_blob(directory: &Path, digest: &Digest, len: u64) -> Result<Vec<u8>, String> {
    let bytes = read_file(&directory.join(digest.to_string()), len)
        .map_err(|e| format!("blob {digest}: {e}"))?;
    if bytes.len() as u64 != len || Digest::of(&bytes) != *digest {
        return Err(format!("blob {digest} has other bytes"));
    }
    Ok(bytes)
}

/// Reads a file, one byte more than `limit` at most. A recording is a stranger's: a link could lead
/// out of it, and a pipe in the place of a file would wait for ever.
fn read_file(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

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
