use super::{Kind, Message};
use crate::code::{FrameCode, FrameError};
use std::fmt;

/// The host's side of the conversation: one greeting, then exactly one reply per request.
///
/// Anything else, once, ends the conversation: a message nobody asked for was put there by
/// somebody.
#[derive(Debug)]
pub struct ReplyReader {
    state: HostState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostState {
    /// The greeting has not come yet.
    Greeting,
    /// Nothing is asked; `last` was the last number given out.
    Idle {
        last: u32,
    },
    /// The reply with this number is awaited.
    Outstanding {
        seq: u32,
    },
    Broken,
}

/// What the runner may say. Its content is never shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its greeting.
    Hello(Vec<u8>),
    /// Its reply to the outstanding request.
    Reply(Vec<u8>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello(body) => write!(f, "a greeting of {} bytes", body.len()),
            Self::Reply(body) => write!(f, "a reply of {} bytes", body.len()),
        }
    }
}

impl Default for ReplyReader {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplyReader {
    /// A conversation that begins with the runner's greeting.
    pub fn new() -> Self {
        Self {
            state: HostState::Greeting,
        }
    }

    /// Registers the next request and gives its number.
    ///
    /// # Errors
    /// The greeting or a reply is still awaited, or the conversation is broken.
    pub fn request(&mut self) -> Result<u32, FrameError> {
        let HostState::Idle { last } = self.state else {
            return Err(self.violation("a request out of turn"));
        };
        let Some(seq) = last.checked_add(1) else {
            return Err(self.violation("all numbers were used"));
        };
        self.state = HostState::Outstanding { seq };
        Ok(seq)
    }

    /// Takes one message from the runner.
    ///
    /// # Errors
    /// It is not the one that is awaited. The conversation is over.
    pub fn accept(&mut self, message: Message) -> Result<Answer, FrameError> {
        match (self.state, message.kind) {
            (HostState::Greeting, Kind::Hello) if message.seq == 0 => {
                self.state = HostState::Idle { last: 0 };
                Ok(Answer::Hello(message.body))
            }
            (HostState::Outstanding { seq }, Kind::Reply) if message.seq == seq => {
                self.state = HostState::Idle { last: seq };
                Ok(Answer::Reply(message.body))
            }
            (state, kind) => {
                Err(self.violation(format_args!("{kind:?} {} while {state:?}", message.seq)))
            }
        }
    }

    /// Ends the conversation: the stream cannot be trusted any more.
    pub fn break_off(&mut self) {
        self.state = HostState::Broken;
    }

    fn violation(&mut self, detail: impl std::fmt::Display) -> FrameError {
        self.break_off();
        FrameCode::ProtocolViolation.refuse(detail)
    }
}

/// The runner's side: a request, exactly the bytes it promised, and its end.
#[derive(Debug)]
pub struct RequestReader {
    state: RunnerState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunnerState {
    /// The next request is awaited; `last` was the last number.
    Idle {
        last: u32,
    },
    /// Request `seq` has begun, and what it promises is not known yet: nothing, unless told.
    Asked {
        seq: u32,
    },
    /// `left` bytes of request `seq` are still promised.
    Receiving {
        seq: u32,
        left: u64,
    },
    Broken,
}

/// What the host may say. Its content is never shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Event {
    /// A request. How many bytes follow stands in its body: see [`RequestReader::promise`].
    Request {
        /// The number its reply must have.
        seq: u32,
        /// What is asked.
        body: Vec<u8>,
    },
    /// The next bytes of what the request promised.
    Data(Vec<u8>),
    /// The request is whole.
    End,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { seq, body } => write!(f, "request {seq} of {} bytes", body.len()),
            Self::Data(body) => write!(f, "{} bytes of data", body.len()),
            Self::End => f.write_str("an end"),
        }
    }
}

impl Default for RequestReader {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestReader {
    /// A conversation before its first request.
    pub fn new() -> Self {
        Self {
            state: RunnerState::Idle { last: 0 },
        }
    }

    /// How many bytes of DATA the request that was just accepted promises. Zero unless told, and
    /// told once.
    ///
    /// # Errors
    /// No request was just accepted.
    pub fn promise(&mut self, bytes: u64) -> Result<(), FrameError> {
        let RunnerState::Asked { seq } = self.state else {
            return Err(self.violation("a promise without a request, or a second one"));
        };
        self.state = RunnerState::Receiving { seq, left: bytes };
        Ok(())
    }

    /// Takes one message from the host.
    ///
    /// # Errors
    /// It is not the one that must follow. The conversation is over.
    pub fn accept(&mut self, message: Message) -> Result<Event, FrameError> {
        let Message { kind, seq, body } = message;
        match (self.state, kind) {
            (RunnerState::Idle { last }, Kind::Request) if last.checked_add(1) == Some(seq) => {
                self.state = RunnerState::Asked { seq };
                Ok(Event::Request { seq, body })
            }
            (RunnerState::Receiving { seq: now, left }, Kind::Data) if seq == now => {
                let Some(left) = left.checked_sub(body.len() as u64) else {
                    return Err(self.violation(format_args!(
                        "{} bytes of data where {left} were promised",
                        body.len()
                    )));
                };
                self.state = RunnerState::Receiving { seq, left };
                Ok(Event::Data(body))
            }
            (
                RunnerState::Asked { seq: now } | RunnerState::Receiving { seq: now, left: 0 },
                Kind::End,
            ) if seq == now => {
                self.state = RunnerState::Idle { last: seq };
                Ok(Event::End)
            }
            (state, kind) => Err(self.violation(format_args!("{kind:?} {seq} while {state:?}"))),
        }
    }

    /// Whether a request has begun and its end has not come.
    pub(super) fn is_receiving(&self) -> bool {
        matches!(
            self.state,
            RunnerState::Asked { .. } | RunnerState::Receiving { .. }
        )
    }

    fn violation(&mut self, detail: impl std::fmt::Display) -> FrameError {
        self.state = RunnerState::Broken;
        FrameCode::ProtocolViolation.refuse(detail)
    }
}
