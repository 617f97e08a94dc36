//! The bytes of an archive as they come: first the manifest, then the payload, then the end.

use crate::beneath::io;
use crate::code::ArchiveError;
use crate::format::Format;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;

/// An archive that is read from its beginning.
pub(crate) struct Source<R> {
    reader: R,
    /// Bytes that are left of it, where its length is known.
    left: Option<u64>,
}

/// The payload of an archive, read through one buffer.
pub(crate) struct Payload<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes the reader may still be asked for. It may hold more that is not ours.
    left: u64,
}

/// How much was found where more was promised.
pub(crate) enum Shortage {
    /// It ended, so many bytes early.
    Ends(u64),
    Io(std::io::Error),
}

/// A file from some place on. Its cursor is neither used nor moved, so two may read one file.
pub(crate) struct From<'a> {
    pub(crate) file: &'a File,
    pub(crate) offset: u64,
}

/// Bytes of payload held at once, 256 KiB: what fits a core's cache, and all the memory a file
/// needs, however long it is.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

impl<R: Read> Source<R> {
    /// An archive of exactly `size` bytes, of which no more are read; or one that ends where the
    /// reader does.
    pub(crate) fn new(reader: R, size: Option<u64>) -> Self {
        Self { reader, left: size }
    }

    /// Reads header and manifest.
    pub(crate) fn manifest<F: Format>(&mut self) -> Result<F::Manifest, ArchiveError> {
        let total = self.left;
        let layout = F::LAYOUT;
        total.map_or(Ok(()), |size| layout.check_size(size))?;
        let header = self.piece(layout.header_bytes())?;
        if header.is_empty() {
            return Err(layout.empty.refuse("0 bytes"));
        }
        let length = layout.manifest_length(&header)?;
        let manifest = self.piece(length)?;
        layout.check_whole(length, manifest.len())?;
        F::decode(&manifest, total)
    }

    /// All that follows the manifest, which must be `promised` bytes.
    pub(crate) fn payload<F: Format>(self, promised: u64) -> Result<Payload<R>, ArchiveError> {
        let layout = F::LAYOUT;
        self.left
            .map_or(Ok(()), |left| layout.check_payload(left, promised))?;
        Ok(Payload::new(self.reader, promised))
    }

    /// The next `length` bytes, fewer at the end. Grows as bytes arrive, not on a claim.
    fn piece(&mut self, length: usize) -> Result<Vec<u8>, ArchiveError> {
        let most = self.left.unwrap_or(u64::MAX).min(length as u64);
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(most).read_to_end(&mut bytes);
        read.map_err(|e| io("read the archive", e))?;
        self.left = self.left.map(|left| left - bytes.len() as u64);
        Ok(bytes)
    }
}

impl<R: Read> Payload<R> {
    /// The next `bytes` bytes of a reader.
    pub(crate) fn new(reader: R, bytes: u64) -> Self {
        Self {
            reader,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            left: bytes,
        }
    }

    /// The next bytes from another place of the reader.
    pub(crate) fn turn_to(&mut self, reader: R, bytes: u64) {
        self.reader = reader;
        (self.start, self.end) = (0, 0);
        self.left = bytes;
    }

    /// The next `length` bytes in one piece: at most [`BUFFER_BYTES`].
    pub(crate) fn piece(&mut self, length: usize) -> Result<&[u8], Shortage> {
        if self.end - self.start < length {
            self.fill(length)?;
        }
        let piece = self.buffer.get(self.start..self.start + length);
        self.start += length;
        Ok(piece.unwrap_or_default())
    }

    /// Reads on until `length` bytes are there, and more where they come with them.
    fn fill(&mut self, length: usize) -> Result<(), Shortage> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < length {
            let most = usize::try_from(self.left).unwrap_or(usize::MAX);
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            let most = most.min(room.len());
            let room = room.get_mut(..most).unwrap_or_default();
            match self.reader.read(room) {
                Ok(0) => return Err(Shortage::Ends(self.left)),
                // A reader that claims more than it was given room for is not believed.
                Ok(got) => {
                    let got = got.min(most);
                    self.end += got;
                    self.left -= got as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Shortage::Io(e)),
            }
        }
        Ok(())
    }

    /// Whether the reader ends here too.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, ArchiveError> {
        loop {
            match self.reader.read(&mut [0]) {
                Ok(got) => return Ok(got == 0),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(io("read the archive", e)),
            }
        }
    }
}

impl Read for From<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let got = self.file.read_at(to, self.offset)?;
        self.offset += got as u64;
        Ok(got)
    }
}
