use crate::bases::{Baseline, Bases};
use crate::bundle::Bundle;
use crate::freight::Freight;
use crate::judge::{Rules, judge};
use crate::objects::{Kind, Source, check_kind};
use crate::pack::{self, Object, Resolver};
use crate::talk::Cap;
use crate::tree::{self, Entry, EntryKind};
use crate::walk::{self, OLD_BYTES};
use crate::{ImportError, ImporterCode, commit, hash, signature};
use flightproof_core::{CommitId, ObjectId, Refusal};
use flightproof_evidence::Change;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A commit out of a bundle that keeps every rule, and its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    baseline: CommitId,
    head: CommitId,
    author: String,
    committer: String,
    changes: Vec<Change>,
    objects: BTreeMap<ObjectId, Object>,
}

/// What one commit arrives in.
#[derive(Debug, Clone, Copy)]
pub struct Parcel<'a> {
    /// All bytes of the bundle.
    pub bundle: &'a [u8],
    /// All bytes of the changeset with its large files, if it has any.
    pub changeset: Option<&'a [u8]>,
}

impl<'a> Parcel<'a> {
    /// A bundle with nothing beside it.
    pub fn bundle(bundle: &'a [u8]) -> Self {
        Self {
            bundle,
            changeset: None,
        }
    }
}

/// Checks a bundle against its baseline. No git and no disk is used: bytes in, judgement out.
///
/// Sizes are charged as they are declared, before anything is allocated for them, so the cost is
/// bounded by the limits, whatever the bytes say.
///
/// # Errors
/// The first rule that is broken; see [`ImporterCode`].
pub fn check(
    bundle: &[u8],
    baseline: CommitId,
    bases: &mut dyn Bases,
    rules: &Rules<'_>,
) -> Result<Checked, ImportError> {
    check_parcel(&Parcel::bundle(bundle), baseline, bases, rules)
}

/// Checks a bundle as [`check`] does, with the changeset that brings its large files.
///
/// # Errors
/// As [`check`]; `CHANGESET_MALFORMED`, `LARGE_NOT_GRANTED`, `CHANGESET_DIFFERS`.
pub fn check_parcel(
    parcel: &Parcel<'_>,
    baseline: CommitId,
    bases: &mut dyn Bases,
    rules: &Rules<'_>,
) -> Result<Checked, ImportError> {
    let Bundle { head, pack } = Bundle::read(parcel.bundle, baseline)?;
    let resolver = Resolver::new(pack::read(pack)?)?;
    // A commit is never a delta on something outside: no further one can appear later.
    let head_body = only_commit(resolver.objects(), head)?.to_vec();
    let mut baseline = Baseline::open(bases, baseline)?;
    let mut objects = Thin::new(resolver, &mut baseline, &head_body)?.resolve()?;
    let freight = parcel
        .changeset
        .map(|bytes| Freight::read(bytes, rules.grants));
    let freight = freight.transpose()?;
    if let Some(freight) = &freight {
        let mut trees = Brought {
            objects: &objects,
            baseline: &mut baseline,
        };
        freight.check_tree(&mut trees, commit::tree_of(&head_body)?)?;
        objects.extend(freight.objects());
    }
    let baseline_body = baseline.body().to_vec();
    let ends = (baseline.commit(), baseline_body.as_slice());
    let mut source = Brought {
        objects: &objects,
        baseline: &mut baseline,
    };
    let judged = judge(&mut source, ends, &head_body, rules)?;
    check_reached(&objects, head, &judged.difference.new)?;
    if let Some(freight) = &freight {
        freight.check_same(&judged.difference.changes)?;
    }
    Ok(Checked {
        baseline: ends.0,
        head,
        author: judged.commit.author,
        committer: judged.commit.committer,
        changes: judged.difference.changes,
        objects,
    })
}

impl Checked {
    /// What it is based on.
    pub fn baseline(&self) -> CommitId {
        self.baseline
    }

    /// The commit.
    pub fn head(&self) -> CommitId {
        self.head
    }

    /// `Name <mail>` of its author.
    pub fn author(&self) -> &str {
        &self.author
    }

    /// `Name <mail>` of its committer.
    pub fn committer(&self) -> &str {
        &self.committer
    }

    /// Every path that differs, ordered by path, with the content before and after; modes and
    /// sizes follow from these.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The ids of the objects it brings, in order.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = ObjectId> {
        self.objects.keys().copied()
    }

    /// The objects it brings, as a shelf.
    pub(crate) fn shelf(&self) -> walk::Shelf {
        let objects = self.objects.iter();
        objects
            .map(|(id, object)| (*id, (object.kind, object.body.clone())))
            .collect()
    }

    /// The commit with a signature over it, and its id. `sign` is given the bytes of the commit and
    /// gives an armoured SSH signature of them in the namespace `git`.
    pub(crate) fn signed(
        &self,
        sign: impl FnOnce(&[u8]) -> Result<String, Refusal>,
    ) -> Result<(CommitId, Vec<u8>), Refusal> {
        let body = only_commit(&self.objects, self.head)?;
        let signed = signature::signed(body, &sign(body)?)?;
        Ok((hash::id_of(Kind::Commit, &signed)?, signed))
    }

    /// The pack with another commit in place of its own.
    pub(crate) fn pack_with(&self, (id, body): (CommitId, &[u8])) -> Result<Vec<u8>, ImportError> {
        let others = self.objects.iter().filter(|(id, _)| **id != self.head);
        let others = others.map(|(id, object)| (*id, object.kind, object.body.as_slice()));
        let mut all = vec![(id, Kind::Commit, body)];
        all.extend(others);
        pack::write(all.into_iter())
    }

    /// Its tree.
    pub(crate) fn tree(&self) -> Result<ObjectId, ImportError> {
        commit::tree_of(only_commit(&self.objects, self.head)?)
    }

    /// The objects as a pack of our own: in the order of their ids, without deltas, compressed
    /// anew. This is what git gets to read, and never the bytes that were checked.
    ///
    /// # Errors
    /// `PACK_CHECKSUM` if the pack would carry the mark of a forged collision.
    pub fn pack(&self) -> Result<Vec<u8>, ImportError> {
        let objects = self.objects.iter();
        pack::write(objects.map(|(id, object)| (*id, object.kind, object.body.as_slice())))
    }
}

/// The body of the one commit, which must be the head.
fn only_commit(objects: &BTreeMap<ObjectId, Object>, head: CommitId) -> Result<&[u8], ImportError> {
    let commits = objects.values().filter(|o| o.kind == Kind::Commit).count();
    match objects.get(&head) {
        Some(object) if object.kind == Kind::Commit && commits == 1 => Ok(&object.body),
        Some(object) => Err(ImporterCode::CommitCount.refuse(format!(
            "{commits} commits, and {head} is a {}",
            object.kind.word()
        ))),
        None => Err(ImporterCode::CommitCount
            .refuse(format!("{commits} commits, and {head} is not in the pack"))),
    }
}

/// Refuses an object that the new side of the comparison did not come by.
fn check_reached(
    objects: &BTreeMap<ObjectId, Object>,
    head: CommitId,
    reached: &walk::Shelf,
) -> Result<(), ImportError> {
    let extra = objects
        .iter()
        .find(|(id, _)| **id != head && !reached.contains_key(id));
    match extra {
        Some((id, object)) => {
            Err(ImporterCode::ObjectUnreached.refuse(format!("{} {id}", object.kind.word())))
        }
        None => Ok(()),
    }
}

/// The objects a bundle brought, and behind them those of the baseline.
struct Brought<'a, 'b> {
    objects: &'a BTreeMap<ObjectId, Object>,
    baseline: &'a mut Baseline<'b>,
}

impl Source for Brought<'_, '_> {
    fn read(&mut self, id: ObjectId, kind: Kind, cap: Cap) -> Result<Vec<u8>, ImportError> {
        let Some(object) = self.objects.get(&id) else {
            return self.baseline.read(id, kind, cap);
        };
        check_kind(id, object.kind, kind)?;
        cap.check(id, kind, object.body.len())?;
        if kind == Kind::Tree && self.baseline.has_met(id) {
            // The bundle brings a tree that the baseline has as well.
            self.baseline.meet(id)?;
        }
        Ok(object.body.clone())
    }
}

/// A pack with deltas on objects of the baseline.
///
/// The baseline is walked only beside what the commit touches: a delta of an honest git stands on
/// the same path's content before. So the cost does not grow with the repository.
struct Thin<'a, 'b> {
    resolver: Resolver,
    baseline: &'a mut Baseline<'b>,
    /// Directories before and after, of which the latter may still wait for its delta's base.
    open: Vec<(Option<ObjectId>, ObjectId)>,
    seen: HashSet<(Option<ObjectId>, ObjectId)>,
    bytes_left: usize,
}

impl<'a, 'b> Thin<'a, 'b> {
    fn new(
        resolver: Resolver,
        baseline: &'a mut Baseline<'b>,
        head_body: &[u8],
    ) -> Result<Self, ImportError> {
        Ok(Self {
            open: vec![(Some(baseline.root()), commit::tree_of(head_body)?)],
            resolver,
            baseline,
            seen: HashSet::new(),
            bytes_left: OLD_BYTES,
        })
    }

    fn resolve(mut self) -> Result<BTreeMap<ObjectId, Object>, ImportError> {
        while !self.resolver.wanted().is_empty() {
            self.walk_on()?;
            if self.give_met()? {
                continue;
            }
            // Nothing beside the change is wanted. Whatever the rest of the baseline has is given.
            let wanted = self.resolver.wanted();
            let mut known = BTreeSet::new();
            for id in wanted {
                if self.baseline.leads_to(id)? {
                    known.insert(id);
                }
            }
            if !self.give(&known)? {
                break;
            }
        }
        self.resolver.finish()
    }

    fn give_met(&mut self) -> Result<bool, ImportError> {
        let mut wanted = self.resolver.wanted();
        wanted.retain(|id| self.baseline.has_met(*id));
        self.give(&wanted)
    }

    fn give(&mut self, ids: &BTreeSet<ObjectId>) -> Result<bool, ImportError> {
        for id in ids {
            let (kind, body) = self.baseline.fetch(*id, self.bytes_left)?;
            self.bytes_left -= body.len();
            self.resolver.give(*id, kind, &body)?;
        }
        Ok(!ids.is_empty())
    }

    /// Lists the baseline's directories beside every directory of the commit that is known by now.
    fn walk_on(&mut self) -> Result<(), ImportError> {
        let mut waiting = Vec::new();
        while let Some((old, new)) = self.open.pop() {
            self.baseline.charge(1)?;
            let Some(body) = self.tree(new) else {
                waiting.push((old, new));
                continue;
            };
            let after = tree::parse(body)?;
            self.baseline.charge(after.len())?;
            let before = match old {
                Some(old) => self.baseline.meet(old)?,
                None => Vec::new(),
            };
            for pair in changed_directories(&before, &after) {
                if self.seen.insert(pair) {
                    self.open.push(pair);
                }
            }
        }
        self.open = waiting;
        Ok(())
    }

    fn tree(&self, id: ObjectId) -> Option<&[u8]> {
        let object = self.resolver.objects().get(&id)?;
        (object.kind == Kind::Tree).then_some(object.body.as_slice())
    }
}

/// Directories of a new tree that are not as they were, each with the one of its name before.
fn changed_directories(before: &[Entry], after: &[Entry]) -> Vec<(Option<ObjectId>, ObjectId)> {
    let directories = |entries: &[Entry]| -> BTreeMap<Vec<u8>, ObjectId> {
        let directories = entries.iter().filter(|e| e.kind == EntryKind::Directory);
        directories.map(|e| (e.name.clone(), e.id)).collect()
    };
    let before = directories(before);
    directories(after)
        .into_iter()
        .map(|(name, id)| (before.get(&name).copied(), id))
        .filter(|(old, new)| *old != Some(*new))
        .collect()
}
