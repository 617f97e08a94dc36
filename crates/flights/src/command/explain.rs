//! `flights explain`: what a refusal code means, or a word that stands beside a line.

use crate::show::{self, Format};
use crate::{FlightsCode, near, registry};
use flightproof_certifier::mutation::Silence;
use flightproof_certifier::{CertifierCode, LineClass};
use flightproof_core::{Code as _, Escaped, Exit, Explanation, Refusal};

/// Explains one code, one kind of code that no mutant judges or one class of lines, or lists all codes.
///
/// # Errors
/// `UNKNOWN_CODE`.
pub(super) fn run(code: Option<&str>, format: Format) -> Result<Exit, Refusal> {
    let chosen = match code {
        None => registry::all(),
        Some(code) => registry::matching(code),
    };
    let kinds = match code {
        Some(code) => match Kind::named(code) {
            Some(kind) => vec![kind],
            None => kinds_of(&chosen),
        },
        None => Vec::new(),
    };
    if let (Some(code), [], []) = (code, chosen.as_slice(), kinds.as_slice()) {
        let told = Escaped(code.as_bytes());
        let mut near = registry::near(code);
        let names = Kind::all().map(|kind| (kind.name, kind.name));
        near.extend(near::nearest(&code.to_ascii_lowercase(), names));
        return Err(match near.as_slice() {
            [] => FlightsCode::UnknownCode.refuse(told),
            _ => FlightsCode::UnknownCode
                .refuse(format_args!("{told}; did you mean {}?", near.join(" or "))),
        }
        .into());
    }
    match format {
        Format::Json => show::print(&json(&chosen, &kinds)),
        Format::Human if code.is_none() => {
            chosen
                .iter()
                .for_each(|e| show::row(&format!("{:<44} {}", e.code, e.happened)));
        }
        Format::Human => {
            chosen.iter().for_each(|e| show::print(&text(e)));
            kinds.iter().for_each(|kind| show::print(&kind_text(kind)));
        }
    }
    Ok(Exit::Passed)
}

/// Why a line carries no mutant, or what class it has.
struct Kind {
    name: &'static str,
    seen: &'static str,
    todo: Option<&'static str>,
}

impl From<Silence> for Kind {
    fn from(why: Silence) -> Self {
        Self {
            name: why.name(),
            seen: why.seen(),
            todo: why.todo(),
        }
    }
}

impl Kind {
    /// Every one. What is a reason and a class is told as the reason.
    fn all() -> impl Iterator<Item = Self> {
        let classes = LineClass::ALL.map(|class| Self {
            name: class.name(),
            seen: class.seen(),
            todo: None,
        });
        Silence::ALL.map(Self::from).into_iter().chain(classes)
    }

    fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name.eq_ignore_ascii_case(name))
    }
}

/// The kinds that a code is refused for.
fn kinds_of(chosen: &[&Explanation]) -> Vec<Kind> {
    let unjudged = CertifierCode::UnjudgedCode.explanation().code;
    let kinds = Silence::ALL
        .into_iter()
        .filter(|kind| kind.must_be_waived() && chosen.iter().any(|e| e.code == unjudged));
    kinds.map(Kind::from).collect()
}

fn kind_text(kind: &Kind) -> String {
    format!(
        "{}\n  what was seen  {}\n  what to do     {}",
        kind.name,
        kind.seen,
        kind.todo.unwrap_or("nothing: nothing is refused for it"),
    )
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

fn json(chosen: &[&Explanation], kinds: &[Kind]) -> String {
    let all: Vec<_> = chosen
        .iter()
        .map(|e| {
            serde_json::json!({
                "code": e.code, "happened": e.happened, "why": e.why, "todo": e.todo,
                "fault": e.fault, "exit": e.fault.exit().code(),
            })
        })
        .collect();
    let mut document = serde_json::json!({"schema": "flightproof/explain/1", "codes": all});
    if !kinds.is_empty() {
        let kinds = kinds.iter().map(
            |kind| serde_json::json!({"kind": kind.name, "seen": kind.seen, "todo": kind.todo}),
        );
        document["kinds"] = kinds.collect();
    }
    document.to_string()
}
