//! Writing a recording.

use super::line::{Content, End, Event, Header, Line, chain, root_statement};
use super::{KeptRefusal, TRANSCRIPT_FORMAT, TRANSCRIPT_VERSION, blobs, to_value};
use crate::FlightsCode;
use flightproof_certifier::dsse;
use flightproof_certifier::key::Signer;
use flightproof_core::{Digest, Refusal, canonical_json};
use rustix::fs::{CWD, RenameFlags};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A recording in the making. It is kept in memory and written whole by [`Recorder::finish`], so
/// that a killed flight leaves no half of one.
pub struct Recorder {
    directory: PathBuf,
    flight: String,
    lines: Vec<u8>,
    blobs: BTreeMap<Digest, Vec<u8>>,
    next: u64,
    exchanges: u64,
    hash: Digest,
}

impl Recorder {
    /// Starts a recording of `flight` into `directory`, which is replaced at the end.
    ///
    /// # Errors
    /// Never for a header of ours; the signature is that of every write.
    pub fn start(directory: &Path, flight: &str, plan: Digest) -> Result<Self, Refusal> {
        let mut recorder = Self {
            directory: directory.to_owned(),
            flight: flight.to_owned(),
            lines: Vec::new(),
            blobs: BTreeMap::new(),
            next: 0,
            exchanges: 0,
            hash: Digest::from_bytes([0; 32]),
        };
        recorder.push(Content::Header(Header {
            format: TRANSCRIPT_FORMAT.to_owned(),
            version: format!("{}.{}", TRANSCRIPT_VERSION.0, TRANSCRIPT_VERSION.1),
            flight: flight.to_owned(),
            plan,
            fixture: true,
        }))?;
        Ok(recorder)
    }

    /// Notes what is about to be asked. Returns the line, for its answer.
    ///
    /// # Errors
    /// The input has no canonical form.
    pub fn invoke<I: Serialize>(&mut self, op: &str, input: &I) -> Result<u64, Refusal> {
        let v = self.detach(to_value(input)?)?;
        self.push(Content::Invoke(Event {
            op: Some(op.to_owned()),
            of: None,
            v,
        }))
    }

    /// Notes the answer.
    ///
    /// # Errors
    /// The answer has no canonical form.
    pub fn ok<O: Serialize>(&mut self, of: u64, output: &O) -> Result<(), Refusal> {
        let v = self.detach(to_value(output)?)?;
        self.exchanges += 1;
        self.push(Content::Ok(Event {
            op: None,
            of: Some(of),
            v,
        }))
        .map(drop)
    }

    /// Notes the refusal.
    ///
    /// # Errors
    /// The refusal has no canonical form.
    pub fn fail(&mut self, of: u64, refusal: &Refusal) -> Result<(), Refusal> {
        let v = to_value(&KeptRefusal::from(refusal))?;
        self.exchanges += 1;
        self.push(Content::Fail(Event {
            op: None,
            of: Some(of),
            v,
        }))
        .map(drop)
    }

    /// Signs the root and writes everything to the directory.
    ///
    /// # Errors
    /// `TRANSCRIPT_WRITE` if the directory cannot be written.
    pub fn finish(
        &mut self,
        verdict: &str,
        predicate: Option<Digest>,
        key: &dyn Signer,
    ) -> Result<(), Refusal> {
        let failed = |e: String| Refusal::from(FlightsCode::TranscriptWrite.refuse(e));
        let statement = root_statement(
            &self.hash,
            &self.flight,
            self.exchanges,
            verdict,
            predicate.as_ref(),
        )
        .map_err(failed)?;
        let envelope = dsse::sign(dsse::PAYLOAD_TYPE, &statement, key)?;
        let root = String::from_utf8(envelope).map_err(|e| failed(e.to_string()))?;
        let end = End {
            exchanges: self.exchanges,
            verdict: verdict.to_owned(),
            predicate,
            root,
        };
        self.push(Content::End(end))?;
        self.write().map_err(|e| {
            FlightsCode::TranscriptWrite
                .refuse(format!("{}: {e}", self.directory.display()))
                .into()
        })
    }

    /// Writes a new directory and puts it in the old one's place in one step.
    fn write(&self) -> std::io::Result<()> {
        let mut new = self.directory.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        remove(&new)?;
        let blobs = new.join("blobs");
        std::fs::create_dir_all(&blobs)?;
        for (digest, bytes) in &self.blobs {
            std::fs::write(blobs.join(digest.to_string()), bytes)?;
        }
        std::fs::write(new.join("transcript.jsonl"), &self.lines)?;
        if !self.directory.exists() {
            return std::fs::rename(&new, &self.directory);
        }
        let exchange = RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(CWD, &new, CWD, &self.directory, exchange)?;
        remove(&new)
    }

    fn detach(&mut self, value: Value) -> Result<Value, Refusal> {
        blobs::detach(value, &mut self.blobs)
            .map_err(|e| FlightsCode::TranscriptWrite.refuse(e).into())
    }

    fn push(&mut self, content: Content) -> Result<u64, Refusal> {
        let i = self.next;
        let failed = |e: String| Refusal::from(FlightsCode::TranscriptWrite.refuse(e));
        let h = Digest::from_bytes([0; 32]);
        let mut line = to_value(&Line { i, content, h })?;
        let canonical = |line: &Value| canonical_json(line).map_err(|e| failed(e.to_string()));
        let fields = line
            .as_object_mut()
            .ok_or_else(|| failed("a line that is no object".to_owned()))?;
        fields.remove("h");
        let h = chain(&self.hash, &canonical(&line)?);
        line["h"] = to_value(&h)?;
        let bytes = canonical(&line)?;
        self.lines.extend_from_slice(&bytes);
        self.lines.push(b'\n');
        self.hash = h;
        self.next += 1;
        Ok(i)
    }
}

/// Removes a directory. One that is not there is no error.
fn remove(directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
