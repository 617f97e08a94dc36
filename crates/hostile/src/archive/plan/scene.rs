use super::{Entry, MAX_NAMES, Plan, Shape};
use arbitrary::{Arbitrary, Result, Unstructured};

/// A plan whose tree is to be written, and what stands in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    /// The archive: a snapshot or an artifact.
    pub plan: Plan,
    /// Whether the strict rules for names hold, or those of a captured tree.
    pub names: super::Names,
    /// Whether it is laid over a tree that is there. Snapshots only.
    pub is_overlay: bool,
    /// What stands beneath the destination already.
    pub prepared: Vec<Prepared>,
}

/// Something that stands beneath the destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// Where: often at a file of the archive, or at a directory above one.
    pub path: String,
    /// Which kind of thing, a number that whoever prepares it reads modulo their kinds.
    pub kind: u8,
}

/// Most things that are prepared.
const MAX_PREPARED: usize = 4;

impl Scene {
    /// Scene number `seed` of an endless supply, the same on every machine.
    pub fn numbered(seed: u64) -> Self {
        let bytes = super::numbered_bytes(seed);
        Self::arbitrary(&mut Unstructured::new(&bytes)).unwrap_or_else(|_| Self {
            plan: Plan::empty(),
            names: super::Names::Strict,
            is_overlay: false,
            prepared: Vec::new(),
        })
    }
}

impl<'a> Arbitrary<'a> for Scene {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let names = *u.choose(&[super::Names::Strict, super::Names::Captured])?;
        let is_overlay = u.arbitrary()?;
        let count = if is_overlay {
            u.int_in_range(0..=MAX_PREPARED)?
        } else {
            0
        };
        let wanted = (0..count).map(|_| <(u8, u8, u8)>::arbitrary(u));
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        let mut plan = Plan::arbitrary(u)?;
        if is_overlay || plan.shape == Shape::Changeset {
            plan.shape = Shape::Snapshot;
        }
        let prepared = wanted.into_iter().map(|(entry, depth, kind)| Prepared {
            path: plan.place(entry, depth),
            kind,
        });
        Ok(Self {
            prepared: prepared.collect(),
            plan,
            names,
            is_overlay,
        })
    }
}

impl Plan {
    /// The path of an entry, or of a directory above it, or something beside all.
    fn place(&self, entry: u8, depth: u8) -> String {
        let count = self.entries.len() + 1;
        let path = self
            .entries
            .get(usize::from(entry) % count)
            .map(Entry::path);
        let path = path.filter(|path| {
            path.split('/').all(|name| {
                !matches!(name, "" | "." | "..") && !name.contains('\0') && name.len() < 256
            })
        });
        let path = path.unwrap_or("beside".to_owned());
        let names: Vec<&str> = path.split('/').collect();
        let length = names.len() - usize::from(depth) % MAX_NAMES.min(names.len());
        names.get(..length).unwrap_or(&names).join("/")
    }
}
