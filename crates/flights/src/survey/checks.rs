//! What has to notice mutants, measured without one: which tests pass, how long each takes, and
//! which mutants each comes across.

use super::bench::{Bench, Build};
use super::{LeftOut, Oracle};
use crate::FlightsCode;
use crate::show::count;
use flightproof_certifier::mutation::{EACH, Fuel, Kill, REACHING, Reach};
use flightproof_certifier::suite::{self, Heard};
use flightproof_certifier::{feedback, judge};
use flightproof_core::{Refusal, escape};
use flightproof_evidence::{CaseRun, Ending, Observation, TestProgram};
use std::collections::{BTreeMap, BTreeSet};

/// Longest run of one test without a mutant, milliseconds. A slower one would be run for thousands
/// of mutants.
const TEST_WALL_MS: u64 = 120_000;
/// Longest run of a list of tests, milliseconds.
const LIST_WALL_MS: u64 = 30_000;
/// Least wall clock of a run with a mutant, milliseconds: loops run out of fuel long before.
const MIN_WALL_MS: u64 = 5_000;
/// Most wall clock of one run, milliseconds.
const MAX_WALL_MS: u64 = 900_000;
/// How much longer than without a mutant a run may take: other work shares the machine.
const WALL_FACTOR: u64 = 10;
/// How often tests are run beside each other until those that cannot be are found.
const MAX_TOGETHER: u32 = 4;

/// One test, or one case of a witness.
pub(super) struct Check {
    pub(super) program: usize,
    pub(super) name: String,
    /// How long it took without a mutant.
    pub(super) ms: u64,
    /// What it comes across; `None` if it did not tell: then it may come across everything.
    pub(super) reach: Option<Reach>,
}

impl Check {
    pub(super) fn reaches(&self, selector: u64) -> bool {
        let seen = self.reach.as_ref();
        seen.is_none_or(|reach| reach.selectors.contains(&selector))
    }
}

/// All of them.
pub(super) struct Checks {
    pub(super) all: Vec<Check>,
    pub(super) left_out: Vec<LeftOut>,
    programs: Vec<TestProgram>,
    tests: bool,
    /// Whether there is no mutant at all: then no program has a guard.
    plain: bool,
}

/// What a run with a mutant came to.
pub(super) enum Noticed {
    No,
    /// By which check, if it said so, and how.
    Yes(Option<String>, Kill),
    /// The mutant was never selected.
    NotLoaded,
}

impl Checks {
    /// What is counted.
    pub(super) fn word(&self) -> &'static str {
        if self.tests { "test" } else { "case" }
    }

    /// A name that no other has: programs may have tests of one name.
    pub(super) fn label(&self, check: &Check) -> String {
        let program = self.programs.get(check.program).filter(|_| self.tests);
        match program {
            Some(program) => format!("{}: {}", program.target, check.name),
            None => check.name.clone(),
        }
    }

    /// # Errors
    /// `NOTHING_JUDGES`.
    pub(super) fn must_judge(&self) -> Result<(), Refusal> {
        if !self.all.is_empty() {
            return Ok(());
        }
        let first = self.left_out.first();
        let first = first.map_or_else(String::new, |l| format!("; {}: {}", l.name, l.why));
        let detail = format!("{}{first}", count(self.left_out.len(), self.word()));
        Err(FlightsCode::NothingJudges.refuse(detail).into())
    }

    pub(super) fn measure(
        bench: &mut Bench,
        build: &Build,
        oracle: &Oracle,
    ) -> Result<Self, Refusal> {
        let mut checks = Self {
            all: Vec::new(),
            left_out: Vec::new(),
            programs: build.programs.clone(),
            tests: oracle.is_tests(),
            plain: build.plan.viable().next().is_none(),
        };
        let names = match oracle {
            Oracle::Tests | Oracle::Suite(_) => checks.list(bench, build)?,
            Oracle::Witness(witness) => {
                let cases = witness.cases().iter();
                cases.map(|case| (0, case.id.clone())).collect()
            }
        };
        for (program, name) in names {
            checks.measure_one(bench, build, oracle, program, name)?;
        }
        if checks.tests {
            for program in 0..checks.programs.len() {
                checks.together(bench, oracle, program)?;
            }
        }
        Ok(checks)
    }

    fn leave_out(&mut self, program: usize, name: &str, why: String) {
        let target = self.programs.get(program).map_or("", |p| p.target.as_str());
        let target = if self.tests { target } else { "" };
        self.left_out.push(LeftOut {
            target: target.to_owned(),
            name: escape(name, 400),
            why,
        });
    }

    /// The tests of every program that a mutant is linked into.
    fn list(&mut self, bench: &mut Bench, build: &Build) -> Result<Vec<(usize, String)>, Refusal> {
        let mut names = Vec::new();
        for (at, program) in self.programs.clone().iter().enumerate() {
            let args = ["--list", "--format", "terse"].map(str::to_owned).to_vec();
            let run = self.suite_run(program, args, REACHING, LIST_WALL_MS);
            let (observation, _) = bench.run(&run)?;
            if !observation.armed {
                // Nothing in it calls the guard, so it cannot come across a mutant.
                let found = suite::listed(&observation, &observation.stdout);
                let tests = found.map_or(0, |tests| tests.len());
                if tests > 0 {
                    let why = format!(
                        "{tests} of its tests start the program, or use nothing that is mutated: no mutant is in them"
                    );
                    self.leave_out(at, "*", why);
                }
                continue;
            }
            let stdout = build.plan.reach(&observation.stdout);
            let stdout = stdout.map_or(&observation.stdout[..], |(_, own)| own);
            match suite::listed(&observation, stdout) {
                Some(tests) => names.extend(tests.into_iter().map(|test| (at, test))),
                None => self.leave_out(at, "*", "it has a harness of its own".to_owned()),
            }
        }
        Ok(names)
    }

    fn measure_one(
        &mut self,
        bench: &mut Bench,
        build: &Build,
        oracle: &Oracle,
        program: usize,
        name: String,
    ) -> Result<(), Refusal> {
        let run = self.run_of(oracle, program, &[&name], REACHING, TEST_WALL_MS);
        let (mut observation, ms) = bench.run(&run)?;
        let (reach, own) = match build.plan.reach(&observation.stdout) {
            Some((reach, own)) => (Some(reach), own.to_vec()),
            None => (None, observation.stdout.to_vec()),
        };
        observation.stdout = own.into();
        match self.noticed(oracle, &[&name], &observation) {
            Noticed::No => self.all.push(Check {
                program,
                name,
                ms,
                reach,
            }),
            Noticed::NotLoaded => self.leave_out(program, &name, "it ended before main".to_owned()),
            Noticed::Yes(..) => {
                let why = match oracle.case(&name) {
                    Some(case) => feedback::to_owner(case, &observation),
                    None => why_not(&observation),
                };
                self.leave_out(program, &name, why);
            }
        }
        Ok(())
    }

    /// All tests of a program in one process, until those are left that pass beside each other:
    /// later they are run like this.
    fn together(
        &mut self,
        bench: &mut Bench,
        oracle: &Oracle,
        program: usize,
    ) -> Result<(), Refusal> {
        for _ in 0..MAX_TOGETHER {
            let mut fallen = BTreeSet::new();
            for run in self.controls(oracle, program, 0) {
                let (observation, _) = bench.run(&run.case)?;
                let names: Vec<&str> = run.names.iter().map(String::as_str).collect();
                if let Noticed::No = self.noticed(oracle, &names, &observation) {
                    continue;
                }
                let failed = suite::failed(&observation.stdout);
                // Without a name, none of them can be trusted beside the others.
                match failed.is_empty() {
                    true => fallen.extend(run.names),
                    false => fallen.extend(failed),
                }
            }
            if fallen.is_empty() {
                return Ok(());
            }
            let why = "it passes alone and fails beside the others";
            for name in &fallen {
                self.leave_out(program, name, why.to_owned());
            }
            self.all
                .retain(|check| check.program != program || !fallen.contains(&check.name));
        }
        let rest: Vec<String> = self.of(program).map(|check| check.name.clone()).collect();
        for name in rest {
            self.leave_out(
                program,
                &name,
                "the tests beside it do not settle".to_owned(),
            );
        }
        self.all.retain(|check| check.program != program);
        Ok(())
    }

    fn of(&self, program: usize) -> impl Iterator<Item = &Check> {
        self.all
            .iter()
            .filter(move |check| check.program == program)
    }

    /// Runs of all checks of a program with a selector that must change nothing.
    pub(super) fn controls(&self, oracle: &Oracle, program: usize, selector: u64) -> Vec<Control> {
        let all: Vec<&Check> = self.of(program).collect();
        let most = if self.tests { suite::MAX_NAMED } else { 1 };
        let runs = all.chunks(most).map(|some| Control {
            case: self.trial(oracle, some, selector),
            names: some.iter().map(|check| check.name.clone()).collect(),
        });
        runs.collect()
    }

    /// One run of some checks of one program with a mutant.
    pub(super) fn trial(&self, oracle: &Oracle, some: &[&Check], selector: u64) -> CaseRun {
        let program = some.first().map_or(0, |check| check.program);
        let names: Vec<&str> = some.iter().map(|check| check.name.as_str()).collect();
        let ms: u64 = some.iter().map(|check| check.ms).sum();
        let spent = some
            .iter()
            .map(|check| check.reach.as_ref().map(|reach| reach.spent))
            .sum::<Option<u64>>();
        let word = spent.map_or(Fuel::UNKNOWN, Fuel::after).selecting(selector);
        let wall = ms.saturating_mul(WALL_FACTOR).saturating_add(MIN_WALL_MS);
        self.run_of(oracle, program, &names, word, wall.min(MAX_WALL_MS))
    }

    /// One run of some tests of one program with several mutants, one after the other.
    pub(super) fn trials(&self, oracle: &Oracle, some: &[&Check], selectors: &[u64]) -> CaseRun {
        let mut run = self.trial(oracle, some, 0);
        let ms: u64 = some.iter().map(|check| check.ms).sum();
        let more = ms.saturating_mul(selectors.len() as u64);
        run.wall_ms = run.wall_ms.saturating_add(more).min(MAX_WALL_MS);
        // The fuel of each stands with it.
        let fuel = run.selector.unwrap_or(0);
        let words = selectors.iter().map(|selector| fuel | selector);
        run.stdin = words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into();
        run.selector = Some(EACH);
        run
    }

    fn run_of(
        &self,
        oracle: &Oracle,
        program: usize,
        names: &[&str],
        selector: u64,
        wall_ms: u64,
    ) -> CaseRun {
        let (Some(built), Some(first)) = (self.programs.get(program), names.first()) else {
            return nothing();
        };
        match oracle {
            Oracle::Tests | Oracle::Suite(_) => {
                let args = suite::arguments(names.iter().copied());
                self.suite_run(built, args, selector, wall_ms)
            }
            Oracle::Witness(_) => {
                let Some(case) = oracle.case(first) else {
                    return nothing();
                };
                CaseRun {
                    program: built.program.clone(),
                    args: case.args.clone(),
                    stdin: case.stdin.clone(),
                    files: case.files.clone(),
                    env: case.env.clone(),
                    selector: Some(selector).filter(|_| !self.plain),
                    wall_ms,
                    tree: None,
                }
            }
        }
    }

    fn suite_run(
        &self,
        built: &TestProgram,
        args: Vec<String>,
        selector: u64,
        wall_ms: u64,
    ) -> CaseRun {
        CaseRun {
            program: built.program.clone(),
            args,
            stdin: Vec::new().into(),
            files: BTreeMap::new(),
            env: environment(&built.folder),
            selector: Some(selector),
            wall_ms,
            tree: Some(built.folder.clone()),
        }
    }

    pub(super) fn noticed(
        &self,
        oracle: &Oracle,
        names: &[&str],
        observation: &Observation,
    ) -> Noticed {
        if !observation.armed && !self.plain {
            return Noticed::NotLoaded;
        }
        match oracle {
            Oracle::Tests | Oracle::Suite(_) => match suite::heard(observation, names.len()) {
                Heard::Passed => Noticed::No,
                Heard::Failed(name) => {
                    let only = match names {
                        [only] => Some((*only).to_owned()),
                        _ => None,
                    };
                    Noticed::Yes(name.or(only), Kill::of(observation))
                }
            },
            Oracle::Witness(_) => {
                let wanted = names.first().copied().unwrap_or_default();
                match oracle
                    .case(wanted)
                    .map(|case| judge::judge_case(case, observation))
                {
                    Some(Ok(())) => Noticed::No,
                    _ => Noticed::Yes(Some(wanted.to_owned()), Kill::of(observation)),
                }
            }
        }
    }

    /// Number of programs.
    pub(super) fn programs(&self) -> usize {
        self.programs.len()
    }
}

/// A run that must change nothing.
pub(super) struct Control {
    pub(super) case: CaseRun,
    pub(super) names: Vec<String>,
}

fn nothing() -> CaseRun {
    CaseRun {
        program: "nothing".to_owned(),
        args: Vec::new(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        env: BTreeMap::new(),
        selector: None,
        wall_ms: 1,
        tree: None,
    }
}

/// What tests find in their environment under cargo, and what makes them repeat themselves: a test
/// that draws its own inputs would notice a mutant today and not tomorrow.
fn environment(folder: &str) -> BTreeMap<String, String> {
    use flightproof_frame::protocol::layout::SOURCE;
    let folder = format!("{SOURCE}/{folder}");
    [
        ("CARGO_MANIFEST_DIR", folder.trim_end_matches('/')),
        ("RUST_BACKTRACE", "0"),
        ("PROPTEST_RNG_SEED", "1"),
        // The snapshots of insta lie in the tree; it would ask cargo where.
        ("INSTA_WORKSPACE_ROOT", SOURCE),
        ("INSTA_UPDATE", "no"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Why a test is of no use, as far as it can be told.
fn why_not(observation: &Observation) -> String {
    let stdout = String::from_utf8_lossy(&observation.stdout);
    match observation.ending {
        Ending::Exited { .. } if stdout.contains(" 1 ignored") => "it is ignored".to_owned(),
        Ending::Exited { .. } => {
            let message = stdout
                .lines()
                .skip_while(|line| !line.contains("panicked at"));
            match message.skip(1).find(|line| !line.trim().is_empty()) {
                Some(line) => format!("it fails in the session: {}", escape(line, 160)),
                None => "it fails in the session".to_owned(),
            }
        }
        Ending::TimedOut => format!("it does not end within {} s", TEST_WALL_MS / 1000),
        Ending::Signaled { signal } => format!("signal {signal} ends it"),
        Ending::ForbiddenCall => "it makes a system call that no session allows".to_owned(),
        Ending::OutputLimit => "it prints too much".to_owned(),
        Ending::ProcessLimit => "it starts too many processes".to_owned(),
        Ending::MemoryLimit => "it needs too much memory".to_owned(),
    }
}
