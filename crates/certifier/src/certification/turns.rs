//! In which order the program with all mutants is tried.
//!
//! A case can leave traces that no sandbox on a shared kernel removes (counters of the kernel, the
//! page cache), and so count how often it was run. If the order were known, a candidate could answer
//! rightly until the mutants begin and wrongly from then on, and every mutant would look killed. So
//! controls (no mutant selected, every answer must be right) and placebos stand at random places
//! among the mutants, drawn from the flight's entropy after the candidate's bytes were fixed, and
//! one control comes last.

use super::{derived, shuffled};

/// Which selector is being tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trying {
    /// None.
    Control,
    /// One that changes nothing, by its index.
    Placebo(usize),
    /// A mutant, by its index.
    Mutant(usize),
    /// A change that must be noticed, by its index.
    Canary(usize),
}

/// Mutants per control. A candidate that answers wrongly in a share `p` of its runs passes `k`
/// controls of `c` cases with probability `(1 - p)^(k c)`.
const MUTANTS_PER_CONTROL: usize = 8;
/// Fewest controls among the mutants.
const MIN_CONTROLS: usize = 3;

/// The turns: a control, everything else in random order, a control.
pub(super) fn turns(
    mutants: &[usize],
    placebos: usize,
    canaries: usize,
    entropy: &[u8; 32],
) -> Vec<Trying> {
    let controls = mutants
        .len()
        .div_ceil(MUTANTS_PER_CONTROL)
        .max(MIN_CONTROLS);
    let mut among: Vec<Trying> = mutants.iter().copied().map(Trying::Mutant).collect();
    among.extend((0..placebos).map(Trying::Placebo));
    among.extend((0..canaries).map(Trying::Canary));
    among.extend(std::iter::repeat_n(Trying::Control, controls));
    let order = shuffled(among.len(), &derived(entropy, "turns"));
    let mut turns = vec![Trying::Control];
    turns.extend(order.into_iter().map(|index| among[index]));
    turns.push(Trying::Control);
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_has_one_turn_and_controls_stand_around_and_among() {
        let mutants: Vec<usize> = (0..40).map(|n| n * 2).collect();
        let turns = turns(&mutants, 2, 1, &[7; 32]);
        assert_eq!(turns.first(), Some(&Trying::Control));
        assert_eq!(turns.last(), Some(&Trying::Control));
        assert_eq!(
            turns.iter().filter(|t| **t == Trying::Control).count(),
            2 + 5
        );
        for mutant in mutants {
            assert_eq!(
                turns
                    .iter()
                    .filter(|t| **t == Trying::Mutant(mutant))
                    .count(),
                1
            );
        }
        for placebo in [0, 1] {
            assert_eq!(
                turns
                    .iter()
                    .filter(|t| **t == Trying::Placebo(placebo))
                    .count(),
                1
            );
        }
    }

    #[test]
    fn the_order_follows_from_the_entropy_alone() {
        let of = |entropy| turns(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 1, 1, &[entropy; 32]);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
