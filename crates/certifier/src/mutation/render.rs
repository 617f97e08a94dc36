use std::cmp::Reverse;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::ops::Range;
use std::slice::Iter;

/// A place in the original text where something is put in.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    /// What it stands around; empty for an insertion.
    pub(super) span: Range<usize>,
    pub(super) kind: SpotKind,
}

#[derive(Debug, Clone)]
pub(super) enum SpotKind {
    /// An expression that is one of several.
    Expression(Vec<Arm>),
    /// The start of a function body.
    Entry(Vec<Arm>),
    /// The closing bracket of an `if let` without `else`.
    Else(Vec<Arm>),
    /// The closing bracket of a `while let`, which is written as `loop { if let`.
    Leave(Vec<Arm>),
    /// The end of an arm's pattern: the arm is there or not.
    Guard(Vec<Arm>),
    /// A statement that is there or not.
    Statement(Vec<Arm>),
    /// The value of an unused name, there or not.
    UnusedValue(Vec<Arm>),
    /// Plain text.
    Text(String),
    /// An error for the compiler that fires if this place is part of the program.
    Tripwire,
}

/// One alternative that is compiled in.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    /// Index of the mutant; none for a placebo.
    pub(super) mutant: Option<usize>,
    pub(super) selector: u64,
    pub(super) code: String,
}

/// The rewritten text, and what lies where in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Rendered {
    pub(super) text: String,
    /// Alternatives by their place in the new text.
    pub(super) alternatives: Vec<(Range<usize>, usize)>,
    /// Whole replacement regions with the mutants in them.
    pub(super) regions: Vec<(Range<usize>, Vec<usize>)>,
    /// Tripwires with the place of their gate in the original.
    pub(super) tripwires: Vec<(Range<usize>, usize)>,
    /// Stretches of the original: start, start in the new text, length.
    copies: Vec<(usize, usize, usize)>,
}

/// Text in every tripwire.
pub(super) const TRIPWIRE: &str = "::core::compile_error!{\"for tests only\"} ";

impl Rendered {
    /// Rewrites `body`; `prefix` (a byte order mark, a `#!` line) stays in front of it.
    pub(super) fn of(prefix: &str, body: &str, guard: &str, spots: &mut [Spot]) -> Self {
        spots.sort_by_key(|s| (s.span.start, !s.span.is_empty(), Reverse(s.span.end)));
        let mut pen = Pen {
            body,
            guard,
            done: Self {
                text: prefix.to_owned(),
                ..Self::default()
            },
        };
        let mut spots = spots.iter().peekable();
        // Beyond the last byte, so that an insertion at the very end is taken along.
        pen.stretch(0..body.len() + 1, &mut spots);
        pen.done
    }

    /// Where an original stretch lies in the new text.
    pub(super) fn place(&self, original: &Range<usize>) -> Range<usize> {
        self.moved(original.start)..self.moved(original.end)
    }

    fn moved(&self, at: usize) -> usize {
        let next = self.copies.partition_point(|(from, _, _)| *from <= at);
        match next.checked_sub(1).and_then(|i| self.copies.get(i)) {
            Some((from, to, length)) => to + (at - from).min(*length),
            None => 0,
        }
    }
}

struct Pen<'a> {
    body: &'a str,
    guard: &'a str,
    done: Rendered,
}

impl Pen<'_> {
    fn stretch(&mut self, range: Range<usize>, spots: &mut Peekable<Iter<'_, Spot>>) {
        let mut cursor = range.start;
        while let Some(spot) = spots.next_if(|s| s.span.start < range.end) {
            self.copy(cursor..spot.span.start);
            self.spot(spot, spots);
            cursor = spot.span.end.max(cursor);
        }
        self.copy(cursor..range.end.min(self.body.len()));
    }

    fn copy(&mut self, range: Range<usize>) {
        if let Some(text) = self.body.get(range.clone()).filter(|t| !t.is_empty()) {
            let to = self.done.text.len();
            self.done.copies.push((range.start, to, text.len()));
            self.done.text.push_str(text);
        }
    }

    fn spot(&mut self, spot: &Spot, spots: &mut Peekable<Iter<'_, Spot>>) {
        let start = self.done.text.len();
        match &spot.kind {
            SpotKind::Text(text) => self.done.text.push_str(text),
            SpotKind::Tripwire => {
                self.done.text.push_str(TRIPWIRE);
                let place = start..self.done.text.len();
                self.done.tripwires.push((place, spot.span.start));
            }
            SpotKind::Else(arms) => {
                self.done.text.push_str("} else { ");
                self.choice(arms);
                self.arms(arms, "");
                self.done.text.push_str("_ => {} } }");
                self.close(start, arms);
            }
            SpotKind::Leave(arms) => {
                self.done.text.push_str("} else { ");
                self.choice(arms);
                self.arms(arms, "");
                self.done.text.push_str("_ => {} } break } }");
                self.close(start, arms);
            }
            SpotKind::Entry(arms) => {
                self.choice(arms);
                self.arms(arms, "");
                self.done.text.push_str("_ => {} } ");
                self.close(start, arms);
            }
            SpotKind::Guard(arms) => {
                self.done.text.push_str(" if ");
                self.choice(arms);
                self.arms(arms, "");
                self.done.text.push_str("_ => true }");
                self.close(start, arms);
            }
            SpotKind::Statement(arms) => {
                self.choice(arms);
                self.done.text.push_str("0 => { ");
                self.stretch(spot.span.clone(), spots);
                self.done.text.push_str("; } ");
                self.arms(arms, "");
                self.done.text.push_str("_ => {} }");
                self.close(start, arms);
            }
            SpotKind::UnusedValue(arms) => {
                self.choice(arms);
                self.done
                    .text
                    .push_str("0 => ::core::option::Option::Some(");
                self.stretch(spot.span.clone(), spots);
                self.done.text.push_str("), ");
                self.arms(arms, "_");
                self.done.text.push('}');
                self.close(start, arms);
            }
            SpotKind::Expression(arms) => {
                self.done.text.push('(');
                self.choice(arms);
                // The original comes first: the compiler takes the type from it and puts the
                // blame for what does not fit on the alternatives.
                self.done.text.push_str("0 => (");
                self.stretch(spot.span.clone(), spots);
                self.done.text.push_str("), ");
                self.arms(arms, "_");
                self.done.text.push_str("})");
                self.close(start, arms);
            }
        }
    }

    fn choice(&mut self, arms: &[Arm]) {
        let ids: Vec<String> = arms
            .iter()
            .map(|a| format!("{:#x}u64", a.selector))
            .collect();
        // Writing to a String cannot fail.
        let _ = write!(
            self.done.text,
            "match ::{}::pick(&[{}]) {{ ",
            self.guard,
            ids.join(", ")
        );
    }

    /// The arms, numbered from 1; the last pattern is `last` where it is given.
    fn arms(&mut self, arms: &[Arm], last: &str) {
        for (at, arm) in arms.iter().enumerate() {
            if at + 1 == arms.len() && !last.is_empty() {
                self.done.text.push_str(last);
            } else {
                let _ = write!(self.done.text, "{}", at + 1);
            }
            self.done.text.push_str(" => (");
            let start = self.done.text.len();
            self.done.text.push_str(&arm.code);
            let place = start..self.done.text.len();
            self.done.text.push_str("), ");
            self.done
                .alternatives
                .extend(arm.mutant.map(|mutant| (place, mutant)));
        }
    }

    fn close(&mut self, start: usize, arms: &[Arm]) {
        let mutants = arms.iter().filter_map(|arm| arm.mutant).collect();
        self.done
            .regions
            .push((start..self.done.text.len(), mutants));
    }
}
