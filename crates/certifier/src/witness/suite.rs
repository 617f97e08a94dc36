//! The baseline's own integration tests as a witness: they are laid over the candidate's, and the host
//! knows which of them must pass.
//!
//! ```json
//! {"schema":"flightproof/witness/1","suite":{"tests":["api"],"with":["testdata"]},"cases":[]}
//! ```
//!
//! - `tests`: names of files in the package's folder of tests; absent, all of them. `with`: further paths
//!   that stay as the baseline has them. `package`: as for a driver.
//! - The code that judges runs in one process with the code that is judged. What keeps that from speaking
//!   for the harness: each program gets two tests of ours, one that fails, whose names nobody knows
//!   beforehand, and what it prints must be what a harness prints that ran exactly the tests that the
//!   baseline has and those two, to the line.
//! - A test that fails on the baseline, or wavers there, judges nothing; those that waver are named.
//!   Unit tests judge nothing either: they lie in the files that change.

use super::{Case, Expect, Witness, invalid};
use crate::certification::derived;
use crate::scope::members;
use crate::suite::{Canaries, Outcome};
use crate::tree::Tree;
use crate::{CertifierCode, CertifierError, suite};
use flightproof_core::{Bytes, Digest, RelPath, escape};
use flightproof_evidence::{BuildTarget, Change, Ending, Observation};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most programs of tests: each is run three times on the baseline, twice on the candidate, and for
/// mutants.
const MAX_PROGRAMS: usize = 64;
/// How often each program is run on the baseline: a test that wavers more rarely than that is not seen.
pub const BASELINE_RUNS: usize = 3;

/// Most tests that are told to judge nothing.
const MAX_TOLD: usize = 12;

/// Which tests judge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Names of integration tests; none: all of them.
    #[serde(default)]
    pub tests: Vec<String>,
    /// Further paths that stay as the baseline has them.
    #[serde(default)]
    pub with: Vec<RelPath>,
}

/// The tests of a baseline, found and prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct TestPlan {
    package: Option<String>,
    folder: String,
    programs: Vec<TestProgram>,
    overlay: BTreeMap<RelPath, Bytes>,
    /// Tests that must pass.
    pub expected: usize,
    /// Tests that the baseline ignores.
    pub ignored: usize,
    /// Tests that fail on the baseline.
    pub failing: usize,
    /// Tests that waver on the baseline, by program and name.
    pub quarantined: Vec<String>,
    /// All that judge nothing, each with the reason.
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct TestProgram {
    name: String,
    canaries: Canaries,
    /// Every test of the baseline's program; none until it ran.
    known: BTreeSet<String>,
    /// Those of them that judge nothing.
    dropped: BTreeSet<String>,
}

impl Suite {
    pub(super) fn check(&self) -> Result<(), CertifierError> {
        let bad = self
            .tests
            .iter()
            .find(|name| !super::rules::is_cargo_name(name));
        match bad {
            Some(name) => Err(invalid(format_args!(
                "\"{}\" is no name of a test",
                escape(name, 80)
            ))),
            None if self.tests.len() > MAX_PROGRAMS || self.with.len() > MAX_PROGRAMS => {
                Err(invalid(format_args!(
                    "suite: at most {MAX_PROGRAMS} tests and paths"
                )))
            }
            None => Ok(()),
        }
    }
}

impl TestPlan {
    /// Finds the tests of the baseline, and lays what of them the candidate changed over it.
    ///
    /// # Errors
    /// `SUITE_UNFIT` for a package or tests that are not there; `SUITE_CHANGED` for a file of tests that
    /// the candidate takes away.
    pub fn new(
        suite: &Suite,
        package: Option<&str>,
        baseline: &Tree<'_>,
        changes: &[Change],
        salt: &[u8; 32],
    ) -> Result<Self, CertifierError> {
        let unfit = |what: String| CertifierCode::SuiteUnfit.refuse(what);
        let all = members(baseline);
        let member = all.iter().find(|member| match package {
            Some(name) => member.name == name,
            None => member.folder.is_empty(),
        });
        let member = member.ok_or_else(|| unfit("there is no such package".to_owned()))?;
        let folder = format!("{}tests/", member.folder);
        let roots = roots(baseline, &folder);
        let names: Vec<&String> = match suite.tests.is_empty() {
            true => roots.keys().collect(),
            false => suite.tests.iter().collect(),
        };
        if names.is_empty() || names.len() > MAX_PROGRAMS {
            return Err(unfit(format!(
                "{} files in {folder}, 1 to {MAX_PROGRAMS} are run",
                names.len()
            )));
        }
        let mut overlay = kept(suite, &folder, changes)?;
        let mut programs = Vec::new();
        for name in names {
            let missing = || unfit(format!("there is no {folder}{}.rs", escape(name, 80)));
            let (path, content) = roots.get(name).ok_or_else(missing)?;
            let canaries = Canaries::drawn(&derived(salt, &format!("canaries {name}")));
            overlay.insert(path.clone(), canaries.appended_to(content));
            programs.push(TestProgram {
                name: name.clone(),
                canaries,
                known: BTreeSet::new(),
                dropped: BTreeSet::new(),
            });
        }
        Ok(Self {
            package: package.map(str::to_owned),
            folder: member.folder.trim_end_matches('/').to_owned(),
            programs,
            overlay,
            expected: 0,
            ignored: 0,
            failing: 0,
            quarantined: Vec::new(),
            left_out: Vec::new(),
        })
    }

    /// What is built.
    pub fn target(&self) -> BuildTarget {
        BuildTarget::Suite {
            package: self.package.clone(),
            tests: self.programs.iter().map(|p| p.name.clone()).collect(),
        }
    }

    /// The baseline's files that lie over the candidate's, ours appended.
    pub fn overlay(&self) -> &BTreeMap<RelPath, Bytes> {
        &self.overlay
    }

    /// Which tests judge, and which do not and why, in one line.
    pub fn told(&self) -> String {
        let judging = match self.expected {
            1 => "1 test judges".to_owned(),
            more => format!("{more} tests judge"),
        };
        if self.left_out.is_empty() {
            return judging;
        }
        let shown = &self.left_out[..self.left_out.len().min(MAX_TOLD)];
        let more = match self.left_out.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{judging}; left out: {}{more}", shown.join(", "))
    }

    /// The folder that the tests start in.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// How each program is run.
    pub fn cases(&self) -> Vec<Case> {
        let env = environment(&self.folder);
        let cases = self.programs.iter().map(|program| Case {
            id: format!("tests-{}", program.name.to_ascii_lowercase()),
            args: vec!["--test-threads=1".to_owned()],
            stdin: Vec::new().into(),
            files: BTreeMap::new(),
            env: env.clone(),
            expect: Expect {
                exit: 0,
                stdout: None,
                stdout_json: None,
                stderr_contains: None,
            },
        });
        cases.collect()
    }

    /// What a program reported, with the results of those tests that judge in place of standard output
    /// and exit status, if it is what the harness prints. Anything else stays as it is, and equals no
    /// expectation: in each there is a name that only the host knows.
    pub fn heard(&self, index: usize, mut observation: Observation) -> Observation {
        let program = self.programs.get(index);
        let Some(program) = program.filter(|program| !program.known.is_empty()) else {
            return observation;
        };
        let results = suite::whole(&observation, &program.canaries);
        let whole = results.filter(|results| results.keys().eq(&program.known));
        if let Some(results) = whole {
            observation.stdout = program.listing(&results);
            observation.ending = Ending::Exited { code: 0 };
        }
        observation
    }

    /// Takes what the programs reported on the baseline: each was run [`BASELINE_RUNS`] times.
    fn measured(&mut self, runs: &[Vec<Observation>]) -> Result<Vec<Case>, CertifierError> {
        let mut cases = self.cases();
        for (at, program) in self.programs.iter_mut().enumerate() {
            let unfit = |what: &str| {
                let name = escape(&program.name, 80);
                Err(CertifierCode::SuiteUnfit.refuse(format_args!("{name}: {what}")))
            };
            let found = runs.get(at).into_iter().flatten();
            let found: Option<Vec<_>> = found
                .map(|run| suite::whole(run, &program.canaries))
                .collect();
            let Some(found) = found.filter(|found| found.len() == BASELINE_RUNS) else {
                return unfit(
                    "on the baseline it prints something else than the results of its tests",
                );
            };
            let Some((first, others)) = found.split_first() else {
                return unfit("it never ran");
            };
            if others.iter().any(|other| !other.keys().eq(first.keys())) {
                return unfit("it has other tests the second time");
            }
            program.known = first.keys().cloned().collect();
            for (name, outcome) in first {
                let same = others.iter().all(|other| other.get(name) == Some(outcome));
                let why = match outcome {
                    _ if !same => Some("wavers on the baseline"),
                    Outcome::Failed => Some("fails on the baseline"),
                    Outcome::Ignored => Some("ignored"),
                    Outcome::Passed => None,
                };
                let label = format!("{}: {name}", program.name);
                self.left_out
                    .extend(why.map(|why| format!("{} ({why})", escape(&label, 120))));
                match outcome {
                    _ if !same => {
                        self.quarantined.push(label);
                        program.dropped.insert(name.clone());
                    }
                    Outcome::Failed => {
                        self.failing += 1;
                        program.dropped.insert(name.clone());
                    }
                    Outcome::Ignored => self.ignored += 1,
                    Outcome::Passed => self.expected += 1,
                }
            }
            if let Some(case) = cases.get_mut(at) {
                case.expect.stdout = Some(program.listing(first));
            }
        }
        match self.expected {
            0 => Err(CertifierCode::WitnessToothless.refuse("no test passes on the baseline")),
            _ => Ok(cases),
        }
    }
}

/// The environment of a test, as cargo would give it.
fn environment(folder: &str) -> BTreeMap<String, String> {
    let folder = match folder {
        "" => "/flight/src".to_owned(),
        folder => format!("/flight/src/{folder}"),
    };
    [
        ("CARGO_MANIFEST_DIR", folder.as_str()),
        ("RUST_BACKTRACE", "0"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// The root file of each integration test, by name.
fn roots(tree: &Tree<'_>, folder: &str) -> BTreeMap<String, (RelPath, Vec<u8>)> {
    let named = tree.files().filter_map(|(path, content)| {
        let inner = path.strip_prefix(folder)?;
        let name = match inner.strip_suffix("/main.rs") {
            Some(name) => name,
            None => inner.strip_suffix(".rs")?,
        };
        let path = RelPath::new(path).ok()?;
        (!name.contains('/')).then(|| (name.to_owned(), (path, content.to_vec())))
    });
    named.collect()
}

/// What the candidate changed of the baseline's tests and of what stays beside them.
fn kept(
    suite: &Suite,
    folder: &str,
    changes: &[Change],
) -> Result<BTreeMap<RelPath, Bytes>, CertifierError> {
    let stays = |path: &RelPath| {
        path.as_str().starts_with(folder) || suite.with.iter().any(|with| path.is_within(with))
    };
    let mut overlay = BTreeMap::new();
    for change in changes.iter().filter(|change| stays(&change.path)) {
        match (&change.old, &change.new) {
            (Some(_), None) => {
                let what = format_args!("{} is taken away", change.path);
                return Err(CertifierCode::SuiteChanged.refuse(what));
            }
            (Some(old), Some(_)) => {
                overlay.insert(change.path.clone(), old.content.clone());
            }
            (None, _) => {}
        }
    }
    Ok(overlay)
}

impl TestProgram {
    /// The name that only the host knows, and one line for each test that judges, in the order of names.
    fn listing(&self, results: &BTreeMap<String, Outcome>) -> Bytes {
        let judging = results
            .iter()
            .filter(|(name, _)| !self.dropped.contains(*name));
        let lines = judging.map(|(name, outcome)| format!("{name} {}\n", outcome.name()));
        let text = format!("{} ok\n{}", self.canaries.passes, String::from_iter(lines));
        Bytes(text.into_bytes())
    }
}

impl Witness {
    /// The suite, for a witness that is one.
    pub fn suite(&self) -> Option<&Suite> {
        match &self.target {
            super::Target::Suite { suite, .. } => Some(suite),
            _ => None,
        }
    }

    /// The package whose tests judge, if the suite names one.
    pub fn suite_package(&self) -> Option<&str> {
        match &self.target {
            super::Target::Suite { package, .. } => package.as_deref(),
            _ => None,
        }
    }

    /// The tests, once they were found.
    pub fn tests(&self) -> Option<&TestPlan> {
        self.tests.as_ref()
    }

    /// The same witness with the tests of this baseline, not run yet.
    ///
    /// # Errors
    /// As [`TestPlan::new`].
    pub fn found(
        mut self,
        baseline: &Tree<'_>,
        changes: &[Change],
        salt: &[u8; 32],
    ) -> Result<Self, CertifierError> {
        if let super::Target::Suite { package, suite } = &self.target {
            let plan = TestPlan::new(suite, package.as_deref(), baseline, changes, salt)?;
            self.cases = plan.cases();
            self.generated = self.cases.len();
            self.tests = Some(plan);
        }
        Ok(self)
    }

    /// The same witness with what its tests came to on the baseline, program by program.
    ///
    /// # Errors
    /// `SUITE_UNFIT`, `WITNESS_TOOTHLESS`.
    pub fn measured(mut self, runs: &[Vec<Observation>]) -> Result<Self, CertifierError> {
        if let Some(plan) = &mut self.tests {
            self.cases = plan.measured(runs)?;
        }
        Ok(self)
    }

    /// An overlay with the tests over it.
    pub(crate) fn laid_over(
        &self,
        mut overlay: BTreeMap<RelPath, Bytes>,
    ) -> BTreeMap<RelPath, Bytes> {
        let tests = self.tests.iter().flat_map(|plan| plan.overlay());
        overlay.extend(tests.map(|(path, content)| (path.clone(), content.clone())));
        overlay
    }

    /// What a session reported of a case, as it is judged.
    pub fn heard(&self, case: usize, observation: Observation) -> Observation {
        match &self.tests {
            None => observation,
            Some(plan) => plan.heard(case, observation),
        }
    }

    /// The tests of a case that came to something else than expected, if it is what a harness prints.
    pub fn fallen(&self, case: usize, observation: &Observation) -> Vec<String> {
        let expected = self
            .cases
            .get(case)
            .and_then(|case| case.expect.stdout.as_ref());
        let (Some(_), Some(expected)) = (&self.tests, expected) else {
            return Vec::new();
        };
        let lines = |bytes: &[u8]| -> BTreeSet<String> {
            let text = String::from_utf8_lossy(bytes);
            text.lines().map(str::to_owned).collect()
        };
        let found = lines(&observation.stdout);
        let wanted = lines(expected);
        let names = |of: &BTreeSet<String>| -> BTreeSet<String> {
            let names = of.iter().filter_map(|line| line.rsplit_once(' '));
            names.map(|(name, _)| name.to_owned()).collect()
        };
        // What is no list of results names no test.
        if names(&found) != names(&wanted) {
            return Vec::new();
        }
        wanted
            .difference(&found)
            .map(|line| escape(line, 300))
            .collect()
    }
}

impl Canaries {
    fn drawn(seed: &[u8; 32]) -> Self {
        let name = |purpose: &[u8]| {
            let hex = Digest::keyed(seed, purpose).to_string();
            format!("t{}", &hex[..24])
        };
        Self {
            passes: name(b"passes"),
            fails: name(b"fails"),
        }
    }

    fn appended_to(&self, content: &[u8]) -> Bytes {
        let own = format!(
            "\n#[test]\nfn {}() {{}}\n#[test]\nfn {}() {{\n    panic!()\n}}\n",
            self.passes, self.fails
        );
        Bytes([content, own.as_bytes()].concat())
    }
}

#[cfg(test)]
mod tests;
