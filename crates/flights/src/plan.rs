//! Plans: what a flight flies, and what must come of it. TOML, schema in `docs/formats.md`.

use crate::{FlightsCode, near, regular};
use flightproof_certifier::dependency::GrantedPackage;
use flightproof_certifier::generated::GeneratedRule;
use flightproof_certifier::newer;
use flightproof_core::{Decision, Refused, RelPath};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The schema name of version 1.
pub const PLAN_SCHEMA: &str = "flightproof/plan/1";

/// Largest plan file in bytes. Plans name things; they hold nothing large.
const MAX_PLAN_BYTES: u64 = 64 * 1024;

/// The refusal of a plan that is of a later version than the known one.
pub(crate) fn too_new(path: &Path, text: &str, known: &str) -> Option<Refused<FlightsCode>> {
    let found = newer::schema(text.as_bytes(), known)?;
    let detail = format!("{}: {found}, here {known}", path.display());
    Some(FlightsCode::PlanTooNew.refuse(detail))
}

/// One flight: source, change, witness, and the verdict it must end in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_SCHEMA`].
    pub schema: String,
    /// Equal to the file's stem.
    pub name: String,
    /// One sentence: what this flight shows.
    pub about: String,
    /// Where baseline and candidate come from.
    pub source: PlanSource,
    /// What the change may be.
    #[serde(default)]
    pub change: PlanChange,
    /// How generated files of the tree are made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generated: Vec<GeneratedRule>,
    /// What judges it.
    pub witness: PlanWitness,
    /// What its certificate is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PlanPolicy>,
    /// What must come of it.
    pub expect: Expectation,
}

/// Where baseline and candidate come from. Exactly one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PlanSource {
    /// Two commits of a repository.
    Git(GitSource),
    /// Two releases of a published crate, from cargo's cache.
    Crate(CrateSource),
    /// Two directories.
    Trees(TreesSource),
}

/// Two commits of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitSource {
    /// Directory of the repository, relative to the root of the plans' project.
    pub repository: PathBuf,
    /// Commit the change is based on.
    pub baseline: String,
    /// The candidate.
    pub candidate: String,
}

/// Two releases of a published crate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrateSource {
    /// Its name.
    pub name: String,
    /// The older version.
    pub baseline: String,
    /// The newer version.
    pub candidate: String,
    /// Paths whose change is left out: the candidate keeps the baseline's bytes there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revert: Vec<RelPath>,
    /// If present, only these paths change; everything else stays as in the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<RelPath>>,
}

/// Two directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreesSource {
    /// The baseline tree.
    pub baseline: PathBuf,
    /// Files laid over the baseline.
    pub candidate: PathBuf,
}

/// What the change may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanChange {
    /// Granted paths; absent: everything but the protected list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Vec<RelPath>>,
    /// Packages that may be new in the lock file, as `NAME@VERSION#SHA256`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<GrantedPackage>,
    /// Paths where files may be large, up to 16 MiB each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<RelPath>,
    /// Names of files and folders that are protected as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// If present, only these paths and what lies below them fly; every change must be among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrow: Option<Vec<RelPath>>,
    /// Paths whose changes may come in though no build compiles them and no case runs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncompiled: Vec<RelPath>,
    /// Author and committer the candidate must have, `Name <mail>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// A lock file for a tree without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<PathBuf>,
}

/// What judges the candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanWitness {
    /// The witness file.
    pub file: PathBuf,
}

/// What a certificate is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanPolicy {
    /// The policy file. Its digest stands on the certificate.
    pub file: PathBuf,
}

/// What must come of the flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// `held` or `refused`.
    pub verdict: Decision,
    /// The stage of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The code of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// A file of this name in the temporary folder would prove that the candidate ran on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<String>,
}

impl Plan {
    /// Reads a plan file.
    ///
    /// # Errors
    /// `PLAN_UNREADABLE` if there is no such file, `PLAN_INVALID` if it breaks the schema, `PLAN_TOO_NEW`.
    pub fn read(path: &Path) -> Result<Self, Refused<FlightsCode>> {
        let shown = path.display();
        let text = regular::read_text(path, MAX_PLAN_BYTES).map_err(|e| match e.kind() {
            std::io::ErrorKind::FileTooLarge => {
                FlightsCode::PlanInvalid.refuse(format!("{shown}: {e}"))
            }
            _ => FlightsCode::PlanUnreadable.refuse(near::unread(path, &e)),
        })?;
        let read: Result<Self, _> = toml::from_str(&text).map_err(|e| {
            FlightsCode::PlanInvalid.refuse(format!("{shown}: {}", misread(&text, &e)))
        });
        let read = read.and_then(|plan| plan.check(path).map(|()| plan));
        read.map_err(|refused| too_new(path, &text, PLAN_SCHEMA).unwrap_or(refused))
    }

    fn check(&self, path: &Path) -> Result<(), Refused<FlightsCode>> {
        let invalid = |what: String| {
            Err(FlightsCode::PlanInvalid.refuse(format!("{}: {what}", path.display())))
        };
        if self.schema != PLAN_SCHEMA {
            return invalid(format!(
                "schema is {:?}, expected {PLAN_SCHEMA:?}",
                self.schema
            ));
        }
        if path.file_stem().and_then(|s| s.to_str()) != Some(&self.name)
            || !is_plain_name(&self.name)
        {
            return invalid(format!(
                "name {:?} is not the file's stem in plain characters",
                self.name
            ));
        }
        let expect = &self.expect;
        match expect.verdict {
            Decision::Held if expect.code.is_none() && expect.stage.is_none() => Ok(()),
            Decision::Refused if expect.code.is_some() && expect.stage.is_some() => Ok(()),
            _ => invalid("expect is either held, or refused with stage and code".into()),
        }
    }
}

/// Why a plan's text cannot be read, with the line.
pub(crate) fn misread(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        None => error.message().to_owned(),
        Some(before) => {
            let line = before.matches('\n').count() + 1;
            format!("line {line}: {}", error.message())
        }
    }
}

pub(crate) fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
schema = "flightproof/plan/1"
name = "a-plan"
about = "It shows a plan."
[source]
trees = { baseline = "b", candidate = "c" }
[witness]
file = "w.json"
[expect]
verdict = "held"
"#;

    fn read(text: &str) -> Result<Plan, Refused<FlightsCode>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a-plan.toml");
        std::fs::write(&path, text).unwrap();
        Plan::read(&path)
    }

    #[test]
    fn a_plan_says_where_from_by_whom_judged_and_what_must_come_of_it() {
        assert_eq!(read(GOOD).unwrap().name, "a-plan");
    }

    #[test]
    fn what_a_plan_does_not_know_is_refused() {
        for (from, to) in [
            ("plan/1", "plan/0"),
            ("name = \"a-plan\"", "name = \"b-plan\""),
            ("about", "abuot"),
            ("verdict = \"held\"", "verdict = \"refused\""),
            (
                "verdict = \"held\"",
                "verdict = \"held\"\ncode = \"a/B\"\nstage = \"check\"",
            ),
            ("verdict = \"held\"", "verdict = \"admitted\""),
            (
                "trees = {",
                "git = { repository = \".\", baseline = \"a\", candidate = \"b\" }\ntrees = {",
            ),
        ] {
            let code = read(&GOOD.replace(from, to)).unwrap_err().code;
            assert_eq!(code, FlightsCode::PlanInvalid, "{to}");
        }
        let newer = GOOD.replace("plan/1", "plan/2").replace("about", "abuot");
        assert_eq!(read(&newer).unwrap_err().code, FlightsCode::PlanTooNew);
    }

    #[test]
    fn what_a_plan_does_not_know_is_told_with_its_line() {
        let detail = read(&GOOD.replace("about", "abuot")).unwrap_err().detail;
        assert!(detail.contains("a-plan.toml: line 4: "), "{detail}");
        assert!(detail.contains("abuot"), "{detail}");
    }

    #[test]
    fn a_plan_that_is_not_there_is_named() {
        let error = Plan::read(Path::new("/nonexistent/x.toml")).unwrap_err();
        assert_eq!(error.code, FlightsCode::PlanUnreadable);
        assert!(error.detail.contains("x.toml"));
    }
}
