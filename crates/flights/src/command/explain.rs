//! `flights explain`: what a refusal code means.

use crate::show::{self, Format};
use crate::{FlightsCode, registry};
use flightproof_core::{Escaped, Exit, Explanation, Refusal};

/// Explains one code, or lists all.
///
/// # Errors
/// `UNKNOWN_CODE`.
pub(super) fn run(code: Option<&str>, format: Format) -> Result<Exit, Refusal> {
    let chosen = match code {
        None => registry::all(),
        Some(code) => registry::matching(code),
    };
    if let (Some(code), []) = (code, chosen.as_slice()) {
        let told = Escaped(code.as_bytes());
        let near = registry::near(code);
        return Err(match near.as_slice() {
            [] => FlightsCode::UnknownCode.refuse(told),
            _ => FlightsCode::UnknownCode
                .refuse(format_args!("{told}; did you mean {}?", near.join(" or "))),
        }
        .into());
    }
    match format {
        Format::Json => show::print(&json(&chosen)),
        Format::Human if code.is_none() => {
            chosen
                .iter()
                .for_each(|e| show::row(&format!("{:<44} {}", e.code, e.happened)));
        }
        Format::Human => chosen.iter().for_each(|e| show::print(&text(e))),
    }
    Ok(Exit::Passed)
}

fn text(e: &Explanation) -> String {
    format!(
        "{}\n  what happened  {}\n  why refused    {}\n  what to do     {}\n  exit status    {} ({})",
        e.code,
        e.happened,
        e.why,
        e.todo,
        e.fault.exit().code(),
        serde_json::to_string(&e.fault)
            .unwrap_or_default()
            .trim_matches('"'),
    )
}

fn json(chosen: &[&Explanation]) -> String {
    let all: Vec<_> = chosen
        .iter()
        .map(|e| {
            serde_json::json!({
                "code": e.code, "happened": e.happened, "why": e.why, "todo": e.todo,
                "fault": e.fault, "exit": e.fault.exit().code(),
            })
        })
        .collect();
    serde_json::json!({"schema": "flightproof/explain/1", "codes": all}).to_string()
}
