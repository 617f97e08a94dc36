//! Every mutant against the checks that come across it, quickest and most promising first.

use super::bench::{Bench, Build, Supplies};
use super::checks::{Check, Checks, Noticed};
use super::{Oracle, report::Fate};
use crate::show::Progress;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::mutation::{Kill, Mutant};
use flightproof_certifier::suite::MAX_NAMED;
use flightproof_core::{Refusal, escape};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How much longer a mutant that ran out of wall clock may take when it is tried again, alone.
const PATIENCE: u64 = 3;
/// How many times more tests the next run of a mutant has than the last: one that survives is run a
/// few times in all, one that dies does so with little beside it.
const GROWTH: usize = 4;

/// What all sessions share.
struct Shared<'a> {
    build: &'a Build,
    checks: &'a Checks,
    oracle: &'a Oracle,
    queue: &'a [usize],
    next: AtomicUsize,
    fates: Mutex<BTreeMap<usize, Fate>>,
    /// Kills by function and check.
    kills: Mutex<BTreeMap<(String, usize), u64>>,
}

/// The fate of every mutant that was tried, by its number in the plan.
pub(super) fn run(
    mut bench: Bench,
    (supplies, build, checks): (&Supplies<'_>, &Build, &Checks),
    oracle: &Oracle,
    jobs: usize,
    progress: &Progress,
) -> Result<BTreeMap<usize, Fate>, Refusal> {
    let queue: Vec<usize> = build.plan.viable().collect();
    let shared = Shared {
        build,
        checks,
        oracle,
        queue: &queue,
        next: AtomicUsize::new(0),
        fates: Mutex::default(),
        kills: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs.max(1))
            .map(|_| scope.spawn(|| shared.helped(supplies)))
            .collect();
        let own = shared.work(&mut bench, progress);
        others.into_iter().fold(own, |ended, other| {
            ended.and(
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        })
    })?;
    shared.retry(&mut bench)?;
    shared.controls(&mut bench)?;
    bench.close()?;
    Ok(shared
        .fates
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner))
}

impl Shared<'_> {
    /// A further session: it builds what the first one built.
    fn helped(&self, supplies: &Supplies<'_>) -> Result<(), Refusal> {
        let mut bench = Bench::open(supplies)?;
        bench.rebuild(self.build)?;
        self.work(&mut bench, &Progress::new(crate::show::Speak::Nothing))?;
        bench.close()
    }

    fn work(&self, bench: &mut Bench, progress: &Progress) -> Result<(), Refusal> {
        let mut ticker = progress.ticker();
        while let Some(number) = self.queue.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let fate = self.fate(bench, *number, 1)?;
            let mut fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
            fates.insert(*number, fate);
            ticker.tick(fates.len(), self.queue.len(), || {
                let count = |which: fn(&Fate) -> bool| fates.values().filter(|f| which(f)).count();
                format!(
                    "{} noticed, {} survived",
                    count(|f| matches!(f, Fate::Noticed { .. })),
                    count(|f| matches!(f, Fate::Survived { .. }))
                )
            });
        }
        Ok(())
    }

    fn fate(&self, bench: &mut Bench, number: usize, patience: u64) -> Result<Fate, Refusal> {
        let Some(mutant) = self.build.plan.mutants.get(number) else {
            return Ok(Fate::NotRun);
        };
        let mut left = self.order(mutant);
        let reaching = left.len();
        let mut most = 1;
        while let Some((_, first)) = left.first() {
            let program = first.program;
            let some: Vec<(usize, &Check)> = left
                .iter()
                .filter(|(_, check)| check.program == program)
                .take(most)
                .copied()
                .collect();
            left.retain(|(at, _)| some.iter().all(|(taken, _)| taken != at));
            if matches!(self.oracle, Oracle::Tests) {
                most = (most * GROWTH).min(MAX_NAMED);
            }
            match self.try_some(bench, mutant, &some, patience)? {
                Noticed::No => {}
                Noticed::NotLoaded => return Ok(Fate::NotRun),
                Noticed::Yes(name, how) => {
                    self.remember(mutant, &some, name.as_deref());
                    return Ok(Fate::Noticed { by: name, how });
                }
            }
        }
        Ok(Fate::Survived { reaching })
    }

    fn try_some(
        &self,
        bench: &mut Bench,
        mutant: &Mutant,
        some: &[(usize, &Check)],
        patience: u64,
    ) -> Result<Noticed, Refusal> {
        let some: Vec<&Check> = some.iter().map(|(_, check)| *check).collect();
        let mut run = self.checks.trial(self.oracle, &some, mutant.selector);
        run.wall_ms = run.wall_ms.saturating_mul(patience);
        let (observation, _) = bench.run(&run)?;
        let names: Vec<&str> = some.iter().map(|check| check.name.as_str()).collect();
        Ok(self.checks.noticed(self.oracle, &names, &observation))
    }

    /// The checks that come across a mutant: first those that killed others of its function, then
    /// the quickest.
    fn order(&self, mutant: &Mutant) -> Vec<(usize, &Check)> {
        let kills = self.kills.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place(mutant);
        let all = self.checks.all.iter().enumerate();
        let mut reaching: Vec<_> = all
            .filter(|(_, check)| check.reaches(mutant.selector))
            .collect();
        reaching.sort_by_cached_key(|(at, check)| {
            let killed = kills.get(&(place.clone(), *at)).copied().unwrap_or(0);
            (Reverse(killed), check.ms, *at)
        });
        reaching
    }

    fn remember(&self, mutant: &Mutant, some: &[(usize, &Check)], name: Option<&str>) {
        let found = some
            .iter()
            .find(|(_, check)| Some(check.name.as_str()) == name);
        if let Some((at, _)) = found {
            let mut kills = self.kills.lock().unwrap_or_else(PoisonError::into_inner);
            *kills.entry((place(mutant), *at)).or_default() += 1;
        }
    }

    /// What ran out of wall clock may only have been slow beside the others.
    fn retry(&self, bench: &mut Bench) -> Result<(), Refusal> {
        let late: Vec<usize> = {
            let fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
            let late = fates.iter().filter(|(_, fate)| {
                matches!(
                    fate,
                    Fate::Noticed {
                        how: Kill::Time,
                        ..
                    }
                )
            });
            late.map(|(number, _)| *number).collect()
        };
        for number in late {
            let fate = self.fate(bench, number, PATIENCE)?;
            let mut fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
            fates.insert(number, fate);
        }
        Ok(())
    }

    /// At the end everything must still pass without a mutant, and with one that changes nothing.
    fn controls(&self, bench: &mut Bench) -> Result<(), Refusal> {
        let placebos = &self.build.plan.placebos;
        for program in 0..self.checks.programs() {
            let placebo = placebos.get(program % placebos.len().max(1)).copied();
            for selector in [Some(0), placebo].into_iter().flatten() {
                let code = match selector {
                    0 => CertifierCode::ControlFailed,
                    _ => CertifierCode::PlaceboKilled,
                };
                for control in self.checks.controls(self.oracle, program, selector) {
                    let names: Vec<&str> = control.names.iter().map(String::as_str).collect();
                    let (observation, _) = bench.run(&control.case)?;
                    if let Noticed::Yes(name, how) =
                        self.checks.noticed(self.oracle, &names, &observation)
                    {
                        let name =
                            name.map_or_else(String::new, |n| format!(" {}", escape(n, 200)));
                        return Err(code.refuse(format!("{}{name}", how.name())).into());
                    }
                }
            }
        }
        Ok(())
    }
}

fn place(mutant: &Mutant) -> String {
    format!("{} {}", mutant.file, mutant.function)
}
