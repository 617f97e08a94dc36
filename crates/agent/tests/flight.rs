//! A scripted stand-in for an agent program, run as a real process under the run's machine.

#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

use flightproof_agent::run::{Ended, Outcome, State};
use flightproof_agent::{
    Accounting, AgentCode, AgentRefusal, Binary, HoldEffect, HoldError, Holds, Instructions,
    Launch, Limits, Metering, NativeProcess, Patience, Pilot, Profile, Records, Report, Room,
    RunKey, Task, Version,
};
use flightproof_core::MicroUsd;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A hold, as the ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Reserved(MicroUsd),
    Begun(MicroUsd),
    Ended(HoldEffect),
}

/// A ledger in memory, which loses its answer to the call that is named.
#[derive(Debug, Default)]
struct Ledger {
    hold: Option<Hold>,
    cap: Option<u64>,
    calls: usize,
    lose_answer: Option<usize>,
}

impl Ledger {
    fn answer(&mut self) -> Result<(), HoldError> {
        self.calls += 1;
        match self.lose_answer {
            Some(call) if call == self.calls => {
                self.lose_answer = None;
                Err(HoldError::Uncertain("the disk is gone".into()))
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, effect: HoldEffect) -> Result<(), HoldError> {
        match (self.hold, effect) {
            (Some(Hold::Ended(before)), now) if before == now => {}
            (Some(Hold::Ended(before)), _) => {
                return Err(HoldError::Conflict(format!("ended before: {before}")));
            }
            (Some(Hold::Begun(_)), HoldEffect::Release) => {
                return Err(HoldError::Refused("it may have run".into()));
            }
            (None, HoldEffect::Release) => return self.answer(),
            (None, _) => return Err(HoldError::Refused("no hold".into())),
            _ => self.hold = Some(Hold::Ended(effect)),
        }
        self.answer()
    }
}

impl Holds for Ledger {
    fn reserve(&mut self, _: &RunKey, amount: MicroUsd) -> Result<(), HoldError> {
        if self.cap.is_some_and(|cap| amount.micros() > cap) {
            return Err(HoldError::Refused("the day's cap".into()));
        }
        match self.hold {
            None => self.hold = Some(Hold::Reserved(amount)),
            Some(Hold::Reserved(held)) if held == amount => {}
            Some(_) => return Err(HoldError::Conflict("held otherwise".into())),
        }
        self.answer()
    }
    fn begin(&mut self, _: &RunKey) -> Result<(), HoldError> {
        match self.hold {
            Some(Hold::Reserved(amount) | Hold::Begun(amount)) => {
                self.hold = Some(Hold::Begun(amount));
                self.answer()
            }
            _ => Err(HoldError::Refused("no hold".into())),
        }
    }
    fn settle(&mut self, _: &RunKey, actual: MicroUsd) -> Result<(), HoldError> {
        self.end(HoldEffect::Settle(actual))
    }
    fn release(&mut self, _: &RunKey) -> Result<(), HoldError> {
        self.end(HoldEffect::Release)
    }
    fn keep(&mut self, _: &RunKey) -> Result<(), HoldError> {
        self.end(HoldEffect::Keep)
    }
}

/// States in memory; the driver dies before or after the store that is named.
#[derive(Debug, Default)]
struct Disk {
    states: Vec<State>,
    accounting: Vec<Accounting>,
    die: Option<(usize, When)>,
    stores: Cell<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    BeforeStore,
    AfterStore,
    /// Not a death: the store says no.
    Refused,
}

impl Disk {
    fn last(&self) -> State {
        self.states.last().copied().unwrap_or(State::Planned)
    }
}

impl Records for Disk {
    fn state(&mut self, _: &RunKey, state: &State) -> Result<(), String> {
        self.stores.set(self.stores.get() + 1);
        let now = self.die.filter(|(store, _)| *store == self.stores.get());
        match now {
            Some((_, When::BeforeStore)) => panic!("the driver dies"),
            Some((_, When::Refused)) => return Err("the disk is full".into()),
            _ => self.states.push(*state),
        }
        assert!(now.is_none(), "the driver dies");
        Ok(())
    }
    fn accounting(&mut self, _: &RunKey, accounting: &Accounting) -> Result<(), String> {
        self.accounting.push(accounting.clone());
        Ok(())
    }
}

/// A session that is a directory.
#[derive(Debug, Default)]
struct Workshop {
    directory: PathBuf,
    open: bool,
    captured: Option<String>,
    uncertain: bool,
}

impl Room for Workshop {
    fn open(&mut self) -> Result<(), String> {
        self.open = true;
        Ok(())
    }
    fn capture(&mut self) -> Result<(), String> {
        assert!(self.open, "captured from a session that is gone");
        let work = std::fs::read_to_string(self.directory.join("work.txt"));
        self.captured = Some(work.map_err(|e| e.to_string())?);
        Ok(())
    }
    fn close(&mut self) -> Result<(), String> {
        self.open = false;
        if self.uncertain {
            return Err("a process is left".into());
        }
        Ok(())
    }
    fn requests(&self) -> Option<u64> {
        None
    }
}

struct Scene {
    folder: tempfile::TempDir,
    binary: Binary,
    launch: Launch,
    profile: Profile,
    limits: Limits,
    run: RunKey,
    ledger: Ledger,
    disk: Disk,
    room: Workshop,
    patience: Patience,
}

fn scene(scenario: &str) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let stand_in = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/agent/stand-in.sh"
    );
    let file = folder.path().join("claude");
    std::fs::copy(stand_in, &file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let binary = Binary::inspect(&file).unwrap();
    let profile = Profile::built_in("claude").unwrap();
    let limits = Limits::parse("1", "10", Metering::Metered).unwrap();
    let run = RunKey::from_entropy([7; 16]);
    let task = Task {
        text: &format!("scenario {scenario}"),
        model: "claude-opus-5",
        tools: &BTreeSet::from(["Edit".to_owned()]),
        instructions: &Instructions::default(),
        feedback: None,
    };
    let home = folder.path().to_str().unwrap();
    let launch = Launch::new(
        &profile,
        &limits,
        &binary,
        &run,
        &task,
        &BTreeMap::new(),
        home,
    )
    .unwrap();
    Scene {
        room: Workshop {
            directory: folder.path().to_owned(),
            ..Workshop::default()
        },
        patience: Patience {
            wall: Duration::from_secs(20),
            grace: Duration::from_millis(400),
        },
        folder,
        binary,
        launch,
        profile,
        limits,
        run,
        ledger: Ledger::default(),
        disk: Disk::default(),
    }
}

impl Scene {
    fn fly(&mut self) -> Result<Report, AgentRefusal> {
        let state = self.disk.last();
        let mut program = NativeProcess {
            directory: self.folder.path().to_owned(),
        };
        let mut pilot = Pilot {
            run: &self.run,
            profile: &self.profile,
            limits: &self.limits,
            binary: &self.binary,
            launch: &self.launch,
            patience: self.patience,
            holds: &mut self.ledger,
            records: &mut self.disk,
            room: &mut self.room,
            program: &mut program,
        };
        pilot.fly(state)
    }

    fn ended(&mut self) -> Ended {
        self.fly().unwrap().ended
    }

    fn starts(&self) -> usize {
        let starts = std::fs::read_to_string(self.folder.path().join("starts"));
        starts.unwrap_or_default().lines().count()
    }
}

fn settle(micros: u64) -> HoldEffect {
    HoldEffect::Settle(MicroUsd::from_micros(micros).unwrap())
}

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
    let printed = std::process::Command::new(scene.binary.path())
        .args(scene.profile.version_argv())
        .output()
        .unwrap();
    let version = Version::read(&printed.stdout, &scene.profile).unwrap();
    assert_eq!(version, Version([2, 1, 266]));
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
        let expected = Ended {
            outcome: Outcome::Failed(code),
            hold,
        };
        assert_eq!(report.ended, expected, "{scenario}: {:?}", report.refused);
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
fn much_on_standard_error_and_a_slow_answer_do_no_harm() {
    for scenario in ["noisy", "slow"] {
        assert_eq!(
            scene(scenario).ended().outcome,
            Outcome::Captured,
            "{scenario}"
        );
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
        scene.patience.wall = Duration::from_millis(700);
        let before = Instant::now();
        let ended = scene.ended();
        let expected = Ended {
            outcome: Outcome::Failed(code),
            hold,
        };
        assert_eq!(ended, expected, "{scenario}");
        assert!(before.elapsed() < Duration::from_secs(15), "{scenario}");
        assert!(scene.disk.states.contains(&State::Stopping), "{scenario}");
        assert!(scene.room.captured.is_none(), "{scenario}");
    }
}

#[test]
fn a_child_that_stays_is_ended_and_one_that_gets_away_fails_the_run() {
    let mut stays = scene("leaves-child");
    assert_eq!(stays.ended().outcome, Outcome::Captured);
    let mut away = scene("escaped-child");
    let ended = away.ended();
    let expected = Ended {
        outcome: Outcome::Failed(AgentCode::NeverExited),
        hold: settle(533_159),
    };
    assert_eq!(ended, expected);
}

#[test]
fn without_a_hold_nothing_is_opened_or_started() {
    let mut scene = scene("success");
    scene.ledger.cap = Some(1_000_000);
    let ended = scene.ended();
    assert_eq!(ended.outcome, Outcome::Failed(AgentCode::HoldRefused));
    assert_eq!((scene.starts(), scene.ledger.hold), (0, None));
    assert!(!scene.disk.states.contains(&State::Opening));
}

#[test]
fn a_program_that_changed_or_cannot_start_costs_nothing() {
    let mut changed = scene("success");
    std::fs::write(changed.binary.path(), "#!/bin/sh\necho other\n").unwrap();
    let ended = changed.ended();
    assert_eq!(ended.outcome, Outcome::Failed(AgentCode::BinaryChanged));
    assert_eq!(ended.hold, settle(0));

    let mut broken = scene("success");
    let file = broken.folder.path().join("broken");
    std::fs::write(&file, "#!/no/such/shell\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    broken.binary = Binary::inspect(&file).unwrap();
    broken.launch.program = file;
    let ended = broken.ended();
    assert_eq!(ended.outcome, Outcome::Failed(AgentCode::SpawnFailed));
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

/// Deaths of the driver at every store, each followed by a recovery.
#[test]
fn a_driver_that_dies_anywhere_starts_nothing_twice_and_leaves_no_open_hold() {
    let stores = {
        let mut scene = scene("success");
        scene.ended();
        scene.disk.stores.get()
    };
    assert!(stores >= 8, "{stores}");
    let mut outcomes = BTreeSet::new();
    for store in 1..=stores {
        for when in [When::BeforeStore, When::AfterStore] {
            let mut scene = scene("success");
            scene.disk.die = Some((store, when));
            let died = std::panic::catch_unwind(AssertUnwindSafe(|| scene.fly().map(drop)));
            assert!(died.is_err(), "store {store} was reached");
            // The program may outlive its driver for a moment.
            std::thread::sleep(Duration::from_millis(300));
            let ended = scene.ended();
            assert!(scene.starts() <= 1, "{store} {when:?}");
            assert!(!scene.room.open, "{store} {when:?}");
            if scene.starts() == 1 {
                assert_ne!(ended.hold, HoldEffect::Release, "{store} {when:?}");
            }
            match scene.ledger.hold {
                None => assert_eq!(ended.hold, HoldEffect::Release),
                Some(Hold::Ended(effect)) => assert_eq!(effect, ended.hold),
                open => panic!("{store} {when:?}: {open:?}"),
            }
            outcomes.insert(format!("{:?}", ended.outcome));
        }
    }
    assert!(
        outcomes.contains("Captured") && outcomes.len() >= 3,
        "{outcomes:?}"
    );
}

#[test]
fn a_store_that_says_no_stops_the_run_and_closes_the_session() {
    for store in 1..=8 {
        let mut scene = scene("success");
        scene.disk.die = Some((store, When::Refused));
        let stopped = scene.fly().map_err(|e| e.code);
        assert_eq!(stopped, Err(AgentCode::HoldUncertain), "{store}");
        assert!(!scene.room.open, "{store}");
        scene.disk.die = None;
        scene.ended();
        assert!(scene.starts() <= 1, "{store}");
    }
}

#[test]
fn a_ledger_that_loses_an_answer_is_asked_again_and_settles_once() {
    for call in 1..=3 {
        let mut scene = scene("success");
        scene.ledger.lose_answer = Some(call);
        let ended = match scene.fly() {
            Ok(report) => report.ended,
            Err(stuck) => {
                assert_eq!(stuck.code, AgentCode::HoldUncertain, "{call}");
                scene.ended()
            }
        };
        assert_eq!(scene.ledger.hold, Some(Hold::Ended(ended.hold)), "{call}");
        assert!(scene.starts() <= 1, "{call}");
    }
}
