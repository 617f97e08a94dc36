//! The commit point of an import through every order of events of a small world: two importers of the
//! same commit, two files, a lease that may be lost, a user who commits, moves the branch by force,
//! switches branches or edits, one crash at any step and one more in the recovery. What the recovery does is
//! what [`decide`] says; the steps of an importer are those of `land` and of `archive`'s application.

use super::{Facts, Files, NewIndex, Place, Ruling, decide};
use crate::Outcome;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::time::Duration;

const STATES: usize = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum File {
    Old,
    New,
}

/// What the index file and its lock file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct IndexFiles {
    new_installed: bool,
    /// The lock file is ours; true if the new index is whole in it.
    lock: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    Claimed,
    Intended,
    Locked,
    Recorded,
    Swapped(usize),
    Written,
    Committed,
    Installed,
    Tidied,
    Receipted,
    /// Going back: so many files are still swapped, or all are back.
    Back(usize),
    Refused,
    Done,
    Dead,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    importers: [Step; 2],
    recovery: Option<Recovering>,
    place: Place,
    here: bool,
    files: [File; 2],
    swapping: bool,
    index: IndexFiles,
    claim: bool,
    intent: bool,
    receipts: u8,
    ref_lock: bool,
    lease: usize,
    deaths_left: u8,
    user_left: u8,
    /// The recovery left everything for a person to look at.
    left: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Recovering {
    Ruled(Ruling),
    Index(Ruling),
    Files(Ruling),
    Settled(Ruling),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    Go(usize),
    Fail(usize),
    Die(usize),
    LoseLease,
    UserCommits,
    UserForces,
    UserSwitches,
    Recover,
    RecoveryDies,
}

/// What is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Broken {
    /// The recovery of a branch that did not move keeps the new files.
    FinishesAtBaseline,
    /// The branch moves before all files are exchanged.
    CommitsEarly,
    /// The index follows before the branch moved.
    InstallsEarly,
}

struct Import {
    broken: Option<Broken>,
}

impl Import {
    fn rule(&self, facts: Facts) -> Ruling {
        match self.broken {
            Some(Broken::FinishesAtBaseline) if facts.place == Place::Baseline => Ruling {
                files: Files::Finish,
                ..decide(facts)
            },
            _ => decide(facts),
        }
    }

    /// The next step of an importer that nothing stops.
    fn go(&self, who: usize, world: &mut World) -> Option<()> {
        let next = match world.importers[who] {
            Step::Idle if world.claim || world.index.lock.is_some() => Step::Refused,
            Step::Idle if world.place != Place::Baseline || !world.here => Step::Refused,
            Step::Idle => {
                world.claim = true;
                world.index.lock = Some(false);
                Step::Claimed
            }
            Step::Claimed => {
                world.intent = true;
                Step::Intended
            }
            Step::Intended if world.ref_lock || world.place != Place::Baseline => Step::Back(0),
            Step::Intended => {
                world.ref_lock = true;
                if world.here {
                    Step::Locked
                } else {
                    Step::Back(0)
                }
            }
            Step::Locked => {
                world.swapping = true;
                Step::Recorded
            }
            Step::Recorded => {
                world.files[0] = File::New;
                Step::Swapped(1)
            }
            Step::Swapped(1) if self.broken == Some(Broken::CommitsEarly) => {
                (world.place, world.ref_lock) = (Place::Head, false);
                Step::Committed
            }
            Step::Swapped(1) => {
                world.files[1] = File::New;
                Step::Swapped(2)
            }
            Step::Swapped(_) => {
                world.index.lock = Some(true);
                if self.broken == Some(Broken::InstallsEarly) {
                    world.index = IndexFiles {
                        new_installed: true,
                        lock: None,
                    };
                }
                Step::Written
            }
            Step::Written if world.lease != who => Step::Back(2),
            Step::Written => {
                (world.place, world.ref_lock) = (Place::Head, false);
                Step::Committed
            }
            Step::Committed => {
                if world.index.lock.is_some() {
                    world.index = IndexFiles {
                        new_installed: true,
                        lock: None,
                    };
                }
                Step::Installed
            }
            Step::Installed => {
                world.swapping = false;
                Step::Tidied
            }
            Step::Tidied => {
                world.intent = false;
                world.receipts += 1;
                Step::Receipted
            }
            Step::Receipted => {
                world.claim = false;
                Step::Done
            }
            Step::Back(swapped @ 1..) => {
                world.files[swapped - 1] = File::Old;
                Step::Back(swapped - 1)
            }
            Step::Back(0) => {
                // The branch's lock goes first in the code; it holds nothing back here.
                world.ref_lock = false;
                world.swapping = false;
                world.intent = false;
                world.index.lock = None;
                world.claim = false;
                Step::Refused
            }
            Step::Refused | Step::Done | Step::Dead => return None,
        };
        world.importers[who] = next;
        Some(())
    }

    /// A step that the system refuses before the branch moved.
    fn fail(who: usize, world: &mut World) -> Option<()> {
        world.importers[who] = match world.importers[who] {
            Step::Claimed | Step::Intended | Step::Locked | Step::Recorded => Step::Back(0),
            Step::Swapped(n) => Step::Back(n),
            Step::Written => Step::Back(2),
            _ => return None,
        };
        Some(())
    }

    fn die(who: usize, world: &mut World) -> Option<()> {
        let step = world.importers[who];
        if matches!(step, Step::Idle | Step::Refused | Step::Done | Step::Dead) {
            return None;
        }
        // Its git sees the end of its input. (What a killed git leaves is the user's to remove.)
        if holds_ref_lock(step) {
            world.ref_lock = false;
        }
        world.importers[who] = Step::Dead;
        world.deaths_left -= 1;
        Some(())
    }

    fn recover(&self, world: &mut World) -> Option<()> {
        let facts = Facts {
            place: world.place,
            swapping: world.swapping,
            here: world.here,
        };
        let next = match world.recovery {
            None if world.claim || world.intent => Recovering::Ruled(self.rule(facts)),
            None => return None,
            Some(Recovering::Ruled(ruling)) => {
                match ruling.index {
                    NewIndex::Install if world.index.lock == Some(true) => {
                        world.index = IndexFiles {
                            new_installed: true,
                            lock: None,
                        };
                    }
                    NewIndex::Install | NewIndex::Leave | NewIndex::Discard => {}
                }
                Recovering::Index(ruling)
            }
            Some(Recovering::Index(ruling)) => {
                match ruling.files {
                    Files::Leave => {}
                    Files::Finish => world.swapping = false,
                    // Looks before it undoes, so that it may be done in two halves.
                    Files::RollBack if world.files[1] == File::New => {
                        world.files[1] = File::Old;
                        return Some(());
                    }
                    Files::RollBack => {
                        world.files[0] = File::Old;
                        world.swapping = false;
                    }
                }
                Recovering::Files(ruling)
            }
            Some(Recovering::Files(ruling)) => {
                let applied =
                    matches!(ruling.outcome, Outcome::Applied | Outcome::AppliedThenMoved);
                world.receipts += u8::from(applied && world.intent);
                world.intent = false;
                Recovering::Settled(ruling)
            }
            Some(Recovering::Settled(ruling)) => {
                if ruling.is_final() {
                    world.index.lock = None;
                    world.claim = false;
                } else {
                    world.left = true;
                }
                world.recovery = None;
                return Some(());
            }
        };
        world.recovery = Some(next);
        Some(())
    }
}

fn holds_ref_lock(step: Step) -> bool {
    matches!(
        step,
        Step::Locked | Step::Recorded | Step::Swapped(_) | Step::Written | Step::Back(_)
    )
}

fn is_over(step: Step) -> bool {
    matches!(step, Step::Idle | Step::Refused | Step::Done | Step::Dead)
}

impl Model for Import {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            importers: [Step::Idle; 2],
            recovery: None,
            place: Place::Baseline,
            here: true,
            files: [File::Old; 2],
            swapping: false,
            index: IndexFiles::default(),
            claim: false,
            intent: false,
            receipts: 0,
            ref_lock: false,
            lease: 0,
            deaths_left: 2,
            user_left: 1,
            left: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Act>) {
        // Imports and recoveries of one ledger exclude each other.
        let busy = |other: usize| !is_over(world.importers[other]);
        if world.recovery.is_none() {
            for who in 0..2 {
                if !busy(1 - who) {
                    actions.extend([Act::Go(who), Act::Fail(who)]);
                }
                if world.deaths_left > 0 {
                    actions.push(Act::Die(who));
                }
            }
        }
        if !busy(0) && !busy(1) && !world.left {
            actions.push(Act::Recover);
        }
        if world.recovery.is_some() && world.deaths_left > 0 {
            actions.push(Act::RecoveryDies);
        }
        actions.push(Act::LoseLease);
        if world.user_left > 0 && world.recovery.is_none() {
            actions.extend([Act::UserCommits, Act::UserForces, Act::UserSwitches]);
        }
    }

    fn next_state(&self, last: &World, action: Act) -> Option<World> {
        let mut world = last.clone();
        match action {
            Act::Go(who) => self.go(who, &mut world)?,
            Act::Fail(who) => Self::fail(who, &mut world)?,
            Act::Die(who) => Self::die(who, &mut world)?,
            Act::LoseLease => world.lease = 1 - world.lease,
            // Git takes the index's lock and the branch's.
            Act::UserCommits if world.index.lock.is_none() && !world.ref_lock && world.here => {
                world.place = match world.place {
                    Place::Head => Place::BeyondHead,
                    _ => Place::Elsewhere,
                };
                world.user_left -= 1;
            }
            Act::UserForces if !world.ref_lock => {
                world.place = match world.place {
                    Place::Head => Place::BeyondHead,
                    Place::Baseline => Place::Elsewhere,
                    other => other,
                };
                world.user_left -= 1;
            }
            // HEAD alone: a git that would change files needs the index's lock.
            Act::UserSwitches if !world.ref_lock => {
                world.here = false;
                world.user_left -= 1;
            }
            Act::UserCommits | Act::UserForces | Act::UserSwitches => return None,
            Act::Recover => self.recover(&mut world)?,
            Act::RecoveryDies => {
                world.recovery = None;
                world.deaths_left -= 1;
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn quiet(world: &World) -> bool {
            let over = world.importers.iter().all(|step| is_over(*step));
            over && world.recovery.is_none() && !world.claim && !world.intent
        }
        fn moved(world: &World) -> bool {
            matches!(world.place, Place::Head | Place::BeyondHead)
        }
        vec![
            Property::always(
                "when nobody is at work all is on the branch's side",
                |_, world: &World| {
                    let side = if moved(world) { File::New } else { File::Old };
                    let whole = world.files == [side; 2] && !world.swapping;
                    let index = world.index.new_installed == moved(world) || !world.here;
                    !quiet(world) || (whole && index && world.index.lock.is_none())
                },
            ),
            Property::always(
                "a commit has one receipt, and only a commit",
                |_, world: &World| {
                    let expected = u8::from(moved(world));
                    world.receipts <= expected && (!quiet(world) || world.receipts == expected)
                },
            ),
            Property::always(
                "what nobody can judge nobody touched",
                |_, world: &World| {
                    !world.left || (world.swapping && world.claim && world.index.lock.is_some())
                },
            ),
            Property::always(
                "the index is never ahead of the branch",
                |_, world: &World| !world.index.new_installed || moved(world),
            ),
            Property::always("files change only under a plan", |_, world: &World| {
                world.files == [File::Old; 2] || world.swapping || moved(world)
            }),
            Property::sometimes("it lands", |_, world: &World| {
                quiet(world) && world.receipts == 1
            }),
            Property::sometimes("it is left to a person", |_, world: &World| world.left),
            Property::sometimes("it is taken back", |_, world: &World| {
                quiet(world) && world.deaths_left < 2 && world.place == Place::Baseline
            }),
        ]
    }
}

#[test]
fn whatever_happens_and_whoever_dies_the_files_end_where_the_branch_is() {
    let checker = Import { broken: None }
        .checker()
        .target_state_count(STATES)
        .timeout(PATIENCE)
        .spawn_bfs()
        .join();
    println!("{} states", checker.unique_state_count());
    assert!(checker.is_done() && checker.unique_state_count() < STATES);
    checker.assert_properties();
}

#[test]
fn a_protocol_that_is_wrong_in_one_place_is_noticed() {
    for (broken, property) in [
        (
            Broken::FinishesAtBaseline,
            "when nobody is at work all is on the branch's side",
        ),
        (
            Broken::CommitsEarly,
            "when nobody is at work all is on the branch's side",
        ),
        (
            Broken::InstallsEarly,
            "the index is never ahead of the branch",
        ),
    ] {
        let checker = Import {
            broken: Some(broken),
        }
        .checker()
        .target_state_count(STATES)
        .timeout(PATIENCE)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
        assert!(checker.discovery(property).is_some(), "{broken:?}");
    }
}
