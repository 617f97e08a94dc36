use serde::{Deserialize, Serialize};

/// Every exit status of the `flights` program. Part of its stable interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Exit {
    /// Admitted, held, or passed.
    Passed = 0,
    /// The command line was wrong.
    Usage = 2,
    /// There was nothing to run.
    NothingRan = 4,
    /// What ran passed, but something required did not run.
    Incomplete = 5,
    /// A flight failed or the candidate was refused.
    Refused = 10,
    /// Evidence or a transcript does not match.
    Mismatch = 11,
    /// Hostile input was admitted.
    HostileAdmitted = 12,
    /// A policy said no.
    Policy = 13,
    /// The configuration is invalid, or a plan that can never succeed.
    Configuration = 20,
    /// Something the machine must have is missing.
    Environment = 21,
    /// A format newer than this program reads.
    TooNew = 22,
    /// A deadline passed.
    Deadline = 30,
    /// A bug of ours.
    OurBug = 70,
    /// Somebody stopped it with Ctrl-C: 128 and the number of SIGINT, as shells count.
    Interrupted = 130,
}

impl Exit {
    /// The number the process ends with.
    pub const fn code(self) -> u8 {
        self as u8
    }
}
