//! The fuzz oracle over seeds and over mechanical damage to them.

use crate::fixture::*;
use flightproof_certifier::fuzzing::{envelope_raw, fuzz_key};

fn seeds() -> [Vec<u8>; 2] {
    let statement = flight().statement();
    [
        statement.sign(&fuzz_key()).unwrap(),
        statement.payload().unwrap(),
    ]
}

#[test]
fn the_oracle_reaches_certificates() {
    for seed in seeds() {
        assert!(envelope_raw(&seed));
    }
    assert!(!envelope_raw(b"{}"));
}

#[test]
fn the_oracle_holds_for_every_cut_and_many_damaged_bytes() {
    for seed in seeds() {
        for end in (0..seed.len()).step_by(211) {
            assert!(!envelope_raw(&seed[..end]));
        }
        for at in (0..seed.len()).step_by(101) {
            for damage in [b'"', b'0', b'{', 0xff] {
                let mut bytes = seed.clone();
                bytes[at] = damage;
                envelope_raw(&bytes);
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..proptest::prelude::ProptestConfig::with_cases(64) })]

    #[test]
    fn the_oracle_holds_for_spliced_seeds(from in 0usize..4000, to in 0usize..4000, with in ".{0,12}") {
        for seed in seeds() {
            let from = from.min(seed.len());
            let to = to.clamp(from, seed.len());
            let spliced = [&seed[..from], with.as_bytes(), &seed[to..]].concat();
            envelope_raw(&spliced);
        }
    }
}
