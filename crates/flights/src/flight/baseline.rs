//! The cases on the baseline, in a session of its own.

use super::language::Shop;
use super::{BUILD_WALL_MS, Ended, Flight, at, both, tree};
use flightproof_archive::paws;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certification::{
    Ask, BaselineQuestions, BaselineTrial, DifferentialTrial, SuiteTrial, Told, derived,
};
use flightproof_certifier::claim::BaselineResult;
use flightproof_certifier::dependency;
use flightproof_certifier::witness::Witness;
use flightproof_core::{Code as _, Refusal, RelPath};
use flightproof_evidence::{Attestation, Captured, Toolchain};
use flightproof_session::profile::Profile;
use flightproof_session::{Session, SessionCode, crates, observe};
use std::collections::BTreeMap;

/// What a candidate flew with, for its baseline to fly with the same.
pub(super) struct Flew<'a> {
    pub(super) captured: &'a Captured,
    pub(super) whole: &'a paws::Unpacked<'a>,
    pub(super) profile: Option<&'a Profile>,
    /// Of the session that judges, once there is one.
    pub(super) attestation: Option<&'a Attestation>,
    pub(super) entropy: &'a [u8; 32],
}

impl Flight<'_> {
    /// Runs the cases on the baseline. It ends the flight only where there is no session for it: a
    /// baseline that does not build, for want of a package of its lock too, is a finding.
    pub(super) fn on_baseline(
        &mut self,
        flew: &Flew<'_>,
        mut trial: BaselineTrial<'_>,
    ) -> Result<BaselineResult, Ended> {
        let said = "the cases ran on the baseline";
        match self.ask_baseline(flew, ("baseline session", said), &mut trial) {
            Err(ended) if ended.refusal.code() == SessionCode::CrateMissing.explanation().code => {
                self.progress.begin("baseline");
                self.progress
                    .done(format_args!("it did not build: {}", ended.refusal));
                return Ok(BaselineResult::Unbuilt {});
            }
            asked => asked?,
        };
        trial.finish().map_err(at("baseline"))
    }

    /// Has the baseline answer what a witness without answers asks: generated inputs or its own tests, before any session holds
    /// the candidate. The toolchain that built it, to be held against the judging session's.
    pub(super) fn compared(
        &mut self,
        flew: &Flew<'_>,
        witness: Witness,
        salt: &[u8; 32],
    ) -> Result<(Witness, Option<Toolchain>), Ended> {
        if witness.suite().is_some() {
            return self.suite(flew, witness, salt);
        }
        if witness.differential().is_none() {
            return Ok((witness, None));
        }
        let mut trial = DifferentialTrial::new(&witness, salt).map_err(at("baseline"))?;
        let said = "the generated inputs ran on the baseline";
        let used = self.ask_baseline(flew, ("differential session", said), &mut trial)?;
        // The session that is shown is the one that judges.
        self.progress.seen.attestation = None;
        let answered = trial.finish().map_err(at("baseline"))?;
        Ok((answered, Some(used)))
    }

    /// Has the baseline run its own tests.
    fn suite(
        &mut self,
        flew: &Flew<'_>,
        witness: Witness,
        salt: &[u8; 32],
    ) -> Result<(Witness, Option<Toolchain>), Ended> {
        let archive = self.baseline_of(flew).map_err(at("baseline"))?;
        let unpacked = paws::read(&archive).map_err(at("baseline"))?;
        let changes = &flew.captured.changes;
        let found = witness
            .found(&tree(&unpacked), changes, salt)
            .map_err(at("baseline"))?;
        let mut trial = SuiteTrial::new(found, salt).map_err(at("baseline"))?;
        let said = "its tests ran on the baseline";
        let used = self.ask_baseline(flew, ("suite session", said), &mut trial)?;
        self.progress.seen.attestation = None;
        let measured = trial.finish().map_err(at("baseline"))?;
        if let Some(tests) = measured.tests() {
            self.progress.begin("baseline");
            self.progress.done(tests.told());
        }
        Ok((measured, Some(used)))
    }

    fn ask_baseline(
        &mut self,
        flew: &Flew<'_>,
        (purpose, said): (&str, &str),
        trial: &mut dyn BaselineQuestions,
    ) -> Result<Toolchain, Ended> {
        let archive = self.baseline_of(flew).map_err(at("baseline"))?;
        let dependencies = self.baseline_dependencies(flew, &archive)?;
        let mut session = self.open(&derived(flew.entropy, purpose))?;
        let toolchain = session.attestation().toolchain.clone();
        let same = flew
            .attestation
            .is_none_or(|other| other.toolchain == toolchain);
        self.progress.begin("baseline");
        let worked = match same {
            true => self.try_baseline(
                session.as_mut(),
                (&archive, flew.profile),
                &dependencies,
                trial,
            ),
            false => Err(at("baseline")(
                CertifierCode::SessionMismatch.refuse("another toolchain for the baseline"),
            )),
        };
        let said = match (&worked, trial.unbuilt()) {
            (Ok(()), None) => said,
            (Ok(()), Some(_)) => "it did not build",
            (Err(_), _) => "ended",
        };
        self.progress.done(said);
        let closed = self.close(session.as_mut());
        both(worked, closed)?;
        Ok(toolchain)
    }

    /// What of the baseline flies: the candidate's tree with every change taken back.
    fn baseline_of(&self, flew: &Flew<'_>) -> Result<Vec<u8>, Refusal> {
        let files = flew.whole.files();
        let mut files: BTreeMap<&RelPath, (bool, &[u8])> = files
            .map(|(entry, bytes)| (&entry.path, (entry.executable, bytes)))
            .collect();
        for change in &flew.captured.changes {
            match &change.old {
                Some(old) => files.insert(&change.path, (old.executable, &old.content)),
                None => files.remove(&change.path),
            };
        }
        let narrow = self.order.narrow.as_ref();
        let files = files
            .into_iter()
            .filter(|(path, _)| narrow.is_none_or(|narrowing| narrowing.admits(path)))
            .map(|(path, (executable, bytes))| (path.clone(), executable, bytes));
        Ok(paws::pack(flew.whole.snapshot.workspace_id(), files)?.bytes)
    }

    fn baseline_dependencies(
        &mut self,
        flew: &Flew<'_>,
        archive: &[u8],
    ) -> Result<crates::Shipment, Ended> {
        if flew.profile.is_some() {
            return crates::ship(&[]).map_err(at("baseline"));
        }
        let unpacked = paws::read(archive).map_err(at("baseline"))?;
        let given = self.order.lock.as_deref();
        // A lock that cannot be read names nothing to ship, and nothing builds with it.
        let packages = dependency::locked(&tree(&unpacked), given).unwrap_or_default();
        self.dependencies(&packages)
    }

    fn try_baseline(
        &mut self,
        session: &mut dyn Session,
        (archive, profile): (&[u8], Option<&Profile>),
        dependencies: &crates::Shipment,
        trial: &mut dyn BaselineQuestions,
    ) -> Result<(), Ended> {
        let content = (dependencies, self.order.lock.as_deref());
        let shop = Shop::furnish(session, profile, archive, content, BUILD_WALL_MS);
        let mut shop = shop.map_err(at("baseline"))?;
        while let Some(ask) = trial.ask() {
            let told = match ask {
                Ask::Compile(order) => shop.build(session, &order).map(Told::Compiled),
                Ask::Run(case) => observe::run(session, &case).map(Told::Ran),
            };
            let told = told.map_err(at("baseline"))?;
            trial.tell(&told).map_err(at("baseline"))?;
        }
        Ok(())
    }
}
