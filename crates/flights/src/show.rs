//! What people and programs read. Data goes to standard output, progress to standard error.

use crate::flight::Seen;
pub(crate) use flightproof_core::counted as count;
use flightproof_core::{Decision, Exit, Refusal, Verdict, plain};
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How results are printed, by most commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    Human,
    /// One JSON document.
    Json,
}

/// How results are printed, in full: some commands know more forms than two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Lines for people.
    Human,
    /// One JSON document.
    Json,
    /// JSON, one line for each thing.
    Jsonl,
    /// JUnit's XML, as test reports.
    Junit,
    /// Annotations of GitHub's workflows.
    Github,
    /// SARIF 2.1.0, as code scanners.
    Sarif,
}

impl Form {
    /// The forms every command knows.
    pub const BASIC: &'static [Self] = &[Self::Human, Self::Json];

    /// The format of messages, for a command that knows these forms.
    ///
    /// # Errors
    /// `FORMAT_UNSUPPORTED`.
    pub fn among(self, known: &[Self]) -> Result<Format, Refusal> {
        if known.contains(&self) {
            return Ok(self.messages());
        }
        let names = |forms: &[Self]| {
            forms
                .iter()
                .map(|f| f.name())
                .collect::<Vec<_>>()
                .join(", ")
        };
        Err(crate::FlightsCode::FormatUnsupported
            .refuse(format!(
                "{}; this command has {}",
                self.name(),
                names(known)
            ))
            .into())
    }

    /// How refusals are printed in this form.
    pub fn messages(self) -> Format {
        match self {
            Self::Human => Format::Human,
            _ => Format::Json,
        }
    }

    fn name(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Notes which stage is under way, how long each took, and what was seen; and tells people.
pub struct Progress {
    voice: Voice,
    started: Instant,
    stage: &'static str,
    /// The stages that were finished.
    pub stages: Vec<StageTime>,
    /// What was seen on the way.
    pub seen: Seen,
}

/// A stage that was finished.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StageTime {
    /// Its name.
    pub stage: &'static str,
    /// What came of it.
    pub detail: String,
    /// How long it took. No part of any evidence.
    pub milliseconds: u64,
}

/// How progress is told.
pub enum Voice {
    /// Not at all.
    Nothing,
    /// One line on standard error for each finished stage, after this prefix.
    Lines(String),
    /// To somebody who shows the stage under way.
    Told(Box<dyn Fn(&'static str) + Send>),
}

impl Progress {
    /// Progress for people, or none.
    pub fn new(speak: Speak) -> Self {
        Self::with(match speak {
            Speak::Stages => Voice::Lines(String::new()),
            Speak::Nothing => Voice::Nothing,
        })
    }

    /// Progress with a voice.
    pub fn with(voice: Voice) -> Self {
        Self {
            voice,
            started: Instant::now(),
            stage: "plan",
            stages: Vec::new(),
            seen: Seen::default(),
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
        if let Voice::Told(tell) = &self.voice {
            tell(stage);
        }
    }

    /// Says now and then how far the stage under way got.
    pub fn ticker(&self) -> Ticker {
        let smart = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        Ticker {
            form: match (
                !matches!(self.voice, Voice::Lines(_)),
                smart && std::io::stderr().is_terminal(),
            ) {
                (true, _) => Drawn::Silent,
                (false, true) => Drawn::Line,
                (false, false) => Drawn::Lines,
            },
            stage: self.stage,
            started: Instant::now(),
            shown: Instant::now(),
        }
    }

    /// The stage under way has ended well.
    pub fn done(&mut self, detail: impl std::fmt::Display) {
        let (took, detail) = (self.started.elapsed(), detail.to_string());
        if let Voice::Lines(prefix) = &self.voice {
            let line = format!(
                "{prefix}  {:<11} {detail}  ({})\n",
                self.stage,
                seconds(took)
            );
            // Progress that cannot be shown is no reason to fail a flight.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        self.stages.push(StageTime {
            stage: self.stage,
            detail,
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
    }
}

/// How far a stage got: one line that is written over on a terminal, a line now and then elsewhere.
pub struct Ticker {
    form: Drawn,
    stage: &'static str,
    started: Instant,
    shown: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Drawn {
    Line,
    Lines,
    Silent,
}

impl Ticker {
    /// Says that `done` of `all` are done, if it is time to.
    pub fn tick(&mut self, done: usize, all: usize, detail: impl FnOnce() -> String) {
        let pause = match self.form {
            Drawn::Silent => return,
            Drawn::Line => REDRAW,
            Drawn::Lines => LINE,
        };
        if self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        let left = self.started.elapsed().as_secs_f64() / done.max(1) as f64
            * all.saturating_sub(done) as f64;
        let text = format!(
            "  {:<11} {done} of {all}: {}, about {left:.0} s left",
            self.stage,
            detail()
        );
        let text = match self.form {
            Drawn::Line => format!("\r{text}\x1b[K"),
            _ => format!("{text}\n"),
        };
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for Ticker {
    /// The line makes room for what comes next.
    fn drop(&mut self) {
        if self.form == Drawn::Line {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

/// Between two drawings on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// Between two lines of a log.
const LINE: Duration = Duration::from_secs(10);

/// Whether progress is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speak {
    /// Every stage, on standard error.
    Stages,
    /// Nothing.
    Nothing,
}

impl Speak {
    /// Beside results in this form: whoever reads data reads nothing else.
    pub fn to(form: Form) -> Self {
        match form {
            Form::Human => Self::Stages,
            _ => Self::Nothing,
        }
    }
}

/// A duration as people read it: `0.04 s`.
pub fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

/// Seconds since 1970 as people read them: `2026-11-29 21:22:12 UTC`.
pub fn instant(seconds: u64) -> String {
    const DAY: u64 = 86_400;
    let day = u32::try_from(seconds / DAY).unwrap_or(u32::MAX);
    let of_day = seconds % DAY;
    format!(
        "{} {:02}:{:02}:{:02} UTC",
        crate::command::date(day),
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Columns that a table may take: those of `COLUMNS`, or all it needs.
pub fn columns() -> usize {
    let stated = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    stated.filter(|c| *c >= 40).unwrap_or(usize::MAX)
}

/// A line that is cut to so many characters, with a mark where it was.
pub fn cut(line: &str, columns: usize) -> String {
    match line.char_indices().nth(columns) {
        None => line.to_owned(),
        Some(_) => line.chars().take(columns - 1).chain(['…']).collect(),
    }
}

/// Prints a row of a table.
pub fn row(line: &str) {
    print(&cut(line, columns()));
}

/// What a word means, for those who see colours. The word itself always says it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Good.
    Good,
    /// Bad.
    Bad,
    /// Beside the point.
    Faint,
}

/// A word in colour: on a terminal, and only if neither `NO_COLOR` nor `TERM=dumb` objects.
pub fn paint(word: &str, tone: Tone) -> String {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let plain = set("NO_COLOR").is_some() || set("TERM").is_none_or(|term| term == "dumb");
    if plain || !std::io::stdout().is_terminal() {
        return word.to_owned();
    }
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "1;31",
        Tone::Faint => "2",
    };
    format!("\x1b[{code}m{word}\x1b[0m")
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

/// Why a command line cannot be read. Its words may be a stranger's file names.
pub fn usage(text: &str) {
    for line in text.lines() {
        let _ = writeln!(std::io::stderr(), "{}", plain(line));
    }
}

/// A refusal beside a document that standard output has already.
pub fn aside(refusal: &Refusal) {
    let _ = writeln!(
        std::io::stderr(),
        "{}: {}",
        refusal.code(),
        plain(&refusal.detail)
    );
}

/// What an earlier run left and this one dealt with. Always said, for a program to log as well.
pub fn recovered(lines: &[String]) {
    for line in lines {
        let _ = writeln!(std::io::stderr(), "  recovered   {}", plain(line));
    }
}

/// Whether something that should have been printed was not.
static UNPRINTED: AtomicBool = AtomicBool::new(false);

/// A line to standard output. A reader that went away ends the program's output, not its work; any
/// other failure shows in the exit status.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let json = text.starts_with('{').then(|| spelt(text));
    let text = json.as_deref().unwrap_or(text);
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            UNPRINTED.store(true, Ordering::Relaxed);
        }
        _ => {}
    }
}

/// A JSON document whose texts do nothing to a terminal: what is neither ASCII nor a letter or a digit of
/// some script is spelt by its number, which means the same.
fn spelt(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() || plain(c.encode_utf8(&mut [0; 4])).chars().eq([c]) {
            out.push(c);
        } else {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter();
            out.extend(units.map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// The exit status after everything was printed: success only if it was.
pub fn ended(exit: Exit) -> Exit {
    if !UNPRINTED.load(Ordering::Relaxed) {
        return exit;
    }
    let _ = writeln!(
        std::io::stderr(),
        "flights: the answer could not be written to standard output"
    );
    match exit {
        Exit::Passed => Exit::Environment,
        other => other,
    }
}

/// A verdict as people read it.
pub(crate) fn human(verdict: &Verdict) -> String {
    let word = match verdict.verdict {
        Decision::Admitted => "ADMITTED",
        Decision::Held => "HELD",
        Decision::Refused if verdict.stopped => "STOPPED",
        Decision::Refused => "REFUSED",
        Decision::Accepted => "ACCEPTED",
    };
    let mut text = match &verdict.code {
        Some(code) => format!(
            "{word} at {}: {code}: {}",
            plain(&verdict.stage),
            plain(&verdict.detail)
        ),
        None => format!("{word}: {}", plain(&verdict.detail)),
    };
    for note in &verdict.notes {
        text.push_str("\n  | ");
        text.push_str(&plain(note));
    }
    if let Some(hint) = &verdict.hint {
        text.push_str("\n  hint: ");
        text.push_str(&plain(hint));
    }
    if let Some(certificate) = &verdict.certificate {
        text.push_str("\n  certificate ");
        text.push_str(&plain(certificate));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlightsCode, registry};

    #[test]
    fn an_instant_is_a_day_and_a_time_in_utc() {
        assert_eq!(instant(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(instant(1_795_972_113), "2026-11-29 17:08:33 UTC");
    }

    #[test]
    fn a_line_is_cut_by_characters_and_says_so() {
        assert_eq!(cut("größe", 5), "größe");
        assert_eq!(cut("größer", 5), "größ…");
        assert_eq!(cut("x", usize::MAX), "x");
    }

    #[test]
    fn a_form_that_a_command_lacks_is_refused_with_those_it_has() {
        let refused = Form::Sarif.among(Form::BASIC).unwrap_err();
        assert_eq!(refused.code(), "flights/FORMAT_UNSUPPORTED");
        assert!(refused.detail.contains("human, json"), "{}", refused.detail);
        assert_eq!(Form::Jsonl.among(&[Form::Jsonl]), Ok(Format::Json));
    }

    #[test]
    fn texts_of_a_document_mean_the_same_and_do_nothing_to_a_terminal() {
        let hostile = ['\u{9b}', '\u{202e}', '\u{200b}', '\u{2028}', '\u{1f600}'];
        let told = serde_json::json!({"größe": format!("é\\{}", String::from_iter(hostile))});
        let spelt = spelt(&told.to_string());
        assert!(!spelt.contains(hostile));
        assert!(spelt.contains("größe") && spelt.contains("\\ud83d\\ude00"));
        let read: serde_json::Value = serde_json::from_str(&spelt).unwrap();
        assert_eq!(read, told);
    }

    #[test]
    fn what_the_machine_lacks_stops_a_command_and_refuses_nothing() {
        for explanation in registry::all() {
            let verdict = Verdict::refused(
                "plan",
                &Refusal {
                    explanation,
                    ..FlightsCode::KeyMissing.refuse("").into()
                },
            );
            let exit = explanation.fault.exit();
            let none = matches!(exit, Exit::Environment | Exit::Deadline | Exit::OurBug);
            let word = if none { "STOPPED at" } else { "REFUSED at" };
            assert!(human(&verdict).starts_with(word), "{}", explanation.code);
        }
    }

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
