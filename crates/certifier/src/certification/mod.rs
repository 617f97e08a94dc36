//! The certification of one candidate, as a machine that asks and is answered.
//!
//! It asks for a build or for a run of one case, is told what a session reported, and either asks
//! on, ends with a [`Judgement`], or refuses and names the gate. It starts nothing itself, so the
//! same machine is driven by a real session and by a recorded one, to the same end.

mod account;
mod baseline;
mod builds;
mod claims;
mod differential;
mod favourites;
mod lines;
mod suite;
mod turns;
mod twins;

pub use account::{Account, MutantAccount, MutantFate, SilentLine};
pub use baseline::{BaselineTrial, Trial as BaselineQuestions};
pub use differential::DifferentialTrial;
pub use suite::SuiteTrial;

use crate::certificate::keyed_observations;
use crate::claim::{MutationClaim, WitnessClaim};
use crate::classes::ChangedFile;
use crate::feedback::Missed;
use crate::generated::Regenerated;
use crate::judge::{self, Gate};
use crate::languages::{self, Language, Rewrites};
use crate::mutation::{
    Allowance, Answer, FUEL_EXIT, Fate, Kill, MutationPlan, Run, Tally, Trial, unchanged_control,
    unnoticed_placebo,
};
use crate::population::{self, beside::compiled_data};
use crate::tree::Tree;
use crate::witness::{Waiver, Witness};
use crate::{CertifierCode, CertifierError};
use favourites::Favourites;
use flightproof_core::{Bytes, Digest, Refusal, RelPath, escape};
use flightproof_evidence::{
    BuildAnswer, BuildOrder, BuildTarget, Built, Captured, CaseRun, Change, Ending, Observation,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use turns::{Trying, turns};
use twins::{Comparison, Stage};

/// Longest run of one case of the candidate, milliseconds: a program that is judged by examples
/// answers one in a moment, and a machine under load still has ten times that.
pub const CASE_WALL_MS: u64 = 10_000;
/// Longest run of one case of a mutant, milliseconds. Loops run out of fuel long before; this is
/// for those that call no guard.
pub const MUTANT_WALL_MS: u64 = 3_000;
/// Longest run of one program of tests, milliseconds, with a mutant or without.
pub const TESTS_WALL_MS: u64 = 60_000;
/// How often each case is run on the candidate.
pub const RUNS_PER_CASE: u64 = 2;
/// Most builds of the program with mutants: each learns what the compiler refused in the last.
const MAX_MUTANT_BUILDS: u32 = 6;
/// Name of the candidate as it is.
const CANDIDATE: &str = "candidate";
/// Name of the candidate with all its mutants.
const MUTANTS: &str = "mutants";

/// What the machine wants to know next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Compile this.
    Compile(Box<BuildOrder>),
    /// Run this.
    Run(Box<CaseRun>),
}

/// What a session reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// To [`Ask::Compile`].
    Compiled(BuildAnswer),
    /// To [`Ask::Run`].
    Ran(Observation),
}

/// A gate that was not passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub gate: Gate,
    /// Why.
    pub refusal: Refusal,
}

/// What was found of a candidate that passed every gate.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The gates it passed, in their order.
    pub gates: Vec<Gate>,
    /// The candidate as it is.
    pub built: Built,
    /// Keyed digest of the observations of all cases.
    pub observations: Digest,
    /// The witness, as a certificate claims it.
    pub witness: WitnessClaim,
    /// The mutation run, as a certificate claims it.
    pub mutation: MutationClaim,
}

/// The machine.
pub struct Certification<'a> {
    witness: &'a Witness,
    captured: &'a Captured,
    target: BuildTarget,
    entropy: [u8; 32],
    secrets: Secrets,
    plan: MutationPlan,
    /// The texts of the mutants, where each is a build of its own.
    rewrites: Option<Rewrites>,
    changed: Vec<ChangedFile>,
    /// Changed files that a generator made again.
    regenerated: Regenerated,
    /// Paths whose changes may come in though nothing compiles them.
    uncompiled: Vec<RelPath>,
    waivers: Vec<Waiver>,
    step: Step,
    built: Option<Built>,
    passes: [Vec<Option<Observation>>; 2],
    control: Option<Fate>,
    placebos: BTreeMap<u64, Fate>,
    fates: BTreeMap<usize, Fate>,
    /// Who is tried, in order.
    turns: Vec<Trying>,
    /// In which order a mutant is tried: it often dies of the same case as the last one.
    favourites: Favourites,
    /// How much fuel each case has, as runs without a mutant found it.
    allowances: Vec<Allowance>,
    /// Which survivors are the same program.
    comparison: Comparison,
    /// The case that ended it.
    missed: Option<Missed>,
}

/// Where the machine stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Build,
    Pass {
        number: usize,
        order: Vec<usize>,
        at: usize,
    },
    BuildMutants {
        round: u32,
    },
    /// The build of one form of the tree, with types or without.
    BuildForm {
        form: usize,
        /// The program that came of what this is held against.
        like: Option<Digest>,
    },
    /// The build of one mutant, where each is a build of its own.
    BuildOne {
        turn: usize,
    },
    Try {
        turn: usize,
        at: usize,
    },
    /// A survivor is held against the original, as programs.
    Compare(Stage),
    Done,
}

/// A secret of the judging side, derived from the flight's entropy for one purpose.
pub fn derived(entropy: &[u8; 32], purpose: &str) -> [u8; 32] {
    *Digest::keyed(entropy, purpose.as_bytes()).as_bytes()
}

/// What a certificate's commitments are sealed with.
#[derive(Debug, Clone, Copy)]
pub struct Secrets {
    /// Salt of the witness's commitment.
    pub salt: [u8; 32],
    /// Key of the observations' digest.
    pub observation_key: [u8; 32],
}

impl Secrets {
    /// A flight's own.
    pub fn of(entropy: &[u8; 32]) -> Self {
        Self {
            salt: derived(entropy, "witness salt"),
            observation_key: derived(entropy, "observations"),
        }
    }
}

impl<'a> Certification<'a> {
    /// Starts: finds the changed lines and makes their mutants, as text.
    ///
    /// # Errors
    /// At [`Gate::Mutation`]: sources no parser may see, or too many mutants.
    pub fn new(
        captured: &'a Captured,
        tree: &Tree<'_>,
        witness: &'a Witness,
        entropy: [u8; 32],
    ) -> Result<Self, Failure> {
        Self::beside(Regenerated::default(), captured, tree, witness, entropy)
    }

    /// The same, of a change with files that a generator made again: they have no mutants.
    ///
    /// # Errors
    /// As [`Certification::new`].
    pub fn beside(
        regenerated: Regenerated,
        captured: &'a Captured,
        tree: &Tree<'_>,
        witness: &'a Witness,
        entropy: [u8; 32],
    ) -> Result<Self, Failure> {
        let at_mutation = |e: CertifierError| Failure {
            gate: Gate::Mutation,
            refusal: e.into(),
        };
        let target = witness.target().map_err(at_mutation)?;
        let language = operators_of(witness).map_err(at_mutation)?;
        let changed = ChangedFile::all(&captured.changes, tree, language);
        let changed = ChangedFile::regenerated(changed, &regenerated);
        let seed = derived(&entropy, "mutation");
        let own = own_changes(&regenerated, captured);
        let steering = own.iter().filter(|change| regenerated.named(&change.path));
        let steering = steering.map(compiled_data);
        let (plan, rewrites) = match language {
            None => {
                let mut input = population::input(&own, tree, seed);
                input.beside.extend(steering);
                (MutationPlan::new(input).map_err(at_mutation)?, None)
            }
            Some(language) => {
                let made = languages::plan(&own, tree, language, seed);
                let (mut plan, rewrites) = made.map_err(at_mutation)?;
                plan.unjudged.extend(steering);
                (plan, Some(rewrites))
            }
        };
        let cases = witness.cases().len();
        Ok(Self {
            witness,
            captured,
            target,
            entropy,
            secrets: Secrets::of(&entropy),
            plan,
            rewrites,
            changed,
            regenerated,
            uncompiled: Vec::new(),
            waivers: witness.waivers().to_vec(),
            step: Step::Build,
            built: None,
            passes: [vec![None; cases], vec![None; cases]],
            control: None,
            placebos: BTreeMap::new(),
            fates: BTreeMap::new(),
            turns: Vec::new(),
            favourites: Favourites::new(cases),
            allowances: vec![Allowance::default(); cases],
            comparison: Comparison::default(),
            missed: None,
        })
    }

    /// The same, sealed with the secrets of an earlier flight, so that the two can be compared.
    pub fn sealed_with(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// The next question, or none when everything is known.
    pub fn ask(&self) -> Option<Ask> {
        match &self.step {
            Step::Build => Some(Ask::Compile(Box::new(
                self.order(CANDIDATE, BTreeMap::new()),
            ))),
            Step::BuildMutants { .. } => Some(Ask::Compile(Box::new(
                self.order(MUTANTS, self.plan.overlay.clone()),
            ))),
            Step::Pass { number, order, at } => order.get(*at).map(|case| {
                let mut run = case_run(self.witness, *case, CANDIDATE, None);
                if *number > 0 {
                    elsewhere(&mut run);
                }
                Ask::Run(Box::new(run))
            }),
            Step::BuildForm { form, .. } => {
                let texts = self.rewrites.as_ref()?.forms().get(*form)?.texts.clone();
                Some(Ask::Compile(Box::new(self.order(MUTANTS, texts))))
            }
            Step::BuildOne { turn } => {
                let overlay = self.overlay_of(*self.turns.get(*turn)?);
                Some(Ask::Compile(Box::new(self.order(MUTANTS, overlay))))
            }
            Step::Try { turn, at } => {
                let subject = *self.turns.get(*turn)?;
                let case = self.case_of(subject, *at)?;
                let word = self.selector(subject).map(|selector| {
                    let fuel = match turn {
                        0 => self.allowances[case].trying(),
                        _ => self.allowances[case].granted(),
                    };
                    fuel.selecting(selector)
                });
                let run = case_run(self.witness, case, MUTANTS, word);
                Some(Ask::Run(Box::new(run)))
            }
            Step::Compare(stage) => self.comparing(*stage),
            Step::Done => None,
        }
    }

    /// Whether there is no question left. Says it without making one.
    pub fn is_done(&self) -> bool {
        self.step == Step::Done
    }

    /// The gate that the next answer counts for.
    pub fn gate(&self) -> Gate {
        match &self.step {
            Step::Build => Gate::Build,
            Step::Pass { number: 0, .. } => Gate::Correctness,
            Step::Pass { .. } => Gate::Determinism,
            Step::BuildMutants { .. }
            | Step::BuildForm { .. }
            | Step::BuildOne { .. }
            | Step::Try { .. }
            | Step::Compare(_)
            | Step::Done => Gate::Mutation,
        }
    }

    /// The case that the candidate did not answer as expected, if that ended it.
    pub fn missed(&self) -> Option<&Missed> {
        self.missed.as_ref()
    }

    /// Number of mutants that compile, as far as known.
    pub fn mutants(&self) -> usize {
        self.plan.viable().count()
    }

    /// Takes the answer to the last question.
    ///
    /// # Errors
    /// The gate that the candidate fails with this answer.
    pub fn tell(&mut self, told: Told) -> Result<(), Failure> {
        let step = std::mem::replace(&mut self.step, Step::Done);
        self.step = match (step, told) {
            (Step::Build, Told::Compiled(answer)) => self.candidate_built(answer)?,
            (Step::Pass { number, order, at }, Told::Ran(observation)) => {
                self.case_ran(number, order, at, observation)?
            }
            (Step::BuildMutants { round }, Told::Compiled(answer)) => {
                self.mutants_built(round, answer)?
            }
            (Step::BuildForm { form, like }, Told::Compiled(answer)) => {
                self.form_built(form, like, answer)?
            }
            (Step::BuildOne { turn }, Told::Compiled(answer)) => self.one_built(turn, answer)?,
            (Step::Try { turn, at }, Told::Ran(observation)) => {
                self.tried(turn, at, &observation)?
            }
            (Step::Compare(stage), told) if stage.is_answer(&told) => self.compared(stage, told),
            (_, _) => {
                return Err(Failure {
                    gate: Gate::Build,
                    refusal: CertifierCode::AnswerUnasked
                        .refuse("a build for a run, or a run for a build")
                        .into(),
                });
            }
        };
        Ok(())
    }

    /// What was found.
    ///
    /// # Errors
    /// At [`Gate::Build`] if questions are open.
    pub fn finish(self) -> Result<Judgement, Failure> {
        let open = || Failure {
            gate: Gate::Build,
            refusal: CertifierCode::AnswerUnasked
                .refuse("questions are still open")
                .into(),
        };
        if self.step != Step::Done {
            return Err(open());
        }
        let mutation = self.mutation_claim()?;
        let observations: Vec<Observation> =
            self.passes.iter().flatten().flatten().cloned().collect();
        let key = &self.secrets.observation_key;
        let observations = keyed_observations(key, &observations).map_err(|e| Failure {
            gate: Gate::Correctness,
            refusal: e.into(),
        })?;
        let gates = Gate::ALL
            .into_iter()
            .filter(|gate| *gate != Gate::Mutation || !self.plan.is_vacuous())
            .collect();
        let witness = self.witness_claim().map_err(|e| Failure {
            gate: Gate::Correctness,
            refusal: e.into(),
        })?;
        Ok(Judgement {
            gates,
            built: self.built.ok_or_else(open)?,
            observations,
            witness,
            mutation,
        })
    }

    fn order(&self, program: &str, overlay: BTreeMap<RelPath, Bytes>) -> BuildOrder {
        BuildOrder {
            program: program.to_owned(),
            target: self.target.clone(),
            overlay: self.witness.laid_over(overlay),
            guard: self.plan.guard.clone(),
            optimized: false,
        }
    }

    fn candidate_built(&mut self, answer: BuildAnswer) -> Result<Step, Failure> {
        let built = judge::built(answer, &self.captured.changes).map_err(|refusal| Failure {
            gate: Gate::Build,
            refusal,
        })?;
        self.read_by(&built)?;
        self.built = Some(built);
        Ok(self.pass(0))
    }

    fn pass(&self, number: usize) -> Step {
        let seed = derived(
            &self.entropy,
            if number == 0 {
                "first pass"
            } else {
                "second pass"
            },
        );
        Step::Pass {
            number,
            order: shuffled(self.witness.cases().len(), &seed),
            at: 0,
        }
    }

    /// Correctness is judged case by case in the first pass: a candidate that is wrong is not run
    /// any longer than that takes to see.
    fn case_ran(
        &mut self,
        number: usize,
        order: Vec<usize>,
        at: usize,
        observation: Observation,
    ) -> Result<Step, Failure> {
        let index = order[at];
        let observation = self.witness.heard(index, observation);
        let judged = match number {
            0 => judge::judge_case(&self.witness.cases()[index], &observation),
            _ => Ok(()),
        };
        if let Err(refused) = judged {
            let missed = Missed::of(self.witness, index, observation);
            let refusal = missed.refusal(refused);
            self.missed = Some(missed);
            return Err(Failure {
                gate: Gate::Correctness,
                refusal,
            });
        }
        self.passes[number][index] = Some(observation);
        if at + 1 < order.len() {
            return Ok(Step::Pass {
                number,
                order,
                at: at + 1,
            });
        }
        if number == 0 {
            return Ok(self.pass(1));
        }
        self.compare_passes()?;
        let compiled = self.uncompiled_granted();
        let judged = compiled.and_then(|()| self.trial().unjudged());
        judged.map_err(|refusal| Failure {
            gate: Gate::Mutation,
            refusal,
        })?;
        Ok(self.after_passes())
    }

    fn compare_passes(&self) -> Result<(), Failure> {
        let [first, second] = &self.passes;
        let whole =
            |pass: &Vec<Option<Observation>>| pass.iter().flatten().cloned().collect::<Vec<_>>();
        let cases = self.witness.cases();
        judge::named_determinism(cases, &whole(first), &whole(second)).map_err(|e| Failure {
            gate: Gate::Determinism,
            refusal: e.into(),
        })
    }

    fn after_passes(&mut self) -> Step {
        if self.rewrites.is_some() {
            return self.first_build();
        }
        if self.plan.viable().next().is_none() && self.plan.overlay.is_empty() {
            Step::Done
        } else {
            Step::BuildMutants { round: 1 }
        }
    }

    fn mutants_built(&mut self, round: u32, answer: BuildAnswer) -> Result<Step, Failure> {
        let failed = |refusal: Refusal| Failure {
            gate: Gate::Mutation,
            refusal,
        };
        match answer {
            // Changed tests have tripwires alone, and none was in the program.
            BuildAnswer::Built(_) if self.plan.is_vacuous() => Ok(Step::Done),
            BuildAnswer::Built(_) => {
                let mutants: Vec<usize> = self.plan.viable().collect();
                self.turns = turns(&mutants, self.plan.placebos.len(), 0, &self.entropy);
                Ok(Step::Try { turn: 0, at: 0 })
            }
            BuildAnswer::Failed { diagnostics, .. } if round < MAX_MUTANT_BUILDS => {
                let attribution = self.plan.attribute(&diagnostics);
                self.plan = self
                    .plan
                    .without(&attribution)
                    .map_err(|e| failed(e.into()))?;
                Ok(Step::BuildMutants { round: round + 1 })
            }
            BuildAnswer::Failed { .. } => Err(failed(
                CertifierCode::SchemataBroken
                    .refuse(format_args!(
                        "{MAX_MUTANT_BUILDS} builds, and mutants that do not compile are left"
                    ))
                    .into(),
            )),
            BuildAnswer::Limit { limit } => Err(failed(judge::build_limit(&limit))),
        }
    }

    fn case_of(&self, subject: Trying, at: usize) -> Option<usize> {
        match subject {
            Trying::Mutant(mutant) => self.favourites.case(&self.plan.mutants[mutant], at),
            Trying::Control | Trying::Placebo(_) | Trying::Canary(_) => {
                (at < self.witness.cases().len()).then_some(at)
            }
        }
    }

    /// What selects it in the program that holds all mutants; nothing where each has its own.
    fn selector(&self, subject: Trying) -> Option<u64> {
        match subject {
            _ if self.rewrites.is_some() => None,
            Trying::Control | Trying::Canary(_) => Some(0),
            Trying::Placebo(index) => Some(self.plan.placebos[index]),
            Trying::Mutant(index) => Some(self.plan.mutants[index].selector),
        }
    }

    fn tried(
        &mut self,
        turn: usize,
        at: usize,
        observation: &Observation,
    ) -> Result<Step, Failure> {
        let subject = self.turns[turn];
        let Some(index) = self.case_of(subject, at) else {
            return Ok(Step::Done);
        };
        let heard = self.witness.heard(index, observation.clone());
        let observation = &heard;
        let answer = match judge::judge_case(&self.witness.cases()[index], observation) {
            Ok(()) => Answer::AsExpected,
            Err(_) => Answer::Differs,
        };
        let run = Run {
            observation,
            answer,
        };
        let fate = match &self.rewrites {
            None => Fate::of(&[run]),
            Some(rewrites) => Fate::of_build(rewrites.language(), &run),
        };
        let dry = self.rewrites.is_none() && heard.ending == (Ending::Exited { code: FUEL_EXIT });
        let unchanged = matches!(subject, Trying::Control | Trying::Placebo(_));
        if let (true, true, Some(more)) = (dry, unchanged, self.allowances[index].more()) {
            self.allowances[index] = more;
            self.retry_dry(turn);
            return Ok(Step::Try { turn, at });
        }
        if fate == Fate::Survived && at + 1 < self.witness.cases().len() {
            return Ok(Step::Try { turn, at: at + 1 });
        }
        if let (Fate::Killed(_), Trying::Mutant(mutant)) = (fate, subject) {
            self.favourites.noticed(&self.plan.mutants[mutant], index);
        }
        self.settle(subject, fate)?;
        Ok(self.next_turn(turn + 1))
    }

    /// Whoever ran dry on less than the program needs without a mutant has another turn. A control comes
    /// last all the same.
    fn retry_dry(&mut self, turn: usize) {
        let dry = Fate::Killed(Kill::Fuel);
        let again = self.fates.iter().filter(|(_, fate)| **fate == dry);
        let mut again: Vec<Trying> = again.map(|(index, _)| Trying::Mutant(*index)).collect();
        self.fates.retain(|_, fate| *fate != dry);
        if !again.is_empty() && turn + 1 == self.turns.len() {
            again.push(Trying::Control);
        }
        self.turns.splice(turn + 1..turn + 1, again);
    }

    /// Notes a fate. A control or placebo that differs voids the trial at once.
    fn settle(&mut self, subject: Trying, fate: Fate) -> Result<(), Failure> {
        let sound = match subject {
            Trying::Control => {
                self.control = Some(fate);
                unchanged_control(fate)
            }
            Trying::Placebo(index) => {
                self.placebos.insert(self.plan.placebos[index], fate);
                unnoticed_placebo(fate)
            }
            Trying::Canary(index) => self.canary_ended(index, fate),
            Trying::Mutant(index) => {
                let fate = self.without_value(index, fate);
                self.fates.insert(index, fate);
                Ok(())
            }
        };
        sound.map_err(|refusal| Failure {
            gate: Gate::Mutation,
            refusal,
        })
    }

    fn trial(&self) -> Trial<'_> {
        Trial {
            plan: &self.plan,
            control: self.control.unwrap_or(Fate::NotRun),
            placebos: self.placebos.clone(),
            fates: self.fates.clone(),
            waivers: &self.waivers,
            equivalent: self.comparison.equivalent.clone(),
        }
    }

    fn judge_trial(&self) -> Result<Tally, Failure> {
        self.trial().judge().map_err(|refusal| Failure {
            gate: Gate::Mutation,
            refusal,
        })
    }
}

/// What is mutated: everything but what was made again.
fn own_changes<'a>(regenerated: &Regenerated, captured: &'a Captured) -> Cow<'a, [Change]> {
    if regenerated.rules.is_empty() {
        return Cow::Borrowed(&captured.changes);
    }
    let changes = captured.changes.iter();
    let own = changes.filter(|change| !regenerated.has(&change.path));
    Cow::Owned(own.cloned().collect())
}

/// The language of a witness that names another one than Rust.
fn operators_of(witness: &Witness) -> Result<Option<Language>, CertifierError> {
    let Some(name) = witness.language() else {
        return Ok(None);
    };
    match Language::of_toolchain(name) {
        None => Err(CertifierCode::WitnessInvalid.refuse(format_args!(
            "there are no operators for \"{}\"",
            escape(name, 40)
        ))),
        language => Ok(language),
    }
}

fn case_run(witness: &Witness, index: usize, program: &str, selector: Option<u64>) -> CaseRun {
    let case = &witness.cases()[index];
    let tests = witness.tests();
    let most = |alone: u64, of_tests: u64| if tests.is_some() { of_tests } else { alone };
    CaseRun {
        program: match tests {
            None => program.to_owned(),
            Some(_) => format!("{program}-{index}"),
        },
        args: case.args.clone(),
        stdin: case.stdin.clone(),
        files: case.files.clone(),
        env: case.env.clone(),
        selector,
        wall_ms: if selector.is_some() {
            most(MUTANT_WALL_MS, TESTS_WALL_MS)
        } else {
            most(CASE_WALL_MS, TESTS_WALL_MS)
        },
        tree: tests.map(|tests| tests.folder().to_owned()),
    }
}

/// What another machine would have otherwise, as far as a run can: another time zone and locale, its
/// home and its temporary directory by another name, a variable more. A session sets all but the
/// last for every run, and its cases lie in `/case`.
const ELSEWHERE: [(&str, &str); 5] = [
    ("HOME", "/case/."),
    ("TMPDIR", "/case/."),
    ("TZ", "XST-12:45"),
    ("LC_ALL", "C.UTF-8"),
    ("LANGUAGE", "en"),
];

/// The same case in other surroundings, but for what it sets itself. A test of the candidate's tree
/// may ask for them, and is repeated as it is.
fn elsewhere(run: &mut CaseRun) {
    if run.tree.is_none() {
        for (name, value) in ELSEWHERE {
            let set = run.env.entry(name.to_owned());
            set.or_insert_with(|| value.to_owned());
        }
    }
}

/// A permutation of `0..n` that follows from the seed: Fisher-Yates over a SHA-256 counter stream.
fn shuffled(n: usize, seed: &[u8; 32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        let block = Digest::keyed(seed, &(i as u64).to_be_bytes());
        let mut word = [0u8; 8];
        word.copy_from_slice(&block.as_bytes()[..8]);
        let j = u64::from_be_bytes(word) % (i as u64 + 1);
        order.swap(i, usize::try_from(j).unwrap_or(0));
    }
    order
}

#[cfg(test)]
mod tests;
