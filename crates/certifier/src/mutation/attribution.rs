use std::collections::BTreeSet;
use std::ops::Range;

use flightproof_core::RelPath;
use flightproof_evidence::Diagnostic;

use super::plan::{FileLayout, MutationPlan};

/// What the errors of a build say about the mutants in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Indexes of the mutants that caused an error.
    pub unviable: BTreeSet<usize>,
    /// Those of them that are blamed for an error outside their own text.
    pub doubted: BTreeSet<usize>,
    /// Test-only places that are part of the program after all: path and place of the gate.
    pub opened: BTreeSet<(RelPath, usize)>,
    /// Errors that no mutant can have caused.
    pub foreign: Vec<Diagnostic>,
}

/// How surely an error is a mutant's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// It lies in the text of the mutant.
    None,
    /// It lies around the mutant, in the region the mutant was put into, or in its function.
    Nearby,
}

impl MutationPlan {
    /// Blames the errors of a failed build on mutants.
    ///
    /// An error inside an alternative is that alternative's. Otherwise the candidate's own text
    /// does not compile any more: then the smallest region around the error is blamed, else the
    /// regions inside it, else every mutant of the function. An error that touches no function
    /// with mutants is foreign.
    pub fn attribute(&self, diagnostics: &[Diagnostic]) -> Attribution {
        let mut out = Attribution::default();
        for diagnostic in diagnostics.iter().filter(|d| d.level.starts_with("error")) {
            if !self.blame(diagnostic, &mut out) && !is_summary(diagnostic) {
                out.foreign.push(diagnostic.clone());
            }
        }
        out
    }

    /// Whether somebody was found to blame.
    fn blame(&self, diagnostic: &Diagnostic, out: &mut Attribution) -> bool {
        let Ok(path) = RelPath::new(&diagnostic.file) else {
            return false;
        };
        let Some(layout) = self.rendered.get(&path) else {
            return false;
        };
        let mut found = false;
        for (start, end) in &diagnostic.spans {
            let span = *start as usize..*end as usize;
            let tripwire = layout
                .rendered
                .tripwires
                .iter()
                .find(|t| meets(&t.0, &span));
            if let Some((_, at)) = tripwire {
                out.opened.insert((path.clone(), *at));
                found = true;
            } else if let Some((doubt, blamed)) = layout.blamed(&span) {
                out.unviable.extend(&blamed);
                out.doubted
                    .extend(blamed.iter().filter(|_| doubt == Doubt::Nearby));
                found |= !blamed.is_empty();
            }
        }
        found
    }
}

impl FileLayout {
    fn blamed(&self, span: &Range<usize>) -> Option<(Doubt, Vec<usize>)> {
        let own = self.rendered.alternatives.iter();
        let own: Vec<usize> = own
            .filter(|(r, _)| holds(r, span))
            .map(|(_, m)| *m)
            .collect();
        if !own.is_empty() {
            return Some((Doubt::None, own));
        }
        let nearby = self
            .smallest_around(span)
            .or_else(|| self.regions_in(span))
            .or_else(|| self.in_function(span))?;
        Some((Doubt::Nearby, nearby))
    }

    fn smallest_around(&self, span: &Range<usize>) -> Option<Vec<usize>> {
        let around = self.rendered.regions.iter();
        let around = around.filter(|(r, m)| holds(r, span) && !m.is_empty());
        around.min_by_key(|(r, _)| r.len()).map(|(_, m)| m.clone())
    }

    fn regions_in(&self, span: &Range<usize>) -> Option<Vec<usize>> {
        let inside = self.rendered.regions.iter();
        let inside: Vec<usize> = inside
            .filter(|(r, _)| holds(span, r))
            .flat_map(|(_, m)| m.iter().copied())
            .collect();
        (!inside.is_empty()).then_some(inside)
    }

    fn in_function(&self, span: &Range<usize>) -> Option<Vec<usize>> {
        let functions = self.functions.iter();
        let places = functions.map(|f| self.rendered.place(&f.range));
        let around = places.filter(|f| holds(f, span)).min_by_key(Range::len)?;
        self.regions_in(&around)
    }
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn meets(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The compiler's own closing words, which name no place.
fn is_summary(diagnostic: &Diagnostic) -> bool {
    diagnostic.spans.is_empty()
        && diagnostic.file.is_empty()
        && (diagnostic.message.starts_with("aborting due to")
            || diagnostic.message.starts_with("could not compile"))
}
