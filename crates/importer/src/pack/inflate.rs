use crate::{ImportError, ImporterCode};
use flate2::{Decompress, FlushDecompress, Status};

/// Inflates the entries of one pack. One state for all of them: it takes 40 KiB.
pub(super) struct Inflater(Decompress);

impl Inflater {
    pub(super) fn new() -> Self {
        Self(Decompress::new(false))
    }

    /// Inflates the zlib stream at the start of `input`, which must give exactly `size` bytes.
    /// Returns them and how many bytes of input the stream took. The caller has charged `size`.
    ///
    /// Header and checksum are read here and not by the library, so that each fault has its own
    /// name, and a preset dictionary never reaches it.
    pub(super) fn inflate(
        &mut self,
        input: &[u8],
        size: usize,
        offset: usize,
    ) -> Result<(Vec<u8>, usize), ImportError> {
        let wrong = |code: ImporterCode, what: &str| {
            Err(code.refuse(format!("{what}, object at offset {offset}, {size} bytes")))
        };
        let Some((head, stream)) = input.split_first_chunk::<2>() else {
            return wrong(ImporterCode::PackTruncated, "no stream");
        };
        if !is_plain_zlib(*head) {
            return wrong(ImporterCode::InflateHeader, &format!("got {head:02x?}"));
        }
        self.0.reset(false);
        // One byte more than declared: room in which a longer stream shows itself.
        let mut out = vec![0; size + 1];
        let status = self.0.decompress(stream, &mut out, FlushDecompress::Finish);
        let (used, made) = (as_usize(self.0.total_in()), as_usize(self.0.total_out()));
        match status {
            Err(_) => return wrong(ImporterCode::InflateBroken, "not a deflate stream"),
            Ok(_) if made > size => return wrong(ImporterCode::InflateLonger, "more comes out"),
            Ok(Status::Ok | Status::BufError) => {
                return wrong(ImporterCode::PackTruncated, "its stream does not end");
            }
            Ok(Status::StreamEnd) if made < size => {
                return wrong(ImporterCode::InflateShorter, &format!("got {made}"));
            }
            Ok(Status::StreamEnd) => out.truncate(size),
        }
        let Some(sum) = stream.get(used..).and_then(<[u8]>::first_chunk::<4>) else {
            return wrong(ImporterCode::PackTruncated, "no checksum");
        };
        if u32::from_be_bytes(*sum) != adler32(&out) {
            return wrong(ImporterCode::InflateChecksum, "another content");
        }
        Ok((out, head.len() + used + sum.len()))
    }
}

/// Method 8 with a window of 32 KiB, which every git writes: readers differ in what they do with a copy
/// from beyond a smaller one. A check that divides by 31, and no preset dictionary.
fn is_plain_zlib([method, flags]: [u8; 2]) -> bool {
    method == 0x78 && flags & 0x20 == 0 && u16::from_be_bytes([method, flags]) % 31 == 0
}

/// The checksum of RFC 1950.
pub(super) fn adler32(bytes: &[u8]) -> u32 {
    /// Largest prime below 2^16.
    const PRIME: u32 = 65_521;
    /// Most bytes whose sums stay below 2^32.
    const CHUNK: usize = 5_552;
    let (mut a, mut b) = (1u32, 0u32);
    for chunk in bytes.chunks(CHUNK) {
        for byte in chunk {
            a += u32::from(*byte);
            b += a;
        }
        a %= PRIME;
        b %= PRIME;
    }
    b << 16 | a
}

fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write as _;

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn code(input: &[u8], size: usize) -> ImporterCode {
        Inflater::new().inflate(input, size, 0).unwrap_err().code
    }

    #[test]
    fn a_stream_gives_exactly_what_was_declared_and_says_where_it_ends() {
        let mut inflater = Inflater::new();
        for body in [&b""[..], b"a", &[b'x'; 100_000]] {
            let stream = deflate(body);
            let longer = [&stream[..], b"next"].concat();
            let (out, used) = inflater.inflate(&longer, body.len(), 0).unwrap();
            assert_eq!((out.as_slice(), used), (body, stream.len()));
            assert_eq!(code(&stream, body.len() + 1), ImporterCode::InflateShorter);
        }
    }

    #[test]
    fn every_fault_of_a_stream_has_its_own_name() {
        let good = deflate(b"some text, some text");
        let with = |at: usize, byte: u8| {
            let mut bad = good.clone();
            bad[at] ^= byte;
            bad
        };
        assert_eq!(code(&good, 19), ImporterCode::InflateLonger);
        assert_eq!(code(&good, 0), ImporterCode::InflateLonger);
        assert_eq!(code(&good, 21), ImporterCode::InflateShorter);
        assert_eq!(
            code(&with(good.len() - 1, 1), 20),
            ImporterCode::InflateChecksum
        );
        assert_eq!(code(&with(0, 1), 20), ImporterCode::InflateHeader);
        assert_eq!(code(&with(2, 6), 20), ImporterCode::InflateBroken);
        for cut in [0, 1, 2, 5, good.len() - 1] {
            assert_eq!(code(&good[..cut], 20), ImporterCode::PackTruncated, "{cut}");
        }
        // A preset dictionary, announced with a right check.
        assert_eq!(
            code(&[0x78, 0xbb, 0, 0, 0, 1], 20),
            ImporterCode::InflateHeader
        );
    }

    #[test]
    fn a_bomb_makes_no_more_than_was_declared() {
        let bomb = deflate(&vec![0; 1 << 20]);
        assert_eq!(code(&bomb, 100), ImporterCode::InflateLonger);
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(adler32(b""), 1);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(adler32(&vec![0xff; 1 << 20]), {
            let stream = deflate(&vec![0xff; 1 << 20]);
            u32::from_be_bytes(*stream.last_chunk::<4>().unwrap())
        });
    }
}
