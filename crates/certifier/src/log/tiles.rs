//! The files of a log: hashes in tiles of 256, entries in bundles of 256, as `tlog-tiles` has them.

use super::{Checkpoint, LogName, MAX_ENTRY_BYTES};
use crate::merkle;
use crate::{CertifierCode, CertifierError};
use flightproof_core::Digest;

/// Hashes of a full tile, and entries of a full bundle.
const WIDTH: usize = 256;
/// Most entries of a log here: each opening reads all hashes.
const MAX_ENTRIES: usize = 1 << 20;

/// A file of the log below its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileFile {
    /// Its path.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The entries of a log, and their hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    entries: Vec<Vec<u8>>,
    leaves: Vec<Digest>,
}

impl Tree {
    /// Reads a log of so many entries, asking for its files by path, and holds all of it together:
    /// every entry, every hash of every level, and the root of the checkpoint.
    ///
    /// # Errors
    /// `LOG_BROKEN`; what `read` says.
    pub fn read<E: From<CertifierError>>(
        checkpoint: &Checkpoint,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let size = usize::try_from(checkpoint.size).unwrap_or(usize::MAX);
        if size > MAX_ENTRIES {
            return Err(broken(format_args!("{size} entries, at most {MAX_ENTRIES}")).into());
        }
        let mut tree = Self::default();
        for (path, width) in parts("entries", size) {
            let bundle = read(&path)?;
            let found = entries(&bundle, width)
                .ok_or_else(|| broken(format_args!("{path}: not {width} entries")))?;
            tree.entries.extend(found);
        }
        tree.leaves = tree.entries.iter().map(|e| merkle::leaf(e)).collect();
        for file in tree.hashes() {
            if read(&file.path)? != file.bytes {
                return Err(broken(format_args!(
                    "{}: its hashes are not the entries'",
                    file.path
                ))
                .into());
            }
        }
        if tree.root() != checkpoint.root {
            return Err(broken("the entries do not lead to the checkpoint's root").into());
        }
        Ok(tree)
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// `LOG_BROKEN` for a log that is full, or an entry that is too long.
    pub fn append(&mut self, entry: Vec<u8>) -> Result<(), CertifierError> {
        if self.entries.len() >= MAX_ENTRIES || entry.len() > MAX_ENTRY_BYTES {
            return Err(broken("the log is full, or the entry too long"));
        }
        self.leaves.push(merkle::leaf(&entry));
        self.entries.push(entry);
        Ok(())
    }

    /// The entries.
    pub fn entries(&self) -> &[Vec<u8>] {
        &self.entries
    }

    /// The root.
    pub fn root(&self) -> Digest {
        merkle::root(&self.leaves)
    }

    /// What lies beside the way from an entry to the root.
    pub fn path(&self, index: usize) -> Vec<Digest> {
        merkle::path(&self.leaves, index)
    }

    /// The head of this log.
    pub fn checkpoint(&self, origin: LogName) -> Checkpoint {
        Checkpoint {
            origin,
            size: self.entries.len() as u64,
            root: self.root(),
        }
    }

    /// Whether an earlier checkpoint is a prefix of this log.
    ///
    /// # Errors
    /// `LOG_INCONSISTENT`.
    pub fn continues(&self, earlier: &Checkpoint) -> Result<(), CertifierError> {
        let size = usize::try_from(earlier.size).unwrap_or(usize::MAX);
        let prefix = self.leaves.get(..size).ok_or_else(|| {
            CertifierCode::LogInconsistent.refuse(format_args!(
                "{} entries, {} before",
                self.leaves.len(),
                earlier.size
            ))
        })?;
        match merkle::root(prefix) == earlier.root {
            true => Ok(()),
            false => Err(CertifierCode::LogInconsistent.refuse(format_args!(
                "its first {size} entries are not those of before"
            ))),
        }
    }

    /// The files that the last entry changed or made: the tail of the entries and of each level.
    pub fn tail(&self) -> Vec<TileFile> {
        let mut files = self.hashes_from(self.entries.len().saturating_sub(1));
        let start = self.entries.len().saturating_sub(1) / WIDTH * WIDTH;
        let bundle = &self.entries[start..];
        if let Some((path, _)) = parts("entries", self.entries.len()).pop() {
            let bytes = bundle.iter().flat_map(|entry| {
                let length = u16::try_from(entry.len()).unwrap_or(u16::MAX);
                length
                    .to_be_bytes()
                    .into_iter()
                    .chain(entry.iter().copied())
            });
            files.push(TileFile {
                path,
                bytes: bytes.collect(),
            });
        }
        files
    }

    fn hashes(&self) -> Vec<TileFile> {
        self.hashes_from(0)
    }

    /// The tiles of every level from the one on that holds this leaf.
    fn hashes_from(&self, mut first: usize) -> Vec<TileFile> {
        let mut files = Vec::new();
        let mut hashes = self.leaves.clone();
        let mut level = 0;
        while !hashes.is_empty() {
            let skipped = first / WIDTH;
            let tiles = parts(&level.to_string(), hashes.len()).into_iter();
            for ((path, _), tile) in tiles.zip(hashes.chunks(WIDTH)).skip(skipped) {
                let bytes = tile.iter().flat_map(|hash| *hash.as_bytes()).collect();
                files.push(TileFile { path, bytes });
            }
            // Only full tiles are hashed into the level above.
            hashes = hashes.chunks_exact(WIDTH).map(merkle::root).collect();
            first = skipped;
            level += 1;
        }
        files
    }
}

/// Partial files that a log of so many entries has no use for any more, as long as it grew by one.
pub fn stale_parts(size: usize) -> Vec<String> {
    let before: Vec<String> = all_parts(size.saturating_sub(1));
    let now = all_parts(size);
    let mut stale: Vec<String> = before
        .into_iter()
        .filter(|path| path.contains(".p/") && !now.contains(path))
        .collect();
    stale.sort();
    stale
}

/// The last file of every level and of the entries.
fn all_parts(size: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    out.extend(parts("entries", size).pop().map(|(path, _)| path));
    let (mut level, mut count) = (0, size);
    while count > 0 {
        out.extend(parts(&level.to_string(), count).pop().map(|(path, _)| path));
        count /= WIDTH;
        level += 1;
    }
    out
}

/// The files of one level with so many hashes, each with its width.
fn parts(level: &str, count: usize) -> Vec<(String, usize)> {
    let full = (0..count / WIDTH).map(|n| (format!("tile/{level}/{}", number(n)), WIDTH));
    let rest = count % WIDTH;
    let part = (rest > 0).then(|| {
        (
            format!("tile/{level}/{}.p/{rest}", number(count / WIDTH)),
            rest,
        )
    });
    full.chain(part).collect()
}

/// `1234067` is `x001/x234/067`.
fn number(n: usize) -> String {
    let mut text = format!("{:03}", n % 1000);
    let mut rest = n / 1000;
    while rest > 0 {
        text = format!("x{:03}/{text}", rest % 1000);
        rest /= 1000;
    }
    text
}

/// So many entries, each after its length, and nothing behind them.
fn entries(mut bundle: &[u8], width: usize) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for _ in 0..width {
        let (length, rest) = bundle.split_first_chunk::<2>()?;
        let (entry, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        found.push(entry.to_vec());
        bundle = rest;
    }
    bundle.is_empty().then_some(found)
}

fn broken(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::LogBroken.refuse(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn name() -> LogName {
        "example.org/log".parse().unwrap()
    }

    /// A log of so many entries with the files that are left of it.
    fn grown(count: usize) -> (Tree, BTreeMap<String, Vec<u8>>) {
        let (mut tree, mut files) = (Tree::default(), BTreeMap::new());
        for n in 0..count {
            tree.append(format!("entry {n}").into_bytes()).unwrap();
            for file in tree.tail() {
                files.insert(file.path, file.bytes);
            }
            for path in stale_parts(n + 1) {
                files
                    .remove(&path)
                    .unwrap_or_else(|| panic!("{path} at {n}"));
            }
        }
        (tree, files)
    }

    fn read(files: &BTreeMap<String, Vec<u8>>, at: &Checkpoint) -> Result<Tree, CertifierError> {
        Tree::read(at, |path| {
            let found = files.get(path).cloned();
            found.ok_or_else(|| broken(format_args!("no {path}")))
        })
    }

    #[test]
    fn what_was_appended_is_read_again_and_no_file_is_left_over() {
        for count in [0, 1, 2, 255, 256, 257, 513] {
            let (tree, files) = grown(count);
            let checkpoint = tree.checkpoint(name());
            assert_eq!(read(&files, &checkpoint), Ok(tree.clone()), "{count}");
            let needed = tree.hashes().len() + count.div_ceil(WIDTH);
            assert_eq!(files.len(), needed, "{count}: {:?}", files.keys());
        }
    }

    #[test]
    fn files_have_the_names_of_the_format() {
        let (_, files) = grown(257);
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "tile/0/000",
                "tile/0/001.p/1",
                "tile/1/000.p/1",
                "tile/entries/000",
                "tile/entries/001.p/1"
            ]
        );
        assert_eq!(number(1_234_067), "x001/x234/067");
        assert_eq!(number(0), "000");
    }

    #[test]
    fn any_changed_byte_of_any_file_is_noticed() {
        let (tree, files) = grown(258);
        let checkpoint = tree.checkpoint(name());
        for (path, bytes) in &files {
            for place in [0, bytes.len() / 2, bytes.len() - 1] {
                let mut changed = files.clone();
                changed.get_mut(path).unwrap()[place] ^= 1;
                let code = read(&changed, &checkpoint).err().map(|e| e.code);
                assert_eq!(code, Some(CertifierCode::LogBroken), "{path} {place}");
            }
            let mut without = files.clone();
            without.remove(path);
            assert!(read(&without, &checkpoint).is_err(), "{path}");
        }
        let beyond = Checkpoint {
            size: u64::MAX,
            ..checkpoint
        };
        assert!(read(&files, &beyond).is_err());
    }

    #[test]
    fn a_log_has_so_many_entries_of_such_a_length_and_no_more() {
        let claimed = |size: usize| Checkpoint {
            size: size as u64,
            ..Tree::default().checkpoint(name())
        };
        // One that is within its bound is looked for.
        let asked = |size: usize| {
            let mut asked = Vec::new();
            let read = Tree::read(&claimed(size), |path| {
                asked.push(path.to_owned());
                Err(broken("not there"))
            });
            assert!(read.is_err());
            asked
        };
        assert_eq!(asked(MAX_ENTRIES), ["tile/entries/000"]);
        assert_eq!(asked(MAX_ENTRIES + 1), [""; 0]);
        let mut tree = Tree::default();
        assert_eq!(tree.append(vec![0; MAX_ENTRY_BYTES]), Ok(()));
        assert!(tree.append(vec![0; MAX_ENTRY_BYTES + 1]).is_err());
        assert_eq!(tree.entries().len(), 1);
        tree.entries = vec![Vec::new(); MAX_ENTRIES - 1];
        assert_eq!(tree.append(Vec::new()), Ok(()));
        assert!(tree.append(Vec::new()).is_err());
    }

    #[test]
    fn a_bundle_holds_its_entries_and_nothing_else() {
        assert_eq!(
            entries(b"\0\x01a\0\0", 2),
            Some(vec![b"a".to_vec(), Vec::new()])
        );
        for (bundle, width) in [
            (&b"\0\x01a\0\0"[..], 1),
            (b"\0\x01a\0\0", 3),
            (b"\0\x02a", 1),
            (b"\0", 1),
        ] {
            assert_eq!(entries(bundle, width), None, "{bundle:?} {width}");
        }
    }

    #[test]
    fn a_log_that_forgets_or_changes_is_inconsistent() {
        let (tree, _) = grown(5);
        let (longer, _) = grown(9);
        let early = tree.checkpoint(name());
        assert_eq!(longer.continues(&early), Ok(()));
        let code = |result: Result<(), CertifierError>| result.err().map(|e| e.code);
        let inconsistent = Some(CertifierCode::LogInconsistent);
        assert_eq!(
            code(tree.continues(&longer.checkpoint(name()))),
            inconsistent
        );
        let mut other = Tree::default();
        (0..9).for_each(|n| other.append(vec![n]).unwrap());
        assert_eq!(code(other.continues(&early)), inconsistent);
    }
}
