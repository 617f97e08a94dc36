//! What drivers of agents that died have left: their runs are brought to an end, nothing is started.

use crate::FlightsCode;
use crate::flight::Host;
use crate::state;
use flightproof_agent::run::{Outcome, State};
use flightproof_agent::{LedgerHolds, LoopEnd, LoopRecord, RunFolder, RunKey};
use flightproof_core::Refusal;
use flightproof_ledger::{HoldState, Ledger, Name};
use serde::Serialize;

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
    RunFolder::open(&host.state().join("agent")).map_err(unavailable)
}

pub(super) fn unavailable(why: String) -> Refusal {
    FlightsCode::StateUnavailable.refuse(why).into()
}

/// Ends every loop whose driver is dead. Sessions of dead drivers must be gone by now: the host's own
/// recovery comes first.
///
/// # Errors
/// `STATE_UNAVAILABLE`, the ledger's, and `HOLD_UNCERTAIN`, after which it is to be called again.
pub fn recover(host: &Host) -> Result<Vec<Recovered>, Refusal> {
    let mut folder = folder(host)?;
    let orphans = folder.orphans().map_err(unavailable)?;
    if orphans.is_empty() {
        return Ok(Vec::new());
    }
    let mut ledger = host.ledger()?;
    let mut found = Vec::new();
    for (mut record, _lock) in orphans {
        let runs = settle(&record, &mut folder, &mut ledger)?;
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
        // Its session was removed with everything else that dead owners left.
        let ended = flightproof_agent::recover(run, state, folder, &mut holds, &mut || Ok(()))?;
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
