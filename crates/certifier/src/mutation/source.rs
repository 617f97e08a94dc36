use std::collections::BTreeSet;
use std::ops::Range;

use super::condition::{self, Conditional};
use super::kept;
use super::names;
use super::outside::Own;
use super::parts::Uses;
use super::plan::{EditedFile, FileRole, Purpose};
use super::render::{Spot, SpotKind};
use super::survey::{LineIndex, Silence, Survey};
use super::syntax::is_test_only;
use super::tested::example_lines;
use super::text::{code_lines, doc_lines, first_item, meant_lines, split_prefix};
use super::twin::{Standing, names_place};
use super::walker::Walker;
use crate::tokens::with_tokens;
use crate::{CertifierCode, CertifierError};
use flightproof_core::Digest;

/// A file as the walker left it.
pub(super) struct Surveyed {
    /// SHA-256 of the whole text.
    pub(super) source: Digest,
    pub(super) prefix: String,
    pub(super) body: String,
    pub(super) index: LineIndex,
    pub(super) code: BTreeSet<u32>,
    /// Lines of code, and those on which an operator stands alone.
    pub(super) meant: BTreeSet<u32>,
    pub(super) first_item: Option<usize>,
    pub(super) survey: Survey,
    /// Lines of code in documentation.
    pub(super) examples: BTreeSet<u32>,
    /// Lines under a condition that does not certainly hold.
    pub(super) conditional: Conditional,
    /// What stands alone in a program.
    pub(super) standing: Standing,
    /// The program may hold text or places of this file.
    pub(super) names_place: bool,
    /// The whole file is for tests only: its tripwire goes here.
    file_gate: Option<usize>,
    purpose: Purpose,
}

impl Surveyed {
    /// `None` for a test-only file that cannot be read.
    pub(super) fn of(
        file: &EditedFile,
        opened: &BTreeSet<usize>,
        (guard, purpose): (&str, Purpose),
    ) -> Result<Option<Self>, CertifierError> {
        let guessed = file.role == FileRole::Tests;
        match Self::read(file, opened, (guard, purpose), guessed) {
            Ok(surveyed) => Ok(Some(surveyed)),
            // Its tripwire stands at the very start.
            Err(_) if guessed && !opened.contains(&0) => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    fn read(
        file: &EditedFile,
        opened: &BTreeSet<usize>,
        (guard, purpose): (&str, Purpose),
        guessed: bool,
    ) -> Result<Self, CertifierError> {
        let text = std::str::from_utf8(&file.text).map_err(|error| {
            CertifierCode::SourceUnreadable.refuse(format_args!(
                "{}: not UTF-8 at byte {}",
                file.path,
                error.valid_up_to()
            ))
        })?;
        let (prefix, body) = split_prefix(text);
        let index = LineIndex::of(body);
        with_tokens(&file.path, body.as_bytes(), |tokens| {
            let parsed: syn::File = syn::parse2(tokens.clone()).map_err(|error| {
                CertifierCode::SourceUnreadable.refuse(format_args!(
                    "{}:{}: {error}",
                    file.path,
                    error.span().start().line
                ))
            })?;
            let first_item = first_item(&tokens);
            let closed = (guessed || parsed.attrs.iter().any(is_test_only))
                && first_item.is_none_or(|at| !opened.contains(&at));
            let mutable = file.role != FileRole::BuildTime && !closed;
            let conditional = match (mutable, purpose) {
                (true, Purpose::Gate) => {
                    condition::of((&parsed, &tokens), body, &index, &file.features)
                }
                _ => Conditional::default(),
            };
            let meant = meant_lines(body, &tokens, &index);
            let examples = match (mutable, purpose) {
                (true, Purpose::Gate) => example_lines(body, &tokens, &index),
                _ => BTreeSet::new(),
            };
            Ok(Self {
                code: code_lines(body, &tokens, &index),
                examples,
                survey: if mutable {
                    let how = (guard, purpose);
                    let lines = &file.lines - &conditional.off;
                    let mut survey = walked(&parsed, body, &index, how, &lines, opened);
                    survey.note_stray_attributes(&tokens);
                    let kept = match survey.hidden.iter().any(|h| h.1 == Silence::Pattern) {
                        true => kept::patterns(file, body, &parsed, &tokens),
                        false => Vec::new(),
                    };
                    survey.keep(&kept);
                    // What documents a constant does not change it.
                    let plain = &lines & &meant;
                    let said = &lines & &doc_lines(body, &tokens, &index);
                    // A macro may make code of documentation.
                    survey.hidden.retain(|(range, why)| {
                        index.touches(range, &plain)
                            || *why == Silence::Macro && index.touches(range, &said)
                    });
                    survey.hidden.extend(names::changed(
                        file,
                        body,
                        (&parsed, &tokens),
                        &index,
                        &kept,
                    ));
                    if purpose == Purpose::Gate {
                        survey.note_acting_tests(
                            body,
                            &tokens,
                            &index,
                            &Own::of(&parsed),
                            &file.lines,
                        );
                    }
                    survey
                } else if closed {
                    let mut survey = silenced(body, Silence::TestOnly);
                    if purpose == Purpose::Gate {
                        survey.note_acting_tests(
                            body,
                            &tokens,
                            &index,
                            &Own::of(&parsed),
                            &file.lines,
                        );
                    }
                    survey
                } else {
                    silenced(body, Silence::BuildTime)
                },
                file_gate: first_item
                    .filter(|_| closed && file.role != FileRole::BuildTime)
                    .filter(|_| purpose == Purpose::Gate),
                standing: Standing::of(&parsed),
                names_place: names_place(&tokens),
                conditional,
                meant,
                purpose,
                source: Digest::of(&file.text),
                prefix: prefix.to_owned(),
                body: body.to_owned(),
                index,
                first_item,
            })
        })?
    }

    /// Tripwires before test-only items that changed, and messages of assertions that hold a region.
    pub(super) fn fixed_spots(&self, regions: &[Range<usize>], lines: &BTreeSet<u32>) -> Vec<Spot> {
        // Tests that are compiled with the program must not trip over themselves.
        let gates = self.survey.gates.iter();
        let gates = gates.filter(|_| self.purpose == Purpose::Gate);
        let tripwires = gates.filter(|gate| self.index.touches(&gate.range, lines));
        let tripwires = tripwires.map(|gate| gate.at).chain(self.file_gate);
        let mut spots: Vec<Spot> = tripwires
            .map(|at| Spot {
                span: at..at,
                kind: SpotKind::Tripwire,
            })
            .collect();
        for insertion in &self.survey.insertions {
            let within = &insertion.within;
            if regions
                .iter()
                .any(|r| within.start <= r.start && r.end <= within.end)
            {
                spots.push(Spot {
                    span: insertion.at..insertion.at,
                    kind: SpotKind::Text(insertion.text.clone()),
                });
            }
        }
        spots
    }
}

fn walked(
    parsed: &syn::File,
    body: &str,
    index: &LineIndex,
    (guard, purpose): (&str, Purpose),
    changed: &BTreeSet<u32>,
    opened: &BTreeSet<usize>,
) -> Survey {
    let mut walker = Walker {
        text: body,
        index,
        guard,
        changed,
        opened,
        survey: Survey::default(),
        path: Vec::new(),
        mutants: 0,
        purpose,
        code_bytes: 0,
        guessing: false,
        rests: BTreeSet::new(),
        own: Own::of(parsed),
        own_type: Vec::new(),
        uses: Uses::default(),
        named: None,
    };
    syn::visit::Visit::visit_file(&mut walker, parsed);
    walker.survey
}

fn silenced(body: &str, why: Silence) -> Survey {
    Survey {
        silences: vec![(0..body.len(), why)],
        hidden: Vec::from_iter(why.must_be_waived().then_some((0..body.len(), why))),
        ..Survey::default()
    }
}
