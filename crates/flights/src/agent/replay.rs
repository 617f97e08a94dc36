//! A recorded flight of an agent, flown again: program, session and repository answer from the recording;
//! limits, accounting, capture rules, judgement and the loop are the program's own.

use super::plan::AgentSource;
use super::{AgentPlan, Asked, Report, Sortie};
use crate::flight::{read, read_witness};
use crate::plan::TreesSource;
use crate::show::Progress;
use crate::transcript::{Player, Tape};
use crate::{FlightsCode, source};
use flightproof_core::{Digest, Refusal, canonical_json};
use serde_json::json;
use std::path::Path;

/// The name of the recording of an agent's plan.
pub fn recorded_as(plan: &str) -> String {
    format!("agent-{plan}")
}

/// What a recording is bound to: the plan and every file it names.
///
/// # Errors
/// Those of reading the files.
pub fn binding(file: &Path, plan: &AgentPlan, root: &Path) -> Result<Digest, Refusal> {
    let of = |path: &Path| read(path, FlightsCode::FileUnreadable).map(|bytes| Digest::of(&bytes));
    let witness = read_witness(&root.join(&plan.witness.file))?;
    let tree = match &plan.source {
        AgentSource::Git { .. } => None,
        AgentSource::Tree { baseline } => {
            let (baseline, candidate) = (baseline.clone(), baseline.clone());
            let trees = TreesSource {
                baseline,
                candidate,
            };
            Some(source::digest(&trees, root)?)
        }
    };
    let lock = plan.change.lock.as_ref();
    let document = json!({
        "plan": of(file)?, "task": Digest::of(plan.agent.task.as_bytes()),
        "witness": Digest::of(&witness.bytes), "driver": witness.driver.as_deref().map(Digest::of),
        "policy": of(&root.join(&plan.policy.file))?, "program": plan.program.sha256,
        "lock": lock.map(|lock| of(&root.join(lock))).transpose()?, "tree": tree,
    });
    canonical_json(&document)
        .map(|bytes| Digest::of(&bytes))
        .map_err(|e| FlightsCode::PlanInvalid.refuse(e).into())
}

/// Flies a plan from its recording. Nothing is signed, and no money is held.
///
/// # Errors
/// Those of the plan, `TRANSCRIPT_DIVERGED`, and `PREDICATE_DIFFERS` if it comes to something else.
pub fn replay(
    file: &Path,
    plan: &AgentPlan,
    root: &Path,
    player: Player,
    progress: &mut Progress,
) -> Result<Report, Refusal> {
    let name = recorded_as(&plan.name);
    if player.plan() != binding(file, plan, root)? || player.flight() != name {
        return Err(FlightsCode::TranscriptDiverged
            .refuse(format!(
                "{name}: recorded with another plan, or another file that it names"
            ))
            .into());
    }
    let (recorded, word) = (player.predicate(), player.verdict().to_owned());
    let asked = Asked {
        plan,
        root,
        attempts: None,
        admit: None,
        key_for: &[],
        key: None,
        out: Path::new(""),
    };
    let sortie = Sortie::prepare(asked, None, Tape::replay(player))?;
    let (report, reached) = sortie.fly(progress);
    let came_to = report.verdict.code.as_deref().unwrap_or("held");
    if came_to != word || reached != recorded {
        let detail = &report.verdict.detail;
        return Err(FlightsCode::PredicateDiffers
            .refuse(format!(
                "{name}: recorded {word}, reached {came_to}: {detail}"
            ))
            .into());
    }
    Ok(report)
}
