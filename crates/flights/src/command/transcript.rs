//! `flights show`, `diff` and `transcript`: recordings, looked at and carried.

use super::{input, key, run};
use crate::FlightsCode;
use crate::comparison::{self, About, Comparison, Difference};
use crate::meter::size;
use crate::near;
use crate::show::{self, Form, Format, Tone};
use crate::timeline::{self, Ending, Step};
use crate::transcript::{self, Answer, Transcript};
use clap::{Args, Subcommand};
use flightproof_certifier::key::PublicKey;
use flightproof_core::{Decision, Digest, Exit, Refusal, Verdict, escape};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The forms of a timeline.
pub(super) const SHOW_FORMS: &[Form] = &[Form::Human, Form::Json, Form::Jsonl];

/// `flights show`.
#[derive(Args)]
pub(super) struct ShowArgs {
    /// The recording: its directory, the file it was exported to, or the name of a plan here.
    transcript: PathBuf,
    /// Public key of its recorder (repeatable); default: every *.pub beside it.
    #[arg(long = "key", value_name = "PUB")]
    keys: Vec<PathBuf>,
    /// Every run of every mutant, for people too: otherwise a mutant is one line.
    #[arg(long)]
    all: bool,
    /// Show the exchange whose question is on this line, in full.
    #[arg(long, value_name = "N")]
    line: Option<u64>,
}

/// `flights diff`.
#[derive(Args)]
pub(super) struct DiffArgs {
    /// A recording: its directory, the file it was exported to, or the name of a plan here.
    left: PathBuf,
    /// The other.
    right: PathBuf,
    /// Public key of a recorder (repeatable); default: every *.pub beside each.
    #[arg(long = "key", value_name = "PUB")]
    keys: Vec<PathBuf>,
}

/// `flights transcript`.
#[derive(Subcommand)]
pub(super) enum TranscriptCommand {
    /// Show a recording as a timeline.
    Show(ShowArgs),
    /// Say what changed in meaning between two recordings.
    Diff(DiffArgs),
    /// Write a verified recording as one file. The same recording is always the same file.
    Export {
        /// The recording.
        transcript: PathBuf,
        /// The file. Replaced in one step if it exists.
        #[arg(short, long, alias = "out", value_name = "FILE")]
        output: PathBuf,
        /// Public key of its recorder (repeatable); default: every *.pub beside it.
        #[arg(long = "key", value_name = "PUB")]
        keys: Vec<PathBuf>,
    },
    /// Verify a recording that arrived as a file, and lay it out as a directory.
    Import {
        /// The file.
        file: PathBuf,
        /// Where to. It must not exist; its parent must.
        #[arg(short, long, alias = "out", value_name = "DIR")]
        output: PathBuf,
        /// Public key of the recorder you trust (repeatable).
        #[arg(long = "key", value_name = "PUB", required = true)]
        keys: Vec<PathBuf>,
    },
}

/// Runs a command of the group.
///
/// # Errors
/// As the command.
pub(super) fn run(command: &TranscriptCommand, form: Form) -> Result<Exit, Refusal> {
    match command {
        TranscriptCommand::Show(args) => show(args, form),
        TranscriptCommand::Diff(args) => diff(args, form.messages()),
        TranscriptCommand::Export {
            transcript,
            output,
            keys,
        } => {
            input::parent(output)?;
            input::apart(output, &[transcript.as_ref()])?;
            let transcript = open(transcript, keys)?;
            let bytes = transcript::pack(&transcript)?;
            input::write(output, &bytes, 0o644)?;
            let told = format!(
                "{} exchanges as one file of {}: {}",
                transcript.end.exchanges,
                size(bytes.len() as u64),
                Digest::of(&bytes)
            );
            accepted(&transcript, told, form.messages());
            Ok(Exit::Passed)
        }
        TranscriptCommand::Import { file, output, keys } => {
            input::parent(output)?;
            let transcript = open(file, keys)?;
            transcript::lay_out(&transcript, output)?;
            let told = format!(
                "{} exchanges, signed by {}, in {}",
                transcript.end.exchanges,
                transcript.recorder,
                input::shown(output)
            );
            accepted(&transcript, told, form.messages());
            Ok(Exit::Passed)
        }
    }
}

fn accepted(transcript: &Transcript, told: String, format: Format) {
    let flight = escape(&transcript.header.flight, 80);
    let detail = format!("{flight}: {told}");
    show::verdict(
        &Verdict::passed(Decision::Accepted, "transcript", detail),
        format,
    );
}

/// Reads and verifies a recording.
fn open(path: &Path, keys: &[PathBuf]) -> Result<Transcript, Refusal> {
    let Err(absent) = std::fs::symlink_metadata(path) else {
        return Transcript::open(path, &recorders(path, keys)?);
    };
    let name = path.to_str().filter(|text| !text.contains(['/', '.']));
    let Some(name) = name else {
        return Err(input::unread(path, &absent));
    };
    let recording = run::recording(Path::new("."), name);
    if std::fs::symlink_metadata(&recording).is_ok() {
        return Transcript::open(&recording, &recorders(&recording, keys)?);
    }
    let question = near::question(name, run::recorded(Path::new(".")));
    let why = format!("no such file, and no recording of this name here{question}");
    Err(input::unreadable(path, why))
}

fn recorders(path: &Path, keys: &[PathBuf]) -> Result<Vec<PublicKey>, Refusal> {
    if !keys.is_empty() {
        return keys.iter().map(|path| key::public(path)).collect();
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let mut beside: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "pub"))
        .collect();
    beside.sort();
    if beside.is_empty() {
        return Err(FlightsCode::RecorderUnknown
            .refuse(format!(
                "no --key, and no *.pub in {}",
                input::shown(folder)
            ))
            .into());
    }
    beside.iter().map(|path| key::public(path)).collect()
}

/// Shows a recording.
///
/// # Errors
/// What a recording is refused for; `LINE_MISSING`.
pub(super) fn show(args: &ShowArgs, form: Form) -> Result<Exit, Refusal> {
    let transcript = open(&args.transcript, &args.keys)?;
    if let Some(line) = args.line {
        show::print(&one(&transcript, line, form)?);
        return Ok(Exit::Passed);
    }
    match form {
        Form::Human => people(&transcript, args.all),
        Form::Jsonl => {
            let mut text = header(&transcript).to_string();
            for step in timeline::steps(&transcript) {
                text.push('\n');
                text.push_str(&serde_json::to_string(&step).unwrap_or_default());
            }
            show::print(&text);
        }
        _ => {
            let mut document = header(&transcript);
            document["steps"] = timeline::steps(&transcript)
                .map(|step| json!(step))
                .collect();
            show::print(&document.to_string());
        }
    }
    Ok(Exit::Passed)
}

fn header(transcript: &Transcript) -> Value {
    let (header, end) = (&transcript.header, &transcript.end);
    json!({
        "schema": "flightproof/timeline/1", "flight": header.flight, "version": header.version,
        "plan": header.plan, "fixture": header.fixture, "exchanges": end.exchanges,
        "verdict": end.verdict, "predicate": end.predicate, "recorder": transcript.recorder,
    })
}

fn people(transcript: &Transcript, all: bool) {
    let columns = show::columns();
    let mut text = String::new();
    let head = format!("{:>6}  {:<11} {:<52} outcome", "line", "stage", "act");
    let _ = writeln!(text, "{}", show::cut(&head, columns));
    let mut steps = timeline::steps(transcript).peekable();
    while let Some(mut step) = steps.next() {
        let mut runs = 1;
        while !all && let Some(next) = steps.next_if(|next| same_mutant(&step, next)) {
            runs += 1;
            step = Step {
                line: step.line,
                ..next
            };
        }
        if runs > 1 {
            step.act = match step.mutant {
                Some(0) | None => format!("no mutant, {runs} cases"),
                Some(mutant) => format!("mutant {mutant}, {runs} cases"),
            };
        }
        text.push_str(&row(&step, columns));
        text.push('\n');
    }
    let (header, end) = (&transcript.header, &transcript.end);
    let _ = write!(
        text,
        "{}: {} after {} exchanges{}\n  recording {}, signed by {}",
        escape(&header.flight, 80),
        escape(&end.verdict, 80),
        end.exchanges,
        end.predicate
            .map_or_else(String::new, |p| format!("; predicate {p}")),
        escape(&header.version, 20),
        transcript.recorder
    );
    show::print(&text);
}

fn same_mutant(step: &Step, next: &Step) -> bool {
    step.mutant.is_some() && step.mutant == next.mutant && step.end != Ending::Refused
}

fn row(step: &Step, columns: usize) -> String {
    let line = format!(
        "{:>6}  {:<11} {:<52} {}",
        step.line,
        step.stage,
        show::cut(&step.act, 52),
        step.outcome
    );
    let line = show::cut(&line, columns);
    match step.end {
        Ending::Refused => show::paint(&line, Tone::Bad),
        _ => line,
    }
}

/// One exchange in full. Bytes stay outside, as digests.
fn one(transcript: &Transcript, line: u64, form: Form) -> Result<String, Refusal> {
    let exchange = transcript
        .exchanges
        .iter()
        .find(|e| e.line + 1 == line)
        .ok_or_else(|| Refusal::from(FlightsCode::LineMissing.refuse(format!("line {line}"))))?;
    let (word, answer) = match &exchange.answer {
        Answer::Ok(value) => ("ok", value),
        Answer::Fail(value) => ("fail", value),
    };
    if form != Form::Human {
        return Ok(json!({
            "schema": "flightproof/exchange/1", "line": line, "op": exchange.op,
            "asked": exchange.input, "end": word, "answer": answer,
        })
        .to_string());
    }
    let mut text = format!("line {line}: {}", escape(&exchange.op, 60));
    for (name, value) in [("asked", &exchange.input), (word, answer)] {
        let _ = write!(text, "\n{name}");
        let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
        for row in pretty.lines() {
            let _ = write!(text, "\n  {}", escape(row, 2000).replace("\\\\", "\\"));
        }
    }
    Ok(text)
}

/// Compares two recordings.
///
/// # Errors
/// What a recording is refused for; `TRANSCRIPTS_DIFFER` is printed with the differences.
pub(super) fn diff(args: &DiffArgs, format: Format) -> Result<Exit, Refusal> {
    let left = open(&args.left, &args.keys)?;
    let right = open(&args.right, &args.keys)?;
    let compared = comparison::compare(&left, &right);
    let refusal = (!compared.differences.is_empty()).then(|| {
        let counts = [
            About::Request,
            About::Environment,
            About::Candidate,
            About::Verdict,
        ]
        .map(|about| {
            compared
                .differences
                .iter()
                .filter(|d| d.about == about)
                .count()
        });
        Refusal::from(FlightsCode::TranscriptsDiffer.refuse(format!(
            "{} of {}: {} request, {} environment, {} candidate, {} verdict",
            compared.differences.len(),
            show::count(compared.places, "place"),
            counts[0],
            counts[1],
            counts[2],
            counts[3]
        )))
    });
    match format {
        Format::Json => show::print(&document(&compared, refusal.as_ref()).to_string()),
        Format::Human => {
            compared
                .differences
                .iter()
                .for_each(|d| show::print(&difference(d)));
            match &refusal {
                Some(refusal) => show::refusal("transcript", refusal, format),
                None => show::print(&same(&compared)),
            }
        }
    }
    Ok(refusal.map_or(Exit::Passed, |refusal| refusal.exit()))
}

fn document(compared: &Comparison, refusal: Option<&Refusal>) -> Value {
    let mut document = json!(compared);
    document["schema"] = json!("flightproof/diff/1");
    document["code"] = json!(refusal.map(Refusal::code));
    document
}

fn difference(d: &Difference) -> String {
    let about = json!(d.about);
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!(
        "{:<11} {}\n  - {}\n  + {}",
        about.as_str().unwrap_or_default(),
        d.place,
        side(&d.left),
        side(&d.right)
    )
}

fn same(compared: &Comparison) -> String {
    let how = if compared.identical {
        "the same bytes"
    } else {
        "the same in meaning"
    };
    format!(
        "{how}: {} compared, {} values that differ by design held against their type",
        show::count(compared.places, "place"),
        compared.aliased
    )
}
