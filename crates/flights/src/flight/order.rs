//! What is to be flown, with every file read.

use crate::plan::{Plan, PlanChange, PlanSource};
use crate::source::{self, Laid};
use crate::{FlightsCode, near, regular};
use flightproof_certifier::certification::Secrets;
use flightproof_certifier::dependency::GrantedPackage;
use flightproof_certifier::feedback::Feedback;
use flightproof_certifier::generated::GeneratedRules;
use flightproof_certifier::key::PublicKey;
use flightproof_certifier::narrowing::Narrowing;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::spend::SpendClaim;
use flightproof_certifier::witness::Witness;
use flightproof_core::{Digest, Refusal, RelPath, canonical_json, escape};
use flightproof_importer::Grants;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A witness with its driver, both as they were read.
pub(crate) struct WitnessFiles {
    /// What they say.
    pub(crate) witness: Witness,
    /// The witness file.
    pub(crate) bytes: Vec<u8>,
    /// The driver file.
    pub(crate) driver: Option<Vec<u8>>,
}

/// What stands in the driver of `flights init` until its owner has written the call.
pub(crate) const CALL_TO_FILL_IN: &str = "// REPLACE: call the library with the case";

fn unfilled(path: &Path, places: &[String]) -> Result<(), Refusal> {
    match places {
        [] => Ok(()),
        places => {
            let has = if places.len() == 1 { "has" } else { "have" };
            let told = format!("{} still {has} REPLACE", places.join(", "));
            Err(regular::named(path)(
                FlightsCode::WitnessUnfilled.refuse(told),
            ))
        }
    }
}

/// A witness file, and the driver that it names, which lies beside it.
///
/// # Errors
/// `WITNESS_UNREADABLE`, `WITNESS_UNFILLED`, and the witness's own refusals, with the file's name.
pub(crate) fn read_witness(path: &Path) -> Result<WitnessFiles, Refusal> {
    let bytes = read(path, FlightsCode::WitnessUnreadable)?;
    let witness = Witness::parse(&bytes).map_err(regular::named(path))?;
    unfilled(path, &witness.unfilled())?;
    let Some(name) = witness.driver_file() else {
        let driver = None;
        return Ok(WitnessFiles {
            witness,
            bytes,
            driver,
        });
    };
    let beside = path.parent().unwrap_or(Path::new(".")).join(name.as_str());
    let driver = read(&beside, FlightsCode::WitnessUnreadable)?;
    let text = String::from_utf8_lossy(&driver);
    let left = text.lines().zip(1..);
    let left = left.filter(|(line, _)| line.contains(CALL_TO_FILL_IN));
    let left: Vec<String> = left
        .map(|(_, at)| format!("the comment in line {at}"))
        .collect();
    unfilled(&beside, &left)?;
    let witness = witness.with_driver(&driver);
    Ok(WitnessFiles {
        witness: witness.map_err(regular::named(&beside))?,
        bytes,
        driver: Some(driver),
    })
}

/// Largest witness, driver or lock file in bytes.
const MAX_FILE: u64 = 8 << 20;

/// Certificates that a flight builds on.
#[derive(Debug, Clone, Default)]
pub struct Parents {
    /// Their envelopes.
    pub envelopes: Vec<Vec<u8>>,
    /// Whose they may be.
    pub keys: Vec<PublicKey>,
}

/// An order to fly.
pub struct Order {
    /// The operator's name for the repository.
    pub label: String,
    /// The plan's name, for a flight with a plan.
    pub plan: Option<String>,
    /// Revision of the baseline.
    pub baseline: String,
    /// Revision of the candidate.
    pub candidate: String,
    /// Granted paths.
    pub grants: Option<Vec<RelPath>>,
    /// Packages that may be new in the lock file.
    pub packages: Vec<GrantedPackage>,
    /// Paths where files may be large.
    pub large: Vec<RelPath>,
    /// Names that are protected as well.
    pub protect: Vec<String>,
    /// The part of the tree that flies in place of the whole.
    pub narrow: Option<Narrowing>,
    /// Paths whose changes may come in though no build compiles them.
    pub uncompiled: Vec<RelPath>,
    /// How generated files of the tree are made.
    pub generated: GeneratedRules,
    /// How much the author is told of a case that is missed; absent where nobody is told.
    pub feedback: Option<Feedback>,
    /// The certificates that the baseline's commit has, and those it builds on.
    pub parents: Parents,
    /// `Name <mail>` of author and committer.
    pub identity: Option<String>,
    /// Lock file for a tree without one.
    pub lock: Option<Vec<u8>>,
    /// SHA-256 of the policy the certificate is bound to.
    pub policy: Option<Digest>,
    /// That policy.
    pub bound: Option<Policy>,
    /// The branch to admit to.
    pub admit: Option<String>,
    /// Which attempt of a repair loop this is, from 1.
    pub attempt: u64,
    /// What the attempts of an agent have cost so far, if one made the candidate.
    pub spend: Option<SpendClaim>,
    /// The candidate as a bundle, in place of a revision of the repository.
    pub bundle: Option<Vec<u8>>,
    /// The large files of that bundle's commit.
    pub changeset: Option<Vec<u8>>,
    /// The repository; absent when a recording is replayed.
    pub source: Option<Laid>,
    /// Where the witness lies inside the repository, if it does.
    pub witness_place: Option<RelPath>,
    /// What an earlier flight of the same commit was sealed with; otherwise the flight draws its own.
    pub sealed_as: Option<Secrets>,
    witness_file: PathBuf,
    witness: Vec<u8>,
    driver: Option<Vec<u8>>,
    /// Digest of the directories a plan flies, which a recording is bound to.
    trees: Option<Digest>,
}

impl Order {
    /// An order with its witness read. `folder` of the witness also holds its driver.
    ///
    /// # Errors
    /// `WITNESS_UNREADABLE`, and the witness's own refusals.
    pub fn new(
        label: &str,
        (baseline, candidate): (&str, &str),
        witness: &Path,
    ) -> Result<Self, Refusal> {
        let files = read_witness(witness)?;
        Ok(Self {
            label: label.to_owned(),
            plan: None,
            baseline: baseline.to_owned(),
            candidate: candidate.to_owned(),
            grants: None,
            packages: Vec::new(),
            large: Vec::new(),
            protect: Vec::new(),
            narrow: None,
            uncompiled: Vec::new(),
            generated: GeneratedRules::default(),
            feedback: None,
            parents: Parents::default(),
            identity: None,
            lock: None,
            policy: None,
            bound: None,
            admit: None,
            attempt: 1,
            spend: None,
            bundle: None,
            changeset: None,
            source: None,
            witness_place: None,
            sealed_as: None,
            witness_file: witness.to_owned(),
            witness: files.bytes,
            driver: files.driver,
            trees: None,
        })
    }

    /// The order of a plan, paths relative to `root`.
    ///
    /// # Errors
    /// As [`Order::new`], and `SOURCE_UNAVAILABLE` for directories that cannot be read.
    pub fn from_plan(plan: &Plan, root: &Path) -> Result<Self, Refusal> {
        let (label, baseline, candidate) = source::revisions(&plan.source, &plan.name);
        let mut order = Self::new(
            &label,
            (&baseline, &candidate),
            &root.join(&plan.witness.file),
        )?;
        order.plan = Some(plan.name.clone());
        order.generated = GeneratedRules::new(plan.generated.clone())?;
        order.set_change(&plan.change, root)?;
        if let Some(policy) = &plan.policy {
            order.set_policy(&root.join(policy.file.as_path()))?;
        }
        match &plan.source {
            PlanSource::Trees(trees) => order.trees = Some(source::digest(trees, root)?),
            PlanSource::Git(_) => {
                order.witness_place = RelPath::new(&plan.witness.file.to_string_lossy()).ok()
            }
            PlanSource::Crate(_) => {}
        }
        Ok(order)
    }

    /// What the change may be, by a plan whose paths are relative to `root`.
    ///
    /// # Errors
    /// `FILE_UNREADABLE`, and those of narrowing.
    pub fn set_change(&mut self, change: &PlanChange, root: &Path) -> Result<(), Refusal> {
        let change = change.clone();
        self.grants = change.grants;
        self.packages = change.packages;
        self.large = change.large;
        self.protect = change.protect;
        self.narrow = change.narrow.map(Narrowing::new).transpose()?;
        self.uncompiled = change.uncompiled;
        self.identity = change.identity;
        if let Some(lock) = change.lock {
            self.set_lock(&root.join(lock))?;
        }
        Ok(())
    }

    /// Reads the lock file for a tree without one.
    ///
    /// # Errors
    /// `FILE_UNREADABLE`.
    pub fn set_lock(&mut self, path: &Path) -> Result<(), Refusal> {
        self.lock = Some(read(path, FlightsCode::FileUnreadable)?);
        Ok(())
    }

    /// Reads the rules for generated files. They are the operator's: a file in the repository is
    /// whatever was committed or written there last.
    ///
    /// # Errors
    /// `FILE_UNREADABLE`, `GENERATED_EXPOSED`, and those of reading rules.
    pub fn set_generated(&mut self, path: &Path, inside: Option<RelPath>) -> Result<(), Refusal> {
        if let Some(place) = inside {
            return Err(FlightsCode::GeneratedExposed
                .refuse(place.to_string())
                .into());
        }
        let bytes = read(path, FlightsCode::FileUnreadable)?;
        self.generated = GeneratedRules::parse(&bytes).map_err(regular::named(path))?;
        Ok(())
    }

    /// What the author may touch.
    pub(crate) fn rules(&self) -> Grants {
        let grants = Grants::new(self.grants.clone().unwrap_or_default());
        grants
            .with_large(self.large.clone())
            .protecting(self.protect.iter().map(String::as_str))
    }

    /// Reads the policy that the certificate is bound to.
    ///
    /// # Errors
    /// `FILE_UNREADABLE`, and those of reading a policy.
    pub fn set_policy(&mut self, path: &Path) -> Result<(), Refusal> {
        let bytes = read(path, FlightsCode::FileUnreadable)?;
        let policy = Policy::parse(&bytes).map_err(regular::named(path))?;
        self.bind(policy, Digest::of(&bytes));
        Ok(())
    }

    /// Binds the certificate to a policy, whose file has this digest.
    pub(crate) fn bind(&mut self, policy: Policy, digest: Digest) {
        self.policy = Some(digest);
        self.bound = Some(policy);
    }

    /// The witness with its driver.
    ///
    /// # Errors
    /// The witness's own refusals.
    pub fn witness(&self) -> Result<Witness, Refusal> {
        let witness = Witness::parse(&self.witness)?;
        let file = &self.witness_file;
        // No program gives two answers to one question: whoever wrote it is told, not the candidate.
        let torn = witness.twins().into_iter().find(|twins| !twins.agree);
        if let Some(twins) = torn {
            let (first, second) = (escape(&twins.first, 80), escape(&twins.second, 80));
            let detail = format!("{first} and {second} ask the same and expect different answers");
            return Err(regular::named(file)(
                FlightsCode::WitnessUnsound.refuse(detail),
            ));
        }
        Ok(match &self.driver {
            Some(driver) => witness.with_driver(driver)?,
            None => witness,
        })
    }

    /// What the certificate's commitments are sealed with.
    pub fn secrets(&self, entropy: &[u8; 32]) -> Secrets {
        self.sealed_as.unwrap_or_else(|| Secrets::of(entropy))
    }

    /// What the capture is asked, as a recording keeps it.
    pub fn capture_input(&self) -> Value {
        let mut input = json!({
            "repository": self.label, "baseline": self.baseline, "candidate": self.candidate,
            "grants": self.grants, "identity": self.identity,
        });
        if !self.large.is_empty() {
            input["large"] = json!(self.large);
        }
        if !self.protect.is_empty() {
            input["protect"] = json!(self.protect);
        }
        input
    }

    /// What a recording is bound to: the plan and every file it names.
    ///
    /// # Errors
    /// Never for a plan that was read; the signature is that of every canonical form.
    pub fn digest(&self, plan: &Plan) -> Result<Digest, Refusal> {
        let of = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(Digest::of);
        let mut document = json!({
            "plan": plan, "witness": Digest::of(&self.witness), "driver": of(&self.driver),
            "lock": of(&self.lock), "trees": self.trees,
        });
        if let Some(policy) = self.policy {
            document["policy"] = json!(policy);
        }
        canonical_json(&document)
            .map(|bytes| Digest::of(&bytes))
            .map_err(|e| FlightsCode::PlanInvalid.refuse(e).into())
    }
}

pub(crate) fn read(path: &Path, code: FlightsCode) -> Result<Vec<u8>, Refusal> {
    let bytes = regular::read(path, MAX_FILE);
    let bytes = bytes.map_err(|e| Refusal::from(code.refuse(near::unread(path, &e))))?;
    if bytes.len() as u64 > MAX_FILE {
        let what = format!("{}: more than {MAX_FILE} bytes", regular::shown(path));
        return Err(code.refuse(what).into());
    }
    Ok(bytes)
}
