//! The suite on this machine, without an engine.

use crate::conformance::{Backend, conformance};
use crate::site::Site;
use flightproof_session::{Session, SessionError};
use std::time::Duration;

struct Local(Site);

impl Backend for Local {
    fn open(&self, lifetime: Duration) -> Result<Box<dyn Session>, SessionError> {
        let mut spec = self.0.spec();
        spec.lifetime_ms = u64::try_from(lifetime.as_millis()).unwrap();
        Ok(Box::new(self.0.open_as(&spec)?))
    }

    fn kill(&self, session: &str) {
        self.0.kill(session);
    }

    fn traces(&self, session: &str) -> Vec<String> {
        self.0.traces(session)
    }
}

conformance!(Local(Site::new()));
