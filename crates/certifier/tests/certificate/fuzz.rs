//! The fuzz oracles over seeds, over mechanical damage to them, and over choices.

use crate::fixture::*;
use flightproof_certifier::fuzzing::{self, fuzz_key};
use std::fs;
use std::path::Path;

/// Says whether the bytes were what it is about.
type Raw = fn(&[u8]) -> bool;
type Plan = fn(&[u8]);

/// The oracles that take bytes.
const RAW: [(&str, Raw); 5] = [
    ("envelope_raw", fuzzing::envelope_raw),
    ("statement_raw", fuzzing::statement_raw),
    ("policy_raw", fuzzing::policy_raw),
    ("revocations_raw", fuzzing::revocations_raw),
    ("judge_raw", fuzzing::judge_raw),
];

/// The oracles that take choices.
const PLANS: [(&str, Plan); 3] = [
    ("envelope_plan", fuzzing::envelope_plan),
    ("revocations_plan", fuzzing::revocations_plan),
    ("judge_plan", fuzzing::judge_plan),
];

/// Seeds and kept findings of a target, with their names.
fn kept(target: &str) -> Vec<(String, Vec<u8>)> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    ["seeds", "regressions"]
        .iter()
        .filter_map(|folder| fs::read_dir(fuzz.join(folder).join(target)).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect()
}

fn seeds() -> [Vec<u8>; 2] {
    let statement = flight().statement();
    [
        statement.sign(&fuzz_key()).unwrap(),
        statement.payload().unwrap(),
    ]
}

fn either(data: &[u8]) -> bool {
    fuzzing::envelope_raw(data) | fuzzing::statement_raw(data)
}

#[test]
fn the_oracles_reach_certificates() {
    let [envelope, payload] = seeds();
    assert!(fuzzing::envelope_raw(&envelope) && !fuzzing::statement_raw(&envelope));
    assert!(fuzzing::statement_raw(&payload) && !fuzzing::envelope_raw(&payload));
    assert!(!either(b"{}"));
}

#[test]
fn the_oracles_hold_for_every_seed_and_finding_and_reach_what_they_are_about() {
    let made = seeds().map(|seed| ("made".to_owned(), seed));
    for (target, oracle) in RAW {
        let kept = [kept(target), made.to_vec()].concat();
        let reached: Vec<_> = kept.iter().filter(|(_, bytes)| oracle(bytes)).collect();
        assert!(!reached.is_empty(), "{target}: no seed of {}", kept.len());
        assert!(reached.len() < kept.len(), "{target}: no seed is refused");
    }
    for (target, oracle) in PLANS {
        let kept = kept(target);
        assert!(!kept.is_empty(), "{target}");
        kept.iter().for_each(|(_, bytes)| oracle(bytes));
    }
}

#[test]
fn the_oracles_hold_for_every_cut_and_many_damaged_bytes() {
    for seed in seeds() {
        for end in (0..seed.len()).step_by(211) {
            assert!(!either(&seed[..end]));
        }
        for at in (0..seed.len()).step_by(101) {
            for damage in [b'"', b'0', b'{', 0xff] {
                let mut bytes = seed.clone();
                bytes[at] = damage;
                either(&bytes);
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..proptest::prelude::ProptestConfig::with_cases(64) })]

    #[test]
    fn the_oracles_hold_for_spliced_seeds(from in 0usize..4000, to in 0usize..4000, with in ".{0,12}") {
        for seed in seeds() {
            let from = from.min(seed.len());
            let to = to.clamp(from, seed.len());
            let spliced = [&seed[..from], with.as_bytes(), &seed[to..]].concat();
            either(&spliced);
        }
    }
}

proptest::proptest! {
    // Each case signs several times.
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..proptest::prelude::ProptestConfig::with_cases(24) })]

    #[test]
    fn the_oracles_hold_for_choices(choices in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)) {
        for (_, oracle) in PLANS {
            oracle(&choices);
        }
    }
}
