//! `flights list`: the plans of a project, and what each shows.

use super::run::{live_recording, plans_below, recording, root};
use crate::plan::Plan;
use crate::show::{self, Form, Tone};
use clap::Args;
use flightproof_core::{Decision, Exit, Refusal, escape};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The forms of the list.
pub(super) const FORMS: &[Form] = &[Form::Human, Form::Json, Form::Jsonl];

/// Most bytes of a plan's sentence.
const MAX_ABOUT: usize = 400;

/// `flights list`.
#[derive(Args)]
pub(super) struct ListArgs {
    /// Directory that holds flights/.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

/// Lists the plans. One that cannot be read is listed with its refusal.
///
/// # Errors
/// `FILE_UNREADABLE` without the root, `NOTHING_TO_RUN`.
pub(super) fn run(args: &ListArgs, form: Form) -> Result<Exit, Refusal> {
    root(&args.root)?;
    let rows: Vec<Value> = plans_below(&args.root)?
        .iter()
        .map(|path| row(path, &args.root))
        .collect();
    let broken = rows.iter().find_map(|row| row["code"].as_str());
    match form {
        Form::Human => rows.iter().for_each(|row| show::print(&human(row))),
        Form::Jsonl => rows.iter().for_each(|row| show::print(&row.to_string())),
        _ => show::print(&json!({"schema": "flightproof/list/1", "plans": rows}).to_string()),
    }
    Ok(if broken.is_some() {
        Exit::Configuration
    } else {
        Exit::Passed
    })
}

fn row(path: &Path, root: &Path) -> Value {
    let name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
    match Plan::read(path) {
        Ok(plan) => json!({
            "name": plan.name, "about": plan.about,
            "expect": plan.expect.code.clone().unwrap_or_else(|| word(plan.expect.verdict).to_owned()),
            "recorded": recorded(root, &plan.name),
        }),
        Err(refused) => {
            let refusal = Refusal::from(refused);
            json!({"name": name, "code": refusal.code(), "detail": refusal.detail})
        }
    }
}

fn recorded(root: &Path, name: &str) -> bool {
    let mut places = [recording(root, name), live_recording(root, name)].into_iter();
    places.any(|place| place.join("transcript.jsonl").exists())
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Refused => "refused",
        _ => "held",
    }
}

fn human(row: &Value) -> String {
    let text = |name: &str| escape(row[name].as_str().unwrap_or_default(), MAX_ABOUT);
    if row["code"].is_string() {
        let told = format!("{:<28} {}: {}", text("name"), text("code"), text("detail"));
        return show::paint(&show::cut(&told, show::columns()), Tone::Bad);
    }
    let recorded = if row["recorded"] == true {
        "recorded"
    } else {
        "-"
    };
    let told = format!(
        "{:<28} {:<9} {:<32} {}",
        text("name"),
        recorded,
        text("expect"),
        text("about")
    );
    show::cut(&told, show::columns())
}
