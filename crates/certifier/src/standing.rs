//! Whether a kept line still stands in the same brackets, opened by the same, under the same
//! attributes.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use crate::blocks::Block;
use crate::scan::Scanned;
use flightproof_core::Digest;

/// Where the lines of two texts stand.
pub(crate) struct Standing<'a> {
    old: &'a Scanned<'a>,
    new: &'a Scanned<'a>,
    kept: (Vec<usize>, Vec<usize>),
    functions: (BTreeSet<Option<Digest>>, BTreeSet<Option<Digest>>),
    /// Brackets of both that were compared before.
    known: RefCell<HashMap<(usize, usize), bool>>,
}

impl<'a> Standing<'a> {
    pub(crate) fn of(old: &'a Scanned<'a>, new: &'a Scanned<'a>, pairs: &[(usize, usize)]) -> Self {
        let names = |of: &Scanned<'_>| of.blocks.iter().map(|b| b.function).collect();
        Self {
            old,
            new,
            kept: pairs.iter().copied().unzip(),
            functions: (names(old), names(new)),
            known: RefCell::default(),
        }
    }

    /// Whether a line of the old text and one of the new stand in the same.
    pub(crate) fn is_same(&self, old: usize, new: usize) -> bool {
        match (self.old.lines.get(old), self.new.lines.get(new)) {
            (Some(was), Some(is)) => was.under == is.under && self.are_same(was.block, is.block),
            _ => false,
        }
    }

    /// The kept lines that open what one line stands in and the other does not: what decides now
    /// whether it runs, or did so before.
    pub(crate) fn openers(&self, old: usize, new: usize) -> BTreeSet<usize> {
        let block = |of: &Scanned<'_>, line: usize| of.lines.get(line).map(|line| line.block);
        let was = around(self.old, block(self.old, old));
        let is = around(self.new, block(self.new, new));
        let kept = |(line, nth): (usize, usize)| {
            let at = self.kept.0.binary_search(&line).ok()?;
            self.kept.1.get(at).map(|line| (*line, nth))
        };
        let was: BTreeSet<_> = was.into_iter().filter_map(kept).collect();
        let is = is.into_iter();
        let is: BTreeSet<_> = is
            .filter(|(line, _)| self.kept.1.binary_search(line).is_ok())
            .collect();
        was.symmetric_difference(&is)
            .map(|(line, _)| *line)
            .collect()
    }

    /// Outwards until the answer is known.
    fn are_same(&self, mut old: usize, mut new: usize) -> bool {
        let mut passed = Vec::new();
        let answer = loop {
            if let Some(known) = self.known.borrow().get(&(old, new)) {
                break *known;
            }
            passed.push((old, new));
            let (Some(was), Some(is)) = (self.old.blocks.get(old), self.new.blocks.get(new)) else {
                break false;
            };
            if was.says != is.says || (old == 0) != (new == 0) {
                break false;
            }
            if old == 0 {
                break true;
            }
            if !self.is_opened_alike(was, is) {
                break false;
            }
            (old, new) = (was.parent, is.parent);
        };
        let known = passed.into_iter().map(|pair| (pair, answer));
        self.known.borrow_mut().extend(known);
        answer
    }

    /// On a kept line, by the same bracket of it, or on edited lines between the same kept ones;
    /// of the same function, unless its name is new.
    fn is_opened_alike(&self, was: &Block, is: &Block) -> bool {
        let places = (
            self.kept.0.binary_search(&was.line),
            self.kept.1.binary_search(&is.line),
        );
        let (old, new) = (was.function, is.function);
        let renamed = !self.functions.0.contains(&new) && !self.functions.1.contains(&old);
        places.0 == places.1 && (places.0.is_err() || was.nth == is.nth) && (old == new || renamed)
    }
}

/// Most brackets around a line that are looked at. No text that compiles here is nested so deep.
const MAX_AROUND: usize = 256;

/// The brackets around a line, by the lines that open them.
fn around(of: &Scanned<'_>, innermost: Option<usize>) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut next = innermost;
    while let Some(block) = next.filter(|at| *at != 0).and_then(|at| of.blocks.get(at)) {
        out.push((block.line, block.nth));
        next = Some(block.parent).filter(|_| out.len() < MAX_AROUND);
    }
    out
}
