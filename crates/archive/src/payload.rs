//! Verifying: every file of a payload is hashed as its bytes come, and they go on only to where
//! nobody takes them for true before all of them are.

use crate::beneath::io;
use crate::code::{ArchiveCode, ArchiveError};
use crate::crew;
use crate::format::{Format, Member, payload_bytes};
use crate::paws::shown;
use crate::progress::Progress;
use crate::source::{BUFFER_BYTES, From, Payload, Shortage, Source};
use flightproof_core::{Digest, Hasher};
use rustix::fs::FileType;
use std::fs::File;
use std::io::Read;

/// Where the bytes of files go.
pub(crate) trait Sink {
    /// A file that is being written.
    type Open;

    fn create<M: Member>(&mut self, member: &M) -> Result<Self::Open, ArchiveError>;

    fn write<M: Member>(
        &mut self,
        open: &mut Self::Open,
        member: &M,
        bytes: &[u8],
    ) -> Result<(), ArchiveError>;
}

/// Who verifies needs none of the bytes.
pub(crate) struct Nowhere;

/// Reads a whole archive from a reader and verifies every byte of it.
pub(crate) fn verify<F: Format>(
    reader: impl Read,
    size: Option<u64>,
    progress: &dyn Progress,
) -> Result<F::Manifest, ArchiveError> {
    let mut source = Source::new(reader, size);
    let manifest = source.manifest::<F>()?;
    drain::<F>(source, size, &F::members(&manifest), &mut Nowhere, progress)?;
    Ok(manifest)
}

/// As [`verify`], from a file by two threads. What is no regular file is read as it comes.
pub(crate) fn verify_file<F: Format>(
    file: &File,
    progress: &dyn Progress,
) -> Result<F::Manifest, ArchiveError> {
    let Some(mut stored) = Stored::open(file)? else {
        return verify::<F>(file, None, progress);
    };
    let manifest = stored.manifest::<F>()?;
    stored.drain::<F, _>(&F::members(&manifest), &|| Nowhere, progress)?;
    Ok(manifest)
}

/// Everything after the manifest, up to the end.
pub(crate) fn drain<F: Format>(
    source: Source<impl Read>,
    size: Option<u64>,
    members: &[&F::Member],
    sink: &mut impl Sink,
    progress: &dyn Progress,
) -> Result<(), ArchiveError> {
    let promised = payload_bytes(members);
    let mut payload = source.payload::<F>(promised)?;
    let mut before = 0;
    for member in members {
        let done = deliver(*member, &mut payload, sink, check_hash);
        done.map_err(|fault| fault.explain::<F>(promised))?;
        before += member.size();
        progress.advance(1, member.size());
    }
    // With a size, what follows is the next thing's; without one it would be nobody's.
    if size.is_none() && !payload.is_at_end()? {
        return F::LAYOUT.check_payload(before + 1, promised);
    }
    Ok(())
}

/// An archive that lies in a regular file.
pub(crate) struct Stored<'a> {
    file: &'a File,
    size: u64,
    /// Where the payload begins, once the manifest was read.
    payload: u64,
}

impl<'a> Stored<'a> {
    /// `None` for a pipe, a device or the like.
    pub(crate) fn open(file: &'a File) -> Result<Option<Self>, ArchiveError> {
        let stat = rustix::fs::fstat(file).map_err(|e| io("look at the archive", e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        Ok(Some(Self {
            file,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            payload: 0,
        }))
    }

    /// Header and manifest, and how much must follow.
    pub(crate) fn manifest<F: Format>(&mut self) -> Result<F::Manifest, ArchiveError> {
        let mut beginning = From {
            file: self.file,
            offset: 0,
        };
        let manifest = Source::new(&mut beginning, Some(self.size)).manifest::<F>()?;
        self.payload = beginning.offset;
        let promised = payload_bytes(&F::members(&manifest));
        F::LAYOUT.check_payload(self.size - self.payload, promised)?;
        Ok(manifest)
    }

    /// The payload, each byte read once and by one of two threads with a sink of its own.
    pub(crate) fn drain<F: Format, S: Sink>(
        &self,
        members: &[&F::Member],
        sink: &(dyn Fn() -> S + Sync),
        progress: &dyn Progress,
    ) -> Result<(), ArchiveError> {
        let promised = payload_bytes(members);
        let mut offset = self.payload;
        let offsets = members.iter().map(|member| {
            let here = offset;
            offset += member.size();
            here
        });
        let offsets: Vec<u64> = offsets.collect();
        let sized = members.iter().map(|member| (member.path(), member.size()));
        let start = || (Payload::new(self.at(0), 0), sink());
        crew::share(&crew::batches(sized), start, |(payload, sink), batch| {
            let offset = offsets.get(batch.start).copied().unwrap_or_default();
            let members = members.get(batch).unwrap_or_default();
            let bytes = payload_bytes(members);
            payload.turn_to(self.at(offset), bytes);
            for member in members {
                let done = deliver(*member, payload, sink, check_hash);
                done.map_err(|fault| fault.explain::<F>(promised))?;
            }
            progress.advance(members.len() as u64, bytes);
            Ok(Vec::<()>::new())
        })?;
        match Payload::new(self.at(self.payload + promised), 0).is_at_end()? {
            true => Ok(()),
            false => F::LAYOUT.check_payload(promised + 1, promised),
        }
    }

    fn at(&self, offset: u64) -> From<'a> {
        From {
            file: self.file,
            offset,
        }
    }
}

/// Why a file of a payload was not delivered.
enum Fault {
    Shortage(Shortage),
    Refused(ArchiveError),
}

impl Fault {
    fn explain<F: Format>(self, promised: u64) -> ArchiveError {
        match self {
            Self::Refused(refused) => refused,
            Self::Shortage(Shortage::Io(e)) => io("read the archive", e),
            Self::Shortage(Shortage::Ends(missing)) => F::LAYOUT.ends_early(promised, missing),
        }
    }
}

impl std::convert::From<ArchiveError> for Fault {
    fn from(refused: ArchiveError) -> Self {
        Self::Refused(refused)
    }
}

impl std::convert::From<Shortage> for Fault {
    fn from(shortage: Shortage) -> Self {
        Self::Shortage(shortage)
    }
}

/// One file: its bytes are hashed, judged and passed on. A file that fits the buffer is judged
/// before it is even created.
fn deliver<M: Member, S: Sink>(
    member: &M,
    payload: &mut Payload<impl Read>,
    sink: &mut S,
    judge: impl Fn(&M, Digest) -> Result<(), ArchiveError>,
) -> Result<(), Fault> {
    let whole = usize::try_from(member.size())
        .ok()
        .filter(|size| *size <= BUFFER_BYTES);
    if let Some(size) = whole {
        let bytes = payload.piece(size)?;
        judge(member, Digest::of(bytes))?;
        let mut open = sink.create(member)?;
        return Ok(sink.write(&mut open, member, bytes)?);
    }
    let mut open = sink.create(member)?;
    let mut hasher = Hasher::new();
    let mut missing = member.size();
    while missing > 0 {
        let size = usize::try_from(missing).unwrap_or(BUFFER_BYTES);
        let bytes = payload.piece(size.min(BUFFER_BYTES))?;
        hasher.update(bytes);
        sink.write(&mut open, member, bytes)?;
        missing -= bytes.len() as u64;
    }
    Ok(judge(member, hasher.finish())?)
}

pub(crate) fn check_hash<M: Member>(member: &M, found: Digest) -> Result<(), ArchiveError> {
    let expected = member.sha256();
    if found == expected {
        return Ok(());
    }
    Err(ArchiveCode::PayloadHashMismatch.refuse(format_args!(
        "{}: got {found}, expected {expected}",
        shown(member.path())
    )))
}

impl Sink for Nowhere {
    type Open = ();

    fn create<M: Member>(&mut self, _: &M) -> Result<(), ArchiveError> {
        Ok(())
    }

    fn write<M: Member>(&mut self, (): &mut (), _: &M, _: &[u8]) -> Result<(), ArchiveError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paws::{self, Entry};
    use flightproof_core::RelPath;

    /// Small files, an empty one, and one that comes in pieces.
    fn packed() -> paws::Packed {
        let large = vec![7; BUFFER_BYTES + 9];
        let files: [(&str, &[u8]); 5] = [
            ("a", b"one"),
            ("b", b""),
            ("c", b"two"),
            ("d", &large),
            ("e", b"last"),
        ];
        let files = files.map(|(path, bytes)| (RelPath::new(path).unwrap(), false, bytes));
        paws::pack("w", files).unwrap()
    }

    /// Whether a verifier with this judge notices a change in every single file.
    fn notices_every_change(
        judge: impl Fn(&Entry, Digest) -> Result<(), ArchiveError> + Copy,
    ) -> bool {
        let packed = packed();
        let entries = packed.snapshot.entries();
        let start = packed.bytes.len() - usize::try_from(packed.snapshot.total_bytes()).unwrap();
        let honest = &packed.bytes[start..];
        let passes = |bytes: &[u8]| {
            let mut payload = Payload::new(bytes, bytes.len() as u64);
            entries
                .iter()
                .all(|entry| deliver(entry, &mut payload, &mut Nowhere, judge).is_ok())
        };
        let mut at = 0;
        let ends = entries.iter().filter(|entry| entry.size > 0).map(|entry| {
            at += usize::try_from(entry.size).unwrap();
            at - 1
        });
        let noticed = ends.map(|last| {
            let mut changed = honest.to_vec();
            changed[last] ^= 1;
            !passes(&changed)
        });
        noticed.fold(passes(honest), |all, one| all && one)
    }

    #[test]
    fn a_change_in_any_file_is_noticed() {
        assert!(notices_every_change(check_hash));
    }

    #[test]
    fn a_verifier_that_skips_one_hash_would_be_noticed() {
        for skipped in ["a", "c", "d", "e"] {
            let lenient = |entry: &Entry, found| match entry.path() == skipped {
                true => Ok(()),
                false => check_hash(entry, found),
            };
            assert!(!notices_every_change(lenient), "{skipped}");
        }
    }
}
