//! `flights doctor`: can this machine fly?

use super::input;
use crate::flight::{self, Backend, Host};
use crate::show::{self, Format};
use crate::state;
use flightproof_core::{Exit, Refusal};
use flightproof_session::docker::{Endpoint, Engine};
use serde::Serialize;

#[derive(Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    /// Flights here do without it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// Runs every check and says how to mend what is missing. Opening and closing a real session is
/// one of them, so that a machine that passes can fly.
///
/// # Errors
/// Never; what is missing is in the list and in the exit status.
pub(super) fn run(format: Format) -> Result<Exit, Refusal> {
    let checks = [
        check(
            "git",
            state::program("git", "git").map(|p| input::shown(&p)),
        ),
        check(
            "bubblewrap",
            state::program("bwrap", "bubblewrap").map(|p| input::shown(&p)),
        ),
        check(
            "toolchain",
            state::toolchain(None).map(|p| input::shown(&p)),
        ),
        check("state", state::directory().map(|p| input::shown(&p))),
        check("session", session()),
        Check {
            optional: true,
            ..check("engine", engine())
        },
        check("leftovers", leftovers()),
    ];
    match format {
        Format::Json => show::print(
            &serde_json::json!({"schema": "flightproof/doctor/1", "checks": checks}).to_string(),
        ),
        Format::Human => checks.iter().for_each(|c| show::print(&line(c))),
    }
    let ready = checks.iter().all(|c| c.ok || c.optional);
    Ok(if ready {
        Exit::Passed
    } else {
        Exit::Environment
    })
}

fn check(name: &'static str, found: Result<String, Refusal>) -> Check {
    match found {
        Ok(detail) => Check {
            name,
            ok: true,
            optional: false,
            detail,
            fix: None,
        },
        Err(refusal) => Check {
            name,
            ok: false,
            optional: false,
            detail: refusal.to_string(),
            fix: Some(refusal.explanation.todo.to_owned()),
        },
    }
}

const HERE: Backend<'_> = Backend::Local { toolchain: None };

fn session() -> Result<String, Refusal> {
    let host = Host::prepare(HERE)?;
    let attestation = host.try_session()?;
    Ok(format!(
        "{} on Linux {}, {} limits read back, {} forbidden acts denied, nothing left after closing",
        attestation.sandbox,
        attestation.kernel,
        attestation.readings.len(),
        attestation.probes.len()
    ))
}

/// The engine that `run --live` would fly on, and the image it would fly in.
fn engine() -> Result<String, Refusal> {
    let engine = Engine::connect(&Endpoint::discover()?)?;
    let image = flight::only_image(&engine)?;
    Ok(format!(
        "{}, image sha256:{image}",
        flight::describe(&engine)
    ))
}

/// Deals with what killed runs left, whatever else is missing here.
fn leftovers() -> Result<String, Refusal> {
    let lines = flight::recover_here()?;
    Ok(match lines.as_slice() {
        [] => "nothing was left by earlier runs".to_owned(),
        lines => lines.join("; "),
    })
}

fn line(check: &Check) -> String {
    let mark = match (check.ok, check.optional) {
        (true, _) => "ok",
        (false, true) => "absent",
        (false, false) => "MISSING",
    };
    let mut text = format!("{mark:<8} {:<11} {}", check.name, check.detail);
    if let Some(fix) = &check.fix {
        text.push_str("\n         fix: ");
        text.push_str(fix);
    }
    text
}
