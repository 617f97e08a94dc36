//! A whole session as it went over an engine's line: every piece of bytes in both directions, cut as it
//! came and after the pause before it. Played again, it goes through the decoder, the channel and the
//! checks of a session on an engine; only the engine is not there.
//!
//! Strict: what is asked must be what was asked, byte for byte and in its order, once and to the end.

use super::attach::{Far, Line};
use super::inside;
use crate::conversation::{converse, lost};
use crate::opening::{check_hello, compiler, probe};
use crate::{LimitEvents, Session, SessionCode, SessionError};
use flightproof_core::Bytes;
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::channel::HostChannel;
use flightproof_frame::protocol::{Reply, Request};
use serde::{Deserialize, Serialize};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A session that can be played again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tape {
    /// What it was.
    pub attestation: Attestation,
    /// What went over the line once our program ran.
    pub pieces: Vec<Piece>,
    /// How it was closed.
    pub closed: Closed,
}

/// Bytes that came or went at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Who sent them.
    pub from: Side,
    /// Time since the piece before, in microseconds.
    pub pause_us: u64,
    /// Of the engine: its frames, with headers. None: it ended its stream.
    pub bytes: Bytes,
}

/// An end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// This side.
    Host,
    /// The engine.
    Engine,
}

/// Takes down what goes over a line.
#[derive(Debug, Clone)]
pub struct Recorder(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    last: Option<Instant>,
    pieces: Vec<Piece>,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    pub(super) fn note(&self, from: Side, bytes: &[u8]) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let pause = taken
            .last
            .replace(now)
            .map_or(Duration::ZERO, |last| now - last);
        let pause_us = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        let bytes = Bytes(bytes.to_vec());
        taken.pieces.push(Piece {
            from,
            pause_us,
            bytes,
        });
    }

    /// The tape of a session that was closed in this way.
    #[must_use]
    pub fn tape(&self, attestation: Attestation, closed: Closed) -> Tape {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Tape {
            attestation,
            pieces: taken.pieces.clone(),
            closed,
        }
    }
}

/// How long a played session may last: no recorded one is longer.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// A session that plays a [`Tape`].
#[derive(Debug)]
pub struct TapedSession {
    attestation: Attestation,
    closed: Closed,
    channel: Option<HostChannel>,
    line: Option<Line>,
    player: Option<JoinHandle<Result<(), SessionError>>>,
    ended: Option<Result<(), SessionError>>,
    deadline: Instant,
}

impl TapedSession {
    /// Greeted, read and tried as every session on an engine.
    ///
    /// # Errors
    /// What a session says that is not as it should be, and `FAKE_MISMATCH` for a tape of another course.
    pub fn open(tape: Tape) -> Result<Self, SessionError> {
        let io = |e: &dyn std::fmt::Display| SessionCode::HostIo.refuse(format_args!("tape: {e}"));
        let (ours, theirs) = UnixStream::pair().map_err(|e| io(&e))?;
        let pieces = tape.pieces;
        let player = std::thread::Builder::new()
            .name("tape".to_owned())
            .spawn(move || play(theirs, &pieces))
            .map_err(|e| io(&e))?;
        let (line, output, input) = Line::open(Far::Here(ours), Vec::new(), None)?;
        let channel = HostChannel::new(output, input).map_err(|e| lost(&e, false))?;
        let mut session = Self {
            attestation: tape.attestation,
            closed: tape.closed,
            channel: Some(channel),
            line: Some(line),
            player: Some(player),
            ended: None,
            deadline: Instant::now() + LIFETIME,
        };
        let hello = session
            .heard(|channel, deadline| channel.hello(deadline).map_err(|e| lost(&e, false)))?;
        check_hello(&hello)?;
        inside::ask(&mut session)?;
        probe(&mut session)?;
        compiler(&mut session)?;
        super::open::linker(&mut session)?;
        session.events()?;
        Ok(session)
    }

    /// What the line says, or why there is nothing more to hear.
    fn heard<T>(
        &mut self,
        ask: impl FnOnce(&mut HostChannel, Instant) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let channel = self
            .channel
            .as_mut()
            .ok_or_else(|| SessionCode::SessionClosed.refuse("the replayed session is closed"))?;
        ask(channel, self.deadline).map_err(|error| match self.end() {
            Err(cause) if cause.code == SessionCode::FakeMismatch => cause,
            _ => error,
        })
    }

    /// Lets go of the line, and says how the tape was used.
    fn end(&mut self) -> Result<(), SessionError> {
        self.channel = None;
        let player = self.player.take().map(JoinHandle::join);
        self.line = None;
        if let Some(played) = player {
            let panicked = || SessionCode::FakeMismatch.refuse("the player panicked");
            self.ended = Some(played.unwrap_or_else(|_panic| Err(panicked())));
        }
        self.ended.clone().unwrap_or(Ok(()))
    }
}

impl Session for TapedSession {
    fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        self.heard(|channel, deadline| converse(channel, request, payload, deadline))
    }

    fn events(&mut self) -> Result<LimitEvents, SessionError> {
        inside::ask_events(self)
    }

    fn close(&mut self) -> Result<Closed, SessionError> {
        self.end()?;
        Ok(self.closed.clone())
    }
}

/// The engine's side: says what was said, and hears what was heard.
fn play(mut stream: UnixStream, pieces: &[Piece]) -> Result<(), SessionError> {
    let unused = |at: usize| {
        let left = pieces.len() - at;
        SessionCode::FakeUnused.refuse(format_args!("{left} recorded pieces were not asked for"))
    };
    for (at, piece) in pieces.iter().enumerate() {
        match piece.from {
            Side::Engine => {
                std::thread::sleep(Duration::from_micros(piece.pause_us));
                let said = match piece.bytes.0.as_slice() {
                    [] => stream.shutdown(Shutdown::Write),
                    bytes => stream.write_all(bytes),
                };
                said.map_err(|_gone| unused(at))?;
            }
            Side::Host => match hear(&mut stream, &piece.bytes.0) {
                Ok(true) => {}
                Ok(false) => {
                    let detail = format!("piece {at}: other bytes than recorded");
                    return Err(SessionCode::FakeMismatch.refuse(detail));
                }
                Err(_end) => return Err(unused(at)),
            },
        }
    }
    match stream.read(&mut [0]) {
        Ok(0) => Ok(()),
        _ => Err(SessionCode::FakeMismatch.refuse("more is asked than was recorded")),
    }
}

/// Whether exactly these bytes come. The first other one is enough to say no: what is asked instead may
/// be shorter.
fn hear(stream: &mut UnixStream, mut expected: &[u8]) -> std::io::Result<bool> {
    while !expected.is_empty() {
        let mut piece = vec![0; expected.len().min(PIECE)];
        let count = stream.read(&mut piece)?;
        let heard = piece.get(..count).unwrap_or_default();
        match expected.strip_prefix(heard) {
            _ if heard.is_empty() => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Some(rest) => expected = rest,
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Bytes heard at once, 64 KiB: what a line carries at once.
const PIECE: usize = 64 << 10;
