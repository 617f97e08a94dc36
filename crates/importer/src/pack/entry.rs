use super::inflate::Inflater;
use super::{OBJECTS, RAW};
use crate::objects::Kind;
use crate::{ImportError, ImporterCode, hash};
use flightproof_core::ObjectId;

/// One entry of a pack, inflated.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it begins in the pack, in bytes.
    pub(crate) offset: usize,
    pub(crate) form: Form,
    /// The object's content, or the instructions of the delta.
    pub(crate) data: Vec<u8>,
}

/// What the bytes of an entry are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole(Kind),
    Delta(Base),
}

/// What a delta stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// An earlier entry, by its number.
    Entry(usize),
    /// An object, wherever it is.
    Object(ObjectId),
}

/// Magic, version and count.
const HEAD: usize = 12;
/// The SHA-1 of everything before it.
const TAIL: usize = 20;
/// A header of one byte, and the shortest zlib stream: two bytes, an empty block, a checksum.
const SHORTEST: usize = 1 + 8;

/// Reads all entries of a pack. Nothing may be left over.
pub(crate) fn read(pack: &[u8]) -> Result<Vec<Entry>, ImportError> {
    let count = read_head(pack)?;
    let end = check_tail(pack, count)?;
    let mut input = Input {
        bytes: pack.get(..end).unwrap_or_default(),
        at: HEAD,
    };
    let mut inflater = Inflater::new();
    let mut raw_left = RAW;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(read_entry(
            &mut input,
            &mut inflater,
            &mut raw_left,
            &entries,
        )?);
    }
    match end - input.at {
        0 => Ok(entries),
        more => {
            Err(ImporterCode::PackTrailing.refuse(format!("{more} bytes at offset {}", input.at)))
        }
    }
}

/// The number of entries.
fn read_head(pack: &[u8]) -> Result<usize, ImportError> {
    if pack.len() < HEAD + TAIL {
        let detail = format!("{} bytes follow the header", pack.len());
        return Err(match b"PACK".starts_with(pack.get(..4).unwrap_or(pack)) {
            true => ImporterCode::PackTruncated.refuse(detail),
            false => ImporterCode::PackHeader.refuse(detail),
        });
    }
    let count = match pack.first_chunk::<HEAD>() {
        Some([b'P', b'A', b'C', b'K', 0, 0, 0, 2, count @ ..]) => u32::from_be_bytes(*count),
        _ => return Err(ImporterCode::PackHeader.refuse("expected PACK and version 2")),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    match count {
        0 => Err(ImporterCode::PackHeader.refuse("it announces no object")),
        1..=OBJECTS => Ok(count),
        _ => Err(ImporterCode::ObjectsOverLimit.refuse(format!("got {count}, at most {OBJECTS}"))),
    }
}

/// Where the entries end.
fn check_tail(pack: &[u8], count: usize) -> Result<usize, ImportError> {
    let end = pack.len() - TAIL;
    if HEAD + count * SHORTEST > end {
        let detail = format!("{} bytes for {count} objects", pack.len());
        return Err(ImporterCode::PackTruncated.refuse(detail));
    }
    let (body, sum) = pack.split_at(end);
    match hash::sha1(&[body]) {
        Ok(found) if found.as_bytes()[..] == *sum => Ok(end),
        Ok(found) => Err(ImporterCode::PackChecksum.refuse(format!("its bytes have {found}"))),
        Err(collision) => Err(ImporterCode::PackChecksum.refuse(collision)),
    }
}

/// The unread part of a pack.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, ImportError> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| self.cut())?;
        self.at += 1;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let found = self.rest().first_chunk::<N>().copied();
        let array = found.ok_or_else(|| self.cut())?;
        self.at += N;
        Ok(array)
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn cut(&self) -> ImportError {
        ImporterCode::PackTruncated.refuse(format!("at offset {}", self.bytes.len()))
    }
}

fn read_entry(
    input: &mut Input<'_>,
    inflater: &mut Inflater,
    raw_left: &mut usize,
    before: &[Entry],
) -> Result<Entry, ImportError> {
    let offset = input.at;
    let (word, size) = read_type_and_size(input)?;
    let form = match word {
        1 => Form::Whole(Kind::Commit),
        2 => Form::Whole(Kind::Tree),
        3 => Form::Whole(Kind::Blob),
        6 => Form::Delta(Base::Entry(read_offset(input, offset, before)?)),
        7 => Form::Delta(Base::Object(ObjectId::from_bytes(input.array()?))),
        _ => {
            let detail = format!("type {word} at offset {offset}");
            return Err(ImporterCode::PackEntryType.refuse(detail));
        }
    };
    // Charged before anything is allocated for it.
    *raw_left = raw_left.checked_sub(size).ok_or_else(|| {
        let detail = format!("{size} bytes at offset {offset}, {raw_left} of {RAW} are left");
        ImporterCode::BytesOverLimit.refuse(detail)
    })?;
    let (data, used) = inflater.inflate(input.rest(), size, offset)?;
    input.at += used;
    Ok(Entry { offset, form, data })
}

/// Three bits of type; a size in four bits, then seven at a time, the lowest first.
fn read_type_and_size(input: &mut Input<'_>) -> Result<(u8, usize), ImportError> {
    let at = input.at;
    let first = input.byte()?;
    let mut size = usize::from(first & 15);
    let mut shift = 4;
    let mut more = first & 0x80 != 0;
    while more {
        let byte = input.byte()?;
        let part = usize::from(byte & 0x7f);
        more = byte & 0x80 != 0;
        // A last byte of zero adds nothing: the number has a shorter form.
        if shift > SHIFT || (part == 0 && !more) {
            return Err(number(at));
        }
        size |= part << shift;
        shift += 7;
    }
    Ok((first >> 4 & 7, size))
}

/// Bits below the last group of seven that is read: numbers up to 2^32, far above every limit.
const SHIFT: u32 = 25;

/// The entry that begins this far before `offset`: seven bits at a time, the highest first, each
/// further byte adding one so that no number has two forms.
fn read_offset(
    input: &mut Input<'_>,
    offset: usize,
    before: &[Entry],
) -> Result<usize, ImportError> {
    let nowhere = |back: usize| {
        let detail = format!("{back} bytes or more before offset {offset}");
        ImporterCode::DeltaOffset.refuse(detail)
    };
    let mut byte = input.byte()?;
    let mut back = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = input.byte()?;
        if back > offset {
            return Err(nowhere(back));
        }
        back = (back + 1) << 7 | usize::from(byte & 0x7f);
    }
    offset
        .checked_sub(back)
        .and_then(|place| {
            before
                .binary_search_by_key(&place, |entry| entry.offset)
                .ok()
        })
        .ok_or_else(|| nowhere(back))
}

fn number(at: usize) -> ImportError {
    ImporterCode::PackNumber.refuse(format!("at offset {at}"))
}
