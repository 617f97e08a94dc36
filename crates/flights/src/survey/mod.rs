//! The mutation gate alone: what could be wrong with a program without its tests, or a witness,
//! noticing. Nothing is certified; the tree is the caller's own, and so are the tests.

mod bench;
mod cases;
mod checks;
mod inputs;
mod report;
mod teeth;
mod trial;

pub use cases::cases_alone;
pub use inputs::ProposedInput;
pub use report::{Counts, LeftOut, Report, Tried};
pub use teeth::{Proposal, Teeth, Tooth};

use crate::flight::Host;
use crate::show::{Progress, count};
use crate::{FlightsCode, near, state};
use bench::{Bench, Build, Supplies};
use checks::Checks;
use flightproof_archive::{Workspace, paws};
use flightproof_certifier::CertifierCode;
use flightproof_certifier::mutation::MutationPlan;
use flightproof_certifier::scope::{Member, Scope, members};
use flightproof_certifier::tree::Tree;
use flightproof_certifier::witness::{Case, Witness};
use flightproof_core::{Refusal, RelPath, escape};
use flightproof_evidence::TestProgram;
use flightproof_importer::ImportError;
use std::path::{Path, PathBuf};

/// Largest tree in bytes: it is held in memory several times on its way into a session.
const MAX_TREE: u64 = 256 << 20;

/// What is to be surveyed, by what.
pub struct Survey {
    /// The working directory.
    pub repo: PathBuf,
    /// Where in it the package that is meant is looked for, from there to the top; none: at the top.
    pub below: Option<RelPath>,
    /// Only lines that differ from this revision's.
    pub baseline: Option<String>,
    /// Packages by name; none: the nearest at or above `below`.
    pub packages: Vec<String>,
    /// Only these files, or all.
    pub files: Vec<RelPath>,
    /// Only a share of the mutants.
    pub shard: Option<Shard>,
    /// What has to notice mutants.
    pub oracle: Oracle,
    /// Sessions at the same time.
    pub jobs: usize,
    /// Lock file for a tree without one.
    pub lock: Option<Vec<u8>>,
    /// Features beyond the default ones, for tests.
    pub features: Vec<String>,
}

/// What has to notice mutants.
pub enum Oracle {
    /// The packages' own tests.
    Tests,
    /// The integration tests of a witness's suite, as they lie in the tree; none named: all of the package.
    Suite(Vec<String>),
    /// The cases of a witness.
    Witness(Box<Witness>),
}

impl Oracle {
    /// What judges by a witness: its cases, or the tests that it names.
    pub fn of(witness: Witness) -> Self {
        match witness.suite() {
            Some(suite) => Self::Suite(suite.tests.clone()),
            None => Self::Witness(Box::new(witness)),
        }
    }

    /// Whether tests judge.
    pub(super) fn is_tests(&self) -> bool {
        matches!(self, Self::Tests | Self::Suite(_))
    }

    /// Those of the built programs that judge.
    ///
    /// # Errors
    /// `SUITE_UNFIT` for a test that the suite names and the package does not have.
    pub(super) fn judging(&self, all: Vec<TestProgram>) -> Result<Vec<TestProgram>, Refusal> {
        let Self::Suite(named) = self else {
            return Ok(all);
        };
        let name = |program: &TestProgram| program.target.strip_prefix("test ").map(str::to_owned);
        let known: Vec<String> = all.iter().filter_map(name).collect();
        if let Some(missing) = named.iter().find(|named| !known.contains(named)) {
            let question = near::question(missing, &known);
            let detail = format!("there is no tests/{}.rs{question}", escape(missing, 80));
            return Err(CertifierCode::SuiteUnfit.refuse(detail).into());
        }
        let judges = |program: &TestProgram| {
            name(program).is_some_and(|name| named.is_empty() || named.contains(&name))
        };
        Ok(all.into_iter().filter(judges).collect())
    }

    /// The case of a name, if there are cases.
    pub(super) fn case(&self, name: &str) -> Option<&Case> {
        match self {
            Self::Tests | Self::Suite(_) => None,
            Self::Witness(witness) => witness.cases().iter().find(|case| case.id == name),
        }
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tests | Self::Suite(_) => "tests",
            Self::Witness(_) => "witness",
        }
    }
}

/// The `number`th of `of` equal shares, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

/// Most shares: each is a whole build.
const MAX_SHARDS: usize = 1_000;

impl Shard {
    fn holds(self, mutant: usize) -> bool {
        mutant % self.of == self.number - 1
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (number, of) = text.split_once('/')?;
            let (number, of) = (number.parse().ok()?, of.parse().ok()?);
            let fits = (1..=MAX_SHARDS).contains(&of) && (1..=of).contains(&number);
            fits.then_some(Self { number, of })
        };
        read().ok_or_else(|| format!("a share is K/N with 1 <= K <= N <= {MAX_SHARDS}"))
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Survey {
    /// The mutants there would be, none of them compiled.
    ///
    /// # Errors
    /// As [`Survey::run`], as far as no session is needed.
    pub fn list(&self, progress: &mut Progress) -> Result<MutationPlan, Refusal> {
        let git = flightproof_importer::Git::at(&state::program("git", "git")?)?;
        let read = self.read(&git, progress)?;
        Ok(read.plan)
    }

    /// Surveys.
    ///
    /// # Errors
    /// `SCOPE_EMPTY`, `NOTHING_JUDGES`; the certifier's for sources and for a program that changes
    /// with its schemata; those of reading the tree and of the session.
    pub fn run(&self, host: &Host, progress: &mut Progress) -> Result<Report, Refusal> {
        let read = self.read(host.git(), progress)?;
        let mut report = Report::new(self, &read.plan, &read.left_out);
        if read.plan.viable().next().is_none() {
            return Ok(report);
        }
        let supplies = self.supplies(host, &read)?;
        let (bench, built, checks) = self.ready(&supplies, &read, progress)?;
        checks.must_judge()?;
        progress.begin("mutants");
        let all = (&supplies, &built, &checks);
        let fates = trial::run(bench, all, &self.oracle, self.jobs, progress)?;
        report.conclude((self, &built.plan), &checks, &fates);
        progress.done(report.counts.line());
        Ok(report)
    }

    /// What each case of a witness notices. With very many mutants some are tried, evenly spread.
    ///
    /// # Errors
    /// As [`Survey::run`].
    pub fn teeth(&self, host: &Host, progress: &mut Progress) -> Result<Teeth, Refusal> {
        let mut read = self.read(host.git(), progress)?;
        let whole = read.plan.viable().count();
        let step = whole.div_ceil(teeth::MAX_MUTANTS).max(1);
        if step > 1 {
            read.plan = read.plan.only(|number| number % step == 0)?;
        }
        let supplies = self.supplies(host, &read)?;
        let (bench, built, checks) = self.ready(&supplies, &read, progress)?;
        if self.oracle.is_tests() {
            checks.must_judge()?;
        }
        progress.begin("teeth");
        let unjudged = report::unjudged(&built.plan, self);
        let found = teeth::measure(bench, &built, &checks, &self.oracle, whole, progress)?;
        let found = Teeth { unjudged, ..found };
        progress.done(format_args!(
            "{} against {} of {}",
            count(found.cases.len(), checks.word()),
            found.tried,
            count(found.mutants, "mutant")
        ));
        Ok(found)
    }

    fn supplies<'a>(&self, host: &'a Host, read: &'a Read) -> Result<Supplies<'a>, Refusal> {
        let unpacked = paws::read(&read.archive)?;
        let tree = tree(&unpacked);
        let packages = flightproof_certifier::dependency::locked(&tree, self.lock.as_deref())?;
        Ok(Supplies {
            host,
            archive: &read.archive,
            shipment: host.shipment(&packages)?,
            lock: self.lock.clone(),
        })
    }

    /// A session with every mutant built, and what has to notice them.
    fn ready(
        &self,
        supplies: &Supplies<'_>,
        read: &Read,
        progress: &mut Progress,
    ) -> Result<(Bench, Build, Checks), Refusal> {
        progress.begin("open");
        let mut bench = Bench::open(supplies)?;
        progress.done("sealed local session");
        progress.begin("build");
        let plan = read.plan.clone();
        let built = bench.settle(plan, &self.oracle, &read.packages, &self.features)?;
        let unviable = built.plan.mutants.iter().filter(|m| !m.viable && !m.aside);
        progress.done(format_args!(
            "{} in one program, {} do not compile, {}",
            count(built.plan.viable().count(), "mutant"),
            unviable.count(),
            count(built.rounds, "build")
        ));
        progress.begin("baseline");
        let checks = Checks::measure(&mut bench, &built, &self.oracle)?;
        progress.done(format_args!(
            "{} of {} pass without a mutant",
            checks.all.len(),
            count(checks.all.len() + checks.left_out.len(), checks.word())
        ));
        Ok((bench, built, checks))
    }

    fn read(
        &self,
        git: &flightproof_importer::Git,
        progress: &mut Progress,
    ) -> Result<Read, Refusal> {
        progress.begin("read");
        let work = crate::flight::WorkDirectory::new(&state::directory()?)?;
        let (archive, left_out) = pack(&self.repo, work.path())?;
        let older = match &self.baseline {
            None => None,
            Some(revision) => {
                let repository = flightproof_importer::Host::open(git, &self.repo)?;
                let scratch = work.path().join("baseline");
                std::fs::create_dir(&scratch).map_err(|e| {
                    Refusal::from(FlightsCode::StateUnavailable.refuse(format!("scratch: {e}")))
                })?;
                let tree = flightproof_importer::tree_of(git, &repository, revision, &scratch);
                let unknown =
                    |refused: ImportError| near::revision(refused.into(), git, &repository);
                Some(tree.map_err(unknown)?)
            }
        };
        let unpacked = paws::read(&archive)?;
        let here = tree(&unpacked);
        let old = older.as_deref().map(paws::read).transpose()?;
        let there = old.as_ref().map(tree);
        let packages = self.chosen(members(&here))?;
        let scope = Scope {
            tree: &here,
            packages: &packages,
            files: &self.files,
            baseline: there.as_ref(),
            seed: state::entropy()?,
        };
        let input = scope.input();
        let files = input.files.len();
        if files == 0 && (self.baseline.is_none() || !self.files.is_empty()) {
            let names: Vec<_> = packages.iter().map(|p| escape(&p.name, 80)).collect();
            let all = here.files().map(|(path, _)| path);
            let question = self
                .files
                .first()
                .map(|file| near::question(file.as_str(), all));
            return Err(FlightsCode::ScopeEmpty
                .refuse(format!(
                    "no source file of {} is asked for{}",
                    names.join(", "),
                    question.unwrap_or_default()
                ))
                .into());
        }
        let mut plan = MutationPlan::new(input)?;
        let whole = plan.mutants.len();
        if let Some(shard) = self.shard {
            plan = plan.only(|number| shard.holds(number))?;
        }
        let taken = plan.mutants.iter().filter(|m| !m.aside).count();
        let same = taken == whole;
        let (whole, files) = (count(whole, "mutant"), count(files, "file"));
        progress.done(match same {
            true => format!("{whole} of {files}"),
            false => format!("{taken} of {whole} of {files}"),
        });
        Ok(Read {
            archive,
            left_out,
            packages,
            plan,
        })
    }

    fn chosen(&self, mut all: Vec<Member>) -> Result<Vec<Member>, Refusal> {
        let known = |all: &[Member]| {
            let names: Vec<_> = all.iter().map(|m| escape(&m.name, 80)).collect();
            names.join(", ")
        };
        if self.packages.is_empty() {
            let known = known(&all);
            let here = self
                .below
                .as_ref()
                .map_or_else(String::new, |below| format!("{below}/"));
            all.retain(|member| here.starts_with(&member.folder));
            // Those nearest to the top come first.
            return match all.pop() {
                Some(nearest) => Ok(vec![nearest]),
                None => {
                    let detail = match known.as_str() {
                        "" => {
                            "no package of Rust in the tree, and this mutates Rust alone".to_owned()
                        }
                        known => format!("no package at the top; name one with --package: {known}"),
                    };
                    Err(FlightsCode::ScopeEmpty.refuse(detail).into())
                }
            };
        }
        let found = self.packages.iter().map(|name| {
            // Those nearest to the top come first: a fixture of the same name is not meant.
            let member = all.iter().find(|member| member.name == *name);
            member.cloned().ok_or_else(|| {
                let names = all.iter().map(|member| member.name.as_str());
                let question = near::question(name, names);
                let name = escape(name, 80);
                let detail = format!("no package {name}{question}; there are {}", known(&all));
                Refusal::from(FlightsCode::ScopeEmpty.refuse(detail))
            })
        });
        found.collect()
    }
}

/// What was read of the tree.
struct Read {
    archive: Vec<u8>,
    left_out: Vec<String>,
    packages: Vec<Member>,
    plan: MutationPlan,
}

/// Everything in a working directory that git would track and that is no secret.
fn pack(repo: &Path, work: &Path) -> Result<(Vec<u8>, Vec<String>), Refusal> {
    let file = work.join("tree.paws");
    let mut choice = Workspace::new(&[], &[])?.of(repo)?;
    let snapshot = paws::pack_file(repo, "flightproof", &mut choice, &file, &())?;
    if snapshot.total_bytes() > MAX_TREE {
        let detail = format!("{} bytes, at most {MAX_TREE}", snapshot.total_bytes());
        return Err(FlightsCode::SourceUnavailable.refuse(detail).into());
    }
    let bytes = std::fs::read(&file).map_err(|e| {
        Refusal::from(FlightsCode::StateUnavailable.refuse(format!("{}: {e}", file.display())))
    })?;
    let left_out = choice.into_selection().left_out.into_iter();
    let denied =
        left_out.filter(|out| matches!(out.reason, flightproof_archive::Reason::Denied { .. }));
    Ok((bytes, denied.map(|out| out.path.to_string()).collect()))
}

fn tree<'a>(unpacked: &'a paws::Unpacked<'a>) -> Tree<'a> {
    let files = unpacked.files();
    files.map(|(entry, bytes)| (&entry.path, bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_and_whole() {
        let shares: Vec<Shard> = (1..=3).map(|k| format!("{k}/3").parse().unwrap()).collect();
        for mutant in 0..20 {
            assert_eq!(shares.iter().filter(|s| s.holds(mutant)).count(), 1);
        }
        for wrong in ["0/3", "4/3", "1/0", "1", "a/b", "1/1001", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
