use crate::{ImportError, ImporterCode};

/// The sizes a delta declares, of what it stands on and of what it makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    base: usize,
    pub(super) result: usize,
}

impl Sizes {
    /// Reads them. Returns the instructions that follow.
    pub(super) fn read(delta: &[u8]) -> Result<(Self, &[u8]), ImportError> {
        let (base, rest) = read_size(delta)?;
        let (result, rest) = read_size(rest)?;
        Ok((Self { base, result }, rest))
    }
}

/// Applies a delta. The size of the result is the declared one or it is refused; `most` bounds it
/// before anything is allocated.
pub(crate) fn apply(base: &[u8], delta: &[u8], most: usize) -> Result<Vec<u8>, ImportError> {
    let (sizes, mut rest) = Sizes::read(delta)?;
    if sizes.base != base.len() {
        let detail = format!("base: got {}, declared {}", base.len(), sizes.base);
        return Err(ImporterCode::DeltaSize.refuse(detail));
    }
    if sizes.result > most {
        let detail = format!("a delta declares {}, {most} are left", sizes.result);
        return Err(ImporterCode::BytesOverLimit.refuse(detail));
    }
    let mut out = Vec::with_capacity(sizes.result);
    while let Some((instruction, after)) = rest.split_first() {
        let (piece, after) = match instruction {
            0 => return Err(malformed("instruction 0")),
            1..=0x7f => split(after, usize::from(*instruction))?,
            _ => copy(base, *instruction, after)?,
        };
        if piece.len() > sizes.result - out.len() {
            let detail = format!("result: more than the declared {}", sizes.result);
            return Err(ImporterCode::DeltaSize.refuse(detail));
        }
        out.extend_from_slice(piece);
        rest = after;
    }
    if out.len() == sizes.result {
        return Ok(out);
    }
    let detail = format!("result: got {}, declared {}", out.len(), sizes.result);
    Err(ImporterCode::DeltaSize.refuse(detail))
}

/// Seven bits at a time, the lowest first, in the shortest form.
fn read_size(delta: &[u8]) -> Result<(usize, &[u8]), ImportError> {
    /// Bits below the last group: sizes up to 2^35, far above every limit.
    const SHIFT: u32 = 28;
    let (mut size, mut shift, mut rest) = (0, 0, delta);
    loop {
        let (byte, after) = rest.split_first().ok_or_else(|| malformed("no sizes"))?;
        let part = usize::from(byte & 0x7f);
        let is_last = byte & 0x80 == 0;
        if shift > SHIFT || (part == 0 && is_last && shift > 0) {
            return Err(ImporterCode::PackNumber.refuse("a size in a delta"));
        }
        size |= part << shift;
        (shift, rest) = (shift + 7, after);
        if is_last {
            return Ok((size, rest));
        }
    }
}

/// What a copy instruction names in the base. Its low bits say which bytes of offset and length
/// follow; a length of zero means 65,536.
fn copy<'a, 'b>(
    base: &'a [u8],
    instruction: u8,
    operands: &'b [u8],
) -> Result<(&'a [u8], &'b [u8]), ImportError> {
    let (mut number, mut rest) = (0u64, operands);
    for bit in (0..7).filter(|bit| instruction & 1 << bit != 0) {
        let (byte, after) = rest
            .split_first()
            .ok_or_else(|| malformed("it ends in a copy"))?;
        number |= u64::from(*byte) << (8 * bit);
        rest = after;
    }
    let offset = usize::try_from(number & 0xffff_ffff).unwrap_or(usize::MAX);
    let length = match usize::try_from(number >> 32).unwrap_or(usize::MAX) {
        0 => 0x1_0000,
        length => length,
    };
    let piece = offset
        .checked_add(length)
        .and_then(|end| base.get(offset..end));
    match piece {
        Some(piece) => Ok((piece, rest)),
        None => {
            Err(ImporterCode::DeltaCopy
                .refuse(format!("{length} bytes at {offset} of {}", base.len())))
        }
    }
}

fn split(bytes: &[u8], count: usize) -> Result<(&[u8], &[u8]), ImportError> {
    bytes
        .split_at_checked(count)
        .ok_or_else(|| malformed("it ends in an insertion"))
}

fn malformed(why: &str) -> ImportError {
    ImporterCode::DeltaMalformed.refuse(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(base: &[u8], delta: &[u8]) -> Result<Vec<u8>, ImporterCode> {
        apply(base, delta, 1 << 20).map_err(|e| e.code)
    }

    #[test]
    fn copies_and_insertions_make_the_result() {
        let delta = [b"\x05\x07\x91\x01\x03\x02xy".as_slice(), b"\x90\x02"].concat();
        assert_eq!(made(b"abcde", &delta).unwrap(), b"bcdxyab");
        assert_eq!(made(b"", b"\0\x01\x01x").unwrap(), b"x");
        assert_eq!(made(b"a", b"\x01\0").unwrap(), b"");
    }

    #[test]
    fn a_length_of_zero_is_sixty_four_kibibytes() {
        let base = vec![7; 0x1_0000];
        let delta = b"\x80\x80\x04\x80\x80\x04\x80";
        assert_eq!(made(&base, delta).unwrap(), base);
        assert_eq!(
            made(&base[1..], b"\xff\xff\x03\x80\x80\x04\x80"),
            Err(ImporterCode::DeltaCopy)
        );
    }

    #[test]
    fn every_lie_of_a_delta_has_its_name() {
        use ImporterCode::{BytesOverLimit, DeltaCopy, DeltaMalformed, DeltaSize, PackNumber};
        for (delta, code) in [
            (&b""[..], DeltaMalformed),
            (b"\x05", DeltaMalformed),
            (b"\x05\x85", DeltaMalformed),
            (b"\x05\x01\0", DeltaMalformed),
            (b"\x05\x02\x02a", DeltaMalformed),
            (b"\x05\x02\x91\x01", DeltaMalformed),
            (b"\x04\x01\x01a", DeltaSize),
            (b"\x05\x01\x02ab", DeltaSize),
            (b"\x05\x02\x01a", DeltaSize),
            (b"\x05\x01", DeltaSize),
            (b"\x05\x03\x91\x03\x03", DeltaCopy),
            (b"\x05\x03\x9f\xff\xff\xff\xff\x03", DeltaCopy),
            (b"\x85\0\x01\x01a", PackNumber),
            (b"\x05\x81\0\x01a", PackNumber),
            (b"\x05\xff\xff\xff\xff\xff\xff\xff\x7f", PackNumber),
            (b"\x05\xff\xff\xff\x7f\x91\x01\x03", BytesOverLimit),
        ] {
            assert_eq!(made(b"abcde", delta), Err(code), "{delta:02x?}");
        }
    }
}
