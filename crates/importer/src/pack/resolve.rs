use super::{Base, Entry, Form, RESOLVED, delta};
use crate::objects::Kind;
use crate::{ImportError, ImporterCode, hash};
use flightproof_core::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// Most deltas between an object and the whole object it stands on: what git itself writes.
const DEPTH: usize = 50;

/// An object of the pack.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes", self.kind.word(), self.body.len())
    }
}

/// Turns entries into objects. Without recursion: a chain is as long as somebody else wants.
#[derive(Debug)]
pub(crate) struct Resolver {
    entries: Vec<Entry>,
    /// Deltas on an entry that has no object yet, by its number.
    on_entry: BTreeMap<usize, Vec<usize>>,
    /// Deltas on an object that is not known yet.
    on_object: BTreeMap<ObjectId, Vec<usize>>,
    objects: BTreeMap<ObjectId, Object>,
    bytes_left: usize,
}

impl Resolver {
    /// Takes the entries and makes all objects that need nothing from elsewhere.
    pub(crate) fn new(entries: Vec<Entry>) -> Result<Self, ImportError> {
        let mut resolver = Self {
            bytes_left: RESOLVED,
            entries,
            on_entry: BTreeMap::new(),
            on_object: BTreeMap::new(),
            objects: BTreeMap::new(),
        };
        resolver.charge()?;
        let mut whole = Vec::new();
        for number in 0..resolver.entries.len() {
            match resolver.form(number) {
                Form::Whole(kind) => {
                    let body = resolver.take_data(number);
                    whole.push(Made::whole(number, kind, body));
                }
                Form::Delta(Base::Entry(base)) => {
                    resolver.on_entry.entry(base).or_default().push(number);
                }
                Form::Delta(Base::Object(base)) => {
                    resolver.on_object.entry(base).or_default().push(number);
                }
            }
        }
        resolver.settle(whole)?;
        Ok(resolver)
    }

    /// The objects made so far.
    pub(crate) fn objects(&self) -> &BTreeMap<ObjectId, Object> {
        &self.objects
    }

    /// Objects that deltas wait for.
    pub(crate) fn wanted(&self) -> BTreeSet<ObjectId> {
        self.on_object.keys().copied().collect()
    }

    /// Makes what waited for an object that is not in the pack.
    pub(crate) fn give(
        &mut self,
        id: ObjectId,
        kind: Kind,
        body: &[u8],
    ) -> Result<(), ImportError> {
        let waiting = self.on_object.remove(&id).unwrap_or_default();
        let mut made = Vec::new();
        for number in waiting {
            made.push(self.apply(number, kind, body, 0)?);
        }
        self.settle(made)
    }

    /// All objects, if nothing waits any more.
    pub(crate) fn finish(self) -> Result<BTreeMap<ObjectId, Object>, ImportError> {
        match self.on_object.first_key_value() {
            None => Ok(self.objects),
            Some((id, _)) => Err(ImporterCode::DeltaBase.refuse(id)),
        }
    }

    /// Charges every object by its declared size, before any delta is applied.
    fn charge(&mut self) -> Result<(), ImportError> {
        for entry in &self.entries {
            let size = match entry.form {
                Form::Whole(_) => entry.data.len(),
                Form::Delta(_) => delta::Sizes::read(&entry.data)?.0.result,
            };
            self.bytes_left = self.bytes_left.checked_sub(size).ok_or_else(|| {
                let (offset, left) = (entry.offset, self.bytes_left);
                let detail = format!("{size} bytes at offset {offset}, {left} of {RESOLVED} left");
                ImporterCode::BytesOverLimit.refuse(detail)
            })?;
        }
        Ok(())
    }

    fn settle(&mut self, mut queue: Vec<Made>) -> Result<(), ImportError> {
        while let Some(made) = queue.pop() {
            let Made {
                number,
                depth,
                object,
            } = made;
            let id = hash::id_of(object.kind, &object.body)?;
            let mut waiting = self.on_entry.remove(&number).unwrap_or_default();
            waiting.extend(self.on_object.remove(&id).unwrap_or_default());
            for next in waiting {
                queue.push(self.apply(next, object.kind, &object.body, depth)?);
            }
            if self.objects.insert(id, object).is_some() {
                return Err(ImporterCode::ObjectDuplicate.refuse(id));
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        number: usize,
        kind: Kind,
        base: &[u8],
        depth: usize,
    ) -> Result<Made, ImportError> {
        if depth >= DEPTH {
            let offset = self.entries.get(number).map_or(0, |entry| entry.offset);
            let detail = format!("more than {DEPTH} at offset {offset}");
            return Err(ImporterCode::DeltaDepth.refuse(detail));
        }
        let delta = self.take_data(number);
        let body = delta::apply(base, &delta, RESOLVED)?;
        Ok(Made {
            number,
            depth: depth + 1,
            object: Object { kind, body },
        })
    }

    fn form(&self, number: usize) -> Form {
        self.entries
            .get(number)
            .map_or(Form::Whole(Kind::Blob), |entry| entry.form)
    }

    fn take_data(&mut self, number: usize) -> Vec<u8> {
        self.entries
            .get_mut(number)
            .map(|entry| std::mem::take(&mut entry.data))
            .unwrap_or_default()
    }
}

/// An object that was just made, and of which entry.
struct Made {
    number: usize,
    /// Deltas it took.
    depth: usize,
    object: Object,
}

impl Made {
    fn whole(number: usize, kind: Kind, body: Vec<u8>) -> Self {
        Self {
            number,
            depth: 0,
            object: Object { kind, body },
        }
    }
}
