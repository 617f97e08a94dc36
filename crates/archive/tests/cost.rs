//! What reading costs: memory in proportion to the input and no more, work in proportion to it.
//!
//! The allocator of this program counts. One test does all, so that nothing else allocates.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be made is a failed test"
)]

use flightproof_archive::{paar, paws};
use flightproof_hostile::archive::{self, plan::Plan};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What decoding may hold at one time, beside its input: twice the input and 64 KiB.
/// An honest manifest takes less than one and a half; `docs/formats.md` states both bounds.
const TIMES_THE_INPUT: usize = 2;
const BESIDE: usize = 64 << 10;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn took(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    TOTAL.fetch_add(bytes, Relaxed);
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
// SAFETY: every call is handed to the system's allocator as it came; beside it, only numbers change.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        took(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What one call cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    peak: usize,
    calls: usize,
    total: usize,
    accepted: bool,
}

fn cost<T, E>(call: impl FnOnce() -> Result<T, E>) -> Cost {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let (calls, total) = (CALLS.load(Relaxed), TOTAL.load(Relaxed));
    let result = call();
    Cost {
        peak: PEAK.load(Relaxed) - before,
        calls: CALLS.load(Relaxed) - calls,
        total: TOTAL.load(Relaxed) - total,
        accepted: result.is_ok(),
    }
}

#[test]
fn reading_holds_a_stated_multiple_of_its_input_and_does_work_in_proportion_to_it() {
    counting_counts();
    for (name, bytes) in inputs() {
        held(&name, &bytes);
    }
    for seed in 0..2000 {
        held(&format!("plan {seed}"), &Plan::numbered(seed).bytes());
    }
    honest_manifests_take_less_than_one_and_a_half_times_their_length();
    for (name, make) in growing() {
        let (small, large) = (make(1), make(10));
        let few = cost(|| paws::decode(&small));
        let many = cost(|| paws::decode(&large));
        let grown = large.len() / small.len() + 2;
        assert!((9..=13).contains(&grown), "{name}: {grown}");
        assert!(many.calls <= few.calls * grown, "{name}: {few:?} {many:?}");
        assert!(many.total <= few.total * grown, "{name}: {few:?} {many:?}");
    }
}

/// The control: a reader that copies its input ten times is noticed.
fn counting_counts() {
    let input = vec![1u8; 1 << 20];
    let copies = cost(|| Ok::<_, ()>((0..10).map(|_| input.clone()).collect::<Vec<_>>()));
    assert!(copies.peak > allowed(input.len()), "{copies:?}");
    assert!(copies.calls >= 10 && copies.total >= 10 << 20, "{copies:?}");
}

fn allowed(input: usize) -> usize {
    TIMES_THE_INPUT * input + BESIDE
}

fn held(name: &str, bytes: &[u8]) {
    let total = bytes.len() as u64;
    for found in [
        cost(|| paws::decode(bytes).map(drop)),
        cost(|| paws::read(bytes).map(drop)),
        cost(|| paar::decode(bytes, total).map(drop)),
        cost(|| paar::read(bytes).map(drop)),
    ] {
        assert!(
            found.peak <= allowed(bytes.len()),
            "{name}, {} bytes: {found:?}",
            bytes.len()
        );
    }
}

fn honest_manifests_take_less_than_one_and_a_half_times_their_length() {
    let snapshot = snapshot(20_000, "");
    let read = cost(|| paws::decode(&snapshot));
    assert!(
        read.accepted && 2 * read.peak < 3 * snapshot.len(),
        "{} {read:?}",
        snapshot.len()
    );
    // One for each path, and no list that grows.
    assert!(read.calls <= 20_000 + FEW, "{read:?}");
    let artifact = artifact(20_000);
    let read = cost(|| paar::decode(&artifact, artifact.len() as u64));
    assert!(
        read.accepted && 2 * read.peak < 3 * artifact.len(),
        "{} {read:?}",
        artifact.len()
    );
    assert!(read.calls <= 20_000 + FEW, "{read:?}");
}

/// Allocations beside one for each path: the list, the hash's buffer, the name of the workspace.
const FEW: usize = 6;

fn snapshot(files: usize, dir: &str) -> Vec<u8> {
    let names: Vec<String> = (0..files).map(|n| format!("{dir}{n:06}.txt")).collect();
    let files: Vec<archive::File<'_>> = names.iter().map(|n| (&**n, false, &b""[..])).collect();
    archive::paws("w", &files).0
}

fn artifact(files: usize) -> Vec<u8> {
    let names: Vec<String> = (0..files).map(|n| format!("lib/{n:06}.so")).collect();
    let files: Vec<archive::File<'_>> = names.iter().map(|n| (&**n, false, &b""[..])).collect();
    archive::paar(
        "0123456789abcdef0123456789abcdef01234567",
        "linux-x64",
        &files,
    )
    .0
}

/// A snapshot with all of one text replaced in its manifest.
fn edited(snapshot: &[u8], find: &str, put: &str) -> Vec<u8> {
    let manifest = std::str::from_utf8(&snapshot[13..])
        .unwrap()
        .replace(find, put);
    let length = (manifest.len() as u64).to_be_bytes();
    [b"PAWS1", &length[..], manifest.as_bytes()].concat()
}

/// An archive around a manifest that holds this list.
fn listed(key: &str, list: &str) -> Vec<u8> {
    let (snapshot, artifact) = (snapshot(1, ""), artifact(1));
    let (whole, header) = if key == "entries" {
        (snapshot, 13)
    } else {
        (artifact, 9)
    };
    let text = std::str::from_utf8(&whole[header..]).unwrap();
    let (start, _) = text.split_once(&format!("\"{key}\":")).unwrap();
    let text = format!("{start}\"{key}\":{list}}}");
    let length = (text.len() as u64).to_be_bytes();
    [&whole[..5], &length[8 - (header - 5)..], text.as_bytes()].concat()
}

/// Inputs that would cost a careless reader much, beside the forged ones.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<(String, Vec<u8>)> = archive::rows()
        .into_iter()
        .map(|row| {
            (
                format!("row {} {}", row.number, row.attack.name),
                row.attack.bytes,
            )
        })
        .collect();
    inputs.push(("20,000 files".to_owned(), snapshot(20_000, "")));
    let twice = edited(&snapshot(20_000, ""), "019999.txt", "019998.txt");
    inputs.push(("a file twice at the end".to_owned(), twice));
    inputs.push(("long paths".to_owned(), snapshot(5000, &"d/".repeat(250))));
    for key in ["entries", "files"] {
        for item in [
            "0",
            "[]",
            "{}",
            "\"\"",
            "[[]]",
            "{\"path\":\"a\"}",
            "{\"a\":1,\"b\":2,\"c\":3,\"d\":4}",
        ] {
            let list = format!("[{}{item}]", format!("{item},").repeat(50_000));
            inputs.push((format!("50,000 times {item} as {key}"), listed(key, &list)));
        }
        let escaped = format!("[{{\"path\":\"{}\"}}]", "\\u0061".repeat(200_000));
        inputs.push((format!("200,000 escapes in {key}"), listed(key, &escaped)));
        let deep = format!("{}{}", "[".repeat(300_000), "]".repeat(300_000));
        inputs.push((format!("300,000 brackets as {key}"), listed(key, &deep)));
        let keys: Vec<String> = (0..50_000).map(|n| format!("\"{n}\":0")).collect();
        inputs.push((
            format!("50,000 keys in {key}"),
            listed(key, &format!("[{{{}}}]", keys.join(","))),
        ));
    }
    inputs
}

type Maker = fn(usize) -> Vec<u8>;

/// Inputs that grow by a factor.
fn growing() -> [(&'static str, Maker); 7] {
    [
        ("files", |n| snapshot(500 * n, "")),
        ("deep files", |n| snapshot(500 * n, &"d/".repeat(200))),
        ("files out of order", |n| {
            let mut whole = snapshot(500 * n, "");
            let at = whole.windows(6).position(|w| w == b"000000").unwrap();
            whole[at] = b'9';
            whole
        }),
        ("files and white space", |n| {
            edited(&snapshot(500 * n, ""), "\"size\":", "\"size\": ")
        }),
        ("names in one path", |n| snapshot(1, &"d/".repeat(3000 * n))),
        ("brackets", |n| listed("entries", &"[".repeat(10_000 * n))),
        ("no entries", |n| {
            listed("entries", &format!("[{}{{}}]", "{},".repeat(5000 * n)))
        }),
    ]
}
