//! A flight from its recording, and whether its end is the one that its plan expects.

use crate::flight::{self, Flown, Order};
use crate::plan::Plan;
use crate::show::Progress;
use crate::transcript::{Player, Tape};
use crate::{FlightsCode, registry};
use flightproof_core::{Decision, Digest, Fault, Refusal, Verdict};

/// Flies a plan from its recording.
///
/// # Errors
/// `TRANSCRIPT_DIVERGED`, `PREDICATE_DIFFERS`.
pub(super) fn replay(
    plan: &Plan,
    order: Order,
    digest: Digest,
    player: Player,
    progress: &mut Progress,
) -> Result<Verdict, Refusal> {
    if player.plan() != digest || player.flight() != plan.name {
        return Err(FlightsCode::TranscriptDiverged
            .refuse(format!(
                "{}: recorded with another plan, witness or lock",
                plan.name
            ))
            .into());
    }
    let (recorded, verdict) = (player.predicate(), player.verdict().to_owned());
    let mut tape = Tape::replay(player);
    let flown = flight::fly(&order, None, &mut tape, progress);
    tape.finish(flown.word(), None, None)?;
    let reached = flown.statement().map(Digest::of);
    if reached != recorded || flown.word() != verdict {
        return Err(FlightsCode::PredicateDiffers
            .refuse(format!(
                "{}: recorded {verdict} {}, reached {} {}",
                plan.name,
                shown(recorded),
                end(&flown),
                shown(reached)
            ))
            .into());
    }
    Ok(flown.verdict(None))
}

/// How a flight ended, in full.
fn end(flown: &Flown) -> String {
    match flown {
        Flown::Certified(_) => flown.word().to_owned(),
        Flown::Refused { stage, refusal } => format!("at {stage}: {refusal}:"),
    }
}

fn shown(digest: Option<Digest>) -> String {
    digest.map_or_else(
        || "no predicate".to_owned(),
        |d| d.to_string()[..12].to_owned(),
    )
}

/// Whether the verdict is another one than the plan expects.
pub(super) fn unexpected(plan: &Plan, verdict: &Verdict) -> Option<Refusal> {
    let expect = &plan.expect;
    let stage = expect.stage.as_deref().unwrap_or(&verdict.stage);
    let same =
        verdict.verdict == expect.verdict && verdict.code == expect.code && verdict.stage == stage;
    let broken = verdict.code.as_deref().and_then(registry::find);
    if let Some(explanation) = broken.filter(|e| !same && !speaks_of_the_candidate(e.fault)) {
        // What is missing here says nothing about the candidate, and has its own hint.
        return Some(Refusal {
            explanation,
            detail: verdict.detail.clone(),
            notes: verdict.notes.clone(),
        });
    }
    (!same).then(|| {
        let said = |decision: Decision, stage: &str, code: Option<&str>| match code {
            Some(code) => format!("{code} at {stage}"),
            None => serde_json::to_string(&decision)
                .unwrap_or_default()
                .trim_matches('"')
                .to_owned(),
        };
        FlightsCode::VerdictUnexpected
            .refuse(format!(
                "expected {}, got {}: {}",
                said(expect.verdict, stage, expect.code.as_deref()),
                said(verdict.verdict, &verdict.stage, verdict.code.as_deref()),
                verdict.detail
            ))
            .into()
    })
}

fn speaks_of_the_candidate(fault: Fault) -> bool {
    matches!(fault, Fault::Input | Fault::Evidence | Fault::Policy)
}
