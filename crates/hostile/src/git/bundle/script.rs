use super::encode::{DeltaPlan, EntryPlan, PackPlan, Step};
use super::world::{BEFORE, Candidate, World, row, set, tree_bytes};
use crate::git::{Id, id_of};

/// A bundle made as some bytes direct.
#[derive(Debug, Clone)]
pub struct Scripted {
    /// The bundle.
    pub bytes: Vec<u8>,
    /// Nothing in it is a lie: it must be accepted.
    pub is_honest: bool,
}

impl World {
    /// Makes a bundle as the bytes direct: which files change, which objects are deltas and on
    /// what, in which order they stand, and whether anything is spoiled. Any bytes direct to a
    /// bundle, and all ids in it fit each other, so that mutated bytes come far.
    pub fn scripted(&self, script: &[u8]) -> Scripted {
        let mut dice = Dice(script.iter());
        let candidate = self.directed(&mut dice);
        let mut pack = PackPlan::honest(candidate.directed_entries(self, &mut dice));
        let is_honest = dice.next() % 4 != 3;
        if !is_honest {
            spoil(&mut pack, &mut dice);
        }
        Scripted {
            bytes: self.wrap(candidate.head, &pack),
            is_honest,
        }
    }

    fn directed(&self, dice: &mut Dice<'_>) -> Candidate {
        const NAMES: [&str; 6] = ["lib.rs", "other.rs", "new.rs", "a b", "größe", "-rf"];
        let (mut src, mut top) = (self.src.clone(), self.root.clone());
        let mut objects: Vec<(&'static str, Vec<u8>)> = Vec::new();
        for _ in 0..=dice.next() % 6 {
            let name = NAMES[usize::from(dice.next()) % NAMES.len()];
            let mode = if dice.next().is_multiple_of(2) {
                "100644"
            } else {
                "100755"
            };
            let body = content(dice);
            let rows = if dice.next().is_multiple_of(3) {
                &mut top
            } else {
                &mut src
            };
            set(rows, row(mode, name, id_of("blob", &body)));
            objects.push(("blob", body));
        }
        // A later file may have taken the place of an earlier one, or have its content.
        objects.sort();
        objects.dedup();
        let in_use = |id: Id| src.iter().chain(&top).any(|row| row.2 == id);
        objects.retain(|(_, body)| in_use(id_of("blob", body)));
        if src != self.src {
            let tree = tree_bytes(&src);
            set(&mut top, row("40000", "src", id_of("tree", &tree)));
            objects.push(("tree", tree));
        }
        self.with_root(&tree_bytes(&top), objects)
    }
}

/// New content: no file of the baseline begins like it.
fn content(dice: &mut Dice<'_>) -> Vec<u8> {
    let mut body = vec![b'N', dice.next()];
    match dice.next() % 3 {
        0 => body.extend(BEFORE),
        1 => body.resize(2 + usize::from(dice.next()) * 40, b'x'),
        _ => body.extend(
            (0..dice.next() % 16)
                .map(|_| dice.next())
                .collect::<Vec<u8>>(),
        ),
    }
    body
}

impl Candidate {
    /// Each object whole or as a delta, in an order of the dice's choice.
    fn directed_entries(&self, world: &World, dice: &mut Dice<'_>) -> Vec<EntryPlan> {
        let mut entries = Vec::new();
        for (number, (kind, body)) in self.objects.iter().enumerate() {
            let before = &self.objects[..number];
            let same_kind = |n: &usize| before.get(*n).is_some_and(|(other, _)| other == kind);
            let base = usize::from(dice.next());
            let earlier = number.checked_sub(1 + base % 3).filter(same_kind);
            let whole = || EntryPlan::whole(kind, body);
            entries.push(match (dice.next() % 4, earlier) {
                (1, Some(base)) => EntryPlan::on_entry(base, &between(&before[base].1, body)),
                (2, Some(base)) => {
                    let base = &before[base].1;
                    EntryPlan::on_object(id_of(kind, base), &between(base, body))
                }
                (3, _) => world.old_of(kind).map_or_else(whole, |base| {
                    EntryPlan::on_object(id_of(kind, &base), &between(&base, body))
                }),
                _ => whole(),
            });
        }
        // Only deltas that name their base by its id may stand before it.
        if entries.iter().all(|entry| entry.word != 6) {
            let turn = usize::from(dice.next()) % entries.len();
            entries.rotate_left(turn);
        }
        entries
    }
}

impl World {
    /// An object of the baseline a delta may stand on.
    fn old_of(&self, kind: &str) -> Option<Vec<u8>> {
        match kind {
            "blob" => Some(BEFORE.to_vec()),
            "tree" => Some(tree_bytes(&self.src)),
            _ => None,
        }
    }
}

/// A delta that keeps what two texts have in common at both ends.
fn between(base: &[u8], made: &[u8]) -> Vec<u8> {
    let shared = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let start = base.iter().zip(made).take_while(shared).count();
    let ends = base[start..].iter().rev().zip(made[start..].iter().rev());
    let end = ends.take_while(shared).count();
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut steps = Vec::new();
    if start > 0 {
        steps.push(Step::Copy(0, number(start)));
    }
    let middle = &made[start..made.len() - end];
    steps.extend(middle.chunks(127).map(|piece| Step::Insert(piece.to_vec())));
    if end > 0 {
        steps.push(Step::Copy(number(base.len() - end), number(end)));
    }
    DeltaPlan::honest(base.len(), steps).bytes()
}

/// Makes one part of a pack a lie.
fn spoil(pack: &mut PackPlan, dice: &mut Dice<'_>) {
    let which = usize::from(dice.next()) % pack.entries.len();
    let mask = dice.next() | 1;
    let count = u32::try_from(pack.entries.len()).unwrap_or(u32::MAX);
    let entry = &mut pack.entries[which];
    match dice.next() % 8 {
        0 => pack.count = Some(count ^ u32::from(mask)),
        1 => entry.size ^= u64::from(mask),
        2 => entry.padding = usize::from(mask % 9) + 1,
        3 => entry.word = (entry.word ^ mask) & 7,
        4 => {
            let at = usize::from(dice.next()) % entry.stream.len();
            entry.stream[at] ^= mask;
        }
        5 => pack.before_sum = vec![mask; usize::from(mask % 5) + 1],
        6 => pack.spoil_sum = mask,
        _ => {
            let again = entry.clone();
            pack.entries.push(again);
        }
    }
}

/// Bytes as decisions; zeros when they run out.
struct Dice<'a>(std::slice::Iter<'a, u8>);

impl Dice<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }
}
