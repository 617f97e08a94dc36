//! Every shape of a result and of an ending, by a real process.

use crate::scene::{Hold, scene, settle};
use flightproof_agent::repair::Told;
use flightproof_agent::run::{Outcome, State};
use flightproof_agent::{AgentCode, Binary, HoldEffect, Version};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[test]
fn a_run_that_ends_well_is_captured_and_settled_and_its_session_is_gone() {
    let mut scene = scene("success");
    let report = scene.fly().unwrap();
    assert!(report.proposed(), "{report:?}");
    assert_eq!(report.ended.hold, settle(533_159));
    assert_eq!(report.accounting, scene.disk.accounting.first().cloned());
    assert_eq!(
        scene.room.captured.as_deref(),
        Some("changed by the agent\n")
    );
    assert_eq!(scene.ledger.hold, Some(Hold::Ended(settle(533_159))));
    assert!(!scene.room.open);
    let argv = std::fs::read_to_string(scene.folder.path().join("argv")).unwrap();
    assert!(
        argv.contains("--max-budget-usd\n1\n--max-turns\n10\n"),
        "{argv}"
    );
}

#[test]
fn the_version_is_that_of_the_checked_file() {
    let scene = scene("success");
    let home = scene.folder.path().to_str().unwrap();
    let mut program = scene.process();
    let version = scene.binary.version(&mut program, &scene.profile, home);
    assert_eq!(version, Ok(Version([2, 1, 266])));
    for (script, code) in [
        (
            "#!/bin/sh\necho '2.1.265 (Claude Code)'\n",
            AgentCode::VersionTooOld,
        ),
        (
            "#!/bin/sh\necho '2.1.266 (Claude Code)'; exit 1\n",
            AgentCode::VersionUnreadable,
        ),
        (
            "#!/bin/sh\necho 'wrapper 1.0.0'\n",
            AgentCode::VersionUnreadable,
        ),
        (
            "#!/bin/sh\necho '# x' >> $0; echo '2.1.266 (Claude Code)'\n",
            AgentCode::BinaryChanged,
        ),
    ] {
        std::fs::write(scene.binary.path(), script).unwrap();
        let binary = Binary::inspect(scene.binary.path()).unwrap();
        let version = binary.version(&mut program, &scene.profile, home);
        assert_eq!(version.map_err(|e| e.code), Err(code), "{script}");
    }
}

#[test]
fn every_recorded_shape_ends_with_its_code_and_its_hold() {
    use AgentCode::*;
    let keep = HoldEffect::Keep;
    let paid = settle(533_159);
    for (scenario, code, hold) in [
        ("budget", BudgetExhausted, settle(1_020_000)),
        ("turns", TurnsExhausted, paid),
        ("interrupted", ExecutionFailed, keep),
        ("api-error", ApiError, paid),
        ("old-error", ExecutionFailed, settle(657_164)),
        ("empty", EmptyResult, settle(150_957)),
        ("gateway", CostZero, keep),
        ("incomplete", StoppedEarly, paid),
        ("overspend", OverBudget, settle(3_500_000)),
        ("overspend-far", OverHold, settle(99_000_000)),
        ("over-turns", OverTurns, paid),
        ("several", SeveralResults, keep),
        ("array", ResultArray, keep),
        ("trailing", TrailingBytes, keep),
        ("truncated", ResultTruncated, keep),
        ("plain", ResultMalformed, keep),
        ("other-session", SessionMismatch, keep),
        ("silent", NoResult, keep),
        ("exit-one", ExitDisagrees, paid),
        ("die", Signalled, keep),
        ("terminated", Signalled, keep),
        ("flood", OutputOverflow, keep),
        ("updates-itself", BinaryChanged, keep),
        ("unheard-of", NoResult, keep),
        ("no-work", CaptureFailed, paid),
    ] {
        let mut scene = scene(scenario);
        let report = scene.fly().unwrap();
        let expected = (Outcome::Failed(code), hold);
        assert_eq!(
            (report.ended.outcome, report.ended.hold),
            expected,
            "{scenario}: {:?}",
            report.refused
        );
        assert_eq!(report.refused.unwrap().code, code, "{scenario}");
        assert_eq!(scene.ledger.hold, Some(Hold::Ended(hold)), "{scenario}");
        assert_eq!(scene.starts(), 1, "{scenario}");
        assert!(
            !scene.room.open && scene.room.captured.is_none(),
            "{scenario}"
        );
    }
}

#[test]
fn only_a_run_that_is_over_and_paid_for_is_followed_by_another() {
    for (scenario, again) in [
        ("empty", Some(true)),
        ("budget", Some(true)),
        ("no-work", Some(true)),
        ("truncated", Some(false)),
        ("updates-itself", Some(false)),
        ("success", None),
    ] {
        let told = scene(scenario).fly().unwrap().failure();
        let follows = told.map(|told| matches!(told, Told::RunFailed(_)));
        assert_eq!(follows, again, "{scenario}");
    }
}

#[test]
fn much_on_standard_error_and_a_slow_answer_do_no_harm() {
    for scenario in ["noisy", "slow"] {
        assert_eq!(scene(scenario).ended().0, Outcome::Captured, "{scenario}");
    }
}

#[test]
fn a_program_that_hangs_is_ended_and_what_it_said_counts() {
    use AgentCode::{DeadlinePassed, NeverExited};
    for (scenario, code, hold) in [
        ("hang", DeadlinePassed, HoldEffect::Keep),
        ("hang-deaf", DeadlinePassed, HoldEffect::Keep),
        ("hang-after-result", NeverExited, settle(533_159)),
        // Interrupted first: it still says what it has cost.
        ("interruptible", DeadlinePassed, settle(250_000)),
    ] {
        let mut scene = scene(scenario);
        scene.noted = Some("ready");
        scene.patience.wall = Duration::from_millis(300);
        if scenario != "hang-deaf" {
            scene.patience.grace = Duration::from_secs(5);
        }
        let before = Instant::now();
        let ended = scene.ended();
        let expected = (Outcome::Failed(code), hold);
        assert_eq!(ended, expected, "{scenario}");
        assert!(before.elapsed() < Duration::from_secs(60), "{scenario}");
        assert!(scene.disk.states.contains(&State::Stopping), "{scenario}");
        assert!(scene.room.captured.is_none(), "{scenario}");
    }
}

#[test]
fn a_child_that_stays_is_ended_and_one_that_gets_away_fails_the_run() {
    let mut stays = scene("leaves-child");
    assert_eq!(stays.ended().0, Outcome::Captured);
    let mut away = scene("escaped-child");
    let ended = away.ended();
    let expected = (Outcome::Failed(AgentCode::NeverExited), settle(533_159));
    assert_eq!(ended, expected);
}

#[test]
fn without_a_hold_nothing_is_opened_or_started() {
    let mut scene = scene("success");
    scene.ledger.cap = Some(1_000_000);
    let ended = scene.ended();
    assert_eq!(ended.0, Outcome::Failed(AgentCode::HoldRefused));
    assert_eq!((scene.starts(), scene.ledger.hold), (0, None));
    assert!(!scene.disk.states.contains(&State::Opening));
}

#[test]
fn a_program_that_changed_or_cannot_start_costs_nothing() {
    let mut changed = scene("success");
    std::fs::write(changed.binary.path(), "#!/bin/sh\necho other\n").unwrap();
    let ended = changed.ended();
    assert_eq!(ended.0, Outcome::Failed(AgentCode::BinaryChanged));
    assert_eq!(ended.1, settle(0));

    let mut broken = scene("success");
    let file = broken.folder.path().join("broken");
    std::fs::write(&file, "#!/no/such/shell\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    broken.binary = Binary::inspect(&file).unwrap();
    broken.launch.program = file;
    let ended = broken.ended();
    assert_eq!(ended.0, Outcome::Failed(AgentCode::SpawnFailed));
    assert_eq!(broken.ledger.hold, Some(Hold::Ended(settle(0))));
}

#[test]
fn a_session_that_may_still_be_there_keeps_the_hold_and_outranks_success() {
    let mut scene = scene("success");
    scene.room.uncertain = true;
    let report = scene.fly().unwrap();
    assert_eq!(
        report.ended.outcome,
        Outcome::Failed(AgentCode::CloseUncertain)
    );
    assert_eq!(report.ended.hold, HoldEffect::Keep);
    assert_eq!(report.refused.unwrap().code, AgentCode::CloseUncertain);
}

#[test]
fn a_run_that_is_over_runs_nothing_again() {
    let mut scene = scene("success");
    let first = scene.ended();
    let calls = scene.ledger.calls;
    for _ in 0..3 {
        assert_eq!(scene.ended(), first);
    }
    assert_eq!((scene.starts(), scene.ledger.calls), (1, calls));
}

#[test]
fn a_hold_that_was_settled_otherwise_is_an_alarm_and_the_first_amount_stands() {
    let mut scene = scene("success");
    scene.ledger.lose_answer = Some(3);
    let stuck = scene.fly().map_err(|e| e.code);
    assert_eq!(stuck, Err(AgentCode::HoldUncertain));
    scene.ledger.hold = Some(Hold::Ended(settle(1)));
    let report = scene.fly().unwrap();
    assert_eq!(
        report.ended.outcome,
        Outcome::Failed(AgentCode::SettleConflict)
    );
    assert_eq!(scene.ledger.hold, Some(Hold::Ended(settle(1))));
}
