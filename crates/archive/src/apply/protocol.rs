//! The order of things, without a file: what is done next, given what happened.
//!
//! [`decide`] is all there is to it. Whoever drives it does the act it is told, and says whether it
//! went well. After a crash the driver starts anew with what the disk says: whether the plan was
//! recorded and whether it was committed. Every act may have happened before the crash, wholly or
//! not at all, so every undoing and every clearing act looks first and may be done twice.

/// How many steps a plan has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Directories that are made, outer ones first.
    pub(crate) directories: usize,
    /// Files that are swapped in, out, or for another.
    pub(crate) swaps: usize,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    plan: Plan,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// On the way to the new tree. The act is being done.
    Forward(Act),
    /// On the way back to the old one.
    Back(Act),
    /// The new tree is there; what is left is to tidy up.
    Tidying(Act),
    Over,
}

/// What happened to the act that was told last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is done.
    Done,
    /// It is not done, or not known to be.
    Failed,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Write down the plan, so that it survives. Nothing of the tree was touched before.
    Record,
    /// Put a directory of the plan in its place.
    MakeDirectory(usize),
    /// Swap a file of the plan, and look at what came out.
    Swap(usize),
    /// Make the tree durable, and look once more at what came out.
    Settle,
    /// Write down that the new tree counts.
    Commit,
    /// Take that back, while nothing else was taken back yet.
    Uncommit,
    /// Swap a file back if it was swapped.
    UndoSwap(usize),
    /// Remove a directory if it was made and nobody uses it.
    UndoDirectory(usize),
    /// Throw away what is ours; keep for the user what is not.
    Sweep,
    /// Throw away the old files; keep for the user what was written to them meanwhile.
    Clear,
    /// Remove the directories that lost their last file.
    Prune,
    /// Throw away the plan.
    Forget,
    /// Nothing more.
    Finish(Outcome),
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The new tree is there.
    Applied,
    /// The new tree is there; the tidying is not done and recovery does it.
    AppliedUntidy,
    /// The old tree is there.
    RolledBack,
    /// Neither: recovery goes on from here.
    Unfinished,
}

impl State {
    /// Nothing happened yet; the first act is [`Act::Record`].
    pub(crate) fn begin(plan: Plan) -> (Self, Act) {
        Self::turn(plan, Phase::Forward(Act::Record))
    }

    /// After a crash that left a recorded plan.
    pub(crate) fn resume(plan: Plan, committed: bool) -> (Self, Act) {
        if committed {
            Self::turn(plan, Phase::Tidying(Act::Clear))
        } else {
            Self::turn(plan, Phase::Back(plan.last_swap()))
        }
    }

    fn turn(plan: Plan, phase: Phase) -> (Self, Act) {
        let act = match phase {
            Phase::Forward(act) | Phase::Back(act) | Phase::Tidying(act) => act,
            Phase::Over => Act::Finish(Outcome::Unfinished),
        };
        (Self { plan, phase }, act)
    }
}

/// The next act.
pub(crate) fn decide(state: State, event: Event) -> (State, Act) {
    let plan = state.plan;
    let next = match (state.phase, event) {
        (Phase::Forward(act), Event::Done) => plan.after(act),
        (Phase::Forward(act), Event::Failed) => plan.back_from(act),
        (Phase::Back(act), Event::Done) => plan.before(act),
        (Phase::Tidying(act), Event::Done) => plan.tidied(act),
        (Phase::Back(_), Event::Failed) => Err(Outcome::Unfinished),
        (Phase::Tidying(_), Event::Failed) => Err(Outcome::AppliedUntidy),
        (Phase::Over, _) => Err(Outcome::Unfinished),
    };
    match next {
        Ok(phase) => State::turn(plan, phase),
        Err(outcome) => {
            let phase = Phase::Over;
            (State { plan, phase }, Act::Finish(outcome))
        }
    }
}

type Next = Result<Phase, Outcome>;

impl Plan {
    fn after(self, act: Act) -> Next {
        let next = match act {
            Act::Record if self.directories > 0 => Act::MakeDirectory(0),
            Act::MakeDirectory(at) if at + 1 < self.directories => Act::MakeDirectory(at + 1),
            Act::Record | Act::MakeDirectory(_) if self.swaps > 0 => Act::Swap(0),
            Act::Swap(at) if at + 1 < self.swaps => Act::Swap(at + 1),
            Act::Commit => return Ok(Phase::Tidying(Act::Clear)),
            Act::Settle => Act::Commit,
            _ => Act::Settle,
        };
        Ok(Phase::Forward(next))
    }

    /// A failed act may still have been done, so going back begins with it.
    fn back_from(self, act: Act) -> Next {
        Ok(Phase::Back(match act {
            Act::MakeDirectory(at) => Act::UndoDirectory(at),
            Act::Swap(at) => Act::UndoSwap(at),
            Act::Settle => self.last_swap(),
            // The mark may be there. As long as it is, recovery would go forward.
            Act::Commit => Act::Uncommit,
            _ => Act::Sweep,
        }))
    }

    fn before(self, act: Act) -> Next {
        Ok(Phase::Back(match act {
            Act::Uncommit => self.last_swap(),
            Act::UndoSwap(0) => self.last_directory(),
            Act::UndoSwap(at) => Act::UndoSwap(at - 1),
            Act::UndoDirectory(at) if at > 0 => Act::UndoDirectory(at - 1),
            Act::UndoDirectory(_) => Act::Sweep,
            Act::Sweep => Act::Forget,
            _ => return Err(Outcome::RolledBack),
        }))
    }

    fn tidied(self, act: Act) -> Next {
        Ok(Phase::Tidying(match act {
            Act::Clear => Act::Prune,
            Act::Prune => Act::Forget,
            _ => return Err(Outcome::Applied),
        }))
    }

    fn last_swap(self) -> Act {
        match self.swaps.checked_sub(1) {
            Some(last) => Act::UndoSwap(last),
            None => self.last_directory(),
        }
    }

    fn last_directory(self) -> Act {
        match self.directories.checked_sub(1) {
            Some(last) => Act::UndoDirectory(last),
            None => Act::Sweep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// What a disk would hold: which steps are done, and which notes there are.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
    struct Disk {
        recorded: bool,
        committed: bool,
        directories: Vec<bool>,
        swaps: Vec<bool>,
        backups: bool,
    }

    impl Disk {
        fn new(plan: Plan) -> Self {
            Self {
                directories: vec![false; plan.directories],
                swaps: vec![false; plan.swaps],
                ..Self::default()
            }
        }

        fn perform(&mut self, act: Act) {
            match act {
                Act::Record => (self.recorded, self.backups) = (true, true),
                Act::MakeDirectory(at) => self.directories[at] = true,
                Act::Swap(at) => {
                    assert!(
                        self.recorded,
                        "the tree was touched before the plan was written"
                    );
                    assert!(self.directories.iter().all(|made| *made));
                    self.swaps[at] = true;
                }
                Act::Commit => {
                    assert!(self.swaps.iter().all(|done| *done), "committed half of it");
                    self.committed = true;
                }
                Act::Uncommit => self.committed = false,
                Act::UndoSwap(at) => {
                    assert!(
                        !self.committed && self.backups,
                        "taken back without its backup"
                    );
                    self.swaps[at] = false;
                }
                Act::UndoDirectory(at) => {
                    assert!(
                        !self.swaps.contains(&true),
                        "a directory before what is in it"
                    );
                    self.directories[at] = false;
                }
                Act::Sweep => assert!(self.is_old(), "backups thrown away half way back"),
                Act::Clear => {
                    assert!(
                        self.committed && self.is_new(),
                        "backups thrown away half way"
                    );
                    self.backups = false;
                }
                Act::Forget => {
                    assert!(self.is_old() || self.is_new(), "forgotten half way");
                    (self.recorded, self.committed, self.backups) = (false, false, false);
                }
                Act::Settle | Act::Prune | Act::Finish(_) => {}
            }
        }

        fn is_old(&self) -> bool {
            !self.swaps.contains(&true) && !self.directories.contains(&true)
        }

        fn is_new(&self) -> bool {
            !self.swaps.contains(&false) && !self.directories.contains(&false)
        }
    }

    /// Follows every way it can go: each act succeeds, fails undone, fails done, or is the last one
    /// before a crash, undone or done. `crashes` more crashes may come.
    fn explore(plan: Plan, disk: Disk, state: State, act: Act, crashes: u32, seen: &mut Seen) {
        let decide = seen.decide;
        if !seen
            .states
            .insert((disk.clone(), format!("{state:?}{act:?}"), crashes))
        {
            return;
        }
        if let Act::Finish(outcome) = act {
            match outcome {
                Outcome::Applied | Outcome::AppliedUntidy => assert!(disk.is_new(), "{disk:?}"),
                Outcome::RolledBack => assert!(disk.is_old() && !disk.recorded, "{disk:?}"),
                Outcome::Unfinished => assert!(disk.recorded || disk.is_old(), "{disk:?}"),
            }
            return recover(plan, disk, crashes, seen);
        }
        let mut done = disk.clone();
        done.perform(act);
        let (next, following) = decide(state, Event::Done);
        explore(plan, done.clone(), next, following, crashes, seen);
        for disk in [disk, done] {
            let (next, following) = decide(state, Event::Failed);
            explore(plan, disk.clone(), next, following, crashes, seen);
            recover(plan, disk, crashes, seen);
        }
    }

    fn recover(plan: Plan, disk: Disk, crashes: u32, seen: &mut Seen) {
        if crashes == 0 || !disk.recorded {
            assert!(disk.recorded || disk.is_old() || disk.is_new(), "{disk:?}");
            return;
        }
        let (state, act) = State::resume(plan, disk.committed);
        explore(plan, disk, state, act, crashes - 1, seen);
    }

    type Decide = fn(State, Event) -> (State, Act);

    /// Where it was already, and the protocol that is looked at.
    struct Seen {
        decide: Decide,
        states: HashSet<(Disk, String, u32)>,
    }

    /// How many states were seen. Panics where one is wrong.
    fn explored(decide: Decide) -> usize {
        let plans = (0..4).flat_map(|directories| (0..5).map(move |swaps| (directories, swaps)));
        let states = plans.map(|(directories, swaps)| {
            let plan = Plan { directories, swaps };
            let (state, act) = State::begin(plan);
            let states = HashSet::new();
            let mut seen = Seen { decide, states };
            explore(plan, Disk::new(plan), state, act, 2, &mut seen);
            seen.states.len()
        });
        states.sum()
    }

    #[test]
    fn whatever_fails_and_wherever_it_crashes_the_tree_is_old_or_new_in_the_end() {
        // The way back from every one of them was walked.
        let states = explored(decide);
        assert!(states > 1_500, "{states}");
    }

    #[test]
    fn a_protocol_that_is_wrong_in_one_place_is_noticed() {
        let never_uncommits: Decide = |state, event| match decide(state, event) {
            (next, Act::Uncommit) => decide(next, Event::Done),
            right => right,
        };
        let forgets_the_last: Decide = |state, event| match decide(state, event) {
            (next, Act::UndoSwap(0)) => decide(next, Event::Done),
            right => right,
        };
        let commits_early: Decide = |state, event| match decide(state, event) {
            (next, Act::Swap(1)) => (next, Act::Commit),
            right => right,
        };
        for wrong in [never_uncommits, forgets_the_last, commits_early] {
            let noticed = std::panic::catch_unwind(|| explored(wrong));
            assert!(noticed.is_err());
        }
    }

    #[test]
    fn without_failures_it_goes_forward_and_recovery_without_failures_ends() {
        let plan = Plan {
            directories: 2,
            swaps: 3,
        };
        for (start, expected) in [
            (State::begin(plan), Outcome::Applied),
            (State::resume(plan, true), Outcome::Applied),
            (State::resume(plan, false), Outcome::RolledBack),
        ] {
            let (mut state, mut act) = start;
            let mut steps = 0;
            while !matches!(act, Act::Finish(_)) {
                (state, act) = decide(state, Event::Done);
                steps += 1;
                assert!(steps < 20);
            }
            assert_eq!(act, Act::Finish(expected));
        }
    }
}
