//! A session with the tree in it, ready to build and to run.

use super::Oracle;
use crate::flight::Host;
use flightproof_certifier::mutation::MutationPlan;
use flightproof_certifier::scope::Member;
use flightproof_certifier::{CertifierCode, judge};
use flightproof_core::{Bytes, Refusal, RelPath, escape};
use flightproof_evidence::{
    BuildAnswer, BuildOrder, BuildTarget, CaseRun, Diagnostic, Observation, SuiteAnswer,
    SuiteOrder, TestProgram,
};
use flightproof_session::build::Workshop;
use flightproof_session::{Session, crates, observe};
use std::collections::BTreeMap;
use std::time::Instant;

/// Longest life of a session, milliseconds: a day, for a large crate with slow tests.
const LIFETIME_MS: u64 = 24 * 60 * 60 * 1000;
/// Longest build, milliseconds: an hour. Thousands of mutants in every test program of a crate, on a
/// machine that does other work, took longer than the quarter of an hour a flight has.
const BUILD_WALL_MS: u64 = 60 * 60 * 1000;
/// Most builds: each learns what the compiler refused in the last, and it refuses types before
/// borrows.
const MAX_BUILDS: u32 = 24;
/// Start of the names of programs.
const PREFIX: &str = "survey";

/// What every session of a survey is furnished with.
pub(super) struct Supplies<'a> {
    pub(super) host: &'a Host,
    pub(super) archive: &'a [u8],
    pub(super) shipment: crates::Shipment,
    pub(super) lock: Option<Vec<u8>>,
}

/// One session.
pub(super) struct Bench {
    session: Box<dyn Session>,
    workshop: Workshop,
}

/// What was built of all mutants.
pub(super) struct Build {
    pub(super) plan: MutationPlan,
    pub(super) programs: Vec<TestProgram>,
    pub(super) rounds: u32,
    order: Order,
}

/// How it is built again in another session.
enum Order {
    Tests(SuiteOrder),
    Program(Box<BuildOrder>),
}

/// An answer to an [`Order`].
enum Answer {
    Built(Vec<TestProgram>),
    Failed(Vec<Diagnostic>, Bytes),
    Limit(String),
}

impl Bench {
    pub(super) fn open(supplies: &Supplies<'_>) -> Result<Self, Refusal> {
        let seed = crate::state::entropy()?;
        let mut session = supplies.host.open_for(&seed, LIFETIME_MS)?;
        let (shipment, lock) = (&supplies.shipment, supplies.lock.as_deref());
        let workshop = Workshop::furnish(
            session.as_mut(),
            supplies.archive,
            shipment,
            lock,
            BUILD_WALL_MS,
        )?;
        Ok(Self { session, workshop })
    }

    /// Builds until only mutants are left that compile.
    pub(super) fn settle(
        &mut self,
        mut plan: MutationPlan,
        oracle: &Oracle,
        packages: &[Member],
        features: &[String],
    ) -> Result<Build, Refusal> {
        for rounds in 1..=MAX_BUILDS {
            let order = Order::of(&plan, oracle, packages, features)?;
            match self.build(&order)? {
                Answer::Built(programs) => {
                    return Ok(Build {
                        plan,
                        programs: oracle.judging(programs)?,
                        rounds,
                        order,
                    });
                }
                Answer::Failed(diagnostics, tail) => {
                    if diagnostics.is_empty() {
                        let failed = BuildAnswer::Failed { diagnostics, tail };
                        judge::built(failed, &[])?;
                        continue;
                    }
                    plan = match plan.without(&plan.attribute(&diagnostics)) {
                        Ok(plan) => plan,
                        Err(refused) => {
                            self.untouched(order)?;
                            return Err(refused.into());
                        }
                    };
                }
                Answer::Limit(limit) => {
                    return Err(CertifierCode::BuildLimit.refuse(escape(limit, 40)).into());
                }
            }
        }
        let detail = format!("{MAX_BUILDS} builds, and mutants that do not compile are left");
        Err(CertifierCode::SchemataBroken.refuse(detail).into())
    }

    /// What does not compile without a mutant either is no fault of the mutants.
    fn untouched(&mut self, mut order: Order) -> Result<(), Refusal> {
        match &mut order {
            Order::Tests(order) => order.overlay.clear(),
            Order::Program(order) => order.overlay.clear(),
        }
        match self.build(&order)? {
            Answer::Failed(diagnostics, tail) => {
                judge::built(BuildAnswer::Failed { diagnostics, tail }, &[]).map(drop)
            }
            Answer::Built(_) | Answer::Limit(_) => Ok(()),
        }
    }

    /// Builds what another session has built.
    pub(super) fn rebuild(&mut self, build: &Build) -> Result<(), Refusal> {
        match self.build(&build.order)? {
            Answer::Built(_) => Ok(()),
            Answer::Failed(diagnostics, tail) => {
                judge::built(BuildAnswer::Failed { diagnostics, tail }, &[]).map(drop)
            }
            Answer::Limit(limit) => Err(CertifierCode::BuildLimit.refuse(escape(limit, 40)).into()),
        }
    }

    fn build(&mut self, order: &Order) -> Result<Answer, Refusal> {
        let session = self.session.as_mut();
        Ok(match order {
            Order::Tests(order) => match self.workshop.build_tests(session, order)? {
                SuiteAnswer::Built { programs } => Answer::Built(programs),
                SuiteAnswer::Failed { diagnostics, tail } => Answer::Failed(diagnostics, tail),
                SuiteAnswer::Limit { limit } => Answer::Limit(limit),
            },
            Order::Program(order) => match self.workshop.build(session, order)? {
                BuildAnswer::Built(built) => Answer::Built(vec![TestProgram {
                    program: built.program,
                    folder: String::new(),
                    target: "witness".to_owned(),
                }]),
                BuildAnswer::Failed { diagnostics, tail } => Answer::Failed(diagnostics, tail),
                BuildAnswer::Limit { limit } => Answer::Limit(limit),
            },
        })
    }

    /// Runs once. Also says how long it took, in milliseconds.
    pub(super) fn run(&mut self, case: &CaseRun) -> Result<(Observation, u64), Refusal> {
        let started = Instant::now();
        let observation = observe::run(self.session.as_mut(), case)?;
        let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok((observation, took))
    }

    /// Ends the session, and proves that nothing of it is left.
    pub(super) fn close(mut self) -> Result<(), Refusal> {
        let closed = self.session.close()?;
        if closed.is_clean() {
            return Ok(());
        }
        let detail = format!("{closed:?}");
        Err(flightproof_session::SessionCode::Leak.refuse(detail).into())
    }
}

impl Order {
    fn of(
        plan: &MutationPlan,
        oracle: &Oracle,
        packages: &[Member],
        features: &[String],
    ) -> Result<Self, Refusal> {
        let overlay: BTreeMap<RelPath, Bytes> = plan.overlay.clone();
        let guard = plan.guard.clone();
        Ok(match oracle {
            Oracle::Tests | Oracle::Suite(_) => Self::Tests(SuiteOrder {
                prefix: PREFIX.to_owned(),
                packages: packages.iter().map(|p| p.name.clone()).collect(),
                features: features.to_vec(),
                overlay,
                guard,
            }),
            Oracle::Witness(witness) => {
                let target: BuildTarget = witness.target()?;
                Self::Program(Box::new(BuildOrder {
                    program: PREFIX.to_owned(),
                    target,
                    overlay,
                    guard,
                    optimized: false,
                }))
            }
        })
    }
}
