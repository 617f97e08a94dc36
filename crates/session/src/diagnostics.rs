//! What cargo says about a build, one JSON document per line. Written by a stranger: bounded, and
//! nothing in it is more than a name of a file to look at.

use flightproof_core::escape;
use flightproof_evidence::{Diagnostic, ProfileSettings};
use flightproof_frame::protocol::layout;
use serde::Deserialize;

/// Most diagnostics kept; a person reads twelve, a mutation run needs one per mutant.
const MAX_DIAGNOSTICS: usize = 400;
/// Longest first line of a message kept, characters.
const MAX_MESSAGE: usize = 400;
/// Most primary spans of one diagnostic.
const MAX_SPANS: usize = 32;
/// The compiler's last error only counts those before it.
const SUMMARY: &str = "aborting due to";
/// Deepest chain of macro expansions followed to a place in the tree.
const MAX_EXPANSIONS: usize = 32;

/// What a build's messages say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Messages {
    /// Errors first, each once.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Every artifact.
    pub(crate) artifacts: Vec<Artifact>,
    /// Whether a build script ran, now or for an earlier build in this session.
    pub(crate) build_scripts: bool,
}

/// One thing that was compiled.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Artifact {
    pub(crate) manifest_path: String,
    pub(crate) target: Target,
    pub(crate) filenames: Vec<String>,
    pub(crate) executable: Option<String>,
    #[serde(default)]
    pub(crate) profile: ArtifactProfile,
}

/// How an artifact was compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ArtifactProfile {
    /// With the test harness.
    pub(crate) test: bool,
    opt_level: Option<String>,
    debug_assertions: Option<bool>,
    overflow_checks: Option<bool>,
}

impl ArtifactProfile {
    /// What cargo says of it, if that is not what it makes of the profile `dev` by itself.
    pub(crate) fn settings(&self) -> Option<ProfileSettings> {
        let found = ProfileSettings {
            opt_level: self.opt_level.as_deref().map(|level| escape(level, 8))?,
            debug_assertions: self.debug_assertions?,
            overflow_checks: self.overflow_checks?,
        };
        let usual = found.opt_level == "0" && found.debug_assertions && found.overflow_checks;
        (!usual).then_some(found)
    }
}

/// The target of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

impl Target {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|k| k == kind)
    }
}

#[derive(Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-artifact")]
    Artifact(Artifact),
    #[serde(rename = "compiler-message")]
    Compiler { message: Compiler },
    #[serde(rename = "build-script-executed")]
    BuildScript {},
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Compiler {
    message: String,
    level: String,
    code: Option<Code>,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: u32,
    byte_end: u32,
    line_start: u32,
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: Span,
}

impl Messages {
    /// Reads standard output of `cargo build --message-format=json`. Lines that are no such
    /// message are skipped: macros may print there. No line is too long: what a build script says
    /// is part of the message that it ran, and the whole output is bounded by its limit.
    pub(crate) fn parse(stdout: &[u8]) -> Self {
        let mut messages = Self::default();
        for line in stdout.split(|b| *b == b'\n') {
            if let Ok(message) = serde_json::from_slice(line) {
                messages.take(message);
            }
        }
        // Stable: the compiler's order stays within a level.
        messages.diagnostics.sort_by_key(|d| d.level != "error");
        messages.diagnostics.truncate(MAX_DIAGNOSTICS);
        messages
    }

    /// Reads standard error of `rustc --error-format=json`: bare compiler messages.
    pub(crate) fn parse_rustc(stderr: &[u8]) -> Self {
        let mut messages = Self::default();
        for line in stderr.split(|b| *b == b'\n') {
            if let Ok(message) = serde_json::from_slice(line) {
                messages.take(Message::Compiler { message });
            }
        }
        messages.diagnostics.sort_by_key(|d| d.level != "error");
        messages.diagnostics.truncate(MAX_DIAGNOSTICS);
        messages
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Artifact(artifact) => self.artifacts.push(artifact),
            Message::BuildScript {} => self.build_scripts = true,
            Message::Compiler { message } => {
                let found = diagnostic(message);
                // A library and its tests are compiled twice and complain twice.
                let said = found.level == "note" || found.message.starts_with(SUMMARY);
                if !said && !self.diagnostics.contains(&found) {
                    self.diagnostics.push(found);
                }
                self.forget_warnings();
            }
            Message::Other => {}
        }
    }

    /// A flood of warnings must neither hide an error nor grow without end.
    fn forget_warnings(&mut self) {
        if self.diagnostics.len() > 2 * MAX_DIAGNOSTICS {
            self.diagnostics.sort_by_key(|d| d.level != "error");
            self.diagnostics.truncate(MAX_DIAGNOSTICS);
        }
    }

    /// Whether a procedural macro was compiled, which is then run.
    pub(crate) fn proc_macros(&self) -> bool {
        self.artifacts.iter().any(|a| a.target.is("proc-macro"))
    }
}

fn diagnostic(message: Compiler) -> Diagnostic {
    let places: Vec<(String, &Span)> = message
        .spans
        .iter()
        .filter(|s| s.is_primary)
        .filter_map(|s| in_tree(s, MAX_EXPANSIONS))
        .collect();
    let file = places.first().map(|(file, _)| file.clone());
    let line = places.first().map_or(0, |(_, span)| span.line_start);
    let spans = places
        .iter()
        .filter(|(f, _)| Some(f) == file.as_ref())
        .take(MAX_SPANS)
        .map(|(_, span)| (span.byte_start, span.byte_end))
        .collect();
    let level = match message.level.as_str() {
        level if level.starts_with("error") => "error",
        "warning" => "warning",
        _ => "note",
    };
    Diagnostic {
        level: level.to_owned(),
        code: message.code.map(|c| c.code.chars().take(80).collect()),
        message: first_line(&message.message),
        file: file.unwrap_or_default(),
        line,
        spans,
    }
}

/// The span, or the macro call in the tree it comes from. Members of the tree are compiled with
/// relative paths, everything else with absolute ones.
fn in_tree(span: &Span, depth: usize) -> Option<(String, &Span)> {
    let tree = format!("{}/", layout::SOURCE);
    let name = &span.file_name;
    let relative = name.strip_prefix(&tree).unwrap_or(name);
    let inside =
        !relative.starts_with(['/', '<']) && flightproof_core::RelPath::new(relative).is_ok();
    if inside {
        return Some((relative.to_owned(), span));
    }
    let depth = depth.checked_sub(1)?;
    in_tree(&span.expansion.as_ref()?.span, depth)
}

fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn span(file: &str, expansion: Value) -> Value {
        json!({"file_name": file, "byte_start": 10, "byte_end": 12, "line_start": 3,
               "is_primary": true, "expansion": expansion, "label": null})
    }

    fn error(text: &str, spans: Value) -> Value {
        json!({"reason": "compiler-message", "package_id": "x",
               "message": {"message": text, "level": "error", "code": {"code": "E0308", "explanation": ""},
                           "spans": spans, "children": [], "rendered": "…"}})
    }

    fn parse(lines: &[Value]) -> Messages {
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        Messages::parse(text.join("\n").as_bytes())
    }

    #[test]
    fn a_diagnostic_names_its_place_in_the_tree() {
        let spans = json!([
            span("src/lib.rs", Value::Null),
            span("/flight/src/src/lib.rs", Value::Null)
        ]);
        let found = &parse(&[error("mismatched types\nmore", spans)]).diagnostics[0];
        assert_eq!(found.message, "mismatched types");
        assert_eq!(found.code.as_deref(), Some("E0308"));
        assert_eq!((found.file.as_str(), found.line), ("src/lib.rs", 3));
        assert_eq!(found.spans, [(10, 12), (10, 12)]);
    }

    #[test]
    fn an_error_inside_a_macro_is_placed_where_the_tree_calls_it() {
        let outer = json!({"span": span("src/a.rs", Value::Null), "macro_decl_name": "m!"});
        let spans = json!([span("/rustc/abc/library/core/src/macros.rs", outer)]);
        assert_eq!(parse(&[error("x", spans)]).diagnostics[0].file, "src/a.rs");
        for elsewhere in ["/flight/vendor/a/src/lib.rs", "../x.rs", "<anon>"] {
            let found = parse(&[error("x", json!([span(elsewhere, Value::Null)]))]);
            assert_eq!(found.diagnostics[0].file, "", "{elsewhere}");
        }
    }

    #[test]
    fn what_is_no_message_is_skipped() {
        let lines = b"warning from a build script\n{\"reason\":\"new-kind\",\"x\":1}\n{\"reason\":5}\n\xff\n[]\n\n";
        assert_eq!(Messages::parse(lines), Messages::default());
    }

    #[test]
    fn a_message_is_read_however_long_its_line_is() {
        let said = "x".repeat(2 << 20);
        let ran = json!({"reason": "build-script-executed", "env": [["A", said]]});
        assert!(parse(&[ran]).build_scripts);
        let features = json!({"reason": "compiler-artifact", "manifest_path": "/flight/src/Cargo.toml",
            "target": {"name": "m", "kind": ["proc-macro"]}, "filenames": [], "executable": null,
            "features": [said]});
        assert!(parse(&[features]).proc_macros());
    }

    #[test]
    fn a_flood_of_warnings_hides_no_error() {
        let warning = |i: usize| {
            let mut message = error(&format!("unused {i}"), json!([]));
            message["message"]["level"] = json!("warning");
            message
        };
        let mut lines: Vec<Value> = (0..2000).map(warning).collect();
        lines.push(error("the error", json!([])));
        let found = parse(&lines).diagnostics;
        assert_eq!(found.len(), MAX_DIAGNOSTICS);
        assert_eq!(found[0].message, "the error");
    }

    #[test]
    fn the_same_complaint_stands_once() {
        let line = error("x", json!([]));
        assert_eq!(parse(&[line.clone(), line]).diagnostics.len(), 1);
    }

    #[test]
    fn artifacts_scripts_and_macros_are_seen() {
        let artifact = |kind: &str, executable: Value| {
            json!({"reason": "compiler-artifact", "package_id": "p", "manifest_path": "/flight/src/Cargo.toml",
                   "target": {"name": "demo", "kind": [kind], "crate_types": [kind], "src_path": "/x"},
                   "filenames": ["/flight/target/debug/libdemo.rlib"], "executable": executable, "fresh": true})
        };
        let found = parse(&[
            artifact("bin", json!("/flight/target/debug/demo")),
            json!({"reason": "build-script-executed", "package_id": "p", "out_dir": "/o"}),
        ]);
        assert!(found.build_scripts && !found.proc_macros());
        assert_eq!(
            found.artifacts[0].executable.as_deref(),
            Some("/flight/target/debug/demo")
        );
        assert!(parse(&[artifact("proc-macro", Value::Null)]).proc_macros());
    }
}
