//! Revocation lists before the clock and before what is remembered of them.

use super::{Choices, fuzz_key_of};
use crate::policy::RevocationRule;
use crate::revocation::{CheckedRevocations, ListName, RevocationList, Seen};
use crate::ring::NamedKey;
use flightproof_core::{Digest, Moment, canonical_json};

/// A day in 2026, in seconds.
const START: u64 = 1_780_000_000;
const DAY: u64 = 86_400;

/// A list of some version and time, signed by one of two keys, checked at some time by somebody who
/// remembers some version.
///
/// # Panics
/// When the answer is not the one that follows from the choices.
pub fn revocations_plan(choices: &[u8]) {
    let mut choices = Choices(choices);
    let named = |name: &str| name.parse::<ListName>().unwrap_or_else(|e| panic!("{e}"));
    let (names, signer) = (["team", "other"].map(named), choices.below(2));
    let (version, days) = (
        u64::from(choices.below(4)) + 1,
        u64::from(choices.below(3)) + 1,
    );
    let mut list =
        RevocationList::first(names[usize::from(choices.below(2))].clone(), start(), days);
    while list.version < version {
        list = list.next(start(), days);
    }
    let envelope = list.sign(&fuzz_key_of(signer));
    let envelope = envelope.unwrap_or_else(|e| panic!("{e}"));
    let payload = canonical_json(&list).unwrap_or_else(|e| panic!("{e}"));
    let own = Digest::of(&payload);
    let rule = RevocationRule {
        list: names[0].clone(),
        keys: vec![NamedKey {
            id: fuzz_key_of(0).public().id(),
            from: None,
            until: None,
        }],
        threshold: 1,
    };
    let seen = choices.coin().then(|| Seen {
        version: u64::from(choices.below(5)) + 1,
        digest: *choices.one_of(&[own, Digest::of(b"another")]),
    });
    // Half a day off the days on which a list begins and ends.
    let now = START - DAY / 2 + u64::from(choices.below(5)) * DAY;
    let given = [0, 1].map(|key| fuzz_key_of(key).public());
    let opened = CheckedRevocations::open(
        &envelope,
        &rule,
        &given,
        Moment::from_unix(now),
        seen.as_ref(),
    );
    let in_time = now >= START && now < START + days * DAY;
    let newer = seen.as_ref().is_none_or(|seen| {
        version > seen.version || (version == seen.version && seen.digest == own)
    });
    let good = signer == 0 && list.list == names[0] && in_time && newer;
    assert_eq!(
        opened.is_ok(),
        good,
        "{list:?} {seen:?} {now}: {:?}",
        opened.err()
    );
    if let Ok(opened) = opened {
        assert_eq!(
            opened.seen(),
            &Seen {
                version,
                digest: own
            }
        );
    }
}

fn start() -> Moment {
    Moment::from_unix(START)
}
