//! Survivors that are the same program as the original: a compiler says so.
//!
//! Each is compiled alone, with all optimisation and its function as it is for any caller; so is the
//! original, in a text that differs in the mutant's tokens alone. Equal bytes of the whole program
//! are no other program: no case could tell the two apart. A third program, which ends at the place,
//! must be another one, and a case must get there: what nobody reaches stays a survivor.

use super::{Ask, Certification, MUTANTS, Step, Told, case_run};
use crate::judge;
use crate::mutation::{Answer, Fate, Kill, Run, Twins};
use flightproof_core::{Digest, RelPath};
use flightproof_evidence::{BuildAnswer, BuildOrder, BuildTarget, Built, Observation};
use std::collections::{BTreeMap, BTreeSet};

/// Most survivors that are compared: each is up to four builds, and a change with more than these
/// has too few cases.
pub(super) const MAX_COMPARED: usize = 32;

/// What was compared so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Comparison {
    /// Who is compared, with the texts.
    queue: Vec<(usize, Twins)>,
    /// Programs of the originals, by their file and the digest of its text.
    originals: BTreeMap<(RelPath, Digest), Digest>,
    /// Those that are the same program, by their number in the queue.
    alike: BTreeSet<usize>,
    /// Mutants that are proven to be the same program.
    pub(super) equivalent: BTreeSet<usize>,
}

/// What is asked about one of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stage {
    number: usize,
    question: Question,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// The program of the original.
    Original,
    /// The program with the mutant.
    Mutant,
    /// The program that ends where the mutant stands.
    Marked,
    /// A run of it.
    Reached { at: usize },
    /// The program of the original once more: one that comes out otherwise proves nothing.
    Again,
}

impl Stage {
    /// Whether an answer is one to its question.
    pub(super) fn is_answer(self, told: &Told) -> bool {
        let run = matches!(self.question, Question::Reached { .. });
        run == matches!(told, Told::Ran(_))
    }
}

impl Certification<'_> {
    /// The first question about survivors, if it can change how this ends.
    pub(super) fn compare_survivors(&mut self) -> Step {
        self.comparison.queue = self.comparable().unwrap_or_default();
        self.next_of_queue(0)
    }

    /// Every survivor with its texts; nothing where one of them stays a survivor anyway.
    fn comparable(&self) -> Option<Vec<(usize, Twins)>> {
        let open = self.trial().open();
        let judged = !matches!(self.target, BuildTarget::Suite { .. });
        if !judged || open.len() > MAX_COMPARED || !self.built.as_ref().is_some_and(untouched) {
            return None;
        }
        let twins = open.into_iter().map(|index| {
            // Where the program could end, and nobody noticed, no case gets.
            let reached = self.plan.mutants.get(index)?.replacement != "end";
            let twins = self.plan.twins(index).filter(|_| reached)?;
            Some((index, twins))
        });
        twins.collect()
    }

    pub(super) fn comparing(&self, stage: Stage) -> Option<Ask> {
        let (mutant, twins) = self.comparison.queue.get(stage.number)?;
        let text = match stage.question {
            Question::Original | Question::Again => &twins.original,
            Question::Mutant => &twins.mutant,
            Question::Marked => &twins.marked,
            Question::Reached { at } => {
                let case = self.favourites.case(&self.plan.mutants[*mutant], at)?;
                let word = self.allowances[case].granted().selecting(0);
                let run = case_run(self.witness, case, MUTANTS, Some(word));
                return Some(Ask::Run(Box::new(run)));
            }
        };
        let overlay = BTreeMap::from([(twins.file.clone(), text.clone())]);
        Some(Ask::Compile(Box::new(BuildOrder {
            optimized: true,
            ..self.order(MUTANTS, overlay)
        })))
    }

    /// Takes an answer. Whatever is no proof leaves the survivor one.
    pub(super) fn compared(&mut self, stage: Stage, told: Told) -> Step {
        let Some((_, twins)) = self.comparison.queue.get(stage.number) else {
            return Step::Done;
        };
        let text = (twins.file.clone(), Digest::of(&twins.original));
        let original = self.comparison.originals.get(&text).copied();
        let next = |question| Step::Compare(Stage { question, ..stage });
        let found = match (stage.question, told) {
            (Question::Reached { at }, Told::Ran(run)) => return self.reached(stage, at, &run),
            // A session at its limits is asked nothing more, and proves nothing.
            (_, Told::Compiled(BuildAnswer::Limit { .. })) => return Step::Done,
            (_, Told::Compiled(BuildAnswer::Built(built))) if self.is_checked(&built) => {
                built.sha256
            }
            (Question::Again, _) => return Step::Done,
            (_, _) => return self.next_of_queue(stage.number + 1),
        };
        match stage.question {
            Question::Original => {
                self.comparison.originals.insert(text, found);
                next(Question::Mutant)
            }
            Question::Mutant if Some(found) == original => next(Question::Marked),
            Question::Marked if original.is_some_and(|o| o != found) => {
                next(Question::Reached { at: 0 })
            }
            Question::Again => {
                if Some(found) == original {
                    self.comparison.equivalent = self.alike();
                }
                Step::Done
            }
            _ => self.next_of_queue(stage.number + 1),
        }
    }

    fn reached(&mut self, stage: Stage, at: usize, run: &Observation) -> Step {
        let asked = self.comparison.queue.get(stage.number);
        let case = asked.and_then(|(mutant, _)| {
            let mutant = &self.plan.mutants[*mutant];
            self.favourites.case(mutant, at)
        });
        let Some(case) = case else {
            return self.next_of_queue(stage.number + 1);
        };
        let heard = self.witness.heard(case, run.clone());
        let answer = match judge::judge_case(&self.witness.cases()[case], &heard) {
            Ok(()) => Answer::AsExpected,
            Err(_) => Answer::Differs,
        };
        let fate = Fate::of(&[Run {
            observation: &heard,
            answer,
        }]);
        match fate {
            Fate::Survived if at + 1 < self.witness.cases().len() => Step::Compare(Stage {
                question: Question::Reached { at: at + 1 },
                ..stage
            }),
            fate => {
                if fate == Fate::Killed(Kill::Panic) {
                    self.comparison.alike.insert(stage.number);
                }
                self.next_of_queue(stage.number + 1)
            }
        }
    }

    /// The first question about one of the queue; behind the last, whether the compiler keeps its word.
    fn next_of_queue(&self, number: usize) -> Step {
        let comparison = &self.comparison;
        let known = |twins: &Twins| {
            let text = (twins.file.clone(), Digest::of(&twins.original));
            comparison.originals.contains_key(&text)
        };
        let (number, question) = match (comparison.queue.get(number), comparison.alike.first()) {
            (Some((_, twins)), _) if known(twins) => (number, Question::Mutant),
            (Some(_), _) => (number, Question::Original),
            (None, Some(first)) => (*first, Question::Again),
            (None, None) => return Step::Done,
        };
        Step::Compare(Stage { number, question })
    }

    /// Whether a program was built untouched, and with the checks of the judged one.
    fn is_checked(&self, built: &Built) -> bool {
        let judged = self.built.as_ref();
        untouched(built) && judged.is_some_and(|judged| checks(judged) == checks(built))
    }

    fn alike(&self) -> BTreeSet<usize> {
        let alike = self.comparison.alike.iter();
        let mutants = alike.filter_map(|number| self.comparison.queue.get(*number));
        mutants.map(|(index, _)| *index).collect()
    }
}

/// Whether debug assertions and overflows are checked, as cargo says.
fn checks(built: &Built) -> (bool, bool) {
    let settings = built.record.settings.as_ref();
    settings.map_or((true, true), |s| (s.debug_assertions, s.overflow_checks))
}

/// Whether nothing of a build could change what was compiled.
fn untouched(built: &Built) -> bool {
    !built.record.build_scripts && !built.record.proc_macros
}

#[cfg(test)]
mod tests;
