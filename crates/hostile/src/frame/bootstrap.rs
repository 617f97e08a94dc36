//! Forged bootstrap frames. What the bytes cannot say, how they arrive and how their stream ends, is
//! forged by the tests that read them.

use crate::Attack;

/// Most bytes of a payload.
const MOST: u32 = 65_536;

/// An honest frame.
pub fn bootstrap_frame(payload: &[u8]) -> Vec<u8> {
    claiming(u32::try_from(payload.len()).unwrap_or(u32::MAX), payload)
}

/// A frame that says its payload is `length` bytes long.
fn claiming(length: u32, payload: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes()[..], payload].concat()
}

/// Streams that are not exactly one frame. The twin of each is the frame it pretends to be.
pub fn bootstrap_attacks() -> Vec<Attack> {
    let full = vec![b'f'; MOST as usize];
    let over = vec![b'f'; MOST as usize + 1];
    let secret = &b"secret"[..];
    let frame = bootstrap_frame(secret);
    let table: Vec<(&str, &'static str, Vec<u8>, &[u8])> = vec![
        ("nothing at all", "READ_HEADER", vec![], secret),
        ("one byte of a header", "READ_HEADER", vec![0], secret),
        ("two bytes of a header", "READ_HEADER", vec![0, 0], secret),
        (
            "three bytes of a header",
            "READ_HEADER",
            vec![0, 0, 0],
            secret,
        ),
        ("a payload of 0 bytes", "EMPTY", claiming(0, b""), b"x"),
        (
            "a payload of 0 bytes that goes on",
            "EMPTY",
            claiming(0, b"x"),
            b"x",
        ),
        (
            "one byte above the limit",
            "OVERSIZE",
            claiming(MOST + 1, &over),
            &full,
        ),
        (
            "one byte above the limit, unsent",
            "OVERSIZE",
            claiming(MOST + 1, b""),
            &full,
        ),
        (
            "a length of all ones",
            "OVERSIZE",
            claiming(u32::MAX, secret),
            secret,
        ),
        (
            "a length that is negative when signed",
            "OVERSIZE",
            claiming(1 << 31, secret),
            secret,
        ),
        (
            "a length in the other byte order",
            "OVERSIZE",
            claiming(6 << 24, secret),
            secret,
        ),
        (
            "a length that is 6 in 16 bits",
            "OVERSIZE",
            claiming((1 << 16) + 6, secret),
            secret,
        ),
        (
            "text without a header",
            "OVERSIZE",
            b"{\"token\":1}".to_vec(),
            secret,
        ),
        ("a header alone", "READ_PAYLOAD", claiming(6, b""), secret),
        (
            "a payload without its last byte",
            "READ_PAYLOAD",
            claiming(6, b"secre"),
            secret,
        ),
        (
            "one byte where the most are promised",
            "READ_PAYLOAD",
            claiming(MOST, b"f"),
            &full,
        ),
        (
            "the most without the last",
            "READ_PAYLOAD",
            claiming(MOST, &full[1..]),
            &full,
        ),
        (
            "one byte after the frame",
            "TRAILING",
            [&frame[..], b"\0"].concat(),
            secret,
        ),
        (
            "a line end after the frame",
            "TRAILING",
            [&frame[..], b"\n"].concat(),
            secret,
        ),
        (
            "the frame twice",
            "TRAILING",
            [&frame[..], &frame].concat(),
            secret,
        ),
        (
            "a byte less than there is",
            "TRAILING",
            claiming(5, secret),
            secret,
        ),
        (
            "one byte after the longest frame",
            "TRAILING",
            claiming(MOST, &over),
            &full,
        ),
        (
            "a megabyte after the frame",
            "TRAILING",
            [frame.clone(), vec![0; 1 << 20]].concat(),
            secret,
        ),
    ];
    let attack = |(name, expect, bytes, twin): (&str, &'static str, Vec<u8>, &[u8])| Attack {
        name: name.to_owned(),
        bytes,
        expect,
        twin: bootstrap_frame(twin),
    };
    table.into_iter().map(attack).collect()
}
