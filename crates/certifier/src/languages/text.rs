//! What a text must be before and after it was parsed, so that a compiler cannot read it differently.

use super::Language;
use super::syntax::{Syntax, is_comment, shown};
use crate::mutation::Stretches;
use crate::tokens::honest_text;
use crate::{CertifierCode, CertifierError};
use flightproof_core::RelPath;

/// The text of a file, if its bytes can be read in one way only.
///
/// # Errors
/// `SOURCE_TOO_LARGE`, `SOURCE_UNREADABLE`, `SOURCE_BIDI`, `SOURCE_AMBIGUOUS`.
pub(super) fn honest<'a>(
    language: Language,
    path: &RelPath,
    source: &'a [u8],
) -> Result<&'a str, CertifierError> {
    let text = honest_text(path, source)?;
    for (index, line) in text.split('\n').enumerate() {
        if let Some(why) = doubtful(language, index, line) {
            return Err(ambiguous(path, index + 1, why));
        }
    }
    Ok(text)
}

/// Why a line could be read in two ways.
fn doubtful(language: Language, index: usize, line: &str) -> Option<&'static str> {
    match language {
        Language::C => [
            "??=", "??/", "??'", "??(", "??)", "??!", "??<", "??>", "??-",
        ]
        .iter()
        .any(|trigraph| line.contains(trigraph))
        .then_some("a trigraph"),
        Language::Go => None,
        // A comment in a script of the web, and no comment to the grammar.
        Language::JavaScript | Language::TypeScript => (line.contains("<!--")
            || line.contains("-->"))
        .then_some("a mark that begins a comment in some readings"),
        Language::Python => {
            let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
            let indent = line.get(..indent).unwrap_or_default();
            let mixed = indent.contains('\t') && indent.contains(' ');
            let declared = index < 2 && encodings(line).any(|named| named != "utf-8");
            match (mixed, declared) {
                (true, _) => Some("tabs and spaces in one indentation"),
                (_, true) => Some("an encoding that is not utf-8"),
                _ => None,
            }
        }
    }
}

/// Every encoding that a comment in one of the first two lines of Python could declare. CPython takes the
/// first `coding` that has a `:` or `=` and a name behind it, wherever it stands.
fn encodings(line: &str) -> impl Iterator<Item = String> + '_ {
    let comment = Some(line).filter(|line| line.trim_start().starts_with('#'));
    let words = comment.unwrap_or_default().match_indices("coding");
    words.filter_map(move |(at, word)| {
        let rest = line.get(at + word.len()..)?.strip_prefix([':', '='])?;
        let rest = rest.trim_start_matches([' ', '\t']);
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
        let named = rest.get(..end.unwrap_or(rest.len()))?;
        (!named.is_empty()).then(|| named.to_ascii_lowercase())
    })
}

/// What only the tree shows: lines that are spliced, and names that are written as others.
///
/// # Errors
/// `SOURCE_AMBIGUOUS`, `SOURCE_BIDI`.
pub(super) fn unambiguous(syntax: &Syntax<'_>, path: &RelPath) -> Result<(), CertifierError> {
    let line = |at: usize| line_of(syntax.text, at);
    for (index, node) in syntax.nodes.iter().enumerate() {
        if !node.children.is_empty() {
            continue;
        }
        let said = syntax.said(index);
        if is_name(node.kind) && !said.is_ascii() {
            return Err(CertifierCode::SourceBidi.refuse(format_args!(
                "{}:{}: a name outside ASCII",
                shown(path),
                line(node.range.start)
            )));
        }
        if is_name(node.kind) && said.contains('\\') {
            return Err(ambiguous(
                path,
                line(node.range.start),
                "a name with an escape",
            ));
        }
    }
    match syntax.language {
        Language::C => unspliced(syntax, path),
        Language::Python => unjoined(syntax, path),
        Language::Go | Language::JavaScript | Language::TypeScript => Ok(()),
    }
}

fn is_name(kind: &str) -> bool {
    kind == "identifier" || kind.ends_with("_identifier")
}

/// A backslash at the end of a line joins it to the next one before anything else is read: a comment
/// goes on, or ends, where the grammar does not see it. It stays where a macro needs it.
fn unspliced(syntax: &Syntax<'_>, path: &RelPath) -> Result<(), CertifierError> {
    let splices = syntax.text.match_indices('\\').filter(|(at, _)| {
        let rest = syntax.text.get(at + 1..).unwrap_or_default();
        let rest = rest.trim_start_matches([' ', '\t', '\r']);
        rest.starts_with('\n')
    });
    let places = |which: fn(&str) -> bool| {
        let nodes = syntax.nodes.iter().filter(move |node| which(node.kind));
        nodes.map(|node| &node.range).collect::<Stretches>()
    };
    let macros = places(|kind| matches!(kind, "preproc_def" | "preproc_function_def"));
    let comments = places(is_comment);
    for (at, _) in splices {
        let place = at..at + 1;
        if !macros.hold(&place) || comments.hold(&place) {
            return Err(ambiguous(path, line_of(syntax.text, at), "a spliced line"));
        }
    }
    Ok(())
}

/// A backslash joins two lines of Python. Where it is the first of its line, or the next one is blank or a
/// comment, the grammar counts the columns of both as one indentation, and CPython those of one.
fn unjoined(syntax: &Syntax<'_>, path: &RelPath) -> Result<(), CertifierError> {
    let blank = |line: &str| line.trim_start().is_empty() || line.trim_start().starts_with('#');
    let mut start = 0;
    for line in syntax.text.split_inclusive('\n') {
        let (begin, end) = (start, start + line.len());
        start = end;
        let Some(said) = line.strip_suffix('\n') else {
            continue;
        };
        let said = said.trim_end_matches('\r');
        let joined = said.trim_end_matches('\\');
        if joined.len() == said.len() {
            continue;
        }
        let at = begin + joined.len();
        let next = syntax.text.get(end..).unwrap_or_default();
        let first = blank(joined);
        let quoted = || {
            syntax
                .holding(at)
                .any(|node| syntax.kind(node) == "string" || is_comment(syntax.kind(node)))
        };
        if (first || next.split('\n').next().is_some_and(blank)) && !quoted() {
            let why = "a line that is joined to one without code of its own";
            return Err(ambiguous(path, line_of(syntax.text, at), why));
        }
    }
    Ok(())
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

fn ambiguous(path: &RelPath, line: usize, why: &str) -> CertifierError {
    CertifierCode::SourceAmbiguous.refuse(format_args!("{}:{line}: {why}", shown(path)))
}
