//! The oracle of what an engine sends, called by the unit tests, the property tests and the fuzz
//! target alike.

use crate::docker::stream::{Corruption, Source, StreamDecoder};

/// One frame of an engine's stream, right or wrong: nothing is checked.
#[must_use]
pub fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend(content);
    bytes
}

/// The body of the fuzz target: the first four bytes say where the rest is cut.
///
/// # Panics
/// As [`stream_raw`].
pub fn engine_raw(bytes: &[u8]) {
    let (cuts, stream) = bytes.split_at(bytes.len().min(4));
    let cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut)).collect();
    stream_raw(stream, &cuts);
}

/// Decodes `bytes` in one piece, cut at `cuts`, and byte by byte: all must agree, and nothing may
/// come out that did not go in.
///
/// # Panics
/// They do not.
pub fn stream_raw(bytes: &[u8], cuts: &[usize]) {
    let whole = decode([bytes]);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| (*cut).min(bytes.len())).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let cut = cuts.windows(2).filter_map(|w| bytes.get(w[0]..w[1]));
    assert_eq!(decode(cut), whole, "cut in pieces");
    assert_eq!(decode(bytes.chunks(1)), whole, "byte by byte");
    assert!(whole.0.len() + whole.1.len() <= bytes.len());
}

type Decoded = (Vec<u8>, Vec<u8>, Result<(), Corruption>);

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Decoded {
    let (mut decoder, mut out, mut err) = (StreamDecoder::new(), Vec::new(), Vec::new());
    for mut piece in pieces {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some((Source::Stdout, bytes))) => out.extend(bytes),
                Ok(Some((Source::Stderr, bytes))) => err.extend(bytes),
                Ok(None) => break,
                Err(corruption) => return (out, err, Err(corruption)),
            }
        }
    }
    let ended = decoder.finish();
    (out, err, ended)
}
