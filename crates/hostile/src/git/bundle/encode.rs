use crate::git::Id;
use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression, FlushCompress};
use sha1_checked::{Digest as _, Sha1};
use std::io::Write as _;

/// A pack as plain data: every part of it may be a lie.
#[derive(Debug, Clone)]
pub struct PackPlan {
    /// The four bytes it begins with.
    pub magic: [u8; 4],
    /// Its version.
    pub version: u32,
    /// The number of entries it announces, if not the true one.
    pub count: Option<u32>,
    /// Its entries.
    pub entries: Vec<EntryPlan>,
    /// Bytes between the last entry and the checksum.
    pub before_sum: Vec<u8>,
    /// A bit pattern put over the checksum's last byte.
    pub spoil_sum: u8,
    /// Bytes after the checksum.
    pub after_sum: Vec<u8>,
}

/// One entry.
#[derive(Debug, Clone)]
pub struct EntryPlan {
    /// The type in its header: three bits.
    pub word: u8,
    /// The size in its header.
    pub size: u64,
    /// Bytes of zero that make the size longer than it need be.
    pub padding: usize,
    /// What it stands on.
    pub base: BasePlan,
    /// Its compressed stream.
    pub stream: Vec<u8>,
}

/// What a delta stands on.
#[derive(Debug, Clone, Copy)]
pub enum BasePlan {
    /// Nothing: it is no delta.
    None,
    /// The entry of this number, by its distance.
    Entry(usize),
    /// So many bytes before the entry.
    Back(u64),
    /// An object by its id.
    Object(Id),
}

impl EntryPlan {
    /// A whole object.
    pub fn whole(kind: &str, body: &[u8]) -> Self {
        let word = match kind {
            "commit" => 1,
            "tree" => 2,
            "blob" => 3,
            _ => 4,
        };
        Self::of(word, BasePlan::None, body)
    }

    /// A delta on an entry of the pack.
    pub fn on_entry(base: usize, delta: &[u8]) -> Self {
        Self::of(6, BasePlan::Entry(base), delta)
    }

    /// A delta on an object.
    pub fn on_object(base: Id, delta: &[u8]) -> Self {
        Self::of(7, BasePlan::Object(base), delta)
    }

    fn of(word: u8, base: BasePlan, data: &[u8]) -> Self {
        Self {
            word,
            size: data.len() as u64,
            padding: 0,
            base,
            stream: zlib(data),
        }
    }
}

impl PackPlan {
    /// A pack of these entries that does not lie.
    pub fn honest(entries: Vec<EntryPlan>) -> Self {
        Self {
            magic: *b"PACK",
            version: 2,
            count: None,
            entries,
            before_sum: Vec::new(),
            spoil_sum: 0,
            after_sum: Vec::new(),
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.magic.to_vec();
        out.extend(self.version.to_be_bytes());
        let true_count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        out.extend(self.count.unwrap_or(true_count).to_be_bytes());
        let mut places = Vec::new();
        for entry in &self.entries {
            places.push(out.len());
            entry.write(&mut out, &places);
        }
        out.extend(&self.before_sum);
        let mut sum: Id = Sha1::digest(&out).into();
        sum[19] ^= self.spoil_sum;
        out.extend(sum);
        out.extend(&self.after_sum);
        out
    }
}

impl EntryPlan {
    fn write(&self, out: &mut Vec<u8>, places: &[usize]) {
        let here = out.len();
        out.extend(type_and_size(self.word, self.size, self.padding));
        match self.base {
            BasePlan::None => {}
            BasePlan::Entry(number) => {
                let place = places.get(number).copied().unwrap_or(0);
                out.extend(distance((here - place) as u64));
            }
            BasePlan::Back(bytes) => out.extend(distance(bytes)),
            BasePlan::Object(id) => out.extend(id),
        }
        out.extend(&self.stream);
    }
}

/// Type and size of an entry, with `padding` more bytes than needed.
fn type_and_size(word: u8, size: u64, padding: usize) -> Vec<u8> {
    let mut groups = vec![word << 4 | low_bits(size, 4)];
    let mut rest = size >> 4;
    while rest > 0 {
        groups.push(low_bits(rest, 7));
        rest >>= 7;
    }
    groups.extend(vec![0; padding]);
    continued(groups)
}

/// A number of a delta's header: seven bits at a time, the lowest first.
pub(super) fn size(number: u64, padding: usize) -> Vec<u8> {
    let mut groups = vec![low_bits(number, 7)];
    let mut rest = number >> 7;
    while rest > 0 {
        groups.push(low_bits(rest, 7));
        rest >>= 7;
    }
    groups.extend(vec![0; padding]);
    continued(groups)
}

/// Marks all bytes but the last as not the last.
fn continued(mut groups: Vec<u8>) -> Vec<u8> {
    let last = groups.len() - 1;
    for group in &mut groups[..last] {
        *group |= 0x80;
    }
    groups
}

/// A distance between entries: the highest bits first, one less in each byte but the last.
fn distance(bytes: u64) -> Vec<u8> {
    let mut groups = vec![low_bits(bytes, 7)];
    let mut rest = bytes >> 7;
    while rest > 0 {
        rest -= 1;
        groups.push(low_bits(rest, 7));
        rest >>= 7;
    }
    groups.reverse();
    continued(groups)
}

fn low_bits(number: u64, bits: u32) -> u8 {
    number.to_le_bytes()[0] & ((1u16 << bits) - 1).to_le_bytes()[0]
}

/// A delta as plain data.
#[derive(Debug, Clone)]
pub struct DeltaPlan {
    /// The size it declares of its base.
    pub base: u64,
    /// The size it declares of its result.
    pub result: u64,
    /// Bytes of zero that make the result's size longer than it need be.
    pub padding: usize,
    /// Its instructions.
    pub steps: Vec<Step>,
}

/// One instruction.
#[derive(Debug, Clone)]
pub enum Step {
    /// So many bytes from this offset of the base.
    Copy(u32, u32),
    /// These bytes, at most 127.
    Insert(Vec<u8>),
    /// Whatever bytes.
    Raw(Vec<u8>),
}

impl DeltaPlan {
    /// A delta with these steps on a base of this size that tells the truth.
    pub fn honest(base: usize, steps: Vec<Step>) -> Self {
        let made = |step: &Step| match step {
            Step::Copy(_, length) => u64::from(*length),
            Step::Insert(bytes) | Step::Raw(bytes) => bytes.len() as u64,
        };
        Self {
            base: base as u64,
            result: steps.iter().map(made).sum(),
            padding: 0,
            steps,
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = [size(self.base, 0), size(self.result, self.padding)].concat();
        for step in &self.steps {
            match step {
                Step::Copy(offset, length) => copy(&mut out, *offset, *length),
                Step::Insert(bytes) => {
                    out.push(bytes.len().to_le_bytes()[0]);
                    out.extend(bytes);
                }
                Step::Raw(bytes) => out.extend(bytes),
            }
        }
        out
    }
}

/// A copy instruction; its operands leave out bytes of zero, and a length of 65,536 is none.
fn copy(out: &mut Vec<u8>, offset: u32, length: u32) {
    let length = if length == 0x1_0000 { 0 } else { length };
    let operands = [&offset.to_le_bytes()[..], &length.to_le_bytes()[..3]].concat();
    let mut instruction = 0x80;
    for (bit, byte) in operands.iter().enumerate() {
        instruction |= u8::from(*byte != 0) << bit;
    }
    out.push(instruction);
    out.extend(operands.iter().filter(|byte| **byte != 0));
}

/// A zlib stream, as small as it gets.
pub(super) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// A zlib stream of stored blocks of at most `block` bytes each, so that its length is known
/// beforehand. With a block of zero bytes in front of each `empty` times.
pub(super) fn stored(bytes: &[u8], empty: usize) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    for _ in 0..empty {
        out.extend([0, 0, 0, 0xff, 0xff]);
    }
    let mut chunks = bytes.chunks(0xffff).peekable();
    if chunks.peek().is_none() {
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(chunk) = chunks.next() {
        let length = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        out.push(u8::from(chunks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(chunk);
    }
    out.extend(adler(bytes).to_be_bytes());
    out
}

/// A zlib stream of so many MiB of zeros: one compressed MiB, over and over.
pub(super) fn bomb(mebibytes: u32) -> Vec<u8> {
    let mut block = Vec::with_capacity(1 << 14);
    let zeros = vec![0; 1 << 20];
    let mut deflater = Compress::new(Compression::best(), false);
    // Flushed fully, a block needs nothing that was before it, so it may be repeated.
    let _ = deflater.compress_vec(&zeros, &mut block, FlushCompress::Full);
    let mut out = vec![0x78, 0xda];
    for _ in 0..mebibytes {
        out.extend(&block);
    }
    out.extend([1, 0, 0, 0xff, 0xff]);
    // Zeros leave the low sum at one, so the high one counts them.
    let high = (mebibytes << 20) % 65_521;
    out.extend((high << 16 | 1).to_be_bytes());
    out
}

fn adler(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1u64, 0u64);
    for byte in bytes {
        low = (low + u64::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    u32::try_from(high << 16 | low).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_as_the_format_describes() {
        assert_eq!(type_and_size(3, 15, 0), [0x3f]);
        assert_eq!(type_and_size(3, 16, 0), [0xb0, 0x01]);
        assert_eq!(type_and_size(3, 15, 2), [0xbf, 0x80, 0x00]);
        assert_eq!(size(0, 0), [0]);
        assert_eq!(size(300, 0), [0xac, 0x02]);
        assert_eq!(distance(127), [0x7f]);
        assert_eq!(distance(128), [0x80, 0x00]);
        assert_eq!(distance(16_511), [0xff, 0x7f]);
    }

    #[test]
    fn copies_leave_out_bytes_of_zero() {
        let delta = DeltaPlan::honest(
            0x1_0000,
            vec![Step::Copy(0x100, 5), Step::Copy(0, 0x1_0000)],
        );
        assert_eq!(delta.bytes()[6..], [0x92, 0x01, 0x05, 0x80]);
    }

    #[test]
    fn a_bomb_is_a_true_stream_of_zeros() {
        let mut out = Vec::new();
        let mut reader = flate2::write::ZlibDecoder::new(&mut out);
        reader.write_all(&bomb(3)).unwrap();
        reader.finish().unwrap();
        assert_eq!(out.len(), 3 << 20);
        assert!(out.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn stored_streams_have_the_checksum_of_the_library() {
        for body in [&b""[..], b"abc", &[9; 70_000]] {
            let (ours, theirs) = (stored(body, 1), zlib(body));
            assert_eq!(ours.last_chunk::<4>(), theirs.last_chunk::<4>());
        }
    }
}
