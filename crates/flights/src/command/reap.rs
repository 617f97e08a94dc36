//! `flights reap`: removes what runs that were killed have left, on this machine and on the engine.

use crate::flight;
use crate::show::{self, Format};
use crate::state;
use flightproof_core::{Exit, Refusal, escape};
use flightproof_session::SessionCode;
use flightproof_session::docker::{self, Endpoint, Engine, has_records};
use flightproof_session::record::{self, Left};

/// Removes sessions of dead owners. One that lives is never touched.
///
/// # Errors
/// What cannot be removed; an engine that cannot be reached although sessions were opened on one. What
/// stands of dead owners because another reaper has it is no error, and nothing to be content with.
pub(super) fn run(format: Format) -> Result<Exit, Refusal> {
    let state = state::directory()?;
    let mut removed = flight::reap_here(&state)?;
    let mut left = record::left(&state)?;
    let engine = match Endpoint::discover().and_then(|endpoint| Engine::connect(&endpoint)) {
        Ok(engine) => {
            removed.extend(flight::reap_engine(&engine, &state)?);
            left.extend(docker::left(&engine, &state)?);
            Some(flight::describe(&engine))
        }
        Err(error) if error.code == SessionCode::EngineMissing && !has_records(&state)? => None,
        Err(error) => return Err(error.into()),
    };
    flight::settle(&state)?;
    let stands: Vec<String> = left.iter().map(stands).collect();
    match format {
        Format::Json => show::print(
            &serde_json::json!({
                "schema": "flightproof/reap/1", "removed": removed, "left": stands, "engine": engine,
            })
            .to_string(),
        ),
        Format::Human => {
            for line in removed.iter().chain(&stands) {
                show::print(line);
            }
            let where_to = engine.map_or_else(
                || "this machine; no container engine answers".to_owned(),
                |engine| format!("this machine and engine {engine}"),
            );
            let left = match stands.len() {
                0 => String::new(),
                left => format!(", {left} left"),
            };
            let removed = removed.len();
            show::print(&format!("{removed} removed{left}; looked at {where_to}"));
        }
    }
    Ok(match left.iter().any(|left| left.dead) {
        true => Exit::Environment,
        false => Exit::Passed,
    })
}

fn stands(left: &Left) -> String {
    let why = match left.dead {
        true => "left by a run that was killed, and it stands: another program is removing it",
        false => "it stands: its owner is not of this pid namespace, and may live",
    };
    format!("{}: {why}", escape(&left.id, 40))
}
