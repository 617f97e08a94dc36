//! What stands because of this process, so that a flight is seen to leave nothing: no session, lease,
//! record or working directory, no process, nothing on the engine. Other processes may fly with the
//! same state directory, so only what is this one's counts.

use crate::FlightsCode;
use flightproof_core::{Refusal, escape};
use flightproof_session::docker::Inventory;
use flightproof_session::lease::Leases;
use flightproof_session::record;
use std::collections::BTreeSet;
use std::path::Path;

/// Most things that are named in one refusal.
const MAX_NAMED: usize = 8;

/// What stands at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    engine: Inventory,
    here: BTreeSet<String>,
}

impl Standing {
    /// What stands now, with what is on the engine.
    ///
    /// # Errors
    /// The ledger's and the session's; `STATE_UNAVAILABLE` if `/proc` does not say.
    pub(super) fn take(state: &Path, engine: Inventory) -> Result<Self, Refusal> {
        let mut here = BTreeSet::from_iter(left_here(state)?);
        here.extend(children().map_err(|e| {
            Refusal::from(FlightsCode::StateUnavailable.refuse(format!("/proc: {e}")))
        })?);
        Ok(Self { engine, here })
    }

    /// Refuses if anything stands now that did not `before`.
    ///
    /// # Errors
    /// `FLIGHT_LEAKED`, naming what was left, or the engine's `LEAK`.
    pub fn nothing_new_since(&self, before: &Self) -> Result<(), Refusal> {
        let new: Vec<&str> = self
            .here
            .difference(&before.here)
            .map(String::as_str)
            .collect();
        if !new.is_empty() {
            let named = new.get(..MAX_NAMED).unwrap_or(&new).join(", ");
            let told = format!("{} left: {named}", new.len());
            return Err(FlightsCode::FlightLeaked.refuse(told).into());
        }
        Ok(self.engine.nothing_new_since(&before.engine)?)
    }
}

/// What is written down as this process's: leases, sessions, and working directories.
///
/// # Errors
/// The ledger's and the session's.
pub(crate) fn left_here(state: &Path) -> Result<Vec<String>, Refusal> {
    let mut left = Leases::of(&state.join("ledger")).own()?;
    let records = record::own(state)?;
    left.extend(records.iter().map(|path| shown("record ", path)));
    Ok(left)
}

fn shown(what: &str, path: &Path) -> String {
    format!("{what}{}", escape(path.as_os_str().as_encoded_bytes(), 200))
}

/// The processes that this one started and that have not ended, by number and name.
fn children() -> std::io::Result<Vec<String>> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(pid) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        // One that is gone by now was not left.
        let Ok(stat) = std::fs::read(path.join("stat")) else {
            continue;
        };
        found.extend(
            child_of(&own, &String::from_utf8_lossy(&stat))
                .map(|name| format!("process {} ({})", escape(pid, 20), escape(name, 40))),
        );
    }
    Ok(found)
}

/// The name in a `stat` line, if the process is alive and a child of `parent`. The name may hold
/// anything, so the other fields are counted after its last parenthesis.
fn child_of<'a>(parent: &str, stat: &'a str) -> Option<&'a str> {
    let (head, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X");
    (alive && fields.next()? == parent).then_some(head.split_once('(')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::WorkDirectory;
    use flightproof_session::SessionCode;
    use flightproof_session::fake::FakeSession;
    use std::process::Command;

    fn take(state: &Path) -> Standing {
        Standing::take(state, Inventory::default()).unwrap()
    }

    /// What is said to be left after `begin`, and that nothing is after `end`, its twin.
    fn left_by<T>(begin: impl FnOnce(&Path) -> T, end: impl FnOnce(T)) -> String {
        let state = tempfile::tempdir().unwrap();
        let before = take(state.path());
        let begun = begin(state.path());
        let refusal = take(state.path()).nothing_new_since(&before).unwrap_err();
        end(begun);
        assert_eq!(take(state.path()).nothing_new_since(&before), Ok(()));
        assert_eq!(refusal.code(), "flights/FLIGHT_LEAKED");
        assert!(refusal.explanation.todo.contains("flights reap"));
        refusal.detail
    }

    #[test]
    fn a_flight_that_leaves_a_session_is_found_out_by_session_and_lease() {
        const ID: &str = "00112233445566778899aabbccddeeff";
        let begin = |state: &Path| {
            let leases = Leases::of(&state.join("ledger"));
            let lease = leases.take(ID, 60_000).unwrap();
            (leases, lease)
        };
        let told = left_by(begin, |(leases, lease)| {
            let ended = SessionCode::HostIo.refuse("it came to nothing");
            leases.hold::<FakeSession>(lease, Err(ended)).unwrap_err();
        });
        assert_eq!(told, format!("2 left: lease session/{ID}, session/{ID}"));
    }

    #[test]
    fn a_flight_that_leaves_a_directory_or_a_process_is_found_out() {
        let told = left_by(|state| WorkDirectory::new(state).unwrap(), drop);
        assert!(told.starts_with("1 left: record /"), "{told}");
        let begin = |_: &Path| Command::new("sleep").arg("60").spawn().unwrap();
        let told = left_by(begin, |mut sleeping| {
            sleeping.kill().unwrap();
            sleeping.wait().unwrap();
        });
        assert!(told.starts_with("1 left: process "), "{told}");
        assert!(told.ends_with(" (sleep)"), "{told}");
    }

    #[test]
    fn what_others_have_begun_is_not_counted() {
        let stat = |rest: &str| child_of("7", &format!("9 (a) S 1) ({rest}")).is_some();
        assert!(child_of("7", "9 (a) S 1) (b) S 7 1").is_some());
        for others in ["b) Z 7 1", "b) S 8 1", "b) S", "b"] {
            assert!(!stat(others), "{others}");
        }
    }
}
