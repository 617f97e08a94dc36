use std::collections::{BTreeMap, BTreeSet};

use flightproof_core::{Refusal, RelPath, counted, escape};
use flightproof_evidence::{Ending, Observation};

use super::guard::FUEL_EXIT;
use super::operator::Operator;
use super::plan::{Mutant, MutationPlan, Unjudged};
use super::survey::Silence;
use crate::CertifierCode;
use crate::languages::Language;
use crate::witness::Waiver;

/// Exit status of a Rust program that panicked.
const PANIC_EXIT: u8 = 101;

/// One case, run in the program with all mutants, held against its expectation.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// What the session reported.
    pub observation: &'a Observation,
    /// How it compares with the witness.
    pub answer: Answer,
}

/// How an observation compares with the witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is what the witness expects.
    AsExpected,
    /// It is not.
    Differs,
}

/// What became of one mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Some case noticed it.
    Killed(Kill),
    /// Every case passed.
    Survived,
    /// Some run ended before its mutant was selected. Says nothing, so it never counts as a kill.
    NotLoaded,
    /// The clock ran out before some run's mutant was selected, which happens before `main`: the
    /// machine was too busy. Says nothing of the candidate.
    Starved,
    /// No case was run.
    NotRun,
}

/// How a mutant was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kill {
    /// Another answer: exit status, standard output or standard error.
    Value,
    /// A panic (exit status 101), or an error that nobody caught.
    Panic,
    /// A signal.
    Signal,
    /// It never ended, by the count of the guard.
    Fuel,
    /// It never ended, by the clock.
    Time,
    /// A limit of the session: memory, processes, output, a forbidden call.
    Limit,
}

impl Kill {
    /// Every class.
    pub const ALL: [Self; 6] = [
        Self::Value,
        Self::Panic,
        Self::Signal,
        Self::Fuel,
        Self::Time,
        Self::Limit,
    ];

    /// The stable name, as on a certificate.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Panic => "panic",
            Self::Signal => "signal",
            Self::Fuel => "fuel",
            Self::Time => "time",
            Self::Limit => "limit",
        }
    }

    /// How a run of a build without a guard was: no status of it means anything but its value.
    fn in_build(observation: &Observation) -> Self {
        match Self::of(observation) {
            Self::Fuel | Self::Panic => Self::Value,
            other => other,
        }
    }

    /// How a run that is noticed was.
    pub fn of(observation: &Observation) -> Self {
        match observation.ending {
            Ending::Exited { .. } if !observation.complete => Self::Limit,
            Ending::Exited { code: FUEL_EXIT } => Self::Fuel,
            Ending::Exited { code: PANIC_EXIT } => Self::Panic,
            Ending::Exited { .. } => Self::Value,
            Ending::Signaled { .. } => Self::Signal,
            Ending::TimedOut => Self::Time,
            Ending::ForbiddenCall
            | Ending::OutputLimit
            | Ending::ProcessLimit
            | Ending::MemoryLimit => Self::Limit,
        }
    }
}

impl Fate {
    /// The fate of a build after its cases ran: it needs no selector to be in force.
    pub(crate) fn of_build(language: Language, run: &Run<'_>) -> Self {
        match run.answer {
            Answer::AsExpected => Self::Survived,
            Answer::Differs if language.crashed(run.observation) => Self::Killed(Kill::Panic),
            Answer::Differs => Self::Killed(Kill::in_build(run.observation)),
        }
    }

    /// The fate of a mutant after its cases ran, in order, up to the first that noticed it.
    pub fn of(runs: &[Run<'_>]) -> Self {
        let unarmed = runs.iter().find(|run| !run.observation.armed);
        if let Some(run) = unarmed {
            return match run.observation.ending {
                Ending::TimedOut => Self::Starved,
                _ => Self::NotLoaded,
            };
        }
        match runs.iter().find(|run| run.answer == Answer::Differs) {
            Some(run) => Self::Killed(Kill::of(run.observation)),
            None if runs.is_empty() => Self::NotRun,
            None => Self::Survived,
        }
    }
}

/// Everything the mutation gate is judged by.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// The mutants.
    pub plan: &'a MutationPlan,
    /// What became of the program with no mutant selected (selector 0), over all cases.
    pub control: Fate,
    /// What became of each selector of [`MutationPlan::placebos`], over all cases.
    pub placebos: BTreeMap<u64, Fate>,
    /// What became of each viable mutant, by index.
    pub fates: BTreeMap<usize, Fate>,
    /// Accepted survivors.
    pub waivers: &'a [Waiver],
    /// Survivors that the compiler made the original's program of, by index.
    pub equivalent: BTreeSet<usize>,
}

/// The outcome of mutation, in integers. Every mutant is counted once in
/// `killed + waived + equivalent + unviable == generated`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Mutants made.
    pub generated: u64,
    /// Mutants the compiler refused.
    pub unviable: u64,
    /// Killed mutants by class.
    pub killed: BTreeMap<Kill, u64>,
    /// Survivors that a waiver accepts.
    pub waived: u64,
    /// Survivors that are no other program than the original.
    pub equivalent: u64,
    /// Made and refused mutants by family. Where build scripts or procedural macros ran, the
    /// share of refused ones must be bounded: they can make the compiler say anything.
    pub families: BTreeMap<Operator, FamilyCount>,
}

/// Counts of one family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FamilyCount {
    /// Mutants made.
    pub generated: u64,
    /// Mutants the compiler refused.
    pub unviable: u64,
}

impl Trial<'_> {
    /// Judges.
    ///
    /// # Errors
    /// `NO_MUTANTS`, `FUNCTION_NOT_MUTATED`, `UNJUDGED_CODE`, `CONTROL_FAILED`, `PLACEBO_KILLED`,
    /// `MUTANT_NOT_LOADED`, `WAIVER_STALE`, `MUTANTS_SURVIVED`, `NO_KILL_BY_VALUE`, in this
    /// order: what voids the trial comes before what it found.
    pub fn judge(&self) -> Result<Tally, Refusal> {
        let tally = self.tally();
        if self.plan.is_vacuous() {
            self.unjudged()?;
            self.waive(&BTreeSet::new())?;
            return Ok(tally);
        }
        self.population()?;
        self.unjudged()?;
        self.controls()?;
        let survivors = self.survivors()?;
        let waived = self.waive(&survivors)?;
        let open: BTreeSet<usize> = &survivors - &waived;
        self.none_left(open.difference(&self.equivalent).copied())?;
        if tally.killed.get(&Kill::Value).copied().unwrap_or(0) == 0 {
            let generated = counted(tally.generated, "mutant");
            let detail = format!("{generated}, none killed by its answer");
            return Err(CertifierCode::NoKillByValue.refuse(detail).into());
        }
        Ok(Tally {
            waived: waived.len() as u64,
            equivalent: open.intersection(&self.equivalent).count() as u64,
            ..tally
        })
    }

    /// Nothing of the change that no mutant reaches is left unwaived. Known before any run.
    ///
    /// # Errors
    /// `UNJUDGED_CODE`.
    pub fn unjudged(&self) -> Result<(), Refusal> {
        let open = self.plan.unjudged.iter();
        let open = open.filter(|u| !self.waivers.iter().any(|w| w.accepts(&u.id(), u.source)));
        let open: Vec<&Unjudged> = open.collect();
        let Some(first) = open.first() else {
            return Ok(());
        };
        let detail = format!(
            "{} of them, such as {}",
            open.len(),
            escape(first.id(), 120)
        );
        let reasons: BTreeSet<Silence> = open.iter().map(|u| u.why).collect();
        let reasons = reasons.into_iter().map(|why| {
            let todo = why.todo().unwrap_or_default();
            format!("{}: {}; {todo}", why.name(), why.seen())
        });
        let waivers = open.iter().map(|u| Waiver::to_paste(&u.id(), u.source));
        let refusal = Refusal::from(CertifierCode::UnjudgedCode.refuse(detail)).with_notes(reasons);
        Err(with_waivers(refusal, waivers))
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for (index, mutant) in self.plan.mutants.iter().enumerate() {
            let family = tally.families.entry(mutant.operator).or_default();
            family.generated += 1;
            tally.generated += 1;
            if !mutant.viable {
                family.unviable += 1;
                tally.unviable += 1;
            } else if let Some(Fate::Killed(kill)) = self.fates.get(&index) {
                *tally.killed.entry(*kill).or_default() += 1;
            }
        }
        tally
    }

    /// There are mutants at all, and in every function that had any, unless all of it is known to be
    /// unjudged.
    fn population(&self) -> Result<(), Refusal> {
        if self.plan.viable().next().is_none() {
            let detail = format!(
                "{} made, none compiles; {} of code without one",
                counted(self.plan.mutants.len(), "mutant"),
                counted(self.plan.unmutated.len(), "changed line")
            );
            let lines = self.plan.unmutated.iter();
            let notes = lines.map(|u| format!("{}:{} {}", u.file, u.line, u.why.name()));
            return Err(Refusal::from(CertifierCode::NoMutants.refuse(detail)).with_notes(notes));
        }
        let mut functions: BTreeMap<_, bool> = BTreeMap::new();
        for mutant in &self.plan.mutants {
            *functions
                .entry((&mutant.file, mutant.function.as_str()))
                .or_default() |= mutant.viable && self.shows(mutant);
        }
        let owned_up = |file: &RelPath, function: &str| {
            let known = (file.clone(), function.to_owned());
            self.plan.owned_up.contains(&known)
        };
        let mut functions = functions.into_iter();
        let hidden =
            functions.find(|((file, function), viable)| !viable && !owned_up(file, function));
        hidden.map_or(Ok(()), |((file, function), _)| {
            let detail = format!("{file}: {}", escape(function, 200));
            Err(CertifierCode::FunctionNotMutated.refuse(detail).into())
        })
    }

    /// Whether a mutant counts for its function. That one is reached says nothing of it where the
    /// compiler refused what else it has, but for what hangs on its types.
    fn shows(&self, mutant: &Mutant) -> bool {
        let mut all = self.plan.mutants.iter();
        mutant.replacement != "end"
            || !all.any(|other| {
                (&other.file, &other.function) == (&mutant.file, &mutant.function)
                    && !other.viable
                    && !other.aside
                    && !other.operator.hangs_on_types()
            })
    }

    fn controls(&self) -> Result<(), Refusal> {
        unchanged_control(self.control)?;
        for placebo in &self.plan.placebos {
            unnoticed_placebo(self.placebos.get(placebo).copied().unwrap_or(Fate::NotRun))?;
        }
        Ok(())
    }

    fn survivors(&self) -> Result<BTreeSet<usize>, Refusal> {
        let mut out = BTreeSet::new();
        for index in self.plan.viable() {
            let fate = self.fates.get(&index).copied().unwrap_or(Fate::NotRun);
            let id = self.plan.mutants.get(index).map_or("", |m| m.id.as_str());
            loaded(fate, id)?;
            if fate == Fate::Survived {
                out.insert(index);
            }
        }
        Ok(out)
    }

    /// The survivors that waivers accept. Every waiver must accept exactly one.
    fn waive(&self, survivors: &BTreeSet<usize>) -> Result<BTreeSet<usize>, Refusal> {
        let mut waived = BTreeSet::new();
        for waiver in self.waivers {
            if self.plan.is_unjudged(waiver) {
                continue;
            }
            let fits = |m: &Mutant| waiver.accepts(&m.id, m.source);
            let mut survivors = survivors.iter().copied();
            let found = survivors.find(|i| self.plan.mutants.get(*i).is_some_and(fits));
            if !found.is_some_and(|index| waived.insert(index)) {
                let detail = format!(
                    "{} in a file {}",
                    escape(&waiver.mutant, 200),
                    waiver.source
                );
                return Err(CertifierCode::WaiverStale.refuse(detail).into());
            }
        }
        Ok(waived)
    }

    /// Survivors that nobody accepts. None where the trial is void.
    pub(crate) fn open(&self) -> BTreeSet<usize> {
        let Ok(survivors) = self.survivors() else {
            return BTreeSet::new();
        };
        match self.waive(&survivors) {
            Ok(waived) => &survivors - &waived,
            Err(_) => BTreeSet::new(),
        }
    }

    fn none_left(&self, survivors: impl Iterator<Item = usize>) -> Result<(), Refusal> {
        let alive: Vec<&Mutant> = survivors
            .filter_map(|index| self.plan.mutants.get(index))
            .collect();
        let Some(first) = alive.first() else {
            return Ok(());
        };
        let detail = format!(
            "{} of them, such as {}",
            alive.len(),
            escape(&first.id, 120)
        );
        let refusal = Refusal::from(CertifierCode::MutantsSurvived.refuse(detail));
        let waivers = alive.iter().map(|m| Waiver::to_paste(&m.id, m.source));
        Err(with_waivers(refusal, waivers))
    }
}

/// Most waivers that a refusal prints.
const MAX_WAIVERS: usize = 24;

/// A refusal that tells what it is about as waivers to paste: such a note is neither cut nor escaped, or
/// it would be no JSON.
fn with_waivers(mut refusal: Refusal, waivers: impl Iterator<Item = String>) -> Refusal {
    let mut waivers = waivers;
    refusal.notes.extend(waivers.by_ref().take(MAX_WAIVERS));
    match waivers.count() {
        0 => refusal,
        more => refusal.with_notes([format!("and {more} more")]),
    }
}

/// With no mutant selected the program must be the candidate.
pub(crate) fn unchanged_control(fate: Fate) -> Result<(), Refusal> {
    loaded(fate, "control")?;
    match fate {
        Fate::Killed(kill) => Err(CertifierCode::ControlFailed
            .refuse(format!(
                "no mutant selected, and the program differs ({})",
                kill.name()
            ))
            .into()),
        _ => Ok(()),
    }
}

/// A mutant that changes nothing must not be noticed.
pub(crate) fn unnoticed_placebo(fate: Fate) -> Result<(), Refusal> {
    loaded(fate, "placebo")?;
    match fate {
        Fate::Killed(kill) => Err(CertifierCode::PlaceboKilled
            .refuse(format!(
                "a mutant that changes nothing was noticed ({})",
                kill.name()
            ))
            .into()),
        _ => Ok(()),
    }
}

fn loaded(fate: Fate, who: &str) -> Result<(), Refusal> {
    let (code, how) = match fate {
        Fate::NotLoaded => (CertifierCode::MutantNotLoaded, "the guard took no selector"),
        Fate::NotRun => (CertifierCode::MutantNotLoaded, "no case was run"),
        Fate::Starved => (CertifierCode::MutantStarved, "its time ran out before main"),
        Fate::Killed(_) | Fate::Survived => return Ok(()),
    };
    Err(code.refuse(format!("{}: {how}", escape(who, 200))).into())
}
