//! What the check of a bundle may cost in memory, counted. Alone in its program: the counter sees
//! every thread.
use flightproof_core::{CommitId, ObjectId};
use flightproof_hostile::git::{BundleAttack, Store, World, bundle_attacks};
use flightproof_importer::{Bases, Grants, ImportError, Kind, Rules, check};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, with a count of what is held now and of the most that ever was.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed to the system's allocator as it came; counting touches no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        MOST.fetch_max(held, Ordering::SeqCst);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes while a bundle is refused.
const REFUSED: usize = 64 << 20;
/// Most bytes while a bundle at its limits is accepted.
const ACCEPTED: usize = 32 << 20;

/// The store of a forged bundle, which the check pays for only by what it asks of it.
struct Lent<'a>(&'a Store);

impl Bases for Lent<'_> {
    fn find(&mut self, id: ObjectId, most: usize) -> Result<Option<(Kind, Vec<u8>)>, ImportError> {
        let Some((word, body)) = self.0.get(id.as_bytes()) else {
            return Ok(None);
        };
        let kind = match *word {
            "blob" => Kind::Blob,
            "tree" => Kind::Tree,
            _ => Kind::Commit,
        };
        if body.len() > most {
            let code = flightproof_importer::ImporterCode::BytesOverLimit;
            return Err(code.refuse(format!("{} bytes", body.len())));
        }
        Ok(Some((kind, body.clone())))
    }
}

/// The most that was held above what was held before, while this ran.
fn most<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.load(Ordering::SeqCst);
    MOST.store(before, Ordering::SeqCst);
    let result = work();
    (MOST.load(Ordering::SeqCst) - before, result)
}

fn accepted(bytes: &[u8], baseline: [u8; 20], store: &Store) -> bool {
    let rules = Rules {
        grants: &Grants::default(),
        identity: None,
        now: 1_700_000_100,
    };
    check(
        bytes,
        CommitId::from_bytes(baseline),
        &mut Lent(store),
        &rules,
    )
    .is_ok()
}

/// What a forged bundle costs, if that is more than allowed; and the most of all so far.
fn over(attack: &BundleAttack, bytes: &[u8], limit: usize, worst: &mut usize) -> Option<String> {
    let (cost, _) = most(|| accepted(bytes, attack.baseline, &attack.store));
    *worst = cost.max(*worst);
    (cost > limit).then(|| format!("{}: {cost} bytes, at most {limit}", attack.name))
}

#[test]
fn forged_and_honest_bundles_cost_no_more_memory_than_allowed() {
    // The counter counts.
    let (cost, held) = most(|| vec![1u8; 10 << 20]);
    assert!(cost >= held.len() && cost < held.len() + 4_096, "{cost}");
    drop(held);
    let world = World::usual();
    let fullest = world.fullest();
    let (cost, is_accepted) = most(|| accepted(&fullest, world.baseline, &world.store));
    assert!(is_accepted);
    assert!(cost > 2 << 20 && cost <= ACCEPTED, "{cost}");
    println!("a bundle at its limits: {cost} bytes");
    let attacks = bundle_attacks();
    let (mut refused, mut twin) = (0, 0);
    let mut faults = Vec::new();
    for attack in &attacks {
        faults.extend(over(attack, &attack.bytes, REFUSED, &mut refused));
        faults.extend(over(attack, &attack.twin, ACCEPTED, &mut twin));
    }
    println!("the most of all forged ones: {refused} bytes, of all twins: {twin}");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
