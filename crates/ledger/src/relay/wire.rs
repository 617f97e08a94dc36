//! The bytes of a link: frames, each with a length, and a code over it once the ends know each other.
//!
//! `kind | length, 4 bytes, big endian | payload | code, 32 bytes`. The first four frames of a
//! connection have no code: they carry their own proofs.

use crate::{LedgerCode, LedgerError, Name};
use flightproof_core::Digest;

/// What a frame says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The sender's first word.
    Hello {
        /// Which grant it was given.
        grant: Name,
        /// Which link it is for.
        link: Name,
        /// Chosen once for the grant: who redeems it.
        nonce: [u8; 32],
        /// Chosen anew for this connection.
        fresh: [u8; 32],
    },
    /// The receiver's answer.
    Challenge {
        /// Chosen anew for this connection.
        fresh: [u8; 32],
    },
    /// The sender knows the secret.
    Proof {
        /// A code over both fresh values.
        proof: [u8; 32],
    },
    /// So does the receiver, and it says how far it is.
    Welcome {
        /// A code over both fresh values and the number.
        proof: [u8; 32],
        /// Number of the last message it applied.
        applied: u64,
    },
    /// Consecutive messages.
    Burst {
        /// Number of the first one.
        first: u64,
        /// The messages: key and body.
        messages: Vec<(Name, Vec<u8>)>,
    },
    /// What became of them, in order. Fewer than were sent: the rest is to come again. None: the first
    /// was refused.
    Answers {
        /// Number of the first one.
        first: u64,
        /// Digest of each message, and the answer to it.
        answers: Vec<(Digest, Vec<u8>)>,
    },
    /// Nothing more to say.
    Bye,
    /// The receiver does not talk to this sender.
    No {
        /// The grant was redeemed by another.
        spent: bool,
    },
}

/// Most messages of a burst.
pub(crate) const MOST_MESSAGES: usize = 64;
/// Most bytes of messages a sender puts in one burst, beyond the first message. A receiver that has as
/// many bytes of answers takes nothing more of the burst.
pub(crate) const BURST_BYTES: usize = 1 << 20;
/// Largest payload accepted: a burst, and one message or answer of the largest size on top.
const MAX_PAYLOAD: usize = 3 << 20;
const HEADER: usize = 5;
const CODE: usize = 32;

/// A frame as it came, its code not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The bytes the code is over: kind, length and payload.
    pub signed: Vec<u8>,
    /// The code; none for the frames of the greeting.
    pub code: Option<[u8; 32]>,
}

/// Takes bytes as they come and gives frames as they are whole.
#[derive(Debug, Default)]
pub struct Deframer {
    buffer: Vec<u8>,
}

impl Deframer {
    /// Takes what arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one. A frame that cannot be is refused by its first five
    /// bytes, before anything is kept of it.
    ///
    /// # Errors
    /// `RELAY_FRAME` for a kind or a length that does not exist. Nothing after it means anything.
    pub fn take(&mut self) -> Result<Option<Raw>, LedgerError> {
        let Some(header) = self.buffer.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *header;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        let coded = match kind {
            HELLO..=NO => false,
            BURST..=BYE => true,
            other => return Err(bad(format!("kind {other}"))),
        };
        if length > MAX_PAYLOAD {
            return Err(bad(format!("{length} bytes, at most {MAX_PAYLOAD}")));
        }
        let end = HEADER + length;
        let total = if coded { end + CODE } else { end };
        if self.buffer.len() < total {
            return Ok(None);
        }
        let code = self.buffer[end..total].first_chunk::<CODE>().copied();
        let signed = self.buffer[..end].to_vec();
        self.buffer.drain(..total);
        Ok(Some(Raw { signed, code }))
    }

    /// Bytes that are waiting for the rest of their frame.
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }
}

const HELLO: u8 = 1;
const CHALLENGE: u8 = 2;
const PROOF: u8 = 3;
const WELCOME: u8 = 4;
const NO: u8 = 5;
const BURST: u8 = 16;
const ANSWERS: u8 = 17;
const BYE: u8 = 18;
/// First byte of a greeting's payload: another version is another language.
const VERSION: u8 = 1;

impl Frame {
    /// Kind, length and payload: what the code is over.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.kind(), 0, 0, 0, 0];
        match self {
            Self::Hello {
                grant,
                link,
                nonce,
                fresh,
            } => {
                out.push(VERSION);
                put_name(&mut out, grant);
                put_name(&mut out, link);
                out.extend_from_slice(nonce);
                out.extend_from_slice(fresh);
            }
            Self::Challenge { fresh: bytes } | Self::Proof { proof: bytes } => {
                out.extend_from_slice(bytes);
            }
            Self::Welcome { proof, applied } => {
                out.extend_from_slice(proof);
                out.extend_from_slice(&applied.to_be_bytes());
            }
            Self::Burst { first, messages } => {
                out.extend_from_slice(&first.to_be_bytes());
                for (key, body) in messages {
                    put_name(&mut out, key);
                    put_bytes(&mut out, body);
                }
            }
            Self::Answers { first, answers } => {
                out.extend_from_slice(&first.to_be_bytes());
                for (digest, answer) in answers {
                    out.extend_from_slice(digest.as_bytes());
                    put_bytes(&mut out, answer);
                }
            }
            Self::Bye => {}
            Self::No { spent } => out.push(u8::from(*spent)),
        }
        let length = u32::try_from(out.len() - HEADER).unwrap_or(u32::MAX);
        out[1..HEADER].copy_from_slice(&length.to_be_bytes());
        out
    }

    /// Reads what [`Frame::encode`] wrote, and nothing else.
    ///
    /// # Errors
    /// `RELAY_FRAME` with what is wrong; never any content.
    pub fn decode(signed: &[u8]) -> Result<Self, LedgerError> {
        let (header, payload) = signed
            .split_at_checked(HEADER)
            .ok_or_else(|| bad("too short"))?;
        let mut rest = Rest(payload);
        let frame = match header[0] {
            HELLO => rest.hello()?,
            CHALLENGE => Self::Challenge {
                fresh: rest.array()?,
            },
            PROOF => Self::Proof {
                proof: rest.array()?,
            },
            WELCOME => Self::Welcome {
                proof: rest.array()?,
                applied: rest.number()?,
            },
            NO => Self::No {
                spent: match rest.array()? {
                    [0] => false,
                    [1] => true,
                    _ => return Err(bad("a flag that is neither 0 nor 1")),
                },
            },
            BURST => Self::Burst {
                first: rest.number()?,
                messages: rest.many(|rest| Ok((rest.name()?, rest.bytes()?)))?,
            },
            ANSWERS => Self::Answers {
                first: rest.number()?,
                answers: rest
                    .many(|rest| Ok((Digest::from_bytes(rest.array()?), rest.bytes()?)))?,
            },
            BYE => Self::Bye,
            other => return Err(bad(format!("kind {other}"))),
        };
        match rest.0 {
            [] => Ok(frame),
            more => Err(bad(format!("{} bytes too many", more.len()))),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => HELLO,
            Self::Challenge { .. } => CHALLENGE,
            Self::Proof { .. } => PROOF,
            Self::Welcome { .. } => WELCOME,
            Self::No { .. } => NO,
            Self::Burst { .. } => BURST,
            Self::Answers { .. } => ANSWERS,
            Self::Bye => BYE,
        }
    }
}

fn put_name(out: &mut Vec<u8>, name: &Name) {
    // A name has at most 200 bytes.
    out.push(u8::try_from(name.as_str().len()).unwrap_or(u8::MAX));
    out.extend_from_slice(name.as_str().as_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// What is left of a payload.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], LedgerError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| bad(format!("{length} bytes wanted, {} left", self.0.len())))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LedgerError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn number(&mut self) -> Result<u64, LedgerError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn name(&mut self) -> Result<Name, LedgerError> {
        let [length] = self.array()?;
        std::str::from_utf8(self.take(usize::from(length))?)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| bad("a name that is none"))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, LedgerError> {
        let length = usize::try_from(u32::from_be_bytes(self.array()?)).unwrap_or(usize::MAX);
        self.take(length).map(<[u8]>::to_vec)
    }

    fn many<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, LedgerError>,
    ) -> Result<Vec<T>, LedgerError> {
        let mut many = Vec::new();
        while !self.0.is_empty() {
            if many.len() == MOST_MESSAGES {
                return Err(bad(format!("more than {MOST_MESSAGES} messages")));
            }
            many.push(read(self)?);
        }
        Ok(many)
    }

    fn hello(&mut self) -> Result<Frame, LedgerError> {
        let [version] = self.array()?;
        if version != VERSION {
            return Err(bad(format!(
                "version {version}, this program speaks {VERSION}"
            )));
        }
        Ok(Frame::Hello {
            grant: self.name()?,
            link: self.name()?,
            nonce: self.array()?,
            fresh: self.array()?,
        })
    }
}

fn bad(what: impl std::fmt::Display) -> LedgerError {
    LedgerCode::RelayFrame.refuse(what)
}
