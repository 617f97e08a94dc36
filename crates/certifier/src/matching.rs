//! Which elements two sequences have in common, in order.

/// Comparisons the line matching may spend on one file. Two texts that need more than this are so
/// different that calling everything between their common ends changed is the honest answer.
const MATCH_BUDGET: usize = 4_000_000;

/// Pairs of equal lines in both texts, in order: common ends first, Myers' greedy search between.
pub(crate) fn matches(old: &[u32], new: &[u32]) -> Vec<(usize, usize)> {
    let most = old.len().min(new.len());
    let head = (0..most).take_while(|&i| old[i] == new[i]).count();
    let tail = (0..most - head)
        .take_while(|&i| old[old.len() - 1 - i] == new[new.len() - 1 - i])
        .count();
    let (old_mid, new_mid) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut out: Vec<_> = (0..head).map(|i| (i, i)).collect();
    let middle = shortest_edit(old_mid, new_mid).unwrap_or_default();
    out.extend(middle.into_iter().map(|(o, n)| (o + head, n + head)));
    out.extend((0..tail).map(|i| (old.len() - tail + i, new.len() - tail + i)));
    out
}

/// Myers, "An O(ND) difference algorithm" (1986): after each number of edits the furthest point
/// reached on every diagonal, then the way back. `None` when the budget is spent.
fn shortest_edit(old: &[u32], new: &[u32]) -> Option<Vec<(usize, usize)>> {
    let mut spent = 0;
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=old.len() + new.len() {
        let mut reached = Vec::with_capacity(edits + 1);
        for slot in 0..=edits {
            let (start, _) = edge(rounds.last(), slot);
            // Diagonal = old position - new position = 2 * slot - edits.
            let (mut o, mut n) = (start, start + edits - 2 * slot);
            while o < old.len() && n < new.len() && old[o] == new[n] {
                (o, n, spent) = (o + 1, n + 1, spent + 1);
            }
            reached.push(o);
            if o == old.len() && n == new.len() {
                return Some(way_back(&rounds, slot, o));
            }
        }
        spent += edits + 1;
        if spent > MATCH_BUDGET {
            return None;
        }
        rounds.push(reached);
    }
    None
}

/// The edit that leads to a diagonal, whichever gets further: a deletion from the slot below or an
/// insertion from the same slot of the round before. Gives the old position after it, and that slot.
fn edge(last: Option<&Vec<usize>>, slot: usize) -> (usize, usize) {
    let Some(last) = last else { return (0, 0) };
    let deleted = slot
        .checked_sub(1)
        .and_then(|below| last.get(below).map(|o| (o + 1, below)));
    let inserted = last.get(slot).map(|o| (*o, slot));
    deleted.max(inserted).unwrap_or((0, 0))
}

fn way_back(rounds: &[Vec<usize>], end_slot: usize, end: usize) -> Vec<(usize, usize)> {
    let (mut slot, mut o) = (end_slot, end);
    let mut pairs = Vec::new();
    for edits in (0..=rounds.len()).rev() {
        let last = edits.checked_sub(1).and_then(|round| rounds.get(round));
        let (start, from) = edge(last, slot);
        pairs.extend((start..o).rev().map(|at| (at, at + edits - 2 * slot)));
        o = if from < slot { start - 1 } else { start };
        slot = from;
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn matching_is_as_long_as_the_longest_common_subsequence(
            old in prop::collection::vec(0u32..4, 0..14),
            new in prop::collection::vec(0u32..4, 0..14),
        ) {
            let pairs = matches(&old, &new);
            prop_assert!(pairs.iter().all(|(o, n)| old[*o] == new[*n]));
            prop_assert!(pairs.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
            prop_assert_eq!(pairs.len(), longest_common(&old, &new));
        }
    }

    fn longest_common(old: &[u32], new: &[u32]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for o in old {
            let mut diagonal = 0;
            for (at, n) in new.iter().enumerate() {
                let best = if o == n {
                    diagonal + 1
                } else {
                    row[at].max(row[at + 1])
                };
                diagonal = row[at + 1];
                row[at + 1] = best;
            }
        }
        row[new.len()]
    }
}
