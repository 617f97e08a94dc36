//! A run with everything around it: a stand-in program, a ledger and a disk in memory, a
//! directory for a session.

use crate::process::NativeProcess;
use flightproof_agent::run::{Outcome, State};
use flightproof_agent::{
    Accounting, AgentRefusal, Amount, Binary, HoldEffect, HoldError, Holds, Instructions, Launch,
    Limits, Metering, Patience, Pilot, Profile, Program, Records, Report, Room, RunKey, Task,
};
use flightproof_core::{Digest, MicroUsd};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::Duration;

/// A hold, as the ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Reserved(MicroUsd),
    Begun(MicroUsd),
    Ended(HoldEffect),
}

/// A ledger in memory, which loses its answer to the call that is named.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) hold: Option<Hold>,
    pub(crate) cap: Option<u64>,
    pub(crate) calls: usize,
    pub(crate) lose_answer: Option<usize>,
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
    fn reserve(&mut self, _: &RunKey, _: Digest, amount: Amount) -> Result<(), HoldError> {
        let amount = amount.held;
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
    fn settle(
        &mut self,
        _: &RunKey,
        actual: MicroUsd,
        result: Option<Digest>,
    ) -> Result<(), HoldError> {
        assert_eq!(result.is_none(), actual == MicroUsd::ZERO);
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
pub(crate) struct Disk {
    pub(crate) states: Vec<State>,
    pub(crate) accounting: Vec<Accounting>,
    pub(crate) die: Option<(usize, When)>,
    pub(crate) stores: Cell<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    BeforeStore,
    AfterStore,
    /// Not a death: the store says no.
    Refused,
}

impl Disk {
    pub(crate) fn last(&self) -> State {
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
pub(crate) struct Workshop {
    pub(crate) directory: PathBuf,
    pub(crate) open: bool,
    pub(crate) captured: Option<String>,
    pub(crate) uncertain: bool,
}

impl Room for Workshop {
    fn open(&mut self) -> Result<(), AgentRefusal> {
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

pub(crate) struct Scene {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) binary: Binary,
    pub(crate) launch: Launch,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) run: RunKey,
    pub(crate) ledger: Ledger,
    pub(crate) disk: Disk,
    pub(crate) room: Workshop,
    pub(crate) patience: Patience,
    /// See [`NativeProcess::noted`].
    pub(crate) noted: Option<&'static str>,
}

pub(crate) fn scene(scenario: &str) -> Scene {
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
        noted: None,
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
    pub(crate) fn fly(&mut self) -> Result<Report, AgentRefusal> {
        let mut ledger = std::mem::take(&mut self.ledger);
        // The ledger outlives a driver that dies.
        let flown = std::panic::catch_unwind(AssertUnwindSafe(|| self.fly_with(&mut ledger)));
        self.ledger = ledger;
        flown.unwrap_or_else(|death| std::panic::resume_unwind(death))
    }

    pub(crate) fn fly_with(&mut self, holds: &mut dyn Holds) -> Result<Report, AgentRefusal> {
        let mut program = self.process();
        self.fly_program(holds, &mut program)
    }

    pub(crate) fn process(&self) -> NativeProcess {
        NativeProcess {
            directory: self.folder.path().to_owned(),
            noted: self.noted,
        }
    }

    pub(crate) fn fly_program(
        &mut self,
        holds: &mut dyn Holds,
        program: &mut dyn Program,
    ) -> Result<Report, AgentRefusal> {
        let state = self.disk.last();
        let mut pilot = Pilot {
            run: &self.run,
            profile: &self.profile,
            limits: &self.limits,
            binary: &self.binary,
            launch: &self.launch,
            patience: self.patience,
            holds,
            records: &mut self.disk,
            room: &mut self.room,
            program,
        };
        pilot.fly(state)
    }

    /// How it ended: what it came to, and what became of its hold.
    pub(crate) fn ended(&mut self) -> (Outcome, HoldEffect) {
        let ended = self.fly().unwrap().ended;
        (ended.outcome, ended.hold)
    }

    pub(crate) fn starts(&self) -> usize {
        let starts = std::fs::read_to_string(self.folder.path().join("starts"));
        starts.unwrap_or_default().lines().count()
    }
}

pub(crate) fn settle(micros: u64) -> HoldEffect {
    HoldEffect::Settle(MicroUsd::from_micros(micros).unwrap())
}
