//! `flights doctor`: can this machine fly?

use super::day::Date;
use super::input;
use crate::flight::{self, Backend, Host};
use crate::show::{self, Format};
use crate::{FlightsCode, state};
use flightproof_core::{Exit, Refusal};
use flightproof_ledger::{Ledger, UtcDay};
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
    let mut checks = [
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
        check("clock", clock()),
        check("session", session()),
        Check {
            optional: true,
            ..check("engine", engine())
        },
        check("leftovers", leftovers()),
    ];
    for at in 1..checks.len() {
        if let (before, [own, ..]) = checks.split_at_mut(at) {
            same_cause(before, own);
        }
    }
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

/// What is missing for the reason that an earlier check tells is told of once.
fn same_cause(before: &[Check], own: &mut Check) {
    let told = before.iter().find(|c| !c.ok && c.detail == own.detail);
    if let Some(told) = told.filter(|_| !own.ok) {
        own.detail = format!("for the same reason as {}", told.name);
        own.fix = None;
    }
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

/// The earliest time that a right clock shows to this program: 2026-11-01.
const RELEASED: u64 = 1_793_491_200;

fn clock() -> Result<String, Refusal> {
    let now = state::unix_seconds();
    let folder = state::directory()?.join("ledger");
    let booked = match folder.join(Ledger::FILE).exists() {
        true => Some(Ledger::open(&folder)?.spending(now)?.day),
        false => None,
    };
    plausible(now, booked)
}

/// Whether a clock may be right that shows `now` where money was last booked to a day.
fn plausible(now: u64, booked: Option<UtcDay>) -> Result<String, Refusal> {
    let wrong = |why: String| {
        let told = format!("it shows {}, {why}", show::instant(now));
        Err(FlightsCode::ClockWrong.refuse(told).into())
    };
    match booked.filter(|day| *day > UtcDay::of(now)) {
        Some(day) => wrong(format!("and money was booked to {}", Date(day))),
        None if now < RELEASED => wrong("which was before this program was made".to_owned()),
        None => Ok("not behind this program, nor what was booked".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_went_back_is_found_out() {
        let today = UtcDay::of(RELEASED);
        assert!(plausible(RELEASED, None).is_ok());
        assert!(plausible(RELEASED, Some(today)).is_ok());
        for (now, booked) in [
            (RELEASED - 1, None),
            (0, None),
            (RELEASED, Some(UtcDay(today.0 + 1))),
        ] {
            let refusal = plausible(now, booked).unwrap_err();
            assert_eq!(refusal.code(), "flights/CLOCK_WRONG", "{}", refusal.detail);
        }
    }
}
