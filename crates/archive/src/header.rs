use crate::code::{ArchiveCode, ArchiveError};
use crate::json::Sink;

/// How an archive begins: a magic, then the length of its manifest, big-endian.
pub(crate) struct Layout {
    pub(crate) magic: &'static [u8; 5],
    /// Bytes of the length field.
    pub(crate) length_bytes: usize,
    /// Most bytes of a manifest.
    pub(crate) max_manifest: usize,
    /// Most bytes of a whole archive.
    pub(crate) max_archive: u64,
    /// How the format says that there is nothing at all.
    pub(crate) empty: ArchiveCode,
    /// How it says that the payload ends early.
    pub(crate) truncated: ArchiveCode,
    /// How it says that bytes follow the payload.
    pub(crate) trailing: ArchiveCode,
}

impl Layout {
    /// Bytes before the manifest.
    pub(crate) const fn header_bytes(&self) -> usize {
        self.magic.len() + self.length_bytes
    }

    /// What a length alone can be refused for.
    pub(crate) fn check_size(&self, total: u64) -> Result<(), ArchiveError> {
        match total {
            0 => Err(self.empty.refuse("0 bytes")),
            total if total > self.max_archive => Err(ArchiveCode::ArchiveTooLarge.refuse(
                format_args!("{total} bytes, at most {} allowed", self.max_archive),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a payload of which so many bytes are missing.
    pub(crate) fn ends_early(&self, promised: u64, missing: u64) -> ArchiveError {
        let found = promised.saturating_sub(missing);
        self.truncated.refuse(format_args!(
            "got {found} bytes of payload, expected {promised}"
        ))
    }

    /// Compares the length of a payload with the sum of the sizes in the manifest.
    pub(crate) fn check_payload(&self, found: u64, promised: u64) -> Result<(), ArchiveError> {
        let code = match found.cmp(&promised) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => self.truncated,
            std::cmp::Ordering::Greater => self.trailing,
        };
        Err(code.refuse(format_args!(
            "got {found} bytes of payload, expected {promised}"
        )))
    }

    /// Refuses a manifest that ends early.
    pub(crate) fn check_whole(&self, said: usize, found: usize) -> Result<(), ArchiveError> {
        if said == found {
            return Ok(());
        }
        Err(ArchiveCode::ManifestTruncated.refuse(format_args!(
            "the manifest says {said} bytes, {found} are there"
        )))
    }

    /// Reads the header alone: how long the manifest says it is, already below its limit.
    pub(crate) fn manifest_length(&self, bytes: &[u8]) -> Result<usize, ArchiveError> {
        let Some((magic, length)) = bytes
            .get(..self.header_bytes())
            .and_then(|header| header.split_at_checked(self.magic.len()))
        else {
            return Err(ArchiveCode::ShortHeader.refuse(format_args!(
                "{} bytes, the header alone has {}",
                bytes.len(),
                self.header_bytes()
            )));
        };
        if magic != self.magic {
            return Err(ArchiveCode::BadMagic.refuse(format_args!(
                "got \"{}\", expected \"{}\"",
                flightproof_core::Escaped(magic),
                flightproof_core::Escaped(self.magic)
            )));
        }
        // At most eight bytes, so the shift loses nothing; the limit is applied before any cast.
        let length = length
            .iter()
            .fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        usize::try_from(length)
            .ok()
            .filter(|length| *length <= self.max_manifest)
            .ok_or_else(|| {
                ArchiveCode::ManifestTooLarge.refuse(format_args!(
                    "the manifest says {length} bytes, at most {} are read",
                    self.max_manifest
                ))
            })
    }

    /// The manifest and whatever follows it.
    pub(crate) fn split<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), ArchiveError> {
        let length = self.manifest_length(bytes)?;
        let rest = bytes.get(self.header_bytes()..).unwrap_or_default();
        self.check_whole(length, rest.len().min(length))?;
        Ok(rest.split_at_checked(length).unwrap_or((rest, &[])))
    }

    /// Header and manifest as one piece.
    pub(crate) fn join(&self, manifest: &[u8]) -> Result<Vec<u8>, ArchiveError> {
        let mut out = self.header(manifest.len())?;
        out.extend_from_slice(manifest);
        Ok(out)
    }

    /// What stands before a manifest of so many bytes, with room for it behind.
    pub(crate) fn header(&self, manifest: usize) -> Result<Vec<u8>, ArchiveError> {
        if manifest > self.max_manifest {
            return Err(ArchiveCode::ManifestTooLarge.refuse(format_args!(
                "the manifest has {manifest} bytes, at most {} are written",
                self.max_manifest
            )));
        }
        // A slice of the eight-byte form: the limit above keeps the cut bytes zero.
        let length = (manifest as u64).to_be_bytes();
        let mut out = Vec::with_capacity(self.header_bytes() + manifest);
        out.extend_from_slice(self.magic);
        out.extend(length.iter().skip(length.len() - self.length_bytes));
        Ok(out)
    }
}

/// How long a text will be, without the text.
#[derive(Default)]
pub(crate) struct Length(pub(crate) usize);

impl Sink for Length {
    fn put(&mut self, text: &str) {
        self.0 += text.len();
    }
}

/// A manifest that is written behind its header.
pub(crate) struct Behind(pub(crate) Vec<u8>);

impl Sink for Behind {
    fn put(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// A manifest as text. A byte order mark is refused with the encoding: readers disagree on whether
/// it belongs to the text.
pub(crate) fn utf8(manifest: &[u8]) -> Result<&str, ArchiveError> {
    let text = std::str::from_utf8(manifest).map_err(|e| {
        ArchiveCode::InvalidUtf8.refuse(format_args!("at byte {} of the manifest", e.valid_up_to()))
    })?;
    if text.starts_with('\u{feff}') {
        return Err(ArchiveCode::InvalidUtf8.refuse("the manifest starts with a byte order mark"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Layout = Layout {
        magic: b"SMALL",
        length_bytes: 2,
        max_manifest: 0x0102,
        max_archive: 1000,
        empty: ArchiveCode::BufferEmpty,
        truncated: ArchiveCode::PayloadTruncated,
        trailing: ArchiveCode::TrailingBytes,
    };

    #[test]
    fn a_limit_is_the_last_that_is_taken() {
        let code = |size| SMALL.check_size(size).err().map(|e| e.code);
        assert_eq!(code(0), Some(ArchiveCode::BufferEmpty));
        assert_eq!((code(1), code(999), code(1000)), (None, None, None));
        assert_eq!(code(1001), Some(ArchiveCode::ArchiveTooLarge));

        let too_large = Some(ArchiveCode::ManifestTooLarge);
        let read = |bytes: &[u8]| SMALL.manifest_length(bytes);
        assert_eq!(read(b"SMALL\x01\x02"), Ok(0x0102));
        assert_eq!(read(b"SMALL\x01\x03").err().map(|e| e.code), too_large);
        let written = |manifest| SMALL.header(manifest);
        assert_eq!(written(0x0102), Ok(b"SMALL\x01\x02".to_vec()));
        assert_eq!(written(7), Ok(b"SMALL\x00\x07".to_vec()));
        assert_eq!(written(0x0103).err().map(|e| e.code), too_large);
    }
}
