//! Git's memory of tree ids in an index: a list of directories, each before those within it, as
//! `name NUL count SP subdirectories LF`, with the tree's id where the count is not negative.

use std::collections::BTreeSet;

/// The same memory without the directories that lead to these paths, whose ids are not known any
/// more. `None` if it cannot be read: git makes it anew.
pub(super) fn without<'n>(
    cache: &[u8],
    changed: impl Iterator<Item = &'n [u8]>,
) -> Option<Vec<u8>> {
    let stale = above(changed);
    let mut out = Vec::with_capacity(cache.len());
    let mut rest = cache;
    // The path of the innermost open directory, with a slash. For each open one, the length of the path
    // above it, and how many within it are to come.
    let mut path = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    loop {
        let (name, count, within, id, after) = record(rest)?;
        rest = after;
        let above = path.len();
        path.extend_from_slice(name);
        if !open.is_empty() {
            path.push(b'/');
        }
        let forgotten = stale.contains(&path);
        let count = if forgotten { &b"-1"[..] } else { count };
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(count);
        out.push(b' ');
        out.extend_from_slice(within.to_string().as_bytes());
        out.push(b'\n');
        if !forgotten {
            out.extend_from_slice(id);
        }
        open.push((above, within));
        // Leave every directory whose last one this was.
        loop {
            match open.last_mut() {
                None => return rest.is_empty().then_some(out),
                Some((above, 0)) => {
                    path.truncate(*above);
                    open.pop();
                }
                Some((_, left)) => {
                    *left -= 1;
                    break;
                }
            }
        }
    }
}

/// All directories that lead to a path, the root as an empty name, others with a slash at the end.
fn above<'n>(changed: impl Iterator<Item = &'n [u8]>) -> BTreeSet<Vec<u8>> {
    let mut stale = BTreeSet::from([Vec::new()]);
    for path in changed {
        let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/');
        stale.extend(
            ends.filter_map(|(end, _)| path.get(..=end))
                .map(<[u8]>::to_vec),
        );
    }
    stale
}

type Record<'a> = (&'a [u8], &'a [u8], usize, &'a [u8], &'a [u8]);

/// Name, count as text, directories within, id if there is one, and what follows.
fn record(bytes: &[u8]) -> Option<Record<'_>> {
    let (name, rest) = split(bytes, 0)?;
    let (count, rest) = split(rest, b' ')?;
    let (within, rest) = split(rest, b'\n')?;
    let within = std::str::from_utf8(within).ok()?.parse().ok()?;
    let known = std::str::from_utf8(count).ok()?.parse::<i64>().ok()? >= 0;
    let (id, rest) = rest.split_at_checked(if known { 20 } else { 0 })?;
    Some((name, count, within, id, rest))
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == at)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}
