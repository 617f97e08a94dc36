//! The ledger's holds, as a run uses them.

use crate::{Amount, HoldError, Holds, RunKey};
use flightproof_core::{Code, Digest, Fault, MicroUsd};
use flightproof_ledger::{HoldSize, HoldState, Ledger, LedgerCode, LedgerError, Name, Reserve};

/// Holds in the ledger. After [`HoldError::Uncertain`] the ledger is to be opened anew.
pub struct LedgerHolds<'a> {
    /// The ledger.
    pub ledger: &'a mut Ledger,
    /// The repair loop this run belongs to, and a cap for all of its attempts together.
    pub parent: Option<(Name, MicroUsd)>,
    /// Unix seconds: a recorded input of the flight, not read here.
    pub now: u64,
}

impl Holds for LedgerHolds<'_> {
    fn reserve(&mut self, run: &RunKey, request: Digest, amount: Amount) -> Result<(), HoldError> {
        let request = Reserve {
            run: name(run)?,
            request,
            size: HoldSize {
                limit: amount.budget,
                held: amount.held,
            },
            parent: self.parent.clone(),
        };
        done(self.ledger.reserve(&request, self.now))
    }

    fn begin(&mut self, run: &RunKey) -> Result<(), HoldError> {
        done(self.ledger.start_run(&name(run)?, self.now))
    }

    fn settle(
        &mut self,
        run: &RunKey,
        actual: MicroUsd,
        result: Option<Digest>,
    ) -> Result<(), HoldError> {
        let run = name(run)?;
        // A run that was never begun has spent nothing, and the ledger calls that released.
        if actual == MicroUsd::ZERO && self.never_begun(&run)? {
            return done(self.ledger.release_run(&run, self.now));
        }
        let result = result.unwrap_or_else(|| Digest::of(b""));
        done(self.ledger.settle_run(&run, actual, result, self.now))
    }

    fn release(&mut self, run: &RunKey) -> Result<(), HoldError> {
        match self.ledger.release_run(&name(run)?, self.now) {
            Err(e) if e.code == LedgerCode::HoldUnknown => Ok(()),
            other => done(other),
        }
    }

    fn keep(&mut self, run: &RunKey) -> Result<(), HoldError> {
        // A run the ledger never saw begin has started nothing, whatever the run's own state says.
        done(self.ledger.recover_run(&name(run)?, self.now))
    }
}

impl LedgerHolds<'_> {
    fn never_begun(&self, run: &Name) -> Result<bool, HoldError> {
        let hold = self.ledger.hold(run).map_err(refused)?;
        let state = hold.map(|hold| hold.state);
        Ok(matches!(
            state,
            Some(HoldState::Reserved | HoldState::Released)
        ))
    }
}

fn name(run: &RunKey) -> Result<Name, HoldError> {
    run.as_str().parse().map_err(refused)
}

fn done<T>(answer: Result<T, LedgerError>) -> Result<(), HoldError> {
    answer.map(drop).map_err(refused)
}

/// What a refusal of the ledger means for the hold. Only what the ledger has decided is a no; all
/// else may have been written.
fn refused(error: LedgerError) -> HoldError {
    let text = error.to_string();
    match (error.code, error.code.explanation().fault) {
        (LedgerCode::SpendConflict | LedgerCode::HoldDiffers, _) => HoldError::Conflict(text),
        (_, Fault::Policy | Fault::Usage | Fault::Configuration) => HoldError::Refused(text),
        _ => HoldError::Uncertain(text),
    }
}
