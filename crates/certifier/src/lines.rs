//! Which lines of a file a change touched, and what kind of line each is.

use std::collections::{BTreeSet, HashMap};

use flightproof_core::RelPath;

use crate::scan::{LineStart, ScannedLine, scan};

/// Comparisons the line matching may spend on one file. Two texts that need more than this are so
/// different that calling everything between their common ends changed is the honest answer.
const MATCH_BUDGET: usize = 4_000_000;

/// The lines of a Rust file (1-based, counted in the new text) that a change touched.
///
/// A line is touched when it is not a line of the old text, in order. Four things count that a
/// plain comparison of lines would not show:
/// - a line with the same bytes that was inside a comment or a string before and is code now, or
///   the other way round (removing `/*` changes every line after it);
/// - the nearest lines of code before and behind a place where code was only deleted, for otherwise a
///   removed check would leave no trace;
/// - a line that stands in another block than before, such as after a moved `}`;
/// - a line that only got or lost its line end.
///
/// Every line of an added file is touched. Never fails; where matching would cost too much, every
/// line between the common beginning and the common end is touched.
pub fn changed_lines(old: Option<&[u8]>, new: &[u8]) -> BTreeSet<u32> {
    touched(&scan(old.unwrap_or_default()), &scan(new))
}

/// The touched lines of a file that is no Rust source. An apostrophe or a quote in prose does not
/// carry a change on to later lines, as it would in code.
pub(crate) fn changed_data_lines(old: Option<&[u8]>, new: &[u8]) -> BTreeSet<u32> {
    touched(&plain(old.unwrap_or_default()), &plain(new))
}

/// Whether a path names Rust source, in any case: `LIB.RS` is source on a file system that says so.
pub(crate) fn is_rust(path: &RelPath) -> bool {
    let extension = path
        .file_name()
        .rsplit_once('.')
        .map(|(_, extension)| extension);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("rs"))
}

/// Lines of a text without a lexer's view.
fn plain(text: &[u8]) -> Vec<ScannedLine<'_>> {
    text.split_inclusive(|byte| *byte == b'\n')
        .map(|bytes| ScannedLine {
            bytes,
            start: LineStart::Code,
            opener: None,
            has_code: true,
        })
        .collect()
}

fn touched(old: &[ScannedLine<'_>], new: &[ScannedLine<'_>]) -> BTreeSet<u32> {
    let mut numbers = HashMap::new();
    let old_keys = keys(old, &mut numbers);
    let new_keys = keys(new, &mut numbers);
    let mut out = BTreeSet::new();
    let (mut old_at, mut new_at) = (0, 0);
    let end = (old.len(), new.len());
    let pairs = matches(&old_keys, &new_keys);
    out.extend(moved_blocks(old, new, &pairs));
    for (o, n) in pairs.into_iter().chain([end]) {
        out.extend(new_at..n);
        let deleted = old.get(old_at..o).unwrap_or_default();
        if new_at == n && deleted.iter().any(|line| line.has_code) {
            let is_code = |at: &usize| new.get(*at).is_some_and(|line| line.has_code);
            out.extend((0..n).rev().find(is_code).or(n.checked_sub(1)));
            let next = (n..new.len()).find(is_code);
            out.extend(next.or((n < new.len()).then_some(n)));
        }
        (old_at, new_at) = (o + 1, n + 1);
    }
    out.into_iter()
        .filter_map(|index| u32::try_from(index + 1).ok())
        .collect()
}

/// Kept lines that stand in another block now. A block is the same if the line that opens it was
/// kept, or was edited in its place: between the same two kept lines.
fn moved_blocks(
    old: &[ScannedLine<'_>],
    new: &[ScannedLine<'_>],
    pairs: &[(usize, usize)],
) -> Vec<usize> {
    let olds: Vec<usize> = pairs.iter().map(|(o, _)| *o).collect();
    let news: Vec<usize> = pairs.iter().map(|(_, n)| *n).collect();
    // `Ok` for the number of a kept line, `Err` for that of the gap an edited one lies in.
    let place = |kept: &[usize], line: Option<usize>| line.map(|line| kept.binary_search(&line));
    let opener = |lines: &[ScannedLine<'_>], at: usize| lines.get(at).and_then(|l| l.opener);
    let moved = pairs.iter().filter(|(o, n)| {
        let has_code = new.get(*n).is_some_and(|line| line.has_code);
        has_code && place(&olds, opener(old, *o)) != place(&news, opener(new, *n))
    });
    moved.map(|(_, n)| *n).collect()
}

/// Equal numbers for equal lines, so that matching compares integers.
fn keys<'a>(
    lines: &[ScannedLine<'a>],
    numbers: &mut HashMap<(&'a [u8], LineStart), u32>,
) -> Vec<u32> {
    lines
        .iter()
        .map(|line| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry((line.bytes, line.start)).or_insert(next)
        })
        .collect()
}

/// Pairs of equal lines in both texts, in order: common ends first, Myers' greedy search between.
fn matches(old: &[u32], new: &[u32]) -> Vec<(usize, usize)> {
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

    fn changed(old: &str, new: &str) -> Vec<u32> {
        changed_lines(Some(old.as_bytes()), new.as_bytes())
            .into_iter()
            .collect()
    }

    #[test]
    fn added_and_modified_lines_are_touched_and_no_others() {
        assert_eq!(changed("a\nb\nc\n", "a\nb\nc\n"), [0u32; 0]);
        assert_eq!(changed("a\nb\nc\n", "a\nB\nc\n"), [2]);
        assert_eq!(changed("a\nb\nc\n", "x\na\nb\ny\nc\nz\n"), [1, 4, 6]);
        assert_eq!(changed("a\nb\nc\nd\ne\n", "a\nX\nc\nY\nY\ne\n"), [2, 4, 5]);
        assert_eq!(changed("a\nb", "a\nb\n"), [2]);
    }

    #[test]
    fn every_line_of_an_added_file_is_touched() {
        let lines = changed_lines(None, b"a\n\nb");
        assert_eq!(lines.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert!(changed_lines(None, b"").is_empty());
    }

    #[test]
    fn a_deleted_check_touches_its_neighbours_and_a_deleted_comment_nothing() {
        assert_eq!(changed("a\ncheck();\nb\nc\n", "a\nb\nc\n"), [1, 2]);
        assert_eq!(changed("check();\nb\n", "b\n"), [1]);
        assert_eq!(changed("a\ncheck();\n", "a\n"), [1]);
        // Comments and blank lines beside it do not hide it.
        assert_eq!(
            changed("a\n// x\ncheck();\n\nb\n", "a\n// x\n\nb\n"),
            [1, 4]
        );
        assert_eq!(changed("a\n// said\n\nb\n", "a\nb\n"), [0u32; 0]);
        assert_eq!(changed("a\nb\n", ""), [0u32; 0]);
    }

    #[test]
    fn a_line_in_another_block_is_touched_and_one_in_an_edited_block_is_not() {
        let old = "if a {\n    x();\n}\ny();\nz();\n";
        let moved = "if a {\n    x();\n// noted\ny();\n}\nz();\n";
        assert!(
            changed(old, moved).contains(&4),
            "{:?}",
            changed(old, moved)
        );
        assert!(!changed(old, moved).contains(&6));
        let or = "if a {\n    x();\n} else {\n    y();\n    z();\n}\n";
        let other = "if a {\n    x();\n    y();\n} else  {\n    z();\n}\n";
        assert!(changed(or, other).contains(&3) && changed(or, other).contains(&5));
        assert_eq!(changed(old, &old.replace("if a", "if b")), [1]);
        let signature = "fn f(\n    a: u8,\n) {\n    x();\n}\n";
        assert_eq!(changed(signature, &signature.replace("u8,", "u16,")), [2]);
        let wider = signature.replace("a: u8,\n", "a: u8,\n    b: u8,\n");
        assert_eq!(changed(signature, &wider), [3]);
    }

    #[test]
    fn code_that_leaves_a_comment_or_a_string_is_touched() {
        assert_eq!(
            changed("/*\nevil();\n*/\nx\n", "\nevil();\n\nx\n"),
            [1, 2, 3]
        );
        assert_eq!(
            changed("f(\n\"\nevil();\n\");\n", "f(\nevil();\n);\n"),
            [2, 3]
        );
        assert_eq!(changed("/*\nsame\n*/\nx\n", "/*\nsame\n*/\ny\n"), [4]);
    }

    #[test]
    fn a_quote_in_prose_touches_its_own_line_only() {
        let (old, new) = (b"x\ny\n".as_slice(), b"\"x\ny\n".as_slice());
        assert_eq!(changed_data_lines(Some(old), new), BTreeSet::from([1]));
        assert_eq!(changed_lines(Some(old), new), BTreeSet::from([1, 2]));
        assert_eq!(changed_data_lines(None, new), BTreeSet::from([1, 2]));
    }

    #[test]
    fn texts_without_anything_in_common_are_cheap_and_wholly_touched() {
        let old: String = (0..20_000).map(|i| format!("a{i}\n")).collect();
        let new: String = (0..20_000).map(|i| format!("b{i}\n")).collect();
        assert_eq!(changed(&old, &new).len(), 20_000);
    }

    #[test]
    fn two_distant_edits_in_a_long_file_stay_two_edits() {
        let old: String = (0..50_000).map(|i| format!("{i}\n")).collect();
        let new = old
            .replace("\n10\n", "\nten\n")
            .replace("\n49990\n", "\nlast\n");
        assert_eq!(changed(&old, &new), [11, 49_991]);
    }

    proptest! {
        /// Oracle: the lines that are not touched must be a subsequence of the old text.
        #[test]
        fn untouched_lines_are_old_lines_in_order(
            old in prop::collection::vec("[ab\"/*]{0,2}\n", 0..12),
            new in prop::collection::vec("[ab\"/*]{0,2}\n", 0..12),
        ) {
            let touched = changed_lines(Some(old.concat().as_bytes()), new.concat().as_bytes());
            let mut from = old.iter();
            for (index, line) in new.iter().enumerate() {
                if !touched.contains(&u32::try_from(index + 1).unwrap()) {
                    prop_assert!(from.any(|o| o == line), "line {} is not old", index + 1);
                }
            }
        }

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
