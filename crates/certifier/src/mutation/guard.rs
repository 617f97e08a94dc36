use flightproof_core::Digest;
use flightproof_evidence::Guard;

/// Calls of the guard after which a run counts as endless. Deterministic, so a mutant that never
/// ends costs the same on every machine; 20 million is about a hundred times what the busiest
/// witness case of our own flights needs, and below a second.
pub const FUEL: u64 = 20_000_000;

/// Exit status of a run that used up its [`FUEL`].
pub const FUEL_EXIT: u8 = 113;

/// Exit status of a run whose guard found no selector. Such a run never reached `main`.
pub const UNARMED_EXIT: u8 = 114;

/// Exit status of a branch that was taken although its mutant forbids it: like a panic, and without
/// the panic machinery, which a program may have replaced.
const BRANCH_EXIT: u8 = 101;

/// The crate through which a mutant is selected at run time. Its name and the selectors come from
/// the flight's entropy, drawn after the candidate's bytes were fixed.
pub(super) fn guard(seed: &[u8; 32]) -> Guard {
    let hex = Digest::keyed(seed, b"guard-name").to_string();
    let name = format!("fp_{}", hex.get(..16).unwrap_or(&hex));
    Guard {
        name,
        source: source(),
    }
}

/// Written for every edition, without the standard library, so that it links into anything.
///
/// The constructor and the selector live in the object file of `pick`: whoever calls `pick` pulls
/// them into the program, whoever does not links nothing at all. The descriptors are closed before
/// `main`, so the program can neither read the selector nor forge the acknowledgement.
fn source() -> String {
    SOURCE
        .replace("FUEL_EXIT", &FUEL_EXIT.to_string())
        .replace("BRANCH_EXIT", &BRANCH_EXIT.to_string())
        .replace("UNARMED_EXIT", &UNARMED_EXIT.to_string())
        .replace("FUEL_LIMIT", &FUEL.to_string())
}

const SOURCE: &str = r#"#![no_std]
use core::sync::atomic::{AtomicU64, Ordering};

unsafe extern "C" {
    fn read(fd: i32, into: *mut u8, count: usize) -> isize;
    fn write(fd: i32, from: *const u8, count: usize) -> isize;
    fn close(fd: i32) -> i32;
    fn _exit(status: i32) -> !;
}

static SELECTOR: AtomicU64 = AtomicU64::new(0);
static SPENT: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static ARM: extern "C" fn() = arm;

extern "C" fn arm() {
    let mut selector = [0u8; 8];
    let mut spare = [0u8; 1];
    let mut have = 0usize;
    while have < 8 {
        let more = unsafe { read(3, selector.as_mut_ptr().add(have), 8 - have) };
        if more < 1 { break; }
        have += more as usize;
    }
    let whole = have == 8 && unsafe { read(3, spare.as_mut_ptr(), 1) } == 0;
    unsafe { close(3) };
    if !whole || unsafe { write(4, [6u8].as_ptr(), 1) } != 1 {
        unsafe { _exit(UNARMED_EXIT) }
    }
    unsafe { close(4) };
    SELECTOR.store(u64::from_le_bytes(selector), Ordering::Relaxed);
}

#[inline(never)]
pub fn pick(ids: &[u64]) -> usize {
    core::hint::black_box(&ARM);
    if SPENT.fetch_add(1, Ordering::Relaxed) >= FUEL_LIMIT {
        unsafe { _exit(FUEL_EXIT) }
    }
    let selector = SELECTOR.load(Ordering::Relaxed);
    let mut at = 0usize;
    while at < ids.len() {
        if ids[at] == selector { return at + 1; }
        at += 1;
    }
    0
}

pub fn end() -> ! {
    unsafe { _exit(BRANCH_EXIT) }
}
"#;
