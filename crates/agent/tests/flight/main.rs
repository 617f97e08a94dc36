//! A scripted stand-in for an agent program, run as a real process under the run's machine.

#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

mod deaths;
mod ledger;
mod process;
mod scene;
mod shapes;
