//! One oracle per surface: unit test, seed replay and fuzz target call the same body.

use crate::commit::Commit;
use crate::pack::{self, Object, Resolver};
use crate::tree::{self, EntryKind};
use crate::{Bases, Checked, Grants, ImportError, ImporterCode, Rules, check, hash};
use flightproof_core::{CommitId, ObjectId};
use std::collections::BTreeMap;

/// A clock a little after the forged commits.
const NOW: u64 = 1_700_000_100;

/// Reads a bundle as it is, and once more with the checksum its pack should have, since no mutated
/// bytes have that. What is accepted must be within every limit, and must be accepted again, with
/// the same result, when it comes in the pack that was written of it. Says whether the bytes as
/// they are were accepted.
///
/// # Panics
/// One of that does not hold.
pub fn bundle_raw(bytes: &[u8], baseline: CommitId, bases: &mut dyn Bases) -> bool {
    let is_accepted = bundle(bytes, baseline, bases).is_ok();
    let start = bytes.windows(4).position(|word| word == b"PACK");
    if let Some((header, pack)) = start.and_then(|start| bytes.split_at_checked(start)) {
        let mended = [header, &mended(pack)].concat();
        let _ = bundle(&mended, baseline, bases);
    }
    is_accepted
}

fn bundle(bytes: &[u8], baseline: CommitId, bases: &mut dyn Bases) -> Result<(), ImportError> {
    let rules = Rules {
        grants: &Grants::default(),
        identity: None,
        now: NOW,
    };
    let checked = check(bytes, baseline, bases, &rules)?;
    assert!(bytes.len() <= crate::bundle::BUNDLE);
    let paths: Vec<_> = checked
        .changes()
        .iter()
        .map(|change| &change.path)
        .collect();
    assert!(paths.is_sorted_by(|a, b| a < b) && !paths.is_empty());
    let again = rewrapped(&checked);
    if again.len() <= crate::bundle::BUNDLE {
        assert_eq!(
            check(&again, baseline, bases, &rules).as_ref(),
            Ok(&checked)
        );
    }
    Ok(())
}

/// The bundle of the pack that was written of a checked one.
fn rewrapped(checked: &Checked) -> Vec<u8> {
    let (baseline, head) = (checked.baseline(), checked.head());
    let header = format!("# v2 git bundle\n-{baseline}\n{head} refs/export/head\n\n");
    let pack = checked.pack().expect("what was checked can be written");
    [header.as_bytes(), &pack].concat()
}

/// The same pack with the checksum of its bytes in place of its last twenty.
fn mended(pack: &[u8]) -> Vec<u8> {
    let body = pack
        .get(..pack.len().saturating_sub(20))
        .unwrap_or_default();
    match hash::sha1(&[body]) {
        Ok(sum) => [body, sum.as_bytes()].concat(),
        Err(_) => pack.to_vec(),
    }
}

/// Reads a pack that needs no object from elsewhere, as it is and with the checksum it should have.
/// What is accepted is within the limits, and is the same when it is written and read again.
///
/// # Panics
/// One of that does not hold.
pub fn pack_raw(bytes: &[u8]) {
    for bytes in [bytes, &mended(bytes)] {
        if let Ok(objects) = objects(bytes) {
            let written = pack::write(
                objects
                    .iter()
                    .map(|(id, object)| (*id, object.kind, object.body.as_slice())),
            )
            .expect("what was read can be written");
            let again = self::objects(&written).expect("what was written can be read");
            assert_eq!(again, objects);
        }
    }
}

fn objects(pack: &[u8]) -> Result<BTreeMap<ObjectId, Object>, ImportError> {
    let entries = pack::read(pack)?;
    let raw: usize = entries.iter().map(|entry| entry.data.len()).sum();
    assert!(raw <= pack::RAW && entries.len() <= pack::OBJECTS);
    let offsets = entries.iter().map(|entry| entry.offset);
    assert!(offsets.is_sorted_by(|a, b| a < b));
    let count = entries.len();
    let objects = Resolver::new(entries)?.finish()?;
    let resolved: usize = objects.values().map(|object| object.body.len()).sum();
    assert!(resolved <= pack::RESOLVED && objects.len() == count);
    for (id, object) in &objects {
        hash::check(*id, object.kind, &object.body).expect("an id is that of its content");
    }
    Ok(objects)
}

/// Applies a delta: two bytes say how many bytes of base follow, the rest is the delta. A slow
/// second reader must make the same of it.
///
/// # Panics
/// The two differ.
pub fn delta_raw(bytes: &[u8]) {
    const MOST: usize = 1 << 20;
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (base, delta) = rest.split_at(length);
    match (
        pack::apply(base, delta, MOST),
        slow_apply(base, delta, MOST),
    ) {
        (Ok(ours), theirs) => assert_eq!(Some(ours), theirs),
        // Numbers have one form here; the slow reader takes any.
        (Err(e), Some(_)) => assert_eq!(e.code, ImporterCode::PackNumber),
        (Err(_), None) => {}
    }
}

/// The format's description followed word by word, a byte at a time.
fn slow_apply(base: &[u8], delta: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut bytes = delta.iter().copied();
    let mut size = || {
        let (mut size, mut shift) = (0u128, 0);
        loop {
            let byte = bytes.next()?;
            size |= u128::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte < 0x80 {
                return Some(size);
            }
            if shift > 112 {
                return None;
            }
        }
    };
    let (from, to) = (size()?, size()?);
    if from != base.len() as u128 || to > most as u128 {
        return None;
    }
    let mut out = Vec::new();
    while let Some(instruction) = bytes.next() {
        if instruction == 0 || out.len() as u128 > to {
            return None;
        }
        if instruction < 0x80 {
            for _ in 0..instruction {
                out.push(bytes.next()?);
            }
            continue;
        }
        let mut operands = [0usize; 7];
        for (bit, operand) in operands.iter_mut().enumerate() {
            if instruction >> bit & 1 == 1 {
                *operand = usize::from(bytes.next()?);
            }
        }
        let [a, b, c, d, x, y, z] = operands;
        let offset = a + (b << 8) + (c << 16) + (d << 24);
        let length = x + (y << 8) + (z << 16);
        let length = if length == 0 { 65_536 } else { length };
        for at in offset..offset + length {
            out.push(*base.get(at)?);
        }
    }
    (out.len() as u128 == to).then_some(out)
}

/// Reads a tree. What is accepted is what its entries spell.
///
/// # Panics
/// It is not.
pub fn tree_raw(bytes: &[u8]) {
    let Ok(entries) = tree::parse(bytes) else {
        return;
    };
    let mut again = Vec::new();
    for entry in &entries {
        let mode = match (entry.kind, entry.canonical) {
            (EntryKind::Directory, false) => "040000",
            (EntryKind::File, false) => "100664",
            (kind, _) => kind.mode(),
        };
        again.extend(mode.as_bytes());
        again.push(b' ');
        again.extend(&entry.name);
        again.push(0);
        again.extend(entry.id.as_bytes());
    }
    assert_eq!(again, bytes, "another spelling");
}

/// Reads a commit. What is accepted has exactly the headers that were read, and no character a
/// terminal acts on.
///
/// # Panics
/// It has not.
pub fn commit_raw(bytes: &[u8]) {
    let Ok(commit) = Commit::parse(bytes, NOW) else {
        return;
    };
    let text = std::str::from_utf8(bytes).expect("an accepted commit is UTF-8");
    let fine = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    assert!(text.chars().all(fine), "a control character");
    let mut wanted = vec![format!("tree {}", commit.tree)];
    wanted.extend(commit.parents.iter().map(|id| format!("parent {id}")));
    let mut lines = text.split('\n');
    for line in wanted {
        assert_eq!(lines.next(), Some(line.as_str()));
    }
    for start in [
        format!("author {} ", commit.author),
        format!("committer {} ", commit.committer),
    ] {
        assert!(lines.next().is_some_and(|line| line.starts_with(&start)));
    }
    assert_eq!(lines.next(), Some(""), "a further header");
}
