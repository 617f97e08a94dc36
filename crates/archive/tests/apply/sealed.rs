//! Something outside the tree says whether the new one counts.

use super::interruption::cut_off;
use super::tree::{Bench, base, expected, target};
use flightproof_archive::{
    ArchiveCode, ArchiveError, Recovered, Seal, apply_sealed, paws, pending, recover,
    recover_sealed,
};
use flightproof_core::Digest;

/// Answers as it was told to, and remembers what it was asked.
struct Told {
    commits: bool,
    withdraws: bool,
    asked: Vec<&'static str>,
}

fn told(commits: bool, withdraws: bool) -> Told {
    Told {
        commits,
        withdraws,
        asked: Vec::new(),
    }
}

fn answer(well: bool) -> Result<(), String> {
    match well {
        true => Ok(()),
        false => Err("nobody knows".to_owned()),
    }
}

impl Seal for Told {
    fn commit(&mut self) -> Result<(), String> {
        self.asked.push("commit");
        answer(self.commits)
    }

    fn withdraw(&mut self) -> Result<(), String> {
        self.asked.push("withdraw");
        answer(self.withdraws)
    }
}

fn sealed(bench: &Bench, seal: &mut Told) -> Result<(), ArchiveError> {
    apply_sealed(&bench.archive(), &bench.root(), &(), seal).map(drop)
}

fn id(bench: &Bench) -> Digest {
    let bytes = std::fs::read(bench.place.path().join("changes")).unwrap();
    let delivered = paws::read_changeset(&bytes).unwrap();
    delivered.changeset.changeset_id()
}

#[test]
fn a_seal_that_is_set_makes_the_new_tree_count_and_is_not_asked_again() {
    let bench = Bench::usual();
    let mut seal = told(true, true);
    sealed(&bench, &mut seal).unwrap();
    assert_eq!(seal.asked, ["commit"]);
    assert_eq!(bench.seen(), expected(&target()));
    assert_eq!(pending(&bench.root()), Ok(None));
}

#[test]
fn a_seal_that_is_not_set_is_withdrawn_before_anything_is_taken_back() {
    let bench = Bench::usual();
    let mut seal = told(false, true);
    let refused = sealed(&bench, &mut seal).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::Io);
    assert!(refused.detail.contains("nobody knows"), "{refused}");
    assert_eq!(seal.asked, ["commit", "withdraw"]);
    assert_eq!(bench.seen(), expected(&base()));
    assert_eq!(pending(&bench.root()), Ok(None));
}

#[test]
fn where_nobody_knows_whether_it_counts_only_who_does_recovers() {
    for counts in [true, false] {
        let bench = Bench::usual();
        let (root, id) = (bench.root(), id(&bench));
        let refused = sealed(&bench, &mut told(false, false)).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::ApplyUnfinished);
        assert_eq!(pending(&root), Ok(Some((id, true))));

        // Not by the mark in the tree, and not by a word about another changeset.
        let refused = recover(&root).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::ApplyUnfinished);
        let other = recover_sealed(&root, Digest::of(b"another"), counts);
        assert_eq!(other.unwrap_err().code, ArchiveCode::JournalDamaged);
        assert_eq!(pending(&root), Ok(Some((id, true))));

        let recovered = recover_sealed(&root, id, counts).unwrap();
        let tree = match recovered {
            Recovered::Finished { changeset_id, .. } if counts => {
                assert_eq!(changeset_id, id);
                target()
            }
            Recovered::RolledBack { changeset_id, .. } if !counts => {
                assert_eq!(changeset_id, id);
                base()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(bench.seen(), expected(&tree));
        assert_eq!(recover_sealed(&root, id, counts), Ok(Recovered::Nothing));
        assert_eq!(pending(&root), Ok(None));
    }
}

#[test]
fn a_word_about_a_seal_is_not_taken_where_there_is_none() {
    let bench = Bench::usual();
    let (root, id) = (bench.root(), id(&bench));
    cut_off(&bench, "Swap(3)");
    assert_eq!(pending(&root), Ok(Some((id, false))));
    let refused = recover_sealed(&root, id, true).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::JournalDamaged);
    assert!(matches!(recover(&root), Ok(Recovered::RolledBack { .. })));
    assert_eq!(bench.seen(), expected(&base()));
}
