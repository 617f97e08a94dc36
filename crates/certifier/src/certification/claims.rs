//! What was found, as a certificate claims it.

use super::{Certification, Failure};
use crate::claim::{
    BaselineResult, DifferentialClaim, LinesClaim, MutationClaim, MutationMethod, SuiteClaim,
    WaiverClaim, WitnessClaim, WitnessKind,
};
use crate::witness::{BASELINE_RUNS, Waiver};
use crate::{CertifierError, LineClass};
use flightproof_core::{Digest, Hasher, RelPath};

impl Certification<'_> {
    pub(super) fn mutation_claim(&self) -> Result<MutationClaim, Failure> {
        let tally = self.judge_trial()?;
        let killed: u64 = tally.killed.values().sum();
        Ok(MutationClaim {
            operator_set: self.plan.operator_set.to_owned(),
            method: self
                .rewrites
                .as_ref()
                .map(|_| MutationMethod::BuildPerMutant),
            population: self.population_digest(),
            generated: tally.generated,
            viable: tally.generated - tally.unviable,
            unviable: tally.unviable,
            killed_by: tally
                .killed
                .iter()
                .map(|(kill, n)| (kill.name().to_owned(), *n))
                .collect(),
            survived: (tally.generated - tally.unviable) - killed - tally.waived - tally.equivalent,
            waived: self.waived(|waiver| !self.plan.is_unjudged(waiver)),
            equivalent: tally.equivalent,
            unjudged: self.waived(|waiver| self.plan.is_unjudged(waiver)),
            lines: self.lines_claim(),
        })
    }

    fn waived(&self, which: impl Fn(&Waiver) -> bool) -> Vec<WaiverClaim> {
        let waivers = self.waivers.iter().filter(|waiver| which(waiver));
        let claims = waivers.map(|w| WaiverClaim {
            mutant: w.mutant.clone(),
            source: w.source,
            reason: w.reason.clone(),
        });
        claims.collect()
    }

    fn lines_claim(&self) -> LinesClaim {
        let lines = self.lines();
        let count = |class| lines.iter().filter(|line| line.class == class).count() as u64;
        let not_compiled = lines.iter().filter(|l| l.class == LineClass::NotCompiled);
        let not_compiled: Vec<_> = not_compiled.collect();
        let used = |path: &&RelPath| not_compiled.iter().any(|line| line.file.is_within(path));
        LinesClaim {
            changed: lines.len() as u64,
            mutated: count(LineClass::Mutated),
            inert: count(LineClass::Inert),
            tests: count(LineClass::Tests),
            regenerated: count(LineClass::Regenerated),
            data: count(LineClass::Data),
            not_compiled: count(LineClass::NotCompiled),
            unjudged: count(LineClass::Unjudged),
            granted: self.uncompiled.iter().filter(used).cloned().collect(),
            generated: self.regenerated.rules.clone(),
        }
    }

    /// Every mutant's id, in order, each after its length: no list can be read as another.
    fn population_digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        for mutant in &self.plan.mutants {
            hasher.update(&(mutant.id.len() as u64).to_be_bytes());
            hasher.update(mutant.id.as_bytes());
        }
        hasher.finish()
    }

    pub(super) fn witness_claim(&self) -> Result<WitnessClaim, CertifierError> {
        Ok(WitnessClaim {
            commitment: self.witness.commitment(&self.secrets.salt)?,
            kind: match (self.witness.differential(), self.witness.tests()) {
                (Some(_), _) => WitnessKind::Differential,
                (None, Some(_)) => WitnessKind::Suite,
                (None, None) => WitnessKind::Cases,
            },
            suite: self.witness.tests().map(|plan| SuiteClaim {
                tests: plan.expected as u64,
                ignored: plan.ignored as u64,
                failing: plan.failing as u64,
                runs: BASELINE_RUNS as u64,
                quarantined: plan.quarantined.clone(),
            }),
            public: self.witness.is_public(),
            cases: self.witness.cases().len() as u64,
            differential: self.witness.differential().map(|_| {
                let (generated, declared) = self.witness.drawn();
                DifferentialClaim {
                    generated: generated as u64,
                    declared: declared as u64,
                }
            }),
            failed_on_baseline: BaselineResult::NotRun {},
            feedback: None,
        })
    }
}
