use crate::objects::{Kind, Source, check_kind};
use crate::talk::Cap;
use crate::tree::{self, EntryKind};
use crate::walk::OLD_BYTES;
use crate::{ImportError, ImporterCode, commit, hash};
use flightproof_core::{CommitId, ObjectId};
use std::collections::{BTreeMap, HashSet};

/// Objects of the repository a bundle is for. They are hashed again by whoever asks, and asked
/// for only if the baseline's tree leads to them, whatever else the repository holds.
pub trait Bases {
    /// The object of this id; `None` if there is none. More than `most` bytes are refused.
    ///
    /// # Errors
    /// `BYTES_OVER_LIMIT`, and whatever keeps the repository from answering.
    fn find(&mut self, id: ObjectId, most: usize) -> Result<Option<(Kind, Vec<u8>)>, ImportError>;
}

/// Objects held in memory.
impl Bases for BTreeMap<ObjectId, (Kind, Vec<u8>)> {
    fn find(&mut self, id: ObjectId, most: usize) -> Result<Option<(Kind, Vec<u8>)>, ImportError> {
        let Some((kind, body)) = self.get(&id) else {
            return Ok(None);
        };
        let cap = Cap {
            bytes: most,
            code: ImporterCode::BytesOverLimit,
        };
        cap.check(id, *kind, body.len())?;
        Ok(Some((*kind, body.clone())))
    }
}

/// The baseline's tree: what it is known to lead to, and the way to its objects.
///
/// A bundle may refer to objects it does not bring. Were any object of the repository good for
/// that, a bundle could name the id of somebody's unpublished file and carry it home.
pub(crate) struct Baseline<'a> {
    bases: &'a mut dyn Bases,
    commit: CommitId,
    body: Vec<u8>,
    root: ObjectId,
    met: HashSet<ObjectId>,
    trees: BTreeMap<ObjectId, Vec<u8>>,
    entries_left: usize,
    bytes_left: usize,
    all_met: bool,
}

/// Most bytes of the baseline's commit object; the candidate's are fewer.
const COMMIT: usize = 1 << 20;
/// Entries of the baseline that are listed: twice the largest tree this is measured with.
const ENTRIES: usize = 200_000;
/// Bytes of its trees that are read for that.
const TREE_BYTES: usize = 16 << 20;
/// Bytes of its trees that are kept; further ones are read again when they are needed.
const KEPT_BYTES: usize = 4 << 20;

impl<'a> Baseline<'a> {
    pub(crate) fn open(bases: &'a mut dyn Bases, commit: CommitId) -> Result<Self, ImportError> {
        let (kind, body) = bases
            .find(commit, COMMIT)?
            .ok_or_else(|| ImporterCode::ObjectMissing.refuse(format!("baseline {commit}")))?;
        check_kind(commit, kind, Kind::Commit)?;
        hash::check(commit, kind, &body)?;
        let root = commit::tree_of(&body)?;
        Ok(Self {
            bases,
            commit,
            body,
            root,
            met: HashSet::from([root]),
            trees: BTreeMap::new(),
            entries_left: ENTRIES,
            bytes_left: TREE_BYTES,
            all_met: false,
        })
    }

    pub(crate) fn commit(&self) -> CommitId {
        self.commit
    }

    /// The commit object.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn root(&self) -> ObjectId {
        self.root
    }

    /// Whether the baseline is known to lead to an object. Cheap.
    pub(crate) fn has_met(&self, id: ObjectId) -> bool {
        self.met.contains(&id)
    }

    /// Whether the baseline leads to an object. Lists the whole baseline if it is not known yet:
    /// a copy of a file in a directory that nobody touched is found nowhere else.
    pub(crate) fn leads_to(&mut self, id: ObjectId) -> Result<bool, ImportError> {
        if !self.has_met(id) && !self.all_met {
            self.meet_all()?;
        }
        Ok(self.has_met(id))
    }

    /// Lists a tree that is known to be of the baseline, so that its entries are known too.
    pub(crate) fn meet(&mut self, id: ObjectId) -> Result<Vec<tree::Entry>, ImportError> {
        let body = self.tree(id)?;
        let entries = tree::parse(&body)?;
        self.charge(entries.len())?;
        self.note(&entries);
        Ok(entries)
    }

    /// Counts entries that were looked at, here or beside what is looked at here.
    pub(crate) fn charge(&mut self, entries: usize) -> Result<(), ImportError> {
        self.entries_left = self.entries_left.checked_sub(entries).ok_or_else(|| {
            let detail = format!("more than {ENTRIES} of the baseline");
            ImporterCode::EntriesOverLimit.refuse(detail)
        })?;
        Ok(())
    }

    /// An object the baseline leads to. A delta may stand on it.
    pub(crate) fn fetch(
        &mut self,
        id: ObjectId,
        most: usize,
    ) -> Result<(Kind, Vec<u8>), ImportError> {
        if let Some(body) = self.trees.get(&id).filter(|body| body.len() <= most) {
            return Ok((Kind::Tree, body.clone()));
        }
        let (kind, body) = self
            .bases
            .find(id, most)?
            .ok_or_else(|| ImporterCode::ObjectMissing.refuse(format!("{id} of the baseline")))?;
        // Whoever answers may not keep to the limit.
        let cap = Cap {
            bytes: most,
            code: ImporterCode::BytesOverLimit,
        };
        cap.check(id, kind, body.len())?;
        hash::check(id, kind, &body)?;
        Ok((kind, body))
    }

    fn meet_all(&mut self) -> Result<(), ImportError> {
        let mut open = vec![self.root];
        let mut seen = HashSet::from([self.root]);
        while let Some(id) = open.pop() {
            for entry in self.meet(id)? {
                if entry.kind == EntryKind::Directory && seen.insert(entry.id) {
                    open.push(entry.id);
                }
            }
        }
        self.all_met = true;
        Ok(())
    }

    fn note(&mut self, entries: &[tree::Entry]) {
        // A submodule names a commit of another repository.
        let ours = entries.iter().filter(|e| e.kind != EntryKind::Gitlink);
        self.met.extend(ours.map(|entry| entry.id));
    }

    fn tree(&mut self, id: ObjectId) -> Result<Vec<u8>, ImportError> {
        if let Some(body) = self.trees.get(&id) {
            return Ok(body.clone());
        }
        let (kind, body) = self.fetch(id, self.bytes_left)?;
        check_kind(id, kind, Kind::Tree)?;
        self.bytes_left -= body.len();
        let kept: usize = TREE_BYTES - self.bytes_left;
        if kept <= KEPT_BYTES {
            self.trees.insert(id, body.clone());
        }
        Ok(body)
    }
}

impl Source for Baseline<'_> {
    fn read(&mut self, id: ObjectId, kind: Kind, cap: Cap) -> Result<Vec<u8>, ImportError> {
        if id == self.commit {
            check_kind(id, Kind::Commit, kind)?;
        }
        if !self.leads_to(id)? {
            let detail = format!(
                "{} {id} is neither in the bundle nor in the baseline",
                kind.word()
            );
            return Err(ImporterCode::ObjectMissing.refuse(detail));
        }
        let (found, body) = self.fetch(id, cap.bytes.min(OLD_BYTES))?;
        check_kind(id, found, kind)?;
        if kind == Kind::Tree {
            self.note(&tree::parse(&body)?);
        }
        Ok(body)
    }
}
