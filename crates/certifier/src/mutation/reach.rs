use std::collections::BTreeSet;

use super::guard::{EACH_SELECTOR, REACH_SELECTOR, reach_mark};
use super::plan::MutationPlan;

/// What a run is handed that selects nothing and tells what it came across.
pub const REACHING: u64 = REACH_SELECTOR;

/// What a run is handed that takes its numbers from standard input, eight bytes each, and runs once
/// for each of them.
pub const EACH: u64 = EACH_SELECTOR;

/// One of several runs in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// How it ended, as `wait` tells it.
    pub status: u32,
    /// How long it took.
    pub microseconds: u64,
    /// What it wrote to standard output.
    pub stdout: &'a [u8],
}

/// What a run of a survey came across.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Calls of the guard.
    pub spent: u64,
    /// Selectors of the mutants it reached. A mutant beyond them cannot change what it did.
    pub selectors: BTreeSet<u64>,
}

impl MutationPlan {
    /// What the guard told at the end of a [`REACHING`] run's standard output, and what the program
    /// itself wrote before. `None` if the run did not end in the ordinary way.
    pub fn reach<'a>(&self, stdout: &'a [u8]) -> Option<(Reach, &'a [u8])> {
        let mark = reach_mark(self.seed());
        let at = stdout.windows(mark.len()).rposition(|w| *w == mark)?;
        let (own, told) = stdout.split_at(at);
        let mut words = told.get(mark.len()..)?.chunks(8).map(|word| {
            let word: Option<[u8; 8]> = word.try_into().ok();
            word.map(u64::from_le_bytes)
        });
        let (spent, count) = (words.next()??, words.next()??);
        let selectors = words.collect::<Option<BTreeSet<u64>>>()?;
        // More than fits is counted above bit 32, and then equals no number of selectors.
        (count == selectors.len() as u64).then_some((Reach { spent, selectors }, own))
    }

    /// The runs of an [`EACH`] run, in the order of its numbers, as far as they came to an end.
    pub fn parts<'a>(&self, stdout: &'a [u8]) -> Vec<Part<'a>> {
        let mark = reach_mark(self.seed());
        let mut parts = Vec::new();
        let mut rest = stdout;
        while let Some(at) = rest.windows(mark.len()).position(|w| *w == mark) {
            let (own, told) = rest.split_at(at);
            let Some((told, after)) = told.split_at_checked(mark.len() + 24) else {
                break;
            };
            let word = |from: usize| -> Option<u64> {
                let word = told.get(mark.len() + from..)?.first_chunk()?;
                Some(u64::from_le_bytes(*word))
            };
            let (Some(number), Some(status), Some(microseconds)) = (word(0), word(8), word(16))
            else {
                break;
            };
            let Ok(status) = u32::try_from(status) else {
                break;
            };
            if number != parts.len() as u64 {
                break;
            }
            parts.push(Part {
                status,
                microseconds,
                stdout: own,
            });
            rest = after;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::{MutationInput, Purpose};

    fn plan() -> MutationPlan {
        MutationPlan::new(MutationInput {
            files: Vec::new(),
            roots: [].into(),
            beside: Vec::new(),
            seed: [7; 32],
            purpose: Purpose::Survey,
        })
        .unwrap()
    }

    fn told(count: u64, selectors: &[u64]) -> Vec<u8> {
        let words = [5, count].into_iter().chain(selectors.iter().copied());
        let words = words.flat_map(u64::to_le_bytes);
        b"answer\n"
            .iter()
            .copied()
            .chain(reach_mark(&[7; 32]))
            .chain(words)
            .collect()
    }

    #[test]
    fn what_was_reached_stands_behind_what_the_program_wrote() {
        let stdout = told(2, &[9, 4]);
        let (reach, own) = plan().reach(&stdout).unwrap();
        assert_eq!(own, b"answer\n");
        assert_eq!(reach.spent, 5);
        assert_eq!(reach.selectors, BTreeSet::from([4, 9]));
    }

    #[test]
    fn a_count_that_does_not_fit_and_a_word_that_is_cut_tell_nothing() {
        let plan = plan();
        assert!(plan.reach(b"answer\n").is_none());
        assert!(plan.reach(&told(3, &[9, 4])).is_none());
        assert!(plan.reach(&told(2 | 1 << 32, &[9, 4])).is_none());
        let whole = told(2, &[9, 4]);
        assert!(plan.reach(&whole[..whole.len() - 1]).is_none());
    }

    #[test]
    fn the_runs_of_one_start_are_told_apart_up_to_the_first_that_is_not_told_whole() {
        let end = |number: u64, status: u64| {
            let words = [number, status, 5 + number]
                .into_iter()
                .flat_map(u64::to_le_bytes);
            reach_mark(&[7; 32])
                .into_iter()
                .chain(words)
                .collect::<Vec<u8>>()
        };
        let stdout = [
            &b"one\n"[..],
            &end(0, 0),
            &end(1, 101 << 8),
            b"three",
            &end(2, 9),
        ]
        .concat();
        let plan = plan();
        let part = |status, microseconds, stdout| Part {
            status,
            microseconds,
            stdout,
        };
        let all = [
            part(0, 5, &b"one\n"[..]),
            part(101 << 8, 6, b""),
            part(9, 7, b"three"),
        ];
        assert_eq!(plan.parts(&stdout), all);
        assert_eq!(plan.parts(&stdout[..stdout.len() - 1]), all[..2]);
        let skipped = [&b"one\n"[..], &end(0, 0), &end(2, 0)].concat();
        assert_eq!(plan.parts(&skipped), all[..1]);
        assert!(plan.parts(&end(0, u64::MAX)).is_empty());
        assert!(plan.parts(b"nothing").is_empty());
    }
}
