//! Which lines of a file a change touched, and what kind of line each is.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use flightproof_core::RelPath;

use crate::matching::matches;
use crate::scan::{LineStart, Scanned, ScannedLine, scan};
use crate::standing::Standing;

/// The lines of a Rust file (1-based, counted in the new text) whose code a change touched.
///
/// A line is touched when it is not a line of the old text, in order. Four things count that a
/// plain comparison of lines would not show:
/// - a line with the same bytes that was inside a comment or a string before and is code now, or
///   the other way round (removing `/*` changes every line after it);
/// - the nearest lines of code before and behind a place where code was deleted and nothing that
///   may have a mutant stands instead, for otherwise a removed check would leave no trace;
/// - a line that stands in something else than before: after a moved `}`, under another `impl`, in a
///   block that lost its `if`, below an attribute that is gone;
/// - and one thing does not: lines with the same tokens as the old ones in their place, which
///   are written in another way.
///
/// Every line of an added file is touched. Never fails; where matching would cost too much, every
/// line between the common beginning and the common end is touched.
pub fn changed_lines(old: Option<&[u8]>, new: &[u8]) -> BTreeSet<u32> {
    numbers(code(&scan(old.unwrap_or_default()), &scan(new)))
}

/// The same, with the lines that are only written in another way: what a reader of the change sees.
pub(crate) fn touched_lines(old: Option<&[u8]>, new: &[u8]) -> BTreeSet<u32> {
    let (old, new) = (scan(old.unwrap_or_default()), scan(new));
    let mut out = numbers(as_bytes(&old.lines, &new.lines));
    out.extend(numbers(code(&old, &new)));
    out
}

/// The touched lines of a file that is no Rust source. An apostrophe or a quote in prose does not
/// carry a change on to later lines, as it would in code.
pub(crate) fn changed_data_lines(old: Option<&[u8]>, new: &[u8]) -> BTreeSet<u32> {
    numbers(as_bytes(&plain(old.unwrap_or_default()), &plain(new)))
}

fn numbers(indexes: BTreeSet<usize>) -> BTreeSet<u32> {
    let numbers = indexes.into_iter().map(|index| u32::try_from(index + 1));
    numbers.filter_map(Result::ok).collect()
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
            block: 0,
            under: None,
            has_code: true,
            says: true,
            acts: true,
            tokens: Vec::new(),
        })
        .collect()
}

/// Lines that are not there in the old text, byte for byte, and those beside what only went.
fn as_bytes(old: &[ScannedLine<'_>], new: &[ScannedLine<'_>]) -> BTreeSet<usize> {
    let pairs = pairs(old, new, |line| line.bytes);
    let mut out = BTreeSet::new();
    for (was, is) in gaps(&pairs, old.len(), new.len()) {
        let deleted = old.get(was).unwrap_or_default();
        if is.is_empty() && deleted.iter().any(|line| line.has_code) {
            out.extend(beside(new, &is));
        }
        out.extend(is);
    }
    out
}

/// Lines whose code is another, or means something else.
fn code(old: &Scanned<'_>, new: &Scanned<'_>) -> BTreeSet<usize> {
    let pairs = pairs(&old.lines, &new.lines, |line| without_end(line.bytes));
    let standing = Standing::of(old, new, &pairs);
    let mut out = BTreeSet::new();
    for (o, n) in &pairs {
        let has_code = new.lines.get(*n).is_some_and(|line| line.has_code);
        if has_code && !standing.is_same(*o, *n) {
            out.insert(*n);
            out.extend(standing.openers(*o, *n));
        }
    }
    for (was, is) in gaps(&pairs, old.lines.len(), new.lines.len()) {
        let parts = rewritten(&old.lines, &new.lines, (&was, &is));
        for (was, is) in &parts {
            let moved = !is.is_empty() && !standing.is_same(was.start, is.start);
            out.extend(is.clone().filter(|_| moved));
        }
        let [head, tail] = parts;
        let (was, is) = (head.0.end..tail.0.start, head.1.end..tail.1.start);
        let deleted = old.lines.get(was).unwrap_or_default();
        let added = new.lines.get(is.clone()).unwrap_or_default();
        // Where an attribute or import stands instead of another, other rules read both.
        let gone = deleted.iter().any(|line| match added.is_empty() {
            true => line.has_code,
            false => line.acts,
        });
        if gone && !added.iter().any(|line| line.says) {
            out.extend(beside(&new.lines, &is));
        }
        out.extend(is);
    }
    out
}

/// What of two edited stretches has the same tokens on other lines or with other spaces: at their
/// beginning and at their end.
fn rewritten(
    old: &[ScannedLine<'_>],
    new: &[ScannedLine<'_>],
    (was, is): (&Range<usize>, &Range<usize>),
) -> [(Range<usize>, Range<usize>); 2] {
    let start = |lines: &[ScannedLine<'_>], at: usize| lines.get(at).map(|line| line.start);
    let none = [
        (was.start..was.start, is.start..is.start),
        (was.end..was.end, is.end..is.end),
    ];
    let starts = (start(old, was.start), start(new, is.start));
    if matches!(starts, (Some(a), Some(b)) if a != b) {
        return none;
    }
    let (before, now) = (Joined::of(old, was), Joined::of(new, is));
    let both = before.text.iter().zip(&now.text);
    let head = both.take_while(|(a, b)| a == b).count();
    let [mut first, mut last] = none;
    if head == before.text.len() && head == now.text.len() {
        return [(was.clone(), is.clone()), last];
    }
    if let Some((o, n)) = before.last_end(&now, head) {
        first = (was.start..was.start + o, is.start..is.start + n);
    }
    let both = before.text.iter().rev().zip(now.text.iter().rev());
    let tail = both.take_while(|(a, b)| a == b).count();
    let least = (first.0.len(), first.1.len());
    if let Some((o, n)) = before.first_start(&now, tail, least)
        && start(old, was.start + o) == start(new, is.start + n)
    {
        last = (was.start + o..was.end, is.start + n..is.end);
    }
    [first, last]
}

/// The tokens of some lines, and where in them each line ends.
struct Joined {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Joined {
    fn of(lines: &[ScannedLine<'_>], which: &Range<usize>) -> Self {
        let mut out = Self {
            text: Vec::new(),
            ends: Vec::new(),
        };
        for line in lines.get(which.clone()).unwrap_or_default() {
            out.text.extend_from_slice(&line.tokens);
            out.ends.push(out.text.len());
        }
        out
    }

    /// How many lines of each have the same tokens, if `same` bytes are equal.
    fn last_end(&self, other: &Self, same: usize) -> Option<(usize, usize)> {
        let ends = self.ends.iter().enumerate().rev();
        let mut ends = ends.filter(|(_, end)| **end <= same);
        ends.find_map(|(at, end)| {
            let there = other.ends.partition_point(|other| other <= end);
            let last = other.ends.get(there.checked_sub(1)?);
            (last == Some(end)).then_some((at + 1, there))
        })
    }

    /// How many lines of each stand before the same tokens, if `same` bytes at the end are equal;
    /// at least so many.
    fn first_start(
        &self,
        other: &Self,
        same: usize,
        least: (usize, usize),
    ) -> Option<(usize, usize)> {
        let left = |of: &Self, lines: usize| {
            let end = lines.checked_sub(1).and_then(|last| of.ends.get(last));
            of.text.len() - end.copied().unwrap_or(0)
        };
        (least.0..self.ends.len()).find_map(|lines| {
            let bytes = left(self, lines);
            let start = other.text.len().checked_sub(bytes)?;
            let before = match start {
                0 => 0,
                _ => other.ends.partition_point(|end| *end < start) + 1,
            };
            let there = before.max(least.1);
            let fits = there < other.ends.len() && left(other, there) == bytes;
            (fits && bytes <= same).then_some((lines, there))
        })
    }
}

/// The nearest lines of code before and behind a place.
fn beside(lines: &[ScannedLine<'_>], place: &Range<usize>) -> impl Iterator<Item = usize> {
    let is_code = |at: &usize| lines.get(*at).is_some_and(|line| line.has_code);
    let before = (0..place.start).rev().find(is_code);
    let behind = (place.end..lines.len()).find(is_code);
    let before = before.or(place.start.checked_sub(1));
    let behind = behind.or((place.end < lines.len()).then_some(place.end));
    before.into_iter().chain(behind)
}

/// What lies between kept lines, in the old text and in the new one.
fn gaps(
    pairs: &[(usize, usize)],
    old: usize,
    new: usize,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let ends = pairs.iter().copied().chain([(old, new)]);
    let starts = [(0, 0)].into_iter();
    let starts = starts.chain(pairs.iter().map(|(o, n)| (o + 1, n + 1)));
    starts
        .zip(ends)
        .map(|(from, to)| (from.0..to.0, from.1..to.1))
        .filter(|(was, is)| !was.is_empty() || !is.is_empty())
}

fn pairs<'a>(
    old: &[ScannedLine<'a>],
    new: &[ScannedLine<'a>],
    shown: impl Fn(&ScannedLine<'a>) -> &'a [u8],
) -> Vec<(usize, usize)> {
    // Equal numbers for equal lines, so that matching compares integers.
    let mut known = HashMap::new();
    let mut keys = |lines: &[ScannedLine<'a>]| -> Vec<u32> {
        let keys = lines.iter().map(|line| {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            *known.entry((shown(line), line.start)).or_insert(next)
        });
        keys.collect()
    };
    let (old, new) = (keys(old), keys(new));
    matches(&old, &new)
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn touched(old: &str, new: &str) -> Vec<u32> {
        let touched = touched_lines(Some(old.as_bytes()), new.as_bytes());
        touched.into_iter().collect()
    }

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
        assert_eq!(touched("a\nb", "a\nb\n"), [2]);
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
    fn deleted_code_leaves_a_trace_whatever_stands_in_its_place() {
        let old = "fn f() {\n    a(1);\n    check();\n    b(2);\n}\n";
        for instead in [
            "// check();",
            "{}",
            "",
            "{",
            "use a::b;",
            "#[allow(x)]",
            ";",
        ] {
            let new = old.replace("check();", instead);
            let found = changed(old, &new);
            assert!(
                found.contains(&2) && found.contains(&4),
                "{instead}: {found:?}"
            );
        }
        let imports = "use a::b;\n#![doc(x = \"1\")]\nconst A: u8 = 1;\n";
        for (from, to) in [
            ("use a::b;", "pub use a::{b, c};"),
            ("use a::b;", "use c;"),
            ("\"1\"", "\"2\""),
        ] {
            let found = changed(imports, &imports.replace(from, to));
            assert!(!found.contains(&3), "{to}: {found:?}");
        }
        // What stands there now has mutants of its own.
        assert_eq!(changed(old, &old.replace("check();", "ask();")), [3]);
        assert_eq!(changed(old, &old.replace("check();", "2;")), [3]);
    }

    #[test]
    fn a_block_that_loses_what_opened_it_is_touched_as_a_whole() {
        let body = "    a(1);\n    b(2);\n}\n";
        for (was, is) in [
            ("if a {", "{"),
            ("if a {", "while a {"),
            ("if a {\n} else {", "if a {\n}\n{"),
            ("'all: for a in b {", "for a in b {"),
            ("#[cfg(x)]\nfn f() {", "// Said.\nfn f() {"),
            ("#[cfg(x)]\nfn f() {", "fn f() {"),
            ("fn f() {\n    #![cfg(x)]", "fn f() {"),
            ("#[test]\nfn f() {", "fn f() {"),
            ("impl A for B {", "impl A for C {"),
            ("impl<T: A> B<T> {", "impl<T: C> B<T> {"),
            ("impl A for (B, C) {", "impl A for (B, D) {"),
            ("mod a {", "mod b {"),
            ("impl A<{ 3 }> for B {", "impl A<{ 3 }> for C {"),
        ] {
            let (old, new) = (format!("{was}\n{body}"), format!("{is}\n{body}"));
            let first = u32::try_from(is.lines().count()).unwrap() + 1;
            let found = changed(&old, &new);
            assert!(
                found.contains(&first) && found.contains(&(first + 1)),
                "{was} -> {is}: {found:?}"
            );
        }
        // The twins.
        for (was, is) in [
            ("if a {", "if b {"),
            ("#[allow(x)]\nfn f() {", "fn f() {"),
            ("fn f() {", "fn g() {"),
            ("fn f(a: u8) {", "pub fn f(a: u16, b: Vec<u8>) -> u8 {"),
            ("match a {", "match b {"),
        ] {
            let (old, new) = (format!("{was}\n{body}"), format!("{is}\n{body}"));
            let first = u32::try_from(is.lines().count()).unwrap() + 1;
            let found = changed(&old, &new);
            assert!(!found.contains(&first), "{was} -> {is}: {found:?}");
        }
    }

    #[test]
    fn exchanged_headers_touch_the_bodies_that_were_kept() {
        let two = |a: &str, b: &str| format!("{a} {{\n    x(1);\n}}\n{b} {{\n    x(2);\n}}\n");
        for (a, b) in [
            ("impl L for A", "impl L for B"),
            ("mod a", "mod b"),
            ("fn a()", "fn b()"),
            ("trait A", "trait B"),
        ] {
            let found = changed(&two(a, b), &two(b, a));
            assert!(found.contains(&2) && found.contains(&5), "{a}: {found:?}");
        }
    }

    #[test]
    fn an_element_or_statement_below_another_attribute_is_touched() {
        let old = "fn f() {\n    g(&[\n        1,\n        2,\n        3,\n    ]);\n    h();\n}\n";
        let new = old.replace("        2,", "        #[cfg(test)]\n        2,");
        assert_eq!(changed(old, &new), [4, 5]);
        assert_eq!(changed(&new, old), [3, 4]);
        let new = old.replace("    h();", "    #[cfg(x)]\n    h()\n        .i();");
        assert_eq!(changed(&new, &new.replace("#[cfg(x)]", "")), [7, 8, 9]);
    }

    #[test]
    fn what_is_written_again_beside_a_change_is_not_taken_for_it() {
        assert_eq!(changed("a\nz\n", "b\na ()\n a()\nz\n"), [1, 2, 3]);
        assert_eq!(changed("a();\nz\n", "a ();\na ();\nz\n"), [2]);
        assert_eq!(
            changed("a(); b();\nz\n", "a();\nx();\nb();\nz\n"),
            [1, 2, 3]
        );
        assert_eq!(changed("a();\nb();\nc();\n", "a ();\nx();\nc ();\n"), [2]);
    }

    #[test]
    fn brackets_on_one_line_are_told_apart() {
        let old = "fn f() {\n    g(|_| { if a {\n        x();\n    }\n        y();\n    });\n}\n";
        let new = "fn f() {\n    g(|_| { if a {\n        x();\n        y();\n    }\n    });\n}\n";
        // What decides about the line now counts as well.
        let found = changed(old, new);
        assert!(found.contains(&4) && found.contains(&2), "{found:?}");
    }

    #[test]
    fn another_way_of_writing_the_same_is_no_change_of_code() {
        let old = "fn f() {\n    if a == \"x\" { g(1); } else { h(2, 3); }\n    i(4);\n}\n";
        let new = "fn f() {\n    if a == \"x\" {\n        g(1);\n    } else {\n        h(\n            2, 3);\n    }\n    i(4);\n}\n";
        assert_eq!(changed(old, new), [0u32; 0]);
        assert_eq!(touched(old, new), [2, 3, 4, 5, 6, 7]);
        assert_eq!(changed(old, &new.replace("i(4)", "i(5)")), [8]);
        let ends = old.replace('\n', "\r\n");
        assert_eq!(changed(old, &ends), [0u32; 0]);
        assert_eq!(touched(old, &ends), [1, 2, 3, 4]);
        assert_eq!(changed(old, &ends.replace("i(4)", "i(5)")), [3]);
        // A reader may not see it, the compiler does.
        for (was, is) in [
            ("a && b", "a & &b"),
            ("\"a b\"", "\"a  b\""),
            ("\"a\nb\"", "\"a\n b\""),
            ("'a'", "' '"),
            ("/// a\nx", "/// b\nx"),
            ("r#\"a\"#", "r#\" a\"#"),
        ] {
            assert!(!changed(was, is).is_empty(), "{was} -> {is}");
        }
        assert_eq!(changed("x // a\n", "x // b\n"), [0u32; 0]);
        let moved = old
            .replace("    i(4);\n", "")
            .replace("2, 3); }", "2, 3); i(4); }");
        assert_eq!(changed(old, &moved), [2]);
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
            let touched = touched_lines(Some(old.concat().as_bytes()), new.concat().as_bytes());
            let mut from = old.iter();
            for (index, line) in new.iter().enumerate() {
                if !touched.contains(&u32::try_from(index + 1).unwrap()) {
                    prop_assert!(from.any(|o| o == line), "line {} is not old", index + 1);
                }
            }
        }
    }
}
