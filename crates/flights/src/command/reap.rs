//! `flights reap`: removes what runs that were killed have left, on this machine and on the engine.

use crate::flight;
use crate::show::{self, Format};
use crate::state;
use flightproof_core::{Exit, Refusal};
use flightproof_session::SessionCode;
use flightproof_session::docker::{Endpoint, Engine, has_records};

/// Removes sessions of dead owners. One that lives is never touched.
///
/// # Errors
/// What cannot be removed; an engine that cannot be reached although sessions were opened on one.
pub(super) fn run(format: Format) -> Result<Exit, Refusal> {
    let state = state::directory()?;
    let mut removed = flight::reap_here(&state)?;
    let engine = match Endpoint::discover().and_then(|endpoint| Engine::connect(&endpoint)) {
        Ok(engine) => {
            removed.extend(flight::reap_engine(&engine, &state)?);
            Some(flight::describe(&engine))
        }
        Err(error) if error.code == SessionCode::EngineMissing && !has_records(&state)? => None,
        Err(error) => return Err(error.into()),
    };
    flight::settle(&state)?;
    match format {
        Format::Json => show::print(
            &serde_json::json!({
                "schema": "flightproof/reap/1", "removed": removed, "engine": engine,
            })
            .to_string(),
        ),
        Format::Human => {
            for line in &removed {
                show::print(line);
            }
            let where_to = engine.map_or_else(
                || "this machine; no container engine answers".to_owned(),
                |engine| format!("this machine and engine {engine}"),
            );
            show::print(&format!("{} removed; looked at {where_to}", removed.len()));
        }
    }
    Ok(Exit::Passed)
}
