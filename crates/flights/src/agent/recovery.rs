//! What drivers of agents that died have left: their runs are brought to an end, nothing is started.

use crate::FlightsCode;
use crate::flight::Host;
use crate::state;
use flightproof_agent::run::{Outcome, State};
use flightproof_agent::{LedgerHolds, LoopEnd, LoopRecord, RunFolder, RunKey};
use flightproof_core::Refusal;
use flightproof_ledger::{HoldState, Ledger, Name};
use flightproof_session::record;
use serde::Serialize;
use std::path::Path;

/// One run that was brought to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The loop it belongs to.
    #[serde(rename = "loop")]
    pub name: RunKey,
    /// The plan's name.
    pub plan: String,
    /// The run; absent if none had begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunKey>,
    /// What it came to: `captured`, or a code.
    pub outcome: String,
    /// What became of its hold.
    pub hold: String,
}

impl Recovered {
    /// One line for people.
    pub fn line(&self) -> String {
        let what = match &self.run {
            Some(run) => format!("run {run}"),
            None => "no run".to_owned(),
        };
        format!(
            "agent plan {}, {what}, left by a driver that was killed: {}, {}",
            self.plan, self.outcome, self.hold
        )
    }
}

/// The folder with the runs of agents.
///
/// # Errors
/// `STATE_UNAVAILABLE`.
pub(super) fn folder(host: &Host) -> Result<RunFolder, Refusal> {
    folder_in(host.state())
}

fn folder_in(state: &Path) -> Result<RunFolder, Refusal> {
    RunFolder::open(&state.join("agent")).map_err(unavailable)
}

pub(super) fn unavailable(why: String) -> Refusal {
    FlightsCode::StateUnavailable.refuse(why).into()
}

/// Ends every loop whose driver is dead. The host's own recovery comes first and removes the sessions of
/// dead drivers; while one stands that it could not have, what may have been started keeps its hold.
///
/// # Errors
/// `STATE_UNAVAILABLE`, the ledger's, and `HOLD_UNCERTAIN`, after which it is to be called again.
pub fn recover(host: &Host) -> Result<Vec<Recovered>, Refusal> {
    recover_in(host.state())
}

fn recover_in(state: &Path) -> Result<Vec<Recovered>, Refusal> {
    let mut folder = folder_in(state)?;
    let orphans = folder.orphans().map_err(unavailable)?;
    if orphans.is_empty() {
        return Ok(Vec::new());
    }
    let mut ledger = Ledger::open(&state.join("ledger"))?;
    let mut found = Vec::new();
    for (mut record, _lock) in orphans {
        let runs = settle(&record, state, &mut folder, &mut ledger)?;
        if runs.is_empty() {
            found.push(nothing_open(&record, &mut folder, &ledger)?);
        }
        found.extend(runs);
        record.end = Some(LoopEnd::Recovered);
        folder.store_loop(&record).map_err(unavailable)?;
    }
    Ok(found)
}

fn settle(
    record: &LoopRecord,
    host: &Path,
    folder: &mut RunFolder,
    ledger: &mut Ledger,
) -> Result<Vec<Recovered>, Refusal> {
    let mut found = Vec::new();
    for run in &record.runs {
        let state = folder.state_of(run).map_err(unavailable)?;
        let state = match state {
            None | Some(State::Planned | State::Done { .. }) => continue,
            Some(state) => state,
        };
        let mut holds = LedgerHolds {
            ledger,
            parent: None,
            now: state::unix_seconds(),
        };
        let mut close = || nothing_stands(host);
        let ended = flightproof_agent::recover(run, state, folder, &mut holds, &mut close)?;
        let name: Name = run.as_str().parse().map_err(Refusal::from)?;
        let hold = ledger.hold(&name)?.map(|hold| hold.state);
        found.push(Recovered {
            name: record.name.clone(),
            plan: record.plan.clone(),
            run: Some(run.clone()),
            outcome: String::from(ended.outcome),
            hold: stands(hold, run),
        });
    }
    Ok(found)
}

/// Which session is the run's is written down nowhere, so any that stands and is not seen to be of a
/// living owner may be it: another program is removing it, or its owner cannot be judged from here.
fn nothing_stands(state: &Path) -> Result<(), String> {
    let left = record::left(state).map_err(|e| e.to_string())?;
    match left.first() {
        None => Ok(()),
        Some(first) => Err(format!("session {} stands", first.id)),
    }
}

/// What the ledger says of a hold, which is what counts.
fn stands(hold: Option<HoldState>, run: &RunKey) -> String {
    match hold {
        None => "nothing was held".to_owned(),
        Some(HoldState::Released) => "the hold is released".to_owned(),
        Some(HoldState::Unknown) => {
            format!("the hold is kept until `flights spend resolve {run}`")
        }
        Some(state) => match state.actual() {
            Some(amount) => format!("{amount} dollars are settled"),
            None => format!("the hold is {}", state.word()),
        },
    }
}

/// A loop whose runs had all ended, or that had begun none: what its last run came to.
fn nothing_open(
    record: &LoopRecord,
    folder: &mut RunFolder,
    ledger: &Ledger,
) -> Result<Recovered, Refusal> {
    let mut found = Recovered {
        name: record.name.clone(),
        plan: record.plan.clone(),
        run: record.runs.last().cloned(),
        outcome: String::from(Outcome::Finished),
        hold: "no hold was open".to_owned(),
    };
    if let Some(run) = &found.run {
        if let Some(State::Done { ended, .. }) = folder.state_of(run).map_err(unavailable)? {
            found.outcome = String::from(ended.outcome);
        }
        let name: Name = run.as_str().parse().map_err(Refusal::from)?;
        found.hold = stands(ledger.hold(&name)?.map(|hold| hold.state), run);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::reap_here;
    use flightproof_agent::run::Ended;
    use flightproof_agent::{HoldEffect, Records as _};
    use flightproof_core::{Digest, MicroUsd};
    use flightproof_ledger::{Cap, HoldSize, Reserve, Scope};
    use flightproof_session::lease::{Claims as _, Leases, Reaper};
    use flightproof_session::record::Record;
    use std::fs;

    const SESSION: &str = "00112233445566778899aabbccddeeff";

    /// A state directory with a run that was to be settled when its driver was killed.
    fn orphaned() -> (tempfile::TempDir, RunKey) {
        let dir = tempfile::tempdir().unwrap();

        let (name, run) = (RunKey::from_entropy([1; 16]), RunKey::from_entropy([2; 16]));
        let mut ledger = Ledger::open(&dir.path().join("ledger")).unwrap();
        ledger
            .state_cap(Scope::Total, Cap::usd(MicroUsd::MAX), 1)
            .unwrap();
        let dollar = MicroUsd::from_micros(1_000_000).unwrap();
        let reserve = Reserve {
            run: run.as_str().parse().unwrap(),
            request: Digest::of(b"request"),
            size: HoldSize::for_limit(dollar, MicroUsd::ZERO, 1).unwrap(),
            parent: None,
        };
        ledger.reserve(&reserve, 1).unwrap();
        ledger.start_run(&reserve.run, 2).unwrap();
        let mut folder = folder_in(dir.path()).unwrap();
        let ended = Ended {
            outcome: Outcome::Captured,
            hold: HoldEffect::Settle(MicroUsd::from_micros(5).unwrap()),
            result: None,
        };
        folder.state(&run, &State::Closing { ended }).unwrap();
        let record = LoopRecord {
            name,
            plan: "plan".to_owned(),
            runs: vec![run.clone()],
            history: Vec::new(),
            end: None,
        };
        folder.store_loop(&record).unwrap();
        (dir, run)
    }

    /// Writes down a session on this machine, whose owner is another one in this field.
    fn stand(state: &Path, fence: u64, field: &str, value: impl Into<serde_json::Value>) {
        let group = format!("/sys/fs/cgroup/flightproof-{SESSION}").into();
        let directory = state.join(format!("flightproof-{SESSION}"));
        let mut record = Record::new(SESSION, &[group], &directory).unwrap();
        record.fence = fence;
        record.store(state).unwrap();
        let file = state.join(format!("sessions/{SESSION}.json"));
        let mut written: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        written["owner"][field] = value.into();
        fs::write(&file, written.to_string()).unwrap();
    }

    fn hold(state: &Path, run: &RunKey) -> HoldState {
        let ledger = Ledger::open(&state.join("ledger")).unwrap();
        let name = run.as_str().parse().unwrap();
        ledger.hold(&name).unwrap().unwrap().state
    }

    #[test]
    fn a_run_of_which_nothing_stands_is_settled() {
        let (dir, run) = orphaned();
        assert_eq!(reap_here(dir.path()).unwrap(), [] as [String; 0]);
        let found = recover_in(dir.path()).unwrap();
        assert_eq!(found[0].outcome, "captured");
        assert!(matches!(hold(dir.path(), &run), HoldState::Settled(_)));
    }

    #[test]
    fn while_another_reaper_has_a_session_the_hold_is_kept() {
        let (dir, run) = orphaned();
        let leases = Leases::of(&dir.path().join("ledger"));
        let fence = leases.take(SESSION, 1000).unwrap().token;
        stand(dir.path(), fence, "started", 1);
        let mut other = Reaper::new(leases);
        assert!(other.claim(SESSION, fence).unwrap());
        assert_eq!(reap_here(dir.path()).unwrap(), [] as [String; 0]);
        let found = recover_in(dir.path()).unwrap();
        assert_eq!(found[0].outcome, "agent/CLOSE_UNCERTAIN");
        assert_eq!(hold(dir.path(), &run), HoldState::Unknown);
    }

    #[test]
    fn while_an_owner_cannot_be_judged_the_hold_is_kept() {
        let (dir, run) = orphaned();
        stand(dir.path(), 0, "namespace", "pid:[1]");
        assert_eq!(reap_here(dir.path()).unwrap(), [] as [String; 0]);
        recover_in(dir.path()).unwrap();
        assert_eq!(hold(dir.path(), &run), HoldState::Unknown);
    }
}
