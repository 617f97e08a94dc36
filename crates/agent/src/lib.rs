//! Native agent programs under control: limits that no task can lift, one strict reading of what a
//! run has cost, a run that is never started twice, one counted way to the provider, and a loop
//! that repairs and ends.
//!
//! What an agent prints is data. Its text never leaves this crate; bounded numbers do.
#![forbid(unsafe_code)]

mod accounting;
mod binary;
mod code;
mod document;
#[doc(hidden)]
pub mod fuzzing;
mod hold;
mod instructions;
mod launch;
mod ledger;
mod limits;
mod money;
mod order;
mod pilot;
mod process;
mod profile;
pub mod proxy;
mod records;
pub mod repair;
pub mod run;
mod unmetered;

pub use accounting::{Accounting, ModelUse, Spend, Tokens, check_result, check_run};
pub use binary::{Binary, Version};
pub use code::{AgentCode, AgentError, AgentRefusal};
pub use hold::{Amount, HoldEffect, HoldError, Holds, RunKey};
pub use instructions::Instructions;
pub use launch::{Launch, Task};
pub use ledger::LedgerHolds;
pub use limits::{Limits, Metering};
pub use order::Order;
pub use pilot::{Pilot, Records, Report, Room, recover};
pub use process::{Ending, Output, Patience, Program};
pub use profile::{Format, Profile, Provider};
pub use records::{LoopEnd, LoopLock, LoopRecord, RunFolder};
