use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::{Range, RangeInclusive};

use super::operator::Operator;

/// Everything the walker found in one file.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Expressions with alternatives, by start and then outermost first.
    pub(super) regions: BTreeMap<(usize, Reverse<usize>), Vec<Alternative>>,
    /// Starts of function bodies and branches: where the first statement begins.
    pub(super) entries: BTreeMap<usize, Vec<Alternative>>,
    /// Closing brackets of `if let` without `else`, and of `while let`: the side that is not written.
    pub(super) elses: BTreeMap<usize, Else>,
    /// Ends of patterns of match arms that can be left out.
    pub(super) guards: BTreeMap<usize, Vec<Alternative>>,
    /// Statements and values that can be left out, by start and then outermost first.
    pub(super) effects: BTreeMap<(usize, Reverse<usize>), Effect>,
    /// Stretches in which no mutant can show what a change of them does.
    pub(super) hidden: Vec<(Range<usize>, Silence)>,
    /// Text to insert if a region inside `within` is rendered.
    pub(super) insertions: Vec<Insertion>,
    /// Attributes of items that are there for tests only.
    pub(super) excused: Vec<Range<usize>>,
    /// Items that are there for tests only, as far as the text says.
    pub(super) gates: Vec<Gate>,
    /// Stretches without mutants, and why.
    pub(super) silences: Vec<(Range<usize>, Silence)>,
    /// Whole functions with their bodies.
    pub(super) functions: Vec<Function>,
    /// The walk was ended by a limit.
    pub(super) overflow: bool,
}

/// One possible replacement.
#[derive(Debug, Clone)]
pub(super) struct Alternative {
    pub(super) operator: Operator,
    /// Byte offset the mutant is named by.
    pub(super) at: usize,
    /// Source bytes the mutant stands for.
    pub(super) span: Range<usize>,
    pub(super) original: String,
    pub(super) replacement: String,
    /// The code that is rendered.
    pub(super) code: String,
    /// The original in the form of the code, where its text has another.
    pub(super) own: Option<String>,
    pub(super) function: String,
    /// Offered by a name alone. Where the compiler refuses it, the name meant something else, and
    /// nothing is said of the line.
    pub(super) guessed: bool,
    /// Stands in for the values of a function of which the compiler takes none.
    pub(super) fallback: bool,
}

/// Something that is there for its effect alone.
#[derive(Debug, Clone)]
pub(super) struct Effect {
    pub(super) form: EffectForm,
    pub(super) alternative: Alternative,
}

/// The side of a choice by a pattern that is not written.
#[derive(Debug, Clone)]
pub(super) struct Else {
    pub(super) alternative: Alternative,
    /// The word `while`, where that is what chooses.
    pub(super) looping: Option<Range<usize>>,
}

/// What an effect is in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EffectForm {
    /// A statement, its semicolon left out.
    Statement,
    /// The value of a name that nobody uses.
    UnusedValue,
}

#[derive(Debug)]
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) within: Range<usize>,
    pub(super) text: String,
}

/// A test-only item: a tripwire goes to `at`, and nothing inside is mutated.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) at: usize,
    pub(super) range: Range<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) range: Range<usize>,
    pub(super) body: Range<usize>,
}

/// Why a changed line of code carries no mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Silence {
    /// In a constant: evaluated by the compiler, no mutant can be switched there.
    ConstContext,
    /// In unsafe code, which is never mutated.
    Unsafe,
    /// In an item for tests only. The build proves that it is not part of the program.
    TestOnly,
    /// In a macro whose arguments are not known to be expressions.
    Macro,
    /// In a build script or a procedural macro.
    BuildTime,
    /// Only the mutants of the whole function or branch cover it.
    WholeFunction,
    /// Every mutant on it was refused by the compiler.
    Unviable,
    /// In a function, and nothing on it can be mutated.
    NoOperator,
    /// Outside any function: a declaration.
    Declaration,
    /// In a pattern of alternatives or ranges, or one whose branch has no mutant: that the branch is
    /// taken does not show which part of the pattern took it.
    Pattern,
    /// An attribute that may decide what is compiled.
    Attribute,
    /// In a debug assertion that does more than compare: the shipped program may not contain it.
    DebugOnly,
    /// A declaration that gives another meaning to unchanged lines.
    Rebound,
    /// An implementation that is gone, so that unchanged lines reach another one.
    Removed,
    /// A name of the standard library that acts on something no case compares: files, processes,
    /// the network, the environment. In tests: a process or the network.
    Effect,
    /// A manifest key that decides what is built.
    Manifest,
    /// Data that is compiled into the program or read while it is built.
    CompiledData,
    /// Under a condition of which nobody can tell whether the judged build meets it.
    Conditional,
    /// Every mutant of it that a case noticed ended the program: no answer shows that its value matters.
    CrashOnly,
    /// Under a condition that the judged build does not meet, or in a file that it does not read.
    /// Refused by a code of its own.
    NotCompiled,
}

impl Silence {
    /// Whether code without a mutant for this reason could hide behaviour: then it must be waived.
    ///
    /// Code that is not compiled has its own rule. The other three cannot: test-only code is proven to be no part of the program; code that
    /// only a whole function's mutants cover is reached by a case, and its choices, literals and
    /// effects have mutants of their own; a declaration acts through the code that uses it, which
    /// is either changed, and mutated, or unchanged, and then the declaration is `rebound`.
    pub const fn must_be_waived(self) -> bool {
        !matches!(
            self,
            Self::TestOnly | Self::WholeFunction | Self::Declaration | Self::NotCompiled
        )
    }

    /// The stable name, as on a certificate.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConstContext => "const-context",
            Self::Unsafe => "unsafe",
            Self::TestOnly => "test-only",
            Self::Macro => "macro",
            Self::BuildTime => "build-time",
            Self::WholeFunction => "whole-function",
            Self::Unviable => "unviable",
            Self::NoOperator => "no-operator",
            Self::Declaration => "declaration",
            Self::Pattern => "pattern",
            Self::Attribute => "attribute",
            Self::DebugOnly => "debug-only",
            Self::Rebound => "rebound",
            Self::Removed => "removed",
            Self::Effect => "effect",
            Self::Manifest => "manifest",
            Self::CompiledData => "compiled-data",
            Self::Conditional => "conditional",
            Self::CrashOnly => "crash-only",
            Self::NotCompiled => "not-compiled",
        }
    }
}

/// Where the lines of a text start.
#[derive(Debug, Clone)]
pub(crate) struct LineIndex(Vec<usize>);

impl LineIndex {
    pub(crate) fn of(text: &str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(starts).collect())
    }

    /// 1-based line of a byte offset.
    pub(crate) fn line(&self, at: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    /// 1-based column, counted in bytes, of a byte offset.
    pub(crate) fn column(&self, at: usize) -> u32 {
        let line = self.0.partition_point(|start| *start <= at);
        let start = line
            .checked_sub(1)
            .and_then(|l| self.0.get(l))
            .unwrap_or(&0);
        u32::try_from(at.saturating_sub(*start) + 1).unwrap_or(u32::MAX)
    }

    /// The stretch of bytes a line begins with.
    pub(super) fn beginning(&self, line: u32) -> Range<usize> {
        let at = usize::try_from(line)
            .unwrap_or(usize::MAX)
            .saturating_sub(1);
        let start = self.0.get(at).copied().unwrap_or_default();
        start..start + 1
    }

    /// The lines a stretch of bytes lies on.
    pub(crate) fn lines(&self, span: &Range<usize>) -> RangeInclusive<u32> {
        self.line(span.start)..=self.line(span.end.saturating_sub(1).max(span.start))
    }

    /// Whether the stretch touches one of these lines.
    pub(crate) fn touches(&self, span: &Range<usize>, lines: &BTreeSet<u32>) -> bool {
        lines.range(self.lines(span)).next().is_some()
    }
}

/// Lines that some stretches cover, in order and apart from each other: never a list of the lines
/// themselves, for a stranger writes thousands of stretches over thousands of lines.
#[derive(Debug, Default)]
pub(super) struct Covered(Vec<(u32, u32)>);

impl FromIterator<RangeInclusive<u32>> for Covered {
    fn from_iter<I: IntoIterator<Item = RangeInclusive<u32>>>(stretches: I) -> Self {
        let stretches = stretches.into_iter().map(RangeInclusive::into_inner);
        let mut all: Vec<(u32, u32)> = stretches.collect();
        all.sort_unstable();
        let mut apart: Vec<(u32, u32)> = Vec::new();
        for (start, end) in all {
            match apart.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(*last),
                _ => apart.push((start, end)),
            }
        }
        Self(apart)
    }
}

impl Covered {
    pub(super) fn contains(&self, line: u32) -> bool {
        let next = self.0.partition_point(|(start, _)| *start <= line);
        let before = next.checked_sub(1).and_then(|at| self.0.get(at));
        before.is_some_and(|(_, end)| line <= *end)
    }
}

/// Stretches, to be asked which others lie within one of them.
#[derive(Debug, Default)]
pub(crate) struct Stretches(Vec<Range<usize>>);

impl<'a> FromIterator<&'a Range<usize>> for Stretches {
    fn from_iter<I: IntoIterator<Item = &'a Range<usize>>>(stretches: I) -> Self {
        let mut all: Vec<Range<usize>> = stretches.into_iter().cloned().collect();
        all.sort_by_key(|stretch| (stretch.start, Reverse(stretch.end)));
        // What one that begins before it holds adds nothing.
        let mut end = None;
        all.retain(|stretch| {
            let further = end.is_none_or(|end| stretch.end > end);
            end = end.max(Some(stretch.end));
            further
        });
        Self(all)
    }
}

impl Stretches {
    pub(crate) fn hold(&self, inner: &Range<usize>) -> bool {
        let next = self.0.partition_point(|outer| outer.start <= inner.start);
        let before = next.checked_sub(1).and_then(|at| self.0.get(at));
        before.is_some_and(|outer| inner.end <= outer.end)
    }
}

/// The reason of the shortest stretch that covers each of these lines; of several such, the first.
pub(super) fn innermost(
    silences: &[(Range<usize>, Silence)],
    index: &LineIndex,
    lines: &BTreeSet<u32>,
) -> BTreeMap<u32, Silence> {
    let all = silences.iter().enumerate();
    let all = all.map(|(number, (range, why))| (index.lines(range), (range.len(), number), *why));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(lines, ..)| *lines.start());
    let mut next = all.into_iter().peekable();
    let mut around = BinaryHeap::new();
    let mut found = BTreeMap::new();
    for line in lines {
        while let Some((lines, rank, why)) = next.next_if(|(lines, ..)| lines.start() <= line) {
            around.push((Reverse(rank), *lines.end(), why));
        }
        // Nothing that ended comes back.
        while around.peek().is_some_and(|(_, end, _)| end < line) {
            around.pop();
        }
        found.extend(around.peek().map(|(_, _, why)| (*line, *why)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_covered_by_stretches_in_any_order() {
        let covered: Covered = [7..=9, 1..=2, 8..=8, 2..=3, 12..=12].into_iter().collect();
        let lines: Vec<u32> = (0..14).filter(|line| covered.contains(*line)).collect();
        assert_eq!(lines, [1, 2, 3, 7, 8, 9, 12]);
        assert!(!Covered::default().contains(1));
    }

    #[test]
    fn a_stretch_lies_within_one_that_begins_before_it_and_ends_behind() {
        let all = [5..9, 1..4, 2..3, 5..6, 2..4, 8..20];
        let stretches: Stretches = all.iter().collect();
        for start in 0..22 {
            for end in start..22 {
                let held = all.iter().any(|of| of.start <= start && end <= of.end);
                assert_eq!(stretches.hold(&(start..end)), held, "{start}..{end}");
            }
        }
    }

    #[test]
    fn the_shortest_stretch_says_why_and_of_two_the_first() {
        use Silence::{Attribute, Macro, Pattern, Unsafe};
        let index = LineIndex::of("aa\nbb\ncc\ndd\nee\n");
        let silences = [
            (0..12, Unsafe),
            (3..8, Macro),
            (6..8, Pattern),
            (6..8, Attribute),
        ];
        let found = innermost(&silences, &index, &(1..=5).collect());
        let found: Vec<_> = found.into_iter().collect();
        assert_eq!(found, [(1, Unsafe), (2, Macro), (3, Pattern), (4, Unsafe)]);
    }
}
