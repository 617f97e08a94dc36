//! Bits that change on the disk, and files that end early.

use crate::victim::{REQUESTS, request};
use crate::{folder, sample};
use flightproof_ledger::Ledger;
use std::path::Path;

const NOW: u64 = 1_780_000_000;

/// Everything a reader of the ledger can learn, or that it learns nothing.
fn observe(state: &Path) -> Option<String> {
    let mut ledger = Ledger::open(state).ok()?;
    let mut export = Vec::new();
    ledger.export(&mut export).ok()?;
    let answers: Vec<String> = (0..REQUESTS)
        .map(|n| request(&mut ledger, n).ok())
        .collect::<Option<_>>()?;
    let spending = ledger.spending(NOW).ok()?;
    Some(format!(
        "{}{answers:?}{spending}",
        String::from_utf8_lossy(&export)
    ))
}

/// The same without seals: what SQLite alone would say.
fn observe_bare(state: &Path) -> Option<String> {
    let raw = rusqlite::Connection::open(state.join(Ledger::FILE)).ok()?;
    let mut all = String::new();
    for sql in [
        "SELECT key || hex(answer) FROM inbox ORDER BY id",
        "SELECT run || held || state FROM holds ORDER BY id",
        "SELECT scope || micro_usd FROM caps ORDER BY id",
    ] {
        let mut select = raw.prepare(sql).ok()?;
        let rows = select.query_map((), |row| row.get::<_, String>(0)).ok()?;
        for row in rows {
            all += &row.ok()?;
        }
    }
    Some(all)
}

/// A folder with a ledger in it, closed.
fn whole() -> tempfile::TempDir {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("state")).unwrap();
    for n in 0..REQUESTS {
        request(&mut ledger, n).unwrap();
    }
    ledger.close().unwrap();
    folder
}

fn copy(from: &Path, to: &Path) {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Looks at a copy of the ledger after something happened to one of its files.
fn after<T>(
    original: &Path,
    file: &str,
    damage: impl Fn(&mut Vec<u8>),
    observe: impl Fn(&Path) -> T,
) -> T {
    let folder = folder();
    let state = folder.path().join("state");
    copy(original, &state);
    let path = state.join(file);
    let mut bytes = std::fs::read(&path).unwrap();
    damage(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    observe(&state)
}

/// Places in the ledger where bytes are, and not only room for them.
fn places(original: &Path, file: &str) -> Vec<usize> {
    let bytes = std::fs::read(original.join(file)).unwrap();
    (0..bytes.len()).filter(|at| bytes[*at] != 0).collect()
}

#[test]
fn a_changed_byte_is_noticed_or_changes_nothing() {
    let folder = whole();
    let state = folder.path().join("state");
    let truth = observe(&state).unwrap();
    let ledger = Ledger::open(&state).unwrap();
    ledger.close().unwrap();
    let mut noticed = 0;
    for (file, most) in [(Ledger::FILE, 300), (Ledger::ANCHOR, 40)] {
        for at in sample(&places(&state, file), most) {
            for change in [|b: u8| b ^ (1 << 3), |_: u8| 0] {
                let found = after(&state, file, |bytes| bytes[at] = change(bytes[at]), observe);
                match found {
                    None => noticed += 1,
                    Some(found) => assert_eq!(found, truth, "byte {at} of {file}"),
                }
            }
        }
    }
    assert!(noticed > 100, "{noticed}");
}

/// SQLite alone would say something else for some of the same bytes, without a word.
#[test]
fn rows_without_seals_would_have_lied() {
    let folder = whole();
    let state = folder.path().join("state");
    let truth = observe_bare(&state).unwrap();
    let lies = sample(&places(&state, Ledger::FILE), 600)
        .into_iter()
        .filter(|at| {
            let found = after(&state, Ledger::FILE, |b| b[*at] ^= 1 << 3, observe_bare);
            found.is_some_and(|found| found != truth)
        })
        .count();
    assert!(lies > 0);
}

#[test]
fn a_file_that_ends_early_is_noticed_or_nothing_of_the_end_was_needed() {
    let folder = whole();
    let state = folder.path().join("state");
    // A log that was never moved into the main file.
    let mut ledger = Ledger::open(&state).unwrap();
    for day in [20_602, 20_603] {
        ledger
            .confirm_day(flightproof_ledger::UtcDay(day), NOW)
            .unwrap();
    }
    let live = folder.path().join("live");
    copy(&state, &live);
    drop(ledger);
    let truth = after(&live, Ledger::FILE, |_| {}, observe).unwrap();
    // Files, the size of their header, and that of their parts.
    for (file, header, part) in [
        ("ledger.sqlite-wal", 32, 4096 + 24),
        (Ledger::FILE, 0, 4096),
        (Ledger::ANCHOR, 0, 4096),
    ] {
        let length = std::fs::metadata(live.join(file)).unwrap().len();
        let length = usize::try_from(length).unwrap();
        assert!(length > header, "{file} is there");
        let ends: Vec<usize> = (0..=length / part)
            .flat_map(|n| {
                let at = header + n * part;
                [at.saturating_sub(1), at, at + 1]
            })
            .filter(|at| *at < length)
            .collect();
        for end in sample(&ends, 40) {
            let found = after(&live, file, |bytes| bytes.truncate(end), observe);
            // What was cut off may be in the log too, or in the anchor's other slot.
            assert!(
                found.is_none_or(|found| found == truth),
                "{file} cut at {end} of {length}"
            );
        }
    }
}
