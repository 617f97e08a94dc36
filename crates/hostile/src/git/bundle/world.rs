use super::encode::{DeltaPlan, EntryPlan, PackPlan, Step};
use crate::git::{Id, hex, id_of, tree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Objects by id: kind and content.
pub type Store = BTreeMap<Id, (&'static str, Vec<u8>)>;

/// A repository that bundles are made for, in memory.
#[derive(Debug, Clone)]
pub struct World {
    /// Everything the repository holds, also what the baseline does not lead to.
    pub store: Arc<Store>,
    /// The baseline.
    pub baseline: Id,
    pub(super) root: Vec<Row>,
    pub(super) src: Vec<Row>,
}

/// An entry of a tree: raw mode, raw name, object.
pub type Row = (Vec<u8>, Vec<u8>, Id);

/// The content of a candidate: its new objects in the order of the pack, the commit last.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) objects: Vec<(&'static str, Vec<u8>)>,
    pub(super) head: Id,
}

/// `src/lib.rs` before and after an honest change.
pub(super) const BEFORE: &[u8] = b"pub fn a() -> u8 { 1 }\n";
pub(super) const AFTER: &[u8] = b"pub fn a() -> u8 { 2 }\n";
/// A file of the repository that no commit a bundle may stand on leads to.
pub(super) const SECRET: &[u8] = b"an unpublished file of somebody else, in the same repository\n";

/// Who and when, in every honest commit.
pub(super) const WHO: &str = "A Bot <bot@example.org> 1700000000 +0100";

impl World {
    /// The usual one: two small files, a large one, a link and a submodule, and secrets beside it.
    pub fn usual() -> Self {
        Self::with_large(&lines(20_000))
    }

    /// One whose `data/large` has this content.
    pub(super) fn with_large(large: &[u8]) -> Self {
        let mut store = Store::new();
        let mut put = |kind: &'static str, body: &[u8]| {
            let id = id_of(kind, body);
            store.insert(id, (kind, body.to_vec()));
            id
        };
        let src = vec![
            row("100644", "lib.rs", put("blob", BEFORE)),
            row("100644", "other.rs", put("blob", b"// other\n")),
        ];
        let data = vec![row("100644", "large", put("blob", large))];
        let root = vec![
            row("100644", "README.md", put("blob", b"base\n")),
            row("40000", "data", put("tree", &tree_bytes(&data))),
            row("120000", "link", put("blob", b"README.md")),
            row("160000", "module", [7; 20]),
            row("40000", "src", put("tree", &tree_bytes(&src))),
        ];
        let top = put("tree", &tree_bytes(&root));
        put("blob", SECRET);
        put("commit", commit(&top, &[], "another root\n").as_bytes());
        let baseline = put("commit", commit(&top, &[], "base\n").as_bytes());
        Self {
            store: Arc::new(store),
            baseline,
            root,
            src,
        }
    }

    /// An honest bundle that fills every limit: 1,024 objects, 2 MiB of content less a few hundred
    /// bytes, and close to 128 KiB.
    pub fn fullest(&self) -> Vec<u8> {
        /// Files beside two trees and the commit.
        const FILES: usize = 1_024 - 3;
        /// Bytes of each: the trees and the commit take the rest.
        const SIZE: usize = ((2 << 20) - 36_000) / FILES;
        /// Bytes of each that do not compress.
        const NOISE: usize = 46;
        let noise = noise(FILES * NOISE);
        let file = |piece: &[u8]| [piece, &vec![b' '; SIZE - piece.len()]].concat();
        let files: Vec<Vec<u8>> = noise.chunks(NOISE).map(file).collect();
        self.bundle(&self.many(&files))
    }

    /// The honest candidate: one line of `src/lib.rs`.
    pub(super) fn honest(&self) -> Candidate {
        self.file("lib.rs", AFTER)
    }

    /// A candidate with one file of `src` written or added.
    pub(super) fn file(&self, name: &str, body: &[u8]) -> Candidate {
        let mut src = self.src.clone();
        set(&mut src, row("100644", name, id_of("blob", body)));
        self.with_src(&tree_bytes(&src), vec![("blob", body.to_vec())])
    }

    /// A candidate with these new entries in `src`, in git's order, and these objects.
    pub(super) fn rows(&self, rows: &[Row], objects: Vec<(&'static str, Vec<u8>)>) -> Candidate {
        let mut src = self.src.clone();
        for row in rows {
            set(&mut src, row.clone());
        }
        self.with_src(&tree_bytes(&src), objects)
    }

    /// A candidate with these bytes as the tree `src`.
    pub(super) fn with_src(
        &self,
        src: &[u8],
        mut objects: Vec<(&'static str, Vec<u8>)>,
    ) -> Candidate {
        objects.push(("tree", src.to_vec()));
        let mut root = self.root.clone();
        set(&mut root, row("40000", "src", id_of("tree", src)));
        self.with_root(&tree_bytes(&root), objects)
    }

    /// A candidate with these bytes as the top tree.
    pub(super) fn with_root(
        &self,
        root: &[u8],
        mut objects: Vec<(&'static str, Vec<u8>)>,
    ) -> Candidate {
        objects.push(("tree", root.to_vec()));
        let body = commit(&id_of("tree", root), &[self.baseline], "Change a line\n");
        Candidate::new(objects, body.as_bytes())
    }

    /// A candidate with a new directory `many` of files, each of which has a content of its own.
    pub(super) fn many(&self, files: &[Vec<u8>]) -> Candidate {
        let rows: Vec<Row> = files
            .iter()
            .enumerate()
            .map(|(n, body)| row("100644", &format!("f{n:05}"), id_of("blob", body)))
            .collect();
        let mut objects: Vec<_> = files.iter().map(|body| ("blob", body.clone())).collect();
        let many = tree_bytes(&rows);
        let mut root = self.root.clone();
        set(&mut root, row("40000", "many", id_of("tree", &many)));
        objects.push(("tree", many));
        self.with_root(&tree_bytes(&root), objects)
    }

    /// A bundle of a candidate.
    pub(super) fn bundle(&self, candidate: &Candidate) -> Vec<u8> {
        self.wrap(candidate.head, &PackPlan::honest(candidate.entries()))
    }

    /// A bundle with an honest header.
    pub(super) fn wrap(&self, head: Id, pack: &PackPlan) -> Vec<u8> {
        [self.header(head).as_bytes(), &pack.bytes()].concat()
    }

    pub(super) fn header(&self, head: Id) -> String {
        let (base, head) = (hex(&self.baseline), hex(&head));
        format!("# v2 git bundle\n-{base} base\n{head} refs/export/head\n\n")
    }

    /// The content of an object.
    pub(super) fn body(&self, id: &Id) -> &[u8] {
        self.store.get(id).map_or(&[], |(_, body)| body)
    }
}

impl Candidate {
    pub(super) fn new(mut objects: Vec<(&'static str, Vec<u8>)>, commit: &[u8]) -> Self {
        objects.push(("commit", commit.to_vec()));
        let head = id_of("commit", commit);
        Self { objects, head }
    }

    /// Every object as a whole entry.
    pub(super) fn entries(&self) -> Vec<EntryPlan> {
        let whole = |(kind, body): &(&'static str, Vec<u8>)| EntryPlan::whole(kind, body);
        self.objects.iter().map(whole).collect()
    }

    /// The same, with the entry of this number made otherwise.
    pub(super) fn entries_with(&self, number: usize, entry: EntryPlan) -> Vec<EntryPlan> {
        let mut entries = self.entries();
        if let Some(place) = entries.get_mut(number) {
            *place = entry;
        }
        entries
    }
}

/// A commit as git writes it.
pub(super) fn commit(root: &Id, parents: &[Id], message: &str) -> String {
    let parents: String = parents
        .iter()
        .map(|parent| format!("parent {}\n", hex(parent)))
        .collect();
    format!(
        "tree {}\n{parents}author {WHO}\ncommitter {WHO}\n\n{message}",
        hex(root)
    )
}

pub(super) fn row(mode: &str, name: &str, id: Id) -> Row {
    (mode.into(), name.into(), id)
}

/// Replaces the entry of a name or adds it, and sorts as git does.
pub(super) fn set(rows: &mut Vec<Row>, new: Row) {
    rows.retain(|row| row.1 != new.1);
    rows.push(new);
    rows.sort_by_key(|(mode, name, _)| {
        let end: &[u8] = if mode.ends_with(b"40000") { b"/" } else { b"" };
        [name, end].concat()
    });
}

pub(super) fn tree_bytes(rows: &[Row]) -> Vec<u8> {
    let rows: Vec<_> = rows
        .iter()
        .map(|(mode, name, id)| (mode.as_slice(), name.as_slice(), *id))
        .collect();
    tree(&rows)
}

/// Numbered lines that compress a little.
pub(super) fn lines(count: u64) -> Vec<u8> {
    (0..count)
        .flat_map(|n| format!("{:016x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes())
        .collect()
}

/// Bytes that do not compress.
pub(super) fn noise(size: usize) -> Vec<u8> {
    let mut state = 1u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..size).map(step).collect()
}

/// A delta that puts a line before a base of this size.
pub(super) fn prefix(base: usize, line: &[u8]) -> DeltaPlan {
    let mut steps = vec![Step::Insert(line.to_vec())];
    let mut at = 0;
    while at < base {
        let piece = (base - at).min(0x1_0000);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        steps.push(Step::Copy(number(at), number(piece)));
        at += piece;
    }
    DeltaPlan::honest(base, steps)
}
