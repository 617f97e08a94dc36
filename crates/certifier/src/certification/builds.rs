//! Mutants that are builds of their own: one is built, its cases run, then the next.

use super::{Certification, Failure, Step, turns::Trying, turns::turns};
use crate::CertifierCode;
use crate::judge::{self, Gate};
use crate::languages::Rewrites;
use crate::mutation::{Fate, Kill, Operator};
use flightproof_core::{Bytes, Digest, Refusal, RelPath, escape};
use flightproof_evidence::BuildAnswer;
use std::collections::BTreeMap;

impl Certification<'_> {
    /// The first of all builds: of forms with types and without, if there are any.
    pub(super) fn first_build(&mut self) -> Step {
        let own = self.built.as_ref().map(|built| built.sha256);
        self.next_form(0, own)
    }

    fn next_form(&mut self, form: usize, like: Option<Digest>) -> Step {
        let forms = self.rewrites.as_ref().map_or(0, |all| all.forms().len());
        match form < forms {
            true => Step::BuildForm { form, like },
            false => self.first_mutant(),
        }
    }

    /// What was taken for types is none of the program: without it, the same program comes out.
    pub(super) fn form_built(
        &mut self,
        form: usize,
        like: Option<Digest>,
        answer: BuildAnswer,
    ) -> Result<Step, Failure> {
        let forms = self.rewrites.as_ref().map(Rewrites::forms);
        let shape = forms.and_then(|forms| forms.get(form).copied());
        let leads = shape.is_some_and(|shape| shape.leads);
        let refusal = match answer {
            BuildAnswer::Built(built) if leads || like == Some(built.sha256) => {
                return Ok(self.next_form(form + 1, Some(built.sha256)));
            }
            BuildAnswer::Built(_) | BuildAnswer::Failed { .. } => {
                let files = shape.into_iter().flat_map(|shape| shape.texts.keys());
                let files: Vec<String> = files.map(|path| escape(path.as_str(), 200)).collect();
                let of = shape.map_or("", |shape| shape.of);
                CertifierCode::SourceAmbiguous
                    .refuse(format_args!(
                        "{} of {of}: without what the grammar takes for types it is another program",
                        files.join(", ")
                    ))
                    .into()
            }
            BuildAnswer::Limit { limit } => judge::build_limit(&limit),
        };
        Err(Failure {
            gate: Gate::Mutation,
            refusal,
        })
    }

    /// The first build of a turn, if there is a mutant.
    fn first_mutant(&mut self) -> Step {
        let mutants: Vec<usize> = self.plan.viable().collect();
        if mutants.is_empty() {
            return Step::Done;
        }
        let canaries = self.rewrites.as_ref().map_or(0, |all| all.canaries());
        self.turns = turns(&mutants, self.plan.placebos.len(), canaries, &self.entropy);
        Step::BuildOne { turn: 0 }
    }

    /// What comes after a turn that is over.
    pub(super) fn next_turn(&mut self, turn: usize) -> Step {
        match (self.turns.get(turn), &self.rewrites) {
            (Some(_), None) => Step::Try { turn, at: 0 },
            (Some(_), Some(_)) => Step::BuildOne { turn },
            (None, None) => self.compare_survivors(),
            (None, Some(rewrites)) => {
                let weak = rewrites.weak(&self.plan, &self.fates);
                self.plan.unjudged.extend(weak);
                Step::Done
            }
        }
    }

    /// What stands in the tree for a turn.
    pub(super) fn overlay_of(&self, subject: Trying) -> BTreeMap<RelPath, Bytes> {
        let Some(rewrites) = &self.rewrites else {
            return BTreeMap::new();
        };
        match subject {
            Trying::Control => BTreeMap::new(),
            Trying::Placebo(index) => rewrites.placebo(index),
            Trying::Canary(index) => rewrites.canary(index),
            Trying::Mutant(index) => rewrites.mutant(index),
        }
    }

    /// A mutant that does not compile is none. Everything else must be built.
    pub(super) fn one_built(&mut self, turn: usize, answer: BuildAnswer) -> Result<Step, Failure> {
        let failed = |refusal: Refusal| Failure {
            gate: Gate::Mutation,
            refusal,
        };
        let subject = self.turns[turn];
        match (answer, subject) {
            (BuildAnswer::Built(_), _) => Ok(Step::Try { turn, at: 0 }),
            (BuildAnswer::Failed { .. }, Trying::Mutant(index)) => {
                self.plan.mutants[index].viable = false;
                Ok(self.next_turn(turn + 1))
            }
            (BuildAnswer::Limit { limit }, _) => Err(failed(judge::build_limit(&limit))),
            (BuildAnswer::Failed { diagnostics, tail }, _) => {
                let why = judge::build_failed(&diagnostics, &tail, &self.captured.changes);
                let broken = CertifierCode::SchemataBroken.refuse(format_args!(
                    "{}: {}",
                    name_of(subject),
                    why.detail
                ));
                Err(failed(Refusal::from(broken).with_notes(why.notes)))
            }
        }
    }

    /// A branch that ends the program shows that a case takes it, and nothing of a value.
    pub(super) fn without_value(&self, index: usize, fate: Fate) -> Fate {
        let branch = self.plan.mutants[index].operator == Operator::Branch;
        match fate {
            Fate::Killed(Kill::Value) if branch && self.rewrites.is_some() => {
                Fate::Killed(Kill::Panic)
            }
            other => other,
        }
    }

    /// A canary must be noticed, however.
    pub(super) fn canary_ended(&self, index: usize, fate: Fate) -> Result<(), Refusal> {
        if matches!(fate, Fate::Killed(_)) {
            return Ok(());
        }
        let file = self.rewrites.as_ref().and_then(|all| all.canary_of(index));
        let file = file.map_or_else(String::new, ToString::to_string);
        Err(CertifierCode::CanarySurvived.refuse(file).into())
    }
}

fn name_of(subject: Trying) -> &'static str {
    match subject {
        Trying::Control => "the tree as it is",
        Trying::Placebo(_) => "a change without effect",
        Trying::Canary(_) => "a change that ends the program",
        Trying::Mutant(_) => "a mutant",
    }
}

#[cfg(test)]
mod tests;
