//! Every mutant against the checks that come across it, quickest and most promising first.

use super::bench::{Bench, Build, Supplies};
use super::checks::{Check, Checks, Noticed};
use super::{Oracle, report::Fate};
use crate::show::Progress;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::mutation::{Kill, MOST_EACH, Mutant, MutationPlan, UNARMED_EXIT};
use flightproof_certifier::suite::MAX_NAMED;
use flightproof_core::{Bytes, Refusal, escape};
use flightproof_evidence::{Ending, Observation};
use flightproof_session::observe;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError};

/// How much longer a mutant that ran out of wall clock may take when it is tried again, alone.
const PATIENCE: u64 = 3;
/// How many times more tests the next run of a mutant has than the last: one that survives is run a
/// few times in all, one that dies does so with little beside it.
const GROWTH: usize = 4;

/// After so many starts of a program that did not count, each of its mutants is tried alone.
const MOST_FAILED_STARTS: u32 = 3;
/// How a run ends, as `wait` tells it, that got no place of its own.
const UNARMED: u32 = (UNARMED_EXIT as u32) << 8;
/// Most mutants of one start of a program. The last number of a start selects none.
const MOST_TOGETHER: usize = MOST_EACH - 1;

/// What all sessions share.
struct Shared<'a> {
    build: &'a Build,
    checks: &'a Checks,
    oracle: &'a Oracle,
    todo: Mutex<Todo>,
    /// A session has put something into what is to do, or will put nothing more into it.
    news: Condvar,
    fates: Mutex<BTreeMap<usize, Fate>>,
    /// Microseconds that all runs of a mutant took.
    took: Mutex<BTreeMap<usize, u64>>,
    /// Starts that did not count, by program.
    failed: Mutex<BTreeMap<usize, u32>>,
    /// Kills by function and check.
    kills: Mutex<BTreeMap<(String, usize), u64>>,
}

/// What is to do.
#[derive(Default)]
struct Todo {
    /// Mutants that nothing was tried on, by number, those of a function beside each other.
    fresh: VecDeque<usize>,
    /// Mutants by the checks they are tried with next.
    ready: BTreeMap<Vec<usize>, Vec<Pending>>,
    /// Sessions that may still put something into it.
    busy: usize,
}

/// A mutant whose fate is open.
struct Pending {
    number: usize,
    /// The checks that come across it and were not run, in their order.
    left: Vec<usize>,
    /// How many of them the next run has.
    most: usize,
    reaching: usize,
}

/// The fate of every mutant that was tried, and the microseconds that took, by its number in the plan.
pub(super) fn run(
    mut bench: Bench,
    (supplies, build, checks): (&Supplies<'_>, &Build, &Checks),
    oracle: &Oracle,
    jobs: usize,
    progress: &Progress,
) -> Result<BTreeMap<usize, (Fate, u64)>, Refusal> {
    let shared = Shared {
        build,
        checks,
        oracle,
        todo: Mutex::new(Todo {
            fresh: build.plan.viable().collect(),
            ..Todo::default()
        }),
        news: Condvar::new(),
        fates: Mutex::default(),
        took: Mutex::default(),
        failed: Mutex::default(),
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
    let fates = shared.fates.into_inner();
    let took = shared.took.into_inner();
    let took = took.unwrap_or_else(PoisonError::into_inner);
    let fates = fates.unwrap_or_else(PoisonError::into_inner).into_iter();
    let both =
        fates.map(|(number, fate)| (number, (fate, took.get(&number).copied().unwrap_or(0))));
    Ok(both.collect())
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
        let whole = self.build.plan.viable().count();
        while let Some(mut task) = self.take() {
            let noticed = self.together(bench, &task)?;
            let open = task
                .group
                .drain(..)
                .zip(noticed)
                .filter_map(|(pending, noticed)| self.settle(pending, &task.checks, noticed));
            let open: Vec<Pending> = open.collect();
            task.put_back(open);
            let fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
            ticker.tick(fates.len(), whole, || {
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

    /// Mutants that are tried with the same checks next; none when all fates are known.
    fn take(&self) -> Option<Task<'_>> {
        let mut todo = self.todo.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let full = todo
                .ready
                .values()
                .any(|group| group.len() >= MOST_TOGETHER);
            if !full {
                let fresh = todo.next_function(&self.build.plan);
                self.sort(
                    &mut todo,
                    fresh.into_iter().map(|number| self.pending(number)),
                );
            }
            let most = todo.ready.iter().max_by_key(|(_, group)| group.len());
            if let Some((checks, _)) = most {
                let checks = checks.clone();
                let mut group = todo.ready.remove(&checks).unwrap_or_default();
                let rest = group.split_off(group.len().min(MOST_TOGETHER));
                if !rest.is_empty() {
                    todo.ready.insert(checks.clone(), rest);
                }
                todo.busy += 1;
                return Some(Task {
                    shared: self,
                    checks,
                    group,
                });
            }
            if todo.fresh.is_empty() {
                if todo.busy == 0 {
                    return None;
                }
                todo = self.news.wait(todo).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn pending(&self, number: usize) -> Pending {
        let left = self.build.plan.mutants.get(number);
        let left = left.map_or_else(Vec::new, |mutant| self.order(mutant));
        Pending {
            number,
            reaching: left.len(),
            left,
            most: 1,
        }
    }

    /// By the checks that come next. What none is left for has survived.
    fn sort(&self, todo: &mut Todo, open: impl Iterator<Item = Pending>) {
        for pending in open {
            let next = pending.next(self.checks);
            if next.is_empty() {
                self.ended(&pending);
            } else {
                todo.ready.entry(next).or_default().push(pending);
            }
        }
    }

    /// Every check passed.
    fn ended(&self, pending: &Pending) {
        let fate = Fate::Survived {
            reaching: pending.reaching,
        };
        self.note(pending.number, fate);
    }

    fn note(&self, number: usize, fate: Fate) {
        let mut fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
        fates.insert(number, fate);
    }

    /// What some checks said of a mutant; what is left of it, if its fate is still open.
    fn settle(&self, mut pending: Pending, some: &[usize], noticed: Noticed) -> Option<Pending> {
        match noticed {
            Noticed::No => {
                pending.left.retain(|at| !some.contains(at));
                if self.oracle.is_tests() {
                    pending.most = (pending.most * GROWTH).min(MAX_NAMED);
                }
                return Some(pending);
            }
            Noticed::NotLoaded => self.note(pending.number, Fate::NotRun),
            Noticed::Yes(name, how) => {
                self.remember(pending.number, some, name.as_deref());
                self.note(pending.number, Fate::Noticed { by: name, how });
            }
        }
        None
    }

    /// Tries mutants with some checks: in one start of the program where that is possible and all goes
    /// well, and otherwise in one each.
    fn together(&self, bench: &mut Bench, task: &Task<'_>) -> Result<Vec<Noticed>, Refusal> {
        let numbers: Vec<usize> = task.group.iter().map(|pending| pending.number).collect();
        let mut shared = Vec::new();
        if self.oracle.is_tests() && numbers.len() > 1 {
            shared = self.in_one_start(bench, &task.checks, &numbers)?;
        }
        let mut shared = shared.into_iter();
        numbers
            .into_iter()
            .map(|number| match shared.next().flatten() {
                Some(noticed) => Ok(noticed),
                None => self.alone(bench, &task.checks, number, 1),
            })
            .collect()
    }

    /// What each came to, as far as that can be told here: none took longer than it may alone, and at the
    /// end the checks still pass without a mutant. A program that cannot be started so is not asked again
    /// and again.
    fn in_one_start(
        &self,
        bench: &mut Bench,
        some: &[usize],
        numbers: &[usize],
    ) -> Result<Vec<Option<Noticed>>, Refusal> {
        let some = self.named(some);
        let program = some.first().map_or(0, |check| check.program);
        if self.failed_starts(program, 0) >= MOST_FAILED_STARTS {
            return Ok(Vec::new());
        }
        let selectors = numbers.iter().map(|number| self.selector(*number));
        let selectors: Vec<u64> = selectors.chain([0]).collect();
        let run = self.checks.trials(self.oracle, &some, &selectors);
        let (whole, _) = bench.run(&run)?;
        let names: Vec<&str> = some.iter().map(|check| check.name.as_str()).collect();
        let most = self.checks.trial(self.oracle, &some, 0).wall_ms;
        let parts = self.build.plan.parts(&whole.stdout);
        let noticed = parts.iter().map(|part| {
            let observation = Observation {
                ending: observe::waited(part.status),
                stdout: part.stdout.to_vec().into(),
                stderr: Bytes::default(),
                complete: true,
                armed: true,
            };
            let known = part.microseconds / 1_000 < most && part.status != UNARMED;
            known.then(|| self.checks.noticed(self.oracle, &names, &observation))
        });
        let mut noticed: Vec<Option<Noticed>> = noticed.collect();
        let ended = whole.armed && whole.complete && whole.ending == (Ending::Exited { code: 0 });
        let all = noticed.len() == selectors.len();
        if !ended || !all || !matches!(noticed.pop(), Some(Some(Noticed::No))) {
            self.failed_starts(program, 1);
            return Ok(Vec::new());
        }
        for (number, part) in numbers.iter().zip(&parts) {
            self.time(*number, part.microseconds);
        }
        Ok(noticed)
    }

    /// How many starts of a program did not count, with so many more.
    fn failed_starts(&self, program: usize, more: u32) -> u32 {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failed.entry(program).or_default();
        *count += more;
        *count
    }

    fn alone(
        &self,
        bench: &mut Bench,
        some: &[usize],
        number: usize,
        patience: u64,
    ) -> Result<Noticed, Refusal> {
        let some = self.named(some);
        let mut run = self.checks.trial(self.oracle, &some, self.selector(number));
        run.wall_ms = run.wall_ms.saturating_mul(patience);
        let (observation, took) = bench.run(&run)?;
        self.time(number, took.saturating_mul(1_000));
        let names: Vec<&str> = some.iter().map(|check| check.name.as_str()).collect();
        Ok(self.checks.noticed(self.oracle, &names, &observation))
    }

    fn time(&self, number: usize, microseconds: u64) {
        let mut took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = took.entry(number).or_default();
        *sum = sum.saturating_add(microseconds);
    }

    fn named(&self, some: &[usize]) -> Vec<&Check> {
        let all = &self.checks.all;
        some.iter().filter_map(|at| all.get(*at)).collect()
    }

    fn selector(&self, number: usize) -> u64 {
        let mutant = self.build.plan.mutants.get(number);
        mutant.map_or(0, |mutant| mutant.selector)
    }

    /// The checks that come across a mutant: first those that killed others of its function, then
    /// the quickest.
    fn order(&self, mutant: &Mutant) -> Vec<usize> {
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
        reaching.into_iter().map(|(at, _)| at).collect()
    }

    fn remember(&self, number: usize, some: &[usize], name: Option<&str>) {
        let called = |at: &&usize| self.checks.all.get(**at).map(|c| c.name.as_str()) == name;
        let found = some.iter().find(called);
        if let (Some(at), Some(mutant)) = (found, self.build.plan.mutants.get(number)) {
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
            let mut open = Some(self.pending(number));
            while let Some(pending) = open.take() {
                let next = pending.next(self.checks);
                if next.is_empty() {
                    self.ended(&pending);
                    break;
                }
                let noticed = self.alone(bench, &next, number, PATIENCE)?;
                open = self.settle(pending, &next, noticed);
            }
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

impl Todo {
    /// Mutants of one function that nothing was tried on, as many as fit into one start.
    fn next_function(&mut self, plan: &MutationPlan) -> Vec<usize> {
        let place = |number: &usize| plan.mutants.get(*number).map(place);
        let Some(first) = self.fresh.front().map(place) else {
            return Vec::new();
        };
        let same = self.fresh.iter().take(MOST_TOGETHER);
        let same = same.take_while(|number| place(number) == first).count();
        self.fresh.drain(..same).collect()
    }
}

impl Pending {
    /// The checks it is tried with next: as many as it may have, all of one program.
    fn next(&self, checks: &Checks) -> Vec<usize> {
        let program = |at: &usize| checks.all.get(*at).map(|check| check.program);
        let first = self.left.first().and_then(program);
        let same = self.left.iter().filter(|at| program(at) == first);
        same.take(self.most).copied().collect()
    }
}

/// Mutants that one session has taken.
struct Task<'a> {
    shared: &'a Shared<'a>,
    checks: Vec<usize>,
    group: Vec<Pending>,
}

impl Task<'_> {
    /// What is still open goes back.
    fn put_back(self, open: Vec<Pending>) {
        let todo = &self.shared.todo;
        let mut todo = todo.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.sort(&mut todo, open.into_iter());
    }
}

/// Also when the session fails: nobody may wait for it.
impl Drop for Task<'_> {
    fn drop(&mut self) {
        let todo = &self.shared.todo;
        let mut todo = todo.lock().unwrap_or_else(PoisonError::into_inner);
        todo.busy -= 1;
        self.shared.news.notify_all();
    }
}

fn place(mutant: &Mutant) -> String {
    format!("{} {}", mutant.file, mutant.function)
}
