//! Files that the operator's rules make again, each rule in a session of its own.

use super::{Ended, Flight, at, both, tree};
use flightproof_archive::paws;
use flightproof_certifier::certification::derived;
use flightproof_certifier::generated::{GeneratedRule, Regenerated, Regeneration};
use flightproof_core::Refusal;
use flightproof_evidence::{Captured, Generated};
use flightproof_session::{Session, generate};

/// The stage's name.
const STAGE: &str = "regenerate";

impl Flight<'_> {
    /// Runs every rule that makes something of the change.
    pub(super) fn regenerate(
        &mut self,
        captured: &Captured,
        whole: &paws::Unpacked<'_>,
        entropy: &[u8; 32],
    ) -> Result<Regenerated, Ended> {
        let rules = &self.order.generated;
        let tree = tree(whole);
        let mut found = Regeneration::new(rules, captured, &tree).map_err(at(STAGE))?;
        for rule in found.rules() {
            let seed = derived(entropy, &format!("generator {}", rule.name));
            let mut session = self.open(&seed)?;
            self.progress.begin(STAGE);
            let ran = run_twice(session.as_mut(), whole, rule);
            let judged = ran
                .and_then(|runs| found.judge(rule, &runs))
                .map_err(at(STAGE));
            self.progress.done(match &judged {
                Ok(()) => format!("{}: every byte is equal", rule.name),
                Err(_) => "ended".to_owned(),
            });
            let closed = self.close(session.as_mut());
            both(judged, closed)?;
        }
        // The session that is shown is the one that judges.
        self.progress.seen.attestation = None;
        Ok(found.finish())
    }
}

fn run_twice(
    session: &mut dyn Session,
    whole: &paws::Unpacked<'_>,
    rule: &GeneratedRule,
) -> Result<[Generated; 2], Refusal> {
    let seen = whole.files().filter(|(entry, _)| rule.sees(&entry.path));
    let files = seen.map(|(entry, bytes)| (entry.path.clone(), entry.executable, bytes));
    generate::furnish(session, files)?;
    let order = rule.order();
    Ok([
        generate::run(session, &order)?,
        generate::run(session, &order)?,
    ])
}
