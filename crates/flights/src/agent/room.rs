//! The session an agent works in, as its run sees it: opened with checkout, program and proxy,
//! captured, closed to the last process.

use super::freight;
use super::sealed::{self, Furniture};
use crate::flight::{Host, Order, needed};
use crate::transcript::Tape;
use flightproof_agent::proxy::{Counts, Credential, Dial, Gate, Proxy};
use flightproof_agent::run::Event;
use flightproof_agent::{
    AgentCode, AgentRefusal, Binary, Launch, Output, Patience, Profile, Program, Room, Version,
};
use flightproof_archive::paws;
use flightproof_core::{Code as _, Digest, Refusal};
use flightproof_evidence::Captured;
use flightproof_frame::protocol::{PROVIDER_PORT, layout};
use flightproof_session::local::AgentFile;
use flightproof_session::{Session, SessionCode};
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

/// A session that room and program share.
#[derive(Default)]
pub(super) struct Inside {
    session: Option<Box<dyn Session>>,
    /// What the last failure was, in full.
    trouble: Option<Refusal>,
}

/// The way to the provider of one attempt.
pub(super) struct Way {
    /// What is let through.
    pub(super) gate: Gate,
    /// How the provider is reached.
    pub(super) dial: Box<dyn Dial>,
    /// The operator's key, if there is one.
    pub(super) credential: Option<Credential>,
}

/// The room of one attempt.
pub(super) struct SealedRoom<'a> {
    inside: Rc<RefCell<Inside>>,
    host: Option<&'a Host>,
    tape: &'a mut Tape,
    order: &'a mut Order,
    furniture: &'a Furniture,
    binary: &'a Binary,
    profile: &'a Profile,
    way: Option<Way>,
    proxy: Option<Proxy>,
    counts: Option<Counts>,
    version: Option<Version>,
    captured: Option<Captured>,
}

impl<'a> SealedRoom<'a> {
    /// The room, not opened yet. The bundle of the work becomes the order's.
    pub(super) fn new(
        (host, tape): (Option<&'a Host>, &'a mut Tape),
        order: &'a mut Order,
        furniture: &'a Furniture,
        (binary, profile): (&'a Binary, &'a Profile),
        way: Option<Way>,
    ) -> Self {
        Self {
            inside: Rc::default(),
            host,
            tape,
            order,
            furniture,
            binary,
            profile,
            way,
            proxy: None,
            counts: None,
            version: None,
            captured: None,
        }
    }

    /// The program that runs in this room.
    pub(super) fn program(&self) -> SealedProgram {
        SealedProgram(Rc::clone(&self.inside))
    }

    /// What came of it: the commit, the program's version, the proxy's counts, the last trouble.
    pub(super) fn outcome(self) -> RoomOutcome {
        RoomOutcome {
            captured: self.captured,
            version: self.version,
            counts: self.counts,
            trouble: self.inside.take().trouble,
        }
    }

    /// Remembers a failure in full, and says it in the agent's own words.
    fn trouble(&self, code: AgentCode, refusal: Refusal) -> AgentRefusal {
        let said = match refusal.code() == code.explanation().code {
            true => code.refuse(&refusal.detail),
            false => code.refuse(&refusal),
        };
        self.inside.borrow_mut().trouble = Some(refusal);
        said
    }

    fn enter(&mut self) -> Result<(), Refusal> {
        let program = AgentFile {
            path: self.binary.path().to_owned(),
            sha256: self.binary.digest(),
        };
        let (seed, host) = (self.tape.entropy()?, self.host);
        let open = || needed(host)?.open_for_agent(&seed, program);
        let session = self.tape.session(&seed, open)?;
        let mut inside = self.inside.borrow_mut();
        sealed::furnish(inside.session.insert(session).as_mut(), self.furniture)
    }

    /// After the program has said its version: that question is asked offline.
    fn let_out(&mut self) -> Result<(), Refusal> {
        let inside = self.inside.borrow();
        if let (Some(way), Some(session)) = (self.way.take(), &inside.session) {
            let socket = session.listen(PROVIDER_PORT)?;
            let proxy = Proxy::listen(socket, way.gate, way.dial, way.credential);
            self.proxy = Some(proxy);
        }
        Ok(())
    }

    fn take_commit(&mut self) -> Result<Captured, Refusal> {
        let mut inside = self.inside.borrow_mut();
        let session = inside.session.as_mut().ok_or_else(no_session)?;
        let (session, commit) = (session.as_mut(), self.furniture.commit);
        let (large, before) = (&self.order.large, paws::read(&self.furniture.archive)?);
        let bundle = sealed::bundle(session, commit, large)?;
        self.order.changeset = freight::take(session, commit, large, &before)?;
        drop(inside);
        let mut asked = self.order.capture_input();
        asked["bundle"] = json!(Digest::of(&bundle));
        if let Some(changeset) = &self.order.changeset {
            asked["changeset"] = json!(Digest::of(changeset));
        }
        self.order.bundle = Some(bundle);
        let (now, host, order) = (self.tape.clock()?, self.host, &*self.order);
        let capture = || needed(host)?.capture(order, now);
        self.tape.exchange("capture", &asked, capture)
    }
}

/// What came of a room.
pub(super) struct RoomOutcome {
    pub(super) captured: Option<Captured>,
    pub(super) version: Option<Version>,
    pub(super) counts: Option<Counts>,
    pub(super) trouble: Option<Refusal>,
}

impl Room for SealedRoom<'_> {
    fn open(&mut self) -> Result<(), AgentRefusal> {
        self.enter()
            .map_err(|e| self.trouble(AgentCode::SpawnFailed, e))?;
        let mut program = self.program();
        let version = self
            .binary
            .version(&mut program, self.profile, layout::AGENT_HOME)?;
        self.version = Some(version);
        self.let_out()
            .map_err(|e| self.trouble(AgentCode::SpawnFailed, e))
    }

    fn capture(&mut self) -> Result<(), String> {
        let taken = self.take_commit();
        let captured = taken.map_err(|e| self.trouble(AgentCode::CaptureFailed, e).detail)?;
        self.captured = Some(captured);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if let Some(proxy) = self.proxy.take() {
            self.counts = Some(proxy.stop());
        }
        let mut inside = self.inside.borrow_mut();
        let Some(session) = &mut inside.session else {
            return Ok(());
        };
        let closed = session.close().and_then(|closed| match closed.is_clean() {
            true => Ok(()),
            false => Err(SessionCode::Leak.refuse(format_args!("{closed:?}"))),
        });
        closed.map_err(|e| e.to_string())
    }

    fn requests(&self) -> Option<u64> {
        let counts = self.proxy.as_ref().map(Proxy::counts).or(self.counts);
        counts.map(|counts| counts.admitted)
    }
}

/// The program of a room.
pub(super) struct SealedProgram(Rc<RefCell<Inside>>);

impl Program for SealedProgram {
    fn run(
        &mut self,
        launch: &Launch,
        patience: Patience,
        tell: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Output, AgentRefusal> {
        let mut inside = self.0.borrow_mut();
        let Some(session) = &mut inside.session else {
            return Err(AgentCode::SpawnFailed.refuse("there is no session"));
        };
        let (output, trouble) = sealed::start(session.as_mut(), launch, patience, tell);
        if trouble.is_some() {
            inside.trouble = trouble;
        }
        output
    }
}

fn no_session() -> Refusal {
    SessionCode::SessionClosed
        .refuse("there is no session to capture from")
        .into()
}
