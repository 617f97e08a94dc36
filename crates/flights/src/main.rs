//! The `flights` program. Started as `flights __runner` or `flights __stage` it is a part of a
//! session; otherwise it is the command people run.

use flightproof_session::local::{STAGE, stage_main};
use std::process::ExitCode;

fn main() -> ExitCode {
    // The parts of a session come first: they must do nothing that the command does.
    match std::env::args_os()
        .nth(1)
        .as_deref()
        .and_then(|a| a.to_str())
    {
        Some("__runner") => flightproof_runner::main(),
        Some(STAGE) => stage_main(std::env::args_os().skip(2)),
        _ => ExitCode::from(flightproof_flights::command::main().code()),
    }
}
