use flightproof_core::Digest;
use flightproof_evidence::Guard;

use super::plan::Purpose;

/// Exit status of a run that used up its fuel: the calls of the guard it was allowed. Deterministic,
/// so a mutant that never ends costs the same on every machine.
pub const FUEL_EXIT: u8 = 113;

/// Exit status of a run whose guard found no selector. Such a run never reached `main`.
pub const UNARMED_EXIT: u8 = 114;

/// Exit status of a branch that was taken although its mutant forbids it: like a panic, and without
/// the panic machinery, which a program may have replaced.
const BRANCH_EXIT: u8 = 101;

/// The crate through which a mutant is selected at run time. Its name and the selectors come from
/// the flight's entropy, drawn after the candidate's bytes were fixed.
pub(super) fn guard(seed: &[u8; 32], purpose: Purpose) -> Guard {
    let hex = Digest::keyed(seed, b"guard-name").to_string();
    let name = format!("fp_{}", hex.get(..16).unwrap_or(&hex));
    Guard {
        name,
        source: match purpose {
            Purpose::Gate => source(),
            Purpose::Survey => surveying(seed),
        },
    }
}

/// Selects no mutant and has the guard of a survey tell, when the program ends, which ones it came
/// across. Selectors of mutants are smaller; the bits above carry the fuel.
pub(super) const REACH_SELECTOR: u64 = (1 << FUEL_SHIFT) - 1;

/// Has the guard of a survey read its numbers from standard input instead, and fork for each before
/// `main`: one start of the program for many mutants. No selector is as large.
pub(super) const EACH_SELECTOR: u64 = REACH_SELECTOR - 1;

/// Most numbers of one start.
pub const MOST_EACH: usize = 64;

/// Where the fuel of a run stands in the number the guard is handed: as a power of two. With five
/// bits above, every JSON reader between here and the guard keeps the number.
pub(super) const FUEL_SHIFT: u32 = 48;

/// Places a run may come across before the guard loses count, and then says so.
pub(super) const REACH_SLOTS: usize = 1 << 16;

/// Stands before what the guard of a survey tells. The program cannot know it beforehand.
pub(super) fn reach_mark(seed: &[u8; 32]) -> [u8; 32] {
    *Digest::keyed(seed, b"reach-mark").as_bytes()
}

fn surveying(seed: &[u8; 32]) -> String {
    SURVEYING
        .replace("FUEL_EXIT", &FUEL_EXIT.to_string())
        .replace("BRANCH_EXIT", &BRANCH_EXIT.to_string())
        .replace("UNARMED_EXIT", &UNARMED_EXIT.to_string())
        .replace("REACH_SELECTOR", &REACH_SELECTOR.to_string())
        .replace("EACH_SELECTOR", &EACH_SELECTOR.to_string())
        .replace("EACH_BYTES", &(MOST_EACH * 8).to_string())
        .replace("REACH_SLOTS", &REACH_SLOTS.to_string())
        .replace("FUEL_SHIFT", &FUEL_SHIFT.to_string())
        .replace("REACH_MARK", &format!("{:?}", reach_mark(seed)))
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
        .replace("FUEL_SHIFT", &FUEL_SHIFT.to_string())
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
// Code may run before the constructor; it is no mutant, and nothing is counted against it.
static FUEL: AtomicU64 = AtomicU64::new(u64::MAX);

#[used]
#[unsafe(link_section = ".init_array")]
static ARM: extern "C" fn() = arm;

extern "C" fn arm() {
    let mut word = [0u8; 8];
    let mut spare = [0u8; 1];
    let mut have = 0usize;
    while have < 8 {
        let more = unsafe { read(3, word.as_mut_ptr().add(have), 8 - have) };
        if more < 1 { break; }
        have += more as usize;
    }
    let whole = have == 8 && unsafe { read(3, spare.as_mut_ptr(), 1) } == 0;
    unsafe { close(3) };
    if !whole || unsafe { write(4, [6u8].as_ptr(), 1) } != 1 {
        unsafe { _exit(UNARMED_EXIT) }
    }
    unsafe { close(4) };
    let word = u64::from_le_bytes(word);
    FUEL.store(1u64 << (word >> FUEL_SHIFT), Ordering::Relaxed);
    SELECTOR.store(word & ((1 << FUEL_SHIFT) - 1), Ordering::Relaxed);
}

#[inline(never)]
pub fn pick(ids: &[u64]) -> usize {
    core::hint::black_box(&ARM);
    if SPENT.fetch_add(1, Ordering::Relaxed) >= FUEL.load(Ordering::Relaxed) {
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

/// As [`SOURCE`], for tests that are trusted. What was come across is written to standard output
/// when the process ends in the ordinary way: mark, calls, number of selectors, selectors.
const SURVEYING: &str = r#"#![no_std]
use core::sync::atomic::{AtomicU64, Ordering};

unsafe extern "C" {
    fn read(fd: i32, into: *mut u8, count: usize) -> isize;
    fn write(fd: i32, from: *const u8, count: usize) -> isize;
    fn close(fd: i32) -> i32;
    fn fork() -> i32;
    fn setpgid(process: i32, group: i32) -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn kill(process: i32, signal: i32) -> i32;
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    fn prctl(what: i32, a: usize, b: usize, c: usize, d: usize) -> i32;
    fn usleep(microseconds: u32) -> i32;
    fn getenv(name: *const u8) -> *const u8;
    fn setenv(name: *const u8, value: *const u8, replace: i32) -> i32;
    fn mkdir(path: *const u8, mode: u32) -> i32;
    fn _exit(status: i32) -> !;
}

static SELECTOR: AtomicU64 = AtomicU64::new(0);
static SPENT: AtomicU64 = AtomicU64::new(0);
// Code may run before the constructor; it is no mutant, and nothing is counted against it.
static FUEL: AtomicU64 = AtomicU64::new(u64::MAX);
static SEEN: [AtomicU64; REACH_SLOTS] = [const { AtomicU64::new(0) }; REACH_SLOTS];
static COUNT: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static ARM: extern "C" fn() = arm;

#[used]
#[unsafe(link_section = ".fini_array")]
static TELL: extern "C" fn() = tell;

extern "C" fn arm() {
    let mut word = [0u8; 8];
    let mut spare = [0u8; 1];
    let mut have = 0usize;
    while have < 8 {
        let more = unsafe { read(3, word.as_mut_ptr().add(have), 8 - have) };
        if more < 1 { break; }
        have += more as usize;
    }
    let whole = have == 8 && unsafe { read(3, spare.as_mut_ptr(), 1) } == 0;
    unsafe { close(3) };
    if !whole || unsafe { write(4, [6u8].as_ptr(), 1) } != 1 {
        unsafe { _exit(UNARMED_EXIT) }
    }
    unsafe { close(4) };
    let mut word = u64::from_le_bytes(word);
    if word & ((1 << FUEL_SHIFT) - 1) == EACH_SELECTOR { word = each(); }
    let selector = word & ((1 << FUEL_SHIFT) - 1);
    let fuel = if selector == REACH_SELECTOR { u64::MAX } else { 1u64 << (word >> FUEL_SHIFT) };
    FUEL.store(fuel, Ordering::Relaxed);
    SELECTOR.store(selector, Ordering::Relaxed);
}

/// A folder of its own in the scratch place, which is empty as the place is for a run alone.
fn apart(number: usize) -> bool {
    let base = unsafe { getenv(b"TMPDIR\0".as_ptr()) };
    if base.is_null() { return false; }
    let mut path = [0u8; 256];
    let mut at = 0usize;
    while at < 200 {
        let byte = unsafe { *base.add(at) };
        if byte == 0 { break; }
        path[at] = byte;
        at += 1;
    }
    path[at] = b'/';
    path[at + 1] = b'0' + (number / 10 % 10) as u8;
    path[at + 2] = b'0' + (number % 10) as u8;
    unsafe {
        mkdir(path.as_ptr(), 0o700) == 0
            && setenv(b"TMPDIR\0".as_ptr(), path.as_ptr(), 1) == 0
            && setenv(b"HOME\0".as_ptr(), path.as_ptr(), 1) == 0
    }
}

/// Whether nothing of the last child is left: what it started ends with it, or the start counts for nothing.
fn alone() -> bool {
    let mut tries = 0usize;
    while tries < 100 {
        let mut status = 0i32;
        let found = unsafe { waitpid(-1, &mut status, 1) };
        if found < 0 { return true; }
        if found == 0 {
            tries += 1;
            unsafe { usleep(200) };
        }
    }
    false
}

/// Returns in a child, once for each number on standard input. After each child follow the mark,
/// which one it was, how it ended, and after how many microseconds.
fn each() -> u64 {
    let mut all = [0u8; EACH_BYTES];
    let mut have = 0usize;
    while have < EACH_BYTES {
        let more = unsafe { read(0, all.as_mut_ptr().add(have), EACH_BYTES - have) };
        if more < 1 { break; }
        have += more as usize;
    }
    // Children of children come to this process, wherever they went.
    if unsafe { prctl(36, 1, 0, 0, 0) } != 0 { unsafe { _exit(UNARMED_EXIT) } }
    let mut at = 0usize;
    while at + 8 <= have {
        let mut word = [0u8; 8];
        let mut byte = 0usize;
        while byte < 8 { word[byte] = all[at + byte]; byte += 1; }
        let started = now();
        let child = unsafe { fork() };
        if child == 0 {
            unsafe { setpgid(0, 0) };
            if !apart(at / 8) { unsafe { _exit(UNARMED_EXIT) } }
            return u64::from_le_bytes(word);
        }
        let mut status = 0i32;
        if child < 0 || unsafe { waitpid(child, &mut status, 0) } != child {
            unsafe { _exit(UNARMED_EXIT) }
        }
        unsafe { kill(-child, 9) };
        if !alone() { unsafe { _exit(UNARMED_EXIT) } }
        let mark: [u8; 32] = REACH_MARK;
        say(&mark);
        say(&(at as u64 / 8).to_le_bytes());
        say(&(status as u32 as u64).to_le_bytes());
        say(&now().wrapping_sub(started).to_le_bytes());
        at += 8;
    }
    unsafe { _exit(0) }
}

/// Microseconds of the monotonic clock.
fn now() -> u64 {
    let mut time = [0i64; 2];
    unsafe { clock_gettime(1, &mut time) };
    (time[0] as u64).wrapping_mul(1_000_000).wrapping_add(time[1] as u64 / 1_000)
}

#[inline(never)]
pub fn pick(ids: &[u64]) -> usize {
    core::hint::black_box((&ARM, &TELL));
    if SPENT.fetch_add(1, Ordering::Relaxed) >= FUEL.load(Ordering::Relaxed) {
        unsafe { _exit(FUEL_EXIT) }
    }
    let selector = SELECTOR.load(Ordering::Relaxed);
    if selector == REACH_SELECTOR {
        if ids.is_empty() || note(ids[0]) { return 0; }
        let mut at = 1usize;
        while at < ids.len() {
            note(ids[at]);
            at += 1;
        }
        return 0;
    }
    let mut at = 0usize;
    while at < ids.len() {
        if ids[at] == selector { return at + 1; }
        at += 1;
    }
    0
}

fn note(id: u64) -> bool {
    let mut at = (id as usize) % REACH_SLOTS;
    let mut tried = 0usize;
    while tried < 64 {
        match SEEN[at].compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => { COUNT.fetch_add(1, Ordering::Relaxed); return false; }
            Err(found) if found == id => return true,
            Err(_) => {}
        }
        at = (at + 1) % REACH_SLOTS;
        tried += 1;
    }
    COUNT.fetch_add(1 << 32, Ordering::Relaxed);
    true
}

extern "C" fn tell() {
    if SELECTOR.load(Ordering::Relaxed) != REACH_SELECTOR { return; }
    let mark: [u8; 32] = REACH_MARK;
    say(&mark);
    say(&SPENT.load(Ordering::Relaxed).to_le_bytes());
    say(&COUNT.load(Ordering::Relaxed).to_le_bytes());
    let mut at = 0usize;
    while at < REACH_SLOTS {
        let id = SEEN[at].load(Ordering::Relaxed);
        if id != 0 { say(&id.to_le_bytes()); }
        at += 1;
    }
}

fn say(bytes: &[u8]) {
    let mut done = 0usize;
    while done < bytes.len() {
        let more = unsafe { write(1, bytes.as_ptr().add(done), bytes.len() - done) };
        if more < 1 { return; }
        done += more as usize;
    }
}

pub fn end() -> ! {
    unsafe { _exit(BRANCH_EXIT) }
}
"#;
