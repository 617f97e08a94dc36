use crate::objects::Kind;
use crate::{ImportError, ImporterCode, hash};
use flate2::{Compress, Compression, FlushCompress, Status};
use flightproof_core::ObjectId;

/// Writes a pack of our own: the objects in the order of their ids, none as a delta, each
/// compressed anew. One set of objects has one pack.
pub(crate) fn write<'a>(
    objects: impl ExactSizeIterator<Item = (ObjectId, Kind, &'a [u8])>,
) -> Result<Vec<u8>, ImportError> {
    let count =
        u32::try_from(objects.len()).map_err(|e| ImporterCode::ObjectsOverLimit.refuse(e))?;
    let mut objects: Vec<_> = objects.collect();
    objects.sort_by_key(|(id, ..)| *id);
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(count.to_be_bytes());
    let mut deflater = Compress::new(LEVEL, true);
    for (_, kind, body) in objects {
        entry_head(&mut pack, kind, body.len());
        deflate(&mut deflater, body, &mut pack)?;
    }
    let sum = hash::sha1(&[&pack]).map_err(|e| ImporterCode::PackChecksum.refuse(e))?;
    pack.extend(sum.as_bytes());
    Ok(pack)
}

/// Git reads it once: speed before size.
const LEVEL: Compression = Compression::fast();

fn entry_head(pack: &mut Vec<u8>, kind: Kind, size: usize) {
    let word = match kind {
        Kind::Commit => 1u8,
        Kind::Tree => 2,
        Kind::Blob => 3,
    };
    let [low, ..] = size.to_le_bytes();
    let mut byte = word << 4 | low & 15;
    let mut rest = size >> 4;
    while rest > 0 {
        pack.push(byte | 0x80);
        let [low, ..] = rest.to_le_bytes();
        byte = low & 0x7f;
        rest >>= 7;
    }
    pack.push(byte);
}

fn deflate(with: &mut Compress, body: &[u8], out: &mut Vec<u8>) -> Result<(), ImportError> {
    with.reset();
    // What deflate adds to bytes that do not compress: five in 16,383, and a frame of eleven.
    out.reserve(body.len() + body.len() / 1_000 + 64);
    match with.compress_vec(body, out, FlushCompress::Finish) {
        Ok(Status::StreamEnd) => Ok(()),
        other => Err(ImporterCode::BundleMalformed.refuse(format!("deflate: {other:?}"))),
    }
}
