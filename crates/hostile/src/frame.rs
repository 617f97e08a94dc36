//! Forged streams of the session channel, and forged bootstrap frames.

mod bootstrap;

pub use bootstrap::{bootstrap_attacks, bootstrap_frame};

use crate::Attack;

/// The honest conversation every attack of [`host_attacks`] departs from: a greeting, then replies
/// 1 and 2.
const HONEST_HOST: &[Part] = &[(1, 0, b"hi"), (5, 1, b"one"), (5, 2, b"two")];

/// The honest conversation every attack of [`runner_attacks`] departs from: one request with six
/// bytes.
const HONEST_RUNNER: &[Part] = &[(2, 1, b"put"), (3, 1, b"abc"), (3, 1, b"def"), (4, 1, b"")];

/// How many bytes the request of [`runner_attacks`] promises.
pub const PROMISED: u64 = 6;

/// Kind, sequence number, body.
type Part = (u8, u32, &'static [u8]);

fn stream(parts: &[Part]) -> Vec<u8> {
    parts
        .iter()
        .flat_map(|(kind, seq, body)| message(*kind, *seq, body.len(), body))
        .collect()
}

/// One message that says it is `length` bytes long.
fn message(kind: u8, seq: u32, length: usize, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &[kind], &seq.to_be_bytes(), body].concat()
}

fn cut(parts: &[Part], bytes: usize) -> Vec<u8> {
    let mut out = stream(parts);
    out.truncate(out.len().saturating_sub(bytes));
    out
}

fn with(parts: &[Part], tail: &[u8]) -> Vec<u8> {
    [&stream(parts)[..], tail].concat()
}

/// What a hostile runner sends to a host that waits for the greeting, asks twice, and ends the
/// conversation.
pub fn host_attacks() -> Vec<Attack> {
    const HI: Part = (1, 0, b"hi");
    const ONE: Part = (5, 1, b"one");
    const OUT_OF_TURN: &str = "PROTOCOL_VIOLATION";
    let table: Vec<(&str, &'static str, Vec<u8>)> = vec![
        (
            "a reply before the greeting",
            OUT_OF_TURN,
            stream(&[(5, 1, b"one"), HI]),
        ),
        (
            "a greeting with a number",
            OUT_OF_TURN,
            stream(&[(1, 1, b"hi"), ONE]),
        ),
        ("two greetings", OUT_OF_TURN, stream(&[HI, HI, ONE])),
        (
            "a greeting for a reply",
            OUT_OF_TURN,
            stream(&[HI, (1, 1, b"hi")]),
        ),
        (
            "a reply to nothing",
            OUT_OF_TURN,
            stream(&[HI, (5, 0, b"zero")]),
        ),
        (
            "a reply to the request after",
            OUT_OF_TURN,
            stream(&[HI, (5, 2, b"two")]),
        ),
        ("the same reply twice", OUT_OF_TURN, stream(&[HI, ONE, ONE])),
        (
            "a number with another high byte",
            OUT_OF_TURN,
            stream(&[HI, (5, 0x0100_0001, b"one")]),
        ),
        (
            "a request from the runner",
            OUT_OF_TURN,
            stream(&[HI, (2, 1, b"put")]),
        ),
        (
            "data from the runner",
            OUT_OF_TURN,
            stream(&[HI, (3, 1, b"abc")]),
        ),
        (
            "an end from the runner",
            OUT_OF_TURN,
            stream(&[HI, (4, 1, b"")]),
        ),
        ("kind 0", OUT_OF_TURN, stream(&[HI, (0, 1, b"one")])),
        ("kind 6", OUT_OF_TURN, stream(&[HI, (6, 1, b"one")])),
        ("kind 255", OUT_OF_TURN, stream(&[(255, 0, b"hi")])),
        ("an empty greeting", "EMPTY", stream(&[(1, 0, b""), ONE])),
        ("an empty reply", "EMPTY", stream(&[HI, (5, 1, b"")])),
        (
            "a reply one byte above the limit",
            "OVERSIZE",
            with(&[HI], &message(5, 1, (4 << 20) + 1, b"")),
        ),
        (
            "a greeting one byte above its limit",
            "OVERSIZE",
            message(1, 0, (4 << 10) + 1, b""),
        ),
        (
            "a reply of 2^32 - 1 bytes",
            "OVERSIZE",
            with(&[HI], &message(5, 1, 0xffff_ffff, b"")),
        ),
        (
            "data one byte above its limit",
            "OVERSIZE",
            with(&[HI], &message(3, 1, (256 << 10) + 1, b"")),
        ),
        (
            "an end that carries something",
            "OVERSIZE",
            with(&[HI], &message(4, 1, 1, b"x")),
        ),
        ("nothing at all", "READ_HEADER", Vec::new()),
        ("one byte", "READ_HEADER", vec![0]),
        ("a greeting without an answer", "READ_HEADER", stream(&[HI])),
        (
            "a header without its last byte",
            "READ_HEADER",
            cut(&[HI, ONE], 4),
        ),
        (
            "a reply without its body",
            "READ_PAYLOAD",
            cut(&[HI, ONE], 3),
        ),
        (
            "a reply without its last byte",
            "READ_PAYLOAD",
            cut(&[HI, ONE], 1),
        ),
        (
            "a reply that promises more than it has",
            "READ_PAYLOAD",
            with(&[HI], &message(5, 1, 4 << 20, b"x")),
        ),
        (
            "one byte after the last reply",
            "TRAILING",
            with(HONEST_HOST, b"\0"),
        ),
        (
            "a reply too many",
            "TRAILING",
            with(HONEST_HOST, &message(5, 3, 1, b"x")),
        ),
    ];
    attacks(table, &stream(HONEST_HOST))
}

/// What a hostile host sends to a runner that reads one request with its six bytes, replies, and
/// waits for the end.
pub fn runner_attacks() -> Vec<Attack> {
    const PUT: Part = (2, 1, b"put");
    const ABC: Part = (3, 1, b"abc");
    const DEF: Part = (3, 1, b"def");
    const END: Part = (4, 1, b"");
    const OUT_OF_TURN: &str = "PROTOCOL_VIOLATION";
    let table: Vec<(&str, &'static str, Vec<u8>)> = vec![
        (
            "data before the request",
            OUT_OF_TURN,
            stream(&[ABC, PUT, DEF, END]),
        ),
        (
            "an end before the request",
            OUT_OF_TURN,
            stream(&[END, PUT]),
        ),
        (
            "a greeting from the host",
            OUT_OF_TURN,
            stream(&[(1, 0, b"hi"), PUT]),
        ),
        (
            "a reply from the host",
            OUT_OF_TURN,
            stream(&[(5, 1, b"one"), PUT]),
        ),
        (
            "a request that skips a number",
            OUT_OF_TURN,
            stream(&[(2, 2, b"put")]),
        ),
        (
            "a request with number 0",
            OUT_OF_TURN,
            stream(&[(2, 0, b"put")]),
        ),
        (
            "a request inside a request",
            OUT_OF_TURN,
            stream(&[PUT, ABC, (2, 2, b"put"), DEF, END]),
        ),
        (
            "the same request again",
            OUT_OF_TURN,
            stream(&[PUT, ABC, DEF, END, PUT]),
        ),
        (
            "data of another request",
            OUT_OF_TURN,
            stream(&[PUT, ABC, (3, 2, b"def"), END]),
        ),
        (
            "the end of another request",
            OUT_OF_TURN,
            stream(&[PUT, ABC, DEF, (4, 2, b"")]),
        ),
        (
            "data and end of another request",
            OUT_OF_TURN,
            stream(&[PUT, ABC, (3, 2, b"def"), (4, 2, b"")]),
        ),
        (
            "one byte more than promised",
            OUT_OF_TURN,
            stream(&[PUT, ABC, DEF, (3, 1, b"x"), END]),
        ),
        (
            "one byte less than promised",
            OUT_OF_TURN,
            stream(&[PUT, ABC, (3, 1, b"de"), END]),
        ),
        (
            "no byte of what was promised",
            OUT_OF_TURN,
            stream(&[PUT, END]),
        ),
        (
            "data after the end",
            OUT_OF_TURN,
            stream(&[PUT, ABC, DEF, END, ABC]),
        ),
        (
            "empty data for ever",
            "EMPTY",
            stream(&[PUT, (3, 1, b""), ABC, DEF, END]),
        ),
        ("an empty request", "EMPTY", stream(&[(2, 1, b"")])),
        (
            "data above its limit",
            "OVERSIZE",
            with(&[PUT], &message(3, 1, (256 << 10) + 1, b"")),
        ),
        (
            "an end that carries something",
            "OVERSIZE",
            with(&[PUT, ABC, DEF], &message(4, 1, 1, b"x")),
        ),
        ("no end", "READ_HEADER", stream(&[PUT, ABC, DEF])),
        (
            "half a header",
            "READ_HEADER",
            cut(&[PUT, ABC, DEF, END], 5),
        ),
        (
            "data without its last byte",
            "READ_PAYLOAD",
            cut(&[PUT, ABC, DEF], 1),
        ),
    ];
    attacks(table, &stream(HONEST_RUNNER))
}

fn attacks(table: Vec<(&str, &'static str, Vec<u8>)>, twin: &[u8]) -> Vec<Attack> {
    let attack = |(name, expect, bytes): (&str, &'static str, Vec<u8>)| Attack {
        name: name.to_owned(),
        bytes,
        expect,
        twin: twin.to_vec(),
    };
    table.into_iter().map(attack).collect()
}
