//! What people and programs read. Data goes to standard output, progress to standard error.

use flightproof_core::{Decision, Exit, Refusal, Verdict};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Lines for people.
    Human,
    /// One JSON document.
    Json,
}

/// Says on standard error which stage is under way and how long each took.
pub struct Progress {
    quiet: bool,
    started: Instant,
    stage: &'static str,
}

impl Progress {
    /// Progress for people, or none.
    pub fn new(speak: Speak) -> Self {
        Self {
            quiet: speak == Speak::Nothing,
            started: Instant::now(),
            stage: "plan",
        }
    }

    /// The stage under way.
    pub fn stage(&self) -> &'static str {
        self.stage
    }

    /// A stage begins.
    pub fn begin(&mut self, stage: &'static str) {
        self.stage = stage;
        self.started = Instant::now();
    }

    /// The stage under way has ended well.
    pub fn done(&self, detail: impl std::fmt::Display) {
        if !self.quiet {
            let line = format!(
                "  {:<11} {detail}  ({})\n",
                self.stage,
                seconds(self.started.elapsed())
            );
            // Progress that cannot be shown is no reason to fail a flight.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

/// Whether progress is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speak {
    /// Every stage, on standard error.
    Stages,
    /// Nothing.
    Nothing,
}

/// A duration as people read it: `0.04 s`.
pub fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

/// Prints a verdict to standard output.
pub fn verdict(verdict: &Verdict, format: Format) {
    match format {
        Format::Json => print(&serde_json::to_string(verdict).unwrap_or_default()),
        Format::Human => print(&human(verdict)),
    }
}

/// Prints a refusal that is no verdict about a candidate, such as a wrong command line.
pub fn refusal(stage: &str, refusal: &Refusal, format: Format) {
    verdict(&Verdict::refused(stage, refusal), format);
}

/// What an earlier run left and this one dealt with. Always said, for a program to log as well.
pub fn recovered(lines: &[String]) {
    for line in lines {
        let _ = writeln!(std::io::stderr(), "  recovered   {line}");
    }
}

/// Whether something that should have been printed was not.
static UNPRINTED: AtomicBool = AtomicBool::new(false);

/// A line to standard output. A reader that went away ends the program's output, not its work; any
/// other failure shows in the exit status.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            UNPRINTED.store(true, Ordering::Relaxed);
        }
        _ => {}
    }
}

/// The exit status after everything was printed: success only if it was.
pub fn ended(exit: Exit) -> Exit {
    match exit {
        Exit::Passed if UNPRINTED.load(Ordering::Relaxed) => Exit::Environment,
        other => other,
    }
}

fn human(verdict: &Verdict) -> String {
    let word = match verdict.verdict {
        Decision::Admitted => "ADMITTED",
        Decision::Held => "HELD",
        Decision::Refused => "REFUSED",
        Decision::Accepted => "ACCEPTED",
    };
    let mut text = match &verdict.code {
        Some(code) => format!("{word} at {}: {code}: {}", verdict.stage, verdict.detail),
        None => format!("{word}: {}", verdict.detail),
    };
    for note in &verdict.notes {
        text.push_str("\n  | ");
        text.push_str(note);
    }
    if let Some(hint) = &verdict.hint {
        text.push_str("\n  hint: ");
        text.push_str(hint);
    }
    if let Some(certificate) = &verdict.certificate {
        text.push_str("\n  certificate ");
        text.push_str(certificate);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlightsCode;

    #[test]
    fn a_refusal_is_one_line_with_its_code_and_a_hint_below() {
        let refusal = Refusal::from(FlightsCode::KeyMissing.refuse("no file a/b"))
            .with_notes(["x\u{1b}[0m".into()]);
        let text = human(&Verdict::refused("plan", &refusal));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "REFUSED at plan: flights/KEY_MISSING: no file a/b"
        );
        assert_eq!(lines[1], "  | x\\u{1b}[0m");
        assert!(lines[2].starts_with("  hint: make one with `flights key new`"));
    }
}
