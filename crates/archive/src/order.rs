//! Which paths may stand beside each other.

use std::collections::HashSet;

/// The first path that stands twice.
pub(crate) fn duplicate<'a>(paths: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    // What ascends holds nothing twice, and needs no memory to tell.
    unsorted(paths.clone())?;
    let mut seen = HashSet::new();
    paths.into_iter().find(|path| !seen.insert(*path))
}

/// The first pair that does not ascend by UTF-8 bytes.
pub(crate) fn unsorted<'a>(paths: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, &'a str)> {
    let mut paths = paths.into_iter();
    let mut before = paths.next()?;
    for path in paths {
        if before >= path {
            return Some((before, path));
        }
        before = path;
    }
    None
}

/// In ascending paths, the first file that is also the directory of a later one.
///
/// The two need not be neighbours: in `a`, `a-b`, `a/c` the byte `-` sorts before `/`. So every
/// path that is a prefix of the current one stays on a stack. Looking at the top is enough: a
/// deeper one that is its directory would have been found when the top was pushed.
pub(crate) fn conflict<'a>(paths: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, &'a str)> {
    conflict_in(paths, &mut 0)
}

/// Counts comparisons: each path is pushed once, so each is compared once and once more for what it
/// pops.
fn conflict_in<'a>(
    paths: impl IntoIterator<Item = &'a str>,
    comparisons: &mut usize,
) -> Option<(&'a str, &'a str)> {
    let mut prefixes: Vec<&str> = Vec::new();
    for path in paths {
        while let Some(top) = prefixes.last() {
            *comparisons += 1;
            match path.strip_prefix(top) {
                Some(rest) if rest.starts_with('/') => return Some((top, path)),
                Some(_) => break,
                None => prefixes.pop(),
            };
        }
        prefixes.push(path);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Check = for<'a> fn(&[&'a str]) -> Option<(&'a str, &'a str)>;

    /// The bug git shipped: only neighbours are looked at.
    fn neighbours_only<'a>(paths: &[&'a str]) -> Option<(&'a str, &'a str)> {
        paths.windows(2).find_map(|pair| match pair {
            [a, b] if b.strip_prefix(a).is_some_and(|r| r.starts_with('/')) => Some((*a, *b)),
            _ => None,
        })
    }

    fn holds(check: Check) -> bool {
        [
            (vec!["a", "a/c"], true),
            (vec!["a", "a-b", "a/c"], true),
            (vec!["x", "x.1", "x.1.2", "x.1/y"], true),
            (vec!["x", "x.1.2", "x.1/z", "x/y"], true),
            (vec!["a", "a b", "a!", "a/c"], true),
            (vec!["a-b", "a/c", "ab"], false),
            (vec!["a.rs", "a/b", "a/bc", "a/b-/c"], false),
        ]
        .iter()
        .all(|(paths, conflicting)| check(paths).is_some() == *conflicting)
    }

    #[test]
    fn conflicts_are_found_however_far_apart_they_stand() {
        assert!(holds(|paths| conflict(paths.iter().copied())));
    }

    #[test]
    fn no_order_of_paths_costs_more_than_two_comparisons_a_path() {
        const PATHS: usize = 3000;
        let flat = |n: usize| format!("{n:06}");
        let growing = |n: usize| "a".repeat(1 + n % 500) + &flat(n / 500);
        let prefixes_then_none = |n: usize| if n < 500 { "a".repeat(n + 1) } else { flat(n) };
        let makers: [&dyn Fn(usize) -> String; 3] = [&flat, &growing, &prefixes_then_none];
        for make in makers {
            let mut paths: Vec<String> = (0..PATHS).map(make).collect();
            paths.sort();
            let mut comparisons = 0;
            let found = conflict_in(paths.iter().map(String::as_str), &mut comparisons);
            assert_eq!(found, None);
            assert!(
                (PATHS - 1..=2 * PATHS).contains(&comparisons),
                "{comparisons}"
            );
        }
    }

    #[test]
    fn the_first_double_and_the_first_disorder_are_named() {
        for (paths, twice, disorder) in [
            (&[][..], None, None),
            (&["a"], None, None),
            (&["a", "b"], None, None),
            (&["a", "a"], Some("a"), Some(("a", "a"))),
            (&["b", "a"], None, Some(("b", "a"))),
            (&["b", "a", "b"], Some("b"), Some(("b", "a"))),
            (&["a", "c", "b", "c", "b"], Some("c"), Some(("c", "b"))),
            (&["\u{e000}", "\u{10000}"], None, None),
        ] {
            assert_eq!(duplicate(paths.iter().copied()), twice, "{paths:?}");
            assert_eq!(unsorted(paths.iter().copied()), disorder, "{paths:?}");
        }
    }

    #[test]
    fn both_paths_of_a_conflict_are_named() {
        let paths = ["a", "a-b", "a/c", "a/d"];
        assert_eq!(conflict(paths), Some(("a", "a/c")));
    }

    #[test]
    fn a_check_of_neighbours_only_would_be_noticed() {
        assert!(!holds(neighbours_only));
    }

    proptest! {
        #[test]
        fn the_stack_agrees_with_comparing_every_pair(
            paths in proptest::collection::btree_set("[a -.]{1,2}(/[a.]{1,2}){0,2}", 0..12)
        ) {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let pairwise = paths.iter().any(|a| paths.iter().any(|b| {
                b.strip_prefix(a).is_some_and(|rest| rest.starts_with('/'))
            }));
            prop_assert_eq!(conflict(paths.iter().copied()).is_some(), pairwise);
        }
    }
}
