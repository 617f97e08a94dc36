//! Archives as plain data: a tree, at most one lie, and what a right reader must answer.
//!
//! The answer is worked out by a second set of rules that shares nothing with the readers: what is
//! wrong with a name stands beside the name in a table, everything else is compared pair by pair.

mod names;
mod scene;
mod verdict;
mod wire;

pub use scene::{Prepared, Scene};
pub use verdict::Names;

use arbitrary::{Arbitrary, Result, Unstructured};
use names::SEGMENTS;

/// A tree somebody wants archived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What the archive is.
    pub shape: Shape,
    /// The workspace's name, of an alphabet that needs every kind of escape.
    pub workspace: String,
    /// The files, in the order they are listed in.
    pub entries: Vec<Entry>,
    /// The one thing that is not as it should be, beside names and order.
    pub lie: Lie,
}

/// What an archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A PAWS1 snapshot.
    Snapshot,
    /// A PAWS1 changeset.
    Changeset,
    /// A PAAR1 artifact.
    Artifact,
}

/// One file, or one change to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Indices into the table of names, outermost first.
    path: Vec<u8>,
    /// Whether it may be executed.
    pub executable: bool,
    /// Its bytes: a length and what they are made of.
    content: (u16, u8),
    /// What a changeset does with it.
    pub change: Change,
}

/// What a changeset does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Add,
    /// It has other bytes.
    Replace,
    /// It is gone.
    Delete,
}

/// One thing that is wrong. Those with a number are about the entry of that number, modulo theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Nothing is.
    None,
    /// A mode that is none.
    Mode(u8),
    /// A size that is no number.
    Size(u8),
    /// A hash in upper case.
    Hash(u8),
    /// An offset one too large.
    Offset(u8),
    /// A field that nobody asked for.
    Field(u8),
    /// A total one too large; of an artifact, its length.
    Total,
    /// Another id; of an artifact, another build id.
    Id,
    /// A space where none belongs.
    Space,
    /// One bit of the payload's first byte.
    Content,
    /// The last byte is missing.
    Short,
    /// One byte too many.
    Long,
}

/// Most entries of a plan: enough for every pair of rules to meet.
const MAX_ENTRIES: usize = 12;
/// Most names in a path.
const MAX_NAMES: usize = 4;
/// Most bytes of a file.
const MAX_CONTENT: u16 = 300;

impl Plan {
    /// The same without anything wrong: bad names, doubles and conflicts left out, in order, and
    /// with a file where the shape needs one.
    #[must_use]
    pub fn honest(mut self) -> Self {
        self.lie = Lie::None;
        self.entries.retain(|entry| entry.is_path(self.shape));
        self.entries.sort_by_key(Entry::path);
        self.entries.dedup_by_key(|entry| entry.path());
        let paths: Vec<String> = self.entries.iter().map(Entry::path).collect();
        let below = |path: &str| paths.iter().any(|p| path.starts_with(&format!("{p}/")));
        self.entries.retain(|entry| !below(&entry.path()));
        if self.shape == Shape::Artifact && self.entries.is_empty() {
            self.entries.push(Entry::plain());
        }
        self
    }

    /// Plan number `seed` of an endless supply, the same on every machine.
    pub fn numbered(seed: u64) -> Self {
        let bytes = numbered_bytes(seed);
        Self::arbitrary(&mut Unstructured::new(&bytes)).unwrap_or_else(|_| Self::empty())
    }

    fn empty() -> Self {
        Self {
            shape: Shape::Snapshot,
            workspace: String::new(),
            entries: Vec::new(),
            lie: Lie::None,
        }
    }
}

/// The bytes that plan and scene number `seed` are made of.
pub fn numbered_bytes(seed: u64) -> Vec<u8> {
    let blocks = (0u8..16).flat_map(|block| {
        let mut input = seed.to_be_bytes().to_vec();
        input.push(block);
        <sha2::Sha256 as sha2::Digest>::digest(&input).to_vec()
    });
    blocks.collect()
}

impl Entry {
    fn plain() -> Self {
        Self {
            path: vec![0],
            executable: false,
            content: (1, 1),
            change: Change::Add,
        }
    }

    /// Its path, right or wrong.
    pub fn path(&self) -> String {
        let names: Vec<&str> = self.segments().map(|segment| segment.text).collect();
        names.join("/")
    }

    fn segments(&self) -> impl Iterator<Item = &'static names::Segment> {
        let count = SEGMENTS.len();
        self.path
            .iter()
            .filter_map(move |index| SEGMENTS.get(usize::from(*index) % count))
    }

    /// Its bytes.
    pub fn content(&self) -> Vec<u8> {
        let (length, byte) = self.content;
        let bytes = (0..length).map(|n| byte.wrapping_mul(31).wrapping_add(n.to_be_bytes()[1]));
        bytes.collect()
    }
}

impl<'a> Arbitrary<'a> for Plan {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let shape = *u.choose(&[Shape::Snapshot, Shape::Changeset, Shape::Artifact])?;
        let letters = u.int_in_range(0..=6)?;
        let workspace = (0..letters).map(|_| u.choose(WORKSPACE).copied());
        let workspace = workspace.collect::<Result<String>>()?;
        let count = u.int_in_range(0..=MAX_ENTRIES)?;
        let mut entries = (0..count)
            .map(|_| Entry::arbitrary(u))
            .collect::<Result<Vec<_>>>()?;
        if u.ratio(1, 12)? {
            // A file, a name that sorts before its slash, and a file in the first: no neighbours.
            let file = Entry::arbitrary(u)?;
            let below = [&[0], file.path.as_slice()].concat();
            let placed = [vec![0], vec![1], below].map(|path| Entry {
                path,
                ..file.clone()
            });
            entries.extend(placed);
        }
        // Mostly in order, or nothing but the order would ever be wrong.
        if u.ratio(7, 8)? {
            entries.sort_by_key(Entry::path);
        }
        if u.ratio(7, 8)? {
            entries.dedup_by_key(|entry| entry.path());
        }
        if u.ratio(3, 4)? {
            entries.retain(|entry| entry.is_path(shape));
        }
        let lie = Lie::arbitrary(u)?;
        Ok(Self {
            shape,
            workspace,
            entries,
            lie,
        })
    }
}

impl<'a> Arbitrary<'a> for Entry {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let count = u.int_in_range(1..=MAX_NAMES)?;
        let path = (0..count).map(|_| u.arbitrary());
        Ok(Self {
            path: path.collect::<Result<_>>()?,
            executable: u.arbitrary()?,
            content: match u.int_in_range(0..=3)? {
                0 => (0, 0),
                _ => (u.int_in_range(0..=MAX_CONTENT)?, u.arbitrary()?),
            },
            change: *u.choose(&[Change::Add, Change::Replace, Change::Delete])?,
        })
    }
}

impl<'a> Arbitrary<'a> for Lie {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let about = u.arbitrary()?;
        Ok(match u.int_in_range(0..=21)? {
            0 => Self::Mode(about),
            1 => Self::Size(about),
            2 => Self::Hash(about),
            3 => Self::Offset(about),
            4 => Self::Field(about),
            5 => Self::Total,
            6 => Self::Id,
            7 => Self::Space,
            8 => Self::Content,
            9 => Self::Short,
            10 => Self::Long,
            // Half of the plans tell the truth.
            _ => Self::None,
        })
    }
}

/// Letters of a workspace's name: every kind of escape, and what needs none.
const WORKSPACE: &[char] = &[
    'w', '"', '\\', '/', '\0', '\u{8}', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{1f}', ' ',
    '\u{7f}', 'é', '\u{2028}', '\u{feff}', '😀',
];
