//! A recording, read and verified: from its directory, or from the one file it travels as.

use super::line::{End, Header};
use super::reader::{LineFault, Reader};
use super::{blobs, portable};
use crate::{FlightsCode, regular};
use flightproof_certifier::key::{KeyId, PublicKey};
use flightproof_core::{Digest, Refusal, escape};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A verified recording: canonical lines, whole chain, every invoke answered once, and a root that
/// the recorder signed.
#[derive(Debug)]
pub struct Transcript {
    /// Its first line.
    pub header: Header,
    /// Its last line.
    pub end: End,
    /// Everything between, in order.
    pub exchanges: VecDeque<Exchange>,
    /// The key that signed its root.
    pub recorder: KeyId,
    lines: Vec<u8>,
    shelf: Shelf,
}

/// One question of a recording, with its answer.
#[derive(Debug)]
pub struct Exchange {
    /// The line of the question, from 0.
    pub line: u64,
    /// The operation.
    pub op: String,
    /// What was asked.
    pub input: Value,
    /// What was answered.
    pub answer: Answer,
}

/// How a question was answered.
#[derive(Debug)]
pub enum Answer {
    /// With a value.
    Ok(Value),
    /// With a refusal.
    Fail(Value),
}

/// Where the blobs are.
#[derive(Debug)]
pub(super) enum Shelf {
    /// Files of a directory.
    Directory(Directory),
    /// In memory, each held against its name.
    Memory(BTreeMap<Digest, Vec<u8>>),
}

/// A directory of blobs. A recording refers to small ones over and over, such as an empty output.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Small ones that were read, each held against its name.
    small: Mutex<BTreeMap<Digest, Vec<u8>>>,
}

impl Directory {
    /// Largest blob that is kept in bytes.
    const SMALL: u64 = 64 << 10;

    fn at(path: PathBuf) -> Self {
        let small = Mutex::default();
        Self { path, small }
    }

    fn read(&self, digest: &Digest, len: u64) -> Result<Vec<u8>, String> {
        let mut small = self.small.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = small.get(digest).filter(|bytes| bytes.len() as u64 == len) {
            return Ok(bytes.clone());
        }
        let bytes = read_blob(&self.path, digest, len)?;
        if len <= Self::SMALL {
            small.insert(*digest, bytes.clone());
        }
        Ok(bytes)
    }
}

impl Transcript {
    /// Reads a recording from its directory, or from the file it was exported to. One of the keys must
    /// have signed it.
    ///
    /// # Errors
    /// `TRANSCRIPT_MISSING`, `TRANSCRIPT_TOO_NEW`, `TRANSCRIPT_BROKEN` with the line, and the
    /// archive's refusals for a file.
    pub fn open(path: &Path, recorders: &[PublicKey]) -> Result<Self, Refusal> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.is_file() => portable::read(path, recorders),
            _ => {
                let lines = read_lines(path)?;
                let shelf = Shelf::Directory(Directory::at(path.join("blobs")));
                Self::verify(lines, shelf, &path.display().to_string(), recorders)
            }
        }
    }

    /// Verifies lines. `place` is where they came from, for messages.
    pub(super) fn verify(
        bytes: Vec<u8>,
        shelf: Shelf,
        place: &str,
        recorders: &[PublicKey],
    ) -> Result<Self, Refusal> {
        let broken = |line: usize, what: String| {
            let detail = format!("{place} line {}: {what}", line + 1);
            Refusal::from(FlightsCode::TranscriptBroken.refuse(detail))
        };
        let Some(lines) = bytes.strip_suffix(b"\n") else {
            return Err(broken(0, "its last line does not end".to_owned()));
        };
        let mut reader = Reader::default();
        for (number, line) in lines.split(|byte| *byte == b'\n').enumerate() {
            reader.take(number, line).map_err(|fault| match fault {
                LineFault::TooNew(version) => FlightsCode::TranscriptTooNew
                    .refuse(format!("{place}: version {version}"))
                    .into(),
                LineFault::Broken(what) => broken(number, what),
            })?;
        }
        let read = reader.lines;
        let (header, end, exchanges, recorder) = reader
            .finish(recorders)
            .map_err(|what| broken(read, what))?;
        Ok(Self {
            header,
            end,
            exchanges,
            recorder,
            lines: bytes,
            shelf,
        })
    }

    /// The lines as they were read.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Every blob the recording refers to, with its length.
    ///
    /// # Errors
    /// `TRANSCRIPT_BROKEN` for a reference that is none.
    pub fn references(&self) -> Result<BTreeMap<Digest, u64>, Refusal> {
        let mut found = BTreeMap::new();
        for exchange in &self.exchanges {
            let (Answer::Ok(answer) | Answer::Fail(answer)) = &exchange.answer;
            blobs::references(&exchange.input, &mut found)
                .and_then(|()| blobs::references(answer, &mut found))
                .map_err(|what| self.broken(exchange.line, &what))?;
        }
        Ok(found)
    }

    /// The bytes of a blob.
    ///
    /// # Errors
    /// That they are missing, or others than its name says.
    pub fn blob(&self, digest: &Digest, len: u64) -> Result<Vec<u8>, String> {
        match &self.shelf {
            Shelf::Directory(directory) => directory.read(digest, len),
            Shelf::Memory(blobs) => match blobs.get(digest) {
                Some(bytes) if bytes.len() as u64 == len => Ok(bytes.clone()),
                Some(_) => Err(format!("blob {digest} has another length")),
                None => Err(format!("blob {digest} is missing")),
            },
        }
    }

    /// Puts the bytes of blobs back where they are referred to.
    ///
    /// # Errors
    /// `TRANSCRIPT_BROKEN` naming the line.
    pub fn attach(&self, line: u64, value: Value) -> Result<Value, Refusal> {
        blobs::attach(value, 0, &mut |digest, len| self.blob(digest, len))
            .map_err(|what| self.broken(line, &what))
    }

    pub(super) fn broken(&self, line: u64, what: &str) -> Refusal {
        let flight = escape(&self.header.flight, 80);
        FlightsCode::TranscriptBroken
            .refuse(format!("{flight} line {}: {what}", line + 1))
            .into()
    }
}

/// Largest transcript file in bytes.
pub(super) const MAX_TRANSCRIPT: u64 = 256 << 20;

fn read_lines(directory: &Path) -> Result<Vec<u8>, Refusal> {
    let path = directory.join("transcript.jsonl");
    let refuse = |code: FlightsCode, what: &dyn std::fmt::Display| {
        Refusal::from(code.refuse(format!("{}: {what}", path.display())))
    };
    let bytes = regular::read_arrival(&path, MAX_TRANSCRIPT).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => refuse(FlightsCode::TranscriptMissing, &e),
        _ => refuse(FlightsCode::TranscriptBroken, &e),
    })?;
    if bytes.len() as u64 > MAX_TRANSCRIPT {
        let what = format!("more than {MAX_TRANSCRIPT} bytes");
        return Err(refuse(FlightsCode::TranscriptBroken, &what));
    }
    Ok(bytes)
}

fn read_blob(directory: &Path, digest: &Digest, len: u64) -> Result<Vec<u8>, String> {
    let bytes = regular::read_arrival(&directory.join(digest.to_string()), len)
        .map_err(|e| format!("blob {digest}: {e}"))?;
    if bytes.len() as u64 != len || Digest::of(&bytes) != *digest {
        return Err(format!("blob {digest} has other bytes"));
    }
    Ok(bytes)
}
