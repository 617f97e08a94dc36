//! Accepted bundles hold the same objects for a reader of packs that nobody here wrote.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;
#[path = "scene/third.rs"]
mod third;

use flightproof_core::{CommitId, ObjectId, RelPath};
use flightproof_hostile::git::{BundleAttack, bundle_attacks};
use flightproof_importer::{Checked, Grants, Kind, Rules, check};
use scene::{NOW, folder};
use std::collections::{BTreeMap, BTreeSet, HashSet};

fn accepted(attack: &BundleAttack, bytes: &[u8]) -> Option<Checked> {
    let grants = Grants::new(attack.grants.iter().map(|path| RelPath::new(path).unwrap()));
    let rules = Rules {
        grants: &grants,
        identity: None,
        now: NOW,
    };
    let kind = |word: &str| match word {
        "blob" => Kind::Blob,
        "tree" => Kind::Tree,
        _ => Kind::Commit,
    };
    let store = attack.store.iter();
    let mut store: BTreeMap<ObjectId, (Kind, Vec<u8>)> = store
        .map(|(id, (word, body))| (ObjectId::from_bytes(*id), (kind(word), body.clone())))
        .collect();
    check(
        bytes,
        CommitId::from_bytes(attack.baseline),
        &mut store,
        &rules,
    )
    .ok()
}

/// The objects of an accepted bundle, read in the bundle itself and in the pack written of it.
fn assert_agrees(attack: &BundleAttack, bytes: &[u8], checked: &Checked) {
    let store = |id: &[u8]| {
        let (word, body) = attack.store.get(&<[u8; 20]>::try_from(id).ok()?)?;
        Some(((*word).to_owned(), body.clone()))
    };
    let theirs = third::read(bytes, &store, folder().path());
    let theirs = theirs.unwrap_or_else(|e| panic!("{}: {e}", attack.name));
    let ours = third::read(&checked.pack().unwrap(), &|_| None, folder().path()).unwrap();
    let ids: BTreeSet<[u8; 20]> = checked.objects().map(|id| *id.as_bytes()).collect();
    assert_eq!(
        ours.keys().copied().collect::<BTreeSet<_>>(),
        ids,
        "{}",
        attack.name
    );
    for (id, object) in &ours {
        assert_eq!(theirs.get(id), Some(object), "{}", attack.name);
    }
    // What it has more is what deltas stand on.
    for id in theirs.keys().filter(|id| !ids.contains(*id)) {
        assert!(attack.store.contains_key(id), "{}", attack.name);
    }
}

#[test]
fn every_accepted_bundle_holds_the_same_objects_for_another_reader() {
    let mut seen = HashSet::new();
    for attack in bundle_attacks() {
        if seen.insert(attack.twin.clone()) {
            let checked = accepted(&attack, &attack.twin).unwrap();
            assert_agrees(&attack, &attack.twin, &checked);
        }
    }
    assert!(seen.len() > 40, "{}", seen.len());
}

/// Bytes are changed one at a time; what is accepted all the same must be the same for both.
#[test]
fn no_changed_byte_makes_two_readers_read_two_things() {
    let (mut tried, mut taken) = (0, 0);
    let mut seen = HashSet::new();
    for attack in bundle_attacks() {
        if attack.twin.len() > 2_000 || !seen.insert(attack.twin.clone()) {
            continue;
        }
        let start = attack.twin.windows(4).position(|w| w == b"PACK").unwrap();
        for at in (start..attack.twin.len() - 20).step_by(21) {
            for bit in [0x01, 0x10, 0x80] {
                let mut bytes = attack.twin.clone();
                bytes[at] ^= bit;
                mend(&mut bytes, start);
                tried += 1;
                if let Some(checked) = accepted(&attack, &bytes) {
                    taken += 1;
                    assert_agrees(&attack, &bytes, &checked);
                }
            }
        }
    }
    println!("{tried} bundles with a changed byte, {taken} accepted");
    assert!(tried > 1_000, "{tried}");
}

/// Gives a pack the checksum of its bytes.
fn mend(bytes: &mut [u8], start: usize) {
    let end = bytes.len() - 20;
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&bytes[start..end]);
    let sum = hasher.try_finalize().unwrap();
    bytes[end..].copy_from_slice(sum.as_bytes());
}
