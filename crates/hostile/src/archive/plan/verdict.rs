use super::names::Reach;
use super::{Change, Entry, Lie, Plan, Shape};

/// By which rules a tree is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Those of a captured tree.
    Captured,
    /// The strict ones.
    Strict,
}

/// Longest path in bytes.
const MAX_PATH: usize = 512;

impl Plan {
    /// What a reader of the whole archive must answer: nothing, or the code of the first rule that
    /// is broken, in the order that the formats fix.
    pub fn verdict(&self) -> Result<(), &'static str> {
        self.manifest_verdict()?;
        self.payload_verdict()
    }

    /// What writing the tree must answer: names are judged before a byte of payload is.
    pub fn tree_verdict(&self, names: Names) -> Result<(), &'static str> {
        self.manifest_verdict()?;
        let least = match names {
            Names::Captured => Reach::Captured,
            Names::Strict => Reach::Anywhere,
        };
        let mut segments = self.entries.iter().flat_map(Entry::segments);
        refuse(segments.any(|segment| segment.reach < least), "UNSAFE_NAME")?;
        refuse(
            names == Names::Strict && self.has_collision(),
            "NAME_COLLISION",
        )?;
        self.payload_verdict()
    }

    fn payload_verdict(&self) -> Result<(), &'static str> {
        let lengths = match self.shape {
            Shape::Artifact => ["TOTAL_ARCHIVE_MISMATCH"; 2],
            Shape::Snapshot | Shape::Changeset => ["PAYLOAD_TRUNCATED", "TRAILING_BYTES"],
        };
        let longer = match self.shape {
            Shape::Artifact => matches!(self.lie, Lie::Long | Lie::Total),
            Shape::Snapshot | Shape::Changeset => self.lie == Lie::Long,
        };
        refuse(self.lie == Lie::Short, lengths[0])?;
        refuse(longer, lengths[1])?;
        refuse(self.lies_about_content(), "PAYLOAD_HASH_MISMATCH")
    }

    fn manifest_verdict(&self) -> Result<(), &'static str> {
        if self.shape == Shape::Artifact {
            return self.artifact_verdict();
        }
        if self.is_cut_in_manifest() {
            return Err("MANIFEST_TRUNCATED");
        }
        self.entries
            .iter()
            .enumerate()
            .try_for_each(|(index, entry)| self.entry_verdict(index, entry))?;
        refuse(self.has_twins(), "DUPLICATE_ENTRY_PATH")?;
        refuse(self.is_unsorted(), "ENTRIES_UNSORTED")?;
        refuse(self.has_conflict(), "PREFIX_CONFLICT")?;
        refuse(self.lies_about_an_offset(), "INVALID_OFFSET")?;
        refuse(self.lie == Lie::Total, "TOTAL_BYTES_MISMATCH")?;
        let id = self.lie == Lie::Id && self.shape == Shape::Snapshot;
        refuse(id, "SNAPSHOT_ID_MISMATCH")?;
        refuse(self.lie == Lie::Space, "NON_CANONICAL")
    }

    fn artifact_verdict(&self) -> Result<(), &'static str> {
        if self.is_cut_in_manifest() {
            return Err("MANIFEST_TRUNCATED");
        }
        refuse(self.entries.is_empty(), "FILES_EMPTY")?;
        for (index, entry) in self.entries.iter().enumerate() {
            self.file_verdict(index, entry)?;
            let mut before = self.entries.iter().take(index);
            refuse(
                before.any(|b| b.path() == entry.path()),
                "DUPLICATE_FILE_PATH",
            )?;
        }
        refuse(self.is_unsorted(), "FILES_UNSORTED")?;
        refuse(self.has_conflict(), "PREFIX_CONFLICT")?;
        refuse(self.lies_about_an_offset(), "INVALID_FILE_OFFSET")?;
        refuse(self.lie == Lie::Id, "BUILD_ID_MISMATCH")?;
        refuse(self.lie == Lie::Space, "NON_CANONICAL")
    }

    fn entry_verdict(&self, index: usize, entry: &Entry) -> Result<(), &'static str> {
        refuse(self.is_about(index, Lie::Field), "EXTRA_FIELD")?;
        refuse(!entry.is_path(self.shape), "INVALID_PATH")?;
        if !self.carries(entry) {
            return Ok(());
        }
        refuse(self.is_about(index, Lie::Mode), "INVALID_MODE")?;
        refuse(self.is_about(index, Lie::Size), "INVALID_SIZE")?;
        refuse(self.is_about(index, Lie::Hash), "INVALID_SHA256")
    }

    fn file_verdict(&self, index: usize, entry: &Entry) -> Result<(), &'static str> {
        refuse(self.is_about(index, Lie::Field), "BAD_FILE_ENTRY")?;
        refuse(!entry.is_path(self.shape), "INVALID_FILE_PATH")?;
        refuse(self.is_about(index, Lie::Mode), "INVALID_FILE_MODE")?;
        refuse(self.is_about(index, Lie::Size), "INVALID_FILE_SIZE")?;
        refuse(self.is_about(index, Lie::Hash), "INVALID_FILE_HASH")
    }

    /// Whether the lie is of this kind and about this entry.
    pub(super) fn is_about(&self, index: usize, kind: fn(u8) -> Lie) -> bool {
        let (Lie::Mode(about)
        | Lie::Size(about)
        | Lie::Hash(about)
        | Lie::Offset(about)
        | Lie::Field(about)) = self.lie
        else {
            return false;
        };
        let count = self.entries.len().max(1);
        self.lie == kind(about) && usize::from(about) % count == index
    }

    /// Whether it has bytes in the payload.
    pub(super) fn carries(&self, entry: &Entry) -> bool {
        self.shape != Shape::Changeset || entry.change != Change::Delete
    }

    pub(super) fn payload_is_empty(&self) -> bool {
        let mut carrying = self.entries.iter().filter(|entry| self.carries(entry));
        carrying.all(|entry| entry.content().is_empty())
    }

    /// The last byte of an archive without payload is its manifest's.
    fn is_cut_in_manifest(&self) -> bool {
        self.lie == Lie::Short && self.payload_is_empty()
    }

    fn lies_about_content(&self) -> bool {
        self.lie == Lie::Content && !self.payload_is_empty()
    }

    fn lies_about_an_offset(&self) -> bool {
        let mut entries = self.entries.iter().enumerate();
        entries.any(|(index, entry)| self.is_about(index, Lie::Offset) && self.carries(entry))
    }

    fn paths(&self) -> Vec<String> {
        self.entries.iter().map(Entry::path).collect()
    }

    fn has_twins(&self) -> bool {
        let paths = self.paths();
        any_pair(&paths, |a, b| a == b)
    }

    fn is_unsorted(&self) -> bool {
        let paths = self.paths();
        any_pair(&paths, |before, after| {
            before.as_bytes() >= after.as_bytes()
        })
    }

    fn has_conflict(&self) -> bool {
        let paths = self.paths();
        let holds = |file: &str, below: &str| below.starts_with(&format!("{file}/"));
        any_pair(&paths, |a, b| holds(a, b) || holds(b, a))
    }

    /// Whether two paths part at names that fold to one.
    fn has_collision(&self) -> bool {
        any_pair(&self.entries, |a, b| {
            let parted = a
                .segments()
                .zip(b.segments())
                .find(|(a, b)| a.text != b.text);
            parted.is_some_and(|(a, b)| a.folded == b.folded)
        })
    }
}

impl Entry {
    /// Whether its path is one by the rules of the shape.
    pub(super) fn is_path(&self, shape: Shape) -> bool {
        let least = match shape {
            Shape::Artifact => Reach::Artifact,
            Shape::Snapshot | Shape::Changeset => Reach::Manifest,
        };
        let mut segments = self.segments();
        segments.all(|segment| segment.reach >= least) && self.path().len() <= MAX_PATH
    }
}

fn refuse(broken: bool, code: &'static str) -> Result<(), &'static str> {
    if broken { Err(code) } else { Ok(()) }
}

/// Whether it holds for any two of them, the first standing before the second.
fn any_pair<T>(items: &[T], holds: impl Fn(&T, &T) -> bool) -> bool {
    let pairs = items.iter().enumerate();
    let mut pairs = pairs.flat_map(|(n, a)| items.iter().skip(n + 1).map(move |b| (a, b)));
    pairs.any(|(a, b)| holds(a, b))
}
