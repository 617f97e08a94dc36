//! Transcripts: what crossed a boundary during a flight, so that the flight can be flown again
//! without the machine it flew on.
//!
//! A recording is a directory: `transcript.jsonl`, one canonical JSON object per line, each bound
//! to the one before by a hash, the last one signed; and `blobs/<sha256>` for bytes. Shape and
//! limits are in `docs/formats.md`.

mod blobs;
mod line;
mod player;
mod portable;
mod reader;
mod recorder;
mod recording;
mod session;

pub use line::{End, Event, Header, TRANSCRIPT_FORMAT, TRANSCRIPT_VERSION};
pub use player::Player;
pub use portable::{lay_out, pack};
pub use recorder::Recorder;
pub use recording::{Answer, Exchange, Transcript};

use crate::registry;
use flightproof_certifier::key::Signer;
use flightproof_core::{Bytes, Digest, Refusal};
use flightproof_session::Session;
use flightproof_session::fake::FakeSession;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use session::Recorded;
use std::cell::RefCell;
use std::rc::Rc;

/// Where the answers of a flight come from.
pub enum Tape {
    /// From the world; nothing is kept.
    Off,
    /// From the world; every exchange is written down.
    Record(Rc<RefCell<Recorder>>),
    /// From a recording; the world is not asked.
    Replay(Box<Player>),
}

impl Tape {
    /// A tape that writes down.
    pub fn record(recorder: Recorder) -> Self {
        Self::Record(Rc::new(RefCell::new(recorder)))
    }

    /// A tape that answers.
    pub fn replay(player: Player) -> Self {
        Self::Replay(Box::new(player))
    }

    /// One exchange with the world: asked, or looked up.
    ///
    /// # Errors
    /// What `act` refused, what the recording says it refused, a recording that asks something
    /// else at this place, or a recording that could not be written: a flight that cannot be
    /// recorded fails.
    pub fn exchange<I, O>(
        &mut self,
        op: &str,
        input: &I,
        act: impl FnOnce() -> Result<O, Refusal>,
    ) -> Result<O, Refusal>
    where
        I: Serialize,
        O: Serialize + DeserializeOwned,
    {
        match self {
            Self::Off => act(),
            Self::Record(recorder) => {
                let invoked = recorder.borrow_mut().invoke(op, input)?;
                let outcome = act();
                match &outcome {
                    Ok(value) => recorder.borrow_mut().ok(invoked, value)?,
                    Err(refusal) => recorder.borrow_mut().fail(invoked, refusal)?,
                }
                outcome
            }
            Self::Replay(player) => player.exchange(op, input),
        }
    }

    /// 32 bytes that nobody could know.
    ///
    /// # Errors
    /// As [`Tape::exchange`]; `TRANSCRIPT_BROKEN` for another number of bytes.
    pub fn entropy(&mut self) -> Result<[u8; 32], Refusal> {
        let drawn: Bytes = self.exchange("entropy", &(), || {
            crate::state::entropy().map(|e| Bytes(e.to_vec()))
        })?;
        <[u8; 32]>::try_from(&drawn[..]).map_err(|_| {
            crate::FlightsCode::TranscriptBroken
                .refuse("entropy of another length than 32 bytes")
                .into()
        })
    }

    /// The time, in seconds since 1970.
    ///
    /// # Errors
    /// As [`Tape::exchange`].
    pub fn clock(&mut self) -> Result<u64, Refusal> {
        self.exchange("clock", &(), || Ok(crate::state::unix_seconds()))
    }

    /// Opens the session: a real one, one that is written down, or the recorded one.
    ///
    /// # Errors
    /// As [`Tape::exchange`].
    pub fn session(
        &mut self,
        seed: &[u8; 32],
        open: impl FnOnce() -> Result<Box<dyn Session>, Refusal>,
    ) -> Result<Box<dyn Session>, Refusal> {
        let seed = Bytes(seed.to_vec());
        match self {
            Self::Off => open(),
            Self::Record(recorder) => {
                let invoked = recorder.borrow_mut().invoke("open", &seed)?;
                match open() {
                    Ok(session) => {
                        recorder.borrow_mut().ok(invoked, session.attestation())?;
                        Ok(Box::new(Recorded::new(session, Rc::clone(recorder))))
                    }
                    Err(refusal) => {
                        recorder.borrow_mut().fail(invoked, &refusal)?;
                        Err(refusal)
                    }
                }
            }
            Self::Replay(player) => {
                let attestation = player.exchange("open", &seed)?;
                let recording = player.session(attestation)?;
                Ok(Box::new(FakeSession::new(recording)))
            }
        }
    }

    /// Ends the flight: signs and writes a recording, or makes sure that a replayed one was used up.
    ///
    /// # Errors
    /// `TRANSCRIPT_WRITE`, `TRANSCRIPT_DIVERGED`.
    pub fn finish(
        &mut self,
        verdict: &str,
        predicate: Option<Digest>,
        key: Option<&dyn Signer>,
    ) -> Result<(), Refusal> {
        match (self, key) {
            (Self::Record(recorder), Some(key)) => {
                recorder.borrow_mut().finish(verdict, predicate, key)
            }
            (Self::Replay(player), _) => player.finish(),
            (_, _) => Ok(()),
        }
    }
}

/// A refusal as a transcript keeps it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRefusal {
    /// Its code.
    pub code: String,
    /// Its detail.
    pub detail: String,
    /// Its notes.
    pub notes: Vec<String>,
}

impl From<&Refusal> for KeptRefusal {
    fn from(refusal: &Refusal) -> Self {
        Self {
            code: refusal.code().to_owned(),
            detail: refusal.detail.clone(),
            notes: refusal.notes.clone(),
        }
    }
}

impl KeptRefusal {
    /// The refusal it was.
    ///
    /// # Errors
    /// The code if this program does not know it.
    pub fn restore(self) -> Result<Refusal, String> {
        match registry::find(&self.code) {
            Some(explanation) => Ok(Refusal {
                explanation,
                detail: self.detail,
                notes: self.notes,
            }),
            None => Err(self.code),
        }
    }
}

fn to_value<T: Serialize>(value: &T) -> Result<Value, Refusal> {
    serde_json::to_value(value).map_err(|e| {
        crate::FlightsCode::TranscriptWrite
            .refuse(format!("not JSON: {e}"))
            .into()
    })
}
