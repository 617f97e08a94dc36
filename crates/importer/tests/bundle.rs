//! What is read in a bundle and what is refused: forged ones, one by one, and honest ones.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod scene;

use flightproof_core::{Code as _, CommitId, ObjectId, RelPath};
use flightproof_hostile::git::{
    Answer, BundleAttack, HostLie, Plan, World, attacks, bundle_attacks,
};
use flightproof_importer::{Bases, Checked, Grants, ImportError, ImporterCode, Kind, Rules, check};
use scene::NOW;
use std::collections::{BTreeMap, HashSet};

type Objects = BTreeMap<ObjectId, (Kind, Vec<u8>)>;

fn kind(word: &str) -> Kind {
    match word {
        "blob" => Kind::Blob,
        "tree" => Kind::Tree,
        "commit" => Kind::Commit,
        other => panic!("{other}"),
    }
}

fn objects<W: AsRef<str>>(store: &BTreeMap<[u8; 20], (W, Vec<u8>)>) -> Objects {
    store
        .iter()
        .map(|(id, (word, body))| {
            let object = (kind(word.as_ref()), body.clone());
            (ObjectId::from_bytes(*id), object)
        })
        .collect()
}

fn grants(paths: &[&str]) -> Grants {
    Grants::new(paths.iter().map(|path| RelPath::new(path).unwrap()))
}

fn checked(
    bytes: &[u8],
    baseline: [u8; 20],
    store: &mut Objects,
    paths: &[&str],
) -> Result<Checked, ImportError> {
    let grants = grants(paths);
    let rules = Rules {
        grants: &grants,
        identity: None,
        now: NOW,
    };
    check(bytes, CommitId::from_bytes(baseline), store, &rules)
}

fn code(refused: &ImportError) -> &'static str {
    refused.code.explanation().code
}

/// What is wrong with the answers to an attack and its twin; nothing if they are right.
fn fault(attack: &BundleAttack) -> Option<String> {
    let mut store = objects(&attack.store);
    let mut check = |bytes| checked(bytes, attack.baseline, &mut store, attack.grants);
    let name = &attack.name;
    match check(&attack.bytes) {
        Ok(_) => return Some(format!("{name}: accepted, expected {}", attack.expect)),
        Err(e) if code(&e) != attack.expect => {
            return Some(format!("{name}: got {e}, expected {}", attack.expect));
        }
        Err(_) => {}
    }
    let twin = check(&attack.twin).err()?;
    Some(format!("{name}: the twin: {twin}"))
}

#[test]
fn every_forged_bundle_is_refused_by_its_code_and_every_twin_is_accepted() {
    let faults: Vec<String> = bundle_attacks().iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn an_attack_that_is_accepted_and_a_twin_that_is_refused_are_noticed() {
    let mut attacks = bundle_attacks();
    let sample = attacks.swap_remove(3);
    assert_eq!(fault(&sample), None);
    let tame = BundleAttack {
        bytes: sample.twin.clone(),
        ..sample.clone()
    };
    assert!(fault(&tame).unwrap().contains("accepted"));
    let wild = BundleAttack {
        twin: sample.bytes.clone(),
        ..sample.clone()
    };
    assert!(fault(&wild).unwrap().contains("the twin"));
    let wrong = BundleAttack {
        expect: "importer/NO_CHANGE",
        ..sample
    };
    assert!(
        fault(&wrong)
            .unwrap()
            .contains("expected importer/NO_CHANGE")
    );
}

/// Where a bundle meets a limit before the rule that a repository on disk breaks.
const EARLIER: &[(&str, &str)] = &[
    ("2,000 directories deep", "importer/OBJECTS_OVER_LIMIT"),
    // The empty tree is in the history before the baseline, so it does not travel; and what the
    // baseline's own tree does not lead to is not taken from the repository.
    ("an empty directory", "importer/OBJECT_MISSING"),
];

#[test]
fn a_bundle_is_judged_as_its_commit_in_a_repository_is() {
    let mut faults = Vec::new();
    let mut twins = HashSet::new();
    for attack in attacks() {
        let Answer::Refused(expected) = attack.answer else {
            continue;
        };
        if !matches!(attack.plan.lie, HostLie::None) {
            continue;
        }
        let earlier = EARLIER.iter().find(|(name, _)| *name == attack.name);
        let expected = earlier.map_or(expected, |(_, code)| code);
        match judged(&attack.plan) {
            Err(e) if code(&e) == expected => {}
            other => faults.push(format!(
                "{}: got {other:?}, expected {expected}",
                attack.name
            )),
        }
        if twins.insert(format!("{:?}", attack.twin))
            && let Err(e) = judged(&attack.twin)
        {
            faults.push(format!("{}: the twin: {e}", attack.name));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn judged(plan: &Plan) -> Result<(), ImportError> {
    let made = plan.bundle().unwrap();
    checked(&made.bytes, made.baseline, &mut objects(&made.store), &[]).map(drop)
}

#[test]
fn identity_and_clock_are_held_against_a_bundle_too() {
    let attack = bundle_attacks().swap_remove(0);
    let mut store = objects(&attack.store);
    let mut with = |identity, now| {
        let rules = Rules {
            grants: &Grants::default(),
            identity,
            now,
        };
        let baseline = CommitId::from_bytes(attack.baseline);
        check(&attack.twin, baseline, &mut store, &rules)
            .map(drop)
            .map_err(|e| e.code)
    };
    use ImporterCode::{CommitDate, IdentityMismatch};
    assert_eq!(with(Some("A Bot <bot@example.org>"), NOW), Ok(()));
    assert_eq!(
        with(Some("A User <user@example.org>"), NOW),
        Err(IdentityMismatch)
    );
    assert_eq!(with(None, NOW - 200_000), Err(CommitDate));
}

#[test]
fn bases_that_lie_are_found_out() {
    let attack = bundle_attacks().swap_remove(0);
    let mut store = objects(&attack.store);
    // The old file, which the change is compared with, has other bytes under its id.
    for (_, body) in store.values_mut() {
        if body.starts_with(b"pub fn") {
            body[0] ^= 1;
        }
    }
    let refused = checked(&attack.twin, attack.baseline, &mut store, &[]).unwrap_err();
    assert_eq!(refused.code, ImporterCode::ObjectHashMismatch);
    let refused = checked(&attack.twin, attack.baseline, &mut Objects::new(), &[]).unwrap_err();
    assert_eq!(refused.code, ImporterCode::ObjectMissing);
}

/// A repository that answers with everything it has, however little was asked for.
struct Boundless(Objects);

impl Bases for Boundless {
    fn find(&mut self, id: ObjectId, _: usize) -> Result<Option<(Kind, Vec<u8>)>, ImportError> {
        Ok(self.0.get(&id).cloned())
    }
}

#[test]
fn bases_that_ignore_the_limit_are_held_to_it() {
    let attacks = bundle_attacks();
    let huge = attacks
        .iter()
        .find(|a| a.name == "a delta on a file of 16 MiB");
    let huge = huge.unwrap();
    let rules = Rules {
        grants: &Grants::default(),
        identity: None,
        now: NOW,
    };
    let baseline = CommitId::from_bytes(huge.baseline);
    let mut bases = Boundless(objects(&huge.store));
    let refused = check(&huge.bytes, baseline, &mut bases, &rules).unwrap_err();
    assert_eq!(code(&refused), huge.expect);
}

#[test]
fn the_pack_that_git_gets_holds_what_was_checked() {
    let world = World::usual();
    let mut store = objects(&world.store);
    let attack = bundle_attacks().swap_remove(0);
    let checked = checked(&attack.twin, attack.baseline, &mut store, &[]).unwrap();
    let pack = checked.pack().unwrap();
    assert_eq!(
        pack,
        checked.pack().unwrap(),
        "one set of objects, one pack"
    );
    assert_eq!(checked.objects().len(), 4);
    assert!(!attack.twin.ends_with(&pack), "written anew");
}

#[test]
fn a_bundle_that_fills_every_limit_is_accepted() {
    let world = World::usual();
    let bytes = world.fullest();
    assert!(
        (110_000..=131_072).contains(&bytes.len()),
        "{}",
        bytes.len()
    );
    let checked = checked(&bytes, world.baseline, &mut objects(&world.store), &[]).unwrap();
    assert_eq!(checked.objects().len(), 1_024);
    assert_eq!(checked.changes().len(), 1_021);
    let size = |change: &flightproof_evidence::Change| change.new.as_ref().unwrap().content.len();
    let total: usize = checked.changes().iter().map(size).sum();
    assert!(total > (2 << 20) - 40_000, "{total}");
}
