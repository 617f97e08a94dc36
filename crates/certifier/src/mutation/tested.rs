//! What tests do beside testing. They run where a developer's keys are, and nothing proves them.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;

use super::outside::Own;
use super::survey::{LineIndex, Silence, Survey};
use super::text::doc_lines;
use crate::flat::{Kind, Token, flatten};

/// Names that start a process or open a connection. Files are what honest tests write all day.
const STARTING: &[&str] = &[
    "Command",
    "TcpStream",
    "UdpSocket",
    "UnixStream",
    "UnixDatagram",
    "ToSocketAddrs",
];

impl Survey {
    /// Names tests, and code in documentation, that start a process or open a connection. The
    /// program under test may be started: by the name cargo gives it.
    pub(super) fn note_acting_tests(
        &mut self,
        body: &str,
        tokens: &TokenStream,
        index: &LineIndex,
        own: &Own,
        changed: &BTreeSet<u32>,
    ) {
        let tests = self.silences.iter();
        let tests = tests.filter(|(_, why)| *why == Silence::TestOnly);
        let tests: Vec<_> = tests.map(|(range, _)| index.lines(range)).collect();
        let mut lines: BTreeSet<u32> = starting(&flatten(tokens.clone()), own);
        lines.retain(|line| tests.iter().any(|of| of.contains(line)));
        let documented = example_lines(body, tokens, index);
        let starts = |text: &str| {
            let mut names = STARTING.iter();
            names.any(|name| text.contains(&format!("{name}::")))
        };
        let texts = (1..).zip(body.lines());
        let texts = texts.filter(|(line, text)| documented.contains(line) && starts(text));
        lines.extend(texts.map(|(line, _)| line));
        let lines = &lines & changed;
        let places = lines
            .iter()
            .map(|line| (index.beginning(*line), Silence::Effect));
        self.hidden.extend(places);
    }
}

/// Lines on which such a name is used or gets another one.
fn starting(tokens: &[Token], own: &Own) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Kind::Name(name) = &token.kind else {
            continue;
        };
        let ahead = |by: usize| tokens.get(at + by).map(|token| &token.kind);
        let is = |by: usize, mark: char| ahead(by) == Some(&Kind::Operator(mark));
        let named = |by: usize, word: &str| ahead(by) == Some(&Kind::Name(word.to_owned()));
        let path = is(1, ':') && is(2, ':');
        let everything = path && is(3, '*') && ["process", "net"].contains(&name.as_str());
        let tested = named(3, "cargo_bin")
            || named(5, "env")
                && matches!(ahead(8), Some(Kind::Literal(text)) if text.starts_with("\"CARGO_BIN_EXE_"));
        let used = (path && !tested) || named(1, "as");
        let starts = STARTING.contains(&name.as_str()) && used;
        if everything || starts && !own.has(std::slice::from_ref(name)) {
            out.insert(token.lines.0);
        }
    }
    out
}

/// Lines of documentation that are code: they are run as tests.
pub(super) fn example_lines(body: &str, tokens: &TokenStream, index: &LineIndex) -> BTreeSet<u32> {
    let documented = doc_lines(body, tokens, index);
    let mut out = BTreeSet::new();
    let mut fenced = false;
    for (number, text) in (1..).zip(body.lines()) {
        if !documented.contains(&number) {
            fenced = false;
            continue;
        }
        let said = text
            .trim_start()
            .trim_start_matches(['/', '!', '*'])
            .trim_start();
        if said.starts_with("```") || said.starts_with("~~~") {
            fenced = !fenced && !said.ends_with("text");
            continue;
        }
        if fenced {
            out.insert(number);
        }
    }
    out
}
