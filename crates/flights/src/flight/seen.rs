//! What was seen of a flight on its way, for reports. Nothing here decides anything.

use flightproof_certifier::certificate::Statement;
use flightproof_certifier::certification::Account;
use flightproof_certifier::feedback::Missed;
use flightproof_evidence::{Attestation, Change};

/// What was seen, as far as the flight came.
#[derive(Debug, Default)]
pub struct Seen {
    /// What the commit changes.
    pub changes: Vec<Change>,
    /// The session, read back.
    pub attestation: Option<Attestation>,
    /// What mutation made of the change.
    pub account: Option<Account>,
    /// The case that ended it.
    pub missed: Option<Missed>,
    /// What would be certified.
    pub statement: Option<Box<Statement>>,
}
