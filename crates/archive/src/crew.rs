//! Work on many files, shared by two threads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Does all batches, on two threads where there are two processors, and returns what they gave in
/// the order of the items. `start` makes what one thread keeps from batch to batch.
///
/// # Errors
/// The first error of any batch; the rest is not begun.
pub(crate) fn share<S, R: Send, E: Send>(
    batches: &[Range<usize>],
    start: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, Range<usize>) -> Result<Vec<R>, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let work = || {
        let mut state = start();
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let results = each(&mut state, batch.clone());
            let results = results.inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            done.push((batch.start, results));
        }
        Ok(done)
    };
    let mut done = thread::scope(|scope| {
        // Where no second thread can be had, one does it all.
        let second = (batches.len() > 1 && processors() > 1)
            .then(|| thread::Builder::new().spawn_scoped(scope, work).ok())
            .flatten();
        let mut done = work()?;
        match second.map(thread::ScopedJoinHandle::join) {
            None => {}
            Some(Ok(more)) => done.append(&mut more?),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
        Ok(done)
    })?;
    done.sort_by_key(|(first, _)| *first);
    Ok(done.into_iter().flat_map(|(_, results)| results).collect())
}

/// Cuts items, given by path and size in bytes, into runs for one thread each: long enough to be
/// worth fetching, short enough to even out, and where possible cut where the directory changes,
/// so that two threads seldom meet in one. Large files come first: the last to begin decides when
/// all is done.
pub(crate) fn batches<'a>(items: impl Iterator<Item = (&'a str, u64)>) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let mut now = Run::default();
    for (index, (path, size)) in items.enumerate() {
        let parent = path.rsplit_once('/').map(|(parent, _)| parent);
        if now.is_full(parent, size) {
            batches.push((now.bytes, now.first..index));
            now = Run {
                first: index,
                ..Run::default()
            };
        }
        now.files += 1;
        now.bytes += size;
        now.parent = parent;
    }
    if now.files > 0 {
        batches.push((now.bytes, now.first..now.first + now.files));
    }
    batches.sort_by_key(|(bytes, _)| std::cmp::Reverse(bytes / BATCH_BYTES));
    batches.into_iter().map(|(_, range)| range).collect()
}

/// The run that is being cut.
#[derive(Default)]
struct Run<'a> {
    first: usize,
    files: usize,
    bytes: u64,
    parent: Option<&'a str>,
}

impl Run<'_> {
    /// Whether a file of this directory and size belongs to the next run.
    fn is_full(&self, parent: Option<&str>, size: u64) -> bool {
        let turns = self.files >= FEW_FILES && self.parent != parent;
        let large = self.files > 0 && self.bytes.saturating_add(size) > BATCH_BYTES;
        turns || large || self.files == BATCH_FILES
    }
}

pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Bytes after which a run ends, 1 MiB: under a millisecond of hashing.
const BATCH_BYTES: u64 = 1 << 20;
/// Files after which a run ends.
const BATCH_FILES: usize = 256;
/// Files before which a change of directory does not end a run.
const FEW_FILES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items(sizes: &[u64]) -> Vec<(String, u64)> {
        let path = |i: usize| format!("{}/{i}", i / 50);
        sizes
            .iter()
            .enumerate()
            .map(|(i, size)| (path(i), *size))
            .collect()
    }

    fn cut(items: &[(String, u64)]) -> Vec<Range<usize>> {
        batches(items.iter().map(|(path, size)| (path.as_str(), *size)))
    }

    #[test]
    fn runs_end_where_directories_do() {
        let cuts = cut(&items(&[1; 120]));
        assert_eq!(cuts, [0..50, 50..100, 100..120]);
    }

    #[test]
    fn large_files_stand_alone_and_first() {
        let cuts = cut(&items(&[1, 5 << 20, 1, 9 << 20]));
        assert_eq!(cuts, [3..4, 1..2, 0..1, 2..3]);
    }

    #[test]
    fn no_run_is_empty_and_one_ends_a_byte_above_its_size() {
        assert!(cut(&[]).is_empty());
        assert_eq!(cut(&items(&[5 << 20, 1])), [0..1, 1..2]);
        assert_eq!(cut(&items(&[1 << 19, 1 << 19, 1])), [0..2, 2..3]);
    }

    #[test]
    fn small_runs_stay_in_order() {
        assert_eq!(cut(&items(&[1, 5 << 20, 3])), [1..2, 0..1, 2..3]);
    }

    #[test]
    fn an_error_of_either_thread_is_the_answer() {
        let cuts: Vec<_> = (0..100).map(|i| i..i + 1).collect();
        for bad in 0..100 {
            let done = share(
                &cuts,
                || (),
                |(), range| match range.contains(&bad) {
                    true => Err(bad),
                    false => Ok(vec![range.start]),
                },
            );
            assert_eq!(done, Err(bad));
        }
    }

    proptest! {
        #[test]
        fn every_item_is_done_once_and_answered_in_order(
            sizes in proptest::collection::vec(prop_oneof![0u64..5000, 0u64..3_000_000], 0..400)
        ) {
            let cuts = cut(&items(&sizes));
            let done = share(&cuts, || (), |(), range| Ok::<_, ()>(range.collect()));
            prop_assert_eq!(done, Ok((0..sizes.len()).collect::<Vec<_>>()));
        }
    }
}
