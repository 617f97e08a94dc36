//! Whose a session is, by the ledger: a lease per session, told apart by its fencing token. The token
//! is on the session's record and on its container. Whoever ends a session holds its newest lease.

use crate::interrupt;
use crate::record::Owner;
use crate::{LimitEvents, Session, SessionCode, SessionError};
use flightproof_evidence::{Attestation, Closed};
use flightproof_frame::protocol::{Reply, Request};
use flightproof_ledger::{
    Lease, Ledger, LedgerCode, LedgerError, Name, SessionEvent, SessionState,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How long after a session's lifetime its owner may take to remove it, seconds.
const CLOSING: u64 = 300;
/// How long a reaper may take to remove one session, seconds.
const REAPING: u64 = 120;
/// Prefix of the names of sessions in the ledger.
const SESSION: &str = "session/";

/// Who may end an abandoned session: asked before it is touched, told when it is gone or cannot be
/// removed.
pub trait Claims {
    /// Whether the session may be ended here. `fence` is the token of its dead owner.
    ///
    /// # Errors
    /// `HOST_IO` if the ledger does not say.
    fn claim(&mut self, session: &str, fence: u64) -> Result<bool, SessionError>;

    /// Nothing of the session is left.
    ///
    /// # Errors
    /// `HOST_IO` if the ledger cannot be written.
    fn gone(&mut self, session: &str) -> Result<(), SessionError>;

    /// Something of the session could not be removed: the next one may try at once. A lease that cannot
    /// be given back ends with this process.
    fn give_back(&mut self, session: &str);
}

/// Sessions without a ledger: whoever finds one abandoned may end it.
#[derive(Debug, Clone, Copy)]
pub struct Unleased;

impl Claims for Unleased {
    fn claim(&mut self, _session: &str, _fence: u64) -> Result<bool, SessionError> {
        Ok(true)
    }

    fn gone(&mut self, _session: &str) -> Result<(), SessionError> {
        Ok(())
    }

    fn give_back(&mut self, _session: &str) {}
}

/// The leases of sessions in one ledger.
#[derive(Debug, Clone)]
pub struct Leases {
    ledger: PathBuf,
}

impl Leases {
    /// Leases in the ledger of this directory.
    pub fn of(ledger: &Path) -> Self {
        Self {
            ledger: ledger.to_owned(),
        }
    }

    /// The lease for a session that is about to be opened.
    ///
    /// # Errors
    /// The ledger's; `SESSION_STATE` if there ever was a session of this id.
    pub fn take(&self, session: &str, lifetime_ms: u64) -> Result<Lease, LedgerError> {
        let name = name(session)?;
        let owner = this_owner()?;
        let (now, seconds) = (now(), lifetime_ms.div_ceil(1000) + CLOSING);
        self.open()?.write(|w| {
            let lease = w.lease(&name, &owner, now, seconds)?;
            w.session_event(&name, SessionEvent::Create, now)?;
            Ok(lease)
        })
    }

    /// A session that was opened, or not, under a lease. One that was not is written down as gone.
    ///
    /// # Errors
    /// What kept it from opening, and the ledger's.
    pub fn hold<S: Session + 'static>(
        &self,
        lease: Lease,
        opened: Result<S, SessionError>,
    ) -> Result<Leased, SessionError> {
        match interrupt::instead(opened) {
            Ok(session) => {
                let leased = Leased {
                    session: Box::new(session),
                    lease,
                    leases: self.clone(),
                    closed: None,
                };
                leased.mark(&[SessionEvent::Run])?;
                Ok(leased)
            }
            // What a failed opening could not remove keeps its record, and a reaper finds that.
            Err(error) if error.code == SessionCode::Leak => {
                let uncertain = [SessionEvent::Close, SessionEvent::DeletionUncertain];
                let _ = self.mark(&lease, &uncertain);
                Err(error)
            }
            Err(error) => {
                self.end(&lease).map_err(of_ledger)?;
                Err(error)
            }
        }
    }

    /// Settles what the ledger says is open although nothing of it is registered (`registered` tells)
    /// and its owner is dead: it was killed before there was anything, or after everything was gone.
    /// Another process may do the same at the same time; how many were settled by this one.
    ///
    /// # Errors
    /// The ledger's.
    pub fn settle(&self, registered: impl Fn(&str) -> bool) -> Result<u64, LedgerError> {
        let mut ledger = self.open()?;
        let mut settled = 0;
        for (name, _) in ledger.sessions_left()? {
            let Some(id) = name.as_str().strip_prefix(SESSION) else {
                continue;
            };
            let holder = ledger.read(|r| r.lease_holder(&name))?;
            // Looked at after the owner: one that is dead registers nothing any more.
            let dead = match &holder {
                Some((owner, _)) => is_dead(owner)?,
                None => true,
            };
            if !dead || registered(id) {
                continue;
            }
            if let Some(lease) = seize(&mut ledger, &name)?
                && unless_taken(finish(&mut ledger, &lease))? == Some(true)
            {
                settled += 1;
            }
        }
        Ok(settled)
    }

    /// What the ledger has open for this process: leases it holds, and sessions that run under one, or
    /// under nobody's.
    ///
    /// # Errors
    /// The ledger's.
    pub fn own(&self) -> Result<Vec<String>, LedgerError> {
        let (ledger, owner) = (self.open()?, this_owner()?);
        let leases = ledger.read(|r| r.leases_of(&owner))?;
        let mut own: Vec<String> = leases.iter().map(|name| format!("lease {name}")).collect();
        for (name, _) in ledger.sessions_left()? {
            let holder = ledger.read(|r| r.lease_holder(&name))?;
            if holder.is_none_or(|(holder, _)| holder == owner) {
                own.push(name.to_string());
            }
        }
        Ok(own)
    }

    fn open(&self) -> Result<Ledger, LedgerError> {
        Ledger::open(&self.ledger)
    }

    /// Steps in the life of a session, all under its lease.
    fn mark(&self, lease: &Lease, events: &[SessionEvent]) -> Result<(), LedgerError> {
        self.open()?.write(|w| {
            w.check_lease(lease)?;
            for event in events {
                w.session_event(&lease.name, *event, now())?;
            }
            Ok(())
        })
    }

    fn end(&self, lease: &Lease) -> Result<(), LedgerError> {
        finish(&mut self.open()?, lease).map(drop)
    }
}

/// A reaper: it holds the lease of what it removes. A dead owner's token is given back in its name;
/// who comes second finds a newer one.
#[derive(Debug)]
pub struct Reaper {
    leases: Leases,
    held: BTreeMap<String, Lease>,
}

impl Reaper {
    /// A reaper of the sessions of one ledger.
    pub fn new(leases: Leases) -> Self {
        Self {
            leases,
            held: BTreeMap::new(),
        }
    }

    fn take_over(&self, session: &str, fence: u64) -> Result<Option<Lease>, LedgerError> {
        let (name, mut ledger) = (name(session)?, self.leases.open()?);
        let dead = Lease {
            name: name.clone(),
            token: fence,
        };
        // Or somebody began to reap it and was killed, or does so now.
        unless_taken(ledger.release_lease(&dead))?;
        seize(&mut ledger, &name)
    }
}

impl Claims for Reaper {
    fn claim(&mut self, session: &str, fence: u64) -> Result<bool, SessionError> {
        if fence == 0 {
            return Ok(true);
        }
        let lease = self.take_over(session, fence).map_err(of_ledger)?;
        let ours = lease.is_some();
        self.held
            .extend(lease.map(|lease| (session.to_owned(), lease)));
        Ok(ours)
    }

    fn gone(&mut self, session: &str) -> Result<(), SessionError> {
        match self.held.remove(session) {
            // Who took it over since then finds nothing, and says so.
            Some(lease) => unless_taken(self.leases.end(&lease))
                .map(drop)
                .map_err(of_ledger),
            None => Ok(()),
        }
    }

    fn give_back(&mut self, session: &str) {
        if let Some(lease) = self.held.remove(session) {
            let ledger = self.leases.open();
            let _ = ledger.and_then(|mut ledger| ledger.release_lease(&lease));
        }
    }
}

/// A session under its lease.
pub struct Leased {
    session: Box<dyn Session>,
    lease: Lease,
    leases: Leases,
    closed: Option<Closed>,
}

impl std::fmt::Debug for Leased {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Leased({}, {})", self.lease.name, self.lease.token)
    }
}

impl Leased {
    fn mark(&self, events: &[SessionEvent]) -> Result<(), SessionError> {
        self.leases.mark(&self.lease, events).map_err(of_ledger)
    }
}

impl Session for Leased {
    fn attestation(&self) -> &Attestation {
        self.session.attestation()
    }

    fn call(&mut self, request: &Request, payload: &[u8]) -> Result<Reply, SessionError> {
        interrupt::check()?;
        interrupt::instead(self.session.call(request, payload))
    }

    fn events(&mut self) -> Result<LimitEvents, SessionError> {
        interrupt::instead(self.session.events())
    }

    fn listen(&self, port: u16) -> Result<std::net::TcpListener, SessionError> {
        interrupt::instead(self.session.listen(port))
    }

    fn close(&mut self) -> Result<Closed, SessionError> {
        if let Some(closed) = &self.closed {
            return Ok(closed.clone());
        }
        // A session that somebody else took over is not ours to end, and its end proves nothing here.
        self.mark(&[SessionEvent::Close])?;
        let closed = self.session.close().inspect_err(|_| {
            // Kept as uncertain where it can be written; a reaper looks at it either way.
            let _ = self.mark(&[SessionEvent::DeletionUncertain]);
        })?;
        self.mark(&[SessionEvent::ConfirmDeletion])?;
        self.leases
            .open()
            .and_then(|mut ledger| ledger.release_lease(&self.lease))
            .map_err(of_ledger)?;
        self.closed = Some(closed.clone());
        Ok(closed)
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        // What cannot be closed now is found again by its record and its row.
        let _ = self.close();
    }
}

/// Writes down that nothing is left, and gives the lease back. Whether it was not known before.
fn finish(ledger: &mut Ledger, lease: &Lease) -> Result<bool, LedgerError> {
    let news = ledger.write(|w| {
        w.check_lease(lease)?;
        let state = w.session(&lease.name)?;
        let news = !matches!(state, SessionState::Absent | SessionState::Deleted);
        if news {
            w.session_event(&lease.name, SessionEvent::Close, now())?;
            w.session_event(&lease.name, SessionEvent::ConfirmDeletion, now())?;
        }
        Ok(news)
    })?;
    ledger.release_lease(lease)?;
    Ok(news)
}

/// The lease of what somebody dead has left; nothing where another process has it.
fn seize(ledger: &mut Ledger, name: &Name) -> Result<Option<Lease>, LedgerError> {
    if let Some((owner, lease)) = ledger.read(|r| r.lease_holder(name))?
        && is_dead(&owner)?
    {
        unless_taken(ledger.release_lease(&lease))?;
    }
    unless_taken(ledger.lease(name, &this_owner()?, now(), REAPING))
}

/// Nothing where another process was quicker: what the lease is for is its now.
fn unless_taken<T>(answer: Result<T, LedgerError>) -> Result<Option<T>, LedgerError> {
    match answer {
        Err(e) if matches!(e.code, LedgerCode::LeaseLost | LedgerCode::LeaseHeld) => Ok(None),
        answer => answer.map(Some),
    }
}

fn name(session: &str) -> Result<Name, LedgerError> {
    format!("{SESSION}{session}").parse()
}

/// This process: another one never has the same number and time.
fn this_owner() -> Result<Name, LedgerError> {
    let owner = Owner::this_process().map_err(|e| LedgerCode::LedgerUnreadable.refuse(e))?;
    owner_name(&owner).parse()
}

fn owner_name(owner: &Owner) -> String {
    let namespace: String = owner
        .namespace
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    format!(
        "process:{}:{}:{namespace}:{}",
        owner.pid, owner.started, owner.boot
    )
}

/// Whether a name is that of a process that is certainly gone.
fn is_dead(name: &Name) -> Result<bool, LedgerError> {
    let mut words = name.as_str().split(':').skip(1);
    let mut word = || words.next().unwrap_or_default();
    let (pid, started, namespace, boot) = (word(), word(), word(), word());
    let (Ok(pid), Ok(started)) = (pid.parse(), started.parse()) else {
        return Ok(false);
    };
    let owner = Owner {
        pid,
        started,
        boot: boot.to_owned(),
        namespace: format!("pid:[{namespace}]"),
    };
    owner
        .is_dead()
        .map_err(|e| LedgerCode::LedgerUnreadable.refuse(e))
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn of_ledger(error: LedgerError) -> SessionError {
    let code = match error.code {
        LedgerCode::LeaseLost | LedgerCode::LeaseHeld => SessionCode::LeaseLost,
        _ => SessionCode::HostIo,
    };
    code.refuse(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeSession;
    use crate::fake::tests::recording;

    const ID: &str = "00112233445566778899aabbccddeeff";

    fn leases() -> (tempfile::TempDir, Leases) {
        let dir = tempfile::tempdir().unwrap();
        let leases = Leases::of(&dir.path().join("ledger"));
        (dir, leases)
    }

    fn state(leases: &Leases) -> SessionState {
        leases.open().unwrap().session(&name(ID).unwrap()).unwrap()
    }

    fn leased(leases: &Leases) -> Leased {
        let lease = leases.take(ID, 1000).unwrap();
        let session = FakeSession::new(recording(vec![]));
        leases.hold(lease, Ok(session)).unwrap()
    }

    /// The lease passes to a process that is dead.
    fn die(leases: &Leases, lease: &Lease) -> Lease {
        let mut dead = Owner::this_process().unwrap();
        dead.started += 1;
        let dead = owner_name(&dead).parse().unwrap();
        let mut ledger = leases.open().unwrap();
        ledger.release_lease(lease).unwrap();
        ledger.lease(&lease.name, &dead, now(), 1000).unwrap()
    }

    #[test]
    fn a_session_runs_under_its_lease_and_its_end_is_confirmed() {
        let (_dir, leases) = leases();
        let mut session = leased(&leases);
        assert_eq!(state(&leases), SessionState::Running);
        assert!(session.close().unwrap().is_clean());
        assert_eq!(state(&leases), SessionState::Deleted);
        assert!(session.close().unwrap().is_clean());
        // An id is used once.
        assert_eq!(
            leases.take(ID, 1000).unwrap_err().code,
            LedgerCode::SessionState
        );
    }

    #[test]
    fn who_lost_the_lease_proves_nothing_any_more() {
        let (_dir, leases) = leases();
        let mut session = leased(&leases);
        let token = session.lease.token;
        let mut reaper = Reaper::new(leases.clone());
        assert!(reaper.claim(ID, token).unwrap());
        let refused = session.close().unwrap_err();
        assert_eq!(refused.code, SessionCode::LeaseLost, "{refused}");
        assert_eq!(state(&leases), SessionState::Running);
    }

    #[test]
    fn of_two_reapers_one_gets_the_session() {
        let (_dir, leases) = leases();
        let token = leases.take(ID, 1000).unwrap().token;
        let mut first = Reaper::new(leases.clone());
        let mut second = Reaper::new(leases.clone());
        assert!(first.claim(ID, token).unwrap());
        assert!(!second.claim(ID, token).unwrap());
        first.gone(ID).unwrap();
        assert_eq!(state(&leases), SessionState::Deleted);
    }

    #[test]
    fn what_a_dead_owner_registered_nowhere_is_settled_and_what_a_living_one_has_is_not() {
        let (_dir, leases) = leases();
        let lease = leases.take(ID, 1000).unwrap();
        assert_eq!(leases.settle(|_| false).unwrap(), 0);
        die(&leases, &lease);
        assert_eq!(leases.settle(|_| true).unwrap(), 0);
        assert_eq!(leases.settle(|_| false).unwrap(), 1);
        assert_eq!(leases.settle(|_| false).unwrap(), 0);
        assert_eq!(state(&leases), SessionState::Deleted);
    }

    #[test]
    fn what_a_reaper_could_not_remove_or_died_over_is_the_next_ones() {
        let (_dir, leases) = leases();
        let token = leases.take(ID, 1000).unwrap().token;
        let mut first = Reaper::new(leases.clone());
        assert!(first.claim(ID, token).unwrap());
        first.give_back(ID);
        assert_eq!(state(&leases), SessionState::Created);
        let mut second = Reaper::new(leases.clone());
        assert!(second.claim(ID, token).unwrap());
        die(&leases, &second.held[ID]);
        let mut third = Reaper::new(leases.clone());
        assert!(third.claim(ID, token).unwrap());
        // Who comes back from the dead ends nothing that is another's.
        second.gone(ID).unwrap();
        assert_eq!(state(&leases), SessionState::Created);
        third.gone(ID).unwrap();
        assert_eq!(state(&leases), SessionState::Deleted);
    }

    #[test]
    fn of_two_that_settle_at_once_one_does_and_neither_fails() {
        let (_dir, leases) = leases();
        die(&leases, &leases.take(ID, 1000).unwrap());
        let other = leases.clone();
        // Between the look at the dead owner and the lease the other one is through.
        let slower = leases.settle(|_| {
            assert_eq!(other.settle(|_| false).unwrap(), 1);
            false
        });
        assert_eq!(slower.unwrap(), 0);
        assert_eq!(state(&leases), SessionState::Deleted);
    }

    #[test]
    fn what_a_reaper_takes_while_it_is_settled_is_left_to_the_reaper() {
        let (_dir, leases) = leases();
        let dead = die(&leases, &leases.take(ID, 1000).unwrap());
        let mut reaper = Reaper::new(leases.clone());
        let claimed = std::cell::RefCell::new(&mut reaper);
        let settled = leases.settle(|_| {
            assert!(claimed.borrow_mut().claim(ID, dead.token).unwrap());
            false
        });
        assert_eq!(settled.unwrap(), 0);
        assert_eq!(state(&leases), SessionState::Created);
        reaper.gone(ID).unwrap();
        assert_eq!(state(&leases), SessionState::Deleted);
    }

    #[test]
    fn many_that_settle_at_once_settle_each_session_once() {
        const SESSIONS: u64 = 10;
        let (_dir, leases) = leases();
        for n in 0..SESSIONS {
            die(&leases, &leases.take(&format!("{n:032x}"), 1000).unwrap());
        }
        let settled: u64 = std::thread::scope(|scope| {
            let settling: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| leases.settle(|_| false).unwrap()))
                .collect();
            settling.into_iter().map(|s| s.join().unwrap()).sum()
        });
        assert_eq!(settled, SESSIONS);
        assert_eq!(leases.open().unwrap().sessions_left().unwrap(), []);
    }

    #[test]
    fn a_session_that_did_not_open_is_gone() {
        let (_dir, leases) = leases();
        let lease = leases.take(ID, 1000).unwrap();
        let failed: Result<FakeSession, _> = Err(SessionCode::Shortfall.refuse("weak"));
        leases.hold(lease, failed).unwrap_err();
        assert_eq!(state(&leases), SessionState::Deleted);
    }

    #[test]
    fn a_session_that_did_not_open_and_is_left_is_uncertain_until_somebody_looked() {
        let (_dir, leases) = leases();
        let lease = leases.take(ID, 1000).unwrap();
        let left: Result<FakeSession, _> = Err(SessionCode::Leak.refuse("it stays"));
        let told = leases.hold(lease.clone(), left).unwrap_err();
        assert_eq!(told.code, SessionCode::Leak);
        assert_eq!(state(&leases), SessionState::Uncertain);
        assert_eq!(leases.own().unwrap().len(), 2, "lease and session");
        let mut reaper = Reaper::new(leases.clone());
        assert!(reaper.claim(ID, lease.token).unwrap());
        reaper.gone(ID).unwrap();
        assert_eq!(state(&leases), SessionState::Deleted);
    }
}
