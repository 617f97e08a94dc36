//! A session whose every exchange is written down.

use super::Recorder;
use flightproof_core::{Refusal, Refused};
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::protocol::{Reply, Request};
use flightproof_session::{LimitEvents, Session, SessionCode, SessionError};
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;

/// Hands everything on to a real session and notes what was asked and answered.
pub(super) struct Recorded {
    session: Box<dyn Session>,
    recorder: Rc<RefCell<Recorder>>,
}

impl Recorded {
    pub(super) fn new(session: Box<dyn Session>, recorder: Rc<RefCell<Recorder>>) -> Self {
        Self { session, recorder }
    }

    fn note<I: Serialize, O: Serialize>(
        &mut self,
        op: &str,
        input: &I,
        act: impl FnOnce(&mut dyn Session) -> Result<O, SessionError>,
    ) -> Result<O, SessionError> {
        let invoked = self
            .recorder
            .borrow_mut()
            .invoke(op, input)
            .map_err(unrecorded)?;
        let outcome = act(self.session.as_mut());
        let mut recorder = self.recorder.borrow_mut();
        match &outcome {
            Ok(value) => recorder.ok(invoked, value),
            Err(refused) => recorder.fail(invoked, &Refusal::from(refused.clone())),
        }
        .map_err(unrecorded)?;
        outcome
    }
}

/// What cannot be recorded fails the flight.
fn unrecorded(refusal: Refusal) -> Refused<SessionCode> {
    SessionCode::Unrecorded.refuse(refusal)
}

impl Session for Recorded {
    fn attestation(&self) -> &Attestation {
        self.session.attestation()
    }

    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        self.note("call", request, |session| session.call(request, payload))
    }

    fn events(&mut self) -> Result<LimitEvents, SessionError> {
        self.note("events", &(), |session| session.events())
    }

    fn close(&mut self) -> Result<Closed, SessionError> {
        self.note("close", &(), |session| session.close())
    }
}
