//! One flight: the stages, wired together.

mod admission;
mod backend;
mod baseline;
mod certify;
mod host;
mod language;
mod order;
mod regenerate;
mod seen;
mod standing;
mod work;

pub(crate) use admission::{NOT_LET_IN, branch_of_receipt, check_receipt, hand_over};
pub use admission::{admit_certified, check_branch, subject_of};
pub(crate) use admission::{moved, not_let_in, unwritten};
pub use backend::{Backend, describe, only_image, reap_engine};
pub use certify::{
    Certificate, Claimed, Opening, certify, clear_out, satisfied, write_certificate, write_verdict,
};
pub(crate) use certify::{Lack, lacks};
pub use host::{Host, reap_here, recover_here, settle};
pub(crate) use host::{open_repository, settled};
pub(crate) use language::has_program;
pub(crate) use order::CALL_TO_FILL_IN;
pub use order::{Order, Parents};
pub(crate) use order::{read, read_witness};
pub use seen::Seen;
pub use standing::Standing;
pub(crate) use standing::left_here;
pub use work::WorkDirectory;

use crate::FlightsCode;
use crate::show::{Progress, count};
use crate::transcript::Tape;
use baseline::Flew;
use flightproof_archive::paws;
use flightproof_certifier::certificate::{Admission, Evidence, Statement};
use flightproof_certifier::certification::{
    Ask, Certification, Judgement, RUNS_PER_CASE, Secrets, Told, derived,
};
use flightproof_certifier::claim::LineageClaim;
use flightproof_certifier::judge::Gate;
use flightproof_certifier::lineage::{Ancestor, descent};
use flightproof_certifier::narrowing::{NarrowedClaim, Narrowing};
use flightproof_certifier::tree::Tree;
use flightproof_certifier::{CertifierCode, dependency, fence};
use flightproof_core::{Decision, Fault, Refusal, RelPath, Verdict};
use flightproof_evidence::{Captured, Closed, Package};
use flightproof_session::profile::Profile;
use flightproof_session::{Session, crates, observe};
use language::Shop;
use std::borrow::Cow;

/// Longest build, milliseconds: a clean build of some hundred crates on two cores.
const BUILD_WALL_MS: u64 = 15 * 60 * 1000;

/// How a flight ended.
pub enum Flown {
    /// Everything was proven.
    Certified(Box<Proven>),
    /// It was not.
    Refused {
        /// The stage that ended it.
        stage: &'static str,
        /// Why.
        refusal: Refusal,
    },
}

/// What a certified flight proved.
pub struct Proven {
    /// The unsigned certificate.
    pub statement: Statement,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// The commit.
    pub captured: Captured,
    /// The certificates it builds on.
    pub parents: Parents,
    /// Proof that nothing of the session is left.
    pub closed: Closed,
    /// Opens its commitments, for the judging side.
    pub secrets: Secrets,
}

impl Proven {
    /// One line for people.
    fn summary(&self) -> String {
        let inputs = &self.statement.predicate.inputs;
        let (head, cases) = (self.captured.head, count(inputs.witness.cases, "case"));
        let narrowed = match &inputs.capture.narrowed {
            Some(narrowed) => format!("; narrowed to {}", count(narrowed.paths.len(), "path")),
            None => String::new(),
        };
        let mutation = &inputs.mutation;
        let lines = &mutation.lines;
        let counted = |count: u64, what: &str| match count {
            0 => String::new(),
            1 => format!("; 1 changed line is {what}"),
            n => format!("; {n} changed lines are {what}"),
        };
        let unseen = counted(lines.not_compiled, "not compiled")
            + &counted(lines.regenerated, "as a generator makes them");
        if mutation.generated == 0 {
            let why = match lines.unjudged {
                0 => "; no changed line is mutable",
                _ => ", without mutants",
            };
            return format!("{head} certified: {cases}{why}{unseen}{narrowed}");
        }
        let equivalent = match mutation.equivalent {
            0 => String::new(),
            proven => format!(", {proven} equivalent"),
        };
        format!(
            "{head} certified: {cases}, {} of {} killed, {} waived{equivalent}{unseen}{narrowed}",
            mutation.killed_by.values().sum::<u64>(),
            count(mutation.viable, "mutant"),
            mutation.waived.len() + mutation.unjudged.len()
        )
    }
}

impl Flown {
    /// The bytes of the unsigned certificate, if it came that far.
    pub fn statement(&self) -> Option<&[u8]> {
        match self {
            Self::Certified(proven) => Some(&proven.payload),
            Self::Refused { .. } => None,
        }
    }

    /// The end in one word: `held`, or the code of the refusal.
    pub fn word(&self) -> &str {
        match self {
            Self::Certified(_) => "held",
            Self::Refused { refusal, .. } => refusal.code(),
        }
    }

    /// The verdict people see.
    pub fn verdict(&self, certificate: Option<String>) -> Verdict {
        match self {
            Self::Refused { stage, refusal } => Verdict::refused(stage, refusal),
            Self::Certified(proven) => {
                let detail = proven.summary();
                Verdict {
                    certificate,
                    ..Verdict::passed(Decision::Held, "certify", detail)
                }
            }
        }
    }
}

/// A stage that ended the flight.
struct Ended {
    stage: &'static str,
    refusal: Refusal,
}

/// Turns an error into the end of the flight at a stage.
fn at<E: Into<Refusal>>(stage: &'static str) -> impl FnOnce(E) -> Ended {
    move |error| Ended {
        stage,
        refusal: error.into(),
    }
}

/// What the work and the close of a session came to together. A refused candidate stays refused, and
/// what was left of its session is said beside it; a replay that left the recorded path is none.
fn both(worked: Result<(), Ended>, closed: Result<Closed, Ended>) -> Result<Closed, Ended> {
    match (worked, closed) {
        (Ok(()), closed) => closed,
        (Err(work), Ok(_)) => Err(work),
        (Err(work), Err(close)) if is_evidence(&close) && !is_evidence(&work) => Err(close),
        (Err(work), Err(close)) => Err(Ended {
            stage: work.stage,
            refusal: work.refusal.with_notes([close.refusal.to_string()]),
        }),
    }
}

fn is_evidence(ended: &Ended) -> bool {
    ended.refusal.explanation.fault == Fault::Evidence
}

/// Flies. The world is asked through `tape`; `host` is absent when a recording answers.
pub fn fly(order: &Order, host: Option<&Host>, tape: &mut Tape, progress: &mut Progress) -> Flown {
    match (Flight {
        order,
        host,
        tape,
        progress,
    })
    .run()
    {
        Ok(proven) => Flown::Certified(Box::new(proven)),
        Err(Ended { stage, refusal }) => Flown::Refused { stage, refusal },
    }
}

/// Flies for real while nothing else does, and sees that nothing is left of it.
///
/// # Errors
/// What was left. All else is in the end of the flight.
pub fn fly_alone(order: &Order, host: &Host, progress: &mut Progress) -> Result<Flown, Refusal> {
    host.leaving_nothing(|| fly(order, Some(host), &mut Tape::Off, progress))
}

struct Flight<'a> {
    order: &'a Order,
    host: Option<&'a Host>,
    tape: &'a mut Tape,
    progress: &'a mut Progress,
}

impl Flight<'_> {
    fn run(mut self) -> Result<Proven, Ended> {
        self.progress.begin("plan");
        // Before anything is judged: a refusal of one attempt too many tells nothing of the witness.
        if let Some(policy) = &self.order.bound {
            let tried = policy.require().attempt(self.order.attempt);
            tried.map_err(at("plan"))?;
        }
        let witness = self.order.witness().map_err(at("plan"))?;
        let (entropy, now) = self.draw()?;
        self.progress.done(count(witness.cases().len(), "case"));
        let captured = self.capture(now)?;
        let lineage = self.lineage(&captured).map_err(at("lineage"))?;
        let captured_files = paws::read(&captured.archive).map_err(at("capture"))?;
        let whole = tree(&captured_files);
        witness
            .refuse_if_inside(&whole, &captured.changes, self.order.witness_place.as_ref())
            .map_err(at("plan"))?;
        let flown = Flying::of(&captured, &captured_files, self.order.narrow.as_ref())
            .map_err(at("capture"))?;
        let part = match &flown.archive {
            Cow::Borrowed(_) => None,
            Cow::Owned(part) => Some(paws::read(part).map_err(at("capture"))?),
        };
        let unpacked = part.as_ref().unwrap_or(&captured_files);
        let tree = tree(unpacked);
        let profile = language::profile(&witness).map_err(at("plan"))?;
        let packages = match &profile {
            None => Some(self.static_rules(&captured, &tree)?),
            Some(profile) => {
                let paths: Vec<&RelPath> = unpacked.files().map(|(entry, _)| &entry.path).collect();
                let paths = paths.iter().copied();
                has_program(profile, &witness, paths.clone()).map_err(at("plan"))?;
                self.progress.begin("dependency");
                language::check(profile, &captured, paths).map_err(at("dependency"))?;
                self.progress
                    .done(format_args!("{}: nothing to fetch", profile.name));
                self.progress.begin("fence");
                language::fenced(profile, &captured).map_err(at("fence"))?;
                self.progress.done("source rules hold");
                None
            }
        };
        let regenerated = self.regenerate(&captured, &captured_files, &entropy)?;
        let mut flew = Flew {
            captured: &captured,
            whole: &captured_files,
            profile: profile.as_ref(),
            attestation: None,
            entropy: &entropy,
        };
        let salt = self.order.secrets(&entropy).salt;
        let (witness, compared) = self.compared(&flew, witness, &salt)?;
        let mut machine = Certification::beside(regenerated, &captured, &tree, &witness, entropy)
            .map_err(|failure| Ended {
                stage: failure.gate.name(),
                refusal: failure.refusal,
            })?
            .granting(&self.order.uncompiled)
            .sealed_with(self.order.secrets(&entropy));
        let dependencies = match &packages {
            Some(report) => self.dependencies(&report.packages)?,
            None => crates::ship(&[]).map_err(at("dependency"))?,
        };
        let new_packages = packages.map(|report| report.new).unwrap_or_default();
        let mut session = self.open(&derived(&entropy, "session"))?;
        let worked = self.work(
            session.as_mut(),
            &flown,
            profile.as_ref(),
            &dependencies,
            &mut machine,
        );
        self.progress.seen.account = Some(machine.account());
        self.progress.seen.missed = machine.missed().cloned();
        let closed = self.close(session.as_mut());
        let closed = both(worked, closed)?;
        if compared.is_some_and(|toolchain| toolchain != session.attestation().toolchain) {
            let what = "another toolchain for the baseline";
            return Err(at("baseline")(CertifierCode::SessionMismatch.refuse(what)));
        }
        self.progress.begin("judge");
        let trial = machine.on_baseline();
        let mut judgement = machine.finish().map_err(|failure| Ended {
            stage: failure.gate.name(),
            refusal: failure.refusal,
        })?;
        if profile.is_some() {
            judgement = language::judged(judgement);
        }
        self.progress
            .done(format_args!("{} gates passed", judgement.gates.len()));
        judgement.witness.feedback = self.order.feedback;
        flew.attestation = Some(session.attestation());
        judgement.witness.failed_on_baseline = self.on_baseline(&flew, trial)?;
        let proven = self.prove(
            &captured,
            flown.narrowed.clone(),
            session.as_ref(),
            closed,
            (judgement, lineage, new_packages),
            &entropy,
        )?;
        self.progress.seen.statement = Some(Box::new(proven.statement.clone()));
        Ok(proven)
    }

    /// Entropy and clock are taken once and are part of the recording.
    fn draw(&mut self) -> Result<([u8; 32], u64), Ended> {
        let entropy = self.tape.entropy().map_err(at("plan"))?;
        let now = self.tape.clock().map_err(at("plan"))?;
        Ok((entropy, now))
    }

    fn capture(&mut self, now: u64) -> Result<Captured, Ended> {
        self.progress.begin("capture");
        let (order, host) = (self.order, self.host);
        let captured: Captured = self
            .tape
            .exchange("capture", &order.capture_input(), || {
                needed(host)?.capture(order, now)
            })
            .map_err(|refusal| Ended {
                stage: capture_stage(&refusal),
                refusal,
            })?;
        self.progress.seen.changes = captured.changes.clone();
        self.progress.done(format_args!(
            "{}, bundle of {} bytes",
            count(captured.changes.len(), "changed file"),
            captured.bundle_bytes
        ));
        Ok(captured)
    }

    /// What the commit descends from.
    fn lineage(&self, captured: &Captured) -> Result<LineageClaim, Refusal> {
        let parents = &self.order.parents;
        let opened = parents.envelopes.iter();
        let opened = opened.map(|envelope| Ancestor::open(envelope, &parents.keys));
        Ok(descent(captured, &opened.collect::<Result<Vec<_>, _>>()?)?)
    }

    fn static_rules(
        &mut self,
        captured: &Captured,
        tree: &Tree<'_>,
    ) -> Result<dependency::DependencyReport, Ended> {
        self.progress.begin("dependency");
        let allowed = dependency::Allowed {
            paths: self.order.grants.as_deref().unwrap_or_default(),
            packages: &self.order.packages,
        };
        let report = dependency::check(captured, tree, allowed, self.order.lock.as_deref())
            .map_err(at("dependency"))?;
        self.progress
            .done(count(report.packages.len(), "locked package"));
        self.progress.begin("fence");
        fence::check(captured, tree).map_err(at("fence"))?;
        self.progress.done("source rules hold");
        Ok(report)
    }

    fn dependencies(&mut self, packages: &Vec<Package>) -> Result<crates::Shipment, Ended> {
        let host = self.host;
        let mut bytes = None;
        let manifest = self
            .tape
            .exchange("crates", packages, || {
                let shipment = needed(host)?.shipment(packages)?;
                let manifest = shipment.manifest.clone();
                bytes = Some(shipment);
                Ok(manifest)
            })
            .map_err(at("dependency"))?;
        Ok(bytes.unwrap_or(crates::Shipment {
            manifest,
            archive: Vec::new(),
        }))
    }

    fn open(&mut self, seed: &[u8; 32]) -> Result<Box<dyn Session>, Ended> {
        self.progress.begin("open");
        let host = self.host;
        let session = self
            .tape
            .session(seed, || needed(host)?.open(seed))
            .map_err(at("open"))?;
        let attestation = session.attestation();
        let seen = &mut self.progress.seen.attestation;
        seen.get_or_insert_with(|| attestation.clone());
        self.progress.done(format_args!(
            "{}: {} limits read back, {} forbidden acts denied",
            attestation.backend,
            attestation.readings.len(),
            attestation.probes.len()
        ));
        Ok(session)
    }

    /// Answers the machine's questions until it has none.
    fn work(
        &mut self,
        session: &mut dyn Session,
        flown: &Flying<'_>,
        profile: Option<&Profile>,
        dependencies: &crates::Shipment,
        machine: &mut Certification<'_>,
    ) -> Result<(), Ended> {
        self.progress.begin("build");
        let lock = self.order.lock.as_deref();
        let content = (dependencies, lock);
        let mut shop = Shop::furnish(session, profile, &flown.archive, content, BUILD_WALL_MS)
            .map_err(at("build"))?;
        let mut asked = 0u32;
        while let Some(ask) = machine.ask() {
            let gate = machine.gate();
            let told = match ask {
                Ask::Compile(order) => shop.build(session, &order).map(Told::Compiled),
                Ask::Run(case) => observe::run(session, &case).map(Told::Ran),
            };
            let told = told.map_err(at(gate.name()))?;
            asked += 1;
            machine.tell(told).map_err(|failure| Ended {
                stage: failure.gate.name(),
                refusal: failure.refusal,
            })?;
            self.gate_passed(gate, machine, &mut asked);
        }
        Ok(())
    }

    fn gate_passed(&mut self, gate: Gate, machine: &Certification<'_>, asked: &mut u32) {
        if machine.gate() == gate && !machine.is_done() {
            return;
        }
        self.progress.done(match gate {
            Gate::Build => "compiled offline".to_owned(),
            Gate::Mutation => {
                let mutants = count(machine.mutants(), "mutant");
                format!("{mutants}, {asked} builds and runs")
            }
            _ => count(*asked, "run"),
        });
        *asked = 0;
        self.progress.begin(machine.gate().name());
    }

    fn close(&mut self, session: &mut dyn Session) -> Result<Closed, Ended> {
        self.progress.begin("close");
        let closed = session.close().map_err(at("close"))?;
        if !closed.is_clean() {
            let refused = flightproof_session::SessionCode::Leak.refuse(format_args!("{closed:?}"));
            return Err(at("close")(refused));
        }
        self.progress
            .done("no process, cgroup, mount or directory left");
        Ok(closed)
    }

    fn prove(
        &self,
        captured: &Captured,
        narrowed: Option<NarrowedClaim>,
        session: &dyn Session,
        closed: Closed,
        (judgement, lineage, new_packages): (Judgement, LineageClaim, Vec<Package>),
        entropy: &[u8; 32],
    ) -> Result<Proven, Ended> {
        let attestation = session.attestation();
        let evidence = Evidence {
            admission: match &self.order.admit {
                Some(branch) => Admission::Admitted {
                    branch: branch.clone(),
                },
                None => Admission::Held {},
            },
            plan: self.order.plan.clone(),
            policy: self.order.policy,
            attempt: self.order.attempt,
            gates: judgement.gates,
            captured,
            narrowed,
            capture_limits: flightproof_importer::limits(),
            attestation,
            build_session: &attestation.session,
            built: &judgement.built,
            new_packages,
            execution_session: &attestation.session,
            runs_per_case: RUNS_PER_CASE,
            observations: judgement.observations,
            closed: &closed,
            witness: judgement.witness,
            mutation: judgement.mutation,
            lineage,
            spend: self.order.spend.clone(),
        };
        let statement = Statement::build(&evidence).map_err(at("certify"))?;
        let payload = statement.payload().map_err(at("certify"))?;
        Ok(Proven {
            statement,
            payload,
            captured: captured.clone(),
            parents: self.order.parents.clone(),
            closed,
            secrets: self.order.secrets(entropy),
        })
    }
}

/// What of the captured tree flies.
struct Flying<'a> {
    archive: Cow<'a, [u8]>,
    narrowed: Option<NarrowedClaim>,
}

impl<'a> Flying<'a> {
    fn of(
        captured: &'a Captured,
        whole: &paws::Unpacked<'_>,
        narrowing: Option<&Narrowing>,
    ) -> Result<Self, Refusal> {
        let Some(narrowing) = narrowing else {
            return Ok(Self {
                archive: Cow::Borrowed(&captured.archive),
                narrowed: None,
            });
        };
        narrowing.covers(
            &captured.changes,
            whole
                .files()
                .map(|(entry, _)| &entry.path)
                .collect::<Vec<_>>()
                .into_iter(),
        )?;
        let part = whole
            .files()
            .filter(|(entry, _)| narrowing.admits(&entry.path))
            .map(|(entry, bytes)| (entry.path.clone(), entry.executable, bytes));
        let packed = paws::pack(whole.snapshot.workspace_id(), part)?;
        Ok(Self {
            narrowed: Some(narrowing.claim(packed.snapshot.snapshot_id())),
            archive: Cow::Owned(packed.bytes),
        })
    }
}

pub(crate) fn tree<'a>(unpacked: &'a paws::Unpacked<'a>) -> Tree<'a> {
    let files = unpacked.files();
    files.map(|(entry, bytes)| (&entry.path, bytes)).collect()
}

/// What a recording does not answer must be asked of a host, and a replay has none.
pub(crate) fn needed(host: Option<&Host>) -> Result<&Host, Refusal> {
    host.ok_or_else(|| {
        FlightsCode::TranscriptDiverged
            .refuse("the replay reached for the host")
            .into()
    })
}

/// A rule that the commit breaks is found by the check; all else is the capture's.
fn capture_stage(refusal: &Refusal) -> &'static str {
    match refusal.explanation.fault {
        Fault::Input | Fault::Policy => "check",
        _ => "capture",
    }
}
