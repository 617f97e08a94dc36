//! What an engine sends on an attached stream: `u8 kind | 3 zero bytes | u32 BE length | bytes`,
//! frame after frame. Decoded here, from the raw bytes: the usual clients, and the engine's own,
//! take a stream that breaks off inside a frame for a whole one, and show an engine's error as
//! output.

/// Bytes before the content of a frame.
const HEADER_BYTES: usize = 8;
/// Longest frame in bytes, 1 MiB: engines write 32 KiB at most.
pub const MAX_FRAME_BYTES: u32 = 1 << 20;
/// Most frames in a row that carry nothing. They are legal, and a stream of them would never end.
pub const MAX_EMPTY_FRAMES: u32 = 1_000;
/// Most bytes kept of an engine's own error.
const MAX_ERROR_BYTES: usize = 1_024;

/// Whose bytes they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Standard output of the container's first process: the runner's channel.
    Stdout,
    /// Its standard error.
    Stderr,
}

/// Why a stream cannot be trusted any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Corruption {
    /// The header is none: text of a console, or of an engine that forgot to frame it.
    NotAFrame {
        /// The four bytes that should be a kind and zeros.
        found: [u8; 4],
    },
    /// A frame that is longer than any engine writes.
    Oversize {
        /// The length its header claims, bytes.
        length: u32,
    },
    /// The stream ended inside a frame.
    Truncated {
        /// Bytes that are missing of its header or content.
        missing: u32,
    },
    /// Frame after frame of nothing.
    EmptyFrames,
    /// The engine reports an error of its own on the stream.
    Engine {
        /// What it says, cut off and not escaped.
        said: Vec<u8>,
    },
}

impl std::fmt::Display for Corruption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAFrame { found } => {
                write!(
                    f,
                    "no frame begins with {}",
                    flightproof_core::escape(found, 40)
                )
            }
            Self::Oversize { length } => {
                write!(f, "a frame of {length} bytes, at most {MAX_FRAME_BYTES}")
            }
            Self::Truncated { missing } => {
                write!(
                    f,
                    "the stream ended inside a frame, {missing} bytes before its end"
                )
            }
            Self::EmptyFrames => write!(f, "more than {MAX_EMPTY_FRAMES} empty frames in a row"),
            Self::Engine { said } => {
                write!(
                    f,
                    "the engine says: {}",
                    flightproof_core::escape(said, 400)
                )
            }
        }
    }
}

/// Turns the bytes of a stream into pieces of output. Any split of the bytes gives the same
/// pieces, joined. After a corruption it says the same again and hands out nothing.
#[derive(Debug, Default)]
pub struct StreamDecoder {
    state: State,
    empty: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Reading a header: its bytes so far.
    Header([u8; HEADER_BYTES], usize),
    /// Handing out content: whose, and how many bytes are left.
    Content(Source, u32),
    /// Collecting an engine's error: what it said, and how many bytes are left.
    Error(Vec<u8>, u32),
    /// Nothing more is believed.
    Corrupt(Corruption),
}

impl Default for State {
    fn default() -> Self {
        Self::Header([0; HEADER_BYTES], 0)
    }
}

impl StreamDecoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next piece of output in `bytes`, which is moved past what was used. `None` once all of
    /// it is used.
    ///
    /// # Errors
    /// The stream is corrupt from here on.
    pub fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
    ) -> Result<Option<(Source, &'a [u8])>, Corruption> {
        loop {
            match &mut self.state {
                State::Corrupt(corruption) => return Err(corruption.clone()),
                _ if bytes.is_empty() => return Ok(None),
                State::Header(header, have) => {
                    let taken = take(bytes, HEADER_BYTES - *have);
                    for (to, from) in header.iter_mut().skip(*have).zip(taken) {
                        *to = *from;
                    }
                    *have += taken.len();
                    if *have == HEADER_BYTES {
                        let header = *header;
                        self.state = self.begin(header);
                    }
                }
                State::Content(source, left) => {
                    let taken = take(bytes, bounded(*left));
                    let source = *source;
                    *left -= counted(taken);
                    if *left == 0 {
                        self.state = State::default();
                    }
                    return Ok(Some((source, taken)));
                }
                State::Error(said, left) => {
                    let taken = take(bytes, bounded(*left));
                    let room = MAX_ERROR_BYTES.saturating_sub(said.len());
                    said.extend(taken.iter().take(room));
                    *left -= counted(taken);
                    if *left == 0 {
                        let said = std::mem::take(said);
                        self.state = State::Corrupt(Corruption::Engine { said });
                    }
                }
            }
        }
    }

    /// The end of the stream.
    ///
    /// # Errors
    /// It is no place where a stream may end.
    pub fn finish(&self) -> Result<(), Corruption> {
        let missing = match &self.state {
            State::Header(_, 0) => return Ok(()),
            State::Header(_, have) => counted_len(HEADER_BYTES - have),
            State::Content(_, left) => *left,
            State::Error(said, _) => return Err(Corruption::Engine { said: said.clone() }),
            State::Corrupt(corruption) => return Err(corruption.clone()),
        };
        Err(Corruption::Truncated { missing })
    }

    /// What a whole header begins.
    fn begin(&mut self, header: [u8; HEADER_BYTES]) -> State {
        let [kind, a, b, c, length @ ..] = header;
        let length = u32::from_be_bytes(length);
        let found = [kind, a, b, c];
        let source = match found {
            [1, 0, 0, 0] => Some(Source::Stdout),
            [2, 0, 0, 0] => Some(Source::Stderr),
            // An error of the engine itself.
            [3, 0, 0, 0] => None,
            _ => return State::Corrupt(Corruption::NotAFrame { found }),
        };
        if length > MAX_FRAME_BYTES {
            return State::Corrupt(Corruption::Oversize { length });
        }
        self.empty = if length == 0 { self.empty + 1 } else { 0 };
        match source {
            _ if self.empty > MAX_EMPTY_FRAMES => State::Corrupt(Corruption::EmptyFrames),
            None if length == 0 => State::Corrupt(Corruption::Engine { said: Vec::new() }),
            None => State::Error(Vec::new(), length),
            Some(_) if length == 0 => State::default(),
            Some(source) => State::Content(source, length),
        }
    }
}

/// The next bytes, at most `most`.
fn take<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(most.min(bytes.len()));
    *bytes = rest;
    taken
}

fn bounded(left: u32) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX)
}

/// A piece is never longer than the frame it is of.
fn counted(piece: &[u8]) -> u32 {
    counted_len(piece.len())
}

fn counted_len(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::{engine_raw, frame, stream_raw};
    use proptest::prelude::*;

    type Decoded = (Vec<u8>, Vec<u8>, Result<(), Corruption>);

    fn decoded(stream: &[u8]) -> Decoded {
        let (mut decoder, mut out, mut err) = (StreamDecoder::new(), Vec::new(), Vec::new());
        let mut rest = stream;
        let ended = loop {
            match decoder.next(&mut rest) {
                Ok(Some((Source::Stdout, piece))) => out.extend(piece),
                Ok(Some((Source::Stderr, piece))) => err.extend(piece),
                Ok(None) => break decoder.finish(),
                Err(corruption) => break Err(corruption),
            }
        };
        (out, err, ended)
    }

    fn end(stream: &[u8]) -> Result<(), Corruption> {
        decoded(stream).2
    }

    #[test]
    fn frames_of_both_streams_and_empty_ones_are_joined() {
        let stream = [
            frame(1, b"ab"),
            frame(2, b"E"),
            frame(1, b""),
            frame(1, b"c"),
        ]
        .concat();
        assert_eq!(decoded(&stream), (b"abc".to_vec(), b"E".to_vec(), Ok(())));
        assert_eq!(end(b""), Ok(()));
    }

    /// What the usual client shows as a whole answer.
    #[test]
    fn a_stream_that_ends_inside_a_header_or_content_is_truncated() {
        let whole = frame(1, b"0123456789");
        for cut in 1..whole.len() {
            let missing = if cut < 8 { 8 - cut } else { whole.len() - cut };
            let missing = u32::try_from(missing).unwrap();
            assert_eq!(end(&whole[..cut]), Err(Corruption::Truncated { missing }));
        }
        assert_eq!(end(&whole), Ok(()));
    }

    #[test]
    fn an_error_frame_of_the_engine_is_its_error_and_nothing_after_it_is_output() {
        let stream = [frame(1, b"ok"), frame(3, b"no space"), frame(1, b"more")].concat();
        let (out, _, ended) = decoded(&stream);
        let said = b"no space".to_vec();
        assert_eq!(
            (out, ended),
            (b"ok".to_vec(), Err(Corruption::Engine { said }))
        );
        let cut = frame(3, b"no space");
        assert!(matches!(end(&cut[..10]), Err(Corruption::Engine { .. })));
        assert!(matches!(
            end(&frame(3, b"")),
            Err(Corruption::Engine { .. })
        ));
        let Err(Corruption::Engine { said }) = end(&frame(3, &[b'x'; 5000])) else {
            panic!("it was taken");
        };
        assert_eq!(said.len(), MAX_ERROR_BYTES);
    }

    #[test]
    fn text_of_a_console_unknown_kinds_and_padding_are_no_frames() {
        for bad in [
            b"OCI runtime exec failed".to_vec(),
            frame(0, b"x"),
            frame(4, b"x"),
            frame(255, b"x"),
            [1, 0, 1, 0, 0, 0, 0, 1, b'x'].to_vec(),
        ] {
            let found = [bad[0], bad[1], bad[2], bad[3]];
            assert_eq!(end(&bad), Err(Corruption::NotAFrame { found }));
        }
    }

    #[test]
    fn a_frame_without_end_is_refused_by_its_header() {
        let mut header = frame(1, b"");
        header[4..].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(end(&header), Err(Corruption::Oversize { length: u32::MAX }));
        let most = vec![b'x'; bounded(MAX_FRAME_BYTES)];
        assert_eq!(end(&frame(1, &most)), Ok(()));
    }

    #[test]
    fn empty_frames_are_legal_and_a_flood_of_them_is_not() {
        let some = frame(2, b"").repeat(bounded(MAX_EMPTY_FRAMES));
        assert_eq!(end(&some), Ok(()));
        assert_eq!(
            end(&[some, frame(1, b"")].concat()),
            Err(Corruption::EmptyFrames)
        );
    }

    #[test]
    fn a_corrupt_stream_stays_corrupt() {
        let mut decoder = StreamDecoder::new();
        let mut bad: &[u8] = b"nonsense";
        assert!(decoder.next(&mut bad).is_err());
        let good = frame(1, b"x");
        assert!(decoder.next(&mut &good[..]).is_err());
        assert!(decoder.finish().is_err());
    }

    /// Every seed and every regression of the fuzz target, by the same body.
    #[test]
    fn seeds_of_streams_play_as_they_should() {
        let fuzz = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
        let mut played = 0;
        for kind in ["seeds", "regressions"] {
            let Ok(files) = std::fs::read_dir(fuzz.join(kind).join("engine_raw")) else {
                continue;
            };
            for file in files {
                engine_raw(&std::fs::read(file.unwrap().path()).unwrap());
                played += 1;
            }
        }
        assert!(played >= 10, "{played} seeds");
    }

    /// The control: what a decoder does that hands on whatever is left at the end.
    #[test]
    fn a_decoder_that_takes_the_end_as_it_comes_is_caught() {
        let whole = frame(1, b"0123456789");
        let lenient = |bytes: &[u8]| decoded(bytes).0;
        assert_ne!(lenient(&whole[..12]), b"0123456789");
        assert!(end(&whole[..12]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_and_any_split_of_them_are_judged_alike(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            stream_raw(&bytes, &cuts);
        }

        #[test]
        fn what_was_framed_comes_out_whole_however_it_is_split(
            parts in proptest::collection::vec((1u8..=2, proptest::collection::vec(any::<u8>(), 0..50)), 0..10),
            cuts in proptest::collection::vec(0usize..600, 0..8),
        ) {
            let stream: Vec<u8> = parts.iter().flat_map(|(kind, bytes)| frame(*kind, bytes)).collect();
            stream_raw(&stream, &cuts);
            let joined = |kind: u8| -> Vec<u8> {
                parts.iter().filter(|p| p.0 == kind).flat_map(|p| p.1.clone()).collect()
            };
            prop_assert_eq!(decoded(&stream), (joined(1), joined(2), Ok(())));
        }
    }
}
