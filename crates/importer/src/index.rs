//! The index of a working tree: read, and written anew with a few entries replaced.
//!
//! Git would do it too, and would run what the repository says on the way. The format is small, and
//! an index that cannot be read as a whole is refused: nothing of the user's is dropped that git does
//! not rebuild by itself.

mod cache;

use crate::{ImportError, ImporterCode, hash};
use flightproof_core::{ObjectId, escape};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An index in memory. Entries point into the bytes it was read from.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    version: u32,
    /// Ascending by name.
    entries: Vec<Entry<'a>>,
    /// Git's memory of tree ids, which spares it the next walk.
    cache: Option<&'a [u8]>,
}

/// One tracked path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry<'a> {
    stat: [u8; STAT],
    id: [u8; 20],
    flags: u16,
    /// Flags of version 3 and later.
    more: u16,
    name: Cow<'a, [u8]>,
}

/// What a path is from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tracked {
    /// Times, numbers, mode, owner and size of the file, as the index holds them.
    pub(crate) stat: [u8; STAT],
    /// Its content.
    pub(crate) id: ObjectId,
}

/// Changed paths, and what they are from now on; `None` is gone.
pub(crate) type Edits<'a> = BTreeMap<&'a [u8], Option<Tracked>>;

/// Largest index that is read, bytes: five million paths.
pub(crate) const MOST: u64 = 512 << 20;
/// Longest path of an entry, bytes: no system opens a longer one.
const LONGEST: usize = 4_096;
/// Most bytes of all names together. Those of version 4 take less in the file.
const NAMES: usize = 512 << 20;

/// Bytes of what an entry says about its file.
pub(crate) const STAT: usize = 40;
/// The mode within them.
const MODE: std::ops::Range<usize> = 24..28;
/// Bytes before the name: stat, id, flags.
const FIXED: usize = STAT + 20 + 2;
const HEADER: usize = 12;
const TRAILER: usize = 20;

const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const LENGTH: u16 = 0x0fff;
const INTENT_TO_ADD: u16 = 0x2000;

impl<'a> Index<'a> {
    /// Reads a whole index file.
    ///
    /// # Errors
    /// `HOST_UNSUPPORTED` for a split or sparse one, for one that is damaged, and for names that are too
    /// long; `SOURCE_CHANGED` if it has conflicts, or paths that are to be added later.
    pub(crate) fn parse(file: &'a [u8]) -> Result<Self, ImportError> {
        Self::parse_within(file, NAMES)
    }

    fn parse_within(file: &'a [u8], most: usize) -> Result<Self, ImportError> {
        let body = checked_body(file)?;
        let mut reader = Reader(body.get(4..).unwrap_or_default());
        let version = reader.number()?;
        if !body.starts_with(b"DIRC") || !matches!(version, 2..=4) {
            return Err(damaged("it is of no known version"));
        }
        let count = reader.number()?;
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let mut names = 0;
        for _ in 0..count {
            let last = entries.last().map_or(&b""[..], |entry| &entry.name);
            let entry = reader.entry(version, last)?;
            if entry.name.is_empty() || *entry.name <= *last {
                return Err(refuse_order(&entry));
            }
            entry.check()?;
            names += entry.name.len();
            if names > most {
                return Err(damaged("its names are too long together"));
            }
            entries.push(entry);
        }
        let cache = reader.extensions()?;
        Ok(Self {
            version,
            entries,
            cache,
        })
    }

    /// Content and executable bit of a tracked regular file; `None` if the path is not tracked.
    pub(crate) fn file(&self, name: &[u8]) -> Option<(ObjectId, u32)> {
        let at = self.position(name)?;
        let entry = self.entries.get(at)?;
        Some((ObjectId::from_bytes(entry.id), entry.mode()))
    }

    /// An index of some of these paths alone, without anything else.
    pub(crate) fn only<'n>(&self, names: impl Iterator<Item = &'n [u8]>) -> Self {
        let mut found: Vec<usize> = names.filter_map(|name| self.position(name)).collect();
        found.sort_unstable();
        found.dedup();
        let entries = found.into_iter().filter_map(|at| self.entries.get(at));
        Self {
            version: self.version,
            entries: entries.cloned().collect(),
            cache: None,
        }
    }

    /// How many paths it has.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The file of this index with these changes. What git cannot use any more is left out, and git
    /// makes it anew.
    pub(crate) fn write(&self, edits: &Edits<'_>) -> Result<Vec<u8>, ImportError> {
        let merged = self.merged(edits);
        // Version 3 is version 2 with more flags; git takes 2 where there are none.
        let version = match (self.version, merged.iter().any(|e| e.more != 0)) {
            (4, _) => 4,
            (_, true) => 3,
            (_, false) => 2,
        };
        let mut out = Vec::with_capacity(merged.len() * 96 + HEADER);
        out.extend_from_slice(b"DIRC");
        out.extend_from_slice(&u32::to_be_bytes(version));
        let count = u32::try_from(merged.len()).map_err(|_| damaged("too many paths"))?;
        out.extend_from_slice(&count.to_be_bytes());
        let mut last: &[u8] = b"";
        for entry in &merged {
            entry.write(version, last, &mut out);
            last = &entry.name;
        }
        if let Some(cache) = self.cache
            && let Some(cache) = cache::without(cache, edits.keys().copied())
        {
            out.extend_from_slice(b"TREE");
            let length = u32::try_from(cache.len()).map_err(|_| damaged("too long"))?;
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&cache);
        }
        let sum = hash::plain_sha1(&out);
        out.extend_from_slice(&sum);
        Ok(out)
    }

    fn merged<'m>(&'m self, edits: &'m Edits<'_>) -> Vec<Cow<'m, Entry<'m>>> {
        let mut merged = Vec::with_capacity(self.entries.len() + edits.len());
        let mut old = self.entries.iter().peekable();
        for (name, tracked) in edits {
            while let Some(entry) = old.next_if(|entry| *entry.name < **name) {
                merged.push(Cow::Borrowed(entry));
            }
            old.next_if(|entry| *entry.name == **name);
            if let Some(tracked) = tracked {
                merged.push(Cow::Owned(Entry::new(name, tracked)));
            }
        }
        merged.extend(old.map(Cow::Borrowed));
        merged
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        let found = self.entries.binary_search_by(|e| (*e.name).cmp(name));
        found.ok()
    }
}

impl Entry<'_> {
    fn new<'n>(name: &'n [u8], tracked: &Tracked) -> Entry<'n> {
        Entry {
            stat: tracked.stat,
            id: *tracked.id.as_bytes(),
            flags: 0,
            more: 0,
            name: Cow::Borrowed(name),
        }
    }

    fn mode(&self) -> u32 {
        let bytes = self.stat.get(MODE).and_then(|b| b.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    fn check(&self) -> Result<(), ImportError> {
        let shown = || escape(&self.name, 200);
        if self.flags & STAGE != 0 {
            let detail = format!("{}: a conflict that is not resolved", shown());
            return Err(ImporterCode::SourceChanged.refuse(detail));
        }
        if self.more & INTENT_TO_ADD != 0 {
            let detail = format!("{}: marked to be added later", shown());
            return Err(ImporterCode::SourceChanged.refuse(detail));
        }
        if self.mode() & 0o170_000 == 0o040_000 {
            return Err(damaged(format!("{}: a directory", shown())));
        }
        Ok(())
    }

    fn write(&self, version: u32, last: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.stat);
        out.extend_from_slice(&self.id);
        let length = u16::try_from(self.name.len()).map_or(LENGTH, |n| n.min(LENGTH));
        let extended = if self.more == 0 { 0 } else { EXTENDED };
        let flags = self.flags & !(LENGTH | EXTENDED) | length | extended;
        out.extend_from_slice(&flags.to_be_bytes());
        if extended != 0 {
            out.extend_from_slice(&self.more.to_be_bytes());
        }
        if version == 4 {
            let same = common(last, &self.name);
            write_varint(last.len() - same, out);
            out.extend_from_slice(self.name.get(same..).unwrap_or_default());
            return out.push(0);
        }
        out.extend_from_slice(&self.name);
        let end = start + padded(out.len() - start);
        out.resize(end, 0);
    }
}

/// The length of an entry of version 2 or 3 with at least one NUL behind it.
fn padded(length: usize) -> usize {
    (length + 8) & !7
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// What lies before the checksum. A checksum of zeros means that none was made.
fn checked_body(file: &[u8]) -> Result<&[u8], ImportError> {
    let at = file.len().checked_sub(TRAILER);
    let Some((body, sum)) = at.and_then(|at| file.split_at_checked(at)) else {
        return Err(damaged("it is too short"));
    };
    if sum != [0; TRAILER] && sum != hash::plain_sha1(body) {
        return Err(damaged("it does not have the checksum it ends in"));
    }
    Ok(body)
}

/// What was not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ImportError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| damaged("it is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| damaged("it is cut off"))
    }

    fn number(&mut self) -> Result<u32, ImportError> {
        self.array().map(u32::from_be_bytes)
    }

    fn entry(&mut self, version: u32, last: &[u8]) -> Result<Entry<'a>, ImportError> {
        let stat = self.array()?;
        let id = self.array()?;
        let flags = self.array().map(u16::from_be_bytes)?;
        let mut head = FIXED;
        let mut more = 0;
        if flags & EXTENDED != 0 {
            more = self.array().map(u16::from_be_bytes)?;
            head += 2;
        }
        let name = match version {
            4 => self.compressed_name(last)?,
            _ => self.padded_name(head)?,
        };
        Ok(Entry {
            stat,
            id,
            flags,
            more,
            name,
        })
    }

    fn padded_name(&mut self, head: usize) -> Result<Cow<'a, [u8]>, ImportError> {
        let end = self.end_of_name(LONGEST)?;
        let name = self.take(end)?;
        self.take(padded(head + end) - head - end)?;
        Ok(Cow::Borrowed(name))
    }

    /// A name as what it shares with the one before, and the rest.
    fn compressed_name(&mut self, last: &[u8]) -> Result<Cow<'a, [u8]>, ImportError> {
        let dropped = self.varint()?;
        let kept = last.len().checked_sub(dropped);
        let kept = kept.and_then(|kept| last.get(..kept));
        let kept = kept.ok_or_else(|| damaged("a name drops too much"))?;
        let end = self.end_of_name(LONGEST - kept.len())?;
        let name = [kept, self.take(end)?].concat();
        self.take(1)?;
        Ok(Cow::Owned(name))
    }

    fn end_of_name(&self, most: usize) -> Result<usize, ImportError> {
        let end = self.0.iter().take(most + 1).position(|b| *b == 0);
        end.ok_or_else(|| damaged(format!("a name without an end, or of over {LONGEST} bytes")))
    }

    fn varint(&mut self) -> Result<usize, ImportError> {
        let mut byte = self.array::<1>()?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.array::<1>()?[0];
            value = value
                .checked_add(1)
                .filter(|value| *value <= usize::MAX >> 8)
                .map(|value| (value << 7) + usize::from(byte & 0x7f))
                .ok_or_else(|| damaged("a number is too large"))?;
        }
        Ok(value)
    }

    /// What follows the entries. An extension with a small letter changes what they mean.
    fn extensions(&mut self) -> Result<Option<&'a [u8]>, ImportError> {
        let mut cache = None;
        while !self.0.is_empty() {
            let name: [u8; 4] = self.array()?;
            let length = self.number()?;
            let length = usize::try_from(length).map_err(|_| damaged("it is cut off"))?;
            let content = self.take(length)?;
            match &name {
                b"TREE" => cache = Some(content),
                b"link" => return Err(unsupported("its index is split in two files")),
                b"sdir" => return Err(unsupported("its index is a sparse one")),
                [b'A'..=b'Z', ..] => {}
                other => return Err(unsupported(format!("extension {}", escape(other, 8)))),
            }
        }
        Ok(cache)
    }
}

fn write_varint(value: usize, out: &mut Vec<u8>) {
    let low = |value: usize| value.to_le_bytes()[0] & 0x7f;
    let mut bytes = vec![low(value)];
    let mut rest = value >> 7;
    while rest != 0 {
        rest -= 1;
        bytes.push(0x80 | low(rest));
        rest >>= 7;
    }
    out.extend(bytes.iter().rev());
}

fn refuse_order(entry: &Entry<'_>) -> ImportError {
    // One name in several stages is how a conflict looks.
    entry
        .check()
        .err()
        .unwrap_or_else(|| damaged(format!("{}: out of order", escape(&entry.name, 200))))
}

fn damaged(why: impl std::fmt::Display) -> ImportError {
    unsupported(format!("its index cannot be read: {why}"))
}

fn unsupported(why: impl std::fmt::Display) -> ImportError {
    ImporterCode::HostUnsupported.refuse(why)
}

#[cfg(test)]
mod tests;
