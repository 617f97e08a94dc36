use super::bootstrap::next;
use super::channel::decode_within;
use crate::channel::{
    HEADER_BYTES, Kind, MAX_BODY_BYTES, MAX_DATA_BYTES, MAX_HELLO_BYTES, Message, ReplyReader,
};
use crate::{FrameCode, FrameError};

/// One thing that happens in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The host asks, if it may.
    Ask,
    /// The runner says a message.
    Say {
        /// Its kind, 1..=5 where it is honest.
        kind: u8,
        /// Its number.
        seq: u32,
        /// By how much its header exaggerates.
        boast: u32,
        /// What it carries.
        body: Vec<u8>,
    },
}

/// A conversation and how a host hears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// What happens.
    pub turns: Vec<Turn>,
    /// Bytes of each piece that is fed.
    pub step: usize,
    /// Bytes the host takes.
    pub budget: u64,
}

impl Conversation {
    /// The conversation that any bytes stand for, so that a fuzzer that changes bytes changes a
    /// plan. Half of its turns are what an honest host and runner would do next.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut left = bytes;
        let step = usize::from(next(&mut left)).max(1);
        let budget = match next(&mut left) {
            0..128 => u64::MAX,
            few => u64::from(few) * 2,
        };
        let (mut turns, mut asked) = (Vec::new(), 0);
        while !left.is_empty() {
            turns.push(turn(&mut left, &mut asked));
        }
        Self {
            turns,
            step,
            budget,
        }
    }
}

fn turn(left: &mut &[u8], asked: &mut u32) -> Turn {
    let choice = next(left);
    if choice % 8 < 2 {
        *asked += 1;
        return Turn::Ask;
    }
    let (kind, seq, boast) = match choice % 8 {
        2 => (1, 0, 0),
        3..6 => (5, *asked, 0),
        _ => {
            let boast = match next(left) {
                255 => u32::MAX,
                boast => (boast / 128).into(),
            };
            (choice >> 5, u32::from(next(left) % 4), boast)
        }
    };
    let length = usize::from(next(left) % 32).min(left.len());
    let (body, rest) = left.split_at(length);
    *left = rest;
    Turn::Say {
        kind,
        seq,
        boast,
        body: body.to_vec(),
    }
}

/// Of a conversation, messages and where it breaks off are what the rules give for the whole; and
/// what the host takes is what it asked for.
///
/// # Panics
/// They are not.
pub fn channel_plan(conversation: &Conversation) {
    let Conversation {
        turns,
        step,
        budget,
    } = conversation;
    let stream: Vec<u8> = turns.iter().flat_map(said).collect();
    let (messages, error) = decode_within(&stream, (*step).max(1), *budget);
    let (expected, code) = messages_of(&stream, *budget);
    let found: Vec<_> = messages
        .iter()
        .map(|m| (m.kind as u8, m.seq, m.body.as_slice()))
        .collect();
    assert_eq!(found, expected, "other messages than the rules give");
    assert_eq!(error.map(|e| e.code), code, "another end");
    follow(turns, messages);
}

fn said(turn: &Turn) -> Vec<u8> {
    let Turn::Say {
        kind,
        seq,
        boast,
        body,
    } = turn
    else {
        return Vec::new();
    };
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let length = length.saturating_add(*boast).to_be_bytes();
    [&length[..], &[*kind], &seq.to_be_bytes(), body].concat()
}

/// Kind, number, body.
type Heard<'a> = (u8, u32, &'a [u8]);

/// What the rules say of a whole stream.
fn messages_of(stream: &[u8], mut budget: u64) -> (Vec<Heard<'_>>, Option<FrameCode>) {
    let mut heard = Vec::new();
    let mut left = stream;
    loop {
        if left.is_empty() {
            return (heard, None);
        }
        let Some((header, rest)) = left.split_first_chunk::<HEADER_BYTES>() else {
            return (heard, Some(FrameCode::ReadHeader));
        };
        let [a, b, c, d, kind, w, x, y, z] = *header;
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        let (least, most) = match kind {
            1 => (1, MAX_HELLO_BYTES),
            2 | 5 => (1, MAX_BODY_BYTES),
            3 => (1, MAX_DATA_BYTES),
            4 => (0, 0),
            _ => return (heard, Some(FrameCode::ProtocolViolation)),
        };
        if length < least {
            return (heard, Some(FrameCode::Empty));
        }
        let cost = length + HEADER_BYTES as u64;
        if length > most as u64 || cost > budget {
            return (heard, Some(FrameCode::Oversize));
        }
        budget -= cost;
        if length > rest.len() as u64 {
            return (heard, Some(FrameCode::ReadPayload));
        }
        let (body, rest) = rest.split_at(usize::try_from(length).unwrap_or(usize::MAX));
        heard.push((kind, u32::from_be_bytes([w, x, y, z]), body));
        left = rest;
    }
}

/// What the host knows, told a second time.
#[derive(Debug, Clone, Copy)]
enum Host {
    Greeting,
    Idle(u32),
    Awaiting(u32),
    Over,
}

/// The messages as they were decoded, at the turns they were said: the host takes what it waits for
/// and nothing else, and nothing after its first refusal.
fn follow(turns: &[Turn], messages: Vec<Message>) {
    let mut reader = ReplyReader::new();
    let mut host = Host::Greeting;
    let mut messages = messages.into_iter();
    for turn in turns {
        let taken = if *turn == Turn::Ask {
            host = match host {
                Host::Idle(last) => Host::Awaiting(last + 1),
                _ => Host::Over,
            };
            reader.request().map(|seq| {
                assert!(
                    matches!(host, Host::Awaiting(next) if next == seq),
                    "{host:?}"
                );
            })
        } else {
            let Some(message) = messages.next() else {
                return;
            };
            host = match (host, message.kind, message.seq) {
                (Host::Greeting, Kind::Hello, 0) => Host::Idle(0),
                (Host::Awaiting(seq), Kind::Reply, found) if found == seq => Host::Idle(seq),
                _ => Host::Over,
            };
            reader.accept(message).map(drop)
        };
        agree(host, taken);
    }
}

fn agree(host: Host, taken: Result<(), FrameError>) {
    let expected = match host {
        Host::Over => Err(FrameCode::ProtocolViolation),
        _ => Ok(()),
    };
    assert_eq!(taken.map_err(|e| e.code), expected, "{host:?}");
}
