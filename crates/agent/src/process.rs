//! One agent program as its run sees it: what it printed, how it ended, how long it is waited for.

use crate::run::Event;
use crate::{AgentRefusal, Launch};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// By itself, with this exit status.
    Exited(i32),
    /// By a signal that was not ours.
    Signalled(i32),
    /// It was still running, or something it left behind was, and was ended by us.
    Overdue,
    /// Its session ended before it did. What it did since is not known.
    Lost,
}

/// What a process printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub ending: Ending,
    /// Everything it printed on standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// How many bytes it printed on standard error. Their text is nobody's business here.
    pub stderr_bytes: u64,
    /// Whether it printed more than is read.
    pub overflow: bool,
}

/// How long to wait for a process.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until it is interrupted.
    pub wall: Duration,
    /// From one signal to the next: interrupt, terminate, kill. An interrupted program may still
    /// give a result; a terminated one does not.
    pub grace: Duration,
}

/// Runs an agent program to its end, in the session that is its place.
pub trait Program {
    /// Runs it, and tells what happens on the way: [`Event::Started`] and
    /// [`Event::DeadlinePassed`]. Where `tell` says no, a program that still runs is ended at once, as
    /// after its deadline. Who can only tell afterwards, as of what ran in a session, has nothing to end.
    ///
    /// # Errors
    /// `SPAWN_FAILED`: nothing ran. Everything else is an [`Output`].
    fn run(
        &mut self,
        launch: &Launch,
        patience: Patience,
        tell: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Output, AgentRefusal>;
}
