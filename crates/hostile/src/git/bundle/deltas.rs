use super::BundleAttack;
use super::encode::{BasePlan, DeltaPlan, EntryPlan, PackPlan, Step};
use super::world::{AFTER, BEFORE, Candidate, SECRET, World, prefix};
use crate::git::{Id, id_of};

const BASE: &str = "importer/DELTA_BASE";
const SIZE: &str = "importer/DELTA_SIZE";
const FORM: &str = "importer/DELTA_MALFORMED";
const BYTES: &str = "importer/BYTES_OVER_LIMIT";
const OFFSET: &str = "importer/DELTA_OFFSET";
const NUMBER: &str = "importer/PACK_NUMBER";

/// Forged deltas in an otherwise honest pack.
pub(super) fn attacks(world: &World) -> Vec<BundleAttack> {
    [
        instructions(world),
        places(world),
        outside(world),
        bombs(world),
        chains(world),
        commits(world),
    ]
    .concat()
}

/// The honest delta from the old `src/lib.rs` to the new one.
fn edit() -> DeltaPlan {
    let at = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let digit = AFTER.iter().position(|b| *b == b'2').unwrap_or(0);
    let rest = AFTER.len() - digit - 1;
    DeltaPlan::honest(
        BEFORE.len(),
        vec![
            Step::Copy(0, at(digit)),
            Step::Insert(b"2".to_vec()),
            Step::Copy(at(digit) + 1, at(rest)),
        ],
    )
}

/// The honest candidate with this in place of its file.
fn with_entry(world: &World, entry: EntryPlan) -> Vec<u8> {
    let honest = world.honest();
    world.wrap(
        honest.head,
        &PackPlan::honest(honest.entries_with(0, entry)),
    )
}

/// The honest candidate with its file as a delta on the one before.
fn thin(world: &World, delta: &DeltaPlan) -> Vec<u8> {
    let base = id_of("blob", BEFORE);
    with_entry(world, EntryPlan::on_object(base, &delta.bytes()))
}

fn instructions(world: &World) -> Vec<BundleAttack> {
    let good = thin(world, &edit());
    let steps = |steps: Vec<Step>| DeltaPlan { steps, ..edit() };
    let long = u32::try_from(BEFORE.len()).unwrap_or(u32::MAX);
    let plain = [
        (
            "a base of another size",
            SIZE,
            DeltaPlan { base: 1, ..edit() },
        ),
        (
            "a result shorter than declared",
            SIZE,
            DeltaPlan {
                result: 24,
                ..edit()
            },
        ),
        (
            "a result longer than declared",
            SIZE,
            DeltaPlan {
                result: 22,
                ..edit()
            },
        ),
        ("no instructions", SIZE, steps(vec![])),
        (
            "a copy from beyond the base",
            "importer/DELTA_COPY",
            steps(vec![Step::Copy(1, long)]),
        ),
        (
            "a copy from 2^32",
            "importer/DELTA_COPY",
            steps(vec![Step::Copy(u32::MAX, 0xff_ffff)]),
        ),
        ("instruction zero", FORM, steps(vec![Step::Raw(vec![0])])),
        (
            "a copy without its operands",
            FORM,
            steps(vec![Step::Raw(vec![0xff, 0])]),
        ),
        (
            "an insertion without its bytes",
            FORM,
            steps(vec![Step::Raw(vec![9, b'a'])]),
        ),
        (
            "a result size in more bytes than it needs",
            NUMBER,
            DeltaPlan {
                padding: 1,
                ..edit()
            },
        ),
        (
            "a result of 2^62",
            NUMBER,
            DeltaPlan {
                result: 1 << 62,
                ..edit()
            },
        ),
        (
            "a result of 4 GiB",
            BYTES,
            DeltaPlan {
                result: 4 << 30,
                ..edit()
            },
        ),
    ];
    let mut all: Vec<BundleAttack> = plain
        .into_iter()
        .map(|(name, code, delta)| world.attack(name, thin(world, &delta), code, good.clone()))
        .collect();
    for (name, raw) in [("an empty delta", &b""[..]), ("half a size", b"\x97")] {
        let bytes = with_entry(world, EntryPlan::on_object(id_of("blob", BEFORE), raw));
        all.push(world.attack(name, bytes, FORM, good.clone()));
    }
    all
}

/// A candidate of two files, the second a delta on the first.
fn pair(world: &World) -> (Candidate, DeltaPlan) {
    let second = [b"x", AFTER].concat();
    let candidate = world.many(&[AFTER.to_vec(), second]);
    (candidate, prefix(AFTER.len(), b"x"))
}

fn places(world: &World) -> Vec<BundleAttack> {
    let (candidate, delta) = pair(world);
    let with = |base: BasePlan| {
        let mut entry = EntryPlan::on_entry(0, &delta.bytes());
        entry.base = base;
        entry.word = if matches!(base, BasePlan::Object(_)) {
            7
        } else {
            6
        };
        world.wrap(
            candidate.head,
            &PackPlan::honest(candidate.entries_with(1, entry)),
        )
    };
    let good = with(BasePlan::Entry(0));
    let first = (EntryPlan::whole("blob", AFTER).stream.len() + 2) as u64;
    let attack = |name, base, code| world.attack(name, with(base), code, good.clone());
    let ids: Vec<Id> = candidate
        .objects
        .iter()
        .map(|(kind, body)| id_of(kind, body))
        .collect();
    vec![
        attack("a distance of zero", BasePlan::Back(0), OFFSET),
        attack(
            "a distance into an object",
            BasePlan::Back(first - 1),
            OFFSET,
        ),
        attack(
            "a distance to the pack's head",
            BasePlan::Back(first + 12),
            OFFSET,
        ),
        attack(
            "a distance beyond the start",
            BasePlan::Back(1 << 20),
            OFFSET,
        ),
        attack("a distance of 2^60", BasePlan::Back(1 << 60), OFFSET),
        attack("a delta on itself", BasePlan::Object(ids[1]), BASE),
        attack("a delta on nothing", BasePlan::Object([9; 20]), BASE),
        world.attack("deltas on each other", circle(world), BASE, good.clone()),
    ]
}

/// Two deltas, each on what the other makes.
fn circle(world: &World) -> Vec<u8> {
    let (candidate, delta) = pair(world);
    let ids: Vec<Id> = candidate
        .objects
        .iter()
        .map(|(kind, body)| id_of(kind, body))
        .collect();
    let cut = DeltaPlan::honest(AFTER.len() + 1, vec![Step::Copy(1, 23)]);
    let mut entries = candidate.entries();
    entries[0] = EntryPlan::on_object(ids[1], &cut.bytes());
    entries[1] = EntryPlan::on_object(ids[0], &delta.bytes());
    world.wrap(candidate.head, &PackPlan::honest(entries))
}

/// Deltas on objects that are not in the pack.
fn outside(world: &World) -> Vec<BundleAttack> {
    let on = |world: &World, base: &[u8], kind: &str| {
        let made = [b"x", base].concat();
        let candidate = world.file("new", &made);
        let delta = prefix(base.len(), b"x").bytes();
        let entry = EntryPlan::on_object(id_of(kind, base), &delta);
        world.wrap(
            candidate.head,
            &PackPlan::honest(candidate.entries_with(0, entry)),
        )
    };
    let old = on(world, BEFORE, "blob");
    let commit = world.body(&world.baseline).to_vec();
    let mut all = vec![
        world.attack(
            "a delta on somebody's secret",
            on(world, SECRET, "blob"),
            BASE,
            old.clone(),
        ),
        world.attack(
            "a delta on the baseline commit",
            on(world, &commit, "commit"),
            BASE,
            old,
        ),
        world.attack(
            "a delta on a file of another place, that is not there",
            on(world, b"never there\n", "blob"),
            BASE,
            on(world, b"base\n", "blob"),
        ),
    ];
    // An edit of a large file: the file before may be large, but not without end.
    let first_line = |world: &World, size: usize| {
        let base = vec![0; size];
        let delta = DeltaPlan::honest(size, vec![Step::Copy(0, 100)]);
        let candidate = world.file("new", &[0; 100]);
        let entry = EntryPlan::on_object(id_of("blob", &base), &delta.bytes());
        world.wrap(
            candidate.head,
            &PackPlan::honest(candidate.entries_with(0, entry)),
        )
    };
    let size = (16 << 20) + 1;
    let huge = World::with_large(&vec![0; size]);
    let twin = huge.bundle(&huge.honest());
    all.push(huge.attack(
        "a delta on a file of 16 MiB",
        first_line(&huge, size),
        BYTES,
        twin,
    ));
    let size = 1 << 20;
    let large = World::with_large(&vec![0; size]);
    let mut lie = large.attack(
        "a copy from beyond a large file",
        Vec::new(),
        "importer/DELTA_COPY",
        first_line(&large, size),
    );
    let delta = DeltaPlan::honest(size, vec![Step::Copy(1 << 20, 1)]);
    let candidate = large.file("new", &[0; 100]);
    let entry = EntryPlan::on_object(id_of("blob", &vec![0; size]), &delta.bytes());
    lie.bytes = large.wrap(
        candidate.head,
        &PackPlan::honest(candidate.entries_with(0, entry)),
    );
    all.push(lie);
    all
}

fn bombs(world: &World) -> Vec<BundleAttack> {
    const BLOCK: u32 = 0x1_0000;
    let copies = |count: usize| DeltaPlan::honest(0x1_0000, vec![Step::Copy(0, BLOCK); count]);
    let with = |delta: &DeltaPlan, made: &[u8]| {
        let candidate = world.many(&[vec![0; 0x1_0000], made.to_vec()]);
        let entry = EntryPlan::on_entry(0, &delta.bytes());
        world.wrap(
            candidate.head,
            &PackPlan::honest(candidate.entries_with(1, entry)),
        )
    };
    let good = with(&copies(16), &vec![0; 16 << 16]);
    let lie = DeltaPlan {
        result: 100,
        ..copies(16_000)
    };
    vec![
        world.attack(
            "1,000 MiB of copies",
            with(&copies(16_000), b"x"),
            BYTES,
            good.clone(),
        ),
        world.attack(
            "copies that declare 100 bytes",
            with(&lie, b"x"),
            SIZE,
            good.clone(),
        ),
        world.attack(
            "a thousand deltas of 4 KB",
            fan(world, 1_000),
            BYTES,
            fan(world, 400),
        ),
    ]
}

/// Files that differ from the first in a few bytes, as deltas on it.
fn fan(world: &World, count: usize) -> Vec<u8> {
    let base = vec![b'x'; 4_000];
    let mut files = vec![base.clone()];
    let deltas: Vec<DeltaPlan> = (0..count)
        .map(|n| prefix(base.len(), format!("{n}").as_bytes()))
        .collect();
    files.extend((0..count).map(|n| [format!("{n}").as_bytes(), &base].concat()));
    let candidate = world.many(&files);
    let mut entries = candidate.entries();
    for (entry, delta) in entries[1..].iter_mut().zip(&deltas) {
        *entry = EntryPlan::on_entry(0, &delta.bytes());
    }
    world.wrap(candidate.head, &PackPlan::honest(entries))
}

fn chains(world: &World) -> Vec<BundleAttack> {
    let deep = "importer/DELTA_DEPTH";
    let make = |depth, order| chain(world, depth, order);
    vec![
        world.attack(
            "a chain of 51 deltas",
            make(51, Order::Forward),
            deep,
            make(50, Order::Forward),
        ),
        world.attack(
            "a chain of 1,000 deltas",
            make(1_000, Order::Forward),
            deep,
            make(49, Order::Forward),
        ),
        world.attack(
            "a chain of 51 deltas, last one first",
            make(51, Order::Backward),
            deep,
            make(50, Order::Backward),
        ),
    ]
}

/// In which order the deltas of a chain stand.
#[derive(Clone, Copy)]
enum Order {
    /// Each behind what it stands on, named by its distance.
    Forward,
    /// Each before what it stands on, named by its id.
    Backward,
}

/// A whole file and this many more, each a delta on the one before.
fn chain(world: &World, depth: usize, order: Order) -> Vec<u8> {
    let mut files = vec![b"start\n".to_vec()];
    for n in 0..depth {
        let last = files[n].clone();
        files.push([b"x", &last[..]].concat());
    }
    let candidate = world.many(&files);
    let mut entries = candidate.entries();
    for n in 1..=depth {
        let delta = prefix(files[n - 1].len(), b"x").bytes();
        entries[n] = match order {
            Order::Forward => EntryPlan::on_entry(n - 1, &delta),
            Order::Backward => EntryPlan::on_object(id_of("blob", &files[n - 1]), &delta),
        };
    }
    if matches!(order, Order::Backward) {
        entries.reverse();
    }
    world.wrap(candidate.head, &PackPlan::honest(entries))
}

/// A delta is of the kind of what it stands on.
fn commits(world: &World) -> Vec<BundleAttack> {
    let honest = world.honest();
    let commit = &honest.objects[3].1;
    let tree = &honest.objects[1].1;
    // A line more at the end of the message is a second commit.
    let more = {
        let mut delta = prefix(commit.len(), b"");
        delta.steps.remove(0);
        delta.steps.push(Step::Insert(b"x\n".to_vec()));
        DeltaPlan::honest(commit.len(), delta.steps)
    };
    let mut entries = honest.entries();
    entries.push(EntryPlan::on_entry(3, &more.bytes()));
    let old = super::world::tree_bytes(&world.src);
    let at = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    // The new tree as a delta on the old one: only the id of one file differs.
    let start = tree.iter().zip(&old).take_while(|(a, b)| a == b).count();
    let steps = vec![
        Step::Copy(0, at(start)),
        Step::Insert(tree[start..start + 20].to_vec()),
        Step::Copy(at(start) + 20, at(old.len() - start - 20)),
    ];
    let delta = DeltaPlan::honest(old.len(), steps);
    let entry = EntryPlan::on_object(id_of("tree", &old), &delta.bytes());
    let twin = world.wrap(
        honest.head,
        &PackPlan::honest(honest.entries_with(1, entry)),
    );
    vec![world.attack(
        "a second commit as a delta on the first",
        world.wrap(honest.head, &PackPlan::honest(entries)),
        "importer/COMMIT_COUNT",
        twin,
    )]
}
